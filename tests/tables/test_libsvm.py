"""LIBSVM files as tables."""

import gzip
import re
import sys

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.datasets import dump_svmlight_file

import surff
import surff.tables
from surff.streaming import SourceError
from surff.tables import LibsvmTable, kind_of_file, open_table, table_for


@pytest.fixture
def written(tmp_path):
    """Write rows in LIBSVM's own form, columns counted from 1."""

    def write(X, y, name):
        dump_svmlight_file(X, y, str(tmp_path / name), zero_based=False)
        return tmp_path / name

    return write


def rows(n=200, seed=0):
    X = np.random.default_rng(seed).normal(size=(n, 4)).round(3)
    X[X < -0.5] = 0.0  # as sparse files are made for
    return X, np.where(np.sin(2 * X[:, 0]) + X[:, 2] > 0.5, 1, -1)


def table_of(source):
    (block,) = source
    return {name: column.values for name, column in block.X.items()}, block.y


def test_columns_are_dense_and_counted_from_one(written, tmp_path):
    X, y = rows(20)
    path = written(X, y, "t.svm")
    assert kind_of_file(path) == "libsvm"
    columns, found = table_of(open_table(path, "y"))
    assert [*columns] == ["x1", "x2", "x3", "x4"]
    assert_array_equal(np.column_stack([*columns.values()]), X)
    assert_array_equal(found, y)
    packed = tmp_path / "t.svm.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert kind_of_file(packed) == "libsvm"
    assert_array_equal(table_of(open_table(packed, "y"))[0]["x3"], X[:, 2])


def test_columns_that_are_asked_for_and_some_that_no_row_has(written):
    X, y = rows(20)
    columns, found = table_of(
        LibsvmTable(written(X, y, "t.svm"), features=["x3", "x9"])
    )
    assert found is None
    assert_array_equal(columns["x3"], X[:, 2])
    assert_array_equal(columns["x9"], 0.0)


def test_a_model_of_a_file_predicts_another_of_more_or_fewer_columns(
    written, monkeypatch
):
    monkeypatch.setattr(sys.modules["surff.tables.fit"], "SIZES", (32,))
    X, y = rows()
    path = written(X, y, "t.svm")
    model = surff.fit(path, target="y", compare=False, drop=["x4"])
    assert model.account["task"] == "classification"
    assert model.account["made"]["x4"] == "left out: as asked"
    assert model.account["score"] > 0.8
    names = ["x1", "x2", "x3"]
    assert [coder.name for coder in model.encoder.coders_] == names
    new = rows(30, seed=1)[0]
    for some in (np.hstack([new, new]), np.where(np.arange(4) < 2, new, 0.0)):
        source = table_for(model, written(some, np.zeros(30), "new.svm"))
        (block,) = source
        columns = surff.tables.Columns(
            (f"x{j + 1}", surff.tables.Column("number", some[:, j])) for j in range(3)
        )
        assert_array_equal(model.predict(block.X), model.predict(columns))


@pytest.mark.parametrize(
    ("text", "target", "message"),
    [
        ("1 1:2\n1 one:3\n", "y", "cannot be read as LIBSVM: .*; each line must be"),
        ("1 1:2\n", "label", "the target of a LIBSVM file is called y, got 'label'"),
        ("1 2001:2\n", "y", "has 2001 columns, more than 2000 that can be made dense"),
    ],
)
def test_what_cannot_be_used_is_refused_by_name(tmp_path, text, target, message):
    path = tmp_path / "t.libsvm"
    path.write_text(text)
    with pytest.raises(SourceError, match=f"^{re.escape(str(path))}.*{message}"):
        surff.fit(path, target=target)
