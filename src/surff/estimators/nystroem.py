"""Nystrom features as a scikit-learn transformer."""

from __future__ import annotations

import numbers
import warnings
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.metrics.pairwise import KERNEL_PARAMS, PAIRWISE_KERNEL_FUNCTIONS
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import check_array, check_is_fitted

from surff.backend import Array, as_generator
from surff.estimators._bandwidth import GAMMA_CONSTRAINTS, bandwidth
from surff.estimators.base import N_COMPONENTS, Features, rows_of_kernel
from surff.kernels import (
    KERNELS,
    NEGATIVE_SHARE,
    KernelMatrix,
    NystroemMap,
    PairwiseKernel,
    PrecomputedKernel,
    SpectralKernel,
    inverse_root,
)
from surff.selection import LANDMARK_RULES, kmeans_centres
from surff.streaming import EntrySpread

__all__ = ["NystroemFeatures"]


class NystroemFeatures(Features):
    r"""Nystrom features of any kernel, from landmarks chosen by what the data say.

    Maps a row x to

    .. math:: \varphi(x) = k(x, C)\, K_{CC}^{+1/2}

    with landmarks C, so that :math:`\varphi(x)^\top \varphi(x')` is the kernel where x
    or x' is a landmark, and close to it where landmarks represent them.

    Parameters
    ----------
    n_components : int, default=256
        Landmarks, and columns that `transform` returns, at most: there are fewer where
        the data have fewer rows (of positive weight), and where "rpcholesky" finds that
        more would add nothing. Not used for landmarks of your own.
    kernel : str, SpectralMeasure, callable or "precomputed", default="rbf"
        A key of `surff.kernels.KERNELS` or an object of that module; a name of
        `sklearn.metrics.pairwise.pairwise_kernels`, such as "poly" or "cosine"; a
        function of two rows that returns a number, or a kernel of
        `sklearn.gaussian_process.kernels`; or "precomputed": ``X`` is the kernel matrix
        of the rows, and in `transform` that of rows and training rows. A name that both
        have is the same kernel.
    gamma : {"scale", "median"}, float or array-like of shape (n_features,), \
            default="scale"
        Bandwidth, as in `FourierFeatures`. scikit-learn's "poly", "sigmoid" and "chi2"
        take a number or "scale", which for "chi2" is 1; its other kernels ignore gamma.
        Callables and "precomputed" take none.
    landmarks : {"uniform", "leverage", "rpcholesky", "kmeans"}, array-like or sparse \
            matrix of shape (m, n_features), or array-like of int, shape (m,), \
            default="uniform"
        How landmarks are chosen: rows at random, rows by approximate ridge leverage,
        rows by randomly pivoted Cholesky, or centres of clusters. Or landmarks of your
        own, or the numbers of rows of ``X``.
    random_state : int, RandomState, Generator or None, default=None
        Randomness of the choice of landmarks.
    degree : float, default=None
        Degree of the polynomial kernel; None is scikit-learn's default.
    coef0 : float, default=None
        Constant of the polynomial and sigmoid kernels; None is scikit-learn's default.
    kernel_params : dict, default=None
        Further arguments of a kernel named or given as a function: ``{"nu": 2.5}`` for
        "matern".

    Attributes
    ----------
    landmarks_ : ndarray or CSR matrix of shape (m, n_features), or None
        Landmarks C; None for a precomputed kernel.
    landmark_indices_ : ndarray of int, shape (m,), or None
        Their rows in ``X``; None for clusters and landmarks of your own.
    normalization_ : ndarray of shape (m, m)
        :math:`K_{CC}^{+1/2}`, symmetric, float64.
    gamma_ : float, ndarray of shape (n_features,) or None
        Bandwidth used; None for a kernel without.
    n_features_in_ : int
        Columns of ``X``.
    feature_names_in_ : ndarray of str
        Names of the columns, where ``X`` has them.

    See Also
    --------
    surff.FourierFeatures : Random features of shift-invariant kernels, data-blind.
    sklearn.kernel_approximation.Nystroem : Uniform landmarks.

    Notes
    -----
    Rules look at ``X`` alone, never at ``y``. The guide to Nystrom features says what
    each costs and when to pick it. `transform` takes ``O(m (n_features + m))`` time a
    row. No matrix of n by n is formed: "rpcholesky" holds ``n (m + 1)`` numbers, the
    others ``O(n + m^2)`` and blocks of rows.

    float32 data give float32 features, computed in float64 one block at a time, since
    :math:`K_{CC}^{+1/2}` amplifies rounding. Eigenvalues of :math:`K_{CC}` below its
    rounding are cut, so that landmarks that repeat do no harm.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.metrics.pairwise import rbf_kernel
    >>> from surff import NystroemFeatures
    >>> X = np.linspace(0.0, 3.0, 200)[:, None]
    >>> features = NystroemFeatures(10, gamma=0.5, landmarks="rpcholesky")
    >>> Z = features.fit_transform(X)
    >>> bool(abs(Z @ Z.T - rbf_kernel(X, gamma=0.5)).max() < 1e-4)
    True
    """

    _parameter_constraints: dict = {  # noqa: RUF012  (scikit-learn's convention)
        "n_components": N_COMPONENTS,
        "kernel": [
            StrOptions({*KERNELS, *PAIRWISE_KERNEL_FUNCTIONS, "precomputed"}),
            HasMethods("kernel"),
            callable,
        ],
        "gamma": GAMMA_CONSTRAINTS,
        "landmarks": [
            StrOptions({*LANDMARK_RULES, "kmeans"}),
            "array-like",
            "sparse matrix",
        ],
        "random_state": ["random_state", np.random.Generator],
        "degree": [Interval(numbers.Real, 1, None, closed="left"), None],
        "coef0": [Interval(numbers.Real, None, None, closed="neither"), None],
        "kernel_params": [dict, None],
    }

    def __init__(
        self,
        n_components: int = 256,
        *,
        kernel: Any = "rbf",
        gamma: Any = "scale",
        landmarks: Any = "uniform",
        random_state: Any = None,
        degree: float | None = None,
        coef0: float | None = None,
        kernel_params: dict | None = None,
    ):
        self.n_components = n_components
        self.kernel = kernel
        self.gamma = gamma
        self.landmarks = landmarks
        self.random_state = random_state
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params

    needs_target = False

    def fit_checked(
        self,
        X: Array,
        Y: np.ndarray | None,
        sample_weight: Any = None,
        spread: EntrySpread | None = None,
    ) -> Self:
        """Choose the landmarks and compute their normalization; ``Y`` is not looked at.

        See `surff.estimators.Features.fit_checked`.
        """
        del Y
        if sample_weight is not None and not sample_weight.any():
            raise ValueError("sample_weight must have a positive entry, got all zeros.")
        if self._is_precomputed() and X.shape[0] != X.shape[1]:
            raise ValueError(
                "X must be the square kernel matrix of the rows for "
                f"kernel='precomputed', got shape {X.shape}."
            )
        gamma = self._checked_gamma(X, sample_weight, spread)
        kernel = self._kernel(gamma)
        rng = as_generator(self.random_state)
        chosen = self._choose(kernel, X, rng, sample_weight)
        if chosen.ndim == 1:
            matrix = KernelMatrix(kernel, X)
            indices = chosen
            landmarks = None if self._is_precomputed() else X[chosen]
            K = matrix.block(chosen, chosen)
            normalization, smallest = inverse_root(K, matrix.eps)
        else:
            indices, landmarks = None, chosen
            normalization, smallest = inverse_root(kernel(chosen, chosen))
        if smallest < -NEGATIVE_SHARE:
            warnings.warn(
                f"kernel={self.kernel!r} is not positive semi-definite on the "
                f"landmarks: its smallest eigenvalue is {smallest:.2g} times its "
                "largest. Its negative part is left out.",
                stacklevel=4,
            )
        self.landmark_indices_, self.landmarks_ = indices, landmarks
        self.gamma_, self.normalization_ = gamma, normalization
        self._dtype, self.n_features_in_ = X.dtype, X.shape[1]
        return self

    def _is_precomputed(self):
        return isinstance(self.kernel, str) and self.kernel == "precomputed"

    def _is_spectral(self):
        if isinstance(self.kernel, str):
            return self.kernel in KERNELS
        return not callable(self.kernel)

    def _checked_gamma(self, X, sample_weight, spread):
        """The bandwidth, or None for a kernel that has none."""
        is_default = isinstance(self.gamma, str) and self.gamma == "scale"
        if self._is_spectral():
            return bandwidth(self.gamma, X, sample_weight, spread)
        if not isinstance(self.kernel, str) or self._is_precomputed():
            given = {
                name: value
                for name, value in (
                    ("gamma", None if is_default else self.gamma),
                    ("degree", self.degree),
                    ("coef0", self.coef0),
                )
                if value is not None
            }
            if given:
                raise ValueError(
                    "gamma, degree and coef0 must be left at their defaults for a "
                    f"callable or precomputed kernel, got {given!r}."
                )
            return None
        if "gamma" not in KERNEL_PARAMS[self.kernel]:
            return None
        if is_default and self.kernel == "chi2":
            return 1.0
        if not is_default and not isinstance(self.gamma, numbers.Real):
            raise ValueError(
                f"gamma must be 'scale' or a number for kernel={self.kernel!r}, got "
                f"{self.gamma!r}."
            )
        return bandwidth(self.gamma, X, sample_weight, spread)

    def _kernel(self, gamma):
        """What evaluates blocks of the kernel."""
        if isinstance(self.kernel, type):
            raise TypeError(
                "kernel must be a name, an object or a function, got the class "
                f"{self.kernel!r}."
            )
        params = {} if self.kernel_params is None else dict(self.kernel_params)
        if self._is_spectral() and isinstance(self.kernel, str):
            try:
                return SpectralKernel(KERNELS[self.kernel](**params), gamma)
            except TypeError as error:
                raise ValueError(
                    f"kernel_params must hold parameters of kernel={self.kernel!r}, "
                    f"got {params!r}: {error}."
                ) from error
        if params and (self._is_spectral() or self._is_precomputed()):
            raise ValueError(
                f"kernel_params must be None for kernel={self.kernel!r}, got "
                f"{params!r}."
            )
        if self._is_spectral():
            return SpectralKernel(self.kernel, gamma)
        if self._is_precomputed():
            return PrecomputedKernel()
        own = {"gamma": gamma, "degree": self.degree, "coef0": self.coef0}
        params.update((key, value) for key, value in own.items() if value is not None)
        return PairwiseKernel(self.kernel, params)

    def _choose(self, kernel, X, rng, sample_weight):
        """Row numbers of the landmarks, in one dimension, or the landmarks."""
        landmarks = self.landmarks
        if isinstance(landmarks, str) and landmarks in LANDMARK_RULES:
            matrix = KernelMatrix(kernel, X, sample_weight)
            return LANDMARK_RULES[landmarks](matrix, self.n_components, rng)
        is_array = not isinstance(landmarks, str)
        if is_array and not sparse.issparse(landmarks):
            landmarks = np.asarray(landmarks)
        if is_array and landmarks.ndim == 1:
            return _checked_indices(landmarks, X.shape[0])
        if self._is_precomputed():
            raise ValueError(
                f"landmarks must be one of {sorted(LANDMARK_RULES)} or row numbers for "
                "kernel='precomputed', which has no points, got "
                f"{'an array of points' if is_array else repr(landmarks)}."
            )
        if not is_array:
            return kmeans_centres(X, self.n_components, rng, sample_weight)
        landmarks = check_array(
            landmarks, dtype=X.dtype, accept_sparse="csr", input_name="landmarks"
        )
        if landmarks.shape[1] != X.shape[1]:
            raise ValueError(
                f"landmarks must have the {X.shape[1]} columns of X, got shape "
                f"{landmarks.shape}."
            )
        return landmarks.copy()

    def feature_map(self) -> Any:
        """Return the fitted map of checked blocks of rows."""
        landmarks = self.landmarks_
        if landmarks is None:
            landmarks = self.landmark_indices_
        return NystroemMap(
            self._kernel(self.gamma_), landmarks, self.normalization_, self._dtype
        )

    def exact_kernel(self, X: Array, Y: np.ndarray | None = None) -> np.ndarray:
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

        Raises
        ------
        ValueError
            For ``kernel="precomputed"``, whose matrix is the data.
        """
        check_is_fitted(self)
        if self._is_precomputed():
            raise ValueError(
                "kernel='precomputed' has no exact_kernel: its matrix is the data."
            )
        X = rows_of_kernel(self, X)
        return self._kernel(self.gamma_)(X, X if Y is None else rows_of_kernel(self, Y))

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._is_precomputed()
        return tags


def _checked_indices(indices, n_samples):
    """Row numbers as an array of int."""
    integers = np.issubdtype(indices.dtype, np.integer)
    if not integers or not len(indices):
        raise ValueError(
            "landmarks must be points of shape (m, n_features) or row numbers, m >= 1 "
            f"ints, got an array of shape {indices.shape} and dtype {indices.dtype}."
        )
    if indices.min() < 0 or indices.max() >= n_samples:
        raise ValueError(
            f"landmarks must be row numbers from 0 to {n_samples - 1}, got "
            f"{indices.min()} to {indices.max()}."
        )
    return indices.astype(np.intp)
