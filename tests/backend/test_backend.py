import copy
import pickle

import array_api_strict as xp
import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn import config_context

from surff import FourierFeatures, KernelRidgeRegressor
from surff.backend import NUMPY, arrays, backend_of, backend_of_map, blocks
from surff.kernels import ArrayFourierMap, FourierMap, OddFourierMap, WarpedMap


def test_a_default_fit_asks_few_times_whose_array_it_has(monkeypatch):
    asked = []
    real = arrays.is_array_api_obj, arrays.other_namespace

    def other_namespace(X):
        asked.append(X)
        return real[1](X)

    monkeypatch.setattr(arrays, "other_namespace", other_namespace)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 10))
    KernelRidgeRegressor(FourierFeatures(64, random_state=0)).fit(X, X[:, 0])
    few = len(asked)
    assert few < 40
    asked.clear()
    monkeypatch.setattr(blocks, "MOST_ROWS", 256)  # many more blocks
    KernelRidgeRegressor(FourierFeatures(64, random_state=0)).fit(X, X[:, 0])
    # The survey of the rows still asks; passes over features do not.
    assert len(asked) - few < 2 * 20_000 / 256


def test_passes_ask_the_map_and_not_the_rows():
    frequencies = np.ones((4, 3))
    pairs = FourierMap(frequencies)
    for feature_map in (
        pairs,
        OddFourierMap(pairs, 0.5),
        WarpedMap(pairs, np.ones((2, 3))),
    ):
        assert backend_of_map(feature_map, None) is NUMPY
    other = ArrayFourierMap(xp.asarray(frequencies))
    backend = backend_of_map(OddFourierMap(other, 0.5), None)
    assert not backend.is_numpy
    assert backend.xp.__name__.endswith("array_api_strict")
    assert backend_of_map(len, xp.ones(3)).xp is backend.xp
    assert backend_of_map(len, [1.0]) is NUMPY


def test_backends_survive_copies_and_pickles():
    for copied in (copy.copy, copy.deepcopy, lambda b: pickle.loads(pickle.dumps(b))):
        assert copied(NUMPY) is NUMPY
        assert not copied(backend_of(xp.ones(3))).is_numpy
    feature_map = OddFourierMap(FourierMap(np.ones((4, 3))), 0.5)
    X = np.ones((2, 3))
    again = pickle.loads(pickle.dumps(feature_map))
    assert_array_equal(again(X), feature_map(X))


def test_backends_make_arrays_of_their_library():
    strict = backend_of(xp.ones(3))
    for backend, kind in ((NUMPY, np.ndarray), (strict, type(xp.ones(3)))):
        float32 = backend.xp.float32
        for array in (
            backend.zeros((2, 3), float32),
            backend.empty((2, 3), float32),
            backend.asarray(np.ones((2, 3))[::-1], float32),
        ):
            assert isinstance(array, kind)
            assert array.shape == (2, 3)
            assert array.dtype == float32
        assert backend.itemsize(float32) == 4
        assert backend.wide_dtype == backend.xp.float64
        assert not backend.on_accelerator


def test_a_fit_of_another_librarys_arrays_stays_there():
    X = np.random.default_rng(0).normal(size=(200, 3))
    try:
        with config_context(array_api_dispatch=True):
            model = KernelRidgeRegressor(FourierFeatures(20, random_state=0))
            model.fit(xp.asarray(X), xp.asarray(X[:, 0]))
            assert not backend_of(model.predict(xp.asarray(X))).is_numpy
    except ImportError as error:
        pytest.skip(f"scikit-learn dispatches no arrays here: {error}")
