import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone

from surff.fourier import fourier_features
from surff.selection import (
    RESAMPLERS,
    SELECTORS,
    RidgeLeverage,
    SurrogateLeverage,
    inclusion_probabilities,
    multinomial,
    n_candidates,
    reweight,
    without_replacement,
)

#: Probability with which correct code may fail a statistical test.
LEVEL = 1e-9


def pool(n=9, d=2, size=6, k=2, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)), rng.normal(size=(size, d)), rng.normal(size=(n, k))


def kernel(X, W, weights=None):
    """(1 / s) sum_i weight_i cos w_i.(x - x'), the kernel of weighted frequencies."""
    Z = fourier_features(X, W, None if weights is None else np.sqrt(weights))
    return Z @ Z.T


probability_vectors = st.lists(
    st.one_of(st.just(0.0), st.floats(1e-6, 1.0)), min_size=1, max_size=12
).filter(lambda q: sum(q) > 0)


def normalised(q):
    q = np.array(q)
    return q / q.sum()


class Scripted:
    """A generator whose answers are given beforehand."""

    def __init__(self, **answers):
        self.answers = answers

    def choice(self, n, size, p):
        assert n == len(p)
        assert_allclose(p.sum(), 1, rtol=1e-12)
        return np.array(self.answers["choice"])

    def permutation(self, n):
        return np.array(self.answers["permutation"])

    def uniform(self):
        return self.answers["uniform"]


def test_multinomial_draws_are_unbiased_over_all_outcomes():
    X, W, _ = pool(size=4)
    q, s = normalised([0.1, 0.5, 0.02, 0.7]), 3
    expected = kernel(X, W)
    mean, unweighted = 0.0, 0.0
    for outcome in itertools.product(range(4), repeat=s):
        indices, weights = multinomial(q, s, Scripted(choice=outcome))
        probability = np.prod(q[list(outcome)])
        mean += probability * kernel(X, W[indices], weights)
        unweighted += probability * kernel(X, W[indices])
    assert_allclose(mean, expected, rtol=1e-12)
    # Without weights, or with 1/q in place of 1/(l q), it is another kernel.
    assert abs(unweighted - expected).max() > 0.05
    assert abs(4 * mean - expected).max() > 0.05


def outcomes_without_replacement(q, s):
    """Every outcome and its probability: all orders, the start integrated exactly."""
    pi = inclusion_probabilities(q, s)
    orders = list(itertools.permutations(range(len(q))))
    for order in orders:
        # The outcome is constant in the start between fractional parts of the edges.
        edges = np.cumsum(pi[list(order)]) % 1.0
        cuts = np.unique(np.concatenate([[0.0, 1.0], edges]))
        for low, high in itertools.pairwise(cuts):
            rng = Scripted(permutation=order, uniform=(low + high) / 2)
            yield without_replacement(q, s, rng), (high - low) / len(orders)


@pytest.mark.parametrize(
    ("q", "s"),
    [
        ([0.1, 0.5, 0.02, 0.7, 0.3], 2),
        ([0.1, 5.0, 0.02, 0.7, 0.3], 3),  # the second is certain
        ([1.0, 1.0, 1.0, 1.0], 2),
        ([0.2, 0.1, 0.7], 3),  # all are certain
    ],
)
def test_draws_without_replacement_are_unbiased_over_all_outcomes(q, s):
    X, W, _ = pool(size=len(q))
    q = normalised(q)
    mean, inclusion, total = 0.0, np.zeros(len(q)), 0.0
    for (indices, weights), probability in outcomes_without_replacement(q, s):
        assert len(np.unique(indices)) == s
        mean += probability * kernel(X, W[indices], weights)
        inclusion[indices] += probability
        total += probability
    assert total == pytest.approx(1, rel=1e-12)
    assert_allclose(inclusion, inclusion_probabilities(q, s), rtol=1e-9)
    assert_allclose(mean, kernel(X, W), rtol=1e-9)


