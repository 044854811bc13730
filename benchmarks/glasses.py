"""Measure `log_z` on glasses beside plain population annealing: ``python -m benchmarks.glasses [--rows NAME ...]``.

Each row runs the rival once, the program of ``textbook.py``, then ``auto`` on one thread, without the methods that
could give the truth, for a multiple of the rival's CPU time. The table has the errors of both, the joint errors of
``auto`` off a reference, and the error that is wanted. ``--rival FILE`` takes ``population_annealing`` from another
program.

``--seeds K --runs R`` takes K other models per row instead, and R runs of each. It prints the variance of log Z over
the runs times the CPU time, ours over the rival's.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import math
import os
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# Libraries read it when they are loaded.
os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1"))

import numpy as np

import spectralz as sz
from benchmarks.harness import processor, table
from benchmarks.textbook import Row, arrays_of, auto_answer, log_mean, population_annealing

FIRST_SEED = 2001

Annealing = Callable[..., Any]
HEADINGS = ["row", "rival: log Z", "error", "CPU s", "ours: log Z", "std_error", "trusted", "CPU s", "joint errors off"]
HEADINGS_OF_SEEDS = ["row", "variance x CPU time, ours / rival's", "worst model", "trusted"]


@dataclass(frozen=True)
class Glass:
    """A model, the settings of the rival, the reference, and what is wanted in which multiple of the rival's time."""

    generator: str
    size: int
    strength: float
    seed: int
    population: int
    sweeps: int
    log_z: float
    error: float
    wanted: float
    multiple: float

    @property
    def name(self) -> str:
        """The call that makes the model, without its seed."""
        return f"{self.generator}({self.size},{self.strength:g})"

    def model(self, seed: int) -> sz.Ising:
        """Return the model, or another one of the kind."""
        return getattr(sz.generators, self.generator)(self.size, self.strength, seed=seed)


GLASSES = (
    Glass("complete", 100, 1.0, 901, 8000, 2, 843.600, 0.008, 0.02, 1.5),
    Glass("complete", 100, 2.0, 901, 8000, 2, 1680.628, 0.009, 0.02, 1.5),
    Glass("complete", 100, 4.0, 901, 8000, 2, 3358.437, 0.008, 0.02, 1.5),
    Glass("complete", 200, 1.0, 911, 8000, 2, 2396.974, 0.010, 0.05, 1.0),
    Glass("complete", 200, 4.0, 911, 8000, 2, 9501.507, 0.012, 0.05, 1.0),
    Glass("sk", 200, 2.0, 912, 8000, 2, 310.107, 0.006, 0.02, 1.0),
    Glass("sk", 500, 2.0, 913, 4000, 2, 787.212, 0.010, 0.05, 1.0),
    Glass("spin_glass_3d", 6, 1.5, 702, 4000, 4, 549.594, 0.014, 0.03, 2.0),
    Glass("spin_glass_3d", 8, 1.5, 701, 8000, 8, 1319.451, 0.019, 0.06, 0.5),
)


def rival_of(path: Path | None) -> Annealing:
    """Return our own program, or that of a file."""
    if path is None:
        return population_annealing
    spec = importlib.util.spec_from_file_location("rival", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.population_annealing


def rival_answer(glass: Glass, model: sz.Ising, anneal: Annealing, seed: int) -> Row:
    """Return log Z of the rival, and the scatter of its groups."""
    J, h, constant = arrays_of(model)
    began = time.process_time()
    groups = np.asarray(anneal(J, h, glass.population, glass.sweeps, seed)[0])
    cpu = time.process_time() - began
    error = float(np.std(groups, ddof=1) / math.sqrt(len(groups)))
    return {"log_z": log_mean(groups) + constant, "std_error": error, "cpu": cpu}


def answers(glass: Glass, seed: int, runs: int, anneal: Annealing) -> Row:
    """Return the answers of both for one model; compilers have run before."""
    model = glass.model(seed)
    J, h, _ = arrays_of(model)
    anneal(J, h, 64, 1, 0)
    auto_answer(model, 1.0, 0)
    rival = [rival_answer(glass, model, anneal, run) for run in range(1, runs + 1)]
    seconds = glass.multiple * statistics.mean(one["cpu"] for one in rival)
    ours = [auto_answer(model, seconds, run) for run in range(1, runs + 1)]
    return {"row": glass.name, "seed": seed, "seconds": seconds, "rival": rival, "ours": ours}


def side_by_side(glass: Glass, row: Row) -> list[str]:
    """Return the line of a row: one answer of each, and how far ours is off the reference."""
    rival, ours = row["rival"][0], row["ours"][0]
    error = ours["std_error"] or 0.0
    off = abs(ours["log_z"] - glass.log_z) / math.hypot(error, glass.error)
    first = [f"{rival['log_z']:.3f}", f"{rival['std_error']:.3f}", f"{rival['cpu']:.1f}"]
    second = [f"{ours['log_z']:.3f}", f"{error:.3f}", "yes" if ours["trusted"] else "no", f"{ours['cpu']:.1f}"]
    return [glass.name, *first, *second, f"{off:.1f}", f"{glass.wanted:g} in {glass.multiple:g}"]


def cost(found: Sequence[Row]) -> float:
    """Return the variance of log Z over runs times the mean CPU time."""
    return statistics.variance(one["log_z"] for one in found) * statistics.mean(one["cpu"] for one in found)


def over_seeds(glass: Glass, rows: Sequence[Row]) -> list[str]:
    """Return the line of many models: the ratios of costs, and how many of our answers were trusted."""
    ratios = [cost(row["ours"]) / cost(row["rival"]) for row in rows]
    trusted = [bool(one["trusted"]) for row in rows for one in row["ours"]]
    worst = f"{max(ratios):.3g}"
    return [glass.name, f"{statistics.geometric_mean(ratios):.3g}", worst, f"{sum(trusted)} of {len(trusted)}"]


def arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--rival", type=Path, metavar="FILE", help="program with another population_annealing")
    parser.add_argument("--rows", nargs="+", default=[""], metavar="NAME", help="parts of names, such as complete(100")
    parser.add_argument(
        "--seeds", type=int, default=0, help="other models per row, instead of the one with a reference"
    )
    parser.add_argument("--runs", type=int, default=8, help="runs of each of these models")
    parser.add_argument("--json", type=Path, metavar="FILE", help="file to save the answers in")
    asked = parser.parse_args(argv)
    if asked.seeds < 0 or asked.runs < 2:
        parser.error("--seeds is 0 or more, --runs 2 or more")
    return asked


def main(argv: Sequence[str] | None = None) -> int:
    """Parse the arguments, run, print; return the exit status."""
    asked = arguments(argv)
    anneal, rows, lines = rival_of(asked.rival), [], []
    print(f"rival: {asked.rival or 'benchmarks/textbook.py'}, {processor()}", flush=True)
    for glass in GLASSES:
        if not any(part.replace(" ", "") in glass.name for part in asked.rows):
            continue
        if asked.seeds:
            found = [answers(glass, FIRST_SEED + k, asked.runs, anneal) for k in range(asked.seeds)]
            lines.append(over_seeds(glass, found))
        else:
            found = [answers(glass, glass.seed, 1, anneal)]
            lines.append(side_by_side(glass, found[0]))
        rows += found
        print(", ".join(lines[-1]), file=sys.stderr, flush=True)
    print(table(HEADINGS_OF_SEEDS if asked.seeds else [*HEADINGS, "wanted, in rival's CPU times"], lines))
    if asked.json:
        asked.json.parent.mkdir(parents=True, exist_ok=True)
        asked.json.write_text(json.dumps(rows, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
