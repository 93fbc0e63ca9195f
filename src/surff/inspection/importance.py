r"""What the columns of the data count for in a fitted model, in numbers and a picture.

The importance of column j is :math:`I_j = \sigma_j^2\, \frac1n \sum_i \sum_k (\partial
f_k / \partial x_j)^2`: the mean square of what a step of one standard deviation along
the column would change, to first order, in squared units of the predictions. For a
linear model of one target it is :math:`(\beta_j \sigma_j)^2`, half of what
`sklearn.inspection.permutation_importance` finds by the squared error.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from surff.backend import Array, as_generator, checked_weight, rows_of, validated
from surff.estimators import (
    FeatureImportances,
    dense,
    has_gradient,
    importances_of_gradients,
    row_gradients,
)
from surff.inspection.displays import COLOURS, axes_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["FeatureImportances", "ImportanceDisplay", "feature_importances"]

#: Step of a difference in standard deviations of the column: rounding and curvature
#: then cost about as little, in float64.
STEP = 1e-4


def feature_importances(
    model: Any,
    X: Array,
    *,
    sample_weight: npt.ArrayLike | None = None,
    n_samples: int = 1000,
    random_state: Any = 0,
) -> FeatureImportances:
    r"""Importance of each column: mean squared derivative, times the column's variance.

    Computes :math:`I_j = \sigma_j^2\, \frac1n \sum_i \sum_k (\partial f_k / \partial
    x_j)^2` at rows of ``X``, the diagonal of the average gradient outer product in
    units of the columns' standard deviations :math:`\sigma_j`.

    Parameters
    ----------
    model : fitted estimator
        A model of surff, in closed form on Fourier features; or any other estimator
        that predicts numbers, or has a decision function or probabilities, from
        numeric columns, by central differences.
    X : array-like or sparse matrix of shape (n_samples, n_features)
        Rows, such as those held out.
    sample_weight : array-like of shape (n_samples,), optional
        Row weights, >= 0.
    n_samples : int, default=1000
        Most rows to look at, drawn without replacement.
    random_state : int, RandomState, Generator or None, default=0
        Seed of the choice of the rows.

    Returns
    -------
    FeatureImportances
        ``importances_mean`` and its standard errors ``importances_std``, each of shape
        (n_features,); errors are those of the choice of the rows, for this model.

    See Also
    --------
    sklearn.inspection.permutation_importance : What the score loses, jumps included.

    Notes
    -----
    In closed form ``O(s d k)`` time per row for s frequencies; by differences two
    predictions per row and column. Jumps, such as those between leaf heads, have no
    derivative and count for nothing. A column whose copy is there as well shares its
    importance with it.

    References
    ----------
    .. [1] A. Radhakrishnan, D. Beaglehole, P. Pandit, M. Belkin, "Mechanism for feature
       learning in neural networks and backpropagation-free machine learning models",
       Science 383, 2024.

    Examples
    --------
    >>> import numpy as np
    >>> from surff import FourierFeatures, KernelRidgeRegressor
    >>> from surff.inspection import feature_importances
    >>> X = np.random.default_rng(0).normal(size=(500, 3))
    >>> y = 2.0 * X[:, 0] + np.sin(X[:, 2])
    >>> features = FourierFeatures(200, gamma=0.02, random_state=0)
    >>> model = KernelRidgeRegressor(features).fit(X, y)
    >>> feature_importances(model, X).importances_mean.round(1)
    array([3.8, 0. , 0.6])
    """
    check_is_fitted(model)
    if n_samples < 1:
        raise ValueError(f"n_samples must be at least 1, got {n_samples!r}.")
    closed = has_gradient(model)
    if closed:
        X = validated(model, X, reset=False)
    elif not hasattr(X, "iloc") and not sparse.issparse(X):
        X = np.asarray(X)
    weight = None if sample_weight is None else checked_weight(sample_weight, X)
    index = np.arange(X.shape[0])
    if n_samples < len(index):
        rng = as_generator(random_state)
        index = np.sort(rng.choice(len(index), n_samples, replace=False))
    weight = None if weight is None else np.asarray(weight)[index]
    if weight is not None and not weight.any():
        raise ValueError(
            f"none of the n_samples={n_samples} rows that were drawn has a positive "
            "sample_weight; increase n_samples."
        )
    if closed:
        rows = dense(rows_of(X, index))
        return importances_of_gradients(row_gradients(model, rows), rows, weight)
    some = X.iloc[index] if hasattr(X, "iloc") else X[index]
    rows = dense(some)
    return importances_of_gradients(differences(model, some, rows), rows, weight)


def differences(model: Any, some: Any, rows: np.ndarray) -> np.ndarray:
    """Sums over outputs of squared central differences, (n_rows, n_features).

    Parameters
    ----------
    model : fitted estimator
    some : array or dataframe of shape (n_rows, n_features)
        Rows as the model takes them.
    rows : ndarray of shape (n_rows, n_features)
        Their numbers.
    """
    names = ("decision_function", "predict_proba", "predict")
    output = next(getattr(model, name) for name in names if hasattr(model, name))
    steps = STEP * rows.std(axis=0)
    squares = np.zeros_like(rows)
    for j in np.flatnonzero(steps):
        values = []
        for sign in (1.0, -1.0):
            moved = rows.copy()
            moved[:, j] += sign * steps[j]
            if hasattr(some, "iloc"):
                moved = type(some)(moved, index=some.index, columns=some.columns)
            values.append(np.asarray(output(moved), dtype=np.float64))
        slope = (values[0] - values[1]).reshape(len(rows), -1) / (2.0 * steps[j])
        squares[:, j] = np.square(slope).sum(axis=1)
    return squares


@dataclass(eq=False, repr=False)
class ImportanceDisplay:
    """Bars of what the columns count for, the largest first.

    Make it with `from_estimator`.

    Parameters
    ----------
    importances : ndarray of shape (n_columns,)
        Importances.
    errors : ndarray of shape (n_columns,)
        Their standard errors.
    feature_names : sequence of str
        Names of the columns.

    Attributes
    ----------
    ax_ : matplotlib Axes
        After `plot`.
    figure_ : matplotlib Figure
        After `plot`.
    bars_ : matplotlib BarContainer
        After `plot`, the largest on top.

    See Also
    --------
    surff.inspection.feature_importances : The numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from surff import FourierFeatures, ImportanceDisplay, KernelRidgeRegressor
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> model = KernelRidgeRegressor(FourierFeatures(50, random_state=0))
    >>> model = model.fit(X, np.sin(X[:, 2]))
    >>> display = ImportanceDisplay.from_estimator(model)
    >>> display.feature_names[0]
    'x2'
    """

    importances: np.ndarray
    errors: np.ndarray
    feature_names: Sequence[str]

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        X: Array | None = None,
        *,
        feature_names: Sequence[str] | None = None,
        max_columns: int = 20,
        ax: Axes | None = None,
        bar_kw: dict[str, Any] | None = None,
    ) -> ImportanceDisplay:
        """Compute importances and draw them.

        Parameters
        ----------
        model : fitted estimator
            See `surff.inspection.feature_importances`.
        X : array-like or sparse matrix of shape (n_samples, n_features), optional
            Rows; by default the model's own ``feature_importances_`` are drawn.
        feature_names : sequence of str, optional
            Names of the columns; by default those that the model was fitted with, or
            x0, x1, ...
        max_columns : int, default=20
            Most columns to draw.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        bar_kw : dict, optional
            Arguments of `matplotlib.axes.Axes.barh`.

        Returns
        -------
        display : ImportanceDisplay
        """
        if X is None:
            means, errors = model.feature_importances_, model.feature_importances_std_
        else:
            means, errors = feature_importances(model, X)
        if feature_names is None:
            unnamed = [f"x{j}" for j in range(len(means))]
            feature_names = list(getattr(model, "feature_names_in_", unnamed))
        if len(feature_names) != len(means):
            raise ValueError(
                f"feature_names must hold {len(means)} names, one for each column, got "
                f"{len(feature_names)}."
            )
        order = np.argsort(-means, kind="stable")[:max_columns]
        names = [str(feature_names[j]) for j in order]
        return cls(means[order], errors[order], names).plot(ax, bar_kw=bar_kw)

    def plot(
        self, ax: Axes | None = None, *, bar_kw: dict[str, Any] | None = None
    ) -> ImportanceDisplay:
        """Draw the bars, with a line of one standard error to each side.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        bar_kw : dict, optional
            Arguments of `matplotlib.axes.Axes.barh`.

        Returns
        -------
        display : ImportanceDisplay
        """
        self.figure_, self.ax_ = axes_of(ax)
        places = np.arange(len(self.importances))[::-1]
        options = {"color": COLOURS[0], "ecolor": "black", "height": 0.7}
        self.bars_ = self.ax_.barh(
            places, self.importances, xerr=self.errors, **{**options, **(bar_kw or {})}
        )
        self.ax_.set_yticks(places, self.feature_names)
        self.ax_.set_xlim(left=0.0)
        self.ax_.set_xlabel("squared derivative times variance of the column")
        return self
