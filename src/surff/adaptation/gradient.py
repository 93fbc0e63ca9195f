"""Frequencies learned by descent on the ridge objective, coefficients eliminated."""

import math
import time

import numpy as np
from sklearn.base import BaseEstimator

from surff.adaptation.objective import (
    Adam,
    cosine_schedule,
    projected_objective,
)
from surff.adaptation.problem import (
    LARGEST_RATE,
    LEAST_RATE,
    Found,
    _count,
    _error,
    _inner_problem,
)
from surff.backend import (
    positive,
    single_threaded_blas,
    to_numpy,
)
from surff.kernels import warp_gradient, warped

__all__ = [
    "GradientAdaptation",
]

#: Rows of a batch: at least, for each column, and for each up to a size that is
#: cheap. With fewer, coefficients fit the noise of a batch, and frequencies learn it.
BATCH_ROWS, BATCH_ROWS_PER_COLUMN = 512, 8
CHEAP_ROWS, CHEAP_ROWS_PER_COLUMN = 2048, 16

#: Steps of the frequencies for one of the warp: its gradient costs as much as theirs.
WARP_EVERY = 4

#: Ends of alpha="auto": below, batches are singular in float32; above, nothing moves.
LEAST_ALPHA, LARGEST_ALPHA = 1e-5, 1e-1


