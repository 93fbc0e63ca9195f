"""Sums over the rows of every leaf, for rows that are not all at hand.

The sums of a leaf are those of `NormalEquations` without what only a score needs. They
add: blocks update them, workers and pieces merge them, whatever the order. All leaves
are held at once, the upper triangle of each Gram matrix packed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from surff.backend import row_blocks, syrk
from surff.linear.leaf_heads import LeafRows, SummedLeaf, each_leaf
from surff.linear.partition import Partition

__all__ = ["LeafSums", "leaf_sums_bytes"]

#: Rows of a block that is sorted by leaf: so many that leaves get rows enough for a
#: product, and few enough that a block is small next to the sums.
SORTED_ROWS = 65_536


def leaf_sums_bytes(
    n_leaves: int, n_components: int, n_targets: int, fit_intercept: bool = True
) -> int:
    """Bytes of `LeafSums`: of each leaf a triangle, and a column for each target."""
    n_columns = n_components + bool(fit_intercept)
    return 8 * n_leaves * (n_columns * (n_columns + 1) // 2 + n_columns * n_targets)


class LeafSums:
    r"""Sums :math:`Z_l^\top W Z_l` and :math:`Z_l^\top W Y_l` of every leaf.

    They stand in for `LeafRows` wherever heads are solved for.

    Parameters
    ----------
    n_leaves : int
        Leaves L, of all trees together.
    n_components : int
        Columns of the features.
    n_targets : int
        Columns of the targets.
    fit_intercept : bool, default=True
        Whether a column of ones is appended to the features.

    Attributes
    ----------
    grams : ndarray of shape (n_leaves, p (p + 1) / 2), float64
        Upper triangles, row by row.
    moments : ndarray of shape (n_leaves, p, n_targets)
    n_rows : ndarray of int64, shape (n_leaves,)
        Rows that each leaf has.

    Notes
    -----
    ``O(n p^2)`` time for n rows and a tree, and ``L p^2 / 2`` numbers of memory.
    """

    def __init__(
        self,
        n_leaves: int,
        n_components: int,
        n_targets: int,
        fit_intercept: bool = True,
    ) -> None:
        self.fit_intercept = bool(fit_intercept)
        p = n_components + self.fit_intercept
        self.grams = np.zeros((n_leaves, p * (p + 1) // 2))
        self.moments = np.zeros((n_leaves, p, n_targets))
        self.n_rows = np.zeros(n_leaves, np.int64)

    @property
    def n_leaves(self) -> int:
        """Leaves L."""
        return len(self.moments)

    @property
    def n_columns(self) -> int:
        """Columns p: the features, and the ones if there is an intercept."""
        return self.moments.shape[1]

    @property
    def n_targets(self) -> int:
        """Columns of the targets."""
        return self.moments.shape[2]

    def update(
        self,
        feature_map: Any,
        partition: Partition,
        X: Any,
        Y: np.ndarray,
        sample_weight: np.ndarray | None = None,
    ) -> LeafSums:
        """Add rows; returns self.

        Parameters
        ----------
        feature_map : object with ``n_components``, ``dtype`` and ``(X, out=None) -> Z``
            Maps a block of rows.
        partition : Partition
            The trees whose leaves these are.
        X : ndarray or CSR matrix of shape (n_rows, n_features)
            Rows.
        Y : ndarray of shape (n_rows, n_targets)
            Targets.
        sample_weight : ndarray of shape (n_rows,), optional
            Row weights.
        """
        for block in row_blocks(X.shape[0], SORTED_ROWS):
            leaves = partition.leaves(X[block])
            weight = None if sample_weight is None else sample_weight[block]
            for t in range(partition.n_trees):
                rows = LeafRows(
                    feature_map,
                    X[block],
                    Y[block],
                    weight,
                    leaves[:, t],
                    self.n_leaves,
                    self.fit_intercept,
                )
                self._add(rows)
        return self

    def _add(self, rows):
        p = self.n_columns
        upper = np.triu_indices(p)

        def add(leaves):
            gram = np.empty((p, p), order="F")
            for number in leaves:
                if not len(rows.rows(number)):
                    continue
                gram[...] = 0.0
                for index, Z in rows.blocks(number):
                    Z, Y = rows.weighted(index, Z)
                    syrk(Z, gram)
                    self.moments[number] += Z.T @ Y
                    self.n_rows[number] += len(index)
                self.grams[number] += gram[upper]

        each_leaf(add, self.n_leaves)

    def merge(self, other: LeafSums) -> LeafSums:
        """Add the sums of other rows; returns self."""
        self.grams += other.grams
        self.moments += other.moments
        self.n_rows += other.n_rows
        return self

    def some(self, leaves: slice) -> LeafSums:
        """Sums of consecutive leaves, those of one tree for example; a view."""
        own = object.__new__(type(self))
        own.fit_intercept = self.fit_intercept
        own.grams, own.moments = self.grams[leaves], self.moments[leaves]
        own.n_rows = self.n_rows[leaves]
        return own

    def copy(self) -> LeafSums:
        """Return an independent copy."""
        own = self.some(slice(None))
        own.grams, own.moments = own.grams.copy(), own.moments.copy()
        own.n_rows = own.n_rows.copy()
        return own

    def leaf(self, leaf: int) -> SummedLeaf | None:
        """What a leaf is solved with; None for a leaf without rows."""
        if not self.n_rows[leaf]:
            return None
        p = self.n_columns
        gram = np.zeros((p, p), order="F")
        gram[np.triu_indices(p)] = self.grams[leaf]
        return SummedLeaf(gram, self.moments[leaf])
