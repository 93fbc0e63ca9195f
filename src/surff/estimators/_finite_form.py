"""The finite form of a fitted model: the arrays that its predictions are made of.

A model that `surff.Predictor` serves, or that `surff.to_onnx` and `surff.to_c` write
down, is a scaling of columns, a feature map with a finite formula, a linear head, and
the heads of leaves if it has any. Here these are collected, and everything else is
refused by name.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    RobustScaler,
    StandardScaler,
)
from sklearn.utils.validation import check_is_fitted

from surff.backend import folded, on_host, other_namespace
from surff.estimators._linear import LinearOnFeatures
from surff.estimators.features import FourierFeatures
from surff.estimators.leaves import LeafModel
from surff.estimators.logistic import KernelLogisticClassifier
from surff.estimators.nystroem import NystroemFeatures
from surff.estimators.ridge import KernelRidgeClassifier
from surff.kernels import (
    Exponential,
    ExponentialPower,
    Gaussian,
    Laplace,
    Matern,
    PairwiseKernel,
    RationalQuadratic,
    SpectralKernel,
    coefficients_of_pairs,
)

__all__ = ["FiniteForm", "FourierParts", "NystroemParts", "finite_form", "parts_of"]


class FiniteForm(NamedTuple):
    """What predictions are made of; all arrays are NumPy's."""

    scaling: tuple[np.ndarray, np.ndarray] | None  # x becomes (x - first) * second
    features: Any  # fitted Features
    coef: np.ndarray  # (m, k)
    intercept: np.ndarray  # (k,)
    leaves: LeafModel | None
    classes: np.ndarray | None  # of a classifier
    multilabel: bool
    probabilities: str | None  # "softmax", "platt" or None
    calibration: np.ndarray | None  # (k, 2), of "platt"
    flat: bool  # whether predictions have one dimension

    @property
    def n_features(self) -> int:
        """Columns of the rows."""
        return int(self.features.n_features_in_)


def finite_form(model: Any) -> FiniteForm:
    """Collect the finite form of a fitted model, or of a pipeline that ends in one.

    Parameters
    ----------
    model : estimator
        A kernel model of surff; or a pipeline of scikit-learn's scalers and one.

    Raises
    ------
    TypeError
        If the model, or a step before it, has no finite form.
    sklearn.exceptions.NotFittedError
        If it is not fitted.
    """
    scaling = None
    if isinstance(model, Pipeline):
        scaling = _scaling([step for _, step in model.steps[:-1]])
        model = model.steps[-1][1]
    if not isinstance(model, LinearOnFeatures):
        raise TypeError(
            "model must be a kernel ridge or logistic model of surff, or a pipeline of "
            f"scalers that ends in one, got {model!r:.80}."
        )
    check_is_fitted(model)
    if other_namespace(model.primal_coef_) is not None:
        model = on_host(model)
    features = model.features_
    if isinstance(features, FrozenEstimator):
        features = features.estimator
    coef = np.asarray(model.primal_coef_)
    intercept = np.atleast_1d(np.asarray(model.intercept_))
    coef = coef.reshape(len(intercept), -1).T
    leaves = getattr(model, "leaves_", None)
    if leaves is not None and leaves.partition is None:
        leaves = None
    probabilities = None
    if isinstance(model, KernelLogisticClassifier):
        probabilities = "softmax"
    elif hasattr(model, "calibration_"):
        probabilities = "platt"
    multilabel = isinstance(model, KernelRidgeClassifier) and bool(model._multilabel)  # noqa: SLF001
    return FiniteForm(
        scaling,
        features,
        coef,
        intercept,
        leaves,
        getattr(model, "classes_", None),
        multilabel,
        probabilities,
        getattr(model, "calibration_", None),
        np.ndim(model.primal_coef_) == 1
        or (hasattr(model, "classes_") and not multilabel),
    )


def _scaling(steps):
    """Shift and factor of the scalers together; None for no scaler."""
    shift, factor = np.zeros(1), np.ones(1)
    found = False
    for step in steps:
        if step is None or step == "passthrough":
            continue
        own_shift, own_factor = _scaling_of(step)
        # ((x - shift) factor - own) own_factor
        shift = shift + own_shift / factor
        factor = factor * own_factor
        found = True
    return (shift, factor) if found else None


def _scaling_of(step: Any) -> tuple[np.ndarray, np.ndarray]:
    """Shift and factor of one scaler."""
    check_is_fitted(step)
    if isinstance(step, StandardScaler):
        shift, scale = step.mean_ if step.with_mean else None, step.scale_
    elif isinstance(step, RobustScaler):
        shift, scale = step.center_, step.scale_
    elif isinstance(step, MaxAbsScaler):
        shift, scale = None, step.scale_
    elif isinstance(step, MinMaxScaler) and not step.clip:
        shift, scale = -step.min_ / step.scale_, 1.0 / step.scale_
    else:
        raise TypeError(
            "steps before the model must be StandardScaler, MinMaxScaler without clip, "
            f"MaxAbsScaler or RobustScaler, got {step!r:.80}."
        )
    n = step.n_features_in_
    shift = np.zeros(n) if shift is None else np.asarray(shift, dtype=np.float64)
    factor = np.ones(n) if scale is None else 1.0 / np.asarray(scale, np.float64)
    return shift, factor


