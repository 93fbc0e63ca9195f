"""Every draw of every kernel estimates it, and wrong variants do not.

Frequencies fall into independent groups (blocks of an orthogonal draw, rules of a
quadrature, single rows), whose means lie in [-1, 1] times the largest weight: Hoeffding
or Bernstein with a union over all pairs of rows bounds the error, and correct code
fails with a probability below 1e-9 a test. Quasi-random points are held to the bound of
independent ones. Draws with a bias state what it may be.
"""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import roots_hermitenorm

from surff.draws import (
    DRAWS,
    GaussHermite,
    Modified,
    SphericalRadial,
    WeightedFrequencies,
    split_weights,
)
from surff.kernels import (
    KERNELS,
    Cauchy,
    Gaussian,
    Laplace,
    Matern,
    Product,
    Sum,
    fourier_features,
    kernel_estimate,
)

GAMMA = 0.7
MEASURES = {
    **{name: kernel() for name, kernel in KERNELS.items()},
    "matern-4": Matern(nu=4.0),
    "sum": Sum([Gaussian(), Laplace()], [1, 2], [2, 0.3]),
    "isotropic-sum": Sum([Gaussian(), Matern()], [3, 1], [1, 0.2]),
    "product": Product([Gaussian(), Cauchy()], [0.5, 0.3]),
}
PRODUCTS = {"laplacian", "cauchy", "sum", "product"}
ANY = ("monte_carlo", "halton", "sobol")
ISOTROPIC = ("orthogonal", "structured_orthogonal", "spherical_radial", "gauss_hermite")
PAIRS = [
    *((draw, name) for draw in ANY for name in MEASURES),
    *((draw, name) for draw in ISOTROPIC for name in MEASURES if name not in PRODUCTS),
    ("modified", "rbf"),
]
N_ROWS = 14
LOG = math.log(2 * 2 * N_ROWS**2 / 1e-9)
N_GROUPS = 6000


def rows(d):
    """Rows at distances between a tenth and two, whatever the dimension."""
    directions = np.random.default_rng(d).normal(size=(N_ROWS, d)) / math.sqrt(d)
    return np.linspace(0.1, 1.2, N_ROWS)[:, None] * directions


def drawn(draw, measure, d, seed=0):
    """Frequencies at GAMMA and weights of ``N_GROUPS`` groups, and a group's size."""
    size = {
        "orthogonal": d,
        "structured_orthogonal": 32,
        "spherical_radial": d + 1 if d > 1 else 1,
    }.get(draw, 1)
    draw_object = {
        "spherical_radial": SphericalRadial(signed=True),
        "modified": Modified(truncation={1: 4.0, 3: 2.0, 10: 1.5}[d]),
    }.get(draw) or DRAWS[draw]()
    n = N_GROUPS * size + (draw == "spherical_radial")
    W, weights = split_weights(
        draw_object.draw(measure, n, d, np.random.default_rng(seed))
    )
    return measure.scale(GAMMA) * np.asarray(W), weights, size


def bound(draw, X, W, weights, size):
    """Error that correct code exceeds with a probability below 1e-9."""
    d = X.shape[1]
    hoeffding = math.sqrt(2 * LOG / N_GROUPS)
    if draw == "structured_orthogonal":
        return hoeffding + 0.01  # the bias of blocks of 32
    if draw == "modified":
        largest, square = weights.max(), np.mean(weights**2) * 1.5
        return math.sqrt(2 * square * LOG / N_GROUPS) + 2 * largest * LOG / N_GROUPS / 3
    if draw == "spherical_radial":
        # Rules have a finite variance, no bound: seven of their standard errors.
        differences = (X[:, None] - X).reshape(-1, d)[:: N_ROWS + 3]
        share = weights[1:] * N_GROUPS * size / len(weights)
        terms = share * (np.cos(differences @ W[1:].T) - 1)
        return (
            7
            * terms.reshape(len(terms), -1, size).mean(axis=2).std(axis=1).max()
            / math.sqrt(N_GROUPS)
        )
    return hoeffding


def error(measure, X, W, weights):
    K = measure.kernel(X, gamma=GAMMA)
    return abs(kernel_estimate(X, W, weights) - K).max()


