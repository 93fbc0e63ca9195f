"""The tables and numbers of the pages on results, made from the stored trials.

``python tools/reproduction.py`` renders the tables of ``docs/results`` again and writes
the blocks of ``docs/reproduction.md``, ``accuracy.md``, ``methods.md``,
``intervals.md`` and ``uncertainty.md``, between the lines ``<!-- numbers: NAME -->``
and ``<!-- end -->``; nothing runs again. ``--pictures`` draws the pictures, too.
``--check`` writes nothing and fails where a file does not say what the trials say; a
test does the same.
"""

import argparse
import csv
import itertools
import math
import re
import sys
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path

import interval_tables
import leaf_tables
import numpy as np
from scipy import stats
from texts import gains, markdown, p_cell, p_text, size_text

from surff.experiments import (
    LABELS,
    LEVEL,
    METHODS,
    MISSING,
    PUBLISHED,
    SUITES,
    Agreement,
    Benchmark,
    Report,
    ResultStore,
    Table,
    Table2,
    agreement,
    all_methods,
    benchmark_cells,
    benchmark_report,
    figure1_report,
    first_tasks,
    has_one_split,
    paired_p_value,
    printed_table,
    select_rows,
    signed_rank_p_value,
    significantly_better,
    summarise,
    summary_cells,
    table2_report,
)

DOCS = Path(__file__).resolve().parents[1] / "docs"

#: The weighted methods, whose bullets are compared.
WEIGHTED = ("leverage", "surrogate")

#: Stored experiments of table 2, by directory.
TABLES = {
    "published": Table2(ablation=True),
    "literal": Table2(protocol="literal"),
    "fair": Table2(protocol="fair"),
}

#: Suites of the benchmark by the directory of their store.
BENCHMARKS = {"benchmark": "core", "uci": "uci", "extended": "extended"}

#: All methods under the fair protocol.
METHODS_CONFIG = Table2(
    ("eeg", "magic04"), (1, 4, 16), protocol="fair", methods=tuple(all_methods())
)


class Results:
    """What is stored, read when it is asked for.

    Parameters
    ----------
    root : Path
        ``docs/results``, or a copy of it.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.printed = printed_table()
        self._stored: dict[str, list[dict]] = {}

    def rows(self, directory: str, config: Table2) -> list[dict]:
        """Rows of an experiment in the store of a directory."""
        if directory not in self._stored:
            path = self.root / directory / "results.jsonl"
            self._stored[directory] = ResultStore(path).rows
        return select_rows(config, self._stored[directory])

    def cells(self, directory: str) -> dict:
        """Cells of a table of `TABLES`."""
        return self._cells[directory]

    @cached_property
    def _cells(self):
        return {
            name: summary_cells(self.rows(name, config), self.printed)
            for name, config in TABLES.items()
        }

    @cached_property
    def benchmarks(self) -> dict[str, tuple[Benchmark, list[dict]]]:
        """What ran of each suite in `BENCHMARKS`, and its rows in their order."""
        found = {}
        for directory, suite in BENCHMARKS.items():
            path = self.root / directory / "benchmark.jsonl"
            if rows := ResultStore(path, Benchmark.KEY).rows:
                multiples = tuple({row["multiple"] for row in rows} - {0})
                config = Benchmark(SUITES[suite], multiples=multiples)
                found[directory] = config, select_rows(config, rows)
        return found

    @cached_property
    def benchmark_rows(self) -> list[dict]:
        """All rows of the benchmark's suites."""
        return [row for _, rows in self.benchmarks.values() for row in rows]

    @cached_property
    def cells_of_benchmark(self) -> dict:
        """Cells of the benchmark by (task, multiple, method)."""
        return benchmark_cells(self.benchmark_rows)

    @cached_property
    def scores(self) -> dict:
        """Scores of the benchmark by (task, multiple, method), then by trial."""
        found: dict[tuple, dict[int, float]] = {}
        for row in self.benchmark_rows:
            key = row["dataset"], row["multiple"], row["method"]
            found.setdefault(key, {})[row["trial"]] = 100.0 * row["score"]
        return found

    def reports(self) -> Iterator[tuple[str, Report]]:
        """Directories and what is written there."""
        for name, config in TABLES.items():
            yield name, table2_report(config, self.rows(name, config))
        yield (
            "methods",
            table2_report(METHODS_CONFIG, self.rows("methods", METHODS_CONFIG)),
        )
        figure = Table2(("eeg",))
        errors = ResultStore(self.root / "published" / "figure1.jsonl").rows
        yield (
            "published",
            figure1_report(
                figure, self.rows("published", figure), select_rows(figure, errors)
            ),
        )
        for directory, (config, rows) in self.benchmarks.items():
            report = benchmark_report(config, rows)
            if directory != "benchmark":  # their tables say it all
                report = replace(report, figures={})
            yield directory, report


