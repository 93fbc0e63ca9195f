"""Row blocks: how a pass over the data is cut.

A pass never holds a matrix of all rows by all features; it holds one block. Blocks are
sized so that a block of features fits in the processor's cache, between the map that
writes it and the product that reads it.
"""

import numpy as np

__all__ = ["block_rows", "row_blocks"]

#: Bytes of one block of features. Measured: 2 to 16 MiB are equally fast on a processor
#: with 2 MiB of second-level cache a core, less pays for the calls, more for memory.
BLOCK_BYTES = 4 * 2**20


def block_rows(n_columns, dtype):
    """Rows of a block of ``n_columns`` values: a multiple of 64, 128 to 8192."""
    rows = BLOCK_BYTES // (max(1, n_columns) * np.dtype(dtype).itemsize)
    return int(min(max(rows // 64 * 64, 128), 8192))


def row_blocks(n_rows, size):
    """Yield the slices ``[0, size), [size, 2 size), ...`` that cover the rows."""
    for start in range(0, n_rows, size):
        yield slice(start, min(start + size, n_rows))
