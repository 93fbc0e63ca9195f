"""The command line: what it runs and writes, and one line for what a user can mend."""

import logging
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from threadpoolctl import threadpool_limits
from typer.testing import CliRunner

from surff.cli.commands import app, repeat_options
from surff.experiments.store import ResultStore


@pytest.fixture(autouse=True)
def _wide_and_quiet(monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("TERM", "dumb")
    root = logging.getLogger()
    handlers = root.handlers[:]
    with threadpool_limits(1):
        yield
    root.handlers[:] = handlers


@pytest.fixture
def no_pictures(monkeypatch):
    """Empty files in place of pictures, for tests of what else a command writes."""

    def touched(figure, stem):
        paths = [stem.with_name(f"{stem.name}.{kind}") for kind in ("png", "svg")]
        for path in paths:
            path.touch()
        return paths

    monkeypatch.setattr("surff.experiments.table.save", touched)


def run(*args):
    return CliRunner().invoke(app, [str(arg) for arg in args])


def fails(*args):
    """One line of the error stream, after exit code 2 and no traceback."""
    result = run(*args)
    assert result.exit_code == 2
    assert isinstance(result.exception, SystemExit)
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    (line,) = result.stderr.splitlines()
    return line


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (["--n", "1", "2", "3"], ["--n", "1", "--n", "2", "--n", "3"]),
        (["--n", "1", "--n", "2"], ["--n", "1", "--n", "2"]),
        (["--n", "1", "--out", "a", "b"], ["--n", "1", "--out", "a", "b"]),
        (["--n=1", "2"], ["--n=1", "2"]),
        (
            ["--n", "a", "b", "--flag", "--n", "c"],
            ["--n", "a", "--n", "b", "--flag", "--n", "c"],
        ),
        (["--n"], ["--n"]),
        ([], []),
    ],
)
def test_values_after_one_name_are_values_of_that_name(given, expected):
    assert repeat_options(given, {"--n"}) == expected


def test_table2_runs_writes_and_resumes(fake, tmp_path):
    out = tmp_path / "new" / "out"
    args = ["table2", "--datasets", "eeg", "magic04", "--multiples", 1, 4, "--out", out]
    result = run(*args, "--trials", 2)
    assert result.exit_code == 0
    assert len(fake.calls) == 8
    assert "eeg: accuracy in %" in result.stdout
    assert "magic04: accuracy in %" in result.stdout
    assert "Protocol published" in result.stdout
    assert "table2-magic04.svg" in result.stdout
    assert {path.name for path in out.iterdir()} == {
        "results.jsonl",
        "table2.md",
        "table2.tex",
        "table2.csv",
        "table2-eeg.png",
        "table2-eeg.svg",
        "table2-magic04.png",
        "table2-magic04.svg",
    }
    content = (out / "results.jsonl").read_bytes()
    again = run(*args, "--trials", 2)
    assert again.stdout == result.stdout
    assert len(fake.calls) == 8
    assert (out / "results.jsonl").read_bytes() == content


@pytest.mark.usefixtures("no_pictures")
def test_table2_passes_its_options_on(fake, tmp_path):
    result = run(
        *("table2", "--datasets", "eeg", "--datasets", "magic04", "--multiples", 2),
        *("--trials", 1, "--weights", "sorted", "--ablation", "--seed", 3),
        *("--out", tmp_path),
    )
    assert result.exit_code == 0
    rows = ResultStore(tmp_path / "results.jsonl").rows
    assert {row["dataset"] for row in rows} == {"eeg", "magic04"}
    assert {row["multiple"] for row in rows} == {2}
    assert {row["weights"] for row in rows} == {"sorted"}
    assert {row["seed"] for row in rows} == {3}
    assert {"rff-alpha-2s", "rff-wide"} < {row["method"] for row in rows}


