"""Measure annealing and sums over states: ``python -m benchmarks.annealing [TABLE ...]``, for docs/annealing.md.

``unbiased``: the mean of Z-hat / Z over many short runs of one path. ``phases``: the same of the method, all its
choices included, on models with phases, on all cores. ``error``: errors in units of their error bars. ``rival``: a
comparison with plain annealed importance sampling. ``states``: the sum over states. ``huge``: couplings up to 1e300.
All but ``phases`` take one thread.
"""

from __future__ import annotations

import math
import sys
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor

import numpy as np

import spectralz as sz
from benchmarks.first_order_models import Molecules, coupling_of, groups_log_z, model_of_groups
from benchmarks.harness import processor, table
from spectralz.sampling.path import path_to
from spectralz.sampling.population import carry
from spectralz.sampling.spread import crew_for
from spectralz.sampling.sweeps import spaced_by

FIRST_SEED = 800_000
UNBIASED = {
    "complete, n = 8, s = 0.8": sz.generators.complete(8, 0.8, FIRST_SEED),
    "grid 3 x 3, s = 1.5": sz.generators.grid(3, 1.5, FIRST_SEED),
    "bipartite, n = 10, s = 0.5": sz.generators.bipartite(10, 0.5, FIRST_SEED),
}
RUNS = 2000


def unbiased() -> str:
    """Return the means of Z-hat / Z over short runs, for importance sampling and population annealing."""
    lines = []
    for name, model in UNBIASED.items():
        truth = sz.log_z(model, "exact").log_z
        for below in (0.0, 0.5, 1.0):
            rng = np.random.default_rng(FIRST_SEED)
            path = path_to(model)
            with crew_for(path) as crew:
                betas = spaced_by(path, 1.0, rng, crew.parallel)
                runs = carry(path, betas, RUNS, 32, rng, resample_below=below, parallel=crew.parallel)
            ratio = np.exp(runs.log_z + model.constant - truth)
            error = ratio.std(ddof=1) / math.sqrt(RUNS)
            cells = [f"{ratio.mean():.4f}", f"{error:.4f}", f"{(ratio.mean() - 1.0) / error:+.1f}"]
            lines.append([name, f"{below:g}", f"{len(betas) - 1}", *cells])
    return table(["model", "resample_below", "steps", "mean of Z-hat / Z", "its standard error", "off by"], lines)


# Groups of molecules at coexistence with ordered phases, of which populations from coins miss some.
GROUPS = {
    "opposite pairs in fields": [Molecules(12, (0.1, -0.1), -2.2)],
    "two fields": [Molecules(12, (3.5,)), Molecules(12, (-3.5,))],
    "two fields, weaker": [Molecules(15, (2.5,)), Molecules(15, (-2.5,))],
    "three fields": [Molecules(12, (3.0,)), Molecules(12, (-3.0,)), Molecules(4, (0.0,))],
    "opposite pairs": [Molecules(16, (0.0, 0.0), -1.8)],
    "trimers": [Molecules(10, (0.0, 0.0, 0.0), -1.6)],
}


def short_run(name: str, seed: int) -> tuple[float, int]:
    """Return Z-hat / Z of one run of 8 groups of 16 states, and how many phases it has found."""
    J = np.array([[coupling_of(GROUPS[name])]])
    model, truth = model_of_groups([GROUPS[name]], J), groups_log_z([GROUPS[name]], J)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # most say that there are few families
        found = sz.log_z(model, "annealing", population=16, runs=8, seed=seed, threads=1)
    return math.exp(found.log_z - truth), int(found.details["phases"])


def phases(runs: int = 1000) -> str:
    """Return the means of Z-hat / Z over short runs of the method on models with phases."""
    lines = []
    with ProcessPoolExecutor() as pool:
        for name in GROUPS:
            rows = list(pool.map(short_run, [name] * runs, range(FIRST_SEED, FIRST_SEED + runs), chunksize=10))
            ratio, found = np.array(rows).T
            error = ratio.std(ddof=1) / math.sqrt(runs)
            cells = [f"{ratio.mean():.4f}", f"{error:.4f}", f"{(ratio.mean() - 1.0) / error:+.1f}"]
            lines.append([name, f"{100.0 * (found > 0).mean():.0f}%", *cells])
    return table(["model", "runs that found phases", "mean of Z-hat / Z", "its standard error", "off by"], lines)


def error_bars(models: int = 150) -> str:
    """Return the errors of annealing in units of its own error bars."""
    lines = []
    for s in (0.1, 1.0, 5.0):
        within, scaled = [], []
        for seed in range(FIRST_SEED, FIRST_SEED + models):
            model = sz.generators.erdos_renyi(14, 0.6, s, seed)
            found = sz.log_z(model, "annealing", population=500, seed=seed)
            error = found.log_z - sz.log_z(model, "exact").log_z
            within.append(abs(error) <= 2.0 * found.std_error)
            scaled.append(error / found.std_error)
        lines.append([f"{s:g}", f"{np.mean(scaled):+.2f}", f"{np.std(scaled):.2f}", f"{100.0 * np.mean(within):.0f}%"])
    return table(["s", "mean of error / std_error", "its deviation", "within 2 std_error"], lines)


