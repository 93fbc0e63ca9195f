"""Means, spreads and comparisons of trials; plain numbers in, plain numbers out."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

__all__ = [
    "Summary",
    "mean_absolute_deviation",
    "paired_p_value",
    "paired_ratio",
    "significantly_better",
    "summarise",
]


class Summary(NamedTuple):
    """Mean and standard deviation of some trials.

    Attributes
    ----------
    mean : float
    std : float
        Sample standard deviation (divisor n - 1); NaN for one trial.
    n : int
        Trials.
    """

    mean: float
    std: float
    n: int


def summarise(values: Sequence[float]) -> Summary:
    """Mean and sample standard deviation.

    Parameters
    ----------
    values : sequence of float
        At least one value.

    Returns
    -------
    summary : Summary

    Raises
    ------
    ValueError
        ``values`` is empty.

    Examples
    --------
    >>> summarise([1.0, 3.0])
    Summary(mean=2.0, std=1.4142135623730951, n=2)
    """
    array = np.asarray(values, dtype=np.float64)
    if array.size == 0:
        raise ValueError("values must hold at least one number, got none.")
    std = float(array.std(ddof=1)) if array.size > 1 else math.nan
    return Summary(float(array.mean()), std, array.size)


def paired_p_value(
    values: Mapping[Any, float], reference: Mapping[Any, float]
) -> float:
    """Two-sided p-value of a paired t-test.

    Parameters
    ----------
    values, reference : mapping from trial to float
        Trials that only one of them has are left out.

    Returns
    -------
    p : float
        NaN for fewer than two pairs, where there is nothing to test. Pairs that all
        differ by the same amount, up to rounding, have p = 0, or p = 1 if that is zero.

    Examples
    --------
    >>> round(paired_p_value({0: 1.0, 1: 2.0, 2: 4.0}, {0: 0.0, 1: 1.0, 2: 2.0}), 4)
    0.0572
    """
    trials = sorted(values.keys() & reference.keys())
    if len(trials) < 2:
        return math.nan
    a = np.array([values[trial] for trial in trials])
    b = np.array([reference[trial] for trial in trials])
    difference = a - b
    rounding = 8 * np.finfo(float).eps * max(np.abs(a).max(), np.abs(b).max())
    if np.ptp(difference) <= rounding:  # the statistic is 0/0 or infinite
        return 0.0 if np.abs(difference).max() > rounding else 1.0
    return float(stats.ttest_rel(a, b).pvalue)


def significantly_better(
    values: Mapping[Any, float],
    reference: Mapping[Any, float],
    level: float = 0.05,
) -> bool:
    """The paper's bullet: a higher mean, and a paired t-test below ``level``.

    Parameters
    ----------
    values, reference : mapping from trial to float
        As in `paired_p_value`.
    level : float, default=0.05

    Returns
    -------
    better : bool
        False for fewer than two pairs.
    """
    trials = values.keys() & reference.keys()
    gain = sum(values[trial] - reference[trial] for trial in trials)
    return gain > 0 and paired_p_value(values, reference) < level


def paired_ratio(values: Mapping[Any, float], reference: Mapping[Any, float]) -> float:
    """Median over trials of the ratio within a trial.

    Parameters
    ----------
    values, reference : mapping from trial to float
        Positive; trials that only one of them has are left out.

    Returns
    -------
    ratio : float
        NaN without a pair. The median, since a busy machine spoils single times.
    """
    trials = values.keys() & reference.keys()
    if not trials:
        return math.nan
    return float(np.median([values[trial] / reference[trial] for trial in trials]))


def mean_absolute_deviation(
    measured: Mapping[Any, float], printed: Mapping[Any, float]
) -> tuple[float, int]:
    """Mean absolute deviation over the cells that both have.

    Parameters
    ----------
    measured, printed : mapping from cell to float

    Returns
    -------
    deviation : float
        NaN without a common cell.
    n_cells : int
        Cells compared.
    """
    cells = measured.keys() & printed.keys()
    if not cells:
        return math.nan, 0
    return float(np.mean([abs(measured[c] - printed[c]) for c in cells])), len(cells)
