r"""Fitting from a source of rows: checked passes, a sample, folds, scores.

What would need all rows at once is decided by the number of a row in its source alone.
Row i has the key :math:`h(i)`, a mixed 64-bit number. The rows with the smallest keys
are a uniform sample without replacement, and the key modulo the number of folds is the
row's fold, so neither depends on how the source cuts its blocks.

All that a fit needs of the rows is summed by `Passes.reduce`: block after block here,
or in a tree on the workers that hold the blocks.
"""

import contextlib
import copy
import functools
import numbers
from types import NoneType
from typing import NamedTuple

import numpy as np
from scipy import sparse
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_array

from surff.alpha_selection import Split, held_out_decisions
from surff.blocks import row_blocks, rows_of
from surff.criteria import HeldOutSplits
from surff.distributed import DaskRows
from surff.normal_equations import NormalEquations, accumulate
from surff.sources import Block, SourceError, block_length, read_ahead
from surff.spread import EntrySpread

__all__ = [
    "N_SAMPLE",
    "Equations",
    "FoldsOfSource",
    "Labels",
    "Passes",
    "RefittedFolds",
    "RowSample",
    "Survey",
    "WorkerRows",
    "checked_folds",
    "equations_of",
    "folds_of_rows",
    "row_keys",
    "survey",
]

#: Rows that are summed at once at least, and the share of a block of usual length:
#: smaller ones are put together, since sums of few rows cost as much as those of many.
LEAST_ROWS, LEAST_SHARE = 1024, 0.25

#: Rows that features which need rows themselves are fitted to, by default.
N_SAMPLE = 10_000

#: Bytes of the held-out predictions that are scored at once.
DECISION_BYTES = 16 * 2**20


def row_keys(start, n_rows, salt=0):
    """Keys of consecutive rows: mixed numbers, all different.

    Parameters
    ----------
    start : int
        Number of the first row in its source.
    n_rows : int
        Rows.
    salt : int, default=0
        Another one gives other keys.

    Returns
    -------
    keys : ndarray of uint64, shape (n_rows,)

    References
    ----------
    .. [1] G. L. Steele, D. Lea, C. H. Flood, "Fast Splittable Pseudorandom Number
       Generators", OOPSLA 2014.
    """
    z = np.arange(start + 1, start + n_rows + 1, dtype=np.uint64)
    z = z * np.uint64(0x9E3779B97F4A7C15) + np.uint64(salt)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def folds_of_rows(start, n_rows, n_folds):
    """Fold of each of consecutive rows of a source, from 0 to ``n_folds - 1``.

    With `sklearn.model_selection.PredefinedSplit`, ``folds_of_rows(0, n_samples, 5)``
    gives ``fit`` the folds that ``fit_stream`` has for ``cv=5``.
    """
    keys = row_keys(start, n_rows, salt=0x5DEECE66D)
    return (keys % np.uint64(n_folds)).astype(np.intp)


class Rows(NamedTuple):
    """Checked rows of a block."""

    start: int  # number of the first one in the source
    X: object  # (n_rows, n_features), array or CSR matrix of float32 or float64
    y: np.ndarray
    sample_weight: np.ndarray | None


