r"""A ridge head in every leaf of a tree, shrunk towards a common one.

With the features :math:`z` of a row, a one appended for the intercept, and the leaf l
that it falls into, minimise

.. math:: \sum_i w_i (y_i - z_i^\top (\beta + \delta_{l_i}))^2
          + \alpha \|\beta\|^2 + a \sum_l \|\delta_l\|^2 ,

the common intercept free, those of the leaves shrunk. The normal equations are an
arrow: :math:`\beta` meets every leaf, no leaf meets another. With
:math:`A_l = Z_l^\top W Z_l`, :math:`c_l = Z_l^\top W Y_l` of the rows of a leaf

.. math:: \delta_l = (A_l + a I)^{-1} (c_l - A_l \beta), \qquad
          \Bigl(\sum_l a A_l (A_l + a I)^{-1} + \alpha J\Bigr) \beta
          = \sum_l a (A_l + a I)^{-1} c_l ,

J the identity but for the intercept. The sums on the left and right are normal
equations again, the *reduced* ones: as a grows they become those of all rows, without
leaves. A leaf of fewer rows than columns is solved by its rows' inner products
:math:`K = Z_l Z_l^\top`, with :math:`A (A + a I)^{-1} = Z^\top (K + a I)^{-1} Z`.

All sums are in float64: those of few rows are singular but for a.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import blas, lapack, solve_triangular

from surff.backend import (
    check_buffer,
    compiled,
    divide_by_upper,
    each_block,
    feature_blocks,
    map_slices,
    potrf,
    syrk,
)
from surff.linear.normal_equations import CentredEquations, NormalEquations
from surff.linear.solvers import (
    SingularError,
    are_rounding_errors,
    least_regular,
    solve,
    solve_each,
)

__all__ = [
    "JointHeads",
    "LeafRows",
    "SummedLeaf",
    "add_leaf_decisions",
    "common_heads",
    "common_left_out",
    "each_leaf",
    "each_leaf_head",
    "joint_heads",
    "joint_left_out",
]


class JointHeads(NamedTuple):
    """The common head and those of the leaves, for one alpha of the leaves."""

    common: np.ndarray  # (p, k), the intercept last if there is one
    leaves: np.ndarray  # (n_leaves, p, k), differences from the common head


class LeafRows:
    """Rows in memory, leaf by leaf.

    Parameters
    ----------
    feature_map : object with ``n_components``, ``dtype`` and ``(X, out=None) -> Z``
        Maps a block of rows.
    X : ndarray or CSR matrix of shape (n_samples, n_features)
        Rows.
    Y : ndarray of shape (n_samples, k)
        Targets.
    sample_weight : ndarray of shape (n_samples,) or None
        Row weights.
    leaves : ndarray of int, shape (n_samples,)
        Leaf of each row, from 0; -1 for rows that are left out.
    n_leaves : int
        Leaves, those without rows included.
    fit_intercept : bool, default=True
        Whether a column of ones is appended to the features.

    Notes
    -----
    Memory is that of a leaf's rows, or of a block of them and a matrix of p by p if
    there are more rows than columns; nothing is kept between two visits.
    """

    def __init__(
        self,
        feature_map: Any,
        X: Any,
        Y: np.ndarray,
        sample_weight: np.ndarray | None,
        leaves: np.ndarray,
        n_leaves: int,
        fit_intercept: bool = True,
    ) -> None:
        self.feature_map, self.X, self.Y = feature_map, X, Y
        self.roots = None if sample_weight is None else np.sqrt(sample_weight)
        self.fit_intercept, self.n_leaves = fit_intercept, n_leaves
        self.order = np.argsort(leaves, kind="stable")
        bounds = np.searchsorted(leaves[self.order], np.arange(n_leaves + 1))
        self.bounds = bounds

    @property
    def n_columns(self) -> int:
        """Columns p: the features, and the ones if there is an intercept."""
        return self.feature_map.n_components + self.fit_intercept

    @property
    def n_targets(self) -> int:
        """Columns of the targets."""
        return self.Y.shape[1]

    def rows(self, leaf: int) -> np.ndarray:
        """Numbers of the rows of a leaf."""
        return self.order[self.bounds[leaf] : self.bounds[leaf + 1]]

    def leaf(self, leaf: int) -> SummedLeaf | LeafOfFewRows | None:
        """What a leaf is solved with; None for a leaf without rows."""
        rows = self.rows(leaf)
        if not len(rows):
            return None
        p = self.n_columns
        blocks = (self.weighted(*block) for block in self.blocks(leaf))
        if len(rows) < p:
            Z, Y = zip(*blocks, strict=True)
            return LeafOfFewRows(np.concatenate(Z), np.concatenate(Y))
        gram, moments = np.zeros((p, p), order="F"), np.zeros((p, self.Y.shape[1]))
        for Z, Y in blocks:
            syrk(Z, gram)
            moments += Z.T @ Y
        return SummedLeaf(gram, moments)

    def blocks(self, leaf: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield the numbers and the features of some of a leaf's rows."""
        rows = self.rows(leaf)
        if not len(rows):
            return
        m = self.feature_map.n_components
        for index, features in feature_blocks(self.feature_map, self.X, rows):
            Z = np.ones((len(index), self.n_columns))
            Z[:, :m] = features
            yield index, Z

    def weighted(self, index: np.ndarray, Z: np.ndarray) -> tuple:
        """Features, in place, and targets times the roots of the weights."""
        if self.roots is None:
            return Z, self.Y[index]
        Z *= self.roots[index, None]
        return Z, self.Y[index] * self.roots[index, None]


