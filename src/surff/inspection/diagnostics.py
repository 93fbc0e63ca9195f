r"""Diagnostics of fitted feature maps and models: quantities of the theory, errors.

Functions here take a fitted transformer, or a fitted model that holds one, check their
input and call the formulas of `surff.selection.leverage`, `surff.inspection.theory` and
`surff.inspection.approximation`. A model that has kept its normal equations answers
without the data; everything else takes one streaming pass.
"""

from __future__ import annotations

import numbers
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from surff.backend import (
    Array,
    as_generator,
    checked_weight,
    map_rows,
    positive,
    validated,
)
from surff.estimators import Features, FourierFeatures, numeric_targets
from surff.inspection.approximation import relative_error
from surff.inspection.theory import (
    pool_surrogate_dof,
    theorem_1_features,
    theorem_2_features,
)
from surff.linear import accumulate
from surff.selection import SurrogateLeverage, pair_scores, ridge_column_scores
from surff.selection import effective_dof as dof_of_gram

__all__ = [
    "KernelSample",
    "RecommendedFrequencies",
    "effective_dof",
    "fourier_features_of",
    "kernel_approximation_error",
    "leverage_scores",
    "recommended_frequencies",
    "sample_kernel",
]


def effective_dof(
    model: Any,
    X: Array = None,
    *,
    alpha: float | None = None,
    sample_weight: npt.ArrayLike | None = None,
) -> float | np.ndarray:
    r"""Effective degrees of freedom of ridge regression on the features.

    Computes :math:`\mathrm{tr}\, G (G + \alpha I)^{-1}` with the Gram matrix
    :math:`G = Z^\top W Z` of the features, their means taken out where the model has an
    intercept (which is not counted).

    Parameters
    ----------
    model : fitted estimator
        A `KernelRidgeRegressor` or `KernelRidgeClassifier`, or a feature map of surff.
    X : array-like or sparse matrix of shape (n_samples, n_features), optional
        Rows; by default those of the fit, from the normal equations of the model.
        A feature map needs them.
    alpha : float, optional
        Regularisation, > 0, in units of :math:`Z^\top Z`; the paper's
        :math:`n \lambda`. By default the model's ``alpha_``; a feature map has none.
    sample_weight : array-like of shape (n_samples,), optional
        Weights of the rows of ``X``, >= 0.

    Returns
    -------
    float, or ndarray of shape (n_targets,) for a model with one alpha per target
        Between 0 and the number of features.

    Raises
    ------
    ValueError
        If ``X`` or ``alpha`` is missing or wrong.
    sklearn.exceptions.NotFittedError
        If the model is not fitted.

    See Also
    --------
    surff.selection.effective_dof : The same for a Gram matrix.

    Notes
    -----
    ``O(m^3)`` time for m features, and ``O(n m (d + m))`` for n rows of ``X``. A
    feature map alone is not centred: the number estimates the paper's
    :math:`d = \mathrm{tr}\, K (K + n \lambda I)^{-1}`.

    Examples
    --------
    >>> import numpy as np
    >>> from surff import FourierFeatures, KernelRidgeRegressor
    >>> from surff.inspection.diagnostics import effective_dof
    >>> X = np.linspace(0, 1, 50)[:, None]
    >>> features = FourierFeatures(20, random_state=0)
    >>> smooth = KernelRidgeRegressor(features, alphas=10.0).fit(X, X[:, 0])
    >>> rough = KernelRidgeRegressor(features, alphas=0.01).fit(X, X[:, 0])
    >>> 1 < effective_dof(smooth) < effective_dof(rough) < 20
    True
    """
    equations = _equations(model, X, None, sample_weight)
    gram = equations.centred(getattr(model, "fit_intercept", False)).gram
    alpha = _alpha(model, alpha)
    values = np.array([dof_of_gram(gram, a) for a in np.ravel(alpha)])
    return values if np.ndim(alpha) else float(values[0])


