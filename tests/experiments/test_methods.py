"""Every method by name: its features, its trials, and the table of all of them."""

import csv
import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from surff import FourierFeatures, NystroemFeatures
from surff.adaptation import ADAPTATIONS
from surff.draws import DRAWS
from surff.experiments import (
    DRAW_NAMES,
    LANDMARKS,
    METHODS,
    MORE,
    PROTOCOLS,
    Table2,
    all_methods,
    features_of,
    load_problem,
    method_captions,
    method_table,
    missing_trials,
    selectors,
    summary_cells,
    table2_report,
    why_not,
)
from surff.selection import LANDMARK_RULES, SELECTORS

CONFIG = Table2(
    ("breast_cancer",), (1, 2), trials=5, protocol="fair", methods=tuple(all_methods())
)


def test_everything_that_surff_has_is_a_method():
    draws = {"monte_carlo", "halton", *MORE} & DRAWS.keys()
    assert draws == DRAWS.keys()
    assert tuple(DRAWS) == DRAW_NAMES
    assert SELECTORS.keys() | ADAPTATIONS.keys() <= all_methods().keys()
    rules = {name for name in MORE if name.startswith("nystroem-")}
    assert rules == {f"nystroem-{rule}" for rule in LANDMARKS}
    assert LANDMARKS.keys() == {*LANDMARK_RULES, "kmeans"}


@pytest.mark.parametrize("method", all_methods())
def test_features_are_those_of_the_name(method):
    features = features_of(method, "fair", 3, 2, 0.25, 7, 100)
    assert (features.n_components, features.gamma) == (12, 0.25)
    assert features.random_state == 7
    kind, _, rule = method.partition("-")
    if kind == "nystroem":
        assert isinstance(features, NystroemFeatures)
        assert features.landmarks == rule
        return
    assert isinstance(features, FourierFeatures)
    names = {"rff": "monte_carlo", "qmc": "halton"}
    expected = names.get(method, method) if method not in SELECTORS else "monte_carlo"
    assert features.draw == (expected if expected in DRAWS else "monte_carlo")
    assert features.adapt == (method if method in ADAPTATIONS else None)
    if features.select is not None:
        assert type(features.select) is SELECTORS[kind]
        assert getattr(features.select, "ridge_term", False) == (rule == "ridge")
    else:
        assert method not in SELECTORS


def test_an_unknown_name_is_no_plain_rff():
    for name in ("nonsense", "nystroem-nonsense"):
        with pytest.raises(ValueError, match=rf"method must be one of .*'{name}'"):
            features_of(name, "fair", 3, 2, 0.25, 7, 100)


def test_literal_and_published_know_the_papers_selectors_alone():
    for protocol in ("literal", "published"):
        assert selectors(protocol, 10).keys() == {"leverage", "surrogate"}


def test_every_method_runs_a_fair_trial():
    problem = load_problem("breast_cancer")
    # 30 columns and a hundred rows: what matters is that each goes through.
    problem = problem._replace(X=problem.X[:240, :4], y=problem.y[:240])
    methods = [name for name in all_methods() if not why_not(name, 4, 2)]
    rows = PROTOCOLS["fair"](problem, 2, 0, methods)
    assert [row["method"] for row in rows] == methods
    accuracies = {row["method"]: row["accuracy"] for row in rows}
    assert min(accuracies.values()) > 0.75
    assert all(row["n_frequencies"] == 8 for row in rows)
    # Each is a map of its own, but adaptations that gain nothing leave the draw.
    rows = [row for row in rows if row["method"] not in ADAPTATIONS]
    assert len({(row["accuracy"], row["alpha"]) for row in rows}) == len(rows)


def test_a_size_without_a_map_is_left_out_and_told():
    class Empty:
        def __contains__(self, key):
            return False

    trials = missing_trials(CONFIG, Empty())
    assert len(trials) == 10
    for trial in trials:
        assert ("sparse_grid" in trial.methods) == (trial.multiple == 2)
    text = " ".join(method_captions(CONFIG, rows_of(CONFIG)))
    assert "sparse grid has no map of 1d frequencies" in text


