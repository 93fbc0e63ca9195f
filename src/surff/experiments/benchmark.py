r"""A public benchmark: what each method reaches, at what size, time and model bytes.

The unit is a trial: one split of one data set, one number of frequencies, one method
tuned, fitted and tested. Every method is tuned by the same rule on the training rows
alone, and its time includes the tuning:

- kernel methods: gamma uphill in the score of 5 folds from ``1 / d``, on at most
  10,000 rows and 32 d frequencies, then alpha on all rows by 5 folds; adaptations start
  from the gamma of plain RFF, and "auto" finds its own; "auto-gcv" chooses alpha by
  generalised cross-validation, so that frequencies are learned once and not for each
  fold again;
- methods of other libraries: see `surff.experiments.peers`.

Columns are standardised by training statistics, EEG clipped at 10 interquartile ranges
first; or, where a task says so, replaced by their normal scores. Scores are accuracies,
or R2 for a regression.

Every method runs on one thread, and its times are processor time: what an idle machine
would take, whatever else runs. So several processes may share the tasks and write to
one store.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.preprocessing import QuantileTransformer
from threadpoolctl import threadpool_limits

from surff import KernelRidgeClassifier, KernelRidgeRegressor
from surff.datasets import DATASETS, load, load_masks
from surff.experiments.methods import (
    ON_AUTO,
    OWN,
    PEERS,
    all_methods,
    own_labels,
    why_not,
)
from surff.experiments.peers import Fitted, fit_peer, score_of
from surff.experiments.protocol import (
    Part,
    choose_gamma,
    features_maker,
    seed_sequence,
    standardised,
)
from surff.experiments.registry import REGISTRY
from surff.experiments.runner import (
    Experiment,
    Last,
    Trial,
    check_names,
    gram_cost,
    in_order,
    run,
)
from surff.experiments.store import ResultStore

__all__ = [
    "KERNEL_METHODS",
    "SUITES",
    "TASKS",
    "WITHOUT_SIZE",
    "Benchmark",
    "OwnData",
    "Task",
    "TaskDescription",
    "has_masks",
    "is_regression",
    "load_task",
    "method_labels",
    "run_benchmark",
    "split_rows",
    "trial_row",
    "without_size",
]


class OwnData(NamedTuple):
    """Data of a user, see `surff.experiments.add_task`."""

    X: np.ndarray  # (n_samples, n_features)
    y: np.ndarray  # (n_samples,), floats for a regression


class TaskDescription(NamedTuple):
    """Where a task comes from and how its rows are split."""

    dataset: str
    parts: tuple[str | None, ...] = (None,)  # or one for training and one to test
    chunks: int = 0  # > 0: runs of consecutive rows that stay together
    scores: bool = False  # normal scores in place of standardised columns
    train: float = 0.5  # share of the rows for training, of random splits
    own: OwnData | None = None  # data of a user

    @classmethod
    def from_table(cls, name: str, parts: Sequence = (None,), **more: Any) -> Self:
        """Make a task from its table in the registry."""
        return cls(**{"dataset": name, **more}, parts=tuple(parts))


_TASKS = {
    suite: {
        name: TaskDescription.from_table(name, **table) for name, table in tasks.items()
    }
    for suite, tasks in REGISTRY["tasks"].items()
}
_TASKS["uci"] = {
    name: TaskDescription(name) for name, data in DATASETS.items() if data.masks
}

#: Tasks by name; `surff.experiments.add_task` adds to them.
TASKS = {name: task for suite in _TASKS.values() for name, task in suite.items()}

#: Tasks by suite.
SUITES = {name: tuple(suite) for name, suite in _TASKS.items()}

#: Methods of surff in the benchmark.
KERNEL_METHODS = tuple(REGISTRY["benchmark"]["kernel_methods"])

#: Peers that have no number of frequencies; they run once per split.
WITHOUT_SIZE = tuple(REGISTRY["benchmark"]["without_size"])

#: Masks of test rows that each set of the suite "uci" comes with.
N_MASKS = 10

#: Normal scores end here, in standard deviations: those of 1,000 rows would.
LARGEST_SCORE = 3.0


def method_labels() -> dict[str, str]:
    """Names and printed names of the methods, in table order."""
    labels = {**all_methods(), **ON_AUTO}
    own = {**own_labels(estimators=False), **own_labels(estimators=True)}
    return {**{name: labels[name] for name in KERNEL_METHODS}, **PEERS, **own}


def without_size(method: str) -> bool:
    """Whether a method has no number of frequencies, and runs once per split."""
    return method in WITHOUT_SIZE or method in own_labels(estimators=True)


def shape_of(task: str) -> tuple[int, int]:
    """Rows and columns of a task."""
    if (own := TASKS[task].own) is not None:
        return own.X.shape
    data = DATASETS[TASKS[task].dataset]
    return sum(data.n_samples.values()), data.n_features


@dataclass(frozen=True)
class Benchmark(Experiment):
    """What to run.

    Attributes
    ----------
    tasks : tuple of str
        Keys of ``TASKS``.
    methods : tuple of str
        Names in `method_labels`.
    multiples : tuple of int
        Numbers of frequencies s in multiples of the number of columns d, >= 1.
    splits : int
        Repetitions, >= 1.
    seed : int
        Seed of all random choices, >= 0.

    Raises
    ------
    ValueError
        A name or number is not valid; the message lists what is.
    """

    KEY: ClassVar = ("dataset", "method", "multiple", "trial", "seed")
    ORDER: ClassVar = ("dataset", "method", "multiple", "trial")

    tasks: tuple[str, ...] = SUITES["core"]
    methods: tuple[str, ...] = (*KERNEL_METHODS, *PEERS)
    multiples: tuple[int, ...] = (1, 4, 16)
    splits: int = 10
    seed: int = 0

    def __post_init__(self) -> None:
        check_names("tasks", self.tasks, TASKS)
        check_names("methods", self.methods, method_labels())
        self.check_numbers("splits")
        for task in self.tasks:
            if has_masks(task) and self.splits > N_MASKS:
                raise ValueError(
                    f"splits must be at most {N_MASKS} on {task}, which has as many "
                    f"masks of test rows, got {self.splits}."
                )
        object.__setattr__(self, "tasks", tuple(dict.fromkeys(self.tasks)))
        object.__setattr__(self, "methods", in_order(self.methods, method_labels()))

    def sizes(self, task: str, method: str) -> tuple[int, ...]:
        """Multiples at which a method runs; 0 for one that has no number."""
        if without_size(method):
            return (0,)
        _, d = shape_of(task)
        return tuple(m for m in self.multiples if not why_not(method, d, m))

    def can_run(self, method: str) -> bool:
        """See `Experiment`."""
        return method not in PEERS or why_not(method, 1, 1) is None

    def plan(self) -> Iterator[tuple[str, int, int, Sequence[str]]]:
        """See `Experiment`; one method per trial, all of a split before the next."""
        for task in self.tasks:
            for trial in range(self.splits):
                for method in self.methods:
                    for multiple in self.sizes(task, method):
                        yield task, multiple, trial, (method,)

    def cost(self, dataset: str, multiple: int, methods: Sequence[str]) -> float:
        """See `Experiment`; methods without a size count as 4 d."""
        n, d = shape_of(dataset)
        s = max(multiple, 4) * d
        return len(methods) * gram_cost(n, s)


def is_regression(task: str) -> bool:
    """Whether the score of a task is R2."""
    if (own := TASKS[task].own) is not None:
        return bool(np.issubdtype(own.y.dtype, np.floating))
    return not DATASETS[TASKS[task].dataset].classes


def has_masks(task: str) -> bool:
    """Whether the test rows of each split come with the data."""
    description = TASKS[task]
    return description.own is None and bool(DATASETS[description.dataset].masks)


class Task(NamedTuple):
    """Rows of a task, as they are in the source."""

    name: str
    X: np.ndarray  # (n_samples, n_features)
    y: np.ndarray  # labels as class numbers, or targets
    classification: bool
    n_train: int | None  # first rows, for training, where the source divides them
    chunks: int
    train: float = 0.5  # share of the rows of random splits
    masks: np.ndarray | None = None  # (n_samples, N_MASKS), True for test rows


def load_task(name: str) -> Task:
    """Load a task of the benchmark.

    Parameters
    ----------
    name : str
        Key of ``TASKS``.

    Returns
    -------
    Task

    Raises
    ------
    ValueError
        For an unknown name; the message lists the valid ones.
    """
    if name not in TASKS:
        raise ValueError(f"task must be one of {', '.join(TASKS)}, got {name!r}.")
    dataset, parts, chunks, _, share, own = TASKS[name]
    loaded = [load(dataset, part) for part in parts] if own is None else [own]
    X = np.concatenate([np.asarray(part.X, dtype=np.float64) for part in loaded])
    y = np.concatenate([part.y for part in loaded])
    classification = not np.issubdtype(y.dtype, np.floating)
    if classification:
        y = np.unique(y, return_inverse=True)[1]
    n_train = len(loaded[0].y) if len(parts) > 1 else None
    masks = load_masks(dataset) if has_masks(name) else None
    return Task(name, X, y, classification, n_train, chunks, share, masks)


def split_rows(task: Task, trial: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Training and test rows of a trial.

    Parameters
    ----------
    task : Task
    trial, seed : int

    Returns
    -------
    train, test : ndarray of int
        Random halves or other shares, halves of stretches of rows, the mask of the
        trial, or the source's own division, which is the same in every trial.
    """
    n = len(task.y)
    if task.masks is not None:
        mask = task.masks[:, trial]
        return np.flatnonzero(~mask), np.flatnonzero(mask)
    if task.n_train is not None:
        return np.arange(task.n_train), np.arange(task.n_train, n)
    rng = np.random.default_rng(seed_sequence(seed, task, trial))
    if task.chunks:
        stretches = np.array_split(np.arange(n), task.chunks)
        order = rng.permutation(task.chunks)
        half = task.chunks // 2
        return tuple(
            np.concatenate([stretches[i] for i in np.sort(side)])
            for side in (order[:half], order[half:])
        )
    order = rng.permutation(n)
    n_train = int(n * task.train)
    return order[:n_train], order[n_train:]


