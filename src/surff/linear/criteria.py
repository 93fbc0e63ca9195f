"""What an alpha is judged by: held-out folds, leave-one-out, or GCV.

A criterion is formed once from the data, holds the normal equations of all rows as
``total`` and answers two questions,

- ``score(alphas)``: scores of shape (n_alphas, n_splits, n_scores), larger is better,
  nan where a system was singular; n_scores is 1, or the number of targets where the
  score has one for each;
- ``held_out(alpha)``: predictions of shape (n_samples, n_targets) for rows by models
  that have not seen them, nan for rows that no split holds out.

A scorer says what is good about predictions. `SquaredError` and `R2` also read it off
normal equations, which saves a pass over the data.
"""

from typing import NamedTuple

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.metrics import check_scoring

from surff.backend import rows_of
from surff.linear.alpha_path import (
    coefficient_path,
    gcv_errors,
    held_out_decisions,
    leave_one_out_decisions,
    splits_equations,
    squared_errors,
)
from surff.linear.normal_equations import accumulate
from surff.linear.solvers import solver_of

__all__ = [
    "R2",
    "Accuracy",
    "Data",
    "GeneralizedCrossValidation",
    "HeldOutPasses",
    "HeldOutSplits",
    "LeaveOneOut",
    "ScorerOf",
    "SquaredError",
    "n_singular",
]


class Data(NamedTuple):
    """What a pass over the data needs, and how the model is solved."""

    feature_map: object
    X: object  # (n_samples, n_features)
    Y: np.ndarray  # (n_samples, k), less the offset
    offset: np.ndarray  # (k,), added to every prediction
    sample_weight: np.ndarray | None  # (n_samples,)
    fit_intercept: bool
    solver: object  # a name, or a function as those of `surff.linear.SOLVERS`

    def weight(self, rows):
        """Weights of some rows, None for none given."""
        return None if self.sample_weight is None else self.sample_weight[rows]


class HeldOutSplits:
    """k-fold cross-validation, or any other list of splits.

    Parameters
    ----------
    data : Data
    splits : list of (train_rows, test_rows)
        From a scikit-learn splitter.
    scorer : object
        See the module.
    refit : callable, optional
        See `surff.linear.splits_equations`.
    """

    def __init__(self, data, splits, scorer, refit=None):
        self.data, self.scorer = data, scorer
        self.total, self._splits = splits_equations(
            data.feature_map, data.X, data.Y, splits, data.sample_weight, refit
        )

    def score(self, alphas):
        """Scores of every alpha, one column a split; see the module."""
        scores = [self._split_score(split, alphas) for split in self._splits()]
        return np.stack(scores, axis=1)

    def _path(self, split, alphas):
        data = self.data
        return coefficient_path(split.train, alphas, data.fit_intercept, data.solver)

    def _decisions(self, split, coefs, intercepts):
        data = self.data
        return held_out_decisions(
            split.feature_map, data.X, split.test_rows, coefs, intercepts + data.offset
        )

    def _split_score(self, split, alphas):
        path = self._path(split, alphas)
        if hasattr(self.scorer, "from_equations"):
            return self.scorer.from_equations(split.test, *path)
        rows = split.test_rows
        decisions = self._decisions(split, *path)
        return self.scorer.from_decisions(decisions, rows, self.data.weight(rows))

    def held_out(self, alpha):
        """Held-out predictions at one alpha; see the module."""
        decisions = np.full(self.data.Y.shape, np.nan)
        for split in self._splits():
            path = self._path(split, [alpha])
            decisions[split.test_rows] = self._decisions(split, *path)[:, 0]
        return decisions


class _Side(NamedTuple):
    """Rows of a cross-validation split, and the map of its training side."""

    train_rows: np.ndarray
    test_rows: np.ndarray
    feature_map: object


