"""Commands on a table of the user's: fit, predict, evaluate, compare, inspect.

They parse, call `surff.fit` and `surff.tables`, and print plain lines, which no
terminal or pipe cuts. What a user can correct is one line on stderr and exit code 2;
Ctrl-C is exit code 130.
"""

from __future__ import annotations

import contextlib
import csv
import json
import logging
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer

__all__ = ["register"]

#: Ends of the names of compressed files, by their first bytes.
COMPRESSED = {
    b"\x1f\x8b": ".csv.gz",
    b"\xfd7zXZ": ".csv.xz",
    b"BZh": ".csv.bz2",
    b"PK\x03\x04": ".csv.zip",
}

File = Annotated[
    str, typer.Argument(help="CSV, Parquet, Arrow or LIBSVM file; - is stdin.")
]
Model = Annotated[Path, typer.Argument(help="Model file that `surff fit -o` wrote.")]
Target = Annotated[
    str | None, typer.Option("--target", "-t", help="Column with the targets.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Plot = Annotated[
    Path | None, typer.Option(help="Picture to write: .png, .svg or .pdf.")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print no progress.")]
Missing = Annotated[
    list[str] | None, typer.Option(help="Words of missing cells; NA, ? ... are known.")
]
Delimiter = Annotated[
    str | None, typer.Option(help="Separator of a text file; guessed by default.")
]
Decimal = Annotated[
    str | None, typer.Option(help="Decimal mark of a text file; guessed by default.")
]
Encoding = Annotated[
    str | None, typer.Option(help="Encoding of a text file; guessed by default.")
]
Header = Annotated[
    bool | None,
    typer.Option(
        "--header/--no-header", help="Whether the first line holds names; guessed."
    ),
]
Task = Annotated[str, typer.Option(help="regression, classification or auto.")]


def text_options(missing, delimiter, decimal, encoding, header):
    """Options of text files that were given."""
    delimiter = {"tab": "\t", "\\t": "\t"}.get(delimiter, delimiter)
    given = {
        "missing": missing or None,
        "delimiter": delimiter,
        "decimal": decimal,
        "encoding": encoding,
        "header": header,
    }
    return {name: value for name, value in given.items() if value is not None}


@contextlib.contextmanager
def one_line_of(*expected: type[Exception]) -> Iterator[None]:
    """Turn errors that a user can correct into one line and exit code 2."""
    try:
        yield
    except expected as error:
        message = str(error)
        if isinstance(error, ModuleNotFoundError) and error.name:
            package = error.name.partition(".")[0]
            message = (
                f"{package} is not installed; it comes with the extra surff[cli]: "
                "pip install 'surff[cli]'"
            )
        typer.echo(f"surff: {' '.join(message.split())}", err=True)
        raise typer.Exit(2) from error


@contextlib.contextmanager
def plainly() -> Iterator[None]:
    """Errors as one line, an interrupt as exit code 130."""
    with one_line_of(ValueError, TypeError, ImportError, OSError):
        try:
            yield
        except KeyboardInterrupt:
            typer.echo("surff: stopped.", err=True)
            raise typer.Exit(130) from None
        except BrokenPipeError:
            # Who reads has enough, as `head` does.
            sys.stdout = None
            raise typer.Exit(0) from None


@contextlib.contextmanager
def as_path(file: str) -> Iterator[str]:
    """Path of a file; standard input is written to one, since it is read twice."""
    if file != "-":
        yield file
        return
    with tempfile.TemporaryDirectory(prefix="surff-") as folder:
        path = Path(folder, "standard-input")
        with path.open("wb") as copy:
            shutil.copyfileobj(typer.get_binary_stream("stdin"), copy)
        with path.open("rb") as copy:
            start = copy.read(6)
        for magic, suffix in COMPRESSED.items():
            if start.startswith(magic):
                path = path.rename(path.with_name(path.name + suffix))
        yield str(path)


def show_steps(quiet: bool, first: str = "") -> None:
    """Let the library tell its steps on stderr; the first line before it is loaded."""
    if first and not quiet:
        typer.echo(f"surff: {first}", err=True)
    logging.getLogger("surff").setLevel(logging.WARNING if quiet else logging.INFO)


def as_json(value: Any) -> None:
    """Print a value as JSON."""
    typer.echo(json.dumps(value, indent=2, ensure_ascii=False))


def loaded(path: Path) -> Any:
    """Model of a file that `surff fit` wrote."""
    import surff

    model = surff.load(path)
    if not isinstance(model, surff.TableModel):
        raise TypeError(
            f"{path} holds a {type(model).__name__}, not a model of `surff fit`; use "
            "surff.load in Python."
        )
    return model


def check_model_file(path: Path) -> None:
    """Refuse what a model could not be written to, before it is fitted."""
    if not path.absolute().parent.is_dir():
        raise OSError(f"{path}: there is no folder {path.parent} to write to.")
    if not os.access(path.absolute().parent, os.W_OK):
        raise OSError(f"{path}: nothing can be written to the folder {path.parent}.")
    if find_spec("skops") is None:
        raise ImportError(
            "model files need skops: pip install 'surff[persist]', or fit without "
            "--out."
        )


def target_of(model: Any, target: str | None, path: Path) -> str:
    """Target of a model, if none was named."""
    target = target or getattr(model, "account_", {}).get("target")
    if target is None:
        raise ValueError(f"{path} does not know its target; name it by --target.")
    return target


def fit(
    file: File,
    target: Annotated[str, typer.Option("--target", "-t", help="Column to predict.")],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Model file to write.")
    ] = None,
    task: Task = "auto",
    max_time: Annotated[
        float, typer.Option("--max-time", help="Seconds that it may take, about.")
    ] = 60.0,
    drop: Annotated[
        list[str] | None, typer.Option(help="Columns to leave out.")
    ] = None,
    categorical: Annotated[
        list[str] | None, typer.Option(help="Columns of numbers that are categories.")
    ] = None,
    compare: Annotated[
        bool,
        typer.Option("--compare/--no-compare", help="Fit other models beside it."),
    ] = True,
    seed: Annotated[int, typer.Option(help="Seed of all random choices.")] = 0,
    missing: Missing = None,
    delimiter: Delimiter = None,
    decimal: Decimal = None,
    encoding: Encoding = None,
    header: Header = None,
    json: AsJson = False,
    quiet: Quiet = False,
):
    """Fit a model to a table and say how good it is."""
    show_steps(quiet, f"{file}: fitted in {max_time:g} s at most (--max-time)")
    with plainly(), as_path(file) as path:
        import surff

        if out is not None:
            check_model_file(out)
        model = surff.fit(
            path,
            target=target,
            task=task,
            max_time=max_time,
            drop=drop or [],
            categorical=categorical or [],
            compare=compare,
            random_state=seed,
            verbose=0 if quiet else 1,
            **text_options(missing, delimiter, decimal, encoding, header),
        )
        if out is not None:
            surff.save(model, out)
        if json:
            as_json({**model.account, "model": None if out is None else str(out)})
        elif out is None:
            typer.echo(model.account)
            typer.echo("the model was not kept: -o model.skops writes it")
        else:
            typer.echo(model.account)
            typer.echo(f"written to {out}")
        if any(note.startswith("stopped") for note in model.account["notes"]):
            raise KeyboardInterrupt


def predict(
    model: Model,
    file: File,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="CSV file to write; stdout by default."),
    ] = None,
    missing: Missing = None,
    delimiter: Delimiter = None,
    decimal: Decimal = None,
    encoding: Encoding = None,
    header: Header = None,
    json: AsJson = False,
    quiet: Quiet = True,
):
    """Predict the rows of a table, one line per row."""
    show_steps(quiet)
    with plainly(), as_path(file) as path:
        import surff

        fitted = loaded(model)
        options = text_options(missing, delimiter, decimal, encoding, header)
        source = surff.tables.table_for(fitted, path, **options)
        name = getattr(fitted, "account_", {}).get("target", "prediction")
        with contextlib.ExitStack() as stack:
            stream: Any = sys.stdout
            if out is not None:
                stream = stack.enter_context(out.open("w", newline=""))
            writer = csv.writer(stream, lineterminator="\n")
            if not json or out is not None:
                writer.writerow([name])
            n_rows, found = 0, []
            for values, _ in surff.tables.predicted_blocks(fitted, source):
                n_rows += len(values)
                if json and out is None:
                    found += values.tolist()
                else:
                    writer.writerows([value] for value in values.tolist())
        if json:
            as_json({"rows": n_rows, "out": str(out)} if out else {name: found})
        elif out is not None:
            typer.echo(f"{n_rows:,} predictions written to {out}")


