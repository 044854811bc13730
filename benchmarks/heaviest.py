"""Find the heaviest states: ``python -m benchmarks.heaviest [rival] [uai] [--seconds S] [--folder DIR]``.

``rival``: ten graphs like those of Gset (random and toroidal ones, couplings +1 and -1), by our search and by the
simulated annealing of dwave-samplers, in equal time, one thread each, in the same run. The cut of a max-cut instance
with weights w is (sum of w - sum of w x x') / 2, and x' A x with J = -w is our log-weight. ``uai``: all models of the
UAI 2014 competition with small treewidth, which must be proven.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import spectralz as sz
from benchmarks.harness import processor, table
from spectralz.errors import SpectralzError

FIRST_SEED = 930_000
# As in Gset, 800 or 2,000 vertices: random with +1, random with both signs, toroidal with both signs.
GRAPHS: dict[str, Callable[[], sz.Ising]] = {}


def _random(n: int, degree: float, signs: bool, seed: int) -> sz.Ising:
    rng = np.random.default_rng(seed)
    pairs = np.column_stack(np.triu_indices(n, 1))
    edges = pairs[rng.random(len(pairs)) < degree / n]
    weights = rng.choice([-1.0, 1.0], len(edges)) if signs else np.ones(len(edges))
    return sz.Ising.from_edges(n, edges, -weights)


def _torus(side: int, other: int, seed: int) -> sz.Ising:
    rng = np.random.default_rng(seed)
    lattice = sz.generators.torus(side, other, 1.0)
    edges = lattice.edges()[0]
    return sz.Ising.from_edges(lattice.n, edges, rng.choice([-1.0, 1.0], len(edges)))


for _k in range(2):
    GRAPHS[f"random, n = 800, degree 48, {_k}"] = lambda k=_k: _random(800, 48.0, False, FIRST_SEED + k)  # type: ignore[misc]
    GRAPHS[f"random, n = 800, degree 48, signs, {_k}"] = lambda k=_k: _random(800, 48.0, True, FIRST_SEED + 10 + k)  # type: ignore[misc]
    GRAPHS[f"torus 20 x 40, signs, {_k}"] = lambda k=_k: _torus(20, 40, FIRST_SEED + 20 + k)  # type: ignore[misc]
    GRAPHS[f"random, n = 2,000, degree 20, signs, {_k}"] = lambda k=_k: _random(2000, 20.0, True, FIRST_SEED + 30 + k)  # type: ignore[misc]
    GRAPHS[f"torus 40 x 50, signs, {_k}"] = lambda k=_k: _torus(40, 50, FIRST_SEED + 40 + k)  # type: ignore[misc]


def by_simulated_annealing(model: sz.Ising, seconds: float, seed: int) -> tuple[float, float]:
    """Return the largest log-weight that dwave-samplers finds with growing numbers of sweeps, and its seconds."""
    try:
        from dwave.samplers import SimulatedAnnealingSampler
    except ImportError as error:
        raise SystemExit("this comparison needs dwave-samplers: pip install 'spectralz[bench]'") from error
    edges, J = model.edges()
    h = {i: -float(value) for i, value in enumerate(model.field)}
    quadratic = {(int(i), int(j)): -float(value) for (i, j), value in zip(edges, J, strict=True)}
    sampler, best, sweeps = SimulatedAnnealingSampler(), -np.inf, 100
    began = time.perf_counter()
    while True:
        turn = time.perf_counter()
        found = sampler.sample_ising(h, quadratic, num_reads=10, num_sweeps=sweeps, seed=seed)
        best = max(best, -float(found.first.energy))
        spent, last = time.perf_counter() - began, time.perf_counter() - turn
        if spent >= seconds:
            return best + model.constant, spent
        sweeps = int(max(sweeps * min(2.0, (seconds - spent) / last), 1))
        seed += 1


def rival(seconds: float) -> str:
    """Return the log-weights of both, and an upper bound."""
    lines = []
    sz.map_state(sz.generators.complete(40, 1.0, seed=0), "search", budget=0.5)  # compiles
    for name, make in GRAPHS.items():
        model = make()
        found = sz.map_state(model, "search", budget=seconds / 0.6, threads=1)  # the rest goes into the bound
        other, spent = by_simulated_annealing(model, seconds, FIRST_SEED % 1000)
        verdict = "equal" if found.log_weight == other else "ours" if found.log_weight > other else "theirs"
        cells = [f"{found.log_weight:.0f}", f"{other:.0f}", verdict, f"{found.upper:.1f}", f"{spent:.1f}"]
        lines.append([name, *cells])
        print(" | ".join(lines[-1]), flush=True)
    return table(["graph", "spectralz", "dwave-samplers", "heavier", "no state above", "seconds"], lines)


def uai(folder: Path) -> str:
    """Return the heaviest states of the models of a folder, and whether they are proven."""
    lines = []
    for path in sorted(folder.glob("*.uai")):
        model = sz.read(path)
        try:
            found = sz.map_state(model, "exact")
        except SpectralzError as refusal:
            lines.append([path.stem, str(model.n), "-", "no", str(refusal)[:60]])
            continue
        lines.append(
            [
                path.stem,
                str(model.n),
                f"{found.log_weight:.6f}",
                "yes" if found.proven else "no",
                f"{found.seconds:.2f} s",
            ]
        )
        print(" | ".join(lines[-1]), flush=True)
    return table(["model", "spins", "log-weight", "proven", ""], lines)


def main() -> None:
    """Print the tables asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tables", nargs="*", default=["rival"])
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--folder", type=Path, default=Path("uai"))
    asked = parser.parse_args()
    print(processor())
    for name in asked.tables:
        print(f"\n{rival(asked.seconds) if name == 'rival' else uai(asked.folder)}\n", flush=True)


if __name__ == "__main__":
    main()
