"""A section of the report: an entry, its claims compared with rows, its drawing, and its files beside the page."""

from __future__ import annotations

import math
from dataclasses import astuple, dataclass, fields
from typing import TYPE_CHECKING

from spectralz.io.files import write_whole
from spectralz.report.picture import Picture, draw
from spectralz.report.sentences import finding, message_of
from spectralz.sweeps import Summary
from spectralz.sweeps.rows import csv_line

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from spectralz.report.entries import Entry


@dataclass(frozen=True)
class Verdict:
    """A claim of the paper, what we measured, and whether it holds; None if it could not be checked."""

    sentence: str
    measurement: str
    holds: bool | None

    @property
    def word(self) -> str:
        """The verdict as a badge."""
        return {True: "holds", False: "does not hold", None: "not checked"}[self.holds]


def judge(entry: Entry) -> list[Verdict]:
    """Check each claim of an entry's figure; a check that fails is a verdict too."""
    if entry.figure is None or not entry.rows:
        return []
    verdicts = []
    for claim in entry.figure.claims:
        try:
            measurement, holds = claim.check(entry.rows)
            verdicts.append(Verdict(claim.sentence, measurement, bool(holds)))
        except Exception as error:
            verdicts.append(Verdict(claim.sentence, f"These rows do not say: {message_of(error)}", None))
    return verdicts


@dataclass(frozen=True)
class Section:
    """An entry, judged and drawn; ``picture`` is a message if the drawing failed."""

    entry: Entry
    verdicts: list[Verdict]
    picture: Picture | str

    @classmethod
    def of(cls, entry: Entry) -> Section:
        """Judge and draw an entry."""
        verdicts = judge(entry)
        alt = f"{entry.title}. {finding(entry, verdicts)} The numbers are in the table below."
        return cls(entry, verdicts, draw(entry, alt))

    def write_beside(self, folder: Path) -> None:
        """Write the picture and the table; an old picture that could not be drawn again is removed."""
        contents = {"csv": _csv(self.entry.summaries).encode()} if self.entry.rows else {}
        if isinstance(self.picture, Picture):
            contents |= {"svg": self.picture.svg, "png": self.picture.png}
        for suffix in ("svg", "png", "csv"):
            path = folder / f"{self.entry.name}.{suffix}"
            if suffix in contents:
                write_whole(path, contents[suffix])
            else:
                path.unlink(missing_ok=True)


def _csv(summaries: Iterable[Summary]) -> str:
    rows = [["" if isinstance(v, float) and math.isnan(v) else v for v in astuple(summary)] for summary in summaries]
    return "".join(map(csv_line, [[column.name for column in fields(Summary)], *rows]))
