import errno
import importlib.util
import io
import json
import os
import pickle
import stat
import struct
import threading
import zipfile
from pathlib import Path

import joblib
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import BaggingRegressor, StackingClassifier, VotingClassifier
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.frozen import FrozenEstimator
from sklearn.gaussian_process import kernels as gp
from sklearn.metrics import f1_score, make_scorer, mean_squared_error
from sklearn.model_selection import (
    GridSearchCV,
    HalvingGridSearchCV,
    KFold,
    LeaveOneOut,
    PredefinedSplit,
    RandomizedSearchCV,
    RepeatedKFold,
    ShuffleSplit,
    StratifiedKFold,
    TimeSeriesSplit,
    TunedThresholdClassifierCV,
)
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import surff
from surff.adaptation import AgopAdaptation
from surff.draws import DRAWS
from surff.estimators import TRUSTED_TYPES, ModelFileError, UntrustedModelError
from surff.estimators._model_file import sealed
from surff.selection import SELECTORS

try:
    import skops.io
except ImportError:
    skops = None

GOLDEN = Path(__file__).parents[1] / "golden"

needs_skops = pytest.mark.skipif(
    importlib.util.find_spec("skops") is None,
    reason="skops is not installed (pip install 'surff[persist]')",
)


def write(path, data, comment=True):
    """An archive of skops as a file of surff, with its checksum or without."""
    path.write_bytes(b"".join(sealed(data)) if comment else data)


def rewrite(path, change, comment=True):
    """Change ``schema`` and ``members`` of a model file, as an attacker can."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    schema = json.loads(members["schema.json"])
    change(schema, members)
    members["schema.json"] = json.dumps(schema).encode()
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        for name, content in members.items():
            file.writestr(name, content)
    write(path, archive.getvalue(), comment)


def attributes(schema, *names):
    """Description of the attributes of a part of a model."""
    for name in names:
        schema = schema["content"]["content"][name]
    return schema["content"]["content"]


def add(schema, name, part):
    """Another attribute of the model."""
    holder = schema["content"]
    holder["content"][name] = part
    kind = node("TypeNode", "builtins", "str")
    holder["key_types"]["content"].append({**kind, "__id__": 123456789})


def put(members, description, values):
    """Other values for an array in a model file."""
    buffer = io.BytesIO()
    np.save(buffer, values)
    members[description["file"]] = buffer.getvalue()


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
    model, path = fitted(), tmp_path / "model.skops"
    model.extra_ = Payload(str(tmp_path / "ran"))
    with pytest.raises(UntrustedModelError, match=r"not written.*Payload"):
        surff.save(model, path)
    assert not path.exists()
    write(path, skops.io.dumps(model))
    (tmp_path / "ran").unlink(missing_ok=True)
    with pytest.raises(
        UntrustedModelError, match=r"model\.skops.*not trusted.*Payload"
    ):
        surff.load(path)
    assert not (tmp_path / "ran").exists()


def node(loader, module, name, **parts):
    return {
        "__class__": name,
        "__module__": module,
        "__loader__": loader,
        "__id__": 987654321,
        **parts,
    }


@needs_skops
@pytest.mark.parametrize(
    "injected",
    [
        node("FunctionNode", "pathlib.Path", "touch", content="ran"),
        node("TypeNode", "os", "system"),
        # Names that are trusted, by loaders that would call them.
        node("ListNode", "sklearn.metrics._regression", "r2_score", content=[]),
        node("ListNode", "sklearn.model_selection._split", "KFold", content=[]),
        node("DictNode", "surff.estimators.ridge", "KernelRidgeRegressor", content={}),
        node("FunctionNode", "numpy", "load"),
        node("FunctionNode", "numpy", "savetxt"),
        node("FunctionNode", "sklearn.utils", "all_estimators"),
        node("FunctionNode", "sklearn.metrics.pairwise", "pairwise_distances"),
        node("ObjectNode", "scipy.stats._distn_infrastructure", "rv_continuous"),
    ],
    ids=lambda part: f"{part['__class__']}-{part['__loader__']}",
)
def test_injected_calls_do_not_run(injected, tmp_path):
    path = tmp_path / "model.skops"
    surff.save(fitted(), path)

    def inject(schema, _):
        add(schema, "injected_", injected)

    if injected["__loader__"] == "DictNode":
        injected = {**injected, "key_types": node("ListNode", "builtins", "list")}
        injected["key_types"] |= {"content": [], "__id__": 987654322}
    rewrite(path, inject)
    with pytest.raises(UntrustedModelError, match=injected["__class__"]):
        surff.load(path)
    assert [file.name for file in tmp_path.iterdir()] == ["model.skops"]


class MyKernel(surff.kernels.Gaussian):
    """A user's own kernel."""


