r"""Spectral measures of shift-invariant kernels.

By Bochner's theorem a shift-invariant kernel with :math:`k(x, x) = 1` is the Fourier
transform of a probability measure ``p``, its spectral measure:

.. math:: k(x - x') = \int p(w) \exp(-\mathrm i\, w^\top (x - x'))\, \mathrm d w.

A measure here is written for ``gamma = 1``; `SpectralMeasure.scale` turns its
frequencies into those of any other bandwidth, so a measure has no bandwidth of its own.
An array of ``gamma`` holds one bandwidth per feature.

Isotropic kernels here are mixtures of Gaussian kernels,

.. math:: k(r) = \mathrm E_\tau \exp(-\gamma \tau r^2),
          \qquad w = \sqrt{2 \gamma \tau}\, g, \quad g \sim N(0, I),

and differ in the law of :math:`\tau` alone. The others are products over features.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy.spatial.distance import cdist
from scipy.special import gammaincinv, gammaln, kve, ndtri
from sklearn.base import BaseEstimator
from sklearn.metrics.pairwise import laplacian_kernel, rbf_kernel

from surff.backend import positive

__all__ = [
    "KERNELS",
    "Cauchy",
    "Exponential",
    "ExponentialPower",
    "Gaussian",
    "Laplace",
    "Matern",
    "Product",
    "RationalQuadratic",
    "ScaleMixture",
    "SpectralMeasure",
    "Sum",
    "golden_sequence",
    "open_uniform",
]


#: Largest mixing variable. Frequencies of 1e15 and more have cosines without a correct
#: digit, and larger ones would overflow in float32.
LARGEST_TAU = 1e30


class SpectralMeasure(BaseEstimator):
    """What a kernel must offer to be approximated by random Fourier features.

    Subclass it to bring your own kernel: give `unit_kernel`, `scale` and `quantile`.
    `sample` follows from `quantile` and `kernel` from `unit_kernel`; override them
    where there is a faster way.
    """

    #: Uniform coordinates that `mixing` needs, for an isotropic measure.
    n_mixing = 0

    def kernel(
        self,
        X: npt.ArrayLike,
        Y: npt.ArrayLike | None = None,
        gamma: npt.ArrayLike = 1.0,
    ) -> np.ndarray:
        """Kernel matrix.

        Parameters
        ----------
        X : array of shape (n_samples_X, n_features)
            Rows.
        Y : array of shape (n_samples_Y, n_features), optional
            Other rows; ``X`` by default.
        gamma : float or array of shape (n_features,), default=1.0
            Bandwidth, > 0, or one per feature.

        Returns
        -------
        K : ndarray of shape (n_samples_X, n_samples_Y)
        """
        X = np.asarray(X, dtype=np.float64)
        Y = X if Y is None else np.asarray(Y, dtype=np.float64)
        # A common shift changes no value and keeps |x|^2 - 2 x.y + |y|^2 accurate.
        factor, centre = self.scale(gamma), X.mean(axis=0)
        K = self.unit_kernel((X - centre) * factor, (Y - centre) * factor)
        if Y is X:  # whatever rounding leaves of the distances of large rows
            np.fill_diagonal(K, 1.0)
        return K

    def unit_kernel(self, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
        """Kernel matrix for gamma = 1, shape (n_samples_X, n_samples_Y), float64."""
        del X, Y  # for subclasses
        raise TypeError(f"{type(self).__name__} does not define unit_kernel")

    def sample(
        self, rng: np.random.Generator, n_frequencies: int, n_features: int
    ) -> np.ndarray:
        """Independent frequencies for gamma = 1, shape (n_frequencies, n_features).

        The first rows do not depend on ``n_frequencies``.
        """
        return self.quantile(
            open_uniform(rng, (n_frequencies, self.n_coordinates(n_features)))
        )

    def n_coordinates(self, n_features: int) -> int:
        """Uniform coordinates that `quantile` needs for one frequency."""
        return n_features

    def quantile(self, U: np.ndarray) -> np.ndarray:
        """Frequencies for gamma = 1 from points of the open unit cube, row by row."""
        del U  # for subclasses
        raise TypeError(f"{type(self).__name__} does not define quantile")

    def scale(self, gamma: npt.ArrayLike) -> npt.ArrayLike:
        """Factor from the frequencies at gamma = 1 to the frequencies at ``gamma``."""
        del gamma  # for subclasses
        raise TypeError(f"{type(self).__name__} does not define scale")

    def mixing(self, U: np.ndarray) -> np.ndarray:
        r"""Values of :math:`\tau` from uniform points of shape (n, `n_mixing`)."""
        del U  # for subclasses
        raise TypeError(
            f"{type(self).__name__} is not isotropic: it has no mixing law and no "
            "radial law, which orthogonal and spherical draws need"
        )

    def radial_law(
        self, rng: np.random.Generator, n_frequencies: int, n_features: int
    ) -> np.ndarray:
        r"""Independent norms :math:`|w|` for gamma = 1 in ``n_features`` dimensions.

        :math:`|w|^2 = 2 \tau \chi^2_d`. Raises TypeError where the measure is not
        isotropic.
        """
        U = open_uniform(rng, (n_frequencies, 1 + self.n_mixing))
        chi_square = 2.0 * gammaincinv(n_features / 2.0, U[:, 0])
        return np.sqrt(2.0 * self.mixing(U[:, 1:]) * chi_square)


def open_uniform(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Uniform numbers in the open interval (0, 1): no quantile of them is infinite."""
    return rng.random(shape).clip(min=2.0**-54)