# -- the page on reproduction ----------------------------------------------------------


def sized(key: tuple[str, int, str]) -> str:
    """Name of a cell in a sentence."""
    dataset, multiple, method = key
    return f"{dataset} {size_text(multiple)} {LABELS[method]}"


def how_close(results: Results) -> str:
    """Agreement of the published protocol with print, over all cells."""
    cells = results.cells("published")
    every = found(cells)
    datasets = dict.fromkeys(key[0] for key in cells)
    body = []
    for dataset in datasets:
        whole = found(cells, dataset)
        of_methods = (found(cells, dataset, method).deviation for method in METHODS)
        body.append(
            [
                dataset,
                *(f"{value:.2f}" for value in of_methods),
                f"{whole.within} of {whole.n_cells}",
                f"{whole.same_bullets} of {whole.n_bullets}",
            ]
        )
    header = ["mean deviation", *METHODS.values(), "within 1 sd", "same bullet"]
    far = sorted(
        (key for key, cell in cells.items() if cell.printed),
        key=lambda key: -abs(cells[key].deviation),
    )
    largest = ", ".join(f"{sized(k)} {cells[k].deviation:+.2f}" for k in far[:6])
    return (
        f"Over the {every.n_cells} cells the accuracies differ from print by "
        f"{every.deviation:.2f} points on average; {every.within} are within one "
        f"printed standard deviation, and {every.same_bullets} of {every.n_bullets} "
        "bullets are the paper's.\n\n"
        f"{markdown(header, body)}\n\n"
        f"The largest differences, in points: {largest}."
    )


def found(cells: dict, *names: str) -> Agreement:
    """Agreement of cells that the paper has."""
    result = agreement(cells, *names)
    if result is None:
        raise ValueError(f"no cell of the paper's table among {names or 'all'}")
    return result


def trials_of(results: Results) -> dict[tuple, dict[int, float]]:
    """Accuracies of the published protocol by cell and trial."""
    trials: dict[tuple, dict[int, float]] = {}
    for row in results.rows("published", TABLES["published"]):
        key = row["dataset"], row["multiple"], row["method"]
        trials.setdefault(key, {})[row["trial"]] = 100.0 * row["accuracy"]
    return trials


def bullets(results: Results) -> str:
    """Which test gives the printed bullets."""
    cells, trials = results.cells("published"), trials_of(results)
    keys = [key for key in cells if key[2] in WEIGHTED]

    def equal(better: Callable) -> int:
        """Cells where a test says what print says."""
        return sum(
            all(better(key, (*key[:2], name)) for name in ("rff", "qmc"))
            == results.printed[key].bullet
            for key in keys
        )

    def welch(key, other):
        a, b = list(trials[key].values()), list(trials[other].values())
        scale = np.sqrt((np.var(a, ddof=1) + np.var(b, ddof=1)) / len(a))
        return stats.t.sf((np.mean(a) - np.mean(b)) / scale, 2 * len(a) - 2) < 0.025

    def of_print(key, other):
        a, b = results.printed[key], results.printed[other]
        scale = np.hypot(a.std, b.std) / np.sqrt(10)
        return stats.t.sf((a.accuracy - b.accuracy) / scale, 18) < 0.025

    def paired(ratio):
        return lambda key, other: significantly_better(
            trials[key], [trials[other]], ratio
        )

    more = [key for key in keys if cells[key].bullet and not cells[key].printed.bullet]
    less = [key for key in keys if cells[key].printed.bullet and not cells[key].bullet]
    n = len(keys)
    return (
        "The paper says that a bullet is a paired t-test against both RFF and QMC. On "
        f"our trials that test gives {equal(paired(0.0))} of the {n} printed bullets; "
        f"{len(more)} cells are significant here and not in print, {len(less)} the "
        "other way round. A two-sample test, which leaves the pairs out, gives "
        f"{equal(welch)} on our trials and {equal(of_print)} on the printed means and "
        "deviations themselves; the paired test corrected for random halves "
        f"{equal(paired(1.0))}. So either the paper's methods did not share their "
        "splits, or its test is not paired. Neither the paired nor the two-sample test "
        "knows that random halves of the same rows overlap; the fair table below uses "
        "the one that does."
    )


