"""The regressor as a Gaussian process, and noise that rows left out show."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, DotProduct
from sklearn.model_selection import KFold

from surff import (
    FourierFeatures,
    GradientAdaptation,
    KernelRidgeClassifier,
    KernelRidgeRegressor,
    load,
    save,
)
from surff.estimators import ModelFileError
from surff.linear import held_out_noise, splits_equations
from surff.streaming import ArrayRows

ALPHAS = [0.03, 0.7, 20.0]

RNG = np.random.default_rng(0)
X = RNG.normal(size=(150, 3))
Y = np.sin(2 * X[:, 0]) + 0.3 * X[:, 1] + 0.3 * RNG.normal(size=150)
NEW = RNG.normal(size=(20, 3))
for array in (X, Y, NEW):
    array.flags.writeable = False


def features(n_components=16, **parameters):
    return FourierFeatures(
        n_components, **{"gamma": 0.3, "random_state": 0, **parameters}
    )


def evidence(**parameters):
    return KernelRidgeRegressor(features(), cv="evidence", **parameters)


def test_the_evidence_is_that_of_a_gaussian_process_on_the_features():
    model = evidence(fit_intercept=False).fit(X, Y)
    Z, Z_new = (model.features_.transform(A) for A in (X, NEW))
    noise = model.noise_variance_[0]
    kernel = ConstantKernel(noise / model.alpha_, "fixed") * DotProduct(0.0, "fixed")
    process = GaussianProcessRegressor(kernel, alpha=noise, optimizer=None).fit(Z, Y)
    expected = process.log_marginal_likelihood_value_
    assert_allclose(model.best_score_, expected, rtol=1e-8)
    assert_allclose(model.log_marginal_likelihood(), expected, rtol=1e-8)
    mean, cov = model.predict(NEW, return_cov=True)
    dense_mean, dense_cov = process.predict(Z_new, return_cov=True)
    assert_allclose(mean, dense_mean, rtol=1e-7, atol=1e-9)
    assert_allclose(cov, dense_cov + noise * np.eye(20), rtol=1e-8, atol=1e-10)
    _, std = model.predict(NEW, return_std=True)
    assert_allclose(np.sqrt(np.diag(cov)), std, rtol=1e-12)


def test_the_automatic_alpha_has_no_slope_and_its_noise_is_that_of_the_residuals():
    model = evidence().fit(X, Y)
    value, slopes = model.log_marginal_likelihood(eval_gradient=True)
    assert_allclose(slopes, 0.0, atol=1e-4)
    assert value == pytest.approx(model.best_score_, rel=1e-12)
    # MacKay: at the maximum over alpha, S / nu = RSS / (n - df).
    by_noise = model.log_marginal_likelihood(
        noise_variance=model.noise_variance_, eval_gradient=True
    )[1]
    assert_allclose(by_noise, 0.0, atol=1e-3)


def test_given_alphas_are_chosen_from():
    model = evidence(alphas=ALPHAS).fit(X, Y)
    values = [model.log_marginal_likelihood(alpha) for alpha in ALPHAS]
    assert model.alpha_ == ALPHAS[int(np.argmax(values))]
    assert_allclose(model.alpha_path_.scores[:, 0], values, rtol=1e-12)


def test_gamma_by_evidence():
    model = evidence(gammas=[0.01, 0.3, 30.0]).fit(X, Y)
    best = max(model.gamma_path_, key=model.gamma_path_.get)
    assert model.features_.gamma_ == best
    assert model.best_score_ == model.gamma_path_[best]


@pytest.mark.parametrize("weighted", [False, True])
def test_streams_and_pieces_have_the_same_evidence(weighted):
    weight = RNG.integers(1, 3, size=150).astype(float) if weighted else None
    frozen = FrozenEstimator(features().fit(X))
    model = KernelRidgeRegressor(frozen, cv="evidence").fit(X, Y, weight)
    stream = clone(model).fit_stream(ArrayRows(X, Y, weight))
    assert_allclose(stream.best_score_, model.best_score_, rtol=1e-10)
    assert_allclose(stream.primal_coef_, model.primal_coef_, rtol=1e-5, atol=1e-7)
    pieces = clone(model)
    for part in (slice(0, 60), slice(60, 150)):
        some = None if weight is None else weight[part]
        pieces.partial_fit(X[part], Y[part], sample_weight=some)
    assert_allclose(pieces.best_score_, model.best_score_, rtol=1e-10)


def test_rows_on_workers_have_the_same_evidence():
    da = pytest.importorskip("dask.array")
    frozen = FrozenEstimator(features().fit(X))
    model = KernelRidgeRegressor(frozen, cv="evidence")
    here = clone(model).fit(X, Y)
    there = model.fit(da.from_array(X, chunks=(50, 3)), da.from_array(Y, chunks=50))
    assert_allclose(there.best_score_, here.best_score_, rtol=1e-10)


def test_an_alpha_per_target_by_evidence():
    both = np.column_stack([Y, Y + 2.0 * RNG.normal(size=150)])
    model = evidence(alpha_per_target=True).fit(X, both)
    for j in range(2):
        alone = evidence().fit(X, both[:, j])
        assert_allclose(model.alpha_[j], alone.alpha_, rtol=1e-4)
    values, slopes = model.log_marginal_likelihood(eval_gradient=True)
    assert values.shape == (2,)
    assert_allclose(slopes, 0.0, atol=1e-3)


def test_functions_drawn_have_the_posteriors_moments():
    model = evidence().fit(X, Y)
    values = model.sample_y(NEW, 20_000, random_state=0)
    assert values.shape == (20, 20_000)
    mean, cov = model.predict(NEW, return_cov=True)
    latent = cov - model.noise_variance_ * np.eye(20)
    deviation = np.sqrt(np.diag(latent))
    # 20 means within 5 standard errors: correct code fails with probability 1e-5.
    assert np.abs(values.mean(axis=1) - mean).max() < 5 * deviation.max() / 141
    # A covariance of n draws has a relative error of sqrt(2 / n) = 0.01.
    scale = np.outer(deviation, deviation)
    assert_allclose(np.cov(values) / scale, latent / scale, atol=0.06)
    again = model.sample_y(NEW, 3, random_state=1)
    assert_array_equal(again, model.sample_y(NEW, 3, random_state=1))


def test_functions_of_several_targets():
    both = np.column_stack([Y, 10 * Y])
    model = evidence().fit(X, both)
    values = model.sample_y(NEW, 500, random_state=0)
    assert values.shape == (20, 2, 500)
    spread = values.std(axis=2).mean(axis=0)
    assert spread[1] / spread[0] == pytest.approx(10.0, rel=0.1)
    assert model.predict(NEW, return_cov=True)[1].shape == (20, 20, 2)


def test_classifiers_and_their_probabilities_by_evidence():
    labels = Y > 0
    model = KernelRidgeClassifier(features(), cv="evidence", probability=True)
    model.fit(X, labels)
    by_gcv = KernelRidgeClassifier(
        features(), alphas=model.alpha_, cv="gcv", probability=True
    ).fit(X, labels)
    assert_allclose(model.predict_proba(NEW), by_gcv.predict_proba(NEW), rtol=1e-6)


def test_what_evidence_cannot_do_is_said():
    with pytest.raises(ValueError, match=r"cv='evidence' maximises .* got 'r2'"):
        evidence(scoring="r2").fit(X, Y)
    with pytest.raises(ValueError, match="positive for cv='evidence'"):
        evidence(alphas=[0.0, 1.0]).fit(X, Y)
    with pytest.raises(ValueError, match="'evidence' need the normal equations"):
        evidence(solver="cg").fit(X, Y)
    with pytest.raises(ValueError, match="need two rows"):
        evidence().fit(X[:1], Y[:1])
    model = evidence().fit(X, Y)
    for name in ("alpha", "noise_variance"):
        with pytest.raises(ValueError, match=f"{name} must be positive, got -1"):
            model.log_marginal_likelihood(**{name: -1.0})
    with pytest.raises(ValueError, match="at most one of return_std"):
        model.predict(NEW, return_std=True, return_cov=True)
    light = evidence(keep_equations=False).fit(X, Y)
    with pytest.raises(ValueError, match="sample_y needs the normal equations"):
        light.sample_y(NEW)
    assert not hasattr(light, "noise_variance_")


# -- noise that rows left out show -----------------------------------------------------


def held_out(model, Y, splits):
    """Noise by hand: fold after fold, row after row; and from the folds' sums."""
    errors, spreads = [], []
    for train, test in splits:
        own = clone(model.features).fit(X[train], Y[train])
        Z = own.transform(X)
        mean = Z[train].mean(axis=0)
        A = (Z[train] - mean).T @ (Z[train] - mean)
        inverse = np.linalg.inv(A + model.alpha_ * np.eye(len(A)))
        beta = inverse @ (Z[train] - mean).T @ Y[train]
        rest = Z[test] - mean
        errors.append((Y[test] - Y[train].mean() - rest @ beta) ** 2)
        spreads.append(1 + 1 / len(train) + np.sum(rest @ inverse * rest, axis=1))
    errors, spreads = np.concatenate(errors), np.concatenate(spreads)
    return np.mean(errors / spreads), errors.sum() / spreads.sum()


