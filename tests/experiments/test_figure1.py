"""Errors against a direct computation, with the settings of the protocols."""

import csv

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.metrics.pairwise import rbf_kernel

import surff
from surff.experiments import figure1
from surff.experiments.protocol import load_problem
from surff.experiments.runner import Trial, select_rows
from surff.experiments.store import ResultStore
from surff.experiments.table2 import Table2, run_table2

METHODS = ("rff", "qmc", "leverage", "surrogate")


@pytest.fixture(scope="module")
def problem():
    return load_problem("breast_cancer")


def make_config(**options):
    options = {"multiples": (1, 2), "trials": 2, **options}
    return Table2(("breast_cancer",), **options)


def errors(problem, config, multiple=1, trial=0, methods=METHODS):
    call = Trial("breast_cancer", multiple, trial, methods, 1.0)
    rows = figure1.trial_errors(problem, config, call, dict.fromkeys(METHODS, 0.5))
    return {row["method"]: row["error"] for row in rows}


def test_the_error_is_that_of_the_public_features(problem, monkeypatch):
    seen = []

    def record(K, Z):
        seen.append((K, Z))
        return 0.125

    monkeypatch.setattr(surff.inspection, "relative_error", record)
    assert errors(problem, make_config()) == dict.fromkeys(METHODS, 0.125)
    for K, Z in seen:
        assert K.shape == (284, 284)  # fewer rows than 1,000: all of them
        assert Z.shape == (284, 2 * 30)
        # Weights are scaled to mean square one, so that the diagonal is exact.
        assert_allclose(np.sum(Z**2, axis=1), 1.0, rtol=1e-10)
    part = figure1.prepared(problem, "published", 0, 0)
    sums = np.sort(rbf_kernel(part.X, gamma=0.5).sum(axis=0))
    assert_allclose(np.sort(seen[0][0].sum(axis=0)), sums, rtol=1e-10)
    assert_allclose(part.X.mean(axis=1), 0.0, atol=1e-12)


def test_errors_fall_with_the_number_of_features(problem):
    config, methods = make_config(), ("rff", "qmc")
    few = errors(problem, config, 1, methods=methods)
    many = errors(problem, config, 32, methods=methods)
    # Monte Carlo errors fall as 1 / sqrt(32) = 0.18; the spectral norm of one draw
    # varies by a third or so.
    assert many["rff"] < 0.5 * few["rff"]
    assert many["qmc"] < 0.5 * few["qmc"]
    assert errors(problem, config, 1, methods=methods) == few
    assert errors(problem, config, 1, trial=1, methods=methods) != few


@pytest.mark.parametrize("name", ["published", "literal", "fair"])
def test_run_and_resume(tmp_path, name):
    config = make_config(protocol=name, multiples=(1,))
    accuracies = ResultStore(tmp_path / "results.jsonl")
    run_table2(config, accuracies)
    rows = select_rows(config, accuracies.rows)
    path = tmp_path / "figure1.jsonl"
    figure1.run_errors(config, rows, ResultStore(path))
    content = path.read_bytes()
    found = select_rows(config, ResultStore(path).rows)
    assert len(found) == 2 * 4
    assert [row["gamma"] for row in found] == [row["gamma"] for row in rows]
    assert all(0.0 < row["error"] < 2.0 for row in found)
    path.write_bytes(content[: len(content) // 2])
    figure1.run_errors(config, rows, ResultStore(path))
    assert select_rows(config, ResultStore(path).rows) == found

    paths = figure1.figure1_report(config, rows, found).write(tmp_path / "out")
    assert [path.name for path in paths] == [
        f"figure1-breast_cancer.{suffix}" for suffix in ("md", "csv", "png", "svg")
    ]
    text = paths[0].read_text("utf-8")
    assert "on 284 training rows" in text
    assert ("scaled to mean square one" in text) == (name == "published")
    with paths[1].open(newline="") as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == 4
    mean = np.mean([row["error"] for row in found if row["method"] == "qmc"])
    assert float(lines[1]["error"]) == pytest.approx(mean, rel=1e-5)


def test_what_is_there_is_drawn(fake, tmp_path):
    config = Table2(("eeg",), (1, 4), trials=2)
    rows = [
        fake.row("eeg", multiple, trial, method, "own", 0)
        for multiple in (1, 4)
        for trial in range(2)
        for method in METHODS
    ]
    some = [row | {"error": 0.1 / row["multiple"]} for row in rows[:8]]
    text = figure1.figure1_report(config, rows, some).markdown()
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert any(line.startswith("| 1d | error | 0.1000 ± 0.0000 |") for line in lines)
    assert any(line.startswith("| 4d | error | – | –") for line in lines)  # noqa: RUF001
    assert any(line.startswith("| | paper | 74.70 ± 0.94 |") for line in lines)
    assert any(line.startswith("| | paper's time | 30.0 ms |") for line in lines)
    figure1.figure1_report(config, rows, []).write(tmp_path)
