r"""Columns that a fit hardly uses, and how they shrink.

The diagonal of the average gradient outer product says how much the fitted function
changes along each column (`surff.adaptation.agop`). Along a column that carries nothing
about the target every frequency learns noise, and more frequencies learn more of it. So
all frequencies share what is known about a column, in two ways:

- a decay between steps, group by group (decoupled from the gradient): the root mean
  square :math:`\nu_c` of the frequencies along column c loses a bounded length,

  .. math:: w_{jc} \leftarrow w_{jc} \max\Bigl(0, 1 - \frac{\ell_c}{\nu_c}\Bigr),
            \qquad \ell_c = \ell\, \frac{\tau}{\tau + r_c} ,

  nearly none where the relevance :math:`r_c`, in means over the columns, is large;
- a trial at every score: all frequencies along column c times
  :math:`r_c / (r_c + \epsilon \max r)`, kept where the rows held out see an
  improvement.

Both have no effect on columns that matter, and take one that does not to zero.
"""

from __future__ import annotations

import numpy as np

from surff.adaptation.agop import average_gradient_outer_product
from surff.adaptation.problem import Score

__all__ = [
    "column_relevance",
    "decayed_columns",
    "has_idle_columns",
    "shrunk_columns",
]

#: Relevance, in means over the columns, at which a column decays at half the rate.
HALF_DECAY = 0.1

#: Share of the largest relevance at which a trial halves a column.
HALF_SHRUNK = 0.01

#: Share of the largest relevance from which on a trial would change a column by less
#: than a tenth, and is not worth a score.
IDLE = 0.1


def column_relevance(frequencies: np.ndarray, score: Score) -> np.ndarray:
    """Mean square slope of the fit along each column, in means over the columns.

    Parameters
    ----------
    frequencies : ndarray of shape (n_frequencies, n_features)
        Those that were scored.
    score : Score
        Their score.

    Returns
    -------
    relevance : ndarray of shape (n_features,)
        At least 0; all ones for a fit without a slope.
    """
    M = average_gradient_outer_product(
        frequencies,
        score.coef,
        score.equations.gram,
        score.equations.weight_sum,
        diagonal=True,
    ).clip(min=0.0)
    if not np.isfinite(M).all() or not M.any():
        return np.ones(len(M))
    return M / M.mean()


def has_idle_columns(relevance: np.ndarray) -> bool:
    """Whether a column is worth a trial of `shrunk_columns`."""
    return bool((relevance < IDLE * relevance.max()).any())


def decayed_columns(
    frequencies: np.ndarray, relevance: np.ndarray, length: float
) -> np.ndarray:
    """Frequencies whose columns have lost up to ``length``, the relevant ones less.

    Parameters
    ----------
    frequencies : ndarray of shape (n_frequencies, n_features)
    relevance : ndarray of shape (n_features,)
        See `column_relevance`.
    length : float
        Largest loss of a column's root mean square, >= 0.

    Examples
    --------
    >>> import numpy as np
    >>> W = np.array([[1.0, 1.0], [-1.0, 0.05]])
    >>> decayed_columns(W, np.array([2.0, 0.0]), 0.1).round(3)
    array([[ 0.995,  0.859],
           [-0.995,  0.043]])
    """
    size = np.sqrt(np.mean(frequencies**2, axis=0))
    loss = length * HALF_DECAY / (HALF_DECAY + relevance)
    left = 1.0 - loss / np.where(size > 0, size, 1.0)
    return frequencies * left.clip(min=0.0)


def shrunk_columns(frequencies: np.ndarray, relevance: np.ndarray) -> np.ndarray:
    """Frequencies along irrelevant columns shrunk, along the others as they were.

    Parameters
    ----------
    frequencies : ndarray of shape (n_frequencies, n_features)
    relevance : ndarray of shape (n_features,)
        See `column_relevance`.

    Examples
    --------
    >>> import numpy as np
    >>> shrunk_columns(np.ones((1, 3)), np.array([2.0, 0.02, 0.0])).round(2)
    array([[0.99, 0.5 , 0.  ]])
    """
    return frequencies * (relevance / (relevance + HALF_SHRUNK * relevance.max()))
