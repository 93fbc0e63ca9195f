"""Columns that carry nothing: found by the slopes of the fit, and shrunk to nothing."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from surff import AutoAdaptation, FourierFeatures, GradientAdaptation
from surff.adaptation.gradient import Descent
from surff.adaptation.problem import InnerProblem, held_out_error
from surff.adaptation.relevance import (
    HALF_DECAY,
    column_relevance,
    decayed_columns,
    has_idle_columns,
    shrunk_columns,
)

RNG = np.random.default_rng(0)
X = RNG.normal(size=(900, 12))
# Two of twelve columns matter, and the noise is large enough to be learned.
Y = np.sin(2.0 * X[:, 0]) + X[:, 1] + 0.3 * RNG.normal(size=900)
W = RNG.normal(size=(10, 12))
for array in (X, Y, W):
    array.flags.writeable = False


def problem(dtype="float64"):
    return InnerProblem(X, Y[:, None], np.random.default_rng(0), None, 0.1, dtype)


def test_relevance_is_the_mean_square_slope_by_differences():
    inner = problem()
    score = inner.score(W)
    rows = inner.batch(np.sort(inner.train))[0]

    def fitted(rows):
        P = rows @ W.T
        return np.hstack([np.cos(P), np.sin(P)]) @ score.coef / np.sqrt(len(W))

    h = 1e-5 * np.eye(12)
    slopes = [np.mean(((fitted(rows + e) - fitted(rows - e)) / 2e-5) ** 2) for e in h]
    assert_allclose(column_relevance(W, score), slopes / np.mean(slopes), rtol=1e-6)


def test_relevance_of_a_fit_without_a_slope():
    score = problem().score(W)._replace(coef=np.zeros((20, 1)))
    assert_array_equal(column_relevance(W, score), np.ones(12))


def test_decay_takes_a_length_off_the_root_mean_square():
    relevance = RNG.gamma(1.0, size=12)
    size, less = (
        np.sqrt(np.mean(V**2, axis=0)) for V in (W, decayed_columns(W, relevance, 0.3))
    )
    lost = 0.3 * HALF_DECAY / (HALF_DECAY + relevance)
    assert_allclose(less, size - lost, rtol=1e-12)
    gone = decayed_columns(W, np.zeros(12), 100.0)
    assert_array_equal(gone, np.zeros_like(W))
    assert_array_equal(decayed_columns(gone, relevance, 0.3), gone)


def test_shrunk_columns_keep_the_relevant():
    relevance = np.array([9.0, 3.0, *np.full(10, 1e-7)])
    shrunk = shrunk_columns(W, relevance)
    assert_allclose(shrunk[:, :2], W[:, :2], rtol=0.05)
    assert_allclose(shrunk[:, 2:], 0.0, atol=1e-4)


def test_a_trial_needs_an_idle_column():
    assert has_idle_columns(np.array([9.0, 0.8]))
    assert not has_idle_columns(np.array([9.0, 1.0]))
    assert not has_idle_columns(np.ones(1))


@pytest.mark.parametrize("n_frequencies", [24, 96])
def test_columns_without_meaning_vanish_at_any_size(n_frequencies):
    features = FourierFeatures(2 * n_frequencies, adapt="auto", random_state=0)
    size = np.sqrt(np.mean(features.fit(X, Y).frequencies_ ** 2, axis=0))
    assert size[2:].max() < 0.25 * size[:2].min()


def test_without_shrinkage_they_do_not():
    start = 0.5 * W
    sizes = []
    for shrinkage in (0.0, 0.05):
        adapt = GradientAdaptation(n_steps=150, shrinkage=shrinkage)
        moved = adapt.adapt(start, X, Y[:, None], np.random.default_rng(0)).frequencies
        sizes.append(np.sqrt(np.mean(moved[:, 2:] ** 2)))
    assert sizes[1] < 0.2 * sizes[0]


def test_a_trial_is_kept_only_where_rows_held_out_like_it(monkeypatch):
    inner = problem()
    start = inner.found(W)
    better = 0.1 * W
    assert held_out_error(inner.found(better)) < held_out_error(start)
    for trial, kept in ((better, better), (np.zeros_like(W), W)):
        monkeypatch.setattr(
            "surff.adaptation.gradient.shrunk_columns", lambda *_, trial=trial: trial
        )
        descent = Descent(GradientAdaptation(), inner, start, np.random.default_rng(0))
        assert_array_equal(descent.check().frequencies, kept)
        assert_array_equal(descent.best.frequencies, kept)


def test_more_frequencies_are_not_worse():
    errors = []
    for n_frequencies in (24, 96):
        inner = problem("float32")
        start = np.random.default_rng(1).normal(size=(n_frequencies, 12)) / 4
        frequencies, warp = AutoAdaptation(warp=False).adapt(
            start, X, Y[:, None], np.random.default_rng(0)
        )
        errors.append(inner.score(inner.inward(frequencies), warp).error)
    assert errors[1] < 1.05 * errors[0]
