"""Stages of work, who sees them, and the time they may take."""

import io
import logging
import threading

import pytest

from surff.backend import report, share_of_time, stage, time_is_up, watched


class Clock:
    """Seconds that pass only when asked to."""

    def __init__(self):
        self.now = 100.0

    def monotonic(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setitem(watched.__globals__, "time", clock)
    return clock


def work(clock, n=4, seconds=1.0):
    with stage("work", n, "rows") as progress:
        for _ in range(n):
            clock.now += seconds
            progress.advance()


def test_nobody_watches_by_default(capsys, clock):
    work(clock)
    watched(0, None, work, clock, seconds=100.0)
    assert capsys.readouterr() == ("", "")


def test_a_hook_sees_counts_rate_and_time_left(clock):
    seen = []
    watched(seen.append, None, work, clock)
    assert [progress.done for progress in seen] == [0, 1, 2, 3, 4, 4]
    assert [progress.finished for progress in seen] == [False] * 5 + [True]
    third = seen[2]
    assert third.names == ("work",)
    assert (third.total, third.unit, third.seconds) == (4, "rows", 2.0)
    assert (third.rate, third.seconds_left) == (1.0, 2.0)
    assert seen[0].rate is None
    assert seen[0].seconds_left is None


def test_what_comes_before_the_measured_start_is_not_in_the_rate(clock):
    seen = []

    def trials():
        with stage("trials", 202.0) as progress:
            clock.now += 30.0  # loads and compiles
            progress.advance(measured=False)
            clock.now += 2.0
            progress.advance()
            clock.now += 1150.0
            progress.advance(100)

    watched(seen.append, None, trials)
    left = [progress.seconds_left for progress in seen]
    # 101 units took 1152 s, and 100 are left.
    assert left[:2] == [None, None]
    assert left[2:4] == [2.0 * 200, pytest.approx(1152 / 101 * 100)]


def test_a_hook_is_called_at_most_ten_times_per_second(clock):
    seen = []
    watched(seen.append, None, work, clock, n=1000, seconds=0.001)
    assert 10 <= len(seen) <= 12
    assert seen[-1].done == 1000


def test_threads_advance_one_stage(clock):
    seen = []

    def together():
        with stage("work", 4000, "rows") as progress:
            threads = [
                threading.Thread(
                    target=lambda: [progress.advance() for _ in range(1000)]
                )
                for _ in range(4)
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()

    watched(seen.append, None, together)
    assert seen[-1].done == 4000


def test_stages_nest_and_rows_are_counted_once():
    seen = []

    def nested():
        with stage("gammas", 2, "gammas"), stage("pass", 3, "rows") as outer:
            with stage("pass", 1, "rows") as same:
                assert same is outer
                same.advance()
            with stage("Gram matrix", 9, "rows") as hidden:
                assert not hidden.is_watched
                hidden.advance(9)

    watched(seen.append, None, nested)
    assert {progress.names for progress in seen} == {("gammas",), ("gammas", "pass")}
    assert seen[-2].done == 1


def test_an_error_of_the_hook_ends_the_work_and_leaves_nothing(clock):
    def hook(progress):
        if progress.done == 2:
            raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        watched(hook, None, work, clock)
    with stage("more") as progress:
        assert not progress.is_watched


def test_an_error_of_the_work_closes_its_stages():
    seen = []

    def fail():
        with stage("outer"), stage("inner"):
            raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        watched(seen.append, None, fail)
    finished = [progress.names for progress in seen if progress.finished]
    assert finished == [("outer", "inner"), ("outer",)]


def test_an_outer_hook_is_kept():
    outer, inner = [], []
    watched(outer.append, None, watched, inner.append, None, work, Clock())
    assert outer
    assert not inner


def test_lines_come_after_three_seconds_and_then_every_ten(clock, capsys):
    def nested():
        with stage("gammas", 8, "gammas") as progress:
            for _ in range(2):
                work(clock, n=8)
                progress.say("best %.2f", 0.5)
                progress.advance()

    watched(1, None, nested)
    assert capsys.readouterr().err.splitlines() == [
        "gammas: 0 of 8 gammas, 3 s so far > work: 3 of 8 rows, 1 rows/s, 5 s left",
        "gammas: 1 of 8 gammas, 0.077 gammas/s, 1 min 31 s left, best 0.50 > "
        "work: 5 of 8 rows, 1 rows/s, 3 s left",
    ]


def test_lines_go_to_the_logger_where_it_listens(clock, capsys, caplog):
    with caplog.at_level(logging.INFO, logger="surff"):
        watched(0, None, work, clock, seconds=4.0)
        report("error %.1f", 0.25)
    assert capsys.readouterr().err == ""
    assert [record.name for record in caplog.records] == ["surff"] * 3
    assert caplog.messages[0] == "work: 1 of 4 rows, 0.25 rows/s, 12 s left"
    assert caplog.messages[2] == "error 0.2"


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_terminal_gets_a_bar(monkeypatch):
    pytest.importorskip("tqdm")
    monkeypatch.setitem(watched.__globals__, "BAR_SECONDS", 0.0)
    monkeypatch.setitem(watched.__globals__, "HOOK_SECONDS", 0.0)
    monkeypatch.setenv("COLUMNS", "200")
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)

    def nested():
        with stage("trials", 10.0) as progress:
            progress.advance(5)
            with stage("pass", 2_000_000, "rows") as rows:
                rows.say("error 0.5")
                rows.advance(1_000_000)
                report("a line")

    watched(1, None, nested)
    shown = terminal.getvalue()
    assert " 50%|" in shown
    assert "| trials: 50 %" in shown
    assert "| pass: 1,000,000 of 2,000,000 rows, " in shown
    assert " left, error 0.5" in shown
    assert "a line\n" in shown
    assert shown.endswith("\r")  # bars are wiped


def test_time_is_up_after_max_time_of_the_inner_and_the_outer_call(clock):
    def passes():
        found = [time_is_up()]
        clock.now += 5.0
        return [*found, time_is_up()]

    assert passes() == [False, False]
    assert watched(0, 5.0, passes) == [False, True]
    assert watched(0, 3.0, watched, 0, 9.0, passes) == [False, True]
    assert watched(0, 9.0, watched, 0, 3.0, passes) == [False, True]
    assert watched(0, 9.0, passes) == [False, False]
    assert not time_is_up()


def test_calls_share_the_time_that_is_left(clock):
    def until_up():
        began = clock.now
        while not time_is_up():
            clock.now += 1.0
        return clock.now - began

    def three():
        return [share_of_time(n, until_up) for n in (3, 2, 1)]

    assert watched(0, 12.0, three) == [4.0, 4.0, 4.0]
    assert share_of_time(3, time_is_up) is False
