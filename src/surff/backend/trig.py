"""Fused projection, cosine and sine of a block of rows, compiled with numba.

For a row ``p`` of projections and amplitudes ``a`` one pass writes

    c_j = a_j cos(p_j),        s_j = a_j sin(p_j).

Each argument is reduced to ``r = p - k pi/2`` in ``[-pi/4, pi/4]``, where ``k`` is the
nearest integer to ``2 p / pi``, with pi/2 split into parts short enough for every
product ``k * part`` to be exact (Cody and Waite), so the result does not depend on
fused multiply-adds. Odd and even minimax polynomials give sin r and cos r; ``k mod 4``
swaps and negates them without a branch, which lets the compiler vectorise the loop.
Its integers are 32 bits wide throughout, as wide as a float32, so that a vector of
numbers has one vector of quadrants. A row with a ``k`` of more than 16 bits, that is an
argument beyond `REDUCTION_LIMIT` or infinite, falls back to the C library, which
reduces exactly.

Dense rows of few columns are projected some at a time, by BLAS, in the same compiled
loop: their projections never leave the second-level cache, and no thread waits for
another's turn in Python. The kernels are single-threaded and release the GIL;
`surff.kernels.fourier` runs them on row slices from its own threads.

The compiled functions check nothing. `write_features`, `write_dense_features`,
`write_sparse_features`, `add_projected_moments` and `add_dense_moments` are the doors
to them: they take the same arguments, and refuse arrays that do not fit together.

All are compiled with "contract", fused multiply-adds and nothing else of fast math:
reassociation would fold the rounding constant and the parts of pi/2 away.
"""

import math

import numpy as np
from numba.core import types
from numba.extending import intrinsic, overload
from scipy import sparse

from surff.backend.compilation import check_buffer, compiled

__all__ = [
    "REDUCTION_LIMIT",
    "add_dense_moments",
    "add_features_moments",
    "add_projected_moments",
    "cos_sin_float32",
    "cos_sin_float64",
    "dense_features",
    "dense_moments",
    "sparse_features",
    "write_dense_features",
    "write_features",
    "write_sparse_features",
]

#: Absolute argument up to which the fast reduction serves; ``k`` then has 16 bits.
REDUCTION_LIMIT = 1e5

TWO_OVER_PI = 2.0 / math.pi

#: Adding and subtracting 1.5 * 2**(mantissa bits) rounds to the nearest integer.
ROUND64 = 1.5 * 2.0**52

#: The same in float32.
ROUND32 = np.float32(1.5 * 2.0**23)

# pi/2 in parts of 33 and 33 bits: with |k| < 2**20 the products are exact, and with
# |k| < 2**16 what the parts leave out, 0x1.3p-69, comes to less than 2e-16.
P64_1 = float.fromhex("0x1.921fb544p+0")
P64_2 = float.fromhex("0x1.0b4611a6p-34")

# pi/2 in parts of 8, 8, 8 and 24 bits: with |k| < 2**16 the first three are exact.
P32_1 = np.float32(float.fromhex("0x1.92p+0"))
P32_2 = np.float32(float.fromhex("0x1.fap-12"))
P32_3 = np.float32(float.fromhex("0x1.54p-20"))
P32_4 = np.float32(float.fromhex("0x1.10b46p-30"))

# Minimax coefficients on [-pi/4, pi/4]: sin r = r + r z S(z), cos r = 1 - z/2 + z^2
# C(z) with z = r^2. Double: errors below 2**-53; single: below 2**-27.
S64_1 = -1.66666666666666324348e-01
S64_2 = 8.33333333332248946124e-03
S64_3 = -1.98412698298579493134e-04
S64_4 = 2.75573137070700676789e-06
S64_5 = -2.50507602534068634195e-08
S64_6 = 1.58969099521155010221e-10
C64_1 = 0.04166666666660226
C64_2 = -0.0013888888878274375
C64_3 = 2.480158097168812e-05
C64_4 = -2.7555567133771323e-07
C64_5 = 2.06477380381002e-09
S32_1 = np.float32(-1.6666654611e-01)
S32_2 = np.float32(8.3321608736e-03)
S32_3 = np.float32(-1.9515295891e-04)
C32_1 = np.float32(4.166664568298827e-02)
C32_2 = np.float32(-1.388731625493765e-03)
C32_3 = np.float32(2.443315711809948e-05)

