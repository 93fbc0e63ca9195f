"""Kernel logistic regression on streamed features."""

from __future__ import annotations

import numbers
import warnings
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.special import logsumexp
from sklearn.base import ClassifierMixin, _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions

from surff.backend import Array, checked_weight, time_is_up, validated
from surff.estimators._alphas import best_alpha, checked_alphas, scored_path
from surff.estimators._arguments import ELSEWHERE, instead_of
from surff.estimators._atomic import all_or_nothing
from surff.estimators._class_weight import CLASS_WEIGHT, weights_of_classes
from surff.estimators._importance import KEPT
from surff.estimators._intervals import PredictsSets
from surff.estimators._linear import (
    checked_features,
    class_probabilities,
    fitted_features,
    refitting,
    splits_of,
    winning_labels,
)
from surff.estimators._rows_fit import Choice
from surff.estimators._targets import check_labels, one_vs_rest, refuse_one_class
from surff.estimators._watching import WATCH_CONSTRAINTS
from surff.linear import (
    AutoGrid,
    Criterion,
    Data,
    accumulate,
    logistic_path,
    loss_and_gradient,
    relative_grid,
    splits_equations,
)
from surff.streaming import over_blocks

__all__ = [
    "KernelLogisticClassifier",
]

#: ``alphas="auto"``, relative to the mean eigenvalue of the Gram matrix: smaller alphas
#: take more passes.
AUTO_GRID = AutoGrid(np.arange(-4.0, 1.5, 0.5), (-9.0, 5.0), np.arange(0.5, 2.5, 0.5))

#: Smallest tolerance of the fits that only rank alphas.
PATH_TOL = 1e-3

#: Largest number of passes of the fits that only rank alphas.
PATH_PASSES = 200


