"""Columns of frames of any library: numbers, truth values, dates and text.

`columns_of` takes a frame of pandas, polars or pyarrow, or an array, and gives one
`Column` per name. Text is a table of its different values and a number per row, so that
what is done to text is done once per value.
"""

from __future__ import annotations

import datetime
import decimal
import numbers
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

__all__ = ["Column", "Columns", "ColumnsError", "columns_of", "joined"]

#: Microseconds of a day.
DAY = 86_400_000_000

#: Kinds of columns, in words.
KINDS = {
    "number": "numbers",
    "truth": "True and False",
    "date": "dates",
    "text": "text",
    "empty": "nothing",
}


class ColumnsError(ValueError):
    """A table cannot be used; the message names the column.

    Attributes
    ----------
    row : int or None
        Place of the row in the table or block, where there is one.
    """

    def __init__(self, message: str, row: int | None = None) -> None:
        super().__init__(message)
        self.row = row


class Column(NamedTuple):
    """Values of one column.

    Attributes
    ----------
    kind : {"number", "truth", "date", "text", "empty"}
        What it holds.
    values : ndarray of shape (n_rows,)
        float64, NaN where missing: numbers, 0 and 1, days since 1970. For text the
        place of each row's value in ``levels``, -1 where missing.
    levels : ndarray of str objects, shape (n_levels,), or None
        Different values of text.
    """

    kind: str
    values: np.ndarray
    levels: np.ndarray | None = None

    def take(self, rows: Any) -> Column:
        """Some of the rows."""
        return self._replace(values=self.values[rows])

    @property
    def missing(self) -> np.ndarray:
        """Whether each row has no value."""
        return self.values < 0 if self.kind == "text" else np.isnan(self.values)

    def first(self) -> str:
        """First value that there is, for a message."""
        there = np.flatnonzero(~self.missing)
        if not len(there):
            return "nothing"
        value = self.values[there[0]]
        if self.kind == "text":
            return repr(self.levels[value])
        if self.kind == "date":
            moment = np.datetime64(int(value * DAY), "us")
            return str(moment.astype("datetime64[s]"))
        return repr(bool(value)) if self.kind == "truth" else f"{value:g}"


class Columns(dict):
    """`Column` by name, in order; all of the same number of rows."""

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(next(iter(self.values())).values) if self else 0

    def take(self, rows: Any) -> Columns:
        """Some of the rows."""
        return Columns({name: column.take(rows) for name, column in self.items()})


def columns_of(X: Any) -> Columns:
    """Columns of a frame of pandas, polars or pyarrow, or of an array.

    Parameters
    ----------
    X : frame or array of shape (n_rows, n_columns)
        Columns of an array are named x0, x1 and so on.

    Returns
    -------
    Columns

    Raises
    ------
    ColumnsError
        Naming a column whose values are no numbers, truth values, dates or text, or
        that there is twice.
    """
    if isinstance(X, Columns):
        return X
    package = type(X).__module__.partition(".")[0]
    if package == "pandas" and hasattr(X, "columns"):
        names, column = list(X.columns), lambda j: from_pandas(X.iloc[:, j])
    elif package == "polars" and hasattr(X, "columns"):
        if not hasattr(X, "get_columns"):
            raise TypeError(
                "a LazyFrame of polars must be collected first: .collect()."
            )
        series = X.get_columns()
        names, column = X.columns, lambda j: from_polars(series[j])
    elif package == "pyarrow" and hasattr(X, "schema"):
        names, column = X.schema.names, lambda j: from_arrow(X.column(j))
    else:
        array = array_of(X)
        names = [f"x{j}" for j in range(array.shape[1])]
        column = lambda j: from_objects(array[:, j])  # noqa: E731
    names = [str(name) for name in names]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ColumnsError(
            f"the table has several columns named {', '.join(map(repr, twice))}: "
            "rename them."
        )
    columns = Columns()
    for j, name in enumerate(names):
        try:
            columns[name] = column(j)
        except ColumnsError as error:
            raise ColumnsError(f"column {name!r} {error}", error.row) from None
    return columns


def array_of(X):
    """A NumPy array of two axes."""
    if hasattr(X, "tocsr"):
        raise TypeError(
            "a table must be a frame of pandas, polars or pyarrow, or an array, got a "
            "sparse matrix: models take it as it is."
        )
    array = np.asarray(X)
    if array.dtype.kind == "c":
        raise ValueError("Complex data not supported: a table must hold real numbers.")
    if array.ndim != 2:
        raise ValueError(
            "Expected 2D array: a table must be a frame of pandas, polars or pyarrow, "
            f"or an array of rows and columns, got {type(X).__name__} of shape "
            f"{array.shape}. Reshape your data: X.reshape(-1, 1) is one column."
        )
    if not array.shape[1]:
        raise ValueError(
            f"the table is empty: 0 feature(s) (shape={array.shape}) while a minimum "
            "of 1 is required."
        )
    return array


