"""The commands: parse, call, print. All else is in `surff.experiments` and below.

Imports of anything heavy are inside the commands, so that ``--help`` is quick. Options
that take several values take them after one name, ``--multiples 1 2 4``, or after
several, ``--multiples 1 --multiples 2``.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from surff.cli import tables

if TYPE_CHECKING:
    from surff.experiments import Report, ResultStore

__all__ = ["app"]

#: What typer raises for a wrong command line; some versions bring a click of their own.
UsageError: Any = typer.BadParameter.__bases__[0]


@contextlib.contextmanager
def one_line() -> Iterator[None]:
    """Print what is wrong with a command line as one line; exit code 2."""
    try:
        yield
    except UsageError as error:
        if type(error).__name__ == "NoArgsIsHelpError":
            raise
        typer.echo(f"surff: {error.format_message()}", err=True)
        raise typer.Exit(2) from error


class Group(TyperGroup):
    """A group of commands whose errors are one line."""

    def resolve_command(self, ctx, args):
        """Find the command; see `one_line`."""
        with one_line():
            return super().resolve_command(ctx, args)

    def parse_args(self, ctx, args):
        """Parse; see `one_line`."""
        with one_line():
            return super().parse_args(ctx, args)


class SeveralValues(TyperCommand):
    """A command whose repeatable options take several values after one name."""

    def parse_args(self, ctx, args):
        """Turn ``--multiples 1 2`` into ``--multiples 1 --multiples 2``, then parse."""
        repeatable = {
            name
            for parameter in self.params
            if getattr(parameter, "multiple", False)
            for name in parameter.opts
        }
        with one_line():
            return super().parse_args(ctx, repeat_options(args, repeatable))


app = typer.Typer(
    name="surff",
    cls=Group,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


datasets_app = typer.Typer(
    cls=Group, no_args_is_help=True, help="The data sets: list, fetch."
)
app.add_typer(datasets_app, name="datasets")


def repeat_options(args: Sequence[str], repeatable: Collection[str]) -> list[str]:
    """Repeat the name of an option before each of its values.

    Parameters
    ----------
    args : list of str
        The command line.
    repeatable : set of str
        Options that take several values.

    Returns
    -------
    args : list of str

    Examples
    --------
    >>> repeat_options(["-n", "1", "2", "--out", "x"], {"-n"})
    ['-n', '1', '-n', '2', '--out', 'x']
    """
    repeated: list[str] = []
    name, n_values = None, 0
    for arg in args:
        if arg.startswith("-"):
            name, n_values = (arg if arg in repeatable else None), 0
        elif name is not None:
            n_values += 1
            if n_values > 1:
                repeated.append(name)
        repeated.append(arg)
    return repeated


@contextlib.contextmanager
def plain_errors(*more: type[Exception]) -> Iterator[None]:
    """Turn errors that a user can correct into one line and exit code 2.

    Parameters
    ----------
    *more : type
        Exceptions besides those of files, data sets and missing extras.
    """
    from surff.datasets import DatasetCorruptError
    from surff.experiments import StoreCorruptError

    expected = (DatasetCorruptError, StoreCorruptError, ImportError, OSError, *more)
    with tables.one_line_of(*expected):
        yield


def _integer(text):
    # The parser may see its own result, or a default that is a number already.
    try:
        return int(text)
    except ValueError as error:
        raise typer.BadParameter(f"must be an integer, got {text!r}.") from error


Datasets = Annotated[
    list[str],
    typer.Option(help="Data sets; `surff datasets list` lists them."),
]
Large = Annotated[bool, typer.Option("--large", help="Run covtype above 16 d too.")]
Method = Annotated[
    list[str],
    typer.Option(
        metavar="MODULE:OBJECT",
        help="A method of your own: a draw, selector, adaptation, features or, in "
        "`benchmark`, an estimator. The module may lie in the working directory.",
    ),
]
Multiples = Annotated[
    list[int],
    typer.Option(
        help="Numbers of frequencies s, in multiples of the columns d.",
        parser=_integer,
        metavar="<list[int]>",
    ),
]
Out = Annotated[Path, typer.Option(help="Directory for results, tables and pictures.")]
Protocol = Annotated[
    str,
    typer.Option(
        help="published (what makes the printed table), literal (Algorithm 1 as "
        "printed) or fair (gamma and alpha chosen for every method)."
    ),
]
Seed = Annotated[
    int,
    typer.Option(help="Seed of all random choices.", parser=_integer, metavar="<int>"),
]
Trials = Annotated[
    int, typer.Option(help="Repetitions.", parser=_integer, metavar="<int>")
]
Weights = Annotated[
    str,
    typer.Option(help="Reading of the weights of `published`: own or sorted."),
]


@app.command(cls=SeveralValues)
def table2(
    datasets: Datasets = ["eeg", "magic04", "cod-rna", "covtype"],  # noqa: B006
    multiples: Multiples = [1, 2, 4, 8, 16, 32, 64, 128],  # noqa: B006
    trials: Trials = 10,
    protocol: Protocol = "published",
    weights: Weights = "own",
    ablation: Annotated[
        bool, typer.Option("--ablation", help="Add RFF with other grids of alpha.")
    ] = False,
    methods: Annotated[
        list[str],
        typer.Option(
            help="Methods by name; `paper` is the paper's four, `all` is every one "
            "(protocol fair)."
        ),
    ] = ["paper"],  # noqa: B006
    method: Method = [],  # noqa: B006
    large: Large = False,
    seed: Seed = 0,
    out: Out = Path("results"),
):
    """Accuracy and generation time of the methods, compared with the paper."""
    from surff.experiments import METHODS, Table2, add_method, all_methods

    sets = {"paper": METHODS, "all": all_methods()}
    with plain_errors(ValueError, TypeError):
        own = [add_method(text) for text in method]
        config = Table2(
            datasets=tuple(datasets),
            multiples=tuple(multiples),
            trials=trials,
            protocol=protocol,
            weights=weights,
            ablation=ablation,
            methods=(*(name for m in methods for name in sets.get(m, (m,))), *own),
            large=large,
            seed=seed,
        )
    _table2(config, out)


def _table2(config, out):
    from surff.experiments import run_table2, table2_report

    _left_out(config)
    _carry_out(config, out, "results.jsonl", run_table2, table2_report)


def _left_out(config):
    for name, multiples in config.left_out().items():
        sizes = ", ".join(f"{multiple}d" for multiple in multiples)
        typer.echo(
            f"{name}: {sizes} left out, which take hours and 10 GB or more; --large "
            "runs them.",
            err=True,
        )


def _carry_out(
    config: Any,
    out: Path,
    file: str,
    run: Callable[[Any, ResultStore, int], None],
    report: Callable[[Any, list[dict]], Report],
) -> None:
    """Run what is missing and show its progress; show and write what there is.

    Exits with code 130 after Ctrl-C, and with 2 after an error that a user can correct.
    """
    from surff.experiments import ResultStore, select_rows

    finished = True
    with plain_errors():
        out.mkdir(parents=True, exist_ok=True)
        store = ResultStore(out / file, config.KEY)
        try:
            run(config, store, 1)
        except KeyboardInterrupt:
            finished = False
            typer.echo(
                f"Stopped. Finished trials are in {out}; run the same command to "
                "resume.",
                err=True,
            )
        if rows := select_rows(config, store.rows):
            _show(report(config, rows), out)
    if not finished:
        raise typer.Exit(130)


def _show(report, out):
    """Print a report and write its files."""
    from surff.experiments import wide_console

    console = wide_console()
    report.show(console)
    names = " ".join(path.name for path in report.write(out))
    console.print(f"written to {out}: {names}", highlight=False, soft_wrap=True)


@app.command(cls=SeveralValues)
def figure1(
    dataset: Annotated[str, typer.Option(help="Data set.")] = "eeg",
    multiples: Multiples = [1, 2, 4, 8, 16, 32, 64, 128],  # noqa: B006
    trials: Trials = 10,
    protocol: Protocol = "published",
    large: Large = False,
    seed: Seed = 0,
    out: Out = Path("results"),
):
    """Kernel error, accuracy and generation time of the four methods against s."""
    from surff import experiments

    with plain_errors(ValueError):
        config = experiments.Table2(
            datasets=(dataset,),
            multiples=tuple(multiples),
            trials=trials,
            protocol=protocol,
            large=large,
            seed=seed,
        )
    _left_out(config)
    with plain_errors():
        errors = experiments.ResultStore(out / "figure1.jsonl")

    def run(config, store, verbose):
        experiments.run_figure1(config, store, errors, verbose)

    def report(config, rows):
        found = experiments.select_rows(config, errors.rows)
        return experiments.figure1_report(config, rows, found)

    _carry_out(config, out, "results.jsonl", run, report)


def _all_or_names(names, every):
    if names == ["none"]:
        return ()
    return tuple(every) if names == ["all"] else tuple(dict.fromkeys(names))


def _number_or_name(text):
    try:
        return float(text)
    except ValueError:
        return text


@app.command(cls=SeveralValues)
def approximation(
    dataset: Annotated[str, typer.Option(help="Data set, any of the list.")] = "eeg",
    kernel: Annotated[str, typer.Option(help="Kernel, by name.")] = "rbf",
    draws: Annotated[
        list[str], typer.Option(help="Draws of frequencies: all, or names.")
    ] = ["all"],  # noqa: B006
    landmarks: Annotated[
        list[str], typer.Option(help="Nystrom landmark rules: all, none, or names.")
    ] = ["all"],  # noqa: B006
    multiples: Multiples = [1, 2, 4, 8, 16, 32],  # noqa: B006
    trials: Trials = 10,
    gamma: Annotated[
        str, typer.Option(help="Bandwidth: scale, median or a number.")
    ] = "scale",
    alpha: Annotated[
        float, typer.Option(help="Regularisation in Delta, relative to the rows n.")
    ] = 1e-3,
    seed: Seed = 0,
    out: Out = Path("results"),
):
    """Errors of the kernel approximation against s, of every draw and landmark rule."""
    from surff import experiments

    with plain_errors(ValueError):
        config = experiments.Approximation(
            dataset=dataset,
            kernel=kernel,
            draws=_all_or_names(draws, experiments.DRAW_NAMES),
            landmarks=_all_or_names(landmarks, experiments.LANDMARKS),
            multiples=tuple(multiples),
            trials=trials,
            gamma=_number_or_name(gamma),
            alpha=alpha,
            seed=seed,
        )
    run, report = experiments.run_approximation, experiments.approximation_report
    _carry_out(config, out, "approximation.jsonl", run, report)


@app.command(cls=SeveralValues)
def benchmark(
    suite: Annotated[
        str, typer.Option(help="Tasks: core, uci, extended or embedded (no files).")
    ] = "core",
    tasks: Annotated[
        list[str] | None, typer.Option(help="Tasks by name, in place of a suite.")
    ] = None,
    methods: Annotated[list[str], typer.Option(help="Methods: all, or names.")] = [  # noqa: B006
        "all"
    ],
    method: Method = [],  # noqa: B006
    data: Annotated[
        Path | None,
        typer.Option(help="Table of your own, CSV or Parquet, in place of the tasks."),
    ] = None,
    target: Annotated[
        str | None, typer.Option(help="Column of --data to predict.")
    ] = None,
    multiples: Multiples = [1, 4, 16],  # noqa: B006
    splits: Annotated[
        int, typer.Option(help="Repetitions.", parser=_integer, metavar="<int>")
    ] = 10,
    seed: Seed = 0,
    out: Out = Path("results"),
):
    """Score against frequencies, fit time and model bytes of many models."""
    from surff import experiments

    with plain_errors(ValueError, TypeError):
        if (data is None) != (target is None):
            raise ValueError("--data FILE and --target COLUMN belong together.")
        if data is not None:
            tasks = [*(tasks or ()), experiments.task_of_file(data, target)]
        own = [experiments.add_method(text) for text in method]
        if tasks is None and suite not in experiments.SUITES:
            raise ValueError(
                f"suite must be one of {', '.join(experiments.SUITES)}, got {suite!r}."
            )
        config = experiments.Benchmark(
            tasks=tuple(tasks or experiments.SUITES[suite]),
            methods=(*_all_or_names(methods, experiments.method_labels()), *own),
            multiples=tuple(multiples),
            splits=splits,
            seed=seed,
        )
    for method in config.methods:
        if method in experiments.PACKAGES and (
            reason := experiments.why_not(method, 1, 1)
        ):
            typer.echo(f"{method} is left out: it needs {reason}.")
    run, report = experiments.run_benchmark, experiments.benchmark_report
    _carry_out(config, out, "benchmark.jsonl", run, report)


@app.command(cls=SeveralValues)
def table3(out: Out = Path("results")):
    """Features needed by decay of the eigenvalues, computed, with theory's slopes."""
    from surff.experiments import table3_report, table3_rows

    with plain_errors():
        _show(table3_report(table3_rows()), out)