@given(q=probability_vectors, data=st.data())
def test_inclusion_probabilities_are_clipped_multiples(q, data):
    q = normalised(q)
    s = data.draw(st.integers(1, np.count_nonzero(q)))
    pi = inclusion_probabilities(q, s)
    assert np.all((pi >= 0) & (pi <= 1))
    assert pi.sum() == pytest.approx(s, rel=1e-12)
    assert_array_equal(pi == 0, q == 0)
    # Below one they are c q with one c, which lifts no other above one.
    below = (pi < 1 - 1e-9) & (q > 0)
    if below.any():
        c = pi[below] / q[below]
        assert_allclose(c, c[0], rtol=1e-9)
        assert np.all(c[0] * q[~below & (q > 0)] >= 1 - 1e-6)


def test_inclusion_probabilities_in_closed_form():
    assert_allclose(inclusion_probabilities(np.full(5, 0.2), 2), 0.4)
    # 0.7 is certain, then 1 is left for 0.1 and 0.2.
    pi = inclusion_probabilities(np.array([0.1, 0.7, 0.2, 0.0]), 2)
    assert_allclose(pi, [1 / 3, 1, 2 / 3, 0], rtol=1e-12)


def test_too_few_candidates_that_score_are_named():
    message = "leaves 2 candidates with a positive score, and 3 distinct"
    with pytest.raises(ValueError, match=message):
        inclusion_probabilities(np.array([0.5, 0.5, 0.0, 0.0]), 3)


@given(q=probability_vectors, seed=st.integers(0, 99), data=st.data())
def test_candidates_that_score_zero_are_never_drawn(q, seed, data):
    q = normalised(q)
    s = data.draw(st.integers(1, np.count_nonzero(q)))
    for resample in (multinomial, without_replacement):
        indices, weights = resample(q, s, np.random.default_rng(seed))
        assert len(indices) == len(weights) == s
        assert np.all(q[indices] > 0)
        assert np.all(np.diff(indices) >= 0)
        assert np.all(weights > 0)
    assert len(np.unique(indices)) == s


@given(q=probability_vectors, seed=st.integers(0, 99), s=st.integers(1, 9))
def test_weights_of_multinomial_draws(q, seed, s):
    q = normalised(q)
    indices, weights = multinomial(q, s, np.random.default_rng(seed))
    assert_allclose(weights, 1 / (len(q) * q[indices]), rtol=1e-12)


@pytest.mark.parametrize("name", ["multinomial", "without_replacement"])
def test_uniform_scores_leave_the_weights_at_one(name):
    indices, weights = RESAMPLERS[name](np.full(8, 1 / 8), 4, np.random.default_rng(0))
    assert_allclose(weights, 1.0, rtol=1e-12)
    assert len(indices) == 4


def test_draw_frequencies_by_chance():
    # R independent draws: Hoeffding for each candidate's count, union over candidates.
    q, s, R = normalised([0.1, 0.5, 0.02, 0.7, 0.3, 2.0]), 3, 5000
    rng = np.random.default_rng(0)
    counts = {"multinomial": np.zeros(6), "without_replacement": np.zeros(6)}
    for name, count in counts.items():
        for _ in range(R):
            indices, _ = RESAMPLERS[name](q, s, rng)
            np.add.at(count, indices, 1 / R)
    radius = math.sqrt(math.log(2 * 2 * 6 / LEVEL) / (2 * R))
    pi = inclusion_probabilities(q, s)
    # Counts of one draw lie in [0, s] with replacement and in [0, 1] without.
    assert abs(counts["multinomial"] - s * q).max() < s * radius
    assert abs(counts["without_replacement"] - pi).max() < radius
    assert abs(counts["without_replacement"] - s * q).max() > radius


def test_reweighting_keeps_the_pool():
    q = normalised([0.1, 0.5, 0.4])
    indices, weights = reweight(q, 3, np.random.default_rng(0))
    assert_array_equal(indices, [0, 1, 2])
    assert_allclose(weights, 1 / (3 * q), rtol=1e-12)
    # 1 / (l q) has mean 1 under q: the expected kernel is the pool's under that law.
    assert q @ weights == pytest.approx(1)


def test_reweighting_survives_a_score_of_zero():
    _, weights = reweight(np.array([0.0, 1.0]), 2, np.random.default_rng(0))
    assert np.isfinite(weights).all()


def test_reweighting_needs_as_many_candidates_as_frequencies():
    message = "n_candidates must be 1.0 or 2, got 3 candidates"
    with pytest.raises(ValueError, match=message):
        reweight(np.full(3, 1 / 3), 2, np.random.default_rng(0))


