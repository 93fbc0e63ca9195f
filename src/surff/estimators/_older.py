"""What of an estimator is saved, and models that an earlier version has saved."""

import inspect

from sklearn.base import BaseEstimator

__all__ = ["LoadsOlder"]


class LoadsOlder(BaseEstimator):
    """An estimator that takes the state of earlier versions.

    Parameters that a state lacks, because they came later, get their defaults. A hook
    in ``verbose`` belongs to this process and is not saved.
    """

    def __getstate__(self):
        state: dict = super().__getstate__()
        if callable(state.get("verbose")):
            state = {**state, "verbose": 0}
        return state

    def __setstate__(self, state):
        if isinstance(state, dict):
            state = {**_defaults(type(self)), **state}
        super().__setstate__(state)


def _defaults(cls):
    """Defaults of the parameters of a class, by name."""
    return {
        name: parameter.default
        for name, parameter in inspect.signature(cls).parameters.items()
        if parameter.default is not inspect.Parameter.empty
    }
