"""What leaf heads bring on top of a learned map, and what they cost.

Each task is split as `surff benchmark` splits it (``--uci FOLDER`` takes sets with a
mask for each split, ``NAME.csv.xz`` and ``NAME.test_mask.csv.xz``, instead). The map
and the common head are fitted once, by 5 folds, which learn a map each, or with
``--gcv`` by generalised cross-validation, which learns one; every kind of leaves is
then fitted on the same map with the same alpha, so that differences are those of the
leaves. Seconds are processor time on one thread, of everything a user would wait for;
bytes are those of the pickled model, fitted to float32 rows with ``--float32``.
``--splits`` compares what trees may split on; ``--maps N`` averages N models with a map
each; ``--predict`` times predictions with and without leaves. ``--classes FOLDER``
takes sets ``NAME.csv.xz`` with a header and all classes of their last column, 80
percent of the rows to train; ``--peer`` adds tuned boosting, fitted as `surff
benchmark` does, and ``--json FILE`` appends the rows of the table to a file.

    python benchmarks/leaves.py california-housing covtype --trials 0
"""

import argparse
import json
import pickle
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from sklearn.ensemble import BaggingClassifier, BaggingRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import KFold, StratifiedKFold, train_test_split
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from children import ratio
from paired import rounds
from surff import (
    AutoAdaptation,
    FourierFeatures,
    KernelRidgeClassifier,
    KernelRidgeRegressor,
    LeafHeads,
)
from surff.experiments import load_task
from surff.experiments.benchmark import prepared
from surff.experiments.peers import fit_peer
from surff.experiments.protocol import Part
from surff.kernels import warped
from surff.linear import (
    LeafRows,
    Partition,
    accumulate,
    common_left_out,
    grown_tree,
    joint_heads,
    solve,
)

#: Kinds of leaves by name.
KINDS = {
    "64": 64,
    "256": 256,
    "1024": 1024,
    "auto": "auto",
    "bag": LeafHeads(n_trees=4),
    "boost": LeafHeads(n_trees=4, combine="boost"),
    "bag1024": LeafHeads(1024, n_trees=4),
    "boost8": LeafHeads(
        256, n_trees=8, combine="boost", learning_rate=0.3, max_features=None
    ),
    "bag16": LeafHeads(256, n_trees=16, min_samples_leaf=5, max_features=0.25),
    "boost16": LeafHeads(256, n_trees=16, combine="boost", learning_rate=0.3),
}


class Problem(NamedTuple):
    """Rows of one split."""

    name: str
    part: Part
    classification: bool


def load(name, trial, options):
    """A split of a task of the benchmark, or of a set in a folder."""
    if options.classes is not None:
        return load_classes(name, trial, options.classes)
    if options.uci is None:
        task = load_task(name)
        return Problem(name, prepared(task, trial, 0), task.classification)
    folder = options.uci
    rows = np.loadtxt(_text(folder / f"{name}.csv.xz"), delimiter=",")
    test = np.loadtxt(_text(folder / f"{name}.test_mask.csv.xz"), delimiter=",")
    test = test[:, trial].astype(bool)
    centre, width = rows[~test].mean(axis=0), rows[~test].std(axis=0)
    rows = (rows - centre) / np.where(width == 0, 1.0, width)
    X, y = rows[:, :-1], rows[:, -1]
    return Problem(name, Part(X[~test], y[~test], X[test], y[test]), False)


def load_classes(name, trial, folder):
    """A random split, 80 to 20, of a set with all its classes."""
    table = pd.read_csv(folder / f"{name}.csv.xz")
    X, y = table.iloc[:, :-1].to_numpy(np.float64), table.iloc[:, -1].to_numpy()
    X, test_X, y, test_y = train_test_split(X, y, test_size=0.2, random_state=trial)
    scaler = StandardScaler().fit(X)
    part = Part(scaler.transform(X), y, scaler.transform(test_X), test_y)
    return Problem(f"{name}, {len(np.unique(y))} classes", part, True)


def _text(path):
    import lzma

    return lzma.open(path, "rt")


