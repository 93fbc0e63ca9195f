"""Whether the attributes of a fitted model go together.

A model file may hold any numbers. Before a loaded model is handed out, every estimator
of surff in it is checked here: types, shapes and ranges of its results against each
other, and the answer to one row. What is checked first are the shapes that compiled
code and matrix products rely on.
"""

import functools
import inspect
import numbers
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils import get_tags
from sklearn.utils._param_validation import validate_parameter_constraints

from surff.draws import HadamardFrequencies
from surff.estimators._intervals import FoldModels
from surff.estimators._linear import LinearOnFeatures
from surff.estimators.base import Features
from surff.estimators.features import FourierFeatures
from surff.estimators.leaves import LeafHeads, LeafModel
from surff.estimators.logistic import KernelLogisticClassifier
from surff.estimators.nystroem import NystroemFeatures
from surff.estimators.ridge import KernelRidgeClassifier
from surff.linear import AlphaPath, LeafSums, NormalEquations, Partition

__all__ = [
    "ChecksItself",
    "check_fitted_state",
    "check_nothing_derived",
    "reachable",
]

#: What products with ordinary rows may multiply numbers by before they overflow.
ROOM = 1e6

#: Numbers whose squares, and differences of products, are far from overflow.
LARGE = 1e150

#: Words in the state of a Mersenne twister: its position is among them, or at the end.
TWISTER_WORDS = 624

#: Numbers that a Philox generator has in stock.
PHILOX_WORDS = 4


def check_fitted_state(model: Any) -> None:
    """Refuse a model whose parts contradict themselves or each other.

    Parameters
    ----------
    model : estimator
        Fitted or not; pipelines, searches, ensembles and frozen estimators are looked
        into.

    Raises
    ------
    ValueError
        Naming the class and the attribute.
    Exception
        What the model raises for one row.
    """
    parts = list(reachable(model))
    for cls, check in _CHECKS:
        for part in parts:
            if isinstance(part, cls):
                check(part)


def check_nothing_derived(model: Any) -> None:
    """Refuse a loaded model with results that follow from others: none are written."""
    for part in reachable(model):
        if isinstance(part, LinearOnFeatures):
            _require("_posterior_" not in vars(part), part, "_posterior_", "left out")


def reachable(root: Any) -> Iterator[Any]:
    """Iterate over an object and all that it holds, each once."""
    seen, waiting = {}, [root]
    while waiting:
        part = waiting.pop()
        if id(part) in seen or isinstance(part, str | bytes | numbers.Number | type):
            continue
        seen[id(part)] = part
        yield part
        waiting += _held(part)


def _held(part):
    """What an object holds."""
    if isinstance(part, np.ndarray):
        return part.ravel().tolist() if part.dtype.hasobject else []
    held = []
    if isinstance(part, dict):
        held += [*part.keys(), *part.values()]
    elif isinstance(part, list | tuple | set | frozenset):
        held += part
    if not callable(part) or hasattr(part, "get_params"):
        held += getattr(part, "__dict__", {}).values()
    return held


def _require(condition, owner, name, what):
    if not condition:
        raise ValueError(f"{name} of {type(owner).__name__} must be {what}")


def _kind(owner: Any, name: str, kind: type, what: str) -> Any:
    """An attribute that must be an instance of a class."""
    value = getattr(owner, name, None)
    _require(isinstance(value, kind), owner, name, what)
    return value


def _array(
    owner: Any, name: str, shape: tuple, kinds: str = "f", value: Any = None
) -> np.ndarray:
    """A native array of an attribute, its shape and type checked, and finite.

    ``shape`` holds a number for each axis, None for any.
    """
    value = getattr(owner, name, None) if value is None else value
    dtypes = {"f": ("f4", "f8"), "i": ("i4", "i8")}[kinds]
    _require(
        isinstance(value, np.ndarray)
        and value.dtype in [np.dtype(code) for code in dtypes]
        and value.ndim == len(shape)
        and all(
            size in (None, found)
            for size, found in zip(shape, value.shape, strict=True)
        ),
        owner,
        name,
        f"an array of shape {tuple('any' if n is None else n for n in shape)}",
    )
    _require(np.isfinite(value).all(), owner, name, "finite")
    return value


def _number(owner: Any, name: str, least: float | None = None) -> Any:
    """A finite number of an attribute, an array of no axes included."""
    value: Any = getattr(owner, name, None)
    _require(
        np.ndim(value) == 0
        and np.asarray(value).dtype.kind in "fiu"
        and np.isfinite(value)
        and (least is None or value >= least),
        owner,
        name,
        "a finite number" + ("" if least is None else f" >= {least}"),
    )
    return value


