r"""What a draw is, what it returns, and the plainest one: independent frequencies.

With weights :math:`a_i` the estimate of the kernel is
:math:`\frac1s \sum_i a_i \cos w_i^\top (x - x')`. A plain array of frequencies means
weights of one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator

__all__ = [
    "Draw",
    "MonteCarlo",
    "WeightedFrequencies",
    "checked_draw",
    "split_weights",
]


class WeightedFrequencies(NamedTuple):
    """Frequencies for gamma = 1 and their weights, which may be negative."""

    frequencies: np.ndarray  # (n_frequencies, n_features)
    weights: np.ndarray  # (n_frequencies,)


def split_weights(drawn: Any) -> tuple[Any, np.ndarray | None]:
    """Frequencies and weights of what a draw returned; None for weights of one."""
    return drawn if isinstance(drawn, WeightedFrequencies) else (drawn, None)


class Draw(BaseEstimator, ABC):
    """Base class of draws: the parameter ``draw`` of `surff.FourierFeatures`.

    A class of your own needs one method, `draw`; its parameters are those of
    ``__init__``, as of any scikit-learn estimator. Deriving from this class is not
    required, the method is.
    """

    @abstractmethod
    def draw(
        self,
        measure: Any,
        n_frequencies: int,
        n_features: int,
        rng: np.random.Generator,
    ) -> Any:
        """Draw frequencies for ``gamma = 1``, without looking at data.

        Parameters
        ----------
        measure : surff.kernels.SpectralMeasure
            Spectral measure of the kernel.
        n_frequencies : int
            Frequencies to draw.
        n_features : int
            Columns of the data.
        rng : numpy.random.Generator
            All randomness.

        Returns
        -------
        frequencies : ndarray of shape (n_frequencies, n_features)
            Or `WeightedFrequencies`, or an object of that ``shape`` with methods
            ``projections(X, out=None)`` and ``astype(dtype, copy=True)`` that can be
            multiplied by a number or by one per feature, such as
            `HadamardFrequencies`. The first rows of a longer draw with the same seed
            should be those of a shorter one.
        """


class MonteCarlo(Draw):
    """Independent draws from the spectral measure.

    References
    ----------
    .. [1] A. Rahimi, B. Recht, "Random Features for Large-Scale Kernel Machines",
       NIPS 2007.
    """

    def draw(
        self,
        measure: Any,
        n_frequencies: int,
        n_features: int,
        rng: np.random.Generator,
    ) -> Any:
        """Draw ``n_frequencies`` rows for ``gamma = 1``; uses only ``n_features``."""
        return measure.sample(rng, n_frequencies, n_features)


def checked_draw(
    drawn: Any, draw: Any, n_frequencies: int, n_features: int
) -> tuple[Any, np.ndarray | None]:
    """Frequencies and weights of what a draw returned, their shapes checked.

    Parameters
    ----------
    drawn : array, frequencies object or WeightedFrequencies
        What the draw returned.
    draw : object
        The draw, for messages.
    n_frequencies, n_features : int
        What it was asked for.

    Returns
    -------
    frequencies : ndarray or frequencies object
        Of shape (n_frequencies, n_features).
    weights : ndarray of shape (n_frequencies,) or None
        None for weights of one.

    Raises
    ------
    ValueError
        If a shape is wrong or a value is NaN or infinity.
    """
    drawn, weights = split_weights(drawn)
    if weights is not None:
        weights = _numbers(weights, draw, "weights", (n_frequencies,))
    if not hasattr(drawn, "projections"):
        drawn = _numbers(drawn, draw, "frequencies", (n_frequencies, n_features))
    elif drawn.shape != (n_frequencies, n_features):
        raise _wrong(draw, "frequencies", (n_frequencies, n_features), drawn.shape)
    return drawn, weights


def _numbers(values, draw, name, shape):
    """Finite numbers of a shape."""
    try:
        values = np.asarray(values)
    except ValueError:  # ragged
        raise _wrong(draw, name, shape, "rows of different lengths") from None
    if values.shape != shape:
        raise _wrong(draw, name, shape, values.shape)
    if values.dtype.kind not in "fiu" or not np.isfinite(values).all():
        raise ValueError(
            f"draw={draw!r} must return {name} that are finite real numbers, got "
            f"dtype {values.dtype}"
            + ("." if values.dtype.kind not in "fiu" else " with NaN or infinity.")
        )
    return values


def _wrong(draw, name, shape, got):
    got = got if isinstance(got, str) else f"shape {tuple(got)}"
    return ValueError(f"draw={draw!r} must return {name} of shape {shape}, got {got}.")
