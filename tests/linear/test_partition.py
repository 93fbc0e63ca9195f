import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.tree import DecisionTreeRegressor

from surff.linear import Partition, grown_tree

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 4)).astype(np.float32)
Y = np.column_stack([X[:, 0] > 0.3, np.sin(X[:, 1])]).astype(float)

STUMP = {
    "feature": [0, -1, -1],
    "threshold": [0.5, 0.0, 0.0],
    "left": [1, -1, -1],
    "right": [2, -1, -1],
    "roots": [0],
    "n_features": 2,
}


def grown(n_leaves, **parameters):
    rng = np.random.default_rng(0)
    parameters = {"min_samples_leaf": 5, "max_features": None, **parameters}
    return grown_tree(X, Y, None, n_leaves, rng=rng, **parameters)


def same_groups(a, b):
    pairs = np.unique(np.column_stack([a, b]), axis=0)
    return len(pairs) == len(np.unique(a)) == len(np.unique(b))


def test_rows_fall_into_the_leaves_of_scikit_learn():
    models = [
        DecisionTreeRegressor(max_depth=depth, random_state=0).fit(X, Y[:, 0] + X[:, 2])
        for depth in (1, 5, 3)
    ]
    partition = Partition.of_trees(models)
    found = partition.leaves(X)
    assert partition.n_trees == 3
    for t, model in enumerate(models):
        assert same_groups(found[:, t], model.apply(X))
        assert found[:, t].min() == partition.first_leaf[t]
        assert found[:, t].max() == partition.first_leaf[t + 1] - 1
        alone = partition.tree(t).leaves(X)[:, 0]
        assert_array_equal(alone, found[:, t] - partition.first_leaf[t])
    assert partition.n_leaves == sum(model.get_n_leaves() for model in models)


@pytest.mark.parametrize("n_leaves", [2, 5, 11, 40])
def test_the_first_nodes_are_the_tree_of_fewer_leaves(n_leaves):
    few = Partition.of_trees([grown(n_leaves)])
    cut = Partition.of_trees([grown(40)], n_leaves)
    for name in ("feature", "threshold", "left", "right"):
        assert_array_equal(getattr(few, name), getattr(cut, name))


def test_double_precision_and_sparse_rows_fall_alike():
    partition = Partition.of_trees([grown(9)])
    expected = partition.leaves(X)
    assert_array_equal(partition.leaves(X.astype(np.float64)), expected)
    assert_array_equal(partition.leaves(sparse.csr_matrix(X)), expected)
    assert_array_equal(partition.leaves(np.asfortranarray(X)), expected)
    assert partition.leaves(X[:0]).shape == (0, 1)
    with pytest.raises(ValueError, match="4 columns"):
        partition.leaves(X[:, :3])


def test_sparse_rows_grow_the_same_tree():
    rng = np.random.default_rng(0)
    tree = grown_tree(sparse.csr_matrix(X), Y, None, 9, 5, None, rng)
    expected = Partition.of_trees([grown(9)])
    assert_array_equal(Partition.of_trees([tree]).feature, expected.feature)


def test_leaves_keep_their_fewest_rows():
    partition = Partition.of_trees([grown(1000, min_samples_leaf=17)])
    assert np.bincount(partition.leaves(X)[:, 0]).min() >= 17


def test_pickles_are_as_before():
    partition = Partition.of_trees([grown(9), grown(3)])
    again = pickle.loads(pickle.dumps(partition))
    assert_array_equal(again.leaves(X), partition.leaves(X))
    assert_array_equal(again.first_leaf, partition.first_leaf)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("feature", [2, -1, -1], "below 2"),
        ("feature", [-2, -1, -1], "below 2"),
        ("feature", [0, 1, -1], "each below one node"),
        ("feature", [[0, -1, -1]], "flat"),
        ("threshold", [np.nan, 0, 0], "finite"),
        ("threshold", [np.inf, 0, 0], "finite"),
        ("threshold", [0.0], "one length"),
        ("left", [0, -1, -1], "after theirs"),
        ("left", [7, -1, -1], "same tree"),
        ("left", [2, -1, -1], "each below one node"),
        ("left", [1, 2, -1], "-1 at a leaf"),
        ("right", [-5, -1, -1], "same tree"),
        ("roots", [1], "ascend from 0"),
        ("roots", [], "ascend from 0"),
        ("roots", [0, 0], "ascend from 0"),
        ("roots", [0, 3], "ascend from 0"),
        ("roots", [0, 1], "same tree"),
        ("roots", [[0]], "flat"),
    ],
)
def test_damaged_trees_are_refused(name, value, message):
    with pytest.raises(ValueError, match=message):
        Partition(**{**STUMP, name: value})
    state = Partition(**STUMP).__getstate__()
    with pytest.raises(ValueError, match=message):
        Partition.__new__(Partition).__setstate__({**state, name: value})


def test_no_cycle_passes():
    # 1 -> 3 -> 1 would be walked forever.
    arrays = {
        "feature": [0, 0, -1, 0, -1],
        "threshold": np.zeros(5),
        "left": [1, 3, -1, 1, -1],
        "right": [2, 4, -1, 4, -1],
    }
    with pytest.raises(ValueError, match="come after theirs"):
        Partition(**{**STUMP, **arrays})


def test_a_single_leaf_is_a_tree():
    partition = Partition([-1], [0.0], [-1], [-1], [0], 4)
    assert_allclose(partition.leaves(X), 0)
    assert partition.n_leaves == 1


def test_trees_in_words():
    words = Partition.of_trees([grown(4), grown(2)]).text()
    lines = words.split("\n")
    assert sum("leaf" in line for line in lines) == 6
    partition = Partition.of_trees([grown(2)])
    threshold = f"{partition.threshold[0]:.6g}"
    name = "abcd"[partition.feature[0]]
    assert partition.text(list("abcd")) == (
        f"{name} <= {threshold}: leaf 0\n{name} > {threshold}: leaf 1"
    )
    assert Partition([-1], [0.0], [-1], [-1], [0], 4).text() == "leaf 0"
