import itertools
import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from surff.draws import (
    GaussHermite,
    MonteCarlo,
    Reweighted,
    SparseGrid,
    nonnegative_weights,
    sparse_grid,
)
from surff.draws.quadrature import normal_rule, sparse_indices
from surff.kernels import Gaussian, Laplace, Matern, kernel_estimate

RNG = np.random.default_rng(0)


def normal_moment(powers):
    """E prod g_j^(p_j) for independent standard normals."""
    if any(p % 2 for p in powers):
        return 0.0
    return math.prod(math.prod(range(p - 1, 0, -2)) for p in powers)


@pytest.mark.parametrize("n_nodes", [1, 2, 5, 32])
def test_one_dimensional_rules_are_exact(n_nodes):
    nodes, weights = normal_rule(n_nodes)
    for power in range(0, min(2 * n_nodes, 20), 2):
        expected = normal_moment([power])
        assert weights @ nodes**power == pytest.approx(expected, rel=1e-10)


def test_grid_rows_are_nodes_drawn_by_their_weights():
    n = 20000
    W = GaussHermite(n_nodes=5).draw(Gaussian(), n, 2, np.random.default_rng(0))
    nodes, weights = normal_rule(5)
    index = abs(W[:, :, None] / math.sqrt(2) - nodes).argmin(axis=2)
    assert_allclose(W, math.sqrt(2) * nodes[index], atol=1e-13)
    for column in index.T:
        counts = np.bincount(column, minlength=5)
        # Six standard deviations of a binomial count.
        assert (abs(counts - n * weights) < 6 * np.sqrt(n * weights)).all()


def test_expected_estimate_is_the_product_of_the_rules():
    n, x = 40000, np.array([[1.5, 2.5]])
    W = GaussHermite(n_nodes=3).draw(Gaussian(), n, 2, np.random.default_rng(0))
    nodes, weights = normal_rule(3)
    expected = math.prod(weights @ np.cos(math.sqrt(2) * nodes * t) for t in x[0])
    estimate = np.cos(W @ x[0]).mean()
    radius = math.sqrt(2 * math.log(2 / 1e-9) / n)
    assert abs(estimate - expected) < radius
    # Far out the rule leaves the kernel.
    exact = Gaussian().kernel(x, np.zeros((1, 2)))[0, 0]
    assert abs(estimate - exact) > radius


def test_sparse_indices_are_all_vectors_of_a_sum():
    for total, d in itertools.product(range(5), range(1, 4)):
        found = []
        for columns, entries in sparse_indices(total, d):
            vector = np.zeros(d, dtype=int)
            vector[columns] = entries
            found.append(tuple(vector))
        every = itertools.product(range(total + 1), repeat=d)
        assert sorted(found) == sorted(v for v in every if sum(v) == total)


@pytest.mark.parametrize(
    ("level", "d"), [(1, 3), (2, 1), (2, 6), (3, 3), (4, 2), (5, 3)]
)
def test_sparse_grid_is_exact_to_its_degree(level, d):
    nodes, weights = sparse_grid(level, d)
    assert nodes.shape == (len(weights), d)
    assert weights.sum() == pytest.approx(1.0)
    size = abs(weights) @ np.ones(len(weights))
    for powers in itertools.product(range(2 * level), repeat=d):
        # Even functions: a node stands for its opposite.
        if sum(powers) < 2 * level and sum(powers) % 2 == 0:
            value = weights @ np.prod(nodes ** np.array(powers), axis=1)
            expected = normal_moment(powers)
            assert value == pytest.approx(expected, abs=1e-9 * size)
    # And no further.
    powers = np.array([2 * level] + [0] * (d - 1))
    value = weights @ np.prod(nodes**powers, axis=1)
    assert abs(value - normal_moment(powers)) > 0.5


