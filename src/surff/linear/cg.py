r"""Ridge coefficients by conjugate gradients: the Gram matrix is never formed.

For features Z, targets Y and row weights w the system of an ``alpha`` is

.. math:: A \beta = (Z - \bar z)^\top W (Z - \bar z)\, \beta + \alpha \beta
          = (Z - \bar z)^\top W (Y - \bar y).

One product with A is a pass over the data: each block of rows is mapped, multiplied by
the directions of all alphas and targets and, while it lies in the cache, by its own
transpose. That takes ``O(n m)`` where the Gram matrix takes ``O(n m^2)``. The number of
passes depends on the preconditioner. With some rows S, drawn at random, and
:math:`\omega = \sum_i w_i` it is

.. math:: M = \frac{\omega}{\omega_S}
          (Z_S - \bar z_S)^\top W_S (Z_S - \bar z_S) + \mu I = G_S + \mu I.

The sample knows a direction well if its eigenvalue is above what a few rows make of it
by chance. So M has :math:`\mu = \max(\alpha, \rho)`, where :math:`\rho` leaves the
sample a fixed number of rows for each of its effective degrees of freedom
:math:`\mathrm{tr}\, G_S (G_S + \rho I)^{-1}`, found from a few Lanczos steps.

The error is measured where it matters. If :math:`\beta_j` are the iterates, the
differences of :math:`\|\beta_j - \beta^*\|_A^2` are products of numbers that the method
computes anyway, and the rest of the series is taken for geometric. Since

.. math:: \|\beta - \beta^*\|_A^2 \ge \sum_i w_i (f(x_i) - f^*(x_i))^2,

iterations stop when the predictions f for the training rows are known up to ``tol``
standard deviations of the target, in the root mean square: the mean squared error is
then larger than need be by ``tol**2`` of the target's variance at most.

References
----------
.. [1] M. R. Hestenes, E. Stiefel, "Methods of Conjugate Gradients for Solving Linear
   Systems", Journal of Research of the National Bureau of Standards 49(6), 1952.
.. [2] A. Rudi, L. Carratino, L. Rosasco, "FALKON: An Optimal Large Scale Kernel
   Method", NIPS 2017.
.. [3] S. Ubaru, J. Chen, Y. Saad, "Fast Estimation of tr(f(A)) via Stochastic Lanczos
   Quadrature", SIAM Journal on Matrix Analysis and Applications 38(4), 2017.
.. [4] Z. Strakos, P. Tichy, "On Error Estimation in the Conjugate Gradient Method and
   Why it Works in Finite Precision Computations", ETNA 13, 2002.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.linalg import blas, eigh_tridiagonal, lapack

from surff.backend import (
    UNWATCHED,
    Stage,
    feature_blocks,
    map_slices,
    stage,
    time_is_up,
)
from surff.linear.banded import band_form
from surff.linear.normal_equations import accumulate, factored

__all__ = ["Solution", "cheaper_than_cholesky", "conjugate_gradient"]

#: Rows of the preconditioner per column of the map: a flat optimum on covtype.
SAMPLE_FACTOR = 2.0

#: Rows of the preconditioner per effective degree of freedom: a flat optimum, too.
ROWS_PER_DOF = 3.0

#: Smallest tolerance for which products in float32 are accurate enough.
MIXED_TOL = 1e-4

#: Lanczos steps from which the degrees of freedom are estimated, to a few percent.
LANCZOS_STEPS = 40

#: Steps over which the rate of convergence is measured: one alone is erratic.
RATE_STEPS = 4

#: Cost of a feature in one pass, in multiply-adds of ``syrk`` in the same type: the map
#: and its two products, measured. The projection comes on top.
PASS_COST = 150

#: Passes that the cost model assumes: usual for the default tolerance.
TYPICAL_PASSES = 12


class Solution(NamedTuple):
    """Coefficients of every alpha, and how they were found."""

    coefs: np.ndarray  # (m, n_alphas, k)
    intercepts: np.ndarray  # (n_alphas, k)
    n_iter: int  # passes over the data after the first
    errors: np.ndarray  # (n_alphas, k), estimated, in standard deviations of the target
    converged: bool


def conjugate_gradient(
    feature_map: Any,
    X: Any,
    Y: np.ndarray,
    alphas: npt.ArrayLike,
    sample_weight: np.ndarray | None = None,
    fit_intercept: bool = True,
    *,
    rng: np.random.Generator,
    rows: np.ndarray | None = None,
    tol: float = 1e-2,
    max_iter: int = 100,
    precision: str = "mixed",
    n_sample: int | None = None,
    cache_bytes: int = 0,
) -> Solution:
    """Ridge coefficients of every alpha and target, from the same passes.

    Parameters
    ----------
    feature_map, X, Y, sample_weight, rows
        See `surff.linear.accumulate`.
    alphas : array-like of float, shape (n_alphas,)
        Regularisation, >= 0.
    fit_intercept : bool, default=True
        Whether the model has an intercept.
    rng : numpy.random.Generator
        Draws the preconditioner's rows.
    tol : float, default=1e-2
        Estimated root mean square error of the predictions for the training rows, in
        standard deviations of the target, at which to stop.
    max_iter : int, default=100
        Passes at most, besides the first.
    precision : {"mixed", "float64"}, default="mixed"
        Whether float64 rows are mapped and multiplied in float32, too. That is twice as
        fast and accurate enough for a ``tol`` of 1e-4 or more; a smaller one turns it
        off.
    n_sample : int, optional
        Rows of the preconditioner; `SAMPLE_FACTOR` times the columns by default.
    cache_bytes : int, default=0
        Memory in which the features of the first rows of each thread are kept, which
        are then not made again in each pass.

    Returns
    -------
    Solution

    Warns
    -----
    sklearn.exceptions.ConvergenceWarning
        If ``max_iter`` passes, or the digits of float32, were not enough.

    Notes
    -----
    ``O(n m (d + k n_alphas))`` time per pass and one ``(m, m)`` matrix of memory, two
    and a half for several alphas; ``n_sample m^2 + m^3 / 3`` operations before the
    first.
    Sums over blocks and the iteration itself are in float64 with any ``precision``. The
    estimate of the error holds within a factor of two or so unless convergence is slow,
    with an alpha near 0 and a Gram matrix near singular, where it may be too low.
    """
    if precision == "mixed" and tol >= MIXED_TOL:
        feature_map = feature_map.astype(np.float32)
    alphas = np.asarray(alphas, dtype=np.float64)
    m, k = feature_map.n_components, Y.shape[1]
    passes = FeaturePasses(
        feature_map, X, Y, sample_weight, rows, fit_intercept, cache_bytes
    )
    precondition = preconditioner(
        feature_map, X, sample_weight, rows, fit_intercept, alphas, k, rng, n_sample
    )
    shift = np.repeat(alphas, k)  # of each column: alphas first, targets within
    scale = np.tile(passes.target_spread, len(alphas))

    # Where alpha is 0 a step may be as large as numbers go; it is the last one then.
    with (
        stage("conjugate gradients", unit="passes") as progress,
        np.errstate(over="ignore", invalid="ignore"),
    ):
        coef, error, n_iter = iterate(
            passes, precondition, shift, scale, tol, max_iter, progress
        )
    errors = np.sqrt(error / np.where(scale > 0, scale, 1.0))
    converged = bool(np.all(errors <= tol))
    coefs = coef.reshape(m, len(alphas), k)
    intercepts = passes.target_mean - np.tensordot(passes.feature_mean, coefs, 1)
    return Solution(coefs, intercepts, n_iter, errors.reshape(-1, k), converged)


def iterate(
    passes: FeaturePasses,
    precondition: Callable[[np.ndarray, Sequence[int]], np.ndarray],
    shift: np.ndarray,
    scale: np.ndarray,
    tol: float,
    max_iter: int,
    progress: Stage = UNWATCHED,
) -> tuple[np.ndarray, np.ndarray, int]:
    """Iterate the columns of all alphas and targets in lock step.

    Parameters
    ----------
    passes : FeaturePasses
        Products with the Gram matrix.
    precondition : callable
        See `preconditioner`.
    shift : ndarray of shape (n_columns,)
        Regularisation of each column; alphas first, targets within.
    scale : ndarray of shape (n_columns,)
        Sum of squares of each column's target.
    tol, max_iter
        See `conjugate_gradient`.
    progress : Stage, optional
        Counts passes.

    Returns
    -------
    coef : ndarray of shape (m, n_columns)
    error : ndarray of shape (n_columns,)
        Estimated squared error in the norm of A.
    n_iter : int
        Passes made.
    """
    n_repeats = len(shift) // passes.moments.shape[1]
    coef = np.zeros((len(passes.moments), len(shift)))
    residual = np.tile(passes.moments, (1, n_repeats))
    direction = precondition(residual, range(len(shift)))
    size = np.einsum("mc,mc->c", residual, direction)
    gains = []  # of each step: by how much the squared error in A's norm fell
    error = np.where(size > 0, np.inf, 0.0)
    active = np.flatnonzero(size > 0)
    while len(active) and len(gains) < max_iter and not (gains and time_is_up()):
        P = direction[:, active]
        product = passes.gram_times(P) + shift[active] * P
        curvature = np.einsum("mc,mc->c", P, product)
        regular = curvature > 0  # else rounding errors alone are left
        active, P, product = active[regular], P[:, regular], product[:, regular]
        old = size[active]
        step = old / curvature[regular]
        coef[:, active] += step * P
        residual[:, active] -= step * product
        preconditioned = precondition(residual[:, active], active)
        size[active] = np.einsum("mc,mc->c", residual[:, active], preconditioned)
        direction[:, active] = preconditioned + (size[active] / old) * P
        gains.append(np.zeros(len(shift)))
        gains[-1][active] = step * old
        error[active] = np.where(size[active] <= 0, 0.0, error_left(gains, active))
        progress.advance()
        unfinished = error[active] > min(tol, 1.0) ** 2 * scale[active]
        active = active[unfinished & (size[active] > 0)]
    return coef, error, len(gains)


def error_left(gains: list[np.ndarray], columns: np.ndarray) -> np.ndarray:
    """Estimated squared error in A's norm after the last step; infinite after one."""
    last = gains[-1][columns]
    before = min(RATE_STEPS, len(gains) - 1)
    if before == 0:
        return np.where(last > 0, np.inf, 0.0)
    rate = (last / gains[-1 - before][columns]) ** (1.0 / before)
    # The series need not fall in every step: a rate near 1 says that nothing is known.
    return last * rate / (1.0 - np.minimum(rate, 0.99))


