"""Fitting a ridge model to a source of rows that need not fit in memory."""

import enum
import functools
import numbers

from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils import get_tags

from surff.estimators._alphas import (
    best_alpha,
    checked_alphas,
    refuse_zero,
    scored_path,
)
from surff.estimators._class_weight import weigher_of
from surff.estimators._linear import (
    checked_features,
    fitted_features,
    learns_from_targets,
)
from surff.estimators._rows_fit import (
    Choice,
    asked_dtype,
    check_folds,
    direct_solver,
    refuse_scoring,
    target_offset,
)
from surff.estimators._with_leaves import looks_at_rows
from surff.estimators.base import LooksAt
from surff.linear import (
    FORMULAS,
    Data,
    FoldsOfSource,
    RefittedFolds,
    Solving,
    Split,
    equations_of,
    sides_of,
)
from surff.streaming import Fold, Labels, Passes, WorkerRows, positive_int, survey

__all__ = ["SourceFit", "Way", "choice_from_equations"]


class Way(enum.Enum):
    """How features are fitted to a source."""

    FIRST_BLOCK = "they look at the number of columns alone"
    SAMPLE = "to a sample of the rows"
    SUMS = "to sums over all rows, which workers form"


def by_formula(cv, *names):
    """Whether ``cv`` is one of some names."""
    return isinstance(cv, str) and cv in names


def choice_from_equations(model, features, data, equations, like):
    """`Choice` of alpha by a formula, GCV by default, unless there is one only."""
    solver = direct_solver(model, like)
    alphas = checked_alphas(model.alphas)
    if alphas is not None and len(alphas) == 1:
        return Choice(features, data, solver, equations, float(alphas[0]))
    formula = "evidence" if by_formula(model.cv, "evidence") else "gcv"
    refuse_zero(alphas, formula)
    solving = Solving(model.fit_intercept, solver)
    criterion = FORMULAS[formula](equations, solving)
    path = scored_path(criterion, alphas, model.alpha_per_target)
    return Choice(features, data, solver, equations, *best_alpha(path), path, criterion)


