"""Tables to numbers: what becomes of each kind of column, whatever holds the table."""

import datetime
import decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.preprocessing import TargetEncoder
from sklearn.utils.estimator_checks import parametrize_with_checks

from surff.streaming import BlockRows, SourceError, folds_of_rows
from surff.tables import (
    ColumnsError,
    TableEncoder,
    columns_of,
    encoded,
    fit_encoder,
)


def table(n=300, seed=0):
    """A frame with a column of every kind, and targets."""
    rng = np.random.default_rng(seed)
    age = np.where(rng.random(n) < 0.1, np.nan, rng.normal(40, 10, n))
    frame = pd.DataFrame(
        {
            "age": age,
            "kind": rng.choice(["a", "b", "c"], n, p=[0.5, 0.45, 0.05]),
            "zip": [f"z{k}" for k in rng.integers(0, 60, n)],
            "ok": rng.random(n) < 0.5,
            "when": pd.Timestamp("2020-01-01")
            + pd.to_timedelta(rng.integers(0, 900 * 24, n), "h"),
            "day": [f"{d:02}.03.2021" for d in rng.integers(1, 28, n)],
            "const": 1,
            "copy": age,
            "pareto": rng.pareto(0.7, n),
            "id": np.arange(5, n + 5),
            "nothing": [None] * n,
        }
    )
    frame.loc[3, "kind"] = None
    y = (frame["kind"] == "a") * 2.0 + rng.normal(size=n)
    return frame, y.to_numpy()


@parametrize_with_checks([TableEncoder()])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_a_line_per_column():
    frame, y = table()
    lines = TableEncoder().fit(frame, y).describe().splitlines()
    assert [line.split(":")[0].strip() for line in lines] == list(frame.columns)
    made = dict(line.split(": ", 1) for line in lines)
    made = {name.strip(): line for name, line in made.items()}
    gaps = int(frame["age"].isna().sum())
    assert made == {
        "age": f"numbers, {gaps} gaps filled by the median and flagged; standardised",
        "kind": "3 categories, 1 gap as one more; one-hot, 1 rare together",
        "zip": f"{frame['zip'].nunique()} categories; as the cross-fitted mean of the "
        "target",
        "ok": "True and False as 1 and 0, no gaps",
        "when": "dates, no gaps; as days since 1970, place in the year, place in the "
        "week, place in the day",
        "day": "dates, no gaps; as days since 1970, place in the week",
        "const": "left out: constant",
        "copy": "left out: the same as 'age'",
        "pareto": "numbers, no gaps; heavy tail, to normal quantiles",
        "id": "left out: row numbers",
        "nothing": "left out: no value",
    }


def test_values_in_closed_form():
    frame, y = table()
    encoder = TableEncoder()
    Z = pd.DataFrame(
        encoder.fit_transform(frame, y), columns=encoder.get_feature_names_out()
    )
    age = frame["age"].fillna(frame["age"].median())
    assert_allclose(Z["age"], (age - age.mean()) / age.std(ddof=0))
    assert_array_equal(Z["age_missing"], frame["age"].isna())
    assert_array_equal(Z["ok"], frame["ok"])
    assert_array_equal(Z["kind_a"], frame["kind"] == "a")
    assert_array_equal(Z["kind_(rare)"], frame["kind"].isna())
    weekday = 2 * np.pi * (frame["when"].astype("datetime64[ns]").astype(int) / 864e11)
    assert_allclose(Z["when_week_cos"], np.cos(weekday / 7), atol=1e-9)
    # Ranks are kept, and the middle half is that of a normal.
    assert_array_equal(np.argsort(Z["pareto"]), np.argsort(frame["pareto"]))
    assert_allclose(np.quantile(Z["pareto"], [0.25, 0.75]), [-0.674, 0.674], atol=0.05)
    assert list(encoder.columns_out()) == [
        name for name, line in encoder.made_.items() if "left out" not in line
    ]


def test_means_of_the_target_are_those_of_other_rows():
    frame, y = table()
    encoder = TableEncoder()
    (j,) = encoder.fit(frame[["zip"]], y).columns_out()["zip"]
    own = encoder.fit_transform(frame[["zip"]], y)[:, j]
    folds = folds_of_rows(0, len(y), 5)
    words = frame[["zip"]].to_numpy(dtype=object)
    whole = TargetEncoder(target_type="continuous").fit(words, y).transform(words)
    expected = np.empty(len(y))
    for fold in range(5):
        train, test = folds != fold, folds == fold
        inner = TargetEncoder(target_type="continuous").fit(words[train], y[train])
        expected[test] = inner.transform(words[test])[:, 0]
    expected = (expected - whole.mean()) / whole.std()
    assert_allclose(own, expected)
    assert_allclose(
        encoder.transform(frame[["zip"]])[:, j],
        ((whole - whole.mean()) / whole.std())[:, 0],
    )


