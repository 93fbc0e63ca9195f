import logging
import os
import pickle
import signal
import threading
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import accuracy_score, r2_score
from sklearn.model_selection import PredefinedSplit
from sklearn.pipeline import make_pipeline

from surff import (
    Compression,
    FourierFeatures,
    KernelLogisticClassifier,
    KernelRidgeClassifier,
    KernelRidgeRegressor,
    NystroemFeatures,
    RidgeLeverage,
)
from surff.backend import n_threads, watched
from surff.streaming import ArrayRows, RowSample, SourceError, folds_of_rows
from surff.streaming.passes import Rows

dask = pytest.importorskip("dask", reason="Dask is not installed: surff[dask]")
da = pytest.importorskip("dask.array", reason="dask[array] is not installed")
dd = pytest.importorskip("dask.dataframe", reason="dask[dataframe] is not installed")
distributed = pytest.importorskip("distributed", reason="distributed is not installed")
pd = pytest.importorskip("pandas", reason="pandas is not installed")
from surff.streaming import DaskRows, is_dask  # noqa: E402
from surff.streaming.dask_rows import count_rows, counted_rows  # noqa: E402

RNG = np.random.default_rng(0)
N = 1500
X = RNG.normal(size=(N, 3))
Y = np.sin(2 * X[:, 0]) * X[:, 1] + 0.1 * RNG.normal(size=N) + 3.0
LABELS = np.array(["low", "middle", "high"])[np.digitize(Y, [2.7, 3.3])]
WEIGHT = RNG.integers(0, 4, size=N).astype(float)
X.flags.writeable = Y.flags.writeable = WEIGHT.flags.writeable = False
ALL = PredefinedSplit(folds_of_rows(0, N, 5))
ROWS = (400, 400, 1, 699)

SUMMED = [None, "surrogate", "leverage", "eerf", "alignment", "compression"]


@pytest.fixture(autouse=True)
def _no_cluster():
    """Threads of this process, but where a test asks for a cluster."""
    with dask.config.set(scheduler="threads"):
        yield


