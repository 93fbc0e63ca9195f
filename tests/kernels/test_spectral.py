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
    rng = np.random.default_rng(3)
    X, Y = rng.normal(size=(15, 3)), rng.normal(size=(12, 3))
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