@pytest.mark.parametrize("cv", [5, KFold(3, shuffle=True, random_state=0)], ids=str)
def test_noise_of_features_that_look_at_y_is_that_of_rows_left_out(cv):
    model = KernelRidgeRegressor(features(select="surrogate"), cv=cv).fit(X, Y)
    splits = KFold(5).split(X) if cv == 5 else cv.split(X)
    assert_allclose(model.noise_variance_, held_out(model, Y, splits)[0], rtol=1e-7)
    plain = KernelRidgeRegressor(FrozenEstimator(model.features_), alphas=model.alpha_)
    plain.fit(X, Y)
    _, std = plain.predict(NEW, return_std=True)
    ratio = np.sqrt(model.noise_variance_ / plain.noise_variance_)
    assert_allclose(model.predict(NEW, return_std=True)[1], ratio * std, rtol=1e-9)


@pytest.mark.parametrize(
    "learned", [{"select": "residual"}, {"adapt": GradientAdaptation(n_steps=20)}]
)
def test_deviations_of_learned_features_cover(learned):
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(2300, 3))
    y = np.sin(2 * rows[:, 0]) + 0.3 * rng.normal(size=2300)
    model = KernelRidgeRegressor(features(100, **learned), alphas=ALPHAS, cv=3)
    model.fit(rows[:300], y[:300])
    mean, std = model.predict(rows[300:], return_std=True)
    inside = np.abs(y[300:] - mean) < 1.645 * std
    # 300 squares give the noise a relative deviation of 0.08: 0.013 of coverage.
    assert abs(inside.mean() - 0.9) < 0.04


