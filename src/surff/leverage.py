r"""Scores of candidate frequencies: ridge leverage and surrogate leverage.

For a candidate :math:`w` let :math:`z_w` be the vector of :math:`\exp(-\mathrm i\,
w^\top x_j)` over the rows. Relative to the spectral measure its ridge leverage is

.. math:: z_w^* (K + n \lambda I)^{-1} z_w

(Li et al. 2019, with ``K`` replaced by that of a pool of candidates), and its surrogate
leverage, an upper bound that needs no inverse, is

.. math:: z_w^* \frac{y y^\top + n I}{n^2 \lambda} z_w
          = \frac{|\sum_j y_j e^{-\mathrm i w^\top x_j}|^2 + n^2}{n^2 \lambda}

(the paper, Eq. (9); without the ``n I`` term its numerator is the score of q~'). A
candidate is a cosine and a sine column, and its score is the sum of theirs: that is the
complex quadratic form.
"""

import numpy as np
from scipy.linalg import lapack

from surff.solvers import SingularError

__all__ = [
    "effective_dof",
    "pair_scores",
    "ridge_column_scores",
    "ridge_leverage_scores",
    "surrogate_column_scores",
    "surrogate_leverage_scores",
]


def ridge_column_scores(gram, alpha):
    r"""Ridge leverage score of each column of a feature matrix.

    Computes :math:`\mathrm{diag}(Z^\top (Z Z^\top + \alpha I)^{-1} Z)
    = \mathrm{diag}(G (G + \alpha I)^{-1})` with :math:`G = Z^\top Z`.

    Parameters
    ----------
    gram : ndarray of shape (m, m)
        Upper triangle of :math:`G`; left as it is.
    alpha : float
        Regularisation, > 0, in units of :math:`G`; the paper's :math:`n \lambda`.

    Returns
    -------
    scores : ndarray of shape (m,)
        In [0, 1]; they sum to the effective degrees of freedom.

    Raises
    ------
    SingularError
        If ``G + alpha I`` is singular to working precision.

    Notes
    -----
    ``O(m^3)`` time, one extra ``(m, m)`` matrix.

    References
    ----------
    .. [1] Z. Li, J.-F. Ton, D. Oglic, D. Sejdinovic, "Towards a Unified Analysis of
       Random Fourier Features", ICML 2019, Section 3.2.

    Examples
    --------
    >>> import numpy as np
    >>> ridge_column_scores(np.diag([4.0, 1.0]), alpha=1.0)
    array([0.8, 0.5])
    """
    # G (G + alpha I)^-1 = I - alpha (G + alpha I)^-1: only a diagonal is needed.
    inverse = np.array(gram, dtype=np.float64, order="F")
    np.einsum("ii->i", inverse)[...] += alpha
    inverse, info = lapack.dpotrf(inverse, lower=0, clean=0, overwrite_a=1)
    if info:
        raise SingularError(
            f"Z^T Z + alpha I is singular to working precision (alpha={alpha:.3g}); "
            "increase alpha."
        )
    inverse, _ = lapack.dpotri(inverse, lower=0, overwrite_c=1)
    return np.clip(1.0 - alpha * np.einsum("ii->i", inverse), 0.0, 1.0)


def ridge_leverage_scores(gram, alpha):
    """Ridge leverage of each candidate of a pool: `ridge_column_scores` of its pair.

    Parameters
    ----------
    gram : ndarray of shape (2 * n_candidates, 2 * n_candidates)
        Gram matrix of the pool's columns, upper triangle.
    alpha : float
        Regularisation, > 0; the paper's :math:`n \\lambda`.

    Returns
    -------
    scores : ndarray of shape (n_candidates,)
        They sum to the effective degrees of freedom of the pool's kernel.
    """
    return pair_scores(ridge_column_scores(gram, alpha))


def effective_dof(gram, alpha):
    r"""Effective degrees of freedom :math:`d = \mathrm{tr}\, K (K + \alpha I)^{-1}`.

    Parameters
    ----------
    gram : ndarray of shape (m, m)
        Symmetric positive semi-definite: the kernel matrix :math:`K`, or the Gram
        matrix :math:`Z^\top Z` of features, which has the same non-zero eigenvalues as
        :math:`Z Z^\top`. Only the upper triangle is read.
    alpha : float
        Regularisation, > 0; the paper's :math:`n \lambda`.

    Returns
    -------
    float
        Between 0 and ``m``.

    Examples
    --------
    >>> import numpy as np
    >>> effective_dof(np.diag([3.0, 1.0]), alpha=1.0)
    1.25
    """
    eigenvalues = np.linalg.eigvalsh(gram, UPLO="U").clip(min=0.0)
    return float(np.sum(eigenvalues / (eigenvalues + alpha)))


def pair_scores(column_scores):
    """Score of each frequency: its cosine column's plus its sine column's.

    Parameters
    ----------
    column_scores : ndarray of shape (2 * n_frequencies,)
        Cosine columns first.
    """
    return column_scores.reshape(2, -1).sum(axis=0)


def surrogate_column_scores(moments):
    r"""Surrogate score of each column without the ridge term: :math:`\|z_j^\top Y\|^2`.

    Parameters
    ----------
    moments : ndarray of shape (m, n_targets)
        :math:`Z^\top Y`.

    Returns
    -------
    scores : ndarray of shape (m,)

    Notes
    -----
    Several targets add up: :math:`z^* Y Y^\top z = \sum_k |z^* y_k|^2`.

    Examples
    --------
    >>> import numpy as np
    >>> surrogate_column_scores(np.array([[3.0], [4.0]]))
    array([ 9., 16.])
    """
    return np.einsum("ij,ij->i", moments, moments)


def surrogate_leverage_scores(moments, weight_sum, ridge_term=False):
    r"""Surrogate leverage of each candidate, up to the factor :math:`n^2 \lambda`.

    Computes :math:`z_w^* (Y Y^\top + n I) z_w`, the paper's q~, or
    :math:`z_w^* Y Y^\top z_w`, its q~'.

    Parameters
    ----------
    moments : ndarray of shape (2 * n_candidates, n_targets)
        :math:`Z^\top Y` of the map's columns, which carry
        :math:`1 / \sqrt{\text{n\_candidates}}`.
    weight_sum : float
        Number of rows n, or the sum of their weights.
    ridge_term : bool, default=False
        Whether to keep the ``n I`` term.

    Returns
    -------
    scores : ndarray of shape (n_candidates,)

    Notes
    -----
    :math:`z_w^* n I z_w = n^2` for every candidate, since :math:`|z_w|` has modulus 1
    in each row. With it the scores are nearly uniform on real data.

    References
    ----------
    .. [1] F. Liu, X. Huang, Y. Chen, J. Yang, J. A. K. Suykens, "Random
       Fourier Features via Fast Surrogate Leverage Weighted Sampling", AAAI 2020,
       Algorithm 1.
    """
    n_candidates = len(moments) // 2
    scores = n_candidates * pair_scores(surrogate_column_scores(moments))
    return scores + weight_sum**2 if ridge_term else scores
