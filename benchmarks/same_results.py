"""Compare the results of two versions of the package: every method and every verb on models of all kinds.

``python -m benchmarks.same_results record FILE`` writes the answers of the installed version: every method with fixed
options on 200 small models, and every public verb on larger ones, planned by operations (``work=``) instead of the
clock. Run it once with each version (``PYTHONPATH=OTHER/src`` chooses another checkout). Then ``python -m
benchmarks.same_results compare OLD NEW`` lists what differs by more than rounding. Give both versions one thread
(``OMP_NUM_THREADS=1 NUMBA_NUM_THREADS=1``): linear algebra adds up in another order with two.

``python -m benchmarks.same_results speed OTHER/src`` compares CPU times: both versions solve the same models in turn,
each in a process of its own.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import spectralz as sz

MODELS = 200
# Two versions may add up the same numbers in another order.
RELATIVE, ABSOLUTE = 1e-10, 1e-10
METHODS: dict[str, tuple[str, dict[str, Any]]] = {
    "exact": ("exact", {}),
    "exact enumerated": ("exact", {"algorithm": "enumeration", "max_terms": 2**20}),
    "exact min-fill": ("exact", {"order": "min-fill"}),
    "quadrature": ("quadrature", {}),
    "low_rank": ("low_rank", {"max_cells": 10**6}),
    "annealing": ("annealing", {"population": 60, "runs": 2}),
    "annealing, two sweeps": ("annealing", {"population": 40, "runs": 2, "sweeps": 2, "seed": 5}),
    "states": ("states", {"population": 40, "quenches": 40, "max_states": 3000}),
    "spectral": ("spectral", {}),
    "spectral dominant": ("spectral", {"diagonal": "diagonally_dominant", "restarts": 0}),
    "bp": ("bp", {}),
    "bp sequential": ("bp", {"schedule": "sequential", "damping": 0.3}),
    "ep": ("ep", {}),
    "ep uncorrected": ("ep", {"correction": False, "restarts": 3, "seed": 7}),
    "mf": ("mf", {"restarts": 3}),
    "mf leading": ("mf", {"start": "leading", "seed": 1}),
    "mbe": ("mbe", {"ibound": 4}),
    "mbe lower": ("mbe", {"ibound": 5, "bound": "lower", "partition": "content"}),
    "wmbe": ("wmbe", {"ibound": 4, "max_iter": 4}),
    "trw": ("trw", {"max_iter": 60, "optimize_edges": 2}),
    "convex_mf": ("convex_mf", {"rounds": 2}),
}


def models() -> Iterator[sz.Ising]:
    """Yield models of every kind and storage, most of them small, at all temperatures."""
    rng = np.random.default_rng(20261115)
    strengths = (0.05, 0.2, 0.5, 1.0, 3.0)
    for k in range(MODELS):
        s, seed = strengths[k % 5], 1000 + k
        kind = k // 5 % 10
        if kind == 0:
            yield sz.generators.complete(n=5 + k % 12, strength=s, seed=seed)
        elif kind == 1:
            yield sz.generators.erdos_renyi(n=6 + k % 11, p=0.4, strength=s, seed=seed)
        elif kind == 2:
            yield sz.generators.bipartite(n=6 + k % 9, strength=s, seed=seed)
        elif kind == 3:
            yield sz.generators.grid(side=2 + k % 5, strength=s, seed=seed, periodic=bool(k % 2))
        elif kind == 4:
            yield sz.generators.rank_one(n=4 + k % 20, strength=s, seed=seed)
        elif kind == 5:
            yield sz.generators.rbm(visible=4 + k % 6, hidden=3 + k % 5, scale=s, seed=seed)
        elif kind == 6:
            yield sz.generators.spin_glass_3d(side=2 + k % 2, strength=s, seed=seed)
        elif kind == 7:
            n = 3 + k % 15
            parents = [int(rng.integers(i)) for i in range(1, n)]
            edges = [(p, i) for i, p in enumerate(parents, start=1) if k % 3 or i % 4]
            yield sz.Ising.from_edges(n, edges, s * rng.standard_normal(len(edges)), rng.standard_normal(n), offset=s)
        elif kind == 8:
            n, rank = 3 + k % 10, 1 + k % 2
            vectors = rng.standard_normal((rank, n))
            yield sz.Ising.from_factors(rng.standard_normal(n), s * rng.standard_normal(rank), vectors, diagonal=0.3)
        else:
            n = (0, 1, 2, 3, 9)[k % 5]
            A = s * rng.standard_normal((n, n))
            yield sz.Ising(10.0 * rng.standard_normal(n), (A + A.T) / 2.0, offset=-2.0)


# Operations of each verb, and inverse temperatures of the curves.
WORK = 3e8
BETAS = (0.3, 1.0)
WITHOUT_EXACT = ("exact", "quadrature")


def larger_models() -> Iterator[tuple[str, sz.Ising | sz.RBM]]:
    """Yield models on which verbs go through every engine and every step of `auto`, with a name each."""
    make = sz.generators
    rng = np.random.default_rng(20261116)
    huge = 500.0 * np.triu(rng.normal(size=(30, 30)), 1)
    glass = [(i, (i + step) % 400) for i in range(400) for step in (1, 20)]
    yield "dense warm", make.complete(n=40, strength=0.1, seed=1)
    yield "dense cold", make.complete(n=40, strength=1.0, seed=2)
    yield "dense large", make.complete(n=300, strength=0.05, seed=3)
    yield "large grid", make.grid(side=12, strength=1.0, seed=4)
    yield "torus, critical", make.torus(rows=20, columns=20, strength=0.4406868)
    yield "signs on a torus", sz.Ising.from_edges(400, glass, rng.choice([-1.0, 1.0], len(glass)))
    yield "3D glass", make.spin_glass_3d(side=6, strength=0.7, seed=5)
    yield "random graph", make.erdos_renyi(n=300, p=0.01, strength=1.0, seed=6)
    yield "two phases", sz.Ising(np.full(60, 0.01), 0.04 * (np.ones((60, 60)) - np.eye(60)))
    yield "RBM", make.rbm(visible=40, hidden=25, scale=0.4, seed=7)
    yield "RBM with biases", sz.RBM(rng.normal(size=(50, 30)), rng.normal(size=50), rng.normal(size=30))
    yield "beyond single precision", sz.Ising(rng.normal(size=30), huge + huge.T)
    yield "sparse, beyond single precision", 3000.0 * make.grid(side=6, strength=1.0, seed=8)
    yield "Hopfield", make.hopfield(n=60, patterns=5, strength=1.0, seed=9)


def of_quantity(found: Any) -> dict[str, Any]:
    return {"value": float(found), "error": found.std_error, "trusted": found.trusted, "status": str(found.status)}


def verb_log_z(model: Any) -> dict[str, Any]:
    found = sz.log_z(model, exclude=WITHOUT_EXACT, work=WORK, seed=3)
    tried = [[row.method, row.log_z, row.std_error, str(row.verdict), row.why] for row in found.tried]
    names = ("log_z", "std_error", "lower", "upper", "trusted")
    return {name: getattr(found, name) for name in names} | {"status": str(found.status), "tried": tried}


def verb_marginals(model: Any) -> dict[str, Any]:
    found = sz.marginals(model, exclude=WITHOUT_EXACT, work=WORK, seed=3)
    return {"mean": found.mean.tolist(), "pair_mean": found.pair_mean.tolist()}


def verb_bounds(model: Any) -> dict[str, Any]:
    found = sz.bounds(model, work=WORK)
    return {"lower": found.lower, "upper": found.upper, "methods": [found.lower_method, found.upper_method]}


def verb_thermodynamics(model: Any) -> dict[str, Any]:
    found = sz.thermodynamics(model, BETAS, "annealing", work=WORK, seed=3)
    names = ("log_z", "log_z_error", "energy", "heat_capacity", "heat_capacity_error", "trusted")
    return {name: np.asarray(getattr(found, name)).tolist() for name in names} | {"status": str(found.status)}


def verb_log_ratio(model: Any) -> dict[str, Any]:
    ising = model.to_ising() if isinstance(model, sz.RBM) else model
    return of_quantity(sz.log_ratio(1.02 * ising, ising, work=WORK, seed=3))


def verb_map_state(model: Any) -> dict[str, Any]:
    found = sz.map_state(model, work=WORK, seed=3)
    return {"log_weight": found.log_weight, "upper": found.upper, "status": str(found.status)}


def verb_sample(model: Any) -> dict[str, Any]:
    return {"states": sz.sample(model, 5, "auto", exclude=WITHOUT_EXACT, work=WORK, seed=3).tolist()}


VERBS = {
    "log_z": verb_log_z,
    "marginals": verb_marginals,
    "bounds": verb_bounds,
    "thermodynamics": verb_thermodynamics,
    "log_ratio": verb_log_ratio,
    "map_state": verb_map_state,
    "sample": verb_sample,
}


def answer(model: sz.Ising, method: str, options: dict[str, Any]) -> dict[str, Any]:
    """Run one method on one model: log Z, marginals and samples, as plain values."""
    found: dict[str, Any] = {}
    chosen = sz.METHODS[method]
    try:
        estimate = sz.log_z(model, method, **options)
        names = ("log_z", "lower", "upper", "std_error", "iterations")
        found |= {name: getattr(estimate, name) for name in names}
        found |= {"kind": str(estimate.kind), "status": str(estimate.status), "converged": estimate.status.converged}
        if chosen.gives_marginals:
            means = sz.marginals(model, method, **options)
            found |= {"mean": means.mean.tolist(), "pair_mean": means.pair_mean.tolist()}
            found |= {"probability": means.probability.tolist(), "kind_of_means": str(means.kind)}
        if chosen.gives_samples:
            found["sample"] = sz.sample(model, 3, chosen(**options), seed=4).tolist()
    except sz.SpectralzError as error:
        found["error"] = f"{type(error).__name__}: {error}"
    return found


def record(path: Path) -> None:
    """Write the answers of this version."""
    warnings.simplefilter("ignore")
    rows = {}
    for k, model in enumerate(models()):
        rows[f"{k} choose"] = {"choice": repr(sz.Auto().choose(model)), "model": repr(model)}
        pairs, weights = model.edges()
        rows[f"{k} model"] = {"pairs": pairs.tolist(), "weights": weights.tolist(), "about": dict(sz.describe(model))}
        for label, (method, options) in METHODS.items():
            rows[f"{k} {label}"] = answer(model, method, options)
        print(f"\r{k + 1} of {MODELS} models", end="", file=sys.stderr, flush=True)
    for name, larger in larger_models():
        for verb, call in VERBS.items():
            try:
                rows[f"{name.replace(' ', '_')} {verb}"] = call(larger)
            except sz.SpectralzError as error:
                rows[f"{name.replace(' ', '_')} {verb}"] = {"error": f"{type(error).__name__}: {error}"}
            print(f"\r{verb} of {name}".ljust(60), end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    path.write_text(json.dumps({"version": sz.__version__, "rows": rows}))


def differs(old: Any, new: Any) -> bool:
    """Return whether two values differ by more than rounding."""
    if isinstance(old, float) and isinstance(new, float | int):
        return abs(old - new) > max(ABSOLUTE, RELATIVE * abs(old))
    if isinstance(old, list) and isinstance(new, list):
        return len(old) != len(new) or any(differs(a, b) for a, b in zip(old, new, strict=True))
    if isinstance(old, dict) and isinstance(new, dict):
        return any(differs(old[key], new.get(key)) for key in old)
    return bool(old != new)


def compare(old: Path, new: Path) -> int:
    """Print the differences between two records, and return their number."""
    before, after = (json.loads(path.read_text())["rows"] for path in (old, new))
    count = 0
    fields: Counter[str] = Counter()
    for name, row in before.items():
        for field in sorted(row.keys() | after[name].keys()):
            count += 1
            if differs(row.get(field), after[name].get(field)):
                fields[f"{name.split(maxsplit=1)[1]}: {field}"] += 1
                if fields.total() <= 20:
                    print(f"{name}: {field}: {str(row.get(field))[:150]} -> {str(after[name].get(field))[:150]}")
    print(f"{len(before)} rows, {count} values: {fields.total()} differ by more than rounding")
    for field, times in fields.most_common():
        print(f"  {times:5d}  {field}")
    return fields.total()


# Timed in turns: methods with fixed options on the larger models, and verbs under ``work``.
TIMED = {
    "annealing": lambda model: sz.log_z(model, "annealing", population=500),
    "states": lambda model: sz.log_z(model, "states", population=500),
    "auto": verb_log_z,
    "thermodynamics": verb_thermodynamics,
    "map_state": verb_map_state,
}
TURNS = 3


def serve() -> None:
    """Solve what the standard input asks for, "model verb", and answer with the CPU seconds."""
    warnings.simplefilter("ignore")
    found = dict(larger_models())
    for line in sys.stdin:
        name, verb = line.strip().rsplit(" ", 1)
        began = time.process_time()
        TIMED[verb](found[name])
        print(time.process_time() - began, flush=True)


def speed(other: str) -> None:
    """Print the ratio of CPU times, this version over the other, the smallest of several turns each."""
    import os
    import statistics
    import subprocess

    own = str(Path(sz.__file__).parents[1])
    one_thread = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}
    servers = [
        subprocess.Popen(
            [sys.executable, "-m", "benchmarks.same_results", "serve"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, **one_thread, "PYTHONPATH": f"{source}{os.pathsep}{Path.cwd()}"},
        )
        for source in (other, own)
    ]
    ratios = {}
    for name, _ in larger_models():
        for verb in TIMED:
            times: tuple[list[float], list[float]] = ([], [])
            for _ in range(TURNS + 1):
                for server, seconds in zip(servers, times, strict=True):
                    assert server.stdin is not None
                    assert server.stdout is not None
                    print(f"{name} {verb}", file=server.stdin, flush=True)
                    seconds.append(float(server.stdout.readline()))
            before, now = (min(seconds[1:]) for seconds in times)  # the first may compile
            ratios[f"{name}, {verb}"] = now / before
            print(f"{now / before:6.2f}  {1e3 * before:8.1f} -> {1e3 * now:8.1f} ms  {name}, {verb}", flush=True)
    print(f"median {statistics.median(ratios.values()):.2f}, largest {max(ratios.values()):.2f}")
    for server in servers:
        server.kill()


def main(arguments: list[str]) -> None:
    if arguments[:1] == ["record"] and len(arguments) == 2:
        record(Path(arguments[1]))
    elif arguments[:1] == ["compare"] and len(arguments) == 3:
        sys.exit(1 if compare(Path(arguments[1]), Path(arguments[2])) else 0)
    elif arguments == ["serve"]:
        serve()
    elif arguments[:1] == ["speed"] and len(arguments) == 2:
        speed(arguments[1])
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
