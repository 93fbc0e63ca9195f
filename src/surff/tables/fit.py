"""One call from a table to a model: sensible sizes, bounded time, and an account."""

from __future__ import annotations

import logging
import time
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, Ridge
from threadpoolctl import threadpool_limits

from surff.estimators import (
    FourierFeatures,
    KernelRidgeClassifier,
    KernelRidgeRegressor,
    LeafHeads,
)
from surff.streaming import Block, BlockRows, look_through
from surff.tables.account import verdict
from surff.tables.columns import Column, Columns, ColumnsError, columns_of
from surff.tables.encoder import ColumnSample, TableEncoder
from surff.tables.files import first_pass, open_table
from surff.tables.model import TableModel
from surff.tables.plans import Looked, listed
from surff.tables.rows import encoded

__all__ = ["fit"]

LOGGER = logging.getLogger("surff")

#: Rows that are held in memory; of larger tables a sample is, and the rest streams.
MEMORY_ROWS = 150_000

#: Rows that are held out, and their share of the rows in memory.
HELD_OUT, HELD_OUT_SHARE = 20_000, 0.2

#: Sizes that are tried in turn, in columns of features.
SIZES = (64, 128, 256, 512, 1024, 2048)

#: How much longer the next size takes, as a guess.
GROWTH = 3.0

#: Gain in score for which a larger model is worth its size.
WORTH = 0.001

#: Sizes in a row without such a gain after which no larger one is tried.
PATIENCE = 2

#: Different whole numbers that are taken for classes.
MOST_CLASSES = 20

#: Most different texts that are taken for classes.
MOST_LABELS = 200

#: Fewest rows that can be fitted and scored.
FEWEST_ROWS = 10

#: Share of the time that choosing may take, and that it may take together with a pass
#: over all rows of a table that is not in memory.
SHARE, SHARE_WITH_PASS = 0.7, 0.8

#: Share of the time after which the first look at a table ends.
SHARE_OF_LOOK = 0.4

#: Rows by which the time of a pass over all rows is estimated.
TIMED_ROWS = 20_000

#: Most classes for which leaves are tried: each has a head in every leaf.
MOST_HEADS = 10

#: Rows of the fit that only compiles.
WARM_ROWS = 100

#: Seconds between two looks at the clock in gradient boosting, and between two lines.
LOOK_SECONDS, TELL_SECONDS = 3.0, 10.0

#: What may be asked for.
TASKS = ("auto", "regression", "classification")

#: Rows of a block of a frame in memory.
BLOCK_ROWS = 65_536


class Task(NamedTuple):
    """What is to be predicted."""

    name: str  # "regression" or "classification"
    said: str  # why, in words
    metric: str

    @property
    def is_classes(self) -> bool:
        """Whether targets are labels."""
        return self.name == "classification"

    @property
    def kernel_ridge(self) -> type:
        """Kind of surff's models."""
        return KernelRidgeClassifier if self.is_classes else KernelRidgeRegressor

    @property
    def boosting(self) -> type:
        """Kind of gradient boosting."""
        if self.is_classes:
            return HistGradientBoostingClassifier
        return HistGradientBoostingRegressor


