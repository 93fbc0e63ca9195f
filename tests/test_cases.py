"""What users of similar software ran into, row by row.

Each test carries the number of its report and says where it was seen (sk is
scikit-learn). It covers the whole kind of trouble, not the one input.
"""

import functools
import gc
import math
import re
import subprocess
import sys
import time
import tomllib
import tracemalloc
import warnings
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import make_blobs, make_regression
from sklearn.linear_model import Ridge
from sklearn.metrics.pairwise import laplacian_kernel, rbf_kernel

import surff
from surff import (
    FourierFeatures,
    KernelRidgeClassifier,
    KernelRidgeRegressor,
    NystroemFeatures,
    RidgeLeverage,
    SurrogateLeverage,
)
from surff.draws import DRAWS, Orthogonal
from surff.kernels import (
    KERNELS,
    ExponentialPower,
    Gaussian,
    Laplace,
    Matern,
    inverse_root,
)
from surff.kernels import Product as ProductKernel
from surff.kernels import Sum as SumKernel
from surff.linear import SOLVERS, SingularError
from surff.selection import SELECTORS, ridge_leverage_scores

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = np.sin(X[:, 0]) + X[:, 1] ** 2 + 0.2 * RNG.normal(size=60)
TWO = np.where(np.median(Y) < Y, "yes", "no")
NEW = RNG.normal(size=(25, 3))
WEIGHT = RNG.integers(0, 4, size=60)
for array in (X, Y, TWO, NEW, WEIGHT):
    array.flags.writeable = False

RULES = ["uniform", "leverage", "rpcholesky", "kmeans"]
MODELS = [KernelRidgeRegressor, KernelRidgeClassifier]
TARGETS = {KernelRidgeRegressor: Y, KernelRidgeClassifier: TWO}
models = pytest.mark.parametrize("Model", MODELS)


def fourier(n_components=16, **parameters):
    return FourierFeatures(
        n_components, **{"gamma": 0.3, "random_state": 0, **parameters}
    )


def nystroem(n_components=16, **parameters):
    return NystroemFeatures(
        n_components, **{"gamma": 0.3, "random_state": 0, **parameters}
    )


TRANSFORMERS = {
    **{f"draw {draw}": fourier(draw=draw) for draw in sorted(DRAWS)},
    **{f"select {select}": fourier(select=select) for select in sorted(SELECTORS)},
    **{f"landmarks {rule}": nystroem(landmarks=rule) for rule in RULES},
}
transformers = pytest.mark.parametrize(
    "transformer", TRANSFORMERS.values(), ids=TRANSFORMERS.keys()
)


@pytest.mark.parametrize("gamma", [1e-6, 1e-4, 1e-2])
@pytest.mark.parametrize("rule", RULES[:3])
def test_case_01_nystroem_of_a_flat_kernel_in_single_precision(gamma, rule):
    """Sk 18146: float32, a kernel near 1, as many landmarks as points."""
    features = nystroem(60, gamma=gamma, landmarks=rule)
    single = features.fit(X.astype(np.float32)).transform(X.astype(np.float32))
    assert single.dtype == np.float32
    double = clone(features).fit(X).transform(X)
    K = rbf_kernel(X, gamma=gamma)
    assert_allclose(single @ single.T, double @ double.T, rtol=0, atol=1e-5)
    assert_allclose(single @ single.T, K, rtol=0, atol=1e-5)
    assert_allclose((single**2).sum(axis=1), 1.0, rtol=0, atol=1e-5)


@transformers
def test_case_02_single_precision_of_transformers(transformer):
    """Sk 11000, 24317: float32 in, float32 out, nearly equal to float64."""
    Z = {}
    for dtype in (np.float32, np.float64):
        fitted = clone(transformer).fit(X.astype(dtype), Y)
        Z[dtype] = fitted.transform(NEW.astype(dtype))
        assert Z[dtype].dtype == dtype
    assert_allclose(Z[np.float32], Z[np.float64], rtol=0, atol=1e-4)


@models
def test_case_02_single_precision_of_models(Model):
    """Sk 11000, 24317: predictions keep the type of the data."""
    single = Model(fourier(), alphas=0.7).fit(X.astype(np.float32), TARGETS[Model])
    double = Model(fourier(), alphas=0.7).fit(X, TARGETS[Model])
    assert single.coef_.dtype == np.float32
    assert_allclose(single.coef_, double.coef_, rtol=0, atol=1e-3)


