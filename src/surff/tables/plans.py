"""What becomes of each column of a table."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.multiclass import type_of_target

from surff.streaming import folds_of_rows
from surff.tables.coders import (
    CategoryCoder,
    Coder,
    DateCoder,
    NumberCoder,
    TargetCoder,
    TruthCoder,
)
from surff.tables.columns import Column, Columns, ColumnsError
from surff.tables.dates import dates_of, format_of

__all__ = ["Looked", "Plan", "as_text", "folds_by_number", "listed"]

#: Folds of the rows that the means of the target are fitted to.
N_FOLDS = 5

#: Most classes for which each has a mean of its own.
MOST_MEANS = 10

#: Rows from which on a column of different values says nothing.
FEW = 50

#: Words of a value on average that make a text of categories.
WORDS = 4.0

#: Numbers that were written for people: thousands marks, units, percent.
DECORATED = re.compile(
    r"[+-]?[$€£]?\s?\d{1,3}([.,' ]\d{3})+([.,]\d+)?\s?[$€£%]?"
    r"|[+-]?[$€£]\s?\d+([.,]\d+)?|[+-]?\d+([.,]\d+)?\s?[$€£%]"
    r"|[+-]?\d+,\d+"
)


class Looked(NamedTuple):
    """Rows that the encoder looks at."""

    columns: Columns
    y: np.ndarray | None
    rows: np.ndarray  # their numbers in the table
    n_rows: int  # of the whole table


class Plan:
    """What is made of each column, from the rows that are looked at.

    Parameters
    ----------
    encoder : TableEncoder
        Its parameters say how.
    looked : Looked
        Rows.
    """

    def __init__(self, encoder: Any, looked: Looked) -> None:
        self.encoder, self.looked = encoder, looked
        self.seen: dict[Any, str] = {}  # first column that says something

    def fate(self, name: str, column: Column) -> Coder | str:
        """Fitted coder of a column, or why it is left out."""
        if name in self.encoder.drop:
            return "as drop= says"
        if column.kind == "empty":
            return "no value"
        if name in self.encoder.categorical:  # its numbers are categories
            column = as_text(column)
        if not column.missing.any() and len(np.unique(column.values)) == 1:
            return "constant"
        other = self.seen.setdefault(fingerprint(column), name)
        if other != name:
            return f"the same as {other!r}"
        if column.kind == "text":
            return self._text_fate(name, column)
        if column.kind == "number" and is_row_number(column.values, self.looked.n_rows):
            return "row numbers"
        coder = {"number": NumberCoder, "truth": TruthCoder, "date": DateCoder}
        return coder[column.kind](name).fit(column)

    def _text_fate(self, name, column):
        there = column.take(~column.missing)
        n, n_levels = len(there.values), len(np.unique(there.values))
        levels = column.levels[np.unique(there.values)]
        asked = name in self.encoder.categorical
        found = None if asked else format_of(levels)
        if found is not None:
            coder = DateCoder(name).fit(dates_of(column, found))
            coder.written = found
            return coder
        if not asked and (fault := text_fault(levels, n)):
            if self.encoder.text == "error" or "sentences" not in fault:
                raise ColumnsError(f"column {name!r} holds {fault}")
            return "sentences; make numbers of them first, as TfidfVectorizer does"
        if not asked and n_levels == n >= FEW:
            return "another text in every row"
        kind = self._mean_type(self.looked.y)
        if n_levels > self.encoder.max_levels and kind is not None:
            folds = folds_by_number(self.looked.rows)
            return TargetCoder(name, self.looked.y, kind, folds).fit(column)
        min_rows = max(3, math.ceil(self.encoder.min_frequency * len(column.values)))
        coder = CategoryCoder(name, min_rows, self.encoder.max_levels).fit(column)
        if len(coder.names_out) == 1:
            return "every category is rare"
        return coder

    def _mean_type(self, y):
        """What the targets are for `TargetEncoder`, None if means say nothing."""
        if y is None or y.ndim != 1:
            return None
        is_float = y.dtype.kind == "f"
        if self.encoder.target_type == "continuous" or (
            self.encoder.target_type == "auto" and is_float
        ):
            return "continuous" if y.dtype.kind in "fiub" else None
        kind = type_of_target(y)
        if kind == "multiclass" and len(np.unique(y)) > MOST_MEANS:
            return None
        return kind if kind in ("binary", "multiclass") else None


def folds_by_number(rows: np.ndarray) -> np.ndarray:
    """Fold of each row by its number in the table."""
    if not len(rows):
        return np.empty(0, dtype=np.intp)
    first = int(rows.min())
    folds = folds_of_rows(first, int(rows.max()) - first + 1, N_FOLDS)
    return folds[rows - first]


def as_text(column: Column) -> Column:
    """Numbers and dates as text: categories."""
    if column.kind in ("text", "empty"):
        return column
    used, codes = np.unique(column.values[~column.missing], return_inverse=True)
    levels = np.array([f"{value:.12g}" for value in used] + [None], dtype=object)[:-1]
    places = np.full(len(column.values), -1, dtype=np.int64)
    places[~column.missing] = codes
    return Column("text", places, levels)


def fingerprint(column):
    """The same for columns that say the same."""
    values = column.values
    if column.kind == "text":
        # By the order in which values come, whatever they are called.
        used, first, codes = np.unique(values, return_index=True, return_inverse=True)
        rank = np.empty(len(used), dtype=np.int64)
        rank[np.argsort(first, kind="stable")] = np.arange(len(used))
        names = tuple(
            "" if v < 0 else column.levels[v] for v in used[np.argsort(first)]
        )
        return "text", hash(names), rank[codes].tobytes()
    values = values + 0.0  # -0 is 0
    values[np.isnan(values)] = np.nan
    return column.kind, values.tobytes()


def is_row_number(values, n_rows):
    """Whether numbers only count the rows."""
    if len(values) < FEW or np.isnan(values).any() or (values % 1 != 0).any():
        return False
    span = values.max() - values.min() + 1
    return bool(
        0.99 * n_rows <= span <= n_rows and len(np.unique(values)) == len(values)
    )


def text_fault(levels, n):
    """What makes some text no categories, None for nothing."""
    written = [word for word in levels if DECORATED.fullmatch(word.strip())]
    if len(levels) > 2 and len(written) > 0.9 * len(levels):
        return (
            f"numbers that are written for people, such as {written[0]!r}; write them "
            "without thousands marks and units, with a decimal point."
        )
    if len(levels) < max(FEW, n / 2):
        return None
    words = np.mean([len(level.split()) for level in levels])
    if words >= WORDS:
        return (
            f"sentences, such as {levels[0][:40]!r}; leave it out by drop=, or make "
            "numbers of it first, for instance by TfidfVectorizer and TruncatedSVD of "
            "scikit-learn."
        )
    return None


def listed(names: Iterable[Any]) -> str:
    """At most ten names, for a message."""
    texts = [repr(str(name)) for name in names]
    return ", ".join(texts[:10] + ["..."] * (len(texts) > 10))
