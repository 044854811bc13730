"""Test whether budgets hold: ``python -m benchmarks.budgets [--budgets 0.5 5] [--models ...] [--verbs ...]``.

Every verb on models that are hard for it, with a few budgets. A budget holds if the call takes at most 20% and a second
more; compiling is done before. From half a second on it must hold for all models but the one with a million spins, for
which it must from five seconds on. Wall-clock and CPU seconds, one call at a time; the exit status is 1 if a budget
does not hold.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import spectralz as sz
from benchmarks.harness import processor, table

TIMES, SECONDS = 1.2, 1.0
LARGEST, LEAST_BUDGET_OF_LARGEST = "sparse 1e6", 5.0


def _components() -> sz.Ising:
    """Return 90 dense glasses of 40 spins each."""
    parts = [sz.generators.complete(40, 2.0 / np.sqrt(40), seed=k) for k in range(90)]
    edges = np.concatenate([part.edges()[0] + 40 * k for k, part in enumerate(parts)])
    weights = np.concatenate([part.edges()[1] for part in parts])
    return sz.Ising.from_edges(3600, edges, weights, field=np.concatenate([part.field for part in parts]))


def _machine() -> sz.RBM:
    return sz.RBM(0.05 * np.random.default_rng(0).normal(size=(784, 400)))


MODELS: dict[str, Callable[[], Any]] = {
    "dense 2000": lambda: sz.generators.complete(2000, 1.0 / np.sqrt(2000), seed=0),
    "dense 5000": lambda: sz.generators.complete(5000, 1.0 / np.sqrt(5000), seed=0),
    "RBM 784 x 400": _machine,
    "sparse 1e5": lambda: sz.generators.random_regular(100_000, 3, 1.0, seed=0),
    "torus 256 x 256": lambda: sz.generators.torus(256, 256, 0.44),
    "cubic 8^3": lambda: sz.generators.spin_glass_3d(8, 1.0, seed=0),
    "90 components": _components,
    LARGEST: lambda: sz.generators.random_regular(1_000_000, 3, 1.0, seed=0),
}
VERBS: dict[str, Callable[[Any, float], Any]] = {
    "log_z": lambda model, budget: sz.log_z(model, budget=budget, exclude=["exact"]),
    "marginals": lambda model, budget: sz.marginals(model, budget=budget, pairs=False, exclude=["exact"]),
    "sample": lambda model, budget: sz.sample(model, 20, budget=budget, exclude=["exact"]),
    "bounds": lambda model, budget: sz.bounds(model, budget=budget),
    "map_state": lambda model, budget: sz.map_state(model, budget=budget),
    "thermodynamics": lambda model, budget: sz.thermodynamics(model, [0.5, 1.0, 1.5], budget=budget),
}


def timed(call: Callable[[], Any]) -> tuple[float, float, str]:
    """Return wall-clock and CPU seconds, and how the call ended."""
    began, used = time.perf_counter(), time.process_time()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            call()
        ended = ""
    except sz.SpectralzError as error:
        ended = str(error)
    return time.perf_counter() - began, time.process_time() - used, ended


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--budgets", type=float, nargs="+", default=[0.5, 5.0])
    parser.add_argument("--models", nargs="+", choices=list(MODELS), default=list(MODELS))
    parser.add_argument("--verbs", nargs="+", choices=list(VERBS), default=list(VERBS))
    asked = parser.parse_args()
    print(processor())
    sz.warm_up()
    timed(
        lambda: VERBS["log_z"](sz.generators.complete(2000, 0.01, seed=0), 0.1)
    )  # looks for a GPU, and loads what that needs
    rows, is_any_late = [], False
    for name in asked.models:
        model = MODELS[name]()
        for verb in asked.verbs:
            cells = []
            for budget in asked.budgets:
                wall, cpu, ended = timed(lambda: VERBS[verb](model, budget))  # noqa: B023
                is_late = wall > TIMES * budget + SECONDS
                is_any_late |= is_late and (name != LARGEST or budget >= LEAST_BUDGET_OF_LARGEST)
                cells.append(f"{wall:.1f} ({cpu:.1f})" + (" late" if is_late else ""))
                print(name, verb, budget, cells[-1], ended[:100], flush=True)
            rows.append([name, verb, *cells])
    headings = ["model", "verb", *(f"{budget:g} s: wall (CPU)" for budget in asked.budgets)]
    print(table(headings, rows))
    return int(is_any_late)


if __name__ == "__main__":
    sys.exit(main())
