"""What all estimators do with their parameters and their state."""

import functools
import inspect
from typing import ClassVar

from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import validate_parameter_constraints

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

    def _validate_params(self):
        # Defaults are right: a look at all takes a tenth of the fit of a few rows.
        defaults = _defaults(type(self))
        changed = {
            name: value
            for name, value in self.get_params(deep=False).items()
            if name not in defaults or value is not defaults[name]
        }
        validate_parameter_constraints(
            self._parameter_constraints, changed, type(self).__name__
        )

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


@functools.cache
def _defaults(cls):
    """Defaults of the parameters of a class, by name."""
    return {
        name: parameter.default
        for name, parameter in inspect.signature(cls).parameters.items()
        if parameter.default is not inspect.Parameter.empty
    }
