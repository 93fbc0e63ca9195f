r"""Frequencies that are moved after the draw, to where the data want them.

An adaptation takes the frequencies that were drawn or selected and returns as many
others, and a warp of the columns (`surff.warp`) or None. `GradientAdaptation` minimises
the ridge objective over the frequencies themselves and, if asked to, over the warp;
`AgopAdaptation` keeps the draw and changes its covariance; `AutoAdaptation` is the
choice that did best in our experiments. Each holds some rows out and returns what has
the smallest squared error on these, the first frequencies included. Rows of another
array library than NumPy stay on their device, where what grows with their number is
computed; frequencies are on the host meanwhile.
"""

import math
import numbers
import time
from typing import NamedTuple

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator

from surff._threads import single_threaded_blas
from surff._validation import positive
from surff.agop import average_gradient_outer_product, root_transform
from surff.alpha_selection import coefficient_path, squared_errors
from surff.array_api import (
    asarray_like,
    namespace_of,
    other_namespace,
    supports_float64,
    to_numpy,
    wide_dtype,
)
from surff.blocks import rows_of
from surff.fourier import ArrayFourierMap, FourierMap
from surff.normal_equations import NormalEquations, accumulate
from surff.solvers import solver_beside
from surff.variable_projection import (
    Adam,
    compiled,
    cosine_schedule,
    projected_objective,
)
from surff.warp import WarpedMap, warp_gradient, warped

__all__ = ["ADAPTATIONS", "AgopAdaptation", "AutoAdaptation", "GradientAdaptation"]

#: Rows on which a score is fitted, or this many for each column if that is more, and
#: rows on which it is tested.
SCORE_ROWS, SCORE_ROWS_PER_COLUMN, TEST_ROWS = 16384, 8, 8192

#: Rows to hold out at least, and the share of all rows that this may come to.
LEAST_TEST, LARGEST_SHARE = 500, 0.3

#: Numbers up to which the rows are put in units of their spreads once and kept.
SMALL_DATA = 2**22

#: Rows of a batch: at least, for each column, and for each up to a size that is
#: cheap. With fewer, coefficients fit the noise of a batch, and frequencies learn it.
BATCH_ROWS, BATCH_ROWS_PER_COLUMN = 512, 8
CHEAP_ROWS, CHEAP_ROWS_PER_COLUMN = 2048, 16

#: adapt="auto": lengths of frequencies to start from, in radians per spread of the
#: columns, the error they must come down to for it, and multiplications that the Gram
#: matrices of batches may take.
LENGTHS, WORTH, MULTIPLICATIONS = (math.sqrt(2.0), math.sqrt(2.0) / 4), 0.9, 3 * 10**11

#: Steps of the frequencies for one of the warp: its gradient costs as much as theirs.
WARP_EVERY = 4

#: Rates of a warp, per spread of the columns: at first, and at least and at most. With
#: the least a column is straight, with the most it is little more than a sign.
FIRST_RATE, LEAST_RATE, LARGEST_RATE = 0.5, 1e-2, 1e3

#: Regularisations that a score tries, in mean eigenvalues of the Gram matrix.
SCORE_ALPHAS = 10.0 ** np.arange(-6.0, 1.0)

#: Ends of alpha="auto": below, batches are singular in float32; above, nothing moves.
LEAST_ALPHA, LARGEST_ALPHA = 1e-5, 1e-1

#: Rows that tell the spread of a column.
SPREAD_ROWS = 4096


class Score(NamedTuple):
    """How frequencies do on the rows held out, and the fit that was tested."""

    error: float  # mean squared error, in variances of the targets
    alpha: float  # in mean eigenvalues of the Gram matrix
    coef: np.ndarray  # (2 s, n_targets)
    equations: NormalEquations  # of the rows fitted


class Found(NamedTuple):
    """Frequencies and warp, if any, in units of a problem's rows, and their score."""

    frequencies: np.ndarray  # (n_frequencies, n_features)
    warp: np.ndarray | None  # (2, n_features)
    score: Score


