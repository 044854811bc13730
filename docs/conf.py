"""How Sphinx builds the site: ``make site`` writes it to out/site, without warnings and without the network."""

from __future__ import annotations

import importlib.metadata
import re
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
from docutils import nodes
from fontTools import subset
from math_core import LatexToMathML

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.writers.html5 import HTML5Translator

mpl.use("Agg")
# joblib says so when a process that has run a script is replaced by a fresh one.
warnings.filterwarnings("ignore", message="A worker stopped while some jobs were given")

project = "spectralz"
author = "The spectralz developers"
copyright = author
release = version = importlib.metadata.version("spectralz")

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["_templates", "gallery/*.ipynb", "gallery/*.py"]
templates_path = ["_templates"]
# Blocks without a language are output or formulas.
highlight_language = "none"

# Markdown
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_dmath_allow_digits = False  # what costs $5 is no formula
myst_heading_anchors = 4

# The reference
autosummary_generate = True
autosummary_imported_members = True
toc_object_entries_show_parents = "hide"
autodoc_typehints = "none"
autodoc_member_order = "groupwise"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

# Formulas become MathML while the site is built: no script runs in the browser, and nothing is fetched.
html_math_renderer = "mathml"

# Buttons copy code, without prompts and outputs. What has no language is output, and has no button.
copybutton_selector = "div:not(.highlight-none) > div.highlight > pre"
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

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
    "parallel": True,  # as many scripts at a time as Sphinx has processes (-j)
    "image_srcset": ["2x"],
    "thumbnail_size": (480, 360),
    "min_reported_time": 1e9,
    "write_computation_times": False,
}

# The look
html_theme = "pydata_sphinx_theme"
html_title = "spectralz"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_favicon = "_static/mark.svg"
html_copy_source = False
html_show_sourcelink = False
html_context = {"default_mode": "auto"}  # otherwise the theme logs an error at the first visit
html_sidebars = {"index": []}
html_theme_options = {
    "logo": {"image_light": "_static/mark.svg", "image_dark": "_static/mark.svg", "text": "spectralz", "alt_text": ""},
    "navbar_align": "left",
    "header_links_before_dropdown": 6,
    "show_prev_next": True,
    "secondary_sidebar_items": {"**": ["page-toc"], "index": []},
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


def name_thumbnails(app: Sphinx, name: str, source: list[str]) -> None:
    """Give the small pictures of the gallery the titles of their pages as alternative texts."""
    titled = r'(:alt:)(\s+:doc:`[^`]+`\s+\.\. raw:: html\s+<div class="sphx-glr-thumbnail-title">)([^<]*)'
    source[0] = re.sub(titled, r"\1 \3\2\3", source[0])


def keep_bars(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Let the bars of |A| stand as they are; to Sphinx they would mean a substitution.

    Examples are literal: from the first prompt to the next blank line nothing is escaped.
    """
    is_example = False
    for number, line in enumerate(lines):
        is_example = bool(line.strip()) and (is_example or line.lstrip().startswith(">>>"))
        if not is_example:
            parts = line.split("``")
            parts[::2] = [part.replace("|", r"\|") for part in parts[::2]]
            lines[number] = "``".join(parts)


def visit_math(writer: HTML5Translator, node: nodes.Element) -> None:
    """Write a formula within a line."""
    writer.body.append(LatexToMathML().convert_with_local_state(node.astext(), displaystyle=False))
    raise nodes.SkipNode


def visit_displaymath(writer: HTML5Translator, node: nodes.Element) -> None:
    """Write a formula on lines of its own."""
    formula = LatexToMathML().convert_with_local_state(node.astext(), displaystyle=True)
    writer.body.append(f'<div class="math" tabindex="0">{formula}</div>\n')
    raise nodes.SkipNode


def copy_font(app: Sphinx, problem: Exception | None) -> None:
    """Give the site the letters and signs that formulas need, from the font that comes with ziamath."""
    target = Path(app.outdir, "_static", "math.woff")
    if problem or target.exists():
        return
    options = subset.Options(flavor="woff", layout_features=["*"], notdef_outline=True)
    given = importlib.metadata.distribution("ziamath").locate_file("ziamath/fonts/STIXTwoMath-Regular.ttf")
    font, cut = subset.load_font(str(given), options), subset.Subsetter(options)
    blocks = ((0x20, 0x7F), (0xB0, 0xD8), (0x300, 0x308), (0x391, 0x3D7), (0x2010, 0x2034), (0x2061, 0x2064))
    signs = ((0x2190, 0x21D6), (0x2200, 0x22FF), (0x2308, 0x230C), (0x27E8, 0x27EA), (0x2AAF, 0x2AB1))
    letters = ((0x210E, 0x2114), (0x1D434, 0x1D49C), (0x1D538, 0x1D56C), (0x1D6E2, 0x1D71C))
    cut.populate(unicodes=[code for block in blocks + signs + letters for code in range(*block)])
    cut.subset(font)
    subset.save_font(font, str(target), options)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register what this file adds to Sphinx."""
    app.add_html_math_renderer("mathml", inline_renderers=(visit_math, None), block_renderers=(visit_displaymath, None))
    app.connect("build-finished", copy_font)
    app.connect("autodoc-process-docstring", keep_bars)
    app.connect("source-read", mend_links)
    app.connect("source-read", name_thumbnails)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
