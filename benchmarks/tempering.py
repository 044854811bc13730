"""Compare tempering with annealing: ``python -m benchmarks.tempering [--seeds K] [--sweeps S] [--only NAME]``.

Both methods make the same number of sweeps over all states: ``--sweeps`` of tempering for each of 64 copies at each
temperature, and for annealing one run after the other with the populations and points that fit into as many. The truth
comes from exact elimination or from compressed elimination (``mps``) where these have it, and otherwise from tempering
with ten times the sweeps. Lines have root mean square errors over the seeds. The table is in docs/tempering.md.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

import spectralz as sz
from benchmarks.bipartite import read
from benchmarks.harness import processor, table

FIRST_SEED = 420_000
COPIES = 64
# Runs of annealing, between which its sweeps are divided.
RUNS = 4
LONGER = 10


class Case(NamedTuple):
    """A model for each seed, how many seeds, and whether it is exact, or where its truth comes from."""

    make: Callable[[int], sz.Ising]
    seeds: int
    truth: str


def cube(side: int, beta: float) -> Callable[[int], sz.Ising]:
    return lambda seed: sz.generators.spin_glass_3d(side, beta, seed)


def machine(path: Path) -> Callable[[int], sz.Ising]:
    return lambda _: read(str(path)).to_ising()


def cases(machines: Sequence[Path]) -> dict[str, Case]:
    """Return the models by name."""
    found = {}
    for beta in (1.0, 1.5, 2.0):
        found[f"3D glass 4^3, beta = {beta:g}"] = Case(cube(4, beta), 10, "exact")
    for side, seeds in ((6, 10), (8, 4), (10, 2)):
        for beta in (1.0, 1.5, 2.0):
            found[f"3D glass {side}^3, beta = {beta:g}"] = Case(cube(side, beta), seeds, "longer")
    found["SK, n = 24, beta = 2"] = Case(lambda seed: sz.generators.sk(24, 2.0, seed), 10, "exact")
    found["SK, n = 500, beta = 2"] = Case(lambda seed: sz.generators.sk(500, 2.0, seed), 3, "longer")
    found["glass 24 x 24, beta = 3"] = Case(lambda seed: sz.generators.square(24, 24, 3.0, seed), 10, "mps")
    found["RBM 12 x 20, weights of 2"] = Case(lambda seed: sz.generators.rbm(12, 20, 2.0, seed), 10, "exact")
    for path in machines:
        found[path.stem] = Case(machine(path), 3, "longer")
    return found


class Answer(NamedTuple):
    """Log Z with its error, whether it is trusted, and the CPU seconds."""

    log_z: float
    error: float
    trusted: bool
    seconds: float


def answer(model: sz.Ising, method: str, **options: object) -> tuple[Answer, sz.Estimate]:
    began = time.process_time()
    found = sz.log_z(model, method, **options)
    spent = time.process_time() - began
    return Answer(found.log_z, found.std_error or math.inf, found.trusted, spent), found


def annealed(model: sz.Ising, sweeps: float, seed: int) -> Answer:
    """Return the answer of annealing with so many sweeps over a state: the points of its default, then states."""
    _, short = answer(model, "annealing", population=COPIES, runs=1, seed=seed)
    points = short.details["temperatures"]
    # Points and states alike, as `auto` does once weights are even.
    step = min(0.05 * (points / max(0.15 * math.sqrt(sweeps), points)) ** 2, 0.05)
    points = max(0.15 * math.sqrt(sweeps), points)
    population = max(int(sweeps / points / RUNS), 2)
    return answer(model, "annealing", population=population, runs=RUNS, step=step, seed=seed, max_memory="32 GiB")[0]


def compared(name: str, case: Case, sweeps: int, seeds: int | None) -> list[str]:
    """Return a line of the table."""
    off: dict[str, list[float]] = {"tempering": [], "annealing": []}
    answers: dict[str, list[Answer]] = {"tempering": [], "annealing": []}
    for seed in range(FIRST_SEED, FIRST_SEED + (seeds or case.seeds)):
        model = case.make(seed)
        first, found = answer(model, "tempering", sweeps=sweeps, seed=seed)
        second = annealed(model, sweeps * COPIES * found.details["temperatures"], seed)
        if case.truth == "longer":
            truth = answer(model, "tempering", sweeps=LONGER * sweeps, seed=seed + 1)[0].log_z
        else:
            truth = sz.log_z(model, case.truth).log_z
        for method, one in (("tempering", first), ("annealing", second)):
            off[method].append(one.log_z - truth)
            answers[method].append(one)
    cells = [name, case.truth, str(len(off["tempering"]))]
    for method, errors in off.items():
        these = answers[method]
        ratios = [abs(error) / one.error for error, one in zip(errors, these, strict=True) if one.trusted]
        cells += [
            f"{math.sqrt(float((np.array(errors) ** 2).mean())):.2g}",
            f"{np.median([one.error for one in these]):.2g}",
            f"{sum(one.trusted for one in these)}",
            f"{max(ratios):.1f}" if ratios else "-",
            f"{np.mean([one.seconds for one in these]):.1f}",
        ]
    print(" | ".join(cells), file=sys.stderr, flush=True)
    return cells


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--sweeps", type=int, default=1000)
    parser.add_argument("--seeds", type=int, metavar="K", help="seeds of each line, instead of its own")
    parser.add_argument("--only", default="", help="lines that have this in their name")
    parser.add_argument("--machines", type=Path, nargs="*", default=[], metavar="FILE", help="machines to add")
    asked = parser.parse_args(argv)
    warnings.simplefilter("ignore", sz.errors.InaccurateWarning)
    print(processor(), flush=True)
    lines = [
        compared(name, case, asked.sweeps, asked.seeds)
        for name, case in cases(asked.machines).items()
        if asked.only in name
    ]
    both = ["rms error", "std_error", "trusted", "worst", "CPU s"]
    headings = [
        "model",
        "truth",
        "seeds",
        *(f"{method}: {one}" for method in ("tempering", "annealing") for one in both),
    ]
    print(f"\n{table(headings, lines)}")


if __name__ == "__main__":
    main()
