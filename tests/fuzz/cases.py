"""Runs numbered cases in a process that may crash or hang, and counts how they end.

What a harness gives is a function of a case's number and an empty folder that returns
an outcome and what happened. The process that runs the cases is watched: if it dies or
stands still, that is the outcome of the case it was at, and a new one goes on with the
next.
"""

import argparse
import collections
import contextlib
import faulthandler
import json
import multiprocessing
import resource
import tempfile
import time
import warnings

#: Seconds after which a case hangs.
TIMEOUT = 90.0

#: Seconds for imports and compilation before the first case.
START = 120.0

#: Bytes that a process may ask for, since damaged lengths ask for any.
MEMORY = 8 * 2**30


def work(run_case, numbers, connection):
    """Run cases in a process of their own; send each outcome."""
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    faulthandler.enable()
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        for number in numbers:
            connection.send((number, None, None))
            connection.send((number, *run_case(number, folder)))
    connection.send(None)


def run(run_case, first, n, seconds, good):
    """Run cases ``first`` to ``first + n``, or as many as ``seconds`` allow.

    Returns
    -------
    counts : collections.Counter
        Cases by outcome. Each that is not in ``good`` is printed as a line of JSON.
    """
    context = multiprocessing.get_context("spawn")
    counts, end = collections.Counter(), time.monotonic() + seconds
    start = first
    while start is not None and time.monotonic() < end:
        ours, theirs = context.Pipe(duplex=False)
        numbers = range(start, first + n)
        worker = context.Process(
            target=work, args=(run_case, numbers, theirs), daemon=True
        )
        worker.start()
        theirs.close()
        start = follow(worker, ours, counts, end, good)
        worker.kill()
        worker.join()
    return counts


def follow(worker, connection, counts, end, good):
    """Count the outcomes of a process; the number to go on with, None at the end."""
    number, patience = None, START
    while time.monotonic() < end:
        outcome, what = "hang", f"no answer for {patience:.0f} s"
        if connection.poll(min(patience, max(0.0, end - time.monotonic()))):
            try:
                message = connection.recv()
            except (EOFError, ConnectionResetError):
                worker.join()
                outcome, what = "crash", f"exit code {worker.exitcode}"
            else:
                if message is None:
                    return None
                number, outcome, what = message
                patience = TIMEOUT
                if outcome is not None:
                    count(counts, number, outcome, what, good)
                continue
        elif time.monotonic() >= end:
            return None
        count(counts, number, outcome, what, good)
        return None if number is None else number + 1
    return None


def count(counts, number, outcome, what, good):
    """Count a case, and print it if it is a failure."""
    counts[outcome] += 1
    if outcome not in good:
        line = {"case": number, "outcome": outcome, "what": what}
        print(json.dumps(line), flush=True)


def parser_of(description, n):
    """Parser of the arguments that every harness has."""
    parser = argparse.ArgumentParser(description=description.partition("\n")[0])
    parser.add_argument("--n", type=int, default=n, help="cases")
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=3600, help="most time")
    parser.add_argument("--case", type=int, help="run this case alone")
    return parser


def main(run_case, options, good, name="cases"):
    """Run what the arguments ask for; the exit status says if all was good."""
    if options.case is not None:
        with tempfile.TemporaryDirectory() as folder:
            outcome, what = run_case(options.case, folder)
        print(outcome, what, sep="\n")
        return int(outcome not in good)
    began = time.monotonic()
    counts = run(run_case, options.first, options.n, options.seconds, good)
    took, total = time.monotonic() - began, sum(counts.values())
    faults = sum(k for outcome, k in counts.items() if outcome not in good)
    print(f"{total} {name} in {took:.0f} s, {faults} faults:", dict(counts))
    return int(faults > 0 or total == 0)
