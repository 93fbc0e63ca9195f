"""Short runs of what surff does most, for `regression` to time in two commits.

Public names alone are used, so that an older surff runs most of them; what it lacks
raises, and is left out of the comparison. As a program it is a child that answers how
long a kernel takes: ``python benchmarks/kernels.py SCALE CLOCK``, where the number of
rows is multiplied by SCALE and CLOCK is a function of the module `time`.
"""

import sys
import time

import numpy as np
from scipy import sparse

import surff
from children import serve
from paired import median_seconds

__all__ = ["KERNELS"]

#: Rows at scale 1, input columns, columns of the map, alphas of the path.
ROWS, FEATURES, COLUMNS, ALPHAS = 20_000, 20, 512, np.logspace(-3, 3, 20)

#: Runs of a kernel, and seconds for which it is run, in a measurement at least.
RUNS, AT_LEAST = 3, 0.3


def data(scale):
    """Normal rows and a smooth target."""
    X = np.random.default_rng(0).normal(size=(int(scale * ROWS), FEATURES))
    return X, np.sin(X[:, 0]) + X[:, 1] * X[:, 2]


def fourier(**parameters):
    """The feature map of all kernels."""
    return surff.FourierFeatures(COLUMNS, gamma=0.05, random_state=0, **parameters)


def feature_map(scale):
    """Rows to columns, dense."""
    X, _ = data(scale)
    features = fourier().fit(X)
    return lambda: features.transform(X)


def sparse_map(scale):
    """Rows to columns, of a hundredth of 10,000 entries."""
    X = sparse.random(int(scale * ROWS) // 4, 10_000, 0.01, "csr", None, 0)
    features = fourier().fit(X)
    return lambda: features.transform(X)


def ridge_fit(scale, alphas=1.0, features=None, **parameters):
    """A fit of ridge regression."""
    X, y = data(scale)
    features = fourier() if features is None else features
    model = surff.KernelRidgeRegressor(features, alphas=alphas, **parameters)
    return lambda: model.fit(X, y)


def predict(scale):
    """Predictions of a fitted model."""
    X, y = data(scale)
    model = surff.KernelRidgeRegressor(fourier(), alphas=1.0).fit(X[:2000], y[:2000])
    return lambda: model.predict(X)


def nystroem(scale):
    """A fit on Nystrom features."""
    features = surff.NystroemFeatures(COLUMNS // 2, gamma=0.05, random_state=0)
    return ridge_fit(scale, features=features)


#: Functions of the scale that return what is timed.
KERNELS = {
    "feature map": feature_map,
    "feature map, sparse": sparse_map,
    "fit, one alpha": ridge_fit,
    "fit, 20 alphas, 5 folds": lambda scale: ridge_fit(scale, ALPHAS),
    "fit, conjugate gradients": lambda scale: ridge_fit(scale, solver="cg"),
    "fit, surrogate leverage": lambda scale: ridge_fit(
        scale, features=fourier(select="surrogate")
    ),
    "fit, Nystrom": nystroem,
    "predict": predict,
}


def server(scale, clock):
    """Answers about kernels, which are made once."""
    made = {}

    def answer(what, name):
        if what == "warm up":
            made[name] = KERNELS[name](scale)
            made[name]()
            return {}
        return {
            "seconds": median_seconds(made[name], RUNS, AT_LEAST, clock),
            "source": surff.__file__,
        }

    return answer


if __name__ == "__main__":
    serve(server(float(sys.argv[1]), getattr(time, sys.argv[2])))