@pytest.mark.parametrize("rule", [*RULES, "own"])
def test_case_03_repeated_rows_as_landmarks(rule):
    """Sk 1860, 4179: ten rows twenty times, fifty landmarks."""
    repeated = np.repeat(X[:10], 20, axis=0)
    landmarks = repeated[:50] if rule == "own" else rule
    features = nystroem(50, landmarks=landmarks).fit(repeated)
    Z = features.transform(repeated)
    assert np.isfinite(Z).all()
    if rule in ("rpcholesky", "leverage", "kmeans"):
        # They look for what is missing, so all ten are found.
        assert_allclose(Z @ Z.T, rbf_kernel(repeated, gamma=0.3), atol=1e-6)
    rows = np.r_[np.arange(50), 60]
    few = nystroem(landmarks=repeated[rows]).fit(repeated).transform(repeated)
    once = nystroem(landmarks=np.unique(repeated[rows], axis=0)).fit(repeated)
    once = once.transform(repeated)
    assert_allclose(few @ few.T, once @ once.T, atol=1e-6)


@pytest.mark.parametrize("rule", RULES[:3])
def test_case_04_precomputed_kernel(rule):
    """Sk 14641, 29353: a matrix of 3,000 by 3,000 and 300 landmarks."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(3000, 2))
    K = rbf_kernel(rows, gamma=0.3)
    features = NystroemFeatures(
        300, kernel="precomputed", landmarks=rule, random_state=0
    )
    Z = features.fit(K).transform(K)
    assert Z.shape[0] == 3000
    assert Z.shape[1] <= 300
    sample = rng.choice(3000, 100, replace=False)
    assert abs(Z[sample] @ Z[sample].T - K[np.ix_(sample, sample)]).max() < 1e-3
    assert_allclose(features.transform(K[:5]), Z[:5], atol=1e-8)


def test_case_05_landmarks_of_ones_own():
    """Sk 4982, 20232: points, sparse points or numbers of rows."""
    indices = [3, 17, 29, 44]
    forms = [indices, np.array(indices), X[indices], sparse.csr_array(X[indices])]
    maps = [nystroem(landmarks=form).fit(X).transform(NEW) for form in forms]
    for Z in maps:
        assert Z.shape == (25, 4)
        assert_allclose(Z, maps[0], atol=1e-10)


def test_case_06_kmeans_landmarks():
    """Sk 1568: on clustered data centres lose less of the kernel than rows.

    The benchmarks show what they bring on real data.
    """
    blobs, _ = make_blobs(400, 5, centers=12, cluster_std=0.3, random_state=0)
    K = rbf_kernel(blobs, gamma=0.3)
    lost = {}
    for rule in ("uniform", "kmeans"):
        traces = []
        for seed in range(5):
            features = nystroem(12, landmarks=rule, random_state=seed)
            Z = features.fit_transform(blobs)
            traces.append(np.trace(K) - (Z**2).sum())
        lost[rule] = np.mean(traces)
    assert lost["kmeans"] < 0.5 * lost["uniform"]


@models
@pytest.mark.parametrize("form", [sparse.csr_array, sparse.csc_matrix])
@pytest.mark.parametrize("features", [fourier(), nystroem(landmarks="leverage")])
def test_case_07_sparse_rows_into_kernel_ridge(Model, form, features):
    """Sk 4384, cuML 8334: the result of the same dense rows."""
    holes = np.where(abs(X) > 0.7, X, 0.0)
    dense = Model(features, alphas=[0.7, 20.0]).fit(holes, TARGETS[Model])
    thin = Model(features, alphas=[0.7, 20.0]).fit(form(holes), TARGETS[Model])
    assert_allclose(thin.coef_, dense.coef_, rtol=1e-6, atol=1e-8)
    assert_array_equal(
        thin.predict(form(holes)) == TARGETS[Model],
        dense.predict(holes) == TARGETS[Model],
    )


WEIGHTED = {
    **{Model.__name__: Model(fourier(), alphas=0.7) for Model in MODELS},
    **{
        name: TRANSFORMERS[name]
        for name in TRANSFORMERS
        if name.startswith(("select", "landmarks"))
    },
}
weighted = pytest.mark.parametrize("estimator", WEIGHTED.values(), ids=WEIGHTED.keys())


def values(fitted):
    return fitted.coef_ if hasattr(fitted, "coef_") else fitted.transform(NEW)


@weighted
def test_case_08_sample_weights_that_are_fine(estimator):
    """Sk 16154, cuML 8040: a scalar is a constant vector, zero leaves a row out."""
    target = TARGETS.get(type(estimator), Y)
    scalar = clone(estimator).fit(X, target, sample_weight=2.0)
    vector = clone(estimator).fit(X, target, sample_weight=np.full(60, 2.0))
    assert_array_equal(values(scalar), values(vector))
    ones = clone(estimator).fit(X, target, sample_weight=np.ones(60, dtype=int))
    plain = clone(estimator).fit(X, target)
    assert_allclose(values(ones), values(plain), rtol=1e-10, atol=1e-12)
    if isinstance(estimator, NystroemFeatures):
        # Rows are drawn at random: one of weight zero is never a landmark.
        fitted = clone(estimator).fit(X, target, sample_weight=(WEIGHT > 0) * 1.0)
        if fitted.landmark_indices_ is not None:
            assert WEIGHT[fitted.landmark_indices_].min() > 0
        return
    kept = WEIGHT > 0
    dropped = clone(estimator).fit(X[kept], target[kept], sample_weight=WEIGHT[kept])
    zeros = clone(estimator).fit(X, target, sample_weight=WEIGHT)
    assert_allclose(values(zeros), values(dropped), rtol=1e-8, atol=1e-10)


@weighted
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (-1.0, "Negative values in data"),
        (np.nan, "sample_weight contains NaN"),
        (np.inf, "sample_weight contains infinity"),
    ],
)
def test_case_08_bad_sample_weights(estimator, method, bad, message):
    """Sk 16154, cuML 8040: negative, NaN and infinite ones stop before the solver."""
    if not hasattr(estimator, method):
        pytest.skip("transformers have no partial_fit")
    target = TARGETS.get(type(estimator), Y)
    weight = np.ones(60)
    weight[7] = bad
    with pytest.raises(ValueError, match=message):
        getattr(clone(estimator), method)(X, target, sample_weight=weight)


def stacked():
    rows, target = make_regression(5, 20, random_state=0)
    return np.vstack([rows, rows]), np.concatenate([target, target])


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("data", ["two equal rows", "stacked twice"])
def test_case_09_no_regularisation_and_a_singular_matrix(data, fit_intercept):
    """Sk 3942, 35016: a clear error that names the way out, which then works."""
    if data == "stacked twice":
        rows, target = stacked()
    else:
        rows, target = np.vstack([X[:5], X[4:5]]), np.append(Y[:5], Y[4])
    model = KernelRidgeRegressor(
        fourier(40, gamma="scale"), alphas=0.0, fit_intercept=fit_intercept
    )
    with pytest.raises(SingularError, match=r"alpha=0.*choose solver='eigh'"):
        model.fit(rows, target)
    model.set_params(solver="eigh").fit(rows, target)
    Z = model.features_.transform(rows)
    centre = Z.mean(axis=0) if fit_intercept else 0.0
    mean = target.mean() if fit_intercept else 0.0
    expected = np.linalg.pinv(Z - centre, rcond=1e-10) @ (target - mean)
    # The minimum-norm solution, through a Gram matrix of squared condition.
    assert_allclose(model.coef_, expected, rtol=0, atol=1e-4 * abs(expected).max())
    assert_allclose(model.predict(rows), target, rtol=0, atol=1e-4 * np.ptp(target))


@pytest.mark.parametrize("cv", [3, "gcv", "loo"])
@pytest.mark.parametrize("solver", sorted(SOLVERS))
@pytest.mark.parametrize("n_components", [7, 400])
@pytest.mark.parametrize("alphas", [[1e-15, 1e-14], "auto"])
def test_case_10_tiny_alphas_do_not_explode(cv, n_components, solver, alphas):
    """Sk 32459: `make_regression(..., 50, noise=0)`, alphas 1e-15 to 1e-14."""
    rows, target = make_regression(300, 50, noise=0, random_state=0)
    # A kernel wide enough to be nearly linear.
    features = fourier(n_components, gamma=1e-3)
    model = KernelRidgeRegressor(features, alphas=alphas, cv=cv, solver=solver)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Z.T Z . alpha I is singular")
            model.fit(rows, target)
    except ValueError as error:
        refusal = str(error)
    else:
        refusal = None
    if refusal is not None:
        # More columns than rows, and nothing to regularise them.
        assert n_components == 400
        assert alphas != "auto"
        assert re.search("add larger alphas|increase alphas", refusal)
        return
    assert np.isfinite(model.coef_).all()
    # Least squares is no worse than the mean, on the rows it is fitted to.
    assert model.score(rows, target) > -1e-6
    assert abs(model.predict(rows)).max() < 3 * abs(target).max()


def test_case_11_gcv_and_leave_one_out_are_named_exactly():
    """Sk 18079: each is what it is called; test_ridge_selection.py has all of it."""
    alphas = np.array([0.03, 0.7])
    options = {"alphas": alphas}
    by_gcv = KernelRidgeRegressor(fourier(), cv="gcv", **options).fit(X, Y)
    by_loo = KernelRidgeRegressor(
        fourier(), cv="loo", scoring="neg_mean_squared_error", **options
    ).fit(X, Y)
    Z = by_gcv.features_.transform(X)
    C = Z - Z.mean(axis=0)
    for i, alpha in enumerate(alphas):
        H = C @ np.linalg.solve(C.T @ C + alpha * np.eye(16), C.T) + 1 / 60
        residual = Y - H @ Y
        gcv = np.mean(residual**2) / (1 - np.trace(H) / 60) ** 2
        loo = np.mean((residual / (1 - np.diag(H))) ** 2)
        assert_allclose(by_gcv.alpha_path_.scores[i], [-gcv], rtol=1e-8)
        assert_allclose(by_loo.alpha_path_.scores[i], [-loo], rtol=1e-8)


@models
@pytest.mark.parametrize("solver", sorted(SOLVERS))
@pytest.mark.parametrize("cv", ["gcv", "loo", None])
@pytest.mark.parametrize(
    "select",
    [
        None,
        "surrogate",
        "leverage",
        SurrogateLeverage(resample="without_replacement", ridge_term=True),
        RidgeLeverage(n_candidates=1.0, resample="reweight"),
    ],
)
def test_case_12_a_weight_repeats_a_row(Model, solver, cv, select):
    """Sk 5364, 15438, 4755: for every solver, criterion and selector."""
    alphas = 0.7 if cv is None else [0.03, 0.7, 20.0]
    model = Model(fourier(select=select), alphas=alphas, solver=solver, cv=cv or 5)
    one = clone(model).fit(X, TARGETS[Model], sample_weight=WEIGHT)
    rows = np.repeat(np.arange(60), WEIGHT)
    other = clone(model).fit(X[rows], TARGETS[Model][rows])
    assert one.alpha_ == other.alpha_
    assert_allclose(one.coef_, other.coef_, rtol=1e-6, atol=1e-9)
    assert_allclose(one.intercept_, other.intercept_, rtol=1e-6, atol=1e-9)


@models
def test_case_13_alphas_that_contain_zero(Model):
    """Sk 23074: fine for folds, an explained error for the two formulas."""
    alphas, target = [0.0, 0.7], TARGETS[Model]
    model = Model(fourier(), alphas=alphas, cv=3).fit(X, target)
    assert np.isfinite(model.alpha_path_.scores).all()
    for cv in ("loo", "gcv"):
        with pytest.raises(ValueError, match=f"positive for cv='{cv}'.*k-fold takes 0"):
            Model(fourier(), alphas=alphas, cv=cv).fit(X, target)


@pytest.mark.parametrize("cv", [3, "gcv", "loo"])
@pytest.mark.parametrize("select", [None, "surrogate"])
def test_case_14_multilabel_indicators(cv, select):
    """Sk 19882: a matrix of zeros and ones is fitted label by label."""
    labels = np.column_stack([Y > 0.5, X[:, 0] > 0, X[:, 2] > 0.3]).astype(int)
    model = KernelRidgeClassifier(fourier(select=select), alphas=[0.7, 20.0], cv=cv)
    predicted = model.fit(X, labels).predict(X)
    assert predicted.shape == labels.shape
    Z = model.features_.transform(X)
    expected = Ridge(model.alpha_).fit(Z, 2 * labels - 1).predict(Z) > 0
    assert_array_equal(predicted, expected)


def processor_time(call):
    """Least of several runs, in seconds of all threads: others' load does not count."""
    times = []
    for _ in range(5):
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return min(times)


