"""Rows, wherever they are: in arrays, files, generators or on a Dask cluster.

Sources of rows block by block, checked passes over them, reductions that run here or on
the workers that hold the rows, and uniform samples of rows. It may import `backend`.
"""

from surff.streaming.csv_rows import *
from surff.streaming.dask_rows import *
from surff.streaming.files import *
from surff.streaming.mixed import *
from surff.streaming.passes import *
from surff.streaming.sample import *
from surff.streaming.sniff import *
from surff.streaming.sources import *
