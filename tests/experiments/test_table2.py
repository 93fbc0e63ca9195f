"""Runs that are stopped, cut or extended end with the rows of one uninterrupted run."""

import csv

import pytest

from surff.experiments import (
    KEY,
    MULTIPLES,
    ResultStore,
    Table2,
    missing_trials,
    row_key,
    run_table2,
    select_rows,
    table2_report,
)

CONFIG = Table2(datasets=("eeg", "magic04"), multiples=(1, 4), trials=3)


def run(config, path):
    store = ResultStore(path)
    run_table2(config, store)
    return select_rows(config, ResultStore(path).rows)


def test_every_trial_runs_once_and_is_stored(fake, tmp_path):
    rows = run(CONFIG, tmp_path / "a.jsonl")
    assert len(rows) == len({row_key(row) for row in rows}) == 2 * 2 * 3 * 4
    assert len(fake.calls) == 2 * 2 * 3
    assert fake.loaded == ["eeg", "magic04"]
    assert run(CONFIG, tmp_path / "a.jsonl") == rows
    assert len(fake.calls) == 2 * 2 * 3
    assert fake.loaded == ["eeg", "magic04"]  # nothing to run loads nothing


@pytest.mark.parametrize("stop_before", [0, 1, 7, 11])
def test_a_stopped_run_goes_on_to_the_same_rows(fake, tmp_path, stop_before):
    expected = run(CONFIG, tmp_path / "whole.jsonl")
    fake.calls.clear()
    fake.stop_before = stop_before
    path = tmp_path / "stopped.jsonl"
    with pytest.raises(KeyboardInterrupt):
        run(CONFIG, path)
    assert len(ResultStore(path)) == 4 * stop_before
    fake.stop_before = None
    assert run(CONFIG, path) == expected
    assert len(fake.calls) == 12  # no trial ran twice


@pytest.mark.parametrize("lost", [1, 100, 700, 2000])
def test_a_file_cut_by_a_kill_is_completed_to_the_same_rows(
    fake, tmp_path, lost, caplog
):
    path = tmp_path / "a.jsonl"
    expected = run(CONFIG, path)
    content = path.read_bytes()
    path.write_bytes(content[:-lost])
    assert run(CONFIG, path) == expected
    assert "was cut short" in caplog.text
    assert path.read_bytes() == content


def test_only_missing_methods_run(fake, tmp_path):
    path = tmp_path / "a.jsonl"
    few = Table2(("eeg",), (1,), trials=2, methods=("rff", "surrogate"))
    run(few, path)
    assert fake.calls[-1] == ("eeg", 1, 1, ("rff", "surrogate"))
    run(Table2(("eeg",), (1,), trials=2), path)
    assert fake.calls[-1] == ("eeg", 1, 1, ("qmc", "leverage"))
    rows = run(Table2(("eeg",), (1,), trials=3, ablation=True), path)
    assert fake.calls[-2:] == [
        ("eeg", 1, 1, ("rff-alpha-2s", "rff-wide")),
        (
            "eeg",
            1,
            2,
            ("rff", "qmc", "leverage", "surrogate", "rff-alpha-2s", "rff-wide"),
        ),
    ]
    assert len(rows) == 3 * 6


def test_other_seeds_and_weights_are_other_rows(fake, tmp_path):
    path = tmp_path / "a.jsonl"
    own = Table2(("eeg",), (1,), trials=2)
    rows = run(own, path)
    assert run(Table2(("eeg",), (1,), trials=2, seed=1), path) != rows
    sorted_rows = run(Table2(("eeg",), (1,), trials=2, weights="sorted"), path)
    assert {row["weights"] for row in sorted_rows} == {"sorted"}
    assert select_rows(own, ResultStore(path).rows) == rows
    assert len(ResultStore(path)) == 3 * 2 * 4


