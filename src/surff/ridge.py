"""Kernel ridge regression and classification on streamed features."""

import numbers
import warnings
from typing import NamedTuple

import numpy as np
from scipy import linalg
from scipy.special import expit
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    MultiOutputMixin,
    RegressorMixin,
    _fit_context,
    clone,
)
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import check_cv
from sklearn.utils import get_tags
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import (
    _check_n_features,
    _check_sample_weight,
    check_is_fitted,
)

from surff._threads import map_slices
from surff._validation import as_generator, validated
from surff.alpha_selection import (
    AlphaPath,
    best_index,
    climb,
    relative_grid,
    squared_errors,
)
from surff.blocks import feature_blocks, rows_of
from surff.criteria import (
    R2,
    Accuracy,
    Data,
    GeneralizedCrossValidation,
    HeldOutSplits,
    LeaveOneOut,
    ScorerOf,
    SquaredError,
)
from surff.features import FourierFeatures, one_vs_rest
from surff.normal_equations import NormalEquations, accumulate
from surff.solvers import SOLVERS, SingularError, solve

__all__ = ["KernelRidgeClassifier", "KernelRidgeRegressor"]

#: ``alphas="auto"``: decades relative to the mean eigenvalue of the Gram matrix, and
#: how far the grid may grow when the best lies at an end.
AUTO_DECADES = np.arange(-8.0, 2.5, 0.5)
AUTO_LIMITS = (-14.0, 8.0)
AUTO_STEP = np.arange(0.5, 2.5, 0.5)


class _Choice(NamedTuple):
    """A fitted feature map and the alpha that goes with it."""

    features: object
    total: NormalEquations
    alpha: object  # float, or (n_targets,)
    score: float | None
    path: AlphaPath | None
    criterion: object | None
    offset: np.ndarray


def _learns_in_pieces(model):
    """Whether `partial_fit` can do what the parameters ask for."""
    if model.probability:
        raise AttributeError(
            "probability=True needs predictions of rows left out, which partial_fit "
            "cannot make; set it to False"
        )
    if model.gammas is not None:
        raise AttributeError(
            "gammas needs several passes over the data, which partial_fit does not "
            f"make; set it to None, got {model.gammas!r}"
        )
    if not model.keep_equations:
        raise AttributeError(
            "partial_fit needs the normal equations: keep_equations must be True, got "
            f"{model.keep_equations!r}"
        )
    return True


def best_alpha(path):
    """Best alpha of a path, or that of each target, and its mean score."""
    best = best_index(path)
    means = path.scores.mean(axis=1)
    if np.ndim(best):
        return path.alphas[best], float(means[best, np.arange(len(best))].mean())
    return float(path.alphas[best]), float(means[best])