class SummedLeaf:
    """A leaf known by its sums alone, or one of many rows.

    Parameters
    ----------
    gram : ndarray of shape (p, p), float64, Fortran order
        Sums of products of the features; only the upper triangle is meaningful.
    moments : ndarray of shape (p, k)
        Sums of products with the targets.
    """

    def __init__(self, gram: np.ndarray, moments: np.ndarray) -> None:
        self.gram, self.moments = gram, moments
        self._full = None

    @property
    def full(self) -> np.ndarray:
        """The Gram matrix with both triangles, C-contiguous."""
        if self._full is None:
            self._full = np.ascontiguousarray(np.triu(self.gram))
            self._full += np.triu(self.gram, 1).T
        return self._full

    @property
    def trace(self) -> float:
        """Sum of the squared features."""
        return float(np.trace(self.gram))

    def add_reduced(self, alpha: float, gram: np.ndarray, moments: np.ndarray) -> None:
        r"""Add the leaf's part of the reduced equations, in place.

        With :math:`B = A R^{-1}` of Cholesky's factor R of :math:`A + a I` it is
        :math:`A - B B^\top`, which no large a cancels.
        """
        factor = factored(self.gram, alpha)
        B = divide_by_upper(self.full.copy(), factor)
        gram += self.gram
        product = np.zeros_like(gram)
        syrk(B.T, product, 0.0)
        gram -= product
        moments += self.moments
        moments -= B @ solve_triangular(factor, self.moments, trans="T")

    def heads(self, alpha: float, common: np.ndarray) -> np.ndarray:
        """Differences of the leaf's heads from the common ones, shape (p, k)."""
        factor = factored(self.gram, alpha)
        return lapack.dpotrs(factor, self.moments - self.full @ common)[0]

    def leverages(self, alpha: float, Z: np.ndarray, upper: np.ndarray) -> np.ndarray:
        """Leverages of rows of the leaf; see `joint_left_out`."""
        factor = factored(self.gram, alpha)
        half = divide_by_upper(Z.copy(), factor)
        own = np.einsum("ij,ij->i", half, half)
        shared = np.ascontiguousarray(alpha * lapack.dpotrs(factor, Z.T)[0].T)
        shared = divide_by_upper(shared, upper)
        return own + np.einsum("ij,ij->i", shared, shared)


class LeafOfFewRows:
    """A leaf of fewer rows than columns, by the inner products of its rows.

    Parameters
    ----------
    Z : ndarray of shape (n_rows, p), float64
        Features times the roots of the weights.
    Y : ndarray of shape (n_rows, k)
        Targets times the roots of the weights.
    """

    def __init__(self, Z: np.ndarray, Y: np.ndarray) -> None:
        self.Z, self.Y = Z, Y
        self.kernel = np.zeros((len(Z), len(Z)), order="F")
        syrk(Z.T, self.kernel, 0.0)

    @property
    def trace(self) -> float:
        """Sum of the squared features."""
        return float(np.trace(self.kernel))

    def add_reduced(self, alpha: float, gram: np.ndarray, moments: np.ndarray) -> None:
        r"""Add :math:`a Z^\top (K + a I)^{-1} Z` and the moments, in place."""
        factor = factored(self.kernel, alpha)
        W = np.ascontiguousarray(self.Z.T)
        W *= np.sqrt(alpha)
        divide_by_upper(W, factor)
        syrk(W.T, gram)
        half = solve_triangular(factor, self.Y, trans="T")
        moments += np.sqrt(alpha) * (W @ half)

    def heads(self, alpha: float, common: np.ndarray) -> np.ndarray:
        """Differences of the leaf's heads from the common ones, shape (p, k)."""
        factor = factored(self.kernel, alpha)
        return self.Z.T @ lapack.dpotrs(factor, self.Y - self.Z @ common)[0]

    def leverages(self, alpha: float, Z: np.ndarray, upper: np.ndarray) -> np.ndarray:
        """Leverages of the leaf's rows; see `joint_left_out`."""
        del Z  # they are known
        factor = factored(self.kernel, alpha)
        inverse = lapack.dpotrs(factor, np.eye(len(self.Z)))[0]
        own = 1.0 - alpha * np.diagonal(inverse)
        shared = divide_by_upper(
            np.ascontiguousarray(alpha * (inverse @ self.Z)), upper
        )
        return own + np.einsum("ij,ij->i", shared, shared)


