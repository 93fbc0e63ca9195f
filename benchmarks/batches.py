"""What the coefficients of a step should be fitted to, for learned frequencies.

Each step of `surff.GradientAdaptation` solves a ridge problem and takes a gradient at
its solution. Three ways to do so with mini-batches, at the same number of steps:

- ``same``: solution and gradient from all rows of the batch, as the library does;
- ``split``: the solution from one half of the batch, the gradient from the other;
- ``running``: the solution from a moving average of the sums of the past batches, the
  gradient from the batch.

Rows of a batch are given for each column of features. Accuracy on the test half, in
percent, of a ridge on the frequencies after the last step; mean over splits.

Run: ``python benchmarks/batches.py --datasets eeg magic04 --multiples 1 4``.
"""

import argparse
import math

import numpy as np
from scipy import linalg
from sklearn.frozen import FrozenEstimator

from surff import FourierFeatures, KernelRidgeClassifier
from surff.adaptation import Adam, cosine_schedule
from surff.experiments.protocol import load_problem, split, standardised
from surff.kernels import fourier_features

ALPHA, RATE, MEMORY = 1e-4, 0.05, 0.9
Z_DTYPE = np.float32
WAYS = ["same", "split", "running"]


def sums(Z, Y):
    """Second moments and means of features and targets, one vector."""
    n = len(Z)
    return [Z.T @ Z / n, Z.T @ Y / n, Z.mean(axis=0), Y.mean(axis=0)]


def solution(gram, moments, z_mean, y_mean):
    """Ridge coefficients and intercept."""
    m = len(gram)
    gram = gram - np.outer(z_mean, z_mean) + ALPHA / m * np.eye(m)
    moments = moments - np.outer(z_mean, y_mean)
    coef = linalg.solve(gram.astype(float), moments, assume_a="pos").astype(Z_DTYPE)
    return coef, y_mean - z_mean @ coef


def descend(X, Y, W, way, size, n_steps, rng):
    """Frequencies after some steps."""
    X, Y, W = X.astype(Z_DTYPE), Y.astype(Z_DTYPE), W.copy()
    s, adam, average, weight = len(W), Adam(W.shape), None, 0.0
    rows = np.empty(0, int)
    for step in range(n_steps):
        if len(rows) < size:
            rows = rng.permutation(len(X))
        batch, rows = rows[:size], rows[size:]
        x, y = X[batch], Y[batch]
        Z = fourier_features(x, W.astype(Z_DTYPE))
        if way == "split":
            coef, intercept = solution(*sums(Z[: size // 2], y[: size // 2]))
            x, y, Z = (a[size // 2 :] for a in (x, y, Z))
        elif way == "same":
            coef, intercept = solution(*sums(Z, y))
        else:
            new = sums(Z, y)
            average = average or [0.0 * part for part in new]
            weight = MEMORY * weight + 1.0 - MEMORY
            average = [
                MEMORY * old + (1.0 - MEMORY) * part
                for old, part in zip(average, new, strict=True)
            ]
            coef, intercept = solution(*(part / weight for part in average))
        slopes = (y - intercept - Z @ coef) @ coef.T
        slopes = slopes[:, s:] * Z[:, :s] - slopes[:, :s] * Z[:, s:]
        W += adam.step(
            -2.0 / len(x) * slopes.T @ x, RATE * cosine_schedule(step, n_steps)
        )
    return W


def accuracy(part, W):
    """Percent of the test half, alpha by generalised cross-validation."""
    features = FourierFeatures(2 * len(W), gamma=1.0).fit(part.X[:2])
    features.frequencies_ = W
    model = KernelRidgeClassifier(FrozenEstimator(features), cv="gcv")
    return 100 * model.fit(part.X, part.y).score(part.test_X, part.test_y)


def main():
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--datasets", nargs="*", default=["eeg", "magic04"])
    parser.add_argument("--multiples", nargs="*", type=int, default=[1, 4])
    parser.add_argument("--per-column", nargs="*", type=float, default=[2, 4, 8, 16])
    parser.add_argument("--ways", nargs="*", default=WAYS, choices=WAYS)
    parser.add_argument("--splits", type=int, default=2)
    parser.add_argument("--steps", type=int, default=600)
    arguments = parser.parse_args()
    columns = arguments.per_column
    print("| set | size | way |" + "".join(f" {c:g} rows |" for c in columns))
    print("|---|---|---|" + "---|" * len(columns))
    for name in arguments.datasets:
        problem = load_problem(name)
        parts = [
            standardised(split(problem, trial, seed=0), clip=name == "eeg")
            for trial in range(arguments.splits)
        ]
        d = parts[0].X.shape[1]
        for multiple in arguments.multiples:
            for way in arguments.ways:
                row = []
                for per_column in columns:
                    values = []
                    for trial, part in enumerate(parts):
                        rng = np.random.default_rng(trial)
                        s = multiple * d
                        W = rng.normal(size=(s, d)) * math.sqrt(1.0 / d)
                        size = int(per_column * 2 * s)
                        W = descend(
                            part.X, part.y[:, None], W, way, size, arguments.steps, rng
                        )
                        values.append(accuracy(part, W))
                    row.append(np.mean(values))
                cells = "".join(f" {value:.1f} |" for value in row)
                print(f"| {name} | {multiple}d | {way} |{cells}", flush=True)


if __name__ == "__main__":
    main()
