"""BLAS and LAPACK routines that let other Python threads run meanwhile.

The functions of `scipy.linalg.blas` and `scipy.linalg.lapack` hold the interpreter's
lock while they compute, so that our threads would take turns. SciPy publishes the
addresses of the same routines for compiled callers; called through ctypes they release
the lock.
"""

from __future__ import annotations

import ctypes
import functools
import itertools

import numpy as np
from numba.extending import get_cython_function_address

__all__ = ["divide_by_upper", "ormtr", "potrf", "potrs", "symm", "syrk", "sytrd"]

#: Columns that LAPACK's reflectors are applied in at once, at most.
LAPACK_BLOCK = 64

#: Most columns that are solved for, or multiplied, one at a time: that reads the matrix
#: as it lies, where routines for many columns pack it first. With 1,728 rows one column
#: takes 0.5 and 0.4 ms, four together 2.5 and 4.5 ms (AMD EPYC with AVX-512).
FEW_SOLVED, FEW_MULTIPLIED = 4, 8

_SCALAR = {
    np.dtype(np.float32): ctypes.c_float,
    np.dtype(np.float64): ctypes.c_double,
}
_PREFIX = {np.dtype(np.float32): "s", np.dtype(np.float64): "d"}


@functools.cache
def _routine(module, name, n_arguments):
    """A Fortran subroutine, all of whose arguments are pointers."""
    address = get_cython_function_address(f"scipy.linalg.{module}", name)
    return ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * n_arguments)(address)


def _call(module, name, dtype, *arguments):
    """Call with pointers to characters (bytes), integers, scalars and arrays.

    Integers take eight bytes, of which a little-endian routine with 32-bit integers
    reads the lower four.
    """
    pointers = []
    for argument in arguments:
        if isinstance(argument, np.ndarray):
            pointers.append(argument.ctypes.data)
        elif isinstance(argument, bytes):
            pointers.append(ctypes.byref(ctypes.c_char(argument)))
        elif isinstance(argument, int):
            pointers.append(ctypes.byref(ctypes.c_int64(argument)))
        else:
            pointers.append(ctypes.byref(_SCALAR[dtype](argument)))
    _routine(f"cython_{module}", _PREFIX[dtype] + name, len(pointers))(*pointers)


def _check_square(name, matrix, size, dtype, written=True):
    """Refuse what Fortran would not read as a square matrix of that size and type."""
    if written and not matrix.flags.writeable:
        raise ValueError(f"{name} must be writeable, got a read-only array.")
    if matrix.shape != (size, size) or matrix.dtype != dtype:
        raise ValueError(
            f"{name} must have shape ({size}, {size}) and dtype {np.dtype(dtype)}, got "
            f"{matrix.shape} and {matrix.dtype}."
        )
    if not matrix.flags.f_contiguous:
        raise ValueError(
            f"{name} must be in Fortran order, got strides {matrix.strides}."
        )


def _check_columns(name, columns, n_rows):
    """Refuse what Fortran would not read as float64 columns of that length."""
    if columns.ndim != 2 or len(columns) != n_rows or columns.dtype != np.float64:
        raise ValueError(
            f"{name} must have shape ({n_rows}, k) and dtype float64, got "
            f"{columns.shape} and {columns.dtype}."
        )
    if not columns.flags.f_contiguous or not columns.flags.writeable:
        raise ValueError(
            f"{name} must be writeable and in Fortran order, got strides "
            f"{columns.strides}."
        )


def syrk(Z: np.ndarray, gram: np.ndarray, beta: float = 1.0) -> None:
    """Upper triangle of ``gram <- beta gram + Z^T Z``, in place.

    Parameters
    ----------
    Z : ndarray of shape (n_rows, m), float32 or float64, contiguous
        Rows, in either order.
    gram : ndarray of shape (m, m), dtype of ``Z``, Fortran order
        What is added to; the part below the diagonal is not touched.
    beta : float, default=1.0
        With 0 the old entries are not read.

    Notes
    -----
    ``n_rows m^2`` operations, on the threads that BLAS may use.
    """
    n, m = Z.shape
    if not Z.flags.forc or Z.dtype not in _SCALAR:
        raise ValueError(
            f"Z must be contiguous and float32 or float64, got {Z.dtype} with strides "
            f"{Z.strides}."
        )
    _check_square("gram", gram, m, Z.dtype)
    # Rows in C order are, to Fortran, columns.
    mode, stride = (b"N", m) if Z.flags.c_contiguous else (b"T", max(1, n))
    _call(
        *("blas", "syrk", Z.dtype, b"U", mode, m, n),
        *(1.0, Z, stride, float(beta), gram, m),
    )


def potrf(matrix: np.ndarray) -> int:
    """Cholesky's upper factor of the upper triangle, in place.

    Parameters
    ----------
    matrix : ndarray of shape (m, m), float64, Fortran order
        Symmetric; the part below the diagonal is not touched.

    Returns
    -------
    info : int
        0, or the order of the leading minor that is not positive definite.

    Notes
    -----
    ``m^3 / 3`` operations, on the threads that BLAS may use.
    """
    m = len(matrix)
    _check_square("matrix", matrix, m, np.float64)
    info = np.zeros(1, np.int64)
    _call("lapack", "potrf", matrix.dtype, b"U", m, matrix, m, info)
    # A routine with 32-bit integers wrote the lower half alone; a minor's order is
    # positive and a wrong argument's number negative.
    return int(info.view(np.int32)[0])


