"""Pictures of fitted feature maps and models, as scikit-learn's displays.

Each display is made by its classmethod ``from_estimator``, which computes and draws; it
holds what it draws as attributes, and draws again with ``plot``. matplotlib is imported
when something is drawn, not before; it comes with the extra ``surff[cli]``.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from surff.backend import Array, as_generator
from surff.inspection.approximation import relative_error
from surff.inspection.diagnostics import fourier_features_of, sample_kernel

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["AlphaPathDisplay", "FrequencyDisplay", "KernelApproximationDisplay"]

#: Okabe and Ito's colours, distinct in every common kind of colour blindness.
COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"]

#: Line styles of the quantiles: they share a colour.
DASHES = ["--", ":", "-."]


@dataclass(eq=False, repr=False)
class KernelApproximationDisplay:
    r"""Approximate against exact kernel values of pairs of rows.

    Make it with `from_estimator`.

    Parameters
    ----------
    exact, approximate : ndarray of shape (n_pairs,)
        Values of the kernel and of :math:`\varphi(x)^\top \varphi(x')` for pairs of
        different rows.
    relative_error : float
        :math:`\|K - Z Z^\top\| / \|K\|` in the spectral norm, with all pairs and the
        diagonal.
    quantiles : sequence of float, default=(0.5, 0.95)
        Levels in [0, 1] of the quantiles of the absolute error.

    Attributes
    ----------
    error_quantiles : ndarray of shape (n_quantiles,)
        Quantiles of the absolute error at those levels.
    ax_ : matplotlib Axes
        After `plot`.
    figure_ : matplotlib Figure
        After `plot`.
    scatter_ : matplotlib PathCollection
        The pairs, after `plot`.
    lines_ : list of matplotlib lines
        The diagonal and two lines for each quantile, after `plot`.

    See Also
    --------
    surff.inspection.kernel_approximation_error : Only the number.

    Examples
    --------
    >>> import numpy as np
    >>> from surff import FourierFeatures, KernelApproximationDisplay
    >>> X = np.random.default_rng(0).normal(size=(100, 3))
    >>> features = FourierFeatures(512, random_state=0).fit(X)
    >>> display = KernelApproximationDisplay.from_estimator(features, X)
    >>> display.exact.shape
    (4950,)
    >>> bool(display.error_quantiles[0] < 0.05)
    True
    """

    exact: np.ndarray
    approximate: np.ndarray
    relative_error: float
    quantiles: Sequence[float] = (0.5, 0.95)

    def __post_init__(self):
        levels = np.asarray(self.quantiles, dtype=np.float64)
        if levels.ndim != 1 or not np.all((levels >= 0) & (levels <= 1)):
            raise ValueError(
                "quantiles must be a sequence of numbers in [0, 1], got "
                f"{self.quantiles!r}."
            )
        errors = np.abs(self.approximate - self.exact)
        self.error_quantiles = np.quantile(errors, levels)

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        X: Array,
        *,
        n_samples: int = 200,
        quantiles: Sequence[float] = (0.5, 0.95),
        random_state: int | np.random.RandomState | np.random.Generator | None = 0,
        ax: Axes | None = None,
        scatter_kw: dict[str, Any] | None = None,
        line_kw: dict[str, Any] | None = None,
    ) -> KernelApproximationDisplay:
        """Compare the features of a sample of rows with the exact kernel.

        Parameters
        ----------
        model : fitted estimator
            A feature map of surff, or a model that holds one.
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows; all training rows for a precomputed kernel.
        n_samples : int, default=200
            Rows to draw, >= 2: each pair of them is a point.
        quantiles : sequence of float, default=(0.5, 0.95)
            Levels in [0, 1] of the quantiles of the absolute error.
        random_state : int, RandomState, Generator or None, default=0
            Seed of the sample of rows.
        ax, scatter_kw, line_kw
            See `plot`.

        Returns
        -------
        display : KernelApproximationDisplay
        """
        _pyplot()
        K, Z = sample_kernel(model, X, n_samples=n_samples, random_state=random_state)
        if len(K) < 2:
            raise ValueError(
                f"n_samples must give at least 2 rows, got {len(K)} of them."
            )
        pairs = np.triu_indices(len(K), k=1)
        display = cls(K[pairs], (Z @ Z.T)[pairs], relative_error(K, Z), quantiles)
        return display.plot(ax, scatter_kw=scatter_kw, line_kw=line_kw)

    def plot(
        self,
        ax: Axes | None = None,
        *,
        scatter_kw: dict[str, Any] | None = None,
        line_kw: dict[str, Any] | None = None,
    ) -> KernelApproximationDisplay:
        """Draw the pairs, the diagonal and the quantiles.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        scatter_kw : dict, optional
            Arguments of `matplotlib.axes.Axes.scatter` for the pairs.
        line_kw : dict, optional
            Arguments of `matplotlib.axes.Axes.axline` for all lines.

        Returns
        -------
        display : KernelApproximationDisplay
        """
        self.figure_, self.ax_ = axes_of(ax)
        points = {
            "s": 6.0,
            # Fainter the more there are, and a picture in a vector file.
            "alpha": float(np.clip(10.0 / math.sqrt(len(self.exact)), 0.05, 1.0)),
            "linewidths": 0.0,
            "color": COLOURS[0],
            "rasterized": True,
        }
        points.update(scatter_kw or {})
        self.scatter_ = self.ax_.scatter(self.exact, self.approximate, **points)
        self.lines_ = []

        def line(offset, **style):
            style = {**style, **(line_kw or {})}
            self.lines_.append(self.ax_.axline((0.0, offset), slope=1.0, **style))

        line(0.0, color="black", linewidth=1.0)
        for i, (level, error) in enumerate(
            zip(self.quantiles, self.error_quantiles, strict=True)
        ):
            style = {
                "color": COLOURS[1],
                "linestyle": DASHES[i % len(DASHES)],
                "linewidth": 1.5,
            }
            line(error, label=f"{100 * level:g} % of errors ≤ {error:.2g}", **style)
            line(-error, **style)
        self.ax_.set(
            xlabel="exact kernel value",
            ylabel="approximate kernel value",
            title=f"Relative error of the matrix: {self.relative_error:.2g}",
        )
        if len(self.error_quantiles):
            self.ax_.legend(loc="upper left")
        return self


@dataclass(eq=False, repr=False)
class AlphaPathDisplay:
    """Cross-validation score against alpha.

    Make it with `from_estimator`.

    Parameters
    ----------
    alphas : ndarray of shape (n_alphas,)
        Regularisation, ascending.
    mean_scores, std_scores : ndarray of shape (n_alphas,) or (n_alphas, n_targets)
        Mean and standard deviation of the score over the folds; nan where a system was
        singular. The deviation is 0 if there is only one split, or none.
    best_alpha : float or ndarray of shape (n_targets,)
        The alpha chosen, one per target if the scores have a column for each.
    score_name : str, default="score"
        Name on the axis.

    Attributes
    ----------
    ax_ : matplotlib Axes
        After `plot`.
    figure_ : matplotlib Figure
        After `plot`.
    lines_ : list of matplotlib Line2D
        Mean scores, one line per target, after `plot`.
    bands_ : list of matplotlib PolyCollection
        One standard deviation to both sides, after `plot`; empty without folds.
    best_ : list of matplotlib Line2D
        Markers of the alphas chosen, after `plot`.

    Examples
    --------
    >>> import numpy as np
    >>> from surff import AlphaPathDisplay, FourierFeatures, KernelRidgeRegressor
    >>> X = np.linspace(0, 1, 100)[:, None]
    >>> features = FourierFeatures(64, random_state=0)
    >>> model = KernelRidgeRegressor(features).fit(X, np.sin(9 * X[:, 0]))
    >>> display = AlphaPathDisplay.from_estimator(model)
    >>> bool(display.mean_scores.max() == model.best_score_)
    True
    """

    alphas: np.ndarray
    mean_scores: np.ndarray
    std_scores: np.ndarray
    best_alpha: float | np.ndarray
    score_name: str = "score"

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        *,
        ax: Axes | None = None,
        line_kw: dict[str, Any] | None = None,
        fill_between_kw: dict[str, Any] | None = None,
    ) -> AlphaPathDisplay:
        """Read the path from a fitted model.

        Parameters
        ----------
        model : fitted KernelRidgeRegressor or KernelRidgeClassifier
            One that has chosen among several alphas.
        ax, line_kw, fill_between_kw
            See `plot`.

        Returns
        -------
        display : AlphaPathDisplay

        Raises
        ------
        ValueError
            If the model has no ``alpha_path_``: a single alpha was given.
        """
        _pyplot()
        check_is_fitted(model)
        if not hasattr(model, "alpha_path_"):
            raise ValueError(
                "model must have chosen among several alphas, got "
                f"alphas={getattr(model, 'alphas', None)!r}."
            )
        alphas, scores = model.alpha_path_
        display = cls(
            alphas,
            scores.mean(axis=1),
            scores.std(axis=1),
            model.alpha_,
            _score_name(model, scores.shape[1]),
        )
        return display.plot(ax, line_kw=line_kw, fill_between_kw=fill_between_kw)

    def plot(
        self,
        ax: Axes | None = None,
        *,
        line_kw: dict[str, Any] | None = None,
        fill_between_kw: dict[str, Any] | None = None,
    ) -> AlphaPathDisplay:
        """Draw the mean scores, their bands and the alphas chosen.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        line_kw : dict, optional
            Arguments of `matplotlib.axes.Axes.plot` for the mean scores.
        fill_between_kw : dict, optional
            Arguments of `matplotlib.axes.Axes.fill_between` for the bands.

        Returns
        -------
        display : AlphaPathDisplay
        """
        self.figure_, self.ax_ = axes_of(ax)
        means = self.mean_scores.reshape(len(self.alphas), -1)
        stds = self.std_scores.reshape(means.shape)
        best = np.broadcast_to(self.best_alpha, means.shape[1:])
        several = means.shape[1] > 1
        self.lines_, self.bands_, self.best_ = [], [], []
        for k, (mean, std, alpha) in enumerate(zip(means.T, stds.T, best, strict=True)):
            style = {"color": COLOURS[k % len(COLOURS)], "marker": ".", "zorder": 2}
            if several:
                style["label"] = f"target {k}, alpha = {alpha:.3g}"
            (line,) = self.ax_.plot(self.alphas, mean, **{**style, **(line_kw or {})})
            self.lines_.append(line)
            if np.nanmax(std) > 0:
                style = {"color": line.get_color(), "alpha": 0.2, "linewidth": 0.0}
                if not several:
                    style["label"] = "one standard deviation over folds"
                self.bands_.append(
                    self.ax_.fill_between(
                        self.alphas,
                        mean - std,
                        mean + std,
                        **{**style, **(fill_between_kw or {})},
                    )
                )
            at = int(np.argmin(np.abs(self.alphas - alpha)))
            label = None if several else f"chosen: alpha = {alpha:.3g}"
            self.best_ += self.ax_.plot(
                self.alphas[at],
                mean[at],
                marker="o",
                markersize=9,
                markerfacecolor="none",
                markeredgewidth=1.8,
                color=line.get_color() if several else COLOURS[1],
                linestyle="none",
                zorder=3,
                label=label,
            )
        if self.alphas[0] > 0:
            self.ax_.set_xscale("log")
        else:  # zero next to the smallest alpha on a logarithmic axis
            self.ax_.set_xscale("symlog", linthresh=self.alphas[self.alphas > 0].min())
        self.ax_.set(xlabel="alpha", ylabel=self.score_name)
        self.ax_.set_ylim(*_answer_range(means, stds))
        self.ax_.legend(loc="best")
        return self


def _answer_range(means, stds):
    """Scores to show: the best and twice the way to the median, not all that is bad."""
    top = np.nanmax(means, axis=0)
    spread = stds[np.nanargmax(means, axis=0), np.arange(len(top))]
    way = np.maximum(2 * (top - np.nanmedian(means, axis=0)), 4 * spread)
    low = np.maximum(np.nanmin(means - stds, axis=0), top - way).min()
    high = (top + spread).max()
    margin = 0.05 * (high - low) or 1.0
    return low - margin, high + margin


def _score_name(model, n_splits):
    """Name of the scores in a model's path."""
    from_folds = not isinstance(model.cv, str)
    # An int of folds gives at least two scores: a single one is of partial_fit.
    pieces = n_splits == 1 and (model.cv is None or isinstance(model.cv, numbers.Real))
    if model.cv == "evidence":
        return "log marginal likelihood"
    if model.cv == "gcv" or (from_folds and pieces):
        return "negative GCV error"
    name = model.scoring
    if name is None:
        name = "accuracy" if is_classifier(model) else "R2"
    elif callable(name):
        name = getattr(name, "__name__", "score")
    return f"{'held-out' if from_folds else 'leave-one-out'} {name.replace('_', ' ')}"