def fit(
    data: Any,
    target: str,
    *,
    task: str = "auto",
    max_time: float = 60.0,
    drop: Sequence[str] = (),
    categorical: Sequence[str] = (),
    compare: bool = True,
    random_state: int = 0,
    verbose: Any = 0,
    **options: Any,
) -> TableModel:
    """Fit a model to a table, and say how good it is.

    A part of the rows is held out; sizes are tried on the others while time is left and
    they gain; the rows held out then join the best. After Ctrl-C the best so far is
    the model, if there is one, and its account says so. Tables that do not fit in
    memory are streamed.

    Parameters
    ----------
    data : frame of pandas, polars or pyarrow, or path
        Table, or a file of one: CSV (also compressed), Parquet, Arrow, LIBSVM.
    target : str
        Column to predict.
    task : {"auto", "regression", "classification"}, default="auto"
        "auto" takes text, truth values and up to 20 different whole numbers for
        classes.
    max_time : float, default=60
        Seconds that the fit may take, about; the smallest size is tried in any case.
    drop, categorical : sequence of str
        Columns to leave out, and columns of numbers that are categories.
    compare : bool, default=True
        Whether to fit a linear model and HistGradientBoosting to the same rows.
    random_state : int, default=0
        Seed of all random choices.
    verbose : int, bool or callable, default=0
        Whether to show progress, see `KernelRidgeRegressor`; the logger "surff" gets a
        line for each step at level INFO.
    **options
        How a text file is written, see `surff.tables.open_table`.

    Returns
    -------
    TableModel
        Fitted to all rows; ``account`` says what was found, a mapping that prints.

    Raises
    ------
    SourceError, ColumnsError
        Naming the file, the line and the column that cannot be used, and what helps.

    Examples
    --------
    >>> import numpy as np, pandas as pd, surff
    >>> table = pd.DataFrame({"x": np.linspace(0, 6, 300), "kind": ["a", "b"] * 150})
    >>> table["y"] = np.sin(table["x"]) + (table["kind"] == "a")
    >>> model = surff.fit(table, target="y", compare=False)
    >>> model.account["score"] > 0.99
    True
    """
    if task not in TASKS:
        raise ValueError(f"task must be one of {', '.join(TASKS)}, got {task!r}.")
    wishes = Wishes(target, task, max_time, drop, categorical, compare)
    try:
        return fitted(data, wishes, random_state, verbose, options)
    except ColumnsError as error:
        if not isinstance(data, str | Path) or str(data) in str(error):
            raise
        raise ColumnsError(f"{data}: {error}") from error


class OutOfTime(Exception):
    """A pass over all rows has taken all the time that there is."""


class Wishes(NamedTuple):
    """Parameters of `fit`."""

    target: str
    task: str
    max_time: float
    drop: Sequence[str]
    categorical: Sequence[str]
    compare: bool


def fitted(
    data: Any, wishes: Wishes, random_state: int, verbose: Any, options: dict
) -> TableModel:
    """Fitted model of a table; see `fit`."""
    start = time.monotonic()
    source, name = source_of(data, wishes.target, options, wishes.drop)
    warm_up()
    until = start + SHARE_OF_LOOK * wishes.max_time
    sample = first_pass(lambda: sample_of(source, verbose, until))
    looked = sample.looked()
    if not looked.n_rows:
        raise ColumnsError(f"{name}: the table has no rows with a target.")
    check_targets(looked, wishes.target, name)
    work = Work(
        task_of(looked.y, wishes.task, wishes.target),
        start,
        wishes.max_time,
        random_state,
        looked,
    )
    work.verbose, work.is_cut = verbose, sample.is_cut
    LOGGER.info(
        "%s: %s%s rows, %d columns; %.0f s more at most",
        *(name, "the first " * sample.is_cut, f"{looked.n_rows:,}"),
        *(len(looked.columns), max(0.0, work.end - time.monotonic())),
    )
    encoder = work.encoder(wishes.categorical)
    data = work.encoded(encoder)
    best, tried = work.best(data)
    score = max(entry["score"] for entry in tried)
    if not (work.in_memory or work.is_cut or work.was_stopped):
        best = work.streamed(best, encoder, source, sample.labels)
        score = best.score(data.X_held, data.y_held)
    best = work.with_all(best, data)
    others = {}
    if wishes.compare and not work.was_stopped:
        work.add_others(others, data)
    model = TableModel([("table", encoder), ("model", best)])
    model.account_ = {
        "source": name,
        **({"dialect": str(source.dialect)} if hasattr(source, "dialect") else {}),
        **work.account(best, encoder, wishes),
        "score": float(score),
        "others": others,
        "tried": tried,
        "notes": work.notes(source, score, others),
        "seconds": time.monotonic() - start,
    }
    return model


def warm_up() -> None:
    """Let all be compiled, which would count as the time of the first size.

    It is done before there are rows in memory, of which the compiler takes as much.
    """
    LOGGER.info("loading code, which is compiled the first time")
    X = np.random.default_rng(0).normal(size=(WARM_ROWS, 2))
    features = FourierFeatures(8, adapt="auto", random_state=0)
    quiet = {"verbose": lambda _: None}
    KernelRidgeRegressor(features, alphas=1.0, **quiet).fit(X, X[:, 0])


