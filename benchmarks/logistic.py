"""What the logistic loss brings over the squared one on the same features.

Protocol ``fair`` of `surff.experiments.protocol` with `benchmarks/residual.py`'s
preparation: random halves, gamma climbed to by the 3-fold score of each model on at
most 10,000 training rows (accuracy for the squared loss, log loss for the logistic
one), alpha by 5 folds. Prints test accuracy and log loss (squared loss: of its
calibrated probabilities) and CPU seconds of the fit at that gamma. ``letter`` has 26
classes. Run: ``SURFF_DATA=... python benchmarks/logistic.py --datasets eeg magic04``.
"""

import argparse
import time

import numpy as np
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold, train_test_split

from residual import GAMMA_ROWS, part_of
from surff import FourierFeatures, KernelLogisticClassifier, KernelRidgeClassifier
from surff.datasets import load
from surff.experiments.protocol import Part, standardised
from surff.linear import climb

MODELS = {"squared": KernelRidgeClassifier, "logistic": KernelLogisticClassifier}


def prepared(name, trial):
    """Training and test rows of one split."""
    if name != "letter":
        return part_of(name, trial)
    X, y = load(name)[:2]
    train, test = train_test_split(
        np.arange(len(y)), train_size=0.5, stratify=y, random_state=trial
    )
    return standardised(Part(X[train], y[train], X[test], y[test]), clip=False)


def measure(part, multiple, select, loss, trial, gamma=None):
    """Test accuracy in percent, log loss, gamma and CPU seconds of the fit."""
    d = part.X.shape[1]
    X, y = part.X, part.y
    if len(y) > GAMMA_ROWS:
        X, _, y, _ = train_test_split(
            X, y, train_size=GAMMA_ROWS, stratify=y, random_state=trial
        )

    def model(gamma, n_folds, **options):
        features = FourierFeatures(
            2 * multiple * d, gamma=gamma, select=select, random_state=trial
        )
        folds = StratifiedKFold(n_folds, shuffle=True, random_state=trial)
        return MODELS[loss](features, cv=folds, **options)

    if gamma is None:
        gamma, _ = climb(lambda gamma: model(gamma, 3).fit(X, y).best_score_, 1.0 / d)
    options = {"probability": True} if loss == "squared" else {}
    start = time.process_time()
    fitted = model(gamma, 5, **options).fit(part.X, part.y)
    seconds = time.process_time() - start
    P = fitted.predict_proba(part.test_X)
    accuracy = 100 * fitted.score(part.test_X, part.test_y)
    return accuracy, log_loss(part.test_y, P), gamma, seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--datasets", nargs="+", default=["eeg", "magic04", "letter"])
    parser.add_argument("--multiples", type=int, nargs="+", default=[1, 4, 16])
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--select", nargs="+", default=["none", "residual"])
    parser.add_argument("--gamma", type=float, help="gamma d, in place of the climb")
    options = parser.parse_args()
    print("| data | s | selection | loss | accuracy | log loss | gamma d | seconds |")
    print("|---|---:|---|---|---:|---:|---:|---:|")
    for name in options.datasets:
        parts = [prepared(name, trial) for trial in range(options.splits)]
        d = parts[0].X.shape[1]
        gamma = None if options.gamma is None else options.gamma / d
        for multiple in options.multiples:
            for select in options.select:
                for loss in MODELS:
                    chosen = None if select == "none" else select
                    trials = np.array(
                        [
                            measure(part, multiple, chosen, loss, trial, gamma)
                            for trial, part in enumerate(parts)
                        ]
                    )
                    accuracy, value, _, _ = trials.mean(axis=0)
                    spread = np.ptp(trials[:, 0]) / 2
                    tuned, seconds = np.median(trials[:, 2:], axis=0)
                    print(
                        f"| {name} | {multiple}d | {select} | {loss} | {accuracy:.2f} "
                        f"± {spread:.2f} | {value:.4f} "
                        f"| {tuned * d:.3g} | {seconds:.2f} |",
                        flush=True,
                    )


if __name__ == "__main__":
    main()
