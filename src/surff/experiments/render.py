"""From stored rows of Table 2 to its tables.

`summary_cells` boils the trials of each (data set, multiple, method) down to a `Cell`;
every table shows the same cells. Accuracies are in percent, deviations in points.
`captions` says what was run, on what, and where a choice ended at the end of its grid.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from surff.datasets import DATASETS
from surff.experiments.methods import ABLATION, LABELS, why_not
from surff.experiments.printed import PrintedCell, expected_deviation
from surff.experiments.statistics import (
    Summary,
    mean_absolute_deviation,
    paired_p_value,
    paired_ratio,
    significantly_better,
    summarise,
)
from surff.experiments.table import MISSING, Table, format_seconds, format_summary

__all__ = [
    "Cell",
    "captions",
    "cells_in_full",
    "dataset_table",
    "method_captions",
    "method_table",
    "picture_caption",
    "summary_cells",
]

#: Methods that carry the paper's bullet where they are better than RFF.
WEIGHTED = ("leverage", "surrogate")

#: Level of the paired t-test against RFF, as in the paper.
LEVEL = 0.05


class Cell(NamedTuple):
    """One method on one data set at one size, over its trials.

    Attributes
    ----------
    accuracy : Summary
        Test accuracy in percent.
    seconds : float
        Generation time, median over trials.
    ratio : float
        Generation time over RFF's in the same trial, median; NaN without RFF.
    printed : PrintedCell or None
        The paper's cell, where at hand.
    p_value : float
        Of the paired t-test against RFF; NaN for RFF itself or one trial.
    bullet : bool
        A weighted method, significantly better than RFF at 5 %.
    at_grid_end : dict of str to int
        In how many trials the choice of a parameter sat at the end of its grid.
    n_frequencies : int
        s.
    """

    accuracy: Summary
    seconds: float
    ratio: float
    printed: PrintedCell | None
    p_value: float
    bullet: bool
    at_grid_end: dict[str, int]
    n_frequencies: int

    @property
    def deviation(self) -> float | None:
        """Accuracy less the paper's, in points; None where that is not at hand."""
        if self.printed is None:
            return None
        return self.accuracy.mean - self.printed.accuracy


Cells = dict[tuple[str, int, str], Cell]


def summary_cells(
    rows: Sequence[dict], printed: Mapping[tuple[str, int, str], PrintedCell]
) -> Cells:
    """Boil trials down to cells.

    Parameters
    ----------
    rows : sequence of dict
        Of one protocol, one reading of the weights and one seed.
    printed : dict
        As `surff.experiments.printed.printed_table` returns.

    Returns
    -------
    cells : dict
        Maps ``(dataset, multiple, method)`` to `Cell`, data sets in the order of the
        rows, multiples ascending, methods in table order.
    """
    trials: dict[tuple, dict[int, dict]] = {}
    for row in rows:
        key = row["dataset"], row["multiple"], row["method"]
        trials.setdefault(key, {})[row["trial"]] = row
    datasets = list(dict.fromkeys(key[0] for key in trials))
    methods = list(LABELS)
    cells = {}
    for key in sorted(
        trials, key=lambda k: (datasets.index(k[0]), k[1], methods.index(k[2]))
    ):
        dataset, multiple, method = key
        reference = trials.get((dataset, multiple, "rff"), {})
        cells[key] = _cell(method, trials[key], reference, printed.get(key))
    return cells


def _cell(method, trials, reference, printed):
    def column(rows, name):
        return {trial: row[name] for trial, row in rows.items()}

    accuracy = column(trials, "accuracy")
    time = column(trials, "generation_time")
    rff_accuracy = column(reference, "accuracy")
    rff_time = column(reference, "generation_time")
    is_rff = method == "rff"
    ends = [name for row in trials.values() for name in row["at_grid_end"]]
    return Cell(
        accuracy=summarise([100.0 * value for value in accuracy.values()]),
        seconds=float(np.median(list(time.values()))),
        ratio=paired_ratio(time, rff_time),
        printed=printed,
        p_value=math.nan if is_rff else paired_p_value(accuracy, rff_accuracy),
        bullet=method in WEIGHTED and significantly_better(accuracy, rff_accuracy),
        at_grid_end={name: ends.count(name) for name in sorted(set(ends))},
        n_frequencies=next(iter(trials.values()))["n_frequencies"],
    )


