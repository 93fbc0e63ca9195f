"""Choosing alpha and gamma: GCV, leave-one-out, one alpha a target, gammas."""

import re
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import linalg
from sklearn.base import clone
from sklearn.datasets import make_regression
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import Ridge, RidgeClassifier, RidgeCV
from sklearn.metrics import accuracy_score, mean_absolute_error, r2_score, roc_auc_score
from sklearn.model_selection import KFold

from surff import (
    FourierFeatures,
    KernelRidgeClassifier,
    KernelRidgeRegressor,
    SurrogateLeverage,
)
from surff.estimators._alphas import scored_path
from surff.linear import SOLVERS, NormalEquations, Solving, best_index, cholesky
from surff.linear.criteria import CriterionOfEquations
from surff.selection import Selection

ALPHAS = [1e-3, 0.03, 0.7, 20.0]
MODELS = [KernelRidgeRegressor, KernelRidgeClassifier]
models = pytest.mark.parametrize("Model", MODELS)
intercepts = pytest.mark.parametrize("fit_intercept", [False, True])
FOLDS = KFold(4, shuffle=True, random_state=0)

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = np.sin(X[:, 0]) + X[:, 1] ** 2 + 0.2 * RNG.normal(size=60) - 2.0
BOTH = np.column_stack([Y, np.where(Y > -1.5, 3.0, -1.0) + RNG.normal(size=60)])
TWO = np.where(np.median(Y) < Y, "yes", "no")
THREE = np.digitize(Y, [-1.7, -0.8]) * 10 - 5
WEIGHT = RNG.integers(0, 4, size=60)
REPEATED = np.repeat(np.arange(60), WEIGHT)
TARGETS = {KernelRidgeRegressor: Y, KernelRidgeClassifier: TWO}
for array in (X, Y, BOTH, TWO, THREE, WEIGHT):
    array.flags.writeable = False


def features(n_components=16, **parameters):
    return FourierFeatures(
        n_components, **{"gamma": 0.3, "random_state": 0, **parameters}
    )


def gcv_error(Z, y, alpha, fit_intercept):
    """From the hat matrix, written out."""
    n = len(y)
    mean = np.full((n, n), 1.0 / n) if fit_intercept else np.zeros((n, n))
    C = Z - mean @ Z
    H = C @ np.linalg.solve(C.T @ C + alpha * np.eye(Z.shape[1]), C.T) + mean
    residual = y - H @ y
    return np.mean(residual**2, axis=0) / (1.0 - np.trace(H) / n) ** 2


def left_out(ridge, Z, y, method="predict", rows=None):
    """Predictions of each row by a model that is fitted to all the others."""
    rows = range(len(y)) if rows is None else rows
    everything = np.arange(len(y))
    return np.array(
        [
            getattr(clone(ridge).fit(Z[others], y[others]), method)(Z[[i]])[0]
            for i in rows
            for others in [everything != i]
        ]
    )


@intercepts
@pytest.mark.parametrize("target", [Y, BOTH], ids=["1", "2"])
@pytest.mark.parametrize("weighted", [False, True])
def test_gcv_scores_equal_the_hat_matrix(fit_intercept, target, weighted):
    model = KernelRidgeRegressor(
        features(), alphas=ALPHAS, cv="gcv", fit_intercept=fit_intercept
    ).fit(X, target, sample_weight=WEIGHT if weighted else None)
    rows = REPEATED if weighted else slice(None)
    Z = model.features_.transform(X[rows])
    errors = [gcv_error(Z, target[rows], alpha, fit_intercept) for alpha in ALPHAS]
    expected = [-np.mean(error) for error in errors]
    assert model.alpha_path_.scores.shape == (4, 1)
    assert_allclose(model.alpha_path_.scores[:, 0], expected, rtol=1e-8)
    assert model.alpha_ == ALPHAS[np.argmax(expected)]
    assert model.best_score_ == pytest.approx(max(expected), rel=1e-8)


