"""Frames to numbers, column by column, with scikit-learn's transformers."""

from __future__ import annotations

import functools
import numbers
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin, _fit_context
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from surff.estimators import ChecksItself
from surff.streaming import SourceError, row_keys
from surff.tables.coders import Coder
from surff.tables.columns import (
    KINDS,
    Columns,
    ColumnsError,
    columns_of,
    joined,
)
from surff.tables.dates import dates_of
from surff.tables.plans import Looked, Plan, as_text, folds_by_number, listed

__all__ = ["ColumnSample", "TableEncoder"]


#: Different targets that are kept.
MOST_LABELS = 1000


class TableEncoder(ChecksItself, TransformerMixin, BaseEstimator):
    """Turn a table of any columns into numbers that models take.

    Every column is looked at once and gets what suits it:

    - numbers: gaps filled by the median and flagged; mean 0 and variance 1, or normal
      quantiles where a tail is heavy;
    - text of few values: one-hot, rare and unknown values together; of many: the mean
      of the target, cross-fitted;
    - True and False: 1 and 0; dates: days since 1970 and the place in the year, the
      week and the day;
    - constants, copies of other columns, row numbers and text that differs in every
      row are left out. Text of sentences is refused.

    `describe` says what was made of each column.

    Parameters
    ----------
    max_levels : int, default=30
        Different values of text that are encoded one-hot.
    min_frequency : float, default=0.005
        Share of the rows that a value must have of its own, 3 rows at least; rarer
        ones count as one.
    text : {"error", "drop"}, default="error"
        What to do with a column of sentences.
    categorical : sequence of str, default=()
        Columns of numbers or dates whose values are categories, such as codes.
    drop : sequence of str, default=()
        Columns to leave out.
    target_type : {"auto", "continuous", "classes"}, default="auto"
        What the targets are, for means of them; "auto" takes floats for numbers, and
        integers and text for classes.
    n_sample : int, default=100_000
        Rows looked at, drawn uniformly by their numbers if there are more.

    Attributes
    ----------
    coders_ : list of Coder
        One per column that is used.
    made_ : dict of str to str
        What was made of each column of the table, in a line.
    n_features_in_ : int
        Columns of the table.
    feature_names_in_ : ndarray of str
        Their names.

    See Also
    --------
    surff.table_model : A model that encodes its table.

    Notes
    -----
    What is learned does not depend on the blocks that rows come in: `fit` and
    `fit_stream` look at the same rows. Time is ``O(n_sample)`` to fit, and linear in
    the cells to transform; text is encoded once per different value of a block.

    Examples
    --------
    >>> import pandas as pd
    >>> from surff.tables import TableEncoder
    >>> table = pd.DataFrame({
    ...     "age": [30.0, None, 50.0, 40.0] * 5,
    ...     "town": ["Oslo", "Rome", "Oslo", "Rome"] * 5,
    ...     "year": [2020] * 20,
    ... })
    >>> encoder = TableEncoder().fit(table)
    >>> print(encoder.describe())
    age : numbers, 5 gaps filled by the median and flagged; standardised
    town: 2 categories; one-hot
    year: left out: constant
    >>> encoder.get_feature_names_out().tolist()
    ['age', 'age_missing', 'town_Oslo', 'town_Rome']
    """

    _parameter_constraints: dict = {  # noqa: RUF012  (scikit-learn's convention)
        "max_levels": [Interval(numbers.Integral, 2, None, closed="left")],
        "min_frequency": [Interval(numbers.Real, 0, 1, closed="left")],
        "text": [StrOptions({"error", "drop"})],
        "categorical": ["array-like"],
        "drop": ["array-like"],
        "target_type": [StrOptions({"auto", "continuous", "classes"})],
        "n_sample": [Interval(numbers.Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        *,
        max_levels: int = 30,
        min_frequency: float = 0.005,
        text: str = "error",
        categorical: Sequence[str] = (),
        drop: Sequence[str] = (),
        target_type: str = "auto",
        n_sample: int = 100_000,
    ) -> None:
        self.max_levels = max_levels
        self.min_frequency = min_frequency
        self.text = text
        self.categorical = categorical
        self.drop = drop
        self.target_type = target_type
        self.n_sample = n_sample

    # -- fitting -----------------------------------------------------------------------

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None) -> Self:
        """Look at the columns of a table.

        Parameters
        ----------
        X : frame of pandas, polars or pyarrow, or array, of shape (n_rows, n_columns)
            Table.
        y : array-like of shape (n_rows,), optional
            Targets, for columns of many categories.

        Returns
        -------
        self

        Raises
        ------
        ColumnsError
            Naming the column that cannot be used, and what helps.
        """
        sample = ColumnSample(self.n_sample)
        sample.update(0, columns_of(X), as_targets(y))
        return self._fit_sample(sample)

    @_fit_context(prefer_skip_nested_validation=True)
    def fit_transform(self, X: Any, y: Any = None) -> np.ndarray:
        """Look at the columns of a table, and encode it; means of ``y`` cross-fitted.

        Parameters
        ----------
        X : frame or array of shape (n_rows, n_columns)
            Table.
        y : array-like of shape (n_rows,), optional
            Targets.

        Returns
        -------
        Z : ndarray of shape (n_rows, n_features_out)
            Numbers, finite, float64.
        """
        columns = columns_of(X)
        self.fit(columns, y)
        return self.encode(columns, rows=0)

    @_fit_context(prefer_skip_nested_validation=True)
    def fit_blocks(self, blocks: Iterable[Any]) -> Self:
        """Look at a source's blocks of rows, once.

        Parameters
        ----------
        blocks : iterable of surff.streaming.Block
            Frames and targets.

        Returns
        -------
        self
        """
        return self._fit_sample(ColumnSample.of_blocks(blocks, self.n_sample))

    def fit_sample(self, sample: ColumnSample) -> Self:
        """Look at the rows of a sample."""
        self._validate_params()
        return self._fit_sample(sample)

    def _fit_sample(self, sample):
        looked = sample.looked()
        columns = looked.columns
        if not (columns and looked.n_rows):
            what = "0 sample(s)" if columns else f"0 feature(s) ({looked.n_rows}, 0)"
            raise ColumnsError(
                f"the table is empty: {what} while a minimum of 1 is required."
            )
        unknown = [
            name for name in [*self.categorical, *self.drop] if name not in columns
        ]
        if unknown:
            raise ColumnsError(
                f"categorical and drop must name columns of the table, got {unknown}; "
                f"there are {listed(columns)}."
            )
        coders, made = [], {}
        plan = Plan(self, looked)
        for name, column in columns.items():
            fate = plan.fate(name, column)
            if isinstance(fate, str):
                made[name] = f"left out: {fate}"
                continue
            coders.append(fate)
            made[name] = fate.made
        if not coders:
            raise ColumnsError(
                "no column of the table can be used, of n_samples="
                f"{looked.n_rows} rows: "
                + "; ".join(f"{name!r}: {line}" for name, line in made.items())
            )
        self.coders_, self.made_ = coders, made
        self.n_features_in_ = len(columns)
        self.feature_names_in_ = np.array([*columns], dtype=object)
        self._n_features_out = len(self.get_feature_names_out())
        return self

    # -- use ---------------------------------------------------------------------------

    def transform(self, X: Any) -> np.ndarray:
        """Encode a table.

        Parameters
        ----------
        X : frame or array of shape (n_rows, n_columns)
            Table with the columns that were used in fit, of the same kinds; further
            columns of a frame are not looked at, and their order does not matter.

        Returns
        -------
        Z : ndarray of shape (n_rows, n_features_out)
            Numbers, finite, float64.

        Raises
        ------
        ColumnsError
            Naming a column that is missing or holds something else.
        """
        check_is_fitted(self)
        return self.encode(columns_of(X))

    def encode(self, columns: Columns, rows: Any = None) -> np.ndarray:
        """Encode columns.

        Parameters
        ----------
        columns : Columns
            From `columns_of`.
        rows : int or ndarray of int, shape (n_rows,), optional
            Numbers of the rows in the table that was fitted, or that of the first:
            means of the target are then those of the other folds.

        Returns
        -------
        Z : ndarray of shape (n_rows, n_features_out)
        """
        missing = [coder.name for coder in self.coders_ if coder.name not in columns]
        self._check_names(columns, missing)
        n_rows = columns.n_rows
        folds = None
        if rows is not None:
            if np.ndim(rows) == 0:
                rows = np.arange(rows, rows + n_rows)
            folds = folds_by_number(rows)
        Z = np.empty((n_rows, self._n_features_out))
        start = 0
        for coder in self.coders_:
            stop = start + len(coder.names_out)
            column = self._checked(columns[coder.name], coder)
            if n_rows:
                Z[:, start:stop] = coder.encode(column, folds)
            start = stop
        return Z

    def _check_names(self, columns, missing):
        names = self.feature_names_in_
        unnamed = all(name == f"x{j}" for j, name in enumerate(columns))
        if unnamed and len(columns) != len(names):
            raise ColumnsError(
                f"X has {len(columns)} features, but TableEncoder is expecting "
                f"{len(names)} features as input: the columns {listed(names)}."
            )
        if missing:
            raise ColumnsError(
                f"the table has no column {listed(missing)}, which the model was "
                f"fitted with; there are {listed(columns)}."
            )

    def _checked(self, column, coder):
        """The column as its coder takes it."""
        if coder.name in self.categorical:
            return as_text(column)
        if column.kind == "text" and coder.kind == "date":
            return dates_of(column, getattr(coder, "written", None), coder.name)
        if column.kind in (coder.kind, "empty"):
            return column
        if {column.kind, coder.kind} == {"number", "truth"}:
            values = column.values
            if coder.kind == "number" or np.isin(values, [0, 1, np.nan]).all():
                return column._replace(kind=coder.kind)
        row = int(np.argmax(~column.missing))
        raise ColumnsError(
            f"column {coder.name!r} must hold {KINDS[coder.kind]}, as in fit, got "
            f"{KINDS[column.kind]} ({column.first()} in row {row})."
        )

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names of the columns of numbers.

        Parameters
        ----------
        input_features : array-like of str, optional
            Names of the table's columns, as in fit.

        Returns
        -------
        names : ndarray of str objects
        """
        check_is_fitted(self, "coders_")
        if input_features is not None:
            given = [str(name) for name in input_features]
            if given != [*self.feature_names_in_]:
                raise ValueError(
                    "input_features is not equal to feature_names_in_: should have "
                    f"length equal to number of features ({self.n_features_in_}), got "
                    f"{given}."
                )
        return np.array(
            [name for coder in self.coders_ for name in coder.names_out], dtype=object
        )

    def columns_out(self) -> dict[str, list[int]]:
        """Places of the numbers of each column that is used."""
        check_is_fitted(self)
        places, start = {}, 0
        for coder in self.coders_:
            stop = start + len(coder.names_out)
            places[coder.name] = list(range(start, stop))
            start = stop
        return places

    def describe(self) -> str:
        """Say what was made of each column, one per line."""
        check_is_fitted(self)
        return lines(self.made_)

    def check_state(self) -> None:
        """Refuse results that contradict each other, as a file may hold them."""
        if "coders_" not in vars(self):
            return
        if not (isinstance(self.coders_, list) and self.coders_):
            raise ValueError("coders_ of TableEncoder must be a list of coders")
        for coder in self.coders_:
            if not isinstance(coder, Coder):
                raise ValueError("coders_ of TableEncoder must be a list of coders")
            if fault := coder.fault():
                raise ValueError(f"{type(coder).__name__} of TableEncoder {fault}")
        n_out = sum(len(coder.names_out) for coder in self.coders_)
        names = getattr(self, "feature_names_in_", None)
        if not (
            self._n_features_out == n_out
            and isinstance(names, np.ndarray)
            and len(names) == self.n_features_in_
            and {coder.name for coder in self.coders_} <= {*names}
            and isinstance(self.made_, dict)
            and [*self.made_] == [*names]
        ):
            raise ValueError("the columns of TableEncoder must be those of its coders")

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        tags.transformer_tags.preserves_dtype = []
        return tags


class ColumnSample:
    """Uniform sample of the rows of a table, all of them if there are no more.

    Parameters
    ----------
    size : int
        Rows to keep.
    """

    def __init__(self, size: int) -> None:
        self.size, self.n_rows = size, 0
        #: Whether the rows after these were not looked at.
        self.is_cut = False
        #: Different targets of all rows, the first `MOST_LABELS` of them.
        self.labels: set = set()
        self._parts: list[tuple[np.ndarray, Columns, Any]] = []
        self._limit = np.uint64(2**64 - 1)
        self._names: list[str] | None = None

    @classmethod
    def of_blocks(cls, blocks: Iterable[Any], size: int) -> Self:
        """Sample of the rows of all `Block` of a source."""
        sample, start = cls(size), 0
        for block in blocks:
            start += sample.update_block(start, block)
        return sample

    def update_block(self, start: int, block: Any) -> int:
        """Take rows of a `Block` in; returns how many rows it has."""
        try:
            columns = columns_of(block.X)
            self.update(start, columns, as_targets(block.y))
        except ValueError as error:
            if isinstance(error, SourceError):
                raise
            row = getattr(error, "row", None)
            where = block.where if row is None else block.locate(row)
            raise SourceError(f"{where}: {error}") from error
        return columns.n_rows

    def update(self, start: int, columns: Columns, y: Any) -> Self:
        """Take some rows in, and others out; returns self."""
        if self._names is None:
            self._names = [*columns]
        elif self._names != [*columns]:
            raise ColumnsError(
                f"all blocks must have the columns {listed(self._names)}, got "
                f"{listed(columns)}."
            )
        if y is not None and len(y) != columns.n_rows:
            raise ColumnsError(
                f"y must have {columns.n_rows} rows, as X has, got {len(y)}: "
                "inconsistent numbers of samples."
            )
        self.n_rows += columns.n_rows
        if y is not None and y.dtype.kind != "f" and len(self.labels) < MOST_LABELS:
            self.labels.update(np.unique(y).tolist())
        keys = row_keys(start, columns.n_rows)
        own = np.flatnonzero(keys <= self._limit)
        if len(own) and len(own) == columns.n_rows and not self._parts:
            self._parts.append((np.arange(start, start + len(own)), columns, y))
        elif len(own):
            some = compact(columns.take(own))
            self._parts.append((start + own, some, None if y is None else y[own]))
        if sum(len(part[0]) for part in self._parts) > 2 * self.size:
            self._shrink()
        return self

    def add_some(self, looked: Any, some: np.ndarray, y: np.ndarray) -> Self:
        """Take some of the rows of a `Looked` in, ascending; returns self.

        The others count as well: a column that numbers the rows is known by that.
        """
        columns = looked.columns.take(some)
        self._names = [*columns]
        self.n_rows += looked.n_rows
        self._parts.append((looked.rows[some], columns, y[some]))
        return self

    def merge(self, other: Any) -> Self:
        """Take the rows of a sample of other rows in; returns self."""
        self.labels.update(other.labels)
        self._names = self._names or other._names  # noqa: SLF001  (its own class)
        self.n_rows += other.n_rows
        self._parts += other._parts  # noqa: SLF001
        self._shrink()
        return self

    def _shrink(self):
        """Leave the rows with the smallest keys, as one part."""
        if not self._parts:
            return
        rows = np.concatenate([part[0] for part in self._parts])
        order = np.argsort(rows, kind="stable")
        keys = keys_of(rows)
        if len(rows) > self.size:
            kept = np.argpartition(keys, self.size)[: self.size]
            self._limit = keys[kept].max()
            is_kept = np.zeros(len(rows), dtype=bool)
            is_kept[kept] = True
            order = order[is_kept[order]]
        columns = Columns(
            {
                name: joined([part[1][name] for part in self._parts], name).take(order)
                for name in self._names
            }
        )
        targets = [part[2] for part in self._parts]
        y = None
        if all(target is not None for target in targets):
            y = np.concatenate(targets)[order]
        self._parts = [(rows[order], compact(columns), y)]

    def looked(self) -> Looked:
        """The rows of the sample."""
        if len(self._parts) > 1 or self.n_rows > self.size:
            self._shrink()
        if not self._parts:
            return Looked(Columns(), None, np.arange(0), self.n_rows)
        rows, columns, y = self._parts[0]
        return Looked(columns, y, rows, self.n_rows)


def keys_of(rows):
    """Key of each row by its number."""
    if not len(rows):
        return row_keys(0, 0)
    first = int(rows.min())
    return row_keys(first, int(rows.max()) - first + 1)[rows - first]


def compact(columns: Columns) -> Columns:
    """Columns whose text knows only the values that it holds."""
    return Columns(
        {
            name: joined([column], name) if column.kind == "text" else column
            for name, column in columns.items()
        }
    )


def as_targets(y):
    """Targets as an array, None for none."""
    if y is None:
        return None
    y = y.to_numpy() if hasattr(y, "to_numpy") else np.asarray(y)
    if y.dtype.kind == "O":
        words = [value for value in y.ravel().tolist() if isinstance(value, str)]
        if len(words) == y.size:
            y = y.astype(str)
        elif not words:
            y = y.astype(np.float64)
    return y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y


def lines(made: Mapping[str, str]) -> str:
    """Lines of names and what was made of them, aligned."""
    width = min(max(map(len, made), default=0), 24)
    return "\n".join(f"{name:{width}}: {line}" for name, line in made.items())


def sample_of_block(start: int, block: Any, size: int) -> ColumnSample:
    """`ColumnSample` of a block on a worker."""
    sample = ColumnSample(size)
    sample.update_block(start, block)
    return sample


def sample_on_workers(rows: Any, size: int) -> ColumnSample:
    """`ColumnSample` of rows on workers."""
    of_block = functools.partial(sample_of_block, size=size)
    return rows.reduce(of_block, ColumnSample.merge)
