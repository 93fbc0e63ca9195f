import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone

from surff.kernels import fourier_features
from surff.selection import (
    COMPRESSORS,
    EERF,
    RESAMPLERS,
    SELECTORS,
    Compression,
    KernelAlignment,
    RidgeLeverage,
    SurrogateLeverage,
    aligned_probabilities,
    all_pairs_gram,
    sampled_pairs_gram,
)
from surff.selection.base import n_candidates
from surff.selection.leverage import sampled_rows
from surff.selection.resampling import (
    inclusion_probabilities,
    mixture,
    multinomial,
    reweight,
    without_replacement,
)

#: Probability with which correct code may fail a statistical test.
LEVEL = 1e-9

#: Selectors whose kernel estimates that of the pool, and those with scores.
UNBIASED = ["leverage", "surrogate"]
SCORING = [*UNBIASED, "alignment", "eerf"]


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
        for name in UNBIASED
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


@pytest.mark.parametrize("name", UNBIASED)
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
    [
        RidgeLeverage(0.7),
        SurrogateLeverage(),
        SurrogateLeverage(ridge_term=True),
        EERF(),
        KernelAlignment(),
    ],
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


@pytest.mark.parametrize("name", SCORING)
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


@pytest.mark.parametrize(
    "selector",
    [
        RidgeLeverage(0.7, n_candidates=12),
        RidgeLeverage(0.7, n_candidates=12, n_rows=4),
        Compression(n_candidates=12),
        Compression(n_candidates=12, n_pairs=20),
    ],
    ids=str,
)
def test_rules_that_do_not_look_at_the_target(selector):
    X, W, Y = pool(size=12)
    assert not selector.needs_target
    first = select(selector, X, W, Y, 5)
    second = select(selector, X, W, None, 5)
    assert_array_equal(first.frequencies, second.frequencies)


def test_rules_that_look_at_the_target():
    X, W, Y = pool(n=60, size=40)
    for name in ("surrogate", "eerf", "alignment"):
        assert SELECTORS[name].needs_target
        selector = SELECTORS[name](n_candidates=40)
        first, second = select(selector, X, W, Y, 5), select(selector, X, W, Y**2, 5)
        assert (first.frequencies != second.frequencies).any()


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
    for Scoring in (SurrogateLeverage, EERF, KernelAlignment):
        message = rf"{Scoring.__name__} cannot rank .* 0.0; y is"
        with pytest.raises(ValueError, match=message):
            select(Scoring(n_candidates=12), X, W, 0 * Y, 5)
    with pytest.raises(ValueError, match=r"RidgeLeverage cannot rank .* alpha is far"):
        select(RidgeLeverage(1e30, n_candidates=12), X, W, Y, 5)
    with (
        np.errstate(over="ignore"),
        pytest.raises(ValueError, match=r"SurrogateLeverage cannot rank .* inf"),
    ):
        select(SurrogateLeverage(n_candidates=12), X, W, 1e200 * Y, 5)


@pytest.mark.parametrize("name", [*UNBIASED, "alignment"])
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
    selector = SELECTORS[name]().set_params(n_candidates=7)
    copy = clone(selector)
    assert copy is not selector
    assert copy.get_params() == selector.get_params()
    assert copy.get_params()["n_candidates"] == 7
    with pytest.raises(ValueError, match="Invalid parameter 'pool'"):
        selector.set_params(pool=3)


ALL = [
    *selectors(),
    RidgeLeverage(0.7, 12, "without_replacement", n_rows=4),
    EERF(12),
    *(
        KernelAlignment(rho, 12, resample)
        for rho in (0.1, 5.0)
        for resample in ("multinomial", "without_replacement")
    ),
    *(
        Compression(m, 12, n_pairs)
        for m in sorted(COMPRESSORS)
        for n_pairs in (None, 30)
    ),
]


