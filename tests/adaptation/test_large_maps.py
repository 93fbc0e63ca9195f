"""Large maps of `adapt="auto"`: a few frequencies are learned first."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from surff import AutoAdaptation
from surff.adaptation import auto
from surff.adaptation.problem import InnerProblem, held_out_error

RNG = np.random.default_rng(0)
X = RNG.normal(size=(700, 4))
Y = np.sin(2.0 * X[:, :1]) + X[:, 1:2] + 0.1 * RNG.normal(size=(700, 1))
W = 0.3 * RNG.normal(size=(auto.FIRST + 6, 4))
for array in (X, Y, W):
    array.flags.writeable = False


@pytest.fixture
def short(monkeypatch):
    """Descent of a few steps."""
    monkeypatch.setattr(auto, "FIRST_STEPS", 10)
    monkeypatch.setattr(AutoAdaptation, "_n_steps", lambda *_: 10)


def problem():
    return InnerProblem(X, Y, np.random.default_rng(0), None, 0.1, "float32")


def test_others_join_the_first_with_their_spread():
    inner = problem()
    first = inner.found(W[: auto.FIRST] * [3.0, 1.0, 0.1, 0.0], inner.first_warp())
    found = AutoAdaptation()._extended(inner, first, W)
    assert_array_equal(found.frequencies[: auto.FIRST], first.frequencies)
    assert_array_equal(found.warp, first.warp)
    spread = np.sqrt(np.mean(first.frequencies**2, axis=0))
    others = found.frequencies[auto.FIRST :] * np.sqrt(np.mean(W**2, axis=0))
    ratio = others[:, :3] / (W[auto.FIRST :] * spread)[:, :3]
    assert_array_equal(others[:, 3], 0.0)
    assert_allclose(ratio, ratio[0, 0], rtol=1e-12)
    assert ratio[0, 0].round(12) in auto.OTHER_LENGTHS
    errors = [
        inner.score(
            np.vstack([first.frequencies, found.frequencies[auto.FIRST :] * factor]),
            first.warp,
        ).error
        for factor in np.array(auto.OTHER_LENGTHS) / ratio[0, 0]
    ]
    assert_allclose(held_out_error(found), min(errors), rtol=1e-6)


@pytest.mark.parametrize("seed", range(2))
def test_never_worse_than_the_start_on_rows_held_out(seed, short):
    adapted = AutoAdaptation(warp=False).adapt(W, X, Y, np.random.default_rng(seed))
    inner = InnerProblem(X, Y, np.random.default_rng(seed), None, 0.1, "float32")
    before = inner.score(inner.inward(W)).error
    after = inner.score(inner.inward(adapted.frequencies), adapted.warp).error
    assert after <= before * (1 + 1e-3)
    assert adapted.frequencies.shape == W.shape


@pytest.mark.parametrize(("share", "rounds"), [(0.5, auto.ROUNDS), (0.9, 1)])
def test_rounds_follow_as_long_as_they_pay(share, rounds, short, monkeypatch):
    sizes = []

    def moved(self, inner, start, rng, n_steps):
        sizes.append(len(start.frequencies))
        error = share * held_out_error(start)
        return start._replace(score=start.score._replace(error=error))

    monkeypatch.setattr(AutoAdaptation, "_moved", moved)
    AutoAdaptation().adapt(W, X, Y, np.random.default_rng(0))
    assert sizes == [auto.FIRST] + rounds * [len(W)]
