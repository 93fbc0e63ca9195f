r"""Which rows of a kernel matrix become landmarks.

Rules read the matrix through a `surff.kernels.KernelMatrix`, a block at a time; it is
never formed.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy import linalg
from sklearn.exceptions import ConvergenceWarning

from surff.backend import Array, divide_by_upper, map_slices, row_blocks
from surff.kernels import KernelMatrix, kernel_block_rows

__all__ = [
    "LANDMARK_RULES",
    "LeverageEstimate",
    "kmeans_centres",
    "leverage_rows",
    "recursive_leverage",
    "ridge_leverage_estimates",
    "rpcholesky_rows",
    "uniform_rows",
]

#: Pivots that RPCholesky proposes at a time: enough for fast products, and few enough
#: that most of them are accepted.
PROPOSALS = 64


def uniform_rows(
    matrix: KernelMatrix, n_landmarks: int, rng: np.random.Generator
) -> np.ndarray:
    """Choose rows at random, with probabilities proportional to their weights.

    Parameters
    ----------
    matrix : KernelMatrix
        Only its weights are read.
    n_landmarks : int
        Rows to choose, > 0.
    rng : numpy.random.Generator

    Returns
    -------
    indices : ndarray of int, shape (m,)
        Distinct rows with positive weights, ``n_landmarks`` of them or all. A
        smaller ``n_landmarks`` gives the first of them.

    Notes
    -----
    Rows are drawn one after the other from those left. Drawing from the rows repeated
    by their weights, repetitions passed over, has the same law. ``O(n log n)`` time.
    """
    return successive_sample(matrix.sample_weight, n_landmarks, rng)


def successive_sample(weights, size, rng):
    """Draw without replacement, each time proportionally to the weights left.

    The order of independent exponential waiting times with the weights as rates.
    """
    with np.errstate(divide="ignore", over="ignore"):
        waiting = rng.exponential(size=len(weights)) / weights
    return np.argsort(waiting, kind="stable")[: min(size, np.count_nonzero(weights))]


#: Why there is no landmark.
NO_PIVOT = (
    "landmarks='rpcholesky' needs a row with a positive value of k(x, x), got none; "
    "use landmarks='uniform'."
)


def rpcholesky_rows(
    matrix: KernelMatrix,
    n_landmarks: int,
    rng: np.random.Generator,
    n_proposals: int = PROPOSALS,
) -> np.ndarray:
    r"""Choose rows by randomly pivoted Cholesky.

    Each pivot is drawn with a probability proportional to the diagonal of the residual
    :math:`K - K_{:S} K_{SS}^{-1} K_{S:}` of the pivots S before it. Pivots are proposed
    several at a time and accepted or rejected (accelerated RPCholesky), which changes
    the speed but not the distribution.

    Parameters
    ----------
    matrix : KernelMatrix
    n_landmarks : int
        Rows to choose, > 0.
    rng : numpy.random.Generator
    n_proposals : int, default=64
        Pivots proposed at a time; 1 is plain RPCholesky.

    Returns
    -------
    indices : ndarray of int, shape (m,)
        Distinct rows in the order of choice, fewer than ``n_landmarks`` if the
        residual vanishes before. A smaller ``n_landmarks`` gives the first of them.

    Notes
    -----
    ``O(n m)`` entries of the matrix, ``O(n m^2)`` time and ``n (m + 1)`` numbers of
    memory. The expected trace of the residual is at most :math:`1 + \epsilon` times
    that of the best matrix of rank r once
    :math:`m \ge r / \epsilon + r \log(1 / (\epsilon \eta))`, with :math:`\eta` the
    share of the trace beyond rank r ([1]_, Theorem 5.1).

    References
    ----------
    .. [1] Y. Chen, E. N. Epperly, J. A. Tropp, R. J. Webber, "Randomly Pivoted
       Cholesky: Practical Approximation of a Kernel Matrix with Few Entry Evaluations",
       Communications on Pure and Applied Mathematics 78, 2025, Algorithm 2.1.
    .. [2] E. N. Epperly, J. A. Tropp, R. J. Webber, "Embrace Rejection: Kernel Matrix
       Approximation by Accelerated Randomly Pivoted Cholesky", SIAM Journal on Matrix
       Analysis and Applications 46, 2025, Algorithm 2.2.
    """
    n_samples = matrix.n_samples
    n_landmarks = min(n_landmarks, np.count_nonzero(matrix.sample_weight))
    residual = matrix.diagonal().clip(min=0.0)
    if not residual.any():
        raise ValueError(NO_PIVOT)
    floor = 100.0 * matrix.eps * residual  # below it a residual is rounding
    factor = np.empty((n_samples, n_landmarks))
    pivots = np.empty(0, dtype=np.intp)
    while len(pivots) < n_landmarks and (total := residual.sum()) > 0:
        done = len(pivots)
        proposals = rng.choice(n_samples, size=n_proposals, p=residual / total)
        uniform = rng.random(n_proposals)
        H = matrix.block(proposals, proposals)
        H -= factor[proposals, :done] @ factor[proposals, :done].T
        kept, L = rejection_cholesky(H, uniform * residual[proposals], floor[proposals])
        # A row proposed only because of rounding is not proposed again.
        residual[proposals[np.diagonal(H) <= floor[proposals]]] = 0.0
        kept = kept[: n_landmarks - done]
        if len(kept) == 0:
            continue
        L = L[: len(kept), : len(kept)]
        chosen = proposals[kept]
        _eliminate(matrix, chosen, L, factor, done, residual, floor)
        residual[chosen] = 0.0
        pivots = np.concatenate([pivots, chosen])
    if len(pivots) == 0:
        raise ValueError(NO_PIVOT)
    return pivots


def rejection_cholesky(H, thresholds, floor):
    """Accept pivots of a residual matrix, eliminating each from those after it.

    Parameters
    ----------
    H : ndarray of shape (b, b)
        Residual matrix of the proposals, before any of them.
    thresholds : ndarray of shape (b,)
        A pivot above its threshold is accepted: uniform numbers times the values with
        which the pivots were proposed.
    floor : ndarray of shape (b,)
        Pivots up to this are rounding.

    Returns
    -------
    kept : ndarray of int, shape (m,)
        Pivots accepted.
    L : ndarray of shape (m, m)
        Lower Cholesky factor of ``H[kept][:, kept]``.
    """
    H = H.copy()
    kept, columns = [], []
    for j in range(len(H)):
        pivot = H[j, j]
        if pivot > max(thresholds[j], floor[j]):
            column = H[:, j] / math.sqrt(pivot)
            H -= np.outer(column, column)
            kept.append(j)
            columns.append(column)
    kept = np.array(kept, dtype=np.intp)
    L = np.tril(np.array(columns).reshape(len(kept), len(H)).T[kept])
    return kept, L


def _eliminate(matrix, chosen, L, factor, done, residual, floor):
    """Write the Cholesky factor's columns for new pivots; lower the residual."""
    stop = done + len(chosen)
    known = factor[chosen, :done]
    entries = matrix.column_blocks(chosen)
    size = kernel_block_rows(stop, matrix.X)
    upper = np.asfortranarray(L.T)

    def eliminate(part):
        for rows in row_blocks(part.stop, size, part.start):
            G = entries(rows) - factor[rows, :done] @ known.T
            G = divide_by_upper(np.ascontiguousarray(G), upper)
            factor[rows, done:stop] = G
            left = residual[rows] - np.einsum("ij,ij->i", G, G)
            residual[rows] = np.where(left > floor[rows], left, 0.0)

    map_slices(eliminate, matrix.n_samples)


