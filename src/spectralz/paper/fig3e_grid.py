"""Fig. 3e: errors on the 15 x 15 grid (paper, Sec. 4.4)."""

from __future__ import annotations

from spectralz.paper.fig3abcd_dense_graphs import STRONG_COUPLING, strength_figure, worst_of_all
from spectralz.report import Claim

MF_IS_WORST = Claim(
    sentence="On the 15 x 15 grid and on the UAI grids no method errs more than MF (Section 4.4).", check=worst_of_all
)
FIGURE = strength_figure(
    "fig3e",
    "grid of 225 spins (15 x 15)",
    "grid",
    {"side": 15},
    claims=(STRONG_COUPLING, MF_IS_WORST),
    quick_models=4,
)
