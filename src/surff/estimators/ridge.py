"""Kernel ridge regression and classification on streamed features."""

from __future__ import annotations

import functools
from typing import Any, Self

import numpy as np
from sklearn.base import (
    ClassifierMixin,
    MultiOutputMixin,
    RegressorMixin,
    _fit_context,
)
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import (
    check_array,
    check_consistent_length,
    check_is_fitted,
)

from surff.backend import (
    Array,
    checked_weight,
    labels_like,
    namespace_of,
    to_numpy,
    to_numpy_if_dispatched,
    validated,
)
from surff.estimators._arguments import ELSEWHERE, available_if, instead_of
from surff.estimators._atomic import all_or_nothing
from surff.estimators._base_ridge import (
    PRIVATE_RESULTS,
    RIDGE_CONSTRAINTS,
    BaseKernelRidge,
    check_columns,
    learns_in_pieces,
    streams,
)
from surff.estimators._class_weight import (
    CLASS_WEIGHT,
    ClassWeights,
    weights_of_classes,
    weights_of_piece,
)
from surff.estimators._intervals import PredictsIntervals, PredictsSets
from surff.estimators._linear import calibrated_probabilities, winning_labels
from surff.estimators._posterior import (
    PosteriorOfRidge,
    looks_at_targets,
    noise_of_folds,
)
from surff.estimators._targets import (
    check_labels,
    one_vs_rest,
    refuse_large,
    refuse_one_class,
)
from surff.linear import (
    R2,
    Accuracy,
    NormalEquations,
    ScorerOf,
    SquaredError,
    platt_curve,
)
from surff.streaming import DaskRows, added, is_dask, over_blocks, without_sums

__all__ = ["KernelRidgeClassifier", "KernelRidgeRegressor"]


def has_probabilities(model):
    """Whether `predict_proba` can do what the parameters ask for."""
    if not model.probability:
        raise AttributeError(
            "predict_proba needs probability=True when the model is made and fitted, "
            f"got probability={model.probability!r}"
        )
    return True


class ScoresWorkers:
    """The score of scikit-learn's mixin, for rows on workers, too."""

    def score(self, X, y, sample_weight=None):
        """R2 of the predictions, averaged over targets; or accuracy.

        Parameters
        ----------
        X : array-like, sparse matrix or Dask collection of shape \
                (n_samples, n_features)
            Data, finite.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Targets or labels.
        sample_weight : array-like of shape (n_samples,), optional
            Row weights, >= 0.

        Returns
        -------
        score : float
        """
        if is_dask(X):
            return self.score_stream(DaskRows(X, y, sample_weight))
        return super().score(X, y, sample_weight)


