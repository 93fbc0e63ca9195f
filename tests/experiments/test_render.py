"""Tables show the numbers of the rows, and captions the facts of the run."""

import csv
import io
import math

import pytest
from rich.console import Console

from surff.experiments import (
    METHODS,
    MULTIPLES,
    PrintedCell,
    Table,
    Table2,
    captions,
    format_seconds,
    picture_caption,
    summary_cells,
    table2_report,
    tex,
)

CONFIG = Table2(("eeg",), (1, 2), trials=3)
PRINTED = {("eeg", 2, "surrogate"): PrintedCell(80.0, None)}


def make_row(method="rff", multiple=1, trial=0, accuracy=0.7, seconds=1e-3, **more):
    return {
        "protocol": "published",
        "dataset": "eeg",
        "method": method,
        "multiple": multiple,
        "trial": trial,
        "weights": "own",
        "seed": 0,
        "n_frequencies": 14 * multiple,
        "accuracy": accuracy,
        "generation_time": seconds,
        "n_train": 7490,
        "n_test": 7490,
        "at_grid_end": [],
        **more,
    }


@pytest.fixture
def rows():
    """RFF and ours, three trials; ours ahead by 0.10, 0.11, 0.12 at s = 2d."""
    rows = []
    for trial, accuracy in enumerate((0.70, 0.71, 0.72)):
        rows += [
            make_row("rff", 1, trial, accuracy, 1e-3),
            make_row("surrogate", 1, trial, accuracy, 1e-3),
            make_row("rff", 2, trial, accuracy, 2e-3),
            make_row(
                "surrogate", 2, trial, accuracy + 0.1 + trial / 100, 0.5, at_grid_end=[]
            ),
        ]
    rows[0]["at_grid_end"] = ["alpha"]
    rows[4]["at_grid_end"] = ["alpha", "gamma"]
    return rows


def test_cells_boil_trials_down(rows):
    cells = summary_cells(rows, PRINTED)
    assert list(cells) == [
        ("eeg", 1, "rff"),
        ("eeg", 1, "surrogate"),
        ("eeg", 2, "rff"),
        ("eeg", 2, "surrogate"),
    ]
    ours, rff = cells["eeg", 2, "surrogate"], cells["eeg", 2, "rff"]
    assert ours.accuracy.mean == pytest.approx(82.0)
    assert ours.accuracy.std == pytest.approx(2.0)
    assert ours.deviation == pytest.approx(2.0)
    assert ours.ratio == pytest.approx(250.0)
    assert ours.bullet
    # t = 11 sqrt(3) with two degrees of freedom: p = 1 - t / sqrt(2 + t^2).
    assert ours.p_value == pytest.approx(1.0 - math.sqrt(363 / 365), rel=1e-6)
    assert rff.deviation is None
    assert not rff.bullet
    assert math.isnan(rff.p_value)
    assert not cells["eeg", 1, "surrogate"].bullet
    assert cells["eeg", 1, "rff"].at_grid_end == {"alpha": 2, "gamma": 1}


def test_only_weighted_methods_carry_a_bullet(rows):
    better = [
        row | {"method": name, "accuracy": row["accuracy"] + 0.2 + row["trial"] / 100}
        for row in rows
        if row["method"] == "rff"
        for name in ("qmc", "rff-wide", "leverage")
    ]
    cells = summary_cells(rows + better, {})
    bullets = {method for (_, multiple, method), c in cells.items() if c.bullet}
    assert bullets == {"leverage", "surrogate"}


def test_markdown(rows):
    text = table2_report(CONFIG, rows, PRINTED).markdown()
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert "# Table 2, protocol published" in lines
    assert "## eeg: accuracy in %" in lines
    assert "| s | | RFF | surrogate (paper) |" in lines
    assert "| 1d | accuracy | 71.00 ± 1.00 | 71.00 ± 1.00 |" in lines
    assert "| 2d | accuracy | 71.00 ± 1.00 | 82.00 ± 2.00 • |" in lines
    assert "| | paper | – | 80.00 (+2.00) |" in lines  # noqa: RUF001
    assert "| | time | 2.00 ms | 500 ms (250x) |" in lines
    assert "| MAD | here | – | 2.00 (1 cell) |" in lines  # noqa: RUF001
    assert "| | known | 0.30 | 0.57 |" in lines


