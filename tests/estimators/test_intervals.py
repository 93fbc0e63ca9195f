"""Intervals and sets of labels from the folds of a fit."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import Ridge
from sklearn.model_selection import (
    KFold,
    LeaveOneOut,
    PredefinedSplit,
    ShuffleSplit,
    StratifiedKFold,
)
from sklearn.pipeline import make_pipeline

from surff import (
    FourierFeatures,
    KernelLogisticClassifier,
    KernelRidgeClassifier,
    KernelRidgeRegressor,
    load,
    save,
)
from surff.estimators import ModelFileError
from surff.streaming import ArrayRows, folds_of_rows

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 3))
Y = np.sin(2 * X[:, 0]) + 0.3 * (1 + X[:, 1] ** 2) * RNG.normal(size=120)
NEW = RNG.normal(size=(25, 3))
THREE = np.digitize(Y, [-0.5, 0.5]) * 10 - 5
ALPHAS = [0.03, 0.7, 20.0]
CV = KFold(4, shuffle=True, random_state=0)
for array in (X, Y, NEW, THREE):
    array.flags.writeable = False


def features(n_components=16, **parameters):
    return FourierFeatures(
        n_components, **{"gamma": 0.3, "random_state": 0, **parameters}
    )


def regressor(features_=None, **parameters):
    return KernelRidgeRegressor(
        features() if features_ is None else features_,
        **{"alphas": ALPHAS, "cv": CV, "intervals": True, **parameters},
    )


def by_both(model, rows=NEW, coverage=0.9):
    """Bounds of all ways to use the rows left out, side by side."""
    methods = "cv", "cv+", "split"
    methods = methods[: 2 if model.cv == "loo" else 3]
    return np.hstack([model.predict_interval(rows, coverage, m) for m in methods])


def cv_plus(fit, splits, X, y, new, coverage):
    """Barber et al., section 3: a model for each split, a list for each row."""
    low, high = [], []
    for train, test in splits:
        model = fit(train)
        residuals = np.abs(y[test] - model(X[test]))
        centre = model(new)
        low += [centre - r for r in residuals]
        high += [centre + r for r in residuals]
    n = len(low)
    low, high = np.sort(low, axis=0), np.sort(high, axis=0)
    first = int(np.floor((1 - coverage) * (n + 1) + 1e-9))
    last = int(np.ceil(coverage * (n + 1) - 1e-9))
    return low[first - 1], high[last - 1]


@pytest.mark.parametrize("coverage", [0.8, 0.9])
@pytest.mark.parametrize("solver", ["cholesky", "eigh"])
def test_intervals_equal_those_of_refitted_folds(coverage, solver):
    model = regressor(solver=solver).fit(X, Y)
    Z, Z_new = (model.features_.transform(A) for A in (X, NEW))

    def fit(train):
        return Ridge(model.alpha_).fit(Z[train], Y[train]).predict

    expected = cv_plus(fit, CV.split(X), Z, Y, Z_new, coverage)
    found = model.predict_interval(NEW, coverage, "cv+")
    assert_allclose(found, expected, rtol=1e-8)


@pytest.mark.parametrize("learned", [{"select": "surrogate"}, {"select": "residual"}])
def test_features_that_look_at_y_are_those_of_their_fold(learned):
    model = regressor(features(**learned)).fit(X, Y)

    def fit(train):
        own = clone(model.features).fit(X[train], Y[train])
        ridge = Ridge(model.alpha_).fit(own.transform(X[train]), Y[train])
        return lambda rows: ridge.predict(own.transform(rows))

    expected = cv_plus(fit, CV.split(X), X, Y, NEW, 0.9)
    found = model.predict_interval(NEW, method="cv+")
    assert_allclose(found, expected, rtol=1e-7)
    left_out = [np.abs(Y[test] - fit(train)(X[test])) for train, test in CV.split(X)]
    radius = np.sort(np.concatenate(left_out))[108]
    centre = model.predict(NEW)
    found = model.predict_interval(NEW, method="cv")
    assert_allclose(found, (centre - radius, centre + radius), rtol=1e-7)
    # 28 is the least number that is 0.9 times 30 + 1 or more.
    train, _ = next(CV.split(X))
    radius, centre = np.sort(left_out[0])[27], fit(train)(NEW)
    found = model.predict_interval(NEW)
    assert_allclose(found, (centre - radius, centre + radius), rtol=1e-7)
    assert_array_equal(model.predict_interval(NEW, method="split"), found)


def test_the_jackknife_leaves_out_one_row():
    model = regressor(cv="loo").fit(X, Y)
    Z, Z_new = (model.features_.transform(A) for A in (X, NEW))

    def fit(train):
        return Ridge(model.alpha_).fit(Z[train], Y[train]).predict

    expected = cv_plus(fit, LeaveOneOut().split(X), Z, Y, Z_new, 0.9)
    found = model.predict_interval(NEW, method="jackknife+")
    assert_allclose(found, expected, rtol=1e-8)
    by_folds = regressor(alphas=model.alpha_, cv=KFold(120)).fit(X, Y)
    again = by_folds.predict_interval(NEW, method="jackknife+")
    assert_allclose(again, expected, rtol=1e-8)


def test_the_jackknife_without_intercept_of_several_targets_and_weights():
    both = np.column_stack([Y, X[:, 1] + 0.1 * Y])
    weight = RNG.integers(0, 3, size=120)
    rows = np.repeat(np.arange(120), weight)
    options = {"cv": "loo", "fit_intercept": False, "alpha_per_target": True}
    frozen = FrozenEstimator(features().fit(X))
    weighted = regressor(frozen, **options).fit(X, both, sample_weight=weight)
    repeated = regressor(frozen, **options).fit(X[rows], both[rows])
    found, expected = (by_both(m) for m in (weighted, repeated))
    assert np.shape(found) == (2, 50, 2)
    assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize("method", ["cv", "cv+", "jackknife+"])
def test_equals_mapie(method):
    regression = pytest.importorskip(
        "mapie.regression", reason="MAPIE is not installed, which intervals must equal"
    )
    by_folds = method != "jackknife+"
    model = regressor(cv=CV if by_folds else "loo").fit(X, Y)
    pipe = make_pipeline(FrozenEstimator(model.features_), Ridge(model.alpha_))
    theirs = regression.CrossConformalRegressor(
        pipe,
        confidence_level=0.9,
        method="base" if method == "cv" else "plus",
        cv=CV if by_folds else LeaveOneOut(),
    )
    _, bounds = theirs.fit_conformalize(X, Y).predict_interval(NEW)
    found = model.predict_interval(NEW, 0.9, method)
    assert_allclose(found, bounds[:, :, 0].T, rtol=1e-7)


def test_normalized_intervals_equal_their_definition():
    model = regressor(intervals="normalized").fit(X, Y)
    Z, Z_new = (model.features_.transform(A) for A in (X, NEW))
    low, high = [], []
    for train, test in CV.split(X):
        mean = Ridge(model.alpha_).fit(Z[train], Y[train])
        sizes = np.abs(Y[train] - mean.predict(Z[train]))
        size = Ridge(model.alpha_).fit(Z[train], sizes)
        floor = 0.1 * sizes.mean()
        scores = np.abs(Y[test] - mean.predict(Z[test]))
        scores /= np.maximum(size.predict(Z[test]), floor)
        scale = np.maximum(size.predict(Z_new), floor)
        low += [mean.predict(Z_new) - s * scale for s in scores]
        high += [mean.predict(Z_new) + s * scale for s in scores]
    expected = np.sort(low, axis=0)[11], np.sort(high, axis=0)[108]
    found = model.predict_interval(NEW, method="normalized")
    assert_allclose(found, expected, rtol=1e-7)
    assert_array_equal(model.predict_interval(NEW), found)
    plain = regressor().fit(X, Y).predict_interval(NEW, method="cv+")
    assert np.ptp(found, axis=0).std() > 2 * np.ptp(plain, axis=0).std()


@pytest.mark.parametrize("intervals", [True, "normalized"])
def test_streams_have_the_intervals_of_rows_in_memory(intervals):
    frozen = FrozenEstimator(features().fit(X))
    stream = regressor(frozen, cv=4, intervals=intervals)
    stream.fit_stream(ArrayRows(X, Y, block_rows=50))
    split = PredefinedSplit(folds_of_rows(0, 120, 4))
    model = regressor(frozen, cv=split, intervals=intervals).fit(X, Y)
    bounds = by_both if intervals is True else lambda m: m.predict_interval(NEW)
    expected, found = (np.asarray(bounds(m)) for m in (model, stream))
    # Scores of a stream are rounded up by less than a thousandth.
    assert_allclose(found, expected, atol=1e-3 * np.ptp(expected, axis=0).max())
    assert np.all(found[0] <= expected[0] + 1e-9)
    assert np.all(found[1] >= expected[1] - 1e-9)


@pytest.mark.parametrize("select", [None, "surrogate"])
def test_rows_on_workers_have_the_intervals_of_a_stream(select):
    da = pytest.importorskip("dask.array")
    model = regressor(features(select=select), cv=3, alphas=0.7)
    rows = da.from_array(X, chunks=(40, 3))
    model.fit(rows, da.from_array(Y, chunks=40))
    assert len(model.fold_models_.features) == (0 if select is None else 3)
    split = PredefinedSplit(folds_of_rows(0, 120, 3))
    here = regressor(features(select=select), cv=split, alphas=0.7).fit(X, Y)
    if select is None:
        expected, found = by_both(here), by_both(model)
        assert_allclose(found, expected, atol=1e-3 * np.ptp(expected, axis=0).max())
    for method in ("cv", "cv+"):
        new = da.from_array(NEW, chunks=(10, 3))
        lower, upper = model.predict_interval(new, method=method)
        expected = model.predict_interval(NEW, method=method)
        assert_allclose((lower.compute(), upper.compute()), expected, rtol=1e-12)


def test_rows_of_a_sample_that_features_saw_are_not_left_out():
    model = regressor(features(select="surrogate"), cv=4)
    model.fit_stream(ArrayRows(X, Y), n_sample=40)
    assert model.fold_models_.weights.sum() == 80
    assert model.fold_models_.features == []


@pytest.mark.parametrize("options", [{}, {"intervals": "normalized"}, {"cv": 5}])
def test_intervals_change_nothing_else(options):
    model = regressor(**options).fit(X, Y)
    plain = regressor(cv=options.get("cv", CV), intervals=False).fit(X, Y)
    assert_array_equal(model.primal_coef_, plain.primal_coef_)
    assert model.best_score_ == plain.best_score_
    assert not hasattr(plain, "fold_models_")
    single = regressor(alphas=0.7, **options).fit(X, Y)
    alone = regressor(alphas=0.7, intervals=False).fit(X, Y)
    assert_allclose(single.primal_coef_, alone.primal_coef_, rtol=1e-9)


def test_other_solvers_types_and_targets():
    expected = by_both(regressor(alphas=0.7).fit(X, Y))
    passes = regressor(alphas=0.7, solver="cg", tol=1e-6).fit(X, Y)
    assert_allclose(by_both(passes), expected, atol=1e-4)
    narrow = regressor(alphas=0.7).fit(X.astype(np.float32), Y)
    found = by_both(narrow, NEW.astype(np.float32))
    assert found.dtype == np.float32
    assert_allclose(found, expected, atol=1e-4)
    both = np.column_stack([Y, 3.0 * Y])
    found = by_both(regressor(alphas=0.7).fit(X, both))
    assert_allclose(found, expected[..., None] * [1, 3], rtol=1e-8)
    by_gamma = regressor(gammas=[0.1, 0.3]).fit(X, Y)
    assert np.isfinite(by_gamma.predict_interval(NEW)).all()


def test_intervals_cover():
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(2200, 2))
    y = rows[:, 0] ** 2 + rng.standard_t(3, size=2200)
    model = regressor(features(40), cv=5).fit(rows[:200], y[:200])
    for coverage in (0.8, 0.9):
        for method in ("cv", "cv+"):
            lower, upper = model.predict_interval(rows[200:], coverage, method)
            inside = np.mean((lower <= y[200:]) & (y[200:] <= upper))
            # 200 residuals give the coverage a standard deviation of 0.028 at most.
            assert abs(inside - coverage) < 3 * 0.028


def test_learned_features_do_not_make_intervals_wide():
    """Folds' models of features that look at y differ: CV+ counts that twice."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(4400, 5))
    y = rows[:, 0] * rows[:, 1] + 0.1 * rng.normal(size=4400)
    model = regressor(features(64, select="surrogate"), cv=5).fit(rows[:400], y[:400])
    inside = {}
    for method in ("cv", "cv+", None):
        lower, upper = model.predict_interval(rows[400:], 0.8, method)
        inside[method] = np.mean((lower <= y[400:]) & (y[400:] <= upper))
    # 400 residuals give the coverage a standard deviation of 0.02, 80 one of 0.045.
    assert abs(inside["cv"] - 0.8) < 3 * 0.02 < inside["cv+"] - 0.8
    assert abs(inside[None] - 0.8) < 3 * 0.045


