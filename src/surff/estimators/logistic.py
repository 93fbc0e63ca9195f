"""Kernel logistic regression on streamed features."""

import numbers
import warnings

import numpy as np
from scipy.special import expit, logsumexp, softmax
from sklearn.base import ClassifierMixin, _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import check_cv
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.multiclass import check_classification_targets

from surff.backend import validated
from surff.estimators._linear import LinearOnFeatures, winning_labels
from surff.estimators._targets import one_vs_rest
from surff.linear import (
    AlphaPath,
    accumulate,
    best_index,
    logistic_path,
    loss_and_gradient,
    relative_grid,
    splits_equations,
)
from surff.streaming import over_blocks

__all__ = [
    "KernelLogisticClassifier",
]

#: ``alphas="auto"``: decades relative to the mean eigenvalue of the Gram matrix, how
#: far the grid may grow when the best lies at an end, and by what.
AUTO_DECADES = np.arange(-4.0, 1.5, 0.5)
AUTO_LIMITS = (-9.0, 5.0)
AUTO_STEP = np.arange(0.5, 2.5, 0.5)

#: Least tolerance, and most passes, of the fits that only rank alphas.
PATH_TOL, PATH_PASSES = 1e-3, 200


class KernelLogisticClassifier(ClassifierMixin, LinearOnFeatures):
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
        Not used for a single alpha. Features that look at ``y`` are fitted anew to the
        training rows of each split.
    fit_intercept : bool, default=True
        Whether to fit an intercept.
    max_iter : int, default=1000
        Most passes over the data for a fit.
    tol : float, default=1e-4
        Accuracy of the fit, > 0: the loss per row that is still to be gained is about
        ``tol**2``. The fits that rank alphas end at 1e-3 or after 200 passes.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels, sorted.
    coef_ : ndarray of shape (1, n_components) or (n_classes, n_components)
        Coefficients; those of more than two classes sum to zero.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Intercepts.
    alpha_ : float
        Regularisation used.
    best_score_ : float or None
        Mean over the folds of the negative log loss per row at ``alpha_``; None for a
        single alpha.
    alpha_path_ : AlphaPath
        Alphas and their scores; not set for a single alpha.
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
    }

    def __init__(
        self,
        features=None,
        *,
        alphas="auto",
        cv=5,
        fit_intercept=True,
        max_iter=1000,
        tol=1e-4,
    ):
        self.features = features
        self.alphas = alphas
        self.cv = cv
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.tol = tol

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y, sample_weight=None):
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
        check_classification_targets(y)
        sample_weight = self._checked_weight(sample_weight, X)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(
                "y must hold at least two classes, got one class: "
                f"{self.classes_.tolist()[0]!r}."
            )
        Y = one_vs_rest(codes, len(self.classes_))
        features = self._checked_features()
        refit = self._refit(features, X, Y, sample_weight, X.dtype)
        self.features_ = self._fitted_features(features, X, Y, sample_weight)
        feature_map = self.features_._map().astype(X.dtype)
        self.__dict__.pop("alpha_path_", None)  # an earlier fit's
        alphas = self._checked_alphas()
        no_target = np.zeros((X.shape[0], 0))
        if alphas is not None and len(alphas) == 1:
            total = accumulate(feature_map, X, no_target, sample_weight)
            self.alpha_, self.best_score_ = float(alphas[0]), None
        else:
            folds = list(check_cv(self.cv, y, classifier=True).split(X, y))
            total, sides = splits_equations(
                feature_map, X, no_target, folds, sample_weight, refit
            )

            def splits():
                return zip(sides(), (train for train, _ in folds), strict=True)

            self.alpha_path_ = self._search(
                alphas, total, splits, X, codes, sample_weight
            )
            best = best_index(self.alpha_path_)
            self.alpha_ = float(self.alpha_path_.alphas[best])
            self.best_score_ = float(self.alpha_path_.scores[best].mean())
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
            warnings.warn(
                f"the fit is not done after max_iter={self.max_iter} passes; increase "
                "max_iter, tol or alphas.",
                ConvergenceWarning,
                stacklevel=2,
            )
        self.coef_ = coefs[:, 0].T.astype(X.dtype)
        self.intercept_ = intercepts[0].astype(X.dtype)
        return self

    def _checked_alphas(self):
        """Ascending array of alphas, or None for "auto"."""
        if isinstance(self.alphas, str):
            return None
        alphas = np.unique(np.asarray(self.alphas, dtype=np.float64))
        if alphas.size == 0 or not np.all((alphas > 0) & np.isfinite(alphas)):
            raise ValueError(
                "alphas must be 'auto', a number > 0 or a non-empty sequence of them, "
                f"got {self.alphas!r}."
            )
        return alphas

    def _search(self, alphas, total, splits, X, codes, sample_weight):
        """Scores of the grid; the automatic one grows while the best is at an end."""

        def score(alphas):
            """Negative log loss per held-out row, shape (n_alphas, n_splits)."""
            columns = []
            for split, train in splits():
                test = split.test_rows
                coefs, intercepts, *_ = logistic_path(
                    split.feature_map,
                    X,
                    codes,
                    split.train,
                    alphas,
                    sample_weight,
                    train,
                    n_classes=len(self.classes_),
                    fit_intercept=self.fit_intercept,
                    tol=max(self.tol, PATH_TOL),
                    max_iter=min(self.max_iter, PATH_PASSES),
                )
                held_out, *_ = loss_and_gradient(
                    split.feature_map, X, codes, coefs, intercepts, sample_weight, test
                )
                weight = len(test)
                if sample_weight is not None:
                    weight = sample_weight[test].sum()
                columns.append(-held_out / weight)
            return np.column_stack(columns)

        if alphas is not None:
            return AlphaPath(alphas, score(alphas))
        decades = AUTO_DECADES

        def grid(decades):
            return relative_grid(total, self.fit_intercept, decades)

        path = AlphaPath(grid(decades), score(grid(decades)))
        while True:
            best = best_index(path)
            if best == 0 and decades[0] > AUTO_LIMITS[0]:
                new = decades[0] - AUTO_STEP[::-1]
            elif best == len(decades) - 1 and decades[-1] < AUTO_LIMITS[1]:
                new = decades[-1] + AUTO_STEP
            else:
                return path
            order = np.argsort(decades := np.concatenate([decades, new]))
            path = AlphaPath(
                np.concatenate([path.alphas, grid(new)])[order],
                np.concatenate([path.scores, score(grid(new))])[order],
            )
            decades = decades[order]

    @over_blocks
    def decision_function(self, X):
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
    def predict(self, X):
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
    def predict_proba(self, X):
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
        decisions = self._decisions(self._checked(X, "predict_proba"))
        if decisions.shape[1] > 1:
            return softmax(decisions, axis=1)
        return np.hstack([expit(-decisions), expit(decisions)])

    @over_blocks
    def predict_log_proba(self, X):
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
