"""Where data files are looked up, how they are checked, and how they get there.

A file is looked for in the directory ``$SURFF_DATA`` and then in the user cache
(``$SURFF_CACHE``, else the platform's cache directory). What is not found is downloaded
over https from its original source into the cache: to a temporary directory first,
converted, checked, packed and then moved into place in one step, so that a name in the
cache never holds half a file. Every read checks the checksum of the whole file before
any of its values is used, and nothing is unpacked beyond the size that the registry
allows.
"""

import hashlib
import importlib
import lzma
import os
import tarfile
import tempfile
import zipfile
import zlib
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from surff.datasets.convert import CONVERTERS, to_libsvm
from surff.datasets.download import download_file, is_secure
from surff.datasets.registry import (
    DATASETS,
    FILES,
    PAPER_TEST_STEM,
    DataFile,
    DatasetDescription,
)
from surff.datasets.unpack import TooLargeError, extract, unpack_xz

__all__ = [
    "DatasetCorruptError",
    "DatasetNotFoundError",
    "DatasetStatus",
    "FileStatus",
    "cache_directory",
    "fetch",
    "status",
]


class DatasetNotFoundError(FileNotFoundError):
    """A data file is neither on disk nor available from its source."""


class DatasetCorruptError(ValueError):
    """A data file, or a download, is not the expected one."""


class FileStatus(NamedTuple):
    """Where one file of a data set is.

    Attributes
    ----------
    filename : str
        Name looked for.
    place : {"SURFF_DATA", "cache", "missing"}
    path : Path or None
        The file, None if missing.
    optional : bool
        True if the data set loads without it.
    """

    filename: str
    place: str
    path: Path | None
    optional: bool


class DatasetStatus(NamedTuple):
    """Where a data set is.

    Attributes
    ----------
    name : str
    found : bool
        True if every part can be loaded without a download.
    where : str
        ``"scikit-learn"``, or the places of its files: ``"SURFF_DATA"``, ``"cache"``,
        ``"missing"`` or several of these.
    files : tuple of FileStatus
    """

    name: str
    found: bool
    where: str
    files: tuple[FileStatus, ...]


