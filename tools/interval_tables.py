"""Blocks of the pages on intervals and uncertainty, made from the stored trials.

`reproduction.py` writes them; ``benchmarks/interval_coverage.py`` and ``evidence.py``
run the trials.
"""

import itertools
from pathlib import Path

import numpy as np
from texts import groups, markdown, rows_of

from surff.experiments import MISSING, PUBLISHED

#: Nominal coverages in percent.
LEVELS = (80, 90, 95)

#: Kinds of features in the order of the tables.
METHODS = ("plain", "surrogate", "residual", "gradient", "auto")

#: Columns of the maps whose intervals are compared.
COLUMNS = 64


def off(rows: list[dict], kind: str) -> np.ndarray:
    """Points by which each task covers more than it says, shape (n_tasks, 3)."""
    of_task = groups(rows, "task").values()
    means = [np.mean([row[kind] for row in own], axis=0) for own in of_task]
    return 100.0 * np.array(means) - LEVELS


def levels(rows: list[dict], kind: str) -> list[str]:
    """Mean coverage of the tasks and the farthest task, of each level."""
    found = off(rows, kind)
    worst = found[np.abs(found).argmax(axis=0), np.arange(len(LEVELS))]
    means = found.mean(axis=0) + LEVELS
    return [f"{a:.1f} ({b:+.1f})" for a, b in zip(means, worst, strict=True)]


def coverage(root: Path) -> str:
    """Coverage and width of CV and split beside CV+, for every kind of features."""
    every = [row for row in rows_of(root, "intervals") if row["columns"] == COLUMNS]
    every.sort(key=lambda row: (METHODS.index(row["method"]), row["n"]))
    body = []
    found: dict[str, list[np.ndarray]] = {"default": [], "cv": [], "plus": []}
    for (method, n), own in groups(every, "method", "n").items():
        default = "cv" if method == "plain" else "split"
        ratio = np.mean([row[f"{default}_width"] / row["plus_width"] for row in own])
        n_tasks = len({row["task"] for row in own})
        shape = [method, f"{n:,}", f"{n_tasks}", f"{len(own)}"]
        kinds = (levels(own, kind) for kind in (default, "cv", "plus"))
        body.append([*shape, *itertools.chain(*kinds), f"{ratio:.3f}"])
        for name in found:
            found[name].append(off(own, default if name == "default" else name))
    names = "default", "CV", "CV+"
    head = [f"{name} {level} %" for name in names for level in LEVELS]
    header = ["features", "n", "tasks", "trials", *head, "width, default / CV+"]

    def said(name):
        parts = found[name]
        away = np.abs(np.concatenate(parts)).ravel()
        means = max(np.abs(part.mean(axis=0)).max() for part in parts)
        return (
            f"its means over tasks are off by {means:.1f} points at most, its farthest "
            f"task by {away.max():.1f}, and {np.sum(away > 4.0)} of {len(away)} cells "
            "by more than 4"
        )

    theirs = [row for row in every if "mapie" in row]
    away = max(row["mapie_off"] for row in theirs)
    return (
        f"{markdown(header, body, 2)}\n\n"
        f"The default: {said('default')}. CV: {said('cv')}. CV+: {said('plus')}. "
        f"MAPIE's CV+ on the same models of the same folds, in {len(theirs)} trials, "
        f"has the bounds of CV+ here to {away:.0e}: what it covers too much is a "
        "property of CV+."
    )


def deviations(root: Path) -> str:
    """Coverage of ``return_std`` where noise is Gaussian."""
    every = [row for row in rows_of(root, "intervals") if row["gaussian"]]
    every.sort(key=lambda r: (r["columns"], METHODS.index(r["method"]), r["n"]))
    body, far = [], {}
    for (columns, method, n), own in groups(every, "columns", "method", "n").items():
        shape = [f"{columns}", method, f"{n:,}", f"{len(own)}"]
        body.append([*shape, *levels(own, "std")])
        far.setdefault(columns, []).append(np.abs(off(own, "std")).max())
    header = ["columns", "features", "n", "trials", *(f"{level} %" for level in LEVELS)]
    said = ", ".join(f"{max(own):.1f} with {c} columns" for c, own in far.items())
    return f"{markdown(header, body, 3)}\n\nThe farthest task, in points: {said}."


def fit_ratios(root: Path) -> str:
    """Time of a fit with intervals over that of one without."""
    plain = [row for row in rows_of(root, "intervals") if "fit_ratio" in row]
    plain.sort(key=lambda r: (r["columns"], r["n"]))
    body = [
        [f"{columns}", f"{n:,}", f"{np.median([r['fit_ratio'] for r in own]):.2f}"]
        for (columns, n), own in groups(plain, "columns", "n").items()
    ]
    return markdown(["columns", "n", "fit with intervals / without"], body, 2)


#: Root mean square error and negative log density of Gaussian processes with a length
#: scale for each column: exact in single precision, and with inducing points (SVGP).
#: The misprint of an error on protein, .055, is left out.
MADDOX = {
    "pol": (0.117, -0.349, 0.140, -0.513),
    "elevators": (0.364, 0.515, 0.374, 0.437),
    "bike": (0.074, -0.371, 0.077, -1.020),
    "kin40k": (0.099, 0.235, 0.165, -0.327),
    "protein": (None, 0.980, 0.632, 0.964),
}


def evidence(root: Path) -> str:
    """Errors and densities of Gaussian processes by the evidence."""
    every = rows_of(root, "evidence")
    every.sort(key=lambda row: (row["n_train"], row["gammas"]))
    body = []
    for (name, gammas), own in groups(every, "set", "gammas").items():
        first = own[0]
        shape = [f"{first['n_train']:,}", f"{first['n_features']}", f"{len(own)}"]
        values = [_mean_and_deviation(own, key) for key in ("rmse", "nlpd")]
        seconds = np.median([row["seconds"] for row in own])
        body.append([name, gammas, *shape, *values, f"{seconds:.1f}"])
    header = ["set", "gammas", "rows", "inputs", "splits", "RMSE", "NLPD", "seconds"]
    return markdown(header, body, 2)


def _mean_and_deviation(rows, key):
    """Mean of a figure of some trials, and its deviation if there are two or more."""
    values = np.array([row[key] for row in rows])
    spread = f" ± {values.std():.3f}" if len(values) > 1 else ""
    return f"{values.mean():.3f}{spread}"


def published_processes(root: Path) -> str:
    """Errors and densities of this package's processes, and printed ones of others."""
    every = groups(rows_of(root, "evidence"), "set", "gammas")
    printed = {entry.method: entry.values for entry in PUBLISHED}
    exact, sdd = printed["exact GP"], printed["SDD"]

    def cell(pair):
        return " / ".join(
            MISSING if value is None else f"{value:.3f}" for value in pair
        )

    body = []
    for name in sorted(MADDOX | exact | sdd):
        row = [name]
        for gammas in ("auto", "columns"):
            own = every.get((name, gammas), [])
            means = [np.mean([r[k] for r in own]) for k in ("rmse", "nlpd") if own]
            row.append(cell(means) if own else MISSING)
        others = MADDOX.get(name, (None,) * 4)
        row += [
            cell(pair) if any(pair) else MISSING for pair in (others[:2], others[2:])
        ]
        row += [f"{one[name]:.3f}" if name in one else MISSING for one in (exact, sdd)]
        body.append(row)
    header = [
        "set",
        "here, one bandwidth",
        "here, one a column",
        "exact GP, Maddox et al.",
        "SVGP, Maddox et al.",
        "exact GP, Wang et al.",
        "SDD, Lin et al.",
    ]
    return markdown(header, body, 1)
