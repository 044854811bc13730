"""Empty figures that can be saved without a screen, their formats, and their layout on a narrow page."""

from __future__ import annotations

import io
import textwrap
from contextlib import contextmanager
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from spectralz.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FORMATS = ("png", "svg", "pdf")
WIDTH, HEIGHT = 7.2, 4.3  # in inches
# A phone shows about 3.4 inches of 96 pixels: the text of a figure that is no wider keeps its size.
NARROW_WIDTH, NARROW_HEIGHT = 3.6, 3.2
NARROW_FONT = 10.0
# How many letters fit beside a narrow figure, or into a column of a wide one, and how many ticks below a narrow one.
LETTERS = 38
NARROW_TICKS = 4
LEGEND_GAP = 0.08  # in inches


def check_format(file_format: str) -> None:
    """Refuse an unknown format of pictures.

    Raises
    ------
    OptionError
        If it is not one of ``FORMATS``.
    """
    if file_format not in FORMATS:
        raise OptionError(f"a picture's format is {file_format!r}; it must be one of {', '.join(FORMATS)}")


def empty_figure(height: float | None = None, width: float | None = None, *, is_narrow: bool = False) -> Figure:
    """Return a figure that can be saved without a screen; sizes are in inches."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    usual = (NARROW_WIDTH, NARROW_HEIGHT) if is_narrow else (WIDTH, HEIGHT)
    figure = Figure(figsize=(width or usual[0], height or usual[1]), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def saved(figure: Figure, file_format: str, **settings: Any) -> bytes:
    """Return a figure as the bytes of a file."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format=file_format, **settings)
    return buffer.getvalue()


def is_narrow(figure: Figure) -> bool:
    """Return whether a figure is made for narrow pages."""
    return bool(figure.get_size_inches()[0] <= NARROW_WIDTH)


@contextmanager
def narrow_font(wanted: bool = True) -> Iterator[None]:
    """Draw with text of the size that a narrow page needs, if ``wanted``."""
    import matplotlib as mpl

    with mpl.rc_context({"font.size": NARROW_FONT, "axes.titlesize": "medium"} if wanted else {}):
        yield


def fit_narrow(figure: Figure) -> None:
    """Wrap names of axes, remove ticks, and make room if labels would overlap each other or the legend."""
    for axes in figure.axes:
        axes.set_xlabel(textwrap.fill(axes.get_xlabel(), LETTERS))
        axes.set_ylabel(textwrap.fill(axes.get_ylabel(), LETTERS))
        _thin_ticks(axes)
    figure.draw_without_rendering()
    turned = [axes for axes in figure.axes if _overlap(axes)]
    for axes in turned:
        axes.tick_params(axis="x", labelrotation=90)
    figure.draw_without_rendering()
    for axes in turned:
        while _overlap(axes) and len(axes.get_xticks()) > 2:  # every other one, until there is room
            places, labels = axes.get_xticks()[::2], [label.get_text() for label in axes.get_xticklabels()][::2]
            axes.set_xticks(places, labels, rotation=90)
            figure.draw_without_rendering()
    for axes in figure.axes:
        _lower_legend(axes)


def _lower_legend(axes: Axes) -> None:
    """Put the legend below the name of the axis, and make the figure higher by as much."""
    from matplotlib.figure import Figure
    from matplotlib.transforms import ScaledTranslation

    legend, figure = axes.get_legend(), axes.figure
    below = axes.xaxis.get_tightbbox()
    if legend is None or below is None or not isinstance(figure, Figure):
        return
    overlap = (legend.get_window_extent().y1 - below.y0) / figure.dpi + LEGEND_GAP
    if overlap > 0.0:
        distance = (axes.get_window_extent().y0 - below.y0) / figure.dpi + LEGEND_GAP
        moved = axes.transAxes + ScaledTranslation(0.0, -distance, figure.dpi_scale_trans)
        legend.set_bbox_to_anchor((0.46, 0.0), transform=moved)
        width, height = figure.get_size_inches()
        figure.set_size_inches(width, height + overlap)


def _thin_ticks(axes: Axes) -> None:
    from matplotlib.ticker import AutoLocator, MaxNLocator

    locator = axes.xaxis.get_major_locator()
    if isinstance(locator, AutoLocator):
        axes.xaxis.set_major_locator(MaxNLocator(NARROW_TICKS))


def _overlap(axes: Axes) -> bool:
    """Return whether labels below the axis touch each other, as the figure was last drawn."""
    left, right = sorted(axes.get_xlim())
    boxes = [
        label.get_window_extent()
        for label in axes.get_xticklabels()
        if label.get_text() and left <= label.get_position()[0] <= right
    ]
    boxes.sort(key=lambda box: box.x0)
    return any(after.x0 < before.x1 + 2.0 for before, after in pairwise(boxes))
