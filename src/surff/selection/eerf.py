"""Energy-based exploration of random features: the best correlated are kept."""

import numpy as np

from surff.selection.base import _Scoring
from surff.selection.leverage import surrogate_scores

__all__ = [
    "EERF",
]


class EERF(_Scoring):
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
    estimate of the pool's, it is another. ``O(n l d)`` time, ``O(l)`` memory besides a
    block of features. Nothing is random but the pool. The paper's features are
    :math:`\cos(w^\top x + b)` and score :math:`\frac1n |\sum_j y_j \cos(w^\top x_j +
    b)|`; the score of a pair is that at the best phase b.

    References
    ----------
    .. [1] S. Shahrampour, A. Beirami, V. Tarokh, "On Data-Dependent Random Features for
       Improved Generalization in Supervised Learning", AAAI 2018.
    """

    needs_target = True
    takes_arrays = True

    def __init__(self, n_candidates=10.0):
        self.n_candidates = n_candidates

    def _check(self):
        """Nothing but the size of the pool can be wrong."""

    def scores(self, pool, X, Y, sample_weight=None, rng=None):
        """Correlation of each candidate with the target, shape (n_candidates,)."""
        scores, weight_sum = surrogate_scores(pool, X, Y, sample_weight)
        return np.sqrt(scores) / weight_sum

    def _keep(self, probabilities, n_frequencies, rng):
        best = np.argsort(-probabilities, kind="stable")[:n_frequencies]
        return np.sort(best), np.ones(n_frequencies)
