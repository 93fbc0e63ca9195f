import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.optimize import nnls

from surff.selection import (
    COMPRESSORS,
    all_pairs_gram,
    frank_wolfe,
    giga,
    sampled_pairs_gram,
)

#: Probability with which correct code may fail a statistical test.
LEVEL = 1e-9

methods = pytest.mark.parametrize("method", sorted(COMPRESSORS))


def problem(n=9, d=2, size=7, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)), rng.normal(size=(size, d))


def cosines(X, W, i, j):
    """Values of each candidate on pairs of rows, shape (n_pairs, n_candidates)."""
    return np.cos((X[i] - X[j]) @ W.T)


def every_pair(n):
    return np.divmod(np.arange(n * n), n)


def error(gram, coefficients):
    """Squared distance from the pool's kernel."""
    difference = coefficients - 1 / len(gram)
    return difference @ gram @ difference


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix, sparse.csr_array])
def test_all_pairs_are_those_of_brute_force(form):
    X, W = problem()
    C = cosines(X, W, *every_pair(9))
    assert_allclose(all_pairs_gram(W, form(X)), C.T @ C / 81, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix, sparse.csr_array])
@pytest.mark.parametrize("weight", [None, np.array([0, 1, 3, 2, 0, 1, 1, 4, 0.0])])
def test_sampled_pairs_are_those_of_brute_force(form, weight):
    X, W = problem()
    gram = sampled_pairs_gram(W, form(X), 50, np.random.default_rng(0), weight)
    rows = (
        np.arange(9) if weight is None else np.repeat(np.arange(9), weight.astype(int))
    )
    ticks = np.random.default_rng(0).uniform(0, len(rows), size=(2, 50))
    C = cosines(X, W, *rows[ticks.astype(int)])
    assert_allclose(gram, C.T @ C / 50, rtol=1e-12, atol=1e-14)


def test_sampled_pairs_estimate_all():
    X, W = problem()
    weight = np.array([0, 1, 3, 2, 0, 1, 1, 4, 2.0])
    n_pairs = 40_000
    gram = sampled_pairs_gram(W, X, n_pairs, np.random.default_rng(0), weight)
    # Hoeffding for products in [-1, 1], union over entries.
    radius = math.sqrt(2 * math.log(2 * gram.size / LEVEL) / n_pairs)
    assert abs(gram - all_pairs_gram(W, X, weight)).max() < radius
    assert abs(gram - all_pairs_gram(W, X)).max() > radius


def test_weights_repeat_rows():
    X, W = problem()
    weight = np.array([0, 1, 3, 2, 0, 1, 1, 4, 2])
    repeated = np.repeat(X, weight, axis=0)
    weighted = all_pairs_gram(W, X, weight.astype(float))
    assert_allclose(weighted, all_pairs_gram(W, repeated), rtol=1e-12, atol=1e-14)
    one, other = np.random.default_rng(3), np.random.default_rng(3)
    weighted = sampled_pairs_gram(W, X, 200, one, weight.astype(float))
    expected = sampled_pairs_gram(W, repeated, 200, other)
    assert_allclose(weighted, expected, rtol=1e-12, atol=1e-14)


def test_float32_rows():
    X, W = problem(n=300)
    X, W = X.astype(np.float32), W.astype(np.float32)
    exact = all_pairs_gram(W.astype(float), X.astype(float))
    assert all_pairs_gram(W, X).dtype == np.float64
    assert_allclose(all_pairs_gram(W, X), exact, atol=1e-5)
    sampled = sampled_pairs_gram(W, X, 500, np.random.default_rng(0))
    assert sampled.dtype == np.float64
    C = sampled_pairs_gram(
        W.astype(float), X.astype(float), 500, np.random.default_rng(0)
    )
    assert_allclose(sampled, C, atol=1e-5)


@methods
@pytest.mark.parametrize("n_kept", [1, 2, 5, 20, 40])
def test_few_candidates_with_weights_above_zero(method, n_kept):
    X, W = problem(n=60, d=3, size=40)
    gram = all_pairs_gram(W, X)
    before = gram.copy()
    coefficients = COMPRESSORS[method](gram, n_kept)
    assert_array_equal(gram, before)
    assert coefficients.min() >= 0
    assert 1 <= np.count_nonzero(coefficients) <= n_kept


