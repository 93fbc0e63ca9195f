import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import linalg

from surff.linear import band_form


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
    band_form(dirty, 4).rotated(moments)
    assert_array_equal(dirty, before)
    assert_array_equal(moments, moments_before)


@pytest.mark.parametrize("m", [3, 13, 40])
def test_columns_that_are_zero(m):
    # Constant features: their row and column are exactly zero.
    gram, _, _ = problem(m)
    some = np.arange(0, m, 3)
    gram[some] = gram[:, some] = 0.0
    form = band_form(np.asfortranarray(gram), 5)
    Q_t = form.rotated(np.eye(m))
    assert_allclose(Q_t @ Q_t.T, np.eye(m), atol=1e-13)
    scale = linalg.norm(gram)
    assert_allclose(Q_t @ gram @ Q_t.T, dense(form.band), atol=1e-13 * scale)


def test_a_diagonal_matrix_is_its_band():
    diagonal = np.arange(1.0, 21.0)
    form = band_form(np.asfortranarray(np.diag(diagonal)), 3)
    assert_array_equal(form.band[0], diagonal)
    assert_array_equal(form.band[1:], 0)
