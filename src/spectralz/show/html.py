"""Results as HTML for notebooks: the tables of the command line, self-contained, for light and dark pages."""

from __future__ import annotations

from dataclasses import replace
from html import escape
from typing import TYPE_CHECKING

from spectralz.result import Verdict
from spectralz.show import fits, tables, text, thermodynamics

if TYPE_CHECKING:
    from spectralz.model import Model
    from spectralz.result import Bounds, Comparison, Count, Description, Estimate, Fit, Marginals, Temperature
    from spectralz.show.tables import Table

# The only color is one that is visible on white and on black: notebooks are light or dark.
TABLE = "border-collapse:collapse;margin:0.4em 0;font-variant-numeric:tabular-nums"
CELL = "text-align:left;vertical-align:top;padding:0.15em 1em 0.15em 0"
HEADING = f"{CELL};border-bottom:1px solid rgba(128,128,128,0.5)"
ROWS = {
    Verdict.CHOSEN: "font-weight:bold",
    Verdict.DISAGREES: "color:#c77700",
    Verdict.NOT_RUN: "opacity:0.6",
}


def estimate(result: Estimate) -> str:
    """Return an answer as a table, and below it the answer of each method that was tried.

    Examples
    --------
    >>> import spectralz as sz
    >>> page = estimate(sz.log_z(sz.generators.grid(side=3, strength=1.0, seed=0)))
    >>> page[:5], "<td" in page, "script" in page
    ('<div>', True, False)
    """
    answer = tables.estimate(result)
    stopped = [("interrupted", "yes; this is the best answer so far")] if result.interrupted else []
    tried = [_table(tables.tried(result.tried))] if result.tried else []
    return _block(_table(replace(answer, rows=(*answer.rows[:3], *stopped, *answer.rows[3:]))), *tried)


def bounds(result: Bounds) -> str:
    """Return a bracket in words, and below it what each method proved."""
    first, *rest = text.bounds(result).splitlines()
    lines = "<br>".join([f"<b>{escape(first)}</b>", *map(escape, rest)])
    return _block(f"<div>{lines}</div>", _table(tables.bounds(result)))


def comparison(result: Comparison) -> str:
    """Return a comparison as a table, one row per method."""
    return block_of(tables.comparison(result))


def marginals(result: Marginals) -> str:
    """Return the range of the means, and the spins at its ends, as a table."""
    return block_of(tables.marginals(result))


def count(result: Count) -> str:
    """Return a count in words."""
    first, *rest = text.count(result).splitlines()
    return _block("<br>".join([f'<b style="overflow-wrap:anywhere">{escape(first)}</b>', *map(escape, rest)]))


def description(result: Description) -> str:
    """Return the description of a model as a table."""
    return block_of(tables.description(result))


def temperature(result: Temperature) -> str:
    """Return the temperature of samples as a table."""
    return block_of(thermodynamics.temperature_table(result))


def fit(result: Fit) -> str:
    """Return a fit as a table."""
    return block_of(fits.table(result))


def model(result: Model) -> str:
    """Return the size of a model and of its couplings and fields as a table."""
    return block_of(tables.model(result))


def block_of(*tables: Table) -> str:
    """Return tables below each other."""
    return _block(*map(_table, tables))


def _block(*parts: str) -> str:
    return f"<div>{''.join(parts)}</div>"


def _table(table: Table) -> str:
    head = "".join(f'<th style="{HEADING}">{escape(heading)}</th>' for heading in table.headings)
    verdicts = table.verdicts or (None,) * len(table.rows)
    rows = (
        _row(cells, "" if verdict is None else ROWS.get(verdict, ""), is_named=not head)
        for cells, verdict in zip(table.rows, verdicts, strict=True)
    )
    thead = f"<thead><tr>{head}</tr></thead>" if head else ""
    return f'<table style="{TABLE}">{thead}<tbody>{"".join(rows)}</tbody></table>'


def _row(cells: tuple[str, ...], style: str, *, is_named: bool) -> str:
    first = "th" if is_named else "td"
    tags = [first, *["td"] * (len(cells) - 1)]
    inner = "".join(f'<{tag} style="{CELL}">{escape(cell)}</{tag}>' for tag, cell in zip(tags, cells, strict=True))
    return f'<tr style="{style}">{inner}</tr>' if style else f"<tr>{inner}</tr>"
