r"""Symmetric systems that differ by a multiple of the identity, solved together.

For one Gram matrix G and many alphas, :math:`(G + \alpha I)\, \beta = c` has two ways
besides a Cholesky factorisation per alpha.

*Tridiagonal form.* An orthogonal Q with :math:`Q^\top G Q` tridiagonal costs as much as
seven factorisations, half of it products of a matrix with one vector; after that an
alpha costs next to nothing.

*Rational Krylov space.* The solutions of all alphas lie close to one space of few
dimensions. It is built from factorisations at a few shifts
:math:`\sigma_1, \sigma_2, \dots` (poles): in turn, the residual r of the worst alpha
near a pole adds the direction :math:`(G + \sigma_j I)^{-1} r`, and that of the worst
large alpha adds r itself, a pole at infinity. Directions cost little beside a
factorisation, so that there is one pole at first, and another at the worst alpha after
some rounds. In the basis B of the space

.. math:: \beta(\alpha) = B\, (B^\top G B + \alpha I)^{-1} B^\top c,

the solution nearest to the true one in the norm of :math:`G + \alpha I`, and it ends
where every alpha's residual says

.. math:: \frac{\|\beta(\alpha) - \beta\|_{G + \alpha I}}{\|\beta\|_{G + \alpha I}}
          \le \frac{\|r\|}{\sqrt{\alpha\, c^\top \beta(\alpha)}} \le \mathrm{tol} .

With the G and c of ridge regression that bounds the error of the predictions for the
rows by tol standard deviations of the target.

References
----------
.. [1] A. Ruhe, "Rational Krylov Sequence Methods for Eigenvalue Computation", Linear
   Algebra and its Applications 58, 1984.
.. [2] V. Druskin, V. Simoncini, "Adaptive Rational Krylov Subspaces for Large-Scale
   Dynamical Systems", Systems and Control Letters 60(8), 2011.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from surff.backend import compiled, ormtr, potrf, potrs, symm, sytrd

__all__ = ["cheapest_way", "rational_path", "tridiagonal_path"]

#: Cost of a tridiagonal form in Cholesky factorisations, and how it grows with the
#: columns. Small matrices cost calls, and of large ones products with one vector wait
#: for memory. Measured: 1 to 2 up to 32 columns, 2 to 3 at 64, 4 at 128, 5.8 at 256;
#: without AVX-512 6.5 at 1,024, 7.5 at 1,728, 9.5 at 2,304 and 11 at 3,456.
CALLS, MOST_OF_ITSELF, COLUMNS_OF_ITSELF, COLUMNS_PER_COST = 2.0, 4.0, 64, 700

#: Directions that a rational Krylov space is expected to need for each target, and the
#: columns for which one costs as much as a factorisation: 0.16 of one at 1,024 columns,
#: 0.1 at 1,728 and 0.06 at 3,456.
DIRECTIONS, COLUMNS_PER_DIRECTION = 50, 170

#: Most poles, how many are expected, and rounds after which one more is factored: about
#: as many as cost a factorisation. With 1,728 columns and alphas over ten decades rows
#: of normal numbers took 0.13 seconds (0.23 with two poles from the start), a fold of
#: covtype about the same either way.
MOST_POLES, POLES, POLE_ROUNDS = 4, 2, 15

#: Bound of the relative error of a solution that ends the search. Of 1,728 columns on
#: covtype the scores then were off by 1e-10 at most, and a tenth of it took half as
#: many directions again.
TOLERANCE = 1e-8

#: Most directions per target. On covtype 50 to 80 were enough.
MOST_DIRECTIONS = 128

#: Rounds in which the largest error must halve: what stays is rounding.
PATIENCE = 8


def cheapest_way(n_columns: int, n_targets: int, n_alphas: int) -> str | None:
    """The way to the solutions of all alphas that is expected to cost least.

    Counted in Cholesky factorisations on one thread, so that the answer, and with it
    the last digits of a fit, does not depend on the number of threads.

    Parameters
    ----------
    n_columns, n_targets, n_alphas : int
        Sizes of the problem.

    Returns
    -------
    way : {"tridiagonal", "rational"} or None
        None for a factorisation per alpha.
    """
    directions = DIRECTIONS * n_targets * COLUMNS_PER_DIRECTION / n_columns
    of_itself = CALLS + min(n_columns / COLUMNS_OF_ITSELF, MOST_OF_ITSELF)
    costs = {
        None: n_alphas,
        "tridiagonal": of_itself + n_columns / COLUMNS_PER_COST,
        "rational": POLES + directions,
    }
    return min(costs, key=lambda way: costs[way])


def tridiagonal_path(
    gram: np.ndarray, moments: np.ndarray, alphas: Sequence[float]
) -> tuple[np.ndarray, np.ndarray]:
    """Solutions of every alpha by a tridiagonal form.

    Parameters
    ----------
    gram : ndarray of shape (m, m), float64, Fortran order
        Upper triangle of the matrix, m > 0; left as it is.
    moments : ndarray of shape (m, k)
        Right-hand sides.
    alphas : sequence of float
        Shifts.

    Returns
    -------
    coefs : ndarray of shape (m, n_alphas, k)
        nan where the matrix is not positive definite.
    least : ndarray of shape (n_alphas,)
        Smallest pivot of each factorisation, 0 where there is none.

    Notes
    -----
    ``4 m^3 / 3`` operations once and ``2 m^2 k`` for each alpha. Backward stable: the
    form belongs to a matrix that differs from ``gram`` by rounding errors of its norm.
    """
    m, k = moments.shape
    reflectors = gram.copy(order="F")
    diagonal, beside, tau = sytrd(reflectors)
    rotated = ormtr(reflectors, tau, moments.astype(np.float64, order="F"), True)
    shifts = np.asarray(alphas, dtype=np.float64)
    solutions, least = _tridiagonal_solutions(diagonal, beside, rotated, shifts)
    solutions = np.asfortranarray(solutions.reshape(m, -1))
    # Rubbish where a pivot is not positive, of which no other column hears.
    ormtr(reflectors, tau, solutions, False)
    solutions = solutions.reshape(m, len(shifts), k)
    solutions[:, least <= 0.0] = np.nan
    return solutions, least.clip(min=0.0)


@compiled
def _tridiagonal_solutions(diagonal, beside, sides, shifts):
    """Solutions for every shift by the form LDL, and the smallest pivot of each."""
    (m, k), n = sides.shape, len(shifts)
    pivots, factors = np.empty((m, n)), np.empty((m, n))
    solutions, least = np.empty((m, n, k)), np.full(n, np.inf)
    for i in range(m):
        for a in range(n):
            pivot, factor = diagonal[i] + shifts[a], 0.0
            if i > 0:
                factor = beside[i - 1] / pivots[i - 1, a]
                pivot -= factor * beside[i - 1]
            pivots[i, a], factors[i, a] = pivot, factor
            least[a] = min(least[a], pivot)
            for j in range(k):
                before = solutions[i - 1, a, j] if i > 0 else 0.0
                solutions[i, a, j] = sides[i, j] - factor * before
    for i in range(m - 1, -1, -1):
        for a in range(n):
            for j in range(k):
                solutions[i, a, j] /= pivots[i, a]
                if i + 1 < m:
                    solutions[i, a, j] -= factors[i + 1, a] * solutions[i + 1, a, j]
    return solutions, least


def rational_path(
    gram: np.ndarray,
    moments: np.ndarray,
    alphas: Sequence[float],
    tol: float = TOLERANCE,
) -> tuple[np.ndarray, np.ndarray]:
    """Solutions of every alpha from one rational Krylov space.

    Parameters
    ----------
    gram : ndarray of shape (m, m), float64, Fortran order
        Upper triangle of a positive semi-definite matrix that is not zero; left as it
        is.
    moments : ndarray of shape (m, k)
        Right-hand sides.
    alphas : sequence of float
        Shifts, ascending, > 0.
    tol : float, default=1e-8
        Largest relative error.

    Returns
    -------
    coefs : ndarray of shape (m, n_alphas, k)
    errors : ndarray of shape (n_alphas,)
        Bound of each alpha's relative error; above ``tol`` where the search gave up.

    Notes
    -----
    ``m^3 / 3`` operations and ``m^2`` numbers of memory per pole; ``4 m^2`` operations
    per direction, of which an ordinary problem has 20 to 80 per target.
    """
    alphas = np.asarray(alphas, dtype=np.float64)
    m, k = moments.shape
    poles = _Poles(gram, alphas)
    space = _Space(gram, moments, alphas, min(m, MOST_DIRECTIONS * k))
    some = np.flatnonzero(moments.any(axis=0))
    if not len(some):
        return np.zeros((m, len(alphas), k)), np.zeros(len(alphas))
    fresh = [(j, moments[:, some]) for j in poles.used]
    best, waited, since = np.inf, 0, 0
    while True:
        directions = [poles.direction(*one) for one in fresh]
        space.extend(np.hstack(directions)[:, : space.size - space.n])
        errors, residuals = space.errors()
        worst, since = errors.max(), since + 1
        waited = waited + 1 if worst > 0.5 * best else 0
        best = best if waited else worst
        if worst <= tol or space.n == space.size:
            return space.coefs(), errors.max(axis=1)
        if max(waited - PATIENCE, since - POLE_ROUNDS) >= 0:
            if poles.add(errors.max(axis=1)):
                waited, since = 0, 0
            elif waited >= PATIENCE:
                return space.coefs(), errors.max(axis=1)
        fresh = []
        for j in poles.used:
            own = np.flatnonzero(poles.nearest == j)
            i = own[errors[own].max(axis=1).argmax()]
            some = np.flatnonzero(errors[i] > tol)
            if len(some):
                fresh.append((j, residuals[:, i, some]))


class _Poles:
    """Factorisations at a few shifts, and which alphas each serves."""

    def __init__(self, gram, alphas):
        self.gram, self.alphas = gram, alphas
        self.scale = np.trace(gram) / len(gram)
        self.shifts, self.factors = np.zeros(0), []
        highest = max(min(alphas[-1], self.scale), alphas[0])
        self._factor(np.sqrt(alphas[0] * highest))

    def _factor(self, shift):
        """Add a pole."""
        factor = self.gram.copy(order="F")
        np.einsum("ii->i", factor)[...] += shift
        # A factorisation that fails leaves a worse direction, no wrong solution.
        self.factors.append(None if potrf(factor) else factor)
        self.shifts = np.append(self.shifts, shift)
        distance = np.abs(np.log(self.alphas[:, None] / self.shifts))
        self.nearest = distance.argmin(axis=1)
        # Alphas from the mean eigenvalue on need no pole.
        self.nearest[self.alphas > self.scale] = len(self.shifts)
        self.used = np.unique(self.nearest)

    def add(self, errors):
        """Add a pole at the alpha with the largest error, and tell whether."""
        shift = self.alphas[errors.argmax()]
        if len(self.shifts) == MOST_POLES or shift in self.shifts or shift > self.scale:
            return False
        self._factor(shift)
        return True

    def direction(self, j, residuals):
        """Directions of unit length that reduce some residuals."""
        columns = np.array(residuals, order="F")
        if j < len(self.factors) and self.factors[j] is not None:
            potrs(self.factors[j], columns)
        return columns / np.linalg.norm(columns, axis=0)


class _Space:
    """An orthonormal basis B, and the solutions of every alpha in its span."""

    def __init__(self, gram, moments, alphas, size):
        self.gram, self.moments, self.alphas = gram, moments, alphas
        self.size, self.n = size, 0
        self.basis = np.empty((len(gram), size), order="F")
        self.image = np.empty((len(gram), size), order="F")  # G B
        self.small = np.empty((size, size))  # B^T G B

    def extend(self, directions):
        """Add directions to the basis."""
        for _ in range(2):  # once does not take out all that rounding left
            known = self.basis[:, : self.n]
            directions = directions - known @ (known.T @ directions)
            directions, _ = np.linalg.qr(directions)
        new = slice(self.n, self.n + directions.shape[1])
        self.n = new.stop
        self.basis[:, new] = directions
        self.image[:, new] = symm(self.gram, np.asfortranarray(directions))
        block = self.basis[:, : self.n].T @ self.image[:, new]
        self.small[: self.n, new] = block
        self.small[new, : self.n] = block.T
        values, vectors = np.linalg.eigh(self.small[: self.n, : self.n])
        right = vectors.T @ (self.basis[:, : self.n].T @ self.moments)
        shifted = values.clip(min=0.0)[:, None] + self.alphas
        inner = right[:, None] / shifted[:, :, None]
        self.weights = np.einsum("ij,jak->iak", vectors, inner, optimize=True)
        self.energy = np.einsum("jk,jak->ak", right, inner)  # c^T beta

    def errors(self):
        """Bound of the relative error of every alpha and target, and the residuals."""
        flat = self.weights.reshape(self.n, -1)
        shape = len(self.gram), len(self.alphas), -1
        product = (self.image[:, : self.n] @ flat).reshape(shape)
        product += self.coefs() * self.alphas[:, None]
        residuals = self.moments[:, None] - product
        square = np.einsum("mak,mak->ak", residuals, residuals)
        bound = self.alphas[:, None] * self.energy
        errors = np.sqrt(square / np.where(bound > 0, bound, 1.0))
        return errors, residuals

    def coefs(self):
        """Solutions of every alpha."""
        flat = self.basis[:, : self.n] @ self.weights.reshape(self.n, -1)
        return flat.reshape(len(self.gram), len(self.alphas), -1)