# Every draw in every dimension; other kernels in one each, in turn.
@pytest.mark.parametrize(
    ("draw", "name", "d"),
    [
        (draw, name, d)
        for i, (draw, name) in enumerate(PAIRS)
        for d in ((1, 3, 10) if name == "rbf" else (3, 10, 1)[i % 3 : i % 3 + 1])
    ],
)
def test_estimates_the_kernel_within_its_bound(draw, name, d):
    """Torchkernels 3, 4: Laplace, Matern and exponential-power, every draw."""
    measure, X = MEASURES[name], rows(d)
    W, weights, size = drawn(draw, measure, d)
    radius = bound(draw, X, W, weights, size)
    assert radius < 0.25
    assert error(measure, X, W, weights) < radius
    # The wrong scale: a length read as its square, or the factor 2 forgotten.
    assert (
        max(
            error(measure, X, factor * W, weights)
            for factor in (math.sqrt(2), math.sqrt(0.5), GAMMA)
        )
        > radius
    )


@pytest.mark.parametrize("name", ["rbf", "exponential", "rational_quadratic"])
def test_a_forgotten_radius_is_found(name):
    measure, X = MEASURES[name], 2 * rows(3)
    W, _, _ = drawn("orthogonal", measure, 3)
    radius = bound("orthogonal", X, W, None, 3)
    assert error(measure, X, W, None) < radius
    # All norms alike, the root mean square of the Gaussian's.
    W *= math.sqrt(2 * GAMMA * 3) / np.linalg.norm(W, axis=1, keepdims=True)
    assert error(measure, X, W, None) > radius


def test_directions_that_are_not_haar_are_found():
    X = 1.3 * rows(3)
    W, _, _ = drawn("orthogonal", Gaussian(), 3)
    radius = bound("orthogonal", X, W, None, 3)
    assert error(Gaussian(), X, W, None) < radius
    # One rotation for all blocks.
    norms = np.linalg.norm(W, axis=1, keepdims=True)
    wrong = norms * np.tile(W[:3] / norms[:3], (N_GROUPS, 1))
    assert error(Gaussian(), X, wrong, None) > radius


def test_the_grid_is_weighted_once():
    # Nodes drawn by their weights and weighted by them again: the known bug.
    X = rows(3)
    W, weights, _ = drawn("gauss_hermite", Gaussian(), 3)
    nodes, rule = roots_hermitenorm(GaussHermite().n_nodes)
    index = abs(W[:, :, None] / math.sqrt(2 * GAMMA) - nodes).argmin(axis=2)
    again = np.prod(rule[index], axis=1)
    again /= again.mean()
    assert error(Gaussian(), X, W, weights) < bound("gauss_hermite", X, W, None, 1)
    assert error(Gaussian(), X, W, again) > bound("gauss_hermite", X, W, None, 1)


@pytest.mark.parametrize("draw", ["modified", "spherical_radial"])
def test_forgotten_weights_are_found(draw):
    X = rows(3)
    W, weights, size = drawn(draw, Gaussian(), 3)
    radius = bound(draw, X, W, weights, size)
    assert error(Gaussian(), X, W, None) > radius
    # Weights taken for amplitudes.
    assert error(Gaussian(), X, W, weights**2) > radius


def test_weights_are_split_off():
    W, a = np.ones((2, 1)), np.array([1.0, -1.0])
    assert split_weights(W) == (W, None)
    assert split_weights(WeightedFrequencies(W, a)) == (W, a)


def test_kernel_estimate_is_the_product_of_the_features():
    X, W = rows(3), np.random.default_rng(0).normal(size=(20, 3))
    weights = np.random.default_rng(1).uniform(size=20)
    Z = fourier_features(X, W, np.sqrt(weights))
    assert_allclose(kernel_estimate(X, W, weights), Z @ Z.T, atol=1e-14)
    Y = rows(3)[:5] + 0.3
    expected = np.cos((X[:, None] - Y) @ W.T) @ (weights - 0.5) / 20
    assert_allclose(kernel_estimate(X, W, weights - 0.5, Y), expected, atol=1e-14)