def prepared(task, trial, seed):
    """Split and standardised data of a trial."""
    train, test = split_rows(task, trial, seed)
    y = task.y.astype(np.float64) if not task.classification else task.y
    part = Part(task.X[train], y[train], task.X[test], y[test])
    if not task.classification:  # R2 does not mind, and networks do
        centre, width = part.y.mean(), part.y.std()
        part = part._replace(
            y=(part.y - centre) / width, test_y=(part.test_y - centre) / width
        )
    description = TASKS[task.name]
    if description.scores:
        return normal_scores(part)
    return standardised(part, clip=description.dataset == "eeg")


def normal_scores(part):
    """Columns whose values have normal quantiles in place of the training part's."""
    n_quantiles = min(1000, len(part.X))
    scores = QuantileTransformer(
        n_quantiles=n_quantiles, output_distribution="normal", subsample=None
    ).fit(part.X)

    def within(X):
        return scores.transform(X).clip(-LARGEST_SCORE, LARGEST_SCORE)

    return part._replace(X=within(part.X), test_X=within(part.test_X))


# -- running ---------------------------------------------------------------------------


def fit_kernel_method(method, part, classification, multiple, fold_seed, map_seed):
    """Tune and fit a method of surff by the rule of the module."""
    kind, folds = KernelRidgeRegressor, KFold
    if classification:
        kind, folds = KernelRidgeClassifier, StratifiedKFold
    cv = folds(5, shuffle=True, random_state=fold_seed)
    options = {"leaves": {"leaves": "auto"}, "auto-gcv": {"cv": "gcv"}}.get(method, {})
    model = kind(**{"cv": cv, "keep_equations": False, **options})
    features_at = features_maker(part, "fair", map_seed)
    start = time.process_time()
    gamma, _ = choose_gamma(
        model, method, features_at, part.X, part.y, multiple, fold_seed
    )
    tune_time = time.process_time() - start
    model.set_params(features=features_at(method, gamma, multiple, len(part.y)))
    model.fit(part.X, part.y)
    return Fitted(model, tune_time, time.process_time() - start)