def numbers_of(values: np.ndarray) -> Column:
    """Column of numbers; infinities are refused."""
    values = np.asarray(values, dtype=np.float64)
    if np.isinf(values).any():
        row = int(np.argmax(np.isinf(values)))
        raise ColumnsError(
            f"holds infinity (row {row}): write such values as missing, or correct "
            "them.",
            row,
        )
    kind = "number" if len(values) == 0 or not np.isnan(values).all() else "empty"
    return Column(kind, values)


def in_days(times: np.ndarray) -> np.ndarray:
    """Days of datetime64 or timedelta64 in microseconds, NaN for NaT."""
    days = times.view(np.int64) / DAY
    days[np.isnat(times)] = np.nan
    return days


def days_of(moments: np.ndarray) -> Column:
    """Column of dates, from datetime64."""
    days = in_days(moments.astype("datetime64[us]"))
    return Column("empty" if len(days) and np.isnan(days).all() else "date", days)


def text_of(codes: np.ndarray, levels: Iterable[Any]) -> Column:
    """Column of text, from the place of each value among the different ones."""
    levels = np.array([*levels, None], dtype=object)[:-1]
    codes = np.asarray(codes).astype(np.int64, copy=False)
    if not (codes >= 0).any() and len(codes):
        return Column("empty", np.full(len(codes), np.nan))
    return Column("text", codes, levels)


def from_pandas(series: Any) -> Column:
    """Column of pandas."""
    import pandas as pd

    dtype = series.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        levels = [str(level) for level in dtype.categories]
        return text_of(series.cat.codes.to_numpy(), levels)
    if pd.api.types.is_bool_dtype(dtype):
        values = series.to_numpy(dtype=np.float64, na_value=np.nan)
        return Column("truth", values)
    if pd.api.types.is_complex_dtype(dtype):
        raise ColumnsError("holds complex numbers; write real and imaginary parts.")
    if pd.api.types.is_numeric_dtype(dtype):
        return numbers_of(series.to_numpy(dtype=np.float64, na_value=np.nan))
    if pd.api.types.is_datetime64_any_dtype(dtype):
        if getattr(dtype, "tz", None) is not None:
            series = series.dt.tz_convert("UTC").dt.tz_localize(None)
        return days_of(series.to_numpy(dtype="datetime64[us]"))
    if pd.api.types.is_timedelta64_dtype(dtype):
        return numbers_of(in_days(series.to_numpy(dtype="timedelta64[us]")))
    if isinstance(dtype, pd.PeriodDtype):
        return days_of(series.dt.to_timestamp().to_numpy(dtype="datetime64[us]"))
    try:
        codes, levels = pd.factorize(series, use_na_sentinel=True)
    except TypeError:  # lists and the like
        return from_objects(series.to_numpy(dtype=object))
    return of_levels(codes, list(levels))


def from_polars(series: Any) -> Column:
    """Column of polars."""
    import polars as pl

    dtype = series.dtype
    if dtype == pl.Boolean:
        return Column("truth", series.cast(pl.Float64).to_numpy().copy())
    if dtype.is_numeric() or dtype == pl.Null:
        return numbers_of(series.cast(pl.Float64).to_numpy())
    if dtype == pl.Date or dtype == pl.Datetime:
        return days_of(series.cast(pl.Datetime("us")).to_numpy())
    if dtype == pl.Duration:
        return numbers_of(in_days(series.cast(pl.Duration("us")).to_numpy()))
    if dtype in (pl.String, pl.Categorical, pl.Enum):
        levels = series.drop_nulls().unique(maintain_order=True).cast(pl.String)
        places = pl.Series(range(len(levels)), dtype=pl.Int64)
        codes = series.cast(pl.String).replace_strict(
            levels, places, default=None, return_dtype=pl.Int64
        )
        return text_of(codes.fill_null(-1).to_numpy(), levels.to_list())
    raise ColumnsError(f"holds {dtype}; leave it out, or write it as numbers or text.")