@pytest.mark.parametrize(
    ("value", "expected"),
    [(8, 8), (20, 20), (np.int64(9), 9), (1.0, 8), (2.5, 20), (np.float32(2), 16)],
)
def test_pool_sizes(value, expected):
    assert n_candidates(value, 8) == expected


@pytest.mark.parametrize("value", [7, 0, -3, 0.5, 0.0, -1.0, np.nan, np.inf, True, "2"])
def test_bad_pool_sizes_are_named(value):
    with pytest.raises(ValueError, match="n_candidates must"):
        n_candidates(value, 8)


def select(selector, X, W, Y, s, seed=0, sample_weight=None):
    """The selection from a given pool."""

    def draw(n):
        assert n == len(W)
        return W

    rng = np.random.default_rng(seed)
    return selector.select(draw, X, Y, s, rng, sample_weight)


def selectors(size=12):
    return [
        SELECTORS[name](n_candidates=size, resample=resample)
        for name in sorted(SELECTORS)
        for resample in ("multinomial", "without_replacement")
    ]


@pytest.mark.parametrize("selector", selectors(), ids=str)
def test_selection_is_scores_then_resampling(selector):
    X, W, Y = pool(size=12)
    scores = selector.scores(W, X, Y)
    assert scores.shape == (12,)
    indices, weights = RESAMPLERS[selector.resample](
        scores / scores.sum(), 5, np.random.default_rng(0)
    )
    chosen = select(selector, X, W, Y, 5)
    assert_array_equal(chosen.frequencies, W[indices])
    assert_allclose(chosen.importance_weights, weights, rtol=1e-12)


@pytest.mark.parametrize("name", sorted(SELECTORS))
def test_selected_kernels_average_to_that_of_the_pool(name):
    X, W, Y = pool(size=12)
    scores = SELECTORS[name]().scores(W, X, Y)
    q = scores / scores.sum()
    s = 200000
    # Independent terms weight * cos of variance at most sum_i 1 / (l^2 q_i) and at most
    # 1 / (l q_min) away from zero: Bernstein, union over entries.
    log = math.log(2 * 81 / LEVEL)
    radius = math.sqrt(2 * np.sum(1 / (12**2 * q)) * log / s)
    radius += 2 * log / (12 * q.min()) / (3 * s)
    indices, weights = multinomial(q, s, np.random.default_rng(0))
    assert abs(kernel(X, W[indices], weights) - kernel(X, W)).max() < radius
    assert abs(kernel(X, W[indices]) - kernel(X, W)).max() > radius


def test_ridge_leverage_scores_are_those_of_its_alpha():
    X, W, _ = pool(size=12)
    K = kernel(X, W)
    z = np.exp(-1j * X @ W.T)
    expected = [
        np.einsum("ij,ij->j", z.conj(), np.linalg.inv(K + alpha * np.eye(9)) @ z).real
        / 12
        for alpha in (0.7, 20.0)
    ]
    for alpha, values in zip((0.7, 20.0), expected, strict=True):
        scores = RidgeLeverage(alpha).scores(W, X, None)
        assert_allclose(scores, values, rtol=1e-9)


@pytest.mark.parametrize("ridge_term", [False, True])
def test_surrogate_scores_are_the_papers(ridge_term):
    X, W, Y = pool(size=12)
    z = np.exp(-1j * X @ W.T)
    expected = (abs(z.conj().T @ Y) ** 2).sum(axis=1) + (9**2 if ridge_term else 0)
    scores = SurrogateLeverage(ridge_term=ridge_term).scores(W, X, Y)
    assert_allclose(scores, expected, rtol=1e-10)


@pytest.mark.parametrize(
    "selector",
    [RidgeLeverage(0.7), SurrogateLeverage(), SurrogateLeverage(ridge_term=True)],
    ids=str,
)
def test_weights_repeat_rows(selector):
    X, W, Y = pool(size=12)
    weight = np.array([0, 1, 3, 2, 0, 1, 1, 4, 2])
    repeated = selector.scores(
        W, np.repeat(X, weight, axis=0), np.repeat(Y, weight, axis=0)
    )
    weighted = selector.scores(W, X, Y, weight.astype(float))
    assert_allclose(weighted, repeated, rtol=1e-10)
    assert abs(selector.scores(W, X, Y) / repeated - 1).max() > 0.01