def source_of(
    data: Any, target: str, options: dict[str, Any], drop: Sequence[str] = ()
) -> tuple[Any, str]:
    """Source of the rows of a file or a frame, and what it is called."""
    if isinstance(data, str | Path):
        source = open_table(data, target, **options)
        if drop:
            kept = kept_of(source.feature_names, drop, str(data))
            source = open_table(data, target, features=kept, **options)
        return source, str(data)
    if options:
        raise TypeError(f"{', '.join(options)} is for files, and data is a frame.")
    columns = Columns(columns_of(data))
    if target not in columns:
        raise ColumnsError(
            f"the table has no column {target!r} to predict; there are "
            f"{listed(columns)}."
        )
    y = target_of(columns.pop(target), target)
    kept = kept_of(columns, drop, "the table")
    columns = Columns({name: columns[name] for name in kept})
    there = np.flatnonzero(
        y != np.array("", y.dtype) if y.dtype.kind == "U" else y == y
    )
    n_missing = len(y) - len(there)
    if n_missing:
        columns, y = columns.take(there), y[there]

    def blocks():
        for i in range(0, max(1, len(y)), BLOCK_ROWS):
            rows = slice(i, i + BLOCK_ROWS)
            yield columns.take(rows), y[rows]

    source: Any = BlockRows(blocks)
    source.n_without_target = n_missing
    return source, "the table"


def kept_of(names: Any, drop: Sequence[str], where: str) -> list[str]:
    """Names without those that are dropped, which must be among them."""
    unknown = [name for name in drop if name not in names]
    if unknown:
        raise ColumnsError(
            f"{where}: there is no column {listed(unknown)} to drop; there are "
            f"{listed(names)}."
        )
    return [name for name in names if name not in drop]


def target_of(column: Column, name: str) -> np.ndarray:
    """Targets of a column: text, truth values or numbers; "" or NaN if missing."""
    if column.kind == "date":
        raise ColumnsError(
            f"the target {name!r} holds dates; make numbers of them, such as days."
        )
    if column.kind == "text":
        return np.array([*column.levels, ""], dtype=str)[column.values]
    values = column.values
    if column.kind == "truth" and not np.isnan(values).any():
        return values.astype(bool)
    whole = not np.isnan(values).any() and (values % 1 == 0).all()
    return values.astype(np.int64) if whole and np.abs(values).max() < 2**53 else values


def sample_of(source: Any, verbose: Any = 0, until: float = np.inf) -> ColumnSample:
    """Rows of a source, all or a sample of them, in one pass; it may end in between."""
    sample = ColumnSample(MEMORY_ROWS)

    def update(block):
        sample.is_cut = sample.n_rows >= MEMORY_ROWS and time.monotonic() > until
        if not sample.is_cut:
            sample.update_block(sample.n_rows, block)
        return sample.is_cut

    look_through(source, update, verbose)
    return sample


def check_targets(looked: Looked, target: str, name: str) -> None:
    """Refuse targets from which nothing can be learned."""
    n_values = len(np.unique(looked.y))
    if n_values < 2:
        raise ColumnsError(
            f"{name}: the target {target!r} has the same value in every row, "
            f"{looked.y[0].item()!r}; name another column."
        )
    if len(looked.y) < FEWEST_ROWS:
        raise ColumnsError(
            f"{name}: the table has {len(looked.y)} rows with a target; at least "
            f"{FEWEST_ROWS} are needed to hold some out."
        )


def task_of(y: np.ndarray, task: str, target: str) -> Task:
    """What is to be predicted, from the targets."""
    values = np.unique(y)
    n, kind = len(values), y.dtype.kind
    if kind in "iuf" and n > 1 and (y % 1 == 0).all():
        kind = "i"
    guessed, why = "regression", "numbers"
    if kind in "US":
        guessed, why = "classification", f"text, {n} classes"
    elif kind == "b":
        guessed, why = "classification", "True and False"
    elif kind == "i" and n <= MOST_CLASSES:
        guessed, why = "classification", f"{n} different whole numbers"
    if task == "regression" and kind in "US":
        raise ColumnsError(
            f"the target {target!r} holds text such as {values[0].item()!r}, which "
            "regression cannot predict; use task='classification'."
        )
    if guessed == "classification" and n > min(MOST_LABELS, len(y) / 2):
        raise ColumnsError(
            f"the target {target!r} holds {n} different texts in {len(y)} rows; name a "
            "column of classes or numbers, or correct what is no number in it."
        )
    other = "regression" if guessed == "classification" else "classification"
    chosen, said = guessed, f"{guessed} ({why})"
    if task == "auto" and kind == "i" and guessed == "classification":
        said += f"; task='{other}' for numbers"
    if task != "auto":
        chosen, said = task, f"{task}, as task= says"
    return Task(chosen, said, "accuracy" if chosen == "classification" else "R2")


