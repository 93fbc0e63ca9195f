"""Every kernel against its formula, its limits and its frequencies."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from sklearn.base import clone
from sklearn.gaussian_process import kernels as process_kernels

from surff.kernels import (
    KERNELS,
    Cauchy,
    Exponential,
    ExponentialPower,
    Gaussian,
    Laplace,
    Matern,
    Product,
    RationalQuadratic,
    Sum,
)

N = 30000
#: Every statistical test here fails on correct code with at most this probability.
LEVEL = 1e-9

MEASURES = {
    **{name: kernel() for name, kernel in KERNELS.items()},
    "matern-0.3": Matern(nu=0.3),
    "matern-4": Matern(nu=4.0),
    "rational_quadratic-0.4": RationalQuadratic(alpha=0.4),
    "exponential_power-0.6": ExponentialPower(power=0.6),
    "exponential_power-1.7": ExponentialPower(power=1.7),
    "sum": Sum([Gaussian(), Laplace(), Matern()], [1, 2, 3], [1, 0.3, 2]),
    "isotropic-sum": Sum([Gaussian(), Matern(), ExponentialPower()], [3, 1, 2]),
    "product": Product([Gaussian(), Cauchy(), Matern()], [0.5, 0.3, 0.2]),
    "sum-of-products": Sum(
        [Product([Gaussian(), Laplace()], [0.5, 0.2]), Sum([Matern(), Cauchy()])],
        [2, 1],
    ),
    "isotropic-product": Product([RationalQuadratic(), ExponentialPower()], [0.4, 0.7]),
}
PRODUCT_MEASURES = {"laplacian", "cauchy", "sum", "product", "sum-of-products"}
SUMS = {"sum", "isotropic-sum", "sum-of-products"}

#: Kernel values at gamma, written out from the difference of two rows.
FORMULAS = {
    "rbf": lambda x, g: math.exp(-g * x @ x),
    "laplacian": lambda x, g: math.exp(-g * abs(x).sum()),
    "exponential": lambda x, g: math.exp(-math.sqrt(2 * g * x @ x)),
    "matern": lambda x, g: (
        (1 + math.sqrt(6 * g * x @ x)) * math.exp(-math.sqrt(6 * g * x @ x))
    ),
    "cauchy": lambda x, g: math.prod(1 / (1 + g * x**2)),
    "rational_quadratic": lambda x, g: 1 / (1 + g * x @ x),
    "exponential_power": lambda x, g: math.exp(-math.sqrt(g * x @ x)),
    "rational_quadratic-0.4": lambda x, g: (1 + g * x @ x / 0.4) ** -0.4,
    "exponential_power-0.6": lambda x, g: math.exp(-((g * x @ x) ** 0.3)),
}


def rows(d, n=14):
    """Rows at distances between a tenth and two, whatever the dimension."""
    directions = np.random.default_rng(d).normal(size=(n, d)) / math.sqrt(d)
    return np.linspace(0.1, 1.4, n)[:, None] * directions


def hoeffding(n_pairs, n_frequencies):
    """Bound on means of cosines, for all pairs at once."""
    return math.sqrt(2 * math.log(2 * n_pairs / LEVEL) / n_frequencies)


def estimate_error(frequencies, X, K):
    P = X @ frequencies.T
    C, S = np.cos(P), np.sin(P)
    return abs((C @ C.T + S @ S.T) / len(frequencies) - K).max()


@pytest.mark.parametrize("name", sorted(FORMULAS))
@pytest.mark.parametrize("d", [1, 3])
def test_kernel_is_its_formula(name, d):
    X, Y = rows(d), 0.7 + rows(d, 5)
    gamma = 0.6
    expected = [[FORMULAS[name](x - y, gamma) for y in Y] for x in X]
    assert_allclose(MEASURES[name].kernel(X, Y, gamma=gamma), expected, rtol=1e-12)
    assert set(KERNELS) <= set(FORMULAS)


@pytest.mark.parametrize("nu", [0.3, 0.7, 1.0, 2.0, 3.3, 10.0])
def test_matern_is_scikit_learns(nu):
    X = rows(3)
    expected = process_kernels.Matern(1 / math.sqrt(1.4), nu=nu)(X, rows(3, 5) + 0.1)
    K = Matern(nu).kernel(X, rows(3, 5) + 0.1, gamma=0.7)
    assert_allclose(K, expected, rtol=1e-10)


def test_matern_of_any_smoothness_is_one_at_zero_and_falls():
    distances = np.concatenate([[0.0], np.geomspace(1e-12, 30, 200)])[:, None]
    for nu in (0.05, 0.5, 1.0, 2.999, 3.001, 17.3, 40.0, 99.0, 100.0, 1e4):
        k = Matern(nu).kernel(np.zeros((1, 1)), distances)[0]
        assert k[0] == pytest.approx(1.0, abs=1e-9)
        assert np.isfinite(k).all()
        assert (np.diff(k) <= 1e-9).all()
    # Where the two evaluations meet.
    below = Matern(100 - 1e-9).kernel(np.zeros((1, 1)), distances[:150])
    assert_allclose(
        below, Matern(100.0).kernel(np.zeros((1, 1)), distances[:150]), rtol=1e-9
    )


def test_limits_are_the_gaussian_kernel_of_the_same_gamma():
    X = rows(3)
    K = Gaussian().kernel(X, gamma=0.7)
    assert_allclose(Matern(1e5).kernel(X, gamma=0.7), K, atol=1e-4)
    assert_allclose(RationalQuadratic(1e6).kernel(X, gamma=0.7), K, atol=1e-5)
    assert_allclose(ExponentialPower(2.0).kernel(X, gamma=0.7), K, rtol=1e-13)


def test_names_for_one_kernel_agree():
    X = rows(3)
    K = Exponential().kernel(X, gamma=0.7)
    assert_allclose(Matern(0.5).kernel(X, gamma=0.7), K, rtol=1e-13)
    assert_allclose(ExponentialPower(1.0).kernel(X, gamma=1.4), K, rtol=1e-13)
    # In one dimension the two norms agree, and in three they do not.
    line = rows(1)
    assert_allclose(
        Laplace().kernel(line, gamma=0.7),
        Exponential().kernel(line, gamma=0.49 / 2),
        rtol=1e-13,
    )
    difference = Laplace().kernel(X, gamma=0.7) - Exponential().kernel(X, gamma=0.245)
    assert abs(difference).max() > 0.1


@pytest.mark.parametrize("name", sorted(MEASURES))
@pytest.mark.parametrize("d", [1, 3, 10])
def test_frequencies_have_the_kernel_as_their_transform(name, d):
    """Gpytorch 1800, GPJax 612: samplers know length scale and dimension."""
    measure, X = MEASURES[name], rows(d)
    W = measure.sample(np.random.default_rng(0), N, d)
    # In a sum the parts' shares of rows are off by less than log2(N) / N.
    radius = hoeffding(X.size**2 * 2, N) + (math.log2(N) * 3 / N if name in SUMS else 0)
    for gamma in (0.6, np.linspace(0.3, 2.5, d)):
        K = measure.kernel(X, gamma=gamma)
        scale = measure.scale(gamma)
        assert estimate_error(scale * W, X, K) < radius
        # A factor 2 in the exponent, either way.
        for factor in (math.sqrt(2), math.sqrt(0.5)):
            wrong = measure.kernel(factor * X, gamma=gamma)
            assert estimate_error(scale * W, X, wrong) > radius


@pytest.mark.parametrize(
    "name",
    # Matern 4 and power 1.7 are too nearly Gaussian for the bound to tell.
    sorted(
        set(MEASURES) - PRODUCT_MEASURES - {"rbf", "matern-4", "exponential_power-1.7"}
    ),
)
def test_a_forgotten_mixing_variable_is_found(name):
    # The same value in every row leaves a Gaussian kernel of some width.
    measure, X = MEASURES[name], rows(10)
    W = Gaussian().sample(np.random.default_rng(0), N, 10)
    median = np.median(measure.mixing(np.random.default_rng(1).random((999, 5))))
    error = estimate_error(math.sqrt(median) * W, X, measure.kernel(X))
    assert error > hoeffding(X.size**2, N)


@pytest.mark.parametrize("name", sorted(set(MEASURES) - PRODUCT_MEASURES))
@pytest.mark.parametrize("d", [1, 3, 10])
def test_radial_law_is_that_of_the_norms(name, d):
    measure = MEASURES[name]
    norms = measure.radial_law(np.random.default_rng(0), N, d)
    sample = measure.sample(np.random.default_rng(1), N, d)
    assert norms.shape == (N,)
    lengths = np.linalg.norm(sample, axis=1)
    assert stats.ks_2samp(norms, lengths).pvalue > LEVEL
    assert stats.ks_2samp(norms, math.sqrt(2) * lengths).pvalue < LEVEL
    # Vectorised functions may round the last digit by the length of the array.
    first = measure.radial_law(np.random.default_rng(0), 5, d)
    assert_allclose(first, norms[:5], rtol=1e-14)


@pytest.mark.parametrize("name", sorted(PRODUCT_MEASURES))
def test_measures_that_are_not_isotropic_say_so(name):
    with pytest.raises(TypeError, match=r"(Laplace|Cauchy) is not isotropic"):
        MEASURES[name].radial_law(np.random.default_rng(0), 3, 2)


def test_radial_laws_in_closed_form():
    norms = Gaussian().radial_law(np.random.default_rng(0), N, 4) / math.sqrt(2)
    assert stats.kstest(norms, stats.chi(4).cdf).pvalue > LEVEL
    norms = Matern(1.5).radial_law(np.random.default_rng(0), N, 4)
    # |w|^2 = (2 nu / l^2) BetaPrime(d / 2, nu) with 1 / l^2 = 2 gamma.
    law = stats.betaprime(2, 1.5, scale=6)
    assert stats.kstest(norms**2, law.cdf).pvalue > LEVEL


def test_one_sided_stable_law_of_index_one_half():
    # Levy with E exp(-s tau) = exp(-sqrt(s)), scale 1/2.
    tau = ExponentialPower(1.0).mixing(np.random.default_rng(0).random((N, 2)))
    assert stats.kstest(tau, stats.levy(scale=0.5).cdf).pvalue > LEVEL


@pytest.mark.parametrize("name", sorted(MEASURES))
def test_frequencies_are_finite_in_both_precisions(name):
    extremes = np.array([2.0**-54, 1e-9, 0.5, 1 - 2.0**-53])
    measure = MEASURES[name]
    n = measure.n_coordinates(2)
    U = np.array(np.meshgrid(*[extremes] * min(n, 6))).reshape(min(n, 6), -1).T
    U = np.hstack([U, np.full((len(U), n - U.shape[1]), 0.3)])
    W = measure.quantile(U)
    assert W.shape == (len(U), 2)
    assert np.isfinite(W.astype(np.float32)).all()


def test_sums_share_their_rows_out_evenly():
    measure = Sum([Gaussian(), Gaussian()], weights=[3, 1], gammas=[1e-6, 1e6])
    W = abs(measure.sample(np.random.default_rng(0), 400, 1)[:, 0])
    # Independent choices would miss 25 by 4 as a rule.
    assert_array_equal(np.sum(W.reshape(4, 100) > 1, axis=1), 25)


def test_composites_are_means_and_products_of_kernels():
    """Botorch 1528, 2838: a sum mixes frequencies, a product adds them."""
    X, Y = rows(3), rows(3, 5)
    parts = [Gaussian().kernel(X, Y, gamma=0.5), Laplace().kernel(X, Y, gamma=1.3)]
    total = Sum([Gaussian(), Laplace()], weights=[1, 3], gammas=[0.5, 1.3])
    assert_allclose(total.kernel(X, Y), 0.25 * parts[0] + 0.75 * parts[1], rtol=1e-12)
    product = Product([Gaussian(), Laplace()], gammas=[0.5, 1.3])
    assert_allclose(product.kernel(X, Y), parts[0] * parts[1], rtol=1e-12)
    assert_allclose(
        product.kernel(X, Y, gamma=0.7), product.kernel(0.7**0.5 * X, 0.7**0.5 * Y)
    )


@pytest.mark.parametrize("name", sorted(MEASURES))
def test_measures_clone(name):
    again = clone(MEASURES[name])
    assert_array_equal(again.kernel(rows(2)), MEASURES[name].kernel(rows(2)))


@pytest.mark.parametrize(
    ("measure", "message"),
    [
        (Matern(nu=0.0), "nu must be a positive finite number, got 0.0"),
        (RationalQuadratic(alpha=-1), "alpha must be a positive finite number, got -1"),
        (ExponentialPower(power=2.5), "power must be at most 2, got 2.5"),
        (ExponentialPower(power=0), "power must be a positive finite number, got 0"),
        (Sum([]), "measures must hold at least one measure"),
        (Product([]), "measures must hold at least one measure"),
        (Sum([Gaussian()], weights=[1, 2]), "weights must hold one number per measure"),
        (Sum([Gaussian()], weights=[0]), "weights must be a positive finite number"),
        (
            Product([Gaussian()], gammas=[1, 2]),
            "gammas must hold one number per measure",
        ),
        (Product([Gaussian()], gammas=[-1]), "gammas must be a positive finite number"),
    ],
)
def test_bad_parameters_are_named(measure, message):
    with pytest.raises(ValueError, match=message):
        measure.kernel(np.zeros((1, 1)), np.ones((1, 1)))
