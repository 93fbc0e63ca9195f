import math
import re
import tracemalloc
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from threadpoolctl import threadpool_limits

from surff.backend import blocks
from surff.kernels import FourierMap
from surff.linear import NormalEquations, accumulate, extend, normal_equations

pytestmark = pytest.mark.usefixtures("two_threads")

SUMS = ("gram", "moments", "feature_sum", "target_sum", "target_square", "weight_sum")


def problem(n=37, m=5, k=2, seed=0, dtype=np.float64):
    """Features, targets and whole-number weights, some of them zero."""
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n, m)) + 0.7
    return Z.astype(dtype), rng.normal(size=(n, k)) - 0.3, rng.integers(0, 4, size=n)


def equations(Z, Y, weight=None):
    weight = None if weight is None else np.asarray(weight, float)
    # A copy: update scales the block by the roots of the weights.
    return NormalEquations(Z.shape[1], Y.shape[1]).update(Z.copy(), Y, weight)


def symmetric(gram):
    """The whole matrix from its upper triangle; whatever is below is not read."""
    return np.triu(gram) + np.triu(gram, 1).T


def sums(equations):
    return [symmetric(equations.gram), *(getattr(equations, s) for s in SUMS[1:])]


def assert_same(first, second, **tolerance):
    tolerance = tolerance or {"rtol": 1e-11, "atol": 1e-11}
    for name, a, b in zip(SUMS, sums(first), sums(second), strict=True):
        assert_allclose(a, b, err_msg=name, **tolerance)


def explicit(Z, Y, weight=None):
    """The six sums of the module's docstring."""
    w = np.ones(len(Z)) if weight is None else np.asarray(weight, float)
    Z = Z.astype(float)
    WZ = w[:, None] * Z
    return [WZ.T @ Z, WZ.T @ Y, WZ.sum(0), w @ Y, w @ Y**2, w.sum()]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("n", "m", "k"), [(37, 5, 2), (1, 3, 1), (4, 9, 3), (5, 1, 0)])
def test_sums_are_the_documented_ones(dtype, weighted, n, m, k):
    Z, Y, weight = problem(n, m, k, dtype=dtype)
    weight = weight if weighted else None
    tolerance = 40 * n * np.finfo(dtype).eps
    for name, a, b in zip(
        SUMS, sums(equations(Z, Y, weight)), explicit(Z, Y, weight), strict=True
    ):
        assert np.asarray(a).dtype == np.float64
        assert_allclose(a, b, err_msg=name, rtol=tolerance, atol=tolerance)


def test_gram_is_fortran_ordered():
    assert equations(*problem()[:2]).gram.flags.f_contiguous


@given(
    cuts=st.lists(st.integers(0, 37), max_size=6),
    weighted=st.booleans(),
    m=st.integers(1, 7),
    k=st.integers(0, 3),
)
def test_any_batching_equals_one_batch(cuts, weighted, m, k):
    Z, Y, weight = problem(m=m, k=k)
    weight = weight if weighted else np.ones(37)
    batched = NormalEquations(m, k)
    for start, stop in pairwise([0, *sorted(cuts), 37]):
        part = slice(start, stop)
        batched.update(Z[part].copy(), Y[part], weight[part].astype(float))
    assert_same(batched, equations(Z, Y, weight))


def parts(n_parts=3):
    Z, Y, weight = problem()
    edges = np.linspace(0, len(Z), n_parts + 1).astype(int)
    return [
        equations(Z[a:b], Y[a:b], weight[a:b]) for a, b in pairwise(edges)
    ], equations(Z, Y, weight)


def test_merging_is_commutative_and_associative_and_has_a_unit():
    (a, b, c), whole = parts()
    assert_same(a.copy().merge(b), b.copy().merge(a), rtol=0, atol=0)
    left = a.copy().merge(b).merge(c)
    right = a.copy().merge(b.copy().merge(c))
    assert_same(left, right)
    assert_same(left, whole)
    assert_same(NormalEquations(5, 2).merge(a), a, rtol=0, atol=0)
    assert a.merge(NormalEquations(5, 2)) is a


