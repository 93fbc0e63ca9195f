r"""Gauss-Hermite frequencies: nodes of a quadrature of the Gaussian measure.

In one dimension L nodes :math:`t_i` with weights :math:`A_i` integrate polynomials up
to degree 2 L - 1 against the standard normal law exactly. The dense grid has L^d
nodes, of which some are drawn; the sparse grid of Smolyak combines small grids,

.. math:: \sum_{q = L - d}^{L - 1} (-1)^{L - 1 - q} \binom{d - 1}{L - 1 - q}
          \sum_{|i|_1 = d + q} Q_{i_1} \otimes \dots \otimes Q_{i_d},

with far fewer nodes and the same total degree, but negative weights among them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import nnls
from scipy.special import roots_hermitenorm
from sklearn.base import BaseEstimator

from surff.draws.base import WeightedFrequencies, split_weights
from surff.kernels import Gaussian, SpectralMeasure, open_uniform

__all__ = [
    "GaussHermite",
    "Reweighted",
    "SparseGrid",
    "nonnegative_weights",
    "sparse_grid",
]

#: Finest one-dimensional rule of a sparse grid; a finer one adds nodes that weigh
#: less than rounding.
LARGEST_LEVEL = 40


def normal_rule(n_nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights, summing to one, for the standard normal law."""
    nodes, weights = roots_hermitenorm(n_nodes)
    return nodes, weights / weights.sum()


class GaussHermite(BaseEstimator):
    r"""Nodes of the dense Gauss-Hermite grid, drawn by their weights.

    Every coordinate is a node drawn with its weight as probability, so the frequencies
    count alike. For isotropic measures other than the Gaussian each row is multiplied
    by a mixing variable.

    Parameters
    ----------
    n_nodes : int, default=32
        Nodes L per coordinate, >= 1.

    Notes
    -----
    The mean of the estimate is the product of the one-dimensional rules. It follows the
    Gaussian kernel while :math:`\sqrt{2 \gamma} |x_j - x'_j|` stays below about
    :math:`\sqrt L`, and does not vanish at infinity, since the nodes are a lattice of
    a kind. With L growing this is plain Monte Carlo, whose variance it has already.

    References
    ----------
    .. [1] T. Dao, C. De Sa, C. Re, "Gaussian Quadrature for Kernel Features", NIPS
       2017.
    """

    def __init__(self, n_nodes: int = 32) -> None:
        self.n_nodes = n_nodes

    def draw(
        self,
        measure: SpectralMeasure,
        n_frequencies: int,
        n_features: int,
        rng: np.random.Generator,
    ) -> np.ndarray:
        """Draw ``n_frequencies`` rows for ``gamma = 1``."""
        n_nodes = self.n_nodes
        if not isinstance(n_nodes, (int, np.integer)) or n_nodes < 1:
            raise ValueError(f"n_nodes must be an int of at least 1, got {n_nodes!r}.")
        nodes, weights = normal_rule(n_nodes)
        n_mixing = measure.n_mixing
        U = open_uniform(rng, (n_frequencies, n_features + n_mixing))
        tau = measure.mixing(U[:, n_features:])
        index = np.searchsorted(np.cumsum(weights)[:-1], U[:, :n_features])
        return np.sqrt(2.0 * tau)[:, None] * nodes[index]