def score(model, problem, dtype):
    """Percent right, or 100 R2, and the root mean square error of numbers."""
    X, y = problem.part.test_X.astype(dtype), problem.part.test_y
    predicted = model.predict(X)
    if problem.classification:
        return {"score": 100 * float(np.mean(predicted == y))}
    error = np.mean((predicted - y) ** 2)
    r2 = 100 * float(1 - error / np.var(y))
    return {"score": r2, "rmse": float(np.sqrt(error))}


def model_of(problem, **parameters):
    """Model of the problem's kind."""
    kind = KernelRidgeClassifier if problem.classification else KernelRidgeRegressor
    return kind(keep_equations=False, **parameters)


def whole_model(problem, seed, options, leaves=None):
    """Model with a map of its own, not fitted, and its alpha chosen by 5 folds."""
    n_components = 2 * options.multiple * problem.part.X.shape[1]
    adapt = AutoAdaptation(passes=options.passes)
    features = FourierFeatures(n_components, adapt=adapt, random_state=seed)
    cv = "gcv"
    if not options.gcv:
        folds = StratifiedKFold if problem.classification else KFold
        cv = folds(5, shuffle=True, random_state=seed)
    return model_of(problem, features=features, cv=cv, leaves=leaves)


def fitted(model, problem, options):
    """A model, fitted, and its seconds."""
    start = time.process_time()
    model.fit(problem.part.X.astype(dtype_of(options)), problem.part.y)
    return model, time.process_time() - start


def tell(problem, trial, label, model, seconds, options):
    """Print a row of the table, and keep it if so asked."""
    found = score(model, problem, dtype_of(options))
    row = {
        "task": problem.name,
        "trial": trial,
        "multiple": options.multiple,
        "passes": options.passes,
        "cv": "gcv" if options.gcv else "5 folds",
        "leaves": label,
        **{name: round(value, 4) for name, value in found.items()},
        "seconds": round(seconds, 1),
        "bytes": len(pickle.dumps(model)),
    }
    print("| " + " | ".join(map(str, row.values())) + " |", flush=True)
    if options.json is not None:
        with options.json.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")


def dtype_of(options):
    """Type of the rows."""
    return np.float32 if options.float32 else np.float64


def compare_kinds(problem, trial, options):
    """Tell of the model without leaves and of each kind of them."""
    if options.peer:
        peer = fit_peer("boosting", problem.part, problem.classification, 4, 0, trial)
        label = "none: boosting"
        tell(problem, trial, label, peer.model, peer.fit_time, options)
    model, common_time = fitted(whole_model(problem, trial, options), problem, options)
    tell(problem, trial, "none", model, common_time, options)
    for name in options.kinds:
        frozen = FrozenEstimator(model.features_)
        own = model_of(
            problem, features=frozen, alphas=float(model.alpha_), leaves=KINDS[name]
        )
        own, seconds = fitted(own, problem, options)
        label = f"{name}: {own.leaves_.n_leaves}, a = {own.leaves_.alpha:.3g}"
        tell(problem, trial, label, own, common_time + seconds, options)


def compare_averages(problem, trial, options):
    """Tell of averages of models with a map each."""
    bagging = BaggingClassifier if problem.classification else BaggingRegressor
    for name in options.kinds:
        model = whole_model(problem, trial, options, KINDS[name])
        several = bagging(model, options.maps, bootstrap=False, random_state=trial)
        several, seconds = fitted(several, problem, options)
        label = f"{name}, {options.maps} maps"
        tell(problem, trial, label, several, seconds, options)


def directions(model, X):
    """Bent columns, and directions of the average gradient outer product."""
    features = model.features_
    bent = warped(X, features.warp_) if hasattr(features, "warp_") else X
    W = features.frequencies_
    cosines, sines = model.primal_coef_.reshape(2, len(W))
    weights = np.sqrt(features.importance_weights_ / len(W))
    P = bent[:20_000] @ W.T
    gradients = (np.cos(P) * sines - np.sin(P) * cosines) * weights @ W
    return bent, np.linalg.eigh(gradients.T @ gradients)[1][:, ::-1]


