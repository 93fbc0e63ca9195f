"""Files as other people write them: indices, types, quotes, marks, folders, changes."""

import datetime
import decimal
import os
import warnings

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from surff import FourierFeatures, KernelRidgeClassifier, KernelRidgeRegressor
from surff.streaming import (
    ArrowRows,
    BlockRows,
    CsvRows,
    ParquetRows,
    SourceError,
)

pa = pytest.importorskip("pyarrow", reason="pyarrow is an extra: files")
pq = pytest.importorskip("pyarrow.parquet", reason="pyarrow is an extra: files")
pd = pytest.importorskip("pandas", reason="pandas is not installed")

RNG = np.random.default_rng(0)


@pytest.fixture
def csv_file(tmp_path):
    def write(text, name="rows.csv"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


def rows_of(source):
    """X as lists, y as a list, over all blocks."""
    blocks = list(source)
    X = np.concatenate([block.X for block in blocks]).tolist()
    if blocks[0].y is None:
        return X
    return X, np.concatenate([block.y for block in blocks]).tolist()


def parquet(tmp_path, **columns):
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table(columns), path)
    return path


# The index of a data frame

FRAME = pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": [4.0, 5.0, 6.0]})
INDICES = {
    "range": pd.RangeIndex(5, 8),
    "shuffled": pd.Index([2, 0, 1]),
    "named": pd.Index([2, 0, 1], name="id"),
    "dates": pd.date_range("2024-01-01", periods=3),
    "levels": pd.MultiIndex.from_tuples([(1, 2), (3, 4), (5, 6)], names=["k", None]),
    "text": pd.Index(list("xyz"), name="key"),
}


@pytest.mark.parametrize("index", INDICES)
def test_the_index_of_pandas_is_no_feature(tmp_path, index):
    frame = FRAME.set_axis(INDICES[index], axis=0)
    frame.to_parquet(tmp_path / "rows.parquet")
    source = ParquetRows(tmp_path / "rows.parquet", "b")
    assert source.feature_names == ["a"]
    assert rows_of(source) == ([[1.0], [2.0], [3.0]], [4.0, 5.0, 6.0])
    source = ArrowRows(pa.Table.from_pandas(frame), "b")
    assert source.feature_names == ["a"]
    if index not in ("levels", "dates"):
        frame.to_csv(tmp_path / "rows.csv", index=frame.index.name is None)
        assert CsvRows(tmp_path / "rows.csv", "b").feature_names == ["a"]


def test_an_index_may_be_asked_for_by_name(tmp_path):
    FRAME.set_axis(INDICES["named"]).to_parquet(tmp_path / "rows.parquet")
    source = ParquetRows(tmp_path / "rows.parquet", "b", features=["id", "a"])
    assert rows_of(source)[0] == [[2.0, 1.0], [0.0, 2.0], [1.0, 3.0]]
    assert ParquetRows(tmp_path / "rows.parquet", "id").feature_names == ["a", "b"]


def test_an_index_whose_metadata_are_lost_is_known_by_its_name(tmp_path):
    table = pa.Table.from_pandas(FRAME.set_axis(INDICES["shuffled"]))
    path = tmp_path / "rows.parquet"
    pq.write_table(table.replace_schema_metadata(None), path)
    assert ParquetRows(path, "b").feature_names == ["a"]
    pq.write_table(table.replace_schema_metadata({"pandas": "{"}), path)
    with pytest.raises(SourceError, match=r"rows.parquet: the metadata of pandas"):
        ParquetRows(path, "b")


def test_frames_of_polars_and_dask(tmp_path):
    polars = pytest.importorskip("polars", reason="polars is not installed")
    polars.from_pandas(FRAME).write_parquet(tmp_path / "rows.parquet")
    assert ParquetRows(tmp_path / "rows.parquet", "b").feature_names == ["a"]
    polars.from_pandas(FRAME).write_csv(tmp_path / "rows.csv")
    assert CsvRows(tmp_path / "rows.csv", "b").feature_names == ["a"]
    dd = pytest.importorskip("dask.dataframe", reason="dask is not installed")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Dask's use of pandas
        dd.from_pandas(FRAME, npartitions=2).to_parquet(tmp_path / "parts")
    source = ParquetRows(tmp_path / "parts", "b")
    assert source.feature_names == ["a"]
    assert rows_of(source)[1] == [4.0, 5.0, 6.0]


