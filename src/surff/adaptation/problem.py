"""What adaptations optimise: rows in units of their spread, some of them held out.

An adaptation takes the frequencies that were drawn or selected and returns as many
others, and a warp of the columns (`surff.kernels.warp`) or None. Each holds some rows
out and returns what has the smallest squared error on these, the first frequencies
included. Rows of another array library than NumPy stay on their device, where what
grows with their number is computed; frequencies are on the host meanwhile.
"""

import math
import numbers
from typing import NamedTuple

import numpy as np
from scipy import sparse

from surff.adaptation.objective import (
    compiled,
)
from surff.backend import (
    asarray_like,
    namespace_of,
    other_namespace,
    positive,
    rows_of,
    supports_float64,
    to_numpy,
    wide_dtype,
)
from surff.kernels import ArrayFourierMap, FourierMap, WarpedMap
from surff.linear import (
    NormalEquations,
    accumulate,
    coefficient_path,
    solver_beside,
    squared_errors,
)

__all__ = [
    "LARGEST_RATE",
    "LEAST_RATE",
    "Found",
]

#: Rows on which a score is fitted, or this many for each column if that is more, and
#: rows on which it is tested.
SCORE_ROWS, SCORE_ROWS_PER_COLUMN, TEST_ROWS = 16384, 8, 8192

#: Rows to hold out at least, and the share of all rows that this may come to.
LEAST_TEST, LARGEST_SHARE = 500, 0.3

#: Numbers up to which the rows are put in units of their spreads once and kept.
SMALL_DATA = 2**22

#: Rates of a warp, per spread of the columns: at first, and at least and at most. With
#: the least a column is straight, with the most it is little more than a sign.
FIRST_RATE, LEAST_RATE, LARGEST_RATE = 0.5, 1e-2, 1e3

#: Regularisations that a score tries, in mean eigenvalues of the Gram matrix.
SCORE_ALPHAS = 10.0 ** np.arange(-6.0, 1.0)

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


def _error(found):
    """Error of a `Found`."""
    return found.score.error


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
