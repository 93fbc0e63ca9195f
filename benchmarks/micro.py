"""Pieces of surff beside other ways to the same result, in one process.

- ``feature_map``: dense rows to columns, beside `RBFSampler` and the product alone, a
  half of `RBFSampler`'s: where that takes all of our time nothing is left to win;
- ``transform``: into a new array, and into one that is there, beside `RBFSampler`;
- ``sparse_rows``: the same for rows of about ten words among 100,000;
- ``predict``: predictions, beside scikit-learn's pipeline of the same size;
- ``serve``: one row by `predict` and by a `Predictor`, beside scikit-learn's pipeline;
- ``nystroem``: a fit and predictions on landmarks, beside `Nystroem` and `Ridge`;
- ``syrk``: a fit at one alpha, beside the Gram matrix alone at the rate of BLAS;
- ``alphas``: the default choice among 20 alphas by 5 folds, beside a fit at one alpha
  and scikit-learn's pipeline at one;
- ``sorf``: structured orthogonal frequencies, beside a dense matrix of them;
- ``generation``: what surrogate and leverage scores cost over a pass of plain features.

What is compared runs in turn, round by round; a ratio has the median of the rounds, the
least and the most. Run: ``python benchmarks/micro.py feature_map predict``.
"""

import argparse
import statistics
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.linalg import blas
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline

from children import ratio
from paired import add_clock, clock_and_limit, processor, rounds
from surff import (
    FourierFeatures,
    KernelRidgeRegressor,
    NystroemFeatures,
    Predictor,
)
from surff.backend import feature_blocks, map_slices
from surff.draws import StructuredOrthogonal
from surff.kernels import FourierMap, Gaussian, fourier_features, fourier_moments
from surff.linear import accumulate
from surff.selection import ridge_column_scores, surrogate_column_scores

#: Types of the rows.
DTYPES = "float64", "float32"

#: Regularisation of the leverage scores, relative to the rows; the paper's.
LEVERAGE_LAMBDA = 1e-3

#: Rows that `syrk` multiplies at once, as many as fill a few megabytes of columns.
SYRK_ROWS = 4096


#: Most entries of a matrix of all features, which scikit-learn holds, in `alphas`.
SKLEARN_ENTRIES = 2e8


class Case(NamedTuple):
    """What is timed at one size."""

    label: str  # of the size
    callables: dict[str, Callable]
    ratios: tuple[tuple[str, str], ...]  # (numerator, denominator)


def normal(dtype, n_rows, n_features):
    """Normal rows, at least 64 of them."""
    size = max(64, int(n_rows)), n_features
    return np.random.default_rng(0).normal(size=size).astype(dtype)


def feature_map(dtype, scale):
    """EEG at 32 d, covtype at 16 d, a wide input."""
    for d, s in ((14, 448), (54, 864), (256, 1024)):
        X, W = normal(dtype, scale * 4096, d), normal(dtype, s, d)
        Z, P = np.empty((len(X), 2 * s), dtype), np.empty((len(X), s), dtype)
        sampler = RBFSampler(gamma=0.5, n_components=2 * s, random_state=0).fit(X)
        callables = {
            "product": lambda X=X, W=W, P=P: np.matmul(X, W.T, out=P),
            "surff": lambda X=X, W=W, Z=Z: fourier_features(X, W, out=Z),
            "RBFSampler": lambda X=X, f=sampler: f.transform(X),
        }
        ratios = ("RBFSampler", "surff"), ("product", "surff")
        yield Case(f"{len(X)} x {d}, {2 * s} columns", callables, ratios)


def transform(dtype, scale):
    """A new array of 1,024 columns, and one that is there already."""
    for d in (14, 54):
        X = normal(dtype, scale * 20_000, d)
        ours = FourierFeatures(1024, gamma=0.1, random_state=0).fit(X)
        theirs = RBFSampler(gamma=0.1, n_components=1024, random_state=0).fit(X)
        Z = np.empty((len(X), 1024), dtype)
        callables = {
            "transform": lambda X=X, f=ours: f.transform(X),
            "with out=": lambda X=X, f=ours, Z=Z: f.transform(X, out=Z),
            "RBFSampler": lambda X=X, f=theirs: f.transform(X),
        }
        ratios = ("RBFSampler", "transform"), ("RBFSampler", "with out=")
        yield Case(f"{len(X)} x {d}, 1024 columns", callables, ratios)


def sparse_rows(dtype, scale):
    """Against 1,024 columns of `RBFSampler`: as many, and as many frequencies."""
    d, rng = max(1000, int(scale * 100_000)), np.random.default_rng(0)
    counts = rng.poisson(10, max(64, int(scale * 20_000)))
    ends = np.r_[0, np.cumsum(counts)]
    words, values = rng.integers(d, size=ends[-1]), rng.random(ends[-1])
    X = sparse.csr_matrix((values.astype(dtype), words, ends), (len(counts), d))
    theirs = RBFSampler(gamma=0.5, n_components=1024, random_state=0).fit(X)
    for columns in (1024, 2048):
        ours = FourierFeatures(columns, gamma=0.5, random_state=0).fit(X)
        callables = {
            "surff": lambda f=ours: f.transform(X),
            "RBFSampler": lambda: theirs.transform(X),
        }
        label = f"{len(counts)} x {d}, {columns} columns"
        yield Case(label, callables, (("RBFSampler", "surff"),))