def test_the_reference_belongs_to_the_published_protocol(rows):
    config = Table2(("eeg",), (1, 2), trials=3, protocol="fair")
    (table,) = table2_report(config, rows, PRINTED).tables
    assert table.rows[-1] == ["MAD", "here", "\N{EN DASH}", "2.00 (1 cell)"]


def test_latex(rows):
    text = table2_report(CONFIG, rows, PRINTED).latex_tables()
    lines = text.splitlines()
    assert (
        "2d & accuracy & 71.00 $\\pm$ 1.00 & 82.00 $\\pm$ 2.00 $\\bullet$ \\\\" in lines
    )
    assert " & paper & -- & 80.00 (+2.00) \\\\" in lines
    assert " & time & 2.00 ms & 500 ms (250x) \\\\" in lines
    assert "\\label{tab:table2-published-eeg}" in lines
    assert "paired t-test at 5 \\%" in text
    assert "\\{0.05, 0.1, 0.5, 1\\}" in text
    for name in ("table*", "tabular"):
        assert text.count(f"\\begin{{{name}}}") == text.count(f"\\end{{{name}}}") == 1
    assert text.count("\\midrule") == 3
    # Every row of a tabular has as many cells as its column specification.
    columns = text.split("\\begin{tabular}{")[1].index("}")
    body = text.split("\\midrule")[1].split("\\bottomrule")[0].strip()
    assert {line.count(" & ") + 1 for line in body.splitlines()} == {columns}


def test_special_characters_are_escaped():
    assert tex("a_b & 5 % ± – {x}") == (  # noqa: RUF001
        "a\\_b \\& 5 \\% $\\pm$ -- \\{x\\}"
    )


def test_csv_has_every_number(rows):
    text = table2_report(CONFIG, rows, PRINTED).data.csv()
    lines = list(csv.DictReader(io.StringIO(text)))
    assert len(lines) == 4
    assert lines[3] == {
        "protocol": "published",
        "weights": "own",
        "seed": "0",
        "dataset": "eeg",
        "multiple": "2",
        "n_frequencies": "28",
        "method": "surrogate",
        "trials": "3",
        "accuracy": "82",
        "std": "2",
        "printed": "80.0",
        "deviation": "2",
        "p_value": "0.00274349",
        "better_than_rff": "1",
        "generation_time": "0.5",
        "generation_ratio": "250",
        "at_grid_end": "",
    }
    assert lines[0]["printed"] == lines[0]["p_value"] == ""
    assert lines[0]["at_grid_end"] == "alpha:2 gamma:1"


def test_one_trial_has_no_spread_and_no_bullet():
    rows = [make_row("rff"), make_row("surrogate", accuracy=0.9)]
    config = Table2(("eeg",), (1,), trials=1)
    text = table2_report(config, rows, {}).markdown()
    assert "over 1 trial, seed 0" in text
    assert "70.00 |" in text
    assert "±" not in text
    assert "90.00 •" not in text


def test_a_missing_cell_is_a_dash():
    rows = [make_row("rff"), make_row("surrogate", multiple=2)]
    text = table2_report(CONFIG, rows, {}).markdown()
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert "| 1d | accuracy | 70.00 | – |" in lines  # noqa: RUF001
    assert "| 2d | accuracy | – | 70.00 |" in lines  # noqa: RUF001


