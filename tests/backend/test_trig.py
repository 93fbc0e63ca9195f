import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from surff.backend import (
    REDUCTION_LIMIT,
    add_features_moments,
    cos_sin_float32,
    cos_sin_float64,
    write_features,
    write_sparse_features,
)

DTYPES = [np.float32, np.float64]
#: Absolute error that the module promises, for amplitudes up to 1.
BOUND = {np.float32: 3e-7, np.float64: 2e-15}


def run(p, amplitudes=None):
    """One row, or rows, through the kernel of its dtype."""
    P = np.ascontiguousarray(np.atleast_2d(p))
    kernel = {np.float32: cos_sin_float32, np.float64: cos_sin_float64}[P.dtype.type]
    s = P.shape[1]
    amplitudes = np.ones(s, P.dtype) if amplitudes is None else amplitudes
    out = np.full((len(P), 2 * s), 7.0, P.dtype)
    kernel(P, amplitudes, out)
    return out[:, :s], out[:, s:]


def exact(function, p):
    """The C library's function, correct to the last bit or so for any argument."""
    return np.array([function(x) for x in p.astype(float).ravel()]).reshape(p.shape)


def largest_error(p):
    """Largest absolute error, in float64, of the cosines and sines of ``p``."""
    cosine, sine = run(p)
    p = np.atleast_2d(p)
    return max(
        abs(cosine - exact(math.cos, p)).max(), abs(sine - exact(math.sin, p)).max()
    )


@pytest.mark.parametrize("dtype", DTYPES)
def test_error_on_uniform_arguments(dtype):
    rng = np.random.default_rng(0)
    for limit in (1.0, 30.0, 1e3, 1e5):
        p = rng.uniform(-limit, limit, size=(5, 20000)).astype(dtype)
        assert largest_error(p) < BOUND[dtype]


@pytest.mark.parametrize("dtype", DTYPES)
def test_error_beside_multiples_of_half_pi(dtype):
    # The reduction cancels there: of pi/2 in too few digits nothing would be left.
    k = np.arange(int(1e5 / (math.pi / 2)))
    p = (k * (math.pi / 2)).astype(dtype)
    neighbours = [p]
    for direction in (-np.inf, np.inf):
        q = p
        for _ in range(2):
            q = np.nextafter(q, dtype(direction))
            neighbours.append(q)
    # pi/4 beyond them k jumps from one integer to the next.
    neighbours.append(((k + 0.5) * (math.pi / 2)).astype(dtype))
    p = np.array(neighbours)
    p = p[:, abs(p).max(axis=0) < REDUCTION_LIMIT]
    assert largest_error(p) < BOUND[dtype]
    assert largest_error(-p) < BOUND[dtype]


def test_the_error_bound_tells_a_careless_reduction():
    # pi/2 as one double: the mistake that the bound is there to find.
    p = np.arange(1, 63000) * (math.pi / 2)
    k = np.round(p * (2 / math.pi))
    r = p - k * (math.pi / 2)
    quadrants = [np.sin(r), np.cos(r), -np.sin(r), -np.cos(r)]
    careless = np.choose(k.astype(int) % 4, quadrants)
    assert abs(careless - exact(math.sin, p)).max() > 100 * BOUND[np.float64]


@pytest.mark.parametrize("dtype", DTYPES)
def test_small_arguments(dtype):
    tiny = np.finfo(dtype).tiny
    p = np.geomspace(tiny, 1, 5000).astype(dtype)
    p = np.concatenate([p, -p, [0.0, -0.0, tiny / 8]]).astype(dtype)
    cosine, sine = run(p)
    assert largest_error(p) < BOUND[dtype]
    # Near zero the sine is right in relative terms too.
    assert_allclose(sine[0], exact(math.sin, p), rtol=4 * np.finfo(dtype).eps)
    assert_array_equal(cosine[0, -3:], 1.0)
    assert_array_equal(sine[0, -3:-1], 0.0)


@pytest.mark.parametrize(
    ("dtype", "largest"),
    [
        *((dtype, x) for dtype in DTYPES for x in (1.01e5, 1e6, 1e9, 1e19, 1e37)),
        (np.float64, 1e300),
    ],
)
def test_arguments_beyond_the_limit_are_exact(dtype, largest):
    rng = np.random.default_rng(0)
    p = rng.uniform(-largest, largest, size=(3, 501)).astype(dtype)
    p[1] *= dtype(1e5 / largest)  # a row within the limit between two beyond it
    p[2, 1:] *= dtype(1e5 / largest)  # and one with a single entry beyond
    p[2, 0] = largest
    assert largest_error(p) < BOUND[dtype]


@pytest.mark.parametrize("dtype", DTYPES)
def test_both_sides_of_the_limit(dtype):
    limit = dtype(REDUCTION_LIMIT)
    p = np.array(
        [np.nextafter(limit, dtype(0)), limit, np.nextafter(limit, dtype(1e9))]
    )
    for p_i in (*p, *-p):
        assert largest_error(np.full(9, p_i)) < BOUND[dtype]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("bad", [np.inf, -np.inf, np.nan])
def test_infinite_and_nan_entries_stay_alone(dtype, bad):
    p = np.linspace(-50, 50, 3 * 37).reshape(3, 37).astype(dtype)
    good = np.array(run(p))
    p[1, 5] = bad
    spoilt = np.array(run(p))
    with pytest.raises(ValueError, match="X must have finite projections"):
        write_features(p, np.ones(37, dtype), np.empty((3, 74), dtype))
    assert np.isnan(spoilt[:, 1, 5]).all()
    assert_array_equal(spoilt[:, [0, 2]], good[:, [0, 2]])
    others = np.delete(np.arange(37), 5)
    assert_allclose(
        spoilt[:, 1, others], good[:, 1, others], atol=2 * BOUND[dtype], rtol=0
    )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("beyond", [False, True])
