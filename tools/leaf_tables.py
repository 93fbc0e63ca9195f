"""The table of several trees and maps, made from the stored trials.

`reproduction.py` writes it; ``benchmarks/leaves.py`` runs the trials.
"""

import math
from pathlib import Path

import numpy as np
from texts import gains, groups, markdown, p_cell, p_text, rows_of, size_text

from surff.experiments import has_one_split, paired_p_value

#: What a label of ``benchmarks/leaves.py`` stands for.
KINDS = {
    "64": "64",
    "1024": "1,024",
    "auto": '`"auto"`',
    "bag1024": "4 bagged trees of 1,024",
    "bag16": "16 bagged trees of 256",
    "boost16": "16 boosted trees of 256",
    "boost8": "8 boosted trees of 256",
}

#: Kinds without leaves.
ALONE = {"none": "none", "peer": "HistGradientBoosting, tuned"}

#: Rows to test over rows to train, other than halves.
RATIOS = {
    "covtype, 7 classes": 0.25,
    "protein": 1 / 9,
    "kin40k": 1 / 9,
    "elevators": 1 / 9,
}

HEADER = [
    "",
    "s",
    "map",
    "leaves",
    "splits",
    "score",
    "RMSE",
    "gain",
    "p",
    "seconds",
    "MB",
]


#: Names of the trees that leaf heads are compared with.
TREES = {"boosting": "HistGradientBoosting", "xgboost": "XGBoost"}


def stored(root: Path) -> list[dict]:
    """Stored trials, with the kind of leaves and the number of maps."""
    rows = rows_of(root, "leaves")
    for row in rows:
        row.setdefault("cv", "5 folds")
        label, _, maps = row["leaves"].partition(", ")
        row["kind"] = label.partition(":")[0] if "boosting" not in label else "peer"
        row["maps"] = maps.partition(" ")[0] if maps.endswith("maps") else "1"
    return rows


def against_trees(root: Path, scores: dict) -> str:
    """Leaf heads less boosted trees on the same splits, where there are ten.

    ``scores`` maps (task, multiple, method) of the benchmark to the score by trial.
    """
    lines = []
    names = "task", "multiple", "passes", "cv", "kind", "maps"
    for key, own in groups(stored(root), *names).items():
        task, multiple, *_, kind, maps = key
        mine = {row["trial"]: row["score"] for row in own}
        if kind in ALONE or len(mine) < 10:
            continue
        told = []
        for method, name in TREES.items():
            theirs = scores.get((task, 0, method))
            if theirs is None:
                continue
            told.append(f"{name} {np.mean(gains(mine, theirs)):+.2f}")
            if not has_one_split(task):
                told[-1] += f", {p_text(paired_p_value(mine, theirs, 1.0))}"
        if told:
            what = f"{task}, {size_text(multiple)}, {label_of(kind, maps)}"
            lines.append(f"- {what}: {'; '.join(told)}.")
    return "\n".join(sorted(lines))


def label_of(kind: str, maps: str) -> str:
    """What the leaves are, in words."""
    if kind in ALONE:
        return ALONE[kind]
    return KINDS[kind] + (f", {maps} maps averaged" if maps != "1" else "")


def heads(root: Path) -> str:
    """Scores of leaf heads on learned maps, and of the maps alone."""
    rows = stored(root)
    body = []
    for key, own in groups(rows, "task", "multiple", "passes", "cv").items():
        scores = {
            kind: {row["trial"]: row["score"] for row in some}
            for kind, some in groups(own, "kind", "maps").items()
        }
        for kind, some in groups(own, "kind", "maps").items():
            body.append(_line(key, kind, some, scores))
    body.sort(key=lambda line: line[0])
    seen = None
    for line in body:
        seen, line[0] = line[0], "" if line[0] == seen else line[0]
    return markdown(HEADER, body, 4)


def _line(key, kind, rows, scores):
    """A row of the table."""
    task, multiple, passes, cv = key
    name, maps = kind
    size, how, gain, p = size_text(multiple), f"{passes} passes, {cv}", "", ""
    if name == "peer":
        size, how = "", ""
    elif name != "none" and maps == "1" and ("none", "1") in scores:
        own, without = scores[kind], scores["none", "1"]
        gain, value = f"{np.mean(gains(own, without)):+.2f}", math.nan
        if task in RATIOS or not has_one_split(task):
            value = paired_p_value(own, without, RATIOS.get(task, 1.0))
        p = p_cell(value)
    values = np.array([row["score"] for row in rows])
    score = f"{values.mean():.2f}"
    if len(values) > 1:
        score += f" ± {values.std(ddof=1):.2f}"
    errors = [row["rmse"] for row in rows if row.get("rmse") is not None]
    error = f"{np.mean(errors):.3g}" if errors else ""
    seconds = np.median([row["seconds"] for row in rows])
    megabytes = np.median([row["bytes"] for row in rows]) / 1e6
    shape = [task, size, how, label_of(*kind), f"{len({row['trial'] for row in rows})}"]
    return [*shape, score, error, gain, p, f"{seconds:.3g}", f"{megabytes:.3g}"]
