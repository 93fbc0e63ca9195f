"""The selector that users may bring, and the checks of what it returns."""

import warnings

import numpy as np
import pytest

from surff import Compression, ResidualLeverage, RidgeLeverage
from surff.backend import flag_of
from surff.selection import SELECTORS, Selection, Selector, checked_selection

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = np.sin(2.0 * X[:, :1])
FLAGS = ("needs_target", "needs_rows", "takes_arrays")


class Duck:
    """An object with the method alone."""

    def select(self, draw, X, Y, n_frequencies, rng, sample_weight=None):
        return draw(n_frequencies), np.ones(n_frequencies)


class Blind(Duck):
    needs_target = False


def test_flags_have_one_default_each():
    assert [flag_of(Duck(), Selector, name) for name in FLAGS] == [True, True, False]
    assert not flag_of(Blind(), Selector, "needs_target")
    assert not flag_of(RidgeLeverage(), Selector, "needs_rows")
    assert flag_of(RidgeLeverage(n_rows=9), Selector, "needs_rows")
    assert flag_of(Compression(n_pairs=9), Selector, "needs_rows")
    assert flag_of(ResidualLeverage(), Selector, "needs_rows")
    with pytest.raises(AttributeError, match="needs_cash"):
        flag_of(Duck(), Selector, "needs_cash")


def test_every_selector_is_a_selector():
    for rule in SELECTORS.values():
        assert issubclass(rule, Selector)
    with pytest.raises(TypeError, match="abstract"):
        Selector()


def test_what_a_selector_returns_is_checked():
    W, weights = np.ones((4, 3), np.float32), np.zeros(4)
    checked = checked_selection((W, weights), 4, 3)
    assert isinstance(checked, Selection)
    assert checked.frequencies is W
    assert checked.importance_weights is weights
    lists = checked_selection(([[1, 2, 3]], [1]), 1, 3)
    assert lists.frequencies.dtype == lists.importance_weights.dtype == float


@pytest.mark.parametrize(
    ("selection", "error", "message"),
    [
        (np.ones((4, 3)), TypeError, r"select= must return a pair Selection\(.*got ar"),
        ((np.ones((4, 2)), np.ones(4)), ValueError, r"\(4, 3\), got shape \(4, 2\)"),
        ((np.ones((4, 3, 1)), np.ones(4)), ValueError, r"got shape \(4, 3, 1\)"),
        ((np.ones((4, 3)), np.ones(3)), ValueError, r"weights of shape \(4,\), got "),
        ((np.ones((4, 3), object), np.ones(4)), TypeError, "numbers, got dtype object"),
        ((np.full((4, 3), np.inf), np.ones(4)), ValueError, "finite frequencies, got"),
        ((np.ones((4, 3)), np.full(4, np.nan)), ValueError, "finite importance weight"),
        ((np.ones((4, 3)), -np.ones(4)), ValueError, "weights >= 0, got -1"),
    ],
)
def test_what_a_selector_returns_is_refused(selection, error, message):
    with pytest.raises(error, match=message):
        checked_selection(selection, 4, 3)


@pytest.mark.parametrize("name", sorted(SELECTORS))
@pytest.mark.parametrize(("rows", "targets"), [(1e100, 1), (1e307, 1), (1, 1e308)])
def test_huge_data_are_one_error_or_none_and_no_warning(name, rows, targets):
    rng = np.random.default_rng(0)

    def draw(n):
        return rng.normal(size=(n, 3)) / rows

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        if targets > 1 and SELECTORS[name].needs_target:
            with pytest.raises(ValueError, match=r"overflow"):
                SELECTORS[name]().select(draw, rows * X, targets * Y, 8, rng)
        else:
            selection = SELECTORS[name]().select(draw, rows * X, targets * Y, 8, rng)
            checked_selection(selection, 8, 3)
