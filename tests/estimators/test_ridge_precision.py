import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from surff import (
    FourierFeatures,
    KernelRidgeClassifier,
    KernelRidgeRegressor,
    NystroemFeatures,
)
from surff.estimators import _rows_fit
from surff.kernels import FourierMap
from surff.linear import float32_error
from surff.streaming import ArrayRows


def problem(n=3000, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, np.sin(2.0 * X[:, 0]) + 0.3 * rng.normal(size=n)


def fitted(X, y, precision, features=None, **options):
    features = features or FourierFeatures(100, gamma=0.5, random_state=0)
    options = {"alphas": 1.0, **options}
    return KernelRidgeRegressor(features, precision=precision, **options).fit(X, y)


@pytest.mark.parametrize("gamma", [1e-3, 0.1, 10.0])
@pytest.mark.parametrize("alpha", [1e-3, 1.0, 1e3])
def test_mixed_precision_keeps_to_its_bound(gamma, alpha):
    X, y = problem()
    features = FourierFeatures(100, gamma=gamma, random_state=0)
    exact, mixed = (
        fitted(X, y, precision, features, alphas=alpha)
        for precision in ("float64", "mixed")
    )
    trace = np.trace(exact.equations_.gram)
    error = np.sqrt(np.mean((mixed.predict(X) - exact.predict(X)) ** 2)) / y.std()
    assert 0 < error <= float32_error(trace, alpha)


def test_without_a_ridge_there_is_no_bound():
    assert float32_error(10.0, 0.0) == np.inf


@pytest.mark.parametrize(
    ("options", "chosen"),
    [
        ({"alphas": 1.0}, "mixed"),
        ({"alphas": [1.0, 10.0]}, "mixed"),
        ({"alphas": [1e-3, 10.0]}, "float64"),  # 2**-23 * 3000 / (4 * 1e-3) > 1e-2
        ({"alphas": 0.0}, "float64"),
        ({"alphas": "auto"}, "float64"),
        ({"alphas": 1.0, "tol": 1e-6}, "float64"),
        ({"alphas": 1e-3, "tol": 1.0}, "mixed"),
    ],
)
def test_auto_takes_float32_where_it_is_safe(monkeypatch, options, chosen):
    X, y = problem()
    small = fitted(X, y, "auto", **options).primal_coef_
    monkeypatch.setattr(_rows_fit, "LARGE_GRAM", 0.0)
    auto = fitted(X, y, "auto", **options).primal_coef_
    assert_array_equal(auto, fitted(X, y, chosen, **options).primal_coef_)
    assert_array_equal(small, fitted(X, y, "float64", **options).primal_coef_)


def test_auto_counts_rows_by_their_weights(monkeypatch):
    monkeypatch.setattr(_rows_fit, "LARGE_GRAM", 0.0)
    X, y = problem()
    features = FourierFeatures(100, gamma=0.5, random_state=0)
    for weight, chosen in ((1.0, "mixed"), (1000.0, "float64")):
        auto, other = (
            KernelRidgeRegressor(features, alphas=1.0, precision=precision)
            .fit(X, y, np.full(len(y), weight))
            .primal_coef_
            for precision in ("auto", chosen)
        )
        assert_array_equal(auto, other)


def test_float64_serves_float32_rows():
    X, y = problem()
    X, y = X.astype(np.float32), y.astype(np.float32)
    options = {"alphas": 1e-4}
    exact = fitted(X.astype(np.float64), y.astype(np.float64), "float64", **options)
    wide = fitted(X, y, "float64", **options)
    narrow = fitted(X, y, "auto", **options)
    assert wide.primal_coef_.dtype == narrow.primal_coef_.dtype == np.float32

    def error(model):
        return (
            np.abs(model.primal_coef_ - exact.primal_coef_).max()
            / np.abs(exact.primal_coef_).max()
        )

    # Targets are centred in their own type, and coefficients are rounded to it.
    assert error(wide) < 1e-5 < 1e-4 < error(narrow)


@pytest.mark.parametrize(
    "features",
    [
        FourierFeatures(40, gamma=0.5, select="surrogate", random_state=0),
        FourierFeatures(41, gamma=0.5, random_state=0),
        FourierFeatures(64, gamma=0.5, draw="structured_orthogonal", random_state=0),
        NystroemFeatures(40, gamma=0.5, random_state=0),
    ],
)
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_mixed_precision_serves_every_map_and_form(features, form):
    X, y = problem(600)
    X[np.abs(X) < 0.5] = 0.0
    y = np.where(y > 0, "up", "down")
    options = {"alphas": [0.1, 1.0], "cv": 3}
    exact, mixed = (
        KernelRidgeClassifier(features, precision=precision, **options).fit(form(X), y)
        for precision in ("float64", "mixed")
    )
    assert mixed.primal_coef_.dtype == np.float64
    assert mixed.alpha_ == exact.alpha_
    assert_allclose(
        mixed.primal_coef_,
        exact.primal_coef_,
        atol=1e-3 * np.abs(exact.primal_coef_).max(),
    )
    # Sums of kernel values, which the normalization then amplifies, are float64 always.
    is_nystroem = isinstance(features, NystroemFeatures)
    assert np.any(mixed.primal_coef_ != exact.primal_coef_) != is_nystroem


def test_pieces_and_streams_are_mapped_in_the_precision_asked_for():
    X, y = problem()
    whole = fitted(X, y, "mixed")
    features = FourierFeatures(100, gamma=0.5, random_state=0)
    pieces = KernelRidgeRegressor(features, alphas=1.0, precision="mixed")
    for part in np.array_split(np.arange(len(y)), 3):
        pieces.partial_fit(X[part], y[part])
    stream = KernelRidgeRegressor(features, alphas=1.0, precision="mixed")
    stream.fit_stream(ArrayRows(X, y))
    exact = fitted(X, y, "float64")
    scale = np.abs(whole.primal_coef_).max()
    for model in (pieces, stream):
        assert (
            1e-9 < np.abs(model.primal_coef_ - exact.primal_coef_).max() / scale < 1e-3
        )


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_a_map_converts_rows_of_another_type(form):
    X, _ = problem(50)
    frequencies = np.random.default_rng(1).normal(size=(7, 3)).astype(np.float32)
    Z = FourierMap(frequencies)(form(X))
    assert Z.dtype == np.float32
    expected = FourierMap(frequencies)(form(X.astype(np.float32)))
    assert_array_equal(Z, expected)
