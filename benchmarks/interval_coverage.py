"""Do intervals cover what they say, for every selection and adaptation?

Twenty tasks, ten made up with known noise and ten data sets, are fitted to n rows drawn
at random; new rows say how often the intervals of CV+ and of ``return_std`` cover, at
80, 90 and 95 %. Small fits are repeated with other rows and draws, since the coverage
of a single one of n rows has a standard deviation of about ``sqrt(c (1 - c) / n)``. For
plain features each repetition also runs MAPIE's CV+ on the same folds (where it is
installed), and compares the time of a fit with and without ``intervals=True``, in turn.

Results go line by line to ``--out``; a run goes on where another was stopped, and
``--report`` makes the table of all of them. The data sets are looked for in
``$SURFF_DATA`` and its folder ``uci``; tasks that are not there are left out by name.

Run: ``python benchmarks/interval_coverage.py --one-thread --minutes 30``.
"""

import argparse
import json
import os
import platform
import time
from pathlib import Path

import numpy as np
from scipy.stats import norm
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import Ridge
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline

from paired import add_clock, clock_and_limit
from surff import FourierFeatures, KernelRidgeRegressor

#: Nominal coverages.
LEVELS = (0.8, 0.9, 0.95)

#: Columns of every map.
COLUMNS = 64

#: New rows that a fit is judged by.
NEW_ROWS = 4000

#: Repetitions at each number of rows.
REPEATS = {200: 8, 1000: 2, 5000: 1, 40_000: 1}

#: Parameters of the features of each method.
METHODS = {
    "plain": {},
    "surrogate": {"select": "surrogate"},
    "residual": {"select": "residual"},
    "gradient": {"adapt": "gradient"},
    "auto": {"adapt": "auto"},
}


def made_up(signal, noise, gaussian):
    """A task of five normal columns: a signal, and noise of a known law."""

    def rows(n, rng):
        X = rng.normal(size=(n, 5))
        return X, signal(X) + noise(X, rng)

    return rows, gaussian


def size(X, rng):
    return 0.3 * rng.normal(size=len(X))


#: Tasks by name: a function of the rows, and whether noise is Gaussian and of one size.
MADE_UP = {
    "sine": made_up(lambda X: np.sin(2 * X[:, 0]), size, True),
    "linear": made_up(lambda X: X @ [1.0, -1.0, 0.5, 0.0, 0.2], size, True),
    "product": made_up(lambda X: X[:, 0] * X[:, 1], size, True),
    "step": made_up(lambda X: 1.0 * (X[:, 0] > 0), size, True),
    "noise": made_up(lambda X: 0.0 * X[:, 0], size, True),
    "uneven": made_up(
        lambda X: np.sin(X[:, 0]),
        lambda X, rng: 0.3 * (0.2 + np.abs(X[:, 1])) * rng.normal(size=len(X)),
        False,
    ),
    "student": made_up(
        lambda X: np.sin(X[:, 0]),
        lambda X, rng: 0.3 * rng.standard_t(3, len(X)),
        False,
    ),
    "skewed": made_up(
        lambda X: X[:, 0] ** 2, lambda X, rng: rng.exponential(0.3, len(X)), False
    ),
    "two sides": made_up(
        lambda X: np.sin(X[:, 0]), lambda X, rng: rng.choice([-0.5, 0.5], len(X)), False
    ),
    "outliers": made_up(
        lambda X: X[:, 0] * X[:, 1],
        lambda X, rng: 0.1 * rng.normal(size=len(X)) / rng.uniform(0.01, 1, len(X)),
        False,
    ),
}

#: Data sets, the target in the last column.
FILES = {
    "california": "california-housing.csv.xz",
    **{
        name: f"uci/{name}.csv.xz"
        for name in (
            "kin40k",
            "protein",
            "bike",
            "elevators",
            "pol",
            "keggdirected",
            "tamielectric",
            "pumadyn32nm",
            "parkinsons",
        )
    },
}


