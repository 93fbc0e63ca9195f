import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import Ridge, RidgeCV
from sklearn.model_selection import KFold, LeaveOneOut, RepeatedKFold, ShuffleSplit

from surff.kernels import FourierMap
from surff.linear import (
    SOLVERS,
    AlphaPath,
    NormalEquations,
    accumulate,
    best_index,
    coefficient_path,
    gcv_errors,
    held_out_decisions,
    leave_one_out_decisions,
    relative_grid,
    splits_equations,
    squared_errors,
)

ALPHAS = np.array([1e-3, 0.7, 50.0])


def problem(n=60, d=3, s=5, k=2, seed=0):
    """Data, a feature map and whole-number weights, some of them zero."""
    rng = np.random.default_rng(seed)
    X, Y = rng.normal(size=(n, d)), rng.normal(size=(n, k)) - 0.3
    weight = rng.integers(0, 4, size=n).astype(float)
    return FourierMap(rng.normal(size=(s, d))), X, Y, weight


def assert_same_sums(first, second):
    for name in ("moments", "feature_sum", "target_sum", "target_square", "weight_sum"):
        a, b = getattr(first, name), getattr(second, name)
        assert_allclose(a, b, err_msg=name, rtol=1e-10, atol=1e-10)
    assert_allclose(np.triu(first.gram), np.triu(second.gram), rtol=1e-10, atol=1e-10)


def overlapping(n):
    """Splits that no splitter of k folds makes: repeated rows, rows left out."""
    return [
        (np.array([0, 0, 1, 5, 7]), np.array([2, 3])),
        (np.arange(10, n), np.arange(10)),
    ]


def gapped(n):
    """Every row held out once, but not every other row trained on."""
    half = n // 2
    return [
        (np.arange(half, n), np.arange(half)),
        (np.arange(half - 1), np.arange(half, n)),
    ]


SPLITTERS = {
    "k folds": KFold(4),
    "shuffled folds": KFold(3, shuffle=True, random_state=0),
    "leave one out": LeaveOneOut(),
    "random halves": ShuffleSplit(3, test_size=0.5, random_state=0),
    "repeated folds": RepeatedKFold(n_splits=2, n_repeats=2, random_state=0),
}
SPLITS = {
    "overlapping": overlapping,
    "gapped": gapped,
    **{
        name: lambda n, splitter=splitter: list(splitter.split(np.zeros(n)))
        for name, splitter in SPLITTERS.items()
    },
}


@pytest.mark.parametrize("splits", sorted(SPLITS))
@pytest.mark.parametrize("weighted", [False, True])
def test_splits_hold_the_sums_of_their_rows(splits, weighted):
    feature_map, X, Y, weight = problem()
    weight = weight if weighted else None
    splits = SPLITS[splits](len(X))
    total, equations = splits_equations(feature_map, X, Y, splits, weight)
    assert_same_sums(total, accumulate(feature_map, X, Y, weight))
    for _ in range(2):  # it may be asked again
        for part, (train, test) in zip(equations(), splits, strict=True):
            assert_array_equal(part.test_rows, test)
            expected = accumulate(feature_map, X, Y, weight, train)
            assert_same_sums(part.train, expected)
            assert_same_sums(part.test, accumulate(feature_map, X, Y, weight, test))


@pytest.mark.parametrize("solver", sorted(SOLVERS))
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_paths_equal_ridge(solver, fit_intercept, weighted):
    feature_map, X, Y, weight = problem()
    weight = weight if weighted else None
    equations = accumulate(feature_map, X, Y, weight)
    coefs, intercepts = coefficient_path(equations, ALPHAS, fit_intercept, solver)
    assert coefs.shape == (10, 3, 2)
    assert intercepts.shape == (3, 2)
    Z = feature_map(X)
    for i, alpha in enumerate(ALPHAS):
        ridge = Ridge(alpha, fit_intercept=fit_intercept)
        ridge.fit(Z, Y, sample_weight=weight)
        assert_allclose(coefs[:, i], ridge.coef_.T, rtol=1e-7)
        assert_allclose(intercepts[i], ridge.intercept_ + np.zeros(2), rtol=1e-7)


