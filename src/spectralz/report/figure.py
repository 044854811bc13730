"""A figure of the paper: a sweep at its full and its quick setting, the claims of the paper, and a drawing."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from matplotlib.axes import Axes

    from spectralz.sweeps import Row, Sweep


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A claim of the paper, to be compared with rows.

    Attributes
    ----------
    sentence
        What the paper claims, in our words, and in which section.
    check
        A function of the rows that returns what we measured, as a sentence, and whether the claim holds.
    """

    sentence: str
    check: Callable[[Sequence[Row]], tuple[str, bool]]


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One figure of the paper.

    Attributes
    ----------
    name
        Its name on the command line, such as ``fig3a``.
    title
        Its caption.
    full, quick
        The sweep as in the paper, and one that takes minutes.
    draw
        Draws the rows; it reads and never computes.
    claims
        What the paper claims about it.
    notes
        Choices that the paper does not print.
    files_title, files_notes
        Title and notes if the models are the user's files; empty if they are the same.
    """

    name: str
    title: str
    full: Sweep
    quick: Sweep
    draw: Callable[[Sequence[Row], Axes], None]
    claims: tuple[Claim, ...] = ()
    notes: str = ""
    files_title: str = ""
    files_notes: str = ""

    def of_files(self) -> Figure:
        """Return the figure with the title and notes for the user's files."""
        return replace(self, title=self.files_title or self.title, notes=self.files_notes or self.notes)
