r"""Intervals and sets from rows left out: CV, CV+ and the jackknife+.

Each fold k has a model :math:`\mu_{-k}` of the other rows, and each row i a score by
the model of its fold, :math:`R_i = |y_i - \mu_{-k(i)}(x_i)|` for numbers. The interval
of CV at x is :math:`\mu(x) \pm R` with the model :math:`\mu` of all rows and R the
:math:`\lceil c (n + 1) \rceil`-th smallest score, c the coverage (the model and the
rows of one fold alone are split conformal prediction); that of CV+ reaches from the
:math:`\lfloor (1 - c)(n + 1) \rfloor`-th smallest of
:math:`\mu_{-k(i)}(x) - R_i` to the :math:`\lceil c (n + 1) \rceil`-th smallest of
:math:`\mu_{-k(i)}(x) + R_i` (Barber et al., equation 3.1). Scores may be divided by a
scale that the same model gives, :math:`R_i / s_{-k(i)}(x_i)`, and multiplied by it at
x. A label is in the set at x if fewer than :math:`c (n + 1)` rows have a score below
that of the label, each by the model of its fold (Romano et al.).

Models of the folds follow from the normal equations; one more pass gives the scores.

References
----------
.. [1] R. F. Barber, E. J. Candes, A. Ramdas, R. J. Tibshirani, "Predictive Inference
   with the Jackknife+", Annals of Statistics 49(1), 2021.
.. [2] Y. Romano, M. Sesia, E. J. Candes, "Classification with Valid and Adaptive
   Coverage", NeurIPS 2020, section 2.3.
.. [3] J. Lei, M. G'Sell, A. Rinaldo, R. J. Tibshirani, L. Wasserman,
   "Distribution-Free Predictive Inference for Regression", JASA 113, 2018, section 5.2.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from types import NoneType
from typing import Any, NamedTuple

import numpy as np

from surff.backend import each_block, feature_blocks, folded, map_slices
from surff.linear.alpha_path import (
    held_out_decisions,
    leave_one_out_decisions,
    spectrum,
)
from surff.linear.criteria import Data
from surff.linear.normal_equations import NormalEquations
from surff.linear.solvers import solve_each
from surff.linear.source_folds import members
from surff.streaming import added

__all__ = [
    "MOST_SEARCHED",
    "FoldPath",
    "LeftOutScores",
    "absolute_scores",
    "decision_scores",
    "label_scores",
    "leave_one_out_paths",
    "left_out_scores",
    "merge_scores",
    "paths_and_scores",
    "paths_and_scores_of_source",
    "plus_bounds",
    "plus_sets",
    "score_quantiles",
]

#: Folds up to which their sorted scores are searched one fold after the other.
MOST_SEARCHED = 64

#: Rows left out that are scored where all folds share their features, of more a random
#: part: they cost next to nothing beside the fit, and the coverage of one fit varies by
#: 0.3 points at 90 %. Features that look at the targets cost more by themselves, and
#: the rows of the first fold must do alone.
MOST_SCORED = 2**13

#: Halvings of the bracket of a bound, which is as wide as folds' predictions differ.
HALVINGS = 48

#: Bits of a float64 that the scores of a stream lose: ten of the mantissa are kept, so
#: that a score is rounded up by less than a thousandth.
LOST_BITS = 42

#: Smallest scale of a row, in units of the mean one: what is fitted may be negative.
LEAST_SCALE = 0.1


class LeftOutScores(NamedTuple):
    """Scores of rows by models that have not seen them, by target and fold."""

    values: np.ndarray  # (n_scores,), ascending within each target and fold
    weights: np.ndarray  # (n_scores,), rows of each value
    starts: np.ndarray  # (n_targets * n_folds + 1,), where those of each begin
    n_folds: int

    def of_target(self, target: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Values, weights and the starts of folds of a target."""
        first = target * self.n_folds
        starts = self.starts[first : first + self.n_folds + 1]
        own = slice(starts[0], starts[-1])
        return self.values[own], self.weights[own], starts - starts[0]


