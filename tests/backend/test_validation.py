import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse

from surff import FourierFeatures
from surff.backend import as_generator, one_of, positive, validated


def test_generators_come_from_every_kind_of_random_state():
    first, second = as_generator(3), as_generator(3)
    assert first.integers(2**60) == second.integers(2**60)
    generator = np.random.default_rng(0)
    assert as_generator(generator) is generator
    assert as_generator(None).integers(2**60) != as_generator(None).integers(2**60)


def test_a_random_state_seeds_from_its_stream():
    def draws(state):
        return as_generator(state).integers(2**60, size=3)

    assert_array_equal(draws(np.random.RandomState(1)), draws(np.random.RandomState(1)))
    state = np.random.RandomState(1)
    assert not np.array_equal(draws(state), draws(state))


class Polite:
    def greet(self):
        return "good day"


TABLE = {"polite": Polite}


def test_one_of_makes_named_objects_and_passes_others():
    assert isinstance(one_of("who", "polite", TABLE, "greet"), Polite)
    guest = Polite()
    assert one_of("who", guest, TABLE, "greet") is guest


def test_one_of_names_the_argument_and_the_choices():
    with pytest.raises(
        ValueError, match=r"who must be one of \['polite'\].*'greet'.*'x'"
    ):
        one_of("who", "x", TABLE, "greet")
    for wrong in (3, Polite, None, object()):
        with pytest.raises(
            TypeError, match=r"who must be one of \['polite'\].*'greet'"
        ):
            one_of("who", wrong, TABLE, "greet")


@pytest.mark.parametrize("value", [0.7, 3, np.float32(0.5), np.int64(2), 1e-300])
def test_positive_numbers_pass(value):
    result = positive("gamma", value)
    assert type(result) is float
    assert result == value


@pytest.mark.parametrize(
    "value", [0, -1.0, np.inf, -np.inf, np.nan, True, "1", None, [1.0], 1j]
)
def test_other_values_are_named(value):
    with pytest.raises(ValueError, match="gamma must be a positive finite number, got"):
        positive("gamma", value)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array, sparse.coo_array])
def test_columns_that_are_not_finite_are_named(form):
    X = np.zeros((4, 30))
    X[1, 0], X[2, 7], X[0, 29] = np.nan, np.inf, 1.0
    with pytest.raises(ValueError, match=r"(?s)Input X contains.* infinity: 0, 7\.$"):
        validated(FourierFeatures(), form(X))
    X[3] = np.nan
    message = r"infinity: 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, \.\.\.\.$"
    with pytest.raises(ValueError, match=message):
        validated(FourierFeatures(), form(X))
    # Other errors stay scikit-learn's.
    with pytest.raises(ValueError, match="Expected 2D array"):
        validated(FourierFeatures(), np.zeros(3))


@pytest.mark.parametrize("n", [1, 64, 65])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_plain_rows_come_back_as_they_are(n, dtype):
    features = FourierFeatures(4).fit(np.zeros((3, 2)))
    X = np.arange(2.0 * n).reshape(n, 2).astype(dtype)
    assert validated(features, X, reset=False) is X


def test_few_rows_are_refused_as_many_are():
    features = FourierFeatures(4).fit(np.zeros((3, 2)))
    bad = {
        "contains NaN": np.array([[0.0, np.nan]]),
        "contains infinity": np.array([[np.inf, 0.0]]),
        "X has 3 features": np.zeros((1, 3)),
        "Expected 2D array": np.zeros(2),
        "0 sample": np.zeros((0, 2)),
    }
    for message, X in bad.items():
        with pytest.raises(ValueError, match=message):
            validated(features, X, reset=False)
    assert validated(features, np.array([[1, 2]]), reset=False).dtype == np.float64
    swapped = np.array([[1.0, 2.0]]).astype(">f8")
    assert_array_equal(validated(features, swapped, reset=False), [[1.0, 2.0]])


def test_names_are_missed_in_few_rows_too():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(np.zeros((3, 2)), columns=["a", "b"])
    features = FourierFeatures(4).fit(frame)
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        features.transform(np.zeros((1, 2)))
