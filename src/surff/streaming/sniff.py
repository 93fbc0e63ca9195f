"""How a CSV file is written: separator, decimal mark, encoding, header."""

from __future__ import annotations

import codecs
import contextlib
import csv
import io
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from surff.streaming.columns import reading
from surff.streaming.csv_text import MARKS, opened
from surff.streaming.sources import SourceError

__all__ = ["Dialect", "sniffed"]

#: Bytes of the start of a file that are looked at.
LOOK = 2**18

#: Rows of them that are compared.
ROWS = 200

#: Separators that are tried; the first of equals wins.
DELIMITERS = (",", ";", "\t", "|")

#: Number with a decimal point, with a decimal comma, or whole.
POINT = re.compile(r"\s*[+-]?(\d*\.\d+|\d+\.)(e[+-]?\d+)?\s*", re.I | re.A)
COMMA = re.compile(r"\s*[+-]?(\d*,\d+|\d+,)(e[+-]?\d+)?\s*", re.I | re.A)
WHOLE = re.compile(r"\s*[+-]?\d+(e[+-]?\d+)?\s*", re.I | re.A)


class Dialect(NamedTuple):
    """How a CSV file is written.

    Attributes
    ----------
    delimiter, decimal, encoding : str
        Parameters of `CsvRows`.
    column_names : list of str or None
        Names that were made up, where there is no header line: c1, c2 and so on.
    """

    delimiter: str
    decimal: str
    encoding: str
    column_names: list[str] | None

    def __str__(self) -> str:
        names = {"\t": "tab", ",": "comma", ";": "semicolon", "|": "bar"}
        marks = {".": "point", ",": "comma"}
        header = "a header line"
        if self.column_names is not None:
            n = len(self.column_names)
            header = f"no header line (columns are called c1 to c{n})"
        return (
            f"separator {names.get(self.delimiter, self.delimiter)}, decimal "
            f"{marks.get(self.decimal, self.decimal)}, encoding {self.encoding}, "
            f"{header}"
        )


def sniffed(
    path: str | Path,
    *,
    delimiter: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
    header: bool | None = None,
) -> Dialect:
    """Look at the start of a CSV file; what is given is not guessed.

    Parameters
    ----------
    path : path
        File, compressed or not.
    delimiter, decimal, encoding : str, optional
        What is known.
    header : bool, optional
        Whether the first line holds the names of the columns.

    Returns
    -------
    Dialect
    """
    with reading(path), opened(path) as (file, _):
        data = file.read(LOOK)
    if not data.strip():
        raise SourceError(
            f"{path}: the file is empty; give one with a header line and rows."
        )
    encoding = encoding or encoding_of(data)
    text = text_of(data, encoding)
    whole = len(data) < LOOK
    if delimiter is None:
        delimiter = delimiter_of(text, whole)
    rows = rows_of_text(text, delimiter, whole)
    if decimal is None:
        decimal = decimal_of(rows, delimiter)
    if header is None:
        header = has_header(rows)
    names = None
    if not header:
        names = [f"c{j + 1}" for j in range(len(rows[0]))]
    return Dialect(delimiter, decimal, encoding, names)


def encoding_of(data: bytes) -> str:
    """Encoding of some bytes: by their mark, UTF-8 if they are, Windows' otherwise."""
    for mark, name in MARKS.items():
        if data.startswith(mark):
            return name
    if b"\0" in data[:1000]:
        return "utf-16-le" if data[1:2] == b"\0" else "utf-16-be"
    try:
        codecs.getincrementaldecoder("utf-8")().decode(data)
    except UnicodeDecodeError:
        return "cp1252"
    return "utf-8"


def text_of(data: bytes, encoding: str) -> str:
    """Text of the start of a file; a cut letter at the end is left out."""
    decoder = codecs.getincrementaldecoder(encoding)(errors="replace")
    return decoder.decode(data).removeprefix("\ufeff")


def rows_of_text(text: str, delimiter: str, whole: bool) -> list[list[str]]:
    """First rows, without one that may be cut."""
    rows: list[list[str]] = []
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    with contextlib.suppress(csv.Error):
        for row in reader:
            if any(cell.strip() for cell in row):
                rows.append(row)
            if len(rows) > ROWS:
                break
    if len(rows) > 1 and not whole and len(rows) <= ROWS:
        rows.pop()
    return rows


def delimiter_of(text: str, whole: bool) -> str:
    """Separator whose rows have the same number of cells, more than one."""
    best, delimiter = (0.0, 0), DELIMITERS[0]
    for candidate in DELIMITERS:
        sizes = [len(row) for row in rows_of_text(text, candidate, whole)]
        usual = max(set(sizes), key=sizes.count)
        if usual < 2:
            continue
        # The header decides between separators that cut the rows alike.
        share = sizes.count(usual) / len(sizes) * (1.0 if sizes[0] == usual else 0.5)
        if (round(share, 1), usual) > best:
            best, delimiter = (round(share, 1), usual), candidate
    return delimiter


def decimal_of(rows: Sequence[Sequence[str]], delimiter: str) -> str:
    """Mark of the numbers that have one."""
    if delimiter == ",":
        cells = [cell for row in rows for cell in row if "," in cell]
        if not cells:
            return "."
    points = commas = 0
    for row in rows:
        points += sum(POINT.fullmatch(cell) is not None for cell in row)
        commas += sum(COMMA.fullmatch(cell) is not None for cell in row)
    return "," if commas > points and delimiter != "," else "."


def has_header(rows: Sequence[Sequence[str]]) -> bool:
    """Whether the first row is no row of values: no cell of it is a number."""
    first = [cell for cell in rows[0] if cell.strip()]
    return not any(
        mark.fullmatch(cell) for cell in first for mark in (POINT, COMMA, WHOLE)
    )
