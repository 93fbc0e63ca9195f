"""What once broke: small inputs, and what is right for them."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning, UndefinedMetricWarning
from sklearn.metrics import r2_score
from sklearn.model_selection import LeaveOneOut, LeavePOut, cross_val_predict

from surff import (
    FourierFeatures,
    KernelLogisticClassifier,
    KernelRidgeClassifier,
    KernelRidgeRegressor,
    NystroemFeatures,
)

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))
Y = np.sin(X[:, 0]) + 0.3 * RNG.normal(size=40)


def features(n=32, **options):
    return FourierFeatures(n, gamma=0.3, random_state=0, **options)


@pytest.mark.parametrize("solver", ["cholesky", "cg"])
def test_one_row_folds_are_pooled_for_r2(solver):
    alphas = np.logspace(-3, 3, 13)
    model = KernelRidgeRegressor(
        features(), alphas=alphas, cv=LeaveOneOut(), solver=solver, tol=1e-6
    ).fit(X, Y)
    exact = KernelRidgeRegressor(features(), alphas=alphas, cv="loo").fit(X, Y)
    assert model.alpha_ == exact.alpha_
    assert_allclose(
        model.alpha_path_.scores, exact.alpha_path_.scores, atol=1e-4, rtol=1e-4
    )
    one = KernelRidgeRegressor(features(), alphas=model.alpha_)
    predicted = cross_val_predict(one, X, Y, cv=LeaveOneOut())
    assert model.best_score_ == pytest.approx(r2_score(Y, predicted), abs=1e-4)


@pytest.mark.parametrize("constant", [0.1, 0.3, 1.7, 1e3 / 3])
def test_a_fold_of_a_constant_target_scores_0_or_1(constant):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(500, 2))
    y = constant + np.where(np.arange(500) < 120, 0.0, np.sin(2 * X[:, 0]))
    model = KernelRidgeRegressor(features(64)).fit(X, y)
    assert set(model.alpha_path_.scores[:, 0]) <= {0.0, 1.0}
    assert model.best_score_ > 0.6
    new = rng.normal(size=(300, 2))
    assert model.score(new, constant + np.sin(2 * new[:, 0])) > 0.85


def test_a_score_that_is_nan_is_named_with_its_fold():
    y = np.arange(40) >= 20  # unshuffled folds of one class
    model = KernelRidgeClassifier(
        features(), scoring="roc_auc", cv=[(np.arange(30), np.arange(30, 40))]
    )
    with (
        pytest.warns(UndefinedMetricWarning),
        pytest.raises(ValueError, match=r"score of fold 0, which holds 10 rows out"),
    ):
        model.fit(X, y)


def test_pairs_left_out_keep_a_score_per_split():
    model = KernelRidgeRegressor(features(), alphas=[0.1, 1.0], cv=LeavePOut(2))
    model.fit(X[:6], Y[:6])
    assert model.alpha_path_.scores.shape == (2, 15)


@pytest.mark.parametrize(
    ("y", "weight", "match"),
    [
        (1e308 * np.sign(Y), None, r"y must be at most 1e\+100"),
        (Y, np.full(40, 1e308), r"sample_weight must be at most 1e\+30"),
        (Y, np.full(40, 1e-308), r"sample_weight must sum to at least 1e-30"),
    ],
)
def test_sums_that_would_overflow_are_refused(y, weight, match):
    model = KernelRidgeRegressor(features(), alphas=1.0)
    model.partial_fit(X, Y)
    before = model.primal_coef_
    for method in (model.partial_fit, model.fit):
        with pytest.raises(ValueError, match=match):
            method(X, y, sample_weight=weight)
    assert_array_equal(model.partial_fit(X, Y).primal_coef_.shape, before.shape)
    assert np.isfinite(model.primal_coef_).all()


@pytest.mark.parametrize("gamma", ["scale", "median"])
def test_bandwidths_of_huge_columns_are_refused_by_name(gamma):
    with pytest.raises(ValueError, match=rf"gamma='{gamma}' needs .* overflow"):
        FourierFeatures(8, gamma=gamma).fit(1e200 * X)


def test_median_with_extreme_weights():
    weight = np.r_[1e30, np.full(39, 1e-300)]
    fitted = FourierFeatures(8, gamma="median", random_state=0)
    assert np.isfinite(fitted.fit(X, sample_weight=weight).gamma_)


@pytest.mark.parametrize("make", [FourierFeatures, NystroemFeatures])
@pytest.mark.parametrize(
    ("n", "match"), [(True, "not a bool"), (2**40, "n_components"), (1.5, "n_comp")]
)
def test_sizes_that_are_none(make, n, match):
    with pytest.raises((TypeError, ValueError), match=match):
        make(n).fit(X)
    with pytest.raises((TypeError, ValueError), match=match):
        KernelRidgeRegressor(make(n)).fit(X, Y)


@pytest.mark.parametrize("model", [KernelRidgeRegressor, KernelLogisticClassifier])
@pytest.mark.parametrize("alphas", [["1", "10"], [True, False], [], [np.nan]])
def test_alphas_that_are_no_numbers(model, alphas):
    with pytest.raises(ValueError, match="alphas must be"):
        model(features(), alphas=alphas).fit(X, Y > 0)


class Drawn:
    """A draw of a user that returns anything."""

    def __init__(self, drawn=None):
        self.drawn = drawn

    def draw(self, measure, n_frequencies, n_features, rng):
        return self.drawn


@pytest.mark.parametrize(
    ("drawn", "match"),
    [
        (np.ones((4, 2)), r"shape \(4, 3\), got shape \(4, 2\)"),
        (np.ones((4, 3, 1)), r"got shape \(4, 3, 1\)"),
        (np.ones((0, 3)), r"got shape \(0, 3\)"),
        ([[1.0], [1.0, 2.0]], "rows of different lengths"),
        (np.full((4, 3), np.nan), "with NaN or infinity"),
        (np.full((4, 3), "a"), "finite real numbers, got dtype"),
        (None, r"got shape \(\)"),
    ],
)
def test_draws_of_wrong_shapes_are_refused_at_fit(drawn, match):
    with pytest.raises(ValueError, match=match):
        FourierFeatures(8, draw=Drawn(drawn)).fit(X)
    with pytest.raises(ValueError, match=match):
        KernelRidgeRegressor(FourierFeatures(8, draw=Drawn(drawn))).fit(X, Y)


def test_floats_are_numbers_for_every_selection():
    y = np.where(Y > 0, 3.0, 1.0)
    as_numbers = features(8, select="eerf").fit(X, y)
    as_labels = features(8, select="eerf").fit(X, y.astype(int))
    model = KernelRidgeRegressor(features(8, select="eerf"), alphas=1.0).fit(X, y)
    assert_array_equal(model.features_.frequencies_, as_numbers.frequencies_)
    classifier = KernelRidgeClassifier(features(8, select="eerf"), alphas=1.0)
    found = classifier.fit(X, y).features_.frequencies_
    assert_array_equal(found, as_labels.frequencies_)
    assert not np.array_equal(as_numbers.frequencies_, as_labels.frequencies_)


def test_probabilities_that_are_not_there_say_how_to_get_them():
    model = KernelRidgeClassifier(features(), alphas=1.0).fit(X, Y > 0)
    with pytest.raises(AttributeError) as caught:
        model.predict_proba(X)
    assert "probability=True" in str(caught.value.__cause__)


def test_frames_with_dates_or_equal_names_are_refused_by_name():
    dates = pd.DataFrame({"when": pd.date_range("2020-01-01", periods=40)})
    with pytest.raises(ValueError, match=r"column 'when'.* datetime64"):
        FourierFeatures(8).fit(dates)
    twice = pd.DataFrame(X, columns=["a", "b", "a"])
    with pytest.raises(ValueError, match=r"several columns named 'a'"):
        FourierFeatures(8).fit(twice)


@pytest.mark.parametrize("solver", ["cholesky", "cg"])
@pytest.mark.parametrize("side", ["trains on", "holds out"])
def test_splits_without_weight_are_refused_by_number(solver, side):
    weight = np.ones(40)
    weight[20:] = 0.0
    rows = np.arange(40)
    splits = [(rows[:10], rows[10:20]), (rows[:20], rows[20:])]
    if side == "trains on":
        splits[1] = splits[1][::-1]
    for model in (
        KernelRidgeRegressor(features(), cv=splits, solver=solver),
        KernelRidgeClassifier(features(), cv=splits, solver=solver),
        KernelLogisticClassifier(features(), cv=splits),
    ):
        y = Y if isinstance(model, KernelRidgeRegressor) else rows % 2
        with pytest.raises(ValueError, match=f"split 1 {side} rows whose sample_wei"):
            model.fit(X, y, sample_weight=weight)


@pytest.mark.parametrize("Model", [KernelRidgeClassifier, KernelLogisticClassifier])
def test_labels_of_several_types_are_refused(Model):
    y = np.array(["a", 1, None, 2.5] * 10, dtype=object)
    with pytest.raises(ValueError, match="one type, got NoneType and float and int"):
        Model(features(), alphas=1.0).fit(X, y)
    with pytest.raises(ValueError, match="one type, got NoneType and float and int"):
        features(select="residual").fit(X, y)


def test_conjugate_gradients_warn_once():
    model = KernelRidgeRegressor(features(), alphas=[1e-6, 1.0], solver="cg", tol=1e-9)
    with pytest.warns(ConvergenceWarning, match="stopped after 1 passes") as caught:
        model.set_params(max_iter=1).fit(X, Y)
    assert len(caught) == 1


@pytest.mark.parametrize(
    ("gamma", "match"),
    [("scale", "the variance of X, which is"), ("median", "distances of rows, whose")],
)
def test_gamma_of_tiny_columns_is_refused(gamma, match):
    with pytest.raises(ValueError, match=f"gamma='{gamma}' needs {match}"):
        FourierFeatures(8, gamma=gamma).fit(1e-160 * X)


def test_frequencies_that_overflow_in_float32_are_refused():
    model = KernelRidgeRegressor(
        FourierFeatures(8, gamma=1e300), alphas=1.0, precision="mixed"
    )
    with pytest.raises(ValueError, match="gamma, or the draw, gives frequencies that"):
        model.fit(X, Y)


def test_a_target_of_none_is_refused():
    y = Y.astype(object)
    y[3] = None
    with pytest.raises(ValueError, match="y must be numbers, got None or NaN"):
        KernelRidgeRegressor(features(), alphas=1.0).fit(X, y)


@pytest.mark.parametrize("landmarks", ["uniform", "rpcholesky", "leverage"])
def test_kernels_that_overflow_are_refused(landmarks):
    for kernel, gamma in (("poly", 1e300), ("rbf", 1e300)):
        maps = NystroemFeatures(
            8, kernel=kernel, gamma=gamma, landmarks=landmarks, random_state=0
        )
        with pytest.raises(ValueError, match=r"kernel of rows of X must be finite"):
            maps.fit(1e5 * X)


@pytest.mark.parametrize("cv", ["gcv", 2])
def test_alphas_at_the_end_of_numbers(cv):
    model = KernelRidgeRegressor(features(4), alphas=[1e-300, 1e300, 1.0], cv=cv)
    constant = np.zeros((40, 2))
    assert_allclose(model.fit(constant, Y).predict(constant), Y.mean(), rtol=1e-9)


def test_pieces_check_the_parameters_too():
    model = KernelRidgeRegressor(features(), alphas=1.0).partial_fit(X, Y)
    before = model.predict(X)
    with pytest.raises(ValueError, match="The 'solver' parameter"):
        model.set_params(solver="qr").partial_fit(X, Y)
    assert_array_equal(model.predict(X), before)


def test_features_beyond_float32_are_refused():
    maps = NystroemFeatures(8, kernel="poly", gamma=1.0, random_state=0).fit(X)
    rows = (1e15 * X).astype(np.float32)
    with pytest.raises(ValueError, match="kernel of rows of X must be finite"):
        maps.transform(rows)
    assert np.isfinite(maps.transform(rows.astype(float))).all()


@pytest.mark.parametrize("missing", [True, False])
def test_cells_that_are_no_numbers_are_named(missing):
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    cell = pandas.NA if missing else "many"
    column = pandas.array(["1", cell, *map(str, X[2:, 0])], dtype="string")
    frame = pandas.DataFrame({"a": X[:, 1], "b": column})
    with pytest.raises(ValueError, match=f"in column 'b' \\('?{cell}'?\\)"):
        features().fit(frame)


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_components", [8, 9])
def test_projections_beyond_the_dtype_are_refused(container, dtype, n_components):
    largest = np.finfo(dtype).max
    maps = FourierFeatures(n_components, gamma=100.0, random_state=0)
    maps.fit(X.astype(dtype))
    rows = X.astype(dtype)
    rows[7] = largest
    with pytest.raises(ValueError, match="X must have finite projections"):
        maps.transform(container(rows))
    model = KernelRidgeRegressor(maps, alphas=1.0)
    with pytest.raises(ValueError, match="X must have finite projections"):
        model.fit(container(rows), Y)
    model.fit(X.astype(dtype), Y)
    with pytest.raises(ValueError, match="X must have finite projections"):
        model.predict(container(rows))


def test_tiny_frequencies_have_no_length_in_float32():
    rows = X[:3].astype(np.float32)
    maps = FourierFeatures(8, gamma=1e-300, adapt="auto", random_state=0)
    assert np.isfinite(maps.fit_transform(rows, rows[:, 0])).all()


def test_any_tolerance_is_one():
    maps = NystroemFeatures(2, landmarks="kmeans", random_state=0)
    model = KernelRidgeRegressor(maps, solver="cg", tol=1e308, fit_intercept=False)
    assert np.isfinite(model.fit(X, Y).predict(X)).all()


@pytest.mark.parametrize("kernel", ["rbf", "matern", "laplacian"])
def test_rows_of_any_size_are_equal_to_themselves(kernel):
    maps = FourierFeatures(8, kernel=kernel, gamma=0.3, random_state=0).fit(X)
    K = maps.exact_kernel(1e30 * X)
    assert_array_equal(K, np.eye(len(X)))
