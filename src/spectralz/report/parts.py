"""Parts of pages: the shell, tables, facts, drawings of matplotlib, findings, and how a page came about."""

from __future__ import annotations

import base64
import json
import math
import platform
import warnings
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape
from importlib import resources
from importlib.metadata import version
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import numpy as np

import spectralz
from spectralz.report.entries import without_folders
from spectralz.result import plain
from spectralz.show.canvas import saved

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from matplotlib.figure import Figure

    from spectralz.result import AnyMethod


def details(summary: str, content: str) -> str:
    """Return HTML content that opens on a click on its summary, a plain text."""
    return f"<details><summary>{escape(summary)}</summary>\n{content}\n</details>"


def section(anchor: str, heading: str, *parts: str) -> str:
    """Return a section with its heading; empty parts are left out."""
    content = "\n".join(filter(None, parts))
    return f'<section aria-labelledby="{anchor}">\n<h2 id="{anchor}">{escape(heading)}</h2>\n{content}\n</section>'


def terms(facts: Iterable[tuple[str, str]]) -> str:
    """Return terms with their texts; terms without text are left out.

    Examples
    --------
    >>> print(terms([("Time", "2 s"), ("Notes", "")]))
    <dl>
    <div><dt>Time</dt><dd>2 s</dd></div>
    </dl>
    """
    lines = (
        f"<div><dt>{escape(term)}</dt><dd>{escape(without_folders(text))}</dd></div>" for term, text in facts if text
    )
    return "<dl>\n" + "\n".join(lines) + "\n</dl>"


def rerun(sentence: str, label: str, command: str) -> str:
    """Return a command to run something again, below a sentence; sentence and command are HTML, the label is text."""
    return (
        f'<div class="rerun"><p>{sentence}</p>\n'
        f'<pre tabindex="0" role="region" aria-label="{escape(label)}"><code>{command}</code></pre></div>'
    )


def options_in_code(options: Mapping[str, Any]) -> str:
    """Return options as a list of ``name = value``.

    Examples
    --------
    >>> options_in_code({"max_iter": 200, "damping": None})
    '<code>max_iter = 200</code>, <code>damping = null</code>'
    """
    shown = (f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in options.items())
    return ", ".join(f"<code>{escape(without_folders(option))}</code>" for option in shown) or "none"


@dataclass(frozen=True)
class Cell:
    """A cell's HTML, and the number to sort it by."""

    html: str
    value: float | None = None

    def render(self, heading: str) -> str:
        """Return the cell, which repeats its column's heading for narrow pages."""
        value = "" if self.value is None or math.isnan(self.value) else repr(self.value)
        attributes = f' class="number" data-value="{value}"' if self.value is not None else ""
        return f'<td role="cell"{attributes} data-heading="{escape(heading)}">{self.html}</td>'


def render_table(caption: str, headings: Sequence[str], rows: Sequence[Sequence[Cell]], kind: str) -> str:
    """Return a table in its own container, which scrolls if the page is too narrow."""
    is_number = [bool(rows) and rows[0][i].value is not None for i in range(len(headings))]
    head = "".join(
        f'<th role="columnheader" scope="col"{" class=number" * number}>{escape(text)}</th>'
        for text, number in zip(headings, is_number, strict=True)
    )
    body = "\n".join(
        '<tr role="row">' + "".join(cell.render(text) for cell, text in zip(row, headings, strict=True)) + "</tr>"
        for row in rows
    )
    return (
        f'<div class="scroll {kind}" role="region" tabindex="0" aria-label="{escape(caption)}">\n'
        f'<table role="table" class="{kind}" style="--columns: {len(headings)}"><caption>{escape(caption)}</caption>\n'
        f'<thead role="rowgroup"><tr role="row">{head}</tr></thead>\n'
        f'<tbody role="rowgroup">\n{body}\n</tbody></table></div>'
    )


def render_shell(title: str, parts: Iterable[str]) -> str:
    """Return a whole page.

    Parameters
    ----------
    title
        The title, as text.
    parts
        The parts of the page as HTML; empty ones are left out.

    Examples
    --------
    >>> page = render_shell("1 < 2", ["<p>so it is</p>"])
    >>> "<title>1 &lt; 2</title>" in page, "http" in page.replace("http-equiv", "")
    (True, False)
    """
    body = "\n".join(part for part in parts if part)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy"
  content="default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'unsafe-inline'">
