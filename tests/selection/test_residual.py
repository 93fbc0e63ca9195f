import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.linear_model import Ridge
from threadpoolctl import threadpool_limits

from surff import FourierFeatures, KernelRidgeRegressor, SurrogateLeverage
from surff.backend import blocks
from surff.kernels import FourierMap, fourier_features
from surff.linear import SingularError, accumulate
from surff.selection import (
    EERF,
    ResidualLeverage,
    residual_frequencies,
    residual_moments,
    surrogate_leverage_scores,
)
from surff.selection.residual import GCV_DECADES, stage_fit, unit_map


def problem(n=60, d=3, k=2, size=40, seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)).astype(dtype)
    Y = np.column_stack([np.sin(X[:, 0] + j) + X[:, 1] ** 2 for j in range(k)]) + 0.3
    pool = rng.normal(size=(size, d)).astype(dtype)
    weight = rng.integers(0, 4, size=n).astype(float)
    for array in (X, Y, pool, weight):
        array.flags.writeable = False
    return X, Y, pool, weight


def best(scores, share):
    return np.argsort(-scores, kind="stable")[:share]


def brute_force(pools, shares, X, Y, weight, alpha, fit_intercept):
    """The stages of the docstring: complex scores, an explicit refit, no sums kept."""
    weight = np.ones(len(X)) if weight is None else weight
    kept = pools[0][:0]
    for pool, share in zip(pools, shares, strict=True):
        if len(kept):
            P = X @ kept.T
            Z = np.hstack([np.cos(P), np.sin(P)])
            centre = np.average(Z, axis=0, weights=weight) if fit_intercept else 0.0
            gram = (Z - centre).T * weight @ (Z - centre)
            ridge = Ridge(
                alpha * np.trace(gram) / len(gram), fit_intercept=fit_intercept
            )
            R = Y - ridge.fit(Z, Y, weight).predict(Z).reshape(Y.shape)
        else:
            R = Y - np.average(Y, axis=0, weights=weight) if fit_intercept else Y
        z = np.exp(-1j * X @ pool.T)
        scores = (abs(z.T @ (weight[:, None] * R)) ** 2).sum(axis=1)
        kept = np.concatenate([kept, pool[best(scores, share)]])
    return kept


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("k", [1, 3])
def test_stages_equal_a_brute_force_refit(k, weighted, fit_intercept):
    X, Y, pool, weight = problem(k=k, size=50)
    weight = weight if weighted else None
    pools, shares = np.array_split(pool, 4), [3, 3, 2, 2]
    options = {"alpha": 0.07, "fit_intercept": fit_intercept}
    found = residual_frequencies(pools, shares, best, X, Y, weight, **options)
    assert_array_equal(found, brute_force(pools, shares, X, Y, weight, **options))


@pytest.mark.parametrize("n_stages", [1, 3, 10, 99])
def test_the_selector_shares_one_draw_out_among_stages(n_stages):
    X, Y, pool, _ = problem(size=43)
    calls = []

    def draw(n):
        calls.append(n)
        return pool[:n]

    selector = ResidualLeverage(n_stages, 4.3, alpha=0.07)
    found = selector.select(draw, X, Y, 10, np.random.default_rng(0))
    assert calls == [43]
    stages = min(n_stages, 10)
    shares = [len(part) for part in np.array_split(range(10), stages)]
    pools = np.array_split(pool, stages)
    assert_array_equal(
        found.frequencies, brute_force(pools, shares, X, Y, None, 0.07, True)
    )
    assert_array_equal(found.importance_weights, np.ones(10))


@pytest.mark.parametrize("weighted", [True, False])
def test_one_stage_without_intercept_keeps_the_top_of_the_surrogate(weighted):
    X, Y, pool, weight = problem()
    weight = weight if weighted else None
    selector = ResidualLeverage(1, 40, fit_intercept=False)
    found = selector.select(lambda n: pool[:n], X, Y, 6, None, weight).frequencies
    scores = SurrogateLeverage().scores(pool, X, Y, weight)
    assert_array_equal(found, pool[best(scores, 6)])
    same = EERF(40).select(lambda n: pool[:n], X, Y, 6, None, weight).frequencies
    assert {tuple(w) for w in found} == {tuple(w) for w in same}


