"""Pictures of results: on Axes of matplotlib, or as the bytes of a file. matplotlib is imported where it is used.

`estimate`, `bounds`, `comparison`, `marginals` and `model` draw on the given Axes, or on a new one, and return it; the
results' own ``plot`` calls them. `bracket_picture` and `comparison_picture` return files. `bracket_figure`,
`comparison_figure` and `means_figure` return the figures of pages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from spectralz.result import Kind
from spectralz.show import maps
from spectralz.show import rows as drawing
from spectralz.show.canvas import COLORS, check_format, empty_figure, saved
from spectralz.show.numbers import probable, proven
from spectralz.show.tables import headline

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from spectralz.model import Ising
    from spectralz.result import Bounds, Comparison, Estimate, Marginals

WIDTH = 9.0  # in inches, with room for numbers beside the rows
DPI = 120


def estimate(result: Estimate, ax: Axes | None = None) -> Axes:
    """Draw an answer in its bracket, with its error bar, and below it each method that was tried.

    The shaded band is the range between the proven bounds; an arrow points to values far outside. The ends of an
    interval with a stated probability are dashed. The numbers are on the right.

    Parameters
    ----------
    result
        The answer.
    ax
        Where to draw; a new figure of pyplot if not given.

    Returns
    -------
    matplotlib.axes.Axes
        Where it was drawn.

    Examples
    --------
    >>> import spectralz as sz
    >>> from matplotlib.figure import Figure
    >>> result = sz.log_z(sz.generators.complete(n=8, strength=0.5, seed=0), "spectral")
    >>> sz.plots.estimate(result, ax=Figure().subplots()).get_xlabel()
    'log Z'
    """
    rows = drawing.rows_of_answer(result)
    axes = _axes(ax, len(rows))
    if result.log_z == -np.inf:  # there is no place for it on an axis
        axes.set_title(headline(result))
        axes.set_axis_off()
        return axes
    drawing.draw_answer(axes, result, rows, is_numbered=True)
    axes.set_title(headline(result))
    drawing.add_legend_below(axes, drawing.handles_of(rows, "not trusted") + drawing.interval_handles(result.interval))
    return axes


def history(result: Estimate, ax: Axes | None = None) -> Axes:
    """Draw how log Z and its error came about over time, within the proven bounds as far as these are near.

    Parameters
    ----------
    result
        The answer, of ``auto`` or ``annealing``; others have no history.
    ax
        Where to draw; a new figure of pyplot if not given.

    Returns
    -------
    matplotlib.axes.Axes
        Where it was drawn.

    Examples
    --------
    >>> import spectralz as sz
    >>> from matplotlib.figure import Figure
    >>> model = sz.generators.complete(n=12, strength=0.5, seed=0)
    >>> result = sz.log_z(model, exclude=["exact"], work=1e8)
    >>> sz.plots.history(result, ax=Figure().subplots()).get_xlabel()
    'seconds'
    """
    axes = _axes(ax, 8)
    known = [moment for moment in result.history if moment.log_z is not None]
    values = np.array([moment.log_z for moment in known], dtype=float)
    errors = np.array([np.inf if moment.std_error is None else moment.std_error for moment in known], dtype=float)
    seconds = [moment.seconds for moment in known]
    if known:
        shown = np.where(np.isfinite(errors), errors, 0.0)
        axes.errorbar(seconds, values, shown, fmt="o-", markersize=4, color=COLORS[0], label="log Z ± its error")
        reach = max(6.0 * float(shown[-1]), 1.2 * float(np.median(shown)), 1e-9 * max(abs(values[-1]), 1.0))
        axes.set_ylim(values[-1] - reach, values[-1] + reach)
    for name, bound in (("lower", "proven lower bound"), ("upper", "proven upper bound")):
        steps = [(m.seconds, getattr(m, name)) for m in result.history if getattr(m, name) is not None]
        if steps:
            axes.step(*zip(*steps, strict=True), where="post", color=COLORS[1], linestyle="--", label=bound)
    axes.set(xlabel="seconds", ylabel="log Z", title=headline(result))
    if axes.get_legend_handles_labels()[0]:
        axes.legend(fontsize="small")
    return axes


def bounds(result: Bounds, ax: Axes | None = None) -> Axes:
    """Draw the values of log Z that each method allows, and the bracket that all of them allow.

    The ends of an interval with a stated probability, which are not proven, are dashed.

    Parameters
    ----------
    result
        The bounds.
    ax
        Where to draw; a new figure of pyplot if not given.

    Returns
    -------
    matplotlib.axes.Axes
        Where it was drawn.

    Examples
    --------
    >>> import spectralz as sz
    >>> from matplotlib.figure import Figure
    >>> bracket = sz.bounds(sz.generators.grid(side=6, strength=0.2, seed=0), budget=1.0)
    >>> axes = sz.plots.bounds(bracket, ax=Figure().subplots())
    >>> [label.get_text() for label in axes.get_yticklabels()][0]
    'trivial  (... s)'
    """
    axes = _axes(ax, len(result.rows))
    drawing.draw_bounds(axes, result)
    title = proven(result.lower, result.upper)
    if result.interval is not None:
        title = f"{title} (proven)\n{probable(result.interval)}"
    axes.set_title(title.replace("<=", "≤"))
    drawing.add_legend_below(axes, drawing.bounds_handles(result))
    return axes


def comparison(result: Comparison, ax: Axes | None = None) -> Axes:
    """Draw the methods of a comparison below each other: log Z, proven bounds, and the exact value if there is one.

    Methods that failed are left out.

    Parameters
    ----------
    result
        The comparison.
    ax
        Where to draw; a new figure of pyplot if not given.

    Returns
    -------
    matplotlib.axes.Axes
        Where it was drawn.

    Examples
    --------
    >>> import spectralz as sz
    >>> from matplotlib.figure import Figure
    >>> table = sz.compare(sz.generators.complete(n=8, strength=0.5, seed=0), ["exact", "mf"])
    >>> len(sz.plots.comparison(table, ax=Figure().subplots()).get_yticks())
    2
    """
    rows = drawing.rows_of_comparison(result)
    axes = _axes(ax, len(rows))
    drawing.draw_comparison(axes, result, rows)
    drawing.add_numbers(axes, (row.number for row in rows))
    drawing.add_legend_below(axes, drawing.handles_of(rows, "not converged"))
    return axes


def marginals(result: Marginals, ax: Axes | None = None) -> Axes:
    """Draw the mean of every spin: as a map for a square grid, otherwise against the spin's number or name.

    Means that have standard errors are drawn with them, but for a map.

    Parameters
    ----------
    result
        The marginals.
    ax
        Where to draw; a new figure of pyplot if not given.

    Returns
    -------
    matplotlib.axes.Axes
        Where it was drawn.

    Examples
    --------
    >>> import spectralz as sz
    >>> from matplotlib.figure import Figure
    >>> means = sz.marginals(sz.generators.grid(side=5, strength=1.0, seed=0))
    >>> sz.plots.marginals(means, ax=Figure().subplots()).images[0].get_array().shape
    (5, 5)
    """
    side, is_zero_one = _side_of_map(result), result.values == "01"
    if side is None:
        axes = _axes(ax)
        maps.draw_means(axes, result.mean, result.std_error, is_zero_one=is_zero_one)
        if result.names is not None:
            maps.name_ticks(axes, result.names)
    else:
        axes = _axes(ax, is_square=True)
        maps.draw_map(axes, result.mean.reshape(side, side), 1.0, "mean of a spin, E[x]")
        axes.set(xlabel="column", ylabel="row")
    words = str(result.kind) if result.kind is Kind.EXACT else f"{result.kind} by {result.estimate.method.name}"
    noun, doubt = "units" if is_zero_one else "spins", "" if result.estimate.trusted else ", not trusted"
    axes.set_title(f"Means of {len(result.mean)} {noun} ({words}{doubt})")
    return axes


def model(result: Ising, ax: Axes | None = None) -> Axes:
    """Draw the couplings J = 2 A of a model: as a matrix up to 500 spins, otherwise as a histogram with the fields.

    Parameters
    ----------
    result
        The model.
    ax
        Where to draw; a new figure of pyplot if not given.

    Returns
    -------
    matplotlib.axes.Axes
        Where it was drawn.

    Examples
    --------
    >>> import spectralz as sz
    >>> from matplotlib.figure import Figure
    >>> glass = sz.generators.complete(n=20, strength=1.0, seed=0)
    >>> sz.plots.model(glass, ax=Figure().subplots()).images[0].get_array().shape
    (20, 20)
    """
    is_matrix = 0 < result.n <= maps.MOST_SPINS_OF_MATRIX
    axes = _axes(ax, is_square=is_matrix, named=result.n if result.names is not None else 0)
    if is_matrix:
        maps.draw_matrix(axes, result)
    else:
        maps.draw_histogram(axes, result)
        drawing.add_legend_below(axes, axes.get_legend_handles_labels()[0])
    largest = float(np.abs(result.field).max(initial=0.0))
    axes.set_title(f"{result.n} spins, " + (f"fields up to {largest:.3g}" if largest else "no field"))
    return axes


def comparison_picture(comparison: Comparison, title: str, file_format: str = "png") -> bytes:
    r"""Draw the methods of a comparison below each other: log Z, proven bounds, and the exact value if there is one.

    Methods that failed are left out.

    Parameters
    ----------
    comparison
        The comparison.
    title
        The title of the figure.
    file_format
        ``"png"``, ``"svg"`` or ``"pdf"``.

    Returns
    -------
    bytes
        The file.

    Raises
    ------
    OptionError
        If there is no such format.

    See Also
    --------
    comparison : draws on an Axes.

    Examples
    --------
    >>> import spectralz as sz
    >>> table = sz.compare(sz.generators.complete(n=8, strength=0.5, seed=0))
    >>> comparison_picture(table, "eight spins")[:4]
    b'\x89PNG'
    """
    check_format(file_format)
    return saved(comparison_figure(comparison, title), file_format, dpi=DPI)


def bracket_picture(estimate: Estimate, title: str, file_format: str = "png") -> bytes:
    r"""Draw an answer in its bracket, with its error bar, and below it each method that was tried.

    The shaded band is the range between the proven bounds. If the estimates are too close together to be distinguished
    in it, a second panel shows them alone.

    Parameters
    ----------
    estimate
        The answer.
    title
        The title of the figure.
    file_format
        ``"png"``, ``"svg"`` or ``"pdf"``.

    Returns
    -------
    bytes
        The file.

    Raises
    ------
    OptionError
        If there is no such format.

    See Also
    --------
    estimate : draws on an Axes.

    Examples
    --------
    >>> import spectralz as sz
    >>> result = sz.log_z(sz.generators.complete(n=8, strength=0.5, seed=0), "spectral")
    >>> bracket_picture(result, "eight spins")[:4]
    b'\x89PNG'
    """
    check_format(file_format)
    return saved(bracket_figure(estimate, title), file_format, dpi=DPI)


def comparison_figure(comparison: Comparison, title: str = "") -> Figure:
    """Return the figure of `comparison_picture`."""
    rows = drawing.rows_of_comparison(comparison)
    figure = _figure(title, len(rows))
    drawing.draw_comparison(figure.add_subplot(), comparison, rows)
    drawing.add_legend(figure, drawing.handles_of(rows, "not converged"))
    return figure


def bracket_figure(estimate: Estimate, title: str = "") -> Figure:
    """Return the figure of `bracket_picture`."""
    rows = drawing.rows_of_answer(estimate)
    near = drawing.zoom(rows)
    figure = _figure(title, len(rows))
    panels = figure.subplots(1, 1 if near is None else 2, sharey=True, squeeze=False).ravel()
    for axes in panels:
        drawing.draw_answer(axes, estimate, rows, is_numbered=False)
    if near is not None:
        panels[0].set_title("with the proven bounds", fontsize="medium")
        panels[1].set_title("the estimates alone", fontsize="medium")
        panels[1].set_xlim(near)
        panels[1].tick_params(axis="y", length=0)
    handles = drawing.handles_of(rows, "not trusted") + drawing.interval_handles(estimate.interval)
    drawing.add_legend(figure, handles)
    return figure


def means_figure(marginals_: Marginals) -> Figure:
    """Return the picture of `marginals` as a figure without a title."""
    figure = empty_figure(3.4 if _side_of_map(marginals_) is None else 4.6)
    marginals(marginals_, figure.add_subplot()).set_title("")
    return figure


def _side_of_map(result: Marginals) -> int | None:
    """Return the side of the square grid on which means are drawn, or None if there is none."""
    return maps.side_of_grid(len(result.mean), result.edges) if result.values == "pm1" else None


def _axes(ax: Axes | None, rows: int = 7, *, is_square: bool = False, named: int = 0) -> Axes:
    """Return the Axes, or a new one with room for this many rows, or for names at a square."""
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    more = max(0.0, maps.INCHES_PER_NAME * named - 3.0) if named <= maps.MOST_NAMES else 0.0
    size = (6.0 + more, 5.0 + more) if is_square else (WIDTH, _height(rows))
    _, axes = plt.subplots(figsize=size, layout="constrained")
    return axes


def _height(rows: int) -> float:
    return 1.6 + 0.42 * max(rows, 1)


def _figure(title: str, rows: int) -> Figure:
    figure = empty_figure(_height(rows), WIDTH)
    if title:
        figure.suptitle(title)
    return figure
