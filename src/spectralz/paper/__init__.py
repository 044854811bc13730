"""The figures of the paper, one or a few of a kind per module: sweeps, drawings and the paper's claims about them.

``FIGURES`` has all of them in the paper's order, by their names on the command line.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from spectralz.paper import (
    fig2a_choice_of_diagonal,
    fig2b_sdp_time,
    fig2c_rank_one,
    fig3abcde_strengths,
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
        *fig3abcde_strengths.FIGURES,
        fig3f_uai.FIGURE,
        fig4_run_time.FIGURE,
    )
}
