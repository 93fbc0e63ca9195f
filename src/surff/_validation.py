"""Checks that scikit-learn's own machinery does not make."""

import numbers

import numpy as np

__all__ = ["as_generator", "one_of", "positive"]


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


def positive(argument, value):
    """Return ``value`` as a float if it is a finite number above zero."""
    if (
        isinstance(value, numbers.Real)
        and not isinstance(value, bool)
        and 0 < value < np.inf
    ):
        return float(value)
    raise ValueError(f"{argument} must be a positive finite number, got {value!r}.")
