"""Pictures of stored rows: accuracy and generation time against the number of features.

Nothing global is touched: figures are made without pyplot and drawn by Agg or as SVG,
the same bytes for the same rows.
"""

from __future__ import annotations

import itertools
import math
import re
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from surff.datasets import DATASETS
from surff.experiments.methods import ABLATION, NAMES
from surff.experiments.registry import REGISTRY
from surff.experiments.statistics import LEVEL, summarise

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "STYLES",
    "approximation_figure",
    "benchmark_figure",
    "decay_figure",
    "figure1_figure",
    "methods_figure",
    "save",
    "table2_figure",
]

#: Lines of the methods: colours that are distinct in every common kind of colour
#: blindness, and markers and dashes for print.
STYLES: dict[str, dict[str, Any]] = REGISTRY["styles"]

_PICTURE: dict[str, Any] = REGISTRY["picture"]


def style_of(method: str) -> dict:
    """Line of a method."""
    return STYLES.get(method, _PICTURE["own_style"])


#: Style of all pictures, of the room `inspection`.
STYLE = "surff.inspection.surff"

#: Least contrast of text with the paper, as the accessibility guidelines WCAG 2 ask.
CONTRAST = 4.5


def contrast(colour: Any, paper: Any = "white") -> float:
    """Contrast of two colours, from 1 to 21.

    Examples
    --------
    >>> round(contrast("black"), 6), round(contrast("#0072B2"), 1)
    (21.0, 5.2)

    References
    ----------
    .. [1] Web Content Accessibility Guidelines 2.2, "contrast ratio".
    """
    from matplotlib.colors import to_rgb

    rgb = np.array([to_rgb(colour), to_rgb(paper)])
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    dark, light = np.sort(linear @ (0.2126, 0.7152, 0.0722))
    return float((light + 0.05) / (dark + 0.05))


def ink(colour: Any) -> Any:
    """A colour, darkened until text of it can be read on white."""
    from matplotlib.colors import to_rgb

    shades = (tuple(k / 20 * c for c in to_rgb(colour)) for k in range(20, -1, -1))
    return next(shade for shade in shades if contrast(shade) >= CONTRAST)


def table2_figure(
    rows: Sequence[dict],
    printed: Mapping[tuple[str, int, str], Any],
    dataset: str,
    config: Any,
    sentences: Sequence[str] = (),
) -> Figure:
    """Accuracy and generation time of one data set.

    Parameters
    ----------
    rows : sequence of dict
        Of one protocol and this data set.
    printed : dict
        As `surff.experiments.printed.printed_table` returns.
    dataset : str
    config : Table2
    sentences : sequence of str
        Its caption.

    Returns
    -------
    figure : matplotlib.figure.Figure
        Lines are means over trials with bands of one standard deviation (times:
        medians and quartiles), hollow markers are the paper's cells.
    """
    with _style():
        figure = _figure(8.6, 4.2, figure_title(dataset, config), sentences)
        left, right = figure.subplots(1, 2)
        draw_accuracy(left, rows, printed)
        plain = [row for row in rows if row["method"] not in ABLATION]
        draw_times(right, plain, printed)
    return figure


