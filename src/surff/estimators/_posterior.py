"""The regressor as a Gaussian process: deviations, covariances, draws, evidence."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from surff.backend import Array, each_block, to_numpy
from surff.estimators._linear import LinearOnFeatures, refuse_other_arrays
from surff.linear import (
    Likelihood,
    Posterior,
    covariances,
    held_out_noise,
    likelihood,
    posterior,
    posterior_draws,
    standard_deviations,
)

__all__ = ["PosteriorOfRidge", "looks_at_targets", "noise_of_folds"]


def looks_at_targets(model: Any) -> bool:
    """Whether the features of a model, being fitted, have looked at its targets."""
    features = model.features
    return not isinstance(features, FrozenEstimator) and model.features_.needs_target


def noise_of_folds(model: Any, criterion: Any, n_targets: int) -> np.ndarray | None:
    """Noise variance from the folds that alpha was chosen by; None without folds."""
    if not hasattr(criterion, "splits"):
        return None
    alphas = np.broadcast_to(to_numpy(model.alpha_), n_targets)
    data = getattr(criterion, "data", None)
    return held_out_noise(criterion.splits(), alphas, model.fit_intercept, data)


class PosteriorOfRidge(LinearOnFeatures):
    """Methods of the regressor that need the posterior of its coefficients."""

    @property
    def noise_variance_(self) -> np.ndarray:
        """Variance of the noise of each target, shape (n_targets,).

        Raises
        ------
        AttributeError
            Where ``predict(return_std=True)`` would raise.
        """
        try:
            parts = self._posteriors("noise_variance_")
        except ValueError as error:
            raise AttributeError(str(error)) from error
        noise = np.empty(len(parts[0].targets))
        for part in parts:
            noise[part.targets] = part.noise
        return noise

    def _posteriors(self, asked: str) -> list[Posterior]:
        """`Posterior` of each distinct alpha, formed at the first call."""
        check_is_fitted(self)
        self._equations_for(asked)
        if not hasattr(self, "_posterior_"):
            # Files of earlier versions have none, nor have features that do not look.
            noise = getattr(self, "_held_out_noise", "residuals")
            if noise is None:
                raise ValueError(
                    f"{asked} needs rows that the features have not seen, since they "
                    "looked at the targets: fit with several alphas and cv=5, or with "
                    "intervals=True, or fit the features to other rows and pass them "
                    "as FrozenEstimator(features)."
                )
            self._posterior_ = posterior(
                self.equations_,
                np.broadcast_to(self.alpha_, self.equations_.target_sum.shape),
                self._had_intercept(),
                None if isinstance(noise, str) else noise,
            )
        return self._posterior_

    def _equations_for(self, asked):
        """Refuse a model without its normal equations, or with leaf heads."""
        leaves = getattr(self, "leaves_", None)
        if leaves is not None and leaves.partition is not None:
            raise ValueError(
                f"{asked} needs the posterior of the model, which leaf heads do not "
                f"keep: fit with leaves=None, got {self.leaves!r}."
            )
        if not hasattr(self, "equations_"):
            raise ValueError(
                f"{asked} needs the normal equations: fit with "
                "keep_equations=True and a solver other than 'cg', got "
                f"{self.keep_equations!r} and {self.solver!r}."
            )

    def _had_intercept(self):
        """Of the fit, whatever was set since; older model files have none."""
        return getattr(self, "_with_intercept", self.fit_intercept)

    def _deviations(self, X: Any, asked: str) -> np.ndarray:
        """Of new observations of each target at checked rows, or their covariance."""
        refuse_other_arrays(X, asked, ": use return_std=False")
        parts = self._posteriors(asked)
        feature_map = self.features_.feature_map().astype(X.dtype)
        if asked == "return_cov=True":
            return covariances(parts, feature_map, X)
        return standard_deviations(parts, feature_map, X)

    def sample_y(
        self, X: Array, n_samples: int = 1, random_state: Any = None
    ) -> np.ndarray:
        r"""Draw functions from the posterior and evaluate them at rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples_X, n_features)
            Data, finite.
        n_samples : int, default=1
            Number of functions.
        random_state : int, RandomState instance or None, default=None
            Source of the draws.

        Returns
        -------
        values : ndarray of shape (n_samples_X, n_samples) or \
                (n_samples_X, n_targets, n_samples)
            Values of each function at the rows. They are without noise: that of an
            observation has the variance ``noise_variance_``.

        Raises
        ------
        ValueError
            Where ``predict(return_std=True)`` does.

        Notes
        -----
        The functions are those of coefficients drawn from the posterior, so that values
        at many rows cost no matrix of theirs: ``O(m^2)`` per function and ``O(m)`` per
        row and function.
        """
        X = self._checked(X, "sample_y")
        refuse_other_arrays(X, "sample_y")
        parts = self._posteriors("sample_y")
        coef = np.atleast_2d(self.primal_coef_).astype(np.float64)
        rng = np.random.default_rng(
            check_random_state(random_state).randint(0, 2**31 - 1, size=4)
        )
        coefs, shifts = posterior_draws(parts, coef, n_samples, rng)
        k, m, _ = coefs.shape
        flat = np.moveaxis(coefs, 0, 1).reshape(m, -1)
        values = np.empty((X.shape[0], k, n_samples), dtype=X.dtype)
        level = np.reshape(self.intercept_, (-1, 1)) + shifts

        def evaluate(block, Z):
            values[block] = (Z @ flat).reshape(len(Z), k, n_samples) + level

        each_block(evaluate, self.features_.feature_map().astype(X.dtype), X)
        return values[:, 0] if np.ndim(self.primal_coef_) == 1 else values

    def log_marginal_likelihood(
        self,
        alpha: float | None = None,
        noise_variance: Any = None,
        *,
        eval_gradient: bool = False,
    ) -> Any:
        r"""Log marginal likelihood of the rows of the fit; see `surff.linear.Evidence`.

        Parameters
        ----------
        alpha : float, default=None
            Regularisation, > 0; None is that of the fit.
        noise_variance : float or array-like of shape (n_targets,), default=None
            Variance of the noise, > 0; None is that of largest likelihood.
        eval_gradient : bool, default=False
            Whether to return the derivatives, too.

        Returns
        -------
        value : float or ndarray of shape (n_targets,)
        gradient : ndarray of shape (2,) or (2, n_targets)
            Derivatives by log alpha and by log noise variance, with
            ``eval_gradient``. Without ``noise_variance`` the noise follows alpha, and
            the second is zero.

        Raises
        ------
        ValueError
            If ``alpha`` or ``noise_variance`` is not positive, or the normal equations
            were not kept.

        Notes
        -----
        About ``9 m^3`` operations; the rows are not looked at.

        Features that have looked at the targets are taken as if they had not: the value
        is then too large, and does not compare.
        """
        check_is_fitted(self)
        self._equations_for("log_marginal_likelihood")
        alpha = self.alpha_ if alpha is None else alpha
        alphas = np.broadcast_to(alpha, self.equations_.target_sum.shape)
        for name, values in (("alpha", alpha), ("noise_variance", noise_variance)):
            if values is not None and not np.all(np.asarray(values) > 0):
                raise ValueError(f"{name} must be positive, got {values!r}.")
        found = likelihood(self.equations_, self._had_intercept())
        value, slopes = _at_own_alphas(found, alphas, noise_variance)
        if np.ndim(self.primal_coef_) == 1:
            value, slopes = float(value[0]), slopes[:, 0]
        return (value, slopes) if eval_gradient else value


def _at_own_alphas(found: Likelihood, alphas, noise):
    """Values (k,) and gradients (2, k) of targets, each at its alpha."""
    distinct, index = np.unique(alphas, return_inverse=True)
    targets = np.arange(len(alphas))
    value = found.value(distinct, noise)[index, targets]
    slopes = found.gradient(distinct, noise)
    return value, np.stack([slope[index, targets] for slope in slopes])
