import gzip
import subprocess
import sys
import threading
import tracemalloc
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import accuracy_score, r2_score
from sklearn.model_selection import PredefinedSplit

from surff import (
    FourierFeatures,
    KernelRidgeClassifier,
    KernelRidgeRegressor,
    NystroemFeatures,
)
from surff.backend import one_thread
from surff.streaming import (
    ArrayRows,
    Block,
    BlockRows,
    CsvRows,
    ParquetRows,
    RowSample,
    SourceError,
    folds_of_rows,
    look_through,
    row_keys,
)
from surff.streaming import passes as streaming
from surff.streaming.passes import Rows

pytestmark = pytest.mark.usefixtures("two_threads")

RNG = np.random.default_rng(0)
N = 1500
X = RNG.normal(size=(N, 3))
Y = np.sin(2 * X[:, 0]) * X[:, 1] + 0.1 * RNG.normal(size=N) + 3.0
LABELS = np.array(["low", "middle", "high"])[np.digitize(Y, [2.7, 3.3])]
WEIGHT = RNG.integers(0, 4, size=N).astype(float)
X.flags.writeable = Y.flags.writeable = WEIGHT.flags.writeable = False
ALL = PredefinedSplit(folds_of_rows(0, N, 5))
BLOCKS = [1, 17, 400, N]


@pytest.fixture(autouse=True)
def _blocks_as_they_are(monkeypatch):
    """Small blocks are not put together, but where a test says so."""
    monkeypatch.setattr(streaming, "LEAST_ROWS", 1)
    monkeypatch.setattr(streaming, "LEAST_SHARE", 0.0)


def features(n_components=40, **options):
    options = {"gamma": 0.3, "random_state": 0} | options
    return FourierFeatures(n_components, **options)


def rows(y=Y, weight=WEIGHT, data=X, block_rows=400):
    return ArrayRows(data, y, weight, block_rows=block_rows)


def no_readers():
    return not [t for t in threading.enumerate() if t.name.startswith("surff-read")]


def assert_same(model, expected, rtol=1e-10):
    """Equal to rounding of the largest coefficient, and of the same shapes."""
    scale = np.abs(expected.primal_coef_).max()
    assert_allclose(
        model.primal_coef_, expected.primal_coef_, rtol=0, atol=rtol * scale
    )
    assert_allclose(model.intercept_, expected.intercept_, rtol=rtol, atol=rtol * scale)
    assert np.shape(model.intercept_) == np.shape(expected.intercept_)
    assert np.shape(model.primal_coef_) == np.shape(expected.primal_coef_)


# The same as fit


@pytest.mark.parametrize("block_rows", BLOCKS)
@pytest.mark.parametrize("weight", [None, WEIGHT])
@pytest.mark.parametrize(
    "maps",
    [
        features(),
        features(gamma="scale"),
        features(gamma="median"),
        features(select="surrogate", gamma="scale"),
        features(41, select="leverage"),
        NystroemFeatures(20, gamma="scale", random_state=0),
    ],
)
def test_fit_stream_gives_what_fit_gives(maps, weight, block_rows):
    kept = slice(0, 60 if block_rows == 1 else N)
    source = rows(
        weight=weight if weight is None else weight[kept],
        y=Y[kept],
        data=X[kept],
        block_rows=block_rows,
    )
    model = KernelRidgeRegressor(maps, alphas=0.7).fit_stream(source)
    expected = KernelRidgeRegressor(maps, alphas=0.7)
    expected.fit(X[kept], Y[kept], None if weight is None else weight[kept])
    assert_same(model, expected)
    assert model.n_features_in_ == 3
    assert model.alpha_ == 0.7
    assert not hasattr(model, "alpha_path_")


