"""Adaptations of frequencies, through their own interface and `FourierFeatures`."""

import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import BaseEstimator, clone
from sklearn.linear_model import Ridge

from surff import (
    AgopAdaptation,
    AutoAdaptation,
    FourierFeatures,
    GradientAdaptation,
    KernelRidgeClassifier,
    KernelRidgeRegressor,
)
from surff.adaptation import ADAPTATIONS
from surff.adaptation.gradient import BATCH_ROWS, _apart, _batches
from surff.adaptation.problem import SCORE_ALPHAS, InnerProblem
from surff.kernels import fourier_features, warped

RNG = np.random.default_rng(0)
X = RNG.normal(size=(700, 4))
Y = np.sin(3.0 * X[:, 0]) + 0.1 * RNG.normal(size=700)
LABELS = np.digitize(Y, [-0.4, 0.4])
W = RNG.normal(size=(8, 4))
for array in (X, Y, LABELS, W):
    array.flags.writeable = False

QUICK = {
    "gradient": GradientAdaptation(n_steps=120),
    "warp": GradientAdaptation(n_steps=120, warp=True),
    "agop": AgopAdaptation(n_rounds=2),
    "diagonal": AgopAdaptation(n_rounds=2, diagonal=True),
}
quick = pytest.mark.parametrize("adapt", QUICK.values(), ids=list(QUICK))
EVERY = {**QUICK, "auto": AutoAdaptation()}
every = pytest.mark.parametrize("adapt", EVERY.values(), ids=list(EVERY))


def features(adapt, n_components=16, **parameters):
    return FourierFeatures(n_components, adapt=adapt, random_state=0, **parameters)


def problem(**options):
    options = {"validation_fraction": 0.1, "dtype": "float64", **options}
    rng, weight = np.random.default_rng(0), options.pop("weight", None)
    return InnerProblem(X, Y[:, None], rng, weight, **options)


# -- what it brings --------------------------------------------------------------------


@pytest.mark.parametrize("name", ADAPTATIONS)
def test_adapted_frequencies_predict_better_than_drawn_ones(name):
    plain, adapted = (
        KernelRidgeRegressor(features(adapt, 60), cv="gcv").fit(X[:500], Y[:500])
        for adapt in (None, name)
    )
    assert adapted.score(X[500:], Y[500:]) > 0.9 > plain.score(X[500:], Y[500:])


@every
def test_classes_and_several_targets(adapt):
    model = KernelRidgeClassifier(features(adapt, 60), cv="gcv")
    plain = clone(model).set_params(features__adapt=None)
    scores = [
        m.fit(X[:500], LABELS[:500]).score(X[500:], LABELS[500:])
        for m in (model, plain)
    ]
    assert scores[0] > scores[1] + 0.1
    targets = np.column_stack([Y, 1e6 * np.cos(X[:, 0])])
    model = KernelRidgeRegressor(features(adapt, 60), cv="gcv")
    assert model.fit(X[:500], targets[:500]).score(X[500:], targets[500:]) > 0.85


def test_residuals_of_a_good_start_are_left_alone():
    # Targets of pure noise: nothing but luck lowers the error on rows held out.
    noise = RNG.normal(size=(700, 1))
    start = np.full((1, 4), 1e-3)
    adapt = GradientAdaptation(n_steps=50, dtype="float64")
    seeds = (adapt.adapt(start, X, noise, np.random.default_rng(i)) for i in range(5))
    assert any(frequencies is start for frequencies, _ in seeds)


@every
def test_sparse_rows(adapt):
    S = sparse.random(600, 20, density=0.1, random_state=0, format="csr")
    y = np.asarray(S[:, :2].sum(axis=1)).ravel()
    model = KernelRidgeRegressor(features(adapt, 60), cv="gcv")
    plain = clone(model).set_params(features__adapt=None)
    assert model.fit(S, y).score(S, y) > plain.fit(S, y).score(S, y) + 0.1


# -- the rows held out -----------------------------------------------------------------


def test_score_is_the_best_of_ridge_on_rows_held_out():
    inner = problem()
    score = inner.score(W)
    assert (len(inner.test), len(inner.train)) == (210, 490)  # 0.3 of few rows
    assert_array_equal(np.sort(np.r_[inner.test, inner.train]), np.arange(700))
    (train, targets, _), (test, held_out, _) = (
        inner.batch(rows) for rows in (inner.train, inner.test)
    )
    errors = [
        np.mean(
            (
                Ridge(alpha * 490 / 16)
                .fit(fourier_features(train, W), targets[:, 0])
                .predict(fourier_features(test, W))
                - held_out[:, 0]
            )
            ** 2
        )
        for alpha in SCORE_ALPHAS
    ]
    assert_allclose(score.error, min(errors), rtol=1e-9)
    assert score.alpha == SCORE_ALPHAS[np.argmin(errors)]


