import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone

from surff.draws import DRAWS, MonteCarlo, split_weights
from surff.kernels import KERNELS, Gaussian


def test_is_the_measures_own_sample():
    drawn = MonteCarlo().draw(Gaussian(), 9, 3, np.random.default_rng(5))
    assert_array_equal(drawn, Gaussian().sample(np.random.default_rng(5), 9, 3))


#: Draws that isotropic measures alone have, and those for the Gaussian alone.
ISOTROPIC_ONLY = {
    "orthogonal",
    "structured_orthogonal",
    "spherical_radial",
    "gauss_hermite",
    "reweighted",
}
GAUSSIAN_ONLY = {"sparse_grid", "modified"}


@pytest.mark.parametrize("draw", sorted(DRAWS))
@pytest.mark.parametrize("kernel", sorted(KERNELS))
def test_every_draw_keeps_the_interface(draw, kernel):
    name, draw, measure = draw, DRAWS[draw](), KERNELS[kernel]()
    assert clone(draw).get_params() == draw.get_params()

    def frequencies(n):
        drawn = draw.draw(measure, n, 3, np.random.default_rng(0))
        drawn, weights = split_weights(drawn)
        assert weights is None or weights.shape == (n,)
        assert weights is None or (np.isfinite(weights).all() and min(weights) >= 0)
        assert drawn.shape == (n, 3)
        assert drawn.dtype == np.float64
        return np.asarray(drawn)

    if name in ISOTROPIC_ONLY and kernel in ("laplacian", "cauchy"):
        with pytest.raises(TypeError, match="is not isotropic"):
            frequencies(5)
        return
    if name in GAUSSIAN_ONLY and kernel != "rbf":
        with pytest.raises(TypeError, match=f"draw='{name}' is .* Gaussian measure"):
            frequencies(5)
        return
    short, long = frequencies(5), frequencies(50)
    assert np.isfinite(long).all()
    # The promise of the package: the first rows of a longer draw are the shorter one.
    if name != "sparse_grid":
        assert_array_equal(long[:5], short)
    # Grids repeat their nodes, and so do products of Hadamard matrices of four rows.
    if name not in (
        "sparse_grid", "gauss_hermite", "reweighted", "structured_orthogonal"
    ):  # fmt: skip
        assert len(np.unique(long, axis=0)) == 50
