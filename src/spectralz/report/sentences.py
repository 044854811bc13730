"""The words of the page: findings, settings, configurations, numbers with their errors, messages without folders."""

from __future__ import annotations

import math
import re
from collections import Counter
from typing import TYPE_CHECKING, Any

from spectralz.sweeps.store import SWEEP

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from spectralz.report.entries import Entry
    from spectralz.report.section import Section, Verdict
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


_CONVENTIONS = {
    "text": "an edge counted once weighs 2 A_ij",
    "code": "an edge counted once weighs A_ij",
}
# The origin of each convention, shown only for the paper's figures.
_ORIGINS = {"text": "as the paper prints it", "code": "as in the authors' published code"}


def facts(entry: Entry) -> list[tuple[str, str]]:
    """Return each term with its text, which is empty if nothing is known."""
    sweep = entry.sweep
    known = [("Setting", setting_in_words(entry)), ("Models", _models(entry))]
    if not entry.files:
        repeats, seed = int(sweep.get("repeats", 1)), int(sweep.get("seed", 0))
        convention = str(sweep.get("edge_convention", ""))
        known += [
            (f"Values of {entry.axis}", ", ".join(f"{x:g}" for x in _distinct(row.x for row in entry.rows))),
            ("Models per value", str(repeats) if sweep else ""),
            ("Seeds", _span([seed, seed + repeats - 1]) if sweep else ""),
            ("Edge convention", _convention(convention, entry.figure is not None)),
        ]
    return [
        *known,
        ("Spins", _span(_distinct(row.n for row in entry.rows))),
        ("Edges", _span(_distinct(row.edges for row in entry.rows))),
        ("Computing time", f"{math.fsum(row.seconds or 0.0 for row in entry.rows):.3g} s in all"),
        ("Most memory", _memory(entry)),
        ("Versions", "; ".join(dict.fromkeys(row.versions for row in entry.rows if row.versions))),
        ("Notes", entry.notes),
    ]


def _convention(word: str, is_paper: bool) -> str:
    if word not in _CONVENTIONS:
        return word
    return f"{_ORIGINS[word]}: {_CONVENTIONS[word]}" if is_paper else _CONVENTIONS[word]


def _models(entry: Entry) -> str:
    """Return the files, or the generator with its parameters and those of each single instance."""
    if entry.files:
        return ", ".join(entry.files)
    instances = enumerate(entry.sweep.get("instances", ()), start=1)
    parts = [_in_words(entry.sweep.get("parameters", {})), *(f"{place}: {_in_words(one)}" for place, one in instances)]
    return f"{entry.sweep.get('generator', 'unknown')} ({'; '.join(filter(None, parts))})".replace(" ()", "")


def _in_words(parameters: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in parameters.items())


def _distinct(values: Iterable[float | None]) -> list[float]:
    return sorted({value for value in values if value is not None})


def _span(values: Sequence[float]) -> str:
    if not values:
        return ""
    return f"{values[0]:g}" if values[0] == values[-1] else f"{values[0]:g} to {values[-1]:g}"


def _memory(entry: Entry) -> str:
    peaks = [row.peak_mib for row in entry.rows if row.peak_mib is not None]
    return f"{max(peaks):.0f} MiB in a worker" if peaks else ""


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