def rows_of(config, d=30):
    """Rows of known accuracies: a gain of each method, noise of each trial."""
    rows = []
    for multiple in config.multiples:
        for i, method in enumerate(config.methods_at("breast_cancer", multiple)):
            for trial in range(config.trials):
                accuracy = 0.8 + 0.02 * (-1) ** i * i / 100 + 0.01 * trial
                accuracy += 3e-4 * (trial * (i % 2 + 1) % 3)
                rows.append(
                    {
                        "protocol": "fair",
                        "dataset": "breast_cancer",
                        "method": method,
                        "multiple": multiple,
                        "trial": trial,
                        "weights": "own",
                        "seed": 0,
                        "n_frequencies": multiple * d,
                        "n_train": 284,
                        "n_test": 285,
                        "accuracy": accuracy,
                        "alpha": 1.0,
                        "gamma": 0.1,
                        "generation_time": 1e-3 * (1 + i),
                        "at_grid_end": [],
                    }
                )
    return rows


def test_the_table_has_means_deviations_and_marks():
    rows = rows_of(CONFIG)
    found = method_table(summary_cells(rows, {}), "breast_cancer")
    header, body = found.header, found.rows
    assert header == ["method", "s = 1d", "s = 2d", "time / RFF"]
    assert [line[0] for line in body] == list(all_methods().values())
    table = {line[0]: line[1:] for line in body}
    assert table["sparse grid"][0] == "\N{EN DASH}"
    accuracies = {}
    for row in rows:
        if row["multiple"] == 2:
            accuracies.setdefault(row["method"], []).append(row["accuracy"])
    for i, (method, label) in enumerate(all_methods().items()):
        values = 100 * np.array(accuracies[method])
        text = f"{values.mean():.2f} ± {values.std(ddof=1):.2f}"
        gain = values - 100 * np.array(accuracies["rff"])
        equal = np.ptp(gain) < 1e-9
        scale = math.sqrt((1 / 5 + 285 / 284) * gain.var(ddof=1))
        if i and (equal or 2 * stats.t.sf(abs(gain.mean()) / scale, 4) < 0.05):
            text += " •" if gain.mean() > 0 else " ◦"
        assert table[label][1] == text
        assert table[label][2] == f"{1 + i:.3g}x"
    marks = {line[-1] for line in (row[1] for row in table.values())}
    assert {"•", "◦"} <= marks


def test_the_table_is_written_in_every_form(tmp_path):
    rows = rows_of(CONFIG)
    report = table2_report(CONFIG, rows)
    names = {path.name for path in report.write(tmp_path)}
    pictures = {"methods-breast_cancer.png", "methods-breast_cancer.svg"}
    assert names == {"methods.md", "methods.tex", "methods.csv"} | pictures
    markdown = (tmp_path / "methods.md").read_text()
    assert all(label in markdown for label in all_methods().values())
    with (tmp_path / "methods.csv").open(newline="") as file:
        table = list(csv.DictReader(file))
    assert len(table) == 2 * len(all_methods()) - 1
    for line in table:
        own = [
            100 * r["accuracy"]
            for r in rows
            if (r["method"], r["multiple"]) == (line["method"], int(line["multiple"]))
        ]
        assert_allclose(float(line["accuracy"]), np.mean(own), rtol=1e-9)
    latex = (tmp_path / "methods.tex").read_text()
    assert latex.count("{") == latex.count("}")
    assert len(report.tables) == 1


def test_methods_of_ours_run_under_fair_alone():
    for protocol in ("published", "literal"):
        with pytest.raises(ValueError, match="'fair', got protocol="):
            Table2(protocol=protocol, methods=("rff", "sobol"))
    with pytest.raises(ValueError, match=r"methods must be one of rff.*got 'xyz'"):
        Table2(protocol="fair", methods=("xyz",))
    assert Table2(protocol="fair", methods=tuple(METHODS)).more == ()
