"""Rows on a cluster: Dask arrays and dataframes, block by block on the workers.

A pass sends a function to the blocks of rows and adds up what it returns in a tree, on
the workers: sums move, rows do not. Predictions are Dask arrays, made where the rows
are. Blocks are recomputed by Dask where a worker is lost; nothing is held that could
not be. Dask is imported when one of its collections is given, and comes with the extra
``surff[dask]``.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import secrets
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from surff.backend import one_thread, stage
from surff.streaming.sources import Block, SourceError

__all__ = [
    "DaskRows",
    "is_dask",
    "over_blocks",
    "without_sums",
]

#: Sums that are added at once: few levels of the tree, and few sums on a worker.
FAN_IN = 8

#: Bytes of sums that a worker may hold to add them; at least two are added.
FAN_IN_BYTES = 2**30


def is_dask(values: Any) -> bool:
    """Whether ``values`` are an array, dataframe or series of Dask."""
    package = type(values).__module__.partition(".")[0]
    return package in ("dask", "dask_expr") and hasattr(values, "to_delayed")


class DaskRows:
    """Rows of Dask arrays or dataframes, each block on the worker that holds it.

    `fit` and `fit_stream` make it of Dask collections. As a source for `fit_stream` it
    allows the options of that method, too. Iteration yields the blocks one by one.

    Parameters
    ----------
    X : Dask array or dataframe of shape (n_samples, n_features)
        Chunks along columns are joined, and cut along rows if they would be larger than
        Dask's ``array.chunk-size``.
    y : Dask array, series or dataframe, or array, of (n_samples,) rows, optional
        Targets or labels. Dask arrays are cut as ``X`` is if their chunks are known;
        otherwise they must have as many chunks.
    sample_weight : like ``y``, optional
        Row weights, >= 0.

    Examples
    --------
    >>> import dask.array as da  # doctest: +SKIP
    >>> X = da.random.default_rng(0).normal(size=(10**6, 8))  # doctest: +SKIP
    >>> model.fit_stream(DaskRows(X, da.sin(X[:, 0])), n_sample=2000)  # doctest: +SKIP
    """

    def __init__(self, X: Any, y: Any = None, sample_weight: Any = None) -> None:
        if not is_dask(X) or X.ndim != 2:
            raise TypeError(
                "X must be a Dask array of two axes or a Dask dataframe, got an object "
                f"of type {type(X).__name__}."
            )
        names = list(X.columns) if hasattr(X, "columns") else [None]
        as_text = all(isinstance(name, str) for name in names)
        self.feature_names = names if as_text else None
        self.dtype = None if hasattr(X, "columns") else X.dtype
        X = whole_rows(X)
        given = {"X": X, "y": y, "sample_weight": sample_weight}
        lazy = {
            name: values if name == "X" else cut_alike(name, values, X)
            for name, values in given.items()
            if is_dask(values)
        }
        self._lengths = known_lengths(lazy.values())
        #: Collection that is cheapest to count: the targets alone, if there are any.
        self._counted = lazy.get("y", X)
        self._blocks = {name: blocks_of(values) for name, values in lazy.items()}
        self._rows = X
        for name, values in given.items():
            if values is not None and name not in lazy:
                self._blocks[name] = self._cut(name, np.asarray(values))

    def _cut(self, name, values):
        """Cut a local array as the blocks are cut."""
        ends = np.cumsum(self.lengths)
        if values.shape[:1] != (ends[-1],):
            raise ValueError(
                f"{name} must have {ends[-1]} rows, as X has, got shape {values.shape}."
            )
        return np.split(values, ends[:-1])

    @property
    def lengths(self) -> np.ndarray:
        """Rows of each block; they are counted unless they are known."""
        if self._lengths is None:
            import dask

            count = dask.delayed(n_rows)
            counted = [count(block) for block in blocks_of(self._counted)]
            self._lengths = np.array(dask.compute(*counted), dtype=np.int64)
        return self._lengths

    def _parts(self):
        """``(number, first row, X, y, sample_weight)`` of each block with rows."""
        starts = np.cumsum(self.lengths) - self.lengths
        if not self.lengths.any():
            raise SourceError("the source has no rows.")
        for i in np.flatnonzero(self.lengths).tolist():
            blocks = (
                self._blocks[name][i] if name in self._blocks else None
                for name in ("X", "y", "sample_weight")
            )
            yield i, int(starts[i]), *blocks

    def head(self) -> Block:
        """`Block` of the first row."""
        import dask

        i, _, *blocks = next(self._parts())
        first = dask.delayed(first_row)
        heads = (None if block is None else first(block) for block in blocks)
        return block_of(i, *dask.compute(*heads))

    def __iter__(self) -> Iterator[Block]:
        import dask

        for i, _, *blocks in self._parts():
            yield block_of(i, *dask.compute(*blocks))

    def reduce(
        self,
        of_block: Callable[[int, Block], Any],
        merge: Callable[[Any, Any], Any],
        n_bytes: int = 0,
    ) -> Any:
        """Results of a function of each block, merged in a tree on the workers.

        Parameters
        ----------
        of_block : callable
            ``of_block(start, block)`` of the number of a block's first row and the
            `Block`, on a worker; a task computes on one thread.
        merge : callable
            ``merge(total, other)`` returns both together and may write into ``total``.
        n_bytes : int, default=0
            Bytes of a result. Beyond `FAN_IN_BYTES / FAN_IN` fewer than `FAN_IN`
            results are merged at once.

        Returns
        -------
        result : object
        """
        import dask

        # One key for each function: what it carries is sent once to a worker.
        of_block, merge = (shared(function) for function in (of_block, merge))
        compute, together = dask.delayed(computed), dask.delayed(merged)
        parts, workers = list(self._parts()), held_by(self._rows)
        # What lies on one worker is merged there before anything is sent.
        parts.sort(key=lambda part: workers.get(str(part[2].key), ""))
        size = int(np.clip(FAN_IN_BYTES // max(1, n_bytes), 2, FAN_IN))
        with counted_rows(int(self.lengths.sum())) as counter:
            level = [compute(of_block, counter, *part) for part in parts]
            while len(level) > 1:
                groups = (level[i : i + size] for i in range(0, len(level), size))
                level = [together(merge, group) for group in groups]
            return level[0].compute()


def held_by(values: Any) -> dict[str, str]:
    """Worker that holds each block of a collection, by the block's key."""
    client = client_in_use()
    if client is None:
        return {}
    holders = client.who_has(values).items()
    return {str(key): min(workers) for key, workers in holders if workers}


