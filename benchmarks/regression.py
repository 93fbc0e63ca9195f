"""Has a commit made surff slower? Two commits, one run, side by side.

Both commits are checked out into a temporary folder. A child process of each imports
its own surff and runs the short pieces of `kernels` when it is asked; the two are asked
in turn, round by round, and the ratios of the rounds are compared. A piece is slower
where every round says so by more than the tolerance, and unclear where the median does
and some round does not. Run: ``python benchmarks/regression.py COMMIT_A COMMIT_B``.
The exit status is 1 if something is slower in B than in A.
"""

import argparse
import contextlib
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from children import Child, asked_in_turn, ratio
from kernels import KERNELS
from paired import add_clock, processor

__all__ = ["Comparison", "checked_out", "compare_commits", "table", "verdict"]

HERE = Path(__file__).resolve().parent


class Comparison(NamedTuple):
    """A piece in both commits."""

    name: str
    ratio: tuple[float, float, float] | None  # B over A: median, least and most
    failures: dict[str, str]  # by commit, why it has no ratio


def git(repository, *words):
    """Run git and return what it prints."""
    done = subprocess.run(
        ["git", "-C", repository, *words], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(done.stderr.strip())
    return done.stdout.strip()


@contextlib.contextmanager
def checked_out(repository, commits):
    """Folders with the commits, while the context lasts.

    Parameters
    ----------
    repository : Path
    commits : sequence of str
        Anything that git takes for one.

    Yields
    ------
    folders : list of Path
    """
    with tempfile.TemporaryDirectory() as base, contextlib.ExitStack() as stack:
        folders = []
        for number, commit in enumerate(commits):
            folder = Path(base).resolve() / str(number)
            git(repository, "worktree", "add", "--quiet", "--detach", folder, commit)
            remove = "worktree", "remove", "--force", folder
            stack.callback(git, repository, *remove)
            folders.append(folder)
        yield folders


def compare_commits(repository, commits, names, rounds, command, one_thread=False):
    """Ratios of the times that two commits take.

    Parameters
    ----------
    repository : Path
    commits : tuple of two str
    names : sequence of str
        Pieces to time.
    rounds : int
    command : sequence of str
        Starts a child that answers as `kernels` does, with the commit's ``src`` on
        Python's path.
    one_thread : bool, default=False
        Let numerical libraries start a single thread.

    Yields
    ------
    comparison : Comparison
    """
    with checked_out(repository, commits) as folders, contextlib.ExitStack() as stack:
        children = {
            label: stack.enter_context(
                Child(command, one_thread, {"PYTHONPATH": str(folder / "src")})
            )
            for label, folder in zip("AB", folders, strict=True)
        }
        for name in names:
            answers, failures = asked_in_turn(
                children, rounds, what="measure", name=name
            )
            if failures:
                yield Comparison(name, None, failures)
                continue
            for label, folder in zip("AB", folders, strict=True):
                source = Path(answers[label][0]["source"]).resolve()
                if not source.is_relative_to(folder):
                    raise SystemExit(f"{label} must run {folder}, it ran {source}.")
            a, b = ([one["seconds"] for one in answers[label]] for label in "AB")
            yield Comparison(name, ratio(b, a), {})


def verdict(values, tolerance):
    """What the ratios say.

    Parameters
    ----------
    values : tuple of float
        Median, least and most of B over A.
    tolerance : float
        Change that does not count, >= 0; 0.05 is 5 %.

    Returns
    -------
    word : {"slower", "faster", "unclear", "same"}
    """
    median, low, high = values
    if low > 1.0 + tolerance:
        return "slower"
    if high < 1.0 / (1.0 + tolerance):
        return "faster"
    if median > 1.0 + tolerance:
        return "unclear"
    return "same"


def table(comparison, tolerance):
    """The comparison as a row of a Markdown table."""
    if comparison.ratio is None:
        label, reason = next(iter(comparison.failures.items()))
        return f"| {comparison.name} | | | not in {label}: {reason} |"
    median, low, high = comparison.ratio
    word = verdict(comparison.ratio, tolerance)
    if word == "slower":
        word = f"**slower** by {100 * (low - 1):.0f} % at least"
    elif word == "faster":
        word = f"faster by {100 * (1 / high - 1):.0f} % at least"
    return f"| {comparison.name} | {median:.2f} | {low:.2f} to {high:.2f} | {word} |"


def main(arguments=None):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("commits", nargs=2, metavar="COMMIT")
    parser.add_argument("--kernels", nargs="+", choices=KERNELS, default=list(KERNELS))
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--tolerance", type=float, default=0.05, help="0.05 is 5 %%")
    parser.add_argument("--scale", type=float, default=1.0, help="of the rows")
    add_clock(parser)
    options = parser.parse_args(arguments)
    first, second = (git(HERE, "rev-parse", "--short", c) for c in options.commits)
    print(f"A is {first}, B is {second}; {options.rounds} rounds.")
    print(f"{processor()}{', one is used' * options.one_thread}\n")
    print("| | B / A | min to max | verdict |\n|---|---:|---|---|", flush=True)
    clock = "process_time" if options.one_thread else "perf_counter"
    command = sys.executable, HERE / "kernels.py", options.scale, clock
    slower = False
    for comparison in compare_commits(
        HERE,
        (first, second),
        options.kernels,
        options.rounds,
        command,
        options.one_thread,
    ):
        print(table(comparison, options.tolerance), flush=True)
        if comparison.ratio is not None:
            slower |= verdict(comparison.ratio, options.tolerance) == "slower"
    return int(slower)


if __name__ == "__main__":
    sys.exit(main())
