r"""Nystrom: landmark rows of a kernel matrix, and the feature map they give.

With landmarks ``C``, a few rows of the data or other points, the map is

.. math:: \varphi(x) = k(x, C)\, K_{CC}^{+1/2},
          \qquad \varphi(x)^\top \varphi(x') = k(x, C)\, K_{CC}^{+}\, k(C, x').

It is exact on the landmarks, and what it leaves of the kernel matrix,
:math:`K - \tilde K`, is positive semi-definite and shrinks as landmarks are added. A
rule of `LANDMARK_RULES` says which rows become landmarks. Rules read the matrix through
a `KernelMatrix`, a block at a time; it is never formed.
"""

import math
import warnings
from typing import NamedTuple

import numpy as np
from scipy import linalg, sparse
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import pairwise_kernels

from surff._blas import divide_by_upper
from surff._threads import map_slices
from surff.blocks import block_rows, row_blocks
from surff.spectral import Laplace, ScaleMixture

__all__ = [
    "LANDMARK_RULES",
    "KernelMatrix",
    "LeverageEstimate",
    "NystroemMap",
    "PairwiseKernel",
    "PrecomputedKernel",
    "SpectralKernel",
    "inverse_root",
    "kmeans_centres",
    "leverage_rows",
    "recursive_leverage",
    "ridge_leverage_estimates",
    "rpcholesky_rows",
    "uniform_rows",
]

#: Columns up to which, and share of non-zeros from which, products of a sparse block of
#: rows are faster dense.
DENSE_COLUMNS = 256
DENSE_SHARE = 0.1

#: Negative eigenvalues up to this share of the largest one are taken for rounding.
NEGATIVE_SHARE = 1e-4

#: Pivots that RPCholesky proposes at a time.
PROPOSALS = 64


def inverse_root(K, eps=None):
    r"""Symmetric root :math:`K^{+1/2}` of the pseudo-inverse of a kernel matrix.

    Parameters
    ----------
    K : ndarray of shape (m, m)
        Symmetric positive semi-definite up to rounding.
    eps : float, optional
        Relative rounding of the entries; the machine epsilon of the dtype of ``K`` by
        default.

    Returns
    -------
    root : ndarray of shape (m, m), float64
        Symmetric; :math:`K\, \mathrm{root}^2 K = K`.
    smallest : float
        The smallest eigenvalue of ``K`` over the largest, negative where rounding or
        the kernel makes it so; 0 for a matrix of zeros.

    Notes
    -----
    ``O(m^3)`` time, in float64. Eigenvalues are cut up to what rounding may have made
    them: ``m`` times the machine epsilon of float64 times the largest eigenvalue, by
    this decomposition, and ``m * eps`` times the largest entry, by the entries. A
    negative eigenvalue shows how large rounding is, and cuts the positive ones up to
    its size, too, or up to 1e-4 of the largest.

    Examples
    --------
    >>> import numpy as np
    >>> root, smallest = inverse_root(np.diag([4.0, 1.0, -1e-20]))
    >>> root
    array([[0.5, 0. , 0. ],
           [0. , 1. , 0. ],
           [0. , 0. , 0. ]])
    """
    eps = np.finfo(K.dtype).eps if eps is None else eps
    K = K.astype(np.float64)
    eigenvalues, V = linalg.eigh(0.5 * (K + K.T))
    largest = eigenvalues[-1]
    if not largest > 0:
        return np.zeros_like(K), 0.0
    cut = max(
        len(K) * np.finfo(np.float64).eps * largest,
        len(K) * eps * abs(K).max(),
        min(-eigenvalues[0], NEGATIVE_SHARE * largest),
    )
    kept = eigenvalues > cut
    V = V[:, kept]
    return (V / np.sqrt(eigenvalues[kept])) @ V.T, float(eigenvalues[0] / largest)