class Rows(NamedTuple):
    """Rows as numbers: those that are learned from, and those held out."""

    X: np.ndarray
    y: np.ndarray
    X_held: np.ndarray
    y_held: np.ndarray


class Work:
    """Work of a fit within its time.

    Parameters
    ----------
    task : Task
    start : float
        When the fit began, by `time.monotonic`.
    max_time : float
        Seconds that it may take.
    random_state : int
        Seed.
    looked : Looked
        Rows in memory, with their targets.
    """

    def __init__(
        self,
        task: Task,
        start: float,
        max_time: float,
        random_state: int,
        looked: Looked,
    ) -> None:
        self.task, self.looked = task, looked
        self.random_state, self.verbose = random_state, 0
        self.end = start + max_time
        share = SHARE if self.in_memory else SHARE_WITH_PASS
        self.deadline = start + share * max_time
        #: Seconds that reading a row takes, about.
        self.reading = (time.monotonic() - start) / max(1, looked.n_rows)
        #: Whether the first look, and the pass over all rows, ended early.
        self.is_cut = self.pass_is_cut = False
        self.time_was_up = self.was_stopped = False
        self.y = looked.y if task.is_classes else looked.y.astype(np.float64)
        n = len(self.y)
        order = np.random.default_rng(random_state).permutation(n)
        size = int(min(HELD_OUT, max(1, HELD_OUT_SHARE * n)))
        self.held, self.train = np.sort(order[:size]), np.sort(order[size:])
        if task.is_classes:
            # Each class must be learned from; one of a single row is not scored.
            alone = ~np.isin(self.y[self.held], self.y[self.train])
            self.train = np.sort(np.append(self.train, self.held[alone]))
            self.held = self.held[~alone]

    def encoder(self, categorical: Any) -> TableEncoder:
        """Encoder, fitted to the rows that are learned from."""
        encoder = TableEncoder(
            text="drop",
            categorical=list(categorical),
            target_type="classes" if self.task.is_classes else "continuous",
        )
        sample = ColumnSample(encoder.n_sample)
        return encoder.fit_sample(sample.add_some(self.looked, self.train, self.y))

    def encoded(self, encoder: TableEncoder) -> Rows:
        """Rows as numbers; those that are learned from by means of other folds."""
        columns, rows = self.looked.columns, self.looked.rows
        return Rows(
            encoder.encode(columns.take(self.train), rows[self.train]),
            self.y[self.train],
            encoder.encode(columns.take(self.held)),
            self.y[self.held],
        )

    def add_others(self, scores: dict[str, float], data: Rows) -> None:
        """Add the scores of the mean, a linear model and gradient boosting, by name."""
        if self.task.is_classes:
            values, counts = np.unique(data.y, return_counts=True)
            constant = np.mean(data.y_held == values[counts.argmax()])
            scores["commonest class"] = float(constant)
            linear = LogisticRegression()
        else:
            scores["mean"] = float(1 - square_ratio(data.y_held, data.y.mean()))
            linear = Ridge()
        LOGGER.info("now a linear model and gradient boosting, to compare")
        try:
            # One thread: several wait for each other long where other work runs.
            with warnings.catch_warnings(), threadpool_limits(1):
                # They are compared with as far as they get.
                warnings.simplefilter("ignore", ConvergenceWarning)
                linear.fit(data.X, data.y)
                scores["linear"] = float(linear.score(data.X_held, data.y_held))
                boosting = self.task.boosting(random_state=self.random_state)
                name, model = boosted(boosting, data, self.end)
            scores[name] = float(model.score(data.X_held, data.y_held))
        except KeyboardInterrupt:
            self.was_stopped = True
        for name, score in scores.items():
            LOGGER.info("%s: %s %.4f", name, self.task.metric, score)

    def best(self, data: Rows) -> tuple[Any, list[dict[str, Any]]]:
        """Best model of those that time allows, and what each has reached."""
        best, best_score, tried, last, idle = None, -np.inf, [], 0.0, 0
        whole = 0.0  # seconds of a pass over all rows
        for size in SIZES:
            start = time.monotonic()
            too_long = start + GROWTH * (last + whole) > self.deadline
            if best is not None and (too_long or size > len(data.y)):
                self.time_was_up = too_long
                break
            before = best_score
            try:
                for model in self._models_of(size, data):
                    last = time.monotonic() - start
                    tried.append(self._tried(size, model, data, last))
                    if tried[-1]["score"] > best_score:
                        best, best_score = model, tried[-1]["score"]
            except KeyboardInterrupt:
                if best is None:
                    raise
                self.was_stopped = True
                break
            whole = self._whole_pass(model, data)
            idle = 0 if best_score >= before + WORTH else idle + 1
            if idle == PATIENCE:
                break
        return best, tried

    def _whole_pass(self, model, data):
        """Seconds that a pass over all rows takes, by the time of some of them."""
        if self.in_memory or self.is_cut:
            return 0.0
        start = time.monotonic()
        some = self.task.kernel_ridge(FrozenEstimator(model.features_), alphas=1.0)
        some.fit(data.X[:TIMED_ROWS], data.y[:TIMED_ROWS])
        each = (time.monotonic() - start) / min(TIMED_ROWS, len(data.y))
        return self.looked.n_rows * (each + self.reading)

    def _tried(self, size, model, data, seconds):
        """What a model has reached on the rows that are held out."""
        entry = {
            "features": size,
            "leaves": n_leaves(model),
            "score": float(model.score(data.X_held, data.y_held)),
            "seconds": seconds,
        }
        LOGGER.info(
            "%d features, %d leaves: %s %.4f, %.1f s",
            *(size, entry["leaves"], self.task.metric, entry["score"], seconds),
        )
        return entry

    def _models_of(self, size, data):
        """Yield the models of a size: one head for all rows, then one per leaf."""
        features = FourierFeatures(size, adapt="auto", random_state=self.random_state)
        left = max(1.0, self.deadline - time.monotonic())
        model = self.task.kernel_ridge(
            features, cv="gcv", verbose=self.verbose, max_time=left
        )
        model.fit(data.X, data.y)
        yield model
        n_heads = len(np.unique(data.y)) if self.task.is_classes else 1
        in_time = time.monotonic() < self.deadline
        if in_time and n_heads <= MOST_HEADS and self.in_memory:
            frozen = FrozenEstimator(model.features_)
            with_leaves = clone(model).set_params(features=frozen, leaves="auto")
            with_leaves.fit(data.X, data.y)
            if n_leaves(with_leaves):
                yield with_leaves

    def with_all(self, model: Any, data: Rows) -> Any:
        """The model with the rows that were held out."""
        if not n_leaves(model):
            return model.partial_fit(data.X_held, data.y_held)
        # The tree and what was chosen stay; coefficients are of all rows.
        leaves = LeafHeads(partition=model.leaves_.partition, alpha=model.leaves_.alpha)
        whole = clone(model).set_params(
            features=FrozenEstimator(model.features_), leaves=leaves
        )
        X = np.concatenate([data.X, data.X_held])
        return whole.fit(X, np.concatenate([data.y, data.y_held]))

    @property
    def in_memory(self) -> bool:
        """Whether all rows of the table are in memory."""
        return self.looked.n_rows == len(self.looked.rows)

    def streamed(
        self, model: Any, encoder: TableEncoder, source: Any, labels: Any
    ) -> Any:
        """The model with its features fitted to all rows but those held out.

        As it is if time runs out before.
        """
        rows = self.looked.rows[self.held]
        frozen = clone(model).set_params(features=FrozenEstimator(model.features_))
        numbers = WithoutRows(encoded(source, encoder, training=True), rows, self.end)
        numbers.n_rows = self.looked.n_rows - len(rows)
        options = {"classes": sorted(labels)} if self.task.is_classes else {}
        start = time.monotonic()
        try:
            frozen.fit_stream(numbers, **options)
        except (OutOfTime, KeyboardInterrupt) as error:
            self.pass_is_cut = True
            self.was_stopped = isinstance(error, KeyboardInterrupt)
            return model
        LOGGER.info("all rows: %.1f s", time.monotonic() - start)
        return frozen

    def account(
        self, model: Any, encoder: TableEncoder, wishes: Wishes
    ) -> dict[str, Any]:
        """What is known of the table and the model."""
        gamma = np.asarray(model.features_.gamma_, dtype=float)
        return {
            "rows": int(self.looked.n_rows),
            "columns": len(self.looked.columns) + len(wishes.drop),
            "target": wishes.target,
            "task": self.task.name,
            "task_said": self.task.said,
            "made": encoder.made_ | dict.fromkeys(wishes.drop, "left out: as asked"),
            "method": f"{type(model).__name__}, Fourier features with adapt='auto'",
            "n_leaves": n_leaves(model),
            "n_components": int(model.features_.feature_map().n_components),
            "gamma": float(gamma.mean()),
            "alpha": float(np.mean(model.alpha_)),
            "metric": self.task.metric,
            "held_out_rows": len(self.held),
        }

    def notes(self, source: Any, score: float, others: dict) -> list[str]:
        """What else should be said."""
        notes = verdict(self.task.metric, score, others)
        if self.is_cut or self.pass_is_cut:
            why = "stopped" if self.was_stopped else "time was up (max_time=)"
            first = "first " * self.is_cut
            notes.append(
                f"{why}: the model has learned {len(self.looked.rows):,} of the "
                f"{first}{self.looked.n_rows:,} rows"
            )
        elif not self.in_memory:
            notes.append(
                f"features were chosen, and the other models fitted, on "
                f"{len(self.train):,} of the rows; coefficients are of all of them"
            )
        if n := getattr(source, "n_without_target", 0):
            notes.append(f"{n:,} rows without a target were left out")
        if self.was_stopped:
            notes.append("stopped: what was best until then is the model")
        if self.time_was_up:
            notes.append("time was up: larger models were not tried (max_time=)")
        return notes