def test_merging_leaves_the_other_side_alone():
    (a, b, _), _ = parts()
    before = b.copy()
    a.merge(b).subtract(b)
    assert_same(b, before, rtol=0, atol=0)


def test_subtracting_undoes_merging():
    (a, b, c), whole = parts()
    assert_same(whole.copy().subtract(c), a.copy().merge(b))
    assert_same(a.copy().merge(b).subtract(b), a)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_copies_are_independent(dtype):
    Z, Y, _ = problem(dtype=dtype)
    original = equations(Z, Y)
    before = [np.array(a) for a in explicit(Z, Y)]
    copy = original.copy()
    copy.update(Z.copy(), Y)
    for a, b in zip(sums(original), before, strict=True):
        assert_allclose(a, b, rtol=1e-5)
    assert copy.weight_sum == 2 * original.weight_sum


def test_weights_repeat_rows():
    Z, Y, weight = problem()
    repeated = equations(np.repeat(Z, weight, axis=0), np.repeat(Y, weight, axis=0))
    assert_same(equations(Z, Y, weight), repeated)
    # Weights where their roots belong are the mistake to find.
    wrong = equations(Z, Y, np.sqrt(weight))
    assert abs(symmetric(wrong.gram) - symmetric(repeated.gram)).max() > 1


def test_single_precision_error_does_not_grow_with_the_rows():
    # The same rows again and again, so that the relative errors can be compared.
    Z, Y, _ = problem(n=128, m=6, dtype=np.float32)
    exact = explicit(Z, Y)[0]

    def error(repetitions):
        total = NormalEquations(6, 2)
        for _ in range(repetitions):
            total.update(Z, Y)
        return abs(symmetric(total.gram) / repetitions / exact - 1).max()

    batches = normal_equations.FLOAT32_ROWS // 128
    # 64 additions of like terms in float32 lose at most 64 half units each.
    bound = batches * np.finfo(np.float32).eps
    assert error(batches) < bound
    assert error(100 * batches) < bound
    # One sum in float32 all the way through, as a control.
    naive = np.zeros((6, 6), np.float32)
    block = Z.T @ Z
    for _ in range(100 * batches):
        naive += block
    assert abs(naive / (100 * batches) / exact - 1).max() > 10 * error(100 * batches)


def test_reading_the_gram_midway_changes_nothing():
    Z, Y, _ = problem(dtype=np.float32)
    total = NormalEquations(5, 2)
    for i in range(37):
        total.update(Z[i : i + 1], Y[i : i + 1])
        _ = total.gram
    assert_same(total, equations(Z, Y), rtol=1e-5, atol=1e-5)


def test_scaling_columns_equals_scaled_features():
    Z, Y, weight = problem()
    factors = np.array([0.7, 3.0, 1.0, 0.0, 20.0])
    original = equations(Z, Y, weight)
    before = original.copy()
    scaled = original.scaled(factors)
    assert_same(scaled, equations(Z * factors, Y, weight))
    assert_same(original, before, rtol=0, atol=0)


@pytest.mark.parametrize("weighted", [False, True])
def test_centring_equals_taking_means_out(weighted):
    Z, Y, weight = problem()
    weight = weight if weighted else np.ones(37)
    total = equations(Z, Y, weight)
    centred = total.centred()
    feature_mean = np.average(Z, axis=0, weights=weight)
    target_mean = np.average(Y, axis=0, weights=weight)
    assert_allclose(centred.feature_mean, feature_mean, rtol=1e-13)
    assert_allclose(centred.target_mean, target_mean, rtol=1e-13)
    gram, moments, *_ = explicit(Z - feature_mean, Y - target_mean, weight)
    assert_allclose(symmetric(centred.gram), gram, rtol=1e-12, atol=1e-12)
    assert_allclose(centred.moments, moments, rtol=1e-11, atol=1e-12)
    assert centred.gram.flags.f_contiguous


