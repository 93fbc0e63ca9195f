r"""Tables and pictures of the benchmark: scores, ranks, times, model bytes.

Methods are ranked on every data set by their mean score at one size, and the mean ranks
compared: two of them differ at 5 % where they are further apart than Nemenyi's critical
difference

.. math:: \mathrm{CD} = q_{0.05} \sqrt{\frac{k (k + 1)}{6 N}}

for k methods on N data sets [1]_.

References
----------
.. [1] J. Demsar, "Statistical Comparisons of Classifiers over Multiple Data Sets", JMLR
   7, 2006.
"""

import csv
import io
import math
from typing import NamedTuple

import numpy as np
from scipy import stats

from surff.experiments.benchmark import TASKS, WITHOUT_SIZE, method_labels
from surff.experiments.figures import benchmark_figure, save
from surff.experiments.render import MISSING, format_seconds, markdown_grid, rich_grid
from surff.experiments.statistics import Summary, paired_p_value, summarise

__all__ = [
    "Cell",
    "benchmark_cells",
    "captions",
    "critical_difference",
    "frequencies_needed",
    "mean_ranks",
    "rich_benchmark",
    "write_benchmark",
]

#: Level of the tests.
LEVEL = 0.05

#: What "frequencies needed" compares with: plain RFF at this multiple of d.
REFERENCE_MULTIPLE = 16


class Cell(NamedTuple):
    """One method on one task at one size, over its splits."""

    score: Summary
    fit_time: float  # s, tuning included, median
    tune_time: float  # s, median
    predict_time: float  # s for all test rows, median
    model_bytes: float  # median
    p_value: float  # of the paired t-test against RFF at that size; nan without one
    n_frequencies: int


def benchmark_cells(rows):
    """Boil splits down to cells.

    Parameters
    ----------
    rows : sequence of dict
        As `surff.experiments.benchmark.select_rows` returns.

    Returns
    -------
    cells : dict
        Maps ``(task, multiple, method)`` to `Cell`, in the order of the rows.
    """
    splits = {}
    for row in rows:
        key = row["dataset"], row["multiple"], row["method"]
        splits.setdefault(key, {})[row["trial"]] = row
    cells = {}
    for (task, multiple, method), found in splits.items():
        reference = splits.get((task, multiple, "rff"), {})
        scores = {trial: row["score"] for trial, row in found.items()}
        other = {trial: row["score"] for trial, row in reference.items()}

        def median(name, found=found):
            return float(np.median([row[name] for row in found.values()]))

        cells[task, multiple, method] = Cell(
            summarise([100.0 * score for score in scores.values()]),
            median("fit_time"),
            median("tune_time"),
            median("predict_time"),
            median("model_bytes"),
            math.nan if method == "rff" else paired_p_value(scores, other),
            next(iter(found.values()))["n_frequencies"],
        )
    return cells


def mean_ranks(cells, multiple):
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
        One a data set, the first: other tasks of the same data would count it twice.
    """
    first = {}
    for task, *_ in cells:
        first.setdefault(TASKS[task].dataset, task)
    tasks = list(first.values())
    methods = [
        method
        for method in method_labels()
        if all(_at(cells, task, multiple, method) for task in tasks)
    ]
    scores = [
        [-_at(cells, task, multiple, method).score.mean for method in methods]
        for task in tasks
    ]
    ranks = stats.rankdata(scores, axis=1).mean(axis=0)
    return dict(zip(methods, map(float, ranks), strict=True)), len(tasks)


def _at(cells, task, multiple, method):
    return cells.get((task, multiple, method)) or cells.get((task, 0, method))


def critical_difference(n_methods, n_tasks, level=LEVEL):
    """Nemenyi's critical difference of mean ranks.

    Examples
    --------
    >>> round(critical_difference(4, 14), 2)
    1.25
    """
    q = stats.studentized_range.ppf(1.0 - level, n_methods, np.inf) / math.sqrt(2.0)
    return float(q * math.sqrt(n_methods * (n_methods + 1) / (6.0 * n_tasks)))


def frequencies_needed(cells, task):
    """Smallest multiple at which each method reaches plain RFF at 16 d.

    Returns
    -------
    needed : dict of str to int or None
        None where no size that ran does; empty where RFF did not run at 16 d.
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


def captions(config, rows):
    """Sentences that say what the tables show."""
    n = {row["dataset"]: (row["n_train"], row["n_test"]) for row in rows}
    cells = {}
    for row in rows:
        key = row["dataset"], row["multiple"], row["method"]
        cells.setdefault(key, set()).add(row["trial"])
    least, most = (f(map(len, cells.values())) for f in (min, max))
    splits = f"{most} split{'s' if most > 1 else ''}"
    if least < most:
        splits = f"{least} to {splits} (benchmark.csv counts them)"
    stretches = [task for task in n if TASKS[task].chunks]
    scores = [task for task in n if TASKS[task].scores]
    return [
        f"Score: accuracy in %, for california-housing 100 R2; mean and standard error "
        f"over {splits}, seed {config.seed}; • better and ◦ worse than RFF at the same "
        "s in a paired t-test at 5 %.",
        "Every method tuned on the training rows alone by the rule of its kind. Times "
        "are processor time on one thread and include the tuning. Columns standardised "
        "by training statistics.",
        *(
            f"{task}: {train:,} rows to train, {test:,} to test."
            for task, (train, test) in n.items()
        ),
        *(
            f"{task}: the rows are one recording; {TASKS[task].chunks} stretches of "
            "consecutive rows stay together."
            for task in stretches
        ),
        *(
            f"{task}: columns replaced by their normal scores, for every method."
            for task in scores
        ),
    ]


