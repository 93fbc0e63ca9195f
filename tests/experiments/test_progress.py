"""The time left comes from the cost of what is left, not from the number of trials."""

import io

import pytest
from rich.console import Console

from surff.experiments import RunProgress, Trial

TRIALS = [
    Trial("eeg", multiple, trial, ("rff",), float(cost))
    for multiple, cost in ((1, 1), (16, 100))
    for trial in range(2)
]
ROWS = [{"method": "rff", "accuracy": 0.785}, {"method": "rff-wide", "accuracy": 0.9}]


class Clock:
    def __init__(self):
        self.now = 50.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


def make_console(terminal):
    return Console(file=io.StringIO(), force_terminal=terminal, width=100)


def left(progress):
    return progress.bar.tasks[0].time_remaining


def test_time_left_is_cost_left_at_the_speed_after_the_first_trial(clock):
    with RunProgress(make_console(False), clock) as progress:
        progress.start(TRIALS)
        assert left(progress) is None
        clock.now += 30.0  # loads and compiles
        progress.done(TRIALS[0], ROWS)
        assert left(progress) is None
        clock.now += 2.0
        progress.done(TRIALS[1], ROWS)
        assert left(progress) == pytest.approx(400.0)  # 200 units of cost left
        clock.now += 1150.0
        progress.done(TRIALS[2], ROWS)
        # 101 units took 1152 s since the end of the first trial, and 100 are left.
        assert left(progress) == pytest.approx(1141.0)
        progress.done(TRIALS[3], ROWS)
        assert left(progress) == 0.0


def test_a_second_run_starts_again(clock):
    with RunProgress(make_console(False), clock) as progress:
        for _ in range(2):
            progress.start(TRIALS[:2])
            assert left(progress) is None
            for trial in TRIALS[:2]:
                clock.now += 5.0
                progress.done(trial, ROWS)
            assert left(progress) == 0.0
        progress.start([])
        assert left(progress) is None


def test_without_a_terminal_each_trial_is_a_line(clock):
    console = make_console(False)
    with RunProgress(console, clock) as progress:
        progress.start(TRIALS)
        for trial in TRIALS[:2]:
            progress.begin(trial)
            clock.now += 3661.0
            progress.done(trial, ROWS)
        progress.done(TRIALS[2], [{"method": "rff", "error": 0.0123}])
    lines = console.file.getvalue().splitlines()
    assert lines == [
        "eeg s = 1d trial 1: RFF 78.50, RFF, wide alpha grid 90.00 (1:01:01)",
        "eeg s = 1d trial 2: RFF 78.50, RFF, wide alpha grid 90.00 "
        "(2:02:02, 203:23:21 left)",
        "eeg s = 16d trial 1: RFF error 0.0123 (2:02:02, 1:00:25 left)",
    ]


def test_on_a_terminal_there_is_a_bar(clock):
    console = make_console(True)
    with RunProgress(console, clock) as progress:
        progress.start(TRIALS)
        progress.begin(TRIALS[0])
        progress.done(TRIALS[0], ROWS)
        clock.now += 1.0
        progress.begin(TRIALS[1])
        progress.done(TRIALS[1], ROWS)
        progress.bar.refresh()
    text = console.file.getvalue()
    assert "eeg s = 1d trial 2" in text
    assert "0:03:20" in text
    assert "78.50" not in text