class FeaturePasses:
    """Passes over the features of rows: the first on creation, for means and moments.

    Parameters
    ----------
    feature_map, X, Y, sample_weight, rows, fit_intercept, cache_bytes
        See `conjugate_gradient`.

    Attributes
    ----------
    moments : ndarray of shape (m, k)
        Right-hand sides.
    feature_mean, target_mean : ndarray of shape (m,), (k,)
        Zeros without an intercept.
    target_spread : ndarray of shape (k,)
        Weighted sums of squares of the targets less their means; of the targets
        themselves where they are constant and there is no intercept.
    """

    def __init__(
        self,
        feature_map: Any,
        X: Any,
        Y: np.ndarray,
        sample_weight: np.ndarray | None,
        rows: np.ndarray | None,
        fit_intercept: bool,
        cache_bytes: int,
    ) -> None:
        self.X, self.rows = X, rows
        taken = slice(None) if rows is None else rows
        Y = Y[taken]
        self.feature_map, self._basis = factored(feature_map, X, rows)
        self.weight = np.ones(len(Y))
        if sample_weight is not None:
            self.weight = sample_weight[taken].astype(np.float64)
        self._cache, self._left, self._lock = {}, cache_bytes, threading.Lock()
        k = Y.shape[1]
        total = self.weight.sum()
        mean = self.weight @ Y / total
        self.target_spread = self.weight @ (Y - mean) ** 2
        square = self.weight @ Y**2
        constant = self.target_spread <= np.finfo(np.float64).eps * square
        self.target_mean = np.zeros(k)
        if fit_intercept:
            self.target_mean = mean
            Y = np.where(constant, 0.0, Y - mean)
        else:  # a constant is to be fitted; there is no other unit for its error
            self.target_spread[constant] = square[constant]
        # The means of features and targets in one pass with the moments.
        V = np.column_stack([self.weight[:, None] * Y, self.weight])
        sums = self._summed(lambda _, block: V[block])
        self.feature_mean = np.zeros(len(sums))
        if fit_intercept:
            self.feature_mean = sums[:, k] / total
        self.moments = sums[:, :k] - np.outer(self.feature_mean, V[:, :k].sum(axis=0))

    def gram_times(self, P: np.ndarray) -> np.ndarray:
        r"""Return ``(Z - mean)^T W (Z - mean) P``, a pass over the data."""
        small = P if self._basis is None else self._basis @ P
        small = np.ascontiguousarray(small, dtype=self.feature_map.dtype)
        offset = self.feature_mean @ P
        total = np.zeros(P.shape[1])

        def weighted(Z, block):
            return self.weight[block, None] * ((Z @ small) - offset)

        product = self._summed(weighted, total)
        return product - np.outer(self.feature_mean, total)

    def _summed(self, values, total=None):
        """Sum of ``Z^T values(Z, block)`` over all blocks, in float64.

        ``total`` receives the column sums of the values.
        """

        def pass_over(part):
            product, sums = 0.0, 0.0
            for block, Z in self._blocks(part):
                V = values(Z, block)
                product = product + Z.T @ V.astype(Z.dtype, copy=False)
                sums = sums + V.sum(axis=0)
            return product, sums

        parts = map_slices(pass_over, len(self.weight))
        if total is not None:
            total += sum(sums for _, sums in parts)
        summed = np.asarray(sum(product for product, _ in parts), dtype=np.float64)
        return summed if self._basis is None else self._basis.T @ summed

    def _blocks(self, part):
        """Positions within ``rows`` and features, block after block."""
        start = part.start
        while start < part.stop and start in self._cache:
            Z = self._cache[start][: part.stop - start]  # the next ones are another's
            yield slice(start, start + len(Z)), Z
            start += len(Z)
        part = slice(start, part.stop)
        for _, Z in feature_blocks(self.feature_map, self.X, self.rows, part):
            self._keep(start, Z)
            yield slice(start, start + len(Z)), Z
            start += len(Z)

    def _keep(self, start, Z):
        """Copy a block into the cache if there is room."""
        with self._lock:
            if Z.nbytes > self._left or start in self._cache:
                return
            self._left -= Z.nbytes
        self._cache[start] = Z.copy()


