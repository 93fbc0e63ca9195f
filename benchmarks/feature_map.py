"""Feature map against scikit-learn's RBFSampler, on the same block of rows.

Both return the same number of columns; the ratio is columns a second, ours over
theirs, round by round. The last column is the time that BLAS takes for the projection
alone, a half of RBFSampler's, over the time of our whole map: near 1 nothing is left
to win. Run: ``python benchmarks/feature_map.py``.
"""

import argparse

import numpy as np
from sklearn.kernel_approximation import RBFSampler

from children import ratio
from paired import rounds
from surff.kernels import fourier_features

#: Rows, input columns, frequencies: EEG at 32 d, covtype at 16 d, a wide input.
BLOCKS = [(4096, 14, 448), (4096, 54, 864), (4096, 256, 1024)]


def compare(dtype, n_rows, n_features, n_frequencies, repeats):
    """Print one row: how many times as many columns a second."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, n_features)).astype(dtype)
    frequencies = rng.normal(size=(n_frequencies, n_features)).astype(dtype)
    out = np.empty((n_rows, 2 * n_frequencies), dtype)
    sampler = RBFSampler(gamma=0.5, n_components=2 * n_frequencies, random_state=0)
    sampler.fit(X)
    projections = np.empty((n_rows, n_frequencies), dtype)
    seconds = rounds(
        {
            "projection": lambda: np.matmul(X, frequencies.T, out=projections),
            "surff": lambda: fourier_features(X, frequencies, out=out),
            "RBFSampler": lambda: sampler.transform(X),
        },
        repeats,
    )
    median, low, high = ratio(seconds["RBFSampler"], seconds["surff"])
    share, *_ = ratio(seconds["projection"], seconds["surff"])
    print(
        f"| {np.dtype(dtype).name} | {n_rows} x {n_features} | {2 * n_frequencies} "
        f"| {median:.1f} | {low:.1f} to {high:.1f} | {share:.2f} |"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=15)
    repeats = parser.parse_args().repeats
    print("| dtype | block | columns | surff / RBFSampler | min to max | product |")
    print("|---|---|---:|---:|---|---:|")
    for dtype in (np.float64, np.float32):
        for block in BLOCKS:
            compare(dtype, *block, repeats)


if __name__ == "__main__":
    main()
