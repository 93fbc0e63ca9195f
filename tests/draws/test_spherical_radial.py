import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

from surff import FourierFeatures
from surff.draws import SphericalRadial, simplex_vertices
from surff.kernels import Cauchy, Gaussian, Matern, kernel_estimate


def rule(d, n_rules, seed=0, signed=True, measure=None):
    """Weighted frequencies of whole rules."""
    n = 1 + n_rules * (d + 1)
    rng = np.random.default_rng(seed)
    return SphericalRadial(signed).draw(measure or Gaussian(), n, d, rng)


@pytest.mark.parametrize("d", [2, 3, 10])
def test_simplex_vertices(d):
    V = simplex_vertices(d)
    assert V.shape == (d + 1, d)
    assert_allclose(V.T @ V, (d + 1) / d * np.eye(d), atol=1e-14)
    assert_allclose(V.sum(axis=0), 0, atol=1e-14)
    gram = np.full((d + 1, d + 1), -1 / d) + (1 + 1 / d) * np.eye(d + 1)
    assert_allclose(V @ V.T, gram, atol=1e-14)


@pytest.mark.parametrize("d", [2, 3, 10])
@pytest.mark.parametrize("n_rules", [1, 7])
def test_exact_for_polynomials_of_degree_three(d, n_rules):
    W, weights = rule(d, n_rules)
    # Total mass 1, second moments 2 I (gamma = 1), odd ones zero once w and -w count.
    assert weights.mean() == pytest.approx(1.0, rel=1e-12)
    second = np.einsum("i,ij,ik->jk", weights, W, W) / len(W)
    assert_allclose(second, 2 * np.eye(d), atol=1e-11)
    unsigned = np.abs(weights)
    if weights[0] < 0:
        assert unsigned.mean() > 1.0 + 1e-6  # the forgotten sign


def test_kernel_near_zero_is_exact_to_second_order():
    # Error of order r^4, where independent rows have r^2 / sqrt(s).
    d, x = 5, np.full((1, 5), 0.1)
    estimates = [
        kernel_estimate(x, *rule(d, 20, seed), Y=np.zeros((1, d)))[0, 0]
        for seed in range(50)
    ]
    exact = Gaussian().kernel(x, np.zeros((1, d)))[0, 0]
    independent = [
        np.cos(Gaussian().sample(np.random.default_rng(seed), 121, d) @ x[0]).mean()
        for seed in range(50)
    ]
    assert np.std(estimates) < 0.2 * np.std(independent)
    assert abs(np.mean(estimates) - exact) < 6 * np.std(estimates) / math.sqrt(50)


def test_centre_is_negative_about_every_other_time():
    negative = [rule(5, 1, seed).weights[0] < 0 for seed in range(1000)]
    # MATH: probability .34 at d = 5; six standard errors are 0.09.
    assert abs(np.mean(negative) - 0.34) < 0.09


def test_unsigned_rules_add_a_constant():
    d, X = 5, np.random.default_rng(0).normal(size=(10, 5)) / 2
    for seed in range(6):
        W, weights = rule(d, 40, seed)
        W_again, clipped = rule(d, 40, seed, signed=False)
        assert_allclose(W_again, W)
        shift = -min(weights[0], 0) / len(W)
        K = kernel_estimate(X, W, weights)
        assert_allclose(kernel_estimate(X, W, clipped), K + shift, atol=1e-13)


def test_centred_features_do_not_see_the_constant():
    X = np.random.default_rng(0).normal(size=(12, 3))
    Z = FourierFeatures(
        62, gamma=0.3, draw="spherical_radial", random_state=5
    ).fit_transform(X)
    Z -= Z.mean(axis=0)
    rng = np.random.default_rng(5)
    W, weights = SphericalRadial(signed=True).draw(Gaussian(), 31, 3, rng)
    K = kernel_estimate(X, math.sqrt(0.3) * W, weights)
    K = K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean()
    assert weights[0] < 0
    assert_allclose(Z @ Z.T, K, atol=1e-13)


def test_mixtures_keep_their_moments_given_tau():
    # E w w^T = 2 E tau I = 2 nu / (nu - 1) I for Matern, nu > 1.
    W, weights = rule(3, 30000, measure=Matern(nu=8.0))
    second = np.einsum("i,ij,ik->jk", weights, W, W) / len(W)
    assert_allclose(second, 2 * 8 / 7 * np.eye(3), atol=0.05)


def test_bad_calls_are_named():
    with pytest.raises(ValueError, match=r"needs at least 2 frequencies.* got 1"):
        SphericalRadial().draw(Gaussian(), 1, 3, np.random.default_rng(0))
    with pytest.raises(TypeError, match="Cauchy is not isotropic"):
        SphericalRadial().draw(Cauchy(), 9, 3, np.random.default_rng(0))
