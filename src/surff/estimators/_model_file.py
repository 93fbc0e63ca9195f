"""Bytes of model files: sealed, checked before anything is built, written whole.

A model file is an archive of the skops format whose comment holds a checksum over
everything before it. Functions here know nothing of models; they raise ValueError with
what is wrong with the bytes.
"""

import contextlib
import hashlib
import io
import json
import math
import os
import re
import secrets
import stat
import struct
import zipfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from surff.estimators._trusted_types import MODULES

__all__ = ["CheckedFile", "checked_file", "sealed", "write_whole"]

#: Version of the format: raised when files can no longer be read by older versions.
FORMAT = 1

#: Comment of a sealed archive.
SEAL = re.compile(rb"surff model (\d{3}) sha256 ([0-9a-f]{64})\n")

#: Its length: of two numbers of fixed width, and words.
SEAL_LENGTH = len(b"surff model 001 sha256 ") + 64 + 1

#: Bytes at the end of the comment that the checksum cannot cover: itself and a newline.
DIGEST_LENGTH = 64 + 1

#: Bytes of the record that ends an archive without a comment.
END_LENGTH = 22

#: How many times the bytes of a file its content may have. Arrays are stored as they
#: are; landmarks in CSR form are compressed, and text in them shrinks some ten times.
EXPANSION = 64

#: Bytes that the content may have more than that, for small files of many zeros.
SPARE = 2**24

#: Bytes of the description of the objects: some hundred for each entry of a dictionary,
#: a vocabulary of 400,000 words at most.
LARGEST_SCHEMA = 10**8

#: Levels of the description. A search over a pipeline of ensembles has 50; skops takes
#: two calls for each, and Python allows 1,000.
MOST_LEVELS = 200

#: Bytes that are unpacked at a time.
CHUNK = 2**20

#: Bytes of the header of an array; the limit of numpy.load.
LONGEST_HEADER = 10_000

#: Words in the pool of a seed sequence: mixing them takes the square of the number.
LARGEST_POOL = 64

#: Classes of `numpy.random` that make random bits.
BIT_GENERATORS = ("MT19937", "PCG64", "PCG64DXSM", "Philox", "SFC64")

#: Header of an array, as NumPy writes it; of other spellings numpy.load would warn.
HEADER = re.compile(
    r"\{'descr': (?P<descr>'[<>|=]?[biufcSUVmM]\d*(\[\w+\])?'|\[[^#{}]*\]), "
    r"'fortran_order': (True|False), 'shape': \((?P<shape>(\d+, ?)*\d*)\), \} *\n"
)


class CheckedFile(NamedTuple):
    """What a model file holds, in bounds and ready for skops."""

    data: bytes  # the archive; classes of surff by the modules they are in now
    nodes: list[dict[str, Any]]  # descriptions of all objects


def sealed(data: bytes) -> list[Any]:
    """Parts of the archive with its checksum as comment, in order."""
    body = memoryview(data)[:-2]  # the length of the comment, which is empty
    head = struct.pack("<H", SEAL_LENGTH) + b"surff model %03d sha256 " % FORMAT
    digest = hashlib.sha256(body)
    digest.update(head)
    return [body, head, digest.hexdigest().encode() + b"\n"]


def check_seal(data: bytes) -> None:
    """Refuse a file whose bytes are not those that were written.

    A file of a version before checksums has no comment.
    """
    seal = SEAL.fullmatch(data[-SEAL_LENGTH:])
    if seal is None:
        end = data[-END_LENGTH:]
        if end[:4] != b"PK\5\6" or end[-2:] != b"\0\0":
            raise ValueError("it does not end as a model file ends")
        return
    digest = hashlib.sha256(memoryview(data)[:-DIGEST_LENGTH]).hexdigest()
    if digest.encode() != seal[2]:
        raise ValueError("its checksum does not match, the file is damaged")
    if int(seal[1]) > FORMAT:
        raise ValueError(
            f"its format {int(seal[1])} is newer than this version of surff"
        )


