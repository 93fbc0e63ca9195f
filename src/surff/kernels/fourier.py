r"""The random Fourier feature map.

With frequencies :math:`w_1, \dots, w_s` and amplitudes :math:`a_i`,

.. math:: \varphi(x) = \frac{1}{\sqrt s}
          \bigl[a_1 \cos w_1^\top x, \dots, a_s \cos w_s^\top x,\;
                a_1 \sin w_1^\top x, \dots, a_s \sin w_s^\top x\bigr],

so :math:`\varphi(x)^\top \varphi(x') = \frac1s \sum_i a_i^2 \cos w_i^\top (x - x')`,
the real part of the complex map :math:`\exp(-\mathrm i\, w^\top x)`. It is an unbiased
estimate of :math:`k(x - x')` when :math:`a_i^2 = p(w_i) / q(w_i)` for frequencies drawn
from ``q``. Projections are products of BLAS; they, the cosines and the sines come from
the fused kernels of `surff.backend.trig` for NumPy and SciPy sparse input, and from the
array's own namespace for any other (`ArrayFourierMap`).
"""

import functools
import math

import numpy as np
from array_api_compat import array_namespace, device, is_numpy_array
from scipy import sparse

from surff.backend import (
    add_features_moments,
    asarray_like,
    block_rows,
    cos_sin_float32,
    cos_sin_float64,
    dense_features,
    dense_moments,
    feature_blocks,
    map_rows,
    map_slices,
    namespace_of,
    other_namespace,
    row_blocks,
    rows_of,
    to_numpy,
    wide_dtype,
)

__all__ = [
    "NARROW_ROWS",
    "ArrayFourierMap",
    "FourierMap",
    "OddFourierMap",
    "fourier_features",
    "fourier_moments",
    "kernel_estimate",
]

#: Share of non-zero values above which a block of sparse rows is multiplied as a dense
#: one, where BLAS is faster, and the bytes of such a block.
DENSE_SHARE = 0.07
DENSE_BYTES = 16 * 2**20

#: Columns of dense rows up to which the kernels project them themselves, this many at
#: a time, of so many that a keyboard interrupt need not wait. The product of wider rows
#: is most of the work, and faster on a whole block.
NARROW, NARROW_ROWS, NARROW_BLOCK_ROWS = 128, 128, 8192

