import pickle
import threading
import tracemalloc
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import make_friedman1, make_regression
from sklearn.frozen import FrozenEstimator
from sklearn.kernel_approximation import RBFSampler
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge, RidgeClassifier
from sklearn.metrics import make_scorer, mean_pinball_loss
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    ShuffleSplit,
    StratifiedKFold,
    cross_val_score,
)
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from surff import (
    FourierFeatures,
    KernelRidgeClassifier,
    KernelRidgeRegressor,
    NystroemFeatures,
    RidgeLeverage,
    SurrogateLeverage,
)
from surff.backend import blocks
from surff.linear import EQUATIONS_GRID, SOLVERS, SingularError

ALPHAS = [1e-3, 0.03, 0.7, 20.0]
MODELS = [KernelRidgeRegressor, KernelRidgeClassifier]
models = pytest.mark.parametrize("Model", MODELS)


def features(n_components=16, **parameters):
    return FourierFeatures(
        n_components, **{"gamma": 0.3, "random_state": 0, **parameters}
    )


def problem(n=90, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = np.sin(X[:, 0]) + X[:, 1] ** 2 + 0.2 * rng.normal(size=n) - 2.0
    X.flags.writeable = y.flags.writeable = False
    return X, y


X, Y = problem()
TWO = np.where(np.median(Y) < Y, "yes", "no")
THREE = np.digitize(Y, [-1.7, -0.8]) * 10 - 5
TARGETS = {KernelRidgeRegressor: Y, KernelRidgeClassifier: TWO}
WEIGHT = np.random.default_rng(1).integers(0, 4, size=90)
X.flags.writeable = WEIGHT.flags.writeable = False
SELECTIONS = [
    None,
    "surrogate",
    "leverage",
    SurrogateLeverage(resample="without_replacement", ridge_term=True),
    RidgeLeverage(n_candidates=1.0, resample="reweight"),
]


@pytest.mark.parametrize("solver", sorted(SOLVERS))
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("target", [Y, np.column_stack([Y, Y**2])], ids=["1", "2"])
def test_regression_is_ridge_on_the_features(solver, fit_intercept, target):
    model = KernelRidgeRegressor(
        features(), alphas=0.7, fit_intercept=fit_intercept, solver=solver
    ).fit(X, target)
    ridge = Ridge(0.7, fit_intercept=fit_intercept)
    reference = make_pipeline(features(), ridge).fit(X, target)
    assert model.primal_coef_.shape == np.shape(reference[-1].coef_)
    assert_allclose(model.primal_coef_, reference[-1].coef_, rtol=1e-8)
    expected = reference[-1].intercept_ + np.zeros_like(model.intercept_)
    assert_allclose(model.intercept_, expected, rtol=1e-8)
    assert np.shape(model.intercept_) == target.shape[1:]
    assert_allclose(model.predict(X), reference.predict(X), rtol=1e-8)
    assert model.score(X, target) == pytest.approx(reference.score(X, target), rel=1e-8)
    # alpha is not multiplied by n, nor by n_components.
    wrong = make_pipeline(features(), Ridge(0.7 * 90)).fit(X, target)
    assert abs(model.predict(X) - wrong.predict(X)).max() > 0.01


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize(
    "labels",
    [TWO, TWO == "yes", THREE, THREE.astype(str), THREE.astype(float)],
    ids=["str", "bool", "int", "digits", "float"],
)
def test_classification_is_one_vs_rest_ridge_on_the_features(fit_intercept, labels):
    model = KernelRidgeClassifier(features(), alphas=0.7, fit_intercept=fit_intercept)
    model.fit(X, labels)
    ridge = RidgeClassifier(0.7, fit_intercept=fit_intercept)
    reference = make_pipeline(features(), ridge).fit(X, labels)
    assert_array_equal(model.classes_, reference.classes_)
    assert model.classes_.dtype == labels.dtype
    assert_allclose(model.primal_coef_, np.atleast_2d(reference[-1].coef_), rtol=1e-8)
    n_columns = 1 if len(model.classes_) == 2 else len(model.classes_)
    assert model.primal_coef_.shape == (n_columns, 16)
    assert model.intercept_.shape == (n_columns,)
    decisions = reference.decision_function(X)
    assert_allclose(model.decision_function(X), decisions, rtol=1e-8, atol=1e-10)
    assert_array_equal(model.predict(X), reference.predict(X))
    assert model.predict(X).dtype == labels.dtype


def test_dual_kernel_ridge_on_the_estimated_kernel():
    fitted = features().fit(X)
    Z = fitted.transform(X)
    dual = KernelRidge(alpha=0.7, kernel="precomputed").fit(Z @ Z.T, Y)
    model = KernelRidgeRegressor(features(), alphas=0.7, fit_intercept=False).fit(X, Y)
    assert_allclose(model.predict(X), dual.predict(Z @ Z.T), rtol=1e-8)


def test_converges_to_exact_kernel_ridge():
    alpha, gamma = 2.0, 0.3
    model = KernelRidgeRegressor(
        features(20000, draw="halton"), alphas=alpha, fit_intercept=False, solver="eigh"
    )
    few = X[:40]
    # 40 rows: the dual system is small, and alpha = 2 keeps the primal one regular.
    Z = model.features.fit(few).transform(few)
    K, approximate = rbf_kernel(few, gamma=gamma), Z @ Z.T
    exact = KernelRidge(alpha=alpha, kernel="rbf", gamma=gamma).fit(few, Y[:40])
    ours = approximate @ np.linalg.solve(approximate + alpha * np.eye(40), Y[:40])
    # f - f~ = alpha (K~ + alpha)^-1 (K - K~) (K + alpha)^-1 y.
    error = np.linalg.norm(K - approximate, 2)
    bound = error * np.linalg.norm(Y[:40]) / alpha
    assert np.linalg.norm(ours - exact.predict(few)) <= bound
    assert error < 0.05
    # Half of the bandwidth is a different kernel.
    wrong = KernelRidge(alpha=alpha, kernel="rbf", gamma=gamma / 2).fit(few, Y[:40])
    assert np.linalg.norm(ours - wrong.predict(few)) > bound


def pinball(y, p, sample_weight=None):
    return mean_pinball_loss(y, p, alpha=0.9, sample_weight=sample_weight)


PINBALL = make_scorer(pinball, greater_is_better=False)
SPLITTERS = {
    "k folds": KFold(4, shuffle=True, random_state=0),
    "random halves": ShuffleSplit(3, test_size=0.5, random_state=0),
    "a list": [(np.arange(40, 90), np.arange(20)), (np.arange(50), np.arange(60, 90))],
}


def grid_search(model, ridge, X, y, **fit_params):
    """The same choice by scikit-learn, with the fitted features frozen."""
    pipeline = Pipeline(
        [("features", FrozenEstimator(model.features_)), ("ridge", ridge)]
    )
    search = GridSearchCV(
        pipeline, {"ridge__alpha": ALPHAS}, scoring=model.scoring, cv=model.cv
    ).fit(X, y, **fit_params)
    results = search.cv_results_
    return search, np.column_stack(
        [results[f"split{i}_test_score"] for i in range(search.n_splits_)]
    )


@pytest.mark.parametrize(
    "scoring",
    [None, "r2", "neg_mean_squared_error", "neg_mean_absolute_error", PINBALL],
)
@pytest.mark.parametrize("cv", sorted(SPLITTERS))
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("n_targets", [1, 2])
def test_scores_of_every_fold_equal_grid_search(scoring, cv, fit_intercept, n_targets):
    target = Y if n_targets == 1 else np.column_stack([Y, np.sin(3 * Y) - 2])
    model = KernelRidgeRegressor(
        features(), alphas=ALPHAS, cv=SPLITTERS[cv], scoring=scoring,
        fit_intercept=fit_intercept,
    ).fit(X, target)  # fmt: skip
    search, scores = grid_search(model, Ridge(fit_intercept=fit_intercept), X, target)
    assert_array_equal(model.alpha_path_.alphas, ALPHAS)
    assert_allclose(model.alpha_path_.scores, scores, rtol=1e-8, atol=1e-8)
    assert model.alpha_ == search.best_params_["ridge__alpha"]
    assert model.best_score_ == pytest.approx(search.best_score_, rel=1e-8)
    assert_allclose(model.predict(X), search.predict(X), rtol=1e-7)


def signed_area(y, decision, sample_weight=None):
    """A scorer of one's own on decision values."""
    return np.average(np.where(y == "yes", decision, -decision), weights=sample_weight)


SIGNED_AREA = make_scorer(signed_area, response_method="decision_function")


@pytest.mark.parametrize(
    "scoring",
    [
        None,
        "accuracy",
        "balanced_accuracy",
        "roc_auc",
        "average_precision",
        SIGNED_AREA,
    ],
)
@pytest.mark.parametrize(
    "cv", [4, StratifiedKFold(3), SPLITTERS["random halves"]], ids=str
)
def test_classification_scores_equal_grid_search(scoring, cv):
    labels = TWO
    if scoring == "average_precision":
        labels = (TWO == "yes").astype(int)
    model = KernelRidgeClassifier(
        features(), alphas=ALPHAS, cv=cv, scoring=scoring
    ).fit(X, labels)
    search, scores = grid_search(model, RidgeClassifier(), X, labels)
    assert_allclose(model.alpha_path_.scores, scores, rtol=1e-8, atol=1e-8)
    assert model.best_score_ == pytest.approx(search.best_score_, rel=1e-8)
    # Ties go to the larger alpha here, to the first one there.
    best = scores.mean(axis=1) == scores.mean(axis=1).max()
    assert model.alpha_ == np.array(ALPHAS)[best].max()


@pytest.mark.parametrize("scoring", [None, "accuracy", "f1_macro"])
def test_multiclass_scores_equal_grid_search(scoring):
    model = KernelRidgeClassifier(features(), alphas=ALPHAS, cv=4, scoring=scoring)
    model.fit(X, THREE)
    _, scores = grid_search(model, RidgeClassifier(), X, THREE)
    assert_allclose(model.alpha_path_.scores, scores, rtol=1e-8, atol=1e-8)


def test_ties_go_to_the_larger_alpha():
    # Two far clusters: every alpha classifies all rows.
    far = np.repeat([[0.0], [1.5]], 20, axis=0)
    labels = np.repeat(["low", "high"], 20)
    model = KernelRidgeClassifier(features(gamma=1.0), alphas=ALPHAS).fit(far, labels)
    assert model.best_score_ == 1.0
    assert model.alpha_ == max(ALPHAS)


def test_groups_cannot_be_given():
    with pytest.raises(ValueError, match="'groups' parameter should not be None"):
        KernelRidgeRegressor(features(), cv=GroupKFold(3)).fit(X, Y)


def repeated_folds(weight, folds):
    """The folds of rows that are repeated ``weight`` times."""
    source = np.repeat(np.arange(len(weight)), weight)
    return source, [
        tuple(np.flatnonzero(np.isin(source, rows)) for rows in fold) for fold in folds
    ]


@models
@pytest.mark.parametrize("select", [None, "leverage", "surrogate"])
@pytest.mark.parametrize("dense", [True, False])
def test_weights_repeat_rows(Model, select, dense):
    weight = np.random.default_rng(1).integers(0, 4, size=90)
    folds = list(KFold(4, shuffle=True, random_state=0).split(X))
    source, repeated = repeated_folds(weight, folds)
    form = np.asarray if dense else sparse.csr_array
    target = TARGETS[Model]
    kept = features(gamma="scale", select=select)
    one = Model(kept, alphas=ALPHAS, cv=folds)
    one.fit(form(X), target, sample_weight=weight)
    other = Model(kept, alphas=ALPHAS, cv=repeated).fit(form(X[source]), target[source])
    assert_allclose(one.features_.frequencies_, other.features_.frequencies_, rtol=1e-9)
    assert_allclose(one.alpha_path_.scores, other.alpha_path_.scores, rtol=1e-7)
    assert one.alpha_ == other.alpha_
    assert_allclose(one.primal_coef_, other.primal_coef_, rtol=1e-6)
    assert_allclose(one.intercept_, other.intercept_, rtol=1e-6)
    plain = Model(kept, alphas=ALPHAS, cv=folds).fit(form(X), target)
    assert abs(plain.primal_coef_ - one.primal_coef_).max() > 1e-3


# Every pair of solver, criterion and selection.
@pytest.mark.parametrize(
    ("Model", "solver", "cv", "select"),
    [
        (MODELS[(i + j) % 2], solver, cv, SELECTIONS[(i + k * j) % len(SELECTIONS)])
        for i, solver in enumerate(sorted(SOLVERS))
        for j, cv in enumerate(["gcv", "loo", None])
        for k in (1, 2)
    ],
)
def test_a_weight_repeats_a_row(Model, solver, cv, select):
    """Sk 5364, 15438, 4755: for every solver, criterion and selector."""
    alphas = 0.7 if cv is None else [0.03, 0.7, 20.0]
    model = Model(features(select=select), alphas=alphas, solver=solver, cv=cv or 5)
    one = clone(model).fit(X, TARGETS[Model], sample_weight=WEIGHT)
    rows = np.repeat(np.arange(90), WEIGHT)
    other = clone(model).fit(X[rows], TARGETS[Model][rows])
    assert one.alpha_ == other.alpha_
    assert_allclose(one.primal_coef_, other.primal_coef_, rtol=1e-6, atol=1e-9)
    assert_allclose(one.intercept_, other.intercept_, rtol=1e-6, atol=1e-9)


def test_weights_of_inverse_variance_are_generalised_least_squares():
    """Botorch 1528, 2838: the noise of each row."""
    variance = np.linspace(0.1, 2.0, 90)
    model = KernelRidgeRegressor(features(), alphas=0.7).fit(X, Y, 1 / variance)
    Z = model.features_.transform(X)
    expected = Ridge(0.7).fit(Z, Y, sample_weight=1 / variance)
    assert_allclose(model.primal_coef_, expected.coef_, rtol=1e-8)


@pytest.mark.parametrize(
    "scoring", ["neg_mean_absolute_error", "neg_mean_squared_error"]
)
def test_weights_reach_the_scorer(scoring):
    weight = np.random.default_rng(1).integers(0, 4, size=90)
    folds = list(KFold(4).split(X))
    source, repeated = repeated_folds(weight, folds)
    one = KernelRidgeRegressor(features(), alphas=ALPHAS, cv=folds, scoring=scoring)
    one.fit(X, Y, sample_weight=weight)
    other = KernelRidgeRegressor(
        features(), alphas=ALPHAS, cv=repeated, scoring=scoring
    ).fit(X[source], Y[source])
    assert_allclose(one.alpha_path_.scores, other.alpha_path_.scores, rtol=1e-8)


def test_automatic_alphas_end_inside_on_a_tame_problem():
    tame, target = make_friedman1(400, noise=1.0, random_state=0)
    model = KernelRidgeRegressor(FourierFeatures(64, random_state=0)).fit(tame, target)
    alphas = model.alpha_path_.alphas
    assert alphas[0] < model.alpha_ < alphas[-1]
    assert len(alphas) == len(EQUATIONS_GRID.decades)
    assert np.all(np.diff(alphas) > 0)
    # Half decades, at multiples of the mean eigenvalue of the centred Gram matrix.
    assert_allclose(alphas[1:] / alphas[:-1], 10**0.5)
    Z = model.features_.transform(tame)
    mean = np.trace(len(Z) * np.cov(Z.T, bias=True)) / 64
    assert_allclose(alphas / mean, 10.0**EQUATIONS_GRID.decades, rtol=1e-9)


def test_automatic_alphas_grow_upwards_for_noise():
    noise = np.random.default_rng(0).normal(size=90)
    model = KernelRidgeRegressor(features()).fit(X, noise)
    alphas, best = model.alpha_path_.alphas, model.alpha_path_.scores.mean(axis=1)
    assert len(alphas) > len(EQUATIONS_GRID.decades)
    assert_allclose(alphas[1:] / alphas[:-1], 10**0.5)
    ratio = np.log10(alphas[-1] / alphas[0]) + EQUATIONS_GRID.decades[0]
    assert EQUATIONS_GRID.decades[-1] < ratio <= EQUATIONS_GRID.limits[1] + 1e-9
    # Either the best lies inside now, or the limit is reached.
    assert model.alpha_ < alphas[-1] or ratio == pytest.approx(EQUATIONS_GRID.limits[1])
    assert best[alphas == model.alpha_] == best.max()


def test_automatic_alphas_grow_downwards_for_an_exact_target():
    # The target is a combination of the features: the smallest alpha is the best one.
    fitted = features(6).fit(X)
    target = fitted.transform(X) @ np.arange(1.0, 7.0)
    # The mean absolute error comes from predictions and loses no digits.
    model = KernelRidgeRegressor(features(6), scoring="neg_mean_absolute_error")
    model.fit(X, target)
    alphas = model.alpha_path_.alphas
    assert len(alphas) > len(EQUATIONS_GRID.decades)
    assert model.alpha_ < alphas[-len(EQUATIONS_GRID.decades)] * (1 + 1e-9)
    assert (
        np.log10(alphas[0] / alphas[-1])
        >= EQUATIONS_GRID.limits[0] - EQUATIONS_GRID.decades[-1] - 1e-9
    )
    assert model.score(X, target) == pytest.approx(1, abs=1e-9)


@models
def test_a_single_alpha_is_not_cross_validated(Model):
    # Two rows would be too few for five folds.
    few, target = X[:2], ["no", "yes"] if Model is KernelRidgeClassifier else [0.0, 1.0]
    for alphas in (0.7, [0.7], np.array([0.7]), 1):
        model = Model(features(), alphas=alphas).fit(few, target)
        assert model.alpha_ == np.max(alphas)
        assert model.best_score_ is None
        assert not hasattr(model, "alpha_path_")


@models
def test_fitting_again_forgets_the_path(Model):
    model = Model(features(), alphas=ALPHAS).fit(X, TARGETS[Model])
    model.set_params(alphas=0.7).fit(X, TARGETS[Model])
    assert model.best_score_ is None
    assert not hasattr(model, "alpha_path_")


def test_alphas_are_sorted_and_distinct():
    model = KernelRidgeRegressor(features(), alphas=[20.0, 0.7, 20.0, 0.03]).fit(X, Y)
    assert_array_equal(model.alpha_path_.alphas, [0.03, 0.7, 20.0])


def test_outputs_are_fitted_as_if_alone():
    both = np.column_stack([Y, np.cos(2 * Y)])
    model = KernelRidgeRegressor(features(), alphas=0.7).fit(X, both)
    for j in range(2):
        single = KernelRidgeRegressor(features(), alphas=0.7).fit(X, both[:, j])
        assert_allclose(model.primal_coef_[j], single.primal_coef_, rtol=1e-9)
        assert_allclose(model.predict(X)[:, j], single.predict(X), rtol=1e-9)
    column = KernelRidgeRegressor(features(), alphas=0.7).fit(X, both[:, :1])
    assert column.predict(X).shape == (90, 1)


@models
def test_single_precision_stays_and_is_close(Model):
    """Sk 11000, 24317: predictions keep the type of the data."""
    target = TARGETS[Model]
    single = Model(features(), alphas=0.7).fit(X.astype(np.float32), target)
    double = Model(features(), alphas=0.7).fit(X, target)
    assert single.primal_coef_.dtype == np.float32
    assert single.intercept_.dtype == np.float32
    assert double.primal_coef_.dtype == np.float64
    # Features differ by float32 rounding, a system of condition about 100 amplifies it.
    assert_allclose(single.primal_coef_, double.primal_coef_, rtol=1e-3, atol=1e-4)
    method = "predict" if Model is KernelRidgeRegressor else "decision_function"
    decisions = getattr(single, method)(X.astype(np.float32))
    assert decisions.dtype == np.float32
    assert_allclose(decisions, getattr(double, method)(X), rtol=0, atol=1e-4)


@models
@pytest.mark.parametrize(
    ("form", "maps"),
    [
        (sparse.csr_matrix, features(gamma="scale")),
        (sparse.csc_array, NystroemFeatures(landmarks="leverage", random_state=0)),
        (sparse.coo_matrix, features(select="surrogate")),
    ],
)
def test_sparse_equals_dense(Model, form, maps):
    """Sk 4384, cuML 8334: the result of the same dense rows."""
    holes = np.where(abs(X) > 0.7, X, 0.0)
    target = TARGETS[Model]
    dense = Model(maps, alphas=ALPHAS).fit(holes, target)
    thin = Model(maps, alphas=ALPHAS).fit(form(holes), target)
    assert_allclose(thin.primal_coef_, dense.primal_coef_, rtol=1e-8)
    assert_allclose(thin.alpha_path_.scores, dense.alpha_path_.scores, rtol=1e-8)
    if Model is KernelRidgeRegressor:
        assert_allclose(thin.predict(form(holes)), dense.predict(holes), rtol=1e-8)
    else:
        assert_array_equal(thin.predict(form(holes)), dense.predict(holes))


@models
@pytest.mark.parametrize("scoring", [None, "neg_mean_absolute_error"])
def test_any_block_size_gives_the_same_model(Model, scoring, monkeypatch):
    many, target = problem(n=700)
    if Model is KernelRidgeClassifier:
        target, scoring = np.digitize(target, [-1.7, -0.8]), None
    parameters = {"alphas": ALPHAS, "scoring": scoring}
    one = Model(features(), **parameters).fit(many, target)
    predictions = one.predict(many)
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 1)  # 128 rows a block
    other = Model(features(), **parameters).fit(many, target)
    assert_allclose(other.primal_coef_, one.primal_coef_, rtol=1e-7)
    assert_allclose(other.alpha_path_.scores, one.alpha_path_.scores, rtol=1e-9)
    if Model is KernelRidgeRegressor:
        assert_allclose(other.predict(many), predictions, rtol=1e-8)
    else:
        assert_array_equal(other.predict(many), predictions)


