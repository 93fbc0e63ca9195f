r"""How well a feature map reproduces its kernel.

Errors compare the exact kernel matrix ``K`` of a sample of rows with ``Z Z^T``. Both
are ``n`` by ``n``: take a sample of rows, as the paper's Figure 1 does with 1,000.
"""

import numpy as np
from scipy import linalg

__all__ = ["NORMS", "relative_error", "spectral_approximation"]


def spectral_norm(A):
    """Largest absolute eigenvalue of a symmetric matrix."""
    n = len(A)
    low = linalg.eigh(A, eigvals_only=True, subset_by_index=[0, 0])[0]
    high = linalg.eigh(A, eigvals_only=True, subset_by_index=[n - 1, n - 1])[0]
    return max(abs(low), abs(high))


#: Matrix norms by name.
NORMS = {"spectral": spectral_norm, "frobenius": np.linalg.norm}


def relative_error(K, Z, norm="spectral"):
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
        For an unknown norm.

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


def spectral_approximation(K, Z, alpha):
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
    B = K + alpha * np.eye(len(K))
    return float(np.abs(linalg.eigh(Z @ Z.T - K, B, eigvals_only=True)).max())
