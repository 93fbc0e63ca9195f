"""Damaged and odd files, read by the sources of rows and by an independent reader.

``python tests/fuzz/readers.py --n 20000 --seed 0`` writes small files of known kinds,
mutates them, and reads each one twice: by a source of `surff.streaming`, and by
Python's `csv`, `pyarrow.parquet.read_table` or `pyarrow.ipc`. Allowed is an error that
names the file, or exactly the rows that the other reader finds; all else is a failure,
which is printed with the number of its case. ``--case`` runs one case again. Readers
run in a process of their own, so that a crash or a hang is counted and the next case
goes on.
"""

import argparse
import bz2
import contextlib
import csv
import decimal
import faulthandler
import gzip
import io
import json
import lzma
import multiprocessing
import resource
import sys
import tempfile
import time
import traceback
import warnings
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.dataset
import pyarrow.feather
import pyarrow.parquet as pq

from surff.streaming import ArrowRows, CsvRows, ParquetRows, SourceError

#: What a case may end in; the last ones are failures.
OUTCOMES = (
    "same rows",
    "refused by name",
    "difference",
    "error without the name",
    "other exception",
    "crash",
    "hang",
)

#: Outcomes that are as they should be.
GOOD = 2

#: Seconds after which a case hangs.
TIMEOUT = 20.0

#: Memory that a reader may ask for, since damaged lengths ask for any.
MEMORY = 8 * 2**30

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
    """Outcome of one case, a place in `OUTCOMES`, and what happened."""
    rng = np.random.default_rng([seed, list(CASES).index(reader), number])
    path, make, expected = CASES[reader](rng, Path(folder))
    try:
        source = make()
        blocks = list(source)
    except (ValueError, TypeError) as error:
        names = (path.name, "the data set", "fragment")
        named = any(name in str(error) for name in names)
        return (1 if named else 3), f"{type(error).__name__}: {error}"
    except Exception:
        return 4, traceback.format_exc()
    X = np.concatenate([b.X for b in blocks]) if blocks else np.empty((0, 3))
    y = np.concatenate([b.y for b in blocks]) if blocks else np.empty(0)
    try:
        X_expected, check = expected(source)
        equal = same(X, X_expected) and check(y)
    except Exception:
        return 2, f"read, but the other reader fails: {traceback.format_exc()}"
    return (0, "") if equal else (2, f"rows differ: {X[:3]} and {X_expected[:3]}")


def work(reader, seed, numbers, folder, counts, state):
    """Run cases in a process of their own."""
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    faulthandler.enable()
    warnings.simplefilter("ignore")
    for number in numbers:
        state[0], state[1] = number, time.monotonic()
        outcome, what = run_case(reader, seed, number, folder)
        counts[outcome] += 1
        if outcome >= GOOD:
            report(reader, seed, number, outcome, what)
    state[0] = -1


def report(reader, seed, number, outcome, what):
    """Print a failure as a line of JSON."""
    fields = {"reader": reader, "seed": seed, "case": number, "what": what}
    print(json.dumps({"outcome": OUTCOMES[outcome], **fields}), flush=True)


def run(reader, n, seed, seconds):
    """Counts of the outcomes of ``n`` cases, or of as many as ``seconds`` allow."""
    context = multiprocessing.get_context("spawn")
    counts = context.Array("q", len(OUTCOMES), lock=False)
    state = context.Array("d", 2, lock=False)
    end, start = time.monotonic() + seconds, 0
    with tempfile.TemporaryDirectory() as folder:
        while start < n and time.monotonic() < end:
            state[0], state[1] = start, time.monotonic() + 60  # imports take time
            task = (reader, seed, range(start, n), folder, counts, state)
            worker = context.Process(target=work, args=task)
            worker.start()
            hangs = False
            while worker.is_alive() and time.monotonic() < end and not hangs:
                worker.join(0.2)
                hangs = time.monotonic() - state[1] > TIMEOUT and worker.is_alive()
            over = worker.is_alive() and not hangs
            if worker.is_alive():
                worker.kill()
                worker.join()
            number = int(state[0])
            if over or number < 0:
                break
            outcome = OUTCOMES.index("hang" if hangs else "crash")
            counts[outcome] += 1
            report(reader, seed, number, outcome, f"exit code {worker.exitcode}")
            start = number + 1
    return dict(zip(OUTCOMES, counts, strict=True))


def main():
    """Run the cases of some readers and print a line for each; 1 if any fails."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--n", type=int, default=1000, help="cases per reader")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=600, help="most per reader")
    parser.add_argument("--reader", choices=[*CASES, "all"], default="all")
    parser.add_argument("--case", type=int, help="run this case alone")
    options = parser.parse_args()
    readers = list(CASES) if options.reader == "all" else [options.reader]
    failed = False
    for reader in readers:
        if options.case is not None:
            with tempfile.TemporaryDirectory() as folder:
                print(*run_case(reader, options.seed, options.case, folder), sep="\n")
            continue
        start = time.monotonic()
        counts = run(reader, options.n, options.seed, options.seconds)
        took = time.monotonic() - start
        print(f"{reader}: {sum(counts.values())} cases in {took:.0f} s: {counts}")
        failed |= any(list(counts.values())[GOOD:])
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
