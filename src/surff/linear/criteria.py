"""What an alpha is judged by: held-out folds, leave-one-out, or GCV.

A `Criterion` is formed once from the data and answers these questions,

- ``score(alphas)``: scores of shape (n_alphas, n_splits, n_scores), larger is better,
  nan where a system was singular; n_scores is 1, or the number of targets where the
  score has one per target;
- ``alphas_at(decades)`` and ``largest_singular(alphas)``: what an automatic grid of
  alphas needs to know;
- ``held_out(alpha)``, where the rows are in memory: predictions of shape
  (n_samples, n_targets) for rows by models that have not seen them, nan for rows that
  no split holds out.

A scorer says what is good about predictions. `SquaredError` and `R2` also read it off
normal equations, which saves a pass over the data.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.metrics import check_scoring

from surff.backend import Array, rows_of
from surff.linear.alpha_path import (
    AlphaPath,
    AutoGrid,
    coefficient_paths,
    gcv_errors,
    grid_unit,
    held_out_decisions,
    leave_one_out_decisions,
    relative_grid,
    splits_equations,
    squared_errors,
)
from surff.linear.normal_equations import NormalEquations, accumulate
from surff.linear.solvers import least_regular, solver_of

__all__ = [
    "EQUATIONS_GRID",
    "PASSES_GRID",
    "R2",
    "Accuracy",
    "Criterion",
    "Data",
    "GeneralizedCrossValidation",
    "HeldOutPasses",
    "HeldOutSplits",
    "LeaveOneOut",
    "RowSplit",
    "ScorerOf",
    "Solving",
    "SquaredError",
    "n_singular",
]

#: ``alphas="auto"`` from normal equations: all alphas cost little more than one.
EQUATIONS_GRID = AutoGrid(
    np.arange(-8.0, 2.5, 0.5), (-14.0, 8.0), np.arange(0.5, 2.5, 0.5)
)

#: ``alphas="auto"`` by conjugate gradients: small alphas take many passes.
PASSES_GRID = AutoGrid(np.arange(-3.0, 2.5, 0.5), (-4.0, 8.0), np.arange(0.5, 2.5, 0.5))


#: Most bytes of the folds' models that are kept for a second use.
SOLVED_BYTES = 64 * 2**20


class Solving(NamedTuple):
    """How coefficients follow from normal equations."""

    fit_intercept: bool
    solver: str | Callable  # a name or a function out of `surff.linear.SOLVERS`


class Data(NamedTuple):
    """What a pass over rows in memory needs."""

    feature_map: Any
    X: Any  # (n_samples, n_features)
    Y: np.ndarray  # (n_samples, k), less the offset
    offset: np.ndarray  # (k,), added to every prediction
    sample_weight: np.ndarray | None  # (n_samples,)

    def equations(self, rows: np.ndarray | None = None) -> NormalEquations:
        """Normal equations of the rows, or of some of them."""
        return accumulate(self.feature_map, self.X, self.Y, self.sample_weight, rows)

    def weight(self, rows: np.ndarray) -> np.ndarray | None:
        """Weights of some rows; None if there are no weights."""
        return None if self.sample_weight is None else self.sample_weight[rows]


class Criterion(ABC):
    """What alphas are judged by; see the module."""

    #: Where ``alphas="auto"`` begins and how it goes on.
    auto_grid: ClassVar[AutoGrid] = EQUATIONS_GRID

    @abstractmethod
    def score(self, alphas: np.ndarray) -> np.ndarray:
        """Scores of ascending alphas; see the module."""

    @abstractmethod
    def alphas_at(self, decades: np.ndarray) -> np.ndarray:
        """Alphas at ``10**decades`` times the unit of the automatic grid."""

    def largest_singular(self, alphas: np.ndarray) -> float | None:
        """Largest of ``alphas`` whose full-data system is singular, or None."""
        del alphas  # every one has a solution, unless a subclass says otherwise

    def refined(self, path: AlphaPath, score: Callable) -> AlphaPath:
        """The path of an automatic grid, refined where that costs nothing.

        ``score(alphas)`` gives scores as the path holds them.
        """
        del score
        return path


class CriterionOfEquations(Criterion):
    """A criterion that holds the normal equations of all rows.

    Attributes
    ----------
    total : NormalEquations
        Of all rows.
    solving : Solving
    """

    total: NormalEquations
    solving: Solving

    def alphas_at(self, decades: np.ndarray) -> np.ndarray:
        """Alphas at ``10**decades`` times the mean eigenvalue of the Gram matrix."""
        return relative_grid(self.total, self.solving.fit_intercept, decades)

    def largest_singular(self, alphas: np.ndarray) -> float | None:
        """Largest of ``alphas`` whose full-data system is singular, or None.

        The folds may all be regular there: rounding makes the difference.
        """
        least = least_regular(self.total)
        for alpha in np.unique(alphas)[::-1]:
            if alpha < least and n_singular(self.total, [alpha], self.solving):
                return alpha
        return None


class HeldOutSplits(CriterionOfEquations):
    """k-fold cross-validation, or any other list of splits.

    Parameters
    ----------
    data : Data
    solving : Solving
    splits : list of (train_rows, test_rows)
        From a scikit-learn splitter.
    scorer : object
        See the module.
    refit : callable, optional
        See `surff.linear.splits_equations`.
    """

    def __init__(
        self,
        data: Data,
        solving: Solving,
        splits: Any,
        scorer: Any,
        refit: Callable | None = None,
    ):
        self.data, self.solving, self.scorer = data, solving, scorer
        self._known = None
        self._n_splits = len(splits)
        self._leaves_one_out = any(len(test) == 1 for _, test in splits)
        #: Iterates over the splits and their normal equations.
        self.splits: Callable[[], Iterator[Any]]
        self.total, self.splits = splits_equations(
            data.feature_map, data.X, data.Y, splits, data.sample_weight, refit
        )

    def score(self, alphas: Any) -> np.ndarray:
        """Scores of every alpha, one column per split; see the module.

        R2 has none for a single row: with a split that holds one row out, the errors
        of all splits are pooled into one score.
        """
        paths = self._fold_answers(alphas)
        if self._leaves_one_out and isinstance(self.scorer, R2):
            return self._pooled(paths)[:, None]
        scores = [self._split_score(i, *one) for i, one in enumerate(paths)]
        return np.stack(scores, axis=1)

    def _pooled(self, paths):
        """R2 of the predictions of all splits together, shape (n_alphas, k)."""
        found, rows = [], []
        for split, *path in paths:
            found.append(self._decisions(split, *path))
            rows.append(split.test_rows)
        rows = np.concatenate(rows)
        weight = self.data.weight(rows)
        return self.scorer.from_decisions(np.concatenate(found), rows, weight)

    def _fold_answers(self, alphas):
        """Every split, with what `_decisions` and scorers read predictions off."""
        return self.fold_models(alphas)

    def _decisions(self, split, coefs, intercepts):
        data = self.data
        return held_out_decisions(
            split.feature_map, data.X, split.test_rows, coefs, intercepts + data.offset
        )

    def _split_score(self, number, split, *path):
        if hasattr(self.scorer, "from_equations"):
            return self.scorer.from_equations(split.test, *path)
        return self._score_of_rows(number, split, path)

    def _score_of_rows(self, number, split, path):
        rows = split.test_rows
        decisions = self._decisions(split, *path)
        scores = self.scorer.from_decisions(decisions, rows, self.data.weight(rows))
        solved = ~np.isnan(decisions).any(axis=(0, 2))
        if np.isnan(scores[solved]).any():
            raise ValueError(
                f"the score of fold {number}, which holds {len(rows)} rows out, is NaN "
                "though its predictions are finite: scoring is not defined for what "
                "the fold holds, such as one class alone; change cv or scoring."
            )
        return scores

    def fold_models(self, alphas: Any) -> Iterator[tuple[Any, np.ndarray, np.ndarray]]:
        """Iterate over the splits, with the coefficients and intercepts of alphas."""
        paths = coefficient_paths(self.splits(), alphas, *self.solving)
        return paths if self._known is None else self._remembered(paths, alphas)

    def remember(self) -> None:
        """Keep the folds' models that `score` solves for, for a later `fold_models`."""
        self._known = []

    def _remembered(self, paths, alphas):
        """The models of the folds, from an earlier call if that had all the alphas."""
        alphas = np.asarray(alphas)
        for known, solved in self._known:
            if len(solved) == self._n_splits and np.isin(alphas, known).all():
                some = np.searchsorted(known, alphas)
                for split, (coefs, levels) in zip(self.splits(), solved, strict=True):
                    yield split, coefs[:, some], levels[some]
                return
        solved = []
        self._known.append((alphas, solved))
        held = sum(coefs.size for _, some in self._known for coefs, _ in some)
        for split, coefs, levels in paths:
            if 8 * (held + coefs.size * self._n_splits) <= SOLVED_BYTES:
                solved.append((coefs, levels))
            yield split, coefs, levels

    def held_out(self, alpha: float) -> np.ndarray:
        """Held-out predictions at one alpha; see the module."""
        decisions = np.full(self.data.Y.shape, np.nan)
        for split, *path in self._fold_answers([alpha]):
            decisions[split.test_rows] = self._decisions(split, *path)[:, 0]
        return decisions


