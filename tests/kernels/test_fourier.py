import importlib
import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.metrics.pairwise import rbf_kernel
from threadpoolctl import threadpool_limits

from surff.backend import blocks
from surff.kernels import FourierMap, fourier, fourier_features, fourier_moments
from surff.kernels.fourier import NARROW

pytestmark = pytest.mark.usefixtures("two_threads")

#: Sum over d products and one kernel evaluation, in units of its dtype.
TOLERANCE = {np.float32: 1e-5, np.float64: 1e-13}
DTYPES = list(TOLERANCE)


def tolerance(dtype, d):
    """`TOLERANCE` for sums over d products, which grow with d."""
    return TOLERANCE[dtype] * max(1.0, d / 20)


def problem(n=37, d=3, s=8, dtype=np.float64, seed=0):
    """Rows, frequencies, amplitudes and targets, all read-only."""
    rng = np.random.default_rng(seed)
    arrays = [
        rng.normal(size=(n, d)).astype(dtype),
        rng.normal(size=(s, d)).astype(dtype),
        rng.uniform(0.3, 2, size=s).astype(dtype),
        rng.normal(size=(n, 2)),
    ]
    for array in arrays:
        array.flags.writeable = False
    return arrays


def formula(X, frequencies, amplitudes=None):
    """The formula of the module's docstring, in float64."""
    X, frequencies = np.asarray(X, float), np.asarray(frequencies, float)
    P = X @ frequencies.T
    a = np.ones(len(frequencies)) if amplitudes is None else np.asarray(amplitudes)
    return np.hstack([a * np.cos(P), a * np.sin(P)]) / math.sqrt(len(frequencies))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    ("n", "d", "s"),
    [(1, 1, 1), (37, 3, 8), (500, 2, 33), (8, 50, 5), (0, 3, 4), (300, NARROW, 5),
     (300, NARROW + 1, 5), (0, NARROW + 1, 4)],
)  # fmt: skip
def test_equals_the_formula(dtype, weighted, n, d, s):
    X, frequencies, amplitudes, _ = problem(n, d, s, dtype)
    amplitudes = amplitudes if weighted else None
    Z = fourier_features(X, frequencies, amplitudes)
    assert Z.dtype == dtype
    assert Z.shape == (n, 2 * s)
    assert_allclose(
        Z, formula(X, frequencies, amplitudes), atol=tolerance(dtype, d), rtol=0
    )


def test_columns_in_closed_form():
    frequencies = np.array([[math.pi, 0.0], [0.0, math.pi / 2]])
    Z = fourier_features(np.array([[1.0, 1.0]]), frequencies, np.array([0.7, 3.0]))
    assert_allclose(Z * math.sqrt(2), [[-0.7, 0.0, 0.0, 3.0]], atol=1e-15)


def test_products_are_the_real_part_of_the_complex_map():
    X, frequencies, amplitudes, _ = problem()
    Z = fourier_features(X, frequencies, amplitudes)
    C = amplitudes * np.exp(-1j * X @ frequencies.T) / math.sqrt(8)
    assert_allclose(Z @ Z.T, (C @ C.conj().T).real, atol=1e-14)
    # The plain transpose, as the paper writes it, is a function of x + x'.
    assert abs(Z @ Z.T - (C @ C.T).real).max() > 0.1


def test_unbiased_estimate_of_the_gaussian_kernel():
    # Hoeffding for s terms in [-1, 1], union over entries: correct code fails with
    # probability below 1e-9.
    s, gamma = 20000, 0.3
    X = problem()[0]
    frequencies = math.sqrt(2 * gamma) * np.random.default_rng(1).normal(size=(s, 3))
    K = rbf_kernel(X, gamma=gamma)
    radius = math.sqrt(2 * math.log(2 * K.size / 1e-9) / s)
    Z = fourier_features(X, frequencies)
    assert abs(Z @ Z.T - K).max() < radius
    # Without 1 / sqrt(s), or with gamma for 2 gamma, the check would tell.
    assert abs(s * (Z @ Z.T) - K).max() > radius
    wrong = fourier_features(X, frequencies / math.sqrt(2))
    assert abs(wrong @ wrong.T - K).max() > radius


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("d", [3, NARROW + 1])
def test_memory_layout_does_not_matter(dtype, d):
    X, frequencies, amplitudes, Y = problem(n=300, d=d, dtype=dtype)
    expected = fourier_features(X, frequencies, amplitudes)
    moments = fourier_moments(X, frequencies, Y, amplitudes)
    wide = np.zeros((600, 2 * d), dtype)
    wide[::2, ::2] = X
    for layout in (np.asfortranarray(X), wide[::2, ::2], np.flipud(X[::-1].copy())):
        assert_allclose(
            fourier_features(layout, np.asfortranarray(frequencies), amplitudes),
            expected, atol=tolerance(dtype, d), rtol=0,
        )  # fmt: skip
        assert_allclose(
            fourier_moments(layout, frequencies, np.asfortranarray(Y), amplitudes),
            moments, atol=300 * tolerance(dtype, d), rtol=0,
        )  # fmt: skip


