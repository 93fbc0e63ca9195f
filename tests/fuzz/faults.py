"""What a machine does to a run: full disks, no memory, lost workers, changing files.

``python tests/fuzz/faults.py --n 20`` makes each fault ``n`` times, at random moments
or sizes; ``--only`` some of them. Right is the result of a run without the fault, or an
error that says what is wrong; then the model, the file or the results are as they were
before, and what was stopped goes on to the right end.
"""

import argparse
import collections
import contextlib
import logging
import os
import resource
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path

import joblib
import kills
import numpy as np
from threadpoolctl import threadpool_limits

import surff
from surff.experiments.store import KEY, ResultStore
from surff.streaming import ParquetRows, SourceError

#: The result of a run that nothing happened to, or an error and nothing lost.
RIGHT, REFUSED = "right", "refused"

#: Seconds after which a process hangs.
SECONDS = 120

#: Files that were hidden and removed again by `save` have these names.
LEFT_OVER = ".surff-*"


def model_of(size=16):
    """A small model and rows to fit it to."""
    X = np.random.default_rng(size).normal(size=(400, 3))
    features = surff.FourierFeatures(size, random_state=0)
    return surff.KernelRidgeRegressor(features, alphas=[0.1, 1.0], cv=2), X, X[:, 0]


def in_child(function):
    """What a process says that runs a function; how it died if it did.

    A process that hangs is ended by a signal that nothing in it handles.
    """
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        signal.alarm(SECONDS)
        try:
            said = function()
        except BaseException as error:
            said = f"{type(error).__name__}: {error}"
        os.write(writer, said.encode()[:4000])
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        said = pipe.read().decode()
    status = kills.status_of(child)
    return said if status == 0 else f"exit status {status}: {said}"


def errors_of(function, kinds):
    """The error of these kinds that a function raises, or None."""
    try:
        function()
    except kinds as error:
        return error
    return None


# -- Disks -----------------------------------------------------------------------------


def full_disk_of_save(rng, folder):
    """`save` where no file may be longer than a random number of bytes."""
    path = Path(folder) / "model.skops"
    model, X, y = model_of()
    surff.save(model.fit(X, y), path)
    before, larger = path.read_bytes(), model_of(600)
    larger = larger[0].fit(*larger[1:])
    limit = int(rng.integers(len(before)))

    def run():
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
        error = errors_of(lambda: surff.save(larger, path), OSError)
        if error is None or path.name not in str(error):
            return f"error {error!r}"
        if path.read_bytes() != before or [*Path(folder).glob(LEFT_OVER)]:
            return f"files changed: {os.listdir(folder)}"
        return REFUSED

    return in_child(run)


def full_disk_of_command(rng, folder):
    """A command whose files may not be longer than some bytes, and its next run."""
    expected = baseline("table2")
    limit = int(rng.integers(expected.n_bytes))

    def run():
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
        return f"status {quiet_command('table2', folder)}"

    first = in_child(run)
    if first != "status 2":
        return f"{first} with {limit} of {expected.n_bytes} bytes"
    return finished("table2", folder)


def read_only_folder(rng, folder):
    """`save` and a command where nothing can be written, as a user without rights."""
    del rng
    baseline("table2")
    model, X, y = model_of()
    model.fit(X, y)
    path = Path(folder) / "model.skops"
    surff.save(model, path)
    before = path.read_bytes()
    os.chmod(folder, 0o555)

    def run():
        if os.geteuid() == 0:
            os.seteuid(65534)
        error = errors_of(lambda: surff.save(model, path), OSError)
        if error is None or folder not in str(error) or path.read_bytes() != before:
            return f"save: {error!r}"
        status = quiet_command("table2", folder)
        return REFUSED if status == 2 else f"command: status {status}"

    said = in_child(run)
    os.chmod(folder, 0o755)
    return said


# -- Commands --------------------------------------------------------------------------


class Baseline:
    """Results of a command that nothing has happened to, and the size of its store."""

    def __init__(self, name):
        with tempfile.TemporaryDirectory() as folder:
            if status := quiet_command(name, folder):
                raise RuntimeError(f"{name} fails by itself: {status}")
            self.rows = sorted(kills.rows_of(folder))
            self.n_bytes = sum(p.stat().st_size for p in Path(folder).glob("*.jsonl"))


