"""Intervals and sets of labels with a promised coverage, from the folds of a fit."""

from __future__ import annotations

import functools
import numbers
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions, validate_params
from sklearn.utils.metaestimators import available_if

from surff.backend import Array, each_block, row_blocks, rows_of
from surff.estimators._linear import LinearOnFeatures, refuse_other_arrays
from surff.estimators._posterior import looks_at_targets
from surff.linear import (
    MOST_SEARCHED,
    LeaveOneOut,
    LeftOutScores,
    absolute_scores,
    decision_scores,
    label_scores,
    leave_one_out_paths,
    left_out_scores,
    paths_and_scores,
    paths_and_scores_of_source,
    plus_bounds,
    plus_sets,
    score_quantiles,
)
from surff.streaming import over_blocks

__all__ = ["FoldModels", "PredictsIntervals", "PredictsSets", "fold_models"]

#: Numbers of the folds' predictions that are held at once.
HELD_NUMBERS = 2**22


class FoldModels:
    """Models of the folds of a fit, and the scores of the rows that they left out.

    Attributes
    ----------
    features : list of Features
        Those of each fold; empty where all share the features of the fit.
    coefs : ndarray of shape (n_folds, m, 1 or 2, k)
        Coefficients of the predictions, and of their scales; zero beyond the columns of
        a fold's features.
    intercepts : ndarray of shape (n_folds, 1 or 2, k)
        Intercepts.
    floors : ndarray of shape (n_folds, k) or None
        Smallest scales; None without scales.
    values, weights : ndarray of shape (n_scores,)
        Scores of the rows left out, ascending for each target and fold, and how many
        rows have each.
    starts : ndarray of shape (n_targets * n_folds + 1,)
        Where those of each target and fold begin.
    """

    def __init__(
        self,
        features: list,
        coefs: np.ndarray,
        intercepts: np.ndarray,
        floors: np.ndarray | None,
        scores: LeftOutScores,
    ) -> None:
        self.features = features
        self.coefs, self.intercepts, self.floors = coefs, intercepts, floors
        self.values, self.weights, self.starts, _ = scores

    @property
    def scores(self) -> LeftOutScores:
        """Scores of the rows that were left out."""
        return LeftOutScores(self.values, self.weights, self.starts, len(self.coefs))

    def first(self) -> FoldModels:
        """The first fold alone."""
        n_folds = len(self.coefs)
        cells = self.starts[:-1:n_folds], self.starts[1::n_folds]
        own = [slice(a, b) for a, b in zip(*cells, strict=True)]
        scores = LeftOutScores(
            np.concatenate([self.values[part] for part in own]),
            np.concatenate([self.weights[part] for part in own]),
            np.cumsum([0] + [part.stop - part.start for part in own]),
            1,
        )
        floors = None if self.floors is None else self.floors[:1]
        parts = self.coefs[:1], self.intercepts[:1], floors
        return FoldModels(self.features[:1], *parts, scores)

    def predictor(self, features: Any, dtype: Any) -> Callable[[Any], np.ndarray]:
        """Function of the predictions and scales of checked rows by each fold.

        Parameters
        ----------
        features : Features
            Those of the fit.
        dtype : dtype
            Of the rows.

        Returns
        -------
        predict : callable
            ``predict(X)`` has the shape (n_rows, n_folds, 1 or 2, k).
        """
        n_folds, _, *rest = self.coefs.shape
        shares = [(features, slice(None), slice(None))]
        if self.features:
            shares = [
                (own, slice(f, f + 1), slice(own.feature_map().n_components))
                for f, own in enumerate(self.features)
            ]
        maps = [own.feature_map().astype(dtype) for own, *_ in shares]
        flats = []
        for _, folds, columns in shares:
            part = np.moveaxis(self.coefs[folds, columns], 0, 1)
            flats.append(part.reshape(len(part), -1).astype(dtype))

        def predict(X):
            found = np.empty((X.shape[0], n_folds, *rest))
            for (_, folds, _), feature_map, flat in zip(
                shares, maps, flats, strict=True
            ):

                def decide(block, Z, folds=folds, flat=flat):
                    found[block, folds] = (Z @ flat).reshape(len(Z), -1, *rest)

                each_block(decide, feature_map, X)
            return found + self.intercepts

        return predict


