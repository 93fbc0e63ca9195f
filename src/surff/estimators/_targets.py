"""Targets as numbers: labels coded one-vs-rest, numbers as they are."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.preprocessing import label_binarize
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    check_array,
    check_consistent_length,
)

from surff.backend import Array
from surff.streaming import Labels

__all__ = [
    "check_labels",
    "coded_targets",
    "numeric_targets",
    "one_vs_rest",
    "refuse_large",
    "refuse_one_class",
]


#: Targets up to this have squares whose sums over rows are far from overflow.
LARGEST_NUMBER = 1e100


def refuse_large(y: np.ndarray) -> None:
    """Refuse targets for which sums over rows overflow, and None among objects."""
    if not y.size:
        return
    if np.isnan(largest := np.abs(y).max()):
        raise ValueError("y must be numbers, got None or NaN among them.")
    if largest > LARGEST_NUMBER:
        raise ValueError(
            f"y must be at most {LARGEST_NUMBER:.0e} in absolute value, or its "
            f"squares overflow, got {largest:.3g}; scale y."
        )


def check_labels(y: Any) -> None:
    """Refuse targets that are no labels, or labels of several types.

    See `sklearn.utils.multiclass.check_classification_targets`.
    """
    refuse_mixed(np.asarray(y) if isinstance(y, list) else y)
    check_classification_targets(y)


def refuse_mixed(y: Any) -> None:
    """Refuse labels of several types, which have no order."""
    if getattr(getattr(y, "dtype", None), "kind", "") != "O":
        return
    kinds = {type(label).__name__ for label in y.ravel()}
    if len(kinds) > 1:
        raise ValueError(
            "y must hold labels of one type, got "
            f"{' and '.join(sorted(kinds))}; convert them, by y.astype(str) say."
        )


def refuse_one_class(classes: np.ndarray) -> None:
    """Refuse labels of which nothing can be learned."""
    if len(classes) < 2:
        raise ValueError(
            f"y must hold at least two classes, got one class: {classes.tolist()[0]!r}."
        )


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
    refuse_mixed(y)
    Y = coded_targets(Labels().update(y).values, y)
    refuse_large(Y)
    return Y


def one_vs_rest(codes: np.ndarray, n_classes: int) -> np.ndarray:
    """Code class numbers as -1 and 1: one column for two classes, else one a class."""
    if n_classes <= 2:
        return np.where(np.asarray(codes) == n_classes - 1, 1.0, -1.0)[:, None]
    return label_binarize(codes, classes=np.arange(n_classes), neg_label=-1).astype(
        np.float64
    )
