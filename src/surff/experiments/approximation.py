r"""Errors of kernel approximations against s: every draw and every landmark rule.

The kernel matrix K of 1,000 rows is compared with :math:`Z Z^\top` in three ways:
:math:`\|K - Z Z^\top\| / \|K\|` in the spectral and the Frobenius norm, and
:math:`\Delta`, the smallest number with

.. math:: (1 - \Delta)(K + \alpha I) \preceq Z Z^\top + \alpha I
          \preceq (1 + \Delta)(K + \alpha I),

which decides about ridge regression with that alpha. Every method has 2 s columns: s
frequencies, or 2 s landmarks. A combination
that a kernel, a number of columns or a size does not allow is stored with the reason in
place of the errors, and every output tells it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np

import surff
from surff import FourierFeatures, NystroemFeatures
from surff.datasets import DATASETS, load
from surff.experiments.figure1 import N_ROWS
from surff.experiments.figures import approximation_figure
from surff.experiments.methods import DRAW_LABELS, LANDMARKS
from surff.experiments.protocol import Part, seed_sequence, standardised, timed
from surff.experiments.registry import REGISTRY
from surff.experiments.runner import (
    Experiment,
    Last,
    Trial,
    check_names,
    in_order,
    run,
)
from surff.experiments.statistics import Summary, summarise
from surff.experiments.store import ResultStore
from surff.experiments.table import (
    MISSING,
    Report,
    Table,
    format_seconds,
    format_summary,
)
from surff.kernels import KERNELS

__all__ = [
    "DRAW_NAMES",
    "ERRORS",
    "FIT_ROWS",
    "Approximation",
    "approximation_captions",
    "approximation_report",
    "load_rows",
    "map_features",
    "run_approximation",
    "trial_part",
    "trial_rows",
]

#: Values of ``draw``.
DRAW_NAMES = tuple(name for name in DRAW_LABELS if not name.startswith("nystroem-"))

#: Rows that maps are fitted to, at most: more change no error. The errors are taken on
#: some of them.
FIT_ROWS = 10_000

#: Errors in the order of the tables, with their printed names.
ERRORS = {"spectral": "spectral", "frobenius": "Frobenius", "delta": "Delta"}


#: Largest number of features d, and of frequencies s, of a draw, and why.
LARGEST: dict[str, dict[str, Any]] = REGISTRY["largest"]


@dataclass(frozen=True)
class Approximation(Experiment):
    r"""What to run.

    Attributes
    ----------
    dataset : str
        Name in `surff.datasets`.
    kernel : str
        Value of ``kernel`` of `surff.FourierFeatures`.
    draws : tuple of str
        Values of ``draw`` of `surff.FourierFeatures`.
    landmarks : tuple of str
        Values of ``landmarks`` of `surff.NystroemFeatures`; may be empty.
    multiples : tuple of int
        Numbers of frequencies s in multiples of the number of columns d, >= 1.
    trials : int
        Repetitions, >= 1.
    gamma : {"scale", "median"} or float
        Bandwidth, > 0.
    alpha : float
        Regularisation in Delta, > 0, relative to the number of rows: the paper's
        :math:`\lambda`.
    seed : int
        Seed of all random choices, >= 0.

    Raises
    ------
    ValueError
        A name or number is not valid; the message lists what is.
    """

    KEY: ClassVar = (
        *("dataset", "kernel", "gamma", "alpha"),
        *("method", "multiple", "trial", "seed"),
    )
    ORDER: ClassVar = ("method", "multiple", "trial")

    dataset: str = "eeg"
    kernel: str = "rbf"
    draws: tuple[str, ...] = DRAW_NAMES
    landmarks: tuple[str, ...] = tuple(LANDMARKS)
    multiples: tuple[int, ...] = (1, 2, 4, 8, 16, 32)
    trials: int = 10
    gamma: str | float = "scale"
    alpha: float = 1e-3
    seed: int = 0

    def __post_init__(self) -> None:
        check_names("dataset", (self.dataset,), DATASETS)
        check_names("kernel", (self.kernel,), KERNELS)
        if not self.draws + self.landmarks:
            raise ValueError("draws and landmarks must have at least one item.")
        if self.draws:
            check_names("draws", self.draws, DRAW_NAMES)
        if self.landmarks:
            check_names("landmarks", self.landmarks, LANDMARKS)
        self.check_numbers()
        if self.gamma not in ("scale", "median") and not _positive(self.gamma):
            raise ValueError(
                f"gamma must be 'scale', 'median' or positive, got {self.gamma!r}."
            )
        if not _positive(self.alpha):
            raise ValueError(f"alpha must be positive, got {self.alpha!r}.")

    @property
    def methods(self) -> tuple[str, ...]:
        """Names of the methods in the order of the tables."""
        wanted = {*self.draws, *(f"nystroem-{rule}" for rule in self.landmarks)}
        return in_order(wanted, DRAW_LABELS)

    def plan(self) -> Iterator[tuple[str, int, int, Sequence[str]]]:
        """See `Experiment`; every size of a trial before the next trial."""
        for trial in range(self.trials):
            for multiple in self.multiples:
                yield self.dataset, multiple, trial, self.methods

    def cost(self, dataset: str, multiple: int, methods: Sequence[str]) -> float:
        """See `Experiment`; the norms of n by n matrices cost the same at any size."""
        s = multiple * DATASETS[dataset].n_features
        return len(methods) * (1e9 + 1e6 * s + 5.0 * s**3)


def _positive(value):
    return isinstance(value, (int, float)) and 0.0 < value < math.inf


class Rows(NamedTuple):
    """Rows of a data set, its columns standardised."""

    name: str
    X: np.ndarray  # (n_samples, n_features)


def load_rows(name: str) -> Rows:
    """Load all rows of a data set with columns standardised as in ``fair``.

    Parameters
    ----------
    name : str
        Name in `surff.datasets`; the first of its parts is taken.

    Returns
    -------
    Rows
    """
    X = np.asarray(load(name).X, dtype=np.float64)
    part = standardised(Part(X, None, X[:0], None), clip=name == "eeg")
    return Rows(name, part.X)


# -- running ---------------------------------------------------------------------------


def run_approximation(
    config: Approximation, store: ResultStore, verbose: Any = 0
) -> None:
    """Run the trials that are missing and store each as it ends.

    Parameters
    ----------
    config : Approximation
    store : ResultStore
        With ``Approximation.KEY`` as its key; gains the rows.
    verbose : int, bool or callable, default=0
        Whether to show progress, see `surff.backend.watched`.

    Raises
    ------
    DatasetNotFoundError, DatasetCorruptError
        The data set cannot be had.
    KeyboardInterrupt
        Passed on; finished trials are stored.
    """

    def load_warm(name):
        data = load_rows(name)
        _warm_up(config, data.X[:64])
        return data

    rows = Last(load_warm)
    parts = Last(lambda name, trial: trial_part(rows(name), config, trial))

    def run_trial(trial):
        part = parts(trial.dataset, trial.trial)
        return trial_rows(rows(trial.dataset), config, trial, part)

    run(config, store, run_trial, verbose)


class TrialPart(NamedTuple):
    """Rows of one trial and what the errors of all sizes are taken against."""

    fit: np.ndarray  # (n_fit, n_features)
    sample: np.ndarray  # (n_rows, n_features)
    gamma: float
    errors: Any  # surff.inspection.KernelErrors


def trial_part(data: Rows, config: Approximation, trial: int) -> TrialPart:
    """Rows of a trial, the same at every size, and their exact kernel."""
    rng = np.random.default_rng(seed_sequence(config.seed, data, trial))
    fit = data.X[rng.permutation(len(data.X))[:FIT_ROWS]]
    sample = fit[:N_ROWS]
    gamma = FourierFeatures(2, gamma=config.gamma).fit(fit).gamma_
    K = KERNELS[config.kernel]().kernel(sample, gamma=gamma)
    errors = surff.inspection.KernelErrors(K, config.alpha * len(sample))
    return TrialPart(fit, sample, gamma, errors)


def trial_rows(
    data: Rows, config: Approximation, trial: Trial, part: TrialPart
) -> list[dict]:
    """Errors and generation times of the methods in one trial.

    Parameters
    ----------
    data : Rows
    config : Approximation
    trial : Trial
        Its methods are run.
    part : TrialPart
        Of that trial.

    Returns
    -------
    rows : list of dict
        With the names in ``KEY``, and either those in ``ERRORS`` and
        ``generation_time``, the seconds to draw or choose and to map the rows once, or
        the reason ``left_out``.
    """
    n_features = part.fit.shape[1]
    s = trial.multiple * n_features
    seeds = seed_sequence(config.seed, data, trial.trial, trial.multiple)
    map_seed = int(np.random.default_rng(seeds).integers(2**31))
    found = []
    for method in trial.methods:
        row = {
            **config.row_of(config.dataset, trial.multiple, trial.trial, method),
            "n_frequencies": s,
            "n_rows": len(part.sample),
            "n_fit": len(part.fit),
            "gamma_": part.gamma,
        }
        reason = out_of_range(method, s, n_features, len(part.fit))
        if reason is None:
            features = map_features(method, 2 * s, config.kernel, part.gamma, map_seed)
            try:
                Z, seconds = timed(_generate, features, part.fit, part.sample)
                row |= {**part.errors(Z), "generation_time": seconds}
            except (TypeError, ValueError) as error:  # the draw does not allow this
                reason = str(error)
        found.append(row if reason is None else {**row, "left_out": reason})
    return found


def out_of_range(method, n_frequencies, n_features, n_fit):
    """Reason why a method is of no use at a size that it allows, or None."""
    for symbol, size in (("d", n_features), ("s", n_frequencies)):
        largest, why = LARGEST[symbol].get(method, (math.inf, ""))
        if size > largest:
            return f"{symbol} = {size:,} is above {largest:,}: {why}."
    if method.startswith("nystroem") and 2 * n_frequencies >= n_fit:
        return f"2 s = {2 * n_frequencies:,} landmarks are all of {n_fit:,} rows."
    return None


def map_features(
    method: str, n_components: int, kernel: str, gamma: float, random_state: int
) -> FourierFeatures | NystroemFeatures:
    """The transformer of a method."""
    shared = {"kernel": kernel, "gamma": gamma, "random_state": random_state}
    if method in DRAW_NAMES:
        return FourierFeatures(n_components, draw=method, **shared)
    rule = method.removeprefix("nystroem-")
    return NystroemFeatures(n_components, landmarks=rule, **shared)


def _generate(features, fit, sample):
    return features.fit(fit).transform(sample)


def _warm_up(config, X):
    """Compile or load what the methods need before anything is timed."""
    for method in config.methods:
        with suppress(TypeError, ValueError):  # the reason is stored later
            _generate(map_features(method, 8, config.kernel, 1.0, 0), X, X)


# -- rendering -------------------------------------------------------------------------


def approximation_captions(config: Approximation, rows: Sequence[dict]) -> list[str]:
    """Sentences that say what the tables and the picture show.

    Parameters
    ----------
    config : Approximation
    rows : sequence of dict
        At least one.

    Returns
    -------
    sentences : list of str
        The errors, the methods, the data, and the combinations left out with reasons.
    """
    row = rows[0]
    n, n_fit = row["n_rows"], row["n_fit"]
    n_trials = len({row["trial"] for row in rows})
    trials = "1 trial" if n_trials == 1 else f"{n_trials} trials"
    gammas = [row["gamma_"] for row in rows]
    gamma = f"{gammas[0]:.3g}" + ("" if gammas[0] == gammas[-1] else " or so")
    rule = f" ({config.gamma})" if isinstance(config.gamma, str) else ""
    texts, eeg = REGISTRY["captions"]["approximation"], config.dataset == "eeg"
    facts = {
        "n": n,
        "n_fit": n_fit,
        "alpha": config.alpha,
        "alpha_n": config.alpha * n,
        "clipped": texts["clipped"] if eeg else "",
        "gamma": gamma,
        "rule": rule,
        "trials": trials,
        "seed": config.seed,
    }
    sentences = (texts[name].format(**facts) for name in ("errors", "columns", "means"))
    return [*sentences, *_left_out_texts(rows)]


def _left_out_texts(rows):
    sizes = {}
    for row in rows:
        if "left_out" in row:
            found = sizes.setdefault((row["left_out"], row["method"]), {})
            found[_size(row["multiple"])] = None
    methods = {}
    for (reason, method), found in sizes.items():
        methods.setdefault((reason, ", ".join(found)), []).append(DRAW_LABELS[method])
    return [
        f"Left out: {', '.join(names)} at {where}: {reason.rstrip('.')}."
        for (reason, where), names in methods.items()
    ]


def _size(multiple):
    return "d" if multiple == 1 else f"{multiple}d"


class Cell(NamedTuple):
    """One method at one size, over its trials."""

    errors: dict[str, Summary]
    seconds: float


def summaries(rows: Sequence[dict]) -> dict[tuple[str, int], Cell]:
    """Boil trials down to cells.

    Parameters
    ----------
    rows : sequence of dict
        Rows without errors are skipped.

    Returns
    -------
    cells : dict
        Maps ``(method, multiple)`` to `Cell`, in the order of the rows.
    """
    trials: dict[tuple[str, int], list[dict]] = {}
    for row in rows:
        if "left_out" not in row:
            trials.setdefault((row["method"], row["multiple"]), []).append(row)
    return {
        key: Cell(
            {name: summarise([row[name] for row in found]) for name in ERRORS},
            float(np.median([row["generation_time"] for row in found])),
        )
        for key, found in trials.items()
    }


def _grid(config, rows):
    """Table of the errors and of the time."""
    cells = summaries(rows)
    shown = [m for m in config.methods if any(key[0] == m for key in cells)]
    body = []
    for name in (*ERRORS, "time"):
        for method in shown:
            found = [cells.get((method, multiple)) for multiple in config.multiples]
            label = ERRORS.get(name, name) if method == shown[0] else ""
            body.append([label, DRAW_LABELS[method], *(_text(c, name) for c in found)])
    return Table(
        ["", "method", *map(_size, config.multiples)],
        body,
        f"{config.dataset}, kernel {config.kernel}: error by s",
        section=len(shown),
        n_labels=2,
    )


def _text(cell, name):
    if cell is None:
        return MISSING
    if name == "time":
        return format_seconds(cell.seconds)
    return format_summary(cell.errors[name], ".3g", ".1g")


def _numbers(rows):
    """Table of every number in full."""
    keys = ["dataset", "kernel", "alpha", "method", "multiple", "n_frequencies"]
    spreads = [column for name in ERRORS for column in (name, f"{name}_std")]
    cells, numbers = summaries(rows), {}
    for row in rows:
        place = row["method"], row["multiple"]
        if place in numbers:
            continue
        numbers[place] = [row[name] for name in keys]
        if place in cells:
            cell = cells[place]
            values = [x for s in cell.errors.values() for x in (s.mean, s.std)]
            numbers[place] += [cell.errors["delta"].n, *values, cell.seconds, ""]
        else:
            numbers[place] += [0, *[""] * (len(spreads) + 1), row["left_out"]]
    header = [*keys, "trials", *spreads, "generation_time", "left_out"]
    return Table(header, list(numbers.values()))


def approximation_report(config: Approximation, rows: Sequence[dict]) -> Report:
    """Table, numbers and picture.

    Parameters
    ----------
    config : Approximation
    rows : sequence of dict
        As `select_rows` returns, at least one.

    Returns
    -------
    Report
        ``approximation-<dataset>-<kernel>.md``, ``.tex`` and ``.csv``, and ``.png`` and
        ``.svg`` where there is anything to draw.
    """
    stem = f"approximation-{config.dataset}-{config.kernel}"
    table, sentences = _grid(config, rows), approximation_captions(config, rows)
    drawn = [row for row in rows if "left_out" not in row]
    draw = partial(approximation_figure, drawn, config, sentences)
    return Report(
        stem,
        table.title,
        [table],
        sentences,
        _numbers(rows),
        latex=stem,
        figures={stem: draw} if drawn else {},
    )
