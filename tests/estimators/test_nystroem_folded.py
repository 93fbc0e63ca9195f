"""Nystrom without the product of every row with the normalization."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.datasets import make_friedman1

from surff import KernelRidgeRegressor, NystroemFeatures
from surff.kernels import LandmarkMap
from surff.linear import accumulate, solve

X, Y = make_friedman1(400, n_features=6, noise=0.5, random_state=0)
X.flags.writeable = Y.flags.writeable = False

KERNELS = ["rbf", "laplacian", "matern", "poly", "cosine"]


def fitted(X=X, m=25, **parameters):
    parameters = {"kernel": "rbf", "gamma": 0.3, "random_state": 0, **parameters}
    return NystroemFeatures(m, **parameters).fit(X)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_the_factors_give_the_features(kernel, form):
    rows = form(X)
    feature_map = fitted(rows, kernel=kernel).feature_map()
    Z = feature_map(rows)
    values, basis = feature_map.factored(rows[:50])
    assert isinstance(values, LandmarkMap)
    assert values.n_components == basis.shape[0] > Z.shape[1]
    assert_allclose(values(rows) @ basis, Z, atol=1e-7 * abs(Z).max())
    coef = np.random.default_rng(0).normal(size=(Z.shape[1], 2))
    values, folded = feature_map.folded(coef)
    assert_allclose(values(rows) @ folded, Z @ coef, atol=1e-7 * abs(Z @ coef).max())


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("some", [None, np.arange(399, 100, -2)])
def test_sums_are_those_of_the_features(weighted, some):
    feature_map = fitted().feature_map()
    weight = np.linspace(0, 2, len(X)) if weighted else None
    equations = accumulate(feature_map, X, Y[:, None], weight, some)
    rows = slice(None) if some is None else some
    Z, y = feature_map(X[rows]), Y[rows, None]
    w = np.ones(len(Z)) if weight is None else weight[rows]
    gram = Z.T @ (w[:, None] * Z)
    assert_allclose(np.triu(equations.gram), np.triu(gram), atol=1e-10 * gram.max())
    assert_allclose(equations.moments, Z.T @ (w[:, None] * y), rtol=1e-9, atol=1e-9)
    assert_allclose(equations.feature_sum, Z.T @ w, rtol=1e-9, atol=1e-9)
    assert equations.weight_sum == pytest.approx(w.sum())
    assert_allclose(equations.target_square, w @ y**2)


@pytest.mark.parametrize("gamma", [1e-3, 0.1, 2.0])
@pytest.mark.parametrize("alpha", [1e-3, 1.0])
def test_models_are_those_of_the_features(gamma, alpha):
    # gamma = 1e-3 gives landmarks a condition of 1e12; without directions split off the
    # Gram matrix would not be positive.
    model = KernelRidgeRegressor(
        NystroemFeatures(100, gamma=gamma, random_state=0), alphas=alpha
    ).fit(X, Y)
    Z = model.features_.transform(X)
    A = np.vstack([Z - Z.mean(axis=0), np.sqrt(alpha) * np.eye(Z.shape[1])])
    b = np.concatenate([Y - Y.mean(), np.zeros(Z.shape[1])])
    coef = np.linalg.lstsq(A, b, rcond=None)[0]
    expected = Y.mean() + (Z - Z.mean(axis=0)) @ coef
    assert_allclose(model.predict(X), expected, atol=1e-6 * Y.std())


def test_few_rows_are_summed_as_features():
    few = X[:60]  # fewer than three for each column: the matrix would cost more
    feature_map = fitted().feature_map()
    equations = accumulate(feature_map, few, Y[:60, None])
    Z = feature_map(few)
    assert_allclose(np.triu(equations.gram), np.triu(Z.T @ Z), rtol=1e-12)
    assert solve(equations.centred(), 1.0, "cholesky")[0].shape == (25, 1)


@pytest.mark.parametrize("fit", ["folds", "pieces", "cg", "float32", "mixed"])
def test_every_way_to_fit_gives_the_same_model(fit):
    features = NystroemFeatures(25, gamma=0.3, landmarks=X[:25])
    expected = KernelRidgeRegressor(features, alphas=1.0).fit(X, Y).predict(X)
    rows, tolerance = X, 1e-8
    model = KernelRidgeRegressor(features, alphas=1.0)
    if fit == "pieces":
        for part in (slice(0, 150), slice(150, 400)):
            model.partial_fit(X[part], Y[part])
    else:
        if fit == "folds":
            model.set_params(alphas=[1.0, 1e6])
        elif fit == "cg":
            model.set_params(solver="cg", tol=1e-7)
            tolerance = 1e-6
        elif fit == "mixed":
            model.set_params(precision="mixed")
            tolerance = 1e-4
        else:
            rows, tolerance = X.astype(np.float32), 1e-4
        model.fit(rows, Y)
    assert_allclose(model.predict(rows), expected, atol=tolerance * Y.std())
    assert model.predict(rows).dtype == rows.dtype


@pytest.mark.parametrize("kernel", ["rbf", "poly"])
def test_predictions_have_the_same_bits_on_every_thread(kernel):
    features = NystroemFeatures(50, kernel=kernel, random_state=0)
    model = KernelRidgeRegressor(features, alphas=1.0).fit(X, Y)
    rows = np.random.default_rng(1).uniform(size=(130, 6))
    alone = model.predict(rows)
    with ThreadPoolExecutor(16) as pool:
        for together in pool.map(lambda _: model.predict(rows), range(48)):
            assert_array_equal(together, alone)


def test_rows_whose_distances_overflow_are_refused():
    features = NystroemFeatures(10, gamma=0.3, random_state=0)
    model = KernelRidgeRegressor(features, alphas=1.0).fit(X, Y)
    far = np.full((2, 6), 1e200)
    with pytest.raises(ValueError, match="kernel of rows of X must be finite"):
        model.predict(far)
    assert_allclose(model.predict(np.full((2, 6), 1e100)), model.intercept_)
