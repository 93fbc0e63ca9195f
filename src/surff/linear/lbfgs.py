r"""Minimising several smooth convex functions in lock step, by limited-memory BFGS.

A pass over the data costs most of a step when features are made again, and it serves
any number of coefficient vectors. So the functions, one per alpha, are minimised side
by side: each round evaluates all that are not done, at one point each, in one call.

The caller scales the variables so that the Hessians are about the identity, at most;
then the first step is the negative gradient, and no function needs a line search except
in the rare case that a step does not descend.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import numpy as np

from surff.backend import stage, time_is_up

__all__ = ["Descent", "minimise"]

#: Steps that the approximate Hessian remembers; more cost memory and gain little.
MEMORY = 10

#: Share of the descent promised by the slope that a step must achieve, as is usual.
SUFFICIENT = 1e-4

#: Halvings of a step after which it is rounding alone that keeps it from descending.
HALVINGS = 30

#: Steps in a row that descend by no more than rounding, after which a descent ends.
LEVEL_STEPS = 20


class Descent:
    """One function's descent: `point` is the best so far, `trial` where to look next.

    Parameters
    ----------
    start : ndarray of shape (size,)
        First point.
    """

    def __init__(self, start: np.ndarray) -> None:
        self.point = self.trial = start
        self.gradient = None
        self._pairs = deque(maxlen=MEMORY)
        self._n_level = 0

    def receive(self, loss: float, gradient: np.ndarray, rounding: float) -> bool:
        """Take the value and the gradient at `trial`, and set the next one.

        Parameters
        ----------
        loss : float
            Value at `trial`.
        gradient : ndarray of shape (size,)
            Gradient there.
        rounding : float
            Error of ``loss``, by which it may rise.

        Returns
        -------
        bool
            False if no step from `point` descends any more, up to rounding.
        """
        if self.gradient is not None:
            target = self.loss + SUFFICIENT * self._step * self._slope + rounding
            if not np.isfinite(loss) or loss > target:
                self._step /= 2.0
                self.trial = self.point + self._step * self._direction
                return self._step > 0.5**HALVINGS
            level = loss > self.loss - rounding
            self._n_level = self._n_level + 1 if level else 0
            s, y = self.trial - self.point, gradient - self.gradient
            if (product := s @ y) > 0:
                self._pairs.append((s, y, product))
        self.point, self.loss, self.gradient = self.trial, loss, gradient
        self._direction = -self._scaled(gradient)
        self._slope = gradient @ self._direction
        self._step = 1.0
        self.trial = self.point + self._direction
        return self._n_level < LEVEL_STEPS

    def _scaled(self, gradient):
        """The inverse of the approximate Hessian times the gradient (two loops)."""
        direction, shares = gradient.copy(), []
        for s, y, product in reversed(self._pairs):
            shares.append(s @ direction / product)
            direction -= shares[-1] * y
        if self._pairs:
            _, y, product = self._pairs[-1]
            direction *= product / (y @ y)
        for (s, y, product), share in zip(self._pairs, reversed(shares), strict=True):
            direction += (share - y @ direction / product) * s
        return direction


def minimise(
    function: Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]],
    starts: np.ndarray,
    tol: float,
    max_iter: int,
    rounding: float,
) -> tuple[np.ndarray, np.ndarray, int]:
    """Minimise convex functions, all that are not done in one call per round.

    Parameters
    ----------
    function : callable
        ``function(which, points)`` returns the losses, shape (n_points,), and the
        gradients, shape (n_points, size), of the functions with the numbers ``which``.
    starts : ndarray of shape (n_functions, size)
        First points.
    tol : float
        A function is done when the norm of its gradient is at most this.
    max_iter : int
        Rounds.
    rounding : float
        Relative error of a loss.

    Returns
    -------
    points : ndarray of shape (n_functions, size)
    converged : ndarray of bool, shape (n_functions,)
    n_rounds : int
        Rounds made.

    References
    ----------
    .. [1] J. Nocedal, S. J. Wright, "Numerical Optimization", 2006, Algorithm 7.4.

    Examples
    --------
    >>> import numpy as np
    >>> centres = np.array([[1.0, 2.0], [3.0, 4.0]])
    >>> def function(which, points):
    ...     away = points - centres[which]
    ...     return 0.5 * (away**2).sum(axis=1), away
    >>> minimise(function, np.zeros((2, 2)), 1e-9, 10, 1e-15)[0]
    array([[1., 2.],
           [3., 4.]])
    """
    descents = [Descent(start) for start in starts]
    converged = np.zeros(len(starts), dtype=bool)
    active = np.arange(len(starts))
    n_rounds = 0
    with stage("descent", unit="passes") as progress:
        # The first round has not moved yet.
        while (
            len(active) and n_rounds < max_iter and not (n_rounds > 1 and time_is_up())
        ):
            n_rounds += 1
            points = np.stack([descents[i].trial for i in active])
            found, going = function(active, points), []
            for i, loss, gradient in zip(active, *found, strict=True):
                moves = descents[i].receive(loss, gradient, rounding * abs(loss))
                converged[i] = not moves or np.linalg.norm(descents[i].gradient) <= tol
                if not converged[i]:
                    going.append(i)
            active = np.array(going, dtype=int)
            progress.advance()
    return np.stack([descent.point for descent in descents]), converged, n_rounds
