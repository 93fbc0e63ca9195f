r"""The paper's theory as functions: leverage, degrees of freedom, numbers of features.

Notation: n rows, kernel matrix ``K``, targets ``Y``, regularisation ``alpha``
:math:`= n \lambda`, frequencies w with :math:`z_w = (e^{-\mathrm i w^\top x_j})_j`.
Leverage functions are given relative to the spectral measure, that is divided by p(w).

What the two theorems promise is in the number of features, not in the accuracy at a
given number: their bounds hold from ``s`` features on, and :math:`D \ge 1 / \lambda`
makes that number larger than n for every useful regularisation.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy import linalg

__all__ = [
    "DECAYS",
    "DecayCase",
    "decaying_spectrum",
    "lemma_1_epsilon",
    "lemma_1_features",
    "leverage_function",
    "pool_surrogate_dof",
    "spectral_dof",
    "surrogate_dof",
    "surrogate_leverage_function",
    "theorem_1_features",
    "theorem_2_features",
]


def complex_features(X, frequencies):
    r"""Columns :math:`z_w = \exp(-\mathrm i X w)`, (n_samples, n_frequencies)."""
    return np.exp(-1j * (X @ frequencies.T))


def leverage_function(
    X: np.ndarray, frequencies: np.ndarray, K: np.ndarray, alpha: float
) -> np.ndarray:
    r"""Exact ridge leverage :math:`l(w) / p(w) = z_w^* (K + \alpha I)^{-1} z_w`.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Rows.
    frequencies : ndarray of shape (n_frequencies, n_features)
        Points w at which to evaluate.
    K : ndarray of shape (n_samples, n_samples)
        Kernel matrix of the rows.
    alpha : float
        Regularisation, > 0; the paper's :math:`n \lambda`.

    Returns
    -------
    values : ndarray of shape (n_frequencies,)
        At most ``n / alpha``; their mean over :math:`w \sim p` is the effective degrees
        of freedom.

    Notes
    -----
    ``O(n^3 + n^2 s)`` time: a reference for small data.

    References
    ----------
    .. [1] H. Avron et al., "Random Fourier Features for Kernel Ridge Regression",
       ICML 2017, Definition 4.

    Examples
    --------
    >>> import numpy as np
    >>> X, K = np.zeros((1, 1)), np.ones((1, 1))
    >>> leverage_function(X, np.array([[0.0], [3.0]]), K, alpha=1.0)
    array([0.5, 0.5])
    """
    Z = complex_features(X, frequencies)
    factor = linalg.cho_factor(K + alpha * np.eye(len(K)))
    return np.einsum("ij,ij->j", Z.conj(), linalg.cho_solve(factor, Z)).real


def surrogate_leverage_function(
    X: np.ndarray, frequencies: np.ndarray, Y: np.ndarray, alpha: float
) -> np.ndarray:
    r"""Surrogate leverage :math:`L(w) / p(w)`, an upper bound of the leverage.

    .. math:: z_w^* \frac{Y Y^\top + n I}{n \alpha} z_w
              = \frac{\|z_w^* Y\|^2 + n^2}{n \alpha}

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Rows.
    frequencies : ndarray of shape (n_frequencies, n_features)
        Points w at which to evaluate.
    Y : ndarray of shape (n_samples, n_targets)
        Targets.
    alpha : float
        Regularisation, > 0; the paper's :math:`n \lambda`.

    Returns
    -------
    values : ndarray of shape (n_frequencies,)
        At least ``n / alpha``, hence never below `leverage_function`.

    References
    ----------
    .. [1] F. Liu, X. Huang, Y. Chen, J. Yang, J. A. K. Suykens, "Random Fourier
       Features via Fast Surrogate Leverage Weighted Sampling", AAAI 2020.

    Examples
    --------
    >>> import numpy as np
    >>> X, Y = np.array([[0.0], [1.0]]), np.array([[1.0], [-1.0]])
    >>> surrogate_leverage_function(X, np.array([[0.0], [np.pi]]), Y, alpha=2.0)
    array([1., 2.])
    """
    n = len(X)
    projections = complex_features(X, frequencies).conj().T @ Y
    return (np.sum(np.abs(projections) ** 2, axis=1) + n**2) / (n * alpha)


def surrogate_dof(K: np.ndarray, Y: np.ndarray, alpha: float) -> float:
    r"""Integral :math:`D = \mathrm{tr}[(Y Y^\top + n I) K] / (n \alpha)` of `L`.

    Parameters
    ----------
    K : ndarray of shape (n_samples, n_samples)
        Kernel matrix.
    Y : ndarray of shape (n_samples, n_targets)
        Targets.
    alpha : float
        Regularisation, > 0; the paper's :math:`n \lambda`.

    Returns
    -------
    float
        At least ``n / alpha`` for a kernel with k(x, x) = 1.

    Examples
    --------
    >>> import numpy as np
    >>> surrogate_dof(np.eye(2), np.array([[1.0], [-1.0]]), alpha=2.0)
    1.5
    """
    n = len(K)
    return float((np.einsum("ik,ij,jk->", Y, K, Y) + n * np.trace(K)) / (n * alpha))


def pool_surrogate_dof(moments: np.ndarray, weight_sum: float, alpha: float) -> float:
    r"""`surrogate_dof` of the kernel that a pool of features spans, in O(m) time.

    Parameters
    ----------
    moments : ndarray of shape (m, n_targets)
        :math:`Z^\top Y` of features with :math:`|\varphi(x)| = 1`.
    weight_sum : float
        Number of rows n.
    alpha : float
        Regularisation, > 0; the paper's :math:`n \lambda`.

    Returns
    -------
    float
        :math:`(\|Z^\top Y\|_F^2 + n \|Z\|_F^2) / (n \alpha)` with
        :math:`\|Z\|_F^2 = n`.

    Examples
    --------
    >>> import numpy as np
    >>> Z, Y = np.eye(2), np.array([[1.0], [-1.0]])  # Z Z^T = I
    >>> pool_surrogate_dof(Z.T @ Y, weight_sum=2, alpha=2.0)
    1.5
    """
    return float((np.sum(moments**2) + weight_sum**2) / (weight_sum * alpha))


def lemma_1_epsilon(
    n_frequencies: int, surrogate_dof: float, effective_dof: float, delta: float
) -> float:
    r"""Accuracy that Lemma 1 promises for s frequencies drawn from the surrogate.

    The smallest :math:`\epsilon` such that, with probability :math:`1 - \delta`,

    .. math:: -\epsilon I \preceq (K + \alpha I)^{-1/2} (\tilde K_q - K)
              (K + \alpha I)^{-1/2} \preceq \epsilon I ,

    follows from the matrix Bernstein inequality,

    .. math:: \delta = 16 d \exp \left( -\frac{s \epsilon^2}
              {2 D (1 + 2 \epsilon / 3)} \right).

    Parameters
    ----------
    n_frequencies : int
        s, independent draws from :math:`q = L / D`, >= 1.
    surrogate_dof : float
        D, see `surrogate_dof`. For another density q, the largest value of
        :math:`l(w) / q(w)`: :math:`1 / \lambda` for q = p, d for exact leverage.
    effective_dof : float
        d, of a regularisation alpha of at most the largest eigenvalue of K; then d is
        at least one half.
    delta : float
        Failure probability, in (0, 1).

    Returns
    -------
    epsilon : float
        > 0. At one and above the lower half of the promise is void.

    See Also
    --------
    lemma_1_features : The inverse: frequencies for an accuracy.
    surff.inspection.spectral_approximation : What is bounded, measured.

    Notes
    -----
    Each term of :math:`\tilde K_q` is positive semi-definite and, divided by the roots,
    at most :math:`l / q \le D` large, so that its second moment is at most D times its
    mean :math:`K (K + \alpha I)^{-1}`. The intrinsic dimension of the latter is d over
    its largest eigenvalue, at most 2 d; Tropp's constant makes 16 d of it ([1]_,
    Corollary 7.3.3). The inequality asks for :math:`\epsilon \ge \sqrt{D / s} + 2 D /
    (3 s)` besides, which follows from the above as long as :math:`16 d \ge e \delta`.

    References
    ----------
    .. [1] J. A. Tropp, "An Introduction to Matrix Concentration Inequalities",
       Foundations and Trends in Machine Learning 8, 2015.
    .. [2] F. Liu, X. Huang, Y. Chen, J. Yang, J. A. K. Suykens, "Random Fourier
       Features via Fast Surrogate Leverage Weighted Sampling", AAAI 2020, Lemma 1.

    Examples
    --------
    >>> epsilon = lemma_1_epsilon(7870, 100.0, effective_dof=10.0, delta=0.1)
    >>> round(epsilon, 3)
    0.5
    """
    # s eps^2 - 4/3 b eps - 2 b = 0 with b = D log(16 d / delta).
    b = surrogate_dof * _log_failures(effective_dof, delta)
    root = math.sqrt(4.0 / 9.0 * b**2 + 2.0 * n_frequencies * b)
    return (2.0 / 3.0 * b + root) / n_frequencies


def lemma_1_features(
    epsilon: float, surrogate_dof: float, effective_dof: float, delta: float
) -> int:
    r"""Frequencies that Lemma 1 asks for to promise an accuracy.

    .. math:: s \ge D \left( \frac{2}{\epsilon^2} + \frac{4}{3 \epsilon} \right)
              \log \frac{16 d}{\delta}

    Parameters
    ----------
    epsilon : float
        Accuracy, > 0.
    surrogate_dof, effective_dof, delta : float
        As in `lemma_1_epsilon`.

    Returns
    -------
    int

    Notes
    -----
    The theorems are about an accuracy of one half, where the bracket is 10.7. They
    print 5, with :math:`1 / \delta` in front of the logarithm instead of inside, which
    asks for more as soon as :math:`\delta` is below 0.29, whatever d >= 1/2.

    The paper's Lemma 1 differs: it asks for half of this number, 3,935 in the example,
    which the inequality does not promise.

    Examples
    --------
    >>> lemma_1_features(0.5, surrogate_dof=100.0, effective_dof=10.0, delta=0.1)
    7870
    """
    if not epsilon > 0:
        raise ValueError(f"epsilon must be positive, got {epsilon!r}.")
    factor = 2.0 / epsilon**2 + 4.0 / (3.0 * epsilon)
    return math.ceil(surrogate_dof * factor * _log_failures(effective_dof, delta))


def _log_failures(effective_dof, delta):
    _check_delta(delta)
    return math.log(16.0 * effective_dof / delta)


def theorem_1_features(surrogate_dof: float, effective_dof: float, delta: float) -> int:
    r"""Features that Theorem 1 asks for: :math:`s \ge 5 D \log(16 d) / \delta`.

    Parameters
    ----------
    surrogate_dof : float
        D.
    effective_dof : float
        d, > 1 / 16.
    delta : float
        Failure probability, in (0, 1).

    Returns
    -------
    int

    Examples
    --------
    >>> theorem_1_features(surrogate_dof=100.0, effective_dof=10.0, delta=0.1)
    25376
    """
    return _ceil(5.0 * surrogate_dof * math.log(16.0 * effective_dof), delta)


def theorem_2_features(
    pool_surrogate_dof: float,
    pool_effective_dof: float,
    effective_dof: float,
    lam: float,
    delta: float,
    z0: float = 1.0,
) -> int:
    r"""Features that Theorem 2 asks for, where the pool replaces the kernel.

    .. math:: s \ge \max\Bigl(\frac{7 z_0^2 \log(16 d)}{\lambda \delta},\;
              \frac{5 D^* \log(16 d^*)}{\delta}\Bigr)

    Parameters
    ----------
    pool_surrogate_dof, pool_effective_dof : float
        :math:`D^*` and :math:`d^*`, of the pool's kernel.
    effective_dof : float
        d of the exact kernel, > 1 / 16.
    lam : float
        :math:`\lambda = \alpha / n`, > 0.
    delta : float
        Failure probability, in (0, 1).
    z0 : float, default=1.0
        Bound on :math:`|z_w(x)|`; 1 for Fourier features.

    Returns
    -------
    int

    Examples
    --------
    >>> theorem_2_features(100.0, 10.0, 10.0, lam=0.01, delta=0.1)
    35527
    """
    pool = 7.0 * z0**2 * math.log(16.0 * effective_dof) / lam
    kept = 5.0 * pool_surrogate_dof * math.log(16.0 * pool_effective_dof)
    return _ceil(max(pool, kept), delta)


def _ceil(features, delta):
    _check_delta(delta)
    if not math.isfinite(features / delta):
        raise ValueError(
            "the number of features must be finite, got infinity: alpha or delta is "
            "too small."
        )
    return math.ceil(features / delta)


def _check_delta(delta):
    if not 0 < delta < 1:
        raise ValueError(f"delta must lie in (0, 1), got {delta!r}.")


# -- eigenvalue decay ------------------------------------------------------------------
#
# With mu_i the eigenvalues of K / n, which sum to one as k(x, x) = 1, and lambda =
# 1 / sqrt(n), the degrees of freedom d = sum_i mu_i / (mu_i + lambda) count, up to a
# constant factor, the mu_i above lambda:
#
#   mu_i ~ exp(-i)     above lambda for i < log(1 / lambda): d ~ log(n) / 2,
#   mu_i ~ i^(-2t)     for i < lambda^(-1/(2t)): d ~ n^(1/(4t)); the tail adds a factor,
#   mu_i = 1/(i H_n)   H_n = 1 + 1/2 + ... + 1/n: with c = lambda H_n,
#                      d = sum_i 1 / (1 + c i) ~ log(1 + c n) / c ~ sqrt(n) / 2, as
#                      log(1 + c n) ~ log(n) / 2 and H_n ~ log(n). (Were the mu_i 1/i,
#                      not summing to one, d would be a factor log(n) larger.)
#
# Leverage sampling needs s ~ d log(d) features: log(n) log(log(n)), which Li et al.
# bound by log(n)^2; n^(1/(4t)) log(n); sqrt(n) log(n). The surrogate's D lies between
# 1 / lambda and (1 + mu_1) / lambda whatever the decay, hence s ~ sqrt(n) log(d).


class DecayCase(NamedTuple):
    r"""One way in which eigenvalues decay, and what theory says about it.

    Attributes
    ----------
    eigenvalues : callable
        ``(i, t)`` to the i-th eigenvalue, i = 1, 2, ..., not yet summing to one.
    dof_order : callable
        ``(n, t)`` to the order of the effective degrees of freedom d at
        :math:`\lambda = n^{-1/2}`, up to a constant factor.
    eigenvalues_text, dof_text, features_text : str
        The same in words; the last is the order of the number of features that
        leverage sampling needs.
    """

    eigenvalues: Callable[[np.ndarray, float], np.ndarray]
    dof_order: Callable[[float, float], float]
    eigenvalues_text: str
    dof_text: str
    features_text: str


#: Cases of decay by name. Only the polynomial one uses its rate ``t`` >= 1.
DECAYS: dict[str, DecayCase] = {
    "exponential": DecayCase(
        eigenvalues=lambda i, _: np.exp(-i),
        dof_order=lambda n, _: np.log(n),
        eigenvalues_text="exp(-i)",
        dof_text="log n",
        features_text="log n log log n",
    ),
    "polynomial": DecayCase(
        eigenvalues=lambda i, t: i ** (-2.0 * t),
        dof_order=lambda n, t: n ** (0.25 / t),
        eigenvalues_text="i^(-2t)",
        dof_text="n^(1/4t)",
        features_text="n^(1/4t) log n",
    ),
    "harmonic": DecayCase(
        eigenvalues=lambda i, _: 1.0 / i,
        dof_order=lambda n, _: np.sqrt(n),
        eigenvalues_text="1/i",
        dof_text="n^(1/2)",
        features_text="n^(1/2) log n",
    ),
}


def decaying_spectrum(decay: str, n_samples: int, t: float = 1.0) -> np.ndarray:
    r"""Eigenvalues of :math:`K / n` that decay as asked for and sum to one.

    Parameters
    ----------
    decay : {"exponential", "polynomial", "harmonic"}
        Key of `DECAYS`.
    n_samples : int
        How many: n, >= 1.
    t : float, default=1.0
        Rate of the polynomial decay :math:`i^{-2t}`, >= 1.

    Returns
    -------
    eigenvalues : ndarray of shape (n_samples,)
        Descending; they sum to one as those of a kernel with k(x, x) = 1 do.

    Raises
    ------
    ValueError
        If the name is unknown, or t < 1.

    Examples
    --------
    >>> decaying_spectrum("harmonic", 2).round(3)
    array([0.667, 0.333])
    """
    if decay not in DECAYS:
        raise ValueError(f"decay must be one of {', '.join(DECAYS)}, got {decay!r}.")
    if not t >= 1.0:
        raise ValueError(f"t must be at least 1, got {t!r}.")
    i = np.arange(1.0, n_samples + 1.0)
    eigenvalues = DECAYS[decay].eigenvalues(i, t)
    return eigenvalues / eigenvalues.sum()


def spectral_dof(eigenvalues: np.ndarray, lam: float) -> float:
    r"""Effective degrees of freedom :math:`d = \sum_i \mu_i / (\mu_i + \lambda)`.

    Parameters
    ----------
    eigenvalues : ndarray of shape (n_samples,)
        :math:`\mu_i`, those of :math:`K / n`, >= 0.
    lam : float
        :math:`\lambda = \alpha / n`, > 0.

    Returns
    -------
    float

    Examples
    --------
    >>> import numpy as np
    >>> spectral_dof(np.array([0.75, 0.25]), lam=0.25)
    1.25
    """
    return float(np.sum(eigenvalues / (eigenvalues + lam)))
