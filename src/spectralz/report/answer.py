"""Pages of a single answer and of a comparison: one file each, with the command line's output and a picture."""

from __future__ import annotations

import math
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from spectralz.report.entries import without_folders
from spectralz.report.parts import (
    Cell,
    any_letters,
    details,
    facts,
    figure_html,
    findings,
    how_to_rerun,
    in_page,
    options_in_code,
    render_shell,
    render_table,
    section,
    terms,
)
from spectralz.result import Kind, plain
from spectralz.show import tables
from spectralz.show.numbers import counted, probable, proven
from spectralz.show.plots import bracket_figure, comparison_figure, means_figure
from spectralz.show.text import disagreement

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from matplotlib.figure import Figure

    from spectralz.result import AnyMethod, Comparison, Estimate, Marginals, Trial

# Most rows of the table of means, so that the page stays quick.
MOST_MEANS = 1000


def estimate_page(
    estimate: Estimate, title: str, model_text: str, marginals: Marginals | None = None, *, command: str = ""
) -> str:
    """Return an answer as one HTML page that needs no network.

    The page has the date, the seed and the versions, so that the answer can be found again.

    Parameters
    ----------
    estimate
        The answer.
    title
        The heading of the page, as plain text.
    model_text
        Which model it is of, as plain text.
    marginals
        The means of the same run, to show them too.
    command
        The command that made the page, if one did.

    Returns
    -------
    str
        The page, to be written to a file in UTF-8.

    Examples
    --------
    >>> import spectralz as sz
    >>> page = estimate_page(sz.log_z(sz.generators.grid(side=3, strength=1.0, seed=0)), "A grid", "9 spins")
    >>> page[:15], "<h1>A grid</h1>" in page, "http:" in page
    ('<!DOCTYPE html>', True, False)
    """
    parts = [
        _header(title, tables.headline(estimate), _trust(estimate)),
        _warnings(estimate),
        section("answer", "The answer", _proof_and_status(estimate), _bracket(estimate), _tried(estimate.tried)),
        "" if marginals is None else _means(marginals),
        section(
            "run",
            "How it was found",
            terms([*_facts(estimate, model_text), *facts({estimate.method.name: estimate.method})]),
            how_to_rerun(command, [] if estimate.kind is Kind.EXACT else [estimate.method]),
            findings(estimate.details, str(estimate.status)),
            _options([estimate.method]),
        ),
    ]
    return render_shell(without_folders(title), parts)


def comparison_page(comparison: Comparison, title: str, model_text: str, *, command: str = "") -> str:
    """Return a comparison of methods as one HTML page that needs no network.

    The page has the date, the seeds and the versions, so that the answers can be found again.

    Parameters
    ----------
    comparison
        The comparison.
    title
        The heading of the page, as plain text.
    model_text
        Which model it is of, as plain text.
    command
        The command that made the page, if one did.

    Returns
    -------
    str
        The page, to be written to a file in UTF-8.

    Examples
    --------
    >>> import spectralz as sz
    >>> table = sz.compare(sz.generators.grid(side=3, strength=1.0, seed=0), ["exact", "bp"])
    >>> page = comparison_page(table, "A grid", "9 spins")
    >>> page.count("<img"), "BP" in page, "<td" in page
    (1, False, True)
    """
    seconds = math.fsum(row.estimate.seconds for row in comparison if row.estimate is not None)
    known = [
        ("Model", model_text),
        ("Time", f"{seconds:.3g} s in all"),
        *facts({row.name: row.method for row in comparison}),
    ]
    methods = [row.method for row in comparison]
    parts = [
        _header(title, _reference(comparison), _closest(comparison)),
        section("methods", "The methods", _compared_picture(comparison), _compared(comparison)),
        section(
            "run",
            "How it was found",
            terms(known),
            how_to_rerun(command, methods),
            _options(methods),
        ),
    ]
    return render_shell(without_folders(title), parts)


def _header(title: str, headline: str, sentence: str) -> str:
    return (
        f"<header><h1>{escape(without_folders(title))}</h1>\n"
        f'<p class="headline">{escape(headline)}</p>\n<p>{escape(sentence)}</p></header>'
    )


def _trust(estimate: Estimate) -> str:
    """Return in words what the number is and whether to trust it."""
    if estimate.kind is Kind.EXACT:
        return "This number is exact, up to rounding."
    if estimate.kind is not Kind.ESTIMATE:
        return f"This number is a proven {estimate.kind}: it is correct as a bound, and says nothing more."
    if not estimate.trusted:
        return (
            "This is an estimate that is not to be trusted: it has no checks, one failed, or something contradicts it."
        )
    error = "" if estimate.std_error is None else " The number after ± is the scale of its remaining error."
    checks = tables.checks(estimate) or "not checked by a method of another kind"
    return f"This is a trusted estimate: its own checks hold, and nothing contradicts it. It was {checks}.{error}"


def _warnings(estimate: Estimate) -> str:
    notices = [f"{disagreement(estimate)}."] if estimate.disagreeing else []
    if estimate.interrupted:
        notices.append("The run was interrupted; this is the best answer so far.")
    return "\n".join(f'<p class="notice">{escape(notice)}</p>' for notice in notices)


def _proof_and_status(estimate: Estimate) -> str:
    known = [("Proven", proven(estimate.lower, estimate.upper)), ("Status", str(estimate.status))]
    if estimate.interval is not None:
        known.insert(1, ("Not proven, but probable", probable(estimate.interval)))
    return terms(known)


