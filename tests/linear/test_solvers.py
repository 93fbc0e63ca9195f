import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import Ridge
from threadpoolctl import threadpool_limits

from surff.linear import SOLVERS, NormalEquations, SingularError, cholesky, solve
from surff.linear.solvers import intercept, solved_together

ALPHAS = [1e-3, 0.7, 50.0]
names = pytest.mark.parametrize("name", sorted(SOLVERS))


def problem(n=40, m=6, k=2, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, m)) + 0.5, rng.normal(size=(n, k)) - 2.0


def equations(Z, Y, weight=None):
    total = NormalEquations(Z.shape[1], Y.shape[1]).update(Z.copy(), Y, weight)
    # Only the upper triangle is promised: nobody may read what is below.
    total.gram[np.tril_indices(Z.shape[1], -1)] = 1e6
    return total


@names
def test_equals_the_dense_solution(name):
    Z, Y = problem()
    centred = equations(Z, Y).centred(False)
    path = list(SOLVERS[name](centred.gram, centred.moments, ALPHAS))
    for alpha, coef in zip(ALPHAS, path, strict=True):
        expected = np.linalg.solve(Z.T @ Z + alpha * np.eye(6), Z.T @ Y)
        assert_allclose(coef, expected, rtol=1e-10)


@names
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("alpha", ALPHAS)
def test_equals_sklearn_ridge(name, fit_intercept, weighted, alpha):
    Z, Y = problem()
    weight = np.random.default_rng(1).uniform(0.1, 3, size=40) if weighted else None
    coef, b = solve(equations(Z, Y, weight).centred(fit_intercept), alpha, name)
    ridge = Ridge(alpha, fit_intercept=fit_intercept).fit(Z, Y, sample_weight=weight)
    assert_allclose(coef, ridge.coef_.T, rtol=1e-9)
    assert_allclose(b, np.broadcast_to(ridge.intercept_, 2), rtol=1e-9)
    # alpha is not multiplied by the number of rows.
    wrong = Ridge(40 * alpha, fit_intercept=fit_intercept).fit(Z, Y, weight)
    assert abs(coef - wrong.coef_.T).max() > 1e-4


@names
def test_recovers_a_constructed_solution(name):
    # Y = Z beta + b without noise: alpha = 0 gives beta and b back.
    Z, _ = problem()
    beta, b = np.arange(12.0).reshape(6, 2) - 5.0, np.array([0.7, -3.0])
    coef, offset = solve(equations(Z, Z @ beta + b).centred(), 0.0, name)
    assert_allclose(coef, beta, atol=1e-11)
    assert_allclose(offset, b, atol=1e-11)


@names
def test_diagonal_in_closed_form(name):
    gram = np.asfortranarray(np.diag([4.0, 1.0, 0.25]))
    moments = np.array([[2.0], [3.0], [0.5]])
    (coef,) = SOLVERS[name](gram, moments, [0.7])
    assert_allclose(coef[:, 0], [2 / 4.7, 3 / 1.7, 0.5 / 0.95], rtol=1e-14)


@names
def test_a_path_equals_single_solves(name):
    centred = equations(*problem()).centred()
    path = list(SOLVERS[name](centred.gram, centred.moments, ALPHAS))
    for alpha, coef in zip(ALPHAS, path, strict=True):
        single, b = solve(centred, alpha, name)
        # Several alphas of a small matrix share a tridiagonal form.
        assert_allclose(coef, single, rtol=1e-11, atol=1e-14)
        assert_allclose(b, intercept(centred, coef), rtol=1e-14)


@names
def test_the_gram_matrix_is_left_as_it_is(name):
    centred = equations(*problem()).centred()
    gram, moments = centred.gram.copy(), centred.moments.copy()
    list(SOLVERS[name](centred.gram, centred.moments, ALPHAS))
    assert_array_equal(np.triu(centred.gram), np.triu(gram))
    assert_array_equal(centred.moments, moments)