def _text(cell, reference):
    if cell is None:
        return MISSING
    error = cell.score.std / math.sqrt(cell.score.n)
    spread = "" if math.isnan(error) else f" ± {error:.2f}"
    sign = ""
    if reference is not None and cell.p_value < LEVEL:
        sign = " •" if cell.score.mean > reference.score.mean else " ◦"
    return f"{cell.score.mean:.2f}{spread}{sign}"


def _grid(cells, task):
    sizes = sorted({key[1] for key in cells if key[0] == task} - {0})
    found = {key[2] for key in cells if key[0] == task}
    labels = method_labels()
    body = []
    for method in (name for name in labels if name in found):
        sized = [cells.get((task, size, method)) for size in sizes]
        texts = [
            _text(cell, cells.get((task, size, "rff")))
            for size, cell in zip(sizes, sized, strict=True)
        ]
        whole = cells.get((task, 0, method))
        last = whole or next((cell for cell in sized[::-1] if cell), None)
        body.append(
            [
                labels[method],
                *texts,
                _text(whole, None),
                format_seconds(last.fit_time),
                f"{last.model_bytes / 1e3:.0f} kB",
            ]
        )
    header = ["method", *(f"s = {m}d" for m in sizes), "no s", "fit", "model"]
    return header, body


def _rank_grid(cells):
    """Header and body, of the sizes at which there is something to rank."""
    sizes = sorted({key[1] for key in cells} - {0})
    by_size = {size: mean_ranks(cells, size) for size in sizes}
    by_size = {
        size: ranked
        for size, ranked in by_size.items()
        if len(ranked[0].keys() - set(WITHOUT_SIZE)) > 1
    }
    labels = method_labels()
    header = ["method", *(f"s = {size}d" for size in by_size)]
    body = [
        [labels[name], *(_rank(ranks.get(name)) for ranks, _ in by_size.values())]
        for name in labels
        if any(name in ranks for ranks, _ in by_size.values())
    ]
    differences = [
        f"{critical_difference(len(ranks), n):.2f}" for ranks, n in by_size.values()
    ]
    return header, [*body, ["critical difference", *differences]]


def _rank(rank):
    return MISSING if rank is None else f"{rank:.2f}"


def _needed_grid(cells):
    tasks = list(dict.fromkeys(key[0] for key in cells))
    needed = {task: frequencies_needed(cells, task) for task in tasks}
    labels = method_labels()
    body = []
    for method in labels:
        texts = [_needed(cells, task, method, needed[task]) for task in tasks]
        if any(text != MISSING for text in texts):
            body.append([labels[method], *texts])
    return ["method", *tasks], body


def _needed(cells, task, method, needed):
    """Multiple at which a method reaches the reference, and its time over that's."""
    if method not in needed:
        return MISSING
    if needed[method] is None:
        return "more"
    time = cells[task, needed[method], method].fit_time
    reference = cells[task, REFERENCE_MULTIPLE, "rff"].fit_time
    return f"{needed[method]}d ({time / reference:.2g})"


def rich_benchmark(cells):
    """Tables for the terminal: one a task, and the mean ranks."""
    tasks = dict.fromkeys(key[0] for key in cells)
    tables = [rich_grid(task, *_grid(cells, task)) for task in tasks]
    header, body = _rank_grid(cells)
    if len(header) > 1:
        tables.append(rich_grid("mean ranks", header, body))
    return tables


def write_benchmark(config, rows, out):
    """Render rows into a directory.

    Parameters
    ----------
    config : Benchmark
    rows : sequence of dict
        As `surff.experiments.benchmark.select_rows` returns, at least one.
    out : Path
        Directory; made if missing. ``benchmark.md``, ``benchmark.csv`` and
        ``benchmark-<task>.png`` and ``.svg`` in it are written over.

    Returns
    -------
    paths : list of Path
    """
    cells = benchmark_cells(rows)
    lines = ["# Benchmark", ""]
    lines += [f"- {sentence}" for sentence in captions(config, rows)]
    tasks = list(dict.fromkeys(key[0] for key in cells))
    for task in tasks:
        lines += ["", f"## {task}", "", *markdown_grid(*_grid(cells, task))]
    header, body = _rank_grid(cells)
    if len(header) > 1:
        lines += ["", "## Mean ranks over the data sets", ""]
        lines += ["Of the methods that every data set has, its first task alone.", ""]
        lines += markdown_grid(header, body)
    header, body = _needed_grid(cells)
    if body:
        lines += ["", f"## Frequencies to match RFF at {REFERENCE_MULTIPLE}d", ""]
        lines += [
            "The least s that ran with a mean score at least as high, and in brackets "
            "its fit time over that of RFF.",
            "",
        ]
        lines += markdown_grid(header, body)
    out.mkdir(parents=True, exist_ok=True)
    texts = {"benchmark.md": "\n".join(lines) + "\n", "benchmark.csv": _csv(cells)}
    for name, text in texts.items():
        (out / name).write_text(text, encoding="utf-8")
    paths = [out / name for name in texts]
    for task in tasks:
        figure = benchmark_figure(cells, task, method_labels())
        paths += save(figure, out / f"benchmark-{task}")
    return paths


def _csv(cells):
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    fields = ["fit_time", "tune_time", "predict_time", "model_bytes", "p_value"]
    head = ["task", "multiple", "n_frequencies", "method", "splits", "score", "std"]
    writer.writerow([*head, *fields])
    for (task, multiple, method), cell in cells.items():
        numbers = [cell.score.mean, cell.score.std]
        numbers += [getattr(cell, name) for name in fields]
        texts = ["" if math.isnan(value) else f"{value:.8g}" for value in numbers]
        line = [task, multiple, cell.n_frequencies, method, cell.score.n, *texts]
        writer.writerow(line)
    return out.getvalue()
