"""One call from a table to a model: what is chosen, said and refused."""

import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_array_equal
from sklearn.ensemble import HistGradientBoostingRegressor

import surff
from surff.streaming import ArrayRows, SourceError
from surff.tables import Account, ColumnsError
from surff.tables.account import verdict
from surff.tables.fit import WithoutRows, task_of

MODULE = sys.modules["surff.tables.fit"]


@pytest.fixture(autouse=True)
def _one_small_size(monkeypatch):
    monkeypatch.setattr(MODULE, "SIZES", (32,))


def table(n=240, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "x": rng.uniform(0, 6, n),
            "kind": rng.choice(["a", "b"], n),
            "note": [f"this is sentence number {i}" for i in range(n)],
        }
    )
    frame["y"] = np.sin(frame["x"]) + (frame["kind"] == "a")
    return frame


def test_a_model_and_its_account():
    frame = table()
    model = surff.fit(frame, target="y", max_time=1e6)
    account = model.account
    assert account["rows"] == 240
    assert account["columns"] == 3
    assert account["task"] == "regression"
    assert account["held_out_rows"] == 48
    assert account["score"] > 0.95
    assert set(account["others"]) == {"mean", "linear", "HistGradientBoosting"}
    assert account["made"]["note"].startswith("left out: sentences")
    assert account["seconds"] > 0
    text = str(account)
    for line in (
        "the table: 240 rows, 3 columns besides the target",
        "target 'y': regression (numbers)",
        "kind: 2 categories; one-hot",
        "R2 on 48 rows that were held out:",
    ):
        assert line in text
    assert np.corrcoef(model.predict(frame), frame["y"])[0, 1] > 0.97
    # All rows have been learned.
    assert model.model.equations_.weight_sum == 240


@pytest.mark.parametrize("convert", [pd.DataFrame, pl.DataFrame])
def test_classes(convert):
    frame = table()
    frame["y"] = np.where(frame["y"] > 1, "high", "low")
    model = surff.fit(convert(frame.to_dict("list")), target="y")
    assert model.account["metric"] == "accuracy"
    assert model.account["score"] > 0.85
    assert set(model.classes_) == {"high", "low"}
    assert "commonest class" in model.account["others"]
    assert set(model.predict(frame)) == {"high", "low"}


def test_a_file_gives_what_its_frame_gives(tmp_path):
    frame = table()
    frame.to_csv(tmp_path / "t.csv", index=False, sep=";", decimal=",")
    frame.to_parquet(tmp_path / "t.parquet")
    whole = surff.fit(frame, target="y", compare=False)
    for name in ("t.csv", "t.parquet"):
        model = surff.fit(tmp_path / name, target="y", compare=False)
        # The decimals of the text are those of the numbers.
        assert_array_equal(model.predict(frame), whole.predict(frame))
        found = str(model.account)
        assert ("separator semicolon, decimal comma" in found) == (name == "t.csv")


def test_a_saved_model_predicts_alike(tmp_path):
    pytest.importorskip("skops")
    frame = table()
    model = surff.fit(frame, target="y", compare=False)
    surff.save(model, tmp_path / "m.skops")
    again = surff.load(tmp_path / "m.skops")
    assert_array_equal(again.predict(frame), model.predict(frame))
    assert str(again.account) == str(model.account)


@pytest.mark.parametrize("classes", [False, True])
def test_a_large_table_is_streamed(monkeypatch, classes, tmp_path):
    monkeypatch.setattr(MODULE, "MEMORY_ROWS", 150)
    frame = table(600)
    if classes:
        frame["y"] = np.where(frame["y"] > 1, "high", "low")
    frame.to_csv(tmp_path / "t.csv", index=False)
    model = surff.fit(tmp_path / "t.csv", target="y", compare=False)
    account = model.account
    assert account["rows"] == 600
    assert account["held_out_rows"] == 30
    assert model.model.equations_.weight_sum == 600
    assert account["score"] > 0.8
    assert any("120 of the rows" in note for note in account["notes"])


