"""Bent columns: closed forms, gradients, and maps of them."""

import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone

from surff import (
    AutoAdaptation,
    FourierFeatures,
    GradientAdaptation,
    KernelRidgeClassifier,
    KernelRidgeRegressor,
)
from surff.adaptation import projected_objective
from surff.inspection import leverage_scores
from surff.kernels import (
    FourierMap,
    OddFourierMap,
    WarpedMap,
    fourier_features,
    warp_gradient,
    warped,
)

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = RNG.normal(size=(60, 2))
W = RNG.normal(size=(5, 3))
WARP = np.array([[0.3, -1.0, 0.0], [0.5, 2.0, 10.0]])
HEAVY = RNG.lognormal(sigma=1.5, size=(900, 4))
TARGET = np.log(HEAVY[:, 0]) * np.log(HEAVY[:, 1])
for array in (X, Y, W, WARP, HEAVY, TARGET):
    array.flags.writeable = False

LEARNED = GradientAdaptation(n_steps=200, warp=True)


def fitted(n_components=16, **options):
    features = FourierFeatures(n_components, adapt=LEARNED, random_state=0, **options)
    return features.fit(HEAVY, TARGET)


# -- the function ----------------------------------------------------------------------


def test_closed_form():
    centres, rates = WARP
    u = rates * (X - centres)
    expected = np.sign(u) * np.log(np.abs(u) + np.sqrt(u**2 + 1)) / rates
    assert_allclose(warped(X, WARP), expected, rtol=1e-12, atol=1e-14)


