"""Measure the generation times of stored published trials again, all in one go.

Accuracies follow from the seed whatever else the machine does; times do not. This
draws, maps and scores the features of every stored trial once more, every method after
the other, and replaces ``generation_time`` in the file. Run it on an idle machine:
``python benchmarks/retime.py DIR/results.jsonl``.
"""

import argparse
import json
import os
from pathlib import Path

import numpy as np
from tqdm import tqdm

from surff.experiments.methods import METHODS
from surff.experiments.protocol import (
    load_problem,
    published_candidates,
    published_part,
)


def generation_times(problem, row):
    """Seconds of every method for the trial of a stored row."""
    part, rng = published_part(problem, row["multiple"], row["trial"], row["seed"])
    s = row["n_frequencies"]
    candidates = published_candidates(part, s, rng, METHODS, row["weights"], True)
    return {method: c.generation_time for method, c in candidates.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", type=Path)
    parser.add_argument("--dataset", help="this one alone")
    options = parser.parse_args()
    rows = [json.loads(line) for line in options.path.open()]
    trials, problems = {}, {}
    for row in rows:
        if row["protocol"] == "published" and options.dataset in (None, row["dataset"]):
            key = (row["dataset"], row["weights"], row["multiple"], row["trial"])
            trials.setdefault(key, []).append(row)
    for (name, *_), group in tqdm(trials.items()):
        problem = problems.get(name) or problems.setdefault(name, load_problem(name))
        times = generation_times(problem, group[0])
        for row in group:
            row["generation_time"] = float(np.round(times[row["method"]], 7))
    temporary = options.path.with_suffix(".tmp")
    temporary.write_text("".join(json.dumps(row) + "\n" for row in rows))
    os.replace(temporary, options.path)


if __name__ == "__main__":
    main()
