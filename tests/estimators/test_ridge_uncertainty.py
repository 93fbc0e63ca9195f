"""What predictions are worth: probabilities, standard deviations; multilabel."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit
from scipy.stats import norm
from sklearn.calibration import CalibratedClassifierCV
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, DotProduct
from sklearn.linear_model import RidgeClassifier
from sklearn.metrics import f1_score, log_loss
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from surff import FourierFeatures, KernelRidgeClassifier, KernelRidgeRegressor
from surff.linear import SingularError

ALPHAS = [0.03, 0.7, 20.0]

RNG = np.random.default_rng(0)
X = RNG.normal(size=(150, 3))
Y = np.sin(X[:, 0]) + X[:, 1] ** 2 + 0.5 * RNG.normal(size=150) - 2.0
NEW = RNG.normal(size=(20, 3))
TWO = np.where(np.median(Y) < Y, "yes", "no")
THREE = np.digitize(Y, [-1.7, -0.8]) * 10 - 5
LABELS = np.column_stack([Y > -1.2, X[:, 0] > 0, X[:, 2] > 0.3]).astype(int)
WEIGHT = RNG.integers(0, 4, size=150)
REPEATED = np.repeat(np.arange(150), WEIGHT)
for array in (X, Y, NEW, TWO, THREE, LABELS, WEIGHT):
    array.flags.writeable = False


def features(n_components=16, **parameters):
    return FourierFeatures(
        n_components, **{"gamma": 0.3, "random_state": 0, **parameters}
    )


def classifier(**parameters):
    return KernelRidgeClassifier(
        features(), **{"alphas": 0.7, "probability": True, **parameters}
    )


# -- probabilities ---------------------------------------------------------------------


@pytest.mark.parametrize("labels", [TWO, THREE], ids=["two", "three"])
@pytest.mark.parametrize(
    "cv",
    [5, KFold(4, shuffle=True, random_state=0), StratifiedKFold(3)],
    ids=str,
)
def test_probabilities_equal_scikit_learns_calibration(labels, cv):
    model = classifier(cv=cv).fit(X, labels)
    reference = CalibratedClassifierCV(
        make_pipeline(FrozenEstimator(model.features_), RidgeClassifier(0.7)),
        method="sigmoid",
        ensemble=False,
        cv=cv,
    ).fit(X, labels)
    ours, theirs = model.predict_proba(NEW), reference.predict_proba(NEW)
    assert ours.shape == (20, len(np.unique(labels)))
    # Theirs stops at a gradient of 1e-6, ours at 1e-8: both maximise one likelihood.
    assert_allclose(ours, theirs, rtol=0, atol=1e-4)
    assert_allclose(ours.sum(axis=1), 1.0, rtol=1e-12)
    assert ours.min() >= 0
    assert_array_equal(model.classes_, reference.classes_)


@pytest.mark.parametrize("cv", ["gcv", "loo"])
@pytest.mark.parametrize("labels", [TWO, THREE, LABELS], ids=["2", "3", "labels"])
def test_probabilities_without_folds(cv, labels):
    # Both calibrate on leave-one-out decisions, that is on n folds.
    model = classifier(cv=cv).fit(X, labels)
    by_folds = classifier(cv=KFold(150)).fit(X, labels)
    assert_allclose(model.calibration_, by_folds.calibration_, rtol=1e-4)
    assert_allclose(model.predict_proba(NEW), by_folds.predict_proba(NEW), atol=1e-5)


def test_a_weight_repeats_a_row_in_probabilities():
    weighted = classifier(cv="loo").fit(X, THREE, sample_weight=WEIGHT)
    repeated = classifier(cv="loo").fit(X[REPEATED], THREE[REPEATED])
    assert_allclose(weighted.calibration_, repeated.calibration_, rtol=1e-4)
    plain = classifier(cv="loo").fit(X, THREE)
    assert abs(plain.calibration_ - weighted.calibration_).max() > 0.01


def test_probability_changes_nothing_else():
    plain = KernelRidgeClassifier(features(), alphas=ALPHAS).fit(X, THREE)
    model = classifier(alphas=ALPHAS).fit(X, THREE)
    assert_array_equal(model.primal_coef_, plain.primal_coef_)
    assert_array_equal(model.predict(NEW), plain.predict(NEW))
    assert model.best_score_ == plain.best_score_
    two = classifier().fit(X, TWO)
    # A rising curve keeps the order; its middle is not at zero.
    order = np.argsort(two.decision_function(NEW))
    assert np.all(np.diff(two.predict_proba(NEW)[order, 1]) > 0)


def test_without_probability_there_is_no_such_method():
    plain = KernelRidgeClassifier(features(), alphas=0.7).fit(X, TWO)
    assert not hasattr(plain, "predict_proba")
    with pytest.raises(AttributeError, match="has no attribute 'predict_proba'"):
        plain.predict_proba(X)
    assert not hasattr(plain, "calibration_")
    assert hasattr(classifier(), "predict_proba")
    with pytest.raises(NotFittedError, match="not fitted yet"):
        classifier().predict_proba(X)
    model = classifier().fit(X, TWO).set_params(probability=False)
    assert not hasattr(model.fit(X, TWO), "calibration_")


def test_single_precision_probabilities():
    single = classifier().fit(X.astype(np.float32), THREE)
    ours = single.predict_proba(NEW.astype(np.float32))
    assert_allclose(ours, classifier().fit(X, THREE).predict_proba(NEW), atol=1e-3)
    assert_allclose(ours.sum(axis=1), 1.0, rtol=1e-5)


def test_probabilities_are_calibrated_on_real_data(real_data):
    data = real_data("magic04")
    order = np.random.default_rng(0).permutation(len(data.y))
    train, test = np.array_split(order, 2)
    model = make_pipeline(
        StandardScaler(),
        KernelRidgeClassifier(FourierFeatures(300, random_state=0), probability=True),
    ).fit(data.X[train], data.y[train])
    positive = data.y[test] == model.classes_[1]
    P = model.predict_proba(data.X[test])
    decisions = model.decision_function(data.X[test])
    loss = log_loss(positive, P)
    # Targets are -1 and 1: (f + 1) / 2 and the logistic curve are the naive readings.
    assert loss < log_loss(positive, expit(decisions)) - 0.05
    clipped = np.clip((decisions + 1) / 2, 1e-3, 1 - 1e-3)
    assert loss < log_loss(positive, clipped) - 0.02
    deciles = np.array_split(np.argsort(P[:, 1]), 10)
    gaps = [P[rows, 1].mean() - positive[rows].mean() for rows in deciles]
    assert np.mean(np.abs(gaps)) < 0.03


# -- standard deviations ---------------------------------------------------------------


def noise_variance(Z, y, alpha, fit_intercept):
    """RSS / (n - df), written out with the hat matrix."""
    A = np.hstack([Z, np.ones((len(Z), 1))]) if fit_intercept else Z
    penalty = alpha * np.eye(A.shape[1])
    if fit_intercept:
        penalty[-1, -1] = 0.0
    inverse = np.linalg.inv(A.T @ A + penalty)
    residual = y - A @ (inverse @ (A.T @ y))
    variance = residual @ residual / (len(y) - np.trace(inverse @ A.T @ A))
    return variance, inverse


def test_deviations_equal_a_gaussian_process_on_the_features():
    model = KernelRidgeRegressor(features(), alphas=0.7, fit_intercept=False)
    mean, std = model.fit(X, Y).predict(NEW, return_std=True)
    Z, Z_new = (model.features_.transform(A) for A in (X, NEW))
    noise, _ = noise_variance(Z, Y, 0.7, False)
    # beta ~ N(0, noise / alpha I) makes the kernel noise / alpha * z.z'.
    kernel = ConstantKernel(noise / 0.7, "fixed") * DotProduct(0.0, "fixed")
    process = GaussianProcessRegressor(kernel, alpha=noise, optimizer=None).fit(Z, Y)
    expected, latent = process.predict(Z_new, return_std=True)
    assert_allclose(mean, expected, rtol=1e-8)
    assert_allclose(std, np.sqrt(latent**2 + noise), rtol=1e-8)


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("solver", ["cholesky", "eigh"])
def test_deviations_equal_the_closed_form(fit_intercept, weighted, solver):
    model = KernelRidgeRegressor(
        features(), alphas=0.7, fit_intercept=fit_intercept, solver=solver
    ).fit(X, Y, sample_weight=WEIGHT if weighted else None)
    rows = REPEATED if weighted else slice(None)
    Z, Z_new = (model.features_.transform(A) for A in (X[rows], NEW))
    noise, inverse = noise_variance(Z, Y[rows], 0.7, fit_intercept)
    if fit_intercept:
        Z_new = np.hstack([Z_new, np.ones((20, 1))])
    spread = np.einsum("ij,jk,ik->i", Z_new, inverse, Z_new)
    mean, std = model.predict(NEW, return_std=True)
    assert_allclose(std, np.sqrt(noise * (1 + spread)), rtol=1e-8)
    assert_array_equal(mean, model.predict(NEW))


@pytest.mark.parametrize("alpha_per_target", [False, True])
def test_deviations_of_several_targets(alpha_per_target):
    both = np.column_stack([Y, np.random.default_rng(3).normal(size=150)])
    model = KernelRidgeRegressor(
        features(), alphas=ALPHAS, cv="gcv", alpha_per_target=alpha_per_target
    ).fit(X, both)
    mean, std = model.predict(NEW, return_std=True)
    assert mean.shape == std.shape == (20, 2)
    alphas = np.broadcast_to(model.alpha_, 2)
    assert (len(set(alphas)) == 2) == alpha_per_target
    for j in range(2):
        alone = KernelRidgeRegressor(features(), alphas=alphas[j]).fit(X, both[:, j])
        assert_allclose(std[:, j], alone.predict(NEW, return_std=True)[1], rtol=1e-8)


def test_deviations_in_single_precision():
    model = KernelRidgeRegressor(features(), alphas=0.7)
    _, double = model.fit(X, Y).predict(NEW, return_std=True)
    model.fit(X.astype(np.float32), Y)
    _, single = model.predict(NEW.astype(np.float32), return_std=True)
    assert single.dtype == np.float32
    assert_allclose(single, double, rtol=1e-3)


def test_a_later_fit_forgets_the_deviations():
    model = KernelRidgeRegressor(features(), alphas=0.7).fit(X, Y)
    _, before = model.predict(NEW, return_std=True)
    _, after = model.fit(X, 10 * Y).predict(NEW, return_std=True)
    assert_allclose(after, 10 * before, rtol=1e-8)


def test_what_deviations_need_is_named():
    model = KernelRidgeRegressor(features(), alphas=0.7, keep_equations=False)
    with pytest.raises(ValueError, match=r"return_std=True needs .* got False"):
        model.fit(X, Y).predict(NEW, return_std=True)
    assert model.predict(NEW).shape == (20,)
    model = KernelRidgeRegressor(features(64), alphas=0.0, solver="eigh")
    with pytest.raises(SingularError, match=r"return_std=True .*alpha=0.*increase"):
        model.fit(X[:40], Y[:40]).predict(NEW, return_std=True)
    model = KernelRidgeRegressor(features(), alphas=1e-4)
    model.fit(X, Y, sample_weight=np.full(150, 1 / 150))
    with pytest.raises(ValueError, match=r"return_std=True counts a weight .* scale"):
        model.predict(NEW, return_std=True)


def test_intervals_cover_what_they_say_on_real_data(real_data):
    data = real_data("california-housing")
    order = np.random.default_rng(0).permutation(len(data.y))
    train, test = np.array_split(order, 2)
    scaler = StandardScaler().fit(data.X[train])
    model = KernelRidgeRegressor(FourierFeatures(500, random_state=0), cv="gcv")
    model.fit(scaler.transform(data.X[train]), data.y[train])
    mean, std = model.predict(scaler.transform(data.X[test]), return_std=True)
    inside = np.abs(data.y[test] - mean) < norm.ppf(0.95) * std
    assert abs(inside.mean() - 0.9) < 0.03


# -- multilabel ------------------------------------------------------------------------


def test_labels_are_fitted_as_if_alone():
    model = KernelRidgeClassifier(features(), alphas=0.7).fit(X, LABELS)
    assert model.primal_coef_.shape == (3, 16)
    assert_array_equal(model.classes_, [0, 1, 2])
    predicted = model.predict(NEW)
    assert predicted.shape == (20, 3)
    assert predicted.dtype.kind == "i"
    for j in range(3):
        alone = KernelRidgeClassifier(features(), alphas=0.7).fit(X, LABELS[:, j])
        assert_allclose(model.primal_coef_[j], alone.primal_coef_[0], rtol=1e-9)
        assert_array_equal(predicted[:, j], alone.predict(NEW))
        assert_allclose(
            model.decision_function(NEW)[:, j], alone.decision_function(NEW), rtol=1e-8
        )


@pytest.mark.parametrize("scoring", [None, "f1_macro"])
def test_multilabel_scores_equal_refits(scoring):
    folds = list(KFold(4, shuffle=True, random_state=0).split(X))
    model = KernelRidgeClassifier(features(), alphas=ALPHAS, cv=folds, scoring=scoring)
    model.fit(X, LABELS)
    Z = model.features_.transform(X)
    for alpha, scores in zip(*model.alpha_path_, strict=True):
        for (train, test), score in zip(folds, scores, strict=True):
            ridge = RidgeClassifier(alpha).fit(Z[train], LABELS[train])
            predicted = ridge.predict(Z[test])
            if scoring is None:
                expected = np.mean((predicted == LABELS[test]).all(axis=1))
            else:
                expected = f1_score(LABELS[test], predicted, average="macro")
            assert score == pytest.approx(expected, rel=1e-12)
    assert model.score(X, LABELS) == np.mean((model.predict(X) == LABELS).all(axis=1))


def test_multilabel_probabilities_are_each_labels_own():
    cv = KFold(5)
    model = classifier(cv=cv).fit(X, LABELS)
    P = model.predict_proba(NEW)
    assert P.shape == (20, 3)
    for j in range(3):
        alone = classifier(cv=cv).fit(X, LABELS[:, j])
        assert_allclose(P[:, j], alone.predict_proba(NEW)[:, 1], atol=1e-6)


def test_surrogate_leverage_adds_the_labels_up():
    model = KernelRidgeClassifier(features(select="surrogate"), alphas=0.7)
    model.fit(X, LABELS)
    signs = np.where(LABELS == 1, 1.0, -1.0)
    alone = features(select="surrogate").fit_checked(X, signs)
    assert_array_equal(model.features_.frequencies_, alone.frequencies_)


def test_a_matrix_of_other_numbers_is_refused():
    with pytest.raises(ValueError, match="got a multiclass-multioutput target"):
        KernelRidgeClassifier(features()).fit(X, LABELS + np.arange(3))
