"""The commands: parse, call, print. All else is in `surff.experiments` and below.

Imports of anything heavy are inside the commands, so that ``--help`` is quick. Options
that take several values take them after one name, ``--multiples 1 2 4``, or after
several, ``--multiples 1 --multiples 2``.
"""

import contextlib
import logging
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from typer.core import TyperCommand

__all__ = ["app"]

app = typer.Typer(
    name="surff",
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


datasets_app = typer.Typer(no_args_is_help=True, help="The data sets: list, fetch.")
app.add_typer(datasets_app, name="datasets")


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
        return super().parse_args(ctx, repeat_options(args, repeatable))


def repeat_options(args, repeatable):
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
    repeated, name, n_values = [], None, 0
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
def plain_errors(*more):
    """Turn what a user can mend into one line and exit code 2.

    Parameters
    ----------
    *more : type
        Exceptions besides those of files, data sets and missing extras.
    """
    from surff.datasets import DatasetCorruptError
    from surff.experiments.store import StoreCorruptError

    expected = (DatasetCorruptError, StoreCorruptError, ImportError, OSError, *more)
    try:
        yield
    except expected as error:
        message = str(error)
        if isinstance(error, ModuleNotFoundError):
            message = (
                f"{error.name} is not installed; it comes with the extra surff[cli]: "
                "pip install 'surff[cli]'"
            )
        typer.echo(f"surff: {message}", err=True)
        raise typer.Exit(2) from error


def _integer(text):
    # The parser may see its own result, or a default that is a number already.
    try:
        return int(text)
    except ValueError as error:
        raise typer.BadParameter(f"must be an integer, got {text!r}.") from error


Datasets = Annotated[
    list[str],
    typer.Option(help="Data sets; `surff datasets list` tells which there are."),
]
Large = Annotated[bool, typer.Option("--large", help="Run covtype above 16 d too.")]
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
    typer.Option(help="Of everything random.", parser=_integer, metavar="<int>"),
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
        bool, typer.Option("--ablation", help="Take RFF's part of the gain apart.")
    ] = False,
    methods: Annotated[
        list[str],
        typer.Option(
            help="Methods by name; `paper` is the paper's four, `all` is every one "
            "(protocol fair)."
        ),
    ] = ["paper"],  # noqa: B006
    large: Large = False,
    seed: Seed = 0,
    printed: Annotated[
        Path | None,
        typer.Option(
            help="CSV of the paper's cells (dataset,multiple,method,accuracy,std; "
            "percent), over those that surff has."
        ),
    ] = None,
    out: Out = Path("results"),
):
    """Accuracy and generation time of the methods, beside the paper's."""
    from surff.experiments.methods import METHODS, all_methods
    from surff.experiments.printed import printed_table
    from surff.experiments.table2 import Table2

    sets = {"paper": METHODS, "all": all_methods()}
    with plain_errors(ValueError):
        config = Table2(
            datasets=tuple(datasets),
            multiples=tuple(multiples),
            trials=trials,
            protocol=protocol,
            weights=weights,
            ablation=ablation,
            methods=tuple(name for m in methods for name in sets.get(m, (m,))),
            large=large,
            seed=seed,
        )
        cells = printed_table(printed)
    with plain_errors():
        finished = _run_table2(config, cells, out)
    if not finished:
        raise typer.Exit(130)


def _left_out(config):
    for name, multiples in config.left_out().items():
        sizes = ", ".join(f"{multiple}d" for multiple in multiples)
        typer.echo(
            f"{name}: {sizes} left out, they take hours and 10 GB and more; --large "
            "runs them.",
            err=True,
        )


def _until_stopped(run, out):
    """Call ``run`` with a progress bar, until it ends or Ctrl-C.

    Returns
    -------
    finished : bool
    """
    from surff.experiments.progress import RunProgress

    try:
        with RunProgress() as progress:
            run(progress)
    except KeyboardInterrupt:
        typer.echo(
            f"stopped: what was finished is in {out}, the same command goes on there.",
            err=True,
        )
        return False
    return True


