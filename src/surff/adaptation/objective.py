r"""Ridge regression with the coefficients eliminated, as a function of the frequencies.

For frequencies W, features Z(W) and targets Y with row weights :math:`\omega_i` that
sum to one the objective is

.. math:: J(W) = \min_{\beta, b} \sum_i \omega_i \|y_i - b - z_i^\top \beta\|^2
          + \lambda \|\beta\|^2 .

The minimum has no derivative in :math:`\beta` and b, so only the features' own
derivative is left (variable projection, or the envelope theorem). With projections
:math:`p_{ij} = w_j^\top x_i` and residuals :math:`r_i` at the minimum

.. math:: \frac{\partial J}{\partial w_j} = -\frac{2}{\sqrt s} \sum_i \omega_i
          \bigl[ r_i^\top (\beta^{\sin}_j \cos p_{ij} - \beta^{\cos}_j \sin p_{ij})
          \bigr]\, x_i ,

one product of a matrix of all rows by frequencies with X. Its product with W is the
gradient by the rows, for what is done to these before (`surff.kernels.warp`):

.. math:: \frac{\partial J}{\partial x_i} = -\frac{2}{\sqrt s} \sum_j \omega_i
          \bigl[ r_i^\top (\beta^{\sin}_j \cos p_{ij} - \beta^{\cos}_j \sin p_{ij})
          \bigr]\, w_j .

The rows decide where all of that is computed: NumPy's and sparse ones here, on all
threads, any other array's by its own library on its device. Only the solution, of one
equation per column of features, is NumPy's and in float64.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.linalg import lapack

from surff.backend import (
    Array,
    asarray_like,
    compiled,
    dense_features,
    map_slices,
    other_namespace,
    potrf,
    rows_of,
    to_numpy,
    wide_dtype,
)
from surff.kernels import NARROW_ROWS, FourierMap, fourier_features
from surff.linear import SingularError

__all__ = [
    "Adam",
    "Projected",
    "compiled",
    "cosine_schedule",
    "projected_objective",
]

#: Multiplications of a Gram matrix per thread: with fewer, starting one costs more
#: than it saves.
THREAD_MULTIPLICATIONS = 2 * 10**7

#: Most equations that SciPy solves: it holds the interpreter's lock, and is still done
#: before a call that releases the lock has started.
SHORT = 64


class Projected(NamedTuple):
    """The objective at its minimum over the coefficients, and its gradient."""

    objective: float
    gradient: np.ndarray  # (n_frequencies, n_features)
    row_gradient: Array | None = None  # (n_samples, n_features), where X is


def projected_objective(
    frequencies: np.ndarray,
    X: Array,
    Y: np.ndarray,
    alpha: float,
    sample_weight: np.ndarray | None = None,
    by_rows: bool = False,
    workspace: dict[tuple, Any] | None = None,
) -> Projected:
    r"""Ridge objective with eliminated coefficients, and its gradient.

    Parameters
    ----------
    frequencies : ndarray of shape (n_frequencies, n_features)
        W, radians per unit of ``X``; same dtype as ``X``.
    X : array or CSR matrix of shape (n_samples, n_features)
        Rows, float32 or float64.
    Y : ndarray of shape (n_samples, n_targets)
        Targets, same dtype as ``X``.
    alpha : float
        :math:`\lambda`, > 0, in units of the mean of :math:`z_i z_i^\top`, whose trace
        is one.
    sample_weight : ndarray of shape (n_samples,), optional
        Row weights, >= 0, with a positive sum.
    by_rows : bool, default=False
        Whether to return the gradient by the rows as well.
    workspace : dict, optional
        Keeps the largest arrays for the next call with as many dense NumPy rows, which
        writes over them: fresh memory costs as much as the features that it holds. Not
        to be shared by calls at the same time.

    Returns
    -------
    Projected
        On the host, except for the gradient by the rows.

    Raises
    ------
    SingularError
        If the equations are singular to working precision.

    Notes
    -----
    ``O(n s (s + d + k) + s^3)`` time for n rows and k targets, and some matrices of n
    by 2 s. The Gram matrix is formed in the dtype of ``X`` and solved in float64.
    Between the host and the device of ``X`` go the other arguments, the result and the
    sums over rows, of which the Gram matrix is the largest.

    References
    ----------
    .. [1] G. H. Golub, V. Pereyra, "The Differentiation of Pseudo-Inverses and
       Nonlinear Least Squares Problems Whose Variables Separate", SIAM Journal on
       Numerical Analysis 10(2), 1973.

    Examples
    --------
    At a frequency of zero the features are constant, and only the intercept is left.

    >>> import numpy as np
    >>> X, Y = np.array([[1.0], [2.0]]), np.array([[0.0], [1.0]])
    >>> round(projected_objective(np.zeros((1, 1)), X, Y, alpha=0.1).objective, 6)
    0.25
    """
    s, n_rows, dtype = len(frequencies), X.shape[0], frequencies.dtype
    if sample_weight is None:
        weight = np.full(n_rows, 1.0 / n_rows, dtype)
    else:
        weight = (sample_weight / sample_weight.sum()).astype(dtype)
    least = max(64, THREAD_MULTIPLICATIONS // (2 * s) ** 2)
    if other_namespace(X) is not None:
        frequencies, Y, weight = (asarray_like(a, X) for a in (frequencies, Y, weight))
        least = n_rows  # its library shares the work out
    parts = map_slices(
        lambda rows: _summed(frequencies, rows, X, Y, weight, workspace), n_rows, least
    )
    z_mean = sum(part.weight * part.z_mean for part in parts)
    y_mean = sum(part.weight * part.y_mean for part in parts)
    gram = parts[0].gram
    for part in parts[1:]:
        gram += part.gram
    moments = sum(part.moments for part in parts)
    for part in parts if len(parts) > 1 else ():
        # Each part's sums are about its own means.
        shift, target_shift = part.z_mean - z_mean, part.y_mean - y_mean
        gram += part.weight * np.outer(shift, shift)
        moments += part.weight * np.outer(shift, target_shift)

    np.einsum("ii->i", gram)[...] += alpha
    coef = _solved(gram, moments, alpha)

    def slopes(some):
        return [
            _slopes(part, frequencies, X, Y, weight, coef, z_mean, y_mean, by_rows)
            for part in parts[some]
        ]

    # Over the parts, not the rows: the number of threads may have changed meanwhile.
    results = [result for some in map_slices(slopes, len(parts), 1) for result in some]
    objective = sum(result.objective for result in results)
    objective += alpha * np.vdot(coef, coef)
    row_gradient = results[0].row_gradient
    if len(results) > 1 and by_rows:
        row_gradient = np.concatenate([result.row_gradient for result in results])
    gradient = sum(result.gradient for result in results)
    return Projected(float(objective), gradient, row_gradient)


class _Part(NamedTuple):
    """Features of one thread's rows, and their sums about their own means."""

    rows: slice
    Z: Array  # (2 s, n_rows), cosine and sine in turn, where X is
    spare: Array  # as large, to be written over
    weight: float
    z_mean: np.ndarray
    y_mean: np.ndarray
    gram: np.ndarray  # Fortran order
    moments: np.ndarray


