import functools
import math
import time
import tracemalloc
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import BaseEstimator, clone
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import Ridge
from sklearn.metrics.pairwise import laplacian_kernel, rbf_kernel
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

from surff import FourierFeatures, NystroemFeatures, RidgeLeverage, SurrogateLeverage
from surff.draws import DRAWS, Halton, MonteCarlo, SparseGrid, SphericalRadial
from surff.estimators import one_vs_rest
from surff.kernels import KERNELS, Gaussian, SpectralMeasure
from surff.selection import SELECTORS
from surff.streaming import EntrySpread

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))
Y = RNG.normal(size=40)
X.flags.writeable = Y.flags.writeable = False


def features(**parameters):
    return FourierFeatures(
        **{"n_components": 16, "gamma": 0.3, "random_state": 0, **parameters}
    )


def explicit(X, fitted):
    """The map of the class's docstring, from its fitted attributes."""
    P = X @ np.asarray(fitted.frequencies_).T
    a = np.sqrt(fitted.importance_weights_)
    s = len(fitted.frequencies_)
    return np.hstack([a * np.cos(P), a * np.sin(P)]) / math.sqrt(s)


WEIGHTED_DRAWS = ["modified", "reweighted", "sparse_grid", "spherical_radial"]


@pytest.mark.parametrize("draw", sorted(DRAWS))
@pytest.mark.parametrize("select", [None, *sorted(SELECTORS)])
def test_transform_is_the_documented_map(draw, select):
    if select is not None and draw in WEIGHTED_DRAWS:
        with pytest.raises(ValueError, match=f"draw='{draw}' weights its frequencies"):
            features(draw=draw, select=select).fit(X, Y)
        return
    fitted = features(draw=draw, select=select).fit(X, Y)
    Z = fitted.transform(X)
    assert Z.shape == (40, 16)
    assert fitted.frequencies_.shape == (8, 3)
    assert fitted.importance_weights_.shape == (8,)
    assert fitted.n_features_in_ == 3
    assert_allclose(Z, explicit(X, fitted), atol=1e-14)
    weighted = (
        select not in (None, "alignment", "eerf", "residual") or draw in WEIGHTED_DRAWS
    )
    assert weighted != bool(np.all(fitted.importance_weights_ == 1.0))


@pytest.mark.parametrize(
    "draw", [SphericalRadial(signed=True), SparseGrid(signed=True)]
)
def test_negative_weights_are_refused(draw):
    with pytest.raises(ValueError, match=r"signed=True\) gives negative weights"):
        features(draw=draw, n_components=64, random_state=5).fit(X)


def test_one_bandwidth_a_feature():
    gamma = np.array([0.3, 1.1, 0.02])
    fitted = features(gamma=gamma).fit(X)
    assert_allclose(
        fitted.frequencies_,
        features(gamma=1.0).fit(X).frequencies_ * np.sqrt(gamma),
        rtol=1e-14,
    )
    assert_array_equal(fitted.gamma_, gamma)
    for wrong in ([0.3, 1.0], [0.3, 1.0, -1.0], [[0.3]]):
        with pytest.raises(ValueError, match="gamma must be a positive number or 3"):
            features(gamma=wrong).fit(X)


def test_estimates_the_kernel_as_often_as_it_must():
    # s terms in [-1, 1]: Hoeffding and a union over all entries, for gammas whose
    # kernels differ by more than the radius. Correct code fails with p < 1e-9.
    s = 20000
    for gamma in (0.1, 0.7):
        Z = features(n_components=2 * s, gamma=gamma).fit_transform(X)
        error = abs(Z @ Z.T - rbf_kernel(X, gamma=gamma))
        radius = math.sqrt(2 * math.log(2 * 2 * error.size / 1e-9) / s)
        assert error.max() < radius
        # The same bound tells a wrong bandwidth: 1/(2 sigma^2) read as 1/sigma^2.
        assert abs(Z @ Z.T - rbf_kernel(X, gamma=2 * gamma)).max() > radius


