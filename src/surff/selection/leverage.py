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

from __future__ import annotations

from functools import partial

import numpy as np
from scipy.linalg import lapack

from surff.backend import Array, positive, summed
from surff.kernels import FourierMap, fourier_moments
from surff.linear import SingularError, accumulate
from surff.selection.base import ResamplingSelector, ScoreSelector, check_sample_size
from surff.selection.compression import pool_equations
from surff.selection.resampling import without_replacement

__all__ = [
    "RidgeLeverage",
    "SurrogateLeverage",
    "SurrogateScores",
    "effective_dof",
    "pair_scores",
    "ridge_column_scores",
    "ridge_leverage_scores",
    "surrogate_column_scores",
    "surrogate_leverage_scores",
    "surrogate_scores",
]


def ridge_column_scores(gram: np.ndarray, alpha: float) -> np.ndarray:
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


def ridge_leverage_scores(gram: np.ndarray, alpha: float) -> np.ndarray:
    r"""Ridge leverage of each candidate of a pool: `ridge_column_scores` of its pair.

    Parameters
    ----------
    gram : ndarray of shape (2 * n_candidates, 2 * n_candidates)
        Gram matrix of the pool's columns, upper triangle.
    alpha : float
        Regularisation, > 0; the paper's :math:`n \lambda`.

    Returns
    -------
    scores : ndarray of shape (n_candidates,)
        They sum to the effective degrees of freedom of the pool's kernel.
    """
    return pair_scores(ridge_column_scores(gram, alpha))


def effective_dof(gram: np.ndarray, alpha: float) -> float:
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


def pair_scores(column_scores: np.ndarray) -> np.ndarray:
    """Score of each frequency: its cosine column's plus its sine column's.

    Parameters
    ----------
    column_scores : ndarray of shape (2 * n_frequencies,)
        Cosine columns first.
    """
    return column_scores.reshape(2, -1).sum(axis=0)


def surrogate_column_scores(moments: np.ndarray) -> np.ndarray:
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


def surrogate_leverage_scores(
    moments: np.ndarray, weight_sum: float, ridge_term: bool = False
) -> np.ndarray:
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


def pool_moments(pool, X, Y, sample_weight):
    """Moments of the candidates with the weighted targets, and the sum of weights."""
    weight_sum = X.shape[0]
    if sample_weight is not None:
        weight_sum, Y = sample_weight.sum(), Y * sample_weight[:, None]
    return fourier_moments(X, pool, Y), weight_sum


def surrogate_scores(
    pool: np.ndarray,
    X: Array,
    Y: np.ndarray,
    sample_weight: np.ndarray | None = None,
    ridge_term: bool = False,
) -> tuple[np.ndarray, float]:
    """Surrogate leverage of each candidate, and the sum of the weights."""
    sums = summed(partial(pool_moments, pool), X, Y, sample_weight)
    return surrogate_leverage_scores(*sums, ridge_term), sums[1]


class RidgeLeverage(ResamplingSelector):
    r"""Select frequencies by their ridge leverage (leverage-RFF).

    Candidate i scores the diagonal entry of :math:`Z^* Z (Z^* Z + \alpha I)^{-1}` for
    the pool's features. Uses X, not y.

    Parameters
    ----------
    alpha : float, default=1.0
        Regularisation of the scores, > 0, in units of :math:`Z^\top Z` (the paper's
        :math:`n \lambda`). As alpha grows the scores become uniform.
    n_candidates : int or float, default=2.0
        Pool size l: a number of candidates, or a multiple of the frequencies kept.
    resample : {"without_replacement", "multinomial", "reweight"}, \
            default="multinomial"
        How frequencies are taken from the pool; a key of `RESAMPLERS`.
    n_rows : int or None, default=None
        Rows, drawn without replacement, from which :math:`Z^\top Z` is estimated
        without bias: m of n rows count n / m times each, so that alpha means the same.
        None takes all. Take several times the 2 l columns of the pool: fewer rows make
        the scores noisy, and the weights with them. A row of weight w is drawn with w
        times the probability of one of weight 1, and once at most.

    Notes
    -----
    ``O(n l^2 + l^3)`` time and ``O(l^2)`` memory, with ``n_rows`` in the place of n.

    References
    ----------
    .. [1] Z. Li, J.-F. Ton, D. Oglic, D. Sejdinovic, "Towards a Unified Analysis of
       Random Fourier Features", ICML 2019, Algorithm 1.
    .. [2] Y. Sun, A. Gilbert, A. Tewari, "But How Does It Work in Theory? Linear SVM
       with Random Features", NeurIPS 2018, for ``n_rows``.
    """

    needs_target = False

    def __init__(
        self,
        alpha: float = 1.0,
        n_candidates: int | float = 2.0,
        resample: str = "multinomial",
        n_rows: int | None = None,
    ):
        self.alpha = alpha
        self.n_candidates = n_candidates
        self.resample = resample
        self.n_rows = n_rows

    def scores(
        self,
        pool: np.ndarray,
        X: Array,
        Y: Array,
        sample_weight: np.ndarray | None = None,
        rng: np.random.Generator | None = None,
    ) -> np.ndarray:
        """Ridge leverage of each candidate of the pool, shape (n_candidates,).

        ``rng`` draws the rows; without ``n_rows`` it is not used.
        """
        del Y  # the kernel does not depend on it
        alpha = positive("alpha", self.alpha)
        check_sample_size("n_rows", self.n_rows)
        if self.n_rows is None:
            equations = pool_equations(pool, X, sample_weight)
        else:
            rows, weight = sampled_rows(X.shape[0], self.n_rows, rng, sample_weight)
            no_target = np.zeros((X.shape[0], 0))
            equations = accumulate(FourierMap(pool), X, no_target, weight, rows)
        return ridge_leverage_scores(equations.gram, alpha)