@pytest.mark.usefixtures("no_pictures")
def test_the_papers_cells_are_shown(fake, tmp_path):
    result = run(
        *("table2", "--datasets", "eeg", "--multiples", 1, "--trials", 1),
        *("--out", tmp_path),
    )
    assert "67.83 ± 0.73" in result.stdout
    assert "67.83 ± 0.73" in (tmp_path / "table2.md").read_text("utf-8")


@pytest.mark.usefixtures("no_pictures")
def test_ctrl_c_renders_what_is_there_and_says_how_to_go_on(fake, tmp_path):
    args = ["table2", "--datasets", "eeg", "--multiples", 1, 4, "--trials", 2]
    fake.stop_before = 3
    result = run(*args, "--out", tmp_path)
    assert result.exit_code == 130
    assert "4d" in result.stdout
    assert "1 to 2 trials (the run is not finished)" in result.stdout
    assert f"Stopped. Finished trials are in {tmp_path}; run the same" in result.stderr
    assert (tmp_path / "table2-eeg.png").exists()
    fake.stop_before = None
    assert run(*args, "--out", tmp_path).exit_code == 0
    assert len(fake.calls) == 4

    fake.calls.clear()
    fake.stop_before = 0
    empty = run(*args, "--out", tmp_path / "empty")
    assert empty.exit_code == 130
    assert empty.stdout == ""


@pytest.mark.usefixtures("no_pictures")
def test_a_line_cut_by_a_kill_is_told(fake, tmp_path, monkeypatch):
    args = ["table2", "--datasets", "eeg", "--multiples", 1, "--trials", 1]
    run(*args, "--out", tmp_path)
    path = tmp_path / "results.jsonl"
    path.write_bytes(path.read_bytes()[:-5])
    # As in a process of its own: no handler is there before the command's.
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    result = run(*args, "--out", tmp_path)
    assert result.stderr.startswith(f"surff: {path}: line 4 was cut short")


@pytest.mark.usefixtures("no_pictures")
def test_large_multiples_of_covtype_are_left_out_aloud(fake, tmp_path):
    args = ["table2", "--datasets", "covtype", "--multiples", 1, 32, "--trials", 1]
    result = run(*args, "--out", tmp_path)
    assert "covtype: 32d left out" in result.stderr
    assert "--large runs them" in result.stderr
    assert [call[1] for call in fake.calls] == [1]
    result = run(*args, "--large", "--out", tmp_path)
    assert "left out" not in result.stderr
    assert [call[1] for call in fake.calls] == [1, 32]


@pytest.mark.parametrize(
    ("args", "parts"),
    [
        (["--datasets", "egg"], ["eeg, magic04, cod-rna, covtype", "got 'egg'"]),
        (["--protocol", "best"], ["published, literal, fair", "got 'best'"]),
        (["--weights", "none"], ["own, sorted", "got 'none'"]),
        (["--multiples", "0"], ["multiples", "at least 1", "got 0"]),
        (["--trials", "0"], ["trials", "at least 1", "got 0"]),
        (["--protocol", "fair", "--ablation"], ["ablation", "'fair'"]),
        (["--printed", "x.csv"], ["No such option", "--printed"]),
    ],
)
def test_wrong_options_give_one_line(args, parts):
    line = fails("table2", *args)
    assert line.startswith("surff: ")
    for part in parts:
        assert part in line


@pytest.mark.parametrize("option", ["--multiples", "--trials", "--seed"])
def test_what_is_no_number_is_shown(option):
    result = run("table2", option, "two")
    assert result.exit_code == 2
    assert "must be an integer, got 'two'" in result.stderr


def test_wrong_places_give_one_line(fake, tmp_path):
    (tmp_path / "file").write_text("")
    line = fails("table2", "--datasets", "eeg", "--out", tmp_path / "file")
    assert "File exists" in line
    (tmp_path / "results.jsonl").write_text("nonsense\n")
    line = fails("table2", "--datasets", "eeg", "--out", tmp_path)
    assert f"{tmp_path / 'results.jsonl'}, line 1 is not a row" in line


