"""Feature maps as scikit-learn transformers."""

import numbers
from functools import partial

import numpy as np
from scipy import sparse
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    _fit_context,
    clone,
)
from sklearn.utils import get_tags
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import (
    check_array,
    check_consistent_length,
    check_is_fitted,
)

from surff.adaptation import ADAPTATIONS
from surff.backend import (
    FLOAT_DTYPES,
    array_api_support,
    as_generator,
    asarray_like,
    check_same_place,
    checked_weight,
    map_rows,
    numpy_dtype,
    one_of,
    other_namespace,
    to_numpy_if_dispatched,
    validated,
    wide_dtype,
)
from surff.draws import DRAWS, split_weights
from surff.estimators._bandwidth import bandwidth
from surff.estimators._targets import _coded, numeric_targets
from surff.kernels import (
    KERNELS,
    ArrayFourierMap,
    FourierMap,
    OddFourierMap,
    SpectralKernel,
    WarpedMap,
    warped,
)
from surff.selection import SELECTORS
from surff.streaming import (
    N_SAMPLE,
    DaskRows,
    Passes,
    WorkerRows,
    is_dask,
    over_blocks,
    survey,
)

__all__ = [
    "FourierFeatures",
    "fitted_on_workers",
    "rows_of_kernel",
]


class FourierFeatures(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    r"""Random Fourier features of a shift-invariant kernel.

    Maps a row x to

    .. math:: \varphi(x) = \tfrac{1}{\sqrt s} \bigl[a_i \cos w_i^\top x \bigr]_i
              \oplus \tfrac{1}{\sqrt s} \bigl[a_i \sin w_i^\top x \bigr]_i

    so that :math:`\varphi(x)^\top \varphi(x')` estimates the kernel. The frequencies
    :math:`w_i` are drawn from the kernel's spectral measure and, with ``select``,
    chosen among more candidates by what the data say of them.

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
        most 1,000 rows that lie evenly spread in ``X``; an array holds one bandwidth a
        feature.
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
        and its gamma are then where it starts; "auto" also bends the columns. A draw
        with weights of its own takes none, importance weights of a selection are
        dropped, and a structured draw becomes an array. The guide to adaptation says
        what it brings.
    random_state : int, RandomState, Generator or None, default=None
        Randomness of the draw, the selection and the adaptation. The same int gives the
        same frequencies whatever the dtype of ``X``; but an adaptation carries rounding
        errors on, so its results differ between dtypes and between machines.

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
    sklearn.kernel_approximation.RBFSampler : One random offset a column, data-blind.
    surff.KernelRidgeClassifier : Ridge on these features, streaming.

    Notes
    -----
    What a map looks at: the draws only the number of columns (and ``X.var()`` for
    gamma="scale"), ``select="leverage"`` the rows of ``X``, as does "compression",
    and ``select="surrogate"`` both ``X`` and ``y``, as do the others and ``adapt``.
    `transform` takes ``O(n_features)`` time a value.

    With scikit-learn's ``array_api_dispatch``, arrays of other libraries such as
    PyTorch are taken and stay on their device; the guide to arrays says what with.

    When `fit` scores candidates with ``y``, targets that
    `sklearn.utils.multiclass.type_of_target` calls binary or multiclass are coded
    one-vs-rest as -1 and 1; others are taken as numbers, as they are (not centred).

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
        "n_components": [Interval(numbers.Integral, 1, None, closed="left")],
        "kernel": [StrOptions(set(KERNELS)), HasMethods(["sample", "scale", "kernel"])],
        "gamma": [
            StrOptions({"scale", "median"}),
            Interval(numbers.Real, 0.0, None, closed="neither"),
            "array-like",
        ],
        "draw": [StrOptions(set(DRAWS)), HasMethods("draw")],
        "select": [None, StrOptions(set(SELECTORS)), HasMethods("select")],
        "adapt": [None, StrOptions(set(ADAPTATIONS)), HasMethods("adapt")],
        "random_state": ["random_state", np.random.Generator],
    }

    def __init__(
        self,
        n_components=256,
        *,
        kernel="rbf",
        gamma="scale",
        draw="monte_carlo",
        select=None,
        adapt=None,
        random_state=None,
    ):
        self.n_components = n_components
        self.kernel = kernel
        self.gamma = gamma
        self.draw = draw
        self.select = select
        self.adapt = adapt
        self.random_state = random_state

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None, sample_weight=None):
        """Draw the frequencies, and select among them if asked to.

        Parameters
        ----------
        X : array-like, sparse matrix or Dask collection of shape \
                (n_samples, n_features)
            Data, finite. float32 is kept, anything else becomes float64. Rows of a Dask
            collection stay on the workers; see the guide to clusters.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), optional
            Labels or numbers; needed by selections that look at it and adaptations.
        sample_weight : array-like of shape (n_samples,), optional
            Row weights, >= 0, used by selectors and adaptations.

        Returns
        -------
        self
        """
        if is_dask(X):
            return fitted_on_workers(self, X, y, sample_weight)
        X = validated(self, X)
        Y = None if y is None else numeric_targets(to_numpy_if_dispatched(y), X)
        if sample_weight is not None:
            sample_weight = checked_weight(sample_weight, X)
        return self._fit(X, Y, sample_weight)

    def _fit(self, X, Y, sample_weight=None, spread=None):
        """`fit` on checked data: ``Y`` is None or (n_samples, n_targets) numbers.

        ``spread`` is the `EntrySpread` of all rows where ``X`` are some of them. ``X``
        may be `WorkerRows` without `_needs_rows`, and then bring targets and weights.
        """
        measure = one_of("kernel", self.kernel, KERNELS, "sample")
        draw = one_of("draw", self.draw, DRAWS, "draw")
        rng = as_generator(self.random_state)
        n_features = X.shape[1]
        n_frequencies = (self.n_components + 1) // 2
        self.gamma_ = bandwidth(self.gamma, X, sample_weight, spread)
        scale = measure.scale(self.gamma_)

        def drawn(n):
            frequencies, weights = split_weights(draw.draw(measure, n, n_features, rng))
            return (scale * frequencies).astype(numpy_dtype(X), copy=False), weights

        def candidates(n):
            frequencies, weights = drawn(n)
            if weights is not None:
                raise ValueError(
                    f"draw={self.draw!r} weights its frequencies, and so does "
                    f"select={self.select!r}: use select=None or another draw."
                )
            return np.asarray(frequencies)

        if self.select is None:
            frequencies, weights = drawn(n_frequencies)
            if weights is None:
                weights = np.ones(n_frequencies)
            elif weights.min() < 0:
                raise ValueError(
                    f"draw={self.draw!r} gives negative weights, which no real feature "
                    "map can carry: use signed=False, or "
                    "surff.kernels.kernel_estimate for the kernel alone."
                )
        else:
            selector = one_of("select", self.select, SELECTORS, "select")
            if Y is None and getattr(selector, "needs_target", True):
                raise ValueError(
                    f"select={self.select!r} scores frequencies with the target: fit "
                    "requires y to be passed, but the target y is None."
                )
            frequencies, weights = clone(selector).select(
                candidates, X, Y, n_frequencies, rng, sample_weight
            )
        warp = None
        if self.adapt is not None:
            frequencies, warp = self._adapted(
                frequencies, weights, X, Y, rng, sample_weight
            )
            weights = np.ones(n_frequencies)
        if other_namespace(X) is not None:
            frequencies = asarray_like(np.asarray(frequencies), X)
            weights = asarray_like(weights, X, wide_dtype(X))
            if warp is not None:
                warp = asarray_like(warp, X, wide_dtype(X))
        self.frequencies_, self.importance_weights_ = frequencies, weights
        if isinstance(self.frequencies_, np.ndarray):
            # Laid out by feature, as products read them: for sparse rows every call of
            # transform would copy them, for dense ones every block a little longer.
            self.frequencies_ = np.asfortranarray(self.frequencies_)
        for name in ("phase_", "warp_"):
            self.__dict__.pop(name, None)  # an earlier fit's
        if warp is not None:
            self.warp_ = warp
        if self.n_components % 2:
            # Drawn last: more columns extend the same frequencies.
            self.phase_ = float(rng.uniform(0.0, 2.0 * np.pi))
        self.n_features_in_ = n_features
        self._n_features_out = self.n_components
        return self

    def _adapted(self, frequencies, weights, X, Y, rng, sample_weight):
        """Frequencies that the draw or the selection gave, moved, and the warp."""
        adaptation = clone(one_of("adapt", self.adapt, ADAPTATIONS, "adapt"))
        if Y is None and getattr(adaptation, "needs_target", True):
            raise ValueError(
                f"adapt={self.adapt!r} fits the frequencies to the target: fit "
                "requires y to be passed, but the target y is None."
            )
        if self.select is None and not np.all(weights == 1.0):
            raise ValueError(
                f"draw={self.draw!r} weights its frequencies, and adapt={self.adapt!r} "
                "moves frequencies of equal weights: use adapt=None or another draw."
            )
        return adaptation.adapt(np.asarray(frequencies), X, Y, rng, sample_weight)

    def _looks_at_rows(self):
        """Whether `fit` looks at more of ``X`` than the number of its columns."""
        return isinstance(self.gamma, str) or not (
            self.select is None and self.adapt is None
        )

    def _needs_rows(self):
        """Whether `fit` needs rows themselves and not only sums over them."""
        if self.adapt is not None or _is_name(self.gamma, "median"):
            return True
        if self.select is None:
            return False
        selector = one_of("select", self.select, SELECTORS, "select")
        return getattr(selector, "needs_rows", True)

    def _numpy_only(self):
        """See `surff.backend.check_supported`."""
        for name, table in (("select", SELECTORS), ("adapt", ADAPTATIONS)):
            part = getattr(self, name, None)  # stored models may be older
            if part is None or _flag(part, table, "takes_arrays", False):
                continue
            able = [
                name
                for name, rule in sorted(table.items())
                if getattr(rule, "takes_arrays", False)
            ]
            return name, part, f"None or one of {able}"
        return None

    def _map(self):
        """The fitted map of checked row blocks."""
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
    def transform(self, X):
        """Map rows to features.

        Parameters
        ----------
        X : array-like, sparse matrix or Dask collection of shape \
                (n_samples, n_features)
            Data, finite.

        Returns
        -------
        Z : ndarray, or lazy Dask array, of shape (n_samples, n_components)
            Cosines in the first half of the columns, sines in the second; dtype of
            ``X``.
        """
        check_is_fitted(self)
        X = validated(self, X, reset=False)
        check_same_place(self, self.importance_weights_, X, "transform")
        return map_rows(self._map().astype(X.dtype), X)

    def measure(self):
        """Spectral measure of the kernel that the features approximate.

        Returns
        -------
        SpectralMeasure
            For bandwidth ``gamma_``, its samples are to be scaled; see
            `surff.kernels.SpectralMeasure`.
        """
        return one_of("kernel", self.kernel, KERNELS, "sample")

    def exact_kernel(self, X, Y=None):
        """Kernel matrix that the features approximate.

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

    def bend(self, X):
        """Bend the columns of checked rows; without a ``warp_`` they stay ``X``."""
        if not hasattr(self, "warp_"):
            return X
        return warped(X.toarray() if sparse.issparse(X) else X, self.warp_)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.array_api_support = array_api_support(self)
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        tags.target_tags.required = _flag(
            self.select, SELECTORS, "needs_target", False
        ) or _flag(self.adapt, ADAPTATIONS, "needs_target", True)
        return tags


