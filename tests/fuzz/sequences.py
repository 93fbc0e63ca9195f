"""Sequences of operations on one model, compared with a fresh model at every step.

``python tests/fuzz/sequences.py --n 1000 --seed 0`` takes a model for each number and
does to it, in random order, what users do: fits, pieces and streams, good ones and
some that must fail, changes of parameters, good and bad, files, pickles, copies.
After each step the predictions are, bit for bit, those of the last success,
whatever failed since; and a new model that is given the successful steps alone ends up
with the same.
"""

import contextlib
import copy
import functools
import pickle
import sys
import traceback
from pathlib import Path

import cases
import numpy as np
from sklearn.base import clone

import surff
from surff.estimators import ModelFileError
from surff.streaming import ArrayRows, BlockRows

#: Outcomes that are right.
GOOD = ("same",)

#: Steps of a sequence.
STEPS = 12


def features(kind):
    """A feature map with some options."""
    options = {
        "plain": {},
        "selected": {"select": "residual"},
        "leverage": {"select": "leverage"},
        "learned": {"adapt": "agop"},
        "structured": {"draw": "structured_orthogonal"},
    }
    if kind in options:
        return surff.FourierFeatures(8, gamma=0.3, random_state=0, **options[kind])
    return surff.NystroemFeatures(6, landmarks=kind, random_state=0)


#: Feature maps by name.
MAPS = ("plain", "selected", "leverage", "learned", "structured", "uniform", "kmeans")

#: Values that parameters may change to; the last of each is refused by the next fit.
CHANGES = {
    "alphas": (1.0, [0.1, 1.0], "auto", -1.0),
    "cv": (2, 3, "gcv", 1000),
    "fit_intercept": (True, False, "maybe"),
    "solver": ("cholesky", "eigh", "qr"),
    "keep_equations": (True, False, 3),
    "tol": (1e-2, 1e-4, -1.0),
    "features__n_components": (8, 11, 0),
    "features__gamma": (0.3, 0.6, -1.0),
    "n_components": (8, 11, 0),
    "gamma": (0.3, 0.6, -1.0),
}

MODELS = (
    surff.KernelRidgeRegressor,
    surff.KernelRidgeClassifier,
    surff.KernelLogisticClassifier,
    None,
)


def fresh(rng):
    """A model that is not fitted, and whether it classifies."""
    kind = MODELS[int(rng.integers(len(MODELS)))]
    maps = features(MAPS[int(rng.integers(len(MAPS)))])
    if kind is None:
        return maps, False
    alphas = (1.0, [0.1, 1.0])[int(rng.integers(2))]
    return kind(maps, alphas=alphas, cv=2), "Classifier" in kind.__name__


def piece(rng, classify):
    """Rows, targets and weights that any fit takes."""
    n = int(rng.integers(30, 45))
    X = rng.normal(size=(n, 3))
    y = X[:, 0] * X[:, 1] + 0.1 * rng.normal(size=n)
    if classify:
        y = np.where(np.arange(n) % 2, "yes", "no")
        X[:, 0] += np.arange(n) % 2
    return X, y, rng.uniform(0.5, 2.0, size=n) if rng.random() < 0.4 else None


def spoilt(rng, targets, X, y, weight):
    """The piece with a fault that every fit refuses.

    Feature maps do not look at targets and weights that they do not need.
    """
    kind = rng.integers(5 if targets else 2)
    X = X.copy()
    if kind == 0:
        X[int(rng.integers(len(X))), 1] = np.nan
    elif kind == 1:
        X, y, weight = X[:0], y[:0], None
    elif kind == 2:
        weight = -np.ones(len(X))
    elif kind == 3:
        y = y[:-1]
    else:
        weight = np.full(len(X), np.nan)
    return X, y, weight


def interrupted(X, y):
    """A source that is stopped by Ctrl-C after its first block."""

    def blocks():
        yield X, y
        raise KeyboardInterrupt

    return BlockRows(blocks)


def do(model, step, data):
    """Let a model learn."""
    X, y, weight = data
    options = {} if weight is None else {"sample_weight": weight}
    if step == "fit":
        model.fit(X, y, **options)
    elif step == "partial_fit":
        more = {"classes": ["no", "yes"]} if y.dtype.kind == "U" else {}
        model.partial_fit(X, y, **options, **more)
    elif step == "fit_stream":
        model.fit_stream(ArrayRows(X, y, weight, block_rows=17))
    else:
        model.fit_stream(interrupted(X, y))


