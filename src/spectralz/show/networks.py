"""Networks as people draw them: a circle per variable, a line per coupling."""

from __future__ import annotations

import math
import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np

from spectralz._support.extras import from_extra
from spectralz.errors import printable
from spectralz.show.canvas import check_format, empty_figure, saved
from spectralz.show.maps import NEGATIVE, POSITIVE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from spectralz.result import Fit

# Couplings within this many standard errors of zero are faint.
FAINT_BELOW, FAINT, CLEAR = 2.0, 0.12, 0.85
THINNEST, WIDEST = 0.4, 5.0
LONGEST_NAME, LETTERS_PER_LINE = 24, 10
# Circles have this share of the distance between neighbors if all were spread evenly; names have at least 7 points.
CIRCLE, LEAST_FONT, MOST_FONT = 0.42, 7.0, 11.0
ROUNDS = 200


def draw(result: Fit, ax: Axes | None = None) -> Axes:
    """Draw the couplings of a fit as a network.

    Parameters
    ----------
    result
        The fit.
    ax
        Where to draw; a new figure of pyplot if not given, larger for more variables.

    Examples
    --------
    >>> import spectralz as sz
    >>> from matplotlib.figure import Figure
    >>> fit = sz.fit(sz.sample(sz.generators.chain(n=4, strength=0.5), 500, seed=0))
    >>> axes = fit.plot_network(Figure().subplots())
    >>> len(axes.patches), len(axes.collections[0].get_paths())  # circles and lines
    (4, 6)
    """
    networkx = from_extra("networkx", "networkx", "the layout of a network")
    model = result.model
    pairs, J = model.edges()
    is_clear = np.ones(len(J), dtype=bool)
    if result.coupling_error is not None:
        is_clear = np.abs(J) > FAINT_BELOW * result.coupling_error
    places = _places(networkx, model.n, pairs, np.where(is_clear, np.abs(J), 0.05 * np.abs(J)))
    axes = _new_axes(model.n) if ax is None else ax
    largest = float(np.abs(J).max(initial=0.0)) or 1.0
    _draw_lines(axes, places[pairs], J, largest, is_clear)
    names = [str(k) for k in range(model.n)] if model.names is None else [_short(name) for name in model.names]
    _draw_circles(axes, places, names)
    faint = "" if is_clear.all() else f"; faint: within {FAINT_BELOW:g} standard errors of 0"
    axes.set_title(f"couplings, the widest |J| = {largest:.2g}{faint}", fontsize="medium")
    return axes


def _new_axes(n: int) -> Axes:
    import matplotlib.pyplot as plt

    side = _side(n)
    return plt.subplots(figsize=(side, side), layout="constrained")[1]


def _side(n: int) -> float:
    """Return the side of a figure in inches."""
    return float(np.clip(1.45 * math.sqrt(n), 5.0, 14.0))


def _places(networkx: Any, n: int, pairs: NDArray[np.int64], weight: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return a place for each variable, near those that it is coupled to, but no two too close to each other."""
    graph = networkx.Graph()
    graph.add_nodes_from(range(n))
    scale = float(weight.max(initial=0.0)) or 1.0
    graph.add_weighted_edges_from((i, j, w / scale) for (i, j), w in zip(pairs.tolist(), weight.tolist(), strict=True))
    places = networkx.spring_layout(graph, k=1.8 / math.sqrt(max(n, 1)), seed=0, iterations=150)
    spread = np.array([places[k] for k in range(n)]).reshape(n, 2)
    return _apart(spread, 1.65 / math.sqrt(max(n, 1)))


def _apart(places: NDArray[np.float64], least: float) -> NDArray[np.float64]:
    """Push places that are closer than ``least`` apart within a square from -1 to 1, a few times."""
    for _ in range(ROUNDS):
        low, high = places.min(axis=0, initial=np.inf), places.max(axis=0, initial=-np.inf)
        places = 2.0 * (places - low) / np.maximum(high - low, 1e-9) - 1.0
        step = places[:, None, :] - places[None, :, :]
        distance = np.hypot(step[..., 0], step[..., 1]) + np.eye(len(places)) * 10.0
        push = np.maximum(least - distance, 0.0) / np.maximum(distance, 1e-9)
        if not push.any():
            break
        places = places + 0.3 * (push[..., None] * step).sum(axis=1)
    return places


def _draw_lines(
    axes: Axes, ends: NDArray[np.float64], J: NDArray[np.float64], largest: float, is_clear: NDArray[np.bool_]
) -> None:
    from matplotlib.collections import LineCollection
    from matplotlib.colors import to_rgba

    colors = [
        to_rgba(POSITIVE if weight > 0 else NEGATIVE, CLEAR if clear else FAINT)
        for weight, clear in zip(J.tolist(), is_clear.tolist(), strict=True)
    ]
    widths = THINNEST + (WIDEST - THINNEST) * np.abs(J) / largest
    axes.add_collection(LineCollection(list(ends), colors=colors, linewidths=widths.tolist(), zorder=1))


def _draw_circles(axes: Axes, places: NDArray[np.float64], names: list[str]) -> None:
    """Draw circles of equal size with their names: inside if they are short, otherwise across."""
    from matplotlib.patches import Circle
    from matplotlib.patheffects import withStroke

    n = max(len(places), 1)
    radius = CIRCLE / math.sqrt(n)
    font = float(np.clip(14.0 - 0.12 * n, LEAST_FONT, MOST_FONT))
    for place, name in zip(places, names, strict=True):
        axes.add_patch(Circle(tuple(place), radius, facecolor="white", edgecolor="0.35", linewidth=1.0, zorder=2))
        halo = [withStroke(linewidth=2.5, foreground="white")]
        axes.text(place[0], place[1], name, ha="center", va="center", fontsize=font, zorder=3, path_effects=halo)
    if len(places):
        low, high = places.min(axis=0) - 2.0 * radius, places.max(axis=0) + 2.0 * radius
        axes.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]))
    axes.set_aspect("equal")
    axes.set_axis_off()


def _short(name: Any) -> str:
    """Return a name in lines that fit into a circle, shortened if it is long."""
    text = printable(name)
    short = text if len(text) <= LONGEST_NAME else f"{text[: LONGEST_NAME - 1]}…"
    return textwrap.fill(short, LETTERS_PER_LINE, break_long_words=False).replace("$", r"\$")


def picture(result: Fit, title: str, file_format: str = "png") -> bytes:
    """Return the network of a fit as the bytes of a file."""
    check_format(file_format)
    side = _side(result.model.n)
    figure = empty_figure(side, side)
    axes = draw(result, figure.subplots())
    axes.set_title(f"{title}: {axes.get_title()}", fontsize="medium")
    return saved(figure, file_format, dpi=150)
