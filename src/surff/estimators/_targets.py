"""Targets as numbers: labels coded one-vs-rest, numbers as they are."""

import numpy as np
from sklearn.preprocessing import label_binarize
from sklearn.utils.validation import (
    check_array,
    check_consistent_length,
)

from surff.streaming import Labels

__all__ = [
    "coded_targets",
    "numeric_targets",
    "one_vs_rest",
]


def coded_targets(labels, y):
    """Targets as numbers, one-vs-rest of the labels if there are any."""
    if labels is None:
        Y = np.asarray(y, dtype=np.float64)
        return Y.reshape(len(Y), -1)
    return one_vs_rest(np.searchsorted(labels, np.ravel(y)), len(labels))


def numeric_targets(y, X):
    """Targets as numbers, shape (n_samples, n_targets): labels coded one-vs-rest."""
    check_consistent_length(X, y)
    y = check_array(y, dtype=None, ensure_2d=False, input_name="y")
    return coded_targets(Labels().update(y).values, y)


def one_vs_rest(codes, n_classes):
    """Code class numbers as -1 and 1: one column for two classes, else one a class."""
    if n_classes <= 2:
        return np.where(np.asarray(codes) == n_classes - 1, 1.0, -1.0)[:, None]
    return label_binarize(codes, classes=np.arange(n_classes), neg_label=-1).astype(
        np.float64
    )
