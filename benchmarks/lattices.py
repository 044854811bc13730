"""Measure `auto` on lattices that contractions suit: ``python -m benchmarks.lattices [--budget 10] [--folder DIR]``.

Cold cylinders of +-1 couplings, ferromagnetic tori below, near and above their critical point, and glasses on Chimera
graphs, which have twice the budget. ``exact`` is left out. ``--folder`` has glasses of one line "i j w" per term of the
energy, as in ``benchmarks.heaviest``. Truths are eliminations and closed forms.
"""

from __future__ import annotations

import argparse
import math
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import spectralz as sz
from benchmarks.harness import processor, table
from benchmarks.heaviest import read_terms

CYLINDERS = ((6, 100), (10, 60), (10, 200), (8, 500))
SIDES, STRENGTHS = (64, 96, 128), (0.3, 0.44, 0.6)
BETAS = (1.0, 3.0)


def cylinder(width: int, length: int, strength: float) -> sz.Ising:
    """Return a lattice of +-1 couplings that is closed around and open along."""
    spins = np.arange(width * length).reshape(length, width)
    around = np.column_stack([spins.ravel(), np.roll(spins, -1, axis=1).ravel()])
    along = np.column_stack([spins[:-1].ravel(), spins[1:].ravel()])
    edges = np.concatenate([around, along])
    return sz.Ising.from_edges(spins.size, edges, strength * np.random.default_rng(0).choice([-1.0, 1.0], len(edges)))


def models(folder: Path | None) -> Iterator[tuple[str, sz.Ising, float, float]]:
    """Yield names, models, log Z where it is known, and how many times the budget they get."""
    for width, length in CYLINDERS:
        for beta in BETAS:
            model = cylinder(width, length, beta)
            yield f"cylinder {width} x {length}, beta = {beta:g}", model, sz.log_z(model, "exact").log_z, 1.0
    for side in SIDES:
        for strength in STRENGTHS:
            truth = sz.closed_forms.torus(side, side, strength)
            yield f"torus {side} x {side}, K = {strength:g}", sz.generators.torus(side, side, strength), truth, 1.0
    glasses = {"Chimera 8 x 8": sz.generators.chimera(8, 8, 1.0, seed=0)}
    if folder is not None:
        glasses = {path.stem: read_terms(path) for path in sorted(folder.glob("*.txt"))}
    for name, glass in glasses.items():
        for beta in BETAS:
            yield f"{name}, beta = {beta:g}", glass.scaled(beta), math.nan, 2.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--budget", type=float, default=10.0)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--only", default="", help="models that have this in their name")
    asked = parser.parse_args()
    warnings.simplefilter("ignore", sz.errors.InaccurateWarning)
    print(processor())
    sz.warm_up()
    rows = []
    for name, model, truth, times in models(asked.folder):
        if asked.only not in name:
            continue
        began = time.perf_counter()
        found = sz.log_z(model, budget=times * asked.budget, exclude=["exact"])
        seconds = time.perf_counter() - began
        by = ", ".join(trial.method for trial in found.tried if trial.verdict is sz.Verdict.CHOSEN)
        off = "" if math.isnan(truth) else f"{found.log_z - truth:.1g}"
        rows.append([name, f"{found.std_error:.1g}", off, "yes" if found.trusted else "no", by, f"{seconds:.1f}"])
        print(" | ".join(rows[-1]), flush=True)
    print(table(["model", "std_error", "error", "trusted", "by", "seconds"], rows))


if __name__ == "__main__":
    main()
