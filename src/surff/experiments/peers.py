"""Models of other libraries, tuned and fitted as the benchmark does.

Boosting (scikit-learn's and, where they are installed, XGBoost's and LightGBM's with
linear trees) and the multilayer perceptron choose from a small grid by 3 folds on at
most 10,000 rows, and stop when a tenth of the rows no longer improves;
"boosting-default" is scikit-learn's as it comes; exact kernel ridge and xRFM choose on
2,000 rows and are fitted to at most 20,000.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    StratifiedKFold,
    train_test_split,
)
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.preprocessing import LabelBinarizer

from surff.experiments.protocol import GAMMA_ROWS, Part, some_rows
from surff.experiments.registry import REGISTRY

__all__ = ["GRIDS", "ExactKernelRidge", "Fitted", "fit_peer", "score_of"]

#: Peers with a matrix of all rows by all rows.
EXACT = ("kernel-ridge", "xrfm")

#: Rows that these are tuned on, at most: the time of a fit grows as their cube.
EXACT_TUNING_ROWS = 2_000

#: Rows that these are fitted to, at most: the matrix takes 3 GB.
EXACT_ROWS = 20_000

#: Rows of a matrix of xRFM, which divides more among several.
LEAF_ROWS = 10_000

#: Values that each peer chooses from; a gamma is in units of 1 / d.
GRIDS: dict[str, dict[str, Any]] = {
    **REGISTRY["grids"],
    "kernel-ridge": {
        "gamma": 4.0 ** np.arange(-4.0, 3.0),
        "alpha": 10.0 ** np.arange(-4.0, 2.0),
    },
}


class Fitted(NamedTuple):
    """A tuned and fitted model."""

    model: Any
    tune_time: float  # seconds, of which
    fit_time: float  # seconds, tuning included


def score_of(predicted: np.ndarray, y: np.ndarray, classification: bool) -> float:
    """Accuracy, or R2 for numbers."""
    if classification:
        return float(np.mean(predicted == y))
    return float(1.0 - np.mean((y - predicted) ** 2) / np.var(y))


class Peer(BaseEstimator):
    """A model for class numbers or numbers, as its ``classification`` says."""

    classification: bool
    seed: int

    def score(self, X: np.ndarray, y: np.ndarray) -> float:
        """Accuracy or R2."""
        return score_of(self.predict(X), y, self.classification)

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Class numbers or numbers."""
        found = self._predicted(X)
        return self.classes_[found] if self.classification else found

    def _numbered(self, y):
        """Classes as 0, 1, ...; numbers as they are."""
        self.classes_ = np.unique(y) if self.classification else None
        return np.searchsorted(self.classes_, y) if self.classification else y

    def _with_held(self, X, y):
        """Rows to fit, a tenth of the rows to stop by, and the targets of both."""
        held = {"test_size": 0.1, "stratify": y if self.classification else None}
        return train_test_split(X, y, random_state=self.seed, **held)