@pytest.mark.parametrize("density", [0.01, 0.1, 0.5, 1.0])
@pytest.mark.parametrize("n_features", [100, 1500])
def test_case_15_sparse_rows_are_no_slower_than_dense_ones(density, n_features):
    """Sk 34920: at any density; blocks that are nearly full are multiplied as full."""
    thin = sparse.random(1500, n_features, density, format="csr", random_state=0)
    dense = thin.toarray()
    features = fourier(256, gamma=0.01).fit(dense)
    assert_allclose(features.transform(thin), features.transform(dense), atol=1e-10)
    of_sparse = processor_time(functools.partial(features.transform, thin))
    of_dense = processor_time(functools.partial(features.transform, dense))
    # Where half of the values are there, unfolding them takes part of the time; more
    # frequencies take it apart again. 5 ms are for the clock.
    assert of_sparse < (1.25 if density < 0.5 else 2.5) * of_dense + 0.005


def test_case_16_the_documentation_says_what_is_used():
    """Sk 4298, 23524: whether a map looks at n, d, X or y."""

    def text(thing):
        return " ".join(thing.__doc__.split())

    assert "the draws only the number of columns" in text(FourierFeatures)
    assert 'select="leverage"`` the rows of ``X``' in text(FourierFeatures)
    assert 'select="surrogate"`` both ``X`` and ``y``' in text(FourierFeatures)
    assert "Rules look at ``X`` alone, never at ``y``" in text(NystroemFeatures)
    assert "Uses X, not y." in text(RidgeLeverage)
    assert "Uses X and y" in text(SurrogateLeverage)
    # And it is so: frequencies of a plain draw do not depend on the rows.
    plain, other = fourier().fit(X), fourier().fit(NEW)
    assert_array_equal(plain.frequencies_, other.frequencies_)