@pytest.mark.parametrize("y", [Y, np.column_stack([Y, -2 * Y]), Y[:, None]])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"cv": None, "scoring": "neg_mean_squared_error", "fit_intercept": False},
        {"cv": "gcv", "solver": "eigh"},
        {"alphas": [0.1, 1.0, 10.0]},
        {"alpha_per_target": True},
    ],
)
def test_regressors_choose_the_alpha_that_fit_chooses_with_the_same_folds(options, y):
    model = KernelRidgeRegressor(features(), **options).fit_stream(rows(y))
    own = options if "gcv" in options.values() else options | {"cv": ALL}
    expected = KernelRidgeRegressor(features(), **own).fit(X, y, WEIGHT)
    assert_allclose(model.alpha_, expected.alpha_, rtol=1e-10)
    assert_allclose(model.best_score_, expected.best_score_, rtol=1e-9)
    assert_allclose(model.alpha_path_.scores, expected.alpha_path_.scores, rtol=1e-7)
    assert_same(model, expected, rtol=1e-8)  # where alpha is small


@pytest.mark.parametrize("classes", [None, ["middle", "low", "high"]])
@pytest.mark.parametrize("options", [{}, {"cv": "gcv"}, {"scoring": "accuracy"}])
def test_classifiers_choose_the_alpha_that_fit_chooses(options, classes):
    model = KernelRidgeClassifier(features(), **options)
    model.fit_stream(rows(LABELS), classes)
    own = options if "cv" in options else options | {"cv": ALL}
    expected = KernelRidgeClassifier(features(), **own).fit(X, LABELS, WEIGHT)
    assert model.classes_.tolist() == ["high", "low", "middle"]
    assert_allclose(model.alpha_, expected.alpha_, rtol=1e-10)
    assert_allclose(model.alpha_path_.scores, expected.alpha_path_.scores, rtol=1e-7)
    assert_same(model, expected, rtol=1e-8)


