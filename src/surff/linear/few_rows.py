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
from surff.linear.normal_equations import NormalEquations, accumulate
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
    train_rows, test_rows : ndarray of int
        Rows of the two sides.
    """

    def __init__(self, data: Data, train_rows: np.ndarray, test_rows: np.ndarray):
        self._data = data
        self.feature_map = data.feature_map
        self.train_rows, self.test_rows = train_rows, test_rows

    @property
    def n_unknowns(self) -> int:
        """Size of the system of equations of the training side."""
        return len(self.train_rows)

    @functools.cached_property
    def train(self) -> NormalEquations:
        """Normal equations of the training rows."""
        return self._equations(self.train_rows)

    @functools.cached_property
    def test(self) -> NormalEquations:
        """Normal equations of the rows held out."""
        return self._equations(self.test_rows)

    def _equations(self, rows):
        data = self._data
        return accumulate(data.feature_map, data.X, data.Y, data.sample_weight, rows)


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
            self.total = accumulate(
                data.feature_map, data.X, data.Y, data.sample_weight
            )
        alone = data.X.shape[0] < THREAD_ROWS  # threads would cost more than they save
        Z = data.feature_map(data.X) if alone else map_rows(data.feature_map, data.X)
        self._features = np.asarray(Z, dtype=np.float64)
        self._kernel = self._features @ self._features.T

    def _splits(self):
        for train, test in self._rows:
            yield SplitOfRows(self.data, train, test)

    def fold_models(self, alphas: Any) -> Iterator[tuple[Any, np.ndarray, np.ndarray]]:
        """Iterate over the splits, with the coefficients and intercepts of alphas."""
        alphas = np.asarray(alphas, dtype=np.float64)
        tiny = alphas <= smallest_together(self.total.gram)

        def solve(split):
            m, k = self.total.moments.shape
            coefs, intercepts = (
                np.empty((m, len(alphas), k)),
                np.empty((len(alphas), k)),
            )
            if tiny.any():
                path = coefficient_path(split.train, alphas[tiny], *self.solving)
                coefs[:, tiny], intercepts[tiny] = path
            if not tiny.all():
                path = self._path(split.train_rows, alphas[~tiny])
                coefs[:, ~tiny], intercepts[~tiny] = path
            return coefs, intercepts

        return each_split(solve, self._splits())

    def _path(self, rows, alphas):
        """Coefficients and intercepts of alphas that are not tiny."""
        Z, Y, weight = self._features[rows], self.data.Y[rows], self.data.weight(rows)
        kernel = self._kernel[np.ix_(rows, rows)].T
        z_mean, y_mean = np.zeros(Z.shape[1]), np.zeros(Y.shape[1])
        if self.solving.fit_intercept:
            share = np.ones(len(Z)) if weight is None else weight
            share = share / share.sum()
            z_mean, y_mean = share @ Z, share @ Y
            # The products with the mean, and that of the mean with itself.
            beside = kernel @ share
            kernel -= beside[:, None]
            kernel -= beside - share @ beside
            Y = Y - y_mean
        roots = None if weight is None else np.sqrt(weight)
        if roots is not None:
            kernel *= roots[:, None] * roots
            Y = Y * roots[:, None]
        paths = list(cholesky(kernel, Y, alphas))
        nothing = np.full(Y.shape, np.nan)
        dual = [nothing if one is None else one for one in paths]
        flat = np.hstack(dual)
        if roots is not None:
            flat = flat * roots[:, None]
        coefs = Z.T @ flat - np.outer(z_mean, flat.sum(axis=0))
        intercepts = (z_mean @ coefs).reshape(len(alphas), -1)
        return coefs.reshape(len(coefs), len(alphas), -1), y_mean - intercepts

    def _split_score(self, number, split, *path):
        return self._score_of_rows(number, split, path)

    def _decisions(self, split, coefs, intercepts):
        flat = coefs.reshape(len(coefs), -1)
        decisions = self._features[split.test_rows] @ flat
        return decisions.reshape(-1, *coefs.shape[1:]) + intercepts + self.data.offset
