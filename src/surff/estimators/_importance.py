r"""What the columns count for in a model on Fourier features.

For a model :math:`f_k(x) = b_k + \sum_j \beta^{\cos}_{jk} \cos w_j^\top \phi(x) +
\beta^{\sin}_{jk} \sin w_j^\top \phi(x)`, with amplitudes in the coefficients and a warp
:math:`\phi` of the columns or none, the importance of column j is

.. math:: I_j = \sigma_j^2\, \frac1n \sum_i \sum_k
          \Bigl(\frac{\partial f_k}{\partial x_j}(x_i)\Bigr)^2 ,

the diagonal of the average gradient outer product in units of the standard deviation
:math:`\sigma_j` of the column.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse

from surff.backend import row_blocks, rows_of, to_numpy
from surff.estimators.features import FourierFeatures
from surff.kernels import FourierMap, coefficients_of_pairs

__all__ = [
    "KEPT",
    "FeatureImportances",
    "dense",
    "has_gradient",
    "importances_of_gradients",
    "importances_of_rows",
    "row_gradients",
    "rows_for_importances",
]

#: What a fit keeps for the importances of columns: these, or rows to make them of.
KEPT = "_importances", "_importance_rows"

#: Most rows of a fit whose gradients are looked at: the error of the mean is then a few
#: percent of it.
MOST_ROWS = 500

#: Rows whose features are held at a time.
BLOCK_ROWS = 100

#: Most multiply-adds that they may cost, some hundredths of a second.
MOST_OPERATIONS = 2 * 10**8

#: Fewest rows, whatever they cost.
LEAST_ROWS = 50


class FeatureImportances(NamedTuple):
    """Importances of columns, see `surff.inspection.feature_importances`."""

    importances_mean: np.ndarray  # (n_features,)
    importances_std: np.ndarray  # (n_features,), standard errors of those means


def has_gradient(model: Any) -> bool:
    """Whether the gradient of a fitted model has a closed form here."""
    leaves = getattr(model, "leaves_", None)
    smooth = leaves is None or leaves.partition is None
    return smooth and isinstance(getattr(model, "features_", None), FourierFeatures)


def rows_for_importances(
    model: Any, X: Any, sample_weight: npt.ArrayLike | None = None
) -> tuple[Any, np.ndarray | None] | None:
    """Evenly spaced rows of a fit, and their weights, for `importances_of_rows`.

    Parameters
    ----------
    model : estimator
        With coefficients.
    X : array or CSR matrix of shape (n_samples, n_features)
        Checked rows.
    sample_weight : array-like of shape (n_samples,), optional
        Row weights, >= 0.

    Returns
    -------
    rows, weight : array or CSR matrix and ndarray or None, or None
        Copies; None where there is no closed form.
    """
    if not has_gradient(model):
        return None
    n, d = X.shape
    affordable = MOST_OPERATIONS // (d * math.prod(model.primal_coef_.shape))
    n_rows = min(n, MOST_ROWS, max(LEAST_ROWS, affordable))
    # In the middle of stretches of equal length.
    index = (np.arange(n_rows) * n + n // 2) // n_rows
    weight = None if sample_weight is None else np.asarray(sample_weight)[index]
    return rows_of(X, index), weight


def importances_of_rows(
    model: Any, rows: Any, weight: np.ndarray | None
) -> np.ndarray | None:
    """Importances and their standard errors, from `rows_for_importances`.

    Returns
    -------
    importances : ndarray of shape (2, n_features) or None
        None where a number is not finite, or coefficients that somebody has set do not
        go with the features.
    """
    n_columns = model.features_.feature_map().n_components
    if np.shape(model.primal_coef_)[-1:] != (n_columns,):
        return None
    if weight is not None and not weight.any():
        weight = None
    rows = dense(rows)
    with np.errstate(all="ignore"):
        gradients = row_gradients(model, rows)
        found = np.stack(importances_of_gradients(gradients, rows, weight))
    return found if np.isfinite(found).all() else None


def dense(rows: Any) -> np.ndarray:
    """Rows of any kind as a float64 array."""
    if sparse.issparse(rows):
        return rows.toarray().astype(np.float64)
    return np.asarray(to_numpy(rows), dtype=np.float64)


def importances_of_gradients(
    gradients: np.ndarray, rows: np.ndarray, weight: np.ndarray | None = None
) -> FeatureImportances:
    """Importances from the gradients of targets at rows.

    Parameters
    ----------
    gradients : ndarray of shape (n_rows, n_features)
        Sums over targets of squared derivatives.
    rows : ndarray of shape (n_rows, n_features)
        Where they were taken.
    weight : ndarray of shape (n_rows,), optional
        Row weights, >= 0, not all 0.

    Returns
    -------
    FeatureImportances
    """
    share = np.full(len(rows), 1.0) if weight is None else weight.astype(np.float64)
    share = share / share.sum()
    variance = share @ np.square(rows - share @ rows)
    mean = share @ gradients
    error = np.sqrt(np.square(share) @ np.square(gradients - mean))
    return FeatureImportances(variance * mean, variance * error)


def row_gradients(model: Any, rows: np.ndarray) -> np.ndarray:
    """Sums over targets of the squared derivatives at rows, in closed form.

    Parameters
    ----------
    model : fitted estimator
        One that `has_gradient`.
    rows : ndarray of shape (n_rows, n_features), float64
        Where.

    Returns
    -------
    squares : ndarray of shape (n_rows, n_features)

    Notes
    -----
    ``O(s d k)`` time per row for s frequencies and k targets; features of 100 rows are
    held.
    """
    features = model.features_
    W = np.asarray(to_numpy(features.frequencies_), dtype=np.float64)
    amplitudes = np.sqrt(to_numpy(features.importance_weights_)).astype(np.float64)
    coef = np.atleast_2d(to_numpy(model.primal_coef_)).astype(np.float64)
    coef = coefficients_of_pairs(coef.T, getattr(features, "phase_", None))
    cosine, sine = coef[: len(W)].T, coef[len(W) :].T
    slopes, bent = None, rows
    if hasattr(features, "warp_"):
        centres, rates = to_numpy(features.warp_).astype(np.float64)
        scaled = rates * (rows - centres)
        bent, slopes = np.arcsinh(scaled) / rates, 1.0 / (1.0 + np.square(scaled))
    feature_map = FourierMap(np.asfortranarray(W), amplitudes)
    bent, squares = np.ascontiguousarray(bent), np.zeros_like(rows)
    # The derivatives of a target are the features times a matrix.
    to_slopes = [
        np.concatenate([of_sine[:, None] * W, -of_cosine[:, None] * W])
        for of_cosine, of_sine in zip(cosine, sine, strict=True)
    ]
    for block in row_blocks(len(rows), BLOCK_ROWS):
        Z = feature_map(bent[block])
        for matrix in to_slopes:
            squares[block] += np.square(Z @ matrix)
    return squares if slopes is None else squares * slopes