@dataclass(eq=False, repr=False)
class FrequencyDisplay:
    """Frequencies of a fitted Fourier map against the law of its kernel.

    Three panels: the distribution of the norms, the importance weights, and the first
    two coordinates. Make it with `from_estimator`.

    Parameters
    ----------
    frequencies : ndarray of shape (n_frequencies, n_features)
        Radians per unit of the data.
    importance_weights : ndarray of shape (n_frequencies,)
        p/q of each.
    law_norms : ndarray of shape (n_law,)
        Norms of independent frequencies of the kernel's spectral measure, ascending.
    panels : sequence of {"norms", "weights", "coordinates"}, default=all three
        What to draw, in this order.

    Attributes
    ----------
    norms : ndarray of shape (n_frequencies,)
        Norms of the frequencies.
    ax_ : matplotlib Axes or ndarray of them
        One for each panel, after `plot`; a single panel's is not in an array.
    figure_ : matplotlib Figure
        After `plot`.
    artists_ : dict of str to list of matplotlib artists
        What each panel holds, after `plot`.

    Notes
    -----
    A selection leaves frequencies whose norms do not follow the law: that is its
    purpose. Weighted by their importance they follow it, up to chance.

    Examples
    --------
    >>> import numpy as np
    >>> from surff import FourierFeatures, FrequencyDisplay
    >>> X = np.random.default_rng(0).normal(size=(100, 3))
    >>> features = FourierFeatures(64, select="surrogate", random_state=0)
    >>> display = FrequencyDisplay.from_estimator(features.fit(X, X[:, 0]))
    >>> display.norms.shape, len(display.ax_)
    ((32,), 3)
    """

    frequencies: np.ndarray
    importance_weights: np.ndarray
    law_norms: np.ndarray
    panels: Sequence[str] = ("norms", "weights", "coordinates")

    def __post_init__(self):
        unknown = [name for name in self.panels if name not in PANELS]
        if isinstance(self.panels, str) or unknown or not len(self.panels):
            raise ValueError(
                f"panels must be a sequence of {', '.join(map(repr, PANELS))}, got "
                f"{self.panels!r}."
            )
        self.norms = np.linalg.norm(self.frequencies, axis=1)

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        *,
        panels: Sequence[str] = ("norms", "weights", "coordinates"),
        n_law: int = 10_000,
        random_state: int | np.random.RandomState | np.random.Generator | None = 0,
        ax: Axes | Sequence[Axes] | None = None,
        line_kw: dict[str, Any] | None = None,
        scatter_kw: dict[str, Any] | None = None,
    ) -> FrequencyDisplay:
        """Compare the frequencies of a fitted map with the law of its kernel.

        Parameters
        ----------
        model : fitted estimator
            A `FourierFeatures`, or a model that holds one.
        panels : sequence of {"norms", "weights", "coordinates"}, default=all three
            What to draw, in this order.
        n_law : int, default=10_000
            Number of frequencies that represent the law.
        random_state : int, RandomState, Generator or None, default=0
            Seed of these.
        ax, line_kw, scatter_kw
            See `plot`.

        Returns
        -------
        display : FrequencyDisplay

        Notes
        -----
        The law is that of ``gamma_``, with one bandwidth per feature if there are
        several. ``O(n_law d)`` time.
        """
        _pyplot()
        features = fourier_features_of(model)
        frequencies = np.asarray(features.frequencies_, dtype=np.float64)
        measure = features.measure()
        law = measure.sample(as_generator(random_state), n_law, frequencies.shape[1])
        norms = np.linalg.norm(law * measure.scale(features.gamma_), axis=1)
        display = cls(frequencies, features.importance_weights_, np.sort(norms), panels)
        return display.plot(ax, line_kw=line_kw, scatter_kw=scatter_kw)

    def plot(
        self,
        ax: Axes | Sequence[Axes] | None = None,
        *,
        line_kw: dict[str, Any] | None = None,
        scatter_kw: dict[str, Any] | None = None,
    ) -> FrequencyDisplay:
        """Draw the panels.

        Parameters
        ----------
        ax : matplotlib Axes or sequence of them, optional
            One for each panel; a new figure by default.
        line_kw : dict, optional
            Arguments of `matplotlib.axes.Axes.plot` for all distributions.
        scatter_kw : dict, optional
            Arguments of `matplotlib.axes.Axes.scatter` for weights and coordinates.

        Returns
        -------
        display : FrequencyDisplay
        """
        n_panels = len(self.panels)
        if ax is None:
            self.figure_, axes = _pyplot().subplots(
                1,
                n_panels,
                figsize=(4.2 * n_panels, 3.9),
                layout="constrained",
                squeeze=False,
            )
            axes = axes[0]
        else:
            axes = np.atleast_1d(np.asarray(ax, dtype=object)).ravel()
            if len(axes) != n_panels:
                raise ValueError(
                    f"ax must hold {n_panels} axes, one for each of "
                    f"panels={self.panels!r}, got {len(axes)}."
                )
            self.figure_ = axes[0].figure
        self.artists_ = {}
        for name, axis in zip(self.panels, axes, strict=True):
            kw = line_kw if name == "norms" else scatter_kw
            self.artists_[name] = PANELS[name](self, axis, kw or {})
        self.ax_ = axes if n_panels > 1 else axes[0]
        return self


