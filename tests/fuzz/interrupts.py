"""Ctrl-C at any moment of a fit: always KeyboardInterrupt, and nothing has changed.

``python tests/fuzz/interrupts.py --n 100`` fits a model in a process of its own, sends
it signals at random times of a fit of other rows, until ``n`` came before its end, and
counts what happens. ``--rows`` and
``--columns`` say how large the data are, ``--components`` how large the model is;
``--dataset covtype`` takes the first half of a data set, its columns scaled;
``--adapt none`` fits without an adaptation.
"""

import argparse
import subprocess
import sys

CHILD = """
import collections, os, pickle, signal, sys, threading, time
import joblib, numpy as np, threadpoolctl, surff

# Shells let what runs in the background ignore it.
signal.signal(signal.SIGINT, signal.default_int_handler)
n, rows, columns, components, seed = map(int, sys.argv[1:6])
adapt, dataset = (None if name == "none" else name for name in sys.argv[6:])
rng = np.random.default_rng(seed)
if dataset is None:
    X = rng.normal(size=(rows, columns))
    y = np.sin(X[:, 0] * X[:, 1]) + X[:, 2]
else:
    from surff.datasets import load

    X, y, *_ = load(dataset)
    half = len(X) // 2
    X, y = X[:half] / np.maximum(abs(X[:half]).max(axis=0), 1.0), y[:half] == y[0]
    rows = len(X)
    print(f"{dataset}: {rows:,} rows, {X.shape[1]} columns", flush=True)
y = y.astype(float)
features = surff.FourierFeatures(
    components or 8 * X.shape[1], adapt=adapt, random_state=0
)
model = surff.KernelRidgeRegressor(features, cv="gcv")
old = pickle.dumps(model.fit(X[: rows // 4], y[: rows // 4]))
model = pickle.loads(old)
before = joblib.hash(vars(model))
whole = joblib.hash(vars(model.fit(X, y)))
began = time.perf_counter()
model.fit(X, y)
usual = time.perf_counter() - began
model = pickle.loads(old)
cpus = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else None
limits = [library["num_threads"] for library in threadpoolctl.threadpool_info()]
counts, latest = collections.Counter(), 0.0
sent = []

def send():
    sent.append(time.perf_counter())
    os.kill(os.getpid(), signal.SIGINT)

while counts.total() - counts["finished"] < n:
    timer = threading.Timer(rng.uniform(0.0, usual), send)
    outcome, began = "finished", time.perf_counter()
    try:
        timer.start()
        model.fit(X, y)
        usual = min(usual, time.perf_counter() - began)  # if the first had to wait
        timer.join()
        time.sleep(0.01)
    except KeyboardInterrupt:
        outcome = "KeyboardInterrupt"
        late = time.perf_counter() - sent[-1]
    except BaseException as error:
        outcome = repr(error)[:200]
    timer.join()
    state = joblib.hash(vars(model))
    if state == whole:
        outcome, model = "finished", pickle.loads(old)
    elif outcome == "KeyboardInterrupt":
        latest = max(latest, late)
        outcome = outcome if state == before else "changed model"
    if cpus is not None and os.sched_getaffinity(0) != cpus:
        outcome = "pinned"
    if [lib["num_threads"] for lib in threadpoolctl.threadpool_info()] != limits:
        outcome = "threads of BLAS"
    counts[outcome] += 1
    if counts.total() % 20 == 0:
        print(dict(counts), flush=True)
model.fit(X, y)
print(dict(counts), f"slowest {latest:.2f} s, a fit {usual:.2f} s")
sys.exit(bool(set(counts) - {"finished", "KeyboardInterrupt"}))
"""


def main():
    """Run the child; its exit status is ours."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--n", type=int, default=100, help="interrupts")
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--columns", type=int, default=8)
    parser.add_argument("--components", type=int, default=0, help="8 per column if 0")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--adapt", default="auto")
    parser.add_argument("--dataset", default="none")
    options = parser.parse_args()
    arguments = [str(value) for value in vars(options).values()]
    done = subprocess.run([sys.executable, "-c", CHILD, *arguments], check=False)
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
