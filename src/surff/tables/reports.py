"""What is asked of a fitted model and a table: scores, importance, comparisons."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import (
    accuracy_score,
    balanced_accuracy_score,
    confusion_matrix,
    mean_absolute_error,
    r2_score,
    root_mean_squared_error,
)

from surff.estimators import FourierFeatures, NystroemFeatures
from surff.streaming import Block
from surff.tables.columns import Column, Columns, columns_of
from surff.tables.encoder import ColumnSample, TableEncoder
from surff.tables.files import first_pass, open_table
from surff.tables.fit import Task, sample_of, source_of, task_of
from surff.tables.plans import Looked

__all__ = [
    "COMPARED",
    "comparison",
    "evaluation",
    "gradient_importance",
    "permutation_importance",
    "predicted_blocks",
    "table_for",
]

#: Step of a difference, in standard deviations.
STEP = 1e-3

#: Methods of a comparison by name: features of a number of columns and a
#: ``random_state``; None for other models.
COMPARED: dict[str, Any] = {
    "rff": FourierFeatures,
    "orthogonal": partial(FourierFeatures, draw="orthogonal"),
    "surrogate": partial(FourierFeatures, select="surrogate"),
    "auto": partial(FourierFeatures, adapt="auto"),
    "nystroem": NystroemFeatures,
    "linear": None,
    "boosting": None,
}


def table_for(model: Any, path: Any, target: str | None = None, **options: Any) -> Any:
    """Source of the rows of a file, with its columns as a model knows them.

    Parameters
    ----------
    model : TableModel
        Fitted.
    path : path
        File of any kind, see `open_table`.
    target : str, optional
        Column with the targets.
    **options
        How a text file is written, see `open_table`.

    Returns
    -------
    source : source of rows
    """
    kinds = {"number": "number", "truth": "truth"}
    known = {c.name: kinds.get(c.kind, "text") for c in model.encoder.coders_}
    if target is not None:
        classes = getattr(model, "classes_", None)
        if classes is None:
            known[target] = "number"
        elif classes.dtype.kind in "US":
            known[target] = "text"
    return open_table(
        path, target, kinds=known, features=[*columns_used(model)], **options
    )


def columns_used(model: Any) -> list[str]:
    """Columns of the table that a model looks at."""
    return [coder.name for coder in model.encoder.coders_]


def predicted_blocks(model: Any, source: Any) -> Iterator[tuple[np.ndarray, Block]]:
    """Yield the predictions for each block of a source, and the block."""
    for block in source:
        columns = columns_of(block.X)
        if columns.n_rows:
            yield model.predict(columns), block


def evaluation(model: Any, source: Any) -> dict[str, Any]:
    """Scores of a model on a source of frames with targets.

    Parameters
    ----------
    model : TableModel
        Fitted.
    source : source of rows
        See `table_for`.

    Returns
    -------
    scores : dict
        "rows" and R2, RMSE and MAE, or accuracy, balanced accuracy, "classes" and
        "confusion" (rows are true labels); "true" and "predicted" are arrays.
    """
    true, predicted = [], []
    for values, block in predicted_blocks(model, source):
        predicted.append(values)
        true.append(np.asarray(block.y))
    y, found = np.concatenate(true), np.concatenate(predicted)
    scores: dict[str, Any] = {"rows": len(y)}
    if hasattr(model, "classes_"):
        y = y.astype(model.classes_.dtype)
        labels = np.unique(np.concatenate([y, found]))
        scores |= {
            "accuracy": float(accuracy_score(y, found)),
            "balanced accuracy": float(balanced_accuracy_score(y, found)),
            "classes": labels.tolist(),
            "confusion": confusion_matrix(y, found, labels=labels).tolist(),
        }
    else:
        scores |= {
            "R2": float(r2_score(y, found)),
            "RMSE": float(root_mean_squared_error(y, found)),
            "MAE": float(mean_absolute_error(y, found)),
        }
    return scores | {"true": y, "predicted": found}


def permutation_importance(
    model: Any, source: Any, *, n_repeats: int = 5, n_rows: int = 5000, seed: int = 0
) -> dict[str, tuple[float, float]]:
    """How much the score falls when a column of the table is shuffled.

    Parameters
    ----------
    model : TableModel
        Fitted.
    source : source of rows
        Frames with targets.
    n_repeats : int, default=5
        Shuffles of each column.
    n_rows : int, default=5000
        Rows that are scored, a uniform sample.
    seed : int, default=0
        Seed of the shuffles.

    Returns
    -------
    importance : dict of str to (float, float)
        Mean and standard error of the fall, by column, largest first.

    References
    ----------
    .. [1] L. Breiman, "Random Forests", Machine Learning 45(1), 2001.
    """
    looked = sampled(source, n_rows)
    y = looked.y
    if hasattr(model, "classes_"):
        y = y.astype(model.classes_.dtype)
    rng = np.random.default_rng(seed)
    whole = model.score(looked.columns, y)
    found = {}
    for name in columns_used(model):
        falls = []
        for _ in range(n_repeats):
            order = rng.permutation(len(y))
            shuffled = Columns(looked.columns)
            shuffled[name] = looked.columns[name].take(order)
            falls.append(whole - model.score(shuffled, y))
        error = float(np.std(falls, ddof=1) / np.sqrt(n_repeats))
        found[name] = (float(np.mean(falls)), error)
    return dict(sorted(found.items(), key=lambda item: -item[1][0]))


def gradient_importance(
    model: Any, source: Any, *, n_rows: int = 2000
) -> dict[str, float]:
    """Root mean square change of the decisions for a spread of each column's numbers.

    Parameters
    ----------
    model : TableModel
        Fitted.
    source : source of rows
        Frames.
    n_rows : int, default=2000
        Rows that are looked at, a uniform sample.

    Returns
    -------
    importance : dict of str to float
        By column: the root of its diagonal entries of the average gradient outer
        product, each in units of the number's standard deviation, summed over the
        numbers that were made of the column.

    Notes
    -----
    Gradients are central differences of the decisions, with a step of a thousandth of
    the standard deviation.
    """
    Z = model.encoder.encode(sampled(source, n_rows).columns)
    decide = getattr(model.model, "decision_function", model.model.predict)
    spread = Z.std(axis=0)
    squares = np.zeros(Z.shape[1])
    for j in np.flatnonzero(spread > 0):
        ends = []
        for sign in (1, -1):
            moved = Z.copy()
            moved[:, j] += sign * STEP * spread[j]
            ends.append(decide(moved))
        slope = (ends[0] - ends[1]) / (2 * STEP)
        squares[j] = np.mean(slope.reshape(len(Z), -1) ** 2)
    places = model.encoder.columns_out()
    return {name: float(np.sqrt(squares[js].sum())) for name, js in places.items()}


def sampled(source: Any, n_rows: int) -> Looked:
    """Uniform sample of the rows of a source."""
    return first_pass(lambda: ColumnSample.of_blocks(source, n_rows).looked())


def comparison(
    data: Any,
    target: str,
    *,
    methods: Sequence[str] = tuple(COMPARED),
    sizes: Sequence[int] = (128, 512),
    trials: int = 3,
    task: str = "auto",
    done: Sequence[Mapping[str, Any]] = (),
    **options: Any,
) -> Iterator[dict[str, Any]]:
    """Yield the results of methods and sizes on the same splits of a table.

    A fifth of the rows is held out in each trial. Every method learns from the other
    rows as one encoder has made them numbers, with alpha chosen by generalised
    cross-validation on them.

    Parameters
    ----------
    data, target, task, **options
        See `surff.fit`. Of larger tables 150,000 rows are taken.
    methods : sequence of str
        Keys of `COMPARED`.
    sizes : sequence of int
        Numbers of features; linear models and boosting are fitted once.
    trials : int, default=3
        Splits.
    done : sequence of dict
        Rows of an earlier comparison. Those of the same table, cell for cell, are
        yielded again and not computed.

    Yields
    ------
    row : dict
        "table" (a fingerprint of the rows that are used and of the task), "method",
        "size" (0 for none), "trial", "metric", "score" and "seconds".
    """
    unknown = [name for name in methods if name not in COMPARED]
    if unknown:
        raise ValueError(f"methods must be of {', '.join(COMPARED)}, got {unknown}.")
    source, _ = source_of(data, target, options)
    looked = first_pass(lambda: sample_of(source)).looked()
    found = task_of(looked.y, task, target)
    y = looked.y if found.is_classes else looked.y.astype(np.float64)
    table = fingerprint(looked, found.name)
    names = ("method", "size", "trial")
    known = {tuple(r[n] for n in names): r for r in done if r["table"] == table}
    for trial in range(trials):
        cells = [
            (method, size, trial)
            for method in methods
            for size in (sizes if COMPARED[method] else (0,))
        ]
        yield from (known[cell] for cell in cells if cell in known)
        cells = [cell for cell in cells if cell not in known]
        if not cells:
            continue
        order = np.random.default_rng(trial).permutation(len(y))
        test, train = order[: len(y) // 5], np.sort(order[len(y) // 5 :])
        encoder = TableEncoder(
            text="drop", target_type="classes" if found.is_classes else "continuous"
        )
        sample = ColumnSample(encoder.n_sample)
        encoder.fit_sample(sample.add_some(looked, train, y))
        X = encoder.encode(looked.columns.take(train), looked.rows[train])
        X_test = encoder.encode(looked.columns.take(test))
        for method, size, _ in cells:
            model = model_of(method, size, trial, found)
            start = time.perf_counter()
            model.fit(X, y[train])
            seconds = time.perf_counter() - start
            yield {
                "table": table,
                "method": method,
                "size": size,
                "trial": trial,
                "metric": found.metric,
                "score": float(model.score(X_test, y[test])),
                "seconds": seconds,
            }


def fingerprint(looked: Looked, task: str) -> str:
    """Digest of rows and of what is done with them, which no other rows have."""
    digest = hashlib.sha256(repr((task, looked.n_rows)).encode())
    for name, column in [*looked.columns.items(), ("", Column("", looked.y))]:
        levels = [] if column.levels is None else column.levels.tolist()
        head = (name, column.kind, column.values.dtype.str, levels)
        digest.update(repr(head).encode())
        digest.update(column.values.tobytes())
    return digest.hexdigest()[:16]


def model_of(method: str, size: int, seed: int, task: Task) -> Any:
    """Unfitted model of a comparison."""
    if COMPARED[method] is not None:
        features = COMPARED[method](size, random_state=seed)
        return task.kernel_ridge(features, cv="gcv")
    if method == "linear":
        return LogisticRegression(max_iter=1000) if task.is_classes else Ridge()
    return task.boosting(random_state=seed)