class FourierParts(NamedTuple):
    """A Fourier map whose amplitudes and phase have gone into the coefficients."""

    frequencies: np.ndarray  # (s, d)
    warp: np.ndarray | None  # (2, d)
    coef: np.ndarray  # (2 s, k), float64: those of all cosines, then of all sines
    expand: Any  # makes such of the (m, k) coefficients of other heads


def fourier_parts(form: FiniteForm) -> FourierParts:
    r"""Parts of a fitted Fourier map, for those who write it down.

    Predictions are
    :math:`[\cos w_i^\top x, \sin w_i^\top x] \cdot \mathrm{expand}(\beta)`.
    """
    features: Any = form.features
    frequencies = np.asarray(features.frequencies_)
    s = len(frequencies)
    amplitudes = np.sqrt(np.asarray(features.importance_weights_) / s)
    phase = getattr(features, "phase_", None)

    def expand(coef):
        coef = coefficients_of_pairs(np.asarray(coef, dtype=np.float64), phase)
        return coef * np.tile(amplitudes, 2)[:, None]

    warp = getattr(features, "warp_", None)
    return FourierParts(frequencies, warp, expand(form.coef), expand)


class NystroemParts(NamedTuple):
    """A Nystrom map with the normalization in the coefficients."""

    points: np.ndarray  # (m, d), scaled as the rows
    shift: np.ndarray  # (d,), taken off rows before they are scaled
    scale: np.ndarray  # (d,)
    pairs: str  # what a value is a function of: "squared", "absolute", "product"
    function: str  # a key of `FUNCTIONS` in the module that writes C
    numbers: tuple[float, ...]  # its parameters
    coef: np.ndarray  # (m, k), float64
    expand: Any  # makes such of the coefficients of other heads


def parts_of(form: FiniteForm) -> FourierParts | NystroemParts:
    """Parts of the map of a model, for those who write it down.

    Raises
    ------
    TypeError
        If the map is none that can be written down.
    """
    if isinstance(form.features, FourierFeatures):
        return fourier_parts(form)
    if isinstance(form.features, NystroemFeatures):
        return nystroem_parts(form)
    raise TypeError(
        "features must be FourierFeatures or NystroemFeatures to be written down, "
        f"got {form.features!r:.80}; surff.Predictor serves every class."
    )


def nystroem_parts(form: FiniteForm) -> NystroemParts:
    """Parts of a fitted Nystrom map, for those who write it down.

    Raises
    ------
    TypeError
        If the kernel is none that can be written down.
    """
    features: Any = form.features
    values, coef = folded(features.feature_map(), form.coef)
    coef = coef[:, : form.coef.shape[1]]
    kernel, C = values.kernel, values.landmarks
    C = np.asarray(C.toarray() if sparse.issparse(C) else C, dtype=np.float64)
    found = None
    if isinstance(kernel, SpectralKernel):
        found = _spectral_function(kernel.measure)
        scale = np.broadcast_to(kernel.measure.scale(kernel.gamma), C.shape[1:])
        shift = C.mean(axis=0)
        C = (C - shift) * scale
    elif isinstance(kernel, PairwiseKernel):
        found = _pairwise_function(kernel, C.shape[1])
        shift, scale = np.zeros(C.shape[1]), np.ones(C.shape[1])
    if found is None:
        raise TypeError(
            f"features with kernel={features.kernel!r} have no form that can be "
            "written down: kernels that have are rbf, exponential, matern with nu 0.5, "
            "1.5 or 2.5, rational_quadratic, exponential_power, laplacian, linear, "
            "poly and sigmoid; surff.Predictor serves every kernel."
        )
    scale = np.array(scale, dtype=np.float64)
    expand = features.normalization_.__matmul__
    return NystroemParts(C, shift, scale, *found, coef, expand)


def _spectral_function(measure):
    """Pairs, function and parameters of a spectral measure's kernel; None for none."""
    if type(measure) is Gaussian:
        return "squared", "exp", ()
    if type(measure) is Laplace:
        return "absolute", "exp", ()
    if type(measure) is Exponential:
        return "squared", "exp_root", (math.sqrt(2.0),)
    if type(measure) is RationalQuadratic:
        return "squared", "rational", (float(measure.alpha),)
    if type(measure) is ExponentialPower:
        return "squared", "exp_power", (float(measure.power),)
    if type(measure) is Matern and measure.nu in (0.5, 1.5, 2.5):
        name = {0.5: "exp_root", 1.5: "matern_3", 2.5: "matern_5"}[measure.nu]
        return "squared", name, (math.sqrt(2.0) if measure.nu == 0.5 else 2.0,)
    return None


def _pairwise_function(kernel, n_features):
    """Pairs, function and parameters of a kernel of scikit-learn; None for none."""
    params = kernel.params
    gamma = params.get("gamma")
    gamma = 1.0 / n_features if gamma is None else float(gamma)
    coef0 = float(params.get("coef0", 1.0))
    if kernel.metric == "linear":
        return "product", "identity", ()
    if kernel.metric in ("poly", "polynomial"):
        return "product", "power", (gamma, coef0, float(params.get("degree", 3)))
    if kernel.metric == "sigmoid":
        return "product", "tanh", (gamma, coef0)
    return None
