"""surff: kernel learning with random features."""

from surff.features import FourierFeatures
from surff.persistence import load, save
from surff.ridge import KernelRidgeClassifier, KernelRidgeRegressor
from surff.selection import RidgeLeverage, SurrogateLeverage

__all__ = [
    "FourierFeatures",
    "KernelRidgeClassifier",
    "KernelRidgeRegressor",
    "RidgeLeverage",
    "SurrogateLeverage",
    "load",
    "save",
]

__version__ = "0.1.0"
