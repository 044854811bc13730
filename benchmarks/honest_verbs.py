"""Test whether what follows from log Z is right where it is trusted: ``python -m benchmarks.honest_verbs``.

Curves (``thermodynamics``), ratios (``log_ratio``) and means (``marginals``) of models at first-order transitions
(benchmarks/first_order_models.py), with the exact methods switched off, against sums over magnetizations. Curves have
three temperatures around 1; the ratio is that of a model and the same at a slightly lower temperature; of the means of
all spins one counts for the table, and the worst for the exit status, which is 1 if an answer is trusted and off by
more than 5 standard errors. ``--seed`` repeats a run. Two processes with one thread each.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

import spectralz as sz
from benchmarks.harness import processor, table
from benchmarks.honesty import HEADINGS, MOST_ERRORS, Row, drawn, is_wrong, line, rows_of_all, work_for
from benchmarks.known_models import Known

VERBS = ("thermodynamics", "log_ratio", "marginals")
FAMILIES = (
    "two_fields",
    "three_fields",
    "cold_pairs",
    "trimers",
    "among_bound_pairs",
    "among_free_spins",
    "linked_traps",
)
BETAS = np.array([0.97, 1.0, 1.03])
RATIO = 1.01
# Slopes of log Z by differences, for the mean energy and the heat capacity.
STEP = 1e-4


def solved_rows(verb: str, family: str, seed: int, index: int) -> list[Row]:
    """Return what a verb says of one model, and the truth."""
    known, own_seed = drawn(family, seed, index)
    options = {"work": work_for(family, known.model.n), "seed": own_seed}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # answers that are not trusted warn; the rows have that
        found = {"thermodynamics": of_curves, "log_ratio": of_ratios, "marginals": of_means}[verb](known, options)
    about = {"verb": verb, "family": family, "seed": seed, "index": index, "about": known.about, "n": known.model.n}
    return [{**about, **row} for row in found]


def row(what: str, value: float, error: float | None, truth: float, trusted: bool) -> dict[str, Any]:
    return {"what": what, "log_z": value, "std_error": error, "truth": truth, "trusted": bool(trusted), "seconds": 0.0}


def of_curves(known: Known, options: dict[str, Any]) -> list[dict[str, Any]]:
    found = sz.thermodynamics(known.model, BETAS, exclude=["exact", "planar", "quadrature"], **options)
    rows = []
    for k, beta in enumerate(BETAS.tolist()):
        low, here, high = (known.at(beta * (1.0 + step)) for step in (-STEP, 0.0, STEP))
        energy = (low - high) / (2.0 * STEP * beta)
        truths = {
            "log_z": here,
            "energy": energy,
            "entropy": here + beta * energy,
            "heat_capacity": (high - 2.0 * here + low) / STEP**2,
        }
        if beta == 1.0:
            truths["magnetization"] = float(known.means().mean())
        for name, truth in truths.items():
            value, error = getattr(found, name)[k], getattr(found, f"{name}_error")[k]
            rows.append(row(f"{name} at {beta}", value, error, truth, found.trusted[k]))
    return rows


def of_ratios(known: Known, options: dict[str, Any]) -> list[dict[str, Any]]:
    from spectralz.inference import ratio

    exactly, ratio._exactly = ratio._exactly, lambda *_: None  # some have low rank
    try:
        found = sz.log_ratio(RATIO * known.model, known.model, **options)
    finally:
        ratio._exactly = exactly
    truth = known.at(RATIO) - known.at(1.0)
    return [row("log ratio", found.value, found.std_error, truth, found.trusted)]


def of_means(known: Known, options: dict[str, Any]) -> list[dict[str, Any]]:
    found = sz.marginals(known.model, exclude=["exact", "planar", "quadrature"], **options)
    truth, trusted = known.means(), found.estimate.trusted
    error = np.full(known.model.n, 1.0) if found.std_error is None else found.std_error
    worst = int(np.argmax(np.abs(found.mean - truth) / np.maximum(error, 1e-8)))
    return [row(what, found.mean[i], error[i], truth[i], trusted) for what, i in (("a mean", 0), ("worst mean", worst))]


def main(argv: Sequence[str] | None = None) -> int:
    """Parse the arguments, run, print; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--verbs", nargs="+", choices=VERBS, default=list(VERBS), metavar="NAME")
    parser.add_argument("--families", nargs="+", choices=FAMILIES, default=FAMILIES, metavar="NAME")
    parser.add_argument("--models", type=int, default=8, help="models of each family")
    parser.add_argument("--first", type=int, default=0, help="number of the first model of each family")
    parser.add_argument("--seed", type=int, help="seed of the models; from the clock if not given")
    parser.add_argument("--workers", type=int, default=2, help="processes with one thread each")
    asked = parser.parse_args(argv)
    seed = time.time_ns() // 10**6 % 10**9 if asked.seed is None else asked.seed
    print(f"seed {seed}, {processor()}", flush=True)
    numbers = range(asked.first, asked.first + asked.models)
    jobs = [(verb, family, seed, i) for i in numbers for family in asked.families for verb in asked.verbs]
    rows = [row for found in rows_of_all(solved_rows, jobs, asked.workers) for row in found]
    lines = []
    for verb in asked.verbs:
        whats = dict.fromkeys(row["what"].split(" at ")[0] for row in rows if row["verb"] == verb)
        for what in whats:
            part = [row for row in rows if row["verb"] == verb and row["what"].split(" at ")[0] == what]
            lines.append(line(f"{verb}: {what}", part)[:-1])
    print(f"\n{table(HEADINGS[:-1], lines)}")
    wrong = [row for row in rows if is_wrong(row)]
    print(f"\ntrusted and beyond {MOST_ERRORS:g} standard errors: {len(wrong) or 'none'}")
    for one in wrong:
        which = f"--verbs {one['verb']} --families {one['family']} --seed {seed} --first {one['index']} --models 1"
        print(f"{one['what']}: {one['log_z']:.6g} +- {one['std_error']:.2g}, truth {one['truth']:.6g}; {one['about']}")
        print(f"  python -m benchmarks.honest_verbs {which}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