def test_the_default_features_are_the_transformers_defaults():
    model = KernelRidgeRegressor(alphas=0.7).fit(X, Y)
    assert model.features is None
    assert isinstance(model.features_, FourierFeatures)
    assert model.primal_coef_.shape == (256,)


@models
def test_the_callers_features_are_cloned(Model):
    given = features(select=SurrogateLeverage())
    model = Model(given, alphas=0.7).fit(X, TARGETS[Model])
    assert model.features is given
    assert model.features_ is not given
    assert not hasattr(given, "frequencies_")
    assert not hasattr(given.select, "n_features_in_")


@models
def test_features_equal_those_fitted_alone(Model):
    target = TARGETS[Model]
    model = Model(features(select="surrogate"), alphas=0.7).fit(X, target)
    alone = features(select="surrogate").fit(X, target)
    assert_array_equal(model.features_.frequencies_, alone.frequencies_)
    assert_array_equal(model.features_.importance_weights_, alone.importance_weights_)


@models
def test_nested_parameters_and_grid_search(Model):
    model = Model(features(select=SurrogateLeverage()), alphas=ALPHAS, cv=3)
    grid = {
        "features__gamma": [0.1, 0.3],
        "features__select__n_candidates": [1.0, 3.0],
    }
    search = GridSearchCV(model, grid, cv=3).fit(X, TARGETS[Model])
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    best = search.best_estimator_
    assert best.features_.gamma_ == search.best_params_["features__gamma"]
    assert clone(model).get_params()["features__select__n_candidates"] == 4.0


