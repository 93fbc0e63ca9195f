"""A model with its encoder: it takes the table as it is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self

import numpy as np
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from surff.streaming import DaskRows, is_dask
from surff.tables.account import Account
from surff.tables.encoder import TableEncoder
from surff.tables.rows import encoded, fit_encoder

__all__ = ["TableModel", "table_model"]


def table_model(model: Any = None, **options: Any) -> TableModel:
    """A model that encodes its table, so that it takes frames with text.

    Parameters
    ----------
    model : estimator, default=None
        Model to put behind the encoder, such as ``KernelRidgeClassifier()``; None for
        ``KernelRidgeRegressor()`` with default parameters.
    **options
        Parameters of `surff.tables.TableEncoder`.

    Returns
    -------
    TableModel
        With the steps "table" and "model"; not fitted.

    Examples
    --------
    >>> import pandas as pd, surff
    >>> table = pd.DataFrame({"town": ["Oslo", "Rome"] * 20, "size": range(0, 80, 2)})
    >>> y = ["cold", "warm"] * 20
    >>> model = surff.table_model(surff.KernelRidgeClassifier()).fit(table, y)
    >>> model.predict(table[:2]).tolist()
    ['cold', 'warm']
    """
    if model is None:
        from surff.estimators import KernelRidgeRegressor

        model = KernelRidgeRegressor()
    if "target_type" not in options:
        kinds = {True: "continuous", False: "auto"}
        options["target_type"] = kinds[is_regressor(model)]
        if is_classifier(model):
            options["target_type"] = "classes"
    return TableModel([("table", TableEncoder(**options)), ("model", model)])


class TableModel(Pipeline):
    """Pipeline of a `TableEncoder` and a model, for memory, streams and clusters.

    What scikit-learn's pipeline does, and ``fit_stream``, ``predict_stream`` and
    ``score_stream`` of surff's models. `table_model` makes one.

    Parameters
    ----------
    steps : list of (str, estimator)
        The encoder, then the model.
    memory : None, str or object, default=None
        See `sklearn.pipeline.Pipeline`.
    verbose : bool, default=False
        See `sklearn.pipeline.Pipeline`.
    transform_input : list of str or None, default=None
        See `sklearn.pipeline.Pipeline`.

    Attributes
    ----------
    account_ : dict
        What `surff.fit` has found; only there after it. `account` prints it.
    """

    @property
    def encoder(self) -> TableEncoder:
        """The encoder, fitted if the pipeline is."""
        return self.steps[0][1]

    @property
    def model(self) -> Any:
        """The model behind the encoder."""
        return self.steps[-1][1]

    @property
    def account(self) -> Account:
        """What `surff.fit` has found; it prints."""
        if "account_" not in vars(self):
            raise AttributeError("only models of surff.fit have an account")
        return Account(self.account_)

    def fit(self, X: Any, y: Any = None, **params: Any) -> Self:
        """Fit the encoder, then the model.

        Parameters
        ----------
        X : frame, array or Dask dataframe of shape (n_samples, n_columns)
            Table. Rows of a Dask dataframe stay on the workers.
        y : array-like of shape (n_samples,)
            Targets.
        **params
            Parameters of the steps' ``fit``, such as ``model__sample_weight``.

        Returns
        -------
        self
        """
        if not is_dask(X):
            return super().fit(X, y, **params)
        weight = params.pop("model__sample_weight", None)
        return self.fit_stream(DaskRows(X, y, weight), **params)

    def fit_stream(self, source: Any, **options: Any) -> Self:
        """Fit to a source of frames that need not fit in memory.

        One pass looks at the columns, then the model makes its own.

        Parameters
        ----------
        source : source of rows
            Its blocks hold frames: `surff.streaming.BlockRows` of a function, the
            tables of files, `DaskRows`.
        **options
            See ``fit_stream`` of the model.

        Returns
        -------
        self
        """
        encoder = fit_encoder(clone(self.encoder), source)
        model = clone(self.model)
        model.fit_stream(encoded(source, encoder, training=True), **options)
        (first, _), *_, (last, _) = self.steps
        self.steps = [(first, encoder), (last, model)]
        return self

    def predict_stream(self, source: Any) -> Iterator[Any]:
        """Predict from a source of frames, block by block.

        Parameters
        ----------
        source : source of rows
            Its blocks hold frames; targets are not looked at.

        Yields
        ------
        y : ndarray of shape (n_rows,)
        """
        check_is_fitted(self)
        return self.model.predict_stream(encoded(source, self.encoder))

    def score_stream(self, source: Any) -> float:
        """Score of the predictions for a source of frames with targets."""
        check_is_fitted(self)
        return self.model.score_stream(encoded(source, self.encoder))

    def predict(self, X: Any, **params: Any) -> Any:
        """Predict the targets of the rows of a table.

        Parameters
        ----------
        X : frame, array or Dask dataframe of shape (n_samples, n_columns)
            Table with the columns of `fit`, by name.
        **params
            See ``predict`` of the model.

        Returns
        -------
        y : ndarray, or lazy Dask array, of shape (n_samples,)
        """
        if is_dask(X):
            return self._lazy("predict", X)
        return super().predict(X, **params)

    def predict_proba(self, X: Any, **params: Any) -> Any:
        """Probability of each class; where the model has them."""
        if is_dask(X):
            return self._lazy("predict_proba", X)
        return super().predict_proba(X, **params)

    def _lazy(self, method, X):
        """Dask array of a method's results for the partitions of a dataframe."""
        import pandas as pd

        check_is_fitted(self)
        like = no_results(self, method)
        meta = (pd.Series if like.ndim == 1 else pd.DataFrame)(like)
        frames = X.map_partitions(of_partition, self, method, meta=meta)
        return frames.to_dask_array()


def no_results(model, method):
    """Results for no rows."""
    zeros = np.zeros((1, len(model.encoder.get_feature_names_out())))
    return getattr(model.model, method)(zeros)[:0]


def of_partition(X, model, method):
    """Results for a partition of a dataframe, on a worker."""
    import pandas as pd

    values = getattr(model, method)(X) if len(X) else no_results(model, method)
    return (pd.Series if values.ndim == 1 else pd.DataFrame)(values, index=X.index)