def test_singular_alphas_are_nan_in_the_path():
    feature_map, X, Y, _ = problem(n=4)  # four rows, ten columns
    equations = accumulate(feature_map, X, Y)
    coefs, intercepts = coefficient_path(equations, [0.0, 0.7])
    assert np.isnan(coefs[:, 0]).all()
    assert np.isnan(intercepts[0]).all()
    assert np.isfinite(coefs[:, 1]).all()


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_squared_errors_are_those_of_the_residuals(weighted, fit_intercept):
    feature_map, X, Y, weight = problem()
    weight = weight if weighted else np.ones(60)
    train, test = np.arange(0, 60, 2), np.arange(1, 60, 2)
    coefs, intercepts = coefficient_path(
        accumulate(feature_map, X, Y, weight, train), ALPHAS, fit_intercept
    )
    held_out = accumulate(feature_map, X, Y, weight, test)
    errors = squared_errors(held_out, coefs, intercepts)
    predictions = np.einsum("nm,mak->nak", feature_map(X[test]), coefs) + intercepts
    squares = (Y[test, None] - predictions) ** 2
    expected = np.einsum("n,nak->ak", weight[test], squares)
    assert_allclose(errors, expected, rtol=1e-10)


def test_squared_errors_of_an_exact_fit_vanish_to_rounding():
    feature_map, X, _, _ = problem()
    beta = np.arange(20.0).reshape(10, 2) - 7
    Y = feature_map(X) @ beta + [0.7, -3.0]
    equations = accumulate(feature_map, X, Y)
    errors = squared_errors(equations, beta[:, None], np.array([[0.7, -3.0]]))
    # The sums are of size sum y^2: their rounding is what is left.
    assert np.all(abs(errors) < 1e-12 * (Y**2).sum(axis=0))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_held_out_decisions_are_the_linear_predictions(dtype):
    feature_map, X, Y, _ = problem(n=400)
    feature_map, X = feature_map.astype(dtype), X.astype(dtype)
    rows = np.random.default_rng(1).permutation(400)[:300]
    coefs, intercepts = coefficient_path(accumulate(feature_map, X, Y), ALPHAS)
    decisions = held_out_decisions(feature_map, X, rows, coefs, intercepts)
    assert decisions.shape == (300, 3, 2)
    expected = np.einsum("nm,mak->nak", feature_map(X[rows]).astype(float), coefs)
    tolerance = 1e-4 if dtype is np.float32 else 1e-11
    assert_allclose(decisions, expected + intercepts, rtol=0, atol=tolerance)


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_gcv_is_its_formula_with_the_hat_matrix(fit_intercept, weighted):
    feature_map, X, Y, weight = problem()
    repeats = weight.astype(int) if weighted else np.ones(60, int)
    # A weight is a repetition: the formula is written out for the repeated rows.
    Z, T = np.repeat(feature_map(X), repeats, axis=0), np.repeat(Y, repeats, axis=0)
    n = len(Z)
    equations = accumulate(feature_map, X, Y, weight if weighted else None)
    errors = gcv_errors(equations, ALPHAS, fit_intercept)
    if fit_intercept:
        Z, T = Z - Z.mean(axis=0), T - T.mean(axis=0)
    for i, alpha in enumerate(ALPHAS):
        hat = Z @ np.linalg.solve(Z.T @ Z + alpha * np.eye(10), Z.T)
        df = np.trace(hat) + fit_intercept
        expected = np.mean((T - hat @ T) ** 2, axis=0) / (1 - df / n) ** 2
        assert_allclose(errors[i], expected, rtol=1e-9)