<title>{escape(title)}</title>
<link rel="icon" href="data:,">
<style>
{_resource("report.css")}</style>
</head>
<body>
<main>
{body}
</main>
<footer><p>Written by spectralz {escape(spectralz.__version__)}. This page needs no network.</p></footer>
<script>
{_resource("report.js")}</script>
</body>
</html>
"""


def _resource(name: str) -> str:
    return resources.files("spectralz.report").joinpath(name).read_text(encoding="utf-8")


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


# Lists that are longer are described by their range.
MOST_LISTED = 8


def findings(given: Mapping[str, Any], status: str = "") -> str:
    """Return the details as a table that opens on a click; nothing if there is none to show.

    Parameters
    ----------
    given
        The details of an estimate.
    status
        A sentence that the page already has, which is not repeated.
    """
    shown = [(name, text) for name, text in rows_of(plain(given)) if text != status]
    cells = [[Cell(f"<code>{escape(name)}</code>"), Cell(escape(without_folders(text)))] for name, text in shown]
    return details("Details", render_table("Details", ["name", "value"], cells, "findings")) if cells else ""


def rows_of(given: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield each detail with its value in words; those of a mapping follow its name, and what is None is left out.

    Examples
    --------
    >>> for row in rows_of({"width": 4, "is_forest": False, "seconds": {"factors": 0.0189175}, "left": None}):
    ...     print(*row, sep=": ")
    width: 4
    is_forest: no
    seconds, factors: 0.0189175
    >>> for row in rows_of({"phases": [1.0], "order": [3, *range(20)], "parts": [{"gap": 0.5}, {"gap": 0.25}]}):
    ...     print(*row, sep=": ")
    phases: 1
    order: 21 numbers from 0 to 19
    parts 1, gap: 0.5
    parts 2, gap: 0.25
    """
    for name, value in given.items():
        if isinstance(value, dict):
            yield from ((f"{name}, {inner}", text) for inner, text in rows_of(value))
        elif isinstance(value, list) and value and all(isinstance(item, dict) for item in value):
            for place, item in enumerate(value, start=1):
                yield from ((f"{name} {place}, {inner}", text) for inner, text in rows_of(item))
        elif text := _in_words(value):
            yield name, text


def _in_words(value: Any) -> str:
    if isinstance(value, list):
        return _listed(value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _listed(values: list[Any]) -> str:
    """Return a short list as it is, and the range of a long one; a list of lists has no words here."""
    if any(isinstance(value, list | dict | None) for value in values):
        return ""
    if len(values) <= MOST_LISTED:
        return ", ".join(map(_in_words, values))
    if any(isinstance(value, str) for value in values):
        return f"{len(values)} values"
    return f"{len(values)} numbers from {_in_words(min(values))} to {_in_words(max(values))}"


def facts(methods: Mapping[str, AnyMethod]) -> list[tuple[str, str]]:
    """Return the date, the seed and the versions, each with its term.

    Parameters
    ----------
    methods
        The methods that ran, by the names under which the page shows them.

    Examples
    --------
    >>> import spectralz as sz
    >>> [term for term, _ in facts({"mf": sz.MeanField()})]
    ['Date', 'Seed', 'Versions']
    """
    return [
        ("Date", f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC"),
        ("Seed", seeds_in_words(methods)),
        ("Versions", _versions()),
    ]


def seeds_in_words(methods: Mapping[str, AnyMethod]) -> str:
    """Return the seed, or the seed of each method if they differ.

    Examples
    --------
    >>> import spectralz as sz
    >>> seeds_in_words({"mf": sz.MeanField(seed=3), "bp": sz.BeliefPropagation()})
    '3'
    >>> seeds_in_words({"mf": sz.MeanField(seed=3), "ep": sz.ExpectationPropagation(seed=4)})
    'mf 3, ep 4'
    >>> seeds_in_words({"bp": sz.BeliefPropagation()})
    'none: bp has no such option'
    """
    seeds = {name: vars(method)["seed"] for name, method in methods.items() if "seed" in vars(method)}
    if not seeds:
        return f"none: {' and '.join(methods)} {'has' if len(methods) == 1 else 'have'} no such option"
    if len(set(seeds.values())) == 1:
        return str(next(iter(seeds.values())))
    return ", ".join(f"{name} {seed}" for name, seed in seeds.items())


def how_to_rerun(command: str, methods: Iterable[AnyMethod]) -> str:
    """Return the command, if there is one, and whether it gives the same digits, as HTML."""
    is_timed = any("budget" in vars(method) and vars(method).get("work") is None for method in methods)
    note = (
        "The budget is in seconds, so another run may give slightly different numbers. With a budget of operations "
        "(<code>work</code>) every run gives the same answer."
    )
    shown = rerun("To run it again:", "command", escape(without_folders(command))) if command else ""
    return f"{shown}\n<p>{note}</p>" if is_timed else shown


def _versions() -> str:
    found = {
        "spectralz": spectralz.__version__,
        "numpy": np.__version__,
        "numba": version("numba"),
        "Python": platform.python_version(),
    }
    return ", ".join(f"{name} {number}" for name, number in found.items())
