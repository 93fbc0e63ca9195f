"""The composition of adaptations that did best in our experiments."""

from __future__ import annotations

import math

import numpy as np

from surff.adaptation.agop import AgopAdaptation
from surff.adaptation.gradient import BATCH_ROWS, GradientAdaptation, batch_rows
from surff.adaptation.problem import InnerAdaptation, checked_count, held_out_error
from surff.backend import report, time_is_up

__all__ = [
    "AutoAdaptation",
]

#: Median lengths of frequencies to start from, in radians per spread of the columns: a
#: function that bends within a spread, and one that bends within four.
LENGTHS = (math.sqrt(2.0), math.sqrt(2.0) / 4)

#: Share of the error so far to which another length must bring it: the gamma that was
#: asked for is left for a good reason only.
WORTH = 0.9

#: Frequencies that are learned first, and alone: a step costs the square of their
#: number, and bandwidth, columns and warp show with few.
FIRST = 64

#: Steps of the first ones where others follow.
FIRST_STEPS = 240

#: Lengths at which the others are tried, relative to those that have been learned.
OTHER_LENGTHS = (1.0, 0.5, 0.25)

#: Fewest steps of small maps, and their learning rate.
STEPS, RATE = 800, 0.05

#: Fewest steps of large maps, and their learning rate.
LARGE_STEPS, LARGE_RATE = 110, 0.1

#: Most rounds of these steps. A smooth target without noise takes them all.
ROUNDS = 4

#: Share of the error before to which a round must bring it to be followed by another.
PAYS = 0.75

#: Rows per column of features in a batch of large maps: the Gram matrix of a batch is
#: most of the cost.
LARGE_BATCH = 5

#: Scores of large maps: each costs several steps.
LARGE_CHECKS = 5


def large_batch_rows(n_frequencies: int, n_rows: int) -> int:
    """Rows of a batch of large maps."""
    wanted = max(2 * BATCH_ROWS, 2 * LARGE_BATCH * n_frequencies)
    return batch_rows(wanted, n_frequencies, n_rows)


class AutoAdaptation(InnerAdaptation):
    r"""The composition that did best in our experiments; see the guide to adaptation.

    First the bandwidth, for columns bent beyond two spreads from their median: that of
    the draw, unless one in units of each column's spread is much better on the rows
    held out. Then `AgopAdaptation` of the columns' scales, and from the best so far
    `GradientAdaptation` of frequencies and warp, with as many steps as pay and as the
    number of frequencies allows. Many frequencies start from a few that have been
    learned. If the frequencies as they came, without a warp, are no worse on the rows
    held out, they are returned.

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
    passes : int, default=20
        Passes over the rows that the steps make at least, >= 1; they are most of the
        time of a fit to many rows, where fewer do with `LeafHeads`. A fit tuned by 5
        folds costs as much for every few of them.

    Notes
    -----
    The number of steps is ``passes`` over the rows, and at least 800. It is at most
    2,000, 600 and 12 per frequency, and the larger of 400 and 50 per frequency. Of
    s > 64 frequencies 64 move alone first, 240 steps of twice the length. The others
    join them, and the number of such steps is the ``passes`` again, at least 110 and
    800 (64 / s)^1.5, and at most 2,000; and as many again, up to four times, as long as
    the last took a quarter of the error on the rows held out away.
    """

    def __init__(
        self,
        warp: bool = True,
        validation_fraction: float = 0.1,
        dtype: str = "float32",
        verbose: bool = False,
        passes: int = 20,
    ):
        self.warp = warp
        self.validation_fraction = validation_fraction
        self.dtype = dtype
        self.verbose = verbose
        self.passes = passes

    def _best(self, problem, plain, frequencies, rng):
        """Best `Found` of bent columns, or of straight ones without a warp."""
        warp, best = problem.first_warp() if self.warp else None, plain
        if warp is not None:
            best = problem.found(plain.frequencies, warp)
        if self.verbose:
            report("adapt: held-out error %.4f at the start", held_out_error(best))
        drawn = np.asarray(frequencies, dtype=np.float64)
        length = np.median(np.linalg.norm(drawn, axis=1))
        if not 0.0 < length < np.inf:  # frequencies without a direction in this dtype
            return best
        drawn = drawn / length
        if len(drawn) <= FIRST:
            best = self._scaled(problem, best, drawn)
            n_steps = self._n_steps(problem, len(drawn))
            return GradientAdaptation(n_steps, RATE, verbose=self.verbose).search(
                problem, best, rng
            )
        first = problem.found(best.frequencies[:FIRST], warp)
        first = self._scaled(problem, first, drawn[:FIRST])
        first = self._moved(problem, first, rng, FIRST_STEPS)
        best = min(best, self._extended(problem, first, drawn), key=held_out_error)
        n_steps = self._n_steps(problem, len(drawn))
        for _ in range(ROUNDS):
            before = held_out_error(best)
            best = self._moved(problem, best, rng, n_steps)
            if time_is_up() or held_out_error(best) > PAYS * before:
                break
        return best

    def _moved(self, problem, start, rng, n_steps):
        """Best `Found` of few and long steps."""
        n_frequencies = len(start.frequencies)
        size = large_batch_rows(n_frequencies, len(problem.train))
        gradient = GradientAdaptation(
            n_steps,
            LARGE_RATE,
            size,
            n_checks=LARGE_CHECKS,
            patience=LARGE_CHECKS,  # the last steps are the short ones
            verbose=self.verbose,
        )
        return gradient.search(problem, start, rng)

    def _extended(self, problem, first, drawn):
        """Best `Found` that begins with the frequencies of another.

        The others are those drawn, with the same spread along each column.
        """
        n_first = len(first.frequencies)
        spread = np.sqrt(np.mean(first.frequencies**2, axis=0))
        drawn_spread = np.sqrt(np.mean(drawn**2, axis=0))
        others = drawn[n_first:] * spread / np.where(drawn_spread, drawn_spread, 1.0)
        best = min(
            (
                problem.found(
                    np.concatenate([first.frequencies, length * others]), first.warp
                )
                for length in OTHER_LENGTHS
            ),
            key=held_out_error,
        )
        if self.verbose:
            error = held_out_error(best)
            report("adapt: held-out error %.4f with all frequencies", error)
        return best

    def _scaled(self, problem, best, drawn):
        """Best `Found` with another bandwidth and other scales of the columns.

        ``drawn`` is the draw in units of its median norm.
        """
        warp = best.warp
        for length in LENGTHS:
            if time_is_up():
                break
            found = problem.found(length * drawn, warp)
            if held_out_error(found) < WORTH * held_out_error(best):
                best = found
                if self.verbose:
                    error = held_out_error(best)
                    report("adapt: held-out error %.4f at length %s", error, length)
        agop = AgopAdaptation(diagonal=True, verbose=self.verbose)
        return agop.search(problem, best)

    def _n_steps(self, problem, n_frequencies):
        """Steps that pay, and that the number of frequencies allows."""
        n_rows = len(problem.train)
        seen = checked_count("passes", self.passes) * n_rows
        if n_frequencies > FIRST:
            passes = seen // large_batch_rows(n_frequencies, n_rows)
            least = max(LARGE_STEPS, int(STEPS * (FIRST / n_frequencies) ** 1.5))
            return min(max(passes, least), 2000)
        passes = seen // batch_rows("auto", n_frequencies, n_rows)
        wanted = min(max(passes, STEPS), 2000, 600 + 12 * n_frequencies)
        return min(wanted, max(50 * n_frequencies, 400))
