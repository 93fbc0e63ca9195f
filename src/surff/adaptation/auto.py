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

#: Columns of features up to which the first search tries all of them. Which bandwidth
#: and which columns matter shows with few, and a score costs their square.
SEARCH_COLUMNS = 256

#: Passes over the rows that the steps make at least: a fit tuned by 5 folds costs as
#: much for every few of them.
PASSES = 20

#: Steps that descent takes at the usual learning rate where a step is cheap.
STEPS = 800

#: Columns of features up to which a step is cheap.
CHEAP_COLUMNS = 128

#: Fewest steps of large maps.
LEAST_STEPS = 120

#: Learning rate of `STEPS` steps.
RATE = 0.05

#: Most by which fewer steps are longer.
LONGER = 2.0


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
    The number of steps is 20 passes over the rows, and at least 800; with m > 128
    columns of features at least 800 (128 / m)^1.5 and 120, of up to twice the length.
    It is at most 2,000, 600 and 12 per frequency, and the larger of 400 and 50 per
    frequency.
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
        drawn = np.asarray(frequencies, dtype=np.float64)
        drawn = drawn / np.median(np.linalg.norm(drawn, axis=1))
        best = self._scaled(problem, best, drawn)
        n_steps = self._n_steps(problem, len(frequencies))
        gradient = GradientAdaptation(
            n_steps=n_steps,
            learning_rate=RATE * min(LONGER, max(1.0, STEPS / n_steps)),
            verbose=self.verbose,
        )
        return gradient.search(problem, best, rng)

    def _scaled(self, problem, start, drawn):
        """Best `Found` with another bandwidth and other scales of the columns.

        ``drawn`` is the draw in units of its median norm. Of a large map, some of the
        frequencies are tried, and what was best of these holds for all.
        """
        some = slice(max(1, SEARCH_COLUMNS // 2))
        first = best = start
        if len(drawn) > SEARCH_COLUMNS // 2:
            first = best = problem.found(start.frequencies[some], start.warp)
        for length in LENGTHS:
            if time_is_up():
                break
            found = problem.found(length * drawn[some], start.warp)
            if held_out_error(found) < WORTH * held_out_error(best):
                best = found
                if self.verbose:
                    error = held_out_error(best)
                    report("adapt: held-out error %.4f at length %s", error, length)
        best = AgopAdaptation(diagonal=True, verbose=self.verbose).search(problem, best)
        if first is start or best is first:
            return best if first is start else start
        # All frequencies have been scaled alike, column by column.
        norms = np.linalg.norm(drawn[some], axis=0)
        scales = np.linalg.norm(best.frequencies, axis=0) / np.where(norms, norms, 1.0)
        found = problem.found(scales * drawn, start.warp)
        return min(start, found, key=held_out_error)

    def _n_steps(self, problem, n_frequencies):
        """Steps that pay, and that the number of frequencies allows."""
        columns = 2 * n_frequencies
        size = batch_rows("auto", n_frequencies, len(problem.train))
        least = int(STEPS * min(1.0, (CHEAP_COLUMNS / columns) ** 1.5))
        wanted = max(PASSES * len(problem.train) // size, least, LEAST_STEPS)
        return min(wanted, 2000, 600 + 12 * n_frequencies, max(50 * n_frequencies, 400))
