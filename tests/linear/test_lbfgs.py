import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize

from surff.linear import Descent, minimise


def quadratics(n_functions=3, size=6, seed=0):
    """Convex quadratics with Hessians below the identity, and their minima."""
    rng = np.random.default_rng(seed)
    Q = np.linalg.qr(rng.normal(size=(n_functions, size, size)))[0]
    e = 10.0 ** rng.uniform(-4, 0, size=(n_functions, size))
    H = Q * e[:, None] @ Q.transpose(0, 2, 1)
    minima = rng.normal(size=(n_functions, size))

    def function(which, points):
        away = points - minima[which]
        gradients = np.einsum("nij,nj->ni", H[which], away)
        return 0.5 * np.einsum("ni,ni->n", away, gradients), gradients

    return function, minima


def test_quadratics_are_minimised():
    function, minima = quadratics()
    points, converged, n_rounds = minimise(function, 0 * minima, 1e-12, 500, 1e-16)
    assert converged.all()
    assert n_rounds < 200
    assert_allclose(points, minima, atol=1e-7)


def test_each_function_takes_its_own_course():
    function, minima = quadratics()
    together, converged, n_rounds = minimise(function, 0 * minima, 1e-6, 500, 1e-16)
    alone = [
        minimise(lambda _, p, i=i: function([i], p), np.zeros((1, 6)), 1e-6, 500, 1e-16)
        for i in range(3)
    ]
    assert converged.all()
    assert_array_equal(together, np.concatenate([points for points, *_ in alone]))
    assert n_rounds == max(rounds for *_, rounds in alone)


def test_only_what_is_not_done_is_evaluated():
    function, minima = quadratics()
    calls = []

    def watched(which, points):
        calls.append(list(which))
        return function(which, points)

    starts = 0 * minima
    starts[1] = minima[1]
    minimise(watched, starts, 1e-9, 500, 1e-16)
    assert calls[:2] == [[0, 1, 2], [0, 2]]


def test_the_direction_is_that_of_the_bfgs_matrix():
    # The two loops equal the inverse Hessian updated step by step as a matrix.
    rng = np.random.default_rng(0)
    H = np.diag([1.0, 0.5, 0.1, 0.01])
    descent = Descent(rng.normal(size=4))
    for _ in range(4):
        descent.receive(0.5 * descent.trial @ H @ descent.trial, H @ descent.trial, 0.0)
    s, y, product = descent._pairs[-1]
    inverse = product / (y @ y) * np.eye(4)
    for s, y, product in descent._pairs:
        V = np.eye(4) - np.outer(y, s) / product
        inverse = V.T @ inverse @ V + np.outer(s, s) / product
    assert len(descent._pairs) == 3
    assert_allclose(descent._scaled(descent.gradient), inverse @ descent.gradient)


def test_steps_that_do_not_descend_are_halved():
    # Hessians above the identity: the first step is too long.
    def function(_, points):
        return 10 * (points**4).sum(axis=1), 40 * points**3

    points, converged, _ = minimise(function, np.full((1, 2), 1.5), 1e-9, 500, 0.0)
    assert converged.all()
    assert abs(points).max() < 1e-3


def test_values_that_are_not_numbers_are_stepped_back_from():
    def function(_, points):
        with np.errstate(invalid="ignore"):
            return (points - np.log(points)).sum(axis=1), 1 - 1 / points

    points, converged, _ = minimise(function, np.full((1, 2), 40.0), 1e-9, 500, 1e-16)
    assert converged.all()
    assert_allclose(points, 1, rtol=1e-6)


def test_rounding_has_the_last_word():
    # A loss that does not descend any more, while the gradient stays above tol.
    losses = iter([1.0, *[2.0] * 200])

    def function(_, points):
        return [next(losses)], np.ones((1, 2))

    points, converged, n_rounds = minimise(function, np.zeros((1, 2)), 1e-9, 500, 0.0)
    assert converged.all()
    assert n_rounds == 31
    assert_array_equal(points, np.zeros((1, 2)))


def test_level_ground_ends_the_descent():
    # Rounding hides what there is to gain, while the gradient stays above tol.
    def function(_, points):
        return np.ones(1), 1e-3 * (points + 1.0)

    _, converged, n_rounds = minimise(function, np.zeros((1, 2)), 1e-30, 500, 1e-16)
    assert converged.all()
    assert n_rounds < 100


@pytest.mark.parametrize("max_iter", [1, 5])
def test_it_stops_in_time_and_says_so(max_iter):
    function, minima = quadratics()
    points, converged, n_rounds = minimise(function, 0 * minima, 1e-14, max_iter, 0.0)
    assert n_rounds == max_iter
    assert not converged.any()
    start = function(np.arange(3), 0 * minima)[0]
    assert (function(np.arange(3), points)[0] <= start).all()


def test_rounds_are_about_those_of_scipy():
    function, minima = quadratics(n_functions=1, size=40)
    n_rounds = minimise(function, 0 * minima, 1e-8, 5000, 1e-16)[2]

    def single(x):
        loss, gradient = function([0], x[None])
        return loss[0], gradient[0]

    options = {"gtol": 1e-8, "ftol": 0, "maxiter": 5000, "maxfun": 5000}
    scipy = minimize(single, np.zeros(40), jac=True, method="L-BFGS-B", options=options)
    assert n_rounds < 2 * scipy.nfev
