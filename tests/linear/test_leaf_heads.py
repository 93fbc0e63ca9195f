import numpy as np
import pytest
from numpy.testing import assert_allclose

from surff import FourierFeatures
from surff.linear import (
    LeafRows,
    SingularError,
    accumulate,
    add_leaf_decisions,
    common_heads,
    common_left_out,
    joint_heads,
    joint_left_out,
    solve,
)

RNG = np.random.default_rng(0)
N, L = 150, 5
X = RNG.normal(size=(N, 3))
Y = np.column_stack([np.sin(X[:, 0]) + (X[:, 1] > 0), X[:, 2] ** 2 + 5.0])
WEIGHT = RNG.uniform(0.2, 2.0, size=N)
WEIGHT[5] = 0.0
# A leaf without rows, leaves of fewer rows than columns, and of more.
LEAVES = np.repeat([0, 1, 3, 4], [60, 70, 8, 12])
MAP = FourierFeatures(20, random_state=0).fit(X).feature_map()
ALPHAS, A = np.array([0.3, 0.7]), 0.5
for array in (X, Y, WEIGHT, LEAVES, ALPHAS):
    array.flags.writeable = False


def leaf_rows(weight=WEIGHT, intercept=True, leaves=LEAVES, **other):
    arguments = {"feature_map": MAP, "X": X, "Y": Y, **other}
    return LeafRows(
        *arguments.values(), weight, leaves, n_leaves=L, fit_intercept=intercept
    )


def dense(weight, intercept, target, a=A):
    """The whole problem at once: columns, penalties, coefficients."""
    Z = np.hstack([MAP(X), np.ones((N, 1))]) if intercept else MAP(X)
    p = Z.shape[1]
    columns = np.zeros((N, p * (1 + L)))
    columns[:, :p] = Z
    for i, leaf in enumerate(LEAVES):
        columns[i, p * (1 + leaf) : p * (2 + leaf)] = Z[i]
    penalty = np.full(p * (1 + L), a)
    penalty[:p] = ALPHAS[target]
    if intercept:
        penalty[p - 1] = 0.0
    W = np.ones(N) if weight is None else weight
    matrix = columns.T @ (columns * W[:, None]) + np.diag(penalty)
    solution = np.linalg.solve(matrix, columns.T @ (W * Y[:, target]))
    return columns, p, solution


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("weight", [None, WEIGHT])
def test_joint_solution_is_that_of_the_whole_problem(weight, intercept):
    found = joint_heads(leaf_rows(weight, intercept), ALPHAS, A)
    for target in range(2):
        _, p, solution = dense(weight, intercept, target)
        assert_allclose(found.common[:, target], solution[:p], atol=1e-9)
        own = solution[p:].reshape(L, p)
        assert_allclose(found.leaves[:, :, target], own, atol=1e-9)


def test_residuals_left_out_are_those_of_refits():
    rows = leaf_rows()
    heads = joint_heads(rows, ALPHAS, A)
    residuals = joint_left_out(rows, ALPHAS, A, heads)
    for i in (0, 5, 75, 131, 149):
        weight = WEIGHT.copy()
        weight[i] = 0.0
        for target in range(2):
            columns, _, solution = dense(weight, True, target)
            expected = Y[i, target] - columns[i] @ solution
            assert_allclose(residuals[i, target], expected, rtol=1e-8)


@pytest.mark.parametrize("intercept", [True, False])
def test_common_residuals_left_out_are_those_of_refits(intercept):
    equations = accumulate(MAP, X, Y, WEIGHT)
    residuals = common_left_out(equations, ALPHAS, intercept, MAP, X, Y, WEIGHT)
    for i in (0, 5, 75):
        weight = WEIGHT.copy()
        weight[i] = 0.0
        centred = accumulate(MAP, X, Y, weight).centred(intercept)
        for target, alpha in enumerate(ALPHAS):
            coef, constant = solve(centred, alpha)
            expected = Y[i] - MAP(X[i : i + 1])[0] @ coef - constant
            assert_allclose(residuals[i, target], expected[target], rtol=1e-8)


def test_common_residuals_without_regularisation_still_guide():
    doubled = np.hstack([X, X])
    features = FourierFeatures(20, random_state=0).fit(doubled).feature_map()
    equations = accumulate(features, doubled[:8], Y[:8])  # 20 columns, 8 rows
    residuals = common_left_out(
        equations, np.zeros(2), True, features, doubled[:8], Y[:8]
    )
    assert np.isfinite(residuals).all()


