"""Predictions for those who serve a fitted model."""

from __future__ import annotations

from typing import Any

import numpy as np

from surff.backend import each_block, folded, rows_of
from surff.estimators._finite_form import finite_form
from surff.estimators._linear import (
    calibrated_probabilities,
    class_probabilities,
    winning_labels,
)

__all__ = ["Predictor"]

#: Rows up to which the calling thread predicts alone, in one block.
FEW_ROWS = 64


class Predictor:
    """Predictions of a fitted model, without what an estimator does around them.

    Everything that does not depend on the rows is done once, here: the compiled map is
    bound, Nystrom's normalization folded into the coefficients, a pipeline's scaling
    collected. A call checks shape and dtype alone; NaN and infinity in the rows are
    not looked for. Several threads may call it at the same time. A pickle of it holds
    what predictions are made of and nothing else: no equations, no path of alphas.

    Parameters
    ----------
    model : estimator
        A fitted `KernelRidgeRegressor`, `KernelRidgeClassifier` or
        `KernelLogisticClassifier` on `FourierFeatures`, `NystroemFeatures` or features
        of your own; or a pipeline of `StandardScaler`, `MinMaxScaler`, `MaxAbsScaler`
        or `RobustScaler` and one of these.

    Attributes
    ----------
    n_features_in : int
        Columns of the rows.
    dtype : dtype
        float32 or float64: in what the model was fitted. Rows of another type are
        converted.
    classes_ : ndarray or None
        Labels of a classifier.

    Raises
    ------
    TypeError
        If the model, or a step before it, has no finite form.

    Notes
    -----
    Changes to the model after this do not reach the predictor.

    Examples
    --------
    >>> import numpy as np
    >>> from surff import KernelRidgeRegressor, Predictor
    >>> X = np.linspace(-2, 2, 200)[:, None]
    >>> model = KernelRidgeRegressor().fit(X, np.sin(3 * X[:, 0]))
    >>> predictor = Predictor(model)
    >>> bool(np.allclose(predictor.predict(X), model.predict(X)))
    True
    """

    def __init__(self, model: Any) -> None:
        form = finite_form(model)
        self.dtype = form.coef.dtype
        self.n_features_in = form.n_features
        self.classes_ = form.classes
        self._scaling, self._leaves = form.scaling, form.leaves
        self._multilabel, self._flat = form.multilabel, form.flat
        self._probabilities = form.probabilities
        self._calibration = form.calibration
        self._map = form.features.feature_map().astype(self.dtype)
        self._coef, self._k = np.ascontiguousarray(form.coef), form.coef.shape[1]
        self._intercept = form.intercept.astype(self.dtype)
        if self._leaves is None:  # leaves need the features themselves
            self._map, self._coef = folded(self._map, self._coef)
        else:
            leaves = self._leaves.in_dtype(self.dtype)
            self._leaves = leaves._replace(trials=np.empty((0, 3)))

    def _rows(self, X):
        """Rows of the right shape and type."""
        if type(X) is not np.ndarray or X.dtype != self.dtype:
            X = np.asarray(X, dtype=self.dtype)
        if X.ndim != 2 or X.shape[1] != self.n_features_in:
            raise ValueError(
                f"X must have shape (n_rows, {self.n_features_in}), got {X.shape}."
            )
        if self._scaling is not None:
            shift, factor = self._scaling
            X = ((X - shift) * factor).astype(self.dtype, copy=False)
        return X

    def _of_block(self, X, Z):
        """Decisions of rows and their features."""
        decisions = np.asarray(Z @ self._coef, dtype=self.dtype)[:, : self._k]
        decisions = decisions + self._intercept
        if self._leaves is not None:
            self._leaves.add_to(decisions, X, Z)
        return decisions

    def _decisions(self, X):
        X = self._rows(X)
        if len(X) <= FEW_ROWS:
            return self._of_block(X, self._map(X))
        decisions = np.empty((len(X), self._k), self.dtype)

        def decide(block, Z):
            decisions[block] = self._of_block(rows_of(X, block), Z)

        each_block(decide, self._map, X)
        return decisions

    def decision_function(self, X: Any) -> np.ndarray:
        """Predictions of a regressor; what a classifier's labels follow from.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Rows; a float array of ``dtype`` is not copied.

        Returns
        -------
        decisions : ndarray of shape (n_rows,) or (n_rows, k)
            As the method of the model.
        """
        decisions = self._decisions(X)
        return decisions[:, 0] if self._flat and self._k == 1 else decisions

    def predict(self, X: Any) -> np.ndarray:
        """Predict as the model does.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Rows.

        Returns
        -------
        y : ndarray of shape (n_rows,) or (n_rows, k)
            Numbers or labels.
        """
        if self.classes_ is None:
            return self.decision_function(X)
        decisions = self._decisions(X)
        if self._multilabel:
            return (decisions > 0).astype(np.int64)
        return winning_labels(self.classes_, decisions)

    __call__ = predict

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probability of each class, where the model has probabilities.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Rows.

        Returns
        -------
        probabilities : ndarray of shape (n_rows, n_classes)

        Raises
        ------
        AttributeError
            If the model has none.
        """
        if self._probabilities is None:
            raise AttributeError(
                "predict_proba needs a KernelLogisticClassifier, or a "
                "KernelRidgeClassifier with probability=True."
            )
        decisions = self._decisions(X)
        if self._probabilities == "softmax":
            return class_probabilities(decisions)
        return calibrated_probabilities(decisions, self._calibration, self._multilabel)
