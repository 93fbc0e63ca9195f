r"""Probabilities of candidates that align their kernel with the target.

For a pool of ``l`` candidates with alignments :math:`v_j = \|z_j^* Y\|^2` the kernel
:math:`\sum_j q_j \cos w_j^\top (x - x')` has the alignment :math:`q^\top v` with
:math:`Y Y^\top`. The probabilities that maximise it near the uniform ones solve

.. math:: \max_q\; q^\top v \quad \text{subject to} \quad q \ge 0,\quad
          \textstyle\sum_j q_j = 1,\quad
          \frac1l \sum_j \bigl( (l q_j)^2 - 1 \bigr) \le \rho .

The last is a chi-square ball: :math:`1 / \sum_j q_j^2`, the effective number of
candidates, is at least :math:`l / (1 + \rho)`.
"""

from __future__ import annotations

import numpy as np

from surff.backend import positive
from surff.selection.base import check_name
from surff.selection.leverage import SurrogateScores
from surff.selection.resampling import RESAMPLERS, mixture

__all__ = [
    "KernelAlignment",
    "aligned_probabilities",
]


def aligned_probabilities(alignments: np.ndarray, rho: float) -> np.ndarray:
    r"""Solve the module's program exactly.

    Parameters
    ----------
    alignments : ndarray of shape (n_candidates,)
        :math:`v_j`, finite.
    rho : float
        Radius of the chi-square ball, > 0.

    Returns
    -------
    probabilities : ndarray of shape (n_candidates,)
        :math:`q_j`, summing to 1. Where several q are optimal (a large rho and ties at
        the top), the one of smallest norm.

    Notes
    -----
    ``O(l log l)`` time. With the multiplier of the ball as :math:`1 / (2 b)` the
    optimum is :math:`q_j = \max(0, a + b v_j)`. The paper bisects on the multiplier.
    Between the multipliers at which a candidate reaches zero, :math:`\sum_j q_j^2` is a
    quadratic in b, so a bisection over those, of which there are l, leaves an equation
    with a closed solution.

    References
    ----------
    .. [1] A. Sinha, J. Duchi, "Learning Kernels with Random Features", NIPS 2016.

    Examples
    --------
    >>> import numpy as np
    >>> aligned_probabilities(np.array([3.0, 2.0, 1.0]), rho=0.24).round(3)
    array([0.533, 0.333, 0.133])
    >>> aligned_probabilities(np.array([3.0, 2.0, 1.0]), rho=5.0)
    array([1., 0., 0.])
    """
    n_candidates = len(alignments)
    square = (1.0 + rho) / n_candidates  # largest sum of q^2
    order = np.argsort(-alignments, kind="stable")
    # Only differences and their ratios matter; those to the largest cancel least.
    v = alignments[order] - alignments.max()
    if v[-1] < 0:
        v /= -v[-1]
    # At the multiplier where the last of the k best reaches zero, the k best have
    # q = (v - v_k) / (k (mean - v_k)).
    k = np.arange(1, n_candidates + 1)
    mean = np.cumsum(v) / k
    spread = np.maximum(np.cumsum(v**2) - k * mean**2, 0.0)
    gap = k * (mean - v)
    squares = np.full(n_candidates, np.inf)  # of the best alone, and of its ties
    apart = gap > 0
    squares[apart] = 1.0 / k[apart] + spread[apart] / gap[apart] ** 2
    support = int(np.searchsorted(-squares, -square))
    best = v[:support] - v[:support].mean()
    slope = 0.0
    if best[0] > best[-1]:
        slope = np.sqrt(max(square - 1.0 / support, 0.0) / (best @ best))
    probabilities = np.zeros(n_candidates)
    probabilities[order[:support]] = np.maximum(1.0 / support + slope * best, 0.0)
    return probabilities / probabilities.sum()


class KernelAlignment(SurrogateScores):
    r"""Learn the probabilities of the candidates by kernel alignment (LKRF).

    The probabilities q maximise :math:`\sum_j q_j |z_j^* y|^2`, the alignment of the
    kernel :math:`\sum_j q_j \cos w_j^\top (x - x')` with :math:`y y^\top`, in a
    chi-square ball around the uniform ones; see the module. Uses X and y; several
    targets add up.

    Parameters
    ----------
    rho : float, default=1.0
        Radius of the ball, > 0: :math:`\frac1l \sum_j ((l q_j)^2 - 1) \le \rho`. The
        effective number of candidates, :math:`1 / \sum_j q_j^2`, is at least
        :math:`l / (1 + \rho)`. A small rho leaves q uniform, a large one has the best
        candidate alone.
    n_candidates : int or float, default=4.0
        Pool size l: a number of candidates, or a multiple of the frequencies kept.
    resample : {"multinomial", "without_replacement"}, default="multinomial"
        How frequencies are taken from the pool by q. "multinomial" is the paper's; it
        repeats frequencies and weights them by 1. "without_replacement" weights them by
        :math:`s\, q_i / \pi_i` for the inclusion probability :math:`\pi_i`; where no
        more than s candidates have :math:`q_i > 0` it keeps these and has the learned
        kernel exactly, and fills the map with frequencies of weight 0.

    Notes
    -----
    In the mean the map's kernel is the learned one, not the pool's.
    ``O(n l d + l log l)`` time, ``O(l)`` memory besides a block of features.

    References
    ----------
    .. [1] A. Sinha, J. Duchi, "Learning Kernels with Random Features", NIPS 2016.
    """

    def __init__(
        self,
        rho: float = 1.0,
        n_candidates: int | float = 4.0,
        resample: str = "multinomial",
    ):
        self.rho = rho
        self.n_candidates = n_candidates
        self.resample = resample

    def _check(self):
        positive("rho", self.rho)
        check_name("resample", self.resample, ["multinomial", "without_replacement"])

    def _keep(self, alignments, n_frequencies, rng):
        q = aligned_probabilities(alignments, self.rho)
        exact = self.resample == "without_replacement"
        if exact and np.count_nonzero(q) <= n_frequencies:
            return mixture(q, n_frequencies)
        indices, weights = RESAMPLERS[self.resample](q, n_frequencies, rng)
        if not exact:
            return indices, np.ones(n_frequencies)
        # Those weights give the uniform mixture of the pool; l q_i gives that by q.
        return indices, weights * (len(q) * q[indices])
