"""What a card gives: parity with NumPy, speed beside its own products, memory.

One run on one device, which prints a Markdown report and fails if a parity does:

- parity: features, predictions, decisions, chosen alphas, and the objective of learned
  frequencies with its gradient, of PyTorch tensors on the device against NumPy, float64
  and float32, within stated tolerances;
- peak: operations a second of one large matrix product of the device, in the same run;
- features a second: values of the feature map, with covtype's 54 columns;
- a fit at one alpha, of the training half of covtype at s = 128d: 13,824 columns. It is
  compared with the peak by the operations of the Gram matrix alone, 2 n m^2;
- the same with alpha chosen among five by three folds;
- steps a second of learned frequencies, s = d and 4d, beside those of NumPy;
- what TF32 changes, where there is such: time of a fit and error of its decisions. It
  is off otherwise, and surff never turns it on.

Without a card, ``--device cpu`` checks parity and runs a small fit, so that the script
is known to work; the report says which figures a card would add.

Run: ``python benchmarks/gpu_check.py --device cuda --out report.md``. Needs 10 GB on
the card and 16 GB beside it; ``--quick`` takes a tenth of the rows and 2,048 columns.
"""

import argparse
import os
import statistics
import sys
import time
from functools import partial
from pathlib import Path

os.environ.setdefault("SCIPY_ARRAY_API", "1")  # scikit-learn asks for it to dispatch

import numpy as np
import torch
from sklearn import config_context
from sklearn.base import clone
from sklearn.preprocessing import scale

import surff
from surff import FourierFeatures, KernelRidgeClassifier, KernelRidgeRegressor
from surff.adaptation import Adam, projected_objective
from surff.backend import rows_of, single_threaded_blas, to_numpy
from surff.datasets import load, status
from surff.kernels import ArrayFourierMap
from surff.linear import accumulate

#: Bandwidth of every kernel here; covtype's columns are standardised.
GAMMA = 0.05

#: Rows of covtype.
N_COVTYPE = 581_012

#: Columns of covtype.
N_FEATURES = 54

#: Frequencies per column of the large fits, the most that the paper takes.
MULTIPLE = 128

#: Largest difference from NumPy, relative to the largest value: of features, and of
#: predictions and coefficients where alpha keeps the Gram matrix's condition near 1e4.
TOLERANCES = {
    "float64": {"features": 1e-13, "predictions": 1e-10},
    "float32": {"features": 1e-5, "predictions": 1e-3},
}


def median_time(device, function, repeats=3):
    """Median, least and largest of the seconds that a call takes; one is a warm-up."""
    seconds = []
    for _ in range(repeats + 1):
        synchronize(device)
        start = time.perf_counter()
        result = function()
        synchronize(device)
        seconds.append(time.perf_counter() - start)
    del seconds[0]
    return statistics.median(seconds), min(seconds), max(seconds), result


def synchronize(device):
    if device == "cuda":
        torch.cuda.synchronize()


def tensor(array, device):
    return torch.asarray(np.array(array), device=device)


def covtype(n_rows, dtype):
    """Standardised rows and labels, the first half to train on; what they are."""
    rng = np.random.default_rng(0)
    if status("covtype").found:
        data = load("covtype", download=False)
        order = rng.permutation(len(data.y))[:n_rows]
        X, y, what = scale(data.X[order]), data.y[order], "covtype"
    else:
        X = rng.normal(size=(n_rows, N_FEATURES))
        y = np.where(np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] > 0, 1, -1)
        what = "made-up rows of covtype's size (the data set is not here)"
    return X.astype(dtype), y.astype(np.int64), what