@models
def test_inside_a_pipeline_and_cross_validation(Model):
    pipeline = make_pipeline(StandardScaler(), Model(features(64), alphas=[0.1, 1.0]))
    assert cross_val_score(pipeline, X, TARGETS[Model], cv=3).mean() > 0.5


@models
def test_pandas_input(Model):
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    frame = pandas.DataFrame(X, columns=["a", "b", "c"])
    target = pandas.Series(TARGETS[Model], name="y")
    model = Model(features(), alphas=ALPHAS).fit(frame, target)
    assert list(model.feature_names_in_) == ["a", "b", "c"]
    plain = Model(features(), alphas=ALPHAS).fit(X, TARGETS[Model])
    assert_array_equal(model.predict(frame), plain.predict(X))
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame[["c", "b", "a"]])
    # What was fitted with names takes names: no warning from the nested features.
    assert_array_equal(model.features_.transform(frame), plain.features_.transform(X))


@models
def test_pickles_predict_alike(Model):
    model = Model(features(), alphas=ALPHAS).fit(X, TARGETS[Model])
    again = pickle.loads(pickle.dumps(model))
    assert_array_equal(again.predict(X), model.predict(X))
    assert again.alpha_path_.scores.shape == (4, 5)


@models
def test_says_nothing_and_writes_to_nothing_of_the_callers(Model):
    weight = np.linspace(0.1, 2, 90)
    target = np.array(TARGETS[Model])
    weight.flags.writeable = target.flags.writeable = False
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        Model(features(select="surrogate")).fit(X, target, weight).predict(X)
    assert not caught


