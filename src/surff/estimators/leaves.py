"""The parameter ``leaves`` of the ridge models, and what a fit makes of it."""

from __future__ import annotations

import numbers
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval, StrOptions

from surff.linear import Partition, add_leaf_decisions

__all__ = ["LEAVES_CONSTRAINTS", "LeafHeads", "LeafModel", "checked_leaves"]


class LeafHeads(BaseEstimator):
    r"""How a model's leaf heads are made: ``leaves=LeafHeads(...)``.

    A tree cuts the rows into leaves, and every leaf l has a head of its own on the
    common features, shrunk towards the common one:

    .. math:: f(x) = z(x)^\top (\beta + \delta_{l(x)}), \qquad
              \min \sum_i w_i (y_i - f(x_i))^2 + \alpha \|\beta\|^2
              + a \sum_l \|\delta_l\|^2 .

    As a grows this becomes the model without leaves.

    Parameters
    ----------
    n_leaves : "auto" or int, default="auto"
        Leaves of a tree at most. "auto" tries 16, 64, 256, 1,024 and 4,096 (from 64 on
        for 20,000 rows and more) while the error on held-out rows falls, and takes none
        where that falls by less than its standard error. The rows are random, or
        those of the model's ``cv`` where that is a splitter.
    alpha : "auto" or float, default="auto"
        The a above, > 0, in units of :math:`Z^\top Z` as ``alphas``. "auto" climbs by
        factors of 4 on held-out rows, from the mean of :math:`\|z\|^2 + 1`.
    n_trees : int, default=1
        Trees; several are grown one after the other, see ``combine``.
    combine : {"bag", "boost"}, default="bag"
        With several trees: the mean of the fits with each, or each fitted to what the
        ones before leave of the rows they have not seen.
    learning_rate : float, default=0.5
        With "boost", what is taken of each fit, in (0, 1].
    max_features : "auto", None or float, default="auto"
        Share of the columns that is tried at a split, None for all; "auto" is all for
        one tree and half for several.
    min_samples_leaf : int, default=20
        Rows of a leaf, at least.
    partition : None or surff.linear.Partition, default=None
        Trees to use as they are, for instance ``leaves_.partition`` of a fitted model.
        Those that choose the number of leaves and grow trees are not looked at.
    max_bytes : float, default=2e9
        Memory for the sums of all leaves, `surff.linear.leaf_sums_bytes`, which
        `partial_fit`, `fit_stream` and Dask collections need; more is refused before it
        is used.
    random_state : int, Generator, RandomState or None, default=0
        Of the held-out rows, and of the columns that are tried.

    See Also
    --------
    KernelRidgeRegressor, KernelRidgeClassifier : Their parameter ``leaves``.

    Examples
    --------
    >>> import numpy as np
    >>> from surff import FourierFeatures, KernelRidgeRegressor, LeafHeads
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(2000, 3))
    >>> y = np.where(X[:, 0] > 0.1, X[:, 1], 1.0) + (X[:, 2] > 0.5)
    >>> features = FourierFeatures(20, random_state=0)
    >>> model = KernelRidgeRegressor(features).fit(X[:1500], y[:1500])
    >>> round(model.score(X[1500:], y[1500:]), 2)
    0.84
    >>> model = model.set_params(leaves=LeafHeads(8)).fit(X[:1500], y[:1500])
    >>> round(model.score(X[1500:], y[1500:]), 2)
    0.98
    """

    _parameter_constraints: ClassVar[dict] = {
        "n_leaves": [
            StrOptions({"auto"}),
            Interval(numbers.Integral, 2, None, closed="left"),
        ],
        "alpha": [
            StrOptions({"auto"}),
            Interval(numbers.Real, 0.0, None, closed="neither"),
        ],
        "n_trees": [Interval(numbers.Integral, 1, None, closed="left")],
        "combine": [StrOptions({"bag", "boost"})],
        "learning_rate": [Interval(numbers.Real, 0.0, 1.0, closed="right")],
        "max_features": [
            StrOptions({"auto"}),
            None,
            Interval(numbers.Real, 0.0, 1.0, closed="right"),
        ],
        "min_samples_leaf": [Interval(numbers.Integral, 1, None, closed="left")],
        "partition": [None, Partition],
        "max_bytes": [Interval(numbers.Real, 0.0, None, closed="neither")],
        "random_state": ["random_state", np.random.Generator],
    }

    def __init__(
        self,
        n_leaves: Any = "auto",
        *,
        alpha: Any = "auto",
        n_trees: int = 1,
        combine: str = "bag",
        learning_rate: float = 0.5,
        max_features: Any = "auto",
        min_samples_leaf: int = 20,
        partition: Any = None,
        max_bytes: float = 2e9,
        random_state: Any = 0,
    ):
        self.n_leaves = n_leaves
        self.alpha = alpha
        self.n_trees = n_trees
        self.combine = combine
        self.learning_rate = learning_rate
        self.max_features = max_features
        self.min_samples_leaf = min_samples_leaf
        self.partition = partition
        self.max_bytes = max_bytes
        self.random_state = random_state

    def check_parameters(self) -> None:
        """Check the parameters, as `fit` of a model does."""
        self._validate_params()

    def boosts(self) -> bool:
        """Whether trees are grown one on what the other leaves."""
        several = self.n_trees != 1 and self.partition is None
        return several and self.combine == "boost"

    def tried_share(self) -> float | None:
        """Share of the columns that is tried at a split; None for all."""
        if self.max_features == "auto":
            return None if self.n_trees == 1 else 0.5
        return self.max_features


#: What the parameter ``leaves`` may be.
LEAVES_CONSTRAINTS = {
    "leaves": [
        None,
        StrOptions({"auto"}),
        Interval(numbers.Integral, 2, None, closed="left"),
        LeafHeads,
    ]
}


class LeafModel(NamedTuple):
    """Fitted leaf heads, ``leaves_`` of a model."""

    partition: Partition | None  # None for no leaves
    coef: np.ndarray  # (n_leaves, k, m), what each leaf adds to ``primal_coef_``
    intercept: np.ndarray  # (n_leaves, k)
    alpha: float  # that shrinks them; infinite for no leaves
    trials: np.ndarray  # (n_trials, 3): leaves, alpha, mean squared held-out error

    @property
    def n_leaves(self) -> int:
        """Leaves of all trees."""
        return len(self.coef)

    def in_dtype(self, dtype: Any) -> LeafModel:
        """Return the same leaves with heads as compiled code takes them."""
        coef, intercept = (
            np.require(a, dtype, list("CA")) for a in (self.coef, self.intercept)
        )
        return self._replace(coef=coef, intercept=intercept)

    def add_to(self, decisions: np.ndarray, X: Any, Z: np.ndarray) -> None:
        """Add what the leaves of rows say, whose features are ``Z``."""
        leaves = np.empty((len(Z), self.partition.n_trees), np.int64)
        self.partition.walk(X, leaves)
        add_leaf_decisions(decisions, Z, leaves, self.coef, self.intercept)


def checked_leaves(leaves: Any) -> LeafHeads | None:
    """Parameters of the leaf heads, checked; None for none."""
    if leaves is None:
        return None
    if not isinstance(leaves, LeafHeads):
        leaves = LeafHeads(leaves)
    leaves.check_parameters()
    return leaves
