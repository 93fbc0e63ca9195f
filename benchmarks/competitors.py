"""What `compare` compares, each fitted and asked in a process of its own.

Every competitor solves the same problem on the same rows with the same Gaussian kernel:
ridge regression with ``alpha``, on targets that are -1 and 1 for a classification. Maps
have the same number of columns. A competitor is a function of the settings that returns
a model with ``fit`` and ``predict``; it imports what it needs, so that this file runs
in the environments of `peers`, too, where surff is missing. As a program it is a child:
``python benchmarks/competitors.py NAME DATA.npz SETTINGS``.
"""

import json
import math
import statistics
import sys
import time
from typing import NamedTuple

import numpy as np

from children import peak_memory, serve

__all__ = ["COMPETITORS", "Competitor", "Settings"]

#: Rows of the fit that compiles and loads what a first fit does.
WARM_UP_ROWS = 500

#: Seconds for which a competitor fits and predicts in a round, once at least.
AT_LEAST = 0.3


class Settings(NamedTuple):
    """What all competitors of a comparison share."""

    columns: int  # of the feature map
    gamma: float  # of the kernel exp(-gamma r^2)
    alpha: float  # ridge term
    alphas: tuple[float, ...]  # to choose from, where it is chosen
    exact_rows: int  # that exact kernel ridge is fitted to
    one_thread: bool  # count processor time


class Competitor(NamedTuple):
    """One row of the table."""

    label: str
    make: object  # of Settings
    baseline: str  # name of what it is divided by
    peer: str = ""  # environment of `peers` that it lives in
    usual: bool = True  # part of the comparison where none are named


# -- surff and scikit-learn ------------------------------------------------------------


def surff_ridge(settings, map_name="FourierFeatures", **parameters):
    """surff's ridge on one of its maps, at one alpha unless told otherwise."""
    import surff

    make_map = getattr(surff, map_name)
    features = make_map(settings.columns, gamma=settings.gamma, random_state=0)
    parameters = {"alphas": settings.alpha} | parameters
    return surff.KernelRidgeRegressor(features, **parameters)


def sampler_ridge(settings, ridge):
    """scikit-learn's random Fourier features and a linear model."""
    from sklearn.kernel_approximation import RBFSampler
    from sklearn.pipeline import make_pipeline

    sampler = RBFSampler(
        gamma=settings.gamma, n_components=settings.columns, random_state=0
    )
    return make_pipeline(sampler, ridge)


def sampler_with_alpha(settings):
    """At one alpha, by the solver that is fastest here."""
    from sklearn.linear_model import Ridge

    return sampler_ridge(settings, Ridge(settings.alpha, solver="cholesky"))


def sampler_with_alphas(settings):
    """Alpha by leave-one-out, `RidgeCV`'s own and fastest way."""
    from sklearn.linear_model import RidgeCV

    return sampler_ridge(settings, RidgeCV(settings.alphas))


def nystroem_with_alpha(settings):
    """scikit-learn's Nystrom features at one alpha."""
    from sklearn.kernel_approximation import Nystroem
    from sklearn.linear_model import Ridge
    from sklearn.pipeline import make_pipeline

    landmarks = Nystroem(
        gamma=settings.gamma, n_components=settings.columns, random_state=0
    )
    return make_pipeline(landmarks, Ridge(settings.alpha, solver="cholesky"))


