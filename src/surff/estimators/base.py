"""The features protocol: what a model asks of its feature map.

A model clones its ``features``, fits them with `Features.fit_checked` to rows that are
already checked, and then maps blocks of rows by what `Features.feature_map` returns.
Before it fits, it asks what the features look at: rows, sums over rows or nothing but
the number of columns (`Features.looks_at`), and the targets (`Features.needs_target`).
That decides whether a stream is read twice, whether the features are fitted again to
the training rows of every fold, and what is sent to workers.
"""

from __future__ import annotations

import enum
import numbers
from abc import ABC, abstractmethod
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.base import (
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    _fit_context,
)
from sklearn.utils import get_tags
from sklearn.utils._param_validation import Interval
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import (
    check_array,
    check_consistent_length,
    check_is_fitted,
)

from surff.backend import (
    FLOAT_DTYPES,
    Array,
    array_api_support,
    backend_of_map,
    check_buffer,
    checked_weight,
    map_rows,
    to_numpy_if_dispatched,
    validated,
)
from surff.estimators._atomic import all_or_nothing
from surff.estimators._older import LoadsOlder
from surff.estimators._targets import coded_targets, numeric_targets
from surff.streaming import (
    N_SAMPLE,
    DaskRows,
    EntrySpread,
    Labels,
    Passes,
    WorkerRows,
    is_dask,
    over_blocks,
    survey,
)

__all__ = ["N_COMPONENTS", "Features", "LooksAt", "NumpyOnly", "rows_of_kernel"]


#: What the parameter ``n_components`` may be; a larger map would be a mistake.
N_COMPONENTS = [Interval(numbers.Integral, 1, 2**24, closed="both")]


class LooksAt(enum.IntEnum):
    """What fitting features looks at of ``X``; each includes those before it."""

    #: Only the number of columns.
    COLUMNS = 0

    #: Sums over all rows.
    SUMS = 1

    #: Rows themselves; of a stream, a sample of them.
    ROWS = 2


class NumpyOnly(NamedTuple):
    """An option that needs NumPy arrays, for the message that says so."""

    argument: str
    value: Any
    instead: str  # what to use for arrays of other libraries


class Features(ClassNamePrefixFeaturesOutMixin, TransformerMixin, LoadsOlder, ABC):
    """Base class of feature maps that models of surff take as ``features``.

    A class of your own gives `fit_checked` and `feature_map`; everything else has a
    default that is safe and may cost time. It then works wherever `FourierFeatures`
    does: in folds, streams, pieces, on Dask collections, and in model files that are
    loaded with ``trusted``.

    Examples
    --------
    >>> import numpy as np
    >>> from surff import KernelRidgeRegressor
    >>> from surff.estimators import Features, LooksAt
    >>> from surff.kernels import FeatureMap
    >>> class Powers(FeatureMap):
    ...     "Powers of the first column."
    ...     def __init__(self, degree, dtype):
    ...         self.n_components, self.dtype = degree, np.dtype(dtype)
    ...     def __call__(self, X, out=None):
    ...         Z = X[:, :1] ** np.arange(1, self.n_components + 1)
    ...         if out is None:
    ...             return Z.astype(self.dtype, copy=False)
    ...         out[...] = Z
    ...         return out
    ...     def astype(self, dtype):
    ...         return Powers(self.n_components, dtype)
    >>> class PowerFeatures(Features):
    ...     needs_target = False
    ...     def __init__(self, degree=3):
    ...         self.degree = degree
    ...     def looks_at(self):
    ...         return LooksAt.COLUMNS
    ...     def fit_checked(self, X, Y, sample_weight=None, spread=None):
    ...         self.n_features_in_ = X.shape[1]
    ...         return self
    ...     def feature_map(self):
    ...         return Powers(self.degree, np.float64)
    >>> X = np.linspace(-1, 1, 50)[:, None]
    >>> model = KernelRidgeRegressor(PowerFeatures(), alphas=1e-9).fit(X, X[:, 0] ** 3)
    >>> np.allclose(model.primal_coef_, [0, 0, 1], atol=1e-3)
    True
    """

    #: Whether `fit_checked` looks at the targets. Features that do are fitted again to
    #: the training rows of every fold.
    needs_target: bool = True

    _parameter_constraints: ClassVar[dict] = {}

    #: ``out`` is no metadata of rows that a pipeline could route.
    __metadata_request__transform: ClassVar[dict] = {"out": UNUSED}

    @abstractmethod
    def fit_checked(
        self,
        X: Any,
        Y: np.ndarray | None,
        sample_weight: np.ndarray | None = None,
        spread: EntrySpread | None = None,
    ) -> Features:
        """Fit to checked data.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            Rows, finite, of float32 or float64. `surff.streaming.WorkerRows` if
            `looks_at` returns less than ``LooksAt.ROWS`` and the rows are on workers.
        Y : ndarray of shape (n_samples, n_targets) or None
            Targets as numbers; labels are coded one-vs-rest as -1 and 1.
        sample_weight : ndarray of shape (n_samples,), optional
            Row weights, >= 0.
        spread : EntrySpread, optional
            Variance of the entries of all rows, where ``X`` are a sample of them.

        Returns
        -------
        self
            With ``n_features_in_`` set.
        """

    @abstractmethod
    def feature_map(self) -> Any:
        """Return the fitted `surff.kernels.FeatureMap` of checked blocks of rows."""

    def looks_at(self) -> LooksAt:
        """Return what `fit_checked` looks at of ``X``, by the parameters alone."""
        return LooksAt.ROWS

    def numpy_only(self) -> NumpyOnly | None:
        """Return the option that needs NumPy arrays; None if other arrays are taken.

        Features that return None get arrays of other libraries, on their device.
        """
        return NumpyOnly("features", self, "FourierFeatures")

    def check_parameters(self) -> None:
        """Check the parameters against ``_parameter_constraints``, as `fit` does."""
        self._validate_params()

    def _validate_params(self):
        super()._validate_params()
        if isinstance(n := self.get_params(deep=False).get("n_components"), bool):
            raise TypeError(f"n_components must be an int, not a bool, got {n!r}.")

    @_fit_context(prefer_skip_nested_validation=True)
    @all_or_nothing()
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Features:
        r"""Check the data and fit the feature map to them.

        If it fails, the feature map is what it was.

        Parameters
        ----------
        X : array-like, sparse matrix or Dask collection of shape \
                (n_samples, n_features)
            Data, finite. float32 is kept, anything else becomes float64. Rows of a Dask
            collection stay on the workers; see the guide to clusters.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), optional
            Labels or numbers, where the parameters ask for them; not looked at
            otherwise. Text, booleans and integers that
            `sklearn.utils.multiclass.type_of_target` calls binary or multiclass are
            labels, coded one-vs-rest as -1 and 1. Floats are numbers, whatever their
            values, and taken as they are.
        sample_weight : array-like of shape (n_samples,), optional
            Row weights, >= 0: weight w counts as the row repeated w times.

        Returns
        -------
        self
        """
        if is_dask(X):
            return fitted_on_workers(self, X, y, sample_weight)
        X, Y = validated(self, X), None
        if y is not None and self.needs_target:
            Y = numeric_targets(to_numpy_if_dispatched(y), X)
        return self.fit_checked(X, Y, checked_weight(sample_weight, X))

    @property
    def _n_features_out(self):
        """Number of columns, for scikit-learn's names of features."""
        return self.feature_map().n_components

    @over_blocks
    def transform(self, X: Any, *, out: np.ndarray | None = None) -> Any:
        """Map rows to features.

        Parameters
        ----------
        X : array-like, sparse matrix or Dask collection of shape \
                (n_samples, n_features)
            Data, finite.
        out : ndarray of shape (n_samples, n_components), optional
            C-contiguous array of the dtype of ``X`` to write into, for rows of NumPy or
            SciPy: a call that is repeated then touches no fresh memory, which takes as
            long as the map itself for large results.

        Returns
        -------
        Z : ndarray, or lazy Dask array, of shape (n_samples, n_components)
            Features; dtype of ``X``.
        """
        check_is_fitted(self)
        X = validated(self, X, reset=False)
        return mapped(self.feature_map().astype(X.dtype), X, out)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.array_api_support = array_api_support(self)
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        tags.target_tags.required = self.needs_target
        return tags