@pytest.mark.parametrize("d", [3, NARROW + 1])
def test_memory_mapped_rows(tmp_path, d):
    X, frequencies, _, _ = problem(n=300, d=d)
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    Z = fourier_features(mapped, frequencies)
    assert_array_equal(Z, fourier_features(X, frequencies))
    assert type(Z) is np.ndarray


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "form",
    [
        sparse.csr_matrix,
        sparse.csc_matrix,
        sparse.coo_matrix,
        sparse.csr_array,
        sparse.csc_array,
        sparse.coo_array,
    ],
)
def test_sparse_equals_dense(form, dtype):
    X, frequencies, amplitudes, Y = problem(n=300, dtype=dtype)
    X = np.where(abs(X) > 0.7, X, dtype(0))
    Z = fourier_features(form(X), frequencies, amplitudes)
    assert Z.dtype == dtype
    assert_allclose(
        Z, fourier_features(X, frequencies, amplitudes), atol=TOLERANCE[dtype], rtol=0
    )
    assert_allclose(
        fourier_moments(form(X), frequencies, Y, amplitudes),
        fourier_moments(X, frequencies, Y, amplitudes),
        atol=300 * TOLERANCE[dtype], rtol=0,
    )  # fmt: skip


@given(
    n=st.integers(0, 700),
    d=st.sampled_from([3, NARROW + 1]),
    s=st.integers(1, 40),
    block_bytes=st.sampled_from([1, 2**16, 2**17, 2**18]),
    dtype=st.sampled_from(DTYPES),
    form=st.sampled_from([np.asarray, sparse.csr_array]),
)
def test_any_block_size_equals_one_block(n, d, s, block_bytes, dtype, form):
    X, frequencies, amplitudes, Y = problem(n, d, s, dtype)
    one = fourier_features(form(X), frequencies, amplitudes)
    one_moments = fourier_moments(form(X), frequencies, Y, amplitudes)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "BLOCK_BYTES", block_bytes)
        patch.setattr(fourier, "NARROW_ROWS", max(1, block_bytes // 2**13))
        patch.setattr(fourier, "NARROW_BLOCK_ROWS", max(1, block_bytes // 2**10))
        many = fourier_features(form(X), frequencies, amplitudes)
        many_moments = fourier_moments(form(X), frequencies, Y, amplitudes)
    bound = tolerance(dtype, d)
    assert_allclose(many, one, atol=bound, rtol=0)
    assert_allclose(many_moments, one_moments, atol=(n + 1) * bound, rtol=0)


@pytest.mark.parametrize("dtype", DTYPES)
def test_writes_into_the_array_it_is_given(dtype):
    X, frequencies, amplitudes, _ = problem(n=300, dtype=dtype)
    out = np.full((300, 16), np.nan, dtype)
    assert fourier_features(X, frequencies, amplitudes, out=out) is out
    assert_array_equal(out, fourier_features(X, frequencies, amplitudes))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("k", [0, 1, 3])
def test_moments_equal_those_of_stored_features(dtype, k):
    X, frequencies, amplitudes, _ = problem(n=301, dtype=dtype)
    Y = np.random.default_rng(2).normal(size=(301, k))
    moments = fourier_moments(X, frequencies, Y, amplitudes)
    assert moments.dtype == np.float64
    assert moments.shape == (16, k)
    assert_allclose(
        moments, formula(X, frequencies, amplitudes).T @ Y,
        atol=301 * TOLERANCE[dtype], rtol=0,
    )  # fmt: skip


def test_moments_of_single_precision_rows_are_summed_in_double():
    # 2^17 equal rows: single precision sums would lose their last bits one by one.
    X = np.full((2**17, 1), 0.3, np.float32)
    frequencies = np.array([[1.0]], np.float32)
    Z = fourier_features(X[:1], frequencies).astype(float)
    moments = fourier_moments(X, frequencies, np.full((2**17, 1), 0.1))
    assert_allclose(moments[:, 0], Z[0] * 0.1 * 2**17, rtol=1e-12)
    assert abs(np.cumsum(np.full(2**17, Z[0, 0] * 0.1, np.float32))[-1] /
               (Z[0, 0] * 0.1 * 2**17) - 1) > 1e-6  # fmt: skip


def test_moments_store_no_feature_matrix():
    n, s = 20000, 128
    X, frequencies, _, Y = problem(n, 3, s)
    fourier_moments(X[:200], frequencies, Y[:200])  # compiled before memory is watched
    with threadpool_limits(2, user_api="blas"):  # each thread holds a block
        tracemalloc.start()
        fourier_moments(X, frequencies, Y)
        peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < n * 2 * s * 8 / 3
    assert peak < 3 * blocks.BLOCK_BYTES


@pytest.mark.parametrize("dtype", DTYPES)
def test_feature_map_binds_its_arguments(dtype):
    X, frequencies, amplitudes, Y = problem(dtype=dtype)
    feature_map = FourierMap(frequencies, amplitudes)
    assert feature_map.n_components == 16
    assert feature_map.dtype == dtype
    expected = fourier_features(X, frequencies, amplitudes)
    assert_array_equal(feature_map(X), expected)
    assert_array_equal(
        feature_map.moments(X, Y), fourier_moments(X, frequencies, Y, amplitudes)
    )
    assert feature_map.astype(dtype) is feature_map
    other = np.float32 if dtype is np.float64 else np.float64
    converted = feature_map.astype(other)(X.astype(other))
    assert converted.dtype == other
    assert_allclose(converted, expected, atol=TOLERANCE[np.float32], rtol=0)
    bare = FourierMap(frequencies).astype(other)
    assert bare.amplitudes is None
    assert bare.dtype == other


NAMESPACES = {
    "array_api_strict": "array-api-strict is not installed",
    "torch": "torch is not installed (pip install 'surff[torch]')",
}


@pytest.fixture(params=sorted(NAMESPACES))
def xp(request):
    """Array namespaces beside NumPy; every device of theirs is the CPU here."""
    pytest.importorskip(request.param, reason=NAMESPACES[request.param])
    if request.param == "torch":
        return importlib.import_module("array_api_compat.torch")
    return importlib.import_module(request.param)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("weighted", [False, True])
def test_other_namespaces_equal_numpy(xp, dtype, weighted):
    X, frequencies, amplitudes, _ = problem(dtype=np.dtype(dtype).type)
    expected = fourier_features(X, frequencies, amplitudes if weighted else None)
    moved = [xp.asarray(a.copy()) for a in (X, frequencies, amplitudes)]
    Z = fourier_features(*moved[: 2 + weighted])
    assert type(Z) is type(moved[0])
    assert Z.dtype == getattr(xp, dtype)
    tolerance = TOLERANCE[np.dtype(dtype).type]
    assert_allclose(np.from_dlpack(Z), expected, atol=tolerance, rtol=0)


@pytest.mark.parametrize("size", [1e2, 1e4, 1e6])
def test_float32_features_are_off_by_the_rounding_of_their_projections(size):
    rng = np.random.default_rng(0)
    X = rng.uniform(-size, size, size=(200, 3)).astype(np.float32)
    frequencies = rng.normal(size=(20, 3)).astype(np.float32)
    narrow = fourier_features(X, frequencies)
    X, frequencies = X.astype(float), frequencies.astype(float)
    error = abs(narrow - fourier_features(X, frequencies))
    # Three products and two sums, each off by half a bit at most.
    sizes = np.tile(abs(X) @ abs(frequencies).T, 2)
    most = 3.0 * np.finfo(np.float32).eps * sizes + 3e-7
    assert (error <= most / np.sqrt(20)).all()
    # What the docstring says of such projections: 6e-8 of them.
    assert 1e-8 * size < error.max() * np.sqrt(20) < 1e-6 * size
