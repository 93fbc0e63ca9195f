r"""From candidate frequencies and their scores to the frequencies of a feature map.

A selector draws a pool of ``l`` candidates, scores them with the data and keeps ``s``
of them. Kept frequency ``i`` carries the importance weight :math:`p / q`, so that the
kernel of the kept ones is an unbiased estimate of the pool's,

.. math:: \mathrm E\, \frac1s \sum_i \frac{p(w_i)}{q(w_i)} \cos w_i^\top (x - x')
          = \frac1l \sum_{j=1}^l \cos w_j^\top (x - x').

Rules that choose another kernel than the pool's say so: `EERF` keeps the best without
weights, `KernelAlignment` learns the probabilities of the candidates, `Compression`
approximates the pool's kernel by a few of them.
"""

import numbers
from typing import NamedTuple

import numpy as np
from sklearn.base import BaseEstimator

from surff.backend import positive
from surff.selection.resampling import RESAMPLERS

__all__ = [
    "Selection",
    "n_candidates",
]


class Selection(NamedTuple):
    """Frequencies kept and their importance weights p/q."""

    frequencies: np.ndarray  # (n_frequencies, n_features)
    importance_weights: np.ndarray  # (n_frequencies,)


class _Selector(BaseEstimator):
    """Draw a pool, choose among it; subclasses give `_check` and `_choose`."""

    @property
    def needs_rows(self):
        """Whether the choice needs rows themselves and not only sums over them."""
        sample = getattr(self, "n_rows", None), getattr(self, "n_pairs", None)
        return sample != (None, None)

    def select(self, draw, X, Y, n_frequencies, rng, sample_weight=None):
        """Choose frequencies for the data.

        Parameters
        ----------
        draw : callable
            ``draw(n)`` returns ``n`` candidate frequencies, shape (n, n_features).
        X : ndarray, CSR matrix or WorkerRows of shape (n_samples, n_features)
            Data; `surff.streaming.WorkerRows` only without ``needs_rows``.
        Y : ndarray of shape (n_samples, n_targets) or None
            Targets; labels are coded -1, 1 by the caller.
        n_frequencies : int
            Frequencies to keep.
        rng : numpy.random.Generator
            Samples rows, for the rules that do, and re-samples the pool.
        sample_weight : ndarray of shape (n_samples,), optional
            Row weights.

        Returns
        -------
        Selection
        """
        self._check()
        pool = draw(n_candidates(self.n_candidates, n_frequencies))
        indices, weights = self._choose(pool, X, Y, n_frequencies, rng, sample_weight)
        return Selection(pool[indices], weights)


class _Scoring(_Selector):
    """Score the pool, keep by the scores; subclasses give `scores` and `_keep`."""

    def _choose(self, pool, X, Y, n_frequencies, rng, sample_weight):
        scores = self.scores(pool, X, Y, sample_weight, rng)
        total = scores.sum()
        if not 0 < total < np.inf:
            raise ValueError(
                f"{type(self).__name__} cannot rank the candidates: their scores sum "
                f"to {total}; y is zero in every row, alpha is far too large or "
                "the data overflow."
            )
        return self._keep(scores / total, n_frequencies, rng)


class _Resampling(_Scoring):
    """Keep by one of `RESAMPLERS`, the scores as probabilities."""

    def _check(self):
        _check_name("resample", self.resample, RESAMPLERS)

    def _keep(self, probabilities, n_frequencies, rng):
        return RESAMPLERS[self.resample](probabilities, n_frequencies, rng)


def _check_name(argument, value, names):
    """Raise for a name that is not among ``names``."""
    if value not in names:
        raise ValueError(f"{argument} must be one of {sorted(names)}, got {value!r}.")


def _rows_or_none(argument, value):
    """Raise for a number of rows or pairs that is neither None nor an int >= 1."""
    is_int = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    if value is not None and not (is_int and value >= 1):
        raise ValueError(f"{argument} must be None or an int >= 1, got {value!r}.")


def n_candidates(value, n_frequencies):
    """Size of the pool: an int as it is, a float as a multiple of the frequencies."""
    if isinstance(value, numbers.Integral) and not isinstance(value, bool):
        size = int(value)
    else:
        size = round(positive("n_candidates", value) * n_frequencies)
    if size < n_frequencies:
        raise ValueError(
            f"n_candidates must give at least the {n_frequencies} frequencies to keep, "
            f"got {value!r} = {size} candidates."
        )
    return size
