import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from surff import blocks
from surff.blocks import block_rows, row_blocks


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