@pytest.fixture(scope="module")
def client():
    """Two workers of one thread each."""
    with (
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            dashboard_address=":0",
            silence_logs=logging.CRITICAL,
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.fixture
def on_cluster(client):
    with dask.config.set(scheduler=client):
        yield client


def arrays(X=X, y=Y, weight=WEIGHT, rows=ROWS):
    """The data as Dask arrays of the same chunks."""
    return tuple(
        None if a is None else da.from_array(a, chunks=(rows, *a.shape[1:]))
        for a in (X, y, weight)
    )


def frames(y=Y, parts=3):
    """The data as a Dask dataframe of columns a, b, c and a series."""
    frame = pd.DataFrame(X, columns=list("abc")).assign(y=y)
    frame = dd.from_pandas(frame, npartitions=parts)
    return frame[list("abc")], frame["y"]


def features(n_components=40, **options):
    return FourierFeatures(n_components, **{"gamma": 0.3, "random_state": 0} | options)


def assert_same(model, expected, rtol=1e-10):
    """Equal to rounding of the largest coefficient, and of the same shapes."""
    assert model.primal_coef_.shape == expected.primal_coef_.shape
    atol = rtol * abs(expected.primal_coef_).max()
    assert_allclose(model.primal_coef_, expected.primal_coef_, rtol=0, atol=atol)
    assert_allclose(model.intercept_, expected.intercept_, rtol=rtol)
    assert_allclose(model.alpha_, expected.alpha_, rtol=rtol)
    if expected.best_score_ is not None:
        assert_allclose(model.best_score_, expected.best_score_, rtol=rtol, atol=1e-12)


@pytest.mark.parametrize("select", SUMMED)
@pytest.mark.parametrize("cv", [5, "gcv"])
def test_regression_is_that_of_local_arrays(select, cv):
    # Scores are sums over rows and folds go by row numbers: nothing depends on chunks.
    # Smaller alphas would amplify rounding beyond what is compared.
    model = KernelRidgeRegressor(features(select=select, gamma="scale"), cv=cv)
    model.set_params(alphas=[0.1, 0.7, 3.0])
    local = clone(model).set_params(cv=ALL if cv == 5 else cv).fit(X, Y, WEIGHT)
    assert_same(model.fit(*arrays()), local)
    assert_allclose(model.features_.frequencies_, local.features_.frequencies_)


@pytest.mark.parametrize("select", [None, "surrogate"])
@pytest.mark.parametrize("alphas", [[0.1, 0.7, 3.0], 0.7])
def test_classification_is_that_of_local_arrays(select, alphas):
    model = KernelRidgeClassifier(features(select=select), alphas=alphas)
    local = clone(model).set_params(cv=ALL).fit(X, LABELS, WEIGHT)
    model.fit(*arrays(y=LABELS))
    assert_same(model, local)
    assert_array_equal(model.classes_, ["high", "low", "middle"])
    if alphas != 0.7:
        assert_allclose(model.alpha_path_.scores, local.alpha_path_.scores, rtol=1e-10)


def test_several_targets_and_labels():
    Y2 = np.column_stack([Y, X[:, 2] ** 2])
    local = KernelRidgeRegressor(features(), alphas=0.7).fit(X, Y2)
    model = clone(local).fit(arrays()[0], da.from_array(Y2, chunks=(500, 1)))
    assert_same(model, local)
    local = KernelRidgeClassifier(features(), alphas=0.7).fit(X, (Y2 > 1).astype(int))
    model = clone(local).fit(arrays()[0], da.from_array((Y2 > 1).astype(int)))
    assert_same(model, local)


def test_float32_rows_stay_float32():
    X32 = X.astype(np.float32)
    local = KernelRidgeRegressor(features(), alphas=0.7).fit(X32, Y)
    model = clone(local).fit(*arrays(X32, weight=None))
    assert model.primal_coef_.dtype == model.predict(arrays(X32)[0]).dtype == np.float32
    # Sums of float32 products in another order.
    assert_same(model, local, rtol=1e-3)


def test_reordered_partitions_of_files_stay_together(tmp_path):
    # Optimized alone, y of one column has fewer and larger blocks than X.
    pytest.importorskip("pyarrow", reason="pyarrow is an extra: files")
    frame = pd.DataFrame(X, columns=list("abc")).assign(y=Y)
    for i in range(3):
        frame[500 * i : 500 * i + 500].to_parquet(tmp_path / f"{i}.parquet")
    read = dd.read_parquet(tmp_path)
    for part in (read, read.partitions[[2, 0, 1]], read[read.a > 0].partitions[::-1]):
        model = KernelRidgeRegressor(features(), alphas=0.7)
        model.fit(part[list("abc")], part["y"])
        local = part.compute()
        assert_same(model, clone(model).fit(local[list("abc")], local["y"]))


def test_rows_of_x_and_y_in_other_orders_are_named():
    frame, y = frames()

    def swapped(part):
        return part[::-1]

    with pytest.raises(SourceError, match=r"block \d: y holds the rows of X in an"):
        KernelRidgeRegressor(features(), alphas=0.7).fit(
            frame, y.map_partitions(swapped)
        )


def test_columns_in_another_order_in_one_partition_are_named():
    frame = pd.DataFrame(X, columns=list("abc"))
    parts = [frame[:700], frame[700:][["b", "a", "c"]]]
    lazy = dd.from_delayed(
        [dask.delayed(lambda part: part)(part) for part in parts],
        meta=frame[:0],
        verify_meta=False,
    )
    model = KernelRidgeRegressor(features(), alphas=0.7).fit(frame, Y)
    with pytest.raises(SourceError, match=r"block 1: .*(?s:.)*same order"):
        clone(model).fit(lazy, Y)
    with pytest.raises(SourceError, match="verify_meta=True"):
        model.predict(lazy)


@pytest.mark.parametrize("parts", [1, 4])
def test_dataframes_of_unknown_lengths(parts):
    frame, y = frames(parts=parts)
    frame, y = frame[frame.a > -1], y[frame.a > -1]
    local = KernelRidgeRegressor(
        features(select="surrogate"), cv="gcv", alphas=[0.1, 0.7, 3.0]
    )
    kept = X[:, 0] > -1
    local.fit(pd.DataFrame(X[kept], columns=list("abc")), Y[kept])
    model = clone(local).fit(frame, y)
    assert_same(model, local)
    assert list(model.feature_names_in_) == list("abc")
    predicted = model.predict(frame)
    assert is_dask(predicted)
    assert np.isnan(predicted.shape[0])
    assert_allclose(predicted.compute(), local.predict(frame.compute()), rtol=1e-8)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame.rename(columns={"a": "z"}))


