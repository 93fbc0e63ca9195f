import threading
import time

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from threadpoolctl import threadpool_limits

from surff.backend import divide_by_upper, ormtr, potrf, potrs, symm, syrk, sytrd


def positive(m, seed=0):
    A = np.random.default_rng(seed).normal(size=(m, m))
    return np.asfortranarray(A @ A.T + m * np.eye(m))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("shape", [(0, 3), (1, 1), (7, 4), (300, 65)])
def test_syrk_adds_to_the_upper_triangle_alone(dtype, order, shape):
    rng = np.random.default_rng(0)
    Z = rng.normal(size=shape).astype(dtype, order=order)
    before = np.asfortranarray(rng.normal(size=(shape[1], shape[1])).astype(dtype))
    gram = before.copy(order="F")
    syrk(Z, gram)
    upper = np.triu_indices(shape[1])
    expected = (before + Z.T.astype(float) @ Z)[upper]
    assert_allclose(gram[upper], expected, atol=5000 * np.finfo(dtype).eps)
    lower = np.tril_indices(shape[1], -1)
    assert_array_equal(gram[lower], before[lower])


def test_syrk_does_not_read_what_it_replaces():
    gram = np.full((2, 2), np.nan, order="F")
    syrk(np.eye(2), gram, beta=0.0)
    assert_array_equal(gram[np.triu_indices(2)], [1, 0, 1])


def test_potrf_factors_and_tells_which_minor_fails():
    G = positive(50)
    factor = G.copy(order="F")
    assert potrf(factor) == 0
    assert_allclose(np.triu(factor).T @ np.triu(factor), G, rtol=1e-12)
    assert_array_equal(np.tril(factor, -1), np.tril(G, -1))
    assert potrf(np.asfortranarray(np.diag([1.0, 1.0, -1.0]))) == 3


@pytest.mark.parametrize("n", [0, 1, 30])
def test_divide_by_upper_solves_for_every_row(n):
    upper = np.asfortranarray(np.triu(positive(9)))
    rows = np.random.default_rng(1).normal(size=(n, 9))
    upper[np.tril_indices(9, -1)] = np.nan
    divided = divide_by_upper(rows.copy(), upper)
    assert_allclose(divided @ np.triu(upper), rows, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("k", [0, 1, 5])
def test_potrs_and_symm_undo_each_other(k):
    G = positive(30)
    factor, dirty = G.copy(order="F"), G.copy(order="F")
    potrf(factor)
    factor[np.tril_indices(30, -1)] = dirty[np.tril_indices(30, -1)] = np.nan
    sides = np.random.default_rng(1).normal(size=(30, k)).copy(order="F")
    product = symm(dirty, sides)
    assert_allclose(product, G @ sides, rtol=1e-11, atol=1e-11)
    assert potrs(factor, product) is product
    assert_allclose(product, sides, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("m", [1, 2, 3, 30, 150])
def test_sytrd_and_ormtr_rotate_to_a_tridiagonal_matrix(m):
    G = positive(m)
    reflectors = G.copy(order="F")
    reflectors[np.tril_indices(m, -1)] = np.nan
    diagonal, beside, tau = sytrd(reflectors)
    beside = beside[: m - 1]
    Q = ormtr(reflectors, tau, np.eye(m, order="F"), False)
    form = np.diag(diagonal) + np.diag(beside, 1) + np.diag(beside, -1)
    assert_allclose(Q.T @ G @ Q, form, atol=1e-13 * np.linalg.norm(G))
    back = ormtr(reflectors, tau, Q.copy(order="F"), True)
    assert_allclose(back, np.eye(m), atol=1e-13)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: syrk(np.ones((3, 4))[:, ::2], np.eye(2).T), "strides"),
        (lambda: syrk(np.ones((3, 2)), np.zeros((3, 3), order="F")), r"\(2, 2\)"),
        (lambda: syrk(np.ones((3, 2), np.float32), np.eye(2).T), "float32"),
        (lambda: potrf(np.ones((4, 2))[::2]), "Fortran order"),
        (lambda: potrf(np.eye(2, dtype=np.float32).T), "float32"),
        (lambda: potrs(np.eye(2).T, np.ones((3, 1), order="F")), r"\(2, k\)"),
        (lambda: symm(np.eye(2).T, np.ones((2, 3))), "strides"),
        (lambda: symm(np.eye(2, dtype=int).T, np.ones((2, 1))), "int"),
        (lambda: sytrd(np.ones((2, 3), order="F")), r"\(2, 2\)"),
        (lambda: ormtr(np.eye(2).T, np.zeros(1), np.ones(2), True), r"\(2, k\)"),
        (lambda: divide_by_upper(np.ones((2, 3)), np.eye(3)), "strides"),
        (lambda: divide_by_upper(np.ones((2, 3)), np.eye(2).T), r"\(3, 3\)"),
        (lambda: divide_by_upper(np.ones((2, 2), int), np.eye(2).T), "int"),
    ],
)
def test_what_the_routines_cannot_read_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("routine", ["syrk", "potrf", "divide_by_upper", "sytrd"])
def test_other_threads_run_meanwhile(routine):
    G, Z = positive(800), np.ones((4000, 800))
    calls = {
        "syrk": lambda: syrk(Z, G),
        "potrf": lambda: [potrf(positive(8)), [potrf(G.copy(order="F"))] * 20],
        "divide_by_upper": lambda: divide_by_upper(Z, G),
        "sytrd": lambda: sytrd(G.copy(order="F")),
    }
    begun, ended = threading.Event(), threading.Event()

    def compute():
        begun.set()
        for _ in range(5):
            calls[routine]()
        ended.set()

    turns = 0
    with threadpool_limits(1, user_api="blas"):
        thread = threading.Thread(target=compute)
        thread.start()
        begun.wait()
        while not ended.is_set():
            time.sleep(1e-3)
            turns += 1
        thread.join()
    # With the lock held this thread would have a turn between the five calls alone.
    assert turns > 20
