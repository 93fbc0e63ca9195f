"""Methods and data of users in the protocols."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression

from surff import FourierFeatures
from surff.adaptation import Adaptation, Adapted
from surff.experiments import (
    Benchmark,
    ResultStore,
    Table2,
    add_method,
    add_task,
    benchmark_report,
    features_of,
    run_benchmark,
    run_table2,
    select_rows,
    table2_report,
    task_of_file,
)
from surff.experiments import benchmark as benchmark_module
from surff.experiments import methods as methods_module
from surff.selection import SurrogateLeverage


class Twice(BaseEstimator):
    """A draw of every frequency twice."""

    def draw(self, measure, n_frequencies, n_features, rng):
        half = measure.sample(rng, -(-n_frequencies // 2), n_features)
        return np.repeat(half, 2, axis=0)[:n_frequencies]


class Halved(Adaptation):
    """An adaptation to frequencies half as long."""

    needs_target = False

    def adapt(self, frequencies, X, Y, rng, sample_weight=None):
        return Adapted(0.5 * frequencies)


class Mine(SurrogateLeverage):
    """A selector."""


def cauchy(n_components, gamma, random_state):
    return FourierFeatures(
        n_components, kernel="cauchy", gamma=gamma, random_state=random_state
    )


pytestmark = pytest.mark.usefixtures("own_names")


@pytest.mark.parametrize("part", [Twice, Halved(), Mine, cauchy, FourierFeatures()])
def test_parts_become_features_of_the_protocol(part):
    name = add_method(part)
    features = features_of(name, "fair", 3, 2, 0.7, 5, 100)
    given = features.get_params(deep=False)
    assert (given["n_components"], given["gamma"]) == (12, 0.7)
    assert given["random_state"] == 5
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 3))
    assert features.fit(X, X[:, 0]).frequencies_.shape == (6, 3)


def test_own_methods_run_in_the_fair_table(tmp_path):
    names = tuple(add_method(part) for part in (Twice, Halved))
    options = {"datasets": ("breast_cancer",), "multiples": (1,), "trials": 1}
    config = Table2(methods=("rff", *names), protocol="fair", **options)
    assert config.methods == ("rff", "Twice", "Halved")
    store = ResultStore(tmp_path / "rows.jsonl")
    run_table2(config, store)
    report = table2_report(config, select_rows(config, store.rows))
    text = "\n".join(path.read_text() for path in report.write(tmp_path) if
                     path.suffix in (".md", ".tex", ".csv"))  # fmt: skip
    for label in ("RFF", "Twice", "Halved"):
        assert label in text
    with pytest.raises(ValueError, match="run under the protocol 'fair'"):
        Table2(methods=names, **options)


def test_estimators_and_data_of_users_run_in_the_benchmark(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    name = add_method(LogisticRegression(C=10.0), "logistic_C10")
    task = add_task("mine", X, np.where(X[:, 0] > 0, "yes", "no"))
    config = Benchmark(
        tasks=(task,), methods=(name, add_method(Twice)), multiples=(1,), splits=2
    )
    store = ResultStore(tmp_path / "rows.jsonl", Benchmark.KEY)
    run_benchmark(config, store)
    rows = select_rows(config, store.rows)
    assert [(row["method"], row["multiple"]) for row in rows] == [
        *[("Twice", 1)] * 2,
        *[("logistic_C10", 0)] * 2,
    ]
    assert all(row["score"] > 0.9 for row in rows if row["method"] == name)
    written = benchmark_report(config, rows).write(tmp_path)
    texts = {path.suffix: path.read_text() for path in written if path.suffix != ".png"}
    assert "Twice" in texts[".md"]
    assert "\\caption{mine: accuracy in \\%, mean and standard" in texts[".tex"]
    assert r"logistic\_C10" in texts[".tex"]
    assert "t-test" not in texts[".tex"].partition("\\begin")[2]  # of two trials


def test_wrong_methods_are_refused(tmp_path, monkeypatch):
    with pytest.raises(TypeError, match="a method must have a method draw, select"):
        add_method(3.0)
    with pytest.raises(ValueError, match="must not be that of a method of surff"):
        add_method(Twice, "rff")
    with pytest.raises(ValueError, match="method must be module:object"):
        add_method("module")
    with pytest.raises(ValueError, match="cannot be imported: No module named"):
        add_method("nowhere_at_all:thing")
    with pytest.raises(ValueError, match="has no 'thing'"):
        add_method("math:thing")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my_methods.py").write_text(
        "from surff.draws import Orthogonal\nclass Mine(Orthogonal):\n    pass\n"
    )
    assert add_method("my_methods:Mine") == "my_methods:Mine"
    assert methods_module.LABELS["my_methods:Mine"] == "Mine"


def test_tables_of_users_are_read_and_checked(tmp_path):
    pytest.importorskip("pandas")
    path = tmp_path / "houses.csv"
    lines = [f"{i},{i % 7},{'big' if i % 2 else 'small'}" for i in range(60)]
    path.write_text("\n".join(["area,rooms,kind", *lines]))
    assert task_of_file(path, "kind") == "houses"
    assert benchmark_module.load_task("houses").classification
    for target, labels in (("rooms", True), ("area", False)):
        path.write_text("\n".join(["area,rooms", *(f"{i},{i % 7}" for i in range(60))]))
        task_of_file(path, target)
        assert benchmark_module.load_task("houses").classification is labels
    with pytest.raises(ValueError, match=r"there is no column 'price', only 'area'"):
        task_of_file(path, "price")
    path.write_text("\n".join(["area,kind", "1,a", ",b"]))
    with pytest.raises(ValueError, match="column 'area' has an empty cell in row 1"):
        task_of_file(path, "kind")
    path.write_text("\n".join(["area,kind", "1,a", "2,b"]))
    with pytest.raises(ValueError, match="column 'kind' holds no numbers, such as 'a'"):
        task_of_file(path, "area")
    with pytest.raises(ValueError, match="10 rows or more"):
        add_task("few", np.zeros((3, 2)), np.zeros(3))
    with pytest.raises(ValueError, match=r"X must be finite, got nan in row 2, column"):
        add_task("nan", np.where(np.eye(20)[:, 2:4] > 0, np.nan, 0), np.zeros(20))
    with pytest.raises(ValueError, match="must not be that of a task of surff"):
        add_task("eeg", np.zeros((20, 2)), np.zeros(20))