# -- labels ----------------------------------------------------------------------------


def sets_by_hand(fit, splits, labels, coverage, method):
    """Sets by their definition: a model for each split, a list for each row."""
    less, n, of_all = 0.0, 0, fit(np.arange(120))
    for train, test in list(splits)[: 1 if method == "split" else None]:
        scores = fit(train)
        own = scores(X[test])[np.arange(len(test)), labels[test]]
        of_new = of_all(NEW) if method == "cv" else scores(NEW)
        less = less + (own[:, None, None] < of_new).sum(axis=0)
        n += len(test)
    return less < coverage * (n + 1) - 1e-9


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("cv", [StratifiedKFold(4), "loo"], ids=["folds", "loo"])
def test_sets_equal_those_of_refitted_folds(n_classes, cv):
    labels = np.digitize(Y, [-0.5, 0.5][: n_classes - 1])
    model = KernelRidgeClassifier(features(), alphas=0.7, cv=cv, intervals=True)
    model.fit(X, labels)
    targets = -np.ones((120, n_classes))
    targets[np.arange(120), labels] = 1.0

    def fit(train):
        Z = model.features_.transform(X)
        ridge = Ridge(0.7).fit(Z[train], targets[train])
        return lambda rows: -ridge.predict(model.features_.transform(rows))

    splitter = LeaveOneOut() if cv == "loo" else cv
    for method in ("cv", "cv+", "split")[: 2 if cv == "loo" else 3]:
        splits = splitter.split(X, labels)
        expected = sets_by_hand(fit, splits, labels, 0.85, method)
        assert_array_equal(model.predict_set(NEW, 0.85, method), expected)
    with pytest.raises(
        ValueError, match=r"method must be 'cv', 'split' or 'cv\+', got"
    ):
        model.predict_set(NEW, method="plus")


