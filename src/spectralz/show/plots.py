"""Pictures of results, as the bytes of a file; matplotlib is imported where it is used."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import TYPE_CHECKING

from spectralz.errors import OptionError
from spectralz.result import Kind, Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from spectralz.result import Comparison, Estimate, Trial

__all__ = ["FORMATS", "bracket_picture", "comparison_picture"]

FORMATS = ("png", "svg", "pdf")
COLORS = {
    Kind.EXACT: "#1e8449",
    Kind.LOWER_BOUND: "#2471a3",
    Kind.UPPER_BOUND: "#c0392b",
    Kind.ESTIMATE: "#7d6608",
}
MARKERS = {Kind.EXACT: "D", Kind.LOWER_BOUND: ">", Kind.UPPER_BOUND: "<", Kind.ESTIMATE: "o"}


# Where the estimates together take less than this share of the picture's width, they get a second one of their own.
CROWDED = 0.15
# A picture whose width is a smaller share of log Z than this would show rounding, and numbers too long for their ticks.
LEAST_SPAN = 1e-6
# Shown on both sides of a bracket, in widths of it.
MARGIN = 0.25
# What a method said that the answer does not rest on is drawn hollow.
TRUSTED = (Verdict.CHOSEN, Verdict.AGREES, Verdict.BOUND)


@dataclass(frozen=True, kw_only=True)
class _Row:
    """One line of a picture; what is None is not drawn."""

    label: str
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


def comparison_picture(comparison: Comparison, title: str, file_format: str = "png") -> bytes:
    r"""Draw the methods of a comparison under each other: log Z, proven bounds, and the exact value where there is one.

    Methods that failed are left out.

    Examples
    --------
    >>> import spectralz as sz
    >>> table = sz.compare(sz.generators.complete(n=8, strength=0.5, seed=0))
    >>> comparison_picture(table, "eight spins")[:4]
    b'\x89PNG'
    """
    shown = [row.estimate for row in comparison if row.estimate is not None]
    rows = [_row_of(estimate, f"{estimate.method.name}  ({estimate.seconds:.2g} s)") for estimate in shown]
    figure = _figure(title, len(rows), file_format)
    axes = figure.add_subplot()
    _draw_rows(axes, rows)
    if comparison.reference is not None:
        axes.axvline(comparison.reference.log_z, color=COLORS[Kind.EXACT], linewidth=1, zorder=0)
    _add_legend(figure, rows, "not converged")
    return _bytes(figure, file_format)


def bracket_picture(estimate: Estimate, title: str, file_format: str = "png") -> bytes:
    r"""Draw an answer in its bracket, with its error bar, and beneath it each method that was tried.

    The shaded band is what the answer's proven bounds leave. Where the estimates are too close together to be told
    apart in it, a second panel shows them alone.

    Examples
    --------
    >>> import spectralz as sz
    >>> result = sz.log_z(sz.generators.complete(n=8, strength=0.5, seed=0), "spectral")
    >>> bracket_picture(result, "eight spins")[:4]
    b'\x89PNG'
    """
    figure = _bracket_figure(estimate, title, file_format)
    return _bytes(figure, file_format)


def _bracket_figure(estimate: Estimate, title: str, file_format: str) -> Figure:
    tried = [_row_tried(run) for run in estimate.tried]
    rows = [_row_of(estimate, f"answer  ({estimate.seconds:.2g} s)"), *tried]
    figure = _figure(title, len(rows), file_format)
    zoom = _zoom(rows)
    panels = figure.subplots(1, 1 if zoom is None else 2, sharey=True, squeeze=False)[0]
    for axes in panels:
        _draw_rows(axes, rows)
        if estimate.lower is not None and estimate.upper is not None:
            _cut_to_bracket(axes, rows, estimate.lower, estimate.upper)
            axes.axvspan(estimate.lower, estimate.upper, color=COLORS[estimate.kind], alpha=0.07, zorder=0)
        axes.axvline(estimate.log_z, color=COLORS[estimate.kind], linewidth=1, alpha=0.5, zorder=0)
    panels[0].get_yticklabels()[0].set_fontweight("bold")
    if zoom is not None:
        panels[0].set_title("with the proven bounds", fontsize="medium")
        panels[1].set_title("the estimates alone", fontsize="medium")
        panels[1].set_xlim(zoom)
        panels[1].tick_params(axis="y", length=0)
    _add_legend(figure, rows, "not trusted")
    return figure


def _row_of(estimate: Estimate, label: str) -> _Row:
    return _Row(
        label=label,
        kind=estimate.kind,
        log_z=estimate.log_z,
        lower=estimate.lower,
        upper=estimate.upper,
        std_error=estimate.std_error,
        is_filled=estimate.status.converged,
    )


def _row_tried(trial: Trial) -> _Row:
    kind = Kind.ESTIMATE
    if trial.verdict is Verdict.BOUND and (trial.lower is None) != (trial.upper is None):
        kind = Kind.LOWER_BOUND if trial.upper is None else Kind.UPPER_BOUND
    bound = trial.upper if trial.lower is None else trial.lower
    return _Row(
        label=f"{trial.method}  ({trial.seconds:.2g} s)\n{trial.verdict}",
        kind=kind,
        log_z=bound if kind is not Kind.ESTIMATE else trial.log_z,
        lower=trial.lower,
        upper=trial.upper,
        std_error=trial.std_error,
        is_filled=trial.verdict in TRUSTED,
        is_doubted=trial.verdict is Verdict.NOT_TRUSTED,
    )


def _zoom(rows: Sequence[_Row]) -> tuple[float, float] | None:
    """Return the ends of a panel for the estimates alone, or None where the whole picture shows them well enough."""
    near = [value for row in rows if row.kind is Kind.ESTIMATE and not row.is_doubted for value in row.reach]
    bounds = [bound for bound in (rows[0].lower, rows[0].upper) if bound is not None]
    if not near or not bounds:
        return None
    span, whole = max(near) - min(near), max(*near, *bounds) - min(*near, *bounds)
    return (min(near) - 0.2 * span, max(near) + 0.2 * span) if 0.0 < span < CROWDED * whole else None


def _cut_to_bracket(axes: Axes, rows: Sequence[_Row], lower: float, upper: float) -> None:
    """Show the bracket and a little around it; what lies beyond, such as loose bounds, is an arrow with its number."""
    margin = MARGIN * max(upper - lower, LEAST_SPAN * max(1.0, abs(lower)))
    left, right = lower - margin, upper + margin
    axes.set_xlim(left, right)
    for place, row in enumerate(rows):
        if row.log_z is not None and not left <= row.log_z <= right:
            is_right = row.log_z > right
            axes.text(
                0.99 if is_right else 0.01,
                place,
                f"{row.log_z:.5g} →" if is_right else f"← {row.log_z:.5g}",
                transform=axes.get_yaxis_transform(),
                horizontalalignment="right" if is_right else "left",
                verticalalignment="center",
                color=COLORS[row.kind],
                fontsize="small",
            )


def _figure(title: str, rows: int, file_format: str) -> Figure:
    if file_format not in FORMATS:
        raise OptionError(f"a picture's format is {file_format!r}; it must be one of {', '.join(FORMATS)}")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.0, 1.6 + 0.42 * max(rows, 1)), layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle(title)
    return figure


def _bytes(figure: Figure, file_format: str) -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, format=file_format, dpi=120)
    return buffer.getvalue()


def _draw_rows(axes: Axes, rows: Sequence[_Row]) -> None:
    for place, row in enumerate(rows):
        _draw_row(axes, place, row)
    axes.set_yticks(range(len(rows)), [row.label for row in rows])
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.margins(x=0.12)
    left, right = axes.get_xlim()
    least = LEAST_SPAN * max(1.0, abs(left))
    if right - left < least:
        middle = 0.5 * (left + right)
        axes.set_xlim(middle - least, middle + least)
    axes.set(xlabel="log Z")
    axes.ticklabel_format(axis="x", useOffset=False)
    axes.grid(axis="x", alpha=0.3)


def _draw_row(axes: Axes, place: int, row: _Row) -> None:
    color = COLORS[row.kind]
    ends = [value for value in (row.lower, row.log_z, row.upper) if value is not None]
    if len(ends) > 1:
        extent = [min(ends), max(ends)]
        axes.plot(extent, [place, place], color=color, linewidth=5, alpha=0.25, solid_capstyle="butt")
    for bound in (row.lower, row.upper):
        if bound is not None:
            axes.plot(bound, place, "|", color=color, markersize=12)
    if row.log_z is None:
        return
    if row.std_error is not None:
        axes.errorbar(row.log_z, place, xerr=2.0 * row.std_error, color=color, capsize=3)
    filling = color if row.is_filled else "white"
    axes.plot(row.log_z, place, MARKERS[row.kind], color=color, markerfacecolor=filling)


def _add_legend(figure: Figure, rows: Sequence[_Row], hollow: str) -> None:
    """Explain what the rows have in them, and nothing else."""
    from matplotlib.lines import Line2D

    kinds = {row.kind for row in rows if row.log_z is not None}
    handles = [
        Line2D([], [], color=COLORS[kind], marker=MARKERS[kind], linestyle="", label=str(kind))
        for kind in Kind
        if kind in kinds
    ]
    if not all(row.is_filled for row in rows if row.log_z is not None):
        handles.append(Line2D([], [], color="black", marker="o", markerfacecolor="white", linestyle="", label=hollow))
    if any(row.std_error is not None for row in rows):
        handles.append(Line2D([], [], color="gray", marker="|", label="± 2 standard errors"))
    if any(row.lower is not None or row.upper is not None for row in rows):
        handles.append(Line2D([], [], color="gray", linewidth=5, alpha=0.4, label="proven bounds"))
    figure.legend(
        handles=handles,
        loc="outside lower center",
        ncols=max(len(handles), 1),
        frameon=False,
        fontsize="small",
        columnspacing=1.2,
        handletextpad=0.4,
    )