def check_one_left_out(model: Any) -> None:
    """Refuse ``cv="loo"`` where it leaves out nothing, or gives no scale.

    Parameters
    ----------
    model : estimator
        With ``intervals``.
    """
    if model.intervals == "normalized":
        raise ValueError(
            "intervals='normalized' fits a scale to the rows of each split: cv must be "
            f"an int or a splitter, got {model.cv!r}."
        )
    if looks_at_targets(model):
        raise ValueError(
            "intervals=True needs features that have not seen the targets of rows left "
            "out, and cv='loo' takes them as they are: use folds, or features that do "
            "not look at y."
        )


def fold_models(
    model: Any, choice: Any, score: Any, coded: Callable | None = None
) -> FoldModels:
    """`FoldModels` of a fit.

    Parameters
    ----------
    model : estimator
        Its parameters say how.
    choice : Choice
        What was fitted; ``alpha``, ``criterion``, ``data`` and ``fold_features`` are
        looked at.
    score : callable
        See `surff.linear.paths_and_scores`.
    coded : callable, optional
        Of a fit to a source: ``coded(y)`` are targets as numbers.
    """
    criterion, data = choice.criterion, choice.data
    alphas = np.broadcast_to(np.asarray(choice.alpha, np.float64), data.offset.shape)
    if isinstance(criterion, LeaveOneOut):
        check_one_left_out(model)
        return _models_of_one_left_out(model, criterion, data, alphas, score)
    how = alphas, score, model.intervals == "normalized"
    if coded is None:
        paths, scores = paths_and_scores(criterion, data, *how)
    else:
        paths, scores = paths_and_scores_of_source(criterion, coded, *how)
    return _stored(paths, scores, choice.fold_features or [])


def _stored(paths, scores, features):
    """`FoldModels` of paths; coefficients are filled up to one number of columns."""
    most = max(len(path.coefs) for path in paths)
    coefs = np.zeros((len(paths), most, *paths[0].coefs.shape[1:]))
    for own, path in zip(coefs, paths, strict=True):
        own[: len(path.coefs)] = path.coefs
    intercepts = np.stack([path.intercepts for path in paths])
    floors = None
    if paths[0].floor is not None:
        floors = np.stack([path.floor for path in paths])
    return FoldModels(list(features), coefs, intercepts, floors, scores)


def _models_of_one_left_out(model, criterion, data, alphas, score):
    """`FoldModels` of the rows but one, for each row."""
    n, k = data.Y.shape
    m = data.feature_map.n_components
    coefs, intercepts = np.empty((n, m, 1, k)), np.empty((n, 1, k))
    decisions = np.empty((n, 1, k))
    for alpha in np.unique(alphas):
        own = alphas == alpha
        found = leave_one_out_paths(data, criterion.total, alpha, model.fit_intercept)
        coefs[:, :, 0, own] = found[0][..., own]
        intercepts[:, 0, own] = found[1][:, own]
        decisions[:, 0, own] = found[2][:, own]
    scores = score(decisions, data.Y + data.offset, None)
    folds = np.arange(n)
    scores = left_out_scores(scores, folds, n, data.sample_weight)
    return FoldModels([], coefs, intercepts, None, scores)


def has_intervals(model: Any) -> bool:
    """Whether the models of the folds are there, as the parameters ask for."""
    if not model.intervals:
        raise AttributeError(
            "intervals must be True, or 'normalized', when the model is made and "
            f"fitted, got intervals={model.intervals!r}"
        )
    return True


