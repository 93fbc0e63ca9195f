import math
import tracemalloc
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis.strategies import integers, sampled_from
from numpy.testing import assert_allclose, assert_array_equal
from scipy import linalg, sparse
from sklearn.base import clone
from sklearn.datasets import load_digits, make_blobs
from sklearn.gaussian_process.kernels import RBF
from sklearn.gaussian_process.kernels import Matern as ProcessMatern
from sklearn.kernel_approximation import Nystroem
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics.pairwise import pairwise_kernels, rbf_kernel
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags
from threadpoolctl import threadpool_limits

import surff
from surff import (
    FourierFeatures,
    KernelRidgeClassifier,
    KernelRidgeRegressor,
    NystroemFeatures,
)
from surff.backend import n_threads
from surff.kernels import KERNELS, Gaussian, Laplace, Matern
from surff.selection import LANDMARK_RULES

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = RNG.normal(size=60)
X.flags.writeable = Y.flags.writeable = False

RULES = [*sorted(LANDMARK_RULES), "kmeans"]


@pytest.fixture(scope="module", autouse=True)
def _one_thread():
    """Small matrices: on a busy machine BLAS threads wait for one another."""
    with threadpool_limits(1, user_api="blas"):
        yield


def features(**parameters):
    return NystroemFeatures(
        **{"n_components": 20, "gamma": 0.3, "random_state": 0, **parameters}
    )


# The map


@pytest.mark.parametrize("rule", RULES)
def test_transform_is_the_documented_map(rule):
    fitted = features(landmarks=rule).fit(X)
    C = fitted.landmarks_
    assert C.shape == (20, 3)
    if rule == "kmeans":
        assert fitted.landmark_indices_ is None
    else:
        assert_array_equal(C, X[fitted.landmark_indices_])
    K = rbf_kernel(C, gamma=0.3)
    root = fitted.normalization_
    assert_allclose(root @ K @ root, np.eye(20), atol=1e-7)
    Z = fitted.transform(X)
    assert_allclose(Z, rbf_kernel(X, C, gamma=0.3) @ root, atol=1e-10)
    assert fitted.gamma_ == 0.3
    assert fitted.n_features_in_ == 3


@given(
    kernel=sampled_from(sorted(KERNELS)),
    rule=sampled_from(RULES),
    seed=integers(0, 99),
    m=integers(1, 30),
)
def test_exact_on_landmarks_and_below_the_kernel(kernel, rule, seed, m):
    rows = np.random.default_rng(seed).normal(size=(25, 2)).round(1)
    fitted = features(
        n_components=m, kernel=kernel, landmarks=rule, random_state=seed
    ).fit(rows)
    measure = KERNELS[kernel]()
    every = np.vstack([rows, fitted.landmarks_])
    Z, K = fitted.transform(every), measure.kernel(every, gamma=0.3)
    # Rounding of the entries, amplified by the root of the normalization's condition.
    assert_allclose(Z @ Z[25:].T, K[:, 25:], atol=1e-6)
    assert linalg.eigvalsh(K - Z @ Z.T)[0] > -1e-6


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "poly", "cosine"])
def test_equals_scikit_learns_for_the_same_landmarks(kernel):
    theirs = Nystroem(kernel, gamma=0.7, n_components=9, random_state=0).fit(X)
    for landmarks in (theirs.components_, theirs.component_indices_):
        ours = features(kernel=kernel, gamma=0.7, landmarks=landmarks).fit(X)
        assert_array_equal(ours.landmarks_, theirs.components_)
        Z, expected = ours.transform(X), theirs.transform(X)
        if kernel != "cosine":  # of rank 3, where theirs clips and ours cuts
            assert_allclose(ours.normalization_, theirs.normalization_, rtol=1e-8)
            assert_allclose(Z, expected, atol=1e-8)
        assert_allclose(Z @ Z.T, expected @ expected.T, atol=1e-3)


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "poly"])
@pytest.mark.parametrize("rule", RULES)
def test_all_rows_as_landmarks_are_kernel_ridge(kernel, rule):
    exact = KernelRidge(alpha=0.7, kernel=kernel, gamma=0.3).fit(X, Y)
    model = KernelRidgeRegressor(
        features(kernel=kernel, n_components=60, landmarks=rule),
        alphas=0.7, fit_intercept=False,
    ).fit(X, Y)  # fmt: skip
    rows = RNG.normal(size=(30, 3))
    expected = exact.predict(rows)
    scale = abs(expected).max()
    # A polynomial of degree 3 has values, and condition, a thousand times larger.
    tolerance = (1e-5 if kernel == "poly" else 1e-8) * scale
    assert_allclose(model.predict(rows), expected, atol=tolerance)


