"""What users fit: feature maps and models in scikit-learn's conventions.

`FourierFeatures`, `NystroemFeatures`, the ridge models, the logistic one, and their
files. It may import every room above it in `docs/design.md`: `adaptation`, `selection`,
`linear`, `draws`, `kernels`, `streaming` and `backend`.
"""

from surff.adaptation import ADAPTATIONS
from surff.draws import DRAWS
from surff.estimators._base_ridge import *
from surff.estimators._linear import *
from surff.estimators._targets import *
from surff.estimators.features import *
from surff.estimators.logistic import *
from surff.estimators.nystroem import *
from surff.estimators.persistence import *
from surff.estimators.ridge import *
from surff.kernels import KERNELS
from surff.selection import LANDMARK_RULES, SELECTORS

#: What the parameters of the feature maps take by name.
OPTIONS = {
    "kernel": KERNELS,
    "draw": DRAWS,
    "select": SELECTORS,
    "adapt": ADAPTATIONS,
    "landmarks": LANDMARK_RULES,
}