def estimators():
    """What is compared: name, estimator, target, method, kind of tolerance."""
    features = FourierFeatures(300, gamma=GAMMA, random_state=0)
    chosen = FourierFeatures(301, gamma=GAMMA, select="surrogate", random_state=0)
    alphas = np.logspace(-1, 3, 5)
    number, label = KernelRidgeRegressor, KernelRidgeClassifier
    decide = "decision_function", "predictions"
    return [
        ("features", features, None, "transform", "features"),
        ("features, surrogate", chosen, "y", "transform", "features"),
        ("regression", number(features, alphas=1.0), "Y", "predict", "predictions"),
        ("regression, 5 alphas by folds", number(features, alphas=alphas), "Y",
         "predict", "predictions"),
        ("classification, 5 alphas by folds", label(chosen, alphas=alphas), "y",
         *decide),
        ("classification, GCV", label(features, alphas=alphas, cv="gcv"), "y",
         *decide),
    ]  # fmt: skip


def parity(device):
    """Rows of a table, and whether all differences are within tolerance."""
    X, y, _ = covtype(4000, np.float64)
    targets = {"y": y, "Y": np.column_stack([X[:, 0] * X[:, 1], np.sin(X[:, 2])])}
    weight = np.random.default_rng(1).uniform(0.5, 2.0, len(X))
    rows, passed = [], True

    def compare(name, dtype, kind, found, expected, same=True):
        nonlocal passed
        error = np.abs(to_numpy(found) - expected).max() / np.abs(expected).max()
        tolerance = TOLERANCES[dtype][kind]
        good = bool(error <= tolerance and same)
        passed &= good
        verdict = "yes" if good else "NO"
        rows.append([name, dtype, f"{error:.1e}", f"{tolerance:.0e}", verdict])

    for dtype in TOLERANCES:
        host = X.astype(dtype)
        there = tensor(host, device)
        for name, estimator, key, method, kind in estimators():
            target = targets.get(key)
            expected = clone(estimator).fit(host, target, weight)
            with config_context(array_api_dispatch=True):
                found = clone(estimator).fit(
                    there, None if target is None else tensor(target, device), weight
                )
                values = getattr(found, method)(there)
            same = values.device.type == device and str(values.dtype)[6:] == dtype
            alphas = [getattr(model, "alpha_", 0) for model in (found, expected)]
            same = same and np.isclose(*alphas)
            compare(name, dtype, kind, values, getattr(expected, method)(host), same)
        W = 0.3 * np.random.default_rng(2).normal(size=(100, N_FEATURES))
        W, Y = W.astype(dtype), targets["Y"].astype(dtype)
        wanted = projected_objective(W, host, Y, 1e-3)
        found = projected_objective(W, there, Y, 1e-3)
        for part in ("objective", "gradient"):
            values = getattr(found, part), getattr(wanted, part)
            compare(
                f"{part} of a batch, 100 frequencies", dtype, "predictions", *values
            )
    return rows, passed


def product_rate(device, dtype, n):
    """Operations a second of an n by n by n product, the best of five."""
    A = torch.randn(n, n, device=device, dtype=dtype)
    _, best, _, _ = median_time(device, lambda: A @ A, repeats=5)
    return 2 * n**3 / best


