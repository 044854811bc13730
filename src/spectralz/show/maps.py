"""Spins and couplings drawn: maps around zero, means against the spin's number, histograms; the network of a fit."""

from __future__ import annotations

import math
import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np

from spectralz._support.extras import from_extra
from spectralz.errors import printable
from spectralz.show.canvas import check_format, empty_figure, saved

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from spectralz.model import Ising
    from spectralz.result import Fit

# Means and couplings: red is positive, blue is negative.
DIVERGING = "RdBu_r"
POSITIVE, NEGATIVE = "#c0392b", "#2471a3"
COUPLINGS, FIELDS = "#7d6608", "#5d6d7e"
# Up to this many spins a coupling is drawn as a matrix, and means have stems.
MOST_SPINS_OF_MATRIX = 500
MOST_STEMS = 100
# Beyond this many spins the entries of a sparse matrix are too small to see, and become dots of this area.
MOST_SPINS_OF_PIXELS = 100
DOT = 4.0
# A histogram of more couplings than this uses a sample of them.
MOST_COUPLINGS = 1_000_000
BINS = 40
# Most names at an axis; most letters of all names together if they are written flat; most letters of one name.
MOST_NAMES = 40
MOST_LETTERS = 60
LONGEST_TICK = 24
# Sizes of their font in points, points per inch, and the height of a line in sizes of the font.
SMALLEST_FONT, LARGEST_FONT, POINTS, LINE = 7.2, 10.0, 72.0, 1.25
# Inches that a named row of a matrix takes in a figure of its own.
INCHES_PER_NAME = 0.19


def side_of_grid(n: int, edges: NDArray[np.int64]) -> int | None:
    """Return the side of the square grid, open or periodic, that has these edges, or None.

    Examples
    --------
    >>> import spectralz as sz
    >>> edges, _ = sz.generators.grid(side=5, strength=1.0, seed=0).edges()
    >>> side_of_grid(25, edges), side_of_grid(25, edges[1:])
    (5, None)
    """
    side = math.isqrt(n)
    if side < 2 or side * side != n:
        return None
    spins = np.arange(n).reshape(side, side)
    near = np.concatenate([_pairs(spins[:, :-1], spins[:, 1:]), _pairs(spins[:-1], spins[1:])])
    around = np.concatenate([_pairs(spins[:, 0], spins[:, -1]), _pairs(spins[0], spins[-1])])
    present = np.unique(edges, axis=0)
    for wanted in (near, np.concatenate([near, around])):
        if np.array_equal(present, np.unique(wanted, axis=0)):
            return side
    return None


