import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.special import expit, log_softmax, softmax
from sklearn.exceptions import ConvergenceWarning
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import KFold, StratifiedKFold
from threadpoolctl import threadpool_limits

from surff import (
    FourierFeatures,
    KernelLogisticClassifier,
    NystroemFeatures,
    ResidualLeverage,
)
from surff.backend import blocks
from surff.estimators import logistic
from surff.linear import accumulate, logistic_path, loss_and_gradient, losses

RNG = np.random.default_rng(0)
X = RNG.normal(size=(150, 3))
SCORE = np.sin(2 * X[:, 0]) + X[:, 1] ** 2 + 0.5 * RNG.normal(size=150)
TWO = np.where(np.median(SCORE) < SCORE, "yes", "no")
FOUR = np.digitize(SCORE, np.quantile(SCORE, [0.2, 0.5, 0.8]))
WEIGHT = RNG.integers(0, 4, size=150).astype(float)
for array in (X, TWO, FOUR, WEIGHT):
    array.flags.writeable = False

targets = pytest.mark.parametrize("y", [TWO, FOUR], ids=["two", "four"])


def fourier(n_components=20, **parameters):
    return FourierFeatures(
        n_components, **{"gamma": 0.3, "random_state": 0, **parameters}
    )


def classifier(features=None, **parameters):
    features = fourier() if features is None else features
    return KernelLogisticClassifier(features, **{"alphas": 0.07, **parameters})


def problem(n_classes, n=40, m=5, n_alphas=3, seed=0):
    rng = np.random.default_rng(seed)
    k = 1 if n_classes == 2 else n_classes
    return (
        rng.normal(size=(n, 3)),
        rng.integers(0, n_classes, size=n),
        rng.normal(size=(2 * m, n_alphas, k)),
        rng.normal(size=(n_alphas, k)),
        rng.integers(0, 4, size=n).astype(float),
        fourier(2 * m).fit(X).feature_map(),
    )


@targets
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["plain", "weighted"])
@pytest.mark.parametrize("alpha", [0.07, 30.0])
def test_agrees_with_scikit_learn_on_explicit_features(y, fit_intercept, weight, alpha):
    model = classifier(alphas=alpha, fit_intercept=fit_intercept, tol=1e-10)
    model.fit(X, y, weight)
    Z = model.features_.transform(X)
    other = LogisticRegression(
        C=1 / alpha, fit_intercept=fit_intercept, tol=1e-12, max_iter=10_000,
        solver="newton-cg",
    ).fit(Z, y, weight)  # fmt: skip
    assert_array_equal(model.classes_, other.classes_)
    assert_allclose(model.primal_coef_, other.coef_, rtol=0, atol=1e-6)
    assert_allclose(model.predict_proba(X), other.predict_proba(Z), rtol=0, atol=1e-6)
    # Intercepts of several classes may differ by one constant.
    shift = (model.intercept_ - other.intercept_).mean() if len(y) == 4 else 0.0
    assert_allclose(model.intercept_ - shift, other.intercept_, rtol=0, atol=1e-6)
    assert_array_equal(model.predict(X), other.predict(Z))


@targets
def test_predictions_hang_together(y):
    model = classifier().fit(X, y)
    decisions = model.features_.transform(X) @ model.primal_coef_.T + model.intercept_
    found = model.decision_function(X)
    assert_allclose(found.reshape(150, -1), decisions, rtol=1e-10, atol=1e-12)
    two_sided = decisions if y is FOUR else np.hstack([0 * decisions, decisions])
    P = model.predict_proba(X)
    assert_allclose(P, softmax(two_sided, axis=1), rtol=1e-10)
    assert_allclose(P.sum(axis=1), 1, rtol=1e-14)
    assert_allclose(model.predict_log_proba(X), log_softmax(two_sided, axis=1))
    assert_array_equal(model.predict(X), model.classes_[P.argmax(axis=1)])


