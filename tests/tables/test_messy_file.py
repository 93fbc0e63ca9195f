"""A file as people write them: everything at once that is odd and not wrong."""

import sys

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

import surff
import surff.tables

pytest.importorskip("pyarrow")


def write(path, n=600, seed=0):
    """Semicolons, decimal commas, a mark, Windows' line ends, quotes, dates, gaps."""
    rng = np.random.default_rng(seed)
    size = rng.normal(size=n)
    color = rng.choice(["rot", "grün", 'bl"au', ""], n)
    days = rng.integers(0, 365, n)
    y = np.sin(2 * size) + (color == "rot") + 0.3 * np.cos(2 * np.pi * days / 7)

    def number(value, digits=3):
        return f"{value:.{digits}f}".replace(".", ",")

    lines = ["Nr;größe;farbe;werk;tag;notiz;größe;ok;preis"]
    for i in range(n):
        day = pd.Timestamp("2021-01-01") + pd.Timedelta(days=int(days[i]))
        gap = rng.random() < 0.05
        cells = [
            str(i + 1),
            "" if gap else number(size[i]),
            '"' + color[i].replace('"', '""') + '"' if color[i] else "NA",
            "7",
            day.strftime("%d.%m.%Y"),
            '"alt;\r\nneu"' if i % 7 == 0 else "neu",
            number(rng.normal(), 2),
            ["True", "False"][i % 2],
            number(y[i], 4),
        ]
        lines.append(";".join(cells))
    path.write_bytes(("\ufeff" + "\r\n".join(lines) + "\r\n").encode())


def test_a_messy_file_is_fitted_and_predicted(tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules["surff.tables.fit"], "SIZES", (64,))
    write(tmp_path / "messy.csv")
    model = surff.fit(tmp_path / "messy.csv", target="preis", max_time=1e6)
    account = model.account
    assert account["rows"] == 600
    assert account["dialect"] == (
        "separator semicolon, decimal comma, encoding utf-8, a header line"
    )
    kinds = {name: line.split(",")[0] for name, line in account["made"].items()}
    assert kinds == {
        "Nr": "left out: row numbers",
        "größe": "numbers",
        "farbe": "3 categories",
        "werk": "left out: constant",
        "tag": "dates",
        "notiz": "2 categories; one-hot",
        "größe (2)": "numbers",
        "ok": "True and False as 1 and 0",
    }
    others = account["others"]
    assert account["score"] > others["HistGradientBoosting"] - 0.02
    assert account["score"] > others["linear"]


def test_a_second_file_is_predicted_as_in_memory(tmp_path, monkeypatch):
    pytest.importorskip("skops")
    monkeypatch.setattr(sys.modules["surff.tables.fit"], "SIZES", (16,))
    write(tmp_path / "messy.csv")
    write(tmp_path / "second.csv", 50, seed=1)
    model = surff.fit(tmp_path / "messy.csv", target="preis", compare=False)
    surff.save(model, tmp_path / "m.skops")
    again = surff.load(tmp_path / "m.skops")
    second = pd.read_csv(tmp_path / "second.csv", sep=";", decimal=",")
    second = second.rename(columns={"größe.1": "größe (2)"})
    source = surff.tables.table_for(again, tmp_path / "second.csv")
    ((values, _),) = surff.tables.predicted_blocks(again, source)
    assert_array_equal(values, model.predict(second))
