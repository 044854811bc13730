"""Shared parts of the figures: means by method, fits of times, and the style of each method.

The paper's methods have solid lines and full markers. Ours, which go beyond the paper, are dashed and hollow, in the
color of the method that they improve. Figures draw from rows; nothing here runs a method.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from spectralz.show.canvas import (
    COLORS,
    MARKERS,
    above,
    check_format,
    draw_at_floor,
    draw_legend,
    empty_figure,
    plain_powers,
    saved,
    scale_errors,
)
from spectralz.sweeps import summarise

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from matplotlib.axes import Axes

    from spectralz.report import Figure
    from spectralz.sweeps import Contestant, Row, Summary

EXACT_COLOR = "#000000"
# Methods drawn in the color of another.
COUSINS = {"quadrature": "low_rank"}
DPI = 140
NOTHING = "nothing to draw: nothing is known"
# A time too short for the clock is drawn as this, in seconds.
SHORTEST_TIME = 1e-7


@dataclass(frozen=True)
class Style:
    """How a method is drawn."""

    color: str
    marker: str
    is_ours: bool

    def line(self) -> dict[str, Any]:
        """Return matplotlib's keywords for a line."""
        return {**self.points(), "linestyle": "--" if self.is_ours else "-", "linewidth": 1.4}

    def points(self) -> dict[str, Any]:
        """Return matplotlib's keywords for markers alone."""
        # Rings are wider, so that a method below its improvement is still visible.
        filling, size = ("none", 8.5) if self.is_ours else (self.color, 5.0)
        return {"color": self.color, "marker": self.marker, "markerfacecolor": filling, "markersize": size}


def means(rows: Iterable[Row]) -> dict[str, dict[float, Summary]]:
    """Return the means of each method, by label and position on the axis."""
    table: dict[str, dict[float, Summary]] = {}
    for summary in summarise(rows):
        table.setdefault(summary.label, {})[summary.x] = summary
    return table


def fitted_exponent(sizes: Sequence[float], seconds: Sequence[float]) -> float | None:
    """Return p of the power n^p that fits the times best in logarithms, or None without times at two sizes.

    Examples
    --------
    >>> round(fitted_exponent([100, 200, 400], [0.5, 2.0, 8.0]), 6)
    2.0
    """
    known = [(n, t) for n, t in zip(sizes, seconds, strict=True) if n > 0 and math.isfinite(t) and t > 0.0]
    if len({n for n, _ in known}) < 2:
        return None
    log_n, log_t = np.log(np.array(known, dtype=np.float64)).T
    centered = log_n - log_n.mean()
    return float(centered @ log_t / (centered @ centered))


def in_seconds(seconds: float) -> str:
    """Return a time as text for legends.

    Examples
    --------
    >>> in_seconds(0.0021), in_seconds(0.35), in_seconds(2.0), in_seconds(float("nan"))
    ('2.1 ms', '350 ms', '2 s', 'no time')
    """
    if not math.isfinite(seconds):
        return "no time"
    return f"{short(seconds * 1e3)} ms" if seconds < 0.9995 else f"{short(seconds)} s"


def short(number: float) -> str:
    """Return two digits of a number that is not negative, or all digits before the point.

    Examples
    --------
    >>> short(0.01234), short(56.78), short(1234.5)
    ('0.012', '57', '1234')
    """
    return f"{number:.2g}" if number < 99.5 else f"{number:.0f}"


def styles(contestants: Sequence[Contestant]) -> dict[str, Style]:
    """Return how each contestant is drawn, by label."""
    drawn: dict[str, Style] = {}
    looks = {"exact": (EXACT_COLOR, "*")}
    for contestant in sorted(contestants, key=lambda one: one.is_ours):
        method = contestant.build().name
        place = len({style.color for style in drawn.values()} - {EXACT_COLOR})
        next_look = COLORS[place % len(COLORS)], MARKERS[place % len(MARKERS)]
        first_look = looks.setdefault(COUSINS.get(method, method), next_look)
        drawn[contestant.label] = Style(*(first_look if contestant.is_ours else next_look), contestant.is_ours)
    return drawn


def draw_errors(
    rows: Sequence[Row], axes: Axes, *, contestants: Sequence[Contestant], floor: float, xlabel: str
) -> None:
    """Draw mean |error| against the axis on logarithmic scales, with bars of one standard error.

    Parameters
    ----------
    rows, axes
        What to draw, and where.
    contestants
        The methods, in the legend's order.
    floor
        The height at which smaller errors, and zeros, are drawn, hollow and in rings; the axis says so.
    xlabel
        The label of the axis.
    """
    table, looks = means(rows), styles(contestants)
    rank = 0
    for label, places in _of(table, contestants):
        look = {**looks[label].line(), "capsize": 2.5}
        draw_points(axes, label, places.values(), floor, mean_time(rows, label), **look)
        rank += mark_floor(axes, places.values(), looks[label], floor, rank)
    axes.set(xlabel=xlabel, ylabel="mean |error| of log Z")
    known = known_errors(places for _, places in _of(table, contestants))
    if known:
        scale_errors(axes, known, floor, words_at(floor, known))
    _finish(axes, table, looks, is_empty=not known)