@pytest.mark.parametrize("n_classes", [2, 3])
def test_sets_of_the_logistic_model(n_classes):
    labels = np.digitize(Y, [-0.5, 0.5][: n_classes - 1])
    options = {"alphas": 0.7, "tol": 1e-7}
    cv = StratifiedKFold(3)
    model = KernelLogisticClassifier(features(), cv=cv, intervals=True, **options)
    model.fit(X, labels)

    def fit(train):
        frozen = FrozenEstimator(model.features_)
        own = KernelLogisticClassifier(frozen, alphas=0.7, tol=1e-3)
        own.fit(X[train], labels[train])
        return lambda rows: -own.predict_proba(rows)

    for method in ("cv", "cv+", "split"):
        expected = sets_by_hand(fit, cv.split(X, labels), labels, 0.85, method)
        assert_array_equal(model.predict_set(NEW, 0.85, method), expected)


@pytest.mark.parametrize("model", [KernelRidgeClassifier, KernelLogisticClassifier])
def test_sets_hold_the_labels(model):
    rng = np.random.default_rng(4)
    rows = rng.normal(size=(1300, 2))
    labels = np.array(["a", "b", "c"])[
        np.digitize(rows[:, 0] + 0.5 * rng.normal(size=1300), [-0.5, 0.5])
    ]
    fitted = model(features(), alphas=0.7, intervals=True).fit(rows[:300], labels[:300])
    for coverage in (0.7, 0.9):
        codes = np.searchsorted(fitted.classes_, labels[300:])
        for method in ("cv", "cv+"):
            sets = fitted.predict_set(rows[300:], coverage, method)
            # 300 scores give the coverage a standard deviation of 0.027 at most.
            assert abs(sets[np.arange(1000), codes].mean() - coverage) < 3 * 0.03
    assert sets.sum(axis=1).mean() < 2.5