def test_rows_are_left_out_by_their_numbers():
    X = np.arange(20.0).reshape(10, 2)
    source = ArrayRows(X, np.arange(10), block_rows=4)
    blocks = list(WithoutRows(source, np.array([0, 5, 9])))
    left = np.concatenate([block.y for block in blocks])
    assert left.tolist() == [1, 2, 3, 4, 6, 7, 8]
    assert_array_equal(np.concatenate([block.X for block in blocks]), X[left])


def test_rows_without_a_target_are_said():
    frame = table()
    frame.loc[:9, "y"] = np.nan
    account = surff.fit(frame, target="y", compare=False).account
    assert account["rows"] == 230
    assert "10 rows without a target were left out" in account["notes"]


@pytest.mark.parametrize(
    ("y", "task", "name", "said"),
    [
        (np.arange(300) / 7, "auto", "regression", "numbers"),
        (np.arange(300) % 3, "auto", "classification", "3 different whole numbers"),
        (np.arange(300.0) % 3, "auto", "classification", "3 different whole numbers"),
        (np.arange(300), "auto", "regression", "numbers"),
        (np.arange(300) % 3, "regression", "regression", "as task= says"),
        (np.arange(300) > 7, "auto", "classification", "True and False"),
        (np.array(["a", "b"] * 9), "auto", "classification", "text, 2 classes"),
    ],
)
def test_the_task_is_chosen_and_said(y, task, name, said):
    found = task_of(y, task, "y")
    assert found.name == name
    assert said in found.said


@pytest.mark.parametrize(
    ("change", "target", "options", "message"),
    [
        ({}, "z", {}, "no column 'z' to predict; there are 'x', 'kind'"),
        ({"y": 1}, "y", {}, "the target 'y' has the same value in every row, 1"),
        (
            {},
            "kind",
            {"task": "regression"},
            "holds text such as 'a', which regression",
        ),
        ({}, "note", {}, "240 different texts in 240 rows; name a column of classes"),
        ({"y": pd.Timestamp("2020-01-01")}, "y", {}, "the target 'y' holds dates"),
        ({}, "y", {"task": "clustering"}, "task must be one of auto"),
    ],
)
def test_what_is_refused(change, target, options, message):
    with pytest.raises(ValueError, match=message):
        surff.fit(table().assign(**change), target=target, **options)


def test_too_few_rows_and_wrong_arguments(tmp_path):
    with pytest.raises(ColumnsError, match="has 5 rows with a target; at least 10"):
        surff.fit(table()[:5], target="y")
    with pytest.raises(TypeError, match="delimiter is for files, and data is a frame"):
        surff.fit(table(), target="y", delimiter=";")
    with pytest.raises(SourceError, match="there is no such file"):
        surff.fit(tmp_path / "none.csv", target="y")


def test_time_is_bounded(monkeypatch):
    monkeypatch.setattr(MODULE, "SIZES", (32, 64, 128))
    account = surff.fit(table(), target="y", max_time=1e-3, compare=False).account
    assert [entry["features"] for entry in account["tried"]] == [32]
    assert "time was up: larger models were not tried (max_time=)" in account["notes"]


def test_a_pass_that_would_take_too_long_is_not_chosen(monkeypatch):
    monkeypatch.setattr(MODULE, "MEMORY_ROWS", 150)
    monkeypatch.setattr(MODULE, "SIZES", (32, 64))
    monkeypatch.setattr(MODULE.Work, "_whole_pass", lambda *_: 1e6)
    account = surff.fit(table(600), target="y", compare=False).account
    assert [entry["features"] for entry in account["tried"]] == [32]
    assert any("120 of the rows" in note for note in account["notes"])


def out_of_time(source, rows, until):
    del until
    return WithoutRows(source, rows, 0.0)


def interrupted(*args):
    raise KeyboardInterrupt


