r"""Residual surrogate leverage: frequencies chosen for what is not yet fitted.

The surrogate leverage of a candidate is :math:`|z_w^* y|^2`: how much of the target it
explains alone. Frequencies that explain the same part all score high together. Here the
target is replaced by the residual :math:`r_t` of the ridge fit to the frequencies that
the stages before have kept,

.. math:: |z_w^* r_t|^2, \qquad
          r_t = y - b_t - Z_t (Z_t^\top Z_t + \alpha I)^{-1} Z_t^\top (y - b_t),

and a stage keeps the best few of candidates that no other stage has seen. Up to the
scale of the features it is the gradient of the squared error with respect to the
coefficients of the candidate, so the stages are a greedy pursuit in blocks, with a
refit.
"""

from __future__ import annotations

import numbers
from collections.abc import Callable
from typing import Any

import numpy as np

from surff.backend import Array, feature_blocks, map_slices, positive, rows_of
from surff.kernels import FourierMap, fourier_moments
from surff.linear import (
    SingularError,
    accumulate,
    extend,
    gcv_errors,
    relative_grid,
    solve,
)
from surff.selection.base import Selection, Selector, n_candidates
from surff.selection.leverage import surrogate_leverage_scores
from surff.selection.resampling import without_replacement

__all__ = [
    "ResidualLeverage",
    "residual_frequencies",
    "residual_moments",
]

#: Decades that ``alpha="gcv"`` tries, relative to the mean eigenvalue of the Gram
#: matrix: below, float32 data are rounding; above, nothing is fitted.
GCV_DECADES = np.arange(-8.0, 2.5, 0.5)


def residual_moments(
    X: Array,
    Y: np.ndarray,
    feature_map: Any,
    coef: np.ndarray,
    intercept: np.ndarray,
    pool: FourierMap,
    sample_weight: np.ndarray | None = None,
) -> np.ndarray:
    r"""Moments :math:`Z_{\mathrm{pool}}^\top W (Y - b - Z \beta)`, in one pass.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n_samples, n_features)
        Data.
    Y : ndarray of shape (n_samples, n_targets)
        Targets.
    feature_map : object with ``n_components``, ``dtype`` and ``(X, out=None) -> Z``
        Map of the fit.
    coef : ndarray of shape (m, n_targets)
        Its coefficients :math:`\beta`.
    intercept : ndarray of shape (n_targets,)
        Its intercepts b.
    pool : FourierMap
        Map of the candidates, l frequencies.
    sample_weight : ndarray of shape (n_samples,), optional
        Row weights W.

    Returns
    -------
    moments : ndarray of shape (2 * l, n_targets), float64

    Notes
    -----
    ``O(n (m + l) (d + n_targets))`` time. A block of features of either map is held;
    neither is stored, and no residual outlives its block.
    """
    flat = coef.astype(feature_map.dtype, copy=False)

    def moments_of(part):
        moments = np.zeros((pool.n_components, Y.shape[1]))
        for index, Z in feature_blocks(feature_map, X, part=part):
            residual = Y[index] - intercept - Z @ flat
            if sample_weight is not None:
                residual *= sample_weight[index, None]
            residual = np.ascontiguousarray(residual, dtype=np.float64)
            moments += pool.moments(rows_of(X, index), residual)
        return moments

    return sum(map_slices(moments_of, X.shape[0]))


