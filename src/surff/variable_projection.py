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

one product of a matrix of all rows by frequencies with X.

Rows decide where all of that is computed: NumPy's and sparse ones here, on all threads,
any other array's by its own library on its device. Only the solution, of one equation
for each column of features, is NumPy's and in float64.
"""

import math
from typing import NamedTuple

import numba
import numpy as np
from scipy import sparse
from scipy.linalg import lapack

from surff._blas import potrf
from surff._threads import map_slices
from surff.array_api import asarray_like, other_namespace, to_numpy, wide_dtype
from surff.blocks import rows_of
from surff.fourier import FourierMap, fourier_features

__all__ = ["Adam", "Projected", "cosine_schedule", "projected_objective"]

compiled = numba.njit(cache=True, nogil=True, error_model="numpy")

#: Multiplications of a Gram matrix for which another thread is worth its start.
THREAD_MULTIPLICATIONS = 2 * 10**7


class Projected(NamedTuple):
    """The objective at its minimum over the coefficients, and its gradient."""

    objective: float
    gradient: np.ndarray  # (n_frequencies, n_features)


def projected_objective(frequencies, X, Y, alpha, sample_weight=None):
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

    Returns
    -------
    Projected
        On the host.

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
        lambda rows: _summed(frequencies, rows, X, Y, weight), n_rows, least
    )
    z_mean = sum(part.weight * part.z_mean for part in parts)
    y_mean = sum(part.weight * part.y_mean for part in parts)
    gram = sum(part.gram for part in parts)
    moments = sum(part.moments for part in parts)
    for part in parts if len(parts) > 1 else ():
        # What each part's own means left out.
        shift, target_shift = part.z_mean - z_mean, part.y_mean - y_mean
        gram += part.weight * np.outer(shift, shift)
        moments += part.weight * np.outer(shift, target_shift)

    np.einsum("ii->i", gram)[...] += alpha
    potrf(gram)
    coef, _ = lapack.dpotrs(gram, moments, lower=0)
    results = map_slices(
        lambda rows: _slopes(parts, rows, X, Y, weight, coef, z_mean, y_mean),
        n_rows,
        least,
    )
    objective = sum(result.objective for result in results) + alpha * np.sum(coef**2)
    return Projected(float(objective), sum(result.gradient for result in results))


class _Part(NamedTuple):
    """Features of one thread's rows and their sums, about their own means."""

    rows: slice
    Z: np.ndarray  # (2 s, n_rows): a cosine and a sine after the other; beside X
    weight: float
    z_mean: np.ndarray
    y_mean: np.ndarray
    gram: np.ndarray  # Fortran order
    moments: np.ndarray


def _summed(frequencies, rows, X, Y, weight):
    """`_Part` of some rows."""
    Z = _transposed(frequencies, rows_of(X, rows))
    Y, weight = Y[rows, ...], weight[rows, ...]
    total = float(_sum(weight))
    share = weight / total if total > 0 else weight
    z_mean, y_mean, roots = Z @ share, share @ Y, weight**0.5
    centred = _centred(Z, z_mean, roots)
    targets = (Y - y_mean) * roots[:, None]
    return _Part(
        rows,
        Z,
        total,
        to_numpy(z_mean).astype(np.float64),
        to_numpy(y_mean).astype(np.float64),
        to_numpy(centred @ centred.T).astype(np.float64, order="F"),
        to_numpy(centred @ targets).astype(np.float64),
    )


def _centred(Z, mean, roots):
    """``(Z - mean[:, None]) * roots``."""
    if isinstance(Z, np.ndarray):
        return _centred_in_one_visit(Z, mean, roots)
    return (Z - mean[:, None]) * roots


@compiled
def _centred_in_one_visit(Z, mean, roots):
    """`_centred` for NumPy."""
    centred = np.empty_like(Z)
    for j in range(Z.shape[0]):
        row, out, centre = Z[j], centred[j], mean[j]
        for i in range(Z.shape[1]):
            out[i] = (row[i] - centre) * roots[i]
    return centred