def fit_own(method, part, classification, multiple, fold_seed, map_seed):
    """Fit a whole estimator of a user, which tunes itself."""
    del classification, multiple, fold_seed
    model = clone(OWN[method].part)
    if "random_state" in model.get_params(deep=False):
        model.set_params(random_state=map_seed)
    start = time.process_time()
    model.fit(part.X, part.y)
    return Fitted(model, 0.0, time.process_time() - start)


def run_benchmark(config: Benchmark, store: ResultStore, verbose: Any = 0) -> None:
    """Run the trials that are missing and store each as it ends.

    Parameters
    ----------
    config : Benchmark
    store : ResultStore
        With ``Benchmark.KEY`` as its key; gains the rows.
    verbose : int, bool or callable, default=0
        Whether to show progress, see `surff.backend.watched`.

    Raises
    ------
    DatasetNotFoundError, DatasetCorruptError
        A data set cannot be had.
    KeyboardInterrupt
        Passed on; finished trials are stored.
    """
    tasks = Last(load_task)
    parts = Last(lambda name, trial: prepared(tasks(name), trial, config.seed))

    def run_trial(trial):
        part = parts(trial.dataset, trial.trial)
        return [trial_row(tasks(trial.dataset), part, config, trial)]

    with threadpool_limits(1):
        run(config, store, run_trial, verbose)