def factored(matrix, alpha):
    """Cholesky's upper factor of a matrix with alpha on its diagonal."""
    factor = matrix.copy(order="F")
    diagonal = np.einsum("ii->i", factor)
    diagonal += alpha
    scale = diagonal.copy()
    if potrf(factor) or are_rounding_errors(diagonal**2, scale):
        raise singular(alpha)
    return factor


def singular(alpha):
    """What to say of sums that are singular to working precision."""
    return SingularError(
        "the sums of a leaf, or those left for the common head, are singular to "
        f"working precision (alpha={alpha:.3g} for the leaves); increase alphas or the "
        "alpha of the leaves, or make them 'auto'."
    )


def each_leaf(function: Callable[[range], Any], n_leaves: int) -> list[Any]:
    """Results of ``function(leaves)`` on ranges of leaves, one per thread."""

    def of_range(part):
        return function(range(part.start, part.stop))

    return map_slices(of_range, n_leaves, minimum=1)


def reduced_equations(
    rows: Any, leaf_alphas: np.ndarray
) -> list[tuple[np.ndarray, np.ndarray] | None]:
    """Reduced equations for each alpha of the leaves.

    Parameters
    ----------
    rows : LeafRows or LeafSums
    leaf_alphas : ndarray of shape (n_alphas,)
        Regularisation of the leaves, > 0.

    Returns
    -------
    list of (gram, moments) or None
        Shapes (p, p), Fortran order, the upper triangle, and (p, k). None where a leaf
        is singular to working precision.

    Notes
    -----
    Per leaf of n rows the smaller of ``n p^2 + n^2 p`` and ``n p^2 + p^3`` operations,
    and per alpha about the same again.
    """
    p, k = rows.n_columns, rows.n_targets

    def add_up(leaves):
        sums: list[Any] = [
            (np.zeros((p, p), order="F"), np.zeros((p, k))) for _ in leaf_alphas
        ]
        for number in leaves:
            leaf = rows.leaf(number)
            for i, alpha in enumerate(leaf_alphas):
                if leaf is None or sums[i] is None:
                    continue
                try:
                    leaf.add_reduced(alpha, *sums[i])
                except SingularError:
                    sums[i] = None
        return sums

    total, *others = each_leaf(add_up, rows.n_leaves)
    for other in others:
        for i, pair in enumerate(other):
            if total[i] is None or pair is None:
                total[i] = None
                continue
            for own, more in zip(total[i], pair, strict=True):
                own += more
    return total


def common_head(gram, moments, alphas, fit_intercept, solver):
    """Solve reduced equations for the common heads, shape (p, k).

    ``alphas`` has one entry for each target.
    """
    feature_mean = np.zeros(len(gram) - fit_intercept)
    target_mean = np.zeros(moments.shape[1])
    if fit_intercept:
        # What is left of a leaf's rows after its own head took its share.
        weight = gram[-1, -1]
        feature_mean, target_mean = gram[:-1, -1] / weight, moments[-1] / weight
        moments = moments[:-1] - np.outer(gram[:-1, -1], target_mean)
        gram = blas.dsyr(-weight, feature_mean, a=np.asfortranarray(gram[:-1, :-1]))
    equations = CentredEquations(gram, moments, feature_mean, target_mean)
    heads = np.empty((len(gram) + fit_intercept, len(target_mean)))
    heads[: len(gram)], intercepts = solve_each(equations, alphas, solver)
    if fit_intercept:
        heads[-1] = intercepts
    return heads


