"""Arrays of other libraries: what is asked of their namespace, the way to the host.

With scikit-learn's ``array_api_dispatch`` the estimators take arrays of any library
that follows the array API standard, such as PyTorch and CuPy. Rows and their features
stay in the array's namespace and on its device; targets, weights and the sums over rows
are NumPy's, and frequencies are drawn by it. Below the estimators the type of ``X``
decides: NumPy arrays and sparse matrices are computed with by surff, any other array by
its own library. A pass over rows asks once, and gets a `Backend`; feature maps carry
theirs.
"""

import copy
import functools
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
    "NUMPY",
    "Array",
    "Backend",
    "array_api_support",
    "asarray_like",
    "backend_of",
    "backend_of_map",
    "check_same_place",
    "check_supported",
    "dispatched",
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


class Backend:
    """An array library on a device: how what a pass over rows needs is made there.

    Parameters
    ----------
    xp : namespace, optional
        Namespace of a library other than NumPy; NumPy's by default.
    like : array, optional
        An array of that library, on the device.

    Attributes
    ----------
    is_numpy : bool
        Whether surff computes by itself, with NumPy arrays and sparse matrices.
    xp : namespace
        Namespace to compute with.
    device : object
        Device of arrays of ``xp``; None for NumPy.
    on_accelerator : bool
        Whether arrays lie in the memory of another processor than the host's.
    """

    def __init__(self, xp: Any = None, like: Array = None) -> None:
        self.is_numpy = xp is None
        self.xp = _NUMPY if xp is None else xp
        self.device = None if xp is None else device(like)
        self.on_accelerator = xp is not None and like.__dlpack_device__()[0] != CPU

    def __reduce__(self) -> Any:
        if self.is_numpy:
            return "NUMPY"
        return backend_of, (self.empty((0,), self.xp.float32),)

    @functools.cached_property
    def supports_float64(self) -> bool:
        """Whether the device computes in float64."""
        if self.is_numpy:
            return True
        info = self.xp.__array_namespace_info__()
        return "float64" in info.dtypes(device=self.device, kind="real floating")

    @property
    def wide_dtype(self) -> Any:
        """float64 in the namespace, or float32 where the device has no float64."""
        return self.xp.float64 if self.supports_float64 else self.xp.float32

    def itemsize(self, dtype: Any) -> int:
        """Bytes of a real floating-point type of the namespace."""
        return self.xp.finfo(dtype).bits // 8

    def asarray(self, values: np.ndarray, dtype: Any) -> Array:
        """Values of the host, on the device and in a type of the namespace."""
        if self.is_numpy:
            return np.asarray(values).astype(dtype, copy=False)
        if values.dtype.kind == "f":  # the device may have no float64
            values = values.astype(f"f{self.itemsize(dtype)}", copy=False)
        # NumPy's arrays may be read-only or run backwards, which PyTorch does not take.
        values = np.array(values, order="C")
        return self.xp.asarray(values, dtype=dtype, device=self.device)

    def empty(self, shape: tuple[int, ...], dtype: Any) -> Array:
        """Array whose values are not set."""
        return self.xp.empty(shape, dtype=dtype, device=self.device)

    def zeros(self, shape: tuple[int, ...], dtype: Any) -> Array:
        """Array of zeros."""
        return self.xp.zeros(shape, dtype=dtype, device=self.device)


def other_namespace(X: Any) -> Any:
    """Namespace of an array of a library other than NumPy; None for anything else.

    Dask arrays, whose rows are read block by block into NumPy, count as anything else.
    """
    if isinstance(X, np.ndarray | np.generic):  # most calls, and fast
        return None
    if is_dask_array(X) or not is_array_api_obj(X):
        return None
    return array_namespace(X)


#: The backend of NumPy arrays and sparse matrices, on the host.
NUMPY = Backend()


def backend_of(X: Any) -> Backend:
    """Backend of an array; NumPy's for everything that is not another library's."""
    xp = other_namespace(X)
    return NUMPY if xp is None else Backend(xp, X)


