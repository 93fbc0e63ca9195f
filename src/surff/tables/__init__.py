"""Tables: columns of any kind to numbers, inside the model.

`TableEncoder` turns a frame into numbers, `table_model` puts it in front of a model. It
may import `streaming` and `estimators`.
"""

from surff.tables.account import *
from surff.tables.columns import *
from surff.tables.encoder import *
from surff.tables.files import *
from surff.tables.fit import *
from surff.tables.model import *
from surff.tables.plots import *
from surff.tables.reports import *
from surff.tables.rows import *
