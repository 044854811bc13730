"""Curves over temperature, as text and as a picture."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from spectralz.errors import OptionError
from spectralz.show.canvas import COLORS, check_format, empty_figure, saved
from spectralz.show.numbers import counted, with_error
from spectralz.show.tables import Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from spectralz.result import Temperature, Thermodynamics

COLUMNS = (("log_z", "log Z"), ("energy", "energy"), ("entropy", "entropy"), ("heat_capacity", "heat capacity"))
# How many first and last lines of a long table are shown.
MOST_LINES, SHOWN = 40, 15
PER_SPIN = {
    "log_z": r"log Z / n",
    "energy": "energy / n",
    "entropy": "entropy / n",
    "heat_capacity": "heat capacity / n",
    "magnetization": "magnetization",
    "abs_magnetization": "size of the magnetization",
    "overlap": "overlap",
}
EXTENSIVE = ("log_z", "energy", "entropy", "heat_capacity")


def as_text(curves: Thermodynamics) -> str:
    """Return the curves as a table, with errors in parentheses if there are any."""
    words = "exact" if curves.kind == "exact" else "estimates, each with its standard error"
    where = f"{counted(curves.n, 'spin')} at {counted(len(curves.beta), 'temperature')}"
    head = f"{where} ({words}), by {curves.method} in {curves.seconds:.2f} s"
    names = [*COLUMNS, ("magnetization", "magnetization")]
    names += [(name, PER_SPIN[name]) for name in ("abs_magnetization",) if getattr(curves, name) is not None]
    rows = [["beta", *(title for _, title in names)]]
    for k, beta in enumerate(curves.beta):
        if len(curves.beta) > MOST_LINES and SHOWN <= k < len(curves.beta) - SHOWN:
            if k == SHOWN:
                rows.append(["..."] * (len(names) + 1))
            continue
        mark = "" if curves.trusted[k] else " ?"
        rows.append([f"{beta:g}{mark}", *(_number(curves, name, k) for name, _ in names)])
    widths = [max(len(row[c]) for row in rows) + 2 for c in range(len(rows[0]))]
    lines = ["".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
    if not np.all(curves.trusted):
        is_exact = curves.method in ("exact", "quadrature")
        cause = "digits are lost" if is_exact else "too few independent states; give it more time"
        lines.append(f"? not to be trusted: {cause}")
    return "\n".join([head, *lines])


def _number(curves: Thermodynamics, name: str, k: int) -> str:
    value, error = getattr(curves, name)[k], getattr(curves, f"{name}_error")[k]
    if curves.kind == "exact":
        return f"{value:.6f}"
    return with_error(value, error)


def plot_of(curves: Thermodynamics, name: str, ax: Axes | None = None, color: str = COLORS[1]) -> Axes:
    """Draw one quantity over beta, extensive ones per spin; the band is two standard errors on each side."""
    if name not in curves.names:
        raise OptionError(f"there is no {name!r} here; there are {', '.join(curves.names)}")
    if ax is None:
        import matplotlib.pyplot as plt

        ax = plt.subplots(layout="constrained")[1]
    order = np.argsort(curves.beta)
    scale = max(curves.n, 1) if name in EXTENSIVE else 1
    beta, value = curves.beta[order], getattr(curves, name)[order] / scale
    error = getattr(curves, f"{name}_error")[order] / scale
    ax.fill_between(beta, value - 2.0 * error, value + 2.0 * error, color=color, alpha=0.25, linewidth=0)
    ax.plot(beta, value, color=color, marker="o" if len(beta) <= MOST_LINES else "", markersize=3.5)
    doubted = ~curves.trusted[order]
    ax.plot(beta[doubted], value[doubted], "x", color="#7A7A7A", label="not to be trusted" if doubted.any() else None)
    ax.set_xlabel("inverse temperature beta")
    ax.set_ylabel(PER_SPIN[name])
    if doubted.any():
        ax.legend(frameon=False)
    return ax


def plot(curves: Thermodynamics, axes: Any = None) -> NDArray[Any]:
    """Draw log Z, energy, entropy and heat capacity per spin; return the four Axes."""
    if axes is None:
        import matplotlib.pyplot as plt

        axes = plt.subplots(2, 2, figsize=(9.0, 6.4), layout="constrained")[1]
    flat = np.asarray(axes).ravel()
    if len(flat) != len(EXTENSIVE):
        raise OptionError(f"there are {len(flat)} axes; give four of them, or none")
    for k, name in enumerate(EXTENSIVE):
        plot_of(curves, name, flat[k], COLORS[k])
    return flat


def picture(curves: Thermodynamics, file_format: str) -> bytes:
    """Return the picture of the four curves as the bytes of a file."""
    check_format(file_format)
    figure = empty_figure(6.4, 9.0)
    plot(curves, figure.subplots(2, 2))
    figure.suptitle(f"{curves.n} spins, by {curves.method}")
    return saved(figure, file_format, dpi=150)


def beta_in_words(result: Temperature) -> str:
    """Return beta with its error."""
    if result.std_error is None:
        return f"beta = {result.beta:g}"
    return f"beta = {with_error(result.beta, result.std_error)}"


def temperature_table(result: Temperature) -> Table:
    """Return the temperature of samples, and how well they fit the model."""
    low, high, level = result.confidence()
    ends = f"{'-' if low == -np.inf else f'{low:.4g}'} to {'infinity' if high is None else f'{high:.4g}'}"
    test = result.goodness()
    rows = [("temperature", f"{beta_in_words(result)}; {level:.0%}: {ends}")]
    rows.append(("trust", "trusted" if result.trusted else "NOT trusted"))
    rows.append(("mean energy", f"{test.energy_observed:.6g} of {result.samples:g} samples"))
    if test.variance_predicted is not None:
        p = "" if test.p_value is None else f", p = {test.p_value:.2g}"
        words = f"{test.variance_observed:.4g} of the samples, {test.variance_predicted:.4g} of the model{p}"
        rows.append(("variance", words))
    rows.append(("run", f"{result.method}, {result.seconds:.3g} s"))
    rows.append(("status", str(result.status)))
    return Table(rows=tuple(rows))


def draw_temperature(result: Temperature, ax: Axes | None = None) -> Axes:
    """Draw the mean energy over beta, that of the samples, and where they meet."""
    axes = ax
    if axes is None:
        import matplotlib.pyplot as plt

        axes = plt.subplots(figsize=(6.4, 4.2), layout="constrained")[1]
    is_finite = result.std_error is not None
    if result.curve is not None:
        label = "model" if is_finite else "minus log of the probability of ground states"
        axes.plot(*result.curve, "o-", markersize=4, color=COLORS[0], label=label)
    if is_finite:
        error = np.sqrt(result.variance_observed / result.samples)
        axes.axhspan(result.energy_observed - 2 * error, result.energy_observed + 2 * error, color="0.85", linewidth=0)
        axes.axhline(result.energy_observed, color="0.4", label="samples, ± 2 standard errors")
        interval = result.confidence()
        axes.axvspan(interval.low, interval.high or 0.0, color=COLORS[1], alpha=0.25, linewidth=0)
        axes.axvline(result.beta, color=COLORS[1], label=beta_in_words(result))
    axes.set(xlabel="inverse temperature, beta", ylabel="mean energy" if is_finite else "nats")
    axes.legend(fontsize="small")
    return axes


def temperature_picture(result: Temperature, title: str, file_format: str = "png") -> bytes:
    """Return the picture of a temperature as the bytes of a file."""
    check_format(file_format)
    figure = empty_figure()
    draw_temperature(result, figure.subplots()).set_title(title)
    return saved(figure, file_format, dpi=150)