def fitted_on_workers(features, X, y, sample_weight):
    """Fit features to Dask collections, from sums or a sample of the rows."""
    if get_tags(features).input_tags.pairwise:
        raise ValueError(
            "features with kernel='precomputed' cannot be fitted to rows on workers: a "
            "row has a column for each of the others."
        )

    def check(X, y, first):
        X = validated(features, X, reset=first)
        if y is not None:
            y = check_array(y, dtype=None, ensure_2d=False, input_name="y")
            check_consistent_length(X, y)
        return X, y

    if not features.needs_target:
        y = None
    looks_at = features.looks_at()
    needs_rows = looks_at == LooksAt.ROWS
    passes = Passes(DaskRows(X, y, sample_weight), check)
    whole = looks_at > LooksAt.COLUMNS
    sample, spread, labels = survey(
        passes,
        N_SAMPLE if needs_rows else 1,
        whole,
        Labels() if whole and y is not None else None,
    )
    coded = None if labels is None else partial(coded_targets, labels.values)
    rows, Y, weight = sample.X, None, sample.sample_weight
    if coded is not None:
        Y = coded(sample.y)
    if not needs_rows:
        rows, weight = WorkerRows(passes, coded), None
    elif weight is not None and not weight.any():
        raise ValueError("sample_weight must have a positive entry, got all zeros.")
    return features.fit_checked(rows, Y, weight, spread)


def mapped(feature_map: Any, X: Array, out: np.ndarray | None = None) -> Array:
    """Features of checked rows, written into ``out`` if it is given and fits.

    Raises
    ------
    ValueError
        If ``out`` does not fit, or the rows are another library's.
    """
    if out is not None:
        if not backend_of_map(feature_map, X).is_numpy:
            raise ValueError(
                "out must be None for arrays of other libraries than NumPy."
            )
        shape = (X.shape[0], feature_map.n_components)
        check_buffer("out", out, shape, feature_map.dtype, written=True)
    return map_rows(feature_map, X, out)


def rows_of_kernel(features: Any, X: Array) -> Array:
    """Rows for the exact kernel, checked without a look at the columns' names."""
    X = check_array(X, dtype=FLOAT_DTYPES, accept_sparse="csr")
    if X.shape[1] != features.n_features_in_:
        raise ValueError(
            f"X must have the {features.n_features_in_} columns that the features were "
            f"fitted to, got {X.shape[1]}."
        )
    return X