class KernelLogisticClassifier(ClassifierMixin, PredictsSets):
    r"""Kernel logistic classification on streamed random features.

    Minimises :math:`\sum_i \ell(y_i, b + z_i^\top \beta) + \frac\alpha2 \|\beta\|^2`
    with the logistic loss for two classes and the multinomial one for more. Its
    probabilities need no calibration. Rows are mapped block by block in every pass;
    their features are never stored.

    Parameters
    ----------
    features : transformer of surff, FrozenEstimator or None, default=None
        Feature map, see `KernelRidgeClassifier`.
    alphas : "auto", float or array-like, default="auto"
        Regularisation, > 0; ``1 / C`` of `sklearn.linear_model.LogisticRegression`. One
        number is used as it is; among several the one with the least held-out log loss
        is chosen; "auto" takes half decades from 1e-4 to 10 times the mean eigenvalue
        of the Gram matrix and grows while the best is at an end.
    cv : int, splitter or iterable, default=5
        Cross-validation, see `sklearn.model_selection.check_cv`; stratified for an int.
        Not used for a single alpha. Features that look at ``y`` are fitted again to the
        training rows of each split.
    fit_intercept : bool, default=True
        Whether to fit an intercept.
    max_iter : int, default=1000
        Most passes over the data for a fit.
    tol : float, default=1e-4
        Accuracy of the fit, > 0: the loss per row that is still to be gained is about
        ``tol**2``. The fits that rank alphas end at 1e-3 or after 200 passes.
    intervals : bool, default=False
        Keep the models of the folds and the scores of the rows that they left out, for
        `predict_set`: a fit for each fold and n numbers. The folds are used for a
        single alpha, too.
    verbose : int, bool or callable, default=0
        Whether to show progress, see `KernelRidgeRegressor`.
    max_time : float or None, default=None
        Seconds, > 0, after which the passes of a fit end as they do after ``max_iter``.
    class_weight : dict, "balanced" or None, default=None
        Factor of the weights of the rows of each class, see `KernelRidgeClassifier`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels, sorted.
    primal_coef_ : ndarray of shape (1, n_components) or (n_classes, n_components)
        Coefficients; with more than two classes they sum to zero over the classes.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Intercepts.
    alpha_ : float
        Regularisation used.
    best_score_ : float or None
        Mean over the folds of the negative log loss per row at ``alpha_``; None for a
        single alpha.
    alpha_path_ : AlphaPath
        Alphas and their scores; not set for a single alpha.
    fold_models_ : FoldModels
        Models of the folds; with ``intervals`` only.
    features_ : transformer
        The fitted feature map.
    n_iter_ : int
        Passes over the data of the last fit.
    n_features_in_ : int
        Columns of ``X``.

    Warns
    -----
    ConvergenceWarning
        If the fit is not done after ``max_iter`` passes.

    See Also
    --------
    KernelRidgeClassifier : Squared loss: one pass fits and chooses alpha.
    surff.linear.logistic_path : The fit as a function, with its cost.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from surff import FourierFeatures, KernelLogisticClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> features = FourierFeatures(200, random_state=0)
    >>> model = KernelLogisticClassifier(features).fit(scale(X), y)
    >>> model.best_score_ > -0.15
    True
    >>> model.predict_proba(scale(X)[:1]).round(2)
    array([[0.97, 0.03]])
    """

    class_weight: Any = None  # model files of version 0.1.0 lack it

    _parameter_constraints: dict = {  # noqa: RUF012  (scikit-learn's convention)
        "features": [None, HasMethods(["fit", "transform"])],
        "alphas": [
            StrOptions({"auto"}),
            Interval(numbers.Real, 0.0, None, closed="neither"),
            "array-like",
        ],
        "cv": ["cv_object"],
        "fit_intercept": ["boolean"],
        "max_iter": [Interval(numbers.Integral, 1, None, closed="left")],
        "tol": [Interval(numbers.Real, 0.0, None, closed="neither")],
        "intervals": ["boolean"],
        **WATCH_CONSTRAINTS,
        "class_weight": CLASS_WEIGHT,
    }

    @staticmethod
    def _label_scores(decisions):
        """Scores of each label: the less likely, the larger."""
        return -class_probabilities(decisions)

    @instead_of(**ELSEWHERE)
    def __init__(
        self,
        features: Any = None,
        *,
        alphas: Any = "auto",
        cv: Any = 5,
        fit_intercept: bool = True,
        max_iter: int = 1000,
        tol: float = 1e-4,
        intervals: bool = False,
        verbose: Any = 0,
        max_time: float | None = None,
        class_weight: Any = None,
    ):
        self.features = features
        self.alphas = alphas
        self.cv = cv
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.tol = tol
        self.intervals = intervals
        self.verbose = verbose
        self.max_time = max_time
        self.class_weight = class_weight

    @_fit_context(prefer_skip_nested_validation=True)
    @all_or_nothing(private=KEPT)
    def fit(self, X: Array, y: Any, sample_weight: Any = None) -> Self:
        """Fit the feature map, choose alpha and minimise.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Data, finite.
        y : array-like of shape (n_samples,)
            Labels of at least two classes.
        sample_weight : array-like of shape (n_samples,), optional
            Row weights, >= 0: weight w counts as the row repeated w times.

        Returns
        -------
        self
        """
        X, y = validated(self, X, y)
        check_labels(y)
        sample_weight = checked_weight(sample_weight, X)
        self.classes_, codes = np.unique(y, return_inverse=True)
        refuse_one_class(self.classes_)
        sample_weight = weights_of_classes(self.class_weight, y, sample_weight, X)
        alphas = checked_alphas(self.alphas, zero=False)
        Y = one_vs_rest(codes, len(self.classes_))
        unfitted = checked_features(self.features)
        refit = refitting(unfitted, X, Y, sample_weight, X.dtype)
        names = getattr(self, "feature_names_in_", None)
        self.features_ = fitted_features(unfitted, X, Y, sample_weight, names=names)
        feature_map = self.features_.feature_map().astype(X.dtype)
        no_target = np.zeros((X.shape[0], 0))
        if alphas is not None and len(alphas) == 1 and not self.intervals:
            total = accumulate(feature_map, X, no_target, sample_weight)
            self.alpha_, self.best_score_ = float(alphas[0]), None
        else:
            folds = splits_of(self.cv, X, y, sample_weight, are_labels=True)
            total, splits = splits_equations(
                feature_map, X, no_target, folds, sample_weight, refit
            )
            criterion = HeldOutLogLoss(
                LogisticData(X, codes, sample_weight, len(self.classes_)),
                total,
                lambda: zip(splits(), (train for train, _ in folds), strict=True),
                self.fit_intercept,
                max(self.tol, PATH_TOL),
                min(self.max_iter, PATH_PASSES),
            )
            self.alpha_path_ = scored_path(criterion, alphas)
            self.alpha_, self.best_score_ = best_alpha(self.alpha_path_)
            if self.intervals:
                self._keep_folds(criterion, X, Y, sample_weight, refit)
        coefs, intercepts, converged, self.n_iter_ = logistic_path(
            feature_map,
            X,
            codes,
            total,
            [self.alpha_],
            sample_weight,
            n_classes=len(self.classes_),
            fit_intercept=self.fit_intercept,
            tol=self.tol,
            max_iter=self.max_iter,
        )
        if not converged.all():
            self._warn()
        self.primal_coef_ = coefs[:, 0].T.astype(X.dtype)
        self.intercept_ = intercepts[0].astype(X.dtype)
        self._set_importances(X, sample_weight)
        return self

    def _keep_folds(self, criterion, X, Y, sample_weight, refit):
        """Set the models of the folds, fitted as closely as those that rank alphas."""
        data = Data(None, X, Y, np.zeros(Y.shape[1]), sample_weight)
        own = None if refit is None else refit.fitted
        choice = Choice(
            self.features_,
            data,
            None,
            None,
            self.alpha_,
            criterion=criterion,
            fold_features=own,
        )
        self._take_folds(choice)

    def _warn(self):
        """Warn of a fit that is not done."""
        limit, unit = f"max_iter={self.max_iter}", "passes"
        if time_is_up():
            limit, unit = f"max_time={self.max_time}", "seconds"
        warnings.warn(
            f"the fit is not done after {limit} {unit}; increase "
            f"{limit.partition('=')[0]}, tol or alphas.",
            ConvergenceWarning,
            stacklevel=6,
        )

    @over_blocks
    def decision_function(self, X: Array) -> Array:
        """Log-odds of the second of two classes, or unnormalised log probabilities.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Data, finite.

        Returns
        -------
        decisions : ndarray of shape (n_samples,) or (n_samples, n_classes)
        """
        return self._outputs(self._decisions(self._checked(X, "decision_function")))

    @over_blocks
    def predict(self, X: Array) -> Any:
        """Most probable class of rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Data, finite.

        Returns
        -------
        y : ndarray of shape (n_samples,)
            Labels out of ``classes_``.
        """
        decisions = self._decisions(self._checked(X, "predict"))
        return winning_labels(self.classes_, decisions)

    @over_blocks
    def predict_proba(self, X: Array) -> np.ndarray:
        """Probability of each class.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Data, finite.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
            Columns in the order of ``classes_``; rows sum to 1.
        """
        return class_probabilities(self._decisions(self._checked(X, "predict_proba")))

    @over_blocks
    def predict_log_proba(self, X: Array) -> np.ndarray:
        """Logarithm of `predict_proba`, exact for small probabilities too.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Data, finite.

        Returns
        -------
        log_probabilities : ndarray of shape (n_samples, n_classes)
        """
        decisions = self._decisions(self._checked(X, "predict_log_proba"))
        if decisions.shape[1] == 1:
            return -np.logaddexp(0.0, np.hstack([decisions, -decisions]))
        return decisions - logsumexp(decisions, axis=1, keepdims=True)


