import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from surff.inspection import NORMS, KernelErrors, relative_error, spectral_approximation


def problem(n=12, m=7, seed=0):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(n, n))
    return A @ A.T, rng.normal(size=(n, m))


@pytest.mark.parametrize(("norm", "order"), [("spectral", 2), ("frobenius", "fro")])
def test_relative_errors_are_those_of_numpy(norm, order):
    K, Z = problem()
    expected = np.linalg.norm(K - Z @ Z.T, order) / np.linalg.norm(K, order)
    assert relative_error(K, Z, norm) == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("norm", sorted(NORMS))
def test_errors_in_closed_form(norm):
    K = np.diag([4.0, 3.0, 0.0])
    Z = np.diag([2.0, 1.0, 0.0])  # Z Z^T = diag(4, 1, 0)
    expected = {"spectral": 2 / 4, "frobenius": 2 / 5}[norm]
    assert relative_error(K, Z, norm) == pytest.approx(expected)
    assert relative_error(K, np.sqrt(K), norm) == pytest.approx(0, abs=1e-15)
    assert relative_error(K, np.zeros((3, 1)), norm) == pytest.approx(1.0)


def test_the_spectral_norm_sees_both_ends_of_the_spectrum():
    assert NORMS["spectral"](np.diag([-3.0, 1.0])) == pytest.approx(3.0)
    assert NORMS["spectral"](np.diag([3.0, -1.0])) == pytest.approx(3.0)
    assert NORMS["spectral"](np.array([[-0.7]])) == pytest.approx(0.7)


def test_unknown_norms_list_the_known_ones():
    with pytest.raises(
        ValueError, match=r"norm must be one of .*'spectral'.*got 'max'"
    ):
        relative_error(np.eye(2), np.eye(2), "max")


@given(seed=st.integers(0, 99), alpha=st.floats(1e-2, 1e2), m=st.integers(1, 20))
def test_spectral_approximation_is_the_smallest_that_holds(seed, alpha, m):
    K, Z = problem(m=m, seed=seed)
    delta = spectral_approximation(K, Z, alpha)
    B, approximate = K + alpha * np.eye(12), Z @ Z.T + alpha * np.eye(12)

    def holds(delta):
        low = np.linalg.eigvalsh(approximate - (1 - delta) * B)[0]
        high = np.linalg.eigvalsh((1 + delta) * B - approximate)[0]
        return min(low, high) >= 0

    slack = 1e-6 * (1 + delta)
    assert holds(delta + slack)
    assert not holds(delta - slack)


def test_spectral_approximation_in_closed_form():
    # Eigenvalues 5/3 and 1/2 of the pencil: |5/3 - 1| = 2/3, |1/2 - 1| = 1/2.
    K, Z = np.diag([2.0, 1.0]), np.diag([2.0, 0.0])
    assert spectral_approximation(K, Z, 1.0) == pytest.approx(2 / 3)
    assert spectral_approximation(K, np.sqrt(K), 0.7) == pytest.approx(0, abs=1e-15)


def test_all_errors_at_once_are_those_one_by_one():
    K, Z = problem()
    errors = KernelErrors(K, alpha=0.7)(Z)
    assert errors.keys() == {*NORMS, "delta"}
    for norm in NORMS:
        assert errors[norm] == pytest.approx(relative_error(K, Z, norm), rel=1e-12)
    assert errors["delta"] == pytest.approx(spectral_approximation(K, Z, 0.7))
    # Of a map without error, and of none.
    assert KernelErrors(Z @ Z.T, 0.7)(Z) == dict.fromkeys(errors, pytest.approx(0.0))
    none = KernelErrors(np.eye(3), 0.5)(np.zeros((3, 1)))
    assert none == pytest.approx({"spectral": 1, "frobenius": 1, "delta": 1 / 1.5})
