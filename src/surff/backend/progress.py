"""Progress of long work, and the time that it may take.

Work that may take long opens a `stage` and advances it; loops that can stop early ask
`time_is_up`. Nobody watches unless `watched` says so: then the stages of one call, on
the thread that makes it, go to a hook. Without one a stage does nothing. Hooks see
counts and never data, so results do not depend on them.

``verbose=1`` shows a bar on a terminal, if tqdm is installed, and a line every ten
seconds elsewhere. Lines go to the logger "surff" at level INFO where that is enabled,
and to stderr otherwise. With ``verbose=0`` there are lines only if the logger is
enabled for INFO.
"""

from __future__ import annotations

import contextlib
import importlib.util
import logging
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar, copy_context
from typing import Any, NamedTuple

__all__ = [
    "UNWATCHED",
    "Progress",
    "Stage",
    "report",
    "share_of_time",
    "stage",
    "time_is_up",
    "watched",
]

LOGGER = logging.getLogger("surff")

#: Least seconds between two calls of a hook by one stage.
HOOK_SECONDS = 0.1

#: Seconds between two lines.
LINE_SECONDS = 10.0

#: Seconds until the first line.
FIRST_LINE_SECONDS = 3.0

#: Seconds that a stage takes at least before it gets a bar.
BAR_SECONDS = 0.5


class Progress(NamedTuple):
    """State of a stage of work, which hooks are called with.

    Attributes
    ----------
    names : tuple of str
        Name of the stage, after those of the stages that it is part of.
    done : float
        What is done, in units.
    total : float or None
        All that there is to do, if it is known.
    unit : str
        What is counted; "" for a cost that has no name.
    seconds : float
        Time since the stage began.
    message : str
        What the stage says of itself, such as the best score so far.
    finished : bool
        Whether the stage is over: whether done, stopped or failed.
    start : tuple of two floats
        What was done, and when, as the rate was first measured.
    """

    names: tuple[str, ...]
    done: float
    total: float | None
    unit: str
    seconds: float
    message: str = ""
    finished: bool = False
    start: tuple[float, float] = (0.0, 0.0)

    @property
    def rate(self) -> float | None:
        """Units per second, or None at the beginning."""
        done, seconds = self.done - self.start[0], self.seconds - self.start[1]
        return None if done <= 0 or seconds <= 0 else done / seconds

    @property
    def seconds_left(self) -> float | None:
        """Time that the rest takes at the mean rate so far, or None if unknown."""
        if self.total is None or self.rate is None:
            return None
        return max(0.0, self.total - self.done) / self.rate