def test_two_classes_and_multilabel_targets_have_the_shapes_of_fit():
    both = np.column_stack([Y > 3, X[:, 0] > 0]).astype(int)
    for y in (Y > 3, both):
        model = KernelRidgeClassifier(features(), alphas=0.7).fit_stream(rows(y))
        expected = KernelRidgeClassifier(features(), alphas=0.7).fit(X, y, WEIGHT)
        assert_same(model, expected)
        assert_array_equal(model.classes_, expected.classes_)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_type_of_the_data_is_kept(dtype):
    source = rows(data=X.astype(dtype))
    model = KernelRidgeRegressor(features(), alphas=0.7).fit_stream(source)
    assert model.primal_coef_.dtype == model.predict(X.astype(dtype)).dtype == dtype
    expected = KernelRidgeRegressor(features(), alphas=0.7).fit(X, Y, WEIGHT)
    assert_allclose(model.predict(X), expected.predict(X), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("gamma", [0.3, "scale"])
def test_sparse_rows_stay_sparse(gamma):
    rng = np.random.default_rng(1)
    dense = np.where(rng.uniform(size=(N, 50)) < 0.1, rng.normal(size=(N, 50)), 0.0)
    data = sparse.csr_array(dense)
    maps = features(gamma=gamma)
    model = KernelRidgeRegressor(maps, alphas=0.7).fit_stream(rows(data=data))
    expected = KernelRidgeRegressor(maps, alphas=0.7).fit(data, Y, WEIGHT)
    assert_allclose(model.primal_coef_, expected.primal_coef_, rtol=1e-8)
    parts = list(model.predict_stream(ArrayRows(data, block_rows=99)))
    assert_allclose(np.concatenate(parts), model.predict(data), rtol=1e-12)


def test_frozen_features_are_taken_as_they_are_in_one_pass():
    calls = []

    def blocks():
        calls.append(1)
        yield from ((X[i : i + 500], Y[i : i + 500]) for i in range(0, N, 500))

    fitted = features(select="surrogate").fit(X[:200], Y[:200])
    model = KernelRidgeRegressor(FrozenEstimator(fitted), alphas=0.7)
    model.fit_stream(BlockRows(blocks))
    assert model.features_ is fitted
    assert_same(model, clone(model).fit(X, Y))


@pytest.mark.parametrize(
    ("model", "options", "whole_passes"),
    [
        (KernelRidgeRegressor(features()), {}, 1),
        (KernelRidgeRegressor(features(gamma="scale")), {}, 2),
        (KernelRidgeClassifier(features(), cv="gcv"), {}, 2),
        (KernelRidgeClassifier(features(), cv="gcv"), {"classes": [0, 1]}, 1),
        (KernelRidgeClassifier(features(), alphas=[1, 2]), {"classes": [0, 1]}, 2),
    ],
)
def test_passes_are_as_many_as_documented(model, options, whole_passes):
    finished = []

    def blocks():
        for i in range(0, N, 300):
            yield X[i : i + 300], (Y[i : i + 300] > 3).astype(int)
        finished.append(1)

    model.fit_stream(BlockRows(blocks), **options)
    assert len(finished) == whole_passes
    assert no_readers()


def test_learning_in_pieces_goes_on_from_a_stream():
    model = KernelRidgeRegressor(features(), alphas=0.7)
    model.fit_stream(rows(Y[:900], WEIGHT[:900], X[:900]))
    model.partial_fit(X[900:], Y[900:], WEIGHT[900:])
    assert_same(model, KernelRidgeRegressor(features(), alphas=0.7).fit(X, Y, WEIGHT))
    small = KernelRidgeRegressor(features(), alphas=0.7, keep_equations=False)
    assert not hasattr(small.fit_stream(rows()), "equations_")


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("weight", [None, WEIGHT])
def test_small_blocks_are_put_together(monkeypatch, make, weight):
    monkeypatch.setattr(streaming, "LEAST_ROWS", 200)
    source = rows(LABELS, weight, make(X), block_rows=17)
    passes = streaming.Passes(source, lambda X, y, first: (X, y))
    with passes() as blocks:
        found = list(blocks)
    sizes = [block.X.shape[0] for block in found]
    assert sizes == [204] * 7 + [72]
    assert [block.start for block in found] == [*np.cumsum([0, *sizes[:-1]])]
    for name, values in (("X", X), ("y", LABELS), ("sample_weight", weight)):
        parts = [getattr(block, name) for block in found]
        if name == "X" and make is not np.asarray:
            parts = [part.toarray() for part in parts]
        if values is None:
            assert parts == [None] * len(parts)
        else:
            assert_array_equal(np.concatenate(parts), values)
    with passes(gather=False) as blocks:
        assert len(list(blocks)) == -(-N // 17)


# The sample and the folds


def test_keys_do_not_depend_on_blocks_and_differ():
    keys = row_keys(0, 10_000)
    assert len(np.unique(keys)) == 10_000
    pieces = [row_keys(0, 4), row_keys(4, 1), row_keys(5, 9_995)]
    assert_array_equal(np.concatenate(pieces), keys)
    assert row_keys(2**40, 2)[0] != keys[0]


@pytest.mark.parametrize("n_folds", [2, 5, 7])
def test_folds_are_of_equal_size_and_without_a_pattern(n_folds):
    n = 100_000
    folds = folds_of_rows(0, n, n_folds)
    p = 1 / n_folds
    # Six standard deviations of a binomial count, for each fold, and for each fold
    # within the rows of each remainder: correct hashing fails with p < 1e-7.
    counts = np.bincount(folds, minlength=n_folds)
    assert abs(counts - n * p).max() < 6 * np.sqrt(n * p * (1 - p))
    for step in (2, 5, 7, 64):
        counts = np.bincount(folds[::step], minlength=n_folds)
        size = len(folds[::step])
        assert abs(counts - size * p).max() < 6 * np.sqrt(size * p * (1 - p))


@pytest.mark.parametrize("sizes", [[1000], [1, 999], [300, 5, 695], [10] * 100])
def test_a_sample_is_uniform_in_order_and_the_same_for_any_blocks(sizes):
    numbers = np.arange(1000.0)[:, None]
    sample, start = RowSample(50), 0
    for size in sizes:
        piece = numbers[start : start + size]
        sample.update(Rows(start, piece, piece[:, 0], None))
        start += size
    expected = np.sort(np.argsort(row_keys(0, 1000))[:50])
    assert_array_equal(sample.X[:, 0], expected)
    assert_array_equal(sample.y, expected)
    assert sample.sample_weight is None
    # Mean of 50 of 1,000 numbers without replacement, six standard deviations.
    assert abs(expected.mean() - 499.5) < 6 * 288.7 * np.sqrt(0.95 / 50)


def test_features_that_look_at_rows_are_fitted_to_the_sample():
    maps = features(gamma="median", select="leverage")
    model = KernelRidgeRegressor(maps, alphas=0.7).fit_stream(rows(), n_sample=200)
    chosen = np.sort(np.argsort(row_keys(0, N))[:200])
    expected = clone(maps).fit(X[chosen], sample_weight=WEIGHT[chosen])
    assert_array_equal(model.features_.frequencies_, expected.frequencies_)
    scale = KernelRidgeRegressor(features(gamma="scale"), alphas=0.7)
    scale.fit_stream(rows(), n_sample=2)
    whole = features(gamma="scale").fit(X, sample_weight=WEIGHT)
    assert_allclose(scale.features_.gamma_, whole.gamma_, rtol=1e-12)
    assert scale.features_.gamma == "scale"


@pytest.mark.parametrize("n_sample", [200, 10_000])
def test_no_fold_holds_out_rows_whose_targets_the_features_saw(n_sample):
    maps = features(select="surrogate")
    alphas = [0.1, 1.0]
    model = KernelRidgeRegressor(maps, alphas=alphas)
    model.fit_stream(rows(), n_sample=n_sample)
    size = min(n_sample, N // 2)
    seen = np.argsort(row_keys(0, N))[:size]
    folds = folds_of_rows(0, N, 5)
    folds[seen] = -1
    frozen = FrozenEstimator(model.features_)
    expected = KernelRidgeRegressor(frozen, alphas=alphas, cv=PredefinedSplit(folds))
    expected.fit(X, Y, WEIGHT)
    assert_allclose(
        model.alpha_path_.scores, expected.alpha_path_.scores, rtol=1e-9, atol=1e-12
    )
    assert_same(model, expected)


# Prediction and scores


@pytest.mark.parametrize("block_rows", BLOCKS)
def test_predict_stream_gives_the_predictions_of_blocks(block_rows):
    for model, y in (
        (KernelRidgeRegressor(features(), alphas=0.7), Y),
        (KernelRidgeRegressor(features(), alphas=0.7), np.column_stack([Y, -Y])),
        (KernelRidgeClassifier(features(), alphas=0.7), LABELS),
    ):
        model.fit(X, y)
        parts = list(model.predict_stream(ArrayRows(X, block_rows=block_rows)))
        assert len(parts) == -(-N // block_rows)
        predicted, expected = np.concatenate(parts), model.predict(X)
        assert predicted.dtype == expected.dtype
        if y is LABELS:
            assert_array_equal(predicted, expected)
        else:
            assert_allclose(predicted, expected, rtol=1e-12, atol=1e-12)


def test_predict_stream_ends_its_thread_when_it_is_closed():
    model = KernelRidgeRegressor(features(), alphas=0.7).fit(X, Y)
    with closing(model.predict_stream(ArrayRows(X, block_rows=10))) as predictions:
        assert next(predictions).shape == (10,)
    assert no_readers()


@pytest.mark.parametrize("weight", [None, WEIGHT])
def test_score_stream_is_score(weight):
    both = np.column_stack([Y, X[:, 1] + Y, np.full(N, 3.0)])
    for y in (Y, both):
        model = KernelRidgeRegressor(features(), alphas=0.7).fit(X, y)
        expected = r2_score(y, model.predict(X), sample_weight=weight)
        assert_allclose(model.score_stream(rows(y, weight)), expected, rtol=1e-10)
    for y in (LABELS, np.column_stack([Y > 3, X[:, 0] > 0]).astype(int)):
        model = KernelRidgeClassifier(features(), alphas=0.7).fit(X, y)
        expected = accuracy_score(y, model.predict(X), sample_weight=weight)
        assert_allclose(model.score_stream(rows(y, weight)), expected, rtol=1e-12)


# Names of columns


def table_file(tmp_path, names=("a", "b", "c"), name="rows.parquet"):
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is an extra: files")
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is an extra")
    data = dict(zip(names, X.T, strict=True)) | {"y": Y, "kind": LABELS}
    parquet.write_table(pyarrow.table(data), tmp_path / name, row_group_size=700)
    return tmp_path / name


def test_files_give_names_that_other_data_are_checked_against(tmp_path):
    pandas = pytest.importorskip("pandas", reason="pandas is an extra: cli")
    source = ParquetRows(table_file(tmp_path), "kind", features=["a", "b", "c"])
    model = KernelRidgeClassifier(features(), alphas=0.7).fit_stream(source)
    assert_same(
        KernelRidgeClassifier(features(), alphas=0.7).fit_stream(ArrayRows(X, LABELS)),
        KernelRidgeClassifier(features(), alphas=0.7).fit(X, LABELS),
    )
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    assert model.features_.feature_names_in_.tolist() == ["a", "b", "c"]
    frame = pandas.DataFrame(X, columns=["a", "b", "c"])
    predicted = np.concatenate(list(model.predict_stream(source)))
    assert_array_equal(predicted, model.predict(frame))
    assert model.score_stream(source) == model.score(frame, LABELS)
    other = ParquetRows(table_file(tmp_path, ("a", "b", "d"), "d.parquet"), "kind")
    with pytest.raises(
        ValueError, match=r"source must have the columns \['a', 'b', 'c"
    ):
        model.predict_stream(other)
    again = model.fit_stream(rows(LABELS))  # without names
    assert not hasattr(again, "feature_names_in_")


def test_data_frames_as_blocks_have_names():
    pandas = pytest.importorskip("pandas", reason="pandas is an extra: cli")
    frame = pandas.DataFrame(X, columns=["a", "b", "c"])
    source = BlockRows(
        lambda: ((frame[i : i + 99], Y[i : i + 99]) for i in range(0, N, 99))
    )
    model = KernelRidgeRegressor(features(), alphas=0.7).fit_stream(source)
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    assert_same(
        model, KernelRidgeRegressor(features(), alphas=0.7).fit(frame, Y), 1e-10
    )


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_csv_gives_what_arrays_give(tmp_path):
    pytest.importorskip("pyarrow", reason="pyarrow is an extra: files")
    path = tmp_path / "rows.csv.gz"
    with gzip.open(path, "wt") as file:
        file.write("a,b,c,kind\n")
        for row, label in zip(X.tolist(), LABELS, strict=True):
            file.write(",".join([*map(repr, row), label]) + "\n")
    source = CsvRows(path, "kind", text_bytes=5000)
    model = KernelRidgeClassifier(features(), alphas=0.7).fit_stream(source)
    assert_same(model, KernelRidgeClassifier(features(), alphas=0.7).fit(X, LABELS))


# Errors


def damaged(i, j=1, value=np.nan):
    data = X.copy()
    data[i, j] = value
    return data


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (rows(data=damaged(1234)), "the arrays, row 1234: column 1 of X is NaN"),
        (rows(data=damaged(7, value=np.inf)), "the arrays, row 7: column 1 of X is"),
        (
            rows(data=sparse.csr_matrix(damaged(899, 2))),
            "row 899: column 2 of X is NaN",
        ),
        (rows(y=damaged(500)[:, 1]), "the arrays, row 500: y is NaN or infinity"),
        (rows(weight=damaged(9)[:, 1]), "row 9: sample_weight is NaN"),
        (rows(weight=-WEIGHT), "sample_weight must be 400 numbers >= 0, got .* -3"),
        (rows(weight=0 * WEIGHT), "sample_weight must have a positive entry"),
        (ArrayRows(X), "the arrays: there is no y to fit"),
        (BlockRows(list), "the source has no rows"),
        (BlockRows(lambda: [(X[:0], Y[:0])]), "the source has no rows"),
        (BlockRows(lambda: [(X, Y), (X[:, :2], Y)]), "block 1: X has 2 features, but"),
        (BlockRows(lambda: [(X, Y), (X, Y, WEIGHT)]), "block 1: all blocks must have"),
        (BlockRows(lambda: [(X, Y), (X, X)]), r"block 1: .* shape \(3,\) with.* \(\)"),
        (BlockRows(lambda: [(X, Y), (X, Y[1:])]), "block 1: .*inconsistent numbers"),
        (BlockRows(lambda: [(X, Y), X]), "block 1: there is no y to fit"),
    ],
)
def test_bad_rows_are_located_and_leave_the_model_as_it_was(source, message):
    model = KernelRidgeRegressor(features(gamma="scale"), alphas=0.7).fit(
        X[:50], Y[:50]
    )
    before = {name: getattr(model, name) for name in vars(model)}
    with pytest.raises(ValueError, match=message):
        model.fit_stream(source)
    assert {name: getattr(model, name) for name in vars(model)} == before
    unfitted = clone(model)
    with pytest.raises(ValueError, match=message):
        unfitted.fit_stream(source)
    assert not hasattr(unfitted, "n_features_in_")
    assert no_readers()


def test_nan_in_a_file_is_located_by_row_group_and_name(tmp_path):
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is an extra: files")
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is an extra")
    b = [*X[:, 1]]
    b[1234] = None
    data = pyarrow.table({"a": X[:, 0], "b": b, "y": Y})
    parquet.write_table(data, tmp_path / "rows.parquet", row_group_size=500)
    model = KernelRidgeRegressor(features())
    with pytest.raises(
        SourceError, match=r"rows.parquet, row group 2, row 234: column 'b' of X is NaN"
    ):
        model.fit_stream(ParquetRows(tmp_path / "rows.parquet", "y"))
    (tmp_path / "rows.csv").write_text("a,b,y\n1,2,3\n4,,5\n")
    with pytest.raises(
        SourceError, match=r"rows.csv, line 3: column 'b' of X is NaN or infinity"
    ):
        model.fit_stream(CsvRows(tmp_path / "rows.csv", "y"))


def test_an_interrupted_file_leaves_nothing_half_fitted(tmp_path):
    pytest.importorskip("pyarrow", reason="pyarrow is an extra: files")
    text = "a,y\n" + "".join(f"{x!r},{y!r}\n" for x, y in X[:, :2].tolist())
    path = tmp_path / "rows.csv.gz"
    content = gzip.compress(text.encode())
    path.write_bytes(content[: len(content) * 3 // 4])
    model = KernelRidgeRegressor(features())
    with pytest.raises(SourceError, match=r"rows.csv.gz.* cannot be read: Compressed"):
        model.fit_stream(CsvRows(path, "y", text_bytes=2000))
    assert vars(model).keys() == clone(model).__dict__.keys()
    assert no_readers()


def test_labels_that_were_not_announced_are_located():
    model = KernelRidgeClassifier(features())
    i = np.argmax(LABELS == "low")
    with pytest.raises(SourceError, match=rf"the arrays, row {i}: y .*, got 'low'"):
        model.fit_stream(rows(LABELS, block_rows=7), classes=["high", "middle"])
    with pytest.raises(ValueError, match="at least two classes, got one class"):
        model.fit_stream(rows(np.full(N, "low")))
    mixed = BlockRows(lambda: [(X, LABELS), (X, np.zeros(N, int))])
    with pytest.raises(
        SourceError, match=r"block 1: all blocks .* got numbers .* text"
    ):
        model.fit_stream(mixed)


def test_sources_must_give_the_same_rows_again():
    once = iter([(X, Y)])
    model = KernelRidgeRegressor(features(gamma="scale"))
    with pytest.raises(SourceError, match="the source has no rows"):
        model.fit_stream(BlockRows(lambda: once))
    sizes = iter([N, N - 1])

    def fewer():
        n = next(sizes)
        return [(X[:n], Y[:n])]

    with pytest.raises(SourceError, match="gave 1500 rows in one pass and 1499 in"):
        model.fit_stream(BlockRows(fewer))
    with pytest.raises(TypeError, match="source can be iterated over only once"):
        model.fit_stream(iter([Block(X, Y)]))
    with pytest.raises(TypeError, match=r"source must be one of surff.streaming"):
        model.fit_stream((X, Y))
    with pytest.raises(
        TypeError, match=r"source must be one of surff.streaming and yield"
    ):
        model.fit_stream(X)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (KernelRidgeRegressor(cv="loo"), "cv must be an int above 1"),
        (KernelRidgeRegressor(cv=ALL), "cv must be an int above 1"),
        (KernelRidgeRegressor(scoring="max_error"), r"scoring must be one of \['r2'"),
        (KernelRidgeClassifier(scoring="roc_auc"), r"scoring must be one of \['accur"),
        (KernelRidgeRegressor(cv="gcv", scoring="r2"), "scoring must be None"),
        (KernelRidgeRegressor(cv="gcv", alphas=[0, 1]), "alphas must be positive"),
        (
            KernelRidgeRegressor(NystroemFeatures(kernel="precomputed")),
            "kernel='precomputed' cannot be fitted from a source",
        ),
    ],
)
def test_what_needs_all_rows_is_refused_before_a_row_is_read(model, message):
    def blocks():
        raise AssertionError("read")

    with pytest.raises(ValueError, match=message):
        model.fit_stream(BlockRows(blocks))


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (KernelRidgeRegressor(gammas="auto"), "gammas needs a fit for each"),
        (KernelRidgeClassifier(gammas=[0.1]), "gammas needs a fit for each"),
        (KernelRidgeClassifier(probability=True), "probability=True needs"),
    ],
)
def test_models_that_cannot_stream_have_no_such_method(model, message):
    assert not hasattr(model, "fit_stream")
    with pytest.raises(AttributeError) as caught:
        model.fit_stream(rows())
    assert message in str(caught.value.__cause__)