def changed(rng, model):
    """A parameter and a value for it, which may be wrong."""
    names = [name for name in CHANGES if name in model.get_params()]
    name = names[int(rng.integers(len(names)))]
    values = CHANGES[name]
    place = len(values) - 1 if rng.random() < 0.1 else int(rng.integers(len(values)))
    return {name: values[place]}


def moved(rng, model, folder):
    """The model after a trip through a file, a pickle or a copy."""
    kind = rng.integers(3)
    if kind == 0:
        path = Path(folder) / "model.skops"
        surff.save(model, path)
        return surff.load(path)
    return pickle.loads(pickle.dumps(model)) if kind == 1 else copy.deepcopy(model)


def says(model, X):
    """What a model says of rows; None if it has not learned."""
    if not hasattr(model, "n_features_in_"):
        return None
    return model.predict(X) if hasattr(model, "predict") else model.transform(X)


class Sequence:
    """A model, what it has learned so far, and what it was when it had.

    Attributes
    ----------
    learned : list of (parameters, step, data)
        Successful steps since the last fit.
    told : ndarray or None
        Answers after the last of them.
    log : list of str
        All steps.
    """

    def __init__(self, rng, folder):
        self.rng, self.folder = rng, folder
        self.model, self.classify = fresh(rng)
        self.start, self.new = clone(self.model), rng.normal(size=(7, 3))
        self.learned, self.told, self.log = [], None, []

    def step(self):
        """Do something; the outcome if it is a fault."""
        steps = ["fit", "partial_fit", "fit_stream", "interrupt", "set_params", "move"]
        step = str(self.rng.choice(steps, p=[0.25, 0.25, 0.1, 0.05, 0.2, 0.15]))
        if step == "set_params":
            values = changed(self.rng, self.model)
            self.log.append(f"set_params {values}")
            self.model.set_params(**values)
        elif step == "move":
            self.move()
        elif step == "fit" or hasattr(self.model, "fit_stream"):
            return self.learn(step)
        return None

    def move(self):
        """Go through a file, a pickle or a copy."""
        if self.told is None:
            return
        self.log.append("move")
        # A model with a parameter that no fit takes cannot be saved.
        with contextlib.suppress(ModelFileError):
            self.model = moved(self.rng, self.model, self.folder)

    def learn(self, step):
        """Learn, or be refused; the outcome if it is a fault."""
        data, spoil = piece(self.rng, self.classify), self.rng.random() < 0.35
        if spoil:
            data = spoilt(self.rng, hasattr(self.model, "predict"), *data)
        self.log.append(step + " spoilt" * spoil)
        params = copy.deepcopy(self.model.get_params(deep=False))
        try:
            do(self.model, step, data)
        except (ValueError, TypeError, AttributeError, KeyboardInterrupt) as error:
            self.log[-1] += f" refused: {type(error).__name__}"
            return None
        if spoil:
            return "fault accepted"
        if step != "partial_fit":
            self.learned.clear()
        self.learned.append((params, step, data))
        self.told = says(self.model, self.new)
        return None


def run_case(seed, number, folder):
    """Outcome of a sequence, and what happened."""
    sequence = Sequence(np.random.default_rng([seed, number]), folder)
    try:
        outcome = None
        for _ in range(STEPS):
            outcome = outcome or sequence.step()
            if not same(says(sequence.model, sequence.new), sequence.told):
                outcome = outcome or "changed"
        if outcome is None and not same(sequence.told, replayed(sequence)):
            outcome = "not as a fresh model"
    except Exception:
        outcome = traceback.format_exc()[-1500:]
    if outcome is None:
        return "same", ""
    return outcome.partition("\n")[0], f"{sequence.start}: {sequence.log}\n{outcome}"


def same(a, b):
    """Whether two answers are equal, or both are missing."""
    if a is None or b is None:
        return a is None and b is None
    return np.array_equal(a, b)


def replayed(sequence):
    """What a new model says after the successful steps alone."""
    model = sequence.start
    for params, step, data in sequence.learned:
        do(model.set_params(**copy.deepcopy(params)), step, data)
    return says(model, sequence.new)


if __name__ == "__main__":
    options = cases.parser_of(__doc__, 1000).parse_args()
    run = functools.partial(run_case, options.seed)
    sys.exit(cases.main(run, options, GOOD, "sequences"))
