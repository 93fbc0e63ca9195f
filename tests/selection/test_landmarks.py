import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis.strategies import floats, integers, sampled_from
from numpy.testing import assert_allclose, assert_array_equal
from scipy import linalg, sparse, stats
from sklearn.gaussian_process.kernels import RBF
from sklearn.metrics.pairwise import (
    chi2_kernel,
    cosine_similarity,
    linear_kernel,
    polynomial_kernel,
    rbf_kernel,
)
from threadpoolctl import threadpool_limits

from surff.kernels import (
    KERNELS,
    Cauchy,
    Gaussian,
    KernelMatrix,
    NystroemMap,
    PairwiseKernel,
    PrecomputedKernel,
    Product,
    SpectralKernel,
    inverse_root,
)
from surff.selection import (
    LANDMARK_RULES,
    kmeans_centres,
    leverage_rows,
    recursive_leverage,
    ridge_leverage_estimates,
    rpcholesky_rows,
    uniform_rows,
)
from surff.selection.landmarks import rejection_cholesky

RNG = np.random.default_rng(0)
X = RNG.normal(size=(70, 3))
X.flags.writeable = False

#: Random tests pass with the seeds they have; correct code fails a new one this often.
ERROR = 1e-9


@pytest.fixture(scope="module", autouse=True)
def _one_thread():
    """Small matrices: on a busy machine BLAS threads wait for one another."""
    with threadpool_limits(1, user_api="blas"):
        yield


def gaussian_matrix(X, gamma=0.3, sample_weight=None):
    return KernelMatrix(SpectralKernel(Gaussian(), gamma), X, sample_weight)


def given_matrix(K, sample_weight=None):
    return KernelMatrix(PrecomputedKernel(), K, sample_weight)


def low_rank(n, rank, seed, dtype=np.float64):
    B = np.random.default_rng(seed).normal(size=(n, rank))
    return (B @ B.T).astype(dtype)


# The root of the pseudo-inverse


@given(n=integers(1, 12), rank=integers(1, 12), seed=integers(0, 99))
def test_inverse_root_is_the_root_of_the_pseudo_inverse(n, rank, seed):
    K = low_rank(n, rank, seed)
    root, smallest = inverse_root(K)
    assert_allclose(root, root.T, atol=1e-13 * abs(root).max())
    assert smallest > -1e-13
    # To first order K root^2 K errs by rounding times the root of the condition.
    assert_allclose(K @ root @ root @ K, K, atol=1e-7 * np.abs(K).max())
    assert np.linalg.matrix_rank(root) <= min(n, rank)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("negative", [0.0, -1e-8, -1e-5])
def test_tiny_negative_eigenvalues_do_no_harm(dtype, negative):
    # Rows 18 and 24 of CASES.md: a Gram matrix that rounding made indefinite.
    Q, _ = np.linalg.qr(RNG.normal(size=(6, 6)))
    eigenvalues = np.array([3.0, 1.0, 0.5, 0.1, 0.0, negative])
    K = ((Q * eigenvalues) @ Q.T).astype(dtype)
    root, smallest = inverse_root(K)
    assert np.isfinite(root).all()
    assert smallest == pytest.approx(negative / 3, abs=1e-7)
    expected = (Q[:, :4] / np.sqrt(eigenvalues[:4])) @ Q[:, :4].T
    assert_allclose(root, expected, atol=2e-5 if dtype == np.float32 else 1e-12)


def test_forced_negatives_cut_positive_eigenvalues_of_their_size():
    K = np.diag([1.0, 2e-9, 1e-9, -1.5e-9])
    root, _ = inverse_root(K)
    assert_allclose(np.diag(root), [1.0, 1 / math.sqrt(2e-9), 0, 0], rtol=1e-12)
    # No further than 1e-4 of the largest, however indefinite the matrix is.
    root, smallest = inverse_root(np.diag([1.0, 2e-4, -0.3]))
    assert_allclose(np.diag(root), [1.0, 1 / math.sqrt(2e-4), 0], rtol=1e-12)
    assert smallest == -0.3


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_cut_is_eps_times_size_times_the_largest(dtype):
    cut = 4 * np.finfo(dtype).eps * 5.0
    for value, kept in ((0.9 * cut, False), (1.1 * cut, True)):
        root, _ = inverse_root(np.diag([5.0, 1.0, 1.0, value]).astype(dtype))
        assert (root[3, 3] > 0) == kept
    K = np.diag([5.0, 1.0, 1.0, 0.01]).astype(dtype)
    assert inverse_root(K, eps=1e-3)[0][3, 3] == 0