def importance_sampling(model: sz.Ising, chains: int = 200, steps: int = 1000) -> float:
    """Return log Z by plain annealed importance sampling: even temperatures, one sweep of single spins at each."""
    path, betas = path_to(model), np.linspace(0.0, 1.0, steps + 1)
    with crew_for(path) as crew:
        end = carry(path, betas, 1, chains, np.random.default_rng(1), resample_below=0.0, parallel=crew.parallel)
    return end.mean_log_z + model.constant


def rival(models: int = 5) -> str:
    """Return errors and times of plain importance sampling and of the method, with populations for similar times."""
    families: dict[str, tuple[Callable[[int], sz.Ising], str, int]] = {
        "complete, n = 20, s = 0.25": (lambda seed: sz.generators.complete(20, 0.25, seed), "exact", 2000),
        "complete, n = 20, s = 1": (lambda seed: sz.generators.complete(20, 1.0, seed), "exact", 2000),
        "complete, n = 20, s = 4": (lambda seed: sz.generators.complete(20, 4.0, seed), "exact", 2000),
        "complete, n = 100, s = 1": (lambda seed: sz.generators.complete(100, 1.0, seed), "states", 1000),
        "grid 15 x 15, s = 4": (lambda seed: sz.generators.grid(15, 4.0, seed), "exact", 200),
    }
    lines = []
    for name, (make, oracle, population) in families.items():
        rows = []
        for seed in range(FIRST_SEED, FIRST_SEED + models):
            model = make(seed)
            truth = sz.log_z(model, oracle).log_z
            began = time.perf_counter()
            plain = importance_sampling(model)
            seconds = time.perf_counter() - began
            found = sz.log_z(model, "annealing", population=population)
            rows.append([abs(plain - truth), seconds, abs(found.log_z - truth), found.std_error, found.seconds])
        means = np.mean(rows, axis=0)
        lines.append([name, *(f"{value:.2g}" for value in means)])
    return table(["model", "AIS, error", "seconds", "annealing, error", "its std_error", "seconds"], lines)


def states(models: int = 3) -> str:
    """Return the errors of sums over states; at n = 100 compared with a run of five times as many."""
    lines = []
    for n, strengths in ((20, (0.1, 0.2, 0.5, 1.0, 2.0, 4.0, 8.0)), (100, (0.1, 0.2, 0.5, 1.0, 2.0, 4.0))):
        for s in strengths:
            rows = []
            for seed in range(FIRST_SEED, FIRST_SEED + models):
                model = sz.generators.complete(n, s, seed)
                found = sz.log_z(model, "states")
                if found.std_error is None:
                    rows.append([math.nan, math.nan, found.details["share"], found.details["states"], found.seconds])
                    continue
                large = sz.States(population=10_000, quenches=5_000, max_states=300_000, seed=1)
                truth = sz.log_z(model, "exact" if n == 20 else large).log_z
                error = abs(found.log_z - truth)
                rows.append([error, found.std_error, found.details["share"], found.details["states"], found.seconds])
            means = np.mean(rows, axis=0)
            loose = sum(math.isnan(row[0]) for row in rows)
            errors = ["loose bound", "-"] if loose else [f"{means[0]:.1g}", f"{means[1]:.2g}"]
            lines.append([f"{n}", f"{s:g}", *errors, f"{100.0 * means[2]:.4g}%", f"{means[3]:.0f}", f"{means[4]:.2g}"])
    return table(["n", "s", "mean error", "std_error", "share of P(x)", "states", "seconds"], lines)


def huge() -> str:
    """Return temperatures, errors and times of two spins with huge couplings, alone and beside small ones."""
    lines = []
    for J in (1.0, 1e10, 1e17, 1e30, 1e200, 1e300):
        pair = sz.Ising.from_edges(2, [(0, 1)], [J])
        mixed = sz.Ising.from_edges(4, [(0, 1), (1, 2), (2, 3), (0, 3)], [J, 1.0, -0.5, 0.3])
        for name, model in {"two spins": pair, "with small couplings": mixed}.items():
            found = sz.log_z(model, "annealing")
            error = abs(found.log_z - sz.log_z(model, "exact").log_z) / found.std_error
            lines.append([f"{J:g}", name, f"{found.details['temperatures']}", f"{error:.1f}", f"{found.seconds:.2g}"])
    return table(["J", "model", "temperatures", "error / std_error", "seconds"], lines)


TABLES = {"unbiased": unbiased, "phases": phases, "error": error_bars, "rival": rival, "states": states, "huge": huge}


def main(names: list[str]) -> None:
    """Print the tables asked for, or all."""
    print(processor())
    for name in names or TABLES:
        print(f"\n**{name}**\n\n{TABLES[name]()}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