def checked_file(data: bytes) -> CheckedFile:
    """What a model file holds; nothing is built.

    Raises
    ------
    ValueError
        If the checksum does not match, or the content is not what `sealed` was given:
        larger than it may be, nested too deeply, or no valid array.
    Exception
        What zip and JSON raise.
    """
    check_seal(data)
    budget = EXPANSION * len(data) + SPARE
    members, unpacked, packed = {}, 0, False
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        unpacked = _declared(archive, budget)
        for info in archive.infolist():
            content = _unpacked(archive, info)
            if info.filename.endswith(".npz"):
                unpacked += _check_npz(content, budget - unpacked)
            elif info.filename.endswith(".npy"):
                _check_npy(content)
            packed = packed or info.compress_type != zipfile.ZIP_STORED
            members[info.filename] = info.file_size
        if members.get("schema.json", LARGEST_SCHEMA + 1) > LARGEST_SCHEMA:
            raise ValueError("it has no description of its objects, or one too large")
        before = _unpacked(archive, archive.getinfo("schema.json"))
    schema = json.loads(before)
    nodes = list(_nodes(schema))
    _check_references(nodes, members, budget)
    _check_generators(nodes)
    renamed = [_renamed(node) for node in nodes]
    if any(renamed) or packed:
        data = _repacked(data, json.dumps(schema).encode())
    return CheckedFile(data, nodes)


def _declared(archive, budget):
    """Bytes that the members say they have, in bounds."""
    infos = archive.infolist()
    if len({info.filename for info in infos}) < len(infos):
        raise ValueError("two of its members have the same name")
    for info in infos:
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise ValueError(f"{info.filename} in it is compressed in another way")
        stored = info.compress_type == zipfile.ZIP_STORED
        if stored and info.compress_size != info.file_size:
            raise ValueError(f"{info.filename} in it lies about its size")
    total = sum(info.file_size for info in infos)
    if total > budget:
        raise ValueError(
            f"it would unpack to {total} bytes or more, out of proportion to its size"
        )
    return total


def _unpacked(archive, info):
    """Content of a member, chunk by chunk: never more than it declares."""
    with archive.open(info) as file:
        content = b"".join(iter(lambda: file.read(CHUNK), b""))
    if len(content) != info.file_size:
        raise ValueError(f"{info.filename} in it lies about its size")
    return content