@pytest.mark.parametrize(("ablation", "width"), [(False, 100), (True, 120)])
def test_the_terminal_table_fits(fake, ablation, width):
    config = Table2(("eeg", "covtype"), MULTIPLES, trials=10, ablation=ablation)
    rows = [
        fake.row(name, multiple, trial, method, "own", 0)
        | {"generation_time": 123.4 if method == "rff" else 0.9 * 123.4}
        for name in config.datasets
        for multiple in config.multiples_of(name)
        for trial in range(config.trials)
        for method in config.all_methods
    ]
    printed = {
        (name, multiple, method): PrintedCell(1.23, None)
        for name in config.datasets
        for multiple in MULTIPLES
        for method in METHODS
    }
    text = shown(table2_report(config, rows, printed).tables, width)
    assert "…" not in text
    assert max(len(line.rstrip()) for line in text.splitlines()) <= width
    assert "covtype: accuracy in %" in text
    assert "1.23 (+" in text
    assert "123 s" in text
    assert "111 s (0.90x)" in text
    assert ("as RFF" in text) == ablation


def shown(tables, width):
    """What a console of a width shows of tables."""
    console = Console(width=width, record=True, file=io.StringIO())
    for table in tables:
        table.show(console)
    return console.export_text()


@pytest.mark.parametrize("width", [10, 21, 24, 60, 1000])
def test_a_narrow_terminal_gets_whole_numbers_in_several_parts(width):
    numbers = [f"{1000003 * (i + 1)}.25" for i in range(6)]
    table = Table(["s", "", *"abcdef"], [["2d", "time", *numbers]], n_labels=2)
    text = shown([table], width)
    assert "…" not in text
    assert all(number in text for number in numbers)
    assert text.count("2d") == text.count("time") > (1 if width < 60 else 0)
    lines = [line.rstrip() for line in text.splitlines()]
    assert width < 21 or max(map(len, lines)) <= width


def text_of(config, rows):
    return " ".join(captions(config, rows))


def test_captions_state_protocol_weights_and_trials(rows):
    text = text_of(CONFIG, rows)
    assert "Protocol published" in text
    assert "Weights: own" in text
    assert "over 3 trials, seed 0" in text
    assert "eeg: d = 14, 7,490 rows to train, 7,490 to test; its four outlier" in text
    assert "outlier rows kept." in text
    by_weight = Table2(("eeg",), (1, 2), trials=3, weights="sorted")
    assert "Weights: sorted ascending" in text_of(by_weight, rows)
    fair = Table2(("eeg",), (1, 2), trials=3, protocol="fair")
    assert "outlier rows clipped at 10 interquartile ranges" in text_of(fair, rows)
    assert "Weights" not in text_of(fair, rows)
    literal = Table2(("eeg",), (1, 2), trials=3, protocol="literal")
    assert "Algorithm 1 as printed" in text_of(literal, rows)


def test_captions_state_what_stands_in_for_the_papers_rows():
    config = Table2(("cod-rna", "covtype"), (1,), trials=1)
    stand_in = make_row(dataset="cod-rna", n_test=157_410)
    assert "last 157,410 rows of cod-rna.t, which stand in" in text_of(
        config, [stand_in]
    )
    own = make_row(dataset="cod-rna", n_test=157_413)
    assert "tested on the paper's own test rows" in text_of(config, [own])
    covtype = make_row(dataset="covtype")
    assert "class 2 against the rest" in text_of(config, [covtype])


def test_captions_state_choices_at_the_end_of_a_grid(rows):
    sentences = picture_caption(CONFIG, rows)
    assert "The chosen alpha sat at an end of its grid in some fits: RFF 2 of 6." in (
        sentences
    )
    assert "The chosen gamma sat at an end of its grid in some fits: RFF 1 of 6." in (
        sentences
    )
    inside = [row | {"at_grid_end": []} for row in rows]
    assert captions(CONFIG, inside)[-1] == (
        "No chosen alpha or gamma sat at an end of its grid."
    )


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.000123, "0.12 ms"),
        (0.01234, "12.3 ms"),
        (0.9994, "999 ms"),
        (1.5, "1.50 s"),
        (123.4, "123 s"),
    ],
)
def test_times_have_three_digits(seconds, text):
    assert format_seconds(seconds) == text
