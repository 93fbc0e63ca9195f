"""What a feature map is to those who pass over rows."""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

__all__ = ["FeatureMap"]


class FeatureMap(ABC):
    """A map of checked blocks of rows, on the calling thread alone.

    Passes over rows call it on one block after the other, from several threads at the
    same time; so a call must not change the map.

    A map that is a cheaper one times a matrix may say so by two methods more, as
    `NystroemMap` does: ``folded(coef)`` for predictions and ``factored(X)`` for sums.

    Attributes
    ----------
    n_components : int
        Columns of the features.
    dtype : dtype
        Of the features, float32 or float64.
    """

    n_components: int
    dtype: Any

    @abstractmethod
    def __call__(self, X: Any, out: np.ndarray | None = None) -> Any:
        """Map a block of rows.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_rows, n_features)
            Checked rows.
        out : ndarray of shape (n_rows, n_components), optional
            Where to write the features.

        Returns
        -------
        Z : array of shape (n_rows, n_components)
            Features in ``dtype``; ``out`` if it is given.
        """

    @abstractmethod
    def astype(self, dtype: Any) -> "FeatureMap":
        """Return the same map giving another floating-point type."""
