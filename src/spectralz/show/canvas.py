"""What pictures share: empty figures, their formats; of several methods, colors, a floor for errors, and the legend."""

from __future__ import annotations

import io
import math
import textwrap
from typing import TYPE_CHECKING, Any

from spectralz.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

FORMATS = ("png", "svg", "pdf")
WIDTH, HEIGHT = 7.2, 4.3  # in inches


def check_format(file_format: str) -> None:
    """Refuse an unknown format of pictures.

    Raises
    ------
    OptionError
        If it is not one of ``FORMATS``.
    """
    if file_format not in FORMATS:
        raise OptionError(f"a picture's format is {file_format!r}; it must be one of {', '.join(FORMATS)}")


def empty_figure(height: float = HEIGHT, width: float = WIDTH) -> Figure:
    """Return a figure that can be saved without a screen; sizes are in inches."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def saved(figure: Figure, file_format: str, **settings: Any) -> bytes:
    """Return a figure as the bytes of a file."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format=file_format, **settings)
    return buffer.getvalue()


# The colors of Okabe and Ito, which color-blind readers can tell apart. The orange and the sky blue are darker, so that
# they can be seen on white and on black; markers tell methods apart in gray.
COLORS = ("#D55E00", "#0072B2", "#009E73", "#CC79A7", "#B87A00", "#2E93CC", "#7A7A7A")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
LEGEND_LINE = 0.2  # in inches
LEGEND_COLUMNS = 2
LETTERS = 38  # in one of them
# A legend begins as far below its axes as if they had this height, in inches.
USUAL_AXES = 3.4
# An error counts as rounding if it is no larger than this share of log Z.
ROUNDING = 1e-14
# Of a logarithmic axis.
MOST_TICKS = 8
# Rings around points at the floor, so that all methods there can be seen.
RING, RING_STEP, MOST_RINGS = 5.0, 2.5, 5
HOLLOW: dict[str, Any] = {"linestyle": "", "markerfacecolor": "none", "markeredgewidth": 1.2, "zorder": 3}


def floor_below(errors: Iterable[float], log_z: Iterable[float] = ()) -> tuple[float, float]:
    """Return the height of the floor for errors that are zero or rounding, and the largest error that counts as such.

    Parameters
    ----------
    errors
        Sizes of errors, as drawn.
    log_z
        The answers that they belong to; their size determines what is rounding.

    Returns
    -------
    tuple[float, float]
        A power of ten below all errors that are neither zero nor rounding, and the largest rounding; an error up to
        that is drawn on the floor.

    Examples
    --------
    >>> floor_below([0.25, 0.003, 0.0], [12.0])
    (0.0001, 1.2e-13)
    """
    rounding = ROUNDING * max((abs(value) for value in log_z if math.isfinite(value)), default=1.0)
    rounding = max(rounding, ROUNDING)
    seen = [error for error in errors if rounding < error < math.inf]
    return 10.0 ** (math.floor(math.log10(min(seen, default=rounding))) - 1), rounding


def scale_errors(axes: Axes, heights: Sequence[float], floor: float, words: str = "") -> None:
    """Make the axis of errors logarithmic, and write ``words`` at its floor if there are any.

    Parameters
    ----------
    axes
        The axes.
    heights
        All heights drawn, none below the floor.
    floor
        The height of points that have no place on a logarithmic axis, a power of ten.
    words
        The label of the floor, such as ``"0"``; empty if no point lies there.
    """
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    axes.set_yscale("log", nonpositive="clip")
    if not words:
        plain_powers(axes.yaxis)
        axes.set_ylim(bottom=min(heights) / 3.0)
        return
    lowest, highest = round(math.log10(floor)), math.ceil(math.log10(max(*heights, 10.0 * floor)))
    step = math.ceil((highest - lowest + 1) / MOST_TICKS)
    ticks = [10.0**exponent for exponent in range(lowest, highest + 1, step)]
    axes.yaxis.set_major_locator(FixedLocator([floor, *ticks[1:]]))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: words if math.isclose(y, floor) else f"{y:g}"))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.axhline(floor, color="#808080", linestyle=":", linewidth=1.0, zorder=0)
    axes.set_ylim(floor / 10.0 ** (0.06 * (highest - lowest)), max(axes.get_ylim()[1], 10.0 * floor))


def plain_powers(axis: Axis) -> None:
    """Write the numbers of a logarithmic axis without raised exponents, which are small.

    If the axis has fewer than two powers of ten, there are numbers between them too.
    """
    from matplotlib.ticker import FuncFormatter

    def between(value: float, _: object) -> str:
        low, high = sorted(axis.get_view_interval())
        is_wanted = high < 2.0 * low or (high < 10.0 * low and f"{value:e}"[0] in "235")
        return f"{value:g}" if is_wanted else ""

    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(FuncFormatter(between))


def draw_at_floor(axes: Axes, x: Sequence[float], floor: float, rank: int, style: dict[str, Any]) -> None:
    """Mark points at the floor as such: hollow, and in rings if several methods lie there.

    The line that they belong to has markers only `above` the floor.

    Parameters
    ----------
    axes, x, floor
        Where to draw.
    rank
        How many methods already have points there.
    style
        The color and the marker.
    """
    size = RING + RING_STEP * (1 + rank % MOST_RINGS)  # it encloses those of a smaller rank
    axes.plot(x, [floor] * len(x), markersize=size, color=style["color"], marker=style["marker"], **HOLLOW)


def above(heights: Iterable[float], floor: float) -> dict[str, Any]:
    """Return matplotlib's keywords for a line with markers only at the points above the floor."""
    return {"markevery": [place for place, height in enumerate(heights) if height > floor]}


def draw_legend(axes: Axes, *, title: str | None = None, drop: float = 0.14) -> None:
    """Put the legend below the axes, methods first; if the figure has only these axes, make it high enough.

    Parameters
    ----------
    axes
        The axes.
    title
        The heading of the legend.
    drop
        How far below the axes it begins, as a share of their usual height.
    """
    from matplotlib.figure import Figure
    from matplotlib.transforms import ScaledTranslation

    handles, labels = axes.get_legend_handles_labels()
    order = sorted(range(len(handles)), key=lambda k: not hasattr(handles[k], "has_yerr"))
    if not handles:
        return
    figure = axes.figure
    assert isinstance(figure, Figure)
    if len(figure.axes) == 1:
        lines = math.ceil(len(handles) / LEGEND_COLUMNS) + (title is not None)
        figure.set_size_inches(figure.get_size_inches()[0], HEIGHT + LEGEND_LINE * lines)
    below = ScaledTranslation(0.0, -drop * USUAL_AXES, figure.dpi_scale_trans)
    axes.legend(
        [handles[k] for k in order],
        [textwrap.fill(labels[k], LETTERS) for k in order],
        title=title,
        loc="upper center",
        bbox_to_anchor=(0.46, 0.0),
        bbox_transform=axes.transAxes + below,
        ncols=LEGEND_COLUMNS,
        frameon=False,
        fontsize=9.5,
        handlelength=3.2,
        numpoints=1,
    )
