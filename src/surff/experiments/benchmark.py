r"""A public benchmark: what each method reaches, at what size, time and model bytes.

The unit is a trial: one split of one data set, one number of frequencies, one method
tuned, fitted and tested. Every method is tuned by the same rule on the training rows
alone, and its time includes the tuning:

- kernel methods: gamma uphill in the score of 5 folds from ``1 / d``, on at most
  10,000 rows and 32 d frequencies, then alpha on all rows by 5 folds; adaptations start
  from the gamma of plain RFF, and "auto" finds its own;
- exact kernel ridge: gamma and alpha by 3 folds on 2,000 rows, then a fit to at most
  20,000; xRFM, where it is installed, likewise: bandwidth and form of its metric, and
  rounds until a tenth of the rows no longer improves;
- boosting (scikit-learn's and, where it is installed, XGBoost's) and the multilayer
  perceptron: a small grid by 3 folds on at most 10,000 rows, and rounds or epochs until
  a tenth of the rows no longer improves.

Columns are standardised by training statistics, EEG clipped at 10 interquartile ranges
first; or, where a task says so, replaced by their normal scores. Scores are accuracies,
or R2 for a regression.

Every method runs on one thread, and its times are processor time: what an idle machine
would take, whatever else runs. So several processes may share out the tasks and write
to one store.
"""

import pickle
import time
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    StratifiedKFold,
    train_test_split,
)
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.preprocessing import LabelBinarizer, QuantileTransformer
from threadpoolctl import threadpool_limits

from surff.datasets import DATASETS, load
from surff.estimators import KernelRidgeClassifier, KernelRidgeRegressor
from surff.experiments.methods import PEERS, all_methods, features_of, why_not
from surff.experiments.protocol import (
    GAMMA_ROWS,
    Part,
    choose_gamma,
    seed_sequence,
    some_rows,
    standardised,
)
from surff.experiments.store import row_key, store_trials
from surff.experiments.table2 import Silent, Trial, check_at_least, check_names

__all__ = [
    "KERNEL_METHODS",
    "KEY",
    "SUITES",
    "TASKS",
    "Benchmark",
    "EarlyStoppedXGBoost",
    "EarlyStoppedXRFM",
    "ExactKernelRidge",
    "Task",
    "load_task",
    "method_labels",
    "run_benchmark",
    "select_rows",
    "split_rows",
    "trial_row",
]

#: What tells rows apart.
KEY = ("dataset", "method", "multiple", "trial", "seed")


class TaskDescription(NamedTuple):
    """Where a task comes from and how its rows are split."""

    dataset: str
    parts: tuple = (None,)  # with two, the first is for training and the second to test
    chunks: int = 0  # > 0: runs of consecutive rows that stay together
    scores: bool = False  # normal scores in place of standardised columns


#: Tasks by name. Rows of EEG are one recording: random halves leave to the training
#: part the neighbours in time of every row to test, "eeg-time" keeps twenty stretches
#: together. Columns of magic04 have heavy tails: "magic04-scores" makes them normal.
TASKS = {
    "eeg": TaskDescription("eeg"),
    "eeg-time": TaskDescription("eeg", chunks=20),
    "magic04": TaskDescription("magic04"),
    "magic04-scores": TaskDescription("magic04", scores=True),
    "cod-rna": TaskDescription("cod-rna", ("train", "paper-test")),
    "covtype": TaskDescription("covtype"),
    "letter": TaskDescription("letter"),
    "ijcnn1": TaskDescription("ijcnn1", ("train", "test")),
    "california-housing": TaskDescription("california-housing"),
    "breast_cancer": TaskDescription("breast_cancer"),
    "digits": TaskDescription("digits"),
}

#: Tasks by suite.
SUITES = {
    "core": tuple(TASKS)[:-2],
    "embedded": tuple(TASKS)[-2:],
}

#: Methods of surff in the benchmark.
KERNEL_METHODS = (
    "rff",
    "orthogonal",
    "sobol",
    "leverage",
    "surrogate",
    "eerf",
    "residual",
    "agop",
    "gradient",
    "auto",
    "nystroem-uniform",
    "nystroem-rpcholesky",
)