@given(
    name=st.sampled_from(sorted(SOLVERS)),
    n=st.integers(1, 12),
    m=st.integers(1, 12),
    k=st.integers(1, 3),
    alpha=st.floats(1e-3, 1e3),
    factor=st.floats(1.01, 1e3),
    seed=st.integers(0, 99),
)
def test_norm_falls_and_error_grows_with_alpha(name, n, m, k, alpha, factor, seed):
    Z, Y = problem(n, m, k, seed)
    total = equations(Z, Y).centred(False)
    small, large = SOLVERS[name](total.gram, total.moments, [alpha, factor * alpha])
    slack = 1 + 1e-9
    assert np.linalg.norm(large) <= np.linalg.norm(small) * slack
    assert np.linalg.norm(Y - Z @ small) <= np.linalg.norm(Y - Z @ large) * slack
    # The gradient of the objective vanishes.
    gradient = Z.T @ (Z @ small - Y) + alpha * small
    scale = np.linalg.norm(Z, 2) ** 2 + alpha
    assert abs(gradient).max() <= 1e-10 * scale * (1 + np.linalg.norm(Y))


@names
def test_limits_of_alpha(name):
    Z, Y = problem()
    centred = equations(Z, Y).centred()
    tiny, huge = SOLVERS[name](centred.gram, centred.moments, [1e-12, 1e12])
    flat = np.linalg.lstsq(Z - Z.mean(0), Y - Y.mean(0), rcond=None)[0]
    assert_allclose(tiny, flat, rtol=1e-9)
    assert_allclose(huge * 1e12, centred.moments, rtol=1e-9)


def rank_deficient():
    """Nine columns of rank four."""
    rng = np.random.default_rng(3)
    return rng.normal(size=(30, 4)) @ rng.normal(size=(4, 9)), rng.normal(size=(30, 2))


def test_eigh_gives_the_minimum_norm_solution():
    Z, Y = rank_deficient()
    expected = np.linalg.lstsq(Z, Y, rcond=1e-10)[0]
    coef, _ = solve(equations(Z, Y).centred(False), 0.0, "eigh")
    assert_allclose(coef, expected, atol=1e-9)
    nearly, _ = solve(equations(Z, Y).centred(False), 1e-9, "eigh")
    assert_allclose(nearly, expected, atol=1e-7)


def test_more_columns_than_rows_have_a_minimum_norm_solution_too():
    Z, Y = problem(n=5, m=12)
    coef, b = solve(equations(Z, Y).centred(), 0.0, "eigh")
    assert_allclose(Z @ coef + b, Y, atol=1e-9)
    centre = Z - Z.mean(axis=0)
    assert_allclose(coef, np.linalg.pinv(centre, rcond=1e-10) @ Y, atol=1e-9)


@pytest.mark.parametrize("alpha", [0.0, 1e-14])
def test_cholesky_refuses_a_singular_matrix(alpha):
    total = equations(*rank_deficient()).centred()
    message = (
        r"Z\^T Z \+ alpha I is singular to working precision \(alpha="
        rf"{alpha:.3g}, 9 columns\); increase alpha or choose solver='eigh'"
    )
    with pytest.raises(SingularError, match=message):
        solve(total, alpha, "cholesky")
    assert issubclass(SingularError, ValueError)


@given(seed=st.integers(0, 2**32), n=st.integers(1, 20), rank=st.integers(1, 5))
def test_cholesky_refuses_factors_made_of_rounding_errors(seed, n, rank):
    # LAPACK finishes about every other time, with pivots of the size of rounding.
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n, rank)) @ rng.normal(size=(rank, rank + 3))
    total = equations(Z, np.ones((n, 1))).centred(False)
    assert list(SOLVERS["cholesky"](total.gram, total.moments, [0.0])) == [None]


def test_cholesky_goes_on_after_a_singular_alpha():
    total = equations(*rank_deficient()).centred(False)
    path = list(SOLVERS["cholesky"](total.gram, total.moments, [0.0, 0.7]))
    assert path[0] is None
    assert_allclose(path[1], solve(total, 0.7, "eigh")[0], rtol=1e-9)


