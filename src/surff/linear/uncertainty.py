r"""Uncertainty of a fitted model: standard deviations and probabilities.

Ridge is the mean of Bayesian linear regression with noise variance :math:`\sigma^2`,
prior :math:`\beta \sim N(0, \sigma^2 / \alpha\, I)` and a flat prior on the intercept;
its posterior gives the standard deviation of a new observation. Probabilities of
classes come from a logistic curve fitted to predictions of left-out rows.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import linalg
from sklearn.linear_model import LogisticRegression

from surff.backend import divide_by_upper, each_block
from surff.linear.alpha_path import squared_errors
from surff.linear.normal_equations import NormalEquations
from surff.linear.solvers import SingularError

__all__ = ["Posterior", "platt_curve", "posterior", "standard_deviations"]


class Posterior(NamedTuple):
    """Posterior of the coefficients and intercepts of targets that share an alpha."""

    factor: np.ndarray  # (m, m), upper Cholesky factor of G + alpha I
    feature_mean: np.ndarray  # (m,)
    targets: np.ndarray  # (n_targets,) of bool
    noise: np.ndarray  # variance of the noise of each of them
    intercept: float  # variance of their intercepts, in units of the noise


def posterior(
    equations: NormalEquations, alphas: np.ndarray, fit_intercept: bool
) -> list[Posterior]:
    r"""`Posterior` of each distinct alpha, one alpha per target; ``O(m^3)`` per alpha.

    Parameters
    ----------
    equations : NormalEquations
        Of all rows.
    alphas : ndarray of shape (n_targets,)
        Regularisation of each target.
    fit_intercept : bool
        Whether the model has an intercept.

    Returns
    -------
    list of Posterior

    Raises
    ------
    SingularError
        If :math:`Z^\top Z + \alpha I` is singular to working precision.
    ValueError
        If the sum of weights leaves no degree of freedom to estimate the noise from.
    """
    centred = equations.centred(fit_intercept)
    intercept_variance = 1.0 / equations.weight_sum if fit_intercept else 0.0
    parts = []
    for alpha in np.unique(alphas):
        targets = alphas == alpha
        matrix = centred.gram + alpha * np.eye(len(centred.gram))
        try:
            factor = linalg.cholesky(matrix, lower=False)
        except linalg.LinAlgError:
            raise SingularError(
                "return_std=True needs a regular Z^T Z + alpha I, which is "
                f"singular to working precision (alpha={alpha:.3g}, {len(matrix)} "
                "columns); increase alpha."
            ) from None
        coef = linalg.cho_solve((factor, False), centred.moments)
        intercept = centred.target_mean - centred.feature_mean @ coef
        rss = squared_errors(equations, coef[:, None], intercept[None])[0]
        inverse, _ = linalg.lapack.dpotri(factor, lower=0)
        df = len(factor) - alpha * np.trace(inverse) + bool(fit_intercept)
        left = equations.weight_sum - df
        if left <= 0:
            raise ValueError(
                "return_std=True counts a weight w as w rows: a sum of "
                f"{equations.weight_sum:.3g} leaves nothing to estimate the noise from "
                f"after {df:.3g} degrees of freedom; scale the weights, increase "
                "alpha or add rows."
            )
        noise = rss.clip(min=0.0) / left
        parts.append(
            Posterior(
                factor,
                centred.feature_mean,
                targets,
                noise[targets],
                intercept_variance,
            )
        )
    return parts


def standard_deviations(
    posteriors: list[Posterior], feature_map: Any, X: Any
) -> np.ndarray:
    r"""Standard deviation of a new observation of each target at each row.

    .. math:: \mathrm{std}^2 = \sigma^2 \bigl(1 + \tfrac1n
              + z^\top (G + \alpha I)^{-1} z\bigr)

    Parameters
    ----------
    posteriors : list of Posterior
        From `posterior`.
    feature_map : object
        See `surff.backend.feature_blocks`; its features are z once they are centred.
    X : ndarray or CSR matrix of shape (n_samples, n_features)
        Rows.

    Returns
    -------
    std : ndarray of shape (n_samples, n_targets)
        dtype of ``X``.

    Notes
    -----
    ``O(m^2)`` time per row.
    """
    std = np.empty((X.shape[0], len(posteriors[0].targets)), dtype=X.dtype)

    def spread(block, Z):
        for p in posteriors:
            half = divide_by_upper(Z - p.feature_mean, p.factor)
            variance = 1.0 + p.intercept + np.einsum("ij,ij->i", half, half)
            std[block, p.targets] = np.sqrt(p.noise * variance[:, None])

    each_block(spread, feature_map, X)
    return std


def platt_curve(
    decisions: np.ndarray, positive: np.ndarray, sample_weight: np.ndarray | None
) -> tuple[float, float]:
    """Slope and intercept of Platt's logistic curve.

    Parameters
    ----------
    decisions : ndarray of shape (n_samples,)
        Predictions of left-out rows; nan for a row that is never left out.
    positive : ndarray of bool, shape (n_samples,)
        Rows of the class that positive decisions stand for.
    sample_weight : ndarray of shape (n_samples,) or None
        Row weights.

    Returns
    -------
    slope, intercept : float

    Notes
    -----
    Platt's smoothed targets, (n+ + 1) / (n+ + 2) and 1 / (n- + 2), are written as two
    rows of opposite labels that share the row's weight.

    References
    ----------
    .. [1] J. Platt, "Probabilistic Outputs for Support Vector Machines and Comparisons
       to Regularized Likelihood Methods", 1999.
    """
    known = ~np.isnan(decisions)  # rows that some split holds out
    decisions, positive = decisions[known, None], positive[known]
    weight = np.ones(len(positive)) if sample_weight is None else sample_weight[known]
    high = (weight[positive].sum() + 1.0) / (weight[positive].sum() + 2.0)
    low = 1.0 / (weight[~positive].sum() + 2.0)
    target = np.where(positive, high, low)
    model = LogisticRegression(C=1e10, tol=1e-8, max_iter=1000).fit(
        np.vstack([decisions, decisions]),
        np.repeat([1, 0], len(target)),
        np.concatenate([weight * target, weight * (1.0 - target)]),
    )
    return model.coef_[0, 0], model.intercept_[0]