class SparseGrid(BaseEstimator):
    """Nodes of the Smolyak sparse grid, for the Gaussian kernel.

    The finest grid that has at most ``n_frequencies`` nodes is taken, a node and its
    opposite being one frequency; frequencies left over are zero with weight zero.
    Nothing is random about the nodes.

    Parameters
    ----------
    signed : bool, default=False
        True keeps the weights of the rule, some of which are negative: no real feature
        map can carry them, see `surff.kernels.kernel_estimate`. False replaces them by
        non-negative ones, as `Reweighted` does.

    Notes
    -----
    Degree 3 needs ``n_features + 1`` frequencies, degree 5 of the order of
    ``n_features**2``. Raises TypeError for measures other than
    `surff.kernels.Gaussian`. The rows of a longer draw do not extend a shorter one.

    References
    ----------
    .. [1] S. A. Smolyak, "Quadrature and Interpolation Formulas for Tensor Products of
       Certain Classes of Functions", Soviet Mathematics Doklady 4, 1963.
    .. [2] F. Heiss, V. Winschel, "Likelihood Approximation by Numerical Integration on
       Sparse Grids", Journal of Econometrics 144, 2008.
    .. [3] T. Dao, C. De Sa, C. Re, "Gaussian Quadrature for Kernel Features", NIPS
       2017.
    """

    def __init__(self, signed: bool = False) -> None:
        self.signed = signed

    def draw(
        self,
        measure: SpectralMeasure,
        n_frequencies: int,
        n_features: int,
        rng: np.random.Generator,
    ) -> WeightedFrequencies:
        """Draw `WeightedFrequencies` with ``n_frequencies`` rows for ``gamma = 1``."""
        if not isinstance(measure, Gaussian):
            raise TypeError(
                "draw='sparse_grid' is a rule for the Gaussian measure, got "
                f"{type(measure).__name__}; use draw='sobol'."
            )
        if n_frequencies < n_features + 1:
            raise ValueError(
                f"draw='sparse_grid' needs at least {n_features + 1} frequencies for "
                f"{n_features} features, got {n_frequencies}; use draw='monte_carlo'."
            )
        nodes, rule = largest_sparse_grid(n_frequencies, n_features)
        if not self.signed:
            # Nodes far out that hardly weigh make the fit slow and no better.
            nodes = nodes[abs(rule) > 1e-4]
            differences = typical_differences(rng, 4 * len(nodes), n_features)
            rule = nonnegative_weights(measure, math.sqrt(2.0) * nodes, differences)
        frequencies = np.zeros((n_frequencies, n_features))
        frequencies[: len(nodes)] = math.sqrt(2.0) * nodes
        weights = np.zeros(n_frequencies)
        weights[: len(nodes)] = n_frequencies * rule
        return WeightedFrequencies(frequencies, weights)


def largest_sparse_grid(n_nodes: int, n_features: int) -> tuple[np.ndarray, np.ndarray]:
    """The finest `sparse_grid` of at most ``n_nodes`` nodes, at least of level 2."""
    grid = sparse_grid(2, n_features)
    for level in range(3, LARGEST_LEVEL + 1):
        # Each index of the last sum has a node that no other has.
        if math.comb(level + n_features - 2, n_features - 1) > n_nodes:
            break
        finer = sparse_grid(level, n_features)
        if len(finer[0]) > n_nodes:
            break
        grid = finer
    return grid


