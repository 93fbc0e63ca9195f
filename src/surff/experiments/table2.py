"""The paper's Table 2: accuracy and generation time of four methods on four data sets.

`Table2` says what to run, `run_table2` runs what a `ResultStore` does not hold yet, and
`write_table2` renders what it holds. The unit is a trial, one random split and one draw
of frequencies for every method, whose rows are stored together: a run stopped at any
point goes on there, with the same numbers as if it had not been stopped.
"""

from dataclasses import dataclass
from typing import NamedTuple

from surff.datasets import DATASETS
from surff.experiments.figures import save, table2_figure
from surff.experiments.method_table import write_methods
from surff.experiments.methods import METHODS, MORE, all_methods, why_not
from surff.experiments.protocol import ABLATION, PROBLEMS, PROTOCOLS, load_problem
from surff.experiments.render import (
    captions,
    csv_table,
    latex_table,
    markdown_table,
    summary_cells,
)
from surff.experiments.store import row_key

__all__ = [
    "DATASET_NAMES",
    "LARGEST_MULTIPLE",
    "MULTIPLES",
    "WEIGHTS",
    "Silent",
    "Table2",
    "Trial",
    "check_at_least",
    "check_names",
    "missing_trials",
    "row_of",
    "run_table2",
    "select_rows",
    "write_table2",
]

#: The paper's data sets, and its numbers of frequencies in multiples of d.
DATASET_NAMES = ("eeg", "magic04", "cod-rna", "covtype")
MULTIPLES = (1, 2, 4, 8, 16, 32, 64, 128)

#: Readings of the weights of the protocol ``published``.
WEIGHTS = ("own", "sorted")

#: Largest multiple that a data set runs at unless ``large`` is asked for: at 128 d,
#: the Gram matrices of covtype's folds alone take 9 GB.
LARGEST_MULTIPLE = {"covtype": 16}


@dataclass(frozen=True)
class Table2:
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
        Of everything random, >= 0.
    large : bool
        Run the multiples above ``LARGEST_MULTIPLE`` too.

    Raises
    ------
    ValueError
        A name or number is not one of those; the message lists what is.
    """

    datasets: tuple[str, ...] = DATASET_NAMES
    multiples: tuple[int, ...] = MULTIPLES
    trials: int = 10
    protocol: str = "published"
    weights: str = "own"
    ablation: bool = False
    methods: tuple[str, ...] = tuple(METHODS)
    seed: int = 0
    large: bool = False

    def __post_init__(self):
        check_names("datasets", self.datasets, PROBLEMS)
        check_names("methods", self.methods, all_methods())
        check_names("protocol", (self.protocol,), PROTOCOLS)
        check_names("weights", (self.weights,), WEIGHTS)
        for multiple in self.multiples:
            check_at_least("multiples", multiple, 1)
        check_at_least("trials", self.trials, 1)
        check_at_least("seed", self.seed, 0)
        if not self.multiples:
            raise ValueError("multiples must have at least one number, got none.")
        if self.more and self.protocol != "fair":
            raise ValueError(
                f"methods that the paper does not compare ({', '.join(self.more)}) run "
                f"under the protocol 'fair', got protocol={self.protocol!r}."
            )
        if self.protocol != "published":
            if self.weights != "own":
                raise ValueError(
                    f"weights={self.weights!r} is a reading of the protocol "
                    f"'published', got protocol={self.protocol!r}."
                )
            if self.ablation:
                raise ValueError(
                    "ablation takes the protocol 'published' apart, got "
                    f"protocol={self.protocol!r}."
                )
        # In the order of the table, once each.
        order = {name: i for i, name in enumerate(all_methods())}
        methods = sorted(set(self.methods), key=order.get)
        object.__setattr__(self, "datasets", tuple(dict.fromkeys(self.datasets)))
        object.__setattr__(self, "methods", tuple(methods))
        object.__setattr__(self, "multiples", tuple(sorted(set(self.multiples))))

    @property
    def all_methods(self):
        """Names of the methods and, if asked for, of the ablation."""
        return (*self.methods, *(ABLATION if self.ablation else ()))

    @property
    def more(self):
        """Names of the methods that the paper does not compare."""
        return tuple(method for method in self.methods if method in MORE)

    def methods_at(self, dataset, multiple):
        """Those of `all_methods` that have a map of a size."""
        d = DATASETS[dataset].n_features
        return tuple(m for m in self.all_methods if not why_not(m, d, multiple))

    def multiples_of(self, dataset):
        """Multiples that a data set runs at."""
        largest = LARGEST_MULTIPLE.get(dataset)
        if self.large or largest is None:
            return self.multiples
        return tuple(multiple for multiple in self.multiples if multiple <= largest)

    def left_out(self):
        """Multiples asked for that do not run without ``large``, by data set."""
        runs = {name: self.multiples_of(name) for name in self.datasets}
        missing = {
            name: tuple(m for m in self.multiples if m not in runs[name])
            for name in self.datasets
        }
        return {name: multiples for name, multiples in missing.items() if multiples}


def check_names(argument, names, valid):
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


def check_at_least(argument, value, least):
    """Refuse what is not an integer of at least ``least``.

    Parameters
    ----------
    argument : str
        What the message calls it.
    value : object
    least : int
    """
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ValueError(
            f"{argument} must be an integer of at least {least}, got {value!r}."
        )


class Trial(NamedTuple):
    """One call of a protocol that is still to be made.

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


