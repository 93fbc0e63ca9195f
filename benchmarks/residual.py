"""What stages, candidates and the fit between stages bring to `ResidualLeverage`.

Protocol ``fair`` of `surff.experiments.protocol`: random halves (covtype: of 60,000
random rows), columns standardised by training statistics, EEG's outliers clipped; for
every method gamma is climbed to by the 3-fold accuracy on at most 10,000 training rows,
alpha chosen by 5 folds of all of them. Features that look at y are selected anew for
each fold. Prints the test accuracy of each configuration, and its difference to plain
random Fourier features on the same splits with the standard error of the mean. Run:
``SURFF_DATA=... python benchmarks/residual.py --datasets eeg magic04``.
"""

import argparse
import csv
import time
from pathlib import Path

import numpy as np
from sklearn.model_selection import StratifiedKFold, train_test_split

from surff import (
    FourierFeatures,
    KernelRidgeClassifier,
    ResidualLeverage,
    SurrogateLeverage,
)
from surff.experiments.protocol import load_problem, split, standardised
from surff.linear import climb

COVTYPE_ROWS = 60_000
GAMMA_ROWS = 10_000

#: The comparison, then one parameter at a time around the default.
COMPARED = {
    "RFF": None,
    "surrogate, drawn": SurrogateLeverage(
        n_candidates=64.0, resample="without_replacement"
    ),
    "residual": ResidualLeverage(),
}
VARIED = {
    **{f"n_stages={t}": ResidualLeverage(t) for t in (1, 2, 4, 16)},
    **{
        f"n_candidates={ratio}": ResidualLeverage(n_candidates=ratio)
        for ratio in (4.0, 16.0, 256.0)
    },
    "drawn by the scores": ResidualLeverage(resample="without_replacement"),
    **{f"alpha={alpha}": ResidualLeverage(alpha=alpha) for alpha in (1e-4, 0.1, "gcv")},
}


def part_of(name, trial):
    """Training and test rows of one split, prepared."""
    problem = load_problem(name)
    if name == "covtype":
        rows = np.random.default_rng(trial).permutation(len(problem.y))[:COVTYPE_ROWS]
        problem = problem._replace(X=problem.X[rows], y=problem.y[rows])
    return standardised(split(problem, trial, seed=0), clip=name == "eeg")


def measure(part, multiple, select, trial):
    """Test accuracy in percent, gamma, CPU seconds of the fit at that gamma."""
    d = part.X.shape[1]
    X, y = part.X, part.y
    if len(y) > GAMMA_ROWS:
        X, _, y, _ = train_test_split(
            X, y, train_size=GAMMA_ROWS, stratify=y, random_state=trial
        )

    def model(gamma, n_folds):
        features = FourierFeatures(
            2 * multiple * d, gamma=gamma, select=select, random_state=trial
        )
        folds = StratifiedKFold(n_folds, shuffle=True, random_state=trial)
        return KernelRidgeClassifier(features, cv=folds)

    gamma, _ = climb(lambda gamma: model(gamma, 3).fit(X, y).best_score_, 1.0 / d)
    start = time.process_time()
    fitted = model(gamma, 5).fit(part.X, part.y)
    seconds = time.process_time() - start
    return 100 * fitted.score(part.test_X, part.test_y), gamma, seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--datasets", nargs="+", default=["eeg", "magic04", "covtype"])
    parser.add_argument("--multiples", type=int, nargs="+", default=[1, 4, 16])
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--varied", action="store_true", help="vary the parameters too")
    parser.add_argument("--output", type=Path, help="CSV file to append trials to")
    options = parser.parse_args()
    configurations = COMPARED | (VARIED if options.varied else {})
    print("| data | s | selection | accuracy | less RFF | gamma d | seconds |")
    print("|---|---:|---|---:|---:|---:|---:|")
    for name in options.datasets:
        parts = [part_of(name, trial) for trial in range(options.splits)]
        d = parts[0].X.shape[1]
        for multiple in options.multiples:
            plain = None
            for label, select in configurations.items():
                trials = np.array(
                    [measure(part, multiple, select, i) for i, part in enumerate(parts)]
                )
                plain = trials[:, 0] if plain is None else plain
                gain = trials[:, 0] - plain
                error = gain.std(ddof=1) / np.sqrt(len(gain))
                print(
                    f"| {name} | {multiple}d | {label} | {trials[:, 0].mean():.2f} "
                    f"| {gain.mean():+.2f} ± {error:.2f} "
                    f"| {np.median(trials[:, 1]) * d:.3g} "
                    f"| {np.median(trials[:, 2]):.2f} |",
                    flush=True,
                )
                if options.output:
                    with options.output.open("a", newline="") as file:
                        writer = csv.writer(file)
                        for i, trial in enumerate(trials):
                            writer.writerow([name, multiple, label, i, *trial])


if __name__ == "__main__":
    main()