class SourceFit:
    """Fit of a ridge model to a source of rows.

    Parameters
    ----------
    model : estimator
        Its parameters say how.
    targets : Targets
        What it knows of its targets.
    source : source of rows
        See `surff.streaming`.
    classes : array-like or None
        All labels; None for numbers, or to look for them.
    n_sample : int
        Rows that features which look at the rows are fitted to.

    Attributes
    ----------
    sample : RowSample
        Rows that were looked at first, once `choose` has run.
    """

    def __init__(self, model, targets, source, classes, n_sample):
        self.model, self.targets, self.classes = model, targets, classes
        self.n_folds = self._checked_folds()
        self.n_sample = positive_int("n_sample", n_sample)
        self.features = checked_features(model.features)
        self.passes = Passes(source, targets.check, classes)
        self.looks_at_targets = learns_from_targets(self.features)
        frozen = isinstance(self.features, FrozenEstimator)
        looks_at = LooksAt.COLUMNS if frozen else self.features.looks_at()
        if looks_at == LooksAt.COLUMNS:
            self.way = Way.FIRST_BLOCK
        elif looks_at == LooksAt.SUMS and self.passes.on_workers:
            self.way = Way.SUMS
        else:
            self.way = Way.SAMPLE
        self.sample = None

    def choose(self):
        """Fit the feature map, sum the rows and choose alpha.

        Returns
        -------
        Choice
        """
        class_weight = getattr(self.model, "class_weight", None)
        self.passes.weigh = weigher_of(class_weight, self.passes)
        spread = self._survey()
        Y = self.targets.coded(self.sample.y)
        weight = self.sample.sample_weight
        if weight is not None and not weight.any():
            weight = None
        features = self._fitted_features(Y, weight, spread)
        # Any constant will do; a sample's mean saves most of the digits.
        offset = target_offset(Y, weight, self.model.fit_intercept)
        feature_map = features.feature_map().astype(self._dtype())
        data = Data(feature_map, None, None, offset, None)
        refitted = self.looks_at_targets and self.way is Way.SUMS
        seen = None
        if self.looks_at_targets and self.way is Way.SAMPLE:
            seen = self.sample.keys
        equations = equations_of(
            self.passes,
            feature_map,
            self.targets.coded,
            offset,
            0 if refitted else self.n_folds,
            seen,
        )
        if not equations.total.weight_sum:
            raise ValueError("sample_weight must have a positive entry, got all zeros.")
        if not self.n_folds:
            return choice_from_equations(
                self.model, features, data, equations.total, self.sample.X
            )
        solver = direct_solver(self.model, self.sample.X)
        solving = Solving(self.model.fit_intercept, solver)
        scorer = functools.partial(self.targets.scorer, None, Y=None)
        own = None
        if refitted:
            own, splits = self._refitted_splits(Y, offset)
            criterion = RefittedFolds(
                self.passes, equations.total, splits, offset, solving, scorer
            )
        else:
            criterion = FoldsOfSource(
                self.passes, equations, feature_map, offset, solving, scorer, seen
            )
        alphas = checked_alphas(self.model.alphas)
        path = scored_path(criterion, alphas, self.model.alpha_per_target)
        best = best_alpha(path)
        return Choice(
            features, data, solver, equations.total, *best, path, criterion, own
        )

    def _survey(self):
        """Look at the source: a sample, the labels; returns the spread of the entries.

        Where the rows are at hand for a sum, no sample of them is taken.
        """
        unknown = self.targets.are_labels and self.classes is None
        leaves = looks_at_rows(self.model.leaves)
        self.sample, spread, labels = survey(
            self.passes,
            self.n_sample if self.way is Way.SAMPLE or leaves else 1,
            self.way is not Way.FIRST_BLOCK or unknown or leaves,
            Labels(of_floats=True) if unknown else None,
        )
        if self.n_folds and self.looks_at_targets and self.way is Way.SAMPLE:
            # What the features have seen is not held out, so some must be left.
            self.sample.shrink(max(1, self.passes.n_rows // 2))
        self.targets.learn(self.sample.y, labels.values if unknown else self.classes)
        return spread

    def _fitted_features(self, Y, weight, spread):
        """The features, fitted in their way."""
        rows = self.sample.X
        if self.way is Way.SUMS:
            rows, weight = WorkerRows(self.passes, self.targets.coded), None
        return fitted_features(self.features, rows, Y, weight, spread=spread)

    def _dtype(self):
        """In which dtype rows are mapped: "auto" keeps that of the rows."""
        return asked_dtype(self.model, self.sample.X)

    def _refitted_splits(self, Y, offset):
        """Features of each fold, fitted to the rows of the others, and its `Split`."""
        features, splits = [], []
        for number in range(self.n_folds):
            fold = Fold(number, self.n_folds)
            rows = WorkerRows(self.passes, self.targets.coded, fold)
            own = clone(self.features).fit_checked(rows, Y)
            feature_map = own.feature_map().astype(self._dtype())
            sides = sides_of(self.passes, feature_map, self.targets.coded, offset, fold)
            features.append(own)
            splits.append(Split(*sides, None, feature_map))
        return features, splits

    def _checked_folds(self):
        """Number of folds that alpha is chosen by, 0 for none."""
        model = self.model
        if get_tags(model).input_tags.pairwise:
            raise ValueError(
                "features with kernel='precomputed' cannot be fitted from a source: a "
                "row has a column for each of the others."
            )
        check_folds(model, "cholesky")
        alphas = checked_alphas(model.alphas)
        if alphas is not None and len(alphas) == 1 and not model.intervals:
            return 0
        if by_formula(model.cv, *FORMULAS):
            refuse_scoring(model.scoring, model.cv)
            refuse_zero(alphas, model.cv)
            return 0
        if model.scoring not in self.targets.streamed_scoring:
            names = [name for name in self.targets.streamed_scoring if name]
            raise ValueError(
                f"scoring must be one of {names} or None to fit from a source, got "
                f"{model.scoring!r}."
            )
        if model.cv is None:
            return 5
        if isinstance(model.cv, numbers.Integral) and model.cv > 1:
            return int(model.cv)
        raise ValueError(
            "cv must be an int above 1, None, 'gcv' or 'evidence' to fit from a "
            f"source, whose rows are not all there to be split, got {model.cv!r}."
        )
