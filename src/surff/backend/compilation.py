"""Compiled functions: how they are made, and the door in front of them.

numba compiles loops once per type of their arguments and keeps the machine code in
files: in ``__pycache__`` next to the source, in ``$NUMBA_CACHE_DIR`` if it is set, or
else in a cache folder of the user. Where none of them can be written, each process
compiles in memory.

Compiled loops index without bounds checks. What calls one from Python therefore asks
`check_buffer` first, which looks at shapes and types alone and costs less than a
microsecond per array.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import numpy.typing as npt

__all__ = ["check_buffer", "compiled"]

#: How every function is compiled: other Python threads run meanwhile, and a division by
#: zero gives what it gives in NumPy.
OPTIONS = {"nogil": True, "error_model": "numpy"}


def compiled(
    function: Callable[..., Any] | None = None, *, contract: bool = False
) -> Any:
    """Compile a function with numba, in a cache on disk if one can be written.

    Parameters
    ----------
    function : callable
        Loops over arrays; single-threaded, and the interpreter's lock is released.
    contract : bool, default=False
        Whether the compiler may use fused multiply-adds. Nothing else of "fast math" is
        ever allowed.

    Notes
    -----
    The environment variable ``NUMBA_CACHE_DIR`` names the folder of the cache. With a
    read-only installation and no writable home folder there is none, and the function
    is compiled once per process, which takes a few seconds for all of them.
    """
    if function is None:
        return lambda function: compiled(function, contract=contract)
    options = {**OPTIONS, "fastmath": {"contract"} if contract else False}
    try:
        return numba.njit(cache=True, **options)(function)
    except RuntimeError as error:
        if "cannot cache" not in str(error):
            raise
        return numba.njit(**options)(function)


def check_buffer(
    name: str,
    array: np.ndarray,
    shape: tuple[int, ...],
    dtype: npt.DTypeLike,
    *,
    written: bool = False,
) -> None:
    """Refuse an array that compiled code would read or write out of bounds.

    Parameters
    ----------
    name : str
        Name of the argument, for the message.
    array : ndarray
        Must be a C-contiguous array of exactly this shape and type.
    shape : tuple of int
        Shape.
    dtype : dtype
        Type.
    written : bool, default=False
        Whether the array must be writeable, too.

    Raises
    ------
    ValueError
        Naming the argument.
    """
    if (
        isinstance(array, np.ndarray)
        and array.shape == shape
        and array.dtype == dtype
        and array.flags.c_contiguous
        and (array.flags.writeable or not written)
    ):
        return
    got = f"an object of type {type(array).__name__}"
    if isinstance(array, np.ndarray):
        kind = "writeable" if array.flags.writeable else "read-only"
        got = (
            f"a {kind} one of shape {array.shape}, dtype {array.dtype} and strides "
            f"{array.strides}"
        )
    raise ValueError(
        f"{name} must be a {'writeable, ' if written else ''}C-contiguous array of "
        f"shape {shape} and dtype {np.dtype(dtype)}, got {got}."
    )
