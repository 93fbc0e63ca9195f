"""From stored rows to tables: terminal, Markdown, LaTeX and CSV.

`summary_cells` boils the trials of each (data set, multiple, method) down to a `Cell`;
every table shows the same cells. Accuracies are in percent, deviations in points.
`captions` says what was run, on what, and where a choice ended at the end of its grid.
"""

import csv
import io
import math
from typing import NamedTuple

import numpy as np

from surff.datasets import DATASETS
from surff.draws import DRAWS
from surff.experiments.methods import METHODS, MORE, all_methods
from surff.experiments.printed import PrintedCell, expected_deviation
from surff.experiments.protocol import ABLATION
from surff.experiments.statistics import (
    Summary,
    mean_absolute_deviation,
    paired_p_value,
    paired_ratio,
    significantly_better,
    summarise,
)

__all__ = [
    "DRAW_LABELS",
    "LABELS",
    "Cell",
    "captions",
    "csv_table",
    "format_seconds",
    "latex_float",
    "latex_table",
    "markdown_table",
    "picture_caption",
    "rich_grid",
    "rich_tables",
    "summary_cells",
]

#: Printed names of the methods and of the ablation, in table order.
LABELS = {**all_methods(), **ABLATION}

#: Printed names of the draws and of the Nystrom landmark rules, in table order.
DRAW_LABELS = {
    "monte_carlo": "iid (RFF)",
    "halton": "Halton",
    **{name: label for name, label in MORE.items() if name in DRAWS},
    **{name: label for name, label in MORE.items() if name.startswith("nystroem-")},
}

#: Methods that carry the paper's bullet where they are better than RFF.
WEIGHTED = ("leverage", "surrogate")

MISSING = "\N{EN DASH}"


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
    def deviation(self):
        """Ours less the paper's, in points; None where the paper's is not at hand."""
        return None if self.printed is None else self.accuracy.mean - self.printed[0]


def summary_cells(rows, printed):
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
    trials = {}
    for row in rows:
        key = row["dataset"], row["multiple"], row["method"]
        trials.setdefault(key, {})[row["trial"]] = row
    order = {name: i for i, name in enumerate(dict.fromkeys(k[0] for k in trials))}
    methods = {name: i for i, name in enumerate(LABELS)}
    cells = {}
    for key in sorted(trials, key=lambda k: (order[k[0]], k[1], methods[k[2]])):
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


def _blocks(cells):
    """Per data set: its multiples and its methods, in order."""
    for dataset in dict.fromkeys(key[0] for key in cells):
        multiples = dict.fromkeys(key[1] for key in cells if key[0] == dataset)
        found = {key[2] for key in cells if key[0] == dataset}
        yield dataset, list(multiples), [name for name in LABELS if name in found]


# -- numbers as text -------------------------------------------------------------------


def format_seconds(seconds):
    """A time with three digits and its unit.

    Examples
    --------
    >>> format_seconds(0.01234), format_seconds(1.5)
    ('12.3 ms', '1.50 s')
    """
    value, unit = (seconds, "s") if seconds >= 1.0 else (1e3 * seconds, "ms")
    decimals = 2 if value < 10 else 1 if value < 100 else 0
    return f"{value:.{decimals}f} {unit}"


def _accuracy(cell):
    if cell is None:
        return MISSING
    spread = "" if math.isnan(cell.accuracy.std) else f" ± {cell.accuracy.std:.2f}"
    return f"{cell.accuracy.mean:.2f}{spread}{' •' if cell.bullet else ''}"


def _printed(cell):
    if cell is None or cell.printed is None:
        return MISSING
    return f"{cell.printed.accuracy:.2f} ({cell.deviation:+.2f})"


def _time(cell, method):
    if cell is None:
        return MISSING
    if method in ABLATION:
        return f"as {LABELS['rff']}"
    known = method != "rff" and not math.isnan(cell.ratio)
    ratio = f" ({_ratio(cell.ratio)}x)" if known else ""
    return f"{format_seconds(cell.seconds)}{ratio}"


