"""Figs. 3a to 3e: errors on Erdos-Renyi, complete and complete bipartite graphs and on a grid (paper, Sec. 4.4).

The other figures take their strengths, and the claim about strong couplings, from here.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from spectralz.paper.drawing import draw_errors, means, short
from spectralz.report import Claim, Figure
from spectralz.sweeps import Contestant, Sweep

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from spectralz.sweeps import Row, Summary

# The ranges of s are not in the text.
STRENGTHS = (0.05, 0.1, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0)
QUICK_STRENGTHS = (0.05, 0.25, 1.0, 2.0, 4.0)
STRONG = 2.0  # couplings from here on count as strong
MODELS, QUICK_MODELS = 100, 10
ALGORITHM_2 = "Algorithm 2"
RIVALS = ("BP-200", "MF-1000", "MBE-10", "WMBE-10")
PAPER_LABELS = (ALGORITHM_2, *RIVALS)
CONTESTANTS = (
    Contestant(label=ALGORITHM_2, method="Ours"),
    *(Contestant(label=label, method=label) for label in RIVALS),
    Contestant(label="Algorithm 2, quadrature", method="spectral", options={"restarts": 0}, is_ours=True),
    Contestant(label="BP, damped", method="bp", options={"max_iter": 1000, "damping": 0.5}, is_ours=True),
    Contestant(label="MF, 20 starts", method="mf", options={"max_iter": 1000, "restarts": 20}, is_ours=True),
    Contestant(label="WMBE-10, 30 rounds", method="wmbe", options={"ibound": 10, "max_iter": 30}, is_ours=True),
    Contestant(label="Exact", method="exact", is_ours=True),
)
NOTES = (
    "The strengths s are ours: the paper does not print its range. A_ij ~ U[-s, s] as in the text, so that an edge "
    "counted once weighs 2 A_ij. Algorithm 2 is called Ours in the paper. MF-1000 updates one spin at a time, from 0."
)
Verdict = tuple[str, bool]


def best_at_strong_coupling(rows: Sequence[Row], rivals: tuple[str, ...] = RIVALS) -> Verdict:
    """Compare Algorithm 2 with its rivals at each strength from ``STRONG`` on; its mean |error| must be the least."""
    table = means(rows)
    strengths = _strong(table, (ALGORITHM_2, *rivals))
    if not strengths:
        return f"The rows hold no errors of {ALGORITHM_2} and a rival at s >= {STRONG:g}.", False
    parts, wins = [], 0
    for s in strengths:
        ours = table[ALGORITHM_2][s]
        best = min((table[label][s] for label in rivals if _known(table, label, s)), key=lambda rival: rival.mean)
        parts.append(f"{_error(ours)} against {_error(best)} ({best.label}) at s = {s:g}")
        wins += ours.mean < best.mean
    others = "the best of the others" if len(rivals) > 1 else rivals[0]
    heading = f"Mean |error| of {ALGORITHM_2} and {others}: "
    return f"{heading}{', '.join(parts)}. Least at {wins} of {len(strengths)} strengths.", wins == len(strengths)


def least_spread(rows: Sequence[Row], rivals: tuple[str, ...] = ("BP-200", "MF-1000")) -> Verdict:
    """Compare the standard deviations of |error| from model to model; Algorithm 2's must be the least."""
    table = means(rows)
    together = (ALGORITHM_2, *rivals)
    strengths = [s for s in _strong(table, together) if all(_known(table, label, s) for label in together)]
    strengths = [s for s in strengths if all(table[label][s].count > 1 for label in together)]
    if not strengths:
        return f"The rows hold no strength s >= {STRONG:g} with two models of {', '.join(together)}.", False
    parts = [
        f"s = {s:g}: " + ", ".join(f"{label} {short(table[label][s].spread)}" for label in together) for s in strengths
    ]
    holds = all(table[ALGORITHM_2][s].spread < table[label][s].spread for s in strengths for label in rivals)
    return f"Standard deviation of |error| from model to model, {'; '.join(parts)}.", holds


