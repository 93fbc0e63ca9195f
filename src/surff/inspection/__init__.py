"""Looking at what was fitted: diagnostics, errors, theory and their pictures.

It may import `estimators`, `linear`, `kernels` and `backend`.
"""

from surff.inspection.approximation import (
    NORMS,
    KernelErrors,
    relative_error,
    spectral_approximation,
)
from surff.inspection.diagnostics import (
    KernelSample,
    RecommendedFrequencies,
    effective_dof,
    kernel_approximation_error,
    leverage_scores,
    recommended_frequencies,
    sample_kernel,
)
from surff.inspection.displays import (
    AlphaPathDisplay,
    FrequencyDisplay,
    KernelApproximationDisplay,
)
from surff.inspection.theory import (
    DECAYS,
    DecayCase,
    decaying_spectrum,
    lemma_1_epsilon,
    lemma_1_features,
    leverage_function,
    pool_surrogate_dof,
    spectral_dof,
    surrogate_dof,
    surrogate_leverage_function,
    theorem_1_features,
    theorem_2_features,
)

__all__ = [
    "DECAYS",
    "NORMS",
    "AlphaPathDisplay",
    "DecayCase",
    "FrequencyDisplay",
    "KernelApproximationDisplay",
    "KernelErrors",
    "KernelSample",
    "RecommendedFrequencies",
    "decaying_spectrum",
    "effective_dof",
    "kernel_approximation_error",
    "lemma_1_epsilon",
    "lemma_1_features",
    "leverage_function",
    "leverage_scores",
    "pool_surrogate_dof",
    "recommended_frequencies",
    "relative_error",
    "sample_kernel",
    "spectral_approximation",
    "spectral_dof",
    "surrogate_dof",
    "surrogate_leverage_function",
    "theorem_1_features",
    "theorem_2_features",
]