class HeldOutPasses(HeldOutSplits):
    """Held-out splits without normal equations: ``total`` is None.

    Parameters
    ----------
    data : Data
    splits : list of (train_rows, test_rows)
        From a scikit-learn splitter.
    scorer : object
        See the module.
    solve : callable
        Coefficients and intercepts ``solve(feature_map, alphas, rows)`` of the models
        of some rows, as `surff.linear.Solution` has them.
    refit : callable, optional
        See `surff.linear.splits_equations`.
    """

    #: Rows from which the mean eigenvalue is estimated.
    SAMPLE = 1000

    def __init__(self, data, splits, scorer, solve, refit=None):
        self.data, self.scorer, self.solve, self.total = data, scorer, solve, None
        sides = [
            _Side(train, test, data.feature_map if refit is None else refit(train))
            for train, test in splits
        ]
        self._splits = lambda: iter(sides)

    def grid(self, decades):
        """Alphas at ``10**decades`` times the mean eigenvalue, from a few rows."""
        X, n = self.data.X, self.data.X.shape[0]
        rows = np.arange(0, n, max(1, n // self.SAMPLE))
        Z = self.data.feature_map(rows_of(X, rows)).astype(np.float64)
        weight = self.data.weight(rows)
        mean = 0.0
        if self.data.fit_intercept:
            mean = np.average(Z, axis=0, weights=weight)
        spread = np.average(np.square(Z - mean), axis=0, weights=weight).mean()
        total = n if weight is None else self.data.sample_weight.sum()
        return (total * spread if spread > 0 else 1.0) * 10.0**decades

    def _path(self, split, alphas):
        solution = self.solve(split.feature_map, alphas, split.train_rows)
        return solution.coefs, solution.intercepts

    def _split_score(self, split, alphas):
        rows = split.test_rows
        decisions = self._decisions(split, *self._path(split, alphas))
        return self.scorer.from_decisions(decisions, rows, self.data.weight(rows))


class _OnAllRows:
    def __init__(self, data):
        if data.X.shape[0] < 2:
            raise ValueError("cv='gcv' and cv='loo' need two rows, got n_samples=1.")
        self.data = data
        self.total = accumulate(data.feature_map, data.X, data.Y, data.sample_weight)

    def score(self, alphas):
        """Scores of every alpha, ascending; see the module."""
        scores = np.full((len(alphas), 1, self.total.moments.shape[1]), np.nan)
        regular = n_singular(self.total, alphas, self.data)
        if regular < len(alphas):
            found = self._score(alphas[regular:])
            scores = np.concatenate([scores[:regular, :, : found.shape[2]], found])
        return scores

    def _decisions(self, alphas):
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
            data.fit_intercept,
            None if weight is None else weight > 0,
        )

    def held_out(self, alpha):
        """Leave-one-out predictions at one alpha; see the module."""
        return self._decisions([alpha])[:, 0]


def n_singular(equations, alphas, data):
    """How many of ascending alphas, the first ones, the solver cannot solve for.

    Formulas have scores even for those. Costs a factorisation more than the answer.
    """
    if data.solver == "eigh":
        return 0
    centred = equations.centred(data.fit_intercept)
    coefs = solver_of(data.solver)(centred.gram, centred.moments[:, :1], alphas)
    return next((i for i, coef in enumerate(coefs) if coef is not None), len(alphas))


class LeaveOneOut(_OnAllRows):
    """Each row predicted by the model of all the others, scored together.

    Parameters
    ----------
    data : Data
    scorer : object
        See the module.
    """

    def __init__(self, data, scorer):
        super().__init__(data)
        self.scorer = scorer

    def _score(self, alphas):
        rows = np.arange(self.data.X.shape[0])
        decisions = self._decisions(alphas)
        weight = self.data.sample_weight
        return self.scorer.from_decisions(decisions, rows, weight)[:, None]


class GeneralizedCrossValidation(_OnAllRows):
    """The negative GCV error of each target, from the normal equations alone.

    Parameters
    ----------
    data : Data
    """

    @classmethod
    def of_equations(cls, total, fit_intercept, solver):
        """The criterion of normal equations whose rows are gone."""
        criterion = cls.__new__(cls)
        criterion.total = total
        criterion.data = Data(None, None, None, None, None, fit_intercept, solver)
        return criterion

    def _score(self, alphas):
        errors = gcv_errors(self.total, alphas, self.data.fit_intercept)
        if np.isinf(errors).all():
            raise ValueError(
                "cv='gcv' finds no degree of freedom left beside "
                f"{self.total.weight_sum:.3g} rows, where a weight w counts as w rows, "
                "for any of the alphas; scale the weights, increase alphas or use "
                "folds."
            )
        return -errors[:, None]


class SquaredError:
    """Negative mean squared error of each target.

    Parameters
    ----------
    Y : ndarray of shape (n_samples, k)
        Targets.
    """

    def __init__(self, Y):
        self.Y = Y

    def from_equations(self, test, coefs, intercepts):
        """Scores, shape (n_alphas, k), from the held-out rows' equations."""
        return -squared_errors(test, coefs, intercepts) / test.weight_sum

    def from_decisions(self, decisions, rows, weight):
        """Scores, shape (n_alphas, k), from predictions (n_rows, n_alphas, k)."""
        residuals = self.Y[rows, None] - decisions
        return -np.average(np.square(residuals), axis=0, weights=weight)


class R2(SquaredError):
    """Coefficient of determination of each target.

    As `sklearn.metrics.r2_score`, a constant target scores 1 if it is met and 0 if not.
    """

    def from_equations(self, test, coefs, intercepts):
        return self.from_sums(squared_errors(test, coefs, intercepts), test)

    def from_decisions(self, decisions, rows, weight):
        errors = -super().from_decisions(decisions, rows, weight)
        Y = self.Y[rows]
        mean = np.average(Y, axis=0, weights=weight)
        spread = np.average(np.square(Y - mean), axis=0, weights=weight)
        return self._ratio(errors, spread, spread + mean**2)

    @classmethod
    def from_sums(cls, errors, test):
        """Scores from sums of squared errors, and the equations of their rows."""
        mean = test.target_sum / test.weight_sum
        square = test.target_square / test.weight_sum
        errors = np.atleast_2d(errors) / test.weight_sum
        return cls._ratio(errors, square - mean**2, square)

    @staticmethod
    def _ratio(errors, spread, square):
        floor = np.finfo(np.float64).eps * square
        constant = spread <= floor
        ratio = errors / np.where(constant, 1.0, spread)
        ratio[:, constant] = np.where(
            np.isnan(errors[:, constant]), np.nan, errors[:, constant] > floor[constant]
        )
        return 1.0 - ratio


class Accuracy:
    """Share of rows whose label is predicted, all labels of a row for multilabel.

    Parameters
    ----------
    labels : callable
        Labels of predictions of shape (n_rows, k).
    y : ndarray of shape (n_samples,) or (n_samples, n_labels)
        True labels.
    """

    def __init__(self, labels, y):
        self.labels, self.y = labels, y

    def from_decisions(self, decisions, rows, weight):
        """Scores, shape (n_alphas, 1), from predictions (n_rows, n_alphas, k)."""
        scores = np.full((decisions.shape[1], 1), np.nan)
        for i in range(decisions.shape[1]):
            if not np.isnan(decisions[:, i]).any():
                hits = self.labels(decisions[:, i]) == self.y[rows]
                hits = hits.reshape(len(rows), -1).all(axis=1)
                scores[i] = np.average(hits, weights=weight)
        return scores


class ScorerOf:
    """A scikit-learn scorer, asked with predictions instead of an estimator.

    Parameters
    ----------
    model : estimator
        Whose predictions they are.
    scoring : str or callable
        See `sklearn.metrics.check_scoring`.
    X, y : array-like
        What the scorer is called with, row by row.
    """

    def __init__(self, model, scoring, X, y):
        self.model, self.X, self.y = model, X, y
        self.scorer = check_scoring(_Predicted(model, None), scoring=scoring)

    def from_decisions(self, decisions, rows, weight):
        """Scores, shape (n_alphas, 1), from predictions (n_rows, n_alphas, k)."""
        options = {} if weight is None else {"sample_weight": weight}
        scores = np.full((decisions.shape[1], 1), np.nan)
        for i in range(decisions.shape[1]):
            if not np.isnan(decisions[:, i]).any():
                predicted = _Predicted(self.model, decisions[:, i])
                scores[i] = self.scorer(
                    predicted, self.X[rows], self.y[rows], **options
                )
        return scores


class _Predicted(BaseEstimator):
    """What a scorer asks of an estimator, answered from predictions."""

    def __init__(self, model, decisions):
        self.model = model
        self.decisions = decisions

    @property
    def classes_(self):
        return self.model.classes_

    def fit(self, X, y):
        raise TypeError("held-out predictions belong to a fitted model")

    def decision_function(self, X):
        return self.model._outputs(self.decisions)

    def predict(self, X):
        return self.model._predictions(self.decisions)

    def __sklearn_tags__(self):
        return self.model.__sklearn_tags__()
