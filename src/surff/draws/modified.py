r"""Frequencies from a flattened density, with importance weights.

The ridge leverage function of a Gaussian kernel in low dimension is nearly flat up to
frequencies where the density is of the order of the regularisation, and proportional to
the density beyond. Sampling from such a shape needs fewer features than sampling from
the density itself. With T standard deviations,

.. math:: q(w) = \begin{cases}
          (1 - \varepsilon) / \mathrm{vol} & \text{in the cube } |w|_\infty \le
          \sqrt{2 \gamma}\, T, \\ p(w) & \text{outside,} \end{cases}

with :math:`\varepsilon` the mass of p outside; weights are p / q.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import ndtr, ndtri
from sklearn.base import BaseEstimator

from surff.backend import positive
from surff.draws.base import WeightedFrequencies
from surff.kernels import Gaussian, SpectralMeasure, open_uniform

__all__ = ["Modified"]


class Modified(BaseEstimator):
    r"""Modified random Fourier features, for the Gaussian kernel and few features.

    Parameters
    ----------
    truncation : float, default=4.0
        Half the edge T of the cube in which the density is flat, > 0, in standard
        deviations of the spectral measure. The theory asks for a multiple of
        :math:`\sqrt{\log(n / \lambda)}`.

    Notes
    -----
    The estimate is unbiased. Its weights are at most :math:`(0.8\, T)^d / (1 -
    \varepsilon)` with a mean square of about :math:`(0.56\, T)^d`, times which the
    variance grows: for high-frequency accuracy in one to three dimensions, and for
    nothing above. Raises TypeError for measures other than `surff.kernels.Gaussian`.

    References
    ----------
    .. [1] H. Avron, M. Kapralov, C. Musco, C. Musco, A. Velingker, A. Zandieh, "Random
       Fourier Features for Kernel Ridge Regression", ICML 2017, Section 5.
    .. [2] T. Erdelyi, C. Musco, C. Musco, "Fourier Sparse Leverage Scores and
       Approximate Kernel Learning", NeurIPS 2020.
    """

    def __init__(self, truncation: float = 4.0) -> None:
        self.truncation = truncation

    def draw(
        self,
        measure: SpectralMeasure,
        n_frequencies: int,
        n_features: int,
        rng: np.random.Generator,
    ) -> WeightedFrequencies:
        """Draw `WeightedFrequencies` with ``n_frequencies`` rows for ``gamma = 1``."""
        if not isinstance(measure, Gaussian):
            raise TypeError(
                "draw='modified' is made for the Gaussian measure, got "
                f"{type(measure).__name__}; use draw='monte_carlo'."
            )
        edge = positive("truncation", self.truncation)
        U = open_uniform(rng, (n_frequencies, n_features + 1))
        U, chooser = U[:, :-1], U[:, -1]
        tail = 2.0 * ndtr(-edge)
        outside = -math.expm1(n_features * math.log1p(-tail))

        g = edge * (2.0 * U - 1.0)
        weights = np.exp(
            n_features * math.log(2.0 * edge / math.sqrt(2.0 * math.pi))
            - 0.5 * np.sum(np.square(g), axis=1)
        ) / (1.0 - outside)

        # Outside, p given that a coordinate lies beyond the edge: the first that does
        # is geometric; earlier ones lie within, later ones anywhere.
        rows = chooser < outside
        first = np.floor(np.log1p(-chooser[rows]) / math.log1p(-tail))[:, None]
        column = np.arange(n_features)
        u = U[rows]
        within = 0.5 * tail + (1.0 - tail) * u
        beyond = np.where(u < 0.5, tail * u, 1.0 - tail * (1.0 - u))
        g[rows] = ndtri(
            np.where(column < first, within, np.where(column == first, beyond, u))
        )
        weights[rows] = 1.0
        return WeightedFrequencies(math.sqrt(2.0) * g, weights)