def test_partitions_without_rows_are_passed_over():
    frame, y = frames(parts=5)

    def late(part):
        return part[part.index >= 900]

    frame, y = frame.map_partitions(late), y.map_partitions(late)
    local = KernelRidgeRegressor(features(gamma="scale"), alphas=0.7)
    local.fit(frame.compute(), Y[900:])
    model = clone(local).fit(frame, y)
    assert_same(model, local)
    assert len(model.predict(frame).compute()) == N - 900


def test_labels_of_a_dataframe():
    frame, labels = frames(LABELS)
    model = KernelRidgeClassifier(features(), alphas=0.7).fit(frame, labels)
    assert_same(model, KernelRidgeClassifier(features(), alphas=0.7).fit(X, LABELS))
    assert_array_equal(model.predict(frame).compute(), model.predict(frame.compute()))
    assert model.score(frame, labels) == accuracy_score(
        LABELS, model.predict(frame.compute())
    )


def test_chunks_along_columns_are_put_together():
    whole, y, weight = arrays()
    local = KernelRidgeRegressor(features(), alphas=0.7).fit(X, Y, WEIGHT)
    assert_same(clone(local).fit(whole.rechunk((500, 1)), y, weight), local)
    with dask.config.set({"array.chunk-size": "10kB"}):
        source = DaskRows(whole.rechunk((1500, 1)), y)
        # 10,000 bytes hold 416 rows of three float64.
        assert source.lengths.max() <= 416
        assert_same(clone(local).fit(whole.rechunk((1500, 1)), y, weight), local)


@pytest.mark.parametrize("known", [True, False])
def test_targets_may_be_local(known):
    whole = arrays()[0]
    whole = whole if known else whole[whole[:, 0] > -np.inf]
    local = KernelRidgeRegressor(features(), alphas=0.7).fit(X, Y, WEIGHT)
    assert_same(clone(local).fit(whole, Y, pd.Series(WEIGHT)), local)
    with pytest.raises(ValueError, match="y must have 1500 rows, as X has, got shape"):
        local.fit(whole, Y[1:])


def test_sparse_blocks():
    rows = [sparse.csr_matrix(X[part]) for part in (slice(0, 900), slice(900, N))]
    blocks = [
        da.from_delayed(dask.delayed(block), block.shape, dtype=float, meta=rows[0][:0])
        for block in rows
    ]
    local = KernelRidgeRegressor(features(), alphas=0.7).fit(X, Y)
    assert_same(clone(local).fit(da.concatenate(blocks), arrays()[1]), local)


def test_model_is_that_of_a_stream_where_rows_are_sampled():
    # Adaptations and landmarks see the sample that fit_stream draws.
    for chosen in (
        features(gamma="median"),
        features(select=RidgeLeverage(n_rows=200)),
        features(select=Compression(n_pairs=300)),
        features(select="residual"),
        NystroemFeatures(20, landmarks="rpcholesky", random_state=0),
    ):
        model = KernelRidgeRegressor(chosen)
        stream = clone(model).fit_stream(ArrayRows(X, Y, WEIGHT), n_sample=300)
        assert_same(model.fit_stream(DaskRows(*arrays()), n_sample=300), stream)


@pytest.mark.parametrize("select", SUMMED)
@pytest.mark.parametrize("target", [Y, LABELS, (Y > 3).astype(float)])
def test_features_are_those_of_local_arrays(select, target):
    local = features(select=select, gamma="scale").fit(X, target, WEIGHT)
    rows, y, weight = arrays(y=target)
    fitted = clone(local).fit(rows, y, weight)
    assert_allclose(fitted.gamma_, local.gamma_, rtol=1e-12)
    assert_allclose(fitted.frequencies_, local.frequencies_, rtol=1e-12)
    assert_allclose(fitted.importance_weights_, local.importance_weights_, rtol=1e-9)
    Z = fitted.transform(rows)
    assert (Z.shape, Z.chunks[0], Z.dtype) == ((N, 40), ROWS, np.float64)
    assert_allclose(Z.compute(), local.transform(X), atol=1e-8)