def test_concurrent_fits_agree_and_end():
    # Passes share one pool of threads: a task that waited for another would hang here.
    many, target = problem(n=5000)
    model = KernelRidgeRegressor(features(32), alphas=ALPHAS)
    expected = clone(model).fit(many, target).predict(many)
    start = threading.Barrier(8)

    def fit(_):
        start.wait(60)
        return clone(model).fit(many, target).predict(many)

    pool = ThreadPoolExecutor(8)
    for future in [pool.submit(fit, i) for i in range(8)]:
        assert_allclose(future.result(timeout=120), expected, rtol=1e-6)
    pool.shutdown()


@models
def test_memory_does_not_grow_with_rows_times_components(Model):
    n, m = 20000, 256
    many, target = problem(n=n)
    if Model is KernelRidgeClassifier:
        target = target > -1
    model = Model(features(m, select="surrogate"), alphas=[0.1, 1.0])
    clone(model).fit(many[:500], target[:500])  # compiled before memory is watched
    with threadpool_limits(2, user_api="blas"):  # each thread holds a block
        tracemalloc.start()
        model.fit(many, target)
        fitting = tracemalloc.get_traced_memory()[1]
        tracemalloc.reset_peak()
        model.predict(many)
        predicting = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # Z would take 41 MB. Five folds' matrices and those of two threads are 4 MB.
    assert fitting < n * m * 8 / 2
    assert predicting < n * m * 8 / 2