def _no_overflow(owner, name, size, dtype):
    """Refuse numbers of this size if rows would make infinities of them."""
    limit = np.finfo(dtype).max / ROOM
    _require(size <= limit, owner, name, f"below {limit:.0e} in {np.dtype(dtype)}")


def _count(owner, name):
    value: Any = getattr(owner, name, None)
    _require(
        isinstance(value, int | np.integer)
        and not isinstance(value, bool)
        and value >= 1,
        owner,
        name,
        "a whole number >= 1",
    )
    return int(value)


def _is_fitted(model):
    return any(
        name.endswith("_") and not name.startswith("__")
        for name in vars(model)
        if name != "feature_names_in_"
    )


def _check_parameters(model: Any):
    """Parameters that are there as `fit` checks them.

    Models of earlier versions may lack some.
    """
    _check_attributes(model)
    get_tags(model)  # asks the parameters that every method looks at
    constraints = model._parameter_constraints  # noqa: SLF001  (scikit-learn's name)
    own = {name: value for name, value in vars(model).items() if name in constraints}
    validate_parameter_constraints(
        {name: constraints[name] for name in own}, own, type(model).__name__
    )


def _check_attributes(part: Any):
    """No attribute of an object of surff in the place of a method of its class."""
    cls = type(part)
    if not cls.__module__.startswith("surff."):
        return
    parameters = _parameters_of(cls)
    for name in vars(part):
        if name in parameters or not hasattr(cls, name):
            continue
        # A property of the class counts more than what the object holds.
        is_property = isinstance(inspect.getattr_static(cls, name), property)
        _require(is_property, part, name, "what the class says")


@functools.cache
def _parameters_of(cls):
    return frozenset(inspect.signature(cls).parameters)


def _check_names(model, n_features):
    if "feature_names_in_" in vars(model):
        names = model.feature_names_in_
        _require(
            isinstance(names, np.ndarray)
            and names.shape == (n_features,)
            and all(isinstance(name, str) for name in names),
            model,
            "feature_names_in_",
            f"{n_features} names",
        )


def _check_gamma(features: Any, n_features: int):
    gamma = features.gamma_
    if np.ndim(gamma):
        gamma = _array(features, "gamma_", (n_features,))
    else:
        _number(features, "gamma_")
    _require(
        np.all(gamma > 0) and np.all(gamma <= LARGE), features, "gamma_", "positive"
    )


def _check_fourier(features: Any, n_features: int):
    """Results of `FourierFeatures`; the row that it is tried with."""
    frequencies = features.frequencies_
    if hasattr(frequencies, "projections"):
        shape, dtype = frequencies.shape, np.dtype(frequencies.dtype)
        _require(
            shape == (len(frequencies), n_features),
            features,
            "frequencies_",
            f"of {n_features} columns",
        )
    else:
        frequencies = _array(features, "frequencies_", (None, n_features))
        _require(len(frequencies) >= 1, features, "frequencies_", "one at least")
        shape, dtype = frequencies.shape, frequencies.dtype
        _no_overflow(features, "frequencies_", np.abs(frequencies).max(), dtype)
    weights = _array(features, "importance_weights_", shape[:1])
    _require(np.all(weights >= 0), features, "importance_weights_", ">= 0")
    if "phase_" in vars(features):
        _number(features, "phase_")
    if "warp_" in vars(features):
        warp = _array(features, "warp_", (2, n_features))
        rates = warp[1].astype(dtype)
        _require(
            np.all(rates >= np.finfo(dtype).tiny) and np.all(np.abs(warp) <= LARGE),
            features,
            "warp_",
            "centres and positive rates",
        )
        _no_overflow(features, "warp_", rates.max(), dtype)
    _check_gamma(features, n_features)
    return np.zeros((1, n_features), dtype)