def as_polars(frame):
    return pl.from_pandas(frame)


def as_arrow(frame):
    return pa.Table.from_pandas(frame, preserve_index=False)


def as_dictionaries(frame):
    return frame.astype({"kind": "category", "zip": "category"})


def as_nullable(frame):
    return frame.convert_dtypes()


def as_objects(frame):
    return frame.astype(object)


@pytest.mark.parametrize(
    "convert", [as_polars, as_arrow, as_dictionaries, as_nullable, as_objects]
)
def test_who_holds_the_table_does_not_matter(convert):
    frame, y = table()
    other = convert(frame)
    encoder = TableEncoder()
    Z = encoder.fit_transform(frame, y)
    assert_allclose(TableEncoder().fit_transform(other, y), Z, atol=1e-9)
    assert_allclose(encoder.transform(other), encoder.transform(frame), atol=1e-9)


def test_order_and_further_columns_do_not_matter():
    frame, y = table()
    encoder = TableEncoder().fit(frame, y)
    other = frame[frame.columns[::-1]].assign(more="text that nobody asked for")
    assert_array_equal(encoder.transform(other), encoder.transform(frame))


@pytest.mark.parametrize("n_sample", [100, 10_000])
@pytest.mark.parametrize("step", [37, 100])
def test_blocks_do_not_matter(n_sample, step):
    frame, y = table()

    def blocks():
        for i in range(0, len(y), step):
            yield frame[i : i + step], y[i : i + step]

    whole = TableEncoder(n_sample=n_sample)
    Z = whole.fit_transform(frame, y)
    source = BlockRows(blocks)
    pieces = fit_encoder(TableEncoder(n_sample=n_sample), source)
    assert pieces.made_ == whole.made_
    learned = np.concatenate([block.X for block in encoded(source, pieces, True)])
    assert_allclose(learned, Z, atol=1e-12)
    plain = np.concatenate([block.X for block in encoded(source, pieces)])
    assert_allclose(plain, whole.transform(frame), atol=1e-12)


def test_unknown_values_and_gaps_are_encoded():
    frame, y = table()
    encoder = TableEncoder().fit(frame, y)
    names = encoder.get_feature_names_out().tolist()
    new = frame[:2].assign(kind=["never seen", None], zip=["z999", None], ok=None)
    Z = encoder.transform(new)
    assert np.isfinite(Z).all()
    assert Z[:, names.index("kind_(rare)")].tolist() == [1, 1]
    none = frame[:1].assign(**dict.fromkeys(frame))
    assert np.isfinite(encoder.transform(none)).all()


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (["a", 1] * 30, r"column 'x' holds text, but int in row 1 \(1\)"),
        ([[1], [2]] * 30, "column 'x' holds list"),
        ([1.0, np.inf] * 30, r"column 'x' holds infinity \(row 1\)"),
        ([1j, 2j] * 30, "column 'x' holds complex"),
        (
            [f"this is sentence number {i}" for i in range(60)],
            "column 'x' holds sentences, such as 'this is sentence number 0'; leave it "
            "out by drop=",
        ),
        (
            [f"{i}.{i + 100},50" for i in range(1, 61)],
            r"column 'x' holds numbers that are written for people, such as '1.101,50'",
        ),
        ([f"{i} %" for i in range(60)], "written for people, such as '0 %'"),
    ],
)
def test_what_cannot_be_used_is_refused_by_name(column, message):
    frame = pd.DataFrame({"good": np.arange(60.0) ** 2, "x": column})
    with pytest.raises(ColumnsError, match=message):
        TableEncoder().fit(frame)