class LeverageEstimate(NamedTuple):
    """Ridge leverage of rows, estimated from a sample of them."""

    rows: np.ndarray  # (n_rows,)
    scores: np.ndarray  # (n_rows,), in [0, diagonal / alpha]
    alpha: float  # regularisation


def leverage_rows(
    matrix: KernelMatrix, n_landmarks: int, rng: np.random.Generator
) -> np.ndarray:
    """Choose rows by approximate ridge leverage, found recursively.

    Parameters
    ----------
    matrix : KernelMatrix
    n_landmarks : int
        Rows to choose, > 0.
    rng : numpy.random.Generator

    Returns
    -------
    indices : ndarray of int, shape (m,)
        Distinct rows with positive weights, ``n_landmarks`` of them or all.

    Notes
    -----
    ``O(n m)`` entries of the matrix, ``O(n m^2)`` time and, besides a block of rows,
    ``O(n + m^2)`` memory.

    References
    ----------
    .. [1] C. Musco, C. Musco, "Recursive Sampling for the Nystrom Method", NIPS 2017,
       Algorithm 3, and the authors' published code, which this follows in its
       constants.
    """
    positive = np.flatnonzero(matrix.sample_weight)
    if len(positive) <= n_landmarks:
        return positive
    estimate = recursive_leverage(matrix, n_landmarks, rng)
    # A row that scores zero, as a repeated landmark may, comes last.
    scores = estimate.scores.clip(np.finfo(np.float64).tiny, 1.0)
    return estimate.rows[successive_sample(scores, n_landmarks, rng)]