def rows_of_kernel(features, X):
    """Rows for the exact kernel, checked without a look at the columns' names."""
    X = check_array(X, dtype=FLOAT_DTYPES, accept_sparse="csr")
    if X.shape[1] != features.n_features_in_:
        raise ValueError(
            f"X must have the {features.n_features_in_} columns that the features were "
            f"fitted to, got {X.shape[1]}."
        )
    return X


def _is_name(value, name):
    """Whether a parameter is that name, and not an array or an object."""
    return isinstance(value, str) and value == name


def fitted_on_workers(features, X, y, sample_weight):
    """Fit features to Dask collections, from sums or a sample of the rows."""
    if get_tags(features).input_tags.pairwise:
        raise ValueError(
            "features with kernel='precomputed' cannot be fitted to rows on workers: a "
            "row has a column for each of the others."
        )

    def check(X, y, first):
        X = validated(features, X, reset=first)
        if y is not None:
            y = check_array(y, dtype=None, ensure_2d=False, input_name="y")
            check_consistent_length(X, y)
        return X, y

    needs_rows = features._needs_rows()
    passes = Passes(DaskRows(X, y, sample_weight), check)
    whole = needs_rows or features._looks_at_rows()
    sample, spread, labels = survey(
        passes, N_SAMPLE if needs_rows else 1, whole, whole and y is not None
    )
    coded = None
    if labels is not None:
        coded = partial(_coded, labels.values)
    rows, Y, weight = sample.X, None, sample.sample_weight
    if coded is not None:
        Y = coded(sample.y)
    if not needs_rows:
        rows, weight = WorkerRows(passes, coded), None
    elif weight is not None and not weight.any():
        raise ValueError("sample_weight must have a positive entry, got all zeros.")
    return features._fit(rows, Y, weight, spread)


def _flag(part, table, name, default):
    """What a selector or an adaptation, by name or not, says of itself."""
    if isinstance(part, str):
        part = table.get(part)
    return part is not None and getattr(part, name, default)
