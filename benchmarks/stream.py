"""Time and peak memory of a fit from a source of rows, against their number.

Rows are made up as they are asked for, block by block, so that nothing of them is held;
making them counts. Every number of rows is fitted in a process of its own, which is
warmed up by a small fit. The slope of log time against log rows is 1 where time is
proportional to the rows. Run: ``python benchmarks/stream.py --one-thread``.
"""

import argparse
import multiprocessing

import numpy as np

from children import peak_memory
from paired import add_clock, clock_and_limit
from surff import FourierFeatures, KernelRidgeRegressor
from surff.streaming import BlockRows

#: Columns of the rows.
FEATURES = 10

#: Columns of the map.
COLUMNS = 256

#: Rows of a block that is made up at once.
BLOCK = 10_000

#: Fewest rows that a run fits in all; smaller numbers are fitted again, for a median.
LEAST = 300_000


def source(n_rows):
    """Normal rows and a smooth target, the same at each pass."""

    def blocks():
        rng = np.random.default_rng(0)
        for _ in range(n_rows // BLOCK):
            X = rng.normal(size=(BLOCK, FEATURES))
            yield X, np.sin(X[:, 0]) * X[:, 1]

    return BlockRows(blocks)


def fit(n_rows, options):
    """Median seconds of a fit, and the peak memory of this process."""
    features = FourierFeatures(COLUMNS, gamma=0.05, random_state=0)
    model = KernelRidgeRegressor(features, alphas=1.0)
    clock, limit = clock_and_limit(options)
    seconds = []
    with limit:
        model.fit_stream(source(2 * BLOCK))
        for _ in range(max(1, LEAST // n_rows)):
            start = clock()
            model.fit_stream(source(n_rows))
            seconds.append(clock() - start)
    return float(np.median(seconds)), peak_memory()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--most", type=float, default=1e7, help="largest number of rows"
    )
    add_clock(parser)
    options = parser.parse_args()
    n = (10 ** np.arange(4, np.log10(options.most) + 0.1, 0.5) // BLOCK).astype(int)
    n *= BLOCK
    results = []
    print(f"{FEATURES} features, {COLUMNS} columns, one alpha, float64.\n")
    print("| rows | seconds | microseconds a row | peak memory (MB) |")
    print("|---:|---:|---:|---:|")
    for n_rows in n.tolist():
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            seconds, peak = pool.apply(fit, (n_rows, options))
        results.append((seconds, peak))
        micro = seconds / n_rows * 1e6
        print(
            f"| {n_rows:,} | {seconds:.3g} | {micro:.2f} | {peak / 1e6:.0f} |",
            flush=True,
        )
    seconds, peaks = np.array(results).T
    slope = np.polyfit(np.log(n), np.log(seconds), 1)[0]
    print(
        f"\nSlope of log time against log rows {slope:.3f}; peak memory from "
        f"{peaks.min() / 1e6:.0f} to {peaks.max() / 1e6:.0f} MB."
    )


if __name__ == "__main__":
    main()
