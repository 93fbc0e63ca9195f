"""Damage model files at random and look at what `surff.load` makes of them.

``python tests/fuzz/model_files.py --n 1000 --seed 0`` builds a dozen model files,
damages them in ``n`` ways that follow from the seed, and loads and uses each in a
process of its own that may crash or hang. Every outcome is counted:

- ``refused``: a `ModelFileError` with the name of the file;
- ``same``: predictions of the original, bit for bit;
- ``other``: finite predictions of the right shape, from a file whose checksum was
  computed again after the edit, or taken off: somebody wrote another model;
- ``scikit-learn``: an exception or NaN of a part of scikit-learn in such a file, whose
  numbers surff does not check;
- anything else is a fault, printed with the number that repeats it (``--only``).

The exit status says whether there were faults.
"""

import argparse
import collections
import contextlib
import copy
import hashlib
import io
import json
import multiprocessing
import pickle
import re
import struct
import sys
import tempfile
import time
import traceback
import warnings
import zipfile
from multiprocessing.connection import wait
from pathlib import Path

import numpy as np

try:
    import resource
except ImportError:  # Windows
    resource = None

#: Outcomes that are right.
GOOD = ("refused", "same", "other", "scikit-learn")

#: Seconds that one file may take.
PATIENCE = 30.0

#: Bytes that a process may have in memory: the originals take some hundred MB of it.
MOST_MEMORY = 2 * 2**30

#: Files that a process gets at a time.
BATCH = 50

#: Warnings that one file may cause: scikit-learn names its version once per estimator.
MOST_WARNINGS = 12

#: Audit events of the interpreter that loading a model has no business with.
FORBIDDEN = re.compile(
    r"subprocess\.Popen|os\.(system|exec|posix_spawn|fork|spawn|remove|rename|mkdir|"
    r"rmdir|chmod|chown|link|symlink|truncate|putenv|kill)|shutil\..*|socket\..*|"
    r"webbrowser\..*|ctypes\.(dlopen|call_function)|pickle\.find_class|winreg\..*"
)

#: Modules that loading a model may import.
IMPORTS = ("surff", "sklearn", "numpy", "scipy", "skops", "numba", "llvmlite", "joblib")

#: What numba unpickles when it looks into its own cache.
COMPILER = ("numba.", "llvmlite.", "copyreg")

#: Numbers in the place of others, as JSON.
NUMBERS = (
    *("0", "1", "-1", "2", "3", "7", "63", "64", "65", "1e308", "-1e308", "1e-320"),
    *("NaN", "Infinity", "-Infinity", "4294967296", "1e400", "-0.0", "9" * 25, "0.5"),
    *("null", "true", "false", '"text"', '""', "[]", "[1, 2]", "{}", '{"a": 1}'),
    *('"rbf"', '"precomputed"', '"linear"', '"cosine"', '"poly"', "[" * 3000),
)

#: Classes, modules and loaders in the place of others.
NAMES = (
    ("numpy", "ndarray"),
    ("numpy", "dtype"),
    ("numpy", "load"),
    ("builtins", "list"),
    ("builtins", "dict"),
    ("builtins", "eval"),
    ("os", "system"),
    ("pathlib.Path", "touch"),
    ("surff.estimators.ridge", "KernelRidgeRegressor"),
    ("surff.estimators.ridge", "KernelRidgeClassifier"),
    ("surff.estimators.features", "FourierFeatures"),
    ("surff.estimators.nystroem", "NystroemFeatures"),
    ("surff.linear.normal_equations", "NormalEquations"),
    ("surff.linear.alpha_path", "AlphaPath"),
    ("surff.draws.structured", "HadamardFrequencies"),
    ("sklearn.preprocessing._data", "StandardScaler"),
    ("sklearn.model_selection._split", "KFold"),
    ("sklearn.metrics._regression", "r2_score"),
    ("scipy.sparse._csr", "csr_array"),
    ("numpy.random._generator", "Generator"),
    ("numpy.random.mtrand", "RandomState"),
)

#: What models say that lack what was asked for.
SAYS_NO = re.compile("NotFittedError: |AttributeError: This '.*' has no attribute ")

