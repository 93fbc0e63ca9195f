import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import surff

ROOT = Path(__file__).resolve().parents[1]

EXTRAS = [
    "dask",
    "matplotlib",
    "pandas",
    "platformdirs",
    "polars",
    "pooch",
    "pyarrow",
    "rich",
    "skops",
    "torch",
    "tqdm",
    "typer",
]

WITHOUT_EXTRAS = f"""
import sys

asked = set()

class NotInstalled:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {EXTRAS}:
            asked.add(name)
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, NotInstalled())
import numpy as np
import surff
X = np.random.default_rng(0).normal(size=(60, 3))
features = surff.FourierFeatures(8, select="surrogate", random_state=0)
surff.KernelRidgeRegressor(features).fit(X, X[:, 0]).predict(X)
surff.KernelRidgeClassifier(features).fit(X, X[:, 0] > 0).predict(X)
# scikit-learn asks for others.
assert not asked & {{"dask", "matplotlib", "pooch", "skops", "torch", "typer"}}, asked
"""


def test_public_names():
    assert set(surff.__all__) <= set(dir(surff))
    for name in (
        "FourierFeatures",
        "KernelRidgeClassifier",
        "KernelRidgeRegressor",
        "RidgeLeverage",
        "SurrogateLeverage",
    ):
        assert name in surff.__all__


def test_type_checkers_see_the_hints():
    assert (Path(surff.__file__).parent / "py.typed").exists()


def test_works_without_any_extra():
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", WITHOUT_EXTRAS],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")


def test_dependencies_have_bounds():
    """Sk-extra 178: importing breaks with no version; the CI runs oldest and newest.

    Here: a lower bound for each dependency.
    """
    if not (ROOT / "pyproject.toml").exists():
        pytest.skip("the tests run without the source tree")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for dependency in project["dependencies"]:
        assert re.fullmatch(r"[\w-]+>=[\d.]+", dependency), dependency


def test_pure_python():
    """Falkon 2, 26, 49, 55, 60: nothing to compile."""
    package = Path(surff.__file__).parent
    assert not [
        path
        for pattern in ("*.so", "*.pyd", "*.c", "*.cpp", "*.pyx", "*.cu")
        for path in package.rglob(pattern)
    ]
