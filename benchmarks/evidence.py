"""Gaussian processes by the evidence: time against rows, densities on data sets.

``time`` fits rows that are made up as they are asked for, block by block, to a map of
256 columns from a source, with ``cv="evidence"``; making them counts, and nothing of
them is held. The log marginal likelihood, alpha and noise are those of all rows.

``sets`` fits the train rows of the ten splits of data sets that papers on Gaussian
processes use, inputs and target standardised by the train rows, and prints the root
mean squared error and the negative log predictive density of the test rows: gamma and
alpha by the evidence, beside the same by generalised cross-validation. The files are
looked for in ``$SURFF_DATA/uci``.

Run: ``python benchmarks/evidence.py time --rows 100000 1000000 --one-thread`` and
``python benchmarks/evidence.py sets --sets pumadyn32nm parkinsons --one-thread``.
"""

import argparse
import json
import os
import platform
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
COLUMNS, SET_COLUMNS = 256, 512


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


def set_trial(name, split, cv, clock):
    """Errors of a split."""
    train, test = split_of(name, split)
    features = FourierFeatures(SET_COLUMNS, random_state=split)
    model = KernelRidgeRegressor(features, gammas="auto", cv=cv)
    start = clock()
    model.fit(train[:, :-1], train[:, -1])
    seconds = clock() - start
    mean, std = model.predict(test[:, :-1], return_std=True)
    return {
        "set": name,
        "split": split,
        "cv": cv,
        "rmse": round(float(np.sqrt(np.mean((mean - test[:, -1]) ** 2))), 4),
        "nlpd": round(nlpd(test[:, -1], mean, std), 4),
        "seconds": round(seconds, 2),
        "gamma": round(float(model.features_.gamma_), 6),
        "n_gammas": len(model.gamma_path_),
    }


def run_sets(options):
    """Run the splits that are not in the file yet, and print the table."""
    clock, limit = clock_and_limit(options)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.touch()
    lines = options.out.read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    done = {(row["set"], row["split"], row["cv"]) for row in rows}
    with limit, options.out.open("a", encoding="utf-8") as out:
        for name in options.sets:
            for split in range(options.splits):
                for cv in ("evidence", "gcv"):
                    if (name, split, cv) not in done:
                        rows.append(set_trial(name, split, cv, clock))
                        out.write(json.dumps(rows[-1]) + "\n")
                        out.flush()
    print(table(rows))


def table(rows):
    """Means and standard deviations over splits, in Markdown."""
    text = ["| set | splits | by | RMSE | NLPD | seconds, median |"]
    text += ["|---|---:|---|---:|---:|---:|"]
    for name in dict.fromkeys(row["set"] for row in rows):
        for cv in ("evidence", "gcv"):
            own = [row for row in rows if (row["set"], row["cv"]) == (name, cv)]
            rmse, density = (np.array([r[k] for r in own]) for k in ("rmse", "nlpd"))
            text.append(
                f"| {name} | {len(own)} | {cv} | {rmse.mean():.3f} ± {rmse.std():.3f} "
                f"| {density.mean():.3f} ± {density.std():.3f} | "
                f"{np.median([r['seconds'] for r in own]):.1f} |"
            )
    return "\n".join(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("time", "sets"))
    parser.add_argument("--rows", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--sets", nargs="+", default=["pumadyn32nm", "parkinsons"])
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--out", type=Path, default=Path("build/evidence.jsonl"))
    add_clock(parser)
    options = parser.parse_args()
    print(platform.processor() or platform.machine(), platform.python_version(), "\n")
    {"time": time_rows, "sets": run_sets}[options.what](options)


if __name__ == "__main__":
    main()
