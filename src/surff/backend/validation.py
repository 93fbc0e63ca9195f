"""Checks that scikit-learn's own machinery does not make."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np
from scipy import sparse
from sklearn import get_config
from sklearn.base import BaseEstimator
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
    "check_sparse",
    "checked_weight",
    "finite_array",
    "flag_of",
    "one_of",
    "positive",
    "refuse_columns",
    "refuse_large_weight",
    "validated",
]

#: Types of data that are kept; data of any other type becomes float64.
FLOAT_DTYPES = (np.float64, np.float32)

#: Rows up to which a plain array of a prediction is looked at without scikit-learn.
FEW_ROWS = 64


def as_generator(random_state: Any) -> np.random.Generator:
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


def one_of(argument: str, value: Any, table: dict[str, type], method: str) -> Any:
    """Instance for a name of ``table``, or ``value`` itself if it has ``method``.

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


def positive(argument: str, value: Any) -> float:
    """Return ``value`` as a float if it is a finite number above zero."""
    if (
        isinstance(value, numbers.Real)
        and not isinstance(value, bool)
        and 0 < value < np.inf
    ):
        return float(value)
    raise ValueError(f"{argument} must be a positive finite number, got {value!r}.")


def validated(
    estimator: BaseEstimator, X: Any, y: Any = "no_validation", **options: Any
) -> Any:
    """`sklearn.utils.validation.validate_data` that names the columns it refuses.

    float64 and float32 are kept. CSR is kept, and other sparse formats become CSR;
    indices that lead out of the matrix are refused. An array of another library is kept
    if the estimator takes it, and refused otherwise.
    """
    rows_alone = isinstance(y, str) and options == {"reset": False}
    if rows_alone and _is_ready(estimator, X):
        return X
    options = {"dtype": FLOAT_DTYPES, "accept_sparse": "csr", **options}
    check_sparse("X", X)
    if dispatched(X):
        xp = namespace_of(X)
        check_supported(estimator, X)
        wide = (xp.float64,) if supports_float64(X) else ()
        options["dtype"] = (*wide, xp.float32)
        if not (y is None or isinstance(y, str)):
            y = np.asarray(y)  # scikit-learn 1.6 takes no list next to other arrays
    refuse_columns(X)
    try:
        with np.errstate(invalid="ignore"):  # sums of huge numbers, which are checked
            return validate_data(estimator, X, y, **options)
    except (ValueError, TypeError) as error:
        if str(error).startswith(("Input X contains NaN", "Input X contains inf")):
            names = ", ".join(_columns_not_finite(X))
            message = f"{error}\nColumns with NaN or infinity: {names}."
            raise ValueError(message) from None
        if found := _no_number_of(X):
            raise ValueError(
                f"X must hold numbers, got {found}: "
                f"surff.table_model({type(estimator).__name__}(...)) takes tables with "
                "text, dates and missing cells, and surff.tables.TableEncoder() turns "
                f"them into numbers. ({error})"
            ) from error
        raise


def _is_ready(estimator, X):
    """Whether rows of a prediction are what validation would return.

    For few rows it takes most of the time, above all to find out that an array is no
    data frame. Whatever is not plainly right is left to it, and to its messages.
    """
    return (
        type(X) is np.ndarray
        and X.ndim == 2
        and 1 <= len(X) <= FEW_ROWS
        and X.dtype in FLOAT_DTYPES
        and X.dtype.isnative
        and X.shape[1] == getattr(estimator, "n_features_in_", None)
        and not hasattr(estimator, "feature_names_in_")
        and not get_config()["array_api_dispatch"]
        and bool(np.isfinite(X).all())
    )


def refuse_columns(X: Any) -> None:
    """Refuse dates, and columns that share a name.

    Raises
    ------
    ValueError
        Naming the columns.
    """
    if not hasattr(X, "columns"):
        kind = getattr(getattr(X, "dtype", None), "kind", None)
        if kind in ("M", "m"):
            raise ValueError(
                f"X must hold numbers, got dtype {X.dtype}: turn dates into numbers of "
                "your choice, such as years."
            )
        return
    names = [str(name) for name in X.columns]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(
            f"X has several columns named {', '.join(map(repr, twice))}: rename them."
        )
    for name, dtype in zip(names, getattr(X, "dtypes", ()), strict=False):
        if str(dtype).lower().startswith(("datetime", "timedelta", "date", "duration")):
            raise ValueError(
                f"X must hold numbers, got column {name!r} of dtype {dtype}: turn "
                "dates into numbers of your choice, such as years."
            )


