"""How numbers are made: arrays, threads, BLAS, trigonometry, blocks of rows.

Everything here knows nothing of kernels or models: which library an array belongs to,
how a pass over rows is cut into blocks and shared out among threads, the compiled
loops, BLAS without the interpreter's lock, checks of arguments, and the progress of
long work. It imports no other room; every other room may import it.
"""

from surff.backend.arrays import *
from surff.backend.blas import *
from surff.backend.blocks import *
from surff.backend.compilation import *
from surff.backend.exponential import *
from surff.backend.hadamard import *
from surff.backend.progress import *
from surff.backend.threads import *
from surff.backend.trig import *
from surff.backend.validation import *