class Passes:
    """Passes over a source, whose blocks come checked and are read ahead.

    Parameters
    ----------
    source : iterable of Block
        See `surff.sources`.
    check : callable
        ``check(X, y, first) -> X, y`` of a model; the y of None is one that is not
        looked at.
    labels : array-like, optional
        All that ``y`` may hold, where it has one axis.

    Attributes
    ----------
    n_rows : int or None
        Rows of a whole pass, once there was one; another pass must have as many.
    """

    def __init__(self, source, check, labels=None):
        if not hasattr(source, "__iter__") or isinstance(source, (str, tuple)):
            raise TypeError(
                "source must be one of surff.sources, such as ArrayRows(X, y), got "
                f"{source!r}."
            )
        if iter(source) is source:
            raise TypeError(
                "source can be iterated over once only, and every pass needs to: give "
                "BlockRows a function that makes it anew."
            )
        self.source, self.check = source, check
        self.labels = None if labels is None else np.unique(labels)
        self.n_rows, self._first = None, None

    def __call__(self, gather=True):
        """A pass: context manager of an iterator of `Rows`.

        With ``gather``, small blocks are put together.
        """
        rows = self._checked()
        return contextlib.closing(read_ahead(gathered(rows) if gather else rows))

    @property
    def on_workers(self):
        """Whether the rows are on workers, where `reduce` sends its functions."""
        return isinstance(self.source, DaskRows)

    def reduce(self, empty, update, merge, n_bytes=0):
        """Add up something over all rows, in one pass.

        Parameters
        ----------
        empty : callable
            ``empty()`` is what no rows add up to.
        update : callable
            ``update(total, rows)`` returns the total with some `Rows`; it may write
            into the total. It goes to the workers where the rows are there.
        merge : callable
            ``merge(total, other)`` returns both together, for workers.
        n_bytes : int, default=0
            Bytes of a total, if they are many.

        Returns
        -------
        total : object
        """
        if self.on_workers:
            self._look_first()
            of_block = functools.partial(total_of_block, self._light(), empty, update)
            return self.source.reduce(of_block, merge, n_bytes)
        total = empty()
        with self() as blocks:
            for rows in blocks:
                total = update(total, rows)
        return total

    def first(self):
        """First `Rows` of the source; one row where they are on workers."""
        if self.on_workers:
            return self._look_first()
        with self() as blocks:
            return next(blocks)

    def _look_first(self):
        """Let a block with the first row say what all must be like."""
        if self.n_rows is None:
            self._head = self._checked_block(0, self.source.head())
            self.n_rows = int(self.source.lengths.sum())
        return self._head

    def _light(self):
        """What checks blocks on a worker: the passes without their rows."""
        light = copy.copy(self)
        light.source = Columns(self.source.feature_names)
        return light

    def _checked(self):
        start = 0
        for block in self.source:
            rows = self._checked_block(start, block)
            if rows is not None:
                yield rows
                start += rows.X.shape[0]
        if start == 0:
            raise SourceError("the source has no rows.")
        if self.n_rows not in (None, start):
            raise SourceError(
                f"the source gave {self.n_rows} rows in one pass and {start} in "
                "another; it must give the same ones."
            )
        self.n_rows = start

    def _checked_block(self, start, block):
        if not isinstance(block, Block):
            raise TypeError(
                "source must be one of surff.sources and yield blocks, got an object "
                f"of type {type(block).__name__}."
            )
        if np.shape(block.X)[:1] == (0,):
            return None
        first = self._first is None
        try:
            X, y = self.check(block.X, block.y, first)
            weight = checked_weight(block.sample_weight, X)
        except ValueError as error:
            raise explained(error, block, self.source.feature_names) from error
        shape, text = (None, None) if y is None else (y.shape[1:], y.dtype.kind in "UO")
        own = (shape, text, weight is None)
        if first:
            self._first = own, X.dtype
        expected, dtype = self._first
        if own != expected:
            raise SourceError(
                f"{block.where}: all blocks must have targets of one kind and shape, "
                f"and weights or not; got {described(own)} after {described(expected)}."
            )
        if self.labels is not None and y.ndim == 1:
            unknown = ~np.isin(y, self.labels)
            if unknown.any():
                i = int(np.argmax(unknown))
                raise SourceError(
                    f"{block.locate(i)}: y must hold labels out of classes="
                    f"{self.labels.tolist()}, got {y[i].item()!r}."
                )
        weight = None if weight is None else weight.astype(dtype, copy=False)
        return Rows(start, X.astype(dtype, copy=False), y, weight)


class Columns(NamedTuple):
    """What errors want to know of a source."""

    feature_names: list | None


def total_of_block(passes, empty, update, start, block):
    """What one block on a worker adds up to; see `Passes.reduce`."""
    rows = passes._checked_block(start, block)
    return empty() if rows is None else update(empty(), rows)