class _ModelsOfFolds(LinearOnFeatures):
    """Predictions of the models of the folds, block by block."""

    def _take_folds(self, choice, coded=None):
        """Set the models of the folds, if they were asked for; see `fold_models`."""
        if self.intervals:
            score = self._left_out_score()
            self.fold_models_ = fold_models(self, choice, score, coded)

    def _rows_for(self, method, X):
        """Checked rows, for a method that needs the models of the folds."""
        X = self._checked(X, method)
        refuse_other_arrays(X, method)
        if not hasattr(self, "fold_models_"):
            raise ValueError(
                f"{method} needs the models of the folds: fit again with "
                f"intervals={self.intervals!r}."
            )
        return X

    def _best_method(self):
        """Which residuals to take, where nothing was said."""
        return "split" if self.fold_models_.features else "cv"

    def _one_model(self, X, method):
        """Decisions (n_rows, k) of this model or of the first fold's, and scores."""
        models = self.fold_models_
        if method == "cv":
            return self._decisions(X), models.scores
        first = models.first()
        decisions = first.predictor(self.features_, X.dtype)(X)[:, 0, 0]
        return decisions.astype(self.primal_coef_.dtype), first.scores

    def _fold_decisions(self, X):
        """Iterate over the decisions of the folds at blocks of checked rows."""
        models = self.fold_models_
        held = models.intercepts.size
        if len(models.coefs) > MOST_SEARCHED:
            held += len(models.values)
        predict = models.predictor(self.features_, X.dtype)
        for block in row_blocks(X.shape[0], max(16, HELD_NUMBERS // held)):
            yield predict(rows_of(X, block))


class PredictsIntervals(_ModelsOfFolds):
    """Intervals of a regressor with a parameter ``intervals``."""

    @available_if(has_intervals)
    @over_blocks
    def predict_interval(
        self, X: Array, coverage: float = 0.9, method: str | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        r"""Predict intervals that cover new targets; with ``intervals``.

        Nothing is assumed of the noise, nor that the model is right: only that the rows
        of the fit and the new ones are exchangeable. The guide says what that promises.

        Parameters
        ----------
        X : array-like, sparse matrix or Dask collection of shape \
                (n_samples, n_features)
            Data, finite. Rows of a Dask collection stay on the workers, see the guide
            to clusters.
        coverage : float, default=0.9
            Share of new targets that intervals should cover, in (0, 1).
        method : {"cv", "split", "cv+", "jackknife+", "normalized"}, default=None
            "cv" is the prediction, plus and minus a quantile of the residuals of the
            rows that the folds left out; "split" the same of the first fold alone, with
            its model in place of this one: it covers as asked whatever the features
            have learned. "cv+" moves the residuals to the predictions of the folds'
            models, which never covers much less and may cover more; "jackknife+" is
            "cv+" for ``cv="loo"``; "normalized" is "cv+" with residuals divided by a
            scale that is fitted to those of the training rows, so that intervals are
            wide where the noise is large, and needs ``intervals="normalized"``. None
            takes "normalized" after such a fit, "split" where the features look at
            ``y``, and else "cv".

        Returns
        -------
        lower, upper : ndarray of shape (n_samples,) or (n_samples, n_targets)
            Bounds, infinite where too few rows were left out for the coverage; each
            target has intervals of its own.

        Raises
        ------
        ValueError
            If the fit was not such as ``method`` needs.

        Notes
        -----
        "cv" and "split" cost a prediction, and a sort of scores. The others cost
        ``O(m F)`` per row for F folds besides the features of a row (of F rows where
        features look at ``y``), and some hundred searches among the scores; for
        ``cv="loo"`` ``O(m n)``.

        References
        ----------
        .. [1] R. F. Barber, E. J. Candes, A. Ramdas, R. J. Tibshirani, "Predictive
           Inference with the Jackknife+", Annals of Statistics 49(1), 2021.
        """
        _check_request(coverage=coverage, method=method)
        X = self._rows_for("predict_interval", X)
        models = self.fold_models_
        if method is None:
            method = "normalized" if models.floors is not None else self._best_method()
        self._check_method(method)
        if method in ("cv", "split"):
            centre, scores = self._one_model(X, method)
            radius = score_quantiles(scores, coverage).astype(centre.dtype)
            if np.ndim(self.primal_coef_) == 1:
                centre = centre[:, 0]
            return centre - radius, centre + radius
        bounds = []
        for decisions in self._fold_decisions(X):
            scales = None
            if models.floors is not None:
                scales = np.maximum(decisions[:, :, 1], models.floors)
            found = plus_bounds(models.scores, decisions[:, :, 0], scales, coverage)
            bounds.append(np.stack(found))
        lower, upper = np.concatenate(bounds, axis=1).astype(self.primal_coef_.dtype)
        if np.ndim(self.primal_coef_) == 1:
            return lower[:, 0], upper[:, 0]
        return lower, upper

    @staticmethod
    def _left_out_score():
        """What rows left out are scored by, see `surff.linear.paths_and_scores`."""
        return absolute_scores

    def _check_method(self, method):
        """Refuse a method for which the fit was not made."""
        models = self.fold_models_
        normalized = models.floors is not None
        if (method == "normalized") != normalized:
            needed, got = "'normalized'", True
            if normalized:
                needed, got = "True", "normalized"
            raise ValueError(
                f"method={method!r} needs a fit with intervals={needed}, got one with "
                f"intervals={got!r}."
            )
        if method == "split" and not np.any(np.diff(models.starts) > 1):
            raise ValueError(
                "method='split' needs a fit with folds of several rows, got one that "
                "leaves out one row at a time; use method='cv'."
            )
        if method == "jackknife+" and np.any(np.diff(models.starts) > 1):
            raise ValueError(
                "method='jackknife+' needs a fit that leaves out one row at a time, "
                f"cv='loo': got {len(models.coefs)} folds; use method='cv+'."
            )


class PredictsSets(_ModelsOfFolds):
    """Sets of labels of a classifier with a parameter ``intervals``."""

    #: Scores of each label, from decisions of shape (n_rows, k).
    _label_scores = staticmethod(decision_scores)

    def _left_out_score(self):
        """What rows left out are scored by, see `surff.linear.paths_and_scores`."""
        return functools.partial(label_scores, of_labels=self._label_scores)

    @available_if(has_intervals)
    @over_blocks
    def predict_set(
        self, X: Array, coverage: float = 0.9, method: str | None = None
    ) -> np.ndarray:
        """Predict sets of labels that hold the true ones; with ``intervals``.

        Nothing is assumed but that the rows of the fit and the new ones are
        exchangeable. The guide says what that promises.

        Parameters
        ----------
        X : array-like, sparse matrix or Dask collection of shape \
                (n_samples, n_features)
            Data, finite.
        coverage : float, default=0.9
            Share of new rows whose label the set should hold, in (0, 1).
        method : {"cv", "split", "cv+"}, default=None
            A label is in if fewer than ``coverage * (n + 1)`` of the rows left out have
            a true label that is likelier than it: by this model for "cv"; of the first
            fold alone and by its model for "split"; for "cv+", each by the model that
            left the row out, so that sets are cross-conformal, which never hold much
            less and may hold more. None takes "split" where the features look at ``y``,
            and else "cv".

        Returns
        -------
        inside : ndarray of bool, shape (n_samples, n_classes)
            Whether each label of ``classes_`` is in the set of each row. A set may be
            empty, or hold all labels.

        Notes
        -----
        "cv" and "split" cost a prediction, and a sort; "cv+" ``O(m F)`` per row
        for F folds, besides its features.

        References
        ----------
        .. [1] Y. Romano, M. Sesia, E. J. Candes, "Classification with Valid and
           Adaptive Coverage", NeurIPS 2020, section 2.3.
        """
        if method not in (None, "cv", "split", "cv+"):
            raise ValueError(f"method must be 'cv', 'split' or 'cv+', got {method!r}.")
        _check_request(coverage=coverage, method=method)
        X = self._rows_for("predict_set", X)
        method = method or self._best_method()
        if method != "cv+":
            own, scores = self._one_model(X, method)
            return self._label_scores(own) <= score_quantiles(scores, coverage)
        scores = self.fold_models_.scores
        found = []
        for decisions in self._fold_decisions(X):
            rows, n_folds, _, k = decisions.shape
            each = self._label_scores(decisions.reshape(-1, k))
            found.append(plus_sets(scores, each.reshape(rows, n_folds, -1), coverage))
        return np.concatenate(found)


@validate_params(
    {
        "coverage": [Interval(numbers.Real, 0.0, 1.0, closed="neither")],
        "method": [
            None,
            StrOptions({"cv", "split", "cv+", "jackknife+", "normalized"}),
        ],
    },
    prefer_skip_nested_validation=True,
)
def _check_request(coverage, method):
    """Refuse what `predict_interval` cannot be asked for."""
