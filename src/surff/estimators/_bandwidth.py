"""The parameter ``gamma``: a number, one per feature, or a rule that reads rows."""

import numbers

import numpy as np
from scipy import sparse
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.extmath import row_norms
from sklearn.utils.validation import (
    check_array,
)

from surff.backend import (
    rows_of,
    to_numpy,
    to_numpy_if_dispatched,
)
from surff.streaming import (
    EntrySpread,
    WorkerRows,
)

__all__ = ["GAMMA_CONSTRAINTS", "bandwidth"]

#: What the parameter ``gamma`` may be.
GAMMA_CONSTRAINTS = [
    StrOptions({"scale", "median"}),
    Interval(numbers.Real, 0.0, None, closed="neither"),
    "array-like",
]


def bandwidth(gamma, X, sample_weight=None, spread=None):
    """Return ``gamma`` as a float or an array of one number per feature."""
    if isinstance(gamma, str):
        if gamma == "median":
            return _median_gamma(X, sample_weight)
        if spread is None and isinstance(X, WorkerRows):
            spread = X.spread()
        elif spread is None:
            spread = EntrySpread().update(X, sample_weight)
        return spread.gamma(X.shape[1])
    if isinstance(gamma, numbers.Real):
        return float(gamma)
    gamma = to_numpy_if_dispatched(gamma)
    gamma = check_array(gamma, ensure_2d=False, dtype=np.float64, input_name="gamma")
    if gamma.shape != (X.shape[1],) or gamma.min() <= 0:
        raise ValueError(
            f"gamma must be a positive number or {X.shape[1]}, one per feature, "
            f"got shape {gamma.shape} and minimum {gamma.min()}."
        )
    return gamma


#: Rows among which ``gamma="median"`` measures distances.
MEDIAN_ROWS = 1000


def _median_gamma(X, sample_weight=None):
    """``1 / (2 median^2)`` of the distances of different rows, 1 for constant data.

    The sample is the same for rows of weight w and for rows repeated w times.
    """
    weight = np.ones(X.shape[0]) if sample_weight is None else sample_weight
    rows = np.flatnonzero(weight)
    weight = weight[rows].astype(np.float64)
    edges = np.cumsum(weight)
    if max(len(rows), edges[-1]) > MEDIAN_ROWS:
        ticks = (np.arange(MEDIAN_ROWS) + 0.5) * (edges[-1] / MEDIAN_ROWS)
        chosen = np.searchsorted(edges, ticks, side="right").clip(max=len(rows) - 1)
        chosen, weight = np.unique(chosen, return_counts=True)
        rows = rows[chosen]
    sample = to_numpy(rows_of(X, rows)).astype(np.float64)
    if abs(sample).max() > 1e150:
        raise ValueError(
            "gamma='median' needs distances of rows, which overflow: scale the columns "
            "of X or give gamma as a number."
        )
    if not sparse.issparse(sample):
        sample -= sample.mean(axis=0)  # saves the digits of the differences
    i, j = np.triu_indices(len(rows), 1)
    distances = euclidean_distances(sample)[i, j]
    norms = row_norms(sample)
    apart = distances > 1e-7 * np.maximum(norms[i], norms[j])  # beyond rounding
    if not apart.any():
        return 1.0
    distances, weight = distances[apart], (weight[i] * weight[j])[apart]
    order = np.argsort(distances)
    shares = np.cumsum(weight[order])
    middle = [
        np.searchsorted(shares, shares[-1] / 2, side) for side in ("left", "right")
    ]
    median = distances[order][middle].mean()
    if median < 1e-150:
        raise ValueError(
            f"gamma='median' needs distances of rows, whose median is {median:.2g}: "
            "scale the columns of X or give gamma as a number."
        )
    return float(0.5 / median**2)
