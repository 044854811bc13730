"""Two calls beside one of twice the work: ``python -m benchmarks.continuing [--models 30] [--seed 0] [--work 1e9]``.

Each model has an answer of some work, to which ``more=`` adds a second call of as much, and an answer of one call of
twice the work. The table has, by kind of model, the median of the ratio of their errors, and how far both answers are
from each other in their joint errors at most. ``states`` is left out, since only populations are continued.
"""

from __future__ import annotations

import argparse
import math
import statistics
import warnings
from collections.abc import Callable

import spectralz as sz
from benchmarks.harness import processor, table
from spectralz import generators as gen

KINDS: dict[str, Callable[[int], sz.Ising]] = {
    "complete(60, 1)": lambda seed: gen.complete(60, 1.0, seed=seed),
    "complete(100, 2)": lambda seed: gen.complete(100, 2.0, seed=seed),
    "sk(100, 1.5)": lambda seed: gen.sk(100, 1.5, seed=seed),
    "random_regular(100, 4, 1)": lambda seed: gen.random_regular(100, 4, 1.0, seed=seed),
    "spin_glass_3d(5, 1)": lambda seed: gen.spin_glass_3d(5, 1.0, seed=seed),
    "hopfield(80, 6, 1.5)": lambda seed: gen.hopfield(80, 6, 1.5, seed=seed),
}
EXCLUDED = ("exact", "quadrature", "mps", "bp", "ep", "states")


def compared(model: sz.Ising, work: float) -> tuple[float, float, bool]:
    """Return the ratio of errors, the distance of the answers in joint errors, and whether both are trusted."""
    first = sz.log_z(model, work=work, exclude=EXCLUDED, threads=1)
    two = sz.log_z(model, work=work, exclude=EXCLUDED, threads=1, more=first)
    one = sz.log_z(model, work=2.0 * work, exclude=EXCLUDED, threads=1)
    errors = two.std_error or math.inf, one.std_error or math.inf
    return errors[0] / errors[1], abs(two.log_z - one.log_z) / math.hypot(*errors), two.trusted and one.trusted


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=int, default=30)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--work", type=float, default=1e9)
    asked = parser.parse_args()
    warnings.simplefilter("ignore", sz.errors.InaccurateWarning)
    print(processor())
    found: dict[str, list[tuple[float, float, bool]]] = {name: [] for name in KINDS}
    for k in range(asked.models):
        name = list(KINDS)[k % len(KINDS)]
        found[name].append(compared(KINDS[name](asked.seed + k), asked.work))
    found["all"] = [row for rows in list(found.values()) for row in rows]
    rows = []
    for name, seen in found.items():
        if seen:
            ratios, apart, trusted = zip(*seen, strict=True)
            numbers = f"{statistics.median(ratios):.2f}", f"{max(apart):.1f}", str(sum(trusted))
            rows.append([name, str(len(seen)), *numbers])
    headings = ["model", "models", "error of two calls / of one, median", "apart, joint errors", "both trusted"]
    print(table(headings, rows))


if __name__ == "__main__":
    main()
