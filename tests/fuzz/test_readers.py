"""A short run of each fuzz harness of readers; the long one is by its command."""

import importlib.util
import warnings
from pathlib import Path

import pytest

pytest.importorskip("pyarrow", reason="pyarrow is an extra: files")
pytest.importorskip("pandas", reason="pandas is not installed")


def harness():
    path = Path(__file__).with_name("readers.py")
    spec = importlib.util.spec_from_file_location("fuzz_readers", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("reader", ["csv", "parquet", "arrow"])
def test_mutated_files_are_refused_by_name_or_read_as_others_read_them(
    reader, tmp_path
):
    fuzz, counts = harness(), {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number in range(150):
            outcome, what = fuzz.run_case(reader, 0, number, tmp_path)
            counts[outcome] = counts.get(outcome, 0) + 1
            assert outcome in fuzz.GOOD, f"case {number}: {what}"
    # Both ways are taken often: the files are neither all broken nor all whole.
    assert min(counts[good] for good in fuzz.GOOD) > 15