_baselines = {}


def baseline(name):
    """`Baseline` of a command, made once."""
    if name not in _baselines:
        _baselines[name] = Baseline(name)
    return _baselines[name]


def quiet_command(name, out):
    """Status of a command in this process, which says nothing."""
    with (
        open(os.devnull, "w") as nowhere,
        contextlib.redirect_stdout(nowhere),
        contextlib.redirect_stderr(nowhere),
    ):
        try:
            return kills.run_command(kills.COMMANDS[name], out)
        except Exception as error:
            return repr(error)


def finished(name, out):
    """Run a command to its end, and compare its rows with its `Baseline`."""
    status = in_child(lambda: f"{quiet_command(name, out)}")
    found = sorted(kills.rows_of(out))
    if status == "0" and found == baseline(name).rows:
        return RIGHT
    return f"status {status}, {len(found)} rows of {len(baseline(name).rows)}"


def two_processes(rng, folder):
    """Two runs of a command in one folder, one a random time after the other."""
    expected = baseline("table2")
    children = []
    for _ in range(2):
        children.append(kills.forked(lambda: quiet_command("table2", folder)))
        time.sleep(rng.uniform(0.0, 0.3))
    statuses = [kills.status_of(child) for child in children]
    path = next(Path(folder).glob("*.jsonl"))
    rows = ResultStore(path, KEY).rows
    whole = [row for row in kills.rows_of(folder) if row in expected.rows]
    if statuses == [0, 0] and len(rows) == len(expected.rows) == len({*whole}):
        return RIGHT if len(whole) == len(kills.rows_of(folder)) else "other rows"
    return f"statuses {statuses}, {len(rows)} rows of {len(expected.rows)}"


# -- Memory ----------------------------------------------------------------------------


def pages():
    """Pages of memory that this process has asked for."""
    return int(Path("/proc/self/statm").read_text().split()[0])


def out_of_memory(rng, folder):
    """A refit to more rows and columns in a process that may have little memory."""
    del folder
    model, X, y = model_of()
    model.fit(X, y)
    size = int(rng.integers(1000, 2500))
    more = int(rng.integers(2**26))
    large = rng.normal(size=(2000, 3))

    def run():
        # OpenBLAS waits for ever for a thread for which there is no memory.
        with threadpool_limits(1, user_api="blas"):
            return refit()

    def refit():
        model.fit(X, y)
        before, told = joblib.hash(vars(model)), model.predict(X)
        used = pages() * resource.getpagesize()
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (used + more, hard))
        model.features.n_components = size
        error = errors_of(lambda: model.fit(large, large[:, 0]), MemoryError)
        resource.setrlimit(resource.RLIMIT_AS, (hard, hard))
        if error is None:
            return RIGHT
        model.features.n_components = 16
        same = joblib.hash(vars(model)) == before
        if not (same and np.array_equal(model.predict(X), told)):
            return f"another model after {error!r}"
        again = model.fit(X, y).predict(X)
        return REFUSED if np.array_equal(again, told) else "another refit"

    return in_child(run)


# -- Files that change -----------------------------------------------------------------


class ChangingRows(ParquetRows):
    """Rows of Parquet files that something happens to in a pass, after some blocks."""

    change, left = None, 0

    def __iter__(self):
        for block in super().__iter__():
            yield block
            self.left -= 1
            if self.left == 0:
                self.change()


