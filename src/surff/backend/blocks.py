"""Row blocks: how a pass over the data is cut.

A pass never holds a matrix of all rows by all features; it holds one block. Blocks are
sized so that a block of features is still in the processor's caches when the product
reads what the map wrote, and no smaller: every block packs the frequencies anew. On an
accelerator blocks are large instead, so that starting a computation costs little beside
it. For another library's arrays the calling thread alone asks, and the library shares
the work out.
"""

import numpy as np
from array_api_compat import device
from scipy import sparse

from surff.backend.arrays import (
    asarray_like,
    itemsize,
    namespace_of,
    on_accelerator,
    other_namespace,
)
from surff.backend.threads import map_slices

__all__ = [
    "block_rows",
    "block_rows_like",
    "each_block",
    "feature_blocks",
    "map_rows",
    "row_blocks",
    "rows_of",
    "summed",
]

#: Bytes of one block of features, one a thread: about twice the second-level cache of a
#: core. Half of it costs 6 % of a pass in float64, twice as much gains nothing.
BLOCK_BYTES = 4 * 2**20

#: The same beside an accelerator.
DEVICE_BLOCK_BYTES = 256 * 2**20


def block_rows(n_columns, dtype):
    """Rows of a block of ``n_columns`` values: a multiple of 64, 128 to 8192."""
    return _rows_of_bytes(n_columns, np.dtype(dtype).itemsize, BLOCK_BYTES)


def block_rows_like(X, n_columns, dtype):
    """The same for values in the namespace and on the device of ``X``."""
    block_bytes = DEVICE_BLOCK_BYTES if on_accelerator(X) else BLOCK_BYTES
    return _rows_of_bytes(n_columns, itemsize(dtype, X), block_bytes)


def _rows_of_bytes(n_columns, value_bytes, block_bytes):
    rows = block_bytes // (max(1, n_columns) * value_bytes)
    return int(min(max(rows // 64 * 64, 128), 8192))


def row_blocks(n_rows, size):
    """Yield the slices ``[0, size), [size, 2 size), ...`` that cover the rows."""
    for start in range(0, n_rows, size):
        yield slice(start, min(start + size, n_rows))


def rows_of(X, index):
    """Rows of an array or sparse matrix; a slice of an array or of CSR is a view.

    Parameters
    ----------
    X : array or sparse matrix of shape (n_samples, n_features)
        Data.
    index : slice of step 1, or ndarray of int
        Rows to take.
    """
    xp = other_namespace(X)
    if xp is not None:
        if isinstance(index, slice):
            return X[index, ...]
        return xp.take(X, asarray_like(index, X, xp.int64), axis=0)
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


def summed(function, X, Y=None, sample_weight=None):
    """``function(X, Y, sample_weight)``, a sum over rows, of rows here or on workers.

    Parameters
    ----------
    function : callable
        Its results must be arrays, numbers, tuples of them, or have a method ``merge``;
        those of parts of the rows add up to that of all.
    X : ndarray, CSR matrix or surff.streaming.WorkerRows
        Data; `WorkerRows` bring their own targets and weights.
    Y, sample_weight : ndarray, optional
        Targets and row weights.
    """
    if hasattr(X, "summed"):
        return X.summed(function)
    return function(X, Y, sample_weight)


def feature_blocks(feature_map, X, rows=None, part=None):
    """Yield the row index and the features of one block after the other.

    Parameters
    ----------
    feature_map : object with ``n_components``, ``dtype`` and ``(X, out=None) -> Z``
        Maps a block of rows.
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
    n_rows = part.stop - part.start
    m, elsewhere = feature_map.n_components, other_namespace(X) is not None
    size = block_rows_like(X, m, feature_map.dtype)
    if not elsewhere:
        buffer = np.empty((min(size, n_rows), m), feature_map.dtype)
    for block in row_blocks(n_rows, size):
        index = slice(part.start + block.start, part.start + block.stop)
        if rows is not None:
            index = rows[index]
        out = None if elsewhere else buffer[: block.stop - block.start]
        yield index, feature_map(rows_of(X, index), out=out)


def each_block(function, feature_map, X, rows=None):
    """Call ``function(position, Z)`` for every block of features, on all threads.

    Parameters
    ----------
    function : callable
        Takes the positions of a block within ``rows`` (within all rows by default), a
        slice, and its features; several threads call it, each for blocks of its own.
    feature_map, X, rows
        See `feature_blocks`.
    """

    def pass_over(part):
        start = part.start
        for _, Z in feature_blocks(feature_map, X, rows, part):
            function(slice(start, start + Z.shape[0]), Z)
            start += Z.shape[0]

    n_rows = X.shape[0] if rows is None else len(rows)
    if other_namespace(X) is not None:
        pass_over(slice(0, n_rows))
    else:
        map_slices(pass_over, n_rows)


def map_rows(feature_map, X, out=None):
    """Features of all rows, shape (n_samples, n_components), on all threads.

    For another library's array they are its, and ``out`` is not taken.
    """
    if other_namespace(X) is not None:
        xp, shape = namespace_of(X), (X.shape[0], feature_map.n_components)
        out = xp.empty(shape, dtype=feature_map.dtype, device=device(X))

        def keep(block, Z):
            out[block, ...] = Z

        each_block(keep, feature_map, X)
        return out
    if out is None:
        out = np.empty((X.shape[0], feature_map.n_components), feature_map.dtype)
    if sparse.issparse(X):
        X = X.tocsr()
    map_slices(lambda rows: feature_map(rows_of(X, rows), out=out[rows]), X.shape[0])
    return out