def test_own_landmarks_and_their_indices_are_accepted():
    """Sk 4982, 20232: points, sparse points or numbers of rows."""
    indices = [7, 2, 40]
    by_index = features(landmarks=indices).fit(X)
    by_points = features(landmarks=X[indices]).fit(X)
    assert_array_equal(by_index.landmark_indices_, indices)
    assert by_points.landmark_indices_ is None
    assert_array_equal(by_index.landmarks_, by_points.landmarks_)
    assert_array_equal(by_index.transform(X), by_points.transform(X))
    assert by_index.transform(X).shape == (60, 3)
    assert by_points.landmarks_ is not X[indices]
    # Points need not be rows, nor of the same form or type.
    grid = np.array([[0, 0, 0], [1, 0, 1]])
    expected = features(landmarks=grid).fit(X).transform(X)
    for form in (grid.tolist(), grid.astype(np.float32), sparse.coo_array(grid)):
        assert_allclose(features(landmarks=form).fit(X).transform(X), expected)
    single = features(landmarks=grid).fit(X.astype(np.float32))
    assert single.landmarks_.dtype == np.float32


def test_the_callers_landmarks_are_neither_written_nor_shared():
    own = X[:4].copy()
    fitted = features(landmarks=own).fit(X)
    before = fitted.transform(X)
    own += 1.0
    assert_array_equal(fitted.transform(X), before)


def test_fewer_rows_than_components_are_all_landmarks():
    for rule in RULES:
        fitted = features(n_components=100, landmarks=rule).fit(X)
        assert fitted.landmarks_.shape == (60, 3)
        assert fitted.transform(X).shape == (60, 60)
        assert len(fitted.get_feature_names_out()) == 60
    assert fitted.get_feature_names_out()[0] == "nystroemfeatures0"


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_repeated_rows_do_no_harm(rule, dtype):
    """Sk 1860, 4179: ten rows twenty times, fifty landmarks."""
    rows = np.repeat(X[:10], 20, axis=0).astype(dtype)
    fitted = features(n_components=50, landmarks=rule).fit(rows)
    Z = fitted.transform(rows)
    assert np.isfinite(Z).all()
    assert Z.shape == (200, 10 if rule == "rpcholesky" else 50)
    tolerance = 1e-5 if dtype == np.float32 else 1e-9
    if rule != "uniform":
        # The others look for what is missing, so all ten are found.
        assert_allclose(Z @ Z.T, rbf_kernel(rows, gamma=0.3), atol=tolerance)
    if rule != "kmeans":
        chosen = np.unique(fitted.landmarks_, axis=0)
        exact = features(landmarks=chosen).fit(rows).transform(rows)
        assert_allclose(Z @ Z.T, exact @ exact.T, atol=tolerance)
    twice = features(landmarks=np.repeat(X[:5], 3, axis=0)).fit(rows).transform(rows)
    once = features(landmarks=X[:5]).fit(rows).transform(rows)
    assert_allclose(twice @ twice.T, once @ once.T, atol=tolerance)


