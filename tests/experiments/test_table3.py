"""The table of decay computes what it shows; the slopes approach the theory's."""

import csv
import math

import numpy as np
import pytest
from rich.console import Console

from surff.experiments import table3_report, table3_rows

SIZES = (1_000, 10_000, 31_623, 100_000, 1_000_000)


@pytest.fixture(scope="module")
def rows():
    return table3_rows(SIZES)


def test_features_follow_theorem_1(rows):
    for row in rows:
        d, root = row.dof.values, np.sqrt(row.sizes)
        leverage = 5.0 * d * np.log(16.0 * d) / 0.1
        surrogate = 5.0 * root * np.log(16.0 * d) / 0.1
        assert np.all(np.abs(row.leverage.values - leverage) <= 1.0)
        assert np.all(np.abs(row.surrogate.values - surrogate) <= 1.0)


def test_slopes_approach_the_theory(rows):
    # What is left of the constant at n = 10^6: d = c n^(1/8) - 1/2 is the worst.
    for row, tolerance in zip(rows, (0.003, 0.008, 0.02, 0.012), strict=True):
        for quantity in (row.dof, row.leverage, row.surrogate):
            assert quantity.slope == pytest.approx(quantity.theory_slope, abs=tolerance)
    powers = [row.dof.theory_slope for row in rows]
    assert powers[1:] == pytest.approx([0.25, 0.125, 0.5])
    # log n against log n over the last two decades: close to 1 / log n.
    assert 1 / math.log(1e6) < powers[0] < 1 / math.log(1e4)


def test_the_surrogate_asks_for_the_worst_case_whatever_the_decay(rows):
    slopes = [row.surrogate.slope for row in rows]
    assert min(slopes) > 0.5
    assert max(slopes) < 0.57


def test_orders_are_named(rows):
    assert [row.eigenvalues for row in rows] == ["exp(-i)", "i^(-2)", "i^(-4)", "1/i"]
    assert [row.dof.order for row in rows] == ["log n", "n^(1/4)", "n^(1/8)", "n^(1/2)"]
    assert rows[2].leverage.order == "n^(1/8) log n"
    body = table3_report(rows).tables[0].rows
    printed = [row[-1] for row in body if "print" in row[-1]]
    assert printed == ["log n log log n (print: log^2 n)"]


def test_files_hold_the_numbers(rows, tmp_path):
    paths = table3_report(rows).write(tmp_path / "new")
    assert [path.name for path in paths] == [
        f"table3.{suffix}" for suffix in ("md", "tex", "csv", "png", "svg")
    ]
    markdown, latex = (path.read_text("utf-8") for path in paths[:2])
    lines = [" ".join(line.split()) for line in markdown.splitlines()]
    line = next(line for line in lines if line.startswith("| i^(-2) | d |"))
    values = "6.4 | 11.7 | 21.3 | 38.2"  # the full decades
    assert line.startswith(f"| i^(-2) | d | {values} | 0.25")
    assert line.endswith("| 0.250 | n^(1/4) |")
    assert "n\\textasciicircum{}(1/4)" in latex
    assert latex.count("\\midrule") == 4
    with paths[2].open(newline="") as file:
        table = list(csv.DictReader(file))
    assert len(table) == 4 * 3 * 5
    assert float(table[2]["value"]) == pytest.approx(rows[0].dof.values[2], rel=1e-7)


def test_the_terminal_table_fits(rows):
    console = Console(width=100, record=True)
    table3_report(rows).show(console)
    text = console.export_text()
    assert "…" not in text
    assert "n = 1e6" in text
    assert "s surrogate" in text


@pytest.mark.parametrize("sizes", [(), (1000,), (1000, 1000), (10, 1000)])
def test_too_few_or_small_sizes_are_refused(sizes):
    with pytest.raises(ValueError, match=r"at least two numbers of at least 100, got"):
        table3_rows(sizes)
