"""Our own threads for the compiled kernels.

The kernels of `surff._trig` are single-threaded and release the GIL, so plain Python
threads run them side by side. numba's parallel layers are not used: one aborts the
process when two threads enter it at once, another does not survive a fork, and users
call us from joblib, Dask and web servers. The pool is shared by all callers, its tasks
never wait for one another, and a forked child builds its own.
"""

import functools
import itertools
import os
import threading
from concurrent.futures import ThreadPoolExecutor

from threadpoolctl import ThreadpoolController

__all__ = ["map_slices", "n_threads"]

_lock = threading.Lock()
_pool = None


def _forget_pool():
    """Drop the parent's pool and lock in a forked child: its threads are not there."""
    global _lock, _pool
    _lock, _pool = threading.Lock(), None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pool)


def _n_cpus():
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@functools.cache
def _blas():
    return ThreadpoolController().select(user_api="blas").lib_controllers


def n_threads():
    """Number of threads to use now: what BLAS may use, at most the CPUs we may run on.

    ``OPENBLAS_NUM_THREADS``, ``threadpoolctl.threadpool_limits`` and the inner limits
    of joblib and Dask workers therefore govern us as they govern BLAS.
    """
    limits = [library.num_threads for library in _blas()]
    return max(1, min([_n_cpus(), *(limit for limit in limits if limit)]))


def _executor():
    global _pool
    with _lock:
        if _pool is None:
            _pool = ThreadPoolExecutor(_n_cpus(), thread_name_prefix="surff")
        return _pool


def map_slices(function, n_rows, minimum=64):
    """Results of ``function(slice)`` on contiguous row slices, one a thread.

    Parameters
    ----------
    function : callable
        Takes a slice; must release the GIL to gain anything.
    n_rows : int
        Rows to share out.
    minimum : int, default=64
        Rows below which another thread is not worth its start.
    """
    n_parts = min(n_threads(), max(1, n_rows // minimum))
    if n_parts == 1:
        return [function(slice(0, n_rows))]
    bounds = [n_rows * i // n_parts for i in range(n_parts + 1)]
    slices = [slice(*pair) for pair in itertools.pairwise(bounds)]
    futures = [_executor().submit(function, part) for part in slices[1:]]
    first = function(slices[0])
    return [first, *(future.result() for future in futures)]
