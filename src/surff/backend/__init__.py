"""How numbers are made: arrays, threads, BLAS, trigonometry, blocks of rows.

Everything here knows nothing of kernels or models: which library an array belongs to,
how a pass over rows is cut into blocks and shared out among threads, the compiled
loops, BLAS without the interpreter's lock, and checks of arguments. It imports no other
room; every other room may import it.
"""

from surff.backend.arrays import (
    array_api_support,
    asarray_like,
    check_same_place,
    check_supported,
    dispatched,
    itemsize,
    labels_like,
    namespace_of,
    numpy_dtype,
    on_accelerator,
    on_host,
    other_namespace,
    supports_float64,
    to_numpy,
    to_numpy_if_dispatched,
    wide_dtype,
)
from surff.backend.blas import divide_by_upper, potrf, syrk
from surff.backend.blocks import (
    block_rows,
    block_rows_like,
    each_block,
    feature_blocks,
    map_rows,
    row_blocks,
    rows_of,
    summed,
)
from surff.backend.hadamard import hadamard_projections
from surff.backend.threads import (
    map_slices,
    n_threads,
    one_thread,
    single_threaded_blas,
)
from surff.backend.trig import (
    REDUCTION_LIMIT,
    add_features_moments,
    cos_sin_float32,
    cos_sin_float64,
    dense_features,
    dense_moments,
)
from surff.backend.validation import (
    FLOAT_DTYPES,
    as_generator,
    checked_weight,
    one_of,
    positive,
    validated,
)

__all__ = [
    "FLOAT_DTYPES",
    "REDUCTION_LIMIT",
    "add_features_moments",
    "array_api_support",
    "as_generator",
    "asarray_like",
    "block_rows",
    "block_rows_like",
    "check_same_place",
    "check_supported",
    "checked_weight",
    "cos_sin_float32",
    "cos_sin_float64",
    "dense_features",
    "dense_moments",
    "dispatched",
    "divide_by_upper",
    "each_block",
    "feature_blocks",
    "hadamard_projections",
    "itemsize",
    "labels_like",
    "map_rows",
    "map_slices",
    "n_threads",
    "namespace_of",
    "numpy_dtype",
    "on_accelerator",
    "on_host",
    "one_of",
    "one_thread",
    "other_namespace",
    "positive",
    "potrf",
    "row_blocks",
    "rows_of",
    "single_threaded_blas",
    "summed",
    "supports_float64",
    "syrk",
    "to_numpy",
    "to_numpy_if_dispatched",
    "validated",
    "wide_dtype",
]