def test_without_centring_nothing_is_taken_out():
    total = equations(*problem())
    plain = total.centred(False)
    assert_array_equal(symmetric(plain.gram), symmetric(total.gram))
    assert_array_equal(plain.moments, total.moments)
    assert not plain.feature_mean.any()
    assert not plain.target_mean.any()
    # What a solver overwrites is not the accumulator's own.
    plain.gram[...] = plain.moments[...] = np.nan
    assert np.isfinite(symmetric(total.gram)).all()
    assert np.isfinite(total.moments).all()


@pytest.mark.parametrize("method", ["merge", "subtract"])
def test_other_shapes_are_refused(method):
    total = NormalEquations(4, 2)
    for other in (NormalEquations(5, 2), NormalEquations(4, 1)):
        shape = rf"\({len(other.moments)}, {other.moments.shape[1]}\)"
        message = rf"other must hold .* = \(4, 2\), got {shape}"
        with pytest.raises(ValueError, match=message):
            getattr(total, method)(other)


@pytest.mark.parametrize(
    ("Z_shape", "Y_shape"),
    [((9, 3), (9, 2)), ((9, 4), (9, 1)), ((8, 4), (9, 2)), ((9, 4), (9,))],
)
def test_blocks_of_other_shapes_are_refused_and_leave_no_trace(Z_shape, Y_shape):
    total = NormalEquations(4, 2)
    message = r"shapes \(n_rows, 4\) and \(n_rows, 2\), got "
    with pytest.raises(
        ValueError, match=message + re.escape(f"{Z_shape} and {Y_shape}")
    ):
        total.update(np.ones(Z_shape), np.ones(Y_shape))
    assert_same(total, NormalEquations(4, 2), rtol=0, atol=0)


def frequencies(s=8, d=3, dtype=np.float64):
    return np.random.default_rng(1).normal(size=(s, d)).astype(dtype)


@given(
    n=st.integers(1, 700),
    block_bytes=st.sampled_from([1, 2**16, 2**22]),
    dtype=st.sampled_from([np.float32, np.float64]),
    weighted=st.booleans(),
)
def test_accumulate_equals_one_update(n, block_bytes, dtype, weighted):
    X, Y, weight = problem(n, 3, 2, dtype=dtype)
    weight = weight.astype(float) if weighted else None
    feature_map = FourierMap(frequencies(dtype=dtype))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "BLOCK_BYTES", block_bytes)
        streamed = accumulate(feature_map, X, Y, weight)
    once = equations(feature_map(X), Y, weight)
    tolerance = 4 * n * np.finfo(dtype).eps
    assert_same(streamed, once, rtol=tolerance, atol=tolerance)