@pytest.mark.parametrize("columns", [4, 4096])
def test_cholesky_gives_the_same_path_on_several_threads(monkeypatch, columns):
    # With fewer columns than the matrix has, threads share one; both keep the order.
    monkeypatch.setattr("surff.linear.solvers.PARALLEL_COLUMNS", columns)
    centred = equations(*problem()).centred()
    alphas = np.r_[0.0, np.logspace(-3, 3, 6)]
    with threadpool_limits(1, user_api="blas"):
        expected = list(cholesky(centred.gram, centred.moments, alphas))
    with threadpool_limits(2, user_api="blas"):
        found = list(cholesky(centred.gram, centred.moments, alphas))
    assert_array_equal(found, expected)


@pytest.mark.parametrize("way", ["tridiagonal", "rational"])
@pytest.mark.parametrize("weak", [False, True])
def test_cholesky_of_many_alphas_is_that_of_each(monkeypatch, weak, way):
    # The larger alphas are solved together, the smallest and the singular ones alone.
    monkeypatch.setattr("surff.linear.solvers.cheapest_way", lambda *_: way)
    Z, Y = rank_deficient() if weak else problem(60, 9)
    centred = equations(Z, Y).centred()
    alphas = np.r_[0.0, 1e-14, 1e-9, np.logspace(-6, 3, 20)]
    alphas = np.random.default_rng(0).permutation(alphas)  # in any order
    served = solved_together(centred.gram, centred.moments, list(alphas))
    large, tiny = np.flatnonzero(alphas > 1e-5), np.flatnonzero(alphas < 1e-13)
    assert set(large) <= set(served)
    assert not set(tiny) & set(served)
    path = list(cholesky(centred.gram, centred.moments, alphas))
    singles = [next(cholesky(centred.gram, centred.moments, [a])) for a in alphas]
    assert [path[i] is None for i in tiny] == [weak, weak]
    error = 9 * np.finfo(float).eps * np.trace(centred.gram)
    for alpha, coef, single in zip(alphas, path, singles, strict=True):
        assert (coef is None) == (single is None)
        if weak and coef is not None:
            share = error / alpha + (1e-8 if way == "rational" else 0.0)
            assert_allclose(coef, single, atol=share * abs(coef).max())
        elif coef is not None:
            # A Krylov space ends where the relative error is below 1e-8.
            rtol = 1e-10 if way == "tridiagonal" else 1e-6
            assert_allclose(coef, single, rtol=rtol)


@names
def test_features_that_are_all_zero(name):
    total = equations(np.zeros((4, 3)), np.ones((4, 1))).centred()
    coef, b = solve(total, 0.7, name)
    assert_array_equal(coef, 0)
    assert_allclose(b, 1)
    if name == "eigh":
        assert_array_equal(solve(total, 0.0, name)[0], 0)
    else:
        with pytest.raises(SingularError, match="singular to working precision"):
            solve(total, 0.0, name)


@names
def test_constant_columns_have_no_weight(name):
    # A constant column is the intercept's: its centred Gram entry is rounding at most.
    Z, Y = problem()
    Z[:, 2] = 0.7
    coef, b = solve(equations(Z, Y).centred(), 0.1, name)
    assert_allclose(coef[2], 0, atol=1e-10)
    assert_allclose((Z @ coef + b).mean(axis=0), Y.mean(axis=0), rtol=1e-12)


def test_cholesky_is_at_home_with_columns_of_any_scale():
    # D G D + alpha I with alpha = 0 is as well conditioned as G, whatever D is.
    rng = np.random.default_rng(0)
    Z, Y = rng.normal(size=(40, 8)), rng.normal(size=(40, 2))
    scales = 10.0 ** np.linspace(-9, 9, 8)
    gram = np.asfortranarray((Z * scales).T @ (Z * scales))
    (coef,) = cholesky(gram, (Z * scales).T @ Y, [0.0])
    expected = np.linalg.lstsq(Z, Y, rcond=None)[0]
    assert_allclose(coef * scales[:, None], expected, rtol=1e-10)
