"""Named columns of files: which of them is what, and their values as arrays.

What the sources of files share. By default every column is a feature, except the index
that pandas, Dask or R has written with the rows. Types that are no numbers are refused
by the name of the column.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import lzma
import os
import re
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn, TypeAlias

import numpy as np

from surff.streaming.sources import (
    SourceError,
    block_length,
    float_dtype,
    positive_int,
)

__all__ = [
    "NamedColumns",
    "Paths",
    "Stamp",
    "as_list",
    "column_of",
    "files_of",
    "index_columns",
    "is_index",
    "is_text",
    "listed",
    "next_of",
    "pyarrow",
    "reading",
    "stamps_of",
]

#: One path or several.
Paths: TypeAlias = str | Path | Sequence[str | Path]

#: Size in bytes and modification time in nanoseconds of a file.
Stamp: TypeAlias = tuple[int, int]

#: Names that pandas and Dask give to an index without a name, and the name that pandas
#: reads for the nameless first column that it and R write to CSV files.
INDEX_NAME = re.compile(r"|__index_level_\d+__|__null_dask_index__|Unnamed: \d+")


class NamedColumns:
    """Base of sources of named columns: the role of each column, and its values."""

    def _set_columns(
        self, names, where, target, features, sample_weight, dtype, index=()
    ):
        self.dtype = float_dtype(dtype)
        self.target = None if target is None else as_list(target)
        self._one_target = target is None or isinstance(target, str)
        self.sample_weight = sample_weight
        if features is None:
            others = {*(self.target or ()), sample_weight, *index}
            features = [n for n in names if not (n in others or is_index(n))]
        #: Names of the columns of ``X``, in order.
        self.feature_names = as_list(features)
        self._check_columns(names, where)
        if not self.feature_names:
            raise SourceError(
                f"{where}: no column is left for X; there are {listed(names)}."
                f"{self._hint_for(names)}"
            )
        twice = {name for name in self.wanted if self.wanted.count(name) > 1}
        if twice:
            raise ValueError(
                "features, target and sample_weight must name different columns, got "
                f"{listed(sorted(twice))} twice."
            )

    def stamps(self) -> dict[str, Stamp]:
        """Size and modification time of the files."""
        return stamps_of(self.paths)

    def _set_block_rows(self, block_rows):
        if block_rows is None:
            block_rows = block_length(len(self.feature_names), self.dtype)
        self.block_rows = positive_int("block_rows", block_rows)

    @property
    def wanted(self) -> list[str]:
        """Names of the columns that are read."""
        weight = [] if self.sample_weight is None else [self.sample_weight]
        return [*self.feature_names, *(self.target or ()), *weight]

    def _hint_for(self, names):
        """Guess of a cure for columns that are not as expected, or nothing."""
        del names  # sources of text guess from them
        return ""

    def _check_columns(self, names, where):
        missing = [name for name in dict.fromkeys(self.wanted) if name not in names]
        if missing:
            raise SourceError(
                f"{where}: there is no column {listed(missing)}; there are "
                f"{listed(names)}.{self._hint_for(names)}"
            )
        twice = [n for n in dict.fromkeys(self.wanted) if list(names).count(n) > 1]
        if twice:
            raise SourceError(
                f"{where}: there are two columns {listed(twice)}; rename one, or name "
                "the other columns by features=."
            )

    def _block(self, batch, block):
        """`Block` with the values of a record batch or table of pyarrow."""
        # Its allocator keeps the memory of blocks that are gone, tens of megabytes.
        pyarrow().default_memory_pool().release_unused()
        with reading(block.where):
            # Offsets and text of a damaged file may lead out of its buffers.
            batch.validate(full=True)
            X = self._features(batch, block)
            y = weight = None
            if self.target is not None:
                columns = [self._labels(batch, name, block) for name in self.target]
                y = columns[0] if self._one_target else np.column_stack(columns)
            if self.sample_weight is not None:
                weight = self._numbers(batch, self.sample_weight, block)
        return block._replace(X=X, y=y, sample_weight=weight)

    def _features(self, batch, block):
        """Columns of ``X`` as an array."""
        X = np.empty((batch.num_rows, len(self.feature_names)), self.dtype)
        for j, name in enumerate(self.feature_names):
            X[:, j] = self._numbers(batch, name, block)
        return X

    def _numbers(self, batch, name, block):
        """Return a column as numbers, nan for missing ones."""
        column = column_of(batch, name)
        types, kind = pyarrow("types"), column.type
        if types.is_decimal(kind):
            column = floats_of(column)
        elif types.is_boolean(kind) or types.is_null(kind):
            column = column.cast(pyarrow().float64())
        elif not (types.is_integer(kind) or types.is_floating(kind)):
            role = "weights" if name == self.sample_weight else "features"
            refuse(block.where, name, kind, role)
        return column.to_numpy(zero_copy_only=False)

    def _labels(self, batch, name, block):
        """Return a column as numbers or as text, none of them missing."""
        column = column_of(batch, name)
        types, kind = pyarrow("types"), column.type
        if column.null_count:
            missing = column.is_null().to_numpy(zero_copy_only=False)
            raise SourceError(
                f"{block.locate(int(np.argmax(missing)))}: the target {name!r} is "
                "missing; drop such rows, or fill them."
            )
        if types.is_decimal(kind):
            column = floats_of(column)
        elif is_text(kind):
            # NumPy's text loses zeros at its end, and labels would become one.
            zeros = pyarrow("compute").match_substring(column, "\0")
            zeros = zeros.to_numpy(zero_copy_only=False)
            if zeros.any():
                raise SourceError(
                    f"{block.locate(int(np.argmax(zeros)))}: the target {name!r} holds "
                    "a character of code zero; write it as other text."
                )
            return column.to_numpy(zero_copy_only=False).astype(str)
        elif not (
            types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)
        ):
            refuse(block.where, name, kind, "target")
        return column.to_numpy(zero_copy_only=False)


def column_of(batch: Any, name: str) -> Any:
    """Column of a record batch or table, categories as what they stand for."""
    column = batch.column(batch.schema.get_field_index(name))
    if pyarrow("types").is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    return column


def floats_of(decimals: Any) -> Any:
    """Decimals as the nearest float64; pyarrow's own cast rounds twice."""
    return decimals.cast(pyarrow().string()).cast(pyarrow().float64())