@needs_skops
def test_a_type_of_ones_own_loads_once_it_is_trusted(tmp_path):
    path = tmp_path / "model.skops"
    name = f"{MyKernel.__module__}.MyKernel"
    if importlib.util.find_spec(MyKernel.__module__) is None:
        pytest.skip("pytest imported this file under a name that skops cannot import")
    with pytest.raises(UntrustedModelError, match="MyKernel"):
        surff.save(fitted(kernel=MyKernel()), path)
    surff.save(fitted(kernel=MyKernel()), path, trusted=[name])
    with pytest.raises(UntrustedModelError, match="MyKernel"):
        surff.load(path)
    with pytest.raises(TypeError, match="sequence of names"):
        surff.load(path, trusted=name)
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


# -- Damage --------------------------------------------------------------------------


@needs_skops
def test_a_flipped_bit_anywhere_is_refused_by_name(tmp_path):
    path, damaged = tmp_path / "model.skops", tmp_path / "damaged.skops"
    X, y = problem()
    features = surff.FourierFeatures(4, random_state=0)
    surff.save(surff.KernelRidgeClassifier(features, alphas=1.0).fit(X, y), path)
    data = path.read_bytes()
    rng = np.random.default_rng(0)
    ends = [*range(40), *range(len(data) - 130, len(data))]
    for place in [*ends, *rng.integers(0, len(data), 200)]:
        flipped = bytearray(data)
        flipped[place] ^= 1 << rng.integers(8)
        damaged.write_bytes(flipped)
        with pytest.raises(ModelFileError, match=r"damaged\.skops"):
            surff.load(damaged)