def compare_splits(problem, trial, options):
    """Print the score of one tree on each kind of columns, at its best alpha."""
    model, _ = fitted(whole_model(problem, trial, options), problem, options)
    X, test = problem.part.X, problem.part.test_X
    codes = np.unique(problem.part.y, return_inverse=True)[1]
    y = np.where(codes == 1, 1.0, -1.0) if problem.classification else problem.part.y
    feature_map, alphas = model.features_.feature_map(), np.atleast_1d(model.alpha_)
    Y = (y - y.mean())[:, None]
    equations = accumulate(feature_map, X, Y)
    model.primal_coef_ = solve(equations.centred(), alphas[0])[0].T
    residuals = common_left_out(equations, alphas, True, feature_map, X, Y)
    bent, axes = directions(model, X)
    bent_test = directions(model, test)[0]
    W = model.features_.frequencies_.T
    kinds = {
        "columns": (X, test),
        "directions": (bent @ axes, bent_test @ axes),
        "columns and 8 directions": (
            np.hstack([X, bent @ axes[:, :8]]),
            np.hstack([test, bent_test @ axes[:, :8]]),
        ),
        "frequencies": (bent @ W, bent_test @ W),
        "columns and frequencies": (
            np.hstack([X, bent @ W]),
            np.hstack([test, bent_test @ W]),
        ),
    }
    Z = np.hstack([feature_map(test), np.ones((len(test), 1))])
    for name, (rows, new) in kinds.items():
        rng = np.random.default_rng(0)
        n_leaves = options.leaves
        tree = grown_tree(rows, residuals, None, n_leaves, 20, None, rng)
        partition = Partition.of_trees([tree])
        own, leaves = partition.leaves(rows)[:, 0], partition.leaves(new)[:, 0]
        found = []
        for alpha in (2.0, 8.0, 32.0):
            at_hand = LeafRows(feature_map, X, Y, None, own, partition.n_leaves)
            heads = joint_heads(at_hand, alphas, alpha)
            f = np.einsum("ij,ijk->i", Z, heads.common + heads.leaves[leaves])
            right = (f + y.mean() > 0) == (problem.part.test_y == problem.part.y.max())
            error = np.mean((f + y.mean() - problem.part.test_y) ** 2)
            r2 = 1.0 - error / np.var(problem.part.test_y)
            found.append(100 * (right.mean() if problem.classification else r2))
        print(
            f"| {problem.name}, {trial} | {name} | {partition.n_leaves} | "
            f"{max(found):.2f} |",
            flush=True,
        )


def time_predictions():
    """Print rows per second with 1,024 leaves, beside those without."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100_000, 54)).astype(np.float32)
    y = np.sin(X[:, 0]) + (X[:, 1] > 0) + rng.normal(size=len(X))
    features = FourierFeatures(432, random_state=0)
    some = slice(0, 40_000)
    models = {}
    for name, leaves in {"none": None, "1024": LeafHeads(1024, alpha=8.0)}.items():
        model = KernelRidgeRegressor(features, alphas=1.0, leaves=leaves)
        models[name] = model.fit(X[some], y[some])
    calls = {
        name: (lambda model=model: model.predict(X)) for name, model in models.items()
    }
    seconds = rounds(calls, 5, clock=time.process_time)
    for name in calls:
        print(f"{name}: {len(X) / np.median(seconds[name]):.3g} rows per second")
    median, least, most = ratio(seconds["none"], seconds["1024"])
    print(f"with leaves {median:.2f} ({least:.2f} to {most:.2f}) times as many")


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("tasks", nargs="*")
    parser.add_argument("--trials", type=int, nargs="+", default=[0])
    parser.add_argument("--multiple", type=int, default=4)
    parser.add_argument("--maps", type=int, default=1)
    parser.add_argument("--passes", type=int, default=20, help="of the adaptation")
    parser.add_argument("--gcv", action="store_true", help="not folds, for alpha")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=["64", "auto"])
    parser.add_argument("--uci", type=Path)
    parser.add_argument("--classes", type=Path)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--peer", action="store_true")
    parser.add_argument("--float32", action="store_true")
    parser.add_argument("--leaves", type=int, default=64, help="for --splits")
    parser.add_argument("--splits", action="store_true")
    parser.add_argument("--predict", action="store_true")
    options = parser.parse_args(argv)
    with threadpool_limits(1):
        if options.predict:
            time_predictions()
        for task in options.tasks:
            for trial in options.trials:
                problem = load(task, trial, options)
                compare = compare_splits if options.splits else compare_kinds
                if options.maps > 1:
                    compare = compare_averages
                compare(problem, trial, options)


if __name__ == "__main__":
    main()
