"""Declared minimums of dependencies against published security advisories.

``python tools/floors.py`` fails where ``pyproject.toml`` allows a version of a package
that is known to be unsafe in what surff uses or installs it for. The list is kept by
hand; ``pip-audit`` in CI looks at the newest versions. Standard library only.
"""

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

#: First version without a published advisory on running code from a file or an
#: argument, and the last advisory that it mends.
FIRST_SAFE = {
    "distributed": ("2026.1.0", "CVE-2026-23528"),
    "pyarrow": ("14.0.1", "CVE-2023-47248"),
    "scikit-learn": ("1.5.0", "CVE-2024-5206"),
    "skops": ("0.13.0", "CVE-2025-54886"),
    "torch": ("2.6.0", "CVE-2025-32434"),
    "tqdm": ("4.66.3", "CVE-2024-34062"),
}


def number(version):
    """Version as a tuple that sorts, trailing zeros dropped."""
    parts = [int(part) for part in version.split(".")]
    while parts and parts[-1] == 0:
        parts.pop()
    return tuple(parts)


def requirements(project):
    """Yield (name, minimum or None) of every requirement of a project table."""
    extras = project.get("optional-dependencies", {}).values()
    for line in [*project.get("dependencies", []), *[r for e in extras for r in e]]:
        name = re.match(r"[A-Za-z0-9._-]+", line)[0].lower()
        floor = re.search(r"[>=]=\s*([0-9.]+)", line)
        yield name, floor and floor[1]
        # A release of dask asks for the release of distributed of the same number.
        if name == "dask":
            yield "distributed", floor and floor[1]


def unsafe(project):
    """Yield a sentence for each minimum that an advisory covers."""
    for name, floor in requirements(project):
        safe, advisory = FIRST_SAFE.get(name, (None, None))
        if safe and (floor is None or number(floor) < number(safe)):
            yield f"{name}>={floor}: {advisory} is fixed in {safe}; raise the minimum"


def main():
    """Print the minimums that are too low; return whether there are any."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    faults = sorted(set(unsafe(tomllib.loads(text)["project"])))
    for fault in faults:
        print(fault, file=sys.stderr)
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main())