def test_few_rows_and_bad_samples_are_refused():
    with pytest.raises(ValueError, match="n_sample must be a positive int, got 0"):
        KernelRidgeRegressor().fit_stream(rows(), n_sample=0)
    with pytest.raises(ValueError, match=r"cv=5 leaves fold . without rows"):
        KernelRidgeRegressor(features()).fit_stream(ArrayRows(X[:3], Y[:3]))
    model = KernelRidgeRegressor(features(), alphas=0.7).fit(X, Y)
    with pytest.raises(SourceError, match="the arrays: there is no y to score"):
        model.score_stream(ArrayRows(X))
    with pytest.raises(SourceError, match="the arrays: X has 2 features"):
        list(model.predict_stream(ArrayRows(X[:, :2])))


# Memory


@pytest.mark.parametrize("maps", [features(gamma="scale"), features(select="eerf")])
@pytest.mark.parametrize("model", [KernelRidgeRegressor, KernelRidgeClassifier])
def test_fit_holds_no_copy_of_a_memory_mapped_array(tmp_path, model, maps):
    n, d = 40_000, 32
    np.save(tmp_path / "X.npy", np.random.default_rng(0).normal(size=(n, d)))
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    y, peaks = (np.array(mapped[:, 0]) > 0).astype(float), []
    model(maps, cv="gcv").fit(mapped[:500], y[:500])  # compiled before it is watched
    # One thread: whether the blocks of two are at their largest together is chance.
    with one_thread():
        for size in (n // 2, n):
            tracemalloc.start()
            model(maps, cv="gcv").fit(mapped[:size], y[:size])
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
    # A row of X takes 256 bytes; targets, codes and the like some of 8.
    assert (peaks[1] - peaks[0]) / (n // 2) < 64


PEAK = """
import numpy as np
from threadpoolctl import threadpool_limits
from surff import FourierFeatures, KernelRidgeRegressor
from surff.streaming import BlockRows

def blocks(n):
    X = np.random.default_rng(0).normal(size=(20_000, 2))
    for _ in range(n // 20_000):
        yield X.copy(), X[:, 0].copy()

features = FourierFeatures(4, random_state=0)
model = KernelRidgeRegressor(features, alphas=[0.1, 1.0], cv=2)
for n in (100_000, 1_900_000):
    rows = BlockRows(lambda: blocks(n))
    with threadpool_limits(1, user_api="blas"):
        model.fit_stream(rows)
        list(map(len, model.predict_stream(rows)))
    with open("/proc/self/status") as status:
        print(next(line.split()[1] for line in status if line.startswith("VmHWM")))
"""


@pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="peak memory is read from /proc"
)
def test_peak_memory_does_not_depend_on_the_number_of_rows():
    command = [sys.executable, "-c", PEAK]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    peaks = [int(peak) * 1024 for peak in done.stdout.split()]
    # A byte for each of the 1.8 million rows, and 8 MB that peaks vary by.
    assert peaks[1] - peaks[0] < 8e6 + 1.8e6


@pytest.mark.parametrize("end", [".csv", ".csv.gz", ".csv.xz", ".csv.zip", ".parquet"])
def test_a_look_at_a_file_says_how_far_it_is(tmp_path, end):
    pytest.importorskip("pyarrow", reason="pyarrow is an extra: files")
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(4000, 3)))
    frame.columns = ["a", "b", "y"]
    paths = [tmp_path / f"{i}{end}" for i in range(2)]
    for path in paths:
        if end == ".parquet":
            frame.to_parquet(path, row_group_size=1500)
        else:
            frame.to_csv(path, index=False)
    if end == ".parquet":
        source = ParquetRows(paths, "y", block_rows=1000)
    else:
        source = CsvRows(paths, "y", text_bytes=2**16)
    seen, shares = [], []

    def of_block(block):
        seen.append(len(block.y))
        shares.append(source.share_read)

    stages = []
    look_through(source, of_block, stages.append)
    assert sum(seen) == 8000
    assert shares == sorted(shares)
    # Blocks of compressed files are read from few bytes, or all at once.
    assert len(set(shares)) >= (6 if end in (".csv", ".parquet") else 2)
    assert 0.75 < shares[-1] <= 1
    last = stages[-1]
    assert (last.names, last.total, last.finished) == (("first look",), 1.0, True)
    assert last.done == pytest.approx(shares[-1])


