"""Fig. 2c: errors of Algorithm 1 and of the baselines on rank-1 models (paper, Sec. 4.3)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from spectralz.paper.drawing import short
from spectralz.paper.fig3abcde_strengths import RIVALS, strength_figure
from spectralz.report import Claim
from spectralz.sweeps import Contestant

if TYPE_CHECKING:
    from collections.abc import Sequence

    from spectralz.sweeps import Row

N = 20
ALGORITHM_1 = "Algorithm 1"
NEAR = 0.01  # the share of log Z that we call nearly exact; a mean error above it is a failure
CONTESTANTS = (
    Contestant(label=ALGORITHM_1, method="low_rank", options={"max_cells": 10**9, "tol": 1e-3}),
    *(Contestant(label=label, method=label) for label in RIVALS),
    Contestant(label="Quadrature", method="quadrature", options={"tol": 1e-3}, is_ours=True),
    Contestant(label="Exact", method="exact", is_ours=True),
)


def near_exact(rows: Sequence[Row]) -> tuple[str, bool]:
    """Check that Algorithm 1 is within ``NEAR`` of log Z at every strength, and that no other method is."""
    worst = {label: _worst(rows, label) for label in (ALGORITHM_1, *RIVALS)}
    known = {label: error for label, error in worst.items() if error is not None}
    if ALGORITHM_1 not in known or len(known) < 2:
        return f"The rows hold no errors of {ALGORITHM_1} and another method.", False
    parts = ", ".join(
        f"{label} {short(size)} ({short(100 * share)}% of log Z)" for label, (size, share) in known.items()
    )
    holds = all((share <= NEAR) == (label == ALGORITHM_1) for label, (_, share) in known.items())
    return f"Mean |error| at the worst strength: {parts}; we call up to {NEAR:.0%} of log Z nearly exact.", holds


def _worst(rows: Sequence[Row], label: str) -> tuple[float, float] | None:
    """Return the largest mean |error| over the strengths, and the largest mean of |error| / |log Z|."""
    places: dict[float, list[tuple[float, float]]] = {}
    for row in rows:
        if row.label == label and row.error is not None and row.truth is not None:
            size = abs(row.error)
            places.setdefault(row.x, []).append((size, size / max(1.0, abs(row.truth))))
    columns = [[math.fsum(column) / len(errors) for column in zip(*errors, strict=True)] for errors in places.values()]
    return (max(sizes for sizes, _ in columns), max(shares for _, shares in columns)) if columns else None


FIGURE = strength_figure(
    "fig2c",
    f"rank-1 models of {N} spins",
    "rank-one",
    {"n": N},
    contestants=CONTESTANTS,
    floor=1e-4,
    xlabel="coupling strength s (mean |A_ij|)",
    claims=(
        Claim(
            sentence="Where the coupling has rank 1, Algorithm 1 is nearly exact and no baseline is (Section 4.3).",
            check=near_exact,
        ),
    ),
    notes=f"The number of spins, {N}, and the strengths s are ours: the paper does not print them. s is the sum of "
    "|A_ij| over i != j divided by n (n + 1), as printed. Algorithm 1 is called Ours in the paper.",
)
