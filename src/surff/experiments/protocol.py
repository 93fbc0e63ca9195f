r"""The three protocols of the comparison: one trial of one data set at one size.

published
    What reproduces the paper's printed Table 2. Each sample is z-scored over its own
    features (covtype: columns scaled to [0, 1]), frequencies are standard normal
    (gamma = 1/2), features are cosines and sines with a random phase,
    :math:`(Z^\top Z + \lambda I) \beta = Z^\top (y - \bar y)` with :math:`\lambda` not
    multiplied by n. The weighted methods draw nothing: every real column is kept and
    multiplied by :math:`1 / \sqrt{q_j}`, with :math:`\sum_j q_j = 1` and no division by
    the number of columns. Two readings of the weights: "own", each column its own;
    "sorted", frequencies re-ordered by ascending weight, cosines of the first half and
    sines of the second.
literal
    Algorithm 1 as printed: columns scaled to [0, 1], sigma = 1, a pool of l = s,
    re-sampled with replacement, weights :math:`1 / \sqrt{l q_i}`, alpha
    :math:`= n \lambda`, no intercept.
fair
    Every method with gamma and alpha chosen on the training half by the same rule, on
    columns standardised by training statistics (EEG clipped at 10 interquartile ranges
    around the median first), from grids that grow until the choice is inside.

``fair`` runs every method of `surff.experiments.methods`, the other two the paper's
four. All methods of a trial share its split and, where they draw independently, its
frequencies, so comparisons are paired.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Collection
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import lapack
from sklearn.base import BaseEstimator, is_classifier
from sklearn.model_selection import StratifiedKFold, train_test_split

from surff import FourierFeatures, KernelRidgeClassifier
from surff.datasets import load
from surff.experiments.methods import (
    ABLATION,
    BANDWIDTH_OF,
    LEVERAGE_LAMBDA,
    features_of,
)
from surff.kernels import FourierMap, Gaussian, fourier_moments
from surff.linear import (
    CentredEquations,
    SingularError,
    accumulate,
    cholesky,
    climb,
    held_out_decisions,
    splits_equations,
)

__all__ = [
    "ONE_SPLIT",
    "PROBLEMS",
    "PROTOCOLS",
    "Part",
    "Problem",
    "load_problem",
    "map_pass",
    "prepared",
    "published_candidates",
    "published_leverage",
    "published_part",
    "published_surrogate",
    "sample_z_scores",
    "seed_sequence",
    "split",
    "standardised",
]

#: The paper's grid of lambda.
PAPER_LAMBDAS = np.array([0.05, 0.1, 0.5, 1.0])

#: A grid of lambda so wide that the best one is inside.
WIDE_LAMBDAS = 10.0 ** np.arange(-9.0, 7.0)

#: Training rows that ``fair`` chooses gamma on, at most: more change it little.
GAMMA_ROWS = 10_000

#: Largest multiple of d at which ``fair`` chooses gamma, to save time at larger ones.
GAMMA_MULTIPLE = 32


class Problem(NamedTuple):
    """A binary data set, its targets coded -1 and 1."""

    name: str
    X: np.ndarray  # (n_samples, n_features), raw values
    y: np.ndarray  # (n_samples,)
    test: tuple | None  # (X, y) of a fixed test part; None splits random halves
    note: str


class Part(NamedTuple):
    """One trial's data."""

    X: np.ndarray
    y: np.ndarray
    test_X: np.ndarray
    test_y: np.ndarray


#: Data sets by name, with the labels that become 1.
PROBLEMS = {
    "eeg": lambda y: y == 1,
    "magic04": lambda y: y == "g",
    "cod-rna": lambda y: y == 1,
    "covtype": lambda y: y == 1,
    "breast_cancer": lambda y: y == 1,
    "digits": lambda y: y % 2 == 1,
}


#: Data sets that come divided into training and test rows: trials on them have the
#: same rows and differ in their draws alone.
ONE_SPLIT = ("cod-rna",)


def load_problem(name: str) -> Problem:
    """Load a data set of the comparison.

    Parameters
    ----------
    name : str
        Key of `PROBLEMS`.

    Returns
    -------
    Problem

    Raises
    ------
    ValueError
        For an unknown name; the message lists the valid ones.
    """
    if name not in PROBLEMS:
        raise ValueError(f"dataset must be one of {sorted(PROBLEMS)}, got {name!r}.")

    def part(part=None):
        data = load(name, part)
        y = np.where(PROBLEMS[name](data.y), 1.0, -1.0)
        return np.asarray(data.X, dtype=np.float64), y, data.note

    if name in ONE_SPLIT:
        X, y, _ = part("train")
        test_X, test_y, note = part("paper-test")
        return Problem(name, X, y, (test_X, test_y), note)
    X, y, note = part()
    return Problem(name, X, y, None, note)