def test_agrees_with_rbf_sampler_within_the_error_of_both():
    m = 40000
    ours = features(n_components=m).fit_transform(X)
    theirs = RBFSampler(gamma=0.3, n_components=m, random_state=1).fit_transform(X)
    # RBFSampler's products lie in [-2, 2], ours (m / 2 of them) in [-1, 1].
    log = math.log(2 * 2 * len(X) ** 2 / 1e-9)
    radius = math.sqrt(2 * log / (m / 2)) + math.sqrt(8 * log / m)
    assert abs(ours @ ours.T - theirs @ theirs.T).max() < radius


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("select", [None, "surrogate"])
def test_an_odd_map_is_the_documented_one(dtype, form, select):
    fitted = features(n_components=15, select=select).fit(X.astype(dtype), Y)
    Z = fitted.transform(form(X.astype(dtype)))
    assert Z.shape == (40, 15)
    assert Z.dtype == dtype
    assert len(fitted.get_feature_names_out()) == 15
    expected = explicit(X, fitted)[:, :-1]
    P = X @ fitted.frequencies_[-1] + fitted.phase_
    amplitude = math.sqrt(2 * fitted.importance_weights_[-1] / 8)
    expected[:, 7] = amplitude * np.cos(P)
    assert_allclose(Z, expected, atol=1e-14 if dtype == np.float64 else 1e-6)
    feature_map = fitted.feature_map().astype(np.float64)
    target = np.column_stack([Y, np.cos(Y)])
    assert_allclose(feature_map.moments(X, target), expected.T @ target, atol=1e-5)
    assert 0 <= fitted.phase_ < 2 * math.pi
    # One map or the other, by the latest fit alone.
    assert not hasattr(fitted.set_params(n_components=16).fit(X, Y), "phase_")


def test_an_odd_map_is_unbiased():
    # The mean over 8,000 maps of 3 columns: 2 frequencies, of which one has a random
    # phase. One map's entries lie in [-3 / 2, 3 / 2]; Hoeffding and a union over all
    # entries: correct code fails with p < 1e-9.
    n, few = 8000, X[:6]
    rng = np.random.default_rng(0)
    total = np.zeros((6, 6))
    for _ in range(n):
        Z = (
            features(n_components=3, random_state=rng)
            .fit_checked(few, None)
            .feature_map()(few)
        )
        total += Z @ Z.T
    error = abs(total / n - rbf_kernel(few, gamma=0.3)).max()
    assert error < 1.5 * math.sqrt(2 * math.log(2 * total.size / 1e-9) / n)


def test_a_single_column():
    fitted = features(n_components=1).fit(X)
    expected = math.sqrt(2) * np.cos(X @ fitted.frequencies_[0] + fitted.phase_)
    assert_allclose(fitted.transform(X), expected[:, None], rtol=1e-12)


def median_distance(A):
    D = np.sqrt(((A[:, None] - A) ** 2).sum(axis=2))[np.triu_indices(len(A), 1)]
    return np.median(D[D > 0])


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array, sparse.csc_matrix])
@pytest.mark.parametrize("n", [39, 40])
def test_gamma_median_is_the_heuristic(form, n):
    fitted = features(gamma="median").fit(form(X[:n]))
    expected = 1 / (2 * median_distance(X[:n]) ** 2)
    assert fitted.gamma_ == pytest.approx(expected, rel=1e-12)
    single = features(gamma="median").fit(form(X[:n].astype(np.float32)))
    assert single.gamma_ == pytest.approx(expected, rel=1e-6)


def test_gamma_median_of_many_rows_takes_evenly_spread_ones():
    many = np.random.default_rng(1).normal(size=(5000, 3))
    fitted = features(gamma="median").fit(many)
    expected = 1 / (2 * median_distance(many[2::5]) ** 2)
    assert fitted.gamma_ == pytest.approx(expected, rel=1e-12)
    assert features(gamma="median", random_state=5).fit(many).gamma_ == fitted.gamma_


@pytest.mark.parametrize("n", [40, 3000])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_gamma_median_takes_a_weight_for_a_repetition(n, form):
    rng = np.random.default_rng(2)
    rows, weight = rng.normal(size=(n, 3)), rng.integers(0, 4, size=n)
    weighted = features(gamma="median").fit(form(rows), sample_weight=weight)
    repeated = features(gamma="median").fit(form(np.repeat(rows, weight, axis=0)))
    assert weighted.gamma_ == pytest.approx(repeated.gamma_, rel=1e-12)


def test_gamma_median_of_shifted_and_repeated_rows():
    expected = features(gamma="median").fit(X).gamma_
    moved = features(gamma="median").fit(X + 1e5).gamma_
    assert moved == pytest.approx(expected, rel=1e-9)
    twice = features(gamma="median").fit(np.repeat(X, 2, axis=0)).gamma_
    assert twice == pytest.approx(expected, rel=1e-9)
    # One row apart from many equal ones: their distance, not zero.
    lonely = np.zeros((50, 2))
    lonely[7, 0] = 4.0
    assert features(gamma="median").fit(lonely).gamma_ == pytest.approx(1 / 32)


