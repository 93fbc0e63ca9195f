"""The parameters ``verbose`` and ``max_time`` of everything that is fitted."""

import numbers

from sklearn.utils._param_validation import Interval

from surff.backend import watched

__all__ = ["WATCH_CONSTRAINTS", "fit_watched"]

#: What the two parameters may be.
WATCH_CONSTRAINTS = {
    "verbose": ["verbose", callable],
    "max_time": [None, Interval(numbers.Real, 0.0, None, closed="neither")],
}


def fit_watched(features, *args):
    """Call ``fit_checked`` of features with their own ``verbose`` and ``max_time``."""
    verbose = getattr(features, "verbose", 0)
    max_time = getattr(features, "max_time", None)
    return watched(verbose, max_time, features.fit_checked, *args)
