"""Make the table of docs/theory.md: d, D and numbers of features on real data."""

import numpy as np

from surff.datasets import load
from surff.experiments.approximation import load_rows
from surff.inspection import theory
from surff.kernels import Gaussian
from surff.selection import leverage

for name in ("breast_cancer", "eeg"):
    X = load_rows(name).X
    y = np.where(np.asarray(load(name).y) == 1, 1.0, -1.0)
    rows = np.random.default_rng(0).permutation(len(X))[:500]
    X, Y = X[rows], y[rows, None]
    K = Gaussian().kernel(X, gamma=1 / X.shape[1])
    for lam in (0.1, 0.01, 0.001):
        alpha = lam * len(X)
        d = leverage.effective_dof(K, alpha)
        D = theory.surrogate_dof(K, Y, alpha)
        features = theory.theorem_1_features(D, d, 0.1)
        best = theory.theorem_1_features(d, d, 0.1)
        print(
            f"{name} lambda = {lam}: d = {d:.1f}, D = {D:.1f}, plain RFF "
            f"{1 / (lam * D):.0%}, s = {features:,}, exact leverage {best:,}"
        )
