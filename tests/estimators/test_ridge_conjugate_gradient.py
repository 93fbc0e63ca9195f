import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from surff import FourierFeatures, KernelRidgeClassifier, KernelRidgeRegressor
from surff.estimators import _rows_fit as base

MODELS = pytest.mark.parametrize("Model", [KernelRidgeRegressor, KernelRidgeClassifier])


def problem(Model, n=1200, k=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    y = np.column_stack([np.sin(2 * X[:, 0]), X[:, 1] * X[:, 2]])[:, :k]
    y = (y + 0.1 * rng.normal(size=y.shape)).squeeze()
    if Model is KernelRidgeClassifier:
        y = np.digitize(y if y.ndim == 1 else y[:, 0], [-0.5, 0.5])
    return X, y, rng.integers(0, 4, size=n).astype(float)


def model(Model, **parameters):
    return Model(FourierFeatures(100, gamma=0.3, random_state=0), **parameters)


@MODELS
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_predictions_are_those_of_cholesky(Model, weighted, fit_intercept):
    X, y, weight = problem(Model)
    weight = weight if weighted else None
    exact = model(Model, alphas=0.7, fit_intercept=fit_intercept).fit(X, y, weight)
    passes = clone(exact).set_params(solver="cg", tol=1e-4).fit(X, y, weight)
    expected = exact._decisions(X)
    scale = expected.std(axis=0)
    assert_allclose(passes._decisions(X) / scale, expected / scale, atol=5e-3)
    assert passes.n_iter_ > 2
    assert not hasattr(passes, "equations_")
    assert exact.n_iter_ == 1


@MODELS
def test_alpha_is_chosen_as_by_cholesky(Model):
    X, y, weight = problem(Model)
    alphas = [0.01, 1.0, 100.0]
    exact = model(Model, alphas=alphas, cv=3).fit(X, y, weight)
    passes = clone(exact).set_params(solver="cg", tol=1e-4).fit(X, y, weight)
    assert passes.alpha_ == exact.alpha_
    assert_allclose(passes.alpha_path_.scores, exact.alpha_path_.scores, atol=2e-3)


def test_the_automatic_grid_is_relative_to_the_same_eigenvalue():
    X, y, weight = problem(KernelRidgeRegressor)
    exact = model(KernelRidgeRegressor, cv=3).fit(X, y, weight)
    passes = clone(exact).set_params(solver="cg").fit(X, y, weight)
    # Grids in half decades meet in some alpha; some rows stand for all.
    ratios = np.log10(passes.alpha_path_.alphas / exact.alpha_path_.alphas[0])
    assert_allclose(2 * ratios, np.round(2 * ratios), atol=0.05)
    assert passes.best_score_ > exact.best_score_ - 0.01


def test_each_target_has_its_own_alpha():
    X, y, _ = problem(KernelRidgeRegressor)
    y = np.column_stack([y, np.random.default_rng(1).normal(size=len(y))])
    parameters = {"alphas": [0.1, 1e3], "cv": 3, "alpha_per_target": True}
    exact = model(KernelRidgeRegressor, **parameters).fit(X, y)
    passes = clone(exact).set_params(solver="cg", tol=1e-5).fit(X, y)
    assert len(set(exact.alpha_)) == 2
    assert_allclose(passes.alpha_, exact.alpha_)
    assert_allclose(passes.predict(X), exact.predict(X), atol=1e-2)


def test_probabilities_need_no_equations():
    X, y, _ = problem(KernelRidgeClassifier)
    parameters = {"alphas": 0.7, "cv": 3, "probability": True}
    exact = model(KernelRidgeClassifier, **parameters).fit(X, y)
    passes = clone(exact).set_params(solver="cg", tol=1e-4).fit(X, y)
    assert_allclose(passes.predict_proba(X), exact.predict_proba(X), atol=0.01)


def test_features_that_look_at_targets_are_fitted_to_each_split():
    X, y, _ = problem(KernelRidgeRegressor, k=1)
    features = FourierFeatures(60, gamma=0.3, select="surrogate", random_state=0)
    exact = KernelRidgeRegressor(features, alphas=[0.1, 1.0], cv=3).fit(X, y)
    passes = clone(exact).set_params(solver="cg", tol=1e-4).fit(X, y)
    assert_allclose(passes.alpha_path_.scores, exact.alpha_path_.scores, atol=2e-3)


@pytest.mark.parametrize("cv", ["gcv", "loo"])
def test_formulas_on_equations_are_refused(cv):
    X, y, _ = problem(KernelRidgeRegressor)
    with pytest.raises(ValueError, match=rf"solver='cg' does not form: .* got '{cv}'"):
        model(KernelRidgeRegressor, solver="cg", cv=cv, alphas=[0.1, 1.0]).fit(X, y)


@MODELS
@pytest.mark.parametrize("method", ["partial_fit", "fit_stream"])
def test_what_needs_equations_is_not_there(Model, method):
    with pytest.raises(AttributeError) as error:
        getattr(model(Model, solver="cg"), method)
    assert f"{method} needs the normal equations" in str(error.value.__cause__)


def test_standard_deviations_say_what_they_need():
    X, y, _ = problem(KernelRidgeRegressor)
    fitted = model(KernelRidgeRegressor, solver="cg", alphas=0.7).fit(X, y)
    with pytest.raises(ValueError, match="keep_equations=True and a solver other than"):
        fitted.predict(X, return_std=True)


def test_too_few_passes_warn():
    X, y, _ = problem(KernelRidgeRegressor)
    hasty = model(KernelRidgeRegressor, solver="cg", alphas=1e-4, max_iter=2, tol=1e-6)
    with pytest.warns(ConvergenceWarning, match="stopped after 2 passes"):
        hasty.fit(X, y)
    assert hasty.n_iter_ == 2


@pytest.mark.parametrize("cheaper", [False, True])
@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("alphas", [0.7, [0.7, 1.0]])
def test_auto_takes_passes_only_where_they_pay(monkeypatch, cheaper, keep, alphas):
    monkeypatch.setattr(base, "cheaper_than_cholesky", lambda n, d, m: cheaper)
    X, y, _ = problem(KernelRidgeRegressor)
    parameters = {"alphas": alphas, "keep_equations": keep, "solver": "auto"}
    fitted = model(KernelRidgeRegressor, **parameters).fit(X, y)
    by_passes = cheaper and not keep and alphas == 0.7
    assert (fitted.n_iter_ > 1) == by_passes
    assert hasattr(fitted, "equations_") == keep
    if keep:
        assert_allclose(fitted.partial_fit(X, y).alpha_, fitted.alpha_)
