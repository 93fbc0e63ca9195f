"""SIGKILL at any moment of `surff.save` and of the commands that can go on later.

``python tests/fuzz/kills.py --n 200`` kills ``save`` and each command ``n`` times in
all, half of them `save`. After a kill of `save` the file is one of the two models that
are saved in turn, whole. A command that was killed is started again with the same
folder, until it ends; then its rows are those of a run that nobody has killed, their
times aside, and no work that was finished is done twice.
"""

import argparse
import json
import os
import signal
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import surff
from surff.cli import main as command

#: Arguments of the commands, small enough to be run many times.
COMMANDS = {
    "table2": "table2 --datasets eeg --trials 2 --multiples 1 2",
    "figure1": "figure1 --dataset eeg --trials 2 --multiples 1 2",
    "approximation": "approximation --dataset eeg --trials 2 --multiples 1 "
    "--draws monte_carlo --draws orthogonal --landmarks none",
    "benchmark": "benchmark --tasks eeg --splits 1 --methods rff --multiples 1",
}

#: Fields of a row that are times or names of machines.
CHANGING = ("seconds", "time", "machine", "processor", "date", "written", "memory")


def forked(function):
    """Number of a process that runs a function with its output thrown away."""
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        with open(os.devnull, "w") as nowhere:
            os.dup2(nowhere.fileno(), 1)
            os.dup2(nowhere.fileno(), 2)
            status = function() or 0
    finally:
        os._exit(status)


def status_of(child):
    """Exit status of a process; negative if a signal ended it."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


# -- Save ------------------------------------------------------------------------------


def saves(models, path):
    """Save one model after the other, for ever."""
    while True:
        for model in models:
            surff.save(model, path)


def kill_saves(n, rng):
    """Kill `save` ``n`` times; number of faults."""
    X = rng.normal(size=(60, 3))
    models = [
        surff.KernelRidgeRegressor(
            surff.FourierFeatures(size, random_state=0), alphas=1.0
        ).fit(X, X[:, 0])
        for size in (16, 300)
    ]
    right = [model.predict(X) for model in models]
    faults = 0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.skops"
        surff.save(models[0], path)
        for number in range(n):
            child = forked(lambda: saves(models, path))
            time.sleep(rng.uniform(0.0, 0.3))
            os.kill(child, signal.SIGKILL)
            status_of(child)
            try:
                found = surff.load(path).predict(X)
                whole = any(np.array_equal(found, values) for values in right)
            except Exception as error:
                whole, found = False, error
            if not whole:
                faults += 1
                print(f"kill {number} of save: {found!r:.200}", flush=True)
    return faults


# -- Commands --------------------------------------------------------------------------


def run_command(arguments, out):
    """Run a command in this process; its exit status."""
    sys.argv = ["surff", *arguments.split(), "--out", str(out)]
    try:
        command()
    except SystemExit as end:
        return end.code or 0
    return 0


def rows_of(out):
    """Rows of all stores in a folder, what changes from run to run left out."""
    found = []
    for path in sorted(Path(out).rglob("*.jsonl")):
        for line in path.read_text().splitlines():
            row = json.loads(line)
            kept = {k: v for k, v in row.items() if not any(c in k for c in CHANGING)}
            found.append((path.name, json.dumps(kept, sort_keys=True)))
    return found


def kill_command(name, n, rng):
    """Kill a command ``n`` times; number of faults."""
    with tempfile.TemporaryDirectory() as folder:
        whole = Path(folder) / "whole"
        began = time.monotonic()
        if status_of(forked(lambda: run_command(COMMANDS[name], whole))):
            print(f"{name} fails by itself", flush=True)
            return 1
        usual, expected = time.monotonic() - began, rows_of(whole)
        if not expected:
            print(f"{name} stores nothing", flush=True)
            return 1
        faults, kills, attempt = 0, 0, 0
        while kills < n:
            out = Path(folder) / f"killed-{attempt}"
            attempt += 1
            killed, sound = kill_until_done(name, out, usual, n - kills, rng)
            kills += killed
            found = rows_of(out)
            if sound and sorted(found) == sorted(expected):
                continue
            faults += 1
            print(f"{name}: {len(found)} rows of {len(expected)}, or others: {out}")
    return faults


def kill_until_done(name, out, usual, most, rng):
    """Kill and start again until a run ends: kills, and whether it ended well."""
    kills = 0
    while True:
        child = forked(lambda: run_command(COMMANDS[name], out))
        if kills < min(most, 12):
            time.sleep(rng.uniform(0.0, usual))
            os.kill(child, signal.SIGKILL)
        status = status_of(child)
        if status != -signal.SIGKILL:
            return kills, status == 0
        kills += 1


def main():
    """Kill, print what was found; the exit status says whether there were faults."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--n", type=int, default=200, help="kills")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", choices=["save", *COMMANDS])
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    names = [options.only] if options.only else ["save", *COMMANDS]
    total = 0
    for name in names:
        share = options.n
        if len(names) > 1:
            share = options.n // 2 if name == "save" else options.n // 8
        if name == "save":
            faults = kill_saves(share, rng)
        else:
            faults = kill_command(name, share, rng)
        print(f"{name}: {share} kills, {faults} faults", flush=True)
        total += faults
    return int(total > 0)


if __name__ == "__main__":
    sys.exit(main())
