"""The printed table is whole, and its totals are those of the paper's page."""

from collections import Counter

import pytest

from surff.experiments import METHODS, MULTIPLES, PrintedCell, printed_table


def test_every_cell_of_the_paper_is_there():
    cells = printed_table()
    expected = {
        (dataset, multiple, method)
        for dataset in ("eeg", "magic04", "cod-rna", "covtype")
        for multiple in MULTIPLES[: 5 if dataset == "covtype" else 8]
        for method in METHODS
    }
    assert cells.keys() == expected
    assert len(cells) == 116
    assert cells["eeg", 128, "surrogate"] == PrintedCell(91.02, 0.32, 0.96, 0.03, True)
    assert cells["cod-rna", 128, "leverage"].seconds == 13.3
    assert cells["cod-rna", 2, "surrogate"].accuracy == 90.12
    assert cells["covtype", 16, "qmc"] == PrintedCell(82.37, 0.07, 24.3, 1.56, False)


def test_only_weighted_methods_have_bullets():
    cells = printed_table()
    bullets = Counter(key[2] for key, cell in cells.items() if cell.bullet)
    assert bullets == {"leverage": 16, "surrogate": 17}
    # Each is above both plain methods of its row, as the paper's test needs.
    for (dataset, multiple, _), cell in cells.items():
        if cell.bullet:
            plain = (cells[dataset, multiple, name] for name in ("rff", "qmc"))
            assert cell.accuracy > max(other.accuracy for other in plain)


def test_numbers_are_percent_and_seconds():
    for cell in printed_table().values():
        assert 60.0 < cell.accuracy < 95.0
        assert 0.0 <= cell.std < 1.6
        assert 0.0 < cell.seconds < 50.0
        assert 0.0 <= cell.seconds_std < 2.5


@pytest.mark.parametrize("method", METHODS)
def test_printed_times_grow_with_the_size(method):
    cells = printed_table()
    for dataset in ("eeg", "magic04", "cod-rna", "covtype"):
        times = [
            cell.seconds
            for (name, _, of), cell in cells.items()
            if (name, of) == (dataset, method)
        ]
        assert times == sorted(times)
