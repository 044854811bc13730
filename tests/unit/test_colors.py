"""Colors of drawings: they are seen on white and on the dark page, and what is faint stays faint."""

from __future__ import annotations

import re
from importlib import resources

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spectralz.report.colors import DARK_INK, DARK_PAPER, color_rules, contrast, dark_partner
from spectralz.report.inline import svg_in_page
from spectralz.show import curves, maps, rows

CSS = resources.files("spectralz.report").joinpath("report.css").read_text(encoding="utf-8")
DRAWN = [*curves.COLORS, *rows.COLORS.values(), maps.POSITIVE, maps.NEGATIVE, "#808080", "#000000"]
colors = st.integers(0, 0xFFFFFF).map(lambda number: f"#{number:06x}")


def test_the_dark_page_is_the_one_of_the_style_sheet():
    dark = CSS[CSS.index("prefers-color-scheme: dark") :]
    assert f"--paper: {DARK_PAPER};" in dark
    assert f"--ink: {DARK_INK};" in dark


def test_contrast_is_that_of_wcag():
    assert contrast("#ffffff", "#ffffff") == 1.0
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)  # the well-known gray that just fails
    assert contrast("#ff0000", "#ffffff") == pytest.approx(4.00, abs=0.01)


@pytest.mark.parametrize("color", DRAWN)
def test_lines_are_seen_on_white_and_on_the_dark_page(color):
    assert contrast(color, "#ffffff") >= 3.0
    assert contrast(dark_partner(color.lower()), DARK_PAPER) >= 3.0


@given(colors)
def test_every_color_that_is_not_gray_can_be_read_in_the_dark(color):
    parts = [int(color[i : i + 2], 16) for i in (1, 3, 5)]
    if max(parts) - min(parts) >= 24:
        assert contrast(dark_partner(color), DARK_PAPER) >= 4.5


@given(st.integers(0, 255))
def test_grays_keep_their_order(level):
    gray = f"#{level:02x}" + 2 * f"{level:02x}"
    on_white, in_dark = contrast(gray, "#ffffff"), contrast(dark_partner(gray), DARK_PAPER)
    assert (on_white >= 4.5) <= (in_dark >= 4.5)
    assert (on_white < 1.5) <= (in_dark < 2.5)


def test_rules_name_each_color_once_and_only_those_of_drawings():
    rules = color_rules('<path style="fill: var(--drawn-ffffff)"/> <p>#123456 var(--ink)</p>' * 2)
    assert re.findall(r"(--drawn-\w+): (#\w+);", rules) == [
        ("--drawn-ffffff", "#ffffff"),
        ("--drawn-ffffff", DARK_PAPER),
    ]
    assert color_rules("<p>no drawing</p>") == ""


SVG = """<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"
  width="72pt" height="36pt" viewBox="0 0 72 36"><metadata>who</metadata><defs><style>*{a: b}</style></defs>
<g id="figure_1"><path id="m1" d="M 1.23456 2 \n L 0.001 3" style="stroke: #D55E00"/>
<use xlink:href="#m1" clip-path="url(#c1)" style="fill: url(#h1)"/></g>
<clipPath id="c1"/><pattern id="h1"><rect fill="#ffffff"/></pattern>
<text style="font: bold 10px 'DejaVu Sans', sans-serif; fill: #000000">url(#c1) #D55E00 &lt;b&gt; id="m1"</text>
<text style="font-size: 10px; font-family: 'DejaVu Sans', sans-serif; text-anchor: end">x</text></svg>"""


def test_a_drawing_becomes_part_of_the_page():
    shown = svg_in_page(SVG.encode(), "here", "wide", 'what "it" shows')
    assert shown == (
        '<svg class="wide" role="img" aria-label="what &quot;it&quot; shows" '
        'viewBox="0 0 72 36" width="96" height="48">'
        '<defs /><g><path d="M 1.23 2 L 0 3" id="here-m1" style="stroke: var(--drawn-d55e00)" />'
        '<use href="#here-m1" clip-path="url(#here-c1)" style="fill: url(#here-h1)" /></g>'
        '<clipPath id="here-c1" /><pattern id="here-h1"><rect style="fill: var(--drawn-ffffff)" /></pattern>'
        '<text style="font: bold 10px var(--letters); fill: var(--drawn-000000)">'
        'url(#c1) #D55E00 &lt;b&gt; id="m1"</text>'
        '<text style="font-size: 10px; text-anchor: end">x</text></svg>'
    )
    assert svg_in_page(b"<svg>", "here", "wide", "") is None
