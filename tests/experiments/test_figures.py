"""Pictures show the means of the rows, name their lines, and do not change."""

import re
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis.strategies import floats, lists
from matplotlib.text import Text
from numpy.testing import assert_allclose

from surff.experiments import LABELS, PrintedCell, Table2, table2_report
from surff.experiments.figures import (
    STYLES,
    contrast,
    ink,
    save,
    spread_out,
    table2_figure,
)

CONFIG = Table2(("eeg",), (1, 4, 16), trials=3, ablation=True)
PRINTED = {
    ("eeg", 4, "surrogate"): PrintedCell(80.5, 1.0, 0.03, 0.01, True),
    ("eeg", 64, "rff"): PrintedCell(79.0, 1.0, 0.03, 0.01, False),  # not a size shown
    ("magic04", 4, "rff"): PrintedCell(70.0, 1.0, 0.03, 0.01, False),
}


@pytest.fixture
def rows(fake):
    return [
        fake.row("eeg", multiple, trial, method, "own", 0)
        for multiple in CONFIG.multiples
        for trial in range(3)
        for method in CONFIG.all_methods
    ]


def test_lines_are_the_means(rows):
    accuracy, time = table2_figure(rows, PRINTED, "eeg", CONFIG).axes
    lines = [line for line in accuracy.lines if len(line.get_xdata()) == 3]
    assert len(lines) == 6
    for line, method in zip(lines, CONFIG.all_methods, strict=True):
        assert_allclose(line.get_xdata(), [1, 4, 16])
        means = [
            100
            * np.mean(
                [
                    row["accuracy"]
                    for row in rows
                    if (row["multiple"], row["method"]) == (m, method)
                ]
            )
            for m in CONFIG.multiples
        ]
        assert_allclose(line.get_ydata(), means, rtol=1e-12)
    assert len(time.lines) == 5  # the ablation has RFF's times; one cell is the paper's
    assert_allclose(time.lines[2].get_ydata(), [5e-3, 2e-2, 8e-2])
    assert time.get_yscale() == "log"


def test_printed_cells_are_hollow(rows):
    panels = table2_figure(rows, PRINTED, "eeg", CONFIG).axes
    for axes, value, title in zip(
        panels, (80.5, 0.03), ("Test accuracy, %", "Generation time, s"), strict=True
    ):
        (hollow,) = [line for line in axes.lines if line.get_fillstyle() == "none"]
        assert hollow.get_xdata() == [4]
        assert hollow.get_ydata() == [value]
        assert axes.get_title("left") == f"{title} (hollow: the paper's)"
    without = table2_figure(rows, {}, "eeg", CONFIG).axes[0]
    assert all(line.get_fillstyle() == "full" for line in without.lines)
    assert without.get_title("left") == "Test accuracy, %"


def test_every_line_is_named_in_its_colour_and_no_two_names_touch(rows):
    accuracy = table2_figure(rows, PRINTED, "eeg", CONFIG).axes[0]
    names = {text.get_text(): text for text in accuracy.texts}
    heights = []
    for line, method in zip(accuracy.lines, CONFIG.all_methods, strict=False):
        assert names[LABELS[method]].get_color() == ink(line.get_color())
        heights.append(names[LABELS[method]].xy[1])
    assert np.diff(sorted(heights)).min() > 0.06


def test_title_and_caption_tell_the_run(rows):
    figure = table2_report(CONFIG, rows).figures["table2-eeg"]()
    assert (
        figure.get_suptitle() == "EEG eye state (d = 14), protocol published, 3 trials"
    )
    caption = " ".join(figure.get_supxlabel().split())
    assert "four outlier rows kept" in caption
    assert "RFF 9 of 9" in caption


def test_one_trial_and_one_size_can_be_drawn(fake, tmp_path):
    rows = [fake.row("eeg", 1, 0, "rff", "own", 0)]
    figure = table2_figure(rows, {}, "eeg", Table2(("eeg",), (1,), trials=1))
    assert all(path.stat().st_size > 5000 for path in save(figure, tmp_path / "x"))


def test_files_are_the_same_each_time(rows, tmp_path):
    contents = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        figure = table2_figure(rows, PRINTED, "eeg", CONFIG)
        png, svg = save(figure, tmp_path / name / "table2-eeg")
        assert png.name == "table2-eeg.png"
        assert png.read_bytes().startswith(b"\x89PNG")
        assert svg.name == "table2-eeg.svg"
        assert b"<svg" in svg.read_bytes()
        contents.append((png.read_bytes(), svg.read_bytes()))
    assert contents[0] == contents[1]


@given(heights=lists(floats(0.0, 1.0), min_size=1, max_size=6))
def test_names_keep_their_order_and_distance(heights):
    heights = sorted(heights)
    placed = spread_out(heights, 0.1)
    assert np.all(np.diff(placed) >= 0.1 - 1e-9)
    assert placed[0] >= -1e-9
    assert placed[-1] <= 1.0 + 1e-9
    if len(heights) == 1 or min(np.diff(heights)) >= 0.1:
        assert_allclose(placed, heights, atol=1e-9)


def test_vectors_are_small_and_say_the_same_numbers(rows, tmp_path):
    figure = table2_figure(rows, PRINTED, "eeg", CONFIG)
    figure.axes[0].set_title("0.12345")
    _, svg = save(figure, tmp_path / "picture")
    assert svg.stat().st_size < 100_000
    text = svg.read_text("utf-8")
    assert ">0.12345<" in text
    ElementTree.fromstring(text)
    outside = re.sub(r">[^<]*<", "><", text)
    assert not re.search(r"\d\.\d{3}", outside)


def test_text_can_be_read_on_white(rows):
    assert {contrast(ink(style["color"])) >= 4.5 for style in STYLES.values()} == {True}
    assert ink("#0072B2") == pytest.approx((0, 0x72 / 255, 0xB2 / 255))  # as it is
    figure = table2_figure(rows, PRINTED, "eeg", CONFIG)
    texts = [text for text in figure.findobj(Text) if text.get_text()]
    assert len(texts) > 20
    assert min(contrast(text.get_color()) for text in texts) >= 4.5