def seeds(results: Results) -> str:
    """Whether further seeds explain the differences on EEG, d to 4d."""
    means: dict[tuple, list[float]] = {}
    for seed in range(11):
        config = Table2(("eeg",), (1, 2, 4), seed=seed)
        rows = results.rows("seeds" if seed else "published", config)
        for key, cell in summary_cells(rows, results.printed).items():
            means.setdefault(key, []).append(cell.accuracy.mean)
    body, off, beyond = [], [], []
    for key, values in means.items():
        cell = results.printed[key]
        mean, std, n = summarise(values)
        # A further mean of the same kind varies about theirs by that much.
        t = (cell.accuracy - mean) / (std * math.sqrt(1.0 + 1.0 / n))
        p = 2.0 * stats.t.sf(abs(t), n - 1)
        if abs(values[0] - cell.accuracy) > cell.std:
            off.append(sized(key))
        if p < LEVEL:
            beyond.append(sized(key))
        size = "d" if key[1] == 1 else f"{key[1]}d"
        texts = [f"{x:.2f}" for x in (cell.accuracy, values[0], mean, std)]
        body.append([size, LABELS[key[2]], *texts, f"{p:.3f}"])
    header = ["EEG", "", "print", "seed 0", "mean of 11 seeds", "sd of seeds", "p"]
    table = Table(header, body, n_labels=2).markdown()
    listed_table = "\n".join(table)
    noise = [name for name in off if name not in beyond]
    return (
        f"Of the cells of EEG from d to 4d {listed(off)} are more than one printed "
        "deviation off with seed 0. A cell is a mean over ten trials; ten further "
        "seeds of ten trials each say how much such a mean varies. p: chance of a mean "
        "as far from those of the eleven seeds as the printed one.\n\n"
        f"{listed_table}\n\n"
        f"So the noise of draws and splits explains {listed(noise)}. Not explained at "
        f"5 %, in {len(body)} tests: {listed(beyond)}. There the protocol differs: see "
        "the other reading of the weights."
    )


def readings(results: Results) -> str:
    """Mean deviations of the two readings of the weights."""
    config = Table2(("eeg", "cod-rna"), (1, 2, 4, 8, 16), weights="sorted")
    cells = summary_cells(results.rows("sorted", config), results.printed)
    own = results.cells("published")
    body = []
    for dataset, sizes in (("eeg", "d to 16d"), ("cod-rna", "d and 2d")):
        for method in WEIGHTED:
            keys = [key for key in cells if (key[0], key[2]) == (dataset, method)]
            texts = (
                f"{found({key: of[key] for key in keys}).deviation:.2f}"
                for of in (own, cells)
            )
            body.append([f"{dataset}, {sizes}", LABELS[method], *texts])
    table = Table(["mean deviation", "", "own", "sorted"], body, n_labels=2).markdown()
    at_4d = cells["eeg", 4, "leverage"].deviation
    return (
        "With the other reading of the weights, `--weights sorted`:\n\n"
        + "\n".join(table)
        + f"\n\nOn EEG at 4d leverage-RFF differs by {at_4d:+.2f} points with it."
    )


def recipes(results: Results) -> str:
    """What else was tried to get the printed surrogate, from the stored table."""
    with (results.root / "recipes" / "recipes.csv").open(newline="") as file:
        lines = list(csv.DictReader(file))
    order = list(Table2.datasets)
    columns = sorted(
        {(x["dataset"], int(x["multiple"])) for x in lines},
        key=lambda column: (order.index(column[0]), column[1]),
    )
    off: dict[str, dict[tuple, float]] = {}
    for line in lines:
        column = line["dataset"], int(line["multiple"])
        accuracy = results.printed[*column, "surrogate"].accuracy
        off.setdefault(line["recipe"], {})[column] = float(line["accuracy"]) - accuracy

    def deviation(recipe, dataset=""):
        values = [abs(x) for (name, _), x in off[recipe].items() if dataset in name]
        return float(np.mean(values))

    body = [
        [recipe.replace("|", "\\|")]
        + [f"{values[column]:+.2f}" for column in columns]
        + [f"{deviation(recipe):.2f}"]
        for recipe, values in off.items()
    ]
    header = [f"{dataset} {'' if m == 1 else m}d" for dataset, m in columns]
    header = ["surrogate less print", *header, "mean deviation"]
    trials = [int(line["trials"]) for line in lines]
    here, noise = "as here: (z'y)^2", "noise in place of y"
    every = min(off, key=deviation)
    eeg = min(off, key=lambda recipe: deviation(recipe, "eeg"))
    moved = max(abs(off[noise][column] - off[here][column]) for column in columns)
    keep_all = [recipe for recipe in off if "replacement" not in recipe]
    large = [off[recipe]["covtype", 8] for recipe in keep_all]
    return (
        f"{markdown(header, body)}\n\n"
        f"{min(trials)} to {max(trials)} trials. Over these cells '{every}' has the "
        f"least mean deviation, {deviation(every):.2f} points against "
        f"{deviation(here):.2f} of the recipe here; on EEG alone '{eeg}' has, "
        f"{deviation(eeg, 'eeg'):.2f} against {deviation(here, 'eeg'):.2f}, but on "
        f"cod-RNA it has {deviation(eeg, 'cod-rna'):.2f} against "
        f"{deviation(here, 'cod-rna'):.2f}. Noise in place of y moves no cell by more "
        f"than {moved:.2f} points: in this recipe the weights need not know the "
        "labels. "
        "On covtype, where there are many rows, no change that keeps all columns moves "
        f"the accuracy by more than {max(large) - min(large):.2f} points."
    )


