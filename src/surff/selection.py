r"""From candidate frequencies and their scores to the frequencies of a feature map.

A selector draws a pool of ``l`` candidates, scores them with the data and keeps ``s``
of them. Kept frequency ``i`` carries the importance weight :math:`p / q`, so that the
kernel of the kept ones is an unbiased estimate of the pool's,

.. math:: \mathrm E\, \frac1s \sum_i \frac{p(w_i)}{q(w_i)} \cos w_i^\top (x - x')
          = \frac1l \sum_{j=1}^l \cos w_j^\top (x - x').

Rules that choose another kernel than the pool's say so: `EERF` keeps the best without
weights, `KernelAlignment` learns the probabilities of the candidates, `Compression`
approximates the pool's kernel by a few of them.
"""

import numbers
from functools import partial
from typing import NamedTuple

import numpy as np
from sklearn.base import BaseEstimator

from surff._validation import positive
from surff.alignment import aligned_probabilities
from surff.blocks import summed
from surff.compression import (
    COMPRESSORS,
    all_pairs_gram,
    pool_equations,
    sampled_pairs_gram,
)
from surff.fourier import FourierMap, fourier_moments
from surff.leverage import ridge_leverage_scores, surrogate_leverage_scores
from surff.normal_equations import accumulate
from surff.residual import residual_frequencies