def test_log_probabilities_keep_what_probabilities_lose():
    model = classifier().fit(X, TWO)
    model.intercept_ = np.array([-60.0])
    assert_allclose(model.predict_log_proba(X)[:, 1], model.decision_function(X))
    assert (model.predict_log_proba(X)[:, 0] < 0).all()


@pytest.mark.parametrize("n_classes", [2, 3])
def test_gradients_are_those_of_finite_differences(n_classes):
    X, codes, coefs, intercepts, weight, feature_map = problem(n_classes)

    def loss(coefs, intercepts):
        return loss_and_gradient(feature_map, X, codes, coefs, intercepts, weight)[0]

    _, by_coef, by_intercept = loss_and_gradient(
        feature_map, X, codes, coefs, intercepts, weight
    )
    step = 1e-6
    for j in range(10):
        for c in range(coefs.shape[2]):
            move = np.zeros_like(coefs)
            move[j, :, c] = step
            slope = loss(coefs + move, intercepts) - loss(coefs - move, intercepts)
            assert_allclose(slope / (2 * step), by_coef[j, :, c], rtol=0, atol=1e-6)
    for c in range(coefs.shape[2]):
        move = np.zeros_like(intercepts)
        move[:, c] = step
        slope = loss(coefs, intercepts + move) - loss(coefs, intercepts - move)
        assert_allclose(slope / (2 * step), by_intercept[:, c], rtol=0, atol=1e-6)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("block_bytes", [1, 2**20])
def test_the_loss_is_the_log_loss_of_the_rows(n_classes, block_bytes, monkeypatch):
    X, codes, coefs, intercepts, weight, feature_map = problem(n_classes, n=300)
    monkeypatch.setattr(blocks, "BLOCK_BYTES", block_bytes)
    rows = np.arange(0, 300, 2)
    found, *_ = loss_and_gradient(
        feature_map, X, codes, coefs, intercepts, weight, rows
    )
    F = np.einsum("nm,mak->ank", feature_map(X[rows]), coefs) + intercepts[:, None]
    for loss, f in zip(found, F, strict=True):
        P = np.hstack([expit(-f), expit(f)]) if n_classes == 2 else softmax(f, axis=1)
        assert_allclose(losses(f[:, None], codes[rows])[1][:, 0], P[:, -f.shape[1] :])
        expected = log_loss(
            codes[rows], P, sample_weight=weight[rows], labels=range(n_classes),
            normalize=False,
        )  # fmt: skip
        assert_allclose(loss, expected, rtol=1e-12)


def test_losses_do_not_overflow():
    f = np.array([[[1000.0]], [[-1000.0]]])
    assert_array_equal(losses(f, [1, 1])[0], [[0.0], [1000.0]])
    assert_array_equal(losses(f, [0, 0])[0], [[1000.0], [0.0]])
    three = np.array([[[1000.0, 0.0, -1000.0]]])
    assert_array_equal(losses(three, [2])[0], [[2000.0]])


@targets
def test_all_alphas_side_by_side_equal_each_alone(y):
    codes = np.unique(y, return_inverse=True)[1]
    feature_map = fourier().fit(X).feature_map()
    equations = accumulate(feature_map, X, np.zeros((150, 0)))
    alphas = [1e-2, 0.3, 40.0]

    def path(alphas):
        return logistic_path(
            feature_map, X, codes, equations, alphas, n_classes=codes.max() + 1,
            tol=1e-10,
        )  # fmt: skip

    coefs, intercepts, converged, _ = path(alphas)
    assert converged.all()
    for i, alpha in enumerate(alphas):
        alone = path([alpha])
        assert_allclose(coefs[:, [i]], alone[0], rtol=0, atol=1e-7)
        assert_allclose(intercepts[[i]], alone[1], rtol=0, atol=1e-7)


def test_large_alphas_leave_the_share_of_the_classes():
    model = classifier(alphas=1e9, tol=1e-9).fit(X, FOUR)
    shares = np.bincount(FOUR) / 150
    assert_allclose(model.predict_proba(X[:2]), [shares, shares], rtol=1e-6)