@pytest.mark.parametrize(
    ("gamma", "d", "rule"),
    [(1e-6, 3, "rpcholesky"), (1e-4, 1, "uniform"), (1e-4, 5, "leverage"),
     (1e-2, 1, "leverage"), (1e-2, 5, "rpcholesky"), (1.0, 5, "uniform")],
)  # fmt: skip
def test_float32_is_as_good_as_float64(gamma, d, rule):
    """Sk 18146: as many landmarks as rows and a nearly flat kernel."""
    rows = np.random.default_rng(1).normal(size=(100, d))
    new = np.random.default_rng(2).normal(size=(50, d))
    Z = {}
    for dtype in (np.float32, np.float64):
        fitted = features(n_components=100, gamma=gamma, landmarks=rule)
        fitted.fit(rows.astype(dtype))
        Z[dtype] = fitted.transform(np.vstack([rows, new]).astype(dtype))
        assert Z[dtype].dtype == dtype
    K = rbf_kernel(rows, gamma=gamma)
    single = Z[np.float32].astype(np.float64)
    assert_allclose(single[:100] @ single[:100].T, K, atol=1e-5)
    assert_allclose(np.sum(single[:100] ** 2, axis=1), 1.0, atol=1e-6)
    assert_allclose(single @ single.T, Z[np.float64] @ Z[np.float64].T, atol=1e-5)


def test_a_large_mean_costs_float32_nothing():
    rows = (1e3 + X).astype(np.float32)
    exact = rbf_kernel(rows.astype(np.float64) - 1e3, gamma=0.3)
    Z = features(n_components=60).fit_transform(rows).astype(np.float64)
    assert_allclose(Z @ Z.T, exact, atol=1e-5)


def test_kmeans_landmarks():
    """Sk 1568: on clustered data centres lose less of the kernel than rows.

    The benchmarks show what they bring on real data.
    """
    blobs, _ = make_blobs(400, 5, centers=12, cluster_std=0.3, random_state=0)
    K = rbf_kernel(blobs, gamma=0.3)
    lost = {}
    for rule in ("uniform", "kmeans"):
        traces = []
        for seed in range(5):
            fitted = features(n_components=12, landmarks=rule, random_state=seed)
            Z = fitted.fit_transform(blobs)
            traces.append(np.trace(K) - (Z**2).sum())
        lost[rule] = np.mean(traces)
    assert lost["kmeans"] < 0.5 * lost["uniform"]


# Kernels


@pytest.mark.parametrize("kernel", ["linear", "poly", "polynomial", "cosine", "chi2"])
def test_scikit_learns_kernels_by_name(kernel):
    rows = abs(X)
    fitted = features(kernel=kernel, gamma="scale", n_components=60).fit(rows)
    gamma = {"chi2": 1.0, "linear": None, "cosine": None}.get(
        kernel, 1 / (3 * rows.var())
    )
    assert fitted.gamma_ == (gamma if gamma is None else pytest.approx(gamma))
    Z = fitted.transform(rows)
    K = pairwise_kernels(rows, metric=kernel, filter_params=True, gamma=fitted.gamma_)
    assert_allclose(Z @ Z.T, K, atol=1e-6 * K.max())


def test_parameters_reach_scikit_learns_kernels():
    fitted = features(kernel="poly", degree=2, coef0=0.7, gamma=0.5, n_components=60)
    Z = fitted.fit_transform(X)
    assert_allclose(Z @ Z.T, (0.5 * X @ X.T + 0.7) ** 2, atol=1e-5)


def test_parameters_reach_surffs_kernels():
    by_name = features(kernel="matern", kernel_params={"nu": 2.5}).fit(X)
    by_object = features(kernel=Matern(nu=2.5)).fit(X)
    assert_array_equal(by_name.transform(X), by_object.transform(X))
    other = features(kernel="matern").fit(X)
    assert not np.allclose(by_name.transform(X), other.transform(X))


