"""Damaged and odd files, read by the sources of rows and by an independent reader.

``python tests/fuzz/readers.py --n 20000 --seed 0`` writes small files of known kinds,
mutates them, and reads each one twice: by a source of `surff.streaming`, and by
Python's `csv`, `pyarrow.parquet.read_table` or `pyarrow.ipc`. Allowed is an error that
names the file, or exactly the rows that the other reader finds; all else is a failure,
which is printed with the number of its case. ``--case`` runs one case again. Readers
run in a process of their own, so that a crash or a hang is counted and the next case
goes on.
"""

import bz2
import contextlib
import csv
import decimal
import functools
import gzip
import io
import lzma
import sys
import traceback
from pathlib import Path

import cases
import numpy as np
import pyarrow as pa
import pyarrow.dataset
import pyarrow.feather
import pyarrow.parquet as pq

from surff.streaming import ArrowRows, CsvRows, ParquetRows, SourceError

#: Outcomes that are as they should be.
GOOD = ("same rows", "refused by name")

COMPRESS = {
    "": (bytes, bytes),
    ".gz": (gzip.compress, gzip.decompress),
    ".xz": (lzma.compress, lzma.decompress),
    ".bz2": (bz2.compress, bz2.decompress),
}
MISSING = {
    "", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND",
    "1.#QNAN", "N/A", "NA", "NULL", "NaN", "n/a", "nan", "null",
}  # fmt: skip
TRUTH = {
    "true": 1.0,
    "True": 1.0,
    "TRUE": 1.0,
    "false": 0.0,
    "False": 0.0,
    "FALSE": 0.0,
}
WORDS = ["low", "high", 'say "so"', "a,b", "c;d", "two\nlines", "é", "ß漢", "NA", " x "]


def damaged(rng, data):
    """Bytes with one to three faults."""
    data = bytearray(data)
    for _ in range(rng.integers(1, 4)):
        if not data:
            break
        i, j = sorted(rng.integers(0, len(data) + 1, 2).tolist())
        kind = rng.integers(0, 8)
        if kind <= 2:
            for k in rng.integers(0, len(data), rng.integers(1, 5)):
                data[k] ^= 1 << int(rng.integers(0, 8))
        elif kind == 3:
            del data[i:]
        elif kind == 4:
            del data[i : min(j, i + 20)]
        elif kind == 5:
            data[i:i] = data[i : min(j, i + 20)]
        elif kind == 6:
            j = min(j, i + 20)
            data[i:j] = bytes(j - i)
        else:
            data[i:i] = rng.bytes(int(rng.integers(1, 6)))
    return bytes(data)


# CSV


def cell(rng, kind, mark):
    """One value of a column of a kind, as text."""
    if rng.random() < 0.003:
        return str(
            rng.choice(["", "NA", "null", " ", "nan", "1e3", "+2", "inf", "oops"])
        )
    if kind == "float":
        return repr(round(float(rng.normal()), int(rng.integers(0, 17)))).replace(
            ".", mark
        )
    if kind == "int":
        return str(rng.integers(-100, 100))
    if kind == "bool":
        return str(rng.choice(["True", "False"]))
    if kind == "date":
        return f"2024-01-{rng.integers(1, 29):02}"
    return str(rng.choice(WORDS))


def csv_lines(rng, rows, delimiter):
    """Lines of a CSV file, with a fault in every second one."""
    out = io.StringIO()
    quoting = int(rng.choice([csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC]))
    end = str(rng.choice(["\n", "\r\n"]))
    writer = csv.writer(out, delimiter=delimiter, quoting=quoting, lineterminator=end)
    writer.writerows(rows)
    text = out.getvalue()
    kind = rng.integers(0, 14)
    lines = text.split("\n")
    i, j = rng.integers(0, len(lines), 2)
    if kind == 0:
        lines[i], lines[j] = lines[j], lines[i]
    elif kind == 1:
        lines.insert(i, "")
    elif kind == 2:
        lines[i] += delimiter + "1"
    elif kind == 3:
        lines[i] = lines[i].replace(".", ",")
    elif kind == 4:
        lines[i] = lines[i].replace(delimiter, str(rng.choice([";", "\t", "|", ","])))
    elif kind == 5:
        k = rng.integers(0, len(lines[i]) + 1)
        lines[i] = lines[i][:k] + '"' + lines[i][k:]
    elif kind == 6:
        lines[i] = lines[j]
    return "\n".join(lines)


