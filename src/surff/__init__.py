"""surff: kernel learning with random features."""

from surff.adaptation import AgopAdaptation, AutoAdaptation, GradientAdaptation
from surff.displays import (
    AlphaPathDisplay,
    FrequencyDisplay,
    KernelApproximationDisplay,
)
from surff.features import FourierFeatures
from surff.logistic import KernelLogisticClassifier
from surff.nystroem import NystroemFeatures
from surff.persistence import load, save
from surff.ridge import KernelRidgeClassifier, KernelRidgeRegressor
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
