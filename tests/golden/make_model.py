"""Write the golden model file of this version: ``python tests/golden/make_model.py``.

The file stays as it is when surff changes: a later version must read it. Make a new one
beside it, named after the version, when the attributes of the estimators change.
"""

from pathlib import Path

import numpy as np

import surff


def data():
    """Rows and labels on which the golden model is fitted and tested."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    return X, np.where(X[:, 0] * X[:, 1] > 0, "same", "different")


def main():
    X, y = data()
    features = surff.FourierFeatures(
        16, gamma=0.7, select=surff.SurrogateLeverage(), random_state=0
    )
    model = surff.KernelRidgeClassifier(features, alphas=[0.1, 1.0], cv=3).fit(X, y)
    folder = Path(__file__).parent
    surff.save(model, folder / f"model-{surff.__version__}.skops")
    decisions = folder / f"decisions-{surff.__version__}.csv"
    np.savetxt(decisions, model.decision_function(X), fmt="%.17g")


if __name__ == "__main__":
    main()