def csv_case(rng, folder):
    """Write a CSV file; return the source's arguments and what reads it otherwise."""
    delimiter = str(rng.choice([",", ";", "\t", "|"]))
    mark = "," if delimiter != "," and rng.random() < 0.4 else "."
    encoding = str(rng.choice(["utf8", "utf8", "utf-8-sig", "utf-16", "latin-1"]))
    suffix = str(rng.choice(["", "", "", *COMPRESS]))
    kinds = {
        "a": "float",
        "b": "int",
        "c": str(rng.choice(["float", "int", "bool", "bool", "float", "int"])),
        "name": "text",
        "y": str(rng.choice(["float", "int", "text", "bool"])),
    }  # fmt: skip
    if rng.random() < 0.02:
        kinds["c"] = "date"
    n_rows = int(rng.integers(0, 60))
    names = list(rng.permutation(list(kinds)))
    rows = [names]
    rows += [[cell(rng, kinds[name], mark) for name in names] for _ in range(n_rows)]
    if rng.random() < 0.05:
        rows[0] = [str(rng.choice(["a", "z", "A", "", name])) for name in names]
    if rng.random() < 0.2 and n_rows > 5 and kinds["y"] == "int":
        rows[-1][names.index("y")] = f"1{mark}5"
    data = csv_lines(rng, rows, delimiter).encode(encoding, "replace")
    compress, _ = COMPRESS[suffix]
    if rng.random() < 0.5:
        data = damaged(rng, data)
    data = compress(data)
    if suffix and rng.random() < 0.3:
        data = damaged(rng, data)
    path = folder / f"rows.csv{suffix}"
    path.write_bytes(data)
    options = {
        "target": "y",
        "features": ["a", "b", "c"],
        "delimiter": delimiter,
        "decimal": mark,
        "encoding": encoding,
        "text_bytes": int(rng.choice([200, 1000, 2**20])),
    }
    if rng.random() < 0.2:
        options["target_dtype"] = [float, int, str][rng.integers(0, 3)]
    if rng.random() < 0.1:  # options that are not those of the file
        options[str(rng.choice(["delimiter", "decimal"]))] = str(rng.choice([";", ":"]))
        if options["delimiter"] == options["decimal"]:
            options["decimal"] = "."
            options["delimiter"] = ";"
    make = lambda: CsvRows(path, **options)  # noqa: E731
    return path, make, lambda source: csv_expected(path, suffix, options, source)


def csv_number(text, mark):
    """Value of a cell by the standard library, nan if missing, None if none."""
    text = text.strip()
    if text in MISSING:
        return np.nan
    if text in TRUTH:
        return TRUTH[text]
    if not text.isascii() or "_" in text or (mark != "." and "." in text):
        return None
    try:
        return float(text.replace(mark, "."))
    except ValueError:
        return None


def csv_expected(path, suffix, options, source):
    """Rows of a CSV file as Python's csv reads them: X and a function that checks y."""
    data = COMPRESS[suffix][1](path.read_bytes())
    raw = options["encoding"].replace("-sig", "") in ("utf8", "utf-8")
    text = data.decode(options["encoding"], "surrogateescape" if raw else "strict")
    text = text.removeprefix("\ufeff")
    found = csv.reader(io.StringIO(text, newline=""), delimiter=options["delimiter"])
    names, *rows = [row for row in found if row]
    if any(len(row) != len(names) for row in rows):
        raise ValueError("rows of other lengths")
    number = lambda name: [  # noqa: E731
        csv_number(row[names.index(name)], options["decimal"]) for row in rows
    ]
    X = np.array([number(name) for name in source.feature_names], dtype=object).T
    cells = [row[names.index("y")] for row in rows]

    def check(y):
        if y.dtype.kind == "U":
            return y.tolist() == cells
        return same(y, np.array(number("y"), dtype=object))

    return X, check


