"""Decaying spectra against closed forms of their degrees of freedom."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import digamma

from surff.inspection import DECAYS, decaying_spectrum, spectral_dof
from surff.selection import effective_dof


@pytest.mark.parametrize("decay", DECAYS)
def test_spectra_descend_and_sum_to_one(decay):
    eigenvalues = decaying_spectrum(decay, 500, t=1.5)
    assert eigenvalues.shape == (500,)
    assert np.all(np.diff(eigenvalues) <= 0.0)
    assert eigenvalues.sum() == pytest.approx(1.0, rel=1e-12)


def test_dof_is_that_of_the_kernel_matrix():
    n, lam = 40, 0.07
    eigenvalues = decaying_spectrum("polynomial", n)
    Q, _ = np.linalg.qr(np.random.default_rng(0).normal(size=(n, n)))
    K = Q @ np.diag(n * eigenvalues) @ Q.T
    assert spectral_dof(eigenvalues, lam) == pytest.approx(
        effective_dof(K, n * lam), rel=1e-9
    )


def test_harmonic_dof_in_closed_form():
    n, lam = 2_000, 0.03
    c = lam * np.sum(1.0 / np.arange(1, n + 1))
    # sum_i 1 / (1 + c i) = (psi(n + 1 + 1/c) - psi(1 + 1/c)) / c
    expected = (digamma(n + 1 + 1 / c) - digamma(1 + 1 / c)) / c
    assert_allclose(
        spectral_dof(decaying_spectrum("harmonic", n), lam), expected, rtol=1e-10
    )


def test_polynomial_dof_in_closed_form():
    n, lam = 1_000_000, 0.02
    c = lam * math.pi**2 / 6.0
    # sum over all i of 1 / (1 + c i^2), whose tail beyond n is below 1 / (c n)
    a = math.pi / math.sqrt(c)
    expected = (a / math.tanh(a) - 1.0) / 2.0
    found = spectral_dof(decaying_spectrum("polynomial", n), lam)
    assert found == pytest.approx(expected, abs=2.0 / (c * n))


def test_exponential_dof_counts_eigenvalues_above_lambda():
    for n in (10**3, 10**5, 10**7):
        lam = n**-0.5
        dof = spectral_dof(decaying_spectrum("exponential", min(n, 10**4)), lam)
        # mu_1 = 1 - 1/e; the sum is an integral up to a half.
        assert abs(dof - math.log((math.e - 1.0) / lam)) < 0.55


@pytest.mark.parametrize("decay", DECAYS)
def test_orders_are_reached_up_to_a_constant(decay):
    sizes = np.array([10**4, 10**5, 10**6])
    dof = [spectral_dof(decaying_spectrum(decay, n, 1.0), n**-0.5) for n in sizes]
    ratio = np.array(dof) / DECAYS[decay].dof_order(sizes.astype(float), 1.0)
    assert np.ptp(ratio) < 0.06 * ratio.mean()
    assert 0.4 < ratio.min() < ratio.max() < 1.3


def test_wrong_arguments_are_named():
    with pytest.raises(ValueError, match=r"decay must be one of exponential, .*'slow'"):
        decaying_spectrum("slow", 10)
    with pytest.raises(ValueError, match=r"t must be at least 1, got 0.5"):
        decaying_spectrum("polynomial", 10, t=0.5)
