"""The paper's experiments and a public benchmark: what to run, and what came out.

`protocol` has the recipes that turn one data set into accuracies; `table2`, `figure1`,
`table3`, `approximation` and `benchmark` say what to run, one module each; `runner`
runs it and `store` keeps it trial by trial; `statistics` compares, `printed` has the
paper's own numbers, and `table` shows results in every form. Names of methods, styles,
tasks and captions are data, in ``registry.toml``. It may import `surff`, the front door
(with `surff.inspection` and `surff.backend`), `linear`, `kernels` and `datasets`.
"""

from surff.experiments.approximation import *
from surff.experiments.benchmark import *
from surff.experiments.benchmark_table import *
from surff.experiments.figure1 import *
from surff.experiments.methods import *
from surff.experiments.own import *
from surff.experiments.printed import *
from surff.experiments.protocol import *
from surff.experiments.render import *
from surff.experiments.report_page import *
from surff.experiments.runner import *
from surff.experiments.statistics import *
from surff.experiments.store import *
from surff.experiments.table import *
from surff.experiments.table2 import *
from surff.experiments.table3 import *
