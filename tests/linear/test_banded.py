import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import linalg

from surff.linear import band_form, solve_shifted


def problem(m=40, rank=None, k=2, seed=0):
    """A symmetric matrix with rubbish below the diagonal, and its upper triangle's."""
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(rank or 2 * m, m))
    gram = Z.T @ Z
    dirty = np.asfortranarray(np.triu(gram) + np.tril(np.full((m, m), 1e6), -1))
    return gram, dirty, rng.normal(size=(m, k))


def dense(band):
    """The symmetric matrix of a band of lower diagonals."""
    m = band.shape[1]
    lower = sum(np.diag(band[i, : m - i], -i) for i in range(min(len(band), m)))
    return lower + np.tril(lower, -1).T


@given(m=st.integers(1, 40), width=st.integers(1, 12), seed=st.integers(0, 99))
def test_the_band_is_the_rotated_matrix(m, width, seed):
    gram, dirty, _ = problem(m, seed=seed)
    form = band_form(dirty, width)
    Q_t = form.rotated(np.eye(m))
    assert_allclose(Q_t @ Q_t.T, np.eye(m), atol=1e-13)
    scale = linalg.norm(gram)
    assert_allclose(Q_t @ gram @ Q_t.T, dense(form.band), atol=1e-13 * scale)
    assert_allclose(form.rotated_back(Q_t.copy()), np.eye(m), atol=1e-13)


def test_the_matrix_is_left_as_it_is():
    _, dirty, moments = problem()
    before, moments_before = dirty.copy(), moments.copy()
    solve_shifted(band_form(dirty, 4), moments, [0.7])
    assert_array_equal(dirty, before)
    assert_array_equal(moments, moments_before)


@given(
    m=st.integers(1, 40),
    width=st.integers(1, 12),
    k=st.integers(1, 3),
    alpha=st.floats(1e-3, 1e3),
)
def test_solutions_are_those_of_the_dense_systems(m, width, k, alpha):
    gram, dirty, moments = problem(m, k=k)
    alphas = [alpha, 3 * alpha]
    coefs, least = solve_shifted(band_form(dirty, width), moments, alphas)
    for shift, coef, pivot in zip(alphas, coefs, least, strict=True):
        expected = np.linalg.solve(gram + shift * np.eye(m), moments)
        assert_allclose(coef, expected, rtol=1e-6, atol=1e-9 * abs(expected).max())
        # No pivot lies below the smallest eigenvalue.
        assert pivot >= shift * (1 - 1e-6)


@pytest.mark.parametrize("m", [3, 13, 40])
def test_columns_that_are_zero(m):
    # Constant features: their row, column and moments are exactly zero.
    gram, _, moments = problem(m)
    some = np.arange(0, m, 3)
    gram[some] = gram[:, some] = moments[some] = 0.0
    (coef,), _ = solve_shifted(band_form(np.asfortranarray(gram), 5), moments, [0.7])
    expected = np.linalg.solve(gram + 0.7 * np.eye(m), moments)
    assert_allclose(coef, expected, rtol=1e-9, atol=1e-13)


def test_a_diagonal_matrix_in_closed_form():
    diagonal = np.arange(1.0, 21.0)
    form = band_form(np.asfortranarray(np.diag(diagonal)), 3)
    coefs, least = solve_shifted(form, np.ones((20, 1)), [0.7, 4.0])
    assert_allclose(coefs[0][:, 0], 1 / (diagonal + 0.7), rtol=1e-14)
    assert_allclose(coefs[1][:, 0], 1 / (diagonal + 4.0), rtol=1e-14)
    assert_allclose(least, [1.7, 5.0], rtol=1e-14)


def test_indefinite_matrices_have_no_solution_and_leave_the_others_theirs():
    gram = np.asfortranarray(np.diag(np.r_[-1.0, np.ones(19)]))
    coefs, least = solve_shifted(band_form(gram, 3), np.ones((20, 1)), [0.5, 2.0])
    assert coefs[0] is None
    assert least[0] == 0
    assert_allclose(coefs[1][:, 0], 1 / (np.diag(gram) + 2.0), rtol=1e-14)


def test_singular_matrices_show_a_pivot_of_rounding():
    gram, dirty, moments = problem(40, rank=7)
    _, least = solve_shifted(band_form(dirty, 5), moments, [0.0, 0.7])
    assert least[0] <= 1e-12 * np.trace(gram)
    assert least[1] >= 0.69
