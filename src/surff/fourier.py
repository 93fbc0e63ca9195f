r"""The random Fourier feature map.

With frequencies :math:`w_1, \dots, w_s` and amplitudes :math:`a_i`,

.. math:: \varphi(x) = \frac{1}{\sqrt s}
          \bigl[a_1 \cos w_1^\top x, \dots, a_s \cos w_s^\top x,\;
                a_1 \sin w_1^\top x, \dots, a_s \sin w_s^\top x\bigr],

so :math:`\varphi(x)^\top \varphi(x') = \frac1s \sum_i a_i^2 \cos w_i^\top (x - x')`,
the real part of the complex map :math:`\exp(-\mathrm i\, w^\top x)`. It is an unbiased
estimate of :math:`k(x - x')` when :math:`a_i^2 = p(w_i) / q(w_i)` for frequencies drawn
from ``q``. Projections are one BLAS product; cosines and sines come from the fused
kernels of `surff._trig` for NumPy and SciPy sparse input, and from the array's own
namespace for any other.
"""

import math

import numpy as np
from array_api_compat import array_namespace, is_numpy_array
from scipy import sparse

from surff._threads import map_slices
from surff._trig import (
    cos_sin_float32,
    cos_sin_float64,
    moments_float32,
    moments_float64,
)
from surff.blocks import block_rows, row_blocks

__all__ = ["FourierMap", "fourier_features", "fourier_moments"]

_MAP_KERNELS = {
    np.dtype(np.float32): cos_sin_float32,
    np.dtype(np.float64): cos_sin_float64,
}
_MOMENT_KERNELS = {
    np.dtype(np.float32): moments_float32,
    np.dtype(np.float64): moments_float64,
}


def fourier_features(X, frequencies, amplitudes=None, *, out=None):
    r"""Cosine and sine features of every row.

    Computes :math:`\varphi(x)` of the module's formula for each row of ``X``.

    Parameters
    ----------
    X : array or sparse matrix of shape (n_samples, n_features)
        Rows :math:`x`, float32 or float64.
    frequencies : array of shape (n_frequencies, n_features)
        Frequencies :math:`w_i`, radians per unit of ``X``; same dtype as ``X``.
    amplitudes : array of shape (n_frequencies,), optional
        Factors :math:`a_i`; ones by default.
    out : ndarray of shape (n_samples, 2 * n_frequencies), optional
        C-contiguous array to write into; NumPy and sparse input only.

    Returns
    -------
    Z : array of shape (n_samples, 2 * n_frequencies)
        Cosines in the first half of the columns, sines in the second; dtype, namespace
        and device of ``X``.

    Notes
    -----
    ``O(n_samples * n_frequencies * n_features)`` time. Besides ``Z`` one block of
    projections is held.

    References
    ----------
    .. [1] A. Rahimi, B. Recht, "Random Features for Large-Scale Kernel Machines",
       NIPS 2007.

    Examples
    --------
    >>> import numpy as np
    >>> X, frequencies = np.array([[0.0], [1.0]]), np.array([[np.pi], [2 * np.pi]])
    >>> (fourier_features(X, frequencies) * np.sqrt(2)).round() + 0.0
    array([[ 1.,  1.,  0.,  0.],
           [-1.,  1.,  0.,  0.]])
    """
    n_frequencies = frequencies.shape[0]
    scale = 1.0 / math.sqrt(n_frequencies)
    if not (sparse.issparse(X) or is_numpy_array(X)):
        xp = array_namespace(X, frequencies)
        P = X @ xp.matrix_transpose(frequencies)
        Z = xp.concat([xp.cos(P), xp.sin(P)], axis=1) * scale
        return Z if amplitudes is None else Z * xp.concat([amplitudes, amplitudes])

    if out is None:
        out = np.empty((X.shape[0], 2 * n_frequencies), dtype=frequencies.dtype)
    amplitudes = _scaled(amplitudes, n_frequencies, out.dtype)
    kernel = _MAP_KERNELS[out.dtype]
    for block, P in _projections(X, frequencies):
        Z = out[block]
        map_slices(lambda rows, P=P, Z=Z: kernel(P[rows], amplitudes, Z[rows]), len(Z))
    return out


