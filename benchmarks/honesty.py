"""Test whether trusted answers are right: ``python -m benchmarks.honesty`` runs `auto` on models with a known log Z.

It draws hundreds of random models of many families (benchmarks/known_models.py, benchmarks/first_order_models.py and
others), new ones in every run; ``--seed`` repeats a run. The methods that could give the reference, exact,
planar and quadrature, are excluded. It prints a table by family, and every answer that is trusted and off by more than
5 standard errors, with the command that repeats it. The exit status is 1 if there is such an answer, or a proven bound
on the wrong side.
``--rival FILE`` asks another program instead, whose ``log_z(model, seconds, seed)`` returns a dictionary with log_z,
std_error and trusted; it gets a second for 1e9 operations, and the models of pairs of spins alone.
``--json`` saves the rows, and ``--before`` lists the models that were trusted and right in an earlier run of the same
seed and are not trusted now. ``--families first_order`` stands for all families of first-order transitions,
``machines`` for those of RBMs, ``polynomials`` for those with terms of three and more spins, ``new`` for the kinds of
models on which trusted answers were wrong (benchmarks/hunted_models.py), ``ordinary`` for the others.

Two processes with one thread each. With ``--work``, the default, answers depend on the seed alone. With a ``--budget``
in seconds they depend on the clock.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import math
import multiprocessing
import os
import statistics
import sys
import time
import warnings
import zlib
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import spectralz as sz
from benchmarks.first_order_models import FIRST_ORDER
from benchmarks.harness import processor, table
from benchmarks.hunted_models import HUNTED
from benchmarks.known_models import FAMILIES as ORDINARY
from benchmarks.known_models import Known
from benchmarks.machine_models import MACHINES
from benchmarks.polynomial_models import POLYNOMIALS

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
EXCLUDED = ("exact", "planar", "quadrature")
MOST_ERRORS = 5.0
FAMILIES = ORDINARY | FIRST_ORDER | MACHINES | POLYNOMIALS | HUNTED
# Operations per model; more at a first-order transition with more spins than this.
WORK, SPINS_OF_MORE_WORK, MORE_WORK = 1e9, 150, 1e10
# The references are rounded; answers that agree within that are right, whatever their error bars.
ROUNDING = 1e-10

HEADINGS = (
    "family",
    "models",
    "trusted",
    "worst error / std_error",
    "within 2",
    "rms",
    "not trusted: std_error / error",
    "worst error / std_error",
    "seconds",
)

Row = dict[str, Any]


# ----------------------------------------------------------------------------------------------------- the work


def drawn(family: str, seed: int, index: int) -> tuple[Known, int]:
    """Return a model and the seed to solve it with; they depend on nothing but the arguments."""
    rng = np.random.default_rng([seed, zlib.crc32(family.encode()), index])
    known = FAMILIES[family](rng)
    return known, int(rng.integers(2**31))


def solved_row(family: str, seed: int, index: int, limit: dict[str, float]) -> Row:
    """Return the answer of `auto`, or of one method alone, for one model, and the truth."""
    known, auto_seed = drawn(family, seed, index)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # answers that are not trusted may warn; the rows have that
        if "bond" in limit:
            found = sz.log_z(known.model, "mps", seed=auto_seed, bond=int(limit["bond"]))
        else:
            limit = limit or {"work": work_for(family, known.model.n)}
            found = sz.log_z(known.model, exclude=EXCLUDED, seed=auto_seed, **limit)
    chosen = [trial.method for trial in found.tried if trial.verdict is sz.Verdict.CHOSEN]
    return asked_about(family, seed, index, known) | {
        "log_z": found.log_z,
        "std_error": found.std_error,
        "lower": found.lower,
        "upper": found.upper,
        "kind": str(found.kind),
        "trusted": found.trusted,
        "chosen": " ".join(dict.fromkeys(chosen)) or "none",
        "status": str(found.status),
        "seconds": found.seconds,
    }


def asked_about(family: str, seed: int, index: int, known: Known) -> Row:
    """Return what a row says of its model."""
    return {
        "family": family,
        "seed": seed,
        "index": index,
        "about": known.about,
        "n": known.model.n,
        "truth": known.log_z,
    }


def rival_row(family: str, seed: int, index: int, limit: dict[str, float], file: Path) -> Row | None:
    """Return the answer of another program for a model; None if it has terms of three spins or hidden units."""
    known, its_seed = drawn(family, seed, index)
    if known.model.higher.number or isinstance(known.model, sz.RBM):
        return None
    rival = rival_of(file)
    seconds = limit.get("budget") or (limit.get("work") or work_for(family, known.model.n)) / 1e9
    found = rival.log_z(known.model, seconds, its_seed)
    return asked_about(family, seed, index, known) | {
        "log_z": float(found["log_z"]),
        "std_error": float(found["std_error"]),
        "lower": None,
        "upper": None,
        "kind": "estimate",
        "trusted": bool(found["trusted"]),
        "chosen": file.name,
        "status": str(found["why"]),
        "seconds": float(found["cpu"]),
    }


@cache
def rival_of(file: Path) -> Any:
    """Load a program, and let it compile what it needs."""
    spec = importlib.util.spec_from_file_location(file.stem, file)
    if spec is None or spec.loader is None:
        raise SystemExit(f"{file} is no Python program")
    rival = importlib.util.module_from_spec(spec)
    sys.modules[file.stem] = rival  # its dataclasses and its compiled code look there
    spec.loader.exec_module(rival)
    rival.log_z(sz.generators.complete(10, 1.0, seed=0), 0.1, 0)
    return rival


def work_for(family: str, n: int) -> float:
    """Return the operations for a model if nothing else is asked for."""
    return MORE_WORK if family in FIRST_ORDER | HUNTED and n > SPINS_OF_MORE_WORK else WORK


def rows_of_all(solve: Callable[..., Any], jobs: Sequence[tuple[Any, ...]], workers: int) -> list[Any]:
    """Call a function on each job, in separate processes, and return the results in the order of the jobs."""
    os.environ.update(dict.fromkeys(THREADS, "1"))  # a spawned process reads them when it imports numpy
    workers = min(workers, len(jobs))
    with ProcessPoolExecutor(workers, multiprocessing.get_context("spawn")) as pool:
        futures = [pool.submit(solve, *job) for job in jobs]
        for done, _ in enumerate(as_completed(futures), start=1):
            print(f"\r{done} of {len(jobs)} models", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return [future.result() for future in futures]


# -------------------------------------------------------------------------------------------------- the judgment


def rounding(row: Row) -> float:
    """Return the possible error of the reference."""
    return ROUNDING * max(1.0, abs(row["truth"]))


def ratio(row: Row) -> float:
    """Return the error of an answer in its standard errors; 0 if it is right to the digits of the reference."""
    error = abs(row["log_z"] - row["truth"])
    if error <= rounding(row):
        return 0.0
    return error / row["std_error"] if row["std_error"] else math.inf


def is_wrong(row: Row) -> bool:
    """Return whether an answer is trusted although it is wrong."""
    return bool(row["trusted"]) and ratio(row) > MOST_ERRORS


def has_wrong_bound(row: Row) -> bool:
    """Return whether a bound is on the wrong side of the reference."""
    below, above = row["lower"], row["upper"]
    return (below is not None and below > row["truth"] + rounding(row)) or (
        above is not None and above < row["truth"] - rounding(row)
    )


def repeating(row: Row) -> str:
    """Return the command that solves this model again."""
    which = f"--families {row['family']} --seed {row['seed']} --first {row['index']} --models 1"
    return f"python -m benchmarks.honesty {which}"


def line(name: str, rows: Sequence[Row]) -> list[str]:
    """Return the line of a family."""
    ratios = np.array([ratio(row) for row in rows if row["trusted"]])
    wide = [row for row in rows if not row["trusted"] and row["std_error"] and abs(row["log_z"] - row["truth"]) > 0.0]
    widths = [row["std_error"] / abs(row["log_z"] - row["truth"]) for row in wide]
    off = [ratio(row) for row in rows if not row["trusted"]]
    return [
        name,
        str(len(rows)),
        f"{100.0 * len(ratios) / len(rows):.0f}%",
        f"{ratios.max():.2g}" if len(ratios) else "",
        f"{100.0 * np.mean(ratios <= 2.0):.0f}%" if len(ratios) else "",
        f"{math.sqrt(np.mean(ratios**2)):.2g}" if len(ratios) else "",
        f"{statistics.median(widths):.2g}" if widths else "",
        f"{max(off):.2g}" if off else "",
        f"{statistics.median(row['seconds'] for row in rows):.1f}",
    ]


def honesty_table(rows: Sequence[Row]) -> str:
    """Return a line for each family, and one for all."""
    families = list(dict.fromkeys(row["family"] for row in rows))
    lines = [line(family, [row for row in rows if row["family"] == family]) for family in families]
    return table(HEADINGS, [*lines, *(line(name, part) for name, part in by_group(rows))])


def by_group(rows: Sequence[Row]) -> list[tuple[str, list[Row]]]:
    """Return the rows of ordinary families, first-order transitions, machines, polynomials and new ones, with names."""
    groups = {"ordinary": ORDINARY, "first order": FIRST_ORDER, "machines": MACHINES, "polynomials": POLYNOMIALS}
    groups["new"] = HUNTED
    parts = [(name, [row for row in rows if row["family"] in families]) for name, families in groups.items()]
    return [(name, part) for name, part in parts if part]


def summary(rows: Sequence[Row]) -> str:
    """Return what is promised, in a sentence: of trusted answers, and of the bars of the others."""
    trusted, others = ([row for row in rows if bool(row["trusted"]) == is_trusted] for is_trusted in (True, False))
    right = sum(not is_wrong(row) for row in trusted)
    words = f"{right} of {len(rows)} trusted and right ({right / len(rows):.0%})"
    for name, part, limit in (("trusted", trusted, 2.0), ("not trusted", others, 3.0)):
        if part:
            within = sum(ratio(row) <= limit for row in part)
            words += f"; {name}: {within} of {len(part)} within {limit:g} errors ({within / len(part):.1%})"
    return words


def told(row: Row) -> str:
    """Return all that is needed to examine an answer."""
    return (
        f"{row['family']} {row['index']}: {row['about']} (n = {row['n']})\n"
        f"  truth {row['truth']:.6f}; {row['log_z']:.6f} +- {row['std_error'] or 0.0:.2g}, "
        f"off by {ratio(row):.1f}; bounds {row['lower']}, {row['upper']}; by {row['chosen']}\n"
        f"  {row['status']}\n"
        f"  {repeating(row)}"
    )


def lost(before: Sequence[Row], rows: Sequence[Row]) -> list[Row]:
    """Return the rows that were trusted and right before, and are not trusted now."""
    key = ("family", "seed", "index")
    now = {tuple(row[name] for name in key): row for row in rows}
    pairs = [(row, now.get(tuple(row[name] for name in key))) for row in before]
    return [new for old, new in pairs if new and old["trusted"] and not is_wrong(old) and not new["trusted"]]


def section(title: str, rows: Sequence[Row]) -> str:
    """Return a title with the number of its answers, and the details of each."""
    return "\n".join([f"\n{title}: {len(rows) or 'none'}", *(told(row) for row in rows)])


# -------------------------------------------------------------------------------------------------------- the run


def arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    groups = {"ordinary": list(ORDINARY), "first_order": list(FIRST_ORDER), "machines": list(MACHINES)}
    groups |= {"polynomials": list(POLYNOMIALS), "new": list(HUNTED)}
    parser.add_argument("--families", nargs="+", choices=[*groups, *FAMILIES], default=list(groups), metavar="NAME")
    parser.add_argument("--models", type=int, default=10, help="models of each family")
    parser.add_argument("--first", type=int, default=0, help="number of the first model of each family")
    parser.add_argument("--seed", type=int, help="seed of the models; from the clock if not given")
    parser.add_argument("--work", type=float, help="operations per model; 1e9, or 1e10 for large first-order models")
    parser.add_argument("--budget", type=float, help="seconds per model, instead of work")
    parser.add_argument("--bond", type=int, help="run mps alone with this bond, instead of auto")
    parser.add_argument("--rival", type=Path, metavar="FILE", help="a program to ask instead of auto")
    parser.add_argument("--workers", type=int, default=2, help="processes with one thread each")
    parser.add_argument("--json", type=Path, metavar="FILE", help="file to save the rows in")
    parser.add_argument("--before", type=Path, metavar="FILE", help="rows of an earlier run with the same seed")
    asked = parser.parse_args(argv)
    if sum(map(bool, (asked.work, asked.budget, asked.bond))) > 1:
        parser.error("give one of --work, --budget and --bond")
    asked.families = [family for name in asked.families for family in groups.get(name, [name])]
    if min(asked.models, asked.workers) < 1 or asked.first < 0:
        parser.error("--models and --workers are 1 or more, --first 0 or more")
    return asked


def main(argv: Sequence[str] | None = None) -> int:
    """Parse the arguments, run, print; return the exit status."""
    asked = arguments(argv)
    seed = time.time_ns() // 10**6 % 10**9 if asked.seed is None else asked.seed
    limit = {name: getattr(asked, name) for name in ("budget", "work", "bond") if getattr(asked, name)}
    print(", ".join([f"seed {seed}", *(f"{name} {value:g}" for name, value in limit.items()), processor()]), flush=True)
    jobs = [(family, seed, asked.first + i, limit) for i in range(asked.models) for family in asked.families]
    if asked.rival:
        found = rows_of_all(rival_row, [(*job, asked.rival) for job in jobs], asked.workers)
    else:
        found = rows_of_all(solved_row, jobs, asked.workers)
    rows = sorted(
        (row for row in found if row is not None),
        key=lambda row: (asked.families.index(row["family"]), row["index"]),
    )
    wrong, crossed = [row for row in rows if is_wrong(row)], [row for row in rows if has_wrong_bound(row)]
    print(f"\n{honesty_table(rows)}")
    for name, part in by_group(rows):
        print(f"{name}: {summary(part)}")
    print(section(f"trusted and beyond {MOST_ERRORS:g} standard errors", wrong))
    print(section("bounds on the wrong side", crossed))
    if asked.before:
        print(section("trusted and right before, not trusted now", lost(json.loads(asked.before.read_text()), rows)))
    if asked.json:
        asked.json.parent.mkdir(parents=True, exist_ok=True)
        asked.json.write_text(json.dumps(rows, indent=1))
    return 1 if wrong or crossed else 0


if __name__ == "__main__":
    sys.exit(main())
