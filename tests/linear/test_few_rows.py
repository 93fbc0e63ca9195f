"""Splits of few rows have the models of their normal equations."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.model_selection import KFold, LeaveOneOut, ShuffleSplit

from surff.kernels import FourierMap
from surff.linear import (
    R2,
    Data,
    HeldOutFewRows,
    HeldOutSplits,
    Solving,
    SquaredError,
    has_few_rows,
)

ALPHAS = np.r_[0.0, 1e-16, np.logspace(-6, 3, 12)]

SPLITTERS = {
    "folds": KFold(4),
    "one row": LeaveOneOut(),
    "shuffled": ShuffleSplit(3, test_size=0.3, random_state=0),
}


def criteria(splitter="folds", weighted=False, fit_intercept=True, scorer=R2, k=2):
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(30, 3)), rng.normal(size=(30, k))
    weight = None
    if weighted:
        weight = rng.uniform(0.1, 3.0, 30)
        weight[[3, 17]] = 0.0
    data = Data(FourierMap(rng.normal(size=(20, 3))), X, Y, np.full(k, 0.7), weight)
    solving = Solving(fit_intercept, "cholesky")
    assert has_few_rows(data, solving)
    splits = list(SPLITTERS[splitter].split(X))
    judge = scorer(Y + data.offset)
    return [
        kind(data, solving, splits, judge) for kind in (HeldOutFewRows, HeldOutSplits)
    ]


@pytest.mark.parametrize("splitter", SPLITTERS)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_models_and_scores_are_those_of_normal_equations(
    splitter, weighted, fit_intercept
):
    found, expected = criteria(splitter, weighted, fit_intercept)
    pairs = zip(found.fold_models(ALPHAS), expected.fold_models(ALPHAS), strict=True)
    for (split, coefs, intercepts), (other, *models) in pairs:
        assert_array_equal(split.test_rows, other.test_rows)
        # Coefficients reach 40, and an alpha of 1e-6 leaves eight digits.
        assert_allclose(coefs, models[0], atol=4e-7)
        assert_allclose(intercepts, models[1], atol=4e-7)
        assert_array_equal(np.isnan(coefs), np.isnan(models[0]))
    scores = found.score(ALPHAS)
    assert_array_equal(np.isnan(scores[:2]), np.isnan(expected.score(ALPHAS)[:2]))
    if not (weighted and splitter == "one row"):
        assert_allclose(scores, expected.score(ALPHAS), rtol=1e-6, atol=1e-6)


def test_what_a_criterion_answers_besides_scores():
    found, expected = criteria(weighted=True, scorer=SquaredError)
    assert_allclose(found.held_out(0.7), expected.held_out(0.7), rtol=1e-9)
    decades = np.array([-8.0, 0.0])
    assert_allclose(found.alphas_at(decades), expected.alphas_at(decades), rtol=1e-13)
    assert found.largest_singular([0.0]) == expected.largest_singular([0.0]) == 0.0
    for split, other in zip(found.splits(), expected.splits(), strict=True):
        for side in ("train", "test"):
            one, two = getattr(split, side), getattr(other, side)
            assert_allclose(one.moments, two.moments, atol=1e-12)
            assert one.weight_sum == pytest.approx(two.weight_sum)


def test_tiny_alphas_alone():
    found, expected = criteria(fit_intercept=False)
    assert_array_equal(found.score(ALPHAS[:2]), expected.score(ALPHAS[:2]))
    assert np.isnan(found.score([0.0])).all()


def test_who_is_served():
    (one, _) = criteria()
    data, solving = one.data, one.solving
    assert not has_few_rows(data, solving._replace(solver="eigh"))
    many = data._replace(X=np.zeros((41, 3)))
    assert not has_few_rows(many, solving)