# -- tables ----------------------------------------------------------------------------


def _places(cells, dataset):
    """Multiples and methods of a data set, in order."""
    multiples = dict.fromkeys(key[1] for key in cells if key[0] == dataset)
    found = {key[2] for key in cells if key[0] == dataset}
    return list(multiples), [name for name in LABELS if name in found]


def _accuracy(cell):
    if cell is None:
        return MISSING
    return format_summary(cell.accuracy, ".2f", ".2f") + " •" * cell.bullet


def _printed(cell):
    if cell is None or cell.printed is None:
        return MISSING
    return f"{cell.printed.accuracy:.2f} ({cell.deviation:+.2f})"


def _time(cell, method):
    if cell is None:
        return MISSING
    if method in ABLATION:
        return f"as {LABELS['rff']}"
    ratio = ""
    if method != "rff" and not math.isnan(cell.ratio):
        decimals = 2 if cell.ratio < 2 else 1 if cell.ratio < 10 else 0
        ratio = f" ({cell.ratio:.{decimals}f}x)"
    return f"{format_seconds(cell.seconds)}{ratio}"


def _deviation(cells, dataset, method):
    """Mean absolute deviation from the printed cells, as text."""
    compared = {
        key: cell
        for key, cell in cells.items()
        if key[0] == dataset and key[2] == method and cell.printed
    }
    deviation, n_cells = mean_absolute_deviation(
        {key: cell.accuracy.mean for key, cell in compared.items()},
        {key: cell.printed.accuracy for key, cell in compared.items()},
    )
    plural = "cell" if n_cells == 1 else "cells"
    return f"{deviation:.2f} ({n_cells} {plural})" if n_cells else MISSING


def dataset_table(cells: Cells, dataset: str, config: Any) -> Table:
    """Accuracies, the paper's, and times of one data set: a column per method.

    Parameters
    ----------
    cells : dict
        As `summary_cells` returns.
    dataset : str
    config : Table2

    Returns
    -------
    Table
        At most 100 columns wide with the paper's methods. The last rows have the mean
        absolute deviations from the printed cells and, for ``published``, those that
        the best known recipe reached.
    """
    multiples, methods = _places(cells, dataset)
    body = []
    for multiple in multiples:
        row = {name: cells.get((dataset, multiple, name)) for name in methods}
        times = (_time(cell, name) for name, cell in row.items())
        body += [
            [f"{multiple}d", "accuracy", *map(_accuracy, row.values())],
            ["", "paper", *map(_printed, row.values())],
            ["", "time", *times],
        ]
    body.append(["MAD", "here", *(_deviation(cells, dataset, m) for m in methods)])
    if config.protocol == "published":
        known = (expected_deviation(dataset, m, config.weights) for m in methods)
        texts = (MISSING if value is None else f"{value:.2f}" for value in known)
        body.append(["", "known", *texts])
    return Table(
        ["s", "", *(LABELS[method] for method in methods)],
        body,
        f"{dataset}: accuracy in %",
        name=dataset,
        section=3,
        n_labels=2,
        row_styles=("", "cyan", "dim"),
    )


def _marked_accuracy(cell, reference):
    """Accuracy with its standard error and how it compares with RFF's."""
    text = format_summary(cell and cell.accuracy, ".2f", ".2f", error=True)
    if cell is None or reference is None or not cell.p_value < LEVEL:
        return text
    return f"{text} {'•' if cell.accuracy.mean > reference.accuracy.mean else '◦'}"


