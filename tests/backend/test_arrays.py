"""Arrays of other libraries give what NumPy's give, where they are.

`array_api_strict` has devices whose arrays do not become NumPy's by accident, as those
of a GPU, and one without float64; PyTorch and CuPy are tested where they are installed.
"""

import importlib.util
import math

import numpy as np
import pytest
from array_api_compat import array_namespace, device
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context
from sklearn.base import BaseEstimator, clone
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import KFold
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import estimator_checks_generator

import surff.adaptation.problem
import surff.backend.blocks
import surff.estimators._rows_fit
import surff.linear.solvers
from surff import (
    EERF,
    AgopAdaptation,
    FourierFeatures,
    GradientAdaptation,
    KernelLogisticClassifier,
    KernelRidgeClassifier,
    KernelRidgeRegressor,
    NystroemFeatures,
    SurrogateLeverage,
)
from surff.adaptation import projected_objective
from surff.backend import on_accelerator, on_host, other_namespace, to_numpy
from surff.kernels import fourier_moments
from surff.linear import accumulate, cholesky, cholesky_beside

MISSING = {
    "array_api_strict": "array-api-strict is not installed",
    "torch": "torch is not installed (pip install 'surff[torch]')",
    "cupy": "cupy is not installed",
}


def missing(name, where):
    """Why nothing can be tested in a place; None if it can."""
    if importlib.util.find_spec(name) is None:
        return MISSING[name]
    if where == "cuda" and not importlib.import_module("torch").cuda.is_available():
        return "torch finds no CUDA device"
    return None


PLACES = [
    ("array_api_strict", "CPU_DEVICE"),
    ("array_api_strict", "device1"),
    ("torch", "cpu"),
    ("torch", "cuda"),
    ("cupy", None),
]
NOT_HERE = [reason for place in PLACES if (reason := missing(*place))]
PLACES = [place for place in PLACES if not missing(*place)]

RNG = np.random.default_rng(0)
N = 300
X = RNG.normal(size=(N, 5))
Y = np.column_stack([np.sin(X[:, 0]) + X[:, 1] ** 2, X[:, 2] * X[:, 3]])
Y += 0.1 * RNG.normal(size=Y.shape)
THREE = np.digitize(Y[:, 0], [0.3, 1.2]) * 2 + 1  # labels 1, 3, 5
TWO = THREE > 1
LABELS = np.column_stack([THREE > 1, THREE > 3, Y[:, 1] > 0]).astype(int)
WEIGHT = RNG.uniform(0.5, 2.0, N)
for array in (X, Y, THREE, TWO, LABELS, WEIGHT):
    array.flags.writeable = False

#: Rounding of products in float32, relative to the largest value, after a solution with
#: a Gram matrix of condition 1e3; in float64 the same lies below 1e-10.
TOLERANCE = {"float64": 1e-10, "float32": 1e-4}


class Place:
    """Puts NumPy arrays somewhere, and says whether an array is there."""

    def __init__(self, name, where, dtype):
        module = importlib.import_module(name)
        self.xp = array_namespace(module.asarray([1.0]))
        self.device = where
        if name == "array_api_strict":
            self.device = module.Device(where)
        self.dtype = dtype

    def host(self, array):
        """NumPy's array of the type that is tested."""
        return array.astype(self.dtype) if array.dtype.kind == "f" else array

    def __call__(self, array):
        return self.xp.asarray(self.host(array).copy(), device=self.device)

    def check(self, array, dtype=None):
        assert other_namespace(array) is self.xp
        assert str(device(array)).startswith(str(self.device or ""))
        assert array.dtype == (dtype or getattr(self.xp, self.dtype))


@pytest.fixture(params=["float64", "float32"])
def dtype(request):
    return request.param


@pytest.fixture(params=PLACES, ids=lambda place: f"{place[0]}-{place[1]}")
def place(request, dtype):
    return Place(*request.param, dtype)