def test_sentences_may_be_left_out():
    words = [f"this is sentence number {i}" for i in range(60)]
    frame = pd.DataFrame({"good": np.arange(60.0) ** 2, "x": words})
    encoder = TableEncoder(text="drop").fit(frame)
    assert encoder.made_["x"].startswith("left out: sentences; make numbers")
    assert TableEncoder(drop=["x"]).fit(frame).made_["x"] == "left out: as drop= says"
    with pytest.raises(ColumnsError, match="no column of the table can be used"):
        TableEncoder(text="drop", drop=["good"]).fit(frame)
    with pytest.raises(ColumnsError, match=r"must name columns of the table, got \['y"):
        TableEncoder(drop=["y"]).fit(frame)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"age": "old"},
            r"column 'age' must hold numbers, as in fit, got text \('old'",
        ),
        ({"kind": 3.5}, r"column 'kind' must hold text, as in fit, got numbers \(3.5 "),
        ({"ok": 2}, "column 'ok' must hold True and False, as in fit, got numbers"),
        ({"when": 3}, "column 'when' must hold dates, as in fit, got numbers"),
        ({"day": "2021-03-01"}, r"column 'day' must hold dates as %d.%m.%Y, as in fit"),
    ],
)
def test_another_kind_is_refused_by_name(change, message):
    frame, y = table()
    encoder = TableEncoder().fit(frame, y)
    with pytest.raises(ColumnsError, match=message):
        encoder.transform(frame.assign(**change))
    with pytest.raises(SourceError, match=f"block 0: {message}"):
        list(encoded(BlockRows(lambda: [frame.assign(**change)]), encoder))


def test_a_column_that_is_not_there_or_twice():
    frame, y = table()
    encoder = TableEncoder().fit(frame, y)
    with pytest.raises(ColumnsError, match="no column 'age', which the model was fitt"):
        encoder.transform(frame.drop(columns="age"))
    twice = pd.concat([frame, frame[["kind"]]], axis=1)
    with pytest.raises(ColumnsError, match="several columns named 'kind'"):
        encoder.transform(twice)


def test_numbers_may_be_categories():
    frame = pd.DataFrame({"code": [1, 2, 3, 7] * 20, "size": np.arange(80) ** 1.5})
    encoder = TableEncoder(categorical=["code"]).fit(frame)
    names = encoder.get_feature_names_out().tolist()
    assert names == ["code_1", "code_2", "code_3", "code_7", "size"]
    assert_array_equal(encoder.transform(frame)[:4, :4], np.eye(4))


@pytest.mark.parametrize(
    ("y", "n_columns"),
    [
        (np.array(["no", "yes"] * 150), 1),
        (np.array(["a", "b", "c"] * 100), 3),
        (np.arange(300) % 20, 30),  # of many classes one-hot says more
        (None, 30),
    ],
)
def test_many_categories_by_the_kind_of_target(y, n_columns):
    frame, _ = table()
    encoder = TableEncoder().fit(frame[["zip"]], y)
    assert encoder.transform(frame[["zip"]]).shape == (300, n_columns)


@pytest.mark.parametrize(
    "values",
    [
        [decimal.Decimal("1.5"), None, decimal.Decimal("2")],
        [datetime.date(2020, 1, 1), None, datetime.date(2021, 1, 1)],
        ["2020-01-01T12:30", None, "2020-01-03 00:00:01"],
        [True, None, False],
        [1, None, 3],
    ],
)
def test_objects_are_what_they_are(values):
    column = columns_of(pd.DataFrame({"x": pd.Series(values, dtype=object)}))["x"]
    assert column.missing.tolist() == [False, True, False]
    kinds = {"Decimal": "number", "date": "date", "bool": "truth", "int": "number"}
    assert column.kind == kinds.get(type(values[0]).__name__, "text")


@pytest.mark.parametrize(
    ("words", "days"),
    [
        (["1970-01-02", "1970-01-03T12:00"], [1, 2.5]),
        (["02.01.1970", "31.01.1970"], [1, 30]),
        (["01/02/1970", "01/31/1970"], [1, 30]),
        (["02/01/1970", "31/01/1970"], [1, 30]),
        (["02.01.1970 06:00", "03.01.1970 00:00"], [1.25, 2]),
    ],
)
def test_dates_are_read_from_text(words, days):
    frame = pd.DataFrame({"when": words * 10})
    encoder = TableEncoder().fit(frame)
    assert "dates" in encoder.made_["when"]
    Z = encoder.transform(frame)[:2, 0]
    centred = np.array(days) - np.mean(days)
    assert_allclose(Z, centred / centred.std())


def test_numbers_that_only_look_like_dates_are_categories():
    frame = pd.DataFrame({"code": ["1-2-3", "4-5-66"] * 10})
    assert "2 categories" in TableEncoder().fit(frame).made_["code"]
