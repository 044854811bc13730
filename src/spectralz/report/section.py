"""A section of the report: an entry, judged and drawn, and its files beside the page."""

from __future__ import annotations

import csv
import io
import math
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from spectralz.io.files import write_whole
from spectralz.report.judge import judge
from spectralz.report.picture import Picture, draw
from spectralz.report.sentences import finding
from spectralz.sweeps import Summary

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from spectralz.report.entries import Entry
    from spectralz.report.judge import Verdict


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
        drawn = self.picture if isinstance(self.picture, Picture) else None
        contents = {
            "svg": drawn.svg if drawn else None,
            "png": drawn.png if drawn else None,
            "csv": _csv(self.entry.summaries).encode() if self.entry.rows else None,
        }
        for suffix, content in contents.items():
            path = folder / f"{self.entry.name}.{suffix}"
            if content is not None:
                write_whole(path, content)
            else:
                path.unlink(missing_ok=True)


def _csv(summaries: Iterable[Summary]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    columns = [field.name for field in fields(Summary)]
    writer.writerow(columns)
    for summary in summaries:
        values = [getattr(summary, name) for name in columns]
        writer.writerow(["" if isinstance(v, float) and math.isnan(v) else v for v in values])
    return text.getvalue()
