# pyright: basic
"""The public names as a user's program has them, for the type checker; never run."""

import numpy as np

import surff


def models(X: np.ndarray, y: np.ndarray) -> list[np.ndarray]:
    features = surff.FourierFeatures(
        8, kernel="matern", gamma="median", draw="sobol", random_state=0
    )
    regressor = surff.KernelRidgeRegressor(features, alphas=0.1).fit(X, y)
    classifier = surff.KernelRidgeClassifier(features, cv="gcv").fit(X, y > 0)
    logistic = surff.KernelLogisticClassifier(features).fit(X, y > 0)
    landmarks = surff.NystroemFeatures(8, random_state=0).fit(X)
    fitted = [regressor, classifier, logistic]
    return [model.predict(X) for model in fitted] + [landmarks.transform(X)]


def parts() -> list[surff.FourierFeatures]:
    selectors = [
        surff.EERF(),
        surff.Compression(),
        surff.KernelAlignment(),
        surff.ResidualLeverage(),
        surff.RidgeLeverage(),
        surff.SurrogateLeverage(),
    ]
    adaptations = [
        surff.AgopAdaptation(diagonal=True),
        surff.AutoAdaptation(warp=False),
        surff.GradientAdaptation(n_steps=400),
    ]
    return [
        *[surff.FourierFeatures(8, select=selector) for selector in selectors],
        *[surff.FourierFeatures(8, adapt=adaptation) for adaptation in adaptations],
    ]


def files(path: str) -> object:
    surff.save(surff.KernelRidgeRegressor(), path)
    return surff.load(path)
