"""Fig. 2b: time to solve the diagonal SDP against the number of spins (paper, Sec. 4.2)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from spectralz.paper.drawing import draw_times, fitted_exponent, means
from spectralz.report import Claim, Figure
from spectralz.show.canvas import draw_legend
from spectralz.sweeps import Contestant, Sweep

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

    from spectralz.sweeps import Row

LABEL = "SDP"
CONTESTANTS = (Contestant(label=LABEL, method="sdp"),)
SIZES = (100, 200, 500, 1000, 2000, 5000)
QUICK_SIZES = (100, 200, 300, 500, 700, 1000)
LARGEST_FITTED = 2000
POLYNOMIALS = {"quadratic": (2, "#0072B2", ":"), "cubic": (3, "#009E73", "-.")}


def timed_sweep(name: str, contestants: tuple[Contestant, ...], sizes: tuple[int, ...], repeats: int) -> Sweep:
    """Return the sweep of Figs. 2b and 4: times on complete graphs with s = 1 against size; no truth is needed."""
    return Sweep(
        name=name,
        contestants=contestants,
        generator="complete",
        parameters={"strength": 1.0},
        axis="n",
        values=sizes,
        repeats=repeats,
        truth=False,
    )


def times(rows: Sequence[Row]) -> tuple[list[float], list[float]]:
    """Return the sizes and the mean times."""
    timed = [summary for summary in means(rows).get(LABEL, {}).values() if summary.seconds > 0.0]
    return [summary.x for summary in timed], [summary.seconds for summary in timed]


def polynomial(sizes: Sequence[float], seconds: Sequence[float], degree: int) -> np.poly1d | None:
    """Return the polynomial with the best relative fit to the times up to ``LARGEST_FITTED``; None with too few."""
    fitted = [(n, t) for n, t in zip(sizes, seconds, strict=True) if n <= LARGEST_FITTED]
    if len(fitted) <= degree:
        return None
    n, t = np.array(fitted, dtype=np.float64).T
    return np.poly1d(np.polyfit(n, t, degree, w=1.0 / t))


def between_square_and_cube(rows: Sequence[Row]) -> tuple[str, bool]:
    """Fit a power of n to the mean times; it must be between 2 and 3."""
    sizes, seconds = times(rows)
    power = fitted_exponent(sizes, seconds)
    if power is None:
        return "The rows hold no times of the SDP at two sizes.", False
    words = f"The time grows as n^{power:.2f} from n = {min(sizes):g} to {max(sizes):g}"
    return f"{words} ({seconds[-1]:.3g} s at the largest).", 2.0 <= power <= 3.0


def draw(rows: Sequence[Row], axes: Axes) -> None:
    """Draw the times, and the quadratic and cubic fitted to those up to n = 2000."""
    draw_times(rows, axes, contestants=CONTESTANTS, xlabel="number of spins n")
    sizes, seconds = times(rows)
    for name, (degree, color, line) in POLYNOMIALS.items():
        fit = polynomial(sizes, seconds, degree)
        if fit is not None:
            n = np.geomspace(min(sizes), max(sizes), 200)
            t = fit(n)
            label = f"{name}, fitted up to n = {min(max(sizes), LARGEST_FITTED):g}"
            axes.plot(n[t > 0.0], t[t > 0.0], color=color, linestyle=line, linewidth=1.6, label=label)
    draw_legend(axes)


FIGURE = Figure(
    name="fig2b",
    title="Fig. 2b: time to solve the SDP (15), complete graph, s = 1",
    full=timed_sweep("fig2b", CONTESTANTS, SIZES, 10),
    quick=timed_sweep("fig2b", CONTESTANTS, QUICK_SIZES, 5),
    draw=draw,
    claims=(
        Claim(
            sentence="The time that the SDP (15) takes grows faster than n^2 and slower than n^3 (Section 4.2).",
            check=between_square_and_cube,
        ),
    ),
    notes="The paper's times are those of SDPT3, an interior point method; ours are those of our own solver, another "
    "algorithm. Sizes between 100 and 5000 and s = 1 are our choice. The fits weigh relative deviations, as "
    "logarithmic scales show them.",
)