@pytest.mark.parametrize("value", [0.0, 0.1, 1e9 / 3])
@pytest.mark.parametrize("form", [np.array, sparse.csr_array])
@pytest.mark.parametrize("n", [1, 7])
def test_gamma_median_of_constant_data_is_one(value, form, n):
    constant = form(np.full((n, 3), value))
    assert features(gamma="median").fit(constant).gamma_ == 1.0


def test_one_bandwidth_a_feature_is_a_scaling_of_the_columns():
    gamma = np.array([0.3, 1.1, 0.02])
    Z = features(n_components=40000, gamma=gamma).fit_transform(X)
    error = abs(Z @ Z.T - rbf_kernel(X * np.sqrt(gamma), gamma=1.0)).max()
    # Hoeffding with a union over entries.
    assert error < math.sqrt(2 * math.log(2 * 40**2 / 1e-9) / 20000)
    for wrong in ([0.3, np.nan, 1.0], [0.3, np.inf, 1.0]):
        with pytest.raises(ValueError, match="Input gamma contains"):
            features(gamma=wrong).fit(X)


def test_rows_have_norm_one():
    assert_allclose(np.linalg.norm(features().fit_transform(X), axis=1), 1, rtol=1e-15)


def test_gamma_scale_is_that_of_svc():
    assert features(gamma="scale").fit(X).gamma_ == pytest.approx(
        SVC(gamma="scale").fit(X, Y > 0)._gamma, rel=1e-14
    )
    assert features(gamma=0.3).fit(X).gamma_ == 0.3


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_gamma_scale_survives_a_large_mean(dtype):
    # E x^2 - (E x)^2 would have lost every digit.
    shifted = (1e4 + np.arange(12.0).reshape(6, 2)).astype(dtype)
    expected = 1 / (2 * np.var(np.arange(12.0)))
    assert features(gamma="scale").fit(shifted).gamma_ == pytest.approx(expected, 1e-6)


@pytest.mark.parametrize("value", [0.0, 0.1, 1e9 / 3])
@pytest.mark.parametrize("form", [np.array, sparse.csr_array])
def test_gamma_scale_of_constant_data_is_one(value, form):
    constant = form(np.full((7, 3), value))
    assert features(gamma="scale").fit(constant).gamma_ == 1.0


@pytest.mark.parametrize("form", [np.array, sparse.csr_array])
def test_gamma_scale_takes_a_weight_for_a_repetition(form):
    weight = RNG.integers(0, 4, size=len(X))
    weighted = features(gamma="scale").fit(form(X), sample_weight=weight)
    repeated = features(gamma="scale").fit(np.repeat(X, weight, axis=0))
    assert weighted.gamma_ == pytest.approx(repeated.gamma_, rel=1e-12)


def test_same_seed_same_frequencies_whatever_the_dtype():
    first, second = features().fit(X), features().fit(X.astype(np.float32))
    assert first.frequencies_.dtype == np.float64
    assert second.frequencies_.dtype == np.float32
    assert_array_equal(first.frequencies_.astype(np.float32), second.frequencies_)
    assert second.transform(X.astype(np.float32)).dtype == np.float32
    assert not np.array_equal(
        first.frequencies_, features(random_state=1).fit(X).frequencies_
    )


def test_gamma_only_scales_the_frequencies():
    narrow, wide = features(gamma=2.8).fit(X), features(gamma=0.7).fit(X)
    assert_allclose(narrow.frequencies_, 2 * wide.frequencies_, rtol=1e-15)


PREFIX_DRAWS = sorted(set(DRAWS) - {"sparse_grid"})


@pytest.mark.parametrize("draw", PREFIX_DRAWS)
@pytest.mark.parametrize("n_components", [3, 4, 15, 16])
def test_odd_maps_are_part_of_the_same_sequence(draw, n_components):
    """RBFSampler: the first 10 of 20 components differed from the 10."""
    odd = features(draw=draw, n_components=n_components).fit(X)
    s = (n_components + 1) // 2
    assert len(odd.frequencies_) == s
    long = np.asarray(features(draw=draw, n_components=64).fit(X).frequencies_)
    assert_array_equal(np.asarray(odd.frequencies_), long[:s])
    assert hasattr(odd, "phase_") == bool(n_components % 2)


