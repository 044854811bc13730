"""Drawings of matplotlib as parts of an HTML page: small, in the colors of the page, and with unique names.

Each figure is drawn twice, for wide and for narrow screens, since text that shrinks with its picture cannot be read on
a phone. The style sheet shows the one that fits.
"""

from __future__ import annotations

import base64
import re
import warnings
from contextlib import contextmanager
from html import escape
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from spectralz.report.colors import variable
from spectralz.show.canvas import saved

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matplotlib.figure import Figure

# A drawing of more bytes of SVG than this is shown as pixels, so that the page stays quick.
LARGEST_SVG = 1_500_000
DPI = 144
# matplotlib's families; the page has its own.
FAMILY = re.compile(r"(font:[^;]*?px )[^;]*|font-family:[^;]*;?\s*")
COLOR = re.compile(r"#[0-9a-fA-F]{6}\b")
NUMBER = re.compile(r"-?\d+\.\d+")
REFERENCE = re.compile(r"#([\w.-]+)")
GEOMETRY = ("d", "x", "y", "width", "height", "transform", "points")


@contextmanager
def any_letters() -> Iterator[None]:
    """Draw without warnings about letters that matplotlib's font does not have: the reader's browser may have them."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from", category=UserWarning)
        yield


def figure_html(pictures: list[str], caption: str) -> str:
    """Return a figure of several pictures in HTML; the page shows one of them."""
    return f'<figure class="drawing">{chr(10).join(pictures)}\n<figcaption>{caption}</figcaption></figure>'


def in_page(figure: Figure, name: str, kind: str, alt: str) -> str:
    """Return a drawing as SVG for the page, or as pixels if SVG would be too large.

    Parameters
    ----------
    figure
        The drawing.
    name
        A name that is unique in the page, for the ids in the drawing.
    kind
        ``wide`` or ``narrow``: the screens on which it is shown.
    alt
        A description for readers who cannot see it.
    """
    svg = svg_in_page(_saved(figure, name), name, kind, alt)
    if svg is not None and len(svg) <= LARGEST_SVG:
        return svg
    png = saved(figure, "png", dpi=DPI)
    width, height = (round(96 * inches) for inches in figure.get_size_inches())
    return pixels(png, width, height, kind, alt)


def pixels(png: bytes, width: int, height: int, kind: str, alt: str) -> str:
    """Return a picture of pixels with its data inside."""
    source = f"data:image/png;base64,{base64.b64encode(png).decode()}"
    return f'<img class="{kind}" src="{source}" width="{width}" height="{height}" alt="{escape(alt)}">'


def svg_in_page(svg: bytes, name: str, kind: str, alt: str) -> str | None:
    """Return matplotlib's SVG as an element of an HTML page, or None if it is not XML, as with control characters."""
    try:
        root = ElementTree.fromstring(svg)
    except ElementTree.ParseError:
        return None
    _strip(root)
    _rename(root, name)
    for element in root.iter():
        _dress(element)
    _, _, width, height = (float(number) for number in root.get("viewBox", "0 0 1 1").split())
    attributes = {
        "class": kind,
        "role": "img",
        "aria-label": alt,
        "viewBox": f"0 0 {width:g} {height:g}",
        "width": f"{width / 0.75:.0f}",  # of 72 points to 96 pixels
        "height": f"{height / 0.75:.0f}",
    }
    root.attrib.clear()
    root.attrib.update(attributes)
    return ElementTree.tostring(root, encoding="unicode")


def _saved(figure: Figure, name: str) -> bytes:
    import matplotlib as mpl

    # The salt and the missing date ensure that the same drawing gives the same bytes.
    with mpl.rc_context({"svg.hashsalt": name, "svg.fonttype": "none"}):
        return saved(figure, "svg", metadata={"Date": None})


def _strip(root: ElementTree.Element) -> None:
    """Remove namespaces, which HTML does not need, and metadata."""
    for element in root.iter():
        element.tag = _local(element.tag)
        for key in list(element.attrib):
            element.attrib[_local(key)] = element.attrib.pop(key)
        if element.tag not in ("text", "tspan"):
            element.text = None
        element.tail = None
    for parent in list(root.iter()):
        for child in list(parent):
            # matplotlib's style is meant for its whole document; the page has it in its own style sheet
            if child.tag in ("metadata", "title", "style"):
                parent.remove(child)


def _local(name: str) -> str:
    return name.rpartition("}")[2]


def _rename(root: ElementTree.Element, name: str) -> None:
    """Prefix each id that is referred to with the drawing's name, and drop the others."""
    wanted = {match for element in root.iter() for match in _references(element)}
    for element in root.iter():
        identity = element.attrib.pop("id", None)
        if identity in wanted:
            element.set("id", f"{name}-{identity}")
        for key, value in element.attrib.items():
            if _refers(key, value):
                element.set(key, REFERENCE.sub(rf"#{name}-\1", value, count=1))
        style = element.get("style", "")
        element.set("style", re.sub(r"url\(#([\w.-]+)\)", rf"url(#{name}-\1)", style))


def _refers(key: str, value: str) -> bool:
    return (key == "href" and value.startswith("#")) or (key != "style" and value.startswith("url(#"))


def _references(element: ElementTree.Element) -> Iterator[str]:
    for key, value in element.attrib.items():
        if _refers(key, value):
            yield REFERENCE.findall(value)[0]
        if key == "style":
            yield from re.findall(r"url\(#([\w.-]+)\)", value)


def _dress(element: ElementTree.Element) -> None:
    """Give an element the page's colors and fonts, and no more digits than are visible."""
    style = FAMILY.sub(lambda match: f"{match[1]}var(--letters)" if match[1] else "", element.attrib.pop("style", ""))
    for key in ("fill", "stroke"):  # of patterns, which matplotlib colors by attributes
        color = element.attrib.pop(key, "")
        if color:
            style = f"{key}: {color}; {style}"
    style = COLOR.sub(lambda match: variable(match[0]), style).strip().rstrip(";")
    if style:
        element.set("style", style)
    if element.get("transform", "").startswith(("rotate(-0 ", "rotate(0 ")):
        del element.attrib["transform"]
    for key in GEOMETRY:
        if key in element.attrib:
            text = NUMBER.sub(lambda match: f"{float(match[0]):.2f}".rstrip("0").rstrip("."), element.attrib[key])
            element.set(key, " ".join(text.split()))
