"""Numbers that papers print, to be shown next to measured ones.

The paper's Table 2, 116 cells, and results of others on the benchmark's tasks.
"""

from __future__ import annotations

import csv
from importlib import resources
from typing import NamedTuple

from surff.experiments.registry import REGISTRY

__all__ = ["PUBLISHED", "PrintedCell", "Published", "printed_table"]


class Published(NamedTuple):
    """Results of a method as its authors print them.

    Attributes
    ----------
    method : str
    source : str
        Paper and splits.
    values : dict of str to float
        Root mean square errors of standardised targets, or accuracies in percent, by
        task.
    """

    method: str
    source: str
    values: dict[str, float]


#: Published results on tasks of the benchmark.
PUBLISHED = tuple(
    Published(method, entry["source"], values)
    for entry in REGISTRY["published"]
    for method, values in entry["values"].items()
)


class PrintedCell(NamedTuple):
    """One printed cell.

    Attributes
    ----------
    accuracy, std : float
        Mean and standard deviation over the paper's ten trials, in percent.
    seconds, seconds_std : float
        Time of generating the features, in seconds.
    bullet : bool
        Whether the paper marks a weighted method as significantly better than both RFF
        and QMC, by a paired t-test at 5 %.
    """

    accuracy: float
    std: float
    seconds: float
    seconds_std: float
    bullet: bool


def printed_table() -> dict[tuple[str, int, str], PrintedCell]:
    """Every cell of the printed Table 2.

    Returns
    -------
    cells : dict
        Maps ``(dataset, multiple, method)`` to `PrintedCell`: d to 128d on EEG,
        magic04 and cod-RNA, d to 16d on covtype, four methods each.

    References
    ----------
    .. [1] F. Liu, X. Huang, Y. Chen, J. Yang, J. A. K. Suykens, "Random Fourier
       Features via Fast Surrogate Leverage Weighted Sampling", AAAI 2020, Table 2.

    Examples
    --------
    >>> printed_table()["eeg", 32, "surrogate"]
    PrintedCell(accuracy=89.38, std=0.32, seconds=0.26, seconds_std=0.03, bullet=True)
    """
    path = resources.files("surff.experiments") / "printed_table2.csv"
    names = PrintedCell._fields[:-1]
    return {
        (row["dataset"], int(row["multiple"]), row["method"]): PrintedCell(
            *(float(row[name]) for name in names), bullet=row["bullet"] == "1"
        )
        for row in csv.DictReader(path.read_text("utf-8").splitlines())
    }
