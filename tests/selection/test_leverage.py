import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from surff.inspection import surrogate_leverage_function
from surff.kernels import fourier_features, fourier_moments
from surff.linear import SingularError
from surff.selection import (
    effective_dof,
    pair_scores,
    ridge_column_scores,
    ridge_leverage_scores,
    surrogate_column_scores,
    surrogate_leverage_scores,
)


def pool(n=9, d=2, n_candidates=6, k=2, seed=0):
    """Rows, candidates and targets; few enough for the formulas as they are printed."""
    rng = np.random.default_rng(seed)
    X, W = rng.normal(size=(n, d)), rng.normal(size=(n_candidates, d))
    return X, W, rng.normal(size=(n, k)) + 0.3


def complex_columns(X, W):
    """Columns z_w = exp(-i X w), without the map's 1 / sqrt(l)."""
    return np.exp(-1j * X @ W.T)


def quadratic_forms(z, A):
    """z_w^* A z_w of every column, a real number for Hermitian A."""
    forms = np.einsum("ij,ij->j", z.conj(), A @ z)
    assert abs(forms.imag).max() < 1e-9 * abs(forms).max()
    return forms.real


def upper(gram):
    """Only the upper triangle is promised to be read."""
    return np.triu(gram) + np.tril(np.full(gram.shape, 1e9), -1)


@pytest.mark.parametrize("alpha", [1e-3, 0.7, 20.0])
@pytest.mark.parametrize(("n", "n_candidates"), [(9, 6), (30, 4), (3, 11)])
def test_ridge_scores_are_the_complex_quadratic_form(alpha, n, n_candidates):
    X, W, _ = pool(n=n, n_candidates=n_candidates)
    Z = fourier_features(X, W)
    K = Z @ Z.T
    scores = ridge_leverage_scores(upper(Z.T @ Z), alpha)
    inverse = np.linalg.inv(K + alpha * np.eye(n))
    expected = quadratic_forms(complex_columns(X, W), inverse) / n_candidates
    assert_allclose(scores, expected, rtol=1e-9)
    # The plain transpose in place of the conjugate one is another number.
    z = complex_columns(X, W)
    wrong = np.einsum("ij,ij->j", z, inverse @ z).real / n_candidates
    assert abs(wrong - expected).max() > 1e-2 * expected.max()
    # So is the ridge times n.
    assert abs(ridge_leverage_scores(Z.T @ Z, n * alpha) / expected - 1).max() > 1e-2


def test_orthogonal_columns_score_in_closed_form():
    s, alpha = np.array([3.0, 1.0, 0.1, 0.0]), 0.7
    Q, _ = np.linalg.qr(np.random.default_rng(0).normal(size=(8, 4)))
    scores = ridge_column_scores(upper((Q * s).T @ (Q * s)), alpha)
    assert_allclose(scores, s**2 / (s**2 + alpha), atol=1e-14)
    assert_allclose(
        ridge_leverage_scores((Q * s).T @ (Q * s), alpha),
        [9 / 9.7 + 0.01 / 0.71, 1 / 1.7], rtol=1e-12,
    )  # fmt: skip


@given(
    n=st.integers(1, 12),
    m=st.integers(1, 12),
    alpha=st.floats(1e-3, 1e3),
    seed=st.integers(0, 99),
)
def test_column_scores_are_bounded_and_sum_to_the_effective_dof(n, m, alpha, seed):
    Z = np.random.default_rng(seed).normal(size=(n, m))
    scores = ridge_column_scores(upper(Z.T @ Z), alpha)
    assert np.all((scores >= 0) & (scores <= 1))
    assert_allclose(scores.sum(), effective_dof(Z @ Z.T, alpha), rtol=1e-9, atol=1e-12)
    # Both matrices have the same non-zero eigenvalues.
    assert_allclose(effective_dof(Z.T @ Z, alpha), effective_dof(Z @ Z.T, alpha), 1e-9)


@given(alpha=st.floats(1e-3, 1e3), factor=st.floats(1.01, 100), seed=st.integers(0, 99))
def test_ridge_scores_fall_with_alpha(alpha, factor, seed):
    X, W, _ = pool(seed=seed)
    Z = fourier_features(X, W)
    weak = ridge_leverage_scores(Z.T @ Z, alpha)
    strong = ridge_leverage_scores(Z.T @ Z, factor * alpha)
    assert np.all(strong < weak)


