r"""From candidate frequencies and their scores to the frequencies of a feature map.

A selector draws a pool of ``l`` candidates, scores them with the data and keeps ``s``
of them. Kept frequency ``i`` carries the importance weight :math:`p / q`, so that the
kernel of the kept ones is an unbiased estimate of the pool's,

.. math:: \mathrm E\, \frac1s \sum_i \frac{p(w_i)}{q(w_i)} \cos w_i^\top (x - x')
          = \frac1l \sum_{j=1}^l \cos w_j^\top (x - x').
"""

import numbers
from typing import NamedTuple

import numpy as np
from sklearn.base import BaseEstimator

from surff._validation import positive
from surff.fourier import FourierMap, fourier_moments
from surff.leverage import ridge_leverage_scores, surrogate_leverage_scores
from surff.normal_equations import accumulate
from surff.residual import residual_frequencies

__all__ = [
    "RESAMPLERS",
    "SELECTORS",
    "ResidualLeverage",
    "RidgeLeverage",
    "Selection",
    "SurrogateLeverage",
]


class Selection(NamedTuple):
    """Frequencies kept and their importance weights p/q."""

    frequencies: np.ndarray  # (n_frequencies, n_features)
    importance_weights: np.ndarray  # (n_frequencies,)


def multinomial(probabilities, n_frequencies, rng):
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
        Candidates drawn, ascending; one that is drawn twice stands there twice.
    importance_weights : ndarray of shape (n_frequencies,)
        :math:`1 / (l q_i)`.
    """
    indices = np.sort(
        rng.choice(len(probabilities), size=n_frequencies, p=probabilities)
    )
    return indices, 1.0 / (len(probabilities) * probabilities[indices])


def without_replacement(probabilities, n_frequencies, rng):
    r"""Draw distinct candidates by systematic sampling with unequal probabilities.

    Candidate i is kept with probability :math:`\pi_i = \min(1, c\, q_i)`, ``c`` such
    that the :math:`\pi_i` sum to ``s``, and carries the weight
    :math:`s / (l \pi_i)`: the estimate of the pool's kernel is exactly unbiased.

    The parameters and results are those of `multinomial`, without repetition.

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


def reweight(probabilities, n_frequencies, rng):
    r"""Keep the whole pool and weight it by :math:`1 / (l q_i)`.

    What the paper's printed table used. It needs as many candidates as frequencies, and
    it is not an estimate of the kernel: it is another kernel.
    """
    n_candidates = len(probabilities)
    if n_candidates != n_frequencies:
        raise ValueError(
            "resample='reweight' keeps every candidate: n_candidates must be 1.0 or "
            f"{n_frequencies}, got {n_candidates} candidates."
        )
    # A candidate that scores zero would weigh infinitely: its score is lifted to
    # rounding.
    floor = np.finfo(np.float64).eps * probabilities.max()
    weights = 1.0 / (n_candidates * np.maximum(probabilities, floor))
    return np.arange(n_candidates), weights


#: Ways from probabilities to kept candidates, by name.
RESAMPLERS = {
    "multinomial": multinomial,
    "without_replacement": without_replacement,
    "reweight": reweight,
}


class _Selector(BaseEstimator):
    """Pool, score, re-sample; subclasses give `scores`."""

    def select(self, draw, X, Y, n_frequencies, rng, sample_weight=None):
        """Choose frequencies for the data.

        Parameters
        ----------
        draw : callable
            ``draw(n)`` returns ``n`` candidate frequencies, shape (n, n_features).
        X : ndarray or CSR matrix of shape (n_samples, n_features)
            Data.
        Y : ndarray of shape (n_samples, n_targets) or None
            Targets; labels are coded -1, 1 by the caller.
        n_frequencies : int
            Frequencies to keep.
        rng : numpy.random.Generator
            Re-samples the pool.
        sample_weight : ndarray of shape (n_samples,), optional
            Row weights.

        Returns
        -------
        Selection
        """
        if self.resample not in RESAMPLERS:
            raise ValueError(
                f"resample must be one of {sorted(RESAMPLERS)}, got {self.resample!r}."
            )
        pool = draw(n_candidates(self.n_candidates, n_frequencies))
        scores = self.scores(pool, X, Y, sample_weight)
        total = scores.sum()
        if not 0 < total < np.inf:
            raise ValueError(
                f"{type(self).__name__} cannot rank the candidates: their scores sum "
                f"to {total}; y is zero in every row, alpha is far too large or "
                "the data overflow."
            )
        indices, weights = RESAMPLERS[self.resample](scores / total, n_frequencies, rng)
        return Selection(pool[indices], weights)