def _plot_norms(display, ax, line_kw):
    """Distribution functions of the norms."""
    order = np.argsort(display.norms)
    norms, weights = display.norms[order], display.importance_weights[order]
    n_law = len(display.law_norms)
    curves = [
        (
            display.law_norms,
            np.arange(1, n_law + 1) / n_law,
            {"color": "black", "label": "law of the kernel"},
        ),
        (
            norms,
            np.arange(1, len(norms) + 1) / len(norms),
            {"color": COLOURS[0], "label": "frequencies"},
        ),
    ]
    if not np.all(weights == weights[0]):
        style = {"color": COLOURS[1], "linestyle": "--", "label": "weighted by p/q"}
        curves.append((norms, np.cumsum(weights) / weights.sum(), style))
    artists = []
    for x, share, style in curves:
        style = {"drawstyle": "steps-post", "linewidth": 1.5, **style, **line_kw}
        artists += ax.plot(x, share, **style)
    _scale_norms(display, ax)
    ax.set(ylabel="share with at most this norm", title="Norms")
    ax.legend(loc="best")
    return artists


def _scale_norms(display, ax):
    """Scale the axis of norms to hold all of them; logarithmic for heavy tails."""
    norms = np.concatenate([display.law_norms, display.norms])
    low, high, median = norms.min(), norms.max(), np.median(display.law_norms)
    if not high > 10.0 * median:
        margin = 0.05 * (high - low)
        ax.set_xlim(max(low - margin, 0.0), high + margin)
    elif low > 0:
        ax.set_xscale("log")
        ax.set_xlim(low / 1.2, high * 1.2)
    else:
        ax.set_xscale("symlog", linthresh=0.1 * median if median else high)
        ax.set_xlim(0.0, high * 1.2)
    ax.set_xlabel("norm of the frequency")


