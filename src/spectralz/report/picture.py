"""The picture of an entry: as its figure draws it, or errors against the axis for anybody's sweep."""

from __future__ import annotations

import base64
import io
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from spectralz.report.sentences import message_of
from spectralz.show.curves import COLORS, MARKERS, draw_legend, empty_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from spectralz.report.entries import Entry

    _Point = tuple[float, float, float]  # x, y and the length of its bar

__all__ = ["Picture", "draw"]

# A drawing with more points than this many bytes of SVG is shown as pixels, so that the page stays quick.
LARGEST_SVG = 1_500_000


@dataclass(frozen=True)
class Picture:
    """A drawing as files, with its size on the page in pixels."""

    svg: bytes
    png: bytes
    width: int
    height: int

    @property
    def source(self) -> str:
        """The picture as an address that holds all of it."""
        kind, content = ("svg+xml", self.svg) if len(self.svg) <= LARGEST_SVG else ("png", self.png)
        return f"data:image/{kind};base64,{base64.b64encode(content).decode()}"


def draw(entry: Entry) -> Picture | str:
    """Return the picture of an entry, or why there is none."""
    if not entry.rows:
        return "There are no rows yet."
    try:
        return _drawn(entry)
    except Exception as error:
        return f"The drawing failed with {message_of(error)}"


def _drawn(entry: Entry) -> Picture:
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
    return Picture(svg.getvalue(), png.getvalue(), width, height)


def _draw_sweep(entry: Entry, axes: Axes) -> None:
    """Draw anybody's sweep: mean |error| with its standard error against x, or log Z where there is no truth."""
    has_truth = any(not math.isnan(s.mean) for s in entry.summaries)
    labels = list(dict.fromkeys(row.label for row in entry.rows))
    heights: list[float] = []
    for place, label in enumerate(labels):
        points = [p for p in (_errors if has_truth else _answers)(entry, label) if not math.isnan(p[1])]
        heights += [y for _, y, _ in points]
        _draw_line(axes, place, label, points)
    if has_truth and any(y > 0 for y in heights):
        axes.set_yscale("log", nonpositive="clip")
        # An error of zero, or of rounding alone, would otherwise squeeze the rest into a corner.
        smallest = min(y for y in heights if y > 0)
        axes.set_ylim(bottom=max(smallest / 3.0, 1e-16))
    _scale_x(axes, entry)
    axes.set(xlabel=entry.axis, ylabel="mean |error| of log Z" if has_truth else "log Z (mean and standard error)")
    axes.grid(alpha=0.3)
    draw_legend(axes)


def _draw_line(axes: Axes, place: int, label: str, points: list[_Point]) -> None:
    style: dict[str, Any] = {"color": COLORS[place % len(COLORS)], "marker": MARKERS[place % len(MARKERS)]}
    style["linestyle"] = ("-", "--", ":")[place // len(COLORS) % 3]
    x, y, bars = zip(*points, strict=True) if points else ((), (), ())
    axes.errorbar(x, y, yerr=bars, label=label.replace("$", r"\$"), capsize=2, markersize=5, **style)


def _scale_x(axes: Axes, entry: Entry) -> None:
    """Name the files, or take logarithms where the values span a factor of 20."""
    if entry.files:
        axes.set_xticks(range(1, len(entry.files) + 1), [f.replace("$", r"\$") for f in entry.files], rotation=30)
        return
    places = [summary.x for summary in entry.summaries]
    if min(places) > 0.0 and max(places) >= 20.0 * min(places):
        axes.set_xscale("log")


def _errors(entry: Entry, label: str) -> list[_Point]:
    return [(s.x, s.mean, s.standard_error) for s in entry.summaries if s.label == label]


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
