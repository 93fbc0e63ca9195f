import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression
from sklearn.metrics.pairwise import rbf_kernel

from surff import (
    FourierFeatures,
    KernelRidgeClassifier,
    KernelRidgeRegressor,
    NystroemFeatures,
)
from surff.inspection import (
    effective_dof,
    kernel_approximation_error,
    leverage_scores,
    recommended_frequencies,
    relative_error,
    sample_kernel,
    surrogate_dof,
    surrogate_leverage_function,
    theorem_1_features,
    theorem_2_features,
)
from surff.kernels import KERNELS

ALPHA = 0.7


def problem(n=40, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, np.sin(X[:, 0]) + 0.1 * rng.normal(size=n)


def hat_trace(Z, alpha, weight=None, centre=False):
    """Trace of the matrix that maps targets to fitted values, minus the intercept."""
    weight = np.ones(len(Z)) if weight is None else weight
    if centre:
        Z = Z - np.average(Z, axis=0, weights=weight)
    K = np.sqrt(weight)[:, None] * (Z @ Z.T) * np.sqrt(weight)
    return np.trace(np.linalg.solve(K + alpha * np.eye(len(K)), K))


# -- effective degrees of freedom ------------------------------------------------------


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
def test_dof_of_a_model_is_the_trace_of_its_hat_matrix(fit_intercept, weighted):
    X, y = problem()
    weight = np.arange(40) % 3 if weighted else None
    model = KernelRidgeRegressor(
        FourierFeatures(12, random_state=0), alphas=ALPHA, fit_intercept=fit_intercept
    ).fit(X, y, sample_weight=weight)
    Z = model.features_.transform(X)
    expected = hat_trace(Z, ALPHA, weight, centre=fit_intercept)
    assert_allclose(effective_dof(model), expected, rtol=1e-9)
    streamed = effective_dof(model, X, sample_weight=weight)
    assert_allclose(streamed, expected, rtol=1e-9)


def test_dof_of_a_map_is_that_of_its_kernel():
    X, _ = problem()
    for features in (FourierFeatures(12, random_state=0), NystroemFeatures(7)):
        Z = features.fit_transform(X)
        dof = effective_dof(features, X, alpha=ALPHA)
        assert isinstance(dof, float)
        assert_allclose(dof, hat_trace(Z, ALPHA), rtol=1e-9)


def test_dof_of_another_alpha_and_of_an_alpha_a_target():
    X, y = problem()
    Y = np.column_stack([y, np.random.default_rng(1).normal(size=40)])
    features = FourierFeatures(12, random_state=0)
    model = KernelRidgeRegressor(
        features, alphas=[0.01, 100.0], alpha_per_target=True
    ).fit(X, Y)
    Z = model.features_.transform(X)
    expected = [hat_trace(Z, alpha, centre=True) for alpha in model.alpha_]
    assert_allclose(effective_dof(model), expected, rtol=1e-9)
    dof = effective_dof(model, alpha=ALPHA)
    assert_allclose(dof, hat_trace(Z, ALPHA, centre=True), rtol=1e-9)


def test_dof_without_kept_equations_streams_the_rows():
    X, y = problem()
    features = FourierFeatures(12, random_state=0)
    kept = KernelRidgeRegressor(features, alphas=ALPHA).fit(X, y)
    model = KernelRidgeRegressor(features, alphas=ALPHA, keep_equations=False).fit(X, y)
    assert_allclose(effective_dof(model, X), effective_dof(kept), rtol=1e-12)
    with pytest.raises(ValueError, match="X must be given for a feature map, or a mod"):
        effective_dof(model)


@pytest.mark.parametrize(
    ("container", "dtype", "rtol"),
    [
        (sparse.csr_matrix, np.float64, 1e-9),
        (sparse.csr_array, np.float64, 1e-9),
        # Features and products of 40 rows in float32, relative to a trace of ones.
        (np.asarray, np.float32, 1e-4),
    ],
)
def test_dof_of_sparse_and_single_precision_rows(container, dtype, rtol):
    X, _ = problem()
    features = FourierFeatures(12, random_state=0).fit(X)
    dof = effective_dof(features, container(X.astype(dtype)), alpha=ALPHA)
    assert_allclose(dof, effective_dof(features, X, alpha=ALPHA), rtol=rtol)


# -- leverage of frequencies -----------------------------------------------------------


@pytest.mark.parametrize("select", [None, "surrogate"])
def test_ridge_leverage_is_the_diagonal_that_sums_to_the_dof(select):
    X, y = problem()
    features = FourierFeatures(12, select=select, random_state=0).fit(X, y)
    weight = 1.0 + np.arange(40) % 3
    Z = features.transform(X)
    G = Z.T @ (weight[:, None] * Z)
    diagonal = np.diag(np.linalg.solve(G + ALPHA * np.eye(12), G))
    scores = leverage_scores(features, X, alpha=ALPHA, sample_weight=weight)
    assert_allclose(scores, diagonal[:6] + diagonal[6:], rtol=1e-9)
    dof = effective_dof(features, X, alpha=ALPHA, sample_weight=weight)
    assert_allclose(scores.sum(), dof, rtol=1e-9)


def test_the_last_frequency_of_an_odd_map_has_one_column():
    X, _ = problem()
    features = FourierFeatures(11, random_state=0).fit(X)
    Z = features.transform(X)
    G = Z.T @ Z
    diagonal = np.diag(np.linalg.solve(G + ALPHA * np.eye(11), G))
    scores = leverage_scores(features, X, alpha=ALPHA)
    assert_allclose(scores[:5], diagonal[:5] + diagonal[6:], rtol=1e-9)
    assert_allclose(scores[5], diagonal[5], rtol=1e-9)


@pytest.mark.parametrize("draw", ["monte_carlo", "structured_orthogonal"])
def test_surrogate_leverage_is_that_of_the_theory(draw):
    X, y = problem()
    features = FourierFeatures(12, draw=draw, random_state=0).fit(X)
    frequencies = np.asarray(features.frequencies_)
    expected = surrogate_leverage_function(X, frequencies, y[:, None], ALPHA)
    with_term = leverage_scores(features, X, y, kind="surrogate", ridge_term=True)
    assert_allclose(with_term / (40 * ALPHA), expected, rtol=1e-9)
    without = leverage_scores(features, X, y, kind="surrogate")
    assert_allclose(with_term - without, 40.0**2, rtol=1e-9)


def test_surrogate_leverage_carries_the_importance_weights():
    X, y = problem()
    labels = np.where(y > 0, "a", "b")
    features = FourierFeatures(12, select="surrogate", random_state=0).fit(X, labels)
    code = np.where(labels == "b", 1.0, -1.0)
    projections = np.exp(1j * features.frequencies_ @ X.T) @ code
    expected = features.importance_weights_ * np.abs(projections) ** 2
    scores = leverage_scores(features, X, labels, kind="surrogate")
    assert_allclose(scores, expected, rtol=1e-9)


def test_a_model_scores_with_its_own_features_and_alpha():
    X, y = problem()
    features = FourierFeatures(12, random_state=0)
    model = KernelRidgeRegressor(features, alphas=ALPHA).fit(X, y)
    expected = leverage_scores(model.features_, X, alpha=ALPHA)
    assert_array_equal(leverage_scores(model, X), expected)


# -- the theorems ----------------------------------------------------------------------


@pytest.mark.parametrize("labels", [True, False])
def test_recommendation_is_that_of_the_theorems_on_the_maps_kernel(labels):
    X, y = problem()
    alpha, delta = 7.0, 0.2
    Model = KernelRidgeClassifier if labels else KernelRidgeRegressor
    Y = np.where(y > 0, 1.0, -1.0)[:, None] if labels else y[:, None]
    y = np.where(y > 0, "yes", "no") if labels else y
    features = FourierFeatures(12, random_state=0)
    model = Model(features, alphas=alpha).fit(X, y)
    Z = model.features_.transform(X)
    d, D = hat_trace(Z, alpha), surrogate_dof(Z @ Z.T, Y, alpha)
    for advice in (
        recommended_frequencies(model, delta=delta),
        recommended_frequencies(model.features_, X, y, alpha=alpha, delta=delta),
    ):
        assert_allclose(advice.effective_dof, d, rtol=1e-9)
        assert_allclose(advice.surrogate_dof, D, rtol=1e-9)
        assert advice.theorem_1 == theorem_1_features(D, d, delta)
        assert advice.theorem_2 == theorem_2_features(D, d, d, alpha / 40, delta)


# -- the kernel ------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", sorted(KERNELS))
def test_error_is_that_against_the_exact_kernel(kernel):
    X, _ = problem()
    features = FourierFeatures(64, kernel=kernel, gamma=0.3, random_state=0).fit(X)
    K, Z = KERNELS[kernel]().kernel(X, gamma=0.3), features.transform(X)
    for norm in ("spectral", "frobenius"):
        error = kernel_approximation_error(features, X, norm=norm)
        assert_allclose(error, relative_error(K, Z, norm), rtol=1e-9)


def test_error_of_one_bandwidth_a_feature_and_of_sparse_rows():
    X, _ = problem()
    X[np.abs(X) < 0.7] = 0.0
    gamma = np.array([0.1, 0.4, 0.9])
    features = FourierFeatures(64, gamma=gamma, random_state=0).fit(X)
    K = rbf_kernel(X * np.sqrt(gamma), gamma=1.0)
    expected = relative_error(K, features.transform(X))
    error = kernel_approximation_error(features, X)
    assert_allclose(error, expected, rtol=1e-9)
    # Distances of sparse rows lose half their digits close to zero.
    error = kernel_approximation_error(features, sparse.csr_array(X))
    assert_allclose(error, expected, rtol=1e-6)


def test_nystroem_is_exact_on_its_landmarks():
    X, y = problem()
    features = NystroemFeatures(40, kernel="poly", degree=2, coef0=1.0).fit(X)
    assert kernel_approximation_error(features, X) < 1e-10
    K = rbf_kernel(X, gamma=0.3)
    features = NystroemFeatures(40, kernel="precomputed").fit(K)
    assert kernel_approximation_error(features, K, n_samples=30) < 1e-6
    assert kernel_approximation_error(features, sparse.csr_array(K)) < 1e-6
    model = KernelRidgeRegressor(NystroemFeatures(40), alphas=ALPHA).fit(X, y)
    assert kernel_approximation_error(model, X) < 1e-6


def test_sample_is_of_distinct_rows_and_reproducible():
    X, _ = problem()
    features = FourierFeatures(12, gamma=0.3, random_state=0).fit(X)
    first = sample_kernel(features, X, n_samples=15, random_state=0)
    again = sample_kernel(features, X, n_samples=15, random_state=0)
    assert_array_equal(first.exact, again.exact)
    assert first.exact.shape == (15, 15)
    Z = features.transform(X)
    rows = [np.flatnonzero((z == Z).all(axis=1)).item() for z in first.features]
    assert len(set(rows)) == 15
    assert_allclose(first.exact, rbf_kernel(X[rows], gamma=0.3), rtol=1e-12)


# -- errors ----------------------------------------------------------------------------


def test_errors_name_the_argument():
    X, y = problem()
    features = FourierFeatures(12, random_state=0)
    with pytest.raises(NotFittedError):
        effective_dof(features, X, alpha=ALPHA)
    features.fit(X)
    nystroem = NystroemFeatures(7).fit(X)
    per_target = KernelRidgeRegressor(
        features, alphas=[0.1, 1.0], alpha_per_target=True
    ).fit(X, np.column_stack([y, y]))
    for message, error, call in [
        ("alpha must be given for a f", ValueError, lambda: effective_dof(features, X)),
        ("X must be given", ValueError, lambda: effective_dof(features, alpha=ALPHA)),
        (
            "alpha must be a positive finite number, got -1",
            ValueError,
            lambda: effective_dof(features, X, alpha=-1),
        ),
        (
            "model must be a fitted feature map",
            TypeError,
            lambda: effective_dof(LinearRegression().fit(X, y), X, alpha=ALPHA),
        ),
        (
            "alpha must be positive, got alpha_=0",
            ValueError,
            lambda: effective_dof(KernelRidgeRegressor(features, alphas=0.0).fit(X, y)),
        ),
        (
            "model must have Fourier features",
            TypeError,
            lambda: leverage_scores(nystroem, X, alpha=ALPHA),
        ),
        (
            "kind must be 'ridge' or 'surrogate', got 'exact'",
            ValueError,
            lambda: leverage_scores(features, X, kind="exact"),
        ),
        (
            "y must be given for kind='surrogate'",
            ValueError,
            lambda: leverage_scores(features, X, kind="surrogate"),
        ),
        (
            "one alpha per target",
            ValueError,
            lambda: leverage_scores(per_target, X),
        ),
        (
            "one alpha per target",
            ValueError,
            lambda: recommended_frequencies(per_target),
        ),
        (
            "y must be given with X",
            ValueError,
            lambda: recommended_frequencies(features, X, alpha=ALPHA),
        ),
        (
            r"delta must lie in \(0, 1\), got 1.5",
            ValueError,
            lambda: recommended_frequencies(features, X, y, alpha=ALPHA, delta=1.5),
        ),
        (
            "alpha must leave more than 1/16",
            ValueError,
            lambda: recommended_frequencies(features, X, y, alpha=1e6),
        ),
        (
            "norm must be one of",
            ValueError,
            lambda: kernel_approximation_error(features, X, norm="max"),
        ),
        (
            "n_samples must be an int >= 1, got 0",
            ValueError,
            lambda: kernel_approximation_error(features, X, n_samples=0),
        ),
        (
            "X must be the square kernel matrix of the training rows",
            ValueError,
            lambda: kernel_approximation_error(
                NystroemFeatures(7, kernel="precomputed").fit(rbf_kernel(X)),
                rbf_kernel(X)[:5],
            ),
        ),
    ]:
        with pytest.raises(error, match=message):
            call()
