import subprocess
import sys

import numpy as np
import pytest

from surff.backend import check_buffer, compiled, divide_by_upper, syrk

NO_CACHE = """
from numba.core import caching
caching.CacheImpl._locator_classes = []
import numba
try:
    numba.njit(cache=True)(lambda: 1)
except RuntimeError as error:
    assert "cannot cache" in str(error)
else:
    raise AssertionError("numba found a folder for its cache")
from surff.backend import compiled
import surff.estimators

@compiled
def twice(x):
    return 2 * x

assert twice(3.0) == 6.0
"""


def test_without_a_folder_for_its_cache_everything_compiles_in_memory():
    done = subprocess.run(
        [sys.executable, "-c", NO_CACHE], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_other_errors_of_the_compiler_are_not_hidden():
    with pytest.raises(Exception, match="not a function"):
        compiled(3)


def test_only_fused_multiply_adds_may_be_asked_for():
    function = compiled(lambda x: x, contract=True)
    assert function.targetoptions["fastmath"] == {"contract"}
    assert not compiled(lambda x: x).targetoptions["fastmath"]


def test_a_buffer_that_fits_passes():
    check_buffer("P", np.zeros((2, 3)), (2, 3), np.float64, written=True)


def test_blas_refuses_what_it_may_not_write_to():
    matrix = np.zeros((2, 2), order="F")
    matrix.flags.writeable = False
    with pytest.raises(ValueError, match="gram must be writeable"):
        syrk(np.eye(2), matrix)
    rows = np.zeros((1, 2))
    rows.flags.writeable = False
    with pytest.raises(ValueError, match="rows must be"):
        divide_by_upper(rows, np.asfortranarray(np.eye(2)))
    with pytest.raises(ValueError, match="Z must be"):
        syrk(np.eye(2, dtype=int), np.zeros((2, 2), order="F"))
