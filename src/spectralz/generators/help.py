"""Descriptions of parameters, from docstrings."""

from __future__ import annotations

import inspect
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


def parameter_help(generator: Callable[..., Any]) -> dict[str, str]:
    """Return the description of each parameter from a generator's docstring, without markup, on one line each.

    Parameters
    ----------
    generator
        Any function with a docstring in numpy's style. Parameters that are described together share a description.

    Returns
    -------
    dict
        A sentence or more for each parameter.

    Examples
    --------
    >>> from spectralz import generators
    >>> parameter_help(generators.curie_weiss)["field"]
    'theta, the same for all spins.'
    """
    words: dict[str, str] = {}
    names: list[str] = []
    for line in _section(inspect.getdoc(generator) or "", "Parameters"):
        if line.strip() and not line.startswith(" "):
            names = [name.strip().lstrip("*") for name in line.split(":")[0].split(",")]
            words.update(dict.fromkeys(names, ""))
        else:
            for name in names:
                words[name] = f"{words[name]} {_plain(line)}".strip()
    return words


def _section(text: str, title: str) -> list[str]:
    """Return the lines between a title with its dashes and the next such title."""
    match = re.search(rf"^{title}\n-+\n(.*?)(?=^\S[^\n]*\n---+$|\Z)", text, flags=re.MULTILINE | re.DOTALL)
    return match[1].splitlines() if match else []


def _plain(line: str) -> str:
    return re.sub(r":\w+:`([^`]*)`|``", r"\1", line).strip()