def test_rounding_of_entries_does_not_grow_with_the_largest_eigenvalue():
    # 200 equal rows have the eigenvalue 200; float32 entries of 1 err by 1e-7 still.
    K = np.ones((201, 201), np.float32)
    K[-1, :-1] = K[:-1, -1] = 0.995
    root, _ = inverse_root(K)
    assert_allclose(K @ root @ root @ K, K, atol=1e-5)
    assert np.linalg.matrix_rank(root) == 2


def test_a_matrix_of_zeros_gives_zeros():
    root, smallest = inverse_root(np.zeros((3, 3)))
    assert_array_equal(root, np.zeros((3, 3)))
    assert smallest == 0.0


# Kernel blocks


@pytest.mark.parametrize("name", sorted(KERNELS))
@pytest.mark.parametrize("gamma", [0.3, np.array([0.2, 0.7, 1.1])])
@pytest.mark.parametrize("share", [0.02, 0.5])
def test_sparse_blocks_equal_dense_ones(name, gamma, share):
    rng = np.random.default_rng(1)
    d = 3 if np.ndim(gamma) else 60
    thin = np.where(rng.random((40, d)) < share, rng.normal(size=(40, d)), 0.0)
    kernel = SpectralKernel(KERNELS[name](), gamma)
    expected = kernel(thin, thin[:7])
    assert_allclose(expected, KERNELS[name]().kernel(thin, thin[:7], gamma), rtol=1e-12)
    for form in (sparse.csr_array, sparse.csr_matrix):
        csr = form(thin)
        for rows, landmarks in ((csr, csr[:7]), (csr, thin[:7]), (thin, csr[:7])):
            assert_allclose(kernel(rows, landmarks), expected, atol=1e-13)


@pytest.mark.parametrize("measure", [Cauchy(), Product([Gaussian(), Cauchy()])])
def test_kernels_without_sparse_code_take_sparse_rows(measure):
    thin = np.where(abs(X) > 1, X, 0.0)
    kernel = SpectralKernel(measure, 0.4)
    csr = sparse.csr_array(thin)
    assert_allclose(kernel(csr, csr[:5]), measure.kernel(thin, thin[:5], 0.4))


def test_equal_sparse_rows_are_at_distance_zero():
    # |x|^2 - 2 x.y + |y|^2 leaves 1e-8 of a distance, and a rough kernel shows it.
    rows = sparse.csr_array(1e3 * X)
    kernel = SpectralKernel(KERNELS["exponential"](), 0.3)
    assert_array_equal(np.diagonal(kernel(rows, rows)), np.ones(70))


def test_a_block_does_not_depend_on_the_rows_beside_it():
    kernel = SpectralKernel(Gaussian(), 0.3)
    far = np.vstack([X, X[:1] + 1e6])
    whole = kernel(far, X[:9])
    assert_allclose(whole[:70], kernel(X, X[:9]), rtol=1e-13)
    assert_allclose(whole[[3]], kernel(far[[3]], X[:9]), rtol=1e-13)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shift", [0.0, 1e4])
def test_a_large_mean_costs_no_digits(dtype, shift):
    rows = (X + shift).astype(dtype)
    values = SpectralKernel(Gaussian(), 0.3)(rows, rows[:9])
    # Exact to float64 for the rows as they are: they are centred before the product.
    wide = rows.astype(np.longdouble)
    squares = ((wide[:, None] - wide[None, :9]) ** 2).sum(axis=2)
    assert_allclose(values, np.exp(-0.3 * squares).astype(float), rtol=1e-10)