def seed_sequence(seed: int, problem: Any, trial: int, *more: int) -> list[int]:
    """Seed of a part of a trial, independent of other parts and of their order."""
    return [seed, zlib.crc32(problem.name.encode()), trial, *more]


def split(problem: Problem, trial: int, seed: int) -> Part:
    """Training and test rows of a trial: random halves, or the fixed test part."""
    if problem.test is not None:
        return Part(problem.X, problem.y, *problem.test)
    rng = np.random.default_rng(seed_sequence(seed, problem, trial))
    order = rng.permutation(len(problem.y))
    half = len(order) // 2
    train, test = order[:half], order[half:]
    return Part(problem.X[train], problem.y[train], problem.X[test], problem.y[test])


def scale_columns(part, low, width):
    """Subtract ``low`` and divide by ``width``; constant columns are divided by 1."""
    width = np.where(width > 0, width, 1.0)
    return part._replace(X=(part.X - low) / width, test_X=(part.test_X - low) / width)


def unit_interval(part: Part) -> Part:
    """Columns scaled to [0, 1] over all rows, as the paper does in advance."""
    low = np.minimum(part.X.min(axis=0), part.test_X.min(axis=0))
    high = np.maximum(part.X.max(axis=0), part.test_X.max(axis=0))
    return scale_columns(part, low, high - low)


def standardised(part: Part, clip: bool) -> Part:
    """Columns standardised by training statistics, optionally clipped to 10 IQR."""
    if clip:
        lower, median, upper = np.percentile(part.X, [25, 50, 75], axis=0)
        reach = 10.0 * (upper - lower)
        part = part._replace(
            X=part.X.clip(median - reach, median + reach),
            test_X=part.test_X.clip(median - reach, median + reach),
        )
    return scale_columns(part, part.X.mean(axis=0), part.X.std(axis=0))


def sample_z_scores(X: np.ndarray) -> np.ndarray:
    """Each row less its mean and divided by its standard deviation (divisor d - 1)."""
    X = X - X.mean(axis=1, keepdims=True)
    deviation = X.std(axis=1, ddof=1, keepdims=True)
    return X / np.where(deviation > 0, deviation, 1.0)


def prepared(problem: Problem, protocol: str, trial: int, seed: int) -> Part:
    """Data of a trial, split and scaled as the protocol does."""
    part = split(problem, trial, seed)
    if protocol == "fair":
        return standardised(part, clip=problem.name == "eeg")
    if protocol == "literal" or problem.name == "covtype":
        return unit_interval(part)
    return part._replace(X=sample_z_scores(part.X), test_X=sample_z_scores(part.test_X))


def timed(function: Callable, *args: Any) -> tuple[Any, float]:
    """Result and seconds; the fastest of five runs where one takes under 50 ms."""
    seconds = []
    while not seconds or (max(seconds) < 0.05 and len(seconds) < 5):
        start = time.perf_counter()
        result = function(*args)
        seconds.append(time.perf_counter() - start)
    return result, min(seconds)


def map_pass(feature_map: Any, X: np.ndarray) -> None:
    """Map all rows block by block, as a fit does, and keep nothing."""
    nothing = np.zeros((feature_map.n_components, 0, 1))  # predictions of no model
    held_out_decisions(feature_map, X, np.arange(len(X)), nothing, 0.0)


def warm_up(feature_map, X):
    """Compile or load the kernels and start the threads before anything is timed."""
    map_pass(feature_map, X)
    fourier_moments(X, feature_map.frequencies, np.ones((len(X), 1)))


def row(problem, protocol, method, multiple, trial, weights, seed, part, **more):
    """One stored result."""
    return {
        "protocol": protocol,
        "dataset": problem.name,
        "method": method,
        "multiple": multiple,
        "trial": trial,
        "weights": weights,
        "seed": seed,
        "n_frequencies": multiple * part.X.shape[1],
        "n_train": len(part.y),
        "n_test": len(part.test_y),
        **more,
    }


def ends(**choices):
    """Names of the choices ``name=(value, grid)`` that lie at an end of their grid."""
    return [
        name for name, (value, grid) in choices.items() if value in (grid[0], grid[-1])
    ]


# -- published -------------------------------------------------------------------------


