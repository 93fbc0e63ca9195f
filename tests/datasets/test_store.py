import bz2
import hashlib
import io
import lzma
import re
import tarfile
import zipfile

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from surff.datasets import (
    DatasetCorruptError,
    DatasetNotFoundError,
    cache_directory,
    fetch,
    load,
    status,
)
from surff.datasets.convert import to_libsvm
from surff.datasets.registry import FILES
from surff.datasets.store import find, require

RNG = np.random.default_rng(0)


def data_lines(csv):
    return csv.split(b"\n")[1:-1]


def join(lines):
    return b"".join(line + b"\n" for line in lines)


def put_zip(path, **members):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("Index", "names of files")
        for name, content in members.items():
            archive.writestr(name, content)


def eeg_arff(csv):
    attributes = "".join(
        f"@ATTRIBUTE {name} NUMERIC\n" for name in FILES["eeg-eye-state"].columns[:-1]
    )
    head = f"@RELATION EEG\n\n{attributes}@ATTRIBUTE eyeDetection {{0,1}}\n\n@DATA\n"
    return head.encode() + join(data_lines(csv))


def letter_data(csv):
    # As UCI's file: label first, rows in another order than ours.
    rows = []
    for line in data_lines(csv):
        rest, _, label = line.rpartition(b",")
        rows.append(label + b"," + rest)
    return join(rows[i] for i in RNG.permutation(len(rows)))


def ijcnn1_libsvm(csv):
    # Zeros left out where they are integers, numbers padded to six places.
    rows = []
    for line in data_lines(csv):
        *values, label = line.decode().split(",")
        entries = [
            f"{i}:{value}" if i <= 10 else f"{i}:{float(value):.6f}"
            for i, value in enumerate(values, start=1)
            if value != "0"
        ]
        rows.append(" ".join([label, *entries]).encode())
    return join(rows)


def housing_data(csv):
    # Undo the ratios: households from population, then rooms and bedrooms.
    table = np.array([line.split(b",") for line in data_lines(csv)]).astype(float)
    income, age, rooms, bedrooms, population, occupants, latitude, longitude, value = (
        table.T
    )
    households = np.round(population / occupants)
    source = np.column_stack(
        [
            longitude,
            latitude,
            age,
            np.round(rooms * households),
            np.round(bedrooms * households),
            population,
            households,
            income,
            np.round(value * 100_000),
        ]
    )
    buffer = io.StringIO()
    np.savetxt(buffer, source, fmt="%.6f", delimiter=",")
    return buffer.getvalue().encode()


def put_sources(name, directory, csv):
    if name == "eeg":
        put_zip(
            directory / "eeg+eye+state.zip",
            **{"EEG Eye State.arff": eeg_arff(csv("eeg-eye-state"))},
        )
    elif name == "magic04":
        put_zip(
            directory / "magic+gamma+telescope.zip",
            **{"magic04.data": join(data_lines(csv("magic04")))},
        )
    elif name == "cod-rna":
        for stem, file in (("cod-rna.train", "cod-rna"), ("cod-rna.t", "cod-rna.t")):
            (directory / file).write_bytes(to_libsvm(csv(stem)))
    elif name == "letter":
        put_zip(
            directory / "letter+recognition.zip",
            **{"letter-recognition.data": letter_data(csv("letter"))},
        )
    elif name == "ijcnn1":
        text = ijcnn1_libsvm(csv("ijcnn1.train"))
        (directory / "ijcnn1.bz2").write_bytes(bz2.compress(text, 1))
    else:
        content = housing_data(csv("california-housing"))
        info = tarfile.TarInfo("CaliforniaHousing/cal_housing.data")
        info.size = len(content)
        with tarfile.open(directory / "cal_housing.tgz", "w:gz") as archive:
            archive.addfile(info, io.BytesIO(content))


@pytest.fixture
def small_set(places, monkeypatch):
    """``(file, csv)``: eeg cut down to three rows, so that no real file is needed."""
    file = FILES["eeg-eye-state"]
    rows = [",".join([str(4000 + i)] * 14 + [str(i % 2)]) for i in range(3)]
    csv = "\n".join([",".join(file.columns), *rows, ""]).encode()
    checksum = f"sha256:{hashlib.sha256(csv).hexdigest()}"
    file = file._replace(n_samples=3, n_bytes=len(csv), checksums=(checksum,))
    monkeypatch.setitem(FILES, "eeg-eye-state", file)
    return file, csv


