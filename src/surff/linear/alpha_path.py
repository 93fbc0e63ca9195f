r"""Choosing alpha from normal equations: k-fold, GCV, leave-one-out.

The folds' normal equations are formed once, in one pass over the data. Those of the
rows outside fold f are the total less the fold's, so the coefficients
:math:`\beta_f(\alpha)` of every alpha cost a factorisation each and no further look at
the data. The squared error on the fold follows from its own sums,

.. math:: \sum_i w_i (y_i - b - z_i^\top \beta)^2
          = \tilde y^\top \tilde y - 2 \beta^\top \tilde c_f + \beta^\top G_f \beta

with the intercept b taken out of y; any other score needs the held-out predictions, one
more streaming pass for all alphas together.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy import linalg
from scipy.linalg import blas

from surff.backend import (
    Array,
    asarray_like,
    each_block,
    folded,
    map_slices,
    n_threads,
    one_thread,
    stage,
    to_numpy,
)
from surff.linear.normal_equations import (
    PARALLEL_COLUMNS,
    NormalEquations,
    accumulate,
)
from surff.linear.solvers import intercept, solver_of

__all__ = [
    "AlphaPath",
    "AutoGrid",
    "Split",
    "best_index",
    "climb",
    "coefficient_path",
    "coefficient_paths",
    "each_split",
    "gcv_errors",
    "grid_unit",
    "grown_path",
    "held_out_decisions",
    "leave_one_out_decisions",
    "relative_grid",
    "rest_of",
    "spectrum",
    "splits_equations",
    "squared_errors",
]


#: Fewest columns for which the systems of a split are worth a thread of their own: with
#: fewer, threads wait for the interpreter's lock longer than they compute.
SHARED_COLUMNS = 512

#: Splits with fewer columns that a thread solves without a look at its limits between.
TOGETHER_SPLITS = 8


class AlphaPath(NamedTuple):
    """Scores of a grid of alphas, ascending in alpha, larger is better."""

    alphas: np.ndarray  # (n_alphas,)
    scores: np.ndarray  # (n_alphas, n_splits), nan where the system was singular;
    # (n_alphas, n_splits, n_targets) with one alpha per target


class AutoGrid(NamedTuple):
    """Grid of ``alphas="auto"``, in decades relative to a criterion's own unit."""

    decades: np.ndarray  # the first alphas, ascending
    limits: tuple[float, float]  # decades beyond which the grid does not grow
    step: np.ndarray  # decades that are added at an end, ascending, > 0


class Split:
    """Normal equations of the two sides of a cross-validation split.

    Parameters
    ----------
    train : NormalEquations, or callable
        Those of the training side, or what forms them when they are asked for.
    test : NormalEquations
        Those of the rows held out.
    test_rows : ndarray of int, or None
        The rows held out; None of a source.
    feature_map : object
        The map of the training side.
    """

    def __init__(
        self,
        train: NormalEquations | Callable[[], NormalEquations],
        test: NormalEquations,
        test_rows: np.ndarray | None,
        feature_map: Any,
    ) -> None:
        self._train, self.test = train, test
        self.test_rows, self.feature_map = test_rows, feature_map

    @functools.cached_property
    def train(self) -> NormalEquations:
        """Normal equations of the training side."""
        return self._train() if callable(self._train) else self._train

    @property
    def n_unknowns(self) -> int:
        """Size of the system of equations of the training side."""
        return len(self.test.moments)


