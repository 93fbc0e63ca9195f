"""What turns one column into numbers; each holds transformers of scikit-learn.

A coder is fitted to the rows that the encoder looks at. `encode` takes a `Column` of
the same kind and gives float64 columns, always finite. Text is encoded once per
different value.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.preprocessing import (
    OneHotEncoder,
    QuantileTransformer,
    StandardScaler,
    TargetEncoder,
)

from surff.tables.columns import Column

__all__ = [
    "CategoryCoder",
    "Coder",
    "DateCoder",
    "NumberCoder",
    "TargetCoder",
    "TruthCoder",
]

#: Level of a cell without a value.
MISSING = "(missing)"

#: Distance from the median, in spreads of the middle half, that makes a heavy tail.
HEAVY = 10.0

#: Points of a map to normal quantiles.
N_QUANTILES = 200

#: Days from which on a part of a date can differ from the date itself.
WEEK, YEAR = 14, 365

#: Days of a year, on average.
YEAR_DAYS = 365.25


class Coder(ABC):
    """Base of what turns a column into numbers.

    Attributes
    ----------
    name : str
        Name of the column.
    kind : str
        What it must hold, see `Column`.
    names_out : list of str
        Names of the columns of numbers.
    made : str
        What is made of the column, in a line.
    """

    kind = "number"

    def __init__(self, name: str) -> None:
        self.name = name
        self.names_out = [name]
        self.made = ""

    @abstractmethod
    def fit(self, column: Column) -> Coder:
        """Learn from the rows looked at."""

    @abstractmethod
    def encode(self, column: Column, folds: np.ndarray | None = None) -> np.ndarray:
        """Numbers, shape (n_rows, n_columns).

        ``folds`` are the folds of rows that the coder was fitted to.
        """

    def fault(self) -> str | None:
        """What contradicts itself in a coder from a file, if anything."""
        names = self.names_out
        if not (isinstance(names, list) and all(isinstance(n, str) for n in names)):
            return "names_out must be a list of names"
        try:
            row = self.encode(self._example())
        except Exception as error:  # a transformer from a file may hold anything
            return f"cannot encode a row: {type(error).__name__}: {error}"
        if row.shape != (1, len(names)) or not np.isfinite(row).all():
            return f"must encode a row as {len(names)} finite numbers"
        return None

    def _example(self):
        """A column of one missing value."""
        return Column("empty", np.full(1, np.nan))


class Filled(Coder):
    """Base of coders of numbers: missing values filled and flagged."""

    strategy = "median"

    def _fit_filling(self, column):
        """Learn how gaps are filled; values without them."""
        values = column.values[:, None]
        self.imputer = SimpleImputer(strategy=self.strategy).fit(values)
        self.flag = None
        if np.isnan(values).any():
            self.flag = MissingIndicator(features="all").fit(values)
        return self.imputer.transform(values)

    def encode(self, column: Column, folds: np.ndarray | None = None) -> np.ndarray:
        """Numbers of the values, and the flag of gaps; see `Coder.encode`."""
        del folds  # no target
        values = column.values[:, None]
        parts = self._of_filled(self.imputer.transform(values))
        if self.flag is not None:
            parts.append(self.flag.transform(values).astype(float))
        return np.hstack(parts)

    @abstractmethod
    def _of_filled(self, filled: np.ndarray) -> list[np.ndarray]:
        """Columns of numbers from values without gaps."""

    def _gaps(self, column):
        n = int(column.missing.sum())
        if not n:
            return "no gaps"
        s = "" if n == 1 else "s"
        share = 100 * n / len(column.values)
        text = f"{n:,} gap{s}" if share >= 0.1 else f"{n:,} gap{s} (under 0.1 %)"
        filling = "the median" if self.strategy == "median" else "the commonest value"
        return f"{text} filled by {filling} and flagged"

    def _flag_names(self):
        return [] if self.flag is None else [f"{self.name}_missing"]


class NumberCoder(Filled):
    """Numbers: gaps filled by the median and flagged, then scaled.

    To mean 0 and variance 1; where a tail is heavy, to normal quantiles.
    """

    def fit(self, column: Column) -> NumberCoder:
        """Learn the median and the scale."""
        filled = self._fit_filling(column)
        heavy = is_heavy(filled[:, 0])
        self.scaler = StandardScaler()
        if heavy:
            self.scaler = QuantileTransformer(
                n_quantiles=min(N_QUANTILES, len(filled)),
                output_distribution="normal",
                random_state=0,
            )
        self.scaler.fit(filled)
        self.names_out = [self.name, *self._flag_names()]
        scaled = "heavy tail, to normal quantiles" if heavy else "standardised"
        self.made = f"numbers, {self._gaps(column)}; {scaled}"
        return self

    def _of_filled(self, filled):
        return [self.scaler.transform(filled)]


class TruthCoder(Filled):
    """True and False as 1 and 0: gaps filled by the commoner one and flagged."""

    kind, strategy = "truth", "most_frequent"

    def fit(self, column: Column) -> TruthCoder:
        """Learn which is commoner."""
        self._fit_filling(column)
        self.names_out = [self.name, *self._flag_names()]
        self.made = f"True and False as 1 and 0, {self._gaps(column)}"
        return self

    def _of_filled(self, filled):
        return [filled]


class DateCoder(Filled):
    """Dates as parts: days, the place in the year, the week and the day.

    A part that goes around is a cosine and a sine. Parts that the span of the dates
    does not hold are left out.
    """

    kind = "date"

    def fit(self, column: Column) -> DateCoder:
        """Learn the span."""
        filled = self._fit_filling(column)
        self.scaler = StandardScaler().fit(filled)
        span = float(filled.max() - filled.min())
        self.periods = {}
        if span > YEAR:
            self.periods["year"] = YEAR_DAYS
        if span > WEEK:
            self.periods["week"] = 7.0
        if (filled % 1 > 0).any():
            self.periods["day"] = 1.0
        parts = [f"{self.name}_{part}_{f}" for part in self.periods for f in CIRCLE]
        self.names_out = [f"{self.name}_days", *parts, *self._flag_names()]
        around = "".join(f", place in the {part}" for part in self.periods)
        self.made = f"dates, {self._gaps(column)}; as days since 1970{around}"
        return self

    def _of_filled(self, filled):
        turns = [2 * np.pi * filled / period for period in self.periods.values()]
        around = [f(turn) for turn in turns for f in (np.cos, np.sin)]
        return [self.scaler.transform(filled), *around]


#: Ends of the names of a part that goes around.
CIRCLE = ("cos", "sin")


class TextCoder(Coder):
    """Base of coders of categories: each different value is encoded once."""

    kind = "text"

    def encode(self, column: Column, folds: np.ndarray | None = None) -> np.ndarray:
        """Numbers of the level of each row; see `Coder.encode`."""
        codes, words = words_of(column)
        if folds is None:
            return self._of_words(words, None)[codes]
        out = np.empty((len(codes), len(self.names_out)))
        for fold in np.unique(folds):
            rows = folds == fold
            out[rows] = self._of_words(words, fold)[codes[rows]]
        return out

    @abstractmethod
    def _of_words(self, words: np.ndarray, fold: int | None) -> np.ndarray:
        """Numbers of each different value."""

    def _n_levels(self, column):
        """Number of different values, and of gaps, in words."""
        n, gaps = len(np.unique(column.values)), int(column.missing.sum())
        s = "" if gaps == 1 else "s"
        levels = f"{n - (gaps > 0):,} categories"
        return f"{levels}, {gaps:,} gap{s} as one more" if gaps else levels


class CategoryCoder(TextCoder):
    """Categories one-hot: rare ones together, and unknown ones with them.

    Parameters
    ----------
    name : str
    min_rows : int
        Rows that a category must have of its own.
    max_levels : int
        Columns at most.
    """

    def __init__(self, name: str, min_rows: int, max_levels: int) -> None:
        super().__init__(name)
        self.min_rows, self.max_levels = min_rows, max_levels

    def fit(self, column: Column) -> CategoryCoder:
        """Count the categories."""
        codes, words = words_of(column)
        self.encoder = OneHotEncoder(
            min_frequency=self.min_rows,
            max_categories=self.max_levels,
            handle_unknown="infrequent_if_exist",
            sparse_output=False,
        ).fit(words[codes][:, None])
        rare = self.encoder.infrequent_categories_[0]
        names = self.encoder.get_feature_names_out([self.name])
        self.names_out = [str(name) for name in names]
        if rare is not None:
            self.names_out[-1] = f"{self.name}_(rare)"
        together = f", {len(rare):,} rare together" if rare is not None else ""
        self.made = f"{self._n_levels(column)}; one-hot{together}"
        return self

    def _of_words(self, words, fold):
        del fold  # no target
        return self.encoder.transform(words[:, None])


class TargetCoder(TextCoder):
    """Categories as the mean of the target, shrunk, cross-fitted where it is learned.

    Parameters
    ----------
    name : str
    y : ndarray of shape (n_rows,)
        Targets of the rows looked at.
    target_type : {"continuous", "binary", "multiclass"}
        What they are.
    folds : ndarray of shape (n_rows,)
        Fold of each row.
    """

    def __init__(self, name: str, y: Any, target_type: str, folds: Any) -> None:
        super().__init__(name)
        self.target_type = target_type
        self._fitted_to = y, folds

    def fit(self, column: Column) -> TargetCoder:
        """Learn the mean of each category, of all rows and without each fold."""
        y, folds = self._fitted_to
        del self._fitted_to
        codes, words = words_of(column)
        values = words[codes][:, None]

        def encoder(rows):
            encoder = TargetEncoder(target_type=self.target_type, smooth="auto")
            return encoder.fit(values[rows], y[rows])

        self.encoder = encoder(slice(None))
        n_out = len(self.encoder.get_feature_names_out())
        self.fold_encoders = []
        for fold in range(folds.max() + 1):
            rows = folds != fold
            # A fold's complement may lack a class, and would have fewer columns.
            whole = (n_out == 1 and rows.any()) or set(y[rows]) == set(y)
            self.fold_encoders.append(encoder(rows) if whole else self.encoder)
        self.scaler = StandardScaler().fit(self.encoder.transform(values))
        self.names_out = [self.name]
        if n_out > 1:
            self.names_out = [f"{self.name}_{c}" for c in self.encoder.classes_]
        self.made = f"{self._n_levels(column)}; as the cross-fitted mean of the target"
        return self

    def _of_words(self, words, fold):
        encoder = self.encoder
        if fold is not None and fold < len(self.fold_encoders):
            encoder = self.fold_encoders[fold]
        return self.scaler.transform(encoder.transform(words[:, None]))


def words_of(column: Column) -> tuple[np.ndarray, np.ndarray]:
    """Place of each row's value among the different ones, and those, gaps included."""
    if column.kind == "empty":
        return np.zeros(len(column.values), dtype=np.int64), with_missing([])
    # Levels of other rows are not asked for.
    used, codes = np.unique(column.values, return_inverse=True)
    levels = with_missing(column.levels)
    return codes, levels[used]


def with_missing(levels: Any) -> np.ndarray:
    """Levels with the one of gaps at the end, where place -1 is."""
    return np.array([*levels, MISSING], dtype=object)


def is_heavy(values: np.ndarray) -> bool:
    """Whether some values are far out, in units of the middle half."""
    low, middle, high = np.quantile(values, [0.25, 0.5, 0.75])
    largest = np.abs(values - middle).max()
    spread = max(high - low, values.std() / 10)
    return bool(largest > HEAVY * spread)
