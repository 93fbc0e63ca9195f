import contextlib
import gc
import multiprocessing
import os
import queue
import subprocess
import sys
import threading
import time
import warnings
import weakref
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from threadpoolctl import threadpool_limits

from surff.backend import map_slices, n_threads, single_threaded_blas
from surff.backend import threads as _threads
from surff.kernels import fourier_features

#: Seconds after which a child counts as hung.
TIMEOUT = 60


@pytest.fixture
def four_threads(monkeypatch):
    """Four threads whatever the machine: the caller's and three that help."""
    monkeypatch.setattr(_threads, "n_threads", lambda: 4)
    monkeypatch.setattr(_threads, "_n_cpus", lambda: 3)


@pytest.mark.parametrize("n_rows", [0, 1, 3, 4, 63, 64, 257, 1000])
@pytest.mark.parametrize("minimum", [1, 64])
def test_every_row_is_visited_once(four_threads, n_rows, minimum):
    visits = np.zeros(n_rows, dtype=int)

    def visit(rows):
        visits[rows] += 1

    map_slices(visit, n_rows, minimum)
    assert_array_equal(visits, 1)


def test_parts_run_at_the_same_time(four_threads):
    # Each part waits for all others: with fewer threads than parts this would time out.
    barrier = threading.Barrier(4)
    map_slices(lambda rows: barrier.wait(TIMEOUT), 4, minimum=1)


def test_few_rows_stay_on_the_callers_thread(four_threads):
    seen = []
    map_slices(lambda rows: seen.append(threading.current_thread()), 127)
    assert seen == [threading.current_thread()]


def test_every_thread_may_limit_blas():
    # threadpoolctl 3.7 and later listens to the first thread that sets a limit alone.
    def limits():
        with single_threaded_blas():
            return [library.num_threads for library in _threads._blas()]

    before = [library.num_threads for library in _threads._blas()]
    ones = [1] * len(before)
    assert limits() == ones
    for _ in range(2):
        with ThreadPoolExecutor(1) as pool:
            assert pool.submit(limits).result() == ones
    assert [library.num_threads for library in _threads._blas()] == before


@pytest.mark.parametrize("failing", [0, 2])
def test_errors_reach_the_caller(four_threads, failing):
    def fail(rows):
        if rows.start == failing:
            raise ZeroDivisionError(f"row {failing}")

    with pytest.raises(ZeroDivisionError, match=f"row {failing}"):
        map_slices(fail, 4, minimum=1)


@pytest.mark.parametrize("failing", [0, 4])
def test_an_error_waits_for_the_other_threads(four_threads, failing):
    # A thread left behind would go on writing into the caller's arrays.
    begun, ended = threading.Barrier(4), []

    def fail(rows):
        begun.wait(TIMEOUT)
        if rows.start == failing:
            raise ZeroDivisionError
        if rows.start == 12:
            time.sleep(0.2)
        ended.append(rows.start)

    with pytest.raises(ZeroDivisionError):
        map_slices(fail, 16, minimum=4)
    assert sorted(ended) == [start for start in (0, 4, 8, 12) if start != failing]


def test_a_pass_without_helpers_is_done_by_its_caller(four_threads, monkeypatch):
    monkeypatch.setattr(_threads, "_helpers", [])
    monkeypatch.setattr(_threads, "_passes_to_help", queue.SimpleQueue())

    def cannot_start(self):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", cannot_start)
    here = threading.current_thread()
    assert map_slices(lambda rows: threading.current_thread(), 4, minimum=1) == 4 * [
        here
    ]


def test_an_error_of_helpers_keeps_no_arrays(four_threads):
    array = np.zeros(3)
    alive, barrier = weakref.ref(array), threading.Barrier(4)

    def fail(rows, array=array):
        barrier.wait(TIMEOUT)
        if rows.start == 2:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        map_slices(fail, 4, minimum=1)
    del array, fail
    gc.collect()
    assert alive() is None


def test_results_come_in_the_order_of_the_rows(four_threads):
    def last_first(rows):
        time.sleep(0.02 * (4 - rows.start))
        return rows.start

    assert map_slices(last_first, 4, minimum=1) == [0, 1, 2, 3]


def test_threads_follow_the_limits_of_blas():
    assert n_threads() >= 1
    with threadpool_limits(1, user_api="blas"):
        assert n_threads() == 1


def blas_threads():
    return [library.num_threads for library in _threads._blas()]


@pytest.mark.skipif(not _threads._blas(), reason="threadpoolctl knows no BLAS here")
def test_blas_is_single_threaded_inside_a_pass_and_restored_after(four_threads):
    seen = []

    def look(rows):
        seen.append(blas_threads())
        if rows.start == 3:
            raise ZeroDivisionError

    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        with pytest.raises(ZeroDivisionError):
            map_slices(look, 4, minimum=1)
        assert blas_threads() == before
    assert len(seen) == 4
    assert all(set(limits) == {1} for limits in seen)


@pytest.mark.skipif(not _threads._blas(), reason="threadpoolctl knows no BLAS here")
def test_overlapping_passes_restore_the_limits_once(monkeypatch):
    monkeypatch.setattr(_threads, "_n_cpus", lambda: 3)
    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        first, second = single_threaded_blas(), single_threaded_blas()
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        assert set(blas_threads()) == {1}
        # A pass that starts now plans with the limits outside, not with the one inside.
        assert n_threads() == min(before)
        second.__exit__(None, None, None)
        assert blas_threads() == before


def exact_problem():
    """Data whose projections are exact in any order of summation."""
    rng = np.random.default_rng(0)
    X = rng.integers(-8, 9, size=(3000, 6)) / 8.0
    frequencies = rng.integers(-8, 9, size=(70, 6)) / 4.0
    return X, frequencies