def test_a_shuffled_frame_of_noise_scores_no_better_than_noise(tmp_path):
    # y follows the order of the rows, which only the index knows after a shuffle.
    frame = pd.DataFrame(RNG.normal(size=(500, 2)), columns=["a", "b"])
    frame["y"] = np.arange(500.0)
    frame.sample(frac=1, random_state=0).to_parquet(tmp_path / "rows.parquet")
    model = KernelRidgeRegressor(FourierFeatures(50, random_state=0))
    model.fit_stream(ParquetRows(tmp_path / "rows.parquet", "y"))
    assert model.best_score_ < 0.1


# Types


def test_parquet_targets_of_decimals_booleans_and_categories(tmp_path):
    cells = [decimal.Decimal("1.25"), decimal.Decimal("-0.31"), decimal.Decimal("0.10")]
    path = parquet(
        tmp_path,
        a=[1, 2, 3],
        money=pa.array(cells, pa.decimal128(25, 2)),
        flag=[True, False, True],
        level=pa.array([5, 7, 5]).dictionary_encode(),
    )
    assert rows_of(ParquetRows(path, "money", features=["a"]))[1] == [1.25, -0.31, 0.1]
    assert rows_of(ParquetRows(path, "flag", features=["a"]))[1] == [True, False, True]
    X, y = rows_of(ParquetRows(path, "level"))
    assert y == [5, 7, 5]
    assert X[1] == [2.0, -0.31, 0.0]


@pytest.mark.parametrize(
    "values",
    [
        pa.array([datetime.datetime(2024, 1, 1)]),
        pa.array([datetime.date(2024, 1, 1)]),
        pa.array([datetime.time(12)]),
        pa.array([datetime.timedelta(1)]),
    ],
    ids=lambda values: str(values.type),
)
def test_dates_and_times_are_refused_by_name(tmp_path, values):
    path = parquet(tmp_path, a=[1.0], when=values)
    match = r"rows.parquet, row group 0: column 'when' must hold numbers.*such as years"
    for source in (
        ParquetRows(path, "when"),
        ParquetRows(path, "a"),
        ParquetRows(path, features=["a"], sample_weight="when"),
    ):
        with pytest.raises(SourceError, match=match):
            list(source)
    with pytest.raises(SourceError, match="column 'when' must hold numbers"):
        list(ArrowRows(pq.read_table(path), "a"))


def test_text_and_lists_are_refused_with_a_cure(tmp_path):
    path = parquet(tmp_path, a=[1.0], name=["x"], list=[[1]], y=[1.0])
    with pytest.raises(SourceError, match=r"'name' must hold .* out by features="):
        list(ParquetRows(path, "y", features=["name"]))
    with pytest.raises(SourceError, match=r"'list' must hold numbers or text, got lis"):
        list(ParquetRows(path, "list", features=["a"]))


def test_labels_that_numpy_would_join_are_refused(tmp_path):
    path = parquet(tmp_path, a=[1.0, 2.0], y=["x", "x\0"])
    with pytest.raises(SourceError, match=r"group 0, row 1: .* character of code zero"):
        list(ParquetRows(path, "y"))


def test_a_parquet_column_with_fewer_rows_than_the_file_says(tmp_path):
    # Bytes found by the fuzz harness: without a count the rows were lost in silence.
    path = parquet(tmp_path, a=np.arange(8.0), y=np.arange(8.0))
    source = ParquetRows(path, "y")
    with source._open(path) as file:
        assert file.metadata.row_group(0).num_rows == 8
    original = pq.ParquetFile.iter_batches

    def fewer(self, *args, **options):
        for batch in original(self, *args, **options):
            yield batch.slice(0, 3)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pq.ParquetFile, "iter_batches", fewer)
        with pytest.raises(SourceError, match=r"have 3 rows, but .* 8; it is"):
            list(source)


def test_csv_true_and_false_are_one_and_zero(csv_file, tmp_path):
    frame = FRAME.assign(flag=[True, False, True], y=[True, True, False])
    frame.to_csv(csv_file("", "rows.csv"), index=False)
    X, y = rows_of(CsvRows(tmp_path / "rows.csv", "y"))
    assert_array_equal(X, [[1, 4, 1], [2, 5, 0], [3, 6, 1]])
    assert y == [True, True, False]
    # Far behind a block of numbers, too, and missing in between.
    text = "a,y\n" + "1,2\n" * 500 + "TRUE,2\nfalse,3\n0,1\n"
    X, y = rows_of(CsvRows(csv_file(text), "y", text_bytes=200))
    assert [x for (x,) in X[-3:]] == [1.0, 0.0, 0.0]
    with pytest.raises(
        SourceError, match=r"rows.csv, line 3: column 'a' must hold eit"
    ):
        list(CsvRows(csv_file("a,y\nTrue,1\n2.5,1\n"), "y"))


