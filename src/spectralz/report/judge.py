"""Claims compared with rows: what we measured, and whether they hold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from spectralz.report.sentences import message_of

if TYPE_CHECKING:
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