def client_in_use() -> Any:
    """Client of the cluster that would compute now, None for threads or processes."""
    import dask

    client = getattr(dask.base.get_scheduler(), "__self__", None)
    return client if hasattr(client, "who_has") else None


#: What counts the rows of passes that run now and are watched, by name.
_counters: dict[str, Callable[[tuple[int, int]], None]] = {}


@contextlib.contextmanager
def counted_rows(n_rows: int) -> Iterator[str | None]:
    """Stage of a pass; yields the name under which tasks count, None if unwatched.

    Tasks in this process count here; those on workers send an event.
    """
    with stage("pass", n_rows, "rows") as progress:
        if not progress.is_watched:
            yield None
            return
        name, client = f"surff-{secrets.token_hex(8)}", client_in_use()
        seen: set[int] = set()

        def count(block):
            start, n_rows = block
            if start not in seen:  # a lost worker's blocks are computed again
                seen.add(start)
                progress.advance(n_rows)

        _counters[name] = count
        if client is not None:
            client.subscribe_topic(name, lambda event: count(event[1]))
        try:
            yield name
        finally:
            del _counters[name]
            if client is not None:
                client.unsubscribe_topic(name)


def count_rows(name: str, start: int, n_rows: int) -> None:
    """Count a block, on a worker or here; processes without a client do not."""
    if (count := _counters.get(name)) is not None:
        count((start, n_rows))
    elif "distributed" in sys.modules:
        from distributed import get_worker

        with contextlib.suppress(ValueError):  # no worker of a cluster
            get_worker().log_event(name, (start, n_rows))


