"""What every model on streamed features does with its feature map.

Check and fit it, fit it again to a split's rows, and decide by a linear function of its
features, block by block. The models add what is minimised.
"""

import itertools
from typing import ClassVar, NoReturn

import numpy as np
from array_api_compat import device
from scipy.special import expit, softmax
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import check_cv
from sklearn.utils.validation import _check_n_features, check_is_fitted

from surff.backend import (
    asarray_like,
    check_same_place,
    each_block,
    folded,
    namespace_of,
    other_namespace,
    rows_of,
    share_of_time,
    to_numpy,
    validated,
    wide_dtype,
)
from surff.estimators._importance import importances_of_rows, rows_for_importances
from surff.estimators._older import LoadsOlder
from surff.estimators._watching import fit_watched
from surff.estimators.base import Features
from surff.estimators.features import FourierFeatures

__all__ = [
    "LinearOnFeatures",
    "calibrated_probabilities",
    "checked_features",
    "class_probabilities",
    "fitted_features",
    "learns_from_targets",
    "refitting",
    "refuse_other_arrays",
    "splits_of",
    "winning_labels",
]


def winning_labels(classes, decisions):
    """Class of each row: by the sign of its only decision, or the largest of several.

    Parameters
    ----------
    classes : array of shape (n_classes,)
    decisions : array of shape (n_samples, 1) or (n_samples, n_classes)

    Returns
    -------
    labels : array of shape (n_samples,)
        NumPy's where ``classes`` are.
    """
    xp = namespace_of(decisions)
    if decisions.shape[1] == 1:
        winners = xp.astype(decisions[:, 0] > 0, xp.int64)
    else:
        winners = xp.argmax(decisions, axis=1)
    if other_namespace(classes) is None:
        return classes[to_numpy(winners)]
    return xp.take(classes, winners, axis=0)


def refuse_other_arrays(X, asked, instead=""):
    """Refuse arrays of other libraries, where only NumPy's serve."""
    if other_namespace(X) is not None:
        raise ValueError(
            f"{asked} takes NumPy arrays and SciPy matrices alone, got X in the "
            f"namespace {namespace_of(X).__name__}{instead}."
        )


def checked_features(features):
    """A clone of the feature map, its parameters checked; a frozen one as it is."""
    if features is None:
        return FourierFeatures()
    inner = features.estimator if isinstance(features, FrozenEstimator) else features
    if not isinstance(inner, Features):
        raise TypeError(
            "features must be None or an instance of surff.estimators.Features such as "
            f"FourierFeatures(), got {features!r}."
        )
    if inner is not features:
        return features
    features = clone(features)
    features.check_parameters()
    return features


def fitted_features(features, X, Y, sample_weight, names=None, spread=None):
    """The feature map fitted to checked data; a frozen one as it is.

    Parameters
    ----------
    features : Features or FrozenEstimator
        From `checked_features`.
    X, Y, sample_weight, spread
        See `surff.estimators.Features.fit_checked`.
    names : ndarray of str, optional
        Names of the columns.
    """
    if isinstance(features, FrozenEstimator):
        features = features.estimator
        check_is_fitted(features)
        _check_n_features(features, X, reset=False)
        if hasattr(features, "frequencies_"):
            check_same_place(features, features.frequencies_, X, "transform")
        return features
    fit_watched(features, X, Y, sample_weight, spread)
    if names is not None:
        features.feature_names_in_ = names
    return _with_checked_map(features, X)


def _with_checked_map(features, X):
    """Return the features if their map returns what it says; surff's own do."""
    if type(features).__module__.startswith("surff.") or not hasattr(X, "dtype"):
        return features
    feature_map = features.feature_map()
    if hasattr(X, "summed"):  # rows on workers
        return features
    row = rows_of(X, np.arange(1))
    Z = feature_map(row)
    if tuple(Z.shape) != (1, feature_map.n_components) or Z.dtype != feature_map.dtype:
        raise ValueError(
            f"features={features!r} must map a row to {feature_map.n_components} "
            f"columns of {feature_map.dtype}, as n_components and dtype of their map "
            f"say, got shape {tuple(Z.shape)} of {Z.dtype}."
        )
    return features