def _check_nystroem(features: Any, n_features: int):
    """Results of `NystroemFeatures`; rows that it is tried with."""
    normalization = _array(features, "normalization_", (None, None))
    m = len(normalization)
    _require(
        m >= 1 and normalization.shape == (m, m), features, "normalization_", "square"
    )
    dtype = features._dtype  # noqa: SLF001  (the estimator's own file checks it)
    _require(
        dtype in (np.float32, np.float64), features, "_dtype", "float32 or float64"
    )
    _no_overflow(features, "normalization_", np.abs(normalization).max() * m, dtype)
    indices: Any = features.landmark_indices_
    if indices is not None:
        indices = _array(features, "landmark_indices_", (m,), "i")
        _require(np.all(indices >= 0), features, "landmark_indices_", "row numbers")
    if features.gamma_ is not None:
        _check_gamma(features, n_features)
    landmarks = features.landmarks_
    if landmarks is None:
        inside = indices is not None and indices.max() < n_features
        _require(inside, features, "landmark_indices_", "numbers of the columns")
        return np.zeros((1, n_features), dtype)
    if sparse.issparse(landmarks):
        _require(
            landmarks.format == "csr" and landmarks.shape == (m, n_features),
            features,
            "landmarks_",
            f"a CSR matrix of shape ({m}, {n_features})",
        )
        _array(features, "landmarks_", (None,), value=landmarks.data)
        return landmarks[[0, m // 2, m - 1]]
    landmarks = _array(features, "landmarks_", (m, n_features))
    _require(
        np.abs(landmarks).max() <= LARGE, features, "landmarks_", f"below {LARGE:.0e}"
    )
    return landmarks[[0, m // 2, m - 1]]


def _check_features(features: Any):
    """A feature map of surff, or one of a class that the user trusts."""
    _check_parameters(features)
    if not _is_fitted(features):
        return
    n_features = _count(features, "n_features_in_")
    _check_names(features, n_features)
    if isinstance(features, FourierFeatures):
        rows = _check_fourier(features, n_features)
    elif isinstance(features, NystroemFeatures):
        rows = _check_nystroem(features, n_features)
    else:
        return
    feature_map = features.feature_map().astype(rows.dtype)
    Z = feature_map(rows)
    _require(
        Z.shape == (rows.shape[0], feature_map.n_components) and np.isfinite(Z).all(),
        features,
        "feature_map",
        f"finite and of {feature_map.n_components} columns",
    )


def _check_importances(model, n_features):
    """Check what the columns count for; rows of a fit are in no file."""
    _require("_importance_rows" not in vars(model), model, "_importance_rows", "absent")
    if "_importances" in vars(model):
        importances = _array(model, "_importances", (2, n_features))
        _require(np.all(importances >= 0), model, "_importances", ">= 0")


def _check_linear(model: Any):
    """A model on features that are checked already: what multiplies them."""
    _check_parameters(model)
    if not _is_fitted(model):
        return
    features = _kind(model, "features_", Features, "a feature map")
    n_features = _count(model, "n_features_in_")
    _check_names(model, n_features)
    _require(
        n_features == features.n_features_in_,
        model,
        "n_features_in_",
        f"{features.n_features_in_}, as that of its features",
    )
    m = features.feature_map().n_components
    k = _check_coefficients(model, m)
    reach = 1.0
    if isinstance(features, FourierFeatures):
        reach = max(1.0, float(np.sqrt(features.importance_weights_.max())))
    with np.errstate(over="ignore"):
        size = float(np.abs(model.primal_coef_).max()) * m * reach
    size += float(np.abs(model.intercept_).max())
    _no_overflow(model, "primal_coef_", size, model.primal_coef_.dtype)
    if "leaves_" in vars(model):
        _check_leaves(model, m, k, reach)
    if "leaf_sums_" in vars(model):
        _check_leaf_sums(model, m, k)
    _check_alpha(model, k)
    if "n_iter_" in vars(model):  # files of version 0.1.0 may have none
        _count(model, "n_iter_")
    if "equations_" in vars(model):
        equations = model.equations_
        _require(
            isinstance(equations, NormalEquations)
            and equations.moments.shape == (m, k),
            model,
            "equations_",
            f"those of {m} components and {k} targets",
        )
        _array(model, "_offset", (k,))
    if "_with_intercept" in vars(model):
        _kind(model, "_with_intercept", bool, "True or False")
    if "fold_models_" in vars(model):
        _check_folds_of(model, n_features, m, k)
    _check_importances(model, n_features)
    if vars(model).get("_held_out_noise") is not None:
        noise = _array(model, "_held_out_noise", (k,))
        _require(np.all(noise >= 0), model, "_held_out_noise", ">= 0")
    if "calibration_" in vars(model) or getattr(model, "probability", False):
        curves = _array(model, "calibration_", (k, 2))
        _require(
            np.all(np.abs(curves) <= LARGE), model, "calibration_", f"below {LARGE:.0e}"
        )


def _check_fold_models(models: Any):
    """Shapes of the parts against each other, and scores in their order."""
    n_folds, m, parts, k = _array(models, "coefs", (None,) * 4).shape
    _require(n_folds >= 1 and parts in (1, 2), models, "coefs", "of 1 or 2 parts")
    _array(models, "intercepts", (n_folds, parts, k))
    if parts == 2 or models.floors is not None:
        floors = _array(models, "floors", (n_folds, k))
        _require(parts == 2 and np.all(floors > 0), models, "floors", "positive")
    values = _array(models, "values", (None,))
    weights = _array(models, "weights", values.shape)
    _require(np.all(weights > 0), models, "weights", "positive")
    starts = _array(models, "starts", (None,), "i")
    cells, left = divmod(len(starts) - 1, n_folds)
    _require(
        left == 0
        and cells in (1, k)
        and starts[0] == 0
        and starts[-1] == len(values)
        and np.all(np.diff(starts) >= 0),
        models,
        "starts",
        "where scores begin, for each target and fold",
    )
    falls = np.flatnonzero(np.diff(values) < 0) + 1
    _require(np.isin(falls, starts).all(), models, "values", "ascending in each fold")
    features: Any = models.features
    _require(
        isinstance(features, list) and len(features) in (0, n_folds),
        models,
        "features",
        "a list of those of each fold, or empty",
    )
    for own in features:
        _require(isinstance(own, Features), models, "features", "feature maps")
        columns = own.feature_map().n_components
        _require(columns <= m, models, "features", f"of {m} columns at most")


def _check_folds_of(model: Any, n_features: int, m: int, k: int):
    """Models of the folds of a model of m components and k targets."""
    models = _kind(model, "fold_models_", FoldModels, "FoldModels")
    own = models.features
    fits = models.coefs.shape[3] == k and (own or models.coefs.shape[1] == m)
    cells = (len(models.starts) - 1) // len(models.coefs)
    labels = isinstance(model, KernelRidgeClassifier | KernelLogisticClassifier)
    _require(
        fits
        and cells == (1 if labels else k)
        and all(part.n_features_in_ == n_features for part in own),
        model,
        "fold_models_",
        f"those of {n_features} features, {m} components and {k} targets",
    )


def _check_coefficients(model: Any, m: int):
    """Coefficients, intercepts and classes; the number of targets."""
    if np.ndim(model.primal_coef_) == 1:
        _require("classes_" not in vars(model), model, "primal_coef_", "of two axes")
        _array(model, "primal_coef_", (m,))
        _number(model, "intercept_")
        return 1
    k = len(_array(model, "primal_coef_", (None, m)))
    _array(model, "intercept_", (k,))
    _require(k >= 1, model, "primal_coef_", "of one target at least")
    if isinstance(model, KernelRidgeClassifier | KernelLogisticClassifier):
        _check_classes(model, k)
    return k


def _check_leaves(model: Any, m: int, k: int, reach: float):
    """Trees and heads of a model's leaves; `Partition` has checked its arrays."""
    leaves = _kind(model, "leaves_", LeafModel, "a LeafModel")
    partition, n_leaves, size = leaves.partition, 0, 0.0
    if partition is not None:
        _require(
            isinstance(partition, Partition)
            and partition.n_features == model.n_features_in_,
            leaves,
            "partition",
            f"trees on {model.n_features_in_} columns",
        )
        n_leaves = partition.n_leaves
    coef = _array(leaves, "coef", (n_leaves, k, m))
    intercept = _array(leaves, "intercept", (n_leaves, k))
    if n_leaves:
        with np.errstate(over="ignore"):
            size = float(np.abs(coef).max()) * m * reach
            size += float(np.abs(intercept).max())
            size *= partition.n_trees
    _no_overflow(leaves, "coef", size, model.primal_coef_.dtype)
    _require(
        np.ndim(leaves.alpha) == 0 and leaves.alpha > 0, leaves, "alpha", "positive"
    )
    trials = leaves.trials
    _require(
        isinstance(trials, np.ndarray)
        and trials.dtype == np.float64
        and trials.ndim == 2
        and trials.shape[1] == 3,
        leaves,
        "trials",
        "an array of three columns",
    )


def _check_leaf_sums(model: Any, m: int, k: int):
    """Sums over the rows of every leaf."""
    sums = _kind(model, "leaf_sums_", LeafSums, "LeafSums")
    n_leaves = model.leaves_.n_leaves
    _require(isinstance(sums.fit_intercept, bool), sums, "fit_intercept", "a bool")
    p = m + sums.fit_intercept
    _array(sums, "moments", (n_leaves, p, k))
    _array(sums, "grams", (n_leaves, p * (p + 1) // 2))
    n_rows = _array(sums, "n_rows", (n_leaves,), "i")
    _require(np.all(n_rows >= 0), sums, "n_rows", ">= 0")


def _check_leaf_heads(leaves: Any):
    """Parameters of leaf heads."""
    _check_attributes(leaves)
    leaves.check_parameters()


def _check_classes(model: Any, k: int):
    classes: Any = getattr(model, "classes_", None)
    _require(
        isinstance(classes, np.ndarray) and classes.ndim == 1, model, "classes_", "flat"
    )
    multilabel = False
    if isinstance(model, KernelRidgeClassifier):
        multilabel = _kind(model, "_multilabel", bool, "True or False")
    columns = len(classes) if multilabel or len(classes) > 2 else len(classes) - 1
    _require(
        k == columns and np.array_equal(np.unique(classes), classes),
        model,
        "classes_",
        f"labels of {k} columns of decisions, sorted",
    )


def _check_alpha(model: Any, k: int):
    if np.ndim(model.alpha_):
        alpha = _array(model, "alpha_", (k,))
    else:
        alpha = _number(model, "alpha_")
    _require(np.all(alpha >= 0), model, "alpha_", ">= 0")
    if "alpha_path_" in vars(model):
        path = _kind(model, "alpha_path_", AlphaPath, "an AlphaPath")
        alphas = _array(model, "alphas", (None,), value=path.alphas)
        scores = path.scores
        _require(
            isinstance(scores, np.ndarray)
            and scores.dtype == np.float64
            and scores.ndim in (2, 3)
            and len(scores) == len(alphas),
            model,
            "alpha_path_",
            "alphas and the scores of each",
        )
    score = getattr(model, "best_score_", None)
    if score is not None and np.ndim(score) == 0:
        _number(model, "best_score_")


def _check_equations(equations):
    """Sums of rows, of m components and k targets."""
    m, k = _array(equations, "moments", (None, None)).shape
    _array(equations, "_gram", (m, m))
    _array(equations, "feature_sum", (m,))
    _array(equations, "target_sum", (k,))
    _array(equations, "target_square", (k,))
    _number(equations, "weight_sum", 0.0)
    _require(
        vars(equations).get("_float32_gram") is None
        and vars(equations).get("_float32_rows") == 0,
        equations,
        "_float32_gram",
        "added",
    )


def _check_hadamard(frequencies: Any):
    """Structured frequencies: built again, so that their class checks its parts."""
    again = HadamardFrequencies(
        frequencies.signs,
        frequencies.norms,
        frequencies.column_scale,
        frequencies.dtype,
    )
    s, d = again.shape
    _array(frequencies, "norms", (s,))
    _array(frequencies, "column_scale", (d,))
    # Three transforms without a factor come before the norms.
    scale = float(np.abs(frequencies.column_scale).max()) * again.signs.shape[2] ** 3
    norm = float(np.abs(frequencies.norms).max())
    _no_overflow(frequencies, "norms", scale * max(norm, 1.0), frequencies.dtype)
    _require(frequencies.shape == (s, d), frequencies, "shape", (s, d))


def _check_sparse(matrix):
    """Indices within their matrix: compiled products rely on it."""
    _require(
        matrix.format in ("csr", "csc")
        and matrix.ndim == 2
        and matrix.indices.dtype.kind == "i"
        and matrix.indptr.dtype.kind == "i",
        matrix,
        "indices",
        "whole numbers of a CSR or CSC matrix",
    )
    matrix.check_format(full_check=True)


def _check_random_state(random_state):
    """A position outside the state would be read from foreign memory."""
    if isinstance(random_state, np.random.Generator):
        state = random_state.bit_generator.state
    else:
        state = random_state.get_state(legacy=False)
    if state["bit_generator"] == "MT19937":
        inside = 0 <= state["state"]["pos"] <= TWISTER_WORDS
        _require(inside, random_state, "pos", f"from 0 to {TWISTER_WORDS}")
    if state["bit_generator"] == "Philox":
        inside = 0 <= state["buffer_pos"] <= PHILOX_WORDS
        _require(inside, random_state, "buffer_pos", f"from 0 to {PHILOX_WORDS}")


class ChecksItself(ABC):
    """Base of estimators of other rooms, which know what their results must be."""

    @abstractmethod
    def check_state(self) -> None:
        """Raise ValueError if results contradict each other; pass if not fitted."""


def _check_itself(part: ChecksItself):
    part.check_state()


#: What is checked of the instances of each class, the parts of others before them.
_CHECKS = (
    (sparse.spmatrix, _check_sparse),
    (sparse.sparray, _check_sparse),
    (HadamardFrequencies, _check_hadamard),
    (NormalEquations, _check_equations),
    (Features, _check_features),
    (LeafHeads, _check_leaf_heads),
    (FoldModels, _check_fold_models),
    (LinearOnFeatures, _check_linear),
    (np.random.Generator, _check_random_state),
    (np.random.RandomState, _check_random_state),
    (BaseEstimator, _check_attributes),
    (ChecksItself, _check_itself),
)