def trial_row(task: Task, part: Part, config: Benchmark, trial: Trial) -> dict:
    """Score, times and size of one method in one trial.

    Parameters
    ----------
    task : Task
    part : Part
        Its data, as `prepared` returns.
    config : Benchmark
    trial : Trial
        With one method.

    Returns
    -------
    row : dict
        With the names in ``KEY``, ``score``, ``fit_time`` (seconds of the processor,
        tuning included), ``tune_time``, ``predict_time`` (seconds for all test rows),
        ``model_bytes`` (of the pickled model), ``n_frequencies``, ``n_train`` and
        ``n_test``; for a regression ``rmse``, the root mean square error in standard
        deviations of the training targets.
    """
    (method,) = trial.methods
    seeds = seed_sequence(config.seed, task, trial.trial, trial.multiple)
    fold_seed, map_seed = np.random.default_rng(seeds).integers(2**31, size=2)
    fit = fit_kernel_method
    if without_size(method) or method in PEERS:
        fit = fit_peer if method in PEERS else fit_own
    fitted = fit(
        method, part, task.classification, trial.multiple, int(fold_seed), int(map_seed)
    )
    start = time.process_time()
    predicted = fitted.model.predict(part.test_X)
    predict_time = time.process_time() - start
    score = {"score": score_of(predicted, part.test_y, task.classification)}
    if not task.classification:
        score["rmse"] = float(np.sqrt(np.mean((predicted - part.test_y) ** 2)))
    return {
        **config.row_of(task.name, trial.multiple, trial.trial, method),
        **score,
        "fit_time": fitted.fit_time,
        "tune_time": fitted.tune_time,
        "predict_time": predict_time,
        "model_bytes": len(pickle.dumps(fitted.model)),
        "n_frequencies": trial.multiple * part.X.shape[1],
        "n_train": len(part.y),
        "n_test": len(part.test_y),
    }
