"""Fig. 4: running time against the number of spins on complete graphs (paper, Sec. 4.4)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from spectralz.paper.drawing import draw_times, fitted_exponent, means, short
from spectralz.paper.fig2b_sdp_time import timed_sweep
from spectralz.paper.fig3abcde_strengths import ALGORITHM_2, MODELS
from spectralz.report import Claim, Figure
from spectralz.sweeps import Contestant

if TYPE_CHECKING:
    from collections.abc import Sequence

    from spectralz.sweeps import Row

SIZES = (100, 200, 300, 400, 500)
QUICK_SIZES = (100, 200, 300, 400)
RIVALS = ("BP-200", "MF-1000", "MBE-10")
ALIKE = 1.25  # ratio of exponents up to which two methods are said to scale alike
CONTESTANTS = (
    Contestant(label=ALGORITHM_2, method="Ours"),
    *(Contestant(label=label, method=label) for label in RIVALS),
    Contestant(label="Algorithm 2, quadrature", method="spectral", options={"restarts": 0}, is_ours=True),
)


def exponents(rows: Sequence[Row]) -> dict[str, float]:
    """Return the powers of n that fit the mean times, for the methods with at least two sizes."""
    powers = {
        label: fitted_exponent(list(places), [summary.seconds for summary in places.values()])
        for label, places in means(rows).items()
    }
    return {label: power for label, power in powers.items() if power is not None}


def scales_like_bp(rows: Sequence[Row], label: str = ALGORITHM_2, *, expected: bool = True) -> tuple[str, bool]:
    """Check whether the exponent of ``label`` is at most ``ALIKE`` times that of BP, as ``expected``."""
    power = exponents(rows)
    if label not in power or power.get("BP-200", 0.0) <= 0.0:
        return f"The rows hold no times of {label} and BP-200 at two sizes.", False
    ratio = power[label] / power["BP-200"]
    words = f"{label} takes n^{power[label]:.2f}, BP-200 n^{power['BP-200']:.2f}: a ratio of {ratio:.2f}"
    return f"{words} (we call up to {ALIKE:g} alike).", (ratio <= ALIKE) == expected


def fastest(rows: Sequence[Row], label: str = "MF-1000") -> tuple[str, bool]:
    """Compare mean times at the largest size; that of ``label`` must be the least of the paper's methods."""
    table = {name: places for name, places in means(rows).items() if name in (ALGORITHM_2, *RIVALS)}
    largest = max((n for places in table.values() for n in places), default=0.0)
    times = {name: places[largest].seconds for name, places in table.items() if largest in places}
    times = {name: seconds for name, seconds in times.items() if seconds >= 0.0}
    if label not in times or len(times) < 2:
        return f"The rows hold no times of {label} and another method at one size.", False
    parts = ", ".join(f"{name} {short(seconds)} s" for name, seconds in times.items())
    return f"At n = {largest:g}: {parts}.", times[label] == min(times.values())


FIGURE = Figure(
    name="fig4",
    title="Fig. 4: running time, complete graphs, s = 1",
    full=timed_sweep("fig4", CONTESTANTS, SIZES, MODELS),
    quick=timed_sweep("fig4", CONTESTANTS, QUICK_SIZES, 3),
    draw=partial(draw_times, contestants=CONTESTANTS, xlabel="number of spins n"),
    claims=(
        Claim(sentence="The time of Algorithm 2 grows with n as that of BP does (Section 4.4).", check=scales_like_bp),
        Claim(
            sentence="The time of MBE grows faster with n than that of BP (Section 4.4).",
            check=partial(scales_like_bp, label="MBE-10", expected=False),
        ),
        Claim(sentence="No method takes less time than MF (Section 4.4).", check=fastest),
    ),
    notes="The strength, s = 1, is ours: the paper does not print it. Times are of our implementations, one thread; "
    "BP-200 and MF-1000 may stop earlier where nothing moves any more. Algorithm 2 is called Ours in the paper.",
)