@pytest.mark.parametrize(
    ("metric", "params", "function"),
    [
        ("linear", {}, linear_kernel),
        ("poly", {"degree": 2, "gamma": 0.5, "coef0": 0.7}, polynomial_kernel),
        ("cosine", {}, cosine_similarity),
        ("chi2", {"gamma": 0.7}, chi2_kernel),
        (RBF(0.8), {}, lambda X, Y: RBF(0.8)(X, Y)),
        (lambda x, y, p: abs(x @ y) ** p, {"p": 2}, lambda X, Y, p: abs(X @ Y.T) ** p),
    ],
)
def test_pairwise_kernels_are_scikit_learns(metric, params, function):
    kernel = PairwiseKernel(metric, params)
    rows = abs(X)
    expected = function(rows, rows[:5], **params)
    assert_allclose(kernel(rows, rows[:5]), expected, rtol=1e-12)
    diagonal = np.diagonal(function(rows, rows, **params))
    assert_allclose(kernel.diagonal(rows), diagonal, rtol=1e-12)
    # float32 rows are evaluated in float64.
    single = kernel(rows.astype(np.float32), rows[:5].astype(np.float32))
    assert single.dtype == np.float64


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_precomputed_blocks_are_entries(form):
    K = rbf_kernel(X)
    kernel, indices = PrecomputedKernel(), np.array([3, 60, 8])
    assert_array_equal(kernel(form(K)[:10], indices), K[:10, indices])
    assert_array_equal(kernel.diagonal(form(K)), np.ones(70))


@pytest.mark.parametrize("weighted", [False, True])
def test_a_kernel_matrix_has_weighted_entries(weighted):
    weight = RNG.integers(0, 4, size=70) if weighted else None
    matrix = gaussian_matrix(X, sample_weight=weight)
    roots = np.ones(70) if weight is None else np.sqrt(weight)
    K = rbf_kernel(X, gamma=0.3) * roots * roots[:, None]
    rows, columns = np.array([4, 1, 9]), np.array([2, 69])
    assert_allclose(matrix.block(rows, columns), K[np.ix_(rows, columns)], rtol=1e-12)
    assert_allclose(matrix.diagonal(), np.diagonal(K), rtol=1e-12)
    assert matrix.n_samples == 70


# The map


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_map_is_its_formula_in_any_blocking(dtype):
    kernel, C = SpectralKernel(Gaussian(), 0.3), X[:11]
    root, _ = inverse_root(rbf_kernel(C, gamma=0.3))
    feature_map = NystroemMap(kernel, C, root, np.float64).astype(dtype)
    assert feature_map.n_components == 11
    assert feature_map.dtype == dtype
    rows = np.tile(X, (40, 1))
    Z = feature_map(rows)
    assert Z.dtype == dtype
    eps = 1e-6 if dtype == np.float32 else 1e-12
    assert_allclose(Z, rbf_kernel(rows, C, gamma=0.3) @ root, atol=eps)
    out = np.full((2800, 11), np.nan, dtype)
    assert feature_map(rows[:5], out=out[:5]).base is out
    assert_allclose(out[:5], Z[:5], atol=eps)
    assert np.isnan(out[5:]).all()


@pytest.mark.parametrize("rule", sorted(LANDMARK_RULES))
@given(
    n=integers(2, 25),
    m=integers(1, 30),
    d=integers(1, 4),
    gamma=floats(0.01, 10.0),
    seed=integers(0, 99),
)
def test_exact_on_landmarks_and_the_rest_is_positive(rule, n, m, d, gamma, seed):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, d)).round(rng.integers(0, 3))  # some of them repeat
    indices = LANDMARK_RULES[rule](gaussian_matrix(rows, gamma), m, rng)
    assert 1 <= len(indices) <= min(m, n)
    assert len(set(indices)) == len(indices)
    C, K = rows[indices], rbf_kernel(rows, gamma=gamma)
    root, _ = inverse_root(rbf_kernel(C, gamma=gamma))
    Z = NystroemMap(SpectralKernel(Gaussian(), gamma), C, root, np.float64)(rows)
    # Cut eigenvalues are below m eps times the largest, and rounding is amplified by
    # the root of their inverse: 1e-8 is what float64 leaves.
    assert_allclose(Z @ Z[indices].T, K[:, indices], atol=1e-6)
    assert linalg.eigvalsh(K - Z @ Z.T)[0] > -1e-6
    assert (np.einsum("ij,ij->i", Z, Z) < 1 + 1e-6).all()