def _slopes_of_pairs(Z, turned):
    """Each frequency's cosine times the second row of its pair, less the other way."""
    if isinstance(Z, np.ndarray):
        return _slopes_in_one_visit(Z, turned)
    return turned[1::2, :] * Z[0::2, :] - turned[0::2, :] * Z[1::2, :]


@compiled
def _slopes_in_one_visit(Z, turned):
    """`_slopes_of_pairs` for NumPy."""
    slopes = np.empty((Z.shape[0] // 2, Z.shape[1]), Z.dtype)
    for j in range(slopes.shape[0]):
        cosine, sine, out = Z[2 * j], Z[2 * j + 1], slopes[j]
        of_cosine, of_sine = turned[2 * j], turned[2 * j + 1]
        for i in range(Z.shape[1]):
            out[i] = of_sine[i] * cosine[i] - of_cosine[i] * sine[i]
    return slopes


def _transposed(frequencies, X):
    """Features as rows, (2 s, n_rows), the cosine and the sine of each together.

    The product of a row and a frequency is symmetric in the two, so the map of the
    frequencies by the rows is this, and its loops are as long as there are rows.
    """
    s, n_rows = frequencies.shape[0], X.shape[0]
    if sparse.issparse(X):
        Z = FourierMap(frequencies)(X)
        return Z.T.reshape(2, s, n_rows).swapaxes(0, 1).reshape(2 * s, n_rows)
    factor = np.full(n_rows, math.sqrt(n_rows / s))
    if (xp := other_namespace(X)) is not None:
        Z = fourier_features(frequencies, X, asarray_like(factor, X))
        return xp.reshape(Z, (2 * s, n_rows))
    return FourierMap(X, factor)(frequencies).reshape(2 * s, n_rows)


def _slopes(parts, rows, X, Y, weight, coef, z_mean, y_mean):
    """`Projected` of some rows at a solution, without the penalty."""
    (Z,) = (part.Z for part in parts if part.rows == rows)
    z_mean, y_mean, coef = (asarray_like(a, Z) for a in (z_mean, y_mean, coef))
    residual = (Y[rows, ...] - (y_mean - z_mean @ coef)).T - coef.T @ Z
    weighted = residual * weight[rows, ...]
    # An outer product is much faster without a matrix product.
    turned = coef * weighted if weighted.shape[0] == 1 else coef @ weighted
    slopes = _slopes_of_pairs(Z, turned)
    gradient = -2.0 * to_numpy(slopes @ rows_of(X, rows))
    return Projected(float(_sum(weighted * residual)), gradient)


def _sum(values):
    """Sum of all values, in float64 where the device has that type."""
    if isinstance(values, np.ndarray):
        return values.sum(dtype=np.float64)
    return other_namespace(values).sum(values, dtype=wide_dtype(values))


class Adam:
    r"""Steps of the size of the rate in every coordinate, whatever the gradient's size.

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

    def __init__(self, shape, beta1=0.9, beta2=0.99):
        self.beta1, self.beta2 = beta1, beta2
        self._mean, self._square = np.zeros(shape), np.zeros(shape)
        self._n_steps = 0

    def step(self, gradient, rate):
        """Change of the parameters, float64; zero where there never was a gradient."""
        gradient = np.asarray(gradient, dtype=np.float64)
        self._n_steps += 1
        self._mean += (1.0 - self.beta1) * (gradient - self._mean)
        self._square += (1.0 - self.beta2) * (gradient**2 - self._square)
        mean = self._mean / (1.0 - self.beta1**self._n_steps)
        root = np.sqrt(self._square / (1.0 - self.beta2**self._n_steps))
        return -rate * mean / np.where(root > 0, root, 1.0)


def cosine_schedule(step, n_steps, warm_up=0.05):
    """Factor of the rate at a step: up in a line, then down to zero along a cosine.

    Examples
    --------
    >>> [round(cosine_schedule(step, 100), 2) for step in (0, 4, 50, 99)]
    [0.2, 1.0, 0.5, 0.0]
    """
    rise = min(1.0, (step + 1) / max(1.0, warm_up * n_steps))
    return rise * 0.5 * (1.0 + math.cos(math.pi * step / n_steps))
