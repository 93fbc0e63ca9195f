r"""What a selector is: candidate frequencies scored with the data, some of them kept.

A selector draws a pool of ``l`` candidates, scores them with the data and keeps ``s``
of them. Kept frequency ``i`` carries the importance weight :math:`p / q`, so that the
kernel of the kept ones is an unbiased estimate of the pool's,

.. math:: \mathrm E\, \frac1s \sum_i \frac{p(w_i)}{q(w_i)} \cos w_i^\top (x - x')
          = \frac1l \sum_{j=1}^l \cos w_j^\top (x - x').

Rules that choose another kernel than the pool's say so: `EERF` keeps the best without
weights, `KernelAlignment` learns the probabilities of the candidates, `Compression`
approximates the pool's kernel by a few of them.

To bring your own, derive from `Selector` and write `Selector.select`, or from
`PoolSelector` and its subclasses, which leave only the rule itself to write.
"""

from __future__ import annotations

import numbers
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator

from surff.backend import Array, finite_array, positive
from surff.selection.resampling import RESAMPLERS

__all__ = [
    "PoolSelector",
    "ResamplingSelector",
    "ScoreSelector",
    "Selection",
    "Selector",
    "check_name",
    "check_sample_size",
    "checked_selection",
    "n_candidates",
]


class Selection(NamedTuple):
    """Frequencies kept and their importance weights p/q."""

    frequencies: np.ndarray  # (n_frequencies, n_features)
    importance_weights: np.ndarray  # (n_frequencies,)