def learns_from_targets(features):
    """Whether a fit of these features, from `checked_features`, looks at targets."""
    return not isinstance(features, FrozenEstimator) and features.needs_target


def refitting(features, X, Y, sample_weight, dtype, n_splits=1):
    """What fits features to some of the rows, where they look at the targets.

    Parameters
    ----------
    features, X, Y, sample_weight
        See `fitted_features`.
    dtype : dtype
        What their map computes in.
    n_splits : int, default=1
        How often this will be, each in an equal share of the time.

    Returns
    -------
    refit : callable or None
        ``refit(rows)`` returns a map that computes in ``dtype``. None for features that
        do not look at targets, and for frozen ones: they serve every split as they are.
    """
    if not learns_from_targets(features):
        return None
    return Refit(features, X, Y, sample_weight, dtype, n_splits)


class Refit:
    """What fits features to the training rows of one split after the other.

    The parameters are those of `refitting`.

    Attributes
    ----------
    fitted : list of Features
        Those of the splits so far.
    """

    def __init__(self, features, X, Y, sample_weight, dtype, n_splits):
        self._features, self._dtype = features, dtype
        self._rows = X, Y, sample_weight
        self._left = itertools.count(n_splits, -1)
        self.fitted = []

    def __call__(self, rows):
        """Map of features that are fitted to some rows."""
        return share_of_time(max(1, next(self._left)), self._refitted, rows)

    def _refitted(self, rows):
        X, Y, sample_weight = self._rows
        weight = None if sample_weight is None else sample_weight[rows]
        some = fit_watched(clone(self._features), rows_of(X, rows), Y[rows], weight)
        self.fitted.append(some)
        return some.feature_map().astype(self._dtype)


def splits_of(cv, X, y, sample_weight, are_labels):
    """Splits of the rows, each with weight on both sides.

    Parameters
    ----------
    cv : int, splitter or iterable
        See `sklearn.model_selection.check_cv`.
    X, y
        Rows and targets as splitters take them.
    sample_weight : ndarray of shape (n_samples,) or None
    are_labels : bool
        Whether ``y`` holds labels, so that folds of an int are stratified.

    Returns
    -------
    splits : list of (train_rows, test_rows)
    """
    splits = list(check_cv(cv, y, classifier=are_labels).split(X, y))
    if sample_weight is None:
        return splits
    for number, split in enumerate(splits):
        for side, rows in zip(("trains on", "holds out"), split, strict=True):
            if not sample_weight[rows].any():
                raise ValueError(
                    f"cv must give splits with weight on both sides: split {number} "
                    f"{side} rows whose sample_weight is 0; shuffle the rows, leave "
                    "those of weight 0 out or use cv='gcv'."
                )
    return splits


def class_probabilities(decisions):
    """Probabilities of the logistic model, (n_samples, n_classes)."""
    if decisions.shape[1] > 1:
        return softmax(decisions, axis=1)
    return np.hstack([expit(-decisions), expit(decisions)])


def calibrated_probabilities(decisions, calibration, multilabel):
    """Platt's probabilities of decisions (n_samples, k); see `platt_curve`."""
    positive = expit(decisions * calibration[:, 0] + calibration[:, 1])
    if multilabel:
        return positive
    if positive.shape[1] == 1:
        return np.hstack([1.0 - positive, positive])
    total = positive.sum(axis=1, keepdims=True)
    uniform = np.full_like(positive, 1.0 / positive.shape[1])
    return np.divide(positive, total, out=uniform, where=total > 0)


