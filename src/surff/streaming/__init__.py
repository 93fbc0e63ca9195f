"""Rows, wherever they are: in arrays, files, generators or on a Dask cluster.

Sources of rows block by block, checked passes over them, reductions that run here or on
the workers that hold the rows, and uniform samples of rows. It may import `backend`.
"""

from surff.streaming.dask_rows import DaskRows, is_dask, over_blocks, without_sums
from surff.streaming.passes import Passes
from surff.streaming.sample import (
    N_SAMPLE,
    EntrySpread,
    Labels,
    RowSample,
    Survey,
    WorkerRows,
    added,
    folds_of_rows,
    row_keys,
    survey,
)
from surff.streaming.sources import (
    ArrayRows,
    ArrowRows,
    Block,
    BlockRows,
    CsvRows,
    ParquetRows,
    SourceError,
    block_length,
    positive_int,
    read_ahead,
)

__all__ = [
    "N_SAMPLE",
    "ArrayRows",
    "ArrowRows",
    "Block",
    "BlockRows",
    "CsvRows",
    "DaskRows",
    "EntrySpread",
    "Labels",
    "ParquetRows",
    "Passes",
    "RowSample",
    "SourceError",
    "Survey",
    "WorkerRows",
    "added",
    "block_length",
    "folds_of_rows",
    "is_dask",
    "over_blocks",
    "positive_int",
    "read_ahead",
    "row_keys",
    "survey",
    "without_sums",
]
