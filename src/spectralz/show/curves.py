"""What pictures of several methods along an axis share: colors, markers, their size, and the legend beneath."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["COLORS", "MARKERS", "draw_legend", "empty_figure"]

# Okabe and Ito's colors, told apart by color-blind readers; markers tell them apart in gray.
COLORS = ("#D55E00", "#0072B2", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7A7A7A")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
WIDTH, HEIGHT, LEGEND_LINE = 7.2, 4.3, 0.2  # in inches
LEGEND_COLUMNS = 2


def empty_figure() -> Figure:
    """Return a figure that can be saved without a screen."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH, HEIGHT), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def draw_legend(axes: Axes, *, title: str | None = None, drop: float = 0.14) -> None:
    """Put the legend under the axes, methods first, and make a figure of these axes alone high enough for it.

    Parameters
    ----------
    axes
        What it belongs to.
    title
        Its heading.
    drop
        How far under the axes it begins, in parts of their height.
    """
    from matplotlib.figure import Figure

    handles, labels = axes.get_legend_handles_labels()
    order = sorted(range(len(handles)), key=lambda k: not hasattr(handles[k], "has_yerr"))
    if handles:
        if isinstance(axes.figure, Figure) and len(axes.figure.axes) == 1:
            lines = math.ceil(len(handles) / LEGEND_COLUMNS) + (title is not None)
            axes.figure.set_size_inches(WIDTH, HEIGHT + LEGEND_LINE * lines)
        axes.legend(
            [handles[k] for k in order],
            [labels[k] for k in order],
            title=title,
            loc="upper center",
            bbox_to_anchor=(0.46, -drop),
            ncols=LEGEND_COLUMNS,
            frameon=False,
            fontsize=9.5,
            handlelength=3.2,
            numpoints=1,
        )
