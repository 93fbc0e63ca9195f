"""Names, styles, tasks and captions of the experiments, read from ``registry.toml``."""

import tomllib
from importlib import resources
from typing import Any

__all__ = ["REGISTRY"]

#: The tables of ``registry.toml``, whose comments say what each is.
REGISTRY: dict[str, Any] = tomllib.loads(
    resources.files("surff.experiments")
    .joinpath("registry.toml")
    .read_text(encoding="utf-8")
)
