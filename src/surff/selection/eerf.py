"""Energy-based exploration of random features: the best correlated are kept."""

from __future__ import annotations

import numpy as np

from surff.backend import Array
from surff.selection.base import ScoreSelector
from surff.selection.leverage import surrogate_scores

__all__ = [
    "EERF",
]


class EERF(ScoreSelector):
    r"""Keep the frequencies that correlate best with the target (EERF).

    Energy-based exploration of random features: candidate i scores
    :math:`\frac1n |\sum_j y_j \exp(-\mathrm i\, w_i^\top x_j)|`, the length of the
    target's correlations with its cosine and its sine, and the s best are kept. Uses X
    and y; the squares of several targets add up.

    Parameters
    ----------
    n_candidates : int or float, default=10.0
        Pool size l: a number of candidates, or a multiple of the frequencies kept.

    Notes
    -----
    The importance weights are ones, as in the paper: the map's kernel is not an
    estimate of the pool's but another kernel. ``O(n l d)`` time, ``O(l)`` memory
    besides a block of features. Only the pool is random. The paper's features are
    :math:`\cos(w^\top x + b)` and score :math:`\frac1n |\sum_j y_j \cos(w^\top x_j +
    b)|`; the score of a pair is that at the best phase b.

    References
    ----------
    .. [1] S. Shahrampour, A. Beirami, V. Tarokh, "On Data-Dependent Random Features for
       Improved Generalization in Supervised Learning", AAAI 2018.
    """

    takes_arrays = True

    def __init__(self, n_candidates: int | float = 10.0):
        self.n_candidates = n_candidates

    def _check(self):
        """Only the size of the pool can be wrong."""

    def scores(
        self,
        pool: np.ndarray,
        X: Array,
        Y: Array,
        sample_weight: np.ndarray | None = None,
        rng: np.random.Generator | None = None,
    ) -> np.ndarray:
        """Correlation of each candidate with the target, shape (n_candidates,)."""
        del rng  # nothing is random but the pool
        scores, weight_sum = surrogate_scores(pool, X, Y, sample_weight)
        return np.sqrt(scores) / weight_sum

    def _keep(self, probabilities, n_frequencies, rng):
        del rng  # the best are kept
        best = np.argsort(-probabilities, kind="stable")[:n_frequencies]
        return np.sort(best), np.ones(n_frequencies)
