"""Rows of CSV files.

The text is cut into blocks at the ends of lines, outside quotes, and each block is
parsed by pyarrow, with the types that the columns have had so far. A block that does
not fit them is read again as text: that widens the type of a column (whole numbers to
numbers, numbers to True and False), or finds the line and the column of an error.
"""

from __future__ import annotations

import contextlib
import csv
import io
import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from surff.streaming.columns import (
    NamedColumns,
    Paths,
    as_list,
    files_of,
    is_text,
    pyarrow,
    reading,
)
from surff.streaming.csv_text import (
    OPENERS,
    Text,
    end_of_rows,
    first_row,
    line_breaks,
    one_character,
    opened,
    text_encoding,
    undecodable,
    utf8_of,
)
from surff.streaming.sources import Block, SourceError, positive_int

__all__ = ["CsvRows"]

#: Ends of the names of CSV files in a directory.
SUFFIXES = (".csv", *(f".csv{end}" for end in OPENERS))

#: Delimiters that a message may propose.
DELIMITERS = (";", "\t", "|", ",")

#: Number as text, after the decimal mark has become a point.
NUMBER = re.compile(
    r"[+-]?((\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?|inf(inity)?|nan)", re.IGNORECASE | re.ASCII
)

#: Whole number as text.
WHOLE = re.compile(r"-?\d+", re.ASCII)

#: Date as text, as a guess for messages.
DATE = re.compile(r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}([ T].*)?", re.ASCII)

#: Words of columns of truth values, as pandas, polars, R and spreadsheets write them.
TRUTH = {
    word: value
    for text, value in (("true", 1.0), ("false", 0.0))
    for word in (text, text.capitalize(), text.upper())
}

#: What a column holds, in words, and the ``target_dtype`` that takes more.
KINDS = {
    "whole": ("whole numbers", "float"),
    "number": ("numbers", "str"),
    "words": ("numbers", "str"),
    "truth": ("True and False", "str"),
}