class InnerProblem:
    """Rows in units of their columns' spread, some of them held out.

    Frequencies and warps here are in units of these rows; `inward` and `outward`
    convert.

    Parameters
    ----------
    X : array or CSR matrix of shape (n_samples, n_features)
        Data.
    Y : ndarray of shape (n_samples, n_targets)
        Targets. Labels coded -1 and 1 stay as they are, other columns are
        standardised.
    rng : numpy.random.Generator
        Chooses the rows held out.
    sample_weight : ndarray of shape (n_samples,), optional
        Row weights.
    validation_fraction : float
        Share of the rows to hold out, in (0, 1).
    dtype : {"float32", "float64"}
        In which to compute.
    """

    def __init__(self, X, Y, rng, sample_weight, validation_fraction, dtype):
        rows = np.arange(X.shape[0])
        if sample_weight is not None:
            rows = np.flatnonzero(sample_weight)
        if len(rows) < 2:
            raise ValueError(
                "adapt holds rows out and needs at least 2 of positive weight, got "
                f"n_samples = {len(rows)}."
            )
        rows = rng.permutation(rows)
        share = max(validation_fraction, min(LARGEST_SHARE, LEAST_TEST / len(rows)))
        n_test = min(len(rows) - 1, math.ceil(share * len(rows)))
        self.X, self.dtype = X, np.dtype(dtype)
        self._dtype_there = getattr(namespace_of(X), dtype)
        self.weight = sample_weight
        self.test, self.train = rows[:n_test], rows[n_test:]
        self.centre, self.unit = _spread(X, rows)
        # Beside X, for every batch.
        self._centre, self._inverse_unit = (
            asarray_like(values, X, wide_dtype(X))
            for values in (self.centre, 1.0 / self.unit)
        )
        self.Y = _standard_targets(Y, sample_weight)
        self._sides, self._all = {}, None
        if not sparse.issparse(X) and math.prod(X.shape) <= SMALL_DATA:
            self._all = self._rows(np.arange(X.shape[0]))

    def inward(self, frequencies):
        """Frequencies of the data as frequencies of these rows, float64."""
        return np.asarray(frequencies, dtype=np.float64) * self.unit

    def outward(self, found, dtype):
        """Frequencies, in ``dtype``, and warp in units of the data."""
        frequencies, warp = found.frequencies / self.unit, found.warp
        if warp is not None:
            warp = np.stack([self.centre + self.unit * warp[0], warp[1] / self.unit])
        return frequencies.astype(dtype), warp

    def first_warp(self):
        """A warp to start from: columns bend beyond two spreads from their centres.

        None for sparse rows, which it would fill.
        """
        if sparse.issparse(self.X):
            return None
        n_features = self.X.shape[1]
        return np.stack([np.zeros(n_features), np.full(n_features, FIRST_RATE)])

    def beside(self, values):
        """An array of the host where the rows are, in the dtype of the problem."""
        return asarray_like(values, self.X, self._dtype_there)

    def batch(self, index):
        """Rows, targets and weights of some rows, in the dtype of the problem.

        The rows are where the data are, the others on the host.
        """
        X = self._rows(index) if self._all is None else rows_of(self._all, index)
        weight = None if self.weight is None else self.weight[index].astype(self.dtype)
        return X, self.Y[index].astype(self.dtype), weight

    def _rows(self, index):
        """Rows in units of the spreads, in the dtype of the problem."""
        if isinstance(self.X, np.ndarray):
            out = np.empty((len(index), self.X.shape[1]), self.dtype)
            units = self._centre, self._inverse_unit
            return _standard_rows(np.asarray(self.X), index, *units, out)
        X = rows_of(self.X, index)
        if sparse.issparse(X):
            return X.multiply(self._inverse_unit).tocsr().astype(self.dtype)
        X = X - self._centre
        X *= self._inverse_unit
        return namespace_of(X).astype(X, self._dtype_there, copy=False)

    def _side(self, name, limit):
        """At most ``limit`` of the rows of a side, as a batch that is kept."""
        if name not in self._sides:
            self._sides[name] = self.batch(np.sort(getattr(self, name)[:limit]))
        return self._sides[name]

    def found(self, frequencies, warp=None):
        """`Found` with the score of frequencies and a warp."""
        return Found(frequencies, warp, self.score(frequencies, warp))

    def score(self, frequencies, warp=None):
        """Error on the rows held out, of the best of a few regularisations.

        Parameters
        ----------
        frequencies : ndarray of shape (n_frequencies, n_features)
            Per unit of these rows.
        warp : ndarray of shape (2, n_features), optional
            In units of these rows.

        Returns
        -------
        Score
        """
        frequencies = np.ascontiguousarray(frequencies, dtype=self.dtype)
        feature_map = FourierMap(frequencies)
        if other_namespace(self.X) is not None:
            feature_map = ArrayFourierMap(self.beside(frequencies))
        if warp is not None:
            feature_map = WarpedMap(feature_map, self.beside(warp))
        m = feature_map.n_components
        limit = max(SCORE_ROWS, SCORE_ROWS_PER_COLUMN * m)
        fitted = accumulate(feature_map, *self._side("train", limit))
        tested = accumulate(feature_map, *self._side("test", TEST_ROWS))
        coefs, intercepts = coefficient_path(
            fitted,
            SCORE_ALPHAS * fitted.weight_sum / m,
            solver=solver_beside("cholesky", self.X),
        )
        errors = squared_errors(tested, coefs, intercepts).sum(axis=1)
        errors = np.where(np.isfinite(errors), errors, np.inf) / tested.weight_sum
        best = int(np.argmin(errors))
        return Score(
            float(errors[best]), float(SCORE_ALPHAS[best]), coefs[:, best], fitted
        )


