r"""Low-discrepancy frequencies: quasi-Monte Carlo instead of independent draws.

A low-discrepancy sequence ``u`` of the unit cube is pushed through the quantile
function of the spectral measure, :math:`w = F^{-1}(u)`.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.stats import qmc
from sklearn.base import BaseEstimator

from surff.kernels import SpectralMeasure

__all__ = ["Halton", "Sobol", "halton_sequence", "reverse_radix_permutation"]


#: Binary digits of a Sobol coordinate; half a cell more still fits a float64.
BITS = 50


class Halton(BaseEstimator):
    """The paper's quasi-Monte Carlo draw: a leaped, digit-scrambled Halton sequence.

    Points number ``skip``, ``skip + leap + 1``, ``skip + 2 (leap + 1)``, ... of the
    Halton sequence, its digits permuted by the reverse-radix rule. Nothing is random:
    ``random_state`` has no influence on these frequencies.

    Parameters
    ----------
    skip : int, default=1000
        Index of the first point used, >= 1 (point 0 is the origin, whose quantile is
        infinite).
    leap : int, default=700
        Points left out between two used ones, >= 0. ``leap + 1`` should be prime to the
        bases, or the points of that base repeat; 701 is prime and is the 126th prime,
        so 126 features and more are refused with the default.

    References
    ----------
    .. [1] H. Avron, V. Sindhwani, J. Yang, M. Mahoney, "Quasi-Monte Carlo Feature Maps
       for Shift-Invariant Kernels", JMLR 17, 2016.
    .. [2] L. Kocis, W. J. Whiten, "Computational Investigations of Low-Discrepancy
       Sequences", ACM TOMS 23(2), 1997 (leaping, reverse-radix scrambling).
    """

    def __init__(self, skip: int = 1000, leap: int = 700) -> None:
        self.skip = skip
        self.leap = leap

    def draw(
        self,
        measure: SpectralMeasure,
        n_frequencies: int,
        n_features: int,
        rng: np.random.Generator,
    ) -> np.ndarray:
        """Return ``n_frequencies`` rows for ``gamma = 1``; ``rng`` is not used."""
        del rng  # nothing is random
        if self.skip < 1:
            raise ValueError(f"skip must be at least 1, got {self.skip!r}.")
        if self.leap < 0:
            raise ValueError(f"leap must be at least 0, got {self.leap!r}.")
        indices = self.skip + (self.leap + 1) * np.arange(n_frequencies)
        bases = primes(measure.n_coordinates(n_features))
        shared = [int(base) for base in bases if (self.leap + 1) % base == 0]
        if shared:
            raise ValueError(
                f"leap + 1 = {self.leap + 1} is divisible by the base {shared[0]} that "
                f"{n_features} features need: the points of that coordinate would "
                "repeat. Choose a leap such that leap + 1 is prime to "
                f"every prime up to {bases[-1]}."
            )
        return measure.quantile(halton_sequence(indices, bases))


class Sobol(BaseEstimator):
    """A Sobol sequence, scrambled as Owen proposed.

    Parameters
    ----------
    scramble : bool, default=True
        Random linear scramble and digital shift, from ``rng``: every point is uniform,
        so the estimate is unbiased. Without it nothing is random, and the sequence
        starts at its second point: the first, the origin, has an infinite quantile.

    Notes
    -----
    Any number of frequencies is allowed; powers of two balance the points best. At most
    21,201 coordinates, `scipy.stats.qmc.Sobol`'s limit.

    References
    ----------
    .. [1] A. B. Owen, "Scrambling Sobol' and Niederreiter-Xing Points", Journal of
       Complexity 14, 1998.
    .. [2] H. Avron, V. Sindhwani, J. Yang, M. Mahoney, "Quasi-Monte Carlo Feature Maps
       for Shift-Invariant Kernels", JMLR 17, 2016.
    """

    def __init__(self, scramble: bool = True) -> None:
        self.scramble = scramble

    def draw(
        self,
        measure: SpectralMeasure,
        n_frequencies: int,
        n_features: int,
        rng: np.random.Generator,
    ) -> np.ndarray:
        """Draw ``n_frequencies`` rows for ``gamma = 1``."""
        n_coordinates = measure.n_coordinates(n_features)
        limit = qmc.Sobol.MAXDIM
        if n_coordinates > limit:
            raise ValueError(
                f"draw='sobol' has at most {limit} coordinates, and {n_features} "
                f"features need {n_coordinates}; use draw='monte_carlo'."
            )
        sequence = qmc.Sobol(n_coordinates, scramble=self.scramble, bits=BITS, seed=rng)
        skipped = 0 if self.scramble else 1
        n_points = n_frequencies + skipped
        points = sequence.random_base2(max(0, (n_points - 1).bit_length()))
        # A point is the corner of a cell of width 2^-BITS. Scrambled, its middle stands
        # for the cell, so that the corner at 0 is no infinite frequency.
        points = points[skipped:n_points] + (2.0 ** -(BITS + 1) if self.scramble else 0)
        return measure.quantile(points)


def primes(count: int) -> np.ndarray:
    """The first ``count`` primes."""
    # The k-th prime lies below k (log k + log log k) for k >= 6 (Rosser).
    bound = (
        15 if count < 6 else int(count * (np.log(count) + np.log(np.log(count)))) + 1
    )
    sieve = np.ones(bound + 1, dtype=bool)
    sieve[:2] = False
    for i in range(2, int(bound**0.5) + 1):
        if sieve[i]:
            sieve[i * i :: i] = False
    return np.flatnonzero(sieve)[:count]


def reverse_radix_permutation(base: int) -> np.ndarray:
    """Permutation of the digits ``0 .. base - 1`` by reversed bits.

    The numbers below the next power of two are listed in the order of their reversed
    bits, without the numbers that are not digits of the base; 0 stays first.

    Examples
    --------
    >>> reverse_radix_permutation(5)
    array([0, 4, 2, 1, 3])
    """
    n_bits = int(base - 1).bit_length()
    numbers = np.arange(2**n_bits)
    reversed_numbers = np.zeros_like(numbers)
    for bit in range(n_bits):
        reversed_numbers |= ((numbers >> bit) & 1) << (n_bits - 1 - bit)
    return reversed_numbers[reversed_numbers < base]


def halton_sequence(indices: npt.ArrayLike, bases: npt.ArrayLike) -> np.ndarray:
    r"""Digit-scrambled Halton points.

    Coordinate ``j`` of point ``i`` is :math:`\sum_k \pi_b(d_k)\, b^{-k-1}` for the
    digits :math:`d_k` of ``i`` in base ``b = bases[j]`` and the reverse-radix
    permutation :math:`\pi_b`.

    Parameters
    ----------
    indices : array of int, shape (n_points,)
        Positions in the sequence, >= 0.
    bases : array of int, shape (n_coordinates,)
        Pairwise coprime bases, as a rule the first primes.

    Returns
    -------
    points : ndarray of shape (n_points, n_coordinates)
        In [0, 1); 0 only at index 0.
    """
    points = np.zeros((len(indices), len(bases)))
    for j, base in enumerate(bases):
        permutation = reverse_radix_permutation(base)
        rest, weight = np.array(indices), 1.0 / base
        while rest.any():
            rest, digits = np.divmod(rest, base)
            points[:, j] += weight * permutation[digits]
            weight /= base
    return points
