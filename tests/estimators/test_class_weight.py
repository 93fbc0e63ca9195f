"""``class_weight``: scikit-learn's rule, in memory, in streams, in pieces."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import make_classification
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.estimator_checks import check_class_weight_classifiers

from surff import (
    FourierFeatures,
    KernelLogisticClassifier,
    KernelRidgeClassifier,
    load,
    save,
)
from surff.streaming import ArrayRows

FEATURES = FourierFeatures(20, gamma=0.1, random_state=0)
MODELS = [KernelRidgeClassifier, KernelLogisticClassifier]


@pytest.fixture(scope="module")
def rows():
    X, y = make_classification(
        240, 4, n_informative=3, n_redundant=0, n_classes=3, n_clusters_per_class=1,
        weights=[0.7, 0.2], class_sep=0.5, random_state=0,
    )  # fmt: skip
    return X, np.array(["a", "b", "c"])[y]


@pytest.mark.parametrize("cls", MODELS)
@pytest.mark.parametrize("class_weight", ["balanced", {"a": 0.3, "c": 2.0}])
@pytest.mark.parametrize("weighted", [False, True])
def test_it_is_the_weight_of_rows_by_their_class(rows, cls, class_weight, weighted):
    X, y = rows
    given, weight = None, compute_sample_weight(class_weight, y)
    if weighted:
        # A weight is a repetition, for the balance as well.
        given = np.random.default_rng(1).integers(0, 4, len(y)).astype(float)
        repeated = np.repeat(y, given.astype(int))
        of_class = dict(
            zip(repeated, compute_sample_weight(class_weight, repeated), strict=True)
        )
        weight = given * np.array([of_class[label] for label in y])
    own = cls(FEATURES, alphas=0.5, class_weight=class_weight).fit(X, y, given)
    expected = cls(FEATURES, alphas=0.5).fit(X, y, weight)
    assert_allclose(own.primal_coef_, expected.primal_coef_, rtol=1e-9, atol=1e-12)
    assert_allclose(own.intercept_, expected.intercept_, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("cls", MODELS)
def test_scikit_learn_checks_it(cls):
    model = cls(FourierFeatures(60, gamma=0.1, random_state=0), alphas=1e-3)
    check_class_weight_classifiers(cls.__name__, model)


@pytest.mark.parametrize("class_weight", ["balanced", {"a": 0.3, "b": 1.0, "c": 2.0}])
@pytest.mark.parametrize("cv", [3, "gcv"])
def test_a_stream_gives_the_same_weights(rows, class_weight, cv):
    X, y = rows
    model = KernelRidgeClassifier(
        FEATURES, alphas=[0.5], class_weight=class_weight, cv=cv
    )
    whole = model.fit(X, y).primal_coef_.copy()
    model.fit_stream(ArrayRows(X, y, block_rows=50))
    assert_allclose(model.primal_coef_, whole, rtol=1e-8, atol=1e-12)
    model.set_params(alphas=[0.1, 1.0, 10.0])
    model.fit_stream(ArrayRows(X, y, block_rows=50))
    weighted = ArrayRows(X, y, compute_sample_weight(class_weight, y))
    expected = KernelRidgeClassifier(FEATURES, alphas=[0.1, 1.0, 10.0], cv=cv)
    expected.fit_stream(weighted)
    assert model.alpha_ == expected.alpha_
    assert_allclose(model.primal_coef_, expected.primal_coef_, rtol=1e-8, atol=1e-12)


def test_pieces_take_a_dict(rows):
    X, y = rows
    model = KernelRidgeClassifier(FEATURES, alphas=0.5, class_weight={"a": 0.25})
    whole = model.fit(X, y).primal_coef_.copy()
    pieces = KernelRidgeClassifier(FEATURES, alphas=0.5, class_weight={"a": 0.25})
    for part in (slice(0, 100), slice(100, None)):
        pieces.partial_fit(X[part], y[part], classes=["a", "b", "c"])
    assert_allclose(pieces.primal_coef_, whole, rtol=1e-8, atol=1e-12)
    pieces.set_params(class_weight="balanced")
    with pytest.raises(ValueError, match="needs all rows at once"):
        pieces.partial_fit(X, y)


@pytest.mark.parametrize("cls", MODELS)
def test_what_is_refused(rows, cls):
    X, y = rows
    for weights, message in [
        ({"z": 2.0}, "keys out of the classes"),
        ({"a": -1.0}, "finite weights >= 0"),
        ({"a": 0, "b": 0, "c": 0}, "a positive weight"),
        ("even", "class_weight"),
    ]:
        with pytest.raises(ValueError, match=message):
            cls(FEATURES, alphas=0.5, class_weight=weights).fit(X, y)
    if cls is KernelRidgeClassifier:
        model = cls(FEATURES, alphas=0.5, class_weight={"z": 2.0})
        with pytest.raises(ValueError, match="keys out of the classes"):
            model.fit_stream(ArrayRows(X, y))
        model.set_params(class_weight="balanced")
        with pytest.raises(ValueError, match="one label per row"):
            model.fit(X, np.column_stack([y == "a", y == "b"]).astype(int))


@pytest.mark.parametrize("cls", MODELS)
def test_it_is_saved(rows, cls, tmp_path):
    X, y = rows
    model = cls(FEATURES, alphas=0.5, class_weight={"a": 0.3}).fit(X, y)
    save(model, tmp_path / "model.skops")
    again = load(tmp_path / "model.skops")
    assert again.class_weight == {"a": 0.3}
    assert (again.predict(X) == model.predict(X)).all()