def _ratio(ratio):
    decimals = 2 if ratio < 2 else 1 if ratio < 10 else 0
    return f"{ratio:.{decimals}f}"


def _deviations(cells, dataset, methods, weights):
    """Per method: mean absolute deviation, cells compared, and the reference."""
    for method in methods:
        ours = {
            key: cell.accuracy.mean
            for key, cell in cells.items()
            if key[0] == dataset and key[2] == method
        }
        printed = {
            key: cells[key].printed.accuracy for key in ours if cells[key].printed
        }
        deviation, n_cells = mean_absolute_deviation(ours, printed)
        yield deviation, n_cells, expected_deviation(dataset, method, weights)


def _deviation_rows(cells, dataset, methods, config):
    """Rows of our mean absolute deviation and, for ``published``, the reference."""
    ours, known = [], []
    for deviation, n_cells, expected in _deviations(
        cells, dataset, methods, config.weights
    ):
        plural = "cell" if n_cells == 1 else "cells"
        ours.append(f"{deviation:.2f} ({n_cells} {plural})" if n_cells else MISSING)
        known.append(MISSING if expected is None else f"{expected:.2f}")
    rows = {"ours": ours, "known": known} if config.protocol == "published" else {}
    return rows or {"ours": ours}


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


def captions(config, rows):
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


def picture_caption(config, rows):
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
        "the printed cell where it is at hand, and ours less it; MAD: mean absolute "
        "deviation from those cells, and what the best known recipe reached over all "
        "printed cells. Time: draw, score and map the training rows once (fastest of "
        "five where that is short), median over trials, and in brackets over RFF's in "
        "the same trial."
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


# -- terminal --------------------------------------------------------------------------


def rich_tables(cells, config):
    """Tables for the terminal, one a data set, at most 100 columns wide.

    Parameters
    ----------
    cells : dict
        As `summary_cells` returns.
    config : Table2

    Returns
    -------
    tables : list of rich.table.Table
    """
    from rich import box
    from rich.table import Table

    tables = []
    for dataset, multiples, methods in _blocks(cells):
        table = Table(
            title=f"{dataset}: accuracy in %",
            title_justify="left",
            title_style="bold",
            box=box.SIMPLE_HEAD,
            padding=(0, 1, 0, 0),
            pad_edge=False,
        )
        table.add_column("s", justify="right", style="bold", no_wrap=True)
        table.add_column("", style="dim", no_wrap=True)
        for method in methods:
            table.add_column(_header(method), no_wrap=True)
        for multiple in multiples:
            row = {name: cells.get((dataset, multiple, name)) for name in methods}
            times = [_time(cell, name) for name, cell in row.items()]
            table.add_row(f"{multiple}d", "ours", *map(_accuracy, row.values()))
            table.add_row("", "paper", *map(_printed, row.values()), style="cyan")
            table.add_row("", "time", *times, style="dim", end_section=True)
        for name, texts in _deviation_rows(cells, dataset, methods, config).items():
            label = "MAD" if name == "ours" else ""
            table.add_row(label, name, *texts)
        tables.append(table)
    return tables


def rich_grid(title, header, body):
    """A table for the terminal, its cells as text.

    Parameters
    ----------
    title : str
    header : sequence of str
    body : sequence of sequence of str

    Returns
    -------
    table : rich.table.Table
    """
    from rich import box
    from rich.table import Table

    table = Table(
        title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD
    )
    for name in header:
        table.add_column(name, no_wrap=True)
    for line in body:
        table.add_row(*line)
    return table


def _header(method):
    return LABELS[method].replace(", ", ",\n").replace(" grid", "\ngrid")


# -- Markdown --------------------------------------------------------------------------