class GradientAdaptation(BaseEstimator):
    r"""Learn the frequencies: descent on the ridge objective, coefficients eliminated.

    Each step takes a batch of rows, solves its small ridge problem and moves the
    frequencies along the closed-form gradient of the objective at that solution, see
    `surff.adaptation.objective`. The rate of Adam rises and falls along a cosine; now
    and then the frequencies are scored on rows held out, and the best ones are kept.

    Parameters
    ----------
    n_steps : int, default=1000
        Steps at most.
    learning_rate : float, default=0.05
        Largest change of a coordinate in a step, > 0, in radians per spread of the
        column. Starts and ends at zero.
    batch_size : "auto" or int, default="auto"
        Rows of a batch, at most those there are; "auto" is 16 times the columns of
        features up to 2,048 rows, then 8 times, and at least 512.
    alpha : "auto" or float, default="auto"
        Regularisation of a batch, > 0, in mean eigenvalues of its Gram matrix; "auto"
        is the one that was best on the rows held out when last they were looked at.
    validation_fraction : float, default=0.1
        Share of the rows held out; up to 0.3 where that makes less than 500 rows.
    n_checks : int, default=10
        How often the frequencies are scored.
    patience : int, default=3
        Scores in a row without an improvement after which to stop.
    warp : bool, default=False
        Whether to learn a warp of the columns, too, see `surff.kernels.warp`.
        Columns of sparse rows stay as they are, a warp would fill them.
    dtype : {"float32", "float64"}, default="float32"
        In which to compute features and Gram matrices of batches.
    verbose : bool, default=False
        Whether to print a line for each score.

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

    needs_target = True
    takes_arrays = True

    def __init__(
        self,
        n_steps=1000,
        learning_rate=0.05,
        batch_size="auto",
        alpha="auto",
        validation_fraction=0.1,
        n_checks=10,
        patience=3,
        warp=False,
        dtype="float32",
        verbose=False,
    ):
        self.n_steps = n_steps
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.alpha = alpha
        self.validation_fraction = validation_fraction
        self.n_checks = n_checks
        self.patience = patience
        self.warp = warp
        self.dtype = dtype
        self.verbose = verbose

    def adapt(self, frequencies, X, Y, rng, sample_weight=None):
        """Move frequencies to where the data want them.

        Parameters
        ----------
        frequencies : ndarray of shape (n_frequencies, n_features)
            Where to start, radians per unit of ``X``; left as they are.
        X : array or CSR matrix of shape (n_samples, n_features)
            Data.
        Y : ndarray of shape (n_samples, n_targets)
            Targets; labels are coded -1, 1 by the caller.
        rng : numpy.random.Generator
            Holds rows out and shuffles the others.
        sample_weight : ndarray of shape (n_samples,), optional
            Row weights, >= 0.

        Returns
        -------
        frequencies : ndarray of shape (n_frequencies, n_features)
            Dtype of ``frequencies``.
        warp : ndarray of shape (2, n_features) or None
            Bends the columns first, if any.
        """
        problem = _inner_problem(self, X, Y, rng, sample_weight)
        plain = start = problem.found(problem.inward(frequencies))
        if self.warp and (warp := problem.first_warp()) is not None:
            start = problem.found(plain.frequencies, warp)
        found = min(plain, self.search(problem, start, rng), key=_error)
        if found is plain:
            return frequencies, None
        return problem.outward(found, frequencies.dtype)

    def search(self, problem, start, rng):
        """Best `Found` on the way, which may be the start.

        Parameters
        ----------
        problem : InnerProblem
            Data.
        start : Found
            Where to start; its warp moves too, if it has one.
        rng : numpy.random.Generator
            Shuffles rows.
        """
        n_steps = _count("n_steps", self.n_steps)
        rate = positive("learning_rate", self.learning_rate)
        patience = _count("patience", self.patience)
        every = math.ceil(n_steps / _count("n_checks", self.n_checks))
        best, score = start, start.score
        size = _batch_size(self.batch_size, len(start.frequencies), len(problem.train))
        batches = _batches(problem, size, rng)
        moving, warp = _apart(start.frequencies, rate, rng), start.warp
        adam, failures, began = Adam(moving.shape), 0, time.perf_counter()
        bending = None if warp is None else Bending(warp, problem)
        # Steps are short, and share their rows out themselves where it pays.
        with single_threaded_blas():
            for step in range(n_steps):
                alpha = self._alpha(score) / (2 * len(moving))
                batch, targets, weight = next(batches)
                length = rate * cosine_schedule(step, n_steps)
                bends = bending is not None and step % WARP_EVERY == 0
                if bending is not None:
                    batch = bending(batch)
                objective = projected_objective(
                    moving.astype(problem.dtype), batch, targets, alpha, weight, bends
                )
                moving += adam.step(objective.gradient, length)
                if bends:
                    bending.move(objective.row_gradient, batch, length)
                if (step + 1) % every and step + 1 < n_steps:
                    continue
                if bending is not None:
                    warp = bending.warp
                score = problem.score(moving, warp)
                failures += 1
                if score.error < best.score.error:
                    best, failures = Found(moving.copy(), warp, score), 0
                if self.verbose:
                    print(
                        f"adapt: step {step + 1}/{n_steps}, held-out error "
                        f"{score.error:.4f}, best {best.score.error:.4f}, alpha "
                        f"{self._alpha(score):.0e}, {time.perf_counter() - began:.1f} s"
                    )
                if failures >= patience:
                    break
        return best

    def _alpha(self, score):
        """Regularisation of a batch after a score."""
        if isinstance(self.alpha, str) and self.alpha == "auto":
            return min(max(score.alpha, LEAST_ALPHA), LARGEST_ALPHA)
        return positive("alpha", self.alpha)


class Bending:
    """A warp that moves.

    Parameters
    ----------
    warp : ndarray of shape (2, n_features)
        The first one.
    problem : InnerProblem
        Says where and in which dtype to compute.
    """

    def __init__(self, warp, problem):
        self.warp, self._problem = warp, problem
        self._adam = Adam(warp.shape)
        self._there = problem.beside(warp)

    def __call__(self, X):
        """Bent rows."""
        return warped(X, self._there)

    def move(self, row_gradient, bent, length):
        """A step, of at most ``length`` in ``log(rate)`` and ``rate * centre``.

        Parameters
        ----------
        row_gradient, bent : array of shape (n_samples, n_features)
            See `surff.kernels.warp_gradient`.
        length : float
            Length.
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


def _batch_size(batch_size, n_frequencies, n_rows):
    """Rows of a batch."""
    if isinstance(batch_size, str) and batch_size == "auto":
        columns = 2 * n_frequencies
        cheap = min(CHEAP_ROWS, CHEAP_ROWS_PER_COLUMN * columns)
        wanted = max(BATCH_ROWS, cheap, BATCH_ROWS_PER_COLUMN * columns)
    else:
        wanted = _count("batch_size", batch_size)
    return min(wanted, n_rows)


def _batches(problem, size, rng):
    """Batches of the rows not held out, without end, each row once an epoch.

    Rows left over at the end of an epoch wait for another.
    """
    while True:
        n_batches = len(problem.train) // size
        order = rng.permutation(problem.train)[: n_batches * size]
        for index in np.sort(order.reshape(n_batches, size), axis=1):
            yield problem.batch(index)


def _apart(frequencies, distance, rng):
    """Frequencies, those that stand there twice moved a little: they would stay one."""
    _, first = np.unique(frequencies, axis=0, return_index=True)
    again = np.setdiff1d(np.arange(len(frequencies)), first)
    frequencies = frequencies.copy()
    frequencies[again] += distance * rng.standard_normal(
        (len(again), frequencies.shape[1])
    )
    return frequencies