def test_amplitudes_multiply_their_pair(dtype, beyond):
    rng = np.random.default_rng(0)
    p = rng.uniform(-9, 9, size=(4, 23)).astype(dtype) * dtype(1e6 if beyond else 1)
    a = rng.normal(size=23).astype(dtype)
    a[3] = 0.0
    cosine, sine = run(p, a)
    tolerance = 2 * BOUND[dtype] * abs(a).max()
    assert_allclose(cosine, a * exact(math.cos, p), atol=tolerance, rtol=0)
    assert_allclose(sine, a * exact(math.sin, p), atol=tolerance, rtol=0)
    assert_array_equal(cosine[:, 3], 0.0)
    assert_array_equal(sine[:, 3], 0.0)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(0, 5), (1, 1), (3, 1), (2, 3), (5, 17), (3, 64)])
def test_any_shape(dtype, shape):
    p = np.linspace(-3, 9, math.prod(shape)).reshape(shape).astype(dtype)
    cosine, sine = run(p)
    assert cosine.shape == sine.shape == shape
    assert_allclose(cosine, exact(math.cos, p), atol=BOUND[dtype], rtol=0)
    assert_allclose(sine, exact(math.sin, p), atol=BOUND[dtype], rtol=0)


@pytest.mark.parametrize("dtype", DTYPES)
def test_an_entry_does_not_depend_on_its_neighbours(dtype):
    p = np.random.default_rng(0).uniform(-99, 99, size=(1, 64)).astype(dtype)
    whole = np.array(run(p))
    for width in (1, 2, 3, 5, 31):
        part = np.array(run(p[:, :width]))
        # The vectorised body and the remainder loop may contract differently.
        assert_allclose(part, whole[:, :, :width], atol=2 * BOUND[dtype], rtol=0)


@given(st.floats(-1e5, 1e5))
def test_identities(x):
    cosine, sine = (float(v[0, 0]) for v in run(np.array([x])))
    mirrored_cosine, mirrored_sine = (float(v[0, 0]) for v in run(np.array([-x])))
    assert abs(cosine**2 + sine**2 - 1) < 4 * BOUND[np.float64]
    assert abs(cosine) <= 1 + BOUND[np.float64]
    assert (mirrored_cosine, mirrored_sine) == (cosine, -sine)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_any_finite_double(x):
    assert largest_error(np.array([x])) < BOUND[np.float64]


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_any_finite_single(x):
    assert largest_error(np.array([x], np.float32)) < BOUND[np.float32]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [0, 1, 3, 4, 5, 31, 48])
@pytest.mark.parametrize("k", [0, 1, 3])
@pytest.mark.parametrize("n_rows", [1, 2, 16])
def test_moments_are_added_to_what_is_there(dtype, n, k, n_rows):
    rng = np.random.default_rng(0)
    P = rng.uniform(-9, 9, size=(n, 7)).astype(dtype)
    a, Y = rng.normal(size=7).astype(dtype), rng.normal(size=(n, k))
    before = rng.normal(size=(k, 14))
    moments = before.copy()
    add_features_moments(P, a, Y, np.empty((n_rows, 14), dtype), moments)
    Z = np.hstack([a * exact(math.cos, P), a * exact(math.sin, P)])
    # Features are off by BOUND, the sums of n of them in float64 by n times that.
    tolerance = (n + 1) * 4 * abs(a).max() * abs(Y).max(initial=1) * BOUND[dtype]
    assert_allclose(moments, before + Y.T @ Z, rtol=0, atol=tolerance)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("n_rows", [1, 3, 16])
def test_features_of_sparse_rows(dtype, index, n_rows):
    rng = np.random.default_rng(0)
    # Rows of 0 to 9 values: whole fours, what is left of them, and nothing.
    dense = np.where(np.arange(9) < np.arange(10)[:, None], rng.normal(size=(10, 9)), 0)
    X = sparse.csr_array(dense.astype(dtype))
    X.indices, X.indptr = X.indices.astype(index), X.indptr.astype(index)
    weights = rng.normal(size=(9, 13)).astype(dtype)
    a = rng.normal(size=13).astype(dtype)
    out = np.empty((10, 26), dtype)
    write_sparse_features(X, weights, a, np.empty((n_rows, 13), dtype), out)
    P = dense.astype(dtype).astype(float) @ weights
    expected = np.hstack([a * np.cos(P), a * np.sin(P)])
    # A projection is a sum of nine products, each rounded.
    assert_allclose(out, expected, rtol=0, atol=60 * np.finfo(dtype).eps)


@pytest.mark.parametrize(
    ("name", "values"),
    [("indices", [0, 9]), ("indices", [-1, 0]), ("indptr", [0, 3]), ("indptr", [1, 2])],
)
def test_sparse_rows_that_lead_out_of_the_matrix_are_refused(name, values):
    X = sparse.csr_array(np.array([[1.0, 2.0, 0.0]]))
    setattr(X, name, np.array(values, dtype=np.int32))
    arguments = np.ones((3, 2)), np.ones(2), np.empty((1, 2)), np.empty((1, 4))
    with pytest.raises(ValueError, match="indices inside its shape"):
        write_sparse_features(X, *arguments)