def test_gcv_takes_labels_as_signs():
    model = KernelRidgeClassifier(features(), alphas=ALPHAS, cv="gcv").fit(X, THREE)
    Z = model.features_.transform(X)
    signs = np.where(THREE[:, None] == model.classes_, 1.0, -1.0)
    expected = [-gcv_error(Z, signs, alpha, True).mean() for alpha in ALPHAS]
    assert_allclose(model.alpha_path_.scores[:, 0], expected, rtol=1e-8)


def test_gcv_and_leave_one_out_are_two_things():
    """Sk 18079: each is what it is called."""
    by_gcv, by_loo = (
        KernelRidgeRegressor(
            features(),
            alphas=ALPHAS,
            cv=cv,
            scoring=None if cv == "gcv" else "neg_mean_squared_error",
        ).fit(X, Y)
        for cv in ("gcv", "loo")
    )
    gap = abs(by_gcv.alpha_path_.scores / by_loo.alpha_path_.scores - 1)
    assert gap.min() > 1e-4


@intercepts
@pytest.mark.parametrize("target", [Y, BOTH], ids=["1", "2"])
def test_leave_one_out_equals_ridge_cv(fit_intercept, target):
    model = KernelRidgeRegressor(
        features(), alphas=ALPHAS, cv="loo", fit_intercept=fit_intercept,
        scoring="neg_mean_squared_error",
    ).fit(X, target)  # fmt: skip
    reference = RidgeCV(
        ALPHAS, fit_intercept=fit_intercept, scoring=None, store_cv_results=True
    ).fit(model.features_.transform(X), target)
    errors = reference.cv_results_.reshape(-1, len(ALPHAS)).mean(axis=0)
    assert_allclose(model.alpha_path_.scores[:, 0], -errors, rtol=1e-8)
    assert model.alpha_ == reference.alpha_
    assert model.best_score_ == pytest.approx(reference.best_score_, rel=1e-8)
    assert_allclose(model.primal_coef_, reference.coef_, rtol=1e-7)


@intercepts
@pytest.mark.parametrize("scoring", [None, "neg_mean_absolute_error"])
@pytest.mark.parametrize("weighted", [False, True])
def test_leave_one_out_equals_refits(fit_intercept, scoring, weighted):
    model = KernelRidgeRegressor(
        features(), alphas=[0.03, 20.0], cv="loo", scoring=scoring,
        fit_intercept=fit_intercept,
    ).fit(X, Y, sample_weight=WEIGHT if weighted else None)  # fmt: skip
    # A row of weight w is w rows, one of which is left out at a time.
    rows = REPEATED if weighted else np.arange(60)
    Z = model.features_.transform(X[rows])
    for alpha, score in zip(*model.alpha_path_, strict=True):
        ridge = Ridge(alpha, fit_intercept=fit_intercept, solver="cholesky")
        predictions = left_out(ridge, Z, Y[rows])
        expected = (
            r2_score(Y[rows], predictions)
            if scoring is None
            else -mean_absolute_error(Y[rows], predictions)
        )
        assert_allclose(score, [expected], rtol=1e-8)


@pytest.mark.parametrize("labels", [TWO, THREE], ids=["two", "three"])
@pytest.mark.parametrize("weighted", [False, True])
def test_leave_one_out_accuracy_equals_refits(labels, weighted):
    model = KernelRidgeClassifier(features(), alphas=[0.03, 20.0], cv="loo").fit(
        X, labels, sample_weight=WEIGHT if weighted else None
    )
    rows = REPEATED if weighted else np.arange(60)
    Z = model.features_.transform(X[rows])
    for alpha, score in zip(*model.alpha_path_, strict=True):
        predictions = left_out(RidgeClassifier(alpha), Z, labels[rows])
        assert_allclose(score, [accuracy_score(labels[rows], predictions)], rtol=1e-12)


def test_leave_one_out_takes_any_scorer():
    model = KernelRidgeClassifier(
        features(), alphas=[0.7, 20.0], cv="loo", scoring="roc_auc"
    ).fit(X, TWO)
    Z = model.features_.transform(X)
    for alpha, score in zip(*model.alpha_path_, strict=True):
        decisions = left_out(RidgeClassifier(alpha), Z, TWO, "decision_function")
        assert_allclose(score, [roc_auc_score(TWO, decisions)], rtol=1e-12)


