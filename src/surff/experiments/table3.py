r"""The paper's table of eigenvalue decay: how many features which decay asks for.

For spectra of :math:`K / n` that decay exponentially, polynomially and as 1/i, and
:math:`\lambda = n^{-1/2}` for growing n, the effective degrees of freedom d and the
number of features s that leverage sampling and the surrogate need are computed from
the eigenvalues, and the slopes of log d and log s against log n are compared with those
of the orders that theory gives, fitted over the same n: a factor log n bends a slope
at every n that fits into memory. `surff.inspection.theory` derives the orders.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

import surff
from surff.experiments.figures import decay_figure
from surff.experiments.registry import REGISTRY
from surff.experiments.table import Report, Table

__all__ = [
    "CASES",
    "SIZES",
    "DecayRow",
    "Quantity",
    "table3_report",
    "table3_rows",
]

#: Numbers of rows n: half decades.
SIZES = tuple(round(10 ** (k / 2)) for k in range(6, 15))

#: Decays shown, with the rate t of the polynomial ones.
CASES = (
    ("exponential", 1.0),
    ("polynomial", 1.0),
    ("polynomial", 2.0),
    ("harmonic", 1.0),
)

#: Orders that the paper's table prints and Theorem 1 does not give.
PRINTED_ORDERS = {("exponential", "s leverage"): "log^2 n"}

#: Failure probability in Theorem 1; it scales every s alike.
DELTA = 0.1


class Quantity(NamedTuple):
    """One number that grows with n.

    Attributes
    ----------
    name : str
    values : ndarray of shape (k,)
        At each of the sizes.
    slope, theory_slope : float
        Of its logarithm against log n over the last two decades of n: as computed, and
        of the order in theory, logarithms and all.
    order : str
        The order as text.
    order_values : ndarray of shape (k,)
        The order at each of the sizes, equal to the value at the largest.
    """

    name: str
    values: np.ndarray
    slope: float
    theory_slope: float
    order: str
    order_values: np.ndarray


class DecayRow(NamedTuple):
    """One case of decay.

    Attributes
    ----------
    name, eigenvalues : str
        The case, and its eigenvalues (before they sum to one) as text.
    sizes : ndarray of shape (k,)
        n, ascending.
    dof : Quantity
        Effective degrees of freedom d at lambda = n^(-1/2).
    leverage, surrogate : Quantity
        Features that Theorem 1 asks for with D = d, as in leverage sampling, and with
        D = 1 / lambda, the least that the surrogate's D can be.
    """

    name: str
    eigenvalues: str
    sizes: np.ndarray
    dof: Quantity
    leverage: Quantity
    surrogate: Quantity


def table3_rows(
    sizes: Sequence[int] = SIZES, cases: Sequence[tuple[str, float]] = CASES
) -> list[DecayRow]:
    """Compute the table.

    Parameters
    ----------
    sizes : sequence of int, default=SIZES
        Numbers of rows n, at least two different ones.
    cases : sequence of (str, float), default=CASES
        Keys of `surff.inspection.DECAYS` with rates t.

    Returns
    -------
    rows : list of DecayRow

    Raises
    ------
    ValueError
        There are fewer than two sizes, or one is below 100.

    Notes
    -----
    Time and memory are O(n) for the largest n: a second and 0.3 GB for 10^7.
    """
    n = np.unique(np.asarray(sizes, dtype=np.int64))
    if len(n) < 2 or n[0] < 100:
        raise ValueError(
            f"sizes must be at least two numbers of at least 100, got {n.tolist()}."
        )
    return [_row(decay, t, n) for decay, t in cases]


def _row(decay, t, sizes):
    theory = surff.inspection
    case = theory.DECAYS[decay]
    lambdas = sizes**-0.5
    dof = np.array(
        [
            theory.spectral_dof(theory.decaying_spectrum(decay, n, t), lam)
            for n, lam in zip(sizes, lambdas, strict=True)
        ]
    )
    leverage = np.array([theory.theorem_1_features(d, d, DELTA) for d in dof])
    surrogate = np.array(
        [
            theory.theorem_1_features(1.0 / lam, d, DELTA)
            for d, lam in zip(dof, lambdas, strict=True)
        ]
    )
    # The orders of s as in Theorem 1: its 16 is far from lost in log(16 d) at these d.
    order = case.dof_order(sizes.astype(float), t)

    def text(words):
        return words.replace("2t", f"{2 * t:g}").replace("4t", f"{4 * t:g}")

    return DecayRow(
        name=decay,
        eigenvalues=text(case.eigenvalues_text),
        sizes=sizes,
        dof=_quantity("d", sizes, dof, order, text(case.dof_text)),
        leverage=_quantity(
            "s leverage",
            sizes,
            leverage,
            order * np.log(16.0 * order),
            text(case.features_text),
        ),
        surrogate=_quantity(
            "s surrogate",
            sizes,
            surrogate,
            np.sqrt(sizes) * np.log(16.0 * order),
            "n^(1/2) log d",
        ),
    )


def _quantity(name, sizes, values, order, text):
    late = sizes * 100 >= sizes[-1]

    def slope(y):
        return float(np.polyfit(np.log(sizes[late]), np.log(y[late]), 1)[0])

    anchored = order * (values[-1] / order[-1])
    return Quantity(name, values, slope(values), slope(order), text, anchored)


# -- rendering -------------------------------------------------------------------------

#: What the table shows.
CAPTION: str = REGISTRY["captions"]["table3"]["text"].format(delta=DELTA)


def _order(decay, quantity):
    printed = PRINTED_ORDERS.get((decay, quantity.name))
    return f"{quantity.order} (print: {printed})" if printed else quantity.order


def _power(n):
    decade = round(math.log10(n))
    return f"1e{decade}" if n == 10**decade else str(n)


def table3_report(rows: Sequence[DecayRow]) -> Report:
    """Table, numbers and picture.

    Parameters
    ----------
    rows : list of DecayRow

    Returns
    -------
    Report
        ``table3.md``, ``.tex``, ``.csv``, ``.png`` and ``.svg``. The sizes in the table
        are the full decades, or all if there are few.
    """
    sizes = rows[0].sizes
    shown = [i for i, n in enumerate(sizes) if math.log10(n) % 1 == 0]
    if len(shown) < 2:
        shown = list(range(len(sizes)))
    header = ["mu_i", "", *(f"n = {_power(sizes[i])}" for i in shown)]
    body, numbers = [], []
    for row in rows:
        for k, quantity in enumerate((row.dof, row.leverage, row.surrogate)):
            digits = ".1f" if k == 0 else ".0f"
            body.append(
                [
                    row.eigenvalues if k == 0 else "",
                    quantity.name,
                    *(f"{quantity.values[i]:{digits}}" for i in shown),
                    f"{quantity.slope:.3f}",
                    f"{quantity.theory_slope:.3f}",
                    _order(row.name, quantity),
                ]
            )
            slopes = quantity.slope, quantity.theory_slope
            for n, value in zip(sizes, quantity.values, strict=True):
                numbers.append([row.name, quantity.name, n, f"{value:.8g}", *slopes])
    return Report(
        "table3",
        "Table 3, eigenvalue decay",
        [
            Table(
                [*header, "slope", "theory", "order"],
                body,
                "Features needed as n grows, by decay of the eigenvalues of K / n",
                section=3,
                n_labels=2,
            )
        ],
        [CAPTION],
        Table(
            ["decay", "quantity", "n", "value", "slope", "theory_slope"],
            numbers,
        ),
        latex="table3",
        figures={"table3": partial(decay_figure, rows, CAPTION)},
    )
