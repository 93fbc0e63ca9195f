"""What an adaptation is: frequencies in, as many frequencies out, and perhaps a warp.

To bring your own, derive from `Adaptation` and write `Adaptation.adapt`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator

from surff.backend import Array, finite_array

__all__ = ["Adaptation", "Adapted", "checked_adaptation"]


class Adapted(NamedTuple):
    """Frequencies that an adaptation has moved, and a warp of the columns, if any."""

    frequencies: np.ndarray  # (n_frequencies, n_features)
    warp: np.ndarray | None = None  # (2, n_features)


class Adaptation(BaseEstimator, ABC):
    """Abstract class of what ``adapt=`` takes.

    A subclass writes `adapt`. The class attributes say what it needs; leave them out
    where the default is right. An object that has a method ``adapt`` and derives from
    something else is taken as well, with the same defaults.

    Attributes
    ----------
    needs_target : bool, default=True
        Whether `adapt` reads ``Y``. With False, features are fitted without ``y``, too,
        and ``Y`` may be None.
    takes_arrays : bool, default=False
        Whether ``X`` may be an array of another library than NumPy, such as PyTorch.

    Examples
    --------
    >>> import numpy as np
    >>> from surff import FourierFeatures
    >>> from surff.adaptation import Adaptation, Adapted
    >>> class Halved(Adaptation):
    ...     needs_target = False
    ...     def adapt(self, frequencies, X, Y, rng, sample_weight=None):
    ...         return Adapted(0.5 * frequencies)
    >>> X = np.random.default_rng(0).normal(size=(50, 2))
    >>> halved = FourierFeatures(8, adapt=Halved(), random_state=0).fit(X)
    >>> drawn = FourierFeatures(8, random_state=0).fit(X)
    >>> np.array_equal(halved.frequencies_, 0.5 * drawn.frequencies_)
    True
    """

    needs_target = True
    takes_arrays = False

    @abstractmethod
    def adapt(
        self,
        frequencies: np.ndarray,
        X: Array,
        Y: Array,
        rng: np.random.Generator,
        sample_weight: np.ndarray | None = None,
    ) -> Adapted:
        """Move frequencies to where the data want them.

        Parameters
        ----------
        frequencies : ndarray of shape (n_frequencies, n_features)
            Where to start, radians per unit of ``X``; not to be written to.
        X : array or CSR matrix of shape (n_samples, n_features)
            Data.
        Y : ndarray of shape (n_samples, n_targets) or None
            Targets; labels are coded -1, 1 by the caller.
        rng : numpy.random.Generator
            Source of all randomness, such as which rows are held out.
        sample_weight : ndarray of shape (n_samples,), optional
            Row weights, >= 0.

        Returns
        -------
        Adapted
            As many frequencies, finite, in the dtype of ``frequencies``; and a warp of
            the columns (`surff.kernels.warp`) or None.
        """


def checked_adaptation(
    adapted: tuple[npt.ArrayLike, npt.ArrayLike | None],
    n_frequencies: int,
    n_features: int,
) -> Adapted:
    """Check what an adaptation has returned.

    Parameters
    ----------
    adapted : tuple of an array and an array or None
        Frequencies and warp.
    n_frequencies : int
        Frequencies that were given.
    n_features : int
        Columns of the data.

    Returns
    -------
    Adapted

    Raises
    ------
    TypeError
        If it is no pair, or not of real numbers.
    ValueError
        If a shape is wrong, a value is not finite or a rate of the warp is not
        positive.
    """
    if not isinstance(adapted, tuple) or len(adapted) != 2:
        raise TypeError(
            "adapt= must return a pair Adapted(frequencies, warp), the warp an array "
            f"or None, got {adapted!r}."
        )
    frequencies, warp = adapted
    shape = (n_frequencies, n_features)
    frequencies = finite_array("adapt", "frequencies", frequencies, shape)
    if warp is not None:
        warp = finite_array("adapt", "centres and rates", warp, (2, n_features))
        if warp[1].min() <= 0:
            raise ValueError(
                "adapt= must return a warp of rates > 0, its second row, got "
                f"{warp[1].min():.3g}."
            )
    return Adapted(frequencies, warp)
