"""Empty figures that can be saved without a screen, and their formats."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

from spectralz.errors import OptionError

if TYPE_CHECKING:
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