@compiled
def _standard_rows(X, index, centre, inverse_unit, out):
    """Rows less the centre, times the inverse unit, in float64 and then as ``out``."""
    for i in range(len(index)):
        row, result = X[index[i]], out[i]
        for j in range(len(row)):
            result[j] = (row[j] - centre[j]) * inverse_unit[j]
    return out


def _spread(X, rows):
    """Centre and unit of each column, from a sample of the rows.

    The centre is the median. The unit is the standard deviation, or the interquartile
    range over that of a normal law where that is smaller: a few values far out must not
    make it. Sparse columns are not centred, and their deviation alone is used. The
    sample visits the host.
    """
    sample = to_numpy(rows_of(X, np.sort(rows[:SPREAD_ROWS]))).astype(np.float64)
    if sparse.issparse(sample):
        mean = np.asarray(sample.mean(axis=0)).ravel()
        square = np.asarray(sample.multiply(sample).mean(axis=0)).ravel()
        unit = np.sqrt((square - mean**2).clip(min=0.0))
        unit = np.where(unit > 1e-6 * np.sqrt(square), unit, 1.0)
        return np.zeros_like(unit), unit
    unit = sample.std(axis=0)
    low, median, high = np.percentile(sample, [25, 50, 75], axis=0)
    middle = (high - low) / 1.349
    unit = np.where((middle > 0) & (middle < unit), middle, unit)
    return median, np.where(unit > 1e-6 * np.abs(median), unit, 1.0)


def _standard_targets(Y, sample_weight):
    """Targets as the objective takes them: labels as they are, others standardised."""
    if np.all(np.abs(Y) == 1.0):
        return Y
    Y = Y - np.average(Y, axis=0, weights=sample_weight)
    deviation = np.sqrt(np.average(Y**2, axis=0, weights=sample_weight))
    return Y / np.where(deviation > 0, deviation, 1.0)


def _fraction(argument, value):
    """``value`` if it lies between 0 and 1."""
    if positive(argument, value) >= 1:
        raise ValueError(f"{argument} must lie between 0 and 1, got {value!r}.")
    return float(value)


def _count(argument, value):
    """``value`` if it is an integer of at least 1."""
    if not isinstance(value, numbers.Integral) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{argument} must be an integer >= 1, got {value!r}.")
    return int(value)


class GradientAdaptation(BaseEstimator):
    r"""Learn the frequencies: descent on the ridge objective, coefficients eliminated.

    Each step takes a batch of rows, solves its small ridge problem and moves the
    frequencies along the closed-form gradient of the objective at that solution, see
    `surff.variable_projection`. The rate of Adam rises and falls along a cosine; now
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
        Whether to learn a warp of the columns, too, see `surff.warp`. Columns of sparse
        rows stay as they are, a warp would fill them.
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


def _error(found):
    """Error of a `Found`."""
    return found.score.error


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
            See `surff.warp.warp_gradient`.
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


def _inner_problem(adaptation, X, Y, rng, sample_weight):
    """The `InnerProblem` that an adaptation's parameters ask for."""
    if adaptation.dtype not in ("float32", "float64"):
        raise ValueError(
            f"dtype must be 'float32' or 'float64', got {adaptation.dtype!r}."
        )
    if adaptation.dtype == "float64" and not supports_float64(X):
        raise ValueError(
            "dtype='float64' needs a device that has float64: use 'float32', got X on "
            f"{X.device}."
        )
    return InnerProblem(
        X,
        Y,
        rng,
        sample_weight,
        _fraction("validation_fraction", adaptation.validation_fraction),
        adaptation.dtype,
    )


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


