import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from sklearn.base import clone

from surff.kernels import KERNELS, Gaussian, SpectralMeasure

N = 30000
#: Every statistical test here fails on correct code with at most this probability.
LEVEL = 1e-9


def pairs(n_features):
    """Pairs of rows whose kernel values, at the gammas below, spread over (0, 1)."""
    rng = np.random.default_rng(n_features)
    X = rng.normal(size=(15, n_features)) / math.sqrt(n_features)
    Y = rng.normal(size=(12, n_features)) / math.sqrt(n_features)
    return np.linspace(0.1, 1, 15)[:, None] * X, np.linspace(0.1, 1, 12)[:, None] * Y


def characteristic_error(frequencies, X, Y, K):
    """Largest error of the mean of cos(w.(x - y)), which estimates the kernel."""
    difference = (X[:, None] - Y).reshape(-1, X.shape[1])
    estimate = np.cos(difference @ frequencies.T).mean(axis=1)
    return abs(estimate - K.ravel()).max()


@pytest.mark.parametrize("name", sorted(KERNELS))
@pytest.mark.parametrize("n_features", [1, 3, 10])
@pytest.mark.parametrize("gamma", [0.3, 2.5])
def test_sampler_has_the_kernel_as_its_fourier_transform(name, n_features, gamma):
    measure = KERNELS[name]()
    X, Y = pairs(n_features)
    sample = measure.sample(np.random.default_rng(0), N, n_features)
    assert sample.shape == (N, n_features)
    # Hoeffding on cosines in [-1, 1], union over pairs.
    radius = math.sqrt(2 * math.log(2 * len(X) * len(Y) / LEVEL) / N)
    frequencies = measure.scale(gamma) * sample
    K = measure.kernel(X, Y, gamma=gamma)
    assert characteristic_error(frequencies, X, Y, K) < radius
    # A factor 2 in the exponent, either way, is told by the same bound.
    for factor in (math.sqrt(2), math.sqrt(0.5)):
        assert characteristic_error(factor * frequencies, X, Y, K) > radius


@pytest.mark.parametrize("name", sorted(KERNELS))
def test_quantile_of_uniform_points_has_the_samplers_law(name):
    measure = KERNELS[name]()
    d = 3
    rng = np.random.default_rng(0)
    sample = measure.sample(rng, N, d)
    points = measure.quantile(rng.uniform(size=(N, measure.n_coordinates(d))))
    assert points.shape == (N, d)
    for j in range(d):
        assert stats.ks_2samp(sample[:, j], points[:, j]).pvalue > LEVEL / d
        wrong = points[:, j] / math.sqrt(2)
        assert stats.ks_2samp(sample[:, j], wrong).pvalue < LEVEL / d


def test_gaussian_coordinates_are_independent_normals_of_variance_two_gamma():
    gamma, d = 0.7, 4
    sample = Gaussian().scale(gamma) * Gaussian().sample(np.random.default_rng(0), N, d)
    law = stats.norm(scale=math.sqrt(2 * gamma))
    for j in range(d):
        assert stats.kstest(sample[:, j], law.cdf).pvalue > LEVEL / d
    # Six correlations: Fisher's transform is normal with variance 1 / (n - 3).
    correlation = np.corrcoef(sample.T)[np.triu_indices(d, 1)]
    bound = stats.norm.isf(LEVEL / 12) / math.sqrt(N - 3)
    assert abs(np.arctanh(correlation)).max() < bound


def test_gaussian_quantiles_in_closed_form():
    U = np.array([[0.5, 0.8413447460685429], [0.9772498680518208, 0.15865525393145707]])
    expected = math.sqrt(2) * np.array([[0, 1], [2, -1]])
    assert_allclose(Gaussian().quantile(U), expected, atol=1e-14)
    assert Gaussian().n_coordinates(5) == 5


def test_gaussian_kernel_is_the_papers():
    # exp(-|x - x'|^2 / sigma^2) with gamma = 1 / sigma^2.
    sigma = 1.7
    X, Y = pairs(3)
    expected = np.exp(-(((X[:, None] - Y) ** 2).sum(axis=2)) / sigma**2)
    assert_allclose(Gaussian().kernel(X, Y, gamma=1 / sigma**2), expected, rtol=1e-13)
    assert_allclose(np.diag(Gaussian().kernel(X, gamma=0.7)), 1.0, rtol=1e-15)


@pytest.mark.parametrize("name", sorted(KERNELS))
def test_longer_samples_extend_shorter_ones(name):
    measure = KERNELS[name]()
    short = measure.sample(np.random.default_rng(3), 7, 5)
    long = measure.sample(np.random.default_rng(3), 70, 5)
    assert_array_equal(long[:7], short)


@pytest.mark.parametrize("name", sorted(KERNELS))
def test_measures_clone_and_show_parameters(name):
    measure = KERNELS[name]()
    assert clone(measure).get_params() == measure.get_params()


@pytest.mark.parametrize(
    ("method", "arguments", "lacks"),
    [
        ("kernel", (np.zeros((1, 1)),), "scale"),
        ("unit_kernel", (np.zeros((1, 1)), np.zeros((1, 1))), "unit_kernel"),
        ("sample", (np.random.default_rng(0), 1, 1), "quantile"),
        ("quantile", (np.zeros((1, 1)),), "quantile"),
        ("scale", (1.0,), "scale"),
    ],
)
def test_an_unfinished_measure_says_what_it_lacks(method, arguments, lacks):
    class Mine(SpectralMeasure):
        pass

    with pytest.raises(TypeError, match=f"Mine does not define {lacks}"):
        getattr(Mine(), method)(*arguments)
