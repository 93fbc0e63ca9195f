"""Files whose columns may hold anything: sources of blocks of pyarrow tables.

The sources of this module give what the columns hold, for an encoder such as
`surff.tables.TableEncoder` to make numbers of. Rows without a target are left out and
counted.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from surff.streaming.columns import Paths, column_of, pyarrow
from surff.streaming.csv_rows import TRUTH, CsvRows
from surff.streaming.files import ArrowRows, ParquetRows
from surff.streaming.sniff import Dialect, sniffed
from surff.streaming.sources import Block, SourceError

__all__ = ["ArrowTable", "ColumnWidened", "CsvTable", "ParquetTable"]

#: Words of missing cells, besides those of pyarrow.
MISSING = ("?", "na", "Na", "None", "none", "missing", "-", "--", ".")

#: Share of the different values that are numbers in a column of numbers with mistakes,
#: and how many there must be.
MOSTLY, ENOUGH = 0.9, 20


class ColumnWidened(SourceError):
    """A column turned out to hold text; the pass must start again."""


class AnyColumns:
    """Base of sources whose ``X`` are tables of pyarrow."""

    #: Rows without a target in the last pass.
    n_without_target = 0

    def _features(self, batch, block):
        del block  # nothing to refuse
        arrow = pyarrow()
        names = self.feature_names
        columns = [column_of(batch, name) for name in names]
        return arrow.Table.from_arrays(columns, names=names)

    def _block(self, batch, block):
        arrow = pyarrow()
        for name in self.target or ():
            column = batch.column(batch.schema.get_field_index(name))
            if column.null_count:
                there = column.is_valid().to_numpy(zero_copy_only=False)
                rows = np.flatnonzero(there)
                self.n_without_target += len(there) - len(rows)
                batch = batch.filter(arrow.array(there))
                where = functools.partial(number_of, rows=rows, block=block)
                block = block._replace(numbered=where)
        return super()._block(batch, block)

    def __iter__(self) -> Iterator[Block]:
        self.n_without_target = 0
        return super().__iter__()


def number_of(i: int, rows: np.ndarray, block: Block) -> int:
    """Number of a row in its file, where rows before it were left out."""
    return block.number(int(rows[i]))


class ParquetTable(AnyColumns, ParquetRows):
    """Rows of Parquet files as tables; parameters of `ParquetRows`."""


class ArrowTable(AnyColumns, ArrowRows):
    """Rows of a table or data set of pyarrow as tables; parameters of `ArrowRows`."""


class CsvTable(AnyColumns, CsvRows):
    """Rows of CSV files as tables of numbers, truth values and text.

    Separator, decimal mark, encoding and header are guessed from the start of the first
    file unless they are given. What a column holds is guessed from the first block, and
    `ColumnWidened` is raised if it turns out to be text later: the pass must then start
    again, and now knows. A few cells that are no numbers in a column of numbers are an
    error that names the line.

    Parameters
    ----------
    path : path or list of paths
        See `CsvRows`.
    target, features : str, list of str
        See `CsvRows`.
    kinds : mapping of str to {"number", "truth", "text"}, optional
        What columns hold, where it is known.
    missing : sequence of str, optional
        Words of missing cells, besides nothing, NA, null, nan, ?, - and the like.
    delimiter, decimal, encoding, header
        See `sniffed`.
    text_bytes : int, default=1048576
        See `CsvRows`.

    Attributes
    ----------
    dialect : Dialect
        How the file is written.
    kinds : dict
        What each column holds, as far as was seen.
    """

    def __init__(
        self,
        path: Paths,
        target: str | Sequence[str] | None = None,
        *,
        features: Sequence[str] | None = None,
        kinds: Mapping[str, str] | None = None,
        missing: Sequence[str] = (),
        delimiter: str | None = None,
        decimal: str | None = None,
        encoding: str | None = None,
        header: bool | None = None,
        text_bytes: int = 2**20,
    ) -> None:
        first = path[0] if isinstance(path, list | tuple) else path
        self.dialect: Dialect = sniffed(
            first,
            delimiter=delimiter,
            decimal=decimal,
            encoding=encoding,
            header=header,
        )
        known = pyarrow("csv").ConvertOptions().null_values
        self.null_values = [*known, *MISSING, *missing]
        super().__init__(
            path,
            target,
            features=features,
            column_names=self.dialect.column_names,
            delimiter=self.dialect.delimiter,
            decimal=self.dialect.decimal,
            encoding=self.dialect.encoding,
            text_bytes=text_bytes,
        )
        self.given = dict(kinds or {})
        self.kinds = {name: self.given.get(name) for name in self.wanted}

    def _first_kinds(self):
        self._before = dict(self.kinds)
        return self.kinds

    def _header(self, data, path):
        names, cut = super()._header(data, path)
        return numbered_names(names), cut

    def _parsed(self, text, names, kinds):
        table = super()._parsed(text, names, kinds)
        for name, kind in kinds.items():
            if kind == "text" and self._before[name] not in (None, "text"):
                raise ColumnWidened(
                    f"{text.path}, from line {text.first} on: column {name!r} holds "
                    "text."
                )
        self._before = dict(kinds)
        return table

    def _wider(self, kind, words, name):
        wider = super()._wider(kind, words, name)
        if name in self.given or wider == "text" == kind:
            return wider
        if wider == "truth":
            return wider if all(w.strip() in TRUTH for w in words) else "text"
        numbers = sum(self._number(word) is not None for word in words)
        mostly = numbers >= max(ENOUGH, MOSTLY * len(words))
        if wider == "text":
            return "number" if mostly else wider
        return wider if numbers == len(words) or mostly else "text"

    def _cure(self, name, kind, cell):
        message = super()._cure(name, kind, cell)
        if name in (self.target or ()) or "give decimal" in message:
            return message
        what = message.partition("; ")[0]
        return (
            f"{what}; correct it, count such cells as missing (missing=[{cell!r}], "
            f"--missing {cell!r}), or leave the column out (drop=[{name!r}], --drop "
            f"{name!r})."
        )


def numbered_names(names: list[str]) -> list[str]:
    """Names of columns, those that are there twice with a number."""
    seen: dict[str, int] = {}
    unique: list[Any] = []
    for name in (name.strip() for name in names):
        seen[name] = seen.get(name, 0) + 1
        again = f"{name} ({seen[name]})"
        unique.append(name if seen[name] == 1 else again)
    return unique
