r"""Logistic and multinomial regression on streamed features.

Minimises, with row weights :math:`\omega_i`,

.. math:: \sum_i \omega_i\, \ell(y_i, f_i) + \frac\alpha2 \|\beta\|^2,
          \qquad f_i = b + z_i^\top \beta,

where :math:`\ell` is :math:`\log(1 + e^f) - y f` for two classes and
:math:`\log \sum_k e^{f_k} - f_y` for more. The Hessian is bounded by that of least
squares (Boehning 1992),

.. math:: \nabla^2 \preceq c\, \tilde Z^\top W \tilde Z + \alpha I, \qquad c = \tfrac14
          \text{ for two classes}, \tfrac12 \text{ for more},

for every class alike, so one eigendecomposition of the centred Gram matrix scales the
coefficients of all alphas and classes to Hessians below the identity. What is left is
well conditioned, and gradients alone minimise it: passes of ``O(n m (d + k))``, which
serve all alphas together, where Newton's method needs ``O(n m^2)`` per step and alpha,
and ``k^2`` times that for k classes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from surff.backend import block_rows, feature_blocks, map_slices, row_blocks
from surff.linear.alpha_path import spectrum
from surff.linear.lbfgs import minimise
from surff.linear.normal_equations import NormalEquations

__all__ = [
    "logistic_path",
    "loss_and_gradient",
    "losses",
]


def losses(
    decisions: np.ndarray, codes: npt.ArrayLike
) -> tuple[np.ndarray, np.ndarray]:
    r"""Negative log likelihood of each row, and the probabilities of the classes.

    Parameters
    ----------
    decisions : ndarray of shape (n_rows, n_alphas, k), float64
        Decisions f; k is 1 for two classes.
    codes : ndarray of int, shape (n_rows,)
        Numbers of the classes y.

    Returns
    -------
    losses : ndarray of shape (n_rows, n_alphas)
        :math:`\ell(y, f) \ge 0`.
    probabilities : ndarray of shape (n_rows, n_alphas, k)
        Of each class; of class 1 where k is 1.

    Examples
    --------
    >>> import numpy as np
    >>> losses(np.zeros((1, 1, 1)), [1])
    (array([[0.69314718]]), array([[[0.5]]]))
    """
    codes = np.asarray(codes)
    if decisions.shape[2] == 1:
        # log(1 + e^-f) where y is 1, log(1 + e^f) where it is 0.
        signs = np.where(codes == 1, -1.0, 1.0)
        signed = signs[:, None] * decisions[:, :, 0]
        return np.logaddexp(0.0, signed), expit(decisions)
    own = np.take_along_axis(decisions, codes[:, None, None], axis=2)[:, :, 0]
    top = decisions.max(axis=2)
    P = np.exp(decisions - top[:, :, None])
    total = P.sum(axis=2)
    P /= total[:, :, None]
    return np.log(total) + top - own, P


def loss_and_gradient(
    feature_map: Any,
    X: Any,
    codes: np.ndarray,
    coefs: np.ndarray,
    intercepts: np.ndarray,
    sample_weight: np.ndarray | None = None,
    rows: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    r"""Loss without penalty, and its gradients, of every alpha, in one pass.

    Parameters
    ----------
    feature_map : object with ``n_components``, ``dtype`` and ``(X, out=None) -> Z``
        Maps a block of rows.
    X : ndarray or CSR matrix of shape (n_samples, n_features)
        Data.
    codes : ndarray of int, shape (n_samples,)
        Numbers of the classes.
    coefs : ndarray of shape (m, n_alphas, k)
        Coefficients :math:`\beta`; k is 1 for two classes.
    intercepts : ndarray of shape (n_alphas, k)
        Intercepts b.
    sample_weight : ndarray of shape (n_samples,), optional
        Row weights.
    rows : ndarray of int, optional
        Rows to use; all by default.

    Returns
    -------
    loss : ndarray of shape (n_alphas,)
    coef_gradient : ndarray of shape (m, n_alphas, k)
    intercept_gradient : ndarray of shape (n_alphas, k)

    Notes
    -----
    ``O(n m (d + n_alphas k))`` time; a block of features and of decisions is held.
    """
    m, n_alphas, k = coefs.shape
    # Steps too long for decisions that are numbers are as long as numbers allow.
    most = np.sqrt(np.finfo(feature_map.dtype).max)
    flat = coefs.reshape(m, -1).clip(-most, most).astype(feature_map.dtype, order="C")
    size = block_rows(n_alphas * k, np.float64)

    def sums_of(part):
        loss = np.zeros(n_alphas)
        by_coef, by_intercept = np.zeros((m, n_alphas * k)), np.zeros((n_alphas, k))
        for index, Z in feature_blocks(feature_map, X, rows, part):
            y = codes[index]
            weight = np.ones(len(Z)) if sample_weight is None else sample_weight[index]
            for some in row_blocks(len(Z), size):
                decisions = (Z[some] @ flat).reshape(-1, n_alphas, k) + intercepts
                row_losses, residual = losses(decisions, y[some])
                loss += weight[some] @ row_losses
                if k == 1:
                    residual -= y[some, None, None]
                else:
                    residual[np.arange(len(residual)), :, y[some]] -= 1.0
                residual *= weight[some, None, None]
                by_intercept += residual.sum(axis=0)
                residual = residual.reshape(-1, n_alphas * k).astype(
                    Z.dtype, copy=False
                )
                by_coef += Z[some].T @ residual
        return loss, by_coef, by_intercept

    n_rows = X.shape[0] if rows is None else len(rows)
    parts = map_slices(sums_of, n_rows)
    loss, by_coef, by_intercept = (sum(sums) for sums in zip(*parts, strict=True))
    return loss, by_coef.reshape(coefs.shape), by_intercept


def square_sums(coefs):
    """Sums of squares of the coefficients of each alpha; infinity beyond numbers."""
    with np.errstate(over="ignore"):
        return np.square(coefs).sum(axis=(0, 2))


def logistic_path(
    feature_map: Any,
    X: Any,
    codes: np.ndarray,
    equations: NormalEquations,
    alphas: npt.ArrayLike,
    sample_weight: np.ndarray | None = None,
    rows: np.ndarray | None = None,
    *,
    n_classes: int = 2,
    fit_intercept: bool = True,
    tol: float = 1e-4,
    max_iter: int = 1000,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    r"""Coefficients and intercepts of every alpha.

    Parameters
    ----------
    feature_map, X, codes, sample_weight, rows
        See `loss_and_gradient`.
    equations : NormalEquations
        Of these rows; their targets are not used.
    alphas : ndarray of shape (n_alphas,)
        Regularisation, > 0.
    n_classes : int, default=2
        Number of classes.
    fit_intercept : bool, default=True
        Whether to fit intercepts, which are not penalised.
    tol : float, default=1e-4
        An alpha is done if :math:`g^\top H^{-1} g \le \mathrm{tol}^2\, \omega` for
        its gradient g, the bound H of its Hessian and the sum of weights
        :math:`\omega`: about twice the loss per row that is still to be gained is
        below :math:`\mathrm{tol}^2`.
    max_iter : int, default=1000
        Passes over the data.

    Returns
    -------
    coefs : ndarray of shape (m, n_alphas, k)
    intercepts : ndarray of shape (n_alphas, k)
    converged : ndarray of bool, shape (n_alphas,)
    n_passes : int

    Notes
    -----
    About ``9 m^3`` operations once, and ``n_passes`` passes of `loss_and_gradient`,
    typically 20 to 100, more for a smaller alpha and separable classes.

    References
    ----------
    .. [1] D. Boehning, "Multinomial Logistic Regression Algorithm", Annals of the
       Institute of Statistical Mathematics 44, 1992.
    """
    alphas = np.asarray(alphas, dtype=np.float64)
    k = 1 if n_classes == 2 else n_classes
    bound = 0.25 if k == 1 else 0.5
    e, vectors, _, mean, _ = spectrum(equations, fit_intercept)
    m, weight_sum = len(e), equations.weight_sum
    scale = 1.0 / np.sqrt(bound * e[:, None] + alphas)  # (m, n_alphas)
    intercept_scale = fit_intercept / np.sqrt(bound * weight_sum)

    def unscaled(which, points):
        """Coefficients and intercepts of scaled points, shape (n, m + 1, k)."""
        scaled = points[:, :-1] * scale.T[which, :, None]
        coefs = (vectors @ scaled.transpose(1, 0, 2).reshape(m, -1)).reshape(
            m, len(points), k
        )
        # The points' intercept is that of centred features.
        shift = np.tensordot(mean, coefs, 1)
        return coefs, points[:, -1] * intercept_scale - shift

    def function(which, flat):
        points = flat.reshape(len(flat), m + 1, k)
        coefs, intercepts = unscaled(which, points)
        loss, by_coef, by_intercept = loss_and_gradient(
            feature_map, X, codes, coefs, intercepts, sample_weight, rows
        )
        loss = loss + 0.5 * alphas[which] * square_sums(coefs)
        by_coef -= mean[:, None, None] * by_intercept
        by_coef += alphas[which, None] * coefs
        gradients = np.empty_like(points)
        rotated = (vectors.T @ by_coef.reshape(m, -1)).reshape(by_coef.shape)
        gradients[:, :-1] = (rotated * scale[:, which, None]).transpose(1, 0, 2)
        gradients[:, -1] = by_intercept * intercept_scale
        return loss, gradients.reshape(flat.shape)

    points, converged, n_passes = minimise(
        function,
        np.zeros((len(alphas), (m + 1) * k)),
        tol * np.sqrt(weight_sum),
        max_iter,
        4 * np.finfo(feature_map.dtype).eps,
    )
    every = np.arange(len(alphas))
    coefs, intercepts = unscaled(every, points.reshape(len(alphas), m + 1, k))
    return coefs, intercepts, converged, n_passes