def evaluate(
    model: Model,
    file: File,
    target: Target = None,
    missing: Missing = None,
    delimiter: Delimiter = None,
    decimal: Decimal = None,
    encoding: Encoding = None,
    header: Header = None,
    json: AsJson = False,
    plot: Plot = None,
):
    """Score a model on a table with targets."""
    with plainly(), as_path(file) as path:
        import surff

        fitted = loaded(model)
        target = target_of(fitted, target, model)
        options = text_options(missing, delimiter, decimal, encoding, header)
        source = surff.tables.table_for(fitted, path, target, **options)
        scores = surff.tables.evaluation(fitted, source)
        if plot is not None:
            surff.tables.plot_evaluation(scores, plot)
        shown = {k: v for k, v in scores.items() if k not in ("true", "predicted")}
        if json:
            as_json(shown)
            return
        confusion, classes = shown.pop("confusion", None), shown.pop("classes", None)
        for name, value in shown.items():
            text = f"{value:,}" if isinstance(value, int) else f"{value:.4f}"
            typer.echo(f"{name}: {text}")
        if confusion is not None:
            typer.echo("confusion (rows are true classes):")
            rows = [["", *classes], *([c, *r] for c, r in zip(classes, confusion))]  # noqa: B905
            typer.echo(aligned(rows))
        if plot is not None:
            typer.echo(f"picture: {plot}")