# A spherical-radial rule needs two frequencies.
@pytest.mark.parametrize("draw", sorted({*PREFIX_DRAWS} - {"spherical_radial"}))
@pytest.mark.parametrize("d", [1, 2, 3, 4])
def test_any_number_of_columns_and_features(d, draw):
    """Rfflearn: odd dimensions crashed a quasi-random sampler."""
    rows = np.random.default_rng(0).normal(size=(9, d))
    for n_components in (1, 2, 3, 8, 17):
        Z = features(n_components=n_components, draw=draw).fit_transform(rows)
        assert Z.shape == (9, n_components)
        assert np.isfinite(Z).all()


def test_random_state_takes_all_kinds():
    generator = np.random.default_rng(0)
    first = features(random_state=generator).fit(X).frequencies_
    assert_array_equal(first, features(random_state=0).fit(X).frequencies_)
    # A generator advances, so that two fits are independent.
    second = features(random_state=generator).fit(X).frequencies_
    assert not np.array_equal(first, second)

    state = np.random.RandomState(0)
    first = features(random_state=state).fit(X).frequencies_
    assert not np.array_equal(first, features(random_state=state).fit(X).frequencies_)
    again = features(random_state=np.random.RandomState(0)).fit(X).frequencies_
    assert_array_equal(first, again)

    first, second = (features(random_state=None).fit(X) for _ in range(2))
    assert not np.array_equal(first.frequencies_, second.frequencies_)


def test_transforming_sparse_rows_copies_no_frequencies():
    X = sparse.random(40, 900, 0.01, "csr", None, 0)
    features = FourierFeatures(64, gamma=0.7, random_state=0).fit(X)
    dense = FourierFeatures(64, gamma=0.7, random_state=0).fit(X.toarray())
    assert_array_equal(features.frequencies_, dense.frequencies_)
    by_feature = features.feature_map()._rows_of_weights
    assert np.shares_memory(by_feature, features.frequencies_)
    assert_allclose(features.transform(X), dense.transform(X.toarray()), atol=1e-12)


@pytest.mark.parametrize(
    "form",
    [sparse.csr_matrix, sparse.csc_matrix, sparse.coo_matrix, sparse.csr_array,
     sparse.csc_array, sparse.coo_array],
)  # fmt: skip
@pytest.mark.parametrize("select", [None, *sorted(SELECTORS)])
def test_sparse_equals_dense(form, select):
    holes = np.where(abs(X) > 0.7, X, 0.0)
    dense = features(gamma="scale", select=select).fit(holes, Y)
    thin = features(gamma="scale", select=select).fit(form(holes), Y)
    assert_allclose(thin.frequencies_, dense.frequencies_, rtol=1e-12)
    assert_allclose(thin.transform(form(holes)), dense.transform(holes), atol=1e-12)


def processor_time(call):
    """Least of several runs, in seconds of all threads: others' load does not count."""
    times = []
    for _ in range(5):
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return min(times)


@pytest.mark.parametrize("density", [0.01, 0.1, 0.5, 1.0])
@pytest.mark.parametrize("n_features", [100, 1500])
def test_sparse_rows_are_no_slower_than_dense_ones(density, n_features):
    """Sk 34920: at any density; blocks that are nearly full are multiplied as full."""
    thin = sparse.random(1500, n_features, density, format="csr", random_state=0)
    dense = thin.toarray()
    fitted = features(n_components=256, gamma=0.01).fit(dense)
    assert_allclose(fitted.transform(thin), fitted.transform(dense), atol=1e-10)
    of_sparse = processor_time(functools.partial(fitted.transform, thin))
    of_dense = processor_time(functools.partial(fitted.transform, dense))
    # Where half of the values are there, unfolding them takes part of the time; more
    # frequencies take it apart again. 5 ms are for the clock.
    assert of_sparse < (1.25 if density < 0.5 else 2.5) * of_dense + 0.005


def test_pandas_names_are_kept_and_checked():
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    frame = pandas.DataFrame(X, columns=["a", "b", "c"])
    fitted = features().fit(frame)
    assert list(fitted.feature_names_in_) == ["a", "b", "c"]
    assert_array_equal(fitted.transform(frame), features().fit(X).transform(X))
    with pytest.raises(ValueError, match="feature names should match"):
        fitted.transform(frame[["b", "a", "c"]])
    assert fitted.get_feature_names_out()[0] == "fourierfeatures0"
    assert len(fitted.get_feature_names_out()) == 16
    out = features().set_output(transform="pandas").fit(frame).transform(frame)
    assert out.shape == (40, 16)