def test_one_bandwidth_a_feature():
    gamma = np.array([0.3, 1.1, 0.02])
    fitted = features(gamma=gamma, n_components=60).fit(X)
    Z = fitted.transform(X)
    assert_allclose(Z @ Z.T, rbf_kernel(X * np.sqrt(gamma), gamma=1.0), atol=1e-6)
    assert_array_equal(fitted.gamma_, gamma)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize(
    ("kernel", "params", "name"),
    [
        (lambda x, y: math.exp(-0.3 * np.sum((x - y) ** 2)), None, "rbf"),
        (lambda x, y, p: (0.3 * x @ y + 1) ** p, {"p": 3}, "poly"),
        (RBF(math.sqrt(1 / 0.6)), None, "rbf"),
        (Gaussian(), None, "rbf"),
    ],
)
def test_users_bring_kernels(kernel, params, name, rule):
    gamma = 0.3 if isinstance(kernel, Gaussian) else "scale"
    own = features(kernel=kernel, kernel_params=params, landmarks=rule, gamma=gamma)
    known = features(kernel=name, landmarks=rule).fit(X)
    assert_allclose(own.fit(X).transform(X), known.transform(X), atol=1e-6)
    assert own.gamma_ == (0.3 if isinstance(kernel, Gaussian) else None)


def test_a_power_of_a_process_kernel_is_a_kernel():
    # It has an attribute ``kernel``, as measures have a method.
    kernel = ProcessMatern(nu=1.5) ** 2
    Z = features(kernel=kernel, gamma="scale", n_components=60).fit_transform(X)
    assert_allclose(Z @ Z.T, kernel(X), atol=1e-8)


def test_indefinite_kernels_are_told():
    with pytest.warns(UserWarning, match=r"'sigmoid' is not positive semi-definite on"):
        fitted = features(kernel="sigmoid", gamma=1.0).fit(X)
    Z = fitted.transform(X)
    assert np.isfinite(Z).all()


# Precomputed kernels


@pytest.mark.parametrize("rule", [*sorted(LANDMARK_RULES), "indices"])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_a_precomputed_kernel_gives_the_same_features(rule, form):
    rule = [4, 59, 3] if rule == "indices" else rule
    new = RNG.normal(size=(9, 3))
    by_rows = features(landmarks=rule).fit(X)
    fitted = features(kernel="precomputed", gamma="scale", landmarks=rule)
    fitted.fit(form(rbf_kernel(X, gamma=0.3)))
    assert fitted.landmarks_ is None
    assert fitted.gamma_ is None
    assert_array_equal(fitted.landmark_indices_, by_rows.landmark_indices_)
    for rows in (X, new):
        Z = fitted.transform(form(rbf_kernel(rows, X, gamma=0.3)))
        assert_allclose(Z, by_rows.transform(rows), atol=1e-7)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("rule", sorted(LANDMARK_RULES))
def test_a_large_precomputed_kernel(dtype, rule):
    """Sk 14641, 29353, DPPy 57: the float32 matrix has negative eigenvalues."""
    rows = np.random.default_rng(0).normal(size=(3000, 4))
    K = rbf_kernel(rows.astype(dtype), gamma=0.05).astype(dtype)
    fitted = features(
        n_components=300, kernel="precomputed", gamma="scale", landmarks=rule
    ).fit(K)
    Z = fitted.transform(K)
    assert Z.dtype == dtype
    # RPCholesky stops where the residual is rounding of the entries.
    stops = dtype == np.float32 and rule == "rpcholesky"
    assert 200 < Z.shape[1] <= 300 if stops else Z.shape == (3000, 300)
    i = fitted.landmark_indices_
    Z = Z.astype(np.float64)
    # In float32 eigenvalues below 300 eps are cut: 4e-5, whose root is 6e-3.
    assert_allclose(Z @ Z[i].T, K[:, i], atol=6e-3 if dtype == np.float32 else 1e-6)
    # Rows far from uniform landmarks lie in the directions that are cut.
    error = abs(np.sum(Z**2, axis=1) - 1)
    assert np.median(error) < 1e-4
    assert error.max() < 0.05