def test_accumulate_takes_the_rows_it_is_told():
    X, Y, weight = problem(300, 3, 2)
    rows = np.random.default_rng(2).integers(0, 300, size=200)
    feature_map = FourierMap(frequencies())
    some = accumulate(feature_map, X, Y, weight.astype(float), rows)
    assert_same(some, equations(feature_map(X[rows]), Y[rows], weight[rows]))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("some", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_matrices_too_large_for_one_a_thread_are_shared(
    monkeypatch, dtype, some, weighted
):
    X, Y, weight = problem(300, 3, 2, dtype=dtype)
    weight = weight.astype(float) if weighted else None
    rows = np.random.default_rng(2).integers(0, 300, size=200) if some else None
    feature_map = FourierMap(frequencies(dtype=dtype))
    expected = accumulate(feature_map, X, Y, weight, rows)
    monkeypatch.setattr(normal_equations, "PARALLEL_COLUMNS", 15)
    monkeypatch.setattr(normal_equations, "SHARED_ROWS", 64)
    shared = accumulate(feature_map, X, Y, weight, rows)
    tolerance = 1e3 * np.finfo(dtype).eps
    assert_same(shared, expected, rtol=tolerance, atol=tolerance)


def test_merging_takes_every_panel_of_the_upper_triangle():
    m = 2 * normal_equations.PANEL + 3
    Z, Y, _ = problem(20, m, 1)
    total = equations(Z[:12], Y[:12]).merge(equations(Z[12:], Y[12:]))
    assert_same(total, equations(Z, Y), rtol=1e-10, atol=1e-10)
    assert_same(total.copy(), total, rtol=0, atol=0)


def test_accumulate_writes_to_nothing_of_the_callers():
    X, Y, weight = problem(300, 3, 2)
    weight = weight.astype(float)
    for array in (X, Y, weight):
        array.flags.writeable = False
    accumulate(FourierMap(frequencies()), X, Y, weight)
    accumulate(FourierMap(frequencies()), X, Y, weight, np.arange(20))


def test_accumulate_holds_one_block():
    n, m = 40000, 256
    X, Y, _ = problem(n, 3, 2)
    feature_map = FourierMap(frequencies(m // 2))
    accumulate(feature_map, X[:200], Y[:200])  # compiled before memory is watched
    with threadpool_limits(2, user_api="blas"):  # each thread holds a block
        tracemalloc.start()
        accumulate(feature_map, X, Y)
        peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2 * (2 * blocks.BLOCK_BYTES + 4 * m * m * 8)
    assert peak < n * m * 8 / 3


def test_gram_of_orthonormal_features_in_closed_form():
    # Whole periods on a grid: the cosines and sines are orthogonal.
    n = 24
    X = 2 * math.pi * np.arange(n)[:, None] / n
    total = accumulate(FourierMap(np.array([[1.0], [5.0]])), X, np.ones((n, 1)))
    assert_allclose(symmetric(total.gram), n / 4 * np.eye(4), atol=1e-13)
    assert_allclose(total.feature_sum, 0, atol=1e-13)


@given(
    n=st.integers(1, 300),
    new=st.lists(st.booleans(), min_size=1, max_size=4).filter(any),
    block_bytes=st.sampled_from([1, 2**20]),
    dtype=st.sampled_from([np.float32, np.float64]),
    weighted=st.booleans(),
)
def test_extending_equals_accumulating_all_columns(
    n, new, block_bytes, dtype, weighted
):
    rng = np.random.default_rng(n)
    X, Y = rng.normal(size=(n, 3)).astype(dtype), rng.normal(size=(n, 2))
    W = rng.normal(size=(len(new), 3)).astype(dtype)
    weight = rng.integers(0, 4, size=n).astype(float) if weighted else None
    new = np.array(new)
    ones = np.ones(len(new), dtype)
    whole = FourierMap(W, ones * np.sqrt(dtype(len(new))))
    if new.all():
        old = NormalEquations(0, 2)
        for name, value in zip(
            SUMS[3:], explicit(X[:, :0], Y, weight)[3:], strict=True
        ):
            setattr(old, name, value)
    else:
        part = FourierMap(W[~new], ones[~new] * np.sqrt(dtype((~new).sum())))
        old = accumulate(part, X, Y, weight)
    before = old.copy()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "BLOCK_BYTES", block_bytes)
        found = extend(old, whole, np.tile(new, 2), X, Y, weight)
    tolerance = 3e-6 * n if dtype == np.float32 else 1e-13 * n
    assert_same(found, accumulate(whole, X, Y, weight), rtol=0, atol=20 * tolerance)
    assert_same(old, before, rtol=0, atol=0)


def test_extending_does_not_form_old_products_again():
    # Old sums of other rows stay in the result: they are taken over, not formed.
    X, Y, _ = problem(n=20, m=3)
    W = np.random.default_rng(1).normal(size=(2, 3))
    old = accumulate(FourierMap(W[:1]), X[:5], Y[:5])
    new = np.array([False, True, False, True])
    found = extend(old, FourierMap(W, np.full(2, np.sqrt(2))), new, X, Y)
    assert found.gram[0, 2] == old.gram[0, 1]
    assert found.weight_sum == 5


def test_extending_by_other_shapes_is_refused():
    Z, Y, _ = problem(m=3)
    new = np.array([False, False, False, True])
    with pytest.raises(ValueError, match=r"new must mark all but 3 columns.*1 of 4 and "
                       r"shape \(3, 1\)"):  # fmt: skip
        equations(Z, Y).extended(new, np.zeros((3, 1)), np.zeros((1, 2)), np.zeros(1))
    with pytest.raises(ValueError, match="got 4 of 4"):
        equations(Z, Y).extended(
            new | True, np.zeros((4, 1)), np.zeros((1, 2)), np.zeros(1)
        )
