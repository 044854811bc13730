"""Measure `auto` with exact methods switched off: ``python -m benchmarks.auto dense|uai|large``, for docs/auto.md.

Rows are appended to out/bench/auto-*.csv one by one, and a second run continues from there. There are two processes
with one thread each, so that a budget means the same to all.
"""

from __future__ import annotations

import argparse
import csv
import math
import multiprocessing
import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import numpy as np

import spectralz as sz
from benchmarks.harness import OUT, processor, table

# Seeds from here on were used for nothing else.
FIRST_SEED = 700_000
STRENGTHS = (0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 1.0, 2.0, 4.0, 8.0)
FAMILIES: dict[str, Callable[[float, int], sz.Ising]] = {
    "complete": lambda s, seed: sz.generators.complete(20, s, seed),
    "Erdos-Renyi 0.5": lambda s, seed: sz.generators.erdos_renyi(20, 0.5, s, seed),
    "Erdos-Renyi 0.7": lambda s, seed: sz.generators.erdos_renyi(20, 0.7, s, seed),
    "bipartite": lambda s, seed: sz.generators.bipartite(20, s, seed),
}
RIVALS = ("Ours", "BP-200", "MF-1000")
LARGE_STRENGTHS = (0.05, 0.1, 0.2, 0.35, 0.5, 1.0, 2.0, 4.0)
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
UAI = Path(__file__).resolve().parents[2] / "shared" / "data" / "uai"

Row = dict[str, Any]


def answer(estimate: sz.Estimate, truth: float) -> Row:
    """Return the columns that the tables need."""
    chosen = [trial.method for trial in estimate.tried if trial.verdict is sz.Verdict.CHOSEN]
    return {
        "truth": truth,
        "error": estimate.log_z - truth,
        "std_error": estimate.std_error,
        "below": truth - estimate.lower,
        "above": estimate.upper - truth,
        "seconds": estimate.seconds,
        "chosen": chosen[0] if chosen else "none",
        "converged": estimate.status.converged,
        "agreement": not estimate.disagreeing,
    }


# ----------------------------------------------------------------------------------------------------- the work


def dense_row(family: str, strength: float, seed: int, budget: float) -> Row:
    """Solve one model with exact switched off, and with the paper's methods."""
    model = FAMILIES[family](strength, seed)
    truth = sz.log_z(model, "exact").log_z
    rivals = {name: abs(sz.log_z(model, name).log_z - truth) for name in RIVALS}
    found = sz.log_z(model, exclude=["exact", "planar"], budget=budget)
    return {"family": family, "strength": strength, "seed": seed, **answer(found, truth), **rivals}


def large_row(strength: float, seed: int, budget: float) -> Row:
    """Solve one model of 100 spins, and once more with a hundred times the budget."""
    model = sz.generators.complete(100, strength, seed)
    reference = sz.log_z(model, budget=100.0 * budget, seed=1)
    found = sz.log_z(model, budget=budget)
    row = {"strength": strength, "seed": seed, **answer(found, reference.log_z)}
    return {
        **row,
        "reference_error": reference.std_error,
        "reference_seconds": reference.seconds,
        "reference_chosen": answer(reference, reference.log_z)["chosen"],
        "reference_converged": reference.status.converged,
    }


def uai_row(name: str, budget: float) -> Row:
    """Solve one UAI file with exact switched off, and exactly."""
    file = UAI / f"{name}.uai"
    model = sz.read(file, Path(f"{file}.evid"))
    truth = sz.log_z(model, "exact").log_z
    found = sz.log_z(model, exclude=["exact", "planar"], budget=budget)
    return {"name": name, "n": model.n, "edges": model.edge_count, **answer(found, truth), "status": found.status}


def warm_up() -> None:
    """Compile everything, so that no budget is spent on it."""
    for model in (sz.generators.complete(12, 1.0, seed=0), sz.generators.grid(5, 2.0, seed=0)):
        sz.log_z(model, exclude=["exact", "planar"], budget=2.0)


def run(name: str, work: Callable[..., Row], jobs: Iterable[tuple[Any, ...]], keys: int, workers: int) -> list[Row]:
    """Do the jobs that have no row yet, and return all rows; the first ``keys`` columns tell rows apart."""
    path = OUT / f"auto-{name}.csv"
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = list(read(path))
    done = {tuple(row[key] for key in list(row)[:keys]) for row in rows}
    waiting = [job for job in jobs if tuple(map(str, job[:keys])) not in done]
    os.environ.update(dict.fromkeys(THREADS, "1"))  # a spawned process reads them when it imports numpy
    with ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"), initializer=warm_up) as pool:
        futures = [pool.submit(work, *job) for job in waiting]
        for count, future in enumerate(as_completed(futures)):
            append(path, future.result())
            print(f"\r{count + 1} of {len(futures)}", end="", flush=True)
    print()
    return list(read(path))


