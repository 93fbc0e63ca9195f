"""What of an estimator is saved, and models that an earlier version has saved."""

import functools
import inspect
from typing import ClassVar

from sklearn.base import BaseEstimator

__all__ = ["LoadsOlder"]


class LoadsOlder(BaseEstimator):
    """An estimator that takes the state of earlier versions.

    Parameters that a state lacks, because they came later, get their defaults, and
    attributes that have been renamed their new names. A hook
    in ``verbose`` belongs to this process and is not saved.
    """

    @classmethod
    @functools.cache  # scikit-learn inspects the signature in every call
    def _get_param_names(cls):
        return super()._get_param_names()

    def __getstate__(self):
        state: dict = super().__getstate__()
        if callable(state.get("verbose")):
            state = {**state, "verbose": 0}
        return state

    #: New names of attributes by the old ones.
    _renamed: ClassVar[dict[str, str]] = {}

    def __setstate__(self, state):
        if isinstance(state, dict):
            state = {**_defaults(type(self)), **state}
            for old, new in self._renamed.items():
                if old in state and new not in state:
                    state[new] = state.pop(old)
        super().__setstate__(state)


def _defaults(cls):
    """Defaults of the parameters of a class, by name."""
    return {
        name: parameter.default
        for name, parameter in inspect.signature(cls).parameters.items()
        if parameter.default is not inspect.Parameter.empty
    }