def require(module: str) -> ModuleType:
    """Import an optional dependency.

    Parameters
    ----------
    module : str
        Name of the module.

    Returns
    -------
    module : module

    Raises
    ------
    ImportError
        It is not installed; the message names the extra that brings it.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(
            f"this data set needs {module.partition('.')[0]}, which comes with the "
            "extra surff[cli]: pip install 'surff[cli]'. The sets breast_cancer and "
            "digits need no extra."
        ) from error


def describe(name: str) -> DatasetDescription:
    """Look up a data set.

    Parameters
    ----------
    name : str
        Key of ``DATASETS``.

    Returns
    -------
    description : DatasetDescription

    Raises
    ------
    ValueError
        No data set has this name.
    """
    if name not in DATASETS:
        raise ValueError(f"name must be one of {', '.join(DATASETS)}, got {name!r}.")
    return DATASETS[name]


def resolve_part(name: str, part: str | None) -> str:
    """Check the name of a part; None means the first one.

    Parameters
    ----------
    name : str
        Key of ``DATASETS``.
    part : str or None

    Returns
    -------
    part : str

    Raises
    ------
    ValueError
        The data set has no such part.
    """
    parts = describe(name).parts
    if part is None:
        return parts[0]
    if part not in parts:
        raise ValueError(
            f"part of {name!r} must be one of {', '.join(parts)}, got {part!r}."
        )
    return part


def cache_directory() -> Path:
    """Directory downloads go to: ``$SURFF_CACHE`` or the platform's user cache.

    Returns
    -------
    directory : Path
        It need not exist.

    Raises
    ------
    ImportError
        ``$SURFF_CACHE`` is not set and platformdirs is not installed.
    """
    directory = os.environ.get("SURFF_CACHE")
    if directory:
        return Path(directory).expanduser()
    return Path(require("platformdirs").user_cache_dir("surff"))


def _data_directory():
    directory = os.environ.get("SURFF_DATA")
    return Path(directory).expanduser() if directory else None


def find(file: DataFile) -> FileStatus:
    """Look a file up without opening it.

    Parameters
    ----------
    file : DataFile

    Returns
    -------
    status : FileStatus
        The first place that has it.
    """
    optional = file.stem == PAPER_TEST_STEM
    places = {"SURFF_DATA": _data_directory, "cache": cache_directory}
    for place, directory_of in places.items():
        directory = directory_of()
        if directory is not None and (directory / file.filename).is_file():
            return FileStatus(file.filename, place, directory / file.filename, optional)
    return FileStatus(file.filename, "missing", None, optional)


def _stems(name):
    """Stems of the files that a data set needs."""
    data = describe(name)
    stems = list(dict.fromkeys(data.stems.values()))
    return [*stems, data.masks] if data.masks else stems


def status(name: str) -> DatasetStatus:
    """Tell where the files of a data set are, without opening or downloading any.

    Parameters
    ----------
    name : str
        Key of ``DATASETS``.

    Returns
    -------
    status : DatasetStatus

    Raises
    ------
    ValueError
        No data set has this name.

    Examples
    --------
    >>> from surff.datasets import status
    >>> status("digits").where
    'scikit-learn'
    """
    if not describe(name).stems:
        return DatasetStatus(name, True, "scikit-learn", ())
    optional = [PAPER_TEST_STEM] if name == "cod-rna" else []
    files = tuple(find(FILES[stem]) for stem in (*_stems(name), *optional))
    needed = [file.place for file in files if not file.optional]
    return DatasetStatus(
        name, "missing" not in needed, ", ".join(dict.fromkeys(needed)), files
    )


def _how_to_fetch(file):
    if file.stem == PAPER_TEST_STEM:
        return 'call surff.datasets.fetch("cod-rna", "paper-test")'
    return f"run `surff datasets fetch {file.dataset}`"


def _not_found(file, failure):
    directory = _data_directory()
    looked_at = (
        "$SURFF_DATA (not set)" if directory is None else directory / file.filename
    )
    return (
        f"{file.filename} (data set {file.dataset!r}) not found. Looked at: "
        f"{looked_at}, {cache_directory() / file.filename}. {failure} To get it, set "
        "SURFF_DATA to a directory that holds the file, or "
        f"{_how_to_fetch(file)} with a connection to {file.url}."
    )


def _checksum(csv, kind):
    if kind == "sha256":
        return hashlib.sha256(csv).hexdigest()
    if kind == "sorted-sha256":
        lines = sorted(csv.split(b"\n")[1:-1])
        return hashlib.sha256(b"".join(line + b"\n" for line in lines)).hexdigest()
    return hashlib.md5(to_libsvm(csv), usedforsecurity=False).hexdigest()


def _check(file, csv, what, repair):
    # The header line is compared on its own: not every kind of checksum covers it.
    kind = file.checksums[0].partition(":")[0]
    header = csv.partition(b"\n")[0].replace(b'"', b"")
    if not file.header or header == ",".join(file.columns).encode():
        came = f"{kind}:{_checksum(csv, kind)}"
        if came in file.checksums:
            return
    else:
        came = f"the header line {header[:80]!r}"
    n_rows = max(csv.count(b"\n") - file.header, 0)
    size = "" if file.n_bytes is None else f"{file.n_bytes:,} bytes of CSV, "
    raise DatasetCorruptError(
        f"{what} is not the expected file: expected {file.n_samples:,} rows, "
        f"{size}{' or '.join(file.checksums)}; got {n_rows:,} rows, "
        f"{len(csv):,} bytes, {came}. {repair}"
    )


def read_csv_bytes(file: DataFile, path: Path) -> bytes:
    """Decompress and check one file.

    Parameters
    ----------
    file : DataFile
        What it has to be.
    path : Path
        An ``.xz`` file.

    Returns
    -------
    csv : bytes
        The whole CSV, its checksum verified.

    Raises
    ------
    DatasetCorruptError
        The file is truncated, not xz, too large or has other contents; the message
        names the file, what was expected, what came, and what to do.

    Notes
    -----
    Holds the CSV in memory, 75 MB for covtype, the largest; about a second there.
    """
    repair = f"Put a good copy in its place, or delete it and {_how_to_fetch(file)}."
    size = path.stat().st_size
    if size > file.max_bytes:
        raise DatasetCorruptError(
            f"{path} has {size:,} bytes, more than the {file.max_bytes:,} that it may "
            f"have: expected {file.n_samples:,} rows. {repair}"
        )
    try:
        max_bytes = file.n_bytes or file.max_bytes
        csv = unpack_xz(path.read_bytes(), max_bytes=max_bytes, what=path)
    except TooLargeError as error:
        raise DatasetCorruptError(
            f"{error}: expected {file.n_samples:,} rows. {repair}"
        ) from error
    except lzma.LZMAError as error:
        raise DatasetCorruptError(
            f"{path} is not a complete xz file ({error}): expected one that holds "
            f"{file.n_samples:,} rows, got {size:,} bytes that do not unpack. {repair}"
        ) from error
    _check(file, csv, path, repair)
    return csv


#: What unpacking and parsing raise on contents that are damaged or made up.
_UNREADABLE = (
    EOFError,
    IndexError,
    KeyError,
    OSError,
    RuntimeError,  # an encrypted zip; a tar of links to each other
    ValueError,
    lzma.LZMAError,
    tarfile.TarError,
    zipfile.BadZipFile,
    zlib.error,
)


def _check_raw(content, checksum, what, url):
    algorithm, _, expected = checksum.partition(":")
    came = hashlib.new(algorithm, content, usedforsecurity=False).hexdigest()
    if came != expected:
        raise DatasetCorruptError(
            f"{what} from {url} is not the expected file: expected {algorithm} "
            f"{expected}, got {len(content):,} bytes with {algorithm} {came}. Nothing "
            "was stored; try again: the transfer may have been cut short or the source "
            "may have changed."
        )


def _convert(file, raw, url):
    what = file.download_name
    if file.download_checksum is not None:
        _check_raw(raw.read_bytes(), file.download_checksum, what, url)
    try:
        text = extract(raw, file.member, max_bytes=file.max_bytes)
    except _UNREADABLE as error:
        raise DatasetCorruptError(
            f"{what} from {url} cannot be unpacked: {error}. Expected "
            f"{file.member or 'the data'} in it, got {raw.stat().st_size:,} bytes. "
            "Nothing was stored; try again."
        ) from error
    if file.raw_checksum is not None:
        _check_raw(text, file.raw_checksum, f"{file.member} in {what}", url)
    try:
        csv = CONVERTERS[file.converter](text, file.columns)
    except _UNREADABLE as error:
        raise DatasetCorruptError(
            f"{what} from {url} cannot be parsed ({error!r}): expected "
            f"{file.n_samples:,} rows of {file.n_features} features and a label, got "
            f"{len(text):,} bytes of something else. Nothing was stored; the source "
            "may have changed."
        ) from error
    _check(
        file,
        csv,
        f"{what} from {url}, converted to CSV,",
        "Nothing was stored; try again, or the source may have changed.",
    )
    return csv


def _download(file, *, progress, base_url):
    require("pooch")
    if progress is True:
        require("tqdm")
    url = file.url
    if base_url is not None:
        url = f"{base_url.rstrip('/')}/{file.download_name}"
    with _folder_in_cache(file) as temporary:
        raw = Path(temporary) / file.download_name
        try:
            download_file(url, raw, max_bytes=file.max_bytes, progress=progress)
        except TooLargeError as error:
            raise DatasetCorruptError(
                f"The download of {url} was refused: {error}. Nothing was stored; the "
                "source may have changed."
            ) from error
        except (OSError, ValueError) as error:
            failure = f"The download of {url} failed: {error}."
            raise DatasetNotFoundError(_not_found(file, failure)) from error
        csv = _convert(file, raw, url)
        packed, path = Path(temporary) / "packed", cache_directory() / file.filename
        # Preset 0: 2 s for covtype where the default takes 28 s, a quarter larger.
        packed.write_bytes(lzma.compress(csv, preset=0))
        path.parent.mkdir(exist_ok=True)
        return packed.replace(path)


def _folder_in_cache(file):
    """Temporary directory inside the cache: the last step is a rename in one system."""
    directory = cache_directory()
    try:
        directory.mkdir(parents=True, exist_ok=True)
        return tempfile.TemporaryDirectory(prefix=".download-", dir=directory)
    except OSError as error:
        failure = (
            f"The cache {directory} cannot be written ({error}): set SURFF_CACHE to a "
            "directory that can."
        )
        raise DatasetNotFoundError(_not_found(file, failure)) from error


def locate(
    file: DataFile,
    *,
    download: bool = True,
    progress: Any = True,
    base_url: str | None = None,
) -> Path:
    """Path of a file, downloaded if it is missing; its contents are not checked.

    Parameters
    ----------
    file : DataFile
    download : bool, default=True
        Download the file if it is missing.
    progress, base_url
        As in `fetch`.

    Returns
    -------
    path : Path

    Raises
    ------
    DatasetNotFoundError
        The file is missing and cannot, or must not, be downloaded.
    DatasetCorruptError, ImportError
        As in `fetch`.
    """
    found = find(file)
    if found.path is not None:
        return found.path
    if not download:
        raise DatasetNotFoundError(_not_found(file, "Downloading was not allowed."))
    return _download(file, progress=progress, base_url=base_url)


def fetch(
    name: str,
    part: str | None = None,
    *,
    progress: Any = True,
    base_url: str | None = None,
) -> list[Path]:
    """Make sure that the files of a data set are on disk; download what is missing.

    Files are looked for in ``$SURFF_DATA``, then in the user cache, and otherwise
    downloaded into the cache from the original source. Files that exist are checked.

    Parameters
    ----------
    name : str
        Key of ``DATASETS``.
    part : str, optional
        Only the file of this part. For ``"cod-rna"``, the part ``"paper-test"`` is the
        file of the paper's own test rows, which no other part needs and which is
        fetched only when asked for by this name.
    progress : bool or object, default=True
        Show a progress bar for each download; an object with tqdm's ``total``,
        ``update``, ``reset`` and ``close`` is used in place of the built-in bar.
    base_url : str, optional
        A mirror: an https URL under which the sources' files have their own names.

    Returns
    -------
    paths : list of Path
        The files, in the order of the parts; empty for sets that come with
        scikit-learn.

    Raises
    ------
    ValueError
        No data set or part has this name, or ``base_url`` is not https.
    DatasetNotFoundError
        A file is missing and its download failed.
    DatasetCorruptError
        A file or a download is not the expected one, or is larger than it may be.
        Nothing of it is kept.
    ImportError
        A download needs the extra ``surff[cli]``.

    Examples
    --------
    >>> from surff.datasets import fetch
    >>> fetch("breast_cancer")
    []
    """
    if base_url is not None and not is_secure(base_url):
        raise ValueError(f"base_url must start with https://, got {base_url!r}.")
    stems = _stems(name)
    if part is not None:
        part = resolve_part(name, part)
        if name == "cod-rna" and part == "paper-test":
            stems = [PAPER_TEST_STEM]
        elif stems:
            stems = [DATASETS[name].stems[part]]
    paths = []
    for stem in stems:
        path = locate(FILES[stem], progress=progress, base_url=base_url)
        read_csv_bytes(FILES[stem], path)
        paths.append(path)
    return paths
