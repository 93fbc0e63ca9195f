"""Data sets: the paper's four, larger ones, those of other papers, two without file.

- `load` gives the arrays of one part of a data set,
- `load_masks` gives the test rows of a set that comes with several divisions,
- `fetch` makes sure that its files are on disk,
- `status` tells where they are,
- `available` lists the names; ``DATASETS`` describes each.

Files are looked for in ``$SURFF_DATA``, then in the user cache (``$SURFF_CACHE``), and
otherwise downloaded over https from their original source. Reading them needs the extra
``surff[cli]``. This room imports no other.
"""

from surff.datasets.loaders import *
from surff.datasets.registry import *
from surff.datasets.store import *