def append(path: Path, row: Row) -> None:
    """Add a row to a table."""
    is_new = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, list(row))
        if is_new:
            writer.writeheader()
        writer.writerow(row)


def read(path: Path) -> Iterator[Row]:
    """Yield the rows of a table, if there is one."""
    if path.exists():
        with path.open(newline="") as file:
            yield from csv.DictReader(file)


# ---------------------------------------------------------------------------------------------------- the tables


def column(rows: list[Row], key: str) -> np.ndarray:
    """Return a column as numbers."""
    return np.array([float(row[key]) for row in rows])


def dense_table(rows: list[Row]) -> str:
    """Return a line for each family and strength."""
    lines = []
    for family in FAMILIES:
        for s in STRENGTHS:
            cell = [row for row in rows if row["family"] == family and float(row["strength"]) == s]
            if not cell:
                continue
            error, std_error = np.abs(column(cell, "error")), column(cell, "std_error")
            chosen = [row["chosen"] for row in cell]
            votes = ", ".join(
                f"{name} {chosen.count(name)}" for name in sorted(set(chosen), key=lambda c: -chosen.count(c))
            )
            lines.append(
                [
                    family,
                    f"{s:g}",
                    f"{error.mean():.2g}",
                    f"{error.max():.2g}",
                    f"{np.median(std_error):.2g}",
                    f"{100.0 * np.mean(error <= 2.0 * std_error):.0f}%",
                    *(f"{column(cell, name).mean():.2g}" for name in RIVALS),
                    f"{np.mean(column(cell, 'seconds')):.2g}",
                    votes,
                ]
            )
    heads = ["graph", "s", "auto", "worst", "std_error", "within 2", "Algorithm 2", "BP", "MF", "seconds", "chosen"]
    return table(heads, lines)


def large_table(rows: list[Row]) -> str:
    """Return a line for each model of 100 spins."""
    lines = []
    for row in sorted(rows, key=lambda row: (float(row["strength"]), int(row["seed"]))):
        joint = math.hypot(float(row["std_error"]), float(row["reference_error"]))
        lines.append(
            [
                f"{float(row['strength']):g}",
                f"{float(row['truth']):.4f}",
                f"{float(row['reference_error']):.2g}",
                f"{row['reference_chosen']}, {float(row['reference_seconds']):.0f} s",
                f"{float(row['error']):+.2g}",
                f"{float(row['std_error']):.2g}",
                f"{abs(float(row['error'])) / joint:.2g}",
                f"{row['chosen']}, {float(row['seconds']):.1f} s",
            ]
        )
    return table(["s", "reference", "its error", "by", "auto - reference", "std_error", "ratio", "by"], lines)


def uai_table(rows: list[Row]) -> str:
    """Return a line for each UAI file."""
    lines = [
        [
            row["name"],
            row["n"],
            f"{float(row['truth']):.4f}",
            f"{float(row['error']):+.2g}",
            f"{float(row['std_error']):.2g}",
            f"-{float(row['below']):.2g} / +{float(row['above']):.2g}",
            row["chosen"],
            "yes" if row["converged"] == "True" else "no",
            f"{float(row['seconds']):.1f}",
        ]
        for row in sorted(rows, key=lambda row: row["name"])
    ]
    return table(["model", "n", "log Z", "error", "std_error", "bracket", "chosen", "trusted", "seconds"], lines)


def main() -> None:
    """Parse the arguments, run, print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["dense", "large", "uai"])
    parser.add_argument("--models", type=int, default=50, help="models per cell (dense) or per strength (large)")
    parser.add_argument(
        "--budget", type=float, default=10.0, help="seconds; the reference of `large` has 100 times that"
    )
    parser.add_argument("--workers", type=int, default=2)
    asked = parser.parse_args()
    seeds = range(FIRST_SEED, FIRST_SEED + asked.models)
    if asked.what == "dense":
        jobs: Iterable[tuple[Any, ...]] = ((f, s, i, asked.budget) for i in seeds for f in FAMILIES for s in STRENGTHS)
        text = dense_table(run("dense", dense_row, jobs, 3, asked.workers))
    elif asked.what == "large":
        jobs = ((s, i, asked.budget) for i in seeds for s in LARGE_STRENGTHS)
        text = large_table(run("large", large_row, jobs, 2, asked.workers))
    else:
        if not UAI.is_dir():
            raise SystemExit(f"the UAI files are not there: {UAI}")
        jobs = ((path.stem, asked.budget) for path in sorted(UAI.glob("*.uai")))
        text = uai_table(run("uai", uai_row, jobs, 1, asked.workers))
    print(f"{processor()}, {asked.workers} processes with one thread each, budget {asked.budget:g} s\n\n{text}")


if __name__ == "__main__":
    main()