class SpectralKernel:
    """Kernel blocks of a shift-invariant kernel of `surff.spectral`.

    Parameters
    ----------
    measure : SpectralMeasure
        Its ``kernel(X, Y, gamma)`` is called on dense blocks.
    gamma : float or ndarray of shape (n_features,)
        Bandwidth, > 0.

    Notes
    -----
    Values are computed in float64. Distances of sparse rows come from their products,
    and the kernel of the distances, where the kernel is isotropic; the Laplace kernel
    has scikit-learn's sparse code. Other kernels make a block of rows and the landmarks
    dense.
    """

    def __init__(self, measure, gamma):
        self.measure = measure
        self.gamma = gamma

    def select(self, X, indices):
        """What stands for rows of ``X`` as landmarks."""
        return X[indices]

    def __call__(self, X, landmarks):
        """Kernel of rows and landmarks, shape (n_rows, n_landmarks), float64."""
        if not (sparse.issparse(X) or sparse.issparse(landmarks)):
            # The measure centres both on the mean of its first argument. With the
            # landmarks first, a row's values do not depend on the rows beside it.
            return self.measure.kernel(landmarks, X, gamma=self.gamma).T
        if isinstance(self.measure, ScaleMixture):
            r = _distances(self._scaled(X), self._scaled(landmarks))
            # The same function of r in every dimension, so in one.
            values = self.measure.unit_kernel(r.reshape(-1, 1), np.zeros((1, 1)))
            return values.reshape(r.shape)
        if isinstance(self.measure, Laplace):
            return self.measure.unit_kernel(self._scaled(X), self._scaled(landmarks))
        return self(_dense(X), _dense(landmarks))

    def _scaled(self, X):
        factor = np.asarray(self.measure.scale(self.gamma), dtype=np.float64)
        if sparse.issparse(X):
            return sparse.csr_array(X.astype(np.float64).multiply(factor))
        return X.astype(np.float64, copy=False) * factor

    def diagonal(self, X):
        """Values of k(x, x), ones."""
        return np.ones(X.shape[0])


def _dense(X):
    return X.toarray() if sparse.issparse(X) else X


def _distances(X, Y):
    """Euclidean distances of rows, of which at least one set is sparse."""
    x, y = (np.asarray((A * A).sum(axis=1)).ravel()[:, None] for A in (X, Y))
    products = X @ Y.T
    squares = x + y.T
    # What rounding leaves of equal rows would be a distance of 1e-8.
    rounding = 4 * np.finfo(np.float64).eps * squares
    squares -= 2.0 * _dense(products)
    return np.sqrt(np.where(squares > rounding, squares, 0.0))


class PairwiseKernel:
    """Kernel blocks of a scikit-learn kernel or a function of two rows.

    Parameters
    ----------
    metric : str or callable
        See `sklearn.metrics.pairwise.pairwise_kernels`. A callable is a function of two
        rows or a kernel of `sklearn.gaussian_process.kernels`; threads call it at the
        same time.
    params : dict
        Arguments of the kernel.
    """

    def __init__(self, metric, params):
        self.metric = metric
        self.params = params

    def select(self, X, indices):
        """What stands for rows of ``X`` as landmarks."""
        return X[indices]

    def __call__(self, X, landmarks):
        """Kernel of rows and landmarks, shape (n_rows, n_landmarks)."""
        # In float64 whatever the rows have: the map amplifies rounding of its entries.
        X = X.astype(np.float64, copy=False)
        landmarks = landmarks.astype(np.float64, copy=False)
        return pairwise_kernels(
            X, landmarks, metric=self.metric, n_jobs=1, filter_params=True,
            **self.params,
        )  # fmt: skip

    def diagonal(self, X):
        """Values of k(x, x)."""
        size = 1 if callable(self.metric) else 32
        values = np.empty(X.shape[0])
        for block in row_blocks(len(values), size):
            values[block] = np.diagonal(self(X[block], X[block]))
        return values