def _solved(gram, moments, alpha):
    """Solution of the equations; ``gram`` is overwritten."""
    if len(gram) <= SHORT:
        _, coef, status = lapack.dposv(gram, moments, lower=0, overwrite_a=True)
    else:
        coef, status = None, potrf(gram)
    if status:
        raise SingularError(
            f"Z^T Z + alpha I of {len(gram)} columns is singular to working precision "
            f"(alpha={alpha:.3g}); increase alpha."
        )
    return lapack.dpotrs(gram, moments, lower=0)[0] if coef is None else coef


def _summed(frequencies, rows, X, Y, weight, workspace):
    """`_Part` of some rows."""
    X, Y, weight = rows_of(X, rows), Y[rows, ...], weight[rows, ...]
    room = _room(workspace, rows, frequencies, X)
    if other_namespace(X) is not None:
        sums = _array_sums(_transposed(frequencies, X), Y, weight)
    elif sparse.issparse(X):
        Z = _transposed(frequencies, X)
        sums = _sums(Z, Y, weight, np.empty_like(Z))
    else:
        arrays = map(np.ascontiguousarray, (frequencies, X, Y, weight))
        sums = _sums_of_rows(*arrays, *room[:2])
    Z, total, z_mean, y_mean, centred, moments = sums
    gram = room[2]
    gram[...] = to_numpy(centred @ centred.T)  # NumPy computes half of it
    return _Part(
        rows,
        Z,
        centred,
        float(total),
        to_numpy(z_mean).astype(np.float64),
        to_numpy(y_mean).astype(np.float64),
        gram,
        to_numpy(moments).astype(np.float64),
    )


