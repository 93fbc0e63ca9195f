"""The parameters ``select`` and ``landmarks``: which candidates are kept.

A rule, its formula and its class share one file. A selector scores a pool of candidate
frequencies with the data and keeps some; a landmark rule chooses rows. It may import
`linear`, `kernels` and `backend`.
"""

from surff.selection.alignment import *
from surff.selection.base import *
from surff.selection.compression import *
from surff.selection.eerf import *
from surff.selection.landmarks import *
from surff.selection.leverage import *
from surff.selection.resampling import *
from surff.selection.residual import *

#: Selectors by their names in ``select``.
SELECTORS = {
    "leverage": RidgeLeverage,
    "surrogate": SurrogateLeverage,
    "eerf": EERF,
    "alignment": KernelAlignment,
    "compression": Compression,
    "residual": ResidualLeverage,
}
