"""Sources of rows: data that are read block by block, once for every pass.

A source is iterated over for a pass and again for the next one, and yields a `Block` of
rows at a time. ``fit_stream``, ``predict_stream`` and ``score_stream`` of the models
take one, and read a block ahead on a thread while they compute.

- `ArrayRows`: anything with a shape and slices, such as memory-mapped arrays and the
  data sets of HDF5 and Zarr files;
- `ParquetRows`, `CsvRows`: files and directories of them;
- `ArrowRows`: tables and data sets of pyarrow, of any format;
- `BlockRows`: what a function of yours yields.

Errors name the file, the row group or line, and the column.
"""

from __future__ import annotations

import bz2
import contextlib
import csv
import gzip
import importlib
import lzma
import numbers
import zlib
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO, Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from surff.backend import row_blocks, rows_of

__all__ = [
    "ArrayRows",
    "ArrowRows",
    "Block",
    "BlockRows",
    "CsvRows",
    "ParquetRows",
    "SourceError",
    "block_length",
    "positive_int",
    "read_ahead",
]

#: Bytes of the rows of one block: enough that reading ahead costs little memory.
BLOCK_BYTES = 16 * 2**20

#: Fewest and most rows of a block: with fewer the sums of a block would cost as much as
#: its products, with more a block of narrow rows would take long.
BLOCK_ROWS = (1024, 65_536)

#: One path or several.
Paths: TypeAlias = str | Path | Sequence[str | Path]

#: Function that opens a file, by the end of its name; others are read as they are.
OPENERS = {".gz": gzip.open, ".xz": lzma.open, ".lzma": lzma.open, ".bz2": bz2.open}


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

    def locate(self, i: int) -> str:
        """Describe where row ``i`` of the block is, in words."""
        return f"{self.where}, {self.unit} {self.first + i}"


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


class _Columns:
    """Base of sources of named columns: the role of each column, and its values."""

    def _set_columns(self, names, where, target, features, sample_weight, dtype):
        self.dtype = float_dtype(dtype)
        self.target = None if target is None else as_list(target)
        self._one_target = target is None or isinstance(target, str)
        self.sample_weight = sample_weight
        if features is None:
            others = {*(self.target or ()), sample_weight}
            features = [name for name in names if name not in others]
        #: Names of the columns of ``X``, in order.
        self.feature_names = as_list(features)
        if not self.feature_names:
            raise SourceError(f"{where}: no column is left for X.")
        self._check_columns(names, where)
        twice = {name for name in self._wanted if self._wanted.count(name) > 1}
        if twice:
            raise ValueError(
                "features, target and sample_weight must name different columns, got "
                f"{listed(sorted(twice))} twice."
            )

    def _set_block_rows(self, block_rows):
        if block_rows is None:
            block_rows = block_length(len(self.feature_names), self.dtype)
        self.block_rows = positive_int("block_rows", block_rows)

    @property
    def _wanted(self):
        weight = [] if self.sample_weight is None else [self.sample_weight]
        return [*self.feature_names, *(self.target or ()), *weight]

    def _check_columns(self, names, where):
        missing = [name for name in dict.fromkeys(self._wanted) if name not in names]
        if missing:
            raise SourceError(
                f"{where}: there is no column {listed(missing)}; there are "
                f"{listed(names)}."
            )
        twice = [name for name in self._wanted if list(names).count(name) > 1]
        if twice:
            raise SourceError(f"{where}: there are two columns {listed(twice)}.")

    def _block(self, batch, where, first, unit="row"):
        """`Block` of a record batch or table of pyarrow."""
        block = Block(None, None, None, where, first, unit)
        X = np.empty((batch.num_rows, len(self.feature_names)), self.dtype)
        for j, name in enumerate(self.feature_names):
            X[:, j] = self._numbers(batch, name, block)
        y = weight = None
        if self.target is not None:
            columns = [self._labels(batch, name, block) for name in self.target]
            y = columns[0] if self._one_target else np.column_stack(columns)
        if self.sample_weight is not None:
            weight = self._numbers(batch, self.sample_weight, block)
        return block._replace(X=X, y=y, sample_weight=weight)

    def _column(self, batch, name):
        column = batch.column(batch.schema.get_field_index(name))
        types = pyarrow("types")
        return column, types, column.type

    def _numbers(self, batch, name, block):
        """A column as numbers, nan for missing ones."""
        column, types, kind = self._column(batch, name)
        if types.is_boolean(kind) or types.is_decimal(kind):
            column = column.cast(pyarrow().float64())
        elif not (types.is_integer(kind) or types.is_floating(kind)):
            raise SourceError(
                f"{block.where}: column {name!r} must hold numbers, got {kind}."
            )
        return column.to_numpy(zero_copy_only=False)

    def _labels(self, batch, name, block):
        """A column as numbers or as text, none of them missing."""
        column, types, kind = self._column(batch, name)
        if column.null_count:
            missing = column.is_null().to_numpy(zero_copy_only=False)
            raise SourceError(
                f"{block.locate(int(np.argmax(missing)))}: the target {name!r} is "
                "missing."
            )
        if types.is_dictionary(kind):
            column = column.cast(kind.value_type)
        values = column.to_numpy(zero_copy_only=False)
        return values.astype(str) if values.dtype == object else values