@pytest.mark.parametrize("intercept", [True, False])
def test_strongly_shrunk_leaves_leave_the_common_head(intercept):
    found = joint_heads(leaf_rows(WEIGHT, intercept), ALPHAS, 1e12)
    centred = accumulate(MAP, X, Y, WEIGHT).centred(intercept)
    for target, alpha in enumerate(ALPHAS):
        coef, constant = solve(centred, alpha)
        assert_allclose(found.common[:20, target], coef[:, target], atol=1e-8)
        if intercept:
            assert_allclose(found.common[20, target], constant[target], atol=1e-8)
    assert_allclose(found.leaves, 0.0, atol=1e-8)


def test_order_of_rows_and_batches_does_not_matter():
    order = np.random.default_rng(1).permutation(N)
    found = joint_heads(
        leaf_rows(WEIGHT[order], leaves=LEAVES[order], X=X[order], Y=Y[order]),
        ALPHAS,
        A,
    )
    expected = joint_heads(leaf_rows(), ALPHAS, A)
    assert_allclose(found.common, expected.common, atol=1e-10)
    assert_allclose(found.leaves, expected.leaves, atol=1e-10)


def test_rows_of_no_leaf_are_left_out():
    out = LEAVES.copy()
    out[::3] = -1
    weight = WEIGHT.copy()
    weight[::3] = 0.0
    found = joint_heads(leaf_rows(leaves=out), ALPHAS, A)
    expected = joint_heads(leaf_rows(weight), ALPHAS, A)
    assert_allclose(found.leaves, expected.leaves, atol=1e-10)


def test_tiny_alphas_are_singular_and_others_of_the_grid_are_solved():
    # Repeated rows: inner products of rank one.
    same = np.repeat(X[:1], N, axis=0)
    rows = leaf_rows(None, X=same)
    tiny, fine = common_heads(rows, ALPHAS, np.array([1e-18, 0.5]))
    assert tiny is None
    assert np.isfinite(fine).all()
    with pytest.raises(SingularError, match="alpha of the leaves"):
        joint_heads(rows, ALPHAS, 1e-18)


def test_single_precision_rows_are_summed_in_double():
    rows = leaf_rows(None, feature_map=MAP.astype(np.float32), X=X.astype(np.float32))
    found = joint_heads(rows, ALPHAS, 1e-6)
    assert found.common.dtype == np.float64
    assert np.isfinite(found.leaves).all()


@pytest.mark.parametrize("m", [1, 7, 8, 20])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_decisions_are_dot_products(m, dtype):
    rng = np.random.default_rng(0)
    Z, coef = rng.normal(size=(9, m)), rng.normal(size=(4, 2, m))
    intercept, leaves = rng.normal(size=(4, 2)), rng.integers(4, size=(9, 3))
    expected = np.ones((9, 2))
    for t in range(3):
        expected += np.einsum("im,ikm->ik", Z, coef[leaves[:, t]])
        expected += intercept[leaves[:, t]]
    found = np.ones((9, 2), dtype)
    parts = (a.astype(dtype) for a in (Z, coef, intercept))
    Z, coef, intercept = parts
    add_leaf_decisions(found, Z, leaves, coef, intercept)
    assert_allclose(found, expected, rtol=1e-4 if dtype == np.float32 else 1e-12)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("leaves", np.full((9, 1), 4), "below 4"),
        ("leaves", np.full((9, 1), -1), "below 4"),
        ("leaves", np.zeros((8, 1), np.int64), "leaves must be a C"),
        ("coef", np.zeros((4, 1, 3), np.float32), "coef must be a C"),
        ("intercept", np.zeros((3, 1)), "intercept must be a C"),
        ("Z", np.zeros((3, 9)).T, "Z must be a C"),
    ],
)
def test_compiled_code_never_reads_out_of_bounds(name, value, message):
    arguments = {
        "decisions": np.zeros((9, 1)),
        "Z": np.zeros((9, 3)),
        "leaves": np.zeros((9, 1), np.int64),
        "coef": np.zeros((4, 1, 3)),
        "intercept": np.zeros((4, 1)),
    }
    with pytest.raises(ValueError, match=message):
        add_leaf_decisions(**{**arguments, name: value})
