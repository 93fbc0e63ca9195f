"""The data sets and their files, read from ``registry.toml``.

``DATASETS`` maps a public name to its `DatasetDescription`, ``FILES`` the stem of a
file to its `DataFile`. A data set is one or more parts, a part is one file
``<stem>.csv.xz``: a header line, the label or target in the last column, the values as
the source wrote them; or, with the converter "verbatim", the source's text as it is,
which ``header``, ``target`` and ``text`` describe. Checksums are of the *decompressed*
CSV, so a file packed by another version of xz is as good as ours.
"""

import tomllib
from importlib import resources
from typing import Any, NamedTuple, Self, get_args, get_origin, get_type_hints

__all__ = ["DATASETS", "EEG_OUTLIER_ROWS", "DatasetDescription", "available"]


class DataFile(NamedTuple):
    """One file on disk, how to check it and where it comes from.

    Attributes
    ----------
    stem : str
        The file is ``<stem>.csv.xz``.
    dataset : str
        Name in ``DATASETS`` under which it is fetched.
    n_samples, n_features : int
        Rows without the header line, columns without the label.
    columns : tuple of str
        Header line: the features, then the label or target.
    label : {"integer", "text", "real"}
        What the last column holds.
    checksums : tuple of str
        Accepted checksums, all of one kind: ``"sha256:..."`` of the CSV,
        ``"sorted-sha256:..."`` of its sorted data lines, or ``"libsvm-md5:..."`` of the
        file written in LIBSVM's format.
    max_bytes : int
        Bound on the size of the download, of what it unpacks to and of the CSV.
    url, download_name : str
        The original source, always https, and the name of its file.
    converter : str
        Key of ``CONVERTERS``: how the source's text becomes the CSV.
    n_bytes : int or None
        Size of the CSV, if there is only one and it is known.
    member : str or None
        File inside the downloaded archive.
    download_checksum : str or None
        Checksum of the downloaded file, ``"algorithm:hex"``, if known.
    raw_checksum : str or None
        Checksum of the text inside it, if known.
    header : bool
        Whether the first line has the names of the columns.
    target : str or None
        Column with the label or target, the last by default.
    text : tuple of str
        Feature columns of text, loaded as one column of zeros and ones per value.
    """

    stem: str
    dataset: str
    n_samples: int
    n_features: int
    columns: tuple[str, ...]
    label: str
    checksums: tuple[str, ...]
    max_bytes: int
    url: str
    download_name: str
    converter: str
    n_bytes: int | None = None
    member: str | None = None
    download_checksum: str | None = None
    raw_checksum: str | None = None
    header: bool = True
    target: str | None = None
    text: tuple[str, ...] = ()

    @classmethod
    def from_table(cls, stem: str, table: dict[str, Any]) -> Self:
        """Make a file from its table in the registry, or raise ValueError."""
        columns = table.get("columns", ())
        file = _record(cls, stem, table | {"n_features": len(columns) - 1}, "stem")
        _require_one_of(stem, "label", file.label, ("integer", "text", "real"))
        if not file.url.startswith("https://"):
            raise ValueError(f"{stem}: url must start with https://, got {file.url!r}.")
        return file

    @property
    def filename(self) -> str:
        """Name of the file in a data directory."""
        return f"{self.stem}.csv.xz"


class DatasetDescription(NamedTuple):
    """A data set in words and numbers.

    Attributes
    ----------
    name : str
        What `load` takes.
    title : str
        Full name.
    task : {"classification", "regression"}
    parts : tuple of str
        Names of its parts; the first is the default of `load`.
    n_samples : dict of str to int
        Rows of each part.
    n_features : int
        Columns of ``X``.
    classes : tuple
        Labels in sorted order, empty for regression.
    stems : dict of str to str
        Part to stem of its file in ``FILES``; empty if no file is needed.
    source, licence, citation : str
        Who made it, what one may do with it, what to cite.
    where : str
        Where to get it.
    note : str
        What users of the numbers should know.
    masks : str or None
        Stem of the file with its masks of test rows, see `load_masks`.
    """

    name: str
    title: str
    task: str
    parts: tuple[str, ...]
    n_samples: dict[str, int]
    n_features: int
    classes: tuple[int | str, ...]
    stems: dict[str, str]
    source: str
    licence: str
    citation: str
    where: str
    note: str
    masks: str | None = None

    @classmethod
    def from_table(cls, name: str, table: dict[str, Any]) -> Self:
        """Make a description from its table in the registry, or raise ValueError."""
        known = {"parts": tuple(table.get("n_samples", ()))}
        absent = {"classes": (), "stems": {}}
        data = _record(cls, name, absent | table | known, "name")
        _require_one_of(name, "task", data.task, ("classification", "regression"))
        return data


