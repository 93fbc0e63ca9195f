"""The rules of the scripts in tools/, on this package and on broken ones."""

import importlib
import sys
from pathlib import Path

import pytest

TOOLS = Path(__file__).resolve().parents[1] / "tools"


@pytest.fixture
def tool(monkeypatch):
    """Return a script of tools/ as a module, by name."""
    monkeypatch.syspath_prepend(str(TOOLS))
    for name in ("rooms", "hints", "floors", "tag"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return importlib.import_module


def house(folder, files):
    """Write a package whose files are given by path; return its source folder."""
    source = folder / "src" / "surff"
    for name, text in files.items():
        path = source / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    for room in [path for path in source.iterdir() if path.is_dir()]:
        (room / "__init__.py").touch()
    return source


SOUND = {
    "__init__.py": "from surff.estimators import Model\n",
    "backend/arrays.py": "__all__ = ['on_host']\n",
    "kernels/fourier.py": "from surff.backend import on_host\n__all__ = ['features']\n",
    "estimators/ridge.py": "from surff.kernels import features\n__all__ = ['Model']\n",
}

BROKEN = {
    "wall": (
        {"backend/threads.py": "from surff.kernels import features\n"},
        "src/surff/backend/threads.py:1: backend may not import kernels",
    ),
    "wall in a function": (
        {"draws/base.py": "def f():\n    import surff.estimators\n"},
        "src/surff/draws/base.py:2: draws may not import estimators",
    ),
    "room by name": (
        {"draws/base.py": "from surff import linear\n", "linear/cg.py": ""},
        "src/surff/draws/base.py:1: draws may not import linear",
    ),
    "circle": (
        {"backend/threads.py": "from surff.kernels import features\n"},
        "a circle: backend -> kernels -> backend",
    ),
    "file": (
        {"kernels/warp.py": "from surff.backend.arrays import on_host\n"},
        "src/surff/kernels/warp.py:1: surff.backend.arrays is a file; "
        "import from its room",
    ),
    "long function": (
        {"kernels/warp.py": "def f():\n" + 60 * "    x = 1\n"},
        "src/surff/kernels/warp.py:1: f has 61 lines, more than 60",
    ),
    "large class": (
        {
            "kernels/warp.py": "class C:\n"
            + "".join(f"    def m{i}(self): ...\n" for i in range(19))
        },
        "src/surff/kernels/warp.py:1: C has 19 methods, more than 18",
    ),
    "name twice": (
        {"backend/threads.py": "__all__ = ['on_host']\n"},
        "src/surff/backend/threads.py: on_host is in the __all__ of arrays.py, too",
    ),
    "no room": (
        {"helpers.py": ""},
        "src/surff/helpers.py: neither a room nor __init__",
    ),
}


def test_this_package_is_sound(tool, capsys):
    assert tool("rooms").main([]) == 0, capsys.readouterr().err


def test_minimums_are_safe(tool):
    assert tool("floors").main() == 0


def test_sound_house_has_no_fault(tool, tmp_path):
    arrows, faults = tool("rooms").read(house(tmp_path, SOUND))
    assert arrows == [("estimators", "kernels"), ("kernels", "backend")]
    assert faults == []


@pytest.mark.parametrize("name", BROKEN)
def test_broken_house_is_found(tool, tmp_path, name):
    files, fault = BROKEN[name]
    _, faults = tool("rooms").read(house(tmp_path, SOUND | files))
    assert fault in faults


def test_docstring_does_not_count_as_length(tool, tmp_path):
    text = (
        'def f():\n    """One.\n' + 70 * "    more\n" + '    """\n' + 59 * "    x = 1\n"
    )
    source = house(tmp_path, SOUND | {"kernels/warp.py": text})
    assert tool("rooms").read(source)[1] == []


def test_walls_are_in_order(tool):
    above = []
    for room, allowed in tool("rooms").MAY_IMPORT.items():
        assert set(allowed) <= set(above), room
        above.append(room)


def test_implied_arrows_and_levels(tool):
    rooms = tool("rooms")
    arrows = [("a", "b"), ("a", "c"), ("b", "c"), ("a", "d")]
    assert [arrow for arrow in arrows if rooms.implied(arrow, arrows)] == [("a", "c")]
    assert rooms.levels(arrows, list("abcd")) == {"a": 2, "b": 1, "c": 0, "d": 1}


def test_missing_hints_are_named(tool, tmp_path):
    text = (
        "__all__ = ['C', 'f', 'g']\n"
        "def f(a, b: int) -> int: ...\n"
        "def g(*, a: int, **rest: int): ...\n"
        "def not_public(a): ...\n"
        "class C:\n"
        "    def __init__(self, a=1): ...\n"
        "    def _private(self, a): ...\n"
        "    @staticmethod\n"
        "    def made(a) -> None: ...\n"
    )
    source = house(tmp_path, SOUND | {"kernels/warp.py": text})
    found = tool("hints").missing_hints(source / "kernels" / "warp.py")
    assert [(item.name, item.what) for item in found] == [
        ("f", "a"),
        ("g", "return"),
        ("C.__init__", "a"),
        ("C.made", "a"),
    ]


@pytest.mark.parametrize("line", ["skops>=0.12", "skops", "tqdm>=4.66"])
def test_minimum_with_an_advisory_is_found(tool, line):
    assert list(tool("floors").unsafe({"dependencies": [line]}))


def test_minimum_without_an_advisory_passes(tool):
    project = {"optional-dependencies": {"a": ["skops>=0.13", "dask[array]>=2026.8"]}}
    assert list(tool("floors").unsafe(project)) == []


def test_newest_section_of_a_changelog(tool):
    newest = tool("tag").newest
    older = "## 0.2.0 (2026-01-31)\n\n- One.\n\n## 0.1.0\n"
    released = f"# Changelog\n\n## Unreleased\n\n{older}"
    assert newest(released) == ("0.2.0", "- One.")
    assert newest("# Changelog\n\n## Unreleased\n") == (None, None)
    with pytest.raises(ValueError, match="not empty"):
        newest("## Unreleased\n\n- Two.\n\n## 0.1.0\n")