def left_out_scores(
    scores: np.ndarray,
    folds: np.ndarray,
    n_folds: int,
    sample_weight: np.ndarray | None = None,
) -> LeftOutScores:
    """`LeftOutScores` of rows.

    Parameters
    ----------
    scores : ndarray of shape (n_rows, n_targets)
        Scores, larger for what is less likely.
    folds : ndarray of int, shape (n_rows,)
        Fold of each row, negative for one that no fold leaves out.
    n_folds : int
        Number of folds.
    sample_weight : ndarray of shape (n_rows,), optional
        Weight w counts as w rows.
    """
    n_targets = scores.shape[1]
    if sample_weight is None and n_folds <= MOST_SEARCHED:
        return _scores_of_folds([scores[folds == fold] for fold in range(n_folds)])
    weight = np.ones(len(folds)) if sample_weight is None else sample_weight
    used = (folds >= 0) & (weight > 0)
    cells = folds[used][:, None] + n_folds * np.arange(n_targets)
    weights = np.broadcast_to(weight[used][:, None], cells.shape)
    columns = cells.ravel(), scores[used].ravel(), weights.ravel()
    return _sorted_scores(*columns, n_folds * n_targets)._replace(n_folds=n_folds)


def _scores_of_folds(parts):
    """Scores of rows that count once, (n_rows, n_targets) of each fold.

    Sorting each fold alone is several times faster than sorting all by two keys.
    """
    own = [np.sort(part.T) for part in parts]
    n_targets = parts[0].shape[1]
    values = np.concatenate([part[j] for j in range(n_targets) for part in own])
    starts = np.cumsum([0] + [len(part) for part in parts] * n_targets)
    return LeftOutScores(values, np.ones(len(values)), starts, len(parts))


def _sorted_scores(cells, values, weights, n_cells):
    """Scores in the order of their cells, equal ones together."""
    order = np.lexsort((values, cells))
    cells, values, weights = cells[order], values[order], weights[order]
    first = np.ones(len(values), dtype=bool)
    first[1:] = (np.diff(cells) > 0) | (np.diff(values) > 0)
    first = np.flatnonzero(first)
    weights = np.add.reduceat(weights, first) if len(first) else weights
    starts = np.searchsorted(cells[first], np.arange(n_cells + 1))
    return LeftOutScores(values[first], weights.astype(np.float64), starts, n_cells)


def merge_scores(scores: LeftOutScores, other: LeftOutScores) -> LeftOutScores:
    """Scores of other rows put to those of some."""
    n_cells = len(scores.starts) - 1
    cells = [np.repeat(np.arange(n_cells), np.diff(s.starts)) for s in (scores, other)]
    return _sorted_scores(
        np.concatenate(cells),
        np.concatenate([scores.values, other.values]),
        np.concatenate([scores.weights, other.weights]),
        n_cells,
    )._replace(n_folds=scores.n_folds)


def rounded_up(values: np.ndarray) -> np.ndarray:
    """Numbers rounded towards infinity by less than a thousandth of their size.

    So streams keep some thousand different scores, whatever the number of rows; larger
    scores only widen intervals.
    """
    bits = np.ascontiguousarray(values, dtype=np.float64).view(np.int64)
    mask = np.int64((1 << LOST_BITS) - 1)
    # Without its sign bit a float64 is ordered as an integer; infinity stays itself.
    up = np.where(bits >= 0, bits + mask, bits) & ~mask
    return up.view(np.float64)


# -- intervals and sets ----------------------------------------------------------------


def score_quantiles(scores: LeftOutScores, coverage: float) -> np.ndarray:
    """Smallest score that enough of the scores of each target do not exceed.

    Parameters
    ----------
    scores : LeftOutScores
    coverage : float
        In (0, 1).

    Returns
    -------
    quantiles : ndarray of shape (n_targets,)
        Infinite where there are too few scores for the coverage.
    """
    n_targets = (len(scores.starts) - 1) // scores.n_folds
    own = (scores.of_target(j) for j in range(n_targets))
    return np.array([_quantile(*some[:2], coverage) for some in own])


def _quantile(values, weights, coverage):
    """`score_quantiles` of one target."""
    order = np.argsort(values)
    place = np.searchsorted(np.cumsum(weights[order]), _least_count(weights, coverage))
    return values[order][place] if place < len(values) else np.inf