_MAP_KERNELS = {
    np.dtype(np.float32): cos_sin_float32,
    np.dtype(np.float64): cos_sin_float64,
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
    if not (sparse.issparse(X) or is_numpy_array(X)):
        xp = array_namespace(X, frequencies)
        P = X @ xp.matrix_transpose(frequencies)
        Z = xp.concat([xp.cos(P), xp.sin(P)], axis=1)
        scale = 1.0 / math.sqrt(frequencies.shape[0])
        if amplitudes is not None:
            scale = xp.concat([amplitudes, amplitudes]) * scale
        Z *= scale
        return Z

    return map_rows(FourierMap(frequencies, amplitudes), X, out)


def fourier_moments(X, frequencies, Y, amplitudes=None):
    r"""Moments :math:`Z^\top Y` of the features of all rows, which are never stored.

    Parameters
    ----------
    X : array or sparse matrix of shape (n_samples, n_features)
        Rows, float32 or float64.
    frequencies : ndarray of shape (n_frequencies, n_features)
        Frequencies, radians per unit of ``X``; same dtype as ``X``, or one that is
        converted where ``X`` is another library's array.
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
    if other_namespace(X) is not None:
        return _array_moments(X, frequencies, Y, amplitudes)
    feature_map = FourierMap(frequencies, amplitudes)
    Y = np.ascontiguousarray(Y, dtype=np.float64)
    if sparse.issparse(X):
        X = X.tocsr()
    return sum(
        map_slices(
            lambda rows: feature_map.moments(rows_of(X, rows), Y[rows]), X.shape[0]
        )
    )


def _array_moments(X, frequencies, Y, amplitudes):
    """`fourier_moments` for an array of another library; the result is NumPy's."""
    if amplitudes is not None:
        amplitudes = asarray_like(amplitudes, X)
    feature_map = ArrayFourierMap(asarray_like(frequencies, X), amplitudes)
    xp, Y = namespace_of(X), asarray_like(Y, X)
    shape = (feature_map.n_components, Y.shape[1])
    moments = xp.zeros(shape, dtype=wide_dtype(X), device=device(X))
    for block, Z in feature_blocks(feature_map, X):
        moments += xp.matrix_transpose(Z) @ Y[block, ...]
    return to_numpy(moments).astype(np.float64, copy=False)


def kernel_estimate(X, frequencies, weights=None, Y=None):
    r"""Kernel matrix that weighted frequencies give, negative weights included.

    Computes :math:`\frac1s \sum_i a_i \cos w_i^\top (x - y)` for all pairs of rows.

    Parameters
    ----------
    X : array of shape (n_samples_X, n_features)
        Rows.
    frequencies : array of shape (n_frequencies, n_features)
        Frequencies, radians per unit of ``X``.
    weights : array of shape (n_frequencies,), optional
        Weights :math:`a_i` of any sign; ones by default.
    Y : array of shape (n_samples_Y, n_features), optional
        Other rows; ``X`` by default.

    Returns
    -------
    K : ndarray of shape (n_samples_X, n_samples_Y)
        Equal to ``Z @ Z.T`` of the feature map where no weight is negative.

    Examples
    --------
    >>> import numpy as np
    >>> kernel_estimate(np.zeros((1, 1)), np.array([[1.0], [2.0]]), np.array([3.0, -1]))
    array([[1.]])
    """
    Z = fourier_features(X, frequencies)
    right = Z if Y is None else fourier_features(Y, frequencies)
    return (Z if weights is None else Z * np.tile(weights, 2)) @ right.T


class FourierMap:
    """The map with its frequencies and amplitudes bound, on the calling thread alone.

    What a pass over the data calls on each of its blocks; `fourier_features` and
    `fourier_moments` share its work out among threads.

    Parameters
    ----------
    frequencies : ndarray of shape (n_frequencies, n_features)
        Its dtype is that of the features; rows of another are converted, a block at a
        time. Or an object that stands for one and has a
        method ``projections(X, out=None)``, as `surff.draws.HadamardFrequencies`.
    amplitudes : ndarray of shape (n_frequencies,), optional
        Factors of the pairs.
    """

    def __init__(self, frequencies, amplitudes=None):
        self.frequencies = frequencies
        self.dtype = frequencies.dtype
        self.n_frequencies = frequencies.shape[0]
        self.n_components = 2 * self.n_frequencies
        self.amplitudes = amplitudes
        # The map's 1 / sqrt(s) is folded into the factors of the kernel.
        scale = 1.0 / math.sqrt(self.n_frequencies)
        factors = np.full(self.n_frequencies, scale, self.dtype)
        self._factors = factors if amplitudes is None else factors * amplitudes
        self._factors = self._factors.astype(self.dtype, copy=False)

    @functools.cached_property
    def _rows_of_weights(self):
        """Frequencies by feature, contiguous: no block transposes them anew."""
        return np.require(self.frequencies.T, requirements="CAWE")

    def _is_narrow(self, X):
        """Whether the kernels do the product with the frequencies themselves."""
        special = sparse.issparse(X) or hasattr(self.frequencies, "projections")
        return not special and X.shape[1] <= NARROW

    def _narrow_rows(self, X):
        """Yield row blocks, and their rows as the kernels take them."""
        for block in row_blocks(len(X), NARROW_BLOCK_ROWS):
            yield block, np.require(X[block], self.dtype, "CAWE")

    def _workspace(self, X):
        """Place for the projections of some rows."""
        n_rows = max(1, min(NARROW_ROWS, len(X)))
        return np.empty((n_rows, self.n_frequencies), self.dtype)

    def _projections(self, X):
        """Yield row blocks and their projections ``X[block] @ frequencies.T``."""
        size = block_rows(self.n_components, self.dtype)
        structured = hasattr(self.frequencies, "projections")
        if sparse.issparse(X):
            row_bytes = X.shape[1] * self.dtype.itemsize
            size = min(size, max(64, DENSE_BYTES // max(1, row_bytes)))
        P = np.empty((min(size, X.shape[0]), self.n_frequencies), self.dtype)
        for block in row_blocks(X.shape[0], size):
            rows = rows_of(X, block).astype(self.dtype, copy=False)
            if structured:
                yield block, self.frequencies.projections(rows, P[: rows.shape[0]])
                continue
            if sparse.issparse(rows):
                if rows.nnz <= DENSE_SHARE * rows.shape[0] * rows.shape[1]:
                    yield block, np.ascontiguousarray(rows @ self._rows_of_weights)
                    continue
                rows = rows.toarray()
            yield block, np.matmul(rows, self.frequencies.T, out=P[: len(rows)])

    def __call__(self, X, out=None):
        """Features of the rows, written to ``out`` if given; see `fourier_features`."""
        if out is None:
            out = np.empty((X.shape[0], self.n_components), self.dtype)
        if self._is_narrow(X):
            weights, P = self._rows_of_weights, self._workspace(X)
            for block, rows in self._narrow_rows(X):
                dense_features(rows, weights, self._factors, P, out[block])
            return out
        kernel = _MAP_KERNELS[self.dtype]
        for block, P in self._projections(X):
            kernel(P, self._factors, out[block])
        return out

    def moments(self, X, Y):
        """Moments with float64 targets ``Y``; see `fourier_moments`."""
        moments = np.zeros((Y.shape[1], self.n_components))
        workspace = np.empty((16, self.n_components), self.dtype)
        if self._is_narrow(X):
            weights, P = self._rows_of_weights, self._workspace(X)
            for block, rows in self._narrow_rows(X):
                dense_moments(
                    rows, weights, self._factors, P, Y[block], workspace, moments
                )
            return moments.T
        for block, P in self._projections(X):
            add_features_moments(P, self._factors, Y[block], workspace, moments)
        return moments.T

    def astype(self, dtype):
        """The same map computing in another floating-point type."""
        if self.dtype == dtype:
            return self
        return FourierMap(self.frequencies.astype(dtype), self.amplitudes)


class ArrayFourierMap:
    """`FourierMap` of another library's arrays, by their library on their device.

    Parameters
    ----------
    frequencies : array of shape (n_frequencies, n_features)
        Its dtype is that of the features.
    amplitudes : array of shape (n_frequencies,), optional
        Factors of the pairs.
    """

    def __init__(self, frequencies, amplitudes=None):
        self.frequencies, self.amplitudes = frequencies, amplitudes
        self.dtype = frequencies.dtype
        self.n_frequencies = frequencies.shape[0]
        self.n_components = 2 * self.n_frequencies

    def __call__(self, X, out=None):
        """Features of the rows, a new array; ``out`` is for NumPy alone."""
        X = namespace_of(X).astype(X, self.dtype, copy=False)
        return fourier_features(X, self.frequencies, self.amplitudes)

    def astype(self, dtype):
        """The same map computing in another floating-point type."""
        if self.dtype == dtype:
            return self
        xp, amplitudes = namespace_of(self.frequencies), self.amplitudes
        if amplitudes is not None:
            amplitudes = xp.astype(amplitudes, dtype)
        return ArrayFourierMap(xp.astype(self.frequencies, dtype), amplitudes)


class OddFourierMap:
    r"""A `FourierMap` whose last frequency has one column instead of two.

    In the place of its cosine stands
    :math:`\sqrt2\, a_s \cos(w_s^\top x + b) / \sqrt s`, in that of its sine nothing.
    With b uniform on :math:`[0, 2 \pi)` two such columns
    have the product :math:`a_s^2 \cos w_s^\top (x - x') / s` in the mean, so the kernel
    estimate stays unbiased.

    Parameters
    ----------
    pairs : FourierMap or ArrayFourierMap
        The map with a cosine and a sine for each frequency.
    phase : float
        Phase b in radians.
    """

    def __init__(self, pairs, phase):
        self.pairs, self.phase = pairs, phase
        self.dtype = pairs.dtype
        self.n_components = pairs.n_components - 1

    def _joined(self, Z, out):
        """Drop the last column, the last frequency's sine, into its cosine."""
        last = self.pairs.n_frequencies - 1
        out[...] = Z[:, :-1]
        # sqrt(2) cos(p + b) = sqrt(2) cos b cos p - sqrt(2) sin b sin p.
        out[:, last] *= math.sqrt(2.0) * math.cos(self.phase)
        out[:, last] -= math.sqrt(2.0) * math.sin(self.phase) * Z[:, -1]
        return out

    def __call__(self, X, out=None):
        """Features of the rows; see `FourierMap`."""
        Z = self.pairs(X)
        if out is None:
            xp, shape = namespace_of(Z), (X.shape[0], self.n_components)
            out = xp.empty(shape, dtype=self.dtype, device=device(Z))
        return self._joined(Z, out)

    def moments(self, X, Y):
        """Moments with float64 targets ``Y``; see `fourier_moments`."""
        moments = self.pairs.moments(X, Y).T
        return self._joined(moments, np.empty((len(moments), self.n_components))).T

    def astype(self, dtype):
        """The same map computing in another floating-point type."""
        if self.dtype == dtype:
            return self
        return OddFourierMap(self.pairs.astype(dtype), self.phase)
