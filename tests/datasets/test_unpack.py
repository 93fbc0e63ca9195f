import bz2
import contextlib
import gzip
import io
import lzma
import struct
import tarfile
import tracemalloc
import zipfile
import zlib

import pytest

from surff.datasets.unpack import TooLargeError, extract, unpack_xz

#: What the bombs of these tests unpack to.
HUGE = 32_000_000

#: Bound that they are unpacked with.
LIMIT = 1_000_000


@contextlib.contextmanager
def little_memory():
    """No more is held than a few times the bound, a fifth of what a bomb unpacks to."""
    tracemalloc.start()
    try:
        yield
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < HUGE // 5


def packed_zip(name, content, method=zipfile.ZIP_DEFLATED):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method, compresslevel=1) as archive:
        archive.writestr("Index", "wrong")
        archive.writestr(name, content)
    return buffer.getvalue()


def packed_tgz(info, content=b""):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz", compresslevel=1) as archive:
        archive.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def tar_info(name, size=0, **attributes):
    info = tarfile.TarInfo(name)
    info.size = size
    for attribute, value in attributes.items():
        setattr(info, attribute, value)
    return info


def declaring(packed, size):
    """Let a zip file declare another size of its last member."""
    start = packed.rindex(b"PK\x01\x02") + 24
    return packed[:start] + struct.pack("<I", size) + packed[start + 4 :]


FILES = {
    "a.zip": lambda content: packed_zip("folder/a.data", content),
    "b.zip": lambda content: packed_zip("a.data.gz", gzip.compress(content, 1)),
    "a.tgz": lambda content: packed_tgz(tar_info("A/a.data", len(content)), content),
    "a.bz2": lambda content: bz2.compress(content, 1),
    "a.t": lambda content: content,
}

#: Which member to take.
MEMBERS = {"a.zip": "a.data", "b.zip": "a.data.gz", "a.tgz": "a.data"}


@pytest.mark.parametrize("name", FILES)
def test_extract_takes_the_text_out_of_every_kind_of_file(name, tmp_path):
    (tmp_path / name).write_bytes(FILES[name](b"x" * 20_000))
    member = MEMBERS.get(name)
    # A tar archive has headers, and is padded to a multiple of 10,240 bytes.
    limit = 30_720 if name == "a.tgz" else 20_000
    assert extract(tmp_path / name, member, max_bytes=limit) == b"x" * 20_000
    with pytest.raises(TooLargeError, match=r"more than the [0-9,]+ bytes that it may"):
        extract(tmp_path / name, member, max_bytes=limit - 1)


@pytest.mark.parametrize("name", ["a.zip", "a.tgz"])
def test_member_that_is_missing_is_named(name, tmp_path):
    (tmp_path / name).write_bytes(FILES[name](b"x"))
    with pytest.raises(ValueError, match=r"no 'c' in the archive, which holds \['"):
        extract(tmp_path / name, "c", max_bytes=LIMIT)


@pytest.mark.parametrize("name", FILES)
def test_what_unpacks_to_more_is_refused_before_it_is_held(name, tmp_path):
    (tmp_path / name).write_bytes(FILES[name](bytes(HUGE)))
    with little_memory(), pytest.raises(TooLargeError, match="more than the 1,000,000"):
        extract(tmp_path / name, MEMBERS.get(name), max_bytes=LIMIT)


def test_zip_that_declares_less_than_it_holds_is_refused(tmp_path):
    path = tmp_path / "a.zip"
    path.write_bytes(declaring(packed_zip("a.data", bytes(HUGE)), 10))
    with little_memory(), pytest.raises(zipfile.BadZipFile, match="Bad CRC-32"):
        extract(path, "a.data", max_bytes=LIMIT)


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_zip_of_a_method_that_cannot_be_bounded_is_refused(method, tmp_path):
    path = tmp_path / "a.zip"
    path.write_bytes(declaring(packed_zip("a.data", bytes(HUGE), method), 10))
    with (
        little_memory(),
        pytest.raises(ValueError, match=f"a.data is packed by method {method}, not by"),
    ):
        extract(path, "a.data", max_bytes=LIMIT)


def test_tar_with_a_long_header_is_refused(tmp_path):
    info = tar_info("a.data", pax_headers={"comment": "x" * HUGE})
    (tmp_path / "a.tgz").write_bytes(packed_tgz(info))
    with little_memory(), pytest.raises(TooLargeError, match=r"a\.tgz .* 1,000,000"):
        extract(tmp_path / "a.tgz", "a.data", max_bytes=LIMIT)


def test_tar_with_a_sparse_member_is_refused(tmp_path):
    headers = {"GNU.sparse.size": str(HUGE), "GNU.sparse.map": "0,0"}
    info = tar_info("a.data", pax_headers=headers)
    (tmp_path / "a.tgz").write_bytes(packed_tgz(info))
    with little_memory(), pytest.raises(TooLargeError, match=r"a\.data .* 1,000,000"):
        extract(tmp_path / "a.tgz", "a.data", max_bytes=LIMIT)


def test_member_that_is_no_file_is_refused(tmp_path):
    info = tar_info("a.data", type=tarfile.DIRTYPE)
    (tmp_path / "a.tgz").write_bytes(packed_tgz(info))
    with pytest.raises(ValueError, match=r"a\.data is not a file"):
        extract(tmp_path / "a.tgz", "a.data", max_bytes=LIMIT)


def test_xz_is_unpacked_up_to_the_bound():
    packed = lzma.compress(b"x" * 600, preset=9)
    assert unpack_xz(packed, max_bytes=600) == b"x" * 600
    # Several streams, padding and what is no stream, as `lzma.decompress` takes them.
    padded = packed + packed + bytes(12) + b"?"
    assert unpack_xz(padded, max_bytes=1200) == lzma.decompress(padded) == b"x" * 1200
    for content, limit in ((packed, 599), (padded, 1199)):
        with pytest.raises(
            TooLargeError, match=r"the file .* more than the [0-9,]+ byt"
        ):
            unpack_xz(content, max_bytes=limit)
    for content in (b"", packed[:-1], packed[:20], packed + packed[:40]):
        with pytest.raises(lzma.LZMAError):
            unpack_xz(content, max_bytes=1200)


def test_xz_that_unpacks_to_more_is_refused_before_it_is_held():
    packed = lzma.compress(bytes(HUGE), preset=0)
    with little_memory(), pytest.raises(TooLargeError, match=r"b\.xz .* 1,000,000"):
        unpack_xz(packed, max_bytes=LIMIT, what="b.xz")


def test_xz_that_asks_for_much_memory_is_refused():
    packed = bytearray(lzma.compress(b"x", preset=0))
    assert packed[14:16] == b"\x21\x01"  # LZMA2, with one byte of properties
    packed[16] = 35  # a dictionary of 768 MB
    packed[20:24] = struct.pack("<I", zlib.crc32(packed[12:20]))
    with pytest.raises(lzma.LZMAError, match="Memory usage limit exceeded"):
        unpack_xz(bytes(packed), max_bytes=LIMIT)