class SortedMap:
    """The "sorted" reading: cosines of some frequencies, sines of others."""

    def __init__(self, cosine_frequencies, sine_frequencies):
        self.cosines = FourierMap(cosine_frequencies)
        self.sines = FourierMap(sine_frequencies)
        self.n_components = self.cosines.n_components
        self.dtype = self.cosines.dtype

    def __call__(self, X, out=None):
        s = self.n_components // 2
        out = np.empty((len(X), 2 * s)) if out is None else out
        out[:, :s] = self.cosines(X)[:, :s]
        out[:, s:] = self.sines(X)[:, s:]
        return out


class Candidate(NamedTuple):
    """A method of the published protocol: features, column weights, grid."""

    feature_map: object
    column_weights: np.ndarray
    lambdas: np.ndarray
    generation_time: float


def published_trial(problem, multiple, trial, methods, *, weights="own", seed=0):
    """One trial of the protocol ``published``; see the module and `PROTOCOLS`."""
    part, rng = published_part(problem, multiple, trial, seed)
    folds = StratifiedKFold(5, shuffle=True, random_state=int(rng.integers(2**31)))
    splits = list(folds.split(part.X, part.y))
    s = multiple * (part.X.shape[1] - 1)
    candidates = published_candidates(part, s, rng, methods, weights)
    rows = {}
    for feature_map in {c.feature_map for c in candidates.values()}:
        group = {m: c for m, c in candidates.items() if c.feature_map is feature_map}
        rows |= published_group(group, part, splits)
    part = part._replace(X=part.X[:, :-1])
    return [
        row(problem, "published", m, multiple, trial, weights, seed, part, **rows[m])
        for m in candidates
    ]


def published_part(
    problem: Problem, multiple: int, trial: int, seed: int
) -> tuple[Part, np.random.Generator]:
    """Scaled data of a trial, with a constant column for the phases, and its rng."""
    part = prepared(problem, "published", trial, seed)
    # The random phase b is one more frequency coordinate on a constant column.
    part = part._replace(X=with_ones(part.X), test_X=with_ones(part.test_X))
    return part, np.random.default_rng(seed_sequence(seed, problem, trial, multiple))


def with_ones(X):
    """``X`` with a last column of ones."""
    return np.column_stack([X, np.ones(len(X))])


def published_candidates(
    part: Part,
    s: int,
    rng: np.random.Generator,
    methods: Collection[str],
    weights: str,
) -> dict[str, Candidate]:
    """Features and weights of each method, with the time that generating them took."""
    n_features = part.X.shape[1] - 1
    measure = Gaussian()
    phases = rng.uniform(0.0, 2.0 * np.pi, size=(s, 1))

    def generate():
        features = FourierFeatures(2 * s, gamma=0.5, draw="halton")
        drawn = features.fit(np.zeros((1, n_features))).frequencies_
        feature_map = FourierMap(np.hstack([drawn, phases]))
        map_pass(feature_map, part.X)
        return feature_map

    start = time.perf_counter()
    W = measure.scale(0.5) * measure.sample(rng, s, n_features)
    W = np.hstack([W, phases])
    draw_time = time.perf_counter() - start
    plain = FourierMap(W)
    warm_up(plain, part.X[:64])
    ones = np.ones(2 * s)
    _, map_time = timed(map_pass, plain, part.X)
    rff = Candidate(plain, ones, PAPER_LAMBDAS, draw_time + map_time)
    found = {}
    if "rff" in methods:
        found["rff"] = rff
    if "qmc" in methods:
        halton, seconds = timed(generate)
        found["qmc"] = Candidate(halton, ones, PAPER_LAMBDAS, seconds)
    scorers = {"leverage": published_leverage, "surrogate": published_surrogate}
    for method in (name for name in scorers if name in methods):
        scores, seconds = timed(scorers[method], plain, part)
        column_weights = np.sqrt(scores.sum() / scores)
        feature_map = plain
        if weights == "sorted":
            feature_map, column_weights = sort_columns(W, column_weights)
        found[method] = Candidate(
            feature_map, column_weights, PAPER_LAMBDAS, draw_time + seconds
        )
    grids = {"rff-alpha-2s": PAPER_LAMBDAS / (2 * s), "rff-wide": WIDE_LAMBDAS}
    for method in (name for name in ABLATION if name in methods):
        found[method] = rff._replace(lambdas=grids[method])
    return found