class Selector(BaseEstimator, ABC):
    """Abstract class of what ``select=`` takes.

    A subclass writes `select`. The class attributes say what it needs; leave them out
    where the default is right. An object that has a method ``select`` and derives from
    something else is taken as well, with the same defaults.

    Attributes
    ----------
    needs_target : bool, default=True
        Whether `select` reads ``Y``. With False, features are fitted without ``y``,
        too, and ``Y`` may be None.
    needs_rows : bool, default=True
        Whether `select` reads rows of ``X``. With False it reads only sums over rows,
        by `surff.backend.summed`, and ``X`` may be a `surff.streaming.WorkerRows`,
        whose rows are on other machines.
    takes_arrays : bool, default=False
        Whether ``X`` may be an array of another library than NumPy, such as PyTorch.

    Examples
    --------
    >>> import numpy as np
    >>> from surff import FourierFeatures
    >>> from surff.selection import Selection, Selector
    >>> class Shortest(Selector):
    ...     needs_target = False
    ...     def select(self, draw, X, Y, n_frequencies, rng, sample_weight=None):
    ...         pool = draw(4 * n_frequencies)
    ...         order = np.argsort(np.linalg.norm(pool, axis=1))
    ...         kept = pool[order[:n_frequencies]]
    ...         return Selection(kept, np.ones(n_frequencies))
    >>> X = np.random.default_rng(0).normal(size=(50, 2))
    >>> short = FourierFeatures(8, select=Shortest(), random_state=0).fit(X)
    >>> drawn = FourierFeatures(8, random_state=0).fit(X)
    >>> bool(abs(short.frequencies_).max() < abs(drawn.frequencies_).max())
    True
    """

    needs_target = True
    needs_rows = True
    takes_arrays = False

    @abstractmethod
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
            ``draw(n)`` returns ``n`` candidate frequencies, shape (n, n_features).
        X : ndarray, CSR matrix or WorkerRows of shape (n_samples, n_features)
            Data; `surff.streaming.WorkerRows` only without ``needs_rows``.
        Y : ndarray of shape (n_samples, n_targets) or None
            Targets; labels are coded -1, 1 by the caller.
        n_frequencies : int
            Frequencies to keep.
        rng : numpy.random.Generator
            Source of all randomness, such as sampled rows and re-sampled candidates.
        sample_weight : ndarray of shape (n_samples,), optional
            Row weights, >= 0.

        Returns
        -------
        Selection
            ``n_frequencies`` of them, finite; the weights are not negative.
        """


class PoolSelector(Selector):
    """Selector that draws one pool and chooses among it; subclasses write two methods.

    ``_check()`` raises for a wrong parameter. ``_choose(pool, X, Y, n_frequencies, rng,
    sample_weight)`` returns the indices of the candidates to keep and their weights.
    The size of the pool is the parameter ``n_candidates``; a parameter ``n_rows`` or
    ``n_pairs`` that is not None says that rows are sampled.
    """

    n_candidates: int | float

    @property
    def needs_rows(self) -> bool:
        """Whether the choice needs rows themselves and not only sums over them."""
        sample = getattr(self, "n_rows", None), getattr(self, "n_pairs", None)
        return sample != (None, None)

    def select(
        self,
        draw: Callable[[int], np.ndarray],
        X: Array,
        Y: Array,
        n_frequencies: int,
        rng: np.random.Generator,
        sample_weight: np.ndarray | None = None,
    ) -> Selection:
        """Choose frequencies for the data; see `Selector.select`."""
        self._check()
        pool = draw(n_candidates(self.n_candidates, n_frequencies))
        indices, weights = self._choose(pool, X, Y, n_frequencies, rng, sample_weight)
        return Selection(pool[indices], weights)

    @abstractmethod
    def _check(self): ...

    @abstractmethod
    def _choose(
        self, pool, X, Y, n_frequencies, rng, sample_weight
    ) -> tuple[np.ndarray, np.ndarray]: ...


class ScoreSelector(PoolSelector):
    """Selector that scores its pool; subclasses write `scores`, ``_keep``, ``_check``.

    ``_keep(probabilities, n_frequencies, rng)`` returns the indices of the candidates
    to keep and their weights; the probabilities are the scores, made to sum to one.
    """

    @abstractmethod
    def scores(
        self,
        pool: np.ndarray,
        X: Array,
        Y: Array,
        sample_weight: np.ndarray | None = None,
        rng: np.random.Generator | None = None,
    ) -> np.ndarray:
        """Score of each candidate of the pool, >= 0, shape (n_candidates,)."""

    @abstractmethod
    def _keep(
        self, probabilities, n_frequencies, rng
    ) -> tuple[np.ndarray, np.ndarray]: ...

    def _choose(self, pool, X, Y, n_frequencies, rng, sample_weight):
        # What overflows is found in the sum.
        with np.errstate(over="ignore", invalid="ignore"):
            scores = self.scores(pool, X, Y, sample_weight, rng)
            total = scores.sum()
        if not 0 < total < np.inf:
            raise ValueError(
                f"{type(self).__name__} cannot rank the candidates: their scores sum "
                f"to {total}; y is zero in every row, alpha is far too large, or the "
                "data overflow."
            )
        return self._keep(scores / total, n_frequencies, rng)


class ResamplingSelector(ScoreSelector):
    """Selector that keeps by one of `RESAMPLERS`; subclasses write `scores`."""

    resample: str

    def _check(self):
        check_name("resample", self.resample, RESAMPLERS)

    def _keep(self, probabilities, n_frequencies, rng):
        return RESAMPLERS[self.resample](probabilities, n_frequencies, rng)


def checked_selection(
    selection: tuple[npt.ArrayLike, npt.ArrayLike], n_frequencies: int, n_features: int
) -> Selection:
    """Check what a selector has returned.

    Parameters
    ----------
    selection : tuple of two arrays
        Frequencies and importance weights.
    n_frequencies : int
        Frequencies that were asked for.
    n_features : int
        Columns of the data.

    Returns
    -------
    Selection

    Raises
    ------
    TypeError
        If it is no pair, or not of real numbers.
    ValueError
        If a shape is wrong, a value is not finite or a weight is negative.
    """
    if not isinstance(selection, tuple) or len(selection) != 2:
        raise TypeError(
            "select= must return a pair Selection(frequencies, importance_weights), "
            f"got {selection!r}."
        )
    frequencies, weights = selection
    shape = (n_frequencies, n_features)
    frequencies = finite_array("select", "frequencies", frequencies, shape)
    weights = finite_array("select", "importance weights", weights, shape[:1])
    if weights.min() < 0:
        raise ValueError(
            f"select= must return importance weights >= 0, got {weights.min():.3g}."
        )
    return Selection(frequencies, weights)


def check_name(argument: str, value: object, names: Collection[str]) -> None:
    """Raise a ValueError for a name that is not among ``names``."""
    if value not in names:
        raise ValueError(f"{argument} must be one of {sorted(names)}, got {value!r}.")


def check_sample_size(argument: str, value: Any) -> None:
    """Raise for a number of rows or pairs that is neither None nor an int >= 1."""
    is_int = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    if value is not None and not (is_int and value >= 1):
        raise ValueError(f"{argument} must be None or an int >= 1, got {value!r}.")


def n_candidates(value: int | float, n_frequencies: int) -> int:
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
