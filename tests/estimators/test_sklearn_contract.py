"""The scikit-learn contract of every estimator and combination that users type."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import Ridge
from sklearn.metrics import get_scorer
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    RandomizedSearchCV,
    cross_val_score,
    cross_validate,
)
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils import estimator_html_repr, get_tags
from sklearn.utils.estimator_checks import (
    estimator_checks_generator,
    parametrize_with_checks,
)

from surff import (
    EERF,
    AgopAdaptation,
    Compression,
    FourierFeatures,
    GradientAdaptation,
    KernelAlignment,
    KernelLogisticClassifier,
    KernelRidgeClassifier,
    KernelRidgeRegressor,
    NystroemFeatures,
    ResidualLeverage,
    RidgeLeverage,
    SurrogateLeverage,
)

RNG = np.random.default_rng(0)
X = RNG.normal(size=(80, 3))
Y = np.sin(X[:, 0]) + X[:, 1] ** 2 + 0.2 * RNG.normal(size=80)
TWO = np.where(np.median(Y) < Y, "yes", "no")
WEIGHT = RNG.integers(0, 4, size=80)
for array in (X, Y, TWO, WEIGHT):
    array.flags.writeable = False

MODELS = [KernelRidgeRegressor, KernelRidgeClassifier]
models = pytest.mark.parametrize("Model", MODELS)
TARGETS = {KernelRidgeRegressor: Y, KernelRidgeClassifier: TWO}


def fourier(n_components=16, **parameters):
    # Seeds of nested estimators are ours to fix.
    return FourierFeatures(n_components, random_state=0, **parameters)


SELECTORS = [
    "surrogate",
    SurrogateLeverage(resample="without_replacement"),
    SurrogateLeverage(n_candidates=1.0, resample="reweight", ridge_term=True),
    "leverage",
    RidgeLeverage(resample="without_replacement"),
    RidgeLeverage(n_candidates=1.0, resample="reweight"),
    RidgeLeverage(n_rows=8),
    EERF(),
    KernelAlignment(),
    KernelAlignment(rho=5.0, resample="without_replacement"),
    Compression(),
    Compression("frank-wolfe", n_pairs=40),
    ResidualLeverage(),
    ResidualLeverage(2, 6, resample="without_replacement", alpha="gcv"),
]
ADAPTATIONS = [
    GradientAdaptation(n_steps=20, n_checks=2),
    AgopAdaptation(n_rounds=1),
    AgopAdaptation(n_rounds=1, diagonal=True, dtype="float64"),
]

# One of each class goes through all checks, some of which ask for a decent score.
WHOLE = [
    FourierFeatures(8),
    NystroemFeatures(8),
    KernelRidgeRegressor(fourier(128), alphas=[0.1, 1.0], cv=3),
    KernelRidgeClassifier(fourier(128), alphas=[0.1, 1.0], cv=3),
    # Weights and repeated rows agree to tol: it is small here.
    KernelLogisticClassifier(fourier(64), alphas=[1.0, 10.0], cv=3, tol=1e-8),
]
TRANSFORMERS = [
    FourierFeatures(7, gamma="median", draw="sobol"),
    FourierFeatures(8, gamma=0.3, kernel="matern", draw="orthogonal"),
    *(FourierFeatures(8, select=select) for select in SELECTORS),
    *(FourierFeatures(8, adapt=adapt) for adapt in ADAPTATIONS),
    NystroemFeatures(8, kernel="cauchy", landmarks="leverage"),
    NystroemFeatures(8, kernel="poly", degree=2, landmarks="rpcholesky"),
    NystroemFeatures(8, landmarks="kmeans"),
    NystroemFeatures(8, kernel="precomputed"),
    NystroemFeatures(landmarks=[0]),
]
MODELS_WITH_OPTIONS = [
    KernelRidgeRegressor(fourier(), cv="gcv"),
    KernelRidgeClassifier(fourier(), cv="loo", alphas=[0.1, 1.0]),
    KernelRidgeRegressor(fourier(), gammas=[0.05, 0.2], alphas=[0.1, 1.0], cv=3),
    KernelRidgeClassifier(fourier(), alphas=0.7, keep_equations=False, solver="eigh"),
    KernelRidgeRegressor(fourier(), alphas=0.7, solver="cg", tol=1e-12),
    KernelRidgeClassifier(fourier(), alphas=0.7, cv=3, probability=True),
    KernelRidgeRegressor(fourier(), cv=3, alpha_per_target=True),
    KernelRidgeClassifier(fourier(select="surrogate"), alphas=0.7),
    KernelRidgeRegressor(fourier(select=SELECTORS[2]), alphas=0.7),
    KernelRidgeRegressor(fourier(select="compression"), alphas=0.7),
    KernelRidgeClassifier(fourier(adapt=ADAPTATIONS[0]), cv=3),
    KernelRidgeRegressor(fourier(adapt=ADAPTATIONS[1]), alphas=0.7),
    KernelRidgeRegressor(NystroemFeatures(8, landmarks="rpcholesky", random_state=0)),
    KernelLogisticClassifier(fourier(), alphas=0.7, fit_intercept=False, tol=1e-10),
    KernelLogisticClassifier(fourier(select="residual"), alphas=0.7, tol=1e-10),
]
# And all others through those whose outcome can depend on an option.
OF_OPTIONS = {
    "check_dict_unchanged",
    "check_dont_overwrite_parameters",
    "check_estimator_sparse_array",
    "check_estimators_dtypes",
    "check_estimators_pickle",
    "check_fit2d_1feature",
    "check_fit2d_1sample",
    "check_fit_check_is_fitted",
    "check_fit_idempotent",
    "check_methods_subset_invariance",
    "check_n_features_in",
    "check_sample_weight_equivalence_on_dense_data",
    "check_sample_weight_equivalence_on_sparse_data",
    "check_transformer_general",
    "check_transformer_preserve_dtypes",
}


def expected_failures(estimator):
    """Checks that cannot pass, with reasons."""
    draws_rows = any(
        getattr(getattr(estimator, "select", None), name, None) is not None
        for name in ("n_rows", "n_pairs")
    )
    features = getattr(estimator, "features", estimator)
    holds_rows_out = getattr(features, "adapt", None) is not None
    if isinstance(features, NystroemFeatures) or draws_rows or holds_rows_out:
        reason = (
            "a weight w gives a row the probability of w repetitions; the choice that "
            "one seed makes is another"
        )
        names = (
            "check_sample_weight_equivalence_on_dense_data",
            "check_sample_weight_equivalence_on_sparse_data",
        )
        return dict.fromkeys(names, reason)
    if getattr(estimator, "probability", False):
        reason = (
            "a class is predicted by the sign of the decision; where the calibrated "
            "curve crosses 1/2 elsewhere, the larger probability is another class's, "
            "as in sklearn.svm.SVC(probability=True)"
        )
        return {"check_classifiers_train": reason}
    return {}


@parametrize_with_checks(WHOLE, expected_failed_checks=expected_failures)
def test_all_checks_of_scikit_learn(estimator, check):
    check(estimator)


def checks_of_options(estimators):
    """Pairs for the test below: no check twice, nor one that is expected to fail."""
    pairs = []
    for estimator in estimators:
        left = OF_OPTIONS - set(expected_failures(estimator))
        label = " ".join(str(estimator).split())
        for copy, check in estimator_checks_generator(estimator):
            name = getattr(check, "func", check).__name__
            if name in left:
                left.remove(name)
                pairs.append(pytest.param(copy, check, id=f"{label}-{name}"))
    return pairs


# They shift a kernel matrix by a constant, which makes it indefinite.
@pytest.mark.filterwarnings("ignore:kernel='precomputed' is not positive semi-definite")
@pytest.mark.parametrize(
    ("estimator", "check"), checks_of_options([*TRANSFORMERS, *MODELS_WITH_OPTIONS])
)
def test_checks_that_depend_on_options(estimator, check):
    check(estimator)


# -- transformers ----------------------------------------------------------------------


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize("estimator", [fourier(6), NystroemFeatures(6, random_state=0)])
def test_set_output(library, estimator):
    frames = pytest.importorskip(library, reason=f"{library} is not installed")
    frame = frames.DataFrame({name: X[:, i] for i, name in enumerate("abc")})
    transformer = clone(estimator).set_output(transform=library).fit(frame)
    assert list(transformer.feature_names_in_) == list("abc")
    Z = transformer.transform(frame)
    assert isinstance(Z, frames.DataFrame)
    prefix = type(estimator).__name__.lower()
    names = [f"{prefix}{i}" for i in range(6)]
    assert list(Z.columns) == names
    assert list(transformer.get_feature_names_out()) == names
    # A frame's columns lie one after the other: products round differently.
    assert_allclose(
        Z.to_numpy(), clone(estimator).fit(X).transform(X), rtol=0, atol=1e-12
    )
    if library == "pandas":
        moved = frame.set_index(np.arange(80) + 7)
        assert list(transformer.transform(moved).index) == list(moved.index)


@pytest.mark.parametrize("library", ["pandas", "polars"])
@models
def test_models_take_frames(library, Model):
    frames = pytest.importorskip(library, reason=f"{library} is not installed")
    frame = frames.DataFrame({name: X[:, i] for i, name in enumerate("abc")})
    target = frames.Series(list(TARGETS[Model]))
    model = Model(fourier(), alphas=0.7).fit(frame, target)
    plain = Model(fourier(), alphas=0.7).fit(X, TARGETS[Model])
    assert_array_equal(model.predict(frame), plain.predict(X))
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame[["b", "a", "c"]])
    pieces = Model(fourier(), alphas=0.7).partial_fit(frame, target)
    assert list(pieces.feature_names_in_) == list("abc")
    with pytest.raises(ValueError, match="feature names should match"):
        pieces.partial_fit(frame[["b", "a", "c"]], target)


def test_in_a_column_transformer():
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    frame = pandas.DataFrame(X, columns=list("abc"))
    frame["kind"] = np.where(X[:, 0] > 0, "high", "low")
    columns = ColumnTransformer(
        [
            ("waves", fourier(6, gamma=0.3), ["a", "b"]),
            ("near", NystroemFeatures(4, random_state=0), ["c"]),
            ("kind", OneHotEncoder(sparse_output=False), ["kind"]),
        ]
    )
    Z = columns.fit_transform(frame)
    assert Z.shape == (80, 12)
    assert_array_equal(Z[:, :6], fourier(6, gamma=0.3).fit_transform(X[:, :2]))
    assert columns.get_feature_names_out()[0] == "waves__fourierfeatures0"
    search = GridSearchCV(
        make_pipeline(columns, Ridge()),
        {"columntransformer__waves__gamma": [0.1, 0.3]},
        cv=3,
        error_score="raise",
    ).fit(frame, Y)
    assert search.best_params_["columntransformer__waves__gamma"] in (0.1, 0.3)


def test_in_a_feature_union():
    union = FeatureUnion([("one", fourier(6)), ("two", fourier(4, kernel="matern"))])
    assert union.fit_transform(X).shape == (80, 10)


# -- searches --------------------------------------------------------------------------


@models
def test_in_a_randomized_search(Model):
    pipeline = make_pipeline(StandardScaler(), Model(fourier(), alphas=[0.1, 1.0]))
    name = Model.__name__.lower()
    search = RandomizedSearchCV(
        pipeline,
        {
            f"{name}__features__gamma": [0.1, "scale", "median", [0.1, 0.2, 0.3]],
            f"{name}__features__n_components": [8, 15],
            f"{name}__cv": [3, "gcv", "loo"],
            f"{name}__features": [fourier(), NystroemFeatures(9, random_state=0)],
        },
        n_iter=8,
        cv=3,
        random_state=0,
        error_score="raise",
    ).fit(X, TARGETS[Model])
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


@models
def test_cross_validation_on_two_processes_worth_of_clones(Model):
    model = Model(fourier(select="surrogate"), cv="gcv")
    scores = cross_val_score(model, X, TARGETS[Model], cv=3)
    again = cross_val_score(clone(model), X, TARGETS[Model], cv=3)
    assert_array_equal(scores, again)


# -- sample_weight through metadata routing --------------------------------------------


def weighted_folds(model, target, scorer):
    """Scores of folds fitted and judged with weights, without any routing."""
    scores = []
    for train, test in KFold(3).split(X):
        fitted = clone(model).fit(X[train], target[train], WEIGHT[train])
        score = get_scorer(scorer)
        scores.append(score(fitted, X[test], target[test], sample_weight=WEIGHT[test]))
    return scores


@models
def test_weights_are_routed_in_a_grid_search(Model):
    scoring = "accuracy" if Model is KernelRidgeClassifier else "r2"
    target = TARGETS[Model]
    with config_context(enable_metadata_routing=True):
        model = Model(fourier(), alphas=0.7).set_fit_request(sample_weight=True)
        search = GridSearchCV(
            model,
            {"alphas": [0.7, 20.0]},
            cv=KFold(3),
            scoring=get_scorer(scoring).set_score_request(sample_weight=True),
            error_score="raise",
        ).fit(X, target, sample_weight=WEIGHT)
        results = search.cv_results_
        scores = [results[f"split{i}_test_score"][0] for i in range(3)]
    expected = weighted_folds(Model(fourier(), alphas=0.7), target, scoring)
    assert_allclose(scores, expected, rtol=1e-12)


@models
@pytest.mark.parametrize("to_features", [False, True])
def test_weights_are_routed_in_a_pipeline(Model, to_features):
    target = TARGETS[Model]
    scaler = StandardScaler()
    with config_context(enable_metadata_routing=True):
        model = Model(fourier(), alphas=0.7).set_fit_request(sample_weight=True)
        scaler.set_fit_request(sample_weight=to_features)
        pipeline = Pipeline([("scale", scaler), ("model", model)])
        pipeline.fit(X, target, sample_weight=WEIGHT)
    scaled = StandardScaler().fit(X, sample_weight=WEIGHT if to_features else None)
    expected = Model(fourier(), alphas=0.7)
    expected.fit(scaled.transform(X), target, sample_weight=WEIGHT)
    assert_allclose(pipeline[-1].primal_coef_, expected.primal_coef_, rtol=1e-10)
    plain = Model(fourier(), alphas=0.7).fit(scaled.transform(X), target)
    assert abs(plain.primal_coef_ - expected.primal_coef_).max() > 1e-3


@pytest.mark.parametrize(
    "transformer",
    [fourier(select="surrogate"), NystroemFeatures(9, landmarks="leverage",
                                                   random_state=0)],
)  # fmt: skip
def test_weights_are_routed_to_transformers(transformer):
    with config_context(enable_metadata_routing=True):
        requested = clone(transformer).set_fit_request(sample_weight=True)
        ridge = Ridge(0.7).set_fit_request(sample_weight=False)
        pipeline = Pipeline([("features", requested), ("ridge", ridge)])
        pipeline.fit(X, Y, sample_weight=WEIGHT)
    Z = clone(transformer).fit(X, Y, sample_weight=WEIGHT).transform(X)
    assert_array_equal(pipeline[0].transform(X), Z)


@models
def test_weights_that_nobody_asked_for_are_an_error(Model):
    with config_context(enable_metadata_routing=True):
        search = GridSearchCV(Model(fourier(), alphas=0.7), {"alphas": [0.7]}, cv=3)
        with pytest.raises(ValueError, match=r"\[sample_weight\] are passed but are"):
            search.fit(X, TARGETS[Model], sample_weight=WEIGHT)


@models
def test_partial_fit_and_score_can_request_weights(Model):
    with config_context(enable_metadata_routing=True):
        model = Model(fourier(), alphas=0.7)
        model.set_fit_request(sample_weight=True)
        model.set_partial_fit_request(sample_weight=True)
        model.set_score_request(sample_weight=True)
        result = cross_validate(
            model, X, TARGETS[Model], cv=3, params={"sample_weight": WEIGHT}
        )
    assert np.isfinite(result["test_score"]).all()


# -- the rest --------------------------------------------------------------------------


@pytest.mark.parametrize("estimator", [*WHOLE, TRANSFORMERS[2]], ids=str)
def test_html_representation(estimator):
    html = estimator_html_repr(estimator)
    assert type(estimator).__name__ in html
    pipeline = estimator_html_repr(make_pipeline(StandardScaler(), estimator))
    assert type(estimator).__name__ in pipeline
    assert estimator._repr_mimebundle_()["text/html"]


def test_tags():
    assert is_regressor(KernelRidgeRegressor())
    assert is_classifier(KernelRidgeClassifier())
    assert is_classifier(KernelLogisticClassifier())
    assert not get_tags(KernelLogisticClassifier()).classifier_tags.multi_label
    assert get_tags(KernelRidgeClassifier()).classifier_tags.multi_label
    assert get_tags(KernelRidgeRegressor()).target_tags.multi_output
    for estimator in (
        FourierFeatures(),
        NystroemFeatures(),
        KernelLogisticClassifier(),
        KernelRidgeRegressor(),
        KernelRidgeClassifier(),
    ):
        assert get_tags(estimator).input_tags.sparse
        assert not get_tags(estimator).input_tags.allow_nan
    assert get_tags(FourierFeatures(select="surrogate")).target_tags.required
    assert not get_tags(FourierFeatures(select="leverage")).target_tags.required
    assert get_tags(FourierFeatures(adapt="agop")).target_tags.required
    assert get_tags(FourierFeatures(select="eerf")).target_tags.required
    assert get_tags(FourierFeatures(select="alignment")).target_tags.required
    assert not get_tags(FourierFeatures(select="compression")).target_tags.required
    assert get_tags(NystroemFeatures(kernel="precomputed")).input_tags.pairwise