@pytest.fixture
def dispatch(monkeypatch):
    """scikit-learn's ``array_api_dispatch`` is on."""
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    try:
        with config_context(array_api_dispatch=True):
            yield
    except ImportError as error:
        pytest.skip(f"scikit-learn dispatches no arrays here: {error}")


@pytest.fixture
def strict():
    """Arrays that fail when they become NumPy's by accident."""
    pytest.importorskip("array_api_strict", reason=MISSING["array_api_strict"])
    return Place("array_api_strict", "device1", "float64")


def close(actual, expected, tolerance):
    scale = max(1.0, np.abs(expected).max())
    assert_allclose(to_numpy(actual), expected, rtol=0, atol=tolerance * scale)


@pytest.mark.parametrize("reason", NOT_HERE)
def test_every_place_is_tested(reason):
    pytest.skip(reason)


# -- below the estimators --------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("some", [False, True])
def test_normal_equations_of_blocks_equal_numpys(place, weighted, some, monkeypatch):
    monkeypatch.setattr(surff.backend.blocks, "BLOCK_BYTES", 1)  # 128 rows
    features = FourierFeatures(13, random_state=0)
    host, weight = place.host(X), place.host(WEIGHT) if weighted else None
    rows = np.random.default_rng(0).permutation(N)[:270] if some else None
    expected = accumulate(features.fit(host).feature_map(), host, Y, weight, rows)
    features.fit_checked(place(X), None)
    found = accumulate(features.feature_map(), place(X), Y, weight, rows)
    tolerance = 10 * TOLERANCE[place.dtype]
    upper = np.triu_indices(13)
    close(found.gram[upper], expected.gram[upper], tolerance)
    for name in ("moments", "feature_sum", "target_sum", "target_square"):
        close(getattr(found, name), getattr(expected, name), tolerance)
    assert_allclose(found.weight_sum, expected.weight_sum, rtol=1e-6)
    assert found.gram.dtype == np.float64
    assert found.gram.flags.f_contiguous


def test_moments_equal_numpys(place):
    rng = np.random.default_rng(0)
    frequencies, amplitudes = rng.normal(size=(7, 5)), rng.uniform(size=7)
    expected = fourier_moments(X, frequencies, Y, amplitudes)
    found = fourier_moments(place(X), frequencies, Y, amplitudes)
    assert type(found) is np.ndarray
    assert found.dtype == np.float64
    close(found, expected, TOLERANCE[place.dtype])


def test_cholesky_beside_an_array_equals_the_hosts(place):
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(40, 9)) * np.logspace(0, 6, 9)
    gram = np.asfortranarray(np.triu(Z.T @ Z))
    moments, alphas = Z.T @ rng.normal(size=(40, 2)), [0.7, 0.0, 70.0]
    expected = list(cholesky(gram, moments, alphas))
    found = list(cholesky_beside(place(X), gram, moments, alphas))
    for coef, other in zip(found, expected, strict=True):
        assert type(coef) is np.ndarray
        assert_allclose(coef, other, rtol=1e-9)
    Z[:, 4] = Z[:, 3]
    gram = np.asfortranarray(np.triu(Z.T @ Z))
    found = list(cholesky_beside(place(X), gram, moments, [0.0, 1e-12, 1e9]))
    assert [coef is None for coef in found] == [True, True, False]


@pytest.mark.usefixtures("dispatch")
@pytest.mark.parametrize("cv", [3, "gcv"])
def test_models_are_solved_on_an_accelerator(strict, cv, monkeypatch):
    assert not on_accelerator(X)
    assert not on_accelerator(strict(X))  # it says that it is the CPU
    solved = []

    def spy(*arguments):
        solved.append(arguments[0].device)
        return cholesky_beside(*arguments)

    model = KernelRidgeRegressor(features(), alphas=[0.07, 0.7, 7.0], cv=cv)
    with monkeypatch.context() as patch:
        patch.setattr(surff.linear.solvers, "cholesky_beside", spy)
        patch.setattr(surff.linear.solvers, "on_accelerator", lambda X: True)
        model.fit(strict(X), strict(Y))
    assert set(solved) == {strict.device}
    expected = clone(model).fit(X, Y)
    assert model.alpha_ == expected.alpha_
    close(model.primal_coef_, expected.primal_coef_, 1e-9)


