"""Rows of files that know the types of their columns, and of tables of pyarrow."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from surff.streaming.columns import (
    NamedColumns,
    Paths,
    Stamp,
    files_of,
    index_columns,
    next_of,
    pyarrow,
    reading,
    stamps_of,
)
from surff.streaming.sources import Block, SourceError

__all__ = ["ArrowRows", "ParquetRows"]

#: Ends of the names of Parquet files.
SUFFIXES = (".parquet", ".parq", ".pq")


class ParquetRows(NamedColumns):
    """Rows of Parquet files; with pyarrow, which the extra ``surff[files]`` brings.

    Parameters
    ----------
    path : path or list of paths
        Files, or directories whose files are read in the order of their names.
    target : str or list of str, optional
        Column with the targets or labels; several for several targets.
    features : list of str, optional
        Columns of ``X``, all numbers; by default all that are not used otherwise,
        without the index of a data frame, which pandas and Dask write to the file.
    sample_weight : str, optional
        Column with the row weights.
    dtype : {float64, float32}, default=float64
        dtype of the blocks of ``X``.
    block_rows : int, optional
        Rows of a block; by default as many as take 16 MB, from 1,024 to 65,536. A block
        ends with its row group.

    Attributes
    ----------
    feature_names : list of str
        Columns of ``X``.

    Notes
    -----
    Pages are decoded as blocks are asked for: memory does not depend on the size of row
    groups. A missing value becomes NaN, which the models refuse. True and False are 1
    and 0, decimals become floats, and categories what they stand for; dates and times
    are refused by name.

    In a directory, names that start with ``.`` or ``_`` are skipped, and files that end
    otherwise than in ``.parquet``, ``.parq`` or ``.pq`` are refused.
    """

    #: Share of the rows, each file counted alike, that the last pass has read.
    share_read = 0.0

    def __init__(
        self,
        path: Paths,
        target: str | Sequence[str] | None = None,
        *,
        features: Sequence[str] | None = None,
        sample_weight: str | None = None,
        dtype: npt.DTypeLike = np.float64,
        block_rows: int | None = None,
    ) -> None:
        self.paths = files_of(path, SUFFIXES)
        first = self.paths[0]
        with self._open(first) as file, reading(first):
            names = file.schema_arrow.names
            index = index_columns(file.schema_arrow, first)
        self._set_columns(names, first, target, features, sample_weight, dtype, index)
        self._set_block_rows(block_rows)

    @contextlib.contextmanager
    def _open(self, path):
        with reading(path):
            # Otherwise the reader takes whole columns of a row group.
            file = pyarrow("parquet").ParquetFile(
                path,
                buffer_size=2**16,
                pre_buffer=False,
                page_checksum_verification=True,
            )
        with file:
            yield file

    def __iter__(self) -> Iterator[Block]:
        for i, path in enumerate(self.paths):
            before = 0
            with self._open(path) as file:
                with reading(path):
                    names = file.schema_arrow.names
                self._check_columns(names, path)
                for group in range(file.num_row_groups):
                    first, where = 0, f"{path}, row group {group}"
                    batches = file.iter_batches(
                        self.block_rows, [group], self.wanted, use_threads=False
                    )
                    while (batch := next_of(batches, where, first)) is not None:
                        yield self._block(batch, Block(None, where=where, first=first))
                        first += batch.num_rows
                        within = (before + first) / max(1, file.metadata.num_rows)
                        self.share_read = (i + within) / len(self.paths)
                    before += first
                    n_rows = file.metadata.row_group(group).num_rows
                    if first != n_rows:
                        raise SourceError(
                            f"{where}: the columns have {first} rows, but the file "
                            f"says {n_rows}; it is damaged."
                        )


class ArrowRows(NamedColumns):
    """Rows of a table or data set of pyarrow: Feather, ORC, partitions, filters.

    Parameters
    ----------
    data : pyarrow.dataset.Dataset or pyarrow.Table
        ``pyarrow.dataset.dataset(path, format=..., partitioning=...)`` opens files of
        any format. Read Parquet files by `ParquetRows` instead: this class holds whole
        row groups.
    target, features, sample_weight, dtype, block_rows
        See `ParquetRows`.

    Attributes
    ----------
    feature_names : list of str
        Columns of ``X``.
    """

    def __init__(
        self,
        data: Any,
        target: str | Sequence[str] | None = None,
        *,
        features: Sequence[str] | None = None,
        sample_weight: str | None = None,
        dtype: npt.DTypeLike = np.float64,
        block_rows: int | None = None,
    ) -> None:
        dataset = pyarrow("dataset")
        if isinstance(data, pyarrow().Table):
            data = dataset.dataset(data)
        if not isinstance(data, dataset.Dataset):
            raise TypeError(
                "data must be a Dataset or Table of pyarrow, got an object of type "
                f"{type(data).__name__}."
            )
        self.data = data
        where = "the data set"
        with reading(where):
            names, index = data.schema.names, index_columns(data.schema, where)
        self._set_columns(names, where, target, features, sample_weight, dtype, index)
        self._set_block_rows(block_rows)

    def stamps(self) -> dict[str, Stamp]:
        """Size and modification time of the files, if they are on this machine."""
        files = getattr(self.data, "files", ())
        return stamps_of(path for path in files if os.path.exists(path))

    def __iter__(self) -> Iterator[Block]:
        for i, fragment in enumerate(self.data.get_fragments()):
            first, where = 0, getattr(fragment, "path", None) or f"fragment {i}"
            with reading(where):
                check_feather(fragment)
                batches = fragment.to_batches(
                    schema=self.data.schema,
                    columns=self.wanted,
                    batch_size=self.block_rows,
                    batch_readahead=1,
                    fragment_readahead=1,
                    use_threads=False,
                )
            while (batch := next_of(batches, where, first)) is not None:
                yield self._block(batch, Block(None, where=where, first=first))
                first += batch.num_rows


def check_feather(fragment: Any) -> None:
    """Refuse a damaged Feather file, since scanning one may crash the process.

    pyarrow's scanner joins and cuts batches before anybody can look at their offsets.
    The file is therefore read twice.
    """
    kind = getattr(fragment, "format", None)
    if not isinstance(kind, pyarrow("dataset").IpcFileFormat):
        return
    with fragment.open() as file, pyarrow("ipc").open_file(file) as batches:
        for i in range(batches.num_record_batches):
            batches.get_batch(i).validate(full=True)
