"""The paper's Table 2: accuracy and generation time of four methods on four data sets.

`Table2` says what to run, `run_table2` runs the part that a `ResultStore` does not hold
yet, and `table2_report` shows what it holds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from surff.datasets import DATASETS
from surff.experiments.figures import methods_figure, table2_figure
from surff.experiments.methods import ABLATION, METHODS, all_methods, why_not
from surff.experiments.printed import printed_table
from surff.experiments.protocol import PROBLEMS, PROTOCOLS, load_problem
from surff.experiments.render import (
    captions,
    cells_in_full,
    dataset_table,
    latex_caption,
    method_captions,
    method_table,
    picture_caption,
    summary_cells,
)
from surff.experiments.runner import (
    Experiment,
    Last,
    check_names,
    gram_cost,
    in_order,
    run,
)
from surff.experiments.store import KEY, ResultStore
from surff.experiments.table import Report

__all__ = [
    "DATASET_NAMES",
    "LARGEST_MULTIPLE",
    "MULTIPLES",
    "WEIGHTS",
    "Table2",
    "run_table2",
    "table2_report",
]

#: The paper's data sets.
DATASET_NAMES = ("eeg", "magic04", "cod-rna", "covtype")

#: The paper's numbers of frequencies, in multiples of d.
MULTIPLES = (1, 2, 4, 8, 16, 32, 64, 128)

#: Readings of the weights of the protocol ``published``.
WEIGHTS = ("own", "sorted")

#: Largest multiple that a data set runs at unless ``large`` is asked for: at 128 d,
#: the Gram matrices of covtype's folds alone take 9 GB.
LARGEST_MULTIPLE = {"covtype": 16}


@dataclass(frozen=True)
class Table2(Experiment):
    """What to run.

    Attributes
    ----------
    datasets : tuple of str
        Keys of `surff.experiments.protocol.PROBLEMS`.
    multiples : tuple of int
        Numbers of frequencies s in multiples of the number of columns d, >= 1.
    trials : int
        Repetitions, >= 1.
    protocol : str
        Key of `surff.experiments.protocol.PROTOCOLS`.
    weights : {"own", "sorted"}
        Reading of the weights; "sorted" for the protocol ``published`` alone.
    ablation : bool
        Two more rows, RFF with alpha / (2 s) and RFF with a wide grid; ``published``
        alone.
    methods : tuple of str
        Names of `surff.experiments.methods`; those that the paper does not compare run
        under ``fair`` alone.
    seed : int
        Seed of all random choices, >= 0.
    large : bool
        Run the multiples above ``LARGEST_MULTIPLE`` too.

    Raises
    ------
    ValueError
        A name or number is not valid; the message lists what is.
    """

    KEY: ClassVar = KEY

    datasets: tuple[str, ...] = DATASET_NAMES
    multiples: tuple[int, ...] = MULTIPLES
    trials: int = 10
    protocol: str = "published"
    weights: str = "own"
    ablation: bool = False
    methods: tuple[str, ...] = tuple(METHODS)
    seed: int = 0
    large: bool = False

    def __post_init__(self) -> None:
        check_names("datasets", self.datasets, PROBLEMS)
        check_names("methods", self.methods, all_methods())
        check_names("protocol", (self.protocol,), PROTOCOLS)
        check_names("weights", (self.weights,), WEIGHTS)
        self.check_numbers()
        self._check_protocol()
        object.__setattr__(self, "datasets", tuple(dict.fromkeys(self.datasets)))
        object.__setattr__(self, "methods", in_order(self.methods, all_methods()))

    def _check_protocol(self):
        got = f"got protocol={self.protocol!r}."
        if self.more and self.protocol != "fair":
            raise ValueError(
                f"methods that the paper does not compare ({', '.join(self.more)}) run "
                f"under the protocol 'fair', {got}"
            )
        if self.weights != "own" and self.protocol != "published":
            raise ValueError(
                f"weights={self.weights!r} is a reading of the protocol 'published', "
                f"{got}"
            )
        if self.ablation and self.protocol != "published":
            raise ValueError(f"ablation takes the protocol 'published' apart, {got}")

    @property
    def all_methods(self) -> tuple[str, ...]:
        """Names of the methods and, if asked for, of the ablation."""
        return (*self.methods, *(ABLATION if self.ablation else ()))

    @property
    def more(self) -> tuple[str, ...]:
        """Names of the methods that the paper does not compare."""
        return tuple(method for method in self.methods if method not in METHODS)

    def methods_at(self, dataset: str, multiple: int) -> tuple[str, ...]:
        """Names in `all_methods` of the methods that have a map of that size."""
        d = DATASETS[dataset].n_features
        return tuple(m for m in self.all_methods if not why_not(m, d, multiple))

    def multiples_of(self, dataset: str) -> tuple[int, ...]:
        """Multiples that a data set runs at."""
        largest = LARGEST_MULTIPLE.get(dataset)
        if self.large or largest is None:
            return self.multiples
        return tuple(multiple for multiple in self.multiples if multiple <= largest)

    def left_out(self) -> dict[str, tuple[int, ...]]:
        """Multiples asked for that do not run without ``large``, by data set."""
        runs = {name: self.multiples_of(name) for name in self.datasets}
        missing = {
            name: tuple(m for m in self.multiples if m not in runs[name])
            for name in self.datasets
        }
        return {name: multiples for name, multiples in missing.items() if multiples}

    def plan(self) -> Iterator[tuple[str, int, int, Sequence[str]]]:
        """See `Experiment`."""
        for dataset in self.datasets:
            for multiple in self.multiples_of(dataset):
                for trial in range(self.trials):
                    yield dataset, multiple, trial, self.methods_at(dataset, multiple)

    def cost(self, dataset: str, multiple: int, methods: Sequence[str]) -> float:
        """See `Experiment`."""
        data = DATASETS[dataset]
        n, s = sum(data.n_samples.values()), multiple * data.n_features
        return len(methods) * gram_cost(n, s)


def run_table2(config: Table2, store: ResultStore, verbose: Any = 0) -> None:
    """Run the trials that are missing and store each as it ends.

    Parameters
    ----------
    config : Table2
    store : ResultStore
        Gains the rows.
    verbose : int, bool or callable, default=0
        Whether to show progress, see `surff.backend.watched`.

    Raises
    ------
    DatasetNotFoundError, DatasetCorruptError
        A data set cannot be had.
    KeyboardInterrupt
        Passed on; finished trials are stored.
    """
    problems = Last(load_problem)

    def run_trial(trial):
        return PROTOCOLS[config.protocol](
            problems(trial.dataset),
            trial.multiple,
            trial.trial,
            trial.methods,
            weights=config.weights,
            seed=config.seed,
        )

    run(config, store, run_trial, verbose)


def table2_report(config: Table2, rows: Sequence[dict]) -> Report:
    """Tables, numbers and pictures, one of each per data set.

    Parameters
    ----------
    config : Table2
    rows : sequence of dict
        As `select_rows` returns, at least one.

    Returns
    -------
    Report
        ``table2.md``, ``.tex`` and ``.csv``, and ``table2-<dataset>.png`` and ``.svg``.
        A table of more than the paper's methods has a row for each, no printed cells,
        and is named ``methods`` instead of ``table2``.
    """
    stem = "methods" if config.more else "table2"
    printed = {} if config.more else printed_table()
    cells = summary_cells(rows, printed)
    datasets = dict.fromkeys(row["dataset"] for row in rows)
    if config.more:
        title = f"All methods, protocol {config.protocol}"
        tables = [method_table(cells, dataset) for dataset in datasets]
        sentences = method_captions(config, rows)
        figures = {name: partial(methods_figure, cells, name) for name in datasets}
    else:
        title = f"Table 2, protocol {config.protocol}"
        tables = [dataset_table(cells, dataset) for dataset in datasets]
        sentences = captions(config, rows)
        figures = {}
        for name in datasets:
            own = [row for row in rows if row["dataset"] == name]
            sentences_of = picture_caption(config, own)
            draw = partial(table2_figure, own, printed, name, config, sentences_of)
            figures[name] = draw
    return Report(
        stem,
        title,
        tables,
        sentences,
        cells_in_full(cells, config),
        latex=f"{stem}-{config.protocol}",
        latex_captions={
            name: latex_caption(config, [row for row in rows if row["dataset"] == name])
            for name in datasets
        },
        figures={f"{stem}-{name}": draw for name, draw in figures.items()},
    )
