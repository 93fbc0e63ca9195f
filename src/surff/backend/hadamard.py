r"""Products of random signs and Hadamard matrices, compiled with numba.

Block b of a structured projection of a row x, zero-padded to a power of two p, is

.. math:: N_b H D_{b1} H D_{b2} H D_{b3}\, x,

with the Hadamard matrix :math:`H` of entries 1 and -1, diagonal matrices of signs
:math:`D` and factors :math:`N`. H costs p log2 p additions by the fast Walsh-Hadamard
transform. Dozens of rows go through it side by side, innermost in memory, so that every
butterfly is a run of whole vector instructions.

The kernel is single-threaded and releases the GIL. It checks nothing;
`write_hadamard_projections` is the door to it.
"""

import numpy as np

from surff.backend.compilation import check_buffer, compiled

__all__ = ["check_signs", "hadamard_projections", "write_hadamard_projections"]

#: Columns written together: four lines of the cache in float32, eight in float64.
TILE = 64

#: Rows of a transform that fit in the first-level cache, a power of four.
PART = 64


@compiled(contract=True)
def butterflies(flat, run):
    """Stages from neighbouring runs of ``run`` numbers up to all of ``flat``, in place.

    Two stages a pass halve the traffic with the cache.
    """
    size = len(flat)
    while 4 * run <= size:
        for start in range(0, size, 4 * run):
            x0 = flat[start : start + run]
            x1 = flat[start + run : start + 2 * run]
            x2 = flat[start + 2 * run : start + 3 * run]
            x3 = flat[start + 3 * run : start + 4 * run]
            for j in range(run):
                a, b = x0[j] + x1[j], x0[j] - x1[j]
                c, d = x2[j] + x3[j], x2[j] - x3[j]
                x0[j], x1[j], x2[j], x3[j] = a + c, b + d, a - c, b - d
        run *= 4
    if run < size:
        x0, x1 = flat[:run], flat[run:]
        for j in range(run):
            x0[j], x1[j] = x0[j] + x1[j], x0[j] - x1[j]


@compiled(contract=True)
def signed_transform(source, signs, target):
    """Write ``H diag(signs) source`` into ``target``, another array.

    Both have shape (p, lanes); with one array for both the first pass would not
    vectorise. The signs go with the first two stages. Part after part of the rows is
    taken as far as it goes, while it lies in the first-level cache.
    """
    p, lanes = source.shape
    flat = target.reshape(p * lanes)
    if p < 4:
        for i in range(p):
            for j in range(lanes):
                target[i, j] = signs[i] * source[i, j]
        butterflies(flat, lanes)
        return
    part = min(p, PART)
    for first in range(0, p, part):
        for i in range(first, first + part, 4):
            s0, s1, s2, s3 = signs[i], signs[i + 1], signs[i + 2], signs[i + 3]
            x0, x1, x2, x3 = source[i], source[i + 1], source[i + 2], source[i + 3]
            y0, y1, y2, y3 = target[i], target[i + 1], target[i + 2], target[i + 3]
            for j in range(lanes):
                u0, u1, u2, u3 = s0 * x0[j], s1 * x1[j], s2 * x2[j], s3 * x3[j]
                a, b, c, d = u0 + u1, u0 - u1, u2 + u3, u2 - u3
                y0[j], y1[j], y2[j], y3[j] = a + c, b + d, a - c, b - d
        butterflies(flat[first * lanes : (first + part) * lanes], 4 * lanes)
    butterflies(flat, part * lanes)


@compiled(contract=True)
def hadamard_projections(X, signs, factors, buffers, P):
    """Write the structured projections of the rows of ``X`` into ``P``.

    Parameters
    ----------
    X : ndarray of shape (n, d), float32 or float64
        Rows.
    signs : ndarray of shape (n_blocks, 3, p), dtype of ``X``
        Diagonals of :math:`D_{b1}, D_{b2}, D_{b3}`; p >= d a power of two.
    factors : ndarray of shape (s,), dtype of ``X``
        Factor of each projection, ``(n_blocks - 1) p < s <= n_blocks p``.
    buffers : ndarray of shape (3, p, lanes), dtype of ``X``, C-contiguous
        Work space; ``lanes`` rows are transformed together.
    P : ndarray of shape (n, s), dtype of ``X``
        Receives the projections.
    """
    n, d = X.shape
    n_blocks, _, p = signs.shape
    s = P.shape[1]
    lanes = buffers.shape[2]
    padded, buffer, other = buffers[0], buffers[1], buffers[2]
    padded[:] = 0
    for first in range(0, n, lanes):
        count = min(lanes, n - first)
        for lane in range(count):
            row = X[first + lane]
            for j in range(d):
                padded[j, lane] = row[j]
        for b in range(n_blocks):
            signed_transform(padded, signs[b, 2], buffer)
            signed_transform(buffer, signs[b, 1], other)
            signed_transform(other, signs[b, 0], buffer)
            # By tiles, so that a line of the buffer is read once from the cache.
            stop = min(p, s - b * p)
            for start in range(0, stop, TILE):
                tile = min(TILE, stop - start)
                column = b * p + start
                for lane in range(count):
                    out = P[first + lane, column : column + tile]
                    for j in range(tile):
                        out[j] = factors[column + j] * buffer[start + j, lane]


def check_signs(signs: np.ndarray, n_projections: int, n_features: int) -> None:
    """Refuse signs whose shape does not serve some projections of some columns.

    Parameters
    ----------
    signs : ndarray of shape (n_blocks, 3, p)
        See `hadamard_projections`.
    n_projections, n_features : int
        What they must serve: at most ``n_blocks * p`` and p.

    Raises
    ------
    ValueError
        Naming ``signs``.
    """
    shape = np.shape(signs)
    p = shape[2] if len(shape) == 3 else 0
    if (
        p < 1
        or shape[1] != 3
        or p & (p - 1)
        or p < n_features
        or shape[0] * p < n_projections
    ):
        raise ValueError(
            "signs must have shape (n_blocks, 3, p), p a power of two not below the "
            f"{n_features} columns and n_blocks * p not below the {n_projections} "
            f"norms, got {shape}."
        )


def write_hadamard_projections(
    X: np.ndarray,
    signs: np.ndarray,
    factors: np.ndarray,
    buffers: np.ndarray,
    P: np.ndarray,
) -> None:
    """Write projections into ``P``; the door to `hadamard_projections`.

    Raises
    ------
    ValueError
        Naming an array of another shape, type or layout.
    """
    (n, d), s = X.shape, len(factors)
    dtype = np.float32 if factors.dtype == np.float32 else np.float64
    check_signs(signs, s, d)
    p = signs.shape[2]
    if X.dtype != dtype:
        raise ValueError(f"X must have dtype {np.dtype(dtype)}, got {X.dtype}.")
    check_buffer("signs", signs, signs.shape, dtype)
    check_buffer("factors", factors, (s,), dtype)
    lanes = max(1, buffers.shape[-1])
    check_buffer("buffers", buffers, (3, p, lanes), dtype, written=True)
    check_buffer("out", P, (n, s), dtype, written=True)
    hadamard_projections(X, signs, factors, buffers, P)