class _KernelRidge(BaseEstimator):
    """Ridge on a feature map whose features are made block by block, never stored."""

    _parameter_constraints: dict = {  # noqa: RUF012  (scikit-learn's convention)
        "features": [None, HasMethods(["fit", "transform"])],
        "alphas": [
            StrOptions({"auto"}),
            Interval(numbers.Real, 0.0, None, closed="left"),
            "array-like",
        ],
        "gammas": [None, StrOptions({"auto"}), "array-like"],
        "cv": [StrOptions({"gcv", "loo"}), "cv_object"],
        "scoring": [None, str, callable],
        "fit_intercept": ["boolean"],
        "solver": [StrOptions(set(SOLVERS))],
        "keep_equations": ["boolean"],
    }

    #: Options that one of the two estimators has and the other has not.
    alpha_per_target = False
    probability = False

    # -- fitting -----------------------------------------------------------------------

    def _fit(self, X, y, Y, sample_weight):
        """Fit numeric targets ``Y`` (n_samples, k); ``y`` feeds splitter and scorer."""
        for name in ("alpha_path_", "gamma_path_", "equations_", "_posterior_"):
            self.__dict__.pop(name, None)  # an earlier fit's
        if self.gammas is None:
            choice = self._choose(self._checked_features(), X, y, Y, sample_weight)
        else:
            choice = self._choose_gamma(X, y, Y, sample_weight)
        self.features_, self.alpha_, self.best_score_ = choice.features, *choice[2:4]
        if choice.path is not None:
            self.alpha_path_ = choice.path
        self._solve(choice.total, choice.offset, X.dtype)
        if self.keep_equations:
            self.equations_, self._offset = choice.total, choice.offset
        return choice

    def _choose(self, features, X, y, Y, sample_weight):
        """Fit a feature map and choose alpha for it."""
        refit = self._refit(features, X, Y, sample_weight)
        features = self._fitted_features(features, X, Y, sample_weight)
        offset = self._target_offset(Y, sample_weight)
        data = Data(
            features._map().astype(X.dtype),
            X,
            Y - offset,
            offset,
            sample_weight,
            self.fit_intercept,
            self.solver,
        )
        alphas = self._checked_alphas()
        needs_scores = self.gammas is not None or self.probability
        if alphas is not None and len(alphas) == 1 and not needs_scores:
            total = accumulate(data.feature_map, X, data.Y, sample_weight)
            return _Choice(features, total, float(alphas[0]), None, None, None, offset)
        if isinstance(self.cv, str):
            self._positive(alphas, self.cv)
        criterion = self._criterion(data, y, Y, refit)
        path = self._search(alphas, criterion)
        alpha, score = best_alpha(path)
        return _Choice(features, criterion.total, alpha, score, path, criterion, offset)

    def _target_offset(self, Y, sample_weight):
        """Mean of the targets: taken out, it costs the sums no digits."""
        if not self.fit_intercept:
            return np.zeros(Y.shape[1])
        return np.average(Y, axis=0, weights=sample_weight)

    def _fitted_features(self, features, X, Y, sample_weight):
        """The feature map fitted to checked data; a frozen one as it is."""
        if isinstance(features, FrozenEstimator):
            features = features.estimator
            check_is_fitted(features)
            _check_n_features(features, X, reset=False)
            return features
        features._fit(X, Y, sample_weight)
        if hasattr(self, "feature_names_in_"):
            features.feature_names_in_ = self.feature_names_in_
        return features

    def _refit(self, features, X, Y, sample_weight):
        """What fits features to some of the rows, where they look at the targets.

        Features that do not, and frozen ones, serve every split as they are: None.
        """
        frozen = isinstance(features, FrozenEstimator)
        if frozen or not get_tags(features).target_tags.required:
            return None

        def refit(rows):
            weight = None if sample_weight is None else sample_weight[rows]
            some = clone(features)._fit(rows_of(X, rows), Y[rows], weight)
            return some._map().astype(X.dtype)

        return refit

    def _choose_gamma(self, X, y, Y, sample_weight):
        """Choose gamma by the score of its best alpha."""
        features = self._checked_features()
        if (
            isinstance(features, FrozenEstimator)
            or "gamma" not in features.get_params()
        ):
            raise ValueError(
                "gammas needs features with a parameter gamma that may change, got "
                f"features={features!r}."
            )
        # The same draws for every gamma: the choice is not one among random draws.
        seed = int(as_generator(features.random_state).integers(2**31))
        features.set_params(random_state=seed)
        best = None

        def score(gamma):
            nonlocal best
            candidate = clone(features).set_params(gamma=float(gamma))
            choice = self._choose(candidate, X, y, Y, sample_weight)
            if best is None or choice.score > best.score:
                best = choice
            return choice.score

        if isinstance(self.gammas, str):
            start = clone(features)._fit(X, Y, sample_weight).gamma_
            if start is None or np.ndim(start):
                raise ValueError(
                    "gammas='auto' climbs from the one gamma of the features, got "
                    f"features with gamma_={start!r}."
                )
            _, scores = climb(score, start)
        else:
            gammas = np.unique(np.asarray(self.gammas, dtype=np.float64))
            if gammas.size == 0 or not np.all((gammas > 0) & np.isfinite(gammas)):
                raise ValueError(
                    "gammas must be None, 'auto' or a non-empty sequence of positive "
                    f"numbers, got {self.gammas!r}."
                )
            scores = {float(gamma): score(gamma) for gamma in gammas}
        self.gamma_path_ = scores
        return best

    def _criterion(self, data, y, Y, refit):
        """What alphas are judged by."""
        if isinstance(self.cv, str) and self.cv == "gcv":
            if self.scoring is not None:
                raise ValueError(
                    "cv='gcv' minimises the GCV error: scoring must be None, got "
                    f"{self.scoring!r}."
                )
            return GeneralizedCrossValidation(data)
        scorer = self._scorer(data, y, Y)
        if isinstance(self.cv, str):
            return LeaveOneOut(data, scorer)
        splitter = check_cv(self.cv, y, classifier=self._is_classifier)
        return HeldOutSplits(data, list(splitter.split(data.X, y)), scorer, refit)

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

    def _positive(self, alphas, cv):
        """Refuse an alpha of 0 where scores come from formulas instead of folds."""
        if alphas is not None and alphas[0] == 0:
            raise ValueError(
                f"alphas must be positive for cv={cv!r}, whose formula divides by "
                f"what alpha leaves of the degrees of freedom, got {self.alphas!r}; "
                "k-fold takes 0."
            )

    def _search(self, alphas, criterion):
        """Scores of the grid; the automatic one grows while the best is at an end."""

        def score(alphas):
            scores = criterion.score(alphas)
            return scores if self.alpha_per_target else scores.mean(axis=2)

        if alphas is not None:
            path = AlphaPath(alphas, score(alphas))
            missing = np.isnan(path.scores).reshape(len(alphas), -1).any(axis=1)
            singular = alphas[missing]
            if 0 < len(singular) < len(alphas):
                warnings.warn(
                    "Z^T Z + alpha I is singular to working precision for "
                    f"alphas={singular.tolist()}; they were not scored.",
                    stacklevel=5,
                )
            return path

        decades = AUTO_DECADES
        grid = relative_grid(criterion.total, self.fit_intercept, decades)
        path = AlphaPath(grid, score(grid))
        while True:
            best = best_index(path)
            missing = np.isnan(path.scores).reshape(len(decades), -1).any(axis=1)
            first = np.flatnonzero(~missing)[0]
            if first == 0 and np.any(best == 0) and decades[0] > AUTO_LIMITS[0]:
                new = decades[0] - AUTO_STEP[::-1]
            elif np.any(best == len(decades) - 1) and decades[-1] < AUTO_LIMITS[1]:
                new = decades[-1] + AUTO_STEP
            else:
                return path
            grid = relative_grid(criterion.total, self.fit_intercept, new)
            order = np.argsort(decades := np.concatenate([decades, new]))
            path = AlphaPath(
                np.concatenate([path.alphas, grid])[order],
                np.concatenate([path.scores, score(grid)])[order],
            )
            decades = decades[order]

    def _solve(self, total, offset, dtype):
        """Set the coefficients of ``alpha_``."""
        centred = total.centred(self.fit_intercept)
        if np.ndim(self.alpha_):
            coef, intercept = (np.empty_like(a) for a in (centred[1], centred[3]))
            for alpha in np.unique(self.alpha_):
                targets = self.alpha_ == alpha
                some = centred._replace(
                    moments=centred.moments[:, targets],
                    target_mean=centred.target_mean[targets],
                )
                coef[:, targets], intercept[targets] = solve(some, alpha, self.solver)
        else:
            coef, intercept = solve(centred, self.alpha_, self.solver)
        self.coef_ = coef.T.astype(dtype)
        self.intercept_ = (intercept + offset).astype(dtype)

    # -- fitting in pieces -------------------------------------------------------------

    def _partial_fit(self, X, Y, sample_weight):
        """Add rows to the normal equations and solve anew."""
        if not hasattr(self, "equations_"):
            if hasattr(self, "coef_"):
                raise ValueError(
                    "partial_fit cannot go on from a fit whose normal equations were "
                    "not kept; fit with keep_equations=True."
                )
            self.features_ = self._fitted_features(
                self._checked_features(), X, Y, sample_weight
            )
            # Any constant will do; the first rows' mean saves most of the digits.
            self._offset = self._target_offset(Y, sample_weight)
            m = self.features_._map().n_components
            self.equations_ = NormalEquations(m, Y.shape[1])
        feature_map = self.features_._map().astype(X.dtype)
        part = accumulate(feature_map, X, Y - self._offset, sample_weight)
        self.equations_.merge(part)
        self._choose_from_equations(X.dtype)

    def _choose_from_equations(self, dtype):
        """Choose alpha by GCV, unless there is one only, and solve."""
        self.__dict__.pop("_posterior_", None)
        alphas = self._checked_alphas()
        if alphas is not None and len(alphas) == 1:
            self.alpha_, self.best_score_ = float(alphas[0]), None
        else:
            self._positive(alphas, "gcv")
            criterion = GeneralizedCrossValidation.of_equations(
                self.equations_, self.fit_intercept, self.solver
            )
            self.alpha_path_ = self._search(alphas, criterion)
            self.alpha_, self.best_score_ = best_alpha(self.alpha_path_)
        self._solve(self.equations_, self._offset, dtype)

    # -- predicting --------------------------------------------------------------------

    def _decisions(self, X):
        """Linear predictions of checked rows, shape (n_samples, k)."""
        feature_map = self.features_._map().astype(X.dtype)
        coef = np.ascontiguousarray(np.atleast_2d(self.coef_).T, dtype=X.dtype)
        decisions = np.empty((X.shape[0], coef.shape[1]), dtype=X.dtype)

        def decide(part):
            for index, Z in feature_blocks(feature_map, X, part=part):
                np.matmul(Z, coef, out=decisions[index])

        map_slices(decide, X.shape[0])
        return decisions + self.intercept_.astype(X.dtype)

    def _checked(self, X):
        check_is_fitted(self)
        return validated(self, X, reset=False)

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

    @staticmethod
    def _outputs(decisions):
        """Predictions of shape (n_samples, k) as users see them."""
        return decisions[:, 0] if decisions.shape[1] == 1 else decisions

    def __getstate__(self):
        state = super().__getstate__().copy()
        state.pop("_posterior_", None)  # follows from the rest
        return state

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        # A precomputed kernel is split by rows and columns.
        tags.input_tags.pairwise = (
            getattr(self.features, "kernel", None) == "precomputed"
        )
        return tags


