"""Odd data and odd parameters for every estimator and for functions beside them.

``python tests/fuzz/estimators.py --n 20000 --seed 0`` makes up a case from each
number: an estimator with parameters of which some are out of range, rows of any dtype,
shape, size and container, some of them broken, targets and weights of the same kind.
It fits, asks the model everything, and fits again. Right are

- ``fitted``: finite answers of the right shape, the same from a second fit;
- ``refused``: an error that surff or scikit-learn's checks raise on purpose.

Faults are errors out of the depths of NumPy, SciPy or Python, answers that are not
finite or not the same, warnings of the arithmetic, showers of warnings, crashes and
hangs. ``--case`` runs one case again.
"""

import collections
import functools
import re
import sys
import traceback
import warnings
from pathlib import Path

import cases
import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.model_selection import GroupKFold, KFold, LeaveOneOut, ShuffleSplit

import surff
from surff import inspection
from surff.draws import DRAWS
from surff.kernels import KERNELS, fourier_features, fourier_moments
from surff.selection import LANDMARK_RULES, SELECTORS
from surff.streaming import ArrayRows, BlockRows

#: Outcomes that are right.
GOOD = ("fitted", "refused")

#: Warnings of one kind that a case may cause.
MOST_WARNINGS = 12

#: Values that no parameter takes, and a few that some do.
ODD = (
    *(None, True, False, 0, -1, 1, 2**40, 1.5, -0.5, np.nan, np.inf, 1e308, 1e-308),
    *("", "other", "auto", "rbf", b"bytes", (), [], {}, [1.0, -1.0], ["1", "10"]),
    *(np.array([0.5, 2.0]), np.array(0.5), np.array(["a"]), np.zeros((2, 2)), object()),
)

#: Values that a parameter takes.
FEATURES = {
    "n_components": (1, 2, 3, 8, 16, 17),
    "kernel": tuple(sorted(KERNELS)),
    "gamma": ("scale", "median", 0.3, 1e-6, 1e6, 1e300, 1e-300, [0.1, 1.0, 10.0]),
    "draw": tuple(sorted(DRAWS)),
    "select": (None, None, *sorted(SELECTORS)),
    "adapt": (None, None, None, None, None, "agop", "gradient", "auto"),
    "random_state": (0, 0, 1),
}
LANDMARKS = {
    "n_components": FEATURES["n_components"],
    "kernel": ("rbf", "laplacian", "poly", "sigmoid", "cosine", "linear", "matern"),
    "gamma": FEATURES["gamma"],
    "landmarks": (*sorted(LANDMARK_RULES), "kmeans"),
    "random_state": (0, 0, 1),
    "degree": (None, 2.0, 3.0),
    "coef0": (None, 1.0),
}
MODEL = {
    "alphas": ("auto", 1.0, 1e-12, 1e12, 0.0, [0.1, 1.0], [1e-300, 1e300]),
    "cv": (2, 3, 5, KFold(2, shuffle=True, random_state=0), LeaveOneOut(), 1000),
    "fit_intercept": (True, False),
    "max_iter": (1, 100),
    "tol": (1e-2, 1e-8),
}
RIDGE = {
    **MODEL,
    "cv": (*MODEL["cv"], "gcv", "loo", ShuffleSplit(2, random_state=0), GroupKFold(2)),
    "gammas": (None, None, None, "auto", [0.1, 1.0]),
    "scoring": (None, None, None, "r2", "accuracy", "roc_auc", "neg_log_loss"),
    "solver": ("cholesky", "eigh", "cg", "auto"),
    "precision": ("auto", "mixed", "float64"),
    "keep_equations": (True, False),
}
ESTIMATORS = {
    surff.FourierFeatures: FEATURES,
    surff.NystroemFeatures: LANDMARKS,
    surff.KernelRidgeRegressor: {**RIDGE, "alpha_per_target": (False, True)},
    surff.KernelRidgeClassifier: {**RIDGE, "probability": (False, True)},
    surff.KernelLogisticClassifier: MODEL,
}

#: Who may raise: surff itself, and the checks of scikit-learn and its splitters.
RAISES = re.compile(
    r"[/\\]surff[/\\]|array_api_compat|scipy[/\\]sparse|sklearn[/\\](utils|model_selection|base\.py|metrics|cluster)|"
    r"fuzz[/\\]estimators\.py"
)


