import copy
import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import KFold

import surff
from surff import (
    FourierFeatures,
    KernelRidgeClassifier,
    KernelRidgeRegressor,
    LeafHeads,
)
from surff.linear import (
    LeafRows,
    Partition,
    accumulate,
    common_left_out,
    joint_heads,
    joint_left_out,
)
from surff.streaming import ArrayRows

RNG = np.random.default_rng(0)
N = 600
X = RNG.uniform(-1, 1, size=(N, 3))
STEP = np.where(X[:, 0] > 0.1, X[:, 1], 1.0) + (X[:, 2] > 0.5)
Y = STEP + 0.05 * RNG.normal(size=N)
TWO = np.where(np.median(Y) < Y, "yes", "no")
THREE = np.digitize(Y, np.quantile(Y, [0.3, 0.6]))
NEW = RNG.uniform(-1, 1, size=(200, 3))
NEW_Y = np.where(NEW[:, 0] > 0.1, NEW[:, 1], 1.0) + (NEW[:, 2] > 0.5)
for array in (X, STEP, Y, TWO, THREE, NEW, NEW_Y):
    array.flags.writeable = False

FEATURES = FourierFeatures(20, gamma=1.0, random_state=0)
#: x_0 <= 0.1, and below it x_2 <= 0.5; then one tree more.
PARTITION = Partition(
    [0, 2, -1, -1, -1], [0.1, 0.5, 0, 0, 0], [1, 3, -1, -1, -1], [2, 4, -1, -1, -1],
    [0], 3,
)  # fmt: skip
TWO_TREES = Partition(
    [*PARTITION.feature, 1, -1, -1],
    [*PARTITION.threshold, 0.0, 0, 0],
    [*PARTITION.left, 6, -1, -1],
    [*PARTITION.right, 7, -1, -1],
    [0, 5],
    3,
)


def regressor(leaves, **parameters):
    parameters = {"alphas": 0.3, **parameters}
    return KernelRidgeRegressor(FEATURES, leaves=leaves, **parameters)


def given(partition=PARTITION, alpha=0.5, **parameters):
    return LeafHeads(partition=partition, alpha=alpha, **parameters)


def dense_prediction(Y, alpha=0.3, a=0.5, weight=None):
    """Joint ridge of all columns of all leaves, solved at once."""
    feature_map = FEATURES.fit(X).feature_map()
    p = feature_map.n_components + 1

    def columns(X):
        Z = np.hstack([feature_map(X), np.ones((len(X), 1))])
        leaves = PARTITION.leaves(X)
        return np.hstack([Z, *((leaves == leaf) * Z for leaf in range(3))])

    penalty = np.concatenate([np.full(p - 1, alpha), [0.0], np.full(3 * p, a)])
    C, W = columns(X), np.ones(N) if weight is None else weight
    coef = np.linalg.solve(C.T @ (C * W[:, None]) + np.diag(penalty), C.T @ (W * Y.T).T)
    return columns(NEW) @ coef


@pytest.mark.parametrize("solver", ["cholesky", "eigh", "auto"])
def test_predictions_are_those_of_one_dense_problem(solver):
    model = regressor(given(), solver=solver, keep_equations=False).fit(X, Y)
    assert_allclose(model.predict(NEW), dense_prediction(Y), atol=1e-9)
    assert model.leaves_.coef.shape == (3, 1, 20)
    assert model.leaves_.alpha == 0.5


def test_weights_count_as_rows():
    weight = np.random.default_rng(1).integers(0, 4, size=N)
    model = regressor(given()).fit(X, Y, sample_weight=weight)
    expected = regressor(given()).fit(np.repeat(X, weight, 0), np.repeat(Y, weight))
    assert_allclose(model.predict(NEW), expected.predict(NEW), atol=1e-9)
    assert_allclose(model.predict(NEW), dense_prediction(Y, weight=weight), atol=1e-9)


