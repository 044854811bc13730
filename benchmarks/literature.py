"""Solve settings of published papers exactly: ``python -m benchmarks.literature [torus] [triangular] [sk]``.

The settings are those of Wu, Wang, Zhang, "Solving statistical mechanics using variational autoregressive networks",
Physical Review Letters 122, 080602 (2019), as in its code. Free energies are -log Z / (beta n).
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import spectralz as sz
from benchmarks.harness import table

BETAS = (0.1, 0.3, 0.44, 0.6, 1.0)
SIDES = (4, 6, 8, 10)
SK_BETAS = (0.5, 1.0, 2.0, 5.0)


def torus(betas: tuple[float, ...] = BETAS, side: int = 16, work: float = 3e9) -> str:
    """Return their Fig. 2a, a ferromagnet: the closed form, and what is proven and estimated without it."""
    rows = []
    for beta in betas:
        model = sz.generators.torus(side, side, strength=beta)
        truth = sz.closed_forms.torus(side, side, beta)
        start = time.process_time()
        bracket = sz.bounds(model, work=work)
        seconds = time.process_time() - start
        scale = 1.0 / (beta * model.n)
        assert bracket.lower <= truth * (1 + 1e-13)
        assert truth <= bracket.upper * (1 + 1e-13)
        below, above = (truth - bracket.lower) * scale, (bracket.upper - truth) * scale
        mean_field = (truth - sz.log_z(model, "mf", restarts=5).log_z) * scale
        bethe = (truth - sz.log_z(model, "bp").log_z) * scale
        proven = [f"{-truth * scale:.9f}", f"+{below:.1g} / -{above:.1g}", f"{seconds:.1f}"]
        rows.append([f"{beta:g}", *proven, f"{mean_field:+.2g}", f"{bethe:+.2g}"])
    heading = ["beta", "free energy per spin", "proven bracket", "CPU s", "mean field", "Bethe"]
    return table(heading, rows)


def triangular(sides: tuple[int, ...] = SIDES, betas: tuple[float, ...] = (1.0, 5.0)) -> str:
    """Return their Fig. 2b, a frustrated antiferromagnet on the periodic triangular lattice."""
    rows = []
    for side in sides:
        lattice = sz.generators.triangular(
            side, side, strength=1.0, seed=0, couplings="antiferromagnetic", periodic=True
        )
        for beta in betas:
            start = time.process_time()
            found = sz.log_z(beta * lattice, "exact")
            seconds = time.process_time() - start
            scale = 1.0 / (beta * lattice.n)
            entropy = float(sz.entropy(beta * lattice, "exact")) / lattice.n
            rows.append([f"{side}", f"{beta:g}", f"{-found.log_z * scale:.9f}", f"{entropy:.6f}", f"{seconds:.2f}"])
    return table(["side", "beta", "free energy per spin", "entropy per spin", "CPU s"], rows)


def sk(betas: tuple[float, ...] = SK_BETAS, n: int = 20, models: int = 10, work: float = 3e8) -> str:
    """Return their Fig. 4a, the Sherrington-Kirkpatrick model: errors of the free energy, means over models."""
    rows = []
    for beta in betas:
        found = {"mf": [], "bp": [], "auto, exact switched off": []}
        seconds, free = [], []
        for seed in range(models):
            model = sz.generators.sk(n=n, strength=beta, seed=seed)
            start = time.process_time()
            truth = sz.log_z(model, "exact").log_z
            seconds.append(time.process_time() - start)
            free.append(-truth / (beta * n))
            found["mf"].append(sz.log_z(model, "mf", restarts=20).log_z - truth)
            found["bp"].append(sz.log_z(model, "bp").log_z - truth)
            found["auto, exact switched off"].append(sz.log_z(model, work=work, exclude=["exact"]).log_z - truth)
        errors = [f"{np.mean(np.abs(each)) / (beta * n):.1g}" for each in found.values()]
        rows.append([f"{beta:g}", f"{np.mean(free):.6f}", *errors, f"{np.mean(seconds):.3f}"])
    return table(["beta", "free energy per spin", "mean field", "Bethe", "`auto` without exact", "CPU s, exact"], rows)


PARTS = {"torus": torus, "triangular": triangular, "sk": sk}


def main(parts: list[str] | None = None) -> None:
    for name in parts or PARTS:
        print(f"## {name}\n\n{PARTS[name]()}\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"{', '.join(PARTS)}; all by default")
    main(parser.parse_args().parts)
