r"""Tables and pictures of the benchmark: scores, ranks, times, model bytes.

Methods are ranked on every data set by their mean score at one size, and the mean ranks
compared: two of them differ at 5 % where they are further apart than Nemenyi's critical
difference

.. math:: \mathrm{CD} = q_{0.05} \sqrt{\frac{k (k + 1)}{6 N}}

for k methods on N data sets [1]_. A method alone is compared with RFF over the data
sets by Wilcoxon's signed-rank test, and within a data set by a t-test that is corrected
for the rows that its random splits share; a data set with one split has no test.

References
----------
.. [1] J. Demsar, "Statistical Comparisons of Classifiers over Multiple Data Sets", JMLR
   7, 2006.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy import stats

from surff.experiments.benchmark import (
    TASKS,
    Benchmark,
    has_masks,
    is_regression,
    method_labels,
    without_size,
)
from surff.experiments.figures import benchmark_figure
from surff.experiments.methods import PACKAGES
from surff.experiments.printed import PUBLISHED
from surff.experiments.registry import REGISTRY
from surff.experiments.render import trials_text
from surff.experiments.statistics import (
    LEVEL,
    Summary,
    paired_p_value,
    rows_by_cell,
    signed_rank_p_value,
    summarise,
)
from surff.experiments.table import (
    MISSING,
    Report,
    Table,
    format_marked,
    format_seconds,
    format_summary,
)

__all__ = [
    "BenchmarkCell",
    "benchmark_captions",
    "benchmark_cells",
    "benchmark_report",
    "critical_difference",
    "first_tasks",
    "frequencies_needed",
    "has_one_split",
    "mean_ranks",
]

#: "Frequencies needed" compares with plain RFF at this multiple of d.
REFERENCE_MULTIPLE = 16

_TEXTS: dict[str, str] = REGISTRY["captions"]["benchmark"]


class BenchmarkCell(NamedTuple):
    """One method on one task at one size, over its splits."""

    score: Summary
    fit_time: float  # s, tuning included, median
    tune_time: float  # s, median
    predict_time: float  # s for all test rows, median
    model_bytes: float  # median
    p_value: float  # of the corrected t-test against RFF at that size; nan without
    n_frequencies: int


Cells = dict[tuple[str, int, str], BenchmarkCell]


def benchmark_cells(rows: Sequence[dict]) -> Cells:
    """Boil splits down to cells.

    Parameters
    ----------
    rows : sequence of dict
        As `select_rows` returns.

    Returns
    -------
    cells : dict
        Maps ``(task, multiple, method)`` to `BenchmarkCell`, in the order of the rows.
    """
    splits = rows_by_cell(rows)
    cells = {}
    for (task, multiple, method), found in splits.items():
        reference = splits.get((task, multiple, "rff"), {})
        scores, others = (
            {trial: row["score"] for trial, row in side.items()}
            for side in (found, reference)
        )
        names = "fit_time", "tune_time", "predict_time", "model_bytes"
        medians = np.median([[r[name] for name in names] for r in found.values()], 0)
        cells[task, multiple, method] = BenchmarkCell(
            summarise([100.0 * score for score in scores.values()]),
            *map(float, medians),
            p_value(task, method, scores, others, next(iter(found.values()))),
            next(iter(found.values()))["n_frequencies"],
        )
    return cells


def p_value(task, method, scores, reference, row):
    """Of the test against RFF; NaN where there is one split and so nothing to test."""
    if method == "rff" or has_one_split(task):
        return math.nan
    return paired_p_value(scores, reference, row["n_test"] / row["n_train"])


def has_one_split(task: str) -> bool:
    """Whether the source divides the rows, so that trials differ in draws alone."""
    return len(TASKS[task].parts) > 1


def first_tasks(cells: Cells) -> list[str]:
    """The first task of each data set: others of the same data would count it twice."""
    first: dict[str, str] = {}
    for task, *_ in cells:
        first.setdefault(TASKS[task].dataset, task)
    return list(first.values())


def mean_scores(cells: Cells, method: str, multiple: int) -> dict[str, float]:
    """Mean score of a method at a size on each of `first_tasks` that has it."""
    found = {
        task: cells.get((task, multiple, method)) or cells.get((task, 0, method))
        for task in first_tasks(cells)
    }
    return {task: cell.score.mean for task, cell in found.items() if cell}


def mean_ranks(cells: Cells, multiple: int) -> tuple[dict[str, float], int]:
    """Mean rank of every method over the tasks, 1 the best, at one size.

    Parameters
    ----------
    cells : dict
        As `benchmark_cells` returns.
    multiple : int
        Size; methods without a number of frequencies take part at every size.

    Returns
    -------
    ranks : dict of str to float
        Of the methods that every task has.
    n_tasks : int
        As many as `first_tasks` has.
    """
    n_tasks = len(first_tasks(cells))
    scores = {}
    for method in method_labels():
        found = mean_scores(cells, method, multiple)
        if len(found) == n_tasks:
            scores[method] = [-score for score in found.values()]
    table = np.reshape(list(scores.values()), (-1, n_tasks))
    ranks = stats.rankdata(table, axis=0).mean(axis=1)
    return dict(zip(scores, map(float, ranks), strict=True)), n_tasks


def critical_difference(n_methods: int, n_tasks: int, level: float = LEVEL) -> float:
    """Nemenyi's critical difference of mean ranks.

    Examples
    --------
    >>> round(critical_difference(4, 14), 2)
    1.25
    """
    q = stats.studentized_range.ppf(1.0 - level, n_methods, np.inf) / math.sqrt(2.0)
    return float(q * math.sqrt(n_methods * (n_methods + 1) / (6.0 * n_tasks)))


def frequencies_needed(cells: Cells, task: str) -> dict[str, int | None]:
    """Smallest multiple at which each method reaches plain RFF at 16 d.

    Returns
    -------
    needed : dict of str to int or None
        None where no size that ran is enough; empty where RFF did not run at 16 d.
    """
    reference = cells.get((task, REFERENCE_MULTIPLE, "rff"))
    needed = {}
    for (name, multiple, method), cell in cells.items():
        if reference is None or name != task or multiple == 0:
            continue
        needed.setdefault(method, None)
        reached = cell.score.mean >= reference.score.mean
        if reached and (needed[method] is None or multiple < needed[method]):
            needed[method] = multiple
    return needed


# -- text ------------------------------------------------------------------------------


def score_text(tasks: Iterable[str]) -> str:
    """What the scores of some tasks are."""
    tasks = list(tasks)
    numbers = [task for task in tasks if is_regression(task)]
    if len(numbers) == len(tasks):
        return "100 R2"
    return "accuracy in %" + (f", for {', '.join(numbers)} 100 R2" if numbers else "")


def latex_caption(task: str, rows: Sequence[dict], cells: Cells) -> str:
    """What a caption says after the name of a task, in the same sentence."""
    own = [row for row in rows if row["dataset"] == task]
    text = _TEXTS["latex"].format(score=score_text([task]), trials=trials_text(own))
    found = [cell.p_value for key, cell in cells.items() if key[0] == task]
    return text if np.isnan(found).all() else f"{text}{_TEXTS['latex_marks']}"


def benchmark_captions(config: Benchmark, rows: Sequence[dict]) -> list[str]:
    """Sentences that say what the tables show."""
    n = {row["dataset"]: (row["n_train"], row["n_test"]) for row in rows}

    def each(name, tasks):
        for task in tasks:
            train, test = n[task]
            chunks = TASKS[task].chunks
            yield _TEXTS[name].format(task=task, train=train, test=test, chunks=chunks)

    return [
        _TEXTS["score"].format(
            scores=score_text(n),
            trials=trials_text(rows, "benchmark.csv counts them"),
            seed=config.seed,
        ),
        *each("one_split", filter(has_one_split, n)),
        _TEXTS["times"],
        *each("rows", n),
        *each("chunks", (task for task in n if TASKS[task].chunks)),
        *each("scores", (task for task in n if TASKS[task].scores)),
        *_published_captions(n),
        *_absent_caption(config, rows),
    ]


def _published_captions(tasks):
    """What others publish on these tasks, where it stands in no table."""
    captions = []
    for task in (task for task in tasks if not has_masks(task)):
        found = [p for p in PUBLISHED if task in p.values]
        values = (f"{p.method} {p.values[task]}" for p in found)
        sources = "; ".join(dict.fromkeys(p.source for p in found))
        if found:
            captions.append(f"{task}: published {', '.join(values)} ({sources}).")
    return captions


def _absent_caption(config, rows):
    """Methods that need a package of their own and have no row."""
    found = {row["method"] for row in rows}
    absent = [name for name in config.methods if name in PACKAGES and name not in found]
    if not absent:
        return []
    names = (f"{method_labels()[name]} ({PACKAGES[name][1]})" for name in absent)
    return [f"Not run, since they need a package of their own: {', '.join(names)}."]


def _task_table(cells, task):
    sizes = sorted({key[1] for key in cells if key[0] == task} - {0})
    found = {key[2] for key in cells if key[0] == task}
    body = []
    for method, label in method_labels().items():
        if method not in found:
            continue
        sized = {size: cells.get((task, size, method)) for size in sizes}
        whole = cells.get((task, 0, method))
        last = whole or [cell for cell in sized.values() if cell][-1]
        body.append(
            [
                label,
                *(
                    format_marked(cell, cells.get((task, s, "rff")), "score")
                    for s, cell in sized.items()
                ),
                format_marked(whole, None, "score"),
                format_seconds(last.fit_time),
                f"{last.model_bytes / 1e3:.0f} kB",
            ]
        )
    header = ["method", *(f"s = {m}d" for m in sizes), "no s", "fit", "model"]
    return Table(header, body, task, name=task)


def _rmse_table(rows):
    """Root mean square errors on the tasks with masks, next to published ones."""
    found: dict[tuple, list[float]] = {}
    for row in rows:
        if has_masks(row["dataset"]):
            key = row["dataset"], (row["method"], row["multiple"])
            found.setdefault(key, []).append(row["rmse"])
    tasks, kinds = (list(dict.fromkeys(key[i] for key in found)) for i in (0, 1))
    order = list(method_labels())
    kinds.sort(key=lambda kind: (order.index(kind[0]), kind[1]))
    others = [p for p in PUBLISHED if p.values.keys() & set(tasks)]
    body = [
        [
            task,
            *(
                format_summary(summarise(found[task, kind]), "#.3g", ".1g")
                if (task, kind) in found
                else MISSING
                for kind in kinds
            ),
            *(f"{p.values[task]:.3g}" if task in p.values else MISSING for p in others),
        ]
        for task in tasks
    ]
    names = [
        method_labels()[method] + (f", {multiple}d" if multiple else "")
        for method, multiple in kinds
    ]
    return Table(
        ["set", *names, *(f"{p.method} (published)" for p in others)],
        body,
        "Root mean square errors",
        _TEXTS["rmse"].format(
            sources=" ".join(f"{p.method}: {p.source}." for p in others)
        ),
        name="rmse",
    )


def _rank_table(cells):
    """Mean ranks at the sizes at which there is something to rank."""
    sizes = sorted({key[1] for key in cells} - {0})
    ranked = {size: mean_ranks(cells, size) for size in sizes}
    ranked = {
        size: (ranks, n)
        for size, (ranks, n) in ranked.items()
        if sum(not without_size(method) for method in ranks) > 1
    }
    body = []
    for name, label in method_labels().items():
        found = [ranks.get(name) for ranks, _ in ranked.values()]
        if any(found):
            texts = (
                _rank(cells, name, size, rank)
                for size, rank in zip(ranked, found, strict=True)
            )
            body.append([label, *texts])
    differences = (f"{critical_difference(len(r), n):.2f}" for r, n in ranked.values())
    return Table(
        ["method", *(f"s = {size}d" for size in ranked)],
        [*body, ["critical difference", *differences]],
        "Mean ranks over the data sets",
        _TEXTS["ranks"],
        name="ranks",
    )


def _rank(cells, method, multiple, rank):
    if not rank:
        return MISSING
    if method == "rff":
        return f"{rank:.2f}"
    scores = (mean_scores(cells, name, multiple) for name in (method, "rff"))
    return f"{rank:.2f} ({signed_rank_p_value(*scores):.3f})"


def _needed_table(cells):
    tasks = list(dict.fromkeys(key[0] for key in cells))
    needed = {task: frequencies_needed(cells, task) for task in tasks}
    body = []
    for method, label in method_labels().items():
        texts = [_needed(cells, task, method, needed[task]) for task in tasks]
        if any(text != MISSING for text in texts):
            body.append([label, *texts])
    return Table(
        ["method", *tasks],
        body,
        f"Frequencies to match RFF at {REFERENCE_MULTIPLE}d",
        _TEXTS["needed"],
        name="needed",
    )


def _needed(cells, task, method, needed):
    """Multiple at which a method reaches the reference, and their ratio of times."""
    if method not in needed:
        return MISSING
    if needed[method] is None:
        return "more"
    time = cells[task, needed[method], method].fit_time
    reference = cells[task, REFERENCE_MULTIPLE, "rff"].fit_time
    return f"{needed[method]}d ({time / reference:.2g})"


def benchmark_report(config: Benchmark, rows: Sequence[dict]) -> Report:
    """Tables, numbers and pictures of the benchmark.

    Parameters
    ----------
    config : Benchmark
    rows : sequence of dict
        As `select_rows` returns, at least one.

    Returns
    -------
    Report
        ``benchmark.md``, ``.tex`` and ``.csv``, and ``benchmark-<task>.png`` and
        ``.svg``.
    """
    cells = benchmark_cells(rows)
    tasks = list(dict.fromkeys(key[0] for key in cells))
    tables = [_task_table(cells, task) for task in tasks]
    if (errors := _rmse_table(rows)).rows:
        tables.insert(0, errors)
    if len((ranks := _rank_table(cells)).header) > 1:
        tables.append(ranks)
    if (needed := _needed_table(cells)).rows:
        tables.append(needed)
    fields = ["fit_time", "tune_time", "predict_time", "model_bytes", "p_value"]
    head = ["task", "multiple", "n_frequencies", "method", "splits", "score", "std"]
    numbers = [
        [task, multiple, cell.n_frequencies, method, cell.score.n]
        + [cell.score.mean, cell.score.std]
        + [getattr(cell, name) for name in fields]
        for (task, multiple, method), cell in cells.items()
    ]
    return Report(
        "benchmark",
        "Benchmark",
        tables,
        benchmark_captions(config, rows),
        Table([*head, *fields], numbers),
        digits=8,
        latex="benchmark",
        latex_captions={task: latex_caption(task, rows, cells) for task in tasks},
        figures={
            f"benchmark-{task}": partial(benchmark_figure, cells, task, method_labels())
            for task in tasks
        },
    )