def potrs(factor: np.ndarray, sides: np.ndarray) -> np.ndarray:
    """Solve ``R^T R x = b`` with Cholesky's upper factor R, in place.

    Parameters
    ----------
    factor : ndarray of shape (m, m), float64, Fortran order
        R, see `potrf`; the part below the diagonal is not read.
    sides : ndarray of shape (m, k), float64, Fortran order
        Right-hand sides b, which become the solutions.

    Returns
    -------
    sides : ndarray
        The argument.

    Notes
    -----
    ``2 m^2 k`` operations, on the threads that BLAS may use.
    """
    m = len(factor)
    _check_square("factor", factor, m, np.float64, written=False)
    _check_columns("sides", sides, m)
    info = np.zeros(1, np.int64)
    k = sides.shape[1]
    if m and k <= FEW_SOLVED:
        for i, mode in itertools.product(range(k), (b"T", b"N")):
            column = m, factor, m, sides[:, i], 1
            _call("blas", "trsv", factor.dtype, b"U", mode, b"N", *column)
    elif m:
        _call(
            *("lapack", "potrs", factor.dtype),
            *(b"U", m, k, factor, m, sides, m, info),
        )
    return sides


def symm(matrix: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Product of a symmetric matrix with some columns.

    Parameters
    ----------
    matrix : ndarray of shape (m, m), float64, Fortran order
        Its upper triangle; the part below the diagonal is not read.
    columns : ndarray of shape (m, k), float64, Fortran order
        What is multiplied.

    Returns
    -------
    product : ndarray of shape (m, k), Fortran order

    Notes
    -----
    ``2 m^2 k`` operations, on the threads that BLAS may use.
    """
    m = len(matrix)
    _check_square("matrix", matrix, m, np.float64, written=False)
    _check_columns("columns", columns, m)
    k = columns.shape[1]
    product = np.empty((m, k), order="F")
    if m and k <= FEW_MULTIPLIED:
        for i in range(k):
            _call(
                *("blas", "symv", matrix.dtype, b"U", m, 1.0, matrix, m),
                *(columns[:, i], 1, 0.0, product[:, i], 1),
            )
    elif m:
        _call(
            *("blas", "symm", matrix.dtype, b"L", b"U", m, k, 1.0),
            *(matrix, m, columns, m, 0.0, product, m),
        )
    return product


def sytrd(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    r"""Tridiagonal form :math:`Q^\top A Q` of a symmetric matrix, in place.

    Parameters
    ----------
    matrix : ndarray of shape (m, m), float64, Fortran order
        Upper triangle of A, m > 0; afterwards it holds the reflectors whose product is
        Q.

    Returns
    -------
    diagonal, beside, tau : ndarray of shape (m,), (m - 1,), (m - 1,)
        The two diagonals, and the factors of the reflectors, see `ormtr`; a matrix of
        one entry has a zero in each of the last two.

    Notes
    -----
    ``4 m^3 / 3`` operations, half of them products of the matrix with one vector.
    """
    m = len(matrix)
    _check_square("matrix", matrix, m, np.float64)
    diagonal = np.empty(m)
    beside, tau = np.zeros(max(1, m - 1)), np.zeros(max(1, m - 1))
    work, info = np.empty(LAPACK_BLOCK * m), np.zeros(1, np.int64)
    _call(
        *("lapack", "sytrd", matrix.dtype, b"U", m, matrix, m),
        *(diagonal, beside, tau, work, len(work), info),
    )
    return diagonal, beside, tau


def ormtr(
    reflectors: np.ndarray, tau: np.ndarray, columns: np.ndarray, transpose: bool
) -> np.ndarray:
    r"""Multiply columns by the rotation of `sytrd`, in place.

    Parameters
    ----------
    reflectors, tau : ndarray of shape (m, m), (m - 1,)
        What `sytrd` left.
    columns : ndarray of shape (m, k), float64, Fortran order
        What is multiplied.
    transpose : bool
        Whether by :math:`Q^\top`, not by Q.

    Returns
    -------
    columns : ndarray
        The argument.

    Notes
    -----
    ``2 m^2 k`` operations.
    """
    m = len(reflectors)
    _check_square("reflectors", reflectors, m, np.float64, written=False)
    _check_columns("columns", columns, m)
    k = columns.shape[1]
    work = np.empty(LAPACK_BLOCK * (k + LAPACK_BLOCK + 1))
    info = np.zeros(1, np.int64)
    if m and k:
        modes = b"L", b"U", b"T" if transpose else b"N"
        _call(
            *("lapack", "ormtr", columns.dtype, *modes),
            *(m, k, reflectors, m, tau, columns, m, work, len(work), info),
        )
    return columns


def divide_by_upper(rows: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """``rows <- rows R^-1`` for an upper triangular matrix R, in place.

    Parameters
    ----------
    rows : ndarray of shape (n_rows, m), float64, C-contiguous
        Rows.
    upper : ndarray of shape (m, m), float64, Fortran order
        R; the part below the diagonal is not read.

    Returns
    -------
    rows : ndarray
        The argument.

    Notes
    -----
    ``n_rows m^2`` operations, on the threads that BLAS may use.
    """
    n, m = rows.shape
    if not rows.flags.carray or rows.dtype != np.float64:
        raise ValueError(
            "rows must be float64, C-contiguous and writeable, got "
            f"{rows.dtype} with strides {rows.strides}."
        )
    _check_square("upper", upper, m, np.float64, written=False)
    if n and m:
        modes = b"L", b"U", b"T", b"N"
        _call("blas", "trsm", rows.dtype, *modes, m, n, 1.0, upper, m, rows, m)
    return rows