class Laplace(SpectralMeasure):
    """exp(-sqrt(gamma) |r|_1), to show that users can bring a kernel."""

    def kernel(self, X, Y=None, gamma=1.0):
        return laplacian_kernel(X, Y, gamma=math.sqrt(gamma))

    def sample(self, rng, n_frequencies, n_features):
        return rng.standard_cauchy((n_frequencies, n_features))

    def quantile(self, U):
        return np.tan(np.pi * (U - 0.5))

    def scale(self, gamma):
        return math.sqrt(gamma)


@pytest.mark.parametrize("draw", [MonteCarlo(), Halton()])
def test_users_bring_kernels(draw):
    s = 20000
    Z = features(n_components=2 * s, kernel=Laplace(), draw=draw).fit_transform(X)
    error = abs(Z @ Z.T - Laplace().kernel(X, gamma=0.3)).max()
    # Hoeffding with a union over entries; quasi-random points do better still.
    assert error < math.sqrt(2 * math.log(2 * len(X) ** 2 / 1e-9) / s)


class TakeFirst(BaseEstimator):
    """A selector of one's own: no scores, no need of y."""

    needs_target = False

    def __init__(self, n_candidates=10):
        self.n_candidates = n_candidates

    def select(self, draw, X, Y, n_frequencies, rng, sample_weight=None):
        pool = draw(self.n_candidates)
        return pool[:n_frequencies], np.full(n_frequencies, 0.25)


def test_users_bring_selectors():
    fitted = features(select=TakeFirst()).fit(X)
    assert_array_equal(fitted.frequencies_, features().fit(X).frequencies_)
    assert_allclose(np.linalg.norm(fitted.transform(X), axis=1), 0.5, rtol=1e-15)


@pytest.mark.parametrize("name", sorted(SELECTORS))
def test_a_name_and_an_object_of_defaults_select_alike(name):
    by_name = features(select=name).fit(X, Y)
    by_object = features(select=SELECTORS[name]()).fit(X, Y)
    assert_array_equal(by_name.frequencies_, by_object.frequencies_)


def test_select_equals_calling_the_selector():
    selector = SurrogateLeverage(n_candidates=3.0)
    fitted = features(select=selector).fit(X, Y)
    rng = np.random.default_rng(0)

    def draw(n):
        return math.sqrt(0.3) * Gaussian().sample(rng, n, 3)

    direct = selector.select(draw, X, Y[:, None], 8, rng)
    assert_allclose(fitted.frequencies_, direct.frequencies, rtol=1e-15)
    assert_array_equal(fitted.importance_weights_, direct.importance_weights)


def test_the_callers_selector_is_not_touched():
    selector = SurrogateLeverage(n_candidates=3.0)
    before = dict(vars(selector))
    features(select=selector).fit(X, Y)
    assert vars(selector) == before


def test_labels_are_coded_and_numbers_are_not():
    labels = np.array(["a", "b"])[(Y > 0).astype(int)]
    coded = features(select="surrogate").fit(X, labels)
    signs = features(select="surrogate").fit(X, np.where(Y > 0, 1, -1))
    assert_array_equal(coded.frequencies_, signs.frequencies_)

    three = np.digitize(Y, [-0.5, 0.5])
    coded = features(select="surrogate").fit(X, three)
    selector = SurrogateLeverage()
    rng = np.random.default_rng(0)
    direct = selector.select(
        lambda n: math.sqrt(0.3) * Gaussian().sample(rng, n, 3),
        X, one_vs_rest(three, 3), 8, rng,
    )  # fmt: skip
    assert_allclose(coded.frequencies_, direct.frequencies, rtol=1e-15)

    # Numbers are taken uncentred: adding a constant changes the scores.
    plain = features(select="surrogate").fit(X, Y)
    moved = features(select="surrogate").fit(X, Y + 0.7)
    assert not np.array_equal(plain.frequencies_, moved.frequencies_)


def test_several_outputs_select_by_their_sum():
    both = np.column_stack([Y, np.roll(Y, 1)])
    fitted = features(select="surrogate").fit(X, both)
    again = features(select="surrogate").fit(X, both[:, ::-1])
    assert_array_equal(fitted.frequencies_, again.frequencies_)
    single = features(select="surrogate").fit(X, Y)
    assert not np.array_equal(fitted.frequencies_, single.frequencies_)


