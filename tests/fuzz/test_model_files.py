import subprocess
import sys
from pathlib import Path

import pytest


def test_damaged_model_files_are_refused_or_harmless():
    pytest.importorskip("skops", reason="skops is not installed (surff[persist])")
    pytest.importorskip("resource", reason="memory is measured on POSIX alone")
    script = Path(__file__).with_name("model_files.py")
    done = subprocess.run(
        [sys.executable, script, "--n", "400", "--seed", "1", "--seconds", "120"],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert " 0 faults" in f" {done.stdout}".replace("\n", " ")
