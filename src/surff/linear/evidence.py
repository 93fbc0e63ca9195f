r"""Evidence: the marginal likelihood of a Gaussian process, from sums alone.

Ridge on features Z is the posterior mean of a Gaussian process with the kernel
:math:`\sigma^2 / \alpha\; z(x)^\top z(x')`, noise of variance :math:`\sigma^2` and a
flat prior on the intercept. With the eigenvalues e of the centred Gram matrix and the
moments p in the basis of its eigenvectors, coefficients and intercept integrate out to

.. math:: \log p(y) = -\tfrac\nu2 \log 2 \pi \sigma^2
          - \tfrac12 \sum_j \log \Bigl(1 + \frac{e_j}{\alpha}\Bigr)
          - \frac{S(\alpha)}{2 \sigma^2} - \tfrac12 \log n, \qquad
          S(\alpha) = \tilde y^\top \tilde y - \sum_j \frac{p_j^2}{e_j + \alpha},

where :math:`\nu = n - 1` (without an intercept n, and no last term). The largest over
:math:`\sigma^2` is at :math:`S / \nu`. So one eigendecomposition gives every alpha, its
noise and the gradients, whatever the number of rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar

from surff.linear.alpha_path import AlphaPath, best_index, spectrum
from surff.linear.criteria import (
    Data,
    FromEquations,
    GeneralizedCrossValidation,
    Solving,
)
from surff.linear.normal_equations import NormalEquations

__all__ = ["FORMULAS", "Evidence", "Likelihood", "likelihood", "log_evidence"]

#: Accuracy of the refined log alpha; the evidence is flat at its maximum.
LOG_ALPHA_TOL = 1e-6


def log_evidence(
    misfit: np.ndarray,
    volume: Any,
    n_rows: float,
    fit_intercept: bool,
    noise: np.ndarray | None = None,
) -> np.ndarray:
    """Log marginal likelihood; see the module.

    Parameters
    ----------
    misfit : ndarray
        Values S, > 0.
    volume : float or ndarray that broadcasts
        Sum of the logarithms of 1 + e / alpha.
    n_rows : float
        Sum of weights.
    fit_intercept : bool
        Whether the model has an intercept.
    noise : ndarray that broadcasts, optional
        Noise variance, > 0; by default that of largest likelihood.
    """
    degrees = n_rows - bool(fit_intercept)
    noise = misfit / degrees if noise is None else noise
    value = degrees * np.log(2.0 * np.pi * noise) + volume + misfit / noise
    if fit_intercept:
        value = value + np.log(n_rows)
    return -0.5 * value


class Likelihood(NamedTuple):
    """What the marginal likelihood needs of the rows; see the module."""

    eigenvalues: np.ndarray  # (m,), >= 0
    squares: np.ndarray  # (m, k), squared moments in the basis of the eigenvectors
    spread: np.ndarray  # (k,), sum of squares of the centred targets
    n_rows: float  # sum of weights
    fit_intercept: bool

    @property
    def degrees(self) -> float:
        """Degrees of freedom nu: rows, less one for an intercept."""
        return self.n_rows - bool(self.fit_intercept)

    def misfit(self, alphas: Any) -> np.ndarray:
        """Values S of some alphas, shape (n_alphas, k), > 0."""
        alphas = np.atleast_1d(alphas)
        shrunk = self.eigenvalues[:, None] + alphas
        norm = np.einsum("jk,ja->ak", self.squares, alphas / shrunk**2)
        fitted = np.einsum(
            "jk,ja->ak", self.squares, (shrunk + alphas) / shrunk**2, optimize=True
        )
        # The residual and the norm of the coefficients, neither of which is negative.
        misfit = (self.spread - fitted).clip(min=0.0) + norm
        return np.maximum(misfit, np.finfo(np.float64).tiny)

    def noise(self, alphas: Any) -> np.ndarray:
        """Noise variances of largest likelihood, shape (n_alphas, k)."""
        return self.misfit(alphas) / self.degrees

    def value(self, alphas: Any, noise: np.ndarray | None = None) -> np.ndarray:
        """Log marginal likelihood of some alphas, shape (n_alphas, k).

        Parameters
        ----------
        alphas : ndarray of shape (n_alphas,)
            Regularisation, > 0.
        noise : ndarray that broadcasts to (n_alphas, k), optional
            Noise variance, > 0; by default that of largest likelihood.
        """
        alphas = np.atleast_1d(alphas)
        volume = np.log1p(self.eigenvalues[:, None] / alphas).sum(axis=0)[:, None]
        misfit = self.misfit(alphas)
        return log_evidence(misfit, volume, self.n_rows, self.fit_intercept, noise)

    def gradient(
        self, alphas: Any, noise: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Derivatives of `value` by log alpha and by log noise, each (n_alphas, k).

        Without ``noise`` it follows alpha: the second is zero.
        """
        alphas = np.atleast_1d(alphas)
        shrunk = self.eigenvalues[:, None] + alphas
        misfit = self.misfit(alphas)
        noise = misfit / self.degrees if noise is None else noise
        df = np.sum(self.eigenvalues[:, None] / shrunk, axis=0)[:, None]
        slope = np.einsum("jk,ja->ak", self.squares, alphas / shrunk**2)
        by_alpha = 0.5 * (df - slope / noise)
        by_noise = 0.5 * (misfit / noise - self.degrees)
        return by_alpha, by_noise