def common_heads(
    rows: Any,
    alphas: np.ndarray,
    leaf_alphas: np.ndarray,
    solver: Any = "cholesky",
) -> list[np.ndarray | None]:
    """Solve for the common head, for each alpha of the leaves.

    Parameters
    ----------
    rows : LeafRows or LeafSums
    alphas : ndarray of shape (k,)
        Regularisation of the common head of each target, >= 0.
    leaf_alphas : ndarray of shape (n_alphas,)
        Regularisation of the leaves, > 0.
    solver : {"cholesky", "eigh"} or callable, default="cholesky"
        Of the reduced equations; see `surff.linear.solve`.

    Returns
    -------
    list of ndarray of shape (p, k), or None
        The intercept comes last. None where a leaf, or what is left for the common
        head, is singular to working precision.
    """
    heads: list[np.ndarray | None] = []
    for pair in reduced_equations(rows, leaf_alphas):
        try:
            heads.append(
                pair and common_head(*pair, alphas, rows.fit_intercept, solver)
            )
        except SingularError:
            heads.append(None)
    return heads


def each_leaf_head(
    function: Callable[[int, int, np.ndarray], Any],
    rows: Any,
    leaf_alphas: np.ndarray,
    commons: list[np.ndarray | None],
) -> None:
    """Call ``function(leaf, i, head)`` with what each leaf adds to the common head.

    Parameters
    ----------
    function : callable
        Takes the number of a leaf that has rows, that of an alpha, and the head, shape
        (p, k); several threads call it, each for leaves of its own.
    rows, leaf_alphas
        See `common_heads`.
    commons : list of ndarray or None
        From `common_heads`; alphas without a solution are passed over.
    """

    def solve_leaves(leaves):
        for number in leaves:
            leaf = rows.leaf(number)
            for i, alpha in enumerate(leaf_alphas):
                if leaf is not None and commons[i] is not None:
                    function(number, i, leaf.heads(alpha, commons[i]))

    each_leaf(solve_leaves, rows.n_leaves)


def joint_heads(
    rows: Any, alphas: np.ndarray, leaf_alpha: float, solver: Any = "cholesky"
) -> JointHeads:
    """Solve for the common head and those of the leaves.

    Parameters
    ----------
    rows, alphas, solver
        See `common_heads`.
    leaf_alpha : float
        Regularisation of the leaves, > 0.

    Returns
    -------
    JointHeads

    Raises
    ------
    SingularError
        If a leaf, or what is left for the common head, is singular to working
        precision.
    """
    leaf_alphas = np.array([leaf_alpha])
    commons = common_heads(rows, alphas, leaf_alphas, solver)
    if commons[0] is None:
        raise singular(leaf_alpha)
    heads = np.zeros((rows.n_leaves, rows.n_columns, rows.n_targets))

    def keep(number, _, head):
        heads[number] = head

    each_leaf_head(keep, rows, leaf_alphas, commons)
    return JointHeads(commons[0], heads)


def common_left_out(
    equations: NormalEquations,
    alphas: np.ndarray,
    fit_intercept: bool,
    feature_map: Any,
    X: Any,
    Y: np.ndarray,
    sample_weight: np.ndarray | None = None,
) -> np.ndarray:
    r"""Residuals of each row by the ridge fit to all the others, without leaves.

    With the leverage :math:`h_i = w_i (z_i^\top (G + \alpha I)^{-1} z_i + 1 / n)` of
    centred features they are :math:`r_i / (1 - h_i)`; a row is left out with its whole
    weight.

    Parameters
    ----------
    equations : NormalEquations
        Of all rows.
    alphas : ndarray of shape (k,)
        Regularisation of each target. Where the matrix would be singular to working
        precision, `least_regular` stands in: the residuals only guide a tree.
    fit_intercept : bool
        Whether the model has an intercept.
    feature_map, X, Y, sample_weight
        See `surff.linear.accumulate`.

    Returns
    -------
    residuals : ndarray of shape (n_samples, k)
    """
    centred = equations.centred(fit_intercept)
    share = 1.0 / equations.weight_sum if fit_intercept else 0.0
    weight = np.ones(X.shape[0]) if sample_weight is None else sample_weight
    residuals = np.empty(Y.shape)
    for alpha in np.unique(alphas):
        own = np.flatnonzero(alphas == alpha)
        alpha = max(alpha, least_regular(equations))
        coef, intercept = solve(centred.of_targets(own), alpha)
        factor = factored(centred.gram, alpha)

        def leave_out(block, Z, own=own, factor=factor, coef=coef, constant=intercept):
            residual = Y[block][:, own] - Z @ coef - constant
            half = divide_by_upper(np.array(Z - centred.feature_mean), factor)
            leverage = weight[block] * (np.einsum("ij,ij->i", half, half) + share)
            left = left_of(leverage, Z.shape[1])
            residuals[block, own] = residual / left[:, None]

        each_block(leave_out, feature_map, X)
    return residuals


