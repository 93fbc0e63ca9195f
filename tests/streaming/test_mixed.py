"""Text files written anyhow, and files whose columns may hold anything."""

import bz2
import gzip
import lzma
import re
import zipfile

import numpy as np
import pandas as pd
import pytest

from surff.streaming import (
    ArrowTable,
    ColumnWidened,
    CsvTable,
    ParquetTable,
    SourceError,
    sniffed,
)

pytest.importorskip("pyarrow")


def read(source):
    """All rows of a source as a frame, and the targets."""
    while True:
        try:
            blocks = list(source)
            break
        except ColumnWidened:
            continue
    frame = pd.concat([block.X.to_pandas() for block in blocks], ignore_index=True)
    y = None
    if blocks[0].y is not None:
        y = np.concatenate([block.y for block in blocks])
    return frame, y


def write(tmp_path, text, name="t.csv", encoding="utf-8"):
    path = tmp_path / name
    path.write_bytes(text.encode(encoding) if isinstance(text, str) else text)
    return path


@pytest.mark.parametrize(
    ("text", "delimiter", "decimal", "names"),
    [
        ("a,b\n1.5,x\n2.5,y\n", ",", ".", None),
        ("a;b\n1,5;x\n2,5;y\n", ";", ",", None),
        ("a\tb\n1.5\tx, y\n2.5\ty, z\n", "\t", ".", None),
        ("a|b\n1|x\n2|y\n", "|", ".", None),
        ("1.5,2\n2.5,3\n", ",", ".", ["c1", "c2"]),
        ("a;b\n1;2\n3;4\n", ";", ".", None),
        ('a,b\n"1,5",2\n"3,5",4\n', ",", ".", None),
        ("\n\na,b\r\n1,2\r\n", ",", ".", None),
        ("a\n1\n2\n", ",", ".", None),
        ('text;n\n"one; two\nthree";1,5\n"x";2,5\n', ";", ",", None),
    ],
)
def test_how_a_file_is_written_is_guessed(tmp_path, text, delimiter, decimal, names):
    found = sniffed(write(tmp_path, text))
    assert found == (delimiter, decimal, "utf-8", names)


@pytest.mark.parametrize(
    ("encoding", "found"),
    [
        ("utf-8", "utf-8"),
        ("utf-8-sig", "utf-8"),
        ("cp1252", "cp1252"),
        ("utf-16", "utf-16"),
        ("utf-16-le", "utf-16-le"),
        ("utf-16-be", "utf-16-be"),
    ],
)
def test_the_encoding_is_guessed(tmp_path, encoding, found):
    path = write(tmp_path, "größe,farbe\n1.5,grün\n2.5,rot\n", encoding=encoding)
    source = CsvTable(path)
    assert source.dialect.encoding == found
    frame, _ = read(source)
    assert frame.to_dict("list") == {"größe": [1.5, 2.5], "farbe": ["grün", "rot"]}


def test_what_is_given_is_not_guessed(tmp_path):
    path = write(tmp_path, "1;2\n3;4\n")
    found = sniffed(path, delimiter=",", decimal=",", encoding="cp1252", header=True)
    assert found == (",", ",", "cp1252", None)
    assert "no header line (columns are called c1 to c2)" in str(sniffed(path))


@pytest.mark.parametrize("suffix", [".gz", ".xz", ".bz2", ".zip"])
def test_compressed_files(tmp_path, suffix):
    data, path = b"a,b\n1,x\n2,y\n", tmp_path / f"t.csv{suffix}"
    if suffix == ".zip":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("folder/t.csv", data)
    else:
        module = {".gz": gzip, ".xz": lzma, ".bz2": bz2}[suffix]
        path.write_bytes(module.compress(data))
    frame, y = read(CsvTable(path, "b"))
    assert frame["a"].tolist() == [1, 2]
    assert y.tolist() == ["x", "y"]


def test_an_archive_of_several_files_is_refused(tmp_path):
    path = tmp_path / "t.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.csv", "a\n1\n")
        archive.writestr("b.csv", "a\n1\n")
    with pytest.raises(SourceError, match=r"must hold one file, got 2: a\.csv, b\.csv"):
        CsvTable(path)


