"""Adaptations of frequencies, through their own interface and `FourierFeatures`."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone

from surff import (
    AgopAdaptation,
    FourierFeatures,
    GradientAdaptation,
    KernelRidgeRegressor,
)
from surff.adaptation import ADAPTATIONS

RNG = np.random.default_rng(0)
X = RNG.normal(size=(700, 4))
Y = np.sin(3.0 * X[:, 0]) + 0.1 * RNG.normal(size=700)
LABELS = np.where(Y > 0, "up", "down")
for array in (X, Y, LABELS):
    array.flags.writeable = False

QUICK = [
    GradientAdaptation(n_steps=120),
    AgopAdaptation(n_rounds=2),
    AgopAdaptation(n_rounds=2, diagonal=True),
]
quick = pytest.mark.parametrize("adapt", QUICK, ids=["gradient", "agop", "diagonal"])


def features(adapt, n_components=16, **parameters):
    return FourierFeatures(n_components, adapt=adapt, random_state=0, **parameters)


@pytest.mark.parametrize("name", ADAPTATIONS)
def test_adapted_frequencies_predict_better_than_drawn_ones(name):
    plain, adapted = (
        KernelRidgeRegressor(features(adapt, 60), cv="gcv").fit(X[:500], Y[:500])
        for adapt in (None, name)
    )
    assert adapted.score(X[500:], Y[500:]) > 0.9 > plain.score(X[500:], Y[500:])


@quick
def test_same_seed_same_frequencies(adapt):
    first = features(adapt).fit(X, Y)
    again = clone(first).fit(X, Y)
    assert_array_equal(first.frequencies_, again.frequencies_)
    other = clone(first).set_params(random_state=1).fit(X, Y)
    assert not np.array_equal(first.frequencies_, other.frequencies_)


@quick
def test_target_is_required(adapt):
    assert features(adapt).__sklearn_tags__().target_tags.required
    with pytest.raises(ValueError, match="requires y to be passed, but the target y"):
        features(adapt).fit(X)
