"""What every model on streamed features does with its feature map.

Check and fit it, fit it anew to a split's rows, and decide by a linear function of its
features, block by block. The models add what is minimised.
"""

from array_api_compat import device
from sklearn.base import BaseEstimator, clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils import get_tags
from sklearn.utils.validation import (
    _check_n_features,
    check_is_fitted,
)

from surff.backend import (
    check_same_place,
    checked_weight,
    each_block,
    namespace_of,
    other_namespace,
    rows_of,
    to_numpy,
    validated,
)
from surff.estimators.features import FourierFeatures

__all__ = ["LinearOnFeatures", "winning_labels"]


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


class LinearOnFeatures(BaseEstimator):
    """A model ``features_(X) @ coef_.T + intercept_``, whose features are not stored.

    Subclasses have a parameter ``features``.
    """

    def _checked_features(self):
        """A clone of the feature map, its parameters checked; a frozen one as it is."""
        features = FourierFeatures() if self.features is None else self.features
        inner = (
            features.estimator if isinstance(features, FrozenEstimator) else features
        )
        if isinstance(inner, type) or not hasattr(inner, "_map"):
            raise TypeError(
                "features must be None or a transformer of surff such as "
                f"FourierFeatures(), got {features!r}."
            )
        if inner is not features:
            return features
        features = clone(features)
        features._validate_params()
        return features

    def _fitted_features(self, features, X, Y, sample_weight, spread=None):
        """The feature map fitted to checked data; a frozen one as it is.

        ``spread`` is the `surff.streaming.EntrySpread` of all rows where ``X`` are some
        of them.
        """
        if isinstance(features, FrozenEstimator):
            features = features.estimator
            check_is_fitted(features)
            _check_n_features(features, X, reset=False)
            if hasattr(features, "frequencies_"):
                check_same_place(features, features.frequencies_, X, "transform")
            return features
        features._fit(X, Y, sample_weight, spread)
        if hasattr(self, "feature_names_in_"):
            features.feature_names_in_ = self.feature_names_in_
        return features

    def _refit(self, features, X, Y, sample_weight, dtype):
        """What fits features to some of the rows, where they look at the targets.

        Their maps compute in ``dtype``. Features that do not, and frozen ones, serve
        every split as they are: None.
        """
        frozen = isinstance(features, FrozenEstimator)
        if frozen or not get_tags(features).target_tags.required:
            return None

        def refit(rows):
            weight = None if sample_weight is None else sample_weight[rows]
            some = clone(features)._fit(rows_of(X, rows), Y[rows], weight)
            return some._map().astype(dtype)

        return refit

    def _decisions(self, X):
        """Linear predictions of checked rows, shape (n_samples, k)."""
        feature_map, xp = self.features_._map().astype(X.dtype), namespace_of(X)
        coef = xp.asarray(self.coef_, dtype=X.dtype)
        coef = xp.matrix_transpose(xp.reshape(coef, (-1, feature_map.n_components)))
        decisions = xp.empty(
            (X.shape[0], coef.shape[1]), dtype=X.dtype, device=device(coef)
        )

        def decide(block, Z):
            decisions[block, ...] = Z @ coef

        each_block(decide, feature_map, X)
        return decisions + xp.asarray(self.intercept_, dtype=X.dtype)

    def _checked(self, X, method):
        """Rows that a method was called with."""
        check_is_fitted(self)
        X = validated(self, X, reset=False)
        check_same_place(self, self.coef_, X, method)
        return X

    def _checked_weight(self, sample_weight, X):
        """Weights of the rows, None for none given."""
        if sample_weight is None:
            return None
        sample_weight = checked_weight(sample_weight, X)
        if not sample_weight.any():
            raise ValueError("sample_weight must have a positive entry, got all zeros.")
        return sample_weight

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