# Parquet and Arrow


def arrow_column(rng, kind, n):
    """Column of a type of pyarrow."""
    missing = rng.random(n) < (0.05 if rng.random() < 0.2 else 0)
    values = rng.normal(size=n)
    if kind == "float":
        kinds = [pa.float64(), pa.float32()]
        return pa.array(values, kinds[rng.integers(0, 2)], mask=missing)
    if kind == "int":
        kinds = [pa.int8(), pa.int64(), pa.uint32(), pa.int32()]
        return pa.array(rng.integers(0, 100, n), mask=missing).cast(
            kinds[rng.integers(0, 4)]
        )
    if kind == "bool":
        return pa.array(values > 0, mask=missing)
    if kind == "decimal":
        cells = [decimal.Decimal(f"{value:.2f}") for value in values]
        return pa.array(cells, pa.decimal128(20, 2), mask=missing)
    if kind == "category":
        return pa.array(
            rng.integers(0, 3, n).astype(float), mask=missing
        ).dictionary_encode()
    if kind == "time":
        return pa.array(rng.integers(0, 10**9, n)).cast(pa.timestamp("us"))
    if kind == "null":
        return pa.nulls(n)
    words = pa.array(rng.choice(["low", "high", "ä"], n), mask=missing)
    return words.dictionary_encode() if rng.random() < 0.3 else words


def arrow_table(rng):
    """Table of the columns a, b, c, name and y, in any order, some of other types."""
    n = int(rng.integers(0, 80))
    kinds = {
        "a": "float",
        "b": "int",
        "c": str(rng.choice(["float", "bool", "decimal", "category", "int"])),
        "name": "text",
        "y": str(rng.choice(["float", "int", "text", "bool", "decimal", "category"])),
    }
    if rng.random() < 0.06:
        kinds[str(rng.choice(["a", "b", "c", "y"]))] = str(
            rng.choice(["text", "time", "null", "decimal"])
        )
    names = list(rng.permutation(list(kinds)))
    table = pa.table({name: arrow_column(rng, kinds[name], n) for name in names})
    if rng.random() < 0.03:
        table = table.drop_columns([str(rng.choice(names))])
    if rng.random() < 0.03:
        table = table.rename_columns(
            [str(rng.choice(["a", n])) for n in table.column_names]
        )
    return table


def same(found, expected):
    """Whether numbers are equal, nan included."""
    if len(found) != len(expected) or any(value is None for value in expected.flat):
        return len(found) == len(expected) == 0
    return np.array_equal(
        found.astype(float), expected.astype(float).reshape(found.shape), equal_nan=True
    )


def table_expected(table, source):
    """Rows of a table by way of Python's objects."""
    table.validate(full=True)
    number = lambda name: [  # noqa: E731
        np.nan if v is None else float(v) for v in table.column(name).to_pylist()
    ]
    X = np.array([number(name) for name in source.feature_names], dtype=object).T

    def check(y):
        cells = table.column("y").to_pylist()
        if y.dtype.kind == "U":
            return y.tolist() == cells
        return same(y, np.array([float(v) for v in cells], dtype=object))

    return X, check