ROOT = Path(__file__).resolve().parents[1]


def test_case_17_no_warning_and_bounds_for_the_versions():
    """Sk-extra 178: importing breaks with no version; the CI runs oldest and newest.

    Here: an import with every warning an error, and a lower bound for each dependency.
    """
    code = "import surff, surff.estimators.persistence"
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")
    if not (ROOT / "pyproject.toml").exists():
        pytest.skip("the tests run without the source tree")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for dependency in project["dependencies"]:
        assert re.fullmatch(r"[\w-]+>=[\d.]+", dependency), dependency


def nearly_semidefinite(dtype, negative):
    """A Gram matrix of rank 3 with eigenvalues of ``negative`` beside it."""
    Q, _ = np.linalg.qr(np.random.default_rng(0).normal(size=(8, 8)))
    eigenvalues = np.array([5.0, 2.0, 0.7, *[negative] * 5])
    matrix = ((Q * eigenvalues) @ Q.T).astype(dtype).astype(np.float64)
    return np.asfortranarray(0.5 * (matrix + matrix.T)), Q


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_case_18_forced_negative_eigenvalues(dtype):
    """Sk-extra PR 13: clamped by tolerance, never a NaN."""
    eps = np.finfo(dtype).eps
    K, Q = nearly_semidefinite(dtype, -8 * eps)
    root, _ = inverse_root(K, eps)
    assert np.isfinite(root).all()
    expected = (Q[:, :3] / np.sqrt([5.0, 2.0, 0.7])) @ Q[:, :3].T
    assert_allclose(root, expected, atol=1e-4 if dtype == np.float32 else 1e-8)
    moments = K @ np.ones((8, 1))
    (coef,) = SOLVERS["eigh"](K, moments, [0.7])
    assert np.isfinite(coef).all()
    for solver in SOLVERS.values():
        (coef,) = solver(K, moments, [0.7])
        assert_allclose((K + 0.7 * np.eye(8)) @ coef, moments, atol=1e-5)


