"""Statistics against closed forms; nothing to test gives no warning and no bullet."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from surff.experiments.statistics import (
    paired_p_value,
    paired_ratio,
    signed_rank_p_value,
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


A, B = [0.80, 0.82, 0.85, 0.81, 0.83], [0.79, 0.80, 0.80, 0.82, 0.81]


@pytest.mark.parametrize("ratio", [0.0, 1.0, 2.5])
def test_p_value_is_the_t_distribution_of_the_differences(ratio):
    difference = summarise([x - y for x, y in zip(A, B, strict=True)])
    t = difference.mean / (difference.std * math.sqrt(1 / 5 + ratio))
    expected = 2.0 * stats.t.sf(abs(t), df=4)
    found = paired_p_value(trials(*A), trials(*B), ratio)
    assert found == pytest.approx(expected, rel=1e-12)


def test_the_plain_p_value_is_scipys():
    expected = stats.ttest_rel(A, B).pvalue
    assert paired_p_value(trials(*A), trials(*B)) == pytest.approx(expected, rel=1e-12)


def test_pairs_are_matched_by_trial():
    a = dict(enumerate(A)) | {5: 0.0}
    b = {9: 1.0} | {i: B[i] for i in (3, 1, 2, 0, 4)}
    expected = stats.ttest_rel(A, B).pvalue
    assert paired_p_value(a, b) == pytest.approx(expected, rel=1e-12)


def test_the_corrected_test_keeps_its_level_between_random_halves():
    # Two rules without a difference: the scores of each row are independent normal
    # numbers of mean zero, a trial's score their mean over its test half. The halves
    # overlap, so that the plain test rejects far too often, and the corrected one,
    # which assumes a correlation of one half (that of two test halves), does not.
    rng = np.random.default_rng(0)
    n_repetitions, n_trials, n_rows = 800, 10, 20
    zero = dict.fromkeys(range(n_trials), 0.0)
    rejected = {0.0: 0, 1.0: 0}
    for _ in range(n_repetitions):
        order = rng.permuted(np.tile(np.arange(n_rows), (n_trials, 1)), axis=1)
        means = rng.normal(size=n_rows)[order[:, : n_rows // 2]].mean(axis=1)
        scores = trials(*means)
        for ratio in rejected:
            rejected[ratio] += paired_p_value(scores, zero, ratio) < 0.05
    # Hoeffding: a rate of at most 5 % is seen that far above with probability < 1e-9.
    assert rejected[1.0] / n_repetitions < 0.05 + math.sqrt(
        math.log(1e9) / (2 * n_repetitions)
    )
    assert rejected[0.0] / n_repetitions > 0.4


@pytest.mark.parametrize(
    ("a", "b", "p", "better"),
    [
        (trials(*A), trials(*A), 1.0, False),
        (trials(*(x + 0.25 for x in A)), trials(*A), 0.0, True),
        (trials(*A), trials(*(x + 0.25 for x in A)), 0.0, False),
        (trials(*A[:4]), trials(*B[:4]), math.nan, False),  # too few to test
        ({}, {}, math.nan, False),
    ],
)
def test_degenerate_pairs(a, b, p, better):
    assert paired_p_value(a, b) == pytest.approx(p, nan_ok=True)
    assert significantly_better(a, [b]) is better


def test_bullet_needs_a_gain_over_every_reference_and_significance():
    reference = trials(0.70, 0.71, 0.72, 0.73, 0.70)
    clear = trials(0.80, 0.82, 0.81, 0.84, 0.81)
    noisy = trials(0.90, 0.60, 0.80, 0.72, 0.75)
    assert significantly_better(clear, [reference])
    assert not significantly_better(reference, [clear])
    assert not significantly_better(noisy, [reference])
    assert significantly_better(clear, [reference, reference])
    assert not significantly_better(clear, [reference, noisy])
    assert not significantly_better(clear, [reference, clear])


def test_a_correction_only_takes_bullets_away():
    reference = trials(0.70, 0.71, 0.72, 0.73, 0.70)
    ahead = trials(0.72, 0.72, 0.75, 0.74, 0.72)
    assert significantly_better(ahead, [reference])
    assert not significantly_better(ahead, [reference], 1.0)


def test_signed_ranks_by_all_signs():
    a, b = [3.0, 5.0, 1.0, 9.0, 4.0, 8.0], [1.0, 1.0, 2.0, 3.5, 4.0, 5.5]
    found = signed_rank_p_value(trials(*a), trials(*b))
    # The pair without a difference is left out; 2.5 is there once, so no ties.
    difference = np.array([x - y for x, y in zip(a, b, strict=True) if x != y])
    ranks = stats.rankdata(np.abs(difference))
    sums = [
        sum(rank for rank, sign in zip(ranks, signs, strict=True) if sign > 0)
        for signs in itertools.product([-1, 1], repeat=len(ranks))
    ]
    least = min(ranks[difference > 0].sum(), ranks[difference < 0].sum())
    assert found == pytest.approx(2.0 * np.mean(np.array(sums) <= least), rel=1e-12)
    assert math.isnan(signed_rank_p_value(trials(1.0), trials(1.0)))
    assert math.isnan(signed_rank_p_value({}, {}))


def test_ratio_is_the_median_within_trials():
    assert paired_ratio(trials(2.0, 9.0, 100.0), trials(1.0, 3.0, 10.0)) == 3.0
    assert math.isnan(paired_ratio({0: 1.0}, {1: 1.0}))


def test_differences_that_are_equal_up_to_rounding_are_equal():
    values, same = trials(0.8, 0.9, 1.1, 0.8, 0.9), trials(0.1, 0.2, 0.4, 0.1, 0.2)
    assert len({values[i] - same[i] for i in range(5)}) > 1
    assert paired_p_value(values, same) == 0.0
    almost = {i: value * (1.0 + 2.0**-52) for i, value in values.items()}
    assert almost != values
    assert paired_p_value(values, almost) == 1.0