#: Peers that have no number of frequencies; they run once a split.
WITHOUT_SIZE = ("boosting", "xgboost", "kernel-ridge", "xrfm")

#: Peers with a matrix of all rows by all rows.
EXACT = ("kernel-ridge", "xrfm")

#: Rows that these are tuned on and fitted to, at most, and xRFM's in one matrix.
EXACT_TUNING_ROWS, EXACT_ROWS, LEAF_ROWS = 2_000, 20_000, 10_000

#: Normal scores end here, in standard deviations: those of 1,000 rows would.
LARGEST_SCORE = 3.0

#: Grids of the peers.
BOOSTING_GRID = {"learning_rate": [0.05, 0.2], "max_leaf_nodes": [15, 63]}
XGBOOST_GRID = {"learning_rate": [0.05, 0.2], "max_depth": [6, 10]}
XRFM_GRID = {"bandwidth": [3.0, 10.0, 30.0], "diagonal": [False, True]}
MLP_GRID = {"alpha": [1e-5, 1e-2], "learning_rate_init": [1e-3, 1e-2]}


def method_labels():
    """Names and printed names of the methods, in table order."""
    return {**{name: all_methods()[name] for name in KERNEL_METHODS}, **PEERS}


@dataclass(frozen=True)
class Benchmark:
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
        Of everything random, >= 0.

    Raises
    ------
    ValueError
        A name or number is not one of those; the message lists what is.
    """

    tasks: tuple[str, ...] = SUITES["core"]
    methods: tuple[str, ...] = (*KERNEL_METHODS, *PEERS)
    multiples: tuple[int, ...] = (1, 4, 16)
    splits: int = 10
    seed: int = 0

    def __post_init__(self):
        labels = method_labels()
        check_names("tasks", self.tasks, TASKS)
        check_names("methods", self.methods, labels)
        if not self.multiples:
            raise ValueError("multiples must have at least one number, got none.")
        check_at_least("splits", self.splits, 1)
        check_at_least("seed", self.seed, 0)
        for multiple in self.multiples:
            check_at_least("multiples", multiple, 1)
        order = [name for name in labels if name in self.methods]
        object.__setattr__(self, "tasks", tuple(dict.fromkeys(self.tasks)))
        object.__setattr__(self, "methods", tuple(order))
        object.__setattr__(self, "multiples", tuple(sorted(set(self.multiples))))

    def sizes(self, task, method):
        """Multiples at which a method runs; 0 for one that has no number."""
        if method in WITHOUT_SIZE:
            return (0,)
        d = DATASETS[TASKS[task].dataset].n_features
        return tuple(m for m in self.multiples if not why_not(method, d, m))


class Task(NamedTuple):
    """Rows of a task, as they are in the source."""

    name: str
    X: np.ndarray  # (n_samples, n_features)
    y: np.ndarray  # labels as class numbers, or targets
    classification: bool
    n_train: int | None  # first rows, for training, where the source divides them
    chunks: int


def load_task(name):
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
    dataset, parts, chunks, _ = TASKS[name]
    loaded = [load(dataset, part) for part in parts]
    X = np.concatenate([np.asarray(part.X, dtype=np.float64) for part in loaded])
    y = np.concatenate([part.y for part in loaded])
    classification = not np.issubdtype(y.dtype, np.floating)
    if classification:
        y = np.unique(y, return_inverse=True)[1]
    n_train = len(loaded[0].y) if len(parts) > 1 else None
    return Task(name, X, y, classification, n_train, chunks)


def split_rows(task, trial, seed):
    """Training and test rows of a trial.

    Parameters
    ----------
    task : Task
    trial, seed : int

    Returns
    -------
    train, test : ndarray of int
        Random halves, halves of stretches of rows, or the source's own division, which
        is the same in every trial.
    """
    n = len(task.y)
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
    return order[: n // 2], order[n // 2 :]


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


# -- methods ---------------------------------------------------------------------------


class Fitted(NamedTuple):
    """A tuned and fitted model."""

    model: object
    tune_time: float  # seconds, of which
    fit_time: float  # seconds, tuning included


def fit_kernel_method(method, part, classification, multiple, fold_seed, map_seed):
    """Tune and fit a method of surff by the rule of the module."""
    n_features = part.X.shape[1]
    if classification:
        folds = StratifiedKFold(5, shuffle=True, random_state=fold_seed)
        model = KernelRidgeClassifier(cv=folds, keep_equations=False)
    else:
        folds = KFold(5, shuffle=True, random_state=fold_seed)
        model = KernelRidgeRegressor(cv=folds, keep_equations=False)

    def features_at(method, gamma, multiple, n_samples):
        return features_of(
            method, "fair", n_features, multiple, gamma, map_seed, n_samples
        )

    start = time.process_time()
    gamma, _ = choose_gamma(
        model, method, features_at, part.X, part.y, multiple, fold_seed
    )
    tune_time = time.process_time() - start
    model.set_params(features=features_at(method, gamma, multiple, len(part.y)))
    model.fit(part.X, part.y)
    return Fitted(model, tune_time, time.process_time() - start)


class Scored(BaseEstimator):
    """A model for class numbers or numbers, as its ``classification`` says."""

    def score(self, X, y):
        """Accuracy or R2."""
        return _score(self.predict(X), y, self.classification)


class ExactKernelRidge(Scored):
    """Kernel ridge on the whole kernel matrix, for numbers or class labels.

    Parameters
    ----------
    gamma : float, default=1.0
        Bandwidth of the Gaussian kernel.
    alpha : float, default=1.0
        Regularisation.
    classification : bool, default=True
        Labels, one against the rest, or numbers.
    """

    def __init__(self, gamma=1.0, alpha=1.0, classification=True):
        self.gamma = gamma
        self.alpha = alpha
        self.classification = classification

    def fit(self, X, y):
        """Solve for the coefficients of the rows, ``O(n^3)``."""
        self.ridge_ = KernelRidge(kernel="rbf", gamma=self.gamma, alpha=self.alpha)
        if self.classification:
            self.labels_ = LabelBinarizer(neg_label=-1)
            y = self.labels_.fit_transform(y).astype(np.float64)
        self.offset_ = y.mean(axis=0)
        self.ridge_.fit(X, y - self.offset_)
        return self

    def predict(self, X):
        """Labels or numbers, some rows at a time."""
        blocks = np.array_split(np.arange(len(X)), len(X) // 2000 + 1)
        found = np.concatenate([self.ridge_.predict(X[rows]) for rows in blocks])
        found = found + self.offset_
        return self.labels_.inverse_transform(found) if self.classification else found


class EarlyStoppedXGBoost(Scored):
    """XGBoost that stops when a tenth of the rows, held out, no longer improves.

    Parameters
    ----------
    learning_rate : float, default=0.1
    max_depth : int, default=6
    classification : bool, default=True
        Class numbers, or numbers.
    seed : int, default=0
        Of the rows held out.
    """

    def __init__(self, learning_rate=0.1, max_depth=6, classification=True, seed=0):
        self.learning_rate = learning_rate
        self.max_depth = max_depth
        self.classification = classification
        self.seed = seed

    def fit(self, X, y):
        """At most 1,000 rounds on one thread."""
        import xgboost

        self.classes_ = np.unique(y) if self.classification else None
        if self.classification:
            y = np.searchsorted(self.classes_, y)
        X, X_held, y, y_held = _with_held(X, y, self.classification, self.seed)
        kind = xgboost.XGBClassifier if self.classification else xgboost.XGBRegressor
        self.model_ = kind(
            n_estimators=1000,
            learning_rate=self.learning_rate,
            max_depth=self.max_depth,
            early_stopping_rounds=10,
            n_jobs=1,
        )
        self.model_.fit(X, y, eval_set=[(X_held, y_held)], verbose=False)
        return self

    def predict(self, X):
        """Labels or numbers."""
        found = self.model_.predict(X)
        return self.classes_[found] if self.classification else found


class EarlyStoppedXRFM(Scored):
    """xRFM with the rounds that do best on a tenth of the rows, held out.

    Parameters
    ----------
    bandwidth : float, default=10.0
        Of its Laplace kernel.
    diagonal : bool, default=False
        Metric of the columns' scales alone.
    classification : bool, default=True
        Class numbers, or numbers.
    seed : int, default=0
        Of the rows held out, and its own.
    """

    def __init__(self, bandwidth=10.0, diagonal=False, classification=True, seed=0):
        self.bandwidth = bandwidth
        self.diagonal = diagonal
        self.classification = classification
        self.seed = seed

    def fit(self, X, y):
        """At most 5 rounds on one thread, in float32."""
        import torch
        from xrfm import xRFM

        self.classes_ = np.unique(y) if self.classification else None
        y = np.searchsorted(self.classes_, y) if self.classification else y[:, None]
        X, X_held, y, y_held = _with_held(X, y, self.classification, self.seed)
        kernel = {
            "kernel": "l2",
            "bandwidth": self.bandwidth,
            "exponent": 1.0,
            "diag": self.diagonal,
            "bandwidth_mode": "constant",
        }
        rounds = {"reg": 1e-3, "iters": 5, "verbose": False, "early_stop_rfm": True}
        torch.set_num_threads(1)
        self.model_ = xRFM(
            rfm_params={"model": kernel, "fit": rounds},
            max_leaf_size=LEAF_ROWS,
            device="cpu",
            tuning_metric="accuracy" if self.classification else "mse",
            n_threads=1,
            random_state=self.seed,
            verbose=False,
        )
        kind = np.int64 if self.classification else np.float32
        self.model_.fit(
            X.astype(np.float32), y.astype(kind),
            X_held.astype(np.float32), y_held.astype(kind),
        )  # fmt: skip
        return self

    def predict(self, X):
        """Labels or numbers."""
        found = np.ravel(self.model_.predict(X.astype(np.float32)))
        return self.classes_[found] if self.classification else found


def _with_held(X, y, classification, seed):
    """Rows to fit, a tenth of the rows to stop by, and the targets of both."""
    return train_test_split(
        X, y, test_size=0.1, random_state=seed, stratify=y if classification else None
    )


def _score(predicted, y, classification):
    if classification:
        return float(np.mean(predicted == y))
    return float(1.0 - np.mean((y - predicted) ** 2) / np.var(y))


def fit_peer(method, part, classification, multiple, fold_seed, map_seed):
    """Tune and fit a method to compare with by the rule of the module."""
    d = part.X.shape[1]
    n_rows = EXACT_TUNING_ROWS if method in EXACT else GAMMA_ROWS
    if method == "boosting":
        kind = (
            HistGradientBoostingClassifier
            if classification
            else HistGradientBoostingRegressor
        )
        model = kind(max_iter=1000, early_stopping=True, random_state=map_seed)
        grid = BOOSTING_GRID
    elif method == "xgboost":
        model = EarlyStoppedXGBoost(classification=classification, seed=map_seed)
        grid = XGBOOST_GRID
    elif method == "mlp":
        kind = MLPClassifier if classification else MLPRegressor
        model = kind(
            hidden_layer_sizes=(2 * multiple * d,), early_stopping=True, max_iter=200,
            random_state=map_seed,
        )  # fmt: skip
        grid = MLP_GRID
    elif method == "xrfm":
        model = EarlyStoppedXRFM(classification=classification, seed=map_seed)
        grid = XRFM_GRID
    else:
        model = ExactKernelRidge(classification=classification)
        grid = {
            "gamma": 4.0 ** np.arange(-4.0, 3.0) / d,
            "alpha": 10.0 ** np.arange(-4.0, 2.0),
        }
    rng = np.random.default_rng(fold_seed)
    start = time.process_time()
    X, y = some_rows(part.X, part.y, n_rows, classification, fold_seed)
    folds = StratifiedKFold if classification else KFold
    search = GridSearchCV(
        model, grid, cv=folds(3, shuffle=True, random_state=fold_seed), refit=False
    )
    search.fit(X, y)
    tune_time = time.process_time() - start
    rows = slice(None)
    if method in EXACT and len(part.y) > EXACT_ROWS:
        rows = np.sort(rng.permutation(len(part.y))[:EXACT_ROWS])
    model.set_params(**search.best_params_).fit(part.X[rows], part.y[rows])
    return Fitted(model, tune_time, time.process_time() - start)


# -- running ---------------------------------------------------------------------------


def row_of(config, task, multiple, trial, method):
    """The part of a row that ``KEY`` looks at, as a dict."""
    return {
        "dataset": task,
        "method": method,
        "multiple": multiple,
        "trial": trial,
        "seed": config.seed,
    }


def missing_trials(config, store):
    """Trials that are not stored yet, every method of a split before the next split.

    Parameters
    ----------
    config : Benchmark
    store : ResultStore

    Returns
    -------
    trials : list of Trial
        One method each.
    """
    trials = []
    for task in config.tasks:
        description = DATASETS[TASKS[task].dataset]
        n, d = sum(description.n_samples.values()), description.n_features
        for trial in range(config.splits):
            for method in config.methods:
                if method in PEERS and why_not(method, d, 0):
                    continue  # not installed here; rows of it may be stored
                for multiple in config.sizes(task, method):
                    key = row_key(row_of(config, task, multiple, trial, method), KEY)
                    if key not in store:
                        s = max(multiple, 4) * d
                        cost = 1e8 + n * s * (s + 150.0) + 20.0 * s**3
                        trials.append(Trial(task, multiple, trial, (method,), cost))
    return trials


def run_benchmark(config, store, progress=None):
    """Run the trials that are missing and store each as it ends.

    Parameters
    ----------
    config : Benchmark
    store : ResultStore
        With ``KEY`` as its key; gains the rows.
    progress : Silent or another object with its methods, optional

    Raises
    ------
    DatasetNotFoundError, DatasetCorruptError
        A data set cannot be had.
    KeyboardInterrupt
        Passed on; what was finished is stored.
    """
    task = part = None

    def run_trial(trial):
        nonlocal task, part
        if task is None or task.name != trial.dataset:
            task = part = None  # two data sets are never held at once
            task = load_task(trial.dataset)
        if part is None or part[0] != trial.trial:
            part = trial.trial, prepared(task, trial.trial, config.seed)
        return [trial_row(task, part[1], config, trial)]

    progress = Silent() if progress is None else progress
    with threadpool_limits(1):
        store_trials(missing_trials(config, store), run_trial, store, progress)


def trial_row(task, part, config, trial):
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
        With the names in ``KEY``, ``score``, ``fit_time`` (s of the processor,
        tuning included), ``tune_time``, ``predict_time`` (s for all test rows),
        ``model_bytes`` (of the pickled model), ``n_frequencies``, ``n_train`` and
        ``n_test``.
    """
    (method,) = trial.methods
    seeds = seed_sequence(config.seed, task, trial.trial, trial.multiple)
    fold_seed, map_seed = np.random.default_rng(seeds).integers(2**31, size=2)
    fit = fit_peer if method in PEERS else fit_kernel_method
    fitted = fit(
        method, part, task.classification, trial.multiple, int(fold_seed), int(map_seed)
    )
    start = time.process_time()
    predicted = fitted.model.predict(part.test_X)
    predict_time = time.process_time() - start
    return {
        **row_of(config, task.name, trial.multiple, trial.trial, method),
        "score": _score(predicted, part.test_y, task.classification),
        "fit_time": fitted.fit_time,
        "tune_time": fitted.tune_time,
        "predict_time": predict_time,
        "model_bytes": len(pickle.dumps(fitted.model)),
        "n_frequencies": trial.multiple * part.X.shape[1],
        "n_train": len(part.y),
        "n_test": len(part.test_y),
    }


def select_rows(config, rows):
    """Rows that belong to a run, of all that a store holds.

    Parameters
    ----------
    config : Benchmark
    rows : sequence of dict

    Returns
    -------
    rows : list of dict
        Ordered by task, method, multiple and trial.
    """
    by_key = {row_key(row, KEY): row for row in rows}
    keys = (
        row_key(row_of(config, task, multiple, trial, method), KEY)
        for task in config.tasks
        for method in config.methods
        for multiple in config.sizes(task, method)
        for trial in range(config.splits)
    )
    return [by_key[key] for key in keys if key in by_key]
