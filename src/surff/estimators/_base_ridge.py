"""What the regressor and the classifier of `surff.estimators.ridge` share.

Who fits is elsewhere: `RowsFit` rows in memory, `SourceFit` a source. Here is what
follows from their `Choice`, learning in pieces, and prediction from sources. The
subclasses know what targets and scores are.
"""

from __future__ import annotations

import numbers
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import _check_n_features, check_array, check_is_fitted

from surff.backend import (
    FLOAT_DTYPES,
    Array,
    array_api_support,
    asarray_like,
    to_numpy,
    validated,
    wide_dtype,
)
from surff.estimators._importance import KEPT
from surff.estimators._linear import checked_features, fitted_features
from surff.estimators._rows_fit import (
    RowsFit,
    Targets,
    asked_dtype,
    direct_solver,
    target_offset,
)
from surff.estimators._source_fit import SourceFit, Way, choice_from_equations
from surff.estimators._watching import WATCH_CONSTRAINTS
from surff.estimators._with_leaves import WithLeaves
from surff.estimators.base import NumpyOnly
from surff.estimators.leaves import LEAVES_CONSTRAINTS, checked_leaves
from surff.linear import SOLVERS, Data, NormalEquations, accumulate, solve, solve_each
from surff.streaming import DaskRows, Passes

__all__ = [
    "PRIVATE_RESULTS",
    "RIDGE_CONSTRAINTS",
    "BaseKernelRidge",
    "check_columns",
    "learns_in_pieces",
    "streams",
]


def learns_in_pieces(model: Any):
    """Whether `partial_fit` can do what the parameters ask for."""
    if model.probability:
        raise AttributeError(
            "probability=True needs predictions of rows left out, which partial_fit "
            "cannot make; set it to False"
        )
    if model.intervals:
        raise AttributeError(
            f"intervals={model.intervals!r} needs predictions of rows left out, which "
            "partial_fit cannot make; set it to False"
        )
    if model.gammas is not None:
        raise AttributeError(
            "gammas needs several passes over the data, which partial_fit does not "
            f"make; set it to None, got {model.gammas!r}"
        )
    sums_leaves(model, "partial_fit")
    if not model.keep_equations:
        raise AttributeError(
            "partial_fit needs the normal equations: keep_equations must be True, got "
            f"{model.keep_equations!r}"
        )
    return forms_equations(model, "partial_fit")


def sums_leaves(model, method):
    """Whether leaf heads, if any, can be fitted from sums over rows."""
    if model.leaves is not None and getattr(model.leaves, "boosts", bool)():
        raise AttributeError(
            "combine='boost' needs all rows at once, for what each tree leaves of "
            f"them, which {method} does not have; set it to 'bag'"
        )


def forms_equations(model, method):
    """Whether the solver works from normal equations."""
    if model.solver == "cg":
        raise AttributeError(
            f"{method} needs the normal equations, which solver='cg' does not form; "
            "set it to 'cholesky' or 'eigh'"
        )
    return True


def streams(model: Any):
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
    sums_leaves(model, "fit_stream")
    return forms_equations(model, "fit_stream")


#: What the parameters of both ridge models may be.
RIDGE_CONSTRAINTS = {
    "features": [None, HasMethods(["fit", "transform"])],
    "alphas": [
        StrOptions({"auto"}),
        Interval(numbers.Real, 0.0, None, closed="left"),
        "array-like",
    ],
    "gammas": [None, StrOptions({"auto", "columns"}), "array-like"],
    "cv": [StrOptions({"gcv", "loo", "evidence"}), "cv_object"],
    "scoring": [None, str, callable],
    "fit_intercept": ["boolean"],
    "solver": [StrOptions({*SOLVERS, "cg", "auto"})],
    "tol": [Interval(numbers.Real, 0.0, None, closed="neither")],
    "max_iter": [Interval(numbers.Integral, 1, None, closed="left")],
    "precision": [StrOptions({"auto", "mixed", "float64"})],
    "keep_equations": ["boolean"],
    "intervals": ["boolean", StrOptions({"normalized"})],
    **WATCH_CONSTRAINTS,
    **LEAVES_CONSTRAINTS,
}