def test_what_is_fitted_scores_zero():
    # Normal equations: the residual is orthogonal to the columns as alpha goes to 0.
    X, Y, pool, weight = problem()
    kept = pool[:5]
    feature_map = unit_map(kept)
    fit = stage_fit(accumulate(feature_map, X, Y, weight), 1e-12, True)
    moments = residual_moments(X, Y, feature_map, *fit, FourierMap(pool), weight)
    scores = surrogate_leverage_scores(moments, weight.sum())
    assert scores[:5].max() < 1e-15 * scores[5:].max()
    assert scores[5:].min() > 1e-6 * scores[5:].max()


def test_a_target_that_one_stage_fits_leaves_noise_for_the_next():
    X, _, pool, _ = problem(size=24)
    true = pool[[3, 15]]  # one in each stage's share of the candidates
    Y = np.cos(X @ true.T) @ [[3.0], [1.0]]
    selector = ResidualLeverage(2, 24, alpha=1e-6)
    found = selector.select(lambda n: pool[:n], X, Y, 2, None).frequencies
    assert_array_equal(found, true)


def test_moments_are_those_of_the_residual_and_hold_one_block():
    n, s = 20_000, 128
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(n, 3)), rng.normal(size=(n, 2))
    weight = rng.uniform(0, 2, size=n)
    feature_map = unit_map(rng.normal(size=(s, 3)))
    pool = FourierMap(rng.normal(size=(s, 3)))
    coef, intercept = rng.normal(size=(2 * s, 2)), rng.normal(size=2)
    fit = X, Y, feature_map, coef, intercept, pool, weight
    with threadpool_limits(2, user_api="blas"):  # each thread holds its blocks
        residual_moments(X[:200], Y[:200], *fit[2:6], weight[:200])  # compiled
        tracemalloc.start()
        found = residual_moments(*fit)
        peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    residual = Y - intercept - feature_map(X) @ coef
    expected = pool(X).T @ (weight[:, None] * residual)
    assert_allclose(found, expected, rtol=0, atol=1e-10 * abs(expected).max())
    assert peak < 2 * 3 * blocks.BLOCK_BYTES < n * 4 * s * 8


@pytest.mark.parametrize("resample", ["top", "without_replacement"])
@pytest.mark.parametrize("alpha", [0.05, "gcv"])
def test_weights_repeat_rows(resample, alpha):
    X, Y, pool, weight = problem()
    rows = np.repeat(np.arange(60), weight.astype(int))
    selector = ResidualLeverage(3, 40, resample=resample, alpha=alpha)

    def select(*data):
        rng = np.random.default_rng(1)
        return selector.select(lambda n: pool[:n], *data[:2], 9, rng, *data[2:])

    assert_array_equal(select(X, Y, weight)[0], select(X[rows], Y[rows])[0])


@pytest.mark.parametrize("resample", ["top", "without_replacement"])
def test_a_seed_gives_the_same_frequencies(resample):
    X, Y, *_ = problem()
    features = FourierFeatures(
        12,
        gamma=0.3,
        random_state=3,
        select=ResidualLeverage(3, 8.0, resample=resample),
    )
    first = features.fit(X, Y).frequencies_
    assert_array_equal(features.fit(X, Y).frequencies_, first)
    other = features.set_params(random_state=4).fit(X, Y).frequencies_
    assert abs(other - first).min() > 0


@pytest.mark.parametrize("draw", ["monte_carlo", "halton", "sobol", "orthogonal"])
def test_no_stage_sees_candidates_of_another(draw):
    X, Y, *_ = problem(n=200)
    select = ResidualLeverage(4, 4.0)
    features = FourierFeatures(32, gamma=0.3, draw=draw, select=select, random_state=0)
    kept = features.fit(X, Y).frequencies_
    assert len(np.unique(kept, axis=0)) == 16


def test_single_precision_and_sparse_rows_choose_alike():
    X, Y, pool, _ = problem(n=300)
    X = np.where(abs(X) > 0.5, X, 0.0)
    selector = ResidualLeverage(3, 40)

    def select(X, pool):
        return selector.select(lambda n: pool[:n], X, Y, 9, None).frequencies

    dense = select(X, pool)
    assert_array_equal(select(sparse.csr_matrix(X), pool), dense)
    single = select(X.astype(np.float32), pool.astype(np.float32))
    assert single.dtype == np.float32
    assert_array_equal(single, dense.astype(np.float32))


