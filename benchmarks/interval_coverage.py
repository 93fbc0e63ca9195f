"""Do intervals cover what they say, for every selection and adaptation?

Twenty tasks, ten made up with known noise and ten data sets, are fitted to n rows drawn
at random; new rows say how often the intervals of CV, of CV+ and of ``return_std``
cover, at 80, 90 and 95 %, and for features that look at ``y`` split intervals, in the
mean over which fold is the first. Small fits are repeated with other rows and draws,
since the coverage of a single one has a standard deviation of about ``sqrt(c (1 - c) /
n)``. In the first of them, up to 5,000 rows, MAPIE's CV+ runs on the same models of the
same folds (where it is installed). For plain features each trial also compares the time
of a fit with and without ``intervals=True``, in turn.

Results go line by line to ``--out``; a run goes on where another was stopped, and
``python tools/reproduction.py`` makes the table of all of them. The data sets are
looked for in ``$SURFF_DATA`` and its folder ``uci``; tasks that are not there are left
out by name.

Run: ``python benchmarks/interval_coverage.py --one-thread --minutes 30``, and the same
with ``--columns 256 --tasks sine linear product step noise --sizes 200 1000 5000``.
"""

import argparse
import itertools
import json
import os
import time
from pathlib import Path

import numpy as np
from scipy.stats import norm
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.model_selection import KFold

from paired import add_clock, clock_and_limit
from surff import FourierFeatures, KernelRidgeRegressor

#: Nominal coverages.
LEVELS = (0.8, 0.9, 0.95)

#: Where results go.
OUT = Path("docs/results/intervals/trials.jsonl")

#: New rows that a fit is judged by, and how many of them MAPIE's intervals.
NEW_ROWS, MAPIE_ROWS = 2000, 1000

#: Most rows of a fit that MAPIE sees: it holds a number for each pair of rows.
MAPIE_MOST = 5000

#: Repetitions at each number of rows.
REPEATS = {200: 8, 1000: 3, 5000: 2, 40_000: 1}

#: Parameters of the features of each method.
METHODS = {
    "plain": {},
    "surrogate": {"select": "surrogate"},
    "residual": {"select": "residual"},
    "gradient": {"adapt": "gradient"},
    "auto": {"adapt": "auto"},
}


def made_up(signal, noise, gaussian):
    """A task of five normal columns: a signal, and noise of a known law."""

    def rows(n, rng):
        X = rng.normal(size=(n, 5))
        return X, signal(X) + noise(X, rng)

    return rows, gaussian


def size(X, rng):
    return 0.3 * rng.normal(size=len(X))


#: Tasks by name: a function of the rows, and whether noise is Gaussian and of one size.
MADE_UP = {
    "sine": made_up(lambda X: np.sin(2 * X[:, 0]), size, True),
    "linear": made_up(lambda X: X @ [1.0, -1.0, 0.5, 0.0, 0.2], size, True),
    "product": made_up(lambda X: X[:, 0] * X[:, 1], size, True),
    "step": made_up(lambda X: 1.0 * (X[:, 0] > 0), size, True),
    "noise": made_up(lambda X: 0.0 * X[:, 0], size, True),
    "uneven": made_up(
        lambda X: np.sin(X[:, 0]),
        lambda X, rng: 0.3 * (0.2 + np.abs(X[:, 1])) * rng.normal(size=len(X)),
        False,
    ),
    "student": made_up(
        lambda X: np.sin(X[:, 0]),
        lambda X, rng: 0.3 * rng.standard_t(3, len(X)),
        False,
    ),
    "skewed": made_up(
        lambda X: X[:, 0] ** 2, lambda X, rng: rng.exponential(0.3, len(X)), False
    ),
    "two sides": made_up(
        lambda X: np.sin(X[:, 0]), lambda X, rng: rng.choice([-0.5, 0.5], len(X)), False
    ),
    "outliers": made_up(
        lambda X: X[:, 0] * X[:, 1],
        lambda X, rng: 0.1 * rng.normal(size=len(X)) / rng.uniform(0.01, 1, len(X)),
        False,
    ),
}

