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

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
import numpy.typing as npt
from array_api_compat import array_namespace, is_numpy_array
from scipy import sparse

from surff.backend import (
    NUMPY,
    Array,
    add_dense_moments,
    add_projected_moments,
    backend_of,
    block_rows,
    check_buffer,
    check_sparse,
    feature_blocks,
    map_rows,
    map_slices,
    row_blocks,
    rows_of,
    to_numpy,
    write_dense_features,
    write_features,
    write_sparse_features,
)

__all__ = [
    "NARROW_ROWS",
    "ArrayFourierMap",
    "FourierMap",
    "OddFourierMap",
    "coefficients_of_pairs",
    "fourier_features",
    "fourier_moments",
    "kernel_estimate",
    "scaled_frequencies",
]

#: Share of non-zero values above which a block of sparse rows is multiplied as a dense
#: one, where BLAS is faster.
DENSE_SHARE = 0.07

#: Bytes of a block of sparse rows made dense; the features next to it take a few more.
DENSE_BYTES = 16 * 2**20

#: Columns of dense rows up to which the compiled kernels project them themselves. The
#: product of wider rows is most of the work, and faster on a whole block.
NARROW = 128

#: Rows that the kernels project at a time: their projections stay in the second-level
#: cache.
NARROW_ROWS = 128

#: Rows of one call of a kernel, few enough that a keyboard interrupt need not wait.
NARROW_BLOCK_ROWS = 8192

#: Rows whose features `FourierMap.moments` holds at a time, few enough for the
#: first-level cache.
MOMENT_ROWS = 16

#: Sparse rows whose projections the kernel holds at a time, in the second-level cache
#: with the frequencies of their values.
SPARSE_ROWS = 16

#: Types that the kernels are compiled for.
FLOATS = (np.dtype(np.float64), np.dtype(np.float32))


def fourier_features(
    X: Array,
    frequencies: Array,
    amplitudes: Array | None = None,
    *,
    out: np.ndarray | None = None,
) -> Array:
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
        C-contiguous, writeable array of the dtype of the frequencies to write into;
        NumPy and sparse input only.

    Returns
    -------
    Z : array of shape (n_samples, 2 * n_frequencies)
        Cosines in the first half of the columns, sines in the second; dtype, namespace
        and device of ``X``.

    Raises
    ------
    ValueError
        Naming the argument whose shape, type or layout does not fit.

    Notes
    -----
    ``O(n_samples * n_frequencies * n_features)`` time. Besides ``Z`` one block of
    projections is held.

    Projections :math:`w^\top x` are rounded to the dtype of the frequencies. In float32
    the features are off by about :math:`6 \cdot 10^{-8} |w^\top x|`: 0.06 where it is
    1e6, and without a correct digit from 1e8 on. Columns with so large a range need
    scaling, or float64.

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
            check_one_each("amplitudes", amplitudes, frequencies.shape[0])
            scale = xp.concat([amplitudes, amplitudes]) * scale
        Z *= scale
        return Z

    check_sparse("X", X)
    feature_map = FourierMap(frequencies, amplitudes)
    feature_map.check_rows(X)
    if out is not None:
        feature_map.check_out(X, out)
    return map_rows(feature_map, X, out)


def fourier_moments(
    X: Array,
    frequencies: np.ndarray,
    Y: np.ndarray,
    amplitudes: np.ndarray | None = None,
) -> np.ndarray:
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

    Raises
    ------
    ValueError
        Naming the argument whose shape or type does not fit.

    Notes
    -----
    ``O(n_samples * n_frequencies * (n_features + n_targets))`` time; one block of
    projections and a few rows of features are held.
    """
    backend = backend_of(X)
    if not backend.is_numpy:
        return _array_moments(backend, X, frequencies, Y, amplitudes)
    check_sparse("X", X)
    feature_map = FourierMap(frequencies, amplitudes)
    feature_map.check_rows(X)
    Y = np.asarray(Y, dtype=np.float64, order="C")
    feature_map.check_targets(X, Y)
    if sparse.issparse(X):
        X = X.tocsr()
    return sum(
        map_slices(
            lambda rows: feature_map.moments(rows_of(X, rows, backend), Y[rows]),
            X.shape[0],
        )
    )


def _array_moments(backend, X, frequencies, Y, amplitudes):
    """`fourier_moments` for an array of another library; the result is NumPy's."""
    if amplitudes is not None:
        amplitudes = backend.asarray(amplitudes, X.dtype)
    feature_map = ArrayFourierMap(backend.asarray(frequencies, X.dtype), amplitudes)
    xp, Y = backend.xp, backend.asarray(Y, X.dtype)
    shape = (feature_map.n_components, Y.shape[1])
    moments = backend.zeros(shape, backend.wide_dtype)
    for block, Z in feature_blocks(feature_map, X):
        moments += xp.matrix_transpose(Z) @ Y[block, ...]
    return to_numpy(moments).astype(np.float64, copy=False)