class LinearOnFeatures(LoadsOlder):
    """A model ``features_(X) @ primal_coef_.T + intercept_``; no features are stored.

    Subclasses have a parameter ``features``.
    """

    _renamed: ClassVar[dict[str, str]] = {"coef_": "primal_coef_"}

    @property
    def coef_(self) -> NoReturn:
        """No attribute of these models: it would be taken for one number per column.

        `sklearn.feature_selection.SelectFromModel` and others look for it first.
        """
        raise AttributeError(
            f"{type(self).__name__} has no coef_, one coefficient per column of X: its "
            "coefficients belong to the components of features_, and are primal_coef_; "
            "what the columns of X count for is feature_importances_."
        )

    @property
    def feature_importances_(self) -> np.ndarray:
        """What each column of ``X`` counts for, shape (n_features,).

        The mean square of the derivative of the predictions by the column, times the
        column's variance; see `surff.inspection.feature_importances`. From at most
        500 rows of the fit, which are kept until somebody asks, or saves the model.

        Raises
        ------
        AttributeError
            Without Fourier features, with leaf heads, after `partial_fit`, and of a
            stream whose rows the features did not look at.
        """
        return self._fitted_importances("feature_importances_", 0)

    @property
    def feature_importances_std_(self) -> np.ndarray:
        """Standard errors of ``feature_importances_``, of the choice of the rows."""
        return self._fitted_importances("feature_importances_std_", 1)

    def _fitted_importances(self, asked, row):
        check_is_fitted(self)
        self._settle_importances()
        if "_importances" not in vars(self):
            raise AttributeError(
                f"{asked} is there after a fit of Fourier features without leaf heads "
                "to rows that were at hand, not after this one: call "
                "surff.inspection.feature_importances(model, X) with some rows."
            )
        found = self._importances[row]
        return namespace_of(found).asarray(found, copy=True)

    def _set_importances(self, X, sample_weight=None):
        """Keep some rows that say what the columns count for, until somebody asks."""
        rows = rows_for_importances(self, X, sample_weight)
        if rows is not None:
            self._importance_rows = rows

    def _settle_importances(self):
        """Let go of the rows of the fit; what they say is kept."""
        if "_importance_rows" not in vars(self):
            return
        found = importances_of_rows(self, *self._importance_rows)
        if found is not None:
            like = self.primal_coef_
            self._importances = asarray_like(found, like, wide_dtype(like))
        vars(self).pop("_importance_rows", None)

    def __getstate__(self):
        self._settle_importances()  # no rows in files
        return super().__getstate__()

    def _decisions(self, X):
        """Linear predictions of checked rows, shape (n_samples, k)."""
        feature_map = self.features_.feature_map().astype(X.dtype)
        xp = namespace_of(X)
        coef = xp.asarray(self.primal_coef_, dtype=X.dtype)
        coef = xp.matrix_transpose(xp.reshape(coef, (-1, feature_map.n_components)))
        k = coef.shape[1]
        decisions = xp.empty((X.shape[0], k), dtype=X.dtype, device=device(coef))
        feature_map, coef = folded(feature_map, coef)

        def decide(block, Z):
            decisions[block, ...] = (Z @ coef)[:, :k]

        each_block(decide, feature_map, X)
        return decisions + xp.asarray(self.intercept_, dtype=X.dtype)

    def _checked(self, X, method):
        """Rows that a method was called with."""
        if "primal_coef_" not in vars(
            self
        ):  # or it would ask for the tags, which is slow
            check_is_fitted(self)
        X = validated(self, X, reset=False)
        check_same_place(self, self.primal_coef_, X, method)
        return X

    @staticmethod
    def _outputs(decisions):
        """Predictions of shape (n_samples, k) as users see them."""
        return decisions[:, 0] if decisions.shape[1] == 1 else decisions

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        # A precomputed kernel is split by rows and columns.
        tags.input_tags.pairwise = (
            getattr(self.features, "kernel", None) == "precomputed"
        )
        return tags
