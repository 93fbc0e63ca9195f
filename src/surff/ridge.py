"""Kernel ridge regression and classification on streamed features."""

import numbers
import warnings

import numpy as np
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    MultiOutputMixin,
    RegressorMixin,
    _fit_context,
    clone,
)
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_sample_weight,
    check_is_fitted,
    validate_data,
)

from surff._threads import map_slices
from surff.alpha_selection import (
    AlphaPath,
    best_index,
    coefficient_path,
    held_out_decisions,
    relative_grid,
    splits_equations,
    squared_errors,
)
from surff.blocks import feature_blocks
from surff.features import FLOAT_DTYPES, FourierFeatures, one_vs_rest
from surff.normal_equations import accumulate
from surff.solvers import SOLVERS, solve

__all__ = ["KernelRidgeClassifier", "KernelRidgeRegressor"]

#: ``alphas="auto"``: decades relative to the mean eigenvalue of the Gram matrix, and
#: how far the grid may grow when the best lies at an end.
AUTO_DECADES = np.arange(-8.0, 2.5, 0.5)
AUTO_LIMITS = (-14.0, 8.0)
AUTO_STEP = np.arange(0.5, 2.5, 0.5)


class _KernelRidge(BaseEstimator):
    """Ridge on a feature map whose features are made block by block, never stored."""

    _parameter_constraints: dict = {  # noqa: RUF012  (scikit-learn's convention)
        "features": [None, HasMethods(["fit", "transform"])],
        "alphas": [
            StrOptions({"auto"}),
            Interval(numbers.Real, 0.0, None, closed="left"),
            "array-like",
        ],
        "cv": ["cv_object"],
        "scoring": [None, str, callable],
        "fit_intercept": ["boolean"],
        "solver": [StrOptions(set(SOLVERS))],
    }

    def __init__(
        self,
        features=None,
        *,
        alphas="auto",
        cv=5,
        scoring=None,
        fit_intercept=True,
        solver="cholesky",
    ):
        self.features = features
        self.alphas = alphas
        self.cv = cv
        self.scoring = scoring
        self.fit_intercept = fit_intercept
        self.solver = solver

    def _fit(self, X, y, Y, sample_weight):
        """Fit numeric targets ``Y`` (n_samples, k); ``y`` feeds splitter and scorer."""
        # A target shifted to mean zero loses no digits in the sums of squares.
        offset = np.average(Y, axis=0, weights=sample_weight)
        offset = offset if self.fit_intercept else np.zeros_like(offset)
        self.features_ = self._checked_features()._fit(X, Y, sample_weight)
        if hasattr(self, "feature_names_in_"):
            self.features_.feature_names_in_ = self.feature_names_in_
        feature_map = self.features_._map()
        data = (feature_map, X, Y - offset)

        alphas = self._checked_alphas()
        if alphas is not None and len(alphas) == 1:
            total = accumulate(*data, sample_weight)
            self.alpha_, self.best_score_ = float(alphas[0]), None
            self.__dict__.pop("alpha_path_", None)  # an earlier fit's
        else:
            splits = list(
                check_cv(self.cv, y, classifier=self._is_classifier).split(X, y)
            )
            total, equations = splits_equations(*data, splits, sample_weight)

            def score(alphas):
                return np.column_stack(
                    [
                        self._split_scores(
                            split, data, y, offset, sample_weight, alphas
                        )
                        for split in equations()
                    ]
                )

            self.alpha_path_ = self._search(alphas, total, score)
            best = best_index(self.alpha_path_)
            self.alpha_ = float(self.alpha_path_.alphas[best])
            self.best_score_ = float(self.alpha_path_.scores[best].mean())
        coef, intercept = solve(
            total.centred(self.fit_intercept), self.alpha_, self.solver
        )
        self.coef_ = coef.T.astype(X.dtype)
        self.intercept_ = (intercept + offset).astype(X.dtype)

    def _checked_features(self):
        """A clone of the feature map, its parameters checked."""
        features = FourierFeatures() if self.features is None else self.features
        if isinstance(features, type) or not hasattr(features, "_map"):
            raise TypeError(
                "features must be None or a transformer of surff such as "
                f"FourierFeatures(), got {features!r}."
            )
        features = clone(features)
        features._validate_params()
        return features

    def _checked_alphas(self):
        """Ascending array of alphas, or None for "auto"."""
        if isinstance(self.alphas, str):
            return None
        alphas = np.unique(np.asarray(self.alphas, dtype=np.float64))
        if alphas.size == 0 or not np.all((alphas >= 0) & np.isfinite(alphas)):
            raise ValueError(
                "alphas must be 'auto', a number >= 0 or a non-empty sequence of them, "
                f"got {self.alphas!r}."
            )
        return alphas

    def _search(self, alphas, total, score):
        """Scores of the grid; the automatic one grows while the best is at an end."""
        if alphas is not None:
            path = AlphaPath(alphas, score(alphas))
            singular = alphas[np.isnan(path.scores).any(axis=1)]
            if 0 < len(singular) < len(alphas):
                warnings.warn(
                    "Z^T Z + alpha I is singular to working precision for "
                    f"alphas={singular.tolist()}; they were not scored.",
                    stacklevel=4,
                )
            return path

        decades = AUTO_DECADES
        grid = relative_grid(total, self.fit_intercept, decades)
        path = AlphaPath(grid, score(grid))
        while True:
            best = best_index(path)
            scored = np.flatnonzero(~np.isnan(path.scores).any(axis=1))
            if best == scored[0] == 0 and decades[0] > AUTO_LIMITS[0]:
                new = decades[0] - AUTO_STEP[::-1]
            elif best == len(decades) - 1 and decades[-1] < AUTO_LIMITS[1]:
                new = decades[-1] + AUTO_STEP
            else:
                return path
            grid = relative_grid(total, self.fit_intercept, new)
            order = np.argsort(decades := np.concatenate([decades, new]))
            path = AlphaPath(
                np.concatenate([path.alphas, grid])[order],
                np.concatenate([path.scores, score(grid)])[order],
            )
            decades = decades[order]

    def _held_out_scores(self, split, data, y, offset, sample_weight, alphas):
        """Scores of a scorer on held-out predictions, shape (n_alphas,)."""
        feature_map, X, _ = data
        rows = split.test_rows
        coefs, intercepts = coefficient_path(
            split.train, alphas, self.fit_intercept, self.solver
        )
        decisions = held_out_decisions(feature_map, X, rows, coefs, intercepts + offset)
        weight = None if sample_weight is None else sample_weight[rows]
        scores = np.full(len(alphas), np.nan)
        for i in range(len(alphas)):
            if not np.isnan(intercepts[i]).any():
                scores[i] = self._score_decisions(decisions[:, i], rows, X, y, weight)
        return scores

    def _score_decisions(self, decision, rows, X, y, weight):
        held_out = _HeldOut(self, decision)
        scorer = check_scoring(held_out, scoring=self.scoring)
        options = {} if weight is None else {"sample_weight": weight}
        return scorer(held_out, X[rows], y[rows], **options)

    def _decisions(self, X):
        """Linear predictions of checked rows, shape (n_samples, k)."""
        feature_map = self.features_._map().astype(X.dtype)
        coef = self._coef_rows().T.astype(X.dtype)
        decisions = np.empty((X.shape[0], coef.shape[1]), dtype=X.dtype)

        def decide(part):
            for index, Z in feature_blocks(feature_map, X, part=part):
                np.matmul(Z, coef, out=decisions[index])

        map_slices(decide, X.shape[0])
        return decisions + self.intercept_.astype(X.dtype)

    def _coef_rows(self):
        return np.atleast_2d(self.coef_)

    def _checked(self, X):
        check_is_fitted(self)
        return validate_data(
            self, X, dtype=FLOAT_DTYPES, accept_sparse="csr", reset=False
        )

    def _checked_weight(self, sample_weight, X):
        """Weights of the rows, None for none given."""
        if sample_weight is None:
            return None
        sample_weight = _check_sample_weight(
            sample_weight, X, dtype=X.dtype, ensure_non_negative=True
        )
        if not sample_weight.any():
            raise ValueError("sample_weight must have a positive entry, got all zeros.")
        return sample_weight

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class KernelRidgeRegressor(MultiOutputMixin, RegressorMixin, _KernelRidge):
    r"""Kernel ridge regression on streamed random features.

    Minimises :math:`\|y - Z \beta - b\|^2 + \alpha \|\beta\|^2` for the features Z of
    ``features``. Rows are mapped block by block and only their normal equations are
    kept, so memory does not depend on their number.

    Parameters
    ----------
    features : transformer of surff or None, default=None
        Feature map; None is ``FourierFeatures()``. It is cloned and fitted.
    alphas : "auto", float or array-like, default="auto"
        Regularisation, >= 0, in units of :math:`Z^\top Z` (the paper's
        :math:`n \lambda`). One number is used as it is; among several the best
        cross-validated one is chosen; "auto" takes half decades from 1e-8 to 1e2 times
        the mean eigenvalue of the Gram matrix and grows while the best is at an end.
    cv : int, splitter or iterable, default=5
        Cross-validation, see `sklearn.model_selection.check_cv`; not used for a single
        alpha.
    scoring : None, str or callable, default=None
        A scikit-learn scorer; None is R2. R2 and "neg_mean_squared_error" come from the
        normal equations without a second pass over the data.
    fit_intercept : bool, default=True
        Whether to fit an intercept.
    solver : {"cholesky", "eigh"}, default="cholesky"
        Key of `surff.solvers.SOLVERS`: a Cholesky factorisation for each alpha, or one
        eigendecomposition for all, slower and at home with singular matrices.

    Attributes
    ----------
    coef_ : ndarray of shape (n_components,) or (n_targets, n_components)
        Coefficients :math:`\beta`.
    intercept_ : float or ndarray of shape (n_targets,)
        Intercept b.
    alpha_ : float
        Regularisation used.
    best_score_ : float or None
        Mean score of ``alpha_`` over the held-out folds; None for a single alpha.
    alpha_path_ : AlphaPath
        Alphas and their scores; not set for a single alpha.
    features_ : transformer
        The fitted feature map.
    n_features_in_ : int
        Columns of ``X``.

    Raises
    ------
    SingularError
        If :math:`Z^\top Z + \alpha I` is singular to working precision.

    Notes
    -----
    ``O(n m (d + m))`` time for m components, and ``O(m^3)`` an alpha and fold. Memory
    is one block of features and ``n_splits + 4`` matrices of m by m, in float64;
    float32 data are multiplied in float32 and summed in float64.

    Where ``features`` looks at ``y`` (``select="surrogate"``) it has seen the held-out
    rows' targets too, and ``best_score_`` is optimistic by as much.

    Examples
    --------
    >>> from sklearn.datasets import make_friedman1
    >>> from surff import FourierFeatures, KernelRidgeRegressor
    >>> X, y = make_friedman1(500, random_state=0)
    >>> model = KernelRidgeRegressor(FourierFeatures(512, random_state=0)).fit(X, y)
    >>> model.best_score_ > 0.85
    True
    """

    _is_classifier = False

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y, sample_weight=None):
        """Fit the feature map, choose alpha and solve.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Data, finite.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Targets, finite.
        sample_weight : array-like of shape (n_samples,), optional
            Row weights, >= 0: weight w counts as the row repeated w times.

        Returns
        -------
        self
        """
        X, y = validate_data(
            self, X, y, dtype=FLOAT_DTYPES, accept_sparse="csr", multi_output=True,
            y_numeric=True,
        )  # fmt: skip
        sample_weight = self._checked_weight(sample_weight, X)
        y = y.astype(np.float64)
        self._fit(X, y, y.reshape(len(y), -1), sample_weight)
        if y.ndim == 1:
            self.coef_, self.intercept_ = self.coef_[0], self.intercept_[0]
        return self

    def _split_scores(self, split, data, y, offset, sample_weight, alphas):
        if self.scoring not in (None, "r2", "neg_mean_squared_error"):
            return self._held_out_scores(split, data, y, offset, sample_weight, alphas)
        coefs, intercepts = coefficient_path(
            split.train, alphas, self.fit_intercept, self.solver
        )
        test = split.test
        errors = squared_errors(test, coefs, intercepts)
        if self.scoring == "neg_mean_squared_error":
            return -errors.mean(axis=1) / test.weight_sum
        spread = test.target_square - test.target_sum**2 / test.weight_sum
        # As r2_score: a constant target scores 1 if it is met and 0 if not.
        floor = np.finfo(np.float64).eps * test.target_square
        constant = spread <= floor
        ratio = errors / np.where(constant, 1.0, spread)
        ratio[:, constant] = errors[:, constant] > floor[constant]
        return 1.0 - ratio.mean(axis=1)

    def predict(self, X):
        """Predict the targets of rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Data, finite.

        Returns
        -------
        y : ndarray of shape (n_samples,) or (n_samples, n_targets)
        """
        decisions = self._decisions(self._checked(X))
        return decisions[:, 0] if self.coef_.ndim == 1 else decisions


