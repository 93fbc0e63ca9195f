"""The benchmark: splits, tuning, times and sizes of every method; ranks and tables."""

import csv
import math
import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics import r2_score
from threadpoolctl import threadpool_limits

from surff.experiments import benchmark
from surff.experiments.benchmark import (
    KERNEL_METHODS,
    SUITES,
    TASKS,
    Benchmark,
    Task,
    load_task,
    method_labels,
    run_benchmark,
    split_rows,
    trial_row,
)
from surff.experiments.benchmark_table import (
    benchmark_captions,
    benchmark_cells,
    benchmark_report,
    critical_difference,
    frequencies_needed,
    mean_ranks,
)
from surff.experiments.methods import PACKAGES, PEERS, why_not
from surff.experiments.peers import GRIDS, ExactKernelRidge
from surff.experiments.runner import Trial, missing_trials, select_rows
from surff.experiments.store import ResultStore

KEY = Benchmark.KEY


def waves(n=400, d=2, classification=True):
    """A task whose target is a wave: linear models fail, kernels do not."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    y = np.sin(3.0 * X[:, 0]) + 0.1 * rng.normal(size=n)
    if classification:
        y = np.digitize(y, [-0.4, 0.4])
    return Task("breast_cancer", X, y, classification, None, 0)


@pytest.fixture
def small_grids(monkeypatch):
    """Peers tuned over one choice each, so that a fit takes no time."""
    for name, grid in {
        "boosting": {"learning_rate": [0.2], "max_leaf_nodes": [7]},
        "xgboost": {"learning_rate": [0.2], "max_depth": [4]},
        "lightgbm": {"learning_rate": [0.2], "num_leaves": [7]},
        "mlp": {"alpha": [1e-5], "learning_rate_init": [0.05]},
        "xrfm": {"bandwidth": [3.0], "diagonal": [True]},
        "kernel-ridge": {"gamma": np.array([1.0, 4.0]), "alpha": [0.1]},
    }.items():
        monkeypatch.setitem(GRIDS, name, grid)
    with threadpool_limits(1):
        yield


@pytest.mark.parametrize(
    ("method", "classification"),
    [
        *((method, True) for method in (*KERNEL_METHODS, *PEERS)),
        # Methods of surff differ in their features alone.
        *((method, False) for method in ("rff", "leaves", *PEERS)),
    ],
)
def test_every_method_is_tuned_fitted_and_tested(small_grids, method, classification):
    if method in PACKAGES:
        module, _ = PACKAGES[method]
        pytest.importorskip(module, reason=f"{module} is a peer, not a dependency")
    task, config = waves(classification=classification), Benchmark()
    part = benchmark.prepared(task, 1, 0)
    row = trial_row(task, part, config, Trial(task.name, 8, 1, (method,), 1.0))
    # A linear model reaches 0.41 (accuracy, three classes) and 0.003 (R2).
    assert row["score"] > (0.55 if classification else 0.15)
    assert 0 <= row["tune_time"] <= row["fit_time"]
    assert row["predict_time"] > 0
    assert row["model_bytes"] > 1000
    assert (row["n_frequencies"], row["n_train"], row["n_test"]) == (16, 200, 200)
    if classification:
        again = trial_row(task, part, config, Trial(task.name, 8, 1, (method,), 1.0))
        assert again["score"] == row["score"]


@pytest.mark.parametrize("classification", [True, False])
def test_exact_kernel_ridge_is_scikit_learns(classification):
    task = waves(60, classification=classification)
    model = ExactKernelRidge(0.5, 0.1, classification).fit(task.X, task.y)
    Y = task.y.astype(float)
    if classification:
        Y = np.where(task.y[:, None] == np.arange(3), 1.0, -1.0)
    peer = KernelRidge(kernel="rbf", gamma=0.5, alpha=0.1).fit(task.X, Y - Y.mean(0))
    expected = peer.predict(task.X) + Y.mean(0)
    if classification:
        assert_array_equal(model.predict(task.X), expected.argmax(axis=1))
    else:
        assert_allclose(model.predict(task.X), expected, rtol=1e-10)
        assert_allclose(model.score(task.X, Y), r2_score(Y, expected), rtol=1e-10)


def test_splits_share_no_row_and_keep_stretches_together():
    halves = waves(101)
    train, test = split_rows(halves, 3, 0)
    assert_array_equal(np.sort(np.concatenate([train, test])), np.arange(101))
    assert len(train) == 50
    assert not np.array_equal(train, split_rows(halves, 4, 0)[0])
    stretches = halves._replace(chunks=20)
    train, test = split_rows(stretches, 3, 0)
    assert_array_equal(np.sort(np.concatenate([train, test])), np.arange(101))
    side = np.isin(np.arange(101), train)
    assert np.count_nonzero(np.diff(side)) < 20  # changes at edges of stretches alone
    fifth = halves._replace(train=0.8)
    assert [len(side) for side in split_rows(fifth, 3, 0)] == [80, 21]
    mask = np.arange(101)[:, None] % 10 == np.arange(10)
    train, test = split_rows(halves._replace(masks=mask), 3, 0)
    assert_array_equal(test, np.arange(3, 101, 10))
    assert_array_equal(np.sort(np.concatenate([train, test])), np.arange(101))
    divided = halves._replace(n_train=40)
    assert_array_equal(split_rows(divided, 3, 0)[0], np.arange(40))


def test_normal_scores_are_those_of_the_ranks_in_the_training_rows():
    rng = np.random.default_rng(0)
    X = np.exp(rng.normal(size=(1001, 2)))
    task = waves(1001)._replace(name="magic04-scores", X=X)
    part = benchmark.prepared(task, 1, 0)
    train, test = split_rows(task, 1, 0)
    ranks = stats.rankdata(X[train], axis=0) - 1.0
    expected = stats.norm.ppf(ranks / (len(train) - 1)).clip(-3.0, 3.0)
    assert_allclose(part.X, expected, atol=1e-9)
    low, high = X[train].min(axis=0), X[train].max(axis=0)
    beyond = (X[test] < low) | (X[test] > high)
    assert beyond.any()
    assert_array_equal(np.abs(part.test_X[beyond]), 3.0)
    order = np.argsort(X[test], axis=0)
    assert np.all(np.diff(np.take_along_axis(part.test_X, order, axis=0), axis=0) >= 0)


@pytest.mark.parametrize(
    "name",
    [
        name
        for name in TASKS
        if not name.startswith("covtype") and name not in SUITES["uci"][2:]
    ],
)
def test_every_task_loads(real_data, name):
    for part in TASKS[name].parts:
        real_data(TASKS[name].dataset, part)  # skips where the files are not
    task = load_task(name)
    numbers = name in ("california-housing", "diamonds", *SUITES["uci"])
    assert task.classification != numbers
    assert (task.masks is not None) == (name in SUITES["uci"])
    if task.classification:
        assert_array_equal(np.unique(task.y), np.arange(task.y.max() + 1))
    assert (task.n_train is not None) == (name in ("cod-rna", "ijcnn1"))
    assert (task.chunks > 0) == (name == "eeg-time")


def test_runs_resume_and_are_written(tmp_path, small_grids):
    config = Benchmark(
        ("breast_cancer",), ("rff", "surrogate", "kernel-ridge"), (2, 1), splits=2
    )
    store = ResultStore(tmp_path / "a.jsonl", KEY)
    run_benchmark(config, store)
    rows = select_rows(config, store.rows)
    assert len(rows) == 2 * (2 + 2 + 1)
    wider = Benchmark(("breast_cancer",), ("rff", "kernel-ridge"), (1, 2), splits=3)
    again = ResultStore(tmp_path / "a.jsonl", KEY)
    run_benchmark(wider, again)
    assert again.rows[: len(store.rows)] == store.rows
    assert len(again.rows) == len(store.rows) + 3
    names = {
        path.name for path in benchmark_report(config, rows).write(tmp_path / "out")
    }
    assert names == {
        "benchmark.md",
        "benchmark.csv",
        "benchmark.tex",
        "benchmark-breast_cancer.png",
        "benchmark-breast_cancer.svg",
    }
    markdown = (tmp_path / "out" / "benchmark.md").read_text()
    assert "exact kernel ridge" in markdown
    assert "284 rows to train" in markdown
    with (tmp_path / "out" / "benchmark.csv").open(newline="") as file:
        lines = list(csv.DictReader(file))
    scores = [r["score"] for r in rows if (r["method"], r["multiple"]) == ("rff", 2)]
    line = next(x for x in lines if (x["method"], x["multiple"]) == ("rff", "2"))
    assert_allclose(float(line["score"]), 100 * np.mean(scores), rtol=1e-7)


def rows_of(scores, splits=5):
    """Rows with given mean scores: ``{(task, multiple, method): score}``."""
    return [
        {
            "dataset": task,
            "method": method,
            "multiple": multiple,
            "trial": trial,
            "seed": 0,
            "score": score + 1e-3 * (trial % 2) + 1e-4 * trial * (method == "rff"),
            "fit_time": 1.0 + trial,
            "tune_time": 0.5,
            "predict_time": 0.1,
            "model_bytes": 1000,
            "n_frequencies": 14 * multiple,
            "n_train": 100,
            "n_test": 100,
        }
        for (task, multiple, method), score in scores.items()
        for trial in range(splits)
    ]


SCORES = {
    ("eeg", 1, "rff"): 0.70,
    ("eeg", 16, "rff"): 0.90,
    ("eeg", 1, "auto"): 0.91,
    ("eeg", 16, "auto"): 0.97,
    ("eeg", 1, "eerf"): 0.60,
    ("eeg", 16, "eerf"): 0.80,
    ("eeg", 0, "boosting"): 0.93,
    ("letter", 1, "rff"): 0.50,
    ("letter", 16, "rff"): 0.95,
    ("letter", 1, "auto"): 0.40,
    ("letter", 16, "auto"): 0.96,
    ("letter", 1, "eerf"): 0.45,
    ("letter", 16, "eerf"): 0.90,
    ("letter", 0, "boosting"): 0.97,
}


def test_cells_ranks_and_frequencies_needed():
    rows = rows_of(SCORES)
    cells = benchmark_cells(rows)
    cell = cells["eeg", 1, "auto"]
    assert_allclose(cell.score.mean, 91.04)
    assert cell.fit_time == 3.0
    ours, rff = (
        [r["score"] for r in rows if (r["dataset"], r["multiple"], r["method"]) == key]
        for key in (("eeg", 1, "auto"), ("eeg", 1, "rff"))
    )
    difference = np.subtract(ours, rff)  # five halves: 1 / 5 + 1
    t = difference.mean() / math.sqrt(1.2 * difference.var(ddof=1))
    assert_allclose(cell.p_value, 2.0 * stats.t.sf(t, 4))
    assert math.isnan(cells["eeg", 1, "rff"].p_value)
    # On eeg: boosting, auto, rff, eerf. On letter: boosting, rff, eerf, auto.
    ranks, n_tasks = mean_ranks(cells, 1)
    assert n_tasks == 2
    assert ranks == {"rff": 2.5, "eerf": 3.5, "auto": 3.0, "boosting": 1.0}
    twice = {("eeg-time", *key[1:]): value for key, value in cells.items()}
    assert mean_ranks({**cells, **twice}, 1) == (ranks, n_tasks)
    assert frequencies_needed(cells, "eeg") == {"rff": 16, "auto": 1, "eerf": None}
    assert frequencies_needed(cells, "letter") == {"rff": 16, "auto": 16, "eerf": None}


def test_one_split_and_few_splits_have_no_test():
    scores = {("ijcnn1", 4, "rff"): 0.9, ("ijcnn1", 4, "auto"): 0.95}
    rows = rows_of(scores)
    assert math.isnan(benchmark_cells(rows)["ijcnn1", 4, "auto"].p_value)
    config = Benchmark(("ijcnn1",), ("rff", "auto"), (4,))
    text = " ".join(benchmark_captions(config, rows))
    assert "ijcnn1: one split, the source's own; its trials differ in their" in text
    few = [row for row in rows_of(SCORES) if row["trial"] < 4]
    assert all(math.isnan(cell.p_value) for cell in benchmark_cells(few).values())


def test_ranks_are_tested_over_the_data_sets():
    tasks = ("eeg", "magic04", "covtype", "letter", "california-housing", "digits")
    scores = {(task, 4, "rff"): 0.5 + i / 50 for i, task in enumerate(tasks)}
    scores |= {(task, 4, "auto"): 0.7 + i / 40 for i, task in enumerate(tasks)}
    report = benchmark_report(Benchmark(tasks, ("rff", "auto")), rows_of(scores))
    (table,) = (t for t in report.tables if t.title.startswith("Mean ranks"))
    # Six of six one way: 2 / 2**6.
    assert ["adapted (auto)", "1.00 (0.031)"] in list(table.rows)
    assert ["RFF", "2.00"] in list(table.rows)


def test_errors_on_masked_sets_stand_next_to_published_ones():
    scores = {("bike", 4, "rff"): 0.9, ("bike", 4, "leaves"): 0.99}
    rows = [row | {"rmse": 2.0 * (1.0 - row["score"])} for row in rows_of(scores)]
    config = Benchmark(("bike", "covtype-7"), ("rff", "leaves", "xrfm"), (4,))
    table = benchmark_report(config, rows).tables[0]
    assert table.title == "Root mean square errors"
    header = ["set", "RFF, 4d", "adapted, with leaves, 4d"]
    assert list(table.header[:3]) == header
    assert table.header[3:] == ["exact GP (published)", "SDD (published)"]
    errors = [2.0 * (0.01 - 1e-3 * (trial % 2)) for trial in range(5)]
    text = f"{np.mean(errors):#.3g} ± {np.std(errors, ddof=1):.1g}"
    (line,) = table.rows
    assert line[0] == "bike"
    assert line[2:] == [text, "0.22", "0.04"]
    text = " ".join(benchmark_captions(config, rows))
    assert "need a package of their own: xRFM (xrfm)." in text
    seven = rows_of({("covtype-7", 4, "rff"): 0.75})
    text = " ".join(benchmark_captions(config, seven))
    assert "covtype-7: published random feature network 74.7, RFRBoost 79.7" in text


def test_critical_differences_are_those_of_the_literature():
    # Demsar 2006: q = 2.569 for 4 methods and 3.102 for 9, at 5 %.
    assert_allclose(critical_difference(4, 14), 2.569 * math.sqrt(20 / 84), rtol=1e-3)
    assert_allclose(critical_difference(9, 10), 3.102 * math.sqrt(90 / 60), rtol=1e-3)


def test_text_marks_what_differs(tmp_path):
    config = Benchmark(("eeg", "letter"), ("rff", "auto", "eerf", "boosting"), (1, 16))
    rows = rows_of(SCORES)
    report = benchmark_report(config, rows)
    lines = report.markdown().splitlines()
    auto = [line for line in lines if "adapted (auto)" in line]
    assert "91.04 ± 0.05 •" in auto[0]
    assert "40.04 ± 0.05 ◦" in auto[1]
    assert [text.strip() for text in auto[-1].split("|")[2:4]] == ["1d (1)", "16d (1)"]
    assert any("critical difference" in line for line in lines)
    assert len(report.tables) == 4
    one = {key: score for key, score in SCORES.items() if key[2] == "rff"}
    titles = [t.title for t in benchmark_report(config, rows_of(one)).tables]
    assert titles[:2] == ["eeg", "letter"]
    assert "Mean ranks over the data sets" not in titles  # none to rank
    text = " ".join(benchmark_captions(config, rows))
    assert "over 5 trials, seed" in text
    assert "over 4 to 5 trials (benchmark.csv counts them)" in " ".join(
        benchmark_captions(config, rows[1:])
    )
    for task, word in (("eeg-time", "stretches"), ("magic04-scores", "normal scores")):
        assert word not in text
        assert word in " ".join(
            benchmark_captions(config, rows_of({(task, 1, "rff"): 0.5}))
        )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tasks": ()}, "tasks must name some of eeg"),
        ({"tasks": ("mnist",)}, r"tasks must be one of eeg, .*got 'mnist'"),
        ({"methods": ("svm",)}, r"methods must be one of rff, .*got 'svm'"),
        ({"multiples": ()}, "multiples must have at least one"),
        ({"multiples": (0,)}, "multiples must be an integer of at least 1, got 0"),
        ({"splits": 0}, "splits must be an integer of at least 1, got 0"),
        ({"tasks": ("pol",), "splits": 11}, "splits must be at most 10 on pol"),
        ({"seed": -1}, "seed must be an integer of at least 0, got -1"),
    ],
)
def test_bad_options_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        Benchmark(**options)
    with pytest.raises(ValueError, match=r"task must be one of eeg, .*got 'mnist'"):
        load_task("mnist")


def test_suites_are_of_tasks_and_methods_have_names():
    assert all(set(suite) <= TASKS.keys() for suite in SUITES.values())
    assert {task for suite in SUITES.values() for task in suite} == TASKS.keys()
    assert len(SUITES["uci"]) == 10
    assert "covtype" in SUITES["core"]
    assert set(method_labels()) == {*KERNEL_METHODS, *PEERS}
    assert pickle.loads(pickle.dumps(Benchmark())) == Benchmark()


def test_methods_that_are_not_installed_are_left_out_and_stored_rows_kept(
    monkeypatch, tmp_path
):
    monkeypatch.setattr(
        "surff.experiments.methods.PACKAGES", {"xgboost": ("no_such_module", "x")}
    )
    assert why_not("xgboost", 3, 1) == "pip install x"
    config = Benchmark(tasks=("breast_cancer",), methods=("xgboost",), splits=2)
    store = ResultStore(tmp_path / "rows.jsonl", KEY)
    assert missing_trials(config, store) == []
    stored = config.row_of("breast_cancer", 0, 1, "xgboost")
    assert select_rows(config, [stored]) == [stored]
