"""Evidence of frequencies and its derivatives, and a bandwidth for each column."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import make_friedman1

from surff import FourierFeatures, KernelRidgeClassifier, KernelRidgeRegressor
from surff.adaptation import frequency_evidence
from surff.kernels import FourierMap
from surff.linear import SingularError, accumulate, likelihood

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = np.column_stack([np.sin(X[:, 0]), X[:, 1] ** 2]) + 0.1 * RNG.normal(size=(60, 2))
W = RNG.normal(size=(7, 3))
WEIGHT = RNG.integers(0, 3, size=60).astype(float)
for array in (X, Y, W, WEIGHT):
    array.flags.writeable = False


@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["equal", "weights"])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_value_and_derivatives(weight, fit_intercept):
    found = frequency_evidence(W, X, Y, 0.7, weight, fit_intercept)
    equations = accumulate(FourierMap(W), X, Y, weight)
    expected = likelihood(equations, fit_intercept)
    assert_allclose(found.value, expected.value(0.7).sum(), rtol=1e-10)
    by_alpha, _ = expected.gradient(0.7)
    assert_allclose(found.by_log_alpha, by_alpha.sum(), rtol=1e-8)
    step, numbers = 1e-5, np.empty_like(W)
    for place in np.ndindex(W.shape):
        move = np.zeros_like(W)
        move[place] = step
        up, down = (
            frequency_evidence(V, X, Y, 0.7, weight, fit_intercept).value
            for V in (W + move, W - move)
        )
        numbers[place] = (up - down) / (2.0 * step)
    assert_allclose(found.gradient, numbers, rtol=1e-6, atol=1e-6)


def test_a_weight_repeats_a_row():
    rows = np.repeat(np.arange(60), WEIGHT.astype(int))
    found = frequency_evidence(W, X, Y, 0.7, WEIGHT)
    again = frequency_evidence(W, X[rows], Y[rows], 0.7)
    for part, expected in zip(found, again, strict=True):
        assert_allclose(part, expected, rtol=1e-8)


def test_a_singular_system_is_refused():
    with pytest.raises(SingularError, match="singular to working precision"):
        frequency_evidence(np.ones((2, 3)), X, Y, 1e-20)


@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
def test_columns_that_carry_nothing_get_no_bandwidth(kernel):
    rows, y = make_friedman1(1400, n_features=8, noise=1.0, random_state=0)
    features = FourierFeatures(128, kernel=kernel, random_state=0)
    fits = {
        gammas: KernelRidgeRegressor(features, gammas=gammas, cv="evidence").fit(
            rows[:400], y[:400]
        )
        for gammas in ("auto", "columns")
    }
    gamma = fits["columns"].features_.gamma_
    if kernel == "rbf":  # heavy tails of "laplacian" leave a column of noise something
        assert gamma[5:].max() < 0.05 * gamma[:3].min()
    assert np.median(gamma[5:]) < 0.1 * np.median(gamma[:3])
    assert fits["columns"].best_score_ > fits["auto"].best_score_ + 20.0
    errors = {
        name: np.mean((fit.predict(rows[400:]) - y[400:]) ** 2)
        for name, fit in fits.items()
    }
    assert errors["columns"] < 0.7 * errors["auto"]
    # The features do not count as ones that look at y.
    assert fits["columns"].predict(rows, return_std=True)[1].shape == (1400,)


def test_the_same_seed_gives_the_same_bandwidths_for_labels():
    labels, narrow = X[:, 0] > 0, X.astype(np.float32)
    model = KernelRidgeClassifier(
        FourierFeatures(15, random_state=0), gammas="columns", cv="evidence"
    )
    first, second = (model.fit(rows, labels).features_.gamma_ for rows in (X, X))
    assert_allclose(first, second)
    assert_allclose(model.fit(narrow, labels).features_.gamma_, first, rtol=0.05)
    assert model.score(X, labels) > 0.9


@pytest.mark.parametrize(
    "options",
    [
        {"cv": 5},
        {"features": FourierFeatures(16, select="surrogate")},
        {"features": FourierFeatures(16, adapt="gradient")},
    ],
)
def test_what_has_no_evidence_of_bandwidths_is_refused(options):
    model = KernelRidgeRegressor(
        **{"features": FourierFeatures(16), "cv": "evidence", **options},
        gammas="columns",
    )
    with pytest.raises(ValueError, match="gammas='columns' maximises the evidence"):
        model.fit(X, Y)