@pytest.mark.parametrize("name", sorted(SELECTORS))
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_scores_take_sparse_rows_and_keep_precision(name, dtype):
    X, W, Y = pool(n=300, size=12)
    exact = SELECTORS[name]().scores(W, X, Y)
    X = X.astype(dtype)
    for form in (np.asarray, sparse.csr_matrix, sparse.csr_array):
        scores = SELECTORS[name]().scores(W.astype(dtype), form(X), Y)
        assert scores.dtype == np.float64
        tolerance = 1e-4 if dtype is np.float32 else 1e-9
        assert_allclose(scores, exact, rtol=tolerance, atol=tolerance * exact.max())


def test_ridge_leverage_does_not_look_at_the_target():
    X, W, Y = pool(size=12)
    assert not RidgeLeverage.needs_target
    assert SurrogateLeverage.needs_target
    first = select(RidgeLeverage(0.7, n_candidates=12), X, W, Y, 5)
    second = select(RidgeLeverage(0.7, n_candidates=12), X, W, None, 5)
    assert_array_equal(first.frequencies, second.frequencies)


def test_the_frequency_of_a_pure_tone_is_found():
    # Only one candidate correlates with y: with l = 32 it has nearly all the weight.
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 2)) * 3
    W = rng.normal(size=(32, 2)) * 5
    Y = np.cos(X @ W[7])[:, None]
    selector = SurrogateLeverage(n_candidates=32)
    scores = selector.scores(W, X, Y)
    assert scores.argmax() == 7
    assert scores[7] > 0.5 * scores.sum()
    # The ridge term hides it, as the paper's q~ does on real data.
    flat = SurrogateLeverage(ridge_term=True).scores(W, X, Y)
    assert flat[7] < 0.2 * flat.sum()


@pytest.mark.parametrize("name", sorted(SELECTORS))
def test_nothing_of_the_callers_is_written_to(name):
    X, W, Y = pool(size=12)
    weight = np.linspace(0.1, 2, 9)
    for array in (X, W, Y, weight):
        array.flags.writeable = False
    select(SELECTORS[name](n_candidates=12), X, W, Y, 5, sample_weight=weight)


def test_scores_that_cannot_rank_are_an_error():
    X, W, Y = pool(size=12)
    with pytest.raises(ValueError, match=r"SurrogateLeverage cannot rank .* 0.0; y is"):
        select(SurrogateLeverage(n_candidates=12), X, W, 0 * Y, 5)
    with pytest.raises(ValueError, match=r"RidgeLeverage cannot rank .* alpha is far"):
        select(RidgeLeverage(1e30, n_candidates=12), X, W, Y, 5)
    with (
        np.errstate(over="ignore"),
        pytest.raises(ValueError, match=r"SurrogateLeverage cannot rank .* inf"),
    ):
        select(SurrogateLeverage(n_candidates=12), X, W, 1e200 * Y, 5)


@pytest.mark.parametrize("name", sorted(SELECTORS))
def test_unknown_ways_of_resampling_list_the_known_ones(name):
    X, W, Y = pool(size=12)
    selector = SELECTORS[name](n_candidates=12, resample="bootstrap")
    with pytest.raises(ValueError, match=r"resample must be one of .*got 'bootstrap'"):
        select(selector, X, W, Y, 5)


@pytest.mark.parametrize("alpha", [0, -1.0, np.nan, np.inf, "1"])
def test_bad_alphas_are_named(alpha):
    X, W, Y = pool(size=12)
    with pytest.raises(ValueError, match="alpha must be a positive finite number"):
        select(RidgeLeverage(alpha, n_candidates=12), X, W, Y, 5)


@pytest.mark.parametrize("name", sorted(SELECTORS))
def test_selectors_are_scikit_learn_objects(name):
    selector = SELECTORS[name]().set_params(n_candidates=7, resample="reweight")
    copy = clone(selector)
    assert copy is not selector
    assert copy.get_params() == selector.get_params()
    assert copy.get_params()["n_candidates"] == 7
    with pytest.raises(ValueError, match="Invalid parameter 'pool'"):
        selector.set_params(pool=3)