def test_signed_grid_is_the_kernel_near_zero():
    for d, n, radius in ((1, 12, 2.0), (3, 200, 0.6), (10, 150, 0.25)):
        X = np.random.default_rng(d).normal(size=(20, d)) / math.sqrt(d) * radius
        W, weights = SparseGrid(signed=True).draw(Gaussian(), n, d, RNG)
        assert weights.min() < 0 or d == 1
        K = Gaussian().kernel(X, np.zeros((1, d)))
        estimate = kernel_estimate(X, W, weights, np.zeros((1, d)))
        assert abs(estimate - K).max() < 2e-3
        # The forgotten signs.
        if d > 1:
            wrong = kernel_estimate(X, W, abs(weights), np.zeros((1, d)))
            assert abs(wrong - K).max() > 0.1


def test_grid_fills_what_it_can():
    W, weights = SparseGrid(signed=True).draw(Gaussian(), 50, 3, RNG)
    used = np.flatnonzero(weights)
    # 1, 3 and more half-nodes: level 4 has more than 50.
    assert len(used) <= len(sparse_grid(4, 3)[1])
    assert_array_equal(W[used[-1] + 1 :], 0)
    assert weights.mean() == pytest.approx(1.0)
    with pytest.raises(
        ValueError, match=r"at least 4 frequencies for 3 features, got 3"
    ):
        SparseGrid().draw(Gaussian(), 3, 3, RNG)


@pytest.mark.parametrize(
    ("draw", "d"),
    [
        (SparseGrid(), 1),
        (SparseGrid(), 3),
        (Reweighted(), 3),
        (Reweighted(), 5),
        (Reweighted(MonteCarlo()), 5),
    ],
)
def test_fitted_weights_beat_equal_ones_where_they_are_fitted(draw, d):
    n = 128
    W, weights = draw.draw(Gaussian(), n, d, np.random.default_rng(0))
    assert weights.min() >= 0
    assert weights.mean() == pytest.approx(1.0, abs=0.02)
    differences = np.random.default_rng(9).normal(size=(500, d)) * math.sqrt(2 / d)
    zero = np.zeros((1, d))
    K = Gaussian().kernel(differences, zero)
    fitted = np.std(kernel_estimate(differences, W, weights, zero) - K)
    plain = MonteCarlo().draw(Gaussian(), n, d, np.random.default_rng(0))
    assert fitted < 0.7 * np.std(kernel_estimate(differences, plain, None, zero) - K)


def test_reweighting_takes_the_differences_given():
    differences = 0.1 * np.random.default_rng(0).normal(size=(300, 4))
    draw = Reweighted(MonteCarlo(), differences)
    W, weights = draw.draw(Matern(), 20, 4, np.random.default_rng(0))
    assert_array_equal(W, Matern().sample(np.random.default_rng(0), 20, 4))
    expected = 20 * nonnegative_weights(Matern(), W, differences)
    assert_allclose(weights, expected, rtol=1e-12)
    with pytest.raises(ValueError, match=r"shape \(n_pairs, 3\), got \(300, 4\)"):
        draw.draw(Matern(), 20, 3, np.random.default_rng(0))


def test_nonnegative_weights_recover_a_kernel_in_their_reach():
    # A mixture of cosines is its own spectral measure.
    W = np.array([[0.5], [1.3], [4.0]])

    class Mixture(Gaussian):
        def unit_kernel(self, X, Y):
            return np.cos((X - Y.T)[:, :, None] * W.ravel()) @ np.array([0.2, 0.0, 0.8])

    differences = np.linspace(0, 4, 50)[:, None]
    weights = nonnegative_weights(Mixture(), W, differences)
    assert_allclose(weights, [0.2, 0.0, 0.8], atol=1e-7)


@pytest.mark.parametrize("value", [0, -1, 2.0, "8"])
def test_bad_numbers_of_nodes_are_named(value):
    with pytest.raises(ValueError, match="n_nodes must be an int of at least 1"):
        GaussHermite(n_nodes=value).draw(Gaussian(), 4, 2, RNG)


def test_measures_without_a_rule_are_named():
    with pytest.raises(TypeError, match="rule for the Gaussian measure, got Matern"):
        SparseGrid().draw(Matern(), 9, 2, RNG)
    with pytest.raises(TypeError, match="Laplace is not isotropic"):
        GaussHermite().draw(Laplace(), 9, 2, RNG)