def from_arrow(array: Any) -> Column:
    """Column of pyarrow."""
    import pyarrow as pa
    import pyarrow.types as types

    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
        if isinstance(array, pa.ChunkedArray):  # of no rows, or of several parts
            array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([])
    kind = array.type
    if types.is_decimal(kind):
        array = array.cast(pa.string()).cast(pa.float64())
        kind = array.type
    if types.is_boolean(kind):
        array = array.cast(pa.int8()).cast(pa.float64())
        return Column("truth", array.to_numpy(zero_copy_only=False).copy())
    if types.is_null(kind) or types.is_integer(kind) or types.is_floating(kind):
        values = array.cast(pa.float64(), safe=False)
        return numbers_of(values.to_numpy(zero_copy_only=False))
    if types.is_date(kind) or types.is_timestamp(kind):
        moments = array.cast(pa.timestamp("us", getattr(kind, "tz", None)), safe=False)
        return days_of(moments.to_numpy(zero_copy_only=False).astype("datetime64[us]"))
    if types.is_duration(kind):
        micros = array.cast(pa.duration("us")).to_numpy(zero_copy_only=False)
        return numbers_of(in_days(micros))
    if types.is_dictionary(kind):
        array, kind = array, kind.value_type
    elif "string" in str(kind):
        array = array.cast(pa.large_string()).dictionary_encode()
    if "string" not in str(kind):
        if types.is_dictionary(array.type):
            array = array.cast(kind)
            return from_arrow(array)
        raise ColumnsError(
            f"holds {kind}; leave it out, or write it as numbers or text."
        )
    codes = array.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    return text_of(codes, array.dictionary.to_pylist())


def from_objects(values: np.ndarray) -> Column:
    """Column of a NumPy array of any type."""
    kind = values.dtype.kind
    if kind == "b":
        return Column("truth", values.astype(np.float64))
    if kind in "fiu":
        return numbers_of(values)
    if kind == "M":
        return days_of(values)
    places: dict[Any, int] = {}
    codes = np.empty(len(values), dtype=np.int64)
    for i, value in enumerate(values.tolist()):
        if value is None or (isinstance(value, float) and value != value):
            codes[i] = -1
        else:
            try:
                codes[i] = places.setdefault(value, len(places))
            except TypeError:
                raise ColumnsError(
                    f"holds {type(value).__name__} (row {i}): argument must be a "
                    "string or a number; leave it out, or write it as such."
                ) from None
    return of_levels(codes, list(places))


def of_levels(codes: np.ndarray, levels: list[Any]) -> Column:
    """Column of Python objects, by what they are."""
    values = np.array([*levels, None], dtype=object)
    if not levels:
        return Column("empty", np.full(len(codes), np.nan))
    if all(isinstance(level, str) for level in levels):
        return text_of(codes, levels)
    if all(isinstance(level, bool | np.bool_) for level in levels):
        return Column("truth", np.array([*map(float, levels), np.nan])[codes])
    if all(isinstance(level, numbers.Real | decimal.Decimal) for level in levels):
        return numbers_of(np.array([*map(float, levels), np.nan])[codes])
    if all(isinstance(level, datetime.date | np.datetime64) for level in levels):
        values[-1] = np.datetime64("NaT")
        return days_of(np.array([np.datetime64(v, "us") for v in values])[codes])
    if any(isinstance(level, str) for level in levels):
        other = next(level for level in levels if not isinstance(level, str))
        row = int(np.argmax(codes == levels.index(other)))
        raise ColumnsError(
            f"holds text, but {type(other).__name__} in row {row} ({other!r:.40}): "
            "make it one kind, such as by .astype(str)."
        )
    raise ColumnsError(
        f"holds {type(levels[0]).__name__}: argument must be a string or a number; "
        "leave it out, or write it as such."
    )


def joined(parts: list[Column], name: str) -> Column:
    """Rows of several parts of one column, in order.

    Raises
    ------
    ColumnsError
        If the parts are of different kinds.
    """
    kinds = {part.kind for part in parts} - {"empty"}
    if len(kinds) > 1:
        first, second = sorted(kinds)
        raise ColumnsError(
            f"column {name!r} holds {KINDS[first]} in some blocks of rows and "
            f"{KINDS[second]} in others; give it one type."
        )
    if kinds != {"text"}:
        kind = kinds.pop() if kinds else "empty"
        return Column(kind, np.concatenate([part.values for part in parts]))
    places: dict[str, int] = {}
    codes = []
    for part in parts:
        if part.kind == "empty":
            codes.append(np.full(len(part.values), -1))
            continue
        used, own = np.unique(part.values, return_inverse=True)
        numbers = [
            -1 if code < 0 else places.setdefault(part.levels[code], len(places))
            for code in used.tolist()
        ]
        codes.append(np.array(numbers, dtype=np.int64)[own])
    return text_of(np.concatenate(codes), places)
