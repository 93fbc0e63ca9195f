"""Predictor, ONNX and C beside `predict`, on one grid of models."""

import ctypes
import functools
import pickle
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import make_friedman1
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    PolynomialFeatures,
    RobustScaler,
    StandardScaler,
)

import surff
from surff import (
    FourierFeatures,
    GradientAdaptation,
    KernelLogisticClassifier,
    KernelRidgeClassifier,
    KernelRidgeRegressor,
    LeafHeads,
    NystroemFeatures,
    Predictor,
)

X, Y = make_friedman1(150, n_features=5, noise=0.5, random_state=0)
NEW = np.random.default_rng(1).uniform(size=(40, 5))
THREE = np.digitize(Y, np.quantile(Y, [0.3, 0.7]))
LABELS = np.array(["low", "mid", "high"])[THREE]
for array in (X, Y, NEW, THREE, LABELS):
    array.flags.writeable = False


def fourier(**parameters):
    return FourierFeatures(
        **{"n_components": 30, "gamma": 0.5, "random_state": 0} | parameters
    )


def nystroem(kernel="rbf", **parameters):
    return NystroemFeatures(20, kernel=kernel, random_state=0, **parameters)


def ridge(features, **parameters):
    return KernelRidgeRegressor(features, **{"alphas": 0.1} | parameters)


#: Fixed numbers: their choice is tested elsewhere, and takes time.
LEAVES = LeafHeads(4, alpha=1.0)

KERNELS = {
    "rbf": {"gamma": 0.5},
    "laplacian": {"gamma": 0.3},
    "exponential": {},
    "matern": {},
    "rational_quadratic": {},
    "exponential_power": {},
    "linear": {},
    "poly": {"degree": 2, "coef0": 0.5},
    "sigmoid": {"gamma": 0.01, "coef0": 0.1},
}

#: Name of a case -> model and targets.
CASES = {
    "fourier": (ridge(fourier()), Y),
    "odd": (ridge(fourier(n_components=31)), Y),
    "weights": (ridge(fourier(select="surrogate")), Y),
    "sorf": (ridge(fourier(draw="structured_orthogonal")), Y),
    "warp": (ridge(fourier(adapt=GradientAdaptation(n_steps=20, warp=True))), Y),
    "targets": (ridge(fourier()), np.column_stack([Y, Y**2 / 20])),
    "no intercept": (ridge(fourier(), fit_intercept=False), Y),
    "leaves": (ridge(fourier(), leaves=LEAVES), Y),
    "odd leaves": (ridge(fourier(n_components=31), leaves=LEAVES), Y),
    "nystroem leaves": (ridge(nystroem(gamma=0.5), leaves=LEAVES), Y),
    **{
        f"nystroem {kernel}": (ridge(nystroem(kernel, **parameters)), Y)
        for kernel, parameters in KERNELS.items()
    },
    "matern 5/2": (ridge(nystroem("matern", kernel_params={"nu": 2.5})), Y),
    "matern 1/2": (ridge(nystroem("matern", kernel_params={"nu": 0.5})), Y),
    "gammas": (ridge(nystroem(gamma=[0.1, 0.2, 0.5, 1.0, 2.0])), Y),
    "two classes": (KernelRidgeClassifier(fourier(), alphas=0.1), THREE > 0),
    "labels": (KernelRidgeClassifier(nystroem(gamma=0.5), alphas=0.1), LABELS),
    "multilabel": (
        KernelRidgeClassifier(fourier(), alphas=0.1),
        np.column_stack([THREE > 0, THREE > 1]).astype(int),
    ),
    "platt": (KernelRidgeClassifier(fourier(), alphas=0.1, probability=True), LABELS),
    "platt of two": (
        KernelRidgeClassifier(fourier(), alphas=0.1, probability=True), THREE > 1
    ),
    "logistic": (KernelLogisticClassifier(fourier(), alphas=1e-3), LABELS),
    "logistic of two": (KernelLogisticClassifier(nystroem(), alphas=1e-3), THREE > 0),
    **{
        type(scaler).__name__: (make_pipeline(scaler, ridge(fourier(gamma=0.1))), Y)
        for scaler in (
            StandardScaler(), MinMaxScaler((-1, 2)), MaxAbsScaler(), RobustScaler(),
            StandardScaler(with_mean=False), StandardScaler(with_std=False),
        )
    },
    "two scalers": (
        make_pipeline(
            StandardScaler(), "passthrough", MinMaxScaler(),
            KernelRidgeClassifier(nystroem(gamma=0.5), alphas=0.1),
        ),
        LABELS,
    ),
}  # fmt: skip

