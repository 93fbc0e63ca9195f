r"""Trees of thresholds: which leaf a row falls into.

scikit-learn grows the trees; here they are flat arrays, walked by a compiled loop. A
row goes left where its column is at most the threshold. Trees are grown best split
first, so that the first 2 L - 1 nodes of a tree are the tree with L leaves, and one
growth serves every smaller number of leaves.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse

from surff.backend import (
    NUMPY,
    block_rows,
    check_buffer,
    compiled,
    map_slices,
    row_blocks,
    rows_of,
)

__all__ = ["Partition", "grown_tree"]


class Partition:
    """Leaves of the rows in one or several trees.

    Parameters
    ----------
    feature : array-like of int, shape (n_nodes,)
        Column that a node looks at; -1 at a leaf.
    threshold : array-like of float, shape (n_nodes,)
        A row whose value is at most this goes left; 0 at a leaf.
    left, right : array-like of int, shape (n_nodes,)
        Nodes below; -1 at a leaf. They come after the node they belong to.
    roots : array-like of int, shape (n_trees,)
        First node of each tree, ascending from 0; its other nodes follow.
    n_features : int
        Columns of the rows.

    Attributes
    ----------
    leaf : ndarray of int64, shape (n_nodes,)
        Number of each leaf, through all trees in the order of the nodes; -1 inside.
    first_leaf : ndarray of int64, shape (n_trees + 1,)
        Number of the first leaf of each tree, and of all leaves.

    Raises
    ------
    ValueError
        If the arrays are no trees: compiled code follows them without a check.

    Examples
    --------
    >>> import numpy as np
    >>> stump = Partition([0, -1, -1], [0.5, 0, 0], [1, -1, -1], [2, -1, -1], [0], 1)
    >>> stump.leaves(np.array([[0.2], [0.7]])).ravel()
    array([0, 1])
    """

    def __init__(
        self,
        feature: Any,
        threshold: Any,
        left: Any,
        right: Any,
        roots: Any,
        n_features: int,
    ) -> None:
        self.feature = np.array(feature, dtype=np.int64)
        self.threshold = np.array(threshold, dtype=np.float64)
        self.left = np.array(left, dtype=np.int64)
        self.right = np.array(right, dtype=np.int64)
        self.roots = np.array(roots, dtype=np.int64)
        self.n_features = int(n_features)
        self._check()
        is_leaf = self.feature < 0
        self.leaf = np.where(is_leaf, np.cumsum(is_leaf) - 1, -1)
        ends = np.append(self.roots[1:], len(is_leaf))
        self.first_leaf = np.concatenate([[0], np.cumsum(is_leaf)[ends - 1]])

    def _check(self):
        n_nodes = len(self.feature)
        arrays = self.feature, self.threshold, self.left, self.right
        if any(a.shape != (n_nodes,) for a in arrays) or self.roots.ndim != 1:
            raise ValueError(
                "feature, threshold, left and right must be flat and of one length, "
                f"and roots flat, got shapes {[a.shape for a in arrays]} and "
                f"{self.roots.shape}."
            )
        nodes = np.arange(n_nodes)
        if (
            not n_nodes
            or not len(self.roots)
            or self.roots[0] != 0
            or np.any(np.diff(self.roots) <= 0)
            or self.roots[-1] >= n_nodes
        ):
            raise ValueError(
                "roots must ascend from 0 and be nodes, got "
                f"{self.roots.tolist()[:10]} of {n_nodes}."
            )
        inside = self.feature >= 0
        if np.any(self.feature < -1) or np.any(self.feature >= self.n_features):
            raise ValueError(
                f"feature must be columns below {self.n_features}, or -1 at a leaf."
            )
        if not np.isfinite(self.threshold).all():
            raise ValueError("threshold must be finite.")
        tree = np.searchsorted(self.roots, nodes, side="right")
        below = np.concatenate([self.left[inside], self.right[inside]])
        above = np.concatenate([nodes[inside]] * 2)
        others = np.delete(nodes, self.roots)
        if (
            not np.array_equal(np.sort(below), others)
            or np.any(below <= above)
            or np.any(tree[below] != tree[above])
            or np.any(self.left[~inside] != -1)
            or np.any(self.right[~inside] != -1)
        ):
            raise ValueError(
                "left and right must be nodes of the same tree that come after theirs, "
                "each below one node, and -1 at a leaf."
            )

    @classmethod
    def of_trees(cls, trees: Sequence[Any], n_leaves: int | None = None) -> Partition:
        """Partition of trees that scikit-learn has grown.

        Parameters
        ----------
        trees : sequence of estimators or of their ``tree_``
            Fitted decision trees on the same columns.
        n_leaves : int, optional
            Leaves to keep of each, for trees grown best split first.
        """
        parts, roots, start = [], [], 0
        for tree in trees:
            tree = getattr(tree, "tree_", tree)
            size = tree.node_count
            if n_leaves is not None:
                size = min(size, 2 * n_leaves - 1)
            left, right = tree.children_left[:size], tree.children_right[:size]
            inside = (left >= 0) & (left < size)
            parts.append(
                (
                    np.where(inside, tree.feature[:size], -1),
                    np.where(inside, tree.threshold[:size], 0.0),
                    np.where(inside, left + start, -1),
                    np.where(inside, right + start, -1),
                )
            )
            roots.append(start)
            start += size
        arrays = [np.concatenate(values) for values in zip(*parts, strict=True)]
        n_features = getattr(trees[0], "tree_", trees[0]).n_features
        return cls(*arrays, roots, int(n_features))

    def __getstate__(self):
        # What follows from the rest is not stored twice.
        state = vars(self).copy()
        del state["leaf"], state["first_leaf"]
        return state

    def __setstate__(self, state):
        names = "feature", "threshold", "left", "right", "roots", "n_features"
        type(self).__init__(self, *(state[name] for name in names))

    @property
    def n_trees(self) -> int:
        """Number of trees."""
        return len(self.roots)

    @property
    def n_leaves(self) -> int:
        """Number of leaves of all trees together."""
        return int(self.first_leaf[-1])

    def tree(self, number: int) -> Partition:
        """Partition of one of the trees."""
        start = self.roots[number]
        end = (
            len(self.feature) if number + 1 == self.n_trees else self.roots[number + 1]
        )
        nodes = slice(start, end)
        left, right = (
            np.where(below[nodes] < 0, -1, below[nodes] - start)
            for below in (self.left, self.right)
        )
        return Partition(
            self.feature[nodes],
            self.threshold[nodes],
            left,
            right,
            [0],
            self.n_features,
        )

    def text(self, feature_names: Sequence[str] | None = None) -> str:
        """The trees in words, a line for each split and each leaf.

        Parameters
        ----------
        feature_names : sequence of str, optional
            Names of the columns; "x0", "x1", ... by default.

        Returns
        -------
        text : str
            Rows that pass a line's test are in the lines below it that stand further
            right.

        Examples
        --------
        >>> below = [1, -1, -1], [2, -1, -1]
        >>> stump = Partition([0, -1, -1], [0.5, 0, 0], *below, [0], 1)
        >>> print(stump.text(["age"]))
        age <= 0.5: leaf 0
        age > 0.5: leaf 1
        """
        names = feature_names or [f"x{j}" for j in range(self.n_features)]
        lines = []
        for root in self.roots:
            waiting = [(root, "", 0)]
            while waiting:
                node, test, depth = waiting.pop()
                indent = "    " * max(depth - 1, 0)
                if self.feature[node] < 0:
                    test = f"{test}: " if test else ""
                    lines.append(f"{indent}{test}leaf {self.leaf[node]}")
                    continue
                if test:
                    lines.append(f"{indent}{test}:")
                name, threshold = names[self.feature[node]], self.threshold[node]
                for sign, below in ((">", self.right), ("<=", self.left)):
                    test = f"{name} {sign} {threshold:.6g}"
                    waiting.append((below[node], test, depth + 1))
        return "\n".join(lines)

    def leaves(self, X: Any) -> np.ndarray:
        """Leaves of rows.

        Parameters
        ----------
        X : ndarray or CSR matrix of shape (n_samples, n_features)
            Rows, float32 or float64.

        Returns
        -------
        leaves : ndarray of int64, shape (n_samples, n_trees)
            Numbers of the leaves, see `leaf`.

        Notes
        -----
        One comparison per level and row, on all threads; rows of a sparse matrix are
        made dense block by block.
        """
        if X.shape[1] != self.n_features:
            raise ValueError(
                f"X must have {self.n_features} columns, as the trees know, got "
                f"{X.shape[1]}."
            )
        found = np.empty((X.shape[0], self.n_trees), np.int64)
        size = block_rows(self.n_features, X.dtype)

        def walk(part):
            for rows in row_blocks(part.stop, size, part.start):
                self.walk(rows_of(X, rows, NUMPY), found[rows])

        map_slices(walk, X.shape[0], minimum=1024)
        return found

    def walk(self, X: Any, found: np.ndarray) -> None:
        """Write the leaves of a block of rows, on the calling thread alone."""
        X = np.ascontiguousarray(X.toarray() if sparse.issparse(X) else X)
        check_buffer("X", X, (len(found), self.n_features), X.dtype)
        check_buffer("found", found, (len(X), self.n_trees), np.int64, written=True)
        walk_trees(
            X, self.feature, self.threshold, self.left, self.right, self.roots,
            self.leaf, found,
        )  # fmt: skip


@compiled
def walk_trees(X, feature, threshold, left, right, roots, leaf, found):
    """Leaf of each row in each tree."""
    for i in range(len(X)):
        for t in range(len(roots)):
            node = roots[t]
            while feature[node] >= 0:
                go_left = X[i, feature[node]] <= threshold[node]
                node = left[node] if go_left else right[node]
            found[i, t] = leaf[node]


def grown_tree(
    X: Any,
    residuals: np.ndarray,
    sample_weight: np.ndarray | None,
    n_leaves: int,
    min_samples_leaf: int,
    max_features: float | None,
    rng: np.random.Generator,
) -> Any:
    """Grow a tree on what a model leaves of the targets, best split first.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n_samples, n_features)
        Rows.
    residuals : ndarray of shape (n_samples, k)
        Of rows left out, or the tree splits where the model is overfitted.
    sample_weight : ndarray of shape (n_samples,) or None
        Row weights.
    n_leaves : int
        Leaves, at least 2, fewer if there are not enough rows.
    min_samples_leaf : int
        Rows of a leaf.
    max_features : float or None
        Share of the columns that is tried at a split; None is all.
    rng : numpy.random.Generator

    Returns
    -------
    tree : sklearn.tree._tree.Tree
        Of equal splits one is drawn by ``rng``.
    """
    from sklearn.tree import DecisionTreeRegressor  # which few fits need

    model = DecisionTreeRegressor(
        max_leaf_nodes=n_leaves,
        min_samples_leaf=min_samples_leaf,
        max_features=max_features,
        random_state=int(rng.integers(2**31)),
    )
    X = X.tocsc() if sparse.issparse(X) else X
    return model.fit(X, residuals, sample_weight).tree_