def is_text(kind: Any) -> bool:
    """Whether a type of pyarrow is text, of any layout."""
    return str(kind) in ("string", "large_string", "string_view")


def refuse(where: str, name: str, kind: Any, role: str) -> NoReturn:
    """Raise the error of a column whose type cannot be used."""
    if pyarrow("types").is_temporal(kind):
        cure = "turn dates and times into numbers of your choice, such as years"
    elif role == "target":
        cure = "write them as numbers or text"
    else:
        cure = "write them as numbers"
    if role == "features":
        cure += ", or leave the column out by features="
    must = "numbers or text" if role == "target" else "numbers"
    raise SourceError(f"{where}: column {name!r} must hold {must}, got {kind}; {cure}.")


def is_index(name: str) -> bool:
    """Whether a column has the name of an index that a writer has added."""
    return INDEX_NAME.fullmatch(name) is not None


def index_columns(schema: Any, where: str) -> list[str]:
    """Columns that hold the index of a data frame, as the metadata of pandas say."""
    text = (schema.metadata or {}).get(b"pandas")
    if text is None:
        return []
    try:
        index = json.loads(text)["index_columns"]
        # A RangeIndex is described and has no column.
        return [name for name in index if isinstance(name, str)]
    except (ValueError, KeyError, TypeError) as error:
        raise SourceError(
            f"{where}: the metadata of pandas, which name the index, are damaged: "
            f"{error}."
        ) from error


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
    # pyarrow's errors are of many kinds, ValueError, KeyError and MemoryError among
    # them: a damaged length asks for memory that nobody has.
    except (
        ValueError,
        OSError,
        EOFError,
        MemoryError,
        OverflowError,
        lzma.LZMAError,
        zlib.error,
        zipfile.BadZipFile,
        pyarrow().ArrowException,
    ) as error:
        raise SourceError(f"{where}: cannot be read: {error}") from error


def next_of(batches: Iterable[Any], where: str, first: int, unit: str = "row") -> Any:
    """Next batch, or None; an error names the row after which it occurred."""
    with reading(f"{where}, from {unit} {first} on"):
        return next(iter(batches), None)


def files_of(path: Paths, suffixes: Sequence[str]) -> list[str]:
    """Names of the files of one or several paths; directories are searched.

    In a directory, names that start with ``.`` or ``_`` are skipped, as Spark, Dask and
    pyarrow do, and files with other suffixes than these are refused.
    """
    files = []
    for one in path if isinstance(path, (list, tuple)) else [path]:
        one = Path(one)
        found = in_folder(one, suffixes) if one.is_dir() else [one]
        for file in found:
            if not file.is_file():
                raise SourceError(f"{file}: there is no such file.")
            files.append(str(file))
    if not files:
        raise ValueError("path must name at least one file, got none.")
    return files


def in_folder(folder: Path, suffixes: Sequence[str]) -> list[Path]:
    """Files of a directory and those in it, in the order of their names."""

    def fail(error):
        raise SourceError(f"{error.filename}: cannot be read: {error}") from error

    files = []
    for parent, folders, names in os.walk(folder, onerror=fail, followlinks=True):
        folders[:] = [name for name in folders if not name.startswith((".", "_"))]
        for name in names:
            if name.startswith((".", "_")):
                continue
            file = Path(parent, name)
            if not name.lower().endswith(tuple(suffixes)):
                raise SourceError(
                    f"{file}: the directory holds a file that ends in none of "
                    f"{', '.join(suffixes)}; move it away, or list the files to read "
                    "as path=[...]."
                )
            files.append(file)
    if not files:
        raise SourceError(
            f"{folder}: there is no file {' or '.join(suffixes)} in the directory."
        )
    return sorted(files)


def stamps_of(paths: Iterable[str]) -> dict[str, Stamp]:
    """Size and modification time of files, by which a change is seen."""
    stamps = {}
    for path in paths:
        with reading(path):
            found = os.stat(path)
        stamps[path] = found.st_size, found.st_mtime_ns
    return stamps


def as_list(names: str | Iterable[str]) -> list[str]:
    """One or several names as a list."""
    return [names] if isinstance(names, str) else [str(name) for name in names]


def listed(names: Iterable[str]) -> str:
    """At most ten names, for a message."""
    texts = [repr(name) for name in names]
    return ", ".join(texts[:10] + ["..."] * (len(texts) > 10))