@pytest.mark.parametrize("name", ["BLOCK_BYTES", "DEVICE_BLOCK_BYTES"])
def test_blocks_are_bounded(strict, name, monkeypatch):
    if name == "DEVICE_BLOCK_BYTES":
        monkeypatch.setattr(surff.backend.arrays, "CPU", None)  # every device is one
    rows, sizes = strict(np.zeros((20_000, 1))), []

    def feature_map(X, out=None):
        sizes.append(X.shape[0])
        return X

    feature_map.dtype = strict.xp.float64
    for n_components, largest in (
        (1, 8192),
        (getattr(surff.backend.blocks, name) // 8000, 960),
    ):
        sizes.clear()
        feature_map.n_components = n_components
        surff.backend.each_block(lambda block, Z: None, feature_map, rows)
        assert max(sizes) == largest
        assert sum(sizes) == 20_000


# -- feature maps ----------------------------------------------------------------------

MAPS = [
    {},
    {"n_components": 31, "gamma": 0.3},
    {"gamma": "median", "kernel": "matern"},
    {"gamma": np.array([0.1, 0.2, 0.3, 0.4, 0.5])},
    {"draw": "structured_orthogonal"},
    {"draw": "reweighted", "n_components": 20},
    {"select": "surrogate"},
    {"select": SurrogateLeverage(True, resample="without_replacement")},
    {"select": EERF()},
]


@pytest.mark.usefixtures("dispatch")
@pytest.mark.parametrize("parameters", MAPS, ids=str)
def test_features_equal_numpys(place, parameters):
    features = FourierFeatures(**{"n_components": 32, **parameters}, random_state=0)
    expected = clone(features).fit(place.host(X), THREE, place.host(WEIGHT))
    features.fit(place(X), place(THREE), place(WEIGHT))
    Z = features.transform(place(X))
    # Rounding of the projections, of up to 10 radians, in float32.
    tolerance = {"float64": 1e-14, "float32": 3e-6}[place.dtype]
    close(Z, expected.transform(place.host(X)), tolerance)
    place.check(Z)
    place.check(features.frequencies_)
    place.check(features.importance_weights_, place.xp.float64)
    assert_allclose(features.gamma_, expected.gamma_, rtol=10 * tolerance)
    other = {"float64": "float32", "float32": "float64"}[place.dtype]
    there = place.xp.astype(place(X), getattr(place.xp, other))
    Z = features.transform(there)
    assert Z.dtype == there.dtype
    close(Z, expected.transform(X), 3e-6)


@pytest.mark.usefixtures("dispatch")
def test_constant_data_have_a_gamma(strict):
    assert FourierFeatures(2).fit(strict(np.full((9, 2), 1e3))).gamma_ == 1.0


# -- adaptations -----------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_targets", [1, 2])
def test_objective_and_gradient_equal_numpys(place, weighted, n_targets):
    frequencies = place.host(np.random.default_rng(0).normal(size=(7, 5)))
    batch = place.host(Y[:, :n_targets]), 1e-3, place.host(WEIGHT) if weighted else None
    expected = projected_objective(frequencies, place.host(X), *batch, by_rows=True)
    found = projected_objective(frequencies, place(X), *batch, by_rows=True)
    tolerance = TOLERANCE[place.dtype]
    assert_allclose(found.objective, expected.objective, rtol=tolerance)
    assert type(found.gradient) is np.ndarray
    assert found.gradient.dtype == expected.gradient.dtype
    close(found.gradient, expected.gradient, tolerance)
    place.check(found.row_gradient)
    close(found.row_gradient, expected.row_gradient, tolerance)


ADAPTATIONS = [
    AgopAdaptation(n_rounds=2, dtype="float64"),
    GradientAdaptation(n_steps=20, dtype="float64"),
    GradientAdaptation(n_steps=20, dtype="float64", warp=True),
    AgopAdaptation(n_rounds=2, diagonal=True),
    GradientAdaptation(n_steps=20),
]


@pytest.mark.usefixtures("dispatch")
@pytest.mark.parametrize(
    ("adapt", "small"),
    [(adapt, i % 2 == 0) for i, adapt in enumerate(ADAPTATIONS)],
    ids=str,
)
def test_adapted_frequencies_equal_numpys(place, adapt, small, monkeypatch):
    if not small:
        monkeypatch.setattr(surff.adaptation.problem, "SMALL_DATA", 0)
    model = features(16, adapt=adapt, select="surrogate")
    expected = clone(model).fit(place.host(X), THREE, WEIGHT)
    model.fit(place(X), place(THREE), place(WEIGHT))
    drawn = clone(model).set_params(adapt=None).fit(X, THREE, WEIGHT).frequencies_
    assert np.abs(expected.frequencies_ - drawn).max() > 0.1
    # Rounding of the rows and of the sums, carried on by a few steps; where Adam's mean
    # of gradients is near zero, a step loses some digits.
    exact = place.dtype == "float64" and adapt.dtype == "float64"
    close(model.frequencies_, expected.frequencies_, 1e-7 if exact else 1e-2)
    place.check(model.frequencies_)
    place.check(model.importance_weights_, place.xp.float64)
    if hasattr(expected, "warp_"):
        place.check(model.warp_, place.xp.float64)
        close(model.warp_, expected.warp_, 1e-7 if exact else 1e-2)
    place.check(model.transform(place(X)))
    on_host(model).transform(place.host(X))


@pytest.mark.usefixtures("dispatch")
def test_adapted_models_are_as_good_as_numpys(place):
    rows = np.random.default_rng(1).normal(size=(900, 3))
    y = np.sin(3.0 * rows[:, 0]) + rows[:, 1] * rows[:, 2]
    # The one that tries both is dear; once a place is enough.
    adapt = "auto" if place.dtype == "float32" else GradientAdaptation(n_steps=200)
    model = KernelRidgeRegressor(features(20, adapt=adapt), cv="gcv")
    plain, model = clone(model).set_params(features__adapt=None), clone(model)
    fitted, held_out = slice(0, 700), slice(700, 900)
    expected = clone(model).fit(place.host(rows[fitted]), y[fitted])
    model.fit(place(rows[fitted]), place(y[fitted]))
    score = model.score(place(rows[held_out]), place(y[held_out]))
    # Steps carry rounding errors on, so the frequencies are others.
    assert score > expected.score(place.host(rows[held_out]), y[held_out]) - 0.02
    plain.fit(rows[fitted], y[fitted])
    assert score > 0.95 > 0.8 > plain.score(rows[held_out], y[held_out])
    place.check(model.primal_coef_)
    place.check(model.features_.frequencies_)


def test_adaptations_are_solved_on_an_accelerator(strict, monkeypatch):
    solved = []

    def spy(*arguments):
        solved.append(arguments[0].device)
        return cholesky_beside(*arguments)

    adapt = AgopAdaptation(n_rounds=1, dtype="float64")
    start, rng = features(16).fit_checked(X, None).frequencies_, np.random.default_rng
    with monkeypatch.context() as patch:
        patch.setattr(surff.linear.solvers, "cholesky_beside", spy)
        patch.setattr(surff.linear.solvers, "on_accelerator", lambda X: True)
        found, _ = adapt.adapt(start, strict(X), Y, rng(0))
    assert set(solved) == {strict.device}
    close(found, adapt.adapt(start, X, Y, rng(0))[0], 1e-9)


# -- models ----------------------------------------------------------------------------


def features(n_components=32, **parameters):
    return FourierFeatures(n_components, random_state=0, **parameters)


REGRESSORS = [
    {"alphas": 0.7},
    {"alphas": 0.7, "fit_intercept": False, "solver": "auto", "keep_equations": False},
    {"alphas": [0.07, 0.7, 7.0], "cv": 3},
    {"alphas": [0.07, 0.7, 7.0], "cv": KFold(3, shuffle=True, random_state=0)},
    {"alphas": [0.07, 0.7, 7.0], "cv": [(np.arange(200), np.arange(150, 300))]},
    {"alphas": "auto", "cv": "gcv", "alpha_per_target": True},
    {"alphas": [0.07, 0.7], "scoring": "neg_mean_squared_error", "solver": "eigh"},
    {"alphas": [0.7, 7.0], "gammas": [0.05, 0.2], "cv": 3},
    {"alphas": [0.07, 0.7], "features": features(31, select="surrogate"), "cv": 3},
]


@pytest.mark.usefixtures("dispatch")
@pytest.mark.parametrize(
    ("parameters", "weighted"),
    [(parameters, i % 2 == 1) for i, parameters in enumerate(REGRESSORS)],
    ids=str,
)
def test_regressor_equals_numpys(place, parameters, weighted):
    model = KernelRidgeRegressor(**{"features": features(), **parameters})
    weight = WEIGHT if weighted else None
    expected = clone(model).fit(place.host(X), place.host(Y), weight)
    model.fit(place(X), place(Y), place(WEIGHT) if weighted else None)
    tolerance = TOLERANCE[place.dtype]
    assert_allclose(to_numpy(model.alpha_), expected.alpha_, rtol=tolerance)
    if hasattr(expected, "alpha_path_"):
        close(model.alpha_path_.scores, expected.alpha_path_.scores, tolerance)
        assert_allclose(model.best_score_, expected.best_score_, rtol=tolerance)
    prediction = model.predict(place(X))
    close(prediction, expected.predict(place.host(X)), tolerance)
    close(model.primal_coef_, expected.primal_coef_, 10 * tolerance)
    close(model.intercept_, expected.intercept_, 10 * tolerance)
    for array in (prediction, model.primal_coef_, model.intercept_):
        place.check(array)
    score = model.score(place(X), place(Y))
    assert_allclose(score, expected.score(place.host(X), place.host(Y)), rtol=1e-5)


@pytest.mark.usefixtures("dispatch")
@pytest.mark.parametrize("precision", ["auto", "mixed", "float64"])
def test_precision_is_numpys(place, precision, monkeypatch):
    monkeypatch.setattr(surff.estimators._rows_fit, "LARGE_GRAM", 0)
    model = KernelRidgeRegressor(features(), alphas=7.0, precision=precision)
    exact = clone(model).set_params(precision="float64").fit(X, Y).predict(X)
    prediction = model.fit(place(X), place(Y)).predict(place(X))
    place.check(prediction)
    error = np.abs(to_numpy(prediction) - exact).max()
    if place.dtype == "float64":
        assert (error < 1e-10) == (precision == "float64")
    assert error < 1e-4
    pieces = clone(model).partial_fit(place(X), place(Y)).predict(place(X))
    close(pieces, to_numpy(prediction), TOLERANCE["float32"])


@pytest.mark.usefixtures("dispatch")
def test_single_target_has_no_axis(place):
    model = KernelRidgeRegressor(features()).fit(place(X), place(Y[:, 0]))
    assert tuple(model.primal_coef_.shape) == (32,)
    assert tuple(model.intercept_.shape) == ()
    place.check(model.intercept_)
    assert tuple(model.predict(place(X)).shape) == (N,)


CLASSIFIERS = [
    {"alphas": 0.7},
    {"alphas": [0.07, 0.7, 7.0], "cv": 3},
    {"cv": "gcv", "fit_intercept": False},
    {"alphas": [0.07, 0.7], "features": features(31, select="surrogate"), "cv": 3},
]


@pytest.mark.usefixtures("dispatch")
@pytest.mark.parametrize(
    ("parameters", "y"),
    [
        pytest.param(CLASSIFIERS[i], y, id=f"{CLASSIFIERS[i]}-{name}")
        for i, y, name in [
            (0, THREE, "three"),
            (0, TWO, "two"),
            (1, TWO, "two"),
            (1, LABELS, "multilabel"),
            (2, LABELS, "multilabel"),
            (3, THREE, "three"),
        ]
    ],
)
def test_classifier_equals_numpys(place, parameters, y):
    model = KernelRidgeClassifier(**{"features": features(), **parameters})
    expected = clone(model).fit(place.host(X), y)
    model.fit(place(X), place(y))
    tolerance = TOLERANCE[place.dtype]
    assert_allclose(model.alpha_, expected.alpha_, rtol=tolerance)
    decisions = model.decision_function(place(X))
    close(decisions, expected.decision_function(place.host(X)), 10 * tolerance)
    place.check(decisions)
    place.check(model.primal_coef_)
    # Rows whose decision is near a tie aside: there is none in these data.
    labels = model.predict(place(X))
    assert_array_equal(to_numpy(labels), expected.predict(place.host(X)))
    kind = place.xp.int64 if y.ndim == 2 else place(y).dtype
    place.check(labels, kind)
    assert_array_equal(to_numpy(model.classes_), expected.classes_)
    place.check(model.classes_, kind)
    assert tuple(model.intercept_.shape) == expected.intercept_.shape
    score = model.score(place(X), place(y))
    assert_allclose(score, expected.score(place.host(X), y), rtol=1e-6)


@pytest.mark.usefixtures("dispatch")
def test_strings_stay_numpys(place):
    names = np.array(["b", "c", "a"])[THREE // 2]
    model = KernelRidgeClassifier(features(), alphas=0.7).fit(place(X), names)
    assert model.classes_.tolist() == ["a", "b", "c"]
    place.check(model.decision_function(place(X)))
    expected = clone(model).fit(place.host(X), names).predict(place.host(X))
    assert_array_equal(model.predict(place(X)), expected)


@pytest.mark.usefixtures("dispatch")
def test_targets_follow_the_rows(place):
    model = KernelRidgeRegressor(features(), alphas=0.7)
    for y in (Y[:, 0], Y[:, 0].tolist()):
        place.check(model.fit(place(X), y, WEIGHT).predict(place(X)))
    model.fit(place.host(X), place(Y[:, 0]), place(WEIGHT))
    assert type(model.predict(place.host(X))) is np.ndarray


@pytest.mark.usefixtures("dispatch")
@pytest.mark.parametrize("Model", [KernelRidgeRegressor, KernelRidgeClassifier])
def test_pieces_equal_the_whole(place, Model):
    y = THREE if Model is KernelRidgeClassifier else Y
    model = Model(features(gamma=0.2), alphas=[0.07, 0.7], cv="gcv")
    whole = clone(model).fit(place(X), place(y))
    options = {"classes": place(np.unique(y))} if y is THREE else {}
    for part in (slice(0, 100), slice(100, N)):
        model.partial_fit(place(X[part]), place(y[part]), **options)
    assert model.alpha_ == whole.alpha_
    close(model.primal_coef_, to_numpy(whole.primal_coef_), TOLERANCE[place.dtype])
    place.check(model.primal_coef_)
    place.check(model.predict(place(X)), whole.predict(place(X)).dtype)


@pytest.mark.usefixtures("dispatch")
def test_frozen_features_are_used_where_they_are(place):
    fitted = features().fit(place(X))
    model = KernelRidgeRegressor(FrozenEstimator(fitted), alphas=0.7)
    place.check(model.fit(place(X), place(Y)).predict(place(X)))
    assert model.features_ is fitted
    with pytest.raises(ValueError, match=r"FourierFeatures.transform\(\) must use the"):
        model.fit(place.host(X), place.host(Y))


@pytest.mark.usefixtures("dispatch")
@pytest.mark.parametrize("frozen", [False, True])
def test_models_come_to_the_host(place, frozen):
    part = features(31, select="surrogate")
    if frozen:
        part = FrozenEstimator(part.fit(place(X), place(TWO)))
    model = KernelRidgeClassifier(part, alphas=0.7).fit(place(X), place(TWO))
    decisions = to_numpy(model.decision_function(place(X)))
    moved = on_host(model)
    assert type(moved.primal_coef_) is np.ndarray
    assert moved.classes_.tolist() == [False, True]
    close(moved.decision_function(place.host(X)), decisions, TOLERANCE[place.dtype])
    before = model.equations_.weight_sum
    moved.partial_fit(place.host(X), TWO)
    assert model.equations_.weight_sum == before
    place.check(model.primal_coef_)
    place.check(model.features_.frequencies_)
    assert_array_equal(to_numpy(model.decision_function(place(X))), decisions)


@pytest.mark.usefixtures("dispatch")
def test_rows_and_features_never_visit_the_host(place, monkeypatch):
    largest = 0

    def spy(array):
        nonlocal largest
        if other_namespace(array) is not None:
            largest = max(largest, math.prod(array.shape))
        return to_numpy(array)

    for module in (
        "adaptation.gradient",
        "adaptation.objective",
        "adaptation.problem",
        "estimators._bandwidth",
        "kernels.fourier",
        "linear.alpha_path",
        "linear.normal_equations",
    ):
        module = importlib.import_module(f"surff.{module}")
        monkeypatch.setattr(module, "to_numpy", spy)
    model = KernelRidgeClassifier(features(8, select="surrogate"), alphas=[0.1, 1.0])
    model.fit(place(X), place(TWO)).predict(place(X))
    # Means of rows for gamma, and predictions of a fold for two alphas.
    assert 0 < largest <= N
    monkeypatch.setattr(surff.adaptation.problem, "SPREAD_ROWS", 10)
    largest = 0
    features(8, adapt=GradientAdaptation(n_steps=2)).fit(place(X), place(TWO))
    assert 0 < largest <= 8 * 8  # the sums over a batch, or the sample of the rows


@pytest.mark.usefixtures("dispatch")
def test_device_without_float64():
    pytest.importorskip("array_api_strict", reason=MISSING["array_api_strict"])
    try:
        place = Place("array_api_strict", "no_float64", "float32")
    except ValueError:
        pytest.skip("this array-api-strict has no device without float64")
    for model, y in (
        (KernelRidgeRegressor(features(31)), Y),
        (KernelRidgeClassifier(features(select="surrogate")), THREE),
        (KernelRidgeRegressor(features(adapt=AgopAdaptation(n_rounds=1))), Y),
    ):
        expected = clone(model).fit(place.host(X), place.host(y))
        prediction = model.fit(place(X), place(y)).predict(place(X))
        close(prediction, expected.predict(place.host(X)), 1e-3)
        with pytest.raises(ValueError, match="precision='float64' needs a device"):
            clone(model).set_params(precision="float64").fit(place(X), place(y))
    exact = features(adapt=GradientAdaptation(dtype="float64"))
    with pytest.raises(ValueError, match="dtype='float64' needs a device that has"):
        exact.fit(place(X), place(Y))


# -- what is refused -------------------------------------------------------------------


class Stay(BaseEstimator):
    """Somebody's own adaptation, for NumPy's arrays."""

    def adapt(self, frequencies, X, Y, rng, sample_weight=None):
        return frequencies, None


REFUSED = [
    (features(select="leverage"), r"select='leverage' .* one of \['eerf', 'surrogate'"),
    (features(adapt=Stay()), r"adapt=Stay\(\) .* one of \['agop', 'auto', 'gradient'"),
    (NystroemFeatures(8), "NystroemFeatures takes NumPy arrays .* convert X"),
    (KernelLogisticClassifier(features()), "KernelLogisticClassifier takes NumPy"),
    (KernelRidgeRegressor(features(), solver="cg"), "solver='cg' .* use 'cholesky'"),
    (KernelRidgeRegressor(features(), cv="loo"), "cv='loo' .* 'evidence' or folds"),
    (KernelRidgeRegressor(features(), scoring="max_error"), "scoring='max_error'"),
    (KernelRidgeClassifier(features(), scoring="f1"), "scoring='f1' .* 'accuracy'"),
    (KernelRidgeClassifier(features(), probability=True), "probability=True .* False"),
    (KernelRidgeClassifier(NystroemFeatures(8)), r"features=Nystroem.* FourierFeature"),
    (KernelRidgeClassifier(features(select="residual")), "select='residual'"),
]


@pytest.mark.usefixtures("dispatch")
@pytest.mark.parametrize(
    ("estimator", "message"), REFUSED, ids=[message for _, message in REFUSED]
)
def test_what_needs_numpy_says_so(strict, estimator, message):
    with pytest.raises(ValueError, match=message) as caught:
        estimator.fit(strict(X), strict(TWO))
    assert "namespace array_api_strict" in str(caught.value)
    assert get_tags(estimator).array_api_support is False


@pytest.mark.usefixtures("dispatch")
def test_no_standard_deviations(strict):
    model = KernelRidgeRegressor(features(), alphas=0.7).fit(strict(X), strict(Y))
    with pytest.raises(ValueError, match="return_std=True takes NumPy arrays"):
        model.predict(strict(X), return_std=True)


def test_gradients_would_hold_all_features():
    torch = pytest.importorskip("torch", reason=MISSING["torch"])
    rows = torch.asarray(X.copy())
    feature_map = features().fit_checked(rows, None).feature_map()
    rows.requires_grad_()
    with pytest.raises(ValueError, match=r"must not require gradients.*X.detach\(\)"):
        accumulate(feature_map, rows, Y)


@pytest.mark.usefixtures("dispatch")
def test_columns_that_are_not_finite_are_named(strict):
    bad = X.copy()
    bad[3, 1] = np.nan
    for place in (strict, np.asarray):
        with pytest.raises(ValueError, match="Columns with NaN or infinity: 1"):
            features().fit(place(bad))


@pytest.mark.usefixtures("dispatch")
def test_rows_from_elsewhere_are_refused(strict):
    here = features().fit(X)
    there = features().fit(strict(X))
    with pytest.raises(ValueError, match="fitted with NumPy, got array_api_strict"):
        here.transform(strict(X))
    with pytest.raises(
        ValueError, match=r"fitted with array_api_strict on .*, got Num"
    ):
        there.transform(X)
    elsewhere = strict.xp.asarray(X.copy(), device=strict.xp.Device("device2"))
    with pytest.raises(ValueError, match=r"device1.*device2"):
        there.transform(elsewhere)
    model = KernelRidgeClassifier(features()).fit(strict(X), strict(TWO))
    for method in ("predict", "decision_function"):
        with pytest.raises(ValueError, match=rf"Classifier.{method}\(\) must use the"):
            getattr(model, method)(X)


def test_without_dispatch_arrays_become_numpys():
    torch = pytest.importorskip("torch", reason=MISSING["torch"])
    rows = torch.asarray(X.copy())
    model = KernelRidgeRegressor(features(), alphas=0.7)
    model.fit(rows, torch.asarray(Y.copy()))
    assert type(model.primal_coef_) is np.ndarray
    assert type(model.predict(rows)) is np.ndarray
    assert_array_equal(model.predict(rows), model.predict(X))


# -- scikit-learn's own checks ---------------------------------------------------------


# Beside those of `tests/estimators/test_sklearn_contract.py`.
SUPPORTED = [
    features(select="surrogate"),
    features(adapt=AgopAdaptation(n_rounds=1)),
]
CHECKS = [
    (estimator, check)
    for supported in SUPPORTED
    for estimator, check in estimator_checks_generator(supported)
    if check.func.__name__.startswith("check_array_api")
]


@pytest.mark.usefixtures("dispatch")
@pytest.mark.parametrize(
    ("estimator", "check"),
    CHECKS,
    ids=[f"{type(model).__name__}-{check.keywords}" for model, check in CHECKS],
)
def test_scikit_learns_checks(estimator, check):
    assert get_tags(estimator).array_api_support
    with config_context(array_api_dispatch=False):
        check(estimator)
