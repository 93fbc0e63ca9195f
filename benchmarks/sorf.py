"""Structured orthogonal frequencies against a dense matrix: projections and features.

Both project the same block of rows on the same number of frequencies, on all threads
that BLAS may use. The ratio is the dense product's time over the Hadamard transforms',
round by round; "features" adds the cosines and sines that follow either. Run:
``python benchmarks/sorf.py``.
"""

import argparse

import numpy as np

from children import ratio
from paired import add_clock, clock_and_limit, rounds
from surff.backend import map_slices
from surff.draws import StructuredOrthogonal
from surff.kernels import Gaussian, fourier_features

#: Rows, input columns, frequencies.
BLOCKS = [(512, 64, 16384), (512, 256, 16384), (512, 1024, 16384)]


def compare(dtype, n_rows, n_features, n_frequencies, repeats, clock):
    """Print one row: how many times as fast projections and features are."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, n_features)).astype(dtype)
    drawn = StructuredOrthogonal().draw(Gaussian(), n_frequencies, n_features, rng)
    structured = (0.1 * drawn).astype(dtype)
    dense = rng.normal(size=(n_frequencies, n_features)).astype(dtype)
    P = np.empty((n_rows, n_frequencies), dtype)
    Z = np.empty((n_rows, 2 * n_frequencies), dtype)

    def project(rows):
        structured.projections(X[rows], P[rows])

    seconds = rounds(
        {
            "structured": lambda: map_slices(project, n_rows),
            "dense": lambda: np.matmul(X, dense.T, out=P),
            "structured features": lambda: fourier_features(X, structured, out=Z),
            "dense features": lambda: fourier_features(X, dense, out=Z),
        },
        repeats,
        clock=clock,
    )
    row = f"| {np.dtype(dtype).name} | {n_rows} x {n_features} | {n_frequencies} |"
    for kind in ("", " features"):
        median, low, high = ratio(seconds["dense" + kind], seconds["structured" + kind])
        row += f" {median:.1f} | {low:.1f} to {high:.1f} |"
    print(row)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=7)
    add_clock(parser)
    options = parser.parse_args()
    clock, limit = clock_and_limit(options)
    print(
        "| dtype | block | frequencies | projections | min to max | features "
        "| min to max |"
    )
    print("|---|---|---:|---:|---|---:|---|")
    with limit:
        for dtype in (np.float64, np.float32):
            for block in BLOCKS:
                compare(dtype, *block, options.repeats, clock)


if __name__ == "__main__":
    main()
