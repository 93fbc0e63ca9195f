"""Checked passes over a source of rows.

Whatever a fit needs of the rows is summed by `Passes.reduce`: block after block here,
or in a tree on the workers that hold the blocks.
"""

from __future__ import annotations

import contextlib
import copy
import functools
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.utils.validation import check_array

from surff.backend import check_sparse, refuse_large_weight, stage, watched
from surff.streaming.columns import Stamp
from surff.streaming.dask_rows import DaskRows
from surff.streaming.sources import Block, SourceError, block_length, read_ahead

__all__ = [
    "Passes",
    "look_through",
    "stacked",
]

#: Smallest number of rows worth an update: sums of few rows cost as much as of many.
#: Smaller blocks are concatenated.
LEAST_ROWS = 1024

#: The same as a share of a usual block, which few columns make longer.
LEAST_SHARE = 0.25


def look_through(
    source: Any, of_block: Callable[[Block], Any], verbose: Any = 0
) -> None:
    """Call a function with each block of a source, and show how far the pass is.

    Parameters
    ----------
    source : iterable of Block
        Its ``share_read``, if it has one, is the share of the pass that is done.
    of_block : callable
        Ends the pass if it returns True.
    verbose : int, bool or callable, default=0
        See `surff.backend.watched`.
    """

    def look():
        share = 0.0
        known = 1.0 if hasattr(source, "share_read") else None
        with stage("first look", known) as progress:
            for block in source:
                if of_block(block):
                    break
                if known:
                    now = source.share_read
                    progress.advance(now - share)
                    share = now

    watched(verbose, None, look)


class Rows(NamedTuple):
    """Checked rows of a block."""

    start: int  # number of the first one in the source
    X: Any  # (n_rows, n_features), array or CSR matrix of float32 or float64
    y: np.ndarray | None
    sample_weight: np.ndarray | None


class Passes:
    """Passes over a source, whose blocks come checked and are read ahead.

    Parameters
    ----------
    source : iterable of Block
        See `surff.streaming`.
    check : callable
        ``check(X, y, first) -> X, y`` of a model; it returns None for y when targets
        are not used.
    labels : array-like, optional
        All labels that ``y`` may hold, if it has one axis.

    Attributes
    ----------
    n_rows : int or None
        Rows of a whole pass, known after the first; other passes must have as many.
    """

    def __init__(
        self,
        source: Any,
        check: Callable[[Any, Any, bool], tuple[Any, Any]],
        labels: npt.ArrayLike | None = None,
    ) -> None:
        if not hasattr(source, "__iter__") or isinstance(source, (str, tuple)):
            raise TypeError(
                "source must be one of surff.streaming, such as ArrayRows(X, y), got "
                f"{source!r}."
            )
        if iter(source) is source:
            raise TypeError(
                "source can be iterated over only once, and every pass iterates over "
                "it: give BlockRows a function that makes it again."
            )
        self.source, self.check = source, check
        self.labels = None if labels is None else np.unique(labels)
        self.n_rows: int | None = None
        #: ``weigh(y, sample_weight) -> sample_weight`` of every block, if any.
        self.weigh: Callable[[Any, Any], Any] | None = None
        self._first: Any = None  # kind and dtype of the first block
        self._stamps: dict[str, Stamp] = {}

    def __call__(self, gather: bool = True) -> AbstractContextManager[Iterator[Rows]]:
        """Start a pass: a context manager of an iterator of `Rows`.

        With ``gather``, small blocks are concatenated.
        """
        rows = self._checked()
        return contextlib.closing(read_ahead(gathered(rows) if gather else rows))

    @property
    def on_workers(self) -> bool:
        """Whether the rows are on workers, where `reduce` sends its functions."""
        return isinstance(self.source, DaskRows)

    def reduce(
        self,
        empty: Callable[[], Any],
        update: Callable[[Any, Rows], Any],
        merge: Callable[[Any, Any], Any],
        n_bytes: int = 0,
    ) -> Any:
        """Reduce all rows to one total, in one pass.

        Parameters
        ----------
        empty : callable
            ``empty()`` is the total of no rows.
        update : callable
            ``update(total, rows)`` returns the total with some `Rows` added; it may
            write into the total. It is sent to the workers if they hold the rows.
        merge : callable
            ``merge(total, other)`` returns the sum of two totals, for workers.
        n_bytes : int, default=0
            Bytes of a total, if it is large.

        Returns
        -------
        total : object
        """
        if self.on_workers:
            self._look_first()
            of_block = functools.partial(total_of_block, self._light(), empty, update)
            return self.source.reduce(of_block, merge, n_bytes)
        total = empty()
        n_rows = self.n_rows or getattr(self.source, "n_rows", None)
        with stage("pass", n_rows, "rows") as progress, self() as blocks:
            for rows in blocks:
                total = update(total, rows)
                progress.advance(rows.X.shape[0])
        return total

    def first(self) -> Rows:
        """First `Rows` of the source; a single row if they are on workers."""
        if self.on_workers:
            return self._look_first()
        with self() as blocks:
            return next(blocks)

    def _look_first(self):
        """Check a block of the first row, which sets what all others must be like."""
        if self.n_rows is None:
            self._head = self.checked_block(0, self.source.head())
            self.n_rows = int(self.source.lengths.sum())
        return self._head

    def _light(self):
        """Copy without the rows, to check blocks on a worker."""
        light = copy.copy(self)
        light.source = Columns(self.source.feature_names)
        return light

    def _checked(self):
        start = 0
        self._look_at_files()
        for block in self.source:
            rows = self.checked_block(start, block)
            if rows is not None:
                yield rows
                start += rows.X.shape[0]
        self._look_at_files()
        if start == 0:
            raise SourceError("the source has no rows.")
        if self.n_rows not in (None, start):
            raise SourceError(
                f"the source gave {self.n_rows} rows in one pass and {start} in "
                "another; it must give the same ones."
            )
        self.n_rows = start

    def _look_at_files(self):
        """Refuse files that are not as they were when the first pass began."""
        if not hasattr(self.source, "stamps"):
            return
        stamps = self.source.stamps()
        for path, before in self._stamps.items():
            if stamps.get(path) != before:
                raise SourceError(
                    f"{path}: the file has changed while it was read (bytes and time "
                    f"{before}, now {stamps.get(path)}); every pass must give the same "
                    "rows. Try again when nothing writes to it."
                )
        self._stamps = stamps

    def checked_block(self, start: int, block: Block) -> Rows | None:
        """Check a block; None if it has no rows."""
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
        if self.weigh is not None:
            weight = self.weigh(y, weight)
        weight = None if weight is None else weight.astype(dtype, copy=False)
        return Rows(start, X.astype(dtype, copy=False), y, weight)


