"""Means, spreads and comparisons of trials; plain numbers in, plain numbers out."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

__all__ = [
    "LEAST_TRIALS",
    "LEVEL",
    "Summary",
    "paired_p_value",
    "paired_ratio",
    "rows_by_cell",
    "signed_rank_p_value",
    "significantly_better",
    "summarise",
]

#: Level of every test, as in the paper.
LEVEL = 0.05

#: Fewest trials that are tested: the variance of fewer says too little.
LEAST_TRIALS = 5


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


def rows_by_cell(rows: Sequence[dict]) -> dict[tuple[str, int, str], dict[int, dict]]:
    """Rows by data set, multiple and method, then by trial."""
    found: dict[tuple, dict[int, dict]] = {}
    for row in rows:
        key = row["dataset"], row["multiple"], row["method"]
        found.setdefault(key, {})[row["trial"]] = row
    return found


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
    values: Mapping[Any, float],
    reference: Mapping[Any, float],
    test_train_ratio: float = 0.0,
) -> float:
    r"""Two-sided p-value of a paired t-test, corrected for splits that overlap.

    With J differences of mean m and variance v,

    .. math:: t = \frac{m}{\sqrt{(1 / J + n_2 / n_1) v}}

    is compared with Student's distribution of J - 1 degrees of freedom [1]_.

    Parameters
    ----------
    values, reference : mapping from trial to float
        Trials that only one of them has are left out.
    test_train_ratio : float, default=0.0
        :math:`n_2 / n_1`, rows to test over rows to train, of random splits of the
        same rows: 1 for halves, 1 / 9 for ten-fold cross-validation. 0 is the plain
        paired t-test, for trials that share no rows.

    Returns
    -------
    p : float
        NaN for fewer than ``LEAST_TRIALS`` pairs. Pairs that all differ by the same
        amount, up to rounding, have p = 0, or p = 1 if that is zero.

    Notes
    -----
    Random splits share rows, so that their scores are correlated, about as much as
    :math:`n_2 / (n_1 + n_2)`; the plain test takes them for independent and rejects far
    too often. Between halves the standard error is :math:`\sqrt{J + 1}` times the one
    of the plain test: more trials do not make a difference significant.

    References
    ----------
    .. [1] C. Nadeau, Y. Bengio, "Inference for the Generalization Error", Machine
       Learning 52, 2003.

    Examples
    --------
    >>> a, b = dict(enumerate([3, 4, 6, 5, 4])), dict.fromkeys(range(5), 3)
    >>> round(paired_p_value(a, b), 3), round(paired_p_value(a, b, 1.0), 3)
    (0.052, 0.325)
    """
    trials = sorted(values.keys() & reference.keys())
    if len(trials) < LEAST_TRIALS:
        return math.nan
    a = np.array([values[trial] for trial in trials])
    b = np.array([reference[trial] for trial in trials])
    difference = a - b
    rounding = 8 * np.finfo(float).eps * max(np.abs(a).max(), np.abs(b).max())
    if np.ptp(difference) <= rounding:  # the statistic is 0/0 or infinite
        return 0.0 if np.abs(difference).max() > rounding else 1.0
    variance = (1.0 / len(trials) + test_train_ratio) * difference.var(ddof=1)
    t = difference.mean() / math.sqrt(variance)
    return float(2.0 * stats.t.sf(abs(t), len(trials) - 1))


def significantly_better(
    values: Mapping[Any, float],
    references: Sequence[Mapping[Any, float]],
    test_train_ratio: float = 0.0,
    level: float = LEVEL,
) -> bool:
    """The paper's bullet: a higher mean than every reference, each p below ``level``.

    Parameters
    ----------
    values : mapping from trial to float
    references : sequence of mapping from trial to float
        At least one; the paper's are RFF and QMC.
    test_train_ratio : float, default=0.0
        As in `paired_p_value`.
    level : float, default=0.05

    Returns
    -------
    better : bool
        False for fewer than ``LEAST_TRIALS`` pairs.
    """
    return all(
        sum(values[trial] - reference[trial] for trial in values.keys() & reference) > 0
        and paired_p_value(values, reference, test_train_ratio) < level
        for reference in references
    )


def signed_rank_p_value(
    values: Mapping[Any, float], reference: Mapping[Any, float]
) -> float:
    """Two-sided p-value of Wilcoxon's signed-rank test over data sets.

    Parameters
    ----------
    values, reference : mapping from data set to float
        Mean scores; data sets that only one of them has are left out. They share no
        rows, so their differences are independent.

    Returns
    -------
    p : float
        NaN without a pair that differs; pairs that do not are left out.

    References
    ----------
    .. [1] J. Demsar, "Statistical Comparisons of Classifiers over Multiple Data Sets",
       JMLR 7, 2006.

    Examples
    --------
    >>> signed_rank_p_value(dict(a=3.0, b=2.0, c=4.0, d=9.0), dict(a=1, b=1, c=1, d=1))
    0.125
    """
    differences = [values[name] - reference[name] for name in values.keys() & reference]
    differences = [difference for difference in differences if difference]
    return float(stats.wilcoxon(differences).pvalue) if differences else math.nan


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
