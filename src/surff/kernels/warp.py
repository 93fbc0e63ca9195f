r"""Columns bent before the feature map: a monotone function of each, learned.

A column :math:`x_j` with centre :math:`c_j` and rate :math:`\kappa_j > 0` becomes

.. math:: \phi_j(x_j) = \operatorname{asinh}\bigl(\kappa_j (x_j - c_j)\bigr)
          / \kappa_j ,

which is as the column near its centre, with slope 1, and grows like a logarithm beyond
:math:`1 / \kappa_j` of it. A frequency times a column with a heavy tail, or one that is
skewed, turns much faster in the tail than the target does; of bent columns it does not.
The kernel becomes :math:`k(\phi(x), \phi(x'))`. As the rate falls to zero the column
stays what it is.

A warp is an array of shape (2, n_features): the centres, then the rates.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from surff.backend import (
    NUMPY,
    Array,
    block_rows,
    namespace_of,
    row_blocks,
    rows_of,
)

__all__ = ["WarpedMap", "warp_gradient", "warped"]


def warped(X: Array, warp: Array) -> Array:
    r"""Bent columns.

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
        Rows, dense.
    warp : array of shape (2, n_features)
        Centres and rates of the columns, in units of ``X``; where ``X`` is.

    Returns
    -------
    array of shape (n_samples, n_features)
        :math:`\phi(x)` of each row; dtype, namespace and device of ``X``.

    Examples
    --------
    >>> import numpy as np
    >>> warped(np.array([[1.0], [2.0], [1001.0]]), np.array([[1.0], [1.0]])).round(2)
    array([[0.  ],
           [0.88],
           [7.6 ]])
    """
    xp = namespace_of(X)
    warp = xp.astype(warp, X.dtype, copy=False)
    rates = warp[1, ...]
    bent = X - warp[0, ...]
    bent *= rates
    bent = xp.asinh(bent)
    bent /= rates
    return bent


def warp_gradient(row_gradient: Array, bent: Array, warp: Array) -> Array:
    r"""Gradient of an objective by a warp, from that by the bent rows.

    With :math:`v = \kappa_j \phi_j(x_j)`

    .. math:: \frac{\partial \phi_j}{\partial c_j} = -\frac{1}{\cosh v}, \qquad
              \frac{\partial \phi_j}{\partial \log \kappa_j}
              = \frac{\tanh v - v}{\kappa_j} .

    Parameters
    ----------
    row_gradient : array of shape (n_samples, n_features)
        Gradient by the bent rows.
    bent : array of shape (n_samples, n_features)
        The bent rows, as `warped` returns them.
    warp : array of shape (2, n_features)
        The warp; where they are.

    Returns
    -------
    gradient : array of shape (2, n_features)
        By the centres, then by the logarithms of the rates.
    """
    xp = namespace_of(bent)
    rates = xp.astype(warp[1, ...], bent.dtype, copy=False)
    v = bent * rates
    centres = -xp.sum(row_gradient / xp.cosh(v), axis=0)
    return xp.stack([centres, xp.sum(row_gradient * (xp.tanh(v) - v), axis=0) / rates])


class WarpedMap:
    """A feature map of bent rows, on the calling thread alone.

    Parameters
    ----------
    feature_map : FourierMap, ArrayFourierMap or OddFourierMap
        Map of the bent rows.
    warp : array of shape (2, n_features)
        See `warped`.
    """

    def __init__(self, feature_map: Any, warp: Array) -> None:
        self.feature_map, self.warp = feature_map, warp
        self.backend = feature_map.backend
        self.dtype = feature_map.dtype
        self.n_components = feature_map.n_components

    def __call__(self, X: Any, out: np.ndarray | None = None) -> Array:
        """Features of the rows; see `surff.kernels.FourierMap`."""
        if not self.backend.is_numpy:
            return self.feature_map(warped(X, self.warp))
        if out is None:
            out = np.empty((X.shape[0], self.n_components), self.dtype)
        for block in row_blocks(X.shape[0], block_rows(X.shape[1], X.dtype)):
            rows = rows_of(X, block, NUMPY)
            if sparse.issparse(rows):
                rows = rows.toarray()  # zero does not stay zero once bent
            self.feature_map(warped(rows, self.warp), out=out[block])
        return out

    def astype(self, dtype: Any) -> WarpedMap:
        """Return the same map computing in another floating-point type."""
        if self.dtype == dtype:
            return self
        return WarpedMap(self.feature_map.astype(dtype), self.warp)
