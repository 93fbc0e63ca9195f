"""Average gradient outer products against numerical gradients."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from surff.adaptation import average_gradient_outer_product, root_transform
from surff.kernels import fourier_features

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))
W = RNG.normal(size=(6, 3))
COEF = RNG.normal(size=(12, 2))


@pytest.mark.parametrize("weight", [np.ones(40), RNG.integers(0, 4, size=40)])
def test_agop_is_that_of_numerical_gradients(weight):
    Z = fourier_features(X, W)
    gram = np.triu(Z.T @ (weight[:, None] * Z))  # what NormalEquations holds
    M = average_gradient_outer_product(W, COEF, gram, weight.sum())
    gradients = np.empty((3, 40, 2))
    for j in range(3):
        step = 1e-6 * np.eye(3)[j]
        above, below = fourier_features(X + step, W), fourier_features(X - step, W)
        gradients[j] = (above - below) @ COEF / 2e-6
    expected = np.einsum("ink,jnk,n->ij", gradients, gradients, weight / weight.sum())
    assert_allclose(M, expected, rtol=1e-6, atol=1e-8)
    diagonal = average_gradient_outer_product(W, COEF, gram, weight.sum(), True)
    assert_allclose(diagonal, np.diag(M), rtol=1e-12)


@pytest.mark.parametrize("power", [0.5, 1.0, 2.0])
def test_root_transform_has_that_power_of_the_matrix_and_trace_d(power):
    A = RNG.normal(size=(4, 4))
    M = A @ A.T
    T = root_transform(M, power=power)
    square = T @ T
    assert_allclose(np.trace(square), 4.0)
    eigenvalues, Q = np.linalg.eigh(M)
    expected = (Q * eigenvalues**power) @ Q.T
    assert_allclose(square, 4.0 * expected / np.trace(expected), rtol=1e-9)
    scales = root_transform(np.diag(M), power)
    assert_allclose(scales**2, 4 * np.diag(M) ** power / np.sum(np.diag(M) ** power))


@pytest.mark.parametrize("M", [np.zeros((3, 3)), np.full((3, 3), np.nan)])
def test_root_transform_of_nothing_is_the_identity(M):
    assert_array_equal(root_transform(M), np.eye(3))
    assert_array_equal(root_transform(M[0]), np.ones(3))