@needs_skops
def test_a_file_cut_short_is_refused_by_name(tmp_path):
    path = tmp_path / "model.skops"
    surff.save(fitted(), path)
    data = path.read_bytes()
    for length in [0, 1, 21, 22, 100, len(data) // 2, len(data) - 88, len(data) - 1]:
        path.write_bytes(data[:length])
        with pytest.raises(ModelFileError, match=r"model\.skops"):
            surff.load(path)


@needs_skops
def test_the_archive_is_one_that_skops_reads(tmp_path):
    path, (X, _) = tmp_path / "model.skops", problem()
    model = make_pipeline(StandardScaler(), fitted())
    model[0].fit(X)
    surff.save(model, path)
    again = skops.io.load(path, trusted=skops.io.get_untrusted_types(file=path))
    assert_array_equal(again.predict(X), model.predict(X))


@needs_skops
def test_a_newer_format_says_so(tmp_path, monkeypatch):
    path = tmp_path / "model.skops"
    with monkeypatch.context() as patch:
        patch.setattr("surff.estimators._model_file.FORMAT", 7)
        surff.save(fitted(), path)
    with pytest.raises(ModelFileError, match=r"format 7 is newer"):
        surff.load(path)


@needs_skops
@pytest.mark.parametrize("thing", [{"a": 1}, [1, 2], np.arange(3.0), int, "text"])
def test_only_estimators_are_saved_and_loaded(thing, tmp_path):
    path = tmp_path / "model.skops"
    with pytest.raises(TypeError, match="model must be an estimator, got"):
        surff.save(thing, path)
    write(path, skops.io.dumps(thing))
    with pytest.raises(ModelFileError, match=r"model\.skops.* no estimator"):
        surff.load(path)


@needs_skops
def test_a_class_is_no_estimator(tmp_path):
    with pytest.raises(TypeError, match="must be an estimator"):
        surff.save(surff.FourierFeatures, tmp_path / "model.skops")


# -- Size ----------------------------------------------------------------------------


def bomb(n_bytes):
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("1.npy", npy(np.zeros(n_bytes, np.int8)))
        file.writestr("schema.json", "{}")
    return archive.getvalue()


def npy(values):
    buffer = io.BytesIO()
    np.save(buffer, values)
    return buffer.getvalue()


def traced_peak(call):
    import tracemalloc

    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@needs_skops
@pytest.mark.parametrize("comment", [True, False], ids=["sealed", "older"])
@pytest.mark.parametrize("lie", [None, 100], ids=["declared", "understated"])
def test_a_small_file_that_unpacks_to_a_large_one_is_refused(comment, lie, tmp_path):
    path, data = tmp_path / "model.skops", bytearray(bomb(2**27))
    assert len(data) < 140_000
    if lie is not None:
        place = data.index(b"PK\1\2")
        data[place + 24 : place + 28] = struct.pack("<I", lie)
    write(path, bytes(data), comment)

    def load():
        with pytest.raises(ModelFileError, match=r"model\.skops"):
            surff.load(path)

    assert traced_peak(load) < 2**25


@needs_skops
def test_a_header_that_asks_for_much_is_refused(tmp_path):
    path = tmp_path / "model.skops"
    surff.save(fitted(), path)

    def enlarge(schema, members):
        name = attributes(schema)["primal_coef_"]["file"]
        members[name] = members[name].replace(b"(1, 16), }", b"(1, 10**9), }")
        members[name] = members[name].replace(b"(1, 10**9), }", b"(10000000000,), }", 1)

    rewrite(path, enlarge)
    assert traced_peak(lambda: refused(path, "header")) < 2**25


def refused(path, match):
    with pytest.raises(ModelFileError, match=rf"{path.name}.*{match}"):
        surff.load(path)


@needs_skops
def test_one_array_read_many_times_is_refused(tmp_path):
    path = tmp_path / "model.skops"
    surff.save(fitted(), path)

    def repeat(schema, members):
        part = attributes(schema)["primal_coef_"]
        put(members, part, np.zeros(2**20))
        for number in range(100):
            add(schema, f"copy{number}_", {**part, "__id__": number + 1})

    rewrite(path, repeat)
    refused(path, "over and over")


@needs_skops
def test_deep_nesting_is_refused(tmp_path):
    path = tmp_path / "model.skops"
    surff.save(fitted(), path)

    def nest(schema, _):
        part = node("ListNode", "builtins", "list", content=[])
        for number in range(300):
            part = {**node("ListNode", "builtins", "list"), "content": [part]}
            part["__id__"] = number + 1
        add(schema, "deep_", part)

    rewrite(path, nest)
    refused(path, "nested deeper than")
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("schema.json", "[" * 100_000 + "]" * 100_000)
    refused(path, "")


@needs_skops
def test_an_object_inside_itself_is_refused(tmp_path):
    path = tmp_path / "model.skops"
    surff.save(fitted(), path)

    def turn(schema, _):
        part = node("ListNode", "builtins", "list", content=[])
        part["content"] = [{**part}]
        add(schema, "inside_", part)

    rewrite(path, turn)
    refused(path, "RecursionError")


@needs_skops
def test_a_pool_of_words_that_takes_hours_is_refused(tmp_path):
    path = tmp_path / "model.skops"
    model = surff.FourierFeatures(4, random_state=np.random.default_rng(0))
    surff.save(model, path)

    def enlarge(schema, _):
        seed = attributes(schema)["random_state"]["content"]["seed_seq"]
        seed["content"]["pool_size"]["content"] = "100000000"

    rewrite(path, enlarge)
    refused(path, "pool of 100000000 words")

    def hide(schema, _):
        # skops takes the first object of an identity, whatever the second says.
        pool = attributes(schema)["random_state"]["content"]["seed_seq"]["content"]
        pool["pool_size"] |= {"content": "4", "__id__": 42}
        attributes(schema)["n_components"] |= {"content": "100000000", "__id__": 42}

    rewrite(path, hide)
    refused(path, "two at a time")


@needs_skops
def test_a_generator_that_is_a_function_is_refused(tmp_path):
    path = tmp_path / "model.skops"
    model = surff.FourierFeatures(4, random_state=np.random.default_rng(0))
    surff.save(model, path)

    def call(schema, _):
        state = attributes(schema)["random_state"]["content"]["bit_generator"]
        state["content"]["bit_generator"]["content"] = '"set_bit_generator"'

    rewrite(path, call)
    refused(path, "set_bit_generator")


@needs_skops
@pytest.mark.parametrize("name", ["MT19937", "PCG64", "PCG64DXSM", "Philox", "SFC64"])
def test_every_generator_of_numpy_loads(name, tmp_path):
    path, generator = tmp_path / "model.skops", getattr(np.random, name)
    rng = np.random.Generator(generator(7))
    rng.normal(size=3)
    surff.save(surff.FourierFeatures(4, random_state=rng), path)
    again = surff.load(path).random_state
    assert_array_equal(again.normal(size=5), rng.normal(size=5))


# -- Attributes that contradict each other ---------------------------------------------


def change_array(name, values, *parts):
    def change(schema, members):
        put(members, attributes(schema, *parts)[name], values)

    return change


def change_number(name, text, *parts):
    def change(schema, _):
        # Small numbers are one object in Python, and the file says so by its id.
        part = attributes(schema, *parts)[name]
        attributes(schema, *parts)[name] = {**part, "content": text, "__id__": 42}

    return change


def drop(name, *parts):
    return lambda schema, _: attributes(schema, *parts).pop(name)


CONTRADICTIONS = {
    "primal_coef_ too long": change_array("primal_coef_", np.ones((1, 17))),
    "primal_coef_ of text": change_array("primal_coef_", np.full((1, 16), "x")),
    "primal_coef_ not finite": change_array("primal_coef_", np.full((1, 16), np.nan)),
    "primal_coef_ of other bytes": change_array(
        "primal_coef_", np.ones((1, 16), ">f8")
    ),
    "primal_coef_ gone": drop("primal_coef_"),
    "intercept_": change_array("intercept_", np.ones(2)),
    "classes_": change_array("classes_", np.array(["a", "b", "c"])),
    "classes_ twice": change_array("classes_", np.array(["a", "a"])),
    "calibration_": change_array("calibration_", np.ones((2, 2))),
    "_offset": change_array("_offset", np.ones(2)),
    "alpha_": change_number("alpha_", '"one"'),
    "best_score_": change_number("best_score_", "NaN"),
    "n_features_in_": change_number("n_features_in_", "4"),
    "n_iter_": change_number("n_iter_", "null"),
    "features_": lambda schema, _: attributes(schema).update(
        features_=attributes(schema)["n_iter_"]
    ),
    "a method": lambda schema, _: add(
        schema, "_decisions", attributes(schema)["n_iter_"]
    ),
    "parameter": change_number("max_iter", '"many"'),
    "frequencies_": change_array("frequencies_", np.ones((8, 4)), "features_"),
    "frequencies_ int": change_array("frequencies_", np.ones((8, 3), int), "features_"),
    "importance_weights_": change_array("importance_weights_", np.ones(9), "features_"),
    "importance_weights_ < 0": change_array(
        "importance_weights_", -np.ones(8), "features_"
    ),
    "importance_weights_ gone": drop("importance_weights_", "features_"),
    "gamma_": change_number("gamma_", "-1.0", "features_"),
    "moments": change_array("moments", np.ones((16, 2)), "equations_"),
    "feature_sum": change_array("feature_sum", np.ones(15), "equations_"),
    "weight_sum": change_number("weight_sum", "Infinity", "equations_"),
    "_gram": change_array("_gram", np.ones(17), "equations_"),
    "alphas": lambda schema, members: put(
        members, attributes(schema)["alpha_path_"]["content"][0], np.ones(5)
    ),
}


@needs_skops
@pytest.mark.parametrize("comment", [True, False], ids=["sealed", "older"])
@pytest.mark.parametrize("name", CONTRADICTIONS)
def test_attributes_that_contradict_each_other_are_refused(name, comment, tmp_path):
    path, (X, y) = tmp_path / "model.skops", problem()
    features = surff.FourierFeatures(16, gamma=0.5, random_state=0)
    model = surff.KernelRidgeClassifier(
        features, alphas=[0.1, 1.0], cv=3, probability=True
    )
    surff.save(model.fit(X, y), path)
    rewrite(path, CONTRADICTIONS[name], comment)
    refused(path, "")


@needs_skops
@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("column_scale", np.ones(70)),
        ("signs", np.ones((1, 3, 70), np.int8)),
        ("signs", np.ones((1, 1, 64), np.int8)),
        ("signs", np.zeros((1, 3, 64), np.int8)),
        ("signs", np.ones((1, 3, 64))),
        ("norms", np.ones(100)),
        ("norms", np.full(8, np.inf)),
    ],
)
def test_structured_frequencies_that_do_not_fit_are_refused(name, values, tmp_path):
    path, X = tmp_path / "model.skops", np.ones((5, 40))
    features = surff.FourierFeatures(16, draw="structured_orthogonal", gamma=1.0)
    surff.save(features.fit(X), path)
    rewrite(path, change_array(name, values, "frequencies_"))
    refused(path, "")


