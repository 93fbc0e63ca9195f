"""Frequencies learned by descent on the ridge objective, coefficients eliminated."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from surff.adaptation.objective import (
    Adam,
    Projected,
    cosine_schedule,
    projected_objective,
)
from surff.adaptation.problem import (
    LARGEST_RATE,
    LEAST_RATE,
    Found,
    InnerAdaptation,
    InnerProblem,
    Score,
    checked_count,
    held_out_error,
    not_negative,
)
from surff.adaptation.relevance import (
    column_relevance,
    decayed_columns,
    has_idle_columns,
    shrunk_columns,
)
from surff.backend import (
    Array,
    positive,
    report,
    single_threaded_blas,
    stage,
    time_is_up,
    to_numpy,
)
from surff.kernels import warp_gradient, warped
from surff.linear import SingularError

__all__ = [
    "GradientAdaptation",
    "batch_rows",
]

#: Fewest rows of a batch: smaller batches cost about as much as this.
BATCH_ROWS = 512

#: Fewest rows of a batch per column of features: with fewer, coefficients fit the noise
#: of a batch, and frequencies learn it.
BATCH_ROWS_PER_COLUMN = 8

#: Rows up to which a batch is cheap, and takes more rows per column.
CHEAP_ROWS = 2048

#: Rows per column of features in a cheap batch: its noise is then half as large.
CHEAP_ROWS_PER_COLUMN = 16

#: Steps of the frequencies per step of the warp: its gradient costs as much as theirs.
WARP_EVERY = 4

#: Smallest alpha="auto": below, batches are singular in float32.
LEAST_ALPHA = 1e-5

#: Largest alpha="auto": above, nothing moves.
LARGEST_ALPHA = 1e-1


class GradientAdaptation(InnerAdaptation):
    r"""Learn the frequencies: descent on the ridge objective, coefficients eliminated.

    Each step takes a batch of rows, solves its small ridge problem and moves the
    frequencies along the closed-form gradient of the objective at that solution, see
    `surff.adaptation.objective`. The rate of Adam rises and falls along a cosine; now
    and then the frequencies are scored on rows held out, and the best ones are kept.

    Parameters
    ----------
    n_steps : int, default=1000
        Most steps.
    learning_rate : float, default=0.05
        Largest change of a coordinate in a step, > 0, in radians per spread of the
        column. Starts and ends at zero.
    batch_size : "auto" or int, default="auto"
        Rows of a batch, at most all; "auto" is 16 times the columns of
        features up to 2,048 rows, then 8 times, and at least 512.
    alpha : "auto" or float, default="auto"
        Regularisation of a batch, > 0, in mean eigenvalues of its Gram matrix; "auto"
        is the best on the rows held out at the last score. A batch that is singular
        with it raises it tenfold, until the next score.
    validation_fraction : float, default=0.1
        Share of the rows held out; up to 0.3 if that makes fewer than 500 rows.
    n_checks : int, default=10
        Number of times the frequencies are scored.
    patience : int, default=3
        Number of scores in a row without an improvement after which to stop.
    shrinkage : float, default=0.05
        How fast columns that the fit hardly uses shrink, >= 0, relative to the steps;
        see `surff.adaptation.relevance`. With 0 no column is treated apart.
    warp : bool, default=False
        Whether to learn a warp of the columns as well, see `surff.kernels.warp`.
        Columns of sparse rows stay straight, since a warp would fill them.
    dtype : {"float32", "float64"}, default="float32"
        Type in which features and Gram matrices of batches are computed.
    verbose : bool, default=False
        Whether to report each score: to the logger "surff" at level INFO, or to stderr
        where nothing listens to that.

    Notes
    -----
    A step costs ``O(B s (s + d + k))`` for a batch of B rows, and ``O(s^3)``; memory is
    a few batches of features. Every fourth step moves the warp.

    Examples
    --------
    >>> import numpy as np
    >>> from surff import FourierFeatures, GradientAdaptation, KernelRidgeRegressor
    >>> X = np.random.default_rng(0).normal(size=(1000, 3))
    >>> y = np.sin(3.0 * X[:, 0]) + X[:, 1] * X[:, 2]
    >>> features = FourierFeatures(20, random_state=0)
    >>> plain = KernelRidgeRegressor(features, cv="gcv").fit(X[:800], y[:800])
    >>> adapt = GradientAdaptation(n_steps=300)
    >>> features = FourierFeatures(20, adapt=adapt, random_state=0)
    >>> adapted = KernelRidgeRegressor(features, cv="gcv").fit(X[:800], y[:800])
    >>> adapted.score(X[800:], y[800:]) > 0.95 > 0.7 > plain.score(X[800:], y[800:])
    True
    """

    def __init__(
        self,
        n_steps: int = 1000,
        learning_rate: float = 0.05,
        batch_size: int | str = "auto",
        alpha: float | str = "auto",
        validation_fraction: float = 0.1,
        n_checks: int = 10,
        patience: int = 3,
        shrinkage: float = 0.05,
        warp: bool = False,
        dtype: str = "float32",
        verbose: bool = False,
    ):
        self.n_steps = n_steps
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.alpha = alpha
        self.validation_fraction = validation_fraction
        self.n_checks = n_checks
        self.patience = patience
        self.shrinkage = shrinkage
        self.warp = warp
        self.dtype = dtype
        self.verbose = verbose

    def _best(self, problem, plain, frequencies, rng):
        del frequencies  # they are those of plain
        start, warp = plain, problem.first_warp() if self.warp else None
        if warp is not None:
            start = problem.found(plain.frequencies, warp)
        return self.search(problem, start, rng)

    def search(
        self, problem: InnerProblem, start: Found, rng: np.random.Generator
    ) -> Found:
        """Best `Found` on the way, which may be the start.

        Parameters
        ----------
        problem : InnerProblem
            Data.
        start : Found
            Where to start; its warp, if any, moves as well.
        rng : numpy.random.Generator
            Shuffles rows.
        """
        n_steps = checked_count("n_steps", self.n_steps)
        rate = positive("learning_rate", self.learning_rate)
        patience = checked_count("patience", self.patience)
        every = math.ceil(n_steps / checked_count("n_checks", self.n_checks))
        descent = Descent(self, problem, start, rng)
        if time_is_up():
            return start
        failures, began = 0, time.perf_counter()
        # Steps are short, and share their rows out themselves where it pays.
        with single_threaded_blas(), stage("adapt", n_steps, "steps") as progress:
            for step in range(n_steps):
                length = rate * cosine_schedule(step, n_steps)
                descent.step(length, bends=step % WARP_EVERY == 0)
                progress.advance()
                last = step + 1 == n_steps or time_is_up()
                if (step + 1) % every and not last:
                    continue
                before = descent.best
                found = descent.check()
                failures = failures + 1 if descent.best is before else 0
                progress.say("held-out error %.4f", held_out_error(descent.best))
                if self.verbose:
                    report(
                        "adapt: step %d/%d, held-out error %.4f, best %.4f, alpha "
                        "%.0e, %.1f s",
                        *(step + 1, n_steps, held_out_error(found)),
                        *(held_out_error(descent.best), descent.alpha),
                        time.perf_counter() - began,
                    )
                if failures >= patience or last:
                    break
        return descent.best


class Descent:
    """Frequencies and a warp on their way, and the best so far.

    Parameters
    ----------
    adaptation : GradientAdaptation
        Its parameters.
    problem : InnerProblem
        Data.
    start : Found
        Where to start.
    rng : numpy.random.Generator
        Shuffles rows.

    Attributes
    ----------
    best : Found
        The smallest error on the rows held out.
    alpha : float
        Regularisation of the next batch, in mean eigenvalues.
    """

    def __init__(
        self,
        adaptation: GradientAdaptation,
        problem: InnerProblem,
        start: Found,
        rng: np.random.Generator,
    ):
        self._problem, self._asked, self.best = problem, adaptation.alpha, start
        self._shrinkage = not_negative("shrinkage", adaptation.shrinkage)
        self._frequencies = _apart(start.frequencies, adaptation.learning_rate, rng)
        size = batch_rows(
            adaptation.batch_size, len(start.frequencies), len(problem.train)
        )
        self._batches = _batches(problem, size, rng)
        self._adam = Adam(self._frequencies.shape)
        self._bending = None if start.warp is None else Bending(start.warp, problem)
        self._workspace: dict[tuple, Any] = {}
        self._now(start)

    def _now(self, found):
        """What follows from a score: alpha, and what the columns are worth."""
        self.alpha = batch_alpha(self._asked, found.score)
        if self._shrinkage:
            self._relevance = column_relevance(found.frequencies, found.score)

    def step(self, length: float, bends: bool) -> None:
        """Move by at most ``length`` in a coordinate, on the next batch."""
        X, Y, weight = next(self._batches)
        bends = bends and self._bending is not None
        if self._bending is not None:
            X = self._bending(X)
        frequencies = self._frequencies.astype(self._problem.dtype)
        objective, self.alpha = _solvable(
            frequencies, X, Y, self.alpha, weight, bends, self._workspace
        )
        if objective is not None:
            self._frequencies += self._adam.step(objective.gradient, length)
            if bends:
                self._bending.move(objective.row_gradient, X, length)
        if self._shrinkage:
            self._frequencies = decayed_columns(
                self._frequencies, self._relevance, self._shrinkage * length
            )

    def _without_idle_columns(self, found):
        """`Found` with columns shrunk, if that is better."""
        relevance = column_relevance(found.frequencies, found.score)
        if not has_idle_columns(relevance):
            return found
        shrunk = self._problem.found(
            shrunk_columns(found.frequencies, relevance), found.warp
        )
        if held_out_error(shrunk) >= held_out_error(found):
            return found
        self._frequencies = shrunk.frequencies.copy()
        return shrunk

    def check(self) -> Found:
        """Score where it is; shrink columns where the rows held out like that."""
        warp = None if self._bending is None else self._bending.warp
        found = self._problem.found(self._frequencies.copy(), warp)
        if self._shrinkage:
            found = self._without_idle_columns(found)
        self.best = min(self.best, found, key=held_out_error)
        self._now(found)
        return found


def batch_alpha(alpha: float | str, score: Score) -> float:
    """Regularisation of a batch after a score, in mean eigenvalues."""
    if isinstance(alpha, str) and alpha == "auto":
        return min(max(score.alpha, LEAST_ALPHA), LARGEST_ALPHA)
    return positive("alpha", alpha)


def _solvable(
    frequencies: np.ndarray,
    X: Array,
    Y: np.ndarray,
    alpha: float,
    weight: np.ndarray | None,
    by_rows: bool,
    workspace: dict[tuple, Any],
) -> tuple[Projected | None, float]:
    """`projected_objective`, and the alpha that it took to solve it.

    A singular batch raises alpha, in mean eigenvalues, tenfold and up to 1. Where that
    does not do, the batch is no use and the result None.
    """
    tried = alpha
    while True:
        try:
            found = projected_objective(
                *(frequencies, X, Y, tried / (2 * len(frequencies))),
                *(weight, by_rows, workspace),
            )
        except SingularError:
            if tried >= 1.0:
                return None, alpha
            tried = min(10.0 * tried, 1.0)
        else:
            return found, tried


class Bending:
    """A warp that moves.

    Parameters
    ----------
    warp : ndarray of shape (2, n_features)
        The first one.
    problem : InnerProblem
        Says where and in which dtype to compute.
    """

    def __init__(self, warp: np.ndarray, problem: InnerProblem):
        self.warp, self._problem = warp, problem
        self._adam = Adam(warp.shape)
        self._there = problem.beside(warp)

    def __call__(self, X: Array) -> Array:
        """Bend rows."""
        return warped(X, self._there)

    def move(self, row_gradient: Array, bent: Array, length: float) -> None:
        """Take a step of at most ``length`` in ``log(rate)`` and ``rate * centre``.

        Parameters
        ----------
        row_gradient, bent : array of shape (n_samples, n_features)
            See `surff.kernels.warp_gradient`.
        length : float
            Largest change of a coordinate.
        """
        gradient = to_numpy(warp_gradient(row_gradient, bent, self._there))
        centres, rates = self.warp
        step = self._adam.step(gradient, length)
        self.warp = np.stack(
            [
                centres + step[0] / rates,
                (rates * np.exp(step[1])).clip(LEAST_RATE, LARGEST_RATE),
            ]
        )
        self._there = self._problem.beside(self.warp)


def batch_rows(batch_size: int | str, n_frequencies: int, n_rows: int) -> int:
    """Rows of a batch, from the parameter and at most all."""
    if isinstance(batch_size, str) and batch_size == "auto":
        columns = 2 * n_frequencies
        cheap = min(CHEAP_ROWS, CHEAP_ROWS_PER_COLUMN * columns)
        wanted = max(BATCH_ROWS, cheap, BATCH_ROWS_PER_COLUMN * columns)
    else:
        wanted = checked_count("batch_size", batch_size)
    return min(wanted, n_rows)


def _batches(
    problem: InnerProblem, size: int, rng: np.random.Generator
) -> Iterator[tuple[Array, np.ndarray, np.ndarray | None]]:
    """Yield batches of the rows not held out, for ever, each row once per epoch.

    Rows left over at the end of an epoch wait for another.
    """
    while True:
        n_batches = len(problem.train) // size
        order = rng.permutation(problem.train)[: n_batches * size]
        for index in np.sort(order.reshape(n_batches, size), axis=1):
            yield problem.batch(index)


def _apart(frequencies, distance, rng):
    """Copy with duplicates jittered.

    Identical frequencies get identical gradients and never part.
    """
    _, first = np.unique(frequencies, axis=0, return_index=True)
    again = np.setdiff1d(np.arange(len(frequencies)), first)
    frequencies = frequencies.copy()
    frequencies[again] += distance * rng.standard_normal(
        (len(again), frequencies.shape[1])
    )
    return frequencies