def plus_bounds(
    scores: LeftOutScores,
    centres: np.ndarray,
    scales: np.ndarray | None,
    coverage: float,
) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper bounds of CV+ intervals; see the module.

    Parameters
    ----------
    scores : LeftOutScores
    centres : ndarray of shape (n_rows, n_folds, n_targets)
        Predictions of the folds' models.
    scales : ndarray of the shape of ``centres``, or None
        What scores are multiplied by, > 0; None for 1.
    coverage : float
        In (0, 1).

    Returns
    -------
    lower, upper : ndarray of shape (n_rows, n_targets)
        Infinite where there are too few scores for the coverage.
    """
    n_rows, _, n_targets = centres.shape
    lower, upper = np.empty((2, n_rows, n_targets))
    for j in range(n_targets):
        scale = None if scales is None else scales[:, :, j]
        own = scores.of_target(j)
        upper[:, j] = _upper_bound(*own, centres[:, :, j], scale, coverage)
        lower[:, j] = -_upper_bound(*own, -centres[:, :, j], scale, coverage)
    return lower, upper


def _least_count(weights, coverage):
    """Rows that must lie below; a little less, against the rounding of products."""
    total = weights.sum()
    return coverage * (total + 1.0) - 1e-9 * (total + 1.0)


def _upper_bound(values, weights, starts, centres, scales, coverage):
    """Smallest number that is at least as large as enough of the folds' bounds."""
    count = _least_count(weights, coverage)
    if count > weights.sum():
        return np.full(len(centres), np.inf)
    scales = np.ones_like(centres) if scales is None else scales
    if len(starts) - 1 > MOST_SEARCHED:
        return _among_all(values, weights, starts, centres, scales, count)
    # The quantile of all scores, moved as by each fold, brackets the bound.
    moved = centres + scales * _quantile(values, weights, coverage)
    low, high = moved.min(axis=1), moved.max(axis=1)
    folds = [slice(a, b) for a, b in itertools.pairwise(starts)]
    below = [np.concatenate([[0.0], np.cumsum(weights[fold])]) for fold in folds]
    for _ in range(HALVINGS):
        if np.all(high - low <= 2.0 * np.spacing(np.abs(high))):
            break
        half = 0.5 * (low + high)
        found = np.zeros(len(centres))
        for k, fold in enumerate(folds):
            limit = (half - centres[:, k]) / scales[:, k]
            found += below[k][np.searchsorted(values[fold], limit, side="right")]
        enough = found >= count
        high = np.where(enough, half, high)
        low = np.where(enough, low, half)
    return high


def _among_all(values, weights, starts, centres, scales, count):
    """`_upper_bound` by sorting the bounds of all scores at each row."""
    fold = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    bounds = centres[:, fold] + scales[:, fold] * values
    if np.all(weights == 1.0):
        place = int(np.ceil(count)) - 1
        return np.partition(bounds, place, axis=1)[:, place]
    order = np.argsort(bounds, axis=1)
    places = np.argmax(np.cumsum(weights[order], axis=1) >= count, axis=1)
    rows = np.arange(len(bounds))
    return bounds[rows, order[rows, places]]


def plus_sets(
    scores: LeftOutScores, candidates: np.ndarray, coverage: float
) -> np.ndarray:
    """Which labels are in the cross-conformal set of each row; see the module.

    Parameters
    ----------
    scores : LeftOutScores
        Of the true labels of rows left out, one target.
    candidates : ndarray of shape (n_rows, n_folds, n_classes)
        Scores of each label by the folds' models.
    coverage : float
        In (0, 1).

    Returns
    -------
    inside : ndarray of bool, shape (n_rows, n_classes)
    """
    values, weights, starts = scores.of_target(0)
    less = np.zeros((len(candidates), candidates.shape[2]))
    for k, (a, b) in enumerate(itertools.pairwise(starts)):
        if a < b:
            below = np.concatenate([[0.0], np.cumsum(weights[a:b])])
            less += below[np.searchsorted(values[a:b], candidates[:, k], side="left")]
    return less < _least_count(weights, coverage)


# -- scores of rows --------------------------------------------------------------------


def absolute_scores(
    decisions: np.ndarray, Y: np.ndarray, floor: np.ndarray | None
) -> np.ndarray:
    """Absolute residuals, over the scale if there is one; shape (n_rows, k).

    Parameters
    ----------
    decisions : ndarray of shape (n_rows, 1 or 2, k)
        Predictions, and scales.
    Y : ndarray of shape (n_rows, k)
        Targets.
    floor : ndarray of shape (k,), or None
        Smallest scale.
    """
    residuals = np.abs(Y - decisions[:, 0])
    if floor is not None:
        residuals /= np.maximum(decisions[:, 1], floor)
    return residuals


