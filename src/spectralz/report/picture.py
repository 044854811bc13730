"""The picture of an entry: drawn by its figure, or errors against the axis for any other sweep."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from spectralz.report.inline import any_letters, in_page
from spectralz.report.sentences import message_of
from spectralz.show import curves
from spectralz.show.canvas import empty_figure, saved

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from spectralz.report.entries import Entry

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
        figure = _figure(entry)
        svg = saved(figure, "svg", metadata={"Date": None, "Title": entry.title})
        figure.set_layout_engine("none")  # keep the layout found for the first format
        png = saved(figure, "png", dpi=144, metadata={"Title": entry.title})
        return Picture(svg, png, in_page(figure, alt))


def _figure(entry: Entry) -> Figure:
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
    curves.draw_legend(axes)


def _draw_errors(axes: Axes, lines: dict[str, list[_Point]], truths: Sequence[float]) -> None:
    """Draw errors on a logarithmic axis; errors that are zero, or only rounding, lie on its floor."""
    errors = [y for points in lines.values() for _, y, _ in points]
    floor, rounding = curves.floor_below(errors, truths)
    on_floor = [y for y in errors if y <= rounding]
    rank = 0
    for place, (label, points) in enumerate(lines.items()):
        style = _style(place)
        raised = [(x, y, bar) if y > rounding else (x, floor, 0.0) for x, y, bar in points]
        _draw_line(axes, style, label, raised, floor)
        below = [x for x, y, _ in points if y <= rounding]
        if below:
            curves.draw_at_floor(axes, below, floor, rank, style)
            rank += 1
    words = "0" if on_floor else ""
    if any(on_floor):
        words = f"≤ {10.0 ** math.ceil(math.log10(max(on_floor))):g}"
    curves.scale_errors(axes, [max(y, floor) for y in errors], floor, words)


def _style(place: int) -> dict[str, Any]:
    style = {"color": curves.COLORS[place % len(curves.COLORS)], "marker": curves.MARKERS[place % len(curves.MARKERS)]}
    return {**style, "linestyle": ("-", "--", ":")[place // len(curves.COLORS) % 3]}


def _draw_line(axes: Axes, style: dict[str, Any], label: str, points: list[_Point], floor: float = -math.inf) -> None:
    x, y, bars = zip(*points, strict=True) if points else ((), (), ())
    lower = [min(bar, height - floor) for height, bar in zip(y, bars, strict=True)]
    name = label.replace("$", r"\$")
    axes.errorbar(x, y, yerr=[lower, bars], label=name, capsize=2, markersize=5, **curves.above(y, floor), **style)


def _scale_x(axes: Axes, entry: Entry) -> None:
    """Name the files, or take logarithms if the values span a factor of 20."""
    if entry.files:
        axes.set_xticks(range(1, len(entry.files) + 1), [f.replace("$", r"\$") for f in entry.files], rotation=30)
        return
    places = [summary.x for summary in entry.summaries]
    if min(places) > 0.0 and max(places) >= 20.0 * min(places):
        axes.set_xscale("log")
        curves.plain_powers(axes.xaxis)


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
