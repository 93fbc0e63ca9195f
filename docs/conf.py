"""Sphinx configuration: Markdown pages, numpydoc docstrings, one page per name."""

import re
from importlib.metadata import version as installed_version

project = "surff"
author = "The surff developers"
copyright = "2026, The surff developers"
release = installed_version("surff")
version = release

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
]
exclude_patterns = ["results", "_build"]
templates_path = ["_templates"]

myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3

autosummary_generate = True
numpydoc_show_class_members = False  # the template lists them

html_theme = "pydata_sphinx_theme"
html_title = "surff"
html_theme_options = {"show_prev_next": False}


def skip_inherited_requests(app, what, name, obj, skip, options):
    """Leave out scikit-learn's generated metadata-routing methods.

    Their docstrings point to labels of scikit-learn's own manual.
    """
    return skip or name == "get_metadata_routing" or name.endswith("_request")


def join_continued_lines(app, what, name, obj, options, lines):
    """Join lines split by a backslash: raw docstrings keep it, numpydoc reads none."""
    joined = re.sub(r"(?<!\\) *\\\n *", " ", "\n".join(lines))
    lines[:] = joined.split("\n")


def setup(app):
    app.connect("autodoc-skip-member", skip_inherited_requests)
    app.connect("autodoc-process-docstring", join_continued_lines, priority=400)