def test_csv_targets_may_become_numbers_late(csv_file):
    text = "a,y\n" + "0,1\n" * 300 + "0,1.5\n"
    path = csv_file(text)
    assert rows_of(CsvRows(path, "y", text_bytes=200))[1][-1] == 1.5
    with pytest.raises(
        SourceError,
        match=r"rows.csv, line 302: the target 'y' must hold whole numbers, got '1.5'; "
        r"give target_dtype=float",
    ):
        list(CsvRows(path, "y", text_bytes=200, target_dtype=int))
    path = csv_file(text + "0,high\n")
    with pytest.raises(SourceError, match=r"line 303: .*'high'; give target_dtype=str"):
        list(CsvRows(path, "y", text_bytes=200))
    assert rows_of(CsvRows(path, "y", target_dtype=str))[1][-2:] == ["1.5", "high"]
    # Text stays text.
    text = "a,y\n" + "0,low\n" * 300 + "0,1\n"
    assert rows_of(CsvRows(csv_file(text), "y", text_bytes=200))[1][-1] == "1"


def test_csv_text_missing_cells_and_dates_name_line_column_and_cure(csv_file):
    path = csv_file("a,b,y\n1,2,3\n1,x,3\n")
    with pytest.raises(
        SourceError,
        match=r"rows.csv, line 3: column 'b' must hold numbers, got 'x'; .*features=",
    ):
        list(CsvRows(path, "y"))
    path = csv_file("a,b,y\n1,2,3\n1,2024-05-06,3\n")
    with pytest.raises(
        SourceError, match=r"line 3: column 'b' .*such as years.*featur"
    ):
        list(CsvRows(path, "y"))
    path = csv_file("a,b,y\n1,2,3\n1,,3\n")
    model = KernelRidgeRegressor(FourierFeatures(10, gamma=0.1))
    with pytest.raises(SourceError, match=r"line 3: column 'b' of X is NaN .*; fill"):
        model.fit_stream(CsvRows(path, "y"))
    with pytest.raises(SourceError, match=r"line 3: the target 'b' is missing; drop"):
        list(CsvRows(path, "b"))


# Quotes


@pytest.mark.parametrize("text_bytes", [70, 200, 2**20])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_csv_line_breaks_in_quotes(csv_file, text_bytes, end):
    notes = ["plain", "two\nlines", 'a ""quoted"" word,', "\n\n", "5 inch", ""]
    lines = [f'{i},"{notes[i % 6]}",{i}.5' for i in range(300)]
    path = csv_file(end.join(["a,note,y", *lines]) + end)
    source = CsvRows(path, "y", features=["a"], text_bytes=text_bytes)
    X, y = rows_of(source)
    assert [x for (x,) in X] == list(range(300))
    assert y == [i + 0.5 for i in range(300)]
    labels = CsvRows(path, "note", features=["a"], text_bytes=text_bytes)
    # A quoted value that is empty is missing.
    with pytest.raises(SourceError, match=r"line \d+: the target 'note' is missing"):
        list(labels)


def test_csv_lines_are_those_of_the_file(csv_file):
    # The second row begins on line 2 and ends on line 4; line 5 is empty.
    path = csv_file('a,note,y\n1,"x\n\ny",1\n\n2,z,oops\n3,"a"b"c,3\n')
    with pytest.raises(SourceError, match=r"rows.csv, line 6: the target 'y' .*'oops'"):
        list(CsvRows(path, "y", features=["a"], target_dtype=float))
    path = csv_file('a,note,y\n1,"x\n\ny",1\n\n2,z\n')
    with pytest.raises(SourceError, match=r"line 6: a row must have 3 values.*, got 2"):
        list(CsvRows(path, "y", features=["a"]))
    path = csv_file('a,note,y\n1,"x\n\ny",1\n\n,z,2\n')
    (block,) = CsvRows(path, "y", features=["a"])
    assert block.locate(1).endswith("line 6")


def test_quotes_inside_values_are_letters(csv_file):
    path = csv_file('a,note,y\n1,5" disk,1\n2,"5"" disk",2\n3,x"y"z,3\n')
    assert rows_of(CsvRows(path, "y", features=["a"], text_bytes=20))[1] == [1, 2, 3]


