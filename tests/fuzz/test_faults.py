"""A short run of the faults that take no time."""

import subprocess
import sys
from pathlib import Path

import pytest


def test_files_that_change_in_a_fit(tmp_path):
    pytest.importorskip("pyarrow", reason="pyarrow is an extra: files")
    faults = pytest.importorskip("faults", reason="faults are made on POSIX alone")
    outcomes = set()
    for number in range(8):
        folder = tmp_path / str(number)
        folder.mkdir()
        outcomes.add(
            faults.changing_files(faults.np.random.default_rng(number), folder)
        )
    assert outcomes == {faults.RIGHT, faults.REFUSED}


def test_full_disks_and_no_memory():
    pytest.importorskip("skops", reason="skops is not installed (surff[persist])")
    pytest.importorskip("resource", reason="limits are those of POSIX")
    command = [sys.executable, "faults.py", "--n", "1", "--only"]
    done = subprocess.run(
        [*command, "full-disk-of-save", "out-of-memory"],
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 faults" in done.stdout
