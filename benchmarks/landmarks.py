"""What landmark rules bring: trace error, test score and cost of the choice.

On 10,000 rows of a data set with standardised columns and a Gaussian kernel, beside as
many random Fourier features; scores on 5,000 other rows, alpha by 3-fold
cross-validation. Means over seeds of the choice, and half the range of scores. Run:
``SURFF_DATA=... python benchmarks/landmarks.py``.
"""

import argparse
import time

import numpy as np
from sklearn.preprocessing import StandardScaler

from surff import (
    FourierFeatures,
    KernelRidgeClassifier,
    KernelRidgeRegressor,
    NystroemFeatures,
)
from surff.datasets import load
from surff.selection import LANDMARK_RULES

MODELS = {
    "california-housing": KernelRidgeRegressor,
    "magic04": KernelRidgeClassifier,
}


def measure(features, model, X, y, X_test, y_test):
    """Trace error over n, test score, CPU seconds of the fit of ``features``."""
    start = time.process_time()
    features.fit(X)
    seconds = time.process_time() - start
    Z = features.transform(X)
    error = 1.0 - np.mean(np.einsum("ij,ij->i", Z, Z))
    fitted = model(features, alphas=np.logspace(-3, 1, 5), cv=3).fit(X, y)
    return error, fitted.score(X_test, y_test), seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--datasets", nargs="+", default=sorted(MODELS))
    parser.add_argument("--sizes", type=int, nargs="+", default=[64, 256, 1024])
    parser.add_argument("--gamma", type=float, default=0.1)
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    print("| data | m | features | trace error | score | seconds |")
    print("|---|---:|---|---:|---|---:|")
    for name in options.datasets:
        X, y = load(name)[:2]
        rows = np.random.default_rng(0).permutation(len(X))[:15_000]
        train, test = rows[:10_000], rows[10_000:]
        X = StandardScaler().fit(X[train]).transform(X)
        data = X[train], y[train], X[test], y[test]
        for m in options.sizes:
            for rule in [*LANDMARK_RULES, "kmeans", None]:
                parameters = {"gamma": options.gamma}
                make = FourierFeatures if rule is None else NystroemFeatures
                if rule is not None:
                    parameters["landmarks"] = rule
                results = np.array(
                    [
                        measure(
                            make(m, random_state=seed, **parameters),
                            MODELS[name],
                            *data,
                        )
                        for seed in range(options.seeds)
                    ]
                )
                error, score, seconds = results.mean(axis=0)
                error = "" if rule is None else f"{error:.4f}"
                print(
                    f"| {name} | {m} | {rule or 'Fourier'} | {error} | {score:.4f} "
                    f"± {np.ptp(results[:, 1]) / 2:.4f} | {seconds:.2f} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
