r"""How well a feature map reproduces its kernel.

Errors compare the exact kernel matrix ``K`` of a sample of rows with ``Z Z^T``. Both
are ``n`` by ``n``: take a sample of rows, as the paper's Figure 1 does with 1,000.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import linalg

__all__ = ["NORMS", "KernelErrors", "relative_error", "spectral_approximation"]


def spectral_norm(A):
    """Largest absolute eigenvalue of a symmetric matrix."""
    eigenvalues = linalg.eigvalsh(A)
    return max(abs(eigenvalues[0]), abs(eigenvalues[-1]))


#: Matrix norms by their names in ``norm``.
NORMS: dict[str, Callable[..., Any]] = {
    "spectral": spectral_norm,
    "frobenius": np.linalg.norm,
}


def relative_error(K: np.ndarray, Z: np.ndarray, norm: str = "spectral") -> float:
    r"""Relative error :math:`\|K - Z Z^\top\| / \|K\|`.

    Parameters
    ----------
    K : ndarray of shape (n_samples, n_samples)
        Exact kernel matrix.
    Z : ndarray of shape (n_samples, n_components)
        Features of the same rows.
    norm : {"spectral", "frobenius"}, default="spectral"
        Key of `NORMS`.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        If the norm is unknown.

    Notes
    -----
    ``O(n^3 + n^2 m)`` time and ``O(n^2)`` memory.

    Examples
    --------
    >>> import numpy as np
    >>> relative_error(np.eye(2), np.array([[1.0], [0.0]]))
    1.0
    """
    if norm not in NORMS:
        raise ValueError(f"norm must be one of {sorted(NORMS)}, got {norm!r}.")
    return float(NORMS[norm](K - Z @ Z.T) / NORMS[norm](K))


def spectral_approximation(K: np.ndarray, Z: np.ndarray, alpha: float) -> float:
    r"""Smallest :math:`\Delta` of a spectral approximation of :math:`K + \alpha I`.

    The smallest number such that

    .. math:: (1 - \Delta)(K + \alpha I) \preceq Z Z^\top + \alpha I
              \preceq (1 + \Delta)(K + \alpha I),

    the largest absolute eigenvalue of :math:`(K + \alpha I)^{-1/2} (Z Z^\top - K)
    (K + \alpha I)^{-1/2}`.

    Parameters
    ----------
    K : ndarray of shape (n_samples, n_samples)
        Exact kernel matrix.
    Z : ndarray of shape (n_samples, n_components)
        Features of the same rows.
    alpha : float
        Regularisation, > 0; the paper's :math:`n \lambda`.

    Returns
    -------
    float

    References
    ----------
    .. [1] H. Avron, M. Kapralov, C. Musco, C. Musco, A. Velingker, A. Zandieh, "Random
       Fourier Features for Kernel Ridge Regression", ICML 2017, Definition 1.
    """
    return _delta(Z @ Z.T - K, _root(K, alpha))


def _root(K, alpha):
    """Lower Cholesky factor of K + alpha I."""
    return linalg.cholesky(K + alpha * np.eye(len(K)), lower=True)


def _delta(E, root):
    """Largest absolute eigenvalue of E after division by both sides of the root."""
    E = linalg.solve_triangular(root, E, lower=True)
    E = linalg.solve_triangular(root, E.T, lower=True)
    return float(spectral_norm(0.5 * (E + E.T)))


class KernelErrors:
    r"""All errors of maps of the same rows; what depends only on K is computed once.

    Parameters
    ----------
    K : ndarray of shape (n_samples, n_samples)
        Exact kernel matrix.
    alpha : float
        Regularisation of `spectral_approximation`, > 0; the paper's :math:`n \lambda`.

    Notes
    -----
    ``O(n^3)`` time here and ``O(n^3 + n^2 m)`` per map; ``O(n^2)`` memory.

    Examples
    --------
    >>> import numpy as np
    >>> from surff.inspection.approximation import KernelErrors
    >>> errors = KernelErrors(np.eye(2), alpha=1.0)(np.diag([1.0, 0.0]))
    >>> {name: round(error, 3) for name, error in errors.items()}
    {'spectral': 1.0, 'frobenius': 0.707, 'delta': 0.5}
    """

    def __init__(self, K: np.ndarray, alpha: float):
        self._K = K
        self._norms = {name: norm(K) for name, norm in NORMS.items()}
        self._root = _root(K, alpha)

    def __call__(self, Z: np.ndarray) -> dict[str, float]:
        r"""Compute the errors of one map.

        Parameters
        ----------
        Z : ndarray of shape (n_samples, n_components)
            Features of the rows.

        Returns
        -------
        errors : dict of str to float
            `relative_error` in each of `NORMS`, and "delta", `spectral_approximation`.
        """
        E = Z @ Z.T - self._K
        errors = {name: float(NORMS[name](E) / self._norms[name]) for name in NORMS}
        return {**errors, "delta": _delta(E, self._root)}