def test_straight_near_the_centre_and_for_rates_near_zero():
    small = WARP[0] + 1e-6 * X
    assert_allclose(warped(small, WARP), 1e-6 * X, rtol=1e-9, atol=1e-16)
    flat = np.stack([WARP[0], np.full(3, 1e-9)])
    assert_allclose(warped(X, flat), X - WARP[0], rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_keeps_order_and_type_and_is_finite_far_out(dtype):
    far = np.geomspace(1e-30, 1e30, 200).astype(dtype)
    column = np.concatenate([-far[::-1], [0], far]).astype(dtype)[:, None]
    bent = warped(column, np.array([[0.0], [3.0]]))
    assert bent.dtype == dtype
    assert np.isfinite(bent).all()
    assert np.all(np.diff(bent[:, 0]) > 0)
    slopes = warp_gradient(np.ones_like(bent), bent, np.array([[0.0], [3.0]]))
    assert np.isfinite(slopes).all()


# -- gradients -------------------------------------------------------------------------


def objective(warp, weight=None, frequencies=W):
    bent = warped(X, warp)
    return projected_objective(frequencies, bent, Y, 0.03, weight).objective


WEIGHT = RNG.integers(0, 4, size=60).astype(float)
weights = pytest.mark.parametrize("weight", [None, WEIGHT], ids=["equal", "weighted"])


@weights
def test_row_gradient_is_that_of_finite_differences(weight):
    found = projected_objective(W, X, Y, 0.03, weight, by_rows=True).row_gradient
    numerical = np.empty_like(X)
    for index in np.ndindex(X.shape):
        step = np.zeros_like(X)
        step[index] = 1e-5
        up, down = (
            projected_objective(W, X + sign * step, Y, 0.03, weight).objective
            for sign in (1, -1)
        )
        numerical[index] = (up - down) / 2e-5
    assert_allclose(found, numerical, rtol=1e-6, atol=1e-9)
    assert projected_objective(W, X, Y, 0.03, weight).row_gradient is None


@weights
def test_warp_gradient_is_that_of_finite_differences(weight):
    bent = warped(X, WARP)
    rows = projected_objective(W, bent, Y, 0.03, weight, by_rows=True).row_gradient
    found = warp_gradient(rows, bent, WARP)
    numerical = np.empty_like(WARP)
    for j in range(3):
        centre, rate = np.zeros((2, 2, 3))
        centre[0, j] = rate[1, j] = 1e-5
        numerical[0, j] = (
            objective(WARP + centre, weight) - objective(WARP - centre, weight)
        ) / 2e-5
        # By the logarithm of the rate.
        up, down = (WARP * np.exp(sign * rate) for sign in (1, -1))
        numerical[1, j] = (objective(up, weight) - objective(down, weight)) / 2e-5
    assert_allclose(found, numerical, rtol=1e-6, atol=1e-9)


# -- maps ------------------------------------------------------------------------------


@pytest.mark.parametrize("odd", [False, True])
@pytest.mark.parametrize("n_rows", [0, 1, 60, 8195])
def test_map_of_bent_rows(odd, n_rows):
    rows = np.random.default_rng(1).normal(size=(n_rows, 3))
    inner = OddFourierMap(FourierMap(W), 0.4) if odd else FourierMap(W)
    bending = WarpedMap(inner, WARP)
    Z = bending(rows)
    assert Z.shape == (n_rows, bending.n_components)
    assert_allclose(Z, inner(warped(rows, WARP)), rtol=1e-12, atol=1e-15)
    single = bending.astype(np.float32)
    assert single(rows).dtype == single.dtype == np.float32
    assert_allclose(single(rows), Z, atol=1e-5)
    assert bending.astype(np.float64) is bending


@pytest.mark.parametrize("form", [sparse.csr_array, sparse.csc_matrix])
def test_sparse_rows_through_a_warp(form):
    thin = np.where(RNG.random(HEAVY.shape) < 0.5, HEAVY, 0.0)
    features = fitted()
    assert_allclose(
        features.transform(form(thin)), features.transform(thin), rtol=1e-12, atol=1e-14
    )


def test_wide_sparse_rows_are_dense_a_block_at_a_time():
    n, d = 4000, 2000
    rows = sparse.random(n, d, density=0.001, random_state=0, format="csr")
    bending = WarpedMap(FourierMap(np.full((2, d), 0.1)), np.ones((2, d)))
    bending(rows[:10])
    tracemalloc.start()
    bending(rows)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * n * d / 3  # 64 MB, of which three blocks of 4 MB are held


# -- learned ---------------------------------------------------------------------------


def test_transform_is_that_of_bent_columns():
    features = fitted()
    assert features.warp_.shape == (2, 4)
    expected = fourier_features(warped(HEAVY, features.warp_), features.frequencies_)
    assert_allclose(features.transform(HEAVY), expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(
    ("straight", "bent"),
    [
        (GradientAdaptation(n_steps=400), GradientAdaptation(n_steps=400, warp=True)),
        (AutoAdaptation(warp=False), AutoAdaptation()),
    ],
    ids=["gradient", "auto"],
)
def test_heavy_tails_need_it(straight, bent):
    scores = []
    for adapt in (straight, bent):
        features = FourierFeatures(20, gamma=0.3, adapt=adapt, random_state=0)
        model = KernelRidgeRegressor(features, cv="gcv").fit(HEAVY[:600], TARGET[:600])
        assert hasattr(model.features_, "warp_") == adapt.warp
        scores.append(model.score(HEAVY[600:], TARGET[600:]))
    assert scores[1] > 0.6 > scores[0] + 0.1


def test_columns_of_sparse_rows_stay():
    S = sparse.random(300, 10, density=0.2, random_state=0, format="csr")
    y = np.asarray(S[:, :2].sum(axis=1)).ravel()
    for adapt in (LEARNED, AutoAdaptation()):
        features = FourierFeatures(8, adapt=adapt, random_state=0).fit(S, y)
        assert not hasattr(features, "warp_")


def test_an_earlier_fit_leaves_no_warp():
    features = fitted()
    assert not hasattr(features.set_params(adapt="agop").fit(HEAVY, TARGET), "warp_")


def test_outliers_and_constant_columns():
    far = np.column_stack([HEAVY, np.full(len(HEAVY), 7.0)])
    far[3, 0], far[4, 1] = 1e30, -1e30
    for dtype in (np.float32, np.float64):
        features = FourierFeatures(16, adapt="auto", random_state=0)
        features.fit(far.astype(dtype), TARGET)
        assert np.isfinite(features.warp_).all()
        assert np.isfinite(features.transform(far.astype(dtype))).all()


def test_leverage_scores_are_those_of_bent_columns():
    features = fitted()
    straight = clone(features).set_params(adapt=None).fit(HEAVY)
    straight.frequencies_ = features.frequencies_
    found, expected = (
        leverage_scores(map_, rows, TARGET, kind="surrogate")
        for map_, rows in (
            (features, HEAVY),
            (straight, warped(HEAVY, features.warp_)),
        )
    )
    assert_allclose(found, expected, rtol=1e-10)
    assert_array_equal(
        leverage_scores(features, sparse.csr_array(HEAVY), TARGET, kind="surrogate"),
        found,
    )


def test_model_with_a_warp_in_single_precision():
    labels = TARGET > 0
    features = FourierFeatures(20, adapt=LEARNED, random_state=0)
    models = [
        KernelRidgeClassifier(features, cv="gcv").fit(HEAVY.astype(dtype), labels)
        for dtype in (np.float32, np.float64)
    ]
    single, double = models
    assert single.features_.transform(HEAVY.astype(np.float32)).dtype == np.float32
    rows = HEAVY.astype(np.float32)
    assert np.mean(single.predict(rows) == double.predict(HEAVY)) > 0.9
