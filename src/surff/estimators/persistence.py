"""Models in files that are safe to open.

A pickle runs whatever its author put into it. `save` writes the skops format instead,
which holds arrays and the names of classes, and `load` builds only classes that
scikit-learn, NumPy, SciPy or surff define: a file that asks for any other type, or for
a function, is refused before anything of it is built. Needs the extra
``surff[persist]``.
"""

import io
import json
import os
import zipfile
from pathlib import Path

from surff.adaptation import ADAPTATIONS
from surff.draws import DRAWS, HadamardFrequencies
from surff.estimators.features import FourierFeatures
from surff.estimators.logistic import KernelLogisticClassifier
from surff.estimators.nystroem import NystroemFeatures
from surff.estimators.ridge import KernelRidgeClassifier, KernelRidgeRegressor
from surff.kernels import KERNELS, Product, Sum
from surff.linear import AlphaPath, NormalEquations
from surff.selection import SELECTORS

__all__ = ["TRUSTED_TYPES", "UntrustedModelError", "load", "save"]


def _name(cls):
    return f"{cls.__module__}.{cls.__qualname__}"


#: Classes of surff that model files may hold.
_CLASSES = {
    AlphaPath,
    FourierFeatures,
    HadamardFrequencies,
    KernelLogisticClassifier,
    KernelRidgeClassifier,
    KernelRidgeRegressor,
    NormalEquations,
    NystroemFeatures,
    Product,
    Sum,
    *ADAPTATIONS.values(),
    *DRAWS.values(),
    *KERNELS.values(),
    *SELECTORS.values(),
}

#: Types that `load` builds, beside those that skops trusts by itself: data and surff.
TRUSTED_TYPES = (
    "numpy.dtype",
    "scipy.sparse._csr.csr_array",
    *sorted(_name(cls) for cls in _CLASSES),
)

#: Where each class is now. Files name classes by module, and modules move: a class of
#: surff is looked up by its name alone.
_MODULES = {cls.__qualname__: cls.__module__ for cls in _CLASSES}


class UntrustedModelError(ValueError):
    """A model file asks for types that are not trusted."""


def _with_current_modules(data):
    """A model file whose classes of surff are named by the modules they are in now."""

    def renamed(node):
        if node.get("__module__", "").startswith("surff."):
            module = _MODULES.get(node.get("__class__"), node["__module__"])
            node["__module__"] = module
        return node

    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    before = json.loads(members["schema.json"])
    after = json.loads(members["schema.json"], object_hook=renamed)
    if after == before:
        return data
    members["schema.json"] = json.dumps(after).encode()
    renewed = io.BytesIO()
    with zipfile.ZipFile(renewed, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return renewed.getvalue()


def _skops_io():
    try:
        import skops.io
    except ImportError as error:
        raise ImportError(
            "saving and loading models needs skops: pip install 'surff[persist]'"
        ) from error
    return skops.io


def save(model, path):
    """Write a fitted model, or a pipeline that holds one, to a file.

    Parameters
    ----------
    model : estimator
        Any scikit-learn estimator; pipelines and searches included.
    path : str or path-like
        File to write, ``.skops`` by custom. It is replaced whole or not at all.

    Raises
    ------
    ImportError
        Without the extra ``surff[persist]``.

    Notes
    -----
    Kernels, draws and selectors of your own can be saved; whoever loads the file has to
    name them in ``trusted``.

    Examples
    --------
    >>> import numpy as np, tempfile, os, surff
    >>> X, y = np.arange(20.0).reshape(10, 2), np.arange(10) % 2
    >>> model = surff.KernelRidgeClassifier(alphas=1.0).fit(X, y)
    >>> path = os.path.join(tempfile.mkdtemp(), "model.skops")
    >>> surff.save(model, path)
    >>> bool((surff.load(path).predict(X) == model.predict(X)).all())
    True
    """
    path = Path(path)
    data = _skops_io().dumps(model)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        temporary.write_bytes(data)
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def load(path, trusted=()):
    """Read a model that `save` wrote; nothing outside the trusted types is built.

    Parameters
    ----------
    path : str or path-like
        File.
    trusted : sequence of str, default=()
        Full names of further types to build, such as a kernel class of your own:
        ``["mypackage.MyKernel"]``. Name only what you would import and run.

    Returns
    -------
    model : estimator

    Raises
    ------
    UntrustedModelError
        If the file asks for a type that is not trusted; the message names them. Nothing
        of the file has been built or run.
    FileNotFoundError
        If there is no such file.
    ValueError
        If the file is not in the skops format.
    ImportError
        Without the extra ``surff[persist]``.
    """
    skops = _skops_io()
    data = Path(path).read_bytes()
    allowed = {*TRUSTED_TYPES, *trusted}
    try:
        data = _with_current_modules(data)
        found = skops.get_untrusted_types(data=data)
    except Exception as error:  # skops raises what zip and JSON raise
        raise ValueError(
            f"{path} is not a model file that surff.save wrote."
        ) from error
    refused = sorted(set(found) - allowed)
    if refused:
        raise UntrustedModelError(
            f"{path} asks for types that are not trusted: {', '.join(refused)}. If you "
            "know where the file comes from and what they do, pass their names as "
            "trusted."
        )
    return skops.loads(data, trusted=sorted(found))