def test_ridge_scores_become_uniform_as_alpha_grows():
    X, W, _ = pool()
    Z = fourier_features(X, W)
    # To first order z_w^* z_w / (l alpha) = n / (l alpha), the same for every w.
    alpha = 1e7
    scores = ridge_leverage_scores(Z.T @ Z, alpha)
    assert_allclose(scores, 9 / (6 * alpha), rtol=1e-5)
    assert np.ptp(ridge_leverage_scores(Z.T @ Z, 0.7)) > 1e-2


def test_ridge_scores_become_one_for_each_column_as_alpha_vanishes():
    # More rows than columns: every column is needed.
    X, W, _ = pool(n=40, n_candidates=4)
    Z = fourier_features(X, W)
    assert_allclose(ridge_column_scores(Z.T @ Z, 1e-9), 1.0, rtol=1e-7)
    assert_allclose(ridge_leverage_scores(Z.T @ Z, 1e-9), 2.0, rtol=1e-7)


def test_ridge_scores_leave_the_gram_matrix_alone():
    X, W, _ = pool()
    Z = fourier_features(X, W)
    gram = np.asfortranarray(Z.T @ Z)
    gram.flags.writeable = False
    before = gram.copy()
    ridge_leverage_scores(gram, 0.7)
    assert_array_equal(gram, before)


def test_a_singular_pool_says_what_to_do():
    # An exact zero eigenvalue that alpha does not lift: alpha is far below rounding.
    gram = np.array([[1e20, 1e20], [1e20, 1e20]])
    message = r"Z\^T Z \+ alpha I is singular .*\(alpha=1e-05\); increase alpha"
    with pytest.raises(SingularError, match=message):
        ridge_column_scores(gram, 1e-5)


@pytest.mark.parametrize("alpha", [1e-3, 0.7, 1e3])
def test_effective_dof_is_the_trace(alpha):
    A = np.random.default_rng(0).normal(size=(7, 4))
    K = A @ A.T  # rank 4 of 7
    expected = np.trace(K @ np.linalg.inv(K + alpha * np.eye(7)))
    assert effective_dof(upper(K), alpha) == pytest.approx(expected, rel=1e-10)
    assert 0 < effective_dof(K, alpha) < 4


def test_effective_dof_in_closed_form():
    n, alpha = 8, 0.7
    assert effective_dof(np.eye(n), alpha) == pytest.approx(n / 1.7)
    # All rows alike: one eigenvalue n.
    assert effective_dof(np.ones((n, n)), alpha) == pytest.approx(n / (n + alpha))
    assert effective_dof(np.zeros((n, n)), alpha) == 0.0


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("ridge_term", [False, True])
def test_surrogate_scores_are_the_complex_quadratic_form(k, ridge_term):
    X, W, Y = pool(k=k)
    n = len(X)
    scores = surrogate_leverage_scores(fourier_moments(X, W, Y), n, ridge_term)
    A = Y @ Y.T + (n * np.eye(n) if ridge_term else 0)
    z = complex_columns(X, W)
    assert_allclose(scores, quadratic_forms(z, A), rtol=1e-10)
    wrong = np.einsum("ij,ij->j", z, A @ z).real
    assert abs(wrong - scores).max() > 1e-2 * scores.max()


def test_surrogate_scores_agree_with_the_leverage_function():
    X, W, Y = pool()
    n, alpha = len(X), 0.7
    scores = surrogate_leverage_scores(fourier_moments(X, W, Y), n, ridge_term=True)
    function = surrogate_leverage_function(X, W, Y, alpha)
    assert_allclose(scores / (n * alpha), function, rtol=1e-10)


@given(seed=st.integers(0, 99), k=st.integers(1, 3))
def test_the_ridge_term_is_a_mixture_with_the_uniform_law(seed, k):
    X, W, Y = pool(k=k, seed=seed)
    n, n_candidates = len(X), len(W)
    moments = fourier_moments(X, W, Y)
    plain = surrogate_leverage_scores(moments, n)
    full = surrogate_leverage_scores(moments, n, ridge_term=True)
    Z = fourier_features(X, W)
    rho = n**2 / (n**2 + np.sum((Z.T @ Y) ** 2))
    mixture = (1 - rho) * plain / plain.sum() + rho / n_candidates
    assert_allclose(full / full.sum(), mixture, rtol=1e-10)