@targets
def test_weights_repeat_rows(y):
    rows = np.repeat(np.arange(150), WEIGHT.astype(int))
    weighted = classifier(tol=1e-10).fit(X, y, WEIGHT)
    repeated = classifier(tol=1e-10).fit(X[rows], y[rows])
    assert_allclose(weighted.primal_coef_, repeated.primal_coef_, rtol=0, atol=1e-7)


@targets
def test_alpha_has_the_least_held_out_log_loss(y):
    alphas = [0.02, 0.3, 5.0]
    folds = StratifiedKFold(4, shuffle=True, random_state=0)
    model = classifier(alphas=alphas, cv=folds, tol=1e-9).fit(X, y, WEIGHT)
    scores = np.empty((3, 4))
    for i, (train, test) in enumerate(folds.split(X, y)):
        for a, alpha in enumerate(alphas):
            one = classifier(alphas=alpha, tol=1e-9)
            one.fit(X[train], y[train], WEIGHT[train])
            scores[a, i] = -log_loss(
                y[test], one.predict_proba(X[test]), sample_weight=WEIGHT[test]
            )
    # Fits that rank alphas are made to 1e-3.
    assert_allclose(model.alpha_path_.scores, scores, rtol=0, atol=0.02)
    best = scores.mean(axis=1).argmax()
    assert model.alpha_ == alphas[best]
    assert model.best_score_ == pytest.approx(scores[best].mean(), abs=0.02)


def test_features_that_look_at_y_do_not_see_what_a_split_holds_out():
    features = fourier(select=ResidualLeverage(3, 20.0))
    folds = list(KFold(3).split(X))
    model = classifier(features, alphas=[0.1, 1.0], cv=folds).fit(X, TWO)
    train, test = folds[0]
    one = classifier(features, alphas=0.1, tol=1e-3).fit(X[train], TWO[train])
    expected = -log_loss(TWO[test], one.predict_proba(X[test]))
    assert model.alpha_path_.scores[0, 0] == pytest.approx(expected, abs=1e-9)


def test_the_automatic_grid_grows_to_the_best_alpha(monkeypatch):
    whole = classifier(alphas="auto").fit(X, TWO)
    assert 2 < np.searchsorted(whole.alpha_path_.alphas, whole.alpha_) < 11
    for start in (-8.0, 3.0):
        grid = logistic.AUTO_GRID._replace(decades=start + np.arange(0, 1.5, 0.5))
        monkeypatch.setattr(logistic.HeldOutLogLoss, "auto_grid", grid)
        grown = classifier(alphas="auto").fit(X, TWO)
        assert grown.alpha_ == pytest.approx(whole.alpha_, rel=1e-12)
        assert_allclose(np.diff(np.log10(grown.alpha_path_.alphas)), 0.5)


def test_the_automatic_grid_stops_growing():
    # Without an intercept, noise is best predicted by nothing at all.
    noise = np.random.default_rng(0).integers(0, 2, size=150)
    noise[:75] = 1 - noise[75:]
    path = classifier(alphas="auto").fit(np.vstack([X[:75], X[:75]]), noise).alpha_path_
    assert len(path.alphas) == 19


def test_splits_may_leave_rows_out():
    split = [(np.arange(0, 60), np.arange(60, 100))]
    model = classifier(alphas=[0.1, 1.0], cv=split).fit(X, TWO)
    one = classifier(alphas=0.1, tol=1e-3).fit(X[:60], TWO[:60])
    expected = -log_loss(TWO[60:100], one.predict_proba(X[60:100]))
    assert model.alpha_path_.scores[0, 0] == pytest.approx(expected, abs=1e-3)


def test_sparse_and_single_precision():
    holes = np.where(abs(X) > 0.5, X, 0.0)
    dense = classifier(tol=1e-10).fit(holes, FOUR)
    thin = classifier(tol=1e-10).fit(sparse.csr_matrix(holes), FOUR)
    assert_allclose(thin.primal_coef_, dense.primal_coef_, rtol=0, atol=1e-8)
    assert_allclose(
        thin.predict_proba(sparse.csr_matrix(holes)), dense.predict_proba(holes),
        rtol=0, atol=1e-8,
    )  # fmt: skip
    single = classifier().fit(holes.astype(np.float32), FOUR)
    assert single.primal_coef_.dtype == single.intercept_.dtype == np.float32
    found = single.predict_proba(holes.astype(np.float32))
    assert found.dtype == np.float32
    assert_allclose(found, dense.predict_proba(holes), rtol=0, atol=1e-3)


