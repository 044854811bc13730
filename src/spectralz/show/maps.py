"""Spins and couplings drawn on one Axes: maps around zero, means against the spin's number, histograms."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from spectralz.errors import printable

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from spectralz.model import Ising

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
