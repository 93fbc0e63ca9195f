import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from surff.backend import potrf, symm
from surff.linear import cheapest_way, rational_path, tridiagonal_path

WAYS = {"tridiagonal": tridiagonal_path, "rational": rational_path}
ways = pytest.mark.parametrize("way", sorted(WAYS))


def problem(m=40, n=80, k=2, seed=0, spread=0.0):
    """A Gram matrix, its upper triangle over rubbish, and moments."""
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n, m)) * 10.0 ** (-spread * np.arange(m) / m)
    gram = Z.T @ Z
    dirty = np.asfortranarray(np.triu(gram) + np.tril(np.full((m, m), 1e6), -1))
    return gram, dirty, Z.T @ rng.normal(size=(n, k))


def exact(gram, moments, alphas):
    eye = np.eye(len(gram))
    found = [np.linalg.solve(gram + alpha * eye, moments) for alpha in alphas]
    return np.stack(found, axis=1)


def energy_errors(gram, moments, alphas, coefs):
    """Relative errors in the norm of G + alpha I, of every alpha and target."""
    expected, errors = exact(gram, moments, alphas), []
    for i, alpha in enumerate(alphas):
        shifted, off = gram + alpha * np.eye(len(gram)), coefs[:, i] - expected[:, i]
        square = np.einsum("mk,mk->k", off, shifted @ off)
        total = np.einsum("mk,mk->k", expected[:, i], moments)
        errors.append(np.sqrt(square / total))
    return np.array(errors)


@ways
@given(
    m=st.integers(1, 40),
    n=st.integers(1, 80),
    k=st.integers(1, 3),
    low=st.floats(-3, 3),
    seed=st.integers(0, 99),
)
def test_solutions_are_those_of_the_dense_systems(way, m, n, k, low, seed):
    gram, dirty, moments = problem(m, n, k, seed)
    alphas = 10.0 ** np.linspace(low, low + 3, 5)
    coefs, _ = WAYS[way](dirty, moments, alphas)
    assert coefs.shape == (m, 5, k)
    # The smallest alpha is 1e-8 of the largest eigenvalue: 1e-8 of rounding errors.
    assert energy_errors(gram, moments, alphas, coefs).max() < 2e-8


@ways
def test_the_matrix_is_left_as_it_is(way):
    _, dirty, moments = problem()
    before, moments_before = dirty.copy(), moments.copy()
    WAYS[way](dirty, moments, [0.7, 4.0])
    assert_array_equal(dirty, before)
    assert_array_equal(moments, moments_before)


@ways
@pytest.mark.parametrize("m", [3, 13, 40])
def test_columns_that_are_zero(way, m):
    # Constant features: their row, column and moments are exactly zero.
    gram, _, moments = problem(m)
    some = np.arange(0, m, 3)
    gram[some] = gram[:, some] = moments[some] = 0.0
    coefs, _ = WAYS[way](np.asfortranarray(gram), moments, [0.7])
    expected = exact(gram, moments, [0.7])
    assert_allclose(coefs, expected, rtol=1e-6, atol=1e-12)


@ways
def test_a_diagonal_matrix_in_closed_form(way):
    diagonal = np.arange(1.0, 21.0)
    gram = np.asfortranarray(np.diag(diagonal))
    coefs, _ = WAYS[way](gram, np.ones((20, 1)), [0.7, 4.0])
    assert_allclose(coefs[:, 0, 0], 1 / (diagonal + 0.7), rtol=1e-8)
    assert_allclose(coefs[:, 1, 0], 1 / (diagonal + 4.0), rtol=1e-8)


@ways
def test_moments_of_zero_have_no_coefficients(way):
    _, dirty, moments = problem(k=3)
    moments[:, 1] = 0.0
    coefs, _ = WAYS[way](dirty, moments, [0.7, 4.0])
    assert_array_equal(coefs[:, :, 1], 0)
    assert abs(coefs[:, :, [0, 2]]).min() > 0
    assert_array_equal(WAYS[way](dirty, 0 * moments, [0.7, 4.0])[0], 0)