def test_case_19_memory_is_flat_over_twenty_fits():
    """Falkon 37: nothing is kept from one fit to the next."""
    data = np.random.default_rng(0).normal(size=(500, 3))
    target = np.sin(data[:, 0])
    models = [
        KernelRidgeRegressor(fourier(128), alphas=[0.1, 1.0], cv=3),
        KernelRidgeRegressor(nystroem(64), cv="gcv"),
        KernelRidgeClassifier(fourier(64, select="surrogate"), probability=True),
    ]
    for model, goal in zip(models, [target, target, target > 0], strict=True):
        model.fit(data, goal).predict(data)  # compiled, pools filled
        tracemalloc.start()
        held = []
        for _ in range(20):
            model.fit(data, goal).predict(data)
            gc.collect()  # what scikit-learn leaves in cycles is not kept
            held.append(tracemalloc.get_traced_memory()[0])
        tracemalloc.stop()
        # A Gram matrix of 64 columns takes 32 KiB; 15 lost ones would take 480.
        assert held[-1] - held[4] < 2**16


def test_case_20_pure_python_and_optional_extras():
    """Falkon 2, 26, 49, 55, 60: nothing to compile, nothing optional imported.

    `test_package.py` fits without any extra installed.
    """
    package = Path(surff.__file__).parent
    assert not [
        path
        for pattern in ("*.so", "*.pyd", "*.c", "*.cpp", "*.pyx", "*.cu")
        for path in package.rglob(pattern)
    ]
    # scikit-learn imports pandas where it is installed.
    extras = ["dask", "matplotlib", "pooch", "skops", "torch", "typer"]
    code = f"import sys, surff; print(sorted(set({extras}) & set(sys.modules)))"
    run = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert run.stdout.strip() == "[]"


