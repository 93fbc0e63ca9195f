import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from surff.draws import Modified, MonteCarlo, split_weights
from surff.inspection import spectral_approximation
from surff.kernels import Gaussian, Laplace, fourier_features

N = 40000
LEVEL = 1e-9


@pytest.mark.parametrize("d", [1, 2, 4])
@pytest.mark.parametrize("truncation", [0.5, 1.5, 4.0])
def test_weights_are_the_ratio_of_the_densities(d, truncation):
    W, weights = Modified(truncation).draw(Gaussian(), N, d, np.random.default_rng(0))
    g = W / math.sqrt(2)
    inside = abs(g).max(axis=1) <= truncation
    mass = (1 - 2 * stats.norm.cdf(-truncation)) ** d
    # Six standard deviations of a binomial share.
    assert abs(inside.mean() - mass) < 6 * math.sqrt(mass * (1 - mass) / N) + 1e-12
    flat = mass / (2 * truncation) ** d
    ratio = stats.norm.pdf(g[inside]).prod(axis=1) / flat
    assert_allclose(weights[inside], ratio, rtol=1e-10)
    assert_allclose(weights[~inside], 1.0)
    for column in g[inside].T:
        law = stats.uniform(-truncation, 2 * truncation)
        assert stats.kstest(column, law.cdf).pvalue > LEVEL


@pytest.mark.parametrize("d", [1, 3])
def test_rows_outside_are_the_measure_outside(d):
    W, _ = Modified(1.0).draw(Gaussian(), N, d, np.random.default_rng(0))
    g = W / math.sqrt(2)
    ours = g[abs(g).max(axis=1) > 1.0]
    plain = np.random.default_rng(1).standard_normal((N, d))
    plain = plain[abs(plain).max(axis=1) > 1.0]
    for j in range(d):
        assert stats.ks_2samp(ours[:, j], plain[:, j]).pvalue > LEVEL
    lengths = [np.linalg.norm(rows, axis=1) for rows in (ours, plain)]
    assert stats.ks_2samp(*lengths).pvalue > LEVEL


def test_mean_square_of_the_weights_is_as_documented():
    for d in (1, 3):
        _, weights = Modified(4.0).draw(Gaussian(), N, d, np.random.default_rng(0))
        square = (4.0 / math.sqrt(math.pi)) ** d
        assert np.mean(weights**2) == pytest.approx(square, rel=0.1)
        assert weights.max() <= (8 / math.sqrt(2 * math.pi)) ** d * 1.001


def test_approximates_the_regularised_kernel_better_than_the_measure_itself():
    # What it is for: the error of K + alpha I relative to itself, at a small alpha.
    rng = np.random.default_rng(0)
    X = rng.uniform(-10, 10, size=(200, 1))
    K = Gaussian().kernel(X)
    means = []
    for draw in (Modified(), MonteCarlo()):
        deltas = []
        for seed in range(5):
            drawn = draw.draw(Gaussian(), 200, 1, np.random.default_rng(seed))
            W, weights = split_weights(drawn)
            amplitudes = None if weights is None else np.sqrt(weights)
            Z = fourier_features(X, W, amplitudes)
            deltas.append(spectral_approximation(K, Z, alpha=1e-3))
        means.append(np.mean(deltas))
    assert means[0] < 0.6 * means[1]


def test_bad_calls_are_named():
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match="truncation must be a positive finite number"):
        Modified(truncation=0.0).draw(Gaussian(), 4, 2, rng)
    with pytest.raises(TypeError, match="Gaussian measure, got Laplace"):
        Modified().draw(Laplace(), 4, 2, rng)
