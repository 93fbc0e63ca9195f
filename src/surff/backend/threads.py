"""Our own threads, over ranges of rows.

A pass over the data is cut into one contiguous range of rows per thread; each thread
maps, multiplies and sums its own blocks from beginning to end: threads meet once, at
the end. While they run, BLAS runs single-threaded inside each of them, so nothing is
oversubscribed. The kernels of `surff.backend.trig` and BLAS release the GIL, so plain
Python threads do. numba's parallel layers are not used: one aborts the process when two
threads enter it at once, another does not survive a fork, and users call us from
joblib, Dask and web servers. The threads are shared by all callers, their ranges never
wait for one another, and a forked child starts its own.

They are not those of `concurrent.futures`: an interrupt while that starts a thread
leaves one which nobody tells to end, and the interpreter waits for it. Ours are daemons
that are only asked to help: a pass whose helpers are busy, or not reached because
an interrupt came first, is done by its caller.
"""

from __future__ import annotations

import collections
import contextlib
import functools
import itertools
import os
import threading
from collections.abc import Callable, Iterator
from queue import SimpleQueue
from typing import Any

from threadpoolctl import ThreadpoolController

__all__ = [
    "interruptible",
    "map_slices",
    "n_threads",
    "one_thread",
    "single_threaded_blas",
]

_lock = threading.Lock()
_helpers: list[threading.Thread] = []  # at most one per CPU
_passes_to_help: SimpleQueue[_Pass] = SimpleQueue()  # what they wait for
_blas_limits = None  # what BLAS was allowed before the first pass that now runs
_owed = None  # what another library's limit, begun inside ours, will not give back
_passes: set[object] = set()  # that run now
_here = threading.local()  # ``alone`` on threads that are to use no others


def _forget_parent():
    """Drop the parent's threads and passes in a forked child, which has neither."""
    global _lock, _helpers, _passes_to_help
    _lock, _helpers, _passes_to_help = threading.Lock(), [], SimpleQueue()
    if _passes:
        _passes.clear()
        _set_blas_limits(_blas_limits)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_parent)


@functools.cache
def _n_cpus():
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@functools.cache
def _blas():
    return ThreadpoolController().select(user_api="blas").lib_controllers


def _set_blas_limits(limits):
    """Set the limits of the process, from whatever thread.

    From its version 3.7 on threadpoolctl ignores all threads but the one that first set
    a limit of OpenBLAS; a pass that another thread begins would run without ours.
    """
    for library, limit in zip(_blas(), limits, strict=True):
        give_control_up = getattr(library, "clear_controlling_thread", _do_nothing)
        give_control_up(force=True)
        library.set_num_threads(limit)
        give_control_up(force=True)


def _do_nothing(force):
    """What older versions of threadpoolctl have to give up."""


@contextlib.contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Limit BLAS to one thread inside; nested and concurrent passes count as one.

    The limit belongs to the process: meanwhile the products of other Python threads
    run on one thread, too.
    """
    global _blas_limits, _owed
    own = object()
    try:
        with _lock:
            if not _passes:
                _blas_limits, _owed = _trusted_limits(), None
                _passes.add(own)
                _set_blas_limits([1] * len(_blas_limits))
            _passes.add(own)
        yield
    finally:
        _whatever_interrupts(lambda: _end_pass(own))


def _end_pass(own):
    """Give the limits of BLAS back if no other pass runs."""
    global _owed
    with _lock:
        _passes.discard(own)
        if not _passes and _blas_limits is not None:
            if any(library.num_threads != 1 for library in _blas()):
                _owed = _blas_limits
            _set_blas_limits(_blas_limits)


def _whatever_interrupts(function):
    """Call ``function`` until nothing that a signal raises ends it; then raise that.

    It is an interrupt, or what a handler of the caller's raises. More than a few in a
    row are errors of the function itself.
    """
    error = None
    for _ in range(20):
        try:
            function()
            break
        except BaseException as raised:
            error = raised
    if error is not None:
        raise error


def _trusted_limits():
    """Limits of BLAS now; not the ones that were ours and came back too late.

    A limit of another library that begins inside a pass and ends after it reads our
    one thread and restores it. We see that such a limit was there at the end of the
    pass, so the next look at one thread everywhere is answered with what held before.
    """
    limits = [library.num_threads for library in _blas()]
    late = _owed is not None and all(limit == 1 for limit in limits)
    return _owed if late else limits


def n_threads() -> int:
    """Number of threads to use now: as many as BLAS may, at most one per usable CPU.

    ``OPENBLAS_NUM_THREADS``, ``threadpoolctl.threadpool_limits`` and the inner limits
    of joblib and Dask workers therefore govern us as they govern BLAS.
    """
    if getattr(_here, "alone", False):
        return 1
    with _lock:
        limits = _blas_limits if _passes else _trusted_limits()
    return max(1, min([_n_cpus(), *(limit for limit in limits if limit)]))


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Keep the calling thread alone inside: neither our threads nor BLAS's help it.

    For the tasks of a scheduler that runs one task per thread itself.
    """
    before = getattr(_here, "alone", False)
    _here.alone = True
    try:
        with single_threaded_blas():
            yield
    finally:
        _here.alone = before


