"""
A Gaussian process by its evidence
==================================

The Gaussian process of the features, exactly: its marginal likelihood chooses the
length, the noise and the strength of the signal from sums over rows, with no rows left
out. The band is two standard deviations of a new observation, the thin lines are draws
from the posterior.
"""

import matplotlib.pyplot as plt
import numpy as np

from surff import FourierFeatures, KernelRidgeRegressor

plt.style.use("surff.inspection.surff")

rng = np.random.default_rng(0)
X = rng.uniform(-3, 3, size=(60, 1))
X = X[np.abs(X[:, 0] - 0.8) > 0.7]
y = np.sin(2 * X[:, 0]) + 0.5 * X[:, 0] + 0.25 * rng.normal(size=len(X))
axis = np.linspace(-3.5, 3.5, 300)[:, None]

features = FourierFeatures(200, gamma=1.0, random_state=0)
model = KernelRidgeRegressor(features, gammas="auto", cv="evidence").fit(X, y)
mean, std = model.predict(axis, return_std=True)
noise = np.sqrt(model.noise_variance_.item())
print(f"gamma {model.features_.gamma_:.2g}, noise {noise:.2f} (0.25 was added)")

figure, panel = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
panel.fill_between(axis[:, 0], mean - 2 * std, mean + 2 * std, color="C0", alpha=0.2)
draws = model.sample_y(axis, n_samples=5, random_state=0)
panel.plot(axis, draws, color="C0", lw=0.4, label=["draws", *4 * ["_"]])
panel.plot(axis, mean, color="C0", label="mean")
panel.plot(axis, np.sin(2 * axis) + 0.5 * axis, color="0.2", ls=":", label="truth")
panel.scatter(X, y, s=12, color="0.4", label="data")
panel.set(xlabel="x", ylabel="y", ylim=(-4, 4))
panel.legend()
plt.show()