@needs_skops
@pytest.mark.parametrize("kind", [sparse.csr_matrix, sparse.csr_array])
def test_sparse_landmarks_load_or_are_refused(kind, tmp_path):
    path, (X, y) = tmp_path / "model.skops", problem()
    X = kind(np.where(X > 0, X, 0.0))
    features = surff.NystroemFeatures(5, random_state=0)
    model = surff.KernelRidgeClassifier(features, alphas=1.0).fit(X, y)
    surff.save(model, path)
    again = surff.load(path)
    assert type(again.features_.landmarks_) is type(model.features_.landmarks_)
    assert_array_equal(again.decision_function(X), model.decision_function(X))

    def corrupt(schema, members):
        node = attributes(schema, "features_")["landmarks_"]
        if "file" not in node:
            pytest.skip("skops before 0.14 stores csr_array attribute by attribute")
        file = node["file"]
        with np.load(io.BytesIO(members[file])) as parts:
            parts = dict(parts)
        parts["indices"] = np.full_like(parts["indices"], 2**30)
        buffer = io.BytesIO()
        np.savez(buffer, **parts)
        members[file] = buffer.getvalue()

    rewrite(path, corrupt)
    refused(path, "")


@needs_skops
@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("normalization_", np.ones((5, 4))),
        ("normalization_", np.full((5, 5), np.inf)),
        ("landmarks_", np.ones((5, 2))),
        ("landmark_indices_", np.full(5, -1)),
        ("landmark_indices_", np.arange(4)),
    ],
)
def test_landmarks_that_do_not_fit_are_refused(name, values, tmp_path):
    path, (X, _) = tmp_path / "model.skops", problem()
    surff.save(surff.NystroemFeatures(5, random_state=0).fit(X), path)
    rewrite(path, change_array(name, values))
    refused(path, name)


