"""The paper's own numbers, to be shown next to measured ones.

Not every cell of the printed Table 2 is at hand; `printed_table` has the known ones,
and the others are not guessed. Whoever holds the paper can give the rest as a CSV file
with the same columns.
"""

from __future__ import annotations

import csv
import io
import os
from importlib import resources
from pathlib import Path
from typing import NamedTuple

from surff.experiments.methods import METHODS
from surff.experiments.protocol import PROBLEMS

__all__ = ["EXPECTED_DEVIATION", "PrintedCell", "expected_deviation", "printed_table"]

#: Columns of a CSV file of printed cells.
COLUMNS = ("dataset", "multiple", "method", "accuracy", "std")

#: Mean absolute deviation from the printed accuracies, in points, that the best known
#: recipe reached when it was fitted to all printed cells: data set, method, reading of
#: the weights. The cells were s = d..64d (eeg, magic04, cod-rna with stand-in test
#: rows) and s = d..16d (covtype; QMC on 100,000 of its rows and s = d..4d). RFF and QMC
#: have no weights.
EXPECTED_DEVIATION = {
    "eeg": {
        ("rff", "own"): 0.30,
        ("qmc", "own"): 0.30,
        ("leverage", "own"): 0.42,
        ("leverage", "sorted"): 0.28,
        ("surrogate", "own"): 0.57,
        ("surrogate", "sorted"): 0.79,
    },
    "magic04": {
        ("rff", "own"): 0.09,
        ("qmc", "own"): 0.12,
        ("leverage", "own"): 0.07,
        ("leverage", "sorted"): 0.05,
        ("surrogate", "own"): 0.08,
        ("surrogate", "sorted"): 0.06,
    },
    "cod-rna": {
        ("rff", "own"): 0.11,
        ("qmc", "own"): 0.09,
        ("leverage", "own"): 0.26,
        ("leverage", "sorted"): 0.17,
        ("surrogate", "own"): 0.40,
        ("surrogate", "sorted"): 0.43,
    },
    "covtype": {
        ("rff", "own"): 0.13,
        ("qmc", "own"): 0.07,
        ("leverage", "own"): 0.08,
        ("surrogate", "own"): 0.31,
    },
}


def expected_deviation(dataset: str, method: str, weights: str) -> float | None:
    """Reference for the deviation of one column of the table.

    Parameters
    ----------
    dataset, method : str
    weights : {"own", "sorted"}

    Returns
    -------
    deviation : float or None
        Mean absolute deviation in points; None where none was measured.
    """
    if method in ("rff", "qmc"):
        weights = "own"
    return EXPECTED_DEVIATION.get(dataset, {}).get((method, weights))


class PrintedCell(NamedTuple):
    """One printed cell.

    Attributes
    ----------
    accuracy : float
        In percent.
    std : float or None
        Printed standard deviation in points, where at hand.
    """

    accuracy: float
    std: float | None


def printed_table(
    path: str | os.PathLike | None = None,
) -> dict[tuple[str, int, str], PrintedCell]:
    """Known printed accuracies of Table 2.

    Parameters
    ----------
    path : path-like, optional
        CSV file with the columns dataset, multiple, method, accuracy (percent) and std
        (percent, may be empty), whose cells replace those that come with surff.

    Returns
    -------
    cells : dict
        Maps ``(dataset, multiple, method)`` to `PrintedCell`.

    Raises
    ------
    ValueError
        The file is not of that form; the message names the file and the line.
    OSError
        The file cannot be read.

    Examples
    --------
    >>> printed_table()["eeg", 32, "surrogate"]
    PrintedCell(accuracy=89.38, std=None)
    """
    shipped = resources.files("surff.experiments") / "printed_table2.csv"
    cells = _parse(shipped.read_text("utf-8"), "printed_table2.csv")
    if path is not None:
        cells |= _parse(Path(path).read_text("utf-8-sig"), path)
    return cells


def _parse(text, name):
    reader = csv.DictReader(io.StringIO(text))
    if tuple(reader.fieldnames or ()) != COLUMNS:
        raise ValueError(
            f"{name}, line 1: the columns must be {','.join(COLUMNS)}, got "
            f"{','.join(reader.fieldnames or ())!r}."
        )
    cells = {}
    for row in reader:
        where = f"{name}, line {reader.line_num}"
        dataset = _one_of(where, "dataset", row["dataset"], PROBLEMS)
        method = _one_of(where, "method", row["method"], METHODS)
        multiple = _number(where, "multiple", row["multiple"], int)
        accuracy = _number(where, "accuracy", row["accuracy"], float)
        std = _number(where, "std", row["std"], float) if row["std"] else None
        cells[dataset, multiple, method] = PrintedCell(accuracy, std)
    return cells


def _one_of(where, column, value, valid):
    if value not in valid:
        raise ValueError(
            f"{where}: {column} must be one of {', '.join(valid)}, got {value!r}."
        )
    return value


def _number(where, column, value, kind):
    least, most = (1, float("inf")) if kind is int else (0, 100)
    try:
        number = kind(value)
    except (TypeError, ValueError):
        number = None
    if number is None or not least <= number <= most:
        accepted = "an integer of at least 1" if kind is int else "a number of percent"
        raise ValueError(f"{where}: {column} must be {accepted}, got {value!r}.")
    return number
