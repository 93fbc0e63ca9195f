"""Reports on similar software, for every draw, selection and rule of landmarks.

Docstrings say where a report was seen (sk is scikit-learn). Those that concern one
module are in its tests.
"""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone

from surff import (
    FourierFeatures,
    KernelRidgeClassifier,
    KernelRidgeRegressor,
    NystroemFeatures,
)
from surff.draws import DRAWS
from surff.selection import LANDMARK_RULES, SELECTORS

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = np.sin(X[:, 0]) + X[:, 1] ** 2 + 0.2 * RNG.normal(size=60)
TWO = np.where(np.median(Y) < Y, "yes", "no")
NEW = RNG.normal(size=(25, 3))
WEIGHT = RNG.integers(0, 4, size=60)
for array in (X, Y, TWO, NEW, WEIGHT):
    array.flags.writeable = False

RULES = [*sorted(LANDMARK_RULES), "kmeans"]
MODELS = [KernelRidgeRegressor, KernelRidgeClassifier]
TARGETS = {KernelRidgeRegressor: Y, KernelRidgeClassifier: TWO}


def fourier(n_components=16, **parameters):
    return FourierFeatures(
        n_components, **{"gamma": 0.3, "random_state": 0, **parameters}
    )


def nystroem(n_components=16, **parameters):
    return NystroemFeatures(
        n_components, **{"gamma": 0.3, "random_state": 0, **parameters}
    )


TRANSFORMERS = {
    **{f"draw {draw}": fourier(draw=draw) for draw in sorted(DRAWS)},
    **{f"select {select}": fourier(select=select) for select in sorted(SELECTORS)},
    **{f"landmarks {rule}": nystroem(landmarks=rule) for rule in RULES},
}
transformers = pytest.mark.parametrize(
    "transformer", TRANSFORMERS.values(), ids=TRANSFORMERS.keys()
)


@transformers
def test_single_precision_of_transformers(transformer):
    """Sk 11000, 24317: float32 in, float32 out, nearly equal to float64."""
    Z = {}
    for dtype in (np.float32, np.float64):
        fitted = clone(transformer).fit(X.astype(dtype), Y)
        Z[dtype] = fitted.transform(NEW.astype(dtype))
        assert Z[dtype].dtype == dtype
    assert_allclose(Z[np.float32], Z[np.float64], rtol=0, atol=1e-4)


WEIGHTED = {
    **{Model.__name__: Model(fourier(), alphas=0.7) for Model in MODELS},
    **{
        name: TRANSFORMERS[name]
        for name in TRANSFORMERS
        if name.startswith(("select", "landmarks"))
    },
}
weighted = pytest.mark.parametrize("estimator", WEIGHTED.values(), ids=WEIGHTED.keys())


def values(fitted):
    return (
        fitted.primal_coef_
        if hasattr(fitted, "primal_coef_")
        else fitted.transform(NEW)
    )


@weighted
def test_sample_weights_that_are_fine(estimator):
    """Sk 16154, cuML 8040: a scalar is a constant vector, zero leaves a row out."""
    target = TARGETS.get(type(estimator), Y)
    scalar = clone(estimator).fit(X, target, sample_weight=2.0)
    vector = clone(estimator).fit(X, target, sample_weight=np.full(60, 2.0))
    assert_array_equal(values(scalar), values(vector))
    ones = clone(estimator).fit(X, target, sample_weight=np.ones(60, dtype=int))
    plain = clone(estimator).fit(X, target)
    assert_allclose(values(ones), values(plain), rtol=1e-10, atol=1e-12)
    if isinstance(estimator, NystroemFeatures):
        # Rows are drawn at random: one of weight zero is never a landmark.
        fitted = clone(estimator).fit(X, target, sample_weight=(WEIGHT > 0) * 1.0)
        if fitted.landmark_indices_ is not None:
            assert WEIGHT[fitted.landmark_indices_].min() > 0
        return
    kept = WEIGHT > 0
    dropped = clone(estimator).fit(X[kept], target[kept], sample_weight=WEIGHT[kept])
    zeros = clone(estimator).fit(X, target, sample_weight=WEIGHT)
    assert_allclose(values(zeros), values(dropped), rtol=1e-8, atol=1e-10)


