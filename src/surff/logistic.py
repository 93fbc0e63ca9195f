r"""Logistic and multinomial regression on streamed features.

Minimises, with row weights :math:`\omega_i`,

.. math:: \sum_i \omega_i\, \ell(y_i, f_i) + \frac\alpha2 \|\beta\|^2,
          \qquad f_i = b + z_i^\top \beta,

where :math:`\ell` is :math:`\log(1 + e^f) - y f` for two classes and
:math:`\log \sum_k e^{f_k} - f_y` for more. The Hessian is bounded by that of least
squares (Boehning 1992),

.. math:: \nabla^2 \preceq c\, \tilde Z^\top W \tilde Z + \alpha I, \qquad c = \tfrac14
          \text{ for two classes}, \tfrac12 \text{ for more},

for every class alike, so one eigendecomposition of the centred Gram matrix scales the
coefficients of all alphas and classes to Hessians below the identity. What is left is
well conditioned, and gradients alone minimise it: passes of ``O(n m (d + k))``, which
serve all alphas together, where Newton's method needs ``O(n m^2)`` a step and an alpha,
and ``k^2`` times that for k classes.
"""

import numbers
import warnings

import numpy as np
from scipy.special import expit, logsumexp, softmax
from sklearn.base import ClassifierMixin, _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import check_cv
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.multiclass import check_classification_targets

from surff._linear import LinearOnFeatures, winning_labels
from surff._threads import map_slices
from surff._validation import validated
from surff.alpha_selection import (
    AlphaPath,
    best_index,
    relative_grid,
    spectrum,
    splits_equations,
)
from surff.blocks import block_rows, feature_blocks, row_blocks
from surff.descent import minimise
from surff.distributed import over_blocks
from surff.features import one_vs_rest
from surff.normal_equations import accumulate

__all__ = ["KernelLogisticClassifier", "logistic_path", "loss_and_gradient", "losses"]

#: ``alphas="auto"``: decades relative to the mean eigenvalue of the Gram matrix, how
#: far the grid may grow when the best lies at an end, and by what.
AUTO_DECADES = np.arange(-4.0, 1.5, 0.5)
AUTO_LIMITS = (-9.0, 5.0)
AUTO_STEP = np.arange(0.5, 2.5, 0.5)

#: Least tolerance, and most passes, of the fits that only rank alphas.
PATH_TOL, PATH_PASSES = 1e-3, 200


def losses(decisions, codes):
    r"""Negative log likelihood of each row, and what the classes' probabilities are.

    Parameters
    ----------
    decisions : ndarray of shape (n_rows, n_alphas, k), float64
        Decisions f; k is 1 for two classes.
    codes : ndarray of int, shape (n_rows,)
        Numbers of the classes y.

    Returns
    -------
    losses : ndarray of shape (n_rows, n_alphas)
        :math:`\ell(y, f) \ge 0`.
    probabilities : ndarray of shape (n_rows, n_alphas, k)
        Of each class; of class 1 where k is 1.

    Examples
    --------
    >>> import numpy as np
    >>> losses(np.zeros((1, 1, 1)), [1])
    (array([[0.69314718]]), array([[[0.5]]]))
    """
    codes = np.asarray(codes)
    if decisions.shape[2] == 1:
        # log(1 + e^-f) where y is 1, log(1 + e^f) where it is 0.
        signs = np.where(codes == 1, -1.0, 1.0)
        signed = signs[:, None] * decisions[:, :, 0]
        return np.logaddexp(0.0, signed), expit(decisions)
    own = np.take_along_axis(decisions, codes[:, None, None], axis=2)[:, :, 0]
    top = decisions.max(axis=2)
    P = np.exp(decisions - top[:, :, None])
    total = P.sum(axis=2)
    P /= total[:, :, None]
    return np.log(total) + top - own, P


def loss_and_gradient(
    feature_map, X, codes, coefs, intercepts, sample_weight=None, rows=None
):
    r"""Loss without penalty of every alpha's coefficients, and gradients, in one pass.

    Parameters
    ----------
    feature_map : object with ``n_components``, ``dtype`` and ``(X, out=None) -> Z``
        Maps a block of rows.
    X : ndarray or CSR matrix of shape (n_samples, n_features)
        Data.
    codes : ndarray of int, shape (n_samples,)
        Numbers of the classes.
    coefs : ndarray of shape (m, n_alphas, k)
        Coefficients :math:`\beta`; k is 1 for two classes.
    intercepts : ndarray of shape (n_alphas, k)
        Intercepts b.
    sample_weight : ndarray of shape (n_samples,), optional
        Row weights.
    rows : ndarray of int, optional
        Rows to use; all by default.

    Returns
    -------
    loss : ndarray of shape (n_alphas,)
    coef_gradient : ndarray of shape (m, n_alphas, k)
    intercept_gradient : ndarray of shape (n_alphas, k)

    Notes
    -----
    ``O(n m (d + n_alphas k))`` time; a block of features and of decisions is held.
    """
    m, n_alphas, k = coefs.shape
    flat = np.ascontiguousarray(coefs.reshape(m, -1), dtype=feature_map.dtype)
    size = block_rows(n_alphas * k, np.float64)

    def sums_of(part):
        loss = np.zeros(n_alphas)
        by_coef, by_intercept = np.zeros((m, n_alphas * k)), np.zeros((n_alphas, k))
        for index, Z in feature_blocks(feature_map, X, rows, part):
            y = codes[index]
            weight = np.ones(len(Z)) if sample_weight is None else sample_weight[index]
            for some in row_blocks(len(Z), size):
                decisions = (Z[some] @ flat).reshape(-1, n_alphas, k) + intercepts
                row_losses, residual = losses(decisions, y[some])
                loss += weight[some] @ row_losses
                if k == 1:
                    residual -= y[some, None, None]
                else:
                    residual[np.arange(len(residual)), :, y[some]] -= 1.0
                residual *= weight[some, None, None]
                by_intercept += residual.sum(axis=0)
                residual = residual.reshape(-1, n_alphas * k).astype(
                    Z.dtype, copy=False
                )
                by_coef += Z[some].T @ residual
        return loss, by_coef, by_intercept

    n_rows = X.shape[0] if rows is None else len(rows)
    parts = map_slices(sums_of, n_rows)
    loss, by_coef, by_intercept = (sum(sums) for sums in zip(*parts, strict=True))
    return loss, by_coef.reshape(coefs.shape), by_intercept


