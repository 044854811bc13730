"""Measure the errors of Algorithm 2 on the paper's settings: ``python -m benchmarks.spectral``.

The tables have the mean of |log Z-hat - log Z| over 15 models each and the mean time of a run, for the paper's dynamic
program and for the quadrature, and for the choices of D of Sec. 4.2.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import numpy as np

import spectralz as sz
from benchmarks.harness import processor, table

STRENGTHS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0)
MODELS = 15
Generator = Callable[[float, int], sz.Ising]
FAMILIES: dict[str, Generator] = {
    "complete, n = 20": lambda s, seed: sz.generators.complete(20, s, seed),
    "Erdos-Renyi 0.5, n = 20": lambda s, seed: sz.generators.erdos_renyi(20, 0.5, s, seed),
    "Erdos-Renyi 0.7, n = 20": lambda s, seed: sz.generators.erdos_renyi(20, 0.7, s, seed),
    "bipartite, n = 20": lambda s, seed: sz.generators.bipartite(20, s, seed),
    "15 x 15 grid": lambda s, seed: sz.generators.grid(15, s, seed),
}
DIAGONALS = ("sdp", "max_eigenvalue", "diagonally_dominant", "zero")


def errors(make: Generator, strength: float, method: sz.Spectral) -> tuple[np.ndarray, float]:
    """Return the signed errors on all models, and the mean seconds of a run."""
    found, seconds = [], 0.0
    for seed in range(MODELS):
        model = make(strength, seed)
        truth = sz.log_z(model, "exact").log_z
        started = time.perf_counter()
        found.append(sz.log_z(model, method).log_z - truth)
        seconds += time.perf_counter() - started
    return np.array(found), seconds / MODELS


def cell(found: np.ndarray) -> str:
    """Return the mean of |error| with its standard error, as text."""
    size = np.abs(found)
    return f"{size.mean():.3g} ± {size.std(ddof=1) / np.sqrt(len(size)):.1g}"


def by_family() -> None:
    rows = []
    for name, make in FAMILIES.items():
        for factor in ("dp", "quadrature"):
            method = sz.Spectral(factor=factor)
            sz.log_z(make(1.0, 0), method)
            results = [errors(make, strength, method) for strength in STRENGTHS]
            seconds = float(np.mean([seconds for _, seconds in results]))
            rows.append([name, factor, *(cell(found) for found, _ in results), f"{seconds:.4f}"])
            print(" | ".join(rows[-1]), file=sys.stderr, flush=True)
    headings = ["models", "factor", *(f"s = {strength:g}" for strength in STRENGTHS), "seconds"]
    print(f"\nMean |error| of log Z over {MODELS} models, one thread, {processor()}\n\n" + table(headings, rows))


def by_diagonal() -> None:
    rows = []
    for diagonal in DIAGONALS:
        method = sz.Spectral(factor="dp", diagonal=diagonal)
        make = FAMILIES["complete, n = 20"]
        rows.append([diagonal, *(cell(errors(make, strength, method)[0]) for strength in STRENGTHS)])
        print(" | ".join(rows[-1]), file=sys.stderr, flush=True)
    headings = ["diagonal", *(f"s = {strength:g}" for strength in STRENGTHS)]
    print("\nComplete graph, n = 20, by the choice of D (the paper's Fig. 2a)\n\n" + table(headings, rows))


def main() -> None:
    by_family()
    by_diagonal()


if __name__ == "__main__":
    main()
