"""What adaptations optimise: rows in units of their spread, some of them held out.

An adaptation takes the frequencies that were drawn or selected and returns as many
others, and a warp of the columns (`surff.kernels.warp`) or None. It holds some rows out
and returns what has the smallest squared error on these; the first frequencies compete.
Rows of another array library than NumPy stay on their device, where whatever grows with
their number is computed; frequencies are on the host meanwhile.
"""

from __future__ import annotations

import math
import numbers
from abc import abstractmethod
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse

from surff.adaptation.base import Adaptation, Adapted
from surff.adaptation.objective import compiled
from surff.backend import (
    Array,
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
    "InnerAdaptation",
    "InnerProblem",
    "Score",
    "checked_count",
    "held_out_error",
    "not_negative",
]

#: Rows on which a score is fitted; more of them no longer change which score is best.
SCORE_ROWS = 16384

#: The same per column of features: with fewer rows the fit of a score has noise.
SCORE_ROWS_PER_COLUMN = 8

#: Most rows on which a score is tested: errors are then known to about one per cent.
TEST_ROWS = 8192

#: Fewest rows to hold out: with fewer, luck decides between scores.
LEAST_TEST = 500

#: Largest share of all rows held out for the sake of `LEAST_TEST`; the rest must fit.
LARGEST_SHARE = 0.3

#: Most numbers of rows that are put in units of their spreads once and kept: 32 MB.
SMALL_DATA = 2**22

#: First rate of a warp, per spread of the columns: bends beyond two spreads.
FIRST_RATE = 0.5

#: Smallest rate of a warp, per spread of the columns: with it a column is straight.
LEAST_RATE = 1e-2

#: Largest rate of a warp: with it a column is little more than its sign.
LARGEST_RATE = 1e3

#: Regularisations that a score tries, in mean eigenvalues of the Gram matrix: from the
#: rounding of float32 to a fit of almost nothing.
SCORE_ALPHAS = 10.0 ** np.arange(-6.0, 1.0)

#: Rows that give the spread of a column: enough for its quartiles.
SPREAD_ROWS = 4096


class Score(NamedTuple):
    """Error of frequencies on the rows held out, and the fit that was tested."""

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

    def __init__(
        self,
        X: Array,
        Y: np.ndarray,
        rng: np.random.Generator,
        sample_weight: np.ndarray | None,
        validation_fraction: float,
        dtype: str,
    ):
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
        self.centre, self.unit = column_spreads(X, rows)
        # On the device of X, for every batch.
        self._centre, self._inverse_unit = (
            asarray_like(values, X, wide_dtype(X))
            for values in (self.centre, 1.0 / self.unit)
        )
        self.Y = standard_targets(Y, sample_weight)
        self._sides, self._all = {}, None
        if not sparse.issparse(X) and math.prod(X.shape) <= SMALL_DATA:
            self._all = self._rows(np.arange(X.shape[0]))

    def inward(self, frequencies: np.ndarray) -> np.ndarray:
        """Frequencies of the data as frequencies of these rows, float64.

        Raises
        ------
        ValueError
            If their squared norms overflow in the dtype of the problem.
        """
        inward = np.asarray(frequencies, dtype=np.float64) * self.unit
        largest = np.abs(inward).max()
        if not largest < math.sqrt(np.finfo(self.dtype).max / inward.shape[1]):
            raise ValueError(
                "adapt moves frequencies in radians per spread of the columns, and the "
                f"largest of them, {largest:.3g}, is out of the range of {self.dtype}: "
                "use a smaller gamma or scale X."
            )
        return inward

    def outward(self, found: Found, dtype: npt.DTypeLike) -> Adapted:
        """Frequencies, in ``dtype``, and warp in units of the data."""
        frequencies, warp = found.frequencies / self.unit, found.warp
        if warp is not None:
            warp = np.stack([self.centre + self.unit * warp[0], warp[1] / self.unit])
        return Adapted(frequencies.astype(dtype), warp)

    def first_warp(self) -> np.ndarray | None:
        """A warp to start from: columns bend beyond two spreads from their centres.

        Returns None for sparse rows, which a warp would fill.
        """
        if sparse.issparse(self.X):
            return None
        n_features = self.X.shape[1]
        return np.stack([np.zeros(n_features), np.full(n_features, FIRST_RATE)])

    def beside(self, values: np.ndarray) -> Array:
        """Copy an array to where the rows are, in the dtype of the problem."""
        return asarray_like(values, self.X, self._dtype_there)

    def batch(self, index: np.ndarray) -> tuple[Array, np.ndarray, np.ndarray | None]:
        """Rows, targets and weights at an index, in the dtype of the problem.

        The rows stay where the data are; targets and weights are on the host.
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
        """At most ``limit`` rows of "train" or "test", as a batch that is kept."""
        if name not in self._sides:
            self._sides[name] = self.batch(np.sort(getattr(self, name)[:limit]))
        return self._sides[name]

    def found(self, frequencies: np.ndarray, warp: np.ndarray | None = None) -> Found:
        """Frequencies and a warp together with their score."""
        return Found(frequencies, warp, self.score(frequencies, warp))

    def score(self, frequencies: np.ndarray, warp: np.ndarray | None = None) -> Score:
        """Error on the rows held out, with the best of a few regularisations.

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