def test_missing_data_gives_one_line_with_the_ways_to_get_it(tmp_path, monkeypatch):
    monkeypatch.setenv("SURFF_DATA", str(tmp_path))
    monkeypatch.setattr("surff.datasets.store._download", refuse_download)
    line = fails("table2", "--datasets", "eeg", "--out", tmp_path / "out")
    assert str(tmp_path / "eeg-eye-state.csv.xz") in line
    assert "surff datasets fetch eeg" in line
    line = fails("datasets", "fetch", "eeg")
    assert "SURFF_DATA" in line


def refuse_download(file, **options):
    from surff.datasets import DatasetNotFoundError
    from surff.datasets.store import _not_found

    raise DatasetNotFoundError(_not_found(file, "No network."))


def test_missing_extra_gives_one_line(monkeypatch, tmp_path, fake):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    args = ["table2", "--datasets", "eeg", "--multiples", 1, "--trials", 1]
    result = run(*args, "--out", tmp_path)
    assert result.exit_code == 2
    assert result.stderr.splitlines()[-1] == (
        "surff: matplotlib is not installed; it comes with the extra surff[cli]: "
        "pip install 'surff[cli]'"
    )


def test_figure1(tmp_path):
    result = run(
        *("figure1", "--dataset", "breast_cancer", "--multiples", 1),
        *("--trials", 1, "--out", tmp_path),
    )
    assert result.exit_code == 0
    assert "breast_cancer: accuracy in %" in result.stdout
    assert {path.name for path in tmp_path.iterdir()} == {
        "results.jsonl",
        "figure1.jsonl",
        *(f"figure1-breast_cancer.{kind}" for kind in ("md", "csv", "png", "svg")),
    }
    assert fails("figure1", "--dataset", "egg").endswith("got 'egg'.")


def test_approximation(tmp_path):
    args = ["approximation", "--dataset", "breast_cancer", "--multiples", 1]
    args += ["--draws", "sobol", "modified", "--landmarks", "none", "--trials", 1]
    result = run(*args, "--gamma", "0.1", "--out", tmp_path)
    assert result.exit_code == 0
    assert "breast_cancer, kernel rbf" in result.stdout
    assert "Left out: modified RFF at d: d = 30 is above 5" in result.stdout
    assert {path.name for path in tmp_path.iterdir()} == {
        "approximation.jsonl",
        *(
            f"approximation-breast_cancer-rbf.{kind}"
            for kind in ("md", "tex", "csv", "png", "svg")
        ),
    }
    assert fails("approximation", "--dataset", "egg").endswith("got 'egg'.")
    assert "got 'wide'" in fails("approximation", "--gamma", "wide")
    assert "draws must be one of" in fails("approximation", "--draws", "dice")


def test_table3(tmp_path, monkeypatch):
    from surff import experiments

    few = experiments.table3_rows((1000, 10_000))
    monkeypatch.setattr(experiments, "table3_rows", lambda: few)
    result = run("table3", "--out", tmp_path)
    assert result.exit_code == 0
    assert "n^(1/4)" in result.stdout
    assert len(list(tmp_path.iterdir())) == 5


def test_datasets_list_tells_what_is_where(tmp_path, monkeypatch):
    monkeypatch.setenv("SURFF_DATA", str(tmp_path))
    result = run("datasets", "list")
    assert result.exit_code == 0
    lines = {
        line.split()[0]: line for line in result.stdout.splitlines() if line.strip()
    }
    assert "581,012" in lines["covtype"]
    assert "missing" in lines["covtype"]
    assert "scikit-learn" in lines["digits"]
    (tmp_path / "magic04.csv.xz").write_bytes(b"")
    assert "SURFF_DATA" in next(
        line
        for line in run("datasets", "list").stdout.splitlines()
        if "magic04" in line
    )