def methods_figure(cells: Mapping, dataset: str) -> Figure:
    """Gain over RFF of every method, in points, one mark per size.

    Parameters
    ----------
    cells : dict
        As `surff.experiments.render.summary_cells` returns.
    dataset : str

    Returns
    -------
    figure : matplotlib.figure.Figure
        Methods sorted by their mean gain; filled marks differ from RFF in the cells'
        t-test at 5 %.
    """
    found = {key: cell for key, cell in cells.items() if key[0] == dataset}
    sizes = list(dict.fromkeys(key[1] for key in found))
    gains = {}
    for (_, size, method), cell in found.items():
        if (reference := found.get((dataset, size, "rff"))) and method != "rff":
            gain = cell.accuracy.mean - reference.accuracy.mean
            gains.setdefault(method, {})[size] = gain, cell.p_value < LEVEL
    order = sorted(
        gains, key=lambda m: np.mean([gain for gain, _ in gains[m].values()])
    )
    marks = zip(sizes, itertools.cycle(_PICTURE["sizes"]), strict=False)
    styles = [style for _, style in marks]
    with _style():
        figure = _figure(
            6.4,
            1.4 + 0.22 * len(order),
            f"{dataset}: accuracy less RFF's at the same s",
            [REGISTRY["captions"]["methods"]["picture"]],
        )
        axes = figure.subplots()
        axes.axvline(0.0, color="#222222", linewidth=1.0)
        for style, size in zip(styles, sizes, strict=True):
            for y, method in enumerate(order):
                if size in gains[method]:
                    gain, differs = gains[method][size]
                    fill = "full" if differs else "none"
                    axes.plot(gain, y, **style, fillstyle=fill, linestyle="")
        axes.set_yticks(range(len(order)), [NAMES[method] for method in order])
        axes.set_xscale("symlog", linthresh=1.0)
        widest = max(abs(gain) for g in gains.values() for gain, _ in g.values())
        ticks = [tick for tick in (0.5, 1, 2, 5, 10, 20, 50) if tick < 1.2 * widest]
        ticks = [*(-tick for tick in ticks[::-1]), 0, *ticks]
        axes.set_xticks(ticks, [f"{tick:+g}" if tick else "0" for tick in ticks])
        axes.margins(x=0.08)
        for style, size in zip(styles, sizes, strict=True):
            axes.plot([], [], **style, linestyle="", label=f"s = {size}d")
        axes.legend(loc="lower right", frameon=True)
    return figure


#: Methods whose lines in the benchmark are named; the others are grey, but the best.
NAMED = REGISTRY["benchmark"]["named"]


def benchmark_figure(cells: Mapping, task: str, labels: Mapping[str, str]) -> Figure:
    """Score against the number of frequencies, the fit time and the model's bytes.

    Parameters
    ----------
    cells : dict
        As `surff.experiments.benchmark_table.benchmark_cells` returns.
    task : str
    labels : dict of str to str
        Methods in the order of drawing, with their printed names.

    Returns
    -------
    figure : matplotlib.figure.Figure
        Mean scores; methods without a number of frequencies are lines across the first
        panel and points in the others.
    """
    from matplotlib.lines import Line2D
    from matplotlib.ticker import EngFormatter, LogLocator, ScalarFormatter

    found = {method: [] for method in labels}
    for (name, _, method), cell in cells.items():
        if name == task:
            found[method].append(cell)
    found = {method: of_method for method, of_method in found.items() if of_method}
    best = max(found, key=lambda name: max(cell.score.mean for cell in found[name]))
    named = {name: labels[name] for name in found if name in (*NAMED, best)}
    with _style():
        figure = _figure(9.6, 3.9, f"{task}: score against size, time and bytes", [])
        panels = figure.subplots(1, 3, sharey=True)
        for axes, (title, field) in zip(
            panels, _PICTURE["benchmark_axes"].items(), strict=True
        ):
            for method, of_method in found.items():
                _draw_scores(axes, field, of_method, method, named.get(method))
            axes.set_xscale("log")
            axes.xaxis.set_minor_formatter("")
            axes.set_xlabel(title)
        panels[0].set_ylabel("score")
        sizes = {
            cell.n_frequencies for of_method in found.values() for cell in of_method
        }
        panels[0].set_xticks(sorted(sizes - {0}))
        panels[0].xaxis.set_major_formatter(ScalarFormatter())
        low, high = panels[2].get_xlim()
        if high < 100 * low:  # hardly a power of ten within
            steps = LogLocator(subs=(1.0, 3.0)).tick_values(low, high)
            panels[2].set_xticks([step for step in steps if low <= step <= high])
            panels[2].xaxis.set_major_formatter(EngFormatter(sep=" "))
        handles, names = panels[0].get_legend_handles_labels()
        if found.keys() - named.keys():
            handles.append(Line2D([], [], **_PICTURE["grey"]))
            names.append("other methods")
        figure.legend(handles, names, loc="outside right upper", fontsize=8)
    return figure


