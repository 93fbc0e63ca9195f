"""Packed files, unpacked within a bound.

A packed file may unpack to a thousand times its size. Functions here stop at
``max_bytes`` of what comes out, whatever the file declares, and hold no more than that
and a copy of it.
"""

import bz2
import gzip
import io
import lzma
import os
import tarfile
import zipfile

__all__ = ["TooLargeError", "extract", "unpack_xz"]

#: Methods of zip files that `zipfile` unpacks piece by piece. With the others it
#: unpacks whatever it has read at once, to any size.
_ZIP_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)

#: Memory of the xz decoder in bytes; preset 9, the highest, needs 65 MiB.
_XZ_MEMORY = 100 << 20


class TooLargeError(ValueError):
    """A file has, or unpacks to, more bytes than it may."""

    def __init__(self, what: str | os.PathLike[str], max_bytes: int):
        super().__init__(
            f"{what} has, or unpacks to, more than the {max_bytes:,} bytes that it may "
            "have"
        )


def extract(
    path: str | os.PathLike[str], member: str | None = None, *, max_bytes: int
) -> bytes:
    """Text inside a downloaded file.

    Parameters
    ----------
    path : path-like
        A ``.zip``, ``.tgz``, ``.bz2``, ``.gz`` or plain file, as its name says.
    member : str, optional
        File to take from an archive, by its last path component. A member ending in
        ``.gz`` is decompressed.
    max_bytes : int
        Bound on the size of the text, and of a tar archive with all its members.

    Returns
    -------
    text : bytes

    Raises
    ------
    TooLargeError
        There is more than ``max_bytes`` of it.
    ValueError
        The archive has no such member, or it is packed in another way.
    """
    name = os.path.basename(path)
    if name.endswith(".zip"):
        content = _from_zip(path, member, max_bytes)
    elif name.endswith(".tgz"):
        content = _from_tar(path, member, max_bytes)
    else:
        openers = {".bz2": bz2.open, ".gz": gzip.open}
        with openers.get(os.path.splitext(name)[1], open)(path, "rb") as stream:
            content = _read(stream, name, max_bytes)
    if member is not None and member.endswith(".gz"):
        with gzip.GzipFile(fileobj=io.BytesIO(content)) as stream:
            content = _read(stream, member, max_bytes)
    return content


def _read(stream, what, max_bytes):
    content = stream.read(max_bytes + 1)
    if len(content) > max_bytes:
        raise TooLargeError(what, max_bytes)
    return content


def _from_zip(path, member, max_bytes):
    with zipfile.ZipFile(path) as archive:
        info = archive.getinfo(_member(archive.namelist(), member))
        if info.compress_type not in _ZIP_METHODS:
            raise ValueError(
                f"{member} is packed by method {info.compress_type}, not by deflate"
            )
        if info.file_size > max_bytes:
            raise TooLargeError(member, max_bytes)
        with archive.open(info) as stream:
            return _read(stream, member, max_bytes)


def _from_tar(path, member, max_bytes):
    # As a whole first: tarfile would read headers of any length.
    with gzip.open(path) as stream:
        tar = _read(stream, os.path.basename(path), max_bytes)
    with tarfile.open(fileobj=io.BytesIO(tar), mode="r:") as archive:
        stream = archive.extractfile(_member(archive.getnames(), member))
        if stream is None:
            raise ValueError(f"{member} is not a file")
        return _read(stream, member, max_bytes)  # a sparse file is longer than its tar


def _member(names, wanted):
    for name in names:
        if name.rsplit("/", 1)[-1] == wanted:
            return name
    raise ValueError(f"no {wanted!r} in the archive, which holds {sorted(names)}")


def unpack_xz(
    packed: bytes, *, max_bytes: int, what: str | os.PathLike[str] = "the file"
) -> bytes:
    """Decompress the contents of an xz file.

    Parameters
    ----------
    packed : bytes
        One or more xz streams; what follows them is ignored.
    max_bytes : int
        Bound on the size of the result.
    what : path-like, optional
        What is unpacked, for messages.

    Returns
    -------
    content : bytes

    Raises
    ------
    TooLargeError
        There is more than ``max_bytes`` of it.
    lzma.LZMAError
        The contents are not xz, end early, or need more memory than preset 9 does.
    """
    parts, room = [], max_bytes
    while True:
        decoder = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_XZ_MEMORY)
        try:
            part = decoder.decompress(packed, room + 1)
        except lzma.LZMAError:
            if parts:  # padding, or something else after the last stream
                break
            raise
        if len(part) > room:
            raise TooLargeError(what, max_bytes)
        if not decoder.eof:
            raise lzma.LZMAError("it ends before its last stream does")
        parts.append(part)
        room -= len(part)
        packed = decoder.unused_data
        if not packed:
            break
    return b"".join(parts)