def serve_small_set(directory, csv):
    put_zip(directory / "eeg+eye+state.zip", **{"EEG Eye State.arff": eeg_arff(csv)})


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("eeg", ["all"]),
        ("magic04", ["all"]),
        ("cod-rna", ["train", "test"]),
        ("letter", ["all"]),
        ("ijcnn1", ["train"]),
        ("california-housing", ["all"]),
    ],
)
def test_download_from_the_source_gives_the_same_data(
    name, parts, mirror, real_data, real_csv, tmp_path, monkeypatch
):
    directory, base_url = mirror
    here = {part: real_data(name, part) for part in parts}
    put_sources(name, directory, real_csv)
    if name == "california-housing":
        # Our tar file is not the source's byte for byte; its contents are.
        file = FILES[name]._replace(download_checksum=None)
        monkeypatch.setitem(FILES, name, file)
    cache = tmp_path / "cache"
    monkeypatch.delenv("SURFF_DATA")
    monkeypatch.setenv("SURFF_CACHE", str(cache))

    paths = [
        path
        for part in parts
        for path in fetch(name, part, progress=False, base_url=base_url)
    ]

    assert [path.parent for path in paths] == [cache] * len(paths)
    assert sorted(cache.iterdir()) == sorted(paths)
    assert status(name).files[0].place == "cache"
    for part, expected in here.items():
        data = load(name, part, download=False)
        if name == "letter":
            assert "another order than KEEL's" in data.note
            order, expected_order = (
                np.lexsort((data.y, *data.X.T)),
                np.lexsort((expected.y, *expected.X.T)),
            )
            assert_array_equal(data.X[order], expected.X[expected_order])
            assert_array_equal(data.y[order], expected.y[expected_order])
        elif name == "california-housing":
            # The ratios of the known file are off by up to two units in the last place.
            assert_allclose(data.X, expected.X, rtol=2 * np.finfo(float).eps, atol=0)
            assert_array_equal(
                data.X[:, [0, 1, 4, 6, 7]], expected.X[:, [0, 1, 4, 6, 7]]
            )
            assert_array_equal(data.y, expected.y)
        else:
            assert_array_equal(data.X, expected.X)
            assert_array_equal(data.y, expected.y)
    # A second call finds the files and downloads nothing.
    assert fetch(name, parts[0], base_url="http://127.0.0.1:9") == paths[:1]


def test_the_papers_test_part_is_fetched_by_name_only(places, mirror, monkeypatch):
    directory, base_url = mirror
    text = b"1 1:-500 2:70 3:0.1 4:0.2 5:0.3 6:0.1 7:0.2 8:0.3\n"
    md5 = hashlib.md5(text).hexdigest()
    file = FILES["cod-rna.r"]._replace(
        n_samples=1, checksums=(f"libsvm-md5:{md5}",), download_checksum=f"md5:{md5}"
    )
    monkeypatch.setitem(FILES, "cod-rna.r", file)
    (directory / "cod-rna.r").write_bytes(text)
    (path,) = fetch("cod-rna", "paper-test", progress=False, base_url=base_url)
    assert path == places[1] / "cod-rna.r.csv.xz"
    assert "own test rows" in load("cod-rna", "paper-test", download=False).note
    # The other parts are still missing.
    assert not status("cod-rna").found
    assert [file.place for file in status("cod-rna").files] == [
        "missing",
        "missing",
        "cache",
    ]


def test_data_directory_comes_before_the_cache(places, small_set):
    data, cache = places
    file, csv = small_set
    cache.mkdir()
    (cache / file.filename).write_bytes(lzma.compress(csv))
    assert status("eeg").where == "cache"
    assert find(file).path == cache / file.filename
    (data / file.filename).write_bytes(lzma.compress(csv))
    assert status("eeg").where == "SURFF_DATA"
    assert fetch("eeg") == [data / file.filename]
    assert_array_equal(load("eeg").X[:, 0], [4000, 4001, 4002])


def test_status_of_what_is_missing_and_of_what_needs_no_file(places):
    missing = status("ijcnn1")
    assert not missing.found
    assert missing.where == "missing"
    assert [file.path for file in missing.files] == [None, None]
    embedded = status("breast_cancer")
    assert embedded.found
    assert embedded.where == "scikit-learn"
    assert embedded.files == ()
    with pytest.raises(ValueError, match=r"name must be one of eeg, .* got 'mnist'"):
        status("mnist")