def of_file(path):
    """A task of a file: random rows of it, all columns standardised."""
    import pandas as pd

    table = pd.read_csv(path, header=0 if "california" in path.name else None)
    values = table.to_numpy(dtype=float)
    values = (values - values.mean(axis=0)) / np.maximum(values.std(axis=0), 1e-12)

    def rows(n, rng):
        own = values[rng.permutation(len(values))[:n]]
        return own[:, :-1], own[:, -1]

    return rows, len(values)


def tasks(names):
    """Tasks that are asked for and there: rows, most rows, Gaussian noise."""
    folder, found = Path(os.environ.get("SURFF_DATA", "../shared/data")), {}
    for name, (rows, gaussian) in MADE_UP.items():
        found[name] = rows, np.inf, gaussian
    for name, file in FILES.items():
        if not (folder / file).exists():
            print(f"{name} is left out: there is no {folder / file}")
        elif not names or name in names:
            found[name] = *of_file(folder / file), False
    return {name: found[name] for name in found if not names or name in names}


def share(lower, upper, y):
    """Share of targets inside."""
    return float(np.mean((lower <= y) & (y <= upper)))


def mapie_of(model, X, y, new, cv):
    """Bounds of MAPIE's CV+ by the same features, alpha and folds; None without it."""
    try:
        from mapie.regression import CrossConformalRegressor
    except ImportError:
        return None
    pipe = make_pipeline(FrozenEstimator(model.features_), Ridge(model.alpha_))
    theirs = CrossConformalRegressor(pipe, confidence_level=list(LEVELS), cv=cv)
    _, bounds = theirs.fit_conformalize(X, y).predict_interval(new)
    return np.moveaxis(bounds, 2, 0)


def trial(rows, n, method, seed, clock):
    """One fit: coverages and widths of each level, and times."""
    rng = np.random.default_rng([seed, n])
    X, y = rows(n + NEW_ROWS, rng)
    X, y, new, y_new = X[:n], y[:n], X[n:], y[n:]
    cv = KFold(5, shuffle=True, random_state=seed)
    features = FourierFeatures(COLUMNS, random_state=seed, **METHODS[method])
    model = KernelRidgeRegressor(features, cv=cv, intervals=True)
    plain = KernelRidgeRegressor(features, cv=cv)
    if method == "plain":
        model.fit(X, y)  # compiles, and warms the caches
        start = clock()
        plain.fit(X, y)
        without = clock() - start
    start = clock()
    model.fit(X, y)
    row = {"fit": clock() - start}
    start = clock()
    bounds = [model.predict_interval(new, level) for level in LEVELS]
    row["predict"] = clock() - start
    row["coverage"] = [share(*pair, y_new) for pair in bounds]
    row["width"] = [float(np.mean(upper - lower)) for lower, upper in bounds]
    mean, std = model.predict(new, return_std=True)
    sides = [norm.ppf(0.5 + level / 2) * std for level in LEVELS]
    row["std_coverage"] = [share(mean - side, mean + side, y_new) for side in sides]
    row["std_width"] = [float(2 * np.mean(side)) for side in sides]
    if method == "plain":
        row["fit_ratio"] = row["fit"] / without
        start = clock()
        theirs = mapie_of(model, X, y, new, cv)
        if theirs is not None:
            row["mapie_time"] = clock() - start
            row["mapie_width"] = [float(np.mean(b[:, 1] - b[:, 0])) for b in theirs]
            row["mapie_coverage"] = [share(b[:, 0], b[:, 1], y_new) for b in theirs]
    return row


def run(options):
    """Run the trials that are not in the file yet, small ones first."""
    clock, limit = clock_and_limit(options)
    end = time.perf_counter() + 60 * options.minutes
    done = {key(row) for row in stored(options.out)}
    found = tasks(options.tasks)
    with limit, options.out.open("a", encoding="utf-8") as out:
        for n in options.sizes:
            for method in options.methods:
                for name, (rows, most, gaussian) in found.items():
                    if most < n + NEW_ROWS:
                        continue
                    for seed in range(REPEATS[n]):
                        row = {"task": name, "n": n, "method": method, "seed": seed}
                        if key(row) in done:
                            continue
                        if time.perf_counter() > end:
                            return
                        row["gaussian"] = gaussian
                        row.update(trial(rows, n, method, seed, clock))
                        out.write(json.dumps(rounded(row)) + "\n")
                        out.flush()