DTYPES = [np.float64, np.float32]


@functools.cache
def fitted(case, dtype=np.float64):
    """The model of a case, which no test may change."""
    model, y = CASES[case]
    return clone(model).fit(X.astype(dtype), y)


def decisions_of(model, rows):
    return getattr(model, "decision_function", model.predict)(rows)


def tolerance(expected, dtype):
    """Rounding of sums of features times coefficients of the size of the targets."""
    return {np.float64: 1e-12, np.float32: 1e-5}[dtype] * max(1, abs(expected).max())


# Predictor


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("case", CASES)
def test_a_predictor_predicts_as_the_model(case, dtype):
    model, rows = fitted(case, dtype), NEW.astype(dtype)
    predictor = Predictor(model)
    assert predictor.n_features_in == 5
    assert predictor.dtype == dtype
    for part in (rows, rows[:1], rows[:0], np.tile(rows, (3, 1))):
        if not len(part):
            assert len(predictor.decision_function(part)) == 0
            continue
        expected = decisions_of(model, part)
        found = predictor.decision_function(part)
        assert found.shape == expected.shape
        assert found.dtype == expected.dtype
        assert_allclose(found, expected, atol=tolerance(expected, dtype))
    if hasattr(model, "classes_"):
        assert_array_equal(predictor.predict(rows), model.predict(rows))
    if hasattr(model, "predict_proba"):
        expected = model.predict_proba(rows)
        assert_allclose(predictor.predict_proba(rows), expected, atol=1e-5)
    else:
        with pytest.raises(AttributeError, match="predict_proba needs"):
            predictor.predict_proba(rows)


@pytest.mark.parametrize("case", ["nystroem cosine", "own", "sparse landmarks"])
def test_a_predictor_serves_what_cannot_be_written_down(case):
    rows = X
    if case == "nystroem cosine":
        features = nystroem("cosine")
    elif case == "sparse landmarks":
        features = nystroem(landmarks=sparse.csr_array(X[:9]))
    else:
        features = nystroem(lambda x, y: float(np.minimum(x, y).sum()))
    model = ridge(features).fit(rows, Y)
    assert_allclose(Predictor(model)(NEW), model.predict(NEW), rtol=1e-10)


@pytest.mark.parametrize("case", ["fourier", "nystroem rbf", "platt", "leaves", "warp"])
def test_a_predictor_pickles_small_and_alike(case):
    predictor = Predictor(fitted(case))
    before = predictor.predict(NEW)
    text = pickle.dumps(predictor)
    assert_array_equal(pickle.loads(text).predict(NEW), before)
    if case != "leaves":
        # 30 x 5 frequencies or 20 x 5 landmarks, and as many coefficients.
        assert len(text) < 6000


def test_a_predictor_answers_threads_with_the_same_bits():
    predictor = Predictor(fitted("nystroem rbf"))
    rows = np.tile(NEW, (5, 1))
    expected = predictor.predict(rows)
    with ThreadPoolExecutor(8) as pool:
        for found in pool.map(lambda _: predictor.predict(rows), range(24)):
            assert_array_equal(found, expected)


def test_a_predictor_converts_types_and_refuses_shapes():
    predictor = Predictor(fitted("fourier"))
    expected = predictor.predict(NEW.round(1))
    assert_array_equal(predictor.predict(NEW.round(1).tolist()), expected)
    assert_array_equal(predictor.predict(np.asfortranarray(NEW.round(1))), expected)
    for bad in (NEW[0], NEW[:, :4], NEW[None]):
        with pytest.raises(ValueError, match=r"X must have shape \(n_rows, 5\)"):
            predictor.predict(bad)


def test_later_changes_of_the_model_do_not_reach_it():
    model = ridge(fourier()).fit(X, Y)
    predictor = Predictor(model)
    before = predictor.predict(NEW)
    model.fit(X, -Y)
    assert_array_equal(predictor.predict(NEW), before)


@pytest.mark.parametrize("write", [Predictor, surff.to_onnx, surff.to_c])
def test_models_without_a_finite_form_are_refused(write):
    with pytest.raises(NotFittedError):
        write(ridge(fourier()))
    with pytest.raises(TypeError, match="model must be a kernel ridge"):
        write(StandardScaler().fit(X))
    piped = make_pipeline(PolynomialFeatures(), ridge(fourier())).fit(X, Y)
    with pytest.raises(TypeError, match="steps before the model must be"):
        write(piped)


