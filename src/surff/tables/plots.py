"""Pictures of a model on a table: predictions, confusion, importance."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["plot_evaluation", "plot_importance"]

#: Points of a scatter plot.
MOST_POINTS = 5000

#: Classes whose counts are written into the picture.
MOST_CLASSES = 30


#: Style of all pictures of surff.
STYLE = "surff.inspection.surff"

#: Share of a cell's colour from which on white can be read on it better than black.
DARK = 0.715


@contextlib.contextmanager
def picture(path: str | Path, width: float, height: float) -> Iterator[Any]:
    """Axes of a new picture, which is written at the end; no window is opened."""
    try:
        import matplotlib.style
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError(
            "pictures need matplotlib, which comes with the extra surff[cli]: pip "
            "install 'surff[cli]'"
        ) from error
    with matplotlib.style.context(STYLE):
        made = Figure(figsize=(width, height), layout="constrained")
        yield made.subplots()
        made.savefig(path, dpi=150)


def plot_evaluation(scores: Mapping[str, Any], path: str | Path) -> None:
    """Draw predictions against true values, or the confusion of classes.

    Parameters
    ----------
    scores : mapping
        From `evaluation`.
    path : path
        File to write, of any kind that matplotlib knows.
    """
    if "confusion" in scores:
        side = min(12.0, 3.5 + 0.35 * len(scores["confusion"]))
        with picture(path, side + 1, side) as axes:
            draw_confusion(axes, scores)
        return
    true, predicted = scores["true"], scores["predicted"]
    some = np.linspace(0, len(true) - 1, min(MOST_POINTS, len(true))).astype(int)
    ends = [min(true.min(), predicted.min()), max(true.max(), predicted.max())]
    with picture(path, 5.5, 5.0) as axes:
        axes.scatter(true[some], predicted[some], s=6, alpha=0.4, linewidths=0)
        axes.plot(ends, ends, color="0.4", linewidth=1)
        axes.set_aspect("equal")
        axes.locator_params(nbins=5)
        axes.set_xlabel("true value")
        axes.set_ylabel("predicted value")
        axes.set_title(f"R2 {scores['R2']:.3f} on {scores['rows']:,} rows")


def draw_confusion(axes: Any, scores: Mapping[str, Any]) -> None:
    """Draw counts of true and predicted classes, coloured by their shares."""
    counts = np.array(scores["confusion"], dtype=float)
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    image = axes.imshow(shares, cmap="Blues", vmin=0, vmax=1)
    axes.grid(visible=False)
    axes.figure.colorbar(image, ax=axes, label="share of the true class")
    if len(counts) <= MOST_CLASSES:
        for i, j in np.argwhere(counts):
            color = "white" if shares[i, j] > DARK else "black"
            text = f"{counts[i, j]:.0f}"
            axes.text(j, i, text, ha="center", va="center", color=color, fontsize=8)
    places = range(len(counts))
    axes.set_xticks(places, scores["classes"], rotation=90)
    axes.set_yticks(places, scores["classes"])
    axes.set_xlabel("predicted class")
    axes.set_ylabel("true class")
    axes.set_title(f"accuracy {scores['accuracy']:.3f} on {scores['rows']:,} rows")


def plot_importance(
    importance: Mapping[str, tuple[float, float]], path: str | Path, label: str
) -> None:
    """Draw the importance of columns, the largest first.

    Parameters
    ----------
    importance : mapping of str to (float, float)
        Importance and its standard error by column.
    path : path
        File to write.
    label : str
        What the importance is.
    """
    shown = dict(list(importance.items())[:30])
    places = np.arange(len(shown))[::-1]
    values, errors = np.array([*shown.values()]).T
    with picture(path, 6.5, 1.2 + 0.28 * len(shown)) as axes:
        axes.barh(places, values, xerr=errors, ecolor="0.4")
        axes.axvline(0.0, color="0.4", linewidth=0.8)
        axes.grid(visible=False, axis="y")
        axes.set_yticks(places, [*shown])
        axes.set_xlabel(label)