def leverage_scores(
    model: Any,
    X: Array,
    y: npt.ArrayLike | None = None,
    *,
    kind: str = "ridge",
    alpha: float | None = None,
    ridge_term: bool = False,
    sample_weight: npt.ArrayLike | None = None,
) -> np.ndarray:
    r"""Leverage of each frequency of a fitted Fourier map on data.

    "ridge" is the diagonal of :math:`Z^\top Z (Z^\top Z + \alpha I)^{-1}`, cosine and
    sine added; "surrogate" is the paper's :math:`\|z_w^* Y\|^2`, and
    :math:`\|z_w^* Y\|^2 + n^2` with the ridge term. Both include the importance weight
    :math:`p(w) / q(w)` that the map gives the frequency.

    Parameters
    ----------
    model : fitted estimator
        A `FourierFeatures`, or a model that holds one.
    X : array-like or sparse matrix of shape (n_samples, n_features)
        Rows.
    y : array-like of shape (n_samples,) or (n_samples, n_targets), optional
        Labels or numbers, as in `FourierFeatures.fit`; for the surrogate only.
    kind : {"ridge", "surrogate"}, default="ridge"
        Which leverage.
    alpha : float, optional
        Regularisation of the ridge leverage, > 0; the paper's :math:`n \lambda`. By
        default the model's ``alpha_``; a feature map has none.
    ridge_term : bool, default=False
        Whether the surrogate keeps the paper's ``n I`` term.
    sample_weight : array-like of shape (n_samples,), optional
        Row weights, >= 0.

    Returns
    -------
    scores : ndarray of shape (n_frequencies,)
        Not negative. "ridge" scores sum to `effective_dof` of the feature map; the
        surrogate is given up to the factor :math:`1 / (n^2 \lambda)`.

    Raises
    ------
    ValueError
        For an unknown kind, or where ``y`` or ``alpha`` is missing.
    TypeError
        If the features are not Fourier features.

    See Also
    --------
    surff.selection.ridge_leverage_scores : The same for a Gram matrix.
    surff.selection.surrogate_leverage_scores : The same for moments.

    Notes
    -----
    One streaming pass: ``O(n m (d + m) + m^3)`` time for "ridge", ``O(n m d)`` for
    "surrogate".

    References
    ----------
    .. [1] F. Liu, X. Huang, Y. Chen, J. Yang, J. A. K. Suykens, "Random Fourier
       Features via Fast Surrogate Leverage Weighted Sampling", AAAI 2020.

    Examples
    --------
    >>> import numpy as np
    >>> from surff import FourierFeatures
    >>> from surff.inspection.diagnostics import effective_dof, leverage_scores
    >>> X = np.random.default_rng(0).normal(size=(50, 2))
    >>> features = FourierFeatures(8, random_state=0).fit(X)
    >>> scores = leverage_scores(features, X, alpha=1.0)
    >>> scores.shape
    (4,)
    >>> bool(np.isclose(scores.sum(), effective_dof(features, X, alpha=1.0)))
    True
    """
    features = fourier_features_of(model)
    if kind == "ridge":
        alpha = _one_alpha(model, alpha)
        gram = _equations(model, X, None, sample_weight).gram
        scores = ridge_column_scores(gram, alpha)
        # With an odd number of columns the last frequency has no sine.
        return pair_scores(np.append(scores, np.zeros(len(scores) % 2)))
    if kind != "surrogate":
        raise ValueError(f"kind must be 'ridge' or 'surrogate', got {kind!r}.")
    if y is None:
        raise ValueError("y must be given for kind='surrogate', got None.")
    X, sample_weight = _validated(model, X, sample_weight)
    X = features.bend(X)
    frequencies = np.asarray(features.frequencies_).astype(X.dtype, copy=False)
    scores = SurrogateLeverage(ridge_term).scores(
        frequencies, X, numeric_targets(y, X), sample_weight
    )
    return features.importance_weights_ * scores


class RecommendedFrequencies(NamedTuple):
    r"""Numbers of frequencies that the paper's theorems ask for, and their reasons.

    Attributes
    ----------
    theorem_1, theorem_2 : int
        Frequencies; a map needs two columns for each.
    effective_dof : float
        :math:`d`, of the map's kernel.
    surrogate_dof : float
        :math:`D`, of the map's kernel.
    """

    theorem_1: int
    theorem_2: int
    effective_dof: float
    surrogate_dof: float