class Columns(NamedTuple):
    """Stands for a source on a worker: what errors need to know of it."""

    feature_names: list[str] | None


def total_of_block(
    passes: Passes, empty: Callable, update: Callable, start: int, block: Block
) -> Any:
    """Total of one block on a worker; see `Passes.reduce`."""
    rows = passes.checked_block(start, block)
    return empty() if rows is None else update(empty(), rows)


def gathered(blocks: Iterable[Rows]) -> Generator[Rows, None, None]:
    """Yield `Rows` that are not too few, except the last ones."""
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


def together(blocks: list[Rows]) -> Rows:
    """Concatenate consecutive `Rows`."""
    if len(blocks) == 1:
        return blocks[0]
    columns = list(zip(*blocks, strict=True))[1:]
    parts = [None if part[0] is None else stacked(part) for part in columns]
    return Rows(blocks[0].start, *parts)


def stacked(parts: Any) -> Any:
    """Stack arrays or CSR matrices, one below the other."""
    if sparse.issparse(parts[0]):
        return sparse.vstack(parts, format="csr")
    return np.concatenate(parts)


def described(kind: tuple) -> str:
    """Describe what a block holds besides ``X``."""
    shape, text, unweighted = kind
    targets = f"{'text' if text else 'numbers'} in rows of shape {shape}"
    return f"{targets} {'without' if unweighted else 'with'} weights"


def checked_weight(sample_weight: Any, X: Any) -> np.ndarray | None:
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
    refuse_large_weight(weight)
    return weight


def explained(error: ValueError, block: Block, names: list[str] | None) -> SourceError:
    """`SourceError` that locates the first NaN or infinity of a block, if any."""
    names = getattr(block.X, "columns", None) if names is None else names
    for part in ("X", "y", "sample_weight"):
        values = getattr(block, part)
        try:
            check_sparse(part, values)
        except ValueError:
            continue  # nothing can be looked up in a broken matrix
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
        return SourceError(
            f"{place}: {part} is NaN or infinity; fill such values or drop such rows."
        )
    return SourceError(f"{block.where}: {error}")