class KernelRidgeRegressor(
    ScoresWorkers,
    MultiOutputMixin,
    RegressorMixin,
    PosteriorOfRidge,
    PredictsIntervals,
    BaseKernelRidge,
):
    r"""Kernel ridge regression on streamed random features.

    Minimises :math:`\|y - Z \beta - b\|^2 + \alpha \|\beta\|^2` for the features Z of
    ``features``. Rows are mapped block by block and only their normal equations are
    kept, so memory does not depend on their number.

    Parameters
    ----------
    features : transformer of surff, FrozenEstimator or None, default=None
        Feature map; None is ``FourierFeatures()``. It is cloned and fitted; one that is
        fitted and wrapped in `sklearn.frozen.FrozenEstimator` is used as it is.
    alphas : "auto", float or array-like, default="auto"
        Regularisation, >= 0, in units of :math:`Z^\top Z` (the paper's
        :math:`n \lambda`). One number is used as it is; among several the best one by
        ``cv`` is chosen; "auto" takes half decades from 1e-8 to 1e2 times the mean
        eigenvalue of the Gram matrix and grows while the best is at an end.
    gammas : None, "auto", "columns" or array-like, default=None
        Bandwidths to choose from together with alpha, by the same score, each with the
        same draws: None keeps that of ``features``, "auto" walks from it in factors of
        two while the score rises. Costs a fit each. "columns" chooses one for each
        column of ``X`` by the gradient of the evidence, with ``cv="evidence"`` and
        `FourierFeatures` that neither select nor adapt; see
        `surff.adaptation.column_bandwidths`.
    cv : int, splitter, iterable, "gcv", "loo" or "evidence", default=5
        Cross-validation, see `sklearn.model_selection.check_cv`; "gcv" is generalised
        cross-validation, without a second pass over the data, "loo" exact
        leave-one-out, "evidence" the marginal likelihood of the Gaussian process that
        the model is, without a second pass either; they count a weight w as w rows, and
        "loo" takes no positive one below 1. Not used for a single alpha. The folds of
        an int are not shuffled, as everywhere in scikit-learn: for sorted rows pass
        ``KFold(5, shuffle=True)``.
    scoring : None, str or callable, default=None
        A scikit-learn scorer; None is R2. R2 and "neg_mean_squared_error" come from the
        normal equations without a second pass over the data.
    fit_intercept : bool, default=True
        Whether to fit an intercept.
    solver : {"cholesky", "eigh", "cg", "auto"}, default="cholesky"
        From the normal equations, a Cholesky factorisation for each alpha or one
        eigendecomposition for all, slower, and able to solve singular systems. "cg" are
        conjugate gradients on passes over the data: no normal equations, so no
        ``cv="gcv"`` or "loo", and a smaller automatic grid. "auto" takes them for a
        single alpha where they are faster and ``keep_equations`` is False, and
        "cholesky" else.
    tol : float, default=1e-2
        For conjugate gradients: root mean square error of predictions, estimated, in
        standard deviations of the target, at which to stop. For ``precision="auto"``:
        the bound on what float32 may cost.
    max_iter : int, default=100
        For conjugate gradients: passes over the data at most.
    precision : {"auto", "mixed", "float64"}, default="auto"
        Whether rows are mapped and multiplied in float32, which is twice as fast;
        matrices are summed over blocks and solved in float64 with any of them.
        "auto" keeps the type of ``X``, but takes "mixed" for float64 rows where that
        saves time and cannot matter: ``alphas`` are given and the smallest is at least
        :math:`2^{-23}\, \mathrm{tr}(Z^\top Z) / (4\, \mathrm{tol})`, see
        `surff.linear.float32_error`, and n m^2 is 1e10 or more. Conjugate
        gradients go by ``tol`` alone.
    alpha_per_target : bool, default=False
        Choose an alpha for each target; ``scoring`` must be None, "r2" or
        "neg_mean_squared_error".
    keep_equations : bool, default=True
        Keep the normal equations after `fit`, m by m numbers: what
        ``predict(return_std=True)`` and a later `partial_fit` need. False makes a small
        model.
    intervals : bool or "normalized", default=False
        Keep the models of the folds and the residuals of the rows that they left out,
        for `predict_interval`: one more pass over the data, and F models and n numbers
        for F folds (n models with ``cv="loo"``); a stream keeps its residuals rounded
        up by less than a thousandth, some thousand numbers. "normalized" fits the size
        of the residuals as well, one more pass for each fold. ``cv`` must be an int, a
        splitter that leaves each row out once at most, or "loo"; it is used for a
        single alpha, too.
    verbose : int, bool or callable, default=0
        Whether to show progress: 1 is a bar on a terminal and a line every ten seconds
        elsewhere; 0 is nothing, or lines to the logger "surff" if that is enabled for
        level INFO. A function is called with `surff.backend.Progress`; it is not saved
        with the model.
    max_time : float or None, default=None
        Seconds, > 0, after which work that can stop early does: the search for gamma,
        adaptations and conjugate gradients keep the best so far. What cannot, such as
        a pass over the data for one alpha, is done to its end. The result depends on
        the speed of the machine. None is no limit.
    leaves : None, int, "auto" or LeafHeads, default=None
        Leaves of a tree, each with a head of its own on the features, shrunk towards
        the common one; "auto" chooses how many, see `LeafHeads` and the guide to leaf
        heads. Not for ``solver="cg"``, and ``return_std`` does without.

    Attributes
    ----------
    primal_coef_ : ndarray of shape (n_components,) or (n_targets, n_components)
        Coefficients :math:`\beta`.
    intercept_ : float or ndarray of shape (n_targets,)
        Intercept b.
    alpha_ : float, or ndarray of shape (n_targets,) with ``alpha_per_target``
        Regularisation used.
    best_score_ : float or None
        Mean score of ``alpha_`` over the held-out folds (``cv="gcv"``: the negative GCV
        error, "evidence": the log marginal likelihood); None for a single alpha.
    alpha_path_ : AlphaPath
        Alphas and their scores; not set for a single alpha.
    gamma_path_ : dict of float to float
        Bandwidths tried and their best scores; with ``gammas`` only, but "columns",
        whose choice is ``features_.gamma_``.
    noise_variance_ : ndarray of shape (n_targets,)
        Variance of the noise; needs ``equations_``.
    fold_models_ : FoldModels
        Models of the folds; with ``intervals`` only.
    features_ : transformer
        The fitted feature map.
    equations_ : NormalEquations
        With ``keep_equations`` only, and not after conjugate gradients.
    leaves_ : LeafModel
        With ``leaves`` only: the tree, what each leaf adds to ``primal_coef_`` and
        ``intercept_``, its alpha, and the trials of the choice.
    n_iter_ : int
        Passes of conjugate gradients; 1 for the other solvers.
    n_features_in_ : int
        Columns of ``X``.

    Raises
    ------
    SingularError
        If :math:`Z^\top Z + \alpha I` is singular to working precision.

    Notes
    -----
    ``O(n m (d + m))`` time for m components, and ``O(m^3)`` per alpha and fold. Memory
    is a block of features and a matrix of m by m per thread, and ``n_splits + 4`` such
    matrices (twice ``n_splits`` where the splits are not a partition of the rows), in
    float64.

    Features that look at ``y`` (``select="surrogate"``) are fitted again to the
    training rows of each split, so ``best_score_`` is that of rows whose targets
    nothing has seen; "gcv", "loo" and "evidence" take the features as they are, and so
    do all of them a ``FrozenEstimator``.

    With scikit-learn's ``array_api_dispatch``, arrays of other libraries such as
    PyTorch are taken and stay on their device; the guide to arrays says what with.

    Examples
    --------
    >>> from sklearn.datasets import make_friedman1
    >>> from surff import FourierFeatures, KernelRidgeRegressor
    >>> X, y = make_friedman1(500, random_state=0)
    >>> model = KernelRidgeRegressor(FourierFeatures(512, random_state=0)).fit(X, y)
    >>> model.best_score_ > 0.85
    True
    """

    _is_classifier = False

    _parameter_constraints: dict = {  # noqa: RUF012  (scikit-learn's convention)
        **RIDGE_CONSTRAINTS,
        "alpha_per_target": ["boolean"],
    }

    @instead_of(**ELSEWHERE)
    def __init__(
        self,
        features: Any = None,
        *,
        alphas: Any = "auto",
        gammas: Any = None,
        cv: Any = 5,
        scoring: Any = None,
        fit_intercept: bool = True,
        solver: str = "cholesky",
        tol: float = 1e-2,
        max_iter: int = 100,
        precision: str = "auto",
        alpha_per_target: bool = False,
        keep_equations: bool = True,
        intervals: Any = False,
        verbose: Any = 0,
        max_time: float | None = None,
        leaves: Any = None,
    ):
        self.features = features
        self.alphas = alphas
        self.gammas = gammas
        self.cv = cv
        self.scoring = scoring
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.precision = precision
        self.alpha_per_target = alpha_per_target
        self.keep_equations = keep_equations
        self.intervals = intervals
        self.verbose = verbose
        self.max_time = max_time
        self.leaves = leaves

    def _validated(self, X, y, sample_weight, reset):
        y = to_numpy_if_dispatched(y)
        X, y = validated(self, X, y, multi_output=True, y_numeric=True, reset=reset)
        y = y.astype(np.float64)
        refuse_large(y)
        return X, y, y.reshape(len(y), -1), checked_weight(sample_weight, X)

    _streamed_scoring = (None, "r2", "neg_mean_squared_error")

    def _learn_targets(self, y, classes):
        """Nothing to learn of numbers."""
        del y, classes

    @staticmethod
    def _coded(y):
        """Targets of shape (n_samples, k)."""
        return y.reshape(len(y), -1)

    def _unwrap(self, y):
        """Coefficients of a single target without the axis of targets."""
        if y.ndim == 1:
            self.primal_coef_, self.intercept_ = (
                self.primal_coef_[0, ...],
                self.intercept_[0],
            )

    @_fit_context(prefer_skip_nested_validation=True)
    @all_or_nothing(private=PRIVATE_RESULTS)
    def fit(self, X: Array, y: Any, sample_weight: Any = None) -> Self:
        """Fit the feature map, choose alpha and solve.

        Parameters
        ----------
        X : array-like, sparse matrix or Dask collection of shape \
                (n_samples, n_features)
            Data, finite. Rows of a Dask collection stay on the workers, see the guide
            to clusters.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Targets, finite.
        sample_weight : array-like of shape (n_samples,), optional
            Row weights, >= 0: weight w counts as the row repeated w times.

        Returns
        -------
        self
        """
        if is_dask(X):
            return self._fit_on_workers(X, y, sample_weight)
        X, y, Y, sample_weight = self._validated(X, y, sample_weight, reset=True)
        self._fit(X, y, Y, sample_weight)
        self._unwrap(y)
        return self

    @available_if(learns_in_pieces)
    @_fit_context(prefer_skip_nested_validation=True)
    @all_or_nothing(again=False)
    def partial_fit(self, X: Array, y: Any, sample_weight: Any = None) -> Self:
        """Add rows to the model.

        The normal equations of the new rows are added to those seen before, so the
        coefficients are those of one `fit` to all rows with the same features and
        alpha, whatever the pieces. The feature map is fitted to the first piece; to fit
        it to other data, do so and pass it as a ``FrozenEstimator``. Several alphas are
        chosen from by generalised cross-validation, which needs no folds.

        There is no such method with ``gammas`` or ``probability``, which need all rows
        at once, nor with ``keep_equations=False``.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Data, finite.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Targets, finite.
        sample_weight : array-like of shape (n_samples,), optional
            Row weights, >= 0.

        Returns
        -------
        self
        """
        first = not hasattr(self, "n_features_in_")
        X, y, Y, sample_weight = self._validated(X, y, sample_weight, reset=first)
        if hasattr(self, "equations_"):
            check_columns(y, len(self.equations_.target_sum))
        self._partial_fit(X, Y, sample_weight)
        self._unwrap(y)
        return self

    @available_if(streams)
    @_fit_context(prefer_skip_nested_validation=True)
    @all_or_nothing(private=PRIVATE_RESULTS)
    def fit_stream(self, source: Any, *, n_sample: int = 10_000) -> Self:
        """Fit to a source of rows that need not fit in memory.

        The normal equations of all rows and of each fold are formed block by block, in
        one pass, so the coefficients are those of `fit` to all rows with the same
        features and alpha. Blocks are read while others are computed with. If it fails,
        the model is what it was.

        Parameters
        ----------
        source : source of rows
            See `surff.streaming`; it is iterated over once a pass.
        n_sample : int, default=10_000
            Rows that features which look at the rows are fitted to, drawn uniformly
            without replacement; all rows if there are no more. gamma="scale" takes the
            variance of all rows.

        Returns
        -------
        self

        Notes
        -----
        Passes: one; and one before it, unless the features are frozen or do not look at
        the rows. Memory is that of `fit`, without what `fit` holds for each row, of two
        blocks and of the sample; it does not depend on the number of rows.

        An int for ``cv`` draws the fold of each row by its number in the source; "gcv"
        and "evidence" work too. ``scoring`` must be None, "r2" or
        "neg_mean_squared_error". Where features look at the targets, the rows of their
        sample, at most half of all, are not held out. There is no such method with
        ``gammas``.
        """
        self._fit_source(source, None, n_sample)
        return self

    def score_stream(self, source: Any) -> float:
        """R2 of the predictions for a source, averaged over targets.

        Parameters
        ----------
        source : source of rows
            See `surff.streaming`; with targets, and weights if any.

        Returns
        -------
        score : float
        """
        check_is_fitted(self)
        predict = without_sums(self).predict_checked
        offset = np.atleast_1d(self.intercept_)
        errors, sums = self._passes_over(source, checked_numbers).reduce(
            functools.partial(no_errors, len(offset)),
            functools.partial(add_errors, predict=predict, offset=offset),
            added,
        )
        return float(R2.from_sums(errors, sums).mean())

    def _scorer(self, data, y, Y):
        if self.scoring in (None, "r2"):
            # The folds' equations know targets less the offset; R2 does not mind.
            return R2(Y)
        if self.scoring == "neg_mean_squared_error":
            return SquaredError(Y)
        if self.alpha_per_target:
            raise ValueError(
                "alpha_per_target needs a score of each target: scoring must be None, "
                f"'r2' or 'neg_mean_squared_error', got {self.scoring!r}."
            )
        outputs = self._outputs
        return ScorerOf(self, self.scoring, data.X, y, outputs, outputs)

    def predict_checked(self, X: Array) -> Array:
        """Predict checked rows, with no look at their names or types."""
        decisions = self._decisions(X)
        return decisions[:, 0] if np.ndim(self.primal_coef_) == 1 else decisions

    @over_blocks
    def predict(
        self, X: Array, return_std: bool = False, return_cov: bool = False
    ) -> Any:
        r"""Predict the targets of rows.

        Parameters
        ----------
        X : array-like, sparse matrix or Dask collection of shape \
                (n_samples, n_features)
            Data, finite. Rows of a Dask collection stay on the workers, see the guide
            to clusters.
        return_std : bool, default=False
            Whether to return the standard deviation of each prediction, too.
        return_cov : bool, default=False
            Whether to return the covariance of the predictions, too; not for Dask
            collections, whose blocks are apart.

        Returns
        -------
        y : ndarray of shape (n_samples,) or (n_samples, n_targets)
        std : ndarray of the shape of ``y``
            Standard deviation of a new observation of the target.
        cov : ndarray of shape (n_samples, n_samples) or \
                (n_samples, n_samples, n_targets)
            Covariance of new observations; the diagonal is the square of ``std``.

        Raises
        ------
        ValueError
            If the normal equations were not kept, or the features looked at the targets
            and no folds show what the noise is.

        Notes
        -----
        Ridge is the posterior mean of Bayesian linear regression with noise variance
        :math:`\sigma^2`, prior :math:`\beta \sim N(0, \sigma^2 / \alpha\, I)` and a
        flat prior on the intercept. At the chosen alpha

        .. math:: \mathrm{std}^2 = \sigma^2 \bigl(1 + \tfrac1n
                  + z^\top (G + \alpha I)^{-1} z\bigr), \qquad
                  \sigma^2 = \frac{\mathrm{RSS}}{n - \mathrm{df} - 1}

        with centred features z and their Gram matrix G. Where features looked at the
        targets, :math:`\sigma^2` is that of rows left out instead, see
        `surff.linear.held_out_noise`: the folds that alpha was chosen by have it. The
        first call costs ``O(m^3)``; rows cost ``O(m^2)`` each.
        """
        if return_std and return_cov:
            raise ValueError("at most one of return_std and return_cov may be True.")
        X = self._checked(X, "predict")
        mean = self.predict_checked(X)
        if return_cov:
            spread = self._deviations(X, "return_cov=True")
            return mean, spread[:, :, 0] if mean.ndim == 1 else spread
        if not return_std:
            return mean
        return mean, self._deviations(X, "return_std=True").reshape(mean.shape)

    def _take_noise(self, choice):
        """Set the noise that the folds show, where features looked at the targets.

        Rows that are added later leave it as it is.
        """
        if looks_at_targets(self) and not hasattr(self, "_held_out_noise"):
            n_targets = choice.total.moments.shape[1]
            self._held_out_noise = noise_of_folds(self, choice.criterion, n_targets)