@given(seed=st.integers(0, 99))
def test_with_labels_at_least_half_of_the_mixture_is_uniform(seed):
    X, W, Y = pool(k=1, seed=seed)
    Y, n = np.sign(Y), len(X)
    K = fourier_features(X, W) @ fourier_features(X, W).T
    assert n**2 / (n**2 + (Y.T @ K @ Y).item()) >= 0.5


@given(seed=st.integers(0, 99), alpha=st.floats(1e-6, 1e6), k=st.integers(1, 3))
def test_the_surrogate_bounds_the_ridge_leverage(seed, alpha, k):
    # (Y Y^T + n I) / (n alpha) >= I / alpha >= (K + alpha I)^-1 for every alpha > 0,
    # since Y Y^T and K are positive semi-definite.
    X, W, Y = pool(k=k, seed=seed)
    n, n_candidates = len(X), len(W)
    Z = fourier_features(X, W)
    leverage = n_candidates * ridge_leverage_scores(Z.T @ Z, alpha)
    scores = surrogate_leverage_scores(fourier_moments(X, W, Y), n, ridge_term=True)
    assert np.all(scores / (n * alpha) >= leverage * (1 - 1e-9))


def test_without_the_ridge_term_there_is_no_bound():
    X, W, _ = pool()
    z = complex_columns(X, W)
    # A target orthogonal to the first candidate's two columns scores it zero.
    basis = np.linalg.svd(np.column_stack([z[:, 0].real, z[:, 0].imag]))[0]
    Y = basis[:, 2:3]
    Z = fourier_features(X, W)
    surrogate = surrogate_leverage_scores(fourier_moments(X, W, Y), len(X)) / 9 / 0.7
    assert surrogate[0] < 1e-20
    assert (len(W) * ridge_leverage_scores(Z.T @ Z, 0.7))[0] > 0.1


def test_the_scale_of_the_target_cancels_without_the_ridge_term():
    X, W, Y = pool()
    first = surrogate_leverage_scores(fourier_moments(X, W, Y), 9)
    second = surrogate_leverage_scores(fourier_moments(X, W, 3.0 * Y), 9)
    assert_allclose(second, 9 * first, rtol=1e-12)


def test_centring_the_target_changes_the_scores():
    X, W, Y = pool(k=1)
    first = surrogate_leverage_scores(fourier_moments(X, W, Y), 9)
    second = surrogate_leverage_scores(fourier_moments(X, W, Y - Y.mean()), 9)
    assert abs(first / first.sum() - second / second.sum()).max() > 0.01


def test_translating_the_rows_changes_no_score():
    # A shift of X is a phase of each z_w: nothing that the kernel sees.
    X, W, Y = pool()
    Z, moved = fourier_features(X, W), fourier_features(X + 0.7, W)
    assert_allclose(
        ridge_leverage_scores(moved.T @ moved, 0.7),
        ridge_leverage_scores(Z.T @ Z, 0.7), rtol=1e-10,
    )  # fmt: skip
    assert_allclose(
        surrogate_leverage_scores(moved.T @ Y, 9),
        surrogate_leverage_scores(Z.T @ Y, 9), rtol=1e-10,
    )  # fmt: skip
    # Single columns do change: a frequency is its pair.
    assert abs(
        surrogate_column_scores(moved.T @ Y) - surrogate_column_scores(Z.T @ Y)
    ).max() > 1e-3  # fmt: skip


def test_column_scores_add_up_to_those_of_pairs():
    assert_array_equal(pair_scores(np.arange(6.0)), [3, 5, 7])
    X, W, Y = pool()
    moments = fourier_moments(X, W, Y)
    columns = surrogate_column_scores(moments)
    assert_allclose(columns, (moments**2).sum(axis=1))
    assert_allclose(
        len(W) * pair_scores(columns), surrogate_leverage_scores(moments, 9), rtol=1e-12
    )


def test_the_score_of_a_pure_tone_in_closed_form():
    # y = sqrt(2) cos(w x) on a grid of whole periods: |z_w^* y|^2 = n^2 / 2, and the
    # other frequencies of the grid are orthogonal.
    n = 32
    X = 2 * math.pi * np.arange(n)[:, None] / n
    W = np.array([[1.0], [3.0], [7.0]])
    moments = fourier_moments(X, W, math.sqrt(2) * np.cos(3 * X))
    scores = surrogate_leverage_scores(moments, n)
    assert_allclose(scores, [0, n**2 / 2, 0], atol=1e-10)
