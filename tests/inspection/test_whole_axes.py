"""Axes that hold everything drawn on them, and the exact kernel of fitted features."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn.metrics.pairwise import laplacian_kernel, rbf_kernel

from surff import FourierFeatures, FrequencyDisplay, NystroemFeatures
from surff.kernels import KERNELS, warped

matplotlib = pytest.importorskip("matplotlib", reason="matplotlib is not installed")
matplotlib.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot", reason="matplotlib is not installed")

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))
LAW = np.sort(np.abs(RNG.normal(size=1000)))


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


FAR = RNG.normal(size=(50, 2))
FAR[7] = 1e6, -1e4
ZEROS = np.where(RNG.random((50, 2)) < 0.99, 0.0, 1e3)
WEIGHTS = np.geomspace(1e-3, 1e2, 50)


# Every pair of frequencies and weights, with either law in turn.
CASES = [
    (frequencies, weights, (LAW, 1.0 / LAW[::-1])[(i + j) % 2])
    for i, frequencies in enumerate([FAR, ZEROS, FAR[:, :1], RNG.normal(size=(50, 2))])
    for j, weights in enumerate([np.ones(50), WEIGHTS, WEIGHTS * (WEIGHTS > 0.01)])
]


@pytest.mark.parametrize(("frequencies", "weights", "law"), CASES)
def test_no_point_lies_outside_of_its_axes(frequencies, weights, law):
    display = FrequencyDisplay(frequencies, weights, law).plot()
    display.figure_.canvas.draw()
    norms, by_weight, coordinates = display.ax_
    for line in display.artists_["norms"]:
        assert norms.get_xlim()[0] <= line.get_xdata().min()
        assert line.get_xdata().max() <= norms.get_xlim()[1]
    for name, ax in (("weights", by_weight), ("coordinates", coordinates)):
        places = display.artists_[name][0].get_offsets()
        for values, limits in zip(
            places.T, (ax.get_xlim(), ax.get_ylim()), strict=True
        ):
            assert limits[0] <= values.min() <= values.max() <= limits[1]
            on_log = limits == ax.get_xlim() and ax.get_xscale() == "log"
            assert values.min() > 0 or not on_log


# -- the exact kernel ------------------------------------------------------------------


@pytest.mark.parametrize(
    "form", [np.asarray, sparse.csr_array, sparse.csc_matrix, list]
)
def test_exact_kernel(form):
    for features in (
        FourierFeatures(8, gamma=0.3, random_state=0),
        NystroemFeatures(8, gamma=0.3, random_state=0),
        NystroemFeatures(8, kernel="rbf", gamma=0.3, landmarks=np.arange(4)),
    ):
        features.fit(X)
        np.testing.assert_allclose(
            features.exact_kernel(form(X[:9])), rbf_kernel(X[:9], gamma=0.3), rtol=1e-9
        )
        np.testing.assert_allclose(
            features.exact_kernel(form(X[:9]), X),
            rbf_kernel(X[:9], X, gamma=0.3),
            rtol=1e-9,
        )
        with pytest.raises(ValueError, match=r"X must have the 3 columns .*got 2"):
            features.exact_kernel(X[:, :2])
    own = NystroemFeatures(8, kernel="laplacian", gamma=0.25).fit(X)
    np.testing.assert_allclose(own.exact_kernel(X), laplacian_kernel(X, gamma=0.25))
    matrix = NystroemFeatures(8, kernel="precomputed").fit(rbf_kernel(X))
    with pytest.raises(ValueError, match="its matrix is the data"):
        matrix.exact_kernel(X)


def test_measure_and_bent_rows():
    features = FourierFeatures(8, kernel="cauchy", random_state=0).fit(X)
    assert isinstance(features.measure(), KERNELS["cauchy"])
    assert features.bend(X) is X
    features.warp_ = np.stack([np.zeros(3), np.full(3, 0.5)])
    assert_array_equal(features.bend(X), warped(X, features.warp_))
    assert_array_equal(features.bend(sparse.csr_array(X)), features.bend(X))