def stacked():
    rows, target = make_regression(5, 20, random_state=0)
    return np.vstack([rows, rows]), np.concatenate([target, target])


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("data", ["two equal rows", "stacked twice"])
def test_no_regularisation_and_a_singular_matrix(data, fit_intercept):
    """Sk 3942, 35016: a clear error that names the way out, which then works."""
    if data == "stacked twice":
        rows, target = stacked()
    else:
        rows, target = np.vstack([X[:5], X[4:5]]), np.append(Y[:5], Y[4])
    model = KernelRidgeRegressor(
        features(40, gamma="scale"), alphas=0.0, fit_intercept=fit_intercept
    )
    with pytest.raises(SingularError, match=r"alpha=0.*choose solver='eigh'"):
        model.fit(rows, target)
    model.set_params(solver="eigh").fit(rows, target)
    Z = model.features_.transform(rows)
    centre = Z.mean(axis=0) if fit_intercept else 0.0
    mean = target.mean() if fit_intercept else 0.0
    expected = np.linalg.pinv(Z - centre, rcond=1e-10) @ (target - mean)
    # The minimum-norm solution, through a Gram matrix of squared condition.
    assert_allclose(
        model.primal_coef_, expected, rtol=0, atol=1e-4 * abs(expected).max()
    )
    assert_allclose(model.predict(rows), target, rtol=0, atol=1e-4 * np.ptp(target))


