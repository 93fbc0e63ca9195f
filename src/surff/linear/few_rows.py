r"""Held-out splits of no more rows than columns, solved through the rows' kernel.

With the features Z of the training rows, centred and times the square roots of their
weights as the targets y are,

.. math:: \beta(\alpha) = (Z^\top Z + \alpha I)^{-1} Z^\top y
          = Z^\top (Z Z^\top + \alpha I)^{-1} y,

and the second system has a row and a column for each training row.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import numpy as np

from surff.backend import backend_of_map, map_rows, stage
from surff.linear.alpha_path import coefficient_path, each_split
from surff.linear.criteria import Data, HeldOutSplits, Solving
from surff.linear.normal_equations import NormalEquations
from surff.linear.solvers import cholesky, smallest_together

__all__ = ["HeldOutFewRows", "has_few_rows"]

#: Fewest rows that several threads map.
THREAD_ROWS = 512


def has_few_rows(data: Data, solving: Solving) -> bool:
    """Whether `HeldOutFewRows` can serve these data, and costs less."""
    few = data.X.shape[0] <= data.feature_map.n_components
    is_numpy = backend_of_map(data.feature_map, data.X).is_numpy
    return few and is_numpy and solving.solver == "cholesky"


class SplitOfRows:
    """A split whose normal equations are formed when somebody asks for them.

    Parameters
    ----------
    data : Data
    number : int
        Which of the splits it is.
    train_rows, test_rows : ndarray of int
        Rows of the two sides.
    """

    def __init__(
        self, data: Data, number: int, train_rows: np.ndarray, test_rows: np.ndarray
    ):
        self._data, self.number = data, number
        self.feature_map = data.feature_map
        self.train_rows, self.test_rows = train_rows, test_rows

    @property
    def n_unknowns(self) -> int:
        """Size of the system of equations of the training side."""
        return len(self.train_rows)

    @functools.cached_property
    def train(self) -> NormalEquations:
        """Normal equations of the training rows."""
        return self._data.equations(self.train_rows)

    @functools.cached_property
    def test(self) -> NormalEquations:
        """Normal equations of the rows held out."""
        return self._data.equations(self.test_rows)


class HeldOutFewRows(HeldOutSplits):
    """`HeldOutSplits` of no more rows than columns.

    The features of all rows are held, which takes no more memory than a Gram matrix.
    Alphas so small that rounding decides whether a system is singular are left to the
    normal equations.

    Parameters
    ----------
    data : Data
    solving : Solving
        With the solver "cholesky".
    splits : list of (train_rows, test_rows)
        From a scikit-learn splitter.
    scorer : object
        See `surff.linear.criteria`.
    """

    def __init__(self, data: Data, solving: Solving, splits: Any, scorer: Any):
        self.data, self.solving, self.scorer = data, solving, scorer
        self._leaves_one_out = any(len(test) == 1 for _, test in splits)
        self._rows = splits
        with stage("Gram matrix", data.X.shape[0], "rows"):
            self.total = data.equations()
        alone = data.X.shape[0] < THREAD_ROWS  # threads would cost more than they save
        Z = data.feature_map(data.X) if alone else map_rows(data.feature_map, data.X)
        self._features = np.asarray(Z, dtype=np.float64)
        self._kernel = self._features @ self._features.T
        self._known: list[list[tuple]] = [[] for _ in splits]

    def splits(self) -> Iterator[Any]:
        """Iterate over the splits, whose normal equations are formed if asked for."""
        for number, (train, test) in enumerate(self._rows):
            yield SplitOfRows(self.data, number, train, test)

    def fold_models(self, alphas: Any) -> Iterator[tuple[Any, np.ndarray, np.ndarray]]:
        """Iterate over the splits, with the coefficients and intercepts of alphas."""

        def coefs_of(split, dual):
            return np.tensordot(self._features[split.train_rows], dual, (0, 0))

        return self._solved(alphas, coefs_of, lambda _, coefs: coefs)

    def _fold_answers(self, alphas):
        """Every split, with predictions for what it holds out and their intercepts."""

        def of_dual(split, dual):
            products = self._kernel[np.ix_(split.test_rows, split.train_rows)]
            return np.tensordot(products, dual, 1)

        def of_coefs(split, coefs):
            return np.tensordot(self._features[split.test_rows], coefs, 1)

        return self._solved(alphas, of_dual, of_coefs)

    def _decisions(self, split, products, intercepts):
        del split  # the products are those of its rows
        return products + intercepts + self.data.offset

    def _split_score(self, number, split, *answers):
        return self._score_of_rows(number, split, answers)

    def _solved(self, alphas, of_dual, of_coefs):
        """Every split, with what is made of its solutions, and their intercepts."""
        alphas = np.asarray(alphas, dtype=np.float64)
        n_tiny = np.searchsorted(alphas, smallest_together(self.total.gram), "right")

        def solve(split):
            parts = []
            if n_tiny:
                path = coefficient_path(split.train, alphas[:n_tiny], *self.solving)
                parts.append((of_coefs(split, path[0]), path[1]))
            if n_tiny < len(alphas):
                dual, intercepts = self._once(split, alphas[n_tiny:])
                parts.append((of_dual(split, dual), intercepts))
            if len(parts) == 1:
                return parts[0]
            (tiny, *below), (others, *above) = parts
            return np.hstack([tiny, others]), np.vstack([*below, *above])

        return each_split(solve, self.splits())

    def _once(self, split, alphas):
        """`_dual` of a split, from an earlier call if that had all the alphas."""
        for known, dual, intercepts in self._known[split.number]:
            if np.isin(alphas, known).all():
                some = np.searchsorted(known, alphas)
                return dual[:, some], intercepts[some]
        found = self._dual(split.train_rows, alphas)
        self._known[split.number].append((alphas, *found))
        return found

    def _dual(self, rows, alphas):
        """Dual coefficients, times the roots of the weights, and intercepts."""
        Y, weight = self.data.Y[rows], self.data.weight(rows)
        kernel = self._kernel[np.ix_(rows, rows)].T  # symmetric, in Fortran order
        y_mean, beside = np.zeros(Y.shape[1]), np.zeros(len(rows))
        share = np.ones(len(rows)) if weight is None else weight
        share = share / share.sum()
        if self.solving.fit_intercept:
            y_mean, beside = share @ Y, kernel @ share
            # The products with the mean, and that of the mean with itself.
            kernel -= beside[:, None]
            kernel -= beside - share @ beside
            Y = Y - y_mean
        roots = None if weight is None else np.sqrt(weight)[:, None]
        if roots is not None:
            kernel *= roots * roots.T
            Y = Y * roots
        nothing = np.full(Y.shape, np.nan)
        paths = cholesky(kernel, Y, alphas)
        flat = np.hstack([nothing if one is None else one for one in paths])
        if roots is not None:
            flat *= roots
        if self.solving.fit_intercept:
            # Coefficients of centred features, which are Z less share @ Z.
            flat -= share[:, None] * flat.sum(axis=0)
        dual = flat.reshape(len(rows), len(alphas), -1)
        return dual, y_mean - (beside @ flat).reshape(len(alphas), -1)
