"""Tables show the numbers of the rows, and captions the facts of the run."""

import csv
import io
import math
import shutil
import subprocess

import pytest
from rich.console import Console
from scipy import stats

from surff.experiments import (
    MULTIPLES,
    PrintedCell,
    Table,
    Table2,
    agreement,
    captions,
    format_seconds,
    picture_caption,
    summary_cells,
    table2,
    table2_report,
    tex,
)

CONFIG = Table2(("eeg",), (1, 2), trials=5)
PRINTED = {
    ("eeg", 1, "rff"): PrintedCell(70.0, 2.0, 0.02, 0.0, False),
    ("eeg", 2, "rff"): PrintedCell(71.5, 0.25, 0.02, 0.0, False),
    ("eeg", 2, "surrogate"): PrintedCell(80.0, 1.6, 0.05, 0.01, True),
}


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
    """RFF and the surrogate, five trials; ahead by 0.10, 0.11, ... 0.14 at s = 2d."""
    rows = []
    for trial, accuracy in enumerate((0.70, 0.71, 0.72, 0.70, 0.72)):
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


@pytest.fixture
def printed(monkeypatch):
    monkeypatch.setattr(table2, "printed_table", lambda: PRINTED)


def report_lines(config, rows):
    text = table2_report(config, rows).markdown()
    return [" ".join(line.split()) for line in text.splitlines()]


def test_cells_boil_trials_down(rows):
    cells = summary_cells(rows, PRINTED)
    assert list(cells) == [
        ("eeg", 1, "rff"),
        ("eeg", 1, "surrogate"),
        ("eeg", 2, "rff"),
        ("eeg", 2, "surrogate"),
    ]
    ours, rff = cells["eeg", 2, "surrogate"], cells["eeg", 2, "rff"]
    assert ours.accuracy.mean == pytest.approx(83.0)
    assert ours.accuracy.std == pytest.approx(math.sqrt((9 + 1 + 1 + 0 + 9) / 4))
    assert ours.deviation == pytest.approx(3.0)
    assert ours.ratio == pytest.approx(250.0)
    assert ours.printed_ratio == pytest.approx(2.5)
    # Differences 10 ... 14 points: t = 12 / sqrt(2.5 / 5), four degrees of freedom.
    expected = 2.0 * stats.t.sf(12.0 / math.sqrt(0.5), 4)
    assert ours.p_value == pytest.approx(expected, rel=1e-9)
    assert math.isnan(rff.p_value)
    assert cells["eeg", 1, "surrogate"].deviation is None
    assert cells["eeg", 1, "rff"].at_grid_end == {"alpha": 2, "gamma": 1}


def test_bullets_need_both_plain_methods(rows):
    assert not summary_cells(rows, {})["eeg", 2, "surrogate"].bullet  # no QMC to beat
    qmc = [row | {"method": "qmc"} for row in rows if row["method"] == "rff"]
    cells = summary_cells(rows + qmc, {})
    assert cells["eeg", 2, "surrogate"].bullet
    assert not cells["eeg", 1, "surrogate"].bullet
    good = [row | {"accuracy": 0.9} for row in qmc]
    assert not summary_cells(rows + good, {})["eeg", 2, "surrogate"].bullet


def test_halves_are_tested_with_the_correction_and_one_split_not_at_all(rows):
    fair = [row | {"protocol": "fair", "n_test": 14_980} for row in rows]
    found = summary_cells(fair, {})["eeg", 2, "surrogate"].p_value
    # Twice as many rows to test as to train: 1 / 5 + 2.
    expected = 2.0 * stats.t.sf(12.0 / math.sqrt(2.5 * 2.2), 4)
    assert found == pytest.approx(expected, rel=1e-9)
    one_split = [row | {"dataset": "cod-rna"} for row in fair]
    cell = summary_cells(one_split, {})["cod-rna", 2, "surrogate"]
    assert math.isnan(cell.p_value)
    assert not cell.bullet
    # The paper's own test is reproduced there, too.
    published = [row | {"dataset": "cod-rna"} for row in rows]
    assert summary_cells(published, {})["cod-rna", 2, "surrogate"].p_value < 0.01


