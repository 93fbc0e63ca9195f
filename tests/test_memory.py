"""Memory in the rows: what `docs/costs.md` says of each method, by its name.

What a method holds for one more row is the slope of its peak between two numbers of
rows, both of many blocks, so that blocks and matrices of columns cancel. A column of
features takes 8 bytes a row: a method that held the features of its pool, or of its
map, would need 8 times the number of columns.
"""

import gc
import tracemalloc

import numpy as np
import pytest
from sklearn.base import clone
from threadpoolctl import threadpool_limits

from surff import (
    FourierFeatures,
    KernelLogisticClassifier,
    KernelRidgeClassifier,
    KernelRidgeRegressor,
    NystroemFeatures,
)
from surff.adaptation import ADAPTATIONS, AgopAdaptation, GradientAdaptation
from surff.draws import DRAWS
from surff.kernels import Gaussian
from surff.linear import SOLVERS
from surff.selection import LANDMARK_RULES, SELECTORS

N_COMPONENTS = 64
FEW = 40_000

#: Bytes a row that are no matrix of features: indices, scores, rows of a fold. Half of
#: a map's features.
SOME = 4.0 * N_COMPONENTS

#: Adaptations that do little of what they do.
SHORT = {
    "agop": AgopAdaptation(n_rounds=1, factors=(1.0,)),
    "gradient": GradientAdaptation(n_steps=4, n_checks=1),
}


@pytest.fixture(scope="module")
def data():
    X = np.random.default_rng(0).normal(size=(4 * FEW, 3))
    return X, np.sin(X[:, 0])


def bytes_a_row(fit, X, *y, few=FEW):
    """Slope of the peak of ``fit(X, *y)`` from some rows to twice as many.

    On one thread: whether the blocks of two are at their largest together is chance.
    """
    fit(X[:500], *(target[:500] for target in y))  # compiled before memory is watched
    peaks = []
    with threadpool_limits(1, user_api="blas"):
        for n in (few, 2 * few):
            tracemalloc.start()
            fit(X[:n], *(target[:n] for target in y))
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
    return (peaks[1] - peaks[0]) / few


def features(**options):
    return FourierFeatures(N_COMPONENTS, gamma=0.3, random_state=0, **options)


@pytest.mark.parametrize("draw", sorted(DRAWS))
def test_draws_do_not_look_at_the_rows(draw, data):
    assert bytes_a_row(features(draw=draw).fit, data[0]) < 1.0


@pytest.mark.parametrize("select", sorted(SELECTORS))
def test_selectors_hold_no_features_of_the_pool(select, data):
    assert bytes_a_row(features(select=select).fit, *data) < SOME


@pytest.mark.parametrize("adapt", sorted(SHORT))
def test_adaptations_hold_some_rows_and_a_batch(adapt, data):
    assert set(SHORT) == set(ADAPTATIONS) - {"auto"}  # which is the two in turn
    assert bytes_a_row(features(adapt=SHORT[adapt]).fit, *data) < SOME


@pytest.mark.parametrize("rule", [*LANDMARK_RULES, "kmeans"])
def test_landmark_rules_hold_no_columns_of_the_kernel_but_rpcholesky(rule, data):
    nystroem = NystroemFeatures(N_COMPONENTS, gamma=0.3, landmarks=rule, random_state=0)
    held = bytes_a_row(nystroem.fit, data[0], few=2 * FEW)
    if rule == "rpcholesky":  # the factor, n by m + 1
        assert 8 * N_COMPONENTS < held < 8 * (N_COMPONENTS + 1) + SOME
    else:
        assert held < SOME


@pytest.mark.parametrize("cv", [3, "gcv", "loo"])
def test_criteria_hold_no_features(cv, data):
    model = KernelRidgeRegressor(features(), alphas=[0.1, 1.0], cv=cv)
    assert bytes_a_row(model.fit, *data) < SOME


def test_logistic_regression_holds_no_features(data):
    X, y = data
    model = KernelLogisticClassifier(features(), alphas=[1e3, 1e4], cv=2)
    assert bytes_a_row(model.fit, X, y > 0) < SOME


def test_a_matrix_of_features_would_be_seen(data):
    held = bytes_a_row(features().fit_transform, data[0])
    assert held > 8 * N_COMPONENTS - 1


# Columns and frequencies


def peak_of(function):
    """Peak in numbers of 8 bytes, on one thread."""
    with threadpool_limits(1, user_api="blas"):
        function()  # compiled, and tables read, before memory is watched
        tracemalloc.start()
        function()
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    return peak / 8


