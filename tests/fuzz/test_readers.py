"""A short run of the fuzz harness of readers; the long one is by its command.

It runs in processes of its own: pyarrow takes memory for what a damaged length asks.
"""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pyarrow", reason="pyarrow is an extra: files")
pytest.importorskip("pandas", reason="pandas is not installed")
pytest.importorskip("resource", reason="memory is limited on POSIX alone")


def test_mutated_files_are_refused_by_name_or_read_as_others_read_them():
    done = subprocess.run(
        [sys.executable, Path(__file__).with_name("readers.py"), "--n", "150"],
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    counts = [
        ast.literal_eval(line.partition(": ")[2]) for line in done.stdout.splitlines()
    ]
    assert len(counts) == 3, done.stdout
    for outcomes in counts:
        # Both ways are taken often: the files are neither all broken nor all whole.
        assert set(outcomes) == {"same rows", "refused by name"}
        assert min(outcomes.values()) > 15
