"""Write the report: one page that shows every sweep of a folder, needs no network, and can be passed on.

A page is made in three steps: read the folder into entries, draw and judge each of them, and put them into HTML.
Nothing is computed again, and nothing is written before everything is ready.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from spectralz.errors import FormatError
from spectralz.io.files import write_whole
from spectralz.report.entries import read_folder
from spectralz.report.html import render_page
from spectralz.report.section import Section
from spectralz.report.sentences import message_of
from spectralz.sweeps.store import ROWS, SWEEP

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from spectralz.report.figure import Figure

PAGE = "report.html"


def write_report(folder: Path, figures: Mapping[str, Figure] = MappingProxyType({})) -> Path:
    """Write ``report.html`` into a folder of sweeps, with the picture and table of each sweep beside it.

    Parameters
    ----------
    folder
        It holds one subfolder for each figure or sweep, with ``rows.csv`` and ``sweep.json``, as written by the runner.
    figures
        Figures with their own titles, drawings and claims, by the name of their subfolder; anything else is shown as a
        sweep. Those of the paper are ``spectralz.paper.FIGURES``.

    Returns
    -------
    Path
        The page. Beside it are ``NAME.png``, ``NAME.svg`` and ``NAME.csv`` of every sweep that has rows.

    Raises
    ------
    FormatError
        If there is no such folder, if it holds no rows, or if a file in it cannot be read.
    """
    entries = read_folder(folder, figures)
    try:
        sections = [Section.of(entry) for entry in entries]
        page = render_page(sections).encode()
    except (AttributeError, LookupError, OverflowError, TypeError, ValueError) as error:
        raise FormatError(
            f"a {SWEEP} or {ROWS} in it does not hold what a runner writes ({message_of(error)}); "
            "remove that sweep's folder and run it again",
            folder,
        ) from error
    for section in sections:
        section.write_beside(folder)
    write_whole(folder / PAGE, page)
    return folder / PAGE
