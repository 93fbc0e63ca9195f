"""Progress of a run whose steps take very different times."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from surff.experiments.methods import NAMES
from surff.experiments.runner import Silent, Trial

__all__ = ["RunProgress"]

#: Seconds over which the speed is estimated: the whole of any run.
FOREVER = 1e9


class RunProgress(Silent):
    """Progress of a run of trials: a bar on a terminal, a line per trial elsewhere.

    A context manager. Writes to the standard error stream, so that a table on the
    standard output can be piped. The time left is the remaining cost at the mean speed
    since the end of the first trial, which pays for loading and compiling.

    Parameters
    ----------
    console : rich.console.Console, optional
    clock : callable, default=time.monotonic
        Seconds.
    """

    def __init__(
        self,
        console: Console | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.console = Console(stderr=True) if console is None else console
        self.bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TaskProgressColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            TextColumn("left"),
            console=self.console,
            transient=True,
            disable=not self.console.is_terminal,
            speed_estimate_period=FOREVER,
            get_time=clock,
        )

    def __enter__(self) -> RunProgress:
        self.bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.bar.stop()

    def start(self, trials: Sequence[Trial]) -> None:
        """See `surff.experiments.runner.Silent`."""
        for task in self.bar.task_ids:
            self.bar.remove_task(task)
        self.bar.add_task("", total=sum(trial.cost for trial in trials) or None)

    def begin(self, trial: Trial) -> None:
        """See `surff.experiments.runner.Silent`."""
        self.bar.update(self.bar.task_ids[0], description=_name(trial))

    def done(self, trial: Trial, rows: Sequence[dict]) -> None:
        """See `surff.experiments.runner.Silent`."""
        self.bar.advance(self.bar.task_ids[0], trial.cost)
        if self.console.is_terminal:
            return
        (task,) = self.bar.tasks
        found = ", ".join(f"{NAMES[row['method']]} {_result(row)}" for row in rows)
        times = str(TimeElapsedColumn().render(task))
        if task.time_remaining is not None:
            times += f", {TimeRemainingColumn().render(task)} left"
        self.console.print(
            f"{_name(trial)}: {found} ({times})",
            highlight=False,
            markup=False,
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
