"""The parameter ``draw``: frequencies drawn without looking at the data.

A draw is an object with one method,
``draw(measure, n_frequencies, n_features, rng)``, that returns frequencies for
``gamma = 1``: an array of shape (n_frequencies, n_features), an object that stands for
one and has its own ``projections(X, out=None)``, or `WeightedFrequencies` where they do
not count alike. The first rows of a longer draw are those of a shorter one with the
same seed, for all but `SparseGrid`. It may import `kernels` and `backend`.
"""

from surff.draws.base import MonteCarlo, WeightedFrequencies, split_weights
from surff.draws.modified import Modified
from surff.draws.orthogonal import Orthogonal, haar_matrices
from surff.draws.quadrature import (
    GaussHermite,
    Reweighted,
    SparseGrid,
    nonnegative_weights,
    sparse_grid,
)
from surff.draws.quasi_monte_carlo import (
    Halton,
    Sobol,
    halton_sequence,
    reverse_radix_permutation,
)
from surff.draws.spherical_radial import SphericalRadial, simplex_vertices
from surff.draws.structured import HadamardFrequencies, StructuredOrthogonal

__all__ = [
    "DRAWS",
    "GaussHermite",
    "HadamardFrequencies",
    "Halton",
    "Modified",
    "MonteCarlo",
    "Orthogonal",
    "Reweighted",
    "Sobol",
    "SparseGrid",
    "SphericalRadial",
    "StructuredOrthogonal",
    "WeightedFrequencies",
    "haar_matrices",
    "halton_sequence",
    "nonnegative_weights",
    "reverse_radix_permutation",
    "simplex_vertices",
    "sparse_grid",
    "split_weights",
]

#: Draws by name.
DRAWS = {
    "monte_carlo": MonteCarlo,
    "halton": Halton,
    "sobol": Sobol,
    "orthogonal": Orthogonal,
    "structured_orthogonal": StructuredOrthogonal,
    "spherical_radial": SphericalRadial,
    "gauss_hermite": GaussHermite,
    "sparse_grid": SparseGrid,
    "reweighted": Reweighted,
    "modified": Modified,
}