def test_features_that_need_no_rows_compute_none():
    lazy = da.from_delayed(dask.delayed(lambda: 1 / 0)(), (9, 3), dtype=float)
    rows = da.concatenate([da.ones((1, 3)), lazy])
    assert_array_equal(
        features().fit(rows).frequencies_, features().fit(X).frequencies_
    )


def test_landmarks_of_dask_rows():
    rows, _, weight = arrays()
    fitted = NystroemFeatures(30, random_state=0).fit(rows, sample_weight=weight)
    local = NystroemFeatures(30, random_state=0).fit(X, sample_weight=WEIGHT)
    # All rows are in the sample.
    assert_array_equal(fitted.landmarks_, local.landmarks_)
    assert_allclose(fitted.transform(rows).compute(), local.transform(X))
    with pytest.raises(ValueError, match="precomputed"):
        NystroemFeatures(kernel="precomputed").fit(rows)


def test_predictions_are_lazy():
    rows = arrays()[0]
    model = KernelRidgeRegressor(features(), alphas=0.7).fit(X, Y)
    mean, std = model.predict(rows, return_std=True)
    expected = model.predict(X, return_std=True)
    assert mean.chunks == std.chunks == (ROWS,)
    for lazy, values in zip((mean, std), expected, strict=True):
        assert_allclose(lazy.compute(), values)
    assert_allclose(model.predict(rows.rechunk((600, 2))).compute(), expected[0])

    model = KernelRidgeClassifier(features(), probability=True).fit(X, LABELS)
    logistic = KernelLogisticClassifier(features(), alphas=1.0).fit(X, LABELS)
    for fitted, name in (
        (model, "predict"),
        (model, "decision_function"),
        (model, "predict_proba"),
        (logistic, "predict_proba"),
        (logistic, "predict_log_proba"),
    ):
        lazy, values = getattr(fitted, name)(rows), getattr(fitted, name)(X)
        assert (lazy.shape, lazy.dtype) == (values.shape, values.dtype)
        expected = values
        found = lazy.compute()
        assert found.shape == expected.shape
        if name == "predict":
            assert_array_equal(found, expected)
        else:
            assert_allclose(found, expected)


def test_predictions_carry_no_equations():
    model = KernelRidgeRegressor(features(400), alphas=0.7).fit(X, Y)
    graph = model.predict(arrays()[0]).dask
    # The equations are 400 x 401 / 2 numbers and more, the frequencies 200 x 3.
    sizes = [
        len(pickle.dumps(value))
        for value in dict(graph).values()
        if "KernelRidge" in str(value)
    ]
    assert sizes
    assert max(sizes) < 400 * 401 / 2 * 8


def test_scores():
    rows, y, weight = arrays()
    model = KernelRidgeRegressor(features(), alphas=0.7).fit(X, Y)
    expected = r2_score(Y, model.predict(X), sample_weight=WEIGHT)
    assert_allclose(model.score(rows, y, weight), expected)
    assert_allclose(model.score_stream(DaskRows(rows, y, weight)), expected)
    model = KernelRidgeClassifier(features(), alphas=0.7).fit(X, LABELS)
    expected = accuracy_score(LABELS, model.predict(X), sample_weight=WEIGHT)
    assert_allclose(model.score(rows, da.from_array(LABELS), weight), expected)


def test_streams_of_dask_rows():
    source = DaskRows(arrays()[0])
    model = KernelRidgeRegressor(features(), alphas=0.7).fit(X, Y)
    parts = list(model.predict_stream(source))
    assert [len(part) for part in parts] == list(ROWS)
    assert_allclose(np.concatenate(parts), model.predict(X))


def test_frozen_features_and_classes_given():
    frozen = FrozenEstimator(features(select="surrogate").fit(X, Y))
    local = KernelRidgeClassifier(frozen, alphas=0.7).fit(X, LABELS)
    classes = ["low", "middle", "high"]
    source = DaskRows(*arrays(y=LABELS, weight=None))
    assert_same(clone(local).fit_stream(source, classes), local)
    with pytest.raises(SourceError, match=r"block \d, row \d+: y must hold labels"):
        clone(local).fit_stream(source, classes[:2])