@pytest.mark.parametrize("kernel", sorted(KERNELS))
@pytest.mark.parametrize("d", [1, 5])
def test_case_21_samplers_know_length_scale_and_dimension(kernel, d):
    """Gpytorch 1800, GPJax 612: against the kernel at d = 5, l = 0.7."""
    s, gamma = 20000, 1 / (2 * 0.7**2)
    rows = np.random.default_rng(1).normal(size=(12, d)) * 0.5
    Z = fourier(2 * s, kernel=kernel, gamma=gamma).fit_transform(rows)
    K = KERNELS[kernel]().kernel(rows, gamma=gamma)
    # Hoeffding on cosines, a union over the entries: fails with p < 1e-9.
    radius = math.sqrt(2 * math.log(2 * K.size / 1e-9) / s)
    assert abs(Z @ Z.T - K).max() < radius
    wrong = KERNELS[kernel]().kernel(rows, gamma=4 * gamma)
    assert abs(Z @ Z.T - wrong).max() > radius
    if kernel == "rbf":
        distances = ((rows[:, None] - rows) ** 2).sum(axis=2)
        assert_allclose(K, np.exp(-distances / (2 * 0.7**2)), rtol=1e-10)


def test_case_22_orthogonal_draws_are_haar():
    """Fast-transformers 87: QR without the signs of R is not, and is told apart."""
    n, d = 4000, 3
    rng = np.random.default_rng(0)
    firsts = []
    for _ in range(n):
        W = np.asarray(Orthogonal().draw(Gaussian(), d, d, rng))
        assert_allclose((W @ W.T)[~np.eye(d, dtype=bool)], 0, atol=1e-9)
        firsts.append(np.diag(W) / np.linalg.norm(W, axis=1))
    # Entries in [-1, 1] of mean zero: Hoeffding and a union over three, p < 1e-9.
    radius = math.sqrt(2 * math.log(2 * d / 1e-9) / n)
    assert abs(np.mean(firsts, axis=0)).max() < radius
    plain = [np.diag(np.linalg.qr(rng.normal(size=(d, d)))[0]) for _ in range(n)]
    assert abs(np.mean(plain, axis=0)).max() > radius


@models
@pytest.mark.parametrize("cv", [5, "gcv", "loo"])
def test_case_23_no_validation_set_is_needed(Model, cv):
    """XRFM 4: alpha and gamma are chosen on the training rows."""
    model = Model(fourier(), gammas=[0.1, 0.3], cv=cv).fit(X, TARGETS[Model])
    assert model.alpha_ in model.alpha_path_.alphas
    assert model.features_.gamma_ in (0.1, 0.3)
    assert np.isfinite(model.best_score_)


@pytest.mark.parametrize("negative", [-1e-8, -1e-7])
def test_case_24_single_precision_gram_matrices(negative):
    """DPPy 57: eigenvalues of -1e-8 are rounding and are accepted."""
    K, _ = nearly_semidefinite(np.float32, negative)
    scores = ridge_leverage_scores(K, 0.7)
    assert np.isfinite(scores).all()
    assert scores.min() >= 0
    features = NystroemFeatures(4, kernel="precomputed", landmarks=np.arange(8))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Z = features.fit(K.astype(np.float32)).transform(K.astype(np.float32))
    assert_allclose(Z @ Z.T, K, atol=1e-4)


