"""Pages and tables say what the stored trials say, and change when these do."""

import importlib
import json
import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
pytestmark = pytest.mark.skipif(
    not (ROOT / "docs" / "results").exists(), reason="a source archive has no results"
)


@pytest.fixture(scope="module")
def tool():
    """The script that makes tables and pages."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "tools"))
        yield importlib.import_module("reproduction")


def test_pages_and_tables_say_what_the_trials_say(tool, capsys):
    status = tool.main(["--check"])
    stale = capsys.readouterr().out
    assert status == 0, f"python tools/reproduction.py; stale are:\n{stale}"


def test_every_printed_cell_is_on_the_page():
    page = (ROOT / "docs" / "reproduction.md").read_text("utf-8")
    assert "{include} results/published/table2.md" in page
    table = (ROOT / "docs/results/published/table2.md").read_text("utf-8")
    paper = [line for line in table.splitlines() if " paper | " in line]
    assert len(paper) == 29
    assert sum(line.count(" ± ") for line in paper) == 116


@pytest.fixture
def docs(tmp_path):
    """A copy of the page on reproduction and of its trials."""
    for name in ("*/results.jsonl", "recipes/recipes.csv"):
        for path in (ROOT / "docs" / "results").glob(name):
            (tmp_path / "results" / path.parent.name).mkdir(parents=True)
            shutil.copy(path, tmp_path / "results" / path.parent.name)
    shutil.copy(ROOT / "docs" / "reproduction.md", tmp_path)
    return tmp_path


def test_a_changed_result_changes_the_page(tool, docs):
    text = (docs / "reproduction.md").read_text("utf-8")
    assert tool.filled("reproduction.md", text, tool.Results(docs / "results")) == text
    path = docs / "results" / "published" / "results.jsonl"
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    for row in rows:
        if (row["dataset"], row["multiple"], row["method"]) == ("magic04", 8, "qmc"):
            row["accuracy"] += 0.05
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    changed = tool.filled("reproduction.md", text, tool.Results(docs / "results"))
    before, after = (
        [line for line in page.splitlines() if line.startswith("|        magic04 |")]
        for page in (text, changed)
    )
    # 5 points in one of the eight sizes of QMC.
    (old,), (new,) = before, after
    old, new = (float(line.split("|")[3]) for line in (old, new))
    assert new - old == pytest.approx(5 / 8, abs=0.03)
    assert "magic04 8d QMC +4.9" in changed


@pytest.mark.parametrize(
    ("page", "trials", "name"),
    [
        ("intervals.md", "intervals", "cv"),
        ("uncertainty.md", "intervals", "std"),
        ("uncertainty.md", "evidence", "nlpd"),
        ("leaves.md", "leaves", "score"),
    ],
)
def test_a_changed_trial_changes_the_pages(tool, tmp_path, page, trials, name):
    for own in ("intervals", "evidence", "leaves", "benchmark"):
        (tmp_path / own).mkdir()
        for file in (ROOT / "docs" / "results" / own).glob("*.jsonl"):
            shutil.copy(file, tmp_path / own)
    text = (ROOT / "docs" / page).read_text("utf-8")
    assert tool.filled(page, text, tool.Results(tmp_path)) == text
    path = tmp_path / trials / "trials.jsonl"
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    for row in rows:
        of_one = trials != "intervals"
        row[name] = row[name] + 0.1 if of_one else [c + 0.1 for c in row[name]]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    assert tool.filled(page, text, tool.Results(tmp_path)) != text


def test_a_page_without_its_blocks_is_refused(tool):
    with pytest.raises(ValueError, match=r"accuracy.md must have the blocks"):
        tool.filled("accuracy.md", "# No block", None)


def test_a_size_or_leaves_that_do_worse_are_told(tool, tmp_path):
    scores = {("auto", 4): 0.80, ("auto", 16): 0.78, ("leaves", 4): 0.76}
    numbers = {"fit_time": 1.0, "tune_time": 0.5, "predict_time": 0.1, "seed": 0}
    numbers |= {"model_bytes": 1000, "n_frequencies": 8, "n_train": 90, "n_test": 10}
    rows = [
        {"dataset": "pol", "method": method, "multiple": multiple, "trial": trial}
        | {"score": score + 1e-3 * trial * (multiple // 4), "rmse": 0.2, **numbers}
        for (method, multiple), score in scores.items()
        for trial in range(6)
    ]
    (tmp_path / "uci").mkdir()
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (tmp_path / "uci" / "benchmark.jsonl").write_text(text, "utf-8")
    results = tool.Results(tmp_path)
    # Differences -2, -1.7, ..., -0.5 points: mean -1.25, deviation 0.56 over sqrt(6).
    # Ten rows to test and ninety to train: over 1 / sqrt(1 / 6 + 1 / 9) as well.
    text = tool.sizes(results)
    assert "pol from 4d to 16d (-1.25, standard errors 0.23 and 0.30)" in text
    assert "falls in 1 by more than one standard error" in text
    assert "not in 1: pol" in text
    assert "significantly worse in 1 (pol 4d)" in tool.leaves(results)
    assert " 0.200 ± " in tool.uci(results)