def left_of(leverage, n_columns):
    """What leverages leave of 1; 1 where they leave rounding errors alone."""
    left = 1.0 - leverage
    left[left <= n_columns * np.finfo(np.float64).eps] = 1.0
    return left


def joint_left_out(
    rows: LeafRows, alphas: np.ndarray, leaf_alpha: float, heads: JointHeads
) -> np.ndarray:
    r"""Residuals of each row by the joint fit to all the others, the tree fixed.

    With :math:`P = (A_l + a I)^{-1}` and the matrix S of the common head's equations
    the leverage is :math:`z^\top (P + a^2 P S^{-1} P) z`.

    Parameters
    ----------
    rows : LeafRows
    alphas : ndarray of shape (k,)
        Regularisation of the common head of each target.
    leaf_alpha : float
        Regularisation of the leaves.
    heads : JointHeads
        From `joint_heads`.

    Returns
    -------
    residuals : ndarray of shape (n_samples, k)

    Notes
    -----
    About ``2 n p^2`` operations per distinct alpha.
    """
    reduced = reduced_equations(rows, np.array([leaf_alpha]))[0]
    if reduced is None:
        raise singular(leaf_alpha)
    residuals = np.empty(rows.Y.shape)
    for alpha in np.unique(alphas):
        own = np.flatnonzero(alphas == alpha)
        ridge = np.full(rows.n_columns, alpha)
        if rows.fit_intercept:
            ridge[-1] = 0.0
        upper = factored(reduced[0] + np.diag(ridge), 0.0)

        def leave_out(leaves, own=own, upper=upper):
            for number in leaves:
                head = (heads.common + heads.leaves[number])[:, own]
                leverages = []
                leaf = rows.leaf(number)
                for index, Z in rows.blocks(number):
                    residuals[np.ix_(index, own)] = rows.Y[index][:, own] - Z @ head
                    Z, _ = rows.weighted(index, Z)
                    leverages.append(leaf.leverages(leaf_alpha, Z, upper))
                if leverages:
                    left = left_of(np.concatenate(leverages), rows.n_columns)
                    residuals[np.ix_(rows.rows(number), own)] /= left[:, None]

        each_leaf(leave_out, rows.n_leaves)
    return residuals


def add_leaf_decisions(
    decisions: np.ndarray,
    Z: np.ndarray,
    leaves: np.ndarray,
    coef: np.ndarray,
    intercept: np.ndarray,
) -> None:
    """Add what the heads of the leaves say of rows, in place.

    Parameters
    ----------
    decisions : ndarray of shape (n_rows, k)
        What is added to.
    Z : ndarray of shape (n_rows, m), C-contiguous
        Features.
    leaves : ndarray of int64, shape (n_rows, n_trees)
        From `Partition.leaves`.
    coef : ndarray of shape (n_leaves, k, m)
        Heads; of the dtype of the others.
    intercept : ndarray of shape (n_leaves, k)
        Their intercepts.
    """
    (n, k), m = decisions.shape, Z.shape[1]
    check_buffer("decisions", decisions, (n, k), Z.dtype, written=True)
    check_buffer("Z", Z, (n, m), Z.dtype)
    check_buffer("coef", coef, (len(coef), k, m), Z.dtype)
    check_buffer("intercept", intercept, (len(coef), k), Z.dtype)
    check_buffer("leaves", leaves, (n, leaves.shape[1]), np.int64)
    if n and (leaves.min() < 0 or leaves.max() >= len(coef)):
        raise ValueError(f"leaves must be numbers below {len(coef)}.")
    add_dot_products(decisions, Z, leaves, coef, intercept)


@compiled(contract=True)
def add_dot_products(decisions, Z, leaves, coef, intercept):
    """Add the dot product of each row with the heads of its leaves."""
    n, k = decisions.shape
    m = Z.shape[1]
    lanes = np.zeros(8, Z.dtype)
    for i in range(n):
        for t in range(leaves.shape[1]):
            leaf = leaves[i, t]
            for j in range(k):
                head = coef[leaf, j]
                # Eight sums: one alone would wait for each addition.
                total = intercept[leaf, j]
                lanes[:] = 0
                for c in range(0, m - 7, 8):
                    for lane in range(8):
                        lanes[lane] += Z[i, c + lane] * head[c + lane]
                for c in range(m - m % 8, m):
                    total += Z[i, c] * head[c]
                for lane in range(8):
                    total += lanes[lane]
                decisions[i, j] += total
