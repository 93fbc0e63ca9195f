"""Bounds and sets of CV+ against their definition, score by score."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from surff.linear import (
    left_out_scores,
    merge_scores,
    plus_bounds,
    plus_sets,
    score_quantiles,
)
from surff.linear.conformal import rounded_up

RNG = np.random.default_rng(0)


def by_definition(scores, folds, centres, scales, coverage):
    """Barber et al., equation 3.1, for one row and target."""
    n = len(scores)
    spread = scores * scales[folds]
    low = np.sort(centres[folds] - spread)
    high = np.sort(centres[folds] + spread)
    first = int(np.floor((1 - coverage) * (n + 1) + 1e-9))
    last = int(np.ceil(coverage * (n + 1) - 1e-9))
    return (
        low[first - 1] if first >= 1 else -np.inf,
        high[last - 1] if last <= n else np.inf,
    )


@pytest.mark.parametrize("n_folds", [1, 5, 80])
@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("coverage", [0.5, 0.9, 0.995])
def test_bounds_equal_their_definition(n_folds, scaled, coverage):
    n, k, rows = 99, 2, 7
    scores = RNG.exponential(size=(n, k))
    folds = RNG.permutation(np.arange(n) % n_folds)
    centres = RNG.normal(size=(rows, n_folds, k))
    scales = RNG.uniform(0.5, 2.0, size=centres.shape) if scaled else None
    found = left_out_scores(scores, folds, n_folds)
    lower, upper = plus_bounds(found, centres, scales, coverage)
    ones = np.ones_like(centres) if scales is None else scales
    for i in range(rows):
        for j in range(k):
            expected = by_definition(
                scores[:, j], folds, centres[i, :, j], ones[i, :, j], coverage
            )
            assert_allclose((lower[i, j], upper[i, j]), expected, rtol=1e-12)


@pytest.mark.parametrize("n_folds", [4, 70])
def test_a_weight_repeats_a_score(n_folds):
    scores, folds = RNG.exponential(size=(140, 1)), np.arange(140) % n_folds
    weight = RNG.integers(0, 4, size=140)
    again = np.repeat(np.arange(140), weight)
    centres = RNG.normal(size=(5, n_folds, 1))
    weighted = left_out_scores(scores, folds, n_folds, weight.astype(float))
    repeated = left_out_scores(scores[again], folds[again], n_folds)
    for found, expected in zip(
        plus_bounds(weighted, centres, None, 0.8),
        plus_bounds(repeated, centres, None, 0.8),
        strict=True,
    ):
        assert_allclose(found, expected, rtol=1e-12)


def test_rows_that_no_fold_leaves_out_do_not_count():
    scores, folds = RNG.exponential(size=(60, 1)), np.arange(60) % 4 - 1
    centres = RNG.normal(size=(5, 3, 1))
    kept = folds >= 0
    found = plus_bounds(left_out_scores(scores, folds, 3), centres, None, 0.8)
    few = left_out_scores(scores[kept], folds[kept], 3)
    assert_array_equal(found, plus_bounds(few, centres, None, 0.8))


def test_too_few_scores_give_no_bound():
    found = left_out_scores(RNG.exponential(size=(8, 1)), np.arange(8) % 2, 2)
    lower, upper = plus_bounds(found, np.zeros((3, 2, 1)), None, 0.9)
    assert_array_equal(upper, np.inf)
    assert_array_equal(lower, -np.inf)
    empty = left_out_scores(np.zeros((0, 1)), np.zeros(0, int), 2)
    assert_array_equal(plus_bounds(empty, np.zeros((3, 2, 1)), None, 0.9)[1], np.inf)
    assert_array_equal(score_quantiles(found, 0.9), np.inf)
    assert_array_equal(score_quantiles(empty, 0.9), np.inf)


@pytest.mark.parametrize("n_folds", [3, 90])
def test_quantiles_count_weights(n_folds):
    scores, folds = RNG.exponential(size=(140, 2)), np.arange(140) % n_folds
    weight = RNG.integers(0, 4, size=140)
    found = left_out_scores(scores, folds, n_folds, weight.astype(float))
    again = np.sort(np.repeat(scores, weight, axis=0), axis=0)
    place = int(np.ceil(0.8 * (len(again) + 1) - 1e-9)) - 1
    assert_array_equal(score_quantiles(found, 0.8), again[place])


@pytest.mark.parametrize("n_folds", [3, 90])
@pytest.mark.parametrize("coverage", [0.6, 0.9])
def test_sets_equal_their_definition(n_folds, coverage):
    n, rows, classes = 99, 11, 4
    scores, folds = RNG.normal(size=(n, 1)), np.arange(n) % n_folds
    candidates = RNG.normal(size=(rows, n_folds, classes))
    found = plus_sets(left_out_scores(scores, folds, n_folds), candidates, coverage)
    less = (scores[:, 0, None] < candidates[:, folds]).sum(axis=1)
    assert_array_equal(found, less < coverage * (n + 1) - 1e-9)


@pytest.mark.parametrize("parts", [2, 5])
def test_scores_of_parts_merge_to_those_of_all(parts):
    scores, folds = RNG.normal(size=(60, 2)).round(1), np.arange(60) % 4 - 1
    weight = RNG.integers(0, 3, size=60).astype(float)
    total = left_out_scores(np.zeros((0, 2)), np.zeros(0, int), 3)
    for own in np.array_split(np.arange(60), parts):
        part = left_out_scores(scores[own], folds[own], 3, weight[own])
        total = merge_scores(total, part)
    expected = left_out_scores(scores, folds, 3, weight)
    for found, value in zip(total, expected, strict=True):
        assert_allclose(found, value)


def test_rounding_up_is_small_and_upwards():
    values = np.concatenate(
        [RNG.normal(size=1000) * 10.0 ** RNG.integers(-9, 9, size=1000), [0.0]]
    )
    up = rounded_up(values)
    assert np.all(up >= values)
    assert np.all(up - values <= 1e-3 * np.abs(values))
    assert_array_equal(rounded_up(up), up)
    many = rounded_up(RNG.exponential(size=200_000))
    assert len(np.unique(many)) < 20_000