def residual_frequencies(
    pools: list[np.ndarray],
    shares: list[int],
    keep: Callable[[np.ndarray, int], np.ndarray],
    X: Array,
    Y: np.ndarray,
    sample_weight: np.ndarray | None = None,
    *,
    alpha: float | str = 1e-2,
    fit_intercept: bool = True,
) -> np.ndarray:
    r"""Frequencies kept in stages, each for what the stages before it leave unfitted.

    Parameters
    ----------
    pools : list of ndarray of shape (l_t, n_features)
        Candidates of each stage.
    shares : list of int
        Frequencies that each stage keeps.
    keep : callable
        ``keep(scores, share)`` returns the indices of ``share`` candidates.
    X : ndarray or CSR matrix of shape (n_samples, n_features)
        Data.
    Y : ndarray of shape (n_samples, n_targets)
        Targets; their scores add up.
    sample_weight : ndarray of shape (n_samples,), optional
        Row weights: weight w counts as the row repeated w times.
    alpha : float or "gcv", default=1e-2
        Regularisation of the fits between stages, relative to the mean eigenvalue of
        their Gram matrix; "gcv" takes the one with the least generalised
        cross-validation error, of `GCV_DECADES`.
    fit_intercept : bool, default=True
        Whether the fits have an intercept, and the first stage the mean taken out.

    Returns
    -------
    frequencies : ndarray of shape (sum(shares), n_features)
        In the order of the stages; within a stage as ``keep`` gives them.

    Raises
    ------
    ValueError
        If scores are not finite.
    SingularError
        If alpha is too small to solve a fit.

    Notes
    -----
    With l candidates and s frequencies in T stages ``O(n l d)`` for the scores,
    ``O(n s (T d + s))`` for the fits, whose Gram matrices are extended by the new
    columns alone, and ``O(T s^3)`` to solve them. Memory ``O(s^2 + l d)`` besides a
    block.
    """
    weight_sum = X.shape[0] if sample_weight is None else sample_weight.sum()
    kept, equations = pools[0][:0], None
    for stage, (pool, share) in enumerate(zip(pools, shares, strict=True)):
        if stage == 0:
            residual = Y
            if fit_intercept:
                residual = Y - np.average(Y, axis=0, weights=sample_weight)
            if sample_weight is not None:
                residual = residual * sample_weight[:, None]
            moments = fourier_moments(X, pool, residual)
        else:
            feature_map = unit_map(kept)
            if stage == 1:
                equations = accumulate(feature_map, X, Y, sample_weight)
            else:
                new = np.tile(np.arange(len(kept)) >= len(kept) - shares[stage - 1], 2)
                equations = extend(equations, feature_map, new, X, Y, sample_weight)
            coef, intercept = stage_fit(equations, alpha, fit_intercept)
            moments = residual_moments(
                X, Y, feature_map, coef, intercept, FourierMap(pool), sample_weight
            )
        scores = surrogate_leverage_scores(moments, weight_sum)
        if not np.isfinite(scores).all():
            raise ValueError(
                "the residual scores of the candidates are not finite: the data or "
                "the targets overflow."
            )
        kept = np.concatenate([kept, pool[keep(scores, share)]])
    return kept


def unit_map(frequencies):
    """Plain cosines and sines: columns that do not change when others join them."""
    s = len(frequencies)
    return FourierMap(frequencies, np.full(s, np.sqrt(s), frequencies.dtype))


def stage_fit(equations, alpha, fit_intercept):
    """Coefficients and intercepts of the fit between two stages."""
    by_gcv = isinstance(alpha, str)
    decades = GCV_DECADES if by_gcv else [np.log10(alpha)]
    alphas = relative_grid(equations, fit_intercept, decades)
    best = 0
    if by_gcv:
        errors = gcv_errors(equations, alphas, fit_intercept).sum(axis=1)
        best = len(alphas) - 1 - np.argmin(errors[::-1])  # a tie goes to the larger
    # GCV is from eigenvalues, which single precision may leave below zero.
    solver = "eigh" if by_gcv else "cholesky"
    try:
        return solve(equations.centred(fit_intercept), alphas[best], solver)
    except SingularError:
        raise SingularError(
            "Z^T Z + alpha I of the fit between stages is singular to working "
            f"precision; increase alpha={alpha:.3g}, which is relative to the mean "
            "eigenvalue."
        ) from None


