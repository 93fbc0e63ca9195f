"""How probable new observations are: the negative log predictive density."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_array, check_consistent_length

__all__ = ["neg_nlpd_scorer", "nlpd"]


def nlpd(y_true: Any, mean: Any, std: Any, sample_weight: Any = None) -> float:
    r"""Mean negative log predictive density of Gaussian predictions.

    .. math:: \mathrm{NLPD} = \frac1n \sum_i \Bigl( \tfrac12 \log 2 \pi s_i^2
              + \frac{(y_i - m_i)^2}{2 s_i^2} \Bigr)

    Smaller is better. Unlike the squared error it also judges the deviations: too small
    ones cost as much as wrong predictions.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,) or (n_samples, n_targets)
        Targets.
    mean, std : array-like of the shape of ``y_true``
        Means and standard deviations such as ``predict(X, return_std=True)`` returns;
        the second > 0.
    sample_weight : array-like of shape (n_samples,), default=None
        Row weights.

    Returns
    -------
    float
        In nats per row and target, for targets in their own unit.

    Raises
    ------
    ValueError
        If the shapes differ or a deviation is not positive.

    References
    ----------
    .. [1] J. Quinonero-Candela et al., "Evaluating Predictive Uncertainty Challenge",
       MLCW 2005.

    Examples
    --------
    >>> round(nlpd([0.0, 1.0], [0.0, 0.0], [1.0, 1.0]), 4)
    1.1689
    """
    arrays = [
        check_array(values, ensure_2d=False, dtype=np.float64, input_name=name)
        for values, name in ((y_true, "y_true"), (mean, "mean"), (std, "std"))
    ]
    shapes = [values.shape for values in arrays]
    if len(set(shapes)) > 1:
        raise ValueError(f"y_true, mean and std must have one shape, got {shapes}.")
    y_true, mean, std = arrays
    if not np.all(std > 0):
        raise ValueError(f"std must be positive, got a minimum of {std.min():.3g}.")
    if sample_weight is not None:
        check_consistent_length(y_true, sample_weight)
    loss = 0.5 * np.log(2.0 * np.pi) + np.log(std) + 0.5 * ((y_true - mean) / std) ** 2
    return float(np.average(loss, axis=0, weights=sample_weight).mean())


def neg_nlpd_scorer(estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
    """Scorer of the negative `nlpd`, for ``scoring=`` in scikit-learn's searches.

    Parameters
    ----------
    estimator : estimator
        A fitted regressor whose ``predict`` takes ``return_std``.
    X : array-like of shape (n_samples, n_features)
        Data.
    y : array-like of shape (n_samples,) or (n_samples, n_targets)
        Targets.
    sample_weight : array-like of shape (n_samples,), default=None
        Row weights.

    Returns
    -------
    float
        Larger is better.

    Examples
    --------
    >>> from sklearn.datasets import make_friedman1
    >>> from sklearn.model_selection import cross_val_score
    >>> from surff import FourierFeatures, KernelRidgeRegressor
    >>> from surff.inspection import neg_nlpd_scorer
    >>> X, y = make_friedman1(300, noise=1.0, random_state=0)
    >>> model = KernelRidgeRegressor(FourierFeatures(200, random_state=0), cv="gcv")
    >>> scores = cross_val_score(model, X, y, scoring=neg_nlpd_scorer)
    >>> bool(scores.mean() > -2.5)
    True
    """
    mean, std = estimator.predict(X, return_std=True)
    return -nlpd(y, mean, std, sample_weight)