def method_table(cells: Cells, dataset: str) -> Table:
    """Accuracies of all methods on one data set: a row per method, a column per size.

    Table 2 has a column per method, which serves the paper's four. Here every accuracy
    has its standard error and its mark against RFF, and the last column says what
    generating the features costs in multiples of RFF.
    """
    sizes, methods = _places(cells, dataset)
    body = []
    for method in methods:
        row = {size: cells.get((dataset, size, method)) for size in sizes}
        texts = (
            _marked_accuracy(cell, cells.get((dataset, size, "rff")))
            for size, cell in row.items()
        )
        ratio = [cell.ratio for cell in row.values() if cell][-1]
        time = MISSING if math.isnan(ratio) else f"{ratio:.3g}x"
        body.append([LABELS[method], *texts, time])
    header = ["method", *(f"s = {size}d" for size in sizes), "time / RFF"]
    return Table(header, body, f"{dataset}: accuracy in %", name=dataset)


def cells_in_full(cells: Cells, config: Any) -> Table:
    """One row per cell: accuracies in percent, times in seconds."""
    header = ["protocol", "weights", "seed", "dataset", "multiple", "n_frequencies"]
    header += ["method", "trials", "accuracy", "std", "printed", "deviation", "p_value"]
    header += ["better_than_rff", "generation_time", "generation_ratio", "at_grid_end"]
    rows = [
        [
            config.protocol,
            config.weights,
            config.seed,
            dataset,
            multiple,
            cell.n_frequencies,
            method,
            cell.accuracy.n,
            cell.accuracy.mean,
            cell.accuracy.std,
            None if cell.printed is None else str(cell.printed.accuracy),
            cell.deviation,
            cell.p_value,
            int(cell.bullet),
            cell.seconds,
            cell.ratio,
            " ".join(f"{name}:{n}" for name, n in cell.at_grid_end.items()),
        ]
        for (dataset, multiple, method), cell in cells.items()
    ]
    return Table(header, rows)


# -- captions --------------------------------------------------------------------------

_PROTOCOL_TEXT = {
    "published": "Protocol published, the recipe behind the printed table: each sample "
    "z-scored over its own features (covtype: columns scaled to [0, 1]), gamma = 1/2; "
    "nothing is re-sampled, the weighted methods keep all 2s columns and multiply them "
    "by 1/sqrt(q); alpha in {0.05, 0.1, 0.5, 1}, not multiplied by n, by 5-fold "
    "cross-validation.",
    "literal": "Protocol literal, Algorithm 1 as printed: columns scaled to [0, 1], "
    "gamma = 1, a pool of l = s re-sampled with replacement, weights 1/sqrt(l q), "
    "alpha = n lambda with lambda in {0.05, 0.1, 0.5, 1} by 5-fold cross-validation.",
    "fair": "Protocol fair: for every method gamma and alpha chosen by the same rule "
    "on the training half alone, columns standardised by training statistics; the "
    "weighted methods keep s of a larger pool without replacement.",
}

_WEIGHTS_TEXT = {
    "own": "Weights: own, each column has its own.",
    "sorted": "Weights: sorted ascending, the frequencies re-ordered with them, the "
    "first s used as cosines and the last s as sines.",
}

_DATA_TEXT = {
    "magic04": "gamma against hadron",
    "covtype": "class 2 against the rest",
    "breast_cancer": "benign against malignant",
    "digits": "odd against even digits",
}


def _data_fact(dataset, protocol, row):
    if dataset == "eeg":
        return (
            "its four outlier rows clipped at 10 interquartile ranges from the median"
            if protocol == "fair"
            else "its four outlier rows kept"
        )
    if dataset == "cod-rna":
        if row["n_test"] == DATASETS["cod-rna"].n_samples["paper-test"]:
            return (
                "tested on the last 157,410 rows of cod-rna.t, which stand in for the "
                "paper's own test rows (cod-rna.r, 157,413 rows)"
            )
        return "tested on the paper's own test rows (cod-rna.r)"
    return _DATA_TEXT[dataset]