class PrecomputedKernel:
    """Kernel blocks out of rows of a kernel matrix; landmarks are column numbers."""

    def select(self, X, indices):
        """What stands for rows of ``X`` as landmarks."""
        return indices

    def __call__(self, X, landmarks):
        """Kernel of rows and landmarks, shape (n_rows, n_landmarks)."""
        return _dense(X[:, landmarks])

    def diagonal(self, X):
        """Values of k(x, x)."""
        return np.asarray(X.diagonal(), dtype=np.float64)


class NystroemMap:
    """The map with its landmarks and normalization bound, on the calling thread alone.

    What a pass over the data calls on each of its blocks; as
    `surff.fourier.FourierMap`.

    Parameters
    ----------
    kernel : kernel object of this module
        ``kernel(X, landmarks)`` gives a block of kernel values.
    landmarks : ndarray or CSR matrix of shape (n_landmarks, n_features)
        As ``kernel`` takes them.
    normalization : ndarray of shape (n_landmarks, n_landmarks)
        :math:`K_{CC}^{+1/2}`, float64.
    dtype : dtype
        Of the features. A block is computed in float64: the normalization amplifies
        rounding.
    """

    def __init__(self, kernel, landmarks, normalization, dtype):
        self.kernel = kernel
        self.landmarks = efficient(landmarks)
        self.normalization = normalization
        self.n_components = normalization.shape[1]
        self.dtype = np.dtype(dtype)

    def __call__(self, X, out=None):
        """Features of the rows, written to ``out`` if given."""
        if out is None:
            out = np.empty((X.shape[0], self.n_components), self.dtype)
        # Kernels hold blocks of rows and of landmarks, in float64.
        for block in row_blocks(X.shape[0], kernel_block_rows(self.n_components, X)):
            values = self.kernel(efficient(X[block]), self.landmarks)
            out[block] = values @ self.normalization
        return out

    def astype(self, dtype):
        """The same map giving another floating-point type."""
        if self.dtype == dtype:
            return self
        return NystroemMap(self.kernel, self.landmarks, self.normalization, dtype)


def kernel_block_rows(n_columns, X):
    """Rows of a block: of ``n_columns`` kernel values, and of the features of ``X``."""
    return block_rows(max(n_columns, X.shape[1]), np.float64)


def efficient(X):
    """A block of rows in the form that products are fastest with."""
    if not sparse.issparse(X):
        return X
    is_wide = X.shape[1] > DENSE_COLUMNS
    is_thin = X.nnz <= DENSE_SHARE * X.shape[0] * X.shape[1]
    return X if is_wide and is_thin else X.toarray()


class KernelMatrix:
    r"""The weighted kernel matrix :math:`W^{1/2} K W^{1/2}` of rows, entry by entry.

    A weight w of a row acts as the row repeated w times: the ridge leverage and the
    residual diagonal of the weighted matrix are the sums over the repetitions.

    Parameters
    ----------
    kernel : kernel object of this module
        Gives blocks of kernel values.
    X : ndarray or CSR matrix of shape (n_samples, n_features)
        Rows.
    sample_weight : ndarray of shape (n_samples,), optional
        Row weights, >= 0; ones by default.

    Attributes
    ----------
    n_samples : int
        Rows, and columns, of the matrix.
    sample_weight : ndarray of shape (n_samples,)
        Row weights, float64.
    eps : float
        Relative rounding of the entries.
    """

    def __init__(self, kernel, X, sample_weight=None):
        self.kernel = kernel
        self.X = X
        self.n_samples = X.shape[0]
        if sample_weight is None:
            sample_weight = np.ones(self.n_samples)
            self._roots = None
        else:
            self._roots = np.sqrt(sample_weight, dtype=np.float64)
        self.sample_weight = np.asarray(sample_weight, dtype=np.float64)
        precomputed = isinstance(kernel, PrecomputedKernel)
        self.eps = float(np.finfo(X.dtype if precomputed else np.float64).eps)

    def diagonal(self):
        """Diagonal, shape (n_samples,)."""
        return self.sample_weight * self.kernel.diagonal(self.X)

    def block(self, rows, columns):
        """Entries of some rows and columns, arrays of numbers, in float64."""
        entries = self.column_blocks(columns)
        values = np.empty((len(rows), len(columns)))
        for part in row_blocks(len(rows), kernel_block_rows(len(columns), self.X)):
            values[part] = entries(rows[part])
        return values

    def column_blocks(self, columns):
        """Function from rows, a slice or numbers, to their entries in ``columns``."""
        landmarks = efficient(self.kernel.select(self.X, columns))

        def entries(rows):
            values = self.kernel(efficient(self.X[rows]), landmarks)
            if self._roots is None:
                return values
            return values * self._roots[rows, None] * self._roots[columns]

        return entries


