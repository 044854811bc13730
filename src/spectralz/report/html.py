"""The report: one page that shows every sweep of a folder, needs nothing from the network, and can be passed on.

A page is made in three steps: read the folder into entries, draw and judge each, and put them into HTML. Nothing is
computed again, and nothing is written before all of it is ready. The style and the script lie beside this file.
"""

from __future__ import annotations

import base64
import csv
import io
import json
import math
import re
from collections import Counter
from dataclasses import dataclass, fields
from functools import cached_property
from html import escape
from importlib import resources
from types import MappingProxyType
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import spectralz
from spectralz.errors import FormatError
from spectralz.io.files import write_whole
from spectralz.show.curves import COLORS, MARKERS, draw_legend, empty_figure
from spectralz.sweeps import Row, Summary, read_rows, summarise

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from matplotlib.axes import Axes

    from spectralz.report.figure import Figure
    from spectralz.sweeps import Sweep

__all__ = ["write_report"]

ROWS, SWEEP, PAGE = "rows.csv", "sweep.json", "report.html"
# A drawing with more points than this many bytes of SVG is shown as pixels, so that the page stays quick.
LARGEST_SVG = 1_500_000
NOT_HERE = "n/a"


def write_report(folder: Path, figures: Mapping[str, Figure] = MappingProxyType({})) -> Path:
    """Write ``report.html`` into a folder of sweeps, and beside it each one's picture and table.

    Parameters
    ----------
    folder
        Holds one subfolder for each figure or sweep, with ``rows.csv`` and ``sweep.json``, as the runner leaves them.
    figures
        Figures with titles, drawings and claims of their own, by the name of their subfolder; anything else is shown
        as a sweep. Those of the paper are ``spectralz.paper.FIGURES``.

    Returns
    -------
    Path
        The page. Beside it lie ``NAME.png``, ``NAME.svg`` and ``NAME.csv`` of every sweep that has rows.

    Raises
    ------
    FormatError
        If there is no such folder, if it holds no rows, or if a file in it cannot be read.
    """
    entries = _read_folder(folder, figures)
    try:
        sections = [_Section.of(entry) for entry in entries]
        page = _page(sections).encode()
    except (AttributeError, LookupError, OverflowError, TypeError, ValueError) as error:
        raise FormatError(
            f"a {SWEEP} or {ROWS} in it does not hold what a runner writes ({_message(error)}); "
            "remove that sweep's folder and run it again",
            folder,
        ) from error
    for section in sections:
        section.write_beside(folder)
    write_whole(folder / PAGE, page)
    return folder / PAGE


# What is in the folder


@dataclass(frozen=True)
class _Entry:
    """One sweep of the folder: its rows, its configuration, and the figure of the paper that it is, if any."""

    name: str
    anchor: str
    rows: list[Row]
    sweep: Mapping[str, Any]
    figure: Figure | None

    @property
    def title(self) -> str:
        return f"Sweep {self.name}" if self.figure is None else self.figure.title

    @property
    def notes(self) -> str:
        return "" if self.figure is None else self.figure.notes

    @property
    def axis(self) -> str:
        return "file" if self.files else str(self.sweep.get("axis", "x"))

    @property
    def files(self) -> list[str]:
        return [re.split(r"[/\\]", str(path))[-1] for path in self.sweep.get("files", ())]

    @property
    def contestants(self) -> list[Mapping[str, Any]]:
        return list(self.sweep.get("contestants", ()))

    @cached_property
    def summaries(self) -> list[Summary]:
        return summarise(self.rows)

    @property
    def rows_wanted(self) -> int:
        values = self.sweep.get("instances") or self.sweep.get("values", ())
        models = len(self.files) or len(values) * int(self.sweep.get("repeats", 1))
        return models * len(self.contestants)

    def place(self, x: float) -> str:
        """Return what stands at ``x``: a number, or the name of a file."""
        return self.files[int(x) - 1] if 0 < x <= len(self.files) else f"{x:g}"

    def is_setting(self, sweep: Sweep) -> bool:
        """Return whether the stored sweep is that one; files and the edge convention have flags of their own."""
        apart = {"name", "files", "edge_convention"}
        if self.files:
            apart |= {"generator", "parameters", "axis", "values", "instances", "repeats", "seed"}
        wanted = json.loads(json.dumps(sweep.to_dict()))
        return bool(self.sweep) and all(self.sweep.get(key) == wanted[key] for key in wanted.keys() - apart)

    @property
    def is_quick(self) -> bool:
        return self.figure is not None and self.is_setting(self.figure.quick) and not self.is_setting(self.figure.full)

    @property
    def is_full(self) -> bool:
        return self.figure is not None and self.is_setting(self.figure.full)


