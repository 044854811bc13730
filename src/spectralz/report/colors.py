"""Colors of figures on a dark page: each color of a drawing on white gets a partner that is visible on black.

The drawing names its colors by CSS variables, and the page defines them for light and dark. So a figure is in the page
only once, and is printed light.
"""

from __future__ import annotations

import re

# Ink and paper of the dark page, as in report.css.
DARK_INK, DARK_PAPER = "#e6e9ed", "#14181d"
# The contrast that WCAG 2 requires of text; for lines 3 would be enough.
LEAST_CONTRAST = 4.5
# Colors whose components differ by less are grays.
GRAY = 24
STEPS = 20
NAME = "--drawn-"


def variable(color: str) -> str:
    """Return the CSS variable that stands for a color.

    Examples
    --------
    >>> variable("#D55E00")
    'var(--drawn-d55e00)'
    """
    return f"var({NAME}{color.lower().lstrip('#')})"


def color_rules(html: str) -> str:
    """Return the CSS that defines the variables of all drawings in a page, for light, dark and paper.

    Examples
    --------
    >>> print(color_rules('<path style="stroke: var(--drawn-000000)"/>'))
    :root { --drawn-000000: #000000; }
    @media screen and (prefers-color-scheme: dark) { :root { --drawn-000000: #e6e9ed; } }
    """
    colors = sorted({f"#{digits}" for digits in re.findall(rf"var\({NAME}([0-9a-f]{{6}})\)", html)})
    if not colors:
        return ""
    light = " ".join(f"{NAME}{color[1:]}: {color};" for color in colors)
    dark = " ".join(f"{NAME}{color[1:]}: {dark_partner(color)};" for color in colors)
    return f":root {{ {light} }}\n@media screen and (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}"


def dark_partner(color: str) -> str:
    """Return the color for the dark page that corresponds to this one on white.

    Grays run from the dark page's ink to its paper, so that faint grays stay faint; other colors become lighter until
    they can be read.

    Examples
    --------
    >>> dark_partner("#ffffff"), dark_partner("#000000"), dark_partner("#d55e00")
    ('#14181d', '#e6e9ed', '#d55e00')
    """
    parts = _parts(color)
    if max(parts) - min(parts) < GRAY:
        return _mixed(_parts(DARK_INK), _parts(DARK_PAPER), sum(parts) / 765.0)
    lighter = (_mixed(parts, (255, 255, 255), step / STEPS) for step in range(STEPS + 1))
    return next(one for one in lighter if contrast(one, DARK_PAPER) >= LEAST_CONTRAST)


def contrast(first: str, second: str) -> float:
    """Return the contrast of two colors as defined in WCAG 2, from 1 to 21.

    Examples
    --------
    >>> round(contrast("#000000", "#ffffff"), 9)
    21.0
    """
    dark, light = sorted((_luminance(first), _luminance(second)))
    return (light + 0.05) / (dark + 0.05)


def _parts(color: str) -> tuple[int, int, int]:
    return int(color[1:3], 16), int(color[3:5], 16), int(color[5:7], 16)


def _mixed(start: tuple[int, int, int], end: tuple[int, int, int], share: float) -> str:
    parts = (round(a + share * (b - a)) for a, b in zip(start, end, strict=True))
    return "#" + "".join(f"{part:02x}" for part in parts)


def _luminance(color: str) -> float:
    shares = (part / 255.0 for part in _parts(color))
    red, green, blue = (s / 12.92 if s <= 0.04045 else ((s + 0.055) / 1.055) ** 2.4 for s in shares)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