def recursive_leverage(
    matrix: KernelMatrix, n_landmarks: int, rng: np.random.Generator
) -> LeverageEstimate:
    r"""Approximate ridge leverage of all rows.

    Half of the rows, chosen at random, are scored by the same method; a sample of them
    by their scores gives the scores of all. The regularisation is set at each level
    such that about ``n_landmarks`` rows are sampled: the sum of the eigenvalues of the
    sample's matrix beyond the first k, divided by k, with
    :math:`k = m / (4 \log m)`.

    Parameters
    ----------
    matrix : KernelMatrix
        It has more than ``n_landmarks`` rows with positive weights.
    n_landmarks : int
        Rows to sample at each level, approximately.
    rng : numpy.random.Generator

    Returns
    -------
    LeverageEstimate
        For the rows with positive weights.
    """
    order = rng.permutation(np.flatnonzero(matrix.sample_weight))
    diagonal = matrix.diagonal()
    oversampling = math.log(max(n_landmarks, 3))
    rank = math.ceil(n_landmarks / (4.0 * oversampling))
    n_levels = math.ceil(math.log2(len(order) / n_landmarks))
    sample = order[: math.ceil(len(order) / 2**n_levels)]
    weights = np.ones(len(sample))
    for level in reversed(range(n_levels)):
        rows = order[: math.ceil(len(order) / 2**level)]
        estimate = ridge_leverage_estimates(
            matrix, rows, sample, weights, rank=rank, diagonal=diagonal[rows]
        )
        probabilities = np.minimum(1.0, oversampling * estimate.scores)
        taken = rng.random(len(rows)) < probabilities
        if not taken.any():
            taken[rng.choice(len(rows), size=min(n_landmarks, len(rows)))] = True
            probabilities = np.full(len(rows), taken.mean())
        sample, weights = rows[taken], 1.0 / probabilities[taken]
    return estimate