def check_columns(y, n_columns):
    """Refuse a target of another shape than that of the first piece."""
    columns = 1 if y.ndim == 1 else y.shape[1]
    if columns != n_columns:
        raise ValueError(
            f"y must have {n_columns} column{'s' if n_columns > 1 else ''}, as in the "
            f"first call to partial_fit, got {columns}."
        )


class KernelRidgeRegressor(MultiOutputMixin, RegressorMixin, _KernelRidge):
    r"""Kernel ridge regression on streamed random features.

    Minimises :math:`\|y - Z \beta - b\|^2 + \alpha \|\beta\|^2` for the features Z of
    ``features``. Rows are mapped block by block and only their normal equations are
    kept, so memory does not depend on their number.

    Parameters
    ----------
    features : transformer of surff, FrozenEstimator or None, default=None
        Feature map; None is ``FourierFeatures()``. It is cloned and fitted; one that is
        fitted and wrapped in `sklearn.frozen.FrozenEstimator` is used as it is.
    alphas : "auto", float or array-like, default="auto"
        Regularisation, >= 0, in units of :math:`Z^\top Z` (the paper's
        :math:`n \lambda`). One number is used as it is; among several the best one by
        ``cv`` is chosen; "auto" takes half decades from 1e-8 to 1e2 times the mean
        eigenvalue of the Gram matrix and grows while the best is at an end.
    gammas : None, "auto" or array-like, default=None
        Bandwidths to choose from together with alpha, by the same score, each with the
        same draws: None keeps that of ``features``, "auto" walks from it in factors of
        two while the score rises. Costs a fit each.
    cv : int, splitter, iterable, "gcv" or "loo", default=5
        Cross-validation, see `sklearn.model_selection.check_cv`; "gcv" is generalised
        cross-validation, without a second pass over the data, "loo" exact
        leave-one-out; both count a weight w as w rows, and "loo" takes no positive one
        below 1. Not used for a single alpha.
    scoring : None, str or callable, default=None
        A scikit-learn scorer; None is R2. R2 and "neg_mean_squared_error" come from the
        normal equations without a second pass over the data.
    fit_intercept : bool, default=True
        Whether to fit an intercept.
    solver : {"cholesky", "eigh"}, default="cholesky"
        Key of `surff.solvers.SOLVERS`: a Cholesky factorisation for each alpha, or one
        eigendecomposition for all, slower and at home with singular matrices.
    alpha_per_target : bool, default=False
        Choose an alpha for each target; ``scoring`` must be None, "r2" or
        "neg_mean_squared_error".
    keep_equations : bool, default=True
        Keep the normal equations after `fit`, m by m numbers: what
        ``predict(return_std=True)`` and a later `partial_fit` need. False makes a small
        model.

    Attributes
    ----------
    coef_ : ndarray of shape (n_components,) or (n_targets, n_components)
        Coefficients :math:`\beta`.
    intercept_ : float or ndarray of shape (n_targets,)
        Intercept b.
    alpha_ : float, or ndarray of shape (n_targets,) with ``alpha_per_target``
        Regularisation used.
    best_score_ : float or None
        Mean score of ``alpha_`` over the held-out folds (``cv="gcv"``: the negative GCV
        error); None for a single alpha.
    alpha_path_ : AlphaPath
        Alphas and their scores; not set for a single alpha.
    gamma_path_ : dict of float to float
        Bandwidths tried and their best scores; with ``gammas`` only.
    features_ : transformer
        The fitted feature map.
    equations_ : NormalEquations
        With ``keep_equations`` only.
    n_features_in_ : int
        Columns of ``X``.

    Raises
    ------
    SingularError
        If :math:`Z^\top Z + \alpha I` is singular to working precision.

    Notes
    -----
    ``O(n m (d + m))`` time for m components, and ``O(m^3)`` an alpha and fold. Memory
    is a block of features and a matrix of m by m a thread, and ``n_splits + 4`` such
    matrices (twice ``n_splits`` where the splits are not a partition of the rows), in
    float64; float32 data are multiplied in float32 and summed in float64.

    Features that look at ``y`` (``select="surrogate"``) are fitted anew to the training
    rows of each split, so ``best_score_`` is that of rows whose targets nothing has
    seen; "gcv" and "loo" take the features as they are, and so do all of them a
    ``FrozenEstimator``.

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

    _parameter_constraints: dict = {  # noqa: RUF012  (scikit-learn's convention)
        **_KernelRidge._parameter_constraints,
        "alpha_per_target": ["boolean"],
    }

    def __init__(
        self,
        features=None,
        *,
        alphas="auto",
        gammas=None,
        cv=5,
        scoring=None,
        fit_intercept=True,
        solver="cholesky",
        alpha_per_target=False,
        keep_equations=True,
    ):
        self.features = features
        self.alphas = alphas
        self.gammas = gammas
        self.cv = cv
        self.scoring = scoring
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.alpha_per_target = alpha_per_target
        self.keep_equations = keep_equations

    def _validated(self, X, y, sample_weight, reset):
        X, y = validated(self, X, y, multi_output=True, y_numeric=True, reset=reset)
        y = y.astype(np.float64)
        return X, y, y.reshape(len(y), -1), self._checked_weight(sample_weight, X)

    def _unwrap(self, y):
        """Coefficients of a single target without the axis of targets."""
        if y.ndim == 1:
            self.coef_, self.intercept_ = self.coef_[0], self.intercept_[0]

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
        X, y, Y, sample_weight = self._validated(X, y, sample_weight, reset=True)
        self._fit(X, y, Y, sample_weight)
        self._unwrap(y)
        return self

    @available_if(_learns_in_pieces)
    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X, y, sample_weight=None):
        """Add rows to the model.

        The normal equations of the new rows are added to those seen before, so the
        coefficients are those of one `fit` to all rows with the same features and
        alpha, whatever the pieces. The feature map is fitted to the first piece; to fit
        it to other data, do so and pass it as a ``FrozenEstimator``. Several alphas are
        chosen from by generalised cross-validation, which needs no folds.

        There is no such method with ``gammas`` or ``probability``, which need all rows
        at once, nor with ``keep_equations=False``.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Data, finite.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Targets, finite.
        sample_weight : array-like of shape (n_samples,), optional
            Row weights, >= 0.

        Returns
        -------
        self
        """
        first = not hasattr(self, "n_features_in_")
        X, y, Y, sample_weight = self._validated(X, y, sample_weight, reset=first)
        if hasattr(self, "equations_"):
            check_columns(y, len(self.equations_.target_sum))
        self._partial_fit(X, Y, sample_weight)
        self._unwrap(y)
        return self

    def _scorer(self, data, y, Y):
        if self.scoring in (None, "r2"):
            # The folds' equations know targets less the offset; R2 does not mind.
            return R2(Y)
        if self.scoring == "neg_mean_squared_error":
            return SquaredError(Y)
        if self.alpha_per_target:
            raise ValueError(
                "alpha_per_target needs a score of each target: scoring must be None, "
                f"'r2' or 'neg_mean_squared_error', got {self.scoring!r}."
            )
        return ScorerOf(self, self.scoring, data.X, y)

    _predictions = staticmethod(_KernelRidge._outputs)

    def predict(self, X, return_std=False):
        r"""Predict the targets of rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Data, finite.
        return_std : bool, default=False
            Whether to return the standard deviation of each prediction, too.

        Returns
        -------
        y : ndarray of shape (n_samples,) or (n_samples, n_targets)
        std : ndarray of the shape of ``y``
            Standard deviation of a new observation of the target.

        Notes
        -----
        Ridge is the posterior mean of Bayesian linear regression with noise variance
        :math:`\sigma^2`, prior :math:`\beta \sim N(0, \sigma^2 / \alpha\, I)` and a
        flat prior on the intercept. At the chosen alpha

        .. math:: \mathrm{std}^2 = \sigma^2 \bigl(1 + \tfrac1n
                  + z^\top (G + \alpha I)^{-1} z\bigr), \qquad
                  \sigma^2 = \frac{\mathrm{RSS}}{n - \mathrm{df} - 1}

        with centred features z and their Gram matrix G. The first call costs
        ``O(m^3)``; rows cost ``O(m^2)`` each.
        """
        X = self._checked(X)
        mean = self._decisions(X)
        if np.ndim(self.coef_) == 1:
            mean = mean[:, 0]
        if not return_std:
            return mean
        if not hasattr(self, "equations_"):
            raise ValueError(
                "return_std=True needs the normal equations: fit with "
                f"keep_equations=True, got {self.keep_equations!r}."
            )
        return mean, self._standard_deviations(X).reshape(mean.shape)

    def _standard_deviations(self, X):
        """Of a new observation of each target at each row."""
        if not hasattr(self, "_posterior_"):
            self._posterior_ = posterior(
                self.equations_,
                np.broadcast_to(self.alpha_, self.equations_.target_sum.shape),
                self.fit_intercept,
            )
        feature_map = self.features_._map().astype(X.dtype)
        std = np.empty((X.shape[0], len(self.equations_.target_sum)), dtype=X.dtype)

        def decide(part):
            for index, Z in feature_blocks(feature_map, X, part=part):
                for factor, mean, targets, noise in self._posterior_:
                    half = linalg.solve_triangular(factor, (Z - mean).T, trans="T")
                    spread = np.einsum("ij,ij->j", half, half)
                    if self.fit_intercept:
                        spread += 1.0 / self.equations_.weight_sum
                    std[index, targets] = np.sqrt(noise * (1.0 + spread[:, None]))

        map_slices(decide, X.shape[0])
        return std


class Posterior(NamedTuple):
    """Posterior covariance of the coefficients of targets that share an alpha."""

    factor: np.ndarray  # (m, m), upper Cholesky factor of G + alpha I
    feature_mean: np.ndarray  # (m,)
    targets: np.ndarray  # (n_targets,) of bool
    noise: np.ndarray  # variance of the noise of each of them


def posterior(equations, alphas, fit_intercept):
    """`Posterior` of each distinct alpha, one alpha a target."""
    centred = equations.centred(fit_intercept)
    parts = []
    for alpha in np.unique(alphas):
        targets = alphas == alpha
        matrix = centred.gram + alpha * np.eye(len(centred.gram))
        try:
            factor = linalg.cholesky(matrix, lower=False)
        except linalg.LinAlgError:
            raise SingularError(
                "return_std=True needs Z^T Z + alpha I to be regular, and it is "
                f"singular to working precision (alpha={alpha:.3g}, {len(matrix)} "
                "columns); increase alpha."
            ) from None
        coef = linalg.cho_solve((factor, False), centred.moments)
        intercept = centred.target_mean - centred.feature_mean @ coef
        rss = squared_errors(equations, coef[:, None], intercept[None])[0]
        inverse, _ = linalg.lapack.dpotri(factor, lower=0)
        df = len(factor) - alpha * np.trace(inverse) + bool(fit_intercept)
        left = equations.weight_sum - df
        if left <= 0:
            raise ValueError(
                "return_std=True counts a weight w as w rows: a sum of "
                f"{equations.weight_sum:.3g} leaves nothing to estimate the noise from "
                f"beside {df:.3g} degrees of freedom; scale the weights, increase "
                "alpha or add rows."
            )
        noise = rss.clip(min=0.0) / left
        parts.append(Posterior(factor, centred.feature_mean, targets, noise[targets]))
    return parts


class KernelRidgeClassifier(ClassifierMixin, _KernelRidge):
    r"""Kernel ridge classification on streamed random features.

    Least squares on targets -1 and 1, one-vs-rest for more than two classes, where the
    class of the largest prediction wins. Any labels are taken; a matrix of zeros and
    ones is a multilabel target, one model a label.

    The memory and cost are those of `KernelRidgeRegressor`; ``scoring=None`` is the
    accuracy, which takes one more streaming pass for all alphas together.

    Parameters
    ----------
    features : transformer of surff, FrozenEstimator or None, default=None
        Feature map; None is ``FourierFeatures()``. It is cloned and fitted; one that is
        fitted and wrapped in `sklearn.frozen.FrozenEstimator` is used as it is.
    alphas : "auto", float or array-like, default="auto"
        Regularisation, see `KernelRidgeRegressor`.
    gammas : None, "auto" or array-like, default=None
        Bandwidths to choose from, see `KernelRidgeRegressor`.
    cv : int, splitter, iterable, "gcv" or "loo", default=5
        Cross-validation, see `KernelRidgeRegressor`; stratified for an int. "gcv"
        judges the squared error on -1 and 1, "loo" the score of the left-out labels.
    scoring : None, str or callable, default=None
        A scikit-learn scorer that needs `predict` or `decision_function`; None is the
        accuracy.
    fit_intercept : bool, default=True
        Whether to fit an intercept.
    solver : {"cholesky", "eigh"}, default="cholesky"
        See `KernelRidgeRegressor`.
    probability : bool, default=False
        Calibrate `predict_proba` on predictions of rows left out, by ``cv``: one more
        pass over the data.
    keep_equations : bool, default=True
        Keep the normal equations after `fit`, m by m numbers: what a later
        `partial_fit` needs. False makes a small model.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels, sorted; for a multilabel target the numbers of the labels.
    coef_ : ndarray of shape (1, n_components) or (n_classes, n_components)
        Coefficients.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Intercepts.
    alpha_ : float
        Regularisation used.
    best_score_ : float or None
        Mean score of ``alpha_`` over the held-out folds (``cv="gcv"``: the negative GCV
        error); None for a single alpha.
    alpha_path_ : AlphaPath
        Alphas and their scores; not set for a single alpha.
    gamma_path_ : dict of float to float
        Bandwidths tried and their best scores; with ``gammas`` only.
    calibration_ : ndarray of shape (1, 2) or (n_classes, 2)
        Slope and intercept of the logistic curve of each column of decisions; with
        ``probability`` only.
    features_ : transformer
        The fitted feature map.
    equations_ : NormalEquations
        With ``keep_equations`` only.
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

    _parameter_constraints: dict = {  # noqa: RUF012  (scikit-learn's convention)
        **_KernelRidge._parameter_constraints,
        "probability": ["boolean"],
    }

    def __init__(
        self,
        features=None,
        *,
        alphas="auto",
        gammas=None,
        cv=5,
        scoring=None,
        fit_intercept=True,
        solver="cholesky",
        probability=False,
        keep_equations=True,
    ):
        self.features = features
        self.alphas = alphas
        self.gammas = gammas
        self.cv = cv
        self.scoring = scoring
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.probability = probability
        self.keep_equations = keep_equations

    def _validated(self, X, y, sample_weight, reset):
        shape = np.asarray(y).shape
        multilabel = len(shape) == 2 and shape[1] > 1
        X, y = validated(self, X, y, multi_output=multilabel, reset=reset)
        check_classification_targets(y)
        if multilabel and (kind := type_of_target(y)) != "multilabel-indicator":
            raise ValueError(
                "y must be labels, or a matrix of zeros and ones with a column for "
                f"each label, got a {kind} target of shape {y.shape}."
            )
        return X, y, self._checked_weight(sample_weight, X)

    def _coded(self, y):
        """Labels as targets -1 and 1, shape (n_samples, k)."""
        if self._multilabel:
            return np.where(y == 1, 1.0, -1.0)
        codes = np.searchsorted(self.classes_, y)
        codes = np.minimum(codes, len(self.classes_) - 1)
        unknown = np.unique(y[self.classes_[codes] != y])
        if len(unknown):
            raise ValueError(
                f"y must hold labels out of classes={self.classes_.tolist()}, got "
                f"{unknown.tolist()}."
            )
        return one_vs_rest(codes, len(self.classes_))

    def _set_classes(self, y, classes):
        self._multilabel = y.ndim == 2
        self.classes_ = (
            np.arange(y.shape[1]) if self._multilabel else np.unique(classes)
        )
        if not self._multilabel and len(self.classes_) < 2:
            raise ValueError(
                "y must hold at least two classes, got one class: "
                f"{self.classes_.tolist()[0]!r}."
            )

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y, sample_weight=None):
        """Fit the feature map, choose alpha and solve.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Data, finite.
        y : array-like of shape (n_samples,) or (n_samples, n_labels)
            Labels of at least two classes, or a multilabel indicator matrix.
        sample_weight : array-like of shape (n_samples,), optional
            Row weights, >= 0: weight w counts as the row repeated w times.

        Returns
        -------
        self
        """
        X, y, sample_weight = self._validated(X, y, sample_weight, reset=True)
        self._set_classes(y, y)
        Y = self._coded(y)
        self.__dict__.pop("calibration_", None)  # an earlier fit's
        choice = self._fit(X, y, Y, sample_weight)
        if self.probability:
            held_out = choice.criterion.held_out(self.alpha_)
            self.calibration_ = np.array(
                [
                    sigmoid(held_out[:, k], Y[:, k] > 0, sample_weight)
                    for k in range(Y.shape[1])
                ]
            )
        return self

    @available_if(_learns_in_pieces)
    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X, y, classes=None, sample_weight=None):
        """Add rows to the model; see `KernelRidgeRegressor.partial_fit`.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Data, finite.
        y : array-like of shape (n_samples,) or (n_samples, n_labels)
            Labels out of ``classes``, or a multilabel indicator matrix.
        classes : array-like of shape (n_classes,), optional
            All labels that will come; needed at the first call unless the target is
            multilabel or the first piece holds them all.
        sample_weight : array-like of shape (n_samples,), optional
            Row weights, >= 0.

        Returns
        -------
        self
        """
        first = not hasattr(self, "classes_")
        X, y, sample_weight = self._validated(X, y, sample_weight, reset=first)
        if first:
            self._set_classes(y, y if classes is None else classes)
        elif classes is not None and not np.array_equal(
            self.classes_, np.unique(classes)
        ):
            raise ValueError(
                f"classes must stay {self.classes_.tolist()}, as in the first call to "
                f"partial_fit, got {np.unique(classes).tolist()}."
            )
        check_columns(y, len(self.classes_) if self._multilabel else 1)
        self._partial_fit(X, self._coded(y), sample_weight)
        return self

    def _scorer(self, data, y, Y):
        if self.scoring in (None, "accuracy"):
            return Accuracy(self._predictions, y)
        return ScorerOf(self, self.scoring, data.X, y)

    def _predictions(self, decisions):
        """Class labels of predictions of shape (n_samples, k)."""
        if self._multilabel:
            return (decisions > 0).astype(int)
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
        return self._outputs(self._decisions(self._checked(X)))

    def predict(self, X):
        """Predict the class of rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Data, finite.

        Returns
        -------
        y : ndarray of shape (n_samples,) or (n_samples, n_labels)
            Labels out of ``classes_``, or a multilabel indicator matrix.
        """
        return self._predictions(self._decisions(self._checked(X)))

    @available_if(lambda self: self.probability)
    def predict_proba(self, X):
        r"""Probability of each class; with ``probability=True``.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Data, finite.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
            Columns in the order of ``classes_``. Rows sum to 1, but for a multilabel
            target, where each column is the probability of its label.

        Notes
        -----
        Platt scaling: :math:`1 / (1 + \exp(-a f - b))` of each column f of decisions,
        a and b fitted to predictions of rows left out. More than two classes are
        normalised to sum to 1.

        References
        ----------
        .. [1] J. Platt, "Probabilistic Outputs for Support Vector Machines and
           Comparisons to Regularized Likelihood Methods", 1999.
        """
        decisions = self._decisions(self._checked(X))
        positive = expit(decisions * self.calibration_[:, 0] + self.calibration_[:, 1])
        if self._multilabel:
            return positive
        if positive.shape[1] == 1:
            return np.hstack([1.0 - positive, positive])
        total = positive.sum(axis=1, keepdims=True)
        uniform = np.full_like(positive, 1.0 / positive.shape[1])
        return np.divide(positive, total, out=uniform, where=total > 0)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags


def sigmoid(decisions, positive, sample_weight):
    """Slope and intercept of Platt's logistic curve.

    Platt's smoothed targets, (n+ + 1) / (n+ + 2) and 1 / (n- + 2), are written as two
    rows of opposite labels that share the row's weight.
    """
    known = ~np.isnan(decisions)  # rows that some split holds out
    decisions, positive = decisions[known, None], positive[known]
    weight = np.ones(len(positive)) if sample_weight is None else sample_weight[known]
    high = (weight[positive].sum() + 1.0) / (weight[positive].sum() + 2.0)
    low = 1.0 / (weight[~positive].sum() + 2.0)
    target = np.where(positive, high, low)
    model = LogisticRegression(C=1e10, tol=1e-8, max_iter=1000).fit(
        np.vstack([decisions, decisions]),
        np.repeat([1, 0], len(target)),
        np.concatenate([weight * target, weight * (1.0 - target)]),
    )
    return model.coef_[0, 0], model.intercept_[0]