def recommended_frequencies(
    model: Any,
    X: Array = None,
    y: npt.ArrayLike | None = None,
    *,
    alpha: float | None = None,
    delta: float = 0.1,
    sample_weight: npt.ArrayLike | None = None,
) -> RecommendedFrequencies:
    r"""Number of frequencies that Theorems 1 and 2 recommend, from a fitted map.

    .. math:: s_1 = \frac{5 D \log(16 d)}{\delta}, \qquad
              s_2 = \max\Bigl(\frac{7 \log(16 d)}{\lambda \delta},\;
              \frac{5 D \log(16 d)}{\delta}\Bigr)

    with d and D those of the kernel that the fitted map spans, in place of the exact
    kernel's.

    Parameters
    ----------
    model : fitted estimator
        A model on Fourier features, which answers from its normal equations, or a
        `FourierFeatures`, which needs ``X``, ``y`` and ``alpha``.
    X : array-like or sparse matrix of shape (n_samples, n_features), optional
        Rows; by default those that the model was fitted to.
    y : array-like of shape (n_samples,) or (n_samples, n_targets), optional
        Labels or numbers, as in `FourierFeatures.fit`; needed with ``X``.
    alpha : float, optional
        Regularisation, > 0; the paper's :math:`n \lambda`. By default the model's
        ``alpha_``.
    delta : float, default=0.1
        Failure probability, in (0, 1).
    sample_weight : array-like of shape (n_samples,), optional
        Weights of the rows of ``X``, >= 0.

    Returns
    -------
    RecommendedFrequencies

    Raises
    ------
    ValueError
        For a wrong ``delta``, missing arguments, or an ``alpha`` so large that d is at
        most 1 / 16, where the theorems say nothing.
    TypeError
        If the features are not Fourier features.

    See Also
    --------
    surff.inspection.theorem_1_features, surff.inspection.theorem_2_features

    Notes
    -----
    D is at least :math:`1 / \lambda = n / \alpha`, so the recommendation exceeds n for
    every ``alpha`` below :math:`5 \log(16 d) / \delta`: a guarantee, not a rule for
    practice. ``O(m^3)`` time for m features, and ``O(n m (d + m))`` with ``X``.

    References
    ----------
    .. [1] F. Liu, X. Huang, Y. Chen, J. Yang, J. A. K. Suykens, "Random Fourier
       Features via Fast Surrogate Leverage Weighted Sampling", AAAI 2020, Theorems 1
       and 2.

    Examples
    --------
    >>> import numpy as np
    >>> from surff import FourierFeatures
    >>> from surff.inspection.diagnostics import recommended_frequencies
    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> features = FourierFeatures(64, random_state=0).fit(X)
    >>> advice = recommended_frequencies(features, X, X[:, 0] > 0, alpha=10.0)
    >>> advice.surrogate_dof >= 100 / 10.0
    True
    >>> advice.theorem_2 >= advice.theorem_1 > 100
    True
    """
    fourier_features_of(model)
    if X is not None and y is None:
        raise ValueError("y must be given with X, got None.")
    alpha = _one_alpha(model, alpha)
    equations = _equations(model, X, y, sample_weight)
    moments, n = equations.moments, equations.weight_sum
    if X is None:  # a model sums targets less an offset
        moments = moments + np.outer(equations.feature_sum, model.target_offset)
    dof = dof_of_gram(equations.gram, alpha)
    if dof <= 1.0 / 16.0:
        raise ValueError(
            "alpha must leave more than 1/16 of a degree of freedom, got "
            f"alpha={alpha:.3g} with {dof:.3g}."
        )
    surrogate = pool_surrogate_dof(moments, n, alpha)
    return RecommendedFrequencies(
        theorem_1_features(surrogate, dof, delta),
        theorem_2_features(surrogate, dof, dof, alpha / n, delta),
        dof,
        surrogate,
    )


class KernelSample(NamedTuple):
    """The exact kernel and the features, on a sample of rows."""

    exact: np.ndarray  # (n_rows, n_rows)
    features: np.ndarray  # (n_rows, n_components)


def sample_kernel(
    model: Any,
    X: Array,
    *,
    n_samples: int = 1000,
    random_state: int | np.random.RandomState | np.random.Generator | None = None,
) -> KernelSample:
    """Exact kernel matrix and features of a sample of rows.

    Parameters
    ----------
    model : fitted estimator
        A feature map of surff, or a model that holds one.
    X : array-like or sparse matrix of shape (n_samples, n_features)
        Rows; all training rows for a precomputed kernel.
    n_samples : int, default=1000
        Rows to draw without replacement; all if there are fewer.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the sample of rows.

    Returns
    -------
    KernelSample
        float64, whatever the type of ``X``.

    Raises
    ------
    ValueError
        If ``n_samples`` is not a positive int.

    Notes
    -----
    ``O(s^2 d + s m (d + m))`` time for s rows and m features, ``O(s^2 + s m)`` memory.

    Examples
    --------
    >>> import numpy as np
    >>> from surff import FourierFeatures
    >>> from surff.inspection.diagnostics import sample_kernel
    >>> X = np.random.default_rng(0).normal(size=(50, 2))
    >>> features = FourierFeatures(8, random_state=0).fit(X)
    >>> K, Z = sample_kernel(features, X, n_samples=10, random_state=0)
    >>> K.shape, Z.shape
    ((10, 10), (10, 8))
    """
    features = _feature_map(model)
    if not isinstance(n_samples, numbers.Integral) or n_samples < 1:
        raise ValueError(f"n_samples must be an int >= 1, got {n_samples!r}.")
    X, _ = _validated(model, X, None)
    size = min(int(n_samples), X.shape[0])
    rows = np.sort(
        as_generator(random_state).choice(X.shape[0], size=size, replace=False)
    )
    if getattr(features, "kernel", None) == "precomputed":
        if X.shape[0] != X.shape[1]:
            raise ValueError(
                "X must be the square kernel matrix of the training rows for "
                f"kernel='precomputed', got shape {X.shape}."
            )
        exact = X[rows][:, rows]
        exact = exact.toarray() if sparse.issparse(exact) else exact
    else:
        exact = features.exact_kernel(X[rows])
    Z = map_rows(features.feature_map().astype(X.dtype), X[rows])
    return KernelSample(exact.astype(np.float64), Z.astype(np.float64))


