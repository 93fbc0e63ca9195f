"""Leaf heads in a fit: the tree, how many leaves, and how far they are shrunk.

The common head is fitted first, as without leaves. A tree is grown on its left-out
residuals, or on labels; the number of leaves and their alpha are chosen by rows that
neither the heads nor the tree have seen; then common head and leaves are solved jointly
from all rows. The equations are in `surff.linear.leaf_heads`.
"""

from __future__ import annotations

import itertools
import math
from typing import Any, NamedTuple

import numpy as np

from surff.backend import as_generator, each_block, rows_of
from surff.estimators.leaves import LeafHeads, LeafModel
from surff.linear import (
    JointHeads,
    LeafRows,
    LeafSums,
    Partition,
    SingularError,
    accumulate,
    common_heads,
    common_left_out,
    each_leaf_head,
    grown_tree,
    joint_heads,
    joint_left_out,
    least_regular,
    solve,
)

__all__ = ["Plan", "Rows", "fit_leaves", "fit_sums", "planned", "without_leaves"]

#: Numbers of leaves that "auto" tries, while more are better.
LEAF_COUNTS = (16, 64, 256, 1024, 4096)

#: Rows from which on it begins with the second of them.
MANY_ROWS = 20_000

#: Rows that are held out, at least, for a choice: as many of five folds as it takes.
HELD_ROWS = 10_000

#: Folds of which some are held out.
N_FOLDS = 5

#: Factor between neighbours on the grid of the leaves' alpha, and steps that it may
#: take from the middle.
ALPHA_STEP, ALPHA_STEPS = 4.0, 8


class LeafFit(NamedTuple):
    """A joint fit: the common head and the leaves."""

    coef: np.ndarray  # (m, k)
    intercept: np.ndarray  # (k,)
    leaves: LeafModel


