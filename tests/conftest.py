"""Fixtures for every test: where the data files are, and nothing outside is touched.

Tests of real data take the fixture ``real_data``. It finds the files in
``$SURFF_DATA``, or in ``../shared/data`` beside the repository, and skips the test
where there are none: a test run never downloads anything from outside.
"""

import os
from pathlib import Path

import pytest
from hypothesis import settings

from surff.datasets import load, status
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