class ResidualLeverage(Selector):
    r"""Select frequencies in stages, each for what the stages before it leave unfitted.

    Stage t scores fresh candidates by :math:`|\sum_j r_j \exp(-\mathrm i\,
    w_i^\top x_j)|^2`, the surrogate leverage with the residual r of the ridge fit to
    the frequencies kept so far in the place of y, and keeps its share of them. Uses X
    and y; several targets add up.

    Parameters
    ----------
    n_stages : int, default=8
        Stages T, >= 1; at most one per frequency. With one stage the only residual is
        y less its mean.
    n_candidates : int or float, default=64.0
        Candidates l of all stages together: a number, or a multiple of the frequencies
        kept. The time of the scores grows with it, and so does the accuracy.
    resample : {"top", "without_replacement"}, default="top"
        Keep the candidates with the largest scores, or draw them by their scores.
    alpha : float or "gcv", default=1e-2
        Regularisation of the fits between stages, > 0, as a multiple of the mean
        eigenvalue of their Gram matrix; "gcv" chooses by generalised cross-validation.
    fit_intercept : bool, default=True
        Whether these fits have an intercept; the first stage then scores y less its
        mean.

    Notes
    -----
    ``O(n l d + n s (T d + s) + T s^3)`` time and ``O(s^2 + l d)`` memory besides a
    block of features: Gram matrices are extended by the new columns alone, and neither
    features nor residuals are stored.

    The importance weights are ones: the map's kernel is not an estimate of the pool's
    but one that suits the target. Where the residual vanishes, candidates are kept as
    they were drawn.

    The choice adapts to the targets it is fitted to: judge gamma and alpha by folds,
    for each of which `KernelRidgeClassifier` selects again, not by ``cv="gcv"`` or
    ``"loo"``, which tend to a gamma that is too large.

    See Also
    --------
    surff.selection.residual_frequencies : The stages as a function.
    EERF : One stage, y not centred.

    Examples
    --------
    >>> import numpy as np
    >>> from surff import FourierFeatures, ResidualLeverage
    >>> X = np.random.default_rng(0).uniform(-4, 4, size=(500, 2))
    >>> y = 2 * np.cos(3 * X[:, 0]) + np.cos(2 * X[:, 1])
    >>> select = ResidualLeverage(n_stages=2, n_candidates=4000)
    >>> features = FourierFeatures(4, gamma=2.0, select=select, random_state=0)
    >>> abs(features.fit(X, y).frequencies_).round()
    array([[3., 0.],
           [0., 2.]])
    """

    def __init__(
        self,
        n_stages: int = 8,
        n_candidates: int | float = 64.0,
        *,
        resample: str = "top",
        alpha: float | str = 1e-2,
        fit_intercept: bool = True,
    ):
        self.n_stages = n_stages
        self.n_candidates = n_candidates
        self.resample = resample
        self.alpha = alpha
        self.fit_intercept = fit_intercept

    def select(
        self,
        draw: Callable[[int], np.ndarray],
        X: Array,
        Y: Array,
        n_frequencies: int,
        rng: np.random.Generator,
        sample_weight: np.ndarray | None = None,
    ) -> Selection:
        """Choose frequencies for the data.

        Parameters
        ----------
        draw : callable
            ``draw(n)`` returns ``n`` candidate frequencies, shape (n, n_features). It
            is called once: the stages share its candidates out among them.
        X : ndarray or CSR matrix of shape (n_samples, n_features)
            Data.
        Y : ndarray of shape (n_samples, n_targets)
            Targets; labels are coded -1, 1 by the caller.
        n_frequencies : int
            Frequencies to keep.
        rng : numpy.random.Generator
            Draws by the scores with ``resample="without_replacement"``.
        sample_weight : ndarray of shape (n_samples,), optional
            Row weights.

        Returns
        -------
        Selection
            Frequencies in the order of the stages.
        """
        self._check()
        n_stages = min(self.n_stages, n_frequencies)
        # One draw: a second quasi-Monte Carlo draw would repeat the first points.
        pool = draw(n_candidates(self.n_candidates, n_frequencies))
        pools = np.array_split(pool, n_stages)
        shares = [len(part) for part in np.array_split(range(n_frequencies), n_stages)]

        def keep(scores, share):
            if self.resample == "top" or not scores.any():
                return np.argsort(-scores, kind="stable")[:share]
            return without_replacement(scores / scores.sum(), share, rng)[0]

        # What overflows is found in the scores.
        with np.errstate(over="ignore", invalid="ignore"):
            frequencies = residual_frequencies(
                pools,
                shares,
                keep,
                X,
                Y,
                sample_weight,
                alpha=self.alpha,
                fit_intercept=self.fit_intercept,
            )
        return Selection(frequencies, np.ones(n_frequencies))

    def _check(self):
        is_int = isinstance(self.n_stages, numbers.Integral)
        if not is_int or isinstance(self.n_stages, bool) or self.n_stages < 1:
            raise ValueError(f"n_stages must be an int >= 1, got {self.n_stages!r}.")
        if self.resample not in ("top", "without_replacement"):
            raise ValueError(
                "resample must be 'top' or 'without_replacement', got "
                f"{self.resample!r}."
            )
        if isinstance(self.alpha, str) and self.alpha != "gcv":
            raise ValueError(
                f"alpha must be a positive number or 'gcv', got {self.alpha!r}."
            )
        if not isinstance(self.alpha, str):
            positive("alpha", self.alpha)
