"""Targets as numbers: labels coded one-vs-rest, numbers as they are."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.preprocessing import label_binarize
from sklearn.utils.validation import (
    check_array,
    check_consistent_length,
)

from surff.backend import Array
from surff.streaming import Labels

__all__ = [
    "coded_targets",
    "numeric_targets",
    "one_vs_rest",
]


def coded_targets(labels: Any, y: Any) -> np.ndarray:
    """Targets as numbers, one-vs-rest of the labels if there are any."""
    if labels is None:
        Y = np.asarray(y, dtype=np.float64)
        return Y.reshape(len(Y), -1)
    return one_vs_rest(np.searchsorted(labels, np.ravel(y)), len(labels))


def numeric_targets(y: Any, X: Array) -> np.ndarray:
    """Targets as numbers, shape (n_samples, n_targets): labels coded one-vs-rest."""
    check_consistent_length(X, y)
    y = check_array(y, dtype=None, ensure_2d=False, input_name="y")
    return coded_targets(Labels().update(y).values, y)


def one_vs_rest(codes: np.ndarray, n_classes: int) -> np.ndarray:
    """Code class numbers as -1 and 1: one column for two classes, else one a class."""
    if n_classes <= 2:
        return np.where(np.asarray(codes) == n_classes - 1, 1.0, -1.0)[:, None]
    return label_binarize(codes, classes=np.arange(n_classes), neg_label=-1).astype(
        np.float64
    )
