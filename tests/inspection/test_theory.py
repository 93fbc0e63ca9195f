import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import stats
from sklearn.metrics.pairwise import rbf_kernel

from surff.inspection import (
    lemma_1_epsilon,
    lemma_1_features,
    leverage_function,
    pool_surrogate_dof,
    spectral_approximation,
    surrogate_dof,
    surrogate_leverage_function,
    theorem_1_features,
    theorem_2_features,
)
from surff.kernels import Gaussian, fourier_features, fourier_moments
from surff.selection import effective_dof

GAMMA = 0.3


def problem(n=9, d=2, k=1, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, rng.normal(size=(n, k)), rbf_kernel(X, gamma=GAMMA)


def frequencies(s, d=2, seed=1):
    sample = Gaussian().sample(np.random.default_rng(seed), s, d)
    return Gaussian().scale(GAMMA) * sample


def test_one_row_in_closed_form():
    X, Y, K = np.array([[0.7, -1.0]]), np.array([[3.0]]), np.ones((1, 1))
    alpha = 0.7
    assert_allclose(leverage_function(X, frequencies(5), K, alpha), 1 / 1.7)
    assert_allclose(surrogate_leverage_function(X, frequencies(5), Y, alpha), 10 / 0.7)
    assert surrogate_dof(K, Y, alpha) == pytest.approx(10 / 0.7)


def test_leverage_is_the_printed_quadratic_form():
    X, Y, K = problem(k=3)
    n, alpha, W = 9, 0.7, frequencies(5)
    leverage = leverage_function(X, W, K, alpha)
    surrogate = surrogate_leverage_function(X, W, Y, alpha)
    for i, w in enumerate(W):
        z = np.exp(-1j * X @ w)
        expected = (z.conj() @ np.linalg.inv(K + alpha * np.eye(n)) @ z).real
        assert leverage[i] == pytest.approx(expected, rel=1e-10)
        lam = alpha / n
        A = (Y @ Y.T + n * np.eye(n)) / (n**2 * lam)
        assert surrogate[i] == pytest.approx((z.conj() @ A @ z).real, rel=1e-10)


@given(seed=st.integers(0, 99), alpha=st.floats(1e-6, 1e6), factor=st.floats(1.01, 100))
def test_bounds_of_the_leverage(seed, alpha, factor):
    X, Y, K = problem(seed=seed)
    W = frequencies(5, seed=seed)
    leverage = leverage_function(X, W, K, alpha)
    assert np.all(leverage > 0)
    # l(w) <= p(w) / lambda = p(w) n / alpha <= L(w), for every lambda > 0: K and y y^T
    # are positive semi-definite.
    slack = 1 + 1e-9
    assert np.all(leverage <= 9 / alpha * slack)
    assert np.all(surrogate_leverage_function(X, W, Y, alpha) >= 9 / alpha / slack)
    assert np.all(leverage_function(X, W, K, factor * alpha) < leverage)


def test_large_alpha_makes_the_leverage_uniform():
    X, _, K = problem()
    leverage = leverage_function(X, frequencies(20), K, 1e9)
    assert_allclose(leverage * 1e9 / 9, 1, rtol=1e-7)


def test_integrals_are_the_degrees_of_freedom():
    # Means over w ~ p of values in [0, B]: Hoeffding, wrong with probability < 1e-9.
    X, Y, K = problem()
    s, alpha = 40000, 4.0
    W = frequencies(s)
    radius = math.sqrt(math.log(2 * 2 / 1e-9) / (2 * s))
    bound = 9 / alpha
    leverage = leverage_function(X, W, K, alpha)
    assert abs(leverage.mean() - effective_dof(K, alpha)) < bound * radius
    bound = np.abs(Y).sum() ** 2 / (9 * alpha)  # what varies of L
    surrogate = surrogate_leverage_function(X, W, Y, alpha)
    assert abs(surrogate.mean() - surrogate_dof(K, Y, alpha)) < bound * radius
    # With the frequencies of half or twice the bandwidth the same check fails.
    for factor in (2, 0.5):
        wrong = leverage_function(X, math.sqrt(factor) * W, K, alpha).mean()
        assert abs(wrong - effective_dof(K, alpha)) > 9 / alpha * radius


def test_surrogate_dof_is_the_trace():
    _, Y, K = problem(k=3)
    alpha = 0.7
    expected = np.trace((Y @ Y.T + 9 * np.eye(9)) @ K) / (9 * alpha)
    assert surrogate_dof(K, Y, alpha) == pytest.approx(expected, rel=1e-12)
    assert surrogate_dof(K, Y, alpha) >= 9 / alpha


def test_the_pools_dof_is_that_of_its_kernel():
    X, Y, _ = problem(k=3)
    W = frequencies(20)
    Z = fourier_features(X, W)
    pooled = pool_surrogate_dof(fourier_moments(X, W, Y), 9, 0.7)
    assert pooled == pytest.approx(surrogate_dof(Z @ Z.T, Y, 0.7), rel=1e-12)
    # It is the mean of the surrogate over the candidates, too.
    mean = surrogate_leverage_function(X, W, Y, 0.7).mean()
    assert pooled == pytest.approx(mean, rel=1e-12)


def test_numbers_of_features_as_printed():
    assert theorem_1_features(3.0, 2.0, 0.5) == math.ceil(30 * math.log(32))
    # The pool's term 7 z0^2 log(16 d) / (lambda delta) and the kept ones' term.
    first = math.ceil(7 * 4 * math.log(32) / (0.01 * 0.5))
    assert theorem_2_features(3.0, 2.0, 2.0, lam=0.01, delta=0.5, z0=2.0) == first
    second = math.ceil(5 * 300 * math.log(48) / 0.5)
    assert theorem_2_features(300.0, 3.0, 2.0, lam=1.0, delta=0.5) == second


@pytest.mark.parametrize("delta", [0.0, 1.0, -0.1, 2.0])
def test_a_probability_out_of_range_is_named(delta):
    with pytest.raises(ValueError, match=rf"delta must lie in \(0, 1\), got {delta}"):
        theorem_1_features(3.0, 2.0, delta)
    with pytest.raises(ValueError, match=rf"delta must lie in \(0, 1\), got {delta}"):
        theorem_2_features(3.0, 2.0, 2.0, 0.1, delta)


def sample_from_surrogate(X, Y, alpha, s, rng):
    """Exact draws from q = L / D by rejection, and their weights p / q."""
    n = len(X)
    largest = (np.abs(Y).sum() ** 2 + n**2) / (n * alpha)
    kept = np.zeros((0, X.shape[1]))
    while len(kept) < s:
        W = Gaussian().scale(GAMMA) * Gaussian().sample(rng, 4 * s, X.shape[1])
        L = surrogate_leverage_function(X, W, Y, alpha)
        kept = np.vstack([kept, W[rng.uniform(size=4 * s) * largest < L]])
    kept = kept[:s]
    D = surrogate_dof(rbf_kernel(X, gamma=GAMMA), Y, alpha)
    return kept, D / surrogate_leverage_function(X, kept, Y, alpha)


def test_theorem_1_keeps_its_promise():
    # With that many features drawn from q the proof's event, that Z Z^T is within one
    # half of K, fails with probability at most delta. Binomial tail below 1e-9.
    X, _, K = problem(n=10)
    Y, alpha, delta, n_trials = np.sign(X[:, :1]), 0.3, 0.3, 60
    d, D = effective_dof(K, alpha), surrogate_dof(K, Y, alpha)
    rng = np.random.default_rng(0)

    def failures(s):
        count = 0
        for _ in range(n_trials):
            W, weights = sample_from_surrogate(X, Y, alpha, s, rng)
            Z = fourier_features(X, W, np.sqrt(weights))
            count += spectral_approximation(K, Z, alpha) > 0.5
        return count

    allowed = stats.binom.isf(1e-9, n_trials, delta)
    assert failures(theorem_1_features(D, d, delta)) <= allowed
    # As many features as degrees of freedom are too few: the check can fail.
    assert failures(math.ceil(d)) > allowed


def test_the_surrogate_weighted_kernel_is_unbiased():
    # Terms (p / q) cos lie in [-B, B], B = max p / q: Hoeffding, union over entries.
    X, _, K = problem(n=10)
    Y, alpha, s = np.sign(X[:, :1]), 3.0, 30000
    W, weights = sample_from_surrogate(X, Y, alpha, s, np.random.default_rng(0))
    Z = fourier_features(X, W, np.sqrt(weights))
    bound = surrogate_dof(K, Y, alpha) / (10 / alpha)  # L is at least n / alpha
    radius = bound * math.sqrt(2 * math.log(2 * K.size / 1e-9) / s)
    assert weights.max() <= bound
    assert abs(Z @ Z.T - K).max() < radius
    # The weights in place of their roots.
    wrong = fourier_features(X, W, weights)
    assert abs(wrong @ wrong.T - K).max() > radius


@given(
    epsilon=st.floats(1e-2, 10.0),
    D=st.floats(1.0, 1e4),
    d=st.floats(0.5, 1e3),
    delta=st.floats(1e-6, 0.999),
)
def test_lemma_1_in_both_directions(epsilon, D, d, delta):
    s = lemma_1_features(epsilon, D, d, delta)
    assert lemma_1_epsilon(s, D, d, delta) <= epsilon * (1 + 1e-12)
    if s > 1:
        assert lemma_1_epsilon(s - 1, D, d, delta) > epsilon * (1 - 1e-12)
    # The probability as the inequality has it, and its condition.
    found = lemma_1_epsilon(s, D, d, delta)
    exponent = s * found**2 / (2 * D * (1 + 2 * found / 3))
    assert 16 * d * math.exp(-exponent) == pytest.approx(delta, rel=1e-6)
    assert found >= math.sqrt(D / s) + 2 * D / (3 * s)


def test_lemma_1_against_theorem_1():
    # At an accuracy of one half; the theorem asks for more below delta = 0.29.
    for d in (0.5, 3.0, 1e3):
        lemma = lemma_1_features(0.5, 100.0, d, 0.28)
        assert lemma < theorem_1_features(100.0, d, 0.28) < 3 * lemma
    assert lemma_1_features(0.5, 100.0, 0.5, 0.32) > theorem_1_features(
        100.0, 0.5, 0.32
    )
    # As s grows epsilon falls as its root.
    many = lemma_1_epsilon(10**12, 100.0, 3.0, 0.1)
    assert many == pytest.approx(math.sqrt(200.0 * math.log(480.0) / 1e12), rel=1e-4)


@pytest.mark.parametrize("density", ["surrogate", "spectral"])
@pytest.mark.parametrize("s", [30, 300])
def test_lemma_1_keeps_its_promise(density, s):
    # The largest eigenvalue of K is above alpha, as the lemma asks. An error beyond
    # epsilon has a probability of at most delta: binomial tail below 1e-9.
    X, _, K = problem(n=10)
    Y, alpha, delta, n_trials = np.sign(X[:, :1]), 1.0, 0.2, 60
    assert np.linalg.eigvalsh(K)[-1] > alpha
    d = effective_dof(K, alpha)
    rng = np.random.default_rng(0)

    def draw():
        if density == "surrogate":
            return sample_from_surrogate(X, Y, alpha, s, rng)
        W = Gaussian().scale(GAMMA) * Gaussian().sample(rng, s, 2)
        return W, np.ones(s)

    largest = surrogate_dof(K, Y, alpha) if density == "surrogate" else 10 / alpha
    errors = []
    for _ in range(n_trials):
        W, weights = draw()
        Z = fourier_features(X, W, np.sqrt(weights))
        errors.append(spectral_approximation(K, Z, alpha))
    allowed = stats.binom.isf(1e-9, n_trials, delta)
    epsilon = lemma_1_epsilon(s, largest, d, delta)
    assert np.sum(np.array(errors) > epsilon) <= allowed
    # The bound is loose by a factor of ten here: a twentieth of it is too small.
    wrong = lemma_1_epsilon(400 * s, largest, d, delta)
    assert np.sum(np.array(errors) > wrong) > allowed


def test_wrong_input_of_lemma_1_is_named():
    with pytest.raises(ValueError, match=r"epsilon must be positive, got 0\.0"):
        lemma_1_features(0.0, 10.0, 2.0, 0.1)
    with pytest.raises(ValueError, match=r"delta must lie in \(0, 1\), got 1.0"):
        lemma_1_features(0.5, 10.0, 2.0, 1.0)
    with pytest.raises(ValueError, match=r"delta must lie in \(0, 1\), got 0.0"):
        lemma_1_epsilon(100, 10.0, 2.0, 0.0)
