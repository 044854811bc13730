"""Pictures of results, on an Axes of matplotlib or as the bytes of a file."""

from spectralz.show.canvas import FORMATS
from spectralz.show.plots import (
    bounds,
    bracket_picture,
    comparison,
    comparison_picture,
    estimate,
    history,
    marginals,
    model,
)

__all__ = [
    "FORMATS",
    "bounds",
    "bracket_picture",
    "comparison",
    "comparison_picture",
    "estimate",
    "history",
    "marginals",
    "model",
]
