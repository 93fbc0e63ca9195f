import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone

from surff.draws import DRAWS, MonteCarlo
from surff.spectral import KERNELS, Gaussian


def test_is_the_measures_own_sample():
    drawn = MonteCarlo().draw(Gaussian(), 9, 3, np.random.default_rng(5))
    assert_array_equal(drawn, Gaussian().sample(np.random.default_rng(5), 9, 3))


@pytest.mark.parametrize("draw", sorted(DRAWS))
@pytest.mark.parametrize("kernel", sorted(KERNELS))
def test_every_draw_keeps_the_interface(draw, kernel):
    draw, measure = DRAWS[draw](), KERNELS[kernel]()
    short = draw.draw(measure, 5, 3, np.random.default_rng(0))
    long = draw.draw(measure, 50, 3, np.random.default_rng(0))
    assert long.shape == (50, 3)
    assert long.dtype == np.float64
    assert np.isfinite(long).all()
    # The promise of the package: the first rows of a longer draw are the shorter one.
    assert_array_equal(long[:5], short)
    assert len(np.unique(long, axis=0)) == 50
    assert clone(draw).get_params() == draw.get_params()