TWO_OVER_PI32 = np.float32(TWO_OVER_PI)
HALF32 = np.float32(0.5)
ONE32 = np.float32(1.0)

# numba widens 32-bit integers to 64 bits in every operation; `np.int32` takes them
# back, and the compiler sees that nothing was widened.
INT1 = np.int32(1)
INT2 = np.int32(2)

#: Bits by which a negative integer is shifted to all ones.
SIGN = np.int32(31)

#: Limit of the absolute values of the quadrants of a row, or of all their bits.
QUADRANTS = np.int32(2**16)


@intrinsic
def widest_vectors(_typing_context):
    """Compile the function that calls this for vectors of up to 512 bits.

    LLVM holds back to 256 on most processors that have more; a loop of multiply-adds
    takes a fifth less time with all. Elsewhere it changes nothing.
    """

    def generate(context, builder, _signature, _arguments):
        # llvmlite's own ``add`` takes attributes with a name and no value alone.
        set.add(builder.function.attributes, '"prefer-vector-width"="512"')
        return context.get_dummy_value()

    return types.none(), generate


@compiled(contract=True)
def exact_row(p, amplitudes, c, s):
    """One row through the C library, whose reduction is exact for any argument.

    Returns whether an argument has no cosine: it is infinite, or no number.
    """
    lost = False
    for j in range(p.shape[0]):
        angle = float(p[j])
        lost |= not math.isfinite(angle)
        c[j] = amplitudes[j] * math.cos(angle)
        s[j] = amplitudes[j] * math.sin(angle)
    return lost


@compiled(contract=True)
def cos_sin_float64(P: np.ndarray, amplitudes: np.ndarray, out: np.ndarray) -> bool:
    """Write ``[a cos P, a sin P]`` into ``out``, float64.

    Parameters
    ----------
    P : ndarray of shape (n, s), float64, C-contiguous
        Projections ``X @ frequencies.T`` in radians.
    amplitudes : ndarray of shape (s,), float64
        Factor of each pair.
    out : ndarray of shape (n, 2 s), float64, C-contiguous
        Receives the cosines in its first ``s`` columns and the sines in the others.

    Returns
    -------
    lost : bool
        Whether a projection is not finite; features of its row are NaN. The functions
        that call this return the same.

    Notes
    -----
    Absolute error below ``2e-15 max|a|`` for every finite argument.
    """
    widest_vectors()
    n_frequencies, lost = P.shape[1], False
    for i in range(P.shape[0]):
        # Row views: with two-dimensional indexing the loop does not vectorise.
        p = P[i]
        c = out[i, :n_frequencies]
        s = out[i, n_frequencies:]
        bits = np.int32(0)
        for j in range(n_frequencies):
            k = (p[j] * TWO_OVER_PI + ROUND64) - ROUND64
            quadrant = np.int32(k)
            bits = np.int32(bits | np.int32(quadrant ^ np.int32(quadrant >> SIGN)))
            r = (p[j] - k * P64_1) - k * P64_2
            z = r * r
            sine = r + r * z * (
                S64_1
                + z * (S64_2 + z * (S64_3 + z * (S64_4 + z * (S64_5 + z * S64_6))))
            )
            cosine = 1.0 + z * (
                -0.5 + z * (C64_1 + z * (C64_2 + z * (C64_3 + z * (C64_4 + z * C64_5))))
            )
            odd = np.int32(quadrant & INT1)
            cos_value = sine if odd else cosine
            sin_value = cosine if odd else sine
            a = amplitudes[j]
            negative = np.int32(np.int32(quadrant + INT1) & INT2)
            c[j] = a * (-cos_value if negative else cos_value)
            s[j] = a * (-sin_value if np.int32(quadrant & INT2) else sin_value)
        if bits >= QUADRANTS:  # found on the way: a check ahead looks at p twice
            lost |= exact_row(p, amplitudes, c, s)
    return lost