def test_one_vs_rest_codes():
    assert_array_equal(one_vs_rest([0, 1, 1], 2), [[-1], [1], [1]])
    assert_array_equal(
        one_vs_rest([0, 2, 1], 3), [[1, -1, -1], [-1, -1, 1], [-1, 1, -1]]
    )
    assert one_vs_rest([0, 1], 2).dtype == one_vs_rest([0, 1, 2], 3).dtype == float


def test_parameters_nest_and_clone():
    fitted = features(select=SurrogateLeverage(), kernel=Gaussian(), draw=Halton())
    fitted.set_params(select__n_candidates=7.0, draw__leap=12, n_components=4)
    copy = clone(fitted)
    assert copy.select.n_candidates == 7.0
    assert copy.draw.leap == 12
    assert copy.get_params()["n_components"] == 4
    assert copy.select is not fitted.select


def test_pool_size_in_a_grid_search():
    model = make_pipeline(features(select=SurrogateLeverage()), Ridge(0.7))
    search = GridSearchCV(
        model, {"fourierfeatures__select__n_candidates": [1.0, 4.0]}, cv=3
    ).fit(X, Y)
    assert set(search.cv_results_["param_fourierfeatures__select__n_candidates"]) == {
        1.0,
        4.0,
    }
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_components": 0}, r"'n_components' parameter .* \[1, 16777216\]. Got 0"),
        ({"n_components": 8.0}, "'n_components' parameter .* Got 8.0"),
        ({"gamma": 0.0}, "'gamma' parameter .* Got 0.0"),
        ({"gamma": -1.0}, "'gamma' parameter .* Got -1.0"),
        ({"gamma": np.nan}, "'gamma' parameter .* Got nan"),
        ({"gamma": np.inf}, "'gamma' parameter .* Got inf"),
        ({"gamma": "auto"}, "'gamma' parameter .*'scale'.*Got 'auto'"),
        ({"kernel": "poly"}, "'kernel' parameter .*'rbf'.*Got 'poly'"),
        ({"draw": "latin"}, "'draw' parameter .*'halton'.*Got 'latin'"),
        ({"select": "best"}, "'select' parameter .*'surrogate'.*Got 'best'"),
        ({"select": SurrogateLeverage(n_candidates=7)},
         "n_candidates must give at least the 8 frequencies to keep, got 7"),
        ({"select": SurrogateLeverage(n_candidates=0.5)},
         r"n_candidates must give at least the 8 .* got 0.5 = 4"),
        ({"select": SurrogateLeverage(n_candidates=0.0)},
         "n_candidates must be a positive finite number, got 0.0"),
        ({"select": SurrogateLeverage(n_candidates=True)},
         "n_candidates must be a positive finite number, got True"),
        ({"select": SurrogateLeverage(resample="twice")},
         "resample must be one of .*multinomial.*got 'twice'"),
        ({"select": RidgeLeverage(alpha=0.0)}, "alpha must be .* got 0.0"),
        ({"select": RidgeLeverage(alpha=-1)}, "alpha must be .* got -1"),
        ({"draw": Halton(skip=0)}, "skip must be at least 1, got 0"),
        ({"draw": Halton(leap=-1)}, "leap must be at least 0, got -1"),
        ({"random_state": "seed"}, "'random_state' parameter"),
    ],
)  # fmt: skip
def test_bad_parameters_are_named(parameters, message):
    with pytest.raises(ValueError, match=message):
        features(**parameters).fit(X, Y)


@pytest.mark.parametrize("name", ["kernel", "draw", "select"])
def test_classes_are_refused_where_objects_are_meant(name):
    table = {"kernel": KERNELS, "draw": DRAWS, "select": SELECTORS}[name]
    with pytest.raises(TypeError, match=f"{name} must be one of"):
        features(**{name: next(iter(table.values()))}).fit(X, Y)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_bad_data_are_named(bad):
    broken = X.copy()
    broken[3, 1] = bad
    with pytest.raises(ValueError, match="Input X contains"):
        features().fit(broken)
    with pytest.raises(ValueError, match="Input X contains"):
        features().fit(X).transform(broken)
    target = Y.copy()
    target[3] = bad
    with pytest.raises(ValueError, match="Input y contains"):
        features(select="surrogate").fit(X, target)


