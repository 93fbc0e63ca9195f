"""Environments of their own for the libraries that surff is compared with.

Each peer is installed by pip into ``DIR/NAME``, apart from surff and from each other,
imported there, and written down in ``DIR/peers.json`` with its version, or with the
reason why it cannot be run. Run: ``python benchmarks/peers.py DIR``; then ``python
benchmarks/compare.py --peers DIR``.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

__all__ = ["PEERS", "Peer", "install", "installed"]


class Peer(NamedTuple):
    """What to install, and what to import to see that it works."""

    requirements: tuple[str, ...]
    module: str


#: Peers by name. xGPR is not among them: the licence of its wheels, 0.4.8.5, is for
#: academic, non-commercial use alone.
PEERS = {
    "rfflearn": Peer(("rfflearn==2024.10.28",), "rfflearn.cpu"),
    "gpytorch": Peer(("torch==2.13.0", "gpytorch==1.15.2"), "gpytorch"),
}


def python_of(directory, name):
    """Interpreter of a peer's environment."""
    return Path(directory) / name / "bin" / "python"


def install(directory, name):
    """Make the environment of a peer.

    Parameters
    ----------
    directory : Path
    name : str
        Key of ``PEERS``.

    Returns
    -------
    outcome : dict
        ``version``, or ``reason``: the last line of what failed.
    """
    python, peer = python_of(directory, name), PEERS[name]
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    distribution = peer.requirements[-1].partition("==")[0]
    check = (
        f"import importlib.metadata as m, {peer.module}; "
        f"print(m.version({distribution!r}))"
    )
    for command in (
        [sys.executable, "-m", "venv", "--clear", python.parents[1]],
        [*pip, *peer.requirements],
        [python, "-c", check],
    ):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            said = (done.stderr or done.stdout).strip().splitlines()
            return {"reason": said[-1] if said else f"exit status {done.returncode}"}
    return {"version": done.stdout.strip()}


def installed(directory):
    """Peers that can be run.

    Parameters
    ----------
    directory : Path
        What `main` was called with.

    Returns
    -------
    peers : dict of str to str
        Version by name.

    Raises
    ------
    FileNotFoundError
        Nothing was installed there; the message says how to.
    """
    path = Path(directory) / "peers.json"
    if not path.exists():
        raise FileNotFoundError(
            "peers must be a directory that benchmarks/peers.py filled, "
            f"got {directory}."
        )
    found = json.loads(path.read_text())
    return {name: peer["version"] for name, peer in found.items() if "version" in peer}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path, metavar="DIR")
    parser.add_argument("--only", nargs="+", choices=PEERS, default=list(PEERS))
    options = parser.parse_args()
    options.directory.mkdir(parents=True, exist_ok=True)
    path = options.directory / "peers.json"
    found = json.loads(path.read_text()) if path.exists() else {}
    for name in options.only:
        found[name] = install(options.directory, name)
        print(name, *(f"{key}: {value}" for key, value in found[name].items()))
        path.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
