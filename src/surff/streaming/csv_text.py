"""Text of CSV files: bytes of any encoding, cut at the ends of rows.

A row ends at the end of a line that is outside double quotes. A quote opens a value
only at its start; elsewhere it is a letter like others, as pyarrow and `csv` read it.
"""

from __future__ import annotations

import bz2
import codecs
import contextlib
import csv
import gzip
import io
import lzma
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from surff.streaming.sources import Block, SourceError

__all__ = [
    "MARKS",
    "OPENERS",
    "Text",
    "end_of_rows",
    "first_row",
    "line_breaks",
    "one_character",
    "opened",
    "text_encoding",
    "undecodable",
    "utf8_of",
]


def open_zip(file: IO[bytes], mode: str) -> IO[bytes]:
    """Open the only file of a zip archive."""
    del mode  # archives are read
    with zipfile.ZipFile(file) as archive:
        names = [
            name
            for name in archive.namelist()
            if not name.endswith("/") and not name.startswith("__MACOSX/")
        ]
        if len(names) != 1:
            raise SourceError(
                f"{file.name}: the archive must hold one file, got {len(names)}: "
                f"{', '.join(names[:5])}; unpack it, and name the file."
            )
        return archive.open(names[0])


#: What decompresses an open file, by the end of its name; others are read as they are.
OPENERS = {
    ".gz": gzip.open,
    ".xz": lzma.open,
    ".lzma": lzma.open,
    ".bz2": bz2.open,
    ".zip": open_zip,
}

#: Marks of encodings other than UTF-8 at the start of a file; the longer ones first.
MARKS = {
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}

#: A quoted value after its opening quote; a quote in it is doubled.
QUOTED = re.compile(rb'(?:[^"]++|"")*+"')


class Text(NamedTuple):
    """Whole lines of a file, in UTF-8, without the header."""

    data: bytes
    path: str
    first: int  # number of the first line in the file
    n_lines: int  # ends of lines
    delimiter: str

    def block(self, n_rows: int) -> Block:
        """Return a `Block` that knows its lines, still without values."""
        plain = n_rows == self.n_lines + (not self.data.endswith((b"\n", b"\r")))
        numbered = None if plain else self.line_of
        return Block(None, None, None, self.path, self.first, "line", numbered)

    def line_of(self, i: int) -> int:
        """Line on which row ``i`` begins; a row may be several lines long."""
        for j, (line, _) in enumerate(self.records()):
            if j == i:
                return line
        return self.first + i

    def records(self) -> Iterator[tuple[int, list[str]]]:
        """Yield the rows as the standard library reads them, each with its line."""
        text = io.StringIO(self.data.decode(errors="replace"), newline="")
        rows = csv.reader(text, delimiter=self.delimiter)
        line = self.first
        with contextlib.suppress(csv.Error):  # a value of 128 kB or more
            for row in rows:
                if row:
                    yield line, row
                line = self.first + rows.line_num


def one_character(argument: str, value: Any) -> str:
    """Return ``value`` if it can separate text."""
    if (
        isinstance(value, str)
        and len(value) == 1
        and value.isascii()
        and value not in '"\r\n\0'
    ):
        return value
    raise ValueError(
        f"{argument} must be one ASCII character other than a quote or the end of a "
        f"line, got {value!r}."
    )


def text_encoding(encoding: Any) -> str:
    """Return the name of an encoding of text that Python knows."""
    try:
        "".encode(encoding)
        return codecs.lookup(encoding).name
    except (LookupError, TypeError, ValueError) as error:
        raise ValueError(
            "encoding must be an encoding of text that Python knows, such as 'utf8', "
            f"'utf-16' or 'latin-1', got {encoding!r}."
        ) from error


@contextlib.contextmanager
def opened(path: str | Path) -> Iterator[tuple[IO[bytes], IO[bytes]]]:
    """Open a file: its bytes, decompressed if need be, and the file as stored."""
    decompress = OPENERS.get(Path(path).suffix.lower())
    with open(path, "rb") as raw:
        if decompress is None:
            yield raw, raw
            return
        with decompress(raw, "rb") as file:
            yield file, raw