# Rules


@pytest.mark.parametrize("rule", sorted(LANDMARK_RULES))
@pytest.mark.parametrize("n_landmarks", [1, 2, 20, 69])
def test_rules_choose_distinct_rows_of_positive_weight(rule, n_landmarks):
    weight = (np.arange(70) % 7 > 0) * RNG.uniform(0.1, 9.0, size=70)
    for sample_weight in (None, weight):
        matrix = gaussian_matrix(X, 2.0, sample_weight)
        indices = LANDMARK_RULES[rule](matrix, n_landmarks, np.random.default_rng(5))
        allowed = 70 if sample_weight is None else 60
        assert len(indices) == min(n_landmarks, allowed)
        assert len(set(indices)) == len(indices)
        if sample_weight is not None:
            assert (weight[indices] > 0).all()
        again = LANDMARK_RULES[rule](matrix, n_landmarks, np.random.default_rng(5))
        assert_array_equal(again, indices)


@pytest.mark.parametrize("rule", sorted(LANDMARK_RULES))
def test_rules_give_the_same_rows_by_any_view_of_the_matrix(rule):
    choose = LANDMARK_RULES[rule]
    K = rbf_kernel(X, gamma=2.0)
    matrices = [gaussian_matrix(X, 2.0), given_matrix(K), given_matrix(2.0 * K / 2.0)]
    first, *others = (
        choose(matrix, 20, np.random.default_rng(3)) for matrix in matrices
    )
    for other in others:
        assert_array_equal(other, first)


@pytest.mark.parametrize("rule", ["uniform", "rpcholesky"])
@pytest.mark.parametrize("weighted", [False, True])
def test_more_landmarks_extend_the_fewer_and_lower_the_trace_error(rule, weighted):
    weight = RNG.uniform(0.0, 2.0, size=70) if weighted else None
    matrix = gaussian_matrix(X, 1.0, weight)
    K = rbf_kernel(X, gamma=1.0)
    errors, before = [], np.empty(0)
    for m in (1, 2, 5, 17, 40, 70):
        indices = LANDMARK_RULES[rule](matrix, m, np.random.default_rng(2))
        assert_array_equal(indices[: len(before)], before)
        root, _ = inverse_root(K[np.ix_(indices, indices)])
        Z = K[:, indices] @ root
        errors.append(np.trace(K) - np.sum(Z**2))
        before = indices
    assert (np.diff(errors) < 0).all()
    assert errors[-1] < 1e-6


@pytest.mark.parametrize("rule", sorted(LANDMARK_RULES))
def test_a_first_landmark_is_drawn_as_often_as_it_must(rule):
    weight = np.array([1.0, 0.0, 3.0, 2.0, 0.5])
    B = np.random.default_rng(1).normal(size=(5, 5))
    K = B @ B.T
    matrix = given_matrix(K, weight)
    if rule == "uniform":
        expected = weight / weight.sum()
    else:
        expected = weight * np.diag(K)
        expected = expected / expected.sum()
    rng, n_trials = np.random.default_rng(0), 2000
    counts = np.zeros(5)
    for _ in range(n_trials):
        counts[LANDMARK_RULES[rule](matrix, 1, rng)[0]] += 1
    drawn = weight > 0
    assert counts[1] == 0
    if rule == "leverage":
        # Its probabilities are estimates; the smallest and largest keep their order.
        assert counts[drawn].min() > 0
        return
    assert stats.chisquare(counts[drawn], n_trials * expected[drawn]).pvalue > ERROR


