"""A short run of the harness of cosines and sines."""

import sines


def test_no_argument_is_beyond_the_promised_error():
    found = sines.largest_errors(10 * 50_000, seed=1)
    assert len(found) == 8
    for (dtype, kind), error in found.items():
        assert 0.0 < error < sines.KERNELS[dtype][1], kind
