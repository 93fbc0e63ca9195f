"""The parameter ``alphas``: checked, scored and chosen from."""

import warnings

import numpy as np

from surff.linear import AlphaPath, best_index, grown_path

__all__ = [
    "ascending_numbers",
    "best_alpha",
    "checked_alphas",
    "refuse_zero",
    "scored_path",
]


def checked_alphas(alphas, zero=True):
    """Ascending array of alphas, or None for "auto".

    Parameters
    ----------
    alphas : "auto", float or array-like
        The parameter.
    zero : bool, default=True
        Whether 0 is accepted.
    """
    if isinstance(alphas, str):
        return None
    values = ascending_numbers(alphas, np.nextafter(0.0, -1.0 if zero else 1.0))
    if values is None:
        bound = ">= 0" if zero else "> 0"
        raise ValueError(
            f"alphas must be 'auto', a number {bound} or a non-empty sequence of them, "
            f"got {alphas!r}."
        )
    return values


def ascending_numbers(values, smallest):
    """Different finite numbers from ``smallest`` on, ascending; None for others."""
    values = np.asarray(values)
    if values.size == 0 or values.dtype.kind not in "fiu":
        return None
    values = np.unique(values.astype(np.float64))
    good = (values >= smallest) & np.isfinite(values)
    return values if good.all() else None


def refuse_zero(alphas, cv):
    """Refuse an alpha of 0 where scores come from formulas instead of folds."""
    if alphas is not None and alphas[0] == 0:
        raise ValueError(
            f"alphas must be positive for cv={cv!r}, whose formula divides by what "
            f"alpha leaves of the degrees of freedom, got {alphas.tolist()}; k-fold "
            "takes 0."
        )


def scored_path(criterion, alphas, per_target=False):
    """Scores of given alphas, or of the automatic grid for None.

    Parameters
    ----------
    criterion : surff.linear.Criterion
    alphas : ndarray of shape (n_alphas,) or None
        Ascending.
    per_target : bool, default=False
        Whether to keep one score per target.

    Returns
    -------
    path : AlphaPath
    """

    def score(alphas):
        scores = criterion.score(alphas)
        return scores if per_target else scores.mean(axis=2)

    if alphas is None:
        return criterion.refined(grown_path(criterion, score), score)
    path = AlphaPath(alphas, score(alphas))
    missing = np.isnan(path.scores).reshape(len(alphas), -1).any(axis=1)
    singular = alphas[missing]
    if 0 < len(singular) < len(alphas):
        warnings.warn(
            "Z^T Z + alpha I is singular to working precision for "
            f"alphas={singular.tolist()}; they were not scored.",
            stacklevel=8,
        )
    return path


def best_alpha(path):
    """Best alpha of a path, or that of each target, and its mean score."""
    best = best_index(path)
    means = path.scores.mean(axis=1)
    if np.ndim(best):
        return path.alphas[best], float(means[best, np.arange(len(best))].mean())
    return float(path.alphas[best]), float(means[best])
