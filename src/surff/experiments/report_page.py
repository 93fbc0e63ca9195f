"""One page from stored results that works offline: `surff report`.

Every CSV file that a command has written becomes a section: charts of the value and of
the time against the number of frequencies, one per data set, the printed accuracies
beside the computed ones where there are some, and the whole table. Altair draws; its
JavaScript is in the page, and so is all else.
"""

from __future__ import annotations

import html
import json
import math
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from surff.experiments.figures import STYLES
from surff.experiments.methods import NAMES
from surff.experiments.registry import REGISTRY

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["report_page", "write_report"]

_PAGE: dict[str, Any] = REGISTRY["page"]

#: Columns that a chart shows, the first that a file has, and what to call them.
VALUES = _PAGE["values"]

#: Columns with times, likewise.
TIMES = _PAGE["times"]

#: Names of commands by the beginnings of their files.
TITLES = _PAGE["titles"]

#: Colours of methods without a style of their own, in turn.
MORE_COLOURS = _PAGE["more_colours"]

#: Marks of Vega for those of matplotlib; methods of a family have one colour.
SHAPES = _PAGE["shapes"]


class Section(NamedTuple):
    """What the page shows of one file."""

    name: str
    title: str
    frame: pd.DataFrame
    charts: list[tuple[str, dict]]  # what it shows, in words, and its specification


def write_report(folder: Path | str, out: Path | str) -> Path:
    """Write the page of all results in a folder and its folders.

    Parameters
    ----------
    folder : path
        Where commands have written CSV files.
    out : path
        The page.

    Returns
    -------
    out : Path

    Raises
    ------
    ValueError
        If there are no results.
    ImportError
        Without the extra ``report``.
    """
    text, out = report_page(folder), Path(out)
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(text, encoding="utf-8")
    return out


def report_page(folder: Path | str) -> str:
    """Return the page as HTML; see `write_report`."""
    try:
        import altair
        import jinja2
        import vl_convert
    except ImportError as error:
        raise ImportError(
            "a report needs altair and vl-convert-python: pip install 'surff[report]'"
        ) from error
    folder = Path(folder)
    sections = [
        section
        for path in sorted(folder.rglob("*.csv"))
        if (section := section_of(altair, path, folder)) is not None
    ]
    if not sections:
        raise ValueError(
            f"folder must hold CSV files that a command of surff has written, found "
            f"none in {folder}."
        )
    specs = {
        f"chart-{number}-{place}": spec
        for number, part in enumerate(sections)
        for place, (_, spec) in enumerate(part.charts)
    }
    environment = jinja2.Environment(keep_trailing_newline=True)
    environment.filters |= {"html": html.escape, "cell": cell_text}
    template = files("surff.experiments").joinpath("report_page.html")
    return environment.from_string(template.read_text(encoding="utf-8")).render(
        folder=folder.resolve().name,
        sections=sections,
        # "</" would end the script that holds it.
        specs=json.dumps(specs).replace("</", "<\\/"),
        libraries=vl_convert.javascript_bundle().replace("</script", "<\\/script"),
    )


def section_of(altair: Any, path: Path, folder: Path) -> Section | None:
    """Return the section of a file; None if no command has written it."""
    import pandas as pd

    frame = pd.read_csv(path)
    kind = path.stem.partition("-")[0]
    if kind not in TITLES:
        return None
    name = path.relative_to(folder).with_suffix("").as_posix()
    frame = frame.rename(columns={"task": "dataset"})
    charts = []
    if {"dataset", "method", "multiple"} <= {*frame.columns}:
        frame["method"] = [NAMES.get(key, key) for key in frame["method"]]
        for dataset, rows in frame.groupby("dataset", sort=False):
            for columns in (VALUES, TIMES):
                found = next((c for c in columns if c in rows), None)
                if found is not None and len(rows[found].dropna()):
                    label = columns[found]
                    chart = line_chart(altair, rows, found, label, columns is TIMES)
                    charts.append((f"{dataset}: {label}", chart))
            if "printed_accuracy" in rows and len(rows["printed_accuracy"].dropna()):
                charts.append((f"{dataset}: printed and computed", pairs(altair, rows)))
    return Section(name, TITLES[kind], frame, charts)


def colours(altair, methods):
    """Scale from method to colour, the same in all charts."""
    own = {NAMES.get(key, key): style["color"] for key, style in STYLES.items()}
    missing = [method for method in methods if method not in own]
    for number, method in enumerate(missing):
        own[method] = MORE_COLOURS[number % len(MORE_COLOURS)]
    return altair.Scale(domain=methods, range=[own[method] for method in methods])


