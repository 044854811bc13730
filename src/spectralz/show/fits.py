"""Fits for readers: text, tables, and a picture that compares the model's predictions with the data."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from spectralz.errors import printable
from spectralz.show.canvas import check_format, empty_figure, saved
from spectralz.show.numbers import counted, with_error
from spectralz.show.tables import Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from spectralz.result import Bootstrap, Fit, Goodness, Predictability, Wald

WIDTH, HEIGHT = 8.0, 6.6
COLOR = "#1f77b4"
# How many couplings are named in text.
MOST_NAMED = 4
# More couplings than this are drawn without names.
MOST_ROWS_NAMED = 60
VALUES = {"pm1": "-1 and +1", "01": "0 and 1"}


def table(result: Fit) -> Table:
    """Return the main facts about a fit."""
    size = f"{counted(result.model.n, 'variable')}, {counted(len(result.edges), 'coupling')}"
    rows = [("fit", f"{size}, {result.rows:g} rows ({VALUES[result.values]})")]
    if result.log_likelihood is not None:
        rows.append(("log-likelihood", f"{likelihood(result)} per row"))
    if result.aic is not None and result.bic is not None:
        error = 2.0 * result.rows * (result.std_error or 0.0)
        criteria = (f"{value:.6g}" if not error else with_error(value, error) for value in (result.aic, result.bic))
        rows.append(("AIC, BIC", ", ".join(criteria)))
    rows.append(("couplings J", _largest(result)))
    penalty = "" if result.penalty is None else f", {result.penalty} penalty of strength {result.strength:.3g}"
    rows.append(("run", f"{result.method}{penalty}, {result.seconds:.3g} s"))
    rows.append(("status", f"{'' if result.status.converged else 'NOT CONVERGED: '}{result.status}"))
    return Table(rows=tuple(rows))


def likelihood(result: Fit) -> str:
    """Return the log-likelihood per row, with its error."""
    value, error = result.log_likelihood, result.std_error
    return f"{value:.6f}" if error is None else with_error(value, error)  # type: ignore[arg-type]


def _largest(result: Fit) -> str:
    """Name the largest couplings, with their errors."""
    pairs, J = result.model.edges()
    if not len(J):
        return "none"
    shown = []
    for k in np.argsort(-np.abs(J), kind="stable")[:MOST_NAMED].tolist():
        i, j = pairs[k].tolist()
        names = (i, j) if result.model.names is None else (result.model.names[i], result.model.names[j])
        error = None if result.coupling_error is None else float(result.coupling_error[k])
        number = f"{J[k]:+.3g}" if not error else f"{J[k]:+.3f} ± {error:.3f}"
        shown.append(f"{printable(names[0])} - {printable(names[1])} {number}")
    more = ", ..." if len(J) > MOST_NAMED else ""
    return "; ".join(shown) + more


def wald_table(result: Wald) -> Table:
    """Return the parameters with their tests, largest z first."""
    order = np.argsort(-np.abs(result.z), kind="stable").tolist()
    rows = tuple(
        (
            " - ".join(map(str, result.parameters[k])),
            f"{result.estimate[k]:+.4f}",
            f"{result.std_error[k]:.4f}",
            f"{result.z[k]:+.2f}",
            f"{result.p_value[k]:.2g}",
        )
        for k in order
    )
    return Table(headings=("parameter", "estimate", "std error", "z", "p"), rows=rows)


def predictability_table(result: Predictability) -> Table:
    """Return the shares of explained variance, the largest first."""
    rows = []
    for k in np.argsort(-result.share, kind="stable").tolist():
        error = None if result.std_error is None else float(result.std_error[k])
        share = f"{result.share[k]:.4f}" if not error else with_error(float(result.share[k]), error)
        rows.append((printable(result.names[k]), share))
    return Table(headings=("variable", "explained"), rows=tuple(rows))


def draw_predictability(result: Predictability, ax: Axes | None = None) -> Axes:
    """Draw the shares of explained variance as bars, the largest at the top."""
    order = np.argsort(result.share, kind="stable")
    axes = _tall_axes(len(order)) if ax is None else ax
    error = None if result.std_error is None else 2.0 * result.std_error[order]
    axes.barh(np.arange(len(order)), result.share[order], xerr=error, color=COLOR, alpha=0.7)
    axes.set_yticks(np.arange(len(order)), [printable(result.names[k]) for k in order.tolist()], fontsize="small")
    axes.set(xlabel="share of the variance that the others explain", xlim=(0.0, 1.0), ylim=(-0.6, len(order) - 0.4))
    axes.grid(axis="x", alpha=0.3)
    return axes


def draw_bootstrap(result: Bootstrap, ax: Axes | None, level: float) -> Axes:
    """Draw couplings in the order of their size, with the intervals of a bootstrap."""
    couplings = [k for k, key in enumerate(result.parameters) if len(key) == 2]
    order = np.array(couplings, dtype=np.int64)[np.argsort(result.estimate[couplings], kind="stable")]
    axes = _tall_axes(len(order)) if ax is None else ax
    low, high = result.intervals(level)[order].T
    places = np.arange(len(order))
    axes.hlines(places, low, high, color="0.7", linewidth=2.0 if len(order) <= MOST_ROWS_NAMED else 0.8)
    middle = result.estimates[:, order].mean(axis=0)
    axes.plot(middle, places, "|", color="0.35", markersize=5, label="mean of repetitions")
    axes.plot(result.estimate[order], places, "o", color=COLOR, markersize=3.5, label="estimate")
    axes.axvline(0.0, color="gray", linewidth=0.8, zorder=0)
    if len(order) <= MOST_ROWS_NAMED:
        names = [" - ".join(map(str, result.parameters[k])) for k in order.tolist()]
        axes.set_yticks(places, names, fontsize="small")
    else:
        axes.set(ylabel="couplings in the order of their size", yticks=[])
    axes.set(xlabel="coupling J", title=f"{level:.0%} intervals of {len(result.estimates)} repetitions")
    axes.legend(loc="lower right", fontsize="small")
    return axes


def _tall_axes(rows: int) -> Axes:
    """Return new Axes with room for so many names below each other, up to a page."""
    import matplotlib.pyplot as plt

    height = 1.2 + 0.2 * min(rows, MOST_ROWS_NAMED)
    return plt.subplots(figsize=(6.4, max(height, 2.5)), layout="constrained")[1]


def goodness_table(result: Goodness) -> Table:
    """Return how well a model fits."""
    how = "exact" if result.is_exact else "from states drawn"
    pair = float(np.abs(result.pair_observed - result.pair_predicted).max(initial=0.0))
    third = float(np.abs(result.third_observed - result.third_predicted).max(initial=0.0))
    active = float(np.abs(result.active_observed - result.active_predicted).max(initial=0.0))
    z = "" if result.third_z is None else f", {result.third_z:.2f} standard errors on average"
    test = result.why
    if result.statistic is not None:
        test = f"G^2 = {result.statistic:.4g}, df = {result.df}, p = {result.p_value:.3g}"
    rows = (
        ("predictions", how),
        ("pairs", f"{len(result.pairs)}, off by up to {pair:.2g}"),
        ("triples", f"{len(result.triples)}, off by up to {third:.2g}{z}"),
        ("number of +1", f"probabilities off by up to {active:.2g}"),
        ("against saturated", test),
    )
    return Table(rows=rows)


def draw(result: Fit, figure: Figure | None = None) -> Figure:
    """Draw predicted against observed moments, and the distribution of the number of +1.

    Parameters
    ----------
    result
        The fit.
    figure
        Where to draw; a new figure of pyplot if not given.

    Examples
    --------
    >>> import spectralz as sz
    >>> from matplotlib.figure import Figure
    >>> fit = sz.fit(sz.sample(sz.generators.chain(n=4, strength=0.5), 500, seed=0))
    >>> [axes.get_title() for axes in fit.plot(Figure()).axes]
    ['means', 'pairs', 'triples', 'how many are +1']
    """
    if figure is None:
        import matplotlib.pyplot as plt

        figure = plt.figure(figsize=(WIDTH, HEIGHT), layout="constrained")
    moments = result.goodness()
    axes = figure.subplots(2, 2)
    _scatter(axes[0, 0], moments.mean_observed, moments.mean_predicted, "means", "E[x]", result.rows)
    _scatter(axes[0, 1], moments.pair_observed, moments.pair_predicted, "pairs", "E[x x']", result.rows)
    _scatter(axes[1, 0], moments.third_observed, moments.third_predicted, "triples", "E[x x' x'']", result.rows)
    _counts(axes[1, 1], moments.active_observed, moments.active_predicted, result)
    return figure


def _scatter(axes: Axes, observed: np.ndarray, predicted: np.ndarray, title: str, what: str, rows: float) -> None:
    """Draw predictions against observations, with a band of two standard errors of the data around equality."""
    both = np.concatenate([observed, predicted, [-0.05, 0.05]])
    low, high = max(float(both.min()) - 0.05, -1.0), min(float(both.max()) + 0.05, 1.0)
    line = np.linspace(low, high, 101)
    band = 2.0 * np.sqrt((1.0 - line**2) / rows)
    axes.fill_between(line, line - band, line + band, color="0.9", linewidth=0, label="± 2 std errors of the data")
    axes.plot(line, line, color="0.5", linewidth=0.8)
    axes.plot(predicted, observed, "o", markersize=3.5, alpha=0.6, color=COLOR, markeredgewidth=0)
    axes.set(title=title, xlabel=f"model: {what}", ylabel=f"data: {what}", xlim=(low, high), ylim=(low, high))
    if title == "means":
        axes.legend(loc="upper left", fontsize="small", frameon=False)


def _counts(axes: Axes, observed: np.ndarray, predicted: np.ndarray, result: Fit) -> None:
    numbers, error = np.arange(len(observed)), np.sqrt(predicted * (1.0 - predicted) / result.rows)
    axes.bar(numbers, observed, color="0.8", label="data")
    axes.errorbar(numbers, predicted, 2.0 * error, fmt="o", markersize=3.5, color=COLOR, label="model", linewidth=1.0)
    what = "1" if result.values == "01" else "+1"
    axes.set(title=f"how many are {what}", xlabel="variables", ylabel="probability")
    axes.legend(fontsize="small", frameon=False)


def picture(result: Fit, title: str, file_format: str = "png") -> bytes:
    """Return the picture of a fit as the bytes of a file."""
    check_format(file_format)
    figure = draw(result, empty_figure(HEIGHT, WIDTH))
    figure.suptitle(title)
    return saved(figure, file_format, dpi=150)