def _draw_scores(axes, field, cells, method, label):
    """One method's scores against a field of its cells; grey without a label."""
    style = _PICTURE["grey"] if label is None else style_of(method)
    if cells[0].n_frequencies == 0 and field == "n_frequencies":
        line = {name: value for name, value in style.items() if name != "marker"}
        axes.axhline(cells[0].score.mean, **line, label=label)
        return
    cells = sorted(cells, key=lambda cell: getattr(cell, field))
    values = [getattr(cell, field) for cell in cells]
    axes.plot(values, [cell.score.mean for cell in cells], **style, label=label)


def save(figure: Figure, stem: Path) -> list[Path]:
    """Write a figure as PNG and SVG.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
    stem : Path
        Path without the suffix.

    Returns
    -------
    paths : list of Path
    """
    png, svg = stem.with_name(f"{stem.name}.png"), stem.with_name(f"{stem.name}.svg")
    with _style():
        figure.savefig(png, dpi=160)
        figure.savefig(svg, metadata={"Date": None})
    # Hundredths of a point in the marks (not in the text), no indents, and round joins
    # of markers: fewer bytes, and hardly another picture.
    text = re.sub(r"(?<=\d\.\d\d)\d+(?=[^<>]*>)", "", svg.read_text("utf-8"))
    text = re.sub(r'; stroke-linejoin: miter| transform="rotate\(-0 [^"]*"', "", text)
    text = re.sub(r"\n +", "\n", text)
    svg.write_text(text, "utf-8")
    return [png, svg]


def _style():
    import matplotlib.style

    return matplotlib.style.context(STYLE)


def _figure(width, height, title, sentences):
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    figure.get_layout_engine().set(w_pad=0.1, h_pad=0.06)
    figure.suptitle(title, x=0.01, ha="left", fontsize=10.5)
    # 19 characters of this size fill an inch.
    caption = textwrap.fill(" ".join(sentences), int(19 * width))
    figure.supxlabel(caption, x=0.01, ha="left", fontsize=7, color="#555555")
    return figure


def series(rows, name, scale=1.0):
    """Values of one column by method and multiple.

    Returns
    -------
    values : dict
        Maps a method, in table order, to a dict from multiple, ascending, to the list
        of its values over trials.
    """
    found = {}
    for row in rows:
        sizes = found.setdefault(row["method"], {})
        sizes.setdefault(row["multiple"], []).append(scale * row[name])
    return {
        method: dict(sorted(found[method].items()))
        for method in NAMES
        if method in found
    }


def draw_means(axes, values, bands=True):
    """One line per method, optionally with a band of one standard deviation."""
    ends = {}
    for method, by_size in values.items():
        sizes = list(by_size)
        summaries = [summarise(trials) for trials in by_size.values()]
        means = np.array([summary.mean for summary in summaries])
        spread = np.nan_to_num([summary.std for summary in summaries])
        style = style_of(method)
        axes.plot(sizes, means, **style, zorder=3)
        if bands:
            low = np.maximum(means - spread, 0.1 * means)  # the axis may be logarithmic
            _band(axes, sizes, low, means + spread, style["color"])
        ends[method] = means[-1]
    return ends


def _band(axes, x, low, high, color):
    axes.fill_between(x, low, high, color=color, alpha=0.15, linewidth=0)


def draw_accuracy(axes, rows, printed):
    """Accuracy in percent against s, with the paper's cells as hollow markers."""
    values = series(rows, "accuracy", 100.0)
    ends = draw_means(axes, values)
    draw_printed(axes, rows, printed, "accuracy", "Test accuracy, %")
    finish(axes, rows, ends, "bands: one standard deviation")


