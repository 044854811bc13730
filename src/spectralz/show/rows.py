"""Answers drawn below each other, one row per method, on one Axes: markers, error bars, brackets and legends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from spectralz.result import Kind, Verdict
from spectralz.show.numbers import number_of, probability, sides_in_words, with_error

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from spectralz.result import Bounds, BoundsRow, Comparison, Estimate, Interval, Trial

COLORS = {
    Kind.EXACT: "#1e8449",
    Kind.LOWER_BOUND: "#2471a3",
    Kind.UPPER_BOUND: "#c0392b",
    Kind.ESTIMATE: "#7d6608",
}
MARKERS = {Kind.EXACT: "D", Kind.LOWER_BOUND: ">", Kind.UPPER_BOUND: "<", Kind.ESTIMATE: "o"}
# If the estimates together take less than this share of the picture's width, they get a panel of their own.
CROWDED = 0.15
# A picture whose width is a smaller share of log Z would show rounding, and numbers too long for their ticks.
LEAST_SPAN = 1e-6
# The margin on both sides of a bracket, in widths of the bracket.
MARGIN = 0.25
# Markers of methods that the answer does not rest on are hollow.
TRUSTED = (Verdict.CHOSEN, Verdict.AGREES, Verdict.BOUND)
# Ends of an interval with a stated probability are dashed, as they are not proven.
INTERVAL: dict[str, Any] = {"color": "#6c3483", "linewidth": 1.5, "linestyle": (0, (4, 3))}
BAR: dict[str, Any] = {"linewidth": 5, "solid_capstyle": "butt"}
NUMBER: dict[str, Any] = {"verticalalignment": "center", "fontsize": "small"}
LEGEND: dict[str, Any] = {"frameon": False, "fontsize": "small", "columnspacing": 1.2, "handletextpad": 0.6}
# From the lower edge of an Axes to its legend, in points; the numbers and the name of the axis are between them.
LEGEND_DISTANCE = 40.0


@dataclass(frozen=True, kw_only=True)
class Row:
    """One line of a picture; what is None is not drawn."""

    label: str
    note: str = ""
    kind: Kind
    log_z: float | None
    lower: float | None
    upper: float | None
    std_error: float | None
    is_filled: bool
    is_doubted: bool = False

    @property
    def reach(self) -> list[float]:
        """The ends of the error bar."""
        error = 2.0 * (self.std_error or 0.0)
        return [] if self.log_z is None else [self.log_z - error, self.log_z + error]

    @property
    def number(self) -> str:
        """The answer as text."""
        if self.log_z is None:
            return sides_in_words(self.lower, self.upper)
        if self.kind is Kind.LOWER_BOUND:
            return sides_in_words(self.log_z, None)
        if self.kind is Kind.UPPER_BOUND:
            return sides_in_words(None, self.log_z)
        return f"{self.log_z:.8g}" if self.std_error is None else with_error(self.log_z, self.std_error)


def rows_of_answer(result: Estimate) -> list[Row]:
    """Return the answer and below it each method that was tried."""
    return [_row_of(result, f"answer  ({result.seconds:.2g} s)"), *map(_row_tried, result.tried)]


def rows_of_comparison(result: Comparison) -> list[Row]:
    """Return the methods that did not fail."""
    shown = [(row.name, row.estimate) for row in result if row.estimate is not None]
    return [_row_of(answer, f"{name}  ({answer.seconds:.2g} s)") for name, answer in shown]


def _row_of(estimate: Estimate, label: str) -> Row:
    return Row(
        label=label,
        kind=estimate.kind,
        log_z=estimate.log_z,
        lower=estimate.lower,
        upper=estimate.upper,
        std_error=estimate.std_error,
        is_filled=estimate.status.converged,
    )


def _row_tried(trial: Trial) -> Row:
    kind = Kind.ESTIMATE
    if trial.verdict is Verdict.BOUND and (trial.lower is None) != (trial.upper is None):
        kind = Kind.LOWER_BOUND if trial.upper is None else Kind.UPPER_BOUND
    bound = trial.upper if trial.lower is None else trial.lower
    return Row(
        label=f"{trial.method}  ({trial.seconds:.2g} s)",
        note=str(trial.verdict),
        kind=kind,
        log_z=bound if kind is not Kind.ESTIMATE else trial.log_z,
        lower=trial.lower,
        upper=trial.upper,
        std_error=trial.std_error,
        is_filled=trial.verdict in TRUSTED,
        is_doubted=trial.verdict is Verdict.NOT_TRUSTED,
    )


def zoom(rows: Sequence[Row]) -> tuple[float, float] | None:
    """Return the ends of a panel for the estimates alone, or None if the whole picture shows them well enough."""
    near = [value for row in rows if row.kind is Kind.ESTIMATE and not row.is_doubted for value in row.reach]
    bounds = [bound for bound in (rows[0].lower, rows[0].upper) if bound is not None]
    if not near or not bounds:
        return None
    span, whole = max(near) - min(near), max(*near, *bounds) - min(*near, *bounds)
    return (min(near) - 0.2 * span, max(near) + 0.2 * span) if 0.0 < span < CROWDED * whole else None


def draw_answer(axes: Axes, result: Estimate, rows: Sequence[Row], *, is_numbered: bool) -> None:
    """Draw an answer in its bracket and what was tried; numbers and verdicts on the right, otherwise in the labels."""
    _draw_rows(axes, rows, [row.label if is_numbered or not row.note else f"{row.label}\n{row.note}" for row in rows])
    if result.lower is not None and result.upper is not None:
        left, right = _around(result.lower, result.upper)
        axes.set_xlim(left, right)
        for place, row in enumerate(rows):
            if row.log_z is not None:
                _point_beyond(axes, place, row.log_z, row.kind, is_numbered=not is_numbered)
        axes.axvspan(result.lower, result.upper, color=COLORS[result.kind], alpha=0.07, zorder=0)
    _draw_interval(axes, result.interval)
    axes.axvline(result.log_z, color=COLORS[result.kind], linewidth=1, alpha=0.5, zorder=0)
    for label in axes.get_yticklabels()[:1]:  # there are none if a panel shares those of its neighbor
        label.set_fontweight("bold")
    if is_numbered:
        # The sign of a bound shows that it is a bound.
        notes = ("" if row.note == Verdict.BOUND else row.note for row in rows)
        add_numbers(axes, (f"{row.number}   {note}".strip() for row, note in zip(rows, notes, strict=True)))


def draw_comparison(axes: Axes, result: Comparison, rows: Sequence[Row]) -> None:
    """Draw methods below each other, and the exact value if there is one."""
    _draw_rows(axes, rows, [row.label for row in rows])
    if result.reference is not None:
        axes.axvline(result.reference.log_z, color=COLORS[Kind.EXACT], linewidth=1, zorder=0)


def draw_bounds(axes: Axes, result: Bounds) -> None:
    """Draw the values that each method allows, and the bracket."""
    axes.set_xlim(_around_bounds(result))
    for place, row in enumerate(result.rows):
        _draw_sides(axes, place, row)
    _set_rows(axes, [f"{row.method}  ({row.seconds:.2g} s)" for row in result.rows])
    axes.axvspan(result.lower, result.upper, color="gray", alpha=0.12, zorder=0)
    _draw_interval(axes, result.interval)
    axes.axvline(result.lower, color=COLORS[Kind.LOWER_BOUND], linewidth=1, zorder=0)
    axes.axvline(result.upper, color=COLORS[Kind.UPPER_BOUND], linewidth=1, zorder=0)
    add_numbers(axes, (sides_in_words(row.lower, row.upper) or "no bound" for row in result.rows))


def _draw_interval(axes: Axes, interval: Interval | None) -> None:
    """Draw the ends of an interval with a stated probability, dashed: they are not proven."""
    if interval is None:
        return
    for end in (interval.low, interval.high):
        if end is not None:
            axes.axvline(end, zorder=0, **INTERVAL)


def interval_handles(interval: Interval | None) -> list[Artist]:
    """Return the legend for the ends of an interval, if there is one."""
    if interval is None:
        return []
    ends = "lower end" if interval.high is None else "ends"
    return [_handle(label=f"{ends} {probability(interval.level)}", **INTERVAL)]


def _around(lower: float, upper: float) -> tuple[float, float]:
    margin = MARGIN * max(upper - lower, LEAST_SPAN * max(1.0, abs(lower)))
    return lower - margin, upper + margin


def _around_bounds(result: Bounds) -> tuple[float, float]:
    """Return the ends of a picture of the bracket; if the bracket is only rounding, with half of the other bounds."""
    lower, upper = result.lower, result.upper
    if result.width > LEAST_SPAN * max(1.0, abs(lower)):
        return _around(lower, upper)
    beyond = [lower - row.lower for row in result.rows if row.lower is not None and row.lower < lower]
    beyond += [row.upper - upper for row in result.rows if row.upper is not None and row.upper > upper]
    reach = (1.0 + MARGIN) * sorted(beyond)[(len(beyond) - 1) // 2] if beyond else 0.0
    return _around(lower - reach, upper + reach)


def _point_beyond(axes: Axes, place: int, value: float, kind: Kind, *, is_numbered: bool) -> None:
    """If a value lies outside the picture, point to it from the nearer edge."""
    left, right = axes.get_xlim()
    if left <= value <= right:
        return
    is_right = value > right
    number = number_of(kind, value, 5) if is_numbered else ""
    x, words, side = (0.99, f"{number} →", "right") if is_right else (0.01, f"← {number}", "left")
    inside = axes.get_yaxis_transform()
    axes.text(x, place, words.strip(), transform=inside, horizontalalignment=side, color=COLORS[kind], **NUMBER)


def _draw_sides(axes: Axes, place: int, row: BoundsRow) -> None:
    """Draw the values that a bounder allows, within the picture, and its bounds."""
    left, right = axes.get_xlim()
    sides = ((Kind.LOWER_BOUND, row.lower), (Kind.UPPER_BOUND, row.upper))
    proved = [(kind, value) for kind, value in sides if value is not None]
    if not proved:
        return
    color = COLORS[proved[0][0]] if len(proved) == 1 else "gray"
    ends = [left if row.lower is None else max(row.lower, left), right if row.upper is None else min(row.upper, right)]
    if ends[0] < ends[1]:
        axes.plot(ends, [place, place], color=color, alpha=0.25, **BAR)
    for kind, value in proved:
        axes.plot(value, place, MARKERS[kind], color=COLORS[kind])
        _point_beyond(axes, place, value, kind, is_numbered=False)


def _draw_rows(axes: Axes, rows: Sequence[Row], labels: Sequence[str]) -> None:
    for place, row in enumerate(rows):
        _draw_row(axes, place, row)
    _set_rows(axes, labels)
    axes.margins(x=0.12)
    left, right = axes.get_xlim()
    least = LEAST_SPAN * max(1.0, abs(left))
    if right - left < least:
        middle = 0.5 * (left + right)
        axes.set_xlim(middle - least, middle + least)


def _set_rows(axes: Axes, labels: Sequence[str]) -> None:
    """Name the rows, from top to bottom, and the axis of log Z."""
    axes.set_yticks(range(len(labels)), labels)
    axes.set_ylim(max(len(labels), 1) - 0.5, -0.5)
    axes.set(xlabel="log Z")
    axes.ticklabel_format(axis="x", useOffset=False)
    axes.grid(axis="x", alpha=0.3)


def _draw_row(axes: Axes, place: int, row: Row) -> None:
    color = COLORS[row.kind]
    ends = [value for value in (row.lower, row.log_z, row.upper) if value is not None]
    if len(ends) > 1:
        axes.plot([min(ends), max(ends)], [place, place], color=color, alpha=0.25, **BAR)
    for bound in (row.lower, row.upper):
        if bound is not None:
            axes.plot(bound, place, "|", color=color, markersize=12)
    if row.log_z is None:
        return
    if row.std_error is not None:
        axes.errorbar(row.log_z, place, xerr=2.0 * row.std_error, color=color, capsize=3)
    filling = color if row.is_filled else "white"
    axes.plot(row.log_z, place, MARKERS[row.kind], color=color, markerfacecolor=filling)


def add_numbers(axes: Axes, numbers: Iterable[str]) -> None:
    """Write a column of text to the right of the rows."""
    beside = axes.get_yaxis_transform()
    for place, number in enumerate(numbers):
        axes.text(1.015, place, number, transform=beside, **NUMBER)


def handles_of(rows: Sequence[Row], hollow: str) -> list[Artist]:
    """Return the legend for what the rows contain, and nothing else."""
    kinds = {row.kind for row in rows if row.log_z is not None}
    handles: list[Artist] = [_marker(kind) for kind in Kind if kind in kinds]
    if not all(row.is_filled for row in rows if row.log_z is not None):
        handles.append(_handle(color="black", marker="o", markerfacecolor="white", linestyle="", label=hollow))
    if any(row.std_error is not None for row in rows):
        handles.append(_handle(color="gray", marker="|", label="± twice its error"))
    if any(row.lower is not None or row.upper is not None for row in rows):
        handles.append(_handle(color="gray", alpha=0.4, label="proven bounds", **BAR))
    return handles


def bounds_handles(result: Bounds) -> list[Artist]:
    """Return the legend for a picture of bounds."""
    from matplotlib.patches import Patch

    return [
        _marker(Kind.LOWER_BOUND),
        _marker(Kind.UPPER_BOUND),
        _handle(color="gray", alpha=0.4, label="allowed by the method", **BAR),
        Patch(color="gray", alpha=0.12, label="allowed by all"),
        *interval_handles(result.interval),
    ]


def _handle(**look: Any) -> Artist:
    from matplotlib.lines import Line2D

    return Line2D([], [], **look)


def _marker(kind: Kind) -> Artist:
    return _handle(color=COLORS[kind], marker=MARKERS[kind], linestyle="", label=str(kind))


def add_legend(figure: Figure, handles: list[Artist]) -> None:
    """Put a legend below everything in a figure, in one line."""
    figure.legend(handles=handles, loc="outside lower center", ncols=max(len(handles), 1), **LEGEND)


def add_legend_below(axes: Axes, handles: list[Artist]) -> None:
    """Put the legend of one Axes below the name of its axis, for any height of the Axes."""
    from matplotlib.transforms import ScaledTranslation

    below = ScaledTranslation(0.0, -LEGEND_DISTANCE / 72.0, axes.figure.dpi_scale_trans)
    axes.legend(
        handles=handles,
        loc="upper center",
        bbox_to_anchor=(0.5, 0.0),
        bbox_transform=axes.transAxes + below,
        ncols=max(len(handles), 1),
        borderaxespad=0.0,
        **LEGEND,
    )