def utf8_of(
    file: IO[bytes], path: str, encoding: str, size: int
) -> Iterator[tuple[bytes, bool]]:
    """Yield the bytes of a file as UTF-8, and whether they are the last ones."""
    data = file.read(size)
    decoder = None
    if encoding in ("utf-8", "utf-8-sig"):
        for mark, name in MARKS.items():
            if data.startswith(mark):
                raise SourceError(
                    f"{path}: the text is {name}; give encoding={name!r}."
                )
        if b"\0" in data[:1000]:
            raise SourceError(
                f"{path}: the text holds bytes of zero; give its encoding=, such as "
                "'utf-16-le'."
            )
        data = data.removeprefix(codecs.BOM_UTF8)
    else:
        decoder = codecs.getincrementaldecoder(encoding)()
    is_last, before = False, 0
    while not is_last:
        following = file.read(size)
        is_last = not following
        if decoder is not None:
            try:
                text = decoder.decode(data, is_last)
                text = text if before else text.removeprefix("\ufeff")
                before += len(data)
                data = text.encode()
            except UnicodeError as error:
                where = f"{path}, after byte {before}"
                raise undecodable(where, error, encoding) from error
        yield data, is_last
        data = following


def undecodable(where: str, error: UnicodeError, encoding: str) -> SourceError:
    """Error of bytes that are not of the encoding."""
    return SourceError(
        f"{where}: the text is not {encoding} ({error}); give its encoding=, such as "
        "'latin-1' or 'utf-16'."
    )


def line_breaks(data: bytes) -> int:
    """Ends of lines, of any system."""
    return data.count(b"\n") or data.count(b"\r")


def last_break(data: bytes) -> int:
    """Where the last whole line ends; 0 if there is none."""
    return (data.rfind(b"\n") if b"\n" in data else data.rfind(b"\r")) + 1


def end_of_rows(data: bytes, delimiter: bytes) -> tuple[int, bool]:
    """Where the last whole row ends, and whether a quote is open at the end."""
    if b'"' not in data:
        return last_break(data), False
    codes = np.frombuffer(data, np.uint8)
    quotes = np.flatnonzero(codes == ord('"'))
    opening = quotes[::2]
    before = codes[opening[opening > 0] - 1]
    if not np.isin(before, list(delimiter + b'\r\n"')).all():
        return end_by_steps(data, delimiter)
    # Every other quote opens a value, or is the second one of two that stand for one.
    breaks = np.flatnonzero(codes == ord("\n" if b"\n" in data else "\r"))
    outside = breaks[np.searchsorted(quotes, breaks) % 2 == 0]
    return (int(outside[-1]) + 1 if outside.size else 0), len(quotes) % 2 == 1


def end_by_steps(data: bytes, delimiter: bytes) -> tuple[int, bool]:
    """`end_of_rows`, also where quotes are inside values that are not quoted."""
    cut, is_open = 0, False
    for start, end, opens in outside_quotes(data, delimiter):
        is_open = opens
        found = last_break(data[start:end])
        cut = start + found if found else cut
    return cut, is_open


def first_row(data: bytes, delimiter: bytes) -> int:
    """Where the first row ends."""
    if b'"' not in data[: data.find(b"\n") + 1]:
        data = data[: data.find(b"\n") + 1] or data
    for start, end, _ in outside_quotes(data, delimiter):
        for i in range(start, end):
            if data[i] in b"\r\n":
                return i + 1 + (data[i : i + 2] == b"\r\n")
    return len(data)


def outside_quotes(data: bytes, delimiter: bytes) -> Iterator[tuple[int, int, bool]]:
    """Yield starts and ends of text outside quotes, and whether a quote stays open."""
    opening = re.compile(b"(?:^|(?<=[" + re.escape(delimiter) + b'\r\n]))"')
    start = 0
    while (quote := opening.search(data, start)) is not None:
        value = QUOTED.match(data, quote.end())
        yield start, quote.start(), value is None
        if value is None:
            return
        start = value.end()
    yield start, len(data), False
