"""What users fit: feature maps and models in scikit-learn's conventions.

`FourierFeatures`, `NystroemFeatures`, the ridge models, the logistic one, and their
files. It may import every room above it in `docs/design.md`: `adaptation`, `selection`,
`linear`, `draws`, `kernels`, `streaming` and `backend`.
"""

from surff.estimators._base_ridge import (
    BaseKernelRidge,
    check_columns,
    learns_in_pieces,
    streams,
)
from surff.estimators._linear import LinearOnFeatures, winning_labels
from surff.estimators._targets import numeric_targets, one_vs_rest
from surff.estimators.features import FourierFeatures
from surff.estimators.logistic import KernelLogisticClassifier
from surff.estimators.nystroem import NystroemFeatures
from surff.estimators.persistence import TRUSTED_TYPES, UntrustedModelError, load, save
from surff.estimators.ridge import KernelRidgeClassifier, KernelRidgeRegressor

__all__ = [
    "TRUSTED_TYPES",
    "BaseKernelRidge",
    "FourierFeatures",
    "KernelLogisticClassifier",
    "KernelRidgeClassifier",
    "KernelRidgeRegressor",
    "LinearOnFeatures",
    "NystroemFeatures",
    "UntrustedModelError",
    "check_columns",
    "learns_in_pieces",
    "load",
    "numeric_targets",
    "one_vs_rest",
    "save",
    "streams",
    "winning_labels",
]
