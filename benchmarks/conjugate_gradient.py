"""Conjugate gradients against Cholesky on covtype: time, accuracy, peak memory.

All fit the training half with the same features and alpha and predict the other half;
Cholesky's Gram matrix is formed in float32 blocks ("mixed") and in float64. Peak memory
is that of the process until then, data included.
The time of the Gram matrix grows as the rows times the columns squared, so at many
columns ``--gram-rows`` measures it on the first rows and multiplies; accuracy is then
that of conjugate gradients alone. Run: ``python benchmarks/conjugate_gradient.py
--multiple 64``. Takes minutes.
"""

import argparse

import numpy as np

from children import peak_memory
from paired import add_clock, clock_and_limit
from surff import FourierFeatures, KernelRidgeClassifier
from surff.datasets import load


def halves(dtype):
    """Training and test half, standardised by the former."""
    X, y, *_ = load("covtype", dtype=dtype)
    order = np.random.default_rng(0).permutation(len(y))
    train, test = np.split(order, [len(y) // 2])
    mean, std = X[train].mean(axis=0), X[train].std(axis=0)
    X -= mean
    X /= np.where(std > 0, std, 1)
    return X[train], y[train], X[test], y[test]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--multiple", type=int, default=64, help="s / d")
    parser.add_argument("--dtype", choices=["float32", "float64"], default="float64")
    parser.add_argument("--gamma", type=float, default=0.2)
    parser.add_argument("--alpha", type=float, default=1.0)
    parser.add_argument("--tol", type=float, nargs="+", default=[3e-2, 1e-2])
    parser.add_argument(
        "--precisions", nargs="+", choices=["mixed", "float64"],
        default=["mixed", "float64"], help="of Cholesky's Gram matrix",
    )  # fmt: skip
    parser.add_argument("--gram-rows", type=int, help="rows for the Gram matrix")
    add_clock(parser)
    options = parser.parse_args()
    clock, limit = clock_and_limit(options)
    X, y, X_test, y_test = halves(np.dtype(options.dtype))
    m = 2 * options.multiple * X.shape[1]
    features = FourierFeatures(m, gamma=options.gamma, random_state=0)
    new = {"features": features, "alphas": options.alpha, "keep_equations": False}
    KernelRidgeClassifier(**new | {"features": None}).fit(X[:500], y[:500])  # compiled

    print(f"covtype {len(X)} x {X.shape[1]} {X.dtype}, {m} columns, {options.alpha=}\n")
    print("| solver | seconds | passes | test accuracy | peak GB |")
    print("|---|---:|---:|---:|---:|", flush=True)
    seconds = {}

    def row(name, model, rows=None, accuracy=True):
        start = clock()
        model.fit(X[:rows], y[:rows])
        seconds[name] = clock() - start
        score = f"{100 * model.score(X_test, y_test):.2f}" if accuracy else "-"
        print(
            f"| {name} | {seconds[name]:.1f} | {model.n_iter_} | {score} "
            f"| {peak_memory() / 1e9:.2f} |",
            flush=True,
        )

    with limit:
        for tol in options.tol:
            model = KernelRidgeClassifier(**new, solver="cg", tol=tol)
            row(f"cg, tol={tol:g}", model)
        for precision in options.precisions:
            name = f"cholesky, {precision}"
            model = KernelRidgeClassifier(**new, precision=precision)
            if options.gram_rows is None:
                row(name, model)
                continue
            # Twice the rows less once the rows: the factorisation drops out.
            n = options.gram_rows
            row(f"{name}, {n} rows", model, n, accuracy=False)
            row(f"{name}, {2 * n} rows", model, 2 * n, accuracy=False)
            once, twice = list(seconds.values())[-2:]
            seconds[name] = once + (twice - once) * (len(X) - n) / n
            print(f"| {name}, from these | {seconds[name]:.1f} | 1 | - | - |")
    print()
    for precision in options.precisions:
        for tol in options.tol:
            faster = seconds[f"cholesky, {precision}"] / seconds[f"cg, tol={tol:g}"]
            print(f"cholesky, {precision} / cg at tol={tol:g}: {faster:.1f}")


if __name__ == "__main__":
    main()