def gathered(blocks):
    """`Rows` that are not too few, but for the last ones."""
    held, size = [], 0
    for rows in blocks:
        held.append(rows)
        n_rows, n_columns = rows.X.shape
        size += n_rows
        usual = block_length(n_columns, rows.X.dtype)
        if size >= max(LEAST_ROWS, LEAST_SHARE * usual):
            yield together(held)
            held, size = [], 0
    if held:
        yield together(held)


def together(blocks):
    """Consecutive `Rows` as one."""
    if len(blocks) == 1:
        return blocks[0]
    columns = list(zip(*blocks, strict=True))[1:]
    parts = [None if part[0] is None else stacked(part) for part in columns]
    return Rows(blocks[0].start, *parts)


def stacked(parts):
    """Rows of arrays or CSR matrices, one below the other."""
    if sparse.issparse(parts[0]):
        return sparse.vstack(parts, format="csr")
    return np.concatenate(parts)


def described(kind):
    """Words for what a block brings beside ``X``."""
    shape, text, unweighted = kind
    targets = f"{'text' if text else 'numbers'} in rows of shape {shape}"
    return f"{targets} {'without' if unweighted else 'with'} weights"


def checked_weight(sample_weight, X):
    """Row weights of a block, >= 0 and finite; all may be 0."""
    if sample_weight is None:
        return None
    weight = check_array(
        sample_weight, ensure_2d=False, dtype=np.float64, input_name="sample_weight"
    )
    if weight.shape != (X.shape[0],) or weight.min() < 0:
        raise ValueError(
            f"sample_weight must be {X.shape[0]} numbers >= 0, got shape "
            f"{weight.shape} and minimum {weight.min():.3g}."
        )
    return weight


def explained(error, block, names):
    """`SourceError` that says where in a block the first bad value is, if one is."""
    names = getattr(block.X, "columns", None) if names is None else names
    for part in ("X", "y", "sample_weight"):
        values = getattr(block, part)
        values = values.tocoo() if sparse.issparse(values) else np.asarray(values)
        numbers = values.data if sparse.issparse(values) else values
        if numbers.dtype.kind != "f" or np.isfinite(numbers).all():
            continue
        bad = ~np.isfinite(numbers)
        if sparse.issparse(values):
            rows = values.row[bad]
            columns = values.col[bad][rows == rows.min()]
        else:
            rows = np.flatnonzero(bad.reshape(len(bad), -1).any(axis=1))
            columns = np.flatnonzero(bad[rows[0]])
        place = block.locate(int(rows.min()))
        if part == "X":
            named = [str(j) if names is None else repr(names[j]) for j in columns[:10]]
            part = f"column {', '.join(named)} of X"
        return SourceError(f"{place}: {part} is NaN or infinity.")
    return SourceError(f"{block.where}: {error}")


class RowSample:
    """Uniform sample of the rows of a source, all of them if there are no more.

    Parameters
    ----------
    size : int
        Rows to keep.

    Attributes
    ----------
    X, y, sample_weight : arrays
        The rows kept, in their order.
    keys : ndarray of uint64, shape (n_kept,)
        Their keys.
    """

    def __init__(self, size):
        self.size = size
        self.keys = np.empty(0, np.uint64)
        self.X = self.y = self.sample_weight = None

    def update(self, rows):
        """Take some rows in, and others out."""
        keys = row_keys(rows.start, rows.X.shape[0])
        own = ~np.zeros(len(keys), bool)
        if len(self.keys) == self.size:
            own = keys < self.keys.max()
        if not own.any():
            return
        self._append(keys, rows, np.flatnonzero(own))

    def merge(self, other):
        """Take the rows of a sample of other rows in; returns self."""
        if len(other.keys):
            self._append(other.keys, other, np.arange(len(other.keys)))
        return self

    def _append(self, keys, rows, own):
        self.keys = np.concatenate([self.keys, keys[own]])
        for name in ("X", "y", "sample_weight"):
            old, new = getattr(self, name), getattr(rows, name)
            if new is not None:
                new = rows_of(new, own)
                setattr(self, name, new if old is None else stacked([old, new]))
        self.shrink(self.size)

    def shrink(self, size):
        """Leave the rows with the smallest keys."""
        if size >= len(self.keys):
            return
        kept = np.sort(np.argpartition(self.keys, size)[:size])
        self.keys = self.keys[kept]
        for name in ("X", "y", "sample_weight"):
            values = getattr(self, name)
            if values is not None:
                setattr(self, name, rows_of(values, kept))