def published_leverage(feature_map: Any, part: Part) -> np.ndarray:
    r"""Ridge leverage of each real column, lambda fixed; positive.

    The diagonal of :math:`G (G + \alpha I)^{-1} = I - \alpha (G + \alpha I)^{-1}` with
    :math:`G = Z^\top Z`; `surff.RidgeLeverage` scores pairs of columns instead.
    """
    no_target = np.zeros((len(part.X), 0))
    matrix = accumulate(feature_map, part.X, no_target).gram
    alpha = LEVERAGE_LAMBDA * len(part.X)
    np.einsum("ii->i", matrix)[...] += alpha
    factor, info = lapack.dpotrf(matrix, lower=0, clean=0, overwrite_a=1)
    if info:
        raise SingularError(
            f"Z^T Z + alpha I is singular to working precision (alpha={alpha:.3g})."
        )
    inverse, _ = lapack.dpotri(factor, lower=0, overwrite_c=1)
    scores = 1.0 - alpha * np.einsum("ii->i", inverse)
    return scores.clip(np.finfo(float).tiny, 1.0)


def published_surrogate(feature_map: Any, part: Part) -> np.ndarray:
    """Squared product of each real column with the uncentred labels; positive."""
    moments = fourier_moments(part.X, feature_map.frequencies, part.y[:, None])
    return np.maximum(moments[:, 0] ** 2, np.finfo(float).tiny)


def sort_columns(W, column_weights):
    """The "sorted" reading: [W W] by ascending weight, phases left in place."""
    s = len(W)
    order = np.argsort(column_weights, kind="stable")
    reordered = np.vstack([W, W])[order]
    reordered[:, -1] = np.concatenate([W[:, -1], W[:, -1]])
    return SortedMap(reordered[:s], reordered[s:]), column_weights[order]


def published_group(group, part, splits):
    """Choose lambda and test, for methods that differ by column weights alone.

    Their Gram matrices are one matrix scaled by rows and columns, so one pass over the
    data serves them all, and so does one pass of held-out predictions per fold.
    """
    feature_map = next(iter(group.values())).feature_map
    total, equations = splits_equations(feature_map, part.X, part.y[:, None], splits)
    correct = {method: np.zeros(len(c.lambdas)) for method, c in group.items()}
    for side in equations():
        for method, decisions in published_decisions(
            group, side.train, feature_map, part.X, side.test_rows
        ):
            hits = (decisions > 0) == (part.y[side.test_rows, None] > 0)
            # A lambda whose system is singular predicts nan and is never chosen.
            hits = np.where(np.isnan(decisions), -np.inf, hits)
            correct[method] += hits.mean(axis=0) / len(splits)
    chosen = {}
    for method, candidate in group.items():
        best = np.flatnonzero(correct[method] == correct[method].max())[-1]
        chosen[method] = candidate._replace(lambdas=candidate.lambdas[[best]])
    test_rows = np.arange(len(part.test_y))
    results = {}
    for method, decisions in published_decisions(
        chosen, total, feature_map, part.test_X, test_rows
    ):
        alpha = float(chosen[method].lambdas[0])
        if np.isnan(decisions).any():
            raise SingularError(
                f"{method}: the weighted Z^T Z + lambda I is singular to working "
                f"precision for every lambda={group[method].lambdas.tolist()}."
            )
        hits = (decisions[:, 0] > 0) == (part.test_y > 0)
        results[method] = {
            "accuracy": float(hits.mean()),
            "alpha": alpha,
            "gamma": 0.5,
            "generation_time": group[method].generation_time,
            "at_grid_end": ends(alpha=(alpha, group[method].lambdas)),
        }
    return results


def published_decisions(group, train, feature_map, X, rows):
    """Predictions of every method of a group at each of its lambdas, in one pass."""
    mean = train.target_sum / train.weight_sum
    columns = []
    for candidate in group.values():
        scaled = train.scaled(candidate.column_weights)
        moments = scaled.moments - np.outer(scaled.feature_sum, mean)
        system = CentredEquations(scaled.gram, moments, None, mean)
        for coef in cholesky(system.gram, system.moments, candidate.lambdas):
            if coef is None:
                coef = np.full((len(moments), 1), np.nan)
            columns.append(candidate.column_weights * coef[:, 0])
    coefs = np.column_stack(columns)[:, :, None]
    decisions = held_out_decisions(feature_map, X, rows, coefs, mean)[:, :, 0]
    edges = np.cumsum([len(candidate.lambdas) for candidate in group.values()])
    return zip(group, np.split(decisions, edges[:-1], axis=1), strict=True)


# -- literal and fair: the public estimators -------------------------------------------


