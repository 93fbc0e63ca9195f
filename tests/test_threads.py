import multiprocessing
import subprocess
import sys
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from threadpoolctl import threadpool_limits

from surff import _threads
from surff._threads import map_slices, n_threads
from surff.fourier import fourier_features

#: Seconds after which a child counts as hung.
TIMEOUT = 60


@pytest.fixture
def four_threads(monkeypatch):
    """Four threads whatever the machine, in a pool of this test's own."""
    monkeypatch.setattr(_threads, "n_threads", lambda: 4)
    monkeypatch.setattr(_threads, "_n_cpus", lambda: 4)
    monkeypatch.setattr(_threads, "_pool", None)
    yield
    if _threads._pool is not None:
        _threads._pool.shutdown()


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


@pytest.mark.parametrize("failing", [0, 2])
def test_errors_reach_the_caller(four_threads, failing):
    def fail(rows):
        if rows.start == failing:
            raise ZeroDivisionError(f"row {failing}")

    with pytest.raises(ZeroDivisionError, match=f"row {failing}"):
        map_slices(fail, 4, minimum=1)


def test_threads_follow_the_limits_of_blas():
    assert n_threads() >= 1
    with threadpool_limits(1):
        assert n_threads() == 1


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
    connection.send(fourier_features(X, frequencies))
    connection.close()


@pytest.mark.skipif(
    "fork" not in multiprocessing.get_all_start_methods(), reason="no fork here"
)
@pytest.mark.parametrize("locked", [False, True])
def test_a_forked_child_computes_features(four_threads, locked):
    X, frequencies = exact_problem()
    expected = fourier_features(X, frequencies)
    assert _threads._pool is not None  # the child inherits a pool without its threads
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=_transform_in_child, args=(sender, X, frequencies))
    if locked:  # as if another thread were making the pool at that moment
        _threads._lock.acquire()
    with warnings.catch_warnings():
        # Python 3.12 warns of any fork of a process with threads.
        warnings.filterwarnings("ignore", category=DeprecationWarning)
        child.start()
    if locked:
        _threads._lock.release()
    try:
        assert receiver.poll(TIMEOUT), "the forked child hangs"
        assert_array_equal(receiver.recv(), expected)
        child.join(TIMEOUT)
        assert child.exitcode == 0
    finally:
        child.kill()
        child.join()


FIRST_CALL = """
import numpy as np
from surff import FourierFeatures, KernelRidgeRegressor
for dtype in (np.float32, np.float64):
    X = np.random.default_rng(0).normal(size=(300, 3)).astype(dtype)
    FourierFeatures(8, select="surrogate", random_state=0).fit_transform(X, X[:, 0])
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
