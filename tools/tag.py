"""Tag a release with what CHANGELOG.md says of it.

``python tools/tag.py`` takes the first numbered section of ``CHANGELOG.md``, checks it
against ``surff.__version__`` and makes the annotated tag ``v1.2.3`` with the section as
its message; ``--check`` makes none. Standard library and git only.
"""

import argparse
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def newest(changelog):
    """Version and text of the first numbered section; None for both if there is none.

    Raises
    ------
    ValueError
        If there is text under "Unreleased", which would be in no release.
    """
    sections = re.split(r"^## ", changelog, flags=re.MULTILINE)[1:]
    for section in sections:
        heading, _, text = section.partition("\n")
        if heading.startswith("Unreleased"):
            if text.strip():
                raise ValueError('CHANGELOG.md: "Unreleased" is not empty')
            continue
        return heading.split()[0].strip("[]"), text.strip()
    return None, None


def main(arguments=None):
    """Make the tag; return whether something is wrong, as the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="make no tag")
    options = parser.parse_args(arguments)
    front = (ROOT / "src" / "surff" / "__init__.py").read_text(encoding="utf-8")
    declared = re.search(r'^__version__ = "(.+)"$', front, re.MULTILINE)[1]
    try:
        version, text = newest((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"))
    except ValueError as error:
        print(error, file=sys.stderr)
        return 1
    if version != declared:
        print(f"CHANGELOG.md has {version}, surff {declared}", file=sys.stderr)
        return 1
    print(f"v{version}\n\n{text}")
    if not options.check:
        message = f"surff {version}\n\n{text}"
        command = ["git", "tag", "--annotate", "--cleanup=verbatim", f"v{version}"]
        subprocess.run([*command, "--message", message], check=True, cwd=ROOT)
    return 0


if __name__ == "__main__":
    sys.exit(main())
