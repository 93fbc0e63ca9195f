"""No argument of a public function makes compiled code leave its arrays."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse

from surff import FourierFeatures, KernelRidgeRegressor
from surff.kernels import (
    FourierMap,
    NystroemMap,
    SpectralKernel,
    fourier_features,
    fourier_moments,
    kernel_estimate,
    scaled_frequencies,
)
from surff.kernels.fourier import NARROW
from surff.kernels.spectral import Gaussian

S = 5
WIDTHS = [3, NARROW + 1]  # projected by the kernels, and by one product of BLAS


def problem(d=3, n=40, dtype=np.float64):
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, d)).astype(dtype), rng.normal(size=(S, d)).astype(dtype)


def read_only(array):
    array.flags.writeable = False
    return array


BAD_OUT = {
    "fewer rows": lambda n: np.zeros((n - 1, 2 * S)),
    "fewer columns": lambda n: np.zeros((n, 2 * S - 1)),
    "one axis": lambda n: np.zeros(n * 2 * S),
    "no columns": lambda n: np.zeros((n, 0)),
    "float32": lambda n: np.zeros((n, 2 * S), np.float32),
    "big-endian": lambda n: np.zeros((n, 2 * S), ">f8"),
    "integers": lambda n: np.zeros((n, 2 * S), np.int64),
    "read-only": lambda n: read_only(np.zeros((n, 2 * S))),
    "Fortran order": lambda n: np.zeros((n, 2 * S), order="F"),
    "every other column": lambda n: np.zeros((n, 4 * S))[:, ::2],
    "one row, repeated": lambda n: np.broadcast_to(np.zeros(2 * S), (n, 2 * S)),
    "a list": lambda n: np.zeros((n, 2 * S)).tolist(),
}


@pytest.mark.parametrize("bad", BAD_OUT)
@pytest.mark.parametrize("d", WIDTHS)
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_out_that_does_not_fit_is_refused(bad, d, form):
    X, frequencies = problem(d)
    out = BAD_OUT[bad](len(X))
    for function in (
        lambda: fourier_features(form(X), frequencies, out=out),
        lambda: FourierMap(frequencies)(form(X), out=out),
    ):
        with pytest.raises(ValueError, match=r"^out must be"):
            function()


@pytest.mark.parametrize("d", WIDTHS)
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_targets_that_do_not_fit_are_refused(d, form):
    X, frequencies = problem(d)
    X = form(X)
    for shape in [(39, 2), (41, 2), (40,), (40, 2, 1), (0, 2)]:
        with pytest.raises(ValueError, match=r"^Y must"):
            fourier_moments(X, frequencies, np.ones(shape))
        with pytest.raises(ValueError, match=r"^Y must"):
            FourierMap(frequencies).moments(X, np.ones(shape))


@pytest.mark.parametrize("shape", [(1,), (S - 1,), (S + 1,), (S, 1), (1, S), ()])
def test_amplitudes_that_do_not_fit_are_refused(shape):
    X, frequencies = problem()
    amplitudes = np.ones(shape)
    with pytest.raises(ValueError, match=r"^amplitudes must"):
        fourier_features(X, frequencies, amplitudes)
    with pytest.raises(ValueError, match=r"^amplitudes must"):
        fourier_moments(X, frequencies, np.ones((40, 1)), amplitudes)
    with pytest.raises(ValueError, match=r"^weights must"):
        kernel_estimate(X, frequencies, amplitudes)
    if shape:  # many for one
        with pytest.raises(ValueError, match=r"^amplitudes must"):
            fourier_features(X, frequencies[:1], np.ones(7))


@pytest.mark.parametrize("d", WIDTHS)
def test_rows_of_another_width_are_refused(d):
    X, frequencies = problem(d)
    for rows in (X[:, :-1], np.hstack([X, X]), X[0], X[None]):
        with pytest.raises(ValueError, match=r"^X must have shape"):
            fourier_features(rows, frequencies)
    with pytest.raises(ValueError, match=r"^X must have shape"):
        fourier_moments(X[:, :-1], frequencies, np.ones((40, 1)))
    with pytest.raises(ValueError, match=r"^Y must have shape"):
        kernel_estimate(X, frequencies, Y=X[:, :-1])


@pytest.mark.parametrize(
    "frequencies",
    [np.ones(3), np.ones((0, 3)), np.ones((5, 3), np.int64), np.ones((5, 3), ">f8"),
     np.ones((5, 3), complex), np.ones((2, 5, 3)), [[1.0, 2.0, 3.0]]],
)  # fmt: skip
def test_frequencies_of_another_form_are_refused(frequencies):
    with pytest.raises(ValueError, match=r"^frequencies must"):
        fourier_features(problem()[0], frequencies)


class ShortProjections:
    """Stands for frequencies, and returns what does not fit."""

    shape, dtype = (S, 3), np.dtype(np.float64)

    def projections(self, X, out=None):
        return np.zeros((len(X), S - 1))


def test_projections_that_do_not_fit_are_refused():
    X, _ = problem()
    with pytest.raises(ValueError, match=r"^P must be"):
        fourier_features(X, ShortProjections())
    with pytest.raises(ValueError, match=r"^P must be"):
        fourier_moments(X, ShortProjections(), np.ones((40, 1)))


def broken(X, how):
    """A sparse matrix with indices that lead out of it."""
    X = X.copy()
    if how in (2**29, -3):
        X.indices[X.nnz // 2] = how
    elif how == "indptr beyond":
        X.indptr[-1] = 2**29
    elif how == "indptr falls":
        X.indptr[1], X.indptr[2] = X.indptr[2] + 5, 0
    elif how == "indptr starts late":
        X.indptr[0] = 2
    elif how == "indptr short":
        X.indptr = X.indptr[:-3]
    elif how == "data short":
        X.data = X.data[: X.nnz // 2]
    return X


BROKEN = [
    2**29, -3, "indptr beyond", "indptr falls", "indptr starts late", "indptr short",
    "data short",
]  # fmt: skip


@pytest.mark.parametrize("how", BROKEN)
@pytest.mark.parametrize("form", [sparse.csr_array, sparse.csc_matrix])
def test_sparse_rows_that_lead_out_of_the_matrix_are_refused(how, form):
    X = sparse.random_array(
        (40, 30), density=0.2, random_state=np.random.default_rng(0)
    )
    X = broken(form(X), how)
    frequencies = np.ones((S, 30))
    for function in (
        lambda: fourier_features(X, frequencies),
        lambda: fourier_moments(X, frequencies, np.ones((40, 1))),
        lambda: kernel_estimate(X, frequencies),
    ):
        with pytest.raises(ValueError, match=r"^X .*sparse"):
            function()


@pytest.mark.parametrize("how", BROKEN)
@pytest.mark.parametrize("form", [sparse.csr_array, sparse.csc_matrix])
def test_models_refuse_sparse_rows_that_lead_out_of_the_matrix(how, form):
    X = form(
        sparse.random_array(
            (40, 30), density=0.2, random_state=np.random.default_rng(0)
        )
    )
    model = KernelRidgeRegressor(FourierFeatures(6, gamma=1.0)).fit(X, np.arange(40.0))
    bad = broken(X, how)
    for function in (
        lambda: model.predict(bad),
        lambda: model.features_.transform(bad),
        lambda: FourierFeatures(6).fit(bad),
        lambda: KernelRidgeRegressor().fit(bad, np.arange(40.0)),
    ):
        with pytest.raises(ValueError, match=r"^X .*sparse"):
            function()


def test_coordinates_that_lead_out_of_the_matrix_are_refused():
    X = sparse.random_array(
        (40, 30), density=0.2, random_state=np.random.default_rng(0)
    )
    for axis in ("row", "col"):
        for index in (2**29, -3):
            bad = X.copy()
            getattr(bad, axis)[3] = index
            with pytest.raises(ValueError, match=r"^X .*sparse"):
                fourier_features(bad, np.ones((S, 30)))
            with pytest.raises(ValueError, match=r"^X .*sparse"):
                FourierFeatures(6).fit(bad)


def test_other_sparse_forms_still_serve():
    X = sparse.random_array(
        (40, 30), density=0.2, random_state=np.random.default_rng(0)
    )
    frequencies = np.random.default_rng(1).normal(size=(S, 30))
    expected = fourier_features(X.tocsr(), frequencies)
    for form in ("csc", "coo", "lil", "dok", "dia", "bsr"):
        assert_array_equal(fourier_features(X.asformat(form), frequencies), expected)


def test_nystroem_map_refuses_landmarks_that_lead_out_of_the_matrix():
    C = sparse.random_array(
        (6, 300), density=0.05, random_state=np.random.default_rng(0)
    )
    C = broken(C.tocsr(), 2**29)
    with pytest.raises(ValueError, match=r"^landmarks .*sparse"):
        NystroemMap(SpectralKernel(Gaussian(), 1.0), C, np.eye(6), np.float64)


@pytest.mark.parametrize("gamma", [1e300, np.array([1.0, 1e300, 1.0])])
def test_frequencies_beyond_float32_name_gamma(gamma):
    frequencies = np.ones((S, 3))
    scaled = scaled_frequencies(np.sqrt(gamma), frequencies, np.dtype(np.float64))
    assert np.isfinite(scaled).all()
    with pytest.raises(ValueError, match=r"gamma.*float32"):
        scaled_frequencies(np.sqrt(gamma), frequencies, np.dtype(np.float32))


def test_amplitudes_that_are_not_finite_are_refused():
    X, frequencies = problem(dtype=np.float32)
    with pytest.raises(ValueError, match=r"^amplitudes must be finite"):
        fourier_features(X, frequencies, np.full(S, 1e308))