class KernelRidgeClassifier(ClassifierMixin, _KernelRidge):
    r"""Kernel ridge classification on streamed random features.

    Least squares on targets -1 and 1, one-vs-rest for more than two classes; the class
    of the largest prediction wins. Any labels are taken.

    The parameters, memory and cost are those of `KernelRidgeRegressor`;
    ``scoring=None`` is the accuracy, which takes one more streaming pass for all alphas
    together, and ``cv=5`` keeps the classes' shares in each fold.

    Parameters
    ----------
    features : transformer of surff or None, default=None
        Feature map; None is ``FourierFeatures()``. It is cloned and fitted.
    alphas : "auto", float or array-like, default="auto"
        Regularisation, see `KernelRidgeRegressor`.
    cv : int, splitter or iterable, default=5
        Cross-validation; stratified for an int.
    scoring : None, str or callable, default=None
        A scikit-learn scorer that needs `predict` or `decision_function`; None is the
        accuracy.
    fit_intercept : bool, default=True
        Whether to fit an intercept.
    solver : {"cholesky", "eigh"}, default="cholesky"
        See `KernelRidgeRegressor`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels, sorted.
    coef_ : ndarray of shape (1, n_components) or (n_classes, n_components)
        Coefficients.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Intercepts.
    alpha_ : float
        Regularisation used.
    best_score_ : float or None
        Mean score of ``alpha_`` over the held-out folds; None for a single alpha.
    alpha_path_ : AlphaPath
        Alphas and their scores; not set for a single alpha.
    features_ : transformer
        The fitted feature map.
    n_features_in_ : int
        Columns of ``X``.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from surff import FourierFeatures, KernelRidgeClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> features = FourierFeatures(200, select="surrogate", random_state=0)
    >>> model = KernelRidgeClassifier(features).fit(scale(X), y)
    >>> model.best_score_ > 0.95
    True
    """

    _is_classifier = True

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y, sample_weight=None):
        """Fit the feature map, choose alpha and solve.

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
        X, y = validate_data(self, X, y, dtype=FLOAT_DTYPES, accept_sparse="csr")
        check_classification_targets(y)
        sample_weight = self._checked_weight(sample_weight, X)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(
                "y must hold at least two classes, got one class: "
                f"{self.classes_.tolist()[0]!r}."
            )
        Y = one_vs_rest(codes, len(self.classes_))
        self._fit(X, y, Y, sample_weight)
        return self

    _split_scores = _KernelRidge._held_out_scores

    def _score_decisions(self, decision, rows, X, y, weight):
        if self.scoring not in (None, "accuracy"):
            return super()._score_decisions(decision, rows, X, y, weight)
        return np.average(self._labels(decision) == y[rows], weights=weight)

    def _labels(self, decisions):
        """Class labels of predictions of shape (n_samples, k)."""
        if decisions.shape[1] == 1:
            return self.classes_[(decisions[:, 0] > 0).astype(int)]
        return self.classes_[decisions.argmax(axis=1)]

    def decision_function(self, X):
        """Predicted targets before the sign or the maximum is taken.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Data, finite.

        Returns
        -------
        decisions : ndarray of shape (n_samples,) or (n_samples, n_classes)
            Positive values speak for ``classes_[1]`` when there are two classes.
        """
        decisions = self._decisions(self._checked(X))
        return decisions[:, 0] if decisions.shape[1] == 1 else decisions

    def predict(self, X):
        """Predict the class of rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Data, finite.

        Returns
        -------
        y : ndarray of shape (n_samples,)
            Labels out of ``classes_``.
        """
        return self._labels(self._decisions(self._checked(X)))


class _HeldOut(BaseEstimator):
    """What a scorer asks of an estimator, answered from held-out predictions."""

    def __init__(self, model, decisions):
        self.model = model
        self.decisions = decisions

    @property
    def classes_(self):
        return self.model.classes_

    def fit(self, X, y):
        raise TypeError("held-out predictions belong to a fitted model")

    def decision_function(self, X):
        return self.decisions[:, 0] if self.decisions.shape[1] == 1 else self.decisions

    def predict(self, X):
        if self.model._is_classifier:
            return self.model._labels(self.decisions)
        return self.decision_function(X)

    def __sklearn_tags__(self):
        return self.model.__sklearn_tags__()