def kernel_estimate(
    X: Array,
    frequencies: Array,
    weights: Array | None = None,
    Y: Array | None = None,
) -> np.ndarray:
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
    if weights is not None:
        check_one_each("weights", weights, frequencies.shape[0])
    if Y is not None and (np.ndim(Y) != 2 or Y.shape[1] != frequencies.shape[1]):
        raise ValueError(
            f"Y must have shape (n_samples_Y, {frequencies.shape[1]}), got "
            f"{np.shape(Y)}."
        )
    Z = fourier_features(X, frequencies)
    right = Z if Y is None else fourier_features(Y, frequencies)
    return (Z if weights is None else Z * np.tile(weights, 2)) @ right.T


def check_one_each(name: str, values: Array, n_frequencies: int) -> None:
    """Refuse factors that are not one per frequency."""
    shape = np.shape(values) if isinstance(values, list) else tuple(values.shape)
    if shape != (n_frequencies,):
        raise ValueError(
            f"{name} must have shape ({n_frequencies},), one per frequency, got "
            f"{shape}."
        )


def scaled_frequencies(
    scale: npt.ArrayLike, frequencies: Array, dtype: npt.DTypeLike
) -> Array:
    """Frequencies of a bandwidth, in the type of the features.

    Parameters
    ----------
    scale : float or ndarray of shape (n_features,)
        ``measure.scale(gamma)``, see `surff.kernels.SpectralMeasure`.
    frequencies : ndarray of shape (n_frequencies, n_features)
        Frequencies for gamma = 1, or an object that stands for them.
    dtype : {float64, float32}
        Type of the features.

    Returns
    -------
    ndarray of shape (n_frequencies, n_features), or an object that stands for them

    Raises
    ------
    ValueError
        If a frequency is not finite in that type: naming gamma.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = (scale * frequencies).astype(dtype, copy=False)
    factors = getattr(scaled, "column_scale", scaled)
    if hasattr(scaled, "column_scale"):
        with np.errstate(over="ignore"):
            factors = factors.astype(dtype)
    if not np.isfinite(factors).all():
        raise ValueError(
            "gamma, or the draw, gives frequencies that are not finite in "
            f"{np.dtype(dtype)}: the largest factor is {np.max(scale):.3g}; use a "
            "smaller gamma, scale the columns of X, or fit in float64."
        )
    return scaled


def projected(
    rows: Any, weights: np.ndarray, out: np.ndarray | None = None
) -> np.ndarray:
    """Product of rows and frequencies; those that overflow are refused later."""
    with np.errstate(over="ignore", invalid="ignore"):
        return rows @ weights if out is None else np.matmul(rows, weights, out=out)


def dense_rows(X: Any, dtype: np.dtype) -> int:
    """Sparse rows that may be made dense at a time."""
    return max(64, DENSE_BYTES // max(1, X.shape[1] * dtype.itemsize))


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

    Raises
    ------
    ValueError
        Naming what compiled code could not take: here, and for rows, targets and
        ``out`` before each pass.

    Notes
    -----
    Projections are rounded to the dtype; see `fourier_features` for what that costs.
    """

    #: Whose arrays the map takes; passes over rows ask the map, once, and not the rows.
    backend = NUMPY

    def __init__(
        self, frequencies: np.ndarray, amplitudes: np.ndarray | None = None
    ) -> None:
        stands_for_array = hasattr(frequencies, "projections")
        shape = tuple(getattr(frequencies, "shape", ()))
        if (
            not (isinstance(frequencies, np.ndarray) or stands_for_array)
            or len(shape) != 2
            or shape[0] < 1
            or frequencies.dtype not in FLOATS
        ):
            raise ValueError(
                "frequencies must be an array of shape (n_frequencies, n_features), "
                "float64 or float32, with at least one row, got "
                f"{type(frequencies).__name__} of shape {shape} and dtype "
                f"{getattr(frequencies, 'dtype', None)}."
            )
        self.frequencies = frequencies
        self.dtype = frequencies.dtype
        self.n_frequencies, self.n_features = frequencies.shape
        self.n_components = 2 * self.n_frequencies
        self.amplitudes = amplitudes
        # The map's 1 / sqrt(s) is folded into the factors of the kernel.
        scale = 1.0 / math.sqrt(self.n_frequencies)
        factors = np.full(self.n_frequencies, scale, self.dtype)
        if amplitudes is not None:
            check_one_each("amplitudes", amplitudes, self.n_frequencies)
            with np.errstate(over="ignore"):
                factors = (factors * amplitudes).astype(self.dtype, copy=False)
            if not np.isfinite(factors).all():
                raise ValueError(
                    f"amplitudes must be finite in {self.dtype}, got a largest one of "
                    f"{np.max(np.abs(amplitudes)):.3g}."
                )
        self._factors = factors

    def __getstate__(self):
        state = vars(self).copy()
        state.pop("_rows_of_weights", None)  # the frequencies once more
        return state

    def check_rows(self, X: np.ndarray) -> None:
        """Refuse rows of another width than the frequencies have."""
        if np.ndim(X) != 2 or X.shape[1] != self.n_features:
            raise ValueError(
                f"X must have shape (n_samples, {self.n_features}), as the frequencies "
                f"have columns, got {np.shape(X)}."
            )

    def check_out(self, X: np.ndarray, out: np.ndarray) -> None:
        """Refuse an array that the features of these rows cannot be written into."""
        shape = (X.shape[0], self.n_components)
        check_buffer("out", out, shape, self.dtype, written=True)

    def check_targets(self, X: np.ndarray, Y: np.ndarray) -> None:
        """Refuse targets that are not one row for each row of ``X``."""
        if np.ndim(Y) != 2 or len(Y) != X.shape[0]:
            raise ValueError(
                f"Y must have shape ({X.shape[0]}, n_targets), a row for each row of "
                f"X, got {np.shape(Y)}."
            )

    @functools.cached_property
    def _rows_of_weights(self):
        """Frequencies by feature, contiguous: no block transposes them again."""
        return np.require(self.frequencies.T, requirements=list("CAWE"))

    def _is_narrow(self, X):
        """Whether the kernels do the product with the frequencies themselves."""
        special = sparse.issparse(X) or hasattr(self.frequencies, "projections")
        return not special and X.shape[1] <= NARROW

    def _narrow_rows(self, X):
        """Yield row blocks, and their rows as the kernels take them."""
        for block in row_blocks(len(X), NARROW_BLOCK_ROWS):
            yield block, np.require(X[block], self.dtype, list("CAWE"))

    def _workspace(self, X):
        """Place for the projections of some rows."""
        n_rows = max(1, min(NARROW_ROWS, len(X)))
        return np.empty((n_rows, self.n_frequencies), self.dtype)

    def _sparse_blocks(self, X):
        """Yield row blocks, and their rows, dense where that is faster."""
        size = block_rows(self.n_components, self.dtype)
        for block in row_blocks(X.shape[0], min(size, dense_rows(X, self.dtype))):
            rows = rows_of(X, block, NUMPY).astype(self.dtype, copy=False)
            is_thin = rows.nnz <= DENSE_SHARE * rows.shape[0] * rows.shape[1]
            yield block, rows if is_thin else rows.toarray()

    def _write_sparse(self, X, out):
        """Write the features of sparse rows into ``out``."""
        weights, P = self._rows_of_weights, None
        for block, rows in self._sparse_blocks(X):
            if sparse.issparse(rows):
                if P is None:
                    P = np.empty((SPARSE_ROWS, self.n_frequencies), self.dtype)
                write_sparse_features(rows, weights, self._factors, P, out[block])
            else:
                write_features(projected(rows, weights), self._factors, out[block])
        return out

    def _projections(self, X):
        """Yield row blocks and their projections ``X[block] @ frequencies.T``."""
        structured = hasattr(self.frequencies, "projections")
        if sparse.issparse(X) and not structured:
            for block, rows in self._sparse_blocks(X):
                P = projected(rows, self._rows_of_weights)
                yield block, np.ascontiguousarray(P)
            return
        size = block_rows(self.n_components, self.dtype)
        if sparse.issparse(X):
            size = min(size, dense_rows(X, self.dtype))
        P = np.empty((min(size, X.shape[0]), self.n_frequencies), self.dtype)
        for block in row_blocks(X.shape[0], size):
            rows = rows_of(X, block, NUMPY).astype(self.dtype, copy=False)
            if structured:
                yield block, self.frequencies.projections(rows, P[: rows.shape[0]])
            else:
                yield block, projected(rows, self.frequencies.T, P[: len(rows)])

    def __call__(self, X: Array, out: np.ndarray | None = None) -> Array:
        """Features of the rows, written to ``out`` if given; see `fourier_features`."""
        self.check_rows(X)
        if out is None:
            out = np.empty((X.shape[0], self.n_components), self.dtype)
        self.check_out(X, out)
        if self._is_narrow(X):
            weights, P = self._rows_of_weights, self._workspace(X)
            for block, rows in self._narrow_rows(X):
                write_dense_features(rows, weights, self._factors, P, out[block])
            return out
        if sparse.issparse(X) and not hasattr(self.frequencies, "projections"):
            return self._write_sparse(X, out)
        for block, P in self._projections(X):
            write_features(P, self._factors, out[block])
        return out

    def moments(self, X: Array, Y: np.ndarray) -> np.ndarray:
        """Moments with float64 targets ``Y``; see `fourier_moments`."""
        self.check_rows(X)
        self.check_targets(X, Y)
        moments = np.zeros((Y.shape[1], self.n_components))
        workspace = np.empty((MOMENT_ROWS, self.n_components), self.dtype)
        if self._is_narrow(X):
            weights, P = self._rows_of_weights, self._workspace(X)
            for block, rows in self._narrow_rows(X):
                add_dense_moments(
                    rows, weights, self._factors, P, Y[block], workspace, moments
                )
            return moments.T
        for block, P in self._projections(X):
            add_projected_moments(P, self._factors, Y[block], workspace, moments)
        return moments.T

    def astype(self, dtype: Any) -> FourierMap:
        """Return the same map computing in another floating-point type."""
        if self.dtype == dtype:
            return self
        return FourierMap(
            scaled_frequencies(1.0, self.frequencies, dtype), self.amplitudes
        )


