import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from surff.draws import Orthogonal, haar_matrices
from surff.kernels import Gaussian, Laplace, Matern

LEVEL = 1e-9


@pytest.mark.parametrize("d", [1, 3, 10])
def test_blocks_are_orthogonal_and_norms_chi(d):
    n = 3000 * d + d // 2
    W = Orthogonal().draw(Gaussian(), n, d, np.random.default_rng(0)) / math.sqrt(2)
    assert W.shape == (n, d)
    norms = np.linalg.norm(W, axis=1)
    assert stats.kstest(norms, stats.chi(d).cdf).pvalue > LEVEL
    V = (W / norms[:, None])[: n // d * d].reshape(-1, d, d)
    gram = V @ V.transpose(0, 2, 1)
    assert_allclose(gram, np.broadcast_to(np.eye(d), gram.shape), atol=1e-13)
    # Norms are independent of the directions and within a block.
    assert stats.kstest(W[:, 0], stats.norm.cdf).pvalue > LEVEL


def haar_error(Q):
    """How far means of entries are from the Haar measure's, in standard errors."""
    n, d, _ = Q.shape
    first = Q.mean(axis=0) * math.sqrt(n * d)
    squares = (Q**2).mean(axis=0) * d - 1
    second = squares * math.sqrt(n * (d + 2) / max(2 * d - 2, 1))
    return max(abs(first).max(), abs(second).max() if d > 1 else 0)


@pytest.mark.parametrize("d", [1, 2, 5])
def test_haar_matrices_are_haar_and_plain_qr_is_not(d):
    """Fast-transformers 87: QR without the signs of R is not, and is told apart."""
    n = 20000
    # Normal tails over 2 d^2 means: correct code fails with p < 1e-9.
    limit = stats.norm.isf(1e-9 / (4 * d * d))
    assert haar_error(haar_matrices(np.random.default_rng(0), n, d)) < limit
    plain = np.linalg.qr(np.random.default_rng(0).standard_normal((n, d, d)))[0]
    assert haar_error(plain) > limit


def test_trace_moments_are_those_of_the_group():
    # E tr Q = 0, E (tr Q)^2 = 1, E (tr Q)^4 = 3 on O(d) for d >= 4.
    trace = np.einsum("bii->b", haar_matrices(np.random.default_rng(1), 40000, 6))
    for power, moment, square in ((1, 0, 1), (2, 1, 3), (4, 3, 105)):
        error = abs(np.mean(trace**power) - moment)
        assert error < 6.5 * math.sqrt((square - moment**2) / 40000)


def test_less_variance_than_independent_rows():
    x = np.full(5, 0.4)
    variances = []
    for draw in (Orthogonal().draw, lambda m, n, d, rng: m.sample(rng, n, d)):
        estimates = [
            np.cos(draw(Gaussian(), 5, 5, np.random.default_rng(seed)) @ x).mean()
            for seed in range(800)
        ]
        variances.append(np.var(estimates))
    assert variances[0] < 0.6 * variances[1]


def test_norms_of_other_isotropic_measures():
    W = Orthogonal().draw(Matern(1.5), 6000, 3, np.random.default_rng(0))
    law = stats.betaprime(1.5, 1.5, scale=6)
    assert stats.kstest(np.sum(W**2, axis=1), law.cdf).pvalue > LEVEL


def test_products_have_no_radius():
    with pytest.raises(TypeError, match="Laplace is not isotropic"):
        Orthogonal().draw(Laplace(), 4, 2, np.random.default_rng(0))
