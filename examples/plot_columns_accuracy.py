"""
How many columns?
=================

Accuracy on rows held out against the columns of the map, for drawn and for learned
frequencies, on handwritten digits that come with scikit-learn. The folds that choose
alpha also say when more columns stop paying: ``best_score_`` needs no test set.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from surff import FourierFeatures, KernelRidgeClassifier

plt.style.use("surff.inspection.surff")

X, y = load_digits(return_X_y=True)
X, X_test, y, y_test = train_test_split(X, y, random_state=0)

sizes = [16, 32, 64, 128, 256, 512]
figure, panel = plt.subplots(figsize=(6, 4), layout="constrained")
for name, options, most, colour in (
    ("drawn", {}, 512, "#0072B2"),
    ("residual stages", {"select": "residual"}, 512, "#999933"),
    ("learned", {"adapt": "gradient"}, 128, "#44AA99"),
):
    held_out, test = [], []
    for size in (size for size in sizes if size <= most):
        features = FourierFeatures(size, random_state=0, **options)
        model = KernelRidgeClassifier(features, cv=2).fit(X, y)
        held_out.append(100 * model.best_score_)
        test.append(100 * model.score(X_test, y_test))
    shown = sizes[: len(test)]
    panel.plot(shown, test, marker="o", label=name, color=colour)
    panel.plot(shown, held_out, ls=":", color=colour)
panel.set(
    xscale="log",
    xlabel="columns of the map",
    ylabel="accuracy on new rows, % (dotted: best_score_)",
)
panel.set_xticks(sizes, [str(size) for size in sizes])
panel.minorticks_off()
panel.legend()
plt.show()
