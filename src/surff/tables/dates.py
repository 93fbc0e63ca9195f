"""Dates that are written as text."""

from __future__ import annotations

import datetime
import re
from typing import Any

import numpy as np

from surff.tables.columns import Column, ColumnsError, days_of

__all__ = ["dates_of", "format_of"]

#: Ways to write a date, in the order in which they are tried.
FORMATS = (
    "iso",
    "%d.%m.%Y",
    "%m/%d/%Y",
    "%d/%m/%Y",
    "%d-%m-%Y",
    "%d.%m.%y",
    "%m/%d/%y",
)

#: Times that may follow.
TIMES = ("", " %H:%M", " %H:%M:%S")

#: A date as ISO 8601 writes it.
ISO = re.compile(
    r"\d{4}-\d{2}-\d{2}([ T]\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?)?Z?", re.ASCII
)

#: Text that may be a date.
LIKELY = re.compile(r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}([ T].*)?", re.ASCII)


def format_of(levels: np.ndarray) -> str | None:
    """How all of some texts are written as dates, None if they are not.

    Parameters
    ----------
    levels : ndarray of str objects
        Different values.

    Returns
    -------
    format : str or None
        "iso" or a format of `datetime.strptime`. Where day and month could be either,
        dates with slashes have the month first.
    """
    if not len(levels) or not all(LIKELY.fullmatch(word.strip()) for word in levels):
        return None
    for format_ in (f + t for f in FORMATS for t in (TIMES if f != "iso" else ("",))):
        if all(moment_of(word, format_) is not None for word in levels):
            return format_
    return None


def moment_of(word: str, format_: str) -> np.datetime64 | None:
    """Date of a text, None if it is written otherwise."""
    word = word.strip()
    try:
        if format_ == "iso":
            if not ISO.fullmatch(word):
                return None
            return np.datetime64(word.rstrip("Z").replace(" ", "T"), "us")
        return np.datetime64(datetime.datetime.strptime(word, format_), "us")
    except ValueError:
        return None


def dates_of(column: Column, format_: str | None, name: str = "") -> Column:
    """Column of dates, from text.

    Raises
    ------
    ColumnsError
        Naming the column and a value that is written otherwise.
    """
    used, codes = np.unique(column.values, return_inverse=True)
    moments = np.full(len(used), np.datetime64("NaT", "us"))
    for i, place in enumerate(used.tolist()):
        if place < 0:
            continue
        word: Any = column.levels[place]
        moment = None if format_ is None else moment_of(word, format_)
        if moment is None:
            row = int(np.argmax(codes == i))
            how = "dates" if format_ is None else f"dates as {format_}"
            raise ColumnsError(
                f"column {name!r} must hold {how}, as in fit, got {word!r} in row "
                f"{row}."
            )
        moments[i] = moment
    days = days_of(moments)
    return days._replace(values=days.values[codes])