def compare(
    file: File,
    target: Annotated[str, typer.Option("--target", "-t", help="Column to predict.")],
    methods: Annotated[
        list[str] | None, typer.Option(help="Methods by name; all by default.")
    ] = None,
    sizes: Annotated[
        list[int] | None, typer.Option(help="Numbers of features; 128 and 512.")
    ] = None,
    trials: Annotated[int, typer.Option(help="Splits of the rows.")] = 3,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Results, FILE.compare.jsonl by default."),
    ] = None,
    task: Task = "auto",
    missing: Missing = None,
    delimiter: Delimiter = None,
    decimal: Decimal = None,
    encoding: Encoding = None,
    header: Header = None,
    json: AsJson = False,
    quiet: Quiet = False,
):
    """Compare methods and sizes on the same splits of a table; goes on where it was."""
    show_steps(quiet)
    with plainly(), as_path(file) as path:
        import surff
        from surff.experiments import ResultStore

        if out is None:
            name = "standard-input" if file == "-" else Path(file).name
            out = Path(f"{name}.{target}.compare.jsonl")
        store = ResultStore(out, ("table", "method", "size", "trial"))
        known = surff.tables.COMPARED
        methods, sizes = methods or [*known], sizes or [128, 512]
        n_fits = trials * sum(len(sizes) if known.get(m) else 1 for m in methods)
        rows = surff.tables.comparison(
            path,
            target,
            methods=methods,
            sizes=sizes,
            trials=trials,
            task=task,
            done=store.rows,
            **text_options(missing, delimiter, decimal, encoding, header),
        )
        table, stopped = stored(rows, store, out, quiet, n_fits)
        shown = [row for row in store.rows if row["table"] == table]
        if json:
            as_json(shown)
        elif shown:
            typer.echo(comparison_lines(shown))
            typer.echo(f"results: {out}")
        if (others := len(store) - len(shown)) and not json:
            typer.echo(f"{others} results there are of another table or task")
        if stopped:
            raise typer.Exit(130)