@pytest.mark.parametrize("selector", ALL, ids=str)
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix, sparse.csr_array])
def test_every_rule_keeps_candidates_with_weights(selector, form):
    X, W, Y = pool(n=30, size=12)
    chosen = select(selector, form(X), W, Y, 5)
    assert chosen.frequencies.shape == (5, 2)
    assert chosen.importance_weights.shape == (5,)
    assert chosen.importance_weights.min() >= 0
    assert chosen.importance_weights.max() > 0
    found = (chosen.frequencies[:, None] == W).all(axis=2)
    assert found.any(axis=1).all()
    assert np.all(np.diff(found.argmax(axis=1)) >= 0)
    again = select(selector, form(X), W, Y, 5)
    assert_array_equal(again.frequencies, chosen.frequencies)
    assert_array_equal(again.importance_weights, chosen.importance_weights)


# -- rows drawn for ridge leverage -----------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
def test_leverage_on_drawn_rows_is_that_of_their_weighted_rows(weighted):
    X, W, _ = pool(n=30, size=8)
    weight = np.arange(30) % 4.0 if weighted else np.ones(30)
    selector = RidgeLeverage(0.7, n_rows=11)
    scores = selector.scores(
        W, X, None, weight if weighted else None, np.random.default_rng(5)
    )
    share = weight / weight.sum()
    rows, _ = without_replacement(share, 11, np.random.default_rng(5))
    pi = inclusion_probabilities(share, 11)
    expected = RidgeLeverage(0.7).scores(W, X[rows], None, weight[rows] / pi[rows])
    assert_allclose(scores, expected, rtol=1e-10)
    if not weighted:  # the scaled alpha of the paper
        scaled = RidgeLeverage(0.7 * 11 / 30).scores(W, X[rows], None)
        assert_allclose(scores, scaled, rtol=1e-10)
    assert abs(RidgeLeverage(0.7).scores(W, X, None) / scores - 1).max() > 0.01


def test_drawn_rows_estimate_the_gram_matrix_without_bias():
    # The mean of the rows' weights over R draws, each w_i / pi_i or zero: Hoeffding.
    weight = np.array([0.0, 1, 3, 2, 0, 1, 1, 40, 2])
    R, mean = 4000, np.zeros(9)
    rng = np.random.default_rng(0)
    for _ in range(R):
        rows, sampled = sampled_rows(9, 4, rng, weight)
        assert len(np.unique(rows)) == 4
        mean += sampled / R
    pi = inclusion_probabilities(weight / weight.sum(), 4)
    bound = np.divide(weight, pi, out=np.zeros(9), where=pi > 0)
    radius = bound * math.sqrt(math.log(2 * 9 / LEVEL) / (2 * R))
    assert np.all(abs(mean - weight) <= radius + 1e-12)


def test_as_many_rows_as_there_are_is_all_of_them():
    X, W, _ = pool(size=12)
    weight = np.array([0, 1, 3, 2, 0, 1, 1, 4, 2.0])
    everything = RidgeLeverage(0.7).scores(W, X, None, weight)
    for n_rows in (7, 9, 1000):  # two weigh nothing
        scores = RidgeLeverage(0.7, n_rows=n_rows).scores(W, X, None, weight)
        assert_array_equal(scores, everything)


def test_leverage_of_drawn_rows_comes_close():
    rng = np.random.default_rng(0)
    X, W = rng.normal(size=(4000, 2)), rng.normal(size=(8, 2))
    exact = RidgeLeverage(40.0).scores(W, X, None)
    close = RidgeLeverage(40.0, n_rows=1000).scores(W, X, None, None, rng)
    # Without the scaling of alpha the scores would be far lower.
    assert_allclose(close, exact, rtol=0.05)
    few = X[:1000]
    assert abs(RidgeLeverage(40.0).scores(W, few, None) / exact - 1).max() > 0.05


def test_drawing_rows_needs_a_generator():
    X, W, _ = pool(size=12)
    with pytest.raises(ValueError, match="n_rows draws rows: scores requires rng"):
        RidgeLeverage(n_rows=3).scores(W, X, None)