def test_cache_directory_is_the_platforms_unless_told(monkeypatch, tmp_path):
    monkeypatch.setenv("SURFF_CACHE", str(tmp_path))
    assert cache_directory() == tmp_path
    monkeypatch.delenv("SURFF_CACHE")
    assert "surff" in cache_directory().parts


def test_missing_file_names_the_paths_and_the_ways_to_get_it(places, monkeypatch):
    data, cache = places
    with pytest.raises(DatasetNotFoundError) as caught:
        load("magic04", download=False)
    message = str(caught.value)
    assert f"{data / 'magic04.csv.xz'}, {cache / 'magic04.csv.xz'}" in message
    assert "set SURFF_DATA to a directory that holds the file" in message
    assert "`surff datasets fetch magic04`" in message
    assert "magic+gamma+telescope.zip" in message
    monkeypatch.delenv("SURFF_DATA")
    with pytest.raises(DatasetNotFoundError, match=r"\$SURFF_DATA \(not set\)"):
        load("magic04", download=False)


def test_failed_download_says_why_and_leaves_nothing(places, mirror):
    _, base_url = mirror
    with pytest.raises(DatasetNotFoundError, match=r"The download of .* failed: 404"):
        fetch("eeg", progress=False, base_url=base_url)
    with pytest.raises(DatasetNotFoundError, match=r"failed: .*refused"):
        fetch("eeg", progress=False, base_url="http://127.0.0.1:9")
    assert list(places[1].iterdir()) == []


def test_download_that_is_cut_short_leaves_nothing(places, small_set, mirror):
    directory, base_url = mirror
    (directory / "cut").mkdir()
    serve_small_set(directory / "cut", small_set[1])
    with pytest.raises(DatasetNotFoundError, match=r"The download of .* failed"):
        fetch("eeg", progress=False, base_url=f"{base_url}/cut")
    assert list(places[1].iterdir()) == []


class Interrupting:
    """A progress bar during which the user presses Ctrl-C."""

    total = 0

    def update(self, n):
        raise KeyboardInterrupt


def test_interrupted_download_leaves_nothing(places, small_set, mirror):
    directory, base_url = mirror
    serve_small_set(directory, small_set[1])
    with pytest.raises(KeyboardInterrupt):
        fetch("eeg", progress=Interrupting(), base_url=base_url)
    assert list(places[1].iterdir()) == []
    # And the next try works.
    (path,) = fetch("eeg", progress=False, base_url=f"{base_url}/")
    assert list(places[1].iterdir()) == [path]


def test_a_cache_that_cannot_be_written_is_named(places, small_set, mirror):
    directory, base_url = mirror
    serve_small_set(directory, small_set[1])
    places[1].write_text("a file in the place of the directory")
    with pytest.raises(DatasetNotFoundError, match=r"cannot be written .*SURFF_CACHE"):
        fetch("eeg", progress=False, base_url=base_url)


def test_progress_bar_can_be_shown_and_silenced(places, small_set, mirror, capsys):
    directory, base_url = mirror
    serve_small_set(directory, small_set[1])
    (path,) = fetch("eeg", progress=False, base_url=base_url)
    assert capsys.readouterr() == ("", "")
    path.unlink()
    fetch("eeg", base_url=base_url)
    assert "100%" in capsys.readouterr().err


def test_download_with_other_contents_is_refused(places, small_set, mirror):
    directory, base_url = mirror
    file, csv = small_set
    serve_small_set(directory, csv.replace(b"4001", b"4009", 1))
    with pytest.raises(DatasetCorruptError) as caught:
        fetch("eeg", progress=False, base_url=base_url)
    assert re.search(
        rf"eeg\+eye\+state\.zip from {base_url}/eeg\+eye\+state\.zip.* expected 3 rows,"
        rf".*{file.checksums[0]}; got 3 rows, .*Nothing was stored",
        str(caught.value),
    )
    assert list(places[1].iterdir()) == []


