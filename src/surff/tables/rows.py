"""Sources of frames as sources of numbers: blocks are encoded as they are read."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from surff.streaming import Block, DaskRows, SourceError
from surff.tables.columns import columns_of
from surff.tables.encoder import TableEncoder, as_targets, sample_on_workers

__all__ = ["encoded", "fit_encoder"]


def fit_encoder(encoder: TableEncoder, source: Any) -> TableEncoder:
    """Fit an encoder to a source of frames, in one pass.

    Parameters
    ----------
    encoder : TableEncoder
        Not fitted; it is fitted and returned.
    source : source of rows
        Its blocks hold frames; see `surff.streaming`.
    """
    if isinstance(source, DaskRows):
        return encoder.fit_sample(sample_on_workers(source, encoder.n_sample))
    return encoder.fit_blocks(source)


def encoded(source: Any, encoder: TableEncoder, training: bool = False) -> Any:
    """Source of the numbers that an encoder makes of a source of frames.

    Parameters
    ----------
    source : source of rows
        Its blocks hold frames.
    encoder : TableEncoder
        Fitted.
    training : bool, default=False
        Whether the encoder was fitted to these rows: means of the target are then those
        of other folds.

    Returns
    -------
    source : source of rows
        Where the rows are: rows on workers stay there.
    """
    if isinstance(source, DaskRows):
        return EncodedWorkerRows(source, encoder, training)
    return EncodedRows(source, encoder, training)


class EncodedRows:
    """Blocks of a source, encoded."""

    def __init__(self, source: Any, encoder: TableEncoder, training: bool) -> None:
        self.source, self.encoder, self.training = source, encoder, training
        # Models know numbers of columns; the names are those of the table.
        self.feature_names = None

    def stamps(self) -> dict:
        """Size and modification time of the files, if there are any."""
        return self.source.stamps() if hasattr(self.source, "stamps") else {}

    def __iter__(self) -> Iterator[Block]:
        return encoded_blocks(self.encoder, self.training, self.source)


class EncodedWorkerRows(DaskRows):
    """Rows on workers, encoded where they are."""

    def __init__(self, rows: DaskRows, encoder: TableEncoder, training: bool) -> None:
        vars(self).update(vars(rows))
        self.encoder, self.training = encoder, training
        self.feature_names = None
        self.dtype = np.dtype(np.float64)

    def head(self) -> Block:
        """`Block` of the first row."""
        return encoded_block(self.encoder, False, 0, super().head())

    def __iter__(self) -> Iterator[Block]:
        return encoded_blocks(self.encoder, self.training, super().__iter__())

    def reduce(
        self,
        of_block: Callable[[int, Block], Any],
        merge: Callable[[Any, Any], Any],
        n_bytes: int = 0,
    ) -> Any:
        """See `DaskRows.reduce`; the function gets encoded blocks."""
        of_encoded = functools.partial(
            of_encoded_block, of_block, self.encoder, self.training
        )
        return super().reduce(of_encoded, merge, n_bytes)


def of_encoded_block(of_block, encoder, training, start, block):
    """Result of a function of an encoded block, on a worker."""
    return of_block(start, encoded_block(encoder, training, start, block))


def encoded_blocks(encoder, training, blocks):
    """Yield blocks with numbers in the place of their frames."""
    start = 0
    for block in blocks:
        made = encoded_block(encoder, training, start, block)
        start += len(made.X)
        yield made


def encoded_block(encoder, training, start, block):
    """A block with numbers in the place of its frame."""
    try:
        X = encoder.encode(columns_of(block.X), start if training else None)
    except SourceError:
        raise
    except ValueError as error:
        raise SourceError(f"{block.where}: {error}") from error
    return block._replace(X=X, y=as_targets(block.y))
