"""From stored rows of Table 2 to its tables.

`summary_cells` boils the trials of each (data set, multiple, method) down to a `Cell`;
every table shows the same cells. Accuracies are in percent, deviations in points.
`captions` says what was run, on what, and where a choice ended at the end of its grid.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from surff.datasets import DATASETS
from surff.experiments.methods import ABLATION, LABELS, why_not
from surff.experiments.printed import PrintedCell
from surff.experiments.protocol import ONE_SPLIT
from surff.experiments.registry import REGISTRY
from surff.experiments.statistics import (
    LEAST_TRIALS,
    Summary,
    paired_p_value,
    paired_ratio,
    rows_by_cell,
    significantly_better,
    summarise,
)
from surff.experiments.table import (
    MISSING,
    Table,
    format_marked,
    format_seconds,
    format_summary,
)

__all__ = [
    "Agreement",
    "Cell",
    "agreement",
    "captions",
    "cells_in_full",
    "dataset_table",
    "latex_caption",
    "method_captions",
    "method_table",
    "picture_caption",
    "resampling_ratio",
    "summary_cells",
    "trials_text",
]

#: Methods that carry the paper's bullet where they are better than all of `PLAIN`.
WEIGHTED = ("leverage", "surrogate")

#: Methods that the weighted ones are tested against, as in the paper.
PLAIN = ("rff", "qmc")


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
        The paper's cell; None for what the paper has no number of.
    printed_ratio : float
        Printed generation time over RFF's; NaN where the paper has none.
    p_value : float
        Of the t-test against RFF, see `resampling_ratio`; NaN without a test.
    bullet : bool
        A weighted method, significantly better than RFF and QMC, each at 5 %.
    at_grid_end : dict of str to int
        In how many trials the choice of a parameter sat at the end of its grid.
    n_frequencies : int
        s.
    """

    accuracy: Summary
    seconds: float
    ratio: float
    printed: PrintedCell | None
    printed_ratio: float
    p_value: float
    bullet: bool
    at_grid_end: dict[str, int]
    n_frequencies: int

    @property
    def deviation(self) -> float | None:
        """Accuracy less the paper's, in points; None where the paper has none."""
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
    trials = rows_by_cell(rows)
    datasets = list(dict.fromkeys(key[0] for key in trials))
    methods = list(LABELS)
    return {
        key: _cell(key, trials, printed)
        for key in sorted(
            trials, key=lambda k: (datasets.index(k[0]), k[1], methods.index(k[2]))
        )
    }


def resampling_ratio(row: dict) -> float | None:
    """How the trials of a row's table are tested, as `paired_p_value` takes it.

    Parameters
    ----------
    row : dict

    Returns
    -------
    ratio : float or None
        0, the plain test, for the protocol ``published``, which reproduces the paper's;
        the ratio of random splits otherwise; None where the data have one split, whose
        trials differ in their draws alone: there is nothing to test.
    """
    if row["protocol"] == "published":
        return 0.0
    return None if row["dataset"] in ONE_SPLIT else row["n_test"] / row["n_train"]


def _cell(key, trials, printed):
    dataset, multiple, method = key

    def column(name, of=method):
        rows = trials.get((dataset, multiple, of), {})
        return {trial: row[name] for trial, row in rows.items()}

    accuracy, time = column("accuracy"), column("generation_time")
    plain = [column("accuracy", name) for name in PLAIN]
    found = list(trials[key].values())
    ratio = resampling_ratio(found[0])
    tested = ratio is not None and method != "rff"
    ends = [name for row in found for name in row["at_grid_end"]]
    cell, rff = printed.get(key), printed.get((dataset, multiple, "rff"))
    return Cell(
        accuracy=summarise([100.0 * value for value in accuracy.values()]),
        seconds=float(np.median(list(time.values()))),
        ratio=paired_ratio(time, column("generation_time", "rff")),
        printed=cell,
        printed_ratio=cell.seconds / rff.seconds if cell and rff else math.nan,
        p_value=paired_p_value(accuracy, plain[0], ratio) if tested else math.nan,
        bullet=tested
        and method in WEIGHTED
        and significantly_better(accuracy, plain, ratio),
        at_grid_end={name: ends.count(name) for name in sorted(set(ends))},
        n_frequencies=found[0]["n_frequencies"],
    )


# -- tables ----------------------------------------------------------------------------


def _places(cells, dataset):
    """Multiples and methods of a data set, in order."""
    multiples = dict.fromkeys(key[1] for key in cells if key[0] == dataset)
    found = {key[2] for key in cells if key[0] == dataset}
    return list(multiples), [name for name in LABELS if name in found]


def _accuracy(cell, _method):
    return format_summary(cell.accuracy, ".2f", ".2f") + " •" * cell.bullet


def _printed(cell, _method):
    printed = cell.printed
    return f"{printed.accuracy:.2f} ± {printed.std:.2f}" + " •" * printed.bullet


def _difference(cell, _method):
    """Accuracy less the paper's, and in brackets over the paper's deviation."""
    if not cell.printed.std:
        return f"{cell.deviation:+.2f}"
    return f"{cell.deviation:+.2f} ({abs(cell.deviation) / cell.printed.std:.1f} sd)"


