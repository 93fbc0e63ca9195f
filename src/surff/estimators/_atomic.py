"""Fits that succeed or leave the estimator as it was."""

import functools

from surff.backend import interruptible, watched

__all__ = ["all_or_nothing"]


def all_or_nothing(again=True, private=()):
    """Let a method work on a copy of its estimator, and store the results at once.

    The method is called with a copy of the estimator and sets fitted attributes there.
    When it returns, the attributes of the estimator are replaced by those of the copy
    in a single assignment: after an exception, Ctrl-C included, the estimator is what
    it was before, bit for bit. A method must not write into arrays or objects that the
    fitted estimator already holds. The estimator's ``verbose`` and ``max_time`` hold
    for the call, see `surff.backend.watched`.

    Parameters
    ----------
    again : bool, default=True
        Whether the copy starts without the results of an earlier fit.
    private : sequence of str, default=()
        Attributes that are results though their names do not end in an underscore.

    Returns
    -------
    decorator : callable
        For methods that return their estimator.
    """

    def decorate(method):
        @functools.wraps(method)
        def whole(self, *args, **kwargs):
            work = object.__new__(type(self))
            vars(work).update(vars(self))
            if again:
                for name in [*vars(work)]:
                    if name in private or _is_result(name):
                        del vars(work)[name]
            verbose = getattr(self, "verbose", 0)
            max_time = getattr(self, "max_time", None)
            with interruptible():
                watched(verbose, max_time, method, work, *args, **kwargs)
            self.__dict__ = vars(work)
            return self

        return whole

    return decorate


def _is_result(name):
    """Whether an attribute is a result of a fit, by scikit-learn's convention."""
    return name.endswith("_") and not name.endswith("__")
