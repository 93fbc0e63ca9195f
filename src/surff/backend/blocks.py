"""Row blocks: how a pass over the data is cut.

A pass never holds a matrix of all rows by all features; it holds one block. Blocks are
sized so that a block of features is still in the processor's caches when the product
reads what the map wrote, and no smaller: every block packs the frequencies again. On an
accelerator blocks are large instead, so that starting a computation costs little next
to it. For another library's arrays the calling thread alone asks, and the library
shares the work out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from surff.backend.arrays import NUMPY, Array, Backend, backend_of, backend_of_map
from surff.backend.threads import map_slices

__all__ = [
    "block_rows",
    "block_rows_on",
    "each_block",
    "feature_blocks",
    "folded",
    "map_rows",
    "row_blocks",
    "rows_of",
    "summed",
]

#: Bytes of one block of features, one per thread: about twice the second-level cache of
#: a core. Half of it costs 6 % of a pass in float64, twice as much gains nothing.
BLOCK_BYTES = 4 * 2**20

#: Bytes of a block on an accelerator: enough that starting its products costs nothing.
DEVICE_BLOCK_BYTES = 256 * 2**20

#: Rows of a block are a multiple of this: whole vectors and tiles of BLAS.
ROW_MULTIPLE = 64

#: Fewest rows of a block; with fewer the products of BLAS lose speed.
LEAST_ROWS = 128

#: Most rows of a block; of few columns it would never end.
MOST_ROWS = 8192


def block_rows(n_columns: int, dtype: npt.DTypeLike) -> int:
    """Rows of a block of ``n_columns`` values: a multiple of 64, 128 to 8192."""
    return block_rows_on(NUMPY, n_columns, np.dtype(dtype))


def block_rows_on(backend: Backend, n_columns: int, dtype: Any) -> int:
    """Rows of a block of values of a backend."""
    itemsize = np.dtype(dtype).itemsize if backend.is_numpy else backend.itemsize(dtype)
    block_bytes = DEVICE_BLOCK_BYTES if backend.on_accelerator else BLOCK_BYTES
    rows = block_bytes // (max(1, n_columns) * itemsize)
    return int(min(max(rows // ROW_MULTIPLE * ROW_MULTIPLE, LEAST_ROWS), MOST_ROWS))


def row_blocks(stop: int, size: int, start: int = 0) -> Iterator[slice]:
    """Yield slices of ``size`` rows that cover those from ``start`` to ``stop``."""
    for first in range(start, stop, size):
        yield slice(first, min(first + size, stop))


def rows_of(X: Any, index: slice | np.ndarray, backend: Backend | None = None) -> Any:
    """Rows of an array or sparse matrix; a slice of an array or of CSR is a view.

    Parameters
    ----------
    X : array or sparse matrix of shape (n_samples, n_features)
        Data.
    index : slice of step 1, or ndarray of int
        Rows to take.
    backend : Backend, optional
        That of ``X``, if it is known.
    """
    backend = backend_of(X) if backend is None else backend
    if not backend.is_numpy:
        if isinstance(index, slice):
            return X[index, ...]
        xp = backend.xp
        return xp.take(X, backend.asarray(index, xp.int64), axis=0)
    is_csr = sparse.issparse(X) and X.format == "csr"
    if not (is_csr and isinstance(index, slice)):
        return X[index]
    start, stop, _ = index.indices(X.shape[0])
    pointers = X.indptr[start : stop + 1]
    values = slice(pointers[0], pointers[-1])
    # Given to the constructor, short slices would be copied.
    rows = type(X)((stop - start, X.shape[1]), dtype=X.dtype)
    rows.data, rows.indices = X.data[values], X.indices[values]
    rows.indptr = pointers - pointers[0]
    return rows


def summed(
    function: Callable[..., Any],
    X: Any,
    Y: np.ndarray | None = None,
    sample_weight: np.ndarray | None = None,
) -> Any:
    """Return ``function(X, Y, sample_weight)``, a sum over rows here or on workers.

    Parameters
    ----------
    function : callable
        Its results must be arrays, numbers, tuples of them, or have a method ``merge``;
        the results for parts of the rows add up to the result for all.
    X : ndarray, CSR matrix or surff.streaming.WorkerRows
        Data; `WorkerRows` bring their own targets and weights.
    Y, sample_weight : ndarray, optional
        Targets and row weights.
    """
    if hasattr(X, "summed"):
        return X.summed(function)
    return function(X, Y, sample_weight)


def feature_blocks(
    feature_map: Any,
    X: Any,
    rows: np.ndarray | None = None,
    part: slice | None = None,
) -> Iterator[tuple[slice | np.ndarray, Array]]:
    """Yield the row index and the features of one block after the other.

    Parameters
    ----------
    feature_map : object with ``n_components``, ``dtype`` and ``(X, out=None) -> Z``
        Maps a block of rows. Its attribute ``backend`` says where; without one the rows
        are asked.
    X : array or CSR matrix of shape (n_samples, n_features)
        Data.
    rows : ndarray of int, optional
        Rows to use, in this order; all by default.
    part : slice, optional
        Positions within ``rows`` to use, for one thread's share; all by default.

    Yields
    ------
    index : slice or ndarray of int
        Rows of the block.
    Z : array of shape (n_rows, n_components)
        Their features, which the caller may overwrite; for NumPy in a buffer that the
        next block overwrites.
    """
    part = slice(0, X.shape[0] if rows is None else len(rows)) if part is None else part
    m, backend = feature_map.n_components, backend_of_map(feature_map, X)
    size = block_rows_on(backend, m, feature_map.dtype)
    buffer = None
    if backend.is_numpy:
        buffer = np.empty((min(size, part.stop - part.start), m), feature_map.dtype)
    for block in row_blocks(part.stop, size, part.start):
        index = block if rows is None else rows[block]
        out = None if buffer is None else buffer[: block.stop - block.start]
        yield index, feature_map(rows_of(X, index, backend), out=out)


def folded(feature_map: Any, coef: Array) -> tuple[Any, Array]:
    """Map and coefficients that predict the same in the cheapest way.

    Parameters
    ----------
    feature_map : object
        A map that is a cheaper one times a matrix has a method ``folded(coef)``, see
        `surff.kernels.NystroemMap`.
    coef : array of shape (n_components, k)
        Coefficients of the features.

    Returns
    -------
    feature_map, coef
        Those that were given where there is no such method. Predictions are the first
        k columns of the product; there may be more.
    """
    fold = getattr(feature_map, "folded", None)
    return (feature_map, coef) if fold is None else fold(coef)


def each_block(
    function: Callable[[slice, Array], Any],
    feature_map: Any,
    X: Any,
    rows: np.ndarray | None = None,
) -> None:
    """Call ``function(position, Z)`` for every block of features, on all threads.

    Parameters
    ----------
    function : callable
        Takes the positions of a block within ``rows`` (within all rows by default), a
        slice, and its features; several threads call it, each for its own blocks.
    feature_map, X, rows
        See `feature_blocks`.
    """

    def pass_over(part):
        start = part.start
        for _, Z in feature_blocks(feature_map, X, rows, part):
            function(slice(start, start + Z.shape[0]), Z)
            start += Z.shape[0]

    n_rows = X.shape[0] if rows is None else len(rows)
    if backend_of_map(feature_map, X).is_numpy:
        map_slices(pass_over, n_rows)
    else:
        pass_over(slice(0, n_rows))


def map_rows(feature_map: Any, X: Any, out: np.ndarray | None = None) -> Array:
    """Features of all rows, shape (n_samples, n_components), on all threads.

    For another library's array they are arrays of that library, and ``out`` is not
    used.
    """
    backend = backend_of_map(feature_map, X)
    shape = (X.shape[0], feature_map.n_components)
    if not backend.is_numpy:
        out = backend.empty(shape, feature_map.dtype)

        def keep(block, Z):
            out[block, ...] = Z

        each_block(keep, feature_map, X)
        return out
    if out is None:
        out = np.empty(shape, feature_map.dtype)
    if sparse.issparse(X):
        X = X.tocsr()

    def write(rows):
        feature_map(rows_of(X, rows, backend), out=out[rows])

    map_slices(write, X.shape[0])
    return out
