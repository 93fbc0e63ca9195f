"""Independent frequencies: the random Fourier features of Rahimi and Recht."""

from sklearn.base import BaseEstimator

__all__ = ["MonteCarlo"]


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