class Watch(NamedTuple):
    """Who watches a call, and until when it may last."""

    hook: Callable[[Progress], Any] | None
    deadline: float | None  # of `time.monotonic`
    stage: Stage | None = None  # the innermost

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the stages that are open, outermost first."""
        return () if self.stage is None else self.stage.names


#: The watch of what runs now. It is only ever set in a copy of the context, so nothing
#: of it stays after an error or an interrupt.
_watch: ContextVar[Watch | None] = ContextVar("surff_watch", default=None)


class Stage:
    """A stage of work; any thread may advance it.

    Parameters
    ----------
    hook : callable or None
        Called with `Progress`, one call at a time; None for nobody.
    names, total, unit
        See `Progress`.
    """

    def __init__(
        self,
        hook: Callable[[Progress], Any] | None,
        names: tuple[str, ...] = (),
        total: float | None = None,
        unit: str = "",
    ) -> None:
        self.names, self.unit = names, unit
        self._hook, self._total = hook, total
        self._done, self._message = 0.0, ""
        self._start = 0.0, 0.0
        self._lock = threading.RLock()
        self._began = self._called = time.monotonic()

    @property
    def is_watched(self) -> bool:
        """Whether anybody sees what is advanced."""
        return self._hook is not None

    def advance(self, n: float = 1, measured: bool = True) -> None:
        """Add what has been done.

        What is not ``measured``, such as a first step that loads and compiles, is left
        out of the rate, with all before it.
        """
        if self._hook is None:
            return
        with self._lock:
            self._done += n
            if not measured:
                self._start = self._done, time.monotonic() - self._began
            if time.monotonic() >= self._called + HOOK_SECONDS:
                self._call()

    def say(self, message: str, *values: object) -> None:
        """Set the message, in the style of `logging`; the next call shows it."""
        if self._hook is not None:
            self._message = message % values

    def begin(self) -> None:
        """Show the stage for the first time."""
        with self._lock:
            self._call()

    def finish(self) -> None:
        """Show the stage for the last time."""
        with self._lock:
            self._call(finished=True)

    def _call(self, finished=False):
        self._called = now = time.monotonic()
        done = int(self._done) if self._done == int(self._done) else self._done
        state = (self.names, done, self._total, self.unit, now - self._began)
        self._hook(Progress(*state, self._message, finished, self._start))


#: The stage of work that nobody watches.
UNWATCHED = Stage(None)


@contextlib.contextmanager
def stage(name: str, total: float | None = None, unit: str = "") -> Iterator[Stage]:
    """Open a stage of work, shown to whoever watches the call that it is part of.

    Within a stage of the same name it is that stage; within one that counts the same
    unit it is not shown, so that rows are counted once. Not for generators: a stage
    must be closed before its caller goes on.

    Parameters
    ----------
    name : str
        What is done, in a word or two.
    total : float, optional
        How much there is to do.
    unit : str, default=""
        What is counted, in the plural.

    Yields
    ------
    Stage

    Examples
    --------
    >>> from surff.backend import stage, watched
    >>> def work():
    ...     with stage("rows", 3, "rows") as progress:
    ...         for _ in range(3):
    ...             progress.advance()
    >>> watched(lambda progress: print(progress.names, progress.done), None, work)
    ('rows',) 0
    ('rows',) 3
    """
    watch = _watch.get()
    if watch is None or watch.hook is None:
        yield UNWATCHED
        return
    if (outer := watch.stage) is not None and (
        outer.names[-1] == name or (unit and outer.unit == unit)
    ):
        yield outer if outer.names[-1] == name else UNWATCHED
        return
    opened = Stage(watch.hook, (*watch.names, name), total, unit)
    token = _watch.set(watch._replace(stage=opened))
    try:
        opened.begin()
        yield opened
    finally:
        _watch.reset(token)
        opened.finish()


def watched(
    verbose: Any,
    max_time: float | None,
    function: Callable[..., Any],
    *args: Any,
    **kwargs: Any,
) -> Any:
    """Call a function whose stages are shown, and whose loops end in time.

    Parameters
    ----------
    verbose : int, bool or callable
        0: nothing, or lines to the logger "surff" where it is enabled for INFO.
        1: a bar on a terminal, lines elsewhere. A callable is called with `Progress`
        at most ten times per second and stage, not always by the thread that calls;
        what it raises ends the work. Inside a call that is watched already, its hook
        is kept.
    max_time : float or None
        Seconds after which `time_is_up`; None for no limit but that of an outer call.
    function : callable
    *args, **kwargs
        What it is called with.

    Returns
    -------
    result : object
        What the function returns.
    """
    outer = _watch.get()
    hook = None if outer is None else outer.hook
    if hook is None:
        hook = hook_of(verbose)
    if hook is None and max_time is None:
        return function(*args, **kwargs)
    deadline, within = None, None
    if outer is not None:
        _, deadline, within = outer
    if max_time is not None:
        own = time.monotonic() + max_time
        deadline = own if deadline is None else min(own, deadline)
    return _run_under(Watch(hook, deadline, within), function, args, kwargs)


def _run_under(watch, function, args, kwargs):
    """Call a function with a watch, in a context of its own."""

    def run():
        _watch.set(watch)
        try:
            return function(*args, **kwargs)
        finally:
            if isinstance(watch.hook, Bars):
                watch.hook.close(watch.names)

    return copy_context().run(run)


def time_is_up() -> bool:
    """Whether the time of the call that this is part of is over."""
    watch = _watch.get()
    if watch is None or watch.deadline is None:
        return False
    return time.monotonic() >= watch.deadline


def share_of_time(n: int, function: Callable[..., Any], *args: Any) -> Any:
    """Call a function that may take the ``n``-th part of the time that is left.

    Parameters
    ----------
    n : int
        Number of such calls to come, this one included.
    function : callable
    *args
        What it is called with.

    Returns
    -------
    result : object
        What the function returns.
    """
    watch = _watch.get()
    if watch is None or watch.deadline is None or n <= 1:
        return function(*args)
    now = time.monotonic()
    own = now + max(0.0, watch.deadline - now) / n
    return _run_under(watch._replace(deadline=own), function, args, {})


# -- who shows it ----------------------------------------------------------------------


def hook_of(verbose: Any) -> Callable[[Progress], Any] | None:
    """Return the hook that ``verbose`` asks for, None for nobody."""
    if callable(verbose):
        return verbose
    if not verbose:
        return Lines() if is_logged() else None
    is_terminal = getattr(sys.stderr, "isatty", bool)()
    if is_terminal and importlib.util.find_spec("tqdm") is not None:
        return Bars()
    return Lines()


def is_logged() -> bool:
    """Whether anybody listens to the logger at level INFO."""
    return LOGGER.isEnabledFor(logging.INFO) and LOGGER.hasHandlers()


def report(message: str, *values: object) -> None:
    """Log a line at level INFO; write it to stderr where nobody listens at that level.

    Parameters
    ----------
    message : str
        In the style of `logging`, with a ``%`` place for each value.
    *values : object
        What goes there.
    """
    if is_logged():
        LOGGER.info(message, *values)
        return
    watch = _watch.get()
    if watch is not None and isinstance(watch.hook, Bars):
        watch.hook.write(message % values)
    else:
        sys.stderr.write(message % values + "\n")


class Lines:
    """A line every ten seconds, of the stages that are at work, outermost first."""

    def __init__(self) -> None:
        self._next = time.monotonic() + FIRST_LINE_SECONDS
        self._lock = threading.Lock()
        self._open: list[tuple[Progress, float]] = []  # and when they were shown

    def __call__(self, progress: Progress) -> None:
        """Take the state of a stage, and write a line if it is time."""
        with self._lock:
            now = time.monotonic()
            del self._open[len(progress.names) - 1 :]
            self._open.append((progress, now))
            line = None
            if now >= self._next:
                self._next = now + LINE_SECONDS
                line = " > ".join(
                    progress_line(one._replace(seconds=one.seconds + now - then))
                    for one, then in self._open
                    if one.done
                    or one is self._open[0][0]
                    or one.seconds + now - then >= 1.0
                )
            if progress.finished:
                self._open.pop()
        if line is not None:
            report("%s", line)


class Bars:
    """A bar of tqdm for each stage that is at work, on a terminal."""

    def __init__(self) -> None:
        self._bars: list[Any] = []  # outermost first
        self._names: list[tuple[str, ...]] = []
        self._refreshed = time.monotonic()
        self._lock = threading.RLock()

    def __call__(self, progress: Progress) -> None:
        """Show a stage."""
        with self._lock:
            depth = len(progress.names) - 1
            if progress.finished:
                self.close(progress.names[:-1])
                return
            if self._names[depth : depth + 1] != [progress.names]:
                self.close(progress.names[:-1])
                while len(self._bars) < depth:  # a stage that began unwatched
                    self._open(progress._replace(names=progress.names[:depth]))
                self._open(progress)
            bar = self._bars[depth]
            bar.set_description_str(progress_line(progress), refresh=False)
            bar.update(progress.done - bar.n)
            if (now := time.monotonic()) >= self._refreshed + 1.0:
                self._refreshed = now
                for outer in self._bars[:depth]:  # they have no news of their own
                    outer.refresh()

    def _open(self, progress):
        from tqdm import tqdm

        # Where a terminal does not know its size tqdm would show nothing.
        size = shutil.get_terminal_size()
        bar = tqdm(
            total=progress.total,
            bar_format="{percentage:3.0f}%|{bar:20}| {desc}"
            if progress.total
            else "{desc}",
            leave=False,
            delay=BAR_SECONDS,
            ncols=size.columns - 1,
            nrows=size.lines,
            file=sys.stderr,
        )
        self._bars.append(bar)
        self._names.append(progress.names)

    def close(self, names: tuple[str, ...]) -> None:
        """Close the bars of all stages within a stage."""
        with self._lock:
            while len(self._bars) > len(names):
                self._names.pop()
                self._bars.pop().close()

    def write(self, line: str) -> None:
        """Write a line above the bars."""
        from tqdm import tqdm

        with self._lock:
            tqdm.write(line, file=sys.stderr)


def progress_line(progress: Progress) -> str:
    """Return the state of a stage as a line of text.

    Examples
    --------
    >>> from surff.backend.progress import Progress, progress_line
    >>> progress_line(Progress(("gammas", "pass"), 2e6, 5e6, "rows", 4.0))
    'pass: 2,000,000 of 5,000,000 rows, 500,000 rows/s, 6 s left'
    """
    parts = []
    if progress.unit:
        of = "" if progress.total is None else f" of {progress.total:,.0f}"
        parts.append(f"{progress.done:,.0f}{of} {progress.unit}")
        if (rate := progress.rate) is not None:
            number = f"{rate:,.0f}" if rate >= 10 else f"{rate:.2g}"
            parts.append(f"{number} {progress.unit}/s")
    elif progress.total:
        parts.append(f"{100 * progress.done / progress.total:.0f} %")
    if (left := progress.seconds_left) is not None:
        parts.append(f"{duration(left)} left")
    else:
        parts.append(f"{duration(progress.seconds)} so far")
    if progress.message:
        parts.append(progress.message)
    return f"{progress.names[-1]}: {', '.join(parts)}"


def duration(seconds: float) -> str:
    """Return a number of seconds in words.

    Examples
    --------
    >>> from surff.backend.progress import duration
    >>> duration(4.4), duration(200), duration(7500)
    ('4 s', '3 min 20 s', '2 h 5 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