def _plot_weights(display, ax, scatter_kw):
    """Importance weights against the norms."""
    from matplotlib.ticker import LogLocator

    weights = display.importance_weights
    style = {"s": 12.0, "color": COLOURS[0], "alpha": 0.6, "linewidths": 0.0}
    points = ax.scatter(display.norms, weights, **{**style, **scatter_kw})
    line = ax.axhline(1.0, color="black", linewidth=1.0, zorder=0)
    _scale_norms(display, ax)
    ax.set_ylabel("importance weight p/q")
    if np.all(weights == weights[0]):
        ax.set_ylim(0.0, 2.0 * max(1.0, weights[0]))
        ax.set_title("Equal weights")
        return [points, line]
    positive = weights[weights > 0]
    heavy = positive.max() > 10.0 * positive.min()
    if heavy and weights.min() == 0:  # zero has no place on a logarithmic axis
        ax.set_yscale("symlog", linthresh=positive.min())
    elif heavy:
        ax.set_yscale("log")
        subs = (1.0, 2.0, 5.0) if positive.max() < 1e3 * positive.min() else (1.0,)
        ax.yaxis.set_major_locator(LogLocator(subs=subs))
        ax.yaxis.set_major_formatter("{x:g}")
        ax.yaxis.set_minor_formatter("")
    # Kish's effective sample size.
    effective = weights.sum() ** 2 / np.sum(weights**2)
    ax.set_title(f"{len(weights)} weights, worth {effective:.0f} equal ones")
    return [points, line]


