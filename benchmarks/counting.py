"""Count solutions beside Ganak and pgmpy: ``python -m benchmarks.counting [DIR] [--seconds S]``.

DIR is a folder of UAI models with zeros, and their evidence. Their tables say what is allowed: counted are the states
of weight above zero. Beside them are 20 formulas made here: random 3-SAT, circuits and grids. pgmpy eliminates in
floating point, along orders of its own; it is asked for log Z of the constraints, and left out where it would take
more than ``MOST_WIDTH`` spins in a table. Everything runs in a process of its own, which is ended after S seconds.
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

import spectralz as sz
from benchmarks.harness import processor, table
from spectralz.constraints import clause, exactly_one, forbid, parity
from spectralz.errors import SpectralzError

MOST_WIDTH = 22


def coins(n: int) -> sz.Ising:
    return sz.Ising(np.zeros(n))


def random_3_sat(n: int, ratio: float, seed: int = 0) -> sz.Ising:
    rng = np.random.default_rng(seed)
    scopes = (rng.choice(n, 3, replace=False).tolist() for _ in range(round(ratio * n)))
    return coins(n).with_constraints(
        *(clause(dict(zip(s, rng.choice([-1, 1], 3).tolist(), strict=True))) for s in scopes)
    )


def circuit(inputs: int, gates: int, seed: int = 0) -> sz.Ising:
    """Gates that are the and, or or exclusive or of two spins before them; the last ones are held at 1."""
    rng = np.random.default_rng(seed)
    n, rules = inputs + gates, []
    for out in range(inputs, n):
        a, b = rng.choice(np.arange(max(0, out - 25), out), 2, replace=False).tolist()
        kind = int(rng.integers(3))
        if kind == 2:
            rules.append(parity([a, b, out], -1))
            continue
        sign = 1 if kind == 0 else -1  # an or is the and of opposites
        rules += [clause({a: -sign, b: -sign, out: sign}), clause({a: sign, out: -sign}), clause({b: sign, out: -sign})]
    return coins(n).with_constraints(*rules, *(clause({k: 1}) for k in range(n - 3, n)))


def hard_squares(rows: int, columns: int) -> sz.Ising:
    place = np.arange(rows * columns).reshape(rows, columns)
    pairs = [
        *zip(place[1:].flat, place[:-1].flat, strict=True),
        *zip(place[:, 1:].flat, place[:, :-1].flat, strict=True),
    ]
    return coins(rows * columns).with_constraints(*(forbid({int(i): 1, int(j): 1}) for i, j in pairs))


def dominoes(side: int) -> sz.Ising:
    nodes = [(i, j) for i in range(side) for j in range(side)]
    pairs = [(a, b) for a in nodes for b in ((a[0] + 1, a[1]), (a[0], a[1] + 1)) if max(b) < side]
    at = [[k for k, pair in enumerate(pairs) if node in pair] for node in nodes]
    return coins(len(pairs)).with_constraints(*map(exactly_one, at))


def formulas() -> dict[str, sz.Ising]:
    sizes = [
        (30, 2.0),
        (30, 3.0),
        (30, 4.5),
        (45, 2.0),
        (45, 3.0),
        (45, 4.0),
        (60, 2.0),
        (60, 3.0),
        (60, 4.0),
        (60, 4.5),
    ]
    sat = {f"3-SAT, n = {n}, ratio {ratio}": random_3_sat(n, ratio) for n, ratio in sizes}
    gates = {f"circuit, {i} inputs, {g} gates": circuit(i, g) for i, g in ((20, 60), (30, 120), (40, 200), (60, 400))}
    squares = {f"hard squares {r} x {c}": hard_squares(r, c) for r, c in ((10, 10), (14, 14), (12, 40), (18, 18))}
    return {**sat, **gates, **squares, **{f"dominoes {side} x {side}": dominoes(side) for side in (12, 20)}}


def by_elimination(model: sz.Ising, seconds: float) -> str:
    return digits(sz.count(model, "elimination", budget=seconds).value)


def by_ganak(model: sz.Ising, seconds: float) -> str:
    return digits(sz.count(model, "ganak", budget=seconds).value)


def by_auto(model: sz.Ising, seconds: float) -> str:
    return digits(sz.count(model, budget=seconds).value)


def by_pgmpy(model: sz.Ising, seconds: float) -> str:
    from pgmpy.factors.discrete import DiscreteFactor
    from pgmpy.inference import VariableElimination
    from pgmpy.models import DiscreteMarkovNetwork

    if sz.describe(model).treewidth_lower > MOST_WIDTH:
        raise ValueError("too wide")
    tables, n = model.constraints.narrow(model.n)
    network = DiscreteMarkovNetwork()
    network.add_nodes_from(map(str, range(n)))
    for one in tables:
        names = [str(i) for i in one.scope]
        network.add_edges_from((a, b) for a in names for b in names if a < b)
        network.add_factors(DiscreteFactor(names, [2] * len(names), one.allowed.astype(float).ravel()))
    for i in set(range(n)).difference(i for one in tables for i in one.scope):
        network.add_factors(DiscreteFactor([str(i)], [2], [1.0, 1.0]))
    # On a Markov network the answer comes unnormalized, so that its sum is the count.
    return str(int(VariableElimination(network).query(["0"], show_progress=False).values.sum()))


def digits(value: Any) -> str:
    return "" if value is None else str(value)


def answer(way: Callable[[sz.Ising, float], str], model: sz.Ising, seconds: float, pipe: Any) -> None:
    way(hard_squares(3, 3), 60.0)  # compiled, or imported
    began = time.perf_counter()
    try:
        found = way(model, seconds)
    except (SpectralzError, ValueError, MemoryError) as error:
        pipe.send((None, str(error)))
    else:
        pipe.send((time.perf_counter() - began, found))


def timed(way: Callable[[sz.Ising, float], str], model: sz.Ising, seconds: float) -> tuple[float | None, str]:
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=answer, args=(way, model, seconds, there))
    process.start()
    there.close()  # so that the end of the process is noticed
    try:
        return here.recv() if here.poll(seconds + 60.0) else (None, "too slow")
    except EOFError:
        return None, "ended"
    finally:
        process.kill()
        process.join()


WAYS = {"elimination": by_elimination, "Ganak": by_ganak, "auto": by_auto, "pgmpy": by_pgmpy}
PACKAGES = {"Ganak": "pyganak", "pgmpy": "pgmpy"}


def models_of(folder: Path | None) -> dict[str, sz.Ising]:
    """Return the constraints of the models of a folder, with their evidence, and the formulas of this file."""
    found = {}
    for path in sorted(folder.glob("*.uai")) if folder else []:
        evidence = Path(f"{path}.evid")
        model = sz.read(path, evidence if evidence.exists() else None)
        found[path.stem] = coins(model.n)._changed(constraints=model.constraints)
    return found | formulas()


def main(folder: Path | None, seconds: float, limit: int | None = None) -> list[list[str]]:
    ways = {name: way for name, way in WAYS.items() if find_spec(PACKAGES.get(name, "spectralz"))}
    rows = []
    for name, model in list(models_of(folder).items())[:limit]:
        answers = {way: timed(run, model, seconds) for way, run in ways.items()}
        exact = {found for way, (took, found) in answers.items() if took is not None and found and way != "pgmpy"}
        assert len(exact) <= 1, f"{name}: {answers}"
        number = f"{math.log10(int(min(exact)) or 1):.4f}" if exact else ""
        width = sz.describe(model).treewidth_upper
        cells = [f"{took:.2f}" if took is not None and found else "" for took, found in answers.values()]
        rows.append([name, str(model.n), "" if width is None else str(width), number, *cells])
        print(" | ".join(rows[-1]), {way: why for way, (took, why) in answers.items() if took is None}, file=sys.stderr)
    print(f"\nSeconds to an exact count, of at most {seconds:g}; {processor()}\n")
    print(table(["model", "spins", "treewidth at most", "log10 of the count", *ways], rows))
    return rows


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--seconds", type=float, default=20.0)
    given = parser.parse_args()
    main(given.folder, given.seconds)