def test_several_targets_with_an_alpha_each():
    both = np.column_stack([Y, 100.0 * np.sin(3 * X[:, 1])])
    model = regressor(given(), alphas=[0.01, 1.0], alpha_per_target=True, cv=2)
    model.fit(X, both)
    assert len(model.alpha_) == 2
    for k, alpha in enumerate(model.alpha_):
        expected = dense_prediction(both[:, k], alpha=alpha)
        assert_allclose(model.predict(NEW)[:, k], expected, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("labels", [TWO, THREE])
def test_classes_are_coded_as_without_leaves(labels):
    model = KernelRidgeClassifier(FEATURES, alphas=0.3, leaves=given()).fit(X, labels)
    coded = np.where(labels[:, None] == model.classes_, 1.0, -1.0)
    if len(model.classes_) == 2:
        coded = coded[:, 1]
    assert_allclose(model.decision_function(NEW), dense_prediction(coded), atol=1e-9)
    assert set(model.predict(NEW)) <= set(model.classes_)


def test_several_labels_a_row():
    labels = np.column_stack([Y > 1, X[:, 2] > 0.5]).astype(int)
    model = KernelRidgeClassifier(FEATURES, alphas=0.3, leaves=given()).fit(X, labels)
    expected = dense_prediction(np.where(labels == 1, 1.0, -1.0)) > 0
    assert_array_equal(model.predict(NEW), expected)


def test_sparse_and_single_precision_rows():
    expected = regressor(given()).fit(X, Y).predict(NEW)
    model = regressor(given()).fit(sparse.csr_matrix(X), Y)
    assert_allclose(model.predict(sparse.csr_matrix(NEW)), expected, atol=1e-10)
    single = regressor(given()).fit(X.astype(np.float32), Y)
    found = single.predict(NEW.astype(np.float32))
    assert found.dtype == single.leaves_.coef.dtype == np.float32
    assert_allclose(found, expected, atol=1e-3)
    assert single.predict(NEW).dtype == np.float64


def test_strongly_shrunk_leaves_are_the_model_without():
    model = regressor(given(alpha=1e12)).fit(X, Y)
    expected = regressor(None).fit(X, Y)
    assert_allclose(model.predict(NEW), expected.predict(NEW), atol=1e-8)
    assert_allclose(model.primal_coef_, expected.primal_coef_, atol=1e-7)


def test_without_intercept_leaves_have_none():
    model = regressor(given(), fit_intercept=False).fit(X, Y)
    assert model.intercept_ == 0
    assert not model.leaves_.intercept.any()
    assert model.score(NEW, NEW_Y) > regressor(None).fit(X, Y).score(NEW, NEW_Y)


@pytest.mark.parametrize("leaves", [8, LeafHeads(8), "auto"])
def test_steps_are_found(leaves):
    plain = regressor(None, alphas="auto").fit(X, Y)
    model = regressor(leaves, alphas="auto").fit(X, Y)
    error, before = (1.0 - m.score(NEW, NEW_Y) for m in (model, plain))
    assert error < 0.4 * before
    trials = model.leaves_.trials
    assert trials[0, 0] == 0
    best = trials[np.argmin(trials[:, 2])]
    assert model.leaves_.alpha == best[1]
    assert model.leaves_.n_leaves <= best[0]


def test_no_leaves_where_they_gain_nothing():
    rng = np.random.default_rng(0)
    noise = rng.normal(size=N)
    model = regressor("auto").fit(X, noise)
    expected = regressor(None).fit(X, noise)
    assert model.leaves_.partition is None
    assert model.leaves_.n_leaves == 0
    assert_array_equal(model.predict(NEW), expected.predict(NEW))
    assert_array_equal(model.primal_coef_, expected.primal_coef_)


def test_an_alpha_alone_is_chosen_for_given_trees():
    model = regressor(given(alpha="auto")).fit(X, Y)
    trials = model.leaves_.trials
    assert set(trials[1:, 0]) == {3}
    assert model.leaves_.alpha == trials[np.argmin(trials[:, 2]), 1]
    again = regressor(given(alpha=model.leaves_.alpha)).fit(X, Y)
    assert_allclose(again.predict(NEW), model.predict(NEW), atol=1e-10)


def test_a_number_of_leaves_is_chosen_for_a_given_alpha():
    model = regressor(LeafHeads(alpha=0.5, min_samples_leaf=5)).fit(X, Y)
    assert set(model.leaves_.trials[1:, 1]) == {0.5}
    assert model.leaves_.n_leaves in (16, 64)


def test_bagged_trees_are_the_mean_of_the_fits_with_each():
    model = regressor(given(TWO_TREES)).fit(X, Y)
    each = [regressor(given(TWO_TREES.tree(t))).fit(X, Y).predict(NEW) for t in (0, 1)]
    assert_allclose(model.predict(NEW), np.mean(each, axis=0), atol=1e-10)
    grown = regressor(LeafHeads(6, n_trees=3, alpha=0.5)).fit(X, Y)
    assert grown.leaves_.partition.n_trees == 3
    again = regressor(given(grown.leaves_.partition)).fit(X, Y)
    assert_allclose(again.predict(NEW), grown.predict(NEW), atol=1e-10)


def test_boosted_trees_are_fitted_to_what_is_left_out():
    rate = 0.7
    leaves = LeafHeads(4, n_trees=2, combine="boost", learning_rate=rate, alpha=0.5)
    model = regressor(leaves).fit(X, Y)
    plain = regressor(None).fit(X, Y)
    feature_map, target = model.features_.feature_map(), Y[:, None]
    residuals = common_left_out(
        accumulate(feature_map, X, target),
        np.array([0.3]),
        True,
        feature_map,
        X,
        target,
    )
    expected = (1 - rate) * plain.predict(NEW)
    Z = np.hstack([feature_map(NEW), np.ones((len(NEW), 1))])
    for t in range(2):
        tree = model.leaves_.partition.tree(t)
        own = tree.leaves(X)[:, 0]
        rows = LeafRows(feature_map, X, target, None, own, tree.n_leaves)
        heads = joint_heads(rows, np.array([0.3]), 0.5)
        sums = heads.common + heads.leaves[tree.leaves(NEW)[:, 0]]
        expected += rate * np.einsum("ij,ijk->i", Z, sums)
        left = joint_left_out(rows, np.array([0.3]), 0.5, heads)
        residuals = (1 - rate) * residuals + rate * left
        target = residuals
    assert_allclose(model.predict(NEW), expected, atol=1e-8)


def test_a_splitter_divides_the_rows_for_leaves_too():
    seen = []

    class Splits(KFold):
        def split(self, X, y=None, groups=None):
            for train, test in super().split(X, y, groups):
                seen.append(test)
                yield train, test

    model = regressor(8, cv=Splits(3)).fit(X, Y)
    assert len(seen) == 3
    # What is held out decides, whatever its order.
    again = regressor(8, cv=[*KFold(3).split(X)]).fit(X, Y)
    assert_array_equal(model.leaves_.trials, again.leaves_.trials)
    halves = [(np.arange(300), np.arange(300, 400))]  # not all rows are in it
    apart = regressor(8, cv=halves).fit(X, Y).leaves_
    assert apart.trials[0, 2] != again.leaves_.trials[0, 2]
    assert not np.array_equal(
        regressor(8, cv=3).fit(X, Y).leaves_.trials, again.leaves_.trials
    )


def test_folds_that_are_singular_are_no_reason_to_fail():
    few = slice(0, 24)  # 20 columns; 19 rows in a fold
    model = regressor(LeafHeads(2, min_samples_leaf=8), alphas=1e-13)
    assert np.isfinite(model.fit(X[few], Y[few]).predict(NEW)).all()


@pytest.mark.parametrize("gamma", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("n_leaves", [2, 8])
def test_smooth_kernels_choose_alphas_that_leaves_cannot_bear(gamma, n_leaves):
    rng = np.random.default_rng(0)
    x = rng.uniform(size=(600, 1))
    y = np.where(x[:, 0] < 0.35, np.sin(9 * x[:, 0]), 2.2 - 2 * x[:, 0])
    y += 0.15 * rng.normal(size=len(y))
    features = FourierFeatures(32, gamma=gamma, random_state=0)
    model = KernelRidgeRegressor(features, leaves=LeafHeads(n_leaves)).fit(x, y)
    assert model.alpha_ < 1e-11
    assert np.isfinite(model.leaves_.coef).all()
    assert model.score(x, y) > KernelRidgeRegressor(features).fit(x, y).score(x, y)


def test_the_same_seed_gives_the_same_model():
    leaves = LeafHeads(8, n_trees=2, random_state=3)
    one, two = (regressor(leaves).fit(X, Y).predict(NEW) for _ in range(2))
    assert_array_equal(one, two)
    other = regressor(clone(leaves).set_params(random_state=4)).fit(X, Y)
    assert not np.array_equal(other.predict(NEW), one)


def test_parameters_nest():
    model = regressor(LeafHeads(8))
    model.set_params(leaves__n_leaves=5, leaves__alpha=2.0)
    assert clone(model).fit(X, Y).leaves_.n_leaves == 5


def test_frozen_features_and_learned_ones():
    features = FourierFeatures(6, adapt="auto", random_state=0)
    model = KernelRidgeRegressor(features, leaves=8, cv="gcv").fit(X, Y)
    frozen = KernelRidgeRegressor(
        FrozenEstimator(model.features_), alphas=model.alpha_, leaves=8
    ).fit(X, Y)
    assert_allclose(frozen.predict(NEW), model.predict(NEW), atol=1e-6)


def test_pickles_predict_alike():
    model = regressor(8).fit(X, Y)
    assert_array_equal(
        pickle.loads(pickle.dumps(model)).predict(NEW), model.predict(NEW)
    )


@pytest.mark.parametrize(
    ("leaves", "message"),
    [
        (1, "leaves"),
        ("many", "leaves"),
        (2.5, "leaves"),
        (LeafHeads(1), "n_leaves"),
        (LeafHeads(alpha=0.0), "alpha"),
        (LeafHeads(n_trees=0), "n_trees"),
        (LeafHeads(combine="mean"), "combine"),
        (LeafHeads(learning_rate=1.5), "learning_rate"),
        (LeafHeads(max_features=0.0), "max_features"),
        (LeafHeads(min_samples_leaf=0), "min_samples_leaf"),
        (LeafHeads(partition=[1]), "partition"),
    ],
)
def test_bad_parameters_are_named(leaves, message):
    with pytest.raises(ValueError, match=f"'{message}' parameter"):
        regressor(leaves).fit(X, Y)


def test_what_leaves_cannot_go_with_is_said():
    with pytest.raises(ValueError, match="solver='cg'"):
        regressor(8, solver="cg").fit(X, Y)
    with pytest.raises(ValueError, match="CalibratedClassifierCV"):
        KernelRidgeClassifier(FEATURES, leaves=8, probability=True).fit(X, TWO)
    for fit in (
        lambda model: model.fit(X, Y),
        lambda model: model.fit_stream(ArrayRows(X, Y)),
    ):
        with pytest.raises(ValueError, match="intervals=True are those"):
            fit(regressor(8, intervals=True, alphas=[0.1, 1.0]))
    with pytest.raises(ValueError, match="return_std"):
        regressor(8).fit(X, Y).predict(NEW, return_std=True)
    with pytest.raises(ValueError, match="3 columns"):
        regressor(given()).fit(X[:, :2], Y)
    assert regressor(8).numpy_only().argument == "leaves"


def saved(model, path):
    pytest.importorskip("skops")
    surff.save(model, path)
    return surff.load(path)


@pytest.mark.parametrize(
    "leaves", [8, LeafHeads(4, n_trees=2, alpha=0.5), given(), "auto"]
)
def test_model_files_predict_alike(tmp_path, leaves):
    model = regressor(leaves).fit(X, Y)
    again = saved(model, tmp_path / "model.skops")
    assert_array_equal(again.predict(NEW), model.predict(NEW))
    labels = KernelRidgeClassifier(FEATURES, alphas=0.3, leaves=leaves).fit(X, THREE)
    again = saved(labels, tmp_path / "labels.skops")
    assert_array_equal(again.predict(NEW), labels.predict(NEW))


def test_model_files_without_leaves_chosen(tmp_path):
    model = regressor("auto").fit(X, np.random.default_rng(0).normal(size=N))
    again = saved(model, tmp_path / "model.skops")
    assert_array_equal(again.predict(NEW), model.predict(NEW))


def damaged(name, value):
    model = regressor(given(copy.deepcopy(PARTITION))).fit(X, Y)
    if name in ("feature", "threshold", "left", "right", "roots", "n_features"):
        setattr(model.leaves_.partition, name, value)
    elif name == "n_trees":
        model.leaves = LeafHeads(n_trees=value)
    else:
        model.leaves_ = model.leaves_._replace(**{name: value})
    return model


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("feature", np.array([3, 2, -1, -1, -1]), "below 3"),
        ("threshold", np.array([np.nan, 0.5, 0, 0, 0]), "finite"),
        ("left", np.array([0, 3, -1, -1, -1]), "after theirs"),
        ("right", np.array([2, 99, -1, -1, -1]), "same tree"),
        ("roots", np.array([0, 4]), "same tree"),
        ("n_features", 9, "trees on 3 columns"),
        ("coef", np.zeros((2, 1, 20)), "coef of LeafModel"),
        ("coef", np.full((3, 1, 20), np.nan), "coef of LeafModel"),
        ("coef", np.full((3, 1, 20), 1e305), "below"),
        ("intercept", np.zeros((3, 2)), "intercept of LeafModel"),
        ("alpha", -1.0, "alpha of LeafModel"),
        ("trials", np.zeros(3), "trials of LeafModel"),
        ("partition", None, "coef of LeafModel"),
        ("n_trees", -1, "n_trees"),
    ],
)
def test_damaged_model_files_are_refused(tmp_path, name, value, message):
    pytest.importorskip("skops")
    with pytest.raises(surff.estimators.ModelFileError, match=message):
        saved(damaged(name, value), tmp_path / "model.skops")
