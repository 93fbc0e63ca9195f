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

from surff.experiments.protocol import ABLATION, METHODS

__all__ = ["RunProgress"]


def _clock(seconds):
    minutes, seconds = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{seconds:02d}"


class _TimeLeft(ProgressColumn):
    """Cost left at the mean speed so far; rich's own looks back some seconds only."""

    max_refresh = 0.5

    def render(self, task):
        if not task.completed or task.total is None:
            return Text("-:--:-- left", style="progress.remaining")
        left = task.elapsed * (task.total - task.completed) / task.completed
        return Text(f"{_clock(left)} left", style="progress.remaining")


class RunProgress:
    """Progress of `run_table2`: a bar on a terminal, a line a trial elsewhere.

    A context manager. Writes to the standard error stream, so that a table on the
    standard output can be piped.

    Parameters
    ----------
    console : rich.console.Console, optional
    """

    def __init__(self, console=None):
        self.console = Console(stderr=True) if console is None else console
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
        self._total = self._spent = 0.0
        self._started = 0.0

    def __enter__(self):
        self._bar.start()
        return self

    def __exit__(self, *error):
        self._bar.stop()

    def start(self, trials):
        """See `surff.experiments.table2.Silent`."""
        self._total = sum(trial.cost for trial in trials)
        self._started = time.monotonic()
        self._task = self._bar.add_task("", total=self._total or None)

    def begin(self, trial):
        """See `surff.experiments.table2.Silent`."""
        self._bar.update(self._task, description=_name(trial))

    def done(self, trial, rows):
        """See `surff.experiments.table2.Silent`."""
        self._bar.advance(self._task, trial.cost)
        self._spent += trial.cost
        if self.console.is_terminal:
            return
        elapsed = time.monotonic() - self._started
        left = elapsed * (self._total / self._spent - 1.0)
        names = {**METHODS, **ABLATION}
        found = ", ".join(
            f"{names[row['method']]} {100 * row['accuracy']:.2f}" for row in rows
        )
        self.console.print(
            f"{_name(trial)}: {found} ({_clock(elapsed)}, {_clock(left)} left)",
            highlight=False,
            soft_wrap=True,
        )


def _name(trial):
    return f"{trial.dataset} s = {trial.multiple}d trial {trial.trial + 1}"