class _Pass:
    """Ranges of rows, done by the caller and by those of our threads that come.

    Parameters
    ----------
    function : callable
        Takes a slice.
    slices : list of slice
        The ``i``-th is begun on the ``i``-th of ``cpus``.
    cpus : list of int
        Those that the caller may use; empty where they cannot be chosen.
    """

    def __init__(self, function, slices, cpus):
        self._function = function
        self._cpus = cpus
        self._left = collections.deque(enumerate(slices))
        self._results = [None] * len(slices)
        self._errors = []
        self._n_begun = 0  # by other threads, and not yet ended
        self._changed = threading.Condition()

    def help(self):
        """Do ranges until none is left; an error is the caller's, who waits for us."""
        while (taken := self._take(1)) is not None:
            try:
                self._do(*taken)
            except BaseException as error:
                self._errors.append(error)
            with self._changed:
                if self._errors:
                    self._left.clear()
                self._n_begun -= 1
                self._changed.notify_all()

    def do(self):
        """Do what is left on the caller's thread."""
        while (taken := self._take(0)) is not None:
            self._do(*taken)

    def close(self):
        """Begin no other range and wait for those that other threads have begun."""
        with self._changed:
            self._left.clear()
            self._changed.wait_for(lambda: self._n_begun == 0)
        self._function = None  # who comes too late to help keeps no arrays

    def results(self):
        """Results in the order of the ranges; the first error that there was."""
        if self._errors:
            raise self._errors.pop(0)
        return self._results

    def _take(self, n_begun):
        with self._changed:
            if not self._left:
                return None
            taken = self._left.popleft()
            self._n_begun += n_begun
            return taken

    def _do(self, i, part):
        self._results[i] = _start_on(self._cpus, i, self._function, part)


def _help(passes):
    """Help with one pass after the other, for ever."""
    while True:
        passes.get().help()


def _ask_for_help(work, n_threads):
    """Let ``n_threads`` of our threads know of a pass."""
    with _lock:
        # Counted when it runs: an interrupt leaves one more thread, never one fewer.
        while len(_helpers) < _n_cpus():
            thread = threading.Thread(
                target=_help,
                args=(_passes_to_help,),
                name=f"surff_{len(_helpers)}",
                daemon=True,
            )
            try:
                thread.start()
            except RuntimeError:
                break  # no more threads here, or the interpreter ends
            _helpers.append(thread)
    for _ in range(n_threads):
        _passes_to_help.put(work)


def map_slices(
    function: Callable[[slice], Any], n_rows: int, minimum: int = 64
) -> list[Any]:
    """Results of ``function(slice)`` on contiguous row ranges, one per thread.

    Parameters
    ----------
    function : callable
        Takes a slice. It must not call `map_slices` itself.
    n_rows : int
        Rows to share out.
    minimum : int, default=64
        Fewest rows for which another thread is worth its start.

    Returns
    -------
    results : list
        In the order of the rows; a single result if one thread does all rows.
    """
    most = n_rows // minimum
    n_parts = min(n_threads(), most) if most > 1 else 1
    if n_parts == 1:
        with interruptible():
            return [function(slice(0, n_rows))]
    bounds = [n_rows * i // n_parts for i in range(n_parts + 1)]
    slices = [slice(*pair) for pair in itertools.pairwise(bounds)]
    cpus = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_setaffinity") else []
    work = _Pass(function, slices, cpus)
    with single_threaded_blas():
        try:
            _ask_for_help(work, n_parts - 1)
            with interruptible():
                work.do()
        finally:
            # Also after an error no thread may go on writing into the caller's arrays.
            _whatever_interrupts(work.close)
    return work.results()


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """Let an interrupt inside compiled code be a `KeyboardInterrupt`.

    A signal that arrives while numba calls a function of Python is handled there, and
    the interpreter finds results together with an exception, at one or two levels: a
    `SystemError` that the interrupt has caused.
    """
    try:
        yield
    except SystemError as error:
        cause = error.__cause__
        while isinstance(cause, SystemError):
            cause = cause.__cause__
        if isinstance(cause, KeyboardInterrupt):
            raise KeyboardInterrupt from error
        raise


def _start_on(cpus, i, function, part):
    """Call ``function(part)`` on a thread that starts on the ``i``-th CPU.

    Linux wakes a thread on the CPU of the one that calls it and may leave both there
    for longer than a pass takes. Asking for one CPU moves the thread at once; asking
    for all of them right after leaves the scheduler free to move it again.
    """
    if len(cpus) > 1:
        with contextlib.suppress(OSError):  # a sandbox may forbid it
            # Both calls inside one call of C: no signal is handled between them, so an
            # interrupt leaves no thread on one CPU.
            masks = ({cpus[i % len(cpus)]}, cpus)
            collections.deque(map(os.sched_setaffinity, (0, 0), masks), maxlen=0)
    return function(part)
