"""Terms of three and more spins: ``python -m benchmarks.polynomials`` compares sweeps with those of pairs.

Both kernels sweep 64 states of 10,000 spins in turn, one thread. A spin of a graph has as many neighbors as a spin of
the other models has terms. ``--factors FOLDER`` also solves the two UAI files with larger factors in that folder.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np

import spectralz as sz
from benchmarks.harness import table
from spectralz.sampling.engines.lanes import Chains
from spectralz.sampling.path import from_coins

SPINS, DEGREES, SIZES, STATES = 10_000, (3, 6, 12), (3, 4), 64
ROUNDS, POINTS = 15, np.linspace(0.5, 0.6, 20)
FACTORS = {"Alchemy_11": 1396.009445781, "relational_3": 867.421949678}


def pairs(degree: int) -> sz.Ising:
    return sz.generators.random_regular(SPINS, degree, 1.0 / degree**0.5, seed=0)


def terms(degree: int, size: int) -> sz.Polynomial:
    return sz.generators.p_spin(SPINS, size, 1.0 / degree**0.5, seed=0, terms=degree * SPINS // size)


def chains_of(model: sz.Ising | sz.Polynomial) -> Chains:
    chains = from_coins(model).compiled_engine.start(STATES, np.random.default_rng(0))
    sweep(chains)  # compiles
    return chains


def sweep(chains: Chains) -> float:
    """Return the CPU seconds of sweeps at some points of the path."""
    began = time.process_time()
    chains.sweep(POINTS, POINTS, POINTS, 1)
    return time.process_time() - began


def per_neighbor() -> list[list[str]]:
    """Return a row for each model: nanoseconds per state and neighbor, or term of a spin, and the ratio to pairs."""
    rows = []
    for degree in DEGREES:
        models = {"pairs": pairs(degree), **{f"terms of {size}": terms(degree, size) for size in SIZES}}
        contestants = {name: chains_of(model) for name, model in models.items()}
        seconds = {name: min(times) for name, times in _in_turns(contestants).items()}
        each = 1e9 / (STATES * SPINS * degree * len(POINTS))
        rows += [
            [f"{degree}", name, f"{each * taken:.3f}", f"{taken / seconds['pairs']:.2f}"]
            for name, taken in seconds.items()
        ]
    return rows


def _in_turns(contestants: dict[str, Chains]) -> dict[str, list[float]]:
    times: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(ROUNDS):
        for name, chains in contestants.items():
            times[name].append(sweep(chains))
    return times


def solved(folder: Path) -> list[list[str]]:
    """Return a row for each file: log Z, how far it is from the known one, the width of the enclosure, and seconds."""
    rows = []
    for name, known in FACTORS.items():
        path, evidence = folder / f"{name}.uai", folder / f"{name}.uai.evid"
        began = time.perf_counter()
        model = sz.read(path, evidence=evidence if evidence.exists() else None)
        found = sz.log_z(model, "exact")
        assert found.lower is not None
        assert found.upper is not None
        width, seconds = found.upper - found.lower, time.perf_counter() - began
        rows.append([name, f"{found.log_z:.9f}", f"{found.log_z - known:+.1e}", f"{width:.1e}", f"{seconds:.1f}"])
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--factors", type=Path, metavar="FOLDER")
    arguments = parser.parse_args()
    print(table(["terms of a spin", "model", "ns per state and term", "times pairs"], per_neighbor()))
    if arguments.factors is not None:
        print("\n" + table(["file", "log Z", "off", "width", "seconds"], solved(arguments.factors)))


if __name__ == "__main__":
    main()