def test_what_columns_hold(tmp_path):
    rows = "n,t,ok,w,gone\n1.5,x,True,1,\n?,y,False,2,NA\n-,,NA,3,\n"
    source = CsvTable(write(tmp_path, rows))
    frame, _ = read(source)
    assert source.kinds["n"] == "number"
    assert frame["n"].isna().tolist() == [False, True, True]
    assert frame["t"].isna().tolist() == [False, False, True]
    assert source.kinds["ok"] == "truth"
    assert frame["gone"].isna().all()


def test_a_column_that_turns_out_to_be_text(tmp_path):
    lines = ["a,b"] + [f"{i},{i % 7}" for i in range(400)]
    lines += [f"{i},word{i % 5}" for i in range(400)]
    source = CsvTable(write(tmp_path, "\n".join(lines) + "\n"), text_bytes=500)
    with pytest.raises(ColumnWidened, match="column 'b' holds text"):
        list(source)
    frame, _ = read(source)
    assert frame["b"].tolist()[398:402] == ["6", "0", "word0", "word1"]
    assert frame["a"].tolist()[:3] == [0, 1, 2]


def test_a_few_cells_that_are_no_numbers_are_an_error_that_names_the_line(tmp_path):
    lines = ["a,b"] + [f"{i}.5,x" for i in range(100)]
    lines[57] = "12o.5,x"
    path = write(tmp_path, "\n".join(lines) + "\n")
    message = (
        f"{path}, line 58: column 'a' must hold numbers, got '12o.5'; correct it, "
        "count such cells as missing (missing=['12o.5'], --missing '12o.5'), or leave "
        "the column out (drop=['a'], --drop 'a')."
    )
    with pytest.raises(SourceError, match=re.escape(message)):
        list(CsvTable(path))
    frame, _ = read(CsvTable(path, missing=["12o.5"]))
    assert frame["a"].isna().sum() == 1


def test_known_kinds_are_kept(tmp_path):
    path = write(tmp_path, "zip,size\n123,1\n456,2\n")
    frame, _ = read(CsvTable(path, kinds={"zip": "text"}))
    assert frame["zip"].tolist() == ["123", "456"]
    path = write(tmp_path, "zip,size\n123,1\n456,two\n")
    with pytest.raises(SourceError, match="line 3: column 'size' must hold numbers"):
        read(CsvTable(path, kinds={"size": "number"}))


def test_a_header_that_is_there_twice(tmp_path):
    source = CsvTable(write(tmp_path, "a,b,a, a \n1,2,3,4\n5,6,7,8\n"), "a")
    assert source.feature_names == ["b", "a (2)", "a (3)"]
    frame, y = read(source)
    assert frame["a (2)"].tolist() == [3, 7]
    assert y.tolist() == [1, 5]


def test_rows_without_a_target_are_left_out_and_counted(tmp_path):
    path = write(tmp_path, "a,y\n1,2.5\n2,\n3,NA\n4,1.5\n5,x\n")
    source = CsvTable(path, "y")
    with pytest.raises(SourceError, match="line 6"):
        # Lines are those of the file, whatever was left out before.
        list(CsvTable(path, "y", kinds={"y": "number"}))
    path = write(tmp_path, "a,y\n1,2.5\n2,\n3,NA\n4,1.5\n")
    source = CsvTable(path, "y")
    (block,) = source
    assert block.y.tolist() == [2.5, 1.5]
    assert source.n_without_target == 2
    assert block.locate(1) == f"{path}, line 5"
    list(source)
    assert source.n_without_target == 2


@pytest.mark.parametrize("cls", [ParquetTable, ArrowTable])
def test_files_that_know_their_types(tmp_path, cls):
    import pyarrow as pa

    frame = pd.DataFrame(
        {
            "n": [1.5, None, 3.0],
            "t": pd.Categorical(["x", "y", "x"]),
            "when": pd.to_datetime(["2020-01-01", None, "2020-01-03"]),
            "y": [1.0, None, 2.0],
        }
    )
    data = tmp_path / "t.parquet"
    frame.to_parquet(data)
    if cls is ArrowTable:
        data = pa.Table.from_pandas(frame)
    source = cls(data, "y")
    found, y = read(source)
    assert y.tolist() == [1, 2]
    assert source.n_without_target == 1
    assert found["t"].tolist() == ["x", "x"]
    assert found["n"].tolist() == [1.5, 3.0]