def test_precomputed_kernels_in_ridge_and_search():
    K = rbf_kernel(X, gamma=0.3)
    new = rbf_kernel(RNG.normal(size=(7, 3)), X, gamma=0.3)
    model = KernelRidgeRegressor(
        NystroemFeatures(60, kernel="precomputed"), alphas=0.7, fit_intercept=False
    ).fit(K, Y)
    exact = KernelRidge(alpha=0.7, kernel="precomputed").fit(K, Y)
    assert_allclose(model.predict(new), exact.predict(new), atol=1e-8)
    assert get_tags(features(kernel="precomputed")).input_tags.pairwise
    assert not get_tags(features()).input_tags.pairwise


# Streams, sparse rows, weights


@pytest.mark.parametrize("rule", RULES)
def test_ridge_streams_the_features(rule):
    for model, y in ((KernelRidgeRegressor, Y), (KernelRidgeClassifier, Y > 0)):
        own = model(features(landmarks=rule), alphas=[0.1, 1.0, 10.0], cv=3).fit(X, y)
        again = own.features_.transform(X) @ np.ravel(own.primal_coef_) + own.intercept_
        decisions = own.predict(X) if y is Y else own.decision_function(X)
        assert_allclose(decisions, again, atol=1e-9)
        single = clone(own).fit(X.astype(np.float32), y)
        assert single.primal_coef_.dtype == np.float32
        assert single.alpha_ == own.alpha_


@pytest.mark.parametrize("rule", sorted(LANDMARK_RULES))
def test_threads_change_nothing_but_rounding(rule):
    rows = np.random.default_rng(0).normal(size=(1000, 3))
    one = features(landmarks=rule).fit(rows)
    with threadpool_limits(2, user_api="blas"):
        two = features(landmarks=rule).fit(rows)
        Z = two.transform(rows)
    assert_array_equal(two.landmark_indices_, one.landmark_indices_)
    assert_allclose(Z, one.transform(rows), atol=1e-9)


def test_streaming_is_fit_on_the_features():
    Z = features().fit_transform(X)
    model = KernelRidgeRegressor(features(), alphas=0.7).fit(X, Y)
    centred = Z - Z.mean(axis=0)
    coef = np.linalg.solve(centred.T @ centred + 0.7 * np.eye(20), centred.T @ Y)
    assert_allclose(model.primal_coef_, coef, rtol=1e-6)


@pytest.mark.parametrize(
    "form", [sparse.csr_matrix, sparse.csc_array, sparse.coo_array]
)
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("share", [0.05, 0.6])
def test_sparse_equals_dense(form, rule, share):
    rng = np.random.default_rng(3)
    shape = 80, 300  # with fewer columns blocks are made dense
    thin = np.where(rng.random(shape) < share, rng.normal(size=shape), 0.0)
    dense = features(landmarks=rule, gamma="scale", n_components=12).fit(thin)
    fitted = features(landmarks=rule, gamma="scale", n_components=12).fit(form(thin))
    assert sparse.issparse(fitted.landmarks_) == (rule != "kmeans")
    assert fitted.gamma_ == pytest.approx(dense.gamma_, rel=1e-12)
    for rows in (thin, form(thin)):
        assert_allclose(fitted.transform(rows), dense.transform(thin), atol=1e-8)
        assert_allclose(dense.transform(rows), dense.transform(thin), atol=1e-8)