class ParquetRows(_Columns):
    """Rows of Parquet files; with pyarrow, which the extra ``surff[files]`` brings.

    Parameters
    ----------
    path : path or list of paths
        Files, or directories whose files are read in the order of their names.
    target : str or list of str, optional
        Column with the targets or labels; several for several targets.
    features : list of str, optional
        Columns of ``X``, all numbers; by default all that are not used otherwise.
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
    groups. A missing value becomes NaN, which the models refuse.
    """

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
        self.paths = files_of(path, "*.parquet")
        with self._open(self.paths[0]) as file:
            names = file.schema_arrow.names
        self._set_columns(names, self.paths[0], target, features, sample_weight, dtype)
        self._set_block_rows(block_rows)

    @contextlib.contextmanager
    def _open(self, path):
        with reading(path):
            # Otherwise the reader takes whole columns of a row group.
            file = pyarrow("parquet").ParquetFile(
                path, buffer_size=2**16, pre_buffer=False
            )
        with file:
            yield file

    def __iter__(self) -> Iterator[Block]:
        for path in self.paths:
            with self._open(path) as file:
                self._check_columns(file.schema_arrow.names, path)
                for group in range(file.num_row_groups):
                    first, where = 0, f"{path}, row group {group}"
                    batches = file.iter_batches(
                        self.block_rows, [group], self._wanted, use_threads=False
                    )
                    while (batch := next_of(batches, where, first)) is not None:
                        yield self._block(batch, where, first)
                        first += batch.num_rows


class ArrowRows(_Columns):
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
        self._set_columns(
            data.schema.names, "the data set", target, features, sample_weight, dtype
        )
        self._set_block_rows(block_rows)

    def __iter__(self) -> Iterator[Block]:
        for i, fragment in enumerate(self.data.get_fragments()):
            first, where = 0, getattr(fragment, "path", None) or f"fragment {i}"
            with reading(where):
                batches = fragment.to_batches(
                    schema=self.data.schema,
                    columns=self._wanted,
                    batch_size=self.block_rows,
                    batch_readahead=1,
                    fragment_readahead=1,
                    use_threads=False,
                )
            while (batch := next_of(batches, where, first)) is not None:
                yield self._block(batch, where, first)
                first += batch.num_rows