def test_concurrent_calls_give_identical_results(four_threads):
    X, frequencies = exact_problem()
    expected = fourier_features(X, frequencies)
    start = threading.Barrier(8)

    def call(_):
        start.wait(TIMEOUT)
        return [fourier_features(X, frequencies) for _ in range(5)]

    with ThreadPoolExecutor(8) as pool:
        for results in pool.map(call, range(8)):
            for Z in results:
                assert_array_equal(Z, expected)


def _transform_in_child(connection, X, frequencies):
    Z = fourier_features(X, frequencies)
    connection.send((Z, [library.num_threads for library in _threads._blas()]))
    connection.close()


@pytest.mark.skipif(
    "fork" not in multiprocessing.get_all_start_methods(), reason="no fork here"
)
@pytest.mark.parametrize("state", ["idle", "locked", "in a pass"])
def test_a_forked_child_computes_features(four_threads, state):
    X, frequencies = exact_problem()
    expected = fourier_features(X, frequencies)
    # The pool has all its threads, and the child will have none of them.
    barrier = threading.Barrier(4)
    map_slices(lambda rows: barrier.wait(TIMEOUT), 4, minimum=1)
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=_transform_in_child, args=(sender, X, frequencies))
    # What another thread may be doing at that moment: making the pool, or a pass.
    busy = {
        "idle": contextlib.nullcontext(),
        "locked": _threads._lock,
        "in a pass": single_threaded_blas(),
    }[state]
    limits = blas_threads()
    with busy, warnings.catch_warnings():
        # Python 3.12 warns of any fork of a process with threads.
        warnings.filterwarnings("ignore", category=DeprecationWarning)
        child.start()
    try:
        assert receiver.poll(TIMEOUT), "the forked child hangs"
        Z, child_limits = receiver.recv()
        assert_array_equal(Z, expected)
        assert child_limits == limits
        child.join(TIMEOUT)
        assert child.exitcode == 0
    finally:
        child.kill()
        child.join()


FIRST_CALL = """
import numpy as np
from surff import FourierFeatures, KernelRidgeRegressor
X = np.random.default_rng(0).normal(size=(300, 3))
KernelRidgeRegressor(FourierFeatures(8, random_state=0)).fit(X, X[:, 0])
"""


def test_import_and_first_call_say_nothing(tmp_path, monkeypatch):
    # An empty cache: the first run compiles the kernels, the second one loads them.
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    for _ in range(2):
        run = subprocess.run(
            [sys.executable, "-W", "error", "-c", FIRST_CALL],
            capture_output=True, text=True, timeout=5 * TIMEOUT, check=False,
        )  # fmt: skip
        assert (run.returncode, run.stdout, run.stderr) == (0, "", "")
    assert list(tmp_path.rglob("*.nbc")), "compiled code was not cached"


def test_one_thread_alone():
    with threadpool_limits(2, user_api="blas"):
        before = n_threads()
        with _threads.one_thread(), _threads.one_thread():
            assert n_threads() == 1
            assert all(library.num_threads == 1 for library in _threads._blas())
            with ThreadPoolExecutor(1) as other:
                assert other.submit(n_threads).result() == before
        assert n_threads() == before


SIGNALS = """
import os, queue, signal, threading
import numpy as np
from surff.backend import threads

threads.n_threads = lambda: 4

class Stopped(Exception):
    pass

inside = False

def stop(number, frame):
    if inside:
        raise Stopped

signal.signal(signal.SIGINT, stop)
cpus, stopped = os.sched_getaffinity(0), 0
for wait in np.random.default_rng(0).uniform(0.0, 2e-3, size=150):
    sender = threading.Timer(wait, os.kill, (os.getpid(), signal.SIGINT))
    sender.start()
    # New threads each time: an interrupt while one starts must not keep the process.
    threads._helpers, threads._passes_to_help = [], queue.SimpleQueue()
    try:
        inside = True
        for _ in range(100):
            threads.map_slices(lambda rows: None, 4, minimum=1)
        inside = False
    except Stopped:
        inside = False
        stopped += 1
    sender.join()
    assert os.sched_getaffinity(0) == cpus
print(stopped)
"""


@pytest.mark.skipif(
    not hasattr(os, "sched_setaffinity"), reason="CPUs cannot be chosen here"
)
def test_a_signal_leaves_the_calling_thread_on_all_cpus():
    """150 signals, most of them inside a pass of four threads."""
    run = subprocess.run(
        [sys.executable, "-c", SIGNALS],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    assert int(run.stdout) > 75


def test_an_interrupt_inside_compiled_code_is_an_interrupt():
    def interrupted(rows):
        inner = SystemError("returned a result with an exception set")
        inner.__cause__ = KeyboardInterrupt()
        raise SystemError("returned a result with an exception set") from inner

    with pytest.raises(KeyboardInterrupt):
        map_slices(interrupted, 1)


def test_a_foreign_limit_that_outlives_a_pass_does_not_stay():
    before = [library.num_threads for library in _threads._blas()]
    _threads._set_blas_limits([2] * len(before))
    try:
        with single_threaded_blas():
            other = threadpool_limits(2, user_api="blas")
        other.restore_original_limits()  # to the one thread that it read inside ours
        with single_threaded_blas():
            pass
        after = [library.num_threads for library in _threads._blas()]
        assert after == [2] * len(before)
    finally:
        _threads._set_blas_limits(before)


def test_interrupted_fits_are_interrupts_and_leave_nothing():
    script = Path(__file__).parents[1] / "fuzz" / "interrupts.py"
    run = subprocess.run(
        [sys.executable, script, "--n", "3", "--rows", "2000", "--columns", "3"],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stdout + run.stderr
