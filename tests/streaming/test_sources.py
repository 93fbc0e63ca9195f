import bz2
import gc
import gzip
import lzma
import threading
import time
from contextlib import closing

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse

from surff.streaming import (
    ArrayRows,
    ArrowRows,
    Block,
    BlockRows,
    CsvRows,
    ParquetRows,
    SourceError,
    block_length,
    read_ahead,
)
from surff.streaming.sources import BLOCK_ROWS

RNG = np.random.default_rng(0)
N = 500
X = RNG.normal(size=(N, 3))
Y = RNG.normal(size=N)
LABELS = np.array(["low", "high", "middle"])[np.arange(N) % 3]
WEIGHT = RNG.integers(0, 4, size=N)
NAMES = ["a", "b", "c"]
COMPRESS = {
    "": bytes,
    ".gz": gzip.compress,
    ".xz": lzma.compress,
    ".bz2": bz2.compress,
}


def columns(**others):
    return dict(zip(NAMES, X.T, strict=True)) | {"y": Y, "kind": LABELS} | others


def table(**others):
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is an extra: files")
    return pyarrow.table(columns(**others) | {"weight": WEIGHT})


def csv_text(rows=slice(None), header=True):
    lines = ["a,b,c,y,kind,weight"] if header else []
    lines += [
        ",".join([*map(repr, map(float, X[i])), repr(float(Y[i])), LABELS[i], str(w)])
        for i, w in zip(np.arange(N)[rows], WEIGHT[rows], strict=True)
    ]
    return ("\n".join(lines) + "\n").encode()


def write_parquet(path, data=None, row_group_size=N):
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is an extra")
    parquet.write_table(
        table() if data is None else data, path, row_group_size=row_group_size
    )
    return path


@pytest.fixture
def csv_file(tmp_path):
    pytest.importorskip("pyarrow", reason="pyarrow is an extra: files")

    def write(text=None, name="rows.csv"):
        path = tmp_path / name
        path.write_bytes(csv_text() if text is None else text)
        return path

    return write


def whole(source):
    """All rows of a source, after two passes that must be the same."""
    blocks, again = list(source), list(source)
    for block, same in zip(blocks, again, strict=True):
        assert_array_equal(block.X, same.X)
    joined = [
        None if part[0] is None else np.concatenate(part)
        for part in list(zip(*blocks, strict=True))[:3]
    ]
    return joined, blocks


def assert_is_all(source, y=Y):
    (X_read, y_read, weight), blocks = whole(source)
    assert_array_equal(X_read, X)
    assert_array_equal(y_read, y)
    assert_array_equal(weight, WEIGHT)
    return blocks


def no_readers():
    return not [t for t in threading.enumerate() if t.name.startswith("surff-read")]


# Arrays


class OnlySlices:
    """What h5py and Zarr data sets have in common."""

    def __init__(self, array):
        self._array, self.shape, self.dtype = array, array.shape, array.dtype

    def __getitem__(self, rows):
        assert isinstance(rows, slice)
        return self._array[rows].tolist()