def markdown_table(cells, config, sentences):
    """Tables in Markdown, accuracies and then times for each data set.

    Parameters
    ----------
    cells : dict
        As `summary_cells` returns.
    config : Table2
    sentences : sequence of str
        As `captions` returns.

    Returns
    -------
    text : str
    """
    lines = [f"# Table 2, protocol {config.protocol}", ""]
    lines += [f"- {sentence}" for sentence in sentences]
    for dataset, multiples, methods in _blocks(cells):
        lines += ["", f"## {dataset}", "", "Accuracy:"]
        header = ["s"]
        for method in methods:
            header += [LABELS[method], *(["paper"] if method in METHODS else [])]
        body = []
        for multiple in multiples:
            line = [f"{multiple}d"]
            for method in methods:
                cell = cells.get((dataset, multiple, method))
                line += [_accuracy(cell)]
                line += [_printed(cell)] if method in METHODS else []
            body.append(line)
        lines += ["", *markdown_grid(header, body)]

        compared = [method for method in methods if method in METHODS]
        deviations = _deviation_rows(cells, dataset, compared, config)
        lines += [
            "",
            "Mean absolute deviation from the printed cells at hand, in points"
            + (
                ", and what the best known recipe reached over all printed cells:"
                if "known" in deviations
                else ":"
            ),
            "",
            *markdown_grid(
                ["", *(LABELS[method] for method in compared)],
                [[name, *texts] for name, texts in deviations.items()],
            ),
            "",
            "Time:",
            "",
        ]
        timed = compared if "rff" in compared else methods
        body = [
            [f"{m}d", *(_time(cells.get((dataset, m, k)), k) for k in timed)]
            for m in multiples
        ]
        lines += markdown_grid(["s", *(LABELS[method] for method in timed)], body)
    return "\n".join(lines) + "\n"


def markdown_grid(header, body):
    """Lines of a table, numbers to the right.

    Parameters
    ----------
    header : sequence of str
    body : sequence of sequence of str

    Returns
    -------
    lines : list of str

    Examples
    --------
    >>> markdown_grid(["s", "RFF"], [["2d", "70.1"]])
    ['|  s |  RFF |', '|---:|-----:|', '| 2d | 70.1 |']
    """
    widths = [max(map(len, column)) for column in zip(header, *body, strict=True)]

    def line(values):
        padded = (v.rjust(w) for v, w in zip(values, widths, strict=True))
        return f"| {' | '.join(padded)} |"

    rule = "|".join("-" * (width + 1) + ":" for width in widths)
    return [line(header), f"|{rule}|", *map(line, body)]


# -- LaTeX -----------------------------------------------------------------------------


def latex_table(cells, config, sentences):
    r"""Two ``table*`` for LaTeX with booktabs, accuracies and times: ``\input`` them.

    Parameters
    ----------
    cells : dict
        As `summary_cells` returns.
    config : Table2
    sentences : sequence of str
        As `captions` returns.

    Returns
    -------
    text : str
    """
    methods = [name for name in LABELS if any(key[2] == name for key in cells)]
    heads, rules, column = [], [], 3
    for name in methods:
        width = 2 if name in METHODS else 1
        heads.append(f"\\multicolumn{{{width}}}{{c}}{{{tex(LABELS[name])}}}")
        rules.append(f"\\cmidrule(lr){{{column}-{column + width - 1}}}")
        column += width
    subheads = ["data set", "$s$"]
    for name in methods:
        subheads += ["ours", "paper"] if name in METHODS else ["ours"]

    def accuracies(row):
        texts = []
        for name in methods:
            texts.append(_accuracy(row[name]))
            texts += [_printed(row[name])] if name in METHODS else []
        return texts

    timed = [name for name in methods if name in METHODS]
    return "\n".join(
        [
            "% Needs \\usepackage{booktabs,graphicx}",
            *latex_float(
                f"table2-{config.protocol}",
                " ".join(sentences),
                [f" & & {' & '.join(heads)} \\\\", " ".join(rules), tex_row(subheads)],
                _latex_body(cells, methods, accuracies),
            ),
            "",
            *latex_float(
                f"table2-{config.protocol}-time",
                "Generation time, in brackets over RFF's, of the runs of Table "
                f"\\ref{{tab:table2-{config.protocol}}}.",
                [tex_row(["data set", "$s$", *(tex(LABELS[k]) for k in timed)])],
                _latex_body(
                    cells, timed, lambda row: [_time(row[k], k) for k in timed]
                ),
            ),
            "",
        ]
    )


