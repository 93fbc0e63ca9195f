"""
A stream of a million rows
==========================

Rows come from a function, block by block, and are never together in memory. A pass
sums what ridge regression needs; folds, the choice of alpha and the fit follow from the
sums. Memory is that of a block and some matrices of 256 by 256. With this noise
no model reaches an R2 above 0.37.
"""

import matplotlib.pyplot as plt
import numpy as np

from surff import FourierFeatures, KernelRidgeRegressor
from surff.streaming import BlockRows

plt.style.use("surff.inspection.surff")


def truth(X):
    """A ring and a slope."""
    return np.sin(3 * np.hypot(X[:, 0], X[:, 1])) + 0.3 * X[:, 2]


def blocks():
    """A million rows, the same in each pass."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X = rng.uniform(-2, 2, size=(50_000, 4)).astype(np.float32)
        yield X, truth(X) + rng.normal(size=len(X))


features = FourierFeatures(256, gamma=0.5, random_state=0)
model = KernelRidgeRegressor(features).fit_stream(BlockRows(blocks))
print(f"held-out R2 {model.best_score_:.3f}, at alpha = {model.alpha_:.3g}")

axis = np.linspace(-2, 2, 160)
grid = np.zeros((len(axis) ** 2, 4))
grid[:, 0], grid[:, 1] = (values.ravel() for values in np.meshgrid(axis, axis))
figure, panels = plt.subplots(
    1, 2, figsize=(6.4, 3.2), sharey=True, layout="constrained"
)
for panel, values, title in (
    (panels[0], truth(grid), "truth, without its noise"),
    (panels[1], model.predict(grid), "learned from a million rows"),
):
    image = panel.imshow(
        values.reshape(len(axis), -1), extent=(-2, 2, -2, 2), vmin=-1.2, vmax=1.2
    )
    panel.set(title=title, xlabel="column 0")
    panel.grid(False)
panels[0].set_ylabel("column 1")
figure.colorbar(image, ax=panels, label="target")
plt.show()