class LogisticData(NamedTuple):
    """Rows in memory and the numbers of their classes."""

    X: Any  # (n_samples, n_features)
    codes: np.ndarray  # (n_samples,)
    sample_weight: np.ndarray | None  # (n_samples,)
    n_classes: int


class HeldOutLogLoss(Criterion):
    """Negative log loss per held-out row.

    Parameters
    ----------
    data : LogisticData
    total : NormalEquations
        Of all rows.
    splits : callable
        ``splits()`` iterates over pairs of a `surff.linear.Split` and the rows of its
        training side.
    fit_intercept : bool
    tol, max_iter
        Of the fits, see `surff.linear.logistic_path`.
    """

    auto_grid = AUTO_GRID

    def __init__(self, data, total, splits, fit_intercept, tol, max_iter):
        self.data, self.total, self.splits = data, total, splits
        self.fit_intercept, self.tol, self.max_iter = fit_intercept, tol, max_iter

    def fold_models(self, alphas):
        """Iterate over the splits, with the coefficients and intercepts of alphas."""
        X, codes, sample_weight, n_classes = self.data
        for split, train in self.splits():
            coefs, intercepts, *_ = logistic_path(
                split.feature_map,
                X,
                codes,
                split.train,
                alphas,
                sample_weight,
                train,
                n_classes=n_classes,
                fit_intercept=self.fit_intercept,
                tol=self.tol,
                max_iter=self.max_iter,
            )
            yield split, coefs, intercepts

    def score(self, alphas):
        """Scores of every alpha, shape (n_alphas, n_splits, 1)."""
        X, codes, sample_weight, _ = self.data
        columns = []
        for split, coefs, intercepts in self.fold_models(alphas):
            test = split.test_rows
            held_out, *_ = loss_and_gradient(
                split.feature_map, X, codes, coefs, intercepts, sample_weight, test
            )
            weight = len(test)
            if sample_weight is not None:
                weight = sample_weight[test].sum()
            columns.append(-held_out / weight)
        return np.column_stack(columns)[:, :, None]

    def alphas_at(self, decades):
        """Alphas at ``10**decades`` times the mean eigenvalue of the Gram matrix."""
        return relative_grid(self.total, self.fit_intercept, decades)
