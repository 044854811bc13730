"""Fig. 3e: errors on the 15 x 15 grid (paper, Sec. 4.4)."""

from __future__ import annotations

from functools import partial

from spectralz.paper.drawing import draw_errors
from spectralz.paper.fig3abcd_dense_graphs import (
    CONTESTANTS,
    MODELS,
    NOTES,
    QUICK_STRENGTHS,
    STRENGTHS,
    STRONG_COUPLING,
    worst_of_all,
)
from spectralz.report import Claim, Figure
from spectralz.sweeps import Sweep

SIDE = 15
QUICK_MODELS = 4
MF_IS_WORST = Claim(
    sentence="On the 15 x 15 grid and on the UAI grids no method errs more than MF (Section 4.4).", check=worst_of_all
)


def _sweep(values: tuple[float, ...], repeats: int) -> Sweep:
    return Sweep(
        name="fig3e",
        contestants=CONTESTANTS,
        generator="grid",
        parameters={"side": SIDE},
        values=values,
        repeats=repeats,
    )


FIGURE = Figure(
    name="fig3e",
    title="Fig. 3e: grid of 225 spins (15 x 15)",
    full=_sweep(STRENGTHS, MODELS),
    quick=_sweep(QUICK_STRENGTHS, QUICK_MODELS),
    draw=partial(draw_errors, contestants=CONTESTANTS, floor=1e-3, xlabel="coupling strength s"),
    claims=(STRONG_COUPLING, MF_IS_WORST),
    notes=NOTES,
)
