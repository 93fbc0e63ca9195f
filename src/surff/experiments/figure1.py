r"""The paper's Figure 1: kernel error, accuracy and generation time against s.

The error is :math:`\|K - Z Z^\top\|_2 / \|K\|_2` on 1,000 rows of the training part,
with ``Z`` from `surff.FourierFeatures` fitted to all of that part as the protocol says.
Accuracies and times are those of Table 2, from the same store: what `run_table2`
has run already is not run again.

Under the protocol ``published`` the weights of the weighted methods have no
normalisation, so that :math:`Z Z^\top` estimates no multiple of K that could be known
in advance: the weights p/q are scaled to a mean of one before the error is taken, and
the cosine and the sine of a frequency share one weight.
"""

import csv
import io
import math

import numpy as np
from sklearn.metrics.pairwise import rbf_kernel

from surff.estimators import FourierFeatures
from surff.experiments.figures import figure1_figure, save
from surff.experiments.methods import selectors
from surff.experiments.protocol import (
    load_problem,
    published_part,
    seed_sequence,
    split,
    standardised,
    unit_interval,
)
from surff.experiments.render import (
    LABELS,
    MISSING,
    format_seconds,
    markdown_grid,
    picture_caption,
)
from surff.experiments.statistics import summarise
from surff.experiments.store import store_trials
from surff.experiments.table2 import Silent, missing_trials, row_of
from surff.inspection import relative_error

__all__ = [
    "N_ROWS",
    "captions",
    "prepared",
    "rich_figure1",
    "run_errors",
    "trial_errors",
    "write_figure1",
]

#: Rows that errors are taken on, as in the paper.
N_ROWS = 1_000


def prepared(problem, protocol, trial, seed):
    """Split and scaled data of a trial, as the protocol has them."""
    if protocol == "published":
        part, _ = published_part(problem, 1, trial, seed)
        return part._replace(X=part.X[:, :-1], test_X=part.test_X[:, :-1])
    part = split(problem, trial, seed)
    if protocol == "literal":
        return unit_interval(part)
    return standardised(part, clip=problem.name == "eeg")


def trial_errors(problem, config, trial, gammas):
    """Kernel errors of the methods in one trial.

    Parameters
    ----------
    problem : Problem
    config : Table2
    trial : Trial
        Its methods are computed.
    gammas : dict
        Bandwidth of each method.

    Returns
    -------
    rows : list of dict
        With the names in `surff.experiments.store.KEY`, ``error`` and ``gamma``.
    """
    part = prepared(problem, config.protocol, trial.trial, config.seed)
    n_samples, n_features = part.X.shape
    rng = np.random.default_rng(
        seed_sequence(config.seed, problem, trial.trial, trial.multiple, 1)
    )
    map_seed = int(rng.integers(2**31))
    # The same rows at every size.
    rows_rng = np.random.default_rng(
        seed_sequence(config.seed, problem, trial.trial, 2)
    )
    sample = part.X[
        rows_rng.choice(n_samples, size=min(N_ROWS, n_samples), replace=False)
    ]
    found = []
    for method in trial.methods:
        features = FourierFeatures(
            2 * trial.multiple * n_features,
            gamma=gammas[method],
            draw="halton" if method == "qmc" else "monte_carlo",
            select=selectors(config.protocol, n_samples).get(method),
            random_state=map_seed,
        ).fit(part.X, part.y)
        Z = features.transform(sample)
        if config.protocol == "published":
            Z /= math.sqrt(features.importance_weights_.mean())
        error = relative_error(rbf_kernel(sample, gamma=gammas[method]), Z)
        row = row_of(config, trial.dataset, trial.multiple, trial.trial, method)
        found.append({**row, "error": error, "gamma": gammas[method]})
    return found


def run_errors(config, rows, store, progress=None):
    """Compute the errors that are missing and store each trial as it ends.

    Parameters
    ----------
    config : Table2
        Of one data set.
    rows : sequence of dict
        Accuracies of all its trials: their gammas are used.
    store : ResultStore
        Gains the rows of `trial_errors`.
    progress : Silent or another object with its methods, optional

    Raises
    ------
    KeyboardInterrupt
        Passed on; what was finished is stored.
    """
    progress = Silent() if progress is None else progress
    gammas = {}
    for row in rows:
        gammas.setdefault((row["multiple"], row["trial"]), {})[row["method"]] = row[
            "gamma"
        ]
    trials = missing_trials(config, store)
    problem = load_problem(config.datasets[0]) if trials else None

    def run_trial(trial):
        chosen = gammas[trial.multiple, trial.trial]
        return trial_errors(problem, config, trial, chosen)

    store_trials(trials, run_trial, store, progress)


# -- rendering -------------------------------------------------------------------------