def _check_npz(content, budget):
    """Refuse an archive of arrays that is none; bytes that it unpacks to."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        unpacked = _declared(archive, budget)
        for info in archive.infolist():
            _check_npy(_unpacked(archive, info))
    return unpacked


def _check_npy(content):
    """Refuse an array whose header does not describe its bytes."""
    if content[:6] != b"\x93NUMPY" or len(content) < 12 or content[6] not in (1, 2, 3):
        raise ValueError("an array in it has no header")
    start = 10 if content[6] == 1 else 12
    length = int.from_bytes(content[8:start], "little")
    header = content[start : start + min(length, LONGEST_HEADER)].decode("latin1")
    found = HEADER.fullmatch(header)
    if found is None:
        raise ValueError(f"an array in it has the header {header[:80]!r}")
    numbers = [int(number) for number in re.findall(r"\d+", found["shape"])]
    itemsize = _itemsize(found["descr"])
    if not itemsize and math.prod(numbers):
        raise ValueError("an array in it has items of no bytes")
    if math.prod(numbers) * itemsize != len(content) - start - length:
        raise ValueError(
            f"an array in it has {len(content) - start - length} bytes, not those of "
            f"its header {header.strip()[:80]!r}"
        )


def _itemsize(descr):
    """Bytes of an item, of a type that holds no objects."""
    if descr.startswith("'"):
        return np.dtype(descr.strip("'")).itemsize
    fields = re.findall(r"'([<>|=]?[a-zA-Z]\d*)'(?:, \(([\d, ]*)\))?\)", descr)
    if any(code.lstrip("<>|=")[0] not in "biufcSUVmM" for code, _ in fields):
        raise ValueError("an array in it holds objects")
    return sum(
        np.dtype(code).itemsize * math.prod(int(n) for n in re.findall(r"\d+", shape))
        for code, shape in fields
    )


def _nodes(schema):
    """Descriptions of all objects, at bounded depth."""
    waiting = [(schema, 1)]
    while waiting:
        node, level = waiting.pop()
        if level > MOST_LEVELS:
            raise ValueError(f"its objects are nested deeper than {MOST_LEVELS} levels")
        if isinstance(node, dict):
            if isinstance(node.get("__loader__"), str):
                yield node
            node = node.values()
        waiting += [(part, level + 1) for part in node if isinstance(part, dict | list)]


def _check_references(nodes, members, budget):
    """Refuse what would be read many times over."""
    suffixes = {"NdArrayNode": ".npy", "SparseMatrixNode": ".npz"}
    used = {}
    for number, node in enumerate(nodes):
        file, loader = node.get("file"), node["__loader__"]
        if isinstance(file, str):
            if not file.endswith(suffixes.get(loader, "")) or file not in members:
                raise ValueError(f"{loader} in it has no content of its kind")
            used[node.get("__id__") or -number, file] = members[file]
    if sum(used.values()) > budget:
        raise ValueError("its objects would read its arrays over and over")


def _check_generators(nodes):
    """Refuse a random generator that would take hours to build, or is another call.

    skops builds one object of all with the same identity, so they must be the same.
    """
    identities = set()
    for node in nodes:
        if node["__loader__"] != "RandomGeneratorNode":
            continue
        seed, state = (node["content"][name] for name in ("seed_seq", "bit_generator"))
        pool = seed["content"]["pool_size"]["content"]
        if not 0 < int(pool) <= LARGEST_POOL:
            raise ValueError(f"a random generator in it has a pool of {pool} words")
        name = json.loads(state["content"]["bit_generator"]["content"])
        if name not in BIT_GENERATORS:
            raise ValueError(f"a random generator in it is called {name!r:.80}")
        identities.update(part.get("__id__") for part in _nodes(node))
    first = {}
    for node in nodes:
        identity = node.get("__id__")
        if identity in identities and identity is not None:
            same = _without_identities(node)
            if first.setdefault(identity, same) != same:
                raise ValueError("a random generator in it is two at a time")


def _without_identities(part):
    """A description without the numbers of objects."""
    if isinstance(part, dict):
        return {
            name: _without_identities(value)
            for name, value in part.items()
            if name != "__id__"
        }
    return (
        [_without_identities(value) for value in part] if type(part) is list else part
    )


def _renamed(node):
    """Whether a class of surff was in another module, and is named as it is now."""
    module = node.get("__module__")
    if not (isinstance(module, str) and module.startswith("surff.")):
        return False
    node["__module__"] = MODULES.get(node.get("__class__"), module)
    return node["__module__"] != module


def _repacked(data, schema):
    """The archive with another description, nothing compressed."""
    renewed = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(data)) as before,
        zipfile.ZipFile(renewed, "w") as after,
    ):
        for info in before.infolist():
            is_schema = info.filename == "schema.json"
            after.writestr(
                info.filename, schema if is_schema else _unpacked(before, info)
            )
    return renewed.getvalue()


def write_whole(path: Path, parts: list[Any]) -> None:
    """Write a file that is there whole or not at all, also after a power cut.

    Parameters
    ----------
    path : Path
        A file there is replaced and its permissions are kept. A link is replaced, not
        followed: what it points to stays as it is.
    parts : list of bytes
        Content.
    """
    old_mode = 0
    with contextlib.suppress(FileNotFoundError):
        old_mode = os.lstat(path).st_mode
    keeps_mode = stat.S_ISREG(old_mode)
    # A new file may be read and written by all, less what the process masks.
    mode = stat.S_IMODE(old_mode) & 0o777 if keeps_mode else 0o666
    # The name cannot be guessed, and a file or link that has it is never opened.
    temporary = path.with_name(f".surff-{secrets.token_hex(8)}.tmp")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    handle = os.open(temporary, flags, mode)
    try:
        with os.fdopen(handle, "wb") as file:
            if keeps_mode and hasattr(os, "fchmod"):
                os.fchmod(file.fileno(), mode)
            for part in parts:
                file.write(part)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno and error.filename is None:
            error.filename = str(path)  # a full disk names none
        raise
    _sync_folder(path.parent)


def _sync_folder(folder):
    """Let the new name of a file survive a power cut, where folders can be synced."""
    if os.name != "posix":
        return
    with contextlib.suppress(OSError):  # the file is in place all the same
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
