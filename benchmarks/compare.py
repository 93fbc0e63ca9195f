"""surff beside scikit-learn and its peers: time, memory and accuracy in one run.

For each task and number of frequencies s every competitor (`competitors`) lives in a
process of its own. They are asked in turn, round by round, forwards and backwards, to
fit the training half and to predict the other half; a ratio is that of one round, and
the table has its median, least and most. Memory is the most that a process has held,
with its imports and data. Columns are standardised by the training half, gamma is 1 / d
unless told otherwise, and all maps have 2 s columns. Writes ``compare.md`` and
``compare.png``. Run: ``python benchmarks/compare.py``, with ``--peers DIR`` for the
libraries that ``python benchmarks/peers.py DIR`` installed.
"""

import argparse
import contextlib
import json
import statistics
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

import numpy as np
from sklearn.preprocessing import StandardScaler

from children import Child, asked_in_turn, ratio
from competitors import COMPETITORS, Settings
from paired import add_clock, processor
from peers import installed, python_of
from surff.datasets import DATASETS, load

HERE = Path(__file__).resolve().parent

#: Labels that become 1; for others the target is a number.
POSITIVE = {"magic04": "g", "cod-rna": 1, "covtype": 1, "eeg": 1, "breast_cancer": 1}

TASKS = ["magic04", "california-housing", "cod-rna", "covtype"]

#: To choose from, where alpha is chosen.
ALPHAS = tuple(float(alpha) for alpha in np.logspace(-3, 3, 20))

#: Columns of the table and panels of the picture that are ratios.
MEASURES = {"fit": "fit time", "predict": "prediction time", "peak": "peak memory"}

# Okabe and Ito's colours, distinct in every common kind of colour blindness.
COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"]