def predict(dtype, scale):
    """54 input columns, 1,024 of the map, one target."""
    X = normal(dtype, scale * 100_000, 54)
    y = np.sin(X[:, 0]) + X[:, 1]
    features = FourierFeatures(1024, gamma=0.01, random_state=0)
    sampler = RBFSampler(gamma=0.01, n_components=1024, random_state=0)
    models = {
        "surff": KernelRidgeRegressor(features, alphas=1.0),
        "sklearn": make_pipeline(sampler, Ridge(1.0)),
    }
    for model in models.values():
        model.fit(X[:5000], y[:5000])
    callables = {name: lambda f=model: f.predict(X) for name, model in models.items()}
    yield Case(f"{len(X)} x 54, 1024 columns", callables, (("sklearn", "surff"),))


def serve(dtype, scale):
    """One row at a time, 54 columns."""
    del scale  # of one row
    X = normal(dtype, 2000, 54)
    y, row = np.sin(X[:, 0]) + X[:, 1], X[:1].copy()
    pairs = {
        "1024 Fourier columns": (
            FourierFeatures(1024, gamma=0.01, random_state=0),
            RBFSampler(gamma=0.01, n_components=1024, random_state=0),
        ),
        "256 landmarks": (
            NystroemFeatures(256, gamma=0.01, random_state=0),
            Nystroem(gamma=0.01, n_components=256, random_state=0),
        ),
    }
    for label, (features, theirs) in pairs.items():
        model = KernelRidgeRegressor(features, alphas=1.0).fit(X, y)
        pipeline = make_pipeline(theirs, Ridge(1.0)).fit(X, y)
        predictor = Predictor(model)
        callables = {
            "predict": lambda f=model: f.predict(row),
            "Predictor": lambda f=predictor: f.predict(row),
            "sklearn": lambda f=pipeline: f.predict(row),
        }
        ratios = ("sklearn", "predict"), ("sklearn", "Predictor")
        yield Case(f"one row, {label}", callables, ratios)


def nystroem(dtype, scale):
    """As many landmarks as covtype has columns at s = 16 d."""
    m = max(32, int(1728 * min(1.0, scale)))
    X = normal(dtype, scale * 50_000, 54)
    y, landmarks = np.sin(X[:, 0]) + X[:, 1], np.arange(m)
    features = NystroemFeatures(m, gamma=0.02, landmarks=landmarks)
    model = KernelRidgeRegressor(features, alphas=1.0)
    theirs = Nystroem(gamma=0.02, n_components=m, random_state=0)
    pipeline = make_pipeline(theirs, Ridge(1.0, solver="cholesky"))
    model.fit(X, y)
    pipeline.fit(X, y)
    size = f"{len(X)} x 54, {m} landmarks"
    fits = {"surff": lambda: model.fit(X, y), "sklearn": lambda: pipeline.fit(X, y)}
    yield Case(f"fit, {size}", fits, (("sklearn", "surff"),))
    predictions = {
        "surff": lambda: model.predict(X),
        "sklearn": lambda: pipeline.predict(X),
    }
    yield Case(f"predict, {size}", predictions, (("sklearn", "surff"),))


def syrk(dtype, scale):
    """Columns as covtype has at s = 16 d."""
    m = 1728
    X = normal(dtype, scale * 8 * SYRK_ROWS, 54)
    y = np.sin(X[:, 0]) + X[:, 1]
    Z, gram = normal(dtype, SYRK_ROWS, m), np.zeros((m, m), dtype, order="F")
    multiply = blas.dsyrk if dtype == np.float64 else blas.ssyrk
    features = FourierFeatures(m, gamma=0.05, random_state=0)
    model = KernelRidgeRegressor(features, alphas=1.0, precision="float64")
    if dtype != np.float64:
        model.set_params(precision="mixed")

    def gram_alone():
        for start in range(0, len(X), SYRK_ROWS):
            rows = Z[: len(X) - start]
            multiply(1.0, rows.T, beta=1.0, c=gram, overwrite_c=1)

    callables = {"fit": lambda: model.fit(X, y), "syrk": gram_alone}
    yield Case(f"{len(X)} x 54, {m} columns", callables, (("syrk", "fit"),))


