import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from surff.backend import exp_of_minus, write_gaussian

#: Relative error that the module promises for normal results.
BOUND = 3e-16


def run(d):
    values = np.array(d, dtype=np.float64)
    exp_of_minus(values)
    return values


def exact(d):
    """Of extended precision, rounded once."""
    return np.exp(-np.asarray(d, dtype=np.longdouble)).astype(np.float64)


@pytest.mark.parametrize("largest", [1e-9, 1e-3, 1.0, 30.0, 700.0])
def test_relative_error(largest):
    d = np.random.default_rng(0).uniform(0, largest, 100_000)
    assert_allclose(run(d), exact(d), rtol=BOUND, atol=0)


def test_relative_error_beside_the_ends_of_the_reduction():
    # There k jumps from one integer to the next.
    d = (np.arange(1000) + 0.5) * math.log(2.0)
    near = np.concatenate([d, np.nextafter(d, 0), np.nextafter(d, np.inf)])
    near = near[near < 708]
    assert_allclose(run(near), exact(near), rtol=BOUND, atol=0)


def test_single_precision_arguments_are_taken_as_they_are():
    d = np.random.default_rng(0).uniform(0, 80, 10_000).astype(np.float32)
    assert_allclose(run(d), exact(d), rtol=BOUND, atol=0)


def test_ends_of_the_range():
    given_ = [0.0, -0.0, -1e-9, -5.0, 708.0, 709.0, 745.0, 1e300, np.inf, np.nan]
    values = run(given_)
    assert_array_equal(values[:4], 1.0)
    assert_allclose(values[4], math.exp(-708.0), rtol=BOUND)
    assert_array_equal(values[5:9], 0.0)
    assert np.isnan(values[9])


@given(st.floats(0, 708))
def test_any_distance(d):
    assert_allclose(run([d]), exact([d]), rtol=BOUND, atol=0)


@pytest.mark.parametrize("n", [0, 1, 2, 3, 5, 17])
def test_an_entry_does_not_depend_on_its_neighbours(n):
    d = np.random.default_rng(0).uniform(0, 50, 64)
    # The vectorised body and the remainder may contract differently.
    assert_allclose(run(d[:n]), run(d)[:n], rtol=BOUND, atol=0)


@pytest.mark.parametrize(("n", "r"), [(0, 1), (1, 4), (9, 4), (8, 4), (5, 8)])
def test_gaussian_values_are_the_formula(n, r):
    rng = np.random.default_rng(0)
    X, C = rng.normal(size=(n, 3)), rng.normal(size=(7, 3))
    centre, factors = C.mean(axis=0), np.array([0.5, 1.0, 2.0])
    points = (C - centre) * factors
    out = np.empty((n, 7))
    squares = np.square(points).sum(axis=1)
    transposed = np.ascontiguousarray(points.T)
    write_gaussian(X, centre, factors, transposed, squares, np.empty((r, 3)), out)
    differences = (X[:, None] - C) * factors
    expected = np.exp(-np.square(differences).sum(axis=2))
    assert_allclose(out, expected, rtol=1e-13)


def test_the_door_refuses_what_does_not_fit():
    X, centre, factors = np.zeros((2, 3)), np.zeros(3), np.ones(3)
    points, squares, out = np.zeros((3, 5)), np.zeros(5), np.empty((2, 5))
    good = [X, centre, factors, points, squares, np.empty((1, 3)), out]
    write_gaussian(*good)
    for i, name in enumerate(["X", "centre", "factors", "points", "", "rows", "out"]):
        if name:
            bad = [*good]
            bad[i] = bad[i].astype(np.float32)
            with pytest.raises(ValueError, match=f"{name} must be a"):
                write_gaussian(*bad)
    with pytest.raises(ValueError, match="points must be a"):
        write_gaussian(*good[:4], np.zeros(6), *good[5:])