class Labels:
    """Different labels of targets with one axis, unless they are numbers.

    Attributes
    ----------
    values : ndarray or None
        The labels, sorted; None where there are none, since some targets are
        continuous or have several columns.
    """

    def __init__(self):
        self.values, self.are_numbers = None, False

    def update(self, y):
        """Look at some targets; returns self."""
        if type_of_target(y, input_name="y") in ("binary", "multiclass"):
            found = Labels()
            found.values = np.unique(y)
            return self.merge(found)
        self.values, self.are_numbers = None, True
        return self

    def merge(self, other):
        """Add the labels of other rows; returns self."""
        self.are_numbers |= other.are_numbers
        if self.are_numbers:
            self.values = None
        elif self.values is None:
            self.values = other.values
        elif other.values is not None:
            self.values = np.union1d(self.values, other.values)
        return self


class Survey(NamedTuple):
    """What the first look at a source finds."""

    sample: RowSample
    spread: EntrySpread | None = None  # of the entries of X, of all rows
    labels: Labels | None = None  # of all rows

    def update(self, rows):
        """Look at some rows; returns self."""
        self.sample.update(rows)
        self.spread.update(rows.X, rows.sample_weight)
        if self.labels is not None:
            self.labels.update(rows.y)
        return self

    def merge(self, other):
        """Add what a survey of other rows has found; returns self."""
        for own, others in zip(self, other, strict=True):
            if own is not None:
                own.merge(others)
        return self


def survey(passes, n_sample, whole, has_labels):
    """Look at a source in a pass of its own, or at its first block.

    Parameters
    ----------
    passes : Passes
    n_sample : int
        Rows to sample.
    whole : bool
        Whether all rows are looked at.
    has_labels : bool
        Whether ``y`` holds labels, to be collected.

    Returns
    -------
    Survey
    """
    if not whole:
        sample = RowSample(n_sample)
        sample.update(passes.first())
        return Survey(sample)
    empty = functools.partial(empty_survey, n_sample, has_labels)
    return passes.reduce(empty, Survey.update, Survey.merge)


def empty_survey(n_sample, has_labels):
    """`Survey` of no rows."""
    return Survey(RowSample(n_sample), EntrySpread(), Labels() if has_labels else None)


class WorkerRows:
    """Rows on workers, as selectors and features take the ``X`` of them.

    Parameters
    ----------
    passes : Passes
        Over rows on workers.
    coded : callable
        ``coded(y)`` are targets as numbers, shape (n_rows, k); None for no targets.
    left_out : (int, int), optional
        Number of a fold and number of folds: its rows are left out.

    Attributes
    ----------
    shape : (int, int)
        Of the rows, with those left out.
    dtype : dtype
    """

    def __init__(self, passes, coded, left_out=None):
        self.passes, self.coded, self.left_out = passes, coded, left_out
        first = passes.first().X
        self.shape, self.dtype = (passes.n_rows, first.shape[1]), first.dtype

    def summed(self, function):
        """``function(X, Y, sample_weight)``, added up over the blocks of rows.

        Its results must be arrays, numbers, tuples of them, or have a method ``merge``.
        """
        update = functools.partial(
            add_part, function=function, coded=self.coded, left_out=self.left_out
        )
        return self.passes.reduce(NoneType, update, added)

    def spread(self):
        """`EntrySpread` of the rows."""
        return self.summed(spread_of)


def add_part(total, rows, function, coded, left_out):
    """Total of `WorkerRows.summed` with the rows of a block."""
    X, weight = rows.X, rows.sample_weight
    Y = None if coded is None else coded(rows.y)
    if left_out is not None:
        fold, n_folds = left_out
        own = np.flatnonzero(folds_of_rows(rows.start, X.shape[0], n_folds) != fold)
        X, Y = rows_of(X, own), None if Y is None else Y[own]
        weight = None if weight is None else weight[own]
    return added(total, function(X, Y, weight)) if X.shape[0] else total


