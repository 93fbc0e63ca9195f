"""The methods of the comparison, by name.

`METHODS` are the four that the paper compares, under every protocol. `MORE` are the
other feature maps that surff offers, under the protocol ``fair`` alone, which treats
all methods alike. `features_of` makes the features of any of them.
"""

from __future__ import annotations

import importlib.util
from typing import Any, NamedTuple

from sklearn.base import clone

import surff
from surff import (
    EERF,
    Compression,
    FourierFeatures,
    KernelAlignment,
    NystroemFeatures,
    ResidualLeverage,
    RidgeLeverage,
    SurrogateLeverage,
)
from surff.experiments.registry import REGISTRY

__all__ = [
    "ABLATION",
    "BANDWIDTH_OF",
    "DRAW_LABELS",
    "LABELS",
    "LANDMARKS",
    "LEVERAGE_LAMBDA",
    "METHODS",
    "MORE",
    "NAMES",
    "ON_AUTO",
    "OWN",
    "PACKAGES",
    "PEERS",
    "OwnMethod",
    "all_methods",
    "features_of",
    "own_labels",
    "selectors",
    "why_not",
]

_GROUPS: dict[str, dict[str, str]] = REGISTRY["methods"]

#: The paper's methods in the order of its table, with their printed names.
METHODS = _GROUPS["paper"]

#: Rows of the ablation, ``published`` only.
ABLATION = _GROUPS["ablation"]

#: Draws besides those of the paper's methods: values of ``draw``.
DRAWS = _GROUPS["draws"]

#: Selections besides those of the paper's methods.
SELECTIONS = _GROUPS["selections"]

#: Adaptations: values of ``adapt``.
ADAPTATIONS = _GROUPS["adaptations"]

#: The adaptation "auto" with leaf heads, or with alpha by GCV, for the benchmark.
ON_AUTO = _GROUPS["on_auto"]

#: Rules that choose Nystrom landmarks: values of ``landmarks``.
LANDMARKS = _GROUPS["landmarks"]

_NYSTROEM = {f"nystroem-{rule}": label for rule, label in LANDMARKS.items()}

#: All methods that the paper does not compare, with their printed names.
MORE = {**DRAWS, **SELECTIONS, **ADAPTATIONS, **_NYSTROEM}

#: Methods of other libraries that the benchmark compares with.
PEERS = _GROUPS["peers"]

#: Printed names of the methods and of the ablation, in table order.
LABELS = {**METHODS, **MORE, **ON_AUTO, **ABLATION}

#: Printed names of the draws and of the Nystrom landmark rules, in table order.
DRAW_LABELS = {"monte_carlo": "iid (RFF)", "halton": "Halton", **DRAWS, **_NYSTROEM}

#: Printed names of everything that has a line in a picture or a row in a table.
NAMES = {**LABELS, **DRAW_LABELS, **PEERS}

#: Packages of the methods that surff does not depend on: module, and what to install.
PACKAGES: dict[str, tuple[str, str]] = {
    name: (module, package) for name, (module, package) in REGISTRY["packages"].items()
}

#: lambda of the ridge leverage scores, as in the paper.
LEVERAGE_LAMBDA = 0.05

#: Whose bandwidth a method starts from, where not its own: fitting an adaptation for
#: each bandwidth tried would cost many times the method itself. "auto" finds its own.
BANDWIDTH_OF = {
    "agop": "rff",
    "gradient": "rff",
    **dict.fromkeys(("auto", *ON_AUTO)),
}

#: Draws of the methods that are not named after theirs.
_DRAW_OF = {"qmc": "halton", **{name: name for name in DRAWS}}


class OwnMethod(NamedTuple):
    """A method of a user, see `surff.experiments.add_method`."""

    kind: str  # "draw", "select", "adapt", "features", "function" or "estimator"
    part: Any

    def features(
        self, n_components: int, gamma: Any, random_state: int
    ) -> surff.estimators.Features:
        """Unfitted features of it; not of an estimator."""
        options = {"gamma": gamma, "random_state": random_state}
        if self.kind == "function":
            return self.part(n_components=n_components, **options)
        part = clone(self.part, safe=False)
        if self.kind != "features":
            return FourierFeatures(n_components, **{self.kind: part}, **options)
        options["n_components"] = n_components
        own = part.get_params(deep=False)
        return part.set_params(**{k: v for k, v in options.items() if k in own})


