"""A progress bar with the time left, for runs whose steps cost very different times."""

import time

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
)
from rich.text import Text

from surff.experiments.methods import PEERS
from surff.experiments.render import DRAW_LABELS, LABELS

__all__ = ["RunProgress"]


def _clock(seconds):
    minutes, seconds = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{seconds:02d}"


class _TimeLeft(ProgressColumn):
    """What a field of the task, a function, says; rich's own guess looks back 30 s."""

    max_refresh = 0.5

    def render(self, task):
        left = task.fields["left"]()
        text = "-:--:--" if left is None else _clock(left)
        return Text(f"{text} left", style="progress.remaining")


class RunProgress:
    """Progress of a run of trials: a bar on a terminal, a line a trial elsewhere.

    A context manager. Writes to the standard error stream, so that a table on the
    standard output can be piped. The time left is the cost left at the mean speed
    since the end of the first trial, which pays for loading and compiling.

    Parameters
    ----------
    console : rich.console.Console, optional
    clock : callable, default=time.monotonic
        Seconds.
    """

    def __init__(self, console=None, clock=time.monotonic):
        self.console = Console(stderr=True) if console is None else console
        self._clock = clock
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TaskProgressColumn(),
            TimeElapsedColumn(),
            _TimeLeft(),
            console=self.console,
            transient=True,
            disable=not self.console.is_terminal,
        )
        self._task = None
        self._ahead = self._spent = 0.0
        self._started = self._first = self._last = 0.0

    def __enter__(self):
        self._bar.start()
        return self

    def __exit__(self, *error):
        self._bar.stop()

    def left(self):
        """Seconds left, or None before the second trial has ended."""
        if not self._spent:
            return None
        seconds = (self._last - self._first) * self._ahead / self._spent
        return max(seconds - (self._clock() - self._last), 0.0)

    def start(self, trials):
        """See `surff.experiments.table2.Silent`."""
        self._ahead = sum(trial.cost for trial in trials)
        self._spent = self._first = 0.0
        self._started = self._clock()
        if self._task is not None:
            self._bar.remove_task(self._task)
        self._task = self._bar.add_task("", total=self._ahead or None, left=self.left)

    def begin(self, trial):
        """See `surff.experiments.table2.Silent`."""
        self._bar.update(self._task, description=_name(trial))

    def done(self, trial, rows):
        """See `surff.experiments.table2.Silent`."""
        self._ahead -= trial.cost
        self._last = self._clock()
        if self._first:
            self._spent += trial.cost
        else:
            self._first = self._last
        self._bar.advance(self._task, trial.cost)
        if not self.console.is_terminal:
            self._print(trial, rows)

    def _print(self, trial, rows):
        names = {**LABELS, **DRAW_LABELS, **PEERS}
        found = ", ".join(f"{names[row['method']]} {_result(row)}" for row in rows)
        left = self.left()
        more = "" if left is None else f", {_clock(left)} left"
        elapsed = _clock(self._last - self._started)
        self.console.print(
            f"{_name(trial)}: {found} ({elapsed}{more})",
            highlight=False,
            soft_wrap=True,
        )


def _name(trial):
    size = f" s = {trial.multiple}d" if trial.multiple else ""
    return f"{trial.dataset}{size} trial {trial.trial + 1}"


def _result(row):
    if "left_out" in row:
        return "left out"
    for name in ("error", "spectral"):
        if name in row:
            return f"error {row[name]:.3g}"
    return f"{100 * row['score' if 'score' in row else 'accuracy']:.2f}"