def _read_folder(folder: Path, figures: Mapping[str, Figure]) -> list[_Entry]:
    if not folder.is_dir():
        raise FormatError("there is no such folder; give the one that `spectralz paper` or `sweep` wrote into", folder)
    order = list(figures)
    places = [place for place in folder.iterdir() if (place / ROWS).is_file() and not place.name.startswith(".")]
    places.sort(key=lambda place: (order.index(place.name) if place.name in order else len(order), place.name))
    if (folder / ROWS).is_file():  # the folder of a single sweep
        places.append(folder)
    entries: list[_Entry] = []
    for place in places:
        name = _name(folder, place)
        rows, sweep = _read_rows(place / ROWS), _read_sweep(place / SWEEP)
        figure = figures.get(place.name)
        if figure is not None and sweep.get("files") and not figure.full.files:
            figure = figure.of_files()
        entries.append(_Entry(name, f"{_slug(name)}-{len(entries) + 1}", rows, sweep, figure))
    if not any(entry.rows for entry in entries):
        raise FormatError(
            f"no {ROWS} with rows here or one folder below; run `spectralz paper NAME --out {folder}` first", folder
        )
    return entries


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
    """Read the configuration as it lies there, without checks: a report of old rows must not need old methods."""
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


# What is shown of it


@dataclass(frozen=True)
class _Verdict:
    """A claim of the paper, what we measured, and whether it holds; None if that could not be checked."""

    sentence: str
    measurement: str
    holds: bool | None

    @property
    def word(self) -> str:
        return {True: "holds", False: "does not hold", None: "not checked"}[self.holds]


@dataclass(frozen=True)
class _Picture:
    """A drawing as files, with its size on the page in pixels."""

    svg: bytes
    png: bytes
    width: int
    height: int

    @property
    def source(self) -> str:
        kind, content = ("svg+xml", self.svg) if len(self.svg) <= LARGEST_SVG else ("png", self.png)
        return f"data:image/{kind};base64,{base64.b64encode(content).decode()}"


@dataclass(frozen=True)
class _Section:
    """An entry, judged and drawn; ``picture`` is a message where the drawing failed."""

    entry: _Entry
    verdicts: list[_Verdict]
    picture: _Picture | str

    @classmethod
    def of(cls, entry: _Entry) -> _Section:
        return cls(entry, _judge(entry), _draw(entry))

    def write_beside(self, folder: Path) -> None:
        """Write the picture and the table; an old picture that could not be drawn again is taken away."""
        drawn = self.picture if isinstance(self.picture, _Picture) else None
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


def _judge(entry: _Entry) -> list[_Verdict]:
    if entry.figure is None or not entry.rows:
        return []
    verdicts = []
    for claim in entry.figure.claims:
        try:
            measurement, holds = claim.check(entry.rows)
            verdicts.append(_Verdict(claim.sentence, measurement, bool(holds)))
        except Exception as error:
            verdicts.append(_Verdict(claim.sentence, f"These rows do not say: {_message(error)}", None))
    return verdicts


def _message(error: Exception) -> str:
    return _without_folders(f"{type(error).__name__}: {error}" if str(error) else type(error).__name__)


# An absolute path up to its last part, on Unix or Windows; addresses such as https://... are left alone.
_FOLDERS = re.compile(r"""(?<![\w./\\-])(?:file://)?(?:[A-Za-z]:)?(?:/(?!/)|\\+)(?:[^\s/\\:'"<>|,]+[/\\]+)+""")


