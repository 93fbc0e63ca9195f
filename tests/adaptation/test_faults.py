"""What once went wrong: singular batches, changing threads, worse results, overflow."""

import itertools
import logging
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from surff import AgopAdaptation, AutoAdaptation, FourierFeatures, GradientAdaptation
from surff.adaptation import (
    ADAPTATIONS,
    Adaptation,
    Adapted,
    checked_adaptation,
    objective,
    projected_objective,
)
from surff.adaptation.problem import InnerProblem
from surff.linear import SingularError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(500, 3))
Y = np.sin(2.0 * X[:, :1])


@pytest.mark.parametrize("n_frequencies", [20, 60])  # either way of solving
def test_singular_equations_raise(n_frequencies):
    twice = np.repeat(RNG.normal(size=(1, 3)), n_frequencies, axis=0)
    arrays = (array.astype(np.float32) for array in (twice, X, Y))
    with pytest.raises(SingularError, match=r"singular to .*alpha=1e-30.*increase"):
        projected_objective(*arrays, alpha=1e-30)


@pytest.mark.parametrize("warp", [False, True])
def test_descent_survives_singular_batches(warp):
    adapt = GradientAdaptation(n_steps=30, alpha=1e-30, learning_rate=1e-9, warp=warp)
    start = np.repeat(RNG.normal(size=(1, 3)), 60, axis=0)
    frequencies, _ = adapt.adapt(start, X, Y, np.random.default_rng(0))
    assert np.isfinite(frequencies).all()


def test_a_batch_that_no_alpha_solves_is_skipped(monkeypatch):
    def singular(*arguments):
        raise SingularError("always")

    monkeypatch.setattr("surff.adaptation.gradient.projected_objective", singular)
    start = RNG.normal(size=(8, 3))
    adapt = GradientAdaptation(n_steps=20, shrinkage=0.0)
    assert adapt.adapt(start, X, Y, np.random.default_rng(0)).frequencies is start


@pytest.mark.parametrize("first", [1, 2, 5])
def test_threads_that_change_between_the_passes(first, monkeypatch):
    W = RNG.normal(size=(5, 3))
    expected = projected_objective(W, X, Y, 0.03, by_rows=True)
    calls = []

    def changing(function, n_rows, minimum=64):
        calls.append(n_rows)
        n_parts = min(n_rows, first if len(calls) == 1 else 3)
        bounds = np.linspace(0, n_rows, n_parts + 1).astype(int)
        return [function(slice(a, b)) for a, b in itertools.pairwise(bounds)]

    monkeypatch.setattr(objective, "map_slices", changing)
    found = projected_objective(W, X, Y, 0.03, by_rows=True)
    assert len(calls) == 2
    for one, other in zip(found, expected, strict=True):
        assert_allclose(one, other, rtol=1e-8, atol=1e-13)


@pytest.mark.parametrize("name", sorted(ADAPTATIONS))
def test_never_worse_than_the_start_on_rows_held_out(name):
    # Columns whose tails matter, frequencies that already fit: a warp does harm.
    rows = RNG.standard_t(2, size=(800, 2))
    target = np.cos(rows[:, :1] / 4.0) + 0.1 * RNG.normal(size=(800, 1))
    start = np.array([[0.25, 0.0], [0.0, 0.25], [0.5, 0.0]])
    for seed in range(3):
        adapted = ADAPTATIONS[name]().adapt(
            start, rows, target, np.random.default_rng(seed)
        )
        problem = InnerProblem(
            rows, target, np.random.default_rng(seed), None, 0.1, "float32"
        )
        warp = adapted.warp
        if warp is not None:
            warp = np.stack([(warp[0] - problem.centre), warp[1] * problem.unit])
            warp[0] /= problem.unit
        before = problem.score(problem.inward(start)).error
        after = problem.score(problem.inward(adapted.frequencies), warp).error
        assert after <= before * (1 + 1e-3)


