"""Results survive being killed at any byte, and two processes writing at once."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from surff.experiments import store as store_module
from surff.experiments.store import KEY, ResultStore, StoreCorruptError, row_key


def make_row(trial=0, method="rff", **more):
    return {
        "protocol": "published",
        "dataset": "eeg",
        "weights": "own",
        "method": method,
        "multiple": 2,
        "trial": trial,
        "seed": 0,
        "accuracy": 0.1 + 0.2,
        **more,
    }


def test_rows_come_back_the_same(tmp_path):
    path = tmp_path / "new" / "results.jsonl"
    store = ResultStore(path)
    assert store.rows == []
    store.append([make_row(0), make_row(1, at_grid_end=["alpha"])])
    store.append([make_row(2)])
    again = ResultStore(path)
    assert again.rows == store.rows
    assert len(again) == 3
    assert again.rows[0]["accuracy"] == 0.1 + 0.2  # to the last bit
    assert row_key(make_row(1)) in again
    assert row_key(make_row(3)) not in again
    assert path.read_text().count("\n") == 3


def test_numpy_scalars_become_numbers(tmp_path):
    path = tmp_path / "results.jsonl"
    row = make_row(np.int64(4), accuracy=np.float64(0.5), counts=np.arange(2))
    store = ResultStore(path)
    store.append([row])
    assert store.rows == [make_row(4, accuracy=0.5, counts=[0, 1])]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (make_row(accuracy=float("nan")), "not JSON compliant"),
        (make_row(accuracy=object()), "cannot hold a object"),
        ({"protocol": "published"}, "'dataset' is missing"),
        (["protocol"], "must be a dict, got list"),
    ],
)
def test_bad_rows_are_refused_and_nothing_is_written(tmp_path, row, message):
    path = tmp_path / "results.jsonl"
    with pytest.raises(ValueError, match=message):
        ResultStore(path).append([make_row(), row])
    assert not path.exists()


def test_any_cut_of_the_file_is_mended(tmp_path, caplog):
    path = tmp_path / "results.jsonl"
    store = ResultStore(path)
    store.append([make_row(trial) for trial in range(3)])
    content = path.read_bytes()
    ends = [i + 1 for i, byte in enumerate(content) if byte == ord("\n")]
    near = {end + shift for end in (0, *ends) for shift in (-2, -1, 0, 1)}
    sizes = near.union(range(0, len(content), 41)) & set(range(len(content) + 1))
    for size in sorted(sizes):
        path.write_bytes(content[:size])
        caplog.clear()
        n_whole = sum(end <= size for end in ends)
        mended = ResultStore(path)
        assert mended.rows == store.rows[:n_whole]
        assert path.read_bytes() == content[: ends[n_whole - 1] if n_whole else 0]
        cut = size not in (0, *ends)
        assert bool(caplog.messages) == cut
        if cut:
            assert f"line {n_whole + 1} was cut short" in caplog.text
        mended.append(store.rows[n_whole:])
        assert path.read_bytes() == content


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"protocol": "publi', "line 2 is not a row"),
        ("", "line 2 is not a row"),
        ("[1, 2]", "must be a dict, got list"),
        ('{"protocol": "published"}', "'dataset' is missing"),
    ],
)
def test_other_damage_names_file_and_line(tmp_path, line, message):
    path = tmp_path / "results.jsonl"
    good = json.dumps(make_row())
    path.write_text(f"{good}\n{line}\n{good}\n")
    with pytest.raises(StoreCorruptError, match=message) as error:
        ResultStore(path)
    assert str(path) in str(error.value)
    assert path.read_text() == f"{good}\n{line}\n{good}\n"


def test_the_first_of_two_rows_with_one_key_counts(tmp_path):
    path = tmp_path / "results.jsonl"
    store = ResultStore(path)
    store.append([make_row(accuracy=0.5)])
    store.append([make_row(accuracy=0.75)])
    assert store.rows == ResultStore(path).rows == [make_row(accuracy=0.5)]


def test_a_full_disk_leaves_whole_lines(tmp_path, monkeypatch):
    path = tmp_path / "results.jsonl"
    store = ResultStore(path)
    store.append([make_row(0)])
    content = path.read_bytes()
    write = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: write(fd, data[:10]))
    with pytest.raises(OSError, match=r"only part of a row was .*results\.jsonl"):
        store.append([make_row(1)])
    assert path.read_bytes() == content
    assert len(store) == 1


APPEND = """
import importlib.util, json, sys
# The file alone: its package takes a second to import.
spec = importlib.util.spec_from_file_location("store", sys.argv[1])
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
store, row = module.ResultStore(sys.argv[2]), json.loads(sys.argv[3])
for trial in range(50):
    store.append([{**row, "trial": trial, "padding": "x" * 5000}])
"""


def test_two_processes_do_not_mix_their_lines(tmp_path):
    path = tmp_path / "results.jsonl"
    methods = ("rff", "qmc")
    command = [sys.executable, "-c", APPEND, store_module.__file__, path]
    processes = [
        subprocess.Popen([*command, json.dumps(make_row(method=method))])
        for method in methods
    ]
    for process in processes:
        assert process.wait(60) == 0
    keys = {row_key(row) for row in ResultStore(path).rows}
    assert len(keys) == 100
    assert {key[KEY.index("method")] for key in keys} == set(methods)


def test_a_line_cut_short_while_the_store_is_open_is_set_aside(tmp_path):
    path = tmp_path / "results.jsonl"
    store = ResultStore(path)
    store.append([make_row(0), make_row(1)])
    os.truncate(path, path.stat().st_size - 9)
    cut = path.read_bytes().splitlines()[1]
    store.append([make_row(2)])
    assert [row["trial"] for row in ResultStore(path).rows] == [0, 2]
    assert (tmp_path / "results.jsonl.broken").read_bytes() == cut + b"\n"
