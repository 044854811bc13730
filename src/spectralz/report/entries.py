"""Entries of a report: figures of the paper or any sweeps, read from a folder, and put into sentences."""

from __future__ import annotations

import csv
import json
import math
import re
from collections import Counter
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from spectralz.errors import FormatError
from spectralz.sweeps import read_rows, summarise
from spectralz.sweeps.rows import ROWS, SWEEP

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from matplotlib.axes import Axes

    from spectralz.report.page import Section, Verdict
    from spectralz.sweeps import Row, Summary, Sweep


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


@dataclass(frozen=True)
class Entry:
    """One sweep of the folder: its rows, its configuration, and its figure of the paper, if any."""

    name: str
    anchor: str
    rows: list[Row]
    sweep: Mapping[str, Any]
    figure: Figure | None

    @property
    def title(self) -> str:
        """The heading."""
        return f"Sweep {self.name}" if self.figure is None else self.figure.title

    @property
    def notes(self) -> str:
        """The choices of the figure that the paper does not print."""
        return "" if self.figure is None else self.figure.notes

    @property
    def axis(self) -> str:
        """The name of the quantity along the axis."""
        return "file" if self.files else str(self.sweep.get("axis", "x"))

    @property
    def files(self) -> list[str]:
        """The model files that were read, without their folders."""
        return [re.split(r"[/\\]", str(path))[-1] for path in self.sweep.get("files", ())]

    @property
    def contestants(self) -> list[Mapping[str, Any]]:
        """The methods in the configuration."""
        return list(self.sweep.get("contestants", ()))

    @cached_property
    def summaries(self) -> list[Summary]:
        """The means of the rows."""
        return summarise(self.rows)

    @property
    def rows_wanted(self) -> int:
        """How many rows the finished sweep has."""
        values = self.sweep.get("instances") or self.sweep.get("values", ())
        models = len(self.files) or len(values) * int(self.sweep.get("repeats", 1))
        return models * len(self.contestants)

    def place(self, x: float) -> str:
        """Return the label at ``x``: a number, or the name of a file."""
        return self.files[int(x) - 1] if 0 < x <= len(self.files) else f"{x:g}"

    def is_setting(self, sweep: Sweep) -> bool:
        """Return whether the stored sweep is this one, apart from files and the edge convention, which have flags."""
        apart = {"name", "files", "edge_convention"}
        if self.files:
            apart |= {"generator", "parameters", "axis", "values", "instances", "repeats", "seed"}
        wanted = json.loads(json.dumps(sweep.to_dict()))
        return bool(self.sweep) and all(self.sweep.get(key) == wanted[key] for key in wanted.keys() - apart)

    @property
    def is_quick(self) -> bool:
        """Whether this is a figure at its quick setting."""
        return self.figure is not None and self.is_setting(self.figure.quick) and not self.is_setting(self.figure.full)

    @property
    def is_full(self) -> bool:
        """Whether this is a figure at its full setting."""
        return self.figure is not None and self.is_setting(self.figure.full)


def read_folder(folder: Path, figures: Mapping[str, Figure]) -> list[Entry]:
    """Read all sweeps in a folder, figures first and in their order."""
    if not folder.is_dir():
        raise FormatError("there is no such folder; give the one that `spectralz paper` or `sweep` wrote into", folder)
    entries: list[Entry] = []
    for place in _places(folder, list(figures)):
        name = _name(folder, place)
        rows, sweep = _read_rows(place / ROWS), _read_sweep(place / SWEEP)
        figure = figures.get(place.name)
        if figure is not None and sweep.get("files") and not figure.full.files:
            figure = figure.of_files()
        entries.append(Entry(name, f"{_slug(name)}-{len(entries) + 1}", rows, sweep, figure))
    if not any(entry.rows for entry in entries):
        raise FormatError(
            f"no {ROWS} with rows here or one folder below; run `spectralz paper NAME --out {folder}` first", folder
        )
    return entries


def _places(folder: Path, order: list[str]) -> list[Path]:
    """Return the folders with rows: those named in ``order``, then others, then the folder itself."""
    places = [place for place in folder.iterdir() if (place / ROWS).is_file() and not place.name.startswith(".")]
    places.sort(key=lambda place: (order.index(place.name) if place.name in order else len(order), place.name))
    if (folder / ROWS).is_file():  # the folder of a single sweep
        places.append(folder)
    return places


def _name(folder: Path, place: Path) -> str:
    name = place.resolve().name or "sweep"
    taken = place == folder and (name == "rows" or (folder / name / ROWS).is_file())
    return f"{name}-sweep" if taken else name  # rows.csv itself must never be overwritten


def _slug(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-").lower() or "sweep"


def _read_rows(path: Path) -> list[Row]:
    advice = "delete the file, or the line, and run the sweep again: it adds what is missing"
    try:
        rows = read_rows(path)
    except FormatError as error:  # it names the file and the line
        raise FormatError(f"{error}; {advice}") from error
    except (OSError, ValueError, csv.Error) as error:
        raise FormatError(f"this is not a table of rows ({error}); {advice}", path) from error
    for line, row in enumerate(rows, start=2):
        if not row.label or row.x is None:
            raise FormatError(f"the row has no label or no x; {advice}", path, line)
    return rows


def _read_sweep(path: Path) -> Mapping[str, Any]:
    """Read the configuration without checks: a report of old rows must not need old methods."""
    if not path.exists():
        return {}
    try:
        sweep = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(sweep, dict):
            raise ValueError(f"it holds a {type(sweep).__name__}")
    except (OSError, ValueError) as error:
        raise FormatError(
            f"this is not a sweep in JSON ({error}); remove its folder and run the sweep again", path
        ) from error
    return sweep


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