#: Data sets, the target in the last column.
FILES = {
    "california": "california-housing.csv.xz",
    **{
        name: f"uci/{name}.csv.xz"
        for name in (
            "kin40k",
            "protein",
            "bike",
            "elevators",
            "pol",
            "keggdirected",
            "tamielectric",
            "pumadyn32nm",
            "parkinsons",
        )
    },
}


def of_file(path):
    """A task of a file: random rows of it, all columns standardised."""
    import pandas as pd

    table = pd.read_csv(path, header=0 if "california" in path.name else None)
    values = table.to_numpy(dtype=float)
    values = (values - values.mean(axis=0)) / np.maximum(values.std(axis=0), 1e-12)

    def rows(n, rng):
        own = values[rng.permutation(len(values))[:n]]
        return own[:, :-1], own[:, -1]

    return rows, len(values)


def tasks(names):
    """Tasks that are asked for and there: rows, most rows, Gaussian noise."""
    folder, found = Path(os.environ.get("SURFF_DATA", "../shared/data")), {}
    for name, (rows, gaussian) in MADE_UP.items():
        found[name] = rows, np.inf, gaussian
    for name, file in FILES.items():
        if not (folder / file).exists():
            print(f"{name} is left out: there is no {folder / file}")
        elif not names or name in names:
            found[name] = *of_file(folder / file), False
    return {name: found[name] for name in found if not names or name in names}


def share(lower, upper, y):
    """Share of targets inside."""
    return float(np.mean((lower <= y) & (y <= upper)))


class Fitted(RegressorMixin, BaseEstimator):
    """The model that a fit found for some training rows, for MAPIE to ask."""

    def __init__(self, predictors=None):
        self.predictors = predictors

    def __sklearn_clone__(self):
        return Fitted(self.predictors)

    def fit(self, X, y):
        self.predict_ = self.predictors.get(X.tobytes(), self.predictors[None])
        self.n_features_in_ = X.shape[1]
        return self

    def predict(self, X):
        return self.predict_(X)


def mapie_of(model, X, y, new, cv):
    """Bounds of MAPIE's CV+ by the models of the same folds; None without it."""
    try:
        from mapie.regression import CrossConformalRegressor
    except ImportError:
        return None
    folds = model.fold_models_.predictor(model.features_, X.dtype)
    predictors = {
        X[train].tobytes(): lambda rows, f=f: folds(rows)[:, f, 0, 0]
        for f, (train, _) in enumerate(cv.split(X))
    }
    theirs = CrossConformalRegressor(
        Fitted({**predictors, None: model.predict}),
        confidence_level=list(LEVELS),
        cv=cv,
    )
    _, bounds = theirs.fit_conformalize(X, y).predict_interval(new)
    return np.moveaxis(bounds, 2, 0)


def of_each_fold(model, new, y):
    """Mean coverage and width of split intervals, with each fold in turn the first."""
    models = model.fold_models_
    away = np.abs(
        y[:, None] - models.predictor(model.features_, new.dtype)(new)[:, :, 0, 0]
    )
    parts = np.split(models.values, models.starts[1:-1])
    places = [[int(np.ceil(c * (len(part) + 1))) - 1 for c in LEVELS] for part in parts]
    radii = np.array([part[place] for part, place in zip(parts, places, strict=True)])
    inside = [float(np.mean(away <= radii[:, i])) for i in range(len(LEVELS))]
    return inside, float(2.0 * radii[:, 1].mean())


def judged(bounds, y):
    """Coverage of each level, and mean width at 90 %."""
    lower, upper = bounds[1]
    return [share(*pair, y) for pair in bounds], float(np.mean(upper - lower))


