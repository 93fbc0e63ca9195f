"""Predictions a second, against scikit-learn's pipeline of the same size.

Both models have the same number of columns and one target; the ratio is rows a second,
ours over `RBFSampler` and `Ridge`, round by round. Run: ``python
benchmarks/predict.py``.
"""

import argparse

import numpy as np
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline

from paired import add_clock, clock_and_limit, print_rates, print_rates_head
from surff import FourierFeatures, KernelRidgeRegressor

#: Rows, input columns and columns of the map.
ROWS, FEATURES, COLUMNS = 100_000, 54, 1024


def compare(dtype, repeats, clock):
    """Print one row."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(ROWS, FEATURES)).astype(dtype)
    y = np.sin(X[:, 0]) + X[:, 1]
    ours = KernelRidgeRegressor(
        FourierFeatures(COLUMNS, gamma=0.01, random_state=0), alphas=1.0
    )
    sampler = RBFSampler(gamma=0.01, n_components=COLUMNS, random_state=0)
    theirs = make_pipeline(sampler, Ridge(1.0))
    for model in (ours, theirs):
        model.fit(X[:5000], y[:5000])
    print_rates(X, COLUMNS, ours.predict, theirs.predict, repeats, clock)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=7)
    add_clock(parser)
    options = parser.parse_args()
    clock, limit = clock_and_limit(options)
    print_rates_head()
    with limit:
        for dtype in (np.float64, np.float32):
            compare(dtype, options.repeats, clock)


if __name__ == "__main__":
    main()
