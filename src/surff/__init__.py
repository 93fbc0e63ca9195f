"""surff: kernel learning with random features.

The public names. Each is imported with its room when it is first used, so that
``import surff`` and ``surff --help`` are quick.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from surff.adaptation import AgopAdaptation, AutoAdaptation, GradientAdaptation
    from surff.estimators import (
        FourierFeatures,
        KernelLogisticClassifier,
        KernelRidgeClassifier,
        KernelRidgeRegressor,
        LeafHeads,
        NystroemFeatures,
        Predictor,
        load,
        save,
        to_c,
        to_onnx,
    )
    from surff.inspection import (
        AlphaPathDisplay,
        FrequencyDisplay,
        ImportanceDisplay,
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
    from surff.tables import TableEncoder, TableModel, fit, table_model

__all__ = [
    "EERF",
    "AgopAdaptation",
    "AlphaPathDisplay",
    "AutoAdaptation",
    "Compression",
    "FourierFeatures",
    "FrequencyDisplay",
    "GradientAdaptation",
    "ImportanceDisplay",
    "KernelAlignment",
    "KernelApproximationDisplay",
    "KernelLogisticClassifier",
    "KernelRidgeClassifier",
    "KernelRidgeRegressor",
    "LeafHeads",
    "NystroemFeatures",
    "Predictor",
    "ResidualLeverage",
    "RidgeLeverage",
    "SurrogateLeverage",
    "TableEncoder",
    "TableModel",
    "fit",
    "load",
    "save",
    "table_model",
    "to_c",
    "to_onnx",
]

__version__ = "0.1.0"

#: Rooms of the public names.
_ROOM_OF = {
    "EERF": "selection",
    "AgopAdaptation": "adaptation",
    "AlphaPathDisplay": "inspection",
    "AutoAdaptation": "adaptation",
    "Compression": "selection",
    "FourierFeatures": "estimators",
    "FrequencyDisplay": "inspection",
    "GradientAdaptation": "adaptation",
    "ImportanceDisplay": "inspection",
    "KernelAlignment": "selection",
    "KernelApproximationDisplay": "inspection",
    "KernelLogisticClassifier": "estimators",
    "KernelRidgeClassifier": "estimators",
    "KernelRidgeRegressor": "estimators",
    "LeafHeads": "estimators",
    "NystroemFeatures": "estimators",
    "Predictor": "estimators",
    "ResidualLeverage": "selection",
    "RidgeLeverage": "selection",
    "SurrogateLeverage": "selection",
    "TableEncoder": "tables",
    "TableModel": "tables",
    "fit": "tables",
    "load": "estimators",
    "save": "estimators",
    "to_c": "estimators",
    "to_onnx": "estimators",
    "table_model": "tables",
}

#: Rooms that are attributes of the package without an import of their own.
_ROOMS = {
    "adaptation",
    "backend",
    "datasets",
    "draws",
    "estimators",
    "inspection",
    "kernels",
    "linear",
    "selection",
    "streaming",
    "tables",
}


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return importlib.import_module(f"surff.{name}")
    if name not in _ROOM_OF:
        raise AttributeError(f"module 'surff' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"surff.{_ROOM_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_ROOMS})