# ONNX


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("case", CASES)
def test_onnx_agrees(case, dtype):
    pytest.importorskip("onnx", reason="needs the extra onnx")
    runtime = pytest.importorskip("onnxruntime", reason="needs onnxruntime")
    model, rows = fitted(case, dtype), NEW.astype(dtype)
    graph = surff.to_onnx(model)
    session = runtime.InferenceSession(
        graph.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    names = [output.name for output in session.get_outputs()]
    answers = dict(zip(names, session.run(None, {"X": rows}), strict=True))
    found = answers["decisions" if "decisions" in answers else "predictions"]
    expected = decisions_of(model, rows)
    assert found.shape == expected.shape
    assert found.dtype == dtype
    assert_allclose(found, expected, rtol=0, atol=tolerance(expected, dtype))
    if hasattr(model, "classes_"):
        # Labels that are bool come out as 0 and 1.
        assert_array_equal(answers["labels"], model.predict(rows))
    if hasattr(model, "predict_proba"):
        expected = model.predict_proba(rows)
        atol = tolerance(expected, dtype)
        assert_allclose(answers["probabilities"], expected, rtol=0, atol=atol)


def test_onnx_of_another_type():
    pytest.importorskip("onnx", reason="needs the extra onnx")
    runtime = pytest.importorskip("onnxruntime", reason="needs onnxruntime")
    model = fitted("nystroem rbf")
    graph = surff.to_onnx(model, dtype=np.float32)
    session = runtime.InferenceSession(
        graph.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    found = session.run(None, {"X": NEW.astype(np.float32)})[0]
    assert found.dtype == np.float32
    assert_allclose(found, model.predict(NEW), atol=1e-4)
    with pytest.raises(ValueError, match="dtype must be float32 or float64"):
        surff.to_onnx(model, dtype=np.int32)


def test_onnx_without_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match=r"pip install 'surff\[onnx\]'"):
        surff.to_onnx(fitted("fourier"))


@pytest.mark.parametrize("write", [surff.to_onnx, surff.to_c])
@pytest.mark.parametrize(
    "features", [nystroem("cosine"), nystroem("cauchy"), nystroem(lambda x, y: x @ y)]
)
def test_kernels_that_cannot_be_written_down_are_refused(write, features):
    if write is surff.to_onnx:
        pytest.importorskip("onnx", reason="needs the extra onnx")
    model = ridge(features).fit(X, Y)
    with pytest.raises(TypeError, match="no form that can be written down"):
        write(model)


# C


@pytest.fixture(scope="module")
def compiler():
    found = shutil.which("cc") or shutil.which("gcc")
    if found is None:
        pytest.skip("needs a C compiler")
    return found


@pytest.mark.parametrize("case", CASES)
def test_c_agrees(case, compiler, tmp_path):
    model = fitted(case)
    source = surff.to_c(model)
    assert source.count("\n") < 300
    (tmp_path / "model.c").write_text(source)
    library = tmp_path / "model.so"
    warnings = ["-std=c99", "-pedantic", "-Wall", "-Werror", "-Wno-overlength-strings"]
    command = [compiler, *warnings, "-O1", "-shared", "-fPIC", "model.c"]
    subprocess.run([*command, "-o", library, "-lm"], cwd=tmp_path, check=True)
    functions = ctypes.CDLL(str(library))
    expected = np.reshape(decisions_of(model, NEW), (len(NEW), -1))
    found = np.empty_like(expected)
    pointers = ctypes.POINTER(ctypes.c_double)
    for row, out in zip(NEW, found, strict=True):
        arguments = (array.ctypes.data_as(pointers) for array in (row, out))
        functions.surff_decide(*arguments)
    atol = tolerance(expected, np.float64)
    assert_allclose(found, expected, rtol=0, atol=atol)
    if hasattr(functions, "surff_class"):
        numbers = [functions.surff_class(row.ctypes.data_as(pointers)) for row in NEW]
        assert_array_equal(model.classes_[numbers], model.predict(NEW))


def test_text_in_labels_cannot_end_the_comment():
    labels = np.where(THREE > 0, "*/ int x;", "a\\\nb")
    source = surff.to_c(KernelRidgeClassifier(fourier(), alphas=1.0).fit(X, labels))
    assert "*/ int" not in source
    assert source.count("*/") == 2
