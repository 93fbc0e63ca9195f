"""What the rules of `select=` bring: kernel error, test accuracy and time.

Accuracy and its protocol are those of ``residual.py``: gamma and alpha tuned for every
rule, features that look at y selected anew for each fold. The kernel error is the
relative spectral error against the exact kernel of 1,000 training rows at gamma = 1/d,
the time that of one selection there with all training rows. Run:
``SURFF_DATA=... python benchmarks/selection.py --datasets magic04``.
"""

import argparse
import time

import numpy as np

from residual import measure, part_of
from surff import (
    EERF,
    Compression,
    FourierFeatures,
    KernelAlignment,
    ResidualLeverage,
    RidgeLeverage,
    SurrogateLeverage,
)
from surff.inspection import relative_error
from surff.kernels import Gaussian

#: Rules, each with a pool of ten times the frequencies where that is a choice.
RULES = {
    "none": None,
    "leverage": RidgeLeverage(10.0, 10.0, "without_replacement"),
    "leverage, 4,000 rows": RidgeLeverage(
        10.0, 10.0, "without_replacement", n_rows=4000
    ),
    "surrogate": SurrogateLeverage(n_candidates=10.0, resample="without_replacement"),
    "eerf": EERF(),
    "alignment": KernelAlignment(n_candidates=10.0, resample="without_replacement"),
    "alignment, rho=5": KernelAlignment(5.0, 10.0, "without_replacement"),
    "compression, giga": Compression("giga", 10.0),
    "compression, 10,000 pairs": Compression("giga", 10.0, n_pairs=10_000),
    "compression, frank-wolfe": Compression("frank-wolfe", 10.0),
    "residual": ResidualLeverage(n_candidates=10.0),
}
KERNEL_ROWS = 1000


def kernel_error(part, multiple, select, trial):
    """Relative spectral error, and seconds of the selection."""
    d = part.X.shape[1]
    features = FourierFeatures(
        2 * multiple * d, gamma=1.0 / d, select=select, random_state=trial
    )
    start = time.perf_counter()
    features.fit(part.X, part.y)
    seconds = time.perf_counter() - start
    rows = part.X[:KERNEL_ROWS]
    K = Gaussian().kernel(np.sqrt(1.0 / d) * rows)
    return relative_error(K, features.transform(rows)), seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--datasets", nargs="+", default=["magic04"])
    parser.add_argument("--multiples", type=int, nargs="+", default=[4])
    parser.add_argument("--splits", type=int, default=3)
    options = parser.parse_args()
    print("| data | s | rule | kernel error | accuracy | less none | seconds |")
    print("|---|---:|---|---:|---:|---:|---:|")
    for name in options.datasets:
        parts = [part_of(name, trial) for trial in range(options.splits)]
        for multiple in options.multiples:
            plain = None
            for label, select in RULES.items():
                errors, seconds = np.transpose(
                    [
                        kernel_error(part, multiple, select, i)
                        for i, part in enumerate(parts)
                    ]
                )
                accuracy = np.array(
                    [
                        measure(part, multiple, select, i)[0]
                        for i, part in enumerate(parts)
                    ]
                )
                plain = accuracy if plain is None else plain
                gain = accuracy - plain
                error = gain.std(ddof=1) / np.sqrt(len(gain))
                print(
                    f"| {name} | {multiple}d | {label} | {errors.mean():.3f} "
                    f"| {accuracy.mean():.2f} | {gain.mean():+.2f} ± {error:.2f} "
                    f"| {np.median(seconds):.3f} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
