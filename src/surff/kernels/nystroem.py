r"""Nystrom: kernel blocks, the kernel matrix entry by entry, and the feature map.

With landmarks ``C``, a few rows of the data or other points, the map is

.. math:: \varphi(x) = k(x, C)\, K_{CC}^{+1/2},
          \qquad \varphi(x)^\top \varphi(x') = k(x, C)\, K_{CC}^{+}\, k(C, x').

It is exact on the landmarks, and what it leaves of the kernel matrix,
:math:`K - \tilde K`, is positive semi-definite and shrinks as landmarks are added.

A product with the m by m normalization :math:`N = K_{CC}^{+1/2}` costs more than all
else, and who needs no features can do without it. A prediction is
:math:`\varphi(x)^\top \beta = k(x, C) (N \beta)` (`NystroemMap.folded`), and with
:math:`\Phi = k(X, C)` the Gram matrix is :math:`Z^\top Z = N (\Phi^\top \Phi) N`.
Summed so, the large eigenvalues of :math:`\Phi^\top \Phi` leave rounding errors of
:math:`\epsilon \|\Phi\|^2` that N amplifies where it is largest, at the small ones. So
the few directions V that most of :math:`\Phi` lies in are split off before
(`NystroemMap.factored`):

.. math:: Z = W B, \qquad W = [\Phi V,\; \Phi - \Phi V V^\top], \qquad
          B = \begin{bmatrix} V^\top N \\ N \end{bmatrix} .

What is left has small entries, and so have its products. On data of condition 2e12 the
relative error of the Gram matrix falls from 1e-5 to 3e-10 by 16 directions.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import linalg, sparse
from sklearn.metrics.pairwise import pairwise_kernels

from surff.backend import (
    NUMPY,
    block_rows,
    check_sparse,
    row_blocks,
    write_gaussian,
)
from surff.kernels.spectral import Gaussian, Laplace, ScaleMixture, SpectralMeasure

__all__ = [
    "NEGATIVE_SHARE",
    "Kernel",
    "KernelMatrix",
    "LandmarkMap",
    "NystroemMap",
    "PairwiseKernel",
    "PrecomputedKernel",
    "SpectralKernel",
    "inverse_root",
    "kernel_block_rows",
]

#: Columns up to which products of a sparse block of rows are faster dense.
DENSE_COLUMNS = 256

#: Share of non-zeros from which products of a wider block are faster dense, too.
DENSE_SHARE = 0.1

#: Directions that are split off kernel values before their Gram matrix is summed; of
#: rows with a normalization of condition 1e12 more of them change nothing.
N_DIRECTIONS = 16

#: Rows of kernel values multiplied at a time: they stay in the second-level cache.
GAUSSIAN_ROWS = 128

#: Negative eigenvalues up to this share of the largest one are taken for rounding.
NEGATIVE_SHARE = 1e-4


class Kernel(ABC):
    """What gives blocks of kernel values."""

    def select(self, X: Any, indices: np.ndarray) -> Any:
        """Return what stands for rows of ``X`` as landmarks."""
        return X[indices]

    @abstractmethod
    def __call__(self, X: Any, landmarks: Any) -> np.ndarray:
        """Kernel of rows and landmarks, shape (n_rows, n_landmarks)."""

    @abstractmethod
    def diagonal(self, X: Any) -> np.ndarray:
        """Values of k(x, x)."""


def inverse_root(K: np.ndarray, eps: float | None = None) -> tuple[np.ndarray, float]:
    r"""Symmetric root :math:`K^{+1/2}` of the pseudo-inverse of a kernel matrix.

    Parameters
    ----------
    K : ndarray of shape (m, m)
        Symmetric positive semi-definite up to rounding.
    eps : float, optional
        Relative rounding of the entries; the machine epsilon of the dtype of ``K`` by
        default.

    Returns
    -------
    root : ndarray of shape (m, m), float64
        Symmetric; :math:`K\, \mathrm{root}^2 K = K`.
    smallest : float
        The smallest eigenvalue of ``K`` over the largest, negative where rounding or
        the kernel makes it so; 0 for a matrix of zeros.

    Notes
    -----
    ``O(m^3)`` time, in float64. Eigenvalues are cut up to what rounding may have made
    them: ``m`` times the machine epsilon of float64 times the largest eigenvalue, by
    this decomposition, and ``m * eps`` times the largest entry, by the entries. A
    negative eigenvalue shows how large rounding is, and cuts the positive ones up to
    its size, too, or up to 1e-4 of the largest.

    Examples
    --------
    >>> import numpy as np
    >>> root, smallest = inverse_root(np.diag([4.0, 1.0, -1e-20]))
    >>> root
    array([[0.5, 0. , 0. ],
           [0. , 1. , 0. ],
           [0. , 0. , 0. ]])
    """
    eps = np.finfo(K.dtype).eps if eps is None else eps
    K = finite_values(K.astype(np.float64))
    driver = "evd" if len(K) > 1 else None  # SciPy 1.12 has no room for one row
    eigenvalues, V = linalg.eigh(0.5 * (K + K.T), driver=driver)
    largest = eigenvalues[-1]
    if not largest > 0:
        return np.zeros_like(K), 0.0
    cut = max(
        len(K) * np.finfo(np.float64).eps * largest,
        len(K) * eps * abs(K).max(),
        min(-eigenvalues[0], NEGATIVE_SHARE * largest),
    )
    kept = eigenvalues > cut
    # A product with its own transpose takes half the operations, and is symmetric.
    half = V[:, kept] / eigenvalues[kept] ** 0.25
    return half @ half.T, float(eigenvalues[0] / largest)


class SpectralKernel(Kernel):
    """Kernel blocks of a shift-invariant kernel of `surff.kernels.spectral`.

    Parameters
    ----------
    measure : SpectralMeasure
        Its ``kernel(X, Y, gamma)`` is called on dense blocks.
    gamma : float or ndarray of shape (n_features,)
        Bandwidth, > 0.

    Notes
    -----
    Values are computed in float64. Distances of sparse rows come from their products,
    and the kernel of the distances, where the kernel is isotropic; the Laplace kernel
    has scikit-learn's sparse code. Other kernels make a block of rows and the landmarks
    dense.
    """

    def __init__(self, measure: SpectralMeasure, gamma: npt.ArrayLike) -> None:
        self.measure = measure
        self.gamma = gamma

    def __call__(self, X: Any, landmarks: Any) -> np.ndarray:
        """Kernel of rows and landmarks, shape (n_rows, n_landmarks), float64."""
        with np.errstate(over="ignore", invalid="ignore"):
            return finite_values(self._values(X, landmarks))

    def _values(self, X, landmarks):
        if not (sparse.issparse(X) or sparse.issparse(landmarks)):
            # The measure centres both on the mean of its first argument. With the
            # landmarks first, a row's values do not depend on the other rows.
            return self.measure.kernel(landmarks, X, gamma=self.gamma).T
        if isinstance(self.measure, ScaleMixture):
            r = _distances(self._scaled(X), self._scaled(landmarks))
            # The same function of r in every dimension, so in one.
            values = self.measure.unit_kernel(r.reshape(-1, 1), np.zeros((1, 1)))
            return values.reshape(r.shape)
        if isinstance(self.measure, Laplace):
            return self.measure.unit_kernel(self._scaled(X), self._scaled(landmarks))
        return self._values(_dense(X), _dense(landmarks))

    def _scaled(self, X):
        factor = np.asarray(self.measure.scale(self.gamma), dtype=np.float64)
        if sparse.issparse(X):
            return sparse.csr_array(X.astype(np.float64).multiply(factor))
        return X.astype(np.float64, copy=False) * factor

    def diagonal(self, X: Any) -> np.ndarray:
        """Values of k(x, x), ones."""
        return np.ones(X.shape[0])


def finite_values(values: np.ndarray) -> np.ndarray:
    """Return kernel values, or refuse those that are not finite."""
    if not np.isfinite(values).all():
        raise ValueError(
            "the kernel of rows of X must be finite, got values that overflow; scale "
            "the columns of X or choose a smaller gamma."
        )
    return values


def _dense(X):
    return X.toarray() if sparse.issparse(X) else X


def _distances(X, Y):
    """Euclidean distances of rows, of which at least one set is sparse."""
    x, y = (np.asarray((A * A).sum(axis=1)).ravel()[:, None] for A in (X, Y))
    products = X @ Y.T
    squares = x + y.T
    # What rounding leaves of equal rows would be a distance of 1e-8.
    rounding = 4 * np.finfo(np.float64).eps * squares
    squares -= 2.0 * _dense(products)
    return np.sqrt(np.where(squares > rounding, squares, 0.0))


class PairwiseKernel(Kernel):
    """Kernel blocks of a scikit-learn kernel or a function of two rows.

    Parameters
    ----------
    metric : str or callable
        See `sklearn.metrics.pairwise.pairwise_kernels`. A callable is a function of two
        rows or a kernel of `sklearn.gaussian_process.kernels`; threads call it at the
        same time.
    params : dict
        Arguments of the kernel.
    """

    def __init__(self, metric: str | Callable, params: dict[str, Any]) -> None:
        self.metric = metric
        self.params = params

    def __call__(self, X: Any, landmarks: Any) -> np.ndarray:
        """Kernel of rows and landmarks, shape (n_rows, n_landmarks)."""
        # In float64 whatever the rows have: the map amplifies rounding of its entries.
        X = X.astype(np.float64, copy=False)
        landmarks = landmarks.astype(np.float64, copy=False)
        with np.errstate(over="ignore", invalid="ignore"):
            values = pairwise_kernels(
                X, landmarks, metric=self.metric, n_jobs=1, filter_params=True,
                **self.params,
            )  # fmt: skip
        return finite_values(values)

    def diagonal(self, X: Any) -> np.ndarray:
        """Values of k(x, x)."""
        size = 1 if callable(self.metric) else 32
        values = np.empty(X.shape[0])
        for block in row_blocks(len(values), size):
            values[block] = np.diagonal(self(X[block], X[block]))
        return values


class PrecomputedKernel(Kernel):
    """Kernel blocks out of rows of a kernel matrix; landmarks are column numbers."""

    def select(self, X: Any, indices: np.ndarray) -> Any:
        """Return what stands for rows of ``X`` as landmarks."""
        del X  # column numbers stand for landmarks
        return indices

    def __call__(self, X: Any, landmarks: Any) -> np.ndarray:
        """Kernel of rows and landmarks, shape (n_rows, n_landmarks)."""
        return _dense(X[:, landmarks])

    def diagonal(self, X: Any) -> np.ndarray:
        """Values of k(x, x)."""
        return np.asarray(X.diagonal(), dtype=np.float64)


class BoundGaussian:
    """Gaussian kernel values of dense rows and landmarks, by the compiled kernel.

    Parameters
    ----------
    gamma : float or ndarray of shape (n_features,)
        Bandwidth, > 0.
    landmarks : ndarray of shape (n_landmarks, n_features)
        Their mean is taken off them and off the rows, which changes no value and keeps
        squared distances accurate.
    """

    def __init__(self, gamma: npt.ArrayLike, landmarks: np.ndarray) -> None:
        landmarks = landmarks.astype(np.float64, copy=False)
        n_features = landmarks.shape[1]
        self.centre = landmarks.mean(axis=0)
        scale = np.asarray(Gaussian().scale(gamma), dtype=np.float64)
        self.factors = np.ascontiguousarray(np.broadcast_to(scale, (n_features,)))
        points = (landmarks - self.centre) * self.factors
        self.squares = np.einsum("ij,ij->i", points, points)
        self.points = np.ascontiguousarray(points.T)

    def __call__(self, X: np.ndarray, out: np.ndarray) -> None:
        """Write the values of some rows into ``out``, float64 and C-contiguous."""
        X = np.require(X, np.float64, "CA")
        n_rows = max(1, min(GAUSSIAN_ROWS, len(X)))
        rows = np.empty((n_rows, X.shape[1]))
        points, squares = self.points, self.squares
        total = write_gaussian(X, self.centre, self.factors, points, squares, rows, out)
        if not math.isfinite(total):  # distances were differences of infinities
            finite_values(np.array([total]))


class LandmarkMap:
    r"""Kernel values :math:`k(x, C)` of rows, what `NystroemMap` is linear in.

    Parameters
    ----------
    kernel : kernel object of this module
        ``kernel(X, landmarks)`` gives a block of kernel values.
    landmarks : ndarray or CSR matrix of shape (n_landmarks, n_features)
        As ``kernel`` takes them.
    directions : ndarray of shape (n_landmarks, q), optional
        Orthonormal directions V. With them the columns are
        :math:`[\Phi V, \Phi - \Phi V V^\top]`, those of the module's W.
    """

    #: Whose arrays the map takes; see `FourierMap`.
    backend = NUMPY

    #: Values are float64 whatever is asked for: what they are multiplied with amplifies
    #: their rounding.
    dtype = np.dtype(np.float64)

    def __init__(
        self, kernel: Kernel, landmarks: Any, directions: np.ndarray | None = None
    ) -> None:
        self.kernel, self.landmarks = kernel, landmarks
        self.directions = directions
        self.n_landmarks = landmarks.shape[0]
        self.n_components = self.n_landmarks
        if directions is not None:
            self.n_components += directions.shape[1]
        spectral = isinstance(kernel, SpectralKernel)
        gaussian = spectral and type(kernel.measure) is Gaussian
        self._bound = None
        if gaussian and not sparse.issparse(landmarks):
            self._bound = BoundGaussian(kernel.gamma, landmarks)

    def __reduce__(self):
        return type(self), (self.kernel, self.landmarks, self.directions)

    def _write(self, X, out):
        """Kernel values of a block of rows, in the form that products are fastest with.

        A row's values do not depend on the other rows of the block.
        """
        X = efficient(X)
        if self._bound is None or sparse.issparse(X):
            out[...] = self.kernel(X, self.landmarks)
        else:
            self._bound(X, out)

    def __call__(self, X: Any, out: np.ndarray | None = None) -> np.ndarray:
        """Kernel values of the rows, float64, written to ``out`` if given."""
        n_rows = X.shape[0]
        if out is None:
            out = np.empty((n_rows, self.n_components))
        if self.directions is not None:
            return self._write_split(X, out)
        for block in row_blocks(n_rows, kernel_block_rows(self.n_components, X)):
            self._write(X[block], out[block])
        return out

    def _write_split(self, X, out):
        """Write the values along the directions, and what is left of them."""
        n_rows, V = X.shape[0], self.directions
        q, size = V.shape[1], min(GAUSSIAN_ROWS, n_rows)
        # Few rows, and the same memory for all of them: it stays in the cache.
        values, along_rows = np.empty((2, size, self.n_landmarks))
        coordinates = np.empty((size, q))
        for block in row_blocks(n_rows, max(1, size)):
            stop = block.stop - block.start
            phi, c, along = values[:stop], coordinates[:stop], along_rows[:stop]
            self._write(X[block], phi)
            np.matmul(phi, V, out=c)
            np.matmul(c, V.T, out=along)
            out[block, :q] = c
            np.subtract(phi, along, out=out[block, q:])
        return out

    def astype(self, dtype: npt.DTypeLike) -> LandmarkMap:
        """Return the map itself, which is float64 always."""
        del dtype
        return self


class NystroemMap:
    """The map with its landmarks and normalization bound, on the calling thread alone.

    What a pass over the data calls on each of its blocks; as
    `surff.kernels.FourierMap`.

    Parameters
    ----------
    kernel : kernel object of this module
        ``kernel(X, landmarks)`` gives a block of kernel values.
    landmarks : ndarray or CSR matrix of shape (n_landmarks, n_features)
        As ``kernel`` takes them.
    normalization : ndarray of shape (n_landmarks, n_landmarks)
        :math:`K_{CC}^{+1/2}`, float64.
    dtype : dtype
        Of the features. A block is computed in float64: the normalization amplifies
        rounding.
    """

    #: Whose arrays the map takes; see `FourierMap`.
    backend = NUMPY

    def __init__(
        self,
        kernel: Kernel,
        landmarks: Any,
        normalization: np.ndarray,
        dtype: npt.DTypeLike,
    ) -> None:
        check_sparse("landmarks", landmarks)
        self.kernel = kernel
        self.landmarks = efficient(landmarks)
        self.values = LandmarkMap(kernel, self.landmarks)
        self.normalization = normalization
        self.n_components = normalization.shape[1]
        self.dtype = np.dtype(dtype)

    def __call__(self, X: Any, out: np.ndarray | None = None) -> np.ndarray:
        """Features of the rows, written to ``out`` if given."""
        if out is None:
            out = np.empty((X.shape[0], self.n_components), self.dtype)
        # Kernels hold blocks of rows and of landmarks, in float64.
        for block in row_blocks(X.shape[0], kernel_block_rows(self.n_components, X)):
            with np.errstate(over="ignore", invalid="ignore"):
                out[block] = self.values(X[block]) @ self.normalization
            finite_values(out[block])
        return out

    def folded(self, coef: np.ndarray) -> tuple[LandmarkMap, np.ndarray]:
        """Map and coefficients that give the same predictions for less.

        Parameters
        ----------
        coef : ndarray of shape (n_components, k)
            Coefficients of the features.

        Returns
        -------
        values : LandmarkMap
        coef : ndarray of shape (n_landmarks, max(k, 2)), float64
            ``normalization @ coef``; a single column has one of zeros next to it. The
            last bit of a product with one column depends on where BLAS finds its
            memory, and so on the thread; that of a product with two does not.
        """
        coef = coef.astype(np.float64, copy=False)
        if coef.shape[1] == 1:
            coef = np.hstack([coef, np.zeros_like(coef)])
        return self.values, self.normalization @ coef

    def factored(self, X: Any) -> tuple[LandmarkMap, np.ndarray]:
        """Map and matrix whose product is this map; see the module's formula.

        Parameters
        ----------
        X : ndarray or CSR matrix of shape (n_rows, n_features)
            A hundred rows or so of the data; their kernel values say what directions
            most of all rows' lie in.

        Returns
        -------
        values : LandmarkMap
            With n_components + q columns W, float64.
        basis : ndarray of shape (n_components + q, n_components)
            B: the features are W B.
        """
        V = leading_directions(self.values(X), N_DIRECTIONS)
        values = LandmarkMap(self.kernel, self.landmarks, V)
        return values, np.vstack([V.T @ self.normalization, self.normalization])

    def astype(self, dtype: npt.DTypeLike) -> NystroemMap:
        """Return the same map giving another floating-point type."""
        if self.dtype == dtype:
            return self
        return NystroemMap(self.kernel, self.landmarks, self.normalization, dtype)


def leading_directions(values: np.ndarray, n_directions: int) -> np.ndarray:
    """Orthonormal directions of the largest singular values of some rows.

    Parameters
    ----------
    values : ndarray of shape (n_rows, m)
        Rows.
    n_directions : int
        Directions, at most; there are no more than rows or columns.

    Returns
    -------
    V : ndarray of shape (m, q)
    """
    _, U = linalg.eigh(values @ values.T)
    return np.linalg.qr(values.T @ U[:, ::-1][:, :n_directions])[0]


def kernel_block_rows(n_columns: int, X: Any) -> int:
    """Rows of a block: of ``n_columns`` kernel values, and of the features of ``X``."""
    return block_rows(max(n_columns, X.shape[1]), np.float64)


def efficient(X: Any) -> Any:
    """Return a block of rows in the form that products are fastest with."""
    if not sparse.issparse(X):
        return X
    is_wide = X.shape[1] > DENSE_COLUMNS
    is_thin = X.nnz <= DENSE_SHARE * X.shape[0] * X.shape[1]
    return X if is_wide and is_thin else X.toarray()


class KernelMatrix:
    r"""The weighted kernel matrix :math:`W^{1/2} K W^{1/2}` of rows, entry by entry.

    A weight w of a row acts as the row repeated w times: the ridge leverage and the
    residual diagonal of the weighted matrix are the sums over the repetitions.

    Parameters
    ----------
    kernel : kernel object of this module
        Gives blocks of kernel values.
    X : ndarray or CSR matrix of shape (n_samples, n_features)
        Rows.
    sample_weight : ndarray of shape (n_samples,), optional
        Row weights, >= 0; ones by default.

    Attributes
    ----------
    n_samples : int
        Rows, and columns, of the matrix.
    sample_weight : ndarray of shape (n_samples,)
        Row weights, float64.
    eps : float
        Relative rounding of the entries.
    """

    def __init__(
        self, kernel: Kernel, X: Any, sample_weight: np.ndarray | None = None
    ) -> None:
        self.kernel = kernel
        self.X = X
        self.n_samples = X.shape[0]
        if sample_weight is None:
            sample_weight = np.ones(self.n_samples)
            self._roots = None
        else:
            self._roots = np.sqrt(sample_weight, dtype=np.float64)
        self.sample_weight = np.asarray(sample_weight, dtype=np.float64)
        precomputed = isinstance(kernel, PrecomputedKernel)
        self.eps = float(np.finfo(X.dtype if precomputed else np.float64).eps)

    def diagonal(self) -> np.ndarray:
        """Diagonal, shape (n_samples,)."""
        return finite_values(self.sample_weight * self.kernel.diagonal(self.X))

    def block(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Entries of some rows and columns, arrays of numbers, in float64."""
        entries = self.column_blocks(columns)
        values = np.empty((len(rows), len(columns)))
        for part in row_blocks(len(rows), kernel_block_rows(len(columns), self.X)):
            values[part] = entries(rows[part])
        return finite_values(values)

    def column_blocks(
        self, columns: np.ndarray
    ) -> Callable[[slice | np.ndarray], np.ndarray]:
        """Function from rows, a slice or numbers, to their entries in ``columns``."""
        landmarks = efficient(self.kernel.select(self.X, columns))

        def entries(rows):
            values = self.kernel(efficient(self.X[rows]), landmarks)
            if self._roots is None:
                return values
            return values * self._roots[rows, None] * self._roots[columns]

        return entries