@models
@pytest.mark.parametrize("cv", ["gcv", "loo"])
def test_automatic_alphas_grow_without_folds_too(Model, cv):
    model = Model(features(), cv=cv).fit(X, TARGETS[Model])
    assert np.isfinite(model.alpha_path_.scores).all()
    best = model.alpha_path_.scores[:, 0].max()
    assert model.best_score_ == pytest.approx(best, rel=1e-12)


@pytest.mark.parametrize("cv", ["gcv", "loo"])
def test_more_columns_than_rows(cv):
    model = KernelRidgeRegressor(features(100), alphas=ALPHAS, cv=cv).fit(X, Y)
    Z = model.features_.transform(X)
    if cv == "gcv":
        expected = [-gcv_error(Z, Y, alpha, True) for alpha in ALPHAS]
    else:
        expected = [r2_score(Y, left_out(Ridge(alpha), Z, Y)) for alpha in ALPHAS]
    assert_allclose(model.alpha_path_.scores[:, 0], expected, rtol=1e-6)


def test_gcv_has_a_score_of_its_own():
    model = KernelRidgeRegressor(features(), alphas=ALPHAS, cv="gcv", scoring="r2")
    with pytest.raises(ValueError, match=r"cv='gcv' minimises .* None, got 'r2'"):
        model.fit(X, Y)


@models
@pytest.mark.parametrize("cv", ["gcv", "loo"])
@pytest.mark.parametrize("extra", [{}, {"gammas": [0.1, 0.3]}])
def test_zero_alphas_are_explained_without_folds(Model, cv, extra):
    """Sk 23074: fine for folds, an explained error for the two formulas."""
    model = Model(features(), alphas=[0.0, 0.7], cv=3, **extra)
    model.fit(X, TARGETS[Model])
    assert np.isfinite(model.alpha_path_.scores).all()
    alphas = 0.0 if extra else [0.0, 1.0]
    model = Model(features(), alphas=alphas, cv=cv, **extra)
    with pytest.raises(ValueError, match=f"alphas must be positive for cv='{cv}'"):
        model.fit(X, TARGETS[Model])


@models
@pytest.mark.parametrize("cv", ["gcv", "loo"])
def test_weights_that_count_less_than_a_row_are_explained(Model, cv):
    # A sum of 1 is one row: nothing is left once it is taken out.
    model = Model(features(), alphas=ALPHAS, cv=cv)
    with pytest.raises(ValueError, match=rf"cv='{cv}'.* counts .* rows.*; scale"):
        model.fit(X, TARGETS[Model], sample_weight=np.full(60, 1 / 60))


