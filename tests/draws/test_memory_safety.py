"""Structured frequencies whose parts disagree never reach the compiled transform."""

import copy
import pickle

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from surff.draws import HadamardFrequencies, StructuredOrthogonal
from surff.kernels import Gaussian

N, D = 100, 40  # two blocks of 64


def drawn():
    return StructuredOrthogonal().draw(Gaussian(), N, D, np.random.default_rng(0))


BAD = {
    "signs of 70": ("signs", np.ones((2, 3, 70), np.int8)),
    "one diagonal": ("signs", np.ones((2, 1, 64), np.int8)),
    "two diagonals": ("signs", np.ones((2, 2, 64), np.int8)),
    "signs of one axis": ("signs", np.ones(2 * 3 * 64, np.int8)),
    "no block": ("signs", np.ones((0, 3, 64), np.int8)),
    "narrow blocks": ("signs", np.ones((4, 3, 32), np.int8)),
    "float signs": ("signs", np.ones((2, 3, 64))),
    "no signs": ("signs", np.zeros((2, 3, 64), np.int8)),
    "signs of a list": ("signs", [[[1] * 64] * 3] * 2),
    "more norms": ("norms", np.ones(129)),
    "norms of two axes": ("norms", np.ones((N, 1))),
    "infinite norms": ("norms", np.full(N, np.inf)),
    "text norms": ("norms", np.full(N, "a")),
    "more columns": ("column_scale", np.ones(65)),
    "columns of two axes": ("column_scale", np.ones((1, D))),
    "nan columns": ("column_scale", np.full(D, np.nan)),
}


@pytest.mark.parametrize("bad", BAD)
def test_parts_that_disagree_are_refused_when_built(bad):
    name, value = BAD[bad]
    good = drawn()
    parts = {k: getattr(good, k) for k in ("signs", "norms", "column_scale")}
    with pytest.raises(ValueError, match=rf"^({name}|signs) must"):
        HadamardFrequencies(**{**parts, name: value})


@pytest.mark.parametrize("bad", BAD)
def test_parts_that_disagree_are_refused_when_loaded(bad):
    name, value = BAD[bad]
    frequencies = drawn()
    vars(frequencies)[name] = value
    data = pickle.dumps(frequencies)
    with pytest.raises(ValueError, match=rf"^({name}|signs|shape) must"):
        pickle.loads(data)
    with pytest.raises(ValueError, match=rf"^({name}|signs|shape) must"):
        copy.deepcopy(frequencies)


# A cheap check before the kernel sees shapes and types, not values.
@pytest.mark.parametrize(
    "bad", [k for k in BAD if k not in ("no signs", "infinite norms", "nan columns")]
)
def test_parts_that_disagree_never_reach_the_kernel(bad):
    name, value = BAD[bad]
    frequencies = drawn()
    setattr(frequencies, name, value)
    with pytest.raises(ValueError, match=rf"^({name}|signs|shape) must"):
        frequencies.projections(np.ones((3, D)))


@pytest.mark.parametrize("shape", [(N + 1, D), (N, D + 1), (2**20, D), (N,), None])
def test_a_shape_that_the_parts_do_not_have_is_refused(shape):
    frequencies = drawn()
    frequencies.shape = shape
    with pytest.raises(ValueError, match=r"^shape must"):
        frequencies.projections(np.ones((3, D)))
    with pytest.raises(ValueError, match=r"^shape must"):
        pickle.loads(pickle.dumps(frequencies))


@pytest.mark.parametrize("dtype", ["f2", "i8", ">f8", "c16"])
def test_other_types_are_refused(dtype):
    good = drawn()
    with pytest.raises(ValueError, match=r"^dtype must"):
        HadamardFrequencies(good.signs, good.norms, good.column_scale, dtype)
    good.dtype = np.dtype(dtype)
    with pytest.raises(ValueError, match=r"^dtype must"):
        pickle.loads(pickle.dumps(good))


def test_a_state_without_a_part_is_refused():
    frequencies = drawn()
    del frequencies.norms
    with pytest.raises(ValueError, match=r"^norms must"):
        pickle.loads(pickle.dumps(frequencies))


def test_rows_and_out_that_do_not_fit_are_refused():
    frequencies = drawn()
    for X in (np.ones((3, D + 1)), np.ones((3, 1)), np.ones(D), np.ones((1, 3, D))):
        with pytest.raises(ValueError, match=r"^X must have shape"):
            frequencies.projections(X)
    read_only = np.empty((3, N))
    read_only.flags.writeable = False
    for out in (
        np.empty((2, N)),
        np.empty((3, N - 1)),
        np.empty((3, N), np.float32),
        np.empty((3, 2 * N))[:, ::2],
        np.empty((3, N), order="F"),
        read_only,
    ):
        with pytest.raises(ValueError, match=r"^out must be"):
            frequencies.projections(np.ones((3, D)), out)


def test_a_scale_that_does_not_fit_is_refused():
    for scale in (np.ones(D + 1), np.ones((2, D)), np.inf):
        with pytest.raises(ValueError, match=r"^column_scale must"):
            scale * drawn()


def test_good_frequencies_survive_copies():
    frequencies = drawn()
    X = np.random.default_rng(1).normal(size=(5, D))
    expected = frequencies.projections(X)
    for other in (pickle.loads(pickle.dumps(frequencies)), copy.copy(frequencies)):
        assert_array_equal(other.projections(X), expected)
