"""From sums over rows to coefficients: normal equations, alpha, solutions.

Normal equations and the pass that forms them, solvers, the grid of alphas and what it
is judged by, conjugate gradients and logistic regression on passes over the rows, and
the posterior. It may import `streaming` and `backend`.
"""

from surff.linear.alpha_path import *
from surff.linear.banded import *
from surff.linear.cg import *
from surff.linear.conformal import *
from surff.linear.criteria import *
from surff.linear.evidence import *
from surff.linear.few_rows import *
from surff.linear.lbfgs import *
from surff.linear.leaf_heads import *
from surff.linear.leaf_sums import *
from surff.linear.logistic import *
from surff.linear.normal_equations import *
from surff.linear.partition import *
from surff.linear.shifted import *
from surff.linear.solvers import *
from surff.linear.source_folds import *
from surff.linear.uncertainty import *