def fourier_moments(X, frequencies, Y, amplitudes=None):
    r"""Moments :math:`Z^\top Y` of the features of all rows, which are never stored.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n_samples, n_features)
        Rows, float32 or float64.
    frequencies : ndarray of shape (n_frequencies, n_features)
        Frequencies, radians per unit of ``X``; same dtype as ``X``.
    Y : ndarray of shape (n_samples, n_targets)
        Targets.
    amplitudes : ndarray of shape (n_frequencies,), optional
        Factors of the pairs; ones by default.

    Returns
    -------
    moments : ndarray of shape (2 * n_frequencies, n_targets), float64

    Notes
    -----
    ``O(n_samples * n_frequencies * (n_features + n_targets))`` time; one block of
    projections and a few rows of features are held.
    """
    n_frequencies = frequencies.shape[0]
    dtype = frequencies.dtype
    amplitudes = _scaled(amplitudes, n_frequencies, dtype)
    kernel = _MOMENT_KERNELS[dtype]
    Y = np.ascontiguousarray(Y, dtype=np.float64)

    def slice_moments(P, Y):
        moments = np.zeros((Y.shape[1], 2 * n_frequencies))
        workspace = np.empty((16, 2 * n_frequencies), dtype)
        kernel(P, amplitudes, Y, workspace, moments)
        return moments

    total = np.zeros((Y.shape[1], 2 * n_frequencies))
    for block, P in _projections(X, frequencies):
        parts = map_slices(
            lambda rows, P=P, Y=Y[block]: slice_moments(P[rows], Y[rows]), len(P)
        )
        total += sum(parts)
    return total.T


def _scaled(amplitudes, n_frequencies, dtype):
    """Amplitudes with the map's ``1 / sqrt(s)``."""
    scale = np.full(n_frequencies, 1.0 / math.sqrt(n_frequencies), dtype)
    return scale if amplitudes is None else scale * amplitudes.astype(dtype)


def _projections(X, frequencies):
    """Yield row blocks and their projections ``X[block] @ frequencies.T``."""
    size = block_rows(2 * frequencies.shape[0], frequencies.dtype)
    weights = frequencies.T
    if sparse.issparse(X):
        for block in row_blocks(X.shape[0], size):
            yield block, np.ascontiguousarray(X[block] @ weights)
        return
    P = np.empty((min(size, X.shape[0]), frequencies.shape[0]), frequencies.dtype)
    for block in row_blocks(X.shape[0], size):
        yield block, np.matmul(X[block], weights, out=P[: block.stop - block.start])


class FourierMap:
    """`fourier_features` with its frequencies and amplitudes bound.

    Parameters
    ----------
    frequencies : array of shape (n_frequencies, n_features)
        Its dtype is that of the features.
    amplitudes : array of shape (n_frequencies,), optional
        Factors of the pairs.
    """

    def __init__(self, frequencies, amplitudes=None):
        self.frequencies = frequencies
        self.amplitudes = amplitudes
        self.n_components = 2 * frequencies.shape[0]
        self.dtype = frequencies.dtype

    def __call__(self, X, out=None):
        return fourier_features(X, self.frequencies, self.amplitudes, out=out)

    def moments(self, X, Y):
        """`fourier_moments` of the map: :math:`Z^\\top Y` without storing Z."""
        return fourier_moments(X, self.frequencies, Y, self.amplitudes)

    def astype(self, dtype):
        """The same map computing in another floating-point type."""
        if self.dtype == dtype:
            return self
        amplitudes = None if self.amplitudes is None else self.amplitudes.astype(dtype)
        return FourierMap(self.frequencies.astype(dtype), amplitudes)