def gain(results: Results) -> str:
    """What RFF reaches with the same freedom of alpha."""
    cells = results.cells("published")
    shown = ["rff", "rff-alpha-2s", "leverage", "surrogate", "rff-wide"]
    sizes = [("eeg", 8), ("eeg", 32), ("eeg", 128), ("magic04", 64), ("cod-rna", 8)]
    body = []
    for dataset, multiple in [*sizes, ("covtype", 16)]:
        means = [cells[dataset, multiple, name].accuracy.mean for name in shown]
        texts = [f"{mean:.1f}" for mean in means]
        best = max(texts)
        texts = [
            f"**{t}**" if texts.count(best) == 1 and t == best else t for t in texts
        ]
        body.append([f"{dataset}, {multiple}d", *texts])

    def gaps(method, other, places):
        return [
            cells[*place, method].accuracy.mean - cells[*place, other].accuracy.mean
            for place in places
        ]

    places = list(dict.fromkeys(key[:2] for key in cells))
    of_table = [*sizes, ("covtype", 16)]
    alpha = max(map(abs, gaps("rff-alpha-2s", "leverage", of_table)))
    left = max(gaps("surrogate", "rff-alpha-2s", of_table))
    wide = [
        min(pair)
        for pair in zip(
            gaps("rff-wide", "leverage", places),
            gaps("rff-wide", "surrogate", places),
            strict=True,
        )
    ]
    ahead = [gaps("rff-wide", name, [("eeg", 32)])[0] for name in WEIGHTED]
    return (
        f"{markdown(['accuracy in %', *(LABELS[name] for name in shown)], body)}\n\n"
        "In these rows dividing alpha by 2s gives plain RFF the accuracy of "
        f"leverage-RFF to {alpha:.1f} points, and all but {left:.1f} points or less of "
        "the surrogate's gain. RFF with a wide grid is at most "
        f"{max(0.0, -min(wide)):.2f} points below the better weighted method in any of "
        f"the {len(places)} rows of the tables; on EEG at 32d it is "
        f"{ahead[0]:.1f} points above leverage-RFF and {ahead[1]:.1f} above "
        "the surrogate."
    )


def fair(results: Results) -> str:
    """What is left of the differences when all are tuned alike."""
    cells = results.cells("fair")
    spread: dict[tuple, float] = {}
    for place in dict.fromkeys(key[:2] for key in cells):
        means = [cells[*place, method].accuracy.mean for method in METHODS]
        spread[place] = max(means) - min(means)
    large = max(value for (_, multiple), value in spread.items() if multiple >= 8)
    last = max(value for (_, multiple), value in spread.items() if multiple == 128)

    def mean(*key):
        return f"{cells[key].accuracy.mean:.1f}"

    tested = {key: cell for key, cell in cells.items() if not np.isnan(cell.p_value)}
    differ = {
        key: cell.accuracy.mean - cells[*key[:2], "rff"].accuracy.mean
        for key, cell in tested.items()
        if cell.p_value < LEVEL
    }
    which = ", ".join(f"{sized(key)} {gain:+.1f}" for key, gain in differ.items())
    n_bullets = sum(cell.bullet for cell in cells.values())
    return (
        f"Tuned alike, the four methods are within {large:.1f} points of each other in "
        f"every row from 8d on, and on EEG, magic04 and cod-RNA within {last:.1f} "
        f"points of each other at 128d. Significant differences from RFF: "
        f"{len(differ)} of the {len(tested)} that can be tested ({which}); weighted "
        f"cells significantly better than both RFF and QMC: {n_bullets}. With few "
        "frequencies the means "
        f"differ: QMC is ahead at d on magic04 ({mean('magic04', 1, 'qmc')} against "
        f"{mean('magic04', 1, 'rff')} for RFF), and the weighted methods are behind at "
        f"d on cod-RNA ({mean('cod-rna', 1, 'leverage')} and "
        f"{mean('cod-rna', 1, 'surrogate')} against {mean('cod-rna', 1, 'rff')}): "
        "weights far from one cost more than better frequencies bring while there are "
        "few. Every method is far above the printed table: plain RFF reaches "
        f"{mean('eeg', 128, 'rff')} % on EEG at 128d, where the best printed number is "
        f"{max(c.accuracy for k, c in results.printed.items() if k[0] == 'eeg'):.1f} %."
    )