@pytest.mark.parametrize("n_proposals", [1, 64])
def test_pivots_follow_the_residual_diagonal(n_proposals):
    # The law of the first three pivots, written out: acceleration must not change it.
    weight = np.array([1.0, 2.0, 1.0, 0.5])
    B = np.random.default_rng(4).normal(size=(4, 4)) + np.eye(4)
    K = B @ B.T
    W = K * np.sqrt(weight) * np.sqrt(weight)[:, None]

    def law(chosen):
        S = list(chosen)
        residual = W - W[:, S] @ np.linalg.solve(W[np.ix_(S, S)], W[S]) if S else W
        diagonal = np.diag(residual).clip(min=0.0)
        diagonal[S] = 0.0
        return diagonal / diagonal.sum()

    runs = list(itertools.permutations(range(4), 3))
    probability = np.array(
        [math.prod(law(run[:i])[run[i]] for i in range(3)) for run in runs]
    )
    assert probability.sum() == pytest.approx(1.0)
    matrix, rng = given_matrix(K, weight), np.random.default_rng(0)
    n_trials = 3000
    drawn = [
        tuple(rpcholesky_rows(matrix, 3, rng, n_proposals)) for _ in range(n_trials)
    ]
    counts = np.array([drawn.count(run) for run in runs])
    assert (n_trials * probability).min() > 5
    assert stats.chisquare(counts, n_trials * probability).pvalue > ERROR
    # Pivots that follow the diagonal as it was at first would be told apart.
    wrong = np.array(
        [
            math.prod(
                np.diag(W)[run[i]] / np.delete(np.diag(W), run[:i]).sum()
                for i in range(3)
            )
            for run in runs
        ]
    )
    assert stats.chisquare(counts, n_trials * wrong).pvalue < ERROR


def test_rejection_cholesky_factors_what_it_keeps():
    K = low_rank(6, 9, seed=1)
    thresholds = np.array([0.0, 1e9, 0.0, 0.0, 1e9, 0.0])
    kept, L = rejection_cholesky(K, thresholds, np.zeros(6))
    assert_array_equal(kept, [0, 2, 3, 5])
    assert_allclose(L @ L.T, K[np.ix_(kept, kept)], rtol=1e-12)
    assert_array_equal(L, np.tril(L))
    # A repetition has no residual left, and rounding is no pivot.
    twice = K[np.ix_([0, 0, 1], [0, 0, 1])]
    kept, _ = rejection_cholesky(twice, np.zeros(3), np.full(3, 1e-12))
    assert_array_equal(kept, [0, 2])


def test_rpcholesky_stops_where_the_residual_vanishes():
    # Row 3 of CASES.md: no row is chosen twice over.
    rows = np.repeat(X[:10], 20, axis=0)
    indices = rpcholesky_rows(gaussian_matrix(rows), 50, np.random.default_rng(0))
    assert len(indices) == 10
    assert len(np.unique(rows[indices], axis=0)) == 10
    # The rank of a linear kernel is the number of columns.
    matrix = KernelMatrix(PairwiseKernel("linear", {}), X)
    assert len(rpcholesky_rows(matrix, 50, np.random.default_rng(0))) == 3


def test_rpcholesky_needs_a_positive_diagonal():
    with pytest.raises(ValueError, match=r"needs a row with a positive value of k"):
        rpcholesky_rows(given_matrix(np.zeros((4, 4))), 2, np.random.default_rng(0))


def spiked():
    """A tight cluster of 3,000 rows and 30 rows far from it and from each other."""
    rng = np.random.default_rng(7)
    cluster = 1e-3 * rng.normal(size=(3000, 2))
    spikes = 100.0 * (1 + np.arange(30))[:, None] * [1.0, 0.0]
    return np.vstack([cluster, spikes])