def test_indefinite_matrices_have_no_solution_and_leave_the_others_theirs():
    gram = np.asfortranarray(np.diag(np.r_[-1.0, np.ones(19)]))
    coefs, least = tridiagonal_path(gram, np.ones((20, 1)), [0.5, 2.0])
    assert np.isnan(coefs[:, 0]).all()
    assert least[0] == 0
    assert_allclose(coefs[:, 1, 0], 1 / (np.diag(gram) + 2.0), rtol=1e-14)


def test_singular_matrices_show_a_pivot_of_rounding():
    gram, dirty, moments = problem(40, 7)
    _, least = tridiagonal_path(dirty, moments, [0.0, 0.7])
    assert least[0] <= 1e-12 * np.trace(gram)
    assert least[1] >= 0.69


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("spread", [0.0, 2.0, 4.0])
@pytest.mark.parametrize("tol", [1e-3, 1e-8])
def test_the_bound_of_the_error_is_one(k, spread, tol):
    # Twelve decades of eigenvalues at most, ten of alphas: several poles.
    gram, dirty, moments = problem(150, 400, k, spread=spread)
    alphas = np.trace(gram) / 150 * 10.0 ** np.linspace(-8, 2, 21)
    coefs, errors = rational_path(dirty, moments, alphas, tol)
    true = energy_errors(gram, moments, alphas, coefs).max(axis=1)
    # Rounding errors of a matrix whose largest eigenvalue is 1e10 alphas.
    assert errors.max() <= max(tol, 1e-7)
    # Rounding of the dense solution is left below the bound.
    assert (true <= errors + 1e-9).all()


def test_more_digits_take_more_directions(monkeypatch):
    sizes = []

    def counted(gram, columns):
        sizes[-1] += columns.shape[1]
        return symm(gram, columns)

    monkeypatch.setattr("surff.linear.shifted.symm", counted)
    gram, dirty, moments = problem(150, 400, 1, spread=2.0)
    alphas = np.trace(gram) / 150 * 10.0 ** np.linspace(-8, 2, 21)
    for tol in (1e-2, 1e-4, 1e-8):
        sizes.append(0)
        rational_path(dirty, moments, alphas, tol)
    assert sizes[0] < sizes[1] < sizes[2] < 100


def test_what_cannot_be_reached_is_told(monkeypatch):
    monkeypatch.setattr("surff.linear.shifted.MOST_DIRECTIONS", 6)
    gram, dirty, moments = problem(150, 400, 1, spread=2.0)
    alphas = np.trace(gram) / 150 * 10.0 ** np.linspace(-8, 2, 21)
    coefs, errors = rational_path(dirty, moments, alphas)
    assert errors.max() > 1e-8
    true = energy_errors(gram, moments, alphas, coefs).max(axis=1)
    assert (true <= errors + 1e-9).all()


def test_the_search_ends_at_rounding():
    # No digits below 1e-16 are to be had: the search gives up, and says so.
    _, dirty, moments = problem(150, 400, 1)
    _, errors = rational_path(dirty, moments, [0.7, 7.0], tol=1e-30)
    assert 0 < errors.max() < 1e-11


def test_poles_are_added_where_the_first_does_not_do(monkeypatch):
    shifts = []

    def counted(matrix):
        shifts[-1].append(matrix[0, 0] - gram[0, 0])
        return potrf(matrix)

    monkeypatch.setattr("surff.linear.shifted.potrf", counted)
    for spread in (0.0, 4.0):
        shifts.append([])
        gram, dirty, moments = problem(150, 400, 1, spread=spread)
        alphas = np.trace(gram) / 150 * 10.0 ** np.linspace(-8, 2, 21)
        rational_path(dirty, moments, alphas)
        # In the middle of the alphas below the mean eigenvalue, at first.
        assert_allclose(shifts[-1][0], np.trace(gram) / 150 * 1e-4, rtol=1e-6)
    assert len(shifts[0]) == 1
    assert 2 <= len(shifts[1]) <= 4


def test_the_cheapest_way():
    assert cheapest_way(64, 1, 1) is None
    assert cheapest_way(64, 1, 21) == "tridiagonal"
    assert cheapest_way(512, 1, 3) is None  # three factorisations cost less
    assert cheapest_way(512, 1, 21) == "tridiagonal"
    assert cheapest_way(4096, 1, 21) == "rational"
    assert cheapest_way(1728, 5, 21) == "tridiagonal"
    assert cheapest_way(8192, 40, 10) is None