@weighted
@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (-1.0, "Negative values in data"),
        (np.nan, "sample_weight contains NaN"),
        (np.inf, "sample_weight contains infinity"),
    ],
)
def test_bad_sample_weights(estimator, bad, message):
    """Sk 16154, cuML 8040: negative, NaN and infinite ones stop before the solver."""
    target = TARGETS.get(type(estimator), Y)
    weight = np.ones(60)
    weight[7] = bad
    for method in {"fit", "partial_fit"} & set(dir(estimator)):
        with pytest.raises(ValueError, match=message):
            getattr(clone(estimator), method)(X, target, sample_weight=weight)


@transformers
def test_no_global_random_state(transformer):
    """Rfflearn: a seed is the estimator's own, and nobody else's is moved."""
    first = clone(transformer).fit(X, Y).transform(NEW)
    np.random.seed(12345)  # noqa: NPY002  (what must not matter)
    expected = np.random.uniform()  # noqa: NPY002
    np.random.seed(12345)  # noqa: NPY002
    second = clone(transformer).fit(X, Y).transform(NEW)
    assert_array_equal(first, second)
    assert np.random.uniform() == expected  # noqa: NPY002


FITTED = {
    "FourierFeatures": fourier(),
    "NystroemFeatures": nystroem(),
    "KernelRidgeRegressor": KernelRidgeRegressor(fourier(), alphas=0.7),
    "KernelRidgeClassifier": KernelRidgeClassifier(fourier(), alphas=0.7),
}


@pytest.mark.parametrize("name", FITTED)
@pytest.mark.parametrize(
    ("form", "bad"),
    [("array", np.nan), ("array", -np.inf), ("csr", np.nan), ("csc", np.inf),
     ("frame", np.inf), ("frame", np.nan)],
)  # fmt: skip
def test_nan_is_refused_with_its_column(name, form, bad):
    """XGPR: NaN in at predict gave NaN out; here the columns are named."""
    fitted = clone(FITTED[name]).fit(X, TWO if "Classifier" in name else Y)
    apply = fitted.predict if hasattr(fitted, "predict") else fitted.transform
    broken = NEW.copy()
    broken[[2, 9], 1] = bad
    where = "Columns with NaN or infinity: 1"
    if form == "frame":
        pandas = pytest.importorskip("pandas", reason="pandas is not installed")
        broken = pandas.DataFrame(broken, columns=["a", "b", "c"])
        frame = pandas.DataFrame(X, columns=["a", "b", "c"])
        fitted.fit(frame, TWO if "Classifier" in name else Y)
        where += r" \('b'\)"
    elif form != "array":
        broken = sparse.csr_array(broken).asformat(form)
    message = rf"(?s)Input X contains (NaN|infinity).*{where}\.$"
    with pytest.raises(ValueError, match=message):
        apply(broken)
    with pytest.raises(ValueError, match=message):
        fitted.fit(broken, Y[:25] if "Classifier" not in name else TWO[:25])


@transformers
def test_generators_are_accepted(transformer):
    """RBFSampler: a numpy Generator as random_state, which advances."""
    generator = np.random.default_rng(0)
    given = clone(transformer).set_params(random_state=generator)
    first = given.fit(X, Y).transform(NEW)
    assert_array_equal(first, clone(transformer).fit(X, Y).transform(NEW))
    for state in (np.random.RandomState(0), np.random.default_rng(3), None, 5):
        given.set_params(random_state=state).fit(X, Y)
    for Model in MODELS:
        model = Model(given.set_params(random_state=generator), alphas=0.7)
        model.fit(X, TARGETS[Model])