def test_auto_keeps_the_draw_that_nothing_beats(monkeypatch):
    monkeypatch.setattr(AutoAdaptation, "_n_steps", lambda *_: 1)
    rows = 50.0 * RNG.standard_cauchy(size=(800, 1))
    start, target = np.array([[0.05]]), np.sin(0.05 * rows)
    adapted = AutoAdaptation().adapt(start, rows, target, np.random.default_rng(0))
    assert adapted.frequencies is start
    assert adapted.warp is None


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("name", sorted(ADAPTATIONS))
@pytest.mark.parametrize("factor", [1e100, 1e160, 1e305])
def test_huge_data_are_one_error_and_no_warning(form, name, factor):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ValueError, match=r"adapt .*(gamma|scale X)"):
            ADAPTATIONS[name]().adapt(
                np.ones((4, 3)), form(factor * X), Y, np.random.default_rng(0)
            )


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("name", sorted(ADAPTATIONS))
def test_huge_data_take_small_frequencies(form, name):
    small = RNG.normal(size=(4, 3)) / 1e100
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        adapted = ADAPTATIONS[name]().adapt(
            small, form(1e100 * X), Y, np.random.default_rng(0)
        )
    assert np.isfinite(adapted.frequencies).all()


@pytest.mark.parametrize("name", sorted(ADAPTATIONS))
@pytest.mark.parametrize("factor", [1e200, 1e308])
def test_huge_targets_are_one_error_and_no_warning(name, factor):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ValueError, match=r"standardises y.*overflows: scale y"):
            ADAPTATIONS[name]().adapt(
                np.ones((4, 3)), X, factor * Y, np.random.default_rng(0)
            )


# -- the protocol ----------------------------------------------------------------------


def test_every_adaptation_is_an_adaptation():
    for rule in ADAPTATIONS.values():
        assert issubclass(rule, Adaptation)
        assert (rule.needs_target, rule.takes_arrays) == (True, True)
        result = rule().adapt(np.ones((4, 3)), X, Y, np.random.default_rng(0))
        assert isinstance(result, Adapted)
    with pytest.raises(TypeError, match="abstract"):
        Adaptation()


WARP = np.stack([np.zeros(3), np.ones(3)])


def test_what_an_adaptation_returns_is_checked():
    W = np.ones((4, 3), np.float32)
    checked = checked_adaptation((W, WARP), 4, 3)
    assert checked.frequencies is W
    assert checked.warp is WARP
    assert checked_adaptation((np.ones((4, 3), int), None), 4, 3)[0].dtype == float


@pytest.mark.parametrize(
    ("adapted", "error", "message"),
    [
        (np.ones((4, 3)), TypeError, r"adapt= must return a pair Adapted\(.*got array"),
        ((np.ones((4, 3)),), TypeError, "must return a pair"),
        ((np.ones((4, 2)), None), ValueError, r"shape \(4, 3\), got shape \(4, 2\)"),
        ((np.ones((0, 3)), None), ValueError, r"shape \(4, 3\), got shape \(0, 3\)"),
        ((np.full((4, 3), "a"), None), TypeError, "real numbers, got dtype <U1"),
        ((np.full((4, 3), 1j), None), TypeError, "real numbers, got dtype complex"),
        ((np.full((4, 3), np.nan), None), ValueError, "finite frequencies, got array"),
        ((np.ones((4, 3)), np.ones(3)), ValueError, r"\(2, 3\), got shape \(3,\)"),
        ((np.ones((4, 3)), -WARP), ValueError, "rates > 0, its second row, got -1"),
        ((np.ones((4, 3)), np.inf * WARP[1] + WARP), ValueError, "finite centres and"),
    ],
)
def test_what_an_adaptation_returns_is_refused(adapted, error, message):
    with pytest.raises(error, match=message):
        checked_adaptation(adapted, 4, 3)


# -- progress --------------------------------------------------------------------------


def test_progress_goes_to_a_logger_that_listens(caplog, capsys):
    features = FourierFeatures(8, adapt=AgopAdaptation(verbose=True), random_state=0)
    with caplog.at_level(logging.INFO, logger="surff"):
        logged = features.fit(X, Y[:, 0]).frequencies_
    assert len(caplog.messages) == 3
    assert "round 1, held-out error" in caplog.messages[0]
    assert capsys.readouterr() == ("", "")
    assert_array_equal(features.fit(X, Y[:, 0]).frequencies_, logged)
    assert capsys.readouterr().err.splitlines() == caplog.messages[:3]
