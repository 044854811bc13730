"""The shell of every page: its head, style and script, so that a page is one file and loads nothing."""

from __future__ import annotations

from html import escape
from importlib import resources
from typing import TYPE_CHECKING

import spectralz

if TYPE_CHECKING:
    from collections.abc import Iterable


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
