"""
A decision before and after learning
====================================

Stripes that cross two of eight columns at an angle; the other six are noise.
Drawn frequencies point anywhere, mostly into the noise; learned ones point across the
stripes. Both maps have 64 columns. Dots are rows in the colour of their class, areas
have the colour of the class that is predicted there.
"""

import matplotlib.pyplot as plt
import numpy as np

from surff import FourierFeatures, KernelRidgeClassifier

plt.style.use("surff.inspection.surff")

rng = np.random.default_rng(0)
X = rng.uniform(-2, 2, size=(4000, 8))
stripes = np.sin(3 * X[:, 0] + 2 * X[:, 1] + 0.8 * X[:, 0] ** 2)
y = np.where(stripes > 0, "C0", "C1")

axis = np.linspace(-2, 2, 200)
grid = np.zeros((len(axis) ** 2, 8))
grid[:, 0], grid[:, 1] = (values.ravel() for values in np.meshgrid(axis, axis))

figure, panels = plt.subplots(
    1, 2, figsize=(6.4, 3.4), sharey=True, layout="constrained"
)
for panel, adapt in zip(panels, (None, "auto"), strict=True):
    features = FourierFeatures(64, adapt=adapt, random_state=0)
    model = KernelRidgeClassifier(features, cv=3).fit(X[:3000], y[:3000])
    accuracy = model.score(X[3000:], y[3000:])
    values = model.decision_function(grid).reshape(len(axis), -1)
    panel.contourf(
        axis, axis, -values, levels=[-9, 0, 9], colors=model.classes_, alpha=0.3
    )
    shown = slice(0, 400)
    panel.scatter(*X[shown, :2].T, c=y[shown], s=8)
    panel.set(
        title=f"{'learned' if adapt else 'drawn'}: {accuracy:.0%} of new rows right",
        xlabel="column 0",
        xticks=range(-2, 3),
        aspect="equal",
    )
panels[0].set_ylabel("column 1")
plt.show()