class Rows(NamedTuple):
    """What a fit of leaf heads is made of; targets less their offset."""

    feature_map: Any
    X: Any
    Y: np.ndarray
    sample_weight: np.ndarray | None
    fit_intercept: bool
    alphas: np.ndarray  # (k,), of the common head
    solver: Any
    splits: list | None = None  # (train, test) to choose by; random ones for None

    def some(self, index: np.ndarray) -> Rows:
        """Some of the rows."""
        weight = self.sample_weight
        return self._replace(
            X=rows_of(self.X, index),
            Y=self.Y[index],
            sample_weight=None if weight is None else weight[index],
        )

    def equations(self) -> Any:
        """Normal equations of the rows."""
        return accumulate(self.feature_map, self.X, self.Y, self.sample_weight)

    def left_out(self, equations: Any) -> np.ndarray:
        """Residuals of each row by the common head of the others."""
        return common_left_out(
            equations,
            self.alphas,
            self.fit_intercept,
            self.feature_map,
            self.X,
            self.Y,
            self.sample_weight,
        )

    def by_leaf(self, leaves: np.ndarray, n_leaves: int) -> LeafRows:
        """The rows leaf by leaf."""
        return LeafRows(
            self.feature_map,
            self.X,
            self.Y,
            self.sample_weight,
            leaves,
            n_leaves,
            self.fit_intercept,
        )

    def unit(self) -> float:
        """Mean squared length of a row's features: the middle of the grid of alphas."""
        some = np.arange(0, self.X.shape[0], max(1, self.X.shape[0] // 256))
        Z = self.feature_map(rows_of(self.X, some))
        square = float(np.square(Z, dtype=np.float64).sum(axis=1).mean())
        return (square + self.fit_intercept) or 1.0


class Growing:
    """Trees grown as the parameters say.

    Parameters
    ----------
    leaves : LeafHeads
    rng : numpy.random.Generator
    scale : ndarray of shape (k,) or None
        What the residuals of each target are divided by. None for labels, on which
        trees are grown as they are.
    """

    def __init__(self, leaves: LeafHeads, rng: Any, scale: np.ndarray | None) -> None:
        self.leaves, self.rng, self.scale = leaves, rng, scale

    def targets(self, rows: Rows, equations: Any) -> np.ndarray:
        """What the first tree is grown on: labels, or left-out residuals.

        Residuals of labels have the labels' signs, and sizes that mislead: on covtype
        they cost two points of accuracy.
        """
        if self.scale is None:
            return rows.Y
        return self.scaled(rows.left_out(equations))

    def scaled(self, residuals: np.ndarray) -> np.ndarray:
        """Residuals in units of their targets."""
        return residuals if self.scale is None else residuals / self.scale

    def __call__(self, rows: Rows, targets: np.ndarray, n_leaves: int) -> Any:
        """Grow a tree of scikit-learn with so many leaves at most."""
        return grown_tree(
            rows.X,
            targets,
            rows.sample_weight,
            n_leaves,
            self.leaves.min_samples_leaf,
            self.leaves.tried_share(),
            self.rng,
        )


def held_out_splits(rows, rng):
    """Rows to train on and to hold out, until enough are held out."""
    n = rows.X.shape[0]
    splits = rows.splits
    if splits is None:
        order = rng.permutation(n)
        bounds = [n * f // N_FOLDS for f in range(N_FOLDS + 1)]
        tests = [np.sort(order[slice(*pair)]) for pair in itertools.pairwise(bounds)]
        splits = [(np.delete(np.arange(n), test), test) for test in tests]
    n_held = 0
    for train, test in splits:
        yield train, test
        n_held += len(test)
        if n_held >= HELD_ROWS:
            return


class HeldOut:
    """Held-out errors of numbers of leaves and alphas.

    Parameters
    ----------
    rows : Rows
        All rows.
    equations : NormalEquations
        Of all rows.
    grow : Growing
    most_leaves : int
        Leaves that will be asked for.
    partition : Partition or None
        Used instead of trees that are grown on the other rows.
    """

    def __init__(self, rows, equations, grow, most_leaves, partition):
        self.rows, self.trials, self.sides = rows, [], []
        none = []
        for train, test in held_out_splits(rows, grow.rng):
            if len(train) + len(test) == rows.X.shape[0]:
                others = equations.copy().subtract(rows.some(test).equations())
            else:
                others = rows.some(train).equations()
            if not others.weight_sum > 0:
                raise ValueError(
                    "leaves need rows of positive weight in every fold; give "
                    "LeafHeads a number of leaves and an alpha."
                )
            tree = partition
            if partition is None:
                kept = rows.some(train)
                tree = grow(kept, grow.targets(kept, others), most_leaves)
            self.sides.append((train, test, tree))
            none.append(self._without_leaves(others, test))
        self.held = np.concatenate([test for _, test, _ in self.sides])
        self.none = np.concatenate(none)
        weight = rows.sample_weight
        self.weight = np.ones(len(self.held)) if weight is None else weight[self.held]
        if not self.weight.any():
            self.weight = np.ones(len(self.held))

    def _without_leaves(self, equations, test):
        """Squared errors of the common head on held-out rows."""
        rows = self.rows.some(test)
        errors = rows.Y.copy()
        centred = equations.centred(rows.fit_intercept)
        for alpha in np.unique(rows.alphas):
            own = np.flatnonzero(rows.alphas == alpha)
            # Fewer rows than those of the fit may be singular where it is not.
            alpha = max(alpha, least_regular(equations))
            coef, intercept = solve(centred.of_targets(own), alpha, rows.solver)

            def subtract(block, Z, own=own, coef=coef, intercept=intercept):
                errors[block, own] -= Z @ coef + intercept

            each_block(subtract, rows.feature_map, rows.X)
        return np.square(errors).sum(axis=1)

    def leaves_found(self, n_leaves: int) -> int:
        """Most leaves that the trees have of those asked for."""
        return max(self._partition(tree, n_leaves).n_leaves for *_, tree in self.sides)

    @staticmethod
    def _partition(tree, n_leaves):
        if isinstance(tree, Partition):
            return tree
        return Partition.of_trees([tree], n_leaves)

    def errors(self, n_leaves: int, alphas: np.ndarray) -> np.ndarray:
        """Squared errors of the held-out rows, shape (n_alphas, n_held).

        Infinite where the leaves have no solution.
        """
        rows, found = self.rows, []
        for train, test, tree in self.sides:
            partition = self._partition(tree, n_leaves)
            leaves = partition.leaves(rows.X)[:, 0]
            sides = []
            for left_out in (test, train):
                own = leaves.copy()
                own[left_out] = -1
                sides.append(rows.by_leaf(own, partition.n_leaves))
            commons = common_heads(sides[0], rows.alphas, alphas, rows.solver)
            errors = np.full((len(alphas), rows.X.shape[0]), np.inf)
            held = sides[1]

            def square(leaf, i, head, held=held, commons=commons, errors=errors):
                for index, Z in held.blocks(leaf):
                    error = rows.Y[index] - Z @ (commons[i] + head)
                    errors[i, index] = np.square(error).sum(axis=1)

            each_leaf_head(square, sides[0], alphas, commons)
            self._without_rows(sides, commons, errors)
            found.append(errors[:, test])
        errors = np.concatenate(found, axis=1)
        for alpha, row in zip(alphas, errors, strict=True):
            self.trials.append((n_leaves, alpha, self.mean(row)))
        return errors

    def _without_rows(self, sides, commons, errors):
        """Held-out rows in leaves without rows to train on: the common head's."""
        for leaf in range(sides[0].n_leaves):
            if len(sides[0].rows(leaf)):
                continue
            for index, Z in sides[1].blocks(leaf):
                for i, common in enumerate(commons):
                    if common is not None:
                        error = self.rows.Y[index] - Z @ common
                        errors[i, index] = np.square(error).sum(axis=1)

    def mean(self, errors: np.ndarray) -> float:
        """Weighted mean of held-out errors."""
        return float(np.average(errors, weights=self.weight))

    def best_alpha(self, n_leaves: int, start: float) -> tuple[float, np.ndarray]:
        """Climb to the best alpha; it, and its held-out errors."""
        steps = np.array([-1, 0, 1])
        errors = dict(
            zip(steps, self.errors(n_leaves, start * ALPHA_STEP**steps), strict=True)
        )
        while True:
            best = min(errors, key=lambda step: self.mean(errors[step]))
            step = best - 1 if best == min(errors) else best + 1
            if step in errors or abs(step) > ALPHA_STEPS:
                break
            errors[step] = self.errors(
                n_leaves, np.array([start * ALPHA_STEP ** float(step)])
            )[0]
        if not np.isfinite(self.mean(errors[best])):
            raise SingularError(
                "no alpha of the leaves has a solution to working precision; increase "
                "alphas, or make them 'auto'."
            )
        return float(start * ALPHA_STEP ** float(best)), errors[best]

    def is_better(self, errors: np.ndarray) -> bool:
        """Whether leaves gain more than the standard error of what they gain."""
        gain = self.none - errors
        mean = self.mean(gain)
        spread = math.sqrt(float(np.average((gain - mean) ** 2, weights=self.weight)))
        return mean > spread / math.sqrt(len(gain))


def chosen(rows, equations, leaves, grow):
    """Number of leaves, 0 for none, their alpha, and the trials."""
    fixed = leaves.partition is not None
    counts: tuple = (leaves.n_leaves,)
    if fixed:
        counts = (leaves.partition.n_leaves // leaves.partition.n_trees,)
    elif leaves.n_leaves == "auto":
        first = 1 if rows.X.shape[0] >= MANY_ROWS else 0
        most = rows.X.shape[0] // leaves.min_samples_leaf
        counts = tuple(c for c in LEAF_COUNTS[first:] if c <= most)
        counts = counts or (LEAF_COUNTS[0],)
    choose = leaves.n_leaves == "auto" and not fixed
    if not choose and leaves.alpha != "auto":
        return counts[0], float(leaves.alpha), np.empty((0, 3))
    first_tree = leaves.partition and leaves.partition.tree(0)
    held_out = HeldOut(rows, equations, grow, counts[-1], first_tree)
    best, alpha = (0, np.inf, held_out.none), rows.unit()
    for count in counts:
        if leaves.alpha == "auto":
            alpha, errors = held_out.best_alpha(count, alpha)
        else:
            alpha = float(leaves.alpha)
            errors = held_out.errors(count, np.array([alpha]))[0]
        is_best = held_out.mean(errors) < held_out.mean(best[2])
        if is_best or not choose:
            best = count, alpha, errors
        if not is_best or held_out.leaves_found(count) < count:
            break
    trials = [(0, np.inf, held_out.mean(held_out.none)), *held_out.trials]
    if choose and not held_out.is_better(best[2]):
        best = 0, np.inf, held_out.none
    return best[0], best[1], np.array(trials)


class Plan(NamedTuple):
    """Trees and alpha of leaf heads, before the heads are solved for."""

    partition: Partition | None  # None for no leaves
    alpha: float
    trials: np.ndarray  # see `LeafModel`


def planned(
    rows: Rows, equations: Any, leaves: LeafHeads, labels: bool, all_rows: bool = True
) -> Plan:
    """Choose the number of leaves and their alpha, and grow the trees.

    Parameters
    ----------
    rows : Rows
        Those at hand.
    equations : NormalEquations
        Of all rows.
    leaves : LeafHeads
        Checked.
    labels : bool
        Whether the targets are labels, all in one unit.
    all_rows : bool, default=True
        Whether all rows are at hand; else they are a sample of them.

    Returns
    -------
    Plan
    """
    grow = growing(rows, leaves, labels)
    own = equations if all_rows else rows.equations()
    n_leaves, alpha, trials = chosen(rows, own, leaves, grow)
    if not n_leaves:
        return Plan(None, alpha, trials)
    partition = leaves.partition
    if partition is None:
        targets = grow.targets(rows, equations)
        trees = [grow(rows, targets, n_leaves) for _ in range(leaves.n_trees)]
        partition = Partition.of_trees(trees)
    return Plan(partition, alpha, trials)


def growing(rows, leaves, labels):
    """`Growing` with residuals in units of the targets, unless those are labels."""
    scale = None if labels else np.ones(len(rows.alphas))
    if not labels and leaves.partition is None:
        scale = np.sqrt(np.average(rows.Y**2, axis=0, weights=rows.sample_weight))
        scale[scale == 0] = 1.0
    return Growing(leaves, as_generator(leaves.random_state), scale)


def fit_leaves(
    rows: Rows, equations: Any, leaves: LeafHeads, labels: bool, common: tuple
) -> LeafFit:
    """Choose, grow and solve the leaf heads of rows in memory.

    Parameters
    ----------
    rows, equations, leaves, labels
        See `planned`.
    common : (coef, intercept)
        The fit without leaves, shapes (m, k) and (k,).

    Returns
    -------
    LeafFit
    """
    if leaves.boosts():
        return boosted(rows, equations, leaves, labels, common)
    plan = planned(rows, equations, leaves, labels)
    if plan.partition is None:
        return without_leaves(common, plan.trials)
    heads = [
        solved(rows, plan.partition.tree(t), plan.alpha)[1]
        for t in range(plan.partition.n_trees)
    ]
    return joined(heads, plan, rows.fit_intercept, 1.0 / len(heads))


def fit_sums(sums: LeafSums, plan: Plan, rows: Rows) -> LeafFit:
    """Solve for leaf heads from sums over the rows.

    Parameters
    ----------
    sums : LeafSums
        Of all rows, with the partition of the plan.
    plan : Plan
        With a partition.
    rows : Rows
        What holds for all rows; none are looked at.

    Returns
    -------
    LeafFit
    """
    first = plan.partition.first_leaf
    heads = [
        joint_heads(
            sums.some(slice(first[t], first[t + 1])),
            rows.alphas,
            plan.alpha,
            rows.solver,
        )
        for t in range(plan.partition.n_trees)
    ]
    return joined(heads, plan, rows.fit_intercept, 1.0 / len(heads))


def without_leaves(common, trials):
    """`LeafFit` of no leaves."""
    m, k = common[0].shape
    empty = LeafModel(None, np.empty((0, k, m)), np.empty((0, k)), np.inf, trials)
    return LeafFit(*common, empty)


def solved(rows, partition, alpha):
    """Rows by the leaves of one tree, and their joint heads."""
    leaves = partition.leaves(rows.X)[:, 0]
    by_leaf = rows.by_leaf(leaves, partition.n_leaves)
    return by_leaf, joint_heads(by_leaf, rows.alphas, alpha, rows.solver)


def boosted(rows, equations, leaves, labels, common):
    """Sum of joint fits, each to left-out residuals of those before.

    A share of each is taken; the first one is fitted to the targets and replaces that
    share of the fit without leaves.
    """
    grow = growing(rows, leaves, labels)
    n_leaves, alpha, trials = chosen(rows, equations, leaves, grow)
    if not n_leaves:
        return without_leaves(common, trials)
    rate, trees, heads = leaves.learning_rate, [], []
    Y, residuals = rows.Y, rows.left_out(equations)
    targets = Y if labels else grow.scaled(residuals)
    for _ in range(leaves.n_trees):
        trees.append(grow(rows, targets, n_leaves))
        partition = Partition.of_trees(trees[-1:])
        by_leaf, joint = solved(rows._replace(Y=Y), partition, alpha)
        heads.append(joint)
        left = joint_left_out(by_leaf, rows.alphas, alpha, joint)
        residuals = (1.0 - rate) * residuals + rate * left
        Y, targets = residuals, grow.scaled(residuals)
    first = heads[0].common.copy()
    m = len(common[0])
    first[:m] += (1.0 / rate - 1.0) * common[0]
    if rows.fit_intercept:
        first[m] += (1.0 / rate - 1.0) * common[1]
    heads[0] = heads[0]._replace(common=first)
    plan = Plan(Partition.of_trees(trees), alpha, trials)
    return joined(heads, plan, rows.fit_intercept, rate)


def joined(heads: list[JointHeads], plan: Plan, fit_intercept: bool, factor: float):
    """`LeafFit` of heads on several trees, times a factor."""
    common = factor * sum(head.common for head in heads)
    own = factor * np.concatenate([head.leaves for head in heads])
    m = len(common) - fit_intercept
    if fit_intercept:
        intercepts, constants = own[:, m], common[m]
    else:
        intercepts = np.zeros((len(own), own.shape[2]))
        constants = np.zeros(own.shape[2])
    coef = own[:, :m].transpose(0, 2, 1)
    model = LeafModel(plan.partition, coef, intercepts, float(plan.alpha), plan.trials)
    return LeafFit(common[:m], constants, model)