def _run_table2(config, printed, out):
    """Run what is missing, show and write what is there; False after Ctrl-C."""
    from surff.experiments.store import ResultStore
    from surff.experiments.table2 import run_table2, select_rows

    _left_out(config)
    out.mkdir(parents=True, exist_ok=True)
    store = ResultStore(out / "results.jsonl")
    finished = _until_stopped(lambda bar: run_table2(config, store, bar), out)
    rows = select_rows(config, store.rows)
    if rows:
        _show(config, rows, out, printed)
    return finished


def _show(config, rows, out, printed):
    from rich.console import Console

    from surff.experiments.method_table import method_captions, rich_methods
    from surff.experiments.render import captions, rich_tables, summary_cells
    from surff.experiments.table2 import write_table2

    console = Console()
    if config.more:
        tables = rich_methods(summary_cells(rows, {}))
        sentences = method_captions(config, rows)
    else:
        tables = rich_tables(summary_cells(rows, printed), config)
        sentences = captions(config, rows)
    for table in tables:
        console.print(table)
    for sentence in sentences:
        console.print(sentence, style="dim", highlight=False)
    paths = write_table2(config, rows, out, printed)
    _written(console, out, paths)


def _written(console, out, paths):
    names = " ".join(path.name for path in paths)
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
    from rich.console import Console

    from surff.experiments import figure1
    from surff.experiments.store import ResultStore
    from surff.experiments.table2 import Table2, run_table2, select_rows

    with plain_errors(ValueError):
        config = Table2(
            datasets=(dataset,),
            multiples=tuple(multiples),
            trials=trials,
            protocol=protocol,
            large=large,
            seed=seed,
        )
    with plain_errors():
        _left_out(config)
        out.mkdir(parents=True, exist_ok=True)
        accuracies = ResultStore(out / "results.jsonl")
        errors = ResultStore(out / "figure1.jsonl")

        def run(progress):
            run_table2(config, accuracies, progress)
            rows = select_rows(config, accuracies.rows)
            figure1.run_errors(config, rows, errors, progress)

        finished = _until_stopped(run, out)
        rows = select_rows(config, accuracies.rows)
        found = select_rows(config, errors.rows)
        if rows:
            console = Console()
            console.print(figure1.rich_figure1(config, rows, found))
            for sentence in figure1.captions(config, rows):
                console.print(sentence, style="dim", highlight=False)
            _written(console, out, figure1.write_figure1(config, rows, found, out))
    if not finished:
        raise typer.Exit(130)


def _all_or_names(names, every):
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
    from rich.console import Console

    from surff.draws import DRAWS
    from surff.experiments import approximation
    from surff.experiments.store import ResultStore

    with plain_errors(ValueError):
        config = approximation.Approximation(
            dataset=dataset,
            kernel=kernel,
            draws=_all_or_names(draws, DRAWS),
            landmarks=(
                ()
                if landmarks == ["none"]
                else _all_or_names(landmarks, approximation.LANDMARKS)
            ),
            multiples=tuple(multiples),
            trials=trials,
            gamma=_number_or_name(gamma),
            alpha=alpha,
            seed=seed,
        )
    with plain_errors():
        out.mkdir(parents=True, exist_ok=True)
        store = ResultStore(out / "approximation.jsonl", approximation.KEY)
        finished = _until_stopped(
            lambda bar: approximation.run_approximation(config, store, bar), out
        )
        rows = approximation.select_rows(config, store.rows)
        if rows:
            console = Console()
            console.print(approximation.rich_approximation(config, rows))
            for sentence in approximation.captions(config, rows):
                console.print(sentence, style="dim", highlight=False)
            _written(console, out, approximation.write_approximation(config, rows, out))
    if not finished:
        raise typer.Exit(130)


