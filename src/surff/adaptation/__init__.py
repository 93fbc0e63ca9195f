"""The parameter ``adapt``: frequencies moved to where the data want them.

The ridge objective as a function of the frequencies, its closed-form gradient, the
average gradient outer product, and the adaptations made of them. It may import
`linear`, `kernels` and `backend`.
"""

from surff.adaptation.agop import (
    AgopAdaptation,
    average_gradient_outer_product,
    root_transform,
)
from surff.adaptation.auto import AutoAdaptation
from surff.adaptation.gradient import GradientAdaptation
from surff.adaptation.objective import (
    Adam,
    Projected,
    cosine_schedule,
    projected_objective,
)

__all__ = [
    "ADAPTATIONS",
    "Adam",
    "AgopAdaptation",
    "AutoAdaptation",
    "GradientAdaptation",
    "Projected",
    "average_gradient_outer_product",
    "cosine_schedule",
    "projected_objective",
    "root_transform",
]

#: Adaptations by name.
ADAPTATIONS = {
    "agop": AgopAdaptation,
    "auto": AutoAdaptation,
    "gradient": GradientAdaptation,
}