@methods
def test_better_than_independent_candidates_and_near_the_best_weights(method):
    X, W = problem(n=200, d=3, size=120)
    gram = all_pairs_gram(W, X)
    coefficients = COMPRESSORS[method](gram, 20)
    rng = np.random.default_rng(0)
    for _ in range(50):
        chance = np.zeros(120)
        chance[rng.choice(120, 20, replace=False)] = 1 / 20
        assert error(gram, coefficients) < 0.5 * error(gram, chance)
    # Steps that stay among those kept approach their non-negative least squares fit.
    kept = np.flatnonzero(coefficients)
    root = np.linalg.cholesky(gram + 1e-13 * np.eye(120)).T
    _, residual = nnls(root[:, kept], root.mean(axis=1))
    assert error(gram, coefficients) < 1.5 * residual**2


@methods
def test_more_candidates_come_closer(method):
    X, W = problem(n=200, d=3, size=100)
    gram = all_pairs_gram(W, X)
    errors = [error(gram, COMPRESSORS[method](gram, m)) for m in (2, 10, 30, 60, 100)]
    assert np.all(np.diff(errors) < 0)
    assert errors[-1] < 1e-3 * errors[0]


def test_frank_wolfe_stays_in_its_polytope():
    X, W = problem(n=60, d=3, size=40)
    gram = all_pairs_gram(W, X)
    norms = np.sqrt(np.diag(gram))
    for n_kept in (1, 3, 15):
        coefficients = frank_wolfe(gram, n_kept)
        assert coefficients @ norms == pytest.approx(norms.mean(), rel=1e-10)


@pytest.mark.parametrize("n_kept", [1, 3, 15])
def test_giga_has_the_best_length(n_kept):
    X, W = problem(n=60, d=3, size=40)
    gram = all_pairs_gram(W, X)
    coefficients = giga(gram, n_kept)
    # The error is orthogonal to the approximation.
    assert coefficients @ gram @ (coefficients - 1 / 40) == pytest.approx(0, abs=1e-12)


def stored_giga(vectors, n_steps):
    """GIGA of its paper, with all vectors in memory and no end of its own."""
    norms = np.linalg.norm(vectors, axis=1)
    unit, target = vectors / norms[:, None], vectors.mean(axis=0)
    aim = target / np.linalg.norm(target)
    weights, y = np.zeros(len(vectors)), np.zeros(vectors.shape[1])
    for t in range(n_steps):
        if t == 0:
            weights[(unit @ aim).argmax()] = 1
        else:
            tangent = unit - np.outer(unit @ y, y)
            length = np.linalg.norm(tangent, axis=1)[:, None]
            tangent /= np.where(length > 1e-7, length, np.inf)
            f = (tangent @ (aim - (aim @ y) * y)).argmax()
            a, b, c = aim @ unit[f], aim @ y, unit[f] @ y
            gamma = (a - b * c) / ((a - b * c) + (b - a * c))
            weights *= 1 - gamma
            weights[f] += gamma
        y = weights @ unit
        weights /= np.linalg.norm(y)
        y /= np.linalg.norm(y)
    return np.linalg.norm(target) * (aim @ y) * weights / norms


def stored_frank_wolfe(vectors, n_steps):
    """Frank-Wolfe of the paper, with all vectors in memory."""
    norms, target = np.linalg.norm(vectors, axis=1), vectors.mean(axis=0)
    vertices = vectors / norms[:, None] * norms.mean()
    mixture = np.zeros(len(vectors))
    mixture[(vertices @ target).argmax()] = 1
    for _ in range(n_steps - 1):
        rest = target - mixture @ vertices
        f = (vertices @ rest).argmax()
        direction = vertices[f] - mixture @ vertices
        gamma = np.clip(direction @ rest / (direction @ direction), 0, 1)
        mixture *= 1 - gamma
        mixture[f] += gamma
    return mixture * norms.mean() / norms


@pytest.mark.parametrize(
    ("method", "stored"), [("giga", stored_giga), ("frank-wolfe", stored_frank_wolfe)]
)
def test_the_algorithms_are_those_on_stored_vectors(method, stored):
    X, W = problem(n=30, d=3, size=25)
    vectors = cosines(X, W, *every_pair(30)).T / 30
    for n_steps in (1, 2, 6, 15):
        ours = COMPRESSORS[method](all_pairs_gram(W, X), 25, n_steps)
        assert_allclose(ours, stored(vectors, n_steps), rtol=1e-6, atol=1e-9)


@methods
def test_equal_candidates_are_one(method):
    gram = np.full((6, 6), 0.7)
    coefficients = COMPRESSORS[method](gram, 4)
    assert np.count_nonzero(coefficients) == 1
    assert coefficients.sum() == pytest.approx(1, rel=1e-12)


@methods
def test_a_candidate_that_vanishes_on_the_pairs_is_left_out(method):
    gram = np.diag([1.0, 0.0, 1.0])
    coefficients = COMPRESSORS[method](gram, 3)
    assert coefficients[1] == 0
    assert np.isfinite(coefficients).all()