class AgopAdaptation(BaseEstimator):
    r"""Give the draw the covariance of the fitted function's gradients.

    Fits, takes the average gradient outer product M of the fit (see `surff.agop`),
    replaces the drawn frequencies :math:`w_i` by :math:`T w_i` with
    :math:`T T^\top \propto M` and fits again, for a few rounds. The kernel becomes
    :math:`k(T x, T x')`: directions along which the target does not change no longer
    count. Frequencies of any Gaussian mixture, and of any draw of it, stay a draw of
    the same kind; for kernels that are products over features use ``diagonal=True``.

    Parameters
    ----------
    n_rounds : int, default=3
        Rounds of fit and change.
    diagonal : bool, default=False
        Scale the columns alone, instead of any linear map of them.
    power : float, default=1.0
        Exponent of M in the covariance, > 0.
    factors : array-like of shape (n_factors,), default=(0.5, 1.0, 2.0)
        Lengths of the changed frequencies that each round tries, > 0, relative to the
        root mean square of those drawn.
    validation_fraction : float, default=0.1
        Share of the rows held out; up to 0.3 where that makes less than 500 rows.
    dtype : {"float32", "float64"}, default="float32"
        In which to compute features.
    verbose : bool, default=False
        Whether to print a line for each round.

    Notes
    -----
    A round costs a fit a factor, ``O(n s (s + d) + s^3)``, on at most the larger of
    16,384 rows and 8 a column.

    Examples
    --------
    >>> import numpy as np
    >>> from surff import AgopAdaptation, FourierFeatures, KernelRidgeRegressor
    >>> X = np.random.default_rng(0).normal(size=(600, 20))
    >>> y = np.sin(X[:, 0] - X[:, 1])
    >>> features = FourierFeatures(200, random_state=0)
    >>> plain = KernelRidgeRegressor(features, cv="gcv").fit(X[:400], y[:400])
    >>> features = FourierFeatures(200, adapt=AgopAdaptation(), random_state=0)
    >>> adapted = KernelRidgeRegressor(features, cv="gcv").fit(X[:400], y[:400])
    >>> adapted.score(X[400:], y[400:]) > 0.95 > plain.score(X[400:], y[400:])
    True
    """

    needs_target = True
    takes_arrays = True

    def __init__(
        self,
        n_rounds=3,
        diagonal=False,
        power=1.0,
        factors=(0.5, 1.0, 2.0),
        validation_fraction=0.1,
        dtype="float32",
        verbose=False,
    ):
        self.n_rounds = n_rounds
        self.diagonal = diagonal
        self.power = power
        self.factors = factors
        self.validation_fraction = validation_fraction
        self.dtype = dtype
        self.verbose = verbose

    def adapt(self, frequencies, X, Y, rng, sample_weight=None):
        """Change the covariance of frequencies; see `GradientAdaptation.adapt`."""
        problem = _inner_problem(self, X, Y, rng, sample_weight)
        start = problem.found(problem.inward(frequencies))
        found = self.search(problem, start)
        if found is start:
            return frequencies, None
        return problem.outward(found, frequencies.dtype)

    def search(self, problem, start):
        """Best `Found` of the start and the rounds; its warp stays."""
        power = positive("power", self.power)
        factors = [positive("factors", factor) for factor in self.factors]
        if not factors:
            raise ValueError("factors must hold at least one number, got none.")
        drawn, warp, _ = current = best = start
        for i in range(_count("n_rounds", self.n_rounds)):
            M = average_gradient_outer_product(
                current.frequencies,
                current.score.coef,
                current.score.equations.gram,
                current.score.equations.weight_sum,
                self.diagonal,
            )
            T = root_transform(M, power)
            changed = drawn * T if self.diagonal else drawn @ T
            current = min(
                (problem.found(f * changed, warp) for f in factors), key=_error
            )
            best = min(best, current, key=_error)
            if self.verbose:
                print(
                    f"adapt: round {i + 1}, held-out error {_error(current):.4f}, best "
                    f"{_error(best):.4f}"
                )
        return best


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
        Whether to bend the columns, see `surff.warp`. Those of sparse rows stay as they
        are, a warp would fill them.
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


#: Adaptations by name.
ADAPTATIONS = {
    "agop": AgopAdaptation,
    "auto": AutoAdaptation,
    "gradient": GradientAdaptation,
}
