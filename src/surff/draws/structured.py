r"""Structured frequencies: products of Hadamard matrices and random signs.

A block of p frequencies, p the smallest power of two >= n_features and >= 32, is

.. math:: W = \tfrac{1}{p^{3/2}} S\, H D_1 H D_2 H D_3,

cut to its first ``n_features`` columns: H the Hadamard matrix of entries 1 and -1,
:math:`D_k` random signs, S independent norms. W is never formed: projections cost
``O(log p)`` per value by the fast Walsh-Hadamard transform, not ``O(n_features)``.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.base import BaseEstimator

from surff.backend import check_signs, write_hadamard_projections
from surff.kernels import SpectralMeasure

__all__ = ["HadamardFrequencies", "StructuredOrthogonal"]

#: Smallest block. The products of Hadamard matrices of size 4 or 8 have so few
#: directions that kernel values come out wrong by 0.5 and 0.3; by 0.05 at 16, and by
#: less than 0.01 from 32 on.
SMALLEST_BLOCK = 32

#: Bytes of the numbers of the rows that are transformed together: several vectors.
LANE_BYTES = 256

#: Types of projections that the compiled transform is made for.
FLOATS = (np.dtype(np.float64), np.dtype(np.float32))


class StructuredOrthogonal(BaseEstimator):
    r"""Structured orthogonal random features (SORF), for isotropic measures.

    The norms are drawn from the radial law of the measure in p dimensions (for the
    Gaussian kernel :math:`\chi_p`; the paper sets all of them to :math:`\sqrt p`).

    Notes
    -----
    The directions only resemble uniform ones, so the estimate has a bias, which
    vanishes as p grows and is below 0.01 everywhere; the paper has blocks below 32,
    where it is not. With fewer than some 250 features a dense projection is as fast and
    `Orthogonal` the better choice. Memory is ``O(n_frequencies)``, independent of
    ``n_features``. Raises TypeError for a measure that is not isotropic.

    References
    ----------
    .. [1] F. X. Yu, A. T. Suresh, K. Choromanski, D. Holtmann-Rice, S. Kumar,
       "Orthogonal Random Features", NIPS 2016, Section 5.
    """

    def draw(
        self,
        measure: SpectralMeasure,
        n_frequencies: int,
        n_features: int,
        rng: np.random.Generator,
    ) -> HadamardFrequencies:
        """Draw ``n_frequencies`` rows for ``gamma = 1``, as `HadamardFrequencies`."""
        (norm_rng,) = rng.spawn(1)
        p = max(SMALLEST_BLOCK, 1 << (n_features - 1).bit_length())
        norms = measure.radial_law(norm_rng, n_frequencies, p)
        n_blocks = -(-n_frequencies // p)
        signs = 2 * rng.integers(0, 2, size=(n_blocks, 3, p), dtype=np.int8) - 1
        return HadamardFrequencies(signs, norms, np.ones(n_features))


class HadamardFrequencies:
    """Frequencies as an operator: their projections, without the matrix.

    Stands for an array of shape (n_frequencies, n_features): it has a shape and a
    dtype, can be multiplied from the left by a bandwidth's factor, and `numpy.asarray`
    forms the array.

    Parameters
    ----------
    signs : ndarray of int8, shape (n_blocks, 3, p)
        Diagonals :math:`D_1, D_2, D_3` of each block, 1 or -1; p a power of two, at
        least n_features, and ``n_blocks * p`` at least n_frequencies.
    norms : ndarray of shape (n_frequencies,)
        Norm of each frequency in p dimensions.
    column_scale : ndarray of shape (n_features,)
        Factor of each column.
    dtype : {float64, float32}, default=float64
        Type of the projections.

    Raises
    ------
    ValueError
        Naming the parameter that does not fit the others: here, when a pickle or a
        model file is loaded, and before each projection.
    """

    # Keeps NumPy from spreading ``scale * frequencies`` over the dense form.
    __array_ufunc__ = None

    def __init__(
        self,
        signs: np.ndarray,
        norms: np.ndarray,
        column_scale: np.ndarray,
        dtype: npt.DTypeLike = np.float64,
    ) -> None:
        self.signs = signs
        self.norms = norms
        self.column_scale = column_scale
        self.dtype = np.dtype(dtype)
        self.shape = (np.size(norms), np.size(column_scale))
        self._check()
        self._check_values()

    def __setstate__(self, state: dict) -> None:
        vars(self).update(state)
        self._check()
        self._check_values()

    def _check(self):
        """Refuse parts that do not fit together; cheap, no value is looked at."""
        if getattr(self, "dtype", None) not in FLOATS:
            raise ValueError(
                "dtype must be float64 or float32, got "
                f"{getattr(self, 'dtype', None)!r}."
            )
        sizes = []
        for name in ("norms", "column_scale"):
            part = getattr(self, name, None)
            if (
                not isinstance(part, np.ndarray)
                or part.ndim != 1
                or (part.dtype.kind not in "fi")
            ):
                raise ValueError(
                    f"{name} must be an array of real numbers with one axis, got "
                    f"{_described(part)}."
                )
            sizes.append(len(part))
        signs = getattr(self, "signs", None)
        if not isinstance(signs, np.ndarray) or signs.dtype != np.int8:
            raise ValueError(
                f"signs must be an array of int8, got {_described(signs)}."
            )
        check_signs(signs, *sizes)
        if getattr(self, "shape", None) != tuple(sizes):
            raise ValueError(
                f"shape must be {tuple(sizes)}, as norms and column_scale say, got "
                f"{getattr(self, 'shape', None)!r}."
            )

    def _check_values(self):
        """Refuse signs that are none, and numbers that are not finite."""
        if not np.all(abs(self.signs) == 1):
            raise ValueError("signs must hold 1 and -1 only.")
        for name in ("norms", "column_scale"):
            if not np.isfinite(getattr(self, name)).all():
                raise ValueError(
                    f"{name} must be finite: gamma may be too large or too small."
                )

    def __len__(self) -> int:
        return self.shape[0]

    def __rmul__(self, scale: npt.ArrayLike) -> HadamardFrequencies:
        scale = np.asarray(scale, dtype=np.float64)
        if scale.shape not in ((), self.column_scale.shape):
            raise ValueError(
                "column_scale must be multiplied by one number or by one per column, "
                f"{self.shape[1]} in all, got shape {scale.shape}."
            )
        column_scale = scale * self.column_scale
        return HadamardFrequencies(self.signs, self.norms, column_scale, self.dtype)

    def astype(self, dtype: npt.DTypeLike, copy: bool = False) -> HadamardFrequencies:
        """Return the same frequencies in another floating-point type."""
        if self.dtype == dtype and not copy:
            return self
        return HadamardFrequencies(self.signs, self.norms, self.column_scale, dtype)

    def __array__(self, dtype=None, copy=None):
        del copy  # there is no array that could be shared
        dense = self.projections(np.eye(self.shape[1], dtype=self.dtype)).T
        return np.ascontiguousarray(dense, dtype=dtype)

    def projections(self, X: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        """Return ``X @ W.T``, shape (n_samples, n_frequencies), in this dtype.

        Parameters
        ----------
        X : ndarray or sparse matrix of shape (n_samples, n_features)
            Rows; sparse ones are made dense here.
        out : ndarray of shape (n_samples, n_frequencies), optional
            C-contiguous array of this dtype to write into.

        Notes
        -----
        ``O(n_samples * n_frequencies * log(n_features))`` time, on the calling thread.
        """
        self._check()
        if np.ndim(X) != 2 or X.shape[1] != self.shape[1]:
            raise ValueError(
                f"X must have shape (n_samples, {self.shape[1]}), got {np.shape(X)}."
            )
        X = X.toarray() if sparse.issparse(X) else X
        # The factors of the columns go to the rows, in the precision of the result.
        X = (X * self.column_scale).astype(self.dtype, copy=False)
        if out is None:
            out = np.empty((len(X), self.shape[0]), dtype=self.dtype)
        p = self.signs.shape[2]
        lanes = min(LANE_BYTES // self.dtype.itemsize, max(8, len(X)))
        write_hadamard_projections(
            X,
            self.signs.astype(self.dtype, order="C"),
            (self.norms / p**1.5).astype(self.dtype),
            np.empty((3, p, lanes), dtype=self.dtype),
            out,
        )
        return out


def _described(part):
    """Words for what a part is, for messages."""
    if isinstance(part, np.ndarray):
        return f"shape {part.shape} and dtype {part.dtype}"
    return f"an object of type {type(part).__name__}"
