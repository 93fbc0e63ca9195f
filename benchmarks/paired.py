"""Time callables in turn and compare them pair by pair.

On a shared machine absolute times drift; the ratio of two runs that follow one another
does not. `rounds` runs every callable once a round, in order, and the ratio of two of
them is taken round by round.
"""

import statistics
import time

__all__ = ["ratio", "rounds"]


def rounds(callables, repeats):
    """Seconds of each callable in each round, after one round that is not counted.

    Parameters
    ----------
    callables : dict of str to callable
        What to time, in this order.
    repeats : int
        Rounds counted.

    Returns
    -------
    seconds : dict of str to list of float
    """
    seconds = {name: [] for name in callables}
    for counted in range(-1, repeats):
        for name, function in callables.items():
            start = time.perf_counter()
            function()
            if counted >= 0:
                seconds[name].append(time.perf_counter() - start)
    return seconds


def ratio(numerator, denominator):
    """Median, minimum and maximum of the ratios round by round."""
    ratios = [a / b for a, b in zip(numerator, denominator, strict=True)]
    return statistics.median(ratios), min(ratios), max(ratios)
