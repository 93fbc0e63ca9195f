"""The parameters ``select`` and ``landmarks``: which candidates are kept.

A rule, its formula and its class share one file. A selector scores a pool of candidate
frequencies with the data and keeps some; a landmark rule chooses rows. It may import
`linear`, `kernels` and `backend`.
"""

from surff.selection.alignment import KernelAlignment, aligned_probabilities
from surff.selection.base import Selection
from surff.selection.compression import (
    COMPRESSORS,
    Compression,
    all_pairs_gram,
    frank_wolfe,
    giga,
    pool_equations,
    sampled_pairs_gram,
)
from surff.selection.eerf import EERF
from surff.selection.landmarks import (
    LANDMARK_RULES,
    LeverageEstimate,
    kmeans_centres,
    leverage_rows,
    recursive_leverage,
    ridge_leverage_estimates,
    rpcholesky_rows,
    uniform_rows,
)
from surff.selection.leverage import (
    RidgeLeverage,
    SurrogateLeverage,
    effective_dof,
    pair_scores,
    ridge_column_scores,
    ridge_leverage_scores,
    surrogate_column_scores,
    surrogate_leverage_scores,
)
from surff.selection.resampling import RESAMPLERS
from surff.selection.residual import (
    ResidualLeverage,
    residual_frequencies,
    residual_moments,
)

__all__ = [
    "COMPRESSORS",
    "EERF",
    "LANDMARK_RULES",
    "RESAMPLERS",
    "SELECTORS",
    "Compression",
    "KernelAlignment",
    "LeverageEstimate",
    "ResidualLeverage",
    "RidgeLeverage",
    "Selection",
    "SurrogateLeverage",
    "aligned_probabilities",
    "all_pairs_gram",
    "effective_dof",
    "frank_wolfe",
    "giga",
    "kmeans_centres",
    "leverage_rows",
    "pair_scores",
    "pool_equations",
    "recursive_leverage",
    "residual_frequencies",
    "residual_moments",
    "ridge_column_scores",
    "ridge_leverage_estimates",
    "ridge_leverage_scores",
    "rpcholesky_rows",
    "sampled_pairs_gram",
    "surrogate_column_scores",
    "surrogate_leverage_scores",
    "uniform_rows",
]

#: Selectors by name.
SELECTORS = {
    "leverage": RidgeLeverage,
    "surrogate": SurrogateLeverage,
    "eerf": EERF,
    "alignment": KernelAlignment,
    "compression": Compression,
    "residual": ResidualLeverage,
}