def times(results: Results) -> str:
    """Generation times over RFF's, here and in print."""
    cells = results.cells("published")

    def span(method, ratio):
        ratios = [getattr(c, ratio) for k, c in cells.items() if k[2] == method]
        return f"{min(ratios):.2f} to {max(ratios):.2f}"

    slow = cells["eeg", 128, "leverage"]
    fast = cells["eeg", 128, "surrogate"]
    return (
        "Over RFF's pass the surrogate takes "
        f"{span('surrogate', 'ratio')} times as long (medians over the trials of all "
        f"sets and sizes; {span('surrogate', 'printed_ratio')} in print, whose times "
        "have two decimals). leverage-RFF takes "
        f"{slow.seconds / fast.seconds:.0f} times as long as the surrogate on EEG at "
        f"128d, {slow.printed.seconds / fast.printed.seconds:.1f} times in print."
    )


# -- the page on accuracy --------------------------------------------------------------


def compare(
    results: Results, task: str, first: tuple, second: tuple
) -> tuple[float, float]:
    """Gain of one (multiple, method) over another, and its p-value."""
    a, b = results.scores[task, *first], results.scores[task, *second]
    gain = float(np.mean(gains(a, b)))
    if has_one_split(task):
        return gain, np.nan
    return gain, paired_p_value(a, b, overlap(results, task))


def overlap(results: Results, task: str) -> float:
    """Rows to test over rows to train; 0 where trials differ in their draws alone."""
    row = next(row for row in results.benchmark_rows if row["dataset"] == task)
    return 0.0 if has_one_split(task) else row["n_test"] / row["n_train"]


def listed(names: list[str]) -> str:
    """Names in a sentence."""
    *others, last = names or ["none"]
    return f"{', '.join(others)} and {last}" if others else last


def core_tasks(results: Results) -> list[str]:
    """Tasks of the suite "core" that RFF and `auto` have at some size."""
    tasks = SUITES["core"]
    return [task for task in tasks if (task, 4, "auto") in results.scores]


def mean_text(results: Results, *key: object) -> str:
    """Mean score of a cell, and in brackets its splits where they are not ten."""
    cell = results.cells_of_benchmark.get(key)
    if cell is None:
        return MISSING
    more = "" if cell.score.n == 10 else f" ({cell.score.n})"
    return f"{cell.score.mean:.2f}{more}"


def learned_table(results: Results) -> str:
    """Learned against drawn frequencies, task by task."""
    cells, body = results.cells_of_benchmark, []
    for task in core_tasks(results):
        many, few = cells.get((task, 16, "rff")), cells.get((task, 1, "auto"))
        ratio = f"{few.fit_time / many.fit_time:.2g}" if many and few else MISSING
        gain, _ = compare(results, task, (4, "auto"), (4, "rff"))
        texts = (mean_text(results, task, *key) for key in ((16, "rff"), (1, "auto")))
        body.append([task, *texts, ratio, f"{gain:+.1f}"])
    header = ["", "RFF, s = 16d", "`auto`, s = d", "fit time, the second / the first"]
    return markdown([*header, "gain of `auto` at 4d"], body)


