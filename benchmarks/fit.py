"""Fits on covtype's training half: time of syrk, ratios to scikit-learn, memory.

Everything runs in one process tree, in turn, on all threads that BLAS may use, and is
compared round by round:

- the time that the Gram matrix alone would take, n m^2 operations at the rate that BLAS
  reaches in one ``syrk`` of a large block, over the time of a fit at one alpha;
- `RBFSampler` and `Ridge(solver="cholesky")` over that fit;
- what choosing among 20 alphas by 5 folds adds to that fit;
- `RBFSampler` and `RidgeCV(cv=5)` over the same alphas, on a sample of the rows, since
  it fits 101 models;
- the peak memory of whole processes that make the fits, imports and data included.

Run: ``python benchmarks/fit.py --dtype float32``. Needs 10 GB for scikit-learn.
"""

import argparse
import multiprocessing
import tempfile
from pathlib import Path

import numpy as np
from scipy.linalg import blas
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import Ridge, RidgeCV
from sklearn.pipeline import make_pipeline

from children import peak_memory, ratio
from paired import add_clock, clock_and_limit
from surff import FourierFeatures, KernelRidgeRegressor
from surff.datasets import load

GAMMA = 0.05
ALPHAS = np.logspace(-3, 3, 20)
MULTIPLE = 16

PARTS = ["memory", "syrk", "ridge", "path", "ridgecv"]

#: Rows of the block that measures syrk.
SYRK_ROWS = 4096


def training_half(dtype):
    """Standardised rows and +-1 targets."""
    X, y, *_ = load("covtype", dtype=dtype)
    train = np.random.default_rng(0).permutation(len(y))[: len(y) // 2]
    X, y = X[train], y[train]
    X -= X.mean(axis=0)
    X /= np.where(X.std(axis=0) > 0, X.std(axis=0), 1)
    return X, np.where(y == y.max(), 1.0, -1.0).astype(dtype)


def model(name, m, dtype):
    """An estimator that has not been fitted; it computes in the type of the rows."""
    if name.startswith("surff"):
        alphas = ALPHAS if name.endswith("path") else 1.0
        features = FourierFeatures(m, gamma=GAMMA, random_state=0)
        precision = "float64" if dtype == np.float64 else "mixed"
        return KernelRidgeRegressor(features, alphas=alphas, precision=precision)
    ridge = Ridge(1.0, solver="cholesky") if name == "ridge" else RidgeCV(ALPHAS, cv=5)
    return make_pipeline(RBFSampler(gamma=GAMMA, n_components=m, random_state=0), ridge)


def seconds_of(function, clock):
    start = clock()
    function()
    return clock() - start


def syrk_seconds(dtype, n_rows, m, clock):
    """What n_rows rows would take at the rate of one large block; the best of five."""
    Z = np.random.default_rng(0).normal(size=(SYRK_ROWS, m)).astype(dtype)
    syrk = blas.dsyrk if dtype == np.float64 else blas.ssyrk
    gram = np.zeros((m, m), dtype, order="F")
    runs = [
        seconds_of(lambda: syrk(1.0, Z.T, beta=1.0, c=gram, overwrite_c=1), clock)
        for _ in range(5)
    ]
    return min(runs) * n_rows / SYRK_ROWS


def fit_in_child(name, m, path):
    """Peak memory in bytes of this process."""
    with np.load(path) as data:
        model(name, m, data["X"].dtype).fit(data["X"], data["y"])
    return peak_memory()


def peak_of_fit(name, m, path):
    """Peak memory of a process of its own; called before this one has grown."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(fit_in_child, (name, m, path))


def save_training_half(dtype, path):
    X, y = training_half(dtype)
    np.savez(path, X=X, y=y)
    return X.shape


def timed_rounds(fits, repeats):
    """Seconds of each function in each round."""
    seconds = {name: [] for name in fits}
    for _ in range(repeats):
        for name, fit in fits.items():
            seconds[name].append(fit())
    return seconds


def report(label, values):
    median, low, high = values
    print(f"| {label} | {median:.2f} | {low:.2f} to {high:.2f} |", flush=True)


def compare(what, X, y, m, repeats, sample, clock):
    """Print the rows of one part of the table."""

    def fit(name, n_rows=None):
        new = model(name, m, X.dtype)
        return lambda: seconds_of(lambda: new.fit(X[:n_rows], y[:n_rows]), clock)

    surff = {"surff": fit("surff")}
    if what == "syrk":
        rate = {"syrk": lambda: syrk_seconds(X.dtype, len(X), m, clock)}
        seconds = timed_rounds(rate | surff, repeats)
        report("seconds of a fit at one alpha", ratio(seconds["surff"], [1] * repeats))
        report("syrk alone / fit", ratio(seconds["syrk"], seconds["surff"]))
    elif what == "ridge":
        seconds = timed_rounds(surff | {"ridge": fit("ridge")}, repeats)
        report("RBFSampler + Ridge / fit", ratio(seconds["ridge"], seconds["surff"]))
    elif what == "path":
        seconds = timed_rounds(surff | {"path": fit("surff path")}, repeats)
        report("20 alphas, 5 folds / fit", ratio(seconds["path"], seconds["surff"]))
    elif what == "ridgecv":
        fits = {name: fit(name, sample) for name in ("surff path", "ridgecv")}
        ours, theirs = timed_rounds(fits, repeats).values()
        report(f"RidgeCV / 20 alphas, {sample} rows", ratio(theirs, ours))


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--dtype", choices=["float32", "float64"], default="float64")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--sample", type=int, default=20_000, help="rows for RidgeCV")
    parser.add_argument("--rows", type=int, help="first rows alone; all by default")
    add_clock(parser)
    options = parser.parse_args()
    clock, limit = clock_and_limit(options)
    dtype = np.dtype(options.dtype)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "covtype.npz"
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            n_rows, d = pool.apply(save_training_half, (dtype, path))
        m = 2 * MULTIPLE * d
        print(f"covtype {n_rows} x {d}, {m} columns, {dtype}, {options.repeats} rounds")
        print("\n| | median | min to max |\n|---|---:|---|", flush=True)
        if "memory" in options.parts:
            ours, theirs = (peak_of_fit(name, m, path) for name in ("surff", "ridge"))
            report("GB at the peak of a fit at one alpha", [ours / 1e9] * 3)
            report("RBFSampler + Ridge / fit, peak memory", [theirs / ours] * 3)
        with np.load(path) as data:
            X, y = data["X"][: options.rows], data["y"][: options.rows]
    model("surff path", m, dtype).fit(X[:5000], y[:5000])  # compiled before time counts
    with limit:
        for what in options.parts:
            compare(what, X, y, m, options.repeats, options.sample, clock)


if __name__ == "__main__":
    main()
