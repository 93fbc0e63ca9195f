"""The command line: parse, call, print. It may import every room."""

from surff.cli.main import main

__all__ = ["main"]
