r"""Ridge coefficients from normal equations.

Every solver minimises :math:`\|Y - Z \beta\|^2 + \alpha \|\beta\|^2`, that is solves

.. math:: (Z^\top Z + \alpha I)\, \beta = Z^\top Y,

for one ``alpha`` after the other, and is a generator of coefficients.
"""

import numpy as np
from scipy import linalg
from scipy.linalg import lapack

from surff._threads import map_slices, n_threads
from surff.normal_equations import PARALLEL_COLUMNS

__all__ = ["SOLVERS", "SingularError", "cholesky", "eigh", "solve"]


class SingularError(ValueError):
    """The matrix is singular to working precision."""


def cholesky(gram, moments, alphas):
    """Yield the coefficients of each alpha by a Cholesky factorisation each.

    Parameters
    ----------
    gram : ndarray of shape (m, m), float64, Fortran order
        Upper triangle of the Gram matrix; left as it is.
    moments : ndarray of shape (m, k)
        Right-hand sides.
    alphas : iterable of float
        Regularisation, >= 0.

    Yields
    ------
    coef : ndarray of shape (m, k), or None
        None where the matrix is singular to working precision.

    Notes
    -----
    ``m^3 / 3 + 2 m^2 k`` operations an alpha. Up to `PARALLEL_COLUMNS` columns each
    thread factors the matrix of an alpha of its own, at twice the speed of threads that
    share one; a matrix a thread is held.
    """
    alphas = list(alphas)
    size = n_threads() if len(gram) <= PARALLEL_COLUMNS else 1
    factors = [np.empty_like(gram) for _ in alphas[:size]]
    for first in range(0, len(alphas), size):
        group = alphas[first : first + size]

        def factor_part(part, group=group):
            return [
                cholesky_solution(gram, moments, group[i], factors[i])
                for i in range(part.start, part.stop)
            ]

        for coefs in map_slices(factor_part, len(group), minimum=1):
            yield from coefs


def cholesky_solution(gram, moments, alpha, factor):
    """Coefficients of one alpha, None where singular; overwrites ``factor``."""
    np.copyto(factor, gram)
    diagonal = np.einsum("ii->i", factor)
    diagonal += alpha
    scale = diagonal.copy()
    factor, info = lapack.dpotrf(factor, lower=0, clean=0, overwrite_a=1)
    # A pivot this small beside its own diagonal entry is made of rounding errors, even
    # where LAPACK finishes; the ratio does not depend on the columns' scales.
    pivots = np.einsum("ii->i", factor) ** 2
    if info or np.any(pivots <= len(gram) * np.finfo(np.float64).eps * scale):
        return None
    return lapack.dpotrs(factor, moments, lower=0)[0]


def eigh(gram, moments, alphas):
    """Yield the coefficients of each alpha from one eigendecomposition.

    The parameters are those of `cholesky`. Eigenvalues below rounding are treated as
    zero and their directions left out, which gives the minimum-norm solution as alpha
    goes to 0; nothing is singular here.

    Notes
    -----
    About ``9 m^3`` operations once and ``4 m^2 k`` an alpha: worth it for many alphas
    or a singular matrix.
    """
    eigenvalues, Q = linalg.eigh(gram, lower=False)
    floor = len(gram) * np.finfo(np.float64).eps * max(eigenvalues[-1], 0.0)
    kept = eigenvalues > floor
    eigenvalues, Q = eigenvalues[kept], Q[:, kept]
    projected = Q.T @ moments
    for alpha in alphas:
        yield Q @ (projected / (eigenvalues + alpha)[:, None])


#: Solvers by name.
SOLVERS = {"cholesky": cholesky, "eigh": eigh}


def solve(equations, alpha, solver="cholesky"):
    """Coefficients and intercepts for one alpha.

    Parameters
    ----------
    equations : CentredEquations
        See `surff.normal_equations.NormalEquations.centred`.
    alpha : float
        Regularisation, >= 0.
    solver : {"cholesky", "eigh"}, default="cholesky"
        Key of `SOLVERS`.

    Returns
    -------
    coef : ndarray of shape (m, k)
    intercept : ndarray of shape (k,)

    Raises
    ------
    SingularError
        If Cholesky's matrix is singular to working precision.
    """
    coef = next(SOLVERS[solver](equations.gram, equations.moments, [alpha]))
    if coef is None:
        raise SingularError(
            f"Z^T Z + alpha I is singular to working precision (alpha={alpha:.3g}, "
            f"{len(equations.gram)} columns); increase alpha or choose solver='eigh'."
        )
    return coef, intercept(equations, coef)


def intercept(equations, coef):
    """Intercepts that go with coefficients of centred equations, shape (k,)."""
    return equations.target_mean - equations.feature_mean @ coef