def test_units_resist_outliers_and_constant_columns():
    far = np.column_stack([X, np.full(700, 3.0)])
    far[5, 0] = 1e9
    inner = InnerProblem(
        far, Y[:, None], np.random.default_rng(0), None, 0.1, "float64"
    )
    assert_allclose(inner.unit[:4], 1.0, rtol=0.15)
    assert inner.unit[4] == 1.0
    found = inner.found(inner.inward(np.ones((2, 5))), inner.first_warp())
    frequencies, warp = inner.outward(found, float)
    assert_allclose(frequencies, 1.0)
    rows = inner.batch(np.arange(700))[0]
    # Both bend alike, and frequencies times bent columns are the same.
    assert_allclose(
        warped(far, warp) @ frequencies.T,
        warped(rows, found.warp) @ found.frequencies.T,
        rtol=1e-9,
        atol=1e-9,
    )


def test_batches_take_every_row_once_an_epoch():
    inner = problem()
    batches = _batches(inner, 98, np.random.default_rng(0))
    rows = np.vstack([next(batches)[0] for _ in range(5)])
    expected = inner.batch(np.sort(inner.train))[0]
    order, expected_order = np.lexsort(rows.T), np.lexsort(expected.T)
    assert_array_equal(rows[order], expected[expected_order])


def test_repeated_frequencies_are_moved_apart():
    twice = np.vstack([W, W[:3]])
    moved = _apart(twice, 0.1, np.random.default_rng(0))
    assert len(np.unique(moved, axis=0)) == 11
    assert_array_equal(_apart(W, 0.1, np.random.default_rng(0)), W)
    # Each of the three pairs keeps one of its two places.
    assert np.count_nonzero((moved == twice).all(axis=1)) == 8


# -- invariances -----------------------------------------------------------------------


@every
def test_same_seed_same_frequencies(adapt):
    first = features(adapt).fit(X, Y)
    again = clone(first).fit(X, Y)
    assert_array_equal(first.frequencies_, again.frequencies_)
    other = clone(first).set_params(random_state=1).fit(X, Y)
    assert not np.array_equal(first.frequencies_, other.frequencies_)


@every
def test_units_of_columns_do_not_matter(adapt):
    units = np.array([1.0, 64.0, 0.25, 2.0**40])  # powers of two round nothing
    (one, warp), (other, scaled) = (
        clone(adapt).adapt(
            W / factors, X * factors, Y[:, None], np.random.default_rng(0)
        )
        for factors in (np.ones(4), units)
    )
    if isinstance(adapt, AutoAdaptation):  # median norms are those of other columns
        one, other = np.isfinite(one), np.isfinite(other / units)
        assert np.isfinite(warp).all()
        assert np.isfinite(scaled).all()
    elif warp is not None:
        assert_array_equal(warp, scaled * np.stack([1 / units, units]))
    assert_array_equal(one, other * (units if other.dtype != bool else 1))


@quick
def test_rows_of_weight_zero_are_not_there(adapt):
    weight = RNG.integers(0, 3, size=700).astype(float)
    kept = weight > 0
    adapt = clone(adapt).set_params(dtype="float64")
    one, warp = adapt.adapt(W, X, Y[:, None], np.random.default_rng(0), weight)
    other, other_warp = adapt.adapt(
        W, X[kept], Y[kept, None], np.random.default_rng(0), weight[kept]
    )
    # Sums of the targets round differently, and steps carry that on.
    assert_allclose(one, other, rtol=1e-4, atol=1e-6)
    if warp is not None:
        assert_allclose(warp, other_warp, rtol=1e-4, atol=1e-6)


@every
@pytest.mark.parametrize(
    ("dtype", "gamma"),
    [(np.float32, 1e-8), (np.float64, 1e-8), (np.float64, 1.0), (np.float32, 1e4)],
)
def test_every_bandwidth_gives_finite_frequencies(adapt, dtype, gamma):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted = features(adapt, gamma=gamma).fit(X[:200].astype(dtype), Y[:200])
    assert fitted.frequencies_.dtype == dtype
    assert np.isfinite(fitted.frequencies_).all()
    assert fitted.frequencies_.shape == (8, 4)


@every
def test_targets_without_variance(adapt):
    fitted = features(adapt).fit(X[:100], np.ones(100))
    assert np.isfinite(fitted.frequencies_).all()


@every
def test_arguments_are_not_written_to(adapt):
    start = np.array(W)
    start.flags.writeable = False
    adapt.adapt(start, X, Y[:, None], np.random.default_rng(0))
    assert_array_equal(start, W)


# -- in FourierFeatures ----------------------------------------------------------------


@pytest.mark.parametrize("adapt", [QUICK["warp"], QUICK["diagonal"]], ids=str)
@pytest.mark.parametrize(
    "parameters",
    [
        {"draw": "orthogonal"},
        {"draw": "structured_orthogonal"},
        {"kernel": "matern"},
        {"kernel": "laplacian", "gamma": [0.1, 0.2, 0.3, 0.4]},
        {"select": "surrogate"},
    ],
    ids=str,
)
def test_after_any_draw_or_selection(adapt, parameters):
    fitted = features(adapt, 15, **parameters).fit(X, Y)
    assert isinstance(fitted.frequencies_, np.ndarray)
    assert_array_equal(fitted.importance_weights_, np.ones(8))
    assert fitted.transform(X).shape == (700, 15)


