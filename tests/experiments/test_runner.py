"""What a run shows of itself."""

from surff.experiments import Experiment, ResultStore, run


class Config(Experiment):
    KEY = ("dataset", "method", "multiple", "trial")
    methods = ("rff", "own")
    multiples = (1, 16)

    def plan(self):
        for multiple in self.multiples:
            yield "eeg", multiple, 0, self.methods

    def cost(self, dataset, multiple, methods):
        return float(multiple)


def test_a_run_shows_trials_by_their_cost_and_the_last_results(tmp_path):
    config, seen = Config(), []
    store = ResultStore(tmp_path / "rows.jsonl", Config.KEY)

    def run_trial(trial):
        return [
            {**config.row_of("eeg", trial.multiple, 0, method), "accuracy": 0.785}
            for method in trial.methods
        ]

    run(config, store, run_trial, seen.append)
    assert {progress.names for progress in seen} == {("trials",)}
    last = seen[-1]
    assert (last.done, last.total, last.unit) == (17, 17.0, "")
    assert last.start[0] == 1.0  # the first trial loads and compiles
    assert last.message == "eeg s = 16d trial 1: RFF 78.50, own 78.50"
    seen.clear()
    run(config, store, run_trial, seen.append)  # nothing is missing
    assert [progress.done for progress in seen] == [0, 0]
