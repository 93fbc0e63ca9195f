"""Lines of progress, for ``verbose=True``."""

from __future__ import annotations

import logging
import sys

__all__ = ["report"]

LOGGER = logging.getLogger("surff")


def report(message: str, *values: object) -> None:
    """Log a line at level INFO; write it to stderr where nobody listens at that level.

    Parameters
    ----------
    message : str
        In the style of `logging`, with a ``%`` place for each value.
    *values : object
        What goes there.
    """
    if LOGGER.isEnabledFor(logging.INFO) and LOGGER.hasHandlers():
        LOGGER.info(message, *values)
    else:
        sys.stderr.write(message % values + "\n")