def test_gcv_takes_the_least_error():
    X, Y, pool, weight = problem(k=1)
    feature_map = unit_map(pool[:6])
    equations = accumulate(feature_map, X, Y, weight)
    Z = feature_map(X) * np.sqrt(weight)[:, None]
    # Centred with weights by hand; Ridge through its hat matrix.
    Z -= np.sqrt(weight)[:, None] * np.average(feature_map(X), axis=0, weights=weight)
    y = np.sqrt(weight) * (Y[:, 0] - np.average(Y[:, 0], weights=weight))
    n = weight.sum()
    scale = np.trace(Z.T @ Z) / 12

    def error(alpha):
        hat = Z @ np.linalg.solve(Z.T @ Z + alpha * np.eye(12), Z.T)
        return ((y - hat @ y) ** 2).sum() / (1 - (np.trace(hat) + 1) / n) ** 2

    alpha = min(scale * 10.0**GCV_DECADES, key=error)
    expected = np.linalg.solve(Z.T @ Z + alpha * np.eye(12), Z.T @ y)
    coef, _ = stage_fit(equations, "gcv", True)
    assert_allclose(coef[:, 0], expected, rtol=1e-6)


def test_a_constant_target_keeps_candidates_as_drawn():
    X, _, pool, _ = problem()
    for resample in ("top", "without_replacement"):
        selector = ResidualLeverage(2, 40, resample=resample)
        rng = np.random.default_rng(0)
        found = selector.select(lambda n: pool[:n], X, np.ones((60, 1)), 4, rng)
        assert_array_equal(found.frequencies, pool[[0, 1, 20, 21]])


def test_more_frequencies_than_rows_fit():
    X, Y, pool, _ = problem(n=5, size=40)
    for alpha in (1e-2, "gcv"):
        selector = ResidualLeverage(4, 40, alpha=alpha)
        assert selector.select(lambda n: pool[:n], X, Y, 20, None)[0].shape == (20, 3)


def test_the_residual_finds_what_the_target_alone_does_not():
    # y has a loud and a soft wave. Candidates near the loud one score highest in one
    # stage and fill the map; the residual leads to the soft one.
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, size=(2000, 2))
    y = 4 * np.cos(1.5 * X[:, 0]) + np.cos(2.5 * X[:, 1])
    train, test = slice(0, 1000), slice(1000, None)
    scores = {}
    for n_stages in (1, 4):
        select = ResidualLeverage(n_stages, 400)
        features = FourierFeatures(8, gamma=2.0, select=select, random_state=0)
        model = KernelRidgeRegressor(features, alphas=1e-3).fit(X[train], y[train])
        scores[n_stages] = model.score(X[test], y[test])
    assert scores[1] < 0.96 < 0.99 < scores[4]


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_stages": 0}, r"n_stages must be an int >= 1, got 0\."),
        ({"n_stages": 2.0}, r"n_stages must be an int >= 1, got 2\.0\."),
        ({"n_stages": True}, r"n_stages must be an int >= 1, got True\."),
        (
            {"resample": "multinomial"},
            "resample must be 'top' or 'without_replacement',",
        ),
        ({"alpha": "loo"}, "alpha must be a positive number or 'gcv', got 'loo'"),
        ({"alpha": 0.0}, r"alpha must be a positive finite number, got 0\.0\."),
        ({"n_candidates": 5}, "n_candidates must give at least the 6 frequencies"),
    ],
)
def test_parameters_are_checked(parameters, message):
    X, Y, pool, _ = problem()
    with pytest.raises(ValueError, match=message):
        ResidualLeverage(**parameters).select(lambda n: pool[:n], X, Y, 6, None)


def test_a_singular_fit_says_what_to_do():
    X, Y, pool, _ = problem()
    twice = np.concatenate([pool[:2], pool[:2]])
    with pytest.raises(SingularError, match=r"increase alpha=1e-17, which is relative"):
        residual_frequencies([twice, twice], [4, 4], best, X, Y, alpha=1e-17)


def test_data_that_overflow_are_refused():
    X, Y, pool, _ = problem()
    selector = ResidualLeverage(2, 40)
    with pytest.raises(ValueError, match="scores of the candidates are not finite"):
        selector.select(lambda n: pool[:n], X, 1e200 * Y, 4, None)


def test_features_of_unit_amplitude_do_not_change_with_their_number():
    X, _, pool, _ = problem()
    P = X @ pool[:3].T
    assert_allclose(
        unit_map(pool[:3])(X), np.hstack([np.cos(P), np.sin(P)]), rtol=1e-13
    )
    assert_allclose(fourier_features(X, pool[:3]) * 3**0.5, unit_map(pool[:3])(X))
