"""The benchmarks that are programs of their own, at sizes that take seconds."""

import importlib
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"

#: A child that reports the time written in its commit's package.
TOY = """
import sys
sys.path.insert(0, {benchmarks!r})
import toy
from children import serve

def answer(what, name):
    return {{"seconds": getattr(toy, name), "source": toy.__file__}}

serve(answer)
"""


@pytest.fixture
def benchmarks(monkeypatch):
    """Let the benchmarks' files be imported."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))


@pytest.mark.parametrize("name", sorted(path.stem for path in BENCHMARKS.glob("*.py")))
def test_programs_import_what_there_is(benchmarks, name):
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name not in ("torch", "dask"):
            raise
        pytest.skip(f"{error.name} is not installed")
    assert module.__doc__


def child(tmp_path, text):
    from children import Child

    script = tmp_path / "child.py"
    script.write_text(f"import sys\nsys.path.insert(0, {str(BENCHMARKS)!r})\n{text}")
    return Child([sys.executable, script])


ECHO = """
from children import serve
def answer(what, number=1):
    print("not an answer")
    return {"half": 1 / number, "what": what}
serve(answer)
"""


def test_a_child_answers_and_reports_errors(benchmarks, tmp_path):
    from children import ChildError

    with child(tmp_path, ECHO) as answering:
        assert answering.ask(what="go", number=4) == {"half": 0.25, "what": "go"}
        with pytest.raises(ChildError, match="ZeroDivisionError: division by zero"):
            answering.ask(what="go", number=0)
        assert answering.ask(what="go")["half"] == 1.0
    with (
        child(tmp_path, "raise ImportError('no such peer')") as broken,
        pytest.raises(ChildError, match="ImportError: no such peer"),
    ):
        broken.ask(what="go")


def test_rounds_leave_out_who_failed_and_stop_who_is_slow(benchmarks):
    from children import ChildError, asked_in_turn

    class Fake:
        def __init__(self, *answers):
            self.answers = list(answers)

        def send(self, **request):
            assert request == {"what": "warm up", "name": "x"}

        def answer(self):
            return {}

        def ask(self, **request):
            assert request == {"what": "measure", "name": "x"}
            log.append(self)
            answer = self.answers.pop(0)
            if isinstance(answer, str):
                raise ChildError(answer)
            return answer

    log = []
    good, bad = Fake(1, 2, 3), Fake(1, "out of memory")
    answers, failures = asked_in_turn(
        {"good": good, "bad": bad}, 3, pause=0, what="measure", name="x"
    )
    assert answers == {"good": [1, 2, 3]}
    assert failures == {"bad": "out of memory"}
    assert log == [good, bad, bad, good, good]
    answers, _ = asked_in_turn(
        {"slow": Fake(1)}, 3, pause=0, patience=0, what="measure", name="x"
    )
    assert answers == {"slow": [1]}


def test_ratio_is_taken_round_by_round(benchmarks):
    from children import ratio

    assert ratio([2.0, 6.0, 9.0], [1.0, 2.0, 9.0]) == (2.0, 1.0, 3.0)


def test_peak_memory_counts_what_was_freed():
    code = (
        "from children import peak_memory; before = peak_memory();"
        "bytearray(b'x') * 10**8; assert peak_memory() > before + 9 * 10**7"
    )
    subprocess.run([sys.executable, "-c", code], cwd=BENCHMARKS, check=True)


@pytest.mark.parametrize(
    ("values", "word"),
    [
        ((1.5, 1.2, 1.6), "slower"),
        ((1.5, 1.0, 1.6), "unclear"),
        ((1.01, 0.9, 1.6), "same"),
        ((0.5, 0.4, 0.6), "faster"),
        ((0.5, 0.4, 1.1), "same"),
    ],
)
def test_verdict_asks_every_round(benchmarks, values, word):
    from regression import verdict

    assert verdict(values, tolerance=0.05) == word


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_two_commits_of_a_repository_are_compared(benchmarks, tmp_path):
    from regression import Comparison, compare_commits, git, table

    repository = tmp_path / "repository"
    (repository / "src").mkdir(parents=True)
    git(tmp_path, "init", "--quiet", "repository")
    for text in ("fast, same = 2.0, 1.0", "fast, same, new = 1.0, 1.0, 1.0"):
        (repository / "src" / "toy.py").write_text(text)
        git(repository, "add", "src")
        author = "-c", "user.name=a", "-c", "user.email=a@b"
        git(repository, *author, "commit", "--quiet", "-m", "toy")
    script = tmp_path / "kernels.py"
    script.write_text(TOY.format(benchmarks=str(BENCHMARKS)))
    command = sys.executable, script
    found = list(
        compare_commits(
            repository, ("HEAD~1", "HEAD"), ["fast", "same", "new"], 2, command
        )
    )
    assert found[:2] == [
        Comparison("fast", (0.5, 0.5, 0.5), {}),
        Comparison("same", (1.0, 1.0, 1.0), {}),
    ]
    assert found[2].ratio is None
    assert list(found[2].failures) == ["A"]
    assert table(found[0], 0.05).endswith("| faster by 100 % at least |")
    assert "not in A: AttributeError" in table(found[2], 0.05)
    assert git(repository, "worktree", "list").count("\n") == 0


def test_peers_that_could_not_be_installed_are_left_out(benchmarks, tmp_path):
    from peers import installed

    with pytest.raises(FileNotFoundError, match=r"benchmarks/peers\.py filled, got"):
        installed(tmp_path)
    text = '{"gpytorch": {"version": "1.0"}, "rfflearn": {"reason": "no wheel"}}'
    (tmp_path / "peers.json").write_text(text)
    assert installed(tmp_path) == {"gpytorch": "1.0"}


def test_kernels_run_on_few_rows(benchmarks):
    from kernels import KERNELS

    for name, kernel in KERNELS.items():
        assert kernel(0.1)() is not None, name


def test_pieces_run_on_few_rows(benchmarks):
    from micro import BENCHMARKS

    for name, benchmark in BENCHMARKS.items():
        case = next(benchmark(np.float32, 0.01))
        with threadpool_limits(1):
            for run in case.callables.values():
                run()
        assert {key for pair in case.ratios for key in pair} == set(case.callables), (
            name
        )


def test_pieces_print_their_ratios(benchmarks, capsys):
    from micro import main

    small = "feature_map --one-thread --rounds 2 --scale 0.01 --at-least 0"
    main(small.split())
    processor, _, _, _, *rows = capsys.readouterr().out.splitlines()
    assert re.search(r"with(out)? AVX-512, \d+ cores", processor)
    assert len(rows) == 6
    assert rows[0].startswith(
        "| feature_map | float64 | 64 x 14, 896 columns | product"
    )
    assert re.search(r"RBFSampler / surff \d+\.\d\d \(\d+\.\d\d to \d", rows[-1])


def test_regression_needs_no_surff_of_its_own(benchmarks):
    code = "import regression, sys; assert 'surff' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], cwd=BENCHMARKS, check=True)


def test_comparison_writes_a_table_and_a_picture(benchmarks, tmp_path):
    from compare import main

    small = "--tasks breast_cancer --multiples 1 --rounds 2 --competitors rff rbf-ridge"
    main([*small.split(), "--out", str(tmp_path)])
    rows = (tmp_path / "compare.md").read_text().splitlines()
    ours, theirs = (row.split(" | ") for row in rows if row.startswith("| breast"))
    assert ours[2] == "surff, Fourier"
    assert ours[3].endswith(" s")
    assert theirs[2] == "RBFSampler + Ridge"
    low, _, high = theirs[4].split()
    assert 0 < float(low) <= float(theirs[3]) <= float(high)
    # 284 rows of an easy task: 30 random frequencies reach 0.93, chance 0.63.
    assert min(float(ours[-1].strip(" |")), float(theirs[-1].strip(" |"))) > 0.85
    assert 0 < (tmp_path / "compare.png").stat().st_size < 100_000
