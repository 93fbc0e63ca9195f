"""Stored trials, and how tables and sentences of the pages write figures."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from surff.experiments import MISSING, Table


def rows_of(root: Path, name: str) -> list[dict]:
    """Stored trials of a directory of ``docs/results``."""
    text = (root / name / "trials.jsonl").read_text("utf-8")
    return [json.loads(line) for line in text.splitlines()]


def groups(rows: Iterable[dict], *names: str) -> dict[tuple, list[dict]]:
    """Rows by the values of some of their names, in the order of the rows."""
    found: dict[tuple, list[dict]] = {}
    for row in rows:
        found.setdefault(tuple(row[name] for name in names), []).append(row)
    return found


def gains(a: Mapping[int, float], b: Mapping[int, float]) -> list[float]:
    """Scores of the first less those of the second, of the trials that both have."""
    return [a[trial] - b[trial] for trial in a.keys() & b.keys()]


def markdown(header: list[str], body: list[list[str]], n_labels: int = 1) -> str:
    """A table as lines of Markdown."""
    return "\n".join(Table(header, body, n_labels=n_labels).markdown())


def p_text(p: float) -> str:
    """A p-value in a sentence."""
    return f"p = {p:.3f}" if p >= 0.001 else "p < 0.001"


def p_cell(p: float) -> str:
    """A p-value in a table, where there is one."""
    return MISSING if np.isnan(p) else p_text(p).removeprefix("p ").removeprefix("= ")


def size_text(multiple: int) -> str:
    """A number of frequencies."""
    return "d" if multiple == 1 else f"{multiple}d"