def column_spreads(X, rows):
    """Centre and unit of each column, from a sample of the rows.

    The centre is the median. The unit is the smaller of the standard deviation and the
    interquartile range over that of a normal law: a few values far out must not set it.
    Sparse columns are not centred, and only their deviation is used. The sample is
    copied to the host.
    """
    sample = to_numpy(rows_of(X, np.sort(rows[:SPREAD_ROWS]))).astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        is_sparse = sparse.issparse(sample)
        centre, unit = (_sparse_spreads if is_sparse else _dense_spreads)(sample)
    finite = np.isfinite(centre) & np.isfinite(unit)
    if not finite.all():
        raise ValueError(
            "adapt puts the columns of X in units of their spread, and the spread of "
            f"column {int(np.argmin(finite))} overflows: scale X."
        )
    return centre, unit


def _sparse_spreads(sample):
    mean = np.asarray(sample.mean(axis=0)).ravel()
    square = np.asarray(sample.multiply(sample).mean(axis=0)).ravel()
    unit = np.sqrt((square - mean**2).clip(min=0.0))
    constant = np.isfinite(square) & (unit <= 1e-6 * np.sqrt(square))
    unit = np.where(constant, 1.0, unit)
    return np.zeros_like(unit), unit


def _dense_spreads(sample):
    unit = sample.std(axis=0)
    low, median, high = np.percentile(sample, [25, 50, 75], axis=0)
    middle = (high - low) / 1.349
    unit = np.where((middle > 0) & (middle < unit), middle, unit)
    return median, np.where(unit > 1e-6 * np.abs(median), unit, 1.0)


def standard_targets(Y, sample_weight):
    """Targets as the objective takes them: labels unchanged, others standardised."""
    if np.all(np.abs(Y) == 1.0):
        return Y
    with np.errstate(over="ignore", invalid="ignore"):
        Y = Y - np.average(Y, axis=0, weights=sample_weight)
        deviation = np.sqrt(np.average(Y**2, axis=0, weights=sample_weight))
    if not np.isfinite(deviation).all():
        raise ValueError("adapt standardises y, and its variance overflows: scale y.")
    return Y / np.where(deviation > 0, deviation, 1.0)


def _fraction(argument, value):
    """``value`` if it lies between 0 and 1."""
    if positive(argument, value) >= 1:
        raise ValueError(f"{argument} must lie between 0 and 1, got {value!r}.")
    return float(value)


def checked_count(argument: str, value: object) -> int:
    """``value`` if it is an integer of at least 1."""
    if not isinstance(value, numbers.Integral) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{argument} must be an integer >= 1, got {value!r}.")
    return int(value)


def not_negative(argument: str, value: object) -> float:
    """``value`` if it is a finite number of at least 0."""
    if (
        not isinstance(value, numbers.Real)
        or isinstance(value, bool)
        or not 0.0 <= value < math.inf
    ):
        raise ValueError(f"{argument} must be a finite number >= 0, got {value!r}.")
    return float(value)


def held_out_error(found: Found) -> float:
    """Error of a `Found` on the rows held out."""
    return found.score.error


class InnerAdaptation(Adaptation):
    """An adaptation of the best frequencies that are found on an `InnerProblem`.

    Subclasses have parameters ``validation_fraction`` and ``dtype``.
    """

    takes_arrays = True

    def adapt(
        self,
        frequencies: np.ndarray,
        X: Array,
        Y: Array,
        rng: np.random.Generator,
        sample_weight: np.ndarray | None = None,
    ) -> Adapted:
        """Move frequencies to where the data want them; see `Adaptation.adapt`."""
        if self.dtype not in ("float32", "float64"):
            raise ValueError(
                f"dtype must be 'float32' or 'float64', got {self.dtype!r}."
            )
        if self.dtype == "float64" and not supports_float64(X):
            raise ValueError(
                "dtype='float64' needs a device that has float64: use 'float32', got X "
                f"on {X.device}."
            )
        share = _fraction("validation_fraction", self.validation_fraction)
        problem = InnerProblem(X, Y, rng, sample_weight, share, self.dtype)
        plain = problem.found(problem.inward(frequencies))
        found = self._best(problem, plain, frequencies, rng)
        if held_out_error(found) >= held_out_error(plain):
            return Adapted(frequencies)
        return problem.outward(found, frequencies.dtype)

    @abstractmethod
    def _best(
        self,
        problem: InnerProblem,
        plain: Found,
        frequencies: np.ndarray,
        rng: np.random.Generator,
    ) -> Found:
        """Best `Found` on the way from ``plain``, the given frequencies."""