def backend_of_map(feature_map: Any, X: Any) -> Backend:
    """Backend that a feature map carries, or that of its rows if it carries none."""
    backend = getattr(feature_map, "backend", None)
    return backend_of(X) if backend is None else backend


def namespace_of(X: Any) -> Any:
    """Namespace to compute with; NumPy's for all but other libraries' arrays."""
    return other_namespace(X) or _NUMPY


def dispatched(X: Any) -> bool:
    """Whether a user's argument is to be computed with by its own library.

    That is so for an array of another library while ``array_api_dispatch`` is on.
    """
    return get_config()["array_api_dispatch"] and other_namespace(X) is not None


def to_numpy(X: Any) -> Any:
    """Copy an array of any library to the host; returns NumPy's own arrays as is."""
    if other_namespace(X) is None:
        return X
    if is_torch_array(X):
        return X.detach().cpu().numpy()
    if is_cupy_array(X):
        return X.get()
    # NumPy may refuse a read-only view, and what is exchanged may be read-only.
    return np.array(np.from_dlpack(array_namespace(X).asarray(X, copy=True)))


def on_host(estimator: BaseEstimator) -> Any:
    """Copy of a fitted estimator of surff, with NumPy arrays.

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


def to_numpy_if_dispatched(y: Any) -> Any:
    """Copy targets, labels or weights to the host if they are dispatched."""
    return to_numpy(y) if dispatched(y) else y


def asarray_like(values: np.ndarray, X: Any, dtype: Any = None) -> Array:
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
    return backend_of(X).asarray(values, X.dtype if dtype is None else dtype)


def labels_like(labels: np.ndarray, X: Any) -> Array:
    """NumPy's labels on the device of ``X``; as they are if they are not numbers."""
    xp = other_namespace(X)
    if xp is None or labels.dtype.kind not in "biuf":
        return labels
    return xp.asarray(np.array(labels), device=device(X))


def numpy_dtype(X: Any) -> np.dtype:
    """NumPy's floating-point type of the width of that of ``X``."""
    return np.dtype(f"f{backend_of(X).itemsize(X.dtype)}")


def on_accelerator(X: Any) -> bool:
    """Whether an array lies in the memory of another processor than the host's."""
    return backend_of(X).on_accelerator


def supports_float64(X: Any) -> bool:
    """Whether the device of ``X`` computes in float64."""
    return backend_of(X).supports_float64


def wide_dtype(X: Any) -> Any:
    """float64 in the namespace of ``X``, or float32 if its device has no float64."""
    return backend_of(X).wide_dtype


def array_api_support(estimator: Any) -> bool:
    """The tag of an estimator that takes other arrays unless an option needs NumPy's.

    scikit-learn dispatches no array at all with SciPy before 1.14, and its checks of
    estimators with the tag then fail.
    """
    version = tuple(int(part) for part in scipy.__version__.split(".")[:2])
    return version >= (1, 14) and estimator.numpy_only() is None


def check_supported(estimator: Any, X: Any) -> None:
    """Refuse an array of another library where an option needs NumPy's.

    Estimators that take such arrays have a method ``numpy_only``. It returns None, or
    the first option in the way: its name, its value and what to use instead.

    Raises
    ------
    ValueError
        Naming the estimator or the option.
    """
    got = f"got X in the namespace {_name(namespace_of(X))}"
    found = None, estimator, None
    if hasattr(estimator, "numpy_only"):
        found = estimator.numpy_only()
    if found is not None and found[1] is estimator:
        raise ValueError(
            f"{type(estimator).__name__} takes NumPy arrays and SciPy matrices alone, "
            f"{got}: convert X to NumPy."
        )
    if found is not None:
        argument, value, instead = found
        raise ValueError(
            f"{argument}={value!r} takes NumPy arrays and SciPy matrices alone, {got}: "
            f"use {instead}, or convert X to NumPy."
        )


def check_same_place(
    estimator: BaseEstimator, fitted: Array, X: Any, method: str
) -> None:
    """Refuse rows of another library, or on another device, than ``fit`` was given.

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