def test_a_stream_of_labels():
    frozen = FrozenEstimator(features().fit(X))
    options = {"alphas": 0.7, "intervals": True}
    stream = KernelRidgeClassifier(frozen, cv=4, **options)
    stream.fit_stream(ArrayRows(X, THREE))
    split = PredefinedSplit(folds_of_rows(0, 120, 4))
    model = KernelRidgeClassifier(frozen, cv=split, **options).fit(X, THREE)
    for method in ("cv", "cv+"):
        sets, expected = (m.predict_set(NEW, method=method) for m in (stream, model))
        assert np.all(sets >= expected)
        assert np.mean(sets != expected) < 0.03


# -- what is refused, and files --------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cv": "gcv"}, "needs rows that are left out: cv must be .* got 'gcv'"),
        ({"cv": "evidence"}, "needs rows that are left out: .* got 'evidence'"),
        ({"cv": ShuffleSplit(3, random_state=0)}, "leave each row out once at most"),
        ({"cv": "loo", "intervals": "normalized"}, "cv must be an int or a splitter"),
        (
            {"cv": "loo", "features": features(select="surrogate")},
            "cv='loo' takes them as they are",
        ),
        (
            {
                "cv": [(np.arange(30), np.arange(60, 90))] * 1,
                "intervals": "normalized",
            },
            "train on all the rows which they do not leave out",
        ),
    ],
)
def test_what_leaves_no_rows_out_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        regressor().set_params(**options).fit(X, Y)


