"""How wide proven brackets of log Z are: ``python -m benchmarks.bounds [FAMILY ...]`` makes tables of docs/bounds.md.

Each cell of a bounder is its distance from the truth where an exact method reaches it, and else from the other side of
the bracket. ``python -m benchmarks.bounds mini-buckets`` makes the table of weighted mini-buckets from both sides.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable

import spectralz as sz
from benchmarks.harness import processor, table

STRENGTHS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
MODELS = 3
BUDGET = 3.0
FAMILIES: dict[str, Callable[[float, int], sz.Ising]] = {
    "complete, n = 20": lambda s, seed: sz.generators.complete(20, s, seed),
    "Erdos-Renyi, n = 20, p = 0.5": lambda s, seed: sz.generators.erdos_renyi(20, 0.5, s, seed),
    "bipartite, n = 20": lambda s, seed: sz.generators.bipartite(20, s, seed),
    "grid 10 x 10": lambda s, seed: sz.generators.grid(10, s, seed),
    "grid 15 x 15": lambda s, seed: sz.generators.grid(15, s, seed),
    "complete, n = 100": lambda s, seed: sz.generators.complete(100, s, seed),
}
BEYOND_EXACT = ("complete, n = 100",)
BUCKET_STRENGTHS = (0.05, 0.1, 0.2, 1.0, 4.0)
UPPERS = ("trivial", "trw", "wmbe", "sdp", "convex_mf")


def distances(model: sz.Ising, truth: float | None) -> dict[str, float]:
    """Return how far each bound is from the truth, or from the other side of the bracket if that is not known."""
    found = sz.bounds(model, BUDGET)
    rows = {row.method: row for row in found.rows}
    from_below = found.upper if truth is None else truth
    from_above = found.lower if truth is None else truth
    cells = {"lower side": from_below - found.lower}
    for name in UPPERS:
        upper = rows[name].upper if name in rows else None
        cells[name] = float("nan") if upper is None else upper - from_above
    return {**cells, "bracket": found.width, "seconds": found.seconds}


def family(name: str, strengths: tuple[float, ...] = STRENGTHS, models: int = MODELS) -> str:
    """Return the table of one family, means over the models."""
    lines = []
    for s in strengths:
        found = []
        for seed in range(models):
            model = FAMILIES[name](s, seed)
            truth = None if name in BEYOND_EXACT else sz.log_z(model, "exact").log_z
            found.append(distances(model, truth))
        lines.append([f"{s:g}", *(f"{statistics.fmean(cells[key] for cells in found):.3g}" for key in found[0])])
        print(name, " | ".join(lines[-1]), file=sys.stderr, flush=True)
    return table(["s", *found[0]], lines)


def mini_buckets(sides: tuple[int, ...] = (10, 50, 100), strengths: tuple[float, ...] = BUCKET_STRENGTHS) -> str:
    """Return how far weighted mini-buckets are from log Z on grids, above and below, and plain mean field below.

    The truth is that of elimination compressed to bond 32, good to 1e-5 here. Seconds are those of the processor.
    """
    lines = []
    for side in sides:
        for s in strengths:
            model = sz.generators.grid(side, s, seed=0)
            truth = sz.log_z(model, "mps", bond=32).log_z
            cells, seconds = [], []
            for bound in ("upper", "lower"):
                began = time.process_time()
                found = sz.log_z(model, "wmbe", ibound=10, max_iter=30, order="narrow", bound=bound, threads=1)
                seconds.append(time.process_time() - began)
                cells.append(abs(truth - (found.log_z if found.kind is sz.Kind.EXACT else getattr(found, bound))))
            cells.append(truth - sz.log_z(model, "mf").lower)
            lines.append([f"{side} x {side}", f"{s:g}", *(f"{x:.3g}" for x in cells), *(f"{t:.2f}" for t in seconds)])
            print(" | ".join(lines[-1]), file=sys.stderr, flush=True)
    return table(["grid", "s", "above", "below", "mf below", "seconds above", "seconds below"], lines)


def main(names: list[str]) -> None:
    """Print the tables of these families; all take about five minutes, most of it the budgets."""
    if names == ["mini-buckets"]:
        sz.log_z(sz.generators.grid(8, 1.0, seed=0), "wmbe", ibound=4, max_iter=2)  # loads what is compiled
        print(f"ibound 10, 30 rounds, {processor()}\n\n{mini_buckets()}")
        return
    sz.bounds(sz.generators.grid(4, 1.0, seed=0))  # loads what is compiled
    print(f"{MODELS} models each, budget {BUDGET:g} s, {processor()}")
    for name in names or FAMILIES:
        print(f"\n**{name}**\n\n{family(name)}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