def stored(
    rows: Iterator[dict], store: Any, out: Path, quiet: bool, n_fits: int
) -> tuple[str | None, bool]:
    """Store results as they come; returns their table, and whether it was stopped."""
    table, start, n_new = None, time.monotonic(), 0
    try:
        for done, row in enumerate(rows, 1):
            table = row["table"]
            if tuple(row[name] for name in store.key) in store:
                continue
            store.append([row])
            n_new += 1
            if not quiet:
                left = (time.monotonic() - start) / n_new * (n_fits - done)
                typer.echo(
                    f"surff: {row['method']} {row['size'] or ''} trial "
                    f"{row['trial'] + 1}: {row['score']:.4f}, {row['seconds']:.1f} s; "
                    f"{done} of {n_fits} fits, about {left:.0f} s left",
                    err=True,
                )
    except KeyboardInterrupt:
        typer.echo(
            f"surff: stopped; what is finished is in {out}, and the same command goes "
            "on.",
            err=True,
        )
        return table, True
    return table, False


def comparison_lines(rows: list[dict]) -> str:
    """Mean score and time of each method and size, best first."""
    from surff.experiments import summarise

    groups: dict[tuple, list[dict]] = {}
    for row in rows:
        groups.setdefault((row["method"], row["size"]), []).append(row)
    table = []
    for (method, size), group in groups.items():
        mean, spread, n = summarise([row["score"] for row in group])
        seconds = summarise([row["seconds"] for row in group]).mean
        error = f"{spread:.4f}" if n > 1 else "-"
        cells = [method, size or "-", f"{mean:.4f}", error, f"{seconds:.1f}", n]
        table.append((mean, cells))
    head = ["method", "size", rows[0]["metric"], "sd", "seconds", "trials"]
    ranked = [cells for _, cells in sorted(table, key=lambda item: -item[0])]
    return aligned([head, *ranked])


def aligned(rows: list[list]) -> str:
    """Cells in columns, the first to the left and the others to the right."""
    texts = [[str(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    lines = []
    for first, *others in texts:
        right = [c.rjust(w) for c, w in zip(others, widths[1:], strict=True)]
        lines.append("  ".join([first.ljust(widths[0]), *right]).rstrip())
    return "\n".join(lines)


def inspect(
    model: Model,
    file: Annotated[
        str | None, typer.Argument(help="Table with targets, for the importance.")
    ] = None,
    target: Target = None,
    missing: Missing = None,
    delimiter: Delimiter = None,
    decimal: Decimal = None,
    encoding: Encoding = None,
    header: Header = None,
    json: AsJson = False,
    plot: Plot = None,
):
    """Say what a model is, and with a table which columns matter."""
    with plainly(), as_path(file or "") as path:
        import surff

        fitted = loaded(model)
        found: dict[str, Any] = {"account": getattr(fitted, "account_", {})}
        if path:
            options = text_options(missing, delimiter, decimal, encoding, header)
            name = target_of(fitted, target, model)
            source = surff.tables.table_for(fitted, path, name, **options)
            found["importance"] = importance_of(fitted, source)
        if plot is not None:
            if not path:
                raise ValueError("--plot draws the importance, which needs a FILE.")
            shuffled = {k: v["permutation"] for k, v in found["importance"].items()}
            surff.tables.plot_importance(
                shuffled, plot, "fall of the score when shuffled"
            )
        if json:
            as_json(found)
            return
        if found["account"]:
            typer.echo(surff.tables.Account(found["account"]))
        else:
            typer.echo(fitted.encoder.describe())
        if path:
            typer.echo("\nimportance: fall of the score when a column is shuffled")
            head = ["column", "fall", "+-", "gradient"]
            rows = [
                [
                    name,
                    f"{entry['permutation'][0]:.4f}",
                    f"{entry['permutation'][1]:.4f}",
                    f"{entry['gradient']:.4f}",
                ]
                for name, entry in found["importance"].items()
            ]
            typer.echo(aligned([head, *rows]))
        if plot is not None:
            typer.echo(f"picture: {plot}")


def importance_of(model: Any, source: Any) -> dict[str, dict[str, Any]]:
    """Importance of the columns of a table by shuffling and by gradients."""
    import surff

    shuffled = surff.tables.permutation_importance(model, source)
    gradients = surff.tables.gradient_importance(model, source)
    return {
        name: {"permutation": value, "gradient": gradients[name]}
        for name, value in shuffled.items()
    }


def register(app: typer.Typer, cls: Any) -> None:
    """Add the commands to an application."""
    for function in (fit, predict, evaluate, compare, inspect):
        app.command(cls=cls)(function)