def golden_sequence(u: np.ndarray) -> np.ndarray:
    """Evenly spread numbers of (0, 1), as many as in ``u`` and from its first on.

    Multiples of the golden ratio shifted by a uniform number: each is uniform, so means
    over them stay unbiased, and any run of them divides the interval almost evenly.
    """
    golden = (math.sqrt(5.0) - 1.0) / 2.0
    return ((u[:1] + golden * np.arange(len(u))) % 1.0).clip(min=2.0**-54)


class ScaleMixture(SpectralMeasure):
    r"""An isotropic measure, by the law of its :math:`\tau`.

    Subclasses give `unit_kernel` and `mixing`, with `n_mixing` the number of uniform
    coordinates that `mixing` takes; these are the last ones of `quantile`.
    """

    n_mixing = 1

    def n_coordinates(self, n_features: int) -> int:
        """One per feature, and `n_mixing` for the mixing variable."""
        return n_features + self.n_mixing

    def quantile(self, U: np.ndarray) -> np.ndarray:
        """Frequencies for gamma = 1; the last coordinates give the mixing variable."""
        n_features = U.shape[1] - self.n_mixing
        tau = self.mixing(U[:, n_features:])
        return np.sqrt(2.0 * tau)[:, None] * ndtri(U[:, :n_features])

    def scale(self, gamma: npt.ArrayLike) -> npt.ArrayLike:
        """``sqrt(gamma)``: the bandwidth multiplies the squared distance."""
        return np.sqrt(gamma)


