r"""Uncertainty of a fitted model: standard deviations and probabilities.

Ridge is the mean of Bayesian linear regression with noise variance :math:`\sigma^2`,
prior :math:`\beta \sim N(0, \sigma^2 / \alpha\, I)` and a flat prior on the intercept;
its posterior gives the standard deviation of a new observation. Probabilities of
classes come from a logistic curve fitted to predictions of left-out rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from scipy import linalg
from sklearn.linear_model import LogisticRegression

from surff.backend import divide_by_upper, each_block, row_blocks, rows_of, to_numpy
from surff.linear.alpha_path import Split, squared_errors
from surff.linear.normal_equations import NormalEquations
from surff.linear.solvers import SingularError

__all__ = [
    "NOISE_ROWS",
    "Posterior",
    "covariances",
    "held_out_noise",
    "platt_curve",
    "posterior",
    "posterior_draws",
    "standard_deviations",
]


#: Rows of a split that say how large the noise is; five splits tell it to a hundredth.
NOISE_ROWS = 2**11

#: Of these, how many have their features in memory at a time.
NOISE_BLOCK = 2**8


class Posterior(NamedTuple):
    """Posterior of the coefficients and intercepts of targets that share an alpha."""

    factor: np.ndarray  # (m, m), upper Cholesky factor of G + alpha I
    feature_mean: np.ndarray  # (m,)
    targets: np.ndarray  # (n_targets,) of bool
    noise: np.ndarray  # variance of the noise of each of them
    intercept: float  # variance of their intercepts, in units of the noise


def posterior(
    equations: NormalEquations,
    alphas: np.ndarray,
    fit_intercept: bool,
    noise: np.ndarray | None = None,
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
    noise : ndarray of shape (n_targets,), optional
        Variance of the noise of each target, such as `held_out_noise`; by default from
        the residuals of the fit.

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
        of_target = noise
        if of_target is None:
            of_target = residual_noise(equations, centred, factor, alpha, fit_intercept)
        parts.append(
            Posterior(
                factor,
                centred.feature_mean,
                targets,
                of_target[targets],
                intercept_variance,
            )
        )
    return parts


def residual_noise(equations, centred, factor, alpha, fit_intercept):
    """Noise variance of each target: RSS over the degrees of freedom that are left."""
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
    return rss.clip(min=0.0) / left


def held_out_noise(
    splits: Iterable[Split],
    alphas: np.ndarray,
    fit_intercept: bool,
    data: Any = None,
) -> np.ndarray | None:
    r"""Noise variance of each target, from rows that a split's model has not seen.

    Where features have looked at the targets, residuals of the fit are too small, and
    its degrees of freedom do not count what the features have learned. The noise is
    instead that of largest likelihood for the rows that the splits' models leave out,

    .. math:: \sigma^2 = \frac{1}{\sum_i w_i} \sum_f \sum_{i \in f}
              w_i \frac{(y_i - \hat y_{i,f})^2}{s_i^2} , \qquad
              s_i^2 = 1 + 1/n_f + z_i^\top (G_f + \alpha I)^{-1} z_i

    with sums over splits f and the rows that they hold out, and features that are
    centred as the split's training rows are. From the equations alone, without rows, it
    is :math:`\sum_i w_i (y_i - \hat y_{i,f})^2 / \sum_i w_i s_i^2`, which a few rows
    that are far from all others may make too large.

    Parameters
    ----------
    splits : iterable of Split
        Normal equations of both sides of each split.
    alphas : ndarray of shape (n_targets,)
        Regularisation of each target.
    fit_intercept : bool
        Whether the models have an intercept.
    data : Data, optional
        The rows; of a split that holds out many, about `NOISE_ROWS` are looked at.

    Returns
    -------
    noise : ndarray of shape (n_targets,), or None
        None if a split's system is singular to working precision.

    Notes
    -----
    ``O(m^3)`` per split and distinct alpha, and ``O(m^2)`` per row.
    """
    errors, spreads = np.zeros(len(alphas)), np.zeros(len(alphas))
    for split in splits:
        centred = split.train.centred(fit_intercept)
        for alpha in np.unique(alphas):
            targets = alphas == alpha
            matrix = centred.gram + alpha * np.eye(len(centred.gram))
            try:
                factor = linalg.cholesky(matrix, lower=False)
            except linalg.LinAlgError:
                return None
            coef = linalg.cho_solve((factor, False), centred.moments)
            level = centred.target_mean - centred.feature_mean @ coef
            unit = 1.0 + bool(fit_intercept) / split.train.weight_sum
            if data is None:
                error = squared_errors(split.test, coef[:, None], level[None])[0]
                spread = _sum_of_spreads(split.test, centred.feature_mean, factor)
                spread += unit * split.test.weight_sum
            else:
                error, spread = 0.0, 0.0
                for Z, Y, weight in _some_rows(split, data):
                    half = divide_by_upper(Z - centred.feature_mean, factor)
                    share = weight / (unit + np.einsum("ij,ij->i", half, half))
                    error = error + share @ (Y - Z @ coef - level) ** 2
                    spread += weight.sum()
            errors[targets] += error[targets].clip(min=0.0)
            spreads[targets] += spread
    return errors / spreads


def _some_rows(split, data):
    """Yield features, targets and weights of rows that a split holds out."""
    n = len(split.test_rows)
    some = split.test_rows[np.arange(0, n, max(1, math.ceil(n / NOISE_ROWS)))]
    for block in row_blocks(len(some), NOISE_BLOCK):
        rows = some[block]
        Z = to_numpy(split.feature_map(rows_of(data.X, rows))).astype(np.float64)
        weight = data.weight(rows)
        weight = np.ones(len(rows)) if weight is None else weight
        yield np.ascontiguousarray(Z), data.Y[rows], weight


def _sum_of_spreads(test, mean, factor):
    """Sum of the variances of the fit at rows, in units of the noise."""
    sums = test.feature_sum
    shift = np.outer(test.weight_sum * mean - sums, mean) - np.outer(mean, sums)
    inverse, _ = linalg.lapack.dpotri(factor, lower=0)
    products = inverse * np.triu(test.gram + shift)
    return 2.0 * products.sum() - np.trace(products)


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


def covariances(posteriors: list[Posterior], feature_map: Any, X: Any) -> np.ndarray:
    r"""Covariance of new observations of each target at all rows together.

    The diagonal is the square of `standard_deviations`; the noise is in it alone.

    Parameters
    ----------
    posteriors, feature_map, X
        See `standard_deviations`.

    Returns
    -------
    covariances : ndarray of shape (n_samples, n_samples, n_targets)
        dtype of ``X``.

    Notes
    -----
    ``O(n m (n + m))`` time and ``n m`` numbers held.
    """
    n = X.shape[0]
    found = np.empty((n, n, len(posteriors[0].targets)), dtype=X.dtype)
    for p in posteriors:
        half = np.empty((n, len(p.factor)))

        def reduce(block, Z, half=half, p=p):
            half[block] = divide_by_upper(Z - p.feature_mean, p.factor)

        each_block(reduce, feature_map, X)
        shared = half @ half.T + p.intercept
        shared[np.diag_indices(n)] += 1.0
        found[:, :, p.targets] = shared[:, :, None] * p.noise
    return found


def posterior_draws(
    posteriors: list[Posterior],
    coefs: np.ndarray,
    n_draws: int,
    rng: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray]:
    r"""Coefficients and intercepts drawn from the posterior.

    Parameters
    ----------
    posteriors : list of Posterior
        From `posterior`.
    coefs : ndarray of shape (n_targets, m)
        Their means.
    n_draws : int
    rng : numpy.random.Generator

    Returns
    -------
    coefs : ndarray of shape (n_targets, m, n_draws)
        Mean and :math:`\sigma R^{-1} g` with standard normal g, for the upper factor R
        of :math:`G + \alpha I`.
    intercepts : ndarray of shape (n_targets, n_draws)
        What is added to the mean intercepts.

    Notes
    -----
    ``O(m^2)`` per draw and target.
    """
    k, m = coefs.shape
    drawn, shifts = np.empty((k, m, n_draws)), np.empty((k, n_draws))
    for p in posteriors:
        for j, noise in zip(np.flatnonzero(p.targets), p.noise, strict=True):
            normal = rng.standard_normal((m, n_draws))
            part = linalg.solve_triangular(p.factor, normal, lower=False)
            part *= np.sqrt(noise)
            drawn[j] = coefs[j][:, None] + part
            level = np.sqrt(noise * p.intercept) * rng.standard_normal(n_draws)
            # The intercept is that of features that are not centred.
            shifts[j] = level - p.feature_mean @ part
    return drawn, shifts


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