def test_singular_alphas_are_warned_of_and_left_out():
    # Fewer rows than columns: alpha = 0 is singular for Cholesky.
    model = KernelRidgeRegressor(features(64), alphas=[0.0, 0.7, 20.0])
    message = r"singular to working precision for alphas=\[0.0\]; they were not scored"
    with pytest.warns(UserWarning, match=message):
        model.fit(X[:40], Y[:40])
    assert model.alpha_ > 0
    assert np.isnan(model.alpha_path_.scores[0]).all()
    assert np.isfinite(model.alpha_path_.scores[1:]).all()
    # The other solver scores it.
    model.set_params(solver="eigh").fit(X[:40], Y[:40])
    assert np.isfinite(model.alpha_path_.scores).all()


def test_singular_systems_say_what_to_do():
    message = r"singular to working precision \(alpha=0, 64 columns\); increase alpha"
    with pytest.raises(SingularError, match=message):
        KernelRidgeRegressor(features(64), alphas=0.0).fit(X[:40], Y[:40])
    with pytest.raises(
        ValueError, match=r"no alpha .* could be scored.*alphas=\[0.0, 1e-20"
    ):
        KernelRidgeRegressor(features(64), alphas=[0.0, 1e-20]).fit(X[:40], Y[:40])
    fitted = KernelRidgeRegressor(features(64), alphas=0.0, solver="eigh")
    assert_allclose(fitted.fit(X[:40], Y[:40]).predict(X[:40]), Y[:40], atol=1e-6)