@pytest.mark.parametrize("value", [0, -1, 2.0, 0.5, True, "2"])
def test_bad_numbers_of_rows_and_pairs_are_named(value):
    X, W, Y = pool(size=12)
    with pytest.raises(ValueError, match="n_rows must be None or an int >= 1, got"):
        select(RidgeLeverage(n_candidates=12, n_rows=value), X, W, Y, 5)
    with pytest.raises(ValueError, match="n_pairs must be None or an int >= 1, got"):
        select(Compression(n_candidates=12, n_pairs=value), X, W, Y, 5)


# -- EERF ------------------------------------------------------------------------------


def test_eerf_scores_are_the_papers_at_the_best_phase():
    X, W, Y = pool(n=50, size=12, k=1)
    scores = EERF().scores(W, X, Y)
    phases = np.linspace(0, 2 * np.pi, 20_001)
    for w, score in zip(W, scores, strict=True):
        paper = abs(np.cos(np.add.outer(X @ w, phases)).T @ Y[:, 0]) / 50
        assert score == pytest.approx(paper.max(), rel=1e-7)


def test_eerf_adds_the_squares_of_targets():
    X, W, Y = pool(n=50, size=12, k=3)
    single = [EERF().scores(W, X, Y[:, [j]]) ** 2 for j in range(3)]
    assert_allclose(EERF().scores(W, X, Y) ** 2, sum(single), rtol=1e-10)


def test_eerf_keeps_the_best_with_weight_one():
    X, W, Y = pool(n=50, size=12)
    best = np.sort(np.argsort(EERF().scores(W, X, Y))[-5:])
    chosen = select(EERF(n_candidates=12), X, W, Y, 5)
    assert_array_equal(chosen.frequencies, W[best])
    assert_array_equal(chosen.importance_weights, np.ones(5))
    # Nothing is random but the pool.
    again = select(EERF(n_candidates=12), X, W, Y, 5, seed=1)
    assert_array_equal(again.frequencies, chosen.frequencies)


# -- kernel alignment ------------------------------------------------------------------


def learned(W, X, Y, rho):
    """The learned probabilities and their kernel."""
    z = np.exp(-1j * X @ W.T)
    q = aligned_probabilities((abs(z.conj().T @ Y) ** 2).sum(axis=1), rho)
    return q, kernel(X, W, len(q) * q)


def test_alignment_raises_the_alignment_of_the_kernel():
    X, W, Y = pool(n=40, size=30)
    aligned = [np.sum(learned(W, X, Y, rho)[1] * (Y @ Y.T)) for rho in (0.01, 1, 9)]
    assert np.sum(kernel(X, W) * (Y @ Y.T)) < aligned[0] < aligned[1] < aligned[2]


def test_draws_from_the_learned_probabilities_have_weight_one():
    X, W, Y = pool(n=40, size=30)
    q, _ = learned(W, X, Y, 2.0)
    chosen = select(KernelAlignment(2.0, 30), X, W, Y, 6)
    indices, _ = multinomial(q, 6, np.random.default_rng(0))
    assert_array_equal(chosen.frequencies, W[indices])
    assert_allclose(chosen.importance_weights, 1, rtol=1e-9)


@pytest.mark.parametrize("resample", ["multinomial", "without_replacement"])
def test_aligned_selections_average_to_the_learned_kernel(resample):
    X, W, Y = pool(size=12)
    q, expected = learned(W, X, Y, 0.6)
    s = 5
    assert np.count_nonzero(q) > s
    selector, R = KernelAlignment(0.6, 12, resample), 3000
    mean, rng = 0.0, np.random.default_rng(0)
    for _ in range(R):
        chosen = selector.select(lambda n: W, X, Y, s, rng)
        mean = mean + kernel(X, *chosen) / R
    # Hoeffding over the R kernels, each within the mean weight of zero: union.
    pi = inclusion_probabilities(q, s)
    weights = np.divide(s * q, pi, out=np.zeros(12), where=pi > 0)
    bound = 1.0 if resample == "multinomial" else np.sort(weights)[-s:].mean()
    radius = bound * math.sqrt(2 * math.log(2 * 81 / LEVEL) / R)
    assert abs(mean - expected).max() < radius
    assert abs(mean - kernel(X, W)).max() > radius