#: Methods of users by name.
OWN: dict[str, OwnMethod] = {}


def own_labels(estimators: bool) -> dict[str, str]:
    """Names and printed names of methods of users, whole estimators or features."""
    return {
        name: LABELS[name]
        for name, method in OWN.items()
        if (method.kind == "estimator") == estimators
    }


def all_methods() -> dict[str, str]:
    """Names and printed names of all methods with features, in table order."""
    return {**METHODS, **MORE, **own_labels(estimators=False)}


def why_not(method: str, n_features: int, multiple: int) -> str | None:
    """Reason why a method cannot run at that size; None where it can."""
    module, package = PACKAGES.get(method, (None, None))
    if module and importlib.util.find_spec(module) is None:
        return f"pip install {package}"
    if method == "sparse_grid" and multiple < 2:
        return f"its smallest grid has {n_features + 1} points"
    return None


def selectors(protocol: str, n_samples: int) -> dict[str, object]:
    """Selectors of the weighted methods under a protocol.

    Parameters
    ----------
    protocol : {"published", "literal", "fair"}
    n_samples : int
        Rows to train.

    Returns
    -------
    selectors : dict
        Maps the name of a method to a selector; "leverage" and "surrogate" under every
        protocol, further ones under "fair".
    """
    if protocol == "fair":
        keep = {"resample": "without_replacement"}
        return {
            "leverage": RidgeLeverage(1e-3 * n_samples, n_candidates=2.0, **keep),
            "surrogate": SurrogateLeverage(n_candidates=4.0, **keep),
            "surrogate-ridge": SurrogateLeverage(True, n_candidates=4.0, **keep),
            "eerf": EERF(),
            "alignment": KernelAlignment(),
            "compression": Compression(),
            "residual": ResidualLeverage(),
        }
    keep = {"resample": "reweight" if protocol == "published" else "multinomial"}
    alpha = LEVERAGE_LAMBDA * n_samples
    return {
        "leverage": RidgeLeverage(alpha, n_candidates=1.0, **keep),
        "surrogate": SurrogateLeverage(n_candidates=1.0, **keep),
    }


def features_of(
    method: str,
    protocol: str,
    n_features: int,
    multiple: int,
    gamma: float | str,
    seed: int,
    n_samples: int,
) -> surff.estimators.Features:
    """Unfitted features of a method, ``2 * multiple * n_features`` columns.

    Features of users may have another number.

    Parameters
    ----------
    method : str
        Key of `all_methods` or `ON_AUTO`.
    protocol : str
        Whose settings selectors get.
    n_features, n_samples : int
        Columns and rows of the training data.
    multiple : int
        s / d.
    gamma : float or "scale"
        Bandwidth.
    seed : int
        ``random_state``.

    Returns
    -------
    Features

    Raises
    ------
    ValueError
        For an unknown method; the message lists the valid ones.
    """
    if method in ON_AUTO:
        method = "auto"
    if method not in all_methods():
        raise ValueError(
            f"method must be one of {', '.join(all_methods())}, got {method!r}."
        )
    n_components = 2 * multiple * n_features
    if method in OWN:
        return OWN[method].features(n_components, gamma, seed)
    if method in _NYSTROEM:
        landmarks = method.removeprefix("nystroem-")
        return NystroemFeatures(
            n_components, gamma=gamma, landmarks=landmarks, random_state=seed
        )
    return FourierFeatures(
        n_components,
        gamma=gamma,
        draw=_DRAW_OF.get(method, "monte_carlo"),
        select=selectors(protocol, n_samples).get(method),
        adapt=method if method in ADAPTATIONS else None,
        random_state=seed,
    )
