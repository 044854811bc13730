"""Shared parts of pages: details that open on a click, terms with their text, and options as code."""

from __future__ import annotations

import json
from html import escape
from typing import TYPE_CHECKING, Any

from spectralz.report.sentences import without_folders

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


def details(summary: str, content: str) -> str:
    """Return HTML content that opens on a click on its summary, a plain text."""
    return f"<details><summary>{escape(summary)}</summary>\n{content}\n</details>"


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


def options_in_code(options: Mapping[str, Any]) -> str:
    """Return options as a list of ``name = value``.

    Examples
    --------
    >>> options_in_code({"max_iter": 200, "damping": None})
    '<code>max_iter = 200</code>, <code>damping = null</code>'
    """
    shown = (f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in options.items())
    return ", ".join(f"<code>{escape(without_folders(option))}</code>" for option in shown) or "none"