@models
@pytest.mark.parametrize("cv", ["gcv", "loo"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_no_alpha_is_chosen_that_the_solver_cannot_solve_for(Model, cv, dtype):
    # 200 columns of rank 59: eigenvalues of the rest are rounding of either sign, and
    # a target without noise wants no regularisation.
    rows = X.astype(dtype)
    target = X[:, 0] if Model is KernelRidgeRegressor else X[:, 0] > 0
    model = Model(features(200), cv=cv).fit(rows, target)
    assert np.isfinite(model.primal_coef_).all()
    scores = model.alpha_path_.scores[:, 0]
    if dtype == np.float32:
        assert np.isnan(scores[0])
    scored = scores[np.isfinite(scores)]
    assert model.best_score_ == scored.max()
    # None is scored below one that is not: the grid ascends.
    assert np.all(np.diff(np.isnan(scores).astype(int)) <= 0)
    # What eigenvectors can solve for is scored all the way down.
    model.set_params(solver="eigh", alphas=[0.03, 0.7]).fit(rows, target)
    assert np.isfinite(model.alpha_path_.scores).all()


def test_a_single_row_cannot_be_left_out():
    for cv in ("gcv", "loo"):
        model = KernelRidgeRegressor(features(), alphas=ALPHAS, cv=cv)
        with pytest.raises(ValueError, match="need two rows, got n_samples=1"):
            model.fit(X[:1], Y[:1])


# -- one alpha a target ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("cv", "scoring"),
    [
        (FOLDS, "neg_mean_squared_error"),
        (FOLDS, None),
        (KFold(3), "r2"),
        ("gcv", None),
        ("loo", None),
        ("loo", "neg_mean_squared_error"),
    ],
    ids=str,
)
@pytest.mark.parametrize("weighted", [False, True])
def test_an_alpha_a_target_equals_separate_fits(cv, scoring, weighted):
    # A smooth target and pure noise want different alphas.
    target = np.column_stack([Y, RNG_NOISE, 3 * Y])
    weight = WEIGHT + 1 if weighted else None
    options = {"alphas": ALPHAS, "cv": cv, "scoring": scoring}
    model = KernelRidgeRegressor(features(), alpha_per_target=True, **options)
    model.fit(X, target, weight)
    assert model.alpha_.shape == (3,)
    assert model.alpha_path_.scores.shape[0] == 4
    assert model.alpha_path_.scores.shape[2] == 3
    scores = []
    for j in range(3):
        alone = KernelRidgeRegressor(features(), **options)
        alone.fit(X, target[:, j], weight)
        assert model.alpha_[j] == alone.alpha_
        assert_allclose(
            model.alpha_path_.scores[:, :, j], alone.alpha_path_.scores, rtol=1e-8
        )
        assert_allclose(model.primal_coef_[j], alone.primal_coef_, rtol=1e-8)
        assert model.intercept_[j] == pytest.approx(alone.intercept_, rel=1e-8)
        assert_allclose(model.predict(X)[:, j], alone.predict(X), rtol=1e-7)
        scores.append(alone.best_score_)
    assert model.best_score_ == pytest.approx(np.mean(scores), rel=1e-8)
    assert len(set(model.alpha_)) > 1


RNG_NOISE = np.random.default_rng(3).normal(size=60)


def test_an_alpha_a_target_grows_for_each():
    target = np.column_stack([Y, RNG_NOISE])
    model = KernelRidgeRegressor(features(), alpha_per_target=True).fit(X, target)
    assert model.alpha_[1] > 10 * model.alpha_[0]
    one = KernelRidgeRegressor(features(), alpha_per_target=True).fit(X, Y)
    plain = KernelRidgeRegressor(features()).fit(X, Y)
    assert_allclose(one.primal_coef_, plain.primal_coef_, rtol=1e-10)
    assert one.predict(X).shape == (60,)


def test_an_alpha_a_target_needs_a_score_of_each():
    model = KernelRidgeRegressor(
        features(),
        alphas=ALPHAS,
        alpha_per_target=True,
        scoring="neg_mean_absolute_error",
    )
    message = "alpha_per_target needs .* got 'neg_mean_absolute_error'"
    with pytest.raises(ValueError, match=message):
        model.fit(X, BOTH)


# -- gamma -----------------------------------------------------------------------------

GAMMAS = [0.01, 0.3, 9.0]


@models
@pytest.mark.parametrize("cv", [FOLDS, "gcv", "loo"], ids=str)
@pytest.mark.parametrize("select", [None, "surrogate"])
def test_gammas_equal_a_loop_of_fits(Model, cv, select):
    model = Model(
        features(select=select, gamma="scale"), alphas=ALPHAS, gammas=GAMMAS, cv=cv
    ).fit(X, TARGETS[Model])
    seed = model.features_.random_state
    fits = {}
    for gamma in GAMMAS:
        alone = Model(
            features(select=select, gamma=gamma, random_state=seed),
            alphas=ALPHAS,
            cv=cv,
        )
        fits[gamma] = alone.fit(X, TARGETS[Model])
    scores = {gamma: fit.best_score_ for gamma, fit in fits.items()}
    assert model.gamma_path_ == pytest.approx(scores, rel=1e-12)
    best = max(scores, key=scores.get)
    assert model.features_.gamma_ == best
    assert model.best_score_ == scores[best]
    assert model.alpha_ == fits[best].alpha_
    assert_array_equal(model.primal_coef_, fits[best].primal_coef_)
    assert_array_equal(model.alpha_path_.scores, fits[best].alpha_path_.scores)
    # One draw of directions, stretched.
    if select is None:
        assert_allclose(
            fits[9.0].features_.frequencies_,
            fits[0.01].features_.frequencies_ * 30.0,
            rtol=1e-12,
        )


def test_automatic_gammas_climb_to_a_maximum():
    model = KernelRidgeRegressor(
        features(64, gamma=3.0), alphas=ALPHAS, gammas="auto", cv=FOLDS
    ).fit(X, Y)
    tried = np.array(list(model.gamma_path_))
    scores = np.array(list(model.gamma_path_.values()))
    assert np.all(np.diff(tried) > 0)
    assert_allclose(tried[1:] / tried[:-1], 2.0, rtol=1e-12)
    best = int(scores.argmax())
    assert model.features_.gamma_ == tried[best]
    assert 0 < best < len(tried) - 1
    # It started far too narrow and came a long way.
    assert model.features_.gamma_ < 0.5
    assert tried[-1] == pytest.approx(6.0)
    start = KernelRidgeRegressor(features(64, gamma=3.0), alphas=ALPHAS, cv=FOLDS)
    assert model.best_score_ > start.fit(X, Y).best_score_ + 0.1


@models
def test_gammas_with_a_single_alpha(Model):
    model = Model(features(), alphas=0.7, gammas=[0.1, 0.3]).fit(X, TARGETS[Model])
    assert model.alpha_ == 0.7
    assert model.features_.gamma_ in (0.1, 0.3)
    assert model.best_score_ == max(model.gamma_path_.values())
    model.set_params(gammas=None).fit(X, TARGETS[Model])
    assert not hasattr(model, "gamma_path_")


@pytest.mark.parametrize(
    ("gammas", "message"),
    [
        ([], r"gammas must be None, 'auto', 'columns' or a non-e.* got \[\]"),
        ([0.0, 1.0], r"gammas must be .* positive numbers, got \[0.0, 1.0\]"),
        ([np.nan], r"gammas must be .* got \[nan\]"),
        ([np.inf], r"gammas must be .* got \[inf\]"),
        ("best", "'gammas' parameter .*'auto'.*Got 'best'"),
        (0.3, "'gammas' parameter .*Got 0.3"),
    ],
)
def test_bad_gammas_are_named(gammas, message):
    with pytest.raises(ValueError, match=message):
        KernelRidgeRegressor(features(), gammas=gammas).fit(X, Y)


def test_gammas_need_a_gamma_that_may_change():
    frozen = FrozenEstimator(features().fit(X))
    with pytest.raises(ValueError, match="gammas needs features with a parameter"):
        KernelRidgeRegressor(frozen, gammas=GAMMAS).fit(X, Y)
    several = features(gamma=[0.1, 0.3, 0.7])
    with pytest.raises(ValueError, match="gammas='auto' climbs from the one gamma"):
        KernelRidgeRegressor(several, gammas="auto").fit(X, Y)


# -- frozen features -------------------------------------------------------------------


@models
@pytest.mark.parametrize("select", ["leverage", "surrogate"])
def test_frozen_features_are_used_as_they_are(Model, select):
    fitted = features(select=select).fit(X[:30], Y[:30])
    frequencies = fitted.frequencies_.copy()
    model = Model(FrozenEstimator(fitted), alphas=ALPHAS).fit(X, TARGETS[Model])
    assert model.features_ is fitted
    assert_array_equal(fitted.frequencies_, frequencies)
    again = clone(model).fit(X, TARGETS[Model])
    assert_array_equal(model.primal_coef_, again.primal_coef_)
    Z = fitted.transform(X)
    ridge = Ridge if Model is KernelRidgeRegressor else RidgeClassifier
    reference = ridge(model.alpha_).fit(Z, TARGETS[Model])
    assert_allclose(np.ravel(model.primal_coef_), np.ravel(reference.coef_), rtol=1e-7)
    # Fitted anew to all rows they would be others.
    other = Model(features(select=select), alphas=ALPHAS).fit(X, TARGETS[Model])
    assert abs(other.primal_coef_ - model.primal_coef_).max() > 1e-6


@models
def test_frozen_features_must_fit_the_data(Model):
    with pytest.raises(ValueError, match="not fitted yet"):
        Model(FrozenEstimator(features())).fit(X, TARGETS[Model])
    two = FrozenEstimator(features().fit(X[:, :2]))
    with pytest.raises(ValueError, match=r"X has 3 features, but .* 2 features"):
        Model(two).fit(X, TARGETS[Model])
    with pytest.raises(ValueError, match=r"X has 3 features, but .* 2 features"):
        Model(two).partial_fit(X, TARGETS[Model])


def test_leave_one_out_is_defined_where_leverage_is_one():
    # As many columns as rows and hardly any regularisation: nothing is left of a row.
    model = KernelRidgeRegressor(features(100), alphas=[1e-30, 0.7], cv="loo")
    with pytest.warns(UserWarning, match="singular to working precision"):
        model.fit(X, Y)
    assert model.alpha_ == 0.7
    assert linalg.norm(model.primal_coef_) < 1e3


@pytest.mark.parametrize("scoring", [None, "neg_mean_absolute_error", "accuracy"])
@pytest.mark.parametrize("weighted", [False, True])
def test_features_that_look_at_y_are_fitted_anew_for_each_split(scoring, weighted):
    Model = KernelRidgeClassifier if scoring == "accuracy" else KernelRidgeRegressor
    target, weight = TARGETS[Model], 0.5 + WEIGHT if weighted else None
    selected = features(select="surrogate", gamma="scale")
    model = Model(selected, alphas=ALPHAS, cv=FOLDS, scoring=scoring)
    model.fit(X, target, sample_weight=weight)
    scorer = {None: r2_score, "accuracy": accuracy_score}.get(
        scoring, lambda *a, **k: -mean_absolute_error(*a, **k)
    )
    expected = []
    for train, test in FOLDS.split(X):
        some = [None if weight is None else weight[rows] for rows in (train, test)]
        own = clone(selected).fit(X[train], target[train], some[0])
        peer = Model(FrozenEstimator(own), alphas=model.alpha_)
        predicted = peer.fit(X[train], target[train], some[0]).predict(X[test])
        expected.append(scorer(target[test], predicted, sample_weight=some[1]))
    best = np.flatnonzero(model.alpha_path_.alphas == model.alpha_)[0]
    assert_allclose(model.alpha_path_.scores[best], expected, rtol=1e-8)
    assert_allclose(model.best_score_, np.mean(expected), rtol=1e-8)
    # The final features have seen every row.
    all_rows = clone(selected).fit(X, target, weight)
    assert_array_equal(model.features_.frequencies_, all_rows.frequencies_)


class Best(SurrogateLeverage):
    """Keeps the candidates with the best scores, unweighted: nothing fits y closer."""

    def select(self, draw, X, Y, n_frequencies, rng, sample_weight=None):
        pool = draw(50 * n_frequencies)
        best = np.argsort(self.scores(pool, X, Y, sample_weight))[-n_frequencies:]
        return Selection(pool[best], np.ones(n_frequencies))


def test_selected_features_score_as_chance_on_noise():
    # Labels are coin flips. Frequencies picked with the labels of the rows that score
    # them find a pattern; picked without, the hits are binomial(200, 1/2), and more
    # than 138 of them have probability 2e-8.
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(200, 30)), rng.integers(0, 2, size=200)
    selected = features(80, gamma=0.5, select=Best())
    honest = KernelRidgeClassifier(selected, alphas=1.0, probability=True, cv=FOLDS)
    honest.fit(X, y)
    frozen = FrozenEstimator(clone(selected).fit(X, y))
    fooled = clone(honest).set_params(features=frozen).fit(X, y)
    assert honest.best_score_ < 138 / 200 < fooled.best_score_
    assert honest.calibration_[0, 0] < fooled.calibration_[0, 0]