def uniform_rows(matrix, n_landmarks, rng):
    """Choose rows at random, with probabilities proportional to their weights.

    Parameters
    ----------
    matrix : KernelMatrix
        Only its weights are looked at.
    n_landmarks : int
        Rows to choose, > 0.
    rng : numpy.random.Generator

    Returns
    -------
    indices : ndarray of int, shape (m,)
        Distinct rows with positive weights, ``n_landmarks`` of them or all. The first
        of them are those of a smaller ``n_landmarks``.

    Notes
    -----
    One after the other, out of those that are left: what drawing from the rows repeated
    by their weights and passing over repetitions gives. ``O(n log n)`` time.
    """
    return successive_sample(matrix.sample_weight, n_landmarks, rng)


def successive_sample(weights, size, rng):
    """Draw without replacement, each time proportionally to the weights left.

    The order of independent exponential waiting times with the weights as rates.
    """
    with np.errstate(divide="ignore", over="ignore"):
        waiting = rng.exponential(size=len(weights)) / weights
    return np.argsort(waiting, kind="stable")[: min(size, np.count_nonzero(weights))]


def rpcholesky_rows(matrix, n_landmarks, rng, n_proposals=PROPOSALS):
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
        Distinct rows in the order of choice, fewer than ``n_landmarks`` where the
        residual vanishes before. The first of them are those of a smaller
        ``n_landmarks``.

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
        raise ValueError(
            "landmarks='rpcholesky' needs a row with a positive value of k(x, x), and "
            "there is none; use landmarks='uniform'."
        )
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
        # What was proposed in error, for a residual that is rounding, is not again.
        residual[proposals[np.diagonal(H) <= floor[proposals]]] = 0.0
        kept = kept[: n_landmarks - done]
        if len(kept) == 0:
            continue
        L = L[: len(kept), : len(kept)]
        chosen = proposals[kept]
        _eliminate(matrix, chosen, L, factor, done, residual, floor)
        residual[chosen] = 0.0
        pivots = np.concatenate([pivots, chosen])
    return pivots