class ArrayFourierMap:
    """`FourierMap` of another library's arrays, by their library on their device.

    Parameters
    ----------
    frequencies : array of shape (n_frequencies, n_features)
        Its dtype is that of the features.
    amplitudes : array of shape (n_frequencies,), optional
        Factors of the pairs.
    """

    def __init__(self, frequencies: Array, amplitudes: Array | None = None) -> None:
        self.frequencies, self.amplitudes = frequencies, amplitudes
        self.backend = backend_of(frequencies)
        self.dtype = frequencies.dtype
        self.n_frequencies = frequencies.shape[0]
        self.n_components = 2 * self.n_frequencies

    def __call__(self, X: Array, out: np.ndarray | None = None) -> Array:
        """Features of the rows, a new array; ``out`` is for NumPy alone."""
        del out
        X = self.backend.xp.astype(X, self.dtype, copy=False)
        return fourier_features(X, self.frequencies, self.amplitudes)

    def astype(self, dtype: Any) -> ArrayFourierMap:
        """Return the same map computing in another floating-point type."""
        if self.dtype == dtype:
            return self
        xp, amplitudes = self.backend.xp, self.amplitudes
        if amplitudes is not None:
            amplitudes = xp.astype(amplitudes, dtype)
        return ArrayFourierMap(xp.astype(self.frequencies, dtype), amplitudes)