def test_gcv_without_a_degree_of_freedom_is_infinite():
    feature_map, X, Y, _ = problem(n=4)
    errors = gcv_errors(accumulate(feature_map, X, Y), np.array([1e-20, 0.7]))
    assert np.isinf(errors[0]).all()
    assert np.isfinite(errors[1]).all()


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_leave_one_out_equals_fits_without_the_row(fit_intercept):
    feature_map, X, Y, _ = problem()
    equations = accumulate(feature_map, X, Y)
    decisions = leave_one_out_decisions(
        feature_map, X, Y, equations, ALPHAS, fit_intercept
    )
    assert decisions.shape == (60, 3, 2)
    Z = feature_map(X)
    for i, alpha in enumerate(ALPHAS):
        ridge = Ridge(alpha, fit_intercept=fit_intercept)
        for row in range(0, 60, 7):
            others = np.delete(np.arange(60), row)
            ridge.fit(Z[others], Y[others])
            expected = ridge.predict(Z[row : row + 1])[0]
            assert_allclose(decisions[row, i], expected, rtol=1e-7)
    reference = RidgeCV(ALPHAS, fit_intercept=fit_intercept, store_cv_results=True)
    squares = reference.fit(Z, Y).cv_results_
    residuals = (Y[:, None] - decisions) ** 2
    assert_allclose(residuals.transpose(0, 2, 1), squares, rtol=1e-6)


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_leave_one_out_of_a_weighted_row_leaves_one_of_its_copies_out(fit_intercept):
    feature_map, X, Y, weight = problem()
    source = np.repeat(np.arange(60), weight.astype(int))
    equations = accumulate(feature_map, X, Y, weight)
    weighted = leave_one_out_decisions(
        feature_map, X, Y, equations, ALPHAS, fit_intercept
    )
    repeated = leave_one_out_decisions(
        feature_map, X[source], Y[source],
        accumulate(feature_map, X[source], Y[source]), ALPHAS, fit_intercept,
    )  # fmt: skip
    assert_allclose(weighted[source], repeated, rtol=1e-8)


def test_grid_is_relative_to_the_mean_eigenvalue():
    feature_map, X, Y, _ = problem()
    equations = accumulate(feature_map, X, Y)
    decades = np.array([-2.0, 0.0, 1.5])
    Z = feature_map(X)
    mean = np.linalg.eigvalsh(Z.T @ Z).mean()
    assert_allclose(relative_grid(equations, False, decades), mean * 10.0**decades)
    mean = np.linalg.eigvalsh(60 * np.cov(Z.T, bias=True)).mean()
    assert_allclose(relative_grid(equations, True, decades), mean * 10.0**decades)


@pytest.mark.parametrize("largest", [0.0, 1e-160])
def test_grid_of_features_that_are_all_zero_is_absolute(largest):
    Z = largest * np.arange(12).reshape(4, 3) / 11  # squares of 1e-320
    equations = NormalEquations(3, 1).update(Z, np.ones((4, 1)))
    assert_allclose(relative_grid(equations, True, np.array([0.0, 1.0])), [1.0, 10.0])


def test_the_best_mean_wins_and_ties_go_to_the_larger_alpha():
    scores = np.array([[0.1, 0.5], [0.4, 0.4], [0.5, 0.3], [0.0, 0.0]])
    assert best_index(AlphaPath(np.arange(4.0), scores)) == 2
    assert best_index(AlphaPath(np.arange(4.0), -scores)) == 3
    assert best_index(AlphaPath(np.arange(4.0), np.ones((4, 2)))) == 3


def test_alphas_without_a_score_do_not_win():
    scores = np.array([[np.nan, 9.0], [0.4, 0.4], [0.1, 0.1]])
    assert best_index(AlphaPath(np.arange(3.0), scores)) == 1


def test_no_score_at_all_is_an_error():
    path = AlphaPath(np.array([0.0, 1e-9]), np.full((2, 3), np.nan))
    message = r"no alpha .* could be scored: .*alphas=\[0.0, 1e-09\]; add larger"
    with pytest.raises(ValueError, match=message):
        best_index(path)