def n_candidates(value, n_frequencies):
    """Size of the pool: an int as it is, a float as a multiple of the frequencies."""
    if isinstance(value, numbers.Integral) and not isinstance(value, bool):
        size = int(value)
    else:
        size = round(positive("n_candidates", value) * n_frequencies)
    if size < n_frequencies:
        raise ValueError(
            f"n_candidates must give at least the {n_frequencies} frequencies to keep, "
            f"got {value!r} = {size} candidates."
        )
    return size


class RidgeLeverage(_Selector):
    r"""Select frequencies by their ridge leverage (leverage-RFF).

    Candidate i scores the diagonal entry of :math:`Z^* Z (Z^* Z + \alpha I)^{-1}` for
    the pool's features. Uses X, not y.

    Parameters
    ----------
    alpha : float, default=1.0
        Regularisation of the scores, > 0, in units of :math:`Z^\top Z` (the paper's
        :math:`n \lambda`). As alpha grows the scores become uniform.
    n_candidates : int or float, default=2.0
        Pool size l: a number of candidates, or a multiple of the frequencies kept.
    resample : {"without_replacement", "multinomial", "reweight"}, \
            default="multinomial"
        How frequencies are taken from the pool; a key of `RESAMPLERS`.

    Notes
    -----
    ``O(n l^2 + l^3)`` time and ``O(l^2)`` memory.

    References
    ----------
    .. [1] Z. Li, J.-F. Ton, D. Oglic, D. Sejdinovic, "Towards a Unified Analysis of
       Random Fourier Features", ICML 2019, Algorithm 1.
    """

    needs_target = False

    def __init__(self, alpha=1.0, n_candidates=2.0, resample="multinomial"):
        self.alpha = alpha
        self.n_candidates = n_candidates
        self.resample = resample

    def scores(self, pool, X, Y, sample_weight=None):
        """Ridge leverage of each candidate of the pool, shape (n_candidates,)."""
        alpha = positive("alpha", self.alpha)
        no_target = np.zeros((X.shape[0], 0))
        equations = accumulate(FourierMap(pool), X, no_target, sample_weight)
        return ridge_leverage_scores(equations.gram, alpha)


class SurrogateLeverage(_Selector):
    r"""Select frequencies by the paper's surrogate leverage (Algorithm 1).

    Candidate i scores :math:`|\sum_j y_j \exp(-\mathrm i\, w_i^\top x_j)|^2`, plus
    :math:`n^2` with the ridge term. Uses X and y; several targets add up.

    Parameters
    ----------
    ridge_term : bool, default=False
        Keep the ``n I`` term (the paper's q~) or leave it out (its q~').
    n_candidates : int or float, default=4.0
        Pool size l: a number of candidates, or a multiple of the frequencies kept. The
        paper's experiments have l = s, that is 1.0.
    resample : {"multinomial", "without_replacement", "reweight"}, \
            default="multinomial"
        How frequencies are taken from the pool; a key of `RESAMPLERS`. The paper's
        Algorithm 1 is "multinomial"; it repeats frequencies.

    Notes
    -----
    ``O(n l d)`` time, ``O(l)`` memory besides a block of features: no inverse, and the
    pool's features are never stored.

    References
    ----------
    .. [1] F. Liu, X. Huang, Y. Chen, J. Yang, J. A. K. Suykens, "Random
       Fourier Features via Fast Surrogate Leverage Weighted Sampling", AAAI 2020,
       Algorithm 1.
    """

    needs_target = True

    def __init__(self, ridge_term=False, n_candidates=4.0, resample="multinomial"):
        self.ridge_term = ridge_term
        self.n_candidates = n_candidates
        self.resample = resample

    def scores(self, pool, X, Y, sample_weight=None):
        """Surrogate leverage of each candidate of the pool, shape (n_candidates,)."""
        weight_sum = X.shape[0]
        if sample_weight is not None:
            weight_sum, Y = sample_weight.sum(), Y * sample_weight[:, None]
        moments = fourier_moments(X, pool, Y)
        return surrogate_leverage_scores(moments, weight_sum, self.ridge_term)