def test_a_quote_left_open_is_named(csv_file):
    path = csv_file('a,note,y\n1,x,1\n2,"z,2\n' + "3,w,3\n" * 100)
    with pytest.raises(
        SourceError, match=r"line 3: .*end within the file; close the q"
    ):
        list(CsvRows(path, "y", features=["a"]))
    with pytest.raises(SourceError, match=r"line 3: .* 100 bytes; .*raise text_bytes="):
        list(CsvRows(path, "y", features=["a"], text_bytes=100))
    path = csv_file("a,y\n" + "1" * 300 + ",1\n")
    with pytest.raises(SourceError, match=r"line 2: .* 100 bytes; raise text_bytes="):
        list(CsvRows(path, "y", text_bytes=100))


# Delimiters, marks, encodings, headers


def test_delimiters_and_decimal_marks(csv_file):
    path = csv_file("a;b;y\n1,5;2;0,25\n-2,5e1;3;1\n")
    source = CsvRows(path, "y", delimiter=";", decimal=",")
    assert rows_of(source) == ([[1.5, 2.0], [-25.0, 3.0]], [0.25, 1.0])
    with pytest.raises(SourceError, match=r"no column 'y'.* Give delimiter=';'"):
        CsvRows(path, "y")
    with pytest.raises(
        SourceError, match=r"line 2: column 'a' .*'1,5'; give decimal=','"
    ):
        list(CsvRows(path, "b", features=["a"], delimiter=";"))
    path = csv_file("a;y\n1.5;2\n")
    with pytest.raises(SourceError, match=r"'1.5'; give decimal='.'"):
        list(CsvRows(path, "y", delimiter=";", decimal=","))
    for options, match in (
        ({"decimal": ","}, "decimal and delimiter must differ"),
        ({"decimal": ""}, "decimal must be one ASCII character"),
        ({"delimiter": "||"}, "delimiter must be one ASCII character"),
        ({"encoding": "base64"}, "encoding must be an encoding of text"),
        ({"encoding": "none"}, "encoding must be an encoding of text"),
    ):
        with pytest.raises(ValueError, match=match):
            CsvRows(path, "y", **options)


@pytest.mark.parametrize(
    "encoding", ["utf8", "utf-8-sig", "utf-16", "latin-1", "cp1252"]
)
def test_encodings(csv_file, encoding):
    text = "größe,y\n" + "1.5,süß\n2.5,bitter\n" * 200
    path = csv_file(text.encode(encoding))
    source = CsvRows(path, "y", encoding=encoding, text_bytes=101)
    X, y = rows_of(source)
    assert source.feature_names == ["größe"]
    assert len(X) == 400
    assert y[:2] == ["süß", "bitter"]


def test_other_encodings_are_named(csv_file):
    text = "a,y\n1,süß\n"
    with pytest.raises(
        SourceError, match=r"rows.csv: the text is utf-16; give encodin"
    ):
        CsvRows(csv_file(text.encode("utf-16")), "y")
    with pytest.raises(
        SourceError, match=r"rows.csv: the text holds bytes of zero; .*-"
    ):
        CsvRows(csv_file(text.encode("utf-16-le")), "y")
    with pytest.raises(
        SourceError, match=r"line 2, column 'y': the text is not utf-8 .*encoding="
    ):
        list(CsvRows(csv_file(text.encode("latin-1")), "y"))
    with pytest.raises(SourceError, match=r"line 1: the text is not utf-8 .*encoding="):
        CsvRows(csv_file("ä,y\n1,2\n".encode("latin-1")), "y")
    # Columns that are not used may hold anything.
    path = csv_file("a,n,y\n1,ü,2\n".encode("latin-1"))
    assert rows_of(CsvRows(path, "y", features=["a"])) == ([[1.0]], [2])


def test_repeated_and_missing_names(csv_file):
    path = csv_file("a,b,b,y\n1,2,3,4\n")
    with pytest.raises(SourceError, match=r"there are two columns 'b'; .* features="):
        CsvRows(path, "y")
    assert rows_of(CsvRows(path, "y", features=["a"])) == ([[1.0]], [4])
    path = csv_file("1.5,2,3\n4,5,6\n")
    with pytest.raises(SourceError, match=r"no column 'y'.* Give column_names="):
        CsvRows(path, "y")


# Folders and files that change