def rejection_cholesky(H, thresholds, floor):
    """Accept pivots of a residual matrix, eliminating each from those after it.

    Parameters
    ----------
    H : ndarray of shape (b, b)
        Residual matrix of the proposals, before any of them.
    thresholds : ndarray of shape (b,)
        A pivot above its own is accepted: uniform numbers times the values with which
        the pivots were proposed.
    floor : ndarray of shape (b,)
        Pivots up to it are rounding.

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
    """Write the columns of the Cholesky factor for new pivots; lower the residual."""
    stop = done + len(chosen)
    known = factor[chosen, :done]
    entries = matrix.column_blocks(chosen)
    size = kernel_block_rows(stop, matrix.X)
    upper = np.asfortranarray(L.T)

    def eliminate(part):
        for block in row_blocks(part.stop - part.start, size):
            rows = slice(part.start + block.start, part.start + block.stop)
            G = entries(rows) - factor[rows, :done] @ known.T
            G = divide_by_upper(np.ascontiguousarray(G), upper)
            factor[rows, done:stop] = G
            left = residual[rows] - np.einsum("ij,ij->i", G, G)
            residual[rows] = np.where(left > floor[rows], left, 0.0)

    map_slices(eliminate, matrix.n_samples)


class LeverageEstimate(NamedTuple):
    """Ridge leverage of rows, as a sample of them gives it."""

    rows: np.ndarray  # (n_rows,)
    scores: np.ndarray  # (n_rows,), in [0, diagonal / alpha]
    alpha: float  # regularisation


def leverage_rows(matrix, n_landmarks, rng):
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
    # A row that scores zero, as repetitions of landmarks may, comes last.
    scores = estimate.scores.clip(np.finfo(np.float64).tiny, 1.0)
    return estimate.rows[successive_sample(scores, n_landmarks, rng)]


def recursive_leverage(matrix, n_landmarks, rng):
    r"""Approximate ridge leverage of all rows.

    Half of the rows, chosen at random, are scored by the same method; a sample of them
    by their scores gives the scores of all. The regularisation is set at each level
    such that some ``n_landmarks`` rows are sampled: the sum of the eigenvalues of the
    sample's matrix beyond the first k, divided by k, with
    :math:`k = m / (4 \log m)`.

    Parameters
    ----------
    matrix : KernelMatrix
        Of more than ``n_landmarks`` rows with positive weights.
    n_landmarks : int
        Rows to sample at each level, about.
    rng : numpy.random.Generator

    Returns
    -------
    LeverageEstimate
        Of the rows with positive weights.
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
    matrix, rows, sample, weights, *, alpha=None, rank=None, diagonal=None
):
    r"""Ridge leverage of rows, estimated from a weighted sample S of them.

    .. math:: \hat\tau_i = \frac1\alpha \left(K - K_{:S}
              (K_{SS} + \alpha\, \mathrm{diag}(v)^{-1})^{-1} K_{S:} \right)_{ii}

    for weights v. With all rows as the sample and ones as weights it is the ridge
    leverage :math:`[K (K + \alpha I)^{-1}]_{ii}`.

    Parameters
    ----------
    matrix : KernelMatrix
    rows, sample : ndarray of int
        Rows to score, and those to score them with.
    weights : ndarray of shape (n_sampled,)
        Weights v > 0 of the sample: the inverse probabilities with which its rows were
        taken.
    alpha : float, optional
        Regularisation, > 0; [1]_'s :math:`\lambda`. It or ``rank`` is given.
    rank : int, optional
        Set alpha to the sum of the eigenvalues of :math:`\mathrm{diag}(v)^{1/2} K_{SS}
        \mathrm{diag}(v)^{1/2}` beyond the first ``rank``, divided by ``rank``.
    diagonal : ndarray of shape (n_rows,), optional
        Diagonal of the matrix at ``rows``, where it is at hand.

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
        # With fewer rows than the rank nothing is left: as little as does no harm.
        alpha = max(tail, 1e-10 * eigenvalues[-1], np.finfo(np.float64).tiny)
    projection = roots[:, None] * V / np.sqrt(eigenvalues + alpha)
    entries = matrix.column_blocks(sample)
    scores = np.empty(len(rows))
    size = kernel_block_rows(len(sample), matrix.X)

    def score(part):
        for block in row_blocks(part.stop - part.start, size):
            index = slice(part.start + block.start, part.start + block.stop)
            P = entries(rows[index]) @ projection
            scores[index] = diagonal[index] - np.einsum("ij,ij->i", P, P)

    map_slices(score, len(rows))
    return LeverageEstimate(rows, scores.clip(min=0.0) / alpha, float(alpha))


#: Rules that choose landmarks among the rows, by name.
LANDMARK_RULES = {
    "uniform": uniform_rows,
    "leverage": leverage_rows,
    "rpcholesky": rpcholesky_rows,
}


def kmeans_centres(X, n_landmarks, rng, sample_weight=None):
    """Centres of clusters of the rows, by k-means on a sample of them.

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
        ``n_landmarks`` of them, or one for each row of positive weight; dtype of ``X``.

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