def ridge_leverage_estimates(
    matrix: KernelMatrix,
    rows: np.ndarray,
    sample: np.ndarray,
    weights: np.ndarray,
    *,
    alpha: float | None = None,
    rank: int | None = None,
    diagonal: np.ndarray | None = None,
) -> LeverageEstimate:
    r"""Ridge leverage of rows, estimated from a weighted sample S of them.

    .. math:: \hat\tau_i = \frac1\alpha \left(K - K_{:S}
              (K_{SS} + \alpha\, \mathrm{diag}(v)^{-1})^{-1} K_{S:} \right)_{ii}

    for weights v. With all rows as the sample and ones as weights it is the ridge
    leverage :math:`[K (K + \alpha I)^{-1}]_{ii}`.

    Parameters
    ----------
    matrix : KernelMatrix
    rows, sample : ndarray of int
        Rows to score, and rows to score them with.
    weights : ndarray of shape (n_sampled,)
        Weights v > 0 of the sample: the inverse probabilities with which its rows were
        taken.
    alpha : float, optional
        Regularisation, > 0; [1]_'s :math:`\lambda`. Give it or ``rank``.
    rank : int, optional
        Set alpha to the sum of the eigenvalues of :math:`\mathrm{diag}(v)^{1/2} K_{SS}
        \mathrm{diag}(v)^{1/2}` beyond the first ``rank``, divided by ``rank``.
    diagonal : ndarray of shape (n_rows,), optional
        Diagonal of the matrix at ``rows``, if it is known.

    Returns
    -------
    LeverageEstimate

    Notes
    -----
    Where the sample is a 1/2-spectral approximation of the matrix plus
    :math:`\alpha I`, 3/2 times the estimate lies between one and three times the
    leverage ([1]_, Section 3).

    References
    ----------
    .. [1] C. Musco, C. Musco, "Recursive Sampling for the Nystrom Method", NIPS 2017.
    """
    if diagonal is None:
        diagonal = matrix.diagonal()[rows]
    roots = np.sqrt(weights)
    inner = matrix.block(sample, sample) * roots * roots[:, None]
    eigenvalues, V = linalg.eigh(0.5 * (inner + inner.T))
    eigenvalues = eigenvalues.clip(min=0.0)
    if alpha is None:
        tail = eigenvalues[: max(0, len(eigenvalues) - rank)].sum() / rank
        # With fewer rows than `rank` the tail is empty: use the smallest harmless
        # alpha.
        alpha = max(tail, 1e-10 * eigenvalues[-1], np.finfo(np.float64).tiny)
    projection = roots[:, None] * V / np.sqrt(eigenvalues + alpha)
    entries = matrix.column_blocks(sample)
    scores = np.empty(len(rows))
    size = kernel_block_rows(len(sample), matrix.X)

    def score(part):
        for index in row_blocks(part.stop, size, part.start):
            P = entries(rows[index]) @ projection
            scores[index] = diagonal[index] - np.einsum("ij,ij->i", P, P)

    map_slices(score, len(rows))
    return LeverageEstimate(rows, scores.clip(min=0.0) / alpha, float(alpha))


#: Rules that choose landmarks among the rows, by their names in ``landmarks``.
LANDMARK_RULES: dict[str, Callable[..., np.ndarray]] = {
    "uniform": uniform_rows,
    "leverage": leverage_rows,
    "rpcholesky": rpcholesky_rows,
}


def kmeans_centres(
    X: Array,
    n_landmarks: int,
    rng: np.random.Generator,
    sample_weight: np.ndarray | None = None,
) -> np.ndarray:
    """Centres of clusters of the rows, by k-means on a sample.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n_samples, n_features)
        Rows.
    n_landmarks : int
        Clusters, > 0.
    rng : numpy.random.Generator
    sample_weight : ndarray of shape (n_samples,), optional
        Row weights, >= 0.

    Returns
    -------
    centres : ndarray of shape (m, n_features)
        ``n_landmarks`` of them, or one for each row of positive weight if that is less;
        dtype of ``X``.

    Notes
    -----
    Clusters are Euclidean, whatever the kernel. Ten iterations from a k-means++ start,
    on at most ``max(20 * n_landmarks, 10_000)`` rows, each in ``O(n_landmarks d)``
    time.

    References
    ----------
    .. [1] K. Zhang, I. W. Tsang, J. T. Kwok, "Improved Nystrom Low-Rank Approximation
       and Error Analysis", ICML 2008.
    """
    from sklearn.cluster import KMeans  # slow to import, and seldom used

    weights = np.ones(X.shape[0]) if sample_weight is None else sample_weight
    rows = np.flatnonzero(weights)
    limit = max(20 * n_landmarks, 10_000)
    if len(rows) > limit:
        rows = np.sort(rng.choice(rows, size=limit, replace=False))
    n_clusters = min(n_landmarks, len(rows))
    means = KMeans(
        n_clusters, n_init=1, max_iter=10, random_state=int(rng.integers(2**31 - 1))
    )
    with warnings.catch_warnings():
        # Fewer distinct rows than clusters: centres repeat and do no harm.
        warnings.simplefilter("ignore", ConvergenceWarning)
        means.fit(X[rows], sample_weight=weights[rows])
    return means.cluster_centers_