def _without_folders(text: str) -> str:
    """Cut absolute paths down to the file's name: the page is passed on, the machine is nobody's business."""
    return _FOLDERS.sub("", text)


def _csv(summaries: Iterable[Summary]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    columns = [field.name for field in fields(Summary)]
    writer.writerow(columns)
    for summary in summaries:
        values = [getattr(summary, name) for name in columns]
        writer.writerow(["" if isinstance(v, float) and math.isnan(v) else v for v in values])
    return text.getvalue()


def _draw(entry: _Entry) -> _Picture | str:
    if not entry.rows:
        return "There are no rows yet."
    try:
        return _drawn(entry)
    except Exception as error:
        return f"The drawing failed with {_message(error)}"


def _drawn(entry: _Entry) -> _Picture:
    import matplotlib as mpl

    # The salt and the missing date make the same rows into the same bytes.
    with mpl.rc_context({"svg.hashsalt": entry.name, "svg.fonttype": "path", "font.size": 11}):
        canvas = empty_figure()
        axes = canvas.add_subplot()
        if entry.figure is not None:
            entry.figure.draw(entry.rows, axes)
        else:
            _draw_sweep(entry, axes)
        svg, png = io.BytesIO(), io.BytesIO()
        canvas.savefig(svg, format="svg", metadata={"Date": None, "Title": entry.title})
        canvas.set_layout_engine("none")  # keep the places found for the first
        canvas.savefig(png, format="png", dpi=144, metadata={"Title": entry.title})
        width, height = (round(96 * inches) for inches in canvas.get_size_inches())
    return _Picture(svg.getvalue(), png.getvalue(), width, height)


def _draw_sweep(entry: _Entry, axes: Axes) -> None:
    """Draw anybody's sweep: mean |error| with its standard error against x, or log Z where there is no truth."""
    has_truth = any(not math.isnan(s.mean) for s in entry.summaries)
    labels = list(dict.fromkeys(row.label for row in entry.rows))
    heights: list[float] = []
    for place, label in enumerate(labels):
        points = [p for p in (_errors if has_truth else _answers)(entry, label) if not math.isnan(p[1])]
        heights += [y for _, y, _ in points]
        style: dict[str, Any] = {"color": COLORS[place % len(COLORS)], "marker": MARKERS[place % len(MARKERS)]}
        style["linestyle"] = ("-", "--", ":")[place // len(COLORS) % 3]
        x, y, bars = zip(*points, strict=True) if points else ((), (), ())
        axes.errorbar(x, y, yerr=bars, label=label.replace("$", r"\$"), capsize=2, markersize=5, **style)
    if has_truth and any(y > 0 for y in heights):
        axes.set_yscale("log", nonpositive="clip")
        # An error of zero, or of rounding alone, would otherwise squeeze the rest into a corner.
        smallest = min(y for y in heights if y > 0)
        axes.set_ylim(bottom=max(smallest / 3.0, 1e-16))
    places = [summary.x for summary in entry.summaries]
    if not entry.files and min(places) > 0.0 and max(places) >= 20.0 * min(places):
        axes.set_xscale("log")
    if entry.files:
        axes.set_xticks(range(1, len(entry.files) + 1), [f.replace("$", r"\$") for f in entry.files], rotation=30)
    axes.set(xlabel=entry.axis, ylabel="mean |error| of log Z" if has_truth else "log Z (mean and standard error)")
    axes.grid(alpha=0.3)
    draw_legend(axes)


_Point = tuple[float, float, float]


def _errors(entry: _Entry, label: str) -> list[_Point]:
    return [(s.x, s.mean, s.standard_error) for s in entry.summaries if s.label == label]


def _answers(entry: _Entry, label: str) -> list[_Point]:
    answers: dict[float, list[float]] = {}
    for row in entry.rows:
        if row.label == label and row.log_z is not None:
            answers.setdefault(row.x, []).append(row.log_z)
    points = []
    for x, values in sorted(answers.items()):
        mean = math.fsum(values) / len(values)
        variance = math.fsum((v - mean) ** 2 for v in values) / max(len(values) - 1, 1)
        points.append((x, mean, math.sqrt(variance / len(values))))
    return points


# Sentences


def _finding(section: _Section) -> str:
    entry = section.entry
    if not entry.rows:
        return "There are no rows yet."
    if entry.figure is None:
        return _best_method(entry)
    if not section.verdicts:
        return "The paper says nothing of this figure that we could check."
    sentence = _tally(section.verdicts)
    return sentence + (" This is the quick setting, with fewer or smaller models than the paper's." * entry.is_quick)


_VERBS = {True: ("holds", "hold"), False: ("does not hold", "do not hold"), None: ("could not be checked",) * 2}


def _tally(verdicts: Sequence[_Verdict]) -> str:
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


def _best_method(entry: _Entry) -> str:
    known = [summary for summary in entry.summaries if not math.isnan(summary.mean)]
    if not known:
        return "There is no exact log Z to compare with; the drawing shows log Z itself."
    last = max(summary.x for summary in known)
    best = min((summary for summary in known if summary.x == last), key=lambda summary: summary.mean)
    where = f"For {entry.place(last)}" if entry.files else f"At {entry.axis} = {entry.place(last)}"
    return f"{where}, {best.label} has the smallest mean |error|: {_plus_minus(best)}."


def _rerun(entry: _Entry) -> str:
    if entry.figure is None:
        return "spectralz sweep config.toml"
    flags = ["--quick"] * entry.is_quick + ["--uai DIR"] * bool(entry.figure and entry.files)
    if entry.sweep.get("edge_convention", "text") != "text":
        flags.append(f"--edge-convention {entry.sweep['edge_convention']}")
    return " ".join(["spectralz paper", entry.name, *flags, "--out DIR"])


def _setting(entry: _Entry) -> str:
    if entry.figure is None:
        return "a sweep of its own"
    if not entry.sweep:
        return f"unknown: {SWEEP} is missing"
    if entry.is_quick:
        return "quick"
    return "full, as in the paper" if entry.is_full else "neither the full nor the quick one of this version"


def _number(value: float) -> str:
    return NOT_HERE if math.isnan(value) else f"{value:.3g}"


def _plus_minus(summary: Summary) -> str:
    """Return a mean and its standard error to the same digit; a single run has no standard error.

    Examples
    --------
    >>> one = Summary("", 1.0, 5, 0, 0.0123456, 0.0, 0.000789, 0.0, 0.0, 0.0)
    >>> _plus_minus(one)
    '0.0123 ± 0.0008'
    """
    mean, error = summary.mean, summary.standard_error
    if math.isnan(mean) or summary.count < 2:
        return _number(mean)
    largest = max(mean, error)
    exponent = math.floor(math.log10(largest)) if 0.0 < largest < math.inf else 0
    if -4 < exponent < 5:
        digits = max(0, 2 - exponent)
        return f"{mean:.{digits}f} ± {error:.{digits}f}"
    return f"({mean / 10.0**exponent:.2f} ± {error / 10.0**exponent:.2f})e{exponent}"


# HTML


@dataclass(frozen=True)
class _Cell:
    """A cell's HTML, and the number to sort it by."""

    html: str
    value: float | None = None

    def render(self, heading: str) -> str:
        value = "" if self.value is None or math.isnan(self.value) else repr(self.value)
        attributes = f' class="number" data-value="{value}"' if self.value is not None else ""
        return f'<td role="cell"{attributes} data-heading="{escape(heading)}">{self.html}</td>'


def _table(caption: str, headings: Sequence[str], rows: Sequence[Sequence[_Cell]], kind: str) -> str:
    """Return a table in a container of its own, which scrolls where the page is too narrow for it."""
    is_number = [bool(rows) and rows[0][i].value is not None for i in range(len(headings))]
    head = "".join(
        f'<th role="columnheader" scope="col"{" class=number" * number}>{escape(text)}</th>'
        for text, number in zip(headings, is_number, strict=True)
    )
    body = "\n".join(
        '<tr role="row">' + "".join(cell.render(text) for cell, text in zip(row, headings, strict=True)) + "</tr>"
        for row in rows
    )
    return (
        f'<div class="scroll {kind}" role="region" tabindex="0" aria-label="{escape(caption)}">\n'
        f'<table role="table" class="{kind}"><caption>{escape(caption)}</caption>\n'
        f'<thead role="rowgroup"><tr role="row">{head}</tr></thead>\n'
        f'<tbody role="rowgroup">\n{body}\n</tbody></table></div>'
    )


def _page(sections: Sequence[_Section]) -> str:
    is_paper = any(section.entry.figure for section in sections)
    title = "Spectral Approximate Inference, regenerated" if is_paper else "Sweeps of spectralz"
    parts = [_introduction(title, is_paper), _claims_of_all(sections), _contents(sections), *map(_section, sections)]
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
{chr(10).join(part for part in parts if part)}
</main>
<footer><p>Written by spectralz {escape(spectralz.__version__)}. This page needs no network.</p></footer>
<script>
{_resource("report.js")}</script>
</body>
</html>
"""


def _resource(name: str) -> str:
    return resources.files("spectralz.report").joinpath(name).read_text(encoding="utf-8")


def _introduction(title: str, is_paper: bool) -> str:
    what = (
        "The figures of Park, Yang, Yun and Shin, <cite>Spectral Approximate Inference</cite> (ICML 2019), computed "
        "again with spectralz, and what the paper says of them held against these numbers."
        if is_paper
        else "What spectralz measured in these sweeps: how far each method's log Z is from the exact one."
    )
    return (
        f"<header><h1>{escape(title)}</h1>\n<p>{what}</p>\n"
        "<p>An error is a method's log Z less the exact one.</p></header>"
    )


def _claims_of_all(sections: Sequence[_Section]) -> str:
    rows = [
        [_Cell(_link(section.entry, section.entry.name)), _Cell(escape(verdict.sentence)), _Cell(_badge(verdict))]
        for section in sections
        for verdict in section.verdicts
    ]
    if not rows:
        return ""
    headings = ["figure", "the paper's claim", "verdict"]
    table = _table("All claims of the paper that were checked", headings, rows, "claims overview")
    return (
        f'<section aria-labelledby="claims"><h2 id="claims">The paper\'s claims</h2>\n'
        f"<p>{escape(_overview(sections))}</p>\n{table}</section>"
    )


def _overview(sections: Sequence[_Section]) -> str:
    figures = [section for section in sections if section.entry.figure]
    quick = sum(section.entry.is_quick for section in figures)
    setting = f"{quick} of the {len(figures)} figures" if 1 < len(figures) != quick else "All of it"
    tally = _tally([verdict for section in figures for verdict in section.verdicts])
    return tally + f" {setting} ran at the quick setting, with fewer or smaller models than the paper's." * bool(quick)


def _contents(sections: Sequence[_Section]) -> str:
    items = "\n".join(f"<li>{_link(section.entry, section.entry.title)}</li>" for section in sections)
    return f'<nav aria-labelledby="contents"><h2 id="contents">Contents</h2>\n<ul>\n{items}\n</ul></nav>'


def _link(entry: _Entry, text: str) -> str:
    return f'<a href="#{entry.anchor}">{escape(text)}</a>'


def _badge(verdict: _Verdict) -> str:
    return f'<span class="badge {verdict.word.replace(" ", "-")}">{verdict.word}</span>'


def _section(section: _Section) -> str:
    entry = section.entry
    parts = [
        f'<h2 id="{entry.anchor}">{escape(entry.title)}</h2>',
        f'<p class="finding">{escape(_finding(section))}</p>',
        _unfinished(entry),
        _figure(section),
        _claims(section),
        _summaries(entry),
        _failures(entry),
        _configuration(entry),
        _how_to_rerun(entry),
    ]
    return f'<section aria-labelledby="{entry.anchor}">\n' + "\n".join(filter(None, parts)) + "\n</section>"


def _unfinished(entry: _Entry) -> str:
    if len(entry.rows) >= entry.rows_wanted:
        return ""
    return (
        f'<p class="notice">Not finished: {len(entry.rows)} of {entry.rows_wanted} rows are here. '
        "The command below goes on where it stopped.</p>"
    )


def _figure(section: _Section) -> str:
    entry, picture = section.entry, section.picture
    if isinstance(picture, str):
        return f'<p class="notice">{escape(picture)}</p>' if entry.rows else ""
    alt = f"{entry.title}. {_finding(section)} The numbers are in the table below."
    beside = ", ".join(f'<a href="./{quote(entry.name)}.{kind}">{kind.upper()}</a>' for kind in ("svg", "png", "csv"))
    return (
        f'<figure><img src="{picture.source}" width="{picture.width}" height="{picture.height}" alt="{escape(alt)}">\n'
        f'<figcaption>{_runs(entry)} <span class="files">Beside this page: {beside}.</span></figcaption></figure>'
    )


def _runs(entry: _Entry) -> str:
    failures = sum(summary.failures for summary in entry.summaries)
    return f"Drawn from {len(entry.rows)} runs" + f", {failures} of them without an answer" * bool(failures) + "."


def _claims(section: _Section) -> str:
    rows = [
        [_Cell(escape(verdict.sentence)), _Cell(escape(_without_folders(verdict.measurement))), _Cell(_badge(verdict))]
        for verdict in section.verdicts
    ]
    headings = ["the paper's claim", "our measurement", "verdict"]
    return _table(f"Claims of {section.entry.name}", headings, rows, "claims") if rows else ""


def _summaries(entry: _Entry) -> str:
    if not entry.rows:
        return ""
    headings = [
        "method",
        entry.axis,
        "mean |error| ± s.e.",
        "mean error, signed",
        "spread of |error|",
        "runs",
        "failures",
        "mean seconds",
    ]
    rows = [
        [
            _Cell(escape(summary.label)),
            _Cell(escape(entry.place(summary.x)), summary.x),
            _Cell(_plus_minus(summary), summary.mean),
            _Cell(_number(summary.signed), summary.signed),
            _Cell(_number(summary.spread), summary.spread),
            _Cell(str(summary.count + summary.failures), summary.count + summary.failures),
            _Cell(str(summary.failures), summary.failures),
            _Cell(_number(summary.seconds), summary.seconds),
        ]
        for summary in entry.summaries
    ]
    return _table(f"Numbers of {entry.name}", headings, rows, "numbers sortable")


def _failures(entry: _Entry) -> str:
    counts = Counter((row.label, _without_folders(row.failure)) for row in entry.rows if row.failure)
    if not counts:
        return ""
    rows = [[_Cell(escape(label)), _Cell(escape(text)), _Cell(str(n), n)] for (label, text), n in counts.items()]
    table = _table(f"Failures of {entry.name}", ["method", "message", "runs"], rows, "failures")
    return _details(f"Runs without an answer ({counts.total()})", table)


def _details(summary: str, content: str) -> str:
    return f"<details><summary>{escape(summary)}</summary>\n{content}\n</details>"


def _configuration(entry: _Entry) -> str:
    terms = "\n".join(
        f"<div><dt>{escape(term)}</dt><dd>{escape(_without_folders(text))}</dd></div>"
        for term, text in _facts(entry)
        if text
    )
    return _details("Configuration", f"<dl>\n{terms}\n</dl>\n{_methods(entry)}")


_CONVENTIONS = {
    "text": "as the paper prints it: an edge counted once weighs 2 A_ij",
    "code": "as the authors' published code has it: an edge counted once weighs A_ij",
}


def _facts(entry: _Entry) -> list[tuple[str, str]]:
    sweep = entry.sweep
    facts = [("Setting", _setting(entry)), ("Models", _models(entry))]
    if not entry.files:
        repeats, seed = int(sweep.get("repeats", 1)), int(sweep.get("seed", 0))
        convention = str(sweep.get("edge_convention", ""))
        facts += [
            (f"Values of {entry.axis}", ", ".join(f"{x:g}" for x in _distinct(row.x for row in entry.rows))),
            ("Models a value", str(repeats) if sweep else ""),
            ("Seeds", _span([seed, seed + repeats - 1]) if sweep else ""),
            ("Edge convention", _CONVENTIONS.get(convention, convention)),
        ]
    return [
        *facts,
        ("Spins", _span(_distinct(row.n for row in entry.rows))),
        ("Edges", _span(_distinct(row.edges for row in entry.rows))),
        ("Computing time", f"{math.fsum(row.seconds or 0.0 for row in entry.rows):.3g} s in all"),
        ("Most memory", _memory(entry)),
        ("Versions", "; ".join(dict.fromkeys(row.versions for row in entry.rows if row.versions))),
        ("Notes", entry.notes),
    ]


def _models(entry: _Entry) -> str:
    """Return the files, or the generator with its parameters and those of each place that has its own."""
    if entry.files:
        return ", ".join(entry.files)
    own = [_in_words(parameters) for parameters in entry.sweep.get("instances", ())]
    parts = [_in_words(entry.sweep.get("parameters", {})), *(f"{place}: {text}" for place, text in enumerate(own, 1))]
    return f"{entry.sweep.get('generator', 'unknown')} ({'; '.join(filter(None, parts))})".replace(" ()", "")


def _in_words(parameters: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in parameters.items())


def _distinct(values: Iterable[float | None]) -> list[float]:
    return sorted({value for value in values if value is not None})


def _span(values: Sequence[float]) -> str:
    if not values:
        return ""
    return f"{values[0]:g}" if values[0] == values[-1] else f"{values[0]:g} to {values[-1]:g}"


def _memory(entry: _Entry) -> str:
    peaks = [row.peak_mib for row in entry.rows if row.peak_mib is not None]
    return f"{max(peaks):.0f} MiB in a worker" if peaks else ""


def _methods(entry: _Entry) -> str:
    """Return the methods with all their options as the rows have them; before there are rows, as the sweep has them."""
    ours = {contestant.get("label"): bool(contestant.get("is_ours")) for contestant in entry.contestants}
    methods = {row.label: (row.method, row.options) for row in entry.rows}
    for contestant in entry.contestants:
        asked = str(contestant.get("method", "")), json.dumps(contestant.get("options", {}))
        methods.setdefault(str(contestant.get("label", "")), asked)
    rows = [
        [
            _Cell(escape(label)),
            _Cell(f"<code>{escape(method)}</code>"),
            _Cell(_options(options)),
            _Cell("beyond the paper" if ours.get(label) else "the paper" if entry.figure else ""),
        ]
        for label, (method, options) in methods.items()
    ]
    headings = ["label", "method", "options", "from"]
    if entry.figure is None:
        headings, rows = headings[:-1], [row[:-1] for row in rows]
    return _table(f"Methods of {entry.name}", headings, rows, "methods")


def _options(text: str) -> str:
    """Return options as a list of ``name = value``; what is not JSON is shown as it is."""
    try:
        options = json.loads(text or "{}")
    except ValueError:
        options = None
    if not isinstance(options, dict):
        return f"<code>{escape(_without_folders(text))}</code>"
    shown = (f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in options.items())
    return ", ".join(f"<code>{escape(_without_folders(option))}</code>" for option in shown) or "none"


def _how_to_rerun(entry: _Entry) -> str:
    hint = (
        "" if entry.figure else f", with the configuration that made it (<code>{SWEEP}</code> beside the rows has it)"
    )
    return (
        f'<div class="rerun"><p>To run it again{hint}:</p>\n'
        f'<pre tabindex="0" role="region" aria-label="command for {escape(entry.name)}"><code>'
        f"{escape(_rerun(entry))}</code></pre></div>"
    )
