"""Fitting a ridge model to rows in memory: its features, gamma and alpha."""

import contextlib
import itertools
import numbers
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.frozen import FrozenEstimator

from surff.adaptation import column_bandwidths
from surff.backend import (
    as_generator,
    namespace_of,
    one_thread,
    other_namespace,
    rows_of,
    share_of_time,
    stage,
    supports_float64,
    time_is_up,
)
from surff.estimators._alphas import (
    ascending_numbers,
    best_alpha,
    checked_alphas,
    refuse_zero,
    scored_path,
)
from surff.estimators._linear import (
    checked_features,
    fitted_features,
    learns_from_targets,
    refitting,
    splits_of,
)
from surff.linear import (
    FORMULAS,
    AlphaPath,
    Criterion,
    Data,
    HeldOutFewRows,
    HeldOutPasses,
    HeldOutSplits,
    LeaveOneOut,
    NormalEquations,
    Solving,
    cheaper_than_cholesky,
    climb,
    conjugate_gradient,
    float32_error,
    has_few_rows,
    solver_beside,
)

__all__ = [
    "Choice",
    "RowsFit",
    "Targets",
    "asked_dtype",
    "check_folds",
    "direct_solver",
    "refuse_scoring",
    "target_offset",
]

#: ``precision="auto"``: operations of a Gram matrix below which float64 takes no time.
LARGE_GRAM = 1e10

#: Operations of a Gram matrix below which threads wait longer than they work.
THREADED_WORK = 1e8

#: ``precision="auto"``: rows that tell the size of a feature vector.
NORM_ROWS = 256


#: ``gammas="auto"``: bandwidths that a climb tries, as a rule, for its plan of time.
TYPICAL_CLIMB = 5

#: ``gammas="columns"``: most rows and components that the search looks at.
COLUMN_ROWS, COLUMN_COMPONENTS = 2**14, 512


class Targets(NamedTuple):
    """What a model knows of its targets, for those who fit it."""

    check: Callable  # (X, y, first) -> X, y of a block of a source, checked
    learn: Callable  # (y, classes) -> None; the model learns what labels there are
    coded: Callable  # (y) -> numbers of shape (n_rows, k)
    scorer: Callable  # (data, y, Y) -> scorer, see `surff.linear.criteria`
    are_labels: bool
    streamed_scoring: tuple  # values of ``scoring`` that need no look at all rows


class Choice(NamedTuple):
    """A fitted feature map, and the alpha that goes with it."""

    features: Any
    data: Data
    solver: Any
    total: NormalEquations | None  # of all rows; None for conjugate gradients
    alpha: Any  # float, or (n_targets,)
    score: float | None = None
    path: AlphaPath | None = None
    criterion: Criterion | None = None
    fold_features: list | None = None  # of each split, where they were fitted again


def direct_solver(model, X):
    """The solver, where "auto" finds no reason to do without a Gram matrix."""
    return solver_beside("cholesky" if model.solver == "auto" else model.solver, X)


def asked_dtype(model, X):
    """The dtype of the map that ``precision`` asks for; that of X for "auto"."""
    xp = namespace_of(X)
    if model.precision == "auto":
        return X.dtype
    if model.precision == "float64" and not supports_float64(X):
        raise ValueError(
            "precision='float64' needs a device that has float64: use 'auto' or "
            f"'mixed', got X on {X.device}."
        )
    return xp.float32 if model.precision == "mixed" else xp.float64


def target_offset(Y, sample_weight, fit_intercept):
    """Mean of the targets: taken out, it costs the sums no digits."""
    if not fit_intercept:
        return np.zeros(Y.shape[1])
    return np.average(Y, axis=0, weights=sample_weight)


