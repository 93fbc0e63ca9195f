"""Leaf heads from sums over rows: streams, pieces, workers."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

import surff
from surff import (
    FourierFeatures,
    KernelRidgeClassifier,
    KernelRidgeRegressor,
    LeafHeads,
)
from surff.linear import LeafRows, LeafSums, Partition, joint_heads, leaf_sums_bytes
from surff.streaming import ArrayRows, BlockRows

RNG = np.random.default_rng(0)
N = 400
X = RNG.uniform(-1, 1, size=(N, 3))
Y = np.where(X[:, 0] > 0.1, X[:, 1], 1.0) + (X[:, 2] > 0.5)
Y += 0.05 * RNG.normal(size=N)
BOTH = np.column_stack([Y, np.sin(3 * X[:, 1])])
THREE = np.digitize(Y, np.quantile(Y, [0.3, 0.6]))
WEIGHT = RNG.uniform(0.0, 2.0, size=N)
WEIGHT[::7] = 0.0
NEW = RNG.uniform(-1, 1, size=(100, 3))
for array in (X, Y, BOTH, THREE, WEIGHT, NEW):
    array.flags.writeable = False

FEATURES = FourierFeatures(16, gamma=1.0, random_state=0)
#: Leaves of 20, some 200 and some 100 rows, and a tree of two.
PARTITION = Partition(
    [0, 2, -1, -1, -1, 1, -1, -1],
    [0.1, 0.9, 0, 0, 0, 0.0, 0, 0],
    [1, 3, -1, -1, -1, 6, -1, -1],
    [2, 4, -1, -1, -1, 7, -1, -1],
    [0, 5],
    3,
)
GIVEN = LeafHeads(partition=PARTITION, alpha=0.5)


def regressor(leaves=GIVEN, **parameters):
    return KernelRidgeRegressor(FEATURES, alphas=0.3, leaves=leaves, **parameters)


def blocks(X, y, weight=None, size=70):
    for start in range(0, len(y), size):
        rows = slice(start, start + size)
        own = None if weight is None else weight[rows]
        yield (X[rows], y[rows]) if own is None else (X[rows], y[rows], own)


def pieces(model, X, y, weight=None, **first):
    for piece in blocks(X, y, weight):
        own = piece[2] if len(piece) == 3 else None
        model.partial_fit(*piece[:2], sample_weight=own, **first)
    return model


@pytest.mark.parametrize("weight", [None, WEIGHT])
@pytest.mark.parametrize("y", [Y, BOTH])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_streams_and_pieces_are_one_fit(y, weight, fit_intercept):
    model = regressor(fit_intercept=fit_intercept)
    expected = model.fit(X, y, sample_weight=weight).predict(NEW)
    streamed = regressor(fit_intercept=fit_intercept)
    streamed.fit_stream(BlockRows(lambda: blocks(X, y, weight)))
    assert_allclose(streamed.predict(NEW), expected, rtol=1e-8, atol=1e-8)
    assert_allclose(streamed.primal_coef_, model.primal_coef_, rtol=1e-8, atol=1e-8)
    pieced = pieces(regressor(fit_intercept=fit_intercept), X, y, weight)
    assert_allclose(pieced.predict(NEW), expected, rtol=1e-8, atol=1e-8)


def test_classes_of_streams_and_pieces():
    model = KernelRidgeClassifier(FEATURES, alphas=0.3, leaves=GIVEN).fit(X, THREE)
    expected = model.decision_function(NEW)
    model.fit_stream(ArrayRows(X, THREE))
    assert_allclose(model.decision_function(NEW), expected, atol=1e-8)
    model = KernelRidgeClassifier(FEATURES, alphas=0.3, leaves=GIVEN)
    pieces(model, X, THREE, classes=[0, 1, 2])
    assert_allclose(model.decision_function(NEW), expected, atol=1e-8)


def test_rows_on_workers_are_one_fit():
    da = pytest.importorskip("dask.array")
    expected = regressor().fit(X, Y).predict(NEW)
    model = regressor().fit(da.from_array(X, chunks=(70, 3)), da.from_array(Y, 70))
    assert_allclose(model.predict(NEW), expected, atol=1e-8)
    lazy = model.predict(da.from_array(NEW, chunks=(30, 3)))
    assert_allclose(lazy.compute(), expected, atol=1e-8)
    assert model.score(da.from_array(X, chunks=(70, 3)), da.from_array(Y, 70)) > 0.8


def test_pieces_go_on_from_a_stream():
    expected = regressor().fit(X, Y).predict(NEW)
    model = regressor().fit_stream(ArrayRows(X[:250], Y[:250]))
    before = model.leaf_sums_.grams.copy()
    early, sums = model.predict(NEW), model.leaf_sums_
    model.partial_fit(X[250:], Y[250:])
    assert_allclose(model.predict(NEW), expected, atol=1e-8)
    assert_array_equal(sums.grams, before)  # what was held is not written into
    assert not np.allclose(early, expected)


def test_the_plan_of_a_stream_is_made_on_its_sample():
    leaves = LeafHeads(8, min_samples_leaf=10)
    model = regressor(leaves).fit_stream(ArrayRows(X, Y), n_sample=200)
    again = LeafHeads(partition=model.leaves_.partition, alpha=model.leaves_.alpha)
    expected = regressor(again).fit(X, Y)
    assert_allclose(model.predict(NEW), expected.predict(NEW), atol=1e-8)
    assert 2 <= model.leaves_.n_leaves <= 8
    whole = regressor(leaves).fit_stream(ArrayRows(X, Y))
    assert_allclose(
        whole.predict(NEW), regressor(leaves).fit(X, Y).predict(NEW), atol=1e-8
    )


def test_the_plan_of_pieces_is_that_of_the_first():
    leaves = LeafHeads(8, min_samples_leaf=10)
    model = regressor(leaves).partial_fit(X[:300], Y[:300])
    first = model.leaves_
    assert_allclose(
        model.predict(NEW), regressor(leaves).fit(X[:300], Y[:300]).predict(NEW)
    )
    model.partial_fit(X[300:], Y[300:])
    assert model.leaves_.partition is first.partition
    assert model.leaves_.alpha == first.alpha


@pytest.mark.parametrize("method", ["fit_stream", "partial_fit"])
def test_no_leaves_where_they_gain_nothing(method):
    noise = np.random.default_rng(0).normal(size=N)
    model, plain = regressor("auto"), regressor(None)
    for one in (model, plain):
        if method == "fit_stream":
            one.fit_stream(ArrayRows(X, noise))
        else:
            one.partial_fit(X[:300], noise[:300]).partial_fit(X[300:], noise[300:])
    assert model.leaves_.partition is None
    assert not hasattr(model, "leaf_sums_")
    # Another sample gives the targets another offset.
    assert_allclose(model.predict(NEW), plain.predict(NEW), rtol=1e-9, atol=1e-12)


def test_sums_are_kept_only_with_the_equations():
    model = regressor(keep_equations=False).fit_stream(ArrayRows(X, Y))
    assert not hasattr(model, "leaf_sums_")
    fitted = regressor().fit(X, Y)
    with pytest.raises(ValueError, match="begin with partial_fit or fit_stream"):
        fitted.partial_fit(X, Y)


def test_boosting_needs_all_rows():
    model = regressor(LeafHeads(4, n_trees=2, combine="boost"))
    assert not hasattr(model, "partial_fit")
    assert not hasattr(model, "fit_stream")
    assert hasattr(regressor(LeafHeads(4, combine="boost")), "partial_fit")


def test_memory_is_bounded_before_it_is_used():
    leaves = LeafHeads(partition=PARTITION, alpha=0.5, max_bytes=1000)
    with pytest.raises(ValueError, match="max_bytes=1e-06 GB"):
        regressor(leaves).fit_stream(ArrayRows(X, Y))
    with pytest.raises(ValueError, match="5 leaves and 16 features"):
        regressor(leaves).partial_fit(X, Y)
    regressor(leaves).fit(X, Y)  # visits leaf by leaf
    sums = LeafSums(5, 16, 2)
    n_bytes = sums.grams.nbytes + sums.moments.nbytes
    assert leaf_sums_bytes(5, 16, 2) == n_bytes


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sums_of_blocks_are_those_of_the_rows(dtype):
    feature_map = FEATURES.fit(X).feature_map().astype(dtype)
    rows = X.astype(dtype)
    tree = PARTITION.tree(0)
    sums = LeafSums(3, 16, 2)
    for part in (slice(0, 150), slice(150, 180), slice(180, N)):
        other = LeafSums(3, 16, 2)
        other.update(feature_map, tree, rows[part], BOTH[part], WEIGHT[part])
        sums.merge(other)
    assert sums.grams.dtype == np.float64
    alphas, leaves = np.array([0.3, 0.7]), tree.leaves(rows)[:, 0]
    at_hand = LeafRows(feature_map, rows, BOTH, WEIGHT, leaves, 3)
    expected = joint_heads(at_hand, alphas, 0.5)
    found = joint_heads(sums, alphas, 0.5)
    assert_allclose(found.common, expected.common, atol=1e-9)
    assert_allclose(found.leaves, expected.leaves, atol=1e-9)


def test_sparse_rows_are_summed():
    feature_map = FEATURES.fit(X).feature_map()
    dense = LeafSums(5, 16, 2).update(feature_map, PARTITION, X, BOTH)
    rows = sparse.csr_matrix(X)
    found = LeafSums(5, 16, 2).update(feature_map, PARTITION, rows, BOTH)
    assert_allclose(found.grams, dense.grams, atol=1e-12)
    assert dense.n_rows.sum() == 2 * N


def test_model_files_hold_the_sums(tmp_path):
    pytest.importorskip("skops")
    model = regressor().fit_stream(ArrayRows(X[:250], Y[:250]))
    surff.save(model, tmp_path / "model.skops")
    again = surff.load(tmp_path / "model.skops").partial_fit(X[250:], Y[250:])
    model.partial_fit(X[250:], Y[250:])
    assert_array_equal(again.predict(NEW), model.predict(NEW))


def saved(model, path):
    surff.save(model, path)
    return surff.load(path)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("grams", np.zeros((5, 3)), "grams of LeafSums"),
        ("moments", np.zeros((4, 17, 1)), "moments of LeafSums"),
        ("n_rows", np.full(5, -1), "n_rows of LeafSums"),
        ("fit_intercept", 3, "fit_intercept of LeafSums"),
    ],
)
def test_damaged_sums_are_refused(tmp_path, name, value, message):
    pytest.importorskip("skops")
    model = regressor().fit_stream(ArrayRows(X, Y))
    setattr(model.leaf_sums_, name, value)
    with pytest.raises(surff.estimators.ModelFileError, match=message):
        saved(model, tmp_path / "model.skops")
