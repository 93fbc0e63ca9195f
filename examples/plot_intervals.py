"""
How sure is it?
===============

Left: intervals that hold 90 % of new targets whatever the noise is, from the folds of
the fit; dots outside are orange. Right: of the rows to which a classifier gives a
chance, that share is right.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.calibration import calibration_curve

from surff import FourierFeatures, KernelRidgeClassifier, KernelRidgeRegressor

plt.style.use("surff.inspection.surff")

rng = np.random.default_rng(0)
X = rng.uniform(-3, 3, size=(2000, 1))
noise = 0.1 + 0.25 * np.abs(X[:, 0])  # grows from the middle
y = np.sin(2 * X[:, 0]) + noise * rng.standard_t(4, size=len(X))
new, y_new = X[1000:], y[1000:]

features = FourierFeatures(40, random_state=0)
model = KernelRidgeRegressor(features, intervals="normalized")
model.fit(X[:1000], y[:1000])
low, high = model.predict_interval(new, coverage=0.9, method="normalized")
inside = (low <= y_new) & (y_new <= high)

figure, (left, right) = plt.subplots(1, 2, figsize=(7, 3.2), layout="constrained")
order = np.argsort(new[:, 0])
left.fill_between(new[order, 0], low[order], high[order], alpha=0.3)
for chosen, colour in ((inside, "0.5"), (~inside, "C1")):
    left.scatter(new[chosen], y_new[chosen], s=5, color=colour)
left.set(
    title=f"{inside.mean():.0%} inside, 90% promised",
    xlabel="x",
    ylabel="y",
)

labels = rng.random(2000) < 1 / (1 + np.exp(-3 * np.sin(2 * X[:, 0])))
model = KernelRidgeClassifier(features, probability=True)
chance = model.fit(X[:1000], labels[:1000]).predict_proba(new)[:, 1]
share, said = calibration_curve(labels[1000:], chance, n_bins=8)
right.plot([0, 1], [0, 1], color="0.6", ls=":")
right.plot(said, share, marker="o")
right.set(title="calibrated probabilities", xlabel="predicted", ylabel="observed share")
plt.show()
