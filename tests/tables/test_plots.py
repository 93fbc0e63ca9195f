"""Pictures of a model on a table: what is written into them can be read."""

import itertools

import numpy as np
import pytest

from surff.tables import plot_evaluation, plot_importance, plots

figures = pytest.importorskip("surff.experiments.figures")
matplotlib = pytest.importorskip("matplotlib")
pytest.importorskip("matplotlib.figure")


@pytest.fixture
def drawn(monkeypatch):
    """Figures that have been written."""
    found = []
    save = matplotlib.figure.Figure.savefig

    def kept(figure, *args, **options):
        found.append(figure)
        save(figure, *args, **options)

    monkeypatch.setattr(matplotlib.figure.Figure, "savefig", kept)
    return found


def test_counts_can_be_read_on_every_shade():
    shades = matplotlib.colormaps["Blues"](np.linspace(0, 1, 201))
    for share, shade in zip(np.linspace(0, 1, 201), shades, strict=True):
        colour = "white" if share > plots.DARK else "black"
        assert figures.contrast(colour, shade[:3]) >= 4.5


def test_confusion_and_predictions(drawn, tmp_path):
    counts = [[90, 10], [30, 70]]
    scores = {"confusion": counts, "classes": ["no", "yes"], "accuracy": 0.8}
    plot_evaluation({**scores, "rows": 200}, tmp_path / "c.png")
    y = np.linspace(-4e5, 4e5, 50)
    plot_evaluation(
        {"true": y, "predicted": y, "R2": 1.0, "rows": 50}, tmp_path / "p.png"
    )
    confusion, predicted = (figure.axes[0] for figure in drawn)
    assert [text.get_text() for text in confusion.texts] == ["90", "10", "30", "70"]
    assert [text.get_color() for text in confusion.texts] == [
        *("white", "black", "black", "black"),
    ]
    # No two labels of the axis overlap.
    drawn[1].canvas.draw()
    boxes = [
        label.get_window_extent()
        for label in predicted.get_xticklabels()
        if label.get_text()
    ]
    assert all(a.x1 < b.x0 for a, b in itertools.pairwise(boxes))


def test_the_largest_importance_is_on_top(drawn, tmp_path):
    found = {"x": (0.5, 0.1), "z": (0.2, 0.1)}
    plot_importance(found, tmp_path / "i.svg", "fall")
    (axes,) = drawn[0].axes
    assert [label.get_text() for label in axes.get_yticklabels()] == ["x", "z"]
    assert [bar.get_y() > 0 for bar in axes.patches] == [True, False]
    assert "<text" in (tmp_path / "i.svg").read_text()
