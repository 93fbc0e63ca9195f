"""Do more learned frequencies do better, and what does learning cost?

Each set is split and standardised by its training rows, of which at most ``--rows`` are
used. ``adapt="auto"`` is fitted at several multiples of the number of columns with
``cv="gcv"``, and plain random features at the same sizes are tuned as `surff benchmark`
tunes them: gamma uphill in the score of 5 folds from 1 / d, alpha by 5 folds. Both run
in one process on one thread, and a ratio is that of their processor times. Errors are
per cent of wrong classes, or root mean squares in standard deviations of the target.
``--maps 8`` fits `sklearn.ensemble.BaggingRegressor` or `BaggingClassifier` of as many
maps, which differ by their draws, besides.

Sets that `surff.datasets` does not know are read from ``--uci``, a folder with
``NAME.csv.xz``, whose last column is the target, and ``NAME.test_mask.csv.xz``, whose
column k marks the test rows of split k. Results are appended to ``--out`` and printed
as a table. Run: ``python benchmarks/adaptation.py --tasks eeg magic04 letter``.
"""

import argparse
import json
import lzma
import platform
import time
from pathlib import Path

import numpy as np
from sklearn.ensemble import BaggingClassifier, BaggingRegressor
from sklearn.model_selection import KFold, StratifiedKFold
from threadpoolctl import threadpool_limits

from surff import FourierFeatures, KernelRidgeClassifier, KernelRidgeRegressor
from surff.datasets import DATASETS, load
from surff.experiments.protocol import choose_gamma

#: Rows of covtype, the others being left out: as in the guide to adaptation.
COVTYPE_ROWS = 60_000

#: Most rows that are predicted.
TEST_ROWS = 20_000