class CsvRows(NamedColumns):
    r"""Rows of CSV files; with pyarrow, which the extra ``surff[files]`` brings.

    Files whose names end in ``.gz``, ``.xz``, ``.lzma``, ``.bz2`` or ``.zip`` are
    decompressed as they are read.

    Parameters
    ----------
    path : path or list of paths
        Files, or directories whose files are read in the order of their names.
    target, sample_weight, dtype
        See `ParquetRows`.
    features : list of str, optional
        Columns of ``X``, all numbers; by default all that are not used otherwise and
        have a name. pandas and R write row names to a column without one.
    target_dtype : {float, int, str}, optional
        Type of the targets. By default whole numbers, numbers, True and False, or text,
        whichever holds the first block of text; whole numbers may become numbers later.
    column_names : list of str, optional
        Names of the columns, if the files have no header line.
    delimiter : str, default=","
        Separator of values.
    decimal : str, default="."
        Decimal mark of numbers.
    encoding : str, default="utf8"
        Encoding of the text, one that Python knows. A byte order mark is skipped.
    text_bytes : int, default=1048576
        Bytes of text of a block; no row may be longer.

    Attributes
    ----------
    feature_names : list of str
        Columns of ``X``.

    Notes
    -----
    Values may be in double quotes, and then hold delimiters and line breaks. True and
    False are 1 and 0. Values such as nothing, ``NA`` and ``null`` are missing: NaN,
    which the models refuse. Lines are counted from 1, the header included.

    In a directory, names that start with ``.`` or ``_`` are skipped, and files that end
    otherwise than in ``.csv``, or that and a compression, are refused.

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

    #: Share of the bytes of all files that the last pass has read.
    share_read = 0.0

    #: Cells that are missing; None for those of pyarrow.
    null_values: list[str] | None = None

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
        decimal: str = ".",
        encoding: str = "utf8",
        text_bytes: int = 2**20,
    ) -> None:
        self.paths = files_of(path, SUFFIXES)
        if target_dtype not in (None, float, int, str):
            raise ValueError(
                f"target_dtype must be None, float, int or str, got {target_dtype!r}."
            )
        self.target_dtype = target_dtype
        self.delimiter = one_character("delimiter", delimiter)
        self.decimal = one_character("decimal", decimal)
        if self.decimal == self.delimiter:
            raise ValueError(
                f"decimal and delimiter must differ, got {decimal!r} for both."
            )
        self.encoding = text_encoding(encoding)
        self.column_names = None if column_names is None else as_list(column_names)
        self.text_bytes = positive_int("text_bytes", text_bytes)
        first = self.paths[0]
        with contextlib.closing(self._texts(first)) as texts, reading(first):
            names = next(texts)
        self._set_columns(names, first, target, features, sample_weight, dtype)

    def __iter__(self) -> Iterator[Block]:
        kinds = self._first_kinds()
        sizes = {path: size for path, (size, _) in self.stamps().items()}
        before, total = 0, sum(sizes[path] for path in self.paths)
        for path in self.paths:
            with contextlib.closing(self._texts(path)) as texts:
                with reading(path):
                    names = next(texts)
                self._check_columns(names, path)
                while True:
                    with reading(path):
                        text = next(texts, None)
                        if text is None:
                            break
                        batch = self._parsed(text, names, kinds)
                    self.share_read = (before + self._at) / total
                    yield self._block(batch, text.block(batch.num_rows))
            before += sizes[path]

    def _first_kinds(self):
        """What each column holds; the target is looked at first."""
        kinds: dict = dict.fromkeys(self.wanted, "number")
        for name in self.target or ():
            given = {float: "number", int: "whole", str: "text", None: None}
            kinds[name] = given[self.target_dtype]
        return kinds

    # Text

    def _texts(self, path):
        """Yield the names of the columns of a file, then its rows as `Text`."""
        names, line, held = self.column_names, 1, b""
        if names is not None:
            yield names
        with opened(path) as (file, raw):
            for data, is_last in utf8_of(file, path, self.encoding, self.text_bytes):
                self._at = raw.tell()
                held += data
                cut = self._end_of_rows(held, path, line, is_last)
                rows, held = held[:cut], held[cut:]
                if names is None and rows.strip(b"\r\n"):
                    names, cut = self._header(rows, path)
                    yield names
                    line += line_breaks(rows[:cut])
                    rows = rows[cut:]
                n_lines = line_breaks(rows)
                if rows.strip(b"\r\n"):
                    yield Text(rows, path, line, n_lines, self.delimiter)
                line += n_lines
        if names is None:
            raise SourceError(f"{path}: the file is empty.")

    def _end_of_rows(self, data, path, line, is_last):
        """Where the last whole row of some text ends."""
        cut, is_open = end_of_rows(data, self.delimiter.encode())
        if is_last and not is_open:
            return len(data)
        if not is_last and (cut or len(data) < self.text_bytes):
            return cut
        line += line_breaks(data[:cut])
        what = "the file" if is_last else f"{self.text_bytes} bytes"
        cure = "raise text_bytes="
        if is_open:
            cure = "close the quote that it opens"
            cure += "" if is_last else ", or raise text_bytes="
        raise SourceError(
            f"{path}, line {line}: the row does not end within {what}; {cure}."
        )

    def _header(self, data, path):
        """Names of the columns, and where the rows after them begin."""
        start = len(data) - len(data.lstrip(b"\r\n"))
        cut = start + first_row(data[start:], self.delimiter.encode())
        try:
            text = io.StringIO(data[start:cut].decode(), "")
            return next(csv.reader(text, delimiter=self.delimiter)), cut
        except UnicodeDecodeError as error:
            raise undecodable(f"{path}, line 1", error, self.encoding) from error
        except csv.Error as error:
            raise SourceError(f"{path}, line 1: cannot be read: {error}.") from error

    def _hint_for(self, names):
        if len(names) == 1:
            for other in DELIMITERS:
                if other != self.delimiter and other in names[0]:
                    return f" Give delimiter={other!r}."
        numbers = sum(self._number(name) is not None for name in names)
        if self.column_names is None and 2 * numbers > len(names):
            return " Give column_names=, if the first line is no header."
        return ""

    # Values

    def _parsed(self, text, names, kinds):
        """Table of the wanted columns of a text; widens ``kinds``."""
        unknown = [name for name, kind in kinds.items() if kind is None]
        if unknown:
            self._widen(text, names, kinds, unknown)
        if None not in kinds.values():
            with contextlib.suppress(ValueError):
                table = self._table(text, names, kinds)
                return self._with_numbers(table, kinds, text)
        table = self._widen(text, names, kinds, kinds)
        return self._with_numbers(table, kinds, text)

    def _widen(self, text, names, kinds, columns):
        """Return columns as text, after ``kinds`` were widened to hold them."""
        table = self._table(text, names, dict.fromkeys(columns))
        table = as_text(table, text, self.encoding)
        for name in columns:
            words = table.column(name).unique().drop_null().to_pylist()
            kinds[name] = self._wider(kinds[name], words, name)
        return table

    def _table(self, text, names, kinds):
        """Table of columns of a text, as what they hold; of bytes for None."""
        arrow, module = pyarrow(), pyarrow("csv")
        types = {None: arrow.binary(), "whole": arrow.int64()}
        types["number"] = arrow.float64()
        # Numbers as names: those of a file may be there twice.
        places = {
            str(names.index(name)): types.get(kind, arrow.string())
            for name, kind in kinds.items()
        }
        try:
            table = module.read_csv(
                arrow.BufferReader(text.data),
                module.ReadOptions(
                    use_threads=False,
                    block_size=len(text.data) + 1,
                    column_names=[str(j) for j in range(len(names))],
                ),
                module.ParseOptions(
                    delimiter=self.delimiter, newlines_in_values=b'"' in text.data
                ),
                module.ConvertOptions(
                    column_types=places,
                    include_columns=list(places),
                    null_values=self.null_values,
                    strings_can_be_null=True,
                    decimal_point=self.decimal,
                ),
            )
        except ValueError as error:
            if ": Expected " in str(error):
                raise self._ragged(text, names, error) from error
            raise
        return table.rename_columns(list(kinds)).combine_chunks()

    def _ragged(self, text, names, error):
        """Error that names the first row with too few or too many values."""
        where, found = f"{text.path}, from line {text.first} on", f" ({error})"
        for line, row in text.records():
            if len(row) != len(names):
                where, found = f"{text.path}, line {line}", f", got {len(row)}"
                break
        given = "the header" if self.column_names is None else "column_names="
        return SourceError(
            f"{where}: a row must have {len(names)} values, as {given} has names"
            f"{found}; check delimiter={self.delimiter!r}, and that values which hold "
            f"it are in double quotes.{self._hint_for(names)}"
        )

    def _wider(self, kind, words, name):
        """What a column holds that held ``kind``, or None, and now some words."""
        del name  # all columns are alike
        if kind == "text" or not words:
            return kind
        if kind is None:
            if all(whole_number(word) is not None for word in words):
                return "whole"
            if all(word.strip() in TRUTH for word in words):
                return "truth"
            numbers = all(self._number(word) is not None for word in words)
            return "number" if numbers else "text"
        if kind == "number":
            return "words" if any(word.strip() in TRUTH for word in words) else kind
        if kind == "whole" and self.target_dtype is None:
            whole = all(whole_number(word) is not None for word in words)
            return kind if whole else "number"
        return kind

    def _number(self, word):
        """Value of a number as text, nan if it is empty, or None."""
        word = word.strip()
        if self.decimal != ".":
            # A point is then no part of a number.
            word = word.replace(".", "?").replace(self.decimal, ".")
        if NUMBER.fullmatch(word):
            return float(word)
        return None if word else np.nan

    def _with_numbers(self, table, kinds, text):
        """Table whose columns of words are numbers, unless they hold text."""
        for j, (name, kind) in enumerate(kinds.items()):
            column = table.column(j)
            if kind != "text" and is_text(column.type):
                values = self._values(column, name, kind, text)
                table = table.set_column(j, name, values)
        return table

    def _values(self, column, name, kind, text):
        """Values of a column of words; an error names the line."""
        arrow = pyarrow()
        coded = column.combine_chunks().dictionary_encode()
        if isinstance(coded, arrow.ChunkedArray):
            coded = coded.combine_chunks()
        words = coded.dictionary.to_pylist()
        values = [self._value(word, kind) for word in words]
        codes = coded.indices.to_numpy(zero_copy_only=False)
        if None in values:
            i = int(np.argmax(codes == values.index(None)))
            cell = words[values.index(None)]
            raise SourceError(
                f"{text.path}, line {text.line_of(i)}: {self._cure(name, kind, cell)}"
            )
        if any(word.strip() in TRUTH for word in words):
            others = [w for w, v in zip(words, values, strict=True) if v not in (0, 1)]
            others = [w for w in others if w.strip()]
            if others:
                i = int(np.argmax(codes == words.index(others[0])))
                raise SourceError(
                    f"{text.path}, line {text.line_of(i)}: column {name!r} must hold "
                    f"either True and False or numbers, got {others[0]!r}, too."
                )
        dtype = {"whole": np.int64, "truth": bool}.get(kind, np.float64)
        missing = column.is_null().to_numpy()
        taken = np.zeros(len(column), dtype)
        if words:
            taken = np.array(values, dtype)[np.where(missing, 0, codes).astype(int)]
        return arrow.array(taken, mask=missing)

    def _value(self, word, kind):
        """Value of a cell of a column that holds ``kind``, or None."""
        if kind == "whole":
            return whole_number(word)
        value = TRUTH.get(word.strip())
        return self._number(word) if value is None and kind != "truth" else value

    def _cure(self, name, kind, cell):
        """Say what is wrong with a cell, and what helps."""
        what, wider = KINDS[kind]
        message = f"column {name!r} must hold {what}, got {cell!r}"
        if name in (self.target or ()):
            message = f"the target {name!r} must hold {what}, got {cell!r}"
        mark = {".": ",", ",": "."}.get(self.decimal, ".")
        swapped = cell.strip().translate(str.maketrans(",.", ".,"))
        other = next((d for d in DELIMITERS if d != self.delimiter and d in cell), None)
        if mark in cell and NUMBER.fullmatch(
            swapped if mark == "," else cell.strip().replace(",", "?")
        ):
            return f"{message}; give decimal={mark!r}."
        if other is not None:
            return f"{message}; give delimiter={other!r}, if it separates values."
        if name in (self.target or ()):
            if kind == "whole" and self._number(cell) is None:
                wider = "str"
            return f"{message}; give target_dtype={wider}."
        if DATE.fullmatch(cell.strip()):
            cure = "turn dates into numbers of your choice, such as years"
        else:
            cure = "write it as a number"
        if name != self.sample_weight:
            cure += ", or leave the column out by features="
        return f"{message}; {cure}."


def whole_number(word: str) -> int | None:
    """Value of a whole number as text, if int64 holds it, or None."""
    if not WHOLE.fullmatch(word.strip()) or len(word.strip()) > 20:
        return None
    value = int(word)
    return value if -(2**63) <= value < 2**63 else None


def as_text(table: Any, text: Text, encoding: str) -> Any:
    """Columns of bytes as text."""
    arrow, columns = pyarrow(), []
    for name in table.column_names:
        column = table.column(name)
        try:
            columns.append(column.cast(arrow.string()))
        except ValueError:
            for i, value in enumerate(column.to_pylist()):
                where = f"{text.path}, line {text.line_of(i)}, column {name!r}"
                try:
                    (value or b"").decode()
                except UnicodeDecodeError as error:
                    raise undecodable(where, error, encoding) from error
            raise
    return arrow.table(columns, table.column_names)