@needs_skops
def test_a_random_state_outside_its_words_is_refused(tmp_path):
    path = tmp_path / "model.skops"
    surff.save(surff.FourierFeatures(4, random_state=np.random.RandomState(0)), path)

    def move(schema, _):
        state = attributes(schema)["random_state"]["content"]["content"]["state"]
        state["content"]["pos"]["content"] = "1000000"

    rewrite(path, move)
    refused(path, "pos")


@needs_skops
def test_a_contradictory_model_is_not_saved(tmp_path):
    model = fitted()
    model.primal_coef_ = model.primal_coef_[:, 1:]
    with pytest.raises(ModelFileError, match=r"model\.skops.*primal_coef_"):
        surff.save(model, tmp_path / "model.skops")
    assert not list(tmp_path.iterdir())


# -- Types of scikit-learn -------------------------------------------------------------


def classifier(**options):
    features = surff.FourierFeatures(8, random_state=0)
    return surff.KernelRidgeClassifier(features, alphas=[0.1, 1.0], **options)


def regressor(**options):
    features = surff.FourierFeatures(8, random_state=0)
    return surff.KernelRidgeRegressor(features, alphas=[0.1, 1.0], **options)


SPLITTERS = [
    KFold(3),
    StratifiedKFold(3),
    ShuffleSplit(2, random_state=0),
    RepeatedKFold(n_splits=2, n_repeats=2, random_state=0),
    TimeSeriesSplit(3),
    PredefinedSplit(np.arange(60) % 3),
    list(KFold(3).split(np.zeros(60))),
]