class CsvRows(_Columns):
    r"""Rows of CSV files; with pyarrow, which the extra ``surff[files]`` brings.

    Files whose names end in ``.gz``, ``.xz``, ``.lzma`` or ``.bz2`` are decompressed as
    they are read.

    Parameters
    ----------
    path : path or list of paths
        Files, or directories whose files are read in the order of their names.
    target, features, sample_weight, dtype
        See `ParquetRows`.
    target_dtype : {float, int, str}, optional
        Type of the targets; inferred from the first block of each file by default.
    column_names : list of str, optional
        Names of the columns, if the files have no header line.
    delimiter : str, default=","
        Separator of values.
    text_bytes : int, default=1048576
        Bytes of text of a block; no line may be longer. pyarrow reads up to 32 times as
        many ahead.

    Attributes
    ----------
    feature_names : list of str
        Columns of ``X``.

    Notes
    -----
    Errors count lines from 1, the header included, and do not count empty lines.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from surff.streaming import CsvRows
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "rows.csv"
    ...     _ = path.write_text("age,size,kind\n1,2.5,a\n3,4.5,b\n")
    ...     source = CsvRows(path, target="kind")
    ...     [(block.X.tolist(), block.y.tolist()) for block in source]
    [([[1.0, 2.5], [3.0, 4.5]], ['a', 'b'])]
    """

    def __init__(
        self,
        path: Paths,
        target: str | Sequence[str] | None = None,
        *,
        features: Sequence[str] | None = None,
        sample_weight: str | None = None,
        dtype: npt.DTypeLike = np.float64,
        target_dtype: type | None = None,
        column_names: Sequence[str] | None = None,
        delimiter: str = ",",
        text_bytes: int = 2**20,
    ) -> None:
        self.paths = files_of(path, "*.csv*")
        if target_dtype not in (None, float, int, str):
            raise ValueError(
                f"target_dtype must be None, float, int or str, got {target_dtype!r}."
            )
        self.target_dtype, self.delimiter = target_dtype, delimiter
        self.column_names = None if column_names is None else as_list(column_names)
        self.text_bytes = positive_int("text_bytes", text_bytes)
        names = self._names(self.paths[0])
        self._set_columns(names, self.paths[0], target, features, sample_weight, dtype)

    def _names(self, path):
        """Names of the columns of a file."""
        if self.column_names is not None:
            return self.column_names
        with reading(path), opened(path, "rt") as file:
            names = next(csv.reader(file, delimiter=self.delimiter), None)
        if names is None:
            raise SourceError(f"{path}: the file is empty.")
        return names

    def _types(self):
        """Types given to pyarrow, which infers the others."""
        arrow = pyarrow()
        types = dict.fromkeys(self._wanted, arrow.float64())
        kinds = {float: arrow.float64(), int: arrow.int64(), str: arrow.string()}
        for name in self.target or ():
            if self.target_dtype is None:
                del types[name]
            else:
                types[name] = kinds[self.target_dtype]
        return types

    def __iter__(self) -> Iterator[Block]:
        arrow = pyarrow("csv")
        options = (
            arrow.ReadOptions(
                use_threads=False,
                block_size=self.text_bytes,
                column_names=self.column_names,
            ),
            arrow.ParseOptions(delimiter=self.delimiter),
            arrow.ConvertOptions(
                column_types=self._types(),
                include_columns=self._wanted,
                strings_can_be_null=True,
            ),
        )
        for path in self.paths:
            self._check_columns(self._names(path), path)
            with contextlib.ExitStack() as stack:
                with reading(path):
                    file = stack.enter_context(opened(path, "rb"))
                    reader = stack.enter_context(arrow.open_csv(file, *options))
                line = 1 if self.column_names is not None else 2
                while (batch := next_of(reader, path, line, "line")) is not None:
                    yield self._block(batch, path, line, "line")
                    line += batch.num_rows


def pyarrow(module: str | None = None) -> Any:
    """Import a module of pyarrow, or pyarrow itself."""
    try:
        return importlib.import_module(f"pyarrow.{module}" if module else "pyarrow")
    except ImportError as error:
        raise ImportError(
            "Parquet, Arrow and CSV sources need pyarrow, which comes with the extra "
            "surff[files]: pip install 'surff[files]'."
        ) from error


@contextlib.contextmanager
def reading(where: str | Path) -> Iterator[None]:
    """Add the location to read errors."""
    try:
        yield
    except SourceError:
        raise
    # pyarrow's errors are ValueError or OSError, too.
    except (ValueError, OSError, EOFError, lzma.LZMAError, zlib.error) as error:
        raise SourceError(f"{where}: cannot be read: {error}") from error


def next_of(batches: Iterable[Any], where: str, first: int, unit: str = "row") -> Any:
    """Next batch, or None; an error names the row after which it occurred."""
    with reading(f"{where}, from {unit} {first} on"):
        return next(iter(batches), None)


def opened(path: str | Path, mode: str) -> IO[Any]:
    """Open a file, decompressed if it is compressed."""
    encoding = {"encoding": "utf-8-sig", "newline": ""} if "t" in mode else {}
    return OPENERS.get(Path(path).suffix.lower(), open)(path, mode, **encoding)


def files_of(path: Paths, pattern: str) -> list[str]:
    """Names of the files of one or several paths; directories are searched."""
    files = []
    for one in path if isinstance(path, (list, tuple)) else [path]:
        one = Path(one)
        found = sorted(one.rglob(pattern)) if one.is_dir() else [one]
        if not found:
            raise SourceError(f"{one}: there is no file {pattern} in the directory.")
        for file in found:
            if not file.is_file():
                raise SourceError(f"{file}: there is no such file.")
            files.append(str(file))
    if not files:
        raise ValueError("path must name at least one file, got none.")
    return files


def as_list(names: str | Iterable[str]) -> list[str]:
    """One or several names as a list."""
    return [names] if isinstance(names, str) else [str(name) for name in names]


def listed(names: Iterable[str]) -> str:
    """At most ten names, for a message."""
    texts = [repr(name) for name in names]
    return ", ".join(texts[:10] + ["..."] * (len(texts) > 10))


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