def test_covtype_stops_at_16_unless_large(fake, tmp_path):
    config = Table2(("eeg", "covtype"), MULTIPLES, trials=1)
    trials = missing_trials(config, ResultStore(tmp_path / "a.jsonl"))
    run_at = {trial.multiple for trial in trials if trial.dataset == "covtype"}
    assert run_at == {1, 2, 4, 8, 16}
    assert config.left_out() == {"covtype": (32, 64, 128)}
    large = Table2(("covtype",), MULTIPLES, trials=1, large=True)
    assert large.multiples_of("covtype") == MULTIPLES
    assert large.left_out() == {}


def test_later_trials_are_expected_to_take_longer(tmp_path):
    trials = missing_trials(
        Table2(("eeg",), MULTIPLES, trials=1), ResultStore(tmp_path / "a.jsonl")
    )
    costs = [trial.cost for trial in trials]
    assert costs == sorted(costs)
    assert costs[-1] > 20 * costs[0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"datasets": ("egg",)}, "datasets must be one of eeg, .*digits, got 'egg'"),
        ({"datasets": ()}, "datasets must name some of eeg, .*, got none"),
        ({"methods": ("ours",)}, "methods must be one of rff, .*, got 'ours'"),
        ({"protocol": "best"}, "protocol must be one of published, .*, got 'best'"),
        ({"weights": "none"}, "weights must be one of own, sorted, got 'none'"),
        ({"multiples": (1, 0)}, "multiples must be an integer of at least 1, got 0"),
        ({"multiples": ()}, "multiples must have at least one number, got none"),
        ({"trials": 2.5}, "trials must be an integer of at least 1, got 2.5"),
        ({"seed": -1}, "seed must be an integer of at least 0, got -1"),
        (
            {"protocol": "fair", "weights": "sorted"},
            "weights='sorted' is a reading of .* got protocol='fair'",
        ),
        (
            {"protocol": "literal", "ablation": True},
            "ablation takes .* apart, got protocol='literal'",
        ),
    ],
)
def test_bad_options_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        Table2(**options)


def test_options_are_put_in_order_once_each():
    config = Table2(("magic04", "eeg", "magic04"), (4, 1, 4), methods=("qmc", "rff"))
    assert config.datasets == ("magic04", "eeg")
    assert config.multiples == (1, 4)
    assert config.methods == ("rff", "qmc")


def test_what_is_there_is_written(fake, tmp_path):
    fake.stop_before = 8  # both sizes of eeg, one of magic04
    store = ResultStore(tmp_path / "results.jsonl")
    with pytest.raises(KeyboardInterrupt):
        run_table2(CONFIG, store)
    out = tmp_path / "new" / "out"
    rows = select_rows(CONFIG, store.rows)
    paths = table2_report(CONFIG, rows).write(out)
    assert [path.name for path in paths] == [
        "table2.md",
        "table2.tex",
        "table2.csv",
        "table2-eeg.png",
        "table2-eeg.svg",
        "table2-magic04.png",
        "table2-magic04.svg",
    ]
    assert sorted(out.iterdir()) == sorted(paths)
    assert "2 to 3 trials (the run is not finished)" in paths[0].read_text("utf-8")
    with paths[2].open(newline="") as file:
        lines = list(csv.DictReader(file))
    assert [line["trials"] for line in lines] == ["3"] * 8 + ["2"] * 4


def test_a_real_protocol_gives_rows_of_this_form_and_the_same_when_resumed(tmp_path):
    config = Table2(("breast_cancer",), (1,), trials=2, ablation=True)
    rows = run(config, tmp_path / "a.jsonl")
    assert len(rows) == 2 * 6
    for row in rows:
        assert set(KEY) < set(row)
        assert 0.5 < row["accuracy"] <= 1.0
        assert row["generation_time"] > 0.0
        assert set(row["at_grid_end"]) <= {"alpha", "gamma"}
    path = tmp_path / "b.jsonl"
    content = (tmp_path / "a.jsonl").read_bytes()
    path.write_bytes(content[: len(content) // 3])  # killed inside the first trial
    times = {"generation_time", "fit_time"}
    resumed = run(config, path)

    def without_times(rows):
        return [
            {name: value for name, value in row.items() if name not in times}
            for row in rows
        ]

    assert without_times(resumed) == without_times(rows)
