"""What scikit-learn's selectors of columns make of the models."""

import numpy as np
import pytest

from surff import (
    FourierFeatures,
    KernelLogisticClassifier,
    KernelRidgeClassifier,
    KernelRidgeRegressor,
)

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