def _record(kind, key, table, key_field):
    """A named tuple from a table of the registry, its types checked."""
    values = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in table.items()
    }
    try:
        record = kind(**{key_field: key}, **values)
    except TypeError as error:  # a key that is missing or unknown
        raise ValueError(f"{key}: {error}.") from error
    for name, hint in get_type_hints(kind).items():
        if not _fits(getattr(record, name), hint):
            raise ValueError(f"{key}: {name} has the wrong type: {values.get(name)!r}.")
    return record


def _fits(value, hint):
    """Whether a value has the type that a field asks for."""
    if get_origin(hint) is tuple:
        inner = get_args(hint)[0]
        return isinstance(value, tuple) and all(_fits(v, inner) for v in value)
    if get_origin(hint) is dict:
        _, inner = get_args(hint)  # keys of a TOML table are always text
        return isinstance(value, dict) and all(_fits(v, inner) for v in value.values())
    return isinstance(value, hint)


def _require_one_of(key, name, value, allowed):
    if value not in allowed:
        raise ValueError(
            f"{key}: {name} must be one of {', '.join(allowed)}, got {value!r}."
        )


def _entries_with_masks(masked):
    """Entries of data sets and of files from the short form of sets with masks."""
    datasets, files = {}, {}
    for name, own in masked["sets"].items():
        url, stem = masked["url"].format(name=name), f"uci/{name}"
        rows, width = own["n_samples"], own["n_features"]
        datasets[name] = {
            "title": own["title"],
            "task": "regression",
            "n_features": width,
            "n_samples": {"all": rows},
            "stems": {"all": stem},
            "masks": f"{stem}.test_mask",
            "where": f"{url}data.csv.gz",
            "licence": own.get("licence", masked["licence"]),
            **{key: masked[key] for key in ("source", "citation", "note")},
        }
        for kind, label, columns, n_bytes, checksum in (
            ("data", "real", [*_numbered("x", width), "y"], own["n_bytes"], "checksum"),
            (
                "test_mask",
                "integer",
                _numbered("split", 10),
                20 * rows,
                "masks_checksum",
            ),
        ):
            files[stem if kind == "data" else f"{stem}.{kind}"] = {
                "dataset": name,
                "n_samples": rows,
                "columns": columns,
                "label": label,
                "header": False,
                "n_bytes": n_bytes,
                "max_bytes": 2 * n_bytes,
                "checksums": [own[checksum]],
                "url": f"{url}{kind}.csv.gz",
                "download_name": f"{name}.{kind}.csv.gz",
                "converter": "verbatim",
            }
    return datasets, files


def _numbered(word, n):
    return [f"{word}{j}" for j in range(1, n + 1)]


def read_registry(
    text: str,
) -> tuple[dict[str, DatasetDescription], dict[str, DataFile]]:
    """Read the data sets and the files that a registry names.

    Parameters
    ----------
    text : str
        TOML with the tables ``datasets`` and ``files``; the keys of each entry are the
        fields of `DatasetDescription` and `DataFile`. A table ``masked``, if there is
        one, describes sets with masks in fewer words.

    Returns
    -------
    datasets : dict of str to DatasetDescription
        By name, in the order of the text.
    files : dict of str to DataFile
        By stem, likewise.

    Raises
    ------
    ValueError
        The text is not TOML, or an entry lacks a key, has one too many or a value of
        the wrong type; the message names the entry.
    """
    tables = tomllib.loads(text)
    more = _entries_with_masks(tables.get("masked", {"sets": {}}))
    datasets = {
        name: DatasetDescription.from_table(name, table)
        for name, table in (tables["datasets"] | more[0]).items()
    }
    files = {
        stem: DataFile.from_table(stem, table)
        for stem, table in (tables["files"] | more[1]).items()
    }
    return datasets, files


DATASETS, FILES = read_registry(
    resources.files("surff.datasets")
    .joinpath("registry.toml")
    .read_text(encoding="utf-8")
)

#: Rows of EEG, counted from 0, in which nearly every electrode is far off: the standard
#: deviation of AF4 is 5,891 with these rows and 38.5 without.
EEG_OUTLIER_ROWS = (898, 10386, 11509, 13179)

#: Stem of the paper's own test part of cod-RNA, used if the file is there.
PAPER_TEST_STEM = "cod-rna.r"

#: Checksum of the letter CSV with rows in KEEL's order; a download has UCI's order.
LETTER_KEEL_SHA256 = "6b7c53779ff5457552d86bb7facbb323cf162323f21a1ac58e5267b60758dc88"


def available() -> list[str]:
    """Names that `load` takes, the paper's four sets first.

    Returns
    -------
    names : list of str

    Examples
    --------
    >>> from surff.datasets import available
    >>> available()[:4]
    ['eeg', 'magic04', 'cod-rna', 'covtype']
    """
    return list(DATASETS)
