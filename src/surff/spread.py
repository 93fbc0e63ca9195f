"""Mean and variance of all entries of the rows, from blocks that can be merged."""

import numpy as np
from scipy import sparse

from surff.array_api import other_namespace, to_numpy, wide_dtype
from surff.blocks import block_rows_like, row_blocks, rows_of

__all__ = ["EntrySpread"]


class EntrySpread:
    """Variance of all entries of ``X``, from blocks of rows; for ``gamma="scale"``.

    Attributes
    ----------
    weight : float
        Sum of the row weights, the number of rows without weights.
    mean, variance : float
        Of all entries.

    Notes
    -----
    Memory is that of a block. Means and variances of blocks are merged, so that no
    digits are lost where the mean is large.

    References
    ----------
    .. [1] T. F. Chan, G. H. Golub, R. J. LeVeque, "Algorithms for Computing the Sample
       Variance: Analysis and Recommendations", The American Statistician 37(3), 1983.
    """

    def __init__(self):
        self.weight, self.mean, self.variance = 0.0, 0.0, 0.0
        self._rounding = 0.0  # what rounding alone may leave of the variance

    def update(self, X, sample_weight=None):
        """Add checked rows, dense or CSR, and their weights; returns self."""
        size = block_rows_like(X, X.shape[1], wide_dtype(X))
        for rows in row_blocks(X.shape[0], size):
            weight = None if sample_weight is None else sample_weight[rows]
            total = rows.stop - rows.start if weight is None else float(weight.sum())
            if total > 0:
                self._add(rows_of(X, rows), weight, total)
        return self

    def _add(self, X, sample_weight, total):
        xp = other_namespace(X)
        if xp is not None:
            X = xp.astype(X, wide_dtype(X))

        def mean_of(A):
            if xp is None:
                row_means = np.asarray(A.mean(axis=1, dtype=np.float64)).ravel()
            else:
                row_means = to_numpy(xp.mean(A, axis=1))
            return float(np.average(row_means, weights=sample_weight))

        eps = 8 * np.finfo(np.float64).eps
        mean = mean_of(X)
        if sparse.issparse(X):
            square = mean_of(X.multiply(X))
            variance, rounding = square - mean**2, eps * square
        elif xp is not None:
            variance = mean_of(xp.square(X - mean))
            rounding = (eps * mean) ** 2
        else:
            variance = mean_of(np.square(X - np.float64(mean), dtype=np.float64))
            rounding = (eps * mean) ** 2
        self._combine(total, mean, variance, rounding)

    def _combine(self, weight, mean, variance, rounding):
        share = weight / (self.weight + weight)
        step = mean - self.mean
        self.weight += weight
        self.mean += share * step
        self.variance += share * (variance - self.variance + (1 - share) * step**2)
        self._rounding = max(self._rounding, rounding)

    def merge(self, other):
        """Add what another one has seen; returns self."""
        if other.weight > 0:
            self._combine(other.weight, other.mean, other.variance, other._rounding)
        return self

    def gamma(self, n_features):
        """``1 / (n_features * variance)``, 1 for constant data, as in SVC."""
        if self.variance <= self._rounding:
            return 1.0
        return float(1.0 / (n_features * self.variance))