@every
def test_target_is_required(adapt):
    assert features(adapt).__sklearn_tags__().target_tags.required
    with pytest.raises(ValueError, match="requires y to be passed, but the target y"):
        features(adapt).fit(X)


def test_weights_of_a_draw_are_refused():
    with pytest.raises(ValueError, match="use adapt=None or another draw"):
        features("agop", draw="modified").fit(X, Y)


class Halved(BaseEstimator):
    """Somebody's own adaptation, without a look at the target."""

    needs_target = False

    def adapt(self, frequencies, X, Y, rng, sample_weight=None):
        return 0.5 * frequencies, None


def test_own_adaptations():
    assert not features(Halved()).__sklearn_tags__().target_tags.required
    drawn = features(None).fit(X).frequencies_
    assert_array_equal(features(Halved()).fit(X).frequencies_, 0.5 * drawn)
    with pytest.raises(ValueError, match="'adapt' parameter"):
        features("newton").fit(X, Y)
    with pytest.raises(ValueError, match="'adapt' parameter"):
        features(KernelRidgeRegressor()).fit(X, Y)


# -- parameters ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("adapt", "message"),
    [
        (GradientAdaptation(n_steps=0), "n_steps must be an integer >= 1, got 0"),
        (GradientAdaptation(n_checks=1.5), "n_checks must be an integer >= 1, got 1.5"),
        (GradientAdaptation(patience=True), "patience must be an integer >= 1, got T"),
        (GradientAdaptation(learning_rate=0), "learning_rate must be a positive"),
        (GradientAdaptation(alpha=-1.0), "alpha must be a positive finite number"),
        (GradientAdaptation(batch_size="all"), "batch_size must be an integer >= 1"),
        (GradientAdaptation(dtype="float16"), "dtype must be 'float32' or 'float64'"),
        (GradientAdaptation(shrinkage=-0.1), "shrinkage must be a finite number >= 0"),
        (AgopAdaptation(n_rounds=0), "n_rounds must be an integer >= 1, got 0"),
        (AgopAdaptation(power=0.0), "power must be a positive finite number, got 0.0"),
        (AgopAdaptation(factors=(1.0, -2.0)), "factors must be a positive finite"),
        (AgopAdaptation(factors=()), "factors must hold at least one number"),
        (AutoAdaptation(validation_fraction=1.0), "must lie between 0 and 1, got 1.0"),
        (AutoAdaptation(passes=0), "passes must be an integer >= 1, got 0"),
    ],
)
def test_errors_name_the_argument(adapt, message):
    with pytest.raises(ValueError, match=message):
        features(adapt).fit(X, Y)


def test_one_row_cannot_be_held_out():
    with pytest.raises(
        ValueError, match="at least 2 of positive weight, got n_samples"
    ):
        features("agop").fit(X, Y, sample_weight=np.arange(700) == 3)
    assert features("auto").fit(X[:2], Y[:2]).frequencies_.shape == (8, 4)


@every
def test_progress_is_shown_on_request(adapt, capsys):
    features(adapt).fit(X, Y)
    assert capsys.readouterr() == ("", "")
    features(clone(adapt).set_params(verbose=True)).fit(X, Y)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) > 1
    assert all(
        line.startswith("adapt: ") and "held-out error" in line for line in lines
    )


def test_patience_ends_a_search(capsys):
    adapt = GradientAdaptation(n_steps=2000, n_checks=2000, patience=3, verbose=True)
    noise = RNG.normal(size=700)
    features(adapt).fit(X, noise)
    assert len(capsys.readouterr().err.splitlines()) < 500


@pytest.mark.parametrize(
    ("n_rows", "n_frequencies", "expected"),
    [
        (8_000, 40, 800),
        (60_000, 32, 984),  # at most 600 and 12 a frequency
        (120_000, 60, 1250),  # 20 passes, of 1,920 rows a batch
        (260_000, 54, 1248),
        (260_000, 150, 2000),
        (260_000, 864, 601),  # 20 passes, of 8,640 rows a batch
        (8_000, 112, 345),  # fewer and longer ones of large maps
        (8_000, 14, 700),  # 50 a frequency
        (8_000, 3, 400),
        (8_000, 3000, 110),
    ],
)
def test_steps_of_auto(n_rows, n_frequencies, expected):
    inner = SimpleNamespace(train=range(n_rows))
    assert AutoAdaptation()._n_steps(inner, n_frequencies) == expected


def test_fewer_passes_are_fewer_steps():
    inner = SimpleNamespace(train=range(260_000))
    assert AutoAdaptation(passes=5)._n_steps(inner, 216) == 601  # 2,160 rows a batch
    assert AutoAdaptation(passes=5)._n_steps(inner, 864) == 150


def test_fixed_batches_and_alpha():
    assert BATCH_ROWS > 64
    adapt = GradientAdaptation(n_steps=200, batch_size=64, alpha=1e-3)
    model = KernelRidgeRegressor(features(adapt), cv="gcv").fit(X[:500], Y[:500])
    assert model.score(X[500:], Y[500:]) > 0.9
