"""From sums over rows to coefficients: normal equations, alpha, solutions.

Normal equations and the pass that forms them, solvers, the grid of alphas and what it
is judged by, conjugate gradients and logistic regression on passes over the rows, and
the posterior. It may import `streaming`, `kernels` and `backend`.
"""

from surff.linear.alpha_path import (
    AlphaPath,
    Split,
    best_index,
    climb,
    coefficient_path,
    gcv_errors,
    held_out_decisions,
    leave_one_out_decisions,
    relative_grid,
    spectrum,
    splits_equations,
    squared_errors,
)
from surff.linear.banded import BandForm, band_form, solve_shifted
from surff.linear.cg import (
    Solution,
    cheaper_than_cholesky,
    conjugate_gradient,
)
from surff.linear.criteria import (
    R2,
    Accuracy,
    Data,
    GeneralizedCrossValidation,
    HeldOutPasses,
    HeldOutSplits,
    LeaveOneOut,
    ScorerOf,
    SquaredError,
    n_singular,
)
from surff.linear.lbfgs import Descent, minimise
from surff.linear.logistic import logistic_path, loss_and_gradient, losses
from surff.linear.normal_equations import (
    CentredEquations,
    NormalEquations,
    accumulate,
    extend,
    float32_error,
)
from surff.linear.solvers import (
    SOLVERS,
    SingularError,
    cholesky,
    cholesky_beside,
    eigh,
    least_regular,
    solve,
    solver_beside,
)
from surff.linear.source_folds import (
    Equations,
    FoldsOfSource,
    RefittedFolds,
    checked_folds,
    equations_of,
    sides_of,
)
from surff.linear.uncertainty import (
    Posterior,
    platt_curve,
    posterior,
    standard_deviations,
)

__all__ = [
    "R2",
    "SOLVERS",
    "Accuracy",
    "AlphaPath",
    "BandForm",
    "CentredEquations",
    "Data",
    "Descent",
    "Equations",
    "FoldsOfSource",
    "GeneralizedCrossValidation",
    "HeldOutPasses",
    "HeldOutSplits",
    "LeaveOneOut",
    "NormalEquations",
    "Posterior",
    "RefittedFolds",
    "ScorerOf",
    "SingularError",
    "Solution",
    "Split",
    "SquaredError",
    "accumulate",
    "band_form",
    "best_index",
    "cheaper_than_cholesky",
    "checked_folds",
    "cholesky",
    "cholesky_beside",
    "climb",
    "coefficient_path",
    "conjugate_gradient",
    "eigh",
    "equations_of",
    "extend",
    "float32_error",
    "gcv_errors",
    "held_out_decisions",
    "least_regular",
    "leave_one_out_decisions",
    "logistic_path",
    "loss_and_gradient",
    "losses",
    "minimise",
    "n_singular",
    "platt_curve",
    "posterior",
    "relative_grid",
    "sides_of",
    "solve",
    "solve_shifted",
    "solver_beside",
    "spectrum",
    "splits_equations",
    "squared_errors",
    "standard_deviations",
]