@app.command(cls=SeveralValues)
def report(
    folder: Annotated[Path, typer.Argument(help="Where commands wrote results.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The page to write.")] = Path(
        "report.html"
    ),
):
    """One page of all results in a directory, to open in any browser, offline."""
    from surff.experiments import write_report

    with plain_errors(ValueError, ImportError):
        typer.echo(str(write_report(folder, out)))


@app.command(cls=SeveralValues)
def demo(
    out: Annotated[Path, typer.Option(help="Directory for what it makes.")] = Path(
        "demo"
    ),
):
    """The paper's table at a few sizes and three trials, in about a minute."""
    from surff.experiments import Table2

    with plain_errors():
        config = Table2(("eeg", "magic04"), multiples=(1, 4, 16, 32), trials=3)
        names = _found(config.datasets)
        if names:
            config = replace(config, datasets=names)
        else:
            # The recipe for the paper's sets learns nothing from the 64 columns of
            # digits: it has one bandwidth for all.
            config = Table2(
                ("breast_cancer", "digits"), (1, 2, 4), trials=3, protocol="fair"
            )
            typer.echo(
                f"THIS DEMO RUNS ON {' AND '.join(config.datasets)} INSTEAD, which "
                "come with scikit-learn, with protocol fair. The paper has no numbers "
                "for them, so there is nothing to compare with.",
                err=True,
            )
    _table2(config, out)
    for name in config.datasets:
        typer.echo(f"picture: {out / f'table2-{name}.png'}")


