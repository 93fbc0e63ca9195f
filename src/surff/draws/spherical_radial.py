r"""Spherical-radial quadrature of degree (3, 3) with random radii and rotations.

Given the mixing variable of the measure (see `surff.kernels.spectral`), a frequency is
Gaussian. With :math:`\rho \sim \chi_{d+2}`, a Haar rotation Q and the vertices
:math:`v_j` of the regular simplex, the rule

.. math:: \Bigl(1 - \frac{d}{\rho^2}\Bigr) f(0)
          + \frac{d}{(d + 1) \rho^2} \sum_{j=1}^{d+1} f(\rho Q v_j)

has the mean :math:`\mathrm E f(g)` for even f, and is exact for polynomials of degree
three: for a kernel, up to the square of the distance.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import helmert
from scipy.special import gammaincinv
from sklearn.base import BaseEstimator

from surff.draws.base import WeightedFrequencies
from surff.draws.orthogonal import haar_matrices
from surff.kernels import SpectralMeasure, golden_sequence, open_uniform

__all__ = ["SphericalRadial", "simplex_vertices"]


class SphericalRadial(BaseEstimator):
    r"""Spherical-radial rules of degree (3, 3), for isotropic measures.

    Rules of ``n_features + 1`` frequencies (of one frequency in one dimension) share
    one frequency at zero, the first row, which collects their centre weights. The radii
    are uniform quantiles from a shifted golden-ratio sequence instead of independent
    ones: each has the law it needs, and the centre weights nearly cancel.

    Parameters
    ----------
    signed : bool, default=False
        Whether the centre keeps a negative weight. The centre weight has mean zero and
        is negative about as often as not, and no real feature map can carry it then.
        With False a negative one becomes zero. That adds the same number to every
        kernel value, which changes nothing for a model with an intercept: a constant
        feature vanishes when features are centred. With True the estimate is unbiased;
        see `surff.kernels.kernel_estimate`.

    Notes
    -----
    The error near distance zero is far below that of independent draws. ``O(
    n_frequencies * n_features**2)`` time to draw. Raises TypeError for a measure that
    is not isotropic.

    References
    ----------
    .. [1] M. Munkhoeva, Y. Kapushev, E. Burnaev, I. Oseledets, "Quadrature-based
       Features for Kernel Approximation", NeurIPS 2018.
    """

    def __init__(self, signed: bool = False) -> None:
        self.signed = signed

    def draw(
        self,
        measure: SpectralMeasure,
        n_frequencies: int,
        n_features: int,
        rng: np.random.Generator,
    ) -> WeightedFrequencies:
        """Draw `WeightedFrequencies` with ``n_frequencies`` rows for ``gamma = 1``."""
        if n_frequencies < 2:
            raise ValueError(
                "draw='spherical_radial' needs at least 2 frequencies, one of them the "
                f"centre, got {n_frequencies}."
            )
        vertices = simplex_vertices(n_features)
        n_points = n_frequencies - 1
        n_rules = -(-n_points // len(vertices))
        (radius_rng,) = rng.spawn(1)
        U = open_uniform(radius_rng, (n_rules, 1 + measure.n_mixing))
        square = 2.0 * gammaincinv(n_features / 2.0 + 1.0, golden_sequence(U[:, 0]))
        radius = np.sqrt(2.0 * measure.mixing(U[:, 1:]) * square)

        Q = haar_matrices(rng, n_rules, n_features)
        points = radius[:, None, None] * (vertices @ Q)
        share = np.repeat(n_features / square, len(vertices))[:n_points]
        # Each point alone is an unbiased rule, so a last rule that is cut needs no
        # care.
        centre = np.sum(1.0 - share) * n_frequencies / n_points
        frequencies = np.zeros((n_frequencies, n_features))
        frequencies[1:] = points.reshape(-1, n_features)[:n_points]
        weights = np.empty(n_frequencies)
        weights[0] = centre if self.signed else max(centre, 0.0)
        weights[1:] = share * n_frequencies / n_points
        return WeightedFrequencies(frequencies, weights)


def simplex_vertices(n: int) -> np.ndarray:
    r"""Unit vectors to the vertices of the regular simplex, shape (n + 1, n).

    Their sum is zero and :math:`V^\top V = \frac{n + 1}{n} I`. In one dimension the two
    are opposite, with the same cosine, and one is returned.
    """
    if n == 1:
        return np.ones((1, 1))
    return np.sqrt((n + 1) / n) * helmert(n + 1).T
