"""The parameter ``kernel``: spectral measures, and the feature maps they give.

Spectral measures by name (`KERNELS`), the compiled Fourier feature map, the warp of
columns before it, and the Nystrom map of kernel blocks. It may import `backend`.
"""

from surff.kernels.fourier import (
    NARROW_ROWS,
    ArrayFourierMap,
    FourierMap,
    OddFourierMap,
    fourier_features,
    fourier_moments,
    kernel_estimate,
)
from surff.kernels.nystroem import (
    NEGATIVE_SHARE,
    KernelMatrix,
    NystroemMap,
    PairwiseKernel,
    PrecomputedKernel,
    SpectralKernel,
    inverse_root,
    kernel_block_rows,
)
from surff.kernels.spectral import (
    KERNELS,
    Cauchy,
    Exponential,
    ExponentialPower,
    Gaussian,
    Laplace,
    Matern,
    Product,
    RationalQuadratic,
    ScaleMixture,
    SpectralMeasure,
    Sum,
    golden_sequence,
    open_uniform,
)
from surff.kernels.warp import WarpedMap, warp_gradient, warped

__all__ = [
    "KERNELS",
    "NARROW_ROWS",
    "NEGATIVE_SHARE",
    "ArrayFourierMap",
    "Cauchy",
    "Exponential",
    "ExponentialPower",
    "FourierMap",
    "Gaussian",
    "KernelMatrix",
    "Laplace",
    "Matern",
    "NystroemMap",
    "OddFourierMap",
    "PairwiseKernel",
    "PrecomputedKernel",
    "Product",
    "RationalQuadratic",
    "ScaleMixture",
    "SpectralKernel",
    "SpectralMeasure",
    "Sum",
    "WarpedMap",
    "fourier_features",
    "fourier_moments",
    "golden_sequence",
    "inverse_root",
    "kernel_block_rows",
    "kernel_estimate",
    "open_uniform",
    "warp_gradient",
    "warped",
]
