r"""A bandwidth for each column, by the gradient of the evidence.

The log marginal likelihood of a Gaussian process on features Z
(`surff.linear.evidence`) has, with its noise variance concentrated out, the derivative

.. math:: \frac{\partial \log p(y)}{\partial Z} = \frac{1}{\sigma^2} r \beta^\top
          - \tilde Z (G + \alpha I)^{-1}

by the features of the rows, with residuals r, coefficients :math:`\beta` and centred
features :math:`\tilde Z`. With a frequency's pair of features
:math:`(\cos p, \sin p) / \sqrt s` of its projections p, the derivative by the
frequencies is one product of a matrix of all rows by frequencies with X, and that by
the bandwidths follows from :math:`w_{jc} = u_{jc} \gamma_c^{q_{jc}}`, q one half for
most kernels ("automatic relevance determination").

References
----------
.. [1] C. E. Rasmussen, C. K. I. Williams, "Gaussian Processes for Machine Learning",
   MIT Press, 2006, section 5.1 and equation 5.9.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import linalg
from scipy.optimize import minimize

from surff.backend import feature_blocks, map_slices, rows_of, stage, time_is_up
from surff.kernels import FourierMap
from surff.linear import SingularError, accumulate, log_evidence

__all__ = ["FrequencyEvidence", "column_bandwidths", "frequency_evidence"]

#: Most steps of each of the two searches.
MOST_STEPS = 60

#: Share of the first bandwidths that the second search lifts small ones to.
LIFT = 1.0 / 3.0

#: Bounds of the logarithms: of bandwidths over the first ones, and of alpha over the
#: mean eigenvalue of the Gram matrix.
BANDWIDTH_BOUNDS, ALPHA_BOUNDS = (-16.0, 6.0), (-18.0, 7.0)


class FrequencyEvidence(NamedTuple):
    """Log marginal likelihood of frequencies, and its derivatives."""

    value: float
    gradient: np.ndarray  # (n_frequencies, n_features)
    by_log_alpha: float


def frequency_evidence(
    frequencies: np.ndarray,
    X: Any,
    Y: np.ndarray,
    alpha: float,
    sample_weight: np.ndarray | None = None,
    fit_intercept: bool = True,
) -> FrequencyEvidence:
    """Log marginal likelihood, the sum over targets, and its derivatives.

    Parameters
    ----------
    frequencies : ndarray of shape (n_frequencies, n_features)
        Radians per unit of ``X``.
    X : ndarray or CSR matrix of shape (n_samples, n_features)
        Rows, float64.
    Y : ndarray of shape (n_samples, n_targets)
        Targets; each has a noise variance of its own, that of largest likelihood.
    alpha : float
        Regularisation, > 0, in units of Z^T Z.
    sample_weight : ndarray of shape (n_samples,), optional
        Row weights, >= 0; a weight w counts as w rows.
    fit_intercept : bool, default=True
        Whether the model has an intercept.

    Raises
    ------
    SingularError
        If the system is singular to working precision.

    Notes
    -----
    Two passes of ``O(n s (s + d))`` for n rows and s frequencies, and ``O(s^3)``.
    """
    s, k = len(frequencies), Y.shape[1]
    feature_map = FourierMap(frequencies)
    total = accumulate(feature_map, X, Y, sample_weight)
    centred = total.centred(fit_intercept)
    try:
        factor = linalg.cholesky(centred.gram + alpha * np.eye(2 * s), lower=False)
    except linalg.LinAlgError:
        raise SingularError(
            f"Z^T Z + alpha I is singular to working precision (alpha={alpha:.3g})."
        ) from None
    coef = linalg.cho_solve((factor, False), centred.moments)
    inverse = linalg.cho_solve((factor, False), np.eye(2 * s))
    level = centred.target_mean - centred.feature_mean @ coef
    n_rows = total.weight_sum
    spread = total.target_square - n_rows * centred.target_mean**2
    misfit = spread - np.einsum("jk,jk->k", centred.moments, coef)
    misfit = np.maximum(misfit, np.finfo(np.float64).eps * spread)
    noise = misfit / (n_rows - bool(fit_intercept))
    volume = 2.0 * np.log(np.diag(factor)).sum() - 2 * s * np.log(alpha)
    value = log_evidence(misfit, volume, n_rows, fit_intercept).sum()
    shrunk = alpha * np.sum(coef**2, axis=0) / noise
    by_log_alpha = 0.5 * (k * (2 * s - alpha * np.trace(inverse)) - shrunk.sum())

    def slopes(part):
        gradient = np.zeros(frequencies.shape)
        for index, Z in feature_blocks(feature_map, X, None, part):
            by_features = (Y[index] - Z @ coef - level) @ (coef / noise).T
            by_features -= k * ((Z - centred.feature_mean) @ inverse)
            if sample_weight is not None:
                by_features *= sample_weight[index, None]
            by_projections = (
                by_features[:, s:] * Z[:, :s] - by_features[:, :s] * Z[:, s:]
            )
            gradient += (rows_of(X, index).T @ by_projections).T
        return gradient

    gradient = sum(map_slices(slopes, X.shape[0], minimum=2 * s))
    return FrequencyEvidence(float(value), gradient, float(by_log_alpha))


def column_bandwidths(
    unit: np.ndarray,
    powers: np.ndarray,
    gamma: np.ndarray,
    X: Any,
    Y: np.ndarray,
    sample_weight: np.ndarray | None = None,
    fit_intercept: bool = True,
) -> np.ndarray:
    r"""Bandwidths of the columns of largest evidence, together with alpha.

    Parameters
    ----------
    unit, powers : ndarray of shape (n_frequencies, n_features)
        The frequencies of bandwidths :math:`\gamma` are
        ``unit * gamma**powers``.
    gamma : ndarray of shape (n_features,)
        Where to start, > 0.
    X, Y, sample_weight, fit_intercept
        See `frequency_evidence`.

    Returns
    -------
    gamma : ndarray of shape (n_features,)

    Notes
    -----
    L-BFGS in the logarithms, twice: columns that seem idle at first may matter once the
    frequencies along others are right, so the second search lifts them again.
    """
    n_rows = X.shape[0] if sample_weight is None else sample_weight.sum()
    eigenvalue = n_rows / (2 * len(unit))
    low, high = (np.log(gamma) + bound for bound in BANDWIDTH_BOUNDS)
    ends = [np.log(eigenvalue) + bound for bound in ALPHA_BOUNDS]
    bounds = np.column_stack([np.append(low, ends[0]), np.append(high, ends[1])])

    def loss(theta):
        frequencies = unit * np.exp(powers * theta[:-1])
        found = frequency_evidence(
            frequencies, X, Y, np.exp(theta[-1]), sample_weight, fit_intercept
        )
        slopes = np.sum(found.gradient * frequencies * powers, axis=0)
        return -found.value, -np.append(slopes, found.by_log_alpha)

    def after_step(_):
        progress.advance()
        if time_is_up():
            raise StopIteration

    start, found = np.append(np.log(gamma), np.log(eigenvalue)), []
    options = {"maxiter": MOST_STEPS}
    with stage("gammas", 2 * MOST_STEPS, "steps") as progress:
        for _ in range(2):
            found.append(
                minimize(
                    loss,
                    start,
                    jac=True,
                    bounds=bounds,
                    callback=after_step,
                    options=options,
                )
            )
            start = found[-1].x.copy()
            start[:-1] = np.maximum(start[:-1], np.log(LIFT * gamma))
    return np.exp(min(found, key=lambda result: result.fun).x[:-1])
