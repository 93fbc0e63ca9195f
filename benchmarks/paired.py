"""Time callables in turn and compare them round by round.

On a shared machine absolute times drift; the ratio of two runs that follow one another
does not. `rounds` runs every callable for a while in each round and keeps the median,
so that none pays for what the one before left behind (cold caches, BLAS threads that
spin on the other cores for some 30 ms after a product); `children.ratio` compares two
of them round by round. Where other programs keep the processor busy, `add_clock` offers
to count the processor's time of a single thread instead, which they hardly change.
"""

import contextlib
import os
import platform
import statistics
import time
from pathlib import Path

from threadpoolctl import threadpool_limits

__all__ = ["add_clock", "clock_and_limit", "median_seconds", "processor", "rounds"]


def add_clock(parser):
    """Add ``--one-thread`` to a command line."""
    parser.add_argument(
        "--one-thread",
        action="store_true",
        help="count processor time on one thread: for a machine that others use, too",
    )


def clock_and_limit(options):
    """The clock that the options ask for, and a context that limits the threads."""
    if options.one_thread:
        return time.process_time, threadpool_limits(1)
    return time.perf_counter, contextlib.nullcontext()


def processor():
    """Name of the processor, whether it has AVX-512, and the cores that we may use."""
    name, flags = platform.processor() or platform.machine(), ""
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        lines = [line.partition(":") for line in cpuinfo.read_text().splitlines()]
        values = {key.strip(): value.strip() for key, _, value in lines}
        name, flags = values.get("model name", name), values.get("flags", "")
    wide = "with" if "avx512f" in flags.split() else "without"
    may_use = getattr(os, "sched_getaffinity", lambda _: range(os.cpu_count() or 1))
    return f"{name}, {wide} AVX-512, {len(may_use(0))} cores"


def median_seconds(function, in_a_row, at_least, clock):
    """Median of runs one after the other, at least as many and for at least as long."""
    runs = []
    end = time.perf_counter() + at_least
    while len(runs) < in_a_row or time.perf_counter() < end:
        start = clock()
        function()
        runs.append(clock() - start)
    return statistics.median(runs)


def rounds(callables, repeats, in_a_row=5, at_least=0.3, clock=time.perf_counter):
    """Seconds of each callable in each round, after one round that is not counted.

    Parameters
    ----------
    callables : dict of str to callable
        What to time, in this order.
    repeats : int
        Rounds counted.
    in_a_row : int, default=5
        Least runs of each callable in a round, whose median counts.
    at_least : float, default=0.3
        Seconds for which each is run in a round, ten times what BLAS threads spin.
    clock : callable, default=time.perf_counter
        Gives the time in seconds.

    Returns
    -------
    seconds : dict of str to list of float
    """
    seconds = {name: [] for name in callables}
    for counted in range(-1, repeats):
        for name, function in callables.items():
            median = median_seconds(function, in_a_row, at_least, clock)
            if counted >= 0:
                seconds[name].append(median)
    return seconds