def _plot_coordinates(display, ax, scatter_kw):
    """First two coordinates, the size by importance."""
    w = display.frequencies
    first, second = w[:, 0], w[:, 1] if w.shape[1] > 1 else np.zeros(len(w))
    shares = display.importance_weights / display.importance_weights.max()
    style = {
        "s": 4.0 + 36.0 * shares,
        "color": COLOURS[0],
        "alpha": 0.5,
        "linewidths": 0.0,
    }
    points = ax.scatter(first, second, **{**style, **scatter_kw})
    ax.set(xlabel="first coordinate", ylabel="second coordinate", title="Coordinates")
    if w.shape[1] == 1:
        ax.set(yticks=[], ylabel="")
    # Heavy tails: on a linear axis the outermost 2 % would leave the rest a dot.
    for values, set_scale in ((first, ax.set_xscale), (second, ax.set_yscale)):
        sizes = np.abs(values[values != 0])
        if not len(sizes):
            continue
        reach = 1.1 * np.quantile(sizes, 0.98)
        if 3.0 * reach < sizes.max():
            set_scale("symlog", linthresh=reach)
    return [points]


#: Panels of a `FrequencyDisplay` by name: each draws one and returns its artists.
PANELS: dict[str, Callable[[FrequencyDisplay, Axes, dict], list]] = {
    "norms": _plot_norms,
    "weights": _plot_weights,
    "coordinates": _plot_coordinates,
}


def _pyplot():
    try:
        import matplotlib.pyplot
    except ImportError as error:
        raise ImportError(
            "displays need matplotlib: pip install 'surff[cli]'"
        ) from error
    return matplotlib.pyplot


def axes_of(ax):
    """Figure and axes; new ones if ``ax`` is None."""
    if ax is None:
        return _pyplot().subplots(layout="constrained")
    return ax.figure, ax
