r"""Orthogonal frequencies: less variance than independent ones, at QR's price.

Rows of a block of ``n_features`` frequencies point in orthogonal directions that are
uniform on the sphere, and each has a norm of its own:

.. math:: W = S Q, \qquad Q \text{ Haar on } O(d),\; S_{ii} \sim |w| \text{ i.i.d.}

Each row alone has the law of the measure, so the estimate is unbiased.
"""

from __future__ import annotations

import numpy as np
from sklearn.base import BaseEstimator

from surff.kernels import SpectralMeasure

__all__ = ["Orthogonal", "haar_matrices"]


class Orthogonal(BaseEstimator):
    """Orthogonal random features, for isotropic measures.

    Notes
    -----
    ``O(n_frequencies * n_features**2)`` time to draw. Raises TypeError for a measure
    that is not isotropic, such as `surff.kernels.Laplace`.

    References
    ----------
    .. [1] F. X. Yu, A. T. Suresh, K. Choromanski, D. Holtmann-Rice, S. Kumar,
       "Orthogonal Random Features", NIPS 2016.
    """

    def draw(
        self,
        measure: SpectralMeasure,
        n_frequencies: int,
        n_features: int,
        rng: np.random.Generator,
    ) -> np.ndarray:
        """Draw ``n_frequencies`` rows for ``gamma = 1``."""
        # A stream of its own for the norms: the first rows do not depend on how many
        # blocks there are.
        (norm_rng,) = rng.spawn(1)
        norms = measure.radial_law(norm_rng, n_frequencies, n_features)
        n_blocks = -(-n_frequencies // n_features)
        directions = haar_matrices(rng, n_blocks, n_features).reshape(-1, n_features)
        return norms[:, None] * directions[:n_frequencies]


def haar_matrices(rng: np.random.Generator, n_matrices: int, n: int) -> np.ndarray:
    r"""Orthogonal matrices from the Haar measure, shape (n_matrices, n, n).

    The Q of a Gaussian matrix, its columns multiplied by the signs of R's diagonal:
    without them it depends on the routine's choice of signs and is not Haar.

    References
    ----------
    .. [1] F. Mezzadri, "How to Generate Random Matrices from the Classical Compact
       Groups", Notices of the AMS 54(5), 2007.
    """
    Q, R = np.linalg.qr(rng.standard_normal((n_matrices, n, n)))
    return Q * np.sign(np.einsum("bii->bi", R))[:, None, :]
