"""What a fit on a cluster costs, by a model of it and by runs.

A pass over n rows of d features with m columns and k sums (one for each fold, or one)
takes on W workers of one thread

    n (d m / R_map + m / R_trig + m^2 / R_syrk + g) / W      rows
    + k m^2 (N / W) / R_merge                                merging sums of N blocks
    + k (4 m^2) N (1 - 1 / W) / (W B)                        sending them, packed
    + N tau + t0                                             scheduling

seconds: the rates are those of one thread, g makes (or reads) a row, B are bytes a
second that a worker sends. The rates are measured here, each by itself and on one
thread; fits of synthetic rows, made on the workers, are then compared with what the
model says. `plan` applies it to clusters that are not here. Run:
``python benchmarks/scaling_model.py``.
"""

import argparse
import logging
import time
from functools import partial
from typing import NamedTuple

import dask
import dask.array as da
import numpy as np
from dask.distributed import Client, LocalCluster, wait
from threadpoolctl import threadpool_limits

from surff import FourierFeatures, KernelRidgeRegressor
from surff.backend import map_rows
from surff.kernels import FourierMap
from surff.linear import NormalEquations, accumulate
from surff.streaming import DaskRows

#: Columns of the rows that are fitted.
FEATURES = 10

#: Columns of the map; its Gram matrix costs as much as its features do.
COLUMNS = 256

#: Rows of a block, tens of milliseconds of a thread.
BLOCK = 50_000

#: Workers of one thread, one for each processor of the machine that was measured.
WORKERS = 2


class Rates(NamedTuple):
    """What one thread does in a second, and what a task and a fit cost beside it."""

    map: float  # multiply-adds of projections
    trig: float  # features, made of projections
    syrk: float  # multiply-adds of Gram matrices, each entry and its mirror one
    merge: float  # entries of Gram matrices
    row: float  # seconds a row takes to be made or read, and checked
    sent: float  # bytes a second and worker
    task: float  # seconds of the scheduler for a block and its share of the tree
    fit: float  # seconds of a fit without rows


class Plan(NamedTuple):
    """What a pass takes."""

    seconds: float
    rows: float  # seconds of it for the rows
    sums: float  # seconds of it to merge and send sums
    bytes_sent: float  # between workers
    memory: float  # bytes a thread, of sums
    n_blocks: int


