"""The evidence against a dense Gaussian process with the same finite kernel."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import multivariate_normal
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, DotProduct

from surff.linear import (
    AlphaPath,
    Evidence,
    NormalEquations,
    Solving,
    best_index,
    likelihood,
)

RNG = np.random.default_rng(0)
Z = RNG.normal(size=(40, 7)) + 0.3
Y = Z @ RNG.normal(size=(7, 2)) + [1.0, 3.0] * RNG.normal(size=(40, 2))
WEIGHT = RNG.integers(0, 4, size=40)
for array in (Z, Y, WEIGHT):
    array.flags.writeable = False


def sums(Z, Y, weight=None):
    return NormalEquations(Z.shape[1], Y.shape[1]).update(Z.copy(), Y, weight)


def process(alpha, noise):
    kernel = ConstantKernel(noise / alpha, "fixed") * DotProduct(0.0, "fixed")
    return GaussianProcessRegressor(kernel, alpha=noise, optimizer=None)


@pytest.mark.parametrize("alpha", [1e-3, 0.7, 50.0])
@pytest.mark.parametrize("noise", [0.05, 1.3])
def test_equals_a_dense_gaussian_process(alpha, noise):
    found = likelihood(sums(Z, Y), False).value(alpha, noise)[0]
    for j in range(2):
        dense = process(alpha, noise).fit(Z, Y[:, j])
        assert_allclose(found[j], dense.log_marginal_likelihood_value_, rtol=1e-8)


def test_the_flat_prior_on_the_intercept_is_a_limit():
    # A prior N(0, v) on the intercept adds v to the kernel. Its density near 0 is
    # 1 / sqrt(2 pi v), that of the flat prior 1.
    alpha, noise, v = 0.7, 0.4, 1e7
    covariance = noise / alpha * Z @ Z.T + noise * np.eye(40) + v
    dense = multivariate_normal(np.zeros(40), covariance).logpdf(Y.T)
    found = likelihood(sums(Z, Y), True).value(alpha, noise)[0]
    assert_allclose(found, dense + 0.5 * np.log(2 * np.pi * v), rtol=1e-5)


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_the_best_noise_is_the_best(fit_intercept):
    parts = likelihood(sums(Z, Y), fit_intercept)
    alphas = np.array([0.03, 0.7, 9.0])
    noise = parts.noise(alphas)
    best = parts.value(alphas)
    assert_allclose(best, parts.value(alphas, noise), rtol=1e-14)
    for factor in (0.9, 1.1):
        assert np.all(parts.value(alphas, factor * noise) < best)


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("noise", [None, 0.3])
def test_gradients_equal_finite_differences(fit_intercept, noise):
    parts = likelihood(sums(Z, Y), fit_intercept)
    alphas, h = np.array([1e-2, 0.7, 30.0]), 1e-5
    by_alpha, by_noise = parts.gradient(alphas, noise)
    up, down = (parts.value(alphas * np.exp(s), noise) for s in (h, -h))
    assert_allclose(by_alpha, (up - down) / (2 * h), rtol=1e-6, atol=1e-6)
    if noise is None:
        assert_allclose(by_noise, 0.0, atol=1e-12)
    else:
        up, down = (parts.value(alphas, noise * np.exp(s)) for s in (h, -h))
        assert_allclose(by_noise, (up - down) / (2 * h), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_a_weight_repeats_a_row(fit_intercept):
    rows = np.repeat(np.arange(40), WEIGHT)
    weighted = likelihood(sums(Z, Y, WEIGHT.astype(float)), fit_intercept)
    repeated = likelihood(sums(Z[rows], Y[rows]), fit_intercept)
    assert_allclose(weighted.value([0.7]), repeated.value([0.7]), rtol=1e-10)


def test_exact_targets_have_a_finite_evidence():
    parts = likelihood(sums(Z, Z[:, :1] * 2.0), False)
    assert np.isfinite(parts.value([1e-12, 1e-3])).all()
    constant = likelihood(sums(Z, np.ones((40, 1))), True)
    assert np.isfinite(constant.value([1e-3, 1.0])).all()


def test_no_degree_of_freedom_is_an_error():
    with pytest.raises(ValueError, match=r"a sum of 0\.4 leaves no degree"):
        likelihood(sums(Z, Y, np.full(40, 0.01)), True)


def test_refined_alphas_have_no_slope():
    criterion = Evidence(sums(Z, Y), Solving(True, "cholesky"))
    alphas = criterion.alphas_at(np.arange(-6.0, 3.0, 0.5))

    def score(alphas):
        return criterion.score(alphas)

    path = criterion.refined(AlphaPath(alphas, score(alphas)), score)
    assert np.all(np.diff(path.alphas) > 0)
    best = path.alphas[best_index(path)]
    slopes, _ = criterion.likelihood.gradient(best)
    assert_allclose(slopes[[0, 1], [0, 1]], 0.0, atol=1e-4)
    shared = AlphaPath(alphas, score(alphas).mean(axis=2))
    path = criterion.refined(shared, lambda a: score(a).mean(axis=2))
    slopes, _ = criterion.likelihood.gradient(path.alphas[best_index(path)])
    assert_allclose(slopes.sum(), 0.0, atol=1e-4)