class RowSplit(NamedTuple):
    """Rows of a cross-validation split, and the map of its training side."""

    train_rows: np.ndarray
    test_rows: np.ndarray
    feature_map: Any


class HeldOutPasses(HeldOutSplits):
    """Held-out splits without normal equations.

    Parameters
    ----------
    data : Data
    splits : list of (train_rows, test_rows)
        From a scikit-learn splitter.
    scorer : object
        See the module.
    solve : callable
        ``solve(alphas, feature_map, rows)`` returns the `surff.linear.Solution` of the
        models of some rows.
    fit_intercept : bool
        Whether they have an intercept.
    refit : callable, optional
        See `surff.linear.splits_equations`.
    """

    #: Rows from which the mean eigenvalue is estimated.
    SAMPLE = 1000

    auto_grid = PASSES_GRID

    def __init__(
        self,
        data: Data,
        splits: Any,
        scorer: Any,
        solve: Callable,
        fit_intercept: bool,
        refit: Callable | None = None,
    ):
        self.data, self.scorer, self.solve = data, scorer, solve
        self.fit_intercept = fit_intercept
        self._leaves_one_out = any(len(test) == 1 for _, test in splits)
        sides = [
            RowSplit(train, test, data.feature_map if refit is None else refit(train))
            for train, test in splits
        ]
        self.splits = lambda: iter(sides)

    def alphas_at(self, decades: np.ndarray) -> np.ndarray:
        """Alphas at ``10**decades`` times the mean eigenvalue, from a few rows."""
        X, n = self.data.X, self.data.X.shape[0]
        rows = np.arange(0, n, max(1, n // self.SAMPLE))
        Z = self.data.feature_map(rows_of(X, rows)).astype(np.float64)
        weight = self.data.weight(rows)
        mean = 0.0
        if self.fit_intercept:
            mean = np.average(Z, axis=0, weights=weight)
        spread = np.average(np.square(Z - mean), axis=0, weights=weight).mean()
        total = n if weight is None else self.data.sample_weight.sum()
        return grid_unit(total * spread) * 10.0**decades

    def largest_singular(self, alphas: Any) -> float | None:
        """None: nothing is factored, so nothing can be singular."""
        del alphas
        return

    def fold_models(self, alphas: Any) -> Iterator[tuple[Any, np.ndarray, np.ndarray]]:
        """Iterate over the splits, with the coefficients and intercepts of alphas."""
        for split in self.splits():
            solution = self.solve(alphas, split.feature_map, split.train_rows)
            yield split, solution.coefs, solution.intercepts

    def _split_score(self, number, split, *path):
        return self._score_of_rows(number, split, path)


class OnAllRows(CriterionOfEquations):
    """A criterion by a formula from the normal equations of all rows.

    Subclasses give ``_score(alphas)`` of alphas that have a solution, and have the rows
    in memory, if they are, as ``data``.
    """

    data: Data | None

    def score(self, alphas):
        """Scores of every alpha, ascending; see the module."""
        scores = np.full((len(alphas), 1, self.total.moments.shape[1]), np.nan)
        regular = n_singular(self.total, alphas, self.solving)
        if regular < len(alphas):
            found = self._score(alphas[regular:])
            scores = np.concatenate([scores[:regular, :, : found.shape[2]], found])
        return scores

    def held_out(self, alpha: float) -> np.ndarray:
        """Leave-one-out predictions at one alpha; see the module."""
        return self._left_out([alpha])[:, 0]

    def _left_out(self, alphas):
        """Leave-one-out predictions of every alpha, shape (n_samples, n_alphas, k)."""
        data = self.data
        weight = data.sample_weight
        if weight is not None and (least := weight[weight > 0].min()) < 1:
            raise ValueError(
                "leave-one-out (cv='loo') counts a weight w as w rows, of which one is "
                f"left out: positive weights must be at least 1, got {least:.3g}; "
                "scale them, or use folds."
            )
        return data.offset + leave_one_out_decisions(
            data.feature_map,
            data.X,
            data.Y,
            self.total,
            alphas,
            self.solving.fit_intercept,
            None if weight is None else weight > 0,
        )


def sum_of_rows(data):
    """Normal equations of rows in memory, at least two."""
    if data.X.shape[0] < 2:
        raise ValueError(
            "cv='gcv', 'loo' and 'evidence' need two rows, got n_samples=1."
        )
    return data.equations()


class LeaveOneOut(OnAllRows):
    """Each row predicted by the model of all the others, scored together.

    Parameters
    ----------
    data : Data
    solving : Solving
    scorer : object
        See the module.
    """

    def __init__(self, data: Data, solving: Solving, scorer: Any):
        self.total = sum_of_rows(data)
        self.data, self.solving, self.scorer = data, solving, scorer

    def _score(self, alphas):
        rows = np.arange(self.data.X.shape[0])
        decisions = self._left_out(alphas)
        weight = self.data.sample_weight
        return self.scorer.from_decisions(decisions, rows, weight)[:, None]


class FromEquations(OnAllRows):
    """A criterion that the normal equations alone answer, and rows for `held_out`.

    Parameters
    ----------
    total : NormalEquations
        Of all rows.
    solving : Solving
    data : Data, optional
        The rows, for `held_out`.
    """

    def __init__(
        self, total: NormalEquations, solving: Solving, data: Data | None = None
    ) -> None:
        self.total, self.solving, self.data = total, solving, data

    @classmethod
    def of_rows(cls, data: Data, solving: Solving) -> Self:
        """The criterion of rows in memory."""
        return cls(sum_of_rows(data), solving, data)


class GeneralizedCrossValidation(FromEquations):
    """The negative GCV error of each target, from the normal equations alone."""

    def _score(self, alphas):
        errors = gcv_errors(self.total, alphas, self.solving.fit_intercept)
        if np.isinf(errors).all():
            raise ValueError(
                "cv='gcv' finds no degree of freedom left with "
                f"{self.total.weight_sum:.3g} rows, where a weight w counts as w rows, "
                "for any of the alphas; scale the weights, increase alphas or use "
                "folds."
            )
        return -errors[:, None]


def n_singular(equations: NormalEquations, alphas: Any, solving: Solving) -> int:
    """Number of ascending alphas, the first ones, whose system is singular.

    Formulas have scores even for those. Costs one factorisation more than the answer:
    sums over float32 blocks may be singular far above `least_regular`.
    """
    if solving.solver == "eigh":
        return 0
    centred = equations.centred(solving.fit_intercept)
    coefs = solver_of(solving.solver)(centred.gram, centred.moments[:, :1], alphas)
    return next((i for i, coef in enumerate(coefs) if coef is not None), len(alphas))


class SquaredError:
    """Negative mean squared error of each target.

    Parameters
    ----------
    Y : ndarray of shape (n_samples, k)
        Targets.
    """

    def __init__(self, Y: np.ndarray | None):
        self.Y = Y

    def from_equations(
        self, test: NormalEquations, coefs: np.ndarray, intercepts: np.ndarray
    ) -> np.ndarray:
        """Scores, shape (n_alphas, k), from the held-out rows' equations."""
        return -squared_errors(test, coefs, intercepts) / test.weight_sum

    def from_decisions(
        self, decisions: np.ndarray, rows: np.ndarray | None, weight: np.ndarray | None
    ) -> np.ndarray:
        """Scores, shape (n_alphas, k), from predictions (n_rows, n_alphas, k)."""
        residuals = self.Y[rows, None] - decisions
        return -np.average(np.square(residuals), axis=0, weights=weight)


class R2(SquaredError):
    """Coefficient of determination of each target.

    As `sklearn.metrics.r2_score`, a constant target scores 1 if it is met and 0 if not.
    """

    def from_equations(
        self, test: NormalEquations, coefs: np.ndarray, intercepts: np.ndarray
    ) -> np.ndarray:
        """Scores, shape (n_alphas, k), from the held-out rows' equations."""
        return self.from_sums(squared_errors(test, coefs, intercepts), test)

    def from_decisions(
        self, decisions: np.ndarray, rows: np.ndarray | None, weight: np.ndarray | None
    ) -> np.ndarray:
        """Scores, shape (n_alphas, k), from predictions (n_rows, n_alphas, k)."""
        errors = -super().from_decisions(decisions, rows, weight)
        Y = self.Y[rows]
        mean = np.average(Y, axis=0, weights=weight)
        spread = np.average(np.square(Y - mean), axis=0, weights=weight)
        return self._ratio(errors, spread, spread + mean**2)

    @classmethod
    def from_sums(cls, errors: np.ndarray, test: NormalEquations) -> np.ndarray:
        """Scores from sums of squared errors, and the equations of their rows."""
        mean = test.target_sum / test.weight_sum
        square = test.target_square / test.weight_sum
        errors = np.atleast_2d(errors) / test.weight_sum
        rounding = test.weight_sum * square
        return cls._ratio(errors, square - mean**2, rounding)

    @staticmethod
    def _ratio(errors, spread, square):
        # A spread that rounding of the sums may have made is none.
        floor = 16.0 * np.finfo(np.float64).eps * square
        constant = spread <= floor
        ratio = errors / np.where(constant, 1.0, spread)
        ratio[:, constant] = np.where(
            np.isnan(errors[:, constant]), np.nan, errors[:, constant] > floor[constant]
        )
        return 1.0 - ratio


class ScoreOfRows(ABC):
    """One score of the predictions of all targets, which needs the rows."""

    def from_decisions(
        self, decisions: np.ndarray, rows: np.ndarray | None, weight: np.ndarray | None
    ) -> np.ndarray:
        """Scores, shape (n_alphas, 1), from predictions (n_rows, n_alphas, k)."""
        scores = np.full((decisions.shape[1], 1), np.nan)
        for i in range(decisions.shape[1]):
            if not np.isnan(decisions[:, i]).any():
                scores[i] = self._score(decisions[:, i], rows, weight)
        return scores

    @abstractmethod
    def _score(self, decisions, rows, weight): ...


class Accuracy(ScoreOfRows):
    """Share of rows whose label is predicted, all labels of a row for multilabel.

    Parameters
    ----------
    labels : callable
        Labels of predictions of shape (n_rows, k).
    y : ndarray of shape (n_samples,) or (n_samples, n_labels)
        True labels.
    """

    def __init__(self, labels: Any, y: Any):
        self.labels, self.y = labels, y

    def _score(self, decisions, rows, weight):
        hits = self.labels(decisions) == self.y[rows]
        return np.average(hits.reshape(len(rows), -1).all(axis=1), weights=weight)


class ScorerOf(ScoreOfRows):
    """A scikit-learn scorer, asked with predictions instead of an estimator.

    Parameters
    ----------
    model : estimator
        Whose predictions they are.
    scoring : str or callable
        See `sklearn.metrics.check_scoring`.
    X, y : array-like
        What the scorer is called with, row by row.
    outputs, predictions : callable
        What the model's ``decision_function`` and ``predict`` return, from predictions
        of shape (n_rows, k).
    """

    def __init__(
        self,
        model: Any,
        scoring: Any,
        X: Array,
        y: Any,
        outputs: Callable,
        predictions: Callable,
    ):
        self.X, self.y = X, y
        self._answers = model, outputs, predictions
        self.scorer = check_scoring(_Predicted(*self._answers), scoring=scoring)

    def _score(self, decisions, rows, weight):
        options = {} if weight is None else {"sample_weight": weight}
        predicted = _Predicted(*self._answers, decisions)
        return self.scorer(predicted, self.X[rows], self.y[rows], **options)


class _Predicted(BaseEstimator):
    """What a scorer asks of an estimator, answered from predictions."""

    def __init__(self, model, outputs, predictions, decisions=None):
        self.model = model
        self.outputs = outputs
        self.predictions = predictions
        self.decisions = decisions

    @property
    def classes_(self):
        return self.model.classes_

    def fit(self, X, y):
        raise TypeError(f"held-out predictions are fitted, got {X!r} and {y!r}")

    def decision_function(self, X):
        del X  # the decisions are those of its rows
        return self.outputs(self.decisions)

    def predict(self, X):
        del X
        return self.predictions(self.decisions)

    def __sklearn_tags__(self):
        return self.model.__sklearn_tags__()