class Folds(CriterionOfEquations):
    """A criterion whose folds are never singular: the smallest alpha is best.

    For the second target it is the one nearest to 1.
    """

    def __init__(self, equations, solver):
        self.total = equations
        self.solving = Solving(True, solver)

    def score(self, alphas):
        logs = np.log(alphas)
        return np.stack([-logs, -0.5 * np.abs(logs)], axis=1)[:, None]


@pytest.mark.parametrize("per_target", [True, False])
@pytest.mark.parametrize("solver", ["cholesky", "eigh"])
def test_an_automatic_alpha_has_a_solution_for_all_rows(solver, per_target):
    Z = np.random.default_rng(0).normal(size=(30, 128)) * np.logspace(0, 3, 128)
    equations = NormalEquations(128, 2).update(Z.copy(), Z[:, :2])
    path = scored_path(Folds(equations, solver), None, per_target)
    best = np.ravel(best_index(path))
    if per_target:
        assert abs(np.log10(path.alphas[best[1]])) <= 0.25  # half a step of the grid
    if solver == "eigh":
        assert best[0] == 0
        return
    # The smallest alpha of the grid that has a solution, by trying them all.
    coefs = list(cholesky(*equations.centred()[:2], path.alphas))
    assert best[0] == next(i for i, coef in enumerate(coefs) if coef is not None) > 0
    assert np.isnan(path.scores[: best[0]]).all()
    assert np.isfinite(path.scores[best[0] :]).all()