def captions(config, rows):
    """Sentences that say what the figure shows.

    Parameters
    ----------
    config : Table2
    rows : sequence of dict
        Accuracies shown.

    Returns
    -------
    sentences : list of str
    """
    error = (
        "Error: |K - Z Z^T| / |K| in the spectral norm, on "
        f"{min(N_ROWS, rows[0]['n_train']):,} training rows."
    )
    if config.protocol == "published":
        error += (
            " The weights of this protocol have no normalisation: for the error they "
            "are scaled to mean square one, cosine and sine of a frequency alike."
        )
    return [error, *picture_caption(config, rows)]


def summaries(rows, errors):
    """Per (multiple, method): error, accuracy in percent and median time.

    Returns
    -------
    cells : dict
        Maps ``(multiple, method)`` to a dict with the `Summary` "error" and
        "accuracy", either of which may be missing, and the float "seconds".
    """
    values = {}
    for source, name, scale in (
        (rows, "accuracy", 100.0),
        (rows, "generation_time", 1.0),
        (errors, "error", 1.0),
    ):
        for row in source:
            key = row["multiple"], row["method"]
            values.setdefault(key, {}).setdefault(name, []).append(scale * row[name])
    order = list(LABELS)
    cells = {}
    for key in sorted(values, key=lambda key: (key[0], order.index(key[1]))):
        cell = values[key]
        cells[key] = {
            name: summarise(cell[name])
            for name in ("error", "accuracy")
            if name in cell
        }
        if "generation_time" in cell:
            cells[key]["seconds"] = float(np.median(cell["generation_time"]))
    return cells


def _grid(rows, errors):
    cells = summaries(rows, errors)
    methods = [name for name in LABELS if any(key[1] == name for key in cells)]
    header = ["s", "", *(LABELS[name] for name in methods)]
    body = []
    for multiple in dict.fromkeys(key[0] for key in cells):
        row = [cells.get((multiple, name), {}) for name in methods]
        body += [
            [f"{multiple}d", "error", *(_spread(c.get("error"), 4) for c in row)],
            ["", "accuracy", *(_spread(c.get("accuracy"), 2) for c in row)],
            ["", "time", *(_seconds(c.get("seconds")) for c in row)],
        ]
    return header, body


def _spread(summary, digits):
    if summary is None:
        return MISSING
    if math.isnan(summary.std):
        return f"{summary.mean:.{digits}f}"
    return f"{summary.mean:.{digits}f} ± {summary.std:.{digits}f}"


def _seconds(seconds):
    return MISSING if seconds is None else format_seconds(seconds)


def rich_figure1(config, rows, errors):
    """The numbers of the figure as a table for the terminal.

    Parameters
    ----------
    config : Table2
    rows, errors : sequence of dict
        Accuracies and errors.

    Returns
    -------
    table : rich.table.Table
    """
    from rich import box
    from rich.table import Table

    header, body = _grid(rows, errors)
    table = Table(
        title=f"{config.datasets[0]}, protocol {config.protocol}",
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
        pad_edge=False,
    )
    for i, name in enumerate(header):
        table.add_column(name, justify="right" if i == 0 else "left", no_wrap=True)
    for k, line in enumerate(body):
        table.add_row(*line, end_section=k % 3 == 2)
    return table


def write_figure1(config, rows, errors, out):
    """Write ``figure1-<dataset>`` as ``.md``, ``.csv``, ``.png`` and ``.svg``.

    Parameters
    ----------
    config : Table2
    rows, errors : sequence of dict
        Accuracies and errors; at least one of the former.
    out : Path
        Directory; made if missing.

    Returns
    -------
    paths : list of Path
    """
    out.mkdir(parents=True, exist_ok=True)
    stem = f"figure1-{config.datasets[0]}"
    sentences = captions(config, rows)
    lines = [f"# {stem}, protocol {config.protocol}", ""]
    lines += [f"- {sentence}" for sentence in sentences]
    lines += ["", *markdown_grid(*_grid(rows, errors)), ""]
    texts = {f"{stem}.md": "\n".join(lines), f"{stem}.csv": _csv(config, rows, errors)}
    for name, text in texts.items():
        (out / name).write_text(text, encoding="utf-8")
    figure = figure1_figure(rows, errors, config, sentences)
    return [*(out / name for name in texts), *save(figure, out / stem)]


def _csv(config, rows, errors):
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(
        [
            "protocol",
            "dataset",
            "multiple",
            "method",
            "error",
            "error_std",
            "accuracy",
            "accuracy_std",
            "generation_time",
        ]
    )
    for (multiple, method), cell in summaries(rows, errors).items():
        numbers = []
        for name in ("error", "accuracy"):
            mean, std, _ = cell.get(name, (math.nan, math.nan, 0))
            numbers += [mean, std]
        numbers.append(cell.get("seconds", math.nan))
        texts = ("" if math.isnan(number) else f"{number:.6g}" for number in numbers)
        writer.writerow([config.protocol, config.datasets[0], multiple, method, *texts])
    return out.getvalue()