@compiled(contract=True)
def cos_sin_float32(P: np.ndarray, amplitudes: np.ndarray, out: np.ndarray) -> bool:
    """Write ``[a cos P, a sin P]`` into ``out``, float32; see `cos_sin_float64`.

    Absolute error below ``3e-7 max|a|`` for every finite argument.
    """
    widest_vectors()
    n_frequencies, lost = P.shape[1], False
    for i in range(P.shape[0]):
        p = P[i]
        c = out[i, :n_frequencies]
        s = out[i, n_frequencies:]
        bits = np.int32(0)
        for j in range(n_frequencies):
            k = (p[j] * TWO_OVER_PI32 + ROUND32) - ROUND32
            quadrant = np.int32(k)
            bits = np.int32(bits | np.int32(quadrant ^ np.int32(quadrant >> SIGN)))
            r = (((p[j] - k * P32_1) - k * P32_2) - k * P32_3) - k * P32_4
            z = r * r
            sine = r + r * z * (S32_1 + z * (S32_2 + z * S32_3))
            cosine = (ONE32 - HALF32 * z) + z * z * (C32_1 + z * (C32_2 + z * C32_3))
            odd = np.int32(quadrant & INT1)
            cos_value = sine if odd else cosine
            sin_value = cosine if odd else sine
            a = amplitudes[j]
            negative = np.int32(np.int32(quadrant + INT1) & INT2)
            c[j] = a * (-cos_value if negative else cos_value)
            s[j] = a * (-sin_value if np.int32(quadrant & INT2) else sin_value)
        if bits >= QUADRANTS:  # found on the way: a check ahead looks at p twice
            lost |= exact_row(p, amplitudes, c, s)
    return lost


@compiled(contract=True)
def add_moments(Z, Y, moments):
    """``moments += Y^T Z``: four rows at a time share one visit of the sums."""
    n_rows, n_columns = Z.shape
    for t in range(Y.shape[1]):
        total = moments[t]
        for i in range(0, n_rows - 3, 4):
            z0, z1, z2, z3 = Z[i], Z[i + 1], Z[i + 2], Z[i + 3]
            y0, y1, y2, y3 = Y[i, t], Y[i + 1, t], Y[i + 2, t], Y[i + 3, t]
            for j in range(n_columns):
                total[j] += (y0 * z0[j] + y1 * z1[j]) + (y2 * z2[j] + y3 * z3[j])
        for i in range(n_rows - n_rows % 4, n_rows):
            z, y = Z[i], Y[i, t]
            for j in range(n_columns):
                total[j] += y * z[j]


def cos_sin(P, amplitudes, out):
    """`cos_sin_float32` or `cos_sin_float64`, for compiled code of either type."""


@overload(cos_sin)
def _cos_sin_of(P, amplitudes, out):
    del amplitudes, out  # the type of P decides
    kernel = cos_sin_float32 if P.dtype == types.float32 else cos_sin_float64

    def call(P, amplitudes, out):
        return kernel(P, amplitudes, out)

    return call


@compiled(contract=True)
def add_features_moments(
    P: np.ndarray,
    amplitudes: np.ndarray,
    Y: np.ndarray,
    rows: np.ndarray,
    moments: np.ndarray,
) -> bool:
    """Add ``Y^T [a cos P, a sin P]`` to ``moments``; no feature leaves the cache.

    Parameters
    ----------
    P : ndarray of shape (n, s), float32 or float64, C-contiguous
        Projections in radians.
    amplitudes : ndarray of shape (s,), dtype of ``P``
        Factor of each pair.
    Y : ndarray of shape (n, k), float64, C-contiguous
        Targets.
    rows : ndarray of shape (r, 2 s), dtype of ``P``, C-contiguous
        Work space: the features of ``r`` rows at a time.
    moments : ndarray of shape (k, 2 s), float64, C-contiguous
        Sums, updated; of float32 features they lose nothing.
    """
    lost = False
    for i in range(0, P.shape[0], len(rows)):
        stop = min(i + len(rows), P.shape[0])
        Z = rows[: stop - i]
        lost |= cos_sin(P[i:stop], amplitudes, Z)
        add_moments(Z, Y[i:stop], moments)
    return lost