def learned(results: Results) -> str:
    """Whether the gains of learned frequencies are significant."""
    tasks = [
        task
        for task in core_tasks(results)
        if {(task, 16, "rff"), (task, 1, "auto")} <= results.scores.keys()
    ]
    gains = {task: compare(results, task, (1, "auto"), (16, "rff")) for task in tasks}
    groups: dict[str, dict[str, str]] = {
        kind: {} for kind in ("sure", "unsure", "untested", "lower")
    }
    for task, (gain, p) in gains.items():
        tested = "untested" if np.isnan(p) else "sure" if p < LEVEL else "unsure"
        kind = tested if gain > 0 else "lower"
        more = "" if tested == "untested" else f", {p_text(p)}"
        groups[kind][task] = f"{task} ({round(gain, 1) + 0.0:+.1f}{more})"

    def of(kind):
        return listed(list(groups[kind].values()))

    same = [compare(results, task, (4, "auto"), (4, "rff")) for task in tasks]
    n_tested = sum(not np.isnan(p) for _, p in same)
    surely = sum(gain > 0 and p < LEVEL for gain, p in same)
    cells = results.cells_of_benchmark
    worse = sum(
        cell.p_value < LEVEL and cell.score.mean < cells[*key[:2], "rff"].score.mean
        for key, cell in cells.items()
        if key[2] == "auto"
    )
    return (
        "- A sixteenth of the frequencies, d learned ones against 16d drawn ones, in "
        "points, with a t-test that is corrected for random halves of the same rows: "
        f"significantly better at 5 % on {of('sure')}; a higher mean, which the halves "
        f"do not tell from chance, on {of('unsure')}; higher and not tested, on one "
        "split that comes with the data or on fewer than five splits, on "
        f"{of('untested')}; not higher on {of('lower')}.\n"
        f"- Against RFF at the same s = 4d the gain is significant on {surely} of the "
        f"{n_tested} tasks that can be tested; tasks and sizes of all suites at which "
        f"`auto` is significantly worse: {worse}. {over_data_sets(results, tasks)}"
    )


def over_data_sets(results: Results, tasks: list[str]) -> str:
    """Wilcoxon's test over the data sets, in a sentence."""
    cells = results.cells_of_benchmark
    first = [task for task in first_tasks(cells) if task in tasks]

    def p_value(multiple, reference):
        means = (
            {task: cells[task, *key].score.mean for task in first}
            for key in ((multiple, "auto"), (reference, "rff"))
        )
        return f"{signed_rank_p_value(*means):.3f}"

    return (
        f"Over the {len(first)} data sets Wilcoxon's signed-rank test gives p = "
        f"{p_value(4, 4)} at 4d against RFF at 4d, and p = {p_value(1, 16)} at d "
        "against RFF at 16d."
    )


#: Columns of the table of peers: label, multiple and method.
PEER_COLUMNS = (
    ("`auto`, 4d", 4, "auto"),
    ("with leaves, 4d", 4, "leaves"),
    ("`auto`, 16d", 16, "auto"),
    ("with leaves, 16d", 16, "leaves"),
    ("HistGradientBoosting", 0, "boosting"),
    ("XGBoost", 0, "xgboost"),
    ("xRFM", 0, "xrfm"),
    ("MLP, 4d", 4, "mlp"),
    ("exact kernel ridge", 0, "kernel-ridge"),
)


def peers(results: Results) -> str:
    """`auto`, with and without leaves, next to other libraries."""
    body = [
        [task, *(mean_text(results, task, *key) for _, *key in PEER_COLUMNS)]
        for task in core_tasks(results)
    ]
    return markdown(["", *(label for label, *_ in PEER_COLUMNS)], body)


def against_boosting(results: Results) -> str:
    """`auto` and leaves at 4d against HistGradientBoosting, task by task."""
    lines = []
    for method, label in (("auto", "`auto`"), ("leaves", "`auto` with leaves")):
        texts = []
        for task in core_tasks(results):
            pair = {(task, 4, method), (task, 0, "boosting")}
            if pair <= results.scores.keys():
                gain, p = compare(results, task, (4, method), (0, "boosting"))
                more = "" if np.isnan(p) else f", {p_text(p)}"
                texts.append(f"{task} {gain:+.1f}{more}")
        lines.append(
            f"- {label} at 4d less HistGradientBoosting, in points: {'; '.join(texts)}."
        )
    return "\n".join(lines)


def uci(results: Results) -> str:
    """Root mean square errors on the sets with masks."""
    if "uci" not in results.benchmarks:
        return "Not run."
    config, rows = results.benchmarks["uci"]
    table = benchmark_report(config, rows).tables[0]
    errors: dict[tuple, list[float]] = {}
    for row in rows:
        key = row["dataset"], row["method"], row["multiple"]
        errors.setdefault(key, []).append(row["rmse"])
    trees = {key[0]: errors[key] for key in errors if key[1] == "boosting-default"}
    others = {"untuned trees": {task: np.mean(e) for task, e in trees.items()}}
    others |= {p.method: p.values for p in PUBLISHED if "pol" in p.values}
    ours = {key[0]: np.mean(errors[key]) for key in errors if key[1:] == ("leaves", 4)}
    counts = []
    for name, values in others.items():
        both = values.keys() & ours.keys()
        less = sum(ours[task] < 0.98 * values[task] for task in both)
        counts.append(f"{name} on {less} of {len(both)}")
    lines = "\n".join(table.markdown())
    return (
        f"{table.note}\n\n{lines}\n\nWith leaves at 4d the mean error is less, by two "
        f"per cent or more, than that of {listed(counts)} sets."
    )