def draw_printed(axes, rows, printed, field, title):
    """Title and the paper's cells as hollow markers."""
    keys = {(row["dataset"], row["multiple"], row["method"]) for row in rows}
    for key in sorted(keys & printed.keys()):
        style = style_of(key[2])
        hollow = {"markersize": 10.0, "fillstyle": "none", "markeredgewidth": 1.2}
        own = {"marker": style["marker"], "color": style["color"]}
        axes.plot(key[1], getattr(printed[key], field), **own, **hollow, zorder=4)
    shown = " (hollow: the paper's)" if keys & printed.keys() else ""
    axes.set_title(title + shown)


def draw_times(axes, rows, printed):
    """Generation time in seconds against s, both axes logarithmic."""
    ends = {}
    for method, by_size in series(rows, "generation_time").items():
        style = style_of(method)
        low, median, high = np.percentile(
            np.array(_padded(by_size.values())), [25, 50, 75], axis=1
        )
        axes.plot(list(by_size), median, **style, zorder=3)
        _band(axes, list(by_size), low, high, style["color"])
        ends[method] = median[-1]
    draw_printed(axes, rows, printed, "seconds", "Generation time, s")
    log_heights(axes)
    finish(axes, rows, ends, "bands: quartiles")


def _padded(lists):
    # Unequal numbers of trials: a list is repeated to the common multiple of lengths,
    # which leaves its quartiles as they are up to interpolation.
    length = math.lcm(*(len(values) for values in lists))
    return [values * (length // len(values)) for values in lists]


def log_heights(axes):
    """A logarithmic axis with 1, 2 and 5 of each decade in plain numbers."""
    from matplotlib.ticker import LogLocator, NullLocator

    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_locator(NullLocator())


def finish(axes, rows, ends, shown):
    """Ticks d, 2d, ... on a logarithmic axis, and the methods' names at their lines.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
    rows : sequence of dict
        Their multiples are the ticks.
    ends : dict
        As in `label_ends`.
    shown : str
        What is drawn, and its bands.
    """
    from matplotlib.ticker import FixedLocator, NullLocator

    multiples = sorted({row["multiple"] for row in rows})
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_locator(FixedLocator(multiples))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xticklabels("d" if m == 1 else f"{m}d" for m in multiples)
    axes.set_xlabel(f"frequencies s ({shown})")
    label_ends(axes, multiples[-1], ends)


def label_ends(axes, x, ends, gap=0.062):
    """Write each method's name to the right of its line, without overlaps.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
        Its limits are final.
    x : float
        End of the lines.
    ends : dict
        Maps a method to the height of the end of its line.
    gap : float, default=0.062
        Least distance of two names, as a fraction of the height.
    """
    bottom, top = axes.get_ylim()
    log = axes.get_yscale() == "log"
    transform = math.log if log else float
    low, high = transform(bottom), transform(top)
    methods = sorted(ends, key=ends.get)
    wanted = [(transform(ends[method]) - low) / (high - low) for method in methods]
    for method, height in zip(methods, spread_out(wanted, gap), strict=True):
        axes.annotate(
            NAMES[method],
            xy=(x, height),
            xycoords=("data", "axes fraction"),
            xytext=(7, 0),
            textcoords="offset points",
            va="center",
            color=ink(style_of(method)["color"]),
            fontsize=8.5,
            annotation_clip=False,
        )


def spread_out(heights: Sequence[float], gap: float) -> np.ndarray:
    """Move ascending heights in [0, 1] as little as needed to be ``gap`` apart.

    Examples
    --------
    >>> [float(h.round(2)) for h in spread_out([0.5, 0.5, 0.9], 0.1)]
    [0.45, 0.55, 0.9]
    """
    # Least squares under ordering constraints is isotonic regression of what is left
    # after the gaps are taken out.
    from sklearn.isotonic import isotonic_regression

    if not len(heights):
        return np.zeros(0)
    gaps = gap * np.arange(len(heights))
    room = np.asarray(heights) - gaps
    return isotonic_regression(room, y_min=0.0, y_max=1.0 - gaps[-1]) + gaps


def figure_title(dataset, config, what=None):
    """Title of a picture: data set, protocol or kernel, trials."""
    trials = "1 trial" if config.trials == 1 else f"{config.trials} trials"
    what = what or f"protocol {config.protocol}"
    data = DATASETS[dataset]
    return f"{data.title} (d = {data.n_features}), {what}, {trials}"


def figure1_figure(
    rows: Sequence[dict],
    errors: Sequence[dict],
    printed: Mapping[tuple[str, int, str], Any],
    config: Any,
    sentences: Sequence[str],
) -> Figure:
    """Kernel error, accuracy and generation time of one data set.

    Parameters
    ----------
    rows, errors : sequence of dict
        Accuracies with times, and errors.
    printed : dict
        As `surff.experiments.printed.printed_table` returns.
    config : Table2
        Of one data set.
    sentences : sequence of str
        Its caption.

    Returns
    -------
    figure : matplotlib.figure.Figure
    """
    with _style():
        figure = _figure(12.0, 4.3, figure_title(config.datasets[0], config), sentences)
        first, second, third = figure.subplots(1, 3)
        ends = draw_means(first, series(errors, "error"))
        log_heights(first)
        first.set_title("Relative kernel error")
        finish(first, rows, ends, "bands: one standard deviation")
        draw_accuracy(second, rows, printed)
        draw_times(third, rows, printed)
    return figure


def approximation_figure(
    rows: Sequence[dict], config: Any, sentences: Sequence[str]
) -> Figure:
    """Three kernel errors and the generation time of one data set.

    Parameters
    ----------
    rows : sequence of dict
        Those with errors.
    config : surff.experiments.approximation.Approximation
    sentences : sequence of str
        Its caption.

    Returns
    -------
    figure : matplotlib.figure.Figure
    """
    title = figure_title(config.dataset, config, f"kernel {config.kernel}")
    with _style():
        figure = _figure(11.0, 10.0, f"{title}: lower is better", sentences)
        *places, last = figure.subplots(2, 2).ravel()
        for axes, (name, text) in zip(places, _PICTURE["errors"].items(), strict=True):
            # Bands of so many methods would hide one another.
            ends = draw_means(axes, series(rows, name), bands=False)
            log_heights(axes)
            axes.set_title(text.format(alpha=config.alpha))
            finish(axes, rows, ends, "means")
        draw_times(last, rows, {})
    return figure


def decay_figure(rows: Sequence[Any], caption: str) -> Figure:
    """Degrees of freedom and numbers of features against n, by decay.

    Parameters
    ----------
    rows : list of surff.experiments.table3.DecayRow
    caption : str

    Returns
    -------
    figure : matplotlib.figure.Figure
    """
    with _style():
        figure = _figure(8.6, 4.4, "Eigenvalue decay and features needed", [caption])
        left, right = figure.subplots(1, 2)
        for row, style in zip(rows, STYLES.values(), strict=False):
            for axes, quantity in ((left, row.dof), (right, row.leverage)):
                axes.plot(row.sizes, quantity.values, **style, label=row.eigenvalues)
                axes.plot(row.sizes, quantity.order_values, "k:", linewidth=1, zorder=4)
        bounds = [row.surrogate.values for row in rows]
        right.fill_between(
            rows[0].sizes,
            np.min(bounds, axis=0),
            np.max(bounds, axis=0),
            color="#999999",
            alpha=0.4,
            linewidth=0,
            label="surrogate, all decays",
        )
        left.plot([], [], "k:", linewidth=1, label="order in theory")
        for axes, title in (
            (left, "Effective degrees of freedom d"),
            (right, "Features s for leverage sampling"),
        ):
            axes.set_xscale("log")
            axes.set_yscale("log")
            axes.set_title(title)
            axes.set_xlabel("rows n")
        left.legend(frameon=False, fontsize=8.5)
        right.legend(handles=right.collections, frameon=False, fontsize=8.5)
    return figure
