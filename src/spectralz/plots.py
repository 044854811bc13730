"""Pictures of results, as the bytes of a file; matplotlib is imported where it is used."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from spectralz.errors import OptionError
from spectralz.result import Kind

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from spectralz.result import Comparison, Estimate

__all__ = ["FORMATS", "comparison_picture"]

FORMATS = ("png", "svg", "pdf")
COLORS = {
    Kind.EXACT: "#1e8449",
    Kind.LOWER_BOUND: "#2471a3",
    Kind.UPPER_BOUND: "#c0392b",
    Kind.ESTIMATE: "#7d6608",
}
MARKERS = {Kind.EXACT: "D", Kind.LOWER_BOUND: ">", Kind.UPPER_BOUND: "<", Kind.ESTIMATE: "o"}


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
    if file_format not in FORMATS:
        raise OptionError(f"a picture's format is {file_format!r}; it must be one of {', '.join(FORMATS)}")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    shown = [row.estimate for row in comparison if row.estimate is not None]
    figure = Figure(figsize=(9.0, 1.6 + 0.42 * max(len(shown), 1)), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    for place, estimate in enumerate(shown):
        _draw_estimate(axes, place, estimate)
    if comparison.reference is not None:
        axes.axvline(comparison.reference.log_z, color=COLORS[Kind.EXACT], linewidth=1, zorder=0)
    axes.set_yticks(range(len(shown)), [f"{e.method.name}  ({e.seconds:.2g} s)" for e in shown])
    axes.invert_yaxis()
    axes.margins(x=0.12)
    axes.set(xlabel="log Z", title=title)
    axes.ticklabel_format(axis="x", useOffset=False)
    axes.grid(axis="x", alpha=0.3)
    _add_legend(axes, {estimate.kind for estimate in shown})
    buffer = io.BytesIO()
    figure.savefig(buffer, format=file_format, dpi=120)
    return buffer.getvalue()


def _draw_estimate(axes: Axes, place: int, estimate: Estimate) -> None:
    color = COLORS[estimate.kind]
    low = estimate.log_z if estimate.lower is None else estimate.lower
    high = estimate.log_z if estimate.upper is None else estimate.upper
    axes.plot([low, high], [place, place], color=color, linewidth=5, alpha=0.25, solid_capstyle="butt")
    for bound, tick in ((estimate.lower, "|"), (estimate.upper, "|")):
        if bound is not None:
            axes.plot(bound, place, tick, color=color, markersize=12)
    if estimate.std_error is not None:
        axes.errorbar(estimate.log_z, place, xerr=2.0 * estimate.std_error, color=color, capsize=3)
    filling = color if estimate.status.converged else "white"
    axes.plot(estimate.log_z, place, MARKERS[estimate.kind], color=color, markerfacecolor=filling)


def _add_legend(axes: Axes, kinds: set[Kind]) -> None:
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], color=COLORS[kind], marker=MARKERS[kind], linestyle="", label=str(kind))
        for kind in Kind
        if kind in kinds
    ]
    handles.append(
        Line2D([], [], color="black", marker="o", markerfacecolor="white", linestyle="", label="not converged")
    )
    handles.append(Line2D([], [], color="gray", linewidth=5, alpha=0.4, label="proven bounds"))
    axes.legend(handles=handles, loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=len(handles), frameon=False)
