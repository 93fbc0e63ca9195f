"""surff: kernel learning with random features."""

from surff.adaptation import AgopAdaptation, AutoAdaptation, GradientAdaptation
from surff.estimators import (
    FourierFeatures,
    KernelLogisticClassifier,
    KernelRidgeClassifier,
    KernelRidgeRegressor,
    NystroemFeatures,
    load,
    save,
)
from surff.inspection import (
    AlphaPathDisplay,
    FrequencyDisplay,
    KernelApproximationDisplay,
)
from surff.selection import (
    EERF,
    Compression,
    KernelAlignment,
    ResidualLeverage,
    RidgeLeverage,
    SurrogateLeverage,
)

__all__ = [
    "EERF",
    "AgopAdaptation",
    "AlphaPathDisplay",
    "AutoAdaptation",
    "Compression",
    "FourierFeatures",
    "FrequencyDisplay",
    "GradientAdaptation",
    "KernelAlignment",
    "KernelApproximationDisplay",
    "KernelLogisticClassifier",
    "KernelRidgeClassifier",
    "KernelRidgeRegressor",
    "NystroemFeatures",
    "ResidualLeverage",
    "RidgeLeverage",
    "SurrogateLeverage",
    "load",
    "save",
]

__version__ = "0.1.0"
