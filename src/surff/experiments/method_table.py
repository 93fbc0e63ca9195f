"""The table of all methods: one row a method, one column a size.

Table 2 has a column a method, which serves the paper's four. With more of them every
accuracy stands beside its standard error and its mark against RFF, and the last column
says what generating the features costs in multiples of RFF.
"""

import math

from surff.experiments.figures import methods_figure, save
from surff.experiments.methods import why_not
from surff.experiments.render import (
    LABELS,
    MISSING,
    captions,
    csv_table,
    latex_float,
    markdown_grid,
    rich_grid,
    summary_cells,
    tex,
    tex_row,
)

__all__ = ["mark", "method_captions", "method_rows", "rich_methods", "write_methods"]

#: Level of the paired t-test against RFF.
LEVEL = 0.05


def mark(cell, reference):
    """How a cell compares with RFF's: "•" better, "◦" worse, "" neither, at 5 %."""
    if reference is None or not cell.p_value < LEVEL:
        return ""
    return "•" if cell.accuracy.mean > reference.accuracy.mean else "◦"


def method_rows(cells, dataset):
    """Header and body of the table of one data set, as text.

    Parameters
    ----------
    cells : dict
        As `surff.experiments.render.summary_cells` returns.
    dataset : str

    Returns
    -------
    header : list of str
    body : list of list of str
        One row a method, in table order.
    """
    sizes = list(dict.fromkeys(key[1] for key in cells if key[0] == dataset))
    found = {key[2] for key in cells if key[0] == dataset}
    body = []
    for method in (name for name in LABELS if name in found):
        line, ratios = [LABELS[method]], []
        for size in sizes:
            cell = cells.get((dataset, size, method))
            if cell is None:
                line.append(MISSING)
                continue
            error = cell.accuracy.std / math.sqrt(cell.accuracy.n)
            spread = "" if math.isnan(error) else f" ± {error:.2f}"
            sign = mark(cell, cells.get((dataset, size, "rff")))
            line.append(f"{cell.accuracy.mean:.2f}{spread}{sign and f' {sign}'}")
            ratios.append(cell.ratio)
        known = ratios and not math.isnan(ratios[-1])
        line.append(f"{ratios[-1]:.3g}x" if known else MISSING)
        body.append(line)
    header = ["method", *(f"s = {size}d" for size in sizes), "time / RFF"]
    return header, body


def method_captions(config, rows):
    """Sentences that say what the table shows."""
    protocol, _, *data = captions(config, rows)
    trials = {row["trial"] for row in rows}
    marks = (
        f"Accuracy in %: mean and standard error over {len(trials)} "
        f"trial{'s' if len(trials) > 1 else ''}, seed {config.seed}; • better and ◦ "
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


def rich_methods(cells):
    """Tables for the terminal, one a data set."""
    return [
        rich_grid(f"{dataset}: accuracy in %", *method_rows(cells, dataset))
        for dataset in dict.fromkeys(key[0] for key in cells)
    ]


def write_methods(config, rows, out):
    """Render rows into a directory.

    Parameters
    ----------
    config : Table2
    rows : sequence of dict
        As `surff.experiments.table2.select_rows` returns, at least one.
    out : Path
        Directory; made if missing. ``methods.md``, ``methods.tex``, ``methods.csv`` and
        ``methods-<dataset>.png`` and ``.svg`` in it are written over.

    Returns
    -------
    paths : list of Path
    """
    cells = summary_cells(rows, {})
    sentences = method_captions(config, rows)
    datasets = list(dict.fromkeys(row["dataset"] for row in rows))
    markdown = [f"# All methods, protocol {config.protocol}", ""]
    markdown += [f"- {sentence}" for sentence in sentences]
    latex = ["% Needs \\usepackage{booktabs,graphicx}"]
    for dataset in datasets:
        header, body = method_rows(cells, dataset)
        markdown += ["", f"## {dataset}", "", *markdown_grid(header, body)]
        lines = [tex_row(map(tex, line)) for line in body]
        latex += latex_float(
            f"methods-{config.protocol}-{dataset}",
            f"{dataset}. {' '.join(sentences)}",
            [tex_row(map(tex, header))],
            ["\\midrule", *lines],
        )
        latex.append("")
    texts = {
        "methods.md": "\n".join(markdown) + "\n",
        "methods.tex": "\n".join(latex),
        "methods.csv": csv_table(cells, config),
    }
    out.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (out / name).write_text(text, encoding="utf-8")
    paths = [out / name for name in texts]
    for dataset in datasets:
        paths += save(methods_figure(cells, dataset), out / f"methods-{dataset}")
    return paths