#: Loaders of skops in the place of others.
LOADERS = (
    *("ObjectNode", "DictNode", "ListNode", "TupleNode", "SetNode", "NdArrayNode"),
    *("FunctionNode", "TypeNode", "JsonNode", "MethodNode", "PartialNode", "BytesNode"),
    *("SparseMatrixNode", "RandomStateNode", "RandomGeneratorNode", "CachedNode"),
    *("ConstructorFromReduceNode", "OperatorFuncNode", "DTypeNode", "SliceNode"),
    *("MaskedArrayNode", "DefaultDictNode", "LossNode", "TreeNode", "Nothing"),
)


# -- Originals -------------------------------------------------------------------------


def rows(kind):
    """Rows that models are asked about."""
    from scipy import sparse

    X = np.random.default_rng(7).normal(size=(11, 3))
    if kind == "csr":
        return sparse.csr_array(np.where(X > 0, X, 0.0))
    if kind == "square":
        return np.exp(-np.abs(X @ X.T))
    return X


def originals():
    """Kind of rows and unfitted model of every file."""
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.ensemble import VotingClassifier
    from sklearn.gaussian_process import kernels as gp
    from sklearn.model_selection import GridSearchCV, KFold
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    import surff

    def features(n=8, **options):
        return surff.FourierFeatures(n, random_state=0, **options)

    def classifier(maps=None, **options):
        options = {"alphas": [0.1, 1.0], "cv": 2, **options}
        return surff.KernelRidgeClassifier(maps or features(), **options)

    def regressor(maps, **options):
        options = {"alphas": [0.1, 1.0], "cv": 2, **options}
        return surff.KernelRidgeRegressor(maps, **options)

    landmarks = surff.NystroemFeatures(5, random_state=0)
    return {
        "classifier": ("dense", classifier(probability=True)),
        "regressor": ("dense", regressor(features(9, gamma="median"))),
        "targets": ("dense", regressor(features(), alpha_per_target=True)),
        "several": ("dense", classifier(features(select="leverage"), alphas=1.0)),
        "multilabel": ("dense", classifier(keep_equations=False)),
        "logistic": ("dense", surff.KernelLogisticClassifier(features(), cv=2)),
        "structured": ("dense", regressor(features(12, draw="structured_orthogonal"))),
        "weighted": ("dense", regressor(features(12, draw="reweighted"))),
        "bent": ("dense", features(8, adapt="auto")),
        "generator": (
            "dense",
            surff.FourierFeatures(6, random_state=np.random.default_rng(1)),
        ),
        "landmarks": ("dense", classifier(landmarks)),
        "sparse": ("csr", classifier(landmarks)),
        "precomputed": ("square", surff.NystroemFeatures(5, kernel="precomputed")),
        "gaussian process": (
            "dense",
            surff.NystroemFeatures(5, kernel=2.0 * gp.RBF() + gp.WhiteKernel()),
        ),
        "pipeline": ("dense", make_pipeline(StandardScaler(), classifier())),
        "search": (
            "dense",
            GridSearchCV(classifier(), {"fit_intercept": [True, False]}, cv=KFold(2)),
        ),
        "calibrated": ("dense", CalibratedClassifierCV(classifier(alphas=1.0), cv=2)),
        "voting": (
            "dense",
            VotingClassifier([("a", classifier()), ("b", classifier())]),
        ),
    }


def fitted_originals():
    """Kind of rows and fitted model of every file."""
    from scipy import sparse

    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    labels = np.where(X[:, 0] * X[:, 1] > 0, "same", "different")
    targets = {
        "regressor": X[:, 0],
        "targets": X[:, :2],
        "several": np.array(["a", "b", "c"])[(X[:, 0] > 0) + (X[:, 1] > 0) * 1],
        "multilabel": (X[:, :2] > 0).astype(int),
        "structured": X[:, 0],
        "weighted": X[:, 0],
        "bent": X[:, 0],
    }
    for name, (kind, model) in originals().items():
        data, y = X, targets.get(name, labels)
        if kind == "csr":
            data = sparse.csr_array(np.where(X > 0, X, 0.0))
        if kind == "square":
            data, y = rows(kind), None
        yield name, kind, model.fit(data, y)


def answers(model, X):
    """Everything that a model says of rows, by method."""
    found = {}
    for method in ("predict", "decision_function", "predict_proba", "transform"):
        if hasattr(model, method):
            found[method] = np.asarray(getattr(model, method)(X))
    return found


def build(folder):
    """Write the originals and their answers; names in order."""
    import surff

    names = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, kind, model in fitted_originals():
            surff.save(model, folder / f"{name}.skops")
            told = answers(model, rows(kind))
            (folder / f"{name}.answers").write_bytes(pickle.dumps((kind, told)))
            names.append(name)
    return names