def alphas(dtype, scale):
    """Few rows, and as many columns as covtype has at s = 16 d."""
    precision = "float64" if dtype == np.float64 else "mixed"
    for n, m in ((200, 256), (20_000, 1728), (100_000, 1728), (290_506, 1728)):
        X = normal(dtype, scale * n, 54)
        rng = np.random.default_rng(1)
        y = np.sin(X[:, 0]) + X[:, 1] + 0.5 * rng.normal(size=len(X))
        features = FourierFeatures(m, gamma=0.02, random_state=0)
        one = KernelRidgeRegressor(features, alphas=1.0, precision=precision)
        many = KernelRidgeRegressor(features, precision=precision)
        sampler = RBFSampler(gamma=0.02, n_components=m, random_state=0)
        ridge = make_pipeline(sampler, Ridge(1.0, solver="cholesky"))
        callables = {
            "one alpha": lambda f=one, X=X, y=y: f.fit(X, y),
            "20 alphas": lambda f=many, X=X, y=y: f.fit(X, y),
        }
        ratios = [("20 alphas", "one alpha")]
        if n * m <= SKLEARN_ENTRIES:
            callables["sklearn"] = lambda f=ridge, X=X, y=y: f.fit(X, y)
            ratios.append(("sklearn", "20 alphas"))
        yield Case(f"{len(X)} x 54, {m} columns", callables, tuple(ratios))


def sorf(dtype, scale):
    """Projections, and the features that are made of them."""
    s = 16_384
    for d in (64, 256, 1024):
        X, dense = normal(dtype, scale * 512, d), normal(dtype, s, d)
        rng = np.random.default_rng(0)
        drawn = StructuredOrthogonal().draw(Gaussian(), s, d, rng)
        hadamard = (0.1 * drawn).astype(dtype)
        P, Z = (np.empty((len(X), columns), dtype) for columns in (s, 2 * s))

        def project(rows, X=X, P=P, hadamard=hadamard):
            hadamard.projections(X[rows], P[rows])

        callables = {
            "structured": lambda X=X, f=project: map_slices(f, len(X)),
            "dense": lambda X=X, W=dense, P=P: np.matmul(X, W.T, out=P),
            "structured map": lambda X=X, W=hadamard, Z=Z: fourier_features(
                X, W, out=Z
            ),
            "dense map": lambda X=X, W=dense, Z=Z: fourier_features(X, W, out=Z),
        }
        ratios = ("dense", "structured"), ("dense map", "structured map")
        yield Case(f"{len(X)} x {d}, {s} frequencies", callables, ratios)


def generation(dtype, scale):
    """A pool of s candidates on as many rows as EEG has to train on."""
    d = 14
    X = normal(dtype, scale * 7490, d)
    y, nothing = np.sign(X[:, :1] + X[:, 1:2]), np.zeros((len(X), 0), dtype)
    for multiple in (1, 8, 32, 128):
        W = normal(dtype, multiple * d, d)
        pool = FourierMap(W)

        def plain(pool=pool):
            def consume(rows):
                for _ in feature_blocks(pool, X, part=rows):
                    pass

            map_slices(consume, len(X))

        def leverage(pool=pool):
            gram = accumulate(pool, X, nothing).gram
            return ridge_column_scores(gram, LEVERAGE_LAMBDA * len(X))

        callables = {
            "RFF": plain,
            "surrogate": lambda W=W: surrogate_column_scores(fourier_moments(X, W, y)),
            "leverage": leverage,
        }
        ratios = ("surrogate", "RFF"), ("leverage", "surrogate")
        yield Case(f"{len(X)} x {d}, s = {multiple} d", callables, ratios)


BENCHMARKS = {
    function.__name__: function
    for function in (
        feature_map,
        transform,
        sparse_rows,
        predict,
        serve,
        nystroem,
        syrk,
        alphas,
        sorf,
        generation,
    )
}


def print_row(name, dtype, case, seconds):
    """Milliseconds of each callable, and the ratios, as a row in Markdown."""
    times = ", ".join(
        f"{key} {1e3 * statistics.median(runs):.3g}" for key, runs in seconds.items()
    )
    ratios = []
    for numerator, denominator in case.ratios:
        median, low, high = ratio(seconds[numerator], seconds[denominator])
        ratios.append(
            f"{numerator} / {denominator} {median:.2f} ({low:.2f} to {high:.2f})"
        )
    print(
        f"| {name} | {np.dtype(dtype).name} | {case.label} | {times} "
        f"| {', '.join(ratios)} |",
        flush=True,
    )


def main(arguments=None):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="+", choices=BENCHMARKS, metavar="NAME")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--scale", type=float, default=1.0, help="of the sizes")
    parser.add_argument(
        "--dtypes", nargs="+", choices=DTYPES, default=list(DTYPES), metavar="DTYPE"
    )
    parser.add_argument(
        "--in-a-row", type=int, default=3, help="least runs of each in a round"
    )
    parser.add_argument(
        "--at-least", type=float, default=0.3, help="seconds in a round for each"
    )
    add_clock(parser)
    options = parser.parse_args(arguments)
    clock, limit = clock_and_limit(options)
    print(f"{processor()}\n")
    print("| | dtype | size | ms | ratios |\n|---|---|---|---|---|", flush=True)
    with limit:
        for name in options.names:
            for dtype in map(np.dtype, options.dtypes):
                for case in BENCHMARKS[name](dtype, options.scale):
                    seconds = rounds(
                        case.callables,
                        options.rounds,
                        options.in_a_row,
                        options.at_least,
                        clock,
                    )
                    print_row(name, dtype, case, seconds)


if __name__ == "__main__":
    main()