def test_datasets_fetch(tmp_path, monkeypatch):
    result = run("datasets", "fetch", "digits", "breast_cancer")
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        "digits: comes with scikit-learn, needs no file",
        "breast_cancer: comes with scikit-learn, needs no file",
    ]
    line = fails("datasets", "fetch", "digits", "egg")
    assert "eeg, magic04" in line
    assert "got 'egg'" in line
    monkeypatch.setenv("SURFF_DATA", str(tmp_path))
    (tmp_path / "eeg-eye-state.csv.xz").write_bytes(b"half")
    assert "is not a complete xz file" in fails("datasets", "fetch", "eeg")


@pytest.mark.usefixtures("no_pictures")
def test_demo_runs_on_the_papers_sets(fake, tmp_path, real_data):
    real_data("eeg")
    real_data("magic04")
    result = run("demo", "--out", tmp_path / "demo")
    assert result.exit_code == 0
    assert {call[0] for call in fake.calls} == {"eeg", "magic04"}
    assert {call[1] for call in fake.calls} == {1, 4, 16, 32}
    assert "80.04" in result.stdout  # the paper's RFF on magic04 at 16 d
    for name in ("eeg", "magic04"):
        path = tmp_path / "demo" / f"table2-{name}.png"
        assert f"picture: {path}" in result.stdout
        assert path.exists()


@pytest.mark.usefixtures("no_pictures")
def test_demo_without_data_says_what_it_runs_on_instead(tmp_path, monkeypatch, fake):
    from surff.experiments import table2

    monkeypatch.setenv("SURFF_DATA", str(tmp_path))
    monkeypatch.setattr("surff.datasets.store._download", refuse_download)
    monkeypatch.setitem(
        table2.PROTOCOLS,
        "fair",
        lambda *args, **options: [
            row | {"protocol": "fair"} for row in fake(*args, **options)
        ],
    )
    result = run("demo", "--out", tmp_path / "demo")
    assert result.exit_code == 0
    assert {call[0] for call in fake.calls} == {"breast_cancer", "digits"}
    assert "eeg and magic04: not found" in result.stderr
    assert "THIS DEMO RUNS ON breast_cancer AND digits INSTEAD" in result.stderr
    assert f"picture: {tmp_path / 'demo' / 'table2-digits.png'}" in result.stdout


@pytest.mark.usefixtures("no_pictures")
def test_demo_runs_on_what_there_is(tmp_path, monkeypatch, fake):
    monkeypatch.setattr(
        "surff.datasets.fetch", lambda name: refuse_unless(name == "magic04")
    )
    monkeypatch.setenv("SURFF_DATA", str(tmp_path))
    result = run("demo", "--out", tmp_path / "demo")
    assert result.exit_code == 0
    assert {call[0] for call in fake.calls} == {"magic04"}
    assert "eeg: not found" in result.stderr
    assert "INSTEAD" not in result.stderr


def refuse_unless(condition):
    from surff.datasets import DatasetNotFoundError

    if not condition:
        raise DatasetNotFoundError("not found")


def test_help_of_every_command():
    text = run("--help").stdout
    assert "--install-completion" in text
    for name in ("table2", "figure1", "approximation", "table3", "demo", "datasets"):
        assert name in text
        result = run(name, "--help")
        assert result.exit_code == 0
        assert "Usage: " in result.stdout
    text = run("datasets", "--help").stdout
    assert "list" in text
    assert "fetch" in text


def call(*args, **options):
    return subprocess.run(
        [sys.executable, *args], capture_output=True, text=True, **options
    )


def test_a_wrong_command_line_ends_its_process_with_2():
    result = call("-m", "surff", "table2", "--trials", "two")
    assert result.returncode == 2
    assert "must be an integer, got 'two'" in result.stderr


def test_without_the_extra_the_message_says_what_to_install():
    for module in ("typer", "rich"):
        code = (
            f"import sys; sys.modules[{module!r}] = None;"
            "sys.argv = ['surff', '--help'];"
            "from surff.cli import main; main()"
        )
        result = call("-c", code)
        assert result.returncode == 2
        assert result.stderr == (
            f"surff's command line needs {module}, which comes with the extra "
            "surff[cli]: pip install 'surff[cli]'\n"
        )


