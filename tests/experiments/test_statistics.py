"""Statistics against closed forms; nothing to test gives no warning and no bullet."""

import math

import pytest
from scipy import stats

from surff.experiments.statistics import (
    mean_absolute_deviation,
    paired_p_value,
    paired_ratio,
    significantly_better,
    summarise,
)


def trials(*values):
    return dict(enumerate(values))


def test_summary_divides_by_n_minus_one():
    summary = summarise([1.0, 2.0, 6.0])
    assert summary.mean == 3.0
    assert summary.std == pytest.approx(math.sqrt((4 + 1 + 9) / 2))
    assert summary.n == 3


def test_one_trial_has_a_mean_and_no_spread():
    summary = summarise([0.7])
    assert summary.mean == 0.7
    assert math.isnan(summary.std)
    with pytest.raises(ValueError, match="at least one number, got none"):
        summarise([])


def test_p_value_is_the_t_distribution_of_the_differences():
    a, b = [0.80, 0.82, 0.85, 0.81], [0.79, 0.80, 0.80, 0.82]
    difference = summarise([x - y for x, y in zip(a, b, strict=True)])
    t = difference.mean / (difference.std / 2.0)
    expected = 2.0 * stats.t.sf(abs(t), df=3)
    assert paired_p_value(trials(*a), trials(*b)) == pytest.approx(expected, rel=1e-12)


def test_pairs_are_matched_by_trial():
    a, b = {0: 0.5, 1: 0.75, 2: 1.0, 3: 0.0}, {2: 0.5, 1: 0.5, 0: 0.125, 9: 1.0}
    expected = stats.ttest_rel([0.5, 0.75, 1.0], [0.125, 0.5, 0.5]).pvalue
    assert paired_p_value(a, b) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("a", "b", "p", "better"),
    [
        (trials(0.5, 0.75), trials(0.5, 0.75), 1.0, False),
        (trials(0.75, 1.0), trials(0.5, 0.75), 0.0, True),
        (trials(0.5, 0.75), trials(0.75, 1.0), 0.0, False),
        (trials(0.75), trials(0.5), math.nan, False),
        ({}, {}, math.nan, False),
    ],
)
def test_degenerate_pairs(a, b, p, better):
    assert paired_p_value(a, b) == pytest.approx(p, nan_ok=True)
    assert significantly_better(a, b) is better


def test_bullet_needs_a_gain_and_significance():
    reference = trials(0.70, 0.71, 0.72, 0.73)
    clear = trials(0.80, 0.82, 0.81, 0.84)
    noisy = trials(0.90, 0.60, 0.80, 0.72)
    assert significantly_better(clear, reference)
    assert not significantly_better(reference, clear)
    assert not significantly_better(noisy, reference)


def test_ratio_is_the_median_within_trials():
    assert paired_ratio(trials(2.0, 9.0, 100.0), trials(1.0, 3.0, 10.0)) == 3.0
    assert math.isnan(paired_ratio({0: 1.0}, {1: 1.0}))


def test_deviation_counts_common_cells_only():
    assert mean_absolute_deviation({1: 2.0, 2: 5.0, 3: 9.0}, {1: 3.0, 2: 3.0}) == (
        1.5,
        2,
    )
    deviation, n_cells = mean_absolute_deviation({1: 1.0}, {})
    assert math.isnan(deviation)
    assert n_cells == 0


def test_differences_that_are_equal_up_to_rounding_are_equal():
    values, same = {0: 0.8, 1: 0.9, 2: 1.1}, {0: 0.1, 1: 0.2, 2: 0.4}
    assert len({values[i] - same[i] for i in range(3)}) > 1
    assert paired_p_value(values, same) == 0.0
    almost = {i: value * (1.0 + 2.0**-52) for i, value in values.items()}
    assert almost != values
    assert paired_p_value(values, almost) == 1.0
