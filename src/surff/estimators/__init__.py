"""What users fit: feature maps and models in scikit-learn's conventions.

`FourierFeatures`, `NystroemFeatures`, the ridge models, the logistic one, their files,
what serves and exports them, and `Features`, the class that feature maps of your own
derive from. It may import every room above it in `docs/design.md`: `adaptation`,
`selection`, `linear`, `draws`, `kernels`, `streaming` and `backend`.
"""

from surff.estimators._fitted_state import ChecksItself as ChecksItself
from surff.estimators._importance import *
from surff.estimators._targets import *
from surff.estimators.base import *
from surff.estimators.c_export import *
from surff.estimators.features import *
from surff.estimators.leaves import *
from surff.estimators.logistic import *
from surff.estimators.nystroem import *
from surff.estimators.onnx_export import *
from surff.estimators.persistence import *
from surff.estimators.predictor import *
from surff.estimators.ridge import *