def _room(workspace, rows, frequencies, X):
    """Arrays to write to, those of the last call if kept.

    Two for the features of dense NumPy rows, empty ones for others, and one for the
    Gram matrix.
    """
    s = frequencies.shape[0]
    dense = other_namespace(X) is None and not sparse.issparse(X)
    shape = (s, 2 * X.shape[0]) if dense else (0, 0)
    key = (rows.start, rows.stop, *shape, s, X.dtype if dense else None)
    if workspace is None or key not in workspace:
        dtype = X.dtype if dense else np.float64
        arrays = (
            *(np.empty(shape, dtype) for _ in range(2)),
            np.empty((2 * s, 2 * s), order="F"),
        )
        if workspace is None:
            return arrays
        workspace[key] = arrays
    return workspace[key]


def _array_sums(Z, Y, weight):
    """`_sums` of another library's arrays."""
    total = float(_sum(weight))
    share = weight / total if total > 0 else weight
    z_mean, y_mean, roots = Z @ share, share @ Y, weight**0.5
    centred = (Z - z_mean[:, None]) * roots
    targets = (Y - y_mean) * roots[:, None]
    return Z, total, z_mean, y_mean, centred, centred @ targets


@compiled
def _sums(Z, Y, weight, centred):
    """Sums of features, (2 s, n), and features less their means times root weights."""
    total = 0.0
    for i in range(len(weight)):
        total += float(weight[i])
    share = (weight / total).astype(weight.dtype) if total > 0 else weight
    roots = np.sqrt(weight)
    z_mean, y_mean = np.dot(Z, share), np.dot(share, Y)
    for j in range(Z.shape[0]):
        row, out, centre = Z[j], centred[j], z_mean[j]
        for i in range(Z.shape[1]):
            out[i] = (row[i] - centre) * roots[i]
    targets = np.empty_like(Y)
    for i in range(Y.shape[0]):
        for t in range(Y.shape[1]):
            targets[i, t] = (Y[i, t] - y_mean[t]) * roots[i]
    return Z, total, z_mean, y_mean, centred, np.dot(centred, targets)


@compiled
def _sums_of_rows(frequencies, X, Y, weight, Z, centred):
    """`_sums` of the features of dense rows, in one call: steps are short."""
    s, n_rows = frequencies.shape[0], X.shape[0]
    P = np.empty((min(s, NARROW_ROWS), n_rows), X.dtype)
    factors = np.full(n_rows, math.sqrt(1.0 / s)).astype(X.dtype)
    dense_features(frequencies, np.ascontiguousarray(X.T), factors, P, Z)
    shape = (2 * s, n_rows)
    return _sums(Z.reshape(shape), Y, weight, centred.reshape(shape))


def _transposed(frequencies, X):
    """Features in rows, (2 s, n_rows), cosine and sine of each frequency in turn.

    The product of a row and a frequency is symmetric in the two, so the map of the
    frequencies by the rows is this, and its loops are as long as there are rows.
    """
    s, n_rows = frequencies.shape[0], X.shape[0]
    if sparse.issparse(X):
        Z = FourierMap(frequencies)(X)
        Z = Z.T.reshape(2, s, n_rows).swapaxes(0, 1).reshape(2 * s, n_rows)
        return np.ascontiguousarray(Z)
    xp, factor = other_namespace(X), np.full(n_rows, math.sqrt(n_rows / s))
    Z = fourier_features(frequencies, X, asarray_like(factor, X))
    return xp.reshape(Z, (2 * s, n_rows))


