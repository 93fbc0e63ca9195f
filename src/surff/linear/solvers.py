r"""Ridge coefficients from normal equations.

Every solver minimises :math:`\|Y - Z \beta\|^2 + \alpha \|\beta\|^2`, that is solves

.. math:: (Z^\top Z + \alpha I)\, \beta = Z^\top Y,

for one ``alpha`` after the other, and is a generator of coefficients.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from array_api_compat import device, is_torch_array
from scipy import linalg
from scipy.linalg import lapack

from surff.backend import (
    asarray_like,
    map_slices,
    n_threads,
    namespace_of,
    on_accelerator,
    potrf,
    single_threaded_blas,
    supports_float64,
    to_numpy,
)
from surff.linear.normal_equations import (
    PARALLEL_COLUMNS,
    CentredEquations,
    NormalEquations,
)
from surff.linear.shifted import (
    TOLERANCE,
    cheapest_way,
    rational_path,
    tridiagonal_path,
)

__all__ = [
    "SOLVERS",
    "SingularError",
    "cholesky",
    "cholesky_beside",
    "eigh",
    "intercept",
    "least_regular",
    "smallest_together",
    "solve",
    "solve_each",
    "solver_beside",
    "solver_of",
]

#: Most columns of a matrix that one thread factors: BLAS threads would wait longer.
SINGLE_COLUMNS = 2048

#: Smallest alpha that is solved together with others, in units of m times the rounding
#: error of the largest diagonal entry. Below it, the scale of each column matters.
TOGETHER_MARGIN = 1e3


class SingularError(ValueError):
    """The matrix is singular to working precision."""


def cholesky(
    gram: np.ndarray, moments: np.ndarray, alphas: Iterable[float]
) -> Iterator[np.ndarray | None]:
    """Yield the coefficients of each alpha by Cholesky factorisations.

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
    ``m^3 / 3 + 2 m^2 k`` operations per alpha. Up to `PARALLEL_COLUMNS` columns each
    thread factors the matrix of an alpha of its own, at twice the speed of threads that
    share one, and holds one matrix. Many alphas are solved together where that costs
    less, see `surff.linear.cheapest_way`; alphas so small that an orthogonal
    transformation loses digits which Cholesky's factor keeps are left to that.
    """
    alphas = list(alphas)
    size = n_threads() if len(gram) <= PARALLEL_COLUMNS else 1
    found = solved_together(gram, moments, alphas)
    others = [alpha for i, alpha in enumerate(alphas) if i not in found]
    direct = side_by_side(gram, moments, others, size)
    for i in range(len(alphas)):
        yield found.pop(i) if i in found else next(direct)


def side_by_side(
    gram: np.ndarray, moments: np.ndarray, alphas: list[float], size: int
) -> Iterator[np.ndarray | None]:
    """Yield the coefficients of each alpha, a factorisation on each thread."""
    factors = [np.empty_like(gram) for _ in alphas[:size]]
    for first in range(0, len(alphas), size):
        group = alphas[first : first + size]

        def solve_part(part, group=group):
            return [
                cholesky_solution(gram, moments, group[i], factors[i])
                for i in range(part.start, part.stop)
            ]

        # For a small matrix, BLAS threads cost more than they save if they must wait.
        alone = len(gram) <= SINGLE_COLUMNS
        with single_threaded_blas() if alone else contextlib.nullcontext():
            parts = map_slices(solve_part, len(group), minimum=1)
        for coefs in parts:
            yield from coefs


def smallest_together(gram: np.ndarray) -> float:
    """Alpha above which what rounds the whole matrix alike costs no digits that count.

    See `TOGETHER_MARGIN`.
    """
    scale = len(gram) * np.finfo(np.float64).eps * float(gram.diagonal().max())
    return TOGETHER_MARGIN * scale


def solved_together(
    gram: np.ndarray, moments: np.ndarray, alphas: list[float]
) -> dict[int, np.ndarray]:
    """Coefficients by index, for the alphas that share their cost."""
    m, k = moments.shape
    floor = smallest_together(gram)
    large = [int(i) for i in np.argsort(alphas) if alphas[i] > floor]
    if not large or floor == 0:
        return {}
    shifts = [alphas[i] for i in large]
    way = cheapest_way(m, k, len(large))
    if way is None:
        return {}
    # Threads that share products with few columns only wait.
    with single_threaded_blas() if m <= SINGLE_COLUMNS else contextlib.nullcontext():
        if way == "tridiagonal":
            coefs, least = tridiagonal_path(gram, moments, shifts)
            good = least > floor
        else:
            coefs, errors = rational_path(gram, moments, shifts)
            good = errors <= TOLERANCE
    return {large[i]: coefs[:, i] for i in np.flatnonzero(good)}


def cholesky_solution(
    gram: np.ndarray, moments: np.ndarray, alpha: float, factor: np.ndarray
) -> np.ndarray | None:
    """Coefficients of one alpha, or None if singular; overwrites ``factor``.

    ``factor`` may be ``gram``.
    """
    if factor is not gram:
        np.copyto(factor, gram)
    diagonal = np.einsum("ii->i", factor)
    diagonal += alpha
    scale = diagonal.copy()
    info = potrf(factor)
    if info or are_rounding_errors(np.einsum("ii->i", factor) ** 2, scale):
        return None
    return lapack.dpotrs(factor, moments, lower=0)[0]


def are_rounding_errors(pivots: np.ndarray, diagonal: np.ndarray) -> bool:
    """Whether some of Cholesky's pivots consist of rounding errors.

    A pivot that is tiny next to its own diagonal entry does, even if LAPACK finishes;
    the ratio does not depend on the columns' scales.
    """
    return not np.all(pivots > len(pivots) * np.finfo(np.float64).eps * diagonal)


def cholesky_beside(
    X: Any, gram: np.ndarray, moments: np.ndarray, alphas: Iterable[float]
) -> Iterator[np.ndarray | None]:
    """Yield the coefficients of each alpha, computed on the device of an array.

    The other parameters, and what is yielded, are those of `cholesky`, on the host.

    Parameters
    ----------
    X : array
        Says where; its device computes in float64.

    Notes
    -----
    ``m^3 / 3`` operations per alpha for PyTorch and ``m^3`` for other libraries, and
    four ``(m, m)`` matrices on the device: the array API has no triangular solution, so
    that Cholesky's factor only tells what is singular, and the coefficients come from
    an LU factorisation. PyTorch has one.
    """
    xp = namespace_of(X)
    # The transpose of Fortran order is copied as it lies.
    lower = xp.tril(asarray_like(gram.T, X, xp.float64))
    matrix = lower + xp.matrix_transpose(xp.tril(lower, k=-1))
    del lower
    moments = asarray_like(moments, X, xp.float64)
    m = moments.shape[0]
    diagonal = to_numpy(xp.linalg.diagonal(matrix))
    for alpha in alphas:
        shift = asarray_like(np.full(m, alpha), X, xp.float64)
        shifted = matrix + xp.eye(m, dtype=xp.float64, device=device(X)) * shift
        try:
            factor = xp.linalg.cholesky(shifted)
        except Exception as error:
            # The libraries share the name of this error, but no class.
            if not type(error).__name__.endswith("LinAlgError"):
                raise
            yield None
            continue
        pivots = to_numpy(xp.linalg.diagonal(factor)) ** 2
        if are_rounding_errors(pivots, diagonal + alpha):
            yield None
            continue
        if is_torch_array(factor):
            yield to_numpy(moments.cholesky_solve(factor))
        else:
            yield to_numpy(xp.linalg.solve(shifted, moments))


def least_regular(equations: NormalEquations) -> float:
    """Alpha from which on no Gram matrix is singular to working precision.

    A pivot of the matrix with alpha on its diagonal is at least alpha, less the
    rounding errors of the factorisation. Smaller alphas may be as good, above all where
    columns differ in scale.

    Parameters
    ----------
    equations : NormalEquations

    Returns
    -------
    alpha : float
    """
    diagonal = equations.gram.diagonal()
    return 4.0 * len(diagonal) * np.finfo(np.float64).eps * float(diagonal.max())


def eigh(
    gram: np.ndarray, moments: np.ndarray, alphas: Iterable[float]
) -> Iterator[np.ndarray]:
    """Yield the coefficients of each alpha from one eigendecomposition.

    The parameters are those of `cholesky`. Eigenvalues below rounding are treated as
    zero and their directions left out, which gives the minimum-norm solution as alpha
    goes to 0; nothing is singular here.

    Notes
    -----
    About ``9 m^3`` operations once and ``4 m^2 k`` per alpha: worth it for many alphas
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