def parquet_case(rng, folder):
    """Write a Parquet file, by pyarrow or pandas; see `csv_case`."""
    path, table = folder / "rows.parquet", arrow_table(rng)
    features = ["a", "b", "c"]
    compression = str(rng.choice(["snappy", "gzip", "zstd", "none", "lz4", "brotli"]))
    if rng.random() < 0.2 and len(set(table.column_names)) == table.num_columns:
        features = None
        frame = table.to_pandas().drop(columns="name", errors="ignore")
        if rng.random() < 0.7 and len(frame):
            frame = frame.sample(frac=1, random_state=int(rng.integers(0, 99)))
        if rng.random() < 0.3:
            frame.index.name = "id"
        frame.to_parquet(
            path, compression=None if compression == "none" else compression
        )
    else:
        pq.write_table(
            table,
            path,
            row_group_size=int(rng.integers(1, 90)),
            compression=compression,
            use_dictionary=bool(rng.random() < 0.5),
            data_page_version=str(rng.choice(["1.0", "2.0"])),
            write_page_checksum=bool(rng.random() < 0.3),
            write_page_index=bool(rng.random() < 0.3),
        )
    if rng.random() < 0.75:
        path.write_bytes(damaged(rng, path.read_bytes()))
    options = {"features": features, "block_rows": int(rng.choice([1, 7, 1000]))}

    def expected(source):
        columns = [*source.feature_names, "y"]
        if features is None:
            own = ["y", *source.feature_names]
            with contextlib.suppress(Exception):  # other metadata of pandas are damaged
                own = [*pq.read_schema(path).empty_table().to_pandas().columns]
            # Without its metadata an index is still known by its name, unlike pandas.
            own = [name for name in own if not name.startswith("__index_level_")]
            if sorted(own) != sorted(columns):
                raise ValueError("other features")
        return table_expected(
            pq.read_table(path, columns=columns, use_threads=False), source
        )

    return path, lambda: ParquetRows(path, "y", **options), expected


def arrow_case(rng, folder):
    """Write a Feather file, or make a table; see `csv_case`."""
    path, table = folder / "rows.feather", arrow_table(rng)
    options = {"features": ["a", "b", "c"], "block_rows": int(rng.choice([1, 7, 1000]))}
    if rng.random() < 0.15:
        return (
            Path("the data set"),
            lambda: ArrowRows(table, "y", **options),
            lambda source: table_expected(table, source),
        )
    pyarrow.feather.write_feather(
        table,
        path,
        compression=str(rng.choice(["lz4", "zstd", "uncompressed"])),
        chunksize=int(rng.integers(1, 90)),
    )
    if rng.random() < 0.8:
        path.write_bytes(damaged(rng, path.read_bytes()))

    def make():
        try:
            data = pyarrow.dataset.dataset(path, format="feather")
        except Exception as error:  # not ours: the user opens the file
            raise SourceError(f"{path}: {error}") from error
        return ArrowRows(data, "y", **options)

    def expected(source):
        with pa.ipc.open_file(path) as file:
            return table_expected(file.read_all(), source)

    return path, make, expected


CASES = {"csv": csv_case, "parquet": parquet_case, "arrow": arrow_case}


def run_case(reader, seed, number, folder):
    """Outcome of one case, and what happened."""
    rng = np.random.default_rng([seed, list(CASES).index(reader), number])
    path, make, expected = CASES[reader](rng, Path(folder))
    try:
        source = make()
        blocks = list(source)
    except (ValueError, TypeError) as error:
        names = (path.name, "the data set", "fragment")
        named = any(name in str(error) for name in names)
        outcome = "refused by name" if named else "error without the name"
        return outcome, f"{type(error).__name__}: {error}"
    except Exception:
        return "other exception", traceback.format_exc()
    X = np.concatenate([b.X for b in blocks]) if blocks else np.empty((0, 3))
    y = np.concatenate([b.y for b in blocks]) if blocks else np.empty(0)
    try:
        X_expected, check = expected(source)
        equal = same(X, X_expected) and check(y)
    except Exception:
        return "difference", f"only we read it: {traceback.format_exc()}"
    if equal:
        return "same rows", ""
    return "difference", f"rows differ: {X[:3]} and {X_expected[:3]}"


def main():
    """Run the cases of some readers and print a line for each; 1 if any fails."""
    parser = cases.parser_of(__doc__, 1000)
    parser.add_argument("--reader", choices=[*CASES, "all"], default="all")
    options = parser.parse_args()
    readers = list(CASES) if options.reader == "all" else [options.reader]
    failed = 0
    for reader in readers:
        run = functools.partial(run_case, reader, options.seed)
        failed |= cases.main(run, options, GOOD, f"files for {reader}")
    return failed


if __name__ == "__main__":
    sys.exit(main())