def test_a_look_ends_when_the_function_has_seen_enough():
    rows, seen = ArrayRows(np.ones((10, 2)), block_rows=2), []

    def enough(block):
        seen.append(len(block.X))
        return sum(seen) >= 4

    look_through(rows, enough)
    assert seen == [2, 2]


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("indptr", np.array([0, 2, 10**6, 3])),
        ("indptr", np.array([0, -(10**6), 2, 3])),
        ("indices", np.array([0, 10**6, 1])),
        ("indices", np.array([0, -(10**6), 1])),
        ("data", np.ones(1)),
    ],
)
def test_blocks_of_broken_matrices_are_refused(part, value):
    # The search for NaN in a block that is refused read and wrote out of bounds.
    X = sparse.csr_array((np.ones(3), np.array([0, 1, 1]), np.array([0, 2, 2, 3])))
    setattr(X, part, value)
    y = np.arange(3.0)
    model = KernelRidgeRegressor(FourierFeatures(4, random_state=0), alphas=1.0)
    with pytest.raises(ValueError, match="X is a broken sparse matrix"):
        model.fit_stream(BlockRows(lambda: [(X, y)]))
    with pytest.raises(ValueError, match="X is a broken sparse matrix"):
        model.fit_stream(ArrayRows(X, y))
    with pytest.raises(ValueError, match="X is a broken sparse matrix"):
        model.partial_fit(X, y)
