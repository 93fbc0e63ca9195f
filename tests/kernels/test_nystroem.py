import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose

from surff import NystroemFeatures
from surff.kernels import inverse_root
from surff.linear import SOLVERS
from surff.selection import ridge_leverage_scores


def nearly_semidefinite(dtype, negative):
    """A Gram matrix of rank 3 with eigenvalues of ``negative`` beside it."""
    Q, _ = np.linalg.qr(np.random.default_rng(0).normal(size=(8, 8)))
    eigenvalues = np.array([5.0, 2.0, 0.7, *[negative] * 5])
    matrix = ((Q * eigenvalues) @ Q.T).astype(dtype).astype(np.float64)
    return np.asfortranarray(0.5 * (matrix + matrix.T)), Q


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_forced_negative_eigenvalues(dtype):
    """Sk-extra PR 13: clamped by tolerance, never a NaN."""
    eps = np.finfo(dtype).eps
    K, Q = nearly_semidefinite(dtype, -8 * eps)
    root, _ = inverse_root(K, eps)
    assert np.isfinite(root).all()
    expected = (Q[:, :3] / np.sqrt([5.0, 2.0, 0.7])) @ Q[:, :3].T
    assert_allclose(root, expected, atol=1e-4 if dtype == np.float32 else 1e-8)
    moments = K @ np.ones((8, 1))
    (coef,) = SOLVERS["eigh"](K, moments, [0.7])
    assert np.isfinite(coef).all()
    for solver in SOLVERS.values():
        (coef,) = solver(K, moments, [0.7])
        assert_allclose((K + 0.7 * np.eye(8)) @ coef, moments, atol=1e-5)


@pytest.mark.parametrize("negative", [-1e-8, -1e-7])
def test_single_precision_gram_matrices(negative):
    """DPPy 57: eigenvalues of -1e-8 are rounding and are accepted."""
    K, _ = nearly_semidefinite(np.float32, negative)
    scores = ridge_leverage_scores(K, 0.7)
    assert np.isfinite(scores).all()
    assert scores.min() >= 0
    features = NystroemFeatures(4, kernel="precomputed", landmarks=np.arange(8))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Z = features.fit(K.astype(np.float32)).transform(K.astype(np.float32))
    assert_allclose(Z @ Z.T, K, atol=1e-4)
