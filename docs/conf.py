"""How Sphinx builds the site: ``make site`` writes it to out/site, without warnings and without the network."""

from __future__ import annotations

import importlib.metadata
import re
from typing import TYPE_CHECKING, Any

import matplotlib as mpl

if TYPE_CHECKING:
    from sphinx.application import Sphinx

mpl.use("Agg")

project = "spectralz"
author = "The spectralz developers"
copyright = author
release = version = importlib.metadata.version("spectralz")

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["_templates", "gallery/*.ipynb", "gallery/*.py"]
templates_path = ["_templates"]
# Blocks without a language are output or formulas.
highlight_language = "none"

# Markdown
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4

# The reference
autosummary_generate = True
autosummary_imported_members = True
autodoc_typehints = "none"
autodoc_member_order = "groupwise"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

# The gallery
sphinx_gallery_conf = {
    "examples_dirs": "../examples/gallery",
    "gallery_dirs": "gallery",
    "filename_pattern": r"\.py$",
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_signature": False,
    "abort_on_example_error": True,
    "plot_gallery": "True",
    "min_reported_time": 1e9,
    "write_computation_times": False,
}

# The look
html_theme = "pydata_sphinx_theme"
html_title = "spectralz"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_context = {"default_mode": "auto"}  # otherwise the theme logs an error at the first visit
html_sidebars = {"index": [], "get-started": []}
html_theme_options = {
    "logo": {"text": "spectralz"},
    "navbar_align": "left",
    "header_links_before_dropdown": 6,
    "show_prev_next": True,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": ["theme-version"],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
    "back_to_top_button": False,
}


def mend_links(app: Sphinx, name: str, source: list[str]) -> None:
    """Give links that lead somewhere in the repository a place on the site.

    Scripts of the gallery have pages here. Other files of the repository have none: of those links the words are left.
    """
    to_root = "../" * name.count("/")
    text = re.sub(r"\]\((?:\.\./)+examples/gallery/([\w-]+)\.py\)", rf"]({to_root}gallery/\1.rst)", source[0])
    text = re.sub(r"\]\((?:\.\./)+examples/gallery/?\)", f"]({to_root}gallery/index.rst)", text)
    source[0] = re.sub(r"\[([^]]+)\]\(\.\./(?!examples/)[\w./-]+\)", r"\1", text) if "/" not in name else text


def keep_bars(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Let the bars of |A| stand as they are; to Sphinx they would mean a substitution."""
    for number, line in enumerate(lines):
        if not line.lstrip().startswith((">>>", "...")):
            parts = line.split("``")
            parts[::2] = [part.replace("|", r"\|") for part in parts[::2]]
            lines[number] = "``".join(parts)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register what this file adds to Sphinx."""
    app.connect("autodoc-process-docstring", keep_bars)
    app.connect("source-read", mend_links)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
