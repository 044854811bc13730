"""The figures of the paper: one module per figure, with its sweep, its drawing and the paper's claims about it.

``FIGURES`` has all of them in the paper's order, by their names on the command line.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from spectralz.paper import (
    fig2a_choice_of_diagonal,
    fig2b_sdp_time,
    fig2c_rank_one,
    fig3abcd_dense_graphs,
    fig3e_grid,
    fig3f_uai,
    fig4_run_time,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from spectralz.report import Figure

__all__ = ["FIGURES"]

FIGURES: Mapping[str, Figure] = {
    figure.name: figure
    for figure in (
        fig2a_choice_of_diagonal.FIGURE,
        fig2b_sdp_time.FIGURE,
        fig2c_rank_one.FIGURE,
        *fig3abcd_dense_graphs.FIGURES,
        fig3e_grid.FIGURE,
        fig3f_uai.FIGURE,
        fig4_run_time.FIGURE,
    )
}
