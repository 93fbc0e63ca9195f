"""Does the test suite notice? Ten faults, seeded one at a time in a copy of src/.

Usage: python tools/mutants.py [WORD ...]   (only the mutants whose name has a word)

Each line says whether the named tests failed on the fault; the exit status is the
number of faults that nobody noticed.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]


class Mutant(NamedTuple):
    """A fault: one text of a file replaced by another."""

    name: str
    file: str  # under src/surff
    old: str
    new: str
    tests: str  # under tests, those that should notice


# fmt: off
MUTANTS = [
    Mutant("scale 1 / s instead of 1 / sqrt(s)", "kernels/fourier.py",
           "scale = 1.0 / math.sqrt(self.n_frequencies)",
           "scale = 1.0 / self.n_frequencies", "kernels/test_fourier.py"),
    Mutant("target sums without weights", "linear/normal_equations.py",
           "self.target_sum += WY.T @ roots", "self.target_sum += WY.sum(axis=0)",
           "linear/test_normal_equations.py"),
    Mutant("sine of the other sign", "backend/trig.py",
           "-sin_value if np.int32(quadrant & INT2) else sin_value",
           "sin_value if np.int32(quadrant & INT2) else -sin_value",
           "backend/test_trig.py"),
    Mutant("one fold too few", "streaming/sample.py",
           "keys % np.uint64(n_folds)", "keys % np.uint64(n_folds - 1)",
           "streaming/test_passes.py"),
    Mutant("feature sums not merged", "linear/normal_equations.py",
           "self.feature_sum += sign * other.feature_sum", "pass",
           "linear/test_normal_equations.py"),
    Mutant("alpha of a fold by its number of rows", "linear/alpha_path.py",
           "(centred.gram, centred.moments, alphas)",
           "(centred.gram, centred.moments, np.multiply(alphas, equations.weight_sum))",
           "linear/test_alpha_path.py"),
    Mutant("importance weight q / p", "selection/resampling.py",
           "return indices, 1.0 / (len(probabilities) * probabilities[indices])",
           "return indices, len(probabilities) * probabilities[indices]",
           "selection/test_selectors.py"),
    Mutant("moments not shifted for the intercept", "linear/normal_equations.py",
           "moments -= np.outer(self.feature_sum, target_mean)", "pass",
           "linear/test_normal_equations.py"),
    Mutant("no degree of freedom for the intercept in GCV", "linear/alpha_path.py",
           " / shrunk, axis=0) + bool(fit_intercept)", " / shrunk, axis=0)",
           "estimators/test_ridge_selection.py"),
    Mutant("leverage of the cosine without its sine", "selection/leverage.py",
           "column_scores.reshape(2, -1).sum(axis=0)",
           "column_scores.reshape(2, -1)[0]",
           "selection/test_leverage.py selection/test_selectors.py"),
]
# fmt: on


def noticed(mutant, folder):
    """Whether the tests fail on the mutant, in a copy of the package."""
    package = Path(folder) / "src" / "surff"
    shutil.copytree(ROOT / "src" / "surff", package, dirs_exist_ok=True)
    path = package / mutant.file
    text = path.read_text()
    if mutant.old not in text:
        raise SystemExit(f"{mutant.name}: the text to replace is not in {mutant.file}")
    path.write_text(text.replace(mutant.old, mutant.new))
    tests = [str(ROOT / "tests" / name) for name in mutant.tests.split()]
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider"]
    environment = {**os.environ, "PYTHONPATH": str(package.parent)}
    run = subprocess.run(
        [*command, *tests], cwd=ROOT, env=environment, capture_output=True, check=False
    )
    if run.returncode > 1:
        raise SystemExit(run.stdout.decode())
    return run.returncode == 1


def main(words):
    """Print a line for each mutant; returns the number of those missed."""
    missed = 0
    for mutant in MUTANTS:
        if words and not any(word in mutant.name for word in words):
            continue
        with tempfile.TemporaryDirectory() as folder:
            caught = noticed(mutant, folder)
        missed += not caught
        print(f"{'caught' if caught else 'MISSED'}  {mutant.name}", flush=True)
    return missed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