def test_hidden_files_are_skipped_and_others_refused_by_name(csv_file, tmp_path):
    csv_file("a,y\n1,2\n", "part-0.csv")
    for name in (".part-0.csv.crc", "._x", "_SUCCESS", "_x.csv", ".hidden.csv"):
        csv_file("no rows", name)
    (tmp_path / ".ipynb_checkpoints").mkdir()
    csv_file("a,y\n7,7\n", ".ipynb_checkpoints/x.csv")
    (tmp_path / "a").mkdir()
    csv_file("a,y\n0,1\n", "a/x.CSV")
    assert rows_of(CsvRows(tmp_path, "y")) == ([[0.0], [1.0]], [1, 2])
    csv_file("a,y\n1,2\n", "x.csv.bak")
    with pytest.raises(
        SourceError, match=r"x.csv.bak: .* ends in none of .csv, .*path="
    ):
        CsvRows(tmp_path, "y")
    with pytest.raises(SourceError, match=r"ends in none of .parquet, .parq, .pq"):
        ParquetRows(tmp_path, "y")
    # A file that is named is read, whatever its name.
    assert rows_of(CsvRows(tmp_path / "x.csv.bak", "y")) == ([[1.0]], [2])


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read everything"
)
def test_a_folder_that_cannot_be_read_is_named(tmp_path):
    (tmp_path / "closed").mkdir(mode=0)
    with pytest.raises(SourceError, match="closed: cannot be read"):
        CsvRows(tmp_path, "y")


def changing(source, change):
    """The source; ``change`` is called before its second pass."""
    passes = []
    iterate = type(source).__iter__

    class Changing(type(source)):
        def __iter__(self):
            passes.append(1)
            if len(passes) == 2:
                change()
            return iterate(self)

    source.__class__ = Changing
    return source


@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize("what", ["rewritten", "vanished"])
def test_files_that_change_between_passes_are_named(tmp_path, kind, what):
    frame = pd.DataFrame(RNG.normal(size=(300, 2)), columns=["a", "b"])
    frame["y"] = np.where(frame.a > 0, "up", "down")
    path = tmp_path / f"rows.{kind}"
    write = frame.to_csv if kind == "csv" else frame.to_parquet
    write(path, index=False)
    source = (CsvRows if kind == "csv" else ParquetRows)(path, "y")

    def change():
        if what == "vanished":
            path.unlink()
        else:
            write(path, index=False)
            os.utime(path, ns=(0, 10**9))

    # Of several passes: labels, then sums.
    model = KernelRidgeClassifier(FourierFeatures(10, random_state=0))
    message = "changed while it was" if what == "rewritten" else "cannot be read"
    with pytest.raises(SourceError, match=rf"rows.{kind}: .*{message}|No such file"):
        model.fit_stream(changing(source, change))
    assert not hasattr(model, "primal_coef_")


def test_a_source_may_be_used_again_after_its_files_were_written_again(csv_file):
    path = csv_file("a,y\n" + "1,2\n2,3\n4,1\n" * 20)
    source = CsvRows(path, "y")
    model = KernelRidgeRegressor(FourierFeatures(10, random_state=0))
    model.fit_stream(source)
    csv_file("a,y\n" + "1,2\n2,3\n4,1\n" * 30)
    model.fit_stream(source)
    assert sum(len(block.X) for block in source) == 90


def test_a_damaged_feather_file_is_refused(tmp_path):
    dataset = pytest.importorskip("pyarrow.dataset", reason="pyarrow is an extra")
    feather = pytest.importorskip("pyarrow.feather", reason="pyarrow is an extra")
    words = pa.array(["x", "yy", "z"] * 50)
    path = tmp_path / "rows.feather"
    table = pa.table({"a": np.arange(150.0), "y": words})
    feather.write_feather(table, path, compression="uncompressed")
    data = path.read_bytes()
    offsets = np.frombuffer(words.buffers()[1], np.int32)[:151].tobytes()
    assert data.count(offsets) == 1
    path.write_bytes(data.replace(offsets, offsets[:300] + b"\x7f" * 4 + offsets[304:]))
    source = ArrowRows(dataset.dataset(path, format="feather"), "y")
    with pytest.raises(SourceError, match=r"rows.feather.*: cannot be read"):
        list(source)


def test_functions_are_not_looked_up_on_the_disk():
    X = RNG.normal(size=(60, 2))
    model = KernelRidgeRegressor(FourierFeatures(10, random_state=0))
    assert model.fit_stream(BlockRows(lambda: [(X, X[:, 0])])).best_score_ > 0