def test_pipeline():
    ridge = KernelRidgeRegressor(features(20), alphas=0.7)
    pipeline = make_pipeline(features(), ridge)
    rows, y, _ = arrays()
    predicted = pipeline.fit(rows, y).predict(rows).compute()
    assert_allclose(predicted, pipeline.fit(X, Y).predict(X), rtol=1e-6)


def test_bad_rows_are_named_and_change_nothing():
    bad = X.copy()
    bad[803, 1] = np.nan
    rows, y, weight = arrays(bad)
    model = KernelRidgeRegressor(features(), alphas=0.7).fit(X, Y)
    before = model.primal_coef_.copy()
    with pytest.raises(SourceError, match="block 3, row 2: column 1 of X is NaN"):
        model.fit(rows, y)
    assert_array_equal(model.primal_coef_, before)
    with pytest.raises(SourceError, match=r"sample_weight must be \d+ numbers >= 0"):
        model.fit(arrays()[0], y, -weight)
    with pytest.raises(SourceError, match="no y to fit"):
        model.fit(arrays()[0], None)


def test_what_does_not_fit_together_is_an_error():
    rows, y, _ = arrays()
    frame, series = frames()
    model = KernelRidgeRegressor(features(), alphas=0.7)
    with pytest.raises(ValueError, match="y must have 1500 rows, as X has, got 1499"):
        model.fit(rows, y[1:])
    with pytest.raises(ValueError, match="y must have the 3 blocks of X, got 4"):
        model.fit(frame, y)
    with pytest.raises(TypeError, match="X must be a Dask array of two axes"):
        model.fit(y, y)
    with pytest.raises(TypeError, match="X must be a Dask array of two axes"):
        DaskRows(X)
    with pytest.raises(SourceError, match="inconsistent numbers of samples"):
        model.fit(frame[frame.a > 0], series)
    with pytest.raises(SourceError, match="the source has no rows"):
        model.fit(frame[frame.a > 99], series[frame.a > 99])
    with pytest.raises(ValueError, match="fit requires y"):
        features(select="surrogate").fit(rows)
    with pytest.raises(ValueError, match="sample_weight must have a positive entry"):
        model.fit(rows, y, da.zeros(N, chunks=(ROWS,)))


@pytest.mark.parametrize("option", [{"gammas": [0.1, 1.0]}, {"solver": "cg"}])
def test_options_that_need_all_rows_are_refused(option):
    model = KernelRidgeRegressor(features(), **option)
    with pytest.raises(
        ValueError, match=f"fitted by fit_stream: .*{next(iter(option))}"
    ):
        model.fit(*arrays())


def test_samples_of_parts_merge_to_the_sample_of_all():
    parts = []
    for start, stop in ((0, 400), (400, 401), (401, N)):
        sample = RowSample(50)
        sample.update(Rows(start, X[start:stop], Y[start:stop], None))
        parts.append(sample)
    whole = RowSample(50)
    whole.update(Rows(0, X, Y, None))
    merged = parts[0].merge(parts[1]).merge(RowSample(50)).merge(parts[2])
    assert_array_equal(np.sort(merged.keys), np.sort(whole.keys))
    assert_array_equal(np.sort(merged.X[:, 0]), np.sort(whole.X[:, 0]))


@pytest.mark.parametrize("n", [1, 8, 9, 65])
@pytest.mark.parametrize("n_bytes", [0, 2**40])
def test_all_blocks_are_merged_once(n, n_bytes):
    source = DaskRows(da.ones((n, 2), chunks=(1, 2)))
    starts = source.reduce(
        lambda start, block: [start], lambda total, other: total + other, n_bytes
    )
    assert starts == list(range(n))


def test_merging_leaves_what_it_merges():
    # A task whose inputs were changed could not be run again.
    parts = [np.ones(3), np.ones(3)]
    from surff.streaming.dask_rows import merged

    def add(total, other):
        total += other
        return total

    assert_array_equal(merged(add, parts), 2 * np.ones(3))
    assert_array_equal(parts[0], np.ones(3))