@compiled(contract=True)
def dense_features(
    X: np.ndarray,
    weights: np.ndarray,
    amplitudes: np.ndarray,
    P: np.ndarray,
    out: np.ndarray,
) -> bool:
    """Write the features of dense rows into ``out``.

    Parameters
    ----------
    X : ndarray of shape (n, d), float32 or float64, C-contiguous
        Rows.
    weights : ndarray of shape (d, s), dtype of ``X``, C-contiguous
        Frequencies, transposed.
    amplitudes, out
        See `cos_sin_float64`.
    P : ndarray of shape (r, s), dtype of ``X``, C-contiguous
        Work space: the projections of ``r`` rows at a time.
    """
    lost = False
    for i in range(0, X.shape[0], len(P)):
        stop = min(i + len(P), X.shape[0])
        projections = P[: stop - i]
        np.dot(X[i:stop], weights, projections)
        lost |= cos_sin(projections, amplitudes, out[i:stop])
    return lost


@compiled(contract=True)
def dense_moments(
    X: np.ndarray,
    weights: np.ndarray,
    amplitudes: np.ndarray,
    P: np.ndarray,
    Y: np.ndarray,
    rows: np.ndarray,
    moments: np.ndarray,
) -> bool:
    """Add the moments of dense rows.

    See `dense_features` and `add_features_moments`.
    """
    lost = False
    for i in range(0, X.shape[0], len(P)):
        stop = min(i + len(P), X.shape[0])
        projections = P[: stop - i]
        np.dot(X[i:stop], weights, projections)
        lost |= add_features_moments(projections, amplitudes, Y[i:stop], rows, moments)
    return lost


@compiled(contract=True)
def sparse_features(
    indptr: np.ndarray,
    indices: np.ndarray,
    data: np.ndarray,
    weights: np.ndarray,
    amplitudes: np.ndarray,
    P: np.ndarray,
    out: np.ndarray,
) -> bool:
    """Write the features of sparse rows into ``out``.

    Parameters
    ----------
    indptr, indices, data : ndarray
        Rows in CSR form; ``data`` float32 or float64.
    weights, amplitudes, P, out
        See `dense_features`. Few rows of ``P`` stay in the cache with the frequencies
        that they are sums of.
    """
    n, s, lost = len(indptr) - 1, weights.shape[1], False
    for first in range(0, n, len(P)):
        stop = min(first + len(P), n)
        for i in range(first, stop):
            p = P[i - first]
            p[:] = 0
            start, end = indptr[i], indptr[i + 1]
            fours = end - (end - start) % 4
            for k in range(start, fours, 4):  # one visit of the sums for four values
                w0, w1 = weights[indices[k]], weights[indices[k + 1]]
                w2, w3 = weights[indices[k + 2]], weights[indices[k + 3]]
                x0, x1, x2, x3 = data[k], data[k + 1], data[k + 2], data[k + 3]
                for j in range(s):
                    p[j] += (x0 * w0[j] + x1 * w1[j]) + (x2 * w2[j] + x3 * w3[j])
            for k in range(fours, end):
                w, x = weights[indices[k]], data[k]
                for j in range(s):
                    p[j] += x * w[j]
        lost |= cos_sin(P[: stop - first], amplitudes, out[first:stop])
    return lost


def write_features(P: np.ndarray, amplitudes: np.ndarray, out: np.ndarray) -> None:
    """Write ``[a cos P, a sin P]`` into ``out``; the door to `cos_sin_float64`.

    Raises
    ------
    ValueError
        Naming an array of another shape, type or layout, or X where projections are
        not finite.
    """
    n, s = len(P), len(amplitudes)
    kernel = cos_sin_float32 if P.dtype == np.float32 else cos_sin_float64
    dtype = np.float32 if P.dtype == np.float32 else np.float64
    check_buffer("P", P, (n, s), dtype)
    check_buffer("amplitudes", amplitudes, (s,), dtype)
    check_buffer("out", out, (n, 2 * s), dtype, written=True)
    _refuse(kernel(P, amplitudes, out))


def write_dense_features(
    X: np.ndarray,
    weights: np.ndarray,
    amplitudes: np.ndarray,
    P: np.ndarray,
    out: np.ndarray,
) -> None:
    """Write the features of dense rows into ``out``; the door to `dense_features`.

    Raises
    ------
    ValueError
        Naming an array of another shape, type or layout, or X where projections are
        not finite.
    """
    _check_dense(X, weights, amplitudes, P)
    shape = (len(X), 2 * len(amplitudes))
    check_buffer("out", out, shape, amplitudes.dtype, written=True)
    _refuse(dense_features(X, weights, amplitudes, P, out))


