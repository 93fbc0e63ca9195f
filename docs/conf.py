"""Sphinx configuration: Markdown pages, numpydoc docstrings, one page per name."""

import re
from importlib.metadata import version as installed_version

from docutils import nodes
from latex2mathml.converter import convert

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
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["results", "_build", "auto_examples/*.ipynb"]
templates_path = ["_templates"]

myst_enable_extensions = ["attrs_block", "dollarmath"]
myst_heading_anchors = 3

autosummary_generate = True
numpydoc_show_class_members = False  # the template lists them

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "abort_on_example_error": True,
    "write_computation_times": False,  # pages that load scripts from a network
}
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

html_theme = "pydata_sphinx_theme"
html_static_path = ["_static"]
html_css_files = ["surff.css"]
toc_object_entries_show_parents = "hide"
html_title = "surff"
html_show_sourcelink = False  # a sidebar with nothing else would stay
html_show_search_summary = False  # browsers refuse to fetch it from a disk
html_math_renderer = "mathml"  # drawn by browsers themselves, without a network
html_theme_options = {"show_prev_next": False, "show_toc_level": 2}


def strip_code(app, doctree):
    """Drop the empty line that a doctest needs before the fence."""
    del app  # the same for all builders
    for block in doctree.findall(nodes.literal_block):
        if block.astext() == block.rawsource:  # no markup within
            block.rawsource = block.rawsource.rstrip()
            block.children = [nodes.Text(block.rawsource)]


def mathml(formula, display="inline"):
    """Formula as MathML; bars of a norm that has a power keep their size and place."""
    written = convert(formula, display=display)
    return re.sub(r"<mo>(&#x0(?:2016|007C);)", r'<mo stretchy="false">\1', written)


def visit_math(self, node):
    """Write a formula in a line of text."""
    self.body.append(mathml(node.astext()))
    raise nodes.SkipNode


def visit_math_block(self, node):
    """Write a formula of its own."""
    self.body.append(f"<p>{mathml(node.astext(), 'block')}</p>")
    raise nodes.SkipNode


def skip_inherited_requests(app, what, name, obj, skip, options):
    """Leave out scikit-learn's generated metadata-routing methods.

    Their docstrings point to labels of scikit-learn's own manual.
    """
    return skip or name == "get_metadata_routing" or name.endswith("_request")


def shorten_signature(app, what, name, obj, options, signature, return_annotation):
    """Write NumPy's type of all that names a dtype as its name."""
    del app, what, name, obj, options  # the same for all
    dtype = r"type\[~typing\.Any\] \| .*?_DTypeDict \| str"
    signature = re.sub(dtype, "DTypeLike", signature or "")
    return re.sub(r"<class '(.*?)'>", r"\1", signature) or None, return_annotation


def join_continued_lines(app, what, name, obj, options, lines):
    """Join lines split by a backslash: raw docstrings keep it, numpydoc reads none."""
    joined = re.sub(r"(?<!\\) *\\\n *", " ", "\n".join(lines))
    lines[:] = joined.split("\n")


def setup(app):
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_math_block, None))
    app.connect("autodoc-skip-member", skip_inherited_requests)
    app.connect("autodoc-process-docstring", join_continued_lines, priority=400)
    app.connect("autodoc-process-signature", shorten_signature)
    app.connect("doctree-read", strip_code)