def splits_equations(
    feature_map: Any,
    X: Array,
    Y: np.ndarray | None,
    splits: Any,
    sample_weight: Any = None,
    refit: Callable | None = None,
) -> tuple[NormalEquations, Callable]:
    """Normal equations of all rows and of each split.

    Parameters
    ----------
    feature_map, X, Y, sample_weight
        See `surff.linear.accumulate`.
    splits : list of (train_rows, test_rows)
        From a scikit-learn splitter.
    refit : callable, optional
        ``refit(train_rows)`` returns the feature map of a split, for features that look
        at the targets: those of a split must not have seen what it holds out. By
        default ``feature_map`` serves them all.

    Returns
    -------
    total : NormalEquations
        Of all rows.
    equations : callable
        ``equations()`` iterates over the `Split` of each of ``splits``.

    Notes
    -----
    Where every row is held out exactly once (k-fold splitters) one pass forms the sums
    of each fold, ``n_splits`` matrices of m by m are held, and training sides are
    differences. Other splitters, and ``refit``, cost a pass for each split and one for
    the total.
    """
    n_samples = X.shape[0]
    held_out = np.concatenate([test for _, test in splits])
    is_partition = (
        len(held_out) == n_samples
        and np.array_equal(np.sort(held_out), np.arange(n_samples))
        and all(len(train) + len(test) == n_samples for train, test in splits)
    )
    if refit is not None or not is_partition:
        total = accumulate(feature_map, X, Y, sample_weight)
        sides = []
        with stage("folds", len(splits), "folds") as progress:
            for train, test in splits:
                own = feature_map if refit is None else refit(train)
                summed = (
                    accumulate(own, X, Y, sample_weight, side) for side in (train, test)
                )
                sides.append(Split(*summed, test, own))
                progress.advance()
        return total, lambda: iter(sides)

    with stage("Gram matrix", n_samples, "rows"):
        folds = [
            accumulate(feature_map, X, Y, sample_weight, test) for _, test in splits
        ]
    total = NormalEquations(feature_map.n_components, Y.shape[1])
    for fold in folds:
        total.merge(fold)

    def equations():
        for fold, (_, test) in zip(folds, splits, strict=True):
            yield Split(
                functools.partial(rest_of, total, fold), fold, test, feature_map
            )

    return total, equations


def rest_of(total: NormalEquations, fold: NormalEquations) -> NormalEquations:
    """Normal equations of the rows that a fold leaves in."""
    return total.copy().subtract(fold)


