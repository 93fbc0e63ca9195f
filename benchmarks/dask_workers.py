"""A fit on two workers of one thread against the same fit on one.

Both clusters are there all the time, hold the rows in their memory and fit in turn, so
that what else the machine does meets both. A round is a fit on each; the ratio is taken
round by round. Where other programs keep the processors busy, wall-clock time says
little of two workers: beside it stands the processor time of the busiest worker plus
that of the caller, scheduler included, which is what a fit would take if each had a
processor of its own and nothing ran at the same time but workers; and the ratio of
that. Coefficients must be equal. What workers sent to each other and to the
caller is counted as it lies in memory; Gram matrices take half of it on the way. Run:
``python benchmarks/dask_workers.py``.
"""

import argparse
import logging
import time

import dask.array as da
import numpy as np
from dask.distributed import Client, LocalCluster, wait

from children import ratio
from surff import FourierFeatures, KernelRidgeRegressor

#: Columns of the rows.
FEATURES = 20

#: Columns of the map: sums of 2 MB, which are sent in milliseconds.
COLUMNS = 512

#: To choose from by 5 folds, which is what the caller does alone.
ALPHAS = np.logspace(-3, 3, 7)


def rows(client, n_rows, n_blocks):
    """Normal rows and a smooth target, spread over the workers of a client."""
    rng = da.random.default_rng(0)
    X = rng.normal(size=(n_rows, FEATURES), chunks=(n_rows // n_blocks, FEATURES))
    y = da.sin(X[:, 0]) * X[:, 1]
    X, y = client.persist([X, y])
    wait([X, y])
    return X, y


def sent(client):
    """Bytes that the workers have sent so far."""

    def of(dask_worker):
        return dask_worker.transfer_outgoing_bytes_total

    return sum(client.run(of).values())


def busy(client):
    """Processor seconds of each worker, and last of this process."""
    workers = client.run(time.process_time).values()
    return np.array([*workers, time.process_time()])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_600_000)
    parser.add_argument("--blocks", type=int, default=16)
    parser.add_argument("--repeats", type=int, default=3, help="rounds")
    options = parser.parse_args()
    features = FourierFeatures(COLUMNS, gamma=0.02, random_state=0)
    model = KernelRidgeRegressor(features, alphas=ALPHAS, cv=5)
    seconds, path, callers = ({1: [], 2: []} for _ in range(3))
    coefs, moved = {}, {}
    clusters = {
        n: LocalCluster(
            n_workers=n,
            threads_per_worker=1,
            dashboard_address=None,
            silence_logs=logging.ERROR,
        )
        for n in seconds
    }
    clients = {n: Client(cluster) for n, cluster in clusters.items()}
    data = {
        n: rows(client, options.rows, options.blocks) for n, client in clients.items()
    }
    for counted in range(-1, options.repeats):
        for n, client in clients.items():
            with client.as_current():
                before, idle, start = sent(client), busy(client), time.perf_counter()
                coefs[n] = model.fit(*data[n]).primal_coef_
                end, (*workers, caller) = time.perf_counter(), busy(client) - idle
                if counted >= 0:
                    seconds[n].append(end - start)
                    path[n].append(max(workers) + caller)
                    callers[n].append(caller)
                moved[n] = sent(client) - before
    for n in clients:
        clients[n].close()
        clusters[n].close()
    difference = abs(coefs[1] - coefs[2]).max() / abs(coefs[1]).max()
    print(
        f"{options.rows:,} rows of {FEATURES} features in {options.blocks} blocks, "
        f"{COLUMNS} columns, {len(ALPHAS)} alphas by 5 folds, float64; "
        f"{options.repeats} rounds, medians (least to most).\n"
    )
    print(
        "| workers | wall clock (s) | processor time (s) | of it the caller | MB sent |"
    )
    print("|---:|---:|---:|---:|---:|")
    for n in seconds:
        columns = " | ".join(spread(a[n], ".2f") for a in (seconds, path, callers))
        print(f"| {n} | {columns} | {moved[n] / 1e6:.0f} |")
    for name, times in (("wall clock", seconds), ("processor time", path)):
        middle, low, high = ratio(times[1], times[2])
        print(
            f"\nOne worker takes {middle:.2f} times ({low:.2f} to {high:.2f}) as long "
            f"as two by {name}."
        )
    print(
        f"\nThe rows are {options.rows * FEATURES * 8 / 1e6:.0f} MB. Largest "
        f"difference of coefficients {difference:.1e} of the largest."
    )


def spread(values, form):
    """Median, least and most, for a table."""
    return f"{np.median(values):{form}} ({min(values):{form}} to {max(values):{form}})"


if __name__ == "__main__":
    main()
