r"""Gaussian kernel values of a block of rows, compiled with numba.

For a scaled row ``x`` and points ``c_j`` one pass writes

    exp(-d_j),        d_j = |x|^2 - 2 x.c_j + |c_j|^2,

with the products from BLAS, some rows at a time, so that they are still in the
second-level cache when the exponential reads them. The argument is reduced to
``r = -d - k log 2`` in ``[-log(2) / 2, log(2) / 2]``, log 2 split into a part so short
that ``k * part`` is exact and the rest; ``1 + r + r^2 Q(r)`` with a polynomial Q is
exp(r), and k is added to the exponent of the result, the bits of a float64 taken as an
integer. There is no branch, so the loop vectorises. Distances below zero, which are
rounding, count as zero; values below the smallest normal float64 are zero.

The compiled functions check nothing: `write_gaussian` is the door to them. They are
single-threaded and release the GIL. "contract" is allowed and nothing else of fast
math: reassociation would fold the rounding constant and the parts of log 2 away.
"""

import numpy as np

from surff.backend.compilation import check_buffer, compiled
from surff.backend.trig import ROUND64, widest_vectors

__all__ = ["exp_of_minus", "gaussian_values", "write_gaussian"]

LOG2_E = 1.4426950408889634

# log 2 in parts of 32 bits and the rest: with |k| < 2**21 the first product is exact.
LOG2_1 = float.fromhex("0x1.62e42fee00000p-1")
LOG2_2 = float.fromhex("0x1.a39ef35793c76p-33")

#: Largest distance whose exponential is a normal float64.
LARGEST = 708.0

#: Bits of the mantissa of a float64, below those of its exponent.
MANTISSA = np.int64(52)

# Q interpolates (exp(r) - 1 - r) / r^2 in ten Chebyshev nodes of the interval, so that
# the relative error of exp(r), before rounding, is below 2e-17.
Q_0 = 0.5000000000000001
Q_1 = 0.16666666666666669
Q_2 = 0.041666666666623824
Q_3 = 0.008333333333330039
Q_4 = 0.0013888888917367081
Q_5 = 0.00019841269863171557
Q_6 = 2.4801521057868204e-05
Q_7 = 2.7557268276905696e-06
Q_8 = 2.7620201591031547e-07
Q_9 = 2.5100472505694996e-08


@compiled(contract=True)
def exp_of_minus(d: np.ndarray) -> None:
    """Overwrite distances with ``exp(-d)``; those below zero count as zero.

    Parameters
    ----------
    d : ndarray of shape (m,), float64, contiguous
        Distances; nan stays nan.

    Notes
    -----
    Relative error below ``3e-16`` up to `LARGEST`; zero beyond.
    """
    widest_vectors()
    for j in range(d.shape[0]):
        x = d[j]
        x = 0.0 if x < 0.0 else x
        shifted = ROUND64 - x * LOG2_E
        k = shifted - ROUND64
        r = (-x - k * LOG2_1) - k * LOG2_2
        q = Q_4 + r * (Q_5 + r * (Q_6 + r * (Q_7 + r * (Q_8 + r * Q_9))))
        q = Q_0 + r * (Q_1 + r * (Q_2 + r * (Q_3 + r * q)))
        value = 1.0 + (r + r * r * q)
        # The lowest bits of ``shifted`` are those of k.
        power = np.float64(shifted).view(np.int64) << MANTISSA
        bits = np.float64(value).view(np.int64) + power
        scaled = np.int64(bits).view(np.float64)
        scaled = 0.0 if x > LARGEST else scaled
        d[j] = scaled if x == x else x


@compiled(contract=True)
def gaussian_values(
    X: np.ndarray,
    centre: np.ndarray,
    factors: np.ndarray,
    points: np.ndarray,
    squares: np.ndarray,
    rows: np.ndarray,
    out: np.ndarray,
) -> float:
    """Write ``exp(-|(x - centre) * factors - c_j|^2)`` into ``out``.

    Parameters
    ----------
    X : ndarray of shape (n, d), float64, C-contiguous
        Rows.
    centre, factors : ndarray of shape (d,), float64
        Taken off each row, and multiplied with what is left.
    points : ndarray of shape (d, m), float64, C-contiguous
        Points c, centred and scaled in the same way, one a column.
    squares : ndarray of shape (m,), float64
        Their squared norms.
    rows : ndarray of shape (r, d), float64, C-contiguous
        Work space: ``r`` rows at a time.
    out : ndarray of shape (n, m), float64, C-contiguous
        Receives the values.

    Returns
    -------
    float
        Sum of the squared norms of the scaled rows, not finite if one of them is not:
        then some values are nan.
    """
    n, d = X.shape
    total = 0.0
    for start in range(0, n, len(rows)):
        stop = min(start + len(rows), n)
        scaled = rows[: stop - start]
        for i in range(start, stop):
            x, z = X[i], scaled[i - start]
            for j in range(d):
                z[j] = (x[j] - centre[j]) * factors[j]
        np.dot(scaled, points, out[start:stop])
        for i in range(start, stop):
            z, values = scaled[i - start], out[i]
            square = 0.0
            for j in range(d):
                square += z[j] * z[j]
            total += square
            for j in range(len(squares)):
                values[j] = (square + squares[j]) - 2.0 * values[j]
            exp_of_minus(values)
    return total


def write_gaussian(
    X: np.ndarray,
    centre: np.ndarray,
    factors: np.ndarray,
    points: np.ndarray,
    squares: np.ndarray,
    rows: np.ndarray,
    out: np.ndarray,
) -> float:
    """Write kernel values into ``out``; the door to `gaussian_values`.

    Raises
    ------
    ValueError
        Naming an array of another shape, type or layout.
    """
    (n, d), m = X.shape, len(squares)
    check_buffer("X", X, (n, d), np.float64)
    check_buffer("centre", centre, (d,), np.float64)
    check_buffer("factors", factors, (d,), np.float64)
    check_buffer("points", points, (d, m), np.float64)
    check_buffer("squares", squares, (m,), np.float64)
    check_buffer("rows", rows, (max(1, len(rows)), d), np.float64, written=True)
    check_buffer("out", out, (n, m), np.float64, written=True)
    return gaussian_values(X, centre, factors, points, squares, rows, out)
