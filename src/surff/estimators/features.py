"""Feature maps as scikit-learn transformers."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.utils._param_validation import HasMethods, StrOptions
from sklearn.utils.validation import check_is_fitted

from surff.adaptation import ADAPTATIONS, Adaptation, checked_adaptation
from surff.backend import (
    Array,
    as_generator,
    asarray_like,
    check_same_place,
    flag_of,
    numpy_dtype,
    one_of,
    other_namespace,
    validated,
    wide_dtype,
)
from surff.draws import DRAWS, checked_draw
from surff.estimators._bandwidth import GAMMA_CONSTRAINTS, bandwidth
from surff.estimators._watching import WATCH_CONSTRAINTS
from surff.estimators.base import (
    N_COMPONENTS,
    Features,
    LooksAt,
    NumpyOnly,
    mapped,
    rows_of_kernel,
)
from surff.kernels import (
    KERNELS,
    ArrayFourierMap,
    FourierMap,
    OddFourierMap,
    SpectralKernel,
    WarpedMap,
    scaled_frequencies,
    warped,
)
from surff.selection import SELECTORS, Selector, checked_selection
from surff.streaming import EntrySpread, over_blocks

__all__ = ["FourierFeatures"]


class FourierFeatures(Features):
    r"""Random Fourier features of a shift-invariant kernel.

    Maps a row x to

    .. math:: \varphi(x) = \tfrac{1}{\sqrt s} \bigl[a_i \cos w_i^\top x \bigr]_i
              \oplus \tfrac{1}{\sqrt s} \bigl[a_i \sin w_i^\top x \bigr]_i

    so that :math:`\varphi(x)^\top \varphi(x')` estimates the kernel. The frequencies
    :math:`w_i` are drawn from the kernel's spectral measure and, with ``select``,
    chosen among more candidates by what the data say about them.

    Parameters
    ----------
    n_components : int, default=256
        Columns that `transform` returns: a cosine and a sine for each frequency. Of an
        odd number of columns the last frequency has one only,
        :math:`\sqrt{2 / s}\, a_s \cos(w_s^\top x + b)` with a random phase b, in the
        place of its cosine.
    kernel : {"rbf", "laplacian", "exponential", "matern", "cauchy", \
            "rational_quadratic", "exponential_power"} or SpectralMeasure, \
            default="rbf"
        Kernel to approximate; a key of `surff.kernels.KERNELS` or an object.
    gamma : {"scale", "median"}, float or array-like of shape (n_features,), \
            default="scale"
        Bandwidth, > 0: the kernel is :math:`\exp(-\gamma \|x - x'\|^2)` for "rbf", with
        the paper's :math:`1 / \sigma^2`; the other kernels say how they use it. "scale"
        is ``1 / (n_features * X.var())``, as in `sklearn.svm.SVC`; "median" is
        ``1 / (2 * median**2)`` with the median distance of two different rows, among at
        most 1,000 rows that lie evenly spread in ``X``; an array holds one bandwidth
        per feature.
    draw : {"monte_carlo", "halton", "sobol", "orthogonal", "structured_orthogonal", \
            "spherical_radial", "gauss_hermite", "sparse_grid", "reweighted", \
            "modified"} or draw object, default="monte_carlo"
        How candidates are drawn; a key of `surff.draws.DRAWS` or an object. The guide
        to draws says which measures and numbers of features each is for.
    select : None, {"leverage", "surrogate", "eerf", "alignment", "compression", \
            "residual"} or selector, default=None
        How frequencies are chosen among the candidates; a key of
        `surff.selection.SELECTORS`, an object such as
        ``SurrogateLeverage(n_candidates=8.0)``, or None to keep the draw as it is. A
        draw with weights of its own takes none. The guide to selection compares them.
    adapt : None, {"auto", "gradient", "agop"} or adaptation, default=None
        How the frequencies drawn or selected are then moved to where ``X`` and ``y``
        want them; a key of `surff.adaptation.ADAPTATIONS`, an object such as
        ``GradientAdaptation(n_steps=300)``, or None to leave them. The kernel
        and its gamma then only set the starting point; "auto" also bends them. A draw
        with weights of its own takes none, importance weights of a selection are
        dropped, and a structured draw becomes an array. The guide to adaptation says
        what it brings.
    random_state : int, RandomState, Generator or None, default=None
        Seed of all random choices: the draw, the selection and the adaptation. The same
        int gives the same frequencies whatever the dtype of ``X``; but an adaptation
        amplifies rounding errors, so its results differ between dtypes and machines.
    verbose : int, bool or callable, default=0
        Whether to show progress, see `surff.KernelRidgeRegressor`.
    max_time : float or None, default=None
        Seconds, > 0, after which an adaptation ends with the best so far.

    Attributes
    ----------
    frequencies_ : ndarray of shape (n_frequencies, n_features)
        The s frequencies, half of ``n_components`` rounded up, radians per unit of
        ``X``; dtype of ``X``. For
        ``draw="structured_orthogonal"`` a `surff.draws.HadamardFrequencies`, of which
        `numpy.asarray` makes the array.
    importance_weights_ : ndarray of shape (n_frequencies,)
        :math:`p(w_i) / q(w_i) = a_i^2`, >= 0; ones without a selection, unless the draw
        has weights.
    phase_ : float
        Phase b in radians; for an odd ``n_components`` only.
    warp_ : ndarray of shape (2, n_features)
        Centres and rates of bent columns, see `surff.kernels.warp`: frequencies then
        are radians per unit of a column at its centre. Only where the adaptation bends
        them.
    gamma_ : float or ndarray of shape (n_features,)
        Bandwidth of the draw.
    n_features_in_ : int
        Columns of ``X``.
    feature_names_in_ : ndarray of str
        Names of the columns, where ``X`` has them.

    See Also
    --------
    sklearn.kernel_approximation.RBFSampler : Blind to the data, an offset per column.
    surff.KernelRidgeClassifier : Ridge on these features, streaming.

    Notes
    -----
    What a map looks at: the draws only the number of columns (and ``X.var()`` for
    gamma="scale"), ``select="leverage"`` the rows of ``X``, as does "compression",
    and ``select="surrogate"`` both ``X`` and ``y``, as do the others and ``adapt``.
    `transform` takes ``O(n_features)`` time per value.

    With scikit-learn's ``array_api_dispatch``, arrays of other libraries such as
    PyTorch are taken and stay on their device; the guide to arrays says what with.

    When `fit` scores candidates with ``y``, labels (text, booleans, integers) are coded
    one-vs-rest as -1 and 1; floats are numbers and taken as they are (not centred).

    References
    ----------
    .. [1] F. Liu, X. Huang, Y. Chen, J. Yang, J. A. K. Suykens, "Random
       Fourier Features via Fast Surrogate Leverage Weighted Sampling", AAAI 2020.

    Examples
    --------
    >>> import numpy as np
    >>> from surff import FourierFeatures
    >>> X = np.array([[0.0, 0.0], [1.0, 1.0]])
    >>> Z = FourierFeatures(4096, gamma=0.5, random_state=0).fit_transform(X)
    >>> (Z @ Z.T).round(1)
    array([[1. , 0.4],
           [0.4, 1. ]])
    """

    _parameter_constraints: dict = {  # noqa: RUF012  (scikit-learn's convention)
        "n_components": N_COMPONENTS,
        "kernel": [StrOptions(set(KERNELS)), HasMethods(["sample", "scale", "kernel"])],
        "gamma": GAMMA_CONSTRAINTS,
        "draw": [StrOptions(set(DRAWS)), HasMethods("draw")],
        "select": [None, StrOptions(set(SELECTORS)), HasMethods("select")],
        "adapt": [None, StrOptions(set(ADAPTATIONS)), HasMethods("adapt")],
        "random_state": ["random_state", np.random.Generator],
        **WATCH_CONSTRAINTS,
    }

    def __init__(
        self,
        n_components: int = 256,
        *,
        kernel: Any = "rbf",
        gamma: Any = "scale",
        draw: Any = "monte_carlo",
        select: Any = None,
        adapt: Any = None,
        random_state: Any = None,
        verbose: Any = 0,
        max_time: float | None = None,
    ):
        self.n_components = n_components
        self.kernel = kernel
        self.gamma = gamma
        self.draw = draw
        self.select = select
        self.adapt = adapt
        self.random_state = random_state
        self.verbose = verbose
        self.max_time = max_time

    def fit_checked(
        self,
        X: Array,
        Y: np.ndarray | None,
        sample_weight: Any = None,
        spread: EntrySpread | None = None,
    ) -> Self:
        """Draw the frequencies, select among them and adapt them.

        See `surff.estimators.Features.fit_checked`.
        """
        gamma = bandwidth(self.gamma, X, sample_weight, spread)
        rng = as_generator(self.random_state)
        candidates = _Candidates(self, gamma, X, rng)
        frequencies, weights = self._chosen(candidates, X, Y, rng, sample_weight)
        warp = None
        if self.adapt is not None:
            start = np.asarray(frequencies), weights
            frequencies, warp = self._adapted(*start, X, Y, rng, sample_weight)
            weights = np.ones(len(frequencies))
        if other_namespace(X) is not None:
            frequencies = asarray_like(np.asarray(frequencies), X)
            weights = asarray_like(weights, X, wide_dtype(X))
            if warp is not None:
                warp = asarray_like(warp, X, wide_dtype(X))
        elif isinstance(frequencies, np.ndarray):
            # Laid out by feature, as products read them: for sparse rows every call of
            # transform would copy them, for dense ones every block a little longer.
            frequencies = np.asfortranarray(frequencies)
        phase = None
        if self.n_components % 2:
            # Drawn last: more columns extend the same frequencies.
            phase = float(rng.uniform(0.0, 2.0 * np.pi))
        self.gamma_, self.n_features_in_ = gamma, X.shape[1]
        self.frequencies_, self.importance_weights_ = frequencies, weights
        for name, value in (("phase_", phase), ("warp_", warp)):
            if value is not None:
                setattr(self, name, value)
            else:
                vars(self).pop(name, None)  # an earlier fit's
        return self

    def _chosen(self, candidates, X, Y, rng, sample_weight):
        """Frequencies that are drawn or selected, and their weights."""
        n_frequencies = (self.n_components + 1) // 2
        if self.select is None:
            frequencies, weights = candidates.draw(n_frequencies)
            if weights is None:
                return frequencies, np.ones(n_frequencies)
            if weights.min() < 0:
                raise ValueError(
                    f"draw={self.draw!r} gives negative weights, which no real feature "
                    "map can carry: use signed=False, or "
                    "surff.kernels.kernel_estimate for the kernel alone."
                )
            return frequencies, weights
        selector = self._part("select", Y, "scores frequencies with")
        selection = selector.select(
            candidates.pool, X, Y, n_frequencies, rng, sample_weight
        )
        return checked_selection(selection, n_frequencies, X.shape[1])

    def _part(self, name, Y, does):
        """The selector or the adaptation, ready to work."""
        asked, (table, base) = getattr(self, name), _PARTS[name]
        part = clone(one_of(name, asked, table, name), safe=False)
        if Y is None and flag_of(part, base, "needs_target"):
            raise ValueError(
                f"{name}={asked!r} {does} the target: fit requires y to be passed, but "
                "the target y is None."
            )
        return part

    def _adapted(self, frequencies, weights, X, Y, rng, sample_weight):
        """Frequencies that the draw or the selection gave, moved, and the warp."""
        adaptation = self._part("adapt", Y, "fits the frequencies to")
        if self.select is None and not np.all(weights == 1.0):
            raise ValueError(
                f"draw={self.draw!r} weights its frequencies, and adapt={self.adapt!r} "
                "moves frequencies of equal weights: use adapt=None or another draw."
            )
        adapted = adaptation.adapt(frequencies, X, Y, rng, sample_weight)
        return checked_adaptation(adapted, *frequencies.shape)

    @property
    def needs_target(self) -> bool:
        """Whether the selection or the adaptation looks at the targets."""
        return any(self._flag(name, "needs_target") for name in ("select", "adapt"))

    def looks_at(self) -> LooksAt:
        """Return what fitting looks at of ``X``; see `surff.estimators.Features`."""
        is_name = isinstance(self.gamma, str)
        if self.adapt is not None or (is_name and self.gamma == "median"):
            return LooksAt.ROWS
        if self.select is None:
            return LooksAt.SUMS if is_name else LooksAt.COLUMNS
        return LooksAt.ROWS if self._flag("select", "needs_rows") else LooksAt.SUMS

    def numpy_only(self) -> NumpyOnly | None:
        """Return the option that needs NumPy arrays, or None."""
        for name, (table, _) in _PARTS.items():
            part = getattr(self, name, None)  # stored models may be older
            if part is None or self._flag(name, "takes_arrays"):
                continue
            able = [key for key, rule in sorted(table.items()) if rule.takes_arrays]
            return NumpyOnly(name, part, f"None or one of {able}")
        return None

    def _flag(self, name, flag):
        """What the selector or the adaptation says of itself; False if it is None."""
        part = getattr(self, name)
        table, base = _PARTS[name]
        if isinstance(part, str):
            part = table.get(part)
        # An instance answers for its parameters; of a name, one with the defaults.
        part = part() if isinstance(part, type) else part
        return part is not None and flag_of(part, base, flag)

    def feature_map(self) -> Any:
        """Return the fitted map of checked blocks of rows."""
        frequencies, weights = self.frequencies_, self.importance_weights_
        if (xp := other_namespace(weights)) is not None:
            amplitudes = xp.astype(xp.sqrt(weights), frequencies.dtype)
            pairs = ArrayFourierMap(frequencies, amplitudes)
        else:
            amplitudes = np.sqrt(weights).astype(frequencies.dtype)
            pairs = FourierMap(frequencies, amplitudes)
        if hasattr(self, "phase_"):
            pairs = OddFourierMap(pairs, self.phase_)
        return WarpedMap(pairs, self.warp_) if hasattr(self, "warp_") else pairs

    @over_blocks
    def transform(self, X: Array, *, out: np.ndarray | None = None) -> Array:
        """Map rows to features.

        Parameters
        ----------
        X : array-like, sparse matrix or Dask collection of shape \
                (n_samples, n_features)
            Data, finite.
        out : ndarray of shape (n_samples, n_components), optional
            C-contiguous array of the dtype of ``X`` to write into, for rows of NumPy or
            SciPy: a call that is repeated then touches no fresh memory, which takes as
            long as the map itself for large results.

        Returns
        -------
        Z : ndarray, or lazy Dask array, of shape (n_samples, n_components)
            Cosines in the first half of the columns, sines in the second; dtype of
            ``X``.
        """
        check_is_fitted(self)
        X = validated(self, X, reset=False)
        check_same_place(self, self.importance_weights_, X, "transform")
        return mapped(self.feature_map().astype(X.dtype), X, out)

    def measure(self) -> Any:
        """Return the spectral measure of the kernel that the features approximate.

        Returns
        -------
        SpectralMeasure
            For bandwidth ``gamma_``, its samples are to be scaled; see
            `surff.kernels.SpectralMeasure`.
        """
        return one_of("kernel", self.kernel, KERNELS, "sample")

    def exact_kernel(self, X: Array, Y: np.ndarray | None = None) -> np.ndarray:
        """Return the kernel matrix that the features approximate.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples_X, n_features)
            Rows.
        Y : array-like or sparse matrix of shape (n_samples_Y, n_features), optional
            Other rows; ``X`` by default.

        Returns
        -------
        K : ndarray of shape (n_samples_X, n_samples_Y)
            Of the kernel that the frequencies were drawn for. Features whose
            frequencies an adaptation has moved have another.
        """
        check_is_fitted(self)
        X = rows_of_kernel(self, X)
        Y = X if Y is None else rows_of_kernel(self, Y)
        return SpectralKernel(self.measure(), self.gamma_)(X, Y)

    def bend(self, X: Array) -> Array:
        """Bend the columns of checked rows; without a ``warp_`` they stay ``X``."""
        if not hasattr(self, "warp_"):
            return X
        return warped(X.toarray() if sparse.issparse(X) else X, self.warp_)


class _Candidates:
    """Frequencies of a feature map's draw, in units of the data.

    Parameters
    ----------
    features : FourierFeatures
    gamma : float or ndarray of shape (n_features,)
        Bandwidth.
    X : array or CSR matrix of shape (n_samples, n_features)
        Says how many columns, and which dtype.
    rng : numpy.random.Generator
    """

    def __init__(self, features, gamma, X, rng):
        self.features, self.rng = features, rng
        self.n_features, self.dtype = X.shape[1], numpy_dtype(X)
        self.measure = one_of("kernel", features.kernel, KERNELS, "sample")
        self.scale = self.measure.scale(gamma)

    def draw(self, n):
        """Frequencies, and their weights or None."""
        draw = one_of("draw", self.features.draw, DRAWS, "draw")
        drawn = draw.draw(self.measure, n, self.n_features, self.rng)
        frequencies, weights = checked_draw(
            drawn, self.features.draw, n, self.n_features
        )
        return scaled_frequencies(self.scale, frequencies, self.dtype), weights

    def pool(self, n):
        """Frequencies without weights, as selectors take them."""
        frequencies, weights = self.draw(n)
        if weights is not None:
            raise ValueError(
                f"draw={self.features.draw!r} weights its frequencies, and so does "
                f"select={self.features.select!r}: use select=None or another draw."
            )
        return np.asarray(frequencies)


#: Parts that may look at the data: their tables, and the classes whose flags are the
#: defaults for objects of users.
_PARTS = {
    "select": (SELECTORS, Selector),
    "adapt": (ADAPTATIONS, Adaptation),
}