def preconditioner(
    feature_map: Any,
    X: Any,
    sample_weight: np.ndarray | None,
    rows: np.ndarray | None,
    fit_intercept: bool,
    alphas: np.ndarray,
    n_targets: int,
    rng: np.random.Generator,
    n_sample: int | None,
) -> Callable[[np.ndarray, Sequence[int]], np.ndarray]:
    """Return a function ``(R, columns)`` that divides residuals by M, see the module.

    ``columns`` are the numbers of the columns of R among those of all alphas and
    targets.
    """
    if n_sample is None:
        n_sample = int(SAMPLE_FACTOR * feature_map.n_components)
    rows = np.arange(X.shape[0]) if rows is None else rows
    sample, weight = rows, sample_weight
    if n_sample < len(rows):
        sample = np.sort(rng.choice(rows, n_sample, replace=False))
    share = 1.0
    if weight is None:
        share = len(rows) / len(sample)
    elif weight[sample].any():
        share = weight[rows].sum() / weight[sample].sum()
    else:
        weight = None  # no row of the sample counts; any row will do
        share = sample_weight[rows].sum() / len(sample)
    no_targets = np.empty((X.shape[0], 0))
    equations = accumulate(feature_map, X, no_targets, weight, sample)
    gram = equations.centred(fit_intercept, overwrite=True).gram
    del equations
    gram *= share
    # Below the rounding error of the products, alpha would not keep M positive.
    least = np.finfo(feature_map.dtype).eps * np.trace(gram)
    if len(sample) < len(rows):
        least = max(least, ridge_of_dof(gram, len(sample) / ROWS_PER_DOF, rng))
    alphas = np.maximum(alphas, least)
    if len(alphas) == 1:
        return cholesky_preconditioner(gram, alphas[0])
    return band_preconditioner(gram, alphas, n_targets)