@pytest.mark.parametrize("draw", sorted(DRAWS))
def test_draws_hold_some_matrices_of_frequencies(draw):
    s, d = 300, 30
    held = peak_of(
        lambda: DRAWS[draw]().draw(Gaussian(), s, d, np.random.default_rng(0))
    )
    if draw in ("reweighted", "sparse_grid"):  # four differences a frequency, fitted
        assert held < 20 * s**2
    elif draw == "structured_orthogonal":  # norms, and three signs of a byte
        assert held < 10 * s
    else:  # the scrambling of Sobol's digits takes a matrix of 63 by 63 bits a column
        assert held < 10 * s * d + (6000 * d if draw == "sobol" else 0)


def test_structured_frequencies_are_no_matrix_in_many_columns():
    s, d = 4096, 2048
    draw = DRAWS["structured_orthogonal"]()
    drawn = draw.draw(Gaussian(), s, d, np.random.default_rng(0))
    X = np.random.default_rng(0).normal(size=(4, d))
    held = peak_of(lambda: draw.draw(Gaussian(), s, d, np.random.default_rng(0)))
    assert held < 20 * s
    # Signs as floats, the rows and 32 of them side by side in three stages.
    assert peak_of(lambda: drawn.projections(X)) < 3 * s + 200 * d + 4 * s


@pytest.mark.parametrize("solver", sorted(SOLVERS))
@pytest.mark.parametrize("n_alphas", [2, 30])
def test_solvers_hold_some_matrices_of_columns(solver, n_alphas):
    m = 400
    Z = np.random.default_rng(0).normal(size=(1000, m))
    gram, alphas = np.asfortranarray(Z.T @ Z), np.geomspace(1.0, 1e3, n_alphas)
    held = peak_of(lambda: list(SOLVERS[solver](gram, Z[:1].T, alphas)))
    assert held < 6 * m**2


def test_a_model_that_keeps_no_equations_is_solved_in_their_memory(data):
    m = 2000
    features = FourierFeatures(m, random_state=0)
    peaks = {}
    with threadpool_limits(1, user_api="blas"):
        for keep in (False, True):
            model = KernelRidgeRegressor(
                features, alphas=1.0, precision="float64", keep_equations=keep
            )
            model.fit(*(values[:500] for values in data))
            tracemalloc.start()
            model.fit(*(values[:3000] for values in data))
            peaks[keep] = tracemalloc.get_traced_memory()[1] / (8 * m**2)
            tracemalloc.stop()
    # One matrix and a block of features; otherwise a centred copy and its factor, too.
    assert peaks[False] < 1.5 < 2.5 < peaks[True] < 3.5


# Fits in a loop, and many rows


def test_memory_is_flat_over_ten_fits():
    """Falkon 37: nothing is kept from one fit to the next."""
    rows = np.random.default_rng(0).normal(size=(200, 3))
    target = np.sin(rows[:, 0])
    models = [
        KernelRidgeRegressor(features(), alphas=[0.1, 1.0], cv=3),
        KernelRidgeRegressor(NystroemFeatures(64, random_state=0), cv="gcv"),
        KernelRidgeClassifier(features(select="surrogate"), probability=True),
    ]
    for model, goal in zip(models, [target, target, target > 0], strict=True):
        model.fit(rows, goal).predict(rows)  # compiled, pools filled
        tracemalloc.start()
        held = []
        for n_fits in (2, 8):
            for _ in range(n_fits):
                model.fit(rows, goal).predict(rows)
            gc.collect()  # what scikit-learn leaves in cycles is not kept
            held.append(tracemalloc.get_traced_memory()[0])
        tracemalloc.stop()
        # A Gram matrix of 64 columns takes 32 KiB; 8 lost ones would take 256.
        assert held[1] - held[0] < 2**16


@pytest.mark.parametrize(
    "transformer",
    [
        FourierFeatures(32, select="surrogate", random_state=0),
        NystroemFeatures(32, landmarks="leverage", random_state=0),
    ],
)
def test_many_rows_stream(transformer):
    """Sk 19479, 9690: n = 80,000 rows, whose kernel matrix would take 51 GB.

    What is distributed (dask-ml 82, 89) belongs to `surff.streaming.dask_rows`.
    """
    data = np.random.default_rng(0).normal(size=(80_000, 3)).astype(np.float32)
    target = np.sin(data[:, 0])
    model = KernelRidgeRegressor(transformer, alphas=[0.1, 1.0], cv="gcv")
    clone(model).fit(data[:500], target[:500])  # compiled before memory is watched
    tracemalloc.start()
    model.fit(data, target)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # A few numbers a row, and blocks: 80,000 x 32 features would fit four times.
    assert peak < 40 * 2**20
    assert model.score(data, target) > 0.9