def save_halves(task, n_rows, dtype, path):
    """Write a task's standardised halves.

    Parameters
    ----------
    task : str
        Name of a data set, with two classes or a number as target.
    n_rows : int
        Of both halves at most, drawn at random.
    dtype : str
        Of the rows.
    path : Path
        Of the ``.npz`` file.

    Returns
    -------
    shape : tuple of int
        Training rows and columns.
    """
    X, y, *_ = load(task)
    order = np.random.default_rng(0).permutation(len(y))[:n_rows]
    train, test = np.split(order, [len(order) // 2])
    if task in POSITIVE:
        y = np.where(y == POSITIVE[task], 1.0, -1.0)
    else:
        y = (y - y[train].mean()) / y[train].std()
    scaler = StandardScaler().fit(X[train])
    np.savez(
        path,
        X=scaler.transform(X[train]).astype(dtype),
        y=y[train],
        X_test=scaler.transform(X[test]).astype(dtype),
        y_test=y[test],
        classification=task in POSITIVE,
    )
    return len(train), X.shape[1]


def measure(names, path, settings, rounds, patience, peers):
    """Measurements of all competitors at one size.

    Parameters
    ----------
    names : sequence of str
        Keys of ``COMPETITORS``.
    path : Path
        Of the data.
    settings : Settings
    rounds : int
    patience : float
        Seconds: who takes longer is measured once.
    peers : Path or None
        Directory of the peers' environments.

    Returns
    -------
    answers : dict of str to list of dict
        Round by round; a competitor that failed is left out.
    failures : dict of str to str
        Why.
    """
    children = {}
    with contextlib.ExitStack() as stack:
        for name in names:
            peer = COMPETITORS[name].peer
            python = python_of(peers, peer) if peer else sys.executable
            words = HERE / "competitors.py", name, path, json.dumps(settings._asdict())
            child = Child([python, *words], one_thread=settings.one_thread)
            children[name] = stack.enter_context(child)
        return asked_in_turn(children, rounds, patience=patience, what="measure")


def rows_of(task, multiple, answers):
    """One row a competitor: medians, ratios with their spread, score."""
    rows = []
    for name, rounds in answers.items():
        baseline = answers.get(COMPETITORS[name].baseline)
        row = {"task": task, "multiple": multiple, "name": name}
        row["score"] = rounds[0]["score"]
        for key in MEASURES:
            ours = [answer[key] for answer in rounds]
            row[key] = statistics.median(ours)
            if baseline is not None:
                theirs = [answer[key] for answer in baseline]
                ours = ours[: len(theirs)]
                theirs = theirs[: len(ours)]
                row[f"{key} ratio"] = ratio(ours, theirs)
                row["score gain"] = row["score"] - baseline[0]["score"]
        rows.append(row)
    return rows


def is_baseline(name):
    return COMPETITORS[name].baseline == name


# -- table and picture -----------------------------------------------------------------


def table(rows):
    """Lines in Markdown: medians in surff's own rows, ratios in the others."""
    spread = "min to max"
    head = ["task", "s", "", "fit", spread, "predict", spread, "memory", "score"]
    lines = [
        "| " + " | ".join(head) + " |",
        "|---|---:|---|---:|---|---:|---|---:|---:|",
    ]
    for row in rows:
        cells = [row["task"], f"{row['multiple']} d", COMPETITORS[row["name"]].label]
        if is_baseline(row["name"]):
            cells += [f"{row['fit']:.3g} s", "", f"{row['predict']:.3g} s", ""]
            cells += [f"{row['peak'] / 1e6:.0f} MB"]
        elif "fit ratio" in row:
            for key in ("fit", "predict"):
                median, low, high = row[f"{key} ratio"]
                spread = f"{low:.2f} to {high:.2f}" if low < high else "once"
                cells += [f"{median:.2f}", spread]
            cells += [f"{row['peak ratio'][0]:.2f}"]
        else:
            cells += [""] * 5
        lines.append("| " + " | ".join([*cells, f"{row['score']:.4f}"]) + " |")
    return lines


def picture(rows, path):
    """A row a competitor, a panel a measure, a point a task and size.

    Parameters
    ----------
    rows : list of dict
        From `rows_of`.
    path : Path
        Of the ``.png`` file.
    """
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    found = {row["name"] for row in rows if "fit ratio" in row}
    names = [name for name in COMPETITORS if name in found and not is_baseline(name)]
    tasks = list(dict.fromkeys(row["task"] for row in rows))
    sizes = sorted({row["multiple"] for row in rows})
    figure = Figure(figsize=(10, 1.6 + 0.42 * len(names)), layout="constrained")
    figure.suptitle(
        "Right of the line: slower, more memory, better scores than surff",
        fontsize=10, fontweight="bold", x=0.01, ha="left",
    )  # fmt: skip
    axes = figure.subplots(1, 4, sharey=True)
    for ax, key in zip(axes, [*MEASURES, "score"], strict=True):
        score = key == "score"
        for y, name in enumerate(names):
            mine = [row for row in rows if row["name"] == name]
            values = [
                100 * row["score gain"] if score else row[f"{key} ratio"][0]
                for row in mine
            ]
            middle = statistics.median(values)
            ax.plot([middle] * 2, [y - 0.35, y + 0.35], color="black", linewidth=2.5)
            for row, value in zip(mine, values, strict=True):
                ax.plot(
                    value,
                    y + 0.12 * (tasks.index(row["task"]) - (len(tasks) - 1) / 2),
                    "o",
                    markersize=4 + 3 * sizes.index(row["multiple"]),
                    color=COLOURS[tasks.index(row["task"]) % len(COLOURS)],
                    alpha=0.75,
                    markeredgewidth=0,
                )
        ax.axvline(0 if score else 1, color="#888888", linewidth=1, zorder=0)
        ax.grid(axis="x", color="#e3e3e3", linewidth=0.6)
        ax.set_axisbelow(True)
        ax.spines[["top", "right", "left"]].set_visible(False)
        ax.tick_params(axis="y", length=0)
        if score:
            ax.set_xscale("symlog", linthresh=1.0)
            ax.xaxis.set_major_formatter(
                FuncFormatter(lambda x, _: f"{x:+g}" if x else "0")
            )
            ax.set_title("score\npoints above surff", fontsize=9, loc="left")
        else:
            ax.set_xscale("log")
            ax.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
            ax.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
            ax.xaxis.set_minor_formatter(NullFormatter())
            low, high = ax.get_xlim()
            ax.set_xlim(min(low, 0.45), max(high, 2.2))
            title = f"{MEASURES[key]}\ntimes surff's"
            ax.set_title(title, fontsize=9, loc="left")
        ax.tick_params(axis="x", labelsize=8)
    labels = [
        f"{COMPETITORS[name].label}\nvs {COMPETITORS[COMPETITORS[name].baseline].label}"
        for name in names
    ]
    axes[0].set_yticks(range(len(names)), labels, fontsize=8)
    axes[0].invert_yaxis()
    marks = [
        Line2D([], [], marker="o", linestyle="", color=colour, label=task)
        for task, colour in zip(tasks, COLOURS * 2, strict=False)
    ] + [
        Line2D([], [], marker="o", linestyle="", color="#888888", label=f"s = {m} d",
               markersize=4 + 3 * i)
        for i, m in enumerate(sizes)
    ]  # fmt: skip
    marks.append(Line2D([], [], color="black", linewidth=2.5, label="median"))
    figure.legend(
        handles=marks, loc="outside lower center", ncols=len(marks), fontsize=8,
        frameon=False,
    )  # fmt: skip
    figure.savefig(path, dpi=100)


def machine():
    """What was measured on, in words."""
    libraries = ["surff", "scikit-learn", "scipy", "numpy", "numba"]
    versions = ", ".join(f"{name} {version(name)}" for name in libraries)
    return f"{processor()}; {versions}"


def main(arguments=None):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    ours = [name for name in COMPETITORS if not COMPETITORS[name].peer]
    parser.add_argument("--tasks", nargs="+", choices=DATASETS, default=TASKS)
    parser.add_argument("--multiples", type=int, nargs="+", default=[4, 16])
    usual = [name for name in ours if COMPETITORS[name].usual]
    parser.add_argument("--competitors", nargs="+", choices=ours, default=usual)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--patience", type=float, default=15.0, help="who takes more seconds runs once"
    )
    parser.add_argument("--rows", type=int, default=20_000, help="of a task at most")
    parser.add_argument("--exact-rows", type=int, default=2000, help="for KernelRidge")
    parser.add_argument("--alpha", type=float, default=1.0)
    parser.add_argument("--gamma", type=float, help="1 / d by default")
    parser.add_argument("--dtype", choices=["float32", "float64"], default="float64")
    parser.add_argument("--peers", type=Path, help="directory that peers.py filled")
    parser.add_argument("--out", type=Path, default=HERE / "results")
    add_clock(parser)
    options = parser.parse_args(arguments)
    peers = installed(options.peers) if options.peers else {}
    names = [
        name
        for name, competitor in COMPETITORS.items()
        if name in options.competitors or competitor.peer in peers
    ]
    given = sys.argv[1:] if arguments is None else arguments
    rows, failures, shapes = [], {}, []
    with tempfile.TemporaryDirectory() as folder:
        for task in options.tasks:
            path = Path(folder) / f"{task}.npz"
            n_rows, d = save_halves(task, options.rows, options.dtype, path)
            shapes.append(f"{task} {n_rows} x {d}")
            for multiple in options.multiples:
                settings = Settings(
                    columns=2 * multiple * d,
                    gamma=options.gamma or 1.0 / d,
                    alpha=options.alpha,
                    alphas=ALPHAS,
                    exact_rows=options.exact_rows,
                    one_thread=options.one_thread,
                )
                answers, failed = measure(
                    names,
                    path,
                    settings,
                    options.rounds,
                    options.patience,
                    options.peers,
                )
                rows += rows_of(task, multiple, answers)
                failures |= failed
                print(f"{task}, s = {multiple} d", file=sys.stderr, flush=True)
    versions = "".join(f", {name} {peers[name]}" for name in peers)
    lines = [
        "# surff beside scikit-learn and peers",
        "",
        f"`{' '.join(['python benchmarks/compare.py', *map(str, given)])}`",
        "",
        f"{machine()}{versions}.",
        f"{options.rounds} rounds. Rows to fit: {', '.join(shapes)}; as many to test.",
        f"KernelRidge has {options.exact_rows} of them. surff's rows have medians, the",
        "others how many times that of surff's row above them; who took more than",
        f"{options.patience:g} s ran once. Memory is the peak of the whole process,",
        "imports and data included; scores are accuracies, or R2. Times are",
        "processor time of one thread." if options.one_thread else "of all threads.",
        "",
        *table(rows),
        "",
        "![The table as a picture](compare.png)",
    ]
    lines += [f"\nNot run: {COMPETITORS[n].label}: {failures[n]}" for n in failures]
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "compare.md").write_text("\n".join(lines) + "\n")
    picture(rows, options.out / "compare.png")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
