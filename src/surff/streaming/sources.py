"""Sources of rows: data that are read block by block, once for every pass.

A source is iterated over for a pass and again for the next one, and yields a `Block` of
rows at a time. ``fit_stream``, ``predict_stream`` and ``score_stream`` of the models
take one, and read a block ahead on a thread while they compute.

- `ArrayRows`: anything with a shape and slices, such as memory-mapped arrays and the
  data sets of HDF5 and Zarr files;
- `BlockRows`: what a function of yours yields;
- `ParquetRows` and `ArrowRows` (`surff.streaming.files`), `CsvRows`
  (`surff.streaming.csv_rows`): files, directories of them, tables of pyarrow.
"""

from __future__ import annotations

import numbers
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from surff.backend import check_sparse, row_blocks, rows_of

__all__ = [
    "ArrayRows",
    "Block",
    "BlockRows",
    "SourceError",
    "block_length",
    "float_dtype",
    "positive_int",
    "read_ahead",
]

#: Bytes of the rows of one block: enough that reading ahead costs little memory.
BLOCK_BYTES = 16 * 2**20

#: Fewest and most rows of a block: with fewer the sums of a block would cost as much as
#: its products, with more a block of narrow rows would take long.
BLOCK_ROWS = (1024, 65_536)


class SourceError(ValueError):
    """Rows that cannot be read or used; the message says where they are."""


class Block(NamedTuple):
    """Consecutive rows of a source, and where they come from."""

    X: Any  # (n_rows, n_features), array, CSR matrix or data frame
    y: Any = None  # (n_rows,) or (n_rows, n_targets)
    sample_weight: Any = None  # (n_rows,)
    where: str = "the source"  # a file, or a part of one
    first: int = 0  # number of the first row there
    unit: str = "row"
    numbered: Callable[[int], int] | None = None  # of a row, if not first + row

    def locate(self, i: int) -> str:
        """Describe where row ``i`` of the block is, in words."""
        return f"{self.where}, {self.unit} {self.number(i)}"

    def number(self, i: int) -> int:
        """Number of row ``i`` of the block in its file."""
        return self.first + i if self.numbered is None else self.numbered(i)


def block_length(n_columns: int, dtype: npt.DTypeLike) -> int:
    """Rows of a block of ``n_columns`` values."""
    rows = BLOCK_BYTES // (max(1, n_columns) * np.dtype(dtype).itemsize)
    return int(min(max(rows, BLOCK_ROWS[0]), BLOCK_ROWS[1]))


def read_ahead(blocks: Iterable[Any]) -> Generator[Any, None, None]:
    """Yield the items of an iterable, while a thread makes the next one.

    Parameters
    ----------
    blocks : iterable
        Asked for one item at a time, always by the same thread.

    Yields
    ------
    block : object
        At most this one and the next are held.

    Notes
    -----
    The thread ends after the last item, at an error, and when the generator is closed,
    which waits for it. If a loop may end early, close it by `contextlib.closing`.
    """
    end, iterator = object(), iter(blocks)
    reader = ThreadPoolExecutor(1, thread_name_prefix="surff-read")
    try:
        block = reader.submit(next, iterator, end).result()
        while block is not end:
            following = reader.submit(next, iterator, end)
            yield block
            del block
            block = following.result()
    finally:
        reader.shutdown()
        if hasattr(iterator, "close"):
            iterator.close()


