"""Files of tables: what kind a file is, and its rows."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from surff.streaming import (
    ArrowTable,
    Block,
    ColumnWidened,
    CsvTable,
    ParquetTable,
    SourceError,
)
from surff.tables.columns import ColumnsError

__all__ = ["LibsvmTable", "first_pass", "kind_of_file", "open_table"]

#: First bytes of files by kind.
MAGIC = {b"PAR1": "parquet", b"ARROW1": "arrow", b"\xff\xff\xff\xff": "arrow"}

#: Ends of names by kind; compressed files may be longer by the compression's.
SUFFIXES = {
    "parquet": (".parquet", ".parq", ".pq"),
    "arrow": (".arrow", ".feather", ".ipc"),
    "libsvm": (".libsvm", ".svm", ".svmlight"),
}

#: Ends of names of compressed files.
COMPRESSED = (".gz", ".xz", ".lzma", ".bz2", ".zip")

#: First bytes of files that are no tables, and what they are.
FOREIGN = {
    b"PK\x03\x04": "a zip archive or an Excel workbook",
    b"\xd0\xcf\x11\xe0": "an old Excel workbook",
    b"%PDF": "a PDF document",
    b"\x89HDF": "an HDF5 file",
    b"SQLite format 3": "an SQLite database",
    b"\x93NUMPY": "a NumPy array",
    b"\x89PNG": "a picture",
    b"\x1f\x8b": "gzip-compressed",
    b"\xfd7zXZ": "xz-compressed",
    b"BZh": "bzip2-compressed",
}

#: Columns of a LIBSVM file that are made dense.
MOST_COLUMNS = 2000


def kind_of_file(path: str | Path) -> str:
    """What a file of a table is: "csv", "parquet", "arrow" or "libsvm".

    By its first bytes, then by the end of its name.

    Raises
    ------
    SourceError
        If there is no such file, or it is something else; the message says what helps.
    """
    path = Path(path)
    if path.is_dir():
        names = [file.suffix.lower() for file in sorted(path.iterdir())]
        found = [k for k, ends in SUFFIXES.items() if any(n in ends for n in names)]
        return found[0] if found else "csv"
    if not path.is_file():
        raise SourceError(f"{path}: there is no such file; check its name and folder.")
    try:
        with path.open("rb") as file:
            start = file.read(16)
    except OSError as error:
        raise SourceError(
            f"{path}: cannot be read ({error.strerror}); check its permissions."
        ) from error
    for magic, kind in MAGIC.items():
        if start.startswith(magic):
            return kind
    compressed = path.suffix.lower() in COMPRESSED
    for magic, what in FOREIGN.items():
        if start.startswith(magic) and not compressed:
            raise SourceError(
                f"{path}: this is {what}, not a table that surff reads; "
                + ("let its name end in that" if "compressed" in what else "save it as")
                + (", such as .csv.gz." if "compressed" in what else " CSV or Parquet.")
            )
    return kind_by_name(path)


def kind_by_name(path: Path) -> str:
    """What a file is by the end of its name, where its first bytes do not tell."""
    compressed = path.suffix.lower() in COMPRESSED
    for kind, ends in SUFFIXES.items():
        if path.name.lower().endswith(ends):
            if kind in ("parquet", "arrow"):
                raise SourceError(
                    f"{path}: the file does not begin as {kind} files do; it is "
                    "damaged or of another kind. Write it again, or rename it."
                )
            return kind
        if compressed and path.stem.lower().endswith(ends):
            if kind == "libsvm" and path.suffix.lower() in (".gz", ".bz2"):
                return kind
            raise SourceError(
                f"{path}: {kind} files are not read from {path.suffix.lower()}; unpack "
                "this one first."
            )
    return "csv"


def open_table(
    path: str | Path,
    target: str | None = None,
    *,
    kinds: Mapping[str, str] | None = None,
    features: Sequence[str] | None = None,
    missing: Sequence[str] = (),
    **dialect: Any,
) -> Any:
    """Source of the rows of a file of any kind, as tables.

    Parameters
    ----------
    path : path
        CSV (also compressed), Parquet, Arrow or LIBSVM file, or a folder of CSV or
        Parquet files.
    target : str, optional
        Column with the targets.
    kinds : mapping of str to str, optional
        What columns of text files hold, where it is known; see `CsvTable`.
    features : sequence of str, optional
        Columns of the table; all others by default.
    missing : sequence of str, optional
        Further words of missing cells of text files.
    **dialect
        ``delimiter``, ``decimal``, ``encoding`` and ``header`` of text files, where
        they are known.

    Returns
    -------
    source : source of rows
        Its blocks hold tables of pyarrow.
    """
    kind = kind_of_file(path)
    if kind == "csv":
        return CsvTable(
            path, target, features=features, kinds=kinds, missing=missing, **dialect
        )
    given = [name for name, value in dialect.items() if value is not None]
    if given:
        raise ColumnsError(
            f"{', '.join(given)} is for text files, and {path} is {kind}."
        )
    if kind == "parquet":
        return ParquetTable(path, target, features=features)
    if kind == "libsvm":
        return LibsvmTable(path, target, features=features)
    return ArrowTable(arrow_data(path), target, features=features)


def arrow_data(path):
    """Data set of pyarrow of an Arrow file, a stream included."""
    try:
        import pyarrow as pa
        import pyarrow.dataset as dataset
    except ImportError as error:
        raise ImportError(
            "Arrow files need pyarrow: pip install 'surff[files]'"
        ) from error
    try:
        with open(path, "rb") as file:
            if file.read(6) == b"ARROW1":
                return dataset.dataset(str(path), format="ipc")
        with pa.ipc.open_stream(str(path)) as reader:
            return reader.read_all()
    except (pa.ArrowException, OSError, ValueError) as error:
        raise SourceError(
            f"{path}: cannot be read: {error}; the file is damaged, write it again."
        ) from error


class LibsvmTable:
    """Rows of a LIBSVM file, made dense: columns x1, x2 and so on, target ``y``.

    Parameters
    ----------
    path : path
        File, also compressed by gzip or bzip2.
    target : str, optional
        Only "y".
    features : sequence of str, optional
        Columns to take, such as "x3"; those that no row has are zero.
    """

    def __init__(
        self,
        path: str | Path,
        target: str | None = None,
        *,
        features: Sequence[str] | None = None,
    ) -> None:
        from sklearn.datasets import load_svmlight_file

        if target not in (None, "y"):
            raise SourceError(
                f"{path}: the target of a LIBSVM file is called y, got {target!r}."
            )
        try:
            X, y = load_svmlight_file(str(path))
        except (ValueError, OSError, EOFError) as error:
            raise SourceError(
                f"{path}: cannot be read as LIBSVM: {error}; each line must be a "
                "target and pairs column:value."
            ) from error
        if X.shape[1] > MOST_COLUMNS:
            raise SourceError(
                f"{path}: the file has {X.shape[1]} columns, more than {MOST_COLUMNS} "
                "that can be made dense; fit a model to the sparse matrix in Python."
            )
        if features is None:
            features = [f"x{j + 1}" for j in range(X.shape[1])]
        self.feature_names = [*features]
        self.places = [int(name[1:]) - 1 for name in features]
        X.resize((X.shape[0], max(X.shape[1], max(self.places) + 1)))
        self.path, self.X, self.y = str(path), X, None if target is None else y

    def __iter__(self) -> Iterator[Block]:
        from surff.tables.columns import Column, Columns

        step = 65_536
        for start in range(0, self.X.shape[0], step):
            dense = self.X[start : start + step, self.places].toarray()
            columns = Columns(
                (name, Column("number", np.ascontiguousarray(values)))
                for name, values in zip(self.feature_names, dense.T, strict=True)
            )
            y = None if self.y is None else self.y[start : start + step]
            yield Block(columns, y, None, self.path, start + 1, "line")


def first_pass(function: Any) -> Any:
    """Result of a function that reads a source, again after a column was widened."""
    while True:
        with contextlib.suppress(ColumnWidened):
            return function()
