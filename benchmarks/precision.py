"""What float32 blocks cost and save: fits in mixed precision against float64.

On covtype's training half, each at one alpha: the time of a fit with
``precision="mixed"`` over that with "float64", round by round, and how far the two are
apart in their predictions for the test half, in standard deviations of the target,
beside the bound of `surff.linear.float32_error`. Run:
``python benchmarks/precision.py``.
"""

import argparse

import numpy as np

from fit import seconds_of, training_half
from paired import add_clock, clock_and_limit, ratio
from surff import FourierFeatures, KernelRidgeRegressor
from surff.linear import float32_error


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gammas", type=float, nargs="+", default=[0.005, 0.05, 0.5])
    parser.add_argument("--alphas", type=float, nargs="+", default=[0.01, 1.0, 100.0])
    parser.add_argument("--columns", type=int, default=864)
    parser.add_argument("--rows", type=int, help="first rows alone; all by default")
    parser.add_argument("--repeats", type=int, default=3)
    add_clock(parser)
    options = parser.parse_args()
    clock, limit = clock_and_limit(options)
    X, y = training_half(np.dtype(np.float64))
    half = min(options.rows or len(X), len(X) // 2)
    X, y, X_test = X[:half], y[:half], X[half : 2 * half]

    def model(gamma, alpha, precision):
        features = FourierFeatures(options.columns, gamma=gamma, random_state=0)
        return KernelRidgeRegressor(features, alphas=alpha, precision=precision)

    print(f"covtype {half} x {X.shape[1]}, {options.columns} columns\n")
    print("| gamma | alpha | alpha / trace | error | bound | float64 / mixed, time |")
    print("|---:|---:|---:|---:|---:|---|", flush=True)
    precisions = ("float64", "mixed")
    for precision in precisions:  # compiled before time counts
        model(1.0, 1.0, precision).fit(X[:2000], y[:2000])
    with limit:
        for gamma in options.gammas:
            for alpha in options.alphas:
                models = [model(gamma, alpha, precision) for precision in precisions]
                seconds = [
                    [seconds_of(lambda m=m: m.fit(X, y), clock) for m in models]
                    for _ in range(options.repeats)
                ]
                first, second = (m.predict(X_test) for m in models)
                error = np.sqrt(np.mean((first - second) ** 2)) / y.std()
                trace = float(np.trace(models[0].equations_.gram))
                median, low, high = ratio(*zip(*seconds, strict=True))
                print(
                    f"| {gamma:g} | {alpha:g} | {alpha / trace:.1e} | {error:.1e} "
                    f"| {float32_error(trace, alpha):.1e} "
                    f"| {median:.2f} ({low:.2f} to {high:.2f}) |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
