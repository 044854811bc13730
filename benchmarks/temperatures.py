"""Temperatures of samples: ``python -m benchmarks.temperatures [--models 200] [--seed 0]``.

Samples are drawn exactly from models of several kinds at known temperatures; the first table says how often 95%
intervals hold beta, and how far the estimates are off in units of their errors. The rival is the maximum
pseudo-likelihood estimate of dwave-system on the same samples, if it is installed.

The second table has many and few samples at fixed temperatures, from coins to ground states: how often 95% intervals
hold beta, how many of them end at infinity, and how often the p-value of ``goodness`` is below .05. ``--only-fixed``
makes this one alone, of ``--models`` models.
"""

from __future__ import annotations

import argparse
import math
import time
import warnings
from collections.abc import Callable

import numpy as np
from scipy.stats import kstest

import spectralz as sz
from benchmarks.harness import processor, table

KINDS: dict[str, Callable[[int], sz.Ising]] = {
    "fields": lambda seed: sz.Ising(field=np.random.default_rng(seed).normal(size=20)),
    "grid 6 x 6": lambda seed: sz.generators.grid(6, 1.0, seed=seed),
    "complete, 14": lambda seed: sz.generators.complete(14, 0.5, seed=seed),
    "torus 5 x 5, strength 0.4": lambda seed: sz.generators.torus(5, 5, 0.4),
    "glass of +-1, 8 x 8": lambda seed: glass(8, seed),
}
METHODS = ("auto", "pseudo", "annealing")
ROWS = 500
# The second table: temperatures, rows of a table, and tables of each model and temperature.
BETAS, MANY, FEW, TABLES_OF_FEW = (0.0, 0.05, 0.8, 2.0), 300, 5, 10
# Energies that take fewer values than this have p-values that are not uniform.
FEWEST_VALUES = 30


def glass(side: int, seed: int) -> sz.Ising:
    """Return a square glass with couplings of -1 and +1."""
    edges = sz.generators.grid(side, 1.0, seed=0).edges()[0]
    return sz.Ising.from_edges(side**2, edges, np.random.default_rng(seed).choice([-1.0, 1.0], len(edges)))


def coloring(nodes: int, seed: int, penalty: float = 5.0) -> sz.Ising:
    """Return the QUBO of 3-colorings of a random 4-regular graph: one color per node, none of its neighbors."""
    import dimod
    import networkx as nx

    bqm = dimod.BinaryQuadraticModel("BINARY")
    for node in range(nodes):
        bqm.add_linear_equality_constraint([((node, c), 1.0) for c in range(3)], penalty, -1.0)
    for a, b in nx.random_regular_graph(4, nodes, seed=seed).edges:
        for c in range(3):
            bqm.add_quadratic((a, c), (b, c), penalty)
    return sz.from_dimod(bqm)


def rival(model: sz.Ising, states: np.ndarray) -> float:
    """Return the beta of dwave-system; raises ImportError if it is not there."""
    import dimod
    from dwave.system.temperatures import maximum_pseudolikelihood_temperature

    bqm = model.to_dimod()
    samples = dimod.SampleSet.from_samples_bqm((states, list(bqm.variables)), bqm)
    return 1.0 / float(maximum_pseudolikelihood_temperature(bqm, samples)[0])


def measured(count: int, first: int) -> list[list[str]]:
    """Return a row for each method and for the rival."""
    off: dict[str, list[float]] = {name: [] for name in (*METHODS, "dwave-system")}
    z: dict[str, list[float]] = {name: [] for name in METHODS}
    seconds: dict[str, float] = dict.fromkeys(off, 0.0)
    for k in range(count):
        rng = np.random.default_rng([first, k])
        model = list(KINDS.values())[k % len(KINDS)](first + k)
        beta = float(rng.uniform(0.2, 1.5))
        states = sz.sample(model.scaled(beta), ROWS, "exact", seed=rng)
        for name in METHODS:
            if name == "annealing" and k >= count // 4:
                continue
            began = time.perf_counter()
            found = sz.temperature(model, states, name, **({"budget": 2.0} if name == "annealing" else {}))
            seconds[name] += time.perf_counter() - began
            if found.std_error is not None and found.trusted:
                off[name].append(found.beta - beta)
                z[name].append((found.beta - beta) / found.std_error)
        try:
            began = time.perf_counter()
            off["dwave-system"].append(rival(model, states) - beta)
            seconds["dwave-system"] += time.perf_counter() - began
        except ImportError:
            continue
    rows = []
    for name, errors in off.items():
        if not errors:
            rows.append([name, "not installed", *[""] * 4])
            continue
        within = f"{np.mean(np.abs(z[name]) < 1.959964):.1%}" if name in z else "no errors"
        worst = f"{np.abs(z[name]).max():.1f}" if name in z else ""
        rms = f"{np.sqrt(np.mean(np.square(errors))):.4f}"
        rows.append([name, str(len(errors)), within, worst, rms, f"{seconds[name] / len(errors):.3f}"])
    return rows


def at_fixed_temperatures(count: int, first: int) -> list[list[str]]:
    """Return a row for each temperature and number of samples, and one for all."""
    kinds = [*KINDS.values(), lambda seed: coloring(8, seed)]
    rows = []
    for rows_of_table, tables in ((MANY, 1), (FEW, TABLES_OF_FEW)):
        together: list[tuple[bool, bool, float | None, bool]] = []
        for beta in BETAS:
            seen = []
            for k in range(count):
                model = kinds[k % len(kinds)](first + k)
                rng = np.random.default_rng([first, k, int(1000 * beta), rows_of_table])
                for _ in range(tables):
                    states = sz.sample(model.scaled(beta), rows_of_table, "exact", seed=rng)
                    found = sz.temperature(model, states)
                    interval = found.confidence()
                    is_infinite = interval.high is None or math.isinf(interval.low)
                    many = len(np.unique(np.round(model.log_weight(states), 9))) >= FEWEST_VALUES
                    seen.append((beta in interval, is_infinite, found.goodness().p_value, many))
            rows.append([f"{rows_of_table} samples, beta = {beta:g}", *summary(seen)])
            together += seen
        rows.append([f"{rows_of_table} samples, all", *summary(together)])
    return rows


def summary(seen: list[tuple[bool, bool, float | None, bool]]) -> list[str]:
    """Return the columns of the second table."""
    p_values = [p for _, _, p, _ in seen if p is not None]
    smooth = [p for _, _, p, many in seen if p is not None and many]
    return [
        str(len(seen)),
        f"{np.mean([held for held, *_ in seen]):.1%}",
        f"{np.mean([is_infinite for _, is_infinite, *_ in seen]):.1%}",
        f"{np.mean(np.array(p_values) < 0.05):.1%} of {len(p_values)}" if p_values else "no test",
        f"{kstest(smooth, 'uniform').pvalue:.2g} ({len(smooth)})" if smooth else "",
    ]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only-fixed", action="store_true", help="only the table of fixed temperatures")
    options = parser.parse_args()
    warnings.simplefilter("ignore", sz.errors.InaccurateWarning)
    print(processor())
    if not options.only_fixed:
        headings = ["method", "trusted", "95% intervals hold", "largest error in errors", "rms error", "seconds each"]
        print(table(headings, measured(options.models, options.seed)))
    headings = ["", "tables", "95% intervals hold", "infinite ends", "p < .05", "p uniform (KS)"]
    count = options.models if options.only_fixed else options.models // 4
    print(f"\n{table(headings, at_fixed_temperatures(count, options.seed))}")


if __name__ == "__main__":
    main()
