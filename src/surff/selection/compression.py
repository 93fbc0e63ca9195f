r"""Few weighted candidates whose kernel is close to that of a whole pool.

Candidate j is the vector :math:`r_j` of :math:`\cos w_j^\top (x - x')` over pairs of
rows, and the pool's kernel the vector :math:`r = \frac1l \sum_j r_j`. Wanted are
:math:`c \ge 0` with few entries above zero and small :math:`\|r - \sum_j c_j r_j\|`.
The greedy algorithms need the inner products of the vectors alone, an ``(l, l)``
matrix. Over all pairs of rows it follows from the features' Gram matrix: with the
columns :math:`c_j, s_j` of cosines and sines

.. math:: r_j^\top r_k = (c_j^\top c_k)^2 + (c_j^\top s_k)^2 + (s_j^\top c_k)^2
          + (s_j^\top s_k)^2 ,

and over sampled pairs it is a sum over these. No vector is ever stored.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from surff.backend import Array, rows_of, summed
from surff.kernels import FourierMap
from surff.linear import NormalEquations, accumulate
from surff.selection.base import PoolSelector, check_name, check_sample_size
from surff.selection.resampling import mixture

__all__ = [
    "COMPRESSORS",
    "Compression",
    "all_pairs_gram",
    "frank_wolfe",
    "giga",
    "pool_equations",
    "sampled_pairs_gram",
]

#: Most steps of the greedy algorithms, per candidate to keep: weights settle in a few.
STEPS = 10

#: Relative gain below which a step is only rounding; a hundred times that of float64.
ROUNDING = 1e-14


def pool_equations(
    frequencies: np.ndarray, X: Array, sample_weight: np.ndarray | None = None
) -> NormalEquations:
    """Normal equations of the candidates' columns, without targets.

    Parameters
    ----------
    frequencies, X, sample_weight
        See `all_pairs_gram`.

    Returns
    -------
    NormalEquations
    """
    return summed(partial(_without_targets, frequencies), X, None, sample_weight)


def _without_targets(frequencies, X, Y, sample_weight):
    del Y  # None; the sums over rows on workers pass one
    no_target = np.zeros((X.shape[0], 0))
    return accumulate(FourierMap(frequencies), X, no_target, sample_weight)


def all_pairs_gram(
    frequencies: np.ndarray, X: Array, sample_weight: np.ndarray | None = None
) -> np.ndarray:
    r"""Mean of :math:`\cos w_j^\top \delta \cos w_k^\top \delta` over all pairs.

    Parameters
    ----------
    frequencies : ndarray of shape (n_candidates, n_features)
        Candidates, radians per unit of ``X``; same dtype as ``X``.
    X : ndarray, CSR matrix or WorkerRows of shape (n_samples, n_features)
        Rows; the pairs are all ordered ones, a row and itself included.
    sample_weight : ndarray of shape (n_samples,), optional
        Row weights: a pair has the product of its rows'.

    Returns
    -------
    gram : ndarray of shape (n_candidates, n_candidates), float64

    Notes
    -----
    ``O(n l^2)`` time for n rows, not pairs, and ``O(l^2)`` memory.

    Examples
    --------
    >>> import numpy as np
    >>> frequencies, X = np.array([[np.pi], [2 * np.pi]]), np.array([[0.0], [1.0]])
    >>> all_pairs_gram(frequencies, X).round(12) + 0.0
    array([[1., 0.],
           [0., 1.]])
    """
    n_candidates = len(frequencies)
    equations = pool_equations(frequencies, X, sample_weight)
    square = equations.gram
    square *= n_candidates / equations.weight_sum  # the columns carry 1 / sqrt(l)
    np.square(square, out=square)
    cosines, sines = slice(None, n_candidates), slice(n_candidates, None)
    mixed = square[cosines, sines]
    upper = np.triu(square[cosines, cosines] + square[sines, sines] + mixed + mixed.T)
    return _symmetric(upper)


def sampled_pairs_gram(
    frequencies: np.ndarray,
    X: Array,
    n_pairs: int,
    rng: np.random.Generator,
    sample_weight: np.ndarray | None = None,
) -> np.ndarray:
    r"""Mean of :math:`\cos w_j^\top \delta \cos w_k^\top \delta` over sampled pairs.

    Parameters
    ----------
    frequencies : ndarray of shape (n_candidates, n_features)
        Candidates, radians per unit of ``X``; same dtype as ``X``.
    X : ndarray or CSR matrix of shape (n_samples, n_features)
        Rows.
    n_pairs : int
        Pairs, drawn with replacement; both rows are drawn from all of them.
    rng : numpy.random.Generator
    sample_weight : ndarray of shape (n_samples,), optional
        Row weights: a row of weight w is drawn as often as w rows, and by the same
        state of ``rng``.

    Returns
    -------
    gram : ndarray of shape (n_candidates, n_candidates), float64
        An unbiased estimate of `all_pairs_gram`.

    Notes
    -----
    ``O(n_pairs l^2)`` time and ``O(l^2 + n_pairs d)`` memory.
    """
    weight = np.ones(X.shape[0]) if sample_weight is None else sample_weight
    edges = np.cumsum(weight, dtype=np.float64)
    ticks = rng.uniform(0.0, edges[-1], size=(2, n_pairs))
    last = np.flatnonzero(weight)[-1]  # rounding may reach the last edge
    left, right = np.minimum(np.searchsorted(edges, ticks, side="right"), last)
    differences = rows_of(X, left) - rows_of(X, right)
    equations = accumulate(_CosineMap(frequencies), differences, np.zeros((n_pairs, 0)))
    return _symmetric(np.triu(equations.gram) / n_pairs)


class _CosineMap:
    """The cosines of a `FourierMap` alone, without its 1 / sqrt(s)."""

    def __init__(self, frequencies):
        n_frequencies = len(frequencies)
        amplitudes = np.full(n_frequencies, np.sqrt(n_frequencies))
        self._pairs = FourierMap(frequencies, amplitudes)
        self.dtype, self.n_components = self._pairs.dtype, n_frequencies

    def __call__(self, X, out=None):
        if out is None:
            out = np.empty((X.shape[0], self.n_components), self.dtype)
        out[...] = self._pairs(X)[:, : self.n_components]
        return out


def _symmetric(upper):
    """The symmetric matrix of an upper triangle."""
    return upper + np.triu(upper, 1).T


def _normalised(gram):
    """Norms, and inner products of unit vectors among them and with the target."""
    norms = np.sqrt(np.einsum("ii->i", gram))
    norms[norms == 0] = np.inf  # a zero vector is never chosen
    unit = gram / norms / norms[:, None]
    target = gram.mean(axis=1) / norms
    return norms, unit, target


def _open(mass, n_kept):
    """Candidates that a step may go to: all, or those kept once they are enough."""
    kept = mass > 0
    return kept if np.count_nonzero(kept) >= n_kept else np.ones(len(mass), bool)


def frank_wolfe(
    gram: np.ndarray, n_kept: int, n_steps: int | None = None
) -> np.ndarray:
    r"""Compress by Frank-Wolfe steps towards the pool's kernel.

    Minimises :math:`\|r - \sum_j c_j r_j\|` over the polytope :math:`c \ge 0,\,
    \sum_j c_j \|r_j\| = \frac1l \sum_j \|r_j\|`, one vertex per step, with exact line
    search.

    Parameters
    ----------
    gram : ndarray of shape (n_candidates, n_candidates)
        Inner products :math:`r_j^\top r_k`.
    n_kept : int
        Most entries of the result above zero.
    n_steps : int, optional
        Most steps, ``STEPS * n_kept`` by default.

    Returns
    -------
    coefficients : ndarray of shape (n_candidates,)
        :math:`c_j \ge 0`.

    Notes
    -----
    ``O(l)`` time per step and a copy of ``gram``. The paper takes ``n_kept`` steps.
    Here steps go on until that many candidates have weight, and the remaining steps go
    to these candidates. They fit the weights, about as well as non-negative least
    squares would.

    References
    ----------
    .. [1] R. Agrawal, T. Campbell, J. Huggins, T. Broderick, "Data-dependent
       compression of random features for large-scale kernel approximation",
       AISTATS 2019.

    Examples
    --------
    >>> import numpy as np
    >>> frank_wolfe(np.eye(2), n_kept=2)
    array([0.5, 0.5])
    """
    norms, unit, target = _normalised(gram)
    finite = np.isfinite(norms)
    radius = norms[finite].sum() / len(gram)
    best = int(target.argmax())
    mass = np.zeros(len(gram))  # c_j |r_j|
    mass[best] = radius
    products = radius * unit[best]  # of the unit vectors with the approximation
    for _ in range(1, STEPS * n_kept if n_steps is None else n_steps):
        best = int(np.where(_open(mass, n_kept), target - products, -np.inf).argmax())
        gain = radius * (target - products)[best] - mass @ (target - products)
        length = radius**2 - 2 * radius * products[best] + mass @ products
        if gain <= ROUNDING * radius**2 or length <= 0:
            break
        step = min(gain / length, 1.0)
        mass *= 1.0 - step
        mass[best] += step * radius
        products += step * (radius * unit[best] - products)
    return mass / norms


def giga(gram: np.ndarray, n_kept: int, n_steps: int | None = None) -> np.ndarray:
    r"""Compress by greedy iterative geodesic ascent.

    Maximises the cosine of the angle between :math:`r` and :math:`\sum_j c_j r_j`, each
    step along the geodesic of the sphere towards the candidate whose direction is best,
    to its nearest point; the length is then the optimal one.

    The parameters, the result and the cost are as for `frank_wolfe`.

    References
    ----------
    .. [1] R. Agrawal, T. Campbell, J. Huggins, T. Broderick, "Data-dependent
       compression of random features for large-scale kernel approximation",
       AISTATS 2019.
    .. [2] T. Campbell, T. Broderick, "Bayesian Coreset Construction via Greedy
       Iterative Geodesic Ascent", ICML 2018.

    Examples
    --------
    >>> import numpy as np
    >>> giga(np.eye(2), n_kept=2).round(12)
    array([0.5, 0.5])
    """
    norms, unit, target = _normalised(gram)
    length = np.sqrt(gram.mean())
    target /= length
    best = int(target.argmax())
    mass = np.zeros(len(gram))  # of unit vectors
    mass[best] = 1.0
    products = unit[best].copy()
    for _ in range(1, STEPS * n_kept if n_steps is None else n_steps):
        cosine = mass @ target
        gains = target - cosine * products
        sine = np.sqrt(np.maximum(1.0 - products**2, 0.0))
        scores = np.divide(
            gains,
            sine,
            out=np.full(len(gram), -np.inf),
            where=_open(mass, n_kept) & (sine > 1e-7),
        )
        best = int(scores.argmax())
        gain = gains[best]
        loss = cosine - target[best] * products[best]
        if scores[best] <= 0 or gain <= ROUNDING or loss < 0:
            break
        step = gain / (gain + loss)
        mass *= 1.0 - step
        mass[best] += step
        products += step * (unit[best] - products)
        norm = np.sqrt(mass @ products)
        mass /= norm
        products /= norm
    return length * (mass @ target) * mass / norms


#: Algorithms that compress a pool, by their names in ``method``.
COMPRESSORS = {"giga": giga, "frank-wolfe": frank_wolfe}


class Compression(PoolSelector):
    r"""Compress a pool to few weighted frequencies that keep its kernel.

    Greedy steps choose at most s candidates and weights :math:`\ge 0` so that
    :math:`\frac1s \sum_i a_i \cos w_i^\top (x - x')` is close to the pool's kernel in
    the mean square over pairs of rows; see the module. Uses X, not y.

    Parameters
    ----------
    method : {"giga", "frank-wolfe"}, default="giga"
        Greedy algorithm; a key of `surff.selection.COMPRESSORS`. "giga" is closer
        for few frequencies, "frank-wolfe" keeps the weights' sum near that of the
        kernel, 1.
    n_candidates : int or float, default=4.0
        Pool size l: a number of candidates, or a multiple of the frequencies kept. The
        error of the pool adds to the error of the compression.
    n_pairs : int or None, default=None
        Pairs of rows on which kernels are compared, drawn with replacement as in the
        paper. None takes all, at the cost of ``n_pairs=n``; they are never formed.

    Notes
    -----
    ``O((n + s) l^2)`` time and ``O(l^2)`` memory, with ``n_pairs``
    ``O((n_pairs + s) l^2)`` and ``O(l^2 + n_pairs d)``; the paper's form stores a value
    for each candidate and pair.

    Where fewer than s candidates come out, the map is filled with frequencies of weight
    0, whose columns are zero. The importance weights are not :math:`p / q`: the
    selection is not an unbiased estimate but an approximation of the pool's kernel.

    References
    ----------
    .. [1] R. Agrawal, T. Campbell, J. Huggins, T. Broderick, "Data-dependent
       compression of random features for large-scale kernel approximation",
       AISTATS 2019.
    """

    needs_target = False

    def __init__(
        self,
        method: str = "giga",
        n_candidates: int | float = 4.0,
        n_pairs: int | None = None,
    ):
        self.method = method
        self.n_candidates = n_candidates
        self.n_pairs = n_pairs

    def _check(self):
        check_name("method", self.method, COMPRESSORS)
        check_sample_size("n_pairs", self.n_pairs)

    def _choose(self, pool, X, Y, n_frequencies, rng, sample_weight):
        del Y  # the kernel does not depend on it
        if self.n_pairs is None:
            gram = all_pairs_gram(pool, X, sample_weight)
        else:
            gram = sampled_pairs_gram(pool, X, self.n_pairs, rng, sample_weight)
        return mixture(COMPRESSORS[self.method](gram, n_frequencies), n_frequencies)