def check_folds(model, solver):
    """Refuse intervals without rows or equations of folds, or with leaves."""
    if model.intervals == "normalized" and solver == "cg":
        raise ValueError(
            "intervals='normalized' solves the normal equations of each split, which "
            "solver='cg' does not form: choose solver='cholesky', or intervals=True."
        )
    if model.intervals and model.leaves is not None:
        raise ValueError(
            f"intervals={model.intervals!r} keeps models of folds without leaves: set "
            f"it to False, or leaves to None, got {model.leaves!r}."
        )
    if model.intervals and isinstance(model.cv, str) and model.cv in FORMULAS:
        raise ValueError(
            f"intervals={model.intervals!r} needs rows that are left out: cv must be "
            f"an int, a splitter or 'loo', got {model.cv!r}."
        )


def refuse_scoring(scoring, cv):
    """Refuse a scorer where a formula says what is best."""
    if scoring is not None:
        does = {"gcv": "minimises the GCV error", "evidence": "maximises the evidence"}
        raise ValueError(
            f"cv={cv!r} {does[cv]}: scoring must be None, got {scoring!r}."
        )


class RowsFit:
    """Fit of a ridge model to rows in memory.

    Parameters
    ----------
    model : estimator
        Its parameters say how.
    targets : Targets
        What it knows of its targets.
    X : array or CSR matrix of shape (n_samples, n_features)
        Checked rows.
    y : array of shape (n_samples,) or (n_samples, n_outputs)
        Targets as splitters and scorers take them.
    Y : ndarray of shape (n_samples, k)
        Targets as numbers.
    sample_weight : ndarray of shape (n_samples,) or None
        Row weights.

    Attributes
    ----------
    gamma_path : dict of float to float, or None
        Bandwidths tried and their best scores, once `choose` has tried some.
    converges : bool
        Whether conjugate gradients have so far; they warn once.
    """

    def __init__(self, model, targets, X, y, Y, sample_weight):
        self.model, self.targets = model, targets
        self.X, self.y, self.Y, self.sample_weight = X, y, Y, sample_weight
        self.alphas = checked_alphas(model.alphas)
        self.offset = target_offset(Y, sample_weight, model.fit_intercept)
        self.gamma_path = None
        self.converges = True

    def choose(self):
        """Fit the feature map, choose gamma if asked to, and alpha.

        Returns
        -------
        Choice
        """
        features = checked_features(self.model.features)
        if self.model.gammas is None:
            return self._choose_alpha(features)
        return self._choose_gamma(features)

    def by_passes(self, data, alphas, feature_map, rows=None):
        """Solution by conjugate gradients; the same rows precondition it each time."""
        model = self.model
        solution = conjugate_gradient(
            feature_map,
            data.X,
            data.Y,
            alphas,
            data.sample_weight,
            model.fit_intercept,
            rng=np.random.default_rng(0),
            rows=rows,
            tol=model.tol,
            max_iter=model.max_iter,
        )
        if self.converges and not solution.converged:
            self.converges = False
            warnings.warn(
                f"conjugate gradients stopped after {solution.n_iter} passes with an "
                f"estimated error of {solution.errors.max():.2g} standard deviations "
                f"of the target, above tol={model.tol:.2g}; increase max_iter"
                f"{' or max_time' if time_is_up() else ''} or alpha, or choose "
                "solver='cholesky'.",
                ConvergenceWarning,
                stacklevel=2,
            )
        return solution

    def _choose_alpha(self, unfitted):
        """Fit a feature map and choose alpha for it."""
        X = self.X
        n_fits = 1 if self._takes_one_alpha() else 1 + self._n_refits(unfitted)
        features = share_of_time(
            n_fits,
            fitted_features,
            unfitted,
            X,
            self.Y,
            self.sample_weight,
            getattr(self.model, "feature_names_in_", None),
        )
        feature_map = features.feature_map()
        feature_map = feature_map.astype(self._map_dtype(feature_map))
        work = X.shape[0] * feature_map.n_components**2
        alone = n_fits == 1 and work < THREADED_WORK
        with one_thread() if alone else contextlib.nullcontext():
            return self._alpha_for(unfitted, features, feature_map, n_fits - 1)

    def _alpha_for(self, unfitted, features, feature_map, n_refits):
        """Choose alpha for a fitted feature map."""
        model, X = self.model, self.X
        single, dtype = self._takes_one_alpha(), feature_map.dtype
        solver = self._solver(feature_map, single)
        data = Data(
            feature_map, X, self.Y - self.offset, self.offset, self.sample_weight
        )
        if single:
            total = None if solver == "cg" else data.equations()
            return Choice(features, data, solver, total, float(self.alphas[0]))
        if isinstance(model.cv, str):
            refuse_zero(self.alphas, model.cv)
        refit = refitting(unfitted, X, self.Y, self.sample_weight, dtype, n_refits)
        criterion = self._criterion(data, solver, refit)
        per_target = model.alpha_per_target
        path = scored_path(criterion, self.alphas, per_target)
        alpha, score = best_alpha(path)
        total = None if solver == "cg" else criterion.total
        own = None if refit is None else refit.fitted
        return Choice(features, data, solver, total, alpha, score, path, criterion, own)

    def _n_refits(self, unfitted):
        """Number of splits that the features are fitted again for, or a guess."""
        cv = self.model.cv
        if isinstance(cv, str) or not learns_from_targets(unfitted):
            return 0
        if isinstance(cv, numbers.Integral):
            return int(cv)
        if hasattr(cv, "get_n_splits"):
            return cv.get_n_splits(self.X, self.y)
        return len(cv) if hasattr(cv, "__len__") else 5

    def _takes_one_alpha(self):
        """Whether there is one alpha, and nothing else that needs held-out scores."""
        model = self.model
        if model.gammas is not None or model.probability or model.intervals:
            return False
        return self.alphas is not None and len(self.alphas) == 1

    def _solver(self, feature_map, single):
        """The solver of this fit."""
        model, X = self.model, self.X
        if (
            model.solver == "auto"
            and single
            and not model.keep_equations
            and model.leaves is None
            and other_namespace(X) is None
            and cheaper_than_cholesky(*X.shape, feature_map.n_components)
        ):
            return "cg"
        return direct_solver(model, X)

    def _map_dtype(self, feature_map):
        """In which dtype rows are mapped and multiplied."""
        X, alphas, weight = self.X, self.alphas, self.sample_weight
        xp, dtype = namespace_of(X), asked_dtype(self.model, X)
        n, m = X.shape[0], feature_map.n_components
        # Unknown alphas may turn out to be tiny.
        if (
            self.model.precision != "auto"
            or dtype != xp.float64
            or alphas is None
            or n * m**2 < LARGE_GRAM
        ):
            return dtype
        some = np.arange(0, n, max(1, n // NORM_ROWS))
        Z = feature_map.astype(dtype)(rows_of(X, some))
        n_rows = n if weight is None else weight.sum()
        trace = n_rows * float(xp.sum(xp.square(Z))) / Z.shape[0]
        safe = float32_error(trace, alphas.min()) <= self.model.tol
        return xp.float32 if safe else dtype

    def _criterion(self, data, solver, refit):
        """What alphas are judged by."""
        model, y = self.model, self.y
        check_folds(model, solver)
        solving = Solving(model.fit_intercept, solver)
        by_formula = isinstance(model.cv, str)
        if by_formula and solver == "cg":
            raise ValueError(
                "cv='gcv', 'loo' and 'evidence' need the normal equations, which "
                "solver='cg' does not form: cv must be an int or a splitter, got "
                f"{model.cv!r}."
            )
        if by_formula and model.cv in FORMULAS:
            refuse_scoring(model.scoring, model.cv)
            return FORMULAS[model.cv].of_rows(data, solving)
        scorer = self.targets.scorer(data, y, self.Y)
        if by_formula:
            return LeaveOneOut(data, solving, scorer)
        splits = splits_of(
            model.cv, data.X, y, self.sample_weight, self.targets.are_labels
        )
        if solver != "cg":
            if refit is None and has_few_rows(data, solving):
                return HeldOutFewRows(data, solving, splits, scorer)
            criterion = HeldOutSplits(data, solving, splits, scorer, refit)
            if model.intervals:
                criterion.remember()
            return criterion

        def solve(alphas, feature_map, rows):
            return self.by_passes(data, alphas, feature_map, rows)

        return HeldOutPasses(data, splits, scorer, solve, model.fit_intercept, refit)

    def _choose_gamma(self, features):
        """Choose gamma by the score of its best alpha."""
        gammas = self.model.gammas
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
        if isinstance(gammas, str) and gammas == "columns":
            return self._choose_columns(features)
        best = None

        def score(gamma):
            nonlocal best
            if best is not None and time_is_up():
                return -np.inf
            candidate = clone(features).set_params(gamma=float(gamma))
            share = max(1, next(left))
            choice = share_of_time(share, self._choose_alpha, candidate)
            if best is None or choice.score > best.score:
                best = choice
            progress.advance()
            return choice.score

        if isinstance(gammas, str):
            left = itertools.count(TYPICAL_CLIMB, -1)
            start = clone(features).fit_checked(self.X, self.Y, self.sample_weight)
            if start.gamma_ is None or np.ndim(start.gamma_):
                raise ValueError(
                    "gammas='auto' climbs from the one gamma of the features, got "
                    f"features with gamma_={start.gamma_!r}."
                )
            with stage("gammas", unit="gammas") as progress:
                _, scores = climb(score, start.gamma_)
        else:
            values = _checked_gammas(gammas)
            left = itertools.count(len(values), -1)
            with stage("gammas", len(values), "gammas") as progress:
                scores = {float(gamma): score(gamma) for gamma in values}
        self.gamma_path = {g: score for g, score in scores.items() if score > -np.inf}
        return best

    def _choose_columns(self, features):
        """Choose a gamma for each column, and alpha, by the evidence."""
        model, X = self.model, self.X
        options = features.get_params(deep=False)
        if (
            not (isinstance(model.cv, str) and model.cv == "evidence")
            or other_namespace(X) is not None
            or not {"select", "adapt"} <= options.keys()
            or options["select"] is not None
            or options["adapt"] is not None
        ):
            raise ValueError(
                "gammas='columns' maximises the evidence by the bandwidths: it needs "
                "cv='evidence', NumPy arrays or SciPy matrices, and FourierFeatures "
                f"with select=None and adapt=None, got cv={model.cv!r} and "
                f"features={features!r}."
            )
        few = clone(features)
        few.set_params(n_components=min(few.n_components, COLUMN_COMPONENTS))
        few.fit_checked(X, self.Y, self.sample_weight)
        gamma = np.broadcast_to(few.gamma_, X.shape[1]).astype(np.float64)
        unit, powers = _of_unit_gamma(few, X)
        rows = np.arange(X.shape[0])
        if len(rows) > COLUMN_ROWS:
            rng = as_generator(features.random_state)
            rows = np.sort(rng.choice(rows, COLUMN_ROWS, replace=False))
        weight = None if self.sample_weight is None else self.sample_weight[rows]
        found = column_bandwidths(
            unit,
            powers,
            gamma,
            rows_of(X, rows).astype(np.float64),
            (self.Y - self.offset)[rows],
            weight,
            model.fit_intercept,
        )
        return self._choose_alpha(clone(features).set_params(gamma=found))


def _of_unit_gamma(features, X):
    """Frequencies for gamma = 1, and the powers of gamma that they grow by."""
    drawn = [
        clone(features)
        .set_params(gamma=np.full(X.shape[1], gamma))
        .fit_checked(X, None)
        for gamma in (1.0, 4.0)
    ]
    unit, other = (np.asarray(own.frequencies_, dtype=np.float64) for own in drawn)
    ratio = np.divide(other, unit, out=np.ones_like(unit), where=unit != 0.0)
    return unit, np.log(ratio) / np.log(4.0)


def _checked_gammas(gammas):
    """Ascending array of bandwidths, > 0."""
    values = ascending_numbers(gammas, np.nextafter(0.0, 1.0))
    if values is None:
        raise ValueError(
            "gammas must be None, 'auto', 'columns' or a non-empty sequence of "
            f"positive numbers, got {gammas!r}."
        )
    return values
