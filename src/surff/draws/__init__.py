"""Candidate frequencies drawn from a spectral measure, without looking at the data.

A draw is an object with one method,
``draw(measure, n_frequencies, n_features, rng) -> frequencies``, that returns
frequencies for ``gamma = 1``. The first rows of a longer draw are those of a shorter
one with the same seed.
"""

from surff.draws.monte_carlo import MonteCarlo
from surff.draws.quasi_monte_carlo import Halton

__all__ = ["DRAWS", "Halton", "MonteCarlo"]

#: Draws by name.
DRAWS = {"monte_carlo": MonteCarlo, "halton": Halton}
