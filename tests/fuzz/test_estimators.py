"""Short runs of the harnesses of estimators and of sequences of operations."""

import pytest
import sequences

import estimators


@pytest.mark.parametrize(("harness", "n"), [(estimators, 150), (sequences, 25)])
def test_odd_cases_end_well(harness, n, tmp_path, recwarn):
    del recwarn  # the harness counts warnings itself
    outcomes = set()
    for number in range(n):
        outcome, what = harness.run_case(7, number, tmp_path)
        assert outcome in harness.GOOD, f"case {number}: {what}"
        outcomes.add(outcome)
    assert outcomes == set(harness.GOOD)
