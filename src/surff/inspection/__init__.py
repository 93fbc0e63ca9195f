"""Looking at what was fitted: diagnostics, errors, theory and their pictures.

It may import `estimators`, `linear`, `kernels` and `backend`.
"""

from surff.inspection.approximation import *
from surff.inspection.diagnostics import *
from surff.inspection.displays import *
from surff.inspection.theory import *
