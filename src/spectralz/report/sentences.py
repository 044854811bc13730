"""The sentences of the page: findings, settings, numbers with their errors, and messages without folders."""

from __future__ import annotations

import math
import re
from collections import Counter
from typing import TYPE_CHECKING

from spectralz.sweeps.store import SWEEP

if TYPE_CHECKING:
    from collections.abc import Sequence

    from spectralz.report.entries import Entry
    from spectralz.report.judge import Verdict
    from spectralz.report.section import Section
    from spectralz.sweeps import Summary

NOT_HERE = "n/a"


def finding(entry: Entry, verdicts: Sequence[Verdict]) -> str:
    """Say what an entry shows, in a sentence or two."""
    if not entry.rows:
        return "There are no rows yet."
    if entry.figure is None:
        return _best_method(entry)
    if not verdicts:
        return "The paper says nothing about this figure that we could check."
    sentence = tally(verdicts)
    return sentence + (" This is the quick setting, with fewer or smaller models than the paper's." * entry.is_quick)


_VERBS = {True: ("holds", "hold"), False: ("does not hold", "do not hold"), None: ("could not be checked",) * 2}


def tally(verdicts: Sequence[Verdict]) -> str:
    """Say how many claims hold."""
    if len(verdicts) == 1:
        return f"The paper's claim {_VERBS[verdicts[0].holds][0]} here."
    counts = Counter(verdict.holds for verdict in verdicts)
    if set(counts) == {False}:
        return f"None of the paper's {len(verdicts)} claims holds here."
    if len(counts) == 1:
        which = "Both" if len(verdicts) == 2 else f"All {len(verdicts)}"
        return f"{which} of the paper's claims {_VERBS[verdicts[0].holds][1]} here."
    parts = [f"{counts[holds]} {_VERBS[holds][counts[holds] > 1]}" for holds in _VERBS if counts[holds]]
    return f"Of the paper's {len(verdicts)} claims, {', '.join(parts[:-1])} and {parts[-1]} here."


def overview(sections: Sequence[Section]) -> str:
    """Say how many claims of all figures hold, and at which setting they ran."""
    figures = [section for section in sections if section.entry.figure]
    sentence = tally([verdict for section in figures for verdict in section.verdicts])
    quick = sum(section.entry.is_quick for section in figures)
    which = f"{quick} of the {len(figures)} figures" if 1 < len(figures) != quick else "All of it"
    setting = f" {which} ran at the quick setting, with fewer or smaller models than the paper's."
    return sentence + setting * bool(quick)


def _best_method(entry: Entry) -> str:
    known = [summary for summary in entry.summaries if not math.isnan(summary.mean)]
    if not known:
        return "There is no exact log Z to compare with; the drawing shows log Z itself."
    last = max(summary.x for summary in known)
    best = min((summary for summary in known if summary.x == last), key=lambda summary: summary.mean)
    where = f"For {entry.place(last)}" if entry.files else f"At {entry.axis} = {entry.place(last)}"
    return f"{where}, {best.label} has the smallest mean |error|: {plus_minus(best)}."


def command_to_rerun(entry: Entry) -> str:
    """Return the command that runs a sweep again."""
    if entry.figure is None:
        return "spectralz sweep config.toml"
    flags = ["--quick"] * entry.is_quick + ["--uai DIR"] * bool(entry.files)
    if entry.sweep.get("edge_convention", "text") != "text":
        flags.append(f"--edge-convention {entry.sweep['edge_convention']}")
    return " ".join(["spectralz paper", entry.name, *flags, "--out DIR"])


def setting_in_words(entry: Entry) -> str:
    """Say at which of a figure's settings it ran."""
    if entry.figure is None:
        return "a sweep of its own"
    if not entry.sweep:
        return f"unknown: {SWEEP} is missing"
    if entry.is_quick:
        return "quick"
    return "full, as in the paper" if entry.is_full else "neither the full nor the quick one of this version"


def three_digits(value: float) -> str:
    """Return three digits of a number, or a sign for a missing one."""
    return NOT_HERE if math.isnan(value) else f"{value:.3g}"


def plus_minus(summary: Summary) -> str:
    """Return a mean and its standard error to the same digit; a single run has no standard error.

    Examples
    --------
    >>> from spectralz.sweeps import Summary
    >>> one = Summary("", 1.0, 5, 0, 0.0123456, 0.0, 0.000789, 0.0, 0.0, 0.0)
    >>> plus_minus(one)
    '0.0123 ± 0.0008'
    """
    mean, error = summary.mean, summary.standard_error
    if math.isnan(mean) or summary.count < 2:
        return three_digits(mean)
    largest = max(mean, error)
    exponent = math.floor(math.log10(largest)) if 0.0 < largest < math.inf else 0
    if -4 < exponent < 5:
        digits = max(0, 2 - exponent)
        return f"{mean:.{digits}f} ± {error:.{digits}f}"
    return f"({mean / 10.0**exponent:.2f} ± {error / 10.0**exponent:.2f})e{exponent}"


def runs_in_words(entry: Entry) -> str:
    """Say from how many runs a picture is drawn."""
    failures = sum(summary.failures for summary in entry.summaries)
    return f"Drawn from {len(entry.rows)} runs" + f", {failures} of them without an answer" * bool(failures) + "."


def message_of(error: Exception) -> str:
    """Return an error as the page shows it."""
    return without_folders(f"{type(error).__name__}: {error}" if str(error) else type(error).__name__)


# An absolute path up to its last part, on Unix or Windows; addresses such as https://... are left alone.
_FOLDERS = re.compile(r"""(?<![\w./\\-])(?:file://)?(?:[A-Za-z]:)?(?:/(?!/)|\\+)(?:[^\s/\\:'"<>|,]+[/\\]+)+""")


def without_folders(text: str) -> str:
    """Shorten absolute paths to the file's name, since the page may be published."""
    return _FOLDERS.sub("", text)
