"""Accuracy and time of adapted frequencies against plain ones, fairly tuned.

Random halves of a data set, columns standardised by the training half (EEG's outliers
clipped first), the same halves for every method. Plain random Fourier features choose
gamma and alpha by 5-fold cross-validation (``gammas="auto"``) at each size and at 16
times as many frequencies as columns; the adaptations choose alpha in the same way and
gamma for themselves ("auto") or start from ``gamma="scale"``. "auto-gcv" is "auto" with
alpha by generalised cross-validation, which does not fit the features anew for each
fold, and "straight-gcv" leaves the columns straight. Times are those of the whole fit,
tuning included.

Rows are appended to a JSON Lines file, and those that are there are not run again.

Run: ``python benchmarks/adaptation.py --datasets eeg magic04 --splits 3``.
"""

import argparse
import time
from pathlib import Path

import numpy as np
from sklearn.model_selection import StratifiedKFold

from surff import AutoAdaptation, FourierFeatures, KernelRidgeClassifier
from surff.experiments.protocol import load_problem, seed_sequence, split, standardised
from surff.experiments.statistics import paired_p_value, paired_ratio
from surff.experiments.store import ResultStore

KEY = ("dataset", "n_rows", "method", "multiple", "trial")
REFERENCE = "rff"
WIDE = 16
METHODS = {
    REFERENCE: {"gammas": "auto"},
    "agop": {"adapt": "agop"},
    "gradient": {"adapt": "gradient"},
    "auto": {"adapt": "auto"},
    "auto-gcv": {"adapt": "auto", "cv": "gcv"},
    "straight-gcv": {"adapt": AutoAdaptation(warp=False), "cv": "gcv"},
}


def prepared(problem, trial, n_rows):
    """Training and test rows of a split, at most half of ``n_rows`` each."""
    part = split(problem, trial, seed=0)
    if n_rows:
        half = n_rows // 2
        part = part._replace(
            X=part.X[:half],
            y=part.y[:half],
            test_X=part.test_X[:half],
            test_y=part.test_y[:half],
        )
    return standardised(part, clip=problem.name == "eeg")


def fit(problem, part, method, multiple, trial):
    """Accuracy and seconds of one method on one split."""
    options = dict(METHODS[method])
    rng = np.random.default_rng(seed_sequence(0, problem, trial, multiple))
    fold_seed, map_seed = (int(value) for value in rng.integers(2**31, size=2))
    features = FourierFeatures(
        2 * multiple * part.X.shape[1],
        adapt=options.pop("adapt", None),
        random_state=map_seed,
    )
    folds = StratifiedKFold(5, shuffle=True, random_state=fold_seed)
    model = KernelRidgeClassifier(features, **{"cv": folds, **options})
    start = time.perf_counter()
    model.fit(part.X, part.y)
    seconds = time.perf_counter() - start
    return {
        "accuracy": float(model.score(part.test_X, part.test_y)),
        "seconds": seconds,
        "gamma": float(model.features_.gamma_),
        "alpha": float(model.alpha_),
    }


def run(name, arguments, store):
    """Fit what is missing of one data set."""
    problem = load_problem(name)
    sizes = [(method, k) for k in arguments.multiples for method in arguments.methods]
    if REFERENCE in arguments.methods:
        sizes.append((REFERENCE, WIDE))
    for trial in range(arguments.splits):
        part = None
        for method, multiple in sizes:
            key = (name, arguments.rows, method, multiple, trial)
            if key in store:
                continue
            part = part or prepared(problem, trial, arguments.rows)
            fit(problem, small(part), method, 1, trial)  # loads the kernels
            row = dict(zip(KEY, key, strict=True))
            row |= fit(problem, part, method, multiple, trial)
            store.append([row])
            print(
                f"{name} {method} {multiple}d split {trial}: "
                f"{100 * row['accuracy']:.2f} in {row['seconds']:.2f} s",
                flush=True,
            )


def small(part):
    """A few rows of either class."""
    rows = np.concatenate([np.flatnonzero(part.y == y)[:50] for y in (-1, 1)])
    return part._replace(X=part.X[rows], y=part.y[rows])


def table(rows):
    """Print means, gains over plain features of the same size, ratios of times."""

    def values(cell, what):
        return {row["trial"]: row[what] for row in rows if cell == cell_of(row)}

    def cell_of(row):
        return row["dataset"], row["n_rows"], row["method"], row["multiple"]

    print(
        "\n| set | size | method | accuracy, % | gain | p | seconds | "
        f"time / RFF {WIDE}d | accuracy - RFF {WIDE}d | splits |"
        "\n|---|---|---|---|---|---|---|---|---|---|"
    )
    order = list(METHODS)
    cells = sorted(
        {cell_of(row) for row in rows},
        key=lambda cell: (cell[0], cell[1], cell[3], order.index(cell[2])),
    )
    for name, n_rows, method, multiple in cells:
        here = (name, n_rows, method, multiple)
        accuracy, seconds = values(here, "accuracy"), values(here, "seconds")
        plain = values((name, n_rows, REFERENCE, multiple), "accuracy")
        wide = (name, n_rows, REFERENCE, WIDE)
        gains = [accuracy[t] - plain[t] for t in accuracy.keys() & plain.keys()]
        above = [
            accuracy[t] - values(wide, "accuracy")[t]
            for t in accuracy.keys() & values(wide, "accuracy").keys()
        ]
        ratio = paired_ratio(seconds, values(wide, "seconds"))
        print(
            f"| {name} | {multiple}d | {method} | "
            f"{100 * np.mean(list(accuracy.values())):.2f} | "
            f"{100 * np.mean(gains):+.2f} | {paired_p_value(accuracy, plain):.1g} | "
            f"{np.median(list(seconds.values())):.2f} | {ratio:.2f} | "
            f"{100 * np.mean(above):+.2f} | {len(accuracy)} |"
        )


def main():
    """Run what is missing and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--datasets", nargs="*", default=["eeg", "magic04"])
    parser.add_argument("--multiples", nargs="*", type=int, default=[1, 4])
    parser.add_argument("--methods", nargs="*", default=list(METHODS), choices=METHODS)
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--rows", type=int, default=0, help="rows to use, 0 for all")
    parser.add_argument("--out", default="benchmarks/results/adaptation.jsonl")
    arguments = parser.parse_args()
    Path(arguments.out).parent.mkdir(parents=True, exist_ok=True)
    store = ResultStore(arguments.out, key=KEY)
    for name in arguments.datasets:
        run(name, arguments, store)
    table(store.rows)


if __name__ == "__main__":
    main()
