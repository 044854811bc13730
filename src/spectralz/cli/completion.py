"""What the Tab key offers: names of methods, their options, formats and figures. The shell completes files itself."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import typer

import spectralz as sz
from spectralz.cli.helping import first_line
from spectralz.io import FORMATS

READABLE = tuple(known.name for known in FORMATS)
WRITABLE = tuple(known.name for known in FORMATS if known.write is not None)


def methods(incomplete: str) -> list[tuple[str, str]]:
    """Offer the names of methods, with what they do."""
    offered = {name: first_line(method) for name, method in sz.METHODS.items()}
    offered |= {label: f"{setting.name} as in the paper" for label, setting in sz.PAPER_SETTINGS.items()}
    return [(name, what) for name, what in offered.items() if name.startswith(incomplete)]


def list_of_methods(incomplete: str) -> list[str]:
    """Offer one more name after the last comma."""
    return _one_more(incomplete, [*sz.METHODS, *sz.PAPER_SETTINGS])


def settings(ctx: typer.Context, incomplete: str) -> list[str]:
    """Offer the options of the method named before, or of ``auto``."""
    known: Any = sz.METHODS.get(ctx.params.get("method") or "auto")
    names = [] if known is None else [f"{name}=" for name in vars(known())]
    return [name for name in names if name.startswith(incomplete)]


def formats(incomplete: str) -> list[str]:
    """Offer the formats that can be read."""
    return [name for name in READABLE if name.startswith(incomplete)]


def formats_to_write(incomplete: str) -> list[str]:
    """Offer the formats that can be written."""
    return [name for name in WRITABLE if name.startswith(incomplete)]


def figures(incomplete: str) -> list[str]:
    """Offer the figures of the paper."""
    from spectralz.paper import FIGURES

    return [name for name in (*FIGURES, "all") if name.startswith(incomplete)]


def _one_more(incomplete: str, known: Iterable[str]) -> list[str]:
    """Offer the names that a comma-separated list does not have yet.

    Examples
    --------
    >>> _one_more("exact,b", ["exact", "bp", "mbe"])
    ['exact,bp']
    """
    before, comma, begun = incomplete.rpartition(",")
    taken = before.split(",")
    return [f"{before}{comma}{name}" for name in known if name.startswith(begun) and name not in taken]