def trial(rows, n, method, seed, columns, clock):
    """One fit: coverages of each level, widths at 90 %, and times."""
    rng = np.random.default_rng([seed, n])
    X, y = rows(n + NEW_ROWS, rng)
    X, y, new, y_new = X[:n], y[:n], X[n:], y[n:]
    cv = KFold(5, shuffle=True, random_state=seed)
    features = FourierFeatures(columns, random_state=seed, **METHODS[method])
    model = KernelRidgeRegressor(features, cv=cv, intervals=True)
    row = {}
    if method == "plain":
        plain = KernelRidgeRegressor(features, cv=cv)
        model.fit(X, y)  # compiles, and warms the caches
        start = clock()
        plain.fit(X, y)
        middle = clock()
        model.fit(X, y)
        row["fit_ratio"] = (clock() - middle) / (middle - start)
    else:
        model.fit(X, y)
    for name, how in (("cv", "cv"), ("plus", "cv+")):
        bounds = [model.predict_interval(new, level, how) for level in LEVELS]
        row[name], row[f"{name}_width"] = judged(bounds, y_new)
    if method != "plain":
        row["split"], row["split_width"] = of_each_fold(model, new, y_new)
    mean, std = model.predict(new, return_std=True)
    sides = [norm.ppf(0.5 + level / 2) * std for level in LEVELS]
    bounds = [(mean - side, mean + side) for side in sides]
    row["std"], row["std_width"] = judged(bounds, y_new)
    if seed == 0 and n <= MAPIE_MOST:
        some, y_some = new[:MAPIE_ROWS], y_new[:MAPIE_ROWS]
        theirs = mapie_of(model, X, y, some, cv)
        if theirs is not None:
            ours = model.predict_interval(some, LEVELS[1], "cv+")
            found = judged(np.moveaxis(theirs, 2, 1), y_some)
            row["mapie"], row["mapie_width"] = found
            row["mapie_off"] = float(np.abs(theirs[1].T - ours).max())
            ours = model.predict_interval(some, LEVELS[1])
            row["mapie_ratio"] = float(np.mean(ours[1] - ours[0]) / found[1])
    return row


def run(options):
    """Run the trials that are not in the file yet, small ones first."""
    clock, limit = clock_and_limit(options)
    end = time.perf_counter() + 60 * options.minutes
    done = {key(row) for row in stored(options.out)}
    found = tasks(options.tasks)
    with limit, options.out.open("a", encoding="utf-8") as out:
        for n in options.sizes:
            # Seed after seed, so that a run that is stopped has all methods and tasks.
            every = itertools.product(range(REPEATS[n]), options.methods, found)
            for seed, method, name in every:
                rows, most, gaussian = found[name]
                row = {"task": name, "n": n, "method": method, "seed": seed}
                row["columns"] = options.columns
                if most < n + NEW_ROWS or key(row) in done:
                    continue
                if time.perf_counter() > end:
                    return
                row["gaussian"] = gaussian
                row.update(trial(rows, n, method, seed, options.columns, clock))
                out.write(json.dumps(rounded(row)) + "\n")
                out.flush()


def rounded(row):
    """The row with four digits of each number: a small file."""

    def short(value):
        if isinstance(value, list):
            return [short(part) for part in value]
        return float(f"{value:.4g}") if isinstance(value, float) else value

    return {name: short(value) for name, value in row.items()}


def key(row):
    return tuple(row[k] for k in ("task", "n", "method", "seed", "columns"))


def stored(path):
    """Rows of a file of results."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[*REPEATS])
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=[*METHODS])
    parser.add_argument("--tasks", nargs="+", default=[])
    parser.add_argument("--minutes", type=float, default=np.inf)
    parser.add_argument("--columns", type=int, default=64)
    parser.add_argument("--out", type=Path, default=OUT)
    add_clock(parser)
    options = parser.parse_args()
    options.out.parent.mkdir(parents=True, exist_ok=True)
    run(options)


if __name__ == "__main__":
    main()