WRAPPED = {
    **{f"{cv!r:.20}": lambda cv=cv: classifier(cv=cv) for cv in SPLITTERS},
    "leave one out": lambda: classifier(cv=LeaveOneOut(), scoring="accuracy"),
    "scorer": lambda: classifier(scoring=make_scorer(f1_score, pos_label="same")),
    "grid": lambda: GridSearchCV(classifier(), {"fit_intercept": [True, False]}, cv=2),
    "several scores": lambda: GridSearchCV(
        classifier(),
        {"fit_intercept": [True, False]},
        cv=2,
        scoring=["accuracy", "f1_macro"],
        refit="accuracy",
    ),
    "randomized": lambda: RandomizedSearchCV(
        regressor(),
        {"fit_intercept": [True, False]},
        n_iter=2,
        cv=RepeatedKFold(n_splits=2, n_repeats=1, random_state=0),
        scoring=make_scorer(mean_squared_error, greater_is_better=False),
    ),
    "halving": lambda: HalvingGridSearchCV(classifier(), {"tol": [0.1, 0.2]}, cv=2),
    "sigmoid": lambda: CalibratedClassifierCV(classifier(), cv=2),
    "isotonic": lambda: CalibratedClassifierCV(classifier(), cv=2, method="isotonic"),
    "threshold": lambda: TunedThresholdClassifierCV(
        classifier(), cv=2, scoring="balanced_accuracy"
    ),
    "voting": lambda: VotingClassifier([("a", classifier()), ("b", classifier())]),
    "stacking": lambda: StackingClassifier([("a", classifier())], cv=2),
    "bagging": lambda: BaggingRegressor(regressor(), 2, random_state=0),
    "outputs": lambda: MultiOutputRegressor(regressor()),
    "target": lambda: TransformedTargetRegressor(
        regressor(), transformer=StandardScaler()
    ),
    "frozen": lambda: classifier().set_params(
        features=FrozenEstimator(surff.FourierFeatures(8).fit(problem()[0]))
    ),
    "gp kernel": lambda: surff.KernelRidgeClassifier(
        surff.NystroemFeatures(5, kernel=2.0 * gp.RBF() + gp.WhiteKernel()), alphas=1.0
    ),
    "generator": lambda: surff.KernelRidgeClassifier(
        surff.FourierFeatures(8, random_state=np.random.default_rng(0)), alphas=1.0
    ),
    "random state": lambda: surff.KernelRidgeClassifier(
        surff.FourierFeatures(8, random_state=np.random.RandomState(0)), alphas=1.0
    ),
}


