"""Looking at what was fitted: diagnostics, errors, theory and their pictures.

Everything here reads fitted estimators and changes none. It may import `estimators`,
`selection`, `linear` and `backend`.
"""

from surff.inspection.approximation import *
from surff.inspection.density import *
from surff.inspection.diagnostics import *
from surff.inspection.displays import *
from surff.inspection.importance import *
from surff.inspection.theory import *
