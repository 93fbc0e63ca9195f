"""The parameter ``draw``: frequencies drawn without looking at the data.

A draw is an object with one method,
``draw(measure, n_frequencies, n_features, rng)``, that returns frequencies for
``gamma = 1``: an array of shape (n_frequencies, n_features), an object that stands for
one and has its own ``projections(X, out=None)``, or `WeightedFrequencies` where they do
not count alike. The first rows of a longer draw are those of a shorter one with the
same seed, for all but `SparseGrid`. It may import `kernels` and `backend`.
"""

from surff.draws.base import *
from surff.draws.modified import *
from surff.draws.orthogonal import *
from surff.draws.quadrature import *
from surff.draws.quasi_monte_carlo import *
from surff.draws.spherical_radial import *
from surff.draws.structured import *

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