def speed(device, dtype, X, m, peak):
    """Features a second, and the share of peak of a pass that sums a Gram matrix."""
    features = FourierFeatures(m, gamma=GAMMA, random_state=0)
    rows = X[: max(1000, min(len(X), 2**31 // (m * X.element_size())))]
    with config_context(array_api_dispatch=True):
        features.fit(rows)
        middle, low, high, _ = median_time(device, lambda: features.transform(rows))
    rate = len(rows) * m / middle / 1e9
    spread = f"{len(rows) * m / high / 1e9:.3g} to {len(rows) * m / low / 1e9:.3g}"
    table = [[dtype, "billion features a second", f"{rate:.3g}", spread]]
    W, Y = features.frequencies_, np.zeros((len(X), 1))
    pool = ArrayFourierMap(W, features.importance_weights_.sqrt().to(W.dtype))
    middle, *_ = median_time(device, lambda: accumulate(pool, X, Y), repeats=1)
    share = f"{2 * len(X) * m**2 / middle / peak:.2f}"
    name = "pass that forms the Gram matrix, share of peak"
    return [*table, [dtype, name, share, f"{middle:.3g} s"]]


def fits(device, X, y, what, m, peak):
    """Accuracy, time, share of peak and memory of fits to half of the rows."""
    half = len(y) // 2
    train, test = tensor(X[:half], device), tensor(X[half:], device)
    labels = tensor(y, device)
    base = KernelRidgeClassifier(
        FourierFeatures(m, gamma=GAMMA, random_state=0),
        alphas=1.0,
        keep_equations=False,
    )
    tuned = clone(base).set_params(alphas=np.logspace(-2, 2, 5), cv=3)
    table = []
    for name, model in (("alpha = 1", base), ("5 alphas, 3 folds", tuned)):
        if device == "cuda":
            torch.cuda.reset_peak_memory_stats()
        with config_context(array_api_dispatch=True):
            synchronize(device)
            start = time.perf_counter()
            model.fit(train, labels[:half])
            synchronize(device)
            seconds = time.perf_counter() - start
            right = model.predict(test) == labels[half:]
        memory = "not measured"
        if device == "cuda":
            memory = f"{torch.cuda.max_memory_allocated() / 2**30:.1f}"
        label = f"{what}, {half:,} rows, {m:,} columns, {name}"
        accuracy = f"{100 * right.double().mean().item():.2f}"
        share = f"{2 * half * m**2 / seconds / peak:.2f}"
        table.append([label, accuracy, f"{seconds:.3g}", share, memory])
    return table


def descend(X, Y, batches, frequencies):
    """Steps of learned frequencies on batches of rows."""
    frequencies, adam = frequencies.copy(), Adam(frequencies.shape)
    alpha = 1e-3 / len(frequencies)
    with single_threaded_blas():  # as an adaptation does
        for index in batches:
            rows, targets = rows_of(X, index), Y[index]
            gradient = projected_objective(frequencies, rows, targets, alpha).gradient
            frequencies += adam.step(gradient, 0.01).astype(frequencies.dtype)


def steps(device, X, y, n_steps=20):
    """Steps a second of learned frequencies on the device, and by NumPy beside it."""
    rng, table = np.random.default_rng(0), []
    Y = np.where(y == 1, 1.0, -1.0).astype(X.dtype)[:, None]
    for multiple in (1, 4):
        s = multiple * N_FEATURES
        size = max(2048, 16 * s)  # as many rows as `GradientAdaptation` takes
        batches = np.sort(rng.integers(len(X), size=(n_steps, size)), axis=1)
        frequencies = 0.3 * rng.normal(size=(s, N_FEATURES)).astype(X.dtype)
        rates = []
        for rows in (tensor(X, device), X):
            run = partial(descend, rows, Y, batches, frequencies)
            rate = [n_steps / seconds for seconds in median_time(device, run)[:3]]
            rates.append(f"{rate[0]:.3g} ({rate[2]:.3g} to {rate[1]:.3g})")
        table.append([f"s = {multiple}d, {2 * s} columns, {size:,} rows", *rates])
    return table


def tf32(device, X, y, m):
    """What TF32 changes in a fit: time, and error of decisions against float64."""
    half = len(y) // 2
    n = min(half, 50_000)
    rows, labels = tensor(X[:n], device), tensor(y[:n], device)
    features = FourierFeatures(m, gamma=GAMMA, random_state=0)
    model = KernelRidgeClassifier(features, alphas=1.0)
    before, table, decisions = torch.get_float32_matmul_precision(), [], {}
    try:
        for name in ("float64", "highest", "high"):
            if name != "float64":
                torch.set_float32_matmul_precision(name)
            exact = name == "float64"
            there = rows.double() if exact else rows
            one = clone(model).set_params(precision="float64" if exact else "auto")
            with config_context(array_api_dispatch=True):
                middle, low, high, fitted = median_time(
                    device, lambda one=one, there=there: one.fit(there, labels)
                )
                decisions[name] = fitted.decision_function(there).double()
            error = (decisions[name] - decisions["float64"]).abs()
            errors = error.max().item(), error.square().mean().sqrt().item()
            times = f"{middle:.3g} ({low:.3g} to {high:.3g})"
            table.append([name, times, *(f"{value:.1e}" for value in errors)])
    finally:
        torch.set_float32_matmul_precision(before)
    return table


def markdown(head, rows):
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def report(device, quick):
    """The text of the report, and whether every parity holds."""
    card = torch.cuda.get_device_name() if device == "cuda" else "the host's processor"
    small = device == "cpu"
    n_rows, m = (20_000, 512) if small else (N_COVTYPE, 2 * MULTIPLE * N_FEATURES)
    if quick:
        n_rows, m = (4000, 256) if small else (N_COVTYPE // 10, 2048)
    precision = torch.get_float32_matmul_precision()
    tf32_is = "on" if torch.backends.cuda.matmul.allow_tf32 else "off"
    parts = [
        "# Check of PyTorch tensors against NumPy",
        f"`python benchmarks/gpu_check.py --device {device}{' --quick' * quick}`",
        f"PyTorch {torch.__version__} on {card}, NumPy {np.__version__}, surff "
        f"{surff.__version__}. The precision of float32 products is "
        f'"{precision}" (`torch.get_float32_matmul_precision()`): TF32 is {tf32_is}.',
    ]
    rows, passed = parity(device)
    head = ["parity with NumPy", "type", "largest difference", "allowed", "holds"]
    parts += [
        "Differences are relative to the largest value; the same alpha must be chosen "
        "and the result lie on the device, in the type of `X`.",
        markdown(head, rows),
    ]
    X, y, what = covtype(n_rows, np.float32)
    peaks, table = {}, []
    for dtype in ("float32", "float64"):
        size = 1024 if small else 8192
        peaks[dtype] = product_rate(device, getattr(torch, dtype), size)
        rate = f"{peaks[dtype] / 1e12:.3g}"
        table.append([dtype, "peak of a product, 10^12 operations a second", rate, ""])
        rows = tensor(X[: n_rows // 2], device).to(getattr(torch, dtype))
        table += speed(device, dtype, rows, min(m, 4096), peaks[dtype])
    parts.append(markdown(["type", "quantity", "value", "spread, or time"], table))
    head = ["fit, float32", "test accuracy, %", "seconds", "share of peak", "GiB"]
    parts.append(markdown(head, fits(device, X, y, what, m, peaks["float32"])))
    parts.append(
        "Share of peak: the 2 n m^2 operations of the Gram matrix, over the time of "
        "the whole fit, over the peak of float32. GiB: the most that PyTorch held."
    )
    head = ["batches of learned frequencies, float32", "steps a second", "NumPy's"]
    parts.append(markdown(head, steps(device, X, y)))
    if device == "cuda":
        head = ["products", "fit, s", "largest error of decisions", "root mean square"]
        parts.append(markdown(head, tf32(device, X, y, min(m, 4096))))
        parts.append('"highest" is float32 as it is by default, "high" is TF32.')
    else:
        parts.append(
            "**No card was used**: the figures of time are of a small size, on a "
            "processor that other programs use, too, and show that the script works. "
            "`--device cuda` measures the card, covtype at s = 128d and TF32."
        )
    parts.append(f"Every parity holds: {'yes' if passed else 'NO'}.")
    return "\n\n".join(parts) + "\n", passed


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", choices=["cuda", "cpu"])
    parser.add_argument("--quick", action="store_true", help="a smaller size")
    parser.add_argument("--out", type=Path, help="write the report to a file, too")
    arguments = parser.parse_args()
    device = arguments.device or ("cuda" if torch.cuda.is_available() else "cpu")
    if device == "cuda" and not torch.cuda.is_available():
        sys.exit("--device cuda: PyTorch finds no CUDA device.")
    text, passed = report(device, arguments.quick)
    print(text)
    if arguments.out:
        arguments.out.write_text(text)
    sys.exit(0 if passed else 1)


if __name__ == "__main__":
    main()