def plan(n, d, m, rates, workers, block, k=1):
    """`Plan` of a pass by the model above; ``workers`` are threads."""
    n_blocks = -(-n // block)
    a_row = d * m / rates.map + m / rates.trig + m**2 / rates.syrk + rates.row
    # As many threads as there are blocks work; the last turn may leave some idle.
    turns = -(-n_blocks // workers)
    rows = a_row * min(n, turns * block)
    sent = k * 4 * m**2 * n_blocks * (1 - 1 / workers)
    sums = k * m**2 * n_blocks / workers / rates.merge + sent / workers / rates.sent
    seconds = rows + sums + n_blocks * rates.task + rates.fit
    return Plan(seconds, rows, sums, sent, 8 * m**2 * (k + 2), n_blocks)


def usual(function, repeats=9):
    """Median processor time of a call, on a machine that others use, too."""
    seconds = []
    for _ in range(repeats):
        start = time.process_time()
        function()
        seconds.append(time.process_time() - start)
    return float(np.median(seconds))


def rates_of_rows(n, d, m):
    """Rates of one thread: projections, features, Gram matrices, merging."""
    normal = partial(np.random.default_rng(0).normal, 0.0, 0.3)
    X = normal(size=(n, d))
    narrow, wide = X[:, :1].copy(), np.tile(X, (1, 20))
    Y, first, second = np.zeros((n, 1)), *(NormalEquations(m, 1) for _ in range(2))
    with threadpool_limits(1):
        maps = [
            FourierMap(normal(size=(m // 2, A.shape[1]))) for A in (X, narrow, wide)
        ]
        whole = usual(lambda: accumulate(maps[0], X, Y))
        thin = usual(lambda: map_rows(maps[1], narrow))
        thick = usual(lambda: map_rows(maps[2], wide))
        merge = usual(lambda: first.merge(second), 20)
    a_column = (thick - thin) / (20 * d - 1)  # a feature more
    trig = max(thin - a_column, 1e-9)
    gram = whole - trig - d * a_column
    return n * m / a_column, n * m / trig, n * m**2 / gram, m**2 / merge


def seconds_of_row(rates):
    """Seconds to make, check and code a row: those of a block that rates leave."""
    model = ridge()
    with dask.config.set(scheduler="synchronous"), threadpool_limits(1):
        ends = [
            usual(lambda n=n: model.fit(*synthetic(n * BLOCK, BLOCK))) for n in (1, 3)
        ]
    a_map, a_trig, a_gram, _ = rates
    known = FEATURES * COLUMNS / a_map + COLUMNS / a_trig + COLUMNS**2 / a_gram
    return max((ends[1] - ends[0]) / (2 * BLOCK) - known, 0.0)


def ridge():
    """The model that is fitted."""
    features = FourierFeatures(COLUMNS, gamma=0.05, random_state=0)
    return KernelRidgeRegressor(features, alphas=1.0)


def numbers(seed):
    """32 MB that do not compress."""
    return np.random.default_rng(seed).random(4_000_000)


def rates_of_cluster(client):
    """Seconds of a task, seconds of a fit, bytes a second from worker to worker."""

    def nothing(start, block):
        return 0

    seconds = []
    for n_blocks in (10, 210):
        source = DaskRows(da.zeros((n_blocks, 1), chunks=(1, 1)))
        source.reduce(nothing, lambda a, b: a)
        start = time.perf_counter()
        source.reduce(nothing, lambda a, b: a)
        seconds.append(time.perf_counter() - start)
    task = (seconds[1] - seconds[0]) / 200
    here, there = list(client.scheduler_info(n_workers=-1)["workers"])[:2]
    sending = []
    for seed in range(5):
        values = client.submit(numbers, seed, workers=[here])
        wait(values)
        start = time.perf_counter()
        client.gather(client.submit(len, values, workers=[there]))
        sending.append(time.perf_counter() - start)
    return task, seconds[0] - 10 * task, 32e6 / np.median(sending)


def synthetic(n, block):
    """Normal rows and a smooth target, made where they are used."""
    X = da.random.default_rng(0).normal(size=(n, FEATURES), chunks=(block, FEATURES))
    return X, da.sin(X[:, 0]) * X[:, 1]


def runs(client, most, rates):
    """Print what fits take beside what the model says."""
    model = ridge()
    model.fit(*synthetic(4 * BLOCK, BLOCK))
    print("| rows | blocks | model (s) | wall clock (s) | processor (s) | / model |")
    print("|---:|---:|---:|---:|---:|---:|")
    for n in (10 ** np.arange(5, np.log10(most) + 0.1)).astype(int).tolist():
        expected = plan(n, FEATURES, COLUMNS, rates, WORKERS, BLOCK)
        X, y = synthetic(n, BLOCK)
        before, start = client.run(time.process_time), time.perf_counter()
        model.fit(X, y)
        wall = time.perf_counter() - start
        after = client.run(time.process_time)
        busiest = max(after[worker] - before[worker] for worker in after)
        print(
            f"| {n:,} | {expected.n_blocks} | {expected.seconds:.2f} | {wall:.2f} | "
            f"{busiest:.2f} | {busiest / expected.seconds:.2f} |",
            flush=True,
        )


def plans(rates):
    """Print what a pass over a billion rows takes on clusters of some sizes."""
    print(
        "| d | columns | sums | machines | hours | of it sums | TB read | TB sent |",
        end="",
    )
    print(" GB of sums a machine |")
    print("|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
    n, cores = 10**9, 16
    for d, m, k, machines in (
        (100, 1_000, 5, 1),
        (100, 1_000, 5, 10),
        (100, 10_000, 1, 10),
        (100, 10_000, 1, 100),
        (10_000, 10_000, 1, 10),
        (10_000, 10_000, 1, 100),
    ):
        block = 100_000 if d < 1000 else 10_000
        # Float32 rows, read at 1 GB/s; 10 Gbit/s: both shared by a machine's cores.
        own = rates._replace(row=4 * d / (1e9 / cores), sent=1.25e9 / cores, task=1e-3)
        one = plan(n, d, m, own, machines * cores, block, k)
        print(
            f"| {d:,} | {m:,} | {k} | {machines} | {one.seconds / 3600:.2g} | "
            f"{one.sums / one.seconds:.0%} | {4 * n * d / 1e12:.1f} | "
            f"{one.bytes_sent / 1e12:.2g} | {cores * one.memory / 1e9:.2g} |"
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--most", type=float, default=1e7, help="largest number of rows"
    )
    options = parser.parse_args()
    own = rates_of_rows(BLOCK, FEATURES, COLUMNS)
    made = seconds_of_row(own)
    cluster = LocalCluster(
        n_workers=WORKERS,
        threads_per_worker=1,
        dashboard_address=None,
        silence_logs=logging.ERROR,
    )
    with cluster, Client(cluster) as client:
        task, fit, sent = rates_of_cluster(client)
        rates = Rates(*own, made, sent, task, fit)
        print(
            f"One thread, {FEATURES} features, {COLUMNS} columns: projections "
            f"{rates.map / 1e9:.1f}e9 multiply-adds a second, features "
            f"{rates.trig / 1e9:.2f}e9, Gram matrix {rates.syrk / 1e9:.1f}e9, merging "
            f"{rates.merge / 1e9:.2f}e9 entries, a row is made and checked in "
            f"{rates.row * 1e9:.0f} ns; "
            f"{rates.sent / 1e6:.0f} MB/s between workers, {rates.task * 1e3:.2f} ms a "
            f"task, {rates.fit * 1e3:.0f} ms a fit.\n"
        )
        runs(client, options.most, rates)
    print(
        "\nA pass over 10^9 rows, machines of 16 cores, rates of a Gram matrix of 2,048"
    )
    print("columns:\n")
    plans(rates._replace(syrk=rates_of_rows(4096, FEATURES, 2048)[2]))


if __name__ == "__main__":
    main()