def test_wide_sparse_rows_are_never_dense():
    n, d = 2000, 200_000
    rng = np.random.default_rng(0)
    columns = rng.integers(d, size=10 * n)
    rows = sparse.csr_array((rng.random(10 * n), (np.arange(10 * n) // 10, columns)))
    rows.resize(n, d)
    for rule in LANDMARK_RULES:
        tracemalloc.start()
        Z = features(landmarks=rule, gamma=0.1).fit(rows).transform(rows)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert Z.shape == (n, 20)
        assert peak < 0.02 * 8 * n * d  # 64 MB of 3.2 GB


def test_pandas_names_are_kept_and_checked():
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    frame = pandas.DataFrame(X, columns=["a", "b", "c"])
    fitted = features().fit(frame)
    assert list(fitted.feature_names_in_) == ["a", "b", "c"]
    assert_allclose(fitted.transform(frame), features().fit(X).transform(X), atol=1e-12)
    with pytest.raises(ValueError, match="feature names should match"):
        fitted.transform(frame[["b", "a", "c"]])
    out = features().set_output(transform="pandas").fit(frame).transform(frame)
    assert list(out.columns[:2]) == ["nystroemfeatures0", "nystroemfeatures1"]


@pytest.mark.parametrize("rule", RULES)
def test_rows_without_weight_are_no_landmarks(rule):
    weight = (np.arange(60) < 12).astype(float)
    fitted = features(landmarks=rule).fit(X, sample_weight=weight)
    assert len(fitted.landmarks_) == 12
    assert_allclose(
        np.sort(fitted.landmarks_, axis=0), np.sort(X[:12], axis=0), rtol=1e-12
    )


def test_weights_draw_landmarks():
    # 60 rows of which 10 have 10,000 times the weight of the others: all are taken but
    # with a probability below 1e-2 a row.
    weight = np.where(np.arange(60) % 6 == 0, 1e4, 1.0)
    for rule in ("uniform", "leverage"):
        fitted = features(landmarks=rule).fit(X, sample_weight=weight)
        assert set(range(0, 60, 6)) <= set(fitted.landmark_indices_)
    model = KernelRidgeRegressor(features(n_components=10), alphas=1.0)
    model.fit(X, Y, sample_weight=weight)
    assert set(model.features_.landmark_indices_) == set(range(0, 60, 6))


def test_gamma_takes_a_weight_for_a_repetition():
    weight = RNG.integers(0, 4, size=60)
    weighted = features(gamma="scale").fit(X, sample_weight=weight)
    repeated = features(gamma="scale").fit(np.repeat(X, weight, axis=0))
    assert weighted.gamma_ == pytest.approx(repeated.gamma_, rel=1e-12)


# Memory


@pytest.mark.parametrize("rule", RULES)
def test_a_pass_never_holds_the_kernel_matrix(rule):
    # Row 25 of CASES.md: 80,000 rows, of which a kernel matrix takes 51 GB.
    n, m = 80_000, 32
    rng = np.random.default_rng(0)
    rows, y = rng.normal(size=(n, 2)), rng.normal(size=n)
    tracemalloc.start()
    model = KernelRidgeRegressor(features(n_components=m, landmarks=rule), alphas=1.0)
    model.fit(rows, y).predict(rows)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # Some numbers a row, and blocks of 2 MB on each thread. RPCholesky holds n (m + 1)
    # numbers, 21 MB, as the features would take.
    limit = 10e6 + 5e6 * n_threads() + (8 * n * (m + 1) if rule == "rpcholesky" else 0)
    assert peak < limit


# What does not change


def test_random_state_takes_all_kinds():
    for rule in RULES:
        generator = np.random.default_rng(0)
        first = features(landmarks=rule, random_state=generator).fit(X).landmarks_
        assert_array_equal(first, features(landmarks=rule).fit(X).landmarks_)
        second = features(landmarks=rule, random_state=generator).fit(X).landmarks_
        assert not np.array_equal(first, second)
        state = np.random.RandomState(0)
        first = features(landmarks=rule, random_state=state).fit(X).landmarks_
        other = features(landmarks=rule, random_state=state).fit(X).landmarks_
        assert not np.array_equal(first, other)


@pytest.mark.parametrize("rule", sorted(LANDMARK_RULES))
def test_same_seed_same_landmarks_whatever_the_dtype(rule):
    double = features(landmarks=rule).fit(X)
    single = features(landmarks=rule).fit(X.astype(np.float32))
    assert_array_equal(single.landmark_indices_, double.landmark_indices_)
    assert single.landmarks_.dtype == np.float32


@pytest.mark.parametrize("rule", ["uniform", "rpcholesky"])
def test_more_components_extend_the_landmarks(rule):
    few = features(landmarks=rule, n_components=5).fit(X).landmark_indices_
    many = features(landmarks=rule, n_components=50).fit(X).landmark_indices_
    assert_array_equal(many[:5], few)


def test_a_second_fit_leaves_nothing_of_the_first():
    fitted = features(landmarks=[1, 2]).fit(X)
    fitted.set_params(landmarks=X[:3], gamma=0.5).fit(X)
    assert fitted.landmark_indices_ is None
    assert_array_equal(fitted.landmarks_, X[:3])
    assert fitted.transform(X).shape == (60, 3)
    fitted.set_params(kernel="precomputed", gamma="scale", landmarks="uniform")
    fitted.fit(rbf_kernel(X))
    assert fitted.landmarks_ is None


def test_works_in_pipelines_and_searches():
    rows, y = load_digits(return_X_y=True)
    rows, y = rows[:300], y[:300]
    model = make_pipeline(
        StandardScaler(),
        KernelRidgeClassifier(NystroemFeatures(60, random_state=0), alphas=1.0),
    )
    search = GridSearchCV(
        model,
        {"kernelridgeclassifier__features__landmarks": ["uniform", "rpcholesky"]},
        cv=2,
    ).fit(rows, y)
    assert search.best_score_ > 0.8
    assert clone(features(landmarks=X[:3])).landmarks.shape == (3, 3)


def test_says_nothing_on_ordinary_data():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for rule in RULES:
            features(landmarks=rule).fit_transform(X)
    assert not caught


# Bad input


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_components": 0}, "'n_components' parameter of NystroemFeatures must be"),
        ({"gamma": 0.0}, "'gamma' parameter of NystroemFeatures must be"),
        (
            {"gamma": [0.1, 0.2]},
            "gamma must be a positive number or 3, one per feature",
        ),
        ({"gamma": [0.1] * 3, "kernel": "poly"}, "gamma must be 'scale' or a number"),
        ({"kernel": "gauss"}, "'kernel' parameter of NystroemFeatures must be"),
        ({"kernel": max}, r"gamma, degree and coef0 must be left .* {'gamma': 0.3}"),
        ({"kernel": max, "gamma": "scale", "degree": 2}, "got {'degree': 2}"),
        ({"landmarks": "best"}, "'landmarks' parameter of NystroemFeatures must be"),
        ({"landmarks": []}, r"landmarks must be points .* shape \(0,\)"),
        ({"landmarks": [0.5, 1.0]}, r"landmarks must be points .* dtype float64"),
        ({"landmarks": [True, False]}, r"landmarks must be points .* dtype bool"),
        ({"landmarks": [0, 60]}, "row numbers from 0 to 59, got 0 to 60"),
        ({"landmarks": [-1, 3]}, "row numbers from 0 to 59, got -1 to 3"),
        ({"landmarks": X[:4, :2]}, r"landmarks must have the 3 columns .* \(4, 2\)"),
        ({"landmarks": X[:4] * np.nan}, "Input landmarks contains NaN"),
        ({"kernel_params": {"nu": 2.5}}, "kernel_params must hold parameters of"),
        ({"kernel": Laplace(), "kernel_params": {"a": 1}}, "kernel_params must be No"),
    ],
)
def test_bad_parameters_are_named(parameters, message):
    with pytest.raises(ValueError, match=message):
        features(**parameters).fit(X)


def test_a_class_is_no_kernel():
    with pytest.raises(TypeError, match="kernel must be a name, an object or a funct"):
        features(kernel=Laplace, gamma="scale").fit(X)


def test_bad_precomputed_kernels_are_named():
    fitted = NystroemFeatures(9, kernel="precomputed")
    with pytest.raises(ValueError, match=r"square kernel matrix .* \(60, 3\)"):
        fitted.fit(X)
    K = rbf_kernel(X)
    with pytest.raises(ValueError, match=r"gamma, degree and coef0 must be left"):
        clone(fitted).set_params(gamma=0.3).fit(K)
    with pytest.raises(ValueError, match=r"landmarks must be one of .* got 'kmeans'"):
        clone(fitted).set_params(landmarks="kmeans").fit(K)
    with pytest.raises(ValueError, match="which has no points, got an array of points"):
        clone(fitted).set_params(landmarks=K[:3]).fit(K)
    with pytest.raises(ValueError, match="kernel_params must be None for"):
        clone(fitted).set_params(kernel_params={"a": 1}).fit(K)
    with pytest.raises(ValueError, match="X has 3 features, but Nystroem"):
        fitted.fit(K).transform(X)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_bad_data_are_named(bad):
    broken = X.copy()
    broken[3, 1] = bad
    with pytest.raises(ValueError, match="Input X contains"):
        features().fit(broken)
    with pytest.raises(ValueError, match="Input X contains"):
        features().fit(X).transform(broken)


def test_bad_weights_are_named():
    with pytest.raises(ValueError, match="Negative values in data"):
        features().fit(X, sample_weight=np.full(60, -1.0))
    zeros = "sample_weight must have a positive|at least one non-zero number"
    with pytest.raises(ValueError, match=zeros):
        features().fit(X, sample_weight=np.zeros(60))
    with pytest.raises(ValueError, match=r"sample_weight.shape == \(3,\)"):
        features().fit(X, sample_weight=np.ones(3))


# Files


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"landmarks": "kmeans", "kernel": Matern(nu=2.5)},
        {"landmarks": [3, 4], "kernel": "poly", "degree": 2},
        {"landmarks": X[:4]},
    ],
)
def test_a_saved_model_predicts_the_same(parameters, tmp_path):
    pytest.importorskip("skops", reason="skops is not installed (surff[persist])")
    for form in (np.asarray, sparse.csr_array):
        model = KernelRidgeRegressor(features(**parameters), alphas=1.0)
        model.fit(form(X), Y)
        surff.save(model, tmp_path / "model.skops")
        again = surff.load(tmp_path / "model.skops")
        assert_array_equal(again.predict(X), model.predict(X))


