"""Thousands of small fits and predictions: memory, threads and open files stay flat.

``python tests/fuzz/endurance.py --fits 10000 --predictions 100000`` fits models of
several kinds in turn, streams, pieces and files among them, and asks one of them for
predictions. It prints what the process holds after each tenth; from the second tenth
on nothing may grow, but for ``--memory`` megabytes of memory in all.
"""

import argparse
import contextlib
import gc
import os
import resource
import sys
import tempfile
import threading
from pathlib import Path

import numpy as np

import surff
from surff.streaming import ArrayRows


def held():
    """Megabytes in memory, threads and open files of this process."""
    gc.collect()
    status = Path("/proc/self/status")
    if not status.exists():
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
        return peak, threading.active_count(), 0
    fields = dict(line.split(":", 1) for line in status.read_text().splitlines())
    files = len(os.listdir("/proc/self/fd"))
    return int(fields["VmRSS"].split()[0]) / 2**10, int(fields["Threads"]), files


def fit_something(number, X, y, folder):
    """One small fit of a kind that follows from its number."""
    rng = np.random.default_rng(number)
    maps = surff.FourierFeatures(32, random_state=number)
    kind, weight = number % 8, rng.uniform(size=len(X))
    labels = np.where(y > 0, "a", "b")
    if kind == 0:
        surff.KernelRidgeRegressor(maps).fit(X, y, sample_weight=weight)
    elif kind == 1:
        surff.KernelRidgeClassifier(maps, cv="loo").fit(X, labels)
    elif kind == 2:
        surff.KernelLogisticClassifier(maps, alphas=1.0).fit(X, labels)
    elif kind == 3:
        nystroem = surff.NystroemFeatures(16, random_state=number)
        surff.KernelRidgeRegressor(nystroem, cv="gcv").fit(X, y)
    elif kind == 4:
        model = surff.KernelRidgeRegressor(maps, alphas=1.0)
        model.partial_fit(X[:40], y[:40]).partial_fit(X[40:], y[40:])
    elif kind == 5:
        model = surff.KernelRidgeRegressor(maps, alphas=[0.1, 1.0])
        model.fit_stream(ArrayRows(X, y, block_rows=30))
    elif kind == 6:
        maps.set_params(select="residual").fit(X, y).transform(X)
    else:
        model = surff.KernelRidgeClassifier(maps, alphas=1.0, cv=2).fit(X, labels)
        path = Path(folder) / "model.skops"
        surff.save(model, path)
        surff.load(path)
        with contextlib.suppress(ValueError):
            model.fit(X, labels[:3])


def endure(n, step, most_memory, name):
    """Do something ``n`` times; whether what the process holds grew."""
    seen = []
    for part in range(10):
        for number in range(part * n // 10, (part + 1) * n // 10):
            step(number)
        seen.append(held())
        memory, threads, files = seen[-1]
        count = (part + 1) * n // 10
        print(
            f"{count} {name}: {memory:.1f} MB, {threads} threads, {files} files",
            flush=True,
        )
    memory, threads, files = np.transpose(seen[1:])
    growth = memory[-1] - memory[0]
    grew = growth > most_memory or threads[-1] > threads[0] or files[-1] > files[0]
    print(f"{name}: {growth:+.1f} MB" + (" grew" if grew else ""), flush=True)
    return grew


def main():
    """Run; the exit status says whether anything grew."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--fits", type=int, default=10_000)
    parser.add_argument("--predictions", type=int, default=100_000)
    parser.add_argument("--memory", type=float, default=8.0, help="MB it may grow")
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 4))
    y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=80)
    model = surff.KernelRidgeRegressor(alphas=1.0).fit(X, y)
    right = model.predict(X)

    def predict(number):
        row = number % 80
        if not np.allclose(model.predict(X[row : row + 1]), right[row], 1e-10, 1e-10):
            raise AssertionError(f"prediction {number} differs")

    with tempfile.TemporaryDirectory() as folder:

        def fit(number):
            fit_something(number, X, y, folder)

        grew = endure(options.fits, fit, options.memory, "fits")
    grew |= endure(options.predictions, predict, options.memory, "predictions")
    return int(grew)


if __name__ == "__main__":
    sys.exit(main())