def _cost(dataset, multiple, n_methods):
    # Only ratios matter: the bar tells the time left from them. Gram matrices grow as
    # n s^2, maps as n s, solving as s^3; a trial costs something however small it is.
    description = DATASETS[dataset]
    n = sum(description.n_samples.values())
    s = multiple * description.n_features
    return n_methods * (1e8 + n * s * (s + 150.0) + 20.0 * s**3)


def row_of(config, dataset, multiple, trial, method):
    """The part of a row that `surff.experiments.store.row_key` looks at, as a dict."""
    return {
        "protocol": config.protocol,
        "dataset": dataset,
        "weights": config.weights,
        "method": method,
        "multiple": multiple,
        "trial": trial,
        "seed": config.seed,
    }


def _key(config, *where):
    return row_key(row_of(config, *where))


def missing_trials(config, store):
    """Trials that are not stored yet, in the order in which they run.

    Parameters
    ----------
    config : Table2
    store : ResultStore

    Returns
    -------
    trials : list of Trial
    """
    trials = []
    for dataset in config.datasets:
        for multiple in config.multiples_of(dataset):
            for trial in range(config.trials):
                methods = tuple(
                    method
                    for method in config.methods_at(dataset, multiple)
                    if _key(config, dataset, multiple, trial, method) not in store
                )
                if methods:
                    cost = _cost(dataset, multiple, len(methods))
                    trials.append(Trial(dataset, multiple, trial, methods, cost))
    return trials


class Silent:
    """Progress of a run that nobody watches; the interface that `run_table2` calls."""

    def start(self, trials):
        """Called once with the `Trial`s to run."""

    def begin(self, trial):
        """Called before each of them."""

    def done(self, trial, rows):
        """Called after each of them, its rows stored."""


def run_table2(config, store, progress=None):
    """Run the trials that are missing and store each as it ends.

    Parameters
    ----------
    config : Table2
    store : ResultStore
        Gains the rows.
    progress : Silent or another object with its methods, optional

    Raises
    ------
    DatasetNotFoundError, DatasetCorruptError
        A data set cannot be had.
    KeyboardInterrupt
        Passed on; what was finished is stored.
    """
    progress = Silent() if progress is None else progress
    run_trial = PROTOCOLS[config.protocol]
    trials = missing_trials(config, store)
    progress.start(trials)
    problem = None
    for trial in trials:
        progress.begin(trial)
        if problem is None or problem.name != trial.dataset:
            problem = None  # two data sets are never held at once
            problem = load_problem(trial.dataset)
        rows = run_trial(
            problem,
            trial.multiple,
            trial.trial,
            [method for method in trial.methods if method not in ABLATION],
            weights=config.weights,
            ablation=any(method in ABLATION for method in trial.methods),
            seed=config.seed,
        )
        rows = [row for row in rows if row["method"] in trial.methods]
        store.append(rows)
        progress.done(trial, rows)


def select_rows(config, rows):
    """Rows that belong to a table, of all that a store holds.

    Parameters
    ----------
    config : Table2
    rows : sequence of dict

    Returns
    -------
    rows : list of dict
        Ordered by data set, multiple, method and trial.
    """
    by_key = {row_key(row): row for row in rows}
    keys = (
        _key(config, dataset, multiple, trial, method)
        for dataset in config.datasets
        for multiple in config.multiples_of(dataset)
        for method in config.methods_at(dataset, multiple)
        for trial in range(config.trials)
    )
    return [by_key[key] for key in keys if key in by_key]


def write_table2(config, rows, out, printed):
    """Render rows into a directory: Markdown, LaTeX, CSV, and a picture a data set.

    A table of more than the paper's methods has a row for each and is named
    ``methods`` instead of ``table2``; see `surff.experiments.method_table`.

    Parameters
    ----------
    config : Table2
    rows : sequence of dict
        As `select_rows` returns, at least one.
    out : Path
        Directory; made if missing. ``table2.md``, ``table2.tex``, ``table2.csv`` and
        ``table2-<dataset>.png`` and ``.svg`` in it are written over.
    printed : dict
        As `surff.experiments.printed.printed_table` returns.

    Returns
    -------
    paths : list of Path
        The tables, then the pictures.
    """
    if config.more:
        return write_methods(config, rows, out)
    cells = summary_cells(rows, printed)
    sentences = captions(config, rows)
    out.mkdir(parents=True, exist_ok=True)
    texts = {
        "table2.md": markdown_table(cells, config, sentences),
        "table2.tex": latex_table(cells, config, sentences),
        "table2.csv": csv_table(cells, config),
    }
    paths = []
    for name, text in texts.items():
        (out / name).write_text(text, encoding="utf-8")
        paths.append(out / name)
    for dataset in dict.fromkeys(row["dataset"] for row in rows):
        figure = table2_figure(rows, printed, dataset, config)
        paths += save(figure, out / f"table2-{dataset}")
    return paths
