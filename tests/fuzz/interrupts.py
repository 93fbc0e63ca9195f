"""Ctrl-C at any moment of a fit: always KeyboardInterrupt, and nothing has changed.

``python tests/fuzz/interrupts.py --n 100`` fits a model in a process of its own, sends
it signals at random times and counts what happens. ``--rows`` and ``--columns`` say how
large the data are; ``--adapt none`` fits without an adaptation.
"""

import argparse
import subprocess
import sys

CHILD = """
import os, signal, sys, threading, time
import joblib, numpy as np, threadpoolctl, surff

n, rows, columns, adapt, seed = *map(int, sys.argv[1:4]), sys.argv[4], int(sys.argv[5])
rng = np.random.default_rng(seed)
X = rng.normal(size=(rows, columns))
y = np.sin(X[:, 0] * X[:, 1]) + X[:, 2]
adapt = None if adapt == "none" else adapt
features = surff.FourierFeatures(8 * columns, adapt=adapt, random_state=0)
model = surff.KernelRidgeRegressor(features, cv="gcv")
began = time.perf_counter()
model.fit(X[: rows // 4], y[: rows // 4])
model.fit(X, y)
began = time.perf_counter()
model.fit(X, y)
usual = time.perf_counter() - began
before = joblib.hash(vars(model))
cpus = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else None
limits = [library["num_threads"] for library in threadpoolctl.threadpool_info()]
counts, latest = {}, 0.0
sent = []

def send():
    sent.append(time.perf_counter())
    os.kill(os.getpid(), signal.SIGINT)

for wait in rng.uniform(0.0, usual, size=n):
    timer = threading.Timer(wait, send)
    timer.start()
    outcome = "finished"
    try:
        model.fit(X, y)
        timer.join()
        time.sleep(0.01)
    except KeyboardInterrupt:
        outcome = "KeyboardInterrupt"
        latest = max(latest, time.perf_counter() - sent[-1])
    except BaseException as error:
        outcome = repr(error)[:200]
    timer.join()
    if outcome == "KeyboardInterrupt" and joblib.hash(vars(model)) != before:
        outcome = "changed model"
    before = joblib.hash(vars(model))
    if cpus is not None and os.sched_getaffinity(0) != cpus:
        outcome = "pinned"
    if [lib["num_threads"] for lib in threadpoolctl.threadpool_info()] != limits:
        outcome = "threads of BLAS"
    counts[outcome] = counts.get(outcome, 0) + 1
model.fit(X, y)
print(counts, f"slowest {latest:.2f} s, a fit {usual:.2f} s")
sys.exit(bool(set(counts) - {"finished", "KeyboardInterrupt"}))
"""


def main():
    """Run the child; its exit status is ours."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--n", type=int, default=100, help="interrupts")
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--columns", type=int, default=8)
    parser.add_argument("--adapt", default="auto")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    numbers = [str(getattr(options, name)) for name in ("n", "rows", "columns")]
    done = subprocess.run(
        [sys.executable, "-c", CHILD, *numbers, options.adapt, str(options.seed)],
        check=False,
    )
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