class Interrupted(WithoutRows):
    def __iter__(self):
        raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("without_rows", "note"),
    [
        (out_of_time, "time was up (max_time=): the model has"),
        (Interrupted, "stopped: what was"),
    ],
)
def test_a_pass_that_ends_early_leaves_the_model_of_the_sample(
    monkeypatch, without_rows, note
):
    monkeypatch.setattr(MODULE, "MEMORY_ROWS", 150)
    monkeypatch.setattr(MODULE, "WithoutRows", without_rows)
    model = surff.fit(table(600), target="y")
    notes = " ".join(model.account["notes"])
    assert note in notes
    assert "learned 150 of the 600 rows" in notes
    assert model.model.equations_.weight_sum == 150
    assert model.account["score"] > 0.8


def test_a_first_look_that_takes_too_long_ends(monkeypatch):
    monkeypatch.setattr(MODULE, "MEMORY_ROWS", 150)
    monkeypatch.setattr(MODULE, "BLOCK_ROWS", 100)
    account = surff.fit(table(600), target="y", max_time=1e-6, compare=False).account
    assert account["rows"] == 200
    assert "learned 150 of the first 200 rows" in " ".join(account["notes"])


def test_boosting_ends_in_time_and_is_else_what_it_is_alone():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    data = MODULE.Rows(X, X[:, 0] ** 2, X, X[:, 0] ** 2)
    name, cut = MODULE.boosted(HistGradientBoostingRegressor(max_iter=30), data, 0.0)
    assert (name, cut.n_iter_) == (
        "HistGradientBoosting (1 of 30 rounds, time was up)",
        1,
    )
    name, whole = MODULE.boosted(
        HistGradientBoostingRegressor(max_iter=30), data, np.inf
    )
    assert name == "HistGradientBoosting"
    alone = HistGradientBoostingRegressor(max_iter=30).fit(X, data.y)
    assert_array_equal(whole.predict(X), alone.predict(X))


def test_an_interrupt_keeps_the_best_so_far(monkeypatch):
    monkeypatch.setattr(MODULE, "SIZES", (16, 32))
    models = MODULE.Work._models_of

    def interrupted(self, size, data):
        if size == 32:
            raise KeyboardInterrupt
        return models(self, size, data)

    monkeypatch.setattr(MODULE.Work, "_models_of", interrupted)
    frame = table()
    account = surff.fit(frame, target="y").account
    assert {entry["features"] for entry in account["tried"]} == {16}
    assert account["others"] == {}
    assert "stopped: what was best until then is the model" in account["notes"]
    monkeypatch.setattr(MODULE, "SIZES", (32,))
    with pytest.raises(KeyboardInterrupt):
        surff.fit(frame, target="y")


def test_an_interrupt_of_the_comparison_keeps_the_model(monkeypatch):
    monkeypatch.setattr(MODULE, "boosted", interrupted)
    account = surff.fit(table(), target="y").account
    assert account["score"] > 0.8
    assert set(account["others"]) == {"mean", "linear"}
    assert "stopped: what was best until then is the model" in account["notes"]


def test_who_is_ahead_is_said():
    said = verdict("R2", 0.8, {"mean": 0.0, "HistGradientBoosting": 0.83})
    assert said == [
        "HistGradientBoosting is ahead by 0.030 in R2: prefer it for this table, or "
        "give surff more time (max_time=)."
    ]
    assert verdict("accuracy", 0.8, {"HistGradientBoosting": 0.809}) == []


def test_an_account_is_a_mapping():
    account = Account({"metric": "R2", "score": 0.5, "held_out_rows": 3})
    assert dict(account) == account.entries
    assert len(account) == 3
    assert repr(account).startswith("Account({'metric'")
    assert "surff  0.5000" in str(account)
    model = surff.table_model(surff.KernelRidgeRegressor())
    with pytest.raises(AttributeError, match=r"only models of surff\.fit have"):
        model.account  # noqa: B018
