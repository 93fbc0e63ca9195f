"""A model that takes the table: fits, streams, clusters, files, messages."""

import importlib.util

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.model_selection import GridSearchCV

import surff
from surff.streaming import BlockRows, SourceError
from surff.tables import TableModel

FEATURES = surff.FourierFeatures(40, random_state=0)


def table(n=240, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "size": np.where(rng.random(n) < 0.1, np.nan, rng.normal(size=n)),
            "kind": rng.choice(["a", "b", "c"], n),
            "zip": [f"z{k}" for k in rng.integers(0, 50, n)],
            "when": pd.Timestamp("2020-01-01")
            + pd.to_timedelta(rng.integers(0, 900, n), "D"),
        }
    )
    y = (frame["kind"] == "a") * 2.0 + frame["size"].fillna(0) + rng.normal(size=n) / 9
    return frame, y.to_numpy()


def regressor(**options):
    return surff.table_model(surff.KernelRidgeRegressor(FEATURES, cv="gcv"), **options)


def classifier(**options):
    model = surff.KernelRidgeClassifier(FEATURES, cv="gcv", **options)
    return surff.table_model(model)


def in_blocks(frame, y, step=50):
    def blocks():
        for i in range(0, len(y), step):
            yield frame[i : i + step], y[i : i + step]

    return BlockRows(blocks)


def test_it_is_the_encoder_and_the_model():
    frame, y = table()
    model = regressor().fit(frame, y)
    assert isinstance(model, TableModel)
    assert model.score(frame, y) > 0.7
    Z = model.encoder.transform(frame)
    assert_array_equal(model.predict(frame), model.model.predict(Z))
    assert_array_equal(model.predict(pl.from_pandas(frame)), model.predict(frame))
    assert model.encoder.target_type == "continuous"
    assert_allclose(regressor().fit(frame, y.round()).predict(frame), y, atol=3.0)


def test_classes_and_their_probabilities():
    frame, y = table()
    labels = np.where(y > 1, "high", "low")
    model = classifier().fit(frame, labels)
    assert set(model.classes_) == {"high", "low"}
    assert model.score(frame, labels) > 0.9
    logistic = surff.table_model(surff.KernelLogisticClassifier(FEATURES, alphas=1.0))
    proba = logistic.fit(frame, labels).predict_proba(frame)
    assert proba.shape == (len(y), 2)


def test_a_stream_gives_what_memory_gives():
    frame, y = table()
    whole = regressor().fit(frame, y)
    source = in_blocks(frame, y)
    pieces = regressor().fit_stream(source)
    assert_allclose(pieces.predict(frame), whole.predict(frame), atol=1e-9)
    found = np.concatenate(list(pieces.predict_stream(source)))
    assert_allclose(found, whole.predict(frame), atol=1e-9)
    assert_allclose(pieces.score_stream(source), whole.score(frame, y))
    labels = np.where(y > 1, "high", "low")
    streamed = classifier().fit_stream(
        in_blocks(frame, labels), classes=["high", "low"]
    )
    assert_array_equal(
        streamed.predict(frame), classifier().fit(frame, labels).predict(frame)
    )


@pytest.mark.skipif(importlib.util.find_spec("dask") is None, reason="needs dask")
@pytest.mark.parametrize("parts", [1, 4])
def test_a_cluster_gives_what_memory_gives(parts):
    import dask
    import dask.dataframe as dd

    frame, y = table()
    whole = regressor().fit(frame, y)
    lazy = dd.from_pandas(frame.assign(y=y), npartitions=parts)
    X = lazy.drop(columns="y")
    with dask.config.set(scheduler="synchronous"):
        model = regressor().fit(X, lazy["y"])
        predicted = model.predict(X).compute()
    assert_allclose(model.predict(frame), whole.predict(frame), atol=1e-9)
    assert_allclose(predicted, whole.predict(frame), atol=1e-9)


def test_a_fit_that_fails_leaves_the_model_as_it_was():
    frame, y = table()
    model = regressor().fit_stream(in_blocks(frame, y))
    before = model.predict(frame)
    broken = in_blocks(frame.assign(size=np.inf), y)
    with pytest.raises(SourceError, match=r"block 0, row 0: column 'size' holds inf"):
        model.fit_stream(broken)
    assert_array_equal(model.predict(frame), before)


def test_it_is_searched_and_cloned():
    frame, y = table()
    search = GridSearchCV(regressor(), {"table__max_levels": [10, 60]}, cv=2)
    assert search.fit(frame, y).best_score_ > 0.5


def test_a_saved_model_takes_the_table(tmp_path):
    pytest.importorskip("skops")
    frame, y = table()
    day = frame.assign(
        day=[f"{d % 27 + 1:02}.01.2020" for d in range(len(y))], ok=y > 1
    )
    model = regressor().fit(day, y)
    surff.save(model, tmp_path / "model.skops")
    again = surff.load(tmp_path / "model.skops")
    assert_array_equal(again.predict(day), model.predict(day))
    assert again.encoder.describe() == model.encoder.describe()
    with pytest.raises(ValueError, match="column 'kind' must hold text"):
        again.predict(day.assign(kind=1.0))


def other_names(encoder):
    encoder.coders_[0].names_out = ["size", "more", "and more"]


def other_widths(encoder):
    encoder._n_features_out += 1


def other_columns(encoder):
    encoder.feature_names_in_ = encoder.feature_names_in_[:-1]


def infinite_scale(encoder):
    encoder.coders_[0].scaler.mean_ = np.array([np.nan])


def no_coders(encoder):
    encoder.coders_ = []


def foreign_coders(encoder):
    encoder.coders_ = [np.zeros(3)]


@pytest.mark.parametrize(
    "change",
    [
        other_names, other_widths, other_columns, infinite_scale, no_coders,
        foreign_coders,
    ],
)  # fmt: skip
def test_contradictions_in_a_file_are_refused(change, tmp_path):
    pytest.importorskip("skops")
    frame, y = table()
    model = regressor().fit(frame, y)
    change(model.encoder)
    with pytest.raises(surff.estimators.ModelFileError, match="TableEncoder"):
        surff.save(model, tmp_path / "model.skops")


@pytest.mark.parametrize("convert", [pd.DataFrame, pl.DataFrame])
@pytest.mark.parametrize(
    "model", [surff.KernelRidgeClassifier(), surff.KernelLogisticClassifier()]
)
def test_models_say_how_to_take_text(convert, model):
    frame = convert({"size": [1.0, 2.0, 3.0], "town": ["Oslo", "Rome", "Bern"]})
    name = type(model).__name__
    with pytest.raises(
        ValueError,
        match=r"text in column 'town' \('Oslo'\): surff.table_model\(" + name,
    ):
        model.fit(frame, [0, 1, 0])
