"""Tables in HTML, with roles for screen readers, numbers to sort by, and a heading at every cell for narrow pages."""

from __future__ import annotations

import math
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


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
        f'<table role="table" class="{kind}"><caption>{escape(caption)}</caption>\n'
        f'<thead role="rowgroup"><tr role="row">{head}</tr></thead>\n'
        f'<tbody role="rowgroup">\n{body}\n</tbody></table></div>'
    )
