"""Commands on a table: from a file to a model, its scores and its predictions."""

import io
import json
import os
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest
from threadpoolctl import threadpool_limits
from typer.testing import CliRunner

import surff
import surff.tables
from surff.cli.commands import app
from surff.cli.tables import aligned, comparison_lines

pytest.importorskip("skops")


@pytest.fixture(autouse=True)
def _small_and_quiet(monkeypatch):
    monkeypatch.setattr(sys.modules["surff.tables.fit"], "SIZES", (32,))
    with threadpool_limits(1):
        yield


def run(*args, **options):
    return CliRunner().invoke(app, [str(arg) for arg in args], **options)


def done(*args, **options):
    """What a command prints that succeeds."""
    result = run(*args, **options)
    assert result.exit_code == 0, result.output
    return result.stdout


def fails(*args):
    """The last line of the error stream, after exit code 2."""
    result = run(*args)
    assert result.exit_code == 2
    assert "Traceback" not in result.stderr
    return result.stderr.splitlines()[-1]


def frame(n=240, seed=0):
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "x": rng.uniform(0, 6, n).round(3),
            "kind": rng.choice(["a", "b"], n),
            "noise": rng.normal(size=n).round(3),
        }
    )
    table["y"] = (np.sin(table["x"]) + (table["kind"] == "a")).round(4)
    table["label"] = np.where(table["y"] > 0.8, "high", "low")
    return table


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A table, another one, and models of both targets."""
    folder = tmp_path_factory.mktemp("tables")
    table = frame()
    table.to_csv(folder / "t.csv", index=False)
    other = frame(80, seed=1)
    other.to_csv(folder / "new.csv", index=False)
    with pytest.MonkeyPatch.context() as patch, threadpool_limits(1):
        patch.setattr(sys.modules["surff.tables.fit"], "SIZES", (32,))
        for target, unused in (("y", "label"), ("label", "y")):
            model = surff.fit(
                folder / "t.csv", target=target, drop=[unused], compare=False
            )
            surff.save(model, folder / f"{target}.skops")
    return folder


def test_fit_says_what_it_did_and_writes_the_model(tmp_path, files):
    out = tmp_path / "m.skops"
    text = done("fit", files / "t.csv", "--target", "y", "--drop", "label", "-o", out)
    for line in (
        "240 rows, 4 columns besides the target",
        "kind : 2 categories; one-hot",
        "label: left out: as asked",
        "R2 on 48 rows that were held out:",
        "  HistGradientBoosting",
        f"written to {out}",
    ):
        assert line in text
    model = surff.load(out)
    assert model.account["score"] > 0.95


def test_fit_as_json_and_without_a_file():
    buffer = io.StringIO()
    frame().drop(columns="label").to_csv(buffer, index=False, sep=";", decimal=",")
    text = done(
        "fit", "-", "-t", "y", "--json", "--no-compare", "--quiet", "--seed", 3,
        input=buffer.getvalue(),
    )  # fmt: skip
    found = json.loads(text)
    assert found["rows"] == 240
    assert found["model"] is None
    assert "separator semicolon, decimal comma" in found["dialect"]


def test_predictions_are_those_in_memory(files, tmp_path):
    new = pd.read_csv(files / "new.csv")
    for target in ("y", "label"):
        model = surff.load(files / f"{target}.skops")
        expected = model.predict(new)
        out = tmp_path / f"{target}.csv"
        args = ("predict", files / f"{target}.skops", files / "new.csv")
        assert "80 predictions written" in done(*args, "-o", out)
        found = pd.read_csv(out)
        assert list(found) == [target]
        assert found[target].tolist() == expected.tolist()
        assert (
            pd.read_csv(io.StringIO(done(*args)))[target].tolist() == expected.tolist()
        )
        assert json.loads(done(*args, "--json")) == {target: expected.tolist()}
        told = json.loads(done(*args, "--json", "-o", out))
        assert told == {"rows": 80, "out": str(out)}


def test_predict_needs_no_target_and_other_columns_do_not_matter(files, tmp_path):
    new = pd.read_csv(files / "new.csv")[["noise", "kind", "x"]].assign(more="text")
    new.to_parquet(tmp_path / "new.parquet")
    same = done("predict", files / "y.skops", files / "new.csv")
    assert done("predict", files / "y.skops", tmp_path / "new.parquet") == same


def test_evaluate(files, tmp_path):
    text = done("evaluate", files / "y.skops", files / "new.csv")
    names = [line.split(":")[0] for line in text.splitlines()]
    assert names == ["rows", "R2", "RMSE", "MAE"]
    scores = json.loads(
        done("evaluate", files / "label.skops", files / "new.csv", "--json")
    )
    new = pd.read_csv(files / "new.csv")
    model = surff.load(files / "label.skops")
    assert scores["accuracy"] == model.score(new, new["label"])
    assert np.sum(scores["confusion"]) == 80
    picture = tmp_path / "e.png"
    text = done("evaluate", files / "label.skops", files / "new.csv", "--plot", picture)
    assert "confusion (rows are true classes):" in text
    assert picture.stat().st_size > 5000
    done("evaluate", files / "y.skops", files / "new.csv", "--plot", picture)


def test_inspect(files, tmp_path):
    text = done("inspect", files / "y.skops")
    assert "KernelRidgeRegressor, Fourier features with adapt='auto'" in text
    picture = tmp_path / "i.png"
    text = done("inspect", files / "y.skops", files / "new.csv", "--plot", picture)
    ranks = [line.split()[0] for line in text.split("gradient\n")[1].splitlines()[:3]]
    assert ranks == ["x", "kind", "noise"]
    assert picture.stat().st_size > 5000
    found = json.loads(
        done("inspect", files / "label.skops", files / "new.csv", "--json")
    )
    importance = found["importance"]
    assert (
        importance["x"]["permutation"][0] > 10 * importance["noise"]["permutation"][0]
    )
    assert importance["x"]["gradient"] > 3 * importance["noise"]["gradient"]
    assert found["account"]["target"] == "label"


def test_compare_goes_on_where_it_was(files, tmp_path):
    out = tmp_path / "c.jsonl"
    args = ["compare", files / "t.csv", "-t", "y", "-o", out]
    args += ["--sizes", 8, 32, "--trials", 2]
    result = run(*args, "--methods", "rff", "linear")
    text, steps = result.stdout, result.stderr.splitlines()
    assert len(out.read_text().splitlines()) == 2 * 3
    assert "1 of 6 fits, about" in steps[0]
    assert steps[-1].endswith("6 of 6 fits, about 0 s left")
    assert text.splitlines()[0].split() == [
        "method", "size", "R2", "sd", "seconds", "trials",
    ]  # fmt: skip
    before = out.read_text()
    text = done(*args, "--methods", "rff", "linear", "nystroem")
    assert out.read_text().startswith(before)
    assert len(out.read_text().splitlines()) == 2 * 5
    rows = json.loads(done(*args, "--methods", "linear", "--json"))
    assert {row["method"] for row in rows} == {"rff", "linear", "nystroem"}
    assert "methods must be of rff" in fails(*args, "--methods", "magic")


def test_a_changed_file_is_compared_again(files, tmp_path):
    path, out = tmp_path / "t.csv", tmp_path / "c.jsonl"
    text = (files / "t.csv").read_text()
    path.write_text(text)
    before = path.stat()
    args = ["compare", path, "-t", "y", "-o", out, "--methods", "linear"]
    first = json.loads(done(*args, "--json"))
    assert len(first) == 3
    # One digit, at the same length and time.
    at = re.search(r"\d\.\d", text).start()
    digit = "8" if text[at] != "8" else "7"
    path.write_text(text[:at] + digit + text[at + 1 :])
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    again = json.loads(done(*args, "--json"))
    assert len(out.read_text().splitlines()) == 6
    assert {row["table"] for row in first}.isdisjoint(row["table"] for row in again)
    assert [row["score"] for row in first] != [row["score"] for row in again]
    # Neither is anything computed again, nor is the task mixed up.
    path.write_text(text)
    text = done(*args)
    assert len(out.read_text().splitlines()) == 6
    assert "3 results there are of another table or task" in text


def test_every_compared_method_fits(files):
    rows = list(surff.tables.comparison(files / "t.csv", "label", sizes=[16], trials=1))
    assert {row["method"] for row in rows} == set(surff.tables.COMPARED)
    assert all(row["score"] > 0.5 for row in rows)


def test_row_numbers_are_left_out_of_a_comparison():
    rng = np.random.default_rng(0)
    x = rng.normal(size=400)
    table = pd.DataFrame({"x": x, "y": x + np.arange(400) % 7})
    numbered = table.assign(Nr=np.arange(400))
    options = {"methods": ["linear"], "trials": 1}
    (plain,), (with_numbers,) = (
        surff.tables.comparison(frame, "y", **options) for frame in (table, numbered)
    )
    assert with_numbers["score"] == plain["score"]


def test_a_model_that_cannot_be_written_is_refused_before_it_is_fitted(
    files, tmp_path, monkeypatch
):
    def fit(*_, **__):
        raise AssertionError("fitted")

    monkeypatch.setattr(surff, "fit", fit)
    command = "fit", files / "t.csv", "-t", "y", "-o", tmp_path / "m.skops"
    monkeypatch.setattr("surff.cli.tables.find_spec", lambda name: None)
    assert "model files need skops: pip install" in fails(*command)
    monkeypatch.setattr("surff.cli.tables.os.access", lambda path, mode: False)
    assert "nothing can be written to the folder" in fails(*command)


def test_what_a_user_can_correct_is_one_line(files, tmp_path):
    table, model = files / "t.csv", files / "y.skops"
    assert "there is no such file" in fails("fit", tmp_path / "x.csv", "-t", "y")
    assert "there is no column 'z'" in fails("fit", table, "-t", "z")
    assert "no column 'z' to drop" in fails("fit", table, "-t", "y", "--drop", "z")
    nowhere = tmp_path / "no" / "m.skops"
    assert "there is no folder" in fails("fit", table, "-t", "y", "-o", nowhere)
    assert "is not a model file" in fails("predict", table, table)
    assert "Missing option" in fails("fit", table)
    assert "needs a FILE" in fails("inspect", model, "--plot", tmp_path / "p.png")
    bad = tmp_path / "bad.csv"
    bad.write_text("x,kind,noise\n1,a,2\nx,a,2\n")
    assert "line 3: column 'x' must hold numbers, got 'x'" in fails(
        "predict", model, bad
    )
    bad.write_text("x,kind\n1,a\n")
    assert "there is no column 'noise'; there are 'x', 'kind'" in fails(
        "predict", model, bad
    )
    plain = tmp_path / "plain.skops"
    X = np.arange(20.0)[:, None]
    surff.save(surff.KernelRidgeRegressor(alphas=1.0).fit(X, X[:, 0]), plain)
    assert "holds a KernelRidgeRegressor, not a model of" in fails(
        "predict", plain, table
    )


def test_tables_are_never_cut():
    rows = [["name", "score"], ["a" * 300, "0.1234"]]
    assert aligned(rows).splitlines()[1] == "a" * 300 + "  0.1234"
    made = comparison_lines(
        [
            {"method": m, "size": 8, "trial": 0, "metric": "R2", "score": s,
             "seconds": 1.0}
            for m, s in (("low", 0.1), ("high", 0.9))
        ]
    )  # fmt: skip
    assert [line.split()[0] for line in made.splitlines()] == ["method", "high", "low"]


def shell(command, cwd, **options):
    """Run a line of a real shell."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "40"}
    line = command.replace("surff", f'"{sys.executable}" -m surff')
    return subprocess.run(
        ["bash", "-o", "pipefail", "-c", line],
        cwd=cwd, capture_output=True, text=True, timeout=300, env=environment,
        check=False, **options,
    )  # fmt: skip


@pytest.mark.skipif(os.name != "posix", reason="needs a POSIX shell")
def test_a_real_shell(files):
    line = "gzip -c new.csv | surff predict y.skops - | tail -n 1 && surff -h"
    found = shell(line, files)
    assert found.returncode == 0, found.stderr
    float(found.stdout.splitlines()[0])
    assert "inspect" in found.stdout


@pytest.mark.skipif(os.name != "posix", reason="needs POSIX signals")
def test_an_interrupt_is_exit_code_130(files):
    process = subprocess.Popen(
        [sys.executable, "-m", "surff", "fit", "t.csv", "-t", "y", "--max-time", "600"],
        cwd=files, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert "fitted in 600 s at most" in process.stderr.readline()
    assert any("240 rows" in line for line in iter(process.stderr.readline, ""))
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 130
    assert "surff: stopped." in err
    assert "Traceback" not in err
