"""
Where leaves pay
================

A target with a step, and a slope that changes its sign there. Smooth features ring at
the step; a tree of constants climbs the slopes in stairs. One map for all, with a small
tree and a ridge head in each leaf, does both. The numbers are root mean square errors.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor

from surff import FourierFeatures, KernelRidgeRegressor, LeafHeads

plt.style.use("surff.inspection.surff")


def truth(x):
    """Two slopes and a step between them."""
    return np.where(x < 0.35, np.sin(9 * x), 1.5 - 2 * (x - 0.35))


rng = np.random.default_rng(0)
X = rng.uniform(0, 1, size=(600, 1))
y = truth(X[:, 0]) + 0.15 * rng.normal(size=len(X))
axis = np.linspace(0, 1, 800)[:, None]

features = FourierFeatures(32, gamma=100.0, random_state=0)
models = {
    "features alone": KernelRidgeRegressor(features),
    "with leaf heads": KernelRidgeRegressor(features, leaves=LeafHeads(8)),
    "boosted trees": HistGradientBoostingRegressor(),
}
figure, panels = plt.subplots(1, 3, figsize=(7, 2.6), sharey=True, layout="constrained")
for panel, (name, model) in zip(panels, models.items(), strict=True):
    predicted = model.fit(X, y).predict(axis)
    error = np.sqrt(np.mean((predicted - truth(axis[:, 0])) ** 2))
    panel.scatter(X, y, s=4, color="0.7")
    panel.plot(axis, predicted, color="C1", lw=2)
    panel.set(title=f"{name}: {error:.3f}", xlabel="x")
panels[0].set_ylabel("y")
plt.show()