@dataclass(eq=False, repr=False)
class ExactKernelRidge(Peer):
    """Kernel ridge on the whole kernel matrix, for numbers or class labels.

    Parameters
    ----------
    gamma : float, default=1.0
        Bandwidth of the Gaussian kernel.
    alpha : float, default=1.0
        Regularisation.
    classification : bool, default=True
        Labels, one against the rest, or numbers.
    """

    gamma: float = 1.0
    alpha: float = 1.0
    classification: bool = True

    def fit(self, X: np.ndarray, y: np.ndarray) -> ExactKernelRidge:
        """Solve for the coefficients of the rows, ``O(n^3)``."""
        self.ridge_ = KernelRidge(kernel="rbf", gamma=self.gamma, alpha=self.alpha)
        if self.classification:
            self.labels_ = LabelBinarizer(neg_label=-1)
            y = self.labels_.fit_transform(y).astype(np.float64)
        self.offset_ = y.mean(axis=0)
        self.ridge_.fit(X, y - self.offset_)
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Labels or numbers, some rows at a time."""
        blocks = np.array_split(np.arange(len(X)), len(X) // 2000 + 1)
        found = np.concatenate([self.ridge_.predict(X[rows]) for rows in blocks])
        found = found + self.offset_
        return self.labels_.inverse_transform(found) if self.classification else found


@dataclass(eq=False, repr=False)
class EarlyStoppedXGBoost(Peer):
    """XGBoost that stops when a tenth of the rows, held out, no longer improves.

    Parameters
    ----------
    learning_rate : float, default=0.1
    max_depth : int, default=6
    classification : bool, default=True
        Class numbers, or numbers.
    seed : int, default=0
        Seed of the choice of the rows held out.
    """

    learning_rate: float = 0.1
    max_depth: int = 6
    classification: bool = True
    seed: int = 0

    def fit(self, X: np.ndarray, y: np.ndarray) -> EarlyStoppedXGBoost:
        """At most 1,000 rounds on one thread."""
        import xgboost

        X, X_held, y, y_held = self._with_held(X, self._numbered(y))
        kind = xgboost.XGBClassifier if self.classification else xgboost.XGBRegressor
        self.model_ = kind(
            n_estimators=1000,
            learning_rate=self.learning_rate,
            max_depth=self.max_depth,
            early_stopping_rounds=10,
            n_jobs=1,
        )
        self.model_.fit(X, y, eval_set=[(X_held, y_held)], verbose=False)
        return self

    def _predicted(self, X):
        return self.model_.predict(X)


@dataclass(eq=False, repr=False)
class EarlyStoppedLightGBM(Peer):
    """LightGBM with linear models in the leaves, stopped as `EarlyStoppedXGBoost` is.

    Parameters
    ----------
    learning_rate : float, default=0.1
    num_leaves : int, default=31
    classification : bool, default=True
        Class numbers, or numbers.
    seed : int, default=0
        Seed of the choice of the rows held out.
    """

    learning_rate: float = 0.1
    num_leaves: int = 31
    classification: bool = True
    seed: int = 0

    def fit(self, X: np.ndarray, y: np.ndarray) -> EarlyStoppedLightGBM:
        """At most 1,000 rounds on one thread."""
        import lightgbm

        X, X_held, y, y_held = self._with_held(X, self._numbered(y))
        kind = {"objective": "regression"}
        if self.classification:
            kind = {"objective": "multiclass", "num_class": len(self.classes_)}
        options = {
            "learning_rate": self.learning_rate,
            "num_leaves": self.num_leaves,
            "linear_tree": True,
            "early_stopping_round": 10,
            "num_threads": 1,
            "verbose": -1,
        }
        rows = lightgbm.Dataset(X, y)
        held = lightgbm.Dataset(X_held, y_held, reference=rows)
        self.model_ = lightgbm.train(
            kind | options, rows, num_boost_round=1000, valid_sets=[held]
        )
        return self

    def _predicted(self, X):
        found = self.model_.predict(X)
        return found.argmax(axis=1) if self.classification else found


@dataclass(eq=False, repr=False)
class EarlyStoppedXRFM(Peer):
    """xRFM with the rounds that do best on a tenth of the rows, held out.

    Parameters
    ----------
    bandwidth : float, default=10.0
        Of its Laplace kernel.
    diagonal : bool, default=False
        Metric of the columns' scales alone.
    classification : bool, default=True
        Class numbers, or numbers.
    seed : int, default=0
        Seed of the choice of the rows held out, and of xRFM itself.
    """

    bandwidth: float = 10.0
    diagonal: bool = False
    classification: bool = True
    seed: int = 0

    def fit(self, X: np.ndarray, y: np.ndarray) -> EarlyStoppedXRFM:
        """At most 5 rounds on one thread, in float32."""
        import torch
        from xrfm import xRFM

        y = self._numbered(y) if self.classification else y[:, None]
        X, X_held, y, y_held = self._with_held(X, y)
        kernel = {
            "kernel": "l2",
            "bandwidth": self.bandwidth,
            "exponent": 1.0,
            "diag": self.diagonal,
            "bandwidth_mode": "constant",
        }
        rounds = {"reg": 1e-3, "iters": 5, "verbose": False, "early_stop_rfm": True}
        torch.set_num_threads(1)
        self.model_ = xRFM(
            rfm_params={"model": kernel, "fit": rounds},
            max_leaf_size=LEAF_ROWS,
            device="cpu",
            tuning_metric="accuracy" if self.classification else "mse",
            n_threads=1,
            random_state=self.seed,
            verbose=False,
        )
        kind = np.int64 if self.classification else np.float32
        rows, held = (X, y), (X_held, y_held)
        self.model_.fit(
            *(
                a.astype(t)
                for p in (rows, held)
                for a, t in zip(p, (np.float32, kind), strict=True)
            )
        )
        return self

    def _predicted(self, X):
        return np.ravel(self.model_.predict(X.astype(np.float32)))


def _boosting(classification, seed, **options):
    kinds = HistGradientBoostingRegressor, HistGradientBoostingClassifier
    return kinds[classification](random_state=seed, **options)


def _mlp(classification, seed, n_columns):
    return (MLPRegressor, MLPClassifier)[classification](
        hidden_layer_sizes=(n_columns,),
        early_stopping=True,
        max_iter=200,
        random_state=seed,
    )


#: Unfitted peers, by name: of classification, a seed, and the columns of a map.
MODELS: dict[str, Callable[[bool, int, int], Any]] = {
    "boosting": lambda c, seed, _: _boosting(
        c, seed, max_iter=1000, early_stopping=True
    ),
    "boosting-default": lambda c, seed, _: _boosting(c, seed),
    "mlp": _mlp,
    "xgboost": lambda c, seed, _: EarlyStoppedXGBoost(classification=c, seed=seed),
    "lightgbm": lambda c, seed, _: EarlyStoppedLightGBM(classification=c, seed=seed),
    "xrfm": lambda c, seed, _: EarlyStoppedXRFM(classification=c, seed=seed),
    "kernel-ridge": lambda c, *_: ExactKernelRidge(classification=c),
}


def fit_peer(
    method: str,
    part: Part,
    classification: bool,
    multiple: int,
    fold_seed: int,
    map_seed: int,
) -> Fitted:
    """Tune and fit a peer by the rule of the module."""
    d, exact = part.X.shape[1], method in EXACT
    model = MODELS[method](classification, map_seed, 2 * multiple * d)
    grid = GRIDS[method]
    if "gamma" in grid:
        grid = {**grid, "gamma": grid["gamma"] / d}
    start = time.process_time()
    if grid:
        n_rows = EXACT_TUNING_ROWS if exact else GAMMA_ROWS
        X, y = some_rows(part.X, part.y, n_rows, classification, fold_seed)
        folds = StratifiedKFold if classification else KFold
        search = GridSearchCV(
            model, grid, cv=folds(3, shuffle=True, random_state=fold_seed), refit=False
        )
        model.set_params(**search.fit(X, y).best_params_)
    tune_time = time.process_time() - start
    rows = slice(None)
    if exact and len(part.y) > EXACT_ROWS:
        order = np.random.default_rng(fold_seed).permutation(len(part.y))
        rows = np.sort(order[:EXACT_ROWS])
    model.fit(part.X[rows], part.y[rows])
    return Fitted(model, tune_time, time.process_time() - start)
