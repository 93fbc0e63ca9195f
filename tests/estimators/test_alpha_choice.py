"""The alphas chosen, and their scores, are those of a factorisation per alpha."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from surff import FourierFeatures, KernelRidgeClassifier, KernelRidgeRegressor
from surff.streaming import ArrayRows

WAYS = ["tridiagonal", "rational"]

#: Rows, input columns, gamma, noise, decades between the columns of X.
PROBLEMS = {
    "many rows": (900, 3, 0.3, 0.3, 0.0),
    "few rows": (150, 4, 0.3, 0.3, 0.0),
    "smooth": (300, 2, 0.01, 0.1, 0.0),  # eigenvalues of 16 decades
    "noise alone": (300, 3, 0.3, 50.0, 0.0),
    "hardly any noise": (400, 2, 0.1, 1e-4, 0.0),
    "scales": (400, 4, 0.3, 0.3, 2.0),
}


def rows(name, n_targets=1, seed=0):
    n, d, gamma, noise, decades = PROBLEMS[name]
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * 10.0 ** (-decades * np.arange(d) / d)
    signal = np.sin(2.0 * X @ rng.normal(size=(d, n_targets))) + X[:, :1]
    Y = signal + noise * rng.normal(size=(n, n_targets))
    features = FourierFeatures(150, gamma=gamma, random_state=0)
    return features, X, Y[:, 0] if n_targets == 1 else Y


def fitted(monkeypatch, way, model, X, y, **options):
    with monkeypatch.context() as patch:
        patch.setattr("surff.linear.solvers.cheapest_way", lambda *_: way)
        return model.fit(X, y, **options)


def assert_same_choice(monkeypatch, way, make, X, y, **options):
    expected = fitted(monkeypatch, None, make(), X, y, **options)
    found = fitted(monkeypatch, way, make(), X, y, **options)
    assert_array_equal(found.alpha_, expected.alpha_)
    assert_array_equal(found.alpha_path_.alphas, expected.alpha_path_.alphas)
    # Rounding errors where alpha is 1e-10 of the largest eigenvalue, of both ways.
    scores = expected.alpha_path_.scores
    assert_array_equal(np.isnan(found.alpha_path_.scores), np.isnan(scores))
    size = np.maximum(1.0, abs(scores))
    off = abs(found.alpha_path_.scores - scores) / size
    assert np.nanmax(off) < 1e-6
    assert_allclose(found.best_score_, expected.best_score_, rtol=1e-8, atol=1e-8)
    return found


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("weighted", [False, True])
def test_regression(monkeypatch, way, name, weighted):
    features, X, y = rows(name)
    weight = None
    if weighted:
        weight = np.random.default_rng(1).uniform(0.1, 3.0, len(X))
    assert_same_choice(
        monkeypatch,
        way,
        lambda: KernelRidgeRegressor(features),
        X,
        y,
        sample_weight=weight,
    )


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("per_target", "scoring"),
    [(False, None), (True, None), (False, "neg_mean_absolute_error")],
)
def test_several_targets(monkeypatch, way, per_target, scoring):
    features, X, Y = rows("many rows", 3)
    Y[:, 1] *= 100.0

    def make():
        return KernelRidgeRegressor(
            features, alpha_per_target=per_target, scoring=scoring
        )

    assert_same_choice(monkeypatch, way, make, X, Y)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("scoring", [None, "roc_auc"])
def test_classes(monkeypatch, way, scoring):
    features, X, y = rows("many rows")
    labels = np.digitize(y, [-1.0, 1.0])

    def make():
        return KernelRidgeClassifier(features, scoring=scoring)

    if scoring:
        labels = labels > 0
    assert_same_choice(monkeypatch, way, make, X, labels)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_alphas_of_ones_own_in_float32(monkeypatch, way, fit_intercept):
    features, X, y = rows("many rows")

    def make():
        return KernelRidgeRegressor(
            features, alphas=np.logspace(-4, 4, 30), fit_intercept=fit_intercept, cv=3
        )

    assert_same_choice(monkeypatch, way, make, X.astype(np.float32), y)


@pytest.mark.parametrize("way", WAYS)
def test_a_grid_that_grows(monkeypatch, way):
    # Noise is best left alone: the grid grows upwards.
    features, X, y = rows("noise alone")
    found = assert_same_choice(
        monkeypatch, way, lambda: KernelRidgeRegressor(features), X, y
    )
    assert len(found.alpha_path_.alphas) > 21


@pytest.mark.parametrize("way", WAYS)
def test_a_source(monkeypatch, way):
    features, X, y = rows("many rows")

    class Streamed(KernelRidgeRegressor):
        def fit(self, X, y):
            return self.fit_stream(ArrayRows(X, y))

    assert_same_choice(monkeypatch, way, lambda: Streamed(features), X, y)
