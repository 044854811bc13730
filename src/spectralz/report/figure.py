"""What a figure of the paper is: a sweep at its full and at its quick setting, what the paper claims, and a drawing."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from matplotlib.axes import Axes

    from spectralz.sweeps import Row, Sweep

__all__ = ["Claim", "Figure"]


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A claim of the paper, to be compared with rows.

    Attributes
    ----------
    sentence
        What the paper claims, in our words, and the section where it does.
    check
        Takes the rows, returns what we measured, as a sentence, and whether the claim holds.
    """

    sentence: str
    check: Callable[[Sequence[Row]], tuple[str, bool]]


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One figure.

    Attributes
    ----------
    name
        What the command line calls it, such as ``fig3a``.
    title
        Its caption.
    full, quick
        The sweep as in the paper, and one of minutes.
    draw
        Draws the rows; it reads and never computes.
    claims
        What the paper claims of it.
    notes
        Choices that the paper does not print.
    files_title, files_notes
        Title and notes where the models are files of the user's; empty if they are the same.
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
        """Return the figure as it is called where its models are files of the user's."""
        return replace(self, title=self.files_title or self.title, notes=self.files_notes or self.notes)
