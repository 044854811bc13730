"""Find the heaviest states: ``python -m benchmarks.heaviest [rival] [uai] [chimera] [--seconds S] [--folder DIR]``.

``rival``: five kinds of models, by our search and by dwave-samplers (simulated annealing, tabu search and steepest
descent), each for the same wall time in one thread, in the same run. ``uai``: all models of the UAI 2014 competition
with small treewidth, which must be proven. ``chimera``: spin glasses of a folder, one line "i j w" per term of the
energy, the names of files as ``chimera512-003.txt``.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import spectralz as sz
from benchmarks.bipartite import trained
from benchmarks.harness import processor, table
from spectralz.errors import SpectralzError

FIRST_SEED = 930_000
# Log-weights count as equal if they differ by less than this share.
EQUAL = 1e-9


# ---------------------------------------------------------------------------------------------------------- models


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


def gset(k: int) -> sz.Ising:
    """Return a graph as in Gset: random with +1 or with both signs, or toroidal, of 800 or 2,000 vertices."""
    seed = FIRST_SEED + k
    return [
        lambda: _random(800, 48.0, False, seed),
        lambda: _random(800, 48.0, True, seed),
        lambda: _torus(20, 40, seed),
        lambda: _random(2000, 20.0, True, seed),
        lambda: _torus(40, 50, seed),
    ][k % 5]()


def glass(k: int) -> sz.Ising:
    """Return a spin glass on a cubic lattice of 6^3 to 10^3 spins, with Gaussian couplings, or +1 and -1."""
    side = (6, 7, 8, 9, 10)[k % 5]
    return sz.generators.spin_glass_3d(side, 1.0, FIRST_SEED + k, couplings="gaussian" if k < 5 else "bimodal")


def _equality(Q: np.ndarray, places: np.ndarray, total: float, strength: float) -> None:
    """Add ``strength`` times (the sum of some variables minus ``total``)^2, without its constant."""
    Q[np.ix_(places, places)] += strength
    Q[places, places] -= 2.0 * strength * total


def penalty(k: int) -> sz.Ising:
    """Return a QUBO with penalties: choose some of all items, an assignment of 8 x 8, or a coloring."""
    rng = np.random.default_rng(FIRST_SEED + 100 + k)
    if k < 4:  # choose 8 of 40, or 20 of 100, with profits of pairs
        n, chosen = ((40, 8), (100, 20))[k % 2]
        Q = np.triu(rng.normal(size=(n, n)))
        _equality(Q, np.arange(n), chosen, 10.0)
    elif k < 7:  # quadratic assignment: flows between eight machines, distances between eight places
        n = 8
        flow, distance = (rng.integers(1, 10, size=(n, n)).astype(float) for _ in range(2))
        Q = np.einsum("ab,ij->aibj", np.triu(flow, 1), distance).reshape(n * n, n * n)
        for line in range(n):
            _equality(Q, line * n + np.arange(n), 1.0, 300.0)
            _equality(Q, line + n * np.arange(n), 1.0, 300.0)
    else:  # four colors on a random graph of 40 vertices, as few conflicts as possible, weighted
        n, colors = 40, 4
        Q = np.zeros((n * colors, n * colors))
        for i, j in zip(*np.triu_indices(n, 1), strict=True):
            if rng.random() < 0.3:
                for color in range(colors):
                    Q[colors * i + color, colors * j + color] += rng.uniform(0.5, 1.5)
        for i in range(n):
            _equality(Q, colors * i + np.arange(colors), 1.0, 8.0)
    return sz.from_qubo(Q)


def dense(k: int) -> sz.Ising:
    """Return a QUBO of the Biq Mac kind: integers from -100 to 100, 100 to 500 variables, density 10% to 100%."""
    rng = np.random.default_rng(FIRST_SEED + 200 + k)
    n, density = (100, 200, 250, 350, 500)[k % 5], (0.1, 1.0)[k // 5]
    Q = np.triu(rng.integers(-100, 101, size=(n, n)).astype(float))
    return sz.from_qubo(np.where(np.triu(rng.random((n, n)) < density), Q, 0.0))


def machine(k: int) -> sz.Ising:
    """Return an RBM: trained on digits for several times, or with random weights."""
    if k < 5:
        return trained(64, 100, (5, 20, 50, 100, 200)[k], seed=k).to_ising()
    rng = np.random.default_rng(FIRST_SEED + 300 + k)
    visible, hidden = ((100, 60), (200, 100), (300, 100), (784, 100), (400, 200))[k % 5]
    return sz.RBM(rng.normal(size=(visible, hidden)), rng.normal(size=visible), rng.normal(size=hidden)).to_ising()


KINDS: dict[str, Callable[[int], sz.Ising]] = {
    "like Gset": gset,
    "3D glass": glass,
    "penalties": penalty,
    "dense QUBO": dense,
    "RBM": machine,
}


# ---------------------------------------------------------------------------------------------------------- rivals


def _as_dicts(model: sz.Ising) -> tuple[dict[int, float], dict[tuple[int, int], float]]:
    edges, J = model.edges()
    quadratic = {(int(i), int(j)): -float(value) for (i, j), value in zip(edges, J, strict=True)}
    return {i: -float(value) for i, value in enumerate(model.field)}, quadratic


def by_simulated_annealing(terms: Any, seconds: float) -> float:
    """Return the largest log-weight that simulated annealing finds with growing numbers of sweeps."""
    from dwave.samplers import SimulatedAnnealingSampler

    def attempt(effort: int, seed: int) -> float:
        return float(
            SimulatedAnnealingSampler().sample_ising(*terms, num_reads=10, num_sweeps=effort, seed=seed).first.energy
        )

    return _growing(attempt, 100, seconds)


def by_tabu(terms: Any, seconds: float) -> float:
    """Return the largest log-weight that tabu search finds, with as many reads as fit."""
    from dwave.samplers import TabuSampler

    def attempt(effort: int, seed: int) -> float:
        return float(TabuSampler().sample_ising(*terms, num_reads=1, timeout=effort, seed=seed).first.energy)

    return _growing(attempt, int(250 * seconds), seconds, factor=1.0)


def by_steepest_descent(terms: Any, seconds: float) -> float:
    """Return the largest log-weight of steepest descents from growing numbers of random states."""
    from dwave.samplers import SteepestDescentSolver

    def attempt(effort: int, seed: int) -> float:
        return float(SteepestDescentSolver().sample_ising(*terms, num_reads=effort, seed=seed).first.energy)

    return _growing(attempt, 10, seconds)


def _growing(attempt: Callable[[int, int], float], effort: int, seconds: float, factor: float = 2.0) -> float:
    """Return the largest log-weight of attempts of growing effort until the time is up."""
    best, seed, began = -np.inf, 1, time.perf_counter()
    while True:
        turn = time.perf_counter()
        best = max(best, -attempt(effort, seed))
        spent, last = time.perf_counter() - began, time.perf_counter() - turn
        if spent >= 0.97 * seconds:
            return best
        effort, seed = int(max(effort * min(factor, (seconds - spent) / last), 1)), seed + 1


RIVALS = {"annealing": by_simulated_annealing, "tabu": by_tabu, "descent": by_steepest_descent}


def rival(seconds: float, instances: int, kinds: list[str]) -> str:
    """Return how often our search is the best, or equal, and by how much it is behind otherwise."""
    try:
        import dwave.samplers  # noqa: F401
    except ImportError as error:
        raise SystemExit("this comparison needs dwave-samplers: pip install 'spectralz[bench]'") from error
    sz.map_state(sz.generators.complete(40, 1.0, seed=0), "search", budget=0.5)  # compiles
    sz.map_state(sz.generators.spin_glass_3d(4, 1.0, 0), "search", budget=0.5)
    sz.map_state(machine(5), "search", budget=0.5)
    lines = []
    for kind in kinds:
        won: Counter[str] = Counter()
        longest = 0.0
        for k in range(instances):
            model = KINDS[kind](k)
            found = sz.map_state(model, "search", budget=seconds, threads=1)
            longest = max(longest, found.seconds)
            terms = _as_dicts(model)
            others = {name: run(terms, seconds) + model.constant for name, run in RIVALS.items()}
            best = max(found.log_weight, *others.values())
            verdict = "best or equal" if found.log_weight >= best - EQUAL * abs(best) else "behind"
            won[verdict] += 1
            won.update(name for name, value in others.items() if value >= best - EQUAL * abs(best))
            shown = ", ".join(f"{name} {value:.8g}" for name, value in others.items())
            print(f"{kind} {k}, n = {model.n}: ours {found.log_weight:.8g}, {shown}: {verdict}", flush=True)
        cells = [f"{won['best or equal']} of {instances}", *(str(won[name]) for name in RIVALS), f"{longest:.1f}"]
        lines.append([kind, *cells])
    return table(["kind", "spectralz best or equal", *RIVALS, "longest run, seconds"], lines)


def chimera(folder: Path, seconds: float) -> str:
    """Return the lowest energies of the spin glasses of a folder."""
    lines = []
    for path in sorted(folder.glob("*.txt")):
        model = read_terms(path)
        found = sz.map_state(model, "search", budget=seconds)
        lines.append([path.stem, str(model.n), f"{-found.log_weight:.6f}", f"{found.seconds:.1f}"])
        print(" | ".join(lines[-1]), flush=True)
    return table(["model", "spins", "energy", "seconds"], lines)


def read_terms(path: Path) -> sz.Ising:
    """Read lines of "i j w"; spins without terms are left out."""
    rows = [line.split() for line in _lines(path)]
    i, j, w = (np.array(column) for column in zip(*rows, strict=True))
    names, places = np.unique(np.concatenate([i, j]).astype(int), return_inverse=True)
    i, j, w = places[: len(rows)], places[len(rows) :], -w.astype(float)
    field = np.bincount(i[i == j], w[i == j], len(names))
    return sz.Ising.from_edges(len(names), np.column_stack([i, j])[i != j], w[i != j], field=field)


def _lines(path: Path) -> Iterator[str]:
    return (line for line in path.read_text().splitlines() if line and not line.startswith("#"))


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
    parser.add_argument("tables", nargs="*", default=["rival"], metavar="TABLE", help="rival, uai or chimera")
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--folder", type=Path, default=Path("uai"))
    parser.add_argument("--instances", type=int, default=10)
    parser.add_argument("--kinds", nargs="*", default=list(KINDS), choices=list(KINDS))
    asked = parser.parse_args()
    print(processor())
    tables = {
        "rival": lambda: rival(asked.seconds, asked.instances, asked.kinds),
        "uai": lambda: uai(asked.folder),
        "chimera": lambda: chimera(asked.folder, asked.seconds),
    }
    for name in asked.tables:
        print(f"\n{tables[name]()}\n", flush=True)


if __name__ == "__main__":
    main()
