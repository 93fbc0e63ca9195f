r"""Choosing alpha by k-fold cross-validation from normal equations.

The folds' normal equations are formed once, in one pass over the data. Those of the
rows outside fold f are the total less the fold's, so the coefficients
:math:`\beta_f(\alpha)` of every alpha cost a factorisation each and no further look at
the data. The squared error on the fold follows from its own sums,

.. math:: \sum_i w_i (y_i - b - z_i^\top \beta)^2
          = \tilde y^\top \tilde y - 2 \beta^\top \tilde c_f + \beta^\top G_f \beta

with the intercept b taken out of y; any other score needs the held-out predictions, one
more streaming pass for all alphas together.
"""

from typing import NamedTuple

import numpy as np
from scipy.linalg import blas

from surff._threads import map_slices
from surff.blocks import feature_blocks
from surff.normal_equations import NormalEquations, accumulate
from surff.solvers import SOLVERS, intercept

__all__ = [
    "AlphaPath",
    "Split",
    "best_index",
    "coefficient_path",
    "held_out_decisions",
    "relative_grid",
    "splits_equations",
    "squared_errors",
]


class AlphaPath(NamedTuple):
    """Cross-validated scores of a grid of alphas, ascending in alpha."""

    alphas: np.ndarray  # (n_alphas,)
    scores: np.ndarray  # (n_alphas, n_splits), nan where the system was singular


class Split(NamedTuple):
    """Normal equations of the two sides of a cross-validation split."""

    train: NormalEquations
    test: NormalEquations
    test_rows: np.ndarray


def splits_equations(feature_map, X, Y, splits, sample_weight=None):
    """Normal equations of all rows, and an iterable of those of each split.

    Parameters
    ----------
    feature_map, X, Y, sample_weight
        See `surff.normal_equations.accumulate`.
    splits : list of (train_rows, test_rows)
        From a scikit-learn splitter.

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
    differences. Other splitters cost a pass for each split and one for the total.
    """
    n_samples = X.shape[0]
    held_out = np.concatenate([test for _, test in splits])
    is_partition = (
        len(held_out) == n_samples
        and np.array_equal(np.sort(held_out), np.arange(n_samples))
        and all(len(train) + len(test) == n_samples for train, test in splits)
    )
    if not is_partition:
        total = accumulate(feature_map, X, Y, sample_weight)
        sides = [
            Split(
                accumulate(feature_map, X, Y, sample_weight, train),
                accumulate(feature_map, X, Y, sample_weight, test),
                test,
            )
            for train, test in splits
        ]
        return total, lambda: iter(sides)

    folds = [accumulate(feature_map, X, Y, sample_weight, test) for _, test in splits]
    total = NormalEquations(feature_map.n_components, Y.shape[1])
    for fold in folds:
        total.merge(fold)

    def equations():
        for fold, (_, test) in zip(folds, splits, strict=True):
            yield Split(total.copy().subtract(fold), fold, test)

    return total, equations


def coefficient_path(equations, alphas, fit_intercept=True, solver="cholesky"):
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
    paths = SOLVERS[solver](centred.gram, centred.moments, alphas)
    for i, coef in enumerate(paths):
        if coef is not None:
            coefs[:, i] = coef
            intercepts[i] = intercept(centred, coef)
    return coefs, intercepts


def squared_errors(equations, coefs, intercepts):
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


def held_out_decisions(feature_map, X, rows, coefs, intercepts):
    """Predictions of every alpha for some rows, shape (n_rows, n_alphas, k).

    One streaming pass; the features of a block serve all alphas.
    """
    m, n_alphas, k = coefs.shape
    flat = np.ascontiguousarray(coefs.reshape(m, -1), dtype=feature_map.dtype)
    decisions = np.empty((len(rows), n_alphas * k))

    def decide(part):
        start = part.start
        for index, Z in feature_blocks(feature_map, X, rows, part):
            np.matmul(Z, flat, out=decisions[start : start + len(index)])
            start += len(index)

    map_slices(decide, len(rows))
    return decisions.reshape(len(rows), n_alphas, k) + intercepts


def relative_grid(equations, fit_intercept, decades):
    """Alphas at ``10**decades`` times the mean eigenvalue of the Gram matrix."""
    centred = equations.centred(fit_intercept)
    mean = np.trace(centred.gram) / len(centred.gram)
    return (mean if mean > 0 else 1.0) * 10.0 ** np.asarray(decades, dtype=float)


def best_index(path):
    """Index of the best mean score; a tie goes to the larger alpha.

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
    best = np.nanmax(means)
    return int(np.flatnonzero(means == best)[-1])