@pytest.mark.parametrize("options", [{"alphas": 0.7}, {"cv": "gcv"}, {"cv": "loo"}])
def test_without_rows_left_out_deviations_are_refused(options):
    model = KernelRidgeRegressor(features(select="surrogate"), **options).fit(X, Y)
    with pytest.raises(ValueError, match="return_std=True needs rows that the feat"):
        model.predict(NEW, return_std=True)
    assert not hasattr(model, "noise_variance_")
    frozen = FrozenEstimator(model.features_)
    other = KernelRidgeRegressor(frozen, **options).fit(X, Y)
    assert other.predict(NEW, return_std=True)[1].shape == (20,)


def test_noise_survives_files_parameters_and_pieces(tmp_path):
    pytest.importorskip("skops")
    model = KernelRidgeRegressor(features(select="surrogate"), cv=4).fit(X, Y)
    noise = model.noise_variance_
    save(model, tmp_path / "model.skops")
    again = load(tmp_path / "model.skops")
    assert_array_equal(again.noise_variance_, noise)
    model.set_params(features=None, cv="gcv", fit_intercept=False)
    assert_array_equal(model.noise_variance_, noise)
    again.partial_fit(X, Y)
    assert_array_equal(again.noise_variance_, noise)
    again._held_out_noise = np.array([-1.0])
    with pytest.raises(ModelFileError, match=r"_held_out_noise .* must be >= 0"):
        save(again, tmp_path / "bad.skops")
    plain = model.set_params(features=features()).fit(X, Y)
    assert not hasattr(plain, "_held_out_noise")


def test_noise_from_sums_alone():
    model = KernelRidgeRegressor(features(), alphas=0.7).fit(X, Y)
    splits = list(KFold(4).split(X))
    feature_map = model.features_.feature_map()
    _, equations = splits_equations(feature_map, X, Y[:, None], splits)
    found = held_out_noise(equations(), np.array([0.7]), True)
    assert_allclose(found, held_out(model, Y, splits)[1], rtol=1e-7)


def test_noise_of_a_stream_is_that_of_its_folds():
    source = ArrayRows(X, Y)
    model = KernelRidgeRegressor(features(select="surrogate")).fit_stream(
        source, n_sample=50
    )
    # 16 columns leave a bias of about as much as the noise, 0.09.
    assert 0.09 < model.noise_variance_[0] < 0.3
    single = KernelRidgeRegressor(features(select="surrogate"), alphas=0.7)
    single.fit_stream(source)
    with pytest.raises(ValueError, match="return_std=True needs rows"):
        single.predict(NEW, return_std=True)