def shapes(altair, methods):
    """Scale from method to mark, that of the pictures."""
    markers = {NAMES.get(key, key): style["marker"] for key, style in STYLES.items()}
    found = [SHAPES[markers.get(method, "o")] for method in methods]
    return altair.Scale(domain=methods, range=found)


def line_chart(altair: Any, rows: pd.DataFrame, value: str, label: str, log: bool):
    """Values against s, a line a method, with bars of one standard deviation.

    Methods without frequencies are level lines.
    """
    methods = list(dict.fromkeys(rows["method"]))
    toggle = altair.selection_point(fields=["method"], bind="legend", toggle="true")
    spread = "std" if value in ("accuracy", "score") else f"{value}_std"
    rows = rows.dropna(subset=[value]).copy()
    rows["low"] = rows[value] - rows.get(spread, 0.0)
    rows["high"] = rows[value] + rows.get(spread, 0.0)
    kept = [c for c in ("dataset", "method", "multiple", value, spread) if c in rows]
    kept += ["low", "high"]
    ticks = sorted({float(k) for k in rows["multiple"] if k > 0})
    x = altair.X("multiple:Q", title="frequencies over columns, s / d")
    x = x.scale(type="log", base=2).axis(values=ticks)
    y = altair.Y(f"{value}:Q", title=label)
    y = y.scale(type="log") if log else y.scale(zero=False)
    encoding = {
        "color": altair.Color("method:N", scale=colours(altair, methods), title=None),
        "opacity": altair.condition(toggle, altair.value(1.0), altair.value(0.08)),
    }
    tooltip = [altair.Tooltip(f"{c}:{_kind(rows[c])}") for c in kept[:-2]]
    sized = rows["multiple"] > 0
    level = altair.Chart(_data(altair, rows.loc[~sized, kept])).encode(**encoding)
    base = altair.Chart(_data(altair, rows.loc[sized, kept])).encode(x=x, **encoding)
    layers = []
    if not all(sized):
        rule = level.mark_rule(strokeDash=[6, 3], size=2)
        layers.append(rule.encode(y=y, tooltip=tooltip))
    if any(sized):
        low = altair.Y("low:Q", title=label)
        if not log and any(rows.loc[sized, "low"].notna()):
            layers.append(base.mark_rule().encode(y=low, y2="high:Q"))
        shape = altair.Shape("method:N", scale=shapes(altair, methods), title=None)
        layers.append(base.mark_line().encode(y=y))
        points = base.mark_point(filled=True, size=60)
        layers.append(points.encode(y=y, shape=shape, tooltip=tooltip))
    chart = altair.layer(*layers).add_params(toggle)
    return chart.properties(width="container", height=300).to_dict()


def _data(altair, rows):
    return altair.Data(values=json.loads(rows.to_json(orient="records")))


def pairs(altair: Any, rows: pd.DataFrame):
    """Computed accuracies against the printed ones, and the line where they agree."""
    rows = rows.dropna(subset=["printed_accuracy", "accuracy"])
    methods = list(dict.fromkeys(rows["method"]))
    columns = ["method", "multiple", "printed_accuracy", "accuracy", "deviation"]
    columns = [name for name in columns if name in rows]
    ends = rows[["printed_accuracy", "accuracy"]].to_numpy()
    line = altair.Chart(
        altair.Data(values=[{"a": float(v)} for v in (ends.min(), ends.max())])
    )
    points = altair.Chart(_data(altair, rows[columns])).encode(
        x=altair.X("printed_accuracy:Q", title="printed accuracy, %").scale(zero=False),
        y=altair.Y("accuracy:Q", title="computed accuracy, %").scale(zero=False),
        color=altair.Color("method:N", scale=colours(altair, methods), title=None),
        tooltip=[altair.Tooltip(f"{name}:{_kind(rows[name])}") for name in columns],
    )
    same = line.mark_line(strokeDash=[4, 4], color="#888").encode(x="a:Q", y="a:Q")
    chart = same + points.mark_point(size=60, filled=True)
    return chart.properties(width="container", height=300).to_dict()


def _kind(column):
    return "N" if column.dtype.kind not in "fi" else "Q"


def cell_text(value: Any) -> str:
    """Text of a cell: six digits of a float, nothing for NaN."""
    if isinstance(value, float):
        return "" if math.isnan(value) else f"{value:.6g}"
    return str(value)
