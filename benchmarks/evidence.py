"""Gaussian processes by the evidence: time against rows, densities on data sets.

``time`` fits rows that are made up as they are asked for, block by block, to a map of
256 columns from a source, with ``cv="evidence"``; making them counts, and nothing of
them is held. The log marginal likelihood, alpha and noise are those of all rows.

``sets`` fits the train rows of the ten splits of data sets that papers on Gaussian
processes use, inputs and target standardised by the train rows: alpha and one
bandwidth, or one for each column, by the evidence. It writes the root mean squared
error and the negative log predictive density of the test rows, line by line; a run goes
on where another was stopped. The files are looked for in ``$SURFF_DATA/uci``; ``python
tools/reproduction.py`` makes the table.

Run: ``python benchmarks/evidence.py time --rows 100000 1000000 --one-thread`` and
``python benchmarks/evidence.py sets --one-thread``.
"""

import argparse
import itertools
import json
import os
import platform
import time
from pathlib import Path

import numpy as np

from children import peak_memory
from paired import add_clock, clock_and_limit
from surff import FourierFeatures, KernelRidgeRegressor
from surff.inspection import nlpd
from surff.streaming import BlockRows

#: Columns of the rows that are made up, and rows of a block of them.
FEATURES, BLOCK = 10, 10_000

#: Columns of the map for rows that are made up, and for data sets.
COLUMNS, SET_COLUMNS = 256, 1024

#: Data sets with ten splits, small ones first.
SETS = (
    "parkinsons",
    "pumadyn32nm",
    "pol",
    "elevators",
    "bike",
    "kin40k",
    "protein",
    "tamielectric",
    "keggdirected",
    "keggundirected",
)


def source(n_rows):
    """Normal rows and a smooth target with noise of deviation 0.3, the same anew."""

    def blocks():
        rng = np.random.default_rng(0)
        for _ in range(n_rows // BLOCK):
            X = rng.normal(size=(BLOCK, FEATURES))
            noise = 0.3 * rng.normal(size=BLOCK)
            yield X, np.sin(X[:, 0]) * X[:, 1] + noise

    return BlockRows(blocks)


def time_rows(options):
    """Print a row of the table for each number of rows."""
    clock, limit = clock_and_limit(options)
    features = FourierFeatures(COLUMNS, gamma=0.05, random_state=0)
    model = KernelRidgeRegressor(features, cv="evidence")
    print("| rows | seconds | rows a second | peak MiB | noise | evidence per row |")
    print("|---:|---:|---:|---:|---:|---:|")
    with limit:
        model.fit_stream(source(2 * BLOCK))  # compiles
        for n in options.rows:
            start = clock()
            model.fit_stream(source(n))
            seconds = clock() - start
            noise = np.sqrt(model.noise_variance_[0])
            print(
                f"| {n:,} | {seconds:.1f} | {n / seconds:,.0f} | "
                f"{peak_memory() / 2**20:.0f} | {noise:.3f} | "
                f"{model.best_score_ / n:.4f} |",
                flush=True,
            )


def split_of(name, split):
    """Standardised train and test rows of a split."""
    import pandas as pd

    folder = Path(os.environ.get("SURFF_DATA", "../shared/data")) / "uci"
    values = pd.read_csv(folder / f"{name}.csv.xz", header=None).to_numpy(float)
    masks = pd.read_csv(folder / f"{name}.test_mask.csv.xz", header=None)
    test = masks.to_numpy()[:, split] == 1
    train = values[~test]
    scale = train.std(axis=0)
    values = (values - train.mean(axis=0)) / np.where(scale > 0, scale, 1.0)
    return values[~test], values[test]


def set_trial(name, split, gammas, clock):
    """Errors of a split."""
    train, test = split_of(name, split)
    features = FourierFeatures(SET_COLUMNS, random_state=split)
    model = KernelRidgeRegressor(features, gammas=gammas, cv="evidence")
    start = clock()
    model.fit(train[:, :-1], train[:, -1])
    seconds = clock() - start
    mean, std = model.predict(test[:, :-1], return_std=True)
    return {
        "set": name,
        "split": split,
        "n_train": len(train),
        "n_features": train.shape[1] - 1,
        "columns": SET_COLUMNS,
        "gammas": gammas,
        "rmse": round(float(np.sqrt(np.mean((mean - test[:, -1]) ** 2))), 4),
        "nlpd": round(nlpd(test[:, -1], mean, std), 4),
        "seconds": round(seconds, 2),
    }


def run_sets(options):
    """Run the splits that are not in the file yet, all sets in turn."""
    clock, limit = clock_and_limit(options)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.touch()
    lines = options.out.read_text(encoding="utf-8").splitlines()
    names = "set", "split", "gammas"
    done = {tuple(row[k] for k in names) for row in map(json.loads, lines)}
    end = time.perf_counter() + 60 * options.minutes
    with limit, options.out.open("a", encoding="utf-8") as out:
        every = itertools.product(range(options.splits), options.sets, options.gammas)
        for split, name, gammas in every:
            if (name, split, gammas) not in done and time.perf_counter() < end:
                row = set_trial(name, split, gammas, clock)
                print(json.dumps(row), file=out, flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("time", "sets"))
    parser.add_argument("--rows", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--sets", nargs="+", default=SETS)
    parser.add_argument("--minutes", type=float, default=np.inf)
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--gammas", nargs="+", default=["auto", "columns"])
    parser.add_argument(
        "--out", type=Path, default=Path("docs/results/evidence/trials.jsonl")
    )
    add_clock(parser)
    options = parser.parse_args()
    print(platform.processor() or platform.machine(), platform.python_version(), "\n")
    {"time": time_rows, "sets": run_sets}[options.what](options)


if __name__ == "__main__":
    main()
