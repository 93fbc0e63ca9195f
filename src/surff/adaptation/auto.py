"""The composition of adaptations that did best in our experiments."""

import math

import numpy as np
from sklearn.base import BaseEstimator

from surff.adaptation.agop import (
    AgopAdaptation,
)
from surff.adaptation.gradient import GradientAdaptation, _batch_size
from surff.adaptation.problem import _error, _inner_problem

__all__ = [
    "AutoAdaptation",
]

#: adapt="auto": lengths of frequencies to start from, in radians per spread of the
#: columns, the error they must come down to for it, and multiplications that the Gram
#: matrices of batches may take.
LENGTHS, WORTH, MULTIPLICATIONS = (math.sqrt(2.0), math.sqrt(2.0) / 4), 0.9, 3 * 10**11


class AutoAdaptation(BaseEstimator):
    r"""The composition that did best in our experiments; see the guide to adaptation.

    First the bandwidth, of columns bent beyond two spreads from their median: that of
    the draw, unless one in units of each column's spread is much better on the rows
    held out. Then `AgopAdaptation` of the columns' scales, and from what is best so far
    `GradientAdaptation` of frequencies and warp, with as many steps as pay and as the
    number of frequencies allows.

    Parameters
    ----------
    warp : bool, default=True
        Whether to bend the columns, see `surff.kernels.warp`. Those of sparse rows
        stay as they are, a warp would fill them.
    validation_fraction : float, default=0.1
        Share of the rows held out; up to 0.3 where that makes less than 500 rows.
    dtype : {"float32", "float64"}, default="float32"
        In which to compute features and Gram matrices of batches.
    verbose : bool, default=False
        Whether to print a line for each score.

    Notes
    -----
    Steps are 15 passes over the rows, or 800 where that is more; but 2,000 at most, no
    more than 600 and 12 a frequency, or 50 a frequency if that is less (400 in any
    case), and no more than 3e11 multiplications in their Gram matrices allow, or 100.
    """

    needs_target = True
    takes_arrays = True

    def __init__(
        self, warp=True, validation_fraction=0.1, dtype="float32", verbose=False
    ):
        self.warp = warp
        self.validation_fraction = validation_fraction
        self.dtype = dtype
        self.verbose = verbose

    def adapt(self, frequencies, X, Y, rng, sample_weight=None):
        """Find the length, the scales and the places of frequencies.

        See `GradientAdaptation.adapt`.
        """
        problem = _inner_problem(self, X, Y, rng, sample_weight)
        warp = problem.first_warp() if self.warp else None
        drawn = problem.inward(frequencies)
        best = problem.found(drawn, warp)
        if self.verbose:
            print(f"adapt: held-out error {_error(best):.4f} at the start")
        isotropic = np.asarray(frequencies, dtype=np.float64)
        isotropic = isotropic / np.median(np.linalg.norm(isotropic, axis=1))
        for length in LENGTHS:
            found = problem.found(length * isotropic, warp)
            if _error(found) < WORTH * _error(best):
                best = found
                if self.verbose:
                    print(
                        f"adapt: held-out error {_error(best):.4f} at length {length}"
                    )
        best = AgopAdaptation(diagonal=True, verbose=self.verbose).search(problem, best)
        gradient = GradientAdaptation(
            n_steps=self._n_steps(problem, len(drawn)), verbose=self.verbose
        )
        best = gradient.search(problem, best, rng)
        return problem.outward(best, frequencies.dtype)

    def _n_steps(self, problem, n_frequencies):
        """Steps that pay, and that the number of frequencies allows."""
        size = _batch_size("auto", n_frequencies, len(problem.train))
        passes = 15 * len(problem.train) // size
        wanted = min(max(passes, 800), 2000, 600 + 12 * n_frequencies)
        few = max(50 * n_frequencies, 400)
        affordable = MULTIPLICATIONS // (size * (2 * n_frequencies) ** 2)
        return min(wanted, few, max(100, affordable))
