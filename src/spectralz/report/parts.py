"""Shared parts of pages: details that open on a click, terms with their text, options as code, and tables.

Tables have roles for screen readers, numbers to sort by, and a heading at every cell for narrow pages.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

from spectralz.report.sentences import without_folders

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


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
