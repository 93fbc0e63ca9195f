"""What scikit-learn's selectors of columns make of the models."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.feature_selection import RFE, SelectFromModel

from surff import (
    FourierFeatures,
    KernelLogisticClassifier,
    KernelRidgeClassifier,
    KernelRidgeRegressor,
    NystroemFeatures,
    load,
    save,
)
from surff.estimators.persistence import ModelFileError
from surff.inspection import feature_importances
from surff.streaming import ArrayRows

rng = np.random.default_rng(0)
X = rng.normal(size=(200, 8))
y = (X[:, 0] + X[:, 1] > 0).astype(int)

MODELS = [KernelRidgeRegressor, KernelRidgeClassifier, KernelLogisticClassifier]
models = pytest.mark.parametrize("Model", MODELS)


@models
def test_coefficients_of_components_are_not_those_of_columns(Model):
    """As many components as columns: selectors would take one for the other."""
    model = Model(FourierFeatures(8, random_state=0), alphas=1.0).fit(X, y)
    assert model.primal_coef_.shape[-1] == 8
    assert not hasattr(model, "coef_")
    with pytest.raises(AttributeError, match=r"has no coef_.* primal_coef_"):
        model.coef_  # noqa: B018


@models
def test_selectors_keep_the_columns_that_count(Model):
    model = Model(FourierFeatures(60, random_state=0), alphas=1.0)
    chosen = SelectFromModel(model, max_features=2, threshold=-np.inf).fit(X, y)
    assert chosen.get_support(indices=True).tolist() == [0, 1]
    eliminated = RFE(model, n_features_to_select=2, step=2).fit(X, y)
    assert eliminated.get_support(indices=True).tolist() == [0, 1]


def test_importances_are_there_only_where_they_can_be():
    features = FourierFeatures(20, random_state=0)
    assert not hasattr(KernelRidgeRegressor(features), "feature_importances_")
    pieces = KernelRidgeRegressor(features, alphas=1.0).fit(X, y)
    assert hasattr(pieces, "feature_importances_")
    pieces.partial_fit(X, y)
    blind = KernelRidgeRegressor(features, alphas=1.0)
    blind.set_params(features__gamma=0.1).fit_stream(ArrayRows(X, y))
    landmarks = KernelRidgeRegressor(NystroemFeatures(20), alphas=1.0).fit(X, y)
    leaves = KernelRidgeRegressor(features, leaves=2).fit(X, np.abs(X[:, 0]))
    assert leaves.leaves_.partition is not None
    for model in (pieces, blind, landmarks, leaves):
        assert not hasattr(model, "feature_importances_")
        with pytest.raises(AttributeError, match=r"surff\.inspection\.feature_import"):
            model.feature_importances_  # noqa: B018


def test_a_stream_whose_rows_are_looked_at_has_importances():
    features = FourierFeatures(20, select="surrogate", random_state=0)
    model = KernelRidgeRegressor(features, alphas=1.0).fit_stream(ArrayRows(X, y))
    expected = feature_importances(model, X).importances_mean
    assert_allclose(model.feature_importances_, expected, rtol=0.2)


def test_importances_are_saved_and_checked(tmp_path):
    pytest.importorskip("skops")
    model = KernelRidgeRegressor(FourierFeatures(20, random_state=0)).fit(X, y)
    save(model, tmp_path / "model.skops")
    loaded = load(tmp_path / "model.skops")
    assert_array_equal(loaded.feature_importances_, model.feature_importances_)
    model._importances = model._importances[:, 1:]
    with pytest.raises(ModelFileError, match=r"_importances .* shape \(2, 8\)"):
        save(model, tmp_path / "model.skops")


def test_rows_of_the_fit_are_kept_until_importances_are_asked_for():
    rows = X.copy()
    model = KernelRidgeRegressor(FourierFeatures(20, random_state=0)).fit(rows, y)
    other = KernelRidgeRegressor(FourierFeatures(20, random_state=0)).fit(X, y)
    rows[:] = 0.0
    assert "_importance_rows" in vars(model)
    assert "_importance_rows" not in vars(pickle.loads(pickle.dumps(model)))
    assert_array_equal(model.feature_importances_, other.feature_importances_)
    assert "_importance_rows" not in vars(model)
    assert "_importance_rows" not in vars(other.partial_fit(X, y))
