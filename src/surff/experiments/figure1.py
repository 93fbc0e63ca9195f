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

import surff
from surff import FourierFeatures
from surff.experiments.figures import figure1_figure
from surff.experiments.methods import selectors
from surff.experiments.printed import printed_table
from surff.experiments.protocol import (
    Problem,
    load_problem,
    prepared,
    seed_sequence,
)
from surff.experiments.registry import REGISTRY
from surff.experiments.render import (
    captions,
    cells_in_full,
    dataset_table,
    picture_caption,
    summary_cells,
)
from surff.experiments.runner import Last, Trial, run, select_rows
from surff.experiments.statistics import summarise
from surff.experiments.store import ResultStore
from surff.experiments.table import Report, Table
from surff.experiments.table2 import Table2, run_table2

__all__ = [
    "N_ROWS",
    "figure1_captions",
    "figure1_report",
    "run_errors",
    "run_figure1",
    "trial_errors",
]

#: Rows that errors are taken on, as in the paper.
N_ROWS = 1_000


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
        error = surff.inspection.relative_error(
            rbf_kernel(sample, gamma=gammas[method]), Z
        )
        row = config.row_of(trial.dataset, trial.multiple, trial.trial, method)
        found.append({**row, "error": error, "gamma": gammas[method]})
    return found


def run_errors(
    config: Table2,
    rows: Sequence[dict],
    store: ResultStore,
    verbose: Any = 0,
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
    verbose : int, bool or callable, default=0
        Whether to show progress, see `surff.backend.watched`.

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

    run(config, store, run_trial, verbose)


def run_figure1(
    config: Table2,
    accuracies: ResultStore,
    errors: ResultStore,
    verbose: Any = 0,
) -> None:
    """Run the missing trials of the table, then the missing errors."""
    run_table2(config, accuracies, verbose)
    run_errors(config, select_rows(config, accuracies.rows), errors, verbose)


# -- rendering -------------------------------------------------------------------------


def figure1_captions(config: Table2, rows: Sequence[dict]) -> list[str]:
    """Sentences that say what the figure shows.

    Parameters
    ----------
    config : Table2
    rows : sequence of dict
        Accuracies shown.
    """
    texts = REGISTRY["captions"]["figure1"]
    error = texts["error"].format(n=min(N_ROWS, rows[0]["n_train"]))
    if config.protocol == "published":
        error += f" {texts['published']}"
    return [error, *captions(config, rows)]


def figure1_report(
    config: Table2,
    rows: Sequence[dict],
    errors: Sequence[dict],
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
    printed = printed_table()
    cells = summary_cells(rows, printed)
    of_cell: dict[tuple, list[float]] = {key: [] for key in cells}
    for row in errors:
        of_cell[row["dataset"], row["multiple"], row["method"]].append(row["error"])
    found = {key: summarise(values) for key, values in of_cell.items() if values}
    dataset, sentences = config.datasets[0], figure1_captions(config, rows)
    stem = f"figure1-{dataset}"
    numbers = cells_in_full(cells, config)
    of_errors = [found.get(key, (None, None))[:2] for key in cells]
    return Report(
        stem,
        f"{stem}, protocol {config.protocol}",
        [dataset_table(cells, dataset, found)],
        sentences,
        Table(
            [*numbers.header, "error", "error_std"],
            [[*a, *b] for a, b in zip(numbers.rows, of_errors, strict=True)],
        ),
        figures={
            stem: partial(
                figure1_figure,
                rows,
                errors,
                printed,
                config,
                [*sentences[:1], *picture_caption(config, rows)],
            )
        },
    )