@pytest.mark.parametrize(
    "features", [fourier(32, select="surrogate"), nystroem(32, landmarks="leverage")]
)
def test_case_25_many_rows_stream(features):
    """Sk 19479, 9690: n = 80,000 rows, whose kernel matrix would take 51 GB.

    What is distributed (dask-ml 82, 89) belongs to `surff.streaming.dask_rows`.
    """
    data = np.random.default_rng(0).normal(size=(80_000, 3)).astype(np.float32)
    target = np.sin(data[:, 0])
    model = KernelRidgeRegressor(features, alphas=[0.1, 1.0], cv="gcv")
    clone(model).fit(data[:500], target[:500])  # compiled before memory is watched
    tracemalloc.start()
    model.fit(data, target)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # A few numbers a row, and blocks: 80,000 x 32 features would fit four times.
    assert peak < 40 * 2**20
    assert model.score(data, target) > 0.9


def test_case_26_noise_of_each_row():
    """Botorch 1528, 2838: weights 1 / variance are generalised least squares."""
    variance = np.linspace(0.1, 2.0, 60)
    model = KernelRidgeRegressor(fourier(), alphas=0.7).fit(X, Y, 1 / variance)
    Z = model.features_.transform(X)
    expected = Ridge(0.7).fit(Z, Y, sample_weight=1 / variance)
    assert_allclose(model.coef_, expected.coef_, rtol=1e-8)


@pytest.mark.parametrize("Composite", [SumKernel, ProductKernel])
def test_case_26_sums_and_products_of_kernels(Composite):
    """Botorch 1528, 2838: a sum mixes frequencies, a product adds them."""
    s = 20000
    measure = Composite([Gaussian(), Laplace()])
    Z = fourier(2 * s, kernel=measure).fit_transform(X)
    stretched = math.sqrt(0.3) * X
    parts = [part.kernel(stretched, gamma=1.0) for part in (Gaussian(), Laplace())]
    K = sum(parts) / 2 if Composite is SumKernel else parts[0] * parts[1]
    assert_allclose(measure.kernel(X, gamma=0.3), K, rtol=1e-9)
    radius = math.sqrt(2 * math.log(2 * K.size / 1e-9) / s)
    assert abs(Z @ Z.T - K).max() < radius


@pytest.mark.parametrize("draw", ["monte_carlo", "orthogonal"])
@pytest.mark.parametrize(
    "measure", [Laplace(), Matern(1.5), Matern(0.5), ExponentialPower(1.3)], ids=str
)
def test_case_27_other_kernels_and_orthogonal_draws(draw, measure):
    """Torchkernels 3, 4: Laplace, Matern and exponential-power, both draws."""
    if draw == "orthogonal" and isinstance(measure, Laplace):
        with pytest.raises(TypeError, match="Laplace is not isotropic"):
            fourier(kernel=measure, draw=draw).fit(X)
        # Its measure is no radial one, so there is nothing to rotate; the map exists.
        draw = "halton"
    s = 20001  # whole blocks of three
    Z = fourier(2 * s, kernel=measure, draw=draw).fit_transform(X)
    K = measure.kernel(X, gamma=0.3)
    if isinstance(measure, Laplace):
        gamma = measure.scale(0.3)
        assert_allclose(K, laplacian_kernel(X, gamma=gamma), rtol=1e-9)
    # Hoeffding over blocks of three, which are independent, p < 1e-9.
    radius = math.sqrt(2 * math.log(2 * K.size / 1e-9) / (s / 3))
    assert abs(Z @ Z.T - K).max() < radius


@pytest.mark.parametrize("n_components", [1, 2, 3, 8, 17])
@pytest.mark.parametrize("d", [1, 3, 4])
@pytest.mark.parametrize(
    "draw", ["monte_carlo", "halton", "sobol", "orthogonal", "structured_orthogonal"]
)
def test_case_28_any_number_of_columns_and_features(n_components, d, draw):
    """Rfflearn: odd dimensions crashed a quasi-random sampler."""
    rows = np.random.default_rng(0).normal(size=(9, d))
    Z = fourier(n_components, draw=draw).fit_transform(rows)
    assert Z.shape == (9, n_components)
    assert np.isfinite(Z).all()


