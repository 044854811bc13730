"""The report: one page that shows every sweep of a folder, needs no network, and can be passed on.

A page is made in three steps: read the folder into entries, draw and judge each of them, and put them into HTML.
Nothing is computed again, and nothing is written before everything is ready.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import astuple, dataclass, fields
from html import escape
from types import MappingProxyType
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from spectralz.errors import FormatError
from spectralz.io.files import write_whole
from spectralz.report import entries, parts
from spectralz.report.entries import finding, message_of, read_folder
from spectralz.report.parts import (
    Cell,
    any_letters,
    details,
    figure_html,
    in_page,
    options_in_code,
    render_shell,
    render_table,
    terms,
)
from spectralz.show.canvas import (
    COLORS,
    MARKERS,
    above,
    draw_at_floor,
    draw_legend,
    empty_figure,
    floor_below,
    plain_powers,
    saved,
    scale_errors,
)
from spectralz.sweeps import Summary
from spectralz.sweeps.rows import ROWS, SWEEP, csv_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

    from spectralz.report.entries import Entry, Figure

    _Point = tuple[float, float, float]  # x, y and the length of its bar


@dataclass(frozen=True)
class Picture:
    """A drawing as files, and as HTML."""

    svg: bytes
    png: bytes
    shown: str


def draw(entry: Entry, alt: str) -> Picture | str:
    """Return the picture of an entry, with a description for readers who cannot see it, or why there is none."""
    if not entry.rows:
        return "There are no rows yet."
    try:
        with any_letters():
            return _drawn(entry, alt)
    except Exception as error:
        return f"The drawing failed with {message_of(error)}"


def _drawn(entry: Entry, alt: str) -> Picture:
    import matplotlib as mpl

    # The salt and the missing date ensure that the same rows give the same bytes.
    with mpl.rc_context({"svg.hashsalt": entry.name, "svg.fonttype": "path", "font.size": 11}):
        figure = _canvas(entry)
        svg = saved(figure, "svg", metadata={"Date": None, "Title": entry.title})
        figure.set_layout_engine("none")  # keep the layout found for the first format
        png = saved(figure, "png", dpi=144, metadata={"Title": entry.title})
        return Picture(svg, png, in_page(figure, alt))


def _canvas(entry: Entry) -> Canvas:
    canvas = empty_figure()
    axes = canvas.add_subplot()
    if entry.figure is not None:
        entry.figure.draw(entry.rows, axes)
    else:
        _draw_sweep(entry, axes)
    return canvas


def _draw_sweep(entry: Entry, axes: Axes) -> None:
    """Draw any sweep: mean |error| with its standard error against x, or log Z if there is no truth."""
    has_truth = any(not math.isnan(s.mean) for s in entry.summaries)
    labels = list(dict.fromkeys(row.label for row in entry.rows))
    lines = {label: _errors(entry, label) if has_truth else _answers(entry, label) for label in labels}
    if has_truth:
        _draw_errors(axes, lines, [row.truth for row in entry.rows if row.truth is not None])
    else:
        for place, (label, points) in enumerate(lines.items()):
            _draw_line(axes, _style(place), label, points)
    _scale_x(axes, entry)
    axes.set(xlabel=entry.axis, ylabel="mean |error| of log Z" if has_truth else "log Z (mean and standard error)")
    axes.grid(alpha=0.3)
    draw_legend(axes)


def _draw_errors(axes: Axes, lines: dict[str, list[_Point]], truths: Sequence[float]) -> None:
    """Draw errors on a logarithmic axis; errors that are zero, or only rounding, lie on its floor."""
    errors = [y for points in lines.values() for _, y, _ in points]
    floor, rounding = floor_below(errors, truths)
    on_floor = [y for y in errors if y <= rounding]
    rank = 0
    for place, (label, points) in enumerate(lines.items()):
        style = _style(place)
        raised = [(x, y, bar) if y > rounding else (x, floor, 0.0) for x, y, bar in points]
        _draw_line(axes, style, label, raised, floor)
        below = [x for x, y, _ in points if y <= rounding]
        if below:
            draw_at_floor(axes, below, floor, rank, style)
            rank += 1
    words = "0" if on_floor else ""
    if any(on_floor):
        words = f"≤ {10.0 ** math.ceil(math.log10(max(on_floor))):g}"
    scale_errors(axes, [max(y, floor) for y in errors], floor, words)


def _style(place: int) -> dict[str, Any]:
    style = {"color": COLORS[place % len(COLORS)], "marker": MARKERS[place % len(MARKERS)]}
    return {**style, "linestyle": ("-", "--", ":")[place // len(COLORS) % 3]}


def _draw_line(axes: Axes, style: dict[str, Any], label: str, points: list[_Point], floor: float = -math.inf) -> None:
    x, y, bars = zip(*points, strict=True) if points else ((), (), ())
    lower = [min(bar, height - floor) for height, bar in zip(y, bars, strict=True)]
    name = label.replace("$", r"\$")
    axes.errorbar(x, y, yerr=[lower, bars], label=name, capsize=2, markersize=5, **above(y, floor), **style)


def _scale_x(axes: Axes, entry: Entry) -> None:
    """Name the files, or take logarithms if the values span a factor of 20."""
    if entry.files:
        axes.set_xticks(range(1, len(entry.files) + 1), [f.replace("$", r"\$") for f in entry.files], rotation=30)
        return
    places = [summary.x for summary in entry.summaries]
    if min(places) > 0.0 and max(places) >= 20.0 * min(places):
        axes.set_xscale("log")
        plain_powers(axes.xaxis)


def _errors(entry: Entry, label: str) -> list[_Point]:
    return [(s.x, s.mean, s.standard_error) for s in entry.summaries if s.label == label and not math.isnan(s.mean)]


def _answers(entry: Entry, label: str) -> list[_Point]:
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


def render_page(sections: Sequence[Section]) -> str:
    """Return the whole page."""
    is_paper = any(section.entry.figure for section in sections)
    title = "Spectral Approximate Inference, regenerated" if is_paper else "Sweeps of spectralz"
    introduction = [_introduction(title, is_paper), _claims_of_all(sections), _contents(sections)]
    return render_shell(title, [*introduction, *map(_section, sections)])


def _introduction(title: str, is_paper: bool) -> str:
    what = (
        "The figures of Park, Yang, Yun and Shin, <cite>Spectral Approximate Inference</cite> (ICML 2019), computed "
        "again with spectralz, and the paper's claims about them compared with these numbers."
        if is_paper
        else "What spectralz measured in these sweeps: how far each method's log Z is from the exact one."
    )
    return (
        f"<header><h1>{escape(title)}</h1>\n<p>{what}</p>\n"
        "<p>An error is a method's log Z minus the exact one.</p></header>"
    )


def _claims_of_all(sections: Sequence[Section]) -> str:
    rows = [
        [Cell(_link(section.entry, section.entry.name)), Cell(escape(verdict.sentence)), Cell(_badge(verdict))]
        for section in sections
        for verdict in section.verdicts
    ]
    if not rows:
        return ""
    headings = ["figure", "the paper's claim", "verdict"]
    table = render_table("All claims of the paper that were checked", headings, rows, "claims overview")
    return (
        f'<section aria-labelledby="claims"><h2 id="claims">The paper\'s claims</h2>\n'
        f"<p>{escape(entries.overview(sections))}</p>\n{table}</section>"
    )


def _contents(sections: Sequence[Section]) -> str:
    items = "\n".join(f"<li>{_link(section.entry, section.entry.title)}</li>" for section in sections)
    return f'<nav aria-labelledby="contents"><h2 id="contents">Contents</h2>\n<ul>\n{items}\n</ul></nav>'


def _link(entry: Entry, text: str) -> str:
    return f'<a href="#{entry.anchor}">{escape(text)}</a>'


def _badge(verdict: Verdict) -> str:
    return f'<span class="badge {verdict.word.replace(" ", "-")}">{verdict.word}</span>'


def _section(section: Section) -> str:
    entry = section.entry
    return parts.section(
        entry.anchor,
        entry.title,
        f'<p class="finding">{escape(entries.finding(entry, section.verdicts))}</p>',
        _unfinished(entry),
        _figure(section),
        _claims(section),
        _summaries(entry),
        _failures(entry),
        details("Configuration", f"{terms(entries.facts(entry))}\n{_methods(entry)}"),
        _how_to_rerun(entry),
    )


def _unfinished(entry: Entry) -> str:
    if len(entry.rows) >= entry.rows_wanted:
        return ""
    return (
        f'<p class="notice">Not finished: {len(entry.rows)} of {entry.rows_wanted} rows are here. '
        "The command below continues where it stopped.</p>"
    )


def _figure(section: Section) -> str:
    entry, picture = section.entry, section.picture
    if isinstance(picture, str):
        return f'<p class="notice">{escape(picture)}</p>' if entry.rows else ""
    beside = ", ".join(f'<a href="./{quote(entry.name)}.{kind}">{kind.upper()}</a>' for kind in ("svg", "png", "csv"))
    caption = f'{entries.runs_in_words(entry)} <span class="files">Beside this page: {beside}.</span>'
    return figure_html(picture.shown, caption)


def _claims(section: Section) -> str:
    rows = [
        [Cell(escape(text)) for text in (verdict.sentence, entries.without_folders(verdict.measurement))]
        + [Cell(_badge(verdict))]
        for verdict in section.verdicts
    ]
    headings = ["the paper's claim", "our measurement", "verdict"]
    return render_table(f"Claims of {section.entry.name}", headings, rows, "claims") if rows else ""


def _summaries(entry: Entry) -> str:
    if not entry.rows:
        return ""
    columns: list[tuple[str, Callable[[Summary], Cell]]] = [
        ("method", lambda summary: Cell(escape(summary.label))),
        (entry.axis, lambda summary: Cell(escape(entry.place(summary.x)), summary.x)),
        ("mean |error| ± s.e.", lambda summary: Cell(entries.plus_minus(summary), summary.mean)),
        ("mean error, signed", lambda summary: _three_digits(summary.signed)),
        ("spread of |error|", lambda summary: _three_digits(summary.spread)),
        ("runs", lambda summary: _count(summary.count + summary.failures)),
        ("failures", lambda summary: _count(summary.failures)),
        ("mean seconds", lambda summary: _three_digits(summary.seconds)),
    ]
    rows = [[cell(summary) for _, cell in columns] for summary in entry.summaries]
    return render_table(f"Numbers of {entry.name}", [heading for heading, _ in columns], rows, "numbers sortable")


def _three_digits(value: float) -> Cell:
    return Cell(entries.three_digits(value), value)


def _count(number: int) -> Cell:
    return Cell(str(number), number)


def _failures(entry: Entry) -> str:
    counts = Counter((row.label, entries.without_folders(row.failure)) for row in entry.rows if row.failure)
    if not counts:
        return ""
    rows = [[Cell(escape(label)), Cell(escape(text)), _count(n)] for (label, text), n in counts.items()]
    table = render_table(f"Failures of {entry.name}", ["method", "message", "runs"], rows, "failures")
    return details(f"Runs without an answer ({counts.total()})", table)


def _methods(entry: Entry) -> str:
    """Return the methods with all their options, from the rows, or from the sweep before there are rows."""
    ours = {contestant.get("label"): bool(contestant.get("is_ours")) for contestant in entry.contestants}
    methods = {row.label: (row.method, row.options) for row in entry.rows}
    for contestant in entry.contestants:
        given = str(contestant.get("method", "")), json.dumps(contestant.get("options", {}))
        methods.setdefault(str(contestant.get("label", "")), given)
    rows = [
        [
            Cell(escape(label)),
            Cell(f"<code>{escape(method)}</code>"),
            Cell(_options(options)),
            Cell("beyond the paper" if ours.get(label) else "the paper" if entry.figure else ""),
        ]
        for label, (method, options) in methods.items()
    ]
    headings = ["label", "method", "options", "from"]
    if entry.figure is None:
        headings, rows = headings[:-1], [row[:-1] for row in rows]
    return render_table(f"Methods of {entry.name}", headings, rows, "methods")


def _options(text: str) -> str:
    """Return options as a list of ``name = value``; what is not JSON is shown as it is."""
    try:
        options = json.loads(text or "{}")
    except ValueError:
        options = None
    if not isinstance(options, dict):
        return f"<code>{escape(entries.without_folders(text))}</code>"
    return options_in_code(options)


def _how_to_rerun(entry: Entry) -> str:
    hint = (
        "" if entry.figure else f", with the configuration that made it (<code>{SWEEP}</code> beside the rows has it)"
    )
    command = escape(entries.command_to_rerun(entry))
    return parts.rerun(f"To run it again{hint}:", f"command for {entry.name}", command)


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
