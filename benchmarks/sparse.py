"""Features of sparse rows as of text, against scikit-learn's RBFSampler.

Rows with a few counts among many columns, as a bag of words gives them; neither side
makes them dense. The ratio is rows a second, ours over theirs, round by round. Run:
``python benchmarks/sparse.py``.
"""

import argparse

import numpy as np
from scipy import sparse
from sklearn.kernel_approximation import RBFSampler

from paired import add_clock, clock_and_limit, print_rates, print_rates_head
from surff import FourierFeatures

#: Rows, input columns, share of entries that are not zero, and frequencies.
ROWS, FEATURES, DENSITY, FREQUENCIES = 20_000, 100_000, 1e-4, 1024


def compare(dtype, columns, repeats, clock):
    """Print one row: ours has ``columns`` columns, RBFSampler one a frequency."""
    rng = np.random.default_rng(0)
    counts = rng.poisson(DENSITY * FEATURES, ROWS)
    pointers = np.r_[0, np.cumsum(counts)]
    words = rng.integers(FEATURES, size=pointers[-1])
    values = rng.random(pointers[-1]).astype(dtype)
    X = sparse.csr_matrix((values, words, pointers), shape=(ROWS, FEATURES))
    ours = FourierFeatures(columns, gamma=0.5, random_state=0).fit(X)
    theirs = RBFSampler(gamma=0.5, n_components=FREQUENCIES, random_state=0).fit(X)
    print_rates(X, columns, ours.transform, theirs.transform, repeats, clock)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    add_clock(parser)
    options = parser.parse_args()
    clock, limit = clock_and_limit(options)
    print(f"RBFSampler has {FREQUENCIES} columns.\n")
    print_rates_head()
    with limit:
        for dtype in (np.float64, np.float32):
            for columns in (FREQUENCIES, 2 * FREQUENCIES):
                compare(dtype, columns, options.repeats, clock)


if __name__ == "__main__":
    main()
