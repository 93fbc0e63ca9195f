"""Learning in pieces: `partial_fit`, and merging of independent parts."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator

from surff import FourierFeatures, KernelRidgeClassifier, KernelRidgeRegressor
from surff.linear import NormalEquations, accumulate, solve

MODELS = [KernelRidgeRegressor, KernelRidgeClassifier]
models = pytest.mark.parametrize("Model", MODELS)

N = 1500
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 3))
Y = np.sin(X[:, 0]) + X[:, 1] ** 2 + 0.2 * RNG.normal(size=N) + 5.0
THREE = np.digitize(Y, [5.3, 6.2]) * 10 - 5
LABELS = np.column_stack([Y > 5.5, X[:, 0] > 0, X[:, 2] > 0.3]).astype(int)
WEIGHT = RNG.integers(0, 4, size=N)
TARGETS = {KernelRidgeRegressor: Y, KernelRidgeClassifier: THREE}
CLASSES = {KernelRidgeRegressor: {}, KernelRidgeClassifier: {"classes": [-5, 5, 15]}}
for array in (X, Y, THREE, LABELS, WEIGHT):
    array.flags.writeable = False


def features(n_components=16, **parameters):
    return FourierFeatures(
        n_components, **{"gamma": 0.3, "random_state": 0, **parameters}
    )


def in_pieces(model, n_blocks, target, weight=None, seed=1, data=X, **options):
    """Fit shuffled rows in blocks of different lengths, in shuffled order."""
    rng = np.random.default_rng(seed)
    cuts = np.sort(rng.choice(np.arange(1, N), n_blocks - 1, replace=False))
    blocks = np.split(rng.permutation(N), cuts)
    for i in rng.permutation(n_blocks):
        rows = blocks[i]
        part = None if weight is None else weight[rows]
        if part is not None and not part.any():
            continue
        model.partial_fit(data[rows], target[rows], sample_weight=part, **options)
    return model


def why_not(model):
    """Why a model has no `partial_fit`."""
    assert not hasattr(model, "partial_fit")
    with pytest.raises(AttributeError, match="no attribute 'partial_fit'") as error:
        model.partial_fit(X, Y)
    return str(error.value.__cause__)


def assert_same(model, reference, rtol=1e-10):
    """Coefficients and intercepts agree relative to their largest."""
    for name in ("primal_coef_", "intercept_"):
        ours, theirs = getattr(model, name), getattr(reference, name)
        assert np.shape(ours) == np.shape(theirs)
        assert_allclose(ours, theirs, rtol=0, atol=rtol * np.abs(theirs).max())


@models
@pytest.mark.parametrize("n_blocks", [1, 7, 200])
@pytest.mark.parametrize("weighted", [False, True])
def test_any_partition_equals_one_fit(Model, n_blocks, weighted):
    weight = WEIGHT if weighted else None
    reference = Model(features(), alphas=0.7).fit(X, TARGETS[Model], weight)
    model = Model(features(), alphas=0.7)
    in_pieces(model, n_blocks, TARGETS[Model], weight, **CLASSES[Model])
    # Sums of 1,500 rows in another order, a system of condition about 1e3.
    assert_same(model, reference)
    assert model.equations_.weight_sum == (WEIGHT.sum() if weighted else N)
    assert_allclose(
        model.features_.frequencies_, reference.features_.frequencies_, rtol=0
    )
    assert_array_equal(model.predict(X[:9]).shape, reference.predict(X[:9]).shape)


@models
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("solver", ["cholesky", "eigh"])
def test_any_partition_for_every_solver(Model, fit_intercept, solver):
    options = {"alphas": 0.7, "fit_intercept": fit_intercept, "solver": solver}
    reference = Model(features(), **options).fit(X, TARGETS[Model])
    model = in_pieces(Model(features(), **options), 7, TARGETS[Model], **CLASSES[Model])
    assert_same(model, reference)


@models
@pytest.mark.parametrize("alphas", ["auto", [0.01, 0.7, 20.0]])
def test_alphas_are_chosen_by_gcv(Model, alphas):
    model = Model(features(), alphas=alphas)
    in_pieces(model, 7, TARGETS[Model], **CLASSES[Model])
    reference = Model(features(), alphas=alphas, cv="gcv").fit(X, TARGETS[Model])
    assert model.alpha_ == pytest.approx(reference.alpha_, rel=1e-9)
    assert model.best_score_ == pytest.approx(reference.best_score_, rel=1e-9)
    assert_allclose(model.alpha_path_.scores, reference.alpha_path_.scores, rtol=1e-9)
    assert_same(model, reference, 1e-8)


def test_several_targets_with_an_alpha_each():
    both = np.column_stack([Y, np.random.default_rng(2).normal(size=N)])
    options = {"alphas": "auto", "alpha_per_target": True}
    model = in_pieces(KernelRidgeRegressor(features(), **options), 7, both)
    reference = KernelRidgeRegressor(features(), cv="gcv", **options).fit(X, both)
    assert_allclose(model.alpha_, reference.alpha_, rtol=1e-9)
    assert_same(model, reference, 1e-8)


@models
def test_going_on_after_a_fit(Model):
    target = TARGETS[Model]
    reference = Model(features(), alphas=0.7).fit(X, target)
    model = Model(features(), alphas=0.7).fit(X[:400], target[:400])
    model.partial_fit(X[400:], target[400:])
    assert_same(model, reference)
    # And after another fit it begins anew.
    model.fit(X, target)
    assert_array_equal(model.primal_coef_, reference.primal_coef_)


@models
def test_going_on_without_equations_is_an_error(Model):
    model = Model(features(), alphas=0.7, keep_equations=False)
    model.fit(X, TARGETS[Model])
    assert not hasattr(model, "equations_")
    assert why_not(model) == (
        "partial_fit needs the normal equations: keep_equations must be True, got False"
    )
    model.set_params(keep_equations=True)
    with pytest.raises(ValueError, match="fit with keep_equations=True"):
        model.partial_fit(X, TARGETS[Model])


@models
def test_sparse_and_single_precision_pieces(Model):
    holes = np.where(abs(X) > 0.7, X, 0.0)
    target = TARGETS[Model]
    reference = Model(features(), alphas=0.7).fit(holes, target)
    thin = in_pieces(
        Model(features(), alphas=0.7), 7, target, data=sparse.csr_array(holes),
        **CLASSES[Model],
    )  # fmt: skip
    assert_same(thin, reference)
    single = in_pieces(
        Model(features(), alphas=0.7), 7, target, data=holes.astype(np.float32),
        **CLASSES[Model],
    )  # fmt: skip
    assert single.primal_coef_.dtype == np.float32
    assert_same(single, reference, 1e-3)


@models
def test_data_dependent_features_are_fitted_to_the_first_piece(Model):
    target, first = TARGETS[Model], slice(0, 500)
    chosen = features(select="surrogate", gamma="scale")
    model = Model(chosen, alphas=0.7)
    model.partial_fit(X[first], target[first], **CLASSES[Model])
    model.partial_fit(X[500:], target[500:])
    alone = clone(chosen).fit(X[first], target[first])
    assert_array_equal(model.features_.frequencies_, alone.frequencies_)
    frozen = Model(FrozenEstimator(alone), alphas=0.7)
    assert_same(model, frozen.fit(X, target))


@models
@pytest.mark.parametrize("select", ["leverage", "surrogate"])
def test_any_partition_with_frozen_features(Model, select):
    target = TARGETS[Model]
    fitted = features(select=select).fit(X[:500], target[:500])
    reference = Model(FrozenEstimator(fitted), alphas=0.7).fit(X, target)
    model = Model(FrozenEstimator(fitted), alphas=0.7)
    in_pieces(model, 7, target, **CLASSES[Model])
    assert model.features_ is fitted
    assert_same(model, reference)


@pytest.mark.parametrize("n_parts", [2, 7, 1000])
def test_merged_parts_give_the_coefficients_of_a_fit(n_parts):
    reference = KernelRidgeRegressor(features(), alphas=0.7).fit(X, Y)
    feature_map = reference.features_.feature_map()
    offset = Y[0]
    rows = np.array_split(np.random.default_rng(3).permutation(N), n_parts)
    parts = [accumulate(feature_map, X[some], Y[some, None] - offset) for some in rows]
    total = NormalEquations(16, 1)
    for part in parts[::-1]:
        total.merge(part)
    coef, intercept = solve(total.centred(True), 0.7)
    scale = abs(reference.primal_coef_).max()
    assert_allclose(coef[:, 0], reference.primal_coef_, rtol=0, atol=1e-10 * scale)
    assert intercept[0] + offset == pytest.approx(reference.intercept_, rel=1e-10)
    # What two fits kept can be merged as well.
    one, other = (
        KernelRidgeRegressor(features(), alphas=0.7, fit_intercept=False).fit(
            X[half], Y[half]
        )
        for half in (slice(0, 600), slice(600, None))
    )
    coef, _ = solve(one.equations_.merge(other.equations_).centred(False), 0.7)
    whole = KernelRidgeRegressor(features(), alphas=0.7, fit_intercept=False)
    whole.fit(X, Y)
    scale = abs(whole.primal_coef_).max()
    assert_allclose(coef[:, 0], whole.primal_coef_, rtol=0, atol=1e-10 * scale)


# -- classes ---------------------------------------------------------------------------


def test_a_piece_with_one_class_only():
    order = np.argsort(THREE, kind="stable")
    model = KernelRidgeClassifier(features(), alphas=0.7)
    for rows in np.array_split(order, 9):
        model.partial_fit(X[rows], THREE[rows], classes=[15, -5, 5])
        assert_array_equal(model.classes_, [-5, 5, 15])
        assert model.decision_function(X[:4]).shape == (4, 3)
    assert_same(model, KernelRidgeClassifier(features(), alphas=0.7).fit(X, THREE))


def test_two_classes_as_strings():
    labels = np.where(Y > 5.5, "yes", "no")
    model = KernelRidgeClassifier(features(), alphas=0.7)
    in_pieces(model, 7, labels, classes=["yes", "no"])
    reference = KernelRidgeClassifier(features(), alphas=0.7).fit(X, labels)
    assert_same(model, reference)
    assert_array_equal(model.predict(X), reference.predict(X))


def test_classes_may_be_left_out_when_the_first_piece_has_them_all():
    model = KernelRidgeClassifier(features(), alphas=0.7)
    model.partial_fit(X[:500], THREE[:500])
    model.partial_fit(X[500:], THREE[500:])
    assert_same(model, KernelRidgeClassifier(features(), alphas=0.7).fit(X, THREE))


def test_classes_are_checked():
    model = KernelRidgeClassifier(features(), alphas=0.7)
    with pytest.raises(ValueError, match="at least two classes, got one class: 15"):
        model.partial_fit(X[:3], [15, 15, 15])
    model = KernelRidgeClassifier(features(), alphas=0.7)
    model.partial_fit(X[:9], THREE[:9], classes=[-5, 5, 15])
    before = model.primal_coef_.copy()
    with pytest.raises(ValueError, match=r"classes=\[-5, 5, 15\], got \[7, 99\]"):
        model.partial_fit(X[:4], [7, 99, 5, 5])
    with pytest.raises(ValueError, match=r"classes must stay \[-5, 5, 15\].*got \[5"):
        model.partial_fit(X[:4], THREE[:4], classes=[5, 15])
    assert_array_equal(model.primal_coef_, before)
    assert model.equations_.weight_sum == 9


def test_multilabel_pieces():
    model = in_pieces(KernelRidgeClassifier(features(), alphas=0.7), 7, LABELS)
    reference = KernelRidgeClassifier(features(), alphas=0.7).fit(X, LABELS)
    assert_same(model, reference)
    assert_array_equal(model.predict(X), reference.predict(X))


# -- errors ----------------------------------------------------------------------------


def test_the_shape_of_the_target_must_stay():
    model = KernelRidgeRegressor(features(), alphas=0.7).partial_fit(X, Y)
    with pytest.raises(ValueError, match=r"y must have 1 column.* got 2"):
        model.partial_fit(X, np.column_stack([Y, Y]))
    model = KernelRidgeClassifier(features(), alphas=0.7).partial_fit(X, LABELS)
    with pytest.raises(ValueError, match=r"y must have 3 columns.* got 1"):
        model.partial_fit(X, LABELS[:, 0])
    with pytest.raises(ValueError, match=r"y must have 3 columns.* got 2"):
        model.partial_fit(X, LABELS[:, :2])
    three_rows = X[:3]  # as many rows as labels
    with pytest.raises(ValueError, match=r"y must have 3 columns.* got 1"):
        model.partial_fit(three_rows, LABELS[:3, 0])
    model = KernelRidgeClassifier(features(), alphas=0.7).partial_fit(X, THREE)
    with pytest.raises(ValueError, match=r"y must have 1 column.* got 3"):
        model.partial_fit(X, LABELS)


@models
def test_other_columns_are_refused(Model):
    model = Model(features(), alphas=0.7).partial_fit(X, TARGETS[Model])
    with pytest.raises(ValueError, match=r"X has 2 features, but .* 3 features"):
        model.partial_fit(X[:, :2], TARGETS[Model])


@models
def test_what_needs_all_rows_at_once_is_refused(Model):
    message = why_not(Model(features(), gammas="auto"))
    assert message.startswith("gammas needs several passes")
    assert message.endswith("set it to None, got 'auto'")
    with pytest.raises(ValueError, match="alphas must be positive for cv='gcv'"):
        Model(features(), alphas=[0.0, 1.0]).partial_fit(X, TARGETS[Model])


def test_probabilities_need_all_rows_at_once():
    model = KernelRidgeClassifier(features(), alphas=0.7, probability=True)
    assert why_not(model).startswith("probability=True needs predictions of rows left")


def test_deviations_follow_the_pieces():
    model = KernelRidgeRegressor(features(), alphas=0.7).partial_fit(X[:300], Y[:300])
    _, wide = model.predict(X[:5], return_std=True)
    model.partial_fit(X[300:], Y[300:])
    _, narrow = model.predict(X[:5], return_std=True)
    reference = KernelRidgeRegressor(features(), alphas=0.7).fit(X, Y)
    assert_allclose(narrow, reference.predict(X[:5], return_std=True)[1], rtol=1e-9)
    assert not np.allclose(wide, narrow, rtol=1e-6)
