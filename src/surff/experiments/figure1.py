r"""The paper's Figure 1: kernel error, accuracy and generation time against s.

The error is :math:`\|K - Z Z^\top\|_2 / \|K\|_2` on 1,000 rows of the training part,
with ``Z`` from `surff.FourierFeatures` fitted to all of that part as the protocol says.
Accuracies and times are shared with Table 2, in the same store: trials that
`run_table2` has stored do not run again.

Under the protocol ``published`` the weights of the weighted methods have no
normalisation, so that :math:`Z Z^\top` estimates no multiple of K that could be known
in advance: the weights p/q are scaled to a mean of one before the error is taken, and
the cosine and the sine of a frequency share one weight.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from sklearn.metrics.pairwise import rbf_kernel

from surff import FourierFeatures
from surff.experiments.figures import figure1_figure
from surff.experiments.methods import LABELS, selectors
from surff.experiments.protocol import (
    Part,
    Problem,
    load_problem,
    published_part,
    seed_sequence,
    split,
    standardised,
    unit_interval,
)
from surff.experiments.render import picture_caption
from surff.experiments.runner import Last, Silent, Trial, run, select_rows
from surff.experiments.statistics import summarise
from surff.experiments.store import ResultStore
from surff.experiments.table import (
    MISSING,
    Report,
    Table,
    format_seconds,
    format_summary,
)
from surff.experiments.table2 import Table2, run_table2
from surff.inspection import relative_error

__all__ = [
    "N_ROWS",
    "figure1_captions",
    "figure1_report",
    "prepared",
    "run_errors",
    "run_figure1",
    "trial_errors",
]

#: Rows that errors are taken on, as in the paper.
N_ROWS = 1_000


def prepared(problem: Problem, protocol: str, trial: int, seed: int) -> Part:
    """Data of a trial, split and scaled as the protocol does."""
    if protocol == "published":
        part, _ = published_part(problem, 1, trial, seed)
        return part._replace(X=part.X[:, :-1], test_X=part.test_X[:, :-1])
    part = split(problem, trial, seed)
    if protocol == "literal":
        return unit_interval(part)
    return standardised(part, clip=problem.name == "eeg")


def trial_errors(
    problem: Problem, config: Table2, trial: Trial, gammas: Mapping[str, float]
) -> list[dict]:
    """Kernel errors of the methods in one trial.

    Parameters
    ----------
    problem : Problem
    config : Table2
    trial : Trial
        Its methods are run.
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
        row = config.row_of(trial.dataset, trial.multiple, trial.trial, method)
        found.append({**row, "error": error, "gamma": gammas[method]})
    return found


def run_errors(
    config: Table2,
    rows: Sequence[dict],
    store: ResultStore,
    progress: Silent | None = None,
) -> None:
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
        Passed on; finished trials are stored.
    """
    gammas: dict[tuple[int, int], dict[str, float]] = {}
    for row in rows:
        of_trial = gammas.setdefault((row["multiple"], row["trial"]), {})
        of_trial[row["method"]] = row["gamma"]
    problems = Last(load_problem)

    def run_trial(trial):
        chosen = gammas[trial.multiple, trial.trial]
        return trial_errors(problems(trial.dataset), config, trial, chosen)

    run(config, store, run_trial, progress)


def run_figure1(
    config: Table2,
    accuracies: ResultStore,
    errors: ResultStore,
    progress: Silent | None = None,
) -> None:
    """Run the missing trials of the table, then the missing errors."""
    run_table2(config, accuracies, progress)
    run_errors(config, select_rows(config, accuracies.rows), errors, progress)


# -- rendering -------------------------------------------------------------------------


def figure1_captions(config: Table2, rows: Sequence[dict]) -> list[str]:
    """Sentences that say what the figure shows.

    Parameters
    ----------
    config : Table2
    rows : sequence of dict
        Accuracies shown.
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


def summaries(
    rows: Sequence[dict], errors: Sequence[dict]
) -> dict[tuple[int, str], dict[str, Any]]:
    """Per (multiple, method): error, accuracy in percent and median time.

    Returns
    -------
    cells : dict
        Maps ``(multiple, method)`` to a dict with the `Summary` "error" and
        "accuracy", either of which may be missing, and the float "seconds".
    """
    values: dict[tuple, dict[str, list]] = {}
    for source, name, scale in (
        (rows, "accuracy", 100.0),
        (rows, "generation_time", 1.0),
        (errors, "error", 1.0),
    ):
        for row in source:
            key = row["multiple"], row["method"]
            values.setdefault(key, {}).setdefault(name, []).append(scale * row[name])
    order = list(LABELS)
    cells: dict[tuple[int, str], dict[str, Any]] = {}
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


def figure1_report(
    config: Table2, rows: Sequence[dict], errors: Sequence[dict]
) -> Report:
    """Table, numbers and picture of one data set.

    Parameters
    ----------
    config : Table2
    rows, errors : sequence of dict
        Accuracies and errors; at least one of the former.

    Returns
    -------
    Report
        ``figure1-<dataset>.md``, ``.csv``, ``.png`` and ``.svg``.
    """
    cells = summaries(rows, errors)
    methods = [name for name in LABELS if any(key[1] == name for key in cells)]
    body = []
    for multiple in dict.fromkeys(key[0] for key in cells):
        row = [cells.get((multiple, name), {}) for name in methods]
        times = [cell.get("seconds") for cell in row]
        body += [
            [f"{multiple}d", "error"]
            + [format_summary(cell.get("error"), ".4f", ".4f") for cell in row],
            ["", "accuracy"]
            + [format_summary(cell.get("accuracy"), ".2f", ".2f") for cell in row],
            ["", "time"]
            + [MISSING if time is None else format_seconds(time) for time in times],
        ]
    header = ["s", "", *(LABELS[name] for name in methods)]
    dataset, sentences = config.datasets[0], figure1_captions(config, rows)
    stem = f"figure1-{dataset}"
    names = ["error", "error_std", "accuracy", "accuracy_std"]
    numbers = []
    for (multiple, method), cell in cells.items():
        numbers.append([config.protocol, dataset, multiple, method])
        for name in ("error", "accuracy"):
            summary = cell.get(name)
            numbers[-1] += [summary.mean, summary.std] if summary else [None, None]
        numbers[-1].append(cell.get("seconds"))
    return Report(
        stem,
        f"{stem}, protocol {config.protocol}",
        [
            Table(
                header,
                body,
                f"{dataset}, protocol {config.protocol}",
                section=3,
                n_labels=2,
            )
        ],
        sentences,
        Table(
            ["protocol", "dataset", "multiple", "method", *names, "generation_time"],
            numbers,
        ),
        figures={stem: partial(figure1_figure, rows, errors, config, sentences)},
    )
