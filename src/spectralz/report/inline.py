"""Drawings of matplotlib as parts of an HTML page: pictures on a white card, with their data in the page."""

from __future__ import annotations

import base64
import warnings
from contextlib import contextmanager
from html import escape
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from spectralz.show.canvas import saved

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matplotlib.figure import Figure

# A drawing of more bytes of SVG than this is shown as pixels, so that the page stays quick.
LARGEST_SVG = 1_500_000
DPI = 144


@contextmanager
def any_letters() -> Iterator[None]:
    """Draw without warnings about letters that matplotlib's font does not have: the reader's browser may have them."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from", category=UserWarning)
        yield


def figure_html(card: str, caption: str) -> str:
    """Return a figure in HTML."""
    return f'<figure class="drawing">{card}\n<figcaption>{caption}</figcaption></figure>'


def in_page(figure: Figure, alt: str) -> str:
    """Return the card of a drawing, as SVG, or as pixels if SVG would be too large; it scrolls on narrow screens.

    Parameters
    ----------
    figure
        The drawing.
    alt
        A description for readers who cannot see it.
    """
    kind, data = "svg+xml", _saved_svg(figure, alt)
    if len(data) > LARGEST_SVG or not _is_xml(data):
        kind, data = "png", saved(figure, "png", dpi=DPI)
    width, height = (round(96 * inches) for inches in figure.get_size_inches())
    source = f"data:image/{kind};base64,{base64.b64encode(data).decode()}"
    image = f'<img src="{source}" width="{width}" height="{height}" alt="{escape(alt)}">'
    return f'<div class="card" role="region" tabindex="0" aria-label="drawing">{image}</div>'


def _saved_svg(figure: Figure, salt: str) -> bytes:
    import matplotlib as mpl

    # The salt and the missing date ensure that the same drawing gives the same bytes.
    with mpl.rc_context({"svg.hashsalt": salt, "svg.fonttype": "none"}):
        return saved(figure, "svg", metadata={"Date": None})


def _is_xml(svg: bytes) -> bool:
    """Return whether a browser can read it: control characters in a name are not XML."""
    try:
        ElementTree.fromstring(svg)
    except ElementTree.ParseError:
        return False
    return True