def check_sparse(name: str, X: Any) -> None:
    """Refuse a sparse matrix whose indices lead out of it.

    SciPy's products and conversions index without bounds checks, and its constructors
    do not look at every index.

    Parameters
    ----------
    name : str
        Name of the argument, for the message.
    X : object
        Anything; what is not sparse is not looked at.

    Raises
    ------
    ValueError
        Naming the argument.

    Notes
    -----
    One pass over the indices, which costs little next to any product.
    """
    if not sparse.issparse(X):
        return
    fault = None
    if X.format in ("csr", "csc", "bsr"):
        fault = _compressed_fault(X)
    elif X.format == "coo":
        for axis, size in zip((X.row, X.col), X.shape, strict=True):
            if len(axis) != len(X.data):
                fault = "coordinates and data of different lengths"
            elif len(axis) and not (axis.min() >= 0 and axis.max() < size):
                fault = f"coordinates outside 0 to {size - 1}"
    else:  # rare, and converted by whoever takes it
        fault = _compressed_fault(X.tocsr())
    if fault:
        raise ValueError(f"{name} is a broken sparse matrix: it has {fault}.")


def _compressed_fault(X):
    """What is wrong with the indices of a CSR, CSC or BSR matrix; None for nothing."""
    blocks = X.blocksize if X.format == "bsr" else (1, 1)
    sizes = [n // b for n, b in zip(X.shape, blocks, strict=True)]
    n_major, n_minor = sizes[::-1] if X.format == "csc" else sizes
    indptr, indices = X.indptr, X.indices
    if indptr.shape != (n_major + 1,) or indices.ndim != 1:
        return f"an indptr of shape {indptr.shape}, not {(n_major + 1,)}"
    n_stored = min(len(indices), len(X.data))
    if indptr[0] != 0 or indptr[-1] > n_stored or (indptr[1:] < indptr[:-1]).any():
        return f"an indptr that does not rise from 0 to at most {n_stored}"
    used = indices[: indptr[-1]]
    if len(used) and not (used.min() >= 0 and used.max() < n_minor):
        return f"indices outside 0 to {n_minor - 1}"
    return None


#: Weights between these keep sums over rows, and their squares, within float32 too.
WEIGHT_RANGE = (1e-30, 1e30)


def checked_weight(sample_weight: Any, X: Any) -> np.ndarray | None:
    """Row weights, >= 0 and not all 0, as NumPy's array of the width of ``X``, or None.

    Raises
    ------
    ValueError
        If their sums would vanish or overflow.
    """
    if sample_weight is None:
        return None
    weight = _check_sample_weight(
        to_numpy_if_dispatched(sample_weight),
        np.empty((X.shape[0], 0)),  # of X, only the number of rows matters
        dtype=numpy_dtype(X),
        ensure_non_negative=True,
    )
    refuse_large_weight(weight)
    if not weight.any():
        raise ValueError("sample_weight must have a positive entry, got all zeros.")
    if (total := weight.sum(dtype=np.float64)) < WEIGHT_RANGE[0]:
        raise ValueError(
            f"sample_weight must sum to at least {WEIGHT_RANGE[0]:.0e}, or sums over "
            f"rows vanish, got {total:.3g}; scale the weights."
        )
    return weight


def refuse_large_weight(weight: np.ndarray) -> None:
    """Refuse weights for which sums over rows overflow."""
    if len(weight) and (largest := float(weight.max())) > WEIGHT_RANGE[1]:
        raise ValueError(
            f"sample_weight must be at most {WEIGHT_RANGE[1]:.0e}, or sums over rows "
            f"overflow, got {largest:.3g}; scale the weights."
        )


def _no_number_of(X):
    """First cell of a frame that is no number, in words; None if there is none."""
    for name in getattr(X, "columns", ()):
        kind = str(getattr(X[name], "dtype", "")).lower()
        if not kind.startswith(("object", "str", "cat", "enum", "large_string")):
            continue
        for value in X[name]:
            try:
                float(value)
            except (TypeError, ValueError):
                kind = "text" if isinstance(value, str) else "no number"
                return f"{kind} in column {name!r} ({value!r:.40})"
    return None


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