def test_download_that_does_not_unpack_or_parse_is_refused(places, mirror):
    directory, base_url = mirror
    archive = directory / "eeg+eye+state.zip"
    archive.write_bytes(b"<html>down for maintenance</html>")
    with pytest.raises(DatasetCorruptError, match=r"cannot be unpacked: .*got 33 byt"):
        fetch("eeg", progress=False, base_url=base_url)
    put_zip(archive, other=b"")
    with pytest.raises(DatasetCorruptError, match=r"cannot be unpacked: .*'EEG Eye"):
        fetch("eeg", progress=False, base_url=base_url)
    put_zip(archive, **{"EEG Eye State.arff": b"no data section\n"})
    with pytest.raises(DatasetCorruptError, match=r"cannot be parsed .*14,980 rows of"):
        fetch("eeg", progress=False, base_url=base_url)
    # 20 kB that unpack to 20 MB.
    put_zip(archive, **{"EEG Eye State.arff": bytes(20_000_000)})
    with pytest.raises(
        DatasetCorruptError, match=r"unpacked: EEG Eye State.arff .* 4,000,000 bytes"
    ):
        fetch("eeg", progress=False, base_url=base_url)
    assert list(places[1].iterdir()) == []


def test_known_checksums_of_the_sources_are_checked(places, mirror):
    directory, base_url = mirror
    put_zip(directory / "magic+gamma+telescope.zip", **{"magic04.data": b"1,2,g\n"})
    with pytest.raises(
        DatasetCorruptError,
        match=r"magic04.data in .* expected md5 bb3888bd.*, got 6 bytes with md5",
    ):
        fetch("magic04", progress=False, base_url=base_url)
    (directory / "cal_housing.tgz").write_bytes(b"")
    with pytest.raises(DatasetCorruptError, match=r"cal_housing.tgz .*sha256 aaa5c9a6"):
        fetch("california-housing", progress=False, base_url=base_url)
    (directory / "cod-rna").write_bytes(b"")
    with pytest.raises(DatasetCorruptError, match=r"cod-rna from .* md5 cd14eab7"):
        fetch("cod-rna", "train", progress=False, base_url=base_url)
    assert list(places[1].iterdir()) == []


@pytest.mark.parametrize("call", [load, fetch])
@pytest.mark.parametrize("place", [0, 1])
@pytest.mark.parametrize(
    ("damage", "came"),
    [
        (lambda packed, csv: packed[: len(packed) // 2], "is not a complete xz file"),
        (lambda packed, csv: b"", "got 0 bytes that do not unpack"),
        (lambda packed, csv: packed[:40] + b"??" + packed[42:], "not a complete xz"),
        (lambda packed, csv: csv, "is not a complete xz file"),
        (lambda packed, csv: lzma.compress(csv[:-1]), "got 2 rows, "),
        (lambda packed, csv: lzma.compress(csv + b"\n"), "unpacks to, more than the "),
        (
            lambda packed, csv: bytes(5_000_000),
            "has 5,000,000 bytes, more than the 4,0",
        ),
        (
            lambda packed, csv: lzma.compress(csv.replace(b"4001", b"4002", 1)),
            "got 3 rows, ",
        ),
        (
            lambda packed, csv: lzma.compress(csv.replace(b"AF3", b"AF9", 1)),
            "the header line b'AF9,F7",
        ),
    ],
)
def test_damaged_file_is_named_and_never_used(
    call, place, damage, came, places, small_set
):
    file, csv = small_set
    path = places[place] / file.filename
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(damage(lzma.compress(csv), csv))
    with pytest.raises(DatasetCorruptError) as caught:
        call("eeg")
    message = str(caught.value)
    assert message.startswith(str(path))
    assert came in message
    assert "expected 3 rows" in message or "one that holds 3 rows" in message
    assert "delete it and run `surff datasets fetch eeg`" in message


def test_file_packed_by_another_xz_is_as_good(places, small_set):
    file, csv = small_set
    (places[0] / file.filename).write_bytes(lzma.compress(csv, preset=9))
    assert load("eeg").y.tolist() == [0, 1, 0]


def test_letter_accepts_any_order_of_the_known_lines_only(letter_csv, places):
    header, *lines = letter_csv.split(b"\n")[:-1]
    path = places[0] / "letter.csv.xz"
    path.write_bytes(lzma.compress(join([header, *lines[::-1]]), preset=0))
    assert load("letter").y[0] == lines[-1][-1:].decode()
    lines[0] = lines[1]
    path.write_bytes(lzma.compress(join([header, *lines]), preset=0))
    with pytest.raises(DatasetCorruptError, match=r"sorted-sha256:.*got 20,000 rows"):
        load("letter")


@pytest.fixture
def letter_csv(real_csv):
    return real_csv("letter")


def test_missing_dependency_names_the_extra():
    with pytest.raises(ImportError, match=r"needs nosuch, .* extra surff\[cli\]: pip"):
        require("nosuch.module")
