"""The details of an answer as a table that can be read: numbers, words and short lists; what is deeper is left out."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

from spectralz.report.parts import Cell, details, render_table
from spectralz.report.sentences import without_folders
from spectralz.result import plain

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

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