def solver_of(solver: str | Callable) -> Callable:
    """Return the solver of a name, or the function itself."""
    return SOLVERS[solver] if isinstance(solver, str) else solver


def solver_beside(solver: str | Callable, X: Any) -> str | Callable:
    """Return the solver to use with ``X``: Cholesky's on its accelerator, if any."""
    if solver == "cholesky" and on_accelerator(X) and supports_float64(X):
        return functools.partial(cholesky_beside, X)
    return solver


def solve(
    equations: CentredEquations,
    alpha: float,
    solver: str | Callable = "cholesky",
    overwrite: bool = False,
) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients and intercepts for one alpha.

    Parameters
    ----------
    equations : CentredEquations
        See `surff.linear.NormalEquations.centred`.
    alpha : float
        Regularisation, >= 0.
    solver : {"cholesky", "eigh"} or callable, default="cholesky"
        Key of `SOLVERS`, or a function such as these.
    overwrite : bool, default=False
        Whether "cholesky" may factor in the memory of the Gram matrix, which saves a
        matrix and leaves ``equations`` useless.

    Returns
    -------
    coef : ndarray of shape (m, k)
    intercept : ndarray of shape (k,)

    Raises
    ------
    SingularError
        If Cholesky's matrix is singular to working precision.
    """
    gram, moments = equations.gram, equations.moments
    if overwrite and solver == "cholesky":
        coef = cholesky_solution(gram, moments, alpha, gram)
    else:
        coef = next(solver_of(solver)(gram, moments, [alpha]))
    if coef is None:
        raise SingularError(
            f"Z^T Z + alpha I is singular to working precision (alpha={alpha:.3g}, "
            f"{len(equations.gram)} columns); increase alpha or choose solver='eigh'."
        )
    return coef, intercept(equations, coef)


def solve_each(
    equations: CentredEquations, alphas: np.ndarray, solver: str | Callable
) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients and intercepts of targets with an alpha each; see `solve`."""
    coef, level = np.empty_like(equations.moments), np.empty_like(equations.target_mean)
    for alpha in np.unique(alphas):
        own = alphas == alpha
        coef[:, own], level[own] = solve(equations.of_targets(own), alpha, solver)
    return coef, level


def intercept(equations: CentredEquations, coef: np.ndarray) -> np.ndarray:
    """Intercepts for coefficients of centred equations, shape (k,)."""
    return equations.target_mean - equations.feature_mean @ coef
