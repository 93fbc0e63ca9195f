import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from sklearn.exceptions import NotFittedError
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import ShuffleSplit

from surff import (
    FourierFeatures,
    KernelRidgeClassifier,
    KernelRidgeRegressor,
    NystroemFeatures,
)
from surff.inspection import (
    AlphaPathDisplay,
    FrequencyDisplay,
    KernelApproximationDisplay,
    relative_error,
)

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


def problem(n=40, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, np.sin(X[:, 0]) + 0.1 * rng.normal(size=n)


def path_model(**options):
    X, y = problem()
    features = FourierFeatures(12, random_state=0)
    return KernelRidgeRegressor(features, **options).fit(X, y)


def frequency_display(d=3, **options):
    X, y = problem(d=d)
    features = FourierFeatures(64, random_state=0, **options).fit(X, y)
    return features, FrequencyDisplay.from_estimator(features)


EVERY = {
    "approximation": lambda **kw: KernelApproximationDisplay.from_estimator(
        FourierFeatures(12, random_state=0).fit(problem()[0]), problem()[0], **kw
    ),
    "alpha path": lambda **kw: AlphaPathDisplay.from_estimator(
        path_model(alphas=[0.1, 1.0]), **kw
    ),
    "frequencies": lambda **kw: FrequencyDisplay.from_estimator(
        FourierFeatures(12, random_state=0).fit(problem()[0]), panels=["norms"], **kw
    ),
}


# -- what displays share ---------------------------------------------------------------


@pytest.mark.parametrize("make", EVERY.values(), ids=list(EVERY))
def test_draws_on_given_axes_and_again_on_new_ones(make):
    figure, ax = plt.subplots()
    display = make(ax=ax)
    assert (display.ax_, display.figure_) == (ax, figure)
    assert plt.get_fignums() == [figure.number]
    figure.canvas.draw()
    assert display.plot() is display
    assert display.ax_ is not ax
    assert display.figure_ is display.ax_.figure
    display.figure_.canvas.draw()


@pytest.mark.parametrize("make", EVERY.values(), ids=list(EVERY))
def test_every_picture_names_its_axes_and_has_a_legend(make):
    ax = make().ax_
    assert ax.get_xlabel()
    assert ax.get_ylabel()
    assert ax.get_legend() is not None


def test_matplotlib_is_imported_by_drawing_alone_and_missed_by_name():
    code = """
import sys
import surff
assert "matplotlib" not in sys.modules
sys.modules["matplotlib"] = None
features = surff.FourierFeatures(4).fit([[0.0], [1.0]])
for draw in (
    lambda: surff.KernelApproximationDisplay.from_estimator(features, [[0.0], [1.0]]),
    lambda: surff.AlphaPathDisplay.from_estimator(features),
    lambda: surff.FrequencyDisplay.from_estimator(features),
):
    try:
        draw()
    except ImportError as error:
        assert "pip install 'surff[cli]'" in str(error)
    else:
        raise AssertionError("drew without matplotlib")
"""
    run = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert (run.returncode, run.stderr) == (0, "")


# -- approximation ---------------------------------------------------------------------


def test_approximation_holds_all_pairs_of_rows():
    X, _ = problem()
    features = FourierFeatures(64, gamma=0.3, random_state=0).fit(X)
    display = KernelApproximationDisplay.from_estimator(
        features, X, quantiles=[0.5, 0.9, 1.0]
    )
    K, Z = rbf_kernel(X, gamma=0.3), features.transform(X)
    pairs = np.triu_indices(40, k=1)
    assert_allclose(display.exact, K[pairs], rtol=1e-12)
    assert_allclose(display.approximate, (Z @ Z.T)[pairs], atol=1e-14)
    errors = abs(K - Z @ Z.T)[pairs]
    assert_allclose(display.error_quantiles, np.quantile(errors, [0.5, 0.9, 1.0]))
    assert_allclose(display.relative_error, relative_error(K, Z), rtol=1e-9)


def test_approximation_draws_the_pairs_and_lines_at_the_quantiles():
    X, _ = problem()
    features = NystroemFeatures(10, random_state=0).fit(X)
    display = KernelApproximationDisplay.from_estimator(
        features, X, n_samples=15, scatter_kw={"color": "red", "s": 3.0}
    )
    points = display.scatter_.get_offsets()
    assert_array_equal(points, np.column_stack([display.exact, display.approximate]))
    assert len(points) == 15 * 14 // 2
    assert_array_equal(display.scatter_.get_facecolor()[0, :3], [1.0, 0.0, 0.0])
    offsets = [line.get_xy1()[1] for line in display.lines_]
    a, b = display.error_quantiles
    assert_array_equal(offsets, [0.0, a, -a, b, -b])
    labels = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert labels == [f"50 % of errors ≤ {a:.2g}", f"95 % of errors ≤ {b:.2g}"]


def test_approximation_without_quantiles_has_the_diagonal_alone():
    X, _ = problem()
    features = FourierFeatures(12, random_state=0).fit(X)
    display = KernelApproximationDisplay.from_estimator(features, X, quantiles=[])
    assert len(display.lines_) == 1


# -- alpha path ------------------------------------------------------------------------


def test_alpha_path_has_mean_and_deviation_over_folds():
    model = path_model(alphas=[0.01, 0.1, 1.0, 10.0], cv=4)
    display = AlphaPathDisplay.from_estimator(model, line_kw={"color": "green"})
    scores = model.alpha_path_.scores
    assert_array_equal(display.alphas, [0.01, 0.1, 1.0, 10.0])
    assert_allclose(display.mean_scores, np.mean(scores, axis=1))
    assert_allclose(display.std_scores, np.std(scores, axis=1))
    assert display.best_alpha == model.alpha_
    (line,), (band,), (best,) = display.lines_, display.bands_, display.best_
    assert line.get_color() == "green"
    assert_array_equal(line.get_ydata(), display.mean_scores)
    assert (best.get_xdata()[0], best.get_ydata()[0]) == (
        model.alpha_,
        model.best_score_,
    )
    heights = band.get_paths()[0].vertices[:, 1]
    low, high = (display.mean_scores + k * display.std_scores for k in (-1, 1))
    assert_allclose([heights.min(), heights.max()], [low.min(), high.max()])
    assert display.ax_.get_xscale() == "log"


def test_alpha_path_shows_the_answer_and_not_the_collapse():
    alphas = np.logspace(-6, 6, 13)
    mean = 0.8 - 0.01 * np.log10(alphas) ** 2
    mean[-3:] = -10.0, -1e3, -1e6
    display = AlphaPathDisplay(alphas, mean, np.full(13, 0.01), 1.0, "R2").plot()
    low, high = display.ax_.get_ylim()
    assert 0.5 < low < np.median(mean)  # not -1e6
    assert 0.81 < high < 0.85
    # A path that is all good is shown whole.
    display = AlphaPathDisplay(alphas, mean.clip(0.7), np.zeros(13), 1.0, "R2").plot()
    low, high = display.ax_.get_ylim()
    assert 0.69 < low < 0.7
    assert 0.8 < high < 0.81


def test_alpha_path_of_targets_with_alphas_of_their_own():
    X, y = problem()
    Y = np.column_stack([y, np.random.default_rng(1).normal(size=40)])
    model = KernelRidgeRegressor(
        FourierFeatures(12, random_state=0), alphas=[0.01, 100.0], alpha_per_target=True
    ).fit(X, Y)
    display = AlphaPathDisplay.from_estimator(model)
    assert len(display.lines_) == len(display.bands_) == len(display.best_) == 2
    chosen = [best.get_xdata()[0] for best in display.best_]
    assert_array_equal(chosen, model.alpha_)
    assert len(set(chosen)) == 2


def test_alpha_path_with_zero_keeps_it_on_the_axis():
    display = AlphaPathDisplay.from_estimator(path_model(alphas=[0.0, 0.1, 1.0]))
    assert display.ax_.get_xscale() == "symlog"
    assert display.ax_.get_xlim()[0] <= 0


@pytest.mark.parametrize(
    ("options", "name", "bands"),
    [
        ({}, "held-out R2", 1),
        (
            {"scoring": "neg_mean_absolute_error"},
            "held-out neg mean absolute error",
            1,
        ),
        ({"cv": "gcv"}, "negative GCV error", 0),
        ({"cv": "evidence"}, "log marginal likelihood", 0),
        ({"cv": "loo"}, "leave-one-out R2", 0),
        ({"cv": ShuffleSplit(1, random_state=0)}, "held-out R2", 0),
    ],
)
def test_alpha_path_says_what_the_score_is(options, name, bands):
    display = AlphaPathDisplay.from_estimator(path_model(**options))
    assert display.ax_.get_ylabel() == display.score_name == name
    assert len(display.bands_) == bands


def test_alpha_path_of_a_classifier_and_of_pieces():
    X, y = problem()
    features = FourierFeatures(12, random_state=0)
    model = KernelRidgeClassifier(features).fit(X, y > 0)
    assert AlphaPathDisplay.from_estimator(model).score_name == "held-out accuracy"
    model = KernelRidgeRegressor(features).partial_fit(X, y)
    assert AlphaPathDisplay.from_estimator(model).score_name == "negative GCV error"


# -- frequencies -----------------------------------------------------------------------


def test_frequencies_follow_their_law():
    features, display = frequency_display(gamma=0.3)
    assert_array_equal(display.frequencies, features.frequencies_)
    norms = np.sqrt(np.square(features.frequencies_).sum(axis=1))
    assert_allclose(display.norms, norms)
    # |w| / sqrt(2 gamma) ~ chi_3; both samples fail with probability 1e-6 each.
    law = stats.chi(3, scale=np.sqrt(0.6))
    assert stats.kstest(display.law_norms, law.cdf).pvalue > 1e-6
    assert stats.kstest(display.norms, law.cdf).pvalue > 1e-6
    assert np.all(np.diff(display.law_norms) >= 0)


def test_the_law_of_one_bandwidth_a_feature_is_stretched_feature_by_feature():
    _, display = frequency_display(gamma=np.array([1e-6, 1e-6, 0.5]))
    # All but one coordinate are nearly 0: |w| ~ |N(0, 1)|.
    law = stats.halfnorm
    assert stats.kstest(display.law_norms, law.cdf).pvalue > 1e-6


def test_frequencies_draw_three_panels():
    features, display = frequency_display(select="surrogate")
    law, own, weighted = display.artists_["norms"]
    assert_array_equal(law.get_xdata(), display.law_norms)
    assert_array_equal(own.get_xdata(), np.sort(display.norms))
    assert_allclose(own.get_ydata(), np.arange(1, 33) / 32)
    order = np.argsort(display.norms)
    weights = features.importance_weights_[order]
    assert_allclose(weighted.get_ydata(), weights.cumsum() / weights.sum())
    points, _ = display.artists_["weights"]
    assert_array_equal(points.get_offsets()[:, 1], features.importance_weights_)
    (points,) = display.artists_["coordinates"]
    assert_array_equal(points.get_offsets(), features.frequencies_[:, :2])
    assert len({ax.figure for ax in display.ax_}) == 1


def test_frequencies_of_equal_weight_have_no_weighted_curve():
    _, display = frequency_display()
    assert len(display.artists_["norms"]) == 2
    assert display.ax_[1].get_title() == "Equal weights"


@pytest.mark.parametrize("kernel", ["laplacian", "exponential"])
def test_heavy_tails_are_drawn_on_logarithmic_axes(kernel):
    _, display = frequency_display(kernel=kernel)
    assert [ax.get_xscale() for ax in display.ax_] == ["log", "log", "linear"]
    display.figure_.canvas.draw()


def test_frequencies_of_one_feature_and_of_a_structured_draw():
    features, display = frequency_display(d=1)
    (points,) = display.artists_["coordinates"]
    assert_array_equal(points.get_offsets()[:, 0], features.frequencies_[:, 0])
    _, display = frequency_display(draw="structured_orthogonal")
    assert display.frequencies.shape == (32, 3)


def test_panels_can_be_chosen_and_placed():
    X, y = problem()
    features = FourierFeatures(12, random_state=0)
    model = KernelRidgeRegressor(features, alphas=1.0).fit(X, y)
    figure, axes = plt.subplots(2, 2)
    display = FrequencyDisplay.from_estimator(
        model, panels=["coordinates", "norms"], ax=axes[0]
    )
    assert list(display.artists_) == ["coordinates", "norms"]
    assert_array_equal(display.ax_, axes[0])
    assert display.figure_ is figure


# -- errors ----------------------------------------------------------------------------


def test_errors_name_the_argument():
    X, y = problem()
    features = FourierFeatures(12, random_state=0).fit(X)
    approximation = KernelApproximationDisplay.from_estimator
    frequencies = FrequencyDisplay.from_estimator
    one_alpha = KernelRidgeRegressor(features, alphas=1.0).fit(X, y)
    for message, error, call in [
        (
            r"quantiles must be a sequence of numbers in \[0, 1\]",
            ValueError,
            lambda: approximation(features, X, quantiles=[95]),
        ),
        (
            "n_samples must give at least 2 rows, got 1",
            ValueError,
            lambda: approximation(features, X, n_samples=1),
        ),
        (
            "model must have chosen among several alphas, got alphas=1.0",
            ValueError,
            lambda: AlphaPathDisplay.from_estimator(one_alpha),
        ),
        (
            "not fitted",
            NotFittedError,
            lambda: AlphaPathDisplay.from_estimator(KernelRidgeRegressor()),
        ),
        (
            "model must have Fourier features",
            TypeError,
            lambda: frequencies(NystroemFeatures(5).fit(X)),
        ),
        (
            "panels must be a sequence of 'norms', 'weights', 'coordinates', got 'no",
            ValueError,
            lambda: frequencies(features, panels="norms"),
        ),
        (
            r"panels must be a sequence of .*, got \['angles'\]",
            ValueError,
            lambda: frequencies(features, panels=["angles"]),
        ),
        (
            "ax must hold 3 axes",
            ValueError,
            lambda: frequencies(features, ax=plt.subplots()[1]),
        ),
    ]:
        with pytest.raises(error, match=message):
            call()