class BaseKernelRidge(WithLeaves):
    """Ridge on a feature map whose features are made block by block, never stored."""

    #: An option of the regressor alone.
    alpha_per_target = False

    #: An option of the classifier alone.
    probability = False

    #: Models of earlier versions have none.
    leaves: Any = None

    #: Values of ``scoring`` that need no look at all predictions together.
    _streamed_scoring = (None,)

    # -- fitting -----------------------------------------------------------------------

    def _targets(self):
        """What those who fit the model ask of it."""
        return Targets(
            self._checked_block,
            self._learn_targets,
            self._coded,
            self._scorer,
            self._is_classifier,
            self._streamed_scoring,
        )

    def _checked_block(self, X, y, first):
        """Rows and targets of a block of a source."""
        if y is None:
            raise ValueError("there is no y to fit: name the target.")
        return self._validated(X, y, None, reset=first)[:2]

    def _fit(self, X, y, Y, sample_weight):
        """Fit numeric targets ``Y`` (n_samples, k); ``y`` feeds splitter and scorer."""
        leaves = checked_leaves(self.leaves)
        self._refuse_with_leaves()
        fit = RowsFit(self, self._targets(), X, y, Y, sample_weight)
        choice = self._taken(fit, leaves, X)
        self._set_importances(X, sample_weight)
        return choice

    def _taken(self, fit, leaves, X):
        """Let a fit choose, and set what it has found."""
        choice = fit.choose()
        if fit.gamma_path is not None:
            self.gamma_path_ = fit.gamma_path
        if choice.total is not None:
            # A choice among alphas holds on to the equations for its caller.
            spare = choice.path is None and not self.keep_equations
            if leaves is None:
                self._take(choice, X, spare)
                self._take_folds(choice)
            else:
                self._take(choice, X)
                self._take_leaves(choice, leaves, X, fit.y)
            return choice
        self._take_choice(choice)
        self._take_folds(choice)
        alphas, of_target = np.unique(self.alpha_, return_inverse=True)
        data = choice.data
        solution = fit.by_passes(data, alphas, data.feature_map)
        targets = np.arange(data.Y.shape[1])
        of_target = np.broadcast_to(of_target.ravel(), targets.shape)
        self.primal_coef_ = solution.coefs[:, of_target, targets].T.astype(X.dtype)
        intercept = solution.intercepts[of_target, targets] + data.offset
        self.intercept_ = intercept.astype(X.dtype)
        self.n_iter_ = max(1, solution.n_iter)
        return choice

    def _take_choice(self, choice):
        """Set what was chosen."""
        self.features_ = choice.features
        self.alpha_, self.best_score_ = choice.alpha, choice.score
        if choice.path is not None:
            self.alpha_path_ = choice.path

    def _take(self, choice, like, overwrite=False):
        """Set what was chosen, and solve the equations; arrays such as ``like``.

        ``overwrite`` leaves no equations.
        """
        self._take_choice(choice)
        centred = choice.total.centred(self.fit_intercept, overwrite=overwrite)
        solver = direct_solver(self, like)
        if np.ndim(self.alpha_):
            coef, intercept = solve_each(centred, self.alpha_, solver)
            self.alpha_ = asarray_like(self.alpha_, like, wide_dtype(like))
        else:
            coef, intercept = solve(centred, self.alpha_, solver, overwrite)
        offset = choice.data.offset
        self.primal_coef_ = asarray_like(coef.T, like)
        self.intercept_ = asarray_like(intercept + offset, like)
        self.n_iter_ = 1
        if self.keep_equations:
            self.equations_ = choice.total
            self._offset = asarray_like(offset, like, wide_dtype(like))
            self._with_intercept = bool(self.fit_intercept)
            self._take_noise(choice)

    def _take_noise(self, choice):
        """Set what the posterior needs of the folds; the regressor does."""

    @property
    def target_offset(self) -> np.ndarray:
        """Constant that was taken off each target before ``equations_`` were summed."""
        return to_numpy(self._offset)

    # -- fitting in pieces -------------------------------------------------------------

    def _partial_fit(self, X, Y, sample_weight):
        """Add rows to the normal equations and solve again."""
        self._validate_params()  # scikit-learn skips it from the second piece on
        if not hasattr(self, "equations_"):
            if hasattr(self, "primal_coef_"):
                raise ValueError(
                    "partial_fit cannot go on from a fit whose normal equations were "
                    "not kept; fit with keep_equations=True."
                )
            features = fitted_features(
                checked_features(self.features),
                X,
                Y,
                sample_weight,
                names=getattr(self, "feature_names_in_", None),
            )
            # Any constant will do; the first rows' mean saves most of the digits.
            offset = target_offset(Y, sample_weight, self.fit_intercept)
            equations = NormalEquations(features.feature_map().n_components, Y.shape[1])
        else:
            features, offset = self.features_, self.target_offset
            equations = self.equations_.copy()
        feature_map = features.feature_map().astype(asked_dtype(self, X))
        equations.merge(accumulate(feature_map, X, Y - offset, sample_weight))
        data = Data(feature_map, None, None, offset, None)
        choice = choice_from_equations(self, features, data, equations, X)
        for name in ("_posterior_", "alpha_path_", "fold_models_", *KEPT):
            vars(self).pop(name, None)  # of the rows that came before
        self._take(choice, X)
        if self.leaves is not None:
            self._leaves_of_piece(choice, X, Y - offset, sample_weight)

    # -- data that do not fit in memory ------------------------------------------------

    def _fit_source(self, source, classes, n_sample):
        """Fit to a source."""
        self._refuse_with_leaves()
        fit = SourceFit(self, self._targets(), source, classes, n_sample)
        choice = fit.choose()
        # Before this holds what workers need not get.
        self._take_folds(choice, self._coded)
        self._take(choice, fit.sample.X)
        if self.leaves is not None:
            self._leaves_of_source(choice, fit)
        if fit.way is Way.SAMPLE:
            self._set_importances(fit.sample.X, fit.sample.sample_weight)
        self._unwrap(fit.sample.y)
        if source.feature_names is not None:
            self.feature_names_in_ = np.asarray(source.feature_names, dtype=object)
            if not isinstance(self.features, FrozenEstimator):
                self.features_.feature_names_in_ = self.feature_names_in_

    def _fit_on_workers(self, X, y, sample_weight):
        """Fit to Dask collections."""
        try:
            fit_stream = self.fit_stream
        except AttributeError as error:
            raise ValueError(
                f"rows on workers are fitted by fit_stream: {error.__cause__}."
            ) from error
        return fit_stream(DaskRows(X, y, sample_weight))

    def predict_stream(self, source: Any) -> Iterator[Array]:
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
        return self._predictions_of(self._passes_over(source, without_targets))

    def _predictions_of(self, passes):
        with passes(gather=False) as blocks:
            for rows in blocks:
                yield self.predict_checked(rows.X)

    def _passes_over(self, source, check_targets):
        """Passes over a source for the fitted model."""
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

    def numpy_only(self) -> NumpyOnly | None:
        """Return the option that needs NumPy arrays, or None.

        See `surff.backend.check_supported`.
        """
        features = self.features
        if isinstance(features, FrozenEstimator):
            features = features.estimator
        found = None
        if features is not None:
            found = NumpyOnly("features", features, "FourierFeatures")
            if hasattr(features, "numpy_only") and not isinstance(features, type):
                found = features.numpy_only()
        if found is not None:
            return found
        if self.leaves is not None:
            return NumpyOnly("leaves", self.leaves, "None")
        if self.solver == "cg":
            return NumpyOnly("solver", self.solver, "'cholesky' or 'eigh'")
        if isinstance(self.cv, str) and self.cv == "loo":
            return NumpyOnly("cv", self.cv, "'gcv', 'evidence' or folds")
        if self.scoring not in self._streamed_scoring:
            return NumpyOnly(
                "scoring", self.scoring, f"one of {self._streamed_scoring}"
            )
        if self.probability:
            return NumpyOnly("probability", self.probability, "False")
        if self.intervals:
            return NumpyOnly("intervals", self.intervals, "False")
        return None

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.array_api_support = array_api_support(self)
        return tags

    def __getstate__(self):
        state = super().__getstate__().copy()
        state.pop("_posterior_", None)  # follows from the rest
        return state


#: Results of a fit whose names do not end in an underscore.
PRIVATE_RESULTS = (
    *("_offset", "_multilabel", "_with_intercept", "_held_out_noise"),
    *KEPT,
)


def without_targets(X, y, first):
    """Rows alone, for a prediction."""
    del y, first
    return X, None


def check_columns(y: Any, n_columns):
    """Refuse a target whose shape differs from the first piece."""
    columns = 1 if y.ndim == 1 else y.shape[1]
    if columns != n_columns:
        raise ValueError(
            f"y must have {n_columns} column{'s' if n_columns > 1 else ''}, as in the "
            f"first call to partial_fit, got {columns}."
        )