def ridge_of_dof(gram: np.ndarray, dof: float, rng: np.random.Generator) -> float:
    """Ridge that leaves a matrix ``dof`` effective degrees of freedom; 0 if any does.

    By stochastic Lanczos quadrature with one vector of random signs, which for a large
    matrix is within a few percent.
    """
    m = len(gram)
    if m <= dof:
        return 0.0
    steps = min(LANCZOS_STEPS, m)
    basis = np.zeros((steps, m))
    diagonal, beside = np.zeros(steps), np.zeros(steps)
    v = rng.choice([-1.0, 1.0], m) / np.sqrt(m)
    for i in range(steps):
        basis[i] = v
        v = blas.dsymv(1.0, gram, v, lower=0)
        diagonal[i] = basis[i] @ v
        for _ in range(2):  # once does not take out all that rounding left
            v -= basis[: i + 1].T @ (basis[: i + 1] @ v)
        beside[i] = np.linalg.norm(v)
        if beside[i] <= np.finfo(np.float64).eps * diagonal[: i + 1].max():
            steps = i + 1
            break
        v /= beside[i]
    nodes, vectors = eigh_tridiagonal(diagonal[:steps], beside[: steps - 1])
    nodes, weights = nodes.clip(min=0.0), m * vectors[0] ** 2
    low, high = 0.0, nodes.max() * m / dof  # dof <= trace / ridge
    if weights[nodes > 0].sum() <= dof:
        return 0.0
    for _ in range(60):
        ridge = 0.5 * (low + high)
        if weights @ (nodes / (nodes + ridge)) > dof:
            low = ridge
        else:
            high = ridge
    return high