def added(total, other):
    """The sum of results of `WorkerRows.summed`."""
    if total is None or other is None:
        return other if total is None else total
    if hasattr(total, "merge"):
        return total.merge(other)
    if isinstance(total, tuple):
        return tuple(a + b for a, b in zip(total, other, strict=True))
    return total + other


def spread_of(X, Y, sample_weight):
    """`EntrySpread` of some rows."""
    return EntrySpread().update(X, sample_weight)


class Equations(NamedTuple):
    """Normal equations of a source."""

    total: NormalEquations
    folds: list  # of NormalEquations; rows that are held out nowhere are in none


def equations_of(passes, feature_map, coded, offset, n_folds, seen=None):
    """`Equations` of all rows and of each fold, in one pass.

    Parameters
    ----------
    passes : Passes
    feature_map : object with ``n_components``, ``dtype`` and ``(X, out=None) -> Z``
        Maps a block of rows.
    coded : callable
        ``coded(y)`` are targets as numbers, shape (n_rows, k).
    offset : ndarray of shape (k,)
        Taken off the targets.
    n_folds : int
        0 for no folds.
    seen : ndarray of uint64, optional
        Keys of rows that no fold holds out.
    """
    m, k = feature_map.n_components, len(offset)
    # Those of no fold come last, where there may be any.
    n_sums = n_folds + (seen is not None or not n_folds)
    sums = passes.reduce(
        functools.partial(empty_sums, m, k, n_sums),
        functools.partial(
            add_to_folds,
            feature_map=feature_map,
            coded=coded,
            offset=offset,
            n_folds=n_folds,
            seen=seen,
        ),
        merge_sums,
        8 * m**2 * n_sums,
    )
    folds = sums[:n_folds]
    total = sums[n_folds] if n_sums > n_folds else NormalEquations(m, k)
    for fold in folds:
        total.merge(fold)
    return Equations(total, folds)


def empty_sums(n_components, n_targets, n):
    """``n`` normal equations of no rows."""
    return [NormalEquations(n_components, n_targets) for _ in range(n)]


def add_to_folds(sums, rows, feature_map, coded, offset, n_folds, seen):
    """Add rows to the sums of their folds, and to the last ones those without."""
    sides = members(rows, n_folds, seen)[: len(sums)]
    return add_to_sums(sums, rows, sides, feature_map, coded(rows.y) - offset)


def add_to_sums(sums, rows, sides, feature_map, Y):
    """Add some of the rows to each of several normal equations."""
    for i, own in enumerate(sides):
        if not len(own):
            continue
        own = None if len(own) == len(Y) else own
        part = accumulate(feature_map, rows.X, Y, rows.sample_weight, own)
        # Nothing is added to what was empty: that would touch a matrix more.
        sums[i] = sums[i].merge(part) if sums[i].weight_sum else part
    return sums


def merge_sums(sums, others):
    """Add normal equations one by one."""
    for own, other in zip(sums, others, strict=True):
        own.merge(other)
    return sums


def sides_of(passes, feature_map, coded, offset, left_out):
    """Normal equations of the training rows of a split, and of those it holds out."""
    m, k = feature_map.n_components, len(offset)
    update = functools.partial(
        add_to_sides,
        feature_map=feature_map,
        coded=coded,
        offset=offset,
        left_out=left_out,
    )
    empty = functools.partial(empty_sums, m, k, 2)
    return passes.reduce(empty, update, merge_sums, 8 * m**2 * 2)


def add_to_sides(sums, rows, feature_map, coded, offset, left_out):
    """Add rows to the sums of their sides."""
    fold, n_folds = left_out
    folds = folds_of_rows(rows.start, rows.X.shape[0], n_folds)
    sides = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
    return add_to_sums(sums, rows, sides, feature_map, coded(rows.y) - offset)


