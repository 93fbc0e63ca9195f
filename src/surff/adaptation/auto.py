"""The composition of adaptations that did best in our experiments."""

from __future__ import annotations

import math

import numpy as np

from surff.adaptation.agop import AgopAdaptation
from surff.adaptation.base import Adaptation, Adapted
from surff.adaptation.gradient import GradientAdaptation, batch_rows
from surff.adaptation.problem import Found, InnerProblem, held_out_error, inner_problem
from surff.backend import Array, report, time_is_up

__all__ = [
    "AutoAdaptation",
]

#: Median lengths of frequencies to start from, in radians per spread of the columns: a
#: function that bends within a spread, and one that bends within four.
LENGTHS = (math.sqrt(2.0), math.sqrt(2.0) / 4)

#: Share of the error so far to which another length must bring it: the gamma that was
#: asked for is left for a good reason only.
WORTH = 0.9

#: Most multiplications in the Gram matrices of batches: about a minute of two cores.
MULTIPLICATIONS = 3 * 10**11


class AutoAdaptation(Adaptation):
    r"""The composition that did best in our experiments; see the guide to adaptation.

    First the bandwidth, for columns bent beyond two spreads from their median: that of
    the draw, unless one in units of each column's spread is much better on the rows
    held out. Then `AgopAdaptation` of the columns' scales, and from the best so far
    `GradientAdaptation` of frequencies and warp, with as many steps as pay and as the
    number of frequencies allows. If the frequencies as they came, without a warp, are
    no worse on the rows held out, they are returned.

    Parameters
    ----------
    warp : bool, default=True
        Whether to bend the columns, see `surff.kernels.warp`. Columns of sparse rows
        stay straight, since a warp would fill them.
    validation_fraction : float, default=0.1
        Share of the rows held out; up to 0.3 if that makes fewer than 500 rows.
    dtype : {"float32", "float64"}, default="float32"
        Type in which features and Gram matrices of batches are computed.
    verbose : bool, default=False
        Whether to report each score: to the logger "surff" at level INFO, or to stderr
        where nothing listens to that.

    Notes
    -----
    The number of steps is 15 passes over the rows, and at least 800. It is at most
    2,000, 600 and 12 per frequency, and the larger of 400 and 50 per frequency; and at
    most what 3e11 multiplications in the Gram matrices allow, but no less than 100.
    """

    takes_arrays = True

    def __init__(
        self,
        warp: bool = True,
        validation_fraction: float = 0.1,
        dtype: str = "float32",
        verbose: bool = False,
    ):
        self.warp = warp
        self.validation_fraction = validation_fraction
        self.dtype = dtype
        self.verbose = verbose

    def adapt(
        self,
        frequencies: np.ndarray,
        X: Array,
        Y: Array,
        rng: np.random.Generator,
        sample_weight: np.ndarray | None = None,
    ) -> Adapted:
        """Find lengths, scales and places of frequencies; see `Adaptation.adapt`."""
        problem = inner_problem(self, X, Y, rng, sample_weight)
        plain = problem.found(problem.inward(frequencies))
        found = min(
            plain, self._search(problem, plain, frequencies, rng), key=held_out_error
        )
        if found is plain:
            return Adapted(frequencies)
        return problem.outward(found, frequencies.dtype)

    def _search(
        self,
        problem: InnerProblem,
        plain: Found,
        frequencies: np.ndarray,
        rng: np.random.Generator,
    ) -> Found:
        """Best `Found` of bent columns, or of straight ones without a warp."""
        warp, best = problem.first_warp() if self.warp else None, plain
        if warp is not None:
            best = problem.found(plain.frequencies, warp)
        if self.verbose:
            report("adapt: held-out error %.4f at the start", held_out_error(best))
        isotropic = np.asarray(frequencies, dtype=np.float64)
        isotropic = isotropic / np.median(np.linalg.norm(isotropic, axis=1))
        for length in LENGTHS:
            if time_is_up():
                break
            found = problem.found(length * isotropic, warp)
            if held_out_error(found) < WORTH * held_out_error(best):
                best = found
                if self.verbose:
                    error = held_out_error(best)
                    report("adapt: held-out error %.4f at length %s", error, length)
        best = AgopAdaptation(diagonal=True, verbose=self.verbose).search(problem, best)
        gradient = GradientAdaptation(
            n_steps=self._n_steps(problem, len(frequencies)), verbose=self.verbose
        )
        return gradient.search(problem, best, rng)

    def _n_steps(self, problem, n_frequencies):
        """Steps that pay, and that the number of frequencies allows."""
        size = batch_rows("auto", n_frequencies, len(problem.train))
        passes = 15 * len(problem.train) // size
        wanted = min(max(passes, 800), 2000, 600 + 12 * n_frequencies)
        few = max(50 * n_frequencies, 400)
        affordable = MULTIPLICATIONS // (size * (2 * n_frequencies) ** 2)
        return min(wanted, few, max(100, affordable))