def shared(value: Any) -> Any:
    """Wrap one value for many tasks."""
    import dask

    return dask.delayed(value, pure=False, traverse=False)


def whole_rows(X: Any) -> Any:
    """Return an array whose blocks hold all columns; dataframes unchanged."""
    if not is_array(X) or X.numblocks[1] == 1:
        return X
    import dask

    most = dask.utils.parse_bytes(dask.config.get("array.chunk-size"))
    if max(X.chunks[0]) * X.shape[1] * X.dtype.itemsize > most:  # no: nan > most
        return X.rechunk({0: "auto", 1: -1})
    return X.rechunk({1: -1})


def cut_alike(name: str, values: Any, X: Any) -> Any:
    """Return ``values`` with the blocks of ``X``, if both know their lengths."""
    if hasattr(values, "chunks"):
        values = values.rechunk({1: -1}) if values.ndim > 1 else values
        known = [not np.isnan(a.chunks[0]).any() for a in (X, values) if is_array(a)]
        if len(known) == 2 and all(known):
            if len(X) != len(values):
                raise ValueError(
                    f"{name} must have {len(X)} rows, as X has, got {len(values)}."
                )
            return values.rechunk({0: X.chunks[0]})
    if n_blocks(values) != n_blocks(X):
        raise ValueError(
            f"{name} must have the {n_blocks(X)} blocks of X, got {n_blocks(values)}; "
            "repartition it."
        )
    return values


def is_array(values: Any) -> bool:
    """Whether a collection of Dask is an array."""
    return hasattr(values, "chunks")


def n_blocks(values: Any) -> int:
    """Blocks of rows of a collection."""
    return values.numblocks[0] if is_array(values) else values.npartitions


def blocks_of(values: Any) -> list[Any]:
    """Blocks of rows of a collection, lazy."""
    if is_array(values):
        return values.to_delayed().ravel().tolist()
    blocks = list(values.to_delayed())
    if len(blocks) != values.npartitions:
        # Optimized, few columns of many files are joined to larger blocks, and the
        # blocks of X and y would no longer hold the same rows.
        blocks = list(values.to_delayed(optimize_graph=False))
    return blocks


def known_lengths(collections: Iterable[Any]) -> np.ndarray | None:
    """Rows of each block from the first collection that knows them, or None."""
    for values in collections:
        if is_array(values) and not np.isnan(values.chunks[0]).any():
            return np.array(values.chunks[0])
    return None


def n_rows(block: Any) -> int:
    """Rows of a block."""
    return block.shape[0]


def first_row(block: Any) -> Any:
    """First row of a block, as a block."""
    return block.iloc[:1] if hasattr(block, "iloc") else block[:1]


def block_of(i: int, X: Any, y: Any, sample_weight: Any) -> Block:
    """`Block` number ``i``; frames must have their rows in one order."""
    for name, values in (("y", y), ("sample_weight", sample_weight)):
        if hasattr(X, "index") and hasattr(values, "index"):
            own, other = X.index, values.index
            if own.equals(other) or len(own) != len(other):
                continue
            if own.sort_values().equals(other.sort_values()):
                raise SourceError(
                    f"block {i}: {name} holds the rows of X in another order, as its "
                    "index says; shuffled frames must be persisted before X and "
                    f"{name} are taken from them."
                )
    return Block(X, y, sample_weight, f"block {i}")


def computed(
    of_block: Callable,
    counter: str | None,
    i: int,
    start: int,
    X: Any,
    y: Any,
    sample_weight: Any,
) -> Any:
    """Task of a block."""
    with one_thread():
        result = of_block(start, block_of(i, X, y, sample_weight))
    if counter is not None:
        count_rows(counter, start, n_rows(X))
    return result