def draw_times(rows: Sequence[Row], axes: Axes, *, contestants: Sequence[Contestant], xlabel: str) -> None:
    """Draw mean running time against size on logarithmic scales, with bars of one standard error and fitted powers."""
    table, looks = means(rows), styles(contestants)
    for label, places in _of(table, contestants):
        timed = [summary for summary in places.values() if math.isfinite(summary.seconds)]
        sizes, seconds = [summary.x for summary in timed], [max(summary.seconds, SHORTEST_TIME) for summary in timed]
        bars = [summary.seconds_spread / max(summary.count, 1) ** 0.5 for summary in timed]
        power = fitted_exponent(sizes, seconds)
        name = label if power is None else f"{label} (n^{power:.1f})"
        # a bar to 0 has no end on a logarithmic scale
        lower = [min(bar, 0.9 * mean) for bar, mean in zip(bars, seconds, strict=True)]
        axes.errorbar(sizes, seconds, yerr=[lower, bars], capsize=2.5, label=name, **looks[label].line())
    axes.set(xlabel=xlabel, ylabel="mean running time (seconds)")
    is_empty = not any(row.seconds is not None and row.label in looks for row in rows)
    if not is_empty:
        axes.set_yscale("log")
        plain_powers(axes.yaxis)
    _finish(axes, table, looks, is_empty=is_empty)


def picture(figure: Figure, rows: Sequence[Row], file_format: str = "png") -> bytes:
    """Return a figure drawn from rows, as the bytes of a file.

    Raises
    ------
    OptionError
        If the format is not one of ``FORMATS``.
    """
    check_format(file_format)
    canvas = empty_figure()
    axes = canvas.add_subplot()
    figure.draw(rows, axes)
    axes.set_title(figure.title, fontsize=11, pad=20)
    return saved(canvas, file_format, dpi=DPI)


def mark_failures(axes: Axes, table: Mapping[str, Mapping[float, Summary]], looks: Mapping[str, Style]) -> None:
    """Draw crosses at the top of the axes where runs of a method failed."""
    failed = {label: [x for x, summary in places.items() if summary.failures] for label, places in table.items()}
    for number, (label, xs) in enumerate((label, xs) for label, xs in failed.items() if xs):
        if label in looks:
            height = [0.97 - 0.035 * number] * len(xs)
            top, color = axes.get_xaxis_transform(), looks[label].color
            axes.plot(xs, height, "x", color=color, transform=top, label=f"x: runs of {label} failed", clip_on=False)


def say(axes: Axes, words: str) -> None:
    """Write a sentence in the middle of empty axes."""
    axes.text(0.5, 0.5, words, transform=axes.transAxes, ha="center", va="center", color="#555555")


def known_errors(table: Iterable[Mapping[float, Summary]]) -> list[float]:
    """Return all known mean errors."""
    return [summary.mean for places in table for summary in places.values() if math.isfinite(summary.mean)]


def words_at(floor: float, errors: Iterable[float]) -> str:
    """Return the label of the axis at the floor, empty if all errors are above it."""
    return f"≤ {floor:g}" if any(error <= floor for error in errors) else ""


def mark_floor(
    axes: Axes, places: Iterable[Summary], style: Style, floor: float, rank: int, offset: float = 0.0
) -> bool:
    """Mark the errors at the floor, and return whether there are any.

    Parameters
    ----------
    axes, style, floor
        Where and how to draw.
    places
        A method's errors.
    rank
        How many methods already have errors there.
    offset
        How far they are shifted to the right.
    """
    x = [summary.x + offset for summary in places if summary.mean <= floor]
    if x:
        draw_at_floor(axes, x, floor, rank, {"color": style.color, "marker": style.marker})
    return bool(x)


def draw_points(
    axes: Axes, label: str, places: Iterable[Summary], floor: float, time: str, offset: float = 0.0, **look: Any
) -> None:
    """Draw the known errors of a method, none below the floor, with bars of one standard error.

    The legend has the method's time, and says if all of its errors are below the floor.
    """
    shown = [summary for summary in places if math.isfinite(summary.mean)]
    height = np.array([max(summary.mean, floor) for summary in shown])
    bars = np.array([summary.standard_error if summary.mean > floor else 0.0 for summary in shown])
    is_below = bool(shown) and max(summary.mean for summary in shown) <= floor
    axes.errorbar(
        [summary.x + offset for summary in shown],
        height,
        yerr=[np.minimum(bars, height - floor), bars] if bars.any() else None,  # a single model has no spread
        label=f"{label}: below {floor:g} ({time})" if is_below else f"{label} ({time})",
        **above(height, floor),
        **look,
    )


def _finish(
    axes: Axes, table: Mapping[str, Mapping[float, Summary]], looks: Mapping[str, Style], *, is_empty: bool
) -> None:
    mark_failures(axes, table, looks)
    axes.grid(alpha=0.25, which="major")
    if is_empty:
        say(axes, NOTHING)
        axes.set_yticks([])
    else:
        axes.set_xscale("log")
    ticks = sorted({x for places in table.values() for x in places})
    axes.set_xticks(ticks, [f"{x:g}" for x in ticks])
    axes.tick_params(axis="x", which="minor", bottom=False, labelbottom=False)
    shown = [looks[label].is_ours for label in table if label in looks]
    draw_legend(axes, title="solid: the paper's methods; dashed: ours" if any(shown) else None)


def _of(
    table: Mapping[str, Mapping[float, Summary]], contestants: Sequence[Contestant]
) -> list[tuple[str, Mapping[float, Summary]]]:
    return [(one.label, table[one.label]) for one in contestants if one.label in table]


def mean_time(rows: Iterable[Row], label: str) -> str:
    """Return the mean time of a method as text."""
    times = [row.seconds for row in rows if row.label == label and row.seconds is not None]
    return in_seconds(math.fsum(times) / len(times) if times else math.nan)
