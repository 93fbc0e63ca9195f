"""Checks that scikit-learn's own machinery does not make."""

import numbers

import numpy as np
from scipy import sparse
from sklearn.utils.validation import _check_sample_weight, check_array, validate_data

from surff.backend.arrays import (
    check_supported,
    dispatched,
    namespace_of,
    numpy_dtype,
    supports_float64,
    to_numpy,
    to_numpy_if_dispatched,
)

__all__ = [
    "FLOAT_DTYPES",
    "as_generator",
    "checked_weight",
    "finite_array",
    "flag_of",
    "one_of",
    "positive",
    "validated",
]

#: Types of data that are kept; others become the first.
FLOAT_DTYPES = (np.float64, np.float32)


def as_generator(random_state):
    """Turn an estimator's ``random_state`` into a `numpy.random.Generator`.

    Parameters
    ----------
    random_state : None, int, numpy.random.RandomState or numpy.random.Generator
        A Generator is returned as it is (and advances); a RandomState seeds a new one
        from its stream; an int seeds the same one each time; None takes fresh entropy.
    """
    if isinstance(random_state, np.random.RandomState):
        random_state = random_state.randint(0, 2**32, size=4, dtype=np.uint64)
    return np.random.default_rng(random_state)


def one_of(argument, value, table, method):
    """Instance for a name of ``table``, or ``value`` itself when it has ``method``.

    Raises
    ------
    ValueError
        For an unknown name; the message lists the valid ones.
    TypeError
        For an object without the method.
    """
    if isinstance(value, str):
        if value not in table:
            raise ValueError(
                f"{argument} must be one of {sorted(table)} or an object with a "
                f"method {method!r}, got {value!r}."
            )
        return table[value]()
    if isinstance(value, type) or not callable(getattr(value, method, None)):
        raise TypeError(
            f"{argument} must be one of {sorted(table)} or an object with a method "
            f"{method!r}, got {value!r}."
        )
    return value


def flag_of(part: object, base: type, name: str) -> bool:
    """Read a flag of a part that a user may have brought.

    Parameters
    ----------
    part : object or type
        A selector, an adaptation or the like; it need not derive from ``base``.
    base : type
        The abstract class of such parts. Its class attributes are the defaults.
    name : str
        Name of the flag, an attribute of ``base``.
    """
    return bool(getattr(part, name, getattr(base, name)))


def finite_array(
    argument: str, name: str, value: object, shape: tuple[int, ...]
) -> np.ndarray:
    """Check an array that a part of a user's own has returned.

    Parameters
    ----------
    argument : str
        The parameter that holds the part.
    name : str
        What the array is, in a word or two.
    value : array-like
        What came.
    shape : tuple of int
        Shape that it must have.

    Returns
    -------
    array : ndarray
        ``value`` itself if it is a float array; integers become float64.

    Raises
    ------
    TypeError
        If the values are no real numbers.
    ValueError
        If the shape is another, or a value is not finite.
    """
    array = np.asarray(value)
    if array.dtype.kind not in "fiu":
        raise TypeError(
            f"{argument}= must return {name} that are real numbers, got dtype "
            f"{array.dtype}."
        )
    if array.shape != shape:
        raise ValueError(
            f"{argument}= must return {name} of shape {shape}, got shape {array.shape}."
        )
    if not np.isfinite(array).all():
        raise ValueError(f"{argument}= must return finite {name}, got {array!r}.")
    return array if array.dtype.kind == "f" else array.astype(np.float64)


def positive(argument, value):
    """Return ``value`` as a float if it is a finite number above zero."""
    if (
        isinstance(value, numbers.Real)
        and not isinstance(value, bool)
        and 0 < value < np.inf
    ):
        return float(value)
    raise ValueError(f"{argument} must be a positive finite number, got {value!r}.")


def validated(estimator, X, y="no_validation", **options):
    """`sklearn.utils.validation.validate_data` that names the columns it refuses.

    float64 and float32 are kept, CSR is kept and made of other sparse formats. An array
    of another library is kept where the estimator takes it and refused where not.
    """
    options = {"dtype": FLOAT_DTYPES, "accept_sparse": "csr", **options}
    if dispatched(X):
        xp = namespace_of(X)
        check_supported(estimator, X)
        wide = (xp.float64,) if supports_float64(X) else ()
        options["dtype"] = (*wide, xp.float32)
        if not (y is None or isinstance(y, str)):
            y = np.asarray(y)  # scikit-learn 1.6 takes no list beside other arrays
    try:
        return validate_data(estimator, X, y, **options)
    except ValueError as error:
        if not str(error).startswith(("Input X contains NaN", "Input X contains inf")):
            raise
        names = ", ".join(_columns_not_finite(X))
        raise ValueError(f"{error}\nColumns with NaN or infinity: {names}.") from None


def checked_weight(sample_weight, X):
    """Row weights, >= 0, as NumPy's array of the width of ``X``."""
    return _check_sample_weight(
        to_numpy_if_dispatched(sample_weight),
        np.empty((X.shape[0], 0)),  # of X, only the number of rows matters
        dtype=numpy_dtype(X),
        ensure_non_negative=True,
    )


def _columns_not_finite(X):
    """Numbers of the columns that hold NaN or infinity, with their names if any."""
    names = getattr(X, "columns", None)
    if dispatched(X):
        xp = namespace_of(X)
        bad = ~to_numpy(xp.all(xp.isfinite(X), axis=0))
        return _named(bad, names)
    array = check_array(
        X, dtype=np.float64, accept_sparse="csc", ensure_all_finite=False
    )
    if sparse.issparse(array):
        bad = np.add.reduceat(
            np.append(~np.isfinite(array.data), False), array.indptr[:-1]
        ) * np.diff(array.indptr)
    else:
        bad = ~np.isfinite(array).all(axis=0)
    return _named(bad, names)


def _named(bad, names):
    columns = [
        f"{j}" if names is None else f"{j} ({names[j]!r})" for j in np.flatnonzero(bad)
    ]
    return columns[:10] + ["..."] * (len(columns) > 10)
