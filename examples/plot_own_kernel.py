"""
A kernel of your own
====================

A kernel is its spectral measure: how often each frequency occurs. Write the measure of
a season that comes back every year, add that of a slow trend, and the model goes on
where there are no data. The Gaussian kernel, tuned, has one length for everything and
is lost there.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import ive

from surff import FourierFeatures, KernelRidgeRegressor
from surff.kernels import Gaussian, SpectralMeasure, Sum

plt.style.use("surff.inspection.surff")


class Seasons(SpectralMeasure):
    """The kernel exp(-2 sin(pi r)^2), whose frequencies are multiples of 2 pi."""

    def unit_kernel(self, X, Y):
        """The kernel itself, for diagnostics."""
        return np.exp(-2 * np.sin(np.pi * (X - Y.T)) ** 2)

    def quantile(self, U):
        """The k-th harmonic occurs I_k(1) / e of the time, for all whole k."""
        harmonics = np.arange(-20, 21)
        shares = np.cumsum(ive(np.abs(harmonics), 1.0))
        return 2 * np.pi * harmonics[np.searchsorted(shares, U.clip(max=shares[-1]))]

    def scale(self, gamma):
        """The period is 1 / sqrt(gamma)."""
        return np.sqrt(gamma)


def truth(t):
    """A trend and a season that is no sine."""
    return 0.1 * (t[:, 0] - 5) ** 2 + np.abs(np.sin(np.pi * t[:, 0])) ** 0.5


rng = np.random.default_rng(0)
t = rng.uniform(0, 10, size=(150, 1))
t = t[(t[:, 0] < 4) | (t[:, 0] > 6)]
y = truth(t) + 0.2 * rng.normal(size=len(t))
axis = np.linspace(0, 11, 600)[:, None]
own = Sum([Gaussian(), Seasons()], gammas=[0.02, 1.0])

figure, panel = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
panel.scatter(t, y, s=8, color="0.6", label="data")
panel.plot(axis, truth(axis), color="0.2", ls=":", label="truth")
for name, kernel, gammas in (
    ("Gaussian, tuned", "rbf", "auto"),
    ("trend and season", own, None),
):
    features = FourierFeatures(200, kernel=kernel, gamma=1.0, random_state=0)
    model = KernelRidgeRegressor(features, gammas=gammas, cv="loo").fit(t, y)
    predicted = model.predict(axis)
    error = np.sqrt(np.mean((predicted - truth(axis)) ** 2))
    panel.plot(axis, predicted, label=f"{name}: error {error:.2f}")
panel.set(xlabel="time", ylabel="target", ylim=(-1, 5))
panel.legend(ncols=2)
plt.show()