def cholesky_preconditioner(
    gram: np.ndarray, alpha: float
) -> Callable[[np.ndarray, Sequence[int]], np.ndarray]:
    """M of one alpha, factored in the memory of ``gram``."""
    diagonal = np.einsum("ii->i", gram)
    diagonal += alpha
    factor, _ = lapack.dpotrf(gram, lower=0, clean=0, overwrite_a=1)

    def precondition(R, _columns):  # all have the same alpha
        return lapack.dpotrs(factor, np.asfortranarray(R), lower=0)[0]

    return precondition


def band_preconditioner(
    gram: np.ndarray, alphas: np.ndarray, n_targets: int
) -> Callable[[np.ndarray, Sequence[int]], np.ndarray]:
    """M of every alpha, in one band form."""
    form = band_form(gram)
    factors = []
    for alpha in alphas:
        factor = form.band.copy(order="F")
        factor[0] += alpha
        factors.append(lapack.dpbtrf(factor, lower=1, overwrite_ab=1)[0])

    def precondition(R, columns):
        rotated = form.rotated(R)
        of_alpha = np.asarray(columns) // n_targets
        for i in np.unique(of_alpha):
            some = of_alpha == i
            rotated[:, some] = lapack.dpbtrs(factors[i], rotated[:, some], lower=1)[0]
        return form.rotated_back(rotated)

    return precondition


def cheaper_than_cholesky(n_samples: int, n_features: int, n_components: int) -> bool:
    """Whether conjugate gradients take less time than the Gram matrix, for one alpha.

    Counts multiply-adds of ``syrk``: ``n m^2`` for the Gram matrix; ``n m (d + c)`` for
    each of about `TYPICAL_PASSES` passes, with c = `PASS_COST`, and the sample's
    Gram matrix. Both factor a matrix of the same size.
    """
    n, m = n_samples, n_components
    sample = min(n, SAMPLE_FACTOR * m)
    passes = TYPICAL_PASSES * n * m * (n_features + PASS_COST)
    return passes + sample * m**2 < n * m**2