def fitted_row(features, model, part):
    """Fit, test and time one method through the public estimators.

    Generation is the fit of the map and one pass of it over the training rows.
    """

    def generate(X, y):
        map_pass(features.fit(X, y).feature_map(), X)

    generate(part.X[:64], part.y[:64])  # compiles or loads the kernels
    _, seconds = timed(generate, part.X, part.y)
    model = model.set_params(features=features).fit(part.X, part.y)
    return {
        "accuracy": float(model.score(part.test_X, part.test_y)),
        "alpha": model.alpha_,
        "gamma": getattr(features, "gamma_", None),
        "generation_time": seconds,
        "at_grid_end": ends(alpha=(model.alpha_, model.alpha_path_.alphas)),
    }


def some_rows(
    X: np.ndarray, y: np.ndarray, n_rows: int, classification: bool, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Random rows, at most ``n_rows``, classes in proportion."""
    if len(y) <= n_rows:
        return X, y
    kept = {"train_size": n_rows, "stratify": y if classification else None}
    X, _, y, _ = train_test_split(X, y, random_state=seed, **kept)
    return X, y


def features_maker(part: Part, protocol: str, map_seed: int) -> Callable:
    """Function ``(method, gamma, multiple, n_samples)`` that makes features."""

    def features_at(method, gamma, multiple, n_samples):
        return features_of(
            method, protocol, part.X.shape[1], multiple, gamma, map_seed, n_samples
        )

    return features_at


def choose_gamma(
    model: BaseEstimator,
    method: str,
    features_at: Callable,
    X: np.ndarray,
    y: np.ndarray,
    multiple: int,
    seed: int,
) -> tuple[float | str, dict[float, float]]:
    """The bandwidth of ``fair``: uphill in the score of a model from ``1 / d``.

    Parameters
    ----------
    model : KernelRidgeClassifier or KernelRidgeRegressor
        Scores a bandwidth; its features are set.
    method : str
        Whose bandwidth; see also `surff.experiments.methods.BANDWIDTH_OF`.
    features_at : callable
        ``features_at(method, gamma, multiple, n_samples)`` makes features.
    X, y : ndarray
        Training rows; the score is taken on at most ``GAMMA_ROWS`` of them.
    multiple : int
        s / d; the score is taken at no more than ``GAMMA_MULTIPLE``.
    seed : int
        Chooses the rows.

    Returns
    -------
    gamma : float or "scale"
        "scale" where the method finds its own.
    scores : dict of float to float
        As `surff.linear.climb` returns; empty where nothing was tried.
    """
    method = BANDWIDTH_OF.get(method, method)
    if method is None:
        return "scale", {}
    X, y = some_rows(X, y, GAMMA_ROWS, is_classifier(model), seed)

    def score(gamma):
        features = features_at(method, gamma, min(multiple, GAMMA_MULTIPLE), len(y))
        return model.set_params(features=features).fit(X, y).best_score_

    return climb(score, 1.0 / X.shape[1])


def public_trial(protocol, problem, multiple, trial, methods, *, weights="own", seed=0):
    """One trial through the public estimators; see the module and `PROTOCOLS`."""
    part = prepared(problem, protocol, trial, seed)
    rng = np.random.default_rng(seed_sequence(seed, problem, trial, multiple))
    fold_seed, map_seed = (int(value) for value in rng.integers(2**31, size=2))
    folds = StratifiedKFold(5, shuffle=True, random_state=fold_seed)
    model = KernelRidgeClassifier(cv=folds)
    if protocol == "literal":
        model.set_params(alphas=len(part.y) * PAPER_LAMBDAS, fit_intercept=False)
    features_at = features_maker(part, protocol, map_seed)
    rows = []
    for method in methods:
        gamma, scores = 1.0, {}
        if protocol == "fair":
            gamma, scores = choose_gamma(
                model, method, features_at, part.X, part.y, multiple, fold_seed
            )
        features = features_at(method, gamma, multiple, len(part.y))
        found = fitted_row(features, model, part)
        if scores:
            found["at_grid_end"] += ends(gamma=(gamma, list(scores)))
        place = (problem, protocol, method, multiple, trial, weights, seed, part)
        rows.append(row(*place, **found))
    return rows


#: One trial of each protocol, by name: ``run(problem, multiple, trial, methods, *,
#: weights="own", seed=0)`` returns one dict per method, ready to be stored.
#: ``multiple`` is s / d; ``weights`` concerns ``published`` alone.
PROTOCOLS: dict[str, Callable[..., list[dict]]] = {
    "published": published_trial,
    "literal": partial(public_trial, "literal"),
    "fair": partial(public_trial, "fair"),
}