def changing_files(rng, folder):
    """A file is added, removed, replaced or grows in some pass of a fit."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    def write(path, seed, n=700):
        X = np.random.default_rng(seed).normal(size=(n, 3))
        pq.write_table(pa.table({"a": X[:, 0], "b": X[:, 1], "y": X[:, 2]}), path)

    paths = [Path(folder) / f"{i}.parquet" for i in range(4)]
    for i, path in enumerate(paths):
        write(path, i)
    features = surff.FourierFeatures(16, select="leverage", random_state=0)
    model = surff.KernelRidgeRegressor(features, alphas=[0.1, 1.0])
    usual = ParquetRows(folder, "y", block_rows=100)
    model.fit_stream(usual, n_sample=500)
    before, told = joblib.hash(vars(model)), model.primal_coef_
    changed = paths[int(rng.integers(4))]
    changes = {
        "added": lambda: write(Path(folder) / "4.parquet", 4),
        "removed": changed.unlink,
        "replaced": lambda: (
            write(f"{folder}/.new", 9),
            os.replace(f"{folder}/.new", changed),
        ),
        "grown": lambda: write(changed, 3, 900),
    }
    name = str(rng.choice([*changes]))
    source = ChangingRows(folder, "y", block_rows=100)
    source.change, source.left = changes[name], int(rng.integers(1, 56))
    error = errors_of(lambda: model.fit_stream(source, n_sample=500), SourceError)
    if name == "added" or source.left > 0:  # the files are those of the beginning
        same = error is None and np.array_equal(model.primal_coef_, told)
        return RIGHT if same else f"{name}: {error!r}, or another model"
    if error is None or joblib.hash(vars(model)) != before:
        return f"{name} after {source.left} blocks: {error!r}, or another model"
    return REFUSED if ".parquet" in str(error) else f"{name}: {error!r}"


# -- Clusters --------------------------------------------------------------------------


def lost_workers(rng, folder):
    """A worker is killed, all are restarted or the scheduler is closed in a fit."""
    import dask
    import dask.array as da
    import distributed

    dask.config.set({"distributed.comm.timeouts.connect": "3s"})

    model, X, y = model_of(64)
    right = model.fit_stream(surff.streaming.ArrayRows(X, y)).predict(X)
    small = X[:100], y[:100]
    model.fit(*small)
    before, kind = (
        joblib.hash(vars(model)),
        str(rng.choice(["kill", "restart", "close"])),
    )
    options = {"silence_logs": logging.CRITICAL, "dashboard_address": ":0"}
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, **options
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        started = Path(folder) / "started"

        def slow(block):
            started.touch()
            time.sleep(0.05)
            return block

        def strike():
            while not started.exists():
                time.sleep(0.005)
            time.sleep(rng.uniform(0.0, 0.5))
            if kind == "kill":
                worker = rng.choice(list(client.run(os.getpid).values()))
                os.kill(int(worker), signal.SIGKILL)
            with contextlib.suppress(distributed.comm.CommClosedError, TimeoutError):
                if kind == "restart":
                    client.restart()
                elif kind == "close":
                    cluster.sync(cluster.scheduler.close)

        rows = da.from_array(X, chunks=(40, 3)).map_blocks(slow, dtype=float)
        thread = threading.Thread(target=strike, daemon=True)
        thread.start()
        error = errors_of(
            lambda: model.fit(rows, da.from_array(y, chunks=40)), Exception
        )
        thread.join(20)
    if error is None:
        close = np.allclose(model.predict(X), right, rtol=1e-8, atol=1e-8)
        return RIGHT if close else f"{kind}: other predictions"
    same = joblib.hash(vars(model)) == before
    return REFUSED if same and kind != "kill" else f"{kind}: {error!r}, same: {same}"


FAULTS = {
    function.__name__.replace("_", "-"): function
    for function in (
        full_disk_of_save,
        full_disk_of_command,
        read_only_folder,
        two_processes,
        out_of_memory,
        changing_files,
        lost_workers,
    )
}


def main():
    """Make the faults, print what was found; the exit status says if all was right."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--n", type=int, default=20, help="times of each fault")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="+", default=[*FAULTS], choices=FAULTS)
    options = parser.parse_args()
    wrong = 0
    for name in options.only:
        counts = collections.Counter()
        for number in range(options.n):
            rng = np.random.default_rng([options.seed, number])
            with tempfile.TemporaryDirectory() as folder:
                outcome = FAULTS[name](rng, folder)
            counts[outcome] += 1
            if outcome not in (RIGHT, REFUSED):
                wrong += 1
                print(f"{name} {number}: {outcome}", flush=True)
        print(f"{name}: {options.n} times, {dict(counts)}", flush=True)
    print(f"{wrong} faults")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
