"""One table in every form: terminal, Markdown, LaTeX and CSV.

A `Table` holds cells as text; a `Report` is what a command shows and writes: tables,
the sentences that explain them, the numbers in full and the pictures.
"""

from __future__ import annotations

import csv
import io
import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from surff.experiments.figures import save
from surff.experiments.statistics import LEVEL, Summary

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.console import Console

__all__ = [
    "MISSING",
    "Report",
    "Table",
    "format_marked",
    "format_seconds",
    "format_summary",
    "tex",
    "wide_console",
]

#: Stands for a cell that there is no number for.
MISSING = "\N{EN DASH}"

#: Columns of a console that is no terminal: more than any table has.
UNLIMITED = 100_000

_TEX = {
    "\\": "\\textbackslash{}",
    "^": "\\textasciicircum{}",
    "~": "\\textasciitilde{}",
    "%": "\\%",
    "&": "\\&",
    "#": "\\#",
    "_": "\\_",
    "{": "\\{",
    "}": "\\}",
    "±": "$\\pm$",
    "•": "$\\bullet$",
    "◦": "$\\circ$",
    MISSING: "--",
}


def format_seconds(seconds: float) -> str:
    """Write a time with three digits and its unit.

    Examples
    --------
    >>> format_seconds(0.01234), format_seconds(1.5)
    ('12.3 ms', '1.50 s')
    """
    value, unit = (seconds, "s") if seconds >= 1.0 else (1e3 * seconds, "ms")
    decimals = 2 if value < 10 else 1 if value < 100 else 0
    return f"{value:.{decimals}f} {unit}"


def format_summary(summary: Summary | None, mean: str, std: str = "") -> str:
    """Write a mean with its standard deviation.

    Parameters
    ----------
    summary : Summary or None
        None gives `MISSING`.
    mean, std : str
        Formats; without the second, or after one trial, the deviation is not written.

    Examples
    --------
    >>> format_summary(Summary(2.0, 0.5, 4), ".2f", ".2f")
    '2.00 ± 0.50'
    """
    if summary is None:
        return MISSING
    more = "" if not std or math.isnan(summary.std) else f" ± {summary.std:{std}}"
    return f"{summary.mean:{mean}}{more}"


def format_marked(cell: Any, reference: Any, field: str) -> str:
    """Write a mean with its standard deviation, marked if it differs from a reference.

    Parameters
    ----------
    cell, reference : cell or None
        Named tuples with a `Summary` in ``field``; ``cell.p_value`` is of their test.
    field : str
    """
    summary = cell and getattr(cell, field)
    text = format_summary(summary, ".2f", ".2f")
    if cell is None or reference is None or not cell.p_value < LEVEL:
        return text
    return f"{text} {'•' if summary.mean > getattr(reference, field).mean else '◦'}"


def tex(text: str) -> str:
    r"""Escape a text for LaTeX.

    Examples
    --------
    >>> tex("5 %")
    '5 \\%'
    """
    return "".join(_TEX.get(character, character) for character in text)


def wide_console() -> Console:
    """Console of the standard output that cuts nothing where it is no terminal."""
    from rich.console import Console

    return Console() if sys.stdout.isatty() else Console(width=UNLIMITED)