class ArrayRows:
    """Rows of arrays that need not be in memory.

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
        Anything with ``shape`` and slices ``X[start:stop]`` that `numpy.asarray`
        takes: memory-mapped arrays, data sets of h5py and Zarr; and CSR matrices.
    y : array of shape (n_samples,) or (n_samples, n_targets), optional
        Targets or labels.
    sample_weight : array of shape (n_samples,), optional
        Row weights, >= 0.
    dtype : {float64, float32}, optional
        dtype of the blocks of ``X``; kept by default.
    block_rows : int, optional
        Rows of a block; by default as many as take 16 MB, from 1,024 to 65,536.

    Examples
    --------
    >>> import numpy as np
    >>> from surff.streaming import ArrayRows
    >>> source = ArrayRows(np.ones((10, 3)), np.arange(10), block_rows=4)
    >>> [block.X.shape for block in source]
    [(4, 3), (4, 3), (2, 3)]
    """

    feature_names = None

    def __init__(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        dtype: npt.DTypeLike | None = None,
        block_rows: int | None = None,
    ) -> None:
        if len(getattr(X, "shape", ())) != 2:
            raise ValueError(
                "X must have a shape of two axes, rows and columns, got "
                f"{getattr(X, 'shape', type(X).__name__)}."
            )
        for name, values in (("y", y), ("sample_weight", sample_weight)):
            if values is not None and values.shape[0] != X.shape[0]:
                raise ValueError(
                    f"{name} must have {X.shape[0]} rows, as X has, got shape "
                    f"{tuple(values.shape)}."
                )
        check_sparse("X", X)  # slices of a broken matrix read what is not its own
        self.X, self.y, self.sample_weight = X, y, sample_weight
        self.dtype = None if dtype is None else float_dtype(dtype)
        if block_rows is None:
            itemsize = X.dtype if self.dtype is None else self.dtype
            block_rows = block_length(X.shape[1], itemsize)
        self.block_rows = positive_int("block_rows", block_rows)

    def __iter__(self) -> Iterator[Block]:
        where = str(getattr(self.X, "filename", None) or "the arrays")
        for rows in row_blocks(self.X.shape[0], self.block_rows):
            X = rows_of(self.X, rows)
            if not hasattr(X, "tocsr"):
                X = np.asarray(X)
            if self.dtype is not None:
                X = X.astype(self.dtype, copy=False)
            y, weight = (
                None if values is None else np.asarray(values[rows])
                for values in (self.y, self.sample_weight)
            )
            yield Block(X, y, weight, where, rows.start)


class BlockRows:
    """Rows that a function of yours yields, from the start at each call.

    Parameters
    ----------
    blocks : callable
        Called without arguments for each pass; returns an iterable of ``(X, y)`` or
        ``(X, y, sample_weight)``, or of ``X`` alone to predict from. Arrays, CSR
        matrices and data frames are taken, of any number of rows each, 0 included. It
        must give the same rows at every call; a thread other than the caller's may
        iterate.

    Examples
    --------
    >>> import numpy as np
    >>> from surff import FourierFeatures, KernelRidgeRegressor
    >>> from surff.streaming import BlockRows
    >>> def blocks():
    ...     rng = np.random.default_rng(0)
    ...     for _ in range(20):
    ...         X = rng.normal(size=(500, 2))
    ...         yield X, np.sin(X[:, 0])
    >>> features = FourierFeatures(100, gamma=0.3, random_state=0)
    >>> model = KernelRidgeRegressor(features).fit_stream(BlockRows(blocks))
    >>> model.best_score_ > 0.99
    True
    """

    feature_names = None

    def __init__(self, blocks: Callable[[], Iterable[Any]]) -> None:
        if not callable(blocks):
            raise TypeError(
                "blocks must be a function that returns an iterable of blocks each "
                f"time it is called, got {blocks!r}."
            )
        self.blocks = blocks

    def __iter__(self) -> Iterator[Block]:
        for i, block in enumerate(self.blocks()):
            parts = block if isinstance(block, tuple) else (block,)
            if not 1 <= len(parts) <= 3:
                raise SourceError(
                    f"block {i}: blocks must be (X, y) or (X, y, sample_weight), got "
                    f"a tuple of {len(parts)}."
                )
            yield Block(*parts, *(None,) * (3 - len(parts)), f"block {i}")


def positive_int(argument: str, value: Any) -> int:
    """Return ``value`` as an int if it is a positive one."""
    if isinstance(value, numbers.Integral) and value > 0:
        return int(value)
    raise ValueError(f"{argument} must be a positive int, got {value!r}.")


def float_dtype(dtype: npt.DTypeLike) -> np.dtype:
    """Return the dtype if it is float64 or float32."""
    if np.dtype(dtype) in (np.float64, np.float32):
        return np.dtype(dtype)
    raise ValueError(f"dtype must be float64 or float32, got {dtype!r}.")