def sampled_rows(n_samples, n_rows, rng, sample_weight):
    """Distinct rows, and weights of all rows that leave sums over them unbiased."""
    weight = np.ones(n_samples) if sample_weight is None else sample_weight
    if n_rows >= np.count_nonzero(weight):
        return None, sample_weight
    if rng is None:
        raise ValueError("n_rows draws rows: scores requires rng, got None.")
    shares = weight.astype(np.float64) / weight.sum(dtype=np.float64)
    # Rows are drawn like candidates: row i has the probability pi_i and the weight
    # n_rows / (n pi_i) in a mean over all, so w_i / pi_i in a sum of w_i.
    rows, factors = without_replacement(shares, n_rows, rng)
    sampled = np.zeros(n_samples)
    sampled[rows] = weight[rows] * factors * (n_samples / n_rows)
    return rows, sampled


class SurrogateScores(ScoreSelector):
    """Scores of a pool that are those of `surrogate_scores`."""

    ridge_term = False

    def scores(
        self,
        pool: np.ndarray,
        X: Array,
        Y: Array,
        sample_weight: np.ndarray | None = None,
        rng: np.random.Generator | None = None,
    ) -> np.ndarray:
        """Alignment of each candidate with the target, shape (n_candidates,).

        With ``ridge_term`` it is the surrogate of Algorithm 1 with n I.
        """
        del rng  # nothing is random but the pool
        return surrogate_scores(pool, X, Y, sample_weight, self.ridge_term)[0]


class SurrogateLeverage(ResamplingSelector, SurrogateScores):
    r"""Select frequencies by the paper's surrogate leverage (Algorithm 1).

    Candidate i scores :math:`|\sum_j y_j \exp(-\mathrm i\, w_i^\top x_j)|^2`, plus
    :math:`n^2` with the ridge term. Uses X and y; several targets add up.

    Parameters
    ----------
    ridge_term : bool, default=False
        Keep the ``n I`` term (the paper's q~) or leave it out (its q~').
    n_candidates : int or float, default=4.0
        Pool size l: a number of candidates, or a multiple of the frequencies kept. The
        paper's experiments have l = s, that is 1.0.
    resample : {"multinomial", "without_replacement", "reweight"}, \
            default="multinomial"
        How frequencies are taken from the pool; a key of `RESAMPLERS`. The paper's
        Algorithm 1 is "multinomial"; it repeats frequencies.

    Notes
    -----
    ``O(n l d)`` time, ``O(l)`` memory besides a block of features: no inverse, and the
    pool's features are never stored.

    References
    ----------
    .. [1] F. Liu, X. Huang, Y. Chen, J. Yang, J. A. K. Suykens, "Random
       Fourier Features via Fast Surrogate Leverage Weighted Sampling", AAAI 2020,
       Algorithm 1.
    """

    takes_arrays = True

    def __init__(
        self,
        ridge_term: bool = False,
        n_candidates: int | float = 4.0,
        resample: str = "multinomial",
    ):
        self.ridge_term = ridge_term
        self.n_candidates = n_candidates
        self.resample = resample