def sparse_grid(level: int, n_features: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights of Smolyak's rule for the normal law and even functions.

    Parameters
    ----------
    level : int
        L >= 1: the rule is exact for polynomials of total degree 2 L - 1.
    n_features : int
        Dimension d.

    Returns
    -------
    nodes : ndarray of shape (n_nodes, n_features)
        One of each pair of opposite nodes, by ascending norm.
    weights : ndarray of shape (n_nodes,)
        They sum to one; some are negative.

    Examples
    --------
    >>> nodes, weights = sparse_grid(2, 3)
    >>> nodes + 0.0
    array([[0., 0., 0.],
           [0., 0., 1.],
           [0., 1., 0.],
           [1., 0., 0.]])
    >>> weights
    array([-2.,  1.,  1.,  1.])
    """
    rules = [None, *(normal_rule(n) for n in range(1, level + 1))]
    nodes, weights = [], []
    for q in range(max(0, level - n_features), level):
        coefficient = (-1) ** (level - 1 - q) * math.comb(n_features - 1, level - 1 - q)
        for columns, excesses in sparse_indices(q, n_features):
            parts = [rules[1 + excess] for excess in excesses]
            points = np.array(list(itertools.product(*(part[0] for part in parts))))
            block = np.zeros((len(points), n_features))
            block[:, columns] = points
            nodes.append(block)
            products = itertools.product(*(part[1] for part in parts))
            weights.append([coefficient * math.prod(factors) for factors in products])
    nodes, weights = np.concatenate(nodes), np.concatenate(weights)

    # A node and its opposite have the same cosine: the first coordinate that is not
    # zero is made positive.
    nodes = nodes.round(12) + 0.0
    leading = np.take_along_axis(nodes, np.argmax(nodes != 0, axis=1)[:, None], axis=1)
    nodes = np.where(leading < 0, -nodes, nodes) + 0.0
    nodes, inverse = np.unique(nodes, axis=0, return_inverse=True)
    weights = np.bincount(inverse.ravel(), weights=weights, minlength=len(nodes))
    order = np.argsort(np.linalg.norm(nodes, axis=1).round(9), kind="stable")
    return nodes[order], weights[order]


def sparse_indices(
    total: int, n_features: int
) -> Iterator[tuple[list[int], list[int]]]:
    """Yield the columns and entries of vectors of counts that sum to ``total``.

    Only entries above zero are listed: there are at most ``total`` of them.
    """
    if total == 0:
        yield [], []
    for n_columns in range(1, min(total, n_features) + 1):
        for columns in itertools.combinations(range(n_features), n_columns):
            for cuts in itertools.combinations(range(1, total), n_columns - 1):
                edges = (0, *cuts, total)
                yield list(columns), [b - a for a, b in itertools.pairwise(edges)]


class Reweighted(BaseEstimator):
    """Another draw's frequencies with weights fitted to the kernel on sampled pairs.

    Non-negative least squares on differences of rows. Some weights come out zero.

    Parameters
    ----------
    base : draw object, optional
        Whose frequencies to take, whatever weights it gives; `GaussHermite()` by
        default.
    differences : array of shape (n_pairs, n_features), optional
        Differences ``x - x'`` of rows, multiplied by ``measure.scale(gamma)``. By
        default four normal ones per frequency, of the size that standardised columns
        have under ``gamma="scale"``.

    Notes
    -----
    The kernel is fitted where the differences lie and not beyond; the estimate is
    biased. ``O(n_pairs * n_frequencies)`` memory, and of the order of ``n_pairs *
    n_frequencies**2`` time or more: for up to about a thousand frequencies. The weights
    of a longer draw are not those of a shorter one.

    References
    ----------
    .. [1] T. Dao, C. De Sa, C. Re, "Gaussian Quadrature for Kernel Features", NIPS
       2017.
    """

    def __init__(
        self, base: Any = None, differences: npt.ArrayLike | None = None
    ) -> None:
        self.base = base
        self.differences = differences

    def draw(
        self,
        measure: SpectralMeasure,
        n_frequencies: int,
        n_features: int,
        rng: np.random.Generator,
    ) -> WeightedFrequencies:
        """Draw `WeightedFrequencies` with ``n_frequencies`` rows for ``gamma = 1``."""
        (pair_rng,) = rng.spawn(1)
        base = GaussHermite() if self.base is None else self.base
        frequencies, _ = split_weights(
            base.draw(measure, n_frequencies, n_features, rng)
        )
        if self.differences is None:
            differences = typical_differences(pair_rng, 4 * n_frequencies, n_features)
        else:
            differences = np.asarray(self.differences, dtype=np.float64)
            if differences.ndim != 2 or differences.shape[1] != n_features:
                raise ValueError(
                    f"differences must have shape (n_pairs, {n_features}), got "
                    f"{differences.shape}."
                )
        coefficients = nonnegative_weights(measure, frequencies, differences)
        return WeightedFrequencies(frequencies, n_frequencies * coefficients)


def typical_differences(
    rng: np.random.Generator, n_pairs: int, n_features: int
) -> np.ndarray:
    """Scaled differences of rows of standard normal columns under gamma="scale"."""
    return rng.standard_normal((n_pairs, n_features)) * math.sqrt(2.0 / n_features)


def nonnegative_weights(
    measure: SpectralMeasure, frequencies: npt.ArrayLike, differences: np.ndarray
) -> np.ndarray:
    r"""Weights :math:`a \ge 0` that fit the kernel on given differences.

    Minimises :math:`\sum_p \bigl(k(\delta_p) - \sum_i a_i \cos w_i^\top
    \delta_p\bigr)^2` with the difference zero among the :math:`\delta_p`, as often as
    all others together.

    Parameters
    ----------
    measure : SpectralMeasure
        Gives the kernel.
    frequencies : array of shape (n_frequencies, n_features)
        For gamma = 1.
    differences : ndarray of shape (n_pairs, n_features)
        For gamma = 1.

    Returns
    -------
    weights : ndarray of shape (n_frequencies,)
        Summing to about one.
    """
    A = np.cos(differences @ np.asarray(frequencies).T)
    k = measure.kernel(differences, np.zeros((1, differences.shape[1])))[:, 0]
    n_pairs, n_frequencies = A.shape
    often = math.sqrt(n_pairs)
    # Columns of close frequencies are dependent to rounding, and the active set would
    # cycle: a ridge far below the error of the fit makes the solution unique.
    ridge = 1e-4 * often * np.eye(n_frequencies)
    A = np.vstack([A, np.full(n_frequencies, often), ridge])
    target = np.concatenate([k, [often], np.zeros(n_frequencies)])
    return nnls(A, target, maxiter=30 * n_frequencies)[0]