# -- Cases -----------------------------------------------------------------------------


def pick(rng, values):
    """One of some values, whatever they are."""
    return values[int(rng.integers(len(values)))]


def parameters(rng, allowed):
    """Some parameters of an estimator; one in forty is odd."""
    chosen = {}
    for name, values in allowed.items():
        if rng.random() < 0.025:
            chosen[name] = pick(rng, ODD)
        elif rng.random() < 0.4 or name in ("n_components", "random_state"):
            chosen[name] = pick(rng, values)
    return chosen


def estimator(rng):
    """An estimator that is not fitted."""
    kind = pick(rng, list(ESTIMATORS))
    options = parameters(rng, ESTIMATORS[kind])
    if "features" in kind().get_params(deep=False):
        maps = pick(rng, (surff.FourierFeatures, surff.NystroemFeatures))
        features = maps(**parameters(rng, ESTIMATORS[maps]))
        options["features"] = features if rng.random() < 0.97 else pick(rng, ODD)
    return kind(**options)


def numbers(rng, n, d):
    """Rows, most of them harmless."""
    X = rng.normal(size=(n, d))
    kind = rng.integers(24)
    if kind == 0:
        X *= 10.0 ** pick(rng, (-320, -300, -160, -30, 30, 100, 150, 200, 300))
    elif kind == 1:
        X = np.repeat(X[:1], n, axis=0)
    elif kind == 2:
        X[:, : d // 2 + 1] = pick(rng, (0.0, 1.0, 1e16))
    elif kind == 3 and X.size:
        X.flat[rng.integers(X.size)] = pick(rng, (np.nan, np.inf, -np.inf, 1e300))
    elif kind == 4:
        X = np.round(X)
    elif kind == 5:
        X += 10.0 ** rng.integers(3, 18)
    return X


def broken(rng, X):
    """A sparse matrix whose parts may not fit together."""
    X = sparse.csr_array(np.where(X > 0, X, 0.0))
    kind, place = rng.integers(6), int(rng.integers(max(1, X.nnz)))
    with np.errstate(all="ignore"):
        if kind == 0 and X.nnz:
            X.indices[place] = pick(rng, (-1, -(2**30), 2**30, X.shape[1]))
        elif kind == 1:
            X.indptr[int(rng.integers(len(X.indptr)))] = pick(rng, (-1, 2**30, 0))
        elif kind == 2:
            X.data = X.data[: X.nnz // 2]
        elif kind == 3:
            X.indices = X.indices.astype(np.int64)
    return X


def held(rng, X):
    """The rows in some container and dtype."""
    kind = rng.integers(40)
    with np.errstate(all="ignore"):
        if kind <= 5:
            return X.astype(np.float32)
        if kind == 6:
            return X.astype(
                pick(rng, ("i8", "i1", "u2", "?", "f2", "g", "c16", "S4", "O"))
            )
    if kind == 7:
        return np.asfortranarray(X)
    if kind == 8:
        return np.repeat(X, 2, axis=0)[::2]
    if kind == 9:
        return pd.DataFrame(X, columns=[f"x{j // 2 * 2}" for j in range(X.shape[1])])
    if kind == 10:
        return pd.DataFrame(X).astype(pick(rng, ("float64", "Float64", "string")))
    if kind == 11:
        return X.tolist()
    if kind == 12:
        return pick(rng, (X[:, 0], X[None], X[:, :0], X[:0], 3.0, None, "rows"))
    if kind in (13, 14):
        return pick(rng, (sparse.csc_array, sparse.coo_array, sparse.csr_matrix))(X)
    if kind == 15:
        return broken(rng, X)
    return X


def target(rng, X, classify):
    """Targets, most of them such as the estimator takes."""
    n = len(X)
    y = np.nan_to_num(X[:, 0], posinf=1.0, neginf=-1.0) if X.shape[1] else np.zeros(n)
    if classify:
        labels = np.where(y > np.median(y) if n else y > 0, 1, 0)
        names = np.array(["no", "yes", "maybe"])
        y = pick(rng, (labels, labels, labels.astype(bool), names[labels]))
        if rng.random() < 0.2:
            y = rng.integers(3, size=n)
        if rng.random() < 0.1:
            y = rng.integers(2, size=(n, 2))
    kind = rng.integers(45)
    with np.errstate(all="ignore"):
        if kind == 0:
            y = np.full(n, pick(rng, (0.0, 0.1, 1e308, 5)))
        elif kind == 1:
            y = rng.normal(size=n) * 10.0 ** pick(rng, (-310, -200, 150, 200, 307))
        elif kind == 2:
            y = np.append(rng.normal(size=n)[1:], pick(rng, (np.nan, np.inf)))
        elif kind == 3:
            y = rng.normal(size=(n, int(rng.integers(0, 4))))
        elif kind == 4:
            y = pick(rng, (rng.normal(size=n + 1), None, 1.0, "y", [], y[:0]))
        elif kind == 5:
            y = np.array([pick(rng, (1, "a", None, 2.5)) for _ in range(n)], object)
        elif kind == 6:
            y = rng.normal(size=n).astype(pick(rng, ("c16", "f4", "f2", "m8[s]")))
    return y


def weights(rng, n):
    """Weights of the rows, or None."""
    kind = rng.integers(30)
    values = {
        0: np.ones(n),
        1: rng.uniform(size=n),
        2: rng.integers(0, 3, size=n),
        3: np.zeros(n),
        4: np.full(n, pick(rng, (1e308, 1e-308, 1e150, 1e-200))),
        5: -np.ones(n),
        6: np.where(rng.random(n) < 0.2, np.nan, 1.0),
        7: pick(rng, (np.ones(n + 1), 2.0, "w", np.ones((n, 2)), ["a"] * n)),
    }
    return values.get(int(kind))


# -- What is done ----------------------------------------------------------------------


def fitted(rng, model, X, y, weight):
    """Fit in one of the ways there are."""
    seed = int(rng.integers(2**31))
    options = {} if weight is None else {"sample_weight": weight}
    way = rng.integers(8)
    if way == 0 and hasattr(model, "partial_fit"):
        classes = {"classes": np.unique(y)} if hasattr(model, "predict_set") else {}
        return model.partial_fit(X, y, **options, **classes)
    if way == 1 and hasattr(model, "fit_stream"):
        return model.fit_stream(ArrayRows(X, y, weight, block_rows=1 + seed % 40))
    if way == 2 and hasattr(model, "fit_stream"):
        return model.fit_stream(BlockRows(lambda: [(X, y), (X, y)]))
    return model.fit(X, y, **options)


def answers(model, X):
    """All that a model says of rows, by method."""
    found = {}
    for method in ("predict", "decision_function", "predict_proba", "transform"):
        if hasattr(model, method):
            found[method] = getattr(model, method)(X)
    return found


def estimator_case(rng):
    """Fit, ask, and fit again; see the module."""
    model = estimator(rng)
    n, d = int(pick(rng, (1, 2, 3, 5, 12, 40, 40, 60))), int(rng.integers(1, 5))
    rows = numbers(rng, n, d)
    X = held(rng, rows)
    y = target(rng, rows, hasattr(model, "predict") and "Classifier" in repr(model))
    weight = weights(rng, n)
    way = rng.integers(2**31)
    first = answers(fitted(np.random.default_rng(way), model, X, y, weight), X)
    for method, values in first.items():
        if values.shape[0] != n:
            return "shape", f"{method}: {values.shape} for {n} rows"
        kind = getattr(values, "dtype", np.dtype(object)).kind
        if kind in "fc" and not np.isfinite(values).all():
            return "not finite", f"{method} of {model}"
    if random(model):
        return "fitted", ""
    again = clone(model)
    second = answers(fitted(np.random.default_rng(way), again, X, y, weight), X)
    for method, values in first.items():
        if not np.array_equal(values, second[method]):
            return "not the same", f"{method} of {model}"
    return "fitted", ""


def random(model):
    """Whether a second fit may draw other numbers."""
    return any(
        value is None if name == "features" else not isinstance(value, int)
        for name, value in model.get_params().items()
        if name == "features" or name.endswith("random_state")
    )


def function_case(rng):
    """Call a function that takes a model and rows, or arrays."""
    n, d = int(pick(rng, (1, 2, 5, 30))), int(rng.integers(1, 5))
    rows = numbers(rng, n, d)
    X, y = held(rng, rows), target(rng, rows, classify=False)
    which = rng.integers(7)
    odd = pick(rng, ODD)
    alpha = pick(rng, (None, 0.1, 1.0, odd))
    if which >= 5:
        return array_case(rng, X, rows, which == 5)
    base = np.random.default_rng(0).normal(size=(30, d))
    model = surff.KernelRidgeRegressor(
        surff.FourierFeatures(8, random_state=0), alphas=1.0
    ).fit(base, base[:, 0])
    call = (
        lambda: inspection.effective_dof(model, X, alpha=alpha),
        lambda: inspection.leverage_scores(
            model, X, y, kind=pick(rng, ("ridge", "surrogate", odd)), alpha=alpha
        ),
        lambda: inspection.recommended_frequencies(
            model, X, y, alpha=alpha, delta=pick(rng, (0.1, 0.5, odd))
        ),
        lambda: inspection.kernel_approximation_error(
            model, X, n_samples=pick(rng, (1000, 2, odd)), random_state=0
        ),
        lambda: inspection.sample_kernel(
            model, X, n_samples=pick(rng, (1000, 3, odd)), random_state=0
        ),
    )[which]
    value = call()
    for part in value if isinstance(value, tuple) else [value]:
        if not np.isfinite(np.asarray(part)).all():
            return "not finite", f"function {which}: {part!r:.80}"
    return "fitted", ""


def array_case(rng, X, rows, features):
    """Call a compiled function on arrays whose shapes may not agree."""
    d = rows.shape[1] + int(pick(rng, (0, 0, 0, -1, 1)))
    W = numbers(rng, d, int(rng.integers(0, 9)))
    W = W.astype(pick(rng, ("f8", "f8", "f4", "i8", "O")))
    amplitudes = pick(rng, (None, np.ones(W.shape[1]), np.ones(1), np.ones((2, 2))))
    if features:
        out = pick(rng, (None, None, np.empty((len(rows), 2 * W.shape[1])), "out"))
        if isinstance(out, np.ndarray) and rng.random() < 0.5:
            out = pick(rng, (out[:-1], out[::-1], out.T, out.astype("f4"), out[0]))
        value = fourier_features(X, W, amplitudes, out=out)
    else:
        Y = rng.normal(size=(len(rows) + int(pick(rng, (0, 0, -1, 1))), 2))
        value = fourier_moments(X, W, Y, amplitudes)
    if np.isfinite(rows).all() and not np.isfinite(value).all():
        return "not finite", "function of arrays"
    return "fitted", ""


def run_case(seed, number, folder):
    """Outcome of one case, and what happened."""
    del folder
    rng = np.random.default_rng([seed, number])
    case = function_case if rng.random() < 0.2 else estimator_case
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        outcome, what = told(case, rng)
    kinds = collections.Counter(
        str(warning.message)[:60]
        for warning in caught
        if not issubclass(warning.category, UndefinedMetricWarning)
    )
    for warning in caught:
        ours = "surff" in Path(warning.filename).parts
        if ours and issubclass(warning.category, RuntimeWarning):
            place = f"{warning.filename}:{warning.lineno}"
            return "arithmetic", f"{warning.message} at {place}"
    if kinds and max(kinds.values()) > MOST_WARNINGS:
        return "warnings", str(kinds.most_common(1))
    return outcome, what


def told(case, rng):
    """Outcome of a case, errors included."""
    try:
        return case(rng)
    except (ValueError, TypeError, AttributeError) as error:
        place = traceback.extract_tb(error.__traceback__)[-1].filename
        if RAISES.search(place) and str(error):
            return "refused", ""
        return "raw error", traceback.format_exc()[-1500:]
    except MemoryError:
        return "memory", traceback.format_exc()[-1500:]
    except Exception:
        return "other exception", traceback.format_exc()[-1500:]


if __name__ == "__main__":
    options = cases.parser_of(__doc__, 1000).parse_args()
    run = functools.partial(run_case, options.seed)
    sys.exit(cases.main(run, options, GOOD))