@pytest.mark.parametrize(
    "labels", [(-1, 1), (1, 2), (0, 1), ("a", "b"), (False, True), (2.0, -3.0)]
)
def test_case_28_any_labels(labels):
    """Rfflearn: labels -1 and 1 were silently mis-trained."""
    first, second = labels
    target = np.array([second if yes else first for yes in TWO == "yes"])
    model = KernelRidgeClassifier(fourier(64), alphas=[0.1, 1.0]).fit(X, target)
    reference = KernelRidgeClassifier(fourier(64), alphas=[0.1, 1.0]).fit(X, TWO)
    assert_array_equal(model.predict(X) == second, reference.predict(X) == "yes")
    assert model.score(X, target) > 0.85
    assert set(model.predict(X)) <= set(target)


@transformers
def test_case_28_no_global_random_state(transformer):
    """Rfflearn: a seed is the estimator's own, and nobody else's is moved."""
    first = clone(transformer).fit(X, Y).transform(NEW)
    np.random.seed(12345)  # noqa: NPY002  (what must not matter)
    expected = np.random.uniform()  # noqa: NPY002
    np.random.seed(12345)  # noqa: NPY002
    second = clone(transformer).fit(X, Y).transform(NEW)
    assert_array_equal(first, second)
    assert np.random.uniform() == expected  # noqa: NPY002


FITTED = {
    "FourierFeatures": fourier(),
    "NystroemFeatures": nystroem(),
    "KernelRidgeRegressor": KernelRidgeRegressor(fourier(), alphas=0.7),
    "KernelRidgeClassifier": KernelRidgeClassifier(fourier(), alphas=0.7),
}


@pytest.mark.parametrize("name", FITTED)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("form", ["array", "csr", "csc", "frame"])
def test_case_29_nan_is_refused_with_its_column(name, bad, form):
    """XGPR: NaN in at predict gave NaN out; here the columns are named."""
    fitted = clone(FITTED[name]).fit(X, TWO if "Classifier" in name else Y)
    apply = fitted.predict if hasattr(fitted, "predict") else fitted.transform
    broken = NEW.copy()
    broken[[2, 9], 1] = bad
    where = "Columns with NaN or infinity: 1"
    if form == "frame":
        pandas = pytest.importorskip("pandas", reason="pandas is not installed")
        broken = pandas.DataFrame(broken, columns=["a", "b", "c"])
        frame = pandas.DataFrame(X, columns=["a", "b", "c"])
        fitted.fit(frame, TWO if "Classifier" in name else Y)
        where += r" \('b'\)"
    elif form != "array":
        broken = sparse.csr_array(broken).asformat(form)
    message = rf"(?s)Input X contains (NaN|infinity).*{where}\.$"
    with pytest.raises(ValueError, match=message):
        apply(broken)
    with pytest.raises(ValueError, match=message):
        fitted.fit(broken, Y[:25] if "Classifier" not in name else TWO[:25])


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "matern"])
@pytest.mark.parametrize("draw", ["monte_carlo", "halton", "sobol", "orthogonal"])
def test_case_30_more_frequencies_extend_the_same_sequence(draw, kernel):
    """RBFSampler: the first 10 of 20 components differed from the 10."""
    if (draw, kernel) == ("orthogonal", "laplacian"):
        pytest.skip("the Laplace kernel's measure is no radial one")
    long = fourier(40, draw=draw, kernel=kernel).fit(X).frequencies_
    for m in (1, 2, 9, 10, 20, 39):
        short = fourier(m, draw=draw, kernel=kernel).fit(X).frequencies_
        assert len(short) == (m + 1) // 2
        assert_array_equal(short, long[: len(short)])


@transformers
def test_case_31_generators_are_accepted(transformer):
    """RBFSampler: a numpy Generator as random_state, which advances."""
    generator = np.random.default_rng(0)
    given = clone(transformer).set_params(random_state=generator)
    first = given.fit(X, Y).transform(NEW)
    assert_array_equal(first, clone(transformer).fit(X, Y).transform(NEW))
    for state in (np.random.RandomState(0), np.random.default_rng(3), None, 5):
        given.set_params(random_state=state).fit(X, Y)
    for Model in MODELS:
        model = Model(given.set_params(random_state=generator), alphas=0.7)
        model.fit(X, TARGETS[Model])
