"""The types that model files may hold without a word of the user.

A file names types, and skops builds some of them by calling them: a list by
``cls(items)``, a dictionary by ``cls()``. So a name is trusted only as what it is. Here
is, for every name that skops does not trust by itself, which of its loaders may build
it, and each name stands here in full: whole modules would let in functions that read
files, start processes or call what they are given.

Left out on purpose: the distributions of ``scipy.stats``, which run text that they hold
as code when they are built; trees and histogram gradient boosting, whose compiled code
trusts the numbers in the file (skops leaves them out for the same reason);
``functools.partial``, methods and attribute getters, which call what the file says.
"""

from typing import Any

from surff.adaptation import ADAPTATIONS
from surff.draws import DRAWS, HadamardFrequencies
from surff.estimators._intervals import FoldModels
from surff.estimators.features import FourierFeatures
from surff.estimators.leaves import LeafHeads, LeafModel
from surff.estimators.logistic import KernelLogisticClassifier
from surff.estimators.nystroem import NystroemFeatures
from surff.estimators.ridge import KernelRidgeClassifier, KernelRidgeRegressor
from surff.kernels import KERNELS, Product, Sum
from surff.linear import AlphaPath, LeafSums, NormalEquations, Partition
from surff.selection import SELECTORS

__all__ = ["LOADERS", "MODULES"]


def _name(cls):
    return f"{cls.__module__}.{cls.__qualname__}"


#: Classes of surff whose instances model files may hold: ``__new__`` and attributes.
_CLASSES = {
    FoldModels,
    FourierFeatures,
    HadamardFrequencies,
    KernelLogisticClassifier,
    KernelRidgeClassifier,
    KernelRidgeRegressor,
    LeafHeads,
    LeafSums,
    NormalEquations,
    NystroemFeatures,
    Partition,
    Product,
    Sum,
    *ADAPTATIONS.values(),
    *DRAWS.values(),
    *KERNELS.values(),
    *SELECTORS.values(),
}

#: Classes of rooms above, by module; they are named, since imports point down only.
_TABLE_CLASSES = {
    "surff.tables.coders": (
        "CategoryCoder",
        "DateCoder",
        "NumberCoder",
        "TargetCoder",
        "TruthCoder",
    ),
    "surff.tables.encoder": ("TableEncoder",),
    "surff.tables.model": ("TableModel",),
}

#: Classes of scikit-learn by module: they hold data, their ``__setstate__`` runs
#: nothing of it, and models keep them as parameters or results.
_SKLEARN_CLASSES = {
    "sklearn.calibration": (
        "_CalibratedClassifier",
        "_SigmoidCalibration",
        "_TemperatureScaling",
    ),
    "sklearn.frozen._frozen": ("FrozenEstimator",),
    "sklearn.gaussian_process.kernels": (
        "CompoundKernel",
        "ConstantKernel",
        "DotProduct",
        "ExpSineSquared",
        "Exponentiation",
        "Matern",
        "PairwiseKernel",
        "Product",
        "RBF",
        "RationalQuadratic",
        "Sum",
        "WhiteKernel",
    ),
    "sklearn.metrics._scorer": (
        "_CurveScorer",
        "_MultimetricScorer",
        "_PassthroughScorer",
        "_Scorer",
    ),
    "sklearn.model_selection._search_successive_halving": (
        "HalvingGridSearchCV",
        "HalvingRandomSearchCV",
    ),
    "sklearn.model_selection._split": (
        "GroupKFold",
        "GroupShuffleSplit",
        "KFold",
        "LeaveOneGroupOut",
        "LeaveOneOut",
        "LeavePGroupsOut",
        "LeavePOut",
        "PredefinedSplit",
        "RepeatedKFold",
        "RepeatedStratifiedKFold",
        "ShuffleSplit",
        "StratifiedGroupKFold",
        "StratifiedKFold",
        "StratifiedShuffleSplit",
        "TimeSeriesSplit",
        "_CVIterableWrapper",
    ),
    "sklearn.utils._metadata_requests": ("MetadataRequest", "MethodMetadataRequest"),
}

