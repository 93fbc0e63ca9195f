"""From probabilities of candidates to those kept, and their weights."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

__all__ = [
    "RESAMPLERS",
    "mixture",
    "without_replacement",
]


def multinomial(
    probabilities: np.ndarray, n_frequencies: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    r"""Draw with replacement, as Algorithm 1 does.

    Parameters
    ----------
    probabilities : ndarray of shape (n_candidates,)
        :math:`q_i`, summing to 1.
    n_frequencies : int
        Draws s.
    rng : numpy.random.Generator

    Returns
    -------
    indices : ndarray of int, shape (n_frequencies,)
        Candidates drawn, ascending; a candidate drawn twice appears twice.
    importance_weights : ndarray of shape (n_frequencies,)
        :math:`1 / (l q_i)`.
    """
    indices = np.sort(
        rng.choice(len(probabilities), size=n_frequencies, p=probabilities)
    )
    return indices, 1.0 / (len(probabilities) * probabilities[indices])


def without_replacement(
    probabilities: np.ndarray, n_frequencies: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    r"""Draw distinct candidates by systematic sampling with unequal probabilities.

    Candidate i is kept with probability :math:`\pi_i = \min(1, c\, q_i)`, with ``c``
    such that the :math:`\pi_i` sum to ``s``, and carries the weight
    :math:`s / (l \pi_i)`: the estimate of the pool's kernel is exactly unbiased.

    The parameters and the result are as for `multinomial`, without repetition.

    References
    ----------
    .. [1] W. G. Madow, "On the Theory of Systematic Sampling, II", Annals of
       Mathematical Statistics 20, 1949.
    """
    n_candidates = len(probabilities)
    inclusion = inclusion_probabilities(probabilities, n_frequencies)
    order = rng.permutation(n_candidates)
    edges = np.cumsum(inclusion[order])
    edges *= n_frequencies / edges[-1]
    ticks = rng.uniform() + np.arange(n_frequencies)
    indices = np.sort(order[np.searchsorted(edges, ticks, side="right")])
    return indices, n_frequencies / (n_candidates * inclusion[indices])


def inclusion_probabilities(probabilities, n_frequencies):
    """Probabilities ``min(1, c q)`` that sum to ``n_frequencies``."""
    if np.count_nonzero(probabilities) < n_frequencies:
        raise ValueError(
            f"n_candidates leaves {np.count_nonzero(probabilities)} candidates with a "
            f"positive score, and {n_frequencies} distinct frequencies are to be kept; "
            "increase n_candidates or use resample='multinomial'."
        )
    # Sorted by decreasing q the first few are certain; the rest share what is left.
    order = np.argsort(-probabilities, kind="stable")
    q = probabilities[order]
    rest = np.cumsum(q[::-1])[::-1]
    certain = np.arange(len(q))
    shares = (n_frequencies - certain) * q
    n_certain = int(np.argmax(shares <= rest))  # at most n_frequencies - 1
    inclusion = np.ones(len(q))
    inclusion[n_certain:] = (
        (n_frequencies - n_certain) * q[n_certain:] / rest[n_certain]
    )
    result = np.empty(len(q))
    result[order] = inclusion.clip(max=1.0)
    return result


def reweight(
    probabilities: np.ndarray,
    n_frequencies: int,
    rng: np.random.Generator | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    r"""Keep the whole pool and weight it by :math:`1 / (l q_i)`.

    The paper's printed table used it. It needs as many candidates as frequencies, and
    the result is not an estimate of the pool's kernel but another kernel.
    """
    del rng  # nothing is drawn
    n_candidates = len(probabilities)
    if n_candidates != n_frequencies:
        raise ValueError(
            "resample='reweight' keeps every candidate: n_candidates must be 1.0 or "
            f"{n_frequencies}, got {n_candidates} candidates."
        )
    # A score of zero would make the weight infinite: lift it to rounding level.
    floor = np.finfo(np.float64).eps * probabilities.max()
    weights = 1.0 / (n_candidates * np.maximum(probabilities, floor))
    return np.arange(n_candidates), weights


#: Ways from probabilities to kept candidates, by their names in ``resample``.
RESAMPLERS: dict[str, Callable[..., tuple[np.ndarray, np.ndarray]]] = {
    "multinomial": multinomial,
    "without_replacement": without_replacement,
    "reweight": reweight,
}


def mixture(
    coefficients: np.ndarray, n_frequencies: int
) -> tuple[np.ndarray, np.ndarray]:
    r"""Keep the candidates of a kernel :math:`\sum_j c_j \cos w_j^\top (x - x')`.

    Parameters
    ----------
    coefficients : ndarray of shape (n_candidates,)
        :math:`c_j \ge 0`, at most ``n_frequencies`` of them above zero.
    n_frequencies : int
        Frequencies s of the map.

    Returns
    -------
    indices : ndarray of int, shape (n_frequencies,)
        Candidates, ascending: those above zero, then the first of the others until the
        map has its number of columns.
    importance_weights : ndarray of shape (n_frequencies,)
        :math:`s\, c_j`: the map's kernel is the mixture. Zero for the candidates
        filled in, whose columns are zero.
    """
    order = np.argsort(coefficients == 0, kind="stable")
    indices = np.sort(order[:n_frequencies])
    return indices, n_frequencies * coefficients[indices]
