import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from scipy import sparse

from surff.backend import (
    block_rows,
    blocks,
    feature_blocks,
    map_rows,
    row_blocks,
    rows_of,
)
from surff.kernels import FourierMap

pytestmark = pytest.mark.usefixtures("two_threads")


@given(n_rows=st.integers(0, 500), size=st.integers(1, 600))
def test_blocks_cover_every_row_once_in_order(n_rows, size):
    slices = list(row_blocks(n_rows, size))
    assert [i for part in slices for i in range(n_rows)[part]] == list(range(n_rows))
    assert all(part.stop - part.start == size for part in slices[:-1])
    assert all(0 < part.stop - part.start <= size for part in slices[-1:])


@given(n_columns=st.integers(0, 10**7), dtype=st.sampled_from([np.float32, np.float64]))
def test_block_size_is_bounded_and_fits(n_columns, dtype):
    rows = block_rows(n_columns, dtype)
    assert rows % 64 == 0
    assert 128 <= rows <= 8192
    if rows > 128:
        assert rows * n_columns * np.dtype(dtype).itemsize <= blocks.BLOCK_BYTES


def test_block_size_in_closed_form(monkeypatch):
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 2**20)
    assert block_rows(256, np.float64) == 512
    assert block_rows(256, np.float32) == 1024
    assert block_rows(300, np.float64) == 384  # 436 rows would fit, 6 * 64 are taken
    assert block_rows(1, np.float64) == 8192
    assert block_rows(10**6, np.float64) == 128


@pytest.mark.parametrize("size", [1, 2, 7])
def test_no_rows_no_blocks(size):
    assert list(row_blocks(0, size)) == []


def problem(n, dtype=np.float64):
    rng = np.random.default_rng(0)
    frequencies = rng.integers(-8, 9, size=(5, 3)) / 4  # exact projections
    X = rng.integers(-8, 9, size=(n, 3)) / 8
    return FourierMap(frequencies.astype(dtype)), X.astype(dtype)


@given(
    n=st.integers(1, 500),
    block_bytes=st.sampled_from([1, 2**14, 2**22]),
    data=st.data(),
)
def test_feature_blocks_are_the_rows_asked_for(n, block_bytes, data):
    feature_map, X = problem(n)
    rows = data.draw(
        st.none() | st.lists(st.integers(0, n - 1), min_size=1, max_size=300)
    )
    rows = None if rows is None else np.array(rows)
    all_rows = np.arange(n) if rows is None else rows
    start = data.draw(st.integers(0, len(all_rows)))
    stop = data.draw(st.integers(start, len(all_rows)))
    part = data.draw(st.sampled_from([None, slice(start, stop)]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "BLOCK_BYTES", block_bytes)
        found = [
            (np.arange(n)[index], Z.copy())
            for index, Z in feature_blocks(feature_map, X, rows, part)
        ]
    wanted = all_rows if part is None else all_rows[part]
    indices = [index for index, _ in found]
    assert_array_equal(np.concatenate([np.zeros(0, int), *indices]), wanted)
    for index, Z in found:
        assert_array_equal(Z, feature_map(X[index]))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [0, 1, 500])
def test_rows_mapped_on_all_threads_equal_those_mapped_on_one(dtype, n):
    feature_map, X = problem(n, dtype)
    Z = map_rows(feature_map, X)
    assert_array_equal(Z, feature_map(X))
    out = np.empty_like(Z)
    assert map_rows(feature_map, X, out) is out
    assert_array_equal(out, Z)


@pytest.mark.parametrize(
    "form",
    [
        np.asarray,
        sparse.csr_array,
        sparse.csr_matrix,
        sparse.csc_array,
        sparse.csc_matrix,
    ],
)
@pytest.mark.parametrize(
    "index", [slice(0, 7), slice(2, 5), slice(3, 3), np.array([4, 0, 4])]
)
def test_rows_of_dense_and_sparse(form, index):
    X = np.where(np.arange(28).reshape(7, 4) % 3 == 0, 0.7, 0.0)
    X[4] = 0.0
    rows = rows_of(form(X), index)
    dense = rows.toarray() if sparse.issparse(rows) else rows
    assert_array_equal(dense, X[index])
    assert type(rows) is type(form(X))


def test_slices_of_sparse_rows_are_views():
    X = sparse.random(50, 9, 0.4, format="csr", random_state=0)
    rows = rows_of(X, slice(10, 30))
    assert np.shares_memory(rows.data, X.data)
    assert np.shares_memory(rows.indices, X.indices)
