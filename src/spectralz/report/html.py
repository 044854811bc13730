"""The page of sweeps in HTML; all text from users is escaped."""

from __future__ import annotations

import json
from collections import Counter
from html import escape
from typing import TYPE_CHECKING
from urllib.parse import quote

from spectralz.report import parts, sentences
from spectralz.report.inline import figure_html
from spectralz.report.parts import Cell, details, options_in_code, render_table, terms
from spectralz.report.shell import render_shell
from spectralz.sweeps.store import SWEEP

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from spectralz.report.entries import Entry
    from spectralz.report.section import Section, Verdict
    from spectralz.sweeps import Summary


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
        f"<p>{escape(sentences.overview(sections))}</p>\n{table}</section>"
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
        f'<p class="finding">{escape(sentences.finding(entry, section.verdicts))}</p>',
        _unfinished(entry),
        _figure(section),
        _claims(section),
        _summaries(entry),
        _failures(entry),
        details("Configuration", f"{terms(sentences.facts(entry))}\n{_methods(entry)}"),
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
    caption = f'{sentences.runs_in_words(entry)} <span class="files">Beside this page: {beside}.</span>'
    return figure_html(picture.shown, caption)


def _claims(section: Section) -> str:
    rows = [
        [Cell(escape(text)) for text in (verdict.sentence, sentences.without_folders(verdict.measurement))]
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
        ("mean |error| ± s.e.", lambda summary: Cell(sentences.plus_minus(summary), summary.mean)),
        ("mean error, signed", lambda summary: _three_digits(summary.signed)),
        ("spread of |error|", lambda summary: _three_digits(summary.spread)),
        ("runs", lambda summary: _count(summary.count + summary.failures)),
        ("failures", lambda summary: _count(summary.failures)),
        ("mean seconds", lambda summary: _three_digits(summary.seconds)),
    ]
    rows = [[cell(summary) for _, cell in columns] for summary in entry.summaries]
    return render_table(f"Numbers of {entry.name}", [heading for heading, _ in columns], rows, "numbers sortable")


def _three_digits(value: float) -> Cell:
    return Cell(sentences.three_digits(value), value)


def _count(number: int) -> Cell:
    return Cell(str(number), number)


def _failures(entry: Entry) -> str:
    counts = Counter((row.label, sentences.without_folders(row.failure)) for row in entry.rows if row.failure)
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
        return f"<code>{escape(sentences.without_folders(text))}</code>"
    return options_in_code(options)


def _how_to_rerun(entry: Entry) -> str:
    hint = (
        "" if entry.figure else f", with the configuration that made it (<code>{SWEEP}</code> beside the rows has it)"
    )
    command = escape(sentences.command_to_rerun(entry))
    return parts.rerun(f"To run it again{hint}:", f"command for {entry.name}", command)
