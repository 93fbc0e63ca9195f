"""A fit that fails or is interrupted leaves the estimator as it was, bit for bit."""

import sys
from pathlib import Path

import joblib
import numpy as np
import pytest
from numpy.testing import assert_array_equal

import surff
from surff import (
    FourierFeatures,
    KernelLogisticClassifier,
    KernelRidgeClassifier,
    KernelRidgeRegressor,
    NystroemFeatures,
)
from surff.streaming import ArrayRows

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
NUMBERS = np.sin(X[:, 0])
BITS = (X[:, 0] > 0).astype(int)
WORDS = np.where(X[:, 1] > 0, "sick", "well")

# Where a generator was closed.
pytestmark = pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning"
)

PACKAGE = str(Path(surff.__file__).parent)


class Interrupt:
    """Raise in the n-th call of a function of surff, on this thread; count them."""

    def __init__(self, n=None):
        self.n, self.calls = n, 0

    def __call__(self, frame, event, argument):
        if event == "call" and frame.f_code.co_filename.startswith(PACKAGE):
            self.calls += 1
            if self.calls == self.n:
                sys.setprofile(None)
                raise KeyboardInterrupt

    def __enter__(self):
        sys.setprofile(self)
        return self

    def __exit__(self, *error):
        sys.setprofile(None)


def state(estimator):
    """Digest of everything that an estimator holds."""
    return joblib.hash(vars(estimator))


def interrupted(n, method, *data):
    """Whether a call with an interrupt in it raises.

    Python drops what is raised while a generator is closed, and goes on.
    """
    try:
        with Interrupt(n):
            method(*data)
    except KeyboardInterrupt:
        return True
    return False


def features(**options):
    return FourierFeatures(8, random_state=0, **options)


MODELS = {
    "features": (features(select="surrogate"), NUMBERS, -NUMBERS),
    "nystroem": (NystroemFeatures(6, random_state=0), NUMBERS, -NUMBERS),
    "regressor": (KernelRidgeRegressor(features(), cv=3), NUMBERS, -NUMBERS),
    "gammas": (
        KernelRidgeRegressor(features(), alphas=[0.1, 1.0], gammas=[0.1, 1.0], cv=2),
        NUMBERS,
        -NUMBERS,
    ),
    "classifier": (
        KernelRidgeClassifier(features(), alphas=[0.1, 1.0], cv=3, probability=True),
        BITS,
        WORDS,
    ),
    "logistic": (KernelLogisticClassifier(features(), alphas=[0.1, 1.0]), BITS, WORDS),
}


@pytest.mark.parametrize("name", sorted(MODELS))
def test_interrupted_fits_change_nothing(name):
    model, y, other = MODELS[name]
    before = state(model.fit(X, y))
    assert state(model.fit(X[:40], other[:40])) != before
    with Interrupt() as counted:  # of a second fit, which compiles and imports nothing
        model.fit(X[:40], other[:40])
    for n in np.unique(np.linspace(1, 0.9 * counted.calls, 40).astype(int)):
        # The triangle of a matrix that nobody reads is not the same in every fit.
        before = state(model.fit(X, y))
        if interrupted(n, model.fit, X[:40], other[:40]):
            assert state(model) == before, f"call {n} of {counted.calls}"


@pytest.mark.parametrize(
    "model",
    [
        KernelRidgeRegressor(features(), alphas=[0.1, 1.0]),
        KernelRidgeClassifier(features(), alphas=0.1),
    ],
    ids=["regressor", "classifier"],
)
def test_interrupted_pieces_do_not_count(model):
    y = NUMBERS if "Regressor" in type(model).__name__ else BITS
    with Interrupt() as counted:
        model.partial_fit(X[:30], y[:30]).partial_fit(X[30:], y[30:])
    whole = model.primal_coef_
    model.fit(X[:30], y[:30])
    with Interrupt() as counted:
        model.partial_fit(X[30:], y[30:])
    assert model.equations_.weight_sum == len(X)
    for n in np.unique(np.linspace(1, 0.9 * counted.calls, 25).astype(int)):
        before = state(model.fit(X[:30], y[:30]))
        if not interrupted(n, model.partial_fit, X[30:], y[30:]):
            continue
        assert state(model) == before
        model.partial_fit(X[30:], y[30:])
        assert model.equations_.weight_sum == len(X)
    assert whole.shape == model.primal_coef_.shape


@pytest.mark.parametrize("on", ["fit", "fit_stream"])
def test_a_refit_that_fails_keeps_classes_and_coefficients(on):
    model = KernelRidgeClassifier(features(), cv=3).fit(X, BITS)
    before, predicted = state(model), model.predict(X)
    model.set_params(cv=1000)
    data = (X, WORDS) if on == "fit" else (ArrayRows(X, WORDS),)
    with pytest.raises(ValueError, match="1000"):
        getattr(model, on)(*data)
    model.set_params(cv=3)
    assert state(model) == before
    assert_array_equal(model.predict(X), predicted)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"alphas": [0.1, 1.0]}, "degree of freedom"),
        ({"alphas": [0.0, 1.0]}, "alphas must be positive"),
    ],
)
def test_refused_pieces_do_not_count(options, match):
    model = KernelRidgeRegressor(features(), alphas=1.0)
    model.partial_fit(X, NUMBERS)
    before = state(model)
    with pytest.raises(ValueError, match=match):
        KernelRidgeRegressor(features(), **options).partial_fit(X[:1], NUMBERS[:1])
    model.set_params(alphas=[0.0, 1.0])
    with pytest.raises(ValueError, match="alphas must be positive"):
        model.partial_fit(X, NUMBERS)
    model.set_params(alphas=1.0)
    assert state(model) == before
    model.partial_fit(X, NUMBERS)
    assert model.equations_.weight_sum == 2 * len(X)


def test_standard_deviations_are_those_of_the_fit():
    model = KernelRidgeRegressor(features(), alphas=0.1).fit(X, NUMBERS + 5.0)
    expected = model.predict(X, return_std=True)[1]
    again = KernelRidgeRegressor(features(), alphas=0.1).fit(X, NUMBERS + 5.0)
    again.set_params(fit_intercept=False)
    assert_array_equal(again.predict(X, return_std=True)[1], expected)


def test_memory_mapped_models_learn_more(tmp_path):
    model = KernelRidgeRegressor(features(), alphas=0.1).fit(X[:30], NUMBERS[:30])
    joblib.dump(model, tmp_path / "model")
    mapped = joblib.load(tmp_path / "model", mmap_mode="r")
    mapped.partial_fit(X[30:], NUMBERS[30:])
    model.partial_fit(X[30:], NUMBERS[30:])
    assert_array_equal(mapped.primal_coef_, model.primal_coef_)
