"""What it takes to find an answer again: when it was found, the command, the seed and the versions."""

from __future__ import annotations

import platform
from datetime import UTC, datetime
from html import escape
from importlib.metadata import version
from typing import TYPE_CHECKING

import numpy as np

import spectralz
from spectralz.report.parts import rerun
from spectralz.report.sentences import without_folders

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from spectralz.result import AnyMethod


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