class Gaussian(ScaleMixture):
    r"""The Gaussian kernel :math:`k(x, x') = \exp(-\gamma \|x - x'\|^2)`.

    Its frequencies are :math:`w \sim N(0, 2 \gamma I)`. The paper's
    :math:`\exp(-\|x - x'\|^2 / \sigma^2)` has :math:`\gamma = 1 / \sigma^2`.

    Examples
    --------
    >>> import numpy as np
    >>> from surff.kernels.spectral import Gaussian
    >>> K = Gaussian().kernel(np.zeros((1, 2)), np.ones((1, 2)), gamma=0.5)
    >>> K.round(4)
    array([[0.3679]])
    """

    n_mixing = 0

    def unit_kernel(self, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
        """Kernel matrix for gamma = 1; see `SpectralMeasure`."""
        return rbf_kernel(X, Y, gamma=1.0)

    def sample(
        self, rng: np.random.Generator, n_frequencies: int, n_features: int
    ) -> np.ndarray:
        """Independent frequencies for gamma = 1; see `SpectralMeasure`."""
        return math.sqrt(2.0) * rng.standard_normal((n_frequencies, n_features))

    def mixing(self, U: np.ndarray) -> np.ndarray:
        r"""Values of :math:`\tau`; see `SpectralMeasure`."""
        return np.ones(len(U))


class Matern(ScaleMixture):
    r"""The Matern kernel of smoothness ``nu``.

    .. math:: k(r) = \frac{2^{1 - \nu}}{\Gamma(\nu)} t^\nu K_\nu(t),
              \qquad t = \sqrt{2 \nu}\, r / \ell, \quad \ell = (2 \gamma)^{-1/2},

    so that :math:`\nu \to \infty` is the Gaussian kernel of the same gamma. Frequencies
    are multivariate Student with :math:`2 \nu` degrees of freedom:
    :math:`\tau = \nu / G`, :math:`G \sim \Gamma(\nu, 1)`.

    Parameters
    ----------
    nu : float, default=1.5
        Smoothness, > 0: 0.5 is the exponential kernel; a process with this kernel has
        fewer than ``nu`` derivatives.

    References
    ----------
    .. [1] C. E. Rasmussen, C. K. I. Williams, "Gaussian Processes for Machine
       Learning", MIT Press, 2006, Eq. (4.14) and (4.15).

    Examples
    --------
    >>> from surff.kernels.spectral import Matern
    >>> Matern(nu=0.5).kernel([[0.0]], [[3.0]], gamma=0.5).round(4)
    array([[0.0498]])
    """

    def __init__(self, nu: float = 1.5) -> None:
        self.nu = nu

    def unit_kernel(self, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
        """Kernel matrix for gamma = 1; see `SpectralMeasure`."""
        nu = positive("nu", self.nu)
        if nu in (0.5, 1.5, 2.5):
            return _process_kernels().Matern(math.sqrt(0.5), nu=nu)(X, Y)
        return bessel_correlation(math.sqrt(4.0 * nu) * cdist(X, Y), nu)

    def mixing(self, U: np.ndarray) -> np.ndarray:
        r"""Values of :math:`\tau`; see `SpectralMeasure`."""
        nu = positive("nu", self.nu)
        return nu / np.maximum(gammaincinv(nu, U[:, 0]), nu / LARGEST_TAU)


def bessel_correlation(t: np.ndarray, nu: float) -> np.ndarray:
    r""":math:`2^{1-\nu} t^\nu K_\nu(t) / \Gamma(\nu)` for t >= 0, 1 at t = 0.

    In logarithms, since the factors overflow one by one. From ``nu = 100`` on the
    Bessel function is its uniform expansion, with a relative error below 1e-9.
    """
    constant = (1.0 - nu) * math.log(2.0) - gammaln(nu)
    if nu >= 100:
        root = np.sqrt(1.0 + np.square(t / nu))
        p = 1.0 / root
        u1 = (3.0 * p - 5.0 * p**3) / 24.0
        u2 = (81.0 * p**2 - 462.0 * p**4 + 385.0 * p**6) / 1152.0
        u3 = (
            30375.0 * p**3 - 369603.0 * p**5 + 765765.0 * p**7 - 425425.0 * p**9
        ) / 414720.0
        series = 1.0 - u1 / nu + u2 / nu**2 - u3 / nu**3
        constant += nu * math.log(nu) + 0.5 * math.log(math.pi / (2.0 * nu))
        exponent = nu * (np.log1p(root) - root) - 0.5 * np.log(root)
        return np.exp(constant + exponent) * series
    with np.errstate(divide="ignore", invalid="ignore"):
        bessel = kve(nu, t)
        value = np.exp(constant + nu * np.log(t) + np.log(bessel) - t)
    # K_nu overflows close to 0, where two terms of its series are exact to rounding.
    z = np.square(t) / 4.0
    near = 1.0 - z / (nu - 1.0) * (1.0 - z / (2.0 * (nu - 2.0))) if nu > 3 else 1.0
    return np.where(np.isfinite(bessel), value, near)


class Exponential(ScaleMixture):
    r"""The exponential kernel :math:`\exp(-\sqrt{2 \gamma}\, \|x - x'\|)`, Matern 1/2.

    The norm is Euclidean; `Laplace` has the sum of absolute differences.

    Examples
    --------
    >>> from surff.kernels.spectral import Exponential
    >>> Exponential().kernel([[0.0, 0.0]], [[3.0, 4.0]], gamma=0.5).round(4)
    array([[0.0067]])
    """

    def unit_kernel(self, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
        """Kernel matrix for gamma = 1; see `SpectralMeasure`."""
        return np.exp(-math.sqrt(2.0) * cdist(X, Y))

    def mixing(self, U: np.ndarray) -> np.ndarray:
        r"""Values of :math:`\tau`; see `SpectralMeasure`."""
        return Matern(nu=0.5).mixing(U)


class RationalQuadratic(ScaleMixture):
    r"""The rational quadratic kernel :math:`(1 + \gamma r^2 / \alpha)^{-\alpha}`.

    scikit-learn's with length scale :math:`(2 \gamma)^{-1/2}`; :math:`\alpha \to
    \infty` is the Gaussian kernel of the same gamma.
    :math:`\tau \sim \Gamma(\alpha, \text{scale } 1 / \alpha)`.

    Parameters
    ----------
    alpha : float, default=1.0
        Weight of the short lengths, > 0. Not a regularisation.

    References
    ----------
    .. [1] C. E. Rasmussen, C. K. I. Williams, "Gaussian Processes for Machine
       Learning", MIT Press, 2006, Eq. (4.19) and (4.20).

    Examples
    --------
    >>> from surff.kernels.spectral import RationalQuadratic
    >>> RationalQuadratic(alpha=2.0).kernel([[0.0]], [[2.0]], gamma=0.5)
    array([[0.25]])
    """

    def __init__(self, alpha: float = 1.0) -> None:
        self.alpha = alpha

    def unit_kernel(self, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
        """Kernel matrix for gamma = 1; see `SpectralMeasure`."""
        alpha = positive("alpha", self.alpha)
        return _process_kernels().RationalQuadratic(math.sqrt(0.5), alpha)(X, Y)

    def mixing(self, U: np.ndarray) -> np.ndarray:
        r"""Values of :math:`\tau`; see `SpectralMeasure`."""
        alpha = positive("alpha", self.alpha)
        return gammaincinv(alpha, U[:, 0]) / alpha


class ExponentialPower(ScaleMixture):
    r"""The kernel :math:`\exp(-(\sqrt\gamma\, \|x - x'\|)^{\text{power}})`.

    Its frequencies are isotropic stable: :math:`\tau` is one-sided stable of index
    ``power / 2``, :math:`\mathrm E e^{-s \tau} = e^{-s^{\text{power} / 2}}`, by
    Kanter's formula from two uniform numbers. Power 2 is the Gaussian kernel; power 1
    at gamma is `Exponential` at gamma / 2.

    Parameters
    ----------
    power : float, default=1.0
        Exponent, in (0, 2]. The smaller, the rougher.

    Notes
    -----
    Frequencies have heavy tails, :math:`P(|w| > t) \sim t^{-\text{power}}`.

    References
    ----------
    .. [1] M. Kanter, "Stable Densities under Change of Scale and Total Variation
       Inequalities", Annals of Probability 3, 1975.

    Examples
    --------
    >>> from surff.kernels.spectral import ExponentialPower
    >>> ExponentialPower(power=0.5).kernel([[0.0]], [[4.0]], gamma=1.0).round(4)
    array([[0.1353]])
    """

    n_mixing = 2

    def __init__(self, power: float = 1.0) -> None:
        self.power = power

    def _power(self):
        if not positive("power", self.power) <= 2.0:
            raise ValueError(f"power must be at most 2, got {self.power!r}.")
        return float(self.power)

    def unit_kernel(self, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
        """Kernel matrix for gamma = 1; see `SpectralMeasure`."""
        return np.exp(-(cdist(X, Y) ** self._power()))

    def mixing(self, U: np.ndarray) -> np.ndarray:
        r"""Values of :math:`\tau`; see `SpectralMeasure`."""
        index = self._power() / 2.0
        angle, exponential = math.pi * U[:, 0], -np.log(U[:, 1])
        if index == 1.0:
            return np.ones(len(U))
        # Kanter: sin(a t) / sin(t)^(1/a) * (sin((1 - a) t) / E)^((1 - a) / a).
        ratio = (1.0 - index) / index
        logarithm = (
            np.log(np.sin(index * angle))
            - np.log(np.sin(angle)) / index
            + ratio * (np.log(np.sin((1.0 - index) * angle)) - np.log(exponential))
        )
        return np.exp(np.minimum(logarithm, math.log(LARGEST_TAU)))


class Laplace(SpectralMeasure):
    r"""The Laplace kernel :math:`\exp(-\gamma \|x - x'\|_1)`, a product over features.

    Coordinates of a frequency are independent Cauchy of scale gamma. scikit-learn's
    `laplacian_kernel`; the kernel of the Euclidean norm is `Exponential`.

    References
    ----------
    .. [1] A. Rahimi, B. Recht, "Random Features for Large-Scale Kernel Machines",
       NIPS 2007, Figure 1.

    Examples
    --------
    >>> from surff.kernels.spectral import Laplace
    >>> Laplace().kernel([[0.0, 0.0]], [[1.0, -1.0]], gamma=0.5).round(4)
    array([[0.3679]])
    """

    def unit_kernel(self, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
        """Kernel matrix for gamma = 1; see `SpectralMeasure`."""
        return laplacian_kernel(X, Y, gamma=1.0)

    def quantile(self, U: np.ndarray) -> np.ndarray:
        """Frequencies for gamma = 1; see `SpectralMeasure`."""
        return -1.0 / np.tan(math.pi * U)

    def scale(self, gamma: npt.ArrayLike) -> npt.ArrayLike:
        """``gamma``: it multiplies the distance, not its square."""
        return np.asarray(gamma, dtype=np.float64)


class Cauchy(SpectralMeasure):
    r"""The Cauchy kernel :math:`\prod_j 1 / (1 + \gamma (x_j - x'_j)^2)`.

    A product over features; coordinates of a frequency are independent Laplace of scale
    :math:`\sqrt\gamma`.

    References
    ----------
    .. [1] A. Rahimi, B. Recht, "Random Features for Large-Scale Kernel Machines",
       NIPS 2007, Figure 1.

    Examples
    --------
    >>> from surff.kernels.spectral import Cauchy
    >>> Cauchy().kernel([[0.0, 0.0]], [[1.0, 1.0]], gamma=1.0)
    array([[0.25]])
    """

    def unit_kernel(self, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
        """Kernel matrix for gamma = 1; see `SpectralMeasure`."""
        product = np.ones((len(X), len(Y)))
        for x, y in zip(X.T, Y.T, strict=True):
            product *= 1.0 + np.square(x[:, None] - y)
        return 1.0 / product

    def quantile(self, U: np.ndarray) -> np.ndarray:
        """Frequencies for gamma = 1; see `SpectralMeasure`."""
        # Each branch of the logarithm where it is accurate.
        tail = np.log(2.0 * np.minimum(U, 1.0 - U))
        return np.where(U < 0.5, tail, -tail)

    def scale(self, gamma: npt.ArrayLike) -> npt.ArrayLike:
        """``sqrt(gamma)``: the bandwidth multiplies the squared differences."""
        return np.sqrt(gamma)


class _Composite(SpectralMeasure):
    """Several measures at fixed bandwidths, stretched together by one gamma."""

    def _parts(self):
        """Pairs of a measure and its factor at its own bandwidth."""
        measures = list(self.measures)
        if not measures:
            raise ValueError("measures must hold at least one measure, got none.")
        gammas = [1.0] * len(measures) if self.gammas is None else list(self.gammas)
        if len(gammas) != len(measures):
            raise ValueError(
                f"gammas must hold one number per measure, {len(measures)} in all, got "
                f"{len(gammas)}."
            )
        return [
            (measure, measure.scale(positive("gammas", gamma)))
            for measure, gamma in zip(measures, gammas, strict=True)
        ]

    def scale(self, gamma: npt.ArrayLike) -> npt.ArrayLike:
        """``sqrt(gamma)``: the kernel at gamma is that at 1 of ``sqrt(gamma) X``."""
        return np.sqrt(gamma)

    def _n_features(self, n_coordinates):
        """Inverse of `n_coordinates`, which grows with the number of features."""
        return bisect.bisect_left(
            range(n_coordinates + 1), n_coordinates, key=self.n_coordinates
        )


class Sum(_Composite):
    r"""A weighted mean of kernels :math:`k = \sum_i c_i k_i`.

    Its frequencies are those of the parts, concatenated: part i has a share
    :math:`c_i` of them.

    Parameters
    ----------
    measures : sequence of SpectralMeasure
        The parts.
    weights : sequence of float, optional
        Positive numbers proportional to :math:`c_i`; equal by default. They are divided
        by their sum, so that k(x, x) = 1.
    gammas : sequence of float, optional
        Bandwidth of each part, by its own convention, at the sum's gamma = 1; ones by
        default. The sum at ``gamma`` is that kernel of ``sqrt(gamma) X``.

    Notes
    -----
    The last uniform coordinate chooses the part. `sample` gives it the values
    :math:`u + j \varphi \bmod 1` with the golden ratio :math:`\varphi`: each is
    uniform, so the estimate is unbiased, and every run of rows divides among the parts
    as evenly as can be.

    Examples
    --------
    >>> from surff.kernels.spectral import Gaussian, Sum
    >>> two_widths = Sum([Gaussian(), Gaussian()], gammas=[1.0, 0.01])
    >>> two_widths.kernel([[0.0]], [[10.0]]).round(4)
    array([[0.1839]])
    """

    def __init__(
        self,
        measures: Sequence[SpectralMeasure],
        weights: Sequence[float] | None = None,
        gammas: Sequence[float] | None = None,
    ) -> None:
        self.measures = measures
        self.weights = weights
        self.gammas = gammas

    def _shares(self):
        """Shares of the parts, summing to one."""
        n_parts = len(self.measures)
        weights = [1.0] * n_parts if self.weights is None else list(self.weights)
        if len(weights) != n_parts:
            raise ValueError(
                f"weights must hold one number per measure, {n_parts} in all, got "
                f"{len(weights)}."
            )
        shares = np.array([positive("weights", weight) for weight in weights])
        return shares / shares.sum()

    def _choose(self, u):
        """Number of the part for each uniform ``u``."""
        return np.searchsorted(np.cumsum(self._shares())[:-1], u, side="right")

    def unit_kernel(self, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
        """Kernel matrix for gamma = 1; see `SpectralMeasure`."""
        return sum(
            share * measure.unit_kernel(X * factor, Y * factor)
            for share, (measure, factor) in zip(
                self._shares(), self._parts(), strict=True
            )
        )

    def sample(
        self, rng: np.random.Generator, n_frequencies: int, n_features: int
    ) -> np.ndarray:
        """Independent frequencies for gamma = 1; see `SpectralMeasure`."""
        U = open_uniform(rng, (n_frequencies, self.n_coordinates(n_features)))
        U[:, -1] = golden_sequence(U[:, -1])
        return self.quantile(U)

    def n_coordinates(self, n_features: int) -> int:
        """The largest number of a part, and one that chooses the part."""
        return 1 + max(
            measure.n_coordinates(n_features) for measure, _ in self._parts()
        )

    def quantile(self, U: np.ndarray) -> np.ndarray:
        """Frequencies for gamma = 1; the last coordinate chooses the part."""
        n_features = self._n_features(U.shape[1])
        frequencies = np.empty((len(U), n_features))
        chosen = self._choose(U[:, -1])
        for i, (measure, factor) in enumerate(self._parts()):
            rows = chosen == i
            points = U[rows, : measure.n_coordinates(n_features)]
            frequencies[rows] = factor * measure.quantile(points)
        return frequencies

    @property
    def n_mixing(self) -> int:
        """The largest number of a part, and one that chooses the part."""
        return 1 + max(measure.n_mixing for measure, _ in self._parts())

    def mixing(self, U: np.ndarray) -> np.ndarray:
        """Mixing variables; raises TypeError where a part is not isotropic."""
        tau = np.empty(len(U))
        chosen = self._choose(U[:, -1])
        for i, (measure, factor) in enumerate(self._parts()):
            rows = chosen == i
            tau[rows] = factor**2 * measure.mixing(U[rows, : measure.n_mixing])
        return tau


class Product(_Composite):
    r"""A product of kernels :math:`k = \prod_i k_i`.

    Its frequencies are sums of independent frequencies of the parts.

    Parameters
    ----------
    measures : sequence of SpectralMeasure
        The parts.
    gammas : sequence of float, optional
        Bandwidth of each part, by its own convention, at the product's gamma = 1; ones
        by default. The product at ``gamma`` is that kernel of ``sqrt(gamma) X``.

    Examples
    --------
    >>> from surff.kernels.spectral import Gaussian, Laplace, Product
    >>> product = Product([Gaussian(), Laplace()], gammas=[0.5, 1.5])
    >>> product.kernel([[0.0]], [[1.0]]).round(4)
    array([[0.1353]])
    """

    def __init__(
        self,
        measures: Sequence[SpectralMeasure],
        gammas: Sequence[float] | None = None,
    ) -> None:
        self.measures = measures
        self.gammas = gammas

    def unit_kernel(self, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
        """Kernel matrix for gamma = 1; see `SpectralMeasure`."""
        return math.prod(
            measure.unit_kernel(X * factor, Y * factor)
            for measure, factor in self._parts()
        )

    def n_coordinates(self, n_features: int) -> int:
        """The sum over all parts."""
        return sum(measure.n_coordinates(n_features) for measure, _ in self._parts())

    def quantile(self, U: np.ndarray) -> np.ndarray:
        """Frequencies for gamma = 1; each part takes its own coordinates."""
        parts = self._parts()
        n_features = self._n_features(U.shape[1])
        frequencies, start = 0.0, 0
        for measure, factor in parts:
            stop = start + measure.n_coordinates(n_features)
            frequencies = frequencies + factor * measure.quantile(U[:, start:stop])
            start = stop
        return frequencies

    @property
    def n_mixing(self) -> int:
        """The sum over all parts."""
        return sum(measure.n_mixing for measure, _ in self._parts())

    def mixing(self, U: np.ndarray) -> np.ndarray:
        """Mixing variables; raises TypeError where a part is not isotropic."""
        tau, start = 0.0, 0
        for measure, factor in self._parts():
            stop = start + measure.n_mixing
            tau = tau + factor**2 * measure.mixing(U[:, start:stop])
            start = stop
        return tau


#: Kernels by name.
KERNELS = {
    "rbf": Gaussian,
    "laplacian": Laplace,
    "exponential": Exponential,
    "matern": Matern,
    "cauchy": Cauchy,
    "rational_quadratic": RationalQuadratic,
    "exponential_power": ExponentialPower,
}


def _process_kernels():
    """scikit-learn's kernels of Gaussian processes, imported when they are used."""
    from sklearn.gaussian_process import kernels

    return kernels