@app.command(cls=SeveralValues)
def benchmark(
    suite: Annotated[
        str, typer.Option(help="Set of tasks: core, or embedded (no files needed).")
    ] = "core",
    tasks: Annotated[
        list[str] | None, typer.Option(help="Tasks by name, in place of a suite.")
    ] = None,
    methods: Annotated[list[str], typer.Option(help="Methods: all, or names.")] = [  # noqa: B006
        "all"
    ],
    multiples: Multiples = [1, 4, 16],  # noqa: B006
    splits: Annotated[
        int, typer.Option(help="Repetitions.", parser=_integer, metavar="<int>")
    ] = 10,
    seed: Seed = 0,
    out: Out = Path("results"),
):
    """Score against frequencies, fit time and model bytes, beside other models."""
    from rich.console import Console

    from surff.experiments import benchmark, benchmark_table
    from surff.experiments.methods import PACKAGES, why_not
    from surff.experiments.store import ResultStore

    with plain_errors(ValueError):
        if tasks is None and suite not in benchmark.SUITES:
            raise ValueError(
                f"suite must be one of {', '.join(benchmark.SUITES)}, got {suite!r}."
            )
        config = benchmark.Benchmark(
            tasks=tuple(tasks or benchmark.SUITES[suite]),
            methods=_all_or_names(methods, benchmark.method_labels()),
            multiples=tuple(multiples),
            splits=splits,
            seed=seed,
        )
    with plain_errors():
        out.mkdir(parents=True, exist_ok=True)
        store = ResultStore(out / "benchmark.jsonl", benchmark.KEY)
        for method in config.methods:
            if method in PACKAGES and (reason := why_not(method, 1, 1)):
                typer.echo(f"{method} is left out: it needs {reason}.")
        finished = _until_stopped(
            lambda bar: benchmark.run_benchmark(config, store, bar), out
        )
        rows = benchmark.select_rows(config, store.rows)
        if rows:
            console = Console()
            for table in benchmark_table.rich_benchmark(
                benchmark_table.benchmark_cells(rows)
            ):
                console.print(table)
            for sentence in benchmark_table.captions(config, rows):
                console.print(sentence, style="dim", highlight=False)
            _written(console, out, benchmark_table.write_benchmark(config, rows, out))
    if not finished:
        raise typer.Exit(130)


@app.command()
def table3(out: Out = Path("results")):
    """Features needed by decay of the eigenvalues, computed, with theory's slopes."""
    from rich.console import Console

    from surff.experiments.table3 import CAPTION, rich_table3, table3_rows, write_table3

    rows = table3_rows()
    console = Console()
    console.print(rich_table3(rows))
    console.print(CAPTION, style="dim", highlight=False)
    with plain_errors():
        paths = write_table3(rows, out)
    _written(console, out, paths)


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Directory for what it makes.")] = Path(
        "demo"
    ),
):
    """The paper's table at a few sizes and three trials, in about a minute."""
    from surff.experiments.printed import printed_table
    from surff.experiments.table2 import Table2

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
        cells = printed_table()
        finished = _run_table2(config, cells, out)
    if not finished:
        raise typer.Exit(130)
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


@datasets_app.command("list")
def list_datasets():
    """What data sets there are, and where each was found."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    from surff.datasets import DATASETS, status

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
    console = Console()
    console.print(table)
    console.print(
        "missing: `surff datasets fetch NAME` downloads it; files are looked for in "
        "$SURFF_DATA, then in the user cache.",
        style="dim",
        highlight=False,
    )


@datasets_app.command("fetch")
def fetch_datasets(
    names: Annotated[list[str], typer.Argument(help="Names from the list.")],
):
    """Make sure that the files of data sets are on disk, and check them."""
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


@app.callback()
def surff():
    """Kernel learning with random features: the paper's experiments and data."""
    logging.basicConfig(format="surff: %(message)s")
