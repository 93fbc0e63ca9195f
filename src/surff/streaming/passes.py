"""Checked passes over a source of rows.

All that a fit needs of the rows is summed by `Passes.reduce`: block after block here,
or in a tree on the workers that hold the blocks.
"""

import contextlib
import copy
import functools
from typing import NamedTuple

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_array

from surff.streaming.dask_rows import DaskRows
from surff.streaming.sources import Block, SourceError, block_length, read_ahead

__all__ = [
    "Passes",
    "stacked",
]

#: Rows that are summed at once at least, and the share of a block of usual length:
#: smaller ones are put together, since sums of few rows cost as much as those of many.
LEAST_ROWS, LEAST_SHARE = 1024, 0.25


class Rows(NamedTuple):
    """Checked rows of a block."""

    start: int  # number of the first one in the source
    X: object  # (n_rows, n_features), array or CSR matrix of float32 or float64
    y: np.ndarray
    sample_weight: np.ndarray | None


class Passes:
    """Passes over a source, whose blocks come checked and are read ahead.

    Parameters
    ----------
    source : iterable of Block
        See `surff.streaming`.
    check : callable
        ``check(X, y, first) -> X, y`` of a model; the y of None is one that is not
        looked at.
    labels : array-like, optional
        All that ``y`` may hold, where it has one axis.

    Attributes
    ----------
    n_rows : int or None
        Rows of a whole pass, once there was one; another pass must have as many.
    """

    def __init__(self, source, check, labels=None):
        if not hasattr(source, "__iter__") or isinstance(source, (str, tuple)):
            raise TypeError(
                "source must be one of surff.streaming, such as ArrayRows(X, y), got "
                f"{source!r}."
            )
        if iter(source) is source:
            raise TypeError(
                "source can be iterated over once only, and every pass needs to: give "
                "BlockRows a function that makes it anew."
            )
        self.source, self.check = source, check
        self.labels = None if labels is None else np.unique(labels)
        self.n_rows, self._first = None, None

    def __call__(self, gather=True):
        """A pass: context manager of an iterator of `Rows`.

        With ``gather``, small blocks are put together.
        """
        rows = self._checked()
        return contextlib.closing(read_ahead(gathered(rows) if gather else rows))

    @property
    def on_workers(self):
        """Whether the rows are on workers, where `reduce` sends its functions."""
        return isinstance(self.source, DaskRows)

    def reduce(self, empty, update, merge, n_bytes=0):
        """Add up something over all rows, in one pass.

        Parameters
        ----------
        empty : callable
            ``empty()`` is what no rows add up to.
        update : callable
            ``update(total, rows)`` returns the total with some `Rows`; it may write
            into the total. It goes to the workers where the rows are there.
        merge : callable
            ``merge(total, other)`` returns both together, for workers.
        n_bytes : int, default=0
            Bytes of a total, if they are many.

        Returns
        -------
        total : object
        """
        if self.on_workers:
            self._look_first()
            of_block = functools.partial(total_of_block, self._light(), empty, update)
            return self.source.reduce(of_block, merge, n_bytes)
        total = empty()
        with self() as blocks:
            for rows in blocks:
                total = update(total, rows)
        return total

    def first(self):
        """First `Rows` of the source; one row where they are on workers."""
        if self.on_workers:
            return self._look_first()
        with self() as blocks:
            return next(blocks)

    def _look_first(self):
        """Let a block with the first row say what all must be like."""
        if self.n_rows is None:
            self._head = self._checked_block(0, self.source.head())
            self.n_rows = int(self.source.lengths.sum())
        return self._head

    def _light(self):
        """What checks blocks on a worker: the passes without their rows."""
        light = copy.copy(self)
        light.source = Columns(self.source.feature_names)
        return light

    def _checked(self):
        start = 0
        for block in self.source:
            rows = self._checked_block(start, block)
            if rows is not None:
                yield rows
                start += rows.X.shape[0]
        if start == 0:
            raise SourceError("the source has no rows.")
        if self.n_rows not in (None, start):
            raise SourceError(
                f"the source gave {self.n_rows} rows in one pass and {start} in "
                "another; it must give the same ones."
            )
        self.n_rows = start

    def _checked_block(self, start, block):
        if not isinstance(block, Block):
            raise TypeError(
                "source must be one of surff.streaming and yield blocks, got an object "
                f"of type {type(block).__name__}."
            )
        if np.shape(block.X)[:1] == (0,):
            return None
        first = self._first is None
        try:
            X, y = self.check(block.X, block.y, first)
            weight = checked_weight(block.sample_weight, X)
        except ValueError as error:
            raise explained(error, block, self.source.feature_names) from error
        shape, text = (None, None) if y is None else (y.shape[1:], y.dtype.kind in "UO")
        own = (shape, text, weight is None)
        if first:
            self._first = own, X.dtype
        expected, dtype = self._first
        if own != expected:
            raise SourceError(
                f"{block.where}: all blocks must have targets of one kind and shape, "
                f"and weights or not; got {described(own)} after {described(expected)}."
            )
        if self.labels is not None and y.ndim == 1:
            unknown = ~np.isin(y, self.labels)
            if unknown.any():
                i = int(np.argmax(unknown))
                raise SourceError(
                    f"{block.locate(i)}: y must hold labels out of classes="
                    f"{self.labels.tolist()}, got {y[i].item()!r}."
                )
        weight = None if weight is None else weight.astype(dtype, copy=False)
        return Rows(start, X.astype(dtype, copy=False), y, weight)


