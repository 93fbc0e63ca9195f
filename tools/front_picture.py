"""The picture of the README: score against model size, from the stored benchmark.

``python tools/front_picture.py`` writes ``docs/front.svg`` and, for narrow screens,
``docs/front-phone.svg``, from ``docs/results/benchmark/benchmark.csv``.
"""

import csv
from pathlib import Path

import matplotlib.style
from matplotlib.figure import Figure

from surff.experiments.figures import STYLES

ROOT = Path(__file__).resolve().parents[1]

#: Panels, and the label of their scores.
PANELS = {
    "eeg": "EEG, accuracy in %",
    "letter": "letter, accuracy in %",
    "covtype": "covtype, accuracy in %",
    "california-housing": "California housing, 100 R2",
}

#: Label of each method.
METHODS = {
    "rff": "drawn frequencies (RFF)",
    "auto": "learned frequencies",
    "leaves": "learned, with leaves",
    "boosting": "HistGradientBoosting",
    "xgboost": "XGBoost",
    "xrfm": "xRFM",
}

#: Methods of one size.
POINTS = ("boosting", "xgboost", "xrfm")

#: Where the name of the best method stands.
LABEL = {"xytext": (0, 5), "textcoords": "offset points", "ha": "center"}

#: Size in inches, rows and columns of panels, and columns of the legend.
LAYOUTS = {
    "front.svg": ((9, 5.4), (2, 2), 3),
    "front-phone.svg": ((4.2, 10), (4, 1), 2),
}


def draw(rows, size, shape, n_columns):
    """Picture of one layout."""
    figure = Figure(figsize=size, layout="constrained")
    panels = figure.subplots(*shape)
    for axes, (task, label) in zip(panels.ravel(), PANELS.items(), strict=True):
        for method in METHODS:
            found = [r for r in rows if (r["task"], r["method"]) == (task, method)]
            found.sort(key=lambda row: int(row["multiple"]))
            kilobytes = [float(row["model_bytes"]) / 1e3 for row in found]
            score = [float(row["score"]) for row in found]
            style = {"linestyle": "none"} if method in POINTS else {}
            axes.plot(kilobytes, score, **STYLES[method] | style)
        best = max(
            (r for r in rows if r["task"] == task and r["method"] in METHODS),
            key=lambda row: float(row["score"]),
        )
        axes.annotate(
            METHODS[best["method"]],
            (float(best["model_bytes"]) / 1e3, float(best["score"])),
            **LABEL,
            color=STYLES[best["method"]]["color"],
        )
        axes.set(title=label, xscale="log")
        axes.margins(y=0.12)
        axes.xaxis.set_major_formatter("{x:g}")
    for axes in panels.ravel()[-shape[1] :]:
        axes.set_xlabel("size of the model, kB")
    where = {"loc": "outside lower center", "ncols": n_columns}
    figure.legend(figure.axes[0].lines, METHODS.values(), **where)
    return figure


def main():
    """Draw the pictures."""
    path = ROOT / "docs" / "results" / "benchmark" / "benchmark.csv"
    with path.open() as file:
        rows = list(csv.DictReader(file))
    matplotlib.style.use("surff.inspection.surff")
    for name, layout in LAYOUTS.items():
        draw(rows, *layout).savefig(ROOT / "docs" / name, metadata={"Date": None})


if __name__ == "__main__":
    main()