def test_help_loads_nothing_heavy():
    code = (
        "import sys; before = set(sys.modules); import surff;"
        "base = set(sys.modules); import surff.cli.commands;"
        "print(*sorted({name.partition('.')[0] for name in set(sys.modules) - base}))"
    )
    loaded = set(call("-c", code).stdout.split())
    assert "typer" in loaded
    heavy = {"matplotlib", "numba", "pandas", "pooch", "pyarrow", "scipy", "sklearn"}
    assert not loaded & heavy


@pytest.mark.skipif(sys.platform == "win32", reason="signals differ")
def test_a_killed_process_resumes(tmp_path):
    args = ["table2", "--datasets", "breast_cancer", "--multiples", "1"]
    args += ["--out", str(tmp_path)]
    path = tmp_path / "results.jsonl"
    process = subprocess.Popen(
        [sys.executable, "-m", "surff", *args, "--trials", "1000"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    deadline = time.monotonic() + 60.0
    while not (path.exists() and path.read_bytes().count(b"\n") >= 8):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    before = ResultStore(path).rows
    result = run(*args, "--trials", 3)
    assert result.exit_code == 0
    assert "breast_cancer: accuracy in %" in result.stdout
    after = ResultStore(path).rows
    assert after[: len(before)] == before
    assert len(after) == max(len(before), 12)


def test_version():
    from surff import __version__

    result = run("--version")
    assert result.exit_code == 0
    assert result.stdout == f"surff {__version__}\n"


@pytest.mark.parametrize(
    ("args", "part"),
    [
        (["tabel2"], "No such command 'tabel2'"),
        (["--wrong"], "No such option: --wrong"),
        (["table2", "--dataset", "eeg"], "No such option: --dataset"),
        (["table2", "--trials", "two"], "must be an integer, got 'two'"),
        (
            ["benchmark", "--suite", "all"],
            "suite must be one of core, embedded, uci, extended",
        ),
        (["datasets", "fetch"], "Missing argument"),
    ],
)
def test_every_wrong_command_line_gives_one_line(args, part):
    line = fails(*args)
    assert line.startswith("surff: ")
    assert part in line


@pytest.mark.usefixtures("no_pictures")
def test_a_pipe_gets_every_number_whole(tmp_path, monkeypatch):
    from surff import experiments

    few = experiments.table3_rows((1000, 10_000, 1_000_000))
    monkeypatch.setattr(experiments, "table3_rows", lambda: few)
    monkeypatch.setenv("COLUMNS", "40")  # as rich assumes 80 where it is not told
    text = run("table3", "--out", tmp_path).stdout
    assert "…" not in text
    for row in few:
        assert all(f"{value:.0f}" in text for value in row.leverage.values)
    lines = [line for line in text.splitlines() if "s surrogate" in line]
    assert len(lines) == 4  # a table of one part
    assert "…" not in run("datasets", "list").stdout


@pytest.mark.usefixtures("own_names", "no_pictures")
def test_own_methods_on_own_data(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("my_draws.py").write_text(
        "from surff.draws import Orthogonal\nclass My_Draw(Orthogonal):\n    pass\n"
    )
    rows = [f"{i % 10},{(7 * i) % 10},{'ab'[i % 10 > 4]}" for i in range(120)]
    Path("mine.csv").write_text("\n".join(["p,q,kind", *rows]))
    args = ["benchmark", "--methods", "rff", "--method", "my_draws:My_Draw"]
    args += ["--multiples", 1, "--splits", 2, "--out", "out"]
    result = run(*args, "--data", "mine.csv", "--target", "kind")
    assert result.exit_code == 0, result.stderr
    assert "My_Draw" in result.stdout
    assert "My_Draw" in Path("out/benchmark.md").read_text()
    assert "--target COLUMN belong" in fails(*args, "--data", "mine.csv")
    message = fails("table2", "--method", "my_draws:Other", "--out", "out")
    assert "has no 'Other'" in message
