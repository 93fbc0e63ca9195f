"""The eliminated ridge objective, its gradient, and the optimiser."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from surff.adaptation import Adam, cosine_schedule, projected_objective
from surff.adaptation import objective as variable_projection
from surff.kernels import fourier_features

RNG = np.random.default_rng(0)
X = RNG.normal(size=(50, 3))
Y = RNG.normal(size=(50, 2))
W = RNG.normal(size=(5, 3))
WEIGHT = RNG.integers(0, 4, size=50).astype(float)
for array in (X, Y, W, WEIGHT):
    array.flags.writeable = False

weights = pytest.mark.parametrize("weight", [None, WEIGHT], ids=["equal", "weighted"])


def objective(frequencies, alpha=0.03, weight=None):
    return projected_objective(frequencies, X, Y, alpha, weight).objective


@weights
def test_objective_is_that_of_least_squares_with_rows_for_the_penalty(weight):
    alpha = 0.03
    share = np.full(50, 1 / 50) if weight is None else weight / weight.sum()
    Z = np.hstack([fourier_features(X, W), np.ones((50, 1))]) * np.sqrt(share)[:, None]
    penalty = np.sqrt(alpha) * np.eye(10, 11)
    A = np.vstack([Z, penalty])
    B = np.vstack([Y * np.sqrt(share)[:, None], np.zeros((10, 2))])
    solution = np.linalg.lstsq(A, B, rcond=None)[0]
    expected = np.sum((B - A @ solution) ** 2)
    assert_allclose(objective(W, alpha, weight), expected, rtol=1e-11)


@weights
@pytest.mark.parametrize("alpha", [1e-6, 0.03, 10.0])
def test_gradient_is_that_of_finite_differences(alpha, weight):
    gradient = projected_objective(W, X, Y, alpha, weight).gradient
    numerical = np.empty_like(W)
    for index in np.ndindex(W.shape):
        step = np.zeros_like(W)
        step[index] = 1e-5
        difference = objective(W + step, alpha, weight) - objective(
            W - step, alpha, weight
        )
        numerical[index] = difference / 2e-5
    # Rounding of the objective over the step, and the third derivative.
    assert_allclose(gradient, numerical, rtol=1e-6, atol=1e-9)


def test_weights_are_repetitions():
    repeated = np.repeat(np.arange(50), WEIGHT.astype(int))
    one = projected_objective(W, X, Y, 0.03, WEIGHT)
    other = projected_objective(W, X[repeated], Y[repeated], 0.03)
    assert_allclose(one.objective, other.objective, rtol=1e-12)
    assert_allclose(one.gradient, other.gradient, rtol=1e-9, atol=1e-14)


@weights
def test_parts_of_the_rows_add_up(weight, monkeypatch):
    whole = projected_objective(W, X, Y, 0.03, weight)
    slices = [slice(0, 20), slice(20, 21), slice(21, 50)]
    monkeypatch.setattr(
        variable_projection,
        "map_slices",
        lambda function, n_rows, minimum: [function(rows) for rows in slices],
    )
    parts = projected_objective(W, X, Y, 0.03, weight)
    assert_allclose(parts.objective, whole.objective, rtol=1e-12)
    assert_allclose(parts.gradient, whole.gradient, rtol=1e-9, atol=1e-14)


def test_sparse_rows_and_single_precision():
    exact = projected_objective(W, X, Y, 0.03)
    rows = projected_objective(W, sparse.csr_matrix(X), Y, 0.03)
    assert_allclose(rows.gradient, exact.gradient, rtol=1e-10, atol=1e-14)
    single = projected_objective(
        W.astype(np.float32), X.astype(np.float32), Y.astype(np.float32), 0.03
    )
    assert single.gradient.dtype == np.float32
    assert_allclose(single.objective, exact.objective, rtol=1e-5)
    assert_allclose(single.gradient, exact.gradient, rtol=1e-3, atol=1e-5)


def test_a_shift_of_the_rows_changes_nothing():
    exact = projected_objective(W, X, Y, 0.03)
    moved = projected_objective(W, X + np.array([3.0, -1.0, 7.0]), Y, 0.03)
    assert_allclose(moved.objective, exact.objective, rtol=1e-10)
    # A shift turns the pair of a frequency, and no penalty or target sees that.
    assert_allclose(moved.gradient, exact.gradient, rtol=1e-8, atol=1e-12)


def test_adam_finds_the_minimum_whatever_the_units():
    target = np.array([3.0, -2.0])
    for unit in (1e-12, 1.0, 1e12):
        adam, place = Adam((2,)), np.zeros(2)
        for step in range(400):
            gradient = unit * (place - target)
            place += adam.step(gradient, 0.1 * cosine_schedule(step, 400))
        assert_allclose(place, target, atol=1e-2)
    assert not Adam((2,)).step(np.zeros(2), 0.1).any()


def test_schedule_rises_and_falls():
    factors = np.array([cosine_schedule(step, 200) for step in range(200)])
    assert np.all(np.diff(factors[:9]) > 0)
    assert np.all(np.diff(factors[10:]) < 0)
    assert 0 < factors.min() < 1e-3
    assert 0.9 < factors.max() <= 1
    assert cosine_schedule(0, 1) == 1


@weights
@pytest.mark.parametrize("n_targets", [1, 2])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_a_workspace_changes_nothing(form, n_targets, weight):
    workspace = {}
    for seed in range(3):
        rng = np.random.default_rng(seed)
        rows, frequencies = rng.normal(size=(50, 3)), rng.normal(size=(5, 3))
        targets = np.array(Y[:, :n_targets])
        arguments = (frequencies, form(rows), targets, 0.03, weight)
        expected = projected_objective(*arguments, by_rows=True)
        found = projected_objective(*arguments, by_rows=True, workspace=workspace)
        for one, other in zip(found, expected, strict=True):
            assert_array_equal(one, other)
    assert len(workspace) == 1
