"""What a ridge model does with leaf heads: fit them in its way, and predict."""

from __future__ import annotations

import functools
import numbers
from typing import Any

import numpy as np
from sklearn.model_selection import check_cv

from surff.backend import each_block, rows_of
from surff.estimators._leaves import (
    Plan,
    Rows,
    fit_leaves,
    fit_sums,
    planned,
    without_leaves,
)
from surff.estimators._linear import LinearOnFeatures
from surff.estimators.leaves import checked_leaves
from surff.linear import LeafSums, leaf_sums_bytes, least_regular

__all__ = ["WithLeaves", "looks_at_rows"]


def looks_at_rows(leaves: Any) -> bool:
    """Whether leaf heads need rows to be planned: for the tree, or for a choice."""
    leaves = checked_leaves(leaves)
    return leaves is not None and (leaves.partition is None or leaves.alpha == "auto")


class WithLeaves(LinearOnFeatures):
    """A linear model on features, with or without heads in the leaves of trees."""

    def _refuse_with_leaves(self):
        """Refuse what leaf heads cannot be fitted with."""
        if self.leaves is None:
            return
        if self.solver == "cg":
            raise ValueError(
                "leaves need the normal equations, which solver='cg' does not form: "
                "set it to 'cholesky' or 'eigh'."
            )
        if self.intervals:
            raise ValueError(
                f"intervals={self.intervals!r} are those of the model without leaves: "
                "set it to False, or leaves to None."
            )
        if self.probability:
            raise ValueError(
                "probability=True calibrates the model without leaves: set it to False "
                "and use sklearn.calibration.CalibratedClassifierCV."
            )

    def _rows_of_leaves(self, choice, X, Y, sample_weight):
        """`Rows` to plan or fit leaves with; targets less their offset.

        A leaf takes its share out of the equations of the common head: where alpha was
        chosen below what these can bear, the least that they can stands in.
        """
        alphas = np.broadcast_to(np.asarray(self.alpha_), choice.data.offset.shape)
        if isinstance(self.alphas, str):
            alphas = np.maximum(alphas, least_regular(choice.total))
        return Rows(
            choice.data.feature_map,
            X,
            Y,
            sample_weight,
            bool(self.fit_intercept),
            alphas,
            choice.solver,
        )

    def _take_leaves(self, choice, leaves, like, y):
        """Fit leaf heads besides the common one, and set both.

        A splitter, or splits, that alpha is chosen by serve for the leaves, too.
        """
        data, cv = choice.data, self.cv
        coef = self.primal_coef_.T.reshape(-1, len(data.offset)).astype(np.float64)
        common = coef, np.asarray(self.intercept_, np.float64) - data.offset
        rows = self._rows_of_leaves(choice, data.X, data.Y, data.sample_weight)
        if not (cv is None or isinstance(cv, str | numbers.Integral)):
            splitter = check_cv(cv, y, classifier=self._is_classifier)
            rows = rows._replace(splits=list(splitter.split(data.X, y)))
        fit = fit_leaves(rows, choice.total, leaves, self._is_classifier, common)
        self._set_leaves(fit, data.offset, like)

    def _set_leaves(self, fit, offset, like):
        """Set the heads of a fit; arrays such as ``like``."""
        if fit.leaves.partition is not None:
            self.primal_coef_ = fit.coef.T.astype(like.dtype)
            self.intercept_ = (fit.intercept + offset).astype(like.dtype)
        self.leaves_ = fit.leaves.in_dtype(like.dtype)

    def _take_leaf_sums(self, choice, like, plan, sums):
        """Solve for the heads from sums over leaves, and set them."""
        rows = self._rows_of_leaves(choice, None, None, None)
        if sums is None:
            m, k = choice.total.moments.shape
            fit = without_leaves((np.empty((m, k)), np.empty(k)), plan.trials)
        else:
            fit = fit_sums(sums, plan, rows)
        self._set_leaves(fit, choice.data.offset, like)
        if sums is not None and self.keep_equations:
            self.leaf_sums_ = sums

    def _no_sums(self, choice, plan):
        """Sums over the leaves of no rows; refused where they would be too large."""
        if plan.partition is None:
            return None
        m, k = choice.total.moments.shape
        shape, most = (plan.partition.n_leaves, m, k), checked_leaves(self.leaves)
        n_bytes = leaf_sums_bytes(*shape, self.fit_intercept)
        if n_bytes > most.max_bytes:
            raise ValueError(
                f"sums of {shape[0]} leaves and {m} features take {n_bytes / 1e9:.3g} "
                f"GB, more than max_bytes={most.max_bytes / 1e9:.3g} GB of LeafHeads: "
                "raise it, or take fewer leaves, trees or features."
            )
        return functools.partial(LeafSums, *shape, bool(self.fit_intercept)), n_bytes

    def _leaves_of_source(self, choice, fit):
        """Plan leaf heads on the sample of a source, sum all its rows, and solve."""
        sample, offset = fit.sample, choice.data.offset
        weight = sample.sample_weight
        weight = None if weight is None or not weight.any() else weight
        Y = fit.targets.coded(sample.y) - offset
        rows = self._rows_of_leaves(choice, sample.X, Y, weight)
        leaves = checked_leaves(self.leaves)
        plan = planned(rows, choice.total, leaves, self._is_classifier, all_rows=False)
        sums, empty = None, self._no_sums(choice, plan)
        if empty is not None:
            update = functools.partial(
                add_to_leaves,
                feature_map=choice.data.feature_map,
                partition=plan.partition,
                coded=fit.targets.coded,
                offset=offset,
            )
            sums = fit.passes.reduce(empty[0], update, LeafSums.merge, empty[1])
        self._take_leaf_sums(choice, sample.X, plan, sums)

    def _leaves_of_piece(self, choice, X, Y, sample_weight):
        """Plan leaf heads on the first piece; add a piece to their sums, and solve."""
        rows = self._rows_of_leaves(choice, X, Y, sample_weight)
        before = getattr(self, "leaves_", None)
        if before is None:
            leaves = checked_leaves(self.leaves)
            plan = planned(rows, choice.total, leaves, self._is_classifier)
        else:
            plan = Plan(before.partition, before.alpha, before.trials)
        sums = None
        if plan.partition is not None:
            if before is None:
                sums = self._no_sums(choice, plan)[0]()
            elif hasattr(self, "leaf_sums_"):
                sums = self.leaf_sums_.copy()
            else:
                raise ValueError(
                    "partial_fit cannot go on from a fit to rows in memory with "
                    "leaves, which keeps no sums of them: begin with partial_fit or "
                    "fit_stream, with keep_equations=True."
                )
            sums.update(rows.feature_map, plan.partition, X, Y, sample_weight)
        self._take_leaf_sums(choice, X, plan, sums)

    def _decisions(self, X):
        """Predictions of checked rows, shape (n_samples, k)."""
        leaves = getattr(self, "leaves_", None)
        if leaves is None or leaves.partition is None:
            return super()._decisions(X)
        return leaf_decisions(self, X)


def add_to_leaves(sums, rows, feature_map, partition, coded, offset):
    """Add rows of a source to the sums of their leaves."""
    Y = coded(rows.y) - offset
    return sums.update(feature_map, partition, rows.X, Y, rows.sample_weight)


def leaf_decisions(model: Any, X: Any) -> np.ndarray:
    """Predictions of checked rows by the common head and the leaves, (n_samples, k)."""
    feature_map = model.features_.feature_map().astype(X.dtype)
    leaves = model.leaves_.in_dtype(X.dtype)
    k, m = leaves.coef.shape[1:]
    common = np.asarray(model.primal_coef_, X.dtype).reshape(k, m).T
    decisions = np.empty((X.shape[0], k), X.dtype)
    decisions[:] = np.asarray(model.intercept_, X.dtype)

    def decide(block, Z):
        decisions[block] += Z @ common
        leaves.add_to(decisions[block], rows_of(X, block), Z)

    each_block(decide, feature_map, X)
    return decisions
