"""Fixtures for every test: where the data files are, and nothing outside is touched.

Tests of real data take the fixture ``real_data``. It finds the files in
``$SURFF_DATA``, or in ``../shared/data`` beside the repository, and skips the test
where there are none: a test run never downloads anything from outside. Tests of what
happens around the experiments take ``fake``, a protocol that costs nothing.
"""

import logging
import os
import zlib
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace

# SciPy and scikit-learn look at it when they are imported; older versions of SciPy have
# too little of it.
if tuple(map(int, version("scipy").split(".")[:2])) >= (1, 14):
    os.environ.setdefault("SCIPY_ARRAY_API", "1")

import numpy as np
import pytest
from hypothesis import settings
from threadpoolctl import threadpool_limits

from surff.backend import threads
from surff.datasets import DATASETS, load, status
from surff.datasets.store import resolve_part

# The same examples in every run, and no deadline: compilation and a busy machine are no
# failure.
settings.register_profile("surff", deadline=None, derandomize=True)
settings.load_profile("surff")

_SHARED_DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


@pytest.fixture(scope="session", autouse=True)
def _data_environment(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        if not os.environ.get("SURFF_DATA") and _SHARED_DATA.is_dir():
            patch.setenv("SURFF_DATA", str(_SHARED_DATA))
        patch.setenv("SURFF_CACHE", str(tmp_path_factory.mktemp("surff-cache")))
        yield


@pytest.fixture(autouse=True)
def _logger_as_it_was():
    """Commands let the library tell its steps; the next test is not to hear them."""
    logger, root = logging.getLogger("surff"), logging.getLogger()
    level, handlers = logger.level, root.handlers[:]
    yield
    logger.setLevel(level)
    root.handlers[:] = handlers


@pytest.fixture(scope="session", autouse=True)
def _one_thread():
    """Matrices are small, and several workers share the processors.

    Threads of BLAS would wait for one another; ours follow the limit, too. Tests of
    threads set a limit of their own, or take `two_threads`.
    """
    with threadpool_limits(1):
        yield


@pytest.fixture(scope="module")
def two_threads():
    """Sums and maps are made of two parts, one a thread.

    BLAS stays on one thread: its own would spin between the calls of every worker.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(threads, "_n_cpus", lambda: 2)
        patch.setattr(threads, "_trusted_limits", lambda: [2] * len(threads._blas()))
        patch.setattr(threads, "_owed", None)  # what a pass leaves goes with it
        patch.setattr(threads, "_set_blas_limits", lambda limits: None)
        yield


@pytest.fixture(scope="session")
def real_data():
    """Function ``(name, part=None) -> Dataset``: loaded once a session, read-only."""
    loaded = {}

    def get(name, part=None):
        if not status(name).found:
            pytest.skip(
                f"data set {name!r} not found: set SURFF_DATA to a directory that "
                "holds its files"
            )
        part = resolve_part(name, part)
        if (name, part) not in loaded:
            data = load(name, part, download=False)
            data.X.flags.writeable = data.y.flags.writeable = False
            loaded[name, part] = data
        return loaded[name, part]

    return get


class FakeProtocol:
    """Stands in for the protocols: accuracies from the seed, a log of the calls."""

    def __init__(self):
        self.calls = []
        self.loaded = []
        self.stop_before = None

    def load_problem(self, name):
        self.loaded.append(name)
        return SimpleNamespace(name=name)

    def __call__(self, problem, multiple, trial, methods, *, weights="own", seed):
        if len(self.calls) == self.stop_before:
            raise KeyboardInterrupt
        self.calls.append((problem.name, multiple, trial, tuple(methods)))
        return [
            self.row(problem.name, multiple, trial, method, weights, seed)
            for method in methods
        ]

    def row(self, dataset, multiple, trial, method, weights, seed):
        n_features = DATASETS[dataset].n_features
        key = f"{dataset} {multiple} {trial} {method} {seed}".encode()
        rng = np.random.default_rng(zlib.crc32(key))
        gain = 0.02 if method in ("leverage", "surrogate") else 0.0
        return {
            "protocol": "published",
            "dataset": dataset,
            "method": method,
            "multiple": multiple,
            "trial": trial,
            "weights": weights,
            "seed": seed,
            "n_frequencies": multiple * n_features,
            "accuracy": 0.7 + 0.02 * np.log2(multiple) + gain + 0.002 * rng.normal(),
            "alpha": 0.05,
            "gamma": 0.5,
            "generation_time": 1e-3 * multiple * (5.0 if method == "leverage" else 1.0),
            "n_train": 7490,
            "n_test": 157_410 if dataset == "cod-rna" else 7490,
            "at_grid_end": ["alpha"] if method == "rff" else [],
        }


@pytest.fixture
def fake(monkeypatch):
    """`FakeProtocol` in place of the protocol ``published`` and of loading data."""
    from surff.experiments import table2

    protocol = FakeProtocol()
    monkeypatch.setitem(table2.PROTOCOLS, "published", protocol)
    monkeypatch.setattr(table2, "load_problem", protocol.load_problem)
    return protocol


@pytest.fixture
def own_names():
    """Put tables of names that a test adds methods and tasks to back as they were."""
    from surff.experiments import benchmark, methods

    names = ("OWN", "LABELS", "NAMES", "BANDWIDTH_OF")
    tables = [getattr(methods, name) for name in names] + [benchmark.TASKS]
    before = [dict(table) for table in tables]
    yield
    for table, entries in zip(tables, before, strict=True):
        table.clear()
        table.update(entries)