def decision_scores(decisions: np.ndarray) -> np.ndarray:
    """Scores of each label, shape (n_rows, n_classes), from decisions (n_rows, k)."""
    if decisions.shape[1] == 1:
        return np.hstack([decisions, -decisions])
    return -decisions


def label_scores(
    decisions: np.ndarray, Y: np.ndarray, floor: Any, of_labels: Callable
) -> np.ndarray:
    """Scores of the true labels, shape (n_rows, 1).

    Parameters
    ----------
    decisions : ndarray of shape (n_rows, 1, k)
        Decisions.
    Y : ndarray of shape (n_rows, k)
        True labels as -1 and 1.
    floor : None
        Labels have no scale.
    of_labels : callable
        Scores of each label from decisions, such as `decision_scores`.
    """
    del floor
    codes = Y[:, 0] > 0 if Y.shape[1] == 1 else Y.argmax(axis=1)
    return np.take_along_axis(
        of_labels(decisions[:, 0]), codes.astype(np.int64)[:, None], axis=1
    )


# -- models of folds -------------------------------------------------------------------


class FoldPath(NamedTuple):
    """Model of the rows that a fold leaves in."""

    feature_map: Any
    coefs: np.ndarray  # (m, 1 or 2, k): of predictions, and of scales
    intercepts: np.ndarray  # (1 or 2, k), offset included
    floor: np.ndarray | None  # (k,), smallest scale; None without scales

    def decisions(self, X: Any, rows: np.ndarray) -> np.ndarray:
        """Predictions and scales of some rows, shape (n_rows, 1 or 2, k)."""
        return held_out_decisions(
            self.feature_map, X, rows, self.coefs, self.intercepts
        )


def _models(criterion, alphas, offset):
    """Iterate over each split of a criterion and its `FoldPath`, without scales."""
    distinct, index = np.unique(alphas, return_inverse=True)
    targets = np.arange(len(alphas))
    for split, coefs, intercepts in criterion.fold_models(distinct):
        own = coefs[:, index, targets][:, None]
        level = intercepts[index, targets][None] + offset
        yield split, FoldPath(split.feature_map, own, level, None)


def paths_and_scores(
    criterion: Any, data: Data, alphas: np.ndarray, score: Callable, scale: bool = False
) -> tuple[list[FoldPath], LeftOutScores]:
    """Models of the folds of rows in memory, and the scores of the rows left out.

    Parameters
    ----------
    criterion : object
        With ``fold_models(alphas)``, such as `HeldOutSplits`.
    data : Data
    alphas : ndarray of shape (k,)
        Regularisation of each target.
    score : callable
        ``score(decisions, Y, floor)``, such as `absolute_scores`.
    scale : bool, default=False
        Whether to fit a scale as well, to the absolute residuals of the training rows.

    Returns
    -------
    paths : list of FoldPath
    scores : LeftOutScores

    Raises
    ------
    ValueError
        If a row is left out by two splits.

    Notes
    -----
    One pass over the rows left out; with ``scale`` one more over each split's training
    rows, and a solution.
    """
    n, Y = data.X.shape[0], data.Y + data.offset
    seen, held_out, paths = np.zeros(n, dtype=bool), [], []
    for number, (split, path) in enumerate(_models(criterion, alphas, data.offset)):
        rows = split.test_rows
        if seen[rows].any():
            raise ValueError(
                "intervals need splits that leave each row out once at most, as KFold "
                f"does: split {number} leaves rows out that another does."
            )
        seen[rows] = True
        if scale:
            others = np.setdiff1d(np.arange(n), rows)
            sums = residual_moments(path, data.X, Y, data.sample_weight, others)
            path = with_scale(path, split.train, sums, alphas)
        held_out.append(rows)
        paths.append(path)
    if all(path.feature_map is paths[0].feature_map for path in paths):
        held_out = _some_rows(held_out, MOST_SCORED)
        decisions = _shared_decisions(paths, data.X, held_out)
    else:
        parts = zip(paths, held_out, strict=True)
        decisions = [path.decisions(data.X, rows) for path, rows in parts]
    parts = [
        score(own, Y.take(rows, axis=0), path.floor)
        for path, rows, own in zip(paths, held_out, decisions, strict=True)
    ]
    if data.sample_weight is None:
        return paths, _scores_of_folds(parts)
    folds = np.repeat(np.arange(len(parts)), [len(rows) for rows in held_out])
    weight = data.sample_weight[np.concatenate(held_out)]
    return paths, left_out_scores(np.concatenate(parts), folds, len(paths), weight)