class KernelRidgeClassifier(
    ScoresWorkers, ClassifierMixin, PredictsSets, BaseKernelRidge
):
    r"""Kernel ridge classification on streamed random features.

    Least squares on targets -1 and 1, one-vs-rest for more than two classes, where the
    class of the largest prediction wins. Any labels are taken; a matrix of zeros and
    ones is a multilabel target, one model per label.

    The memory and cost are those of `KernelRidgeRegressor`; ``scoring=None`` is the
    accuracy, which takes one more streaming pass for all alphas together.

    Parameters
    ----------
    features : transformer of surff, FrozenEstimator or None, default=None
        Feature map; None is ``FourierFeatures()``. It is cloned and fitted; one that is
        fitted and wrapped in `sklearn.frozen.FrozenEstimator` is used as it is.
    alphas : "auto", float or array-like, default="auto"
        Regularisation, see `KernelRidgeRegressor`.
    gammas : None, "auto", "columns" or array-like, default=None
        Bandwidths to choose from, see `KernelRidgeRegressor`.
    cv : int, splitter, iterable, "gcv", "loo" or "evidence", default=5
        Cross-validation, see `KernelRidgeRegressor`; stratified for an int. "gcv" and
        "evidence" judge the numbers -1 and 1, "loo" the score of the left-out labels.
    scoring : None, str or callable, default=None
        A scikit-learn scorer that needs `predict` or `decision_function`; None is the
        accuracy.
    fit_intercept : bool, default=True
        Whether to fit an intercept.
    solver : {"cholesky", "eigh", "cg", "auto"}, default="cholesky"
        See `KernelRidgeRegressor`, as for the next two.
    tol : float, default=1e-2
        Error of predictions at which conjugate gradients stop, and the bound on it for
        ``precision="auto"``.
    max_iter : int, default=100
        Passes over the data at most.
    precision : {"auto", "mixed", "float64"}, default="auto"
        See `KernelRidgeRegressor`.
    probability : bool, default=False
        Calibrate `predict_proba` on predictions of rows left out, by ``cv``: one more
        pass over the data.
    keep_equations : bool, default=True
        Keep the normal equations after `fit`, m by m numbers: what a later
        `partial_fit` needs. False makes a small model.
    intervals : bool, default=False
        Keep the models of the folds and the scores of the rows that they left out, for
        `predict_set`; see `KernelRidgeRegressor`. Not for a multilabel target.
    verbose : int, bool or callable, default=0
        Whether to show progress, see `KernelRidgeRegressor`, as for the next.
    max_time : float or None, default=None
        Seconds, > 0, after which work that can stop early does.
    class_weight : dict, "balanced" or None, default=None
        Factor of the weights of the rows of each class, 1 for labels that a dict does
        not hold; "balanced" gives every class the same total, as
        `sklearn.utils.class_weight.compute_class_weight` does. Held-out scores have
        these weights, too. "balanced" costs `fit_stream` a pass to count, and
        `partial_fit` takes None or a dict alone. Not for multilabel targets.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels, sorted; for a multilabel target the numbers of the labels.
    primal_coef_ : ndarray of shape (1, n_components) or (n_classes, n_components)
        Coefficients.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Intercepts.
    alpha_ : float
        Regularisation used.
    best_score_ : float or None
        Mean score of ``alpha_`` over the held-out folds (``cv="gcv"``: the negative GCV
        error); None for a single alpha.
    alpha_path_ : AlphaPath
        Alphas and their scores; not set for a single alpha.
    gamma_path_ : dict of float to float
        Bandwidths tried and their best scores; with ``gammas`` only.
    calibration_ : ndarray of shape (1, 2) or (n_classes, 2)
        Slope and intercept of the logistic curve of each column of decisions; with
        ``probability`` only.
    fold_models_ : FoldModels
        Models of the folds; with ``intervals`` only.
    features_ : transformer
        The fitted feature map.
    equations_ : NormalEquations
        With ``keep_equations`` only, and not after conjugate gradients.
    leaves_ : LeafModel
        With ``leaves`` only: the tree, what each leaf adds to ``primal_coef_`` and
        ``intercept_``, its alpha, and the trials of the choice.
    n_iter_ : int
        Passes of conjugate gradients; 1 for the other solvers.
    n_features_in_ : int
        Columns of ``X``.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from surff import FourierFeatures, KernelRidgeClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> features = FourierFeatures(200, select="surrogate", random_state=0)
    >>> model = KernelRidgeClassifier(features).fit(scale(X), y)
    >>> model.best_score_ > 0.95
    True
    """

    _is_classifier = True

    class_weight: Any = None  # model files of version 0.1.0 lack it

    _parameter_constraints: dict = {  # noqa: RUF012  (scikit-learn's convention)
        **RIDGE_CONSTRAINTS,
        "probability": ["boolean"],
        "intervals": ["boolean"],
        "class_weight": CLASS_WEIGHT,
    }

    @instead_of(**ELSEWHERE)
    def __init__(
        self,
        features: Any = None,
        *,
        alphas: Any = "auto",
        gammas: Any = None,
        cv: Any = 5,
        scoring: Any = None,
        fit_intercept: bool = True,
        solver: str = "cholesky",
        tol: float = 1e-2,
        max_iter: int = 100,
        precision: str = "auto",
        probability: bool = False,
        keep_equations: bool = True,
        intervals: Any = False,
        verbose: Any = 0,
        max_time: float | None = None,
        leaves: Any = None,
        class_weight: Any = None,
    ):
        self.features = features
        self.alphas = alphas
        self.gammas = gammas
        self.cv = cv
        self.scoring = scoring
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.precision = precision
        self.probability = probability
        self.keep_equations = keep_equations
        self.intervals = intervals
        self.verbose = verbose
        self.max_time = max_time
        self.leaves = leaves
        self.class_weight = class_weight

    def _validated(self, X, y, sample_weight, reset):
        y = to_numpy_if_dispatched(y)
        shape = np.asarray(y).shape
        multilabel = len(shape) == 2 and shape[1] > 1
        X, y = validated(self, X, y, multi_output=multilabel, reset=reset)
        check_labels(y)
        if multilabel and (kind := type_of_target(y)) != "multilabel-indicator":
            raise ValueError(
                "y must be labels, or a matrix of zeros and ones with a column for "
                f"each label, got a {kind} target of shape {y.shape}."
            )
        return X, y, checked_weight(sample_weight, X)

    _streamed_scoring = (None, "accuracy")

    def _learn_targets(self, y, classes):
        self._set_classes(y, classes)
        if isinstance(self.class_weight, dict):
            ClassWeights(self.class_weight).check(self.classes_)

    def _unwrap(self, y):
        """Classifiers keep the axis of targets."""
        del y

    def _coded(self, y):
        """Labels as targets -1 and 1, shape (n_samples, k)."""
        if self._multilabel:
            return np.where(y == 1, 1.0, -1.0)
        classes = to_numpy(self.classes_)
        codes = np.searchsorted(classes, y)
        codes = np.minimum(codes, len(classes) - 1)
        unknown = np.unique(y[classes[codes] != y])
        if len(unknown):
            raise ValueError(
                f"y must hold labels out of classes={classes.tolist()}, got "
                f"{unknown.tolist()}."
            )
        return one_vs_rest(codes, len(classes))

    def _set_classes(self, y, classes):
        self._multilabel = y.ndim == 2
        self.classes_ = (
            np.arange(y.shape[1]) if self._multilabel else np.unique(classes)
        )
        if self._multilabel and self.intervals:
            raise ValueError(
                "intervals=True makes sets of exclusive labels, got a multilabel "
                "target: fit a model for each label."
            )
        if not self._multilabel:
            refuse_one_class(self.classes_)

    @_fit_context(prefer_skip_nested_validation=True)
    @all_or_nothing(private=PRIVATE_RESULTS)
    def fit(self, X: Array, y: Any, sample_weight: Any = None) -> Self:
        """Fit the feature map, choose alpha and solve.

        Parameters
        ----------
        X : array-like, sparse matrix or Dask collection of shape \
                (n_samples, n_features)
            Data, finite. Rows of a Dask collection stay on the workers, see the guide
            to clusters.
        y : array-like of shape (n_samples,) or (n_samples, n_labels)
            Labels of at least two classes, or a multilabel indicator matrix.
        sample_weight : array-like of shape (n_samples,), optional
            Row weights, >= 0: weight w counts as the row repeated w times.

        Returns
        -------
        self
        """
        if is_dask(X):
            return self._fit_on_workers(X, y, sample_weight)
        X, y, sample_weight = self._validated(X, y, sample_weight, reset=True)
        self._set_classes(y, y)
        sample_weight = weights_of_classes(self.class_weight, y, sample_weight, X)
        Y = self._coded(y)
        choice = self._fit(X, y, Y, sample_weight)
        if self.probability:
            held_out = choice.criterion.held_out(self.alpha_)
            self.calibration_ = np.array(
                [
                    platt_curve(held_out[:, k], Y[:, k] > 0, sample_weight)
                    for k in range(Y.shape[1])
                ]
            )
        self.classes_ = labels_like(self.classes_, X)
        return self

    @available_if(learns_in_pieces)
    @_fit_context(prefer_skip_nested_validation=True)
    @all_or_nothing(again=False)
    def partial_fit(
        self, X: Array, y: Any, classes: Any = None, sample_weight: Any = None
    ) -> Self:
        """Add rows to the model; see `KernelRidgeRegressor.partial_fit`.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Data, finite.
        y : array-like of shape (n_samples,) or (n_samples, n_labels)
            Labels out of ``classes``, or a multilabel indicator matrix.
        classes : array-like of shape (n_classes,), optional
            All labels that will come; needed at the first call unless the target is
            multilabel or the first piece holds them all.
        sample_weight : array-like of shape (n_samples,), optional
            Row weights, >= 0.

        Returns
        -------
        self
        """
        first = not hasattr(self, "classes_")
        classes = to_numpy_if_dispatched(classes)
        X, y, sample_weight = self._validated(X, y, sample_weight, reset=first)
        if first:
            self._set_classes(y, y if classes is None else classes)
        elif classes is not None and not np.array_equal(
            known := to_numpy(self.classes_), np.unique(classes)
        ):
            raise ValueError(
                f"classes must stay {known.tolist()}, as in the first call to "
                f"partial_fit, got {np.unique(classes).tolist()}."
            )
        check_columns(y, self.classes_.shape[0] if self._multilabel else 1)
        sample_weight = weights_of_piece(self.class_weight, y, sample_weight, X)
        self._partial_fit(X, self._coded(y), sample_weight)
        self.classes_ = labels_like(to_numpy(self.classes_), X)
        return self

    @available_if(streams)
    @_fit_context(prefer_skip_nested_validation=True)
    @all_or_nothing(private=PRIVATE_RESULTS)
    def fit_stream(
        self, source: Any, classes: Any = None, *, n_sample: int = 10_000
    ) -> Self:
        """Fit to a source of rows; see `KernelRidgeRegressor.fit_stream`.

        Parameters
        ----------
        source : source of rows
            See `surff.streaming`; it is iterated over once a pass.
        classes : array-like of shape (n_classes,), optional
            All labels; without them the first pass looks for them.
        n_sample : int, default=10_000
            Rows that features which look at the rows are fitted to.

        Returns
        -------
        self

        Notes
        -----
        Passes: one, and one before it, unless ``classes`` are given and the features
        are frozen or do not look at the rows. Accuracy on held-out rows takes one more
        for all alphas together, and one each time that the automatic grid grows;
        ``cv="gcv"``, and a single alpha, none. ``scoring`` must be None or "accuracy".
        There is no such method with ``gammas`` or ``probability``.
        """
        self._fit_source(source, classes, n_sample)
        return self

    def score_stream(self, source: Any) -> float:
        """Accuracy of the predictions for a source.

        Parameters
        ----------
        source : source of rows
            See `surff.streaming`; with labels, and weights if any.

        Returns
        -------
        score : float
        """
        check_is_fitted(self)
        predict = without_sums(self).predict_checked
        hits, total = self._passes_over(source, checked_labels).reduce(
            functools.partial(np.zeros, 2),
            functools.partial(add_hits, predict=predict),
            np.add,
        )
        return float(hits / total)

    def _scorer(self, data, y, Y):
        if self.scoring in (None, "accuracy"):
            return Accuracy(self._predictions, y)
        del Y  # labels are scored as they are
        answers = self._outputs, self._predictions
        return ScorerOf(self, self.scoring, data.X, y, *answers)

    def _predictions(self, decisions):
        """Class labels of predictions of shape (n_samples, k)."""
        if self._multilabel:
            xp = namespace_of(decisions)
            return xp.astype(decisions > 0, xp.int64)
        return winning_labels(self.classes_, decisions)

    @over_blocks
    def decision_function(self, X: Array) -> Array:
        """Predicted targets before the sign or the maximum is taken.

        Parameters
        ----------
        X : array-like, sparse matrix or Dask collection of shape \
                (n_samples, n_features)
            Data, finite. Rows of a Dask collection stay on the workers, see the guide
            to clusters.

        Returns
        -------
        decisions : ndarray of shape (n_samples,) or (n_samples, n_classes)
            Positive values speak for ``classes_[1]`` when there are two classes.
        """
        return self._outputs(self._decisions(self._checked(X, "decision_function")))

    @over_blocks
    def predict(self, X: Array) -> Any:
        """Predict the class of rows.

        Parameters
        ----------
        X : array-like, sparse matrix or Dask collection of shape \
                (n_samples, n_features)
            Data, finite. Rows of a Dask collection stay on the workers, see the guide
            to clusters.

        Returns
        -------
        y : ndarray of shape (n_samples,) or (n_samples, n_labels)
            Labels out of ``classes_``, or a multilabel indicator matrix.
        """
        return self.predict_checked(self._checked(X, "predict"))

    def predict_checked(self, X: Array) -> Array:
        """Predict checked rows, with no look at their names or types."""
        return self._predictions(self._decisions(X))

    @available_if(has_probabilities)
    @over_blocks
    def predict_proba(self, X: Array) -> np.ndarray:
        r"""Probability of each class; with ``probability=True``.

        Parameters
        ----------
        X : array-like, sparse matrix or Dask collection of shape \
                (n_samples, n_features)
            Data, finite. Rows of a Dask collection stay on the workers, see the guide
            to clusters.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
            Columns in the order of ``classes_``. Rows sum to 1, but for a multilabel
            target, where each column is the probability of its label.

        Notes
        -----
        Platt scaling: :math:`1 / (1 + \exp(-a f - b))` of each column f of decisions,
        a and b fitted to predictions of rows left out. More than two classes are
        normalised to sum to 1.

        References
        ----------
        .. [1] J. Platt, "Probabilistic Outputs for Support Vector Machines and
           Comparisons to Regularized Likelihood Methods", 1999.
        """
        decisions = self._decisions(self._checked(X, "predict_proba"))
        return calibrated_probabilities(decisions, self.calibration_, self._multilabel)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags


def no_errors(n_targets):
    """Squared errors of no rows, and the equations of their targets."""
    return np.zeros(n_targets), NormalEquations(1, n_targets)


def add_errors(total, rows, predict, offset):
    """Add the squared errors of predictions for rows."""
    (errors, sums), weight = total, rows.sample_weight
    Y = rows.y.reshape(len(rows.y), -1)
    predicted = predict(rows.X).reshape(Y.shape)
    squares = np.square(Y - predicted, dtype=np.float64)
    errors += squares.sum(axis=0) if weight is None else weight @ squares
    # R2 does not mind what is taken off all targets.
    sums.update(np.ones((len(Y), 1)), Y - offset, weight)
    return errors, sums


def add_hits(total, rows, predict):
    """Add the weight of rows that are predicted, and that of all."""
    right = predict(rows.X) == rows.y
    right = right.reshape(len(right), -1).all(axis=1)
    weight = np.ones(len(right)) if rows.sample_weight is None else rows.sample_weight
    return total + np.array([weight @ right, weight.sum(dtype=np.float64)])


def checked_numbers(X, y, first):
    """Rows and their targets, for a score."""
    return X, checked_labels(X, y, first)[1].astype(np.float64)


def checked_labels(X, y, first):
    """Rows and their labels, for a score."""
    del first  # every block is checked alike
    if y is None:
        raise ValueError("there is no y to score: name the target.")
    y = check_array(y, ensure_2d=False, dtype=None, input_name="y")
    check_consistent_length(X, y)
    return X, y