def test_without_intervals_there_are_no_such_methods():
    plain = regressor(intervals=False).fit(X, Y)
    assert not hasattr(plain, "predict_interval")
    assert not hasattr(KernelRidgeClassifier(), "predict_set")
    assert not hasattr(regressor(), "partial_fit")
    plain.set_params(intervals=True)
    with pytest.raises(ValueError, match="needs the models of the folds: fit again"):
        plain.predict_interval(NEW)
    with pytest.raises(ValueError, match="needs rows that are left out"):
        regressor(cv="gcv").fit_stream(ArrayRows(X, Y))
    with pytest.raises(ValueError, match="sets of exclusive labels"):
        KernelRidgeClassifier(intervals=True).fit(X, np.column_stack([Y > 0, X > 0]))
    pieces = regressor(alphas=0.7).fit(X, Y).set_params(intervals=False)
    assert not hasattr(pieces.partial_fit(X, Y), "fold_models_")


def test_conjugate_gradients_fit_no_scale():
    model = regressor(intervals="normalized", solver="cg", cv=3)
    with pytest.raises(ValueError, match="solver='cg' does not form"):
        model.fit(X, Y)


def test_leaves_are_refused():
    with pytest.raises(ValueError, match="those of the model without leaves"):
        regressor(leaves=4).fit(X, Y)
    with pytest.raises(ValueError, match="those of the model without leaves"):
        regressor(leaves=4).fit_stream(ArrayRows(X, Y))


def test_requests_that_do_not_fit_the_fit_are_refused():
    model = regressor().fit(X, Y)
    for coverage in (0.0, 1.0, 90):
        with pytest.raises(ValueError, match="'coverage' parameter"):
            model.predict_interval(NEW, coverage)
    with pytest.raises(ValueError, match="'method' parameter"):
        model.predict_interval(NEW, method="naive")
    with pytest.raises(ValueError, match=r"'jackknife\+' needs .* got 4 folds"):
        model.predict_interval(NEW, method="jackknife+")
    with pytest.raises(ValueError, match="'split' needs a fit with folds of several"):
        regressor(cv="loo").fit(X, Y).predict_interval(NEW, method="split")
    with pytest.raises(ValueError, match="'normalized' needs a fit with intervals='no"):
        model.predict_interval(NEW, method="normalized")
    normalized = regressor(intervals="normalized").fit(X, Y)
    for method in ("cv", "cv+"):
        with pytest.raises(ValueError, match="' needs a fit with intervals=True"):
            normalized.predict_interval(NEW, method=method)