def test_a_task_computes_on_one_thread(on_cluster):
    def count(start, block):
        return [(n_threads(), os.getpid())]

    def join(total, other):
        return total + other

    rows = arrays()[0]
    found = DaskRows(rows).reduce(count, join)
    assert {threads for threads, _ in found} == {1}
    assert os.getpid() not in {pid for _, pid in found}
    with dask.config.set(scheduler="threads"):
        found = DaskRows(rows).reduce(count, join)
    assert set(found) == {(1, os.getpid())}


def test_blocks_of_one_worker_are_merged_there(on_cluster):
    rows = da.ones((16, 2), chunks=(1, 2)).persist()
    distributed.wait(rows)
    holders = on_cluster.who_has(rows)
    keys = [str(block.key) for block in rows.to_delayed().ravel()]
    workers = {str(key): workers[0] for key, workers in holders.items()}
    starts = DaskRows(rows).reduce(
        lambda start, block: [start], lambda total, other: total + other
    )
    assert sorted(starts) == list(range(16))
    assert len(set(workers.values())) == 2
    order = [workers[keys[start]] for start in starts]
    assert order == sorted(order)


@pytest.mark.parametrize("kind", [KernelRidgeRegressor, KernelRidgeClassifier])
def test_workers_give_the_local_result(on_cluster, kind):
    y = Y if kind is KernelRidgeRegressor else LABELS
    model = kind(features(select="surrogate", gamma="scale"), alphas=[0.1, 0.7, 3.0])
    local = clone(model).set_params(cv=ALL).fit(X, y, WEIGHT)
    rows, *others = arrays(y=y)
    assert_same(model.fit(rows, *others), local)
    found, expected = model.predict(rows).compute(), local.predict(X)
    if kind is KernelRidgeRegressor:
        assert_allclose(found, expected, rtol=1e-8)
    else:
        assert_array_equal(found, expected)


def test_a_killed_worker_changes_nothing(on_cluster, tmp_path):
    flag = str(tmp_path / "killed")
    model = KernelRidgeRegressor(features(), alphas=[0.1, 0.7, 3.0])
    local = clone(model).set_params(cv=ALL).fit(X, Y)

    def die_once(block, block_info=None):
        # By then this worker holds sums of other blocks, which are lost with it.
        if block_info[0]["chunk-location"][0] == 11 and not Path(flag).exists():
            Path(flag).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return block

    rows = da.from_array(X, chunks=(100, 3)).map_blocks(die_once, dtype=float)
    model.fit(rows, da.from_array(Y, chunks=100))
    assert Path(flag).exists()
    assert_same(model, local)


@pytest.mark.parametrize("where", ["threads", "cluster"])
def test_a_watched_fit_counts_the_rows_on_workers(where, request):
    if where == "cluster":
        request.getfixturevalue("on_cluster")
    seen = []
    model = KernelRidgeRegressor(FourierFeatures(10, random_state=0), alphas=1.0)
    watching = clone(model).set_params(verbose=seen.append)
    collections = arrays()[:2]
    model.fit(*collections)
    watching.fit(*collections)
    assert_array_equal(watching.primal_coef_, model.primal_coef_)
    passes = [progress for progress in seen if progress.finished]
    assert {(progress.names, progress.total) for progress in passes} == {(("pass",), N)}
    done = {progress.done for progress in passes}
    # Events of a cluster may come after its results.
    assert done == {N} if where == "threads" else max(done) <= N


def test_blocks_on_workers_are_counted_here_by_events(on_cluster):
    seen, arrived = [], threading.Event()

    def hook(progress):
        seen.append(progress.done)
        if progress.done == 7:
            arrived.set()

    def counted():
        with counted_rows(7) as counter:
            for start in (0, 5, 0):  # a block that is computed again counts once
                n_rows = 2 if start else 5
                on_cluster.submit(count_rows, counter, start, n_rows, pure=False)
            assert arrived.wait(20)

    with mock.patch.dict(watched.__globals__, HOOK_SECONDS=0.0):
        watched(hook, None, counted)
    assert max(seen) == 7
    count_rows("unknown", 0, 1)  # neither here nor on a worker: nothing
