"""What the regressor and the classifier of `surff.estimators.ridge` share.

Fitting: the feature map, the choice of alpha and gamma, the solution, and learning in
pieces. Predicting: the linear part. The subclasses know what targets and scores are.
"""

import functools
import numbers
import warnings
from typing import NamedTuple

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import check_cv
from sklearn.utils import get_tags
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import _check_n_features, check_array, check_is_fitted

from surff.backend import (
    FLOAT_DTYPES,
    array_api_support,
    as_generator,
    asarray_like,
    namespace_of,
    other_namespace,
    rows_of,
    supports_float64,
    to_numpy,
    validated,
    wide_dtype,
)
from surff.estimators._linear import LinearOnFeatures
from surff.linear import (
    SOLVERS,
    AlphaPath,
    Data,
    FoldsOfSource,
    GeneralizedCrossValidation,
    HeldOutPasses,
    HeldOutSplits,
    LeaveOneOut,
    NormalEquations,
    RefittedFolds,
    Split,
    accumulate,
    best_index,
    cheaper_than_cholesky,
    checked_folds,
    climb,
    conjugate_gradient,
    equations_of,
    float32_error,
    least_regular,
    n_singular,
    relative_grid,
    sides_of,
    solve,
    solver_beside,
)
from surff.streaming import DaskRows, Passes, WorkerRows, positive_int, survey

__all__ = ["BaseKernelRidge", "check_columns", "learns_in_pieces", "streams"]

#: ``alphas="auto"``: decades relative to the mean eigenvalue of the Gram matrix, and
#: how far the grid may grow when the best lies at an end.
AUTO_DECADES = np.arange(-8.0, 2.5, 0.5)
AUTO_LIMITS = (-14.0, 8.0)
AUTO_STEP = np.arange(0.5, 2.5, 0.5)

#: The same for conjugate gradients, which small alphas cost many passes.
PASSES_DECADES = np.arange(-3.0, 2.5, 0.5)
PASSES_LIMITS = (-4.0, 8.0)

#: ``precision="auto"``: operations of a Gram matrix below which float64 takes no time,
#: and rows that tell the size of a feature vector.
LARGE_GRAM = 1e10
NORM_ROWS = 256


class _Choice(NamedTuple):
    """A fitted feature map and the alpha that goes with it."""

    features: object
    total: NormalEquations
    alpha: object  # float, or (n_targets,)
    score: float | None
    path: AlphaPath | None
    criterion: object | None
    data: Data


def learns_in_pieces(model):
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
    return forms_equations(model, "partial_fit")


def forms_equations(model, method):
    """Whether the solver works from normal equations."""
    if model.solver == "cg":
        raise AttributeError(
            f"{method} needs the normal equations, which solver='cg' does not form; "
            "set it to 'cholesky' or 'eigh'"
        )
    return True


def streams(model):
    """Whether `fit_stream` can do what the parameters ask for."""
    if model.gammas is not None:
        raise AttributeError(
            "gammas needs a fit for each, which fit_stream does not make; set it to "
            f"None, got {model.gammas!r}"
        )
    if model.probability:
        raise AttributeError(
            "probability=True needs predictions of all rows at once, which fit_stream "
            "cannot hold; set it to False"
        )
    return forms_equations(model, "fit_stream")


def best_alpha(path):
    """Best alpha of a path, or that of each target, and its mean score."""
    best = best_index(path)
    means = path.scores.mean(axis=1)
    if np.ndim(best):
        return path.alphas[best], float(means[best, np.arange(len(best))].mean())
    return float(path.alphas[best]), float(means[best])


def largest_singular(alphas, criterion):
    """Largest of some alphas at which all rows have no solution, None for no such.

    The rows of every split may have one there: the difference is made by rounding.
    """
    if criterion.total is None:
        return None
    least = least_regular(criterion.total)
    for alpha in np.unique(alphas)[::-1]:
        if alpha < least and n_singular(criterion.total, [alpha], criterion.data):
            return alpha
    return None