def captions(config: Any, rows: Sequence[dict]) -> list[str]:
    """Sentences that say what a table or picture shows.

    Parameters
    ----------
    config : Table2
    rows : sequence of dict
        The rows shown.

    Returns
    -------
    sentences : list of str
        The protocol, the trials, the data, the marks, and the ends of grids.
    """
    return [
        _PROTOCOL_TEXT[config.protocol],
        *_weights_texts(config),
        _trials_text(config, rows),
        *_data_texts(config, rows),
        *_grid_end_texts(rows),
    ]


def picture_caption(config: Any, rows: Sequence[dict]) -> list[str]:
    """The sentences of `captions` that the title and axes of a picture do not say."""
    return [
        *_weights_texts(config),
        *_data_texts(config, rows),
        *_grid_end_texts(rows),
    ]


def _weights_texts(config):
    return [_WEIGHTS_TEXT[config.weights]] if config.protocol == "published" else []


def _data_texts(config, rows):
    sentences = []
    for dataset in dict.fromkeys(row["dataset"] for row in rows):
        row = next(row for row in rows if row["dataset"] == dataset)
        sentences.append(
            f"{dataset}: d = {row['n_frequencies'] // row['multiple']}, "
            f"{row['n_train']:,} rows to train, {row['n_test']:,} to test; "
            f"{_data_fact(dataset, config.protocol, row)}."
        )
    return sentences


def _trials_text(config, rows):
    counts = {}
    for row in rows:
        key = row["dataset"], row["multiple"], row["method"]
        counts[key] = counts.get(key, 0) + 1
    least, most = min(counts.values()), max(counts.values())
    n = f"{most} trials" if most > 1 else "1 trial"
    if least < most:
        n = f"{least} to {most} trials (the run is not finished)"
    return (
        f"Accuracy in %: mean and standard deviation over {n}, seed {config.seed}; "
        "• marks a weighted method better than RFF in a paired t-test at 5 %. Paper: "
        "the printed cell where it is at hand, and the accuracy less it; MAD: mean "
        "absolute deviation from those cells, and what the best known recipe reached "
        "over all printed cells. Time: draw, score and map the training rows once "
        "(fastest of five where that is short), median over trials, and in brackets "
        "over RFF's in the same trial."
    )


def _grid_end_texts(rows):
    counts, totals = {}, {}
    for row in rows:
        method = row["method"]
        totals[method] = totals.get(method, 0) + 1
        for name in row["at_grid_end"]:
            counts.setdefault(name, {}).setdefault(method, 0)
            counts[name][method] += 1
    if not counts:
        return ["No chosen alpha or gamma sat at an end of its grid."]
    return [
        f"The chosen {name} sat at an end of its grid in some fits: "
        + "; ".join(
            f"{label} {counts[name][method]} of {totals[method]}"
            for method, label in LABELS.items()
            if method in counts[name]
        )
        + "."
        for name in sorted(counts)
    ]


def method_captions(config: Any, rows: Sequence[dict]) -> list[str]:
    """Sentences that say what a `method_table` shows."""
    protocol, _, *data = captions(config, rows)
    n_trials = len({row["trial"] for row in rows})
    marks = (
        f"Accuracy in %: mean and standard error over {n_trials} "
        f"trial{'s' if n_trials > 1 else ''}, seed {config.seed}; • better and ◦ "
        "worse than RFF in a paired t-test at 5 %. Time: draw or choose, and map the "
        "training rows once, over RFF's in the same trial, at the largest s, median."
    )
    d = {row["dataset"]: row["n_frequencies"] // row["multiple"] for row in rows}
    left_out = [
        f"{dataset}: {LABELS[method]} has no map of {multiple}d frequencies, {reason}."
        for dataset in d
        for multiple in config.multiples_of(dataset)
        for method in config.methods
        if (reason := why_not(method, d[dataset], multiple))
    ]
    return [protocol, marks, *data, *left_out]
