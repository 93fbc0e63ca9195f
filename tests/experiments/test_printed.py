"""Printed cells: only those that are known, and a user's file over them."""

import pytest

from surff.experiments.methods import METHODS
from surff.experiments.printed import (
    EXPECTED_DEVIATION,
    PrintedCell,
    expected_deviation,
    printed_table,
)


def test_known_cells_and_no_others():
    cells = printed_table()
    assert len(cells) == 16
    assert cells["eeg", 128, "surrogate"] == PrintedCell(91.02, None)
    assert cells["cod-rna", 2, "surrogate"].accuracy == 90.1
    assert cells["covtype", 16, "leverage"].accuracy == 82.90
    assert ("eeg", 1, "rff") not in cells
    assert not any(method == "qmc" for _, _, method in cells)


def test_a_users_table_goes_over_the_known_cells(tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text(
        "\ufeffdataset,multiple,method,accuracy,std\n"
        "eeg,32,rff,70.5,0.25\nmagic04,1,qmc,71.5,\n",
        encoding="utf-8",
    )
    cells = printed_table(path)
    assert cells["eeg", 32, "rff"] == PrintedCell(70.5, 0.25)
    assert cells["magic04", 1, "qmc"] == PrintedCell(71.5, None)
    assert len(cells) == 17


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("egg,1,rff,70,", "mine.csv, line 2: dataset must be one of eeg, .*'egg'"),
        ("eeg,1,ours,70,", "line 2: method must be one of rff, qmc, .*'ours'"),
        ("eeg,0,rff,70,", "multiple must be an integer of at least 1, got '0'"),
        ("eeg,1.5,rff,70,", "multiple must be an integer of at least 1, got '1.5'"),
        ("eeg,1,rff,101,", "accuracy must be a number of percent, got '101'"),
        ("eeg,1,rff,nan,", "accuracy must be a number of percent, got 'nan'"),
        ("eeg,1,rff,,", "accuracy must be a number of percent, got ''"),
        ("eeg,1,rff,70,x", "std must be a number of percent, got 'x'"),
    ],
)
def test_a_bad_line_is_named(tmp_path, line, message):
    path = tmp_path / "mine.csv"
    path.write_text(f"dataset,multiple,method,accuracy,std\n{line}\n")
    with pytest.raises(ValueError, match=message):
        printed_table(path)


def test_a_file_with_other_columns_is_named(tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text("a,b\n")
    with pytest.raises(ValueError, match=r"mine.csv, line 1: .* got 'a,b'"):
        printed_table(path)
    path.write_text("")
    with pytest.raises(ValueError, match="line 1: the columns must be dataset"):
        printed_table(path)


def test_expected_deviation_of_every_column_of_the_paper():
    for dataset, cells in EXPECTED_DEVIATION.items():
        for method in METHODS:
            assert expected_deviation(dataset, method, "own") == cells[method, "own"]
    assert expected_deviation("eeg", "rff", "sorted") == 0.30
    assert expected_deviation("eeg", "leverage", "sorted") == 0.28
    assert expected_deviation("covtype", "surrogate", "sorted") is None
    assert expected_deviation("digits", "rff", "own") is None