def _found(names):
    """Data sets among ``names`` that are on disk or could be downloaded."""
    from surff.datasets import DatasetNotFoundError, fetch, status

    found = []
    for name in names:
        with contextlib.suppress(DatasetNotFoundError):
            if not status(name).found:
                typer.echo(f"{name}: not found, trying to download it", err=True)
                fetch(name)
            found.append(name)
    missing = [name for name in names if name not in found]
    if missing:
        typer.echo(
            f"{' and '.join(missing)}: not found, and the download failed; `surff "
            f"datasets fetch {' '.join(missing)}` says why and what else to do.",
            err=True,
        )
    return tuple(found)


@datasets_app.command("list", cls=SeveralValues)
def list_datasets():
    """The data sets, and where each was found."""
    from rich import box
    from rich.table import Table

    from surff.datasets import DATASETS, status
    from surff.experiments import wide_console

    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column("name", style="bold", no_wrap=True)
    table.add_column("rows", justify="right")
    table.add_column("columns", justify="right")
    table.add_column("classes", justify="right")
    table.add_column("found in", no_wrap=True)
    table.add_column("title; licence")
    with plain_errors():
        for name, data in DATASETS.items():
            where = status(name).where
            table.add_row(
                name,
                "\n".join(f"{n:,}" for n in data.n_samples.values()),
                str(data.n_features),
                str(len(data.classes) or "-"),
                f"[yellow]{where}[/yellow]" if "missing" in where else where,
                f"{data.title}; [dim]{data.licence.partition(';')[0]}[/dim]",
            )
    console = wide_console()
    console.print(table)
    console.print(
        "missing: `surff datasets fetch NAME` downloads it; files are looked for in "
        "$SURFF_DATA, then in the user cache.",
        style="dim",
        highlight=False,
    )


@datasets_app.command("fetch", cls=SeveralValues)
def fetch_datasets(
    names: Annotated[list[str], typer.Argument(help="Names from the list.")],
):
    """Download the files of data sets that are missing, and check them."""
    from surff.datasets import fetch, status

    with plain_errors(ValueError):
        for name in names:
            status(name)
    with plain_errors():
        for name in names:
            for path in fetch(name):
                typer.echo(f"{name}: {path}")
            if not status(name).files:
                typer.echo(f"{name}: comes with scikit-learn, needs no file")


tables.register(app, SeveralValues)


def _version(asked: bool):
    if asked:
        from surff import __version__

        typer.echo(f"surff {__version__}")
        raise typer.Exit


@app.callback()
def surff(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_version, is_eager=True, help="Show the version."
        ),
    ] = False,
):
    """Kernel learning with random features: models of tables, and the paper."""
    del version  # its callback has exited
    logging.basicConfig(format="surff: %(message)s")