@pytest.mark.parametrize(
    "model",
    [
        regressor(),
        regressor(features(select="surrogate")),
        regressor(intervals="normalized"),
        regressor(cv="loo"),
        KernelRidgeClassifier(features(), alphas=0.7, intervals=True),
        KernelLogisticClassifier(features(select="surrogate"), intervals=True, cv=2),
    ],
    ids=["folds", "own features", "normalized", "loo", "classifier", "logistic"],
)
def test_files_keep_the_models_of_the_folds(model, tmp_path):
    pytest.importorskip("skops")
    is_regressor = isinstance(model, KernelRidgeRegressor)
    model = clone(model).fit(X, Y if is_regressor else THREE)
    save(model, tmp_path / "model.skops")
    again = load(tmp_path / "model.skops")
    if is_regressor:
        normalized = model.intervals == "normalized"
        bounds = by_both if not normalized else lambda m: m.predict_interval(NEW)
        found, expected = bounds(again), bounds(model)
    else:
        found, expected = (m.predict_set(NEW, method="cv+") for m in (again, model))
    assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("coefs", lambda a: a[:, :-1], "those of 3 features, 16 components"),
        ("coefs", lambda a: a * np.nan, "coefs of FoldModels must be finite"),
        ("intercepts", lambda a: a[1:], "intercepts of FoldModels must be an array"),
        ("values", lambda a: a[::-1].copy(), "values of FoldModels must be ascending"),
        ("weights", lambda a: -a, "weights of FoldModels must be positive"),
        ("starts", lambda a: a + 1, "starts of FoldModels must be where"),
        ("features", lambda a: [*a, 1], "features of FoldModels must be a list"),
        ("floors", lambda a: np.ones((4, 1)), "floors of FoldModels must be positive"),
    ],
)
def test_damaged_models_of_folds_are_refused(name, change, message, tmp_path):
    pytest.importorskip("skops")
    model = regressor().fit(X, Y)
    models = model.fold_models_
    setattr(models, name, change(getattr(models, name)))
    with pytest.raises(ModelFileError, match=message):
        save(model, tmp_path / "model.skops")


def test_fewer_rows_than_columns():
    few = slice(0, 30)
    model = regressor(features(64), cv=3).fit(X[few], Y[few])
    by_eigh = regressor(features(64), cv=3, alphas=model.alpha_, solver="eigh")
    expected = by_both(by_eigh.fit(X[few], Y[few]), coverage=0.8)
    assert_allclose(by_both(model, coverage=0.8), expected, rtol=1e-6)


@pytest.mark.parametrize("weighted", [False, True])
def test_of_many_rows_a_random_part_of_each_fold_is_scored(weighted):
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(12_000, 2))
    y = np.sin(rows[:, 0]) + rng.normal(size=12_000)
    weight = np.ones(12_000) if weighted else None
    model = regressor(features(8), alphas=1.0).fit(rows, y, weight)
    models = model.fold_models_
    scored = np.diff(models.starts)
    # 8,192 of 12,000 with a deviation of 51, a quarter of them in each of four folds.
    assert abs(scored.sum() - 8192) < 5 * 51
    assert np.all(abs(scored - 2048) < 5 * 26)
    decisions = models.predictor(model.features_, rows.dtype)(rows)[:, :, 0, 0]
    for fold, (_, test) in enumerate(CV.split(rows)):
        every = np.sort(np.abs(y[test] - decisions[test, fold]))
        some = models.values[models.starts[fold] : models.starts[fold + 1]]
        nearest = every[np.searchsorted(every, some - 1e-12)]
        assert_allclose(nearest, some, rtol=1e-9)
    radius = np.quantile(np.abs(y - model.predict(rows)), 0.9)
    low, high = model.predict_interval(rows[:1], 0.9)
    # The quantile of 8,192 absolute normals has a relative deviation of 0.7 %.
    assert_allclose((high - low) / 2, radius, rtol=0.04)


def test_learned_features_keep_the_scores_of_all_rows():
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(9000, 2))
    y = np.sin(rows[:, 0]) + rng.normal(size=9000)
    learned = features(8, select="surrogate")
    model = regressor(learned, alphas=1.0, cv=2).fit(rows, y)
    assert len(model.fold_models_.values) == 9000