def kernel_approximation_error(
    model: Any,
    X: Array,
    *,
    n_samples: int = 1000,
    norm: str = "spectral",
    random_state: int | np.random.RandomState | np.random.Generator | None = None,
) -> float:
    r"""Relative error :math:`\|K - Z Z^\top\| / \|K\|` on a sample of rows.

    Parameters
    ----------
    model : fitted estimator
        A feature map of surff, or a model that holds one.
    X : array-like or sparse matrix of shape (n_samples, n_features)
        Rows; all training rows for a precomputed kernel.
    n_samples : int, default=1000
        Rows to draw without replacement; all if there are fewer.
    norm : {"spectral", "frobenius"}, default="spectral"
        Key of `surff.inspection.NORMS`.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the sample of rows.

    Returns
    -------
    float
        0 for an exact map; 1 is no better than features of zero.

    Raises
    ------
    ValueError
        For an unknown norm, or if ``n_samples`` is not a positive int.

    See Also
    --------
    surff.inspection.relative_error, surff.KernelApproximationDisplay

    Notes
    -----
    ``O(s^3 + s^2 m)`` time for s rows and m features, ``O(s^2 + s m)`` memory.

    Examples
    --------
    >>> import numpy as np
    >>> from surff import FourierFeatures
    >>> from surff.inspection.diagnostics import kernel_approximation_error
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> few = FourierFeatures(32, random_state=0).fit(X)
    >>> many = FourierFeatures(4096, random_state=0).fit(X)
    >>> kernel_approximation_error(few, X) > 5 * kernel_approximation_error(many, X)
    True
    """
    sample = sample_kernel(model, X, n_samples=n_samples, random_state=random_state)
    return relative_error(*sample, norm)


def _feature_map(model: Any) -> Any:
    """The fitted feature map that ``model`` is or holds."""
    check_is_fitted(model)
    features = getattr(model, "features_", model)
    if not isinstance(features, Features):
        raise TypeError(
            "model must be a fitted feature map or kernel ridge model of surff, got "
            f"{model!r}."
        )
    return features


def fourier_features_of(model: Any) -> FourierFeatures:
    """The fitted Fourier feature map that ``model`` is or holds."""
    features = _feature_map(model)
    if not isinstance(features, FourierFeatures):
        raise TypeError(
            f"model must have Fourier features, which have frequencies, got {model!r}."
        )
    return features


def _alpha(model, alpha):
    """``alpha`` checked, or the model's."""
    if alpha is not None:
        alpha = positive("alpha", alpha)
        if not 1e-150 <= alpha <= 1e150:
            raise ValueError(f"alpha must be from 1e-150 to 1e150, got {alpha!r}.")
        return alpha
    if not hasattr(model, "alpha_"):
        raise ValueError("alpha must be given for a feature map alone, got None.")
    if np.min(model.alpha_) <= 0:
        raise ValueError(f"alpha must be positive, got alpha_={model.alpha_!r}.")
    return model.alpha_


def _one_alpha(model, alpha):
    """``alpha`` checked, or the model's if all targets have one."""
    alpha = _alpha(model, alpha)
    if np.ndim(alpha):
        raise ValueError(
            "alpha must be given for a model with one alpha per target, got None."
        )
    return alpha


def _validated(model: Any, X: Array, sample_weight: Any) -> tuple[Array, Any]:
    """Rows and weights, checked against what ``model`` was fitted to."""
    X = validated(model, X, reset=False)
    return X, checked_weight(sample_weight, X)


def _equations(model, X, y, sample_weight):
    """Normal equations of ``X``, or those that the model has kept."""
    features = _feature_map(model)
    if X is None:
        if not hasattr(model, "equations_"):
            raise ValueError(
                "X must be given for a feature map, or a model fitted with "
                "keep_equations=False, got None."
            )
        return model.equations_
    X, sample_weight = _validated(model, X, sample_weight)
    Y = np.zeros((X.shape[0], 0)) if y is None else numeric_targets(y, X)
    return accumulate(features.feature_map().astype(X.dtype), X, Y, sample_weight)