def test_rpcholesky_beats_uniform_on_a_spiked_set():
    rows, m, found = spiked(), 60, {}
    matrix = gaussian_matrix(rows, gamma=1.0)
    for rule in LANDMARK_RULES:
        indices = LANDMARK_RULES[rule](matrix, m, np.random.default_rng(0))
        root, _ = inverse_root(matrix.block(indices, indices))
        Z = matrix.block(np.arange(3030), indices) @ root
        found[rule] = (indices >= 3000).sum(), 3030 - np.sum(Z**2)
    # Of 60 rows out of 3,030 more than 10 are spikes with a probability below 1e-9.
    assert stats.hypergeom(3030, 30, m).sf(10) < ERROR
    assert found["uniform"][0] <= 10
    assert found["uniform"][1] >= 20
    # Once one row of the cluster is a pivot, the residual of the cluster sums to less
    # than 0.03 and a spike's is 1. A pivot is a spike, while one is left, with a
    # probability above 0.97: 30 of 59 are, but for a probability below 1e-9.
    residual = 1 - matrix.block(np.arange(3000), np.array([0]))[:, 0] ** 2
    assert residual.sum() < 0.03
    assert stats.binom(59, 0.97).cdf(29) < ERROR
    assert found["rpcholesky"][0] == 30
    assert found["rpcholesky"][1] < 0.03
    # A spike's ridge leverage is 1 / (1 + alpha).
    assert found["leverage"][0] == 30


# Ridge leverage


@given(n=integers(1, 20), alpha=floats(1e-3, 1e2), seed=integers(0, 99))
def test_scores_from_all_rows_are_the_ridge_leverage(n, alpha, seed):
    rng = np.random.default_rng(seed)
    rows, weight = rng.normal(size=(n, 2)), rng.uniform(0.1, 3.0, size=n)
    every = np.arange(n)
    matrix = gaussian_matrix(rows, 0.7, weight)
    estimate = ridge_leverage_estimates(matrix, every, every, np.ones(n), alpha=alpha)
    K = matrix.block(every, every)
    exact = np.diag(K @ np.linalg.inv(K + alpha * np.eye(n)))
    # K - K (K + alpha I)^-1 K cancels before it is divided by alpha.
    assert_allclose(estimate.scores, exact, atol=1e-13 * n * np.max(K) / alpha)
    assert estimate.alpha == alpha