@dataclass(frozen=True)
class Table:
    """Cells as text, or as numbers for `csv`.

    Attributes
    ----------
    header : sequence of str
    rows : sequence of sequence
        Each as long as the header.
    title : str
    note : str
        A sentence before the table in Markdown.
    name : str
        Distinguishes the labels of several tables in LaTeX.
    section : int
        Rows between two rules; 0 for none.
    n_labels : int
        First columns that name a row: to the left, and repeated where a table is
        broken to fit a terminal.
    row_styles : sequence of str
        Styles of the rows of a section on the terminal.
    """

    header: Sequence[str]
    rows: Sequence[Sequence]
    title: str = ""
    note: str = ""
    name: str = ""
    section: int = 0
    n_labels: int = 1
    row_styles: Sequence[str] = ()

    def sections(self) -> Iterator[Sequence[Sequence]]:
        """Rows between two rules."""
        step = self.section or max(1, len(self.rows))
        for start in range(0, len(self.rows), step):
            yield self.rows[start : start + step]

    def csv(self, digits: int = 6) -> str:
        """Comma-separated values: floats with some digits, nothing for None and NaN."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(self.header)
        for row in self.rows:
            writer.writerow(_number(value, digits) for value in row)
        return out.getvalue()

    def markdown(self) -> list[str]:
        """Lines of the table, numbers to the right.

        Examples
        --------
        >>> Table(["s", "RFF"], [["2d", "70.1"]]).markdown()
        ['|  s |  RFF |', '|---:|-----:|', '| 2d | 70.1 |']
        """
        columns = zip(self.header, *self.rows, strict=True)
        widths = [max(map(len, column)) for column in columns]

        def line(values):
            padded = (v.rjust(w) for v, w in zip(values, widths, strict=True))
            return f"| {' | '.join(padded)} |"

        rule = "|".join("-" * (width + 1) + ":" for width in widths)
        return [line(self.header), f"|{rule}|", *map(line, self.rows)]

    def latex(self, label: str, caption: str) -> list[str]:
        """Lines of a ``table*`` as wide as the page.

        Parameters
        ----------
        label : str
            Without ``tab:``.
        caption : str
            Plain text.
        """

        def line(values):
            return f"{' & '.join(map(tex, values))} \\\\"

        columns = "l" * self.n_labels + "r" * (len(self.header) - self.n_labels)
        lines = [
            "\\begin{table*}",
            "\\centering",
            f"\\caption{{{tex(caption)}}}",
            f"\\label{{tab:{label}}}",
            "\\resizebox{\\textwidth}{!}{%",
            f"\\begin{{tabular}}{{{columns}}}",
            "\\toprule",
            line(self.header),
        ]
        for rows in self.sections():
            lines += ["\\midrule", *map(line, rows)]
        return [*lines, "\\bottomrule", "\\end{tabular}}", "\\end{table*}"]

    def show(self, console: Console) -> None:
        """Print the table, in several parts where the console is too narrow for one.

        No cell is cut: a part with a single column may be wider than the console.
        """
        unlimited = console.options.update(max_width=UNLIMITED)
        parts: list[list[int]] = [[]]
        for column in range(self.n_labels, len(self.header)):
            wider = self._rich([*parts[-1], column])
            needed = console.measure(wider, options=unlimited).maximum
            if parts[-1] and needed > console.width:
                parts.append([])
            parts[-1].append(column)
        width = console.width
        for columns in parts:
            part = self._rich(columns)
            needed = console.measure(part, options=unlimited).maximum
            console.width = max(width, needed)
            console.print(part, crop=False)
            console.width = width

    def _rich(self, columns: Sequence[int]):
        """The labels and some of the other columns."""
        from rich import box
        from rich.table import Table
        from rich.text import Text

        table = Table(
            title=self.title,
            title_justify="left",
            title_style="bold",
            box=box.SIMPLE_HEAD,
            padding=(0, 1, 0, 0),
            pad_edge=False,
            row_styles=self.row_styles,
        )
        columns = [*range(self.n_labels), *columns]
        for i in columns:
            left = i < self.n_labels
            name = Text(self.header[i].replace(", ", ",\n").replace(" (", "\n("))
            table.add_column(name, justify="left" if left else "right", no_wrap=True)
        for rows in self.sections():
            for row in rows:
                cells = (Text(row[i]) for i in columns)
                table.add_row(*cells, end_section=row is rows[-1])
        return table


def _number(value, digits):
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    return f"{value:.{digits}g}" if isinstance(value, float) else value


@dataclass(frozen=True)
class Report:
    """What a command shows and writes.

    Attributes
    ----------
    stem : str
        Of the names of the files.
    title : str
    tables : sequence of Table
        Their cells are text.
    captions : sequence of str
        Sentences that say what the tables show.
    data : Table
        Every number in full, for the CSV file.
    digits : int
        Of the numbers there.
    latex : str or None
        Label in LaTeX; None writes none.
    latex_captions : dict
        What the caption of a table there says after its title, in one sentence with it,
        by the table's name; `captions` go above as comments.
    figures : dict
        Maps the stem of a picture to a function that draws it.
    """

    stem: str
    title: str
    tables: Sequence[Table]
    captions: Sequence[str]
    data: Table
    digits: int = 6
    latex: str | None = None
    latex_captions: Mapping[str, str] = field(default_factory=dict)
    figures: Mapping[str, Callable[[], Figure]] = field(default_factory=dict)

    def show(self, console: Console) -> None:
        """Print the tables and the captions."""
        for table in self.tables:
            table.show(console)
        for sentence in self.captions:
            console.print(sentence, style="dim", highlight=False, markup=False)

    def markdown(self) -> str:
        """The page in Markdown."""
        lines = [f"# {self.title}", "", *(f"- {text}" for text in self.captions)]
        for table in self.tables:
            if table.title and table.title != self.title:
                lines += ["", f"## {table.title}"]
            lines += ["", *([table.note, ""] if table.note else []), *table.markdown()]
        return "\n".join(lines) + "\n"

    def latex_tables(self) -> str:
        r"""A ``table*`` for each table, with booktabs: ``\input`` them."""
        lines = ["% Needs \\usepackage{booktabs,graphicx}"]
        lines += [f"% {sentence}" for sentence in self.captions]
        for table in self.tables:
            label = "-".join(filter(None, (self.latex, table.name)))
            caption = f"{table.title}{self.latex_captions.get(table.name, '')}."
            lines += [*table.latex(label, caption), ""]
        return "\n".join(lines)

    def texts(self) -> dict[str, str]:
        """Content of the files but the pictures, by suffix."""
        texts = {".md": self.markdown()}
        if self.latex is not None:
            texts[".tex"] = self.latex_tables()
        return {**texts, ".csv": self.data.csv(self.digits)}

    def write(self, out: Path) -> list[Path]:
        """Write every file.

        Parameters
        ----------
        out : Path
            Directory; made if missing. Files of the same names are overwritten.

        Returns
        -------
        paths : list of Path
            Markdown, LaTeX where there is a label, CSV, then the pictures.
        """
        out.mkdir(parents=True, exist_ok=True)
        paths = []
        for suffix, text in self.texts().items():
            paths.append(out / f"{self.stem}{suffix}")
            paths[-1].write_text(text, encoding="utf-8")
        for stem, draw in self.figures.items():
            paths += save(draw(), out / stem)
        return paths
