"""The methods of the comparison, by name.

`METHODS` are the four that the paper compares, under every protocol. `MORE` are the
other ways of surff to a feature map, under the protocol ``fair`` alone, which is the
only one that is the same for all. `features_of` makes the features of any of them.
"""

import importlib.util

from surff.adaptation import ADAPTATIONS
from surff.draws import DRAWS
from surff.estimators import FourierFeatures, NystroemFeatures
from surff.selection import SELECTORS, RidgeLeverage, SurrogateLeverage

__all__ = [
    "BANDWIDTH_OF",
    "LEVERAGE_LAMBDA",
    "METHODS",
    "MORE",
    "PACKAGES",
    "PEERS",
    "all_methods",
    "features_of",
    "selectors",
    "why_not",
]

#: The paper's methods in the order of its table, with their printed names.
METHODS = {
    "rff": "RFF",
    "qmc": "QMC",
    "leverage": "leverage-RFF",
    "surrogate": "Ours",
}

#: Further methods with their printed names: draws, selectors, adaptations, landmark
#: rules, by the names that `surff.FourierFeatures` and `surff.NystroemFeatures` know.
MORE = {
    "sobol": "Sobol",
    "orthogonal": "orthogonal",
    "structured_orthogonal": "structured (SORF)",
    "spherical_radial": "spherical-radial",
    "gauss_hermite": "Gauss-Hermite",
    "sparse_grid": "sparse grid",
    "reweighted": "re-weighted",
    "modified": "modified RFF",
    "surrogate-ridge": "Ours with n I (q~)",
    "eerf": "EERF",
    "alignment": "alignment (LKRF)",
    "compression": "compression (GIGA)",
    "residual": "residual stages",
    "agop": "AGOP",
    "gradient": "learned frequencies",
    "auto": "adapted (auto)",
    "nystroem-uniform": "Nystrom uniform",
    "nystroem-leverage": "Nystrom leverage",
    "nystroem-rpcholesky": "Nystrom RPCholesky",
    "nystroem-kmeans": "Nystrom k-means",
}

#: Methods of others that the benchmark compares with.
PEERS = {
    "mlp": "MLP of the same width",
    "boosting": "HistGradientBoosting",
    "xgboost": "XGBoost",
    "xrfm": "xRFM",
    "kernel-ridge": "exact kernel ridge",
}

#: Packages of the methods that surff does not depend on: module, and what to install.
PACKAGES = {"xgboost": ("xgboost", "xgboost-cpu"), "xrfm": ("xrfm", "xrfm")}

#: lambda of the ridge leverage scores.
LEVERAGE_LAMBDA = 0.05


#: Whose bandwidth a method starts from, where not its own: fitting an adaptation for
#: each bandwidth tried would cost many times the method itself. "auto" finds its own.
BANDWIDTH_OF = {"agop": "rff", "gradient": "rff", "auto": None}


def all_methods():
    """Names and printed names of all methods, in table order."""
    return {**METHODS, **MORE}


def why_not(method, n_features, multiple):
    """Why a method cannot run at that size; None where it can."""
    module, package = PACKAGES.get(method, (None, None))
    if module and importlib.util.find_spec(module) is None:
        return f"pip install {package}"
    if method == "sparse_grid" and multiple < 2:
        return f"its smallest grid has {n_features + 1} points"
    return None


def selectors(protocol, n_samples):
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
        resample = "without_replacement"
        return {
            **{name: SELECTORS[name]() for name in SELECTORS if name in MORE},
            "leverage": RidgeLeverage(
                1e-3 * n_samples, n_candidates=2.0, resample=resample
            ),
            "surrogate": SurrogateLeverage(n_candidates=4.0, resample=resample),
            "surrogate-ridge": SurrogateLeverage(
                ridge_term=True, n_candidates=4.0, resample=resample
            ),
        }
    resample = "reweight" if protocol == "published" else "multinomial"
    return {
        "leverage": RidgeLeverage(
            LEVERAGE_LAMBDA * n_samples, n_candidates=1.0, resample=resample
        ),
        "surrogate": SurrogateLeverage(n_candidates=1.0, resample=resample),
    }


def features_of(method, protocol, n_features, multiple, gamma, seed, n_samples):
    """Unfitted features of a method, ``2 * multiple * n_features`` columns.

    Parameters
    ----------
    method : str
        Key of `all_methods`.
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
    FourierFeatures or NystroemFeatures

    Raises
    ------
    ValueError
        For an unknown method; the message lists the valid ones.
    """
    if method not in all_methods():
        raise ValueError(
            f"method must be one of {', '.join(all_methods())}, got {method!r}."
        )
    n_components = 2 * multiple * n_features
    if method.startswith("nystroem-"):
        landmarks = method.removeprefix("nystroem-")
        return NystroemFeatures(
            n_components, gamma=gamma, landmarks=landmarks, random_state=seed
        )
    select = selectors(protocol, n_samples).get(method)
    draw = {"rff": "monte_carlo", "qmc": "halton"}.get(method, method)
    return FourierFeatures(
        n_components,
        gamma=gamma,
        draw=draw if draw in DRAWS else "monte_carlo",
        select=select,
        adapt=method if method in ADAPTATIONS else None,
        random_state=seed,
    )