def test_a_saved_function_is_refused(tmp_path):
    pytest.importorskip("skops", reason="skops is not installed (surff[persist])")
    model = features(kernel=math.dist, gamma="scale")
    with pytest.raises(surff.estimators.UntrustedModelError, match=r"math\.dist"):
        surff.save(model, tmp_path / "model.skops")


def test_gamma_median_is_for_kernels_of_distances():
    by_median = features(gamma="median").fit(X)
    assert by_median.gamma_ == FourierFeatures(gamma="median").fit(X).gamma_
    for kernel in ("poly", "chi2"):
        message = f"gamma must be 'scale' or a number for kernel='{kernel}'.*'median'"
        with pytest.raises(ValueError, match=message):
            features(kernel=kernel, gamma="median").fit(abs(X))
    with pytest.raises(ValueError, match=r"left at their defaults .*'median'"):
        features(kernel=rbf_kernel_of_rows, gamma="median").fit(X)


def rbf_kernel_of_rows(x, y):
    return np.exp(-np.sum((x - y) ** 2))


def test_a_grid_search_splits_a_precomputed_kernel_by_rows_and_columns():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = np.sin(X[:, 0])
    K = rbf_kernel(X, gamma=0.3)
    features = NystroemFeatures(20, kernel="precomputed", random_state=0)
    model = KernelRidgeRegressor(features, alphas=0.1)
    scores = cross_val_score(model, K, y, cv=3)
    expected = []
    for train, test in KFold(3).split(X):
        fitted = clone(model).fit(K[np.ix_(train, train)], y[train])
        expected.append(fitted.score(K[np.ix_(test, train)], y[test]))
    assert_allclose(scores, expected, rtol=1e-12)


def test_gammas_climb_only_from_a_gamma():
    X = np.random.default_rng(0).normal(size=(30, 2))
    model = KernelRidgeRegressor(NystroemFeatures(10, kernel="linear"), gammas="auto")
    with pytest.raises(ValueError, match="gammas='auto' climbs from the one gamma"):
        model.fit(X, X[:, 0])
