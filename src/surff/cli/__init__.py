"""The command line: parse, call, print.

It may import `experiments`, `datasets` and the public names of `surff`.
"""

from surff.cli.main import main

__all__ = ["main"]