def worst_of_all(rows: Sequence[Row], label: str = "MF-1000") -> Verdict:
    """Compare |error| over all rows; that of ``label`` must be the largest of the paper's methods."""
    errors = {
        name: [abs(row.error) for row in rows if row.label == name and row.error is not None] for name in PAPER_LABELS
    }
    mean = {name: math.fsum(sizes) / len(sizes) for name, sizes in errors.items() if sizes}
    if label not in mean or len(mean) < 2:
        return f"The rows hold no errors of {label} and another method.", False
    parts = ", ".join(f"{name} {short(mean[name])}" for name in sorted(mean, key=lambda name: -mean[name]))
    return f"Mean |error| over all models: {parts}.", all(mean[label] >= other for other in mean.values())


def _strong(table: Mapping[str, Mapping[float, Summary]], labels: tuple[str, ...]) -> list[float]:
    """Return the strong couplings at which errors of the first method and of at least one other are known."""
    first, *others = labels
    return [
        s
        for s in sorted(table.get(first, {}))
        if s >= STRONG and _known(table, first, s) and any(_known(table, label, s) for label in others)
    ]


def _known(table: Mapping[str, Mapping[float, Summary]], label: str, s: float) -> bool:
    return s in table.get(label, {}) and math.isfinite(table[label][s].mean)


def _error(summary: Summary) -> str:
    return f"{short(summary.mean)} ± {short(summary.standard_error)}"


STRONG_COUPLING = Claim(
    sentence="Where couplings are strong, Algorithm 2 has the smallest error on every kind of graph (Section 4.4).",
    check=best_at_strong_coupling,
)
MF_IS_WORST = Claim(
    sentence="On the 15 x 15 grid and on the UAI grids no method errs more than MF (Section 4.4).", check=worst_of_all
)
DENSE = (
    Claim(
        sentence="Dense graphs suit MF, and even there Algorithm 2 has the smaller error (Section 4.4).",
        check=partial(best_at_strong_coupling, rivals=("MF-1000",)),
    ),
    Claim(
        sentence="At strong coupling the errors of BP and MF change much from model to model; those of Algorithm 2 "
        "stay together (Section 4.4).",
        check=least_spread,
    ),
)


def strength_figure(
    name: str,
    what: str,
    generator: str,
    parameters: Mapping[str, Any],
    *,
    claims: tuple[Claim, ...] = (STRONG_COUPLING,),
    contestants: tuple[Contestant, ...] = CONTESTANTS,
    quick_models: int = QUICK_MODELS,
    floor: float = 1e-3,
    xlabel: str = "coupling strength s",
    notes: str = NOTES,
) -> Figure:
    """Return a figure of errors against the strength of couplings."""
    full = Sweep(
        name=name,
        contestants=contestants,
        generator=generator,
        parameters=parameters,
        values=STRENGTHS,
        repeats=MODELS,
    )
    return Figure(
        name=name,
        title=f"Fig. {name.removeprefix('fig')}: {what}",
        full=full,
        quick=replace(full, values=QUICK_STRENGTHS, repeats=quick_models),
        draw=partial(draw_errors, contestants=contestants, floor=floor, xlabel=xlabel),
        claims=claims,
        notes=notes,
    )


FIGURES = (
    strength_figure("fig3a", "Erdős-Rényi graph of 20 spins, p = 0.5", "erdos-renyi", {"n": 20, "p": 0.5}),
    strength_figure("fig3b", "Erdős-Rényi graph of 20 spins, p = 0.7", "erdos-renyi", {"n": 20, "p": 0.7}),
    strength_figure("fig3c", "complete graph of 20 spins", "complete", {"n": 20}, claims=(STRONG_COUPLING, *DENSE)),
    strength_figure("fig3d", "complete bipartite graph of 20 spins", "bipartite", {"n": 20}),
    strength_figure(
        "fig3e",
        "grid of 225 spins (15 x 15)",
        "grid",
        {"side": 15},
        claims=(STRONG_COUPLING, MF_IS_WORST),
        quick_models=4,
    ),
)