def _pairs(first: NDArray[np.int64], second: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.column_stack([first.ravel(), second.ravel()])


def draw_map(axes: Axes, values: NDArray[np.float64], largest: float, label: str) -> None:
    """Draw a matrix in colors around zero, with a color bar."""
    image = axes.imshow(values, cmap=DIVERGING, vmin=-largest, vmax=largest)
    _integers(axes)
    axes.figure.colorbar(image, ax=axes, label=label)


def draw_matrix(axes: Axes, model: Ising) -> None:
    """Draw the couplings J = 2 A as a matrix without the diagonal, which is the same for all states."""
    pairs, weights = model.edges()
    i, j = pairs.T
    J = np.zeros((model.n, model.n))
    J[i, j] = J[j, i] = weights
    largest = float(np.abs(weights).max(initial=0.0)) or 1.0
    draw_map(axes, J, largest, "coupling, $J_{ij} = 2 A_{ij}$")
    if model.is_sparse and model.n > MOST_SPINS_OF_PIXELS:
        places, both = (np.concatenate([i, j]), np.concatenate([j, i])), np.tile(weights, 2)
        axes.scatter(*places, s=DOT, c=both, marker="s", linewidths=0, cmap=DIVERGING, vmin=-largest, vmax=largest)
    axes.set(xlabel="spin", ylabel="spin")
    if model.names is not None:
        name_ticks(axes, model.names, y=True)


def name_ticks(axes: Axes, names: Sequence[Hashable], *, y: bool = False) -> None:
    """Write names at the axis, or with ``y`` at both, unless they are many; long ones are rotated.

    If there is no room for all in a font that can be read, every second or third is written.
    """
    if not 0 < len(names) <= MOST_NAMES:
        return
    shown = [_tick(name) for name in names]
    is_long = len(shown) * max(map(len, shown)) > MOST_LETTERS
    # Lines of text below each other, or rotated beside each other, need a little more than the size of their font.
    lines = min(axes.get_window_extent().size) / axes.figure.dpi * POINTS / LINE
    size = float(lines / len(shown)) if y or is_long else LARGEST_FONT
    every = slice(None, None, math.ceil(SMALLEST_FONT / size) if size > 0.0 else len(shown))
    places, shown, font = range(len(shown))[every], shown[every], min(max(size, SMALLEST_FONT), LARGEST_FONT)
    axes.set_xticks(places, shown, rotation=90 if is_long else 0, fontsize=font)
    axes.set_xlabel("")
    if y:
        axes.set_yticks(places, shown, fontsize=font)
        axes.set_ylabel("")


def _tick(name: Hashable) -> str:
    text = printable(name)
    short = text if len(text) <= LONGEST_TICK else f"{text[: LONGEST_TICK - 3]}..."
    return short.replace("$", r"\$")


def draw_means(
    axes: Axes, mean: NDArray[np.float64], error: NDArray[np.float64] | None = None, *, is_zero_one: bool = False
) -> None:
    """Draw the mean of every spin, or of every unit that is 0 or 1, against its number; with errors, if given."""
    spins = np.arange(len(mean))
    colors = np.where(mean >= 0.0, POSITIVE, NEGATIVE).tolist()
    if len(mean) <= MOST_STEMS:
        axes.vlines(spins, 0.0, mean, colors=colors, linewidth=1.5, alpha=0.5)
    if error is not None:
        axes.errorbar(spins, mean, error, fmt="none", ecolor="gray", elinewidth=1.0, zorder=1)
    axes.scatter(spins, mean, s=float(np.clip(4000.0 / max(len(mean), 1), 3.0, 25.0)), c=colors, linewidths=0)
    axes.axhline(0.0, color="gray", linewidth=0.8, zorder=0)
    if is_zero_one:
        axes.set(xlabel="unit", ylabel="mean, E[v]", ylim=(-0.03, 1.03))
    else:
        axes.set(xlabel="spin", ylabel="mean, E[x]", ylim=(-1.06, 1.06))
    _integers(axes, y=False)
    axes.grid(axis="y", alpha=0.3)


def draw_histogram(axes: Axes, model: Ising) -> None:
    """Draw the distributions of couplings and fields, each with its own bins."""
    shown = (("fields", model.field, FIELDS), ("couplings J = 2 A", _couplings(model), COUPLINGS))
    for name, values, color in shown:
        size = float(np.abs(values).mean()) if len(values) else 0.0
        label = f"{name}, mean size {size:.3g}"
        if len(values) and np.ptp(values) > 1e-9 * size:
            shares = np.full(len(values), 1.0 / len(values))
            axes.hist(values, BINS, weights=shares, histtype="stepfilled", color=color, alpha=0.6, label=label)
        elif size:
            axes.plot([values[0]] * 2, [0.0, 1.0], color=color, linewidth=2, label=f"{name}, all {values[0]:.3g}")
    axes.set(xlabel="value", ylabel="share per bin", ylim=(0.0, None))
    axes.grid(axis="y", alpha=0.3)


def _couplings(model: Ising) -> NDArray[np.float64]:
    """Return the couplings J of a large model, or a sample of them if there are very many pairs."""
    n = model.n
    if model.is_sparse:
        return model.edges()[1]
    if n * (n - 1) // 2 <= MOST_COUPLINGS:
        i, j = np.triu_indices(n, k=1)
    else:
        i, j = np.random.default_rng(0).integers(n, size=(2, MOST_COUPLINGS))
        i, j = i[i != j], j[i != j]
    if model.factors is None:
        return np.asarray(2.0 * np.asarray(model.coupling)[i, j])
    values, vectors, _ = model.factors
    return np.asarray(2.0 * np.einsum("r,rk,rk->k", values, vectors[:, i], vectors[:, j]))


def _integers(axes: Axes, *, y: bool = True) -> None:
    from matplotlib.ticker import MaxNLocator

    for axis in (axes.xaxis, axes.yaxis)[: 1 + y]:
        axis.set_major_locator(MaxNLocator(integer=True))


# Couplings within this many standard errors of zero are faint.
FAINT_BELOW, FAINT, CLEAR = 2.0, 0.12, 0.85
THINNEST, WIDEST = 0.4, 5.0
LONGEST_NAME, LETTERS_PER_LINE = 24, 10
# Circles have this share of the distance between neighbors if all were spread evenly; names have at least 7 points.
CIRCLE, LEAST_FONT, MOST_FONT = 0.42, 7.0, 11.0
ROUNDS = 200


def draw_network(result: Fit, ax: Axes | None = None) -> Axes:
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


def network_picture(result: Fit, title: str, file_format: str = "png") -> bytes:
    """Return the network of a fit as the bytes of a file."""
    check_format(file_format)
    side = _side(result.model.n)
    figure = empty_figure(side, side)
    axes = draw_network(result, figure.subplots())
    axes.set_title(f"{title}: {axes.get_title()}", fontsize="medium")
    return saved(figure, file_format, dpi=150)