#: Functions of scikit-learn by module, kept as scorers, kernels and scores of features:
#: arrays in, numbers out; no files, no calls of arguments.
_FUNCTIONS = {
    "sklearn.feature_selection._mutual_info": (
        "mutual_info_classif",
        "mutual_info_regression",
    ),
    "sklearn.feature_selection._univariate_selection": (
        "chi2",
        "f_classif",
        "f_regression",
        "r_regression",
    ),
    "sklearn.metrics._classification": (
        "accuracy_score",
        "balanced_accuracy_score",
        "brier_score_loss",
        "cohen_kappa_score",
        "d2_brier_score",
        "d2_log_loss_score",
        "f1_score",
        "fbeta_score",
        "hamming_loss",
        "hinge_loss",
        "jaccard_score",
        "log_loss",
        "matthews_corrcoef",
        "precision_score",
        "recall_score",
        "zero_one_loss",
    ),
    "sklearn.metrics._ranking": (
        "average_precision_score",
        "coverage_error",
        "dcg_score",
        "label_ranking_average_precision_score",
        "label_ranking_loss",
        "ndcg_score",
        "roc_auc_score",
        "top_k_accuracy_score",
    ),
    "sklearn.metrics._regression": (
        "d2_absolute_error_score",
        "d2_pinball_score",
        "d2_tweedie_score",
        "explained_variance_score",
        "max_error",
        "mean_absolute_error",
        "mean_absolute_percentage_error",
        "mean_gamma_deviance",
        "mean_pinball_loss",
        "mean_poisson_deviance",
        "mean_squared_error",
        "mean_squared_log_error",
        "mean_tweedie_deviance",
        "median_absolute_error",
        "r2_score",
        "root_mean_squared_error",
        "root_mean_squared_log_error",
    ),
    "sklearn.metrics._scorer": (
        "negative_likelihood_ratio",
        "positive_likelihood_ratio",
    ),
    "sklearn.metrics.pairwise": (
        "additive_chi2_kernel",
        "chi2_kernel",
        "cosine_similarity",
        "laplacian_kernel",
        "linear_kernel",
        "polynomial_kernel",
        "rbf_kernel",
        "sigmoid_kernel",
    ),
}


def _names(table):
    return [f"{module}.{name}" for module, names in table.items() for name in names]


#: Loaders of skops that may build each name, next to what skops trusts by itself.
LOADERS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(map(_name, _CLASSES), ("ObjectNode",)),
    **dict.fromkeys(_names(_SKLEARN_CLASSES), ("ObjectNode",)),
    **dict.fromkeys(_names(_TABLE_CLASSES), ("ObjectNode",)),
    **dict.fromkeys(_names(_FUNCTIONS), ("FunctionNode",)),
    **dict.fromkeys(
        [
            f"scipy.sparse._{format_}.{format_}_{kind}"
            for format_ in ("csr", "csc")
            for kind in ("array", "matrix")
        ],
        ("SparseMatrixNode", "ObjectNode"),  # the second up to skops 0.13
    ),
    _name(AlphaPath): ("TupleNode",),
    _name(LeafModel): ("TupleNode",),
    "numpy.dtype": ("DTypeNode",),
    "sklearn.utils._bunch.Bunch": ("DictNode",),
    # The repeated splitters hold the class that they repeat.
    "sklearn.model_selection._split.KFold": ("ObjectNode", "TypeNode"),
    "sklearn.model_selection._split.StratifiedKFold": ("ObjectNode", "TypeNode"),
}

#: Types that `load` builds, besides those that skops trusts by itself.
TRUSTED_TYPES: tuple[str, ...] = tuple(sorted(LOADERS))

#: Where each class is now. Files name classes by module, and modules move: a class of
#: surff is looked up by its name alone.
MODULES: dict[Any, str] = {
    **{cls.__qualname__: cls.__module__ for cls in {*_CLASSES, AlphaPath, LeafModel}},
    **{name: module for module, names in _TABLE_CLASSES.items() for name in names},
}