def test_constant_targets_are_predicted():
    model = KernelRidgeRegressor(features()).fit(X, np.full(90, 0.7))
    assert_allclose(model.predict(X), 0.7, rtol=1e-12)
    assert model.best_score_ == pytest.approx(1.0)


def test_constant_features_leave_the_mean():
    model = KernelRidgeRegressor(features(), alphas=[0.1, 1.0]).fit(np.ones((90, 2)), Y)
    assert_allclose(model.predict(np.ones((3, 2))), Y.mean(), rtol=1e-9)


def test_a_target_far_from_zero_loses_no_digits():
    near = KernelRidgeRegressor(features(), alphas=ALPHAS).fit(X, Y)
    far = KernelRidgeRegressor(features(), alphas=ALPHAS).fit(X, Y + 1e6)
    assert_allclose(far.primal_coef_, near.primal_coef_, rtol=1e-6)
    assert_allclose(far.alpha_path_.scores, near.alpha_path_.scores, rtol=1e-6)
    assert_allclose(far.predict(X) - 1e6, near.predict(X), atol=1e-6)


@models
@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"alphas": -1.0}, ValueError, "'alphas' parameter .* Got -1.0"),
        ({"alphas": [0.1, -1.0]}, ValueError, r"alphas must be .*got \[0.1, -1.0\]"),
        ({"alphas": []}, ValueError, r"alphas must be .* non-empty .*got \[\]"),
        ({"alphas": [np.nan, 1.0]}, ValueError, r"alphas must be .*got \[nan, 1.0\]"),
        ({"alphas": np.inf}, ValueError, "alphas must be .*got inf|'alphas' parameter"),
        ({"alphas": "best"}, ValueError, "'alphas' parameter .*'auto'.*Got 'best'"),
        ({"alphas": None}, ValueError, "'alphas' parameter .* Got None"),
        ({"solver": "lu"}, ValueError, "'solver' parameter .*'cholesky'.*Got 'lu'"),
        ({"scoring": "best"}, ValueError, "'best' is not a valid scoring value"),
        ({"cv": "twice"}, ValueError, "'cv' parameter .*Got 'twice'"),
        ({"fit_intercept": "no"}, ValueError, "'fit_intercept' parameter .*Got 'no'"),
        ({"cv": 91}, ValueError, "n_splits=91"),
        ({"features": "fourier"}, ValueError, "'features' parameter .*Got 'fourier'"),
        ({"features": RBFSampler()}, (TypeError, ValueError), "features.*RBFSampler"),
        ({"features": FourierFeatures}, (TypeError, ValueError), "features"),
        ({"features": features(0)}, ValueError, "'n_components' parameter .*Got 0"),
        ({"features": features(-2)}, ValueError, "'n_components' parameter .*Got -2"),
        ({"features": features(gamma=-1.0)}, ValueError, "'gamma' .*Got -1.0"),
        ({"features": features(gamma=0)}, ValueError, "'gamma' parameter .*Got 0"),
        ({"features": features(kernel="poly")}, ValueError, "'kernel' .*Got 'poly'"),
        ({"features": features(draw="sobol7")}, ValueError, "'draw' .*Got 'sobol7'"),
        ({"features": features(select="best")}, ValueError, "'select' .*Got 'best'"),
        ({"features": features(select=SurrogateLeverage(n_candidates=7))}, ValueError,
         "n_candidates must give at least the 8 frequencies to keep, got 7"),
    ],
)  # fmt: skip
def test_bad_parameters_are_named(Model, parameters, error, message):
    with pytest.raises(error, match=message):
        Model(**{"features": features(), **parameters}).fit(X, TARGETS[Model])