def likelihood(equations: NormalEquations, fit_intercept: bool = True) -> Likelihood:
    """`Likelihood` of normal equations: about ``9 m^3`` operations.

    Parameters
    ----------
    equations : NormalEquations
        Of all rows; a weight w counts as w rows.
    fit_intercept : bool, default=True
        Whether the model has an intercept.

    Raises
    ------
    ValueError
        If the sum of weights leaves no degree of freedom.
    """
    e, _, projected, *_ = spectrum(equations, fit_intercept)
    spread = equations.target_square
    if fit_intercept:
        spread = spread - equations.target_sum**2 / equations.weight_sum
    found = Likelihood(
        e,
        np.square(projected),
        spread.clip(min=0.0),
        equations.weight_sum,
        fit_intercept,
    )
    if found.degrees <= 0:
        raise ValueError(
            "the evidence counts a weight w as w rows: a sum of "
            f"{equations.weight_sum:.3g} leaves no degree of freedom; scale the "
            "weights or add rows."
        )
    return found


class Evidence(FromEquations):
    """Log marginal likelihood of each target, its noise variance the best one.

    Parameters
    ----------
    total : NormalEquations
        Of all rows.
    solving : Solving
    data : Data, optional
        The rows, for `held_out`.

    References
    ----------
    .. [1] D. J. C. MacKay, "Bayesian Interpolation", Neural Computation 4(3), 1992.
    .. [2] C. E. Rasmussen, C. K. I. Williams, "Gaussian Processes for Machine
       Learning", MIT Press, 2006, equations 2.30 and 2.42.
    """

    def __init__(
        self, total: NormalEquations, solving: Solving, data: Data | None = None
    ) -> None:
        super().__init__(total, solving, data)
        self.likelihood = likelihood(total, solving.fit_intercept)

    def _score(self, alphas):
        return self.likelihood.value(alphas)[:, None]

    def refined(self, path: AlphaPath, score: Callable) -> AlphaPath:
        """The path with the maxima between its alphas, one per choice.

        The scores cost ``O(m)`` each, so that the maximum need not lie on the grid.
        """
        best = np.unique(best_index(path))
        inside = best[(best > 0) & (best < len(path.alphas) - 1)]
        per_target = path.scores.ndim == 3
        found = []
        for index in inside:
            lower, upper = np.log(path.alphas[[index - 1, index + 1]])
            if np.isnan(path.scores[index - 1]).any():
                lower = np.log(path.alphas[index])
            targets = slice(None)
            if per_target:
                targets = np.flatnonzero(np.equal(best_index(path), index))
            for some in np.atleast_1d(targets) if per_target else [targets]:
                result = minimize_scalar(
                    self._loss,
                    bounds=(lower, upper),
                    args=(some,),
                    method="bounded",
                    options={"xatol": LOG_ALPHA_TOL},
                )
                found.append(np.exp(result.x))
        new = np.setdiff1d(found, path.alphas)
        if not len(new):
            return path
        alphas = np.concatenate([path.alphas, new])
        order = np.argsort(alphas)
        scores = np.concatenate([path.scores, score(new)])
        return AlphaPath(alphas[order], scores[order])

    def _loss(self, log_alpha, targets):
        """Negative log marginal likelihood of some targets."""
        return -self.likelihood.value(np.exp(log_alpha))[0, targets].mean()


#: Criteria by their name in ``cv`` that need nothing but the sums of all rows.
FORMULAS: dict[str, Any] = {"gcv": GeneralizedCrossValidation, "evidence": Evidence}