class BaseKernelRidge(LinearOnFeatures):
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
        "solver": [StrOptions({*SOLVERS, "cg", "auto"})],
        "tol": [Interval(numbers.Real, 0.0, None, closed="neither")],
        "max_iter": [Interval(numbers.Integral, 1, None, closed="left")],
        "precision": [StrOptions({"auto", "mixed", "float64"})],
        "keep_equations": ["boolean"],
    }

    #: Options that one of the two estimators has and the other has not.
    alpha_per_target = False
    probability = False

    # -- fitting -----------------------------------------------------------------------

    def _fit(self, X, y, Y, sample_weight):
        """Fit numeric targets ``Y`` (n_samples, k); ``y`` feeds splitter and scorer."""
        for name in (
            "alpha_path_",
            "gamma_path_",
            "equations_",
            "_posterior_",
        ):
            self.__dict__.pop(name, None)  # an earlier fit's
        if self.gammas is None:
            choice = self._choose(self._checked_features(), X, y, Y, sample_weight)
        else:
            choice = self._choose_gamma(X, y, Y, sample_weight)
        self.features_, self.alpha_, self.best_score_ = choice.features, *choice[2:4]
        if choice.path is not None:
            self.alpha_path_ = choice.path
        if choice.total is None:
            self._solve_by_passes(choice.data)
            return choice
        # A choice among alphas holds on to the equations for its caller.
        spare = choice.path is None and not self.keep_equations
        self._solve(choice.total, choice.data.offset, X, spare)
        if self.keep_equations:
            self.equations_ = choice.total
            self._offset = _beside(X, choice.data.offset)
        return choice

    def _choose(self, features, X, y, Y, sample_weight):
        """Fit a feature map and choose alpha for it."""
        unfitted = features
        features = self._fitted_features(unfitted, X, Y, sample_weight)
        offset = self._target_offset(Y, sample_weight)
        alphas = self._checked_alphas()
        needs_scores = self.gammas is not None or self.probability
        single = alphas is not None and len(alphas) == 1 and not needs_scores
        feature_map = features._map()
        dtype = self._map_dtype(feature_map, X, alphas, sample_weight)
        feature_map = feature_map.astype(dtype)
        refit = self._refit(unfitted, X, Y, sample_weight, dtype)
        solver = self._direct_solver(X)
        if (
            self.solver == "auto"
            and single
            and not self.keep_equations
            and other_namespace(X) is None
            and cheaper_than_cholesky(*X.shape, feature_map.n_components)
        ):
            solver = "cg"
        data = Data(
            feature_map,
            X,
            Y - offset,
            offset,
            sample_weight,
            self.fit_intercept,
            solver,
        )
        if single:
            total = None
            if solver != "cg":
                total = accumulate(feature_map, X, data.Y, sample_weight)
            return _Choice(features, total, float(alphas[0]), None, None, None, data)
        if isinstance(self.cv, str):
            self._positive(alphas, self.cv)
        criterion = self._criterion(data, y, Y, refit)
        path = self._search(alphas, criterion)
        alpha, score = best_alpha(path)
        return _Choice(features, criterion.total, alpha, score, path, criterion, data)

    def _asked_dtype(self, X):
        """The type of the map that ``precision`` asks for; that of X for "auto"."""
        xp = namespace_of(X)
        if self.precision == "auto":
            return X.dtype
        if self.precision == "float64" and not supports_float64(X):
            raise ValueError(
                "precision='float64' needs a device that has float64: use 'auto' or "
                f"'mixed', got X on {X.device}."
            )
        return xp.float32 if self.precision == "mixed" else xp.float64

    def _map_dtype(self, feature_map, X, alphas, sample_weight):
        """In which type rows are mapped and multiplied."""
        xp, dtype = namespace_of(X), self._asked_dtype(X)
        n, m = X.shape[0], feature_map.n_components
        # Unknown alphas may turn out to be tiny.
        if (
            self.precision != "auto"
            or dtype != xp.float64
            or alphas is None
            or n * m**2 < LARGE_GRAM
        ):
            return dtype
        some = np.arange(0, n, max(1, n // NORM_ROWS))
        Z = feature_map.astype(dtype)(rows_of(X, some))
        n_rows = n if sample_weight is None else sample_weight.sum()
        trace = n_rows * float(xp.sum(xp.square(Z))) / Z.shape[0]
        safe = float32_error(trace, alphas.min()) <= self.tol
        return xp.float32 if safe else dtype

    def _direct_solver(self, X):
        """The solver, where "auto" finds no reason to do without a Gram matrix."""
        return solver_beside("cholesky" if self.solver == "auto" else self.solver, X)

    def _target_offset(self, Y, sample_weight):
        """Mean of the targets: taken out, it costs the sums no digits."""
        if not self.fit_intercept:
            return np.zeros(Y.shape[1])
        return np.average(Y, axis=0, weights=sample_weight)

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
        if data.solver == "cg":
            return self._criterion_of_passes(data, y, Y, refit)
        if isinstance(self.cv, str) and self.cv == "gcv":
            self._check_gcv_scoring()
            return GeneralizedCrossValidation(data)
        scorer = self._scorer(data, y, Y)
        if isinstance(self.cv, str):
            return LeaveOneOut(data, scorer)
        splitter = check_cv(self.cv, y, classifier=self._is_classifier)
        return HeldOutSplits(data, list(splitter.split(data.X, y)), scorer, refit)

    def _criterion_of_passes(self, data, y, Y, refit):
        if isinstance(self.cv, str):
            raise ValueError(
                "cv='gcv' and 'loo' need the normal equations, which solver='cg' does "
                f"not form: cv must be an int or a splitter, got {self.cv!r}."
            )
        splitter = check_cv(self.cv, y, classifier=self._is_classifier)

        def solve(feature_map, alphas, rows):
            return self._passes(data, alphas, feature_map, rows)

        splits, scorer = list(splitter.split(data.X, y)), self._scorer(data, y, Y)
        return HeldOutPasses(data, splits, scorer, solve, refit)

    def _passes(self, data, alphas, feature_map, rows=None):
        """Solution by conjugate gradients; the same rows precondition it each time."""
        return conjugate_gradient(
            feature_map,
            data.X,
            data.Y,
            alphas,
            data.sample_weight,
            self.fit_intercept,
            rng=np.random.default_rng(0),
            rows=rows,
            tol=self.tol,
            max_iter=self.max_iter,
        )

    def _check_gcv_scoring(self):
        if self.scoring is not None:
            raise ValueError(
                "cv='gcv' minimises the GCV error: scoring must be None, got "
                f"{self.scoring!r}."
            )

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

        decades, limits = AUTO_DECADES, AUTO_LIMITS
        if criterion.total is None:
            decades, limits = PASSES_DECADES, PASSES_LIMITS

        def grid_at(decades):
            if criterion.total is None:
                return criterion.grid(decades)
            return relative_grid(criterion.total, self.fit_intercept, decades)

        grid = grid_at(decades)
        path = AlphaPath(grid, score(grid))
        while True:
            best = best_index(path)
            missing = np.isnan(path.scores).reshape(len(decades), -1).any(axis=1)
            first = np.flatnonzero(~missing)[0]
            if first == 0 and np.any(best == 0) and decades[0] > limits[0]:
                new = decades[0] - AUTO_STEP[::-1]
            elif np.any(best == len(decades) - 1) and decades[-1] < limits[1]:
                new = decades[-1] + AUTO_STEP
            else:
                alpha = largest_singular(path.alphas[best], criterion)
                if alpha is None:
                    return path
                path.scores[path.alphas <= alpha] = np.nan
                continue
            grid = grid_at(new)
            order = np.argsort(decades := np.concatenate([decades, new]))
            path = AlphaPath(
                np.concatenate([path.alphas, grid])[order],
                np.concatenate([path.scores, score(grid)])[order],
            )
            decades = decades[order]

    def _solve_by_passes(self, data):
        """Set the coefficients of ``alpha_`` by conjugate gradients."""
        alphas, of_target = np.unique(self.alpha_, return_inverse=True)
        solution = self._passes(data, alphas, data.feature_map)
        targets = np.arange(data.Y.shape[1])
        of_target = np.broadcast_to(of_target.ravel(), targets.shape)
        dtype = data.X.dtype
        self.coef_ = solution.coefs[:, of_target, targets].T.astype(dtype)
        intercept = solution.intercepts[of_target, targets] + data.offset
        self.intercept_ = intercept.astype(dtype)
        self.n_iter_ = max(1, solution.n_iter)

    def _solve(self, total, offset, like, overwrite=False):
        """Set the coefficients of ``alpha_``, arrays such as ``like``.

        ``overwrite`` leaves no equations.
        """
        centred = total.centred(self.fit_intercept, overwrite=overwrite)
        solver = self._direct_solver(like)
        if np.ndim(self.alpha_):
            coef, intercept = (np.empty_like(a) for a in (centred[1], centred[3]))
            for alpha in np.unique(self.alpha_):
                targets = self.alpha_ == alpha
                some = centred._replace(
                    moments=centred.moments[:, targets],
                    target_mean=centred.target_mean[targets],
                )
                coef[:, targets], intercept[targets] = solve(some, alpha, solver)
        else:
            coef, intercept = solve(centred, self.alpha_, solver, overwrite)
        self.coef_ = asarray_like(coef.T, like)
        self.intercept_ = asarray_like(intercept + offset, like)
        self.n_iter_ = 1
        if np.ndim(self.alpha_) and other_namespace(like) is not None:
            self.alpha_ = asarray_like(self.alpha_, like, wide_dtype(like))

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
            self._offset = _beside(X, self._target_offset(Y, sample_weight))
            m = self.features_._map().n_components
            self.equations_ = NormalEquations(m, Y.shape[1])
        feature_map = self._map_of_pieces(self.features_, X)
        part = accumulate(feature_map, X, Y - to_numpy(self._offset), sample_weight)
        self.equations_.merge(part)
        self._choose_from_equations(X)

    def _map_of_pieces(self, features, X):
        """The map for rows that come in pieces: "auto" keeps their type."""
        return features._map().astype(self._asked_dtype(X))

    def _choose_from_equations(self, like):
        """Choose alpha by GCV, unless there is one only, and solve."""
        self.__dict__.pop("_posterior_", None)
        alphas = self._checked_alphas()
        if alphas is not None and len(alphas) == 1:
            self.alpha_, self.best_score_ = float(alphas[0]), None
        else:
            self._positive(alphas, "gcv")
            criterion = GeneralizedCrossValidation.of_equations(
                self.equations_, self.fit_intercept, self._direct_solver(like)
            )
            self.alpha_path_ = self._search(alphas, criterion)
            self.alpha_, self.best_score_ = best_alpha(self.alpha_path_)
        self._solve(self.equations_, to_numpy(self._offset), like)

    # -- data that do not fit in memory ------------------------------------------------

    #: Values of ``scoring`` that need no look at all predictions together.
    _streamed_scoring = (None,)

    def _fit_stream(self, source, classes, n_sample):
        """Fit to a source; nothing changes if that fails."""
        fitted = type(self)(**self.get_params(deep=False))
        fitted._fit_source(source, classes, n_sample)
        for name in [*vars(self)]:
            if name.endswith("_") or name in ("_offset", "_multilabel"):
                delattr(self, name)
        parameters = self.get_params(deep=False)
        for name, value in vars(fitted).items():
            if name not in parameters:
                setattr(self, name, value)
        return self

    def _fit_source(self, source, classes, n_sample):
        n_folds, n_sample = self._streamed_folds(), positive_int("n_sample", n_sample)
        features = self._checked_features()
        frozen = isinstance(features, FrozenEstimator)
        whole = not frozen and features._looks_at_rows()
        passes = Passes(source, self._checked_block, classes)
        unknown = self._is_classifier and classes is None
        # Where the rows are at hand for a sum, no sample of them is taken.
        summed = passes.on_workers and whole and not features._needs_rows()
        sample, spread, labels = survey(
            passes,
            n_sample if whole and not summed else 1,
            whole or unknown,
            unknown,
        )
        targeted = not frozen and get_tags(features).target_tags.required
        refitted, sampled = targeted and summed, targeted and not summed
        if n_folds and sampled:
            # What the features have seen is not held out, so some must be left.
            sample.shrink(max(1, passes.n_rows // 2))
        self._set_targets(sample.y, labels.values if unknown else classes)
        Y = self._coded(sample.y)
        weight = sample.sample_weight
        if weight is not None and not weight.any():
            weight = None
        if summed:
            rows = WorkerRows(passes, self._coded)
            self.features_ = self._fitted_features(features, rows, Y, None, spread)
        else:
            self.features_ = self._fitted_features(
                features, sample.X, Y, weight, spread
            )
        # Any constant will do; a sample's mean saves most of the digits.
        self._offset = self._target_offset(Y, weight)

        feature_map = self._map_of_pieces(self.features_, sample.X)
        seen = sample.keys if sampled else None
        equations = equations_of(
            passes,
            feature_map,
            self._coded,
            self._offset,
            0 if refitted else n_folds,
            seen,
        )
        if not equations.total.weight_sum:
            raise ValueError("sample_weight must have a positive entry, got all zeros.")
        if n_folds:
            data = Data(
                feature_map,
                None,
                None,
                self._offset,
                None,
                self.fit_intercept,
                self._direct_solver(sample.X),
            )
            scorer = functools.partial(self._scorer, None, Y=None)
            if refitted:
                splits = self._refitted_splits(passes, features, Y, n_folds)
                criterion = RefittedFolds(passes, equations.total, splits, data, scorer)
            else:
                criterion = FoldsOfSource(passes, equations, data, scorer, seen)
            self.alpha_path_ = self._search(self._checked_alphas(), criterion)
            self.alpha_, self.best_score_ = best_alpha(self.alpha_path_)
            # Not before: workers are sent the model, and need no equations.
            self.equations_ = equations.total
            self._solve(self.equations_, self._offset, sample.X)
        else:
            self.equations_ = equations.total
            self._choose_from_equations(sample.X)
        self._unwrap(sample.y)
        if source.feature_names is not None:
            self.feature_names_in_ = np.asarray(source.feature_names, dtype=object)
            if not frozen:
                self.features_.feature_names_in_ = self.feature_names_in_
        if not self.keep_equations:
            del self.equations_, self._offset

    def _refitted_splits(self, passes, features, Y, n_folds):
        """`Split` of each fold, its features fitted to the rows of the others."""
        splits = []
        for fold in range(n_folds):
            left_out = (fold, n_folds)
            rows = WorkerRows(passes, self._coded, left_out)
            own = clone(features)._fit(rows, Y)
            feature_map = self._map_of_pieces(own, rows)
            sides = sides_of(passes, feature_map, self._coded, self._offset, left_out)
            splits.append(Split(*sides, None, feature_map))
        return splits

    def _fit_on_workers(self, X, y, sample_weight):
        """Fit to Dask collections."""
        try:
            fit_stream = self.fit_stream
        except AttributeError as error:
            raise ValueError(
                f"rows on workers are fitted by fit_stream: {error.__cause__}."
            ) from error
        return fit_stream(DaskRows(X, y, sample_weight))

    def _streamed_folds(self):
        """Number of folds that alpha is chosen by, 0 for none."""
        if get_tags(self).input_tags.pairwise:
            raise ValueError(
                "features with kernel='precomputed' cannot be fitted from a source: a "
                "row has a column for each of the others."
            )
        alphas = self._checked_alphas()
        if alphas is not None and len(alphas) == 1:
            return 0
        if isinstance(self.cv, str) and self.cv == "gcv":
            self._check_gcv_scoring()
            self._positive(alphas, "gcv")
            return 0
        if self.scoring not in self._streamed_scoring:
            raise ValueError(
                "scoring must be one of "
                f"{[name for name in self._streamed_scoring if name]} or None to fit "
                f"from a source, got {self.scoring!r}."
            )
        return checked_folds(self.cv)

    def predict_stream(self, source):
        """Predict from a source, block by block.

        Parameters
        ----------
        source : source of rows
            See `surff.streaming`; targets are not looked at.

        Yields
        ------
        y : ndarray of shape (n_rows,) or (n_rows, n_targets)
            Predictions for the rows of a block, as `predict` gives them.
        """
        check_is_fitted(self)
        passes = self._fitted_passes(source, lambda X, y, first: (X, None))
        return self._predictions_of(passes)

    def _predictions_of(self, passes):
        with passes(gather=False) as blocks:
            for rows in blocks:
                yield self._shaped(self._decisions(rows.X))

    def _fitted_passes(self, source, check_targets):
        """Passes over a source for a fitted model."""
        names = getattr(self, "feature_names_in_", None)
        found = getattr(source, "feature_names", None)
        if names is not None and found is not None and list(names) != list(found):
            raise ValueError(
                f"source must have the columns {list(names)} as features, in this "
                f"order, got {list(found)}."
            )

        def check(X, y, first):
            if hasattr(X, "columns"):
                X = validated(self, X, reset=False)
            else:
                X = check_array(X, dtype=FLOAT_DTYPES, accept_sparse="csr")
                _check_n_features(self, X, reset=False)
            return check_targets(X, y, first)

        return Passes(source, check)

    def _numpy_only(self):
        """See `surff.backend.check_supported`."""
        features = self.features
        if isinstance(features, FrozenEstimator):
            features = features.estimator
        if features is None:
            found = None
        elif isinstance(features, BaseEstimator) and hasattr(features, "_numpy_only"):
            found = features._numpy_only()
        else:
            found = "features", features, "FourierFeatures"
        if found is not None:
            return found
        if self.solver == "cg":
            return "solver", self.solver, "'cholesky' or 'eigh'"
        if isinstance(self.cv, str) and self.cv == "loo":
            return "cv", self.cv, "'gcv' or folds"
        if self.scoring not in self._streamed_scoring:
            return "scoring", self.scoring, f"one of {self._streamed_scoring}"
        if self.probability:
            return "probability", self.probability, "False"
        return None

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.array_api_support = array_api_support(self)
        return tags

    def __getstate__(self):
        state = super().__getstate__().copy()
        state.pop("_posterior_", None)  # follows from the rest
        return state


def _beside(X, offset):
    """A fitted array where ``X`` is, in float64 if there is such."""
    return asarray_like(offset, X, wide_dtype(X))


def check_columns(y, n_columns):
    """Refuse a target of another shape than that of the first piece."""
    columns = 1 if y.ndim == 1 else y.shape[1]
    if columns != n_columns:
        raise ValueError(
            f"y must have {n_columns} column{'s' if n_columns > 1 else ''}, as in the "
            f"first call to partial_fit, got {columns}."
        )