def sizes(results: Results) -> str:
    """Whether more learned frequencies are never worse."""
    by_task: dict[str, list[int]] = {}
    for task, multiple, method in results.scores:
        if method == "auto":
            by_task.setdefault(task, []).append(multiple)
    every = sorted({m for multiples in by_task.values() for m in multiples})
    body, steps, drops, below = [], 0, [], 0
    for task, multiples in by_task.items():
        for less, more in itertools.pairwise(sorted(multiples)):
            a, b = (results.scores[task, size, "auto"] for size in (more, less))
            differences = gains(a, b)
            if len(differences) < 2:
                continue
            steps += 1
            mean, std, n = summarise(differences)
            if mean < -std / math.sqrt(n):
                error = math.sqrt(1 / n + overlap(results, task)) * std
                below += mean < -error
                drops.append(
                    f"{task} from {size_text(less)} to {size_text(more)} ({mean:+.2f}, "
                    f"standard errors {std / math.sqrt(n):.2f} and {error:.2f})"
                )
        if len(multiples) > 1:
            body.append([task, *(mean_text(results, task, m, "auto") for m in every)])
    table = markdown(["", *(size_text(m) for m in every)], body)
    return (
        f"{table}\n\nOf {steps} steps from one size to the next with two splits or "
        f"more the mean falls in {below} by more than one standard error of its paired "
        "differences that is corrected for splits which share rows, and by more than "
        f"one that is not in {len(drops)}: {listed(drops)}."
    )


def by_gcv(results: Results) -> str:
    """Frequencies that are learned once against those that are for each fold again."""
    cells, body = results.cells_of_benchmark, []
    for task, multiple, method in results.scores:
        if method != "auto-gcv" or (task, multiple, "auto") not in results.scores:
            continue
        gain, p = compare(results, task, (multiple, method), (multiple, "auto"))
        once, again, plain = (
            cells.get((task, multiple, name)) for name in (method, "auto", "rff")
        )
        body.append(
            [
                task,
                size_text(multiple),
                *(mean_text(results, task, multiple, m) for m in ("auto", method)),
                f"{gain:+.2f}",
                p_cell(p),
                f"{once.fit_time / again.fit_time:.2f}",
                f"{once.fit_time / plain.fit_time:.3g}" if plain else MISSING,
            ]
        )
    header = ["", "s", "5 folds", "GCV", "gain", "p", "time, GCV / folds"]
    return markdown([*header, "time, GCV / tuned RFF"], body, n_labels=2)


def leaves(results: Results) -> str:
    """Whether leaves are ever worse than none, at the same size."""
    body, better, worse, lower, tested = [], [], [], [], 0
    cells = results.cells_of_benchmark
    for task, multiple, method in results.scores:
        if method != "leaves" or (task, multiple, "auto") not in results.scores:
            continue
        gain, p = compare(results, task, (multiple, "leaves"), (multiple, "auto"))
        tested += not np.isnan(p)
        if np.isnan(p) and gain < -0.05:
            lower.append(f"{task} {size_text(multiple)} ({gain:+.2f})")
        if p < LEVEL:
            (better if gain > 0 else worse).append(f"{task} {size_text(multiple)}")
        with_, without = (cells[task, multiple, name] for name in (method, "auto"))
        body.append(
            [
                task,
                size_text(multiple),
                mean_text(results, task, multiple, "auto"),
                mean_text(results, task, multiple, "leaves"),
                f"{gain:+.2f}",
                p_cell(p),
                f"{with_.fit_time / without.fit_time:.3g}",
                f"{with_.model_bytes / without.model_bytes:.3g}",
            ]
        )
    header = ["", "s", "`auto`", "with leaves", "gain", "p", "time", "bytes"]
    return (
        f"{markdown(header, body, n_labels=2)}\n\nTime and bytes are those with leaves "
        f"over those without. Of the {tested} rows that can be tested leaves are "
        f"significantly better in {len(better)} ({listed(better)}) and significantly "
        f"worse in {len(worse)} ({listed(worse)}). Lower means, by more than 0.05, of "
        f"rows without a test: {listed(lower)}."
    )


