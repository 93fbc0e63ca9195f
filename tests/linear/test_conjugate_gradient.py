import itertools
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from surff.kernels import FourierMap
from surff.linear import accumulate, cheaper_than_cholesky, conjugate_gradient, solve
from surff.linear import cg as room
from surff.linear.cg import ridge_of_dof

DTYPES = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def problem(n=1500, d=4, s=60, dtype=np.float64, seed=0):
    """Rows, two targets, whole-number weights (some zero) and a map of 2 s columns."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    Y = np.column_stack([np.sin(2 * X[:, 0]), X[:, -1] * X[:, -2] + 3.0])
    Y += 0.1 * rng.normal(size=(n, 2))
    weight = rng.integers(0, 4, size=n).astype(float)
    feature_map = FourierMap(rng.normal(size=(s, d)).astype(dtype))
    return feature_map, X.astype(dtype), Y, weight


def direct(feature_map, X, Y, alpha, weight=None, fit_intercept=True, rows=None):
    total = accumulate(feature_map, X, Y, weight, rows)
    return solve(total.centred(fit_intercept), alpha)


def distances(feature_map, X, Y, solution, i, coef, intercept):
    """Root mean square differences of predictions, in deviations of the targets."""
    difference = feature_map(X) @ (solution.coefs[:, i] - coef)
    difference += solution.intercepts[i] - intercept
    return np.sqrt(np.mean(difference**2, axis=0)) / Y.std(axis=0)


def rng():
    return np.random.default_rng(1)


@DTYPES
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("alphas", [[0.7], [0.1, 0.7, 50.0]])
def test_predictions_are_those_of_the_direct_solution(
    dtype, fit_intercept, weighted, alphas
):
    feature_map, X, Y, weight = problem(dtype=dtype)
    weight = weight if weighted else None
    solution = conjugate_gradient(
        feature_map, X, Y, alphas, weight, fit_intercept, rng=rng(), tol=1e-4
    )
    assert solution.converged
    assert solution.coefs.shape == (120, len(alphas), 2)
    assert solution.errors.max() <= 1e-4
    for i, alpha in enumerate(alphas):
        expected = direct(feature_map, X, Y, alpha, weight, fit_intercept)
        # Twice what was asked for: the error is estimated.
        assert distances(feature_map, X, Y, solution, i, *expected).max() < 2e-4


def test_coefficients_converge_in_float64():
    feature_map, X, Y, _ = problem()
    solution = conjugate_gradient(feature_map, X, Y, [0.7], rng=rng(), tol=1e-10)
    coef, intercept = direct(feature_map, X, Y, 0.7)
    assert_allclose(solution.coefs[:, 0], coef, rtol=1e-6, atol=1e-8)
    assert_allclose(solution.intercepts[0], intercept, rtol=1e-8)


@pytest.mark.parametrize("tol", [1e-1, 1e-2, 1e-3])
def test_tolerance_is_the_error_of_predictions(tol):
    feature_map, X, Y, _ = problem()
    expected = direct(feature_map, X, Y, 0.7)
    solution = conjugate_gradient(feature_map, X, Y, [0.7], rng=rng(), tol=tol)
    found = distances(feature_map, X, Y, solution, 0, *expected)
    assert found.max() < 2 * tol
    assert solution.errors.max() <= tol
    assert found.max() > tol / 50  # and it does not do much more than it was asked


def test_whole_data_as_preconditioner_takes_two_passes():
    feature_map, X, Y, _ = problem(n=200)
    solution = conjugate_gradient(
        feature_map, X, Y, [0.7], rng=rng(), tol=1e-8, n_sample=200
    )
    assert solution.n_iter <= 2
    coef, _ = direct(feature_map, X, Y, 0.7)
    assert_allclose(solution.coefs[:, 0], coef, rtol=1e-8, atol=1e-9)


def test_rows_are_those_it_is_told():
    feature_map, X, Y, weight = problem()
    rows = np.random.default_rng(3).permutation(1500)[:900]
    solution = conjugate_gradient(
        feature_map, X, Y, [0.7], weight, rng=rng(), rows=rows, tol=1e-6
    )
    expected = direct(feature_map, X, Y, 0.7, weight, rows=rows)
    assert distances(feature_map, X, Y, solution, 0, *expected).max() < 1e-5


def test_several_alphas_and_targets_equal_single_ones():
    feature_map, X, Y, _ = problem()
    alphas = [0.1, 50.0]
    both = conjugate_gradient(feature_map, X, Y, alphas, rng=rng(), tol=1e-9)
    for i, alpha in enumerate(alphas):
        for t in range(2):
            single = conjugate_gradient(
                feature_map, X, Y[:, [t]], [alpha], rng=rng(), tol=1e-9
            )
            assert_allclose(
                both.coefs[:, i, t], single.coefs[:, 0, 0], rtol=1e-4, atol=1e-6
            )


@DTYPES
@pytest.mark.parametrize("cache_bytes", [10**5, 10**9])
@pytest.mark.parametrize("n_threads", [1, 2])
def test_cached_features_give_the_same_numbers(dtype, cache_bytes, n_threads):
    feature_map, X, Y, _ = problem(dtype=dtype)
    with threadpool_limits(n_threads, user_api="blas"):  # each thread has its own rows
        made, kept = (
            conjugate_gradient(feature_map, X, Y, [0.7], rng=rng(), cache_bytes=size)
            for size in (0, cache_bytes)
        )
    assert_array_equal(made.coefs, kept.coefs)


def test_cached_features_are_cut_where_the_threads_share_other_rows(monkeypatch):
    feature_map, X, Y, _ = problem()
    passes = room.FeaturePasses(feature_map, X, Y, None, None, True, 10**9)
    P = np.ones((feature_map.n_components, 1))
    expected = passes.gram_times(P)
    for edges in ([0, 1500], [0, 700, 1500], [0, 100, 800, 1500]):
        parts = [slice(*pair) for pair in itertools.pairwise(edges)]
        monkeypatch.setattr(room, "map_slices", lambda f, n, p=parts: list(map(f, p)))
        assert_allclose(passes.gram_times(P), expected, rtol=1e-10)


def test_ill_conditioned_systems_say_that_they_did_not_converge():
    feature_map, X, Y, _ = problem(s=200)
    solution = conjugate_gradient(
        feature_map, X, Y, [1e-6], rng=rng(), tol=1e-7, max_iter=5
    )
    assert not solution.converged
    assert solution.n_iter == 5
    assert solution.errors.max() > 1e-7


@DTYPES
@pytest.mark.parametrize("alpha", [0.0, 1e-6])
def test_predictions_converge_where_coefficients_do_not(dtype, alpha):
    # With a smooth kernel in few dimensions most directions have no weight.
    feature_map, X, Y, _ = problem(d=2, s=60, dtype=dtype)
    Y = np.column_stack([np.sin(2 * X[:, 0]), np.cos(X[:, 1])])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        solution = conjugate_gradient(feature_map, X, Y, [alpha], rng=rng())
    fitted = feature_map(X) @ solution.coefs[:, 0] + solution.intercepts[0]
    assert np.isfinite(solution.coefs).all()
    error = np.sqrt(np.mean((fitted - Y) ** 2, axis=0)) / Y.std(axis=0)
    # Convergence is slow and irregular here, and the estimate of the error too low.
    # So irregular that the order of summation, by threads, moves it by some percent.
    assert error.max() < 0.15


def test_constant_targets_have_no_coefficients():
    feature_map, X, Y, _ = problem(n=300)
    Y[:, 0] = 3.0
    solution = conjugate_gradient(feature_map, X, Y, [0.7], rng=rng())
    assert solution.converged
    assert_allclose(solution.coefs[:, 0, 0], 0, atol=1e-12)
    assert_allclose(solution.intercepts[0, 0], 3.0)
    without = conjugate_gradient(feature_map, X, Y, [0.7], None, False, rng=rng())
    expected = direct(feature_map, X, Y, 0.7, fit_intercept=False)[0]
    fitted = feature_map(X) @ np.column_stack([without.coefs[:, 0, 0], expected[:, 0]])
    assert_allclose(*fitted.T, atol=0.1)


def test_nothing_of_the_callers_is_written_to():
    feature_map, X, Y, weight = problem(n=300)
    for array in (X, Y, weight):
        array.flags.writeable = False
    conjugate_gradient(feature_map, X, Y, [0.7], weight, rng=rng(), n_sample=100)


def test_a_sample_without_weight_still_preconditions():
    feature_map, X, Y, weight = problem(n=300, s=5)
    weight[:] = 0.0
    weight[:30] = 1.0
    solution = conjugate_gradient(
        feature_map, X, Y, [0.7], weight, rng=rng(), n_sample=3, tol=1e-8
    )
    coef, _ = direct(feature_map, X, Y, 0.7, weight)
    assert_allclose(solution.coefs[:, 0], coef, rtol=1e-5, atol=1e-7)


def test_the_ridge_leaves_the_degrees_of_freedom():
    eigenvalues = 10.0 ** np.linspace(3, -6, 400)
    Q, _ = np.linalg.qr(np.random.default_rng(0).normal(size=(400, 400)))
    gram = np.asfortranarray(np.triu(Q @ np.diag(eigenvalues) @ Q.T))
    for dof in (20, 100, 250):
        ridge = ridge_of_dof(gram, dof, rng())
        found = np.sum(eigenvalues / (eigenvalues + ridge))
        # One probe of 400 signs: its standard deviation is below 5 %.
        assert_allclose(found, dof, rtol=0.25)
    assert ridge_of_dof(gram, 400, rng()) == 0.0
    low_rank = np.asfortranarray(np.diag(np.r_[np.ones(10), np.zeros(390)]))
    assert ridge_of_dof(low_rank, 50, rng()) < 1e-12


def test_the_cost_model_knows_what_grows():
    assert not cheaper_than_cholesky(300_000, 54, 1728)
    assert cheaper_than_cholesky(300_000, 54, 13_824)
    assert not cheaper_than_cholesky(10_000, 54, 13_824)
