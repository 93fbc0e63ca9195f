r"""Spectral measures of shift-invariant kernels.

By Bochner's theorem a shift-invariant kernel with :math:`k(x, x) = 1` is the Fourier
transform of a probability measure ``p``, its spectral measure:

.. math:: k(x - x') = \int p(w) \exp(-\mathrm i\, w^\top (x - x'))\, \mathrm d w.

A measure here is written for ``gamma = 1``; `SpectralMeasure.scale` turns its
frequencies into those of any other bandwidth, so a measure has no bandwidth of its own.
"""

import math

import numpy as np
from scipy.special import ndtri
from sklearn.base import BaseEstimator
from sklearn.metrics.pairwise import rbf_kernel

__all__ = ["KERNELS", "Gaussian", "SpectralMeasure"]


class SpectralMeasure(BaseEstimator):
    """What a kernel must offer to be approximated by random Fourier features.

    Subclass it to bring your own kernel: give `kernel`, `sample`, `scale` and, for
    quasi-Monte Carlo draws, `quantile`.
    """

    def kernel(self, X, Y=None, gamma=1.0):
        """Kernel matrix, shape (n_samples_X, n_samples_Y)."""
        raise TypeError(f"{type(self).__name__} does not define kernel")

    def sample(self, rng, n_frequencies, n_features):
        """Independent frequencies for gamma = 1, shape (n_frequencies, n_features).

        The first rows do not depend on ``n_frequencies``.
        """
        raise TypeError(f"{type(self).__name__} does not define sample")

    def n_coordinates(self, n_features):
        """Uniform coordinates that `quantile` needs for one frequency."""
        return n_features

    def quantile(self, U):
        """Frequencies for gamma = 1 from points of the open unit cube, row by row."""
        raise TypeError(
            f"{type(self).__name__} does not define quantile: quasi-Monte Carlo draws "
            "need one"
        )

    def scale(self, gamma):
        """Factor from the frequencies at gamma = 1 to those at ``gamma``."""
        raise TypeError(f"{type(self).__name__} does not define scale")


class Gaussian(SpectralMeasure):
    r"""The Gaussian kernel :math:`k(x, x') = \exp(-\gamma \|x - x'\|^2)`.

    Its frequencies are :math:`w \sim N(0, 2 \gamma I)`. The paper's
    :math:`\exp(-\|x - x'\|^2 / \sigma^2)` has :math:`\gamma = 1 / \sigma^2`.

    Examples
    --------
    >>> import numpy as np
    >>> from surff.spectral import Gaussian
    >>> float(Gaussian().kernel(np.zeros((1, 2)), np.ones((1, 2)), gamma=0.5)[0, 0])
    0.36787944117144233
    """

    def kernel(self, X, Y=None, gamma=1.0):
        return rbf_kernel(X, Y, gamma=gamma)

    def sample(self, rng, n_frequencies, n_features):
        return math.sqrt(2.0) * rng.standard_normal((n_frequencies, n_features))

    def quantile(self, U):
        return math.sqrt(2.0) * ndtri(U)

    def scale(self, gamma):
        return np.sqrt(gamma)


#: Kernels by name.
KERNELS = {"rbf": Gaussian}