# -- the page on methods ---------------------------------------------------------------


def methods(results: Results) -> str:
    """Which methods differ from RFF beyond chance."""
    cells = summary_cells(results.rows("methods", METHODS_CONFIG), {})
    texts: dict[bool, list[str]] = {True: [], False: []}
    for (dataset, multiple, method), cell in cells.items():
        if cell.p_value < LEVEL:
            gain = cell.accuracy.mean - cells[dataset, multiple, "rff"].accuracy.mean
            texts[gain > 0].append(f"{sized((dataset, multiple, method))} {gain:+.1f}")
    return (
        "Significantly different from RFF at 5 %, in a t-test that is corrected for "
        f"random halves of the same rows: better {', '.join(texts[True])}; worse "
        f"{', '.join(texts[False])}. All other differences may be chance."
    )


# -- pages -----------------------------------------------------------------------------

#: Blocks of the pages by file and name.
BLOCKS: dict[str, dict[str, Callable[[Results], str]]] = {
    "reproduction.md": {
        "how-close": how_close,
        "seeds": seeds,
        "readings": readings,
        "recipes": recipes,
        "bullets": bullets,
        "gain": gain,
        "fair": fair,
        "times": times,
    },
    "accuracy.md": {
        "learned-table": learned_table,
        "learned": learned,
        "peers": peers,
        "boosting": against_boosting,
        "uci": uci,
        "leaves": leaves,
        "sizes": sizes,
        "by-gcv": by_gcv,
    },
    "leaves.md": {
        "heads": lambda results: leaf_tables.heads(results.root),
        "trees": lambda r: leaf_tables.against_trees(r.root, r.scores),
    },
    "methods.md": {"methods": methods},
    "intervals.md": {
        "coverage": lambda results: interval_tables.coverage(results.root),
        "time": lambda results: interval_tables.fit_ratios(results.root),
    },
    "uncertainty.md": {
        "deviations": lambda results: interval_tables.deviations(results.root),
        "evidence": lambda results: interval_tables.evidence(results.root),
        "processes": lambda results: interval_tables.published_processes(results.root),
    },
}

BLOCK = re.compile(r"(<!-- numbers: (\S+) -->\n\n).*?<!-- end -->", re.DOTALL)


def filled(page: str, text: str, results: Results) -> str:
    """A page with its blocks as the results have them.

    Parameters
    ----------
    page : str
        Key of `BLOCKS`.
    text : str
    results : Results

    Raises
    ------
    ValueError
        The page has not the blocks that it should have.
    """
    names = [match[2] for match in BLOCK.finditer(text)]
    expected = list(BLOCKS[page])
    if names != expected:
        raise ValueError(f"{page} must have the blocks {expected}, got {names}.")
    return BLOCK.sub(
        lambda match: (
            match[1] + wrapped(BLOCKS[page][match[2]](results)) + "\n\n<!-- end -->"
        ),
        text,
    )


def wrapped(text: str) -> str:
    """Paragraphs at most 88 columns wide, tables as they are."""
    wrap = partial(textwrap.wrap, width=88, break_on_hyphens=False)
    lines = []
    for line in text.split("\n"):
        indent = "  " if line.startswith("- ") else ""
        whole = line.startswith("|") or not line
        lines += [line] if whole else wrap(line, subsequent_indent=indent)
    return "\n".join(lines)


def texts(docs: Path) -> Iterator[tuple[Path, str]]:
    """Every file that follows from the results, and what it should say."""
    results = Results(docs / "results")
    for directory, report in results.reports():
        for suffix, text in report.texts().items():
            yield docs / "results" / directory / f"{report.stem}{suffix}", text
    for page in BLOCKS:
        path = docs / page
        yield path, filled(page, path.read_text("utf-8"), results)


def main(arguments=None, docs=DOCS):
    """Write or check the files; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing")
    parser.add_argument("--pictures", action="store_true", help="draw them, too")
    options = parser.parse_args(arguments)
    stale = [
        (path, text)
        for path, text in texts(docs)
        if not path.exists() or path.read_text("utf-8") != text
    ]
    for path, text in stale:
        print(path.relative_to(docs))
        if not options.check:
            path.write_text(text, encoding="utf-8")
    if options.pictures:
        for directory, report in Results(docs / "results").reports():
            report.write(docs / "results" / directory)
    return int(options.check and bool(stale))


if __name__ == "__main__":
    sys.exit(main())