def coefficient_path(
    equations: NormalEquations,
    alphas: Any,
    fit_intercept: bool = True,
    solver: str | Callable = "cholesky",
) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients and intercepts of every alpha.

    Returns
    -------
    coefs : ndarray of shape (m, n_alphas, k)
        nan where the system was singular.
    intercepts : ndarray of shape (n_alphas, k)
    """
    centred = equations.centred(fit_intercept)
    m, k = centred.moments.shape
    coefs = np.full((m, len(alphas), k), np.nan)
    intercepts = np.full((len(alphas), k), np.nan)
    paths = solver_of(solver)(centred.gram, centred.moments, alphas)
    for i, coef in enumerate(paths):
        if coef is not None:
            coefs[:, i] = coef
            intercepts[i] = intercept(centred, coef)
    return coefs, intercepts


def coefficient_paths(
    splits: Iterable[Split],
    alphas: Any,
    fit_intercept: bool = True,
    solver: str | Callable = "cholesky",
) -> Iterator[tuple[Split, np.ndarray, np.ndarray]]:
    """Yield every split with the `coefficient_path` of its training rows.

    Notes
    -----
    With as many columns as `PARALLEL_COLUMNS` or fewer, each thread solves the systems
    of a split of its own, on one thread; as many splits as threads are held.
    """

    def solve(split):
        return coefficient_path(split.train, alphas, fit_intercept, solver)

    return each_split(solve, splits, solver == "cholesky")


def each_split(
    solve: Callable, splits: Iterable[Any], side_by_side: bool = True
) -> Iterator[tuple[Any, np.ndarray, np.ndarray]]:
    """Yield every split with its coefficients and intercepts.

    Parameters
    ----------
    solve : callable
        ``solve(split)`` returns them.
    splits : iterable
        Each has ``n_unknowns``, the size of its systems.
    side_by_side : bool, default=True
        Whether threads may solve the systems of a split each.
    """
    splits = iter(splits)
    while group := list(itertools.islice(splits, 1)):
        minimum, size = 1, 1
        if side_by_side and group[0].n_unknowns < SHARED_COLUMNS:
            minimum = size = TOGETHER_SPLITS
        elif side_by_side and group[0].n_unknowns <= PARALLEL_COLUMNS:
            size = n_threads()
        group += itertools.islice(splits, size - 1)

        def solve_part(part, group=group):
            with one_thread() if len(group) > 1 else contextlib.nullcontext():
                return [solve(split) for split in group[part]]

        parts = map_slices(solve_part, len(group), minimum=minimum)
        paths = itertools.chain.from_iterable(parts)
        for split, path in zip(group, paths, strict=True):
            yield split, *path


def squared_errors(
    equations: NormalEquations, coefs: np.ndarray, intercepts: np.ndarray
) -> np.ndarray:
    """Sum of squared errors on the rows of ``equations``, shape (n_alphas, k).

    Parameters
    ----------
    equations : NormalEquations
        Of the held-out rows.
    coefs, intercepts
        See `coefficient_path`.
    """
    b = intercepts
    moments = equations.moments[:, None] - equations.feature_sum[:, None, None] * b
    flat = coefs.reshape(len(coefs), -1)
    product = blas.dsymm(1.0, equations.gram, flat, lower=0).reshape(coefs.shape)
    targets = (
        equations.target_square
        - 2.0 * b * equations.target_sum
        + equations.weight_sum * b**2
    )
    return targets + np.einsum("mak,mak->ak", coefs, product - 2.0 * moments)


def held_out_decisions(
    feature_map: Any,
    X: Array,
    rows: np.ndarray | None,
    coefs: np.ndarray,
    intercepts: np.ndarray,
) -> np.ndarray:
    """Predictions of every alpha for some rows, shape (n_rows, n_alphas, k).

    One streaming pass; the features of a block serve all alphas.
    """
    m, n_alphas, k = coefs.shape
    flat = asarray_like(coefs.reshape(m, -1), X, feature_map.dtype)
    feature_map, flat = folded(feature_map, flat)
    decisions = np.empty((len(rows), n_alphas * k))

    def decide(block, Z):
        decisions[block] = to_numpy(Z @ flat)[:, : n_alphas * k]

    each_block(decide, feature_map, X, rows)
    return decisions.reshape(len(rows), n_alphas, k) + intercepts


class Spectrum(NamedTuple):
    """Eigendecomposition of centred normal equations, which serves every alpha."""

    eigenvalues: np.ndarray  # (m,), >= 0
    vectors: np.ndarray  # (m, m)
    projected: np.ndarray  # (m, k), moments in the basis of the vectors
    feature_mean: np.ndarray  # (m,), that of `CentredEquations`, as the next
    target_mean: np.ndarray  # (k,)


def spectrum(equations: NormalEquations, fit_intercept: bool = True) -> Spectrum:
    """Eigendecomposition of the Gram matrix, about ``9 m^3`` operations."""
    centred = equations.centred(fit_intercept)
    eigenvalues, vectors = linalg.eigh(centred.gram, lower=False, overwrite_a=True)
    projected = vectors.T @ centred.moments
    return Spectrum(eigenvalues.clip(min=0.0), vectors, projected, *centred[2:])


def gcv_errors(
    equations: NormalEquations, alphas: Any, fit_intercept: bool = True
) -> np.ndarray:
    r"""Generalised cross-validation of every alpha, without a look at the data.

    .. math:: \mathrm{GCV}(\alpha) = \frac{\mathrm{RSS}(\alpha) / n}
              {\bigl(1 - (\mathrm{df}(\alpha) + 1) / n\bigr)^2},
              \quad \mathrm{df}(\alpha) = \sum_j \frac{e_j}{e_j + \alpha}

    with the eigenvalues e of the centred Gram matrix; the 1 stands for the intercept.

    Parameters
    ----------
    equations : NormalEquations
        Of all rows; their sum of weights is n.
    alphas : ndarray of shape (n_alphas,)
        Regularisation, > 0.
    fit_intercept : bool, default=True
        Whether the model has an intercept.

    Returns
    -------
    errors : ndarray of shape (n_alphas, k)
        infinite where df leaves no degree of freedom.

    References
    ----------
    .. [1] G. H. Golub, M. Heath, G. Wahba, "Generalized Cross-Validation as a Method
       for Choosing a Good Ridge Parameter", Technometrics 21(2), 1979.
    """
    e, _, projected, *_ = spectrum(equations, fit_intercept)
    n = equations.weight_sum
    total = equations.target_square
    if fit_intercept:
        total = total - equations.target_sum**2 / n
    shrunk = e[:, None] + np.asarray(alphas)
    # Where numbers end, at alphas of 1e-300 say, the error counts as infinite.
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        rss = total - np.einsum(
            "jk,ja->ak", projected**2, (shrunk + alphas) / shrunk**2, optimize=True
        )
        df = np.sum(e[:, None] / shrunk, axis=0) + bool(fit_intercept)
        left = np.where(df < n, 1.0 - df / n, 0.0)[:, None]
        errors = np.where(left > 0, rss.clip(min=0.0) / n / left**2, np.inf)
    return np.nan_to_num(errors, nan=np.inf, posinf=np.inf)


def leave_one_out_decisions(
    feature_map: Any,
    X: Array,
    Y: np.ndarray | None,
    equations: NormalEquations,
    alphas: Any,
    fit_intercept: bool = True,
    seen: np.ndarray | None = None,
) -> np.ndarray:
    r"""Predictions of each row by the model fitted to all the others.

    With the residual :math:`r_i` of the fit to all rows and the leverage
    :math:`h_i = z_i^\top (G + \alpha I)^{-1} z_i + 1 / n` (features centred, the last
    term for the intercept) the left-out residual is :math:`r_i / (1 - h_i)`, exactly.

    Parameters
    ----------
    feature_map, X, Y
        See `surff.linear.accumulate`.
    equations : NormalEquations
        Of all rows. A row of weight w counts as w rows, one of which is left out.
    alphas : ndarray of shape (n_alphas,)
        Regularisation, > 0.
    fit_intercept : bool, default=True
        Whether the model has an intercept.
    seen : ndarray of bool, shape (n_samples,), optional
        Rows that ``equations`` hold, all by default; there is nothing to leave out of
        the prediction of another.

    Returns
    -------
    decisions : ndarray of shape (n_samples, n_alphas, k)
        nan where a row's leverage is 1 to rounding.

    Notes
    -----
    One eigendecomposition and one streaming pass of ``O(n m^2)``.

    References
    ----------
    .. [1] D. M. Allen, "The Relationship between Variable Selection and Data
       Augmentation and a Method for Prediction", Technometrics 16(1), 1974.
    """
    e, vectors, projected, z_mean, y_mean = spectrum(equations, fit_intercept)
    n = equations.weight_sum
    inverse = 1.0 / (e[:, None] + np.asarray(alphas))
    m, k = projected.shape
    coefs = (inverse[:, :, None] * projected[:, None]).reshape(m, -1)
    decisions = np.empty((X.shape[0], len(alphas), k))

    def decide(block, Z):
        rotated = (Z - z_mean) @ vectors
        fitted = (rotated @ coefs).reshape(len(Z), -1, k) + y_mean
        leverage = np.square(rotated) @ inverse + bool(fit_intercept) / n
        left = 1.0 - leverage
        if seen is not None:
            left[~seen[block]] = 1.0
        left[left <= len(e) * np.finfo(np.float64).eps] = np.nan  # rounding alone
        left_out = (Y[block, None] - fitted) / left[:, :, None]
        decisions[block] = Y[block, None] - left_out

    each_block(decide, feature_map, X)
    return decisions


def relative_grid(
    equations: NormalEquations, fit_intercept: bool, decades: np.ndarray
) -> np.ndarray:
    """Alphas at ``10**decades`` times the mean eigenvalue of the Gram matrix."""
    centred = equations.centred(fit_intercept)
    mean = np.trace(centred.gram) / len(centred.gram)
    return grid_unit(mean) * 10.0 ** np.asarray(decades, dtype=float)


def grid_unit(mean: float) -> float:
    """Unit of an automatic grid: the mean eigenvalue, or 1 if no alpha can be near it.

    Features that are constant to the last bit have a mean of 0, and far landmarks one
    of 1e-320, whose grid would reach 0.
    """
    return float(mean) if mean > 1e-200 else 1.0


def best_index(path: Any) -> Any:
    """Index of the best mean score; a tie goes to the larger alpha.

    Parameters
    ----------
    path : AlphaPath

    Returns
    -------
    index : int, or ndarray of int of shape (n_targets,) for scores of each target

    Raises
    ------
    ValueError
        If no alpha could be scored.
    """
    means = path.scores.mean(axis=1)
    if np.isnan(means).all():
        raise ValueError(
            "no alpha of the grid could be scored: Z^T Z + alpha I is singular to "
            f"working precision for each of alphas={path.alphas.tolist()}; add larger "
            "alphas."
        )
    means = np.where(np.isnan(means), -np.inf, means)
    best = means.max(axis=0)
    # Scores that differ by rounding alone are equal, and the larger alpha is chosen.
    tied = means >= best - 32 * np.finfo(np.float64).eps * np.abs(best)
    index = len(means) - 1 - np.argmax(tied[::-1], axis=0)
    return int(index) if np.ndim(index) == 0 else index


def grown_path(criterion: Any, score: Callable) -> AlphaPath:
    """Scores of the automatic grid, which grows while the best alpha lies at an end.

    Parameters
    ----------
    criterion : surff.linear.Criterion
        Its ``auto_grid`` says where to begin and how to go on.
    score : callable
        ``score(alphas)`` returns the scores of ascending alphas as `AlphaPath` holds
        them.

    Returns
    -------
    path : AlphaPath

    Raises
    ------
    ValueError
        If no alpha could be scored.
    """
    decades = criterion.auto_grid.decades
    alphas = criterion.alphas_at(decades)
    path = AlphaPath(alphas, score(alphas))
    while True:
        best = best_index(path)
        new = _further_decades(path, best, decades, criterion.auto_grid)
        if new is None:
            alpha = criterion.largest_singular(path.alphas[best])
            if alpha is None:
                return path
            path.scores[path.alphas <= alpha] = np.nan
            continue
        alphas = criterion.alphas_at(new)
        decades = np.concatenate([decades, new])
        order = np.argsort(decades)
        decades = decades[order]
        path = AlphaPath(
            np.concatenate([path.alphas, alphas])[order],
            np.concatenate([path.scores, score(alphas)])[order],
        )


def _further_decades(path, best, decades, grid):
    """Decades to add at the end where the best alpha lies; None if it lies inside."""
    missing = np.isnan(path.scores).reshape(len(decades), -1).any(axis=1)
    lowest, highest = grid.limits
    if not missing[0] and np.any(best == 0) and decades[0] > lowest:
        return decades[0] - grid.step[::-1]
    if np.any(best == len(decades) - 1) and decades[-1] < highest:
        return decades[-1] + grid.step
    return None


def climb(
    score: Callable, start: float, factor: float = 2.0, limit: int = 20
) -> tuple[float, dict[float, float]]:
    r"""Maximise over ``start * factor**k``, uphill until both neighbours are lower.

    Parameters
    ----------
    score : callable
        Score of a value, larger is better.
    start : float
        First value, > 0.
    factor : float, default=2.0
        Step.
    limit : int, default=20
        Largest \|k\|.

    Returns
    -------
    best : float
    scores : dict of float to float
        Scores of all values tried, ascending in the value.
    """
    scores = {}

    def at(k):
        if k not in scores:
            scores[k] = score(start * factor**k)
        return scores[k]

    k = 0
    while abs(k) < limit:
        step = max((-1, 1), key=lambda step, k=k: at(k + step))
        if at(k + step) <= at(k):
            break
        k += step
    return start * factor**k, {start * factor**k: scores[k] for k in sorted(scores)}
