"""From the text of the original source to the canonical CSV.

The canonical CSV has a header line, commas, LF line ends, no quotes and the label in
the last column. Values keep the text of the source, with two exceptions that are
derived: California housing (ratios per household) and ijcnn1 (written from the parsed
numbers, so that it does not matter how the source pads them).

Functions here take the bytes of the source and return the bytes of the CSV. They check
only what they need to parse: the checksum of the result covers the rest.
"""

from collections.abc import Callable

import numpy as np

__all__ = ["CONVERTERS", "to_libsvm"]


def _header(columns):
    return ",".join(columns).encode() + b"\n"


def _lines(text):
    return [line for line in map(bytes.strip, text.split(b"\n")) if line]


def _join(columns, lines):
    return _header(columns) + b"".join(line + b"\n" for line in lines)


def _from_csv(text, columns):
    # covtype is 75 MB: no list of lines.
    text = text.replace(b"\r\n", b"\n").strip(b"\n")
    return b"".join((_header(columns), text, b"\n"))


def _verbatim(text, columns):
    del columns  # the text is kept as it is
    return text


def _from_arff(text, columns):
    lines = _lines(text)
    start = [line.lower() for line in lines].index(b"@data") + 1
    return _join(columns, (line for line in lines[start:] if line[:1] != b"%"))


def _from_label_first(text, columns):
    pairs = (line.split(b",", 1) for line in _lines(text))
    return _join(columns, (rest + b"," + label for label, rest in pairs))


def _from_libsvm(text, columns):
    indices = [b"%d" % i for i in range(1, len(columns))]
    rows = []
    for line in _lines(text):
        label, *entries = line.split()
        row = dict(entry.split(b":") for entry in entries)
        rows.append(b",".join([*(row[i] for i in indices), label]))
    return _join(columns, rows)


def _from_ijcnn1(text, columns):
    # Ten one-hot columns as integers, the rest as the shortest text of the float64.
    formats = [lambda value: str(int(value))] * 10 + [repr] * (len(columns) - 11)
    rows = []
    for line in _lines(text):
        label, *entries = line.split()
        row = [0.0] * (len(columns) - 1)
        for entry in entries:
            index, value = entry.split(b":")
            row[int(index) - 1] = float(value)
        texts = [write(value) for write, value in zip(formats, row, strict=True)]
        rows.append(",".join([*texts, str(int(float(label)))]).encode())
    return _join(columns, rows)


def _from_california_housing(text, columns):
    # Source columns: longitude, latitude, age, rooms, bedrooms, population, households,
    # income, value. Same operations as scikit-learn's fetch_california_housing.
    source = np.array([line.split(b",") for line in _lines(text)]).astype(np.float64)
    longitude, latitude, age, rooms, bedrooms, population, households, income, value = (
        source.T
    )
    table = np.column_stack(
        [
            income,
            age,
            rooms / households,
            bedrooms / households,
            population,
            population / households,
            latitude,
            longitude,
            value / 100_000.0,
        ]
    )
    return _join(columns, (",".join(map(repr, row)).encode() for row in table.tolist()))


#: From the text of a source and the names of the columns to the CSV.
CONVERTERS: dict[str, Callable[[bytes, tuple[str, ...]], bytes]] = {
    "arff": _from_arff,
    "california_housing": _from_california_housing,
    "csv": _from_csv,
    "ijcnn1": _from_ijcnn1,
    "label_first": _from_label_first,
    "libsvm": _from_libsvm,
    "verbatim": _verbatim,
}


def to_libsvm(csv: bytes) -> bytes:
    """Write the canonical CSV in LIBSVM's format, every entry present.

    Parameters
    ----------
    csv : bytes
        Header line, then rows with the label last.

    Returns
    -------
    text : bytes
        One line ``label 1:x1 2:x2 ...`` per row.
    """
    rows = []
    for line in csv.split(b"\n")[1:]:
        if line:
            *values, label = line.split(b",")
            entries = (b" %d:%s" % pair for pair in enumerate(values, start=1))
            rows.append(b"".join((label, *entries, b"\n")))
    return b"".join(rows)
