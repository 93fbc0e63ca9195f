r"""What a draw returns when its frequencies carry weights.

With weights :math:`a_i` the estimate of the kernel is
:math:`\frac1s \sum_i a_i \cos w_i^\top (x - x')`. A plain array of frequencies means
weights of one.
"""

from typing import NamedTuple

import numpy as np

__all__ = ["WeightedFrequencies", "split_weights"]


class WeightedFrequencies(NamedTuple):
    """Frequencies for gamma = 1 and their weights, which may be negative."""

    frequencies: np.ndarray  # (n_frequencies, n_features)
    weights: np.ndarray  # (n_frequencies,)


def split_weights(drawn):
    """Frequencies and weights of what a draw returned; None for weights of one."""
    if isinstance(drawn, WeightedFrequencies):
        return drawn
    return drawn, None
