"""Broken files of every kind: the message names the file, the place and the cure."""

import gzip
import re
import sys
import zipfile

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import surff
import surff.tables
from surff.cli.commands import app

pytest.importorskip("pyarrow")

GOOD = ["x,kind,y"] + [f"{i}.5,{'ab'[i % 2]},{i % 9}.25" for i in range(60)]


def with_line(number, text):
    """The good file with another line, lines counted from 1."""
    lines = list(GOOD)
    lines[number - 1] = text
    return "\n".join(lines) + "\n"


def column(name, value):
    """The good file with other values in a column."""
    frame = pd.DataFrame(
        [line.split(",") for line in GOOD[1:]], columns=["x", "k", "y"]
    )
    frame[name] = [value(i) for i in range(len(frame))]
    return frame.to_csv(index=False)


def truncated_gzip():
    return gzip.compress(with_line(1, GOOD[0]).encode() * 50)[:300]


def two_files(path):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.csv", "a\n1\n")
        archive.writestr("b.csv", "a\n1\n")


def workbook(path):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("xl/workbook.xml", "<workbook/>")


def short_parquet(path):
    pd.DataFrame({"x": np.arange(100.0), "y": 1.0}).to_parquet(path)
    path.write_bytes(path.read_bytes()[:-200])


#: Name, content or what writes it, options, and what the message says after the file.
BROKEN = {
    "none": ("n.csv", None, {}, "there is no such file; check its name"),
    "empty": ("e.csv", "", {}, "the file is empty; give one with a header line"),
    "header alone": ("h.csv", "x,y\n", {}, "the table has no rows with a target"),
    "ragged": (
        "r.csv", with_line(41, "1.5,a"), {},
        r"line 41: a row must have 3 values, .* got 2; check delimiter=",
    ),
    "open quote": (
        "q.csv", with_line(7, '1.5,"a,2.25'), {},
        r"line 7: the row does not end within the file; close the quote",
    ),
    "word among numbers": (
        "w.csv", with_line(12, "1o.5,a,1.25"), {},
        r"line 12: column 'x' must hold numbers, got '1o.5'; correct it, count such "
        r"cells as missing .*--missing '1o.5'\), or leave the column out .*--drop 'x'",
    ),
    "infinity": (
        "i.csv", with_line(12, "inf,a,1.25"), {},
        r"line 12: column 'x' holds infinity .*: write such values as missing",
    ),
    "thousands": (
        "t.csv", column("x", lambda i: f"{i + 1}.{i + 100},50"), {},
        r"column 'x' holds numbers that are written for people, .*; write them without",
    ),
    "no target": ("y.csv", with_line(1, "x,kind,z"), {},
        "there is no column 'y'; there are 'x', 'kind', 'z'"),
    "one value": ("c.csv", column("y", lambda i: 1), {},
        "the target 'y' has the same value in every row, 1; name another column"),
    "gaps alone": ("g.csv", column("y", lambda i: ""), {},
        "the table has no rows with a target"),
    "names as target": (
        "m.csv", column("y", lambda i: f"word{i}"), {},
        "the target 'y' holds 60 different texts in 60 rows; name a column",
    ),
    "another encoding": (
        "l.csv", with_line(30, "1.5,\xe4,1.25").encode("latin-1"),
        {"encoding": "utf-8"}, r"the text is not utf-8 .*; give its encoding=",
    ),
    "cut short": ("z.csv.gz", truncated_gzip(), {}, "cannot be read: .*end"),
    "two in one": ("two.zip", two_files, {}, "must hold one file, got 2: .*; unpack"),
    "workbook": ("b.xlsx", workbook, {}, "a zip archive or an Excel workbook, .*save"),
    "half a Parquet file": ("p.parquet", short_parquet, {}, "cannot be read: "),
    "no Parquet file": ("o.parquet", "x,y\n1,2\n", {},
        "does not begin as parquet files do; .*Write it again, or rename it"),
}  # fmt: skip


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_file_says_where_and_what_helps(kind, tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules["surff.tables.fit"], "SIZES", (16,))
    name, content, options, message = BROKEN[kind]
    path = tmp_path / name
    if callable(content):
        content(path)
    elif content is not None:
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(ValueError, match=message) as caught:
        surff.fit(path, target="y", compare=False, **options)
    assert str(path) in str(caught.value)


def test_the_shell_says_the_same_in_one_line(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(with_line(12, "1o.5,a,1.25"))
    result = CliRunner().invoke(app, ["fit", str(path), "--target", "y"])
    assert result.exit_code == 2
    assert result.stdout == ""
    last = result.stderr.splitlines()[-1]
    assert re.match(rf"surff: {path}, line 12: column 'x' must hold numbers", last)


def test_cures_work(tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules["surff.tables.fit"], "SIZES", (16,))
    path = tmp_path / "t.csv"
    path.write_text(with_line(12, "1o.5,a,1.25"))
    whole = surff.fit(path, target="y", compare=False, missing=["1o.5"])
    assert whole.account["made"]["x"].startswith("numbers")
    whole = surff.fit(path, target="y", compare=False, drop=["x"])
    assert whole.account["made"]["x"] == "left out: as asked"
