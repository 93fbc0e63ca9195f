import itertools
import math
import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.linalg import hadamard

from surff import FourierFeatures
from surff.backend.hadamard import signed_transform
from surff.draws import HadamardFrequencies, StructuredOrthogonal
from surff.draws.structured import SMALLEST_BLOCK
from surff.kernels import Exponential, FourierMap, Gaussian, Laplace, fourier_features

RNG = np.random.default_rng(0)
LEVEL = 1e-9


@pytest.mark.parametrize("p", [1, 2, 4, 8, 64, 512])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_transform_is_hadamards(p, dtype):
    B = RNG.normal(size=(p, 3)).astype(dtype)
    signs = RNG.choice([-1, 1], size=p).astype(dtype)
    target = np.empty_like(B)
    signed_transform(B, signs, target)
    expected = hadamard(p) @ (signs[:, None] * B.astype(np.float64))
    assert_allclose(target, expected, atol=20 * p * np.finfo(dtype).eps)


def by_hand(frequencies):
    """The dense matrix of the module's formula."""
    p = frequencies.signs.shape[2]
    H = hadamard(p) / math.sqrt(p)
    blocks = [H * d1 @ (H * d2) @ (H * d3) for d1, d2, d3 in frequencies.signs]
    n, d = frequencies.shape
    W = np.concatenate(blocks)[:n, :d]
    return frequencies.norms[:, None] * W * frequencies.column_scale


@pytest.mark.parametrize(("n", "d"), [(1, 1), (5, 3), (70, 40), (64, 64), (200, 65)])
def test_operator_stands_for_its_matrix(n, d):
    frequencies = 0.7 * StructuredOrthogonal().draw(
        Gaussian(), n, d, np.random.default_rng(0)
    )
    assert isinstance(frequencies, HadamardFrequencies)
    assert frequencies.shape == (n, d) == np.asarray(frequencies).shape
    assert len(frequencies) == n
    W = by_hand(frequencies)
    assert_allclose(np.asarray(frequencies), W, atol=1e-13)
    for rows in (1, 31, 33, 100):
        X = np.random.default_rng(1).normal(size=(rows, d))
        X.flags.writeable = False
        for form in (np.asarray, np.asfortranarray, sparse.csr_array):
            assert_allclose(frequencies.projections(form(X)), X @ W.T, atol=1e-12)
        single = frequencies.astype(np.float32)
        P = single.projections(X.astype(np.float32))
        assert P.dtype == np.float32
        assert_allclose(P, X @ W.T, atol=2e-5 * abs(X @ W.T).max())
    again = pickle.loads(pickle.dumps(frequencies))
    assert_array_equal(np.asarray(again), np.asarray(frequencies))


def test_scales_by_a_number_and_by_the_feature():
    frequencies = StructuredOrthogonal().draw(Gaussian(), 9, 3, RNG)
    for scale in (0.7, np.float64(0.7), np.array([0.1, 1.0, 3.0])):
        scaled = scale * frequencies
        assert isinstance(scaled, HadamardFrequencies)
        assert_allclose(np.asarray(scaled), scale * np.asarray(frequencies), rtol=1e-14)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_features_are_those_of_the_dense_matrix(dtype):
    X = RNG.normal(size=(300, 20)).astype(dtype)
    Y = RNG.normal(size=(300, 2))
    fitted = FourierFeatures(
        140, gamma=0.3, draw="structured_orthogonal", random_state=0
    ).fit(X)
    assert isinstance(fitted.frequencies_, HadamardFrequencies)
    assert fitted.frequencies_.dtype == dtype
    W = np.asarray(fitted.frequencies_, dtype=dtype)
    tolerance = 1e-12 if dtype == np.float64 else 1e-4
    Z = fitted.transform(X)
    assert Z.dtype == dtype
    assert_allclose(Z, fourier_features(X, W), atol=tolerance)
    assert_allclose(fitted.transform(sparse.csr_array(X)), Z, atol=tolerance)
    moments = FourierMap(fitted.frequencies_).moments(X, Y)
    assert_allclose(moments, Z.astype(np.float64).T @ Y, atol=300 * tolerance)


def test_selectors_get_the_dense_candidates():
    X, y = RNG.normal(size=(50, 3)), RNG.normal(size=50)
    fitted = FourierFeatures(
        16, gamma=0.3, draw="structured_orthogonal", select="surrogate", random_state=0
    ).fit(X, y)
    assert isinstance(fitted.frequencies_, np.ndarray)
    assert fitted.transform(X).shape == (50, 16)


def test_rows_of_a_block_are_orthogonal_with_norms_of_the_radial_law():
    d = 64
    W = np.asarray(StructuredOrthogonal().draw(Gaussian(), 3 * d, d, RNG))
    norms = np.linalg.norm(W, axis=1)
    for block in (W / norms[:, None]).reshape(3, d, d):
        assert_allclose(block @ block.T, np.eye(d), atol=1e-12)
    # 2 chi^2_64 has mean 128 and variance 512; six sigma of the mean of 192.
    assert abs(np.mean(norms**2) - 128) < 6 * math.sqrt(512 / 192)


def worst_bias(p, d, n=1 << 16):
    """Largest error over distances, directions, of blocks of size p."""
    rng = np.random.default_rng(0)
    norms = Gaussian().radial_law(np.random.default_rng(1), n, p)
    signs = 2 * rng.integers(0, 2, size=(n // p, 3, p), dtype=np.int8) - 1
    X = np.concatenate([np.eye(d), RNG.normal(size=(20, d))])
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    X = np.concatenate([radius * X for radius in (0.3, 0.6, 1.0, 1.5, 2.0)])
    P = HadamardFrequencies(signs, norms, np.ones(d)).projections(X)
    return abs(np.cos(P).mean(axis=1) - np.exp(-np.sum(X**2, axis=1))).max()


@pytest.mark.parametrize("d", [2, 4])
def test_the_bias_vanishes_with_the_size_of_the_block(d):
    biases = [worst_bias(p, d) for p in (4, 8, 16, SMALLEST_BLOCK)]
    assert biases[0] > 0.2
    assert all(b < a / 1.2 for a, b in itertools.pairwise(biases))
    # Six standard deviations of the estimate, and the bias.
    assert biases[-1] < 6 / math.sqrt(2 << 16) + 0.005


def test_a_forgotten_radius_is_found():
    d, n = 64, 64 * 300
    frequencies = StructuredOrthogonal().draw(
        Exponential(), n, d, np.random.default_rng(0)
    )
    x = np.eye(d)[:1]
    exact = Exponential().kernel(x, np.zeros((1, d)))[0, 0]
    # Hoeffding for 300 independent blocks.
    radius = math.sqrt(2 * math.log(2 / LEVEL) / 300)
    assert abs(np.cos(frequencies.projections(x)).mean() - exact) < radius
    far = 3 * x
    exact = Exponential().kernel(far, np.zeros((1, d)))[0, 0]
    frequencies.norms = np.full(n, 0.1 * math.sqrt(2 * d))
    assert abs(np.cos(frequencies.projections(far)).mean() - exact) > radius


def test_products_have_no_radius():
    with pytest.raises(TypeError, match="Laplace is not isotropic"):
        StructuredOrthogonal().draw(Laplace(), 4, 2, RNG)