class FirstRows:
    """A model that is fitted to the first rows alone and predicts block by block."""

    def __init__(self, model, n_rows):
        self.model = model
        self.n_rows = n_rows

    def fit(self, X, y):
        """Fit to the first rows."""
        self.model.fit(X[: self.n_rows], y[: self.n_rows])

    def predict(self, X):
        """Predict 1,000 rows at a time."""
        blocks = np.array_split(X, len(X) // 1000 + 1)
        return np.concatenate([self.model.predict(block) for block in blocks])


def exact(settings):
    """Kernel ridge on the kernel matrix of some rows."""
    from sklearn.kernel_ridge import KernelRidge

    ridge = KernelRidge(alpha=settings.alpha, kernel="rbf", gamma=settings.gamma)
    return FirstRows(ridge, settings.exact_rows)


# -- peers in environments of their own ------------------------------------------------


class RfflearnGPR:
    """rfflearn's Gaussian process, the mean of which is ridge regression.

    Its columns are cosines without the factor ``sqrt(2 / columns)``, so that its
    variance of the noise is ``alpha columns / 2``.
    """

    def __init__(self, settings):
        import rfflearn.cpu as rfflearn

        rfflearn.seed(0)
        self.model = rfflearn.RFFGPR(
            dim_kernel=settings.columns,
            std_kernel=math.sqrt(2.0 * settings.gamma),
            std_error=math.sqrt(settings.alpha * settings.columns / 2.0),
        )

    def fit(self, X, y):
        """Fit to centred targets; it has no intercept."""
        self.mean = y.mean()
        self.model.fit(X, (y - self.mean)[:, np.newaxis])

    def predict(self, X):
        """Means."""
        return self.model.predict(X).ravel() + self.mean


class GPyTorchRFF:
    """GPyTorch's exact Gaussian process with its kernel of random Fourier features.

    Nothing is trained: lengthscale and noise follow from gamma and alpha.
    """

    def __init__(self, settings):
        self.settings = settings

    def fit(self, X, y):
        """Condition on the rows, by asking for one mean."""
        import gpytorch
        import torch

        settings = self.settings
        torch.manual_seed(0)

        class Process(gpytorch.models.ExactGP):
            def __init__(self, X, y, likelihood):
                super().__init__(X, y, likelihood)
                self.mean_module = gpytorch.means.ZeroMean()
                self.covar_module = gpytorch.kernels.RFFKernel(
                    num_samples=settings.columns // 2, num_dims=X.shape[1]
                )

            def forward(self, X):
                return gpytorch.distributions.MultivariateNormal(
                    self.mean_module(X), self.covar_module(X)
                )

        self.mean = y.mean()
        likelihood = gpytorch.likelihoods.GaussianLikelihood().double()
        X, y = torch.from_numpy(X), torch.from_numpy(y - self.mean)
        self.process = Process(X, y, likelihood).double()
        self.process.covar_module.lengthscale = 1.0 / math.sqrt(2.0 * settings.gamma)
        likelihood.noise = settings.alpha
        self.process.eval()
        self.predict(X[:1].numpy() + 1e-9)  # on rows that it knows it warns

    def predict(self, X):
        """Means, without variances."""
        import gpytorch
        import torch

        with torch.no_grad(), gpytorch.settings.skip_posterior_variances(True):
            return self.process(torch.from_numpy(X)).mean.numpy() + self.mean


#: What is compared, in table order; a ratio is to the competitor named as baseline.
COMPETITORS = {
    "rff": Competitor("surff, Fourier", surff_ridge, "rff"),
    "rff-float64": Competitor(
        "surff, Fourier, float64",
        lambda settings: surff_ridge(settings, precision="float64"),
        "rff",
        usual=False,
    ),
    "rff-mixed": Competitor(
        "surff, Fourier, mixed",
        lambda settings: surff_ridge(settings, precision="mixed"),
        "rff",
        usual=False,
    ),
    "rff-cg": Competitor(
        "surff, Fourier, cg",
        lambda settings: surff_ridge(
            settings, solver="cg", tol=0.03, keep_equations=False
        ),
        "rff",
        usual=False,
    ),
    "rbf-ridge": Competitor("RBFSampler + Ridge", sampler_with_alpha, "rff"),
    "rfflearn": Competitor("rfflearn RFFGPR", RfflearnGPR, "rff", "rfflearn"),
    "gpytorch": Competitor("GPyTorch RFFKernel", GPyTorchRFF, "rff", "gpytorch"),
    "exact": Competitor("KernelRidge, some rows", exact, "rff"),
    "rff-alphas": Competitor(
        "surff, Fourier, alphas",
        lambda settings: surff_ridge(settings, alphas=settings.alphas),
        "rff-alphas",
    ),
    "rbf-ridgecv": Competitor(
        "RBFSampler + RidgeCV", sampler_with_alphas, "rff-alphas"
    ),
    "nystroem": Competitor(
        "surff, Nystrom",
        lambda settings: surff_ridge(settings, "NystroemFeatures"),
        "nystroem",
    ),
    "nystroem-ridge": Competitor("Nystroem + Ridge", nystroem_with_alpha, "nystroem"),
}


class Measured:
    """Answers a parent with times, score and memory of one competitor."""

    def __init__(self, name, path, settings):
        self.make = COMPETITORS[name].make
        self.settings = settings
        self.clock = time.process_time if settings.one_thread else time.perf_counter
        with np.load(path) as data:
            self.X, self.y = data["X"], data["y"]
            self.X_test, self.y_test = data["X_test"], data["y_test"]
            self.classification = bool(data["classification"])

    def answer(self, what):
        """``"warm up"`` or ``"measure"``."""
        if what == "warm up":
            model = self.make(self.settings._replace(columns=16))
            model.fit(self.X[:WARM_UP_ROWS], self.y[:WARM_UP_ROWS])
            model.predict(self.X_test[:WARM_UP_ROWS])
            return {}
        fits, predictions = [], []
        end = time.perf_counter() + AT_LEAST
        while not fits or time.perf_counter() < end:
            start = self.clock()
            model = self.make(self.settings)
            model.fit(self.X, self.y)
            fitted = self.clock()
            predicted = model.predict(self.X_test)
            fits.append(fitted - start)
            predictions.append(self.clock() - fitted)
        return {
            "fit": statistics.median(fits),
            "predict": statistics.median(predictions),
            "score": self.score(predicted),
            "peak": peak_memory(),
        }

    def score(self, predicted):
        """Accuracy of the signs, or R2."""
        if self.classification:
            return float(np.mean(np.sign(predicted) == self.y_test))
        return float(1.0 - np.mean((predicted - self.y_test) ** 2) / self.y_test.var())


if __name__ == "__main__":
    name, path, settings = sys.argv[1:]
    serve(Measured(name, path, Settings(**json.loads(settings))).answer)