def latex_float(label, caption, head, body):
    """Lines of a ``table*`` as wide as the page.

    Parameters
    ----------
    label : str
        Without ``tab:``.
    caption : str
        Plain text, or LaTeX where it ends in a command.
    head, body : list of str
        Rows of the ``tabular``; the second of the body has every column.

    Returns
    -------
    lines : list of str
    """
    n_columns = body[1].count("&") + 1
    if not caption.endswith("}."):
        caption = tex(caption)
    return [
        "\\begin{table*}",
        "\\centering",
        f"\\caption{{{caption}}}",
        f"\\label{{tab:{label}}}",
        "\\resizebox{\\textwidth}{!}{%",
        f"\\begin{{tabular}}{{{'l' * n_columns}}}",
        "\\toprule",
        *head,
        *body,
        "\\bottomrule",
        "\\end{tabular}}",
        "\\end{table*}",
    ]


def _latex_body(cells, methods, texts):
    lines = []
    for dataset, multiples, _ in _blocks(cells):
        lines.append("\\midrule")
        for i, multiple in enumerate(multiples):
            row = {name: cells.get((dataset, multiple, name)) for name in methods}
            size = "$d$" if multiple == 1 else f"${multiple}d$"
            name = dataset if i == 0 else ""
            lines.append(tex_row([tex(name), size, *map(tex, texts(row))]))
    return lines


def tex_row(texts):
    r"""Join cells, already escaped, to a row of a ``tabular``."""
    return f"{' & '.join(texts)} \\\\"


_TEX = {
    "\\": "\\textbackslash{}",
    "^": "\\textasciicircum{}",
    "%": "\\%",
    "&": "\\&",
    "#": "\\#",
    "_": "\\_",
    "{": "\\{",
    "}": "\\}",
    "±": "$\\pm$",
    "•": "$\\bullet$",
    MISSING: "--",
}


def tex(text):
    """Escape a text for LaTeX.

    Examples
    --------
    >>> tex("5 %")
    '5 \\\\%'
    """
    return "".join(_TEX.get(character, character) for character in text)


# -- CSV -------------------------------------------------------------------------------


def csv_table(cells, config):
    """One line a cell, every number in full.

    Parameters
    ----------
    cells : dict
        As `summary_cells` returns.
    config : Table2

    Returns
    -------
    text : str
        Accuracies in percent, times in seconds; empty where there is nothing.
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(
        [
            "protocol",
            "weights",
            "seed",
            "dataset",
            "multiple",
            "n_frequencies",
            "method",
            "trials",
            "accuracy",
            "std",
            "printed",
            "deviation",
            "p_value",
            "better_than_rff",
            "generation_time",
            "generation_ratio",
            "at_grid_end",
        ]
    )
    for (dataset, multiple, method), cell in cells.items():
        ends = (f"{name}:{n}" for name, n in cell.at_grid_end.items())
        writer.writerow(
            [
                config.protocol,
                config.weights,
                config.seed,
                dataset,
                multiple,
                cell.n_frequencies,
                method,
                cell.accuracy.n,
                _full(cell.accuracy.mean),
                _full(cell.accuracy.std),
                "" if cell.printed is None else cell.printed.accuracy,
                _full(cell.deviation),
                _full(cell.p_value),
                int(cell.bullet),
                _full(cell.seconds),
                _full(cell.ratio),
                " ".join(ends),
            ]
        )
    return out.getvalue()


def _full(value):
    return "" if value is None or math.isnan(value) else f"{value:.6g}"
