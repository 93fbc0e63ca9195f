"""Memory and time of `surff fit` on a table that does not fit in memory.

``python benchmarks/large_table.py`` writes a table of numbers, categories and gaps as
CSV and as Parquet, and runs the command on each in a process of its own. ``--rows``
sets the size. What it prints is in the guide to tables, with its processor.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

#: Rows that are made at a time.
STEP = 500_000


def blocks(n_rows):
    """Yield tables of pyarrow: four columns of numbers, three of text, a target."""
    rng = np.random.default_rng(0)
    towns = np.array(["Oslo", "Rome", "Bern", "Lima", None], dtype=object)
    for start in range(0, n_rows, STEP):
        n = min(STEP, n_rows - start)
        x = rng.normal(size=(n, 4)).round(4)
        gaps = pa.array(x[:, 1], mask=rng.random(n) < 0.05)
        town = rng.integers(0, 5, n)
        shop = rng.integers(0, 300, n)
        y = np.sin(2 * x[:, 0]) + (town == 1) + 0.01 * (shop % 50) + x[:, 2] ** 2 / 4
        yield pa.table(
            {
                **{f"x{j}": x[:, j] for j in (0, 2, 3)},
                "x1": gaps,
                "town": pa.array(towns[town]),
                "shop": pa.array([f"shop {k}" for k in shop]),
                "paid": pa.array(np.where(rng.random(n) < 0.5, "yes", "no")),
                "y": (y + 0.3 * rng.normal(size=n)).round(4),
            }
        )


def write(folder, n_rows):
    """Write both files; returns their paths."""
    paths = [folder / "table.csv", folder / "table.parquet"]
    csv_writer = parquet_writer = None
    for table in blocks(n_rows):
        if csv_writer is None:
            csv_writer = pyarrow.csv.CSVWriter(paths[0], table.schema)
            parquet_writer = pyarrow.parquet.ParquetWriter(paths[1], table.schema)
        csv_writer.write_table(table)
        parquet_writer.write_table(table)
    csv_writer.close()
    parquet_writer.close()
    return paths


def measured(path, max_time):
    """Account of the command on a file, with its seconds and its largest memory."""
    start = time.perf_counter()
    command = [sys.executable, "-m", "surff", "fit", str(path), "--target", "y"]
    command += ["--json", "--max-time", str(max_time)]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    # Of children that have ended; the larger of two runs, so they are run in two.
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    account = json.loads(run.stdout)
    return account, time.perf_counter() - start, peak, run.stderr


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--max-time", type=float, default=60.0)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for path in write(Path(folder), arguments.rows):
            account, seconds, peak, told = measured(path, arguments.max_time)
            size = path.stat().st_size / 2**20
            print(
                f"{path.name}: {account['rows']:,} rows, {size:.0f} MB; R2 "
                f"{account['score']:.4f} with {account['n_components']} features; "
                f"{seconds:.0f} s, {peak:.0f} MB at most"
            )
            print(told)


if __name__ == "__main__":
    main()