def test_agreement_counts_cells_and_bullets(rows):
    qmc = [row | {"method": "qmc"} for row in rows if row["method"] == "rff"]
    cells = summary_cells(rows + qmc, PRINTED)
    found = agreement(cells)
    assert found.deviation == pytest.approx((1.0 + 0.5 + 3.0) / 3)
    assert (found.within, found.n_cells) == (1, 3)
    assert (found.same_bullets, found.n_bullets) == (1, 1)
    assert agreement(cells, "eeg", "rff").deviation == pytest.approx(0.75)
    assert agreement(cells, "magic04") is None


def test_only_weighted_methods_carry_a_bullet(rows):
    better = [
        row | {"method": name, "accuracy": row["accuracy"] + 0.2 + row["trial"] / 100}
        for row in rows
        if row["method"] == "rff"
        for name in ("rff-wide", "leverage")
    ]
    qmc = [row | {"method": "qmc"} for row in rows if row["method"] == "rff"]
    cells = summary_cells(rows + qmc + better, {})
    bullets = {method for (_, multiple, method), c in cells.items() if c.bullet}
    assert bullets == {"leverage", "surrogate"}


def test_markdown(rows, printed):
    lines = report_lines(CONFIG, rows)
    for line in (
        "# Table 2, protocol published",
        "## eeg: accuracy in %",
        "| s | | RFF | surrogate (paper) |",
        "| 1d | accuracy | 71.00 ± 1.00 | 71.00 ± 1.00 |",
        "| | paper | 70.00 ± 2.00 | – |",  # noqa: RUF001
        "| 2d | accuracy | 71.00 ± 1.00 | 83.00 ± 2.24 |",
        "| | paper | 71.50 ± 0.25 | 80.00 ± 1.60 • |",
        "| | difference | -0.50 (2.0 sd) | +3.00 (1.9 sd) |",
        "| | time | 2.00 ms | 500 ms (250x) |",
        "| | paper's time | 20.0 ms | 50.0 ms (2.5x) |",
        "| all | mean deviation | 0.75 | 3.00 |",
        "| | within 1 sd | 1 of 2 | 0 of 1 |",
        "| | same bullet | – | 0 of 1 |",  # noqa: RUF001
    ):
        assert line in lines


def test_a_data_set_that_is_not_the_papers_has_no_rows_of_it(rows):
    rows = [row | {"dataset": "digits"} for row in rows]
    config = Table2(("digits",), (1, 2), trials=5)
    (table,) = table2_report(config, rows).tables
    assert [row[1] for row in table.rows] == ["accuracy", "time"] * 2


def test_latex(rows, printed):
    text = table2_report(CONFIG, rows).latex_tables()
    lines = text.splitlines()
    assert "2d & accuracy & 71.00 $\\pm$ 1.00 & 83.00 $\\pm$ 2.24 \\\\" in lines
    assert " & paper & 71.50 $\\pm$ 0.25 & 80.00 $\\pm$ 1.60 $\\bullet$ \\\\" in lines
    assert " & paper & 70.00 $\\pm$ 2.00 & -- \\\\" in lines
    assert " & time & 2.00 ms & 500 ms (250x) \\\\" in lines
    assert "all & mean deviation & 0.75 & 3.00 \\\\" in lines
    assert "\\label{tab:table2-published-eeg}" in lines
    assert (
        "\\caption{eeg: accuracy in \\%, mean and standard deviation over 5 trials of "
        "the protocol published; $\\bullet$ weighted methods better than RFF and QMC "
        "(plain paired t-test, 5 \\%).}"
    ) in lines
    # What else there is to say is above, in comments.
    assert any(line.startswith("% Protocol published, the recipe") for line in lines)
    for name in ("table*", "tabular"):
        assert text.count(f"\\begin{{{name}}}") == text.count(f"\\end{{{name}}}") == 1
    assert text.count("\\midrule") == 3
    assert all(line.isascii() for line in lines if not line.startswith("%"))
    # Every row of a tabular has as many cells as its column specification.
    columns = text.split("\\begin{tabular}{")[1].index("}")
    body = text.split("\\midrule")[1].split("\\bottomrule")[0].strip()
    assert {line.count(" & ") + 1 for line in body.splitlines()} == {columns}


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="needs pdflatex")
def test_latex_compiles_in_a_paper(tmp_path, rows, printed):
    text = table2_report(CONFIG, rows).latex_tables()
    paper = "\\documentclass{article}", "\\usepackage{booktabs,graphicx}"
    body = "\\begin{document}", text, "\\end{document}"
    (tmp_path / "paper.tex").write_text("\n".join(paper + body), "utf-8")
    command = "pdflatex", "-interaction=nonstopmode", "-halt-on-error", "paper.tex"
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-500:]
    assert "Overfull" not in done.stdout