def rounded(row):
    """The row with four digits of each number: a small file."""

    def short(value):
        if isinstance(value, list):
            return [short(part) for part in value]
        return float(f"{value:.4g}") if isinstance(value, float) else value

    return {name: short(value) for name, value in row.items()}


def key(row):
    return row["task"], row["n"], row["method"], row["seed"]


def stored(path):
    """Rows of a file of results."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def cells(rows, name):
    """Mean of a quantity over the repetitions of each task, shape (n_tasks, 3)."""
    by_task = {}
    for row in rows:
        if name in row:
            by_task.setdefault(row["task"], []).append(row[name])
    return np.array([np.mean(values, axis=0) for values in by_task.values()])


def line(rows, name):
    """Mean coverage over tasks, and the cell that is farthest off, of each level."""
    found = 100 * cells(rows, name)
    if not len(found):
        return ["-"] * len(LEVELS)
    off = found - 100 * np.array(LEVELS)
    worst = off[np.abs(off).argmax(axis=0), np.arange(len(LEVELS))]
    means = found.mean(axis=0)
    return [f"{a:.1f} ({b:+.1f})" for a, b in zip(means, worst, strict=True)]


def report(rows):
    """The tables in Markdown."""
    head = "80 % | 90 % | 95 %"
    text = ["Mean coverage over tasks, in parentheses the task that is farthest off.\n"]
    for name, title, some in (
        ("coverage", "CV+, all tasks", rows),
        ("std_coverage", "`return_std`, Gaussian noise", only_gaussian(rows)),
        ("std_coverage", "`return_std`, all tasks", rows),
    ):
        text += [f"\n## {title}\n", f"| method | n | tasks | trials | {head} |"]
        text += ["|---|---:|---:|---:|---:|---:|---:|"]
        for method in METHODS:
            for n in REPEATS:
                own = [r for r in some if (r["method"], r["n"]) == (method, n)]
                if own:
                    n_tasks = len({row["task"] for row in own})
                    found = [method, n, n_tasks, len(own), *line(own, name)]
                    text.append(f"| {' | '.join(map(str, found))} |")
    text += ["\n## Plain features against MAPIE and against a fit without intervals\n"]
    text += ["| n | width / MAPIE's, 90 %: median, largest | largest difference of "]
    text[-1] += "coverage | MAPIE's time / ours, median | fit with / without: median, "
    text[-1] += "largest |"
    text += ["|---:|---:|---:|---:|---:|"]
    for n in REPEATS:
        own = [r for r in rows if r["n"] == n and "mapie_width" in r]
        if own:
            text.append(against_mapie(n, own))
    return "\n".join(text) + "\n"


def only_gaussian(rows):
    return [row for row in rows if row["gaussian"]]


def against_mapie(n, rows):
    """A row of the last table."""
    ratios = [row["width"][1] / row["mapie_width"][1] for row in rows]
    pairs = [np.subtract(r["coverage"], r["mapie_coverage"]) for r in rows]
    fits = [row["fit_ratio"] for row in rows]
    times = [row["mapie_time"] / (row["fit"] + row["predict"]) for row in rows]
    return (
        f"| {n} | {np.median(ratios):.4f}, {max(ratios):.4f} | "
        f"{100 * np.abs(pairs).max():.2f} points | {np.median(times):.1f} | "
        f"{np.median(fits):.2f}, {max(fits):.2f} |"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[*REPEATS])
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=[*METHODS])
    parser.add_argument("--tasks", nargs="+", default=[])
    parser.add_argument("--minutes", type=float, default=np.inf)
    parser.add_argument("--out", type=Path, default=Path("build/coverage.jsonl"))
    parser.add_argument("--report", action="store_true", help="print the tables only")
    add_clock(parser)
    options = parser.parse_args()
    options.out.parent.mkdir(parents=True, exist_ok=True)
    if not options.report:
        run(options)
    print(f"{platform.processor() or platform.machine()}, {platform.python_version()}")
    print(report(stored(options.out)))


if __name__ == "__main__":
    main()