class ResidualLeverage(BaseEstimator):
    r"""Select frequencies in stages, each for what those before leave unfitted.

    Stage t scores fresh candidates by :math:`|\sum_j r_j \exp(-\mathrm i\,
    w_i^\top x_j)|^2`, the surrogate leverage with the residual r of the ridge fit to
    the frequencies kept so far in the place of y, and keeps its share of them. Uses X
    and y; several targets add up.

    Parameters
    ----------
    n_stages : int, default=8
        Stages T, >= 1; at most one a frequency. With one there is no residual but that
        of the mean.
    n_candidates : int or float, default=64.0
        Candidates l of all stages together: a number, or a multiple of the frequencies
        kept. The time of the scores grows with it, and so does the accuracy.
    resample : {"top", "without_replacement"}, default="top"
        Keep the candidates with the largest scores, or draw them by their scores.
    alpha : float or "gcv", default=1e-2
        Regularisation of the fits between stages, > 0, as a multiple of the mean
        eigenvalue of their Gram matrix; "gcv" chooses by generalised cross-validation.
    fit_intercept : bool, default=True
        Whether these fits have an intercept; the first stage then scores y less its
        mean.

    Notes
    -----
    ``O(n l d + n s (T d + s) + T s^3)`` time and ``O(s^2 + l d)`` memory besides a
    block of features: Gram matrices are extended by the new columns alone, and neither
    features nor residuals are stored.

    The importance weights are ones: the map's kernel is not an estimate of the pool's,
    it is one that suits the target. Where the residual vanishes, candidates are kept as
    they were drawn.

    The choice adapts to the targets it is fitted to: judge gamma and alpha by folds,
    which `KernelRidgeClassifier` selects anew for, not by ``cv="gcv"`` or ``"loo"``,
    which tend to a gamma that is too large.

    See Also
    --------
    surff.residual.residual_frequencies : The stages as a function.
    SurrogateLeverage : One stage, y not centred, sampled by the scores.

    Examples
    --------
    >>> import numpy as np
    >>> from surff import FourierFeatures, ResidualLeverage
    >>> X = np.random.default_rng(0).uniform(-4, 4, size=(500, 2))
    >>> y = 2 * np.cos(3 * X[:, 0]) + np.cos(2 * X[:, 1])
    >>> select = ResidualLeverage(n_stages=2, n_candidates=4000)
    >>> features = FourierFeatures(4, gamma=2.0, select=select, random_state=0)
    >>> abs(features.fit(X, y).frequencies_).round()
    array([[3., 0.],
           [0., 2.]])
    """

    needs_target = True

    def __init__(
        self,
        n_stages=8,
        n_candidates=64.0,
        *,
        resample="top",
        alpha=1e-2,
        fit_intercept=True,
    ):
        self.n_stages = n_stages
        self.n_candidates = n_candidates
        self.resample = resample
        self.alpha = alpha
        self.fit_intercept = fit_intercept

    def select(self, draw, X, Y, n_frequencies, rng, sample_weight=None):
        """Choose frequencies for the data.

        Parameters
        ----------
        draw : callable
            ``draw(n)`` returns ``n`` candidate frequencies, shape (n, n_features). It
            is called once: the stages share its candidates out among them.
        X : ndarray or CSR matrix of shape (n_samples, n_features)
            Data.
        Y : ndarray of shape (n_samples, n_targets)
            Targets; labels are coded -1, 1 by the caller.
        n_frequencies : int
            Frequencies to keep.
        rng : numpy.random.Generator
            Draws by the scores, if asked to.
        sample_weight : ndarray of shape (n_samples,), optional
            Row weights.

        Returns
        -------
        Selection
            Frequencies in the order of the stages.
        """
        self._check()
        n_stages = min(self.n_stages, n_frequencies)
        # One draw: the points of a quasi-Monte Carlo draw would come again.
        pool = draw(n_candidates(self.n_candidates, n_frequencies))
        pools = np.array_split(pool, n_stages)
        shares = [len(part) for part in np.array_split(range(n_frequencies), n_stages)]

        def keep(scores, share):
            if self.resample == "top" or not scores.any():
                return np.argsort(-scores, kind="stable")[:share]
            return without_replacement(scores / scores.sum(), share, rng)[0]

        frequencies = residual_frequencies(
            pools,
            shares,
            keep,
            X,
            Y,
            sample_weight,
            alpha=self.alpha,
            fit_intercept=self.fit_intercept,
        )
        return Selection(frequencies, np.ones(n_frequencies))

    def _check(self):
        is_int = isinstance(self.n_stages, numbers.Integral)
        if not is_int or isinstance(self.n_stages, bool) or self.n_stages < 1:
            raise ValueError(f"n_stages must be an int >= 1, got {self.n_stages!r}.")
        if self.resample not in ("top", "without_replacement"):
            raise ValueError(
                "resample must be 'top' or 'without_replacement', got "
                f"{self.resample!r}."
            )
        if isinstance(self.alpha, str) and self.alpha != "gcv":
            raise ValueError(
                f"alpha must be a positive number or 'gcv', got {self.alpha!r}."
            )
        if not isinstance(self.alpha, str):
            positive("alpha", self.alpha)


#: Selectors by name.
SELECTORS = {
    "leverage": RidgeLeverage,
    "surrogate": SurrogateLeverage,
    "residual": ResidualLeverage,
}