def logistic_path(
    feature_map,
    X,
    codes,
    equations,
    alphas,
    sample_weight=None,
    rows=None,
    *,
    n_classes=2,
    fit_intercept=True,
    tol=1e-4,
    max_iter=1000,
):
    r"""Coefficients and intercepts of every alpha.

    Parameters
    ----------
    feature_map, X, codes, sample_weight, rows
        See `loss_and_gradient`.
    equations : NormalEquations
        Of these rows; their targets are not used.
    alphas : ndarray of shape (n_alphas,)
        Regularisation, > 0.
    n_classes : int, default=2
        Number of classes.
    fit_intercept : bool, default=True
        Whether to fit intercepts, which are not penalised.
    tol : float, default=1e-4
        An alpha is done when :math:`g^\top H^{-1} g \le \mathrm{tol}^2\, \omega` for
        its gradient g, the bound H of its Hessian and the sum of weights
        :math:`\omega`: about twice the loss per row that is still to be gained is
        below :math:`\mathrm{tol}^2`.
    max_iter : int, default=1000
        Passes over the data.

    Returns
    -------
    coefs : ndarray of shape (m, n_alphas, k)
    intercepts : ndarray of shape (n_alphas, k)
    converged : ndarray of bool, shape (n_alphas,)
    n_passes : int

    Notes
    -----
    About ``9 m^3`` operations once, and ``n_passes`` passes of `loss_and_gradient`,
    typically 20 to 100, more for a smaller alpha and separable classes.

    References
    ----------
    .. [1] D. Boehning, "Multinomial Logistic Regression Algorithm", Annals of the
       Institute of Statistical Mathematics 44, 1992.
    """
    alphas = np.asarray(alphas, dtype=np.float64)
    k = 1 if n_classes == 2 else n_classes
    bound = 0.25 if k == 1 else 0.5
    e, vectors, _ = spectrum(equations, fit_intercept)
    m, weight_sum = len(e), equations.weight_sum
    mean = np.zeros(m)
    if fit_intercept:
        mean = equations.feature_sum / weight_sum
    scale = 1.0 / np.sqrt(bound * e[:, None] + alphas)  # (m, n_alphas)
    intercept_scale = fit_intercept / np.sqrt(bound * weight_sum)

    def unscaled(which, points):
        """Coefficients and intercepts of scaled points, shape (n, m + 1, k)."""
        scaled = points[:, :-1] * scale.T[which, :, None]
        coefs = (vectors @ scaled.transpose(1, 0, 2).reshape(m, -1)).reshape(
            m, len(points), k
        )
        # The points' intercept is that of centred features.
        shift = np.tensordot(mean, coefs, 1)
        return coefs, points[:, -1] * intercept_scale - shift

    def function(which, flat):
        points = flat.reshape(len(flat), m + 1, k)
        coefs, intercepts = unscaled(which, points)
        loss, by_coef, by_intercept = loss_and_gradient(
            feature_map, X, codes, coefs, intercepts, sample_weight, rows
        )
        loss = loss + 0.5 * alphas[which] * np.square(coefs).sum(axis=(0, 2))
        by_coef -= mean[:, None, None] * by_intercept
        by_coef += alphas[which, None] * coefs
        gradients = np.empty_like(points)
        rotated = (vectors.T @ by_coef.reshape(m, -1)).reshape(by_coef.shape)
        gradients[:, :-1] = (rotated * scale[:, which, None]).transpose(1, 0, 2)
        gradients[:, -1] = by_intercept * intercept_scale
        return loss, gradients.reshape(flat.shape)

    points, converged, n_passes = minimise(
        function,
        np.zeros((len(alphas), (m + 1) * k)),
        tol * np.sqrt(weight_sum),
        max_iter,
        4 * np.finfo(feature_map.dtype).eps,
    )
    every = np.arange(len(alphas))
    coefs, intercepts = unscaled(every, points.reshape(len(alphas), m + 1, k))
    return coefs, intercepts, converged, n_passes


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
    surff.logistic.logistic_path : The fit as a function, with its cost.

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