def _bracket(estimate: Estimate) -> str:
    alt = f"{tables.headline(estimate)}. {proven(estimate.lower, estimate.upper)}."
    caption = "The answer in its proven bounds, if there are any, and the answer of each method that was tried."
    return _drawn(lambda: bracket_figure(estimate), alt, caption)


def _compared_picture(comparison: Comparison) -> str:
    if not any(row.estimate is not None for row in comparison):
        return ""
    alt = f"{_reference(comparison)} {_closest(comparison)} The numbers are in the table below."
    caption = "log Z by each method, with its proven bounds; the line is the exact value."
    if comparison.reference is None:
        caption = "log Z by each method, with its proven bounds."
    return _drawn(lambda: comparison_figure(comparison), alt, caption)


def _drawn(draw: Callable[[], Figure], alt: str, caption: str) -> str:
    with any_letters():
        return figure_html(in_page(draw(), alt), escape(caption))


def _tried(trials: Sequence[Trial]) -> str:
    if not trials:
        return ""
    shown = tables.tried(trials)
    numbers = [
        {1: _first(trial.log_z, trial.lower, trial.upper), 2: _first(trial.std_error), 3: trial.seconds}
        for trial in trials
    ]
    headings = ["error" if heading == "±" else heading for heading in shown.headings]
    return _numbers("What was tried", headings, shown.rows, numbers)


def _compared(comparison: Comparison) -> str:
    shown, exact = tables.comparison(comparison), comparison.reference
    numbers = []
    for row in comparison:
        answer = row.estimate
        error = None if answer is None or exact is None else answer.log_z - exact.log_z
        known = None if answer is None else (answer.log_z, error, answer.lower, answer.upper, answer.seconds)
        numbers.append(dict(zip((1, 2, 4, 5, 6), map(_first, known or [None] * 5), strict=True)))
    return _numbers("The methods", shown.headings, shown.rows, numbers)


def _numbers(
    caption: str,
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    numbers: Sequence[dict[int, float]],
) -> str:
    """Return a sortable table; ``numbers`` has the values of the columns that are numbers."""
    cells = [
        [Cell(escape(without_folders(text)), values.get(place)) for place, text in enumerate(row)]
        for row, values in zip(rows, numbers, strict=True)
    ]
    return render_table(caption, headings, cells, "numbers sentences sortable")


def _first(*values: float | None) -> float:
    return next((value for value in values if value is not None), math.nan)


def _means(marginals: Marginals) -> str:
    n = len(marginals.mean)
    shown = min(n, MOST_MEANS)
    noun = "unit" if marginals.values == "01" else "spin"
    rest = f"<p>The table has the first {shown} of {counted(n, noun)}.</p>" if shown < n else ""
    caption = f"Means of {counted(n, noun)} ({marginals.kind})."
    picture = _drawn(lambda: means_figure(marginals), caption, caption) if n else ""
    return section("means", "The marginals", picture, rest, _table_of_means(marginals, shown) if n else "")


def _table_of_means(marginals: Marginals, shown: int) -> str:
    is_zero_one = marginals.values == "01"
    low, high = tables.state_names(marginals)
    # The error is the last column, if there is one.
    columns = [marginals.probability] if marginals.std_error is None else [marginals.probability, marginals.std_error]
    numbers = zip(marginals.mean.tolist(), np.column_stack(columns).tolist(), strict=True)
    rows = [
        [
            Cell(escape(label)),
            Cell(f"{mean:.6f}" if is_zero_one else f"{mean:+.6f}", mean),
            *(Cell(f"{value:.6g}", value) for value in values),
        ]
        for label, (mean, values) in list(zip(tables.spin_labels(marginals), numbers, strict=True))[:shown]
    ]
    headings = ["unit" if is_zero_one else "spin", "mean", f"P({low})", f"P({high})"]
    headings += [] if marginals.std_error is None else ["error"]
    return render_table("Means", headings, rows, "numbers sortable")


def _facts(estimate: Estimate, model_text: str) -> list[tuple[str, str]]:
    return [
        ("Model", model_text),
        ("Method", estimate.method.name),
        ("Time", f"{estimate.seconds:.3g} s"),
        ("Iterations", "" if estimate.iterations is None else str(estimate.iterations)),
    ]


def _options(methods: Sequence[AnyMethod]) -> str:
    rows = [
        [Cell(f"<code>{escape(method.name)}</code>"), Cell(options_in_code(plain(vars(method))))] for method in methods
    ]
    table = render_table("Methods and their options", ["method", "options"], rows, "methods")
    return details("Options", table) if rows else ""


def _reference(comparison: Comparison) -> str:
    count = counted(len(comparison), "method")
    failures = sum(row.estimate is None for row in comparison)
    failed = f", {failures} of them without an answer" if failures else ""
    exact = "" if comparison.reference is None else f"log Z = {comparison.reference.log_z:.12g} (exact). "
    return f"{exact}{count}{failed}."


def _closest(comparison: Comparison) -> str:
    """Say which of the methods that are not exact is closest."""
    exact = comparison.reference
    if exact is None:
        return "None of them is exact, so there are no errors to compare."
    others = [(row.name, row.estimate) for row in comparison if row.estimate and row.estimate.kind is not Kind.EXACT]
    if not others:
        return "Every answer is exact."
    name, error = min(((name, one.log_z - exact.log_z) for name, one in others), key=lambda pair: abs(pair[1]))
    return f"Of the methods that are not exact, {name} is closest, with an error of {error:.3g}."