def merged(merge: Callable, parts: list[Any]) -> Any:
    """Task of a node of the tree; it keeps its arguments, which Dask may need again."""
    with one_thread():
        return functools.reduce(merge, parts[1:], copy.deepcopy(parts[0]))


def over_blocks(method: Callable) -> Callable:
    """Let a method of a fitted estimator map Dask collections block by block.

    The decorated ``method(self, X, **options)`` returns an array of one row per row of
    ``X``, or a tuple of them; for a Dask collection it returns lazy Dask arrays.
    """

    @functools.wraps(method)
    def lazy(self, X, *args, **options):
        if not is_dask(X):
            return method(self, X, *args, **options)
        X = whole_rows(X)
        model = without_sums(self) if not (args or options) else self
        of_block = functools.partial(mapped, method.__name__, args, options)
        likes = method(model, example_rows(X), *args, **options)
        if isinstance(likes, tuple):
            return tuple(_lazy(X, of_block, model, i, a) for i, a in enumerate(likes))
        return _lazy(X, of_block, model, None, likes)

    return lazy


def _lazy(X, of_block, model, item, like):
    """Dask array of the results of ``of_block`` for the blocks of ``X``."""
    model = shared(model)
    if not is_array(X):
        import pandas as pd

        frame = (pd.Series if like.ndim == 1 else pd.DataFrame)(like[:0])
        options = {"model": model, "item": item, "meta": frame}
        result = X.map_partitions(framed, of_block, **options).to_dask_array()
        check_graph(X, result)
        return result
    columns = {"drop_axis": 1} if like.ndim == 1 else {}
    chunks = (X.chunks[0], *((n,) for n in like.shape[1:]))
    return X.map_blocks(
        of_block, model=model, item=item, dtype=like.dtype, chunks=chunks,
        meta=like[:0], **columns,
    )  # fmt: skip


def check_graph(X: Any, result: Any) -> None:
    """Refuse what Dask cannot compute, of a frame of parts that were not verified.

    dask.array fails to optimize the graph of such a frame, with an error that names
    nothing.
    """
    from dask.array.optimization import optimize

    if not any(getattr(part, "verify_meta", True) is False for part in X.expr.walk()):
        return
    try:
        optimize(result.dask, result.__dask_keys__())
    except (KeyError, ValueError) as error:
        raise SourceError(
            f"Dask cannot make an array of this dataframe ({error}); make it by "
            "from_delayed(..., verify_meta=True), or persist it first."
        ) from error


def mapped(
    name: str, args: tuple, options: dict, X: Any, model: Any, item: int | None
) -> Any:
    """Task of a block of predictions."""
    with one_thread():
        if X.shape[0] == 0:
            values = getattr(model, name)(example_rows(X), *args, **options)
        else:
            values = getattr(model, name)(X, *args, **options)
    values = values if item is None else values[item]
    return values[: X.shape[0]]


def framed(X: Any, of_block: Callable, model: Any, item: int | None) -> Any:
    """`mapped` for a part of a dataframe."""
    import pandas as pd

    values = of_block(X, model=model, item=item)
    return (pd.Series if values.ndim == 1 else pd.DataFrame)(values, index=X.index)


def example_rows(X: Any) -> Any:
    """Make one row of zeros with the columns and types of ``X``."""
    zeros = np.zeros((1, X.shape[1]))
    if not hasattr(X, "columns"):
        return zeros.astype(X.dtype)
    import pandas as pd

    return pd.DataFrame(zeros, columns=X.columns)


def without_sums(model: Any) -> Any:
    """Copy of a fitted model that predicts alike, without its normal equations."""
    light = copy.copy(model)
    for name in ("equations_", "leaf_sums_"):
        vars(light).pop(name, None)
    return light
