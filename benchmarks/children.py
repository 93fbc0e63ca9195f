"""Processes that measure themselves, asked in turn by one parent.

Everything compared runs in one process tree: each competitor in a child of its own,
with its own interpreter and path, which loads its data once, waits, and answers
requests. A parent that asks one child after the other, round by round, has times that
can be divided, and each child knows the most memory that it has held. Requests and
answers are lines of JSON on the child's standard input and output; arrays go by file.
Nothing but the standard library is needed here, so that a child can live in an
environment without surff.
"""

import contextlib
import json
import math
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

__all__ = ["Child", "ChildError", "asked_in_turn", "peak_memory", "ratio", "serve"]

#: Variables that tell BLAS and OpenMP libraries how many threads to start.
THREAD_VARIABLES = ["OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"]


class ChildError(RuntimeError):
    """A child ended, or answered with an error."""


class Child:
    """A process that answers requests until it is closed.

    Parameters
    ----------
    command : sequence of str
        What to start; it has to call `serve`.
    one_thread : bool, default=False
        Let numerical libraries start a single thread.
    environment : dict, optional
        More environment variables.
    """

    def __init__(self, command, one_thread=False, environment=None):
        variables = os.environ | (environment or {})
        if one_thread:
            variables |= dict.fromkeys(THREAD_VARIABLES, "1")
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115, closed by close
        self._process = subprocess.Popen(
            [str(word) for word in command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env=variables,
            text=True,
        )

    def ask(self, **request):
        """Send a request and wait for its answer, as `send` and `answer` do."""
        self.send(**request)
        return self.answer()

    def send(self, **request):
        """Send a request."""
        with contextlib.suppress(BrokenPipeError):  # `answer` tells what it died of
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()

    def answer(self):
        """Wait for the answer to a request that was sent, a dict.

        Raises
        ------
        ChildError
            The child ended or raised; the message has its last line.
        """
        line = self._process.stdout.readline()
        if not line:
            self._process.wait()
            self._errors.seek(0)
            said = self._errors.read().strip().splitlines()
            raise ChildError(said[-1] if said else f"ended: {self._process.args}")
        answer = json.loads(line)
        if "error" in answer:
            raise ChildError(answer["error"])
        return answer

    def close(self):
        """End the process."""
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._errors):
            with contextlib.suppress(BrokenPipeError):  # a request that never left
                stream.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def serve(answer):
    """Answer requests on standard input until it ends; the child's side.

    Parameters
    ----------
    answer : callable
        Called with the request as keywords, returns a dict. What it raises is sent to
        the parent; what it prints goes to standard error.
    """
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        try:
            reply = answer(**json.loads(line))
        except Exception as error:  # whatever a competitor raises is its result
            reply = {"error": f"{type(error).__name__}: {error}"}
        replies.write(json.dumps(reply) + "\n")
        replies.flush()


def asked_in_turn(children, repeats, pause=0.05, patience=math.inf, **request):
    """Answers of each child in each round; every other round goes backwards.

    All are told to warm up first, at the same time. A child that fails is not asked
    again.

    Parameters
    ----------
    children : dict of str to Child
        Each has to answer ``what="warm up"``, too.
    repeats : int
        Rounds.
    pause : float, default=0.05
        Seconds to wait before each request, while the threads of the child before spin.
    patience : float, default=inf
        Seconds: a child that took longer to its first answer is not asked again.
    **request
        What to ask.

    Returns
    -------
    answers : dict of str to list of dict
        Of the children that did not fail, from the first round on.
    failures : dict of str to str
        What the others said.
    """
    answers, failures, slow = {name: [] for name in children}, {}, set()
    for child in children.values():
        child.send(**request | {"what": "warm up"})
    for name, child in children.items():
        try:
            child.answer()
        except ChildError as error:
            failures[name] = str(error)
    for repeat in range(repeats):
        for name in list(children)[:: -1 if repeat % 2 else 1]:
            if name in failures or name in slow:
                continue
            time.sleep(pause)
            start = time.perf_counter()
            try:
                answers[name].append(children[name].ask(**request))
            except ChildError as error:
                failures[name] = str(error)
            if time.perf_counter() - start > patience:
                slow.add(name)
    return {n: given for n, given in answers.items() if n not in failures}, failures


def ratio(numerator, denominator):
    """Median, minimum and maximum of the ratios round by round."""
    ratios = [a / b for a, b in zip(numerator, denominator, strict=True)]
    return statistics.median(ratios), min(ratios), max(ratios)


def peak_memory():
    """Bytes that this process has held at most."""
    status = Path("/proc/self/status")
    if status.exists():  # resource's figure counts what the parent held, too
        line = next(x for x in status.read_text().splitlines() if "VmHWM" in x)
        return int(line.split()[1]) * 1024
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
