"""The parameter ``adapt``: frequencies moved to where the data want them.

The ridge objective as a function of the frequencies, its closed-form gradient, the
average gradient outer product, and the adaptations made of them. It may import
`linear`, `kernels` and `backend`.
"""

from surff.adaptation.agop import *
from surff.adaptation.auto import *
from surff.adaptation.bandwidths import *
from surff.adaptation.base import *
from surff.adaptation.gradient import *
from surff.adaptation.objective import *

#: Adaptations by their names in ``adapt``.
ADAPTATIONS = {
    "agop": AgopAdaptation,
    "auto": AutoAdaptation,
    "gradient": GradientAdaptation,
}
