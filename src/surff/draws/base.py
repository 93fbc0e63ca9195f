r"""What a draw returns, and the plainest one: independent frequencies.

With weights :math:`a_i` the estimate of the kernel is
:math:`\frac1s \sum_i a_i \cos w_i^\top (x - x')`. A plain array of frequencies means
weights of one.
"""

from typing import NamedTuple

import numpy as np
from sklearn.base import BaseEstimator

__all__ = [
    "MonteCarlo",
    "WeightedFrequencies",
    "split_weights",
]


class WeightedFrequencies(NamedTuple):
    """Frequencies for gamma = 1 and their weights, which may be negative."""

    frequencies: np.ndarray  # (n_frequencies, n_features)
    weights: np.ndarray  # (n_frequencies,)


def split_weights(drawn):
    """Frequencies and weights of what a draw returned; None for weights of one."""
    if isinstance(drawn, WeightedFrequencies):
        return drawn
    return drawn, None


class MonteCarlo(BaseEstimator):
    """Independent draws from the spectral measure.

    References
    ----------
    .. [1] A. Rahimi, B. Recht, "Random Features for Large-Scale Kernel Machines",
       NIPS 2007.
    """

    def draw(self, measure, n_frequencies, n_features, rng):
        """Draw ``n_frequencies`` rows for ``gamma = 1``; uses only ``n_features``."""
        return measure.sample(rng, n_frequencies, n_features)