def _some_rows(held_out, most):
    """Rows that each fold leaves out; of more than ``most`` a random part of each."""
    share = most / sum(map(len, held_out))
    if share >= 1.0:
        return held_out
    rng = np.random.default_rng(0)
    return [rows[rng.random(len(rows)) < share] for rows in held_out]


def _shared_decisions(paths, X, held_out):
    """Predictions and scales of the rows of each fold, in one pass over all of them."""
    feature_map = paths[0].feature_map
    m, c, k = paths[0].coefs.shape
    flat = np.hstack([path.coefs.reshape(m, -1) for path in paths])
    feature_map, flat = folded(feature_map, flat.astype(feature_map.dtype))
    flat = np.asfortranarray(flat)
    bounds = np.cumsum([0, *map(len, held_out)])
    found = np.empty((bounds[-1], c * k))

    def decide(block, Z):
        first, last = np.searchsorted(bounds, [block.start, block.stop - 1], "right")
        for f in range(first - 1, last):
            start, stop = max(bounds[f], block.start), min(bounds[f + 1], block.stop)
            own = Z[start - block.start : stop - block.start]
            found[start:stop] = own @ flat[:, f * c * k : (f + 1) * c * k]

    each_block(decide, feature_map, X, np.concatenate(held_out))
    parts = np.split(found, bounds[1:-1])
    return [
        part.reshape(-1, c, k) + path.intercepts
        for part, path in zip(parts, paths, strict=True)
    ]


def residual_moments(
    path: FoldPath,
    X: Any,
    Y: np.ndarray,
    sample_weight: np.ndarray | None,
    rows: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, float]:
    r"""Sums :math:`Z^\top W |r|`, :math:`w^\top |r|` and of w, for residuals r."""
    m, _, k = path.coefs.shape
    coef = path.coefs[:, 0].astype(path.feature_map.dtype)

    def sum_range(part):
        moments, total, weights = np.zeros((m, k)), np.zeros(k), 0.0
        for index, Z in feature_blocks(path.feature_map, X, rows, part):
            weight = np.ones(len(Z)) if sample_weight is None else sample_weight[index]
            residuals = np.abs(Y[index] - Z @ coef - path.intercepts[0])
            residuals *= weight[:, None]
            moments += Z.T @ residuals.astype(Z.dtype, copy=False)
            total += residuals.sum(axis=0)
            weights += float(weight.sum())
        return moments, total, weights

    parts = map_slices(sum_range, len(rows), minimum=m)
    moments, total, weights = (sum(part) for part in zip(*parts, strict=True))
    return moments, total, weights


def with_scale(
    path: FoldPath, train: NormalEquations, sums: tuple, alphas: np.ndarray
) -> FoldPath:
    """The path with a ridge model of the absolute residuals of its training rows.

    The alphas are those of the predictions.
    """
    moments, total, weights = sums
    if not np.isclose(weights, train.weight_sum, rtol=1e-6):
        raise ValueError(
            "intervals='normalized' needs splits that train on all the rows which they "
            "do not leave out, as KFold does."
        )
    mean = total / weights
    moments = moments - np.outer(train.feature_sum, mean)
    residuals = train.centred()._replace(moments=moments, target_mean=mean)
    # The system was solved for the predictions; eigh solves singular ones, too.
    coefs, levels = solve_each(residuals, alphas, "eigh")
    return path._replace(
        coefs=np.stack([path.coefs[:, 0], coefs], axis=1),
        intercepts=np.stack([path.intercepts[0], levels]),
        floor=np.maximum(LEAST_SCALE * mean, np.finfo(np.float64).tiny),
    )


