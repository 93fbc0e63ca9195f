"""Weights of classes: ``class_weight`` as in scikit-learn, for rows and for streams."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils._param_validation import StrOptions

from surff.backend import numpy_dtype, to_numpy_if_dispatched

__all__ = [
    "CLASS_WEIGHT",
    "ClassWeights",
    "balanced",
    "weigher_of",
    "weights_of_classes",
    "weights_of_piece",
]

#: What the parameter ``class_weight`` may be.
CLASS_WEIGHT = [dict, StrOptions({"balanced"}), None]


class ClassWeights:
    """Factor of each row's weight, by its label.

    Parameters
    ----------
    weights : dict
        Weight of a label, >= 0; 1 for labels that are not in it.
    """

    def __init__(self, weights: dict) -> None:
        self.labels = np.array(list(weights))
        self.values = np.array(list(weights.values()), dtype=np.float64)
        if not (np.isfinite(self.values).all() and (self.values >= 0).all()):
            raise ValueError(
                f"class_weight must hold finite weights >= 0, got {weights!r}."
            )

    def check(self, classes: np.ndarray) -> None:
        """Refuse weights of labels that no row has."""
        unknown = sorted({*self.labels.tolist()} - {*np.asarray(classes).tolist()})
        if unknown:
            raise ValueError(
                f"class_weight must have keys out of the classes "
                f"{np.asarray(classes).tolist()}, got {unknown}."
            )

    def __call__(
        self, y: np.ndarray, sample_weight: np.ndarray | None, dtype: Any = np.float64
    ) -> np.ndarray:
        """Row weights times those of the labels, shape (n_rows,)."""
        if y.ndim != 1:
            raise ValueError(
                "class_weight needs one label per row, got a multilabel target of "
                f"shape {y.shape}; use sample_weight."
            )
        factors = np.ones(len(y))
        for label, value in zip(self.labels, self.values, strict=True):
            factors[y == label] = value
        if sample_weight is not None:
            factors *= sample_weight
        return factors.astype(dtype, copy=False)


def balanced(totals: dict) -> ClassWeights:
    """Weights that give every class the same total.

    Parameters
    ----------
    totals : dict
        From `totals_of`, of all rows.
    """
    labels = sorted(totals)
    sums = np.array([totals[label] for label in labels])
    weights, there = np.zeros(len(sums)), sums > 0
    weights[there] = sums.sum() / (there.sum() * sums[there])
    return ClassWeights(dict(zip(labels, weights.tolist(), strict=True)))


def totals_of(y: np.ndarray, sample_weight: np.ndarray | None) -> dict:
    """Sums of the rows' weights by label, the number of rows without weights."""
    if y.ndim != 1:
        ClassWeights({})(y, None)  # refuses it
    labels, codes = np.unique(y, return_inverse=True)
    sums = np.bincount(codes, sample_weight, len(labels))
    return dict(zip(labels.tolist(), sums.tolist(), strict=True))


def weights_of_classes(
    class_weight: Any, y: Any, sample_weight: Any, like: Any
) -> np.ndarray | None:
    """Row weights of a fit to rows in memory, with those of the classes.

    Parameters
    ----------
    class_weight : dict, "balanced" or None
        The model's parameter.
    y : ndarray of shape (n_samples,)
        Labels.
    sample_weight : ndarray of shape (n_samples,) or None
        Row weights.
    like : array
        Rows, whose dtype the weights get.

    Returns
    -------
    sample_weight : ndarray of shape (n_samples,) or None
        Unchanged without ``class_weight``.
    """
    if class_weight is None:
        return sample_weight
    y = np.asarray(to_numpy_if_dispatched(y))
    if isinstance(class_weight, str):
        weights = balanced(totals_of(y, sample_weight))
    else:
        weights = ClassWeights(class_weight)
        weights.check(np.unique(y))
    weight = weights(y, sample_weight, numpy_dtype(like))
    if not weight.any():
        raise ValueError(
            "class_weight and sample_weight must leave a row with a positive weight, "
            "got zeros alone."
        )
    return weight


def add_totals(totals: dict, rows: Any) -> dict:
    """Add the weights of some rows, by label."""
    return merge_totals(totals, totals_of(rows.y, rows.sample_weight))


def merge_totals(totals: dict, other: dict) -> dict:
    """Add the sums of other rows."""
    for label, value in other.items():
        totals[label] = totals.get(label, 0.0) + value
    return totals


def weigher_of(class_weight: Any, passes: Any) -> Any:
    """What multiplies the weights of a source's rows; None without ``class_weight``."""
    if class_weight is None:
        return None
    if isinstance(class_weight, str):
        return balanced(passes.reduce(dict, add_totals, merge_totals))
    return ClassWeights(class_weight)


def weights_of_piece(
    class_weight: Any, y: np.ndarray, sample_weight: np.ndarray | None, like: Any
) -> np.ndarray | None:
    """Row weights of a piece of the rows, with those of the classes."""
    if isinstance(class_weight, str):
        raise ValueError(
            "class_weight='balanced' needs all rows at once, which partial_fit does "
            "not see: give a dict of weights, from "
            "sklearn.utils.class_weight.compute_class_weight on all labels."
        )
    if class_weight is None:
        return sample_weight
    return ClassWeights(class_weight)(y, sample_weight, numpy_dtype(like))