def test_wrong_shapes_and_missing_targets_are_named():
    with pytest.raises(ValueError, match=r"X has 2 features, but .* 3 features"):
        features().fit(X).transform(X[:, :2])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        features(select="surrogate").fit(X, Y[:-1])
    with pytest.raises(ValueError, match=r"select='surrogate'.*y.* is None"):
        features(select="surrogate").fit(X)
    with pytest.raises(ValueError, match=r"sample_weight.shape == \(3,\)"):
        features().fit(X, sample_weight=np.ones(3))
    with pytest.raises(ValueError, match="Negative values in data"):
        features().fit(X, sample_weight=np.full(len(X), -1.0))


def test_a_target_of_zeros_cannot_rank():
    # Numbers of several outputs, since a column of labels is coded -1, 1.
    with pytest.raises(ValueError, match=r"SurrogateLeverage cannot rank .*y is zero"):
        features(select="surrogate").fit(X, np.zeros((40, 2)))


def test_says_nothing_on_ordinary_data():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        features(select="surrogate").fit_transform(X, Y)
    assert not caught


# The variance behind gamma="scale", from blocks of rows


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("weighted", [False, True])
def test_spread_of_pieces_is_the_variance_of_all_entries(make, weighted):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 3)) + np.linspace(-5.0, 5.0, 500)[:, None]
    weight = rng.integers(0, 3, size=500).astype(float) if weighted else np.ones(500)
    weight[:70] = 0.0 if weighted else 1.0
    spread = EntrySpread()
    for piece in np.split(np.arange(500), [7, 60, 61, 300]):
        spread.update(make(X[piece]), weight[piece] if weighted else None)
    repeated = np.repeat(X, weight.astype(int), axis=0)
    assert_allclose(spread.variance, repeated.var(), rtol=1e-12)
    assert_allclose(spread.gamma(3), 1.0 / (3 * repeated.var()), rtol=1e-12)


def test_spread_far_from_zero_keeps_its_digits_and_finds_constant_data():
    X = 1e6 + np.random.default_rng(0).normal(size=(20_000, 2))
    whole = EntrySpread().update(X)
    assert_allclose(whole.variance, X.var(), rtol=1e-9)
    assert EntrySpread().update(np.full((20_000, 2), 0.1)).gamma(2) == 1.0
    assert EntrySpread().update(np.full((9, 2), 1e6 / 3)).gamma(2) == 1.0


def test_scale_takes_no_copy_of_the_rows():
    X = np.random.default_rng(0).normal(size=(400_000, 5))
    tracemalloc.start()
    EntrySpread().update(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < X.nbytes / 8


def test_the_documentation_says_what_is_used():
    """Sk 4298, 23524: whether a map looks at n, d, X or y."""

    def text(thing):
        return " ".join(thing.__doc__.split())

    assert "the draws only the number of columns" in text(FourierFeatures)
    assert 'select="leverage"`` the rows of ``X``' in text(FourierFeatures)
    assert 'select="surrogate"`` both ``X`` and ``y``' in text(FourierFeatures)
    assert "Rules look at ``X`` alone, never at ``y``" in text(NystroemFeatures)
    assert "Uses X, not y." in text(RidgeLeverage)
    assert "Uses X and y" in text(SurrogateLeverage)
    # And it is so: frequencies of a plain draw do not depend on the rows.
    plain, other = features().fit(X), features().fit(-X)
    assert_array_equal(plain.frequencies_, other.frequencies_)


@pytest.mark.parametrize("features", [FourierFeatures(7), NystroemFeatures(5)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_transform_writes_into_out(features, dtype, form):
    X = form(np.random.default_rng(0).normal(size=(20, 3)).astype(dtype))
    fitted = clone(features).fit(X)
    expected = fitted.transform(X)
    out = np.full(expected.shape, np.nan, dtype)
    assert fitted.transform(X, out=out) is out
    assert_array_equal(out, expected)
    bad = [out[:5], out.astype(int), np.asfortranarray(out), out.tolist()]
    read_only = out.copy()
    read_only.flags.writeable = False
    for wrong in (*bad, read_only):
        with pytest.raises(ValueError, match="out must be a writeable, C-contiguous"):
            fitted.transform(X, out=wrong)


def test_out_is_no_metadata_to_route():
    requests = FourierFeatures().get_metadata_routing()
    assert "out" not in str(requests.transform)
