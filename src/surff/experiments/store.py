"""Results on disk, one JSON line per trial and method, safe against being killed.

A line is written by one call to the operating system in append mode and synced to the
disk before `ResultStore.append` returns, so what a killed run leaves is whole lines and
at most one cut short at the end. Opening the file again drops such a line with a
message; anything else that is not a row is an error.
"""

from __future__ import annotations

import contextlib
import errno
import json
import logging
import os
from collections.abc import Sequence
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows: one process at a time
    fcntl = None

__all__ = ["KEY", "ResultStore", "StoreCorruptError", "row_key"]

#: Names by whose values the rows of the accuracy tables are told apart.
KEY = ("protocol", "dataset", "weights", "method", "multiple", "trial", "seed")

logger = logging.getLogger(__name__)


class StoreCorruptError(ValueError):
    """A file of results holds a line that is not a row."""


def row_key(row: dict, names: Sequence[str] = KEY) -> tuple:
    """Identity of a row: its values of the names in the key, as a tuple.

    Parameters
    ----------
    row : dict
        Holds at least those names.
    names : tuple of str, default=KEY

    Returns
    -------
    key : tuple
    """
    return tuple(row[name] for name in names)


class ResultStore:
    """Rows of results in a JSON Lines file that grows and is never half-written.

    Parameters
    ----------
    path : path-like
        The file; it and its directory are made by the first `append`.
    key : tuple of str, default=KEY
        Names that every row has; rows with the same values of them are the same.

    Raises
    ------
    StoreCorruptError
        A complete line is not a row; the message names the file and the line.

    Notes
    -----
    Several processes may append to one file: each call writes its lines at once, under
    a lock where the system has one. A process sees the rows of others only when it
    opens the file. Of two rows with the same key the first counts.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "results.jsonl"
    >>> row = {"protocol": "fair", "dataset": "eeg", "weights": "own", "trial": 0,
    ...        "method": "rff", "multiple": 1, "seed": 0, "accuracy": 0.75}
    >>> ResultStore(path).append([row])
    >>> ResultStore(path).rows == [row]
    True
    """

    def __init__(self, path: str | os.PathLike, key: Sequence[str] = KEY) -> None:
        self.path = Path(path)
        self.key = key
        self._rows: dict[tuple, dict] = {}
        if self.path.exists():
            self._read()

    @property
    def rows(self) -> list[dict]:
        """The rows as a list of dicts, in the order they were stored."""
        return list(self._rows.values())

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, key: object) -> bool:
        return key in self._rows

    def append(self, rows: Sequence[dict]) -> None:
        """Store rows; when this returns they are on the disk, synced.

        Parameters
        ----------
        rows : sequence of dict
            Each with the names of the key and values that JSON knows (NaN is not one);
            NumPy scalars become Python's. They are written together: a run killed
            inside this call may leave only the first of them.

        Raises
        ------
        ValueError
            A row lacks a name of the key or has a value that JSON does not know.
        OSError
            The disk is full, or the file cannot be written. None of the rows is kept.
        """
        rows = [_checked(row, self.key) for row in rows]
        content = "".join(_to_line(row) for row in rows).encode()
        # Read back, so that rows are the same now and after a restart.
        stored = [json.loads(line) for line in content.splitlines()]
        self.path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o666)
        try:
            with _locked(descriptor):
                self._set_broken_line_aside(descriptor)
                size = os.fstat(descriptor).st_size
                try:
                    if os.write(descriptor, content) != len(content):
                        raise OSError(errno.ENOSPC, "only part of a row was written")
                    os.fsync(descriptor)
                except OSError as error:
                    os.ftruncate(descriptor, size)
                    error.filename = str(self.path)
                    raise
        finally:
            os.close(descriptor)
        for row in stored:
            self._rows.setdefault(row_key(row, self.key), row)

    def _set_broken_line_aside(self, descriptor):
        """Move a last line that another process cut short to a file next to it."""
        size = os.fstat(descriptor).st_size
        if not size:
            return
        os.lseek(descriptor, size - 1, os.SEEK_SET)
        if os.read(descriptor, 1) == b"\n":
            return
        content = self.path.read_bytes()
        whole = content.rfind(b"\n") + 1
        aside = self.path.with_name(self.path.name + ".broken")
        with aside.open("ab") as file:
            file.write(content[whole:] + b"\n")
            file.flush()
            os.fsync(file.fileno())
        os.ftruncate(descriptor, whole)
        logger.warning(
            "%s: the last line was cut short while the store was open; it is now in "
            "%s, and its trial runs again.",
            self.path,
            aside,
        )

    def _read(self):
        with self.path.open("rb") as file, _locked(file.fileno()):
            content = file.read()
            whole, newline, rest = content.rpartition(b"\n")
            lines = whole.split(b"\n") if newline else []
            rows = [self._parse(i, line) for i, line in enumerate(lines, 1)]
            if rest:
                # Cutting the file is one step for the system and keeps the file that
                # other processes append to; a mended copy moved over it would not.
                os.truncate(self.path, len(content) - len(rest))
                logger.warning(
                    "%s: line %d was cut short (a run was killed while writing it); "
                    "it is dropped and its trial runs again.",
                    self.path,
                    len(lines) + 1,
                )
        for row in rows:
            self._rows.setdefault(row_key(row, self.key), row)

    def _parse(self, number, line):
        try:
            return _checked(json.loads(line), self.key)
        except ValueError as error:
            raise StoreCorruptError(
                f"{self.path}, line {number} is not a row of results ({error}): "
                f"{line[:60]!r}. Correct or delete the line, or use another file."
            ) from error


def _checked(row, key):
    if not isinstance(row, dict):
        raise ValueError(f"a row must be a dict, got {type(row).__name__}")
    missing = [name for name in key if name not in row]
    if missing:
        raise ValueError(f"a row must have {', '.join(key)}; {missing[0]!r} is missing")
    return row


def _to_line(row):
    return json.dumps(row, allow_nan=False, default=_to_python) + "\n"


def _to_python(value):
    if hasattr(value, "tolist"):  # NumPy scalars and arrays
        return value.tolist()
    raise ValueError(f"a row cannot hold a {type(value).__name__}: {value!r}")


@contextlib.contextmanager
def _locked(descriptor):
    # A lock dies with its process: a killed run never leaves one behind.
    if fcntl is not None:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        yield
    finally:
        if fcntl is not None:
            fcntl.flock(descriptor, fcntl.LOCK_UN)
