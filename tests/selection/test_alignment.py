import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize

from surff.selection import aligned_probabilities

alignments = st.lists(
    st.one_of(st.sampled_from([0.0, 1.0, 2.0]), st.floats(0, 1e3)),
    min_size=1,
    max_size=9,
)


def divergence(q):
    """The chi-square divergence from the uniform probabilities."""
    return np.sum((len(q) * q) ** 2 - 1) / len(q)


@given(v=alignments, rho=st.floats(1e-3, 20.0), scale=st.sampled_from([1e-9, 1, 1e9]))
def test_the_optimum_is_feasible_and_satisfies_kkt(v, rho, scale):
    v = np.array(v) * scale
    q = aligned_probabilities(v, rho)
    assert q.min() >= 0
    assert q.sum() == pytest.approx(1, rel=1e-12)
    assert divergence(q) <= rho + 1e-6
    # Stationary: v_j - lambda q_j - nu <= 0 with a multiplier lambda >= 0 of the ball,
    # and = 0 where q_j > 0. Two unknowns, found from the largest and smallest q > 0.
    v = v / max(v.max(), 1e-300)
    kept = np.flatnonzero(q)
    high, low = kept[v[kept].argmax()], kept[v[kept].argmin()]
    multiplier = 0.0
    if q[high] > q[low]:
        multiplier = (v[high] - v[low]) / (q[high] - q[low])
    nu = v[high] - multiplier * q[high]
    slack = v - multiplier * q - nu
    assert multiplier >= 0
    assert_allclose(slack[kept], 0, atol=1e-6)
    assert slack.max() <= 1e-6
    # Complementary: the ball binds unless the best candidates have all the mass.
    if multiplier > 1e-6:
        assert divergence(q) == pytest.approx(rho, rel=1e-6)
    else:
        assert_allclose(v[kept], v.max(), atol=1e-6)


@pytest.mark.parametrize("size", [2, 5, 9])
@pytest.mark.parametrize("rho", [0.01, 0.3, 1.0, 3.0, 50.0])
def test_a_general_solver_finds_the_same(size, rho):
    v = np.random.default_rng(size).normal(size=size) ** 2
    q = aligned_probabilities(v, rho)
    found = minimize(
        lambda q: -q @ v,
        np.full(size, 1 / size),
        jac=lambda q: -v,
        bounds=[(0, 1)] * size,
        constraints=[
            {"type": "eq", "fun": lambda q: q.sum() - 1},
            {"type": "ineq", "fun": lambda q: rho - divergence(q)},
        ],
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )
    # It may stop by its line search, at the optimum.
    assert divergence(found.x) <= rho + 1e-8
    assert q @ v == pytest.approx(-found.fun, rel=1e-9)
    assert_allclose(q, found.x, atol=1e-6)


def test_small_balls_in_closed_form():
    # While all q are positive they are 1/l + b (v - mean), at distance sqrt(rho / l).
    v, rho = np.array([0.3, 5.0, 1.0, 2.0]), 0.01
    deviation = v - v.mean()
    expected = 1 / 4 + np.sqrt(rho / 4) * deviation / np.linalg.norm(deviation)
    assert_allclose(aligned_probabilities(v, rho), expected, rtol=1e-12)


def test_the_limits_are_uniform_and_the_best():
    v = np.array([0.3, 5.0, 1.0, 2.0, 4.9])
    assert_allclose(aligned_probabilities(v, 1e-20), 1 / 5, atol=1e-9)
    assert_array_equal(aligned_probabilities(v, 4.0), [0, 1, 0, 0, 0])
    assert_array_equal(aligned_probabilities(v, 1e9), [0, 1, 0, 0, 0])
    # Just inside, the second best has a little.
    q = aligned_probabilities(v, 3.9)
    assert_array_equal(q > 0, [False, True, False, False, True])


def test_ties_share_alike():
    assert_allclose(aligned_probabilities(np.full(6, 0.7), 2.0), 1 / 6, rtol=1e-12)
    q = aligned_probabilities(np.array([3.0, 1.0, 3.0, 0.0]), 100.0)
    assert_array_equal(q, [0.5, 0, 0.5, 0])
    q = aligned_probabilities(np.array([3.0, 1.0, 3.0, 1.0]), 0.3)
    assert q[0] == q[2] > q[1] == q[3] > 0


def test_one_candidate_and_equivariance():
    assert_array_equal(aligned_probabilities(np.array([0.7]), 1.0), [1.0])
    v = np.random.default_rng(0).exponential(size=40)
    q = aligned_probabilities(v, 1.3)
    assert_allclose(aligned_probabilities(100 + 7 * v, 1.3), q, atol=1e-12)
    assert_allclose(aligned_probabilities(v[::-1], 1.3), q[::-1], rtol=1e-12)


def test_many_candidates_keep_precision():
    # A large pool with near ties: the sums over the best few must not cancel.
    v = np.exp(np.random.default_rng(0).normal(size=200_000))
    for rho in (1e-3, 1.0, 1e4):
        q = aligned_probabilities(v, rho)
        assert divergence(q) == pytest.approx(rho, rel=1e-6)
