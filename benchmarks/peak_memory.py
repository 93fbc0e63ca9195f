"""Peak memory and time of one fit with alpha selection on covtype's training half.

The data set is loaded, split and standardised in the same process, so the figure
includes everything. Run: ``python benchmarks/peak_memory.py --multiple 16``.
"""

import argparse
import time

import numpy as np

from children import peak_memory
from surff import FourierFeatures, KernelRidgeClassifier
from surff.datasets import load


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--multiple", type=int, default=16, help="s / d")
    parser.add_argument("--dtype", choices=["float32", "float64"], default="float64")
    options = parser.parse_args()
    X, y, *_ = load("covtype", dtype=np.dtype(options.dtype))
    train = np.random.default_rng(0).permutation(len(y))[: len(y) // 2]
    X, y = X[train], y[train]
    X -= X.mean(axis=0)
    X /= np.where(X.std(axis=0) > 0, X.std(axis=0), 1)
    features = FourierFeatures(2 * options.multiple * X.shape[1], random_state=0)
    start = time.perf_counter()
    model = KernelRidgeClassifier(features).fit(X, y)
    seconds = time.perf_counter() - start
    print(
        f"covtype {X.shape[0]} x {X.shape[1]} {X.dtype}, {features.n_components} "
        f"columns, {len(model.alpha_path_.alphas)} alphas, 5 folds: accuracy "
        f"{model.best_score_:.4f} (cross-validated), {seconds:.0f} s, "
        f"peak memory {peak_memory() / 1e9:.2f} GB"
    )


if __name__ == "__main__":
    main()
