"""Models in files that are safe to open.

A pickle runs whatever its author put into it. `save` writes the skops format instead,
which holds arrays and the names of classes, sealed by a checksum, and `load` builds
only classes that scikit-learn, NumPy, SciPy or surff define: a file that asks for any
other type, or for a function that is not on the list, is refused before anything of it
is built. Needs the extra ``surff[persist]``.
"""

import contextlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from surff.estimators._fitted_state import check_fitted_state, check_nothing_derived
from surff.estimators._model_file import checked_file, sealed, write_whole
from surff.estimators._trusted_types import LOADERS, TRUSTED_TYPES

__all__ = ["TRUSTED_TYPES", "ModelFileError", "UntrustedModelError", "load", "save"]


class ModelFileError(ValueError):
    """A model file is damaged, or is no model file; the message names it."""


class UntrustedModelError(ModelFileError):
    """A model file asks for types that are not trusted."""


def _skops_io():
    try:
        import skops.io
    except ImportError as error:
        raise ImportError(
            "saving and loading models needs skops: pip install 'surff[persist]'"
        ) from error
    return skops.io


def save(model: Any, path: str | os.PathLike, trusted: Sequence[str] = ()) -> None:
    """Write a fitted model, or a pipeline that holds one, to a file.

    Parameters
    ----------
    model : estimator
        Any scikit-learn estimator; pipelines, searches, ensembles and calibrated models
        included.
    path : str or path-like
        File to write, ``.skops`` by custom. It is replaced whole or not at all, and
        keeps its permissions. A symbolic link is replaced by the file; what it points
        to stays as it is.
    trusted : sequence of str, default=()
        Full names of types that `load` does not trust by itself, such as a kernel class
        of your own: ``["mypackage.MyKernel"]``. Whoever loads the file has to name them
        as well.

    Raises
    ------
    UntrustedModelError
        If `load` would refuse a type in the model; the message names them. Nothing is
        written.
    ModelFileError
        If the attributes of a model contradict each other. Nothing is written.
    TypeError
        If ``model`` is no estimator.
    ImportError
        Without the extra ``surff[persist]``.

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
    path, names = Path(path), _names(trusted)
    skops = _skops_io()
    if not _is_estimator(model):
        raise TypeError(f"model must be an estimator, got {model!r:.80}.")
    with _named(f"{path} cannot be written"):
        data = skops.dumps(model)
        found = skops.get_untrusted_types(data=data)
        refused = _refused(found, checked_file(data).nodes, names)
        if not refused:
            check_fitted_state(model)
    if refused:
        raise UntrustedModelError(
            f"{path} is not written, since load would refuse these types of the model: "
            f"{', '.join(refused)}. If they are yours, pass their names as trusted, to "
            "save and to load."
        )
    write_whole(path, sealed(data))


def load(path: str | os.PathLike, trusted: Sequence[str] = ()) -> Any:
    """Read a model that `save` wrote; nothing outside the trusted types is built.

    Parameters
    ----------
    path : str or path-like
        File; those of earlier versions, without a checksum, can be read as well.
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
    ModelFileError
        If the file is damaged, is larger inside than a model can be, holds something
        else than an estimator, or a model whose attributes contradict each other. An
        `UntrustedModelError` is one, too.
    FileNotFoundError
        If there is no such file.
    ImportError
        Without the extra ``surff[persist]``.
    """
    path, names = Path(path), _names(trusted)
    skops = _skops_io()
    content = path.read_bytes()
    with _named(f"{path} is not a model file that surff can load"):
        data, nodes = checked_file(content)
        del content  # large
        found = skops.get_untrusted_types(data=data)
        refused = _refused(found, nodes, names)
    if refused:
        raise UntrustedModelError(
            f"{path} asks for types that are not trusted: {', '.join(refused)}. If you "
            "know where the file comes from and what they do, pass their names as "
            "trusted."
        )
    with _named(f"{path} is not a model file that surff can load"):
        model = skops.loads(data, trusted=found)
        if not _is_estimator(model):
            raise ValueError(f"it holds no estimator but {type(model).__name__}")
        check_nothing_derived(model)
        check_fitted_state(model)
    return model


def _is_estimator(model):
    """Whether this can be fitted; a class cannot."""
    can = all(callable(getattr(model, name, None)) for name in ("fit", "get_params"))
    return can and not isinstance(model, type)


@contextlib.contextmanager
def _named(what: str) -> Iterator[None]:
    """One error class, which says what is wrong with which file."""
    try:
        yield
    except ImportError:
        raise
    except Exception as error:  # skops raises what zip, JSON, NumPy and classes raise
        text = str(error).strip().rstrip(".")
        if type(error) is not ValueError:
            text = f"{type(error).__name__}: {text}" if text else type(error).__name__
        raise ModelFileError(f"{what}: {text}.") from error


def _names(trusted):
    """Names that the user trusts."""
    names = [trusted] if isinstance(trusted, str) else [*trusted]
    if isinstance(trusted, str) or not all(isinstance(name, str) for name in names):
        raise TypeError(f"trusted must be a sequence of names, got {trusted!r}.")
    return {*names}


def _refused(found, nodes, trusted):
    """Names that are not trusted, among those that skops has found and by their use.

    skops builds a name that it is told to trust by any of its loaders, so that each is
    looked at here as what the file takes it for.
    """
    refused = {*found} - {*LOADERS, *trusted}
    for node in nodes:
        name = f"{node.get('__module__')}.{node.get('__class__')}"
        loader = node["__loader__"]
        if name not in trusted and loader not in LOADERS.get(name, (loader,)):
            refused.add(f"{name} by {loader}")
    return sorted(refused)
