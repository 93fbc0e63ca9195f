"""``verbose`` and ``max_time`` of estimators."""

import itertools
import pickle

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from surff import (
    FourierFeatures,
    GradientAdaptation,
    KernelLogisticClassifier,
    KernelRidgeClassifier,
    KernelRidgeRegressor,
)
from surff.backend import watched
from surff.streaming import ArrayRows

rng = np.random.default_rng(0)
X = rng.normal(size=(300, 3))
y = np.sin(2 * X[:, 0]) + X[:, 1]
LABELS = np.where(y > 0, "a", "b")


@pytest.fixture
def clock(monkeypatch):
    """A clock that goes on by a second whenever it is read."""

    class Clock:
        monotonic = itertools.count(0.0, 1.0).__next__

    monkeypatch.setitem(watched.__globals__, "time", Clock)


def ridge(**options):
    return KernelRidgeRegressor(FourierFeatures(20, random_state=0), **options)


def names_of(seen):
    return {progress.names for progress in seen}


def test_results_are_the_same_to_the_bit(capsys):
    seen = []
    adapt = GradientAdaptation(n_steps=30, batch_size=100)
    features = FourierFeatures(20, adapt=adapt, random_state=0)
    silent = KernelRidgeRegressor(features, gammas=[0.1, 0.4]).fit(X, y)
    watching = clone(silent).set_params(verbose=seen.append).fit(X, y)
    lines = clone(silent).set_params(verbose=1, max_time=1e6).fit(X, y)
    for other in (watching, lines):
        assert_array_equal(other.features_.frequencies_, silent.features_.frequencies_)
        assert_array_equal(other.primal_coef_, silent.primal_coef_)
        assert other.gamma_path_ == silent.gamma_path_
    assert ("gammas", "adapt") in names_of(seen)
    assert ("gammas", "folds", "adapt") in names_of(seen)
    assert capsys.readouterr() == ("", "")  # in less than three seconds


@pytest.mark.parametrize(
    ("model", "target", "expected"),
    [
        (ridge(alphas=0.1), y, ("Gram matrix",)),
        (ridge(solver="cg", alphas=0.1), y, ("conjugate gradients",)),
        (KernelRidgeClassifier(FourierFeatures(20)), LABELS, ("Gram matrix",)),
        (KernelLogisticClassifier(alphas=0.1), LABELS, ("descent",)),
    ],
)
def test_each_fit_shows_what_takes_long(model, target, expected):
    seen = []
    model.set_params(verbose=seen.append).fit(X, target)
    assert expected in names_of(seen)
    of_rows = [p for p in seen if p.names == ("Gram matrix",) and p.finished]
    assert all(progress.done == progress.total for progress in of_rows)


def test_streams_show_their_passes():
    seen = []
    ridge(verbose=seen.append).fit_stream(ArrayRows(X, y))
    assert names_of(seen) == {("pass",)}
    assert [progress.done for progress in seen if progress.finished] == [300, 300]


def test_features_show_their_own_progress():
    adapt = GradientAdaptation(n_steps=10, batch_size=100)
    seen = []
    features = FourierFeatures(20, adapt=adapt, random_state=0, verbose=seen.append)
    features.fit(X, y)
    alone = names_of(seen)
    seen.clear()
    KernelRidgeRegressor(features, cv="gcv").fit(X, y)
    assert ("adapt",) in alone
    assert alone == names_of(seen)


def test_gammas_that_there_is_no_time_for_are_left_out(clock):
    full = ridge(gammas=[0.1, 0.2, 0.3, 0.4])
    model = clone(full).set_params(max_time=1.5).fit(X, y)
    assert list(model.gamma_path_) == [0.1]
    assert model.features_.gamma_ == 0.1
    model = clone(full).set_params(gammas="auto", max_time=1.5).fit(X, y)
    assert len(model.gamma_path_) == 1
    assert list(model.gamma_path_.values()) == [model.best_score_]


def test_an_adaptation_ends_in_time_with_the_best_so_far(clock):
    seen = []

    def fitted(**options):
        adapt = GradientAdaptation(n_steps=1000, batch_size=100)
        options = {"adapt": adapt, "random_state": 0, **options}
        return FourierFeatures(20, **options).fit(X, y)

    features = fitted(max_time=40.0, verbose=seen.append)
    (last,) = (p for p in seen if p.names == ("adapt",) and p.finished)
    assert 1 <= last.done <= 40
    assert last.total == 1000
    assert features.frequencies_.shape == (10, 3)
    seen.clear()
    plain = fitted(adapt=None)
    assert_array_equal(fitted(max_time=0.5).frequencies_, plain.frequencies_)


@pytest.mark.parametrize("adapt", ["auto", "agop"])
def test_other_adaptations_end_in_time(clock, adapt):
    options = {"adapt": adapt, "random_state": 0, "max_time": 0.5}
    FourierFeatures(20, **options).fit(X, y)


def test_conjugate_gradients_stop_in_time(clock):
    model = ridge(solver="cg", alphas=1e-3, tol=1e-9, max_time=3.5)
    with pytest.warns(ConvergenceWarning, match="increase max_iter or max_time"):
        model.fit(X, y)
    assert 1 <= model.n_iter_ <= 4


def test_logistic_regression_stops_in_time(clock):
    model = KernelLogisticClassifier(alphas=1e-3, tol=1e-9, max_time=6.5)
    with pytest.warns(ConvergenceWarning, match=r"max_time=6.5 seconds; increase max_"):
        model.fit(X, LABELS)
    assert model.score(X, LABELS) > 0.6


def test_a_hook_that_raises_leaves_the_model_as_it_was():
    def hook(progress):
        raise RuntimeError(f"seen {progress.names[0]}")

    model = ridge(alphas=0.1).fit(X, y)
    before = dict(vars(model))
    with pytest.raises(RuntimeError, match="seen Gram matrix"):
        model.set_params(verbose=hook).fit(X[:50], y[:50])
    assert {**vars(model), "verbose": 0} == before


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_time": 0.0}, "'max_time' parameter of KernelRidgeRegressor must be"),
        ({"verbose": -1}, "'verbose' parameter of KernelRidgeRegressor must be"),
        ({"verbose": "yes"}, "'verbose' parameter of KernelRidgeRegressor must be"),
    ],
)
def test_wrong_values_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        ridge(**options).fit(X, y)


def test_a_hook_is_not_saved():
    model = ridge(alphas=0.1, verbose=lambda progress: None).fit(X, y)
    other = pickle.loads(pickle.dumps(model))
    assert other.verbose == 0
    assert callable(model.verbose)
    assert clone(model).verbose is model.verbose


def test_a_state_without_later_parameters_gets_their_defaults():
    model = ridge(alphas=0.1, max_time=5.0).fit(X, y)
    state = model.__getstate__()
    for name in ("verbose", "max_time", "keep_equations"):
        del state[name]
    older = KernelRidgeRegressor.__new__(KernelRidgeRegressor)
    older.__setstate__(state)
    expected = {**model.get_params(deep=False), "max_time": None}
    found = older.get_params(deep=False)
    assert found.pop("features") is expected.pop("features")
    assert found == expected
    clone(older).fit(X, y)
