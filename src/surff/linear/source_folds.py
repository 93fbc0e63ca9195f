"""Normal equations of a source of rows and of its folds, and the scores they give.

Nothing but sums is kept of the rows, so the folds of a stream cost a set of sums each.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from surff.backend import row_blocks
from surff.linear.alpha_path import (
    Split,
    coefficient_paths,
    held_out_decisions,
    rest_of,
)
from surff.linear.criteria import CriterionOfEquations, Solving
from surff.linear.normal_equations import NormalEquations, accumulate
from surff.streaming import Fold, Passes, added, folds_of_rows, row_keys

__all__ = [
    "Equations",
    "FoldsOfSource",
    "RefittedFolds",
    "equations_of",
    "sides_of",
]

#: Bytes of the held-out predictions that are scored at once.
DECISION_BYTES = 16 * 2**20


class Equations(NamedTuple):
    """Normal equations of a source."""

    total: NormalEquations
    folds: list  # of NormalEquations; rows that are held out nowhere are in none


def equations_of(
    passes: Passes,
    feature_map: Any,
    coded: Callable | None,
    offset: np.ndarray,
    n_folds: int,
    seen: np.ndarray | None = None,
) -> Equations:
    """`Equations` of all rows and of each fold, in one pass.

    Parameters
    ----------
    passes : Passes
    feature_map : object with ``n_components``, ``dtype`` and ``(X, out=None) -> Z``
        Maps a block of rows.
    coded : callable
        ``coded(y)`` are targets as numbers, shape (n_rows, k).
    offset : ndarray of shape (k,)
        Taken off the targets.
    n_folds : int
        0 for no folds.
    seen : ndarray of uint64, optional
        Keys of rows that no fold holds out.
    """
    # Those of no fold come last, where there may be any.
    n_sums = n_folds + (seen is not None or not n_folds)
    sides = functools.partial(members, n_folds=n_folds, seen=seen)
    sums = sums_of(passes, feature_map, coded, offset, n_sums, sides)
    folds = sums[:n_folds]
    total = (sums[n_folds:] or empty_sums(feature_map, offset, 1))[0]
    for fold in folds:
        total.merge(fold)
    return Equations(total, folds)


def sums_of(passes, feature_map, coded, offset, n_sums, sides):
    """Normal equations of each of the lists of rows that ``sides(rows)`` returns."""
    return passes.reduce(
        functools.partial(empty_sums, feature_map, offset, n_sums),
        functools.partial(
            add_to_sums,
            feature_map=feature_map,
            coded=coded,
            offset=offset,
            sides=sides,
        ),
        added,
        8 * feature_map.n_components**2 * n_sums,
    )


def empty_sums(feature_map, offset, n):
    """``n`` normal equations of no rows."""
    return [NormalEquations(feature_map.n_components, len(offset)) for _ in range(n)]


def add_to_sums(sums, rows, feature_map, coded, offset, sides):
    """Add some of the rows to each of several normal equations."""
    Y = coded(rows.y) - offset
    for i, own in enumerate(sides(rows)[: len(sums)]):
        if not len(own):
            continue
        own = None if len(own) == len(Y) else own
        part = accumulate(feature_map, rows.X, Y, rows.sample_weight, own)
        # Nothing is added to what was empty: that would touch a matrix more.
        sums[i] = sums[i].merge(part) if sums[i].weight_sum else part
    return sums


def sides_of(
    passes: Passes,
    feature_map: Any,
    coded: Callable | None,
    offset: np.ndarray,
    left_out: Fold,
) -> list[NormalEquations]:
    """Normal equations of the training rows of a split, and of those it holds out."""
    sides = functools.partial(both_sides, left_out=left_out)
    return sums_of(passes, feature_map, coded, offset, 2, sides)


def both_sides(rows, left_out):
    """Which rows of a block a split trains on, and which it holds out."""
    held_out = left_out.holds(rows.start, rows.X.shape[0])
    return np.flatnonzero(~held_out), np.flatnonzero(held_out)


def members(rows, n_folds, seen):
    """Rows of each fold within a block, and those that no fold holds out."""
    n_rows = rows.X.shape[0]
    if not n_folds:
        return [np.arange(n_rows)]
    fold = folds_of_rows(rows.start, n_rows, n_folds)
    if seen is not None:
        fold[np.isin(row_keys(rows.start, n_rows), seen)] = n_folds
    return [np.flatnonzero(fold == f) for f in range(n_folds + 1)]


class FoldsOfSource(CriterionOfEquations):
    """k-fold cross-validation on a source; see `surff.linear.criteria`.

    Parameters
    ----------
    passes : Passes
    equations : Equations
    feature_map : object
        Map of all rows.
    offset : ndarray of shape (k,)
        Taken off the targets.
    solving : Solving
    scorer : callable
        ``scorer(y)`` scores predictions of rows with the targets ``y``, see
        `surff.linear.criteria`.
    seen : ndarray of uint64, optional
        Keys of rows that no fold holds out.

    Notes
    -----
    Scores that follow from the folds' equations need no pass; others take one for all
    alphas together.
    """

    def __init__(
        self,
        passes: Passes,
        equations: Equations,
        feature_map: Any,
        offset: np.ndarray,
        solving: Solving,
        scorer: Any,
        seen: np.ndarray | None = None,
    ):
        self.passes, self.feature_map, self.offset = passes, feature_map, offset
        self.solving, self.seen = solving, seen
        self.total, self.folds = equations
        self.scorer_of, self.scorer = scorer, scorer(None)
        for f, fold in enumerate(self.folds):
            if not fold.weight_sum:
                raise ValueError(
                    f"cv={len(self.folds)} leaves fold {f} without rows of positive "
                    "weight: the source has too few rows; use fewer folds or "
                    "cv='gcv'."
                )

    def splits(self) -> Iterator[Any]:
        """Iterate over the splits and their normal equations."""
        for fold in self.folds:
            train = functools.partial(rest_of, self.total, fold)
            yield Split(train, fold, None, self.feature_map)

    def score(self, alphas: Any) -> np.ndarray:
        """Scores of every alpha, one column per split; see `surff.linear.criteria`."""
        if hasattr(self.scorer, "from_equations"):
            scores = [
                self.scorer.from_equations(split.test, *path)
                for split, *path in self.fold_models(alphas)
            ]
            return np.stack(scores, axis=1)
        paths = [
            (split.feature_map, *path) for split, *path in self.fold_models(alphas)
        ]
        update = functools.partial(
            add_scores,
            paths=paths,
            offset=self.offset,
            scorer_of=self.scorer_of,
            seen=self.seen,
        )
        empty = functools.partial(np.zeros, (len(alphas), len(paths), 1))
        scores = self.passes.reduce(empty, update, added)
        return scores / np.array([fold.weight_sum for fold in self.folds])[:, None]

    def fold_models(self, alphas: Any) -> Iterator[tuple[Any, np.ndarray, np.ndarray]]:
        """Iterate over the splits, with the coefficients and intercepts of alphas."""
        return coefficient_paths(self.splits(), alphas, *self.solving)


class RefittedFolds(FoldsOfSource):
    """`FoldsOfSource` of features that are fitted again to what each split trains on.

    Parameters
    ----------
    passes : Passes
    total : NormalEquations
        Of all rows, with the features of all.
    splits : list of Split
        Without row numbers.
    offset, solving, scorer
        See `FoldsOfSource`.
    """

    def __init__(
        self,
        passes: Passes,
        total: NormalEquations,
        splits: Any,
        offset: np.ndarray,
        solving: Solving,
        scorer: Any,
    ):
        self._sides = splits
        equations = Equations(total, [split.test for split in splits])
        super().__init__(passes, equations, None, offset, solving, scorer)

    def splits(self) -> Iterator[Any]:
        """Iterate over the splits that were given."""
        return iter(self._sides)


def add_scores(scores, rows, paths, offset, scorer_of, seen):
    """Add the scores of rows, times their weights, to those of their splits."""
    own = members(rows, len(paths), seen)[:-1]
    for f, (index, path) in enumerate(zip(own, paths, strict=True)):
        scores[:, f] += score_sums(rows, index, *path, offset, scorer_of(rows.y))
    return scores


def score_sums(rows, index, feature_map, coefs, intercepts, offset, scorer):
    """Scores of some rows times their weights, shape (n_alphas, 1)."""
    sums = np.zeros((len(intercepts), 1))
    size = max(1, DECISION_BYTES // (8 * intercepts.size))
    for part in row_blocks(len(index), size):
        some = index[part]
        weight = None if rows.sample_weight is None else rows.sample_weight[some]
        total = len(some) if weight is None else weight.sum()
        if total > 0:
            decisions = held_out_decisions(
                feature_map, rows.X, some, coefs, intercepts + offset
            )
            sums += total * scorer.from_decisions(decisions, some, weight)
    return sums