class Columns(NamedTuple):
    """What errors want to know of a source."""

    feature_names: list | None


def total_of_block(passes, empty, update, start, block):
    """What one block on a worker adds up to; see `Passes.reduce`."""
    rows = passes._checked_block(start, block)
    return empty() if rows is None else update(empty(), rows)


def gathered(blocks):
    """`Rows` that are not too few, but for the last ones."""
    held, size = [], 0
    for rows in blocks:
        held.append(rows)
        n_rows, n_columns = rows.X.shape
        size += n_rows
        usual = block_length(n_columns, rows.X.dtype)
        if size >= max(LEAST_ROWS, LEAST_SHARE * usual):
            yield together(held)
            held, size = [], 0
    if held:
        yield together(held)


def together(blocks):
    """Consecutive `Rows` as one."""
    if len(blocks) == 1:
        return blocks[0]
    columns = list(zip(*blocks, strict=True))[1:]
    parts = [None if part[0] is None else stacked(part) for part in columns]
    return Rows(blocks[0].start, *parts)


def stacked(parts):
    """Rows of arrays or CSR matrices, one below the other."""
    if sparse.issparse(parts[0]):
        return sparse.vstack(parts, format="csr")
    return np.concatenate(parts)


def described(kind):
    """Words for what a block brings beside ``X``."""
    shape, text, unweighted = kind
    targets = f"{'text' if text else 'numbers'} in rows of shape {shape}"
    return f"{targets} {'without' if unweighted else 'with'} weights"


def checked_weight(sample_weight, X):
    """Row weights of a block, >= 0 and finite; all may be 0."""
    if sample_weight is None:
        return None
    weight = check_array(
        sample_weight, ensure_2d=False, dtype=np.float64, input_name="sample_weight"
    )
    if weight.shape != (X.shape[0],) or weight.min() < 0:
        raise ValueError(
            f"sample_weight must be {X.shape[0]} numbers >= 0, got shape "
            f"{weight.shape} and minimum {weight.min():.3g}."
        )
    return weight


def explained(error, block, names):
    """`SourceError` that says where in a block the first bad value is, if one is."""
    names = getattr(block.X, "columns", None) if names is None else names
    for part in ("X", "y", "sample_weight"):
        values = getattr(block, part)
        values = values.tocoo() if sparse.issparse(values) else np.asarray(values)
        numbers = values.data if sparse.issparse(values) else values
        if numbers.dtype.kind != "f" or np.isfinite(numbers).all():
            continue
        bad = ~np.isfinite(numbers)
        if sparse.issparse(values):
            rows = values.row[bad]
            columns = values.col[bad][rows == rows.min()]
        else:
            rows = np.flatnonzero(bad.reshape(len(bad), -1).any(axis=1))
            columns = np.flatnonzero(bad[rows[0]])
        place = block.locate(int(rows.min()))
        if part == "X":
            named = [str(j) if names is None else repr(names[j]) for j in columns[:10]]
            part = f"column {', '.join(named)} of X"
        return SourceError(f"{place}: {part} is NaN or infinity.")
    return SourceError(f"{block.where}: {error}")