@pytest.mark.parametrize("cv", [3, "gcv", "loo"])
@pytest.mark.parametrize("gamma", [1e-3, 1e-8, 1e-14, 1e-20])
def test_automatic_alphas_of_targets_that_can_be_fitted_exactly(cv, gamma):
    # Fewer rows than columns, whose spread beside their mean falls with gamma: linear
    # targets are met at alphas down to 1e-25, where scores differ by rounding alone.
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 2))
    Y = np.column_stack([X[:, 0], np.ones(30), X.sum(axis=1)])
    for per_target in (True, False):
        model = KernelRidgeRegressor(
            features(128, gamma=gamma), cv=cv, alpha_per_target=per_target
        )
        assert_allclose(model.fit(X, Y).predict(X), Y, atol=1e-4)


@pytest.mark.parametrize("cv", [3, "gcv", "loo"])
@pytest.mark.parametrize("solver", sorted(SOLVERS))
@pytest.mark.parametrize("n_components", [7, 400])
@pytest.mark.parametrize("alphas", [[1e-15, 1e-14], "auto"])
def test_tiny_alphas_do_not_explode(cv, n_components, solver, alphas):
    """Sk 32459: `make_regression(..., 50, noise=0)`, alphas 1e-15 to 1e-14."""
    rows, target = make_regression(300, 50, noise=0, random_state=0)
    # A kernel wide enough to be nearly linear.
    wide = features(n_components, gamma=1e-3)
    model = KernelRidgeRegressor(wide, alphas=alphas, cv=cv, solver=solver)
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
    assert np.isfinite(model.primal_coef_).all()
    # Least squares is no worse than the mean, on the rows it is fitted to.
    assert model.score(rows, target) > -1e-6
    assert abs(model.predict(rows)).max() < 3 * abs(target).max()


@models
@pytest.mark.parametrize("cv", [5, "gcv", "loo"])
def test_no_validation_set_is_needed(Model, cv):
    """XRFM 4: alpha and gamma are chosen on the training rows."""
    model = Model(features(), gammas=[0.1, 0.3], cv=cv).fit(X, TARGETS[Model])
    assert model.alpha_ in model.alpha_path_.alphas
    assert model.features_.gamma_ in (0.1, 0.3)
    assert np.isfinite(model.best_score_)
