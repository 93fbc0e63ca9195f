"""Errors of arguments and methods that others call by another name, or expect."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import MethodType
from typing import Any, TypeVar

__all__ = ["ELSEWHERE", "available_if", "instead_of"]

#: Arguments of other libraries, and what stands in their place here.
ELSEWHERE = {
    "alpha": "alphas, one number or several to choose from",
    "C": "alphas=1/C",
    "gamma": "features=FourierFeatures(gamma=...), or gammas to choose from several",
    "kernel": "features=FourierFeatures(kernel=...)",
    "n_components": "features=FourierFeatures(n_components)",
    "random_state": "features=FourierFeatures(random_state=...)",
}

Init = TypeVar("Init", bound=Callable[..., None])


def instead_of(**instead: str) -> Callable[[Init], Init]:
    """Let ``__init__`` say what to use for arguments that it does not take.

    Parameters
    ----------
    **instead : str
        By the name of an argument, what to use in its place.

    Returns
    -------
    decorator : callable
        For ``__init__``, whose signature stays what it is.
    """

    def decorate(init):
        @functools.wraps(init)
        def checked(self, *args, **kwargs):
            for name in instead.keys() & kwargs.keys():
                raise TypeError(
                    f"{type(self).__name__} has no argument {name}: use "
                    f"{instead[name]}, got {name}={kwargs[name]!r}."
                )
            init(self, *args, **kwargs)

        return checked

    return decorate


def available_if(check: Callable[[Any], bool]) -> Callable[[Callable], Any]:
    """Make a method an attribute only where ``check(model)`` does not raise.

    As `sklearn.utils.metaestimators.available_if`, but the last line of the error says
    why: it ends with the message of the ``AttributeError`` that ``check`` raises.
    """
    return functools.partial(Available, check)


class Available:
    """Descriptor of a method that may be missing; see `available_if`."""

    def __init__(self, check: Callable[[Any], bool], method: Callable) -> None:
        functools.update_wrapper(self, method)
        self.check, self.method = check, method

    def require(self, model: Any) -> None:
        """Raise unless the method is there."""
        try:
            self.check(model)
        except AttributeError as error:
            raise AttributeError(
                f"This {type(model).__name__!r} has no attribute "
                f"{self.method.__name__!r}: {error}."
            ) from error

    def __get__(self, model: Any, owner: type | None = None) -> Any:
        if model is not None:
            self.require(model)
            return MethodType(self.method, model)

        @functools.wraps(self.method)
        def unbound(model, *args, **kwargs):
            self.require(model)
            return self.method(model, *args, **kwargs)

        return unbound
