r"""Errors of kernel approximations against s: every draw and every landmark rule.

The kernel matrix K of 1,000 rows is compared with :math:`Z Z^\top` in three ways:
:math:`\|K - Z Z^\top\| / \|K\|` in the spectral and the Frobenius norm, and
:math:`\Delta`, the smallest number with

.. math:: (1 - \Delta)(K + \alpha I) \preceq Z Z^\top + \alpha I
          \preceq (1 + \Delta)(K + \alpha I),

which decides about ridge regression with that alpha. Every method has 2 s columns: s
frequencies, or 2 s landmarks. What a kernel, a number of columns or a size does not
allow is stored with the reason in place of the errors, and said in every output.
"""

import csv
import io
import math
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from surff.datasets import DATASETS, load
from surff.draws import DRAWS
from surff.estimators import FourierFeatures, NystroemFeatures
from surff.experiments.figure1 import N_ROWS
from surff.experiments.figures import approximation_figure, save
from surff.experiments.protocol import Part, seed_sequence, standardised, timed
from surff.experiments.render import (
    DRAW_LABELS,
    MISSING,
    format_seconds,
    latex_float,
    markdown_grid,
    tex,
    tex_row,
)
from surff.experiments.statistics import Summary, summarise
from surff.experiments.store import row_key, store_trials
from surff.experiments.table2 import Silent, Trial
from surff.inspection import KernelErrors
from surff.kernels import KERNELS
from surff.selection import LANDMARK_RULES

__all__ = [
    "ERRORS",
    "FIT_ROWS",
    "KEY",
    "LANDMARKS",
    "Approximation",
    "Rows",
    "captions",
    "load_rows",
    "rich_approximation",
    "run_approximation",
    "select_rows",
    "trial_rows",
    "write_approximation",
]

#: What tells rows apart.
KEY = ("dataset", "kernel", "gamma", "alpha", "method", "multiple", "trial", "seed")

#: Rules that choose landmarks.
LANDMARKS = (*LANDMARK_RULES, "kmeans")

#: Rows that maps are fitted to, at most; the errors are taken on some of them.
FIT_ROWS = 10_000

#: Errors in the order of the tables, with their printed names.
ERRORS = {"spectral": "spectral", "frobenius": "Frobenius", "delta": "Delta"}

#: Largest number of features d of a draw, and why.
LARGEST_D = {
    "modified": (5, "the variance of its weights grows as (0.56 T)^d, T = 4"),
}

#: Largest number of frequencies s of a draw, and why.
LARGEST_S = {
    "reweighted": (2_000, "its fit takes O(s^3) time"),
    "sparse_grid": (2_000, "its fit takes O(s^3) time"),
}


@dataclass(frozen=True)
class Approximation:
    """What to run.

    Attributes
    ----------
    dataset : str
        Name in `surff.datasets`.
    kernel : str
        Key of `surff.kernels.KERNELS`.
    draws : tuple of str
        Keys of `surff.draws.DRAWS`.
    landmarks : tuple of str
        Names in ``LANDMARKS``; may be empty.
    multiples : tuple of int
        Numbers of frequencies s in multiples of the number of columns d, >= 1.
    trials : int
        Repetitions, >= 1.
    gamma : {"scale", "median"} or float
        Bandwidth, > 0.
    alpha : float
        Regularisation in Delta, > 0, relative to the number of rows: the paper's
        :math:`\\lambda`.
    seed : int
        Of everything random, >= 0.

    Raises
    ------
    ValueError
        A name or number is not one of those; the message lists what is.
    """

    dataset: str = "eeg"
    kernel: str = "rbf"
    draws: tuple[str, ...] = tuple(DRAWS)
    landmarks: tuple[str, ...] = LANDMARKS
    multiples: tuple[int, ...] = (1, 2, 4, 8, 16, 32)
    trials: int = 10
    gamma: str | float = "scale"
    alpha: float = 1e-3
    seed: int = 0

    def __post_init__(self):
        for argument, names, valid in (
            ("dataset", (self.dataset,), DATASETS),
            ("kernel", (self.kernel,), KERNELS),
            ("draws", self.draws, DRAWS),
            ("landmarks", self.landmarks, LANDMARKS),
        ):
            for name in names:
                if name not in valid:
                    raise ValueError(
                        f"{argument} must be one of {', '.join(valid)}, got {name!r}."
                    )
        numbers = [("trials", self.trials, 1), ("seed", self.seed, 0)]
        numbers += [("multiples", multiple, 1) for multiple in self.multiples]
        for argument, value, least in numbers:
            if not isinstance(value, int) or value < least:
                raise ValueError(
                    f"{argument} must be an integer of at least {least}, got {value!r}."
                )
        for argument, items in (
            ("multiples", self.multiples),
            ("draws and landmarks", self.draws + self.landmarks),
        ):
            if not items:
                raise ValueError(f"{argument} must have at least one item, got none.")
        if self.gamma not in ("scale", "median") and not _positive(self.gamma):
            raise ValueError(
                f"gamma must be 'scale', 'median' or positive, got {self.gamma!r}."
            )
        if not _positive(self.alpha):
            raise ValueError(f"alpha must be positive, got {self.alpha!r}.")
        object.__setattr__(self, "multiples", tuple(sorted(set(self.multiples))))

    @property
    def methods(self):
        """Names of the methods in the order of the tables."""
        wanted = {*self.draws, *map(landmark_method, self.landmarks)}
        return tuple(name for name in DRAW_LABELS if name in wanted)