def leave_one_out_paths(
    data: Data, total: NormalEquations, alpha: float, fit_intercept: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    r"""Models of all rows but one, for each row.

    With the left-out residual :math:`e_i` the coefficients without row i are
    :math:`\beta - (G + \alpha I)^{-1} z_i e_i`, exactly.

    Parameters
    ----------
    data : Data
    total : NormalEquations
        Of all rows.
    alpha : float
        Regularisation, > 0.
    fit_intercept : bool
        Whether the models have an intercept.

    Returns
    -------
    coefs : ndarray of shape (n_samples, m, k)
    intercepts : ndarray of shape (n_samples, k)
        With the offset of the targets.
    decisions : ndarray of shape (n_samples, k)
        Leave-one-out predictions.

    Notes
    -----
    One eigendecomposition twice, two passes of ``O(n m^2)``, and the result: n m k
    numbers.
    """
    weight = data.sample_weight
    seen = None if weight is None else weight > 0
    left_out = leave_one_out_decisions(
        data.feature_map, data.X, data.Y, total, [alpha], fit_intercept, seen
    )[:, 0]
    e, vectors, projected, z_mean, y_mean = spectrum(total, fit_intercept)
    n, (m, k) = data.X.shape[0], projected.shape
    inverse = 1.0 / (e + alpha)
    coef = vectors @ (inverse[:, None] * projected)
    level = y_mean - z_mean @ coef
    errors = data.Y - left_out
    if seen is not None:
        errors[~seen] = 0.0  # no model has seen them
    coefs, intercepts = np.empty((n, m, k)), np.empty((n, k))

    def leave_out(block, Z):
        steps = ((Z - z_mean) @ vectors * inverse) @ vectors.T
        coefs[block] = coef - steps[:, :, None] * errors[block][:, None]
        shift = bool(fit_intercept) / total.weight_sum - steps @ z_mean
        intercepts[block] = level - shift[:, None] * errors[block] + data.offset

    each_block(leave_out, data.feature_map, data.X)
    return coefs, intercepts, left_out + data.offset


# -- sources of rows -------------------------------------------------------------------


def paths_and_scores_of_source(
    criterion: Any, coded: Callable, alphas: np.ndarray, score: Callable, scale: bool
) -> tuple[list[FoldPath], LeftOutScores]:
    """Models of the folds of a source, and the scores of the rows left out.

    Parameters
    ----------
    criterion : FoldsOfSource
    coded : callable
        ``coded(y)`` are targets as numbers, shape (n_rows, k).
    alphas, score, scale
        See `paths_and_scores`.

    Returns
    -------
    paths : list of FoldPath
    scores : LeftOutScores
        Rounded up by less than a thousandth, so that their number is bounded.

    Notes
    -----
    One pass, and with ``scale`` one before it.
    """
    models = list(_models(criterion, alphas, criterion.offset))
    paths = [path for _, path in models]
    options = {"coded": coded, "seen": criterion.seen}
    if scale:
        sums = criterion.passes.reduce(
            NoneType, functools.partial(_add_moments, paths=paths, **options), added
        )
        paths = [
            with_scale(path, split.train, own, alphas)
            for (split, path), own in zip(models, sums, strict=True)
        ]
    n_scores = len(alphas) if score is absolute_scores else 1
    scores = criterion.passes.reduce(
        functools.partial(_no_scores, n_scores, len(paths)),
        functools.partial(_add_scores, paths=paths, score=score, **options),
        merge_scores,
    )
    return paths, scores


def _no_scores(n_targets, n_folds):
    """Scores of no rows."""
    return left_out_scores(np.zeros((0, n_targets)), np.zeros(0, int), n_folds)


def _add_scores(total, rows, paths, score, coded, seen):
    """Put the scores of rows by the models of their folds to a total."""
    Y, n_folds = coded(rows.y), len(paths)
    folds = np.full(len(Y), -1)
    found = np.zeros((len(Y), len(total.starts[1:]) // n_folds))
    for f, (index, path) in enumerate(
        zip(members(rows, n_folds, seen)[:-1], paths, strict=True)
    ):
        folds[index] = f
        decisions = path.decisions(rows.X, index)
        found[index] = score(decisions, Y[index], path.floor)
    own = left_out_scores(rounded_up(found), folds, n_folds, rows.sample_weight)
    return merge_scores(total, own)


def _add_moments(total, rows, paths, coded, seen):
    """Add the `residual_moments` of the rows that each fold leaves in."""
    Y = coded(rows.y)
    own = members(rows, len(paths), seen)
    parts = []
    for f, path in enumerate(paths):
        others = np.concatenate([index for g, index in enumerate(own) if g != f])
        parts.append(residual_moments(path, rows.X, Y, rows.sample_weight, others))
    return added(total, parts)