__all__ = [
    "EERF",
    "RESAMPLERS",
    "SELECTORS",
    "Compression",
    "KernelAlignment",
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
    """Draw a pool, choose among it; subclasses give `_check` and `_choose`."""

    @property
    def needs_rows(self):
        """Whether the choice needs rows themselves and not only sums over them."""
        sample = getattr(self, "n_rows", None), getattr(self, "n_pairs", None)
        return sample != (None, None)

    def select(self, draw, X, Y, n_frequencies, rng, sample_weight=None):
        """Choose frequencies for the data.

        Parameters
        ----------
        draw : callable
            ``draw(n)`` returns ``n`` candidate frequencies, shape (n, n_features).
        X : ndarray, CSR matrix or WorkerRows of shape (n_samples, n_features)
            Data; `surff.streaming.WorkerRows` only without ``needs_rows``.
        Y : ndarray of shape (n_samples, n_targets) or None
            Targets; labels are coded -1, 1 by the caller.
        n_frequencies : int
            Frequencies to keep.
        rng : numpy.random.Generator
            Samples rows, for the rules that do, and re-samples the pool.
        sample_weight : ndarray of shape (n_samples,), optional
            Row weights.

        Returns
        -------
        Selection
        """
        self._check()
        pool = draw(n_candidates(self.n_candidates, n_frequencies))
        indices, weights = self._choose(pool, X, Y, n_frequencies, rng, sample_weight)
        return Selection(pool[indices], weights)


class _Scoring(_Selector):
    """Score the pool, keep by the scores; subclasses give `scores` and `_keep`."""

    def _choose(self, pool, X, Y, n_frequencies, rng, sample_weight):
        scores = self.scores(pool, X, Y, sample_weight, rng)
        total = scores.sum()
        if not 0 < total < np.inf:
            raise ValueError(
                f"{type(self).__name__} cannot rank the candidates: their scores sum "
                f"to {total}; y is zero in every row, alpha is far too large or "
                "the data overflow."
            )
        return self._keep(scores / total, n_frequencies, rng)


class _Resampling(_Scoring):
    """Keep by one of `RESAMPLERS`, the scores as probabilities."""

    def _check(self):
        _check_name("resample", self.resample, RESAMPLERS)

    def _keep(self, probabilities, n_frequencies, rng):
        return RESAMPLERS[self.resample](probabilities, n_frequencies, rng)


def _check_name(argument, value, names):
    """Raise for a name that is not among ``names``."""
    if value not in names:
        raise ValueError(f"{argument} must be one of {sorted(names)}, got {value!r}.")


def _rows_or_none(argument, value):
    """Raise for a number of rows or pairs that is neither None nor an int >= 1."""
    is_int = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    if value is not None and not (is_int and value >= 1):
        raise ValueError(f"{argument} must be None or an int >= 1, got {value!r}.")


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


def mixture(coefficients, n_frequencies):
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
        Candidates, ascending: those above zero, then the first of the others so that
        the map has its number of columns.
    importance_weights : ndarray of shape (n_frequencies,)
        :math:`s\, c_j`: the map's kernel is the mixture. Zero for those filled in,
        whose columns are zero.
    """
    order = np.argsort(coefficients == 0, kind="stable")
    indices = np.sort(order[:n_frequencies])
    return indices, n_frequencies * coefficients[indices]


def pool_moments(pool, X, Y, sample_weight):
    """Moments of the candidates with weighted targets, and the sum of the weights."""
    weight_sum = X.shape[0]
    if sample_weight is not None:
        weight_sum, Y = sample_weight.sum(), Y * sample_weight[:, None]
    return fourier_moments(X, pool, Y), weight_sum


def surrogate_scores(pool, X, Y, sample_weight=None, ridge_term=False):
    """Surrogate leverage of each candidate, and the sum of the weights."""
    sums = summed(partial(pool_moments, pool), X, Y, sample_weight)
    return surrogate_leverage_scores(*sums, ridge_term), sums[1]


class RidgeLeverage(_Resampling):
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
    n_rows : int or None, default=None
        Rows, drawn without replacement, from which :math:`Z^\top Z` is estimated
        without bias: m of n rows count n / m times each, so that alpha means the same.
        None takes all. Take several times the 2 l columns of the pool: fewer rows make
        the scores noisy, and the weights with them. A row of weight w is drawn with w
        times the probability of one of weight 1, and once at most.

    Notes
    -----
    ``O(n l^2 + l^3)`` time and ``O(l^2)`` memory; with ``n_rows`` that in place of n.

    References
    ----------
    .. [1] Z. Li, J.-F. Ton, D. Oglic, D. Sejdinovic, "Towards a Unified Analysis of
       Random Fourier Features", ICML 2019, Algorithm 1.
    .. [2] Y. Sun, A. Gilbert, A. Tewari, "But How Does It Work in Theory? Linear SVM
       with Random Features", NeurIPS 2018, for ``n_rows``.
    """

    needs_target = False

    def __init__(
        self, alpha=1.0, n_candidates=2.0, resample="multinomial", n_rows=None
    ):
        self.alpha = alpha
        self.n_candidates = n_candidates
        self.resample = resample
        self.n_rows = n_rows

    def scores(self, pool, X, Y, sample_weight=None, rng=None):
        """Ridge leverage of each candidate of the pool, shape (n_candidates,).

        ``rng`` draws the rows; without ``n_rows`` it is not used.
        """
        alpha = positive("alpha", self.alpha)
        _rows_or_none("n_rows", self.n_rows)
        if self.n_rows is None:
            equations = pool_equations(pool, X, sample_weight)
        else:
            rows, weight = sampled_rows(X.shape[0], self.n_rows, rng, sample_weight)
            no_target = np.zeros((X.shape[0], 0))
            equations = accumulate(FourierMap(pool), X, no_target, weight, rows)
        return ridge_leverage_scores(equations.gram, alpha)


def sampled_rows(n_samples, n_rows, rng, sample_weight):
    """Distinct rows, and weights of all rows that leave sums over them unbiased."""
    weight = np.ones(n_samples) if sample_weight is None else sample_weight
    if n_rows >= np.count_nonzero(weight):
        return None, sample_weight
    if rng is None:
        raise ValueError("n_rows draws rows: scores requires rng, got None.")
    shares = weight.astype(np.float64) / weight.sum(dtype=np.float64)
    # As candidates of a pool: row i has the probability pi_i and the weight
    # n_rows / (n pi_i) for a mean over all, here w_i / pi_i for a sum of w_i.
    rows, factors = without_replacement(shares, n_rows, rng)
    sampled = np.zeros(n_samples)
    sampled[rows] = weight[rows] * factors * (n_samples / n_rows)
    return rows, sampled


class SurrogateLeverage(_Resampling):
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
    takes_arrays = True

    def __init__(self, ridge_term=False, n_candidates=4.0, resample="multinomial"):
        self.ridge_term = ridge_term
        self.n_candidates = n_candidates
        self.resample = resample

    def scores(self, pool, X, Y, sample_weight=None, rng=None):
        """Surrogate leverage of each candidate of the pool, shape (n_candidates,)."""
        return surrogate_scores(pool, X, Y, sample_weight, self.ridge_term)[0]


class EERF(_Scoring):
    r"""Keep the frequencies that correlate best with the target (EERF).

    Energy-based exploration of random features: candidate i scores
    :math:`\frac1n |\sum_j y_j \exp(-\mathrm i\, w_i^\top x_j)|`, the length of the
    target's correlations with its cosine and its sine, and the s best are kept. Uses X
    and y; the squares of several targets add up.

    Parameters
    ----------
    n_candidates : int or float, default=10.0
        Pool size l: a number of candidates, or a multiple of the frequencies kept.

    Notes
    -----
    The importance weights are ones, as in the paper: the map's kernel is not an
    estimate of the pool's, it is another. ``O(n l d)`` time, ``O(l)`` memory besides a
    block of features. Nothing is random but the pool. The paper's features are
    :math:`\cos(w^\top x + b)` and score :math:`\frac1n |\sum_j y_j \cos(w^\top x_j +
    b)|`; the score of a pair is that at the best phase b.

    References
    ----------
    .. [1] S. Shahrampour, A. Beirami, V. Tarokh, "On Data-Dependent Random Features for
       Improved Generalization in Supervised Learning", AAAI 2018.
    """

    needs_target = True
    takes_arrays = True

    def __init__(self, n_candidates=10.0):
        self.n_candidates = n_candidates

    def _check(self):
        """Nothing but the size of the pool can be wrong."""

    def scores(self, pool, X, Y, sample_weight=None, rng=None):
        """Correlation of each candidate with the target, shape (n_candidates,)."""
        scores, weight_sum = surrogate_scores(pool, X, Y, sample_weight)
        return np.sqrt(scores) / weight_sum

    def _keep(self, probabilities, n_frequencies, rng):
        best = np.argsort(-probabilities, kind="stable")[:n_frequencies]
        return np.sort(best), np.ones(n_frequencies)


class KernelAlignment(_Scoring):
    r"""Learn the probabilities of the candidates by kernel alignment (LKRF).

    The probabilities q maximise :math:`\sum_j q_j |z_j^* y|^2`, the alignment of the
    kernel :math:`\sum_j q_j \cos w_j^\top (x - x')` with :math:`y y^\top`, in a
    chi-square ball around the uniform ones; see `surff.alignment`. Uses X and y;
    several targets add up.

    Parameters
    ----------
    rho : float, default=1.0
        Radius of the ball, > 0: :math:`\frac1l \sum_j ((l q_j)^2 - 1) \le \rho`. The
        effective number of candidates, :math:`1 / \sum_j q_j^2`, is at least
        :math:`l / (1 + \rho)`. A small rho leaves q uniform, a large one has the best
        candidate alone.
    n_candidates : int or float, default=4.0
        Pool size l: a number of candidates, or a multiple of the frequencies kept.
    resample : {"multinomial", "without_replacement"}, default="multinomial"
        How frequencies are taken from the pool by q. "multinomial" is the paper's; it
        repeats frequencies and weights them by 1. "without_replacement" weights them by
        :math:`s\, q_i / \pi_i` for the inclusion probability :math:`\pi_i`; where no
        more than s candidates have :math:`q_i > 0` it keeps these and has the learned
        kernel exactly, and fills the map with frequencies of weight 0.

    Notes
    -----
    In the mean the map's kernel is the learned one, not that of the pool.
    ``O(n l d + l log l)`` time, ``O(l)`` memory besides a block of features.

    References
    ----------
    .. [1] A. Sinha, J. Duchi, "Learning Kernels with Random Features", NIPS 2016.
    """

    needs_target = True

    def __init__(self, rho=1.0, n_candidates=4.0, resample="multinomial"):
        self.rho = rho
        self.n_candidates = n_candidates
        self.resample = resample

    def _check(self):
        positive("rho", self.rho)
        _check_name("resample", self.resample, ["multinomial", "without_replacement"])

    def scores(self, pool, X, Y, sample_weight=None, rng=None):
        """Alignment of each candidate with the target, shape (n_candidates,)."""
        return surrogate_scores(pool, X, Y, sample_weight)[0]

    def _keep(self, alignments, n_frequencies, rng):
        q = aligned_probabilities(alignments, self.rho)
        exact = self.resample == "without_replacement"
        if exact and np.count_nonzero(q) <= n_frequencies:
            return mixture(q, n_frequencies)
        indices, weights = RESAMPLERS[self.resample](q, n_frequencies, rng)
        if not exact:
            return indices, np.ones(n_frequencies)
        # Those weights give the uniform mixture of the pool; l q_i gives that by q.
        return indices, weights * (len(q) * q[indices])


class Compression(_Selector):
    r"""Compress a pool to few weighted frequencies whose kernel is close to its.

    Greedy steps choose at most s candidates and weights :math:`\ge 0` so that
    :math:`\frac1s \sum_i a_i \cos w_i^\top (x - x')` is close to the pool's kernel in
    the mean square over pairs of rows; see `surff.compression`. Uses X, not y.

    Parameters
    ----------
    method : {"giga", "frank-wolfe"}, default="giga"
        Greedy algorithm; a key of `surff.compression.COMPRESSORS`. "giga" is the closer
        one for few frequencies, "frank-wolfe" keeps the weights' sum near that of the
        kernel, 1.
    n_candidates : int or float, default=4.0
        Pool size l: a number of candidates, or a multiple of the frequencies kept. The
        error is that of the pool plus that of the compression.
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
    selection is no unbiased estimate, it is an approximation of the pool's kernel.

    References
    ----------
    .. [1] R. Agrawal, T. Campbell, J. Huggins, T. Broderick, "Data-dependent
       compression of random features for large-scale kernel approximation",
       AISTATS 2019.
    """

    needs_target = False

    def __init__(self, method="giga", n_candidates=4.0, n_pairs=None):
        self.method = method
        self.n_candidates = n_candidates
        self.n_pairs = n_pairs

    def _check(self):
        _check_name("method", self.method, COMPRESSORS)
        _rows_or_none("n_pairs", self.n_pairs)

    def _choose(self, pool, X, Y, n_frequencies, rng, sample_weight):
        if self.n_pairs is None:
            gram = all_pairs_gram(pool, X, sample_weight)
        else:
            gram = sampled_pairs_gram(pool, X, self.n_pairs, rng, sample_weight)
        return mixture(COMPRESSORS[self.method](gram, n_frequencies), n_frequencies)


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
    EERF : One stage, y not centred.

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
    "eerf": EERF,
    "alignment": KernelAlignment,
    "compression": Compression,
    "residual": ResidualLeverage,
}
