"""Short runs of what surff does most, for `regression` to time in two commits.

Only names of ``surff`` itself are used, so that an older surff runs most of them; what
it lacks raises, and is left out of the comparison. surff is imported where a kernel is
made: the parent, which reads the names of the kernels, needs none. As a program this is
a child that answers how long a kernel takes: ``python benchmarks/kernels.py SCALE
CLOCK``, where the number of rows is multiplied by SCALE and CLOCK is a function of the
module `time`.
"""

import sys
import time

import numpy as np
from scipy import sparse

from children import serve
from paired import median_seconds

__all__ = ["KERNELS"]

#: Rows at scale 1: a fit takes a tenth of a second.
ROWS = 20_000

#: Columns of the rows.
FEATURES = 20

#: Columns of the map, enough for the Gram matrix to take most of a fit.
COLUMNS = 512

#: Alphas of the path.
ALPHAS = np.logspace(-3, 3, 20)

#: Fewest runs of a kernel in a measurement; their median counts.
RUNS = 3

#: Fewest seconds that a measurement takes.
AT_LEAST = 0.3


def data(scale):
    """Normal rows and a smooth target."""
    X = np.random.default_rng(0).normal(size=(int(scale * ROWS), FEATURES))
    return X, np.sin(X[:, 0]) + X[:, 1] * X[:, 2]


def fourier(**parameters):
    """The feature map of all kernels."""
    import surff

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
    import surff

    X, y = data(scale)
    features = fourier() if features is None else features
    model = surff.KernelRidgeRegressor(features, alphas=alphas, **parameters)
    return lambda: model.fit(X, y)


def predict(scale):
    """Predictions of a fitted model."""
    import surff

    X, y = data(scale)
    model = surff.KernelRidgeRegressor(fourier(), alphas=1.0).fit(X[:2000], y[:2000])
    return lambda: model.predict(X)


def nystroem(scale):
    """A fit on Nystrom features."""
    import surff

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
            "source": sys.modules["surff"].__file__,
        }

    return answer


if __name__ == "__main__":
    serve(server(float(sys.argv[1]), getattr(time, sys.argv[2])))