def _with_ratio(seconds, ratio, method):
    text = ""
    if method != "rff" and not math.isnan(ratio):
        decimals = 2 if ratio < 2 else 1 if ratio < 10 else 0
        text = f" ({ratio:.{decimals}f}x)"
    return f"{format_seconds(seconds)}{text}"


def _time(cell, method):
    if method in ABLATION:
        return f"as {LABELS['rff']}"
    return _with_ratio(cell.seconds, cell.ratio, method)


def _printed_time(cell, method):
    return _with_ratio(cell.printed.seconds, cell.printed_ratio, method)


#: Rows of a table at one size: what each shows of a cell, the paper's in between.
_ROWS = {
    "accuracy": _accuracy,
    "paper": _printed,
    "difference": _difference,
    "time": _time,
    "paper's time": _printed_time,
}

#: Rows that need the paper's cell.
_OF_PAPER = ("paper", "difference", "paper's time")


#: Their styles on the terminal.
_ROW_STYLES = {"paper": "cyan", "difference": "cyan", "time": "dim"}
_ROW_STYLES["paper's time"] = "dim"


class Agreement(NamedTuple):
    """How measured cells compare with the printed ones.

    Attributes
    ----------
    deviation : float
        Mean absolute deviation of the accuracies, in points.
    within : int
        Cells within one printed standard deviation.
    n_cells : int
    same_bullets, n_bullets : int
        Weighted cells whose bullet is the paper's, of how many.
    """

    deviation: float
    within: int
    n_cells: int
    same_bullets: int
    n_bullets: int


def agreement(
    cells: Cells, dataset: str | None = None, method: str | None = None
) -> Agreement | None:
    """Compare cells with the printed ones.

    Parameters
    ----------
    cells : dict
        As `summary_cells` returns.
    dataset, method : str, optional
        Cells of these alone.

    Returns
    -------
    Agreement or None
        None without a cell to compare.
    """
    found = [
        (key[2] in WEIGHTED, cell)
        for key, cell in cells.items()
        if cell.printed and dataset in (None, key[0]) and method in (None, key[2])
    ]
    if not found:
        return None
    weighted = [cell for is_weighted, cell in found if is_weighted]
    return Agreement(
        float(np.mean([abs(cell.deviation) for _, cell in found])),
        sum(abs(c.deviation) <= c.printed.std for _, c in found),
        len(found),
        sum(cell.bullet == cell.printed.bullet for cell in weighted),
        len(weighted),
    )


def _agreement_rows(cells, dataset, methods):
    found = [agreement(cells, dataset, method) for method in methods]
    texts = [
        (f"{a.deviation:.2f}", f"{a.within} of {a.n_cells}", _same_bullets(a))
        if a
        else (MISSING,) * 3
        for a in found
    ]
    names = "mean deviation", "within 1 sd", "same bullet"
    lines = zip(names, zip(*texts, strict=True), strict=True)
    return [
        ["all" if i == 0 else "", name, *row] for i, (name, row) in enumerate(lines)
    ]


def _same_bullets(found):
    if not found.n_bullets:
        return MISSING
    return f"{found.same_bullets} of {found.n_bullets}"


def dataset_table(
    cells: Cells, dataset: str, errors: Mapping[tuple, Summary] | None = None
) -> Table:
    """Accuracies and times of one data set next to the paper's: a column per method.

    Parameters
    ----------
    cells : dict
        As `summary_cells` returns.
    dataset : str
    errors : dict, optional
        Kernel errors by the keys of the cells, for a row of their own.

    Returns
    -------
    Table
        At most 100 columns wide with the paper's methods. Rows of the paper's cells are
        there if it has any for the data set; then the last rows say how well all sizes
        agree with it.
    """
    multiples, methods = _places(cells, dataset)
    compared = agreement(cells, dataset)
    names = [name for name in _ROWS if compared or name not in _OF_PAPER]
    if errors is not None:
        names.insert(0, "error")
    body = []
    for multiple in multiples:
        for name in names:
            texts = [f"{multiple}d" if name == names[0] else "", name]
            for method in methods:
                key = dataset, multiple, method
                if name == "error":
                    texts.append(format_summary(errors.get(key), ".4f", ".4f"))
                else:
                    texts.append(_cell_text(name, cells.get(key), method))
            body.append(texts)
    if compared:
        body += _agreement_rows(cells, dataset, methods)
    return Table(
        ["s", "", *(LABELS[method] for method in methods)],
        body,
        f"{dataset}: accuracy in %",
        name=dataset,
        section=len(names),
        n_labels=2,
        row_styles=[_ROW_STYLES.get(name, "") for name in names],
    )


def _cell_text(name, cell, method):
    if cell is None or (name in _OF_PAPER and cell.printed is None):
        return MISSING
    return _ROWS[name](cell, method)


