"""All harnesses at full length, one after the other.

``python tests/fuzz/everything.py`` runs the commands of the table in
``docs/reliability.md`` and prints what each said last and how long it took: an hour or
so of one core. ``--jobs 2`` runs two at a time, ``--only`` those whose name is given,
and ``--out`` is where all that they say is written. The exit status says whether one
found a fault.
"""

import argparse
import concurrent.futures
import os
import subprocess
import sys
import time
from pathlib import Path

#: Arguments of the harnesses, by a name for each run.
COMMANDS = {
    "models": "model_files.py --n 100000 --seed 7",
    "csv": "readers.py --n 20000 --seed 2 --reader csv",
    "parquet": "readers.py --n 20000 --seed 2 --reader parquet",
    "arrow": "readers.py --n 20000 --seed 2 --reader arrow",
    "estimators": "estimators.py --n 20000 --seed 3 --seconds 20000",
    "sequences": "sequences.py --n 1000 --seed 12 --seconds 20000",
    "kills": "kills.py --n 400 --seed 1",
    "interrupts": "interrupts.py --n 200 --rows 6000 --columns 4 --seed 1",
    "covtype": "interrupts.py --n 100 --dataset covtype --components 108 --seed 1",
    "endurance": "endurance.py",
    "sines": "sines.py --n 100000000 --seed 1",
    "faults": "faults.py --n 20 --seed 1",
}

#: One thread, so that runs side by side do not wait for each other.
THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "NUMBA_NUM_THREADS")


def run(name, out):
    """Exit status, last line and seconds of a command."""
    script, *arguments = COMMANDS[name].split()
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, Path(__file__).with_name(script), *arguments],
        env={**os.environ, **dict.fromkeys(THREADS, "1")},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        (out / f"{name}.txt").write_text(done.stdout)
    lines = done.stdout.strip().splitlines()
    # The model files' harness says its faults in a line of their own.
    last = " ".join(lines[-2:] if lines[-1:] and "faults" in lines[-1] else lines[-1:])
    return done.returncode, last, time.monotonic() - began


def main():
    """Run them; the exit status says whether there were faults."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--jobs", type=int, default=1, help="harnesses at a time")
    parser.add_argument("--only", nargs="+", default=[*COMMANDS], choices=COMMANDS)
    parser.add_argument("--out", type=Path, help="folder for what they say")
    options = parser.parse_args()
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        found = {pool.submit(run, name, options.out): name for name in options.only}
        for future in concurrent.futures.as_completed(found):
            status, last, seconds = future.result()
            failed |= status != 0
            print(f"{COMMANDS[found[future]]}: {status}, {seconds:.0f} s\n    {last}")
            sys.stdout.flush()
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