def coefficients_of_pairs(coef: np.ndarray, phase: float | None) -> np.ndarray:
    """Coefficients of all cosines, then of all sines, of a map of pairs or an odd one.

    Parameters
    ----------
    coef : ndarray of shape (m, k)
    phase : float or None
        That of an `OddFourierMap`, whose last frequency has one column; None of pairs.

    Returns
    -------
    coef : ndarray of shape (2 * n_frequencies, k)
    """
    if phase is None:
        return coef
    s = (len(coef) + 1) // 2
    last = math.sqrt(2.0) * coef[s - 1]
    coef = np.vstack([coef, -math.sin(phase) * last])
    coef[s - 1] = math.cos(phase) * last
    return coef


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

    def __init__(self, pairs: FourierMap | ArrayFourierMap, phase: float) -> None:
        self.pairs, self.phase = pairs, phase
        self.backend = pairs.backend
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

    def __call__(self, X: Array, out: np.ndarray | None = None) -> Array:
        """Features of the rows; see `FourierMap`."""
        Z = self.pairs(X)
        if out is None:
            out = self.backend.empty((X.shape[0], self.n_components), self.dtype)
        return self._joined(Z, out)

    def moments(self, X: Array, Y: np.ndarray) -> np.ndarray:
        """Moments with float64 targets ``Y``; see `fourier_moments`."""
        moments = self.pairs.moments(X, Y).T
        return self._joined(moments, np.empty((len(moments), self.n_components))).T

    def astype(self, dtype: Any) -> OddFourierMap:
        """Return the same map computing in another floating-point type."""
        if self.dtype == dtype:
            return self
        return OddFourierMap(self.pairs.astype(dtype), self.phase)
