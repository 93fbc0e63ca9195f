"""Cosines and sines of the compiled kernels, compared with wider arithmetic.

``python tests/fuzz/sines.py --n 100000000 --seed 0`` draws arguments of float64 and as
many of float32: uniform ones, of any size, next to multiples of pi/4, and any bits
that are a finite number. It compares the kernels with NumPy's ``longdouble`` and prints
the largest absolute errors by kind. The exit status says whether one is beyond the
bound that `surff.backend.cos_sin_float64` promises.
"""

import argparse
import sys

import numpy as np

from surff.backend import cos_sin_float32, cos_sin_float64

#: Kernel and promised absolute error of each type.
KERNELS = {
    np.float64: (cos_sin_float64, 2e-15),
    np.float32: (cos_sin_float32, 3e-7),
}

#: Arguments at a time: rows, and columns of a row.
SHAPE = (100, 500)


def uniform(rng, dtype):
    """Arguments such as projections of scaled rows have."""
    return rng.uniform(-1.0, 1.0, SHAPE) * 10.0 ** rng.uniform(0.0, 4.9)


def any_size(rng, dtype):
    """Arguments from tiny ones up to, or to beyond, the fast reduction."""
    largest = rng.choice([4.9, 12.0])
    return rng.choice([-1.0, 1.0], SHAPE) * 10.0 ** rng.uniform(-30.0, largest, SHAPE)


def beside_quarters(rng, dtype):
    """Arguments a few bits from multiples of pi/4, where the reduction cancels."""
    near = (rng.integers(-120_000, 120_000, SHAPE) * (np.pi / 4)).astype(dtype)
    return near + rng.integers(-3, 4, SHAPE) * np.spacing(near)


def any_bits(rng, dtype):
    """Any finite number."""
    values = np.frombuffer(rng.bytes(np.prod(SHAPE) * dtype(0).nbytes), dtype)
    return np.where(np.isfinite(values), values, 0.0).reshape(SHAPE)


def error_of(P, kernel):
    """Largest absolute error of the cosines and sines of some arguments."""
    n = P.shape[1]
    out = np.empty((len(P), 2 * n), P.dtype)
    kernel(P, np.ones(n, P.dtype), out)
    wide = P.astype(np.longdouble if P.dtype == np.float64 else np.float64)
    errors = [
        abs(out[:, :n] - np.cos(wide)).max(),
        abs(out[:, n:] - np.sin(wide)).max(),
    ]
    return float(max(errors))


def largest_errors(n, seed):
    """Largest error by type and kind, of at least ``n`` arguments of each type."""
    rng, found = np.random.default_rng(seed), {}
    kinds = (uniform, uniform, any_size, beside_quarters, any_bits)
    size = np.prod(SHAPE)
    for number in range(-(-n // size)):
        make = kinds[number % len(kinds)]
        for dtype, (kernel, _) in KERNELS.items():
            P = np.ascontiguousarray(make(rng, dtype), dtype)
            key = dtype, make.__name__
            found[key] = max(found.get(key, 0.0), error_of(P, kernel))
    return found


def main():
    """Compare, print; the exit status says whether an error was too large."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--n", type=int, default=10**6, help="arguments of each type")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    found = largest_errors(options.n, options.seed)
    for (dtype, kind), error in found.items():
        print(f"{dtype.__name__} {kind}: {error:.2g}")
    wrong = False
    for dtype, (_, bound) in KERNELS.items():
        largest = max(error for (of, _), error in found.items() if of is dtype)
        print(f"{options.n} arguments of {dtype.__name__}: {largest:.2g} of {bound}")
        wrong |= not largest < bound
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main())