def _positive(value):
    return isinstance(value, (int, float)) and 0.0 < value < math.inf


def landmark_method(rule):
    """Name of the method that a landmark rule is."""
    return f"nystroem-{rule}"


class Rows(NamedTuple):
    """Rows of a data set, its columns standardised."""

    name: str
    X: np.ndarray  # (n_samples, n_features)


def load_rows(name):
    """Load all rows of a data set, columns standardised as in the protocol ``fair``.

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


def row_of(config, multiple, trial, method):
    """The part of a row that ``KEY`` looks at, as a dict."""
    return {
        "dataset": config.dataset,
        "kernel": config.kernel,
        "gamma": config.gamma,
        "alpha": config.alpha,
        "method": method,
        "multiple": multiple,
        "trial": trial,
        "seed": config.seed,
    }


def missing_trials(config, store):
    """Trials that are not stored yet, every size of one before the next.

    Parameters
    ----------
    config : Approximation
    store : ResultStore

    Returns
    -------
    trials : list of Trial
    """
    trials = []
    for trial in range(config.trials):
        for multiple in config.multiples:
            methods = tuple(
                method
                for method in config.methods
                if row_key(row_of(config, multiple, trial, method), KEY) not in store
            )
            if methods:
                # The norms of n by n matrices cost the same at every size.
                s = multiple * DATASETS[config.dataset].n_features
                cost = len(methods) * (1e9 + 1e6 * s + 5.0 * s**3)
                trials.append(Trial(config.dataset, multiple, trial, methods, cost))
    return trials


def run_approximation(config, store, progress=None):
    """Run the trials that are missing and store each as it ends.

    Parameters
    ----------
    config : Approximation
    store : ResultStore
        With ``KEY`` as its key; gains the rows.
    progress : Silent or another object with its methods, optional

    Raises
    ------
    DatasetNotFoundError, DatasetCorruptError
        The data set cannot be had.
    KeyboardInterrupt
        Passed on; what was finished is stored.
    """
    progress = Silent() if progress is None else progress
    trials = missing_trials(config, store)
    data = load_rows(config.dataset) if trials else None
    part = None

    def run_trial(trial):
        nonlocal part
        if part is None:
            _warm_up(config, data.X[:64])
        if part is None or part.trial != trial.trial:
            part = trial_part(data, config, trial.trial)
        return trial_rows(data, config, trial, part)

    store_trials(trials, run_trial, store, progress)


class TrialPart(NamedTuple):
    """Rows of one trial and what the errors of all sizes are taken against."""

    trial: int
    fit: np.ndarray  # (n_fit, n_features)
    sample: np.ndarray  # (n_rows, n_features)
    gamma: float
    errors: KernelErrors


def trial_part(data, config, trial):
    """Rows of a trial, the same at every size, and their exact kernel."""
    rng = np.random.default_rng(seed_sequence(config.seed, data, trial))
    fit = data.X[rng.permutation(len(data.X))[:FIT_ROWS]]
    sample = fit[:N_ROWS]
    gamma = FourierFeatures(2, gamma=config.gamma).fit(fit).gamma_
    K = KERNELS[config.kernel]().kernel(sample, gamma=gamma)
    errors = KernelErrors(K, config.alpha * len(sample))
    return TrialPart(trial, fit, sample, gamma, errors)


def trial_rows(data, config, trial, part=None):
    """Errors and generation times of the methods in one trial.

    Parameters
    ----------
    data : Rows
    config : Approximation
    trial : Trial
        Its methods are computed.
    part : TrialPart, optional
        Of that trial, where it is at hand.

    Returns
    -------
    rows : list of dict
        With the names in ``KEY``, and either those in ``ERRORS`` and
        ``generation_time``, the seconds to draw or choose and to map the rows once, or
        the reason ``left_out``.
    """
    part = trial_part(data, config, trial.trial) if part is None else part
    n_features = part.fit.shape[1]
    n_frequencies = trial.multiple * n_features
    rng = np.random.default_rng(
        seed_sequence(config.seed, data, trial.trial, trial.multiple)
    )
    map_seed = int(rng.integers(2**31))
    found = []
    for method in trial.methods:
        row = {
            **row_of(config, trial.multiple, trial.trial, method),
            "n_frequencies": n_frequencies,
            "n_rows": len(part.sample),
            "n_fit": len(part.fit),
            "gamma_": part.gamma,
        }
        reason = out_of_range(method, n_frequencies, n_features, len(part.fit))
        if reason is None:
            features = features_of(
                method, 2 * n_frequencies, config.kernel, part.gamma, map_seed
            )
            try:
                Z, seconds = timed(_generate, features, part.fit, part.sample)
            except (TypeError, ValueError) as error:  # the draw does not allow this
                reason = str(error)
        if reason is None:
            row |= {**part.errors(Z), "generation_time": seconds}
        else:
            row["left_out"] = reason
        found.append(row)
    return found


def out_of_range(method, n_frequencies, n_features, n_fit):
    """Why a method is of no use at a size that it allows, or None."""
    for limits, size, symbol in (
        (LARGEST_D, n_features, "d"),
        (LARGEST_S, n_frequencies, "s"),
    ):
        largest, why = limits.get(method, (math.inf, ""))
        if size > largest:
            return f"{symbol} = {size:,} is above {largest:,}: {why}."
    if method.startswith("nystroem") and 2 * n_frequencies >= n_fit:
        return f"2 s = {2 * n_frequencies:,} landmarks are all of {n_fit:,} rows."
    return None


def features_of(method, n_components, kernel, gamma, random_state):
    """The transformer of a method."""
    if method in DRAWS:
        return FourierFeatures(
            n_components,
            kernel=kernel,
            gamma=gamma,
            draw=method,
            random_state=random_state,
        )
    return NystroemFeatures(
        n_components,
        kernel=kernel,
        gamma=gamma,
        landmarks=method.removeprefix("nystroem-"),
        random_state=random_state,
    )


def _generate(features, fit, sample):
    return features.fit(fit).transform(sample)


def _warm_up(config, X):
    """Compile or load what the methods need before anything is timed."""
    for method in config.methods:
        with suppress(TypeError, ValueError):  # what is not allowed is said later
            _generate(features_of(method, 8, config.kernel, 1.0, 0), X, X)


def select_rows(config, rows):
    """Rows that belong to a run, of all that a store holds.

    Parameters
    ----------
    config : Approximation
    rows : sequence of dict

    Returns
    -------
    rows : list of dict
        Ordered by method, multiple and trial.
    """
    by_key = {row_key(row, KEY): row for row in rows}
    keys = (
        row_key(row_of(config, multiple, trial, method), KEY)
        for method in config.methods
        for multiple in config.multiples
        for trial in range(config.trials)
    )
    return [by_key[key] for key in keys if key in by_key]


# -- rendering -------------------------------------------------------------------------


def captions(config, rows):
    """Sentences that say what the tables and the picture show.

    Parameters
    ----------
    config : Approximation
    rows : sequence of dict
        At least one.

    Returns
    -------
    sentences : list of str
        The errors, the methods, the data, and what is left out with the reasons.
    """
    row = rows[0]
    n, n_fit = row["n_rows"], row["n_fit"]
    n_trials = len({row["trial"] for row in rows})
    trials = "1 trial" if n_trials == 1 else f"{n_trials} trials"
    gammas = [row["gamma_"] for row in rows]
    gamma = f"{gammas[0]:.3g}" + ("" if gammas[0] == gammas[-1] else " or so")
    rule = f" ({config.gamma})" if isinstance(config.gamma, str) else ""
    clipped = ", clipped at 10 interquartile ranges from the median first"
    return [
        f"Errors of Z Z^T against the kernel matrix K of n = {n:,} rows: |K - Z Z^T| / "
        "|K| in the spectral and the Frobenius norm, and Delta, the smallest number "
        "with (1 - Delta)(K + alpha I) <= Z Z^T + alpha I <= (1 + Delta)(K + alpha I), "
        f"alpha = {config.alpha:g} n = {config.alpha * n:g}.",
        f"Every method has 2 s columns: s frequencies, or 2 s landmarks of {n_fit:,} "
        f"rows with the {n:,} among them. Columns standardised"
        f"{clipped if config.dataset == 'eeg' else ''}, gamma = {gamma}{rule}.",
        f"Means over {trials} (± one standard deviation where shown), seed "
        f"{config.seed}; time to draw or choose and to map the {n:,} rows, median.",
        *_left_out_texts(rows),
    ]


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


def summaries(rows):
    """Boil trials down to cells.

    Parameters
    ----------
    rows : sequence of dict
        Those left out are passed over.

    Returns
    -------
    cells : dict
        Maps ``(method, multiple)`` to `Cell`, in the order of the rows.
    """
    trials = {}
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


def _grid(config, rows, spread):
    """Header, and a list of lines of text for each error and for the time."""
    cells = summaries(rows)
    header = ["", "method", *map(_size, config.multiples)]
    shown = [m for m in config.methods if any(key[0] == m for key in cells)]

    def lines(name, text):
        for i, method in enumerate(shown):
            found = [cells.get((method, multiple)) for multiple in config.multiples]
            texts = [MISSING if cell is None else text(cell) for cell in found]
            yield [name if i == 0 else "", DRAW_LABELS[method], *texts]

    sections = [
        list(lines(label, lambda cell, name=name: _number(cell.errors[name], spread)))
        for name, label in ERRORS.items()
    ]
    times = lines("time", lambda cell: format_seconds(cell.seconds))
    return header, [*sections, list(times)]


def _number(summary, spread):
    if not spread or math.isnan(summary.std):
        return f"{summary.mean:.3g}"
    return f"{summary.mean:.3g} ± {summary.std:.1g}"


def rich_approximation(config, rows):
    """The means as a table for the terminal.

    Parameters
    ----------
    config : Approximation
    rows : sequence of dict

    Returns
    -------
    table : rich.table.Table
    """
    from rich import box
    from rich.table import Table

    header, sections = _grid(config, rows, spread=False)
    table = Table(
        title=f"{config.dataset}, kernel {config.kernel}: error by s",
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
        pad_edge=False,
    )
    for i, name in enumerate(header):
        table.add_column(name, justify="left" if i < 2 else "right", no_wrap=True)
    for lines in sections:
        for line in lines:
            table.add_row(*line, end_section=line is lines[-1])
    return table


def write_approximation(config, rows, out):
    """Write ``approximation-<dataset>-<kernel>`` as Markdown, LaTeX, CSV and pictures.

    Parameters
    ----------
    config : Approximation
    rows : sequence of dict
        As `select_rows` returns, at least one.
    out : Path
        Directory; made if missing.

    Returns
    -------
    paths : list of Path
        ``.md``, ``.tex`` and ``.csv``, and ``.png`` and ``.svg`` where there is
        anything to draw.
    """
    out.mkdir(parents=True, exist_ok=True)
    stem = f"approximation-{config.dataset}-{config.kernel}"
    sentences = captions(config, rows)
    texts = {
        f"{stem}.md": _markdown(config, rows, sentences),
        f"{stem}.tex": _latex(stem, config, rows, sentences),
        f"{stem}.csv": _csv(config, rows),
    }
    for name, text in texts.items():
        (out / name).write_text(text, encoding="utf-8")
    paths = [out / name for name in texts]
    drawn = [row for row in rows if "left_out" not in row]
    if drawn:
        paths += save(approximation_figure(drawn, config, sentences), out / stem)
    return paths


def _markdown(config, rows, sentences):
    header, sections = _grid(config, rows, spread=True)
    lines = [f"# {config.dataset}, kernel {config.kernel}: error by s", ""]
    lines += [f"- {sentence}" for sentence in sentences]
    titles = ("Spectral error", "Frobenius error", "Delta", "Time")
    for title, section in zip(titles, sections, strict=True):
        body = [line[1:] for line in section]
        lines += ["", f"## {title}", "", *markdown_grid(header[1:], body)]
    return "\n".join(lines) + "\n"


def _latex(stem, config, rows, sentences):
    header, sections = _grid(config, rows, spread=True)
    body = []
    for section in sections:
        body.append("\\midrule")
        body += [tex_row(map(tex, line)) for line in section]
    head = [tex_row(map(tex, header))]
    lines = latex_float(stem, " ".join(sentences), head, body)
    return "\n".join(["% Needs \\usepackage{booktabs,graphicx}", *lines, ""])


def _csv(config, rows):
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    spreads = [column for name in ERRORS for column in (name, f"{name}_std")]
    keys = ["dataset", "kernel", "alpha", "method", "multiple", "n_frequencies"]
    writer.writerow([*keys, "trials", *spreads, "generation_time", "left_out"])
    cells = summaries(rows)
    first = {}
    for row in rows:
        first.setdefault((row["method"], row["multiple"]), row)
    for key, row in first.items():
        if key in cells:
            cell = cells[key]
            values = [x for s in cell.errors.values() for x in (s.mean, s.std)]
            values.append(cell.seconds)
            texts = ["" if math.isnan(x) else f"{x:.6g}" for x in values]
            texts = [cell.errors["delta"].n, *texts, ""]
        else:
            texts = [0, *[""] * (len(spreads) + 1), row["left_out"]]
        writer.writerow([*(row[name] for name in keys), *texts])
    return out.getvalue()
