import math
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import qmc

from surff.draws import Halton, MonteCarlo, Orthogonal, Sobol
from surff.inspection import relative_error
from surff.kernels import KERNELS, Gaussian, Matern, fourier_features


def test_unscrambled_starts_at_the_second_point():
    W = Sobol(scramble=False).draw(Gaussian(), 7, 3, None)
    points = qmc.Sobol(3, scramble=False).random_base2(3)[1:]
    assert_allclose(W, Gaussian().quantile(points), rtol=1e-15)
    assert np.isfinite(W).all()


@pytest.mark.parametrize("scramble", [True, False])
@pytest.mark.parametrize("n", [1, 2, 3, 64, 100])
def test_any_number_is_drawn_in_silence(scramble, n):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        W = Sobol(scramble).draw(Gaussian(), n, 4, np.random.default_rng(0))
    assert W.shape == (n, 4)
    longer = Sobol(scramble).draw(Gaussian(), 200, 4, np.random.default_rng(0))
    assert_array_equal(longer[:n], W)


def test_scrambling_follows_the_generator_and_keeps_the_net():
    first, second = (
        Sobol().draw(Gaussian(), 64, 2, np.random.default_rng(seed)) for seed in (0, 1)
    )
    assert not np.array_equal(first, second)
    # One point in each of 64 equal intervals of every coordinate.
    for W in (first, second):
        for column in W.T:
            edges = Gaussian().quantile(np.arange(1, 64)[:, None] / 64)[:, 0]
            assert_array_equal(np.bincount(np.searchsorted(edges, column)), 1)


@pytest.mark.parametrize("name", sorted(KERNELS))
def test_fills_the_coordinates_of_every_measure(name):
    # The means of a kernel estimate: far closer than independent rows'.
    measure, x = KERNELS[name](), np.array([[0.5, -0.3, 0.2]])
    exact = measure.kernel(x, np.zeros((1, 3)))[0, 0]
    for draw in (Sobol(), Halton()):
        W = draw.draw(measure, 4096, 3, np.random.default_rng(0))
        # Four standard errors of an independent mean would be 0.04.
        assert abs(np.cos(W @ x[0]).mean() - exact) < 0.01
    # The forgotten coordinate: one mixing value for all rows.
    if isinstance(measure, Matern):
        U = qmc.Sobol(3, seed=0).random_base2(12)
        wrong = measure.quantile(np.hstack([U, np.full((4096, 1), 0.5)]))
        assert abs(np.cos(wrong @ x[0]).mean() - exact) > 0.01


def test_too_many_coordinates_are_named():
    with pytest.raises(ValueError, match=r"at most 21201 coordinates, and 30000"):
        Sobol().draw(Gaussian(), 2, 30000, np.random.default_rng(0))


def test_the_order_of_the_literature():
    # Sobol < Halton < orthogonal < independent in relative spectral error at d = 5 and
    # 1024 columns.
    X = np.random.default_rng(0).normal(size=(60, 5)) / math.sqrt(5)
    K = Gaussian().kernel(X)
    means = {}
    draws = [(Sobol(), 4), (Halton(), 1), (Orthogonal(), 24), (MonteCarlo(), 24)]
    for draw, n_seeds in draws:
        errors = []
        for seed in range(n_seeds):
            W = draw.draw(Gaussian(), 512, 5, np.random.default_rng(seed))
            errors.append(relative_error(K, fourier_features(X, W)))
        means[type(draw).__name__] = np.mean(errors)
    assert means["Sobol"] < means["Halton"] < means["Orthogonal"] < means["MonteCarlo"]
    assert means["Sobol"] < 0.3 * means["MonteCarlo"]
