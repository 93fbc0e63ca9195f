r"""Average gradient outer product of a function on random Fourier features.

For :math:`f_k(x) = \frac{1}{\sqrt s} \sum_j \beta^{\cos}_{jk} \cos w_j^\top x +
\beta^{\sin}_{jk} \sin w_j^\top x` the gradient is a sum of frequencies,

.. math:: \nabla f_k(x) = W^\top u_k(x), \qquad
          u_{jk} = \tfrac{1}{\sqrt s} (\beta^{\sin}_{jk} \cos w_j^\top x
          - \beta^{\cos}_{jk} \sin w_j^\top x),

so the average of :math:`\sum_k \nabla f_k \nabla f_k^\top` over the rows needs only the
averages of products of features, which the Gram matrix of the fit already holds: no
further pass over the data.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from surff.adaptation.problem import (
    Found,
    InnerAdaptation,
    InnerProblem,
    checked_count,
    held_out_error,
)
from surff.backend import positive, report, time_is_up

__all__ = [
    "AgopAdaptation",
    "average_gradient_outer_product",
    "root_transform",
]


def average_gradient_outer_product(
    frequencies: np.ndarray,
    coef: np.ndarray,
    gram: np.ndarray,
    weight_sum: float,
    diagonal: bool = False,
) -> np.ndarray:
    r"""Closed form of :math:`M = \frac1n \sum_i \sum_k \nabla f_k \nabla f_k^\top`.

    Parameters
    ----------
    frequencies : ndarray of shape (n_frequencies, n_features)
        W, radians per unit of the data.
    coef : ndarray of shape (2 * n_frequencies, n_targets)
        Coefficients of the cosines, then of the sines.
    gram : ndarray of shape (2 * n_frequencies, 2 * n_frequencies)
        :math:`Z^\top Z` of the rows, not centred; only the upper triangle is read.
    weight_sum : float
        Number of rows, or the sum of their weights.
    diagonal : bool, default=False
        Compute only the diagonal, for data of many columns.

    Returns
    -------
    M : ndarray of shape (n_features, n_features) or (n_features,), float64

    Notes
    -----
    ``O(s^2 (k + d) + s d^2)`` time, without the last term for the diagonal: the rows
    entered through the Gram matrix.

    References
    ----------
    .. [1] A. Radhakrishnan, D. Beaglehole, P. Pandit, M. Belkin, "Mechanism for feature
       learning in neural networks and backpropagation-free machine learning models",
       Science 383, 2024.

    Examples
    --------
    The gradient of sin(2 x) is 2 cos(2 x), and its square is 4 at x = 0.

    >>> import numpy as np
    >>> frequencies, coef = np.array([[2.0]]), np.array([[0.0], [1.0]])
    >>> Z = np.array([[1.0, 0.0]])
    >>> average_gradient_outer_product(frequencies, coef, Z.T @ Z, weight_sum=1)
    array([[4.]])
    """
    s = len(frequencies)
    W = np.asarray(frequencies, dtype=np.float64)
    cosine, sine = coef[:s], coef[s:]
    full = np.triu(gram) + np.triu(gram, 1).T
    cross = (sine @ cosine.T) * full[:s, s:]
    inner = (sine @ sine.T) * full[:s, :s] + (cosine @ cosine.T) * full[s:, s:]
    inner -= cross + cross.T
    right = (inner / weight_sum) @ W
    if diagonal:
        return np.einsum("ij,ij->j", W, right)
    M = W.T @ right
    return 0.5 * (M + M.T)


def root_transform(M: np.ndarray, power: float = 1.0) -> np.ndarray:
    r"""Matrix T with :math:`T T^\top \propto M^{\text{power}}`, of trace d.

    Isotropic frequencies times T have that covariance and keep their mean square norm.

    Parameters
    ----------
    M : ndarray of shape (n_features, n_features) or (n_features,)
        Symmetric, positive semi-definite; or the diagonal of such a matrix.
    power : float, default=1.0
        Exponent of M, > 0.

    Returns
    -------
    T : ndarray of the shape of M
        Symmetric, or its diagonal; the identity where M is zero or not finite.

    Examples
    --------
    >>> import numpy as np
    >>> root_transform(np.diag([9.0, 1.0])).round(3)
    array([[1.342, 0.   ],
           [0.   , 0.447]])
    """
    n_features = len(M)
    if not np.isfinite(M).all() or not M.any():
        return np.ones(n_features) if M.ndim == 1 else np.eye(n_features)
    if M.ndim == 1:
        eigenvalues, Q = M / M.sum(), None
    else:
        eigenvalues, Q = np.linalg.eigh(M / np.trace(M))
    eigenvalues = eigenvalues.clip(min=0.0) ** power
    roots = np.sqrt(eigenvalues * (n_features / eigenvalues.sum()))
    return roots if Q is None else (Q * roots) @ Q.T


class AgopAdaptation(InnerAdaptation):
    r"""Give the draw the covariance of the fitted function's gradients.

    Fits, takes the average gradient outer product M of the fit (see this module),
    replaces the drawn frequencies :math:`w_i` by :math:`T w_i` with
    :math:`T T^\top \propto M` and fits again, for a few rounds. The kernel becomes
    :math:`k(T x, T x')`: directions along which the target does not change no longer
    count. Frequencies of any Gaussian mixture, and of any draw of it, stay a draw of
    the same kind; for kernels that are products over features use ``diagonal=True``.

    Parameters
    ----------
    n_rounds : int, default=3
        Rounds of fit and change.
    diagonal : bool, default=False
        Only scale the columns, instead of any linear map of them.
    power : float, default=1.0
        Exponent of M in the covariance, > 0.
    factors : array-like of shape (n_factors,), default=(0.5, 1.0, 2.0)
        Lengths of the changed frequencies that each round tries, > 0, relative to the
        root mean square of those drawn.
    validation_fraction : float, default=0.1
        Share of the rows held out; up to 0.3 if that makes fewer than 500 rows.
    dtype : {"float32", "float64"}, default="float32"
        Type in which features are computed.
    verbose : bool, default=False
        Whether to report each round: to the logger "surff" at level INFO, or to stderr
        where nothing listens to that.

    Notes
    -----
    A round costs one fit per factor, ``O(n s (s + d) + s^3)``, on at most the larger
    of 16,384 rows and 8 rows per column.

    Examples
    --------
    >>> import numpy as np
    >>> from surff import AgopAdaptation, FourierFeatures, KernelRidgeRegressor
    >>> X = np.random.default_rng(0).normal(size=(600, 20))
    >>> y = np.sin(X[:, 0] - X[:, 1])
    >>> features = FourierFeatures(200, random_state=0)
    >>> plain = KernelRidgeRegressor(features, cv="gcv").fit(X[:400], y[:400])
    >>> features = FourierFeatures(200, adapt=AgopAdaptation(), random_state=0)
    >>> adapted = KernelRidgeRegressor(features, cv="gcv").fit(X[:400], y[:400])
    >>> adapted.score(X[400:], y[400:]) > 0.95 > plain.score(X[400:], y[400:])
    True
    """

    def __init__(
        self,
        n_rounds: int = 3,
        diagonal: bool = False,
        power: float = 1.0,
        factors: Sequence[float] = (0.5, 1.0, 2.0),
        validation_fraction: float = 0.1,
        dtype: str = "float32",
        verbose: bool = False,
    ):
        self.n_rounds = n_rounds
        self.diagonal = diagonal
        self.power = power
        self.factors = factors
        self.validation_fraction = validation_fraction
        self.dtype = dtype
        self.verbose = verbose

    def _best(self, problem, plain, frequencies, rng):
        del frequencies, rng  # nothing is random
        return self.search(problem, plain)

    def search(self, problem: InnerProblem, start: Found) -> Found:
        """Best `Found` among the start and all rounds; the warp is the start's."""
        power = positive("power", self.power)
        factors = [positive("factors", factor) for factor in self.factors]
        if not factors:
            raise ValueError("factors must hold at least one number, got none.")
        drawn, warp, _ = current = best = start
        for i in range(checked_count("n_rounds", self.n_rounds)):
            if time_is_up():
                break
            M = average_gradient_outer_product(
                current.frequencies,
                current.score.coef,
                current.score.equations.gram,
                current.score.equations.weight_sum,
                self.diagonal,
            )
            T = root_transform(M, power)
            changed = drawn * T if self.diagonal else drawn @ T
            current = min(
                (problem.found(f * changed, warp) for f in factors), key=held_out_error
            )
            best = min(best, current, key=held_out_error)
            if self.verbose:
                report(
                    "adapt: round %d, held-out error %.4f, best %.4f",
                    i + 1,
                    held_out_error(current),
                    held_out_error(best),
                )
        return best
