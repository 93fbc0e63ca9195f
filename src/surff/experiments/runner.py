"""One runner for every experiment: run the trials that a store lacks, keep each.

The unit is a trial, whose rows are stored together: a run stopped at any point goes on
there, with the same numbers as if it had not been stopped. An experiment is an object
with the interface of `Experiment`; `run` runs what is missing and `select_rows` finds
its rows among all that a store holds.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, ClassVar, NamedTuple

import surff
from surff.experiments.methods import NAMES
from surff.experiments.store import ResultStore, row_key

__all__ = [
    "Experiment",
    "Last",
    "Trial",
    "missing_trials",
    "run",
    "select_rows",
]


class Trial(NamedTuple):
    """One call of an experiment that is still to be made.

    Attributes
    ----------
    dataset : str
    multiple, trial : int
    methods : tuple of str
        Those whose rows are missing.
    cost : float
        Share of the time that it is expected to take, in units of its own.
    """

    dataset: str
    multiple: int
    trial: int
    methods: tuple[str, ...]
    cost: float


class Experiment(ABC):
    """What `run` and `select_rows` ask of an experiment; base class of the configs."""

    #: Names by whose values rows are told apart, in the store.
    KEY: ClassVar[tuple[str, ...]]

    #: Names of the methods, in the order of the tables.
    methods: tuple[str, ...]

    #: Numbers of frequencies s in multiples of the number of columns d.
    multiples: tuple[int, ...]

    #: Seed of all random choices.
    seed: int

    #: Names by which rows are sorted.
    ORDER: ClassVar[tuple[str, ...]] = ("dataset", "multiple", "method", "trial")

    @abstractmethod
    def plan(self) -> Iterator[tuple[str, int, int, Sequence[str]]]:
        """Yield data set, multiple, trial and methods, in the order in which they run.

        Every method that has rows is yielded, whether it can run here or not.
        """

    @abstractmethod
    def cost(self, dataset: str, multiple: int, methods: Sequence[str]) -> float:
        """Cost of a trial; only ratios matter, the time left is told from them."""

    @property
    def all_methods(self) -> tuple[str, ...]:
        """Names of the methods in the order of the tables."""
        return self.methods

    def can_run(self, method: str) -> bool:
        """Whether a method is installed here; its rows may be stored where not."""
        del method  # surff's own always are
        return True

    def row_of(self, dataset: str, multiple: int, trial: int, method: str) -> dict:
        """The part of a row that tells it apart."""
        row = {"dataset": dataset, "multiple": multiple, "trial": trial}
        row["method"] = method
        return {name: row.get(name, getattr(self, name, None)) for name in self.KEY}

    def check_numbers(self, repetitions: str = "trials") -> None:
        """Check the numbers of every experiment; put the multiples in order.

        Parameters
        ----------
        repetitions : str
            Name of the number of repetitions.
        """
        check_at_least(repetitions, getattr(self, repetitions), 1)
        check_at_least("seed", self.seed, 0)
        if not self.multiples:
            raise ValueError("multiples must have at least one number, got none.")
        for multiple in self.multiples:
            check_at_least("multiples", multiple, 1)
        object.__setattr__(self, "multiples", tuple(sorted(set(self.multiples))))


def missing_trials(config: Experiment, store: Collection) -> list[Trial]:
    """Trials that are not stored yet, in the order in which they run.

    Parameters
    ----------
    config : Experiment
    store : ResultStore
    """
    trials = []
    for dataset, multiple, trial, methods in config.plan():
        missing = tuple(
            method
            for method in methods
            if config.can_run(method)
            and row_key(config.row_of(dataset, multiple, trial, method), config.KEY)
            not in store
        )
        if missing:
            cost = config.cost(dataset, multiple, missing)
            trials.append(Trial(dataset, multiple, trial, missing, cost))
    return trials


def run(
    config: Experiment,
    store: ResultStore,
    run_trial: Callable[[Trial], list[dict]],
    verbose: Any = 0,
) -> None:
    """Run the trials that are missing and store the rows of each as it ends.

    A stage of work, see `surff.backend.stage`: the time left is the remaining cost at
    the mean speed since the end of the first trial, which pays for loading and
    compiling.

    Parameters
    ----------
    config : Experiment
    store : ResultStore
        With the key of the experiment; gains the rows.
    run_trial : callable
        Returns the rows of a trial.
    verbose : int, bool or callable, default=0
        Whether to show progress, see `surff.backend.watched`.

    Raises
    ------
    KeyboardInterrupt
        Passed on; finished trials are stored.
    """
    surff.backend.watched(verbose, None, run_missing, config, store, run_trial)


def run_missing(config, store, run_trial):
    """See `run`, under whose eyes this is."""
    trials = missing_trials(config, store)
    with surff.backend.stage("trials", sum(trial.cost for trial in trials)) as progress:
        for i, trial in enumerate(trials):
            progress.say("%s", name_of(trial))
            rows = run_trial(trial)
            store.append(rows)
            found = ", ".join(
                f"{NAMES.get(row['method'], row['method'])} {result_of(row)}"
                for row in rows
            )
            progress.say("%s: %s", name_of(trial), found)
            progress.advance(trial.cost, measured=i > 0)


def name_of(trial: Trial) -> str:
    """Name of a trial for those who watch."""
    size = f" s = {trial.multiple}d" if trial.multiple else ""
    return f"{trial.dataset}{size} trial {trial.trial + 1}"


def result_of(row: dict) -> str:
    """Result of a row in a word."""
    if "left_out" in row:
        return "left out"
    for name in ("error", "spectral"):
        if name in row:
            return f"error {row[name]:.3g}"
    return f"{100 * row['score' if 'score' in row else 'accuracy']:.2f}"


def select_rows(config: Experiment, rows: Sequence[dict]) -> list[dict]:
    """Rows that belong to an experiment, of all that a store holds.

    Parameters
    ----------
    config : Experiment
    rows : sequence of dict

    Returns
    -------
    rows : list of dict
        Sorted by the names in ``config.ORDER``.
    """
    by_key = {row_key(row, config.KEY): row for row in rows}
    places: dict[str, dict] = {name: {} for name in config.ORDER}
    found = []
    for dataset, multiple, trial, methods in config.plan():
        for method in methods:
            row = config.row_of(dataset, multiple, trial, method)
            for name, seen in places.items():
                seen.setdefault(row[name], len(seen))
            if (key := row_key(row, config.KEY)) in by_key:
                found.append(by_key[key])
    places["method"] = {name: i for i, name in enumerate(config.all_methods)}
    return sorted(found, key=lambda row: [places[n][row[n]] for n in config.ORDER])


class Last:
    """A function that keeps its last result: two data sets are never held at once.

    Parameters
    ----------
    function : callable
        Of hashable arguments.
    """

    def __init__(self, function: Callable) -> None:
        self._function = function
        self._args: tuple | None = None
        self._result: Any = None

    def __call__(self, *args: Any) -> Any:
        """Result for these arguments, computed if they differ from the last ones."""
        if args != self._args:
            self._args = self._result = None
            self._result = self._function(*args)
            self._args = args
        return self._result


def check_names(argument: str, names: Collection[str], valid: Collection[str]) -> None:
    """Refuse no names, and a name that is not valid; the message lists those that are.

    Parameters
    ----------
    argument : str
        What the message calls them.
    names : sequence of str
    valid : collection of str
    """
    if not names:
        raise ValueError(f"{argument} must name some of {', '.join(valid)}, got none.")
    for name in names:
        if name not in valid:
            raise ValueError(
                f"{argument} must be one of {', '.join(valid)}, got {name!r}."
            )


def check_at_least(argument: str, value: object, least: int) -> None:
    """Refuse what is not an integer of at least ``least``."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ValueError(
            f"{argument} must be an integer of at least {least}, got {value!r}."
        )


def gram_cost(n: int, s: int) -> float:
    """Cost of a fit: Gram matrices grow as n s^2, maps as n s, solving as s^3.

    A fit costs something however small it is.
    """
    return 1e8 + n * s * (s + 150.0) + 20.0 * s**3


def in_order(names: Collection[str], order: Collection[str]) -> tuple[str, ...]:
    """Names once each, in the order of the tables."""
    return tuple(name for name in order if name in names)
