"""The picture of the README: score against model size, from the stored benchmark.

``python tools/front_picture.py`` writes ``docs/front.svg`` from
``docs/results/benchmark/benchmark.csv``.
"""

import csv
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

ROOT = Path(__file__).resolve().parents[1]

#: Panels, and the label of their scores.
PANELS = {
    "eeg": "EEG, accuracy in %",
    "letter": "letter, accuracy in %",
    "covtype": "covtype, accuracy in %",
    "california-housing": "California housing, 100 R2",
}

#: Label, colour and marker of each method.
METHODS = {
    "rff": ("drawn frequencies (RFF)", "#0072B2", "o"),
    "auto": ("learned frequencies", "#AA4499", "o"),
    "boosting": ("HistGradientBoosting", "#332288", "s"),
    "xgboost": ("XGBoost", "#117733", "^"),
    "xrfm": ("xRFM", "#882255", "D"),
}


def main():
    """Draw the picture."""
    path = ROOT / "docs" / "results" / "benchmark" / "benchmark.csv"
    with path.open() as file:
        rows = list(csv.DictReader(file))
    figure = Figure(figsize=(9, 5.4), layout="constrained")
    for axes, (task, label) in zip(
        figure.subplots(2, 2).ravel(), PANELS.items(), strict=True
    ):
        for method, (_, colour, marker) in METHODS.items():
            found = [r for r in rows if (r["task"], r["method"]) == (task, method)]
            size = [float(row["model_bytes"]) / 1e3 for row in found]
            score = [float(row["score"]) for row in found]
            line = {"color": colour, "marker": marker, "markersize": 5}
            axes.plot(size, score, **line)
        axes.set(title=label, xscale="log")
        axes.xaxis.set_major_formatter("{x:g}")
        axes.grid(alpha=0.3)
    for axes in figure.axes[2:]:
        axes.set_xlabel("size of the model, kB")
    lines = figure.axes[0].lines
    labels = [label for label, *_ in METHODS.values()]
    figure.legend(lines, labels, loc="outside lower center", ncols=5, frameon=False)
    mpl.rcParams["svg.hashsalt"] = "surff"
    mpl.rcParams["svg.fonttype"] = "none"
    figure.savefig(ROOT / "docs" / "front.svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