@pytest.mark.parametrize("block_rows", [1, 7, N, 10 * N, None])
def test_array_rows_are_the_rows_in_order(block_rows):
    blocks = assert_is_all(ArrayRows(X, Y, WEIGHT, block_rows=block_rows))
    assert len(blocks) == -(-N // (block_rows or N))


def test_array_rows_take_slices_memory_maps_and_sparse_rows(tmp_path):
    assert_is_all(ArrayRows(*map(OnlySlices, (X, Y, WEIGHT)), block_rows=99))
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    blocks = assert_is_all(ArrayRows(mapped, Y, WEIGHT, block_rows=99))
    assert blocks[1].locate(3) == f"{tmp_path / 'X.npy'}, row 102"
    rows = list(ArrayRows(sparse.csr_matrix(X), Y, block_rows=99, dtype=np.float32))
    assert all(block.X.dtype == np.float32 for block in rows)
    assert_array_equal(
        sparse.vstack([b.X for b in rows]).toarray(), X.astype(np.float32)
    )


def test_array_rows_of_hdf5(tmp_path):
    h5py = pytest.importorskip("h5py", reason="h5py is not an extra")
    with h5py.File(tmp_path / "rows.h5", "w") as file:
        for name, values in zip("Xyw", (X, Y, WEIGHT), strict=True):
            file[name] = values
        assert_is_all(ArrayRows(file["X"], file["y"], file["w"], block_rows=99))


def test_array_rows_of_zarr(tmp_path):
    zarr = pytest.importorskip("zarr", reason="zarr is not an extra")
    group = zarr.open_group(str(tmp_path / "rows.zarr"), mode="w")
    for name, values in zip("Xyw", (X, Y, WEIGHT), strict=True):
        group.create_array(name, shape=values.shape, dtype=values.dtype)[:] = values
    assert_is_all(ArrayRows(group["X"], group["y"], group["w"], block_rows=99))


def test_array_rows_convert_block_by_block():
    integers = np.arange(12, dtype=np.int8).reshape(6, 2)
    blocks = list(ArrayRows(integers, dtype=np.float32, block_rows=4))
    assert [block.X.dtype for block in blocks] == [np.float32, np.float32]
    assert blocks[0][1:3] == (None, None)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ArrayRows([[1.0]]), "X must have a shape of two axes"),
        (lambda: ArrayRows(Y), "X must have a shape of two axes"),
        (lambda: ArrayRows(X, Y[1:]), f"y must have {N} rows"),
        (lambda: ArrayRows(X, Y, WEIGHT[1:]), f"sample_weight must have {N} rows"),
        (lambda: ArrayRows(X, block_rows=0), "block_rows must be a positive int"),
        (lambda: ArrayRows(X, dtype=int), "dtype must be float64 or float32"),
    ],
)
def test_array_rows_refuse(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_blocks_have_some_megabytes():
    assert block_length(1, np.float64) == BLOCK_ROWS[1]
    assert block_length(10**6, np.float64) == BLOCK_ROWS[0]
    assert block_length(512, np.float64) == 2 * block_length(1024, np.float64) == 4096


# Functions


def test_block_rows_pad_what_is_not_given():
    items = [X[:3], (X[3:5], Y[3:5]), (X[5:], Y[5:], WEIGHT[5:])]
    blocks = list(BlockRows(lambda: iter(items)))
    assert [block.y is None for block in blocks] == [True, False, False]
    assert [block.sample_weight is None for block in blocks] == [True, True, False]
    assert blocks[1].locate(1) == "block 1, row 1"


def test_block_rows_refuse():
    with pytest.raises(TypeError, match="blocks must be a function"):
        BlockRows([X])
    with pytest.raises(SourceError, match=r"block 0: .* got a tuple of 4"):
        list(BlockRows(lambda: [(X, Y, WEIGHT, 1)]))


# Parquet


@pytest.mark.parametrize("row_group_size", [1, 64, N])
@pytest.mark.parametrize("block_rows", [1, 50, None])
def test_parquet_rows_are_the_rows_in_order(tmp_path, row_group_size, block_rows):
    path = write_parquet(tmp_path / "rows.parquet", row_group_size=row_group_size)
    source = ParquetRows(
        path, "y", features=NAMES, sample_weight="weight", block_rows=block_rows
    )
    blocks = assert_is_all(source)
    assert max(len(block.X) for block in blocks) <= (block_rows or N)
    labels = ParquetRows(path, "kind", features=NAMES, sample_weight="weight")
    assert_is_all(labels, LABELS)


def test_parquet_rows_of_directories_and_lists(tmp_path):
    first, second = table().slice(0, 123), table().slice(123)
    (tmp_path / "sub").mkdir()
    paths = [
        write_parquet(tmp_path / "sub" / "1.parquet", first),
        write_parquet(tmp_path / "sub" / "2.parquet", second, row_group_size=100),
    ]
    for path in (tmp_path, paths, [tmp_path / "sub"]):
        source = ParquetRows(path, "y", features=NAMES, sample_weight="weight")
        blocks = assert_is_all(source)
    assert blocks[-1].locate(5) == f"{paths[1]}, row group 3, row 5"


def test_parquet_rows_take_other_columns_as_features_and_several_targets(tmp_path):
    path = write_parquet(tmp_path / "rows.parquet", table().drop_columns("kind"))
    source = ParquetRows(path, ["y", "a"], dtype=np.float32)
    assert source.feature_names == ["b", "c", "weight"]
    (X_read, y_read, weight), _ = whole(source)
    assert X_read.dtype == np.float32
    assert weight is None
    assert_array_equal(y_read, np.column_stack([Y, X[:, 0]]))


def test_parquet_rows_take_every_kind_of_number(tmp_path):
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is an extra: files")
    data = pyarrow.table(
        {
            "flag": [True, False, None],
            "byte": pyarrow.array([1, None, 3], pyarrow.int8()),
            "half": pyarrow.array([0.5, 1.5, 2.5], pyarrow.float32()),
            "money": pyarrow.array([1, 2, 3]).cast(pyarrow.decimal128(25, 2)),
            "kind": pyarrow.array(["x", "y", "x"]).dictionary_encode(),
        }
    )
    (block,) = ParquetRows(write_parquet(tmp_path / "rows.parquet", data), "kind")
    expected = [[1, 1, 0.5, 1], [0, np.nan, 1.5, 2], [np.nan, 3, 2.5, 3]]
    assert_array_equal(block.X, expected)
    assert block.y.tolist() == ["x", "y", "x"]


def test_parquet_errors_name_the_file_and_the_column(tmp_path):
    path = write_parquet(tmp_path / "rows.parquet")
    with pytest.raises(
        SourceError, match=r"rows.parquet: there is no column 'z'; .*'a"
    ):
        ParquetRows(path, "z")
    with pytest.raises(SourceError, match=r"rows.parquet: there is no column 'q'"):
        ParquetRows(path, "y", features=["a", "q"])
    with pytest.raises(ValueError, match="must name different columns, got 'y' twice"):
        ParquetRows(path, "y", features=["a", "y"])
    with pytest.raises(SourceError, match="no column is left for X"):
        ParquetRows(path, "y", features=[])
    with pytest.raises(SourceError, match="row group 0: column 'kind' must hold num"):
        list(ParquetRows(path, "y"))
    with pytest.raises(SourceError, match=r"nowhere.parquet: there is no such file"):
        ParquetRows(tmp_path / "nowhere.parquet", "y")
    (tmp_path / "empty").mkdir()
    with pytest.raises(SourceError, match="empty: there is no file"):
        ParquetRows(tmp_path / "empty", "y")
    with pytest.raises(ValueError, match="path must name at least one file"):
        ParquetRows([], "y")


def test_a_later_file_without_a_column_is_named(tmp_path):
    write_parquet(tmp_path / "1.parquet")
    write_parquet(tmp_path / "2.parquet", table().drop_columns("b"))
    with pytest.raises(SourceError, match=r"2.parquet: there is no column 'b'"):
        list(ParquetRows(tmp_path, "y", features=NAMES))


def test_a_missing_target_is_located(tmp_path):
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is an extra: files")
    data = table(kind=pyarrow.array([*LABELS[:333], None, *LABELS[334:]]))
    path = write_parquet(tmp_path / "rows.parquet", data, row_group_size=100)
    with pytest.raises(
        SourceError, match="row group 3, row 33: the target 'kind' is missing"
    ):
        list(ParquetRows(path, "kind", features=NAMES, block_rows=20))


def test_damaged_parquet_files_are_named(tmp_path):
    path = write_parquet(tmp_path / "rows.parquet", row_group_size=100)
    content = bytearray(path.read_bytes())
    path.write_bytes(content[: len(content) // 2])
    with pytest.raises(SourceError, match=r"rows.parquet: cannot be read"):
        ParquetRows(path, "y", features=NAMES)
    content[200:2000] = bytes(1800)
    path.write_bytes(content)
    source = ParquetRows(path, "y", features=NAMES)
    with pytest.raises(SourceError, match=r"row group 0, from row 0 on: cannot be"):
        list(source)


def test_parquet_rows_hold_pages_and_no_row_groups(tmp_path):
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is an extra: files")
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is an extra")
    data = pyarrow.table({f"x{j}": RNG.normal(size=200_000) for j in range(6)})
    path, size = tmp_path / "rows.parquet", data.nbytes
    parquet.write_table(data, path, use_dictionary=False, data_page_size=2**14)
    del data
    before = pyarrow.total_allocated_bytes()
    with closing(iter(ParquetRows(path, block_rows=1000))) as blocks:
        held = [pyarrow.total_allocated_bytes() - before for _ in blocks]
    assert len(held) == 200
    assert max(held) < size / 4


# Arrow


@pytest.mark.parametrize("block_rows", [1, 50, None])
def test_arrow_rows_of_tables_and_of_files_of_any_format(tmp_path, block_rows):
    dataset = pytest.importorskip("pyarrow.dataset", reason="pyarrow is an extra")
    dataset.write_dataset(table(), tmp_path / "feather", format="feather")
    for data in (table(), dataset.dataset(tmp_path / "feather", format="feather")):
        source = ArrowRows(
            data, "y", features=NAMES, sample_weight="weight", block_rows=block_rows
        )
        assert_is_all(source)


def test_arrow_rows_read_partitions(tmp_path):
    dataset = pytest.importorskip("pyarrow.dataset", reason="pyarrow is an extra")
    options = {"partitioning": ["weight"], "partitioning_flavor": "hive"}
    dataset.write_dataset(table(), tmp_path, format="parquet", **options)
    data = dataset.dataset(tmp_path, partitioning="hive")
    (X_read, y_read, _), blocks = whole(
        ArrowRows(data, "y", features=[*NAMES, "weight"])
    )
    order = np.argsort(WEIGHT, kind="stable")
    assert_array_equal(np.sort(y_read), np.sort(Y))
    assert_array_equal(X_read[:, 3], WEIGHT[order])
    assert "weight=0" in blocks[0].where


def test_arrow_rows_refuse_what_is_none():
    pytest.importorskip("pyarrow", reason="pyarrow is an extra: files")
    with pytest.raises(TypeError, match=r"data must be a Dataset or Table .*ndarray"):
        ArrowRows(X)
    with pytest.raises(SourceError, match="the data set: there is no column 'z'"):
        ArrowRows(table(), "z")


# CSV


@pytest.mark.parametrize("suffix", COMPRESS)
@pytest.mark.parametrize("text_bytes", [300, 5000, 2**20])
def test_csv_rows_are_the_rows_in_order(csv_file, suffix, text_bytes):
    path = csv_file(COMPRESS[suffix](csv_text()), f"rows.csv{suffix}")
    options = {"features": NAMES, "sample_weight": "weight", "text_bytes": text_bytes}
    blocks = assert_is_all(CsvRows(path, "y", **options))
    assert_is_all(CsvRows(path, "kind", **options), LABELS)
    lengths = [len(block.X) for block in blocks[:-1]]
    assert (len(blocks) > 1) == (text_bytes < 2**20)
    for block, start in zip(blocks, np.cumsum([0, *lengths]), strict=True):
        assert block.locate(0) == f"{path}, line {start + 2}"


def test_csv_rows_without_names_and_of_directories(csv_file, tmp_path):
    csv_file(csv_text(slice(0, 77), header=False), "1.csv")
    csv_file(gzip.compress(csv_text(slice(77, None), header=False)), "2.csv.gz")
    names = ["a", "b", "c", "y", "kind", "weight"]
    source = CsvRows(
        tmp_path, "y", features=NAMES, sample_weight="weight", column_names=names
    )
    blocks = assert_is_all(source)
    assert [block.locate(0).rpartition(", ")[2] for block in blocks] == ["line 1"] * 2


def test_csv_target_dtype(csv_file):
    path = csv_file(b"a;y\n0;1\n1;2\n2;3.5\n")
    kinds = [float, str]
    for kind, expected in zip(kinds, [[1.0, 2.0, 3.5], ["1", "2", "3.5"]], strict=True):
        (block,) = CsvRows(path, "y", target_dtype=kind, delimiter=";")
        assert block.y.tolist() == expected
    with pytest.raises(
        SourceError, match=r"rows.csv, line 4: .* whole numbers, got '3.5'"
    ):
        list(CsvRows(path, "y", target_dtype=int, delimiter=";"))
    with pytest.raises(ValueError, match="target_dtype must be None, float, int"):
        CsvRows(path, "y", target_dtype="number")


def test_csv_names_with_a_byte_order_mark_quotes_and_line_breaks(csv_file):
    path = csv_file('\ufeff"a,1","b\n2",y\n1,2,3\n'.encode())
    source = CsvRows(path, "y")
    assert source.feature_names == ["a,1", "b\n2"]


def test_csv_errors_name_file_line_and_column(csv_file):
    text = csv_text()
    path = csv_file(text + b"1,2,oops,3,low,1\n")
    with pytest.raises(SourceError, match=r"rows.csv, line 502: column 'c' .*'oops'"):
        list(CsvRows(path, "y", features=NAMES, text_bytes=4096))
    path = csv_file(text + b"1,2,3\n")
    with pytest.raises(SourceError, match=r"rows.csv, line 502: .* have 6 values"):
        list(CsvRows(path, "y", features=NAMES, text_bytes=4096))
    path = csv_file(text + b"1,2,3,4,,1\n")
    with pytest.raises(
        SourceError, match=r"rows.csv, line 502: the target 'kind' is m"
    ):
        list(CsvRows(path, "kind", features=NAMES, text_bytes=4096))
    with pytest.raises(SourceError, match=r"rows.csv: the file is empty"):
        CsvRows(csv_file(b""), "y")
    with pytest.raises(SourceError, match=r"rows.csv: there are two columns 'a'"):
        CsvRows(csv_file(b"a,a,y\n1,2,3\n"), "y")
    with pytest.raises(SourceError, match=r"rows.csv: the text is utf-16; give"):
        CsvRows(csv_file(b"\xff\xfe\x00,y\n"), "y")


@pytest.mark.parametrize("suffix", [".gz", ".xz", ".bz2"])
def test_interrupted_compressed_files_are_named(csv_file, suffix):
    content = COMPRESS[suffix](csv_text())
    path = csv_file(content[: len(content) // 2], f"rows.csv{suffix}")
    with pytest.raises(SourceError, match=rf"rows.csv{suffix}.*cannot be read"):
        list(CsvRows(path, "y", features=NAMES, text_bytes=300))
    path = csv_file(b"no such format" * 10, f"bad.csv{suffix}")
    with pytest.raises(SourceError, match=rf"bad.csv{suffix}: cannot be read"):
        CsvRows(path, "y", features=NAMES)


def test_missing_pyarrow_names_the_extra(monkeypatch, tmp_path):
    def refuse(name):
        raise ImportError(name)

    (tmp_path / "rows.parquet").touch()
    monkeypatch.setattr("surff.streaming.columns.importlib.import_module", refuse)
    with pytest.raises(ImportError, match=r"pip install 'surff\[files\]'"):
        ParquetRows(tmp_path / "rows.parquet", "y")


# Reading ahead


def test_read_ahead_gives_all_in_order_and_ends_its_thread():
    assert list(read_ahead(range(20))) == list(range(20))
    assert list(read_ahead([])) == []
    assert no_readers()


def test_read_ahead_makes_the_next_one_meanwhile():
    made = []

    def blocks():
        for i in range(5):
            made.append(threading.current_thread().name)
            yield i

    with closing(read_ahead(blocks())) as ahead:
        assert next(ahead) == 0
        deadline = time.monotonic() + 10
        while len(made) < 2 and time.monotonic() < deadline:
            time.sleep(0.001)
        assert len(made) == 2  # one ahead, and no more
        assert set(made) == {made[0]} != {threading.current_thread().name}
    assert no_readers()


def test_read_ahead_holds_two_blocks_at_most():
    alive = [0, 0]

    class Counted:
        def __init__(self):
            alive[0] += 1
            alive[1] = max(alive)

        def __del__(self):
            alive[0] -= 1

    with closing(read_ahead(Counted() for _ in range(20))) as blocks:
        for _ in blocks:
            gc.collect(0)  # those of a moment ago
    # The one that is used, the next, and one that the generator expression lets go.
    assert alive[1] <= 3


def test_errors_of_the_reader_and_of_the_user_end_the_thread():
    closed = []

    def blocks(error_at):
        try:
            for i in range(5):
                if i == error_at:
                    raise OSError("the disk is gone")
                yield i
        finally:
            closed.append(error_at)

    seen = []
    with pytest.raises(OSError, match="the disk is gone"):  # noqa: PT012
        for i in read_ahead(blocks(3)):
            seen.append(i)
    assert seen == [0, 1, 2]
    with (  # noqa: PT012
        pytest.raises(RuntimeError, match="not this one"),
        closing(read_ahead(blocks(9))) as ahead,
    ):
        for i in ahead:
            if i == 2:
                raise RuntimeError("not this one")
    assert closed == [3, 9]
    assert no_readers()


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_files_are_closed_when_a_pass_ends_early(csv_file, suffix):
    path = csv_file(COMPRESS[suffix](csv_text()), f"rows.csv{suffix}")
    for _ in range(10):
        source = CsvRows(path, "y", features=NAMES, text_bytes=300)
        with closing(read_ahead(source)) as blocks:
            assert isinstance(next(blocks), Block)
    gc.collect()  # an open file would warn here, and warnings are errors
    assert no_readers()
