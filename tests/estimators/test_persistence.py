import importlib.util
import json
import pickle
import zipfile
from pathlib import Path

import joblib
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import surff
from surff.adaptation import AgopAdaptation
from surff.draws import DRAWS
from surff.estimators import TRUSTED_TYPES, UntrustedModelError
from surff.selection import SELECTORS

GOLDEN = Path(__file__).parents[1] / "golden"

needs_skops = pytest.mark.skipif(
    importlib.util.find_spec("skops") is None,
    reason="skops is not installed (pip install 'surff[persist]')",
)


def problem(seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(60, 3))
    return X, np.where(X[:, 0] * X[:, 1] > 0, "same", "different")


def fitted(**options):
    X, y = problem()
    features = surff.FourierFeatures(16, random_state=0, **options)
    return surff.KernelRidgeClassifier(features, alphas=[0.1, 1.0], cv=3).fit(X, y)


@pytest.mark.parametrize(
    "round_trip",
    [
        pytest.param(
            lambda model, path: pickle.loads(pickle.dumps(model)), id="pickle"
        ),
        pytest.param(
            lambda model, path: joblib.dump(model, path) and joblib.load(path),
            id="joblib",
        ),
        pytest.param(
            lambda model, path: surff.save(model, path) or surff.load(path),
            id="skops",
            marks=needs_skops,
        ),
    ],
)
@pytest.mark.parametrize("draw", sorted(DRAWS))
def test_a_round_trip_keeps_predictions_and_parameters(round_trip, draw, tmp_path):
    X, _ = problem(1)
    model = fitted(draw=draw)
    again = round_trip(model, tmp_path / "model")
    assert_array_equal(again.decision_function(X), model.decision_function(X))
    assert_array_equal(again.alpha_path_.scores, model.alpha_path_.scores)
    assert repr(again) == repr(model)


@needs_skops
@pytest.mark.parametrize("select", sorted(SELECTORS))
def test_selectors_as_objects_round_trip(select, tmp_path):
    X, _ = problem(1)
    model = make_pipeline(StandardScaler(), fitted(select=SELECTORS[select]()))
    model[0].fit(X)
    surff.save(model, tmp_path / "model.skops")
    again = surff.load(tmp_path / "model.skops")
    assert_array_equal(again.predict(X), model.predict(X))


@needs_skops
@pytest.mark.parametrize("adapt", [AgopAdaptation(n_rounds=1), "gradient"])
def test_adapted_features_round_trip(adapt, tmp_path):
    X, y = problem(1)
    features = surff.FourierFeatures(8, adapt=adapt, random_state=0).fit(X, y)
    surff.save(features, tmp_path / "features.skops")
    again = surff.load(tmp_path / "features.skops")
    assert_array_equal(again.transform(X), features.transform(X))
    assert repr(again) == repr(features)


@needs_skops
@pytest.mark.parametrize("select", [None, "residual"])
def test_the_logistic_classifier_round_trips(select, tmp_path):
    X, y = problem()
    features = surff.FourierFeatures(16, select=select, random_state=0)
    model = surff.KernelLogisticClassifier(features, alphas=[0.1, 1.0], cv=3).fit(X, y)
    surff.save(model, tmp_path / "model.skops")
    again = surff.load(tmp_path / "model.skops")
    assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    assert again.alpha_ == model.alpha_


class Payload:
    """Unpickling an instance writes a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (Path(self.path),)


@needs_skops
def test_a_file_with_an_object_of_another_class_is_refused(tmp_path):
    model = fitted()
    model.extra_ = Payload(str(tmp_path / "ran"))
    surff.save(model, tmp_path / "model.skops")
    (tmp_path / "ran").unlink(missing_ok=True)
    with pytest.raises(UntrustedModelError, match=r"not trusted: .*Payload"):
        surff.load(tmp_path / "model.skops")
    assert not (tmp_path / "ran").exists()


@needs_skops
def test_an_injected_callable_does_not_run(tmp_path):
    path = tmp_path / "model.skops"
    surff.save(fitted(), path)
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    schema = json.loads(members["schema.json"])
    # Somebody edits the file: where the seed stood, a call of Path.touch.
    call = {
        "__class__": "touch",
        "__module__": "pathlib.Path",
        "__loader__": "FunctionNode",
        "content": str(tmp_path / "ran"),
        "__id__": 987654321,
    }
    schema["content"]["content"]["injected_"] = call
    members["schema.json"] = json.dumps(schema).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    with pytest.raises(UntrustedModelError, match=r"touch"):
        surff.load(path)
    assert not (tmp_path / "ran").exists()


class MyKernel(surff.kernels.Gaussian):
    """A user's own kernel."""


@needs_skops
def test_a_type_of_ones_own_loads_once_it_is_trusted(tmp_path):
    path = tmp_path / "model.skops"
    name = f"{MyKernel.__module__}.MyKernel"
    if importlib.util.find_spec(MyKernel.__module__) is None:
        pytest.skip("pytest imported this file under a name that skops cannot import")
    surff.save(fitted(kernel=MyKernel()), path)
    with pytest.raises(UntrustedModelError, match="MyKernel"):
        surff.load(path)
    assert isinstance(surff.load(path, trusted=[name]).features.kernel, MyKernel)


@needs_skops
def test_every_public_class_is_trusted():
    for cls in [surff.FourierFeatures, *DRAWS.values(), *SELECTORS.values()]:
        assert f"{cls.__module__}.{cls.__qualname__}" in TRUSTED_TYPES


@needs_skops
def test_bad_files_are_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="absent"):
        surff.load(tmp_path / "absent.skops")
    (tmp_path / "bad.skops").write_bytes(b"not a model")
    with pytest.raises(ValueError, match=r"bad\.skops is not a model file"):
        surff.load(tmp_path / "bad.skops")


@needs_skops
def test_a_failed_save_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "model.skops"
    surff.save(fitted(), path)
    before = path.read_bytes()
    monkeypatch.setattr("os.replace", lambda *_: (_ for _ in ()).throw(OSError("full")))
    with pytest.raises(OSError, match="full"):
        surff.save(fitted(gamma=0.3), path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["model.skops"]


@needs_skops
@pytest.mark.parametrize(
    "path", sorted(GOLDEN.glob("model-*.skops")), ids=lambda p: p.stem
)
def test_models_of_earlier_versions_load(path):
    X, _ = problem()
    expected = np.loadtxt(
        path.with_name(path.stem.replace("model", "decisions") + ".csv")
    )
    assert_allclose(surff.load(path).decision_function(X), expected, rtol=1e-9)