def write_sparse_features(
    X: sparse.csr_array,
    weights: np.ndarray,
    amplitudes: np.ndarray,
    P: np.ndarray,
    out: np.ndarray,
) -> None:
    """Write the features of a CSR matrix into ``out``; the door to `sparse_features`.

    Raises
    ------
    ValueError
        Naming an array of another shape, type or layout, indices that lead out of the
        matrix, or X where projections are not finite.
    """
    n, d, s = X.shape[0], X.shape[1], len(amplitudes)
    dtype = np.float32 if weights.dtype == np.float32 else np.float64
    check_buffer("weights", weights, (d, s), dtype)
    check_buffer("amplitudes", amplitudes, (s,), dtype)
    check_buffer("P", P, (max(1, len(P)), s), dtype, written=True)
    check_buffer("out", out, (n, 2 * s), dtype, written=True)
    kind = np.int64 if X.indices.dtype == np.int64 else np.int32
    indices, indptr = (np.require(a, kind, "CA") for a in (X.indices, X.indptr))
    data = np.require(X.data, requirements="CA")
    check_buffer("X.data", data, (len(indices),), dtype)
    check_buffer("X.indptr", indptr, (n + 1,), kind)
    rises = indptr[0] == 0 and indptr[-1] <= len(data) and (np.diff(indptr) >= 0).all()
    inside = not len(indices) or (indices.min() >= 0 and indices.max() < d)
    if not (rises and inside):
        raise ValueError(f"X must have indices inside its shape {X.shape}.")
    _refuse(sparse_features(indptr, indices, data, weights, amplitudes, P, out))


def add_projected_moments(
    P: np.ndarray,
    amplitudes: np.ndarray,
    Y: np.ndarray,
    rows: np.ndarray,
    moments: np.ndarray,
) -> None:
    """Add the moments of projections; the door to `add_features_moments`.

    Raises
    ------
    ValueError
        Naming an array of another shape, type or layout, or X where projections are
        not finite.
    """
    n, s = len(P), len(amplitudes)
    dtype = np.float32 if P.dtype == np.float32 else np.float64
    check_buffer("P", P, (n, s), dtype)
    check_buffer("amplitudes", amplitudes, (s,), dtype)
    _check_sums(n, s, dtype, Y, rows, moments)
    _refuse(add_features_moments(P, amplitudes, Y, rows, moments))


def add_dense_moments(
    X: np.ndarray,
    weights: np.ndarray,
    amplitudes: np.ndarray,
    P: np.ndarray,
    Y: np.ndarray,
    rows: np.ndarray,
    moments: np.ndarray,
) -> None:
    """Add the moments of dense rows; the door to `dense_moments`.

    Raises
    ------
    ValueError
        Naming an array of another shape, type or layout, or X where projections are
        not finite.
    """
    _check_dense(X, weights, amplitudes, P)
    _check_sums(len(X), len(amplitudes), amplitudes.dtype, Y, rows, moments)
    _refuse(dense_moments(X, weights, amplitudes, P, Y, rows, moments))


def _refuse(lost):
    """Refuse rows whose projections have no cosine."""
    if lost:
        raise ValueError(
            "X must have finite projections on the frequencies, got some that are too "
            "large for their dtype or NaN; scale the columns of X or choose a smaller "
            "gamma."
        )


def _check_dense(X, weights, amplitudes, P):
    """Check what dense rows are projected with; at least one row at a time."""
    (n, d), s = X.shape, weights.shape[1]
    dtype = np.float32 if weights.dtype == np.float32 else np.float64
    check_buffer("X", X, (n, d), dtype)
    check_buffer("weights", weights, (d, s), dtype)
    check_buffer("amplitudes", amplitudes, (s,), dtype)
    check_buffer("P", P, (max(1, len(P)), s), dtype, written=True)


def _check_sums(n, s, dtype, Y, rows, moments):
    """Check the targets, the work space and the sums of moments."""
    n_targets = Y.shape[1]
    check_buffer("Y", Y, (n, n_targets), np.float64)
    check_buffer("rows", rows, (max(1, len(rows)), 2 * s), dtype, written=True)
    check_buffer("moments", moments, (n_targets, 2 * s), np.float64, written=True)