def test_one_split_has_no_test_in_latex(rows):
    rows = [row | {"dataset": "cod-rna", "protocol": "fair"} for row in rows]
    config = Table2(("cod-rna",), (1, 2), trials=5, protocol="fair")
    text = table2_report(config, rows).latex_tables()
    assert "over 5 trials of the protocol fair.}" in text


def test_special_characters_are_escaped():
    assert tex("a_b & 5 % ± – {x}") == (  # noqa: RUF001
        "a\\_b \\& 5 \\% $\\pm$ -- \\{x\\}"
    )


def test_csv_has_every_number(rows, printed):
    lines = list(csv.DictReader(io.StringIO(table2_report(CONFIG, rows).data.csv())))
    assert len(lines) == 4
    assert lines[3] == {
        "protocol": "published",
        "weights": "own",
        "seed": "0",
        "dataset": "eeg",
        "multiple": "2",
        "n_frequencies": "28",
        "method": "surrogate",
        "trials": "5",
        "accuracy": "83",
        "std": "2.23607",
        "p_value": "7.06935e-05",
        "bullet": "0",
        "generation_time": "0.5",
        "generation_ratio": "250",
        "at_grid_end": "",
        "deviation": "3",
        "printed_accuracy": "80",
        "printed_std": "1.6",
        "printed_seconds": "0.05",
        "printed_seconds_std": "0.01",
        "printed_bullet": "True",
        "printed_ratio": "2.5",
    }
    assert lines[1]["printed_accuracy"] == lines[0]["p_value"] == ""
    assert lines[0]["at_grid_end"] == "alpha:2 gamma:1"


@pytest.mark.parametrize("n_trials", [1, 4])
def test_few_trials_have_no_test(n_trials):
    rows = [
        make_row(method, trial=trial, accuracy=accuracy + trial / 1000)
        for trial in range(n_trials)
        for method, accuracy in (("rff", 0.7), ("qmc", 0.7), ("surrogate", 0.9))
    ]
    config = Table2(("eeg",), (1,), trials=n_trials)
    report = table2_report(config, rows)
    text = report.markdown()
    assert "no test with fewer than 5 trials" in text
    assert "t-test" not in text + report.latex_tables()
    accuracy = next(line for line in text.splitlines() if "accuracy |" in line)
    assert "•" not in accuracy
    assert ("±" in accuracy) == (n_trials > 1)


def test_a_missing_cell_is_a_dash():
    rows = [make_row("rff"), make_row("surrogate", multiple=2)]
    lines = report_lines(CONFIG, rows)
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
    text = shown(table2_report(config, rows).tables, width)
    assert "…" not in text
    assert max(len(line.rstrip()) for line in text.splitlines()) <= width
    assert "covtype: accuracy in %" in text
    assert "89.38 ± 0.32 •" in text
    assert "46.5 s (1.90x)" in text
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
    assert "plain paired t-tests at 5 %, which is the paper's test" in text
    assert "Weights: own" in text
    assert "over 5 trials, seed 0" in text
    assert "eeg: d = 14, 7,490 rows to train, 7,490 to test; its four outlier" in text
    assert "outlier rows kept." in text
    by_weight = Table2(("eeg",), (1, 2), trials=3, weights="sorted")
    assert "Weights: sorted ascending" in text_of(by_weight, rows)
    fair = Table2(("eeg",), (1, 2), trials=3, protocol="fair")
    assert "outlier rows clipped at 10 interquartile ranges" in text_of(fair, rows)
    assert "Weights" not in text_of(fair, rows)
    assert "corrected for random halves of the same rows" in text_of(fair, rows)
    one_split = [row | {"dataset": "cod-rna"} for row in rows]
    assert "none for cod-rna, whose trials have one split" in text_of(fair, one_split)
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
    assert "The chosen alpha sat at an end of its grid in some fits: RFF 2 of 10." in (
        sentences
    )
    assert "The chosen gamma sat at an end of its grid in some fits: RFF 1 of 10." in (
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