# -- Damage ----------------------------------------------------------------------------


def parts_of(data):
    """Description and members of a file."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    return json.loads(members.pop("schema.json")), members


def archive_of(schema, members, compression=zipfile.ZIP_STORED, extra=()):
    """An archive without a comment; ``extra`` members may repeat names."""
    if not isinstance(schema, bytes):
        schema = json.dumps(schema).encode()
    buffer = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(buffer, "w", compression) as file:
        warnings.simplefilter("ignore")  # of names that repeat
        for name, content in [*members.items(), ("schema.json", schema), *extra]:
            file.writestr(name, content)
    return buffer.getvalue()


def unsealed(data):
    """The archive without its comment."""
    place = data.rfind(b"PK\5\6")
    return data[: place + 20] + b"\0\0" if place >= 0 else data


def resealed(data):
    """The archive with a checksum that matches, as an attacker can compute it."""
    body = data[:-2] + struct.pack("<H", 88) + b"surff model 001 sha256 "
    return body + hashlib.sha256(body).hexdigest().encode() + b"\n"


def damage_bytes(rng, data):
    """Flip, cut, repeat, move or overwrite bytes."""
    data, kind = bytearray(data), rng.integers(6)
    place = int(rng.integers(len(data)))
    length = int(rng.integers(1, 200))
    if kind <= 1:
        for _ in range(1 if kind else rng.integers(1, 9)):
            data[rng.integers(len(data))] ^= 1 << rng.integers(8)
    elif kind == 2:
        del data[place:]
    elif kind == 3:
        del data[place : place + length]
    elif kind == 4:
        data[place:place] = rng.bytes(length)
    else:
        data[place : place + length] = rng.bytes(length)
    return bytes(data)


def damage_headers(rng, data):
    """Lies in the headers of the archive: sizes, methods, sums, places, names."""
    data = bytearray(data)
    magic, width = [(b"PK\1\2", 46), (b"PK\3\4", 30), (b"PK\5\6", 22)][rng.integers(3)]
    places = [found.start() for found in re.finditer(re.escape(magic), bytes(data))]
    place = places[rng.integers(len(places))]
    field = int(rng.integers(4, width - 1))
    size = int(rng.choice([1, 2, 4]))
    values = [0, 1, 8, 12, 14, 99, 2**16 - 1, 2**31 - 1, 2**32 - 1, rng.integers(2**32)]
    value = int(values[rng.integers(len(values))]) % 256**size
    data[place + field : place + field + size] = value.to_bytes(size, "little")
    return bytes(data)


def damage_members(rng, data):
    """Swapped, removed, repeated, renamed, added or compressed members."""
    schema, members = parts_of(data)
    names = list(members)
    a, b = (names[rng.integers(len(names))] for _ in range(2))
    kind, extra, compression = rng.integers(7), [], zipfile.ZIP_STORED
    if kind <= 1:
        members[a], members[b] = members[b], members[a]
    elif kind == 2:
        del members[a]
    elif kind == 3:
        extra = [(a, members[b])]
    elif kind == 4:
        members["../" + a] = members.pop(a)
    elif kind == 5:
        extra = [("schema.json", b"{}"), ("more.bin", b"0" * 10_000)][rng.integers(2)]
        extra = [extra]
    else:
        compression = [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA]
        compression = compression[rng.integers(3)]
        if rng.integers(2):
            members[a] = bytes(2**22)
    return archive_of(schema, members, compression, extra)


def nodes_of(schema):
    """All descriptions of objects in a description, with their holders and keys."""
    found, waiting = [], [(None, None, schema)]
    while waiting:
        holder, key, part = waiting.pop()
        if isinstance(part, dict):
            if isinstance(part.get("__loader__"), str):
                found.append((holder, key, part))
            waiting += [(part, name, value) for name, value in part.items()]
        elif isinstance(part, list):
            waiting += [(part, number, value) for number, value in enumerate(part)]
    return found


def damage_schema(rng, data):
    """Other numbers, names, loaders, identities or objects in the description."""
    schema, members = parts_of(data)
    for _ in range(rng.integers(1, 3)):
        nodes = nodes_of(schema)
        holder, key, node = nodes[rng.integers(len(nodes))]
        _, _, other = nodes[rng.integers(len(nodes))]
        kind = rng.integers(9)
        if kind <= 2:
            plain = [found for *_, found in nodes if found["__loader__"] == "JsonNode"]
            node = plain[rng.integers(len(plain))] if plain else node
            node["content"] = NUMBERS[rng.integers(len(NUMBERS))]
            node["__id__"] = int(rng.integers(1, 2**40))
        elif kind == 3:
            node["__module__"], node["__class__"] = NAMES[rng.integers(len(NAMES))]
        elif kind == 4:
            node["__loader__"] = LOADERS[rng.integers(len(LOADERS))]
        elif kind == 5 and holder is not None:
            holder[key] = copy.deepcopy(other)
        elif kind == 6 and holder is not None:
            del holder[key]
        elif kind == 7:
            node["__id__"] = other.get("__id__")
        elif "file" in node:
            node["file"] = [*members, "absent.npy"][rng.integers(len(members) + 1)]
        else:
            del node[list(node)[rng.integers(len(node))]]
    text = json.dumps(schema).encode()
    if rng.integers(20) == 0:
        text = damage_bytes(rng, text)
    return archive_of(text, members)


def damage_arrays(rng, data):
    """Other values, shapes, types or headers of arrays."""
    schema, members = parts_of(data)
    names = [name for name in members if name.endswith(".npy")]
    for _ in range(rng.integers(1, 3)):
        name = names[rng.integers(len(names))]
        kind, content = rng.integers(5), bytearray(members[name])
        if kind == 0:
            place = int(rng.integers(min(len(content), 128)))
            content[place] ^= 1 << rng.integers(8)
            members[name] = bytes(content)
        elif kind == 1:
            old, new = [
                (b"<f8", b">f8"),
                (b"<f8", b"|O8"),
                (b"<f8", b"<i8"),
                (b"False", b"True "),
                (b"(", b"(9"),
                (b"), }", b",1), }"),
                (b", }", b", 'x': [[[[[[]]]]]]}"),
            ][rng.integers(7)]
            members[name] = bytes(content).replace(old, new, 1)
        else:
            members[name] = damaged_array(rng, members[name])
    return archive_of(schema, members)


def damaged_array(rng, content):
    """Another array in the place of one."""
    try:
        values = np.load(io.BytesIO(content))
    except Exception:  # damaged before
        return content
    kind = rng.integers(6)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of values that do not fit the type
        if kind <= 1 and values.size and values.dtype.kind in "fiu":
            values = values.copy()
            some = [np.nan, np.inf, -np.inf, 1e308, -1e308, 0.0, -1.0, 1e6, 1e-310]
            place = rng.integers(values.size, size=1 if kind else values.size)
            flat = np.ravel(values)
            flat[place] = np.array(some)[rng.integers(len(some))].astype(values.dtype)
            values = flat.reshape(values.shape)
        elif kind == 2:
            shapes = [values.T, values.ravel(), values[None], values[..., None]]
            values = shapes[rng.integers(4)]
        elif kind == 3 and values.ndim:
            values = values[: rng.integers(len(values) + 1)]
        elif kind == 4 and values.ndim:
            values = np.concatenate([values, values])
        else:
            types = ["f4", ">f8", "i8", "i1", "c16", "U5", "?", "f2"]
            with contextlib.suppress(ValueError):  # text that is no number
                values = values.astype(types[rng.integers(8)])
    buffer = io.BytesIO()
    np.save(buffer, values)
    return buffer.getvalue()


#: What is done to a file.
DAMAGES = (
    damage_bytes,
    damage_headers,
    damage_members,
    damage_schema,
    damage_schema,
    damage_arrays,
    damage_arrays,
)


def damaged(seed, number, files):
    """Name, bytes, and whether an attacker has sealed them, of a damaged file."""
    rng = np.random.default_rng([seed, number])
    names = list(files)
    name = names[rng.integers(len(names))]
    damage = DAMAGES[rng.integers(len(DAMAGES))]
    data = files[name]
    if damage is damage_bytes:
        # Mostly as disks and networks do it: the checksum is that of the original.
        if rng.integers(4):
            return name, damage(rng, data), False
        data = damage(rng, unsealed(data))
        return name, resealed(data) if rng.integers(2) else data, True
    seals = [resealed, lambda data: data, None]
    seal = seals[rng.choice(3, p=[0.6, 0.3, 0.1])]
    if seal is None:
        stale = data[-88:]
        data = damage(rng, unsealed(data))
        return name, data[:-2] + struct.pack("<H", 88) + stale, False
    return name, seal(damage(rng, unsealed(data))), True


# -- Outcomes --------------------------------------------------------------------------


class Watch:
    """Notes what the interpreter does while a file is loaded and used."""

    def __init__(self):
        self.on, self.seen = False, []
        sys.addaudithook(self)

    def __call__(self, event, args):
        if not self.on:
            return
        if event == "import":
            root = str(args[0]).partition(".")[0]
            if root in (*IMPORTS, "") or root in sys.stdlib_module_names:
                return
            self.seen.append(f"import {args[0]}")
        elif "__pycache__" in str(args):
            return  # what numba has compiled
        elif event == "open":
            if isinstance(args[1], str) and set(args[1]) & set("wax+"):
                self.seen.append(f"open {args[:2]}")
        elif event == "pickle.find_class" and (
            args[0].startswith(COMPILER) or args == ("builtins", "object")
        ):
            return
        elif FORBIDDEN.fullmatch(event):
            self.seen.append(f"{event} {args!r:.80}")


def outcome_of(path, told, X, attacked, watch):
    """What becomes of a damaged file, and more about a fault."""
    import surff
    from surff.estimators import ModelFileError

    watch.seen, watch.on = [], True
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            outcome, more, mixed = used(surff, ModelFileError, path, told, X)
    finally:
        watch.on = False
    if watch.seen:
        return "code", watch.seen[:3]
    if len(caught) > MOST_WARNINGS:
        return "warnings", [len(caught), str(caught[0].message)]
    if resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 > MOST_MEMORY:
        return "memory", ""
    if outcome == "other" and not attacked:
        return "silently different", more
    # A kernel matrix has as many columns as its file says: it is of other rows.
    if outcome == "raised by predict" and attacked and "is expecting" in more:
        return "other", more
    if outcome == "not finite" and attacked and mixed:
        return "scikit-learn", more
    # It says that it has not been fitted, or not for this.
    if outcome == "raised by predict" and attacked and SAYS_NO.search(more):
        return "other", more
    if outcome == "raised by predict" and attacked and mixed:
        places = re.findall(r'File "([^"]*)"', more)
        if "sklearn" in Path(places[-1]).parts or "Input X contains" in more:
            return "scikit-learn", more
    return outcome, more


def used(surff, error_class, path, told, X):
    """Outcome, more about it, and whether scikit-learn has a part in the model."""
    from surff.estimators._fitted_state import reachable

    try:
        model = surff.load(path)
    except error_class as error:
        named = str(path) in str(error)
        return ("refused", "", False) if named else ("unnamed", str(error), False)
    except BaseException:
        return "raised by load", traceback.format_exc(), False
    mixed = any(type(part).__module__[:8] == "sklearn." for part in reachable(model))
    try:
        found = answers(model, X)
    except Exception:
        return "raised by predict", traceback.format_exc(), mixed
    return *compared(found, told, X.shape[0]), mixed


def compared(found, told, n_rows):
    """Outcome of a model that answers, and more about it."""
    same = found.keys() == told.keys() and all(
        np.array_equal(found[method], told[method])
        and found[method].dtype == told[method].dtype
        for method in told
    )
    if same:
        return "same", ""
    for method, values in found.items():
        if len(values) != n_rows:
            return "shape", f"{method}: {values.shape}"
        if values.dtype.kind in "fc" and not np.isfinite(values).all():
            return "not finite", method
    return "other", ""


def work(connection, folder, seed):
    """Load damaged files by number, in a process that may die of it."""
    files, told, folder = {}, {}, Path(folder)
    for path in sorted(folder.glob("*.skops")):
        files[path.stem] = path.read_bytes()
        told[path.stem] = pickle.loads(path.with_suffix(".answers").read_bytes())
    watch = Watch()
    with tempfile.TemporaryDirectory() as own:
        path = Path(own) / "damaged.skops"
        for name, data in files.items():  # compiles, and imports what models need
            path.write_bytes(data)
            kind, expected = told[name]
            outcome, more = outcome_of(path, expected, rows(kind), False, Watch())
            if outcome not in ("same", "code"):
                connection.send((-1, f"original {name}", outcome, more))
        while (numbers := connection.recv()) is not None:
            for number in numbers:
                connection.send((number, None, None, None))
                name, data, attacked = damaged(seed, number, files)
                path.write_bytes(data)
                kind, expected = told[name]
                result = outcome_of(path, expected, rows(kind), attacked, watch)
                connection.send((number, name, *result))
            connection.send(None)


class Worker:
    """A process, and what it is at."""

    def __init__(self, folder, seed):
        context = multiprocessing.get_context("spawn")
        self.connection, other = context.Pipe()
        self.process = context.Process(
            target=work, args=(other, str(folder), seed), daemon=True
        )
        self.process.start()
        other.close()
        self.number, self.left, self.since = None, [], time.monotonic()

    def give(self, numbers):
        """Hand over the numbers of files."""
        self.left, self.since = list(numbers), time.monotonic()
        self.connection.send(self.left)

    def stop(self):
        """End the process."""
        self.process.kill()
        self.process.join()
        self.connection.close()


class Counts(collections.Counter):
    """Outcomes; the first faults of each kind are printed as they come."""

    def __init__(self, show):
        super().__init__()
        self.show, self.kinds = show, collections.Counter()

    def add(self, number, name, outcome, more):
        """Count the outcome of a file."""
        self[outcome] += 1
        if outcome in GOOD:
            return
        text = more.strip() if isinstance(more, str) else repr(more)
        kind = outcome, text.rpartition("\n")[2][:120]
        self.kinds[kind] += 1
        if self.kinds[kind] <= self.show:
            print(f"{outcome}: --only {number} ({name})\n{text}\n", flush=True)


def run(options):
    """Counts of outcomes, and the seconds that they took."""
    counts = Counts(options.show)
    numbers = range(options.first, options.first + options.n)
    queue = collections.deque(numbers if options.only is None else [options.only])
    with tempfile.TemporaryDirectory() as folder:
        build(Path(folder))
        start = time.monotonic()
        workers = [Worker(folder, options.seed) for _ in range(options.jobs)]
        for worker in workers:
            feed(worker, queue)
        while any(worker.left for worker in workers):
            ready = wait([worker.connection for worker in workers], timeout=1.0)
            if time.monotonic() - start > options.seconds:
                queue.clear()
            for place, worker in enumerate(workers):
                if not attend(worker, worker.connection in ready, counts.add):
                    queue.extendleft(worker.left[1:])
                    worker.stop()
                    workers[place] = worker = Worker(folder, options.seed)
                if not worker.left:
                    feed(worker, queue)
        for worker in workers:
            worker.stop()
    return counts, time.monotonic() - start


def attend(worker, is_ready, count):
    """Listen to a worker, or lose patience; False if it is dead or has to die."""
    if is_ready:
        return listen(worker, count)
    # A process that has not begun loads libraries and compiles.
    patience = PATIENCE * (1 if worker.number is not None else 10)
    if not worker.left or time.monotonic() - worker.since < patience:
        return True
    count(worker.number, "", "hang", "")
    return False


def feed(worker, queue):
    """Give a worker more to do, if there is more."""
    if queue:
        worker.give([queue.popleft() for _ in range(min(BATCH, len(queue)))])


def listen(worker, count):
    """Take one message; False if the process is dead."""
    try:
        message = worker.connection.recv()
    except (EOFError, ConnectionResetError):
        worker.process.join()
        count(worker.number, "", "crash", f"exit {worker.process.exitcode}")
        return False
    worker.since = time.monotonic()
    if message is None:
        worker.left, worker.number = [], None
    elif message[1] is None:
        worker.number = message[0]
    else:
        count(*message)
        if worker.left and worker.left[0] == message[0]:
            worker.left.pop(0)
            worker.left = worker.left or [None]  # until the worker says it is done
    return True


def main():
    """Run, print the counts; the exit status says whether there were faults."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--n", type=int, default=1000, help="files to damage")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="number of the first file")
    parser.add_argument("--only", type=int, help="number of a single file")
    parser.add_argument("--seconds", type=float, default=np.inf, help="most time")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--show", type=int, default=2, help="faults of a kind to print")
    options = parser.parse_args()
    counts, seconds = run(options)
    faults = sum(number for outcome, number in counts.items() if outcome not in GOOD)
    total = sum(counts.values())
    print(f"{total} files in {seconds:.0f} s:", dict(counts.most_common()))
    print(f"{faults} faults")
    return int(faults > 0)


if __name__ == "__main__":
    sys.exit(main())
