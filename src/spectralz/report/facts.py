"""The configuration of a sweep as terms and their texts."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from spectralz.report.sentences import setting_in_words

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from spectralz.report.entries import Entry

_CONVENTIONS = {
    "text": "an edge counted once weighs 2 A_ij",
    "code": "an edge counted once weighs A_ij",
}
# The origin of each convention, shown only for the paper's figures.
_ORIGINS = {"text": "as the paper prints it", "code": "as in the authors' published code"}


def facts(entry: Entry) -> list[tuple[str, str]]:
    """Return each term with its text, which is empty if nothing is known."""
    sweep = entry.sweep
    known = [("Setting", setting_in_words(entry)), ("Models", _models(entry))]
    if not entry.files:
        repeats, seed = int(sweep.get("repeats", 1)), int(sweep.get("seed", 0))
        convention = str(sweep.get("edge_convention", ""))
        known += [
            (f"Values of {entry.axis}", ", ".join(f"{x:g}" for x in _distinct(row.x for row in entry.rows))),
            ("Models per value", str(repeats) if sweep else ""),
            ("Seeds", _span([seed, seed + repeats - 1]) if sweep else ""),
            ("Edge convention", _convention(convention, entry.figure is not None)),
        ]
    return [
        *known,
        ("Spins", _span(_distinct(row.n for row in entry.rows))),
        ("Edges", _span(_distinct(row.edges for row in entry.rows))),
        ("Computing time", f"{math.fsum(row.seconds or 0.0 for row in entry.rows):.3g} s in all"),
        ("Most memory", _memory(entry)),
        ("Versions", "; ".join(dict.fromkeys(row.versions for row in entry.rows if row.versions))),
        ("Notes", entry.notes),
    ]


def _convention(word: str, is_paper: bool) -> str:
    if word not in _CONVENTIONS:
        return word
    return f"{_ORIGINS[word]}: {_CONVENTIONS[word]}" if is_paper else _CONVENTIONS[word]


def _models(entry: Entry) -> str:
    """Return the files, or the generator with its parameters and those of each single instance."""
    if entry.files:
        return ", ".join(entry.files)
    own = [_in_words(parameters) for parameters in entry.sweep.get("instances", ())]
    parts = [_in_words(entry.sweep.get("parameters", {})), *(f"{place}: {text}" for place, text in enumerate(own, 1))]
    return f"{entry.sweep.get('generator', 'unknown')} ({'; '.join(filter(None, parts))})".replace(" ()", "")


def _in_words(parameters: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in parameters.items())


def _distinct(values: Iterable[float | None]) -> list[float]:
    return sorted({value for value in values if value is not None})


def _span(values: Sequence[float]) -> str:
    if not values:
        return ""
    return f"{values[0]:g}" if values[0] == values[-1] else f"{values[0]:g} to {values[-1]:g}"


def _memory(entry: Entry) -> str:
    peaks = [row.peak_mib for row in entry.rows if row.peak_mib is not None]
    return f"{max(peaks):.0f} MiB in a worker" if peaks else ""
