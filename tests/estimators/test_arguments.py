"""Errors that say what to use instead."""

import inspect

import numpy as np
import pytest
from sklearn.base import clone

from surff import (
    KernelLogisticClassifier,
    KernelRidgeClassifier,
    KernelRidgeRegressor,
)

MODELS = [KernelRidgeRegressor, KernelRidgeClassifier, KernelLogisticClassifier]


@pytest.mark.parametrize("Model", MODELS)
def test_arguments_of_other_libraries_name_ours(Model):
    with pytest.raises(
        TypeError, match=rf"{Model.__name__} has no argument alpha: use alphas, .*0.5"
    ):
        Model(alpha=0.5)
    with pytest.raises(TypeError, match=r"use features=FourierFeatures\(n_components"):
        Model(n_components=10)
    with pytest.raises(TypeError, match="unexpected keyword argument 'nothing'"):
        Model(nothing=1)
    names = list(inspect.signature(Model).parameters)
    assert names[:2] == ["features", "alphas"]
    assert sorted(clone(Model(alphas=2.0)).get_params(deep=False)) == sorted(names)


def test_a_missing_method_says_why():
    model = KernelRidgeClassifier()
    assert not hasattr(model, "predict_proba")
    with pytest.raises(
        AttributeError,
        match="This 'KernelRidgeClassifier' has no attribute 'predict_proba': "
        r"predict_proba needs probability=True .*got probability=False\.$",
    ):
        model.predict_proba(np.zeros((1, 2)))
    with pytest.raises(AttributeError, match="needs probability=True"):
        KernelRidgeClassifier.predict_proba(model, np.zeros((1, 2)))
    assert "Returns" in KernelRidgeClassifier.predict_proba.__doc__
    assert hasattr(KernelRidgeClassifier(probability=True), "predict_proba")
