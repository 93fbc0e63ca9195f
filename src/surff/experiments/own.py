"""Methods and data of your own in the protocols.

A method is a draw, a selector, an adaptation, features or a whole estimator;
`add_method` gives it a name besides those of surff, and from then on it is tuned,
tested and printed as they are. `add_task` does the same for a table of numbers.
"""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

import surff
from surff.experiments.benchmark import TASKS, OwnData, TaskDescription
from surff.experiments.methods import (
    BANDWIDTH_OF,
    LABELS,
    NAMES,
    OWN,
    OwnMethod,
)

__all__ = ["add_method", "add_task", "task_of_file"]

#: Most values of a column of whole numbers that is taken for classes.
MOST_CLASSES = 50

#: Kinds of a part by the method that it has, in the order in which they are looked for.
KINDS = ("draw", "select", "adapt")


def add_method(part: Any, name: str | None = None) -> str:
    """Add a method to those of the protocols.

    Parameters
    ----------
    part : object, class, function or str
        What differs from RFF: an object with a method ``draw``, ``select`` or
        ``adapt``, see the guide to own parts; a `surff.estimators.Features`, whose
        ``n_components``, ``gamma`` and ``random_state`` are set if it has them; a
        function of these three that returns features; or an estimator with ``fit`` and
        ``predict``, for the benchmark, which tunes itself and has no number of
        frequencies. A class is called without arguments. A text
        ``"module:object"`` is imported, from the working directory, too.
    name : str, optional
        Its name in tables and stored rows; by default the text, or that of the class.

    Returns
    -------
    name : str
        For ``methods=`` of `Table2`, protocol "fair", or `Benchmark`.

    Raises
    ------
    ValueError
        If the name is one of surff's methods, or the text names nothing.
    TypeError
        If it is none of these.

    Examples
    --------
    >>> from surff.experiments import Benchmark, add_method
    >>> from surff import FourierFeatures
    >>> def cauchy(n_components, gamma, random_state):
    ...     return FourierFeatures(
    ...         n_components, kernel="cauchy", gamma=gamma, random_state=random_state
    ...     )
    >>> config = Benchmark(tasks=("digits",), methods=("rff", add_method(cauchy)))
    >>> config.methods
    ('rff', 'cauchy')
    """
    if isinstance(part, str):
        name = part if name is None else name
        part = imported(part)
    if isinstance(part, type):
        name = part.__name__ if name is None else name
        part = part()
    if name is None:
        name = getattr(part, "__name__", type(part).__name__)
    if name in NAMES and name not in OWN:
        raise ValueError(f"name must not be that of a method of surff, got {name!r}.")
    kind = kind_of(part)
    OWN[name] = OwnMethod(kind, part)
    LABELS[name] = NAMES[name] = name.partition(":")[2] or name
    if kind == "adapt":
        BANDWIDTH_OF[name] = "rff"
    elif kind == "features" and "gamma" not in part.get_params():
        BANDWIDTH_OF[name] = None
    return name


def kind_of(part: Any) -> str:
    """Kind of a part, see `surff.experiments.methods.OwnMethod`."""
    if isinstance(part, surff.estimators.Features):
        return "features"
    if hasattr(part, "fit") and hasattr(part, "predict"):
        clone(part)  # refuses what is no estimator
        return "estimator"
    for kind in KINDS:
        if hasattr(part, kind):
            return kind
    if callable(part):
        return "function"
    raise TypeError(
        "a method must have a method draw, select or adapt, be features of surff, an "
        f"estimator with fit and predict, or a function that makes features, got "
        f"{part!r}."
    )


def imported(text: str) -> Any:
    """Import ``"module:object"``, from the working directory, too."""
    module, colon, name = text.partition(":")
    if not (module and colon and name):
        raise ValueError(f"method must be module:object, got {text!r}.")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        found = importlib.import_module(module)
    except ImportError as error:
        raise ValueError(f"method {text!r} cannot be imported: {error}.") from error
    for part in name.split("."):
        if not hasattr(found, part):
            raise ValueError(f"method {text!r}: {found!r} has no {part!r}.")
        found = getattr(found, part)
    return found


def add_task(name: str, X: Any, y: Any) -> str:
    """Add data to the tasks of the benchmark.

    Parameters
    ----------
    name : str
        Its name in tables and stored rows.
    X : array-like of shape (n_samples, n_features)
        Numbers, finite.
    y : array-like of shape (n_samples,)
        Floats are targets of a regression; anything else are classes.

    Returns
    -------
    name : str
        For ``tasks=`` of `Benchmark`.
    """
    if name in TASKS and TASKS[name].own is None:
        raise ValueError(f"name must not be that of a task of surff, got {name!r}.")
    X, y = np.asarray(X, dtype=np.float64), np.asarray(y)
    if X.ndim != 2 or y.shape != X.shape[:1] or len(y) < 10:
        raise ValueError(
            "X and y must have shapes (n_samples, n_features) and (n_samples,) with "
            f"10 rows or more, got {X.shape} and {y.shape}."
        )
    if not np.isfinite(X).all():
        i, j = (int(k[0]) for k in np.nonzero(~np.isfinite(X)))
        raise ValueError(f"X must be finite, got {X[i, j]} in row {i}, column {j}.")
    TASKS[name] = TaskDescription(name, own=OwnData(X, y))
    return name


def task_of_file(path: str | os.PathLike, target: str) -> str:
    """Add the table in a file to the tasks of the benchmark.

    Parameters
    ----------
    path : path-like
        CSV, compressed or not, or Parquet; all columns numbers, but for the target.
    target : str
        Column to predict: text, booleans and at most 50 different whole numbers are
        classes, everything else numbers.

    Returns
    -------
    name : str
        Name of the file without its ending.

    Raises
    ------
    ValueError
        A column is missing, no number or not complete; the message names it.
    """
    import pandas as pd

    path = Path(path)
    read = pd.read_parquet if path.suffix == ".parquet" else pd.read_csv
    frame = read(path)
    if target not in frame.columns:
        raise ValueError(
            f"{path}: there is no column {target!r}, only "
            f"{', '.join(map(repr, frame.columns))}."
        )
    y = frame.pop(target)
    for column in (y, *(frame[name] for name in frame)):
        if np.any(column.isna()):
            raise ValueError(
                f"{path}: column {column.name!r} has an empty cell in row "
                f"{int(np.argmax(column.isna()))}; fill or drop such rows."
            )
    for name in frame:
        if not pd.api.types.is_numeric_dtype(frame[name]):
            raise ValueError(
                f"{path}: column {name!r} holds no numbers, such as "
                f"{frame[name].iloc[0]!r}; code or drop it."
            )
    labels = not pd.api.types.is_float_dtype(y)
    if pd.api.types.is_integer_dtype(y) and y.nunique() > MOST_CLASSES:
        labels = False
    values = y.astype(str) if labels and y.dtype == object else y
    return add_task(
        path.name.partition(".")[0],
        frame.to_numpy(np.float64),
        np.asarray(values) if labels else y.to_numpy(np.float64),
    )