def test_single_precision_stops_where_rounding_does():
    model = classifier(tol=1e-12, max_iter=300).fit(X.astype(np.float32), TWO)
    assert model.n_iter_ < 300


@pytest.mark.parametrize(
    "features",
    [
        fourier(15),
        fourier(select="surrogate"),
        NystroemFeatures(12, random_state=0),
        FrozenEstimator(fourier().fit(X)),
    ],
)
def test_every_feature_map_serves(features):
    model = classifier(features).fit(X, TWO)
    assert model.score(X, TWO) > 0.75


def test_many_classes_and_rare_ones():
    y = np.append(np.arange(140) % 70, np.arange(10))
    model = classifier(alphas=[0.1, 1.0], cv=KFold(2)).fit(X, y)
    assert model.primal_coef_.shape == (70, 20)
    assert_allclose(model.primal_coef_.sum(axis=0), 0, atol=1e-10)
    assert np.isfinite(model.best_score_)


def test_separable_classes_have_finite_coefficients():
    model = classifier(fourier(400, gamma=10.0), alphas=1e-8, tol=1e-3)
    model.fit(X, TWO)
    assert np.isfinite(model.primal_coef_).all()
    assert model.score(X, TWO) == 1


def test_a_pass_holds_one_block():
    n, m = 30_000, 256
    rng = np.random.default_rng(0)
    X, codes = rng.normal(size=(n, 3)), rng.integers(0, 20, size=n)
    feature_map = fourier(m).fit(X).feature_map()
    coefs, intercepts = rng.normal(size=(m, 20, 20)), rng.normal(size=(20, 20))
    loss_and_gradient(feature_map, X[:200], codes, coefs, intercepts)  # compiled
    with threadpool_limits(2, user_api="blas"):  # each thread holds a block
        tracemalloc.start()
        loss_and_gradient(feature_map, X, codes, coefs, intercepts)
        peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2 * 6 * blocks.BLOCK_BYTES < n * m * 8


def test_too_few_passes_are_a_warning():
    with pytest.warns(ConvergenceWarning, match="not done after max_iter=3 passes"):
        model = classifier(alphas=1e-4, max_iter=3).fit(X, TWO)
    assert model.n_iter_ == 3


def test_a_second_fit_forgets_the_first():
    model = classifier(alphas=[0.1, 1.0]).fit(X, FOUR)
    model.set_params(alphas=0.1).fit(X, TWO)
    assert not hasattr(model, "alpha_path_")
    assert model.best_score_ is None
    assert model.primal_coef_.shape == (1, 20)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"alphas": 0.0}, "'alphas' parameter of KernelLogisticClassifier must be"),
        ({"alphas": [0.0, 1.0]}, r"alphas must be 'auto', a number > 0 or .* got \[0"),
        ({"alphas": []}, "non-empty sequence"),
        ({"alphas": [np.inf]}, "non-empty sequence"),
        ({"tol": 0.0}, "'tol' parameter"),
        ({"max_iter": 0}, "'max_iter' parameter"),
    ],
)
def test_parameters_are_checked(parameters, message):
    with pytest.raises(ValueError, match=message):
        classifier(**parameters).fit(X, TWO)


def test_bad_targets_are_refused():
    with pytest.raises(ValueError, match="at least two classes, got one class: 1"):
        classifier().fit(X, np.ones(150, int))
    with pytest.raises(ValueError, match="Unknown label type"):
        classifier().fit(X, SCORE)
    # scikit-learn's words, where it checks, or ours.
    with pytest.raises(ValueError, match=r"(?i)sample.weights? must (contain|have)"):
        classifier().fit(X, TWO, np.zeros(150))