def _slopes(part, frequencies, X, Y, weight, coef, z_mean, y_mean, by_rows):
    """`Projected` of a part's rows at a solution, without the penalty."""
    Z, rows = part.Z, part.rows
    z_mean, y_mean, coef = (asarray_like(a, Z) for a in (z_mean, y_mean, coef))
    offset = y_mean - z_mean @ coef
    X, Y, weight = rows_of(X, rows), Y[rows, ...], weight[rows, ...]
    if other_namespace(Z) is None:
        objective, slopes = _slopes_of_rows(
            Z, *map(np.ascontiguousarray, (Y, weight, coef, offset)), part.spare
        )
    else:
        residual = (Y - offset).T - coef.T @ Z
        weighted = residual * weight
        turned = coef @ weighted
        slopes = turned[1::2, :] * Z[0::2, :] - turned[0::2, :] * Z[1::2, :]
        objective = float(_sum(weighted * residual))
    row_gradient = -2.0 * (slopes.T @ frequencies) if by_rows else None
    return Projected(objective, -2.0 * to_numpy(slopes @ X), row_gradient)


@compiled
def _slopes_of_rows(Z, Y, weight, coef, offset, turned):
    """Weighted squares of the residuals, and each pair's slope at every row.

    The slopes are the first half of ``turned``, which is as large as ``Z``.
    """
    n_targets, n_rows = Y.shape[1], Y.shape[0]
    residual = np.dot(coef.T, Z)
    objective = 0.0
    for t in range(n_targets):
        row = residual[t]
        for i in range(n_rows):
            value = Y[i, t] - offset[t] - row[i]
            row[i] = value * weight[i]
            objective += float(value) * float(row[i])
    if n_targets == 1:  # an outer product is much faster without a matrix product
        for j in range(Z.shape[0]):
            for i in range(n_rows):
                turned[j, i] = coef[j, 0] * residual[0, i]
    else:
        np.dot(coef, residual, turned)
    slopes = turned[: Z.shape[0] // 2]
    for j in range(slopes.shape[0]):
        # Row j is written when it has been read.
        cosine, sine, out = Z[2 * j], Z[2 * j + 1], slopes[j]
        of_cosine, of_sine = turned[2 * j], turned[2 * j + 1]
        for i in range(n_rows):
            out[i] = of_sine[i] * cosine[i] - of_cosine[i] * sine[i]
    return objective, slopes


def _sum(values):
    """Sum of another library's values, in float64 if its device has that type."""
    return other_namespace(values).sum(values, dtype=wide_dtype(values))


class Adam:
    r"""Steps of about the rate in every coordinate, whatever the gradient's size.

    .. math:: m \leftarrow \beta_1 m + (1 - \beta_1) g, \quad
              v \leftarrow \beta_2 v + (1 - \beta_2) g^2, \quad
              \Delta = -\eta\, \hat m / \sqrt{\hat v}

    with :math:`\hat m, \hat v` divided by what the weights of the past sum to.

    References
    ----------
    .. [1] D. P. Kingma, J. Ba, "Adam: A Method for Stochastic Optimization", ICLR 2015.

    Examples
    --------
    >>> import numpy as np
    >>> Adam((2,)).step(np.array([4.0, -1e-9]), rate=0.1)
    array([-0.1,  0.1])
    """

    def __init__(self, shape: tuple[int, ...], beta1: float = 0.9, beta2: float = 0.99):
        self.beta1, self.beta2 = beta1, beta2
        self._mean, self._square = np.zeros(shape), np.zeros(shape)
        self._n_steps = 0

    def step(self, gradient: npt.ArrayLike, rate: float) -> np.ndarray:
        """Change of the parameters, float64; zero where every gradient was zero."""
        gradient = np.asarray(gradient, dtype=np.float64)
        self._n_steps += 1
        self._mean += (1.0 - self.beta1) * (gradient - self._mean)
        self._square += (1.0 - self.beta2) * (gradient**2 - self._square)
        mean = self._mean / (1.0 - self.beta1**self._n_steps)
        root = np.sqrt(self._square / (1.0 - self.beta2**self._n_steps))
        return -rate * mean / np.where(root > 0, root, 1.0)


def cosine_schedule(step: int, n_steps: int, warm_up: float = 0.05) -> float:
    """Factor of the rate at a step: linear rise, then down to zero along a cosine.

    Examples
    --------
    >>> [round(cosine_schedule(step, 100), 2) for step in (0, 4, 50, 99)]
    [0.2, 1.0, 0.5, 0.0]
    """
    rise = min(1.0, (step + 1) / max(1.0, warm_up * n_steps))
    return rise * 0.5 * (1.0 + math.cos(math.pi * step / n_steps))