def test_a_small_support_is_kept_exactly():
    X, W, Y = pool(size=12)
    q, expected = learned(W, X, Y, 4.0)
    assert np.count_nonzero(q) < 8
    chosen = select(KernelAlignment(4.0, 12, "without_replacement"), X, W, Y, 8)
    assert np.count_nonzero(chosen.importance_weights) == np.count_nonzero(q)
    assert len(np.unique(chosen.frequencies, axis=0)) == 8
    assert_allclose(kernel(X, *chosen), expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("rho", [0, -1.0, np.nan, np.inf, "1"])
def test_bad_radii_are_named(rho):
    X, W, Y = pool(size=12)
    with pytest.raises(ValueError, match="rho must be a positive finite number"):
        select(KernelAlignment(rho, 12), X, W, Y, 5)


def test_alignment_does_not_reweight():
    X, W, Y = pool(size=12)
    with pytest.raises(ValueError, match=r"resample must be .* got 'reweight'"):
        select(KernelAlignment(1.0, 12, "reweight"), X, W, Y, 12)


# -- compression -----------------------------------------------------------------------


def test_mixtures_are_filled_with_candidates_of_weight_zero():
    indices, weights = mixture(np.array([0.0, 0.2, 0.0, 0.0, 0.7]), 4)
    assert_array_equal(indices, [0, 1, 2, 4])
    assert_allclose(weights, [0, 0.8, 0, 2.8], rtol=1e-12)


@pytest.mark.parametrize("method", sorted(COMPRESSORS))
@pytest.mark.parametrize("n_pairs", [None, 40])
def test_compressed_kernels_are_those_of_the_algorithm(method, n_pairs):
    X, W, Y = pool(n=30, size=25)
    weight = np.arange(30) % 3.0
    if n_pairs is None:
        gram = all_pairs_gram(W, X, weight)
    else:
        gram = sampled_pairs_gram(W, X, 40, np.random.default_rng(0), weight)
    coefficients = COMPRESSORS[method](gram, 6)
    selector = Compression(method, 25, n_pairs)
    chosen = select(selector, X, W, Y, 6, sample_weight=weight)
    expected = kernel(X, W, 25 * coefficients)
    assert_allclose(kernel(X, *chosen), expected, rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("method", sorted(COMPRESSORS))
@pytest.mark.parametrize("n_pairs", [None, 4000])
def test_compressed_kernels_are_near_that_of_the_pool(method, n_pairs):
    X, W, _ = pool(n=100, d=3, size=200)
    exact = kernel(X, W)
    chosen = select(Compression(method, 200, n_pairs), X, W, None, 30)
    compressed = np.linalg.norm(kernel(X, *chosen) - exact)
    for first in range(0, 180, 30):
        chance = W[first : first + 30]
        assert compressed < 0.6 * np.linalg.norm(kernel(X, chance) - exact)


def test_fewer_candidates_than_columns_fill_the_map():
    # One row: every candidate has the same cosines, and one is enough.
    X, W, _ = pool(n=1, size=12)
    chosen = select(Compression(n_candidates=12), X, W, None, 5)
    assert_allclose(np.sort(chosen.importance_weights), [0, 0, 0, 0, 5], rtol=1e-12)
    assert len(np.unique(chosen.frequencies, axis=0)) == 5


def test_compression_weights_repeat_rows():
    X, W, _ = pool(size=12)
    weight = np.array([0, 1, 3, 2, 0, 1, 1, 4, 2])
    repeated = np.repeat(X, weight, axis=0)
    for selector in (Compression(n_candidates=12), Compression("giga", 12, 50)):
        first = select(selector, X, W, None, 5, sample_weight=weight.astype(float))
        second = select(selector, repeated, W, None, 5)
        assert_array_equal(first.frequencies, second.frequencies)
        assert_allclose(*(c.importance_weights for c in (first, second)), rtol=1e-9)


def test_unknown_methods_list_the_known_ones():
    X, W, Y = pool(size=12)
    with pytest.raises(ValueError, match=r"method must be one of \['frank-wolfe', 'gi"):
        select(Compression("omp", 12), X, W, Y, 5)
