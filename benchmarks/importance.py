"""Importance by gradients beside permutation importance, on data whose truth is known.

Friedman 1 depends on the first five of its columns, pumadyn32nm (8,192 rows of a robot
arm's simulation) on few of its 32. A ridge model with adapted features is fitted to
half of the rows; both importances are taken on the other half. Run:
``python benchmarks/importance.py`` with pumadyn32nm.csv.xz, the target in the last
column, in ``$SURFF_DATA/uci``, or its path as argument. Writes
``benchmarks/results/importance.md``.
"""

import os
import platform
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.datasets import make_friedman1
from sklearn.inspection import permutation_importance

from surff import FourierFeatures, KernelRidgeRegressor
from surff.experiments import Table
from surff.inspection import feature_importances

RESULT = Path(__file__).resolve().parent / "results" / "importance.md"


def timed(function, *args, **kwargs):
    """Result and seconds."""
    start = time.perf_counter()
    result = function(*args, **kwargs)
    return result, time.perf_counter() - start


def compared(name, X, y, adapt, n_shown=6):
    """Rows of the table for one data set and one adaptation."""
    order = np.random.default_rng(0).permutation(len(y))
    train, test = np.array_split(order, 2)
    X = (X - X[train].mean(axis=0)) / X[train].std(axis=0)
    features = FourierFeatures(512, adapt=adapt, random_state=0)
    model = KernelRidgeRegressor(features, cv="gcv").fit(X[train], y[train])
    score = model.score(X[test], y[test])
    gradient, fast = timed(feature_importances, model, X[test])
    permuted, slow = timed(
        permutation_importance, model, X[test], y[test], n_repeats=5, random_state=0
    )
    rows = []
    for kind, values, errors, seconds in (
        ("gradient", *gradient, fast),
        ("of the fit", model.feature_importances_, model.feature_importances_std_, 0.0),
        ("permutation", permuted.importances_mean, permuted.importances_std, slow),
    ):
        first = np.argsort(-values)[:n_shown]
        share = values / values.sum()
        shown = ", ".join(
            f"{j} ({100 * share[j]:.1f} ± {100 * errors[j] / values.sum():.1f})"
            for j in first
        )
        label = f"{name}, adapt={adapt}, R2 {score:.3f}"
        rows.append([label, kind, shown, f"{1e3 * seconds:.0f} ms" if seconds else "-"])
    return rows


def processor():
    """Name of the processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next(line for line in lines if "model name" in line).partition(": ")[2]


def main():
    """Run both data sets and write the table."""
    default = Path(os.environ.get("SURFF_DATA", ".")) / "uci" / "pumadyn32nm.csv.xz"
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else default
    puma = pd.read_csv(path).to_numpy(np.float64)
    sets = {
        "friedman1": make_friedman1(2000, n_features=10, noise=1.0, random_state=0),
        "pumadyn32nm": (puma[:, :-1], puma[:, -1]),
    }
    rows = []
    for name, (X, y) in sets.items():
        for adapt in ("agop", "auto"):
            rows += compared(name, X, y, adapt)
    header = ["data and model", "importance", "first columns (% of the sum)", "time"]
    table = Table(header, rows, "importance")
    text = [
        "# Columns by gradient and by permutation",
        "",
        "Written by `python benchmarks/importance.py`. Columns are numbered from 0; "
        "after each its share of the sum in percent and the standard error.",
        f"Processor: {processor()}, {os.cpu_count()} cores.",
        "",
        *table.markdown(),
    ]
    RESULT.write_text("\n".join(text) + "\n", encoding="utf-8")
    print("\n".join(text))


if __name__ == "__main__":
    main()
