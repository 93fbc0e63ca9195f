r"""Symmetric matrices in band form, for systems that differ by a multiple of I.

An orthogonal Q turns a symmetric matrix into one with few diagonals,

.. math:: G = Q B Q^\top, \qquad (G + \alpha I)^{-1} c = Q (B + \alpha I)^{-1} Q^\top c,

all of it matrix products; after that each alpha costs next to nothing. It serves
matrices of many thousand columns, which a tridiagonal form
(`surff.linear.tridiagonal_path`) would read from memory once per column. Q is a product
of block reflectors :math:`I - V T V^\top`, one for each group of columns.

References
----------
.. [1] C. Bischof, B. Lang, X. Sun, "A Framework for Symmetric Band Reduction", ACM
   Transactions on Mathematical Software 26(4), 2000.
.. [2] R. Schreiber, C. Van Loan, "A Storage-Efficient WY Representation for Products of
   Householder Transformations", SIAM Journal on Scientific and Statistical Computing
   10(1), 1989.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import blas, lapack

__all__ = ["BandForm", "band_form"]

#: Diagonals besides the main one. With more, reduction is faster and each alpha slower.
WIDTH = 64


class BandForm(NamedTuple):
    """A symmetric matrix as band and reflectors."""

    band: np.ndarray  # (width + 1, m), B[j + i, j] at [i, j]
    reflectors: list[
        tuple[int, np.ndarray, np.ndarray]
    ]  # (first row, V, T) each, in the order in which they were applied

    def rotated(self, moments: np.ndarray) -> np.ndarray:
        """Return ``Q^T moments``, as a new array."""
        rotated = np.array(moments, order="F")
        for first, V, T in self.reflectors:
            rotated[first:] -= V @ (T.T @ (V.T @ rotated[first:]))
        return rotated

    def rotated_back(self, solutions: np.ndarray) -> np.ndarray:
        """Compute ``Q solutions``, in place."""
        for first, V, T in reversed(self.reflectors):
            solutions[first:] -= V @ (T @ (V.T @ solutions[first:]))
        return solutions


def band_form(gram: np.ndarray, width: int = WIDTH) -> BandForm:
    r"""Band form of a symmetric matrix.

    Parameters
    ----------
    gram : ndarray of shape (m, m), float64, Fortran order
        Upper triangle of the matrix; left as it is.
    width : int, default=64
        Diagonals of the band besides the main one.

    Returns
    -------
    BandForm

    Notes
    -----
    ``4 m^3 / 3`` operations; two matrices of memory besides the reflectors' half a
    matrix. Backward stable: B belongs to a matrix that differs from ``gram`` by
    rounding errors of :math:`\|G\|`.
    """
    m = len(gram)
    band, reflectors = np.zeros((width + 1, m), order="F"), []
    memory, spare = np.empty(m * m), np.empty(m * m)
    rest = leading(memory, m)
    np.copyto(rest, gram)
    for first in range(0, m - width - 1, width):
        below = first + width
        panel, tau, *_ = lapack.dgeqrf(np.asfortranarray(rest[:width, width:].T))
        V, T = block_reflector(panel, tau)
        reflectors.append((below, V, T))
        for i in range(width):
            diagonals = np.concatenate([rest[i, i:width], panel[: i + 1, i]])
            band[: len(diagonals), first + i] = diagonals
        # What is left, rest <- (I - V T V^T)^T rest (I - V T V^T), as one update of
        # rank 2 width.
        following = leading(spare, m - below)
        np.copyto(following, rest[width:, width:])
        memory, spare, rest = spare, memory, following
        X = blas.dsymm(1.0, rest, V, lower=0) @ T
        W = X - 0.5 * (V @ (T.T @ (V.T @ X)))
        blas.dsyr2k(-1.0, np.asfortranarray(W), V, 1.0, rest, lower=0, overwrite_c=1)
    for i in range(len(rest)):
        band[: len(rest) - i, m - len(rest) + i] = rest[i, i:]
    return BandForm(band, reflectors)


def leading(memory: np.ndarray, size: int) -> np.ndarray:
    """The start of some memory as a matrix in Fortran order."""
    return memory[: size * size].reshape((size, size), order="F")


def block_reflector(
    panel: np.ndarray, tau: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """V and T of the reflectors that LAPACK leaves below the diagonal of a panel."""
    n = len(tau)
    V = np.asfortranarray(np.tril(panel[:, :n], -1))
    np.fill_diagonal(V, 1.0)
    # T^-1 + T^-T = V^T V. A column that was reduced already has tau = 0, and with it a
    # row and a column of T.
    inverse = np.asfortranarray(np.triu(V.T @ V, 1))
    np.fill_diagonal(inverse, 1.0 / np.maximum(tau, np.finfo(np.float64).tiny))
    return V, np.triu(lapack.dtrtri(inverse, lower=0, overwrite_c=1)[0])
