r"""A sample of a source's rows, its folds, and sums over the rows.

What would need all rows at once is decided by the number of a row in its source alone.
Row i has the key :math:`h(i)`, a mixed 64-bit number. The rows with the smallest keys
are a uniform sample without replacement, and the key modulo the number of folds is the
row's fold, so neither depends on how the source cuts its blocks.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable
from types import NoneType
from typing import Any, NamedTuple, Self

import numpy as np
from scipy import sparse
from sklearn.utils.multiclass import type_of_target

from surff.backend import (
    Array,
    backend_of,
    block_rows_on,
    other_namespace,
    row_blocks,
    rows_of,
    to_numpy,
    wide_dtype,
)
from surff.streaming.passes import Passes, stacked

__all__ = [
    "N_SAMPLE",
    "EntrySpread",
    "Fold",
    "Labels",
    "RowSample",
    "Survey",
    "WorkerRows",
    "added",
    "folds_of_rows",
    "row_keys",
    "survey",
]


class Fold(NamedTuple):
    """One fold of a source, by the keys of its rows."""

    number: int
    n_folds: int

    def holds(self, start: int, n_rows: int) -> np.ndarray:
        """Whether the fold holds each of consecutive rows, shape (n_rows,)."""
        return folds_of_rows(start, n_rows, self.n_folds) == self.number


class EntrySpread:
    """Variance of all entries of ``X``, from blocks of rows; for ``gamma="scale"``.

    Attributes
    ----------
    weight : float
        Sum of the row weights, the number of rows without weights.
    mean, variance : float
        Of all entries.

    Notes
    -----
    Memory is that of a block. Means and variances of blocks are merged, so that no
    digits are lost where the mean is large.

    References
    ----------
    .. [1] T. F. Chan, G. H. Golub, R. J. LeVeque, "Algorithms for Computing the Sample
       Variance: Analysis and Recommendations", The American Statistician 37(3), 1983.
    """

    def __init__(self):
        self.weight, self.mean, self.variance = 0.0, 0.0, 0.0
        self.rounding = 0.0  # what rounding alone may leave of the variance

    def update(self, X: Array, sample_weight: Any = None) -> Self:
        """Add checked rows, dense or CSR, and their weights; returns self."""
        size = block_rows_on(backend_of(X), X.shape[1], wide_dtype(X))
        for rows in row_blocks(X.shape[0], size):
            weight = None if sample_weight is None else sample_weight[rows]
            total = rows.stop - rows.start if weight is None else float(weight.sum())
            if total > 0:
                self._add(rows_of(X, rows), weight, total)
        return self

    def _add(self, X, sample_weight, total):
        xp = other_namespace(X)
        if xp is not None:
            X = xp.astype(X, wide_dtype(X))

        def mean_of(A):
            if xp is None:
                row_means = np.asarray(A.mean(axis=1, dtype=np.float64)).ravel()
            else:
                row_means = to_numpy(xp.mean(A, axis=1))
            return float(np.average(row_means, weights=sample_weight))

        with np.errstate(over="ignore", invalid="ignore"):  # `gamma` says so
            self._combine(total, *self._moments(X, xp, mean_of))

    @staticmethod
    def _moments(X, xp, mean_of):
        """Mean, variance, and what rounding may make of it."""
        eps = 8 * np.finfo(np.float64).eps
        mean = mean_of(X)
        if sparse.issparse(X):
            square = mean_of(X.multiply(X))
            variance, rounding = square - np.float64(mean) ** 2, eps * square
        elif xp is not None:
            variance = mean_of(xp.square(X - mean))
            rounding = (eps * mean) ** 2
        else:
            variance = mean_of(np.square(X - np.float64(mean), dtype=np.float64))
            rounding = (eps * mean) ** 2
        return mean, variance, rounding

    def _combine(self, weight, mean, variance, rounding):
        share = weight / (self.weight + weight)
        step = np.float64(mean - self.mean)  # overflows to infinity
        self.weight += weight
        self.mean += share * step
        self.variance += share * (variance - self.variance + (1 - share) * step**2)
        self.rounding = max(self.rounding, rounding)

    def merge(self, other: Any) -> Self:
        """Add what another one has seen; returns self."""
        if other.weight > 0:
            self._combine(other.weight, other.mean, other.variance, other.rounding)
        return self

    def gamma(self, n_features: int) -> float:
        """``1 / (n_features * variance)``, 1 for constant data, as in SVC."""
        if not np.isfinite(self.variance):
            raise ValueError(
                "gamma='scale' needs the variance of X, which overflows: scale the "
                "columns of X or give gamma as a number."
            )
        if self.variance <= self.rounding:
            return 1.0
        gamma = 1.0 / (n_features * max(self.variance, np.finfo(np.float64).tiny))
        if gamma > 1e300:
            raise ValueError(
                f"gamma='scale' needs the variance of X, which is {self.variance:.2g}: "
                "scale the columns of X or give gamma as a number."
            )
        return float(gamma)


#: Rows that features which need rows themselves are fitted to, by default.
N_SAMPLE = 10_000


def row_keys(start: float, n_rows: int, salt: int = 0) -> np.ndarray:
    """Keys of consecutive rows: mixed numbers, all different.

    Parameters
    ----------
    start : int
        Number of the first row in its source.
    n_rows : int
        Rows.
    salt : int, default=0
        Another one gives other keys.

    Returns
    -------
    keys : ndarray of uint64, shape (n_rows,)

    References
    ----------
    .. [1] G. L. Steele, D. Lea, C. H. Flood, "Fast Splittable Pseudorandom Number
       Generators", OOPSLA 2014.
    """
    z = np.arange(start + 1, start + n_rows + 1, dtype=np.uint64)
    z = z * np.uint64(0x9E3779B97F4A7C15) + np.uint64(salt)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def folds_of_rows(start: float, n_rows: int, n_folds: int) -> np.ndarray:
    """Fold of each of consecutive rows of a source, from 0 to ``n_folds - 1``.

    With `sklearn.model_selection.PredefinedSplit`, ``folds_of_rows(0, n_samples, 5)``
    gives ``fit`` the folds that ``fit_stream`` has for ``cv=5``.
    """
    keys = row_keys(start, n_rows, salt=0x5DEECE66D)
    return (keys % np.uint64(n_folds)).astype(np.intp)


class RowSample:
    """Uniform sample of the rows of a source, all of them if there are no more.

    Parameters
    ----------
    size : int
        Rows to keep.

    Attributes
    ----------
    X, y, sample_weight : arrays
        The rows kept, in their order.
    keys : ndarray of uint64, shape (n_kept,)
        Their keys.
    """

    def __init__(self, size: int):
        self.size = size
        self.keys = np.empty(0, np.uint64)
        self.X = self.y = self.sample_weight = None

    def update(self, rows: Any) -> Self:
        """Take some rows in, and others out; returns self."""
        keys = row_keys(rows.start, rows.X.shape[0])
        own = ~np.zeros(len(keys), bool)
        if len(self.keys) == self.size:
            own = keys < self.keys.max()
        if own.any():
            self._append(keys, rows, np.flatnonzero(own))
        return self

    def merge(self, other: Any) -> Self:
        """Take the rows of a sample of other rows in; returns self."""
        if len(other.keys):
            self._append(other.keys, other, np.arange(len(other.keys)))
        return self

    def _append(self, keys, rows, own):
        self.keys = np.concatenate([self.keys, keys[own]])
        for name in ("X", "y", "sample_weight"):
            old, new = getattr(self, name), getattr(rows, name)
            if new is not None:
                new = rows_of(new, own)
                setattr(self, name, new if old is None else stacked([old, new]))
        self.shrink(self.size)

    def shrink(self, size: int) -> None:
        """Leave the rows with the smallest keys."""
        if size >= len(self.keys):
            return
        kept = np.sort(np.argpartition(self.keys, size)[:size])
        self.keys = self.keys[kept]
        for name in ("X", "y", "sample_weight"):
            values = getattr(self, name)
            if values is not None:
                setattr(self, name, rows_of(values, kept))


class Labels:
    """Different labels of targets with one axis, unless they are numbers.

    Parameters
    ----------
    of_floats : bool, default=False
        Whether whole numbers of a floating-point dtype are labels, as for a
        classifier. By default integers, booleans and text are labels, and floats are
        numbers whatever their values.

    Attributes
    ----------
    values : ndarray or None
        The labels, sorted; None where there are none, since some targets are
        continuous or have several columns.
    """

    def __init__(self, of_floats: bool = False):
        self.of_floats = of_floats
        self.values, self.are_numbers = None, False

    def update(self, y: Any) -> Self:
        """Look at some targets; returns self."""
        kind = type_of_target(y, input_name="y")
        may_be_labels = self.of_floats or np.asarray(y).dtype.kind != "f"
        if may_be_labels and kind in ("binary", "multiclass"):
            found = Labels(self.of_floats)
            found.values = np.unique(y)
            return self.merge(found)
        self.values, self.are_numbers = None, True
        return self

    def merge(self, other: Any) -> Self:
        """Add the labels of other rows; returns self."""
        self.are_numbers |= other.are_numbers
        if self.are_numbers:
            self.values = None
        elif self.values is None:
            self.values = other.values
        elif other.values is not None:
            self.values = np.union1d(self.values, other.values)
        return self


class Survey(NamedTuple):
    """What the first look at a source finds."""

    sample: RowSample
    spread: EntrySpread | None = None  # of the entries of X, of all rows
    labels: Labels | None = None  # of all rows

    def update(self, rows: np.ndarray | None) -> Self:
        """Look at some rows; returns self."""
        self.sample.update(rows)
        self.spread.update(rows.X, rows.sample_weight)
        if self.labels is not None:
            self.labels.update(rows.y)
        return self

    def merge(self, other: Any) -> Self:
        """Add what a survey of other rows has found; returns self."""
        for own, others in zip(self, other, strict=True):
            if own is not None:
                own.merge(others)
        return self


def survey(passes: Passes, n_sample: int, whole: bool, labels: Any = None) -> Survey:
    """Look at a source in a pass of its own, or at its first block.

    Parameters
    ----------
    passes : Passes
    n_sample : int
        Rows to sample.
    whole : bool
        Whether all rows are looked at.
    labels : Labels, optional
        An empty one, if labels in ``y`` are to be collected.

    Returns
    -------
    Survey
    """
    if not whole:
        sample = RowSample(n_sample)
        sample.update(passes.first())
        return Survey(sample)
    empty = functools.partial(empty_survey, n_sample, labels)
    return passes.reduce(empty, Survey.update, Survey.merge)


def empty_survey(n_sample, labels):
    """`Survey` of no rows."""
    return Survey(RowSample(n_sample), EntrySpread(), copy.copy(labels))


class WorkerRows:
    """Rows on workers, as selectors and features take the ``X`` of them.

    Parameters
    ----------
    passes : Passes
        Over rows on workers.
    coded : callable
        ``coded(y)`` are targets as numbers, shape (n_rows, k); None for no targets.
    left_out : Fold, optional
        Its rows are left out.

    Attributes
    ----------
    shape : (int, int)
        Of the rows, with those left out.
    dtype : dtype
    """

    def __init__(
        self, passes: Passes, coded: Callable | None, left_out: Fold | None = None
    ):
        self.passes, self.coded, self.left_out = passes, coded, left_out
        first = passes.first().X
        self.shape, self.dtype = (passes.n_rows, first.shape[1]), first.dtype

    def summed(self, function: Callable) -> Any:
        """``function(X, Y, sample_weight)``, added up over the blocks of rows.

        Its results must be arrays, numbers, tuples of them, or have a method ``merge``.
        """
        update = functools.partial(
            add_part, function=function, coded=self.coded, left_out=self.left_out
        )
        return self.passes.reduce(NoneType, update, added)

    def spread(self) -> EntrySpread:
        """`EntrySpread` of the rows."""
        return self.summed(spread_of)


def add_part(total, rows, function, coded, left_out):
    """Total of `WorkerRows.summed` with the rows of a block."""
    X, weight = rows.X, rows.sample_weight
    Y = None if coded is None else coded(rows.y)
    if left_out is not None:
        own = np.flatnonzero(~left_out.holds(rows.start, X.shape[0]))
        X, Y = rows_of(X, own), None if Y is None else Y[own]
        weight = None if weight is None else weight[own]
    return added(total, function(X, Y, weight)) if X.shape[0] else total


def added(total: Any, other: Any) -> Any:
    """The sum of two results of blocks: numbers, arrays, sums, or some of these."""
    if total is None or other is None:
        return other if total is None else total
    if hasattr(total, "merge"):
        return total.merge(other)
    if isinstance(total, tuple | list):
        return type(total)(added(a, b) for a, b in zip(total, other, strict=True))
    return total + other


def spread_of(X, Y, sample_weight):
    """`EntrySpread` of some rows."""
    del Y  # the spread is that of X
    return EntrySpread().update(X, sample_weight)
