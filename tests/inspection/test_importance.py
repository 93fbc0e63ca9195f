"""Importances of columns against differences, closed forms and permutations."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.datasets import make_friedman1
from sklearn.frozen import FrozenEstimator
from sklearn.inspection import permutation_importance
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from surff import (
    FourierFeatures,
    ImportanceDisplay,
    KernelLogisticClassifier,
    KernelRidgeClassifier,
    KernelRidgeRegressor,
    NystroemFeatures,
)
from surff.inspection import feature_importances
from surff.inspection.importance import differences

rng = np.random.default_rng(0)
X = rng.normal(size=(120, 4)) * [1.0, 3.0, 0.2, 1.0] + [0.0, 5.0, 0.0, -2.0]
y = np.sin(X[:, 0]) + 0.3 * X[:, 1] + 5.0 * X[:, 2] * X[:, 3]
Y = np.column_stack([y, X[:, 3]])
CODES = np.digitize(y, [0.5, 2.5])


def warped():
    features = FourierFeatures(20, random_state=0).fit(X)
    features.warp_ = np.array([[0.1, 4.0, 0.0, -2.5], [0.5, 0.2, 2.0, 1.0]])
    return FrozenEstimator(features)


MODELS = {
    "plain": (KernelRidgeRegressor(FourierFeatures(20, random_state=0)), y),
    "odd": (KernelRidgeRegressor(FourierFeatures(21, random_state=0)), y),
    "targets": (KernelRidgeRegressor(FourierFeatures(20, random_state=0)), Y),
    "cg": (KernelRidgeRegressor(FourierFeatures(20), solver="cg", alphas=1.0), y),
    "weighted": (
        KernelRidgeRegressor(
            FourierFeatures(20, select="surrogate", random_state=0), cv="gcv"
        ),
        y,
    ),
    "structured": (
        KernelRidgeRegressor(
            FourierFeatures(20, draw="structured_orthogonal", random_state=0)
        ),
        y,
    ),
    "warped": (KernelRidgeRegressor(warped()), y),
    "classes": (KernelRidgeClassifier(FourierFeatures(20, random_state=0)), CODES),
    "logistic": (KernelLogisticClassifier(FourierFeatures(20, random_state=0)), CODES),
}


@pytest.mark.parametrize("name", MODELS)
def test_closed_form_is_that_of_differences(name):
    model, target = MODELS[name]
    model.fit(X, target)
    weight = rng.integers(0, 3, len(X)).astype(float)
    found = feature_importances(model, X, sample_weight=weight)
    squares = differences(model, X, X)
    share = weight / weight.sum()
    variance = share @ (X - share @ X) ** 2
    assert_allclose(found.importances_mean, variance * (share @ squares), rtol=1e-4)
    # 120 rows are all looked at in the fit.
    unweighted = feature_importances(model, X)
    assert_allclose(model.feature_importances_, unweighted.importances_mean, rtol=1e-9)
    assert_allclose(
        model.feature_importances_std_, unweighted.importances_std, rtol=1e-9
    )


def test_a_linear_model_has_its_closed_form_without_error():
    linear = LinearRegression().fit(X, y)
    found = feature_importances(linear, X)
    assert_allclose(
        found.importances_mean, (linear.coef_ * X.std(axis=0)) ** 2, rtol=1e-6
    )
    assert_allclose(found.importances_std, 0.0, atol=1e-6)


def test_standard_errors_are_those_of_a_mean():
    model = KernelRidgeRegressor(FourierFeatures(20, random_state=0)).fit(X, y)
    found = feature_importances(model, X)
    squares = differences(model, X, X) * X.var(axis=0)
    errors = squares.std(axis=0) / np.sqrt(len(X))
    assert_allclose(found.importances_std, errors, rtol=1e-4)


def test_a_weight_counts_as_repetitions():
    weight = rng.integers(0, 3, len(X))
    features = FourierFeatures(20, gamma=0.1, random_state=0)
    model = KernelRidgeRegressor(features, alphas=0.1)
    weighted = model.fit(X, y, weight).feature_importances_
    repeated = np.repeat(X, weight, axis=0), np.repeat(y, weight)
    assert_allclose(weighted, model.fit(*repeated).feature_importances_, rtol=1e-7)


@pytest.mark.parametrize("kind", ["nystroem", "pipeline", "frame"])
def test_any_model_that_predicts_is_taken(kind):
    if kind == "nystroem":
        model, rows = KernelRidgeRegressor(NystroemFeatures(30, random_state=0)), X
    else:
        model = make_pipeline(StandardScaler(), KernelRidgeRegressor())
        rows = X
    if kind == "frame":
        rows = pytest.importorskip("pandas").DataFrame(X, columns=list("abcd"))
    found = feature_importances(model.fit(rows, y), rows, n_samples=50)
    # Of the true function at the same spread.
    true = np.mean(np.cos(X[:, 0]) ** 2) * X[:, 0].var()
    assert 0.5 * true < found.importances_mean[0] < 2.0 * true


def test_sparse_rows_are_those_of_dense_ones():
    thin = np.where(rng.random(X.shape) < 0.5, X, 0.0)
    features = FourierFeatures(20, gamma=0.1, random_state=0)
    model = KernelRidgeRegressor(features, alphas=0.1)
    dense = model.fit(thin, y).feature_importances_
    rows = sparse.csr_array(thin)
    assert_allclose(model.fit(rows, y).feature_importances_, dense, rtol=1e-7)
    assert_allclose(feature_importances(model, rows).importances_mean, dense, rtol=1e-7)


def test_relevant_columns_of_friedman_come_first_as_by_permutation():
    rows, target = make_friedman1(600, n_features=10, noise=1.0, random_state=0)
    features = FourierFeatures(200, adapt="agop", random_state=0)
    model = KernelRidgeRegressor(features, cv="gcv").fit(rows[:400], target[:400])
    own = model.feature_importances_
    held_out = feature_importances(model, rows[400:]).importances_mean
    permuted = permutation_importance(
        model, rows[400:], target[400:], n_repeats=3, random_state=0
    ).importances_mean
    for importances in (own, held_out, permuted):
        assert set(np.argsort(-importances)[:5]) == {0, 1, 2, 3, 4}
    # Half of what the squared error loses, for a function that is nearly linear.
    errors = permutation_importance(
        model, rows[400:], target[400:], n_repeats=3, random_state=0,
        scoring="neg_mean_squared_error",
    ).importances_mean  # fmt: skip
    assert held_out[3] == pytest.approx(errors[3] / 2, rel=0.2)


def test_few_rows_of_many_are_looked_at():
    rows = rng.normal(size=(5000, 2))
    model = KernelRidgeRegressor(FourierFeatures(20, random_state=0), alphas=1.0)
    model.fit(rows, np.sin(rows[:, 0]))
    everything = feature_importances(model, rows, n_samples=5000)
    error = np.abs(model.feature_importances_ - everything.importances_mean)
    # Of 500 rows; six standard errors are exceeded with a probability below 1e-8.
    assert np.all(error < 6 * model.feature_importances_std_ + 0.2 * error.mean())


def test_wrong_arguments_are_refused():
    model = KernelRidgeRegressor(FourierFeatures(20, random_state=0)).fit(X, y)
    with pytest.raises(ValueError, match="n_samples must be at least 1, got 0"):
        feature_importances(model, X, n_samples=0)
    with pytest.raises(ValueError, match=r"positive entry|non-zero number"):
        feature_importances(model, X, sample_weight=np.zeros(len(X)))
    with pytest.raises(ValueError, match="feature_names must hold 4 names"):
        ImportanceDisplay.from_estimator(model, feature_names=["a"])


def test_the_display_shows_the_largest_first():
    pytest.importorskip("matplotlib").use("Agg")
    model = KernelRidgeRegressor(FourierFeatures(20, random_state=0)).fit(X, y)
    display = ImportanceDisplay.from_estimator(model, max_columns=3)
    order = np.argsort(-model.feature_importances_)[:3]
    assert display.feature_names == [f"x{j}" for j in order]
    assert_array_equal(display.importances, model.feature_importances_[order])
    widths = [bar.get_width() for bar in display.bars_]
    assert_allclose(widths, display.importances)
    again = ImportanceDisplay.from_estimator(
        model, X, feature_names=list("abcd"), ax=display.ax_, bar_kw={"color": "red"}
    )
    assert again.ax_ is display.ax_
    assert set(again.feature_names) == set("abcd")
    import matplotlib.pyplot

    matplotlib.pyplot.close("all")