def test_a_weight_counts_as_a_repetition_in_the_leverage():
    weight = RNG.integers(1, 4, size=70)
    repeated = np.repeat(X, weight, axis=0)
    exact = []
    for rows, sample_weight in ((X, weight), (repeated, None)):
        every = np.arange(len(rows))
        matrix = gaussian_matrix(rows, 0.3, sample_weight)
        ones = np.ones(len(rows))
        exact.append(ridge_leverage_estimates(matrix, every, every, ones, alpha=0.7))
    summed = np.add.reduceat(exact[1].scores, np.cumsum(weight) - weight)
    assert_allclose(exact[0].scores, summed, rtol=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_scores_from_a_sample_are_within_the_papers_factor(seed):
    rng = np.random.default_rng(seed)
    n, alpha = 1000, 10.0
    rows = rng.normal(size=(n, 2))
    K = rbf_kernel(rows, gamma=0.1)
    inverse = np.linalg.inv(K + alpha * np.eye(n))
    exact = np.diag(K @ inverse)
    probability = np.minimum(1.0, 40.0 * exact)
    sample = np.flatnonzero(rng.random(n) < probability)
    assert len(sample) < n / 2
    weights = 1.0 / probability[sample]

    # The premise: B^T S S^T B + alpha I within a half of B^T B + alpha I, K = B B^T.
    eigenvalues, V = linalg.eigh(K)
    B = V * np.sqrt(eigenvalues.clip(min=0.0))
    full = B.T @ B + alpha * np.eye(n)
    sampled = (B[sample].T * weights) @ B[sample] + alpha * np.eye(n)
    ratios = linalg.eigh(sampled, full, eigvals_only=True)
    assert ratios[0] > 0.5
    assert ratios[-1] < 1.5

    def factors(weights):
        estimate = ridge_leverage_estimates(
            gaussian_matrix(rows, 0.1), np.arange(n), sample, weights, alpha=alpha
        )
        return 1.5 * estimate.scores / exact

    assert factors(weights).min() > 1 - 1e-9
    assert factors(weights).max() < 3 + 1e-9
    # Without its weights the sample would not do.
    assert factors(np.ones(len(sample))).max() > 3


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_recursive_scores_are_close_to_the_exact_ones(seed, weighted):
    rng = np.random.default_rng(seed)
    n = 600
    rows = rng.normal(size=(n, 2))
    weight = rng.uniform(0.5, 2.0, size=n) if weighted else None
    matrix = gaussian_matrix(rows, 0.2, weight)
    estimate = recursive_leverage(matrix, 120, rng)
    assert_array_equal(np.sort(estimate.rows), np.arange(n))
    K = matrix.block(estimate.rows, estimate.rows)
    exact = np.diag(K @ np.linalg.inv(K + estimate.alpha * np.eye(n)))
    # The last sample stands for half of the rows, in which leverage is up to twice as
    # large; the paper's factor 3 comes on top of it. Its proof asks for more rows than
    # the practical constants take: the few rows that none of the sample is near to
    # score higher still. No row scores too low.
    factor = 1.5 * np.minimum(1.0, estimate.scores) / exact
    assert factor.min() > 1
    assert np.quantile(factor, 0.9) < 6
    assert factor.max() < 10
    # The regularisation makes some log m * sum of scores rows of it, fewer than 120.
    assert 5 < exact.sum() < 30


def test_leverage_prefers_rows_that_others_do_not_represent():
    # 400 rows in a cluster and 8 apart: the uniform rule takes 8 * 40 / 408 of them.
    rng = np.random.default_rng(0)
    rows = np.vstack([0.1 * rng.normal(size=(400, 1)), 10 + 5 * np.arange(8)[:, None]])
    indices = leverage_rows(gaussian_matrix(rows, 1.0), 40, rng)
    assert (indices >= 400).sum() == 8


# Clusters


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_kmeans_finds_the_centres_of_clusters(dtype, form):
    rng = np.random.default_rng(0)
    means = 50.0 * rng.normal(size=(6, 3))
    rows = np.repeat(means, 50, axis=0) + 0.01 * rng.normal(size=(300, 3))
    centres = kmeans_centres(form(rows.astype(dtype)), 6, rng)
    assert centres.dtype == dtype
    distances = np.linalg.norm(centres[:, None] - means[None], axis=2)
    assert distances.min(axis=0).max() < 0.02


def test_kmeans_takes_repeated_few_and_weightless_rows():
    repeated = np.repeat(X[:10], 20, axis=0)
    centres = kmeans_centres(repeated, 50, np.random.default_rng(0))
    assert centres.shape == (50, 3)
    assert np.isfinite(centres).all()
    assert kmeans_centres(X, 100, np.random.default_rng(0)).shape == (70, 3)
    weight = np.zeros(70)
    weight[:4] = 1.0
    centres = kmeans_centres(X, 9, np.random.default_rng(0), weight)
    order = np.lexsort(centres.T), np.lexsort(X[:4].T)
    assert_allclose(centres[order[0]], X[:4][order[1]], rtol=1e-12)


def test_kmeans_looks_at_a_sample_of_the_rows():
    rows = np.random.default_rng(0).normal(size=(12_000, 1))
    centres = kmeans_centres(rows, 4, np.random.default_rng(0))
    assert centres.shape == (4, 1)


@pytest.mark.parametrize("rule", sorted(LANDMARK_RULES))
@given(seed=integers(0, 49), dtype=sampled_from([np.float32, np.float64]))
def test_rules_take_indefinite_matrices_of_rounding(rule, seed, dtype):
    # Row 24 of CASES.md: float32 Gram matrices have eigenvalues around -1e-8.
    K = low_rank(30, 3, seed, dtype)
    indices = LANDMARK_RULES[rule](given_matrix(K), 12, np.random.default_rng(seed))
    assert len(indices) == (3 if rule == "rpcholesky" else 12)
    root, smallest = inverse_root(K[np.ix_(indices, indices)])
    assert smallest > -1e-5
    Z = K[:, indices] @ root
    assert_allclose(Z @ Z.T, K, atol=(1e-3 if dtype == np.float32 else 1e-6))


def test_uniform_looks_at_nothing_but_the_weights():
    class Blind:
        sample_weight = np.ones(9)

    assert sorted(uniform_rows(Blind, 9, np.random.default_rng(0))) == [*range(9)]
