import subprocess
import sys
from pathlib import Path

import surff

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

class NotInstalled:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {EXTRAS}:
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, NotInstalled())
import numpy as np
import surff
X = np.random.default_rng(0).normal(size=(60, 3))
features = surff.FourierFeatures(8, select="surrogate", random_state=0)
surff.KernelRidgeRegressor(features).fit(X, X[:, 0]).predict(X)
surff.KernelRidgeClassifier(features).fit(X, X[:, 0] > 0).predict(X)
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