def members(rows, n_folds, seen):
    """Rows of each fold within a block, and those that no fold holds out."""
    n_rows = rows.X.shape[0]
    if not n_folds:
        return [np.arange(n_rows)]
    fold = folds_of_rows(rows.start, n_rows, n_folds)
    if seen is not None:
        fold[np.isin(row_keys(rows.start, n_rows), seen)] = n_folds
    return [np.flatnonzero(fold == f) for f in range(n_folds + 1)]


class FoldsOfSource(HeldOutSplits):
    """k-fold cross-validation on a source; see `surff.criteria`.

    Parameters
    ----------
    passes : Passes
    equations : Equations
    data : surff.criteria.Data
        Without rows.
    scorer : callable
        ``scorer(y)`` scores predictions of rows with the targets ``y``, see
        `surff.criteria`.
    seen : ndarray of uint64, optional
        Keys of rows that no fold holds out.

    Notes
    -----
    Scores that follow from the folds' equations need no pass; others take one for all
    alphas together.
    """

    def __init__(self, passes, equations, data, scorer, seen=None):
        self.passes, self.data, self.seen = passes, data, seen
        self.total, self.folds = equations
        self.scorer_of, self.scorer = scorer, scorer(None)
        for f, fold in enumerate(self.folds):
            if not fold.weight_sum:
                raise ValueError(
                    f"cv={len(self.folds)} leaves fold {f} without rows of positive "
                    "weight: the source has too few; use less folds, or cv='gcv'."
                )

    def _splits(self):
        for fold in self.folds:
            train = self.total.copy().subtract(fold)
            yield Split(train, fold, None, self.data.feature_map)

    def score(self, alphas):
        """Scores of every alpha, one column a split; see `surff.criteria`."""
        if hasattr(self.scorer, "from_equations"):
            return super().score(alphas)
        paths = [
            (split.feature_map, *self._path(split, alphas)) for split in self._splits()
        ]
        update = functools.partial(
            add_scores,
            paths=paths,
            offset=self.data.offset,
            scorer_of=self.scorer_of,
            seen=self.seen,
        )
        empty = functools.partial(np.zeros, (len(alphas), len(paths), 1))
        scores = self.passes.reduce(empty, update, added)
        return scores / np.array([fold.weight_sum for fold in self.folds])[:, None]


class RefittedFolds(FoldsOfSource):
    """`FoldsOfSource` of features that are fitted anew to what each split trains on.

    Parameters
    ----------
    passes : Passes
    total : NormalEquations
        Of all rows, with the features of all.
    splits : list of Split
        Without row numbers.
    data, scorer
        See `FoldsOfSource`.
    """

    def __init__(self, passes, total, splits, data, scorer):
        self._sides = splits
        equations = Equations(total, [split.test for split in splits])
        super().__init__(passes, equations, data, scorer)

    def _splits(self):
        return iter(self._sides)


def add_scores(scores, rows, paths, offset, scorer_of, seen):
    """Add the scores of rows, times their weights, to those of their splits."""
    own = members(rows, len(paths), seen)[:-1]
    for f, (index, path) in enumerate(zip(own, paths, strict=True)):
        scores[:, f] += score_sums(rows, index, *path, offset, scorer_of(rows.y))
    return scores


def score_sums(rows, index, feature_map, coefs, intercepts, offset, scorer):
    """Scores of some rows times their weights, shape (n_alphas, 1)."""
    sums = np.zeros((len(intercepts), 1))
    size = max(1, DECISION_BYTES // (8 * intercepts.size))
    for part in row_blocks(len(index), size):
        some = index[part]
        weight = None if rows.sample_weight is None else rows.sample_weight[some]
        total = len(some) if weight is None else weight.sum()
        if total > 0:
            decisions = held_out_decisions(
                feature_map, rows.X, some, coefs, intercepts + offset
            )
            sums += total * scorer.from_decisions(decisions, some, weight)
    return sums


def checked_folds(cv):
    """Number of folds that ``cv`` stands for."""
    if cv is None:
        return 5
    if isinstance(cv, numbers.Integral) and cv > 1:
        return int(cv)
    raise ValueError(
        "cv must be an int above 1, None or 'gcv' to fit from a source, whose rows are "
        f"not all there to be split, got {cv!r}."
    )
