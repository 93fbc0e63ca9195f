"""Arrays of other libraries: what is asked of their namespace, the way to the host.

With scikit-learn's ``array_api_dispatch`` the estimators take arrays of any library
that follows the array API standard, such as PyTorch and CuPy. Rows and their features
stay in the array's namespace and on its device; targets, weights and the sums over rows
are NumPy's, and frequencies are drawn by it. Below the estimators the type of ``X``
decides: NumPy arrays and sparse matrices are computed with by surff, any other array by
its own library.
"""

import copy
from typing import Any, TypeAlias

import numpy as np
import scipy
from array_api_compat import (
    array_namespace,
    device,
    is_array_api_obj,
    is_cupy_array,
    is_dask_array,
    is_torch_array,
)
from sklearn import get_config
from sklearn.base import BaseEstimator

__all__ = [
    "Array",
    "array_api_support",
    "asarray_like",
    "check_same_place",
    "check_supported",
    "dispatched",
    "itemsize",
    "labels_like",
    "namespace_of",
    "numpy_dtype",
    "on_accelerator",
    "on_host",
    "other_namespace",
    "supports_float64",
    "to_numpy",
    "to_numpy_if_dispatched",
    "wide_dtype",
]


#: Array of NumPy, SciPy or any library that follows the array API standard.
Array: TypeAlias = Any

#: DLPack's number of the host's processor.
CPU = 1

#: What NumPy's arrays are computed with; to ask each time is slow.
_NUMPY = array_namespace(np.empty(0))


def other_namespace(X):
    """Namespace of an array of another library than NumPy; None for anything else.

    Dask arrays, whose rows are read block by block into NumPy, count as anything else.
    """
    if isinstance(X, np.ndarray | np.generic):  # most calls, and fast
        return None
    if is_dask_array(X) or not is_array_api_obj(X):
        return None
    return array_namespace(X)


def namespace_of(X):
    """Namespace to compute with; NumPy's for everything that is not another's array."""
    return other_namespace(X) or _NUMPY


def dispatched(X):
    """Whether an argument of a user's is to be computed with by its own library.

    That is so for an array of another library while ``array_api_dispatch`` is on.
    """
    return get_config()["array_api_dispatch"] and other_namespace(X) is not None


def to_numpy(X):
    """Copy an array of any library to the host; NumPy's own arrays as they are."""
    if other_namespace(X) is None:
        return X
    if is_torch_array(X):
        return X.detach().cpu().numpy()
    if is_cupy_array(X):
        return X.get()
    # Views may be refused where they are read-only, and what is exchanged may be so.
    return np.array(np.from_dlpack(array_namespace(X).asarray(X, copy=True)))


def on_host(estimator):
    """A copy of a fitted estimator of surff whose arrays are NumPy's.

    Parameters
    ----------
    estimator : estimator
        Fitted to arrays of any library.

    Returns
    -------
    estimator : estimator
        The same model for NumPy arrays, with the parameters of the other.
    """
    moved = copy.copy(estimator)
    for name, value in vars(estimator).items():
        if not name.startswith("_") and not name.endswith("_"):
            continue  # a parameter
        if isinstance(value, BaseEstimator):
            value = on_host(value)
        elif other_namespace(value) is not None:
            value = to_numpy(value)
        else:
            value = copy.deepcopy(value)
        setattr(moved, name, value)
    return moved


def to_numpy_if_dispatched(y):
    """Targets, labels or weights for the host; what is not dispatched as it is."""
    return to_numpy(y) if dispatched(y) else y


def asarray_like(values, X, dtype=None):
    """Values in the namespace and on the device of ``X``.

    Parameters
    ----------
    values : ndarray
        On the host.
    X : array or sparse matrix
        Says where to.
    dtype : dtype of the namespace of ``X``, optional
        That of ``X`` by default.
    """
    xp, dtype = other_namespace(X), X.dtype if dtype is None else dtype
    if xp is None:
        return np.asarray(values).astype(dtype, copy=False)
    if values.dtype.kind == "f":  # the device may have no float64
        values = values.astype(f"f{itemsize(dtype, X)}", copy=False)
    # NumPy's arrays may be read-only or run backwards, which PyTorch does not take.
    return xp.asarray(np.array(values, order="C"), dtype=dtype, device=device(X))


def labels_like(labels, X):
    """NumPy's labels beside ``X``; as they are where they are no numbers."""
    xp = other_namespace(X)
    if xp is None or labels.dtype.kind not in "biuf":
        return labels
    return xp.asarray(np.array(labels), device=device(X))


def itemsize(dtype, X):
    """Bytes of a real floating-point type of the namespace of ``X``."""
    return namespace_of(X).finfo(dtype).bits // 8


def numpy_dtype(X):
    """NumPy's floating-point type of the width of that of ``X``."""
    return np.dtype(f"f{itemsize(X.dtype, X)}")


def on_accelerator(X):
    """Whether an array lies in the memory of another processor than the host's."""
    return other_namespace(X) is not None and X.__dlpack_device__()[0] != CPU


def supports_float64(X):
    """Whether the device of ``X`` computes in float64."""
    xp = other_namespace(X)
    if xp is None:
        return True
    info = xp.__array_namespace_info__()
    return "float64" in info.dtypes(device=device(X), kind="real floating")


def wide_dtype(X):
    """float64 in the namespace of ``X``, float32 where its device has no float64."""
    xp = namespace_of(X)
    return xp.float64 if supports_float64(X) else xp.float32


def array_api_support(estimator):
    """The tag of an estimator that takes other arrays unless an option needs NumPy's.

    scikit-learn dispatches no array at all with SciPy before 1.14, and its checks of
    estimators with the tag then fail.
    """
    version = tuple(int(part) for part in scipy.__version__.split(".")[:2])
    return version >= (1, 14) and estimator._numpy_only() is None


def check_supported(estimator, X):
    """Refuse an array of another library where an option needs NumPy's.

    Estimators that take such arrays have a method ``_numpy_only``. It returns None, or
    the first option in the way: its name, its value and what to use instead.

    Raises
    ------
    ValueError
        Naming the estimator or the option.
    """
    got = f"got X in the namespace {_name(namespace_of(X))}"
    if not hasattr(estimator, "_numpy_only"):
        raise ValueError(
            f"{type(estimator).__name__} takes NumPy arrays and SciPy matrices alone, "
            f"{got}: convert X to NumPy."
        )
    found = estimator._numpy_only()
    if found is not None:
        argument, value, instead = found
        raise ValueError(
            f"{argument}={value!r} takes NumPy arrays and SciPy matrices alone, {got}: "
            f"use {instead}, or convert X to NumPy."
        )


def check_same_place(estimator, fitted, X, method):
    """Refuse rows of another library or on another device than those of ``fit``.

    Parameters
    ----------
    estimator : estimator
        For the message.
    fitted : array
        A fitted attribute.
    X : array or sparse matrix
        Checked rows.
    method : str
        Name of the method that was called.
    """
    places = [_place(array) for array in (fitted, X)]
    if places[0] != places[1]:
        raise ValueError(
            f"Inputs passed to {type(estimator).__name__}.{method}() must use the same "
            "namespace and the same device as those passed to fit(): fitted with "
            f"{places[0]}, got {places[1]}. With array_api_dispatch off, every array "
            "is converted to NumPy."
        )


def _place(X):
    """Where an array is, in words."""
    xp = other_namespace(X)
    if xp is None:
        return "NumPy"
    return f"{_name(xp)} on {device(X)}"


def _name(xp):
    return xp.__name__.removeprefix("array_api_compat.")