def n_leaves(model: Any) -> int:
    """Leaves with heads of their own; 0 for none."""
    leaves = getattr(model, "leaves_", None)
    return 0 if leaves is None or leaves.partition is None else leaves.n_leaves


def square_ratio(y: np.ndarray, constant: float) -> float:
    """Squared error of a constant, as a share of that of the mean."""
    return float(np.mean((y - constant) ** 2) / max(np.var(y), np.finfo(float).tiny))


def boosted(model: Any, data: Rows, until: float) -> tuple[str, Any]:
    """Gradient boosting with as many rounds as time allows, and what it is called."""
    rounds, step = model.max_iter, 1
    told = time.monotonic()
    model.set_params(warm_start=True, max_iter=step)
    while True:
        start = time.monotonic()
        model.fit(data.X, data.y)
        done, now = model.max_iter, time.monotonic()
        if done >= rounds or model.n_iter_ < done:
            return "HistGradientBoosting", model
        took = now - start
        growth = 2 if took < LOOK_SECONDS / 2 else 0.5 if took > LOOK_SECONDS else 1
        if now + growth * took > until:
            return (
                f"HistGradientBoosting ({done} of {rounds} rounds, time was up)",
                model,
            )
        if now > told + TELL_SECONDS:
            told = now
            LOGGER.info("HistGradientBoosting: %d of %d rounds", done, rounds)
        step = max(1, int(growth * step))
        model.set_params(max_iter=min(rounds, done + step))


class WithoutRows:
    """Rows of a source less some, by their numbers.

    Parameters
    ----------
    source : source of rows
        Its blocks hold arrays.
    rows : ndarray of int, shape (n_left_out,)
        Numbers of the rows that are left out, sorted.
    until : float, default=inf
        When to raise `OutOfTime`, by `time.monotonic`.
    """

    feature_names = None

    #: Rows of a pass, if they are known.
    n_rows: int | None = None

    def __init__(self, source: Any, rows: np.ndarray, until: float = np.inf) -> None:
        self.source, self.rows, self.until = source, rows, until

    def stamps(self) -> dict:
        """Size and modification time of the files, if there are any."""
        return self.source.stamps()

    def __iter__(self) -> Iterator[Block]:
        start = 0
        for block in self.source:
            if time.monotonic() > self.until:
                raise OutOfTime
            n = len(block.X)
            first, last = np.searchsorted(self.rows, [start, start + n])
            kept = np.ones(n, dtype=bool)
            kept[self.rows[first:last] - start] = False
            start += n
            yield block._replace(X=block.X[kept], y=block.y[kept])