@needs_skops
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.UndefinedMetricWarning")
@pytest.mark.parametrize("name", WRAPPED)
def test_parts_and_wrappers_of_scikit_learn_are_trusted(name, tmp_path):
    path, (X, y) = tmp_path / "model.skops", problem()
    model = WRAPPED[name]()
    if "Regressor" in repr(model)[:40] or name == "randomized":
        y = X[:, :2] if name == "outputs" else X[:, 0]
    model.fit(X, y)
    surff.save(model, path)
    assert_array_equal(surff.load(path).predict(X), model.predict(X))


def test_names_that_are_trusted_exist():
    absent = []
    for name in TRUSTED_TYPES:
        module, _, attribute = name.rpartition(".")
        if not hasattr(importlib.import_module(module), attribute):
            absent.append(name)
    # Of other versions of scikit-learn than the one that is installed.
    assert set(absent) <= {
        "sklearn.calibration._TemperatureScaling",
        "sklearn.metrics._classification.d2_brier_score",
    }


@needs_skops
def test_the_inside_of_a_frozen_model_is_checked(tmp_path):
    path, (X, y) = tmp_path / "model.skops", problem()
    surff.save(make_pipeline(StandardScaler(), FrozenEstimator(classifier())), path)
    model = make_pipeline(StandardScaler(), FrozenEstimator(classifier().fit(X, y)))
    model[0].fit(X)
    model[1].estimator.primal_coef_ = np.ones((1, 3))
    with pytest.raises(ModelFileError, match="primal_coef_"):
        surff.save(model, path)


# -- Writing ---------------------------------------------------------------------------


@needs_skops
@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
def test_a_file_keeps_its_mode_and_a_new_one_takes_that_of_the_process(tmp_path):
    path, mask = tmp_path / "model.skops", os.umask(0o027)
    try:
        surff.save(fitted(), path)
        assert stat.S_IMODE(path.stat().st_mode) == 0o640
        for mode in (0o600, 0o666, 0o444):
            path.chmod(mode)
            surff.save(fitted(), path)
            assert stat.S_IMODE(path.stat().st_mode) == mode
    finally:
        os.umask(mask)


@needs_skops
@pytest.mark.skipif(os.name != "posix", reason="links of POSIX")
def test_links_are_replaced_and_not_followed(tmp_path):
    path, other = tmp_path / "model.skops", tmp_path / "other"
    other.write_text("precious")
    path.symlink_to(other)
    # A name that could be guessed, as it was before.
    (tmp_path / f".model.skops.{os.getpid()}.tmp").symlink_to(other)
    surff.save(fitted(), path)
    assert other.read_text() == "precious"
    assert not path.is_symlink()
    surff.load(path)


@needs_skops
def test_threads_save_to_one_path(tmp_path):
    path, model, errors = tmp_path / "model.skops", fitted(), []

    def work():
        try:
            for _ in range(5):
                surff.save(model, path)
                surff.load(path)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert [file.name for file in tmp_path.iterdir()] == ["model.skops"]


@needs_skops
def test_content_and_name_are_synced(tmp_path, monkeypatch):
    synced, real = [], os.fsync

    def fsync(handle):
        synced.append(stat.S_ISDIR(os.fstat(handle).st_mode))
        real(handle)

    monkeypatch.setattr("os.fsync", fsync)
    surff.save(fitted(), tmp_path / "model.skops")
    assert synced == ([False, True] if os.name == "posix" else [False])


@needs_skops
def test_a_full_disk_is_named_with_the_file(tmp_path, monkeypatch):
    def fail(_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match=r"No space left on device: .*model\.skops"):
        surff.save(fitted(), tmp_path / "model.skops")


@needs_skops
@pytest.mark.parametrize("step", ["os.fsync", "os.fdopen", "os.replace"])
@pytest.mark.parametrize("error", [OSError("full"), KeyboardInterrupt("full")])
def test_nothing_is_left_over(step, error, tmp_path, monkeypatch):
    path = tmp_path / "model.skops"
    surff.save(fitted(), path)
    before = path.read_bytes()

    def fail(*_):
        raise error

    monkeypatch.setattr(step, fail)
    with pytest.raises(type(error), match="full"):
        surff.save(fitted(gamma=0.3), path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["model.skops"]