def read(task, split, n_rows, uci):
    """Training and test rows of a split, standardised, and whether it is a regression.

    Returns
    -------
    X, y, test_X, test_y : ndarray
    regression : bool
    """
    rng = np.random.default_rng(split)
    if task in DATASETS:
        data = load(task)
        X, y = data.X, data.y
        order = rng.permutation(len(y))[: COVTYPE_ROWS if task == "covtype" else None]
        regression = DATASETS[task].task == "regression"
        n_train = len(order) * (8 if regression else 5) // 10
        train, test = order[:n_train], order[n_train:]
    else:
        table = np.loadtxt(opened(uci / f"{task}.csv.xz"), delimiter=",")
        mask = np.loadtxt(opened(uci / f"{task}.test_mask.csv.xz"), delimiter=",")
        X, y, regression = table[:, :-1], table[:, -1], True
        is_test = mask[:, split] > 0
        train, test = (rng.permutation(np.flatnonzero(i)) for i in (~is_test, is_test))
    train, test = train[:n_rows], test[:TEST_ROWS]
    if task == "eeg":
        low, middle, high = np.percentile(X[train], [25, 50, 75], axis=0)
        X = X.clip(middle - 10.0 * (high - low), middle + 10.0 * (high - low))
    spread = X[train].std(axis=0)
    X = (X - X[train].mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    if regression:
        y = (y - y[train].mean()) / y[train].std()
    return X[train], y[train], X[test], y[test], regression


def opened(path):
    """Lines of a compressed file."""
    return lzma.open(path, "rt")


def model_of(regression, cv=None):
    """A model; by default tuned with 5 folds, as `surff benchmark` does."""
    folds = (KFold if regression else StratifiedKFold)(5, shuffle=True, random_state=0)
    kind = KernelRidgeRegressor if regression else KernelRidgeClassifier
    return kind(cv=cv or folds)


def fit_rff(X, y, multiple, seed, regression):
    """Plain random features, tuned."""
    model = model_of(regression)

    def features(method, gamma, multiple, n_samples):
        n_components = 2 * multiple * X.shape[1]
        return FourierFeatures(n_components, gamma=gamma, random_state=seed)

    gamma, _ = choose_gamma(model, "rff", features, X, y, multiple, seed)
    return model.set_params(features=features("rff", gamma, multiple, len(y))).fit(X, y)


def fit_auto(X, y, multiple, seed, regression, n_maps=1):
    """Learned features, or the average of several maps of them."""
    features = FourierFeatures(2 * multiple * X.shape[1], adapt="auto")
    model = model_of(regression, "gcv").set_params(features=features)
    if n_maps == 1:
        return model.set_params(features__random_state=seed).fit(X, y)
    kind = BaggingRegressor if regression else BaggingClassifier
    return kind(model, n_maps, bootstrap=False, random_state=seed).fit(X, y)


def warm_up():
    """Load the compiled kernels before anything is timed."""
    X = np.random.default_rng(0).normal(size=(1000, 2))
    for fit in (fit_rff, fit_auto):
        fit(X, X[:, 0], 40, 0, True).predict(X)
        fit(X, (X[:, 0] > 0).astype(int), 40, 0, False).predict(X)


def measure(task, split, multiple, method, options):
    """A row of results."""
    X, y, test_X, test_y, regression = read(task, split, options.rows, options.uci)
    start = time.process_time()
    if method == "rff":
        model = fit_rff(X, y, multiple, split, regression)
    else:
        n_maps = options.maps if method == "maps" else 1
        model = fit_auto(X, y, multiple, split, regression, n_maps)
    seconds = time.process_time() - start
    predicted = model.predict(test_X)
    if regression:
        error = float(np.sqrt(np.mean((predicted - test_y) ** 2)))
    else:
        error = 100.0 * float(np.mean(predicted != test_y))
    return {
        "task": task,
        "split": split,
        "multiple": multiple,
        "method": method,
        "rows": len(y),
        "error": error,
        "seconds": seconds,
    }


def table(rows):
    """Markdown: errors by size, those of RFF and of several maps, ratios of times."""
    multiples = sorted({row["multiple"] for row in rows})
    largest = multiples[-1]
    methods = [m for m in ("rff", "maps") if any(row["method"] == m for row in rows)]
    header = ["set", "rows", "splits", *(f"auto {m}d" for m in multiples)]
    header += [f"{m} {largest}d" for m in methods]
    header += [f"time, auto / rff, {m}d" for m in multiples if "rff" in methods]
    lines = [header, ["---", *["---:"] * (len(header) - 1)]]
    for task in dict.fromkeys(row["task"] for row in rows):
        own = [row for row in rows if row["task"] == task]

        def mean(what, method, multiple, own=own):
            values = [
                row[what]
                for row in own
                if (row["method"], row["multiple"]) == (method, multiple)
            ]
            return np.mean(values) if values else np.nan

        errors = [mean("error", "auto", m) for m in multiples]
        digits = 4 if np.nanmax(errors) < 1 else 2
        errors += [mean("error", method, largest) for method in methods]
        ratios = [
            mean("seconds", "auto", m) / mean("seconds", "rff", m)
            for m in multiples
            if "rff" in methods
        ]
        lines.append(
            [
                task,
                f"{own[0]['rows']:,}",
                str(len({row["split"] for row in own})),
                *(f"{error:.{digits}f}" for error in errors),
                *(f"{ratio:.1f}" for ratio in ratios),
            ]
        )
    return "\n".join("| " + " | ".join(line) + " |" for line in lines).replace(
        "nan", ""
    )


def main(arguments=None):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tasks", nargs="+", default=["eeg", "magic04", "letter"])
    parser.add_argument("--multiples", nargs="+", type=int, default=[2, 4, 8, 16])
    parser.add_argument("--splits", nargs="+", type=int, default=[0])
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--methods", nargs="+", default=["auto", "rff"])
    parser.add_argument("--maps", type=int, default=8)
    parser.add_argument("--uci", type=Path, default=Path("uci"))
    parser.add_argument("--out", type=Path)
    options = parser.parse_args(arguments)
    rows = []
    if options.out and options.out.exists():
        rows = [json.loads(line) for line in options.out.read_text().splitlines()]
    done = {(r["task"], r["split"], r["multiple"], r["method"]) for r in rows}
    with threadpool_limits(1):
        warm_up()
        for task in options.tasks:
            for split in options.splits:
                for multiple in options.multiples:
                    for method in options.methods:
                        if (task, split, multiple, method) in done:
                            continue
                        row = measure(task, split, multiple, method, options)
                        rows.append(row)
                        if options.out:
                            with options.out.open("a") as file:
                                file.write(json.dumps(row) + "\n")
    print(f"{platform.machine()}, {platform.processor() or 'processor unnamed'}\n")
    print(table(rows))


if __name__ == "__main__":
    main()