def method_table(cells: Cells, dataset: str) -> Table:
    """Accuracies of all methods on one data set: a row per method, a column per size.

    Table 2 has a column per method, which serves the paper's four. Here every accuracy
    has its standard deviation and its mark against RFF, and the last column says what
    generating the features costs in multiples of RFF.
    """
    sizes, methods = _places(cells, dataset)
    body = []
    for method in methods:
        row = {size: cells.get((dataset, size, method)) for size in sizes}
        texts = (
            format_marked(cell, cells.get((dataset, size, "rff")), "accuracy")
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
    header += ["method", "trials", "accuracy", "std", "p_value", "bullet"]
    header += ["generation_time", "generation_ratio", "at_grid_end", "deviation"]
    header += [f"printed_{name}" for name in (*PrintedCell._fields, "ratio")]
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
            cell.p_value,
            int(cell.bullet),
            cell.seconds,
            cell.ratio,
            " ".join(f"{name}:{n}" for name, n in cell.at_grid_end.items()),
            cell.deviation,
            *(cell.printed or [None] * len(PrintedCell._fields)),
            cell.printed_ratio,
        ]
        for (dataset, multiple, method), cell in cells.items()
    ]
    return Table(header, rows)


# -- captions --------------------------------------------------------------------------

_TEXTS = REGISTRY["captions"]


def _data_fact(dataset, protocol, row):
    if dataset == "eeg":
        return _TEXTS["eeg"][protocol]
    if dataset == "cod-rna":
        n_stand_in = DATASETS["cod-rna"].n_samples["paper-test"]
        rows = "stand_in" if row["n_test"] == n_stand_in else "own"
        return _TEXTS["cod-rna"][rows]
    return _TEXTS["data"][dataset]


#: Data sets that the paper has numbers of.
PAPER_DATA = ("eeg", "magic04", "cod-rna", "covtype")


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
        _TEXTS["protocol"][config.protocol],
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
    return [_TEXTS["weights"][config.weights]] if config.protocol == "published" else []


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


def trials_text(rows: Sequence[dict], why: str = "the run is not finished") -> str:
    """How many trials the cells of some rows have; ``why``, if not all as many."""
    counts = [len(trials) for trials in rows_by_cell(rows).values()]
    least, most = min(counts), max(counts)
    n = f"{most} trials" if most > 1 else "1 trial"
    return f"{least} to {most} trials ({why})" if least < most else n


def _tested(rows):
    return len({row["trial"] for row in rows}) >= LEAST_TRIALS


def _test_text(config, rows):
    """Which test the marks come from."""
    texts = _TEXTS["test"]
    if not _tested(rows):
        return texts["none"].format(least=LEAST_TRIALS)
    if config.protocol == "published":
        return texts["plain"]
    datasets = " and ".join(sorted({row["dataset"] for row in rows} & set(ONE_SPLIT)))
    one_split = texts["one_split"].format(datasets=datasets) if datasets else ""
    return f"{texts['corrected']}{one_split}"


def latex_caption(config: Any, rows: Sequence[dict]) -> str:
    """What a caption says after "accuracy in %", in the same sentence.

    Parameters
    ----------
    config : Table2
    rows : sequence of dict
        The rows shown, of one data set.
    """
    text = (
        f", mean and standard deviation over {trials_text(rows)} of the protocol "
        f"{config.protocol}"
    )
    if not _tested(rows) or resampling_ratio(rows[0]) is None:
        return text
    test = "plain paired" if config.protocol == "published" else "corrected resampled"
    marks = "better" if config.more else "weighted methods better"
    than = " and ◦ worse than RFF" if config.more else " than RFF and QMC"
    return f"{text}; • {marks}{than} ({test} t-test, 5 %)"


def _marks_text(config, rows, table):
    """What the marks in a table are, and its times."""
    return _TEXTS[table]["marks"].format(
        trials=trials_text(rows), seed=config.seed, test=_test_text(config, rows)
    )


def _trials_text(config, rows):
    text = _marks_text(config, rows, "table2")
    if any(row["dataset"] in PAPER_DATA for row in rows):
        text += f" {_TEXTS['table2']['paper']}"
    return text


def _grid_end_texts(rows):
    totals = Counter(row["method"] for row in rows)
    counts = Counter(
        (name, row["method"]) for row in rows for name in row["at_grid_end"]
    )
    if not counts:
        return ["No chosen alpha or gamma sat at an end of its grid."]
    return [
        f"The chosen {name} sat at an end of its grid in some fits: "
        + "; ".join(
            f"{label} {counts[name, method]} of {totals[method]}"
            for method, label in LABELS.items()
            if counts[name, method]
        )
        + "."
        for name in sorted({name for name, _ in counts})
    ]


def method_captions(config: Any, rows: Sequence[dict]) -> list[str]:
    """Sentences that say what a `method_table` shows."""
    protocol, _, *data = captions(config, rows)
    d = {row["dataset"]: row["n_frequencies"] // row["multiple"] for row in rows}
    left_out = [
        f"{dataset}: {LABELS[method]} has no map of {multiple}d frequencies, {reason}."
        for dataset in d
        for multiple in config.multiples_of(dataset)
        for method in config.methods
        if (reason := why_not(method, d[dataset], multiple))
    ]
    marks = _marks_text(config, rows, "methods")
    return [protocol, marks, *data, *left_out]
