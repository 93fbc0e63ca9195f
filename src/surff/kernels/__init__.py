"""The parameter ``kernel``: spectral measures, and the feature maps they give.

Spectral measures by name (`KERNELS`), the compiled Fourier feature map, the warp of
columns before it, and the Nystrom map of kernel blocks. It may import `backend`.
"""

from surff.kernels.base import *
from surff.kernels.fourier import *
from surff.kernels.nystroem import *
from surff.kernels.spectral import *
from surff.kernels.warp import *