@models
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_bad_data_are_named(Model, bad):
    broken = X.copy()
    broken[3, 1] = bad
    model = Model(features(), alphas=0.7)
    with pytest.raises(ValueError, match="Input X contains"):
        model.fit(broken, TARGETS[Model])
    with pytest.raises(ValueError, match="Input X contains"):
        model.fit(X, TARGETS[Model]).predict(broken)
    if Model is KernelRidgeRegressor:
        target = Y.copy()
        target[3] = bad
        with pytest.raises(ValueError, match="Input y contains"):
            model.fit(X, target)


@models
def test_wrong_shapes_are_named(Model):
    model = Model(features(), alphas=0.7)
    target = TARGETS[Model]
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.fit(X, target[:-1])
    with pytest.raises(ValueError, match="Expected 2D array, got 1D array"):
        model.fit(X[:, 0], target)
    with pytest.raises(ValueError, match=r"X has 2 features, but .* 3 features"):
        model.fit(X, target).predict(X[:, :2])
    with pytest.raises(ValueError, match="minimum of 1 is required"):
        model.fit(X[:0], target[:0])


@models
def test_bad_weights_are_named(Model):
    model, target = Model(features(), alphas=0.7), TARGETS[Model]
    with pytest.raises(ValueError, match=r"sample_weight.shape == \(3,\)"):
        model.fit(X, target, np.ones(3))
    with pytest.raises(ValueError, match="Negative values in data"):
        model.fit(X, target, np.full(90, -1.0))
    # The second message is scikit-learn's own, from 1.9 on.
    message = (
        r"sample_weight must have a positive entry|must contain .* non-zero number"
    )
    with pytest.raises(ValueError, match=message):
        model.fit(X, target, np.zeros(90))


@models
def test_fewer_rows_than_folds_is_an_error(Model):
    target = np.array(["no", "yes", "no"]) if Model is KernelRidgeClassifier else Y[:3]
    with pytest.raises(ValueError, match="n_splits=5"):
        Model(features(), alphas=ALPHAS).fit(X[:3], target)


@pytest.mark.parametrize(
    "labels", [(-1, 1), (1, 2), (0, 1), ("a", "b"), (False, True), (2.0, -3.0)]
)
def test_any_labels(labels):
    """Rfflearn: labels -1 and 1 were silently mis-trained."""
    first, second = labels
    target = np.array([second if yes else first for yes in TWO == "yes"])
    model = KernelRidgeClassifier(features(64), alphas=[0.1, 1.0]).fit(X, target)
    reference = KernelRidgeClassifier(features(64), alphas=[0.1, 1.0]).fit(X, TWO)
    assert_array_equal(model.predict(X) == second, reference.predict(X) == "yes")
    assert model.score(X, target) > 0.85
    assert set(model.predict(X)) <= set(target)


@pytest.mark.parametrize(
    ("cv", "select"), [(3, "surrogate"), ("gcv", None), ("loo", "surrogate")]
)
def test_multilabel_indicators_are_fitted_label_by_label(cv, select):
    """Sk 19882: a matrix of zeros and ones is fitted label by label."""
    labels = np.column_stack([Y > -1.5, X[:, 0] > 0, X[:, 2] > 0.3]).astype(int)
    model = KernelRidgeClassifier(features(select=select), alphas=[0.7, 20.0], cv=cv)
    predicted = model.fit(X, labels).predict(X)
    assert predicted.shape == labels.shape
    Z = model.features_.transform(X)
    expected = Ridge(model.alpha_).fit(Z, 2 * labels - 1).predict(Z) > 0
    assert_array_equal(predicted, expected)


def test_one_class_is_an_error():
    message = "y must hold at least two classes, got one class: 'yes'"
    with pytest.raises(ValueError, match=message):
        KernelRidgeClassifier(features()).fit(X, np.full(90, "yes"))


def test_numbers_are_no_labels():
    with pytest.raises(ValueError, match="Unknown label type: continuous"):
        KernelRidgeClassifier(features()).fit(X, Y)


def test_scorers_of_probabilities_are_an_error():
    model = KernelRidgeClassifier(features(), alphas=ALPHAS, scoring="neg_log_loss")
    with pytest.raises((AttributeError, ValueError), match="predict_proba"):
        model.fit(X, TWO)
